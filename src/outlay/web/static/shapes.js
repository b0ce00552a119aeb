/**
 * Rows of a timing diagram as a few paths: every operation where there is room for it, else buckets of 2 px.
 * The rules are those of the pictures that `outlay draw` writes (show/diagram/rows.py).
 */

import { KINDS, TONES, firstAfter } from "./tracks.js";

export const NUMBERED = 14,
  OUTLINED = 4,
  BUCKET = 2; // px: from where on a number, an outline; the width of a bucket
const PURE = 0.9; // share of a bucket's work that one kind has to be
const STEPS = 4; // steps of a bucket's opacity
const LETTERS = ["F", "B", "W", "R", "X"]; // tones of operations
const CODE = KINDS.map((kind) => LETTERS.indexOf(TONES[kind]));

/**
 * @typedef {{from: number, to: number, width: number, x: (time: number) => number, hole: [number, number] | null}}
 * Window
 */

/** Paths by their class and opacity, and the numbers that stand in operations. */
export class Shapes {
  constructor() {
    /** @type {Map<string, string[]>} */
    this.paths = new Map();
    /** @type {[number, number, string, string][]} */
    this.texts = [];
    this.bucketed = false;
  }

  /** @param {string} name @param {string} d */
  add(name, d) {
    const found = this.paths.get(name);
    if (found) found.push(d);
    else this.paths.set(name, [d]);
  }
}

const r = (value) => Math.round(value * 10) / 10;
export const box = (x, y, width, height) => `M${r(x)} ${r(y)}h${r(width)}v${r(height)}h${r(-width)}z`;

/** Whether an operation lies wholly in what is folded away. */
const folded = (track, at, hole) => hole !== null && track.start[at] >= hole[0] && track.end[at] <= hole[1];

/** One row. @param {Shapes} shapes @param {import("./tracks.js").Track} track @param {Window} view */
export function row(shapes, track, view, y, height, most = Infinity) {
  waits(shapes, track, view, y, height);
  const first = firstAfter(track, view.from),
    last = firstAfter({ end: track.start }, view.to);
  if (narrow(track, view, first, last)) buckets(shapes, track, view, y, height, first, last);
  else operations(shapes, track, view, y, height, first, last, most);
}

/** Whether a quarter of the operations in view are too narrow to be drawn one by one. */
function narrow(track, view, first, last) {
  const widths = [],
    every = Math.max(1, Math.floor((last - first) / 200));
  for (let at = first; at < last; at += every) {
    if (!folded(track, at, view.hole)) widths.push(view.x(track.end[at]) - view.x(track.start[at]));
  }
  widths.sort((a, b) => a - b);
  return widths.length > 0 && widths[widths.length >> 2] < OUTLINED;
}

/** Where a row waits, hatched by cause. */
function waits(shapes, track, view, y, height) {
  for (const [cause, start, end] of track.gaps) {
    if (end <= view.from || start >= view.to) continue;
    const left = Math.max(0, view.x(start)),
      right = Math.min(view.width, view.x(end));
    if (right - left >= BUCKET) shapes.add(`#${cause}`, box(left, y, right - left, height));
  }
}

function operations(shapes, track, view, y, height, first, last, most) {
  for (let at = first; at < last; at++) {
    if (folded(track, at, view.hole)) continue;
    const left = Math.max(0, view.x(track.start[at])),
      right = Math.min(view.width, view.x(track.end[at])),
      width = right - left;
    if (width <= 0) continue;
    const kind = KINDS[track.kind[at]],
      pair = kind === "P";
    const halves = pair
      ? [
          ["F", y, height / 2, track.batch[at]],
          ["B", y + height / 2, height / 2, track.other[at]],
        ]
      : [[TONES[kind], y, height, track.batch[at]]];
    for (const [tone, top, tall, batch] of halves) {
      shapes.add(
        width >= OUTLINED ? `${tone} edge` : tone,
        notched(left, top, width, tall, top === y ? track.chunk[at] : 0),
      );
      const text = String(batch + 1);
      if (width >= NUMBERED && tall >= 10 && 6.5 * text.length + 3 <= width && shapes.texts.length < most) {
        shapes.texts.push([left + width / 2, top + tall / 2 + 4, text, `n t${tone}${track.chunk[at] ? " i" : ""}`]);
      }
    }
  }
}

/** A box with small cuts in its top edge: one for the second chunk of a rank, two for the third. */
function notched(x, y, width, height, chunk) {
  const count = Math.min(chunk, 3, Math.floor(width / 7));
  if (count < 1) return box(x, y, width, height);
  const flat = r((width - 5 * count) / (count + 1));
  return `M${r(x)} ${r(y)}h${flat}${`l2.5 3l2.5-3h${flat}`.repeat(count)}V${r(y + height)}H${r(x)}z`;
}

function buckets(shapes, track, view, y, height, first, last) {
  shapes.bucketed = true;
  const count = Math.ceil(view.width / BUCKET),
    cover = LETTERS.map(() => null);
  for (let at = first; at < last; at++) {
    if (folded(track, at, view.hole)) continue;
    const left = Math.max(0, view.x(track.start[at])) / BUCKET,
      right = Math.min(view.width, view.x(track.end[at])) / BUCKET;
    const mine = (cover[CODE[track.kind[at]]] ??= new Float32Array(count + 1));
    const begin = Math.floor(left),
      end = Math.min(Math.floor(right), count - 1);
    if (begin >= end) {
      mine[begin] += right - left;
      continue;
    }
    mine[begin] += begin + 1 - left;
    for (let b = begin + 1; b < end; b++) mine[b] += 1;
    mine[end] += right - end;
  }
  runs(shapes, cover, count, view, y, height);
}

/** Equal neighbours among the buckets as one box each. */
function runs(shapes, cover, count, view, y, height) {
  const codes = new Int8Array(count + 1).fill(-1); // one past the end closes the last run
  for (let b = 0; b < count; b++) codes[b] = codeOf(cover, b, (view.width - b * BUCKET) / BUCKET);
  for (let b = 0, begun = 0; b <= count; b++) {
    if (b < count && b > 0 && b + 1 < count) settle(codes, b);
    if ((b > begun && codes[b] !== codes[begun]) || b === count) {
      const code = codes[begun];
      if (code >= 0) {
        const left = begun * BUCKET,
          name = `${LETTERS[code >> 3]} ${(code & 7) / STEPS}`;
        shapes.add(name, box(left, y, Math.min(b * BUCKET, view.width) - left, height));
      }
      begun = b;
    }
  }
}

/** The tone and the step of opacity of a bucket; -1 where nothing is done in it. */
function codeOf(cover, b, room) {
  let busy = 0,
    most = 0,
    tone = 4;
  for (let each = 0; each < cover.length; each++) {
    const here = cover[each]?.[b] ?? 0;
    busy += here;
    if (here > most) {
      most = here;
      tone = each;
    }
  }
  const step = Math.min(STEPS, Math.ceil((STEPS * busy) / Math.min(1, room) - 0.2));
  if (step <= 0) return -1;
  return ((most >= PURE * busy ? tone : 4) << 3) + step;
}

/** A bucket that an operation's end only touches takes the opacity of the run beside it: no more than 2 px. */
function settle(codes, b) {
  const same = (other) => codes[other] >= 0 && codes[other] >> 3 === codes[b] >> 3;
  if (codes[b] < 0 || same(b - 1) === same(b + 1)) return;
  codes[b] = Math.max(codes[b], codes[same(b - 1) ? b - 1 : b + 1]);
}
