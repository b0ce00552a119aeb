/** Two layouts item by item, the largest difference first; and what was tried in this window. */

import { Faults, ask } from "./ask.js";
import { faultOf } from "./answer.js";
import { copy, el, fill, scrolling, table } from "./dom.js";
import { Diagram } from "./diagram.js";
import { AXES, LABELS, VERDICTS } from "./labels.js";
import { GB, duration, figure, gib, percent, whole } from "./numbers.js";
import * as tried from "./tried.js";

const TITLES = {
  peak_bytes: "peak of the heaviest rank", step_seconds: "step", tokens_per_second: "tokens a second", mfu: "MFU",
  bubble_share: "idle share of the pipeline", bubble_seconds: "idle of the pipeline", unsharded_state_bytes: "undivided state",
};

/**
 * The tab.
 * @param {HTMLElement} host
 * @param {{load: (one: import("./tried.js").Try) => void, draw: (words: any, config: any) => Promise<any>, asked: (a: any, b: any) => void}} on
 */
export function compareView(host, on) {
  const a = el("select", { id: "side-a" }), b = el("select", { id: "side-b" }), result = el("div"), history = el("div");
  const side = (name, select) => el("div", { class: "field side" }, el("label", { for: select.id }, name), select);
  fill(host,
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "Two layouts"), el("div", { class: "tools" }, el("button", { type: "button", onclick: swap }, "Swap"))),
      el("div", { class: "sides" }, side("A", a), side("B", b))),
    result,
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "Tried in this window")), history));
  let shown = "", pending = null;

  function swap() { [a.value, b.value] = [b.value, a.value]; run(); }

  tried.watch((all) => {
    const options = () => all.map((one) => el("option", { value: one.id }, `${outcome(one)}: ${one.name}${several(all) ? `; ${one.subject}` : ""}`)), [left, right] = [a.value, b.value];
    fill(a, options());
    fill(b, options());
    a.value = all.some((one) => one.id === left) ? left : all[1]?.id ?? all[0]?.id ?? "";
    b.value = all.some((one) => one.id === right) && right !== a.value ? right : all[0]?.id ?? "";
    fill(history, strip(all, on.load));
  });

  async function run() {
    const [one, other] = [tried.find(a.value), tried.find(b.value)], key = `${a.value} ${b.value}`;
    if (!one || !other || one.id === other.id) {
      shown = "";
      fill(result, el("p", { class: "card hint" }, "Two layouts are needed: change something on the Bill, and it stands here."));
      return;
    }
    if (key === shown) return;
    pending?.abort();
    pending = new AbortController();
    on.asked(one, other);
    try {
      const record = await ask("compare", { words: one.words, config: one.config ?? undefined, other: { words: other.words, config: other.config ?? undefined } }, pending.signal);
      shown = key;
      fill(result, compared(record, one, other));
      diagrams(result, one, other, on.draw);
    } catch (error) {
      if (error.name !== "AbortError") fill(result, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
    }
  }
  for (const select of [a, b]) select.addEventListener("change", run);
  return { run, latest: () => { const all = [...a.options]; if (all.length > 1) { b.value = all[0].value; a.value = all[1].value; } run(); } };
}

/** Whether the list holds more than one model or cluster. */
const several = (all) => all.some((one) => one.subject !== all[0].subject);
const outcome = (one) => `${VERDICTS[one.verdict] ?? "NOT LEGAL"}, ${duration(one.seconds)}, ${gib(one.peak)}`;

/** What was tried, newest first. @param {import("./tried.js").Try[]} all @param {(one: any) => void} load */
function strip(all, load) {
  if (!all.length) return el("p", { class: "hint" }, "Nothing yet.");
  const rows = all.map((one) => [
    [one.name, el("br"), el("span", { class: "small faint" }, one.subject)], VERDICTS[one.verdict] ?? "NOT LEGAL", duration(one.seconds), gib(one.peak), percent(one.idle),
    el("span", { class: "row-of-buttons" }, el("button", { type: "button", onclick: () => load(one), "aria-label": `load ${one.name}` }, "Load"),
      el("button", { type: "button", "aria-pressed": String(Boolean(one.pinned)), onclick: () => tried.pin(one.id), "aria-label": `pin ${one.name}` }, one.pinned ? "Unpin" : "Pin"),
      el("button", { type: "button", onclick: () => tried.forget(one.id), "aria-label": `remove ${one.name}` }, "Remove")),
  ]);
  return scrolling("tried", table({ heads: ["layout", "verdict", "step", "peak", "idle", ""], rows, left: 2, name: "tried" }));
}

/** How an item is written: text of a value in its unit. @param {string} unit */
const writer = (unit) => ({ B: gib, s: (value) => duration(value, 4), share: percent, "token/s": whole })[unit] ?? ((value) => figure(value, 4));

function titleOf(name) {
  const [part, of] = name.split(".");
  if (part === "traffic") return `${AXES[of] ?? of} traffic`;
  return TITLES[name] ?? LABELS[of ?? part] ?? name.replaceAll("_", " ");
}

