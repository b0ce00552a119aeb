/** Memory of every distinct rank against the wall: exact parts solid, modelled parts hatched. */

import { responsive, tableTools, ticks, wide } from "./bars.js";
import { el, fill, svg, table, why } from "./dom.js";
import { family, label, memoryQuantity } from "./labels.js";
import { GB, GIB, addingUp, both, figure, gib } from "./numbers.js";
import { peakBand } from "./answer.js";

const MOST_ROWS = 12; // stages drawn at once; more on request

/** What a stage holds, in words. @param {any} rank */
const holds = (rank) => {
  const parts = [`${rank.layers} layer${rank.layers === 1 ? "" : "s"}`];
  if (rank.embedding) parts.push("embedding");
  if (rank.head) parts.push(rank.embedding ? "head" : "head and loss");
  return parts.join(" + ");
};

/**
 * Rows that differ, the heaviest first; equal stages are one row.
 * @param {any} memory
 * @param {any[] | null} detailed
 */
function rowsOf(memory, detailed) {
  const found = new Map();
  for (const rank of memory.ranks) {
    const key = [rank.peak_bytes, rank.layers, rank.embedding, rank.head].join();
    const row = found.get(key);
    if (row) row.stages.push(rank.stage);
    else found.set(key, { ...rank, stages: [rank.stage], parts: partsOf(memory, rank, detailed) });
  }
  const worst = memory.worst_rank.stage;
  return [...found.values()].sort((a, b) => Number(b.stages.includes(worst)) - Number(a.stages.includes(worst)));
}

function partsOf(memory, rank, detailed) {
  if (rank.stage === memory.worst_rank.stage) return memory.items;
  const more = detailed?.find((each) => each.stage === rank.stage);
  if (more) return more.items;
  const rest = rank.peak_bytes - rank.allocated_bytes;
  return [
    { name: "tensors", bytes: rank.allocated_bytes, kind: "exact" },
    { name: "buffers", bytes: rest, kind: "modelled" },
  ];
}

const stagesText = ({ stages }) =>
  stages.length === 1
    ? `stage ${stages[0]}`
    : `stages ${stages.length < 4 ? stages.join(", ") : `${stages[0]} .. ${stages.at(-1)}`}`;

/** How many ranks a row stands for. @param {any} row */
function alike(row) {
  const ranks = row.ranks * row.stages.length;
  return `${ranks} rank${ranks === 1 ? "" : "s alike"}`;
}

/** The picture, its legend and its table. Answers with a function that shows another bill.
 * @param {HTMLElement} host */
export function memoryView(host) {
  let bill = null,
    detailed = null,
    all = false;
  const picture = el("div", { class: "picture" }),
    legend = el("div"),
    stock = el("p", { class: "stock" });
  fill(host, stock, picture, legend);
  const redraw = responsive(
    picture,
    (width) =>
      bill &&
      draw(picture, bill.memory, rowsOf(bill.memory, detailed), width, all, () => {
        all = true;
        redraw();
      }),
  );
  const refresh = tableTools("memory", host, "memory of every stage", () => stageTable(bill.memory));
  return (next, parts = null) => {
    [bill, detailed] = [next, parts];
    stock.textContent =
      `Undivided state ${both(bill.memory.unsharded_state_bytes)}; the ${bill.cluster.ranks} accelerators have ` +
      `${both(bill.memory.capacity_bytes * bill.cluster.ranks)}.`;
    fill(legend, partsTable(bill));
    redraw();
    refresh();
  };
}

function draw(picture, memory, rows, width, all, showAll) {
  const narrow = width < 560,
    left = narrow ? 0 : Math.max(190, ...rows.map((row) => wide(`${stagesText(row)}: ${alike(row)}`) + 22)),
    right = narrow ? 66 : 92,
    shown = all ? rows : rows.slice(0, MOST_ROWS);
  const [, high] = peakBand(memory),
    most = Math.max(high, memory.capacity_bytes, ...rows.map((row) => row.peak_bytes)) * 1.02;
  const plot = width - left - right,
    x = (bytes) => left + (bytes / most) * plot,
    top = 24,
    tall = narrow ? 44 : 36;
  const bottom = top + shown.length * tall,
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
  shown.forEach((row, at) =>
    parts.push(
      ...bar(row, memory, { x, y: top + at * tall + (narrow ? 18 : 6), width, narrow, first: at === 0, high }),
    ),
  );
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
  const made = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${bottom + 26}`,
      width,
      height: bottom + 26,
      role: "img",
      "aria-label": spoken(memory, rows),
    },
    parts,
  );
  fill(
    picture,
    made,
    shown.length < rows.length && el("button", { type: "button", onclick: showAll }, `Show all ${rows.length} rows`),
  );
}

/** One row: its label, its parts, a whisker for the band, its peak at the right. */
function bar(row, memory, { x, y, width, narrow, first, high }) {
  const parts = [],
    tall = 20;
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
  const who = alike(row);
  if (narrow)
    parts.push(
      svg("text", { x: 0, y: y - 5, class: first ? "strong" : "" }, `${stagesText(row)}: ${who}, ${row.layers} layers`),
    );
  else {
    parts.push(
      svg("text", { x: 0, y: y + 9, class: first ? "strong" : "" }, `${stagesText(row)}: ${who}`),
      svg("text", { x: 0, y: y + 23, class: "small faint" }, holds(row)),
    );
  }
  parts.push(
    svg("text", { x: width, y: y + 9, class: "end strong" }, gib(row.peak_bytes)),
    svg("text", { x: width, y: y + 23, class: "end small faint" }, `${figure(row.peak_bytes / GB)} GB`),
  );
  return parts;
}

const spoken = (memory, rows) =>
  `Memory against the wall of ${gib(memory.usable_bytes)}: ` +
  rows
    .slice(0, MOST_ROWS)
    .map((row) => `${stagesText(row)} ${gib(row.peak_bytes)}`)
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

function stageTable(memory) {
  const heads = ["stage", "ranks", "layers", "peak GiB", "peak GB", "allocated GiB"];
  const rows = memory.ranks.map((rank) => [
    `${rank.stage}`,
    `${rank.ranks}`,
    holds(rank),
    figure(rank.peak_bytes / GIB, 4),
    figure(rank.peak_bytes / GB, 4),
    figure(rank.allocated_bytes / GIB, 4),
  ]);
  return { heads, rows, element: table({ heads, rows }) };
}
