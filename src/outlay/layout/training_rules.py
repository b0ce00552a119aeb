"""What of a model can be trained: adapters that stand beside matrices it has, and parts it has."""

from ..engines.engine import KernelSet
from ..errors import Fault, nearest, quoted
from ..job import Job
from ..model.blocks import embedding_rows, head_rows, rows
from ..model.model import Model
from ..model.operations import Linear
from ..model.trained import FREEZES, TARGETS, named_targets, pieces_of


def _matrices(model: Model, kernels: KernelSet) -> set[str]:
    """The matrices of the model that adapters may stand beside, by their names in a checkpoint."""
    found = [row for block in model.blocks for row in rows(model, block, kernels) if isinstance(row, Linear)]
    return {name for row in found for name, _ in pieces_of(row, gated=True)}


def _parts(model: Model, kernels: KernelSet) -> set[str]:
    """The parts of the model that may be frozen."""
    sections = {block.name: rows(model, block, kernels) for block in model.blocks}
    sections |= {"embedding": embedding_rows(model, kernels), "head": head_rows(model, kernels)}
    every = [(section, row) for section, them in sections.items() for row in them]
    return {part for part, meant in FREEZES.items() if any(meant(section, row) for section, row in every)}


def _unknown(what: str, word: str, known: list[str], rule: str) -> Fault:
    close = nearest(word, known)
    return Fault(
        "JOB007", f"the model has no {what} {quoted(word)}", rule, quoted(word), close[0] if close else known[0]
    )


def untrainable(model: Model, job: Job, kernels: KernelSet) -> list[Fault]:
    """Every fault in what is to be trained; none where the whole model is."""
    if job.training.whole:
        return [_stray(job)] if job.frozen_format != "16bit" else []
    matrices, parts = sorted(_matrices(model, kernels)), sorted(_parts(model, kernels))
    faults = []
    if job.adapter != "none":
        words = [*(word for word, names in TARGETS.items() if {*names} & {*matrices}), *matrices]
        rule = f"targets of this model: {', '.join(words)}"
        asked = (word for word in job.adapter_targets if word not in TARGETS or job.adapter_targets != DEFAULT)
        faults += [_unknown("target", word, words, rule) for word in asked if word not in words]
        if not faults and not named_targets(job.adapter_targets) & {*matrices}:
            faults.append(Fault("JOB008", "no matrix gets an adapter", rule, "no target", f"--targets {words[0]}"))
    rule = f"parts of this model: {', '.join(parts)}"
    faults += [_unknown("part", word, parts, rule) for word in job.frozen if word not in parts]
    if job.adapter == "none" and not faults and {"embedding", "head", "layers"} <= {*job.frozen}:
        faults.append(
            Fault("JOB008", "nothing is trained", "some part is left", ", ".join(job.frozen), "--freeze layers")
        )
    return faults


DEFAULT = Job().adapter_targets


def _stray(job: Job) -> Fault:
    return Fault(
        "JOB008", "nothing is frozen", "a format of frozen matrices needs --adapter or --freeze",
        f"--frozen-format {job.frozen_format}", "--adapter lora",
    )  # fmt: skip
