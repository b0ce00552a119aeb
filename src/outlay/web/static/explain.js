/** The drawer that says where a figure comes from: its sentence, its derivation, its ladder of fidelity. */

import { Faults, ask } from "./ask.js";
import { faultOf } from "./answer.js";
import { announce, byId, copy, el, fill, scrolling, table } from "./dom.js";
import { both, duration, figure, general, percent } from "./numbers.js";

const OPEN = 2; // levels of a derivation that are open at first

/** A value in its unit. @param {number | null} value @param {string} unit */
export function valued(value, unit) {
  if (value === null || value === undefined) return "not known";
  if (unit === "B") return both(value, 4);
  if (unit === "s") return duration(value, 4);
  if (unit === "share") return percent(value, 4);
  const small = Math.abs(value) < 1e6 ? general(value) : figure(value, 4);
  return `${Number.isInteger(value) ? value.toLocaleString("en-US") : small}${unit ? ` ${unit}` : ""}`;
}

/**
 * A value as it stands within a derivation: one unit, the one that suits it.
 * @param {number} value
 * @param {string} unit
 */
function brief(value, unit) {
  if (value === 0) return `0${{ share: " %", "": "" }[unit] ?? ` ${unit}`}`;
  const [size, word] =
    unit === "B"
      ? [
          [1e9, "GB"],
          [1e6, "MB"],
          [1e3, "kB"],
          [0, "B"],
        ].find(([least]) => Math.abs(value) >= least)
      : [0, ""];
  return word ? `${size ? figure(value / size, 4) : general(value)} ${word}` : valued(value, unit);
}

/** The drawer. `body` gives the question as it stands, `command` the line of a quantity.
 * @param {() => {words: any, config?: any}} body @param {(quantity: string) => string} command */
export function drawer(body, command) {
  const host = byId("drawer"),
    heading = byId("h-drawer"),
    place = byId("explained");
  let from = null,
    pending = null;
  const close = () => {
    host.hidden = true;
    document.body.classList.remove("explaining");
    from?.focus();
  };
  byId("close-drawer").addEventListener("click", close);
  host.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  const open = async (quantity, button) => {
    pending?.abort();
    pending = new AbortController();
    if (!host.contains(button)) from = button;
    host.hidden = false;
    document.body.classList.add("explaining");
    heading.textContent = quantity;
    const { words, config } = body();
    try {
      const record = await ask("explain", { words: { ...words, quantity }, config }, pending.signal);
      fill(place, "derivation" in record ? explained(record) : page(record), tail(quantity, command(quantity)));
      if (!host.contains(button)) heading.focus();
      announce(`${quantity} explained`, 0);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(
        place,
        (error instanceof Faults ? error.faults : [{ what: String(error), rule: "", got: "", fix: "" }]).map(faultOf),
      );
    }
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-why]");
    if (button) open(button.dataset.why, button);
  });
  return { open: (quantity) => open(quantity, null), close };
}

/** @param {any} record */
const explained = (record) => [
  el("p", { class: "value" }, valued(record.value, record.unit)),
  el("p", {}, record.derivation.sentence),
  el("h3", {}, "How it is made"),
  el("div", { class: "derivation" }, step(record.derivation, 0)),
  record.ladder?.length > 0 && [el("h3", {}, "The same figure, coarser and finer"), ladder(record)],
];

/** One line of a derivation, and what it is made of. */
function step(of, depth) {
  const value = depth ? brief(of.value, of.unit) : valued(of.value, of.unit),
    numbers = of.numbers && !shows(of.numbers, value) ? [el("br"), el("span", { class: "eq" }, `= ${of.numbers}`)] : [];
  const head = [
    el("b", {}, of.name),
    ` = ${of.formula}`,
    numbers,
    el("br"),
    el("span", { class: "eq strong" }, `= ${value}`),
  ];
  const said = of.sentence && depth > 0 && el("p", { class: "small faint" }, of.sentence);
  if (!of.steps?.length) return el("div", { class: "leaf" }, head, said);
  return el(
    "details",
    { open: depth < OPEN },
    el("summary", {}, head),
    said,
    of.steps.map((each) => step(each, depth + 1)),
  );
}

const shows = (numbers, value) => numbers === value || numbers === value.split(" (")[0];

function ladder(record) {
  const own = record.ladder.find((rung) => rung.name === "refined")?.value ?? record.value;
  const rows = record.ladder.map((rung) => [
    rung.name,
    rung.value === null ? "\u2013" : valued(rung.value, rung.unit),
    rung.value === null || !own ? "" : (rung.value / own).toFixed(2),
    rung.note,
  ]);
  return scrolling("ladder of fidelity", table({ heads: ["", "value", "ratio", "from"], rows, name: "ladder" }));
}

/** The page of an error's code, whatever keys it has. @param {any} record */
const page = (record) =>
  Object.entries(record)
    .filter(([name, value]) => typeof value === "string" && value && !["schema", "version"].includes(name))
    .map(([name, value]) => el("p", {}, el("span", { class: "part" }, name.replaceAll("_", " ")), " ", value));

/** The link of this derivation, and its command. */
function tail(quantity, line) {
  const link = el("button", { type: "button", onclick: () => copy(link, linkOf(quantity)) }, "Copy link to this");
  const told = el("button", { type: "button", onclick: () => copy(told, line) }, "Copy command");
  return el("p", { class: "tail" }, link, told, el("code", {}, line));
}

const linkOf = (quantity) => {
  const hash = new URLSearchParams(location.hash.slice(1));
  hash.set("why", quantity);
  return `${location.origin}${location.pathname}${location.search}#${hash}`;
};
