"""Which torch and transformers are installed: the private names that are used here are those of one version."""

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from ..errors import Fault

WANTED = {"torch": "2.13.0", "transformers": "5.24.0"}
INSTALL = 'pip install "outlay[verify]", into an environment of its own'


def versions_fault(names: Iterable[str] = tuple(WANTED), command: str = "outlay verify") -> Fault | None:
    """What is missing, or is another version; nothing is imported."""
    found = {name: _installed(name) for name in names}
    missing = [name for name, one in found.items() if not one]
    rule = f"{command} runs " + " and ".join(f"{name} {WANTED[name]}" for name in found)
    if missing:
        what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        return Fault("VER002", what, rule, "nothing of that name", INSTALL)
    wrong = [f"{name} {one}" for name, one in found.items() if one != WANTED[name]]
    if wrong:
        return Fault("VER003", "another version is installed", rule, " and ".join(wrong), INSTALL)
    return None


def _installed(name: str) -> str:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
