"""The words for parts of a bill: what each is called, and what to change where it binds."""

from collections.abc import Sequence
from itertools import groupby

from ..engines.engine import Engine
from ..layout.axes import Layout

MOST_NUMBERS = 16  # of a split that is printed one by one
VERDICTS = {"fits": "FITS", "tight": "TIGHT", "does_not_fit": "DOES NOT FIT", "impossible": "IMPOSSIBLE"}
NOT_LEGAL = "NOT LEGAL"

LABELS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "gathered": "gathered weights",
    "unit": "whole gradients of one unit",
    "blocks": "blocks gathered for the backward pass",
    "whole": "the head's gradient, not yet sharded",
    "behind": "gradients of the layers behind",
    "ends": "gradients where the backward pass ends",
    "table": "the embedding's gradient, and passes in flight",
    "activations": "activations",
    "recomputed": "layer being recomputed",
    "logits": "logits and loss",
    "backward": "activation gradients",
    "kernels": "buffers of kernels",
    "copies": "copies of weights and gradients",
    "buckets": "gradient buckets",
    "messages": "pipeline messages, one a micro-batch",
    "beside": "other models",
    "buffers": "buffers",
    "arithmetic": "arithmetic",
    "recompute": "recompute",
    "tensor": "tensor-parallel exchange",
    "context": "context-parallel exchange",
    "expert": "expert-parallel exchange",
    "offload": "offload to host memory",
    "idle": "pipeline idle",
    "sends": "pipeline sends",
    "data": "data-parallel exchange",
    "overhead": "fixed cost of a step",
    "stragglers": "waiting for the slowest",
    "wire": "memory taken by exchange",
}

AXES = {
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "expert parallel",
    "etp": "tensor parallel in experts",
    "pp": "pipeline",
    "dp": "data parallel",
}

AXIS_OF = {"tensor": "tp", "context": "cp", "expert": "ep", "sends": "pp", "data": "dp"}

# For each part, the changes that make it smaller, the cheapest first.
ATTACK = {
    "weights": ("a larger --tp", "a larger --pp", "--zero 3, for more traffic"),
    "gradients": ("--zero 2, for a reduce-scatter every micro-batch", "a larger --tp", "a larger --pp"),
    "memory.optimizer": ("--zero 1", "more --dp-shard ranks", "--offload-optimizer 1"),
    "gathered": ("a larger --tp", "a larger --pp"),
    "unit": ("--gather-unit layer", "a larger --tp"),
    "blocks": ("a larger --tp",),
    "whole": ("a larger --tp",),
    "behind": ("a larger --tp", "more --dp-shard ranks"),
    "ends": ("a larger --tp", "more --dp-shard ranks"),
    "table": ("a larger --tp", "--zero 3"),
    "activations": ("a smaller --mbs", "--recompute full, for about a third more arithmetic", "a larger --tp"),
    "recomputed": ("a smaller --mbs", "a larger --tp"),
    "logits": ("a larger --tp, which divides the vocabulary", "a smaller --mbs"),
    "backward": ("a smaller --mbs", "a larger --tp"),
    "kernels": ("a larger --tp",),
    "copies": ("--zero 3, which needs none",),
    "buckets": ("smaller buckets in the engine's configuration",),
    "messages": ("fewer micro-batches, of a larger --mbs", "a larger --tp"),
    "beside": ("the other models on accelerators of their own",),
    "buffers": ("free memory elsewhere: buffers hardly change",),
    "arithmetic": ("a larger --mbs", "--precision fp8 where the card has it", "more cards"),
    "recompute": (
        "--recompute selective",
        "fewer --recompute-layers, for more memory",
        "fewer --recompute-modules, for more memory",
    ),
    "tensor": ("--overlap-tp", "a smaller --tp"),
    "context": ("--cp-kind ring, which hides behind attention", "a smaller --cp"),
    "expert": ("a smaller --ep, or one that stays on the fast link",),
    "offload": ("a smaller share of offload",),
    "idle": ("more micro-batches (a larger --batch)", "a smaller --pp", "--vpp 2 and more"),
    "sends": ("a smaller --pp", "a --pp that stays on the fast link"),
    "data": ("--overlap-dp", "a larger --batch", "a lower --zero"),
    "optimizer": ("--zero 1", "more --dp-shard ranks"),
    "overhead": ("a larger --batch: it is paid once a step",),
}


def attack(term: str, name: str, layout: Layout, engine: Engine) -> str:
    """The changes that make a part smaller, without those that this layout already has, or its engine has not."""
    ways = ATTACK.get(f"{term}.{name}") or ATTACK.get(name, ("a smaller share of it",))
    done = {
        "--zero 1": layout.zero >= 1,
        "--zero 2": layout.zero >= 2,
        "--zero 3": layout.zero >= 3,
        "--overlap-tp": layout.overlap_tp,
        "--overlap-dp": layout.overlap_dp,
        "a lower --zero": layout.zero < 2,
        "a smaller --mbs": layout.micro_batch == 1,
        "--recompute full": layout.recompute == "full",
        "--recompute selective": layout.recompute == "selective" or not engine.recompute_modules,
        "fewer --recompute-layers": layout.recompute != "full",
        "fewer --recompute-modules": layout.recompute != "selective",
        "--cp-kind ring": layout.cp_kind == "ring",
        "--offload-optimizer 1": layout.offload_optimizer == 1,
    }
    left = [way for way in ways if not any(way.startswith(start) and is_done for start, is_done in done.items())]
    return "; or ".join(left or ways[-1:])


def label(name: str) -> str:
    """What a part is called."""
    return LABELS.get(name, name.replace("_", " "))


def sizes_text(sizes: Sequence[int]) -> str:
    """Layers of each chunk: `7,9,9,7`; of many, equal ones together: `5, 15 times 8`."""
    if len(sizes) <= MOST_NUMBERS:
        return ",".join(map(str, sizes))
    runs = ((size, len(list(run))) for size, run in groupby(sizes))
    return ", ".join(f"{times} times {size}" if times > 1 else str(size) for size, times in runs)


def degrees(layout: Layout, dp: int) -> str:
    """A layout in a few words: the degrees that are not 1, and the options that matter."""
    named = {"tp": layout.tp, "cp": layout.cp, "pp": layout.pp, "vpp": layout.vpp, "ep": layout.ep, "etp": layout.etp}
    words = [f"{name} {value}" for name, value in named.items() if value > 1]
    words += [f"dp {dp}", f"zero {layout.zero}", f"micro-batch {layout.micro_batch}"]
    words += [str(layout.schedule)] if layout.pp > 1 else []
    words += [f"split {sizes_text(layout.split or ())}"] if layout.split else []
    again = f"recompute {' '.join((layout.recompute, *(layout.recompute_modules or ())))}"
    words += [again] if layout.recompute != "none" else []
    words += [f"in groups of {layout.recompute_group}"] if layout.recompute_group > 1 else []
    words += ["one unit"] if layout.gather_unit == "model" else []
    words += ["gradients whole while they accumulate"] if layout.accumulate_whole and layout.zero >= 2 else []
    words += ["sp off"] if layout.tp > 1 and not layout.sp else []
    return ", ".join(words)
