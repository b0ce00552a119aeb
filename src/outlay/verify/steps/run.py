"""A real step beside its bill: its time, its peak and where the time goes, on the devices at hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from ...bill import Bill, case_of, load
from ...cluster.catalogue.tables import accelerator_names
from ...errors import Fault, InputError
from ...holding import at_allocator
from ...layout.case import Case
from ...model.model import Model, decoder_block
from ...model.parts import Attention, FeedForward
from ..comparison import Banded, Comparison
from ..limits import ALONE, built_otherwise, first, kept_otherwise
from ..scaled import Scaled
from ..subject import PEAK, Checked, NotRun
from .classes import counted_step
from .profiled import EXCHANGE, NOTHING, Device, Ran
from .sizing import AtHand, sized

WARM, TIMED = 3, 5  # steps
ORDERS = ("gpipe", "1f1b", "interleaved", "looped_bfs")  # that are run: whole backward passes
ENGINE = "fsdp2-uncompiled"  # what is run
NO_DEVICE = (
    "no accelerator is here: run it where they are, by itself or as torchrun --nproc-per-node 8 -m outlay verify ..;"
    " --device cpu runs a small case on this CPU, whose cluster and profile `outlay calibrate` writes"
)
MEMORY_RAN_OUT = ("out of memory", "can't allocate memory", "cannot allocate", "SIGKILL")
OTHER = "its bill is of {card}, and what ran is {name}"
OF_A_CPU = "on a CPU what tensors held; gloo's waits are seen as time in which nothing runs"
LATENT = "latent attention on a CPU writes every score out, which its bill does not count"
GLOO = "gloo holds buffers of its own for as long as its threads take"


@dataclass(frozen=True)
class StepItem:
    """One part of a step: seconds in the bill, with its band, beside those of the profiler."""

    name: str
    counted: float
    low: float
    high: float
    measured: float

    @property
    def inside(self) -> bool:
        """Whether what was measured lies inside the band."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Stepped:
    """A run, its ranks, and the bill of exactly that."""

    bill: Bill
    date: str  # 2026-11-30
    warm: int  # steps before those that are timed
    ranks: tuple[Ran, ...]
    items: tuple[StepItem, ...]  # of the busiest rank, under the profiler

    @property
    def device(self) -> Device:
        """What the first rank ran on."""
        return self.ranks[0].device

    @property
    def judged(self) -> bool:
        """Whether the times of its bill are of what it ran on."""
        return not other_device(self)

    @property
    def slowest(self) -> Ran:
        """The rank whose steps took longest."""
        return max(self.ranks, key=lambda rank: rank.middle)

    @property
    def busiest(self) -> Ran:
        """The rank whose kernels ran longest, of whose profile the items are."""
        return busiest(self.ranks)


def busiest(ranks: tuple[Ran, ...]) -> Ran:
    """The rank whose kernels of its own ran longest: exchange and waiting apart."""
    return max(
        ranks, key=lambda rank: -sum(rank.moments.shown[name] for name in (EXCHANGE, NOTHING)) + rank.moments.seconds
    )


def otherwise(case: Case) -> str:
    """Why no step of a case is run; empty where it can be."""
    at = case.layout
    cuts = [f"{axis} {getattr(at, axis)}" for axis in ("cp", "ep", "etp") if getattr(at, axis) > 1]
    return first(
        (
            (cuts, f"{', '.join(cuts)}: steps with data, tensor and pipeline parallelism are run"),
            (case.engine.name != ENGINE, f"engine {case.engine.name} is not run here (--engine {ENGINE} is)"),
            (case.job.precision != "bf16", f"precision {case.job.precision}: a step in bf16 is run"),
            (not case.job.training.whole, "frozen parts and adapters are not run"),
            (at.zero == 1, "zero 1 is not run: PyTorch shards with FSDP2 (--zero 2 or 3)"),
            (at.gather_unit == "model", "--gather-unit model is not run"),
            (case.model.vocab % at.tp or not at.keep_gathered, "uneven vocabularies and a second gather are not run"),
            (at.pp > 1 and at.schedule not in ORDERS, f"schedule {at.schedule}: {', '.join(ORDERS)} are run"),
            (at.pp > 1 and case.model.tied, "a table that embedding and head share is not run over stages"),
            (case.model.dropout, "dropout is not run"),
        )
    ) or (kept_otherwise(case) or unbuilt(case))


def unbuilt(case: Case) -> str:
    """Why no plain model of torch is built: its layers are neither Llama's, nor GPT-2's."""
    model = case.model
    if not model.positions:
        return built_otherwise(model, case)
    if case.layout.tp > 1 or case.layout.pp > 1:
        return "learned positions are run without tensor and pipeline parallelism"
    of, mlp = (model.blocks[0].attention, model.blocks[0].feed_forward) if len(model.blocks) == 1 else (None, None)
    if of is None or mlp is None:
        return f"{model.name} is not of GPT-2's kind"
    alike = decoder_block(
        model.blocks[0].name,
        Attention(of.heads, of.kv_heads, of.head_dim, of.head_dim, qkv_bias=True, out_bias=True),
        FeedForward(mlp.width, gated=False, bias=True),
    )
    named = {name: getattr(model, name) for name in ("tied", "positions", "trained_length", "notes")}
    mine = Model(
        model.name, model.family, model.hidden, model.vocab, (alike,), model.pattern, "layer", 2, **named
    )  # fmt: skip
    return "" if mine == model else f"{model.name} is not of GPT-2's kind"


