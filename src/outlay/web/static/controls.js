/** How a timing diagram is moved: keys, buttons, wheel, drag, and two fingers. */

import { el, fill } from "./dom.js";
import { firstAfter } from "./tracks.js";

const BUTTONS = [
  ["w", "zoom in"],
  ["s", "zoom out"],
  ["a", "earlier"],
  ["d", "later"],
  ["f", "fit"],
  ["e", "fold"],
  ["c", "critical path"],
];

/** @param {import("./diagram.js").Diagram} diagram */
export function controls(diagram) {
  const goto = el("input", {
    id: `goto-${diagram.readout.id}`,
    size: 12,
    placeholder: "12.5 s, or r3 m12",
    autocomplete: "off",
  });
  const form = el(
    "form",
    {
      class: "goto",
      onsubmit: (event) => {
        event.preventDefault();
        find(diagram, goto.value);
      },
    },
    el("label", { for: goto.id }, "go to "),
    goto,
  );
  fill(
    diagram.buttons,
    BUTTONS.map(([key, word]) =>
      el(
        "button",
        { type: "button", "data-key": key, onclick: () => press(diagram, key) },
        el("kbd", { "aria-hidden": "true" }, key),
        ` ${word}`,
      ),
    ),
    form,
  );
  return { listen: (picture) => listen(diagram, picture, goto) };
}

const VIEWS = {
  w: (view) => view.zoom(0.5),
  s: (view) => view.zoom(2),
  a: (view) => view.pan(-0.25),
  d: (view) => view.pan(0.25),
  f: (view) => view.fit(),
  home: (view) => view.pan(-1e9),
  end: (view) => view.pan(1e9),
};

/** @param {import("./diagram.js").Diagram} diagram @param {string} key */
function press(diagram, key) {
  if (VIEWS[key]) VIEWS[key](diagram.view);
  else if (key === "e") {
    diagram.view.toggle();
    diagram.overview();
  } else if (key === "c") diagram.path = !diagram.path;
  else return false;
  diagram.paint();
  return true;
}

/** Walk from operation to operation: along the time, or to the same time of another rank. */
function walk(diagram, key) {
  const { tracks, cursor, view } = diagram;
  if (!cursor) return diagram.take(0, firstAfter(tracks[0], view.time(view.left)), true);
  const here = tracks[cursor.row],
    time = here.start[cursor.at];
  if (key === "arrowleft" || key === "arrowright")
    diagram.take(cursor.row, cursor.at + (key === "arrowleft" ? -1 : 1), true);
  else {
    const row = Math.max(0, Math.min(tracks.length - 1, cursor.row + (key === "arrowup" ? -1 : 1)));
    diagram.take(row, firstAfter(tracks[row], time), true);
  }
  const track = tracks[diagram.cursor.row],
    at = diagram.cursor.at,
    left = view.left;
  view.reveal(track.start[at], track.end[at]);
  if (view.left !== left) diagram.paint();
}

/** Go to a time, or to a micro-batch of a rank. @param {import("./diagram.js").Diagram} diagram @param {string} text */
function find(diagram, text) {
  const place = text.match(/r(?:ank)?\s*(\d+)(?:.*?m\D*(\d+))?/i),
    time = Number.parseFloat(text);
  if (place) {
    const row = diagram.tracks.findIndex((track) => track.ranks.includes(Number(place[1]))),
      batch = Number(place[2] ?? 1) - 1;
    if (row < 0) {
      diagram.readout.textContent = `there is no rank ${place[1]}`;
      return;
    }
    const at = diagram.tracks[row].batch.indexOf(batch);
    if (at < 0) {
      diagram.readout.textContent = `rank ${place[1]} has no micro-batch ${batch + 1}`;
      return;
    }
    show(diagram, diagram.tracks[row].start[at], diagram.tracks[row].end[at]);
    diagram.take(row, at, true);
  } else if (Number.isFinite(time)) {
    const value = /\dm?s/.test(text.replace(" ", "")) && /ms/.test(text) ? time / 1000 : time;
    show(diagram, value, value);
    diagram.take(0, firstAfter(diagram.tracks[0], value), true);
  } else diagram.readout.textContent = "a time such as 12.5 s, or a rank and a micro-batch such as r3 m12";
}

