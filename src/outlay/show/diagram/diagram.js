// Zoom and pan of a timing diagram. The picture in the file stays as it is; this draws a part of it over the rows.
// Rules as in diagram_rows.py: numbers from 14 px, outlines from 4 px, below that buckets of 2 px.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg", NUMBERED = 14, OUTLINED = 4, BUCKET = 2, PURE = 0.9;
  const svg = document.querySelector("svg"), said = document.getElementById("said");
  let data = null, from = 0, to = 0, layer = null;

  const load = () => {
    data = JSON.parse(document.getElementById("data").textContent);
    for (const row of data.rows) {
      let time = 0;
      row.start = row.d.map(([gap, long]) => { const at = time + gap; time = at + long; return at; });
      row.end = row.d.map(([, long], at) => row.start[at] + long);
    }
    to = data.end;
  };
  const words = (time) => {
    const value = time / data.end * data.makespan, seconds = data.unit === "s";
    const [size, unit] = !seconds ? [1, data.unit] : value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e-3, "ms"] : [1e-6, "us"];
    return `${Number((value / size).toPrecision(4))} ${value || !seconds ? unit : "s"}`;
  };
  const part = (name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    layer.append(made);
  };
  const add = (paths, name, d) => { (paths[name] ??= []).push(d); };
  const box = (x, y, w, h) => `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h}h${(-w).toFixed(1)}z`;
  const firstAfter = (ends, time) => {
    let low = 0, high = ends.length;
    while (low < high) { const middle = (low + high) >> 1; if (ends[middle] > time) high = middle; else low = middle + 1; }
    return low;
  };

  const buckets = (row, y, first, place, paths) => {
    const count = Math.ceil(data.width / BUCKET), tones = {};
    for (let at = first; at < row.start.length && row.start[at] < to; at++) {
      const left = Math.max(0, place(row.start[at])), right = Math.min(data.width, place(row.end[at]));
      const cover = tones[row.k[at]] ??= new Float64Array(count);
      for (let b = Math.floor(left / BUCKET); b < count && b * BUCKET < right; b++)
        cover[b] += Math.max(0, Math.min(right, (b + 1) * BUCKET) - Math.max(left, b * BUCKET)) / BUCKET;
    }
    let name = "", begun = 0;
    for (let b = 0; b <= count; b++) {
      let busy = 0, most = 0, tone = "";
      if (b < count) for (const [each, cover] of Object.entries(tones)) {
        busy += cover[b];
        if (cover[b] > most) { most = cover[b]; tone = each; }
      }
      const step = Math.min(4, Math.ceil(4 * busy - 0.2));
      const here = step > 0 ? `${most >= PURE * busy && tone !== "P" ? tone : "X"} ${step / 4}` : "";
      if (here !== name) {
        if (name) add(paths, name, box(begun * BUCKET, y, (b - begun) * BUCKET, data.row));
        name = here; begun = b;
      }
    }
  };

  const operations = (row, y, first, place, paths, texts) => {
    for (let at = first; at < row.start.length && row.start[at] < to; at++) {
      const left = Math.max(0, place(row.start[at])), right = Math.min(data.width, place(row.end[at])), w = right - left;
      const halves = row.k[at] === "P" ? [["F", y, data.row / 2, row.m[at]], ["B", y + data.row / 2, data.row / 2, row.o[at]]]
        : [[row.k[at], y, data.row, row.m[at]]];
      for (const [tone, top, tall, number] of halves) {
        add(paths, w >= OUTLINED ? `${tone} edge` : `${tone} 1`, box(left, top, w, tall));
        if (w >= NUMBERED && tall >= 10 && 6.5 * String(number + 1).length + 3 <= w)
          texts.push([left + w / 2, top + tall / 2 + 4, number + 1, `n t${tone}${row.c[at] === "0" ? "" : " i"}`]);
      }
    }
  };

  const draw = () => {
    layer?.remove();
    layer = document.createElementNS(NS, "g");
    layer.setAttribute("transform", `translate(${data.left})`);
    svg.append(layer);
    const scale = data.width / (to - from), place = (time) => (time - from) * scale, paths = {}, texts = [];
    const bottom = data.top + data.rows.length * data.pitch;
    part("path", { class: "paper", d: `M-2 ${data.top - 22}h${data.width + 4}V${bottom}H-2zM-40 ${bottom}H${data.width + 40}v24H-40z` });
    data.rows.forEach((row, index) => {
      const y = data.top + index * data.pitch, first = firstAfter(row.end, from);
      for (const [start, end, cause] of row.g) {
        const left = Math.max(0, place(start)), right = Math.min(data.width, place(end));
        if (right - left >= BUCKET) add(paths, `#${cause}`, box(left, y, right - left, data.row));
      }
      const last = firstAfter(row.start, to), widths = [];
      for (let at = first; at < last; at++) widths.push((row.end[at] - row.start[at]) * scale);
      widths.sort((a, b) => a - b);
      if (widths.length && widths[widths.length >> 2] < OUTLINED) buckets(row, y, first, place, paths);
      else operations(row, y, first, place, paths, texts);
    });
    for (const [name, parts] of Object.entries(paths)) {
      const [tone, opacity] = name.split(" "), d = parts.join("");
      if (tone[0] === "#") part("path", { fill: `url(${tone})`, d });
      else part("path", opacity === "edge" ? { class: name, d } : { class: tone, "fill-opacity": opacity, d });
    }
    for (const [x, y, text, name] of texts) part("text", { x, y, class: name }, text);
    const [hole, end] = data.missing, left = Math.max(0, place(hole)), right = Math.min(data.width, place(end));
    if (right - left > 150) part("text", { x: (left + right) / 2, y: data.top - 8, class: "m" }, "the same pattern again");
    for (let mark = 0; mark <= 6; mark++) {
      const x = data.width * mark / 6, anchor = mark === 0 ? "" : mark === 6 ? "e" : "m";
      part("path", { class: "rule", d: `M${x} ${bottom + 4}v4` });
      part("text", { x, y: bottom + 21, class: anchor }, words(from + (to - from) * mark / 6));
    }
    said.textContent = `${words(from)} to ${words(to)} of ${words(data.end)}`;
  };

  const keys = {
    w: () => { const quarter = (to - from) / 4; if (quarter > 50) { from += quarter; to -= quarter; } },
    s: () => { const half = (to - from) / 2; from = Math.max(0, from - half); to = Math.min(data.end, to + half); },
    a: () => { const step = Math.min(from, (to - from) / 4); from -= step; to -= step; },
    d: () => { const step = Math.min(data.end - to, (to - from) / 4); from += step; to += step; },
    f: () => { from = 0; to = data.end; },
    home: () => { to -= from; from = 0; },
    end: () => { from += data.end - to; to = data.end; },
  };
  const press = (key) => {
    if (!keys[key]) return;
    if (!data) load();
    keys[key]();
    if (key === "f") { layer?.remove(); layer = null; said.textContent = "the whole step"; } else draw();
  };
  addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) press(event.key.toLowerCase());
  });
  for (const button of document.querySelectorAll("button[data-key]")) {
    button.addEventListener("click", () => press(button.dataset.key));
  }
})();
