/** The question that the page stands at, and how it stands in the address. */

import { carried, pack } from "./config.js";
import { byId } from "./dom.js";
import * as words from "./words.js";

/** The question, and its last readable and legal answer. */
export const state = {
  words: {},
  config: null,
  packed: "",
  bill: null,
  legal: null,
  tab: "bill",
  narrowed: {},
  pair: null,
};

/** The body of a request. */
export const question = () => ({ words: state.words, ...(state.config ? { config: state.config } : {}) });

/** The words that the address of a tab shows. */
export function shownWords() {
  if (state.tab === "plan") return { ...words.withoutLayout(state.words), ...state.narrowed };
  if (state.tab !== "compare" || !state.pair) return state.words;
  const [one, other] = state.pair;
  const text = one.config === other.config ? words.over(one.words, other.words) : "";
  return text ? { ...one.words, b: text } : state.words;
}

/** Put the question into the address: a new entry of history, or the same one. @param {boolean} same */
export function put(same = false) {
  const address = `/${state.tab}${words.query(shownWords())}${state.packed ? `#${state.packed}` : ""}`;
  const kept = { words: state.words, tab: state.tab, narrowed: state.narrowed, config: state.config };
  if (same || address === location.pathname + location.search + location.hash) history.replaceState(kept, "", address);
  else history.pushState(kept, "", address);
  const asked = `${words.query(state.words)}${state.packed ? `#${state.packed}` : ""}`;
  for (const link of document.querySelectorAll(".tabs a[data-tab]")) link.href = `/${link.dataset.tab}${asked}`;
  byId("to-drill").href = `/drill#${asked}`; // the way back
}

/** A model that is pasted or dropped, or comes in a link; null for none. @param {object | null} config */
export async function model(config) {
  state.config = config;
  state.packed = config ? await pack(config) : "";
  byId("notice").textContent = config ? carried(state.packed.length) : "";
}
