/** The bill of the question: asked, shown, remembered; a broken or unreadable one stands over the last legal one. */

import { Faults, ask } from "./ask.js";
import { broken, lines, verdict } from "./answer.js";
import { advised, notes } from "./beside.js";
import { Diagram } from "./diagram.js";
import { announce, byId, el, fill } from "./dom.js";
import { assume, blame } from "./form.js";
import { degrees } from "./labels.js";
import { memoryView } from "./memory.js";
import { duration } from "./numbers.js";
import { question, state } from "./state.js";
import { stepView } from "./step.js";
import * as tried from "./tried.js";

const showMemory = memoryView(byId("memory"));
const showStep = stepView(byId("step"));
const diagram = new Diagram(byId("timeline"), "timeline");

let pending = null;

/** Ask for the bill of the words, and show it. @param {{change?: string, from?: any}} [about] what led to it */
export async function count(about = {}) {
  pending?.abort();
  pending = new AbortController();
  const signal = pending.signal,
    slow = setTimeout(() => byId("answer").classList.add("waiting"), 100);
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
  const all = lines(bill, "said under the fields"),
    said = legal || !state.legal ? all : all.slice(0, 1);
  fill(
    byId("answer"),
    said,
    about.from && flash(about, bill),
    el("div", { id: "suggestions", class: "suggestions" }),
    legal ? null : nearest(bill),
    !legal && state.legal && last(),
  );
  document.body.classList.toggle("stale", !legal && Boolean(state.legal));
  announce(byId("answer").querySelector(".first").textContent);
  document.title = `outlay: ${verdict(bill)}, ${bill.model.name}`;
}

const nearest = (bill) => broken(bill.violations).filter((each) => each && each.classList?.contains("nearest"));

/** The last legal answer, greyed. */
const last = () =>
  el(
    "div",
    { class: "last" },
    el("p", { class: "small" }, `The last legal answer, for ${degrees(state.legal.layout, state.legal.derived.dp)}:`),
    lines(state.legal),
  );

/** What cannot be read: the faults under their fields, the last answer greyed. */
function refuse(faults) {
  blame(faults);
  document.body.classList.add("stale");
  const old = state.legal ?? state.bill;
  fill(
    byId("answer"),
    el(
      "p",
      { class: "line first" },
      el("b", { class: "key", "data-verdict": "not_legal" }, "CANNOT BE READ"),
      " ",
      el("span", {}, faults.map((each) => each.what).join("; ")),
    ),
    old &&
      el(
        "div",
        { class: "last" },
        el(
          "p",
          { class: "small" },
          `The last answer, for ${old.model.name} on ${old.cluster.name}, ${degrees(old.layout, old.derived.dp)}:`,
        ),
        lines(old),
      ),
  );
  announce(`cannot be read: ${faults[0]?.what}`);
}

/** Several clusters in one question are a table of bills. */
function several({ rows }) {
  blame([]);
  fill(
    byId("answer"),
    rows.map((bill) => [el("h2", {}, bill.cluster.name), lines(bill).slice(0, 2)]),
  );
}

function draws(bill) {
  assume(bill);
  showMemory(bill);
  showStep(bill);
  fill(byId("notes"), notes(bill));
}

/** What changed by one press, in text, for four seconds. */
function flash({ from, change }, bill) {
  const said = el(
    "p",
    { class: "flash", role: "status" },
    `${change}: ${duration(from.step.seconds)} \u2192 ${duration(bill.step.seconds)}, ` +
      `${(from.memory.peak_bytes / 2 ** 30).toFixed(1)} \u2192 ${(bill.memory.peak_bytes / 2 ** 30).toFixed(1)} GiB`,
  );
  setTimeout(() => said.classList.add("faded"), 4000);
  return said;
}

/** What takes longer than the bill: suggestions, the parts of all ranks, the timing diagram. */
async function extras(signal) {
  const bill = state.bill,
    again = (name) => ask(name, question(), signal).catch(() => null),
    still = () => state.bill === bill && byId("suggestions");
  if (bill.violations.length) return;
  again("ranks").then((found) => found && still() && showMemory(bill, found.ranks));
  (bill.advice?.length ? Promise.resolve(bill) : again("advice")).then(
    (found) => found?.advice && still() && advised(byId("suggestions"), bill, found.advice),
  );
  const card = byId("timeline-card"),
    drawn = bill.layout.pp > 1 && (await draw(state.words, state.config, signal).catch(() => null));
  if (!still()) return;
  card.hidden = !drawn?.operations;
  if (drawn?.operations) diagram.show(drawn);
}

/** The diagram of the bill, where one is drawn and it is of what is asked. */
export const shownDiagram = () =>
  byId("timeline-card").hidden || document.body.classList.contains("stale") ? null : diagram;

/** The timing diagram of words. @param {any} of @param {object | null} config @param {AbortSignal} [signal] */
export function draw(of, config, signal) {
  return ask("draw", { words: of, ...(config ? { config } : {}) }, signal);
}

function remember(bill, words = state.words) {
  const model = state.config ? "config.json" : words.model;
  tried.remember({
    words,
    config: state.config,
    name: degrees(bill.layout, bill.derived.dp),
    subject: `${model} on ${bill.cluster.name}`,
    verdict: bill.memory.verdict,
    seconds: bill.step.seconds,
    peak: bill.memory.peak_bytes,
    idle: bill.bubble.share,
  });
}

/** The answer that the page came with; whether there is one. @param {any} answer */
export async function first(answer) {
  if (answer.memory) {
    pending = new AbortController();
    show(answer);
    extras(pending.signal);
  } else if (answer.errors?.length) refuse(answer.errors);
  return Boolean(answer.memory || answer.errors?.length);
}

/** A second question beside the first, for a comparison. @param {any} words */
export async function beside(words) {
  const bill = await ask("count", { ...question(), words });
  if (!bill.rows && !bill.violations.length) remember(bill, words);
}
