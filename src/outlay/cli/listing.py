"""outlay models and outlay hardware: what is known by name."""

from .flags import Given
from .output import Told


def models(given: Given) -> Told:
    """The catalogue, the part of it that holds a text, or one model."""
    from ..model.catalogue import entry, matching
    from ..show.catalogue import model_lines, model_record, models_lines, models_record

    text = given.text("text") or ""
    found = matching(text)
    if len(found) == 1 or not found:
        name = found[0] if found else entry(text).name  # raises, with the names that are near
        return Told(lambda: model_record(name), lambda style: model_lines(name, style))
    return Told(lambda: models_record(list(found)), lambda style: models_lines(list(found), style))


def hardware(given: Given) -> Told:
    """All accelerators and node types, those that hold a text, the figures of one, or a whole cluster."""
    from ..cluster.catalogue import accelerator_names, cluster, node_names
    from ..show import hardware as show
    from ..show import profile as show_profile

    text = (given.text("text") or "").strip()
    exact = next((name for name in (*accelerator_names(), *node_names()) if name.lower() == text.lower()), "")
    if given.on("profile") or given.text("engine"):
        held = show_profile.profile_of(exact or text, given.text("engine") or "megatron")
        return Told(lambda: show_profile.profile_record(held), lambda style: show_profile.profile_lines(held))
    if given.on("toml"):
        of = cluster(exact or text)  # raises, with the names that are near
        whole = exact in accelerator_names()
        return Told(lambda: show.toml_record(of, whole), lambda style: show.toml_lines(of, whole))
    if exact:
        return Told(lambda: show.card_record(exact), lambda style: show.card_lines(exact, style))
    if found := show.found_by(text):
        return Told(lambda: show.hardware_record(found), lambda style: show.hardware_lines(found, style))
    one = cluster(text)
    return Told(lambda: show.cluster_record(one), lambda style: show.cluster_lines(one, style))
