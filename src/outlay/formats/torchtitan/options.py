"""The options of torchtitan 0.3 by their paths, and what is read of them: values, and what a file does not say.

Source: pytorch/torchtitan 0.3.0, torchtitan/config/configs.py and torchtitan/trainer.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import nearest
from ...job import AUTO
from ..json_comments import Placed
from ..sections import Sections
from ..setting import Missing

_CLOSED = {
    "training": """
        local_batch_size global_batch_size seq_len max_norm steps enable_cpu_offload disable_cuda_graphs dtype
        mixed_precision_param mixed_precision_reduce gc_freq gc_debug
    """,
    "parallelism": """
        data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward enable_fsdp_symm_mem
        tensor_parallel_degree enable_sequence_parallel spmd_backend pipeline_parallel_degree
        module_fqns_per_model_part pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers
        pipeline_parallel_layers_per_stage pipeline_parallel_schedule pipeline_parallel_schedule_csv
        pipeline_parallel_microbatch_size context_parallel_degree context_parallel_load_balancer
        context_parallel_ptrr_mask_key expert_parallel_degree
    """,
    "compile": "enable enable_async_tensor_parallel components backend",
    "comm": """
        init_timeout_seconds train_timeout_seconds trace_buf_size save_traces_folder save_traces_file_prefix mode
    """,
    "debug": """
        seed spmd_typechecking deterministic deterministic_warn_only moe_force_load_balance detect_anomaly
        batch_invariant print_config save_config_file enable_structured_logging
    """,
    "activation_checkpoint": """
        preserve_rng_state determinism_check debug force_recompute_mm_shapes_by_fqns memory_budget
        visualize_memory_budget_pareto
    """,
}
CLOSED = {section: tuple(names.split()) for section, names in _CLOSED.items()}
# Sections whose names follow the classes that a configuration chose.
OPEN = (
    "profiler", "metrics", "tokenizer", "dataloader", "optimizer", "lr_scheduler", "checkpoint", "validator",
    "override", "loss",
)  # fmt: skip
BARE = ("hf_assets_path", "dump_folder")
SWITCHES = frozenset(
    f"{section}.{name}"
    for section, names in (
        ("training", "enable_cpu_offload disable_cuda_graphs gc_debug"),
        ("parallelism", "enable_fsdp_symm_mem enable_sequence_parallel"),
        ("compile", "enable enable_async_tensor_parallel"),
        ("activation_checkpoint", "preserve_rng_state debug visualize_memory_budget_pareto"),
    )
    for name in names.split()
)
NEGATIVE = ("parallelism.data_parallel_shard_degree", "training.global_batch_size")  # -1: what is left, or is filled


def is_option(path: str) -> bool:
    """Whether torchtitan has such an option."""
    section, _, name = path.partition(".")
    return path in BARE or (section in OPEN and bool(name)) or name in CLOSED.get(section, ())


def meant(path: str) -> str:
    """The option that a misspelled one may be."""
    known = [*(f"{section}.{name}" for section, names in CLOSED.items() for name in names), *BARE]
    close = nearest(path, known)
    return close[0] if close else ""


@dataclass
class Options(Sections):
    """Settings over those of a configuration. What rests on a variable that the file does not set is missing."""

    own: Mapping[str, object] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    def taken(self, path: str, default: Any) -> Any:
        """The default of an option: the configuration's, or the framework's."""
        return self.own.get(path, default)

    def number(self, path: str, default: int, name: str = "") -> Any:
        """A whole number; AUTO, and missing under a field's name, where the file does not say it."""
        if self.lacks(path, name):
            return AUTO
        one = self.held.get(path)
        if one is not None and path in NEGATIVE and one.value in (-1, "-1"):
            self.asked.add(path)
            return default
        return self.count(path, self.taken(path, default))

    def lacks(self, path: str, name: str) -> bool:
        """Whether the value of an option is not in the file."""
        if path not in self.unknown:
            return False
        self.asked.add(path)
        one = Missing(name or path, self.unknown[path])
        self.missing += [one] if one not in self.missing else []
        return True

    def on(self, path: str, default: bool = False) -> bool:
        """A switch."""
        return self.switch(path, self.taken(path, default)) is True

    def said(self, path: str, default: str) -> str:
        """A word in lower case."""
        self.lacks(path, path)
        return self.word(path, str(self.taken(path, default)).lower())

    def place(self, path: str) -> Placed:
        """The value at a path, or none."""
        return self.held.get(path, Placed(None, 0, 0))
