/** The answer in five lines, in the words of the terminal; each figure in them can be asked where it comes from. */

import { el, fill, why } from "./dom.js";
import { NOT_LEGAL, SHAPES, VERDICTS, label, memoryQuantity, stepQuantity } from "./labels.js";
import { GIB, both, counted, duration, figure, general, gib, percent, short, whole } from "./numbers.js";

const CLOSE = 0.9; // two terms within 10 % of each other are both named

/** The first word of an answer. @param {any} bill */
export const verdict = (bill) => (bill.memory.verdict === null ? NOT_LEGAL : VERDICTS[bill.memory.verdict]);

const sum = (items, key) => items.reduce((total, item) => total + item[key], 0);

/** Both ends of the peak: the parts' bands added. @param {any} memory */
export const peakBand = (memory) => [sum(memory.items, "low"), sum(memory.items, "high")];

const held = (memory) => [why("memory", both(memory.peak_bytes)), ` of ${both(memory.usable_bytes)} usable`];

const worst = (bill) =>
  bill.cluster.ranks > 1
    ? `rank ${bill.memory.worst_rank.rank} is the heaviest: ${bill.memory.worst_rank.why}`
    : "one rank";

function headline(bill, where) {
  const memory = bill.memory,
    [low, high] = peakBand(memory);
  const band = `between ${figure(low / GIB)} and ${figure(high / GIB)} GiB`;
  if (memory.verdict === "fits") {
    return [...held(memory), `, ${gib(memory.usable_bytes - memory.peak_bytes)} free; ${band}; ${worst(bill)}`];
  }
  if (memory.verdict === "tight")
    return [...held(memory), `; what is usable lies ${band}, so it may run out; ${worst(bill)}`];
  if (memory.verdict === "does_not_fit") {
    return [
      ...held(memory),
      `; ${gib(low - memory.usable_bytes)} too much even at the lower end; ${band}; ${worst(bill)}`,
    ];
  }
  return memory.verdict === "impossible" ? impossible(bill) : illegal(bill, where);
}

function impossible(bill) {
  const memory = bill.memory,
    ranks = bill.cluster.ranks;
  if (bill.binds.item !== "state" || memory.usable_bytes <= 0) {
    return [`nothing of ${both(memory.capacity_bytes)} is left: --reserved takes ${both(bill.job.reserved_bytes)}`];
  }
  const factor = memory.impossible_factor ?? memory.unsharded_state_bytes / ranks / memory.usable_bytes;
  return [
    `on ${counted(ranks, "card")}: the state alone is `,
    why("memory", both(factor * memory.usable_bytes)),
    ` a card, of ${both(memory.usable_bytes)} usable: ${figure(factor)} times too much.`,
    " Recompute and micro-batch do not touch state. State fits from ",
    `${counted(Math.ceil(factor * ranks), "card")} on, or with offload`,
  ];
}

function illegal(bill, where) {
  const memory = bill.memory,
    count = bill.violations.length,
    over = memory.peak_bytes > memory.usable_bytes;
  return [
    `${counted(count, "rule")} ${count > 1 ? "are" : "is"} broken, ${where}. Figures are of the layout as it is`,
    " written: ",
    why("memory", both(memory.peak_bytes)),
    ` on rank ${memory.worst_rank.rank}, ${over ? "more than" : "of"} ${both(memory.usable_bytes)} usable`,
  ];
}

function stepLine(bill) {
  const step = bill.step,
    [low, high] = step.band_seconds;
  const mfu = step.mfu === null ? "none" : percent(step.mfu);
  const again = step.hfu > 1.0005 * step.mfu ? `   HFU ${percent(step.hfu)}` : "";
  return [
    why("step", duration(step.seconds)),
    ` (${duration(low)} to ${duration(high)})   ${short(step.tokens_per_second)} tokens/s`,
    `   ${whole(step.tokens_per_second_per_device)} a card   MFU ${mfu}${again}`,
  ];
}

