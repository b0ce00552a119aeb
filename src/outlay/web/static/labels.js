/** The words for parts of a bill; the same as the terminal's (show/labels.py), which a test compares. */

export const VERDICTS = { fits: "FITS", tight: "TIGHT", does_not_fit: "DOES NOT FIT", impossible: "IMPOSSIBLE" };
export const NOT_LEGAL = "NOT LEGAL";
export const SHAPES = { fits: "\u2713", tight: "!", does_not_fit: "\u2717", impossible: "\u2717", "": "\u2717" };

export const LABELS = {
  weights: "weights",
  gradients: "gradients",
  optimizer: "optimizer",
  gathered: "gathered weights",
  unit: "whole gradients of one unit",
  blocks: "blocks gathered for the backward pass",
  whole: "the head's gradient, not yet sharded",
  behind: "gradients of the layers behind",
  ends: "gradients where the backward pass ends",
  table: "the embedding's gradient, and passes in flight",
  activations: "activations",
  recomputed: "layer being recomputed",
  logits: "logits and loss",
  backward: "activation gradients",
  kernels: "buffers of kernels",
  copies: "copies of weights and gradients",
  buckets: "gradient buckets",
  messages: "pipeline messages, one a micro-batch",
  beside: "other models",
  buffers: "buffers",
  arithmetic: "arithmetic",
  recompute: "recompute",
  tensor: "tensor-parallel exchange",
  context: "context-parallel exchange",
  expert: "expert-parallel exchange",
  offload: "offload to host memory",
  idle: "pipeline idle",
  sends: "pipeline sends",
  data: "data-parallel exchange",
  overhead: "fixed cost of a step",
  stragglers: "waiting for the slowest",
  wire: "memory taken by exchange",
};

export const AXES = {
  tp: "tensor parallel",
  cp: "context parallel",
  ep: "expert parallel",
  etp: "tensor parallel in experts",
  pp: "pipeline",
  dp: "data parallel",
};

export const AXIS_OF = { tensor: "tp", context: "cp", expert: "ep", sends: "pp", data: "dp" };

/** What a part is called. @param {string} name */
export const label = (name) => LABELS[name] ?? name.replaceAll("_", " ");

/** What `outlay explain` can say of a part of memory. */
const MEMORY = new Set([
  "weights",
  "gradients",
  "unit",
  "optimizer",
  "gathered",
  "activations",
  "recomputed",
  "logits",
  "backward",
  "blocks",
  "whole",
  "behind",
  "ends",
  "kernels",
  "buckets",
  "beside",
  "copies",
]);

/** The quantity that explains a part of memory. @param {string} name */
export const memoryQuantity = (name) => (MEMORY.has(name) ? `memory.${name}` : "memory");

/** The quantity that explains a part of the step. @param {string} name */
export function stepQuantity(name) {
  if (AXIS_OF[name]) return `traffic.${AXIS_OF[name]}`;
  return { arithmetic: "step.pass", recompute: "step.pass", idle: "bubble", offload: "step.offload" }[name] ?? "step";
}

/** The family that a part of memory is drawn in: a part's colour is that of what it belongs to. @param {string} name */
export const family = (name) =>
  ({
    weights: "weights",
    gathered: "weights",
    copies: "weights",
    beside: "weights",
    gradients: "gradients",
    unit: "gradients",
    whole: "gradients",
    behind: "gradients",
    ends: "gradients",
    table: "gradients",
    blocks: "gradients",
    buckets: "gradients",
    optimizer: "optimizer",
    activations: "activations",
    recomputed: "activations",
    messages: "activations",
    backward: "logits",
    logits: "logits",
    kernels: "kernels",
  })[name] ?? "buffers";

/** The tone that a part of the step is drawn in. @param {string} name */
export const tone = (name) =>
  ({
    arithmetic: "F",
    recompute: "R",
    tensor: "C",
    context: "C",
    expert: "C",
    sends: "C",
    data: "C",
    offload: "C",
    wire: "C",
    optimizer: "O",
    overhead: "O",
  })[name] ?? "idle";

/** A layout in a few words: the degrees that are not 1, and the options that matter.
 * @param {Record<string, any>} of @param {number} dp */
export function degrees(of, dp) {
  const words = ["tp", "cp", "pp", "vpp", "ep", "etp"]
    .filter((name) => of[name] > 1)
    .map((name) => `${name} ${of[name]}`);
  words.push(`dp ${dp}`, `zero ${of.zero}`, `micro-batch ${of.micro_batch}`);
  if (of.pp > 1) words.push(of.schedule);
  if (of.recompute !== "none") words.push(`recompute ${of.recompute}`);
  if (of.overlap_tp) words.push("overlap tp");
  if (of.offload_optimizer) words.push(`optimizer offload ${of.offload_optimizer}`);
  return words.join(", ");
}

/** The same in the columns of a list of layouts. @param {Record<string, any>} of */
export function options(of) {
  const overlap = ["tp", "ep", "dp"].filter((name) => of[`overlap_${name}`]);
  const moved = [
    ["optimizer", "offload"],
    ["parameters", "offload weights"],
    ["activations", "offload activations"],
  ]
    .filter(([name]) => of[`offload_${name}`])
    .map(([name, word]) => `${word} ${of[`offload_${name}`]}`);
  return [
    of.pp > 1 ? of.schedule : "",
    `zero ${of.zero}`,
    of.recompute === "none" ? "" : `recompute ${again(of)}`,
    overlap.length ? `overlap ${overlap.join(" ")}` : "no overlap",
    ...moved,
  ]
    .filter(Boolean)
    .join(", ");
}

const again = (of) =>
  of.recompute === "selective"
    ? of.recompute_modules.join(" ") || "selective"
    : `full ${of.recompute_layers || ""}`.trim();
