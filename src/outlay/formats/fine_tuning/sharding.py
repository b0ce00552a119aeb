"""How a trainer shards: DistributedDataParallel, FSDP by its own arguments, or DeepSpeed by a file or a section."""

from dataclasses import dataclass, field, replace
from typing import Any

from ...job import AUTO
from ...layout.axes import Layout
from .. import deepspeed
from ..deepspeed.text import Held as DeepspeedHeld
from ..sections import AUTO_TEXT, Sections
from .reading import Reading

KEPT = ("zero", "overlap_dp", "offload_optimizer", "offload_parameters")
TYPES = ("master_dtype", "moment_dtype", "gradient_dtype", "reduce_dtype")
STRATEGIES = {"full_shard": 3, "shard_grad_op": 2, "no_shard": 0, "hybrid_shard": 3, "hybrid_shard_zero2": 2}
HYBRID = ("hybrid_shard", "hybrid_shard_zero2")
POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")


@dataclass(frozen=True)
class Sharding:
    """The engine that a run has, and the fields of layout and job that its sharding sets."""

    engine: str = "hf_trainer"
    layout: dict[str, Any] = field(default_factory=dict)
    job: dict[str, Any] = field(default_factory=dict)
    precision: Any = AUTO  # where DeepSpeed says it
    batch: tuple[Any, Any] = (AUTO, AUTO)  # micro-batch and accumulation, where DeepSpeed says them
    fsdp: int = 0  # its version
    reruns: bool = False  # FSDP's own recompute of every layer

    def types(self, precision: Any) -> dict[str, Any]:
        """Types of the state and the wire; DeepSpeed sends gradients in the type of training unless told otherwise."""
        sent = (
            {"reduce_dtype": precision} if self.engine == "deepspeed" and precision in ("bf16", "fp16", "fp32") else {}
        )
        return sent | self.job


def deepspeed_of(read: Reading, path: str) -> Sharding:
    """DeepSpeed under a trainer: a section is read; a file is asked for by name."""
    one = read.at.ask(path)
    assert one is not None
    if not isinstance(one.value, dict):
        name = read.text(f"{path}_config", "the launcher's file") if one.value is True else str(one.value)[:120]
        read.lacks("zero", f"it stands in {name} ({path}), which is another file, with offload if any")
        return Sharding("deepspeed")
    begin = f"{path}."
    inner = {key.removeprefix(begin): value for key, value in read.at.held.items() if key.startswith(begin)}
    read.at.asked.update(begin + key for key in inner)
    sections = Sections(inner)
    found = deepspeed.found_of(DeepspeedHeld("a section", sections, read.held.ranks))
    read.at.findings += [one for one in found.findings if one.code != "DSP002"]  # a trainer fills in what is auto
    read.kept += [replace(one, name=begin + one.name) for one in found.kept]
    numbers = (sections.count("train_micro_batch_size_per_gpu"), sections.count("gradient_accumulation_steps"))
    said = {name: getattr(found.job, name) for name in TYPES}
    precision = found.job.precision if _says_precision(sections) else AUTO
    return Sharding(
        "deepspeed",
        _said(found.layout),
        {name: value for name, value in said.items() if value is not AUTO and name != "reduce_dtype"}
        | ({"reduce_dtype": said["reduce_dtype"]} if "communication_data_type" in inner else {}),
        precision,
        numbers,
    )


def unsharded(read: Reading) -> Sharding:
    """No sharding among the arguments: DDP, unless the launcher has a file of Accelerate, which is asked for."""
    if not read.held.accelerate:
        return Sharding(layout={"zero": 0})
    why = f"it stands in {read.held.accelerate} (accelerate launch --config_file), which is another file"
    read.lacks("zero", why)
    return Sharding()


def _said(layout: Layout) -> dict[str, Any]:
    """The fields of a layout that DeepSpeed's section sets; axes of 1 are left to the trainer's own arguments."""
    axes = {name: value for name in ("tp", "cp", "ep", "etp") if (value := getattr(layout, name) or 1) > 1}
    kind = {"cp_kind": layout.cp_kind} if "cp" in axes else {}
    return axes | kind | {name: value for name in KEPT if (value := getattr(layout, name)) is not AUTO}


def _says_precision(sections: Sections) -> bool:
    said = [sections.held.get(f"{name}.enabled") for name in ("bf16", "fp16", "bfloat16")]
    return any(one is not None and one.value != AUTO_TEXT for one in said)


