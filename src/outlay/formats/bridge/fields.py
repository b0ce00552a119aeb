"""Fields of Megatron-Bridge as the settings of Megatron-LM, which its layout, task and model are read from."""

from dataclasses import dataclass, field, replace

from ..setting import FALSE, TRUE, UNSET, Setting
from .names import APART, FLAGS, NOTHING_TO_COUNT

# Named precisions: the flags that each stands for. Source: src/megatron/bridge/training/mixed_precision.py.
EIGHT = {"delayed_scaling": "delayed", "current_scaling": "tensorwise", "subchannel_scaling": "blockwise"}
GATHERS = ("delayed", "tensorwise", "mxfp8")  # whose weights are gathered in 8 bit
PARTS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}


@dataclass
class Translated:
    """Settings under the names of Megatron-LM's flags, those that stand apart, and what is not known here."""

    flags: dict[str, Setting] = field(default_factory=dict)
    apart: dict[str, Setting] = field(default_factory=dict)
    unread: dict[str, Setting] = field(default_factory=dict)


def translated(held: dict[str, Setting]) -> Translated:
    """Every setting in its place. Of two fields that mean one flag, the one of `comm_overlap`, which is put over the
    others, else the one that says yes, else the first."""
    made = Translated()
    for path, one in held.items():
        flag = FLAGS.get(path)
        if flag is None:
            place = made.apart if path in APART else made.unread
            place.update({} if path in NOTHING_TO_COUNT else {path: one})
            continue
        one = replace(one, values=tuple(value.removeprefix("torch.") for value in one.values))
        before = made.flags.get(flag)
        if before is None or _word(before) in UNSET or _stands_over(one, before):
            made.flags[flag] = one
    _model(made)
    _precision(made)
    _usual(made)
    return made


def _stands_over(one: Setting, before: Setting) -> bool:
    last = "comm_overlap."
    if one.name.startswith(last) or before.name.startswith(last):
        return one.name.startswith(last) and _word(one) not in UNSET
    return _word(before) in FALSE and _word(one) in TRUE


def _word(one: Setting | None) -> str:
    return one.values[0].strip().lower() if one and one.values else ""


def _put(made: Translated, flag: str, value: str, at: Setting | None = None) -> None:
    """Set a flag that is not set."""
    place = at or Setting(flag, ())
    made.flags.setdefault(flag, replace(place, values=(value,), unknown=""))


def _model(made: Translated) -> None:
    shares = made.apart.get("model.share_embeddings_and_output_weights")
    if _word(shares) in FALSE and shares:
        _put(made, "untie_embeddings_and_output_weights", "true", shares)
    groups = made.flags.get("num_query_groups")
    if groups and _word(groups) not in UNSET:
        _put(made, "group_query_attention", "true", groups)
    layout = made.flags.get("pipeline_model_parallel_layout")
    if layout and layout.values and "[" in layout.values[0]:
        made.flags["pipeline_model_parallel_layout"] = _listed(layout)
    frequency = made.flags.get("moe_layer_freq")
    if frequency and frequency.values:
        made.flags["moe_layer_freq"] = replace(frequency, values=("".join(frequency.values[0].split()),))


def _listed(one: Setting) -> Setting:
    """A layout as a list of stages, each a list of `embedding`, `decoder`, `mtp` and `loss`, as its string."""
    inner = one.values[0].replace('"', "").replace("'", "").replace(" ", "").replace("\n", "")
    stages = [stage.strip("[],").split(",") for stage in inner.strip("[]").split("],[")]
    if not all(part in PARTS or not part for stage in stages for part in stage):
        return replace(one, unknown="it stands in code, which is not run")
    return replace(one, values=("|".join("".join(PARTS.get(part, "") for part in stage) for stage in stages),))


def _precision(made: Translated) -> None:
    """What `mixed_precision` names, and what stands beside it. Recipes take bf16_mixed by themselves."""
    named = made.apart.get("mixed_precision")
    word = _word(named).replace("-", "_").rpartition(".")[2]
    plain_types = any(_word(made.flags.get(name)) in TRUE for name in ("bf16", "fp16"))
    if named is None and not plain_types:
        word = "bf16_mixed"
    if word.startswith(("bf16", "fp16")) or "bf16_with" in word:
        _put(made, "fp16" if word.startswith("fp16") else "bf16", "true", named)
    eight = next((recipe for part, recipe in EIGHT.items() if part in word), "mxfp8" if "mxfp8" in word else "")
    eight = "blockwise" if word.startswith("nanov2_") else eight
    if eight:
        _put(made, "fp8_format", "hybrid", named)
        _put(made, "fp8_recipe", eight, named)
        if eight in GATHERS or word.startswith("nanov2_"):
            _put(made, "fp8_param_gather", "true", named)
    if "nvfp4" in word:
        _put(made, "fp4_format", "e2m1", named)
    wide = made.apart.get("mixed_precision.grad_reduce_in_fp32") or made.apart.get("ddp.grad_reduce_in_fp32")
    if _word(wide) in FALSE and wide:
        _put(made, "grad_reduce_in_bf16", "true", wide)
    elif _word(wide) in TRUE and wide:
        _put(made, "accumulate_allreduce_grads_in_fp32", "true", wide)
    gathers = made.apart.get("mixed_precision.fp8_param")
    if gathers and _word(gathers) in TRUE:
        _put(made, "fp8_param_gather", "true", gathers)


def _usual(made: Translated) -> None:
    """What every recipe of Megatron-Bridge sets where nothing else is said: src/megatron/bridge/recipes/common.py."""
    for flag in ("use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"):
        _put(made, flag, "true")
    _put(made, "data_parallel_sharding_strategy", "optim_grads_params")
