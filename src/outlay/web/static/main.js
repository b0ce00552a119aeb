/** The page: one question, its answer on every tab, its address. */

import { Faults, ask } from "./ask.js";
import { broken, lines, verdict } from "./answer.js";
import { patterns } from "./bars.js";
import { checkView } from "./check.js";
import { compareView } from "./compare.js";
import { carried, kindOf, pack, unpack } from "./config.js";
import { Diagram } from "./diagram.js";
import { announce, byId, copy, el, fill } from "./dom.js";
import { chosenTheme, drops } from "./drop.js";
import { drawer } from "./explain.js";
import { showCommand, showExports } from "./export.js";
import { assume, blame, listen, typed, write } from "./form.js";
import { advised, notes } from "./beside.js";
import { degrees } from "./labels.js";
import { memoryView } from "./memory.js";
import { duration } from "./numbers.js";
import { planView } from "./plan.js";
import { stepView } from "./step.js";
import * as tried from "./tried.js";
import * as words from "./words.js";

const TABS = ["bill", "plan", "compare", "check"];
/** The question, and its last readable and legal answer. */
const state = { words: {}, config: null, packed: "", bill: null, legal: null, tab: "bill", narrowed: {}, asked: 0 };

patterns();
const question = () => ({ words: state.words, ...(state.config ? { config: state.config } : {}) });
const showMemory = memoryView(byId("memory")), showStep = stepView(byId("step"));
const diagram = new Diagram(byId("timeline"), "timeline");
const explain = drawer(question, (quantity) => words.line("explain", state.words, quantity));
const plans = planView(byId("plan"), {
  question: () => ({ ...question(), words: words.withoutLayout(state.words) }), bill: () => state.legal, take,
  searched: (narrowed) => { state.narrowed = narrowed; put(true); },
});
const compares = compareView(byId("compare"), { load: (one) => restore(one.words, one.config, true), draw, asked: () => {} });
const checks = checkView(byId("check"), { on: () => state.words.on ?? "" });

// --- the answer ------------------------------------------------------------------------------------------------------

let pending = null;

