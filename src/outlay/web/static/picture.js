/** A timing diagram as a file of its own: in light colours, with its title and its legend, free of the page's sheet. */

import { wide } from "./bars.js";
import { svg } from "./dom.js";

const SCALE = 2; // pixels of a PNG for each of the page
const MARGIN = 16,
  LINE = 17;
const SHOWN = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-opacity",
  "font-size", "font-style", "font-weight", "text-anchor",
]; // prettier-ignore
const PAGES_OWN = /^(class|role|tabindex|aria-|data-)/; // attributes that mean nothing outside of the page
const USUAL = {
  "fill-opacity": "1",
  "stroke-opacity": "1",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-linecap": "butt",
  "font-style": "normal",
  "font-weight": "400",
  "text-anchor": "start",
};

/** The picture as it is shown, as SVG. @param {import("./diagram.js").Diagram} diagram @returns {string} */
export function pictureOf(diagram) {
  if (!diagram.svg) diagram.lay(1100); // it has not been in sight yet
  return inLight(() => new XMLSerializer().serializeToString(framed(diagram)));
}

/** The same as PNG, at twice its size. @param {string} text of the SVG @returns {Promise<Blob>} */
export async function pngOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [SCALE * image.width, SCALE * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture is too large"))), "image/png");
  });
}

/** What is made while the page's colours are the light ones; nothing is painted meanwhile. @param {() => T} make
 * @returns {T} @template T */
function inLight(make) {
  const { dataset } = document.documentElement,
    before = dataset.theme;
  dataset.theme = "light";
  try {
    return make();
  } finally {
    if (before === undefined) delete dataset.theme;
    else dataset.theme = before;
  }
}

/** The diagram under its title, over its legend, on paper. */
function framed(diagram) {
  const width = Number(diagram.svg.getAttribute("width")),
    room = width - 2 * MARGIN,
    texts = wrapped(diagram.sentence.textContent, room);
  const head = MARGIN + LINE + texts.length * LINE + 8,
    foot = head + Number(diagram.svg.getAttribute("height")) + 12;
  const { made: legend, bottom } = legendOf(diagram.legend, room, foot);
  const sheet = getComputedStyle(document.documentElement),
    paper = sheet.getPropertyValue("--paper").trim(),
    ink = sheet.getPropertyValue("--ink").trim();
  const line = (y, text, more = {}) => svg("text", { x: MARGIN, y, "font-size": "12px", fill: ink, ...more }, text);
  const whole = { width, height: bottom + MARGIN, "font-family": "system-ui, 'DejaVu Sans', sans-serif" };
  return svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${whole.width} ${whole.height}`, ...whole },
    svg("title", {}, diagram.record.title),
    svg("defs", {}, [...document.querySelectorAll("pattern[id^=idle-]")].map(alone)),
    svg("rect", { width: whole.width, height: whole.height, fill: paper }),
    line(MARGIN + 10, diagram.record.title, { "font-size": "14px", "font-weight": 600 }),
    texts.map((text, at) => line(MARGIN + 10 + (at + 1) * LINE, text)),
    svg("g", { transform: `translate(0 ${head})` }, [...diagram.svg.children].map(alone)),
    legend.map(([mark, x, y, text]) => [
      svg("g", { transform: `translate(${x} ${y})` }, mark),
      line(y + 10, text, { x: x + 20 }),
    ]),
  );
}

/** A copy of an element that needs no sheet: what the sheet says stands in its attributes. @param {Element} element */
function alone(element) {
  const made = element.cloneNode(false),
    own = element.getAttribute("fill");
  for (const { name } of [...made.attributes]) if (PAGES_OWN.test(name)) made.removeAttribute(name);
  if (!["g", "use", "pattern"].includes(element.localName)) dress(made, getComputedStyle(element));
  if (own?.startsWith("url(")) made.setAttribute("fill", own);
  for (const child of element.childNodes) made.append(child instanceof Element ? alone(child) : child.cloneNode());
  return made;
}

function dress(made, style) {
  const text = made.localName === "text";
  for (const name of SHOWN) {
    if (!text && /^(font|text)/.test(name)) continue;
    const value = style.getPropertyValue(name);
    if (value !== USUAL[name]) made.setAttribute(name, value);
  }
}

/** A text in lines that fit. @param {string} text @param {number} room */
function wrapped(text, room) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (wide(longer) > room && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** What the colours and hatches mean: a mark, its place, its word. */
function legendOf(legend, room, top) {
  const made = [];
  let x = MARGIN,
    y = top;
  for (const entry of legend.children) {
    const text = entry.textContent,
      needs = 20 + wide(text) + 18;
    if (x + needs > room && x > MARGIN) [x, y] = [MARGIN, y + LINE + 2];
    made.push([markOf(entry.firstElementChild), x, y, text]);
    x += needs;
  }
  return { made, bottom: y + 12 };
}

function markOf(swatch) {
  const hatch = swatch.querySelector("rect");
  const fill = hatch ? hatch.getAttribute("fill") : getComputedStyle(swatch).backgroundColor;
  return svg("rect", { width: 14, height: 12, fill });
}
