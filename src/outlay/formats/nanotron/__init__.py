"""nanotron's YAML: read with the model in it, and written.

Read from the source of huggingface/nanotron 2411b02, whose loader stops at keys that it does not have.
"""

from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ...errors import InputError
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.model import Model
from ..json_comments import Placed
from ..sections import Sections, flattened
from ..setting import Found, Missing, fault
from ..source import text_of
from ..yaml_placed import read_yaml
from .keys import KEYS, NEEDED
from .model import AT, model_of
from .write import DTYPES, HELD, RELEASE, write

ENGINE, ENGINES = "nanotron", ("nanotron",)
COMMENTS = True
ORDERS = {"afab": "gpipe", "1f1b": "1f1b"}
MODES = ("all_reduce", "reduce_scatter")
PRECISIONS = {torch: ours for ours, torch in DTYPES.items()}


def is_of(text: str) -> bool:
    """Whether a text is YAML with nanotron's sections, `parallelism` with a degree among them."""
    lines = f"\n{text}"
    degree = any(f"\n  {name}:" in lines or f"\n    {name}:" in lines for name in ("dp", "tp", "pp"))
    return "\nparallelism:" in lines and degree and ("\ntokens:" in lines or "\nmodel:" in lines)


def read(content: bytes) -> Found:
    """What a nanotron configuration says. Raises InputError (FMT002 .. FMT005) with line and column."""
    at = Sections(flattened(read_yaml(text_of(content))))
    if not any(path in at.held for path in ("parallelism.tp", "parallelism.dp", "tokens.micro_batch_size", AT)):
        rule, what = "parallelism, tokens, model: nanotron's sections", "nothing here is a nanotron configuration"
        raise InputError(fault("FMT004", what, rule, f"keys {', '.join(at.held)[:60]}", "the file of the run"))
    notes: list[str] = []
    model = model_of(at, notes)
    layout = _layout(at, notes)
    job = _job(at, notes)
    micro, steps = at.count("tokens.micro_batch_size"), at.count("tokens.batch_accumulation_per_replica")
    dp = layout.dp_shard
    batch = micro * steps * dp if micro and steps and dp else AUTO
    length = at.count("tokens.train_steps", 0) or 0
    tokens = float(length * batch * job.sequence_length) if batch and job.sequence_length else 0.0
    _refused(at, model, layout)
    if at.faults:
        raise InputError(*at.faults)
    cut = (layout.tp, layout.cp, layout.pp, dp)
    ranks = layout.tp * layout.cp * layout.pp * dp if AUTO not in cut else 0
    missing = {
        "model": model is None and "the file has no model.model_config that is read",
        "sequence_length": job.sequence_length is AUTO and "tokens.sequence_length is not in the file",
        "global_batch": batch is AUTO
        and "micro_batch_size x batch_accumulation_per_replica x dp is not all in the file",
    }
    return Found(
        "nanotron",
        "YAML",
        model,
        replace(job, global_batch=batch, tokens=tokens),
        replace(layout, micro_batch=micro),
        ENGINE,
        ranks,
        tuple(Missing(name, why) for name, why in missing.items() if why),
        tuple(at.kept()),
        tuple(notes),
        tuple(at.findings),
    )


def _layout(at: Sections, notes: list[str]) -> Layout:
    """How the run is cut. ZeRO of any stage shards the optimizer, over the data-parallel ranks."""
    degrees = {name: at.count(f"parallelism.{name}", 1) for name in ("dp", "pp", "tp")}
    stage = at.count("optimizer.zero_stage", 0)
    if stage and stage > 1:
        rule, fix = "nanotron shards the optimizer in every stage but 0", "zero_stage: 1"
        at.find("NAN007", "optimizer.zero_stage", f"stage {stage} is stage 1", rule, f"{stage}", fix, serious=False)
    mode = _word(at, "parallelism.tp_mode", MODES, "all_reduce")
    again = at.switch("parallelism.recompute_layer", False)
    if at.flag("parallelism.moe_layer_recompute") and not again:
        notes.append("moe_layer_recompute: that experts alone run again is not counted")
    return Layout(
        tp=degrees["tp"],
        sp=mode == "reduce_scatter" and degrees["tp"] != 1,
        keep_gathered=not at.switch("parallelism.tp_recompute_allgather", True),
        cp=at.count("parallelism.context_parallel_size", 1),
        cp_kind="ring",
        pp=degrees["pp"],
        vpp=1,
        ep=at.count("parallelism.expert_parallel_size", 1),
        etp=at.count("parallelism.expert_tensor_parallel_size", 1),
        moe_dispatch=_dispatch(at),
        dp_replicate=1,
        dp_shard=degrees["dp"],
        zero=min(stage, 1) if stage is not AUTO else AUTO,
        schedule=ORDERS[_word(at, "parallelism.pp_engine", tuple(ORDERS), "afab")],  # type: ignore[arg-type]
        recompute="full" if again else "none",
        overlap_tp=at.switch("parallelism.tp_linear_async_communication", False),
        split=(),
    )


