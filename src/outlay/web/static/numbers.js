/** Numbers in words: the same digits and units as the terminal prints (show/text.py). */

export const GIB = 2 ** 30,
  GB = 1e9;
const HUGE = 1e12;

/** A number with so many decimals and its commas; an exact half goes to the even neighbour, as Python rounds.
 * @param {number} value @param {number} places */
function fixed(value, places) {
  const size = Math.abs(value),
    [whole, rest] = size.toFixed(60).split(".");
  let text = size.toFixed(places);
  if (/^50*$/.test(rest.slice(places)) && Number((whole + rest.slice(0, places)).at(-1)) % 2 === 0) {
    text = places ? `${whole}.${rest.slice(0, places)}` : whole;
  }
  return (
    (value < 0 ? "-" : "") +
    text.replace(/\B(?=(\d{3})+(?!\d))/g, (_, __, at) => (text.indexOf(".") < 0 || at < text.indexOf(".") ? "," : ""))
  );
}

/** Decimals that show about so many digits. @param {number} value @param {number} digits @param {number} most */
export function decimals(value, digits = 4, most = 3) {
  const size = Math.abs(value);
  const before = size >= 1 && size < 1e15 ? String(Math.trunc(size)).length : 1;
  return Math.max(0, Math.min(most, digits - before));
}

/** A number with about so many digits. @param {number} value @param {number} [digits] */
export function figure(value, digits = 3) {
  if (!Number.isFinite(value)) return "no limit";
  if (Math.abs(value) < HUGE) return fixed(value, decimals(value, digits, digits));
  return value.toExponential(digits - 1).replace(/e\+(\d)$/, "e+0$1");
}

export const gib = (value, digits = 3) => `${figure(value / GIB, digits)} GiB`;

/** Bytes in both usual units. @param {number} value @param {number} [digits] */
export const both = (value, digits = 3) => `${gib(value, digits)} (${figure(value / GB, digits)} GB)`;

/** Seconds in the unit that suits them. @param {number} value @param {number} [digits] */
export function duration(value, digits = 3) {
  if (!Number.isFinite(value)) return "no end";
  for (const [size, unit] of [
    [1, "s"],
    [1e-3, "ms"],
  ]) {
    if (Math.abs(value) >= size) return `${figure(value / size, digits)} ${unit}`;
  }
  return value ? `${figure(value / 1e-6, digits)} us` : "0 s";
}

export const percent = (share, digits = 3) => `${figure(100 * share, digits)} %`;

/** A whole number with its commas. @param {number} value */
export const whole = (value) => fixed(value, 0);

/** A count in words' size. @param {number} value */
export function short(value) {
  if (Math.abs(value) >= HUGE * 1e4) return figure(value);
  for (const [size, word] of [
    [1e12, " trillion"],
    [1e9, " billion"],
    [1e6, " million"],
  ]) {
    if (Math.abs(value) >= size) return `${figure(value / size, 4)}${word}`;
  }
  return value >= 10 || Number.isInteger(value) ? whole(value) : figure(value);
}

/** A count and its word. @param {number} number @param {string} word */
export function counted(number, word) {
  const text = Number.isInteger(number) ? whole(number) : figure(number);
  return `${text} ${word}${number === 1 ? "" : word.endsWith("ch") ? "es" : "s"}`;
}

/** A number with its sign, for differences. @param {string} text @param {number} value */
export const signed = (text, value) => (value > 0 ? `+${text}` : text.replace("-", "\u2212"));

/** Rounded parts that add up to their rounded total: the largest remainders are rounded up.
 * @param {number[]} values @param {number} places */
export function addingUp(values, places) {
  const scale = 10 ** places,
    scaled = values.map((value) => value * scale),
    units = scaled.map(Math.floor);
  const total = Math.round(scaled.reduce((sum, value) => sum + value, 0));
  const missing = total - units.reduce((sum, value) => sum + value, 0);
  const order = values.map((_, at) => at).sort((a, b) => units[a] - scaled[a] - (units[b] - scaled[b]));
  for (const at of order.slice(0, missing)) units[at] += 1;
  return units.map((unit) => fixed(unit / scale, places));
}

/** General format as Python's `,g`. @param {number} value */
export const general = (value) => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