def run_step(asked: Scaled) -> Stepped | NotRun | None:
    """A step of what is asked on the devices at hand; or why there is none. Nothing on other ranks of torchrun."""
    of = asked.subject
    if why := otherwise(case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]):
        return NotRun(("step",), why)
    from .devices import at_hand

    hand = at_hand(of.device, int(of.layout.world))
    latent = any(part.latent_rank for block in of.model.blocks if (part := block.attention))
    if hand is None or (hand.kind == "cpu" and latent):
        return NotRun(("step",), NO_DEVICE if hand is None else LATENT)
    small = sized(of.model, of.job, of.cluster, of.layout, of.engine, hand, asked.asked)
    asked.said.update(dict.fromkeys(f"step: {said}" for said in small.scaled))
    asked.began("step")
    ranks = tuple(ran(small.bill, hand))
    return stepped(small.bill, ranks) if ranks else None


def ran(bill: Bill, hand: AtHand) -> list[Ran]:
    """What each rank did. Raises InputError: VER023 where memory runs out, and those of ranks that end too early."""
    from ..together import together
    from .training import trained

    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    try:
        return together(trained, (case, WARM, TIMED), int(bill.layout.world))
    except InputError as error:
        said = " ".join(fault.got for fault in error.faults)
        if not short_of_memory(said):
            raise
        raise InputError(no_memory(bill, hand, said)) from None
    except (MemoryError, RuntimeError) as error:  # of this process, where torchrun started it
        if not short_of_memory(str(error)):
            raise
        raise InputError(no_memory(bill, hand, " ".join(str(error).split())[:200])) from None


def short_of_memory(said: str) -> bool:
    """Whether a complaint is of memory that ran out."""
    return any(words.lower() in said.lower() for words in MEMORY_RAN_OUT)


def no_memory(bill: Bill, hand: AtHand, said: str) -> Fault:
    """What is said where memory runs out in spite of what was counted."""
    at, layers = bill.layout, bill.model.layers
    ended = "a rank was ended, as when memory runs out" if "SIGKILL" in said else "memory ran out"
    what = f"{ended}: {layers} layers, {bill.job.sequence_length:,} tokens, micro-batch {at.micro_batch}"
    rule = f"{bill.memory.allocated_bytes / 1e9:,.2f} GB were counted of {hand.memory / 1e9:,.2f} GB that a device has"
    smaller = f"--layers {layers // 2}" if layers > 1 else "a shorter --seq"
    fix = f"{smaller}{', or --mbs 1' if at.micro_batch > 1 else ''}; and nothing else on the devices"
    return Fault("VER023", what, rule, said, fix)


# --- beside the bill ----------------------------------------------------------------------------------------------


def stepped(bill: Bill, ranks: tuple[Ran, ...]) -> Stepped:
    """A run beside its bill, item by item."""
    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    counted, low, high = counted_step(load(case)), *bill.step.band_seconds
    shown, down, up = busiest(ranks).moments.shown, low / bill.step.seconds, high / bill.step.seconds
    items = tuple(StepItem(name, of, of * down, of * up, shown[name]) for name, of in counted.items())
    return Stepped(bill, datetime.now(UTC).date().isoformat(), WARM, ranks, items)


def compared(found: Stepped) -> Iterator[Checked]:
    """Step time and peak, each in its band. On a CPU, which has no libraries' buffers, the peak is held as tensors'."""
    bill, cpu = found.bill, found.device.kind == "cpu"
    time = Banded("step time", bill.step.seconds, found.slowest.middle, "s", "", *bill.step.band_seconds)
    yield Checked("step", time, reason=other_device(found))
    held = float(max(rank.allocated for rank in found.ranks))
    alone = bill.layout.zero and bill.layout.dp_shard == 1
    known = ALONE if alone else ""
    if cpu:
        reason = "; ".join(filter(None, (known, GLOO if len(found.ranks) > 1 else "")))
        yield Checked(
            "step", Comparison("peak allocated", bill.memory.allocated_bytes, held, "B", OF_A_CPU), PEAK, reason
        )
        return
    kept = float(max(rank.reserved for rank in found.ranks))
    for level, measured in (("allocated", held), ("reserved", kept)):
        counted, band = at_allocator(level, bill.memory, bill.engine)
        yield Checked("step", Banded(f"peak {level}", counted, measured, "B", "", *band), reason=known)


def other_device(found: Stepped) -> str:
    """Why a time is not that of the bill: its accelerator is another one, as far as names tell."""
    card, name = found.bill.cluster.accelerator.name, found.device.name
    if card not in accelerator_names():
        return ""  # a file of one's own
    alike = card.partition("-")[0] in "".join(name.lower().split())
    return "" if alike and found.device.kind != "cpu" else OTHER.format(card=card, name=name)
