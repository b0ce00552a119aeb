"""Which torch and transformers are installed: the private names that are used here are those of one version."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from ..errors import Fault, InputError

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


@contextmanager
def told_faults() -> Iterator[None]:
    """Say in one line what keeps torch from running here: it does not load, or the machine has no memory left.

    Raises InputError.
    """
    rule = "nothing has data, but torch and transformers take about a GB, and each operation of a layer is described"
    try:
        yield
    except (ImportError, OSError) as error:
        if not isinstance(error, ImportError) and ".so" not in str(error):
            raise
        raise InputError(
            Fault(
                "VER009", "torch or transformers does not load here", "both are installed whole", _line(error), INSTALL
            )
        ) from error
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "alloc" not in str(error):
            raise
        fix = "--layers 2, or fewer kinds at a time: --only states"
        raise InputError(Fault("VER008", "this machine has no memory left", rule, _line(error), fix)) from error


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__} {error}".split())[:120]


def _installed(name: str) -> str:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
