/** The dialogs of what leaves the page: the command to copy, the files of the answer, those of frameworks. */

import { Faults, ask } from "./ask.js";
import { faultOf } from "./answer.js";
import { byId, copy, el, fill, save } from "./dom.js";
import { savings } from "./saving.js";
import { line } from "./words.js";

const FRAMEWORKS = [
  "megatron",
  "torchtitan",
  "megatron-bridge",
  "nanotron",
  "deepspeed",
  "accelerate",
  "trainer",
  "axolotl",
  "llama-factory",
  "maxtext",
];
const THEIRS = {
  megatron: "megatron",
  torchtitan: "torchtitan",
  fsdp2: "torchtitan",
  nanotron: "nanotron",
  deepspeed: "deepspeed",
  maxtext: "maxtext",
};

/** The command as a text to copy. @param {string} text */
export function showCommand(text) {
  const button = el("button", { type: "button", class: "main", onclick: () => copy(button, text) }, "Copy");
  open(
    "The same on a command line",
    el("pre", { class: "source", tabindex: "0", "aria-label": "command" }, text),
    el("p", { class: "row-of-buttons" }, button),
  );
}

/** The dialog of exports.
 * @param {{question: any, bill: any, draw: () => Promise<any>, diagram: any}} of */
export function showExports(of) {
  const { words, config } = of.question,
    { bill } = of;
  const choice = el(
      "select",
      { id: "framework" },
      FRAMEWORKS.map((each) => el("option", { value: each }, each)),
    ),
    place = el("div");
  choice.value = THEIRS[bill?.engine] ?? "megatron";
  const show = async () => {
    fill(place, el("p", { class: "hint" }, "Writing .."));
    try {
      const made = await ask("export", { words: { ...words, framework: choice.value }, config });
      fill(place, written(made, line("export", words, choice.value)));
    } catch (error) {
      fill(place, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
    }
  };
  choice.addEventListener("change", show);
  open(
    "Export",
    bill && savings(of),
    el("p", { class: "field row" }, el("label", { for: "framework" }, "the files of a framework"), choice),
    place,
  );
  show();
}

/** What was written, and what the framework cannot say. @param {any} made @param {string} command */
function written(made, command) {
  const files =
    made.text === null || made.text === undefined
      ? (made.files ?? [])
      : [{ path: made.file, text: made.text }, ...(made.files ?? []).filter((each) => each.text)];
  const lost = [...(made.lost ?? []), ...(made.notes ?? [])].map((each) =>
    typeof each === "string"
      ? each
      : [each.what ?? each.setting, each.why ?? each.got ?? each.reason].filter(Boolean).join(": "),
  );
  return [
    (made.violations ?? []).map(faultOf),
    files.map((file) => {
      const name = file.path ?? file.name ?? "file",
        copied = el("button", { type: "button", onclick: () => copy(copied, file.text) }, "Copy");
      return [
        el(
          "p",
          { class: "row-of-buttons" },
          el("b", {}, name),
          copied,
          el("button", { type: "button", onclick: () => save(name, file.text) }, "Save"),
        ),
        el("pre", { class: "source tall", tabindex: "0", "aria-label": name }, file.text),
      ];
    }),
    lost.length > 0 && [
      el("h3", {}, "What it cannot say, or says otherwise"),
      el(
        "ul",
        {},
        lost.map((each) => el("li", {}, each)),
      ),
    ],
    el("p", { class: "small faint" }, el("code", {}, command)),
  ];
}

/** Open the dialog. @param {string} title @param {...any} children */
function open(title, ...children) {
  const dialog = byId("dialog");
  fill(
    dialog,
    el(
      "header",
      {},
      el("h2", { id: "h-dialog" }, title),
      el("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    ),
    ...children,
  );
  dialog.showModal();
}
