/** Memory of every distinct rank against the wall: exact parts solid, modelled parts hatched. */

import { allRanks, responsive, tableTools, ticks, wide } from "./bars.js";
import { el, fill, svg, table, why } from "./dom.js";
import { family, label, memoryQuantity } from "./labels.js";
import { GB, GIB, addingUp, both, figure, gib, whole } from "./numbers.js";
import { peakBand } from "./answer.js";
import { alike, everyRank, holds, nameOf, ranksOf, rowsOf } from "./ranks.js";

const MOST_ROWS = 12; // stages drawn at once; more on request

/** The picture, its legend and its table. Answers with a function that shows another bill.
 * @param {HTMLElement} host */
export function memoryView(host) {
  let bill = null,
    detailed = null,
    all = false,
    every = false;
  const picture = el("div", { class: "picture" }),
    legend = el("div"),
    stock = el("p", { class: "stock" }),
    more = el("p", { class: "hint" });
  fill(host, stock, picture, more, legend);
  const redraw = responsive(picture, (width) => {
    if (!bill) return;
    const rows = every ? everyRank(bill.memory, detailed) : rowsOf(bill.memory, detailed),
      shown = all || every ? rows : rows.slice(0, MOST_ROWS),
      ranks = ranksOf(bill.memory);
    fill(picture, draw(bill.memory, shown, width, every));
    fill(
      more,
      every && rows.length < ranks && `The first ${whole(rows.length)} of ${whole(ranks)} ranks are drawn.`,
      shown.length < rows.length &&
        el("button", { type: "button", onclick: () => [(all = true), redraw()] }, `Show all ${rows.length} rows`),
    );
    more.hidden = !more.hasChildNodes();
  });
  const refresh = tableTools("memory", host, "memory of every stage", () => stageTable(bill.memory, every));
  const opener = allRanks("memory", (opened) => {
    every = opened;
    redraw();
    refresh();
  });
  return (next, parts = null) => {
    [bill, detailed] = [next, parts];
    stock.textContent =
      `Undivided state ${both(bill.memory.unsharded_state_bytes)}; the ${bill.cluster.ranks} accelerators have ` +
      `${both(bill.memory.capacity_bytes * bill.cluster.ranks)}.`;
    fill(legend, partsTable(bill));
    opener(rowsOf(bill.memory, null).length < ranksOf(bill.memory) ? ranksOf(bill.memory) : 0);
    redraw();
    refresh();
  };
}

/** Where everything stands: a row with room for what it holds, or of one line where every rank has its own.
 * @param {any[]} rows @param {number} width @param {boolean} every */
function frame(rows, width, every) {
  const narrow = width < 560;
  if (every) return { narrow, left: narrow ? 112 : 190, right: narrow ? 66 : 92, pitch: 15, over: 2, tall: 11 };
  const left = narrow ? 0 : Math.max(190, ...rows.map((row) => wide(nameOf(row) + alike(row)) + 22));
  return { narrow, left, right: narrow ? 66 : 92, pitch: narrow ? 44 : 36, over: narrow ? 18 : 6, tall: 20 };
}

