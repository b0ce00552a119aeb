/** The timing diagram: rows that differ, zoom, pan, hover and keys; the same figures are in a table beside it. */

import { allRanks, responsive, tableTools } from "./bars.js";
import { announce, el, fill, svg, table } from "./dom.js";
import { counted, duration, figure, percent, whole } from "./numbers.js";
import { controls } from "./controls.js";
import * as painter from "./painter.js";
import { CAUSES, KINDS, TONES, WORDS, inFlight, nameOf, opened, spoken, tracksOf } from "./tracks.js";
import { View } from "./view.js";

const none = () => {};
let made = 0; // diagrams without a place of tools
const MOST_KEYS = "w s zoom, a d pan, arrows walk, f fit, e fold, c critical path, g go to, Shift and drag measures";
const BY_KEYS = `Point at an operation, or focus the picture: ${MOST_KEYS}.`;
const BY_TOUCH = "Tap an operation; one finger moves along the time, two zoom.";

/** What a view has to know of an answer of `draw`. @returns {import("./view.js").Step} */
export const stepOf = ({ operations, record }) => ({
  makespan: operations.makespan_s ?? record.makespan,
  cut: record.folded,
});

/** Diagrams that share a scale move together. @param {Diagram[]} all */
export function together(all) {
  for (const one of all) one.others = all.filter((each) => each !== one);
}

/** One diagram: what it shows, and how it is drawn. */
export class Diagram {
  /**
   * @param {HTMLElement} host
   * @param {string} [tools] the place of its table's buttons
   * @param {boolean} [keys] whether it has a legend and buttons under it
   */
  constructor(host, tools = "", keys = tools !== "") {
    this.tracks = [];
    this.others = []; // diagrams that show what this one shows
    this.every = false; // a row for each rank, also where they are alike
    this.cursor = null; // {row, at}
    this.path = false;
    this.sentence = el("p", { class: "small" });
    this.legend = el("p", { class: "legend" });
    this.readout = el("p", { class: "readout", id: `readout-${tools || ++made}` });
    this.picture = el("div", { class: "picture timeline" });
    this.buttons = el("p", { class: "keys" });
    fill(host, this.sentence, this.picture, this.readout, keys && [this.legend, this.buttons]);
    this.redraw = responsive(this.picture, (width) => this.tracks.length && this.lay(width));
    this.refresh = tools ? tableTools(tools, host, "each rank", () => this.table()) : none;
    this.opener = tools ? allRanks(tools, (every) => this.open(every)) : none;
    this.keys = controls(this);
    this.said = keys;
  }

  /** Show an answer of `draw`, in one scale with others where it stands beside them.
   * @param {{operations: any, record: any}} answer @param {import("./view.js").Step[]} [all] */
  show({ operations, record }, all) {
    const step = stepOf({ operations, record });
    this.record = record;
    this.ticks = record.unit && record.unit !== "s" ? record.unit : "";
    this.makespan = step.makespan;
    this.distinct = tracksOf({ ...operations, makespan_s: this.makespan }, record);
    this.view = new View(step, all);
    this.cards = record.accelerators ?? operations.rows.length;
    this.copies = Math.max(1, Math.round(this.cards / operations.rows.length));
    if (this.said) this.hint();
    this.opener(this.distinct.length < this.cards ? this.cards : 0);
    this.open(this.every);
  }

  /** A row for each rank, or one for those that are alike. @param {boolean} every */
  open(every) {
    this.every = every;
    this.tracks = every ? opened(this.distinct, this.copies) : this.distinct;
    this.heaviest = this.tracks.reduce((best, track, index) => (track.peak > this.tracks[best].peak ? index : best), 0);
    this.held = inFlight(this.tracks[this.heaviest]);
    this.cursor = null;
    this.say();
    this.redraw();
    this.refresh();
  }

  time = (value) => (this.ticks ? `${Number(value.toPrecision(4))} ${this.ticks}` : duration(value));