/** Ask for the bill of the words, and show it. @param {{change?: string, from?: any}} [about] what led to it */
async function count(about = {}) {
  pending?.abort();
  pending = new AbortController();
  const signal = pending.signal, slow = setTimeout(() => byId("answer").classList.add("waiting"), 100);
  try {
    const bill = await ask("count", question(), signal);
    if (bill.rows) return several(bill);
    show(bill, about);
    extras(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    refuse(error instanceof Faults ? error.faults : [{ code: "", what: String(error), rule: "", got: "", fix: "" }]);
  } finally {
    clearTimeout(slow);
    byId("answer").classList.remove("waiting");
  }
}

/** A bill: legal ones are remembered and drawn, a broken one stands over the last legal one. */
function show(bill, about = {}) {
  state.bill = bill;
  blame(bill.violations);
  const legal = !bill.violations.length;
  if (legal || !state.legal) draws(bill);
  if (legal) {
    state.legal = bill;
    remember(bill);
  }
  const all = lines(bill, "said under the fields"), said = legal || !state.legal ? all : all.slice(0, 1);
  fill(byId("answer"), said, about.from && flash(about, bill), el("div", { id: "suggestions", class: "suggestions" }), legal ? null : nearest(bill),
    !legal && state.legal && last());
  document.body.classList.toggle("stale", !legal && Boolean(state.legal));
  announce(byId("answer").querySelector(".first").textContent);
  document.title = `outlay: ${verdict(bill)}, ${bill.model.name}`;
}

const nearest = (bill) => broken(bill.violations).filter((each) => each && each.classList?.contains("nearest"));

/** The last legal answer, greyed. */
const last = () => el("div", { class: "last" }, el("p", { class: "small" }, `The last legal answer, for ${degrees(state.legal.layout, state.legal.derived.dp)}:`), lines(state.legal));

/** What cannot be read: the faults under their fields, the last answer greyed. */
function refuse(faults) {
  blame(faults);
  document.body.classList.add("stale");
  const old = state.legal ?? state.bill;
  fill(byId("answer"), el("p", { class: "line first" }, el("b", { class: "key", "data-verdict": "not_legal" }, "CANNOT BE READ"), " ", el("span", {}, faults.map((each) => each.what).join("; "))),
    old && el("div", { class: "last" }, el("p", { class: "small" }, `The last answer, for ${old.model.name} on ${old.cluster.name}, ${degrees(old.layout, old.derived.dp)}:`), lines(old)));
  announce(`cannot be read: ${faults[0]?.what}`);
}

/** Several clusters in one question are a table of bills. */
function several({ rows }) {
  blame([]);
  fill(byId("answer"), rows.map((bill) => [el("h2", {}, bill.cluster.name), lines(bill).slice(0, 2)]));
}

function draws(bill) {
  assume(bill);
  showMemory(bill);
  showStep(bill);
  fill(byId("notes"), notes(bill));
}

/** What changed by one press, in text, for four seconds. */
function flash({ from, change }, bill) {
  const said = el("p", { class: "flash", role: "status" }, `${change}: ${duration(from.step.seconds)} \u2192 ${duration(bill.step.seconds)}, `
    + `${(from.memory.peak_bytes / 2 ** 30).toFixed(1)} \u2192 ${(bill.memory.peak_bytes / 2 ** 30).toFixed(1)} GiB`);
  setTimeout(() => said.classList.add("faded"), 4000);
  return said;
}

/** What takes longer than the bill: suggestions, the parts of all ranks, the timing diagram. */
async function extras(signal) {
  const bill = state.bill, again = (name) => ask(name, question(), signal).catch(() => null), still = () => state.bill === bill && byId("suggestions");
  if (bill.violations.length) return;
  again("ranks").then((found) => found && still() && showMemory(bill, found.ranks));
  (bill.advice?.length ? Promise.resolve(bill) : again("advice")).then((found) => found?.advice && still() && advised(byId("suggestions"), bill, found.advice));
  const card = byId("timeline-card"), drawn = bill.layout.pp > 1 && await draw(state.words, state.config, signal).catch(() => null);
  if (!still()) return;
  card.hidden = !drawn?.operations;
  if (drawn?.operations) diagram.show(drawn);
}

function draw(of, config, signal) { return ask("draw", { words: of, ...(config ? { config } : {}) }, signal); }

function remember(bill) {
  const model = state.config ? "config.json" : state.words.model;
  tried.remember({
    words: state.words, config: state.config, name: degrees(bill.layout, bill.derived.dp), subject: `${model} on ${bill.cluster.name}`, verdict: bill.memory.verdict,
    seconds: bill.step.seconds, peak: bill.memory.peak_bytes, idle: bill.bubble.share,
  });
}

// --- the address -----------------------------------------------------------------------------------------------------

/** The words that the address of a tab shows. */
const shownWords = () => (state.tab === "plan" ? { ...words.withoutLayout(state.words), ...state.narrowed } : state.words);

/** Put the question into the address: a new entry of history, or the same one. @param {boolean} same */
function put(same = false) {
  const address = `/${state.tab}${words.query(shownWords())}${state.packed ? `#${state.packed}` : ""}`;
  const kept = { words: state.words, tab: state.tab, narrowed: state.narrowed };
  if (same || address === location.pathname + location.search + location.hash) history.replaceState(kept, "", address);
  else history.pushState(kept, "", address);
  for (const link of document.querySelectorAll(".tabs a")) link.href = `/${link.dataset.tab}${words.query(state.words)}${state.packed ? `#${state.packed}` : ""}`;
}

function tab(name) {
  state.tab = TABS.includes(name) ? name : "bill";
  document.body.dataset.tab = state.tab;
  for (const link of document.querySelectorAll(".tabs a")) {
    if (link.dataset.tab === state.tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (state.tab === "plan" && plans.empty()) plans.run();
  if (state.tab === "compare") compares.latest();
}

/** Take words, and a model that came with them. @param {any} next @param {object | null} config @param {boolean} toBill */
async function restore(next, config, toBill = false) {
  state.words = next;
  await model(config);
  write(next, Boolean(config));
  if (toBill) tab("bill");
  put();
  return count();
}

async function model(config) {
  state.config = config;
  state.packed = config ? await pack(config) : "";
  byId("notice").textContent = config ? carried(state.packed.length) : "";
}

/** A layout over the words that are none. @param {any} layout words of a layout */
function take(layout) { return restore({ ...words.withoutLayout(state.words), ...layout }, state.config, true); }

/** A change as flags, by one press. @param {string} flags */
function change(flags) {
  const from = state.legal ?? state.bill;
  state.words = words.changed(state.words, flags);
  write(state.words, Boolean(state.config));
  put();
  return count({ from, change: flags });
}

// --- what people do --------------------------------------------------------------------------------------------------

let known = ["", null];
async function legal() {
  const key = JSON.stringify(question());
  if (known[0] !== key) known = [key, ask("legal", question()).catch(() => ({}))];
  return known[1];
}

function edited() {
  const next = typed(state.words), named = next.model && next.model !== state.words.model;
  if (JSON.stringify(next) === JSON.stringify(state.words)) return;
  state.words = next;
  plans.clear();
  if (named && state.config) model(null);
  put();
  write(next, Boolean(state.config));
  count();
}

/** A dropped or pasted text. @param {{name: string, text: string}[]} files */
async function given(files) {
  const read = files.map((file) => ({ ...file, ...kindOf(file.name, file.text) }));
  const config = read.find((file) => file.kind === "config"), none = read.find((file) => file.kind === "none");
  if (config && read.length === 1) {
    const { model: _, ...rest } = state.words;
    return restore(rest, config.config, state.tab === "check");
  }
  if (none) return blame([{ code: "", what: none.why, rule: "a config.json, or the file of a framework", got: none.name, fix: "another file" }]);
  tab("check");
  put();
  return checks.take(read.map(({ name, text }) => ({ name, text })));
}

function clicks() {
  for (const link of document.querySelectorAll(".tabs a")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      tab(link.dataset.tab);
      put();
    });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-flags], [data-remove]");
    if (!button) return;
    if (button.dataset.flags) change(button.dataset.flags);
    else { const { [button.dataset.remove]: _, ...rest } = state.words; restore(rest, state.config); }
  });
  const command = () => (state.tab === "plan" ? words.line("plan", shownWords()) : words.line("count", state.config ? { ...state.words, model: "config.json" } : state.words));
  byId("copy-link").addEventListener("click", (event) => copy(event.currentTarget, location.href));
  byId("copy-cli").addEventListener("click", () => showCommand(command()));
  byId("open-export").addEventListener("click", () => showExports({ ...question(), bill: state.bill, draw: () => draw(state.words, state.config) }));
  byId("f-other").addEventListener("change", (event) => {
    const text = event.target.value.trim();
    event.target.value = "";
    if (text) change(text.startsWith("--") ? text : `--${text}`);
  });
  addEventListener("popstate", (event) => {
    const kept = event.state ?? { words: words.read(location.search), tab: location.pathname.slice(1), narrowed: {} };
    [state.words, state.narrowed] = [kept.words, kept.narrowed ?? {}];
    write(state.words, Boolean(state.config));
    tab(kept.tab);
    count();
  });
}