/** Bring a time into the middle, unfolded where it is folded away. */
function show(diagram, start, end) {
  const { view } = diagram;
  if (view.gone && start > view.cut.start && end < view.cut.end) {
    view.toggle();
    diagram.overview();
  }
  const wide = Math.min(view.right - view.left, view.length / 8),
    middle = (view.drawn(start) + view.drawn(end)) / 2;
  view.show(middle - wide / 2, wide);
  diagram.paint();
}

/** @param {import("./diagram.js").Diagram} diagram @param {SVGElement} picture @param {HTMLInputElement} goto */
function listen(diagram, picture, goto) {
  const spot = (event) => {
    const { left, top } = picture.getBoundingClientRect();
    return { x: event.clientX - left - diagram.at.left, y: event.clientY - top };
  };
  picture.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (key.startsWith("arrow")) walk(diagram, key);
    else if (key === "g") goto.focus();
    else if (key === "?") diagram.hint();
    else if (!press(diagram, key)) return;
    event.preventDefault();
  });
  picture.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      diagram.view.zoom(event.deltaY < 0 ? 0.8 : 1.25, spot(event).x / diagram.at.width);
      soon(diagram);
    },
    { passive: false },
  );
  drags(diagram, picture, spot);
}

let planned = 0;
/** Paint once before the next frame. */
const soon = (diagram) => {
  planned ||= requestAnimationFrame(() => {
    planned = 0;
    diagram.paint();
  });
};

function drags(diagram, picture, spot) {
  const fingers = new Map();
  let begun = null;
  picture.addEventListener("pointerdown", (event) => {
    const at = spot(event);
    fingers.set(event.pointerId, at);
    begun = {
      ...at,
      left: diagram.view.left,
      wide: diagram.view.right - diagram.view.left,
      strip: at.y <= diagram.at.strip,
      shift: event.shiftKey,
      apart: apart(fingers),
    };
    if (begun.strip) jump(diagram, at.x);
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const at = spot(event);
    if (!fingers.has(event.pointerId)) return hover(diagram, at);
    fingers.set(event.pointerId, at);
    if (fingers.size === 2)
      diagram.view.zoom(begun.apart / (begun.apart = apart(fingers)), middle(fingers) / diagram.at.width);
    else if (begun.strip) jump(diagram, at.x);
    else if (!begun.shift)
      diagram.view.show(begun.left - ((at.x - begun.x) / diagram.at.width) * begun.wide, begun.wide);
    return soon(diagram);
  });
  const ended = (event) => {
    const at = spot(event);
    if (begun?.shift && fingers.has(event.pointerId) && Math.abs(at.x - begun.x) > 3) {
      const time = (x) =>
        diagram.view.time(
          diagram.view.left + Math.max(0, Math.min(1, x / diagram.at.width)) * (diagram.view.right - diagram.view.left),
        );
      diagram.measure(...[time(begun.x), time(at.x)].sort((a, b) => a - b));
    } else if (begun && Math.abs(at.x - begun.x) <= 3) hover(diagram, at);
    fingers.delete(event.pointerId);
  };
  picture.addEventListener("pointerup", ended);
  picture.addEventListener("pointercancel", ended);
}

const apart = (fingers) => {
  const [a, b] = [...fingers.values()];
  return b ? Math.max(8, Math.abs(a.x - b.x)) : 0;
};
const middle = (fingers) => [...fingers.values()].reduce((sum, each) => sum + each.x, 0) / fingers.size;

/** Centre the view on a place of the overview. */
function jump(diagram, x) {
  const { view, at } = diagram,
    wide = view.right - view.left;
  view.show((x / at.width) * view.length - wide / 2, wide);
  soon(diagram);
}

/** The operation under the pointer. */
function hover(diagram, { x, y }) {
  const { at, view, tracks } = diagram,
    row = Math.floor((y - at.top) / at.pitch);
  if (row < 0 || row >= tracks.length || x < 0 || x > at.width) return;
  const time = view.time(view.left + (x / at.width) * (view.right - view.left)),
    track = tracks[row],
    index = firstAfter(track, time);
  if (index < track.start.length && track.start[index] <= time) diagram.take(row, index, false);
  else {
    const gap = track.gaps.find(([, start, end]) => start <= time && time < end);
    if (gap) diagram.readout.textContent = waits(diagram, track, gap);
  }
}

const waits = ({ time }, track, [cause, start, end]) =>
  `rank ${track.ranks[0]} waits ${time(end - start)} (${cause}), ${time(start)} to ${time(end)}`;
