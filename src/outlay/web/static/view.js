/**
 * Which times are in view, and where they stand. A part that repeats can be folded away: then it is a tear of a fixed
 * share of the picture, and everything else has one scale.
 */

const TEAR = 0.09; // share of the drawn time that a tear takes
const DEEPEST = 2e-6; // the narrowest view, of the whole

export class View {
  /** @param {number} makespan @param {{start: number, end: number, micro_batches: number} | null} cut */
  constructor(makespan, cut) {
    this.makespan = makespan;
    this.cut = cut;
    this.folded = Boolean(cut);
    this.fit();
  }

  get gone() {
    return this.folded && this.cut ? this.cut.end - this.cut.start : 0;
  }
  get tear() {
    return this.gone ? TEAR * (this.makespan - this.gone) : 0;
  }
  /** The length of the whole picture, in drawn time. */
  get length() {
    return this.makespan - this.gone + this.tear;
  }

  fit() {
    [this.left, this.right] = [0, this.length];
  }

  /** Drawn time of a time. @param {number} time */
  drawn(time) {
    if (!this.gone || time <= this.cut.start) return time;
    if (time >= this.cut.end) return time - this.gone + this.tear;
    return this.cut.start + ((time - this.cut.start) / this.gone) * this.tear;
  }

  /** The time at a drawn time. @param {number} at */
  time(at) {
    if (!this.gone || at <= this.cut.start) return at;
    if (at >= this.cut.start + this.tear) return at + this.gone - this.tear;
    return this.cut.start + ((at - this.cut.start) / this.tear) * this.gone;
  }

  /** The window of this view on a picture of some width. @param {number} width @param {boolean} [whole] */
  window(width, whole = false) {
    const left = whole ? 0 : this.left,
      right = whole ? this.length : this.right,
      scale = width / (right - left);
    const plain = !this.gone;
    return {
      from: this.time(left),
      to: this.time(right),
      width,
      x: plain ? (time) => (time - left) * scale : (time) => (this.drawn(time) - left) * scale,
      hole: plain ? null : [this.cut.start, this.cut.end],
    };
  }

  /** Zoom about a place, 0 to 1 of the width. @param {number} factor @param {number} [about] */
  zoom(factor, about = 0.5) {
    const wide = Math.max(DEEPEST * this.length, Math.min(this.length, (this.right - this.left) * factor));
    const at = this.left + about * (this.right - this.left);
    this.show(at - about * wide, wide);
  }

  /** Pan by a share of the width. @param {number} share */
  pan(share) {
    this.show(this.left + share * (this.right - this.left), this.right - this.left);
  }

  /** Show so much from a drawn time on, inside the whole. @param {number} left @param {number} wide */
  show(left, wide) {
    this.left = Math.max(0, Math.min(this.length - wide, left));
    this.right = this.left + wide;
  }

  /** Bring a span of time into view, as little as it takes. @param {number} start @param {number} end */
  reveal(start, end) {
    const [from, to] = [this.drawn(start), this.drawn(end)],
      wide = this.right - this.left;
    if (from < this.left) this.show(from - wide * 0.1, wide);
    else if (to > this.right) this.show(Math.max(to - wide * 0.9, Math.min(from, to - wide)), wide);
  }

  /** Fold, or unfold, what repeats. */
  toggle() {
    if (!this.cut) return;
    this.folded = !this.folded;
    this.fit();
  }

  get whole() {
    return this.right - this.left > 0.999 * this.length;
  }
}
