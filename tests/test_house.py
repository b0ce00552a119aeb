"""The rules of the house that a test can count: arrows, budgets, public names, words, docstrings."""

import ast
import importlib.util
import inspect
import re
import statistics
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import outlay

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "outlay"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = [room.strip("()") for room in reversed(CONFIG["tool"]["importlinter"]["contracts"][0]["layers"])]
MODULES = sorted(PACKAGE.rglob("*.py"))
MODULE_LINES, FUNCTION_LINES, MEDIAN_LINES = 300, 50, 15
# Written in pieces, so that this file does not hold them.
BANNED = re.compile("/" + "(work|root)/|" + r"\bshared" + r"/|\bissue" + " 0", re.IGNORECASE)
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")]


def relative(file: Path) -> str:
    return str(file.relative_to(ROOT))


every_module = pytest.mark.parametrize("module", MODULES, ids=relative)


# --- arrows ---------------------------------------------------------------------------------------------------------


def imported(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Each name of the package that a file imports, in dots from its root: `cluster.accelerator.Cluster`."""
    here = [package.name, *file.relative_to(package).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else []
            names = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == package.name)


def room_of(file: Path, package: Path) -> str:
    return file.relative_to(package).with_suffix("").parts[0]


def wrong_arrows(package: Path) -> list[str]:
    """Imports that point upwards, and imports from the package itself, which no tool can place in a room."""
    wrong = []
    for file in sorted(package.rglob("*.py")):
        room = room_of(file, package)
        for line, name in imported(file, package):
            target = name.split(".")[1] if "." in name else ""
            if room == "__init__" or name == f"{package.name}.__version__":
                continue
            if room not in ROOMS:
                wrong.append(f"{file.name} stands in {room}, a room that is not listed")
            elif target not in ROOMS:
                wrong.append(f"{file.name}:{line} imports {name} from the package itself, not from its room")
            elif ROOMS.index(target) > ROOMS.index(room):
                wrong.append(f"{file.name}:{line} in {room} imports {name}, a room above")
    return wrong


def folders_without_init(package: Path) -> list[str]:
    """Folders with modules that Python imports all the same, and that the import graph does not see."""
    folders = {
        parent for file in package.rglob("*.py") for parent in file.parents if package in [parent, *parent.parents]
    }
    return sorted(str(folder.relative_to(package)) for folder in folders if not (folder / "__init__.py").exists())


def plant(root: Path, files: dict[str, str]) -> Path:
    """A small package with these files."""
    for name, text in files.items():
        (root / "outlay" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "outlay" / name).write_text(text)
    return root / "outlay"


def test_the_modules_of_the_ground_are_found() -> None:
    names = {str(module.relative_to(PACKAGE)) for module in MODULES}

    assert {"__init__.py", "errors.py", "quantities.py", "formula.py", "cluster/accelerator.py"} <= names


def test_every_arrow_points_downwards() -> None:
    assert wrong_arrows(PACKAGE) == []


def test_every_folder_of_modules_is_a_package() -> None:
    assert folders_without_init(PACKAGE) == []


def test_every_room_is_listed_and_stands_once() -> None:
    rooms = {room_of(module, PACKAGE) for module in MODULES} - {"__init__"}

    assert rooms <= set(ROOMS)
    assert len(ROOMS) == len(set(ROOMS))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("model/model.py", "from outlay import Job\n"),
        ("model/model.py", "from .. import Job\n"),
        ("model/model.py", "import outlay\n"),
        ("model/model.py", "from ..layout.axes import Layout\n"),
        ("model/deep/rows.py", "from ...layout import Layout\n"),
        ("model/model.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from outlay.step import total\n"),
        ("attic/box.py", "from ..errors import Fault\n"),
        ("errors.py", "def late():\n    from .quantities import Bytes\n"),
    ],
)
def test_a_planted_arrow_is_found(tmp_path: Path, file: str, text: str) -> None:
    assert len(wrong_arrows(plant(tmp_path, {"__init__.py": "", file: text}))) == 1


def test_an_arrow_downwards_or_inside_a_room_is_not_reported(tmp_path: Path) -> None:
    text = "from outlay import __version__\nfrom ..cluster import network\nfrom . import rows\nimport numpy\n"
    files = {"__init__.py": "from .model import Model\n", "model/deep/rows.py": "from ..model import Model\n"}

    assert wrong_arrows(plant(tmp_path, files | {"model/model.py": text})) == []


def test_a_planted_folder_without_init_is_found(tmp_path: Path) -> None:
    package = plant(tmp_path, {"__init__.py": "", "model/deep/rows.py": "", "model/__init__.py": ""})

    assert folders_without_init(package) == ["model/deep"]


# --- budgets --------------------------------------------------------------------------------------------------------


def function_lengths(file: Path) -> dict[str, int]:
    """Lines of each function and method, docstring included, decorators not."""
    nodes = ast.walk(ast.parse(file.read_text()))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {f"{node.name}:{node.lineno}": (node.end_lineno or 0) - node.lineno + 1 for node in functions}


@every_module
def test_a_module_keeps_to_its_lines(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MODULE_LINES


@every_module
def test_a_function_keeps_to_its_lines(module: Path) -> None:
    assert {name: lines for name, lines in function_lengths(module).items() if lines > FUNCTION_LINES} == {}


def test_the_median_function_is_short() -> None:
    lengths = [lines for module in MODULES for lines in function_lengths(module).values()]

    assert len(lengths) > 20
    assert statistics.median(lengths) <= MEDIAN_LINES


def test_a_long_function_is_counted_as_long(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("class A:\n    def f(self):\n" + "        x = 1\n" * 60)

    assert function_lengths(file) == {"f:2": 61}


# --- names ----------------------------------------------------------------------------------------------------------


def isort_key(name: str) -> tuple[int, list[tuple[int, int | str]]]:
    """The order of ruff's RUF022: CONSTANTS, then Classes, then functions, numbers in a name by their value."""
    group = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return group, [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def public_names() -> list[str]:
    return list(getattr(outlay, "__all__", []))


def undocumented(value: object) -> bool:
    """A class or function without a sentence of its own; a dataclass's made-up docstring is none."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return False
    doc = value.__doc__ or ""
    return not doc.strip() or doc.startswith(f"{value.__name__}(")


def test_the_public_names_are_listed_in_order() -> None:
    names = public_names()

    assert names == sorted(names, key=isort_key)
    assert len(names) == len(set(names))


def test_the_public_names_are_what_the_package_holds() -> None:
    held = {name for name in dir(outlay) if not name.startswith("_") and not inspect.ismodule(getattr(outlay, name))}

    assert held == {name for name in public_names() if not name.startswith("__")}


def test_every_public_name_says_what_it_is() -> None:
    assert [name for name in public_names() if undocumented(getattr(outlay, name))] == []


def test_no_public_name_is_that_of_a_room() -> None:
    assert set(public_names()) & set(ROOMS) == set()


def test_the_version_has_one_place() -> None:
    assert "version" in CONFIG["project"]["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", outlay.__version__)


# --- words ----------------------------------------------------------------------------------------------------------


def texts() -> list[Path]:
    """Every text file of the repository that people read or that travels."""
    inside = [file for folder in ("src", "tests", "docs", "benchmarks", ".ci") for file in (ROOT / folder).rglob("*")]
    files = [*PAGES, *ROOT.glob("*.py"), *inside]
    return [file for file in files if file.is_file() and "__pycache__" not in file.parts]


def test_no_file_names_a_place_that_only_one_machine_has() -> None:
    files = texts()
    found = [relative(file) for file in files if BANNED.search(file.read_text(encoding="utf-8", errors="replace"))]

    assert ROOT / "src/outlay/errors.py" in files
    assert found == []


def test_a_local_path_is_recognised() -> None:
    assert (
        BANNED.search("see /" + "work/main/x") and BANNED.search("Issue" + " 01") and BANNED.search("shared" + "/a.csv")
    )
    assert not BANNED.search("the network is shared, /workers, an issue of memory")


@every_module
def test_every_module_says_what_it_is_for(module: Path) -> None:
    assert (ast.get_docstring(ast.parse(module.read_text())) or "").strip()


def test_the_tests_run_on_this_copy_of_the_package() -> None:
    spec = importlib.util.find_spec("outlay")

    assert spec is not None
    assert [Path(place).resolve() for place in spec.submodule_search_locations or []] == [PACKAGE.resolve()]
