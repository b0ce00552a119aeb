"""What Accelerate refuses when it launches, and what it takes in silence that does not do what it seems to.

Source: huggingface/accelerate 1.15.0, commands/config/config_args.py, commands/launch.py, utils/launch.py,
utils/dataclasses.py and parallelism_config.py.
"""

from ...errors import nearest, quoted
from ...job import AUTO
from ..setting import FALSE, TRUE
from .keys import OF_TYPE, ONE_EACH, SECTIONS, TOP, TYPES, Held
from .layout import COMMUNICATION, DEEPSPEED, FSDP, MEGATRON, SIZES, STRATEGIES, processes, sizes_of

PRECISIONS = ("no", "fp8", "fp16", "bf16")
POLICIES = ("transformer_based_wrap", "size_based_wrap", "no_wrap")
STATES = ("full_state_dict", "local_state_dict", "sharded_state_dict")
OF_ONE = ("sharding_strategy", "backward_prefetch", "forward_prefetch", "use_orig_params", "sync_module_states")
WITH_FILE = (
    "gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device",
    "offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model",
)  # fmt: skip


def look(held: Held) -> None:
    """Keep every finding."""
    _keys(held)
    _top(held)
    if held.kind == "FSDP":
        _fsdp(held)
    if held.kind == "DEEPSPEED":
        _deepspeed(held)
    if held.kind == "MEGATRON_LM":
        _megatron(held)
    if "parallelism_config" in held.at.held:
        _sizes(held)
    _world(held)


def _keys(held: Held) -> None:
    at = held.at
    for path, one in at.held.items():
        section, dot, key = path.partition(".")
        known = SECTIONS.get(section)
        if not dot and section not in TOP:
            close = nearest(section, TOP)
            fix = f"did you mean {close[0]}?" if close else "remove it"
            rule = "a key that it does not know, at the top, stops accelerate launch"
            at.find("ACC003", path, f"Accelerate has no key {section}", rule, section, fix)
        elif dot and "." not in key and known and key not in known and not isinstance(one.value, dict):
            close = nearest(key, known)
            fix = f"did you mean {close[0]}?" if close else "remove it"
            rule = "keys of a section that it does not know are taken in silence, and do nothing"
            at.find("ACC004", path, f"{key} has no effect", rule, key, fix, serious=False)
    for section, kind in OF_TYPE.items():
        if at.held.get(section) and held.kind in TYPES and held.kind != kind and _filled(held, section):
            rule, got = f"{section} is read with distributed_type {kind}", f"distributed_type {held.kind}"
            fix = f"distributed_type: {kind}, or remove it"
            at.find("ACC016", section, f"{section} has no effect", rule, got, fix, serious=False)


def _filled(held: Held, section: str) -> bool:
    return any(path.startswith(f"{section}.") for path in held.at.held)


def _word(held: Held, path: str, good: tuple[str, ...]) -> None:
    """A finding where a word is none of those that Accelerate has."""
    one = held.at.held.get(path)
    if one is not None and one.value is not None and str(one.value).strip().lower() not in good:
        rule, fix = f"one of {', '.join(good)}", good[0]
        what = f"{path.rpartition('.')[2]} is not known"
        held.at.find("ACC007", path, what, rule, quoted(one.value), fix)


