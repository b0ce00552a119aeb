"""What MaxText refuses in a configuration, by src/maxtext/configs/types.py of 0.2.5, and what stops a run later."""

from ...model.model import Model
from ..setting import Settings
from .mesh import Mesh
from .models import MUON

POLICIES = (
    "minimal_with_context", "minimal", "save_dot_with_context_except_mlp", "save_dot_except_mlpwi",
    "save_dot_except_mlp", "save_qkv_proj", "qkv_proj_offloaded", "custom", "minimal_offloaded", "save_out_proj",
    "full", "none", "minimal_flash", "minimal_with_quantization", "minimal_with_context_and_quantization",
)  # fmt: skip
QUANTIZATIONS = (
    "", "fp4", "int4", "int8", "intmp", "fp8_e5m2", "fp8_e4m3", "fp8", "nanoo_fp8", "fp8_nanoo", "fp8_gpu", "fp8_full",
    "te_no_quant", "te_fp8_delayedscaling", "te_fp8_currentscaling", "te_mxfp8", "te_nvfp4", "te_nvfp4_no_rht",
    "serve_fp8_weight",
)  # fmt: skip
NO_ACCUMULATION = ("fp8", "nanoo_fp8", "fp8_gpu", "te_fp8_delayedscaling")
STRATEGIES = ("all_gather", "ring", "ulysses", "usp")


def check_words(at: Settings) -> None:
    """Words that MaxText does not have, or that do not go together."""
    policy = at.word("remat_policy", (), "full")
    if policy not in POLICIES:
        what, rule = f"no remat_policy is called {policy[:40]}", "it passes the configuration and stops the run"
        at.find("MTX006", "remat_policy", what, rule, policy[:60], "full, minimal, minimal_with_context, custom, ..")
    quantization = at.word("quantization")
    if quantization not in QUANTIZATIONS:
        rule = f"one of {', '.join(QUANTIZATIONS[1:])}"
        at.find(
            "MTX007", "quantization", f"no quantization is called {quantization[:40]}", rule, quantization[:60], "fp8"
        )
    if quantization in NO_ACCUMULATION and at.number("gradient_accumulation_steps", 1, 1) > 1:
        rule, got = "such 8-bit numbers do not go with gradient accumulation", f"{quantization}"
        fix = "gradient_accumulation_steps: 1, or te_fp8_currentscaling"
        at.find("MTX007", "quantization", "fp8 with gradient accumulation", rule, got, fix)
    name = at.word("model_name", (), "default")
    if at.word("opt_type", (), "adamw") == "muon" and not name.startswith(MUON):
        rule = f"Muon is tried with {', '.join(MUON[1:])}"
        at.find("MTX011", "opt_type", f"no Muon for {name[:40]}", rule, f"muon, {name[:40]}", "opt_type: adamw")


def check_context(at: Settings, mesh: Mesh, model: Model | None) -> None:
    """Kinds of context parallelism that the hardware, the heads or the sequence do not allow."""
    kind, hardware = at.word("context_parallel_strategy", (), "all_gather"), at.word("hardware", (), "tpu")
    cp, sequence = mesh["cp"], at.number("max_target_length", 2048, 1)
    wrong: list[tuple[str, str]] = []
    if kind not in STRATEGIES:
        wrong.append((f"no strategy is called {kind[:40]}", f"one of {', '.join(STRATEGIES)}"))
    if kind == "ulysses" and hardware != "tpu":
        wrong.append(("Ulysses on other hardware than a TPU", "context_parallel_strategy ulysses is of TPUs"))
    if kind == "ulysses" and sequence % max(1, cp):
        wrong.append(("context does not divide the sequence", "max_target_length % context == 0"))
    if kind in ("ulysses", "ring") and cp == 1:
        wrong.append((f"{kind} with one rank of context", f"{kind} needs ici_context_parallelism above 1"))
    if kind == "ring" and hardware == "tpu" and sequence % max(1, cp * cp):
        wrong.append(("context squared does not divide the sequence", "max_target_length % context^2 == 0 on a TPU"))
    if kind in ("ulysses", "ring") and hardware == "tpu":
        wrong += _kernels(at, kind)
    heads = [block.attention for block in model.blocks if block.attention] if model else []
    if kind == "ulysses" and any(one.heads % max(1, cp) or one.kv_heads % max(1, cp) for one in heads):
        wrong.append(("context does not divide the heads", "heads and key/value heads % context == 0"))
    for what, rule in wrong:
        at.find("MTX004", "context_parallel_strategy", what, rule, f"{kind}, context {cp}, {hardware}", "all_gather")


def _kernels(at: Settings, kind: str) -> list[tuple[str, str]]:
    """Switches of the kernel that runs these kinds on a TPU."""
    good = at.word("attention", (), "autoselected") == "flash" and at.on("use_tokamax_splash")
    wrong = [] if good else [(f"{kind} with another kernel", "attention=flash use_tokamax_splash=true on a TPU")]
    if kind == "ulysses" and at.on("context_parallel_load_balance", True):
        wrong.append(("Ulysses with load balance", "context_parallel_load_balance=false"))
    return wrong


def check_pipeline(at: Settings, stages: int, each: int, repeats: int, micro_batches: int, layers: int) -> None:
    """Layers and micro-batches that a pipeline cannot share out; `layers` 0: the model is not known."""
    rule = "stages x repeats x layers a stage = pipeline_parallel_layers, the layers of the model by itself"
    if layers and (stages * each * repeats != layers or not repeats):
        got, fix = f"{stages} x {repeats} x {each}, {layers} layers", "num_layers_per_pipeline_stage that divides"
        at.find("MTX002", "num_layers_per_pipeline_stage", "the pipeline does not hold the layers", rule, got, fix)
    if micro_batches % stages:
        rule, got = "num_pipeline_microbatches % stages == 0", f"{micro_batches} / {stages}"
        at.find("MTX003", "num_pipeline_microbatches", "stages do not divide the micro-batches", rule, got, f"{stages}")
    elif at.on("pipeline_delay_activation_forwarding") and micro_batches < 2 * stages:
        rule, got = "delayed forwarding needs 2 x stages micro-batches", f"{micro_batches}, {stages} stages"
        at.find("MTX003", "num_pipeline_microbatches", "too few micro-batches", rule, got, f"{2 * stages}")


def check_batch(at: Settings, whole: int, parts: int, micro: float) -> None:
    """A batch that is not whole sequences, or that its micro-batches do not share; `whole` 0: not known."""
    if whole and parts > 1 and whole % parts:
        rule, got = "the batch of a pass % num_pipeline_microbatches == 0", f"{whole} / {parts}"
        at.find("MTX003", "num_pipeline_microbatches", "micro-batches do not share the batch", rule, got, "others")
    elif micro and abs(micro - round(micro)) > 1e-6:
        what = "a micro-batch is no whole number of sequences"
        rule = "per_device_batch_size x tensor x context x stages / micro-batches is whole"
        at.find("MTX009", "per_device_batch_size", what, rule, f"{micro:.4g} sequences", "another batch, or other axes")


def check_sharding(at: Settings, mesh: Mesh, free: bool) -> None:
    """ZeRO-1 over the data axis, which does not go with FSDP; `free`: fsdp takes what is left."""
    if at.on("shard_optimizer_over_data") and (mesh["fsdp"] > 1 or free):
        rule, fix = "it does not go with fsdp or fsdp_transpose above 1", "ici_fsdp_parallelism=1"
        at.find("MTX008", "shard_optimizer_over_data", "the optimizer is sharded twice", rule, "fsdp", fix)