function draw(memory, rows, width, every) {
  const at = { width, high: peakBand(memory)[1], ...frame(rows, width, every) };
  const most = Math.max(at.high, memory.capacity_bytes, ...rows.map((row) => row.peak_bytes)) * 1.02;
  const plot = width - at.left - at.right,
    x = (bytes) => at.left + (bytes / most) * plot,
    top = 24,
    { narrow } = at;
  const bottom = top + rows.length * at.pitch,
    parts = [];
  parts.push(
    svg("rect", {
      x: x(memory.usable_bytes),
      y: top - 4,
      width: x(memory.capacity_bytes) - x(memory.usable_bytes),
      height: bottom - top + 8,
      fill: "url(#reserved)",
    }),
  );
  const marked = every ? Math.max(0, rows.findIndex((row) => row.rank === memory.worst_rank.rank)) : 0;
  rows.forEach((row, index) => {
    const y = top + index * at.pitch + at.over,
      first = index === marked;
    parts.push(...bar(row, memory, { ...at, x, y, first }), ...(every ? oneLine : texts)(row, { ...at, y, first }));
  });
  for (const tick of ticks(most / GIB, narrow ? 4 : 8)) {
    parts.push(
      svg("path", { class: "tick", d: `M${x(tick * GIB)} ${bottom + 4}v4` }),
      svg(
        "text",
        { x: x(tick * GIB), y: bottom + 20, class: `small ${tick === 0 && narrow ? "" : "mid"}` },
        `${tick}${tick === 0 ? " GiB" : ""}`,
      ),
    );
  }
  const wall = x(memory.usable_bytes),
    said = `wall ${figure(memory.usable_bytes / GIB)} GiB usable`;
  const fits = wall + (6.4 * said.length) / 2 < width;
  parts.push(
    svg("path", { class: "wall", d: `M${wall} ${top - 6}V${bottom + 6}` }),
    svg("text", { x: fits ? wall : Math.min(width, wall + 60), y: 12, class: `${fits ? "mid" : "end"} strong` }, said),
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${bottom + 26}`,
      width,
      height: bottom + 26,
      role: "img",
      "aria-label": spoken(memory, rowsOf(memory, null)),
    },
    parts,
  );
}

/** One row: its parts, and a whisker for the band. */
function bar(row, memory, { x, y, tall, first, high }) {
  const parts = [];
  let at = 0;
  for (const part of row.parts) {
    if (part.bytes <= 0) continue;
    const from = x(at),
      to = x((at += part.bytes)),
      long = Math.max(to - from - 1, 0.5);
    const shape = {
      x: from,
      y,
      width: long,
      height: tall,
      "data-why": memoryQuantity(part.name),
      class: `m-${part.name === "tensors" ? "tensors" : family(part.name)}`,
    };
    parts.push(svg("rect", shape, svg("title", {}, `${label(part.name)} ${gib(part.bytes)}, ${part.kind}`)));
    if (part.kind !== "exact")
      parts.push(svg("rect", { x: from, y, width: long, height: tall, fill: "url(#modelled)", class: "still" }));
  }
  if (first) {
    const low = x(peakBand(memory)[0]),
      end = x(high),
      mid = y + tall / 2;
    parts.push(svg("path", { class: "whisker", d: `M${low} ${mid}H${end}M${low} ${mid - 4}v8M${end} ${mid - 4}v8` }));
  }
  return parts;
}

/** What a row says: its name and what it holds, its peak at the right. */
function texts(row, { y, width, narrow, first }) {
  const name = nameOf(row) + alike(row),
    strong = first ? "strong" : "";
  const left = narrow
    ? [svg("text", { x: 0, y: y - 5, class: strong }, `${name}, ${row.layers} layers`)]
    : [
        svg("text", { x: 0, y: y + 9, class: strong }, name),
        svg("text", { x: 0, y: y + 23, class: "small faint" }, holds(row)),
      ];
  return [
    ...left,
    svg("text", { x: width, y: y + 9, class: "end strong" }, gib(row.peak_bytes)),
    svg("text", { x: width, y: y + 23, class: "end small faint" }, `${figure(row.peak_bytes / GB)} GB`),
  ];
}

/** The same in one line. */
const oneLine = (row, { y, width, first }) => [
  svg("text", { x: 0, y: y + 9, class: `small ${first ? "strong" : ""}` }, nameOf(row)),
  svg("text", { x: width, y: y + 9, class: `end small ${first ? "strong" : ""}` }, gib(row.peak_bytes)),
];

const spoken = (memory, rows) =>
  `Memory against the wall of ${gib(memory.usable_bytes)}: ` +
  rows
    .slice(0, MOST_ROWS)
    .map((row) => `${nameOf(row)} ${gib(row.peak_bytes)}`)
    .join(", ");

/** The parts of the heaviest rank, which are the legend of the picture. @param {any} bill */
function partsTable({ memory }) {
  const items = memory.items.filter((item) => item.bytes > 0),
    places = items.some((item) => item.bytes >= 1e12) ? 0 : 2;
  const inGib = addingUp(
      items.map((item) => item.bytes / GIB),
      places,
    ),
    inGb = addingUp(
      items.map((item) => item.bytes / GB),
      places,
    );
  const [low, high] = peakBand(memory);
  const how = (item) =>
    item.kind === "exact" ? "exact" : `${item.band}, ${figure(item.low / GIB)} to ${figure(item.high / GIB)} GiB`;
  const rows = items.map((item, at) => [
    [
      el("i", {
        class: `swatch m-${family(item.name)} ${item.kind === "exact" ? "" : "hatched"}`,
        "aria-hidden": "true",
      }),
      why(memoryQuantity(item.name), label(item.name)),
    ],
    inGib[at],
    inGb[at],
    how(item),
  ]);
  const peak = [
    why("memory", "peak"),
    figure(memory.peak_bytes / GIB, 2 + String(Math.trunc(memory.peak_bytes / GIB)).length),
    figure(memory.peak_bytes / GB, 2 + String(Math.trunc(memory.peak_bytes / GB)).length),
    `${figure(low / GIB)} to ${figure(high / GIB)} GiB`,
  ];
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": "parts of the heaviest rank" },
    table({
      heads: [`rank ${memory.worst_rank.rank}, stage ${memory.worst_rank.stage}`, "GiB", "GB", "how it is known"],
      rows: [...rows, peak],
      name: "parts total-last",
    }),
  );
}

function stageTable(memory, every) {
  const heads = [...(every ? ["rank", "stage"] : ["stage", "ranks"]), "layers", "peak GiB", "peak GB", "allocated GiB"];
  const rows = (every ? everyRank(memory, null) : memory.ranks).map((row) => [
    ...(every ? [`${row.rank}`, `${row.stage}`] : [`${row.stage}`, `${row.ranks}`]),
    holds(row),
    figure(row.peak_bytes / GIB, 4),
    figure(row.peak_bytes / GB, 4),
    figure(row.allocated_bytes / GIB, 4),
  ]);
  return { heads, rows, element: table({ heads, rows }) };
}
