/** Elements made by hand: texts go in as text, never as markup, so that a config cannot write into the page. */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */

/** @param {Element} made @param {Record<string, any>} attributes @param {Child[]} children */
function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) {
      made.append(child instanceof Node ? child : String(child));
    }
  }
  return made;
}

/**
 * An element of HTML.
 * @param {string} name @param {Record<string, any>} [attributes] @param {...any} children @returns {HTMLElement}
 */
export const el = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);

/**
 * An element of SVG.
 * @param {string} name @param {Record<string, any>} [attributes] @param {...any} children @returns {SVGElement}
 */
export const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** Put new children in place of the old ones. @param {Element} into @param {...any} children */
export const fill = (into, ...children) => {
  into.replaceChildren(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
  return into;
};

/** A table; columns named in `left` stand at the left, all others are numbers. A head may be a node.
 * @param {{heads: any[], rows: any[][], left?: number, caption?: string, name?: string}} of */
export function table({ heads, rows, left = 1, caption = "", name = "" }) {
  const cell = (kind, value, at, more = {}) => el(kind, { class: at < left ? "l" : null, ...more }, value);
  return el(
    "table",
    { class: name || null },
    caption && el("caption", {}, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((head, at) => cell("th", head, at, { scope: "col" })),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map((row) =>
        el(
          "tr",
          {},
          row.map((value, at) => (at === 0 ? cell("th", value, at, { scope: "row" }) : cell("td", value, at))),
        ),
      ),
    ),
  );
}

/** A table that scrolls by itself on a narrow screen, and by keys. @param {string} label @param {Element} made */
export const scrolling = (label, made) =>
  el("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, made);

let waiting = 0;
/** Say something to a screen reader, once typing has settled. @param {string} text @param {number} [after] ms */
export function announce(text, after = 700) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    byId("said").textContent = text;
  }, after);
}

/** A button that asks where a figure comes from. @param {string} quantity @param {...any} children */
export const why = (quantity, ...children) =>
  el(
    "button",
    { type: "button", class: "why", "data-why": quantity, title: `where it comes from: ${quantity}` },
    children,
  );

/** Copy a text and say so on the button. @param {HTMLElement} button @param {string} text */
export async function copy(button, text) {
  const word = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied: the browser does not allow it";
  }
  announce(button.textContent, 0);
  setTimeout(() => {
    button.textContent = word;
  }, 1500);
}

/** Hand something over as a file. @param {string} name @param {BlobPart} content @param {string} [type] */
export function save(name, content, type = "text/plain") {
  const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
