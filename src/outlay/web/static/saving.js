/** Files that leave the page: the answer as a report, the timing diagram as pictures and as a trace. */

import { Faults, ask } from "./ask.js";
import { faultOf } from "./answer.js";
import { el, fill, save } from "./dom.js";
import { pictureOf, pngOf } from "./picture.js";

const TYPES = {
  html: "text/html",
  md: "text/markdown",
  csv: "text/csv",
  svg: "image/svg+xml",
  json: "application/json",
  png: "image/png",
};

const DEGREES = ["tp", "cp", "pp", "vpp", "ep"];

/** A name without anything that a path or a shell would read. @param {string} text */
const plain = (text) => text.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^[.-]+|[.-]+$/g, "");

/** What files of a bill are called before they say what they are. @param {any} bill */
export function stem({ model, cluster, layout }) {
  const degrees = DEGREES.filter((name) => layout[name] > 1).map((name) => name + layout[name]);
  return [model.name, cluster.name, ...degrees].map(plain).filter(Boolean).join("-").slice(0, 120);
}

/**
 * Buttons for all of them, and a line that says how it went.
 * @param {{question: any, bill: any, draw: () => Promise<any>, diagram: any}} of `diagram` is the one that is shown,
 *   where there is one */
export function savings({ question, bill, draw, diagram }) {
  const said = el("div", { class: "status", role: "status" });
  let reports = null;
  const report = async (form) => {
    reports ??= ask("report", question);
    reports.catch(() => (reports = null)); // one that failed is asked for again
    const { files } = await reports;
    return files.find((each) => each.name === `report.${form}`).text;
  };
  const button = (text, name, make) => {
    const press = () => write(made, said, `${stem(bill)}-${name}`, make),
      made = el("button", { type: "button", onclick: press }, text);
    return made;
  };
  const row = (text, ...buttons) =>
    el(
      "div",
      { class: "row-of-buttons files", role: "group", "aria-label": text },
      el("span", { class: "part" }, text),
      buttons,
    );
  const picture = () => pictureOf(diagram);
  return [
    row(
      "The answer",
      button("Page (HTML)", "report.html", () => report("html")),
      button("Markdown", "report.md", () => report("md")),
      button("CSV", "report.csv", () => report("csv")),
      button("JSON", "bill.json", () => `${JSON.stringify(bill, null, 2)}\n`),
    ),
    diagram &&
      row(
        "The timing diagram",
        button("PNG, as shown", "timing.png", () => pngOf(picture())),
        button("SVG, as shown", "timing-shown.svg", picture),
        button("SVG, whole step", "timing.svg", async () => (await draw()).svg),
        button("Perfetto trace", "timing.pftrace", () => trace(question)),
      ),
    diagram &&
      el("p", { class: "small faint" }, "A trace is opened at ui.perfetto.dev, which reads it inside your browser."),
    said,
  ];
}

/** The bytes of the trace. @param {any} question */
async function trace(question) {
  const { files } = await ask("trace", question);
  return Uint8Array.from(atob(files[0].base64), (letter) => letter.charCodeAt(0));
}

/** Make a file and hand it over; what stands against it is said. */
async function write(button, said, name, make) {
  button.disabled = true;
  fill(said, `Writing ${name} ..`);
  try {
    save(name, await make(), TYPES[name.split(".").at(-1)] ?? "application/octet-stream");
    fill(said, `${name} is saved.`);
  } catch (error) {
    fill(said, (error instanceof Faults ? error.faults : [{ what: String(error) }]).map(faultOf));
  } finally {
    button.disabled = false;
  }
}