  hint() {
    this.readout.textContent = matchMedia("(pointer: coarse)").matches ? BY_TOUCH : BY_KEYS;
  }

  /** The sentence and the legend. */
  say() {
    const { idle, accelerators: cards } = this.record,
      rows = this.tracks.length,
      operations = this.tracks.reduce((sum, track) => sum + track.start.length, 0);
    const causes = CAUSES.filter((cause) => idle.by_cause[cause] > 0).map(
      (cause) => `${cause} ${percent(idle.by_cause[cause] / idle.total)}`,
    );
    this.sentence.textContent =
      `${counted(rows, "row")} for ${counted(cards, "rank")}, ${whole(operations)} operations drawn; ` +
      this.numbered() +
      `step ${this.time(this.makespan)}, idle ${percent(idle.share)} = ` +
      `${this.time(idle.total / cards)} a rank${causes.length ? `: ${causes.join(", ")}` : ""}.`;
    const kinds = KINDS.filter((kind, code) => this.tracks.some((track) => track.kind.includes(code)));
    fill(
      this.legend,
      kinds.map((kind) =>
        el("span", {}, el("i", { class: `swatch ${TONES[kind]}`, "aria-hidden": "true" }), WORDS[kind]),
      ),
      el("span", {}, el("i", { class: "swatch X", "aria-hidden": "true" }), "several kinds in 2 px"),
      CAUSES.filter((cause) => idle.by_cause[cause] > 0).map((cause) =>
        el(
          "span",
          {},
          svg(
            "svg",
            { width: 14, height: 12, class: "swatch-svg", "aria-hidden": "true" },
            svg("rect", { width: 14, height: 12, fill: `url(#idle-${cause})` }),
          ),
          `idle: ${cause}`,
        ),
      ),
    );
  }

  /** How the ranks of opened rows are numbered, and whether there are more of them. */
  numbered() {
    if (!this.every || this.copies < 2) return "";
    const first = `ranks 0 to ${this.copies - 1} are rank 0 of the pipeline, and so on; `;
    return this.tracks.length < this.cards ? `the first ${whole(this.tracks.length)} ranks are drawn; ${first}` : first;
  }

