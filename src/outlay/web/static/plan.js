/** The tab Plan: what to search, its progress, and Stop, which keeps what stands there. */

import { Faults, plan as search } from "./ask.js";
import { announce, el, fill } from "./dom.js";
import { faultOf } from "./answer.js";
import { degrees } from "./labels.js";
import { duration, short } from "./numbers.js";
import { answered, nothing, soFar } from "./planned.js";

const RANGES = [
  ["tp", "1..8"],
  ["pp", "1..16"],
  ["cp", "1,2"],
  ["ep", ""],
  ["vpp", ""],
  ["mbs", "1..4"],
];
const SPACES = ["", "lean", "middle", "full"];

/**
 * The tab.
 * @param {HTMLElement} host
 * @param {{question: () => {words: any, config?: any}, bill: () => any, take: (words: any) => void,
 *   searched: (narrowed: any) => void}} on
 */
export function planView(host, on) {
  const narrow = form(),
    go = el("button", { type: "submit", class: "main" }, "Search"),
    progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "how much is searched" });
  const status = el("p", { class: "status", role: "status" }),
    result = el("div");
  const asked = el(
    "form",
    { class: "space card", "aria-label": "the space" },
    el("header", {}, el("h2", {}, "What is searched")),
    el("div", { class: "pairs" }, narrow.fields),
    el("p", { class: "row-of-buttons" }, go, progress),
    status,
  );
  fill(host, asked, result);
  let running = null,
    shown = null;

  async function run() {
    const { words, config } = on.question(),
      narrowed = narrow.words(),
      body = { words: { ...words, ...narrowed }, config };
    running = new AbortController();
    shown = null;
    const began = performance.now();
    go.textContent = "Stop";
    on.searched(narrowed);
    let last = null;
    const tell = setInterval(() => tick(began, last), 250);
    const heard = (event) => {
      last = event;
      if (!event.best || JSON.stringify(event.best) === JSON.stringify(shown)) return;
      shown = event.best;
      fill(result, soFar(shown, on.take));
    };
    try {
      shown = await search(body, heard, running.signal);
      last = null;
      fill(result, shown.best.length ? answered(shown, on) : nothing(shown));
      status.textContent = `Searched in ${duration((performance.now() - began) / 1000)}.`;
      announce(`best layout ${degrees(shown.best[0]?.layout ?? {}, shown.best[0]?.bill.derived.dp ?? 0)}`, 0);
    } catch (error) {
      ended(error);
    } finally {
      clearInterval(tell);
      [running, progress.hidden, go.textContent] = [null, true, "Search"];
    }
  }

  function tick(began, last) {
    progress.hidden = performance.now() - began < 500;
    if (!last) return;
    if (last.share === null || last.share === undefined) progress.removeAttribute("value");
    else progress.value = last.share;
    status.textContent = [
      `${short(last.done)}${last.of ? ` of ${short(last.of)}` : ""} layouts counted`,
      last.best ? said(last.best) : "",
      last.seconds_left ? `about ${duration(last.seconds_left, 2)} left` : "",
    ]
      .filter(Boolean)
      .join(", ");
  }

  /** However a search ends before its answer, the best so far stays. */
  function ended(error) {
    const stopped = error.name === "AbortError",
      faults = stopped ? [] : error instanceof Faults ? error.faults : [{ what: String(error) }];
    const found = shown ? "The best so far stands below; what was not counted may be better." : "Nothing was found yet.";
    if (stopped) status.textContent = `Stopped. ${found}`;
    else status.textContent = shown ? `The search ended before its answer. ${found}` : "";
    fill(result, faults.map(faultOf), shown && soFar(shown, on.take));
    announce(status.textContent, 0);
  }

  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else run();
  });
  return {
    run: () => {
      if (!running) run();
    },
    narrow: narrow.write,
    empty: () => !shown,
    clear: () => {
      shown = null;
      running?.abort();
      fill(result);
    },
  };
}

/** The best so far in a few words. @param {any} best */
function said({ layout, verdict, seconds }) {
  const words = degrees(layout, layout.dp_replicate * layout.dp_shard);
  return verdict === "fits" ? `best so far: ${words}, ${duration(seconds)} a step` : "none fits so far";
}

/** The limits of the space. */
function form() {
  const field = (name, placeholder, hint = "") => {
    const input = el("input", {
      id: `p-${name}`,
      placeholder: placeholder || "all",
      autocomplete: "off",
      spellcheck: "false",
    });
    return [
      input,
      el(
        "div",
        { class: "field" },
        el("label", { for: input.id, title: hint || null }, name === "mbs" ? "micro-batch" : name),
        input,
      ),
    ];
  };
  const inputs = RANGES.map(([name]) => [name, ...field(name, "all", "1,2,4 keeps these, 1..8 those inside")]);
  const space = el(
    "select",
    { id: "p-space" },
    SPACES.map((each) => el("option", { value: each }, each || "wide")),
  );
  const headroom = field("headroom", "0"),
    more = ["no-offload", "no-recompute"].map((name) => [name, el("input", { type: "checkbox", id: `p-${name}` })]);
  const fields = [
    inputs.map(([, , made]) => made),
    headroom[1],
    el("div", { class: "field" }, el("label", { for: "p-space" }, "space"), space),
    more.map(([name, box]) =>
      el("div", { class: "field tick-box" }, box, el("label", { for: box.id }, name.replace("-", " "))),
    ),
  ];
  const texts = [...inputs, ["headroom", headroom[0]], ["space", space]];
  return {
    fields,
    words: () =>
      Object.fromEntries(
        [
          ...texts.map(([name, input]) => [name, input.value.trim()]),
          ...more.map(([name, box]) => [name, box.checked]),
        ].filter(([, value]) => value),
      ),
    write: (words) => {
      for (const [name, input] of texts) input.value = (words[name] === "wide" ? "" : words[name]) ?? "";
      for (const [name, box] of more) box.checked = Boolean(words[name]);
    },
  };
}
