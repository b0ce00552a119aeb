"""`import outlay` is light: NumPy and the standard library, nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import outlay

PACKAGE = Path(outlay.__path__[0])
EDGES = {"__main__", "cli", "web", "show", "validate", "verify", "formats"}
PROGRAM = """
import json, sys, numpy
before = set(sys.modules)
{statement}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""


def foreign(statement: str) -> set[str]:
    """What a statement loads in a fresh interpreter that is neither ours, nor NumPy, nor the standard library."""
    program = PROGRAM.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout)) - {"outlay", "numpy"} - sys.stdlib_module_names


def inner_modules() -> list[str]:
    """Every module that stands below the faces."""
    files = (file.relative_to(PACKAGE.parent).with_suffix("") for file in sorted(PACKAGE.rglob("*.py")))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    return [name for name in names if name.split(".")[1:2] and name.split(".")[1] not in EDGES]


def test_importing_the_package_loads_numpy_and_the_standard_library_only() -> None:
    assert foreign("import outlay") == set()


def test_every_room_below_the_faces_loads_numpy_and_the_standard_library_only() -> None:
    names = inner_modules()

    assert {"outlay.errors", "outlay.quantities", "outlay.formula", "outlay.cluster.accelerator"} <= set(names)
    assert foreign("import " + ", ".join(names)) == set()


def test_the_check_can_fail() -> None:
    assert "pydantic" in foreign("import outlay, pydantic")


def test_a_plain_model_loads_no_family_and_no_part_that_it_does_not_have() -> None:
    program = "import sys, outlay; outlay.load_model('llama-3.1-8b'); print(*(n for n in sys.modules if 'outlay' in n))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    loaded = set(done.stdout.split())
    assert "outlay.model.families.dense" in loaded
    assert not loaded & {f"outlay.model.families.{name}" for name in ("recurrent", "latent", "zamba", "hybrids")}
    assert not loaded & {f"outlay.model.parts.{name}" for name in ("delta", "zaya", "streams", "doge")}


def test_the_commands_load_no_search_before_one_is_asked_for() -> None:
    """Every command reads the flags of all, so what stands behind them is loaded late."""
    program = "import sys, outlay.cli.main; print(*(name for name in sys.modules if name.startswith('outlay.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = {".".join(name.split(".")[:2]) for name in done.stdout.split()}
    assert "outlay.cli" in loaded
    assert loaded.isdisjoint(
        {"outlay.search", "outlay.simulated", "outlay.formats", "outlay.validate", "outlay.verify"}
    )
