"""What torchtitan refuses, at once or when it starts on accelerators, and what does not do what it seems to.

Source: pytorch/torchtitan 0.3.0, torchtitan/trainer.py, distributed/parallel_dims.py, distributed/pipeline_parallel.py,
config/configs.py; names of schedules: torch 2.13, distributed/pipelining/schedules.py.
"""

from ...errors import quoted
from ...job import AUTO
from ...layout.axes import Layout
from ...model.model import Model
from .held import Held
from .layout import DEGREES, EACH, ENDS, GLOBAL, LOCAL, MICRO, PARTS, SCHEDULE, SCHEDULES, SHARD, SINGLE
from .options import Options, is_option, meant

GRAPHS = "training.disable_cuda_graphs"
KNOWN = "1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV"
OWN_PATHS = ("model", "converter", "moe_comm_backend", "adapter", "activation_checkpoint")


def look(at: Options, held: Held, layout: Layout, model: Model | None) -> None:
    """Keep every finding."""
    if held.old:
        _old(at, held)
    else:
        _unknown(at, held)
        _graphs(at, layout)
        _compiled(at)
    _world(at, held, layout)
    _batch(at, layout)
    _sequence(at, layout)
    if (layout.pp or 1) > 1:
        _pipeline(at, layout, model.layers if model else 0)


def _old(at: Options, held: Held) -> None:
    first = next(iter(at.held), "")
    what, rule = "a job file is not read any more", "torchtitan 0.3 takes --module, --config and options, and no TOML"
    at.find("TTN010", first, what, rule, "a job file in TOML", "outlay convert FILE torchtitan", serious=False)
    for new, before in held.renamed.items():
        rule, fix = "later releases call it by another name", f"--{new}"
        at.find("TTN011", new, f"{before} is an old name", rule, before, fix, serious=False)


def _unknown(at: Options, held: Held) -> None:
    rule = "tyro, which parses its options, stops at one that it does not know"
    for path in held.options:
        if not is_option(path) and path.partition(".")[0] not in OWN_PATHS:
            close = meant(path)
            fix = f"did you mean --{close}?" if close else "remove it"
            at.find("TTN009", path, f"torchtitan has no option {path}", rule, path, fix)
    for one, why in held.misplaced:
        path = one.name.lstrip("-").replace("-", "_").replace(".no_", ".")
        at.find("TTN009", path, f"{one.name} cannot stand so", rule, quoted(one.text), why)


def _graphs(at: Options, layout: Layout) -> None:
    pipes, experts = (layout.pp or 1) > 1, (layout.ep or 1) > 1 and layout.moe_dispatch != "deduplicated"
    if at.on(GRAPHS) or not (pipes or experts) or GRAPHS in at.unknown:
        return
    name = DEGREES["pp" if pipes else "ep"]
    what = f"CUDA graphs do not go with {'a pipeline' if pipes else 'this exchange of experts'}"
    rule = "with pp > 1, or ep > 1 and a dispatcher that waits for the host, CUDA graphs are switched off"
    at.find("TTN005", name, what, rule, "CUDA graphs are on unless told otherwise", f"--{GRAPHS}")


def _compiled(at: Options) -> None:
    names = at.ask("compile.components")
    parts = names.plain() if names is not None else at.taken("compile.components", ["model", "loss"])
    compiled = at.on("compile.enable") and isinstance(parts, list) and "model" in parts
    budget = at.said("activation_checkpoint", "selective") == "memory_budget"
    for on, path in (
        (at.on("compile.enable_async_tensor_parallel"), "compile.enable_async_tensor_parallel"),
        (budget, "activation_checkpoint"),
    ):
        if on and not compiled:
            what, rule = f"{path} needs the compiler", "compile.enable is on, and compile.components names model"
            at.find("TTN008", path, what, rule, "the model is not compiled", "--compile.enable")


