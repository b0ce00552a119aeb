"""Accelerate's YAML: FSDP1 and FSDP2 with a parallelism_config, DeepSpeed, Megatron-LM, or copies; read and written.

Checked against accelerate 1.15.0. Model, sequences and batch stand in the script.
"""

import re

from ...errors import Fault, InputError
from ..json_comments import Placed
from ..sections import Sections, flattened
from ..setting import Found, fault
from ..source import text_of
from ..yaml_placed import read_yaml
from .keys import NEVER_READ, TOP, TYPES, Held, named, no_switch
from .layout import job_of, layout_of, processes
from .rules import look
from .write import DRIVERS, HELD, RELEASE, write

ENGINE = "hf_trainer"
ENGINES = tuple(DRIVERS)  # those whose runs it holds: of the Trainer, of DeepSpeed, of Megatron-LM
COMMENTS = True
SURE = re.compile(r"^[ \t{]*[\"']?(distributed_type|compute_environment)[\"']?[ \t]*:", re.MULTILINE)
KEY = re.compile(r"^[\"']?([a-z_0-9]+)[\"']?[ \t]*:", re.MULTILINE)
_OWN = """
    num_processes num_machines machine_rank main_training_function deepspeed_config megatron_lm_config
    parallelism_config rdzv_backend same_network downcast_bf16
"""
OWN = frozenset(_OWN.split())


def is_of(text: str) -> bool:
    """Whether a text says its distributed_type, or has three more keys that Accelerate alone has."""
    head = text[:100_000]
    return bool(SURE.search(head)) or len(OWN & {match[1] for match in KEY.finditer(head)}) > 2


def read(content: bytes) -> Found:
    """What an Accelerate configuration says. Raises InputError (FMT002 to FMT005) with line and column."""
    flat = named(flattened(read_yaml(text_of(content))))
    if not TOP & set(flat):
        raise InputError(_nothing(flat))
    held = _held(flat)
    layout, missing = layout_of(held)
    job = job_of(held)
    look(held)
    at = held.at
    if at.faults:
        raise InputError(*at.faults)
    engine = {"DEEPSPEED": "deepspeed", "MEGATRON_LM": "megatron"}.get(held.kind, ENGINE)
    ranks = processes(at) or (1 if held.kind == "NO" else 0)
    kept = tuple(one for one in at.kept() if one.name not in NEVER_READ)
    notes, findings = tuple(held.notes), tuple(at.findings)
    return Found(ENGINE, "YAML", None, job, layout, engine, ranks, tuple(missing), kept, notes, findings)


def _held(flat: dict[str, Placed]) -> Held:
    at = Sections(no_switch(flat))
    kind, version = at.word("distributed_type", "").upper(), at.held.get("fsdp_config.fsdp_version")
    at.ask("fsdp_config.fsdp_version")
    bare = flat.get("mixed_precision", Placed(None, 0, 0)).value is False
    number = 2 if version is not None and str(version.value).strip() == "2" else 1
    held = Held(at, kind, number, bare)
    if kind not in ("FSDP", "DEEPSPEED", "MEGATRON_LM", "MULTI_GPU", "NO") and kind in TYPES:
        held.notes.append(f"distributed_type {kind} is read as copies on the accelerators of --on")
    backend = at.word("dynamo_config.dynamo_backend", at.word("dynamo_backend", "no"))
    if backend != "no":
        held.notes.append(f"dynamo {backend[:20]}: kernels are counted as they run without a compiler")
        at.asked.update(path for path in at.held if path.startswith("dynamo_config."))
    return held


def _nothing(flat: dict[str, Placed]) -> Fault:
    rule = "some key of Accelerate, such as distributed_type or fsdp_config"
    got = f"keys {', '.join(flat)[:60]}"
    return fault("FMT004", "nothing here is a configuration of Accelerate", rule, got, "the file of accelerate config")


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]
