"""outlay models and outlay hardware: what is known by name."""

from .flags import Given
from .output import tell


def models(given: Given) -> int:
    """The catalogue, the part of it that holds a text, or one model."""
    from ..model.catalogue import entry, names
    from ..show.catalogue import model_lines, model_record, models_lines, models_record

    text = (given.text("text") or "").strip().lower()
    found = [name for name in names() if text in name.lower()]
    if text in names() or (text and not found):
        name = entry(text).name  # another spelling of a name, or a fault that says which names are near
        tell(given, lambda: model_record(name), lambda style: model_lines(name, style))
    else:
        tell(given, lambda: models_record(found), lambda style: models_lines(found, style))
    return 0


def hardware(given: Given) -> int:
    """All accelerators and node types, those that hold a text, or the figures of one."""
    from ..cluster.catalogue import accelerator_names, figures, node_names
    from ..show.catalogue import card_lines, card_record, hardware_lines, hardware_record

    text = (given.text("text") or "").strip().lower()
    every = (*accelerator_names(), *node_names())
    exact = next((name for name in every if name.lower() == text), "")
    found = [name for name in every if text in name.lower()]
    if text and not found:
        figures(text)  # raises, with the names that are near
    if exact:
        tell(given, lambda: card_record(exact), lambda style: card_lines(exact, style))
    else:
        tell(given, lambda: hardware_record(found), lambda style: hardware_lines(found, style))
    return 0
