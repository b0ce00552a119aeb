/** How a timing diagram is moved by keys, buttons and the wheel; pointers.js has drags and fingers. */

import { el, fill } from "./dom.js";
import { pointers } from "./pointers.js";
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
      const x = event.clientX - picture.getBoundingClientRect().left - diagram.at.left;
      diagram.view.zoom(event.deltaY < 0 ? 0.8 : 1.25, x / diagram.at.width);
      diagram.soon();
    },
    { passive: false },
  );
  pointers(diagram, picture);
}
