"""The profile of a question: a file that --profile names, or that of a printed bill."""

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..engines.profile import Profile
from ..show.restore import Asked
from .values import Faults


def read_profile_of(path: object, asked: Asked | None, faults: Faults) -> Profile | None:
    """The profile of a file; without one, that of a printed bill."""
    if path is None:
        return asked.profile if asked else None
    from ..engines.profile_file import read_profile

    found: Profile | None = faults.attempt(read_profile, str(path))
    return found


def under(
    profile: Profile | None, clusters: tuple[Cluster, ...], name: str, faults: Faults
) -> tuple[tuple[Cluster, ...], str | Engine]:
    """The clusters and the engine with the constants of a profile; as they are where there is none."""
    if profile is None or faults.found:
        return clusters, name
    from ..engines.profiled import profiled
    from ..engines.tables import engine

    made = [faults.attempt(profiled, profile, cluster, engine(name)) for cluster in clusters]
    found = [each for each in made if each]
    return tuple(cluster for cluster, _ in found), found[0][1] if found else name
