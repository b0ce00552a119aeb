/** The page: one question, its answer on every tab, its address. */

import { ask } from "./ask.js";
import { patterns } from "./bars.js";
import { checkView } from "./check.js";
import { compareView } from "./compare.js";
import { kindOf, unpack } from "./config.js";
import { beside, count, draw, first as firstAnswer, shownDiagram } from "./counting.js";
import { byId, copy } from "./dom.js";
import { chosenTheme, drops } from "./drop.js";
import { drawer } from "./explain.js";
import { showCommand, showExports } from "./export.js";
import { blame, listen, typed, write } from "./form.js";
import { planView } from "./plan.js";
import { model, put, question, shownWords, state } from "./state.js";
import * as tried from "./tried.js";
import * as words from "./words.js";

const TABS = ["bill", "plan", "compare", "check"];
const PLAN_WORDS = new Set(["space", "headroom", "no-offload", "no-recompute"]);
patterns();
const explain = drawer(question, (quantity) => words.line("explain", state.words, quantity));
const plans = planView(byId("plan"), {
  question: () => ({ ...question(), words: words.withoutLayout(state.words) }),
  bill: () => state.legal,
  take,
  searched: (narrowed) => {
    state.narrowed = narrowed;
    put(true);
  },
});
const compares = compareView(byId("compare"), {
  load: (one) => restore(one.words, one.config, true),
  draw,
  asked: (one, other) => {
    state.pair = [one, other];
    if (state.tab === "compare") put(true);
  },
});
const checks = checkView(byId("check"), { on: () => state.words.on ?? "" });

// --- the tabs, and other questions ----------------------------------------------------------------------------------

function tab(name) {
  state.tab = TABS.includes(name) ? name : "bill";
  document.body.dataset.tab = state.tab;
  for (const link of document.querySelectorAll(".tabs a[data-tab]")) {
    if (link.dataset.tab === state.tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (state.tab === "plan" && plans.empty()) plans.run();
  if (state.tab === "compare") compares.latest();
}

/**
 * Take words, and a model that came with them.
 * @param {any} next
 * @param {object | null} config
 * @param {boolean} toBill
 */
async function restore(next, config, toBill = false) {
  state.words = next;
  await model(config);
  write(next, Boolean(config));
  if (toBill) tab("bill");
  put();
  return count();
}

/** A layout over the words that are none. @param {any} layout words of a layout */
function take(layout) {
  return restore({ ...words.withoutLayout(state.words), ...layout }, state.config, true);
}

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
  const next = typed(state.words),
    named = next.model && next.model !== state.words.model;
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
  const config = read.find((file) => file.kind === "config"),
    none = read.find((file) => file.kind === "none");
  if (config && read.length === 1) {
    const { model: _, ...rest } = state.words;
    return restore(rest, config.config, state.tab === "check");
  }
  if (none)
    return blame([
      {
        code: "",
        what: none.why,
        rule: "a config.json, or the file of a framework",
        got: none.name,
        fix: "another file",
      },
    ]);
  tab("check");
  put();
  return checks.take(read.map(({ name, text }) => ({ name, text })));
}

function clicks() {
  for (const link of document.querySelectorAll(".tabs a[data-tab]")) {
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
    else {
      const { [button.dataset.remove]: _, ...rest } = state.words;
      restore(rest, state.config);
    }
  });
  const command = () =>
    state.tab === "plan"
      ? words.line("plan", shownWords())
      : words.line("count", state.config ? { ...state.words, model: "config.json" } : state.words);
  byId("copy-link").addEventListener("click", (event) => copy(event.currentTarget, location.href));
  byId("copy-cli").addEventListener("click", () => showCommand(command()));
  byId("open-export").addEventListener("click", () =>
    showExports({
      question: question(),
      bill: state.bill,
      draw: () => draw(state.words, state.config),
      diagram: shownDiagram(),
    }),
  );
  byId("f-other").addEventListener("change", (event) => {
    const text = event.target.value.trim();
    event.target.value = "";
    if (text) change(text.startsWith("--") ? text : `--${text}`);
  });
  addEventListener("popstate", async (event) => {
    const kept = event.state ?? { words: words.read(location.search), tab: location.pathname.slice(1), narrowed: {} };
    [state.words, state.narrowed] = [kept.words, kept.narrowed ?? {}];
    await model(kept.config ?? null);
    write(state.words, Boolean(state.config));
    tab(kept.tab);
    count();
  });
}

/** The words that the page came with, and on the tabs Plan and Compare what else stands among them. */
function addressed(first, name) {
  const given = Object.entries(first.words ?? {}).map(([key, value]) => [key, value === "true" ? true : value]);
  const { b = "", ...all } = location.search ? words.read(location.search) : Object.fromEntries(given);
  const plans = name === "plan" && location.search !== "";
  const narrows = ([key]) => plans && (words.LAYOUT_WORDS.has(key) || PLAN_WORDS.has(key));
  state.narrowed = Object.fromEntries(Object.entries(all).filter(narrows));
  state.words = Object.fromEntries(Object.entries(all).filter((pair) => !narrows(pair)));
  return b;
}

/** The first paint came with its answer; a model in the fragment never reached the server, and is asked for now. */
async function begin() {
  const first = JSON.parse(byId("record").textContent || "{}");
  const name = location.pathname.slice(1);
  const other = addressed(first, name);
  plans.narrow(state.narrowed);
  let config = null;
  try {
    config = await unpack(location.hash);
  } catch {
    byId("notice").textContent = "The model in this link cannot be read; the link may have been cut.";
  }
  const quantity = new URLSearchParams(location.hash.slice(1)).get("why");
  if (config) {
    delete state.words.model;
    await model(config);
  }
  write(state.words, Boolean(config));
  if (config || name === "plan" || !(await firstAnswer(first.answer ?? {}))) await count();
  if (other) await beside(words.put(state.words, String(other))).catch(() => {});
  tab(name);
  put(true);
  if (quantity) explain.open(quantity);
}

tried.watch((all) => {
  byId("tried-count").textContent = all.length > 1 ? `(${all.length})` : "";
});
listen(legal, edited);
drops(given);
clicks();
chosenTheme();
begin();