/** The first paint came with its answer; a model in the fragment never reached the server, and is asked for now. */
async function begin() {
  const first = JSON.parse(byId("record").textContent || "{}"), name = location.pathname.slice(1);
  state.words = location.search ? words.read(location.search) : Object.fromEntries(Object.entries(first.words ?? {}).map(([key, value]) => [key, value === "true" ? true : value]));
  if (name === "plan" && location.search) {
    state.narrowed = Object.fromEntries(Object.entries(state.words).filter(([key]) => words.LAYOUT_WORDS.has(key) || ["space", "headroom", "no-offload", "no-recompute"].includes(key)));
    state.words = Object.fromEntries(Object.entries(state.words).filter(([key]) => !(key in state.narrowed)));
    plans.narrow(state.narrowed);
  }
  let config = null;
  try { config = await unpack(location.hash); } catch { byId("notice").textContent = "The model in this link cannot be read; the link may have been cut."; }
  const quantity = new URLSearchParams(location.hash.slice(1)).get("why");
  if (config) { delete state.words.model; await model(config); }
  write(state.words, Boolean(config));
  if (first.answer?.memory && !config && name !== "plan") { show(first.answer); extras((pending = new AbortController()).signal); }
  else if (first.answer?.errors && !config && name !== "plan") refuse(first.answer.errors);
  else await count();
  tab(name);
  put(true);
  if (quantity) explain.open(quantity);
}

tried.watch((all) => { byId("tried-count").textContent = all.length > 1 ? `(${all.length})` : ""; });
listen(legal, edited);
drops(given);
clicks();
chosenTheme();
begin();
