/** What was tried in this window: every layout that was counted, kept until the window closes. */

const KEY = "tried",
  MOST = 60;

/**
 * @typedef {{id: string, words: Record<string, any>, config: object | null, name: string, subject: string, verdict:
 * string, seconds: number, peak: number, idle: number, pinned?: boolean}} Try
 */

/** @returns {Try[]} */
function load() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
  } catch {
    return [];
  }
}

/** @type {Try[]} newest first */
let all = load();
const listeners = [];

function keep() {
  all = [...all.filter((each) => each.pinned), ...all.filter((each) => !each.pinned)].slice(0, MOST);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    /* storage is full or off: the list lives on here */
  }
  for (const each of listeners) each(all);
}

/** @param {(all: Try[]) => void} listener called now and after every change */
export function watch(listener) {
  listeners.push(listener);
  listener(all);
}

/** Remember an answer. @param {Omit<Try, "id">} one */
export function remember(one) {
  const id = JSON.stringify([one.words, one.config]),
    before = all.find((each) => each.id === id);
  all = [{ ...one, id, pinned: before?.pinned }, ...all.filter((each) => each.id !== id)];
  keep();
}

/** @param {string} id */
export function forget(id) {
  all = all.filter((each) => each.id !== id);
  keep();
}

/** @param {string} id */
export function pin(id) {
  all = all.map((each) => (each.id === id ? { ...each, pinned: !each.pinned } : each));
  keep();
}

/** @param {string} id */
export const find = (id) => all.find((each) => each.id === id);
