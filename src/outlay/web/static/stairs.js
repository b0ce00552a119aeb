/** What is typed as a staircase, drawn while it is typed: a digit works, a dot idles. */

import { el, fill, svg } from "./dom.js";

const CELL = 26,
  MOST = 40; // cells of a row that are drawn

/** Draw the text of a box under it. @param {HTMLTextAreaElement} box */
export function preview(box) {
  const host = box.parentElement.querySelector(".preview") ?? el("div", { class: "preview", "aria-hidden": "true" });
  if (!host.parentElement) box.after(host);
  const rows = box.value.split(/[/\n]/).map((row) => row.replaceAll(" ", "").slice(0, MOST));
  if (!box.value.trim()) return host.remove();
  const wide = Math.max(...rows.map((row) => row.length)) * CELL + 2;
  const cells = rows.slice(0, MOST).flatMap((row, rank) => [...row].map((letter, slot) => cell(letter, rank, slot)));
  const size = { width: wide, height: Math.min(rows.length, MOST) * CELL + 2 };
  return fill(host, svg("svg", size, cells));
}

function cell(letter, rank, slot) {
  const at = { x: slot * CELL + 1, y: rank * CELL + 1 },
    box = (name) => svg("rect", { ...at, width: CELL, height: CELL, class: name });
  if (/[._-]/.test(letter)) {
    return [box("rest"), svg("path", { d: `M${at.x + 8} ${at.y + 18}l10-10`, class: "idle-line" })];
  }
  if (!/\d/.test(letter)) return [box("off")];
  return [box("F edge"), svg("text", { x: at.x + CELL / 2, y: at.y + 17, class: "n tF" }, letter)];
}
