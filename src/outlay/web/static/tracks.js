/** What the ranks of a pipeline do, as arrays: rows that differ, where they wait, and what they hold. */

export const KINDS = ["F", "B", "I", "W", "R", "P"];
export const TONES = { F: "F", B: "B", I: "B", W: "W", R: "R", P: "X" };
export const WORDS = {
  F: "forward",
  B: "backward",
  I: "input gradient",
  W: "weight gradient",
  R: "recompute",
  P: "forward and backward as a pair",
};
export const CAUSES = ["fill", "drain", "dependency", "communication"];

/**
 * One row. Where all ranks are opened, it is one accelerator: `pipe` is its rank of the pipeline, `alike` the row that
 * it was opened from.
 * @typedef {{ranks: number[], pipe?: number, alike?: Track, kind: Uint8Array, stage: Int32Array, batch: Int32Array,
 *   other: Int32Array,
 *   chunk: Uint8Array,
 *   start: Float64Array, end: Float64Array, gaps: [string, number, number][], busy: number, idle: number,
 *   causes: Record<string, number>, peak: number}} Track
 */

/** The rows of an answer to draw. @param {any} operations @param {any} record @returns {Track[]} */
export function tracksOf(operations, record) {
  /** @type {Track[]} */
  const found = [];
  operations.rows.forEach((row, rank) => {
    const track = trackOf(row, rank, operations.makespan_s, operations.gaps?.[rank]);
    const twin = found.find((each) => same(each, track));
    if (twin) twin.ranks.push(rank);
    else found.push(withFigures(track, record?.ranks?.[rank]));
  });
  return found;
}

const MOST_OPENED = 1024;

/** A row for every rank, numbered so that those of a stage follow one another, as they do in a bill.
 * @param {Track[]} distinct @param {number} copies accelerators of each rank of the pipeline @returns {Track[]} */
export function opened(distinct, copies) {
  const found = distinct.flatMap((alike) => alike.ranks.map((pipe) => ({ ...alike, alike, pipe })));
  return found
    .sort((one, other) => one.pipe - other.pipe)
    .flatMap((row) => Array.from({ length: copies }, (_, at) => ({ ...row, ranks: [row.pipe * copies + at] })))
    .slice(0, MOST_OPENED);
}

/** The row that shows each rank of the pipeline, the first of them.
 * @param {Track[]} tracks @returns {Map<number, number>} */
export function rowOfPipe(tracks) {
  const found = new Map();
  tracks.forEach(({ pipe, ranks }, index) => {
    for (const rank of pipe === undefined ? ranks : [pipe]) if (!found.has(rank)) found.set(rank, index);
  });
  return found;
}

/** @param {any[][]} row @param {number} rank @param {number} makespan @param {any} gaps @returns {Track} */
function trackOf(row, rank, makespan, gaps) {
  const most = row.length,
    stages = [...new Set(row.map((each) => each[1]))].sort((a, b) => a - b);
  const chunkOf = new Map(stages.map((stage, at) => [stage, Math.min(at, 9)]));
  const track = {
    ranks: [rank],
    kind: new Uint8Array(most),
    stage: new Int32Array(most),
    batch: new Int32Array(most),
    other: new Int32Array(most).fill(-1),
    chunk: new Uint8Array(most),
    start: new Float64Array(most),
    end: new Float64Array(most),
    gaps: [],
    busy: 0,
    idle: 0,
    causes: {},
    peak: 0,
  };
  let count = 0;
  for (const [kind, stage, batch, start, end] of row) {
    const before = count - 1;
    if (
      before >= 0 &&
      track.start[before] === start &&
      track.end[before] === end &&
      kind !== KINDS[track.kind[before]]
    ) {
      const forward = kind === "F"; // two entries at one time are a pair
      track.other[before] = forward ? track.batch[before] : batch;
      if (forward) track.batch[before] = batch;
      track.kind[before] = KINDS.indexOf("P");
      continue;
    }
    track.kind[count] = KINDS.indexOf(kind);
    track.stage[count] = stage;
    track.chunk[count] = chunkOf.get(stage);
    track.batch[count] = batch;
    track.start[count] = start;
    track.end[count] = end;
    count += 1;
  }
  for (const name of ["kind", "stage", "batch", "other", "chunk", "start", "end"])
    track[name] = track[name].subarray(0, count);
  track.gaps = gaps ?? gapsOf(track, makespan);
  return track;
}

