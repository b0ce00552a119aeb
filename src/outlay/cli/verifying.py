"""outlay verify: the counts of one layout beside the same in PyTorch and transformers, on tensors without data."""

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from ..bill import Bill
from ..errors import Fault, InputError, nearest, quoted
from ..model.catalogue import entry
from ..model.huggingface import load
from ..show.restore import is_bill
from ..verify.launched import answers
from ..verify.models.configs import Config
from ..verify.subject import KINDS, USUAL, Pacing, Subject
from ..verify.verified import Verified
from ..verify.versions import told_faults, versions_fault
from .configuring import config_of
from .files import STDOUT
from .flags import Given
from .output import Told
from .pipelining import read_pacing, read_pictures, write_pictures
from .question import read_question
from .values import Faults, chosen, count

ENGINE = "fsdp2-uncompiled"  # whose sharding, collectives and kernels are what runs
MOST_LAYERS = 1_000
SEVERAL = ("pipeline", "step")  # what several ranks run together
DEVICES = ("cuda", "cpu")


def verify(given: Given) -> Told | int:
    """Run what can be run of one layout, and compare. Exit 1: something disagrees, or nothing could be compared.

    What several ranks run together, the first of torchrun's answers for all.
    """
    asked = {word.strip() for word in (given.text("only") or "").split(",")}
    if answers() or not asked & {*SEVERAL}:
        return _verify(given)
    try:
        _verify(given, silent=True)
    except InputError:
        if versions_fault():  # of this machine: what else is wrong, the first rank says
            raise
    return 0


def _verify(given: Given, silent: bool = False) -> Told | int:
    from ..show.verified import agrees_all, illegal_lines, verified_lines, verified_record

    faults = Faults()
    only = faults.attempt(kinds, given.text("only"))
    text = given.text("layers")
    layers = count(text, "--layers", faults, MOST_LAYERS) if text is not None else 0
    pacing = read_pacing(given, only or (), faults)
    paths = {} if silent else read_pictures(given, only or (), faults)
    device = faults.attempt(device_of, given.text("device"), only or ()) or ""
    question = faults.attempt(read_question, given, engine=ENGINE)
    if fault := versions_fault():
        faults.add(fault)
    faults.stop()
    bill = question.bill()
    if bill.violations:
        return Told(lambda: verified_record(bill, None), lambda style: illegal_lines(bill, style), yes=False)
    found = _run(given, bill, tuple({*only} & {*SEVERAL}) if silent else only, layers or 0, pacing, device)
    if silent:
        return 0
    files = write_pictures(given, paths, bill.model.name, found)
    told = Told(
        lambda: verified_record(bill, found, files),
        lambda style: verified_lines(bill, found, style, files),
        agrees_all(found),
    )
    return told.code if STDOUT in files else told


def kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of comparison that are asked for; by default all that take no real time."""
    return USUAL if text is None else chosen(text, KINDS, "VER004", "compared")


def device_of(text: str | None, only: tuple[str, ...]) -> str:
    """What a step runs on."""
    if text is None:
        return ""
    if text in DEVICES and "step" in only:
        return text
    if text in DEVICES:
        rule = "--device is of --only step: all else runs on tensors without data"
        raise InputError(Fault("VER020", "a device, and no step that runs on it", rule, quoted(text), "--only step"))
    close = nearest(text, DEVICES) or [DEVICES[0]]
    rule = f"--device is {' or '.join(DEVICES)}; by itself an accelerator is taken"
    raise InputError(Fault("VER020", "no such device", rule, quoted(text), f"--device {close[0]}"))


def _run(given: Given, bill: Bill, only: tuple[str, ...], layers: int, pacing: Pacing, device: str) -> Verified:
    from ..verify.layout import verify as run

    config, missing = config_behind(given)
    subject = Subject(bill.model, bill.job, bill.cluster, bill.layout, bill.engine, config, missing, pacing, device)
    progress = Progress(sys.stderr.write, len(only)) if sys.stderr.isatty() else None
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # torch's profiler says when it starts
    try:
        with warnings.catch_warnings(), told_faults():
            warnings.simplefilter("ignore")  # of libraries, about private names
            return run(subject, only, layers, progress or (lambda kind: None))
    finally:
        if progress:
            progress.close()


def config_behind(given: Given) -> tuple[Config | None, str]:
    """The config.json of MODEL as it stands; or why there is none that transformers could build."""
    text = given.text("model") or str(config_of(given.text("config")).get("model", ""))
    if given.text("family") or given.text("part"):
        return None, "the config is read otherwise than it says (--as, --part)"
    if text == "-":
        return None, "a config on standard input is read once (give its path)"
    explicit = text.lower().endswith(".json") or os.sep in text or os.path.exists(text)
    config = load(text) if explicit else entry(text).config
    return (None, "a printed bill holds no config.json (give that)") if is_bill(config) else (config, "")


@dataclass
class Progress:
    """Told when a run begins; writes one line that replaces itself. The first one takes seconds to load its engine."""

    write: Callable[[str], object]  # such as sys.stderr.write
    most: int
    begun: int = 0

    def __call__(self, kind: str) -> None:
        """One more run begins."""
        self.begun += 1
        self.write(f"\r{f'running {kind} in PyTorch, {self.begun} of at most {self.most} runs ..'.ljust(72)}")

    def close(self) -> None:
        """Wipe the line, if there is one."""
        if self.begun:
            self.write("\r" + " " * 72 + "\r")
