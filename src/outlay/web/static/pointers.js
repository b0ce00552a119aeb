/**
 * Pointers on a timing diagram: what lies under one, a drag, two fingers, a range with Shift. One finger up and down is
 * not ours: the sheet leaves it to the page, which scrolls.
 */

import { firstAfter } from "./tracks.js";

const STILL = { mouse: 3, pen: 5, touch: 10 }; // px that a press may move and still be one
const LEAST_APART = 24; // px: closer fingers would zoom by leaps

/** @param {import("./diagram.js").Diagram} diagram @param {SVGElement} picture */
export function pointers(diagram, picture) {
  /** @type {Map<number, {x: number, y: number}>} where each pointer is that is down */
  const down = new Map();
  let grip = null,
    press = null; // where a press began that has not moved yet
  const spot = (event) => {
    const { left, top } = picture.getBoundingClientRect();
    return { x: event.clientX - left - diagram.at.left, y: event.clientY - top };
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const at = spot(event);
    down.set(event.pointerId, at);
    press = down.size === 1 ? at : null;
    grip = gripped(diagram, down, event.shiftKey);
    if (grip.strip) jump(diagram, at.x);
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const at = spot(event);
    if (!down.has(event.pointerId)) return hover(diagram, at);
    down.set(event.pointerId, at);
    if (press && far(at, press) <= (STILL[event.pointerType] ?? 3)) return undefined;
    press = null;
    return move(diagram, down, grip);
  });
  const ended = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (event.type === "pointerup") {
      if (press) hover(diagram, press);
      else if (grip.shift) measure(diagram, grip.x, spot(event).x);
    }
    press = null;
    if (down.size) grip = gripped(diagram, down, false); // what is left goes on from where it is
  };
  picture.addEventListener("pointerup", ended);
  picture.addEventListener("pointercancel", ended);
}

/** What is held: a place of the picture and how much was in view, or what lies between two fingers. */
function gripped(diagram, down, shift) {
  const { view, at } = diagram,
    wide = view.right - view.left,
    { x, y } = down.values().next().value;
  const held = { x, left: view.left, wide, shift, strip: y <= at.strip, apart: 0, time: 0 };
  if (down.size < 2) return held;
  const time = view.left + (middle(down) / at.width) * wide;
  return { ...held, strip: false, shift: false, apart: apart(down), time };
}

/** Follow the pointers: two fingers zoom and pan, one pans, in the strip one moves the window. */
function move(diagram, down, grip) {
  const { view, at } = diagram;
  if (grip.apart) view.hold(grip.time, middle(down) / at.width, (grip.wide * grip.apart) / apart(down));
  else if (grip.strip) return jump(diagram, down.values().next().value.x);
  else if (grip.shift) return undefined;
  else view.show(grip.left - ((down.values().next().value.x - grip.x) / at.width) * grip.wide, grip.wide);
  return diagram.soon();
}

const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);
const apart = (down) => {
  const [one, other] = [...down.values()];
  return Math.max(LEAST_APART, far(one, other));
};
const middle = (down) => {
  const [one, other] = [...down.values()];
  return (one.x + other.x) / 2;
};

/** The time at a place of the picture, inside of it. @param {import("./diagram.js").Diagram} diagram */
function timeAt({ view, at }, x) {
  return view.time(view.left + Math.max(0, Math.min(1, x / at.width)) * (view.right - view.left));
}

/** Busy and idle time between two places. */
function measure(diagram, from, to) {
  const [first, last] = [timeAt(diagram, from), timeAt(diagram, to)].sort((a, b) => a - b);
  if (last > first) diagram.measure(first, last);
}

/** Centre the view on a place of the overview. */
function jump(diagram, x) {
  const { view, at } = diagram,
    wide = view.right - view.left;
  view.show((x / at.width) * view.length - wide / 2, wide);
  diagram.soon();
}

/** The operation under the pointer, or why a rank waits there. */
function hover(diagram, { x, y }) {
  const { at, tracks } = diagram,
    row = Math.floor((y - at.top) / at.pitch);
  if (row < 0 || row >= tracks.length || x < 0 || x > at.width) return;
  const time = timeAt(diagram, x),
    track = tracks[row],
    index = firstAfter(track, time);
  if (index < track.start.length && track.start[index] <= time) return diagram.take(row, index, false);
  const gap = track.gaps.find(([, start, end]) => start <= time && time < end);
  if (gap) diagram.readout.textContent = waits(diagram, track, gap);
}

const waits = ({ time }, track, [cause, start, end]) =>
  `rank ${track.ranks[0]} waits ${time(end - start)} (${cause}), ${time(start)} to ${time(end)}`;
