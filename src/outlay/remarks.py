"""What a bill says beside its figures: what is trained, what else is on the accelerators, what is recalled."""

from .cluster.accelerator import Cluster
from .job import Job
from .layout.case import Case
from .quantities import GB
from .undivided import state_of


def remarks(case: Case) -> tuple[str, ...]:
    """Everything of a case that a reader of its figures must know."""
    return (*_trained(case), *_company(case.job), *_hosted(case), *_recalled(case.cluster))


def _hosted(case: Case) -> tuple[str, ...]:
    """What offload asks of the hosts, which is not checked."""
    state = state_of(case.model, case.recipe, case.job)
    kept = state.optimizer * case.layout.offload_optimizer + state.weights * case.layout.offload_parameters
    if not kept:
        return ()
    share = kept / case.cluster.ranks / GB
    return (f"offload: {share:,.0f} GB of host memory an accelerator, and the host has it (not checked)",)


def _trained(case: Case) -> tuple[str, ...]:
    """What is trained, where that is not everything."""
    if case.job.training.whole:
        return ()
    state = state_of(case.model, case.recipe, case.job)
    share = (
        f"{state.trained:,} of {state.parameters:,} parameters trained ({100 * state.trained / state.parameters:.4f} %)"
    )
    if case.job.adapter == "none":
        return (f"{share}; frozen: {', '.join(case.job.frozen)}",)
    return (f"{share}: {case.job.adapter}, rank {case.job.adapter_rank}, on {', '.join(case.job.adapter_targets)}",)


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


def _recalled(cluster: Cluster) -> tuple[str, ...]:
    """Figures of the cluster that no source was read for, and those that were taken from elsewhere."""
    return (*(f"{figure}: recalled, not read from its source" for figure in cluster.unverified), *cluster.notes)
