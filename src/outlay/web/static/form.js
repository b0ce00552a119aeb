/**
 * The fields of a question: what is typed, what is assumed where nothing is, and the faults under the field that caused
 * them.
 */

import { byId, el, fill } from "./dom.js";
import { faultOf, faultParts } from "./answer.js";
import { general } from "./numbers.js";

const SETTLED = 300; // ms without typing make a change one question
const fields = () => [...document.querySelectorAll("[data-word] > input[name], [data-word] > select[name]")];

/** The words of the fields; words that have no field are kept as they are. @param {Record<string, any>} before */
export function typed(before) {
  const words = {},
    named = new Map(fields().map((field) => [field.name, field]));
  for (const name of ["model", "on", ...Object.keys(before), ...named.keys()]) {
    const field = named.get(name);
    if (!field) words[name] = before[name];
    else if (field.type === "checkbox") {
      if (field.checked) words[name] = true;
    } else if (field.value.trim()) words[name] = field.value.trim();
    if (words[name] === undefined) delete words[name];
  }
  return words;
}

/** Put words into the fields; those without a field are listed, each with a way to remove it.
 * @param {Record<string, any>} words @param {boolean} config whether a pasted model stands in for a name */
export function write(words, config) {
  const named = new Set();
  for (const field of fields()) {
    const value = words[field.name];
    named.add(field.name);
    if (field.type === "checkbox") field.checked = value === true;
    else if (field.tagName === "SELECT") choose(field, value);
    else if (field !== document.activeElement || field.value.trim() !== (value ?? ""))
      field.value = value === true ? "" : (value ?? "");
  }
  byId("f-model").placeholder = config ? "the config.json of this link" : "a name, or drop a config.json";
  const others = Object.entries(words).filter(([name]) => !named.has(name));
  fill(
    byId("others"),
    others.map(([name, value]) =>
      el(
        "p",
        { class: "other" },
        el("code", {}, value === true ? `--${name}` : `--${name} ${value}`),
        el("button", { type: "button", "data-remove": name, "aria-label": `remove --${name}` }, "remove"),
      ),
    ),
  );
  if (others.length) byId("more").open = true;
}

/** An option that the list does not have, such as that of a newer link, is added as it is. */
function choose(field, value = "") {
  if (![...field.options].some((option) => option.value === value)) field.append(el("option", { value }, value));
  field.value = value;
}

/** What stands where nothing is typed, and what follows from the rest. @param {any} bill */
export function assume(bill) {
  const { layout, job, derived } = bill,
    words = {
      seq: job.sequence_length,
      batch: job.global_batch,
      tp: layout.tp,
      pp: layout.pp,
      cp: layout.cp,
      vpp: layout.vpp,
      ep: layout.ep,
      mbs: layout.micro_batch,
      schedule: layout.schedule,
      recompute: layout.recompute,
      zero: layout.zero,
      engine: bill.engine,
      precision: job.precision,
      optimizer: job.optimizer,
    };
  for (const field of fields()) {
    if (!(field.name in words)) continue;
    if (field.tagName === "SELECT") {
      if (field.options[0].value === "") field.options[0].textContent = `${words[field.name]}, assumed`;
    } else field.placeholder = String(words[field.name]);
    field.closest("[data-word]").classList.toggle("assumed", !field.value);
  }
  const product = ["tp", "cp", "pp"].filter((name) => layout[name] > 1).map((name) => `${name} ${layout[name]}`);
  byId("derived").textContent =
    `dp ${derived.dp} = ${[bill.cluster.ranks, ...product].join(" / ")}; ` +
    `${general(derived.micro_batches)} micro-batch${derived.micro_batches === 1 ? "" : "es"} a pipeline`;
}

// --- faults ----------------------------------------------------------------------------------------------------------

const BY_CODE = [
  [/^MOD/, "model"],
  [/^HW|^CLU/, "on"],
  [/^LAY001|^LAY002/, "on"],
  [/^BAT/, "batch"],
  [/^LAY00[78]/, "seq"],
];

/**
 * The field that a fault is about: that of the word which the server blames, or where a word without a field of its own
 * is listed; else one that the fault names; "" where none is.
 * @param {any} fault
 */
function fieldOf(fault) {
  const said = [fault.flag, ...(`${fault.fix} ${fault.rule}`.match(/--[a-z-]+/g) ?? [])]
    .filter(Boolean)
    .map((flag) => flag.replace(/^--/, ""));
  const code = BY_CODE.find(([pattern]) => pattern.test(fault.code))?.[1],
    listed = fault.flag && document.querySelector(`#others [data-remove="${CSS.escape(fault.flag)}"]`);
  if (listed && !byId(`e-${fault.flag}`)) return "other";
  return [...said, code].find((name) => name && byId(`e-${name}`)) ?? "";
}