def check_deepspeed(read: Reading, path: str, found: Sharding, own: dict[str, Any], code: str) -> None:
    """Values that DeepSpeed's section has otherwise than the trainer, which then stops. `own`: the trainer's."""
    own = own | {"precision": "bf16"} if own.get("precision") == "fp8" else own  # bf16 around the multiplies in fp8
    theirs = {"micro_batch": found.batch[0], "steps": found.batch[1], "precision": found.precision}
    keys = {
        "micro_batch": "train_micro_batch_size_per_gpu",
        "steps": "gradient_accumulation_steps",
        "precision": "bf16.enabled or fp16.enabled",
    }
    for name, value in theirs.items():
        if value is not AUTO and own.get(name) not in (AUTO, value):
            rule = "transformers: values of DeepSpeed's file are auto, or the same as the trainer's"
            got = f"{value} in it, {own[name]} in the trainer's arguments"
            what = f"{keys[name]} is not what the trainer has"
            read.find(code, path, what, rule, got, f'"{keys[name].split(" ")[0]}": "auto"')


def fsdp_of(read: Reading, code: str, version: int = 2) -> Sharding:
    """FSDP by `fsdp` and `fsdp_config` of TrainingArguments; `version` where the section does not say one."""
    _without_prefix(read)
    said = read.words_of_switch("fsdp")
    version = _version(read, version)
    strategy = next((word for word in said if word in STRATEGIES), "")
    for word in said:
        if word not in (*STRATEGIES, "offload", "auto_wrap"):
            rule = "fsdp is true, or words of full_shard, shard_grad_op, offload, auto_wrap"
            read.find(code, "fsdp", f"fsdp has no option {word[:40]}", rule, word[:60], "fsdp: true")
    if version == 2 and strategy in (*HYBRID, "no_shard"):
        rule = "transformers: FSDP2, the default, takes full_shard and shard_grad_op; others need version 1"
        read.find(code, "fsdp", f"fsdp {strategy} is of FSDP1", rule, strategy, "fsdp: full_shard, or version: 1")
    zero = _stage(read, version, strategy)
    offload = "offload" in said or read.at.flag("fsdp_config.cpu_offload")
    _policy(read, code)
    layout: dict[str, Any] = {"zero": zero}
    if offload:
        layout |= {"offload_optimizer": 1.0, "offload_parameters": 1.0}
    if read.text("fsdp_config.auto_wrap_policy").upper() == "NO_WRAP":
        layout["gather_unit"] = "model"
    if strategy in HYBRID:
        read.note("hybrid_shard shards inside a node and copies between nodes: give --dp-replicate, the nodes")
    return Sharding("hf_trainer", layout, fsdp=version, reruns=read.at.flag("fsdp_config.activation_checkpointing"))


def _without_prefix(read: Reading) -> None:
    """Keys of `fsdp_config` also under their older names, `fsdp_version` for `version`."""
    begin = "fsdp_config.fsdp_"
    for path in [path for path in read.at.held if path.startswith(begin)]:
        plain = f"fsdp_config.{path.removeprefix(begin)}"
        read.at.asked.add(path)
        read.at.held.setdefault(plain, read.at.held[path])


def _version(read: Reading, default: int) -> int:
    said = read.at.count("fsdp_config.version", default)
    return int(said or default)


def _stage(read: Reading, version: int, strategy: str) -> int:
    """3, or 2 where the gathered weights stay."""
    path = "fsdp_config.reshard_after_forward"
    said = read.text(path).lower()
    if said in STRATEGIES:
        return STRATEGIES[said]
    if version == 1:
        return STRATEGIES.get(read.text("fsdp_config.sharding_strategy").lower() or strategy or "full_shard", 3)
    default = STRATEGIES.get(strategy, 3) != 2
    return 3 if read.at.switch(path, default) is not False else 2


def _policy(read: Reading, code: str) -> None:
    path = "fsdp_config.auto_wrap_policy"
    policy = read.text(path, POLICIES[0])
    if policy.upper() not in POLICIES:
        rule, fix = f"one of {', '.join(POLICIES)}", POLICIES[0]
        read.find(code, path, f"auto_wrap_policy {policy[:40]} is none", rule, policy[:60], fix)
    if policy.upper() == "SIZE_BASED_WRAP":
        read.note("SIZE_BASED_WRAP wraps by size: counted layer by layer")
    read.ignore(
        "fsdp_config fsdp_config.min_num_params fsdp_config.state_dict_type fsdp_config.cpu_ram_efficient_loading"
        " fsdp_config.use_orig_params fsdp_config.sync_module_states fsdp_config.forward_prefetch"
        " fsdp_config.backward_prefetch fsdp_config.limit_all_gathers fsdp_config.final_state_dict_type"
        " fsdp_config.cpu_offload_pin_memory fsdp_config.mixed_precision_policy"
    )
