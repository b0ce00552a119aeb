"""What PyTorch is run with here, and what it is not: each limit is one short reason, empty where there is none."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from ..job import HALF, SINGLE
from ..layout.case import Case
from ..model.model import Block, Model, decoder_block
from ..model.parts import Attention, Experts, FeedForward

CUTS = ("cp", "ep", "etp")
HERE = ("fsdp2", "fsdp2-uncompiled", "hf_trainer")  # engines whose sharding and collectives are what runs here
EAGER = ("fsdp2-uncompiled", "hf_trainer")  # and those whose kernels are too
TRAINER = "transformers"  # the kernel set under which transformers' Llama is what runs


def first(reasons: Iterable[tuple[object, str]]) -> str:
    """The first reason that holds."""
    return next((why for holds, why in reasons if holds), "")


def cut_otherwise(case: Case) -> str:
    """Why no rank of the layout is run: what is cut beside tensors and data, or another engine."""
    at, found = case.layout, [f"{axis} {getattr(case.layout, axis)}" for axis in CUTS if getattr(case.layout, axis) > 1]
    return first(
        (
            (found, f"{', '.join(found)}: a rank of tensor, data or pipeline parallelism alone is run"),
            (case.engine.name not in HERE, f"engine {case.engine.name} is not run here (--engine fsdp2-uncompiled is)"),
            (case.job.precision != "bf16", f"precision {case.job.precision}: a step in bf16 is run"),
            (not case.job.training.whole, "frozen parts and adapters are not run"),
            (at.zero == 1, "zero 1 is not run: PyTorch shards with FSDP2 (--zero 2 or 3)"),
            (at.zero == 0 and at.dp_replicate > 1 and at.dp_shard > 1, "copies in two dimensions are not run"),
            (at.gather_unit == "model", "--gather-unit model is not run"),
            (case.compute_bytes != HALF, f"weights gathered in {case.compute_bytes} B are not run"),
            (case.model.vocab % at.tp or not at.keep_gathered, "uneven vocabularies and a second gather are not run"),
        )
    )


def kept_otherwise(case: Case) -> str:
    """Why the memory of a rank is not tracked, beyond `cut_otherwise`."""
    at, recipe = case.layout, case.recipe
    moved = at.offload_optimizer or at.offload_parameters or at.offload_activations
    types = (recipe.weights, recipe.gradients) == ((SINGLE, SINGLE) if at.zero else (HALF, HALF))
    part = at.recompute == "full" and at.recompute_layers != case.model.layers
    named = at.recompute == "selective" and (at.recompute_modules != ("core_attn",) or case.engine.kernels == TRAINER)
    return first(
        (
            (at.zero == 0 and at.dp > 1, "zero 0 over several ranks: their memory is that of one"),
            (case.job.optimizer != "adam", f"optimizer {case.job.optimizer}: AdamW is run"),
            (not types, "state of other types than FSDP2's fp32, or bf16 alone (--zero 0 --bytes 8), is not run"),
            (moved, "offload is not run"),
            (part or at.recompute_group > 1, "recompute of some layers, or of groups of them, is not run"),
            (named, f"recompute of {', '.join(at.recompute_modules) or 'modules'} is not run"),
            (at.loss_chunks > 1, "a loss in chunks is not run"),
            (case.engine.kernels == TRAINER and at.tp > 1, "the Trainer's Llama is not cut over tp here"),
        )
    )


def built_otherwise(model: Model, case: Case) -> str:
    """Why no plain model of torch is built: its layers are not of attention and a gated part, as ours are."""
    trainer = case.engine.kernels == TRAINER
    bare = replace(model, notes=(), trained_length=0, mtp_layers=0, mtp_blocks=())
    blocks = tuple(made for block in model.blocks if (made := _like(block, case)))
    mine = Model(model.name, model.family, model.hidden, model.vocab, blocks, model.pattern, tied=model.tied)
    seen = [part.window for block in model.blocks if (part := block.attention) and part.window]
    return first(
        (
            (
                mine != bare,
                f"{model.name} is not of layers of Llama's, Mixtral's or DeepSeek's kind, which are built here",
            ),
            (seen and min(seen) < case.job.sequence_length, f"a window of {min(seen, default=0):,} tokens is not run"),
            (trainer and (len(blocks) > 1 or model.experts), "the Trainer's Llama alone is run"),
        )
    )


def _like(block: Block, case: Case) -> Block | None:
    """The same layer without what families add, and what is not built; nothing where it is of another kind."""
    of, part = block.attention, block.feed_forward or block.experts
    if of is None or part is None:
        return None
    cut = case.layout.tp > 1 or case.engine.kernels == TRAINER
    like = Attention(
        of.heads, of.kv_heads, of.head_dim, of.head_dim, window=of.window,
        qkv_bias=of.qkv_bias and not of.latent_rank and case.engine.kernels != TRAINER, head_norm=_norm(of, cut),
    )  # fmt: skip
    if of.latent_rank and not cut:
        widths = {name: getattr(of, name) for name in ("value_dim", "query_rank", "latent_rank", "rope_dim")}
        like = replace(like, **widths)
    if isinstance(part, FeedForward):
        mlp: FeedForward | Experts = FeedForward(part.width)
    else:
        mlp = Experts(part.experts, part.active, part.expert_width, shared_width=0 if cut else part.shared_width)
    return replace(block, sublayers=decoder_block(block.name, like, mlp).sublayers)


def _norm(attention: Attention, without: object) -> Literal["none", "head", "all"]:
    """Norms of queries and keys, where they can be built."""
    return "none" if without or attention.head_norm not in ("head", "all") else attention.head_norm


ALONE = "ZeRO over one rank: what FSDP2 does there, nobody runs"
COMPILED = "a compiler fuses the loss, and none is run here (--engine fsdp2-uncompiled counts what is)"


def measured_otherwise(kind: str, case: Case) -> str:
    """Why one of states, tape and peak of a rank that is run is not compared."""
    compiled = kind != "states" and case.engine.name not in EAGER
    alone = kind == "peak" and case.layout.zero and case.layout.dp_shard == 1
    return first(((compiled, COMPILED), (alone, ALONE)))


def moved_otherwise(case: Case) -> str:
    """Why the collectives of a rank are not logged, beyond `cut_otherwise`."""
    at = case.layout
    some = at.recompute == "full" and at.recompute_layers != case.model.layers
    modules = at.recompute == "selective" and at.recompute_modules != ("core_attn",)
    return first(
        (
            (at.world == 1, "one rank sends nothing"),
            (
                at.tp > 1 and (some or modules),
                "recompute of some layers or modules under tensor parallelism is not run",
            ),
            (at.tp > 1 and at.recompute_group > 1, "groups of layers that run again together are not run"),
        )
    )


def classes_otherwise(case: Case, config: bool) -> str:
    """Why a class of transformers does not stand in for a model that is not built here."""
    return first(
        (
            (not config, "there is no config.json for transformers to build it from"),
            (
                case.layout.tp > 1,
                f"{case.model.name} is not of Llama's kind, and transformers' own is not cut over tp here",
            ),
            (case.model.tied and case.ends_apart, "a tied table with its ends apart is not run"),
        )
    )