/** Show faults, each under its field and all others at the top; an empty list clears them. @param {any[]} faults */
export function blame(faults) {
  const loose = [];
  for (const place of document.querySelectorAll(".fault")) {
    fill(place).hidden = true;
    const field = byId(place.id.replace("e-", "f-"));
    field?.removeAttribute("aria-describedby");
    field?.removeAttribute("aria-invalid");
  }
  for (const fault of faults) {
    const name = fieldOf(fault),
      place = name && byId(`e-${name}`);
    if (!place) {
      loose.push(faultOf(fault));
      continue;
    }
    place.append(
      ...(place.hidden ? under(fault) : [el("details", {}, el("summary", {}, fault.what), under(fault, false))]),
    );
    place.hidden = false;
    byId(`f-${name}`).setAttribute("aria-describedby", place.id);
    byId(`f-${name}`).setAttribute("aria-invalid", "true");
    if (place.closest("details")) place.closest("details").open = true;
  }
  fill(byId("errors"), loose);
}

/** A fault in its four parts, small; the first of a field in full, others by their first line. */
const under = (fault, headed = true) => [
  el(
    "p",
    {},
    headed && el("b", {}, fault.what),
    " ",
    fault.code && el("button", { type: "button", class: "why", "data-why": fault.code }, el("code", {}, fault.code)),
  ),
  faultParts(fault),
];

// --- stepping --------------------------------------------------------------------------------------------------------

/**
 * Number boxes step through legal values alone. `legal` answers with them by word; `changed` is called for each change:
 * `settled` says whether it is one to remember.
 * @param {() => Promise<Record<string, any[]>>} legal @param {(settled: boolean) => void} changed
 */
export function listen(legal, changed) {
  let waiting = 0;
  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => changed(true), SETTLED);
  };
  for (const field of fields()) {
    field.addEventListener(field.tagName === "INPUT" && field.type !== "checkbox" ? "input" : "change", soon);
    if ("step" in field.dataset) stepper(field, legal, soon);
  }
  cards(soon);
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    changed(true);
  });
}

function stepper(field, legal, soon) {
  const word = field.labels[0].textContent,
    values = el("p", { class: "legal", hidden: true, "aria-label": `legal values of ${word}` });
  const put = (value) => {
    field.value = String(value);
    soon();
  };
  const move = async (by) => {
    const known = (await legal())[field.name] ?? [],
      now = Number(field.value || field.placeholder);
    const next = by > 0 ? known.find((value) => value > now) : known.filter((value) => value < now).at(-1);
    if (next !== undefined) put(next);
    offer();
  };
  const offer = async () => {
    const known = (await legal())[field.name] ?? [];
    values.hidden = !known.length;
    fill(
      values,
      known.map((value) =>
        el(
          "button",
          {
            type: "button",
            "aria-pressed": String(String(value) === (field.value || field.placeholder)),
            onclick: () => {
              put(value);
              values.hidden = true;
            },
          },
          value,
        ),
      ),
    );
  };
  const button = (text, by) =>
    el(
      "button",
      {
        type: "button",
        class: "step",
        tabindex: -1,
        "aria-label": `${by > 0 ? "larger" : "smaller"} ${word}`,
        onclick: () => move(by),
      },
      text,
    );
  field.before(button("\u2212", -1));
  field.after(button("+", 1), values);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    move(event.key === "ArrowUp" ? 1 : -1);
  });
  field.addEventListener("focus", offer);
  field.closest(".field").addEventListener("focusout", (event) => {
    if (!field.closest(".field").contains(event.relatedTarget)) values.hidden = true;
  });
}

/** Twice, or half, the accelerators. */
function cards(soon) {
  const field = byId("f-on");
  const times = (factor) => {
    const found = field.value.match(/^(\d+)(.*)$/),
      next = found && Number(found[1]) * factor;
    if (!next || !Number.isInteger(next)) return;
    field.value = `${next}${found[2]}`;
    soon();
  };
  const button = (text, factor) =>
    el(
      "button",
      {
        type: "button",
        class: "step",
        tabindex: -1,
        "aria-label": `${factor > 1 ? "twice" : "half"} as many accelerators`,
        onclick: () => times(factor),
      },
      text,
    );
  field.before(button("\u2212", 0.5));
  field.after(button("+", 2));
}
