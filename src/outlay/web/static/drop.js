/** What reaches the page beside its fields: dropped and pasted files, and the colours that the reader chose. */

import { byId } from "./dom.js";

/**
 * Files that are dropped anywhere, and texts that are pasted outside a text area.
 * @param {(files: {name: string, text: string}[]) => void} given
 */
export function drops(given) {
  const dropping = (on) => document.body.classList.toggle("dropping", on);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    dropping(true);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) dropping(false);
  });
  addEventListener("drop", async (event) => {
    event.preventDefault();
    dropping(false);
    const files = [...event.dataTransfer.files];
    if (files.length)
      given(await Promise.all(files.map(async (file) => ({ name: file.name, text: await file.text() }))));
  });
  addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text"),
      field = event.target.closest?.("input, textarea");
    if (!text.trim() || field?.tagName === "TEXTAREA" || (field && !text.includes("\n"))) return;
    event.preventDefault();
    given([{ name: /^\s*\{/.test(text) ? "config.json" : "pasted.sh", text }]);
  });
}

/** The colours: as the system has them, or as chosen here, which is kept. */
export function chosenTheme() {
  const select = byId("theme");
  select.value = document.documentElement.dataset.theme ?? "";
  select.addEventListener("change", () => {
    if (select.value) document.documentElement.dataset.theme = select.value;
    else delete document.documentElement.dataset.theme;
    try {
      localStorage.setItem("theme", select.value);
    } catch {
      /* storage may be switched off */
    }
  });
}
