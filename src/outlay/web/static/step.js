/** The step as one stacked bar on an axis of seconds; under it, thin, the traffic as long as it is alone. */

import { responsive, tableTools, ticks, wide } from "./bars.js";
import { el, fill, svg, table, why } from "./dom.js";
import { AXIS_OF, label, stepQuantity, tone } from "./labels.js";
import { GB, addingUp, duration, figure, percent } from "./numbers.js";

/** Parts of the step, the longest first. @param {any} bill */
const sorted = (bill) => bill.step.items.filter((item) => item.seconds > 0).sort((a, b) => b.seconds - a.seconds);

/** The traffic that a part of the step pays for; null where it is no exchange. */
const traffic = (bill, name) => bill.traffic.items.find((each) => each.axis === AXIS_OF[name]) ?? null;

/** The picture, its legend and its table. Answers with a function that shows another bill.
 * @param {HTMLElement} host */
export function stepView(host) {
  let bill = null;
  const picture = el("div", { class: "picture" }),
    legend = el("div");
  fill(host, picture, legend);
  const redraw = responsive(picture, (width) => bill && draw(picture, bill, width));
  const refresh = tableTools("step", host, "the step", () => trafficTable(bill));
  return (next) => {
    bill = next;
    fill(legend, partsTable(bill));
    redraw();
    refresh();
  };
}

function draw(picture, bill, width) {
  const items = sorted(bill),
    [, high] = bill.step.band_seconds,
    low = bill.step.band_seconds[0];
  const alone = bill.traffic.items.filter((each) => each.seconds > 0);
  const most = Math.max(high, ...alone.map((each) => each.seconds)) * 1.01;
  const x = (seconds) => (seconds / most) * width,
    parts = [],
    y = 4,
    tall = 30;
  let at = 0;
  for (const item of items) {
    const from = x(at),
      to = x((at += item.seconds)),
      long = Math.max(to - from - 1, 0.5),
      kind = tone(item.name);
    const shape = { x: from, y, width: long, height: tall, "data-why": stepQuantity(item.name) };
    const title = svg(
      "title",
      {},
      `${label(item.name)} ${duration(item.seconds)}, ${percent(item.seconds / bill.step.seconds)}`,
    );
    parts.push(
      kind === "idle"
        ? svg("rect", { ...shape, class: "idle-box", fill: "url(#idle-fill)" }, title)
        : svg("rect", { ...shape, class: kind }, title),
    );
    const said = [`${label(item.name)} ${duration(item.seconds)}`, duration(item.seconds)].find(
      (text) => wide(text) + 10 < long,
    );
    if (said) parts.push(svg("text", { x: from + 6, y: y + 20, class: `still t${kind}` }, said));
  }
  const mid = y + tall - 4; // under the words of the parts
  parts.push(
    svg("path", {
      class: "whisker",
      d: `M${x(low)} ${mid}H${x(high)}M${x(low)} ${mid - 4}v8M${x(high)} ${mid - 4}v8`,
    }),
  );
  let under = y + tall + 5;
  for (const each of alone) {
    parts.push(
      svg("rect", { x: 0, y: under, width: Math.max(x(each.seconds), 1), height: 4, class: "C hidden-work" }),
      svg("rect", {
        x: 0,
        y: under,
        width: Math.max(x(Math.min(each.exposed_seconds, each.seconds)), 0.5),
        height: 4,
        class: "C",
      }),
    );
    under += 7;
  }
  for (const tick of ticks(most, width < 560 ? 4 : 8)) {
    const last = x(tick) > width - 20;
    parts.push(
      svg("path", { class: "tick", d: `M${x(tick)} ${under + 1}v4` }),
      svg(
        "text",
        { x: x(tick), y: under + 18, class: `small ${tick === 0 ? "" : last ? "end" : "mid"}` },
        tick === 0 ? "0 s" : String(Number(tick.toPrecision(6))),
      ),
    );
  }
  const spoken =
    `One step of ${duration(bill.step.seconds)}: ` +
    items.map((item) => `${label(item.name)} ${duration(item.seconds)}`).join(", ");
  const note = alone.length
    ? "Thin lines: the exchange of each axis as long as it takes alone; pale where it is hidden under compute."
    : "";
  fill(
    picture,
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${under + 22}`, width, height: under + 22, role: "img", "aria-label": spoken },
      parts,
    ),
    note && el("p", { class: "small faint" }, note),
  );
}

/** The parts, which are the legend of the picture. @param {any} bill */
function partsTable(bill) {
  const items = sorted(bill),
    places = bill.step.seconds >= 1 ? 2 : 4,
    total = bill.step.seconds;
  const seconds = addingUp(
      items.map((item) => item.seconds),
      places,
    ),
    shares = addingUp(
      items.map((item) => (100 * item.seconds) / total),
      1,
    );
  const rows = items.map((item, at) => {
    const sent = traffic(bill, item.name),
      kind = tone(item.name);
    return [
      [
        el("i", { class: `swatch ${kind === "idle" ? "idle-swatch" : kind}`, "aria-hidden": "true" }),
        why(stepQuantity(item.name), label(item.name)),
      ],
      seconds[at],
      `${shares[at]} %`,
      sent ? duration(sent.seconds) : "",
      sent ? `${figure(sent.bytes / GB, 4)} GB, ${sent.link}` : "",
    ];
  });
  rows.push([why("step", "step"), addingUp([total], places)[0], "100.0 %", "", ""]);
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": "parts of the step" },
    table({ heads: ["one step", "seconds", "share", "alone", "sent by a rank"], rows, name: "parts total-last" }),
  );
}

function trafficTable(bill) {
  const heads = ["part", "seconds", "low", "high", "kind", "band"];
  const rows = bill.step.items.map((item) => [
    label(item.name),
    figure(item.seconds, 5),
    figure(item.low, 5),
    figure(item.high, 5),
    item.kind,
    item.band ?? "exact",
  ]);
  return { heads, rows, element: table({ heads, rows }) };
}
