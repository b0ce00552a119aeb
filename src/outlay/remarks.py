"""What a bill says beside its figures: what is trained, what else is on the accelerators, what is recalled."""

from .cluster.accelerator import Cluster
from .engines.tables import kernel_set
from .job import Job
from .layout.case import Case
from .layout.training_rules import matched_targets, matrices
from .memory.hosted import hosting
from .model.trained import TARGETS
from .undivided import state_of


def remarks(case: Case, held: float) -> tuple[str, ...]:
    """Everything of a case that a reader of its figures must know; `held` bytes of an accelerator stand on its host."""
    said = (*_recomputed(case), *_capped(case.job))
    return (*_trained(case), *said, *_company(case.job), *hosting(held, case), *_recalled(case.cluster, held > 0))


def _recomputed(case: Case) -> tuple[str, ...]:
    """Modules that are asked for and that nothing runs again of."""
    if "layernorm" not in case.layout.recompute_modules or not kernel_set(case.engine.kernels).fuses_norms:
        return ()
    return ("layernorm: a norm that is one kernel with the matrix behind it does not run again",)


def _trained(case: Case) -> tuple[str, ...]:
    """What is trained, where that is not everything."""
    if case.job.training.whole:
        return ()
    state = state_of(case.model, case.recipe, case.job)
    share = (
        f"{state.trained:,} of {state.parameters:,} parameters trained ({100 * state.trained / state.parameters:.4f} %)"
    )
    if case.job.adapter == "none":
        shared = case.model.tied and not case.job.training.table
        table = "; embedding and head share a table, which is frozen" if shared else ""
        return (f"{share}; frozen: {', '.join(case.job.frozen)}{table}",)
    kernels = kernel_set(case.engine.kernels)
    on = ", ".join(matched_targets(case.model, case.job, kernels))
    left = {*TARGETS["experts"]} & matrices(case.model, kernels) - case.job.training.targets
    experts = "; experts have none (--targets experts)" if left else ""
    return (f"{share}: {case.job.adapter}, rank {case.job.adapter_rank}, on {on}{experts}",)


def _capped(job: Job) -> tuple[str, ...]:
    """What a capacity of experts does; model FLOPs count every token, those that are dropped too."""
    if not job.expert_capacity:
        return ()
    most = f"an expert takes at most {job.expert_capacity:g} of its mean"
    padded = ", and is padded to it" if job.pad_to_capacity else ", and what is beyond is dropped"
    return (f"{most}{padded}: model FLOPs count every token",)


def _company(job: Job) -> tuple[str, ...]:
    """Other models on the same accelerators, and documents of unequal length."""
    said = [
        f"beside: {one.name} ({one.role}), {one.parameters:,.0f} parameters: memory alone, its time is not counted"
        for one in job.beside
    ]
    if job.packing is not None and job.packing.padded:
        waste = 100 * (1 - job.useful_share)
        said.append(f"{waste:.1f} % of the tokens are padding, computed like the others; tokens/s leaves them out")
    elif job.packing is not None:
        said.append(f"documents of {job.packing.mean:,.0f} tokens on average: a token sees its own document alone")
    return tuple(said)


def _recalled(cluster: Cluster, hosted: bool) -> tuple[str, ...]:
    """Figures of the cluster that no source was read for, and those that were taken from elsewhere."""
    used = [figure for figure in cluster.unverified if hosted or figure != "host bytes"]
    return (*(f"{figure}: recalled, not read from its source" for figure in used), *cluster.notes)