def _world(at: Options, held: Held, layout: Layout) -> None:
    parts = [layout.tp, layout.cp, layout.pp, layout.dp_replicate, layout.dp_shard]
    if AUTO in parts:
        return
    product = parts[0] * parts[1] * parts[2] * parts[3] * parts[4]
    if held.ranks and product != held.ranks:
        name = SHARD if SHARD in at.held else next((path for path in DEGREES.values() if path in at.held), SHARD)
        rule = "dp_replicate x dp_shard x cp x tp x pp is the number of ranks"
        got, fix = f"{product:,} of {held.ranks:,} ranks", f"--{SHARD} -1 takes what is left"
        at.find("TTN001", name, "the degrees do not make the launch", rule, got, fix)
    inner = layout.dp_shard * layout.cp * layout.tp
    if layout.zero and layout.ep is not AUTO and layout.ep and inner % layout.ep:
        rule, got = "expert parallel ranks divide dp_shard x cp x tp", f"{inner:,} / {layout.ep:,}"
        at.find("TTN012", DEGREES["ep"], "the experts do not share the ranks out", rule, got, "another ep")


def _batch(at: Options, layout: Layout) -> None:
    local, whole = at.number(LOCAL, 8, "micro_batch"), at.number(GLOBAL, 0, "global_batch")
    part = at.number(MICRO, 1, "micro_batch")
    known = AUTO not in (layout.dp_replicate, layout.dp_shard)
    if whole and local and known and whole % (local * layout.dp):
        rule = "training.global_batch_size is a multiple of training.local_batch_size x data-parallel ranks"
        got, fix = f"{whole:,} / ({local:,} x {layout.dp:,})", "another batch, or -1: one pass of every rank"
        at.find("TTN002", GLOBAL, "the batch does not share out", rule, got, fix)
    if (layout.pp or 1) > 1 and local and (not part or local % part):
        rule = "with a pipeline, the micro-batch divides training.local_batch_size"
        name = MICRO if MICRO in at.held else LOCAL
        at.find("TTN003", name, "the local batch does not share out", rule, f"{local:,} / {part}", f"--{MICRO} 1")


def _sequence(at: Options, layout: Layout) -> None:
    length = at.number("training.seq_len", 2048, "sequence_length")
    if AUTO in (length, layout.tp, layout.cp):
        return
    each = (layout.tp if layout.sp else 1) * (2 * layout.cp if layout.cp > 1 else 1)
    if each and length % each:
        rule = "tp (with sequence parallelism) x 2 cp (with context parallelism) divides training.seq_len"
        got = f"{length:,} / {each:,}"
        at.find("TTN004", "training.seq_len", "the sequence does not share out", rule, got, "another length")


def _pipeline(at: Options, layout: Layout, layers: int) -> None:
    name = at.said(SCHEDULE, "1f1b")
    csv = at.said("parallelism.pipeline_parallel_schedule_csv", "")
    if name not in SCHEDULES and not csv:
        rule, got = f"one of {KNOWN}; nothing looks at the name before the pipeline is built", quoted(name)
        at.find("TTN007", SCHEDULE, "there is no such schedule", rule, got, "--" + SCHEDULE + " 1F1B")
        return
    parts, each = at.ask(PARTS), at.number(EACH, 0)
    ends = [at.number(path, 1) for path in ENDS]
    if parts is not None and isinstance(parts.value, list):
        stages, path = len(parts.value), PARTS
    elif each and layers and AUTO not in ends:
        stages, path = -(-(layers + sum(ends)) // each), EACH
    else:
        return
    single, pp = name in SINGLE, layout.pp
    if stages % pp:
        rule, got = "pipeline stages are a multiple of the pipeline ranks", f"{stages:,} stages, pp {pp:,}"
        at.find("TTN006", path, "the stages do not share out", rule, got, "another number of layers a stage")
    elif single and stages != pp:
        rule = "1F1B and GPipe have one stage a rank"
        at.find("TTN006", path, "too many stages", rule, f"{stages // pp} a rank", f"--{SCHEDULE} Interleaved1F1B")
    elif not single and path == EACH and stages < 2 * pp:
        rule = "schedules of several stages have two or more a rank"
        at.find("TTN006", path, "too few stages", rule, "1 a rank", f"fewer layers a stage, or --{SCHEDULE} 1F1B")
