"""What of a model can be trained, adapters beside matrices it has and parts it has, and what may stand beside it."""

from ..cluster.accelerator import Cluster
from ..engines.engine import KernelSet
from ..errors import Fault, nearest, quoted
from ..job import Job, usual_format
from ..model.blocks import embedding_rows, head_rows, rows
from ..model.model import Model
from ..model.operations import Linear, Row
from ..model.trained import FREEZES, TARGETS, gated, named_targets, pieces_of, trained_rows

DEFAULT = Job()


def matrices(model: Model, kernels: KernelSet) -> frozenset[str]:
    """The matrices of the model that adapters may stand beside, by their names in a checkpoint."""
    found = [(row, gated(block)) for block in model.blocks for row in rows(model, block, kernels)]
    linears = [(row, has_gate) for row, has_gate in found if isinstance(row, Linear)]
    return frozenset(name for row, has_gate in linears for name, _ in pieces_of(row, has_gate))


def matched_targets(model: Model, job: Job, kernels: KernelSet) -> tuple[str, ...]:
    """Those of the job's targets that name a matrix of the model."""
    known = matrices(model, kernels)
    return tuple(word for word in job.adapter_targets if named_targets((word,)) & known)


def _sections(model: Model, kernels: KernelSet) -> dict[str, tuple[Row, ...]]:
    found = {block.name: rows(model, block, kernels) for block in model.blocks}
    return found | {"embedding": embedding_rows(model, kernels), "head": head_rows(model, kernels)}


def _parts(model: Model, kernels: KernelSet) -> set[str]:
    """The parts of the model that may be frozen."""
    every = [(section, row) for section, them in _sections(model, kernels).items() for row in them]
    return {part for part, meant in FREEZES.items() if any(meant(section, row) for section, row in every)}


def _unknown(what: str, word: str, known: list[str], rule: str, flag: str) -> Fault:
    alike = [*nearest(word, known), *(name for name in known if name[:1] == word[:1].lower()), *known]
    return Fault("JOB007", f"the model has no {what} {quoted(word)}", rule, quoted(word), f"{flag} {alike[0]}")


def untrainable(model: Model, job: Job, kernels: KernelSet) -> list[Fault]:
    """Every fault in what is to be trained; none where the whole model is."""
    faults = list(_stray(job))
    return faults + (_adapters(model, job, kernels) if job.adapter != "none" else _frozen(model, job, kernels))


def _adapters(model: Model, job: Job, kernels: KernelSet) -> list[Fault]:
    known = matrices(model, kernels)
    words = [*(word for word, names in TARGETS.items() if {*names} & known), *sorted(known)]
    rule = f"targets of this model: {', '.join(words)}"
    asked = (
        word for word in job.adapter_targets if word not in TARGETS or job.adapter_targets != DEFAULT.adapter_targets
    )
    faults = [_unknown("target", word, words, rule, "--targets") for word in asked if word not in words]
    if not faults and not named_targets(job.adapter_targets) & known:
        faults.append(Fault("JOB008", "no matrix gets an adapter", rule, "no target", f"--targets {words[0]}"))
    return faults


def _frozen(model: Model, job: Job, kernels: KernelSet) -> list[Fault]:
    if not job.frozen:
        return []
    parts = sorted(_parts(model, kernels))
    rule = f"parts of this model: {', '.join(parts)}"
    faults = [_unknown("part", word, parts, rule, "--freeze") for word in job.frozen if word not in parts]
    if not faults and not _trains(model, job, kernels):
        got = f"--freeze {','.join(job.frozen)}" + (", one table for embedding and head" if model.tied else "")
        faults.append(Fault("JOB008", "nothing is trained", "some part is left", got, "--freeze layers"))
    return faults


def _trains(model: Model, job: Job, kernels: KernelSet) -> bool:
    """Whether any weight is trained, the final norm apart."""
    found = _sections(model, kernels)
    left = [
        row
        for block in (*model.blocks, *model.ends)
        for row in trained_rows(block, found[block.name], job.training, model.tied)
        if row.trained and row.name != "final_norm"
    ]
    return any(
        isinstance(row, Linear) or getattr(row, "weights", "none") != "none" or getattr(row, "sinks", False)
        for row in left
    )


def _stray(job: Job) -> list[Fault]:
    """What says something of adapters or of frozen parts where there are none, or that is said already."""
    found = []
    if job.training.whole and job.frozen_format != usual_format(job):
        rule, got = "a format of frozen matrices needs --adapter or --freeze", f"--frozen-format {job.frozen_format}"
        found.append(Fault("JOB008", "nothing is frozen", rule, got, "--adapter lora"))
    given = {
        "--rank": job.adapter_rank != DEFAULT.adapter_rank,
        "--targets": job.adapter_targets != DEFAULT.adapter_targets,
    }
    if job.adapter == "none" and any(given.values()):
        got = " and ".join(name for name, said in given.items() if said)
        rule = "a rank and targets of adapters need --adapter"
        found.append(Fault("JOB008", "no matrix gets an adapter", rule, got, "--adapter lora"))
    if job.adapter != "none" and job.frozen:
        rule = "beside adapters everything is frozen: --freeze is for runs without them"
        got = f"--adapter {job.adapter} --freeze {','.join(job.frozen)}"
        found.append(Fault("JOB008", "parts are frozen that are frozen already", rule, got, "leave out --freeze"))
    return found


def unaccompanied(job: Job, cluster: Cluster) -> list[Fault]:
    """Every fault in the documents of a complete job, and in the models beside it."""
    found = [
        Fault(
            "JOB009",
            f"{one.name} is cut over more accelerators than there are",
            "a copy of a model beside is cut over at most all accelerators of the cluster",
            f"{one.ranks} of {cluster.ranks}",
            f"--beside {one.name.split(' ')[0]}:{one.role}:{cluster.ranks}",
        )
        for one in job.beside
        if one.ranks > cluster.ranks
    ]
    if job.packing is not None and job.packing.mean > job.sequence_length:
        found.append(
            Fault(
                "JOB009",
                "the documents are longer than the sequence",
                "documents are packed whole, or padded: on average they are no longer than the sequence",
                f"mean {job.packing.mean:,.0f} of {job.sequence_length:,} tokens",
                f"--packing mean={job.sequence_length}",
            )
        )
    return found
