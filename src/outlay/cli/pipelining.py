"""What `outlay verify --only pipeline` asks beside its layout, and the pictures that it writes."""

from ..errors import Fault, nearest, quoted
from ..verify.pipelines.run import PipelineRun
from ..verify.subject import OPERATION, Pacing
from ..verify.verified import Verified
from .drawing import OUTPUTS, outputs
from .files import write
from .flags import Given
from .values import Faults, seconds

PACES = ("sleep", "compute")
LONGEST = 60.0  # s of an operation: a run is watched
ASKED = ("operation", "stages", *OUTPUTS)


def read_pacing(given: Given, only: tuple[str, ...], faults: Faults) -> Pacing:
    """How long an operation lasts, and what a stage does meanwhile."""
    if (extra := [f"--{name}" for name in ASKED if given.text(name) is not None]) and "pipeline" not in only:
        rule = "durations and pictures are of a pipeline that runs, which takes real time and is asked for by name"
        faults.add(Fault("VER011", "no pipeline is run", rule, ", ".join(extra), "--only pipeline"))
    word, text = given.text("stages") or PACES[0], given.text("operation")
    if word not in PACES:
        close = (nearest(word, PACES) or PACES)[0]
        rule = "a stage sleeps, or multiplies matrices"
        faults.add(Fault("VER012", "--stages cannot be read", rule, quoted(word), f"--stages {close}"))
    each = OPERATION if text is None else seconds(text, "--operation", faults) or OPERATION
    if each > LONGEST:
        rule = f"an operation lasts {LONGEST:g} s at most"
        faults.add(Fault("VER013", "--operation is too long to wait for", rule, quoted(text), "--operation 100ms"))
    return Pacing(each, word == "compute")


def read_pictures(given: Given, only: tuple[str, ...], faults: Faults) -> dict[str, str]:
    """The files to write, each of which can be written as far as can be seen."""
    return outputs(given, faults) if "pipeline" in only else {}


def write_pictures(given: Given, paths: dict[str, str], model: str, found: Verified) -> tuple[str, ...]:
    """Write what was asked for of the pipeline that ran; the names of the files, none where none ran."""
    if found.pipeline is None:
        return ()
    made = {path: _made(name, model, found.pipeline) for name, path in paths.items()}  # all before any is written
    for path, content in made.items():
        write(path, content, given.on("force"))
    return tuple(made)


def _made(name: str, model: str, run: PipelineRun) -> bytes:
    """The content of one file."""
    from ..show.pipeline import charts_of

    if name == "perfetto":
        from ..formats.perfetto_timeline import timelines_trace
        from ..schedule.times import TICK

        return timelines_trace({"diagram": run.diagram, "measured": run.measured}, TICK * 1e9)
    charts = charts_of(model, run)
    if name == "html":
        from ..show.diagram.html import html_of_two

        return html_of_two(*charts).encode()
    from ..show.diagram.two import svg_of_two

    return svg_of_two(*charts).encode()