def _dispatch(at: Sections) -> Any:
    kind = at.word(f"{AT}.moe_config.token_dispatcher_type", "alltoall")
    return "all_gather" if kind == "allgather" else "all_to_all"


def _word(at: Sections, path: str, known: tuple[str, ...], usual: str) -> str:
    """One of the words that nanotron has; another one is a finding, and the usual one is taken."""
    word = at.word(path, usual)
    if word in known or path not in at.held:
        return word if word in known else usual
    rule, fix = f"nanotron has {', '.join(known)}", known[-1]
    at.find("NAN003", path, f"nanotron has no {path.rpartition('.')[2]} {word[:40]}", rule, word[:60], fix)
    return usual


def _job(at: Sections, notes: list[str]) -> Job:
    dtype = _word(at, "model.dtype", tuple(PRECISIONS), "bfloat16")
    precision: Any = PRECISIONS[dtype]
    wide = at.switch("optimizer.accumulate_grad_in_fp32", True)
    name = at.word("optimizer.optimizer_factory.name", "adamw")
    if name not in ("adamw", "adam", "sgd"):
        notes.append(f"optimizer {name} is not counted: read as adam")
    if (at.count("model.make_vocab_size_divisible_by", 1) or 1) > 1:
        notes.append("make_vocab_size_divisible_by: the vocabulary is counted as a multiple of tp alone")
    kept: Any = {} if wide else {"master_dtype": "none", "gradient_dtype": precision, "moment_dtype": precision}
    return Job(
        sequence_length=at.count("tokens.sequence_length"),
        precision=precision,
        optimizer="sgd" if name == "sgd" else "adam",
        **kept,
    )


def _refused(at: Sections, model: Model | None, layout: Layout) -> None:
    """What nanotron's configuration asserts before a run starts."""
    for section, names in KEYS.items():
        held = at.held if not section else getattr(at.held.get(section), "value", None)
        for path in _children(held, section):
            if path.rpartition(".")[2] not in names:
                close = get_close_matches(path.rpartition(".")[2], names, n=1)
                rule, fix = "nanotron's loader is strict", f"did you mean {close[0]}?" if close else "remove it"
                at.find("NAN004", path, f"nanotron has no key {path[:60]}", rule, path[:60], fix)
    lacks = [f"{section}.{name}".lstrip(".") for section, names in NEEDED.items() for name in names
             if (not section or section in at.held) and f"{section}.{name}".lstrip(".") not in at.held]  # fmt: skip
    if lacks:
        rule, got = "keys of its classes that have no default", ", ".join(lacks)[:120]
        at.find("NAN005", lacks[0].rpartition(".")[0], "keys that nanotron needs are not there", rule, got, "add them")
    attention = model.blocks[0].attention if model else None
    if attention is None or layout.tp is AUTO:
        return
    heads, groups = attention.heads, attention.kv_heads
    where, tp = f"{AT}.num_attention_heads", layout.tp
    if heads % tp:
        at.find(
            "NAN001", where, "tp does not divide the heads", "num_attention_heads % tp == 0", f"{heads} / {tp}", "tp"
        )
    if groups < tp:
        got = f"{groups} key/value heads, tp {tp}"
        at.find("NAN002", where, "fewer key/value heads than tp", "num_key_value_heads >= tp", got, f"tp {groups}")
    if heads % groups:
        rule = "num_attention_heads % num_key_value_heads == 0"
        at.find("NAN001", where, "key/value heads do not divide the heads", rule, f"{heads} / {groups}", "other heads")


def _children(held: Any, section: str) -> list[str]:
    """Paths right below a section."""
    if not isinstance(held, dict):
        return []
    if not section:
        return [path for path in held if "." not in path]
    return [f"{section}.{name}" for name, one in held.items() if isinstance(one, Placed)]


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]
