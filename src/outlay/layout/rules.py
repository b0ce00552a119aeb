"""What is legal, and who says so: one row a rule. A predicate works on one layout and on a grid alike."""

from ..engines.engine import MEGATRON
from .engine_rules import DEEPSPEED, ENGINE_RULES, TORCH
from .holding_rules import HOLDING_RULES
from .part_rules import PART_RULES
from .predicates import (
    all_divide,
    by_kind,
    dealt_heads,
    expert_width,
    experts,
    factors,
    grows,
    has_zero,
    heads,
    heads_swap,
    kv_fit,
    kv_heads,
    longest_stage,
    no_empty_chunk,
    recompute_fits,
    rounds,
    shares_ramp,
    spelled,
    split_fits,
    whole_expert_shards,
    widths,
    widths_by_kind,
)
from .recipe_rules import RECIPE_RULES
from .rule import Rule

__all__ = ["RULES", "Rule", "rules_of"]

RULES: tuple[Rule, ...] = (
    Rule(
        "LAY001",
        "the layout does not make the cluster",
        "tp x cp x pp x dp_replicate x dp_shard = ranks",
        "dp_shard",
        lambda at: at.layout.world == at.cluster.ranks,
        lambda at: f"{factors(at)} = {at.layout.world:,}; the cluster has {at.cluster.ranks:,}",
    ),
    Rule(
        "LAY002",
        "the expert product does not make the cluster",
        "etp x ep x pp x edp = ranks, edp a whole number",
        "ep",
        lambda at: at.layout.world % (at.layout.etp * at.layout.ep * at.layout.pp) == 0,
        lambda at: (
            f"{at.layout.world:,} ranks / ({at.layout.etp:,} x {at.layout.ep:,} x {at.layout.pp:,})"
            f" = edp {at.layout.edp:.4g}"
        ),
    ),
    Rule(
        "LAY003",
        "tp does not divide the attention heads",
        "tp must divide the attention heads",
        "tp",
        lambda at: all_divide(heads(at), at.layout.tp),
        lambda at: f"{spelled(heads(at))} heads / {at.layout.tp:,}",
    ),
    Rule(
        "LAY004",
        "tp does not fit the key/value heads",
        "Megatron-Core: key/value heads must be a multiple of tp; from 0.16 on a divisor will do",
        "tp",
        kv_fit,
        lambda at: f"{spelled(kv_heads(at))} key/value heads, tp {at.layout.tp:,}",
        MEGATRON,
    ),
    Rule(
        "LAY005",
        "tp does not divide the key/value heads",
        "PyTorch: tp must divide the key/value heads",
        "tp",
        lambda at: all_divide(kv_heads(at), at.layout.tp),
        lambda at: f"{spelled(kv_heads(at))} key/value heads / {at.layout.tp:,}",
        (*TORCH, "hf_trainer"),
    ),
    Rule(
        "LAY006",
        "tp does not divide a width",
        "tp must divide every dense feed-forward width, and heads, groups and channels of recurrent parts",
        "tp",
        lambda at: all_divide(widths(at), at.layout.tp),
        lambda at: f"{by_kind(widths_by_kind(at))} / {at.layout.tp:,}",
    ),
    Rule(
        "LAY007",
        "cp does not divide the sequence",
        "with cp > 1, 2 x cp must divide the sequence (balanced causal halves)",
        "cp",
        lambda at: (at.layout.cp == 1) | (at.job.sequence_length % (2 * at.layout.cp) == 0),
        lambda at: f"{at.job.sequence_length:,} tokens / (2 x {at.layout.cp:,})",
    ),
    Rule(
        "LAY008",
        "tp does not divide the sequence",
        "with sp, tp x cp must divide the sequence",
        "tp",
        lambda at: (at.layout.sliced == 1) | (at.job.sequence_length % (at.layout.tp * at.layout.cp) == 0),
        lambda at: f"{at.job.sequence_length:,} tokens / ({at.layout.tp:,} x {at.layout.cp:,})",
    ),
    Rule(
        "LAY009",
        "the pipeline does not divide the layers",
        "Megatron-Core: pp x vpp must divide the layers, or --split gives the layers of each stage",
        "pp",
        lambda at: bool(at.layout.split) | (at.model.layers % (at.layout.pp * at.layout.vpp) == 0),
        lambda at: f"{at.model.layers} layers / ({at.layout.pp:,} x {at.layout.vpp:,})",
        MEGATRON,
    ),
    Rule(
        "LAY010",
        "a chunk of the pipeline has no layer",
        "every one of pp x vpp chunks holds a layer",
        "pp",
        lambda at: bool(at.layout.split) | no_empty_chunk(at),
        lambda at: f"{at.model.layers} layers over {at.layout.pp:,} x {at.layout.vpp:,} chunks",
        (*TORCH, *DEEPSPEED, "nanotron"),
    ),
    Rule(
        "LAY011",
        "the split does not fit",
        "--split has a number a chunk, or a stage (vpp divides each), 0 at the ends alone; they add up to the layers",
        "split",
        split_fits,
        lambda at: (
            f"{len(at.layout.split)} numbers, sum {sum(at.layout.split)}; pp {at.layout.pp:,}, {at.model.layers} layers"
        ),
    ),
    Rule(
        "LAY012",
        "the schedule does not fit its chunks",
        "interleaved, looped_bfs and interleaved_zb: vpp > 1 and pp > 1; zbv and dualpipe_v: vpp 2; others: vpp 1",
        "vpp",
        lambda at: at.schedule.fits(at.layout.pp, at.layout.vpp) == 1,
        lambda at: f"{at.layout.schedule}, vpp {at.layout.vpp:,}, pp {at.layout.pp:,}",
    ),
    Rule(
        "LAY013",
        "interleaving needs whole rounds of micro-batches",
        "Megatron-Core: with vpp > 1, pp must divide the number of micro-batches",
        "global_batch",
        lambda at: (at.layout.vpp == 1) | ((at.micro_batches % at.layout.pp == 0) & (at.micro_batches >= at.layout.pp)),
        lambda at: f"{at.micro_batches:.6g} micro-batches / pp {at.layout.pp:,}",
        MEGATRON,
    ),
    Rule(
        "LAY014",
        "interleaving needs whole rounds of micro-batches",
        "torch: with vpp > 1, rounds = max(1, M // pp) must divide the number of micro-batches M",
        "global_batch",
        rounds,
        lambda at: f"{at.micro_batches:.6g} micro-batches, pp {at.layout.pp:,}",
        TORCH,
    ),
    Rule(
        "LAY015",
        "too few micro-batches for 1F1B",
        "torch: 1F1B needs a micro-batch for every stage",
        "global_batch",
        lambda at: (at.layout.schedule != "1f1b") | (at.micro_batches >= at.layout.pp),
        lambda at: f"{at.micro_batches:.6g} micro-batches, {at.layout.pp:,} stages",
        TORCH,
    ),
    Rule(
        "LAY016",
        "ep does not divide the experts",
        "ep must divide the experts, and is 1 in a model without experts",
        "ep",
        lambda at: ((experts(at) == 0) & (at.layout.ep == 1)) | ((experts(at) > 0) & (experts(at) % at.layout.ep == 0)),
        lambda at: f"{experts(at)} experts / {at.layout.ep:,}",
    ),
    Rule(
        "LAY017",
        "etp does not divide the expert width",
        "etp must divide the expert width, and is 1 without experts",
        "etp",
        lambda at: (
            ((experts(at) == 0) & (at.layout.etp == 1)) | ((experts(at) > 0) & (expert_width(at) % at.layout.etp == 0))
        ),
        lambda at: f"expert width {expert_width(at):,} / {at.layout.etp:,}",
    ),
    Rule(
        "LAY018",
        "experts with tp need sp",
        "Megatron-Core: with experts, tp > 1 needs sequence parallelism",
        "sp",
        lambda at: (experts(at) == 0) | (at.layout.tp == 1) | (at.layout.sliced == at.layout.tp),
        lambda at: f"tp {at.layout.tp:,}, sp off",
        MEGATRON,
    ),
    Rule(
        "LAY019",
        "more layers to recompute than a stage has",
        "recompute_layers is at most the layers of a stage, and above 0 with --recompute full alone",
        "recompute_layers",
        recompute_fits,
        lambda at: f"{at.layout.recompute_layers:,} of {longest_stage(at)}, recompute {at.layout.recompute}",
    ),
    Rule(
        "LAY020",
        "cp does not divide the heads",
        "Ulysses: tp x cp must divide the heads, those of keys and values too; Megatron-Core deals the heads of"
        " recurrent layers whatever the kind of context parallelism",
        "cp",
        lambda at: (at.layout.cp == 1) | heads_swap(at),
        lambda at: f"{spelled(dealt_heads(at))} heads / ({at.layout.tp:,} x {at.layout.cp:,})",
    ),
    Rule(
        "LAY021",
        "overlap_tp needs sp",
        "Megatron-Core: --tp-comm-overlap needs sequence parallelism",
        "overlap_tp",
        lambda at: (at.layout.overlap_tp == 0) | (at.layout.tp == 1) | (at.layout.sliced == at.layout.tp),
        lambda at: f"tp {at.layout.tp:,}, sp off",
        MEGATRON,
    ),
    Rule(
        "LAY022",
        "the engine does not have this ZeRO stage",
        "FSDP: 3 (resharded), 2 (not resharded), 0 (replicated); Megatron-LM of 2021: 0, of 2022: 0 and 1;"
        " nanotron: 0 and 1; MaxText: 0, 1 and 3; Megatron-Core and DeepSpeed: all",
        "zero",
        has_zero,
        lambda at: f"zero {at.layout.zero}, {at.engine.name}",
    ),
    Rule(
        "LAY023",
        "too few micro-batches for the schedule",
        "interleaved, looped_bfs, interleaved_zb, zb_h1: M >= pp; zb_h2, zbv: M >= 2 pp - 1; dualpipe_v: M >= 2 pp",
        "global_batch",
        lambda at: at.micro_batches >= at.schedule.least(at.layout.pp),
        lambda at: f"{at.layout.schedule}: {at.micro_batches:.6g} micro-batches, pp {at.layout.pp:,}",
    ),
    Rule(
        "LAY024",
        "the engine has no sequence parallelism",
        "Megatron-LM of 2021, Megatron-DeepSpeed of 2022, DeepSpeed, the transformers Trainer, llm-foundry: none",
        "sp",
        lambda at: at.engine.slices_sequence | (at.layout.sliced == 1),
        lambda at: f"sp on, {at.engine.name}",
    ),
    Rule(
        "LAY025",
        "experts cannot be sharded so",
        "dp_replicate must divide the ranks that hold the same experts, edp, where that is the larger",
        "dp_replicate",
        lambda at: (experts(at) == 0) | (at.layout.edp <= at.layout.dp_replicate) | whole_expert_shards(at),
        lambda at: f"edp {at.layout.edp:.6g} / dp_replicate {at.layout.dp_replicate:,}",
    ),
    *ENGINE_RULES,
    *HOLDING_RULES,
    *PART_RULES,
    Rule(
        "BAT001",
        "the batch cannot be shared",
        "global_batch must be a multiple of dp x micro_batch",
        "global_batch",
        lambda at: at.job.global_batch % (at.layout.dp * at.layout.micro_batch) == 0,
        lambda at: f"{at.job.global_batch:,} / ({at.layout.dp:,} x {at.layout.micro_batch:,}) = {at.micro_batches:.6g}",
    ),
    Rule(
        "BAT002",
        "the batch does not grow to the global batch",
        "--rampup is START,INCREMENT,SAMPLES: START to the global batch in whole increments, at most 10,000",
        "global_batch",
        grows,
        lambda at: f"{spelled(list(at.job.batch_rampup))}; global batch {at.job.global_batch:,}",
    ),
    Rule(
        "BAT003",
        "a smaller batch of the ramp cannot be shared",
        "START and INCREMENT are multiples of dp x micro_batch, and of pp times that with vpp > 1",
        "micro_batch",
        shares_ramp,
        lambda at: (
            f"{spelled(list(at.job.batch_rampup[:2]))} / ({at.layout.dp:,} x {at.layout.micro_batch:,}"
            f"{f' x {at.layout.pp:,}' if at.layout.vpp > 1 else ''})"
        ),
    ),
    Rule(
        "JOB001",
        "the sequence is longer than the learned positions",
        "a model with learned positions has no others",
        "sequence_length",
        lambda at: (at.model.positions == 0) | (at.job.sequence_length <= at.model.positions),
        lambda at: f"{at.job.sequence_length:,} tokens, {at.model.positions:,} positions",
    ),
    *RECIPE_RULES,
)


def rules_of(engine: str) -> tuple[Rule, ...]:
    """The rules that hold for an engine: everyone's and its own."""
    return tuple(rule for rule in RULES if not rule.engines or engine in rule.engines)
