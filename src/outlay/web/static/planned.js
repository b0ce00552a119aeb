/** What a search found: the frontier, the best layouts, why the first wins, and what was rejected. */

import { ask } from "./ask.js";
import { tableTools } from "./bars.js";
import { el, scrolling, table } from "./dom.js";
import { scatter } from "./frontier.js";
import { SHAPES, degrees, label, options } from "./labels.js";
import { best as bestTable, filtered } from "./layouts.js";
import { GIB, both, counted, duration, figure, gib, percent, short, whole } from "./numbers.js";
import { ofLayout } from "./words.js";

const line = (key, ...said) => el("p", { class: "line" }, el("b", { class: "key" }, key), " ", el("span", {}, said));

/**
 * The best layout of a search that goes on, or was stopped.
 * @param {any} best of the newest event of progress @param {(words: any) => void} take
 */
export function soFar(best, take) {
  const { layout, verdict } = best,
    fits = verdict === "fits";
  return [
    el(
      "section",
      { class: "answer best so-far", "aria-label": "the best layout so far" },
      el(
        "p",
        { class: "line first" },
        el(
          "b",
          { class: "key", "data-verdict": verdict },
          el("span", { class: "shape", "aria-hidden": "true" }, SHAPES[verdict]),
          fits ? "BEST SO FAR" : "NONE FITS SO FAR",
        ),
        " ",
        el("span", {}, fits ? "" : "the smallest: ", degrees(layout, layout.dp_replicate * layout.dp_shard)),
      ),
      line("STEP", duration(best.seconds)),
      line("MEMORY", both(best.peak_bytes)),
      line("OPTIONS", options(layout)),
      el(
        "p",
        { class: "suggestions" },
        el("button", { type: "button", class: "apply", onclick: () => take(ofLayout(layout)) }, "Take it to the bill"),
      ),
    ),
  ];
}

/** Where no layout of the space fits. @param {any} plan */
export const nothing = (plan) => [
  el(
    "p",
    { class: "line first" },
    el("b", { class: "key", "data-verdict": "does_not_fit" }, "NOTHING FITS"),
    " ",
    plan.smallest
      ? `the smallest layout needs ${both(plan.smallest.bill?.memory.peak_bytes ?? plan.smallest.peak_bytes)}`
      : "no layout of the space is legal and fits",
  ),
  el("section", { class: "card" }, rejected(plan)),
];

/** Everything about a plan. @param {any} plan @param {{bill: () => any, take: (words: any) => void}} on */
export function answered(plan, on) {
  const first = plan.best[0],
    bill = first.bill,
    picture = el("div"),
    list = el("div");
  const columns = bestTable(list, plan.best, (one) => on.take(ofLayout(one.layout)));
  const usable = bill.memory.usable_bytes,
    draw = scatter(picture, {
      take: (point) => point.layout && on.take(ofLayout(point.layout)),
      brush: columns.within,
    });
  queueMicrotask(() => {
    draw(pointsOf(plan, on.bill()), usable);
    tableTools("frontier", picture, "frontier", () => frontierTable(plan));
  });
  return [
    el(
      "section",
      { class: "answer best", "aria-label": "the best layout" },
      headline(plan, bill),
      el(
        "p",
        { class: "suggestions" },
        el(
          "button",
          { type: "button", class: "apply", onclick: () => on.take(ofLayout(first.layout)) },
          "Take it to the bill",
        ),
      ),
    ),
    el(
      "section",
      { class: "card" },
      el(
        "header",
        {},
        el("h2", {}, `Frontier: ${counted(plan.frontier.length, "layout")} that no other beats on both`),
        el("div", { class: "tools", "data-tools": "frontier" }),
      ),
      picture,
    ),
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "The best"), filtered(columns)), list),
    el(
      "div",
      { class: "two" },
      el("section", { class: "card" }, el("header", {}, el("h2", {}, "Why")), reasons(plan)),
      el("section", { class: "card" }, el("header", {}, el("h2", {}, "Rejected")), rejected(plan)),
    ),
  ];
}

function headline(plan, bill) {
  const { step, memory } = bill,
    [low, high] = step.band_seconds,
    found = plan.search,
    fitting = found.legal - found.did_not_fit;
  return [
    el(
      "p",
      { class: "line first" },
      el(
        "b",
        { class: "key", "data-verdict": "fits" },
        el("span", { class: "shape", "aria-hidden": "true" }, "\u2713"),
        "BEST",
      ),
      " ",
      el("span", {}, degrees(bill.layout, bill.derived.dp)),
    ),
    line(
      "STEP",
      `${duration(step.seconds)} (${duration(low)} to ${duration(high)})   `,
      `${short(step.tokens_per_second)} tokens/s   MFU ${percent(step.mfu)}`,
    ),
    line(
      "MEMORY",
      `${both(memory.peak_bytes)} of ${both(memory.usable_bytes)} usable, `,
      `${gib(memory.usable_bytes - memory.peak_bytes)} free`,
    ),
    line(
      found.proved ? "PROVED" : "FOUND",
      `best of ${whole(found.legal)} legal layouts, ${whole(fitting)} of which fit; ` +
        `${found.pruned ? `${whole(found.pruned)} passed over by bounds` : "every one counted"}, ` +
        `of ${short(found.space)} combinations; ${duration(found.seconds)}`,
    ),
    close(plan),
  ];
}

