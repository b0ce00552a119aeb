/** The list of the best layouts: ten columns, sorted by any of them, filtered by typing `tp=4 pp>2`. */

import { el, fill, scrolling, table } from "./dom.js";
import { options } from "./labels.js";
import { GIB, duration, figure, percent } from "./numbers.js";

/** @param {any} one @param {number} at @param {number} fastest seconds */
const figures = (one, at, fastest) => ({
  "#": at + 1,
  tp: one.layout.tp,
  cp: one.layout.cp,
  pp: one.layout.pp,
  vpp: one.layout.vpp,
  dp: one.bill.derived.dp,
  mbs: one.layout.micro_batch,
  "step s": one.bill.step.seconds,
  x: one.bill.step.seconds / fastest,
  "peak GiB": one.bill.memory.peak_bytes / GIB,
  idle: one.bill.bubble.share,
});
const HEADS = ["#", "tp", "cp", "pp", "vpp", "dp", "mbs", "step s", "x", "peak GiB", "idle"];

/**
 * The table of the best.
 * @param {HTMLElement} host @param {any[]} best @param {(one: any) => void} take
 */
export function best(host, best, take) {
  const fastest = best[0].bill.step.seconds,
    all = best.map((one, at) => ({ one, of: figures(one, at, fastest) }));
  let by = "#",
    up = true,
    test = () => true,
    range = null;
  const words = ({ one, of }) => [
    el(
      "button",
      { type: "button", class: "take", onclick: () => take(one), "aria-label": `take layout ${of["#"]} to the bill` },
      of["#"],
    ),
    of.tp,
    of.cp,
    of.pp,
    of.vpp,
    of.dp,
    of.mbs,
    figure(of["step s"], 4),
    of.x.toFixed(3),
    figure(of["peak GiB"]),
    `${percent(of.idle)} = ${duration(one.bill.bubble.seconds)}`,
    el("span", { class: "wrap" }, options(one.layout)),
  ];
  const draw = () => {
    const shown = all.filter(
      ({ of }) => test(of) && (!range || (of["peak GiB"] * GIB >= range[0] && of["peak GiB"] * GIB <= range[1])),
    );
    shown.sort((a, b) => (a.of[by] - b.of[by]) * (up ? 1 : -1));
    const heads = HEADS.map((head) =>
      el(
        "button",
        {
          type: "button",
          class: "sort",
          "aria-pressed": String(head === by),
          onclick: () => {
            [up, by] = [by === head ? !up : true, head];
            draw();
          },
        },
        head === "mbs" ? "micro-batch" : head,
        head === by ? (up ? " \u2191" : " \u2193") : "",
      ),
    );
    fill(
      host,
      scrolling(
        "the best layouts",
        table({ heads: [...heads, el("span", { class: "l" }, "options")], rows: shown.map(words), name: "best" }),
      ),
      shown.length < all.length && el("p", { class: "small faint" }, `${shown.length} of ${all.length} shown`),
    );
  };
  draw();
  return {
    within: (next) => {
      range = next;
      draw();
    },
    filter: (text) => {
      test = reader(text);
      draw();
    },
  };
}

/** The test of a text such as `tp=4 pp>2`; what cannot be read lets everything through. @param {string} text */
function reader(text) {
  const tests = [...text.matchAll(/(\w+)\s*(<=|>=|=|<|>)\s*([\d.]+)/g)].map(([, name, sign, value]) => {
    const key = { step: "step s", peak: "peak GiB", micro: "mbs" }[name] ?? name,
      against = Number(value);
    return (of) =>
      !(key in of)
        ? true
        : {
            "=": of[key] === against,
            "<": of[key] < against,
            ">": of[key] > against,
            "<=": of[key] <= against,
            ">=": of[key] >= against,
          }[sign];
  });
  return (of) => tests.every((each) => each(of));
}

/** The box of the filter. @param {{filter: (text: string) => void}} columns */
export const filtered = (columns) =>
  el(
    "div",
    { class: "tools" },
    el("label", { for: "filter" }, "filter "),
    el("input", {
      id: "filter",
      placeholder: "tp=4 pp>2",
      size: 14,
      autocomplete: "off",
      oninput: (event) => columns.filter(event.target.value),
    }),
  );
