/**
 * Peak memory against the time of a step: the frontier joined, all other layouts small, the wall, and the one in hand.
 */

import { responsive, ticks } from "./bars.js";
import { announce, el, fill, svg } from "./dom.js";
import { GIB, duration, figure, gib } from "./numbers.js";

const HINT =
  "Arrow keys or the pointer: a layout and its figures; Enter or a click takes it. " +
  "Drag over a range of memory to filter the table.";
const SLOWEST = 2; // times the fastest step: what is slower is not drawn

/**
 * @typedef {{kind: "frontier" | "best" | "base" | "now", peak: number, seconds: number, layout: any, words: string,
 * fits: boolean}} Point
 */

/**
 * The scatter. Arrow keys walk along the points, Enter takes one.
 * @param {HTMLElement} host @param {{take: (point: Point) => void, brush: (range: [number, number] | null) => void}} on
 */
export function scatter(host, on) {
  const picture = el("div", { class: "picture" }),
    readout = el("p", { class: "readout", id: "frontier-readout" });
  /** @type {Point[]} */
  let points = [];
  let wall = 0,
    at = -1,
    place = null,
    brushed = null;
  fill(host, picture, readout);
  const redraw = responsive(picture, (width) => {
    if (points.length) draw(width);
  });

  function draw(width) {
    const area = scales(points, wall, width);
    place = area;
    const made = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${area.height}`,
        width,
        height: area.height,
        role: "application",
        tabindex: 0,
        "aria-roledescription": "scatter of layouts",
        "aria-label": `${points.length} layouts, peak memory against the time of a step`,
        "aria-describedby": readout.id,
      },
      axes(area, wall),
      line(area.shown, area),
      area.shown.map((point) => dot(point, area)),
      labels(area),
      svg("g", { class: "mark still" }),
      svg("g", { class: "band still" }),
    );
    fill(picture, made);
    listen(made);
    mark();
  }

  function mark() {
    const group = picture.querySelector(".mark"),
      point = points[at];
    if (!group) return;
    fill(group, point && svg("circle", { class: "cursor", cx: place.x(point.peak), cy: place.y(point.seconds), r: 9 }));
    const sure = point && !point.fits ? ", does not fit for sure" : "";
    readout.textContent = point
      ? `${point.words}: ${gib(point.peak)}, ${duration(point.seconds, 4)} a step${sure}. Enter or a click takes it.`
      : HINT;
  }

  function listen(made) {
    const spot = (event) => {
      const box = made.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const near = ([x, y]) =>
      place.shown.reduce(
        (best, point) => {
          const away = Math.hypot(place.x(point.peak) - x, place.y(point.seconds) - y);
          return away < best[0] ? [away, points.indexOf(point)] : best;
        },
        [24, -1],
      )[1];
    let from = null;
    made.addEventListener("pointerdown", (event) => {
      from = spot(event);
      made.setPointerCapture(event.pointerId);
    });
    made.addEventListener("pointermove", (event) => {
      const here = spot(event);
      if (from && Math.abs(here[0] - from[0]) > 8) band([from[0], here[0]]);
      else {
        at = near(here);
        mark();
      }
    });
    made.addEventListener("pointerup", (event) => {
      const here = spot(event),
        moved = from && Math.abs(here[0] - from[0]) > 8;
      if (moved) on.brush((brushed = [place.back(Math.min(from[0], here[0])), place.back(Math.max(from[0], here[0]))]));
      else {
        band(null);
        if (brushed) on.brush((brushed = null));
        if (points[near(here)]) on.take(points[near(here)]);
      }
      from = null;
    });
    made.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Enter" && points[at]) on.take(points[at]);
      else if (by) {
        at = (Math.max(at, by > 0 ? -1 : 0) + by + points.length) % points.length;
        mark();
        announce(readout.textContent, 0);
      } else return;
      event.preventDefault();
    });
  }

  function band(range) {
    const group = picture.querySelector(".band"),
      [left, right] = (range ?? []).toSorted((a, b) => a - b);
    fill(
      group,
      range &&
        svg("rect", { class: "brush", x: left, y: place.top, width: right - left, height: place.bottom - place.top }),
    );
  }

  return (/** @type {Point[]} */ next, /** @type {number} */ usable) => {
    points = next.toSorted((a, b) => a.peak - b.peak || a.seconds - b.seconds);
    [wall, at, brushed] = [usable, -1, null];
    redraw();
  };
}

/** Where figures stand. A few slow layouts at the edge would flatten all others: they are counted, and not drawn. */
function scales(points, wall, width) {
  const left = 50,
    right = 18,
    top = 26,
    height = width < 560 ? 300 : 380,
    bottom = height - 40;
  const able = points.filter((point) => point.peak < 1.3 * wall),
    low = Math.min(...able.map((point) => point.seconds));
  const shown = able.filter((point) => point.seconds <= SLOWEST * low);
  const most = Math.max(wall * 1.06, ...shown.map((point) => point.peak)) * 1.02,
    high = Math.max(...shown.map((point) => point.seconds));
  const step = ticks(high - low, 5)[1] ?? 1,
    from = Math.floor((low / step) * 0.999) * step,
    to = high + 0.04 * (high - low || high);
  return {
    left,
    top,
    bottom,
    height,
    width,
    right,
    from,
    to,
    step,
    most,
    shown,
    slower: able.filter((point) => point.seconds > SLOWEST * low),
    x: (peak) => left + (peak / most) * (width - left - right),
    back: (place) => ((place - left) / (width - left - right)) * most,
    y: (seconds) => bottom - ((seconds - from) / (to - from)) * (bottom - top),
  };
}

function axes(area, wall) {
  const made = [],
    { left, bottom, width, right, top } = area;
  for (const tick of ticks(area.most / GIB, 8)) {
    made.push(
      svg("path", { class: "tick", d: `M${area.x(tick * GIB)} ${bottom}v4` }),
      svg("text", { class: "mid small", x: area.x(tick * GIB), y: bottom + 18 }, tick),
    );
  }
  for (let value = area.from; value <= area.to; value += area.step) {
    made.push(
      svg("path", { class: "grid-line", d: `M${left} ${area.y(value)}H${width - right}` }),
      svg("text", { class: "end small", x: left - 8, y: area.y(value) + 4 }, Number(value.toPrecision(6))),
    );
  }
  made.push(
    svg("path", { class: "wall", d: `M${area.x(wall)} ${top - 6}V${bottom}` }),
    svg("text", { class: "end strong small", x: area.x(wall) - 6, y: top + 2 }, `wall ${figure(wall / GIB)}`),
    svg("text", { class: "end small faint", x: width - right, y: bottom + 34 }, "peak GiB of the heaviest rank"),
    svg("text", { class: "small faint", x: 0, y: 11 }, "step, s"),
  );
  const slow = area.slower.length;
  if (slow)
    made.push(
      svg(
        "text",
        { class: "small faint", x: left + 8, y: top },
        `\u2191 ${slow} slower, to ${duration(Math.max(...area.slower.map((point) => point.seconds)))}`,
      ),
    );
  return made;
}

const line = (points, area) => {
  const joined = points.filter((point) => point.kind === "frontier");
  let d = "";
  joined.forEach((point, at) => {
    d += at
      ? `H${area.x(point.peak).toFixed(1)}V${area.y(point.seconds).toFixed(1)}`
      : `M${area.x(point.peak).toFixed(1)} ${area.y(point.seconds).toFixed(1)}`;
  });
  return svg("path", { class: "frontier-line", d });
};

function dot(point, area) {
  const cx = area.x(point.peak),
    cy = area.y(point.seconds);
  if (point.kind === "base") return svg("rect", { class: "base", x: cx - 4, y: cy - 4, width: 8, height: 8 });
  if (point.kind === "now") return svg("circle", { class: "now", cx, cy, r: 7 });
  return svg("circle", {
    class: `${point.kind}${point.fits ? "" : " unsure"}`,
    cx,
    cy,
    r: point.kind === "frontier" ? 4 : 2.5,
  });
}

/** Names beside baselines and the layout in hand, none over another. */
function labels(area) {
  const named = area.shown.filter((point) => point.kind === "base" || point.kind === "now"),
    taken = [];
  return named.map((point) => {
    const x = area.x(point.peak),
      end = x > area.width / 2;
    let y = area.y(point.seconds) - 10;
    while (taken.some((other) => Math.abs(other - y) < 14)) y -= 14;
    taken.push(y);
    return svg(
      "text",
      { class: `small still ${end ? "end" : ""}`, x: x + (end ? 4 : -4), y },
      point.kind === "now" ? "the layout in hand" : point.words,
    );
  });
}
