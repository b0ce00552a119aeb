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

/** Show what an address answers. @param {URL} address @returns {Promise<URL | null>} where it led; null if nowhere */
async function show(address) {
  asking?.abort();
  const own = (asking = new AbortController());
  try {
    const answer = await fetch(address, { signal: own.signal });
    if (answer.headers.get("Content-Type")?.startsWith("text/html")) put(await answer.text());
    else fill(byId("drill"), (await answer.json()).errors.map(faultOf));
    return new URL(answer.url);
  } catch (error) {
    if (error.name === "AbortError") return null;
    const fault = { code: "", what: "the server does not answer", rule: "the page asks the server that it came from" };
    fill(byId("drill"), faultOf({ ...fault, got: String(error.message), fix: "start it again: outlay serve" }));
    return null;
  }
}

/** Put the exercise of another page in place of this one's. @param {string} text */
function put(text) {
  const made = new DOMParser().parseFromString(text, "text/html");
  byId("drill").replaceWith(document.adoptNode(made.getElementById("drill")));
  byId("another").href = made.getElementById("another").getAttribute("href");
  byId("command").textContent = made.getElementById("command").textContent;
  for (const field of byId("set").elements) if (field.id) field.value = made.getElementById(field.id).value;
  ready();
}

/** Go to an exercise. @param {URL} address @param {boolean} pushes whether it is a new entry of history */
async function go(address, pushes = true) {
  const found = await show(answered(address));
  if (!found) return;
  const shown = clean(found);
  if (pushes && shown !== location.pathname + location.search) history.pushState(history.state, "", shown);
  else history.replaceState(history.state, "", shown);
  const box = byId("answers")?.querySelector("input:not([type=hidden]), select, textarea");
  (box && matchMedia("(pointer: fine)").matches ? box : byId("exercise"))?.focus();
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
    words = new URLSearchParams(new FormData(form)),
    address = new URL(`/drill?${words}`, location.href);
  const before = new Set(graded());
  given.set(`${setOf(words)}/${words.get("number")}`, words.getAll("answer"));
  if (!(await show(address))) return;
  const again = byId("answers")?.querySelector("[data-mark=again] > :is(input, select, textarea)"),
    open = byId("answers")?.querySelector('[data-mark=""] > :is(input, select, textarea)');
  (again ?? open ?? byId("next"))?.focus();
  const said = graded().filter((each) => !before.has(each));
  announce([...said, byId("score").textContent].join(" "), 100);
}

/** The verdicts that stand there, as they are read out. */
const graded = () => [...document.querySelectorAll("#answers .verdict")].map((each) => each.textContent.trim());

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