/** Whether the first ones overlap within their bands. */
function close(plan) {
  const high = plan.best[0].bill.step.band_seconds[1],
    near = plan.best.filter((each) => each.bill.step.band_seconds[0] <= high).length;
  if (near < 2) return null;
  return line("CLOSE", `1 to ${near} overlap within their bands: run the first ones for 20 steps before choosing`);
}

/** @returns {import("./frontier.js").Point[]} */
function pointsOf(plan, now) {
  const point = (kind, layout, peak, seconds, words, fits) => ({ kind, layout, peak, seconds, words, fits });
  const of = (kind, bill, words) =>
    point(
      kind,
      bill.layout,
      bill.memory.peak_bytes,
      bill.step.seconds,
      words ?? degrees(bill.layout, bill.derived.dp),
      bill.memory.verdict === "fits",
    );
  return [
    ...plan.best.map((each) => of("best", each.bill)),
    ...plan.frontier.map((each) =>
      point(
        "frontier",
        each.layout,
        each.peak_bytes,
        each.seconds,
        degrees(each.layout, each.layout.dp_replicate * each.layout.dp_shard),
        each.fits,
      ),
    ),
    ...plan.baselines.filter((each) => each.bill).map((each) => of("base", each.bill, each.name)),
    ...(now?.memory.verdict ? [of("now", now)] : []),
  ];
}

function reasons(plan) {
  const [first, second] = plan.best,
    made = [];
  if (second) {
    const differ = gaps(first.bill, second.bill);
    made.push(
      el(
        "p",
        {},
        `1 beats 2 (${degrees(second.layout, second.bill.derived.dp)}) by `,
        `${duration(second.bill.step.seconds - first.bill.step.seconds)}: ${differ.join(", ")}.`,
      ),
    );
  }
  for (const base of plan.baselines.filter((each) => each.bill)) {
    const seconds = base.bill.step.seconds;
    const over = base.bill.memory.peak_bytes / base.bill.memory.usable_bytes;
    made.push(
      el(
        "p",
        {},
        `${base.name}: `,
        base.bill.memory.verdict === "fits" || base.bill.memory.verdict === "tight"
          ? `${duration(seconds)}, ${figure(seconds / first.bill.step.seconds, 4)} times as long`
          : `does not fit, ${gib(base.bill.memory.peak_bytes)}, ${figure(over)} times too much`,
      ),
    );
  }
  const rows = (plan.worth ?? []).map((each) => [
    `${each.times === 2 ? "twice the" : `${percent(each.times - 1)} more`} ${each.resource}`,
    duration(each.seconds),
    `+${percent(each.gain)}`,
  ]);
  return [
    made,
    rows.length > 0 && scrolling("worth of more", table({ heads: ["what more would give", "step", "tokens/s"], rows })),
  ];
}

/** By which parts the first is better, the largest first. */
function gaps(one, other) {
  const names = new Set([...one.step.items, ...other.step.items].map((item) => item.name));
  const of = (bill, name) => bill.step.items.find((item) => item.name === name)?.seconds ?? 0;
  return [...names]
    .map((name) => [name, of(one, name) - of(other, name)])
    .filter(([, gap]) => Math.abs(gap) > 1e-4)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
    .slice(0, 4)
    .map(([name, gap]) => `${label(name)} ${gap > 0 ? "+" : "\u2212"}${duration(Math.abs(gap))}`);
}

/** A rule in words, as soon as the server has said them. @param {string} code */
function named(code) {
  const place = el("span", {});
  ask("explain", { words: { quantity: code } }).then(
    (page) => {
      place.textContent = page.what ?? "";
    },
    () => {},
  );
  return place;
}

function rejected(plan) {
  const rows = [
    ...plan.rejected.map((each) => [
      el("button", { type: "button", class: "why", "data-why": each.rule }, each.rule),
      named(each.rule),
      whole(each.count),
    ]),
    ["", "the same as another one", whole(plan.search.duplicates)],
    ["", "legal, and does not fit", whole(plan.search.did_not_fit)],
  ];
  return scrolling("rejected", table({ heads: ["rule", "", "combinations"], rows, left: 2 }));
}

/** The points of the frontier as a table. */
function frontierTable(plan) {
  const heads = ["layout", "peak GiB", "step s", "fits for sure"];
  const rows = plan.frontier.map(({ layout, peak_bytes: peak, seconds, fits }) => [
    `${degrees(layout, layout.dp_replicate * layout.dp_shard)}`,
    figure(peak / GIB, 4),
    figure(seconds, 4),
    fits ? "yes" : "no",
  ]);
  return { heads, rows, element: table({ heads, rows }) };
}
