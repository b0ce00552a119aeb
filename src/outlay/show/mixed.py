"""A strategy for each layer beside the best uniform plan: what each stage does, what it saves, and who can run it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from ..formats.galvatron_layout import DATA, says, strategy_file
from ..search.mixed.best import Mixed, Mixes
from ..search.mixed.stages import Counted
from ..search.mixed.strategies import Strategy
from ..search.mixed.uniform import Uniform
from .layouts import layout_flags
from .record import Record, plain
from .text import BAD, Style, block, counted, duration, gib, percent, wrapped

MOST_STAGES = 16  # lines of stages that a terminal shows
PLAIN = "PyTorch: torch.utils.checkpoint around these layers and modules, and around no other"
TORCH = (
    "PyTorch: torch.utils.checkpoint around each of these layers with a policy of its own, which does not save the"
    " operations named (create_selective_checkpoint_contexts; `outlay recompute` on policies)"
)
NAMES = {"recompute": "recompute", "tp": "tensor parallel"}


def mixed_lines(found: Mixes, style: Style) -> list[str]:
    """What mixing gives: the step, the gain, and what each stage does."""
    best = found.best
    lines = block(
        "MIXED", f"{_chosen(found)} layer by layer: {_gain(found)}", style, "1" if _fits(found) else f"1;{BAD}"
    )
    if best is None or found.gain == 0:
        return lines
    texts = [f"on {layout_flags(best.case.layout, best.case.model, best.case.engine)}"]
    stages = list(stage_texts(best))
    texts += stages[:MOST_STAGES]
    texts += [f"and {len(stages) - MOST_STAGES} more: whole in --json"] if len(stages) > MOST_STAGES else []
    texts += [text for _, text in runs(best)]
    return lines + [line for text in texts for line in wrapped(text, style, 10, 12)]


def _chosen(found: Mixes) -> str:
    return " and ".join(NAMES[name] for name in found.what)


def _fits(found: Mixes) -> bool:
    return bool(found.best or found.uniform)


def _gain(found: Mixes) -> str:
    """The step and peak beside the best uniform plan, in words: also that nothing is gained, or nothing fits."""
    if not found.cuts:
        return "the layout breaks a rule, or there is none"
    best, uniform = found.best, found.uniform
    here = f"{duration(best.seconds)} a step, {gib(best.peak_bytes)}" if best else ""
    if uniform is None:
        return f"{here}, {_how(found)}; no uniform plan of {_cuts(found)} fits" if best else "no mix fits for sure"
    then = f"the best uniform plan ({duration(uniform.seconds)}, {gib(uniform.peak_bytes)}: {_named(uniform)})"
    if not found.gain:
        return f"nothing gained, {_how(found)}: no mix is faster than {then}"
    share = f"{duration(found.gain)} ({percent(found.gain / uniform.seconds)})"
    return f"{here}: {share} less a step than {then}; {_how(found)}"


def _named(uniform: Uniform) -> str:
    """A uniform plan as flags; operations that run again in every layer, which no flag says, behind."""
    again, case = ",".join(uniform.operations), uniform.case
    at = replace(uniform.layout, recompute="none") if again else uniform.layout
    return layout_flags(at, case.model, case.engine) + (f"; every layer selective {again}" if again else "")


def _how(found: Mixes) -> str:
    one = found.best.how if found.best else "searched"
    return one if found.cuts == 1 else f"searched over {_cuts(found)}"


def _cuts(found: Mixes) -> str:
    return "this cut" if found.cuts == 1 else counted(found.cuts, "cut")


def stage_texts(of: Mixed) -> Iterator[str]:
    """What each stage does with its layers; neighbours that do the same together."""
    degrees = len({way.tp for way in of.ways}) > 1 or any(way.tp != of.mixing.own.tp for way in of.ways)
    every = [(one, row_text(one, degrees)) for one in of.stages]
    if len(of.ways) == 1 and not degrees:
        yield f"every layer: {of.ways[0].said}"
        return
    for ways, run in groupby(every, key=lambda pair: set(pair[0].plan) if len(set(pair[0].plan)) == 1 else pair[0]):
        pairs = list(run)
        (first, text), (last, _) = pairs[0], pairs[-1]
        if len(pairs) > 1 and isinstance(ways, set):
            text = f"every layer {_said(first.plan[0], degrees)}"
        yield f"{_stages(first.place.rank, last.place.rank)}: {text}" if len(every) > 1 else text


def _stages(first: int, last: int) -> str:
    return f"stage {first}" if first == last else f"stages {first}..{last}"


def row_text(one: Counted, degrees: bool) -> str:
    """The runs of layers of one stage that are treated alike: `layers 0..11 none, 12..19 full`."""
    runs_of = list(runs_of_layers(one))
    if not runs_of:
        return "no layers"
    said = (_said(way, degrees) for *_, way in runs_of)
    texts = [f"{_span(first, last)} {text}" for (first, last, _), text in zip(runs_of, said, strict=True)]
    return f"layers {', '.join(texts)}"


def _said(way: Strategy, degrees: bool) -> str:
    return f"tp {way.tp} {way.said}" if degrees else way.said


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def runs_of_layers(one: Counted) -> Iterator[tuple[int, int, Strategy]]:
    """First and last layer of each run of one strategy, chunk by chunk."""
    start = 0
    for chunk in one.place.chunks:
        pairs = list(zip(chunk, one.plan[start : start + len(chunk)], strict=True))
        start += len(chunk)
        for way, run in groupby(pairs, key=lambda pair: pair[1]):
            layers = [layer for layer, _ in run]
            yield layers[0], layers[-1], way


def runs(of: Mixed) -> list[tuple[str, str]]:
    """Which frameworks can run it, and how each is told; a sentence each."""
    degrees = {way.tp for way in of.ways} | {of.mixing.own.tp}
    if len(degrees) > 1:
        which = "tensor parallel by layer is Hetu-Galvatron's alone, which is no engine that is counted here"
        return [("galvatron" if _galvatron(of) else "none", f"{which}: {_lacks(of) or 'its keys are in --json'}")]
    flags = megatron_flags(of)
    if flags is not None:
        return [("megatron", f"Megatron-LM: {flags or 'as it is, without recompute'}")]
    if len(of.ways) > 1 and of.case.engine.name.startswith("maxtext"):
        return [("none", "MaxText scans its layers under one remat policy: it cannot differ from layer to layer")]
    found = [("torch", TORCH if any(way.operations for way in of.ways) else PLAIN)]
    if _galvatron(of):
        found.append(("galvatron", "Hetu-Galvatron: its `checkpoint` says it layer by layer, in --json"))
    return [*found, ("none", "not Megatron-LM: its flags recompute as much in every stage")]


def _lacks(of: Mixed) -> str:
    """What of a mix Hetu-Galvatron lacks: modules, an axis, or ZeRO-1; nothing where it has all of it."""
    if any(way.recompute == "selective" for way in of.ways):
        return "it recomputes whole layers, not modules"
    if not says(of.case.layout):
        return "it has no interleaving, no context or expert parallelism and no schedule but GPipe and 1F1B"
    return "" if of.case.layout.zero in DATA else "its keys are in --json; it has ddp, zero2 and zero3, no ZeRO-1"


def _galvatron(of: Mixed) -> dict[str, Any] | None:
    """The keys of its strategy file, where it can say this."""
    if any(way.recompute == "selective" for way in of.ways) or not says(of.case.layout):
        return None
    ways = [way for one in of.stages for way in one.plan]
    division = [len(one.plan) for one in of.stages]
    return strategy_file(of.case, [way.tp for way in ways], [way.recompute == "full" for way in ways], division)


def megatron_flags(of: Mixed) -> str | None:
    """Megatron-LM's flags, where they say it: all layers alike, or as many of the first ones in every chunk.

    Source: Megatron-Core, transformer_block.py, --recompute-method block; with chunks a number for each of them.
    """
    chunks = [chunk for one in of.stages for chunk in _chunks(one)]
    if any(way.operations for way in of.ways):
        return None
    if len(of.ways) == 1 and of.ways[0].recompute != "full":
        modules = " ".join(of.ways[0].modules)
        return f"--recompute-granularity selective --recompute-modules {modules}" if modules else ""
    full = [sum(way.recompute == "full" for way in chunk) for chunk in chunks]
    first = all(way.recompute == "full" for chunk, n in zip(chunks, full, strict=True) for way in chunk[:n])
    rest = all(way.recompute == "none" for chunk, n in zip(chunks, full, strict=True) for way in chunk[n:])
    most = max(full, default=0)
    even = all(n == min(most, len(chunk)) for chunk, n in zip(chunks, full, strict=True))
    if first and rest and even:
        return f"--recompute-granularity full --recompute-method block --recompute-num-layers {most}"
    return None


def _chunks(one: Counted) -> Iterator[Sequence[Strategy]]:
    start = 0
    for chunk in one.place.chunks:
        yield one.plan[start : start + len(chunk)]
        start += len(chunk)


# --- JSON -----------------------------------------------------------------------------------------------------------


def mixed_record(found: Mixes) -> Record:
    """The same for JSON."""
    best = found.best
    return {
        "what": list(found.what),
        "cuts": found.cuts,
        "gain_seconds": plain(found.gain),
        "gain_share": plain(found.gain / found.uniform.seconds) if found.uniform and found.gain is not None else None,
        "uniform": _uniform(found.uniform) if found.uniform else None,
        "best": _best(best) if best else None,
    }


def _uniform(of: Uniform) -> Record:
    figures = {"seconds": plain(of.seconds), "peak_bytes": plain(of.peak_bytes)}
    return {"layout": plain(of.layout), **figures, "operations": list(of.operations)}


def _best(of: Mixed) -> Record:
    keys = _galvatron(of)
    return {
        "layout": plain(of.case.layout),
        "seconds": plain(of.seconds),
        "peak_bytes": plain(of.peak_bytes),
        "how": of.how,
        "stages": [_stage(one) for one in of.stages],
        "runs": [{"framework": name, "how": text} for name, text in runs(of)],
        **({"galvatron": keys} if keys else {}),
    }


def _stage(one: Counted) -> Record:
    return {
        "stage": one.place.rank,
        "peak_bytes": plain(one.peak),
        "pass_seconds": plain(one.one_pass),
        "relayouts": len(one.boundaries),
        "relayout_bytes": plain(one.relayout_bytes),
        "layers": [
            {
                "first": first,
                "last": last,
                "tp": way.tp,
                "recompute": way.recompute,
                "modules": list(way.modules),
                "operations": list(way.operations),
            }
            for first, last, way in runs_of_layers(one)
        ],
    }
