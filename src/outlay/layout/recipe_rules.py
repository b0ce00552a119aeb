"""Rules of precisions and optimizers: what a card, an engine and a ZeRO stage can do, and types that contradict."""

from ..cluster.efficiency import peak_rate
from ..engines.engine import MEGATRON, Engine
from ..engines.recipe import BYTES, settled
from ..engines.tables import optimizer, precision
from ..errors import Fault
from ..job import Job, named_types
from .case import Case
from .rule import Rule

TYPES = {"master_dtype": "master", "gradient_dtype": "gradients", "moment_dtype": "moments"}


def _has_units(at: Case) -> bool:
    needs = precision(at.job.precision).needs
    return all(peak_rate(at.cluster.accelerator, number) > 0 for number in needs)


def narrowed(job: Job) -> bool:
    """Whether the optimizer keeps its own weights or its moments in less than fp32, as far as types say it."""
    own = job.master_dtype not in ("fp32", "none") or job.moment_dtype != "fp32"
    return own and not job.fixed


RECIPE_RULES: tuple[Rule, ...] = (
    Rule(
        "JOB002",
        "the accelerator does not have the precision",
        "the precision has matrix units on this accelerator; mxfp8 needs block-scaled ones, which come with fp4",
        "precision",
        _has_units,
        lambda at: f"{at.job.precision} on {at.cluster.accelerator.name}",
    ),
    Rule(
        "JOB010",
        "the engine does not have the precision",
        "the precision is one that the engine has, by its documentation or its source",
        "precision",
        lambda at: at.job.precision in at.engine.precisions,
        lambda at: f"{at.job.precision}; {at.engine.name} has {', '.join(at.engine.precisions)}",
    ),
    Rule(
        "JOB011",
        "the engine does not have the optimizer",
        "the optimizer is one that the engine has by a name of its own",
        "optimizer",
        lambda at: at.job.optimizer in at.engine.optimizers,
        lambda at: f"{at.job.optimizer}; {at.engine.name} has {', '.join(at.engine.optimizers)}",
    ),
    Rule(
        "JOB005",
        "the optimizer cannot be sharded so",
        "Megatron-LM: Muon shares whole matrices among the ranks, with ZeRO 0 or 1; Megatron-FSDP takes adam or sgd",
        "zero",
        lambda at: at.layout.zero <= at.optimizer_zero,
        lambda at: f"{at.job.optimizer}, zero {at.layout.zero}",
        MEGATRON,
    ),
    Rule(
        "JOB006",
        "master weights or moments in less than fp32 need a sharded optimizer",
        "Megatron-LM: --use-precision-aware-optimizer needs the distributed optimizer, ZeRO 1 or more",
        "zero",
        lambda at: (not narrowed(at.job)) | (at.layout.zero >= 1),
        lambda at: f"master {at.job.master_dtype}, moments {at.job.moment_dtype}, zero {at.layout.zero}",
        MEGATRON,
    ),
)


def zero_stages(job: Job, engine: Engine) -> tuple[int, ...]:
    """The engine's ZeRO stages that the job's optimizer and its types allow: JOB005 and JOB006."""
    whole = engine.name in MEGATRON and optimizer(job.optimizer).steps > 0
    sharded = engine.name in MEGATRON and narrowed(job)
    return tuple(stage for stage in engine.zero_stages if stage <= (1 if whole else 3) and stage >= sharded)


def _disagrees(job: Job, engine: Engine) -> list[Fault]:
    """`bytes_per_parameter` fixes all state, with Adam: fields that say otherwise."""
    if not job.fixed:
        return []
    named = settled(named_types(job, engine), "fp16" if job.precision == "fp16" else "bf16")
    said = {field: getattr(job, field) for field in TYPES} | {"optimizer": job.optimizer}
    fixed = {field: getattr(named, name) for field, name in TYPES.items()} | {"optimizer": "adam"}
    return [
        Fault(
            "JOB003",
            f"{field} and bytes_per_parameter disagree",
            "bytes_per_parameter fixes the bytes of weights, gradients, master and moments, with adam",
            f"{field} {value}, and {job.bytes_per_parameter} bytes a parameter have {fixed[field]}",
            "leave out --bytes",
        )
        for field, value in said.items()
        if value != fixed[field]
    ]


def _contradicts(what: str, rule: str, got: str, fix: str) -> Fault:
    return Fault("JOB004", what, rule, got, fix)


def contradictions(job: Job, engine: Engine) -> list[Fault]:
    """Everything in a complete job that no run can be, whatever its layout."""
    how, found = precision(job.precision), _disagrees(job, engine)
    if job.gather_dtype == "fp8" and not how.gathers:
        rule = "fp8 weights are gathered by fp8 and mxfp8 precisions alone"
        found.append(_contradicts("weights cannot be gathered in fp8", rule, job.precision, "--precision fp8"))
    if job.master_dtype == "remainder" and how.weights != "bf16":
        rule = "a remainder is the 16 bits of fp32 that a bf16 weight lacks"
        found.append(_contradicts("a remainder has no bf16 weight", rule, job.precision, "--master-dtype fp32"))
    elif not job.fixed and 0 < BYTES[job.master_dtype] < BYTES[how.weights]:
        rule = "the weights that an optimizer updates are at least as wide as those that are multiplied"
        got = f"master {job.master_dtype}, weights {how.weights}"
        found.append(_contradicts("master weights are narrower than the weights", rule, got, "--master-dtype fp32"))
    if optimizer(job.optimizer).block and job.moment_dtype != "fp32":
        rule = "8-bit moments have a type of their own; --moment-dtype is that of what stays in 32 bit"
        got = f"{job.optimizer}, moments {job.moment_dtype}"
        found.append(_contradicts("the moments have two types", rule, got, "--moment-dtype fp32"))
    if engine.name in MEGATRON and narrowed(job) and job.optimizer != "adam":
        rule = "Megatron-LM: --use-precision-aware-optimizer, which narrows them, takes adam alone"
        got = f"{job.optimizer}, master {job.master_dtype}, moments {job.moment_dtype}"
        found.append(_contradicts("the optimizer keeps its state in fp32", rule, got, "--optimizer adam"))
    return found