/** Where a row waits, where the answer does not say why: before its first pass, after its last, and between.
 * @param {Track} track @param {number} makespan @returns {[string, number, number][]} */
function gapsOf({ start, end }, makespan) {
  const found = [],
    least = 1e-9 * makespan;
  for (let at = 0, before = 0; at <= start.length; at++) {
    const next = at < start.length ? start[at] : makespan;
    if (next - before > least)
      found.push([at === 0 ? "fill" : at === start.length ? "drain" : "dependency", before, next]);
    before = Math.max(before, at < start.length ? end[at] : before);
  }
  return found;
}

const equal = (one, other) => one.length === other.length && one.every((value, at) => value === other[at]);

/** @param {Track} one @param {Track} other */
const same = (one, other) =>
  one.start.length === other.start.length &&
  one.start[0] === other.start[0] &&
  ["start", "end", "kind", "batch", "other", "chunk"].every((name) => equal(one[name], other[name]));

/** A row with the figures of the whole step. @param {Track} track @param {any} said of the record */
function withFigures(track, said) {
  track.busy = said?.busy ?? sum(track.end) - sum(track.start);
  track.causes = said?.idle_by_cause ?? Object.fromEntries(CAUSES.map((cause) => [cause, waited(track, cause)]));
  track.idle = said?.idle ?? CAUSES.reduce((total, cause) => total + track.causes[cause], 0);
  track.peak = said?.peak_in_flight ?? 0;
  return track;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const waited = (track, cause) =>
  track.gaps.reduce((total, [name, from, to]) => (name === cause ? total + to - from : total), 0);

/** What the ranks of a row are called. @param {Track} track */
export const nameOf = ({ ranks }) => `rank ${ranks.length <= 3 ? ranks.join(", ") : `${ranks[0]} .. ${ranks.at(-1)}`}`;

/** The first operation that ends after a time. @param {Track} track @param {number} time */
export function firstAfter({ end }, time) {
  let low = 0,
    high = end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Micro-batches whose activations a row holds: from when on, how many. A chunk counts as its part of a whole.
 * @param {Track} track @returns {{time: Float64Array, level: Float64Array, peak: number}} */
export function inFlight(track) {
  const chunks = 1 + Math.max(0, ...new Set(track.chunk)),
    found = [],
    weights = track.kind.includes(KINDS.indexOf("W"));
  for (let at = 0; at < track.start.length; at++) {
    const kind = KINDS[track.kind[at]];
    if (kind === "F" || kind === "P") found.push([track.start[at], 1]);
    if (kind === "B" || kind === "P" || kind === (weights ? "W" : "")) found.push([track.end[at], -1]);
  }
  found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const time = new Float64Array(found.length),
    level = new Float64Array(found.length);
  let now = 0,
    peak = 0;
  found.forEach(([at, change], index) => {
    now += change / chunks;
    time[index] = at;
    level[index] = now;
    peak = Math.max(peak, now);
  });
  return { time, level, peak };
}

/** An operation in words. @param {Track} track @param {number} at @param {(value: number) => string} time */
export function spoken(track, at, time) {
  const kind = KINDS[track.kind[at]],
    waited = track.start[at] - (at ? track.end[at - 1] : 0);
  const gap = track.gaps.find(([, , to]) => Math.abs(to - track.start[at]) < 1e-12 + 1e-9 * to);
  const batch =
    track.other[at] < 0
      ? `micro-batch ${track.batch[at] + 1}`
      : `micro-batches ${track.batch[at] + 1} and ${track.other[at] + 1}`;
  return (
    `${nameOf(track)}, ${WORDS[kind]} of ${batch}, stage ${track.stage[at]}, ` +
    `${time(track.start[at])} to ${time(track.end[at])}` +
    (waited > 1e-9 ? `, waited ${time(waited)}${gap ? ` (${gap[0]})` : ""}` : "")
  );
}
