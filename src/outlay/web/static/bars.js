/** What the bar charts share: their width, round ticks, the hatch of what is modelled, and the table behind them. */

import { byId, copy, el, scrolling, svg } from "./dom.js";
import { whole } from "./numbers.js";

/** Draw now, and again whenever the width changes. @param {HTMLElement} host @param {(width: number) => void} draw */
export function responsive(host, draw) {
  let last = 0;
  const again = () => {
    const width = Math.floor(host.clientWidth);
    if (width && width !== last) draw((last = width));
  };
  new ResizeObserver(again).observe(host);
  return () => {
    last = 0;
    again();
  };
}

/** Round steps of an axis. @param {number} most @param {number} wanted how many */
export function ticks(most, wanted = 6) {
  if (!(most > 0)) return [0];
  const raw = most / wanted,
    power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw) ?? 10 * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

const TILES = {
  fill: "M-1 1l2-2M0 6l6-6M5 7l2-2",
  drain: "M-1 5l2 2M0 0l6 6M5-1l2 2",
  dependency: "M1 1.5h.6M4 4.5h.6",
  communication: "M1 1l4 4M1 5l4-4",
};

/**
 * The patterns of all pictures, once in the page: what is modelled is hatched, idle time is paper with a light hatch
 * by cause. They stand in a picture of their own, because one in a hidden view would not be drawn anywhere. */
export function patterns() {
  const tile = (id, d) =>
    svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("path", { d, class: "idle-line" }));
  document.body.append(
    svg(
      "svg",
      { width: 0, height: 0, "aria-hidden": "true", class: "unseen" },
      svg(
        "defs",
        {},
        svg(
          "pattern",
          { id: "modelled", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          svg("rect", { width: 2, height: 5, class: "hatch-line" }),
        ),
        tile("reserved", TILES.communication),
        Object.entries(TILES).map(([cause, d]) => tile(`idle-${cause}`, d)),
      ),
    ),
  );
}

/** Width of a text of 12 px, nearly. @param {string} text */
export const wide = (text) => 6.4 * text.length;

/**
 * The buttons over a picture: its table, and a copy of it as CSV.
 * @param {string} name the place of the tools @param {HTMLElement} host where the table appears
 * @param {string} label @param {() => {heads: string[], rows: string[][], element: HTMLElement}} made
 */
export function tableTools(name, host, label, made) {
  const place = document.querySelector(`[data-tools="${name}"]`);
  const under = el("div", { hidden: true, id: `table-${name}`, class: "under" });
  const toggle = el(
    "button",
    { type: "button", "aria-expanded": "false", "aria-controls": under.id, onclick: show },
    "Table",
  );
  const csv = el("button", { type: "button", onclick: () => copy(csv, toCsv(made())) }, "Copy as CSV");
  function show() {
    under.hidden = !under.hidden;
    toggle.setAttribute("aria-expanded", String(!under.hidden));
    refresh();
  }
  const refresh = () => {
    if (!under.hidden) under.replaceChildren(scrolling(label, made().element));
  };
  byId(`table-${name}`)?.remove();
  host.after(under);
  place.replaceChildren(toggle, csv);
  return refresh;
}

/**
 * A button beside them that opens what is drawn once because it is alike. Answers with what says how many ranks there
 * are to open; 0 hides it.
 * @param {string} name the place of the tools @param {(every: boolean) => void} open
 */
export function allRanks(name, open) {
  const button = el("button", { type: "button", "aria-pressed": "false", onclick: press }, "All ranks");
  function press() {
    const every = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(every));
    open(every);
  }
  document.querySelector(`[data-tools="${name}"]`).append(button);
  return (ranks) => {
    button.hidden = !ranks;
    button.textContent = `All ${whole(ranks)} ranks`;
  };
}

const field = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
/** @param {{heads: string[], rows: string[][]}} of */
const toCsv = ({ heads, rows }) =>
  [heads, ...rows].map((row) => row.map((each) => field(String(each))).join(",")).join("\n");
