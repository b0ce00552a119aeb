"""The flags of outlay plan: how to search, and what narrows the space."""

from typing import get_args

from ..job import Job
from ..layout.axes import SCHEDULES
from .flags import QUESTION, Flag, field_flags
from .mixing import MIXED
from .ordering import ORDERS, TIME_LIMIT

LIST = "; 1,2,4 keeps these, 1..16 the declared ones inside"

ON = Flag(
    "on",
    ("--on",),
    "64xh100-sxm, or 8xp5.48xlarge; 8..512xh100-sxm, or nodes 4..16xp5.48xlarge, with --objective accelerators",
)
SEARCH = (
    Flag("space", ("--space",), "how much is searched: lean, middle, wide or full; default: wide"),
    Flag("best", ("--best",), "layouts in the answer; default: 20"),
    Flag("headroom", ("--headroom",), "memory of each accelerator that stays free, beside --reserved: 5%, 4GiB"),
    Flag("simulate", ("--simulate",), "run the layouts of the answer pass by pass, and rank them again", switch=True),
    Flag("why", ("--why",), "why the best is not one with these values: tp=4,pp=8"),
    Flag("split", ("--split",), "best: the layouts of the answer again, each with the split that is best"),
    ORDERS,
    TIME_LIMIT,
    MIXED,
    Flag(
        "objective",
        ("--objective",),
        "time: the fastest here; accelerators: the fewest of --on 8..512xh100-sxm; tokens, money: the cluster of "
        "several that trains most tokens a second, or for a dollar; sequence: the longest that fits, --seq aside; "
        "model: the largest of several MODELs (A,B,C, or how their names begin) that fits, or of one the most layers",
    ),
)
NARROW = (
    Flag("tp", ("--tp",), "tensor parallel" + LIST, group="narrow"),
    Flag("cp", ("--cp",), "context parallel" + LIST, group="narrow"),
    Flag("pp", ("--pp",), "pipeline stages" + LIST, group="narrow"),
    Flag("ep", ("--ep",), "expert parallel" + LIST, group="narrow"),
    Flag("etp", ("--etp",), "tensor parallel inside an expert" + LIST, group="narrow"),
    Flag("vpp", ("--vpp",), "chunks of layers a rank" + LIST, group="narrow"),
    Flag("micro_batch", ("--mbs", "--micro-batch"), "sequences in a micro-batch" + LIST, group="narrow"),
    Flag("zero", ("--zero",), "ZeRO stages, 0 to 3: 1,3", group="narrow"),
    Flag("schedule", ("--schedule",), ", ".join(get_args(SCHEDULES)), group="narrow"),
    Flag("recompute", ("--recompute",), "none, selective, full", group="narrow"),
    Flag("recompute_modules", ("--recompute-modules",), "modules of selective: core_attn, mlp, ..", group="narrow"),
    Flag(
        "offload_optimizer", ("--offload-optimizer",), "shares of the optimizer state: 0,0.5 or 0,50%", group="narrow"
    ),
    Flag("offload_parameters", ("--offload-parameters",), "shares of the weights; default: 0", group="narrow"),
    Flag("offload_activations", ("--offload-activations",), "of the kept activations; default: 0", group="narrow"),
    Flag("cp_kind", ("--cp-kind",), "ring, all_gather, ulysses; default: the engine's first alone", group="narrow"),
    Flag(
        "moe_dispatch", ("--moe-dispatch",), "all_to_all, all_gather, deduplicated; default: the first", group="narrow"
    ),
    Flag("graphs", ("--graphs",), "CUDA graphs: none, partial, full; default: none", group="narrow"),
    Flag("loss_chunks", ("--loss-chunks",), "parts that head and loss run in; default: 1", group="narrow"),
    Flag("sp", ("--sp",), "only with sequence parallelism; or only without", True, True, "narrow"),
    Flag("hybrid", ("--hybrid",), "only with shards inside a scale-up domain; or never", True, True, "narrow"),
    Flag("overlap_tp", ("--overlap-tp",), "only with tensor-parallel exchange hidden; or never", True, True, "narrow"),
    Flag(
        "overlap_ep",
        ("--overlap-ep",),
        "only with exchange between experts hidden; default: never",
        True,
        True,
        "narrow",
    ),
    Flag("overlap_dp", ("--overlap-dp",), "only with data-parallel exchange hidden; or never", True, True, "narrow"),
    Flag("no_offload", ("--no-offload",), "nothing in host memory", True, group="narrow"),
    Flag("no_recompute", ("--no-recompute",), "no recompute", True, group="narrow"),
    Flag("tp_within_node", ("--tp-within-node",), "tp up to the scale-up domain", True, group="narrow"),
)


def plan_flags() -> tuple[Flag, ...]:
    """Everything that describes a search: where, by what, the task, how to search, and what narrows it."""
    return (ON, *QUESTION[1:], *SEARCH, *field_flags(Job), *NARROW)
