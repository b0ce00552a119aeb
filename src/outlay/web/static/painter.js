/** Painting a timing diagram: the overview, the rows, the axis, what is in flight, the critical path. */

import { svg } from "./dom.js";
import { nameOf, rowOfPipe } from "./tracks.js";
import { Shapes, box, row } from "./shapes.js";

const MOST_NUMBERS = 1500;

/**
 * @typedef {{left: number, right: number, width: number, strip: number, top: number, row: number, pitch: number,
 * bottom: number, flight: number, height: number}} Frame
 */

/** Where everything stands. @param {number} rows @param {number} width of the host @returns {Frame} */
export function frame(rows, width) {
  const narrow = width < 560,
    left = narrow ? 56 : 92,
    right = narrow ? 4 : 104;
  const tall = rows <= 8 ? 24 : rows <= 16 ? 18 : rows <= 32 ? 12 : 9,
    pitch = tall + (rows <= 16 ? 5 : 1);
  const strip = 26,
    top = strip + 30,
    bottom = top + rows * pitch,
    flight = bottom + 40;
  return {
    left,
    right,
    width: width - left - right,
    strip,
    top,
    row: tall,
    pitch,
    bottom,
    flight,
    height: flight + 52,
  };
}

/** The nodes of some shapes: one path a tone, and the numbers. @param {Shapes} shapes */
function nodes(shapes) {
  const made = [];
  for (const [name, parts] of shapes.paths) {
    const [tone, more] = name.split(" "),
      d = parts.join("");
    if (tone[0] === "#") made.push(svg("path", { d, fill: `url(#idle-${tone.slice(1)})` }));
    else
      made.push(svg("path", more === "edge" || !more ? { d, class: name } : { d, class: tone, "fill-opacity": more }));
  }
  for (const [x, y, text, name] of shapes.texts) made.push(svg("text", { x: Math.round(x), y, class: name }, text));
  return made;
}

/** All rows in view. @param {any[]} tracks @param {any} view of the time @param {Frame} at
 * @param {string} name of the diagram, for what its rows share */
export function rows(tracks, view, at, name) {
  const window = view.window(at.width);
  if (tracks[0]?.alike) return sharing(tracks, window, at, name);
  const shapes = new Shapes();
  tracks.forEach((track, index) => row(shapes, track, window, at.top + index * at.pitch, at.row, MOST_NUMBERS));
  return { made: nodes(shapes), bucketed: shapes.bucketed };
}

/** Rows of which many are alike: each is drawn once, and used again. */
function sharing(tracks, window, at, name) {
  const first = new Map(),
    made = [];
  let bucketed = false;
  tracks.forEach((track, index) => {
    const drawn = first.get(track.alike);
    if (drawn) {
      made.push(svg("use", { href: `#${drawn.id}`, y: (index - drawn.index) * at.pitch }));
      return;
    }
    const shapes = new Shapes(),
      id = `${name}-row-${index}`;
    row(shapes, track, window, at.top + index * at.pitch, at.row, MOST_NUMBERS);
    bucketed ||= shapes.bucketed;
    first.set(track.alike, { id, index });
    made.push(svg("g", { id }, nodes(shapes)));
  });
  return { made, bucketed };
}

/** The whole step, small: where the view lies in it. @param {any[]} tracks @param {any} view @param {Frame} at */
export function overview(tracks, view, at) {
  const every = Math.max(1, Math.ceil(tracks.length / 13)),
    shown = tracks.filter((_, index) => index % every === 0);
  const shapes = new Shapes(),
    window = view.window(at.width, true),
    tall = at.strip / shown.length;
  shown.forEach((track, index) => row(shapes, track, window, index * tall, Math.max(1, tall - 0.4), 0));
  for (const name of [...shapes.paths.keys()]) if (name[0] === "#") shapes.paths.delete(name);
  return nodes(shapes);
}

/** The viewport in the overview. @param {any} view @param {Frame} at */
export function viewport(view, at) {
  const left = (view.left / view.length) * at.width,
    wide = Math.max(3, ((view.right - view.left) / view.length) * at.width);
  return [
    svg("path", {
      class: "veil",
      d: box(0, 0, left, at.strip) + box(left + wide, 0, Math.max(0, at.width - left - wide), at.strip),
    }),
    svg("rect", { class: "viewport", x: left, y: 0.5, width: wide, height: at.strip - 1 }),
  ];
}

/** Names of the rows at the left, their idle time at the right. @param {any[]} tracks @param {Frame} at
 * @param {(value: number) => string} time @param {number} makespan @param {number} marked the row of the cursor */
export function margins(tracks, at, time, makespan, marked) {
  const every = tracks.length <= 16 ? 1 : 8,
    made = [];
  tracks.forEach((track, index) => {
    if (index % every && index !== marked) return;
    if (every > 1 && index !== marked && marked >= 0 && Math.abs(index - marked) * at.pitch < 13) return;
    const y = at.top + index * at.pitch + at.row / 2 + 4,
      name = index === marked ? "strong" : "";
    made.push(svg("text", { x: -8, y, class: `end ${name}` }, nameOf(track)));
    if (at.right > 20)
      made.push(
        svg(
          "text",
          { x: at.width + 8, y, class: `small ${name}` },
          `${time(track.idle)}  ${((100 * track.idle) / makespan).toFixed(1)} %`,
        ),
      );
  });
  if (at.right > 20) made.push(svg("text", { x: at.width + 8, y: at.top - 10, class: "small faint" }, "idle"));
  return made;
}

