/** The plan: what to search, progress, the frontier, the best layouts, and why the first wins. */

import { Faults, ask, plan as search } from "./ask.js";
import { announce, el, fill, scrolling, table } from "./dom.js";
import { faultOf } from "./answer.js";
import { scatter } from "./frontier.js";
import { degrees, label } from "./labels.js";
import { best as bestTable, filtered } from "./layouts.js";
import { both, counted, duration, figure, gib, percent, short, whole } from "./numbers.js";
import { ofLayout } from "./words.js";

const RANGES = [["tp", "1..8"], ["pp", "1..16"], ["cp", "1,2"], ["ep", ""], ["vpp", ""], ["mbs", "1..4"]];
const LONG = 1000; // ms of searching after which a lean space is searched beside it
const SPACES = ["", "lean", "middle", "wide", "full"];

/**
 * The tab.
 * @param {HTMLElement} host
 * @param {{question: () => {words: any, config?: any}, bill: () => any, take: (words: any) => void, searched: (narrowed: any) => void}} on
 */
export function planView(host, on) {
  const narrow = form(), go = el("button", { type: "submit", class: "main" }, "Search"), progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "how much is searched" });
  const status = el("p", { class: "status", role: "status" }), result = el("div");
  const asked = el("form", { class: "space card", "aria-label": "the space" }, el("header", {}, el("h2", {}, "What is searched")),
    el("div", { class: "pairs" }, narrow.fields), el("p", { class: "row-of-buttons" }, go, progress), status);
  fill(host, asked, result);
  let running = null, shown = null, done = false;

  async function run() {
    const { words, config } = on.question(), narrowed = narrow.words(), body = { words: { ...words, ...narrowed }, config };
    running = new AbortController();
    [shown, done] = [null, false];
    const signal = running.signal, began = performance.now();
    go.textContent = "Stop";
    on.searched(narrowed);
    let last = null;
    const tell = setInterval(() => tick(began, last), 250);
    try {
      const lean = narrowed.space ? 0 : setTimeout(() => first(body, signal), LONG);
      shown = await search(body, (event) => { last = event; }, signal).finally(() => clearTimeout(lean));
      [done, last] = [true, null];
      show(shown);
      status.textContent = `Searched in ${duration((performance.now() - began) / 1000)}.`;
      announce(`best layout ${degrees(shown.best[0]?.layout ?? {}, shown.best[0]?.bill.derived.dp ?? 0)}`, 0);
    } catch (error) {
      if (error.name === "AbortError") stopped(last);
      else fill(result, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
    } finally {
      clearInterval(tell);
      [running, progress.hidden, go.textContent] = [null, true, "Search"];
    }
  }

  /** Where it takes long, a lean space beside it: a good layout stands there soon, and stays where the search is stopped. */
  async function first(body, signal) {
    try {
      const lean = await search({ ...body, words: { ...body.words, space: "lean" } }, () => {}, signal);
      if (done || !lean.best.length) return;
      shown = lean;
      show(lean);
    } catch { /* stopped, or refused: then the search itself says why */ }
  }

  function tick(began, last) {
    progress.hidden = performance.now() - began < 500;
    if (!last) return;
    if (last.share === null || last.share === undefined) progress.removeAttribute("value");
    else progress.value = last.share;
    const seconds = last.best?.seconds;
    status.textContent = [
      `${short(last.done)}${last.of ? ` of ${short(last.of)}` : ""} layouts counted`, seconds ? `best so far ${duration(seconds)} a step` : "",
      last.seconds_left ? `about ${duration(last.seconds_left, 2)} left` : "",
    ].filter(Boolean).join(", ");
  }

  function stopped(last) {
    const least = shown?.best[0]?.bill.step.seconds, found = last?.best?.seconds;
    status.textContent = "Stopped. " + (shown ? "The best layouts so far stand below: those of the lean space, which was searched beside it." : "Nothing was found yet.")
      + (found && (!least || found < least) ? ` One of ${duration(found)} a step was found after it; its layout is known when the search ends.` : "");
    announce(status.textContent, 0);
  }

  function show(plan) {
    fill(result, plan.best.length ? answered(plan, on) : nothing(plan));
  }

  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else run();
  });
  return { run: () => { if (!running) run(); }, narrow: narrow.write, empty: () => !shown, clear: () => { shown = null; running?.abort(); fill(result); } };
}

