/** The difference of two layouts, item by item, the largest first, with bars from a common zero. */

import { copy, el, scrolling, svg, table } from "./dom.js";
import { AXES, LABELS } from "./labels.js";
import { GB, duration, figure, gib, percent, whole } from "./numbers.js";

const TITLES = {
  peak_bytes: "peak of the heaviest rank",
  step_seconds: "step",
  tokens_per_second: "tokens a second",
  mfu: "MFU",
  bubble_share: "idle share of the pipeline",
  bubble_seconds: "idle of the pipeline",
  unsharded_state_bytes: "undivided state",
};

/** How an item is written: text of a value in its unit. @param {string} unit */
const writer = (unit) =>
  ({ B: gib, s: (value) => duration(value, 4), share: percent, "token/s": whole })[unit] ??
  ((value) => figure(value, 4));

function titleOf(name) {
  const [part, of] = name.split(".");
  if (part === "traffic") return `${AXES[of] ?? of} traffic`;
  return TITLES[name] ?? LABELS[of ?? part] ?? name.replaceAll("_", " ");
}

/** Everything about two bills. @param {any} record of `compare` @param {any} one @param {any} other what was tried */
export function compared(record, one, other) {
  const groups = [
    ["Totals", (name) => !name.includes(".")],
    ["Memory of the heaviest rank", (name) => name.startsWith("memory.")],
    ["The step", (name) => name.startsWith("step.")],
    ["Traffic of a rank", (name) => name.startsWith("traffic.")],
  ];
  const markdown = el(
    "button",
    { type: "button", onclick: () => copy(markdown, asMarkdown(record, one, other)) },
    "Copy as Markdown",
  );
  const known = groups.filter(([, test]) => record.items.some((item) => test(item.name)));
  return [
    el("section", { class: "answer", "aria-label": "difference" }, verdict(record), inputs(one, other)),
    el(
      "div",
      { class: "two" },
      known.map(([title, test], at) =>
        el(
          "section",
          { class: "card" },
          el("header", {}, el("h2", {}, title), at === 0 && el("div", { class: "tools" }, markdown)),
          items(
            title,
            record.items.filter((item) => test(item.name)),
          ),
        ),
      ),
    ),
  ];
}

/** The first line: which is faster, by how much, and what it costs. */
function verdict({ a, b }) {
  const times = b.step.tokens_per_second / a.step.tokens_per_second,
    better = times >= 1 ? "B" : "A",
    ratio = times >= 1 ? times : 1 / times;
  const more = (b.memory.peak_bytes - a.memory.peak_bytes) * (times >= 1 ? 1 : -1),
    less = Math.abs(b.step.seconds - a.step.seconds);
  const same = Math.abs(times - 1) < 5e-4;
  return el(
    "p",
    { class: "line first" },
    el("b", { class: "key" }, same ? "AS FAST" : `${better} FASTER`),
    " ",
    el(
      "span",
      {},
      same ? "A and B" : `${figure(ratio, 4)} times the tokens a second, ${duration(less)} less a step`,
      Math.abs(more) < 2 ** 20
        ? "; it holds as much memory"
        : `; it holds ${gib(Math.abs(more))} ${more > 0 ? "more" : "less"}`,
    ),
  );
}

/** The words that differ. */
function inputs(one, other) {
  const names = [...new Set([...Object.keys(one.words), ...Object.keys(other.words)])].filter(
    (name) => one.words[name] !== other.words[name],
  );
  const said = (words, name) => (words[name] === undefined ? "as assumed" : words[name] === true ? "on" : words[name]);
  if (!names.length)
    return el(
      "p",
      { class: "line" },
      el("b", { class: "key" }, "INPUTS"),
      " the words are the same; the models differ",
    );
  return el(
    "p",
    { class: "line" },
    el("b", { class: "key" }, "INPUTS"),
    " ",
    el(
      "span",
      {},
      names.map((name) => `${name} ${said(one.words, name)} \u2192 ${said(other.words, name)}`).join(";  "),
    ),
  );
}

/** A table of items with bars from a common zero. */
function items(title, found) {
  const most = Math.max(...found.map((item) => (item.unit === found[0].unit ? Math.abs(item.difference) : 0))) || 1;
  const sorted = title === "Totals" ? found : found.toSorted((x, y) => Math.abs(y.difference) - Math.abs(x.difference));
  const rows = sorted.map((item) => {
    const text = item.name.startsWith("traffic.") ? (value) => `${figure(value / GB, 4)} GB` : writer(item.unit),
      more = item.difference > 0;
    const gap = item.difference === 0 ? "same" : `${more ? "+" : "\u2212"}${text(Math.abs(item.difference))}`;
    return [
      titleOf(item.name),
      text(item.a),
      text(item.b),
      gap,
      item.ratio === null ? "" : item.ratio.toFixed(3),
      ...(title === "Totals" ? [] : [bar(item.difference / most)]),
    ];
  });
  return scrolling(
    title,
    table({ heads: ["", "A", "B", "B \u2212 A", "B / A", ...(title === "Totals" ? [] : [""])], rows, name: "items" }),
  );
}

/** A bar left or right of the middle: less, or more. @param {number} share -1 to 1 */
const bar = (share) =>
  svg(
    "svg",
    { viewBox: "-50 0 100 12", width: 100, height: 12, "aria-hidden": "true" },
    svg("path", {
      d: `M0 0v12M0 2h${(48 * share).toFixed(1)}v8h${(-48 * share).toFixed(1)}z`,
      class: share > 0 ? "bar-more" : "bar-less",
    }),
  );

function asMarkdown(record, one, other) {
  const rows = record.items.map((item) => {
    const text = writer(item.unit);
    const cells = [titleOf(item.name), text(item.a), text(item.b), text(item.difference), item.ratio?.toFixed(3) ?? ""];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    `A: ${one.name}`,
    `B: ${other.name}`,
    "",
    "| | A | B | B - A | B / A |",
    "| --- | ---: | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}