  /** Everything, for a width. @param {number} width */
  lay(width) {
    const at = (this.at = painter.frame(this.tracks.length, width));
    const layer = (name) => svg("g", { class: name, transform: `translate(${at.left})` });
    this.layers = {
      overview: layer("overview"),
      viewport: layer("still"),
      rows: layer("rows"),
      axis: layer("still"),
      flight: layer("still"),
      margins: layer("still"),
      path: layer("still"),
      cursor: layer("still"),
    };
    this.svg = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${at.height}`,
        width,
        height: at.height,
        role: "application",
        tabindex: 0,
        "aria-label": this.record.title ?? "timing diagram",
        "aria-roledescription": "timing diagram",
        "aria-describedby": this.readout.id,
      },
      Object.values(this.layers),
    );
    fill(this.picture, this.svg);
    this.keys.listen(this.svg);
    this.overview();
    this.paint();
  }

  overview() {
    fill(this.layers.overview, painter.overview(this.tracks, this.view, this.at));
  }

  /** Paint once before the next frame. */
  soon() {
    this.planned ||= requestAnimationFrame(() => {
      this.planned = 0;
      this.paint();
    });
  }

  /** Show what another diagram of the same scale shows. @param {Diagram} leader */
  follow(leader) {
    const refolded = this.view.folded !== leader.view.folded;
    this.view.follow(leader.view);
    this.path = leader.path;
    if (!this.svg) return;
    if (refolded) this.overview();
    this.paint(true);
  }

  /** What depends on the view, here and where others follow. The time it took stands at the picture.
   * @param {boolean} [follows] */
  paint(follows = false) {
    const began = performance.now(),
      { layers, view, at } = this;
    const { made, bucketed } = painter.rows(this.tracks, view, at, this.readout.id);
    fill(layers.rows, made);
    fill(layers.viewport, painter.viewport(view, at));
    fill(layers.axis, painter.axis(view, at, this.time, this.folded()));
    fill(layers.flight, painter.flight(this.held, view, at, nameOf(this.tracks[this.heaviest])));
    fill(layers.path, this.path ? painter.critical(this.record.critical_path, this.tracks, view, at) : []);
    this.mark();
    this.svg.dataset.bucketed = String(bucketed);
    this.svg.dataset.drawnMs = String(performance.now() - began);
    if (!follows) for (const other of this.others) other.follow(this);
  }

  folded() {
    const cut = this.view.cut;
    if (!cut) return "";
    const more = this.at.width < 420 ? "more alike" : "more micro-batches, the same pattern";
    return `${whole(cut.micro_batches)} ${more}, ${this.time(cut.end - cut.start)}`;
  }

  /** The operation under the cursor, outlined and said. */
  mark() {
    const { layers, view, at, cursor } = this;
    fill(layers.margins, painter.margins(this.tracks, at, this.time, this.makespan, cursor?.row ?? -1));
    if (!cursor) return fill(layers.cursor);
    const track = this.tracks[cursor.row],
      window = view.window(at.width);
    const left = Math.max(0, window.x(track.start[cursor.at])),
      right = Math.min(at.width, window.x(track.end[cursor.at]));
    if (right < 0 || left > at.width) return fill(layers.cursor);
    return fill(
      layers.cursor,
      svg("rect", {
        class: "cursor",
        x: left,
        y: at.top + cursor.row * at.pitch,
        width: Math.max(2, right - left),
        height: at.row,
      }),
    );
  }

  /** Take an operation. @param {number} row @param {number} index @param {boolean} aloud */
  take(row, index, aloud) {
    const track = this.tracks[row];
    if (!track.start.length) return;
    this.cursor = { row, at: Math.max(0, Math.min(track.start.length - 1, index)) };
    const said = spoken(track, this.cursor.at, this.time);
    this.readout.textContent = said;
    if (aloud) announce(said, 0);
    this.mark();
  }

  /** Busy and idle time of all rows between two times, by cause. @param {number} from @param {number} to */
  measure(from, to) {
    const inside = (start, end) => Math.max(0, Math.min(end, to) - Math.max(start, from));
    const waited = Object.fromEntries(CAUSES.map((cause) => [cause, 0]));
    let ranks = 0;
    for (const track of this.tracks) {
      ranks += track.ranks.length;
      for (const [cause, start, end] of track.gaps) waited[cause] += track.ranks.length * inside(start, end);
    }
    const all = (to - from) * ranks,
      idle = CAUSES.reduce((sum, cause) => sum + waited[cause], 0);
    const causes = CAUSES.filter((cause) => waited[cause] > 0).map(
      (cause) => `${cause} ${percent(waited[cause] / all)}`,
    );
    const why = causes.length ? ` (${causes.join(", ")})` : "";
    this.readout.textContent =
      `${this.time(from)} to ${this.time(to)}: busy ${percent(1 - idle / all)}, ` + `idle ${percent(idle / all)}${why}`;
    announce(this.readout.textContent, 0);
  }

  table() {
    const heads = ["rank", "busy", "idle", "idle share", ...CAUSES, "in flight at the peak"];
    const all = this.record.ranks ?? [],
      shown = this.every ? this.tracks.map((track) => ({ ...all[track.pipe], rank: track.ranks[0] })) : all;
    const rows = shown.map((rank) => [
      `${rank.rank}`,
      this.time(rank.busy),
      this.time(rank.idle),
      percent(rank.idle_share),
      ...CAUSES.map((cause) => this.time(rank.idle_by_cause[cause])),
      figure(rank.peak_in_flight, 2),
    ]);
    return { heads, rows, element: table({ heads, rows }) };
  }
}
