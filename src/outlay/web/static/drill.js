/**
 * The exercises: each is made and graded by the server, as HTML that is shown without a script too; here it is put in
 * place of the one before, so that the score of a set is kept. The score lives in this page alone.
 */

import { faultOf } from "./answer.js";
import { announce, byId, copy, fill } from "./dom.js";
import { chosenTheme } from "./drop.js";
import { preview } from "./stairs.js";

const SHAPES = { right: "\u2713", wrong: "\u2717" };
const marks = new Map(); // the first grade of each part, by exercise and part
const given = new Map(); // what was answered, by exercise
let set = "",
  asking = null;

// --- asking ----------------------------------------------------------------------------------------------------------

/**
 * Show what an address answers. Where it answers with faults alone, they stand above, and `keeps` says whether the
 * exercise stays as it is.
 * @param {URL} address @param {boolean} keeps @returns {Promise<URL | null>} where it led; null if nowhere
 */
async function show(address, keeps) {
  asking?.abort();
  const own = (asking = new AbortController());
  try {
    const answer = await fetch(address, { signal: own.signal });
    if (!answer.headers.get("Content-Type")?.startsWith("text/html")) throw (await answer.json()).errors;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (keeps && !answer.ok) return blame([...made.querySelectorAll(".faults")]);
    put(made);
    return new URL(answer.url);
  } catch (error) {
    if (error.name === "AbortError") return null;
    return blame((Array.isArray(error) ? error : [lost(error)]).map(faultOf));
  }
}

const lost = (error) => ({
  code: "",
  what: "the server does not answer",
  rule: "the page asks the server that it came from",
  got: String(error.message),
  fix: "start it again: outlay serve",
});

/** Say what is wrong above the exercise. @param {Element[]} faults @returns {null} */
function blame(faults) {
  fill(byId("errors"), faults);
  announce(byId("errors").textContent, 100);
  return null;
}

/** Put the exercise of another page in place of this one's. @param {Document} made */
function put(made) {
  fill(byId("errors"));
  byId("drill").replaceWith(document.adoptNode(made.getElementById("drill")));
  byId("another").href = made.getElementById("another").getAttribute("href");
  byId("command").textContent = made.getElementById("command").textContent;
  for (const field of byId("set").elements) if (field.id) field.value = made.getElementById(field.id).value;
  ready();
}

/** Go to an exercise. @param {URL} address @param {boolean} pushes whether it is a new entry of history */
async function go(address, pushes = true) {
  const found = await show(answered(address), false);
  if (!found) return;
  const shown = clean(found);
  if (pushes && shown !== location.pathname + location.search) history.pushState(history.state, "", shown);
  else history.replaceState(history.state, "", shown);
  const box = byId("answers")?.querySelector("input:not([type=hidden]), select, textarea");
  if (box && matchMedia("(pointer: fine)").matches) return box.focus(); // which is described by the question
  byId("exercise")?.focus();
  announce(byId("question")?.textContent ?? byId("drill").textContent.trim(), 100);
}

/** An address without its answers: what is shared is the question. @param {URL} address */
function clean(address) {
  const words = new URLSearchParams(address.search);
  words.delete("answer");
  return `${address.pathname}?${words}`;
}

/** An address with what was answered there before. @param {URL} address */
function answered(address) {
  const made = new URL(address),
    here = `${setOf(address.searchParams)}/${address.searchParams.get("number") ?? "1"}`;
  for (const text of given.get(here) ?? []) made.searchParams.append("answer", text);
  return made;
}

const setOf = (words) => ["level", "topic", "seed"].map((name) => words.get(name) ?? "").join("/");

/** Grade what stands in the boxes. */
async function grade() {
  const form = byId("answers"),
    asked = new URLSearchParams(new FormData(form)),
    address = new URL(`/drill?${asked}`, location.href);
  const before = new Set(graded().map(words));
  if (!(await show(address, true))) return;
  given.set(`${setOf(asked)}/${asked.get("number")}`, asked.getAll("answer"));
  const again = byId("answers")?.querySelector("[data-mark=again] > :is(input, select, textarea)"),
    open = byId("answers")?.querySelector('[data-mark=""] > :is(input, select, textarea)');
  (again ?? open ?? byId("next"))?.focus({ preventScroll: true });
  const said = graded().filter((one) => !before.has(words(one)));
  said[0]?.closest("[data-part]").scrollIntoView({ block: "nearest" }); // the grade is read before one goes on
  announce([...said.map(words), byId("score").textContent].join(" "), 100);
}

/** The verdicts that stand there. @returns {Element[]} */
const graded = () => [...document.querySelectorAll("#answers .verdict")];
const words = (one) => one.textContent.trim();

// --- the score -------------------------------------------------------------------------------------------------------

function ready() {
  const card = byId("exercise");
  if (card && card.dataset.set !== set) {
    [marks, given].forEach((each) => each.clear());
    set = card.dataset.set;
  }
  for (const part of card?.querySelectorAll("[data-part]") ?? []) {
    const key = `${card.dataset.number}/${part.dataset.part}`,
      mark = part.dataset.mark;
    if (mark in SHAPES && !marks.has(key)) marks.set(key, { mark, topic: card.dataset.topic });
  }
  for (const link of document.querySelectorAll(".numbers a")) {
    const own = [...marks].filter(([key]) => key.startsWith(`${link.dataset.number}/`)).map(([, one]) => one.mark);
    const mark = own.includes("wrong") ? "wrong" : own.length ? "right" : "";
    link.lastElementChild.dataset.mark = mark;
    link.lastElementChild.textContent = mark && SHAPES[mark];
    link.lastElementChild.title = mark;
  }
  byId("score").textContent = score();
}

/** The score in a sentence, and the topics of what was wrong. */
function score() {
  const all = [...marks.values()],
    missed = new Set(all.filter((one) => one.mark === "wrong").map((one) => one.topic));
  if (!all.length) return "No answer yet.";
  const more = missed.size ? `; to practise: ${[...missed].join(", ")}` : "";
  return `Score: ${all.filter((one) => one.mark === "right").length} of ${all.length}${more}.`;
}

// --- what people do --------------------------------------------------------------------------------------------------

/** A topic brings a level that has it; a level without the topic brings all in turns. @param {Event} event */
function choose(event) {
  const topic = byId("s-topic"),
    level = byId("s-level"),
    has = topic.selectedOptions[0]?.dataset.levels?.split(" ");
  if (has && !has.includes(level.value)) {
    if (event.target === topic) level.value = has[0];
    else topic.value = "";
  }
  const words = [...new FormData(byId("set"))].filter(([, text]) => text.trim());
  go(new URL(`/drill?${new URLSearchParams(words)}`, location.href));
}

/** The question of the other tabs came behind the #: it goes back with their links, and not into this address. */
function remember() {
  const from = /^#[?#]/.test(location.hash) ? location.hash.slice(1) : (history.state?.from ?? "");
  for (const link of document.querySelectorAll(".tabs a[data-tab]")) link.href = `/${link.dataset.tab}${from}`;
  history.replaceState({ from }, "", clean(new URL(location.href)));
}

function listen() {
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.id === "answers") grade();
    else choose(event);
  });
  byId("set").addEventListener("change", choose);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('#drill a[href^="/drill"], #another');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(new URL(link.href));
  });
  document.addEventListener("input", (event) => {
    if ("rows" in event.target.dataset) preview(event.target);
  });
  byId("copy-link").addEventListener("click", (event) => copy(event.currentTarget, location.href));
  addEventListener("popstate", () => go(new URL(location.href), false));
}

remember();
listen();
chosenTheme();
ready();