/** The axis under the rows, and the tear of what is folded. @param {any} view @param {Frame} at
 * @param {(value: number) => string} time @param {string} said of what is folded */
export function axis(view, at, time, said) {
  const made = [],
    marks = at.width < 500 ? 4 : 7;
  for (let mark = 0; mark <= marks; mark++) {
    const x = (at.width * mark) / marks,
      value = view.time(view.left + ((view.right - view.left) * mark) / marks);
    made.push(
      svg("path", { class: "tick", d: `M${x} ${at.bottom + 3}v4` }),
      svg(
        "text",
        { x, y: at.bottom + 19, class: `small ${mark === 0 ? "" : mark === marks ? "end" : "mid"}` },
        time(value),
      ),
    );
  }
  if (!view.gone) return made;
  const window = view.window(at.width),
    left = Math.max(0, window.x(view.cut.start)),
    right = Math.min(at.width, window.x(view.cut.end));
  if (right <= left) return made;
  const zig = (x) => `M${x} ${at.top - 4}` + "l3 5l-6 5l3 5".repeat(Math.ceil((at.bottom - at.top + 6) / 15));
  made.push(
    svg("path", { class: "tear", d: box(left, at.top - 4, right - left, at.bottom - at.top + 6) }),
    svg("path", { class: "tear-edge", d: zig(left) + zig(right) }),
  );
  const middle = (left + right) / 2,
    half = 3.2 * said.length;
  made.push(
    svg("text", { x: Math.max(half, Math.min(at.width - half, middle)), y: at.top - 10, class: "mid small" }, said),
  );
  return made;
}

/**
 * What a row holds over time, as an area under the rows.
 * @param {{time: Float64Array, level: Float64Array, peak: number}} held
 * @param {any} view @param {Frame} at @param {string} name */
export function flight(held, view, at, name) {
  const tall = 40,
    base = at.flight + tall,
    window = view.window(at.width),
    y = (level) => base - (level / (held.peak || 1)) * (tall - 12);
  const level = (index) => (index < 0 ? 0 : held.level[index]);
  let index = firstFrom(held.time, window.from) - 1,
    d = `M0 ${base}V${y(level(index)).toFixed(1)}`;
  for (let next = index + 1; next < held.time.length && held.time[next] < window.to;) {
    const x = window.x(held.time[next]),
      gone = window.hole && held.time[next] > window.hole[0] && held.time[next] < window.hole[1];
    if (gone) {
      index = next++;
      continue;
    }
    let most = level(next),
      least = most;
    while (next < held.time.length && window.x(held.time[next]) < x + 1) {
      most = Math.max(most, level(next));
      least = Math.min(least, level(next));
      index = next++;
    }
    d +=
      `H${x.toFixed(1)}V${y(most).toFixed(1)}` +
      (least < most ? `V${y(least).toFixed(1)}` : "") +
      `V${y(level(index)).toFixed(1)}`;
  }
  const said = Number(held.peak.toFixed(2));
  return [
    svg("path", { class: "flight", d: `${d}H${at.width}V${base}z` }),
    svg("path", { class: "tick", d: `M0 ${base}H${at.width}` }),
    svg("text", { x: -8, y: base, class: "end small" }, "in flight"),
    svg(
      "text",
      { x: 0, y: at.flight + 7, class: "small" },
      `${name}: ${said} micro-batch${said === 1 ? "" : "es"} at the peak`,
    ),
  ];
}

function firstFrom(values, time) {
  let low = 0,
    high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The critical path: one thin line that jumps ranks, a dot where it changes. @param {any[]} path @param {any[]} tracks
 * @param {any} view @param {Frame} at */
export function critical(path, tracks, view, at) {
  const rowOf = rowOfPipe(tracks);
  const window = view.window(at.width);
  let line = "",
    dots = "",
    before = -1;
  for (const each of path) {
    if (
      each.end < window.from ||
      each.start > window.to ||
      (window.hole && each.start >= window.hole[0] && each.end <= window.hole[1])
    ) {
      before = -1;
      continue;
    }
    if (!rowOf.has(each.rank)) continue;
    const index = rowOf.get(each.rank),
      y = at.top + index * at.pitch + at.row / 2;
    const left = Math.max(0, window.x(each.start)),
      right = Math.min(at.width, window.x(each.end));
    line += `${before < 0 ? "M" : "L"}${left.toFixed(1)} ${y}H${right.toFixed(1)}`;
    if (before >= 0 && before !== index) dots += `M${left.toFixed(1)} ${y}h.01`;
    before = index;
  }
  return [
    svg("path", { class: "halo", d: line }),
    svg("path", { class: "path", d: line }),
    svg("path", { class: "dots", d: dots }),
  ];
}