function idleLine(bill) {
  const bubble = bill.bubble;
  if (bill.layout.pp === 1) return ["0 % = 0 s: no pipeline"];
  const idle = bubble.slots - bubble.useful_slots / bill.layout.pp;
  return [
    why("bubble", `${percent(bubble.share)} = ${duration(bubble.seconds)}`),
    ` a step: pipeline fill and drain, ${general(idle)} of ${general(bubble.slots)} slots`,
  ];
}

function bindsLine(bill) {
  const state = both(bill.memory.unsharded_state_bytes);
  if (bill.memory.verdict === "impossible") return [`the state, ${state} over ${counted(bill.cluster.ranks, "card")}`];
  const memory = bill.binds.term === "memory",
    key = memory ? "bytes" : "seconds";
  const total = memory ? bill.memory.peak_bytes : bill.step.seconds,
    words = memory ? gib : duration;
  const items = [...(memory ? bill.memory : bill.step).items].sort((a, b) => b[key] - a[key]);
  const leading = items.slice(0, 2).filter((item) => item[key] >= CLOSE * items[0][key]);
  const said = leading.map((item) =>
    why(
      (memory ? memoryQuantity : stepQuantity)(item.name),
      `${label(item.name)} ${words(item[key])} (${percent(item[key] / total)})`,
    ),
  );
  return [...said.flatMap((each, at) => (at ? [" and ", each] : [each])), `, of ${words(total)}`];
}

function runLine(bill) {
  const run = bill.run,
    days = (seconds) => figure(seconds / 86400);
  if (!run) return [];
  const [low, high] = run.band_seconds,
    perStep = bill.job.global_batch * bill.job.sequence_length;
  const paid = run.dollars === null ? "" : `, ${short(run.dollars)} USD`;
  return [
    line(
      "RUN",
      `${short(run.tokens)} tokens: ${whole(run.steps)} steps of ${short(perStep)} tokens, ${days(run.seconds)} days`,
      ` (${days(low)} to ${days(high)}), ${short(run.accelerator_hours)} card-hours${paid}`,
    ),
  ];
}

/** One line of the answer. @param {string} key @param {...any} said */
const line = (key, ...said) => el("p", { class: "line" }, el("b", { class: "key" }, key), " ", el("span", {}, said));

/**
 * The lines of a bill, without its suggestions.
 * @param {any} bill
 * @param {string} [where] the broken rules of it stand
 */
export function lines(bill, where = "listed below") {
  const state = bill.memory.verdict ?? "";
  const first = el("b", { class: "key", "data-verdict": state || "not_legal" });
  fill(first, el("span", { "aria-hidden": "true", class: "shape" }, SHAPES[state]), verdict(bill));
  return [
    el("p", { class: "line first" }, first, " ", el("span", {}, headline(bill, where))),
    line("STEP", stepLine(bill)),
    ...runLine(bill),
    line("IDLE", idleLine(bill)),
    line("BINDS", bindsLine(bill)),
  ];
}

/** The broken rules of a layout, each in its four parts. @param {any[]} violations */
export function broken(violations) {
  const nearest = [...new Set(violations.flatMap((each) => each.nearest))];
  return [
    ...violations.map((each) => faultOf(each)),
    nearest.length > 0 &&
      el(
        "p",
        { class: "nearest" },
        "Nearest legal layouts: ",
        nearest.map((flags) => el("button", { type: "button", class: "apply", "data-flags": flags }, flags)),
      ),
  ];
}

/** Rule, got and fix of a fault, those that it has. @param {any} fault */
export const faultParts = (fault) =>
  el(
    "dl",
    {},
    ["rule", "got", "fix"]
      .filter((name) => fault[name])
      .map((name) => [el("dt", {}, name), el("dd", {}, fault[name])]),
  );

/** A fault in its four parts. @param {any} fault */
export const faultOf = (fault) =>
  el(
    "div",
    { class: "faults" },
    el("p", {}, el("b", {}, fault.what), " ", fault.code && why(fault.code, el("code", {}, fault.code))),
    faultParts(fault),
  );