function compared(record, one, other) {
  const groups = [["Totals", (name) => !name.includes(".")], ["Memory of the heaviest rank", (name) => name.startsWith("memory.")], ["The step", (name) => name.startsWith("step.")], ["Traffic of a rank", (name) => name.startsWith("traffic.")]];
  const markdown = el("button", { type: "button", onclick: () => copy(markdown, asMarkdown(record, one, other)) }, "Copy as Markdown");
  const known = groups.filter(([, test]) => record.items.some((item) => test(item.name)));
  return [
    el("section", { class: "answer", "aria-label": "difference" }, verdict(record), inputs(one, other)),
    el("div", { class: "two" }, known.map(([title, test], at) => el("section", { class: "card" }, el("header", {}, el("h2", {}, title), at === 0 && el("div", { class: "tools" }, markdown)), items(title, record.items.filter((item) => test(item.name)))))),
  ];
}

/** The first line: which is faster, by how much, and what it costs. */
function verdict({ a, b }) {
  const times = b.step.tokens_per_second / a.step.tokens_per_second, better = times >= 1 ? "B" : "A", ratio = times >= 1 ? times : 1 / times;
  const more = (b.memory.peak_bytes - a.memory.peak_bytes) * (times >= 1 ? 1 : -1), less = Math.abs(b.step.seconds - a.step.seconds);
  const same = Math.abs(times - 1) < 5e-4;
  return el("p", { class: "line first" }, el("b", { class: "key" }, same ? "AS FAST" : `${better} FASTER`), " ", el("span", {}, same ? "A and B" : `${figure(ratio, 4)} times the tokens a second, ${duration(less)} less a step`,
    Math.abs(more) < 2 ** 20 ? "; it holds as much memory" : `; it holds ${gib(Math.abs(more))} ${more > 0 ? "more" : "less"}`));
}

/** The words that differ. */
function inputs(one, other) {
  const names = [...new Set([...Object.keys(one.words), ...Object.keys(other.words)])].filter((name) => one.words[name] !== other.words[name]);
  const said = (words, name) => (words[name] === undefined ? "as assumed" : words[name] === true ? "on" : words[name]);
  if (!names.length) return el("p", { class: "line" }, el("b", { class: "key" }, "INPUTS"), " the words are the same; the models differ");
  return el("p", { class: "line" }, el("b", { class: "key" }, "INPUTS"), " ", el("span", {}, names.map((name) => `${name} ${said(one.words, name)} \u2192 ${said(other.words, name)}`).join(";  ")));
}

/** A table of items with bars from a common zero. */
function items(title, found) {
  const most = Math.max(...found.map((item) => (item.unit === found[0].unit ? Math.abs(item.difference) : 0))) || 1;
  const sorted = title === "Totals" ? found : found.toSorted((x, y) => Math.abs(y.difference) - Math.abs(x.difference));
  const rows = sorted.map((item) => {
    const text = item.name.startsWith("traffic.") ? (value) => `${figure(value / GB, 4)} GB` : writer(item.unit), more = item.difference > 0;
    const gap = item.difference === 0 ? "same" : `${more ? "+" : "\u2212"}${text(Math.abs(item.difference))}`;
    return [titleOf(item.name), text(item.a), text(item.b), gap, item.ratio === null ? "" : item.ratio.toFixed(3), ...(title === "Totals" ? [] : [bar(item.difference / most)])];
  });
  return scrolling(title, table({ heads: ["", "A", "B", "B \u2212 A", "B / A", ...(title === "Totals" ? [] : [""])], rows, name: "items" }));
}

/** A bar left or right of the middle: less, or more. @param {number} share -1 to 1 */
function bar(share) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), part = document.createElementNS(svg.namespaceURI, "path");
  for (const [name, value] of [["viewBox", "-50 0 100 12"], ["width", 100], ["height", 12], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
  part.setAttribute("d", `M0 0v12M0 2h${(48 * share).toFixed(1)}v8h${(-48 * share).toFixed(1)}z`);
  part.setAttribute("class", share > 0 ? "bar-more" : "bar-less");
  svg.append(part);
  return svg;
}

/** Both timing diagrams, one over the other, on one axis of time. */
async function diagrams(result, one, other, draw) {
  const both = await Promise.all([one, other].map((side) => draw(side.words, side.config).catch(() => null)));
  const shown = both.filter((each) => each?.operations && each.operations.rows.length > 1);
  if (!shown.length) return;
  const card = el("section", { class: "card" }, el("header", {}, el("h2", {}, "Timing diagrams, on one axis")));
  result.append(card);
  const longest = Math.max(...shown.map((each) => each.operations.makespan_s));
  both.forEach((each, at) => {
    if (!each?.operations) return;
    const place = el("div", { class: "pair-diagram" });
    card.append(el("h3", {}, `${"AB"[at]}: ${[one, other][at].name}`), place);
    new Diagram(place).show(each, longest);
  });
}

function asMarkdown(record, one, other) {
  const rows = record.items.map((item) => { const text = writer(item.unit); return `| ${titleOf(item.name)} | ${text(item.a)} | ${text(item.b)} | ${text(item.difference)} | ${item.ratio === null ? "" : item.ratio.toFixed(3)} |`; });
  return [`A: ${one.name}`, `B: ${other.name}`, "", "| | A | B | B - A | B / A |", "| --- | ---: | ---: | ---: | ---: |", ...rows].join("\n");
}
