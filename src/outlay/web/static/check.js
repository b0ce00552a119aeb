/**
 * A file of a framework, checked: what it says, what is wrong with it where it stands, and its bill. The text is shown,
 * never run.
 */

import { Faults, ask } from "./ask.js";
import { broken, faultOf, lines } from "./answer.js";
import { announce, el, fill, save } from "./dom.js";

const GROUPS = [
  ["error", "Wrong"],
  ["warning", "Suspicious"],
  ["note", "Without effect"],
];

/**
 * The tab.
 * @param {HTMLElement} host @param {{on: () => string}} page the accelerators that stand at the top
 */
export function checkView(host, page) {
  const text = el("textarea", {
    id: "check-text",
    rows: 16,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "Paste the launch script, YAML, JSON or TOML of a run, or drop its files anywhere on the page.",
  });
  const name = el("input", { id: "check-name", value: "train.sh", autocomplete: "off", spellcheck: "false" }),
    tabs = el("p", { class: "files" }),
    result = el("div");
  const form = el(
    "form",
    { class: "card" },
    el(
      "header",
      {},
      el("h2", {}, "The files of a run"),
      el("div", { class: "tools" }, el("label", { for: "check-name" }, "name "), name),
    ),
    tabs,
    el("label", { for: "check-text", class: "unseen" }, "the text of the file"),
    text,
    el(
      "p",
      { class: "row-of-buttons" },
      el("button", { type: "submit", class: "main" }, "Check"),
      el("button", { type: "button", onclick: another }, "Another file"),
    ),
  );
  fill(host, form, result);
  /** @type {{name: string, text: string}[]} */
  let files = [{ name: "train.sh", text: "" }];
  let at = 0,
    pending = null;

  const keep = () => {
    files[at] = { name: name.value.trim() || "file", text: text.value };
  };
  function select(index) {
    at = index;
    [name.value, text.value] = [files[at].name, files[at].text];
    fill(
      tabs,
      files.length > 1 &&
        files.map((file, each) =>
          el(
            "button",
            {
              type: "button",
              "aria-pressed": String(each === at),
              onclick: () => {
                keep();
                select(each);
              },
            },
            file.name,
          ),
        ),
    );
  }
  function another() {
    keep();
    files.push({ name: `file${files.length + 1}`, text: "" });
    select(files.length - 1);
    name.focus();
  }
  async function run() {
    keep();
    const given = files.filter((file) => file.text.trim());
    if (!given.length) return;
    pending?.abort();
    pending = new AbortController();
    fill(result, el("p", { class: "hint" }, "Reading .."));
    const body = { words: {}, files: given };
    try {
      let record = await ask("check", body, pending.signal);
      const own = record.needs.find((need) => need.code === "FMT006"),
        cards = page.on().replace(/^\d+(?=x)/, own?.fix.match(/(\d+)x/)?.[1] ?? "$&");
      // its own number of the page's cards
      if (own && cards) record = await ask("check", { ...body, words: { on: cards } }, pending.signal);
      fill(result, checked(record, given));
      corrected(result, body, record);
      announce(`${record.says}; ${record.findings.length} findings`, 0);
    } catch (error) {
      if (error.name !== "AbortError")
        fill(result, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  text.addEventListener("paste", () => setTimeout(run, 50));
  return {
    take: (given) => {
      files = given;
      select(0);
      run();
    },
    add: (given) => {
      keep();
      files = [...files.filter((file) => file.text.trim()), ...given];
      select(files.length - 1);
      run();
    },
  };
}

function checked(record, files) {
  const counts = GROUPS.map(([severity, title]) => [
    record.findings.filter((each) => each.severity === severity),
    title,
  ]).filter(([found]) => found.length);
  return [
    el(
      "section",
      { class: "answer", "aria-label": "what the file says" },
      el(
        "p",
        { class: "line first" },
        el("b", { class: "key" }, "SAYS"),
        " ",
        el("span", {}, files.map((file) => file.name).join(", "), " ", record.says),
      ),
      !record.findings.length &&
        el("p", { class: "line" }, el("b", { class: "key", "data-verdict": "fits" }, "CLEAN"), " no rule is broken"),
      record.needs.map((need) =>
        el(
          "p",
          { class: "line" },
          el("b", { class: "key" }, "NEEDS"),
          " ",
          el("span", {}, `${need.what}: ${need.got}; ${need.fix}`),
        ),
      ),
      record.bill && [lines(record.bill), broken(record.bill.violations)],
    ),
    el("div", { class: "corrected" }),
    ...counts.map(([found, title]) =>
      el(
        "section",
        { class: "card" },
        el("header", {}, el("h2", {}, `${title}: ${found.length}`)),
        found.map((each) => finding(each, files)),
      ),
    ),
    notes(record),
  ];
}

/** One finding: the line it stands in, underlined; its rule; its fix. */
function finding(of, files) {
  const file = files.find((each) => of.file?.endsWith(each.name)) ?? files[0],
    line = of.line ? file.text.split(/\r?\n/)[of.line - 1] : null;
  return el(
    "div",
    { class: "finding" },
    faultOf(of),
    line !== null &&
      line !== undefined &&
      el(
        "pre",
        { class: "source", tabindex: "0", "aria-label": `line ${of.line} of ${file.name}` },
        el("span", { class: "number" }, `${of.line}  `),
        underlined(line, of.column ?? 1),
      ),
    of.cost &&
      el(
        "p",
        { class: "small" },
        typeof of.cost === "string"
          ? of.cost
          : Object.entries(of.cost)
              .map(([name, value]) => `${name} ${value}`)
              .join(", "),
      ),
  );
}

/** A line with the words from a column on underlined. @param {string} line @param {number} column from 1 */
function underlined(line, column) {
  const before = line.slice(0, column - 1),
    rest = line.slice(column - 1),
    marked = rest.match(/^\S+(?:[ =]\S+)?/)?.[0].replace(/\s*\\$/, "") ?? rest;
  return [before, el("mark", {}, marked), rest.slice(marked.length)];
}

function notes(record) {
  const said = record.files.flatMap((file) => file.read?.notes ?? []);
  return (
    said.length > 0 &&
    el(
      "section",
      { class: "card notes" },
      el("header", {}, el("h2", {}, "How it was read")),
      el(
        "ul",
        {},
        said.map((note) => el("li", {}, note)),
      ),
    )
  );
}

/** A corrected copy, where there is one: its difference is shown before it is saved. */
async function corrected(result, body, record) {
  if (!record.findings.some((each) => each.edits?.length)) return;
  let found;
  try {
    found = await ask("fix", body);
  } catch {
    return;
  }
  const place = result.querySelector(".corrected");
  for (const file of found.files ?? []) {
    const old =
      body.files.find((each) => stem(each.name) === stem(file.name).replace(/\.fixed$/, ""))?.text ??
      body.files[0].text;
    place?.append(
      el(
        "section",
        { class: "card" },
        el(
          "header",
          {},
          el("h2", {}, `Corrected copy: ${file.name}`),
          el(
            "div",
            { class: "tools" },
            el("button", { type: "button", onclick: () => save(file.name, file.text) }, "Save"),
          ),
        ),
        el(
          "pre",
          { class: "source difference", tabindex: "0", "aria-label": "difference" },
          difference(old, file.text),
        ),
      ),
    );
  }
}

const stem = (name) => name.replace(/\.[^.]*$/, "");

/** Lines that differ, with a line around them. @param {string} old @param {string} now */
function difference(old, now) {
  const before = old.split("\n"),
    after = now.split("\n"),
    kept = new Set(before),
    made = [],
    there = new Set(after);
  before.forEach((line) => {
    if (!there.has(line)) made.push(el("del", {}, `\u2212 ${line}\n`));
  });
  after.forEach((line) => {
    if (!kept.has(line)) made.push(el("ins", {}, `+ ${line}\n`));
  });
  return made;
}
