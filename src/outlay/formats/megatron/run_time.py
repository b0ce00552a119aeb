"""What the parser of Megatron-LM lets pass and its run does not: rules of the batch, of the schedule, of the shards.

Checked against megatron-core 0.19.2: num_microbatches_calculator.py, pipeline_parallel/schedules.py,
tensor_parallel/mappings.py, transformer/transformer_config.py, transformer_block.py and moe/moe_layer.py.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from ...job import Job
from ...layout.axes import Layout
from ...layout.degrees import divisors
from ...model.model import Model
from ..setting import Settings

GROUP = "microbatch_group_size_per_virtual_pipeline_stage"


@dataclass(frozen=True)
class Said:
    """What a file says of one run; 0 where it does not."""

    settings: Settings
    model: Model | None
    job: Job
    layout: Layout
    ranks: int

    @property
    def dp(self) -> int:
        """Data-parallel ranks."""
        at = self.layout
        cut = (at.tp or 0) * (at.pp or 0) * (at.cp or 0)
        return self.ranks // cut if cut and self.ranks % cut == 0 else 0

    @property
    def each(self) -> int:
        """Sequences that all data-parallel ranks take at once."""
        return self.dp * (self.layout.micro_batch or 0)

    @property
    def batch(self) -> int:
        """Sequences of a step: without --global-batch-size one micro-batch a rank."""
        return self.job.global_batch or (0 if self.settings.held.get("global_batch_size") else self.each)

    @property
    def longest(self) -> int:
        """Layers of the longest chunk."""
        at = self.layout
        chunks = (at.pp or 0) * (at.vpp or 0)
        layers = self.model.layers if self.model else 0
        return max(at.split) if at.split else ceil(layers / chunks) if chunks else 0


def at_run_time(said: Said) -> Layout:
    """Keep what the run will refuse; the layout as it will be."""
    _batch(said)
    _interleaving(said)
    _sequence(said)
    if said.model and said.model.blocks[0].attention:
        _key_value_heads(said, said.model.blocks[0].attention)
    _experts(said)
    return _block(said)


def _batch(said: Said) -> None:
    each, batch, settings = said.each, said.batch, said.settings
    # The parser divides the batch of evaluations too, which is this one unless it is given.
    lowered = settings.on("decrease_batch_size_if_needed") and settings.number("eval_global_batch_size") > 0
    if not each or not batch:
        return
    ramp = [size for size in said.job.batch_rampup[:2] if size % each]
    wrong = "rampup_batch_size" if ramp and batch % each == 0 else "global_batch_size"
    if batch % each == 0 and not ramp:
        return
    size = ramp[0] if wrong == "rampup_batch_size" else batch
    got = f"{size:,} / ({said.layout.micro_batch} x {said.dp}) = {size / each:.6g} micro-batches"
    rule = "the batch is a multiple of micro-batch x data-parallel ranks, at the start of a ramp and in its steps too"
    fix = f"{size // each * each or each:,} or {(size // each + 1) * each:,} sequences"
    edits = _smaller(said) if wrong == "global_batch_size" else {}
    fix += f", or --micro-batch-size {edits['micro_batch_size']}" if edits else ""
    name = "micro_batch_size" if wrong not in settings.held else wrong
    what = f"the batch of {size:,} cannot be shared by {said.dp:,} data-parallel ranks"
    settings.find("MEG008", name, what, rule, got, fix, serious=not lowered, edits=edits)


def _smaller(said: Said) -> dict[str, str | None]:
    """The largest micro-batch under this one that shares the same batch out."""
    share, rest = divmod(said.batch, said.dp)
    fits = list(divisors(share, said.layout.micro_batch)) if share and not rest else []
    return {"micro_batch_size": str(fits[-1])} if fits else {}


def _interleaving(said: Said) -> None:
    at, settings = said.layout, said.settings
    group = settings.number(GROUP) or at.pp or 0
    if (at.vpp or 1) == 1 or (at.pp or 1) == 1:
        return
    if group < at.pp:
        what = "the groups of micro-batches are smaller than the pipeline"
        rule = "interleaving: a group of micro-batches is at least the stages"
        fix = f"leave it out: it is {at.pp} then"
        settings.find("MEG010", GROUP, what, rule, f"group {group}, {at.pp} stages", fix, edits={GROUP: None})
        return
    micro, rest = divmod(said.batch, said.each) if said.each else (0, 0)
    if not micro or rest or (group <= micro and (micro % group == 0 or micro % group >= at.pp)):
        return
    whole = at.pp * said.each
    low, high = said.batch // whole * whole, (said.batch // whole + 1) * whole
    what = f"{micro:,} micro-batches do not fill the rounds of interleaving"
    rule = f"interleaving: micro-batches are in groups of {group}, and the last group is not under the {at.pp} stages"
    got = f"{said.batch:,} / ({at.micro_batch} x {said.dp}) = {micro:,} micro-batches, {at.pp} stages, {at.vpp} chunks"
    fix = f"--global-batch-size {f'{low:,} or ' if low else ''}{high:,}, or stages without chunks"
    name = "global_batch_size" if "global_batch_size" in settings.held else "micro_batch_size"
    mends = group > at.pp and micro >= at.pp and micro % at.pp == 0
    settings.find("MEG009", name, what, rule, got, fix, edits={GROUP: None} if mends else None)


def _sequence(said: Said) -> None:
    at, sequence = said.layout, said.job.sequence_length or 0
    cut = (at.tp or 1) * (at.cp or 1)
    if not at.sp or not sequence or sequence % cut == 0:
        return
    step = cut * (2 if (at.cp or 1) > 1 else 1)
    rule = "sequence parallelism: tensor x context divides the sequence"
    got = f"{sequence:,} tokens / ({at.tp} x {at.cp}) = {sequence / cut:.6g}"
    fix = f"--seq-length {sequence // step * step or step:,} or {(sequence // step + 1) * step:,}"
    what = "the sequence cannot be cut by sequence parallelism"
    said.settings.find("MEG011", "seq_length", what, rule, got, fix)


def _key_value_heads(said: Said, attention: Any) -> None:
    tp, heads = said.layout.tp or 1, attention.kv_heads
    if attention.latent_rank or heads % tp == 0 or tp % heads == 0 or attention.heads % tp:
        return  # that tp does not divide the heads is a finding of its own
    rule = "key/value heads are a multiple of tensor-model-parallel-size, or a divisor of it"
    good = [size for size in divisors(attention.heads) if heads % size == 0 or size % heads == 0]
    fix = f"--tensor-model-parallel-size {', '.join(map(str, good))}"
    what = f"{heads} key/value heads do not go with tensor-model-parallel-size {tp}"
    name = "num_query_groups" if "num_query_groups" in said.settings.held else "num_attention_heads"
    said.settings.find("MEG012", name, what, rule, f"{heads} / {tp}", fix)


def _experts(said: Said) -> None:
    at = said.layout
    if not said.settings.number("num_experts") or (at.tp or 1) == 1 or at.sp:
        return
    what = "experts with tensor parallelism, and no sequence parallelism"
    rule = "Megatron-LM: experts with tensor-model-parallel-size above 1 train with --sequence-parallel alone"
    edits = {"sequence_parallel": ""}
    said.settings.find("MEG024", "num_experts", what, rule, f"tp {at.tp}", "add --sequence-parallel", edits=edits)


def _block(said: Said) -> Layout:
    """More layers to recompute than a chunk has: all of them run again, and no more."""
    at, settings = said.layout, said.settings
    count, longest = settings.number("recompute_num_layers"), said.longest
    block = settings.word("recompute_method", ("uniform", "block")) == "block"
    if at.recompute != "full" or not block or not longest or count <= longest:
        return at
    what = f"a chunk has no {count:,} layers to recompute"
    rule = "--recompute-method block: --recompute-num-layers counts layers of one chunk; all run again, and no more"
    fix, edits = f"--recompute-num-layers {longest}", {"recompute_num_layers": str(longest)}
    got = f"{count:,} of {longest:,} layers a chunk"
    settings.find("MEG013", "recompute_num_layers", what, rule, got, fix, serious=False, edits=edits)
    return replace(at, recompute_layers=longest * (at.vpp or 1))