def _top(held: Held) -> None:
    at = held.at
    if held.kind not in TYPES:
        rule = f"one of {', '.join(TYPES)}"
        path = "distributed_type" if "distributed_type" in at.held else next(iter(at.held), "")
        what = "distributed_type is not known" if held.kind else "distributed_type is not said"
        at.find("ACC007", path, what, rule, quoted(held.kind), "FSDP")
    one = at.held.get("mixed_precision")
    if held.bare:
        rule = "without quotes YAML takes the word for a switch, and the launch stops"
        at.find("ACC006", "mixed_precision", "mixed_precision is no text", rule, "no", "mixed_precision: 'no'")
    elif one is not None and one.value is not None and str(one.value).lower() not in PRECISIONS:
        rule = f"one of {', '.join(PRECISIONS)}; the file is loaded, and the launch stops"
        at.find("ACC006", "mixed_precision", "there is no such mixed precision", rule, quoted(one.value), "bf16")
    ranks, machines = processes(at), at.count("num_machines", 1)
    if ranks is AUTO and held.kind != "NO":
        rule = "without num_processes accelerate launch asks for --num_processes"
        path = "num_processes" if "num_processes" in at.held else "distributed_type"
        at.find("ACC015", path, "the number of ranks is not said", rule, "none", "num_processes: 8", serious=False)
    elif ranks and machines and ranks % machines:
        rule = "num_processes is of all machines, and each gets the same number, rounded down"
        got, fix = f"{ranks:,} / {machines:,}", f"num_processes: {ranks // machines * machines}"
        at.find("ACC014", "num_processes", "the machines do not share the ranks out", rule, got, fix, serious=False)


def _fsdp(held: Held) -> None:
    at = held.at
    _word(held, f"{FSDP}auto_wrap_policy", POLICIES)
    _word(held, f"{FSDP}version", ("2", "1"))
    _word(held, f"{FSDP}state_dict_type", STATES if held.version == 1 else STATES[::2])
    if held.version == 1:
        _word(held, f"{FSDP}sharding_strategy", (*STRATEGIES, "1", "2", "3", "4", "5"))
    else:
        _word(held, f"{FSDP}reshard_after_forward", (*TRUE, *FALSE, "y", "t", "n", "f"))
    useless = OF_ONE if held.version == 2 else ("reshard_after_forward",)
    for name in useless:
        if f"{FSDP}{name}" in at.held:
            rule = f"FSDP{held.version} does not read it"
            fix = "fsdp_reshard_after_forward: true or false" if name == "sharding_strategy" else "remove it"
            fix = "fsdp_sharding_strategy, or fsdp_version: 2" if held.version == 1 else fix
            at.find("ACC005", f"{FSDP}{name}", f"fsdp_{name} has no effect", rule, name, fix, serious=False)
    away = at.flag(f"{FSDP}activation_checkpointing_offload")
    if away and (held.version == 1 or not at.flag(f"{FSDP}activation_checkpointing")):
        rule = "it needs fsdp_version 2 and fsdp_activation_checkpointing"
        path = f"{FSDP}activation_checkpointing_offload"
        at.find("ACC009", path, "checkpoints cannot leave the device", rule, f"FSDP{held.version}", "add both")
    sync, loads = (at.held.get(f"{FSDP}{name}") for name in ("sync_module_states", "cpu_ram_efficient_loading"))
    if sync is not None and sync.value is False and (loads is None or loads.value is not False):
        rule = "fsdp_cpu_ram_efficient_loading, which is on unless told otherwise, needs fsdp_sync_module_states"
        fix = "remove it, or fsdp_cpu_ram_efficient_loading: false"
        at.find("ACC010", f"{FSDP}sync_module_states", "ranks would hold different weights", rule, "false", fix)
    if held.version == 1 and _filled(held, "parallelism_config"):
        rule, fix = "parallelism_config goes with FSDP2", "fsdp_version: 2"
        at.find("ACC008", "parallelism_config", "FSDP1 takes no parallelism_config", rule, "fsdp_version 1", fix)


def _deepspeed(held: Held) -> None:
    at = held.at
    file = at.held.get(f"{DEEPSPEED}deepspeed_config_file")
    if file is None or not file.value:
        return
    paths = [f"{DEEPSPEED}{name}" for name in WITH_FILE if f"{DEEPSPEED}{name}" in at.held]
    for path in [*paths, *(["mixed_precision"] if "mixed_precision" in at.held else [])]:
        rule = "with deepspeed_config_file these stand in that file alone, and the launch stops"
        name = path.rpartition(".")[2]
        at.find("ACC011", path, f"{name} stands beside deepspeed_config_file", rule, name, "remove it here")


