/** A question is the command line's words: the address, the command and the body of a request are the same words. */

/** @typedef {Record<string, string | true>} Words */

/** Words that stand beside a question and are no flag. */
const POSITIONAL = new Set(["model", "quantity", "framework"]);
const SWITCHES = new Set(["true", ""]);

/** The words of an address. @param {string} search @returns {Words} */
export function read(search) {
  /** @type {Words} */
  const words = {};
  for (const [name, value] of new URLSearchParams(search)) {
    if (value === "" && !isSwitch(name)) continue;
    words[name] = SWITCHES.has(value) ? true : value;
  }
  return words;
}

const isSwitch = (name) => name.startsWith("no-") || name.startsWith("overlap-");

/** The address of words, without the fragment. @param {Words} words */
export function query(words) {
  const pairs = Object.entries(words).map(([name, value]) => [name, value === true ? "true" : value]);
  const text = pairs.map(([name, value]) => `${encodeURIComponent(name)}=${loose(value)}`).join("&");
  return text ? `?${text}` : "";
}

/** Commas, dots and colons stay readable in an address. @param {string} text */
const loose = (text) => encodeURIComponent(text).replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%2F/g, "/");

/** A text as a shell takes it. @param {string} text */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The command line of words. @param {string} command @param {Words} words @param {string} [first] before the model */
export function line(command, words, first = "") {
  const parts = ["outlay", command, first && quoted(first), words.model && quoted(String(words.model))].filter(Boolean);
  return [...parts, flags(words)].filter(Boolean).join(" ");
}

/** The flags of words, as typed. @param {Words} words */
export function flags(words) {
  return Object.entries(words)
    .filter(([name]) => !POSITIONAL.has(name))
    .map(([name, value]) => (value === true ? `--${name}` : `--${name} ${quoted(value)}`))
    .join(" ");
}

/** Words with a text of flags such as `--tp 4 --no-sp` put over them. @param {Words} words @param {string} text */
export function changed(words, text) {
  /** @type {Words} */
  const made = { ...words };
  const parts = text.trim().split(/\s+/);
  for (let at = 0; at < parts.length; at++) {
    if (!parts[at].startsWith("--")) continue;
    const [raw, inline] = parts[at].slice(2).split("=", 2),
      name = LONG[raw] ?? raw;
    const value = inline ?? (parts[at + 1] && !parts[at + 1].startsWith("--") ? parts[++at] : true);
    delete made[name.startsWith("no-") ? name.slice(3) : `no-${name}`];
    made[name] = value;
  }
  return made;
}

/** Long names of the command line that have a short one in addresses. */
const LONG = {
  "sequence-length": "seq",
  "global-batch": "batch",
  "micro-batch": "mbs",
  "bytes-per-parameter": "bytes",
  "reserved-bytes": "reserved",
  "adapter-rank": "rank",
  "adapter-targets": "targets",
  frozen: "freeze",
  "batch-rampup": "rampup",
};

const FIELDS = {
  tp: "tp",
  cp: "cp",
  pp: "pp",
  vpp: "vpp",
  ep: "ep",
  etp: "etp",
  dp_replicate: "dp-replicate",
  zero: "zero",
  micro_batch: "mbs",
  schedule: "schedule",
  recompute: "recompute",
  loss_chunks: "loss-chunks",
  cp_kind: "cp-kind",
  moe_dispatch: "moe-dispatch",
  graphs: "graphs",
  offload_optimizer: "offload-optimizer",
  offload_parameters: "offload-parameters",
  offload_activations: "offload-activations",
  gather_unit: "gather-unit",
};
const USUAL = {
  tp: 1,
  cp: 1,
  pp: 1,
  vpp: 1,
  ep: 1,
  etp: 1,
  dp_replicate: 1,
  micro_batch: 1,
  schedule: "1f1b",
  recompute: "none",
  loss_chunks: 1,
  cp_kind: "ring",
  moe_dispatch: "all_to_all",
  graphs: "none",
  offload_optimizer: 0,
  offload_parameters: 0,
  offload_activations: 0,
  gather_unit: "layer",
};

/** A whole layout as words; what is as usual is left out, the ZeRO stage is always said.
 * @param {Record<string, any>} layout @returns {Words} */
export function ofLayout(layout) {
  /** @type {Words} */
  const words = {};
  for (const [field, name] of Object.entries(FIELDS)) {
    if (field in layout && layout[field] !== USUAL[field]) words[name] = String(layout[field]);
  }
  if (layout.recompute_layers) words["recompute-layers"] = String(layout.recompute_layers);
  if (layout.recompute_modules?.length) words["recompute-modules"] = layout.recompute_modules.join(",");
  if (layout.split?.length) words.split = layout.split.join(",");
  if (layout.overlap_tp) words["overlap-tp"] = true;
  if (layout.overlap_ep) words["overlap-ep"] = true;
  if (layout.overlap_dp === false) words["no-overlap-dp"] = true;
  if (layout.sp === false && layout.tp > 1) words["no-sp"] = true;
  return words;
}

/** Names of words that say a layout: they are replaced when another layout is taken. */
export const LAYOUT_WORDS = new Set([
  ...Object.values(FIELDS),
  "dp-shard",
  "recompute-layers",
  "recompute-modules",
  "recompute-group",
  "split",
  "overlap-tp",
  "overlap-ep",
  "overlap-dp",
  "no-overlap-tp",
  "no-overlap-ep",
  "no-overlap-dp",
  "sp",
  "no-sp",
  "keep-gathered",
  "no-keep-gathered",
  "accumulate-whole",
  "no-accumulate-whole",
]);

/** The words that are no layout. @param {Words} words @returns {Words} */
export const withoutLayout = (words) =>
  Object.fromEntries(Object.entries(words).filter(([name]) => !LAYOUT_WORDS.has(name)));

/**
 * What makes one question another, as `outlay compare` takes it: `tp=4,pp=8`; "" where it cannot be said so.
 * @param {Words} one @param {Words} other
 */
export function over(one, other) {
  const parts = [];
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    if (one[name] === other[name]) continue;
    const field = Object.keys(FIELDS).find((each) => FIELDS[each] === name);
    const usual = field in USUAL ? String(USUAL[field]) : typeof one[name] === "boolean" ? "false" : "";
    const value = other[name] === undefined ? usual : String(other[name]);
    if (!value || value.includes(",") || name.startsWith("no-") || POSITIONAL.has(name)) return "";
    parts.push(`${name}=${value}`);
  }
  return parts.join(",");
}

/** Words with such a text put over them. @param {Words} words @param {string} text @returns {Words} */
export function put(words, text) {
  const made = { ...words };
  for (const part of text.split(",")) {
    const [raw, value = ""] = part.split("=", 2);
    const name = raw.trim().replaceAll("_", "-");
    if (value === "false") delete made[LONG[name] ?? name];
    else if (name) made[LONG[name] ?? name] = value === "true" ? true : value;
  }
  return made;
}