/** The limits of the space. */
function form() {
  const field = (name, placeholder, hint = "") => {
    const input = el("input", { id: `p-${name}`, placeholder: placeholder || "all", autocomplete: "off", spellcheck: "false" });
    return [input, el("div", { class: "field" }, el("label", { for: input.id, title: hint || null }, name === "mbs" ? "micro-batch" : name), input)];
  };
  const inputs = RANGES.map(([name]) => [name, ...field(name, "all", "1,2,4 keeps these, 1..8 those inside")]);
  const space = el("select", { id: "p-space" }, SPACES.map((each) => el("option", { value: each }, each || "wide, the usual")));
  const headroom = field("headroom", "0"), more = ["no-offload", "no-recompute"].map((name) => [name, el("input", { type: "checkbox", id: `p-${name}` })]);
  const fields = [
    inputs.map(([, , made]) => made), headroom[1], el("div", { class: "field" }, el("label", { for: "p-space" }, "space"), space),
    more.map(([name, box]) => el("div", { class: "field tick-box" }, box, el("label", { for: box.id }, name.replace("-", " ")))),
  ];
  const texts = [...inputs, ["headroom", headroom[0]], ["space", space]];
  return {
    fields,
    words: () => Object.fromEntries([...texts.map(([name, input]) => [name, input.value.trim()]), ...more.map(([name, box]) => [name, box.checked])].filter(([, value]) => value)),
    write: (words) => {
      for (const [name, input] of texts) input.value = words[name] ?? "";
      for (const [name, box] of more) box.checked = Boolean(words[name]);
    },
  };
}

const nothing = (plan) => [
  el("p", { class: "line first" }, el("b", { class: "key", "data-verdict": "does_not_fit" }, "NOTHING FITS"), " ",
    plan.smallest ? `the smallest layout needs ${both(plan.smallest.bill?.memory.peak_bytes ?? plan.smallest.peak_bytes)}` : "no layout of the space is legal and fits"),
  el("section", { class: "card" }, rejected(plan)),
];

/** Everything about a plan. */
function answered(plan, on) {
  const first = plan.best[0], bill = first.bill, picture = el("div"), list = el("div");
  const columns = bestTable(list, plan.best, (one) => on.take(ofLayout(one.layout)));
  const usable = bill.memory.usable_bytes, draw = scatter(picture, { take: (point) => point.layout && on.take(ofLayout(point.layout)), brush: columns.within });
  queueMicrotask(() => draw(pointsOf(plan, on.bill()), usable));
  return [
    el("section", { class: "answer best", "aria-label": "the best layout" }, headline(plan, bill), el("p", { class: "suggestions" }, el("button", { type: "button", class: "apply", onclick: () => on.take(ofLayout(first.layout)) }, "Take it to the bill"))),
    el("section", { class: "card" }, el("header", {}, el("h2", {}, `Frontier: ${counted(plan.frontier.length, "layout")} that no other beats on both`)), picture),
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "The best"), filtered(columns)), list),
    el("div", { class: "two" },
      el("section", { class: "card" }, el("header", {}, el("h2", {}, "Why")), reasons(plan)),
      el("section", { class: "card" }, el("header", {}, el("h2", {}, "Rejected")), rejected(plan))),
  ];
}

function headline(plan, bill) {
  const { step, memory } = bill, [low, high] = step.band_seconds, found = plan.search, fitting = found.legal - found.did_not_fit;
  const line = (key, ...said) => el("p", { class: "line" }, el("b", { class: "key" }, key), " ", el("span", {}, said));
  return [
    el("p", { class: "line first" }, el("b", { class: "key", "data-verdict": "fits" }, el("span", { class: "shape", "aria-hidden": "true" }, "\u2713"), "BEST"), " ", el("span", {}, degrees(bill.layout, bill.derived.dp))),
    line("STEP", `${duration(step.seconds)} (${duration(low)} to ${duration(high)})   ${short(step.tokens_per_second)} tokens/s   MFU ${percent(step.mfu)}`),
    line("MEMORY", `${both(memory.peak_bytes)} of ${both(memory.usable_bytes)} usable, ${gib(memory.usable_bytes - memory.peak_bytes)} free`),
    line(found.proved ? "PROVED" : "FOUND", `best of ${whole(found.legal)} legal layouts, ${whole(fitting)} of which fit; ${found.pruned ? `${whole(found.pruned)} passed over by bounds` : "every one counted"}, `
      + `of ${short(found.space)} combinations; ${duration(found.seconds)}`),
    close(plan),
  ];
}