def _megatron(held: Held) -> None:
    at = held.at
    if f"{MEGATRON}context_parallel_size" not in at.held:
        rule, fix = "the plugin's own default is 2", "megatron_lm_context_parallel_size: 1"
        what = "the sequence is cut over 2 ranks"
        at.find("ACC012", "megatron_lm_config", what, rule, "no size is said", fix, serious=False)
    kind = at.held.get(f"{MEGATRON}recompute_granularity")
    if kind is None or kind.value is None:
        rule = "the plugin's own default is full, and none cannot be said here"
        path = f"{MEGATRON}recompute_activations"
        path = path if path in at.held else "megatron_lm_config"
        got, fix = "no granularity is said", "--recompute none where the script says so in other_megatron_args"
        at.find("ACC012", path, "every layer is recomputed", rule, got, fix, serious=False)
    elif str(kind.value).lower() != "full":
        rule = "recompute_num_layers is 1 or more here, which Megatron-Core takes with full alone"
        got, fix = quoted(kind.value), "full, or other_megatron_args in the script"
        at.find("ACC013", f"{MEGATRON}recompute_granularity", "only full recompute can run", rule, got, fix)
    _word(held, f"{MEGATRON}recompute_method", ("uniform", "block"))


def _sizes(held: Held) -> None:
    at, sizes = held.at, sizes_of(held.at)
    small = [name for name, path in SIZES.items() if path in at.held and at.held[path].value == 0]
    for name in small:
        at.find("ACC002", SIZES[name], f"{name} is no size", "every size is 1 or more", "0", "1")
    _word(held, "parallelism_config.parallelism_config_cp_comm_strategy", tuple(COMMUNICATION))
    _word(held, "parallelism_config.parallelism_config_cp_backend", ("torch",))
    _word(held, "parallelism_config.parallelism_config_sp_backend", ("deepspeed",))
    if AUTO in sizes.values():
        return
    if sizes["cp"] > 1 and sizes["sp"] > 1:
        rule, got = "cp and sp exclude each other", f"cp {sizes['cp']}, sp {sizes['sp']}"
        at.find("ACC002", SIZES["sp"], "two ways to cut the sequence", rule, got, "one of them is 1")
    if max(sizes["tp"], sizes["cp"]) > 1 and sizes["dp_replicate"] > 1 and sizes["dp_shard"] == 1:
        rule, got = "with tp or cp, copies need shards: dp_shard > 1", f"dp_replicate {sizes['dp_replicate']}"
        at.find("ACC002", SIZES["dp_replicate"], "copies without shards", rule, got, "dp_shard_size: 2 or more")
    if held.kind == "FSDP" and held.version == 2 and sizes["dp_shard"] * sizes["cp"] == 1:
        rule = "FSDP2 shards over dp_shard x cp, so one of them is above 1"
        at.find("ACC002", "parallelism_config", "there is nothing to shard over", rule, "1 x 1", "dp_shard_size: 2")


def _world(held: Held) -> None:
    at, ranks, sizes = held.at, processes(held.at), sizes_of(held.at)
    if not ranks or AUTO in sizes.values():
        return
    product = 1
    for size in sizes.values():
        product *= size
    if "parallelism_config" in at.held and held.kind in ("FSDP", *ONE_EACH) and product > 1 and product != ranks:
        rule = "dp_replicate x dp_shard x tp x cp x sp is num_processes"
        got, fix = f"{product:,}, and {ranks:,} processes", "another size, or another num_processes"
        at.find("ACC001", "num_processes", "the sizes do not make the processes", rule, got, fix)
    if held.kind == "MEGATRON_LM":
        cut = [at.count(f"{MEGATRON}{name}", default) or 1 for name, default in CUT]
        each = cut[0] * cut[1] * cut[2]
        if ranks % each:
            rule, got = "tp x pp x cp divides num_processes", f"{ranks:,} / {each:,}"
            at.find("ACC001", "num_processes", "the degrees do not share the ranks out", rule, got, "other degrees")


CUT = (("tp_degree", 1), ("pp_degree", 1), ("context_parallel_size", 2))
