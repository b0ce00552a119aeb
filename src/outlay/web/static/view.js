/**
 * Which times are in view, and where they stand. A part that repeats can be folded away: then it is a tear of a fixed
 * share of the picture, and everything else has one scale.
 */

const TEAR = 0.09; // share of the drawn time that a tear takes
const DEEPEST = 2e-6; // the narrowest view, of the whole

/**
 * One step of a picture, or of several that share a scale: how long it is, and which part of it repeats.
 * @typedef {{makespan: number, cut: {start: number, end: number, micro_batches: number} | null}} Step
 */

const leftOut = ({ cut }) => (cut ? cut.end - cut.start : 0);

export class View {
  /** @param {Step} step @param {Step[]} [all] the steps that share its scale: that of the longest */
  constructor(step, all = [step]) {
    this.cut = step.cut;
    this.longest = Math.max(...all.map((each) => each.makespan)); // unfolded
    this.shortened = Math.max(...all.map((each) => each.makespan - leftOut(each))); // folded, without the tear
    this.foldable = all.some((each) => each.cut);
    this.folded = this.foldable;
    this.fit();
  }

  get gone() {
    return this.folded ? leftOut(this) : 0;
  }
  get tear() {
    return this.gone ? TEAR * this.shortened : 0;
  }
  /** The length of the whole picture, in drawn time. */
  get length() {
    return this.folded ? (1 + TEAR) * this.shortened : this.longest;
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
    this.hold(this.left + about * (this.right - this.left), about, (this.right - this.left) * factor);
  }

  /** Show so much that a drawn time stands at a place, 0 to 1 of the width.
   * @param {number} at @param {number} place @param {number} wanted */
  hold(at, place, wanted) {
    const wide = Math.max(DEEPEST * this.length, Math.min(this.length, wanted));
    this.show(at - place * wide, wide);
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
    if (!this.foldable) return;
    this.folded = !this.folded;
    this.fit();
  }

  /** Show what another view of the same scale shows. @param {View} other */
  follow({ folded, left, right }) {
    [this.folded, this.left, this.right] = [folded, left, right];
  }
}