/** Whether the first ones overlap within their bands. */
function close(plan) {
  const high = plan.best[0].bill.step.band_seconds[1], near = plan.best.filter((each) => each.bill.step.band_seconds[0] <= high).length;
  if (near < 2) return null;
  return el("p", { class: "line" }, el("b", { class: "key" }, "CLOSE"), " ", el("span", {}, `1 to ${near} overlap within their bands: run the first ones for 20 steps before choosing`));
}

/** @returns {import("./frontier.js").Point[]} */
function pointsOf(plan, now) {
  const point = (kind, layout, peak, seconds, words, fits) => ({ kind, layout, peak, seconds, words, fits });
  const of = (kind, bill, words) => point(kind, bill.layout, bill.memory.peak_bytes, bill.step.seconds, words ?? degrees(bill.layout, bill.derived.dp), bill.memory.verdict === "fits");
  return [
    ...plan.best.map((each) => of("best", each.bill)),
    ...plan.frontier.map((each) => point("frontier", each.layout, each.peak_bytes, each.seconds, degrees(each.layout, each.layout.dp_replicate * each.layout.dp_shard), each.fits)),
    ...plan.baselines.filter((each) => each.bill).map((each) => of("base", each.bill, each.name)),
    ...(now?.memory.verdict ? [of("now", now)] : []),
  ];
}

function reasons(plan) {
  const [first, second] = plan.best, made = [];
  if (second) {
    const differ = gaps(first.bill, second.bill);
    made.push(el("p", {}, `1 beats 2 (${degrees(second.layout, second.bill.derived.dp)}) by ${duration(second.bill.step.seconds - first.bill.step.seconds)}: ${differ.join(", ")}.`));
  }
  for (const base of plan.baselines.filter((each) => each.bill)) {
    const over = base.bill.memory.peak_bytes / base.bill.memory.usable_bytes;
    made.push(el("p", {}, `${base.name}: `, base.bill.memory.verdict === "fits" || base.bill.memory.verdict === "tight"
      ? `${duration(base.bill.step.seconds)}, ${figure(base.bill.step.seconds / first.bill.step.seconds, 4)} times as long` : `does not fit, ${gib(base.bill.memory.peak_bytes)}, ${figure(over)} times too much`));
  }
  const rows = (plan.worth ?? []).map((each) => [`${each.times === 2 ? "twice the" : `${percent(each.times - 1)} more`} ${each.resource}`, duration(each.seconds), `+${percent(each.gain)}`]);
  return [made, rows.length && scrolling("worth of more", table({ heads: ["what more would give", "step", "tokens/s"], rows }))];
}

/** By which parts the first is better, the largest first. */
function gaps(one, other) {
  const names = new Set([...one.step.items, ...other.step.items].map((item) => item.name));
  const of = (bill, name) => bill.step.items.find((item) => item.name === name)?.seconds ?? 0;
  return [...names].map((name) => [name, of(one, name) - of(other, name)]).filter(([, gap]) => Math.abs(gap) > 1e-4)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 4).map(([name, gap]) => `${label(name)} ${gap > 0 ? "+" : "\u2212"}${duration(Math.abs(gap))}`);
}

/** A rule in words, as soon as the server has said them. @param {string} code */
function named(code) {
  const place = el("span", {});
  ask("explain", { words: { quantity: code } }).then((page) => { place.textContent = page.what ?? ""; }, () => {});
  return place;
}

function rejected(plan) {
  const rows = [
    ...plan.rejected.map((each) => [el("button", { type: "button", class: "why", "data-why": each.rule }, each.rule), named(each.rule), whole(each.count)]),
    ["", "the same as another one", whole(plan.search.duplicates)], ["", "legal, and does not fit", whole(plan.search.did_not_fit)],
  ];
  return scrolling("rejected", table({ heads: ["rule", "", "combinations"], rows, left: 2 }));
}
