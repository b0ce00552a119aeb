"""The best recompute as a policy of torch's selective checkpoints: what is saved, and what runs again with it."""

from ...search.recompute.operations import Layer
from ...search.recompute.stages import Group, Recompute
from ..text import Style, block, duration, wrapped


def policy_part(found: Recompute, style: Style) -> list[str]:
    """What every layer saves; the rest is computed again."""
    about = "torch.utils.checkpoint.create_selective_checkpoint_contexts: what a layer saves, all else runs again"
    lines = block("POLICY", about, style)
    kinds = {layer.name: layer for layer in found.plan.room.layers}
    for group in found.groups:
        lines += wrapped(policy_words(group, kinds[group.kind]), style, 2, 6)
    return lines


def policy_words(group: Group, layer: Layer) -> str:
    """The policy of some layers."""
    count = f"{group.layers} {group.kind}"
    if not group.again:
        return f"{count}: no checkpoint"
    if group.length:
        inside = "checkpoint(layer)" if group.length == 1 else f"checkpoint over {group.length} layers in a row"
        return f"{count}: {inside}, save nothing"
    said = f"{count}: MUST_SAVE {', '.join(saved(group, layer)) or 'nothing'}"
    beside = uncompiled(group, layer)
    more = sum(each.seconds for each in layer.operations if each.name in beside)
    return f"{said}; without torch.compile {', '.join(beside)} run too, {duration(more)}" if beside else said


def saved(group: Group, layer: Layer) -> list[str]:
    """The operations whose outputs a policy saves."""
    again = set(group.again)
    return [each.name for each in layer.operations if each.output > 0 and each.name not in again]


def uncompiled(group: Group, layer: Layer) -> list[str]:
    """The operations that a checkpoint without a compiler runs beside those of the plan, and nobody reads.

    It runs everything that is not saved, up to the last tensor that is missing; a compiler leaves out what is not read.
    Source: torch/utils/checkpoint.py, early stop and the dispatch mode of cached outputs.
    """
    if not group.again or group.length:
        return []
    names = [each.name for each in layer.operations]
    last = max(names.index(name) for name in group.again)
    kept = {*saved(group, layer), *group.again}
    return [name for name in names[:last] if name not in kept]
