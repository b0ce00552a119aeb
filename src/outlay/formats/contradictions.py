"""Where the files of one run, or the parts of one file, say different things of the same quantity; and which one wins.

Sources: transformers 5.24, integrations/deepspeed.py (trainer_config_finalize raises on each value that differs);
Accelerate 1.15, utils/dataclasses.py (DeepSpeedPlugin) and accelerator.py; Megatron-LM, training/arguments.py.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from .joining import DEEPSPEED, MEGATRON, Part, amount, degrees_of, in_order, joined, named_files
from .said import BATCH, CUT, KIND, KINDS, LENGTH, OPTIMIZER, SHARDS, Said, same
from .setting import Edit, Finding

CODES = {BATCH: "CHK001", KIND: "CHK002", SHARDS: "CHK003", CUT: "CHK003", LENGTH: "CHK005", OPTIMIZER: "CHK007"}
# What only the transformers family calls so: whoever writes these beside a DeepSpeed file runs it through them.
THEIRS = ("per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "learning_rate", "bf16",
          "fp16", "mixed_precision")  # fmt: skip

STOPS = 'transformers and Accelerate stop where a DeepSpeed file differs from their own arguments; "auto" takes theirs'
Placed = tuple[str, Finding]  # the name of a file, and what was found in it


def across(parts: Sequence[Part]) -> list[Placed]:
    """What several files contradict each other in, and each of them itself."""
    found = [one for part in parts for one in _within(part)]
    for one, other in combinations(parts, 2):
        found += _between(one, other)
    sizes = list(_ranks(parts))
    return [*found, *(sizes or _product(parts)), *_models(parts), *_absent(parts)]


def _within(part: Part) -> Iterator[Placed]:
    """A file that says one quantity twice, under two names or in two sections; of flags the last one wins."""
    for index, one in enumerate(part.said):
        before = next((said for said in part.said[:index] if said.quantity == one.quantity), None)
        if before is None or before.name == one.name or same(before.value, one.value) or one.name.startswith("-"):
            continue
        if any(found.serious and found.line in (before.line, one.line) for found in part.found.findings):
            continue  # its framework says so itself
        what = f"two values of the {one.quantity} in one file"
        got = f"{_at(before)} and {_at(one)}"
        rule = f"a run has one {one.quantity}"
        yield part.title, _finding(one, CODES[KINDS[one.quantity]], False, what, rule, got, f"one of them: {one.name}")


def _between(one: Part, other: Part) -> Iterator[Placed]:
    """Each quantity that two files give different values."""
    for quantity in KINDS:
        a, b = one.value(quantity), other.value(quantity)
        if a is None or b is None or same(a.value, b.value):
            continue
        code, what = CODES[KINDS[quantity]], f"{one.title} and {other.title} differ in the {quantity}"
        got = f"{_at(a)} in {one.title}, {_at(b)} in {other.title}"
        deep = _deepspeed(one, other)
        if deep and (b if deep is one else a).name.lstrip("-").replace("-", "_") in THEIRS:
            own = a if deep is one else b
            edits = () if quantity == "precision" else (Edit(_last(own.name), '"auto"', own.line, own.column),)
            fix = f'"{_last(own.name)}": "auto" in {deep.title}, or the same value in both'
            yield deep.title, _finding(own, code, True, what, STOPS, got, fix, edits)
            continue
        wins = next(part for part in in_order((one, other)) if part.value(quantity))
        rule = f"a run has one {quantity}: each framework reads its own file, and {wins.title} is counted here"
        yield other.title, _finding(b, code, False, what, rule, got, "write the same value in both, or leave one out")


def _deepspeed(one: Part, other: Part) -> Part | None:
    """The DeepSpeed file of two, where only one is."""
    deep = [part for part in (one, other) if part.found.framework == DEEPSPEED]
    return deep[0] if len(deep) == 1 else None


def _ranks(parts: Sequence[Part]) -> Iterator[Placed]:
    """Launches of different sizes, or numbers of a batch that stand for another one."""
    known = [part for part in parts if part.found.ranks]
    for one, other in combinations(known, 2):
        a, b = one.found.ranks, other.found.ranks
        if a == b:
            continue
        deep = _deepspeed(one, other)
        stands = " (its train_batch_size / micro-batch / accumulation)" if deep else ""
        got = f"{a:,} ranks in {one.title}{stands if deep is one else ''},"
        got += f" {b:,} in {other.title}{stands if deep is other else ''}"
        rule = "all files of a run are for the ranks that its launch starts"
        fix = "the launch with that many processes, or another train_batch_size" if deep else "the same number in both"
        where = (deep or other).value("global batch") or (deep or other).value("micro-batch")
        at = where or Said("", "", "", 1, 1)
        what = f"{one.title} and {other.title} are for different numbers of ranks"
        yield (deep or other).title, _finding(at, "CHK004", True, what, rule, got, fix)


def _product(parts: Sequence[Part]) -> Iterator[Placed]:
    """Three numbers of the batch, of several files, that do not multiply out."""
    if len(parts) < 2:
        return
    whole, micro, steps = (amount(parts, name) for name in ("global batch", "micro-batch", "accumulation"))
    run = joined(parts)
    copies = run.ranks // degrees_of(run.layout)
    holder = next((part for part in in_order(parts) if part.value("global batch")), None)
    if not (whole and micro and copies and holder) or holder.found.framework == MEGATRON:
        return
    made = micro * (steps or 1) * copies
    at = holder.value("global batch")
    if made == whole or at is None or any(one.code == "DSP001" for part in parts for one in part.found.findings):
        return
    rule = "global batch = micro-batch x accumulation x data-parallel ranks"
    got = f"{whole:,} is not {micro:,} x {steps or 1:,} x {copies:,} = {made:,}"
    what = "the numbers of the batch do not multiply out over the files"
    edits = (Edit(_last(at.name), str(made), at.line, at.column),) if holder.found.framework == DEEPSPEED else ()
    yield holder.title, _finding(at, "CHK009", True, what, rule, got, f"{_last(at.name)} {made}", edits)


def _models(parts: Sequence[Part]) -> Iterator[Placed]:
    """Two files with a model each, of different sizes."""
    from ..undivided import parameters

    holders = [(part, parameters(part.found.model).total) for part in parts if part.found.model]
    for (one, a), (other, b) in combinations(holders, 2):
        if a != b:
            what, rule = f"{one.title} and {other.title} hold different models", "a run has one model"
            got = f"{a:,} parameters in {one.title}, {b:,} in {other.title}"
            at = Said("", "", "", 1, 1)
            yield other.title, _finding(at, "CHK006", True, what, rule, got, "the sizes of one of them in both")


def _absent(parts: Sequence[Part]) -> Iterator[Placed]:
    """Files that are named and not given."""
    given = {part.title for part in parts}
    for part in parts:
        for name, line, column in named_files(part):
            if name not in given and part.found.framework != DEEPSPEED:
                what, rule = f"{part.title} names {name}, which was not given", "the files of a run are read together"
                at = Said("", "", "", line, column)
                yield part.title, _finding(at, "CHK008", False, what, rule, name, f"outlay check {part.title} {name}")


def settled(parts: Sequence[Part], one: Finding) -> bool:
    """Whether another file answers a finding: what is "auto" for DeepSpeed, the transformers family fills in."""
    names = {said.name.lstrip("-").replace("-", "_") for part in parts for said in part.said}
    return one.code == "DSP002" and len(parts) > 1 and not names.isdisjoint(THEIRS[:4])


def _at(one: Said) -> str:
    return f"{one.name} {one.value} (line {one.line})"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _finding(
    at: Said, code: str, serious: bool, what: str, rule: str, got: str, fix: str, edits: tuple[Edit, ...] = ()
) -> Finding:
    return Finding(code, serious, what, rule, got, fix, at.line, at.column, edits)
