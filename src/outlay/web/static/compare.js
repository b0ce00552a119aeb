/** The tab Compare: two of the layouts that were tried in this window, and the list of these. */

import { Faults, ask } from "./ask.js";
import { faultOf } from "./answer.js";
import { Diagram, stepOf, together } from "./diagram.js";
import { compared } from "./difference.js";
import { el, fill, scrolling, table } from "./dom.js";
import { VERDICTS } from "./labels.js";
import { duration, gib, percent } from "./numbers.js";
import * as tried from "./tried.js";

/**
 * The tab.
 * @param {HTMLElement} host
 * @param {{load: (one: import("./tried.js").Try) => void, draw: (words: any, config: any) => Promise<any>,
 *   asked: (one: any, other: any) => void}} on
 */
export function compareView(host, on) {
  const a = el("select", { id: "side-a" }),
    b = el("select", { id: "side-b" }),
    result = el("div"),
    history = el("div");
  const side = (name, select) => el("div", { class: "field side" }, el("label", { for: select.id }, name), select);
  fill(
    host,
    el(
      "section",
      { class: "card" },
      el(
        "header",
        {},
        el("h2", {}, "Two layouts"),
        el("div", { class: "tools" }, el("button", { type: "button", onclick: swap }, "Swap")),
      ),
      el("div", { class: "sides" }, side("A", a), side("B", b)),
    ),
    result,
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "Tried in this window")), history),
  );
  let shown = "",
    pending = null;

  function swap() {
    [a.value, b.value] = [b.value, a.value];
    run();
  }

  tried.watch((all) => {
    const options = () =>
        all.map((one) =>
          el("option", { value: one.id }, `${outcome(one)}: ${one.name}${several(all) ? `; ${one.subject}` : ""}`),
        ),
      [left, right] = [a.value, b.value];
    fill(a, options());
    fill(b, options());
    a.value = all.some((one) => one.id === left) ? left : (all[1]?.id ?? all[0]?.id ?? "");
    b.value = all.some((one) => one.id === right) && right !== a.value ? right : (all[0]?.id ?? "");
    fill(history, strip(all, on.load));
  });

  async function run() {
    const [one, other] = [tried.find(a.value), tried.find(b.value)],
      key = `${a.value} ${b.value}`;
    if (!one || !other || one.id === other.id) {
      shown = "";
      fill(
        result,
        el("p", { class: "card hint" }, "Two layouts are needed: change something on the Bill, and it stands here."),
      );
      return;
    }
    if (key === shown) return;
    pending?.abort();
    pending = new AbortController();
    on.asked(one, other);
    try {
      const record = await ask(
        "compare",
        {
          words: one.words,
          config: one.config ?? undefined,
          other: { words: other.words, config: other.config ?? undefined },
        },
        pending.signal,
      );
      shown = key;
      fill(result, compared(record, one, other));
      diagrams(result, one, other, on.draw);
    } catch (error) {
      if (error.name !== "AbortError")
        fill(result, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
    }
  }
  for (const select of [a, b]) select.addEventListener("change", run);
  return {
    run,
    latest: () => {
      const all = [...a.options];
      if (all.length > 1) {
        b.value = all[0].value;
        a.value = all[1].value;
      }
      run();
    },
  };
}

/** Whether the list holds more than one model or cluster. */
const several = (all) => all.some((one) => one.subject !== all[0].subject);
const outcome = (one) => `${VERDICTS[one.verdict] ?? "NOT LEGAL"}, ${duration(one.seconds)}, ${gib(one.peak)}`;

/** What was tried, newest first. @param {import("./tried.js").Try[]} all @param {(one: any) => void} load */
function strip(all, load) {
  if (!all.length) return el("p", { class: "hint" }, "Nothing yet.");
  const rows = all.map((one) => [
    [one.name, el("br"), el("span", { class: "small faint" }, one.subject)],
    VERDICTS[one.verdict] ?? "NOT LEGAL",
    duration(one.seconds),
    gib(one.peak),
    percent(one.idle),
    el(
      "span",
      { class: "row-of-buttons" },
      el("button", { type: "button", onclick: () => load(one), "aria-label": `load ${one.name}` }, "Load"),
      el(
        "button",
        {
          type: "button",
          "aria-pressed": String(Boolean(one.pinned)),
          onclick: () => tried.pin(one.id),
          "aria-label": `pin ${one.name}`,
        },
        one.pinned ? "Unpin" : "Pin",
      ),
      el(
        "button",
        { type: "button", onclick: () => tried.forget(one.id), "aria-label": `remove ${one.name}` },
        "Remove",
      ),
    ),
  ]);
  return scrolling(
    "tried",
    table({ heads: ["layout", "verdict", "step", "peak", "idle", ""], rows, left: 2, name: "tried" }),
  );
}

/** Both timing diagrams, one over the other, in one time scale: folded where they repeat, and moved together. */
async function diagrams(result, one, other, draw) {
  const both = await Promise.all([one, other].map((side) => draw(side.words, side.config).catch(() => null)));
  const shown = both.filter((each) => each?.operations && each.operations.rows.length > 1);
  if (!shown.length) return;
  const card = el("section", { class: "card" }, el("header", {}, el("h2", {}, "Timing diagrams, in one time scale")));
  result.append(card);
  const steps = shown.map(stepOf),
    drawn = [];
  both.forEach((each, at) => {
    if (!shown.includes(each)) return;
    const place = el("div", { class: "pair-diagram" }),
      diagram = new Diagram(place, "", each === shown.at(-1));
    card.append(el("h3", {}, `${"AB"[at]}: ${[one, other][at].name}`), place);
    drawn.push(diagram);
    diagram.show(each, steps);
  });
  together(drawn);
}
