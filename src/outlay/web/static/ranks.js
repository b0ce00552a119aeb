/** The rows of the memory of the ranks: those that differ, or every rank; and the parts that each holds. */

/** What a stage holds, in words. @param {any} rank */
export const holds = (rank) => {
  const parts = [`${rank.layers} layer${rank.layers === 1 ? "" : "s"}`];
  if (rank.embedding) parts.push("embedding");
  if (rank.head) parts.push(rank.embedding ? "head" : "head and loss");
  return parts.join(" + ");
};

const MOST_OPENED = 1024; // ranks drawn at once

/** How many ranks the stages of a bill have. @param {any} memory */
export const ranksOf = (memory) => memory.ranks.reduce((sum, stage) => sum + stage.ranks, 0);

/** A row for every rank, in the order of their numbers. @param {any} memory @param {any[] | null} detailed */
export function everyRank(memory, detailed) {
  let next = 0;
  return memory.ranks
    .flatMap((stage) => {
      const row = { ...stage, stages: [stage.stage], ranks: 1, parts: partsOf(memory, stage, detailed) };
      return Array.from({ length: stage.ranks }, () => ({ ...row, rank: next++ }));
    })
    .slice(0, MOST_OPENED);
}

/**
 * Rows that differ, the heaviest first; equal stages are one row.
 * @param {any} memory
 * @param {any[] | null} detailed
 */
export function rowsOf(memory, detailed) {
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

/** What a row is called. @param {any} row */
export function nameOf({ stages, rank }) {
  if (rank !== undefined) return `rank ${rank}, stage ${stages[0]}`;
  if (stages.length === 1) return `stage ${stages[0]}`;
  return `stages ${stages.length < 4 ? stages.join(", ") : `${stages[0]} .. ${stages.at(-1)}`}`;
}

/** How many ranks a row stands for; nothing where it is one of many that are opened. @param {any} row */
export function alike(row) {
  if (row.rank !== undefined) return "";
  const ranks = row.ranks * row.stages.length;
  return `: ${ranks} rank${ranks === 1 ? "" : "s alike"}`;
}
