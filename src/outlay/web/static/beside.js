/** What stands beside an answer: suggestions to press, and what was assumed and is counted. */

import { el, fill } from "./dom.js";
import { gib, duration } from "./numbers.js";

/** Buttons that apply a change: the change, the time it gives, the memory it costs.
 * @param {HTMLElement} host @param {any} bill @param {any[]} advice */
export function advised(host, bill, advice) {
  const signed = (value, text) => `${value >= 0 ? "+" : "\u2212"}${text(Math.abs(value))}`;
  const fits = bill.memory.verdict === "fits";
  fill(
    host,
    advice.length > 0 && el("span", { class: "key" }, fits ? "FASTER" : "TO FIT"),
    advice.map((each) => {
      const time = each.seconds - bill.step.seconds,
        memory = each.peak_bytes - bill.memory.peak_bytes;
      const said = fits
        ? `${signed(time, duration)}, ${signed(memory, gib)}`
        : `${duration(each.seconds)} a step, ${gib(each.peak_bytes)}`;
      return el(
        "button",
        { type: "button", class: "apply", "data-flags": each.flag, title: each.change },
        el("b", {}, each.flag),
        ` ${said}`,
      );
    }),
  );
}

/** Assumptions and conventions. @param {any} bill */
export const notes = (bill) => [
  el("h3", {}, "Assumed"),
  el(
    "ul",
    {},
    bill.assumptions.map((each) => el("li", {}, each)),
  ),
  el("h3", {}, "Counted so"),
  el(
    "dl",
    { class: "conventions" },
    Object.entries(bill.conventions).flatMap(([name, text]) => [
      el("dt", {}, name.replaceAll("_", " ")),
      el("dd", {}, text),
    ]),
  ),
];
