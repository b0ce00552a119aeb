"""Derivations: what a line prints, that its numbers give its value again, what is refused, and formulas on units."""

import functools
import os
import subprocess
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outlay.formula
import outlay.reading
from outlay.derivation import Step, check, explain, formulas, parts
from outlay.errors import FormulaError
from outlay.formula import ceil, divide, each, floor, maximum, minimum, sqrt, total, where
from outlay.quantities import Bandwidth, Bytes, Count, Flops, Params, Seconds, Share
from units import UNITS, UnitsError, evaluate, numbers_value, result_units, with_units

WORD_BYTES: Bytes = 2
SOURCE = Path(outlay.reading.__file__).parent

# --- formulas to read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chip:
    name: str = "chip"
    rate: Annotated[float, "FLOP/s"] = 1e12
    bandwidth: Annotated[float, "B/s"] = 3.35e12
    launch: float = 4e-6  # s
    usable: Annotated[float, "share"] = 0.8


@dataclass(frozen=True)
class Axes:
    tp: int = 8
    dp: int = 16
    zero: int = 1
    bandwidth: float = 50e9

    @property
    def ranks(self) -> Count:
        """All ranks of the run."""
        return self.tp * self.dp

    @functools.cached_property
    def others(self) -> Count:
        """Everyone else."""
        return self.ranks - 1


Sizes = dict[str, float]


@dataclass(frozen=True)
class Row:
    name: str

    def params(self, here: Sizes) -> Params:
        """What has no weights costs nothing."""
        return 0


@dataclass(frozen=True)
class Linear(Row):
    ins: str = "hidden"
    outs: str = "ffn"
    biased: bool = False

    def params(self, here: Sizes) -> Params:
        """Weights, and the bias."""
        return here[self.outs] * (here[self.ins] + self.biased)

    def flops(self, here: Sizes) -> Flops:
        """2 m n k."""
        return 2 * here["T"] * self.params(here)


def sizes(axes: Axes) -> Sizes:
    return {"T": 4096, "hidden": 8192, "ffn": 28672 / axes.tp, "one": 1}


def bubble(pp: Count, micro_batches: Count) -> Share:
    """Share of time that idles: (P - 1) / (M + P - 1). Exact for equal
    stages.

    Source: the staircase.
    """
    return (pp - 1) / (micro_batches + pp - 1)


def state(params: Params, axes: Axes) -> Bytes:
    """Weights and optimizer state."""
    weights: Bytes = WORD_BYTES * params / where(axes.zero >= 3, axes.dp, 1)
    optimizer: Bytes = 12 * params / where(axes.zero >= 1, axes.dp, 1)
    return total(weights=weights, optimizer=optimizer)


def exposed(pp: Count, slot: Seconds, tail: Seconds, hidden: Seconds) -> Seconds:
    """What a branch with a sum in it costs."""
    return slot * where(pp > 1, (pp - 1) * slot + tail - hidden, 0) / slot


def roofline(flops: Flops, moved: Bytes, chip: Chip) -> Seconds:
    """The slower of arithmetic and memory."""
    return maximum(arithmetic=flops / chip.rate, traffic=moved / chip.bandwidth) + chip.launch


def ring(buffer: Bytes, axes: Axes, chip: Chip) -> Seconds:
    """Two passes around the ring."""
    bandwidth: Bandwidth = minimum(link=axes.bandwidth, memory=chip.bandwidth * chip.usable)
    return 2 * divide(axes.others, axes.ranks) * buffer / bandwidth


def layer(rows: tuple[Row, ...], axes: Axes, here: Sizes) -> Params:
    """Parameters of a layer."""
    return total(each(Row.params, rows, here), extra=here["one"])


def stage(rows: tuple[Row, ...], axes: Axes, here: Sizes) -> Bytes:
    """The heavier of two stages."""
    params: Params = layer(rows, axes, here)
    first: Bytes = state(params, axes)
    last: Bytes = state(params + 1, axes)
    return maximum(first=first, last=last) + state(params, axes)


def tiles(rows: Count, cores: Count) -> Count:
    """Waves of tiles."""
    waves: Count = ceil(rows / 128) * ceil(rows / 256) / cores
    return floor(waves) + ceil(waves - floor(waves)) + sqrt(rows)


def remainder(of: Bytes, taken: Bytes, block: Bytes) -> Bytes:
    """What is left, in blocks."""
    return ceil(divide(of - taken, block)) * block + of % block


def net(a: Seconds, b: Seconds, c: Seconds) -> Seconds:
    """A difference of differences."""
    first: Seconds = a - b
    second: Seconds = -(b - c)
    return maximum(0, first - second) - minimum(a=a, b=first, c=second) / 3


def nested(a: Bytes, b: Bytes, n: Count) -> Bytes:
    """Totals inside a product and inside a total."""
    whole: Bytes = n * total(a=a, b=total(half=b / 2, rest=b - b / 3))
    return total(whole=whole, ratio=a * (total(a=a, b=b) / total(b=b, c=1)), less=-a)


def flags(a: Seconds, n: Count) -> Seconds:
    """A flag counts as 0 or 1."""
    return (n > 3) * a + where((n > 2) & (n < 5), a / 7, a * n) + where(n == 4, 2 * a, a - a / n)


def first_share(a: Share, b: Share) -> Share:
    """Shares of shares."""
    return (1 - a) * (1 - b) / (1 - a * b) - a**2


def messages(a: Bytes, rate: Bandwidth, n: Count) -> Seconds:
    """A latency for each, in place of a formula that is called with three things."""
    small: Seconds = roofline(0, a, Chip(bandwidth=1e9))
    large: Seconds = roofline(0, a * n, Chip(bandwidth=1e9))
    return a / rate * (n - 1) + large - small


def lines(step: Step) -> list[str]:
    return list(step.lines())


def flat(step: Step) -> Iterator[Step]:
    yield step
    for inner in step.steps:
        yield from flat(inner)


def printed_value(step: Step) -> float:
    return numbers_value(step.shown())


def assert_recomputable(step: Step) -> None:
    for inner in flat(step):
        again, shown = numbers_value(inner.numbers), printed_value(inner)
        assert again == pytest.approx(shown, rel=5e-4, abs=0), (inner.name, inner.numbers, inner.shown())
        assert shown == pytest.approx(inner.value, rel=5.1e-4, abs=0), (inner.name, inner.value, inner.shown())
    for line in step.lines():
        again, shown = evaluate(line)
        assert again == pytest.approx(shown, rel=5e-4, abs=0), line


# --- what a line prints ---------------------------------------------------------------------------------------------


def test_a_line_is_name_formula_numbers_value_and_sentence() -> None:
    assert lines(explain(bubble, 8, 32)) == [
        "bubble = (pp - 1) / (micro_batches + pp - 1) = (8 - 1) / (32 + 8 - 1) = 17.95 %"
        "  # Share of time that idles: (P - 1) / (M + P - 1)."
    ]


def test_only_the_branch_that_was_taken_is_printed_and_why() -> None:
    text = "\n".join(explain(state, 70e9, Axes()).lines())

    assert "2 B * 70 Gparam / 1 [zero < 3] = 140 GB" in text
    assert "12 * 70 Gparam / 16 [zero >= 1] = 52.5 GB" in text


def test_a_total_prints_its_parts_with_their_units_and_their_lines() -> None:
    step = explain(state, 70e9, Axes())

    assert step.numbers == "140 GB + 52.5 GB"
    assert [(inner.name, inner.value) for inner in step.steps] == [("weights", 140e9), ("optimizer", 52.5e9)]


def test_the_parts_of_a_total_inside_a_product_have_their_units_too() -> None:
    whole = explain(nested, 3e9, 6e9, 4).steps[0]

    assert (whole.formula, whole.numbers) == ("n * (a + b)", "4 * (3 GB + 7 GB)")
    assert list(whole.steps[0].lines()) == [
        "b = half + rest = 3 GB + 4 GB = 7 GB",
        "    half = b / 2 = 6 GB / 2 = 3 GB",
        "    rest = b - b / 3 = 6 GB - 6 GB / 3 = 4 GB",
    ]


def test_a_branch_with_a_sum_in_it_is_bracketed() -> None:
    step = explain(exposed, 16, 0.1, 0.12, 0.08)

    assert step.numbers == "100 ms * ((16 - 1) * 100 ms + 120 ms - 80 ms) [pp > 1] / 100 ms"
    assert_recomputable(step)


def test_the_largest_of_named_parts_is_named() -> None:
    step = explain(roofline, 1e9, 1e6, Chip())

    assert step.numbers == "maximum(1 ms, 298.5 ns) [arithmetic] + 4 us"
    assert [inner.name for inner in step.steps] == ["arithmetic", "traffic"]
    assert step.steps[0].numbers == "1 GFLOP / 1 TFLOP/s"


def test_a_local_with_the_name_of_a_field_keeps_the_owner_in_print() -> None:
    step = explain(ring, 14e9, Axes(), Chip())

    assert step.steps[0].formula == "minimum(link=axes.bandwidth, memory=chip.bandwidth * usable)"
    assert step.formula == "2 * divide(others, ranks) * buffer / bandwidth"


def test_fields_of_one_name_in_two_records_keep_their_owners() -> None:
    def slower(a: Axes, b: Axes) -> Bandwidth:
        """The slower link."""
        return minimum(a.bandwidth, b.bandwidth) * a.tp

    assert explain(slower, Axes(), Axes(bandwidth=1e9)).formula == "minimum(a.bandwidth, b.bandwidth) * tp"


def test_a_property_that_is_a_formula_has_a_line_of_its_own() -> None:
    step = explain(ring, 14e9, Axes(), Chip())

    others = next(inner for inner in step.steps if inner.name == "others")
    assert lines(others) == [
        "others = ranks - 1 = 128 - 1 = 127  # Everyone else.",
        "    ranks = tp * dp = 8 * 16 = 128  # All ranks of the run.",
    ]


def test_an_entry_prints_as_what_it_is_of_whatever_the_row_calls_it() -> None:
    step = explain(Linear.params, Linear("up"), sizes(Axes()))

    assert (step.formula, step.numbers) == ("ffn * (hidden + biased)", "3,584 * (8,192 + 0)")


def test_each_prints_a_line_a_row_and_a_row_answers_in_its_own_way() -> None:
    rows = (Linear("up"), Row("norm"), Linear("down", "ffn", "hidden", biased=True))

    step = explain(layer, rows, Axes(), sizes(Axes()))

    assert step.numbers == "29.36 Mparam + 29.37 Mparam + 1 param"
    assert [inner.name for inner in step.steps] == ["up", "norm", "down", "extra"]
    assert step.steps[1].sentence == "What has no weights costs nothing."


def test_a_formula_called_twice_on_the_same_inputs_is_printed_once() -> None:
    rows = (Linear("up"), Linear("down", "ffn", "hidden"))

    step = explain(stage, rows, Axes(), sizes(Axes()))

    assert [inner.name for inner in step.steps] == ["params", "first", "last"]
    assert step.formula == "maximum(first=first, last=last) + state(params)"
    assert step.steps[1].formula == "state(params) = weights + optimizer"
    assert step.steps[2].formula == "state(params + 1) = weights + optimizer"


def test_a_method_prints_like_a_function() -> None:
    linear = Linear("up")

    assert lines(explain(linear.flops, sizes(Axes()))) == lines(explain(Linear.flops, linear, sizes(Axes())))
    assert explain(linear.flops, sizes(Axes())).steps[0].name == "params"


def test_a_plain_function_may_be_called_for_a_record() -> None:
    def width(axes: Axes) -> Count:
        """A width."""
        return sizes(axes)["hidden"] / axes.tp

    assert explain(width, Axes()).formula == "hidden / tp"


def test_a_law_held_by_a_record_is_followed() -> None:
    @dataclass(frozen=True)
    class Law:
        idle: Callable[..., Any]

    def slots(law: Law, pp: Count) -> Count:
        """Slots that idle."""
        return 2 * law.idle(pp, 2 * pp)

    step = explain(slots, Law(bubble), 4)
    assert step.formula == "2 * idle"
    assert step.steps[0].name == "idle"
    assert step.steps[0].value == bubble(4, 8)


def test_the_name_may_be_given() -> None:
    assert explain(bubble, 8, 32, name="idle").name == "idle"
    assert explain(bubble, pp=8, micro_batches=32).value == explain(bubble, 8, 32).value


def test_numpy_scalars_print_like_numbers() -> None:
    axes = Axes(tp=np.int64(8), dp=np.float64(16), zero=np.array(1))

    assert lines(explain(state, np.float64(70e9), axes)) == lines(explain(state, 70e9, Axes()))
    assert type(explain(bubble, np.int64(8), np.float32(32)).value) is float


def test_negative_numbers_keep_their_brackets() -> None:
    def square(a: Count, b: Bytes) -> Bytes:
        """A square."""
        return (a**2 - -a) * b

    assert explain(square, -3, -4e9).numbers == "((-3) ** 2 - --3) * -4 GB"
    assert_recomputable(explain(square, -3, -4e9))


def test_a_condition_that_failed_prints_as_its_opposite() -> None:
    text = explain(flags, 1.0, 4).numbers

    assert "[(n > 2) & (n < 5)]" in text
    assert "[n == 4]" in text
    assert "[not (n > 2) & (n < 5)]" in explain(flags, 1.0, 9).numbers
    assert "[n != 4]" in explain(flags, 1.0, 9).numbers


def test_the_branch_not_taken_may_ask_for_what_is_not_there() -> None:
    def kept(row: Linear, here: Sizes) -> Bytes:
        """Nothing, where the row keeps nothing."""
        return where(row.biased, 2 * here["absent"], 0)

    assert explain(kept, Linear("up"), sizes(Axes())).numbers == "0 [not biased]"


def test_a_grid_is_refused_with_its_shape() -> None:
    with pytest.raises(FormulaError, match=r"bubble: a derivation is of one layout; got a grid of shape \(3,\)"):
        explain(bubble, np.array([2, 4, 8]), 32)


# --- printed numbers give the value again ---------------------------------------------------------------------------

amounts = st.one_of(st.integers(0, 10**13), st.floats(0, 1e13, allow_subnormal=False))
times = st.floats(1e-6, 1e3)
counts = st.integers(1, 10**6)
shares = st.floats(0, 0.9999)
axes = st.builds(Axes, counts, counts, st.integers(0, 3), st.floats(1e6, 1e12))
chips = st.builds(Chip, st.just("chip"), st.floats(1e6, 1e16), st.floats(1e6, 1e13), times, st.floats(0.01, 1))
entries = st.fixed_dictionaries(dict.fromkeys(sizes(Axes()), counts))
names = st.sampled_from(sorted(sizes(Axes())))
linears = st.builds(Linear, st.just("up"), names, names, st.booleans())
row_lists = linears.map(lambda row: (row, Row("norm"), Linear("down", row.outs, row.ins)))
near = st.tuples(amounts, st.floats(-1e-6, 1e-6)).map(lambda pair: (pair[0], pair[0] * (1 + pair[1])))

CASES: dict[str, tuple[Callable[..., Any], st.SearchStrategy[tuple[Any, ...]]]] = {
    "bubble": (bubble, st.tuples(counts, counts)),
    "state": (state, st.tuples(amounts, axes)),
    "exposed": (exposed, st.tuples(counts, times, times, times)),
    "roofline": (roofline, st.tuples(amounts, amounts, chips)),
    "ring": (ring, st.tuples(amounts, axes, chips)),
    "layer": (layer, st.tuples(row_lists, axes, entries)),
    "stage": (stage, st.tuples(row_lists, axes, entries)),
    "tiles": (tiles, st.tuples(counts, counts)),
    "remainder": (remainder, st.tuples(amounts, amounts, st.integers(1, 10**6))),
    "remainder_of_near_numbers": (remainder, near.map(lambda pair: (*pair, 512))),
    "net": (net, st.tuples(times, times, times)),
    "net_of_near_numbers": (net, near.map(lambda pair: (*pair, pair[0]))),
    "nested": (nested, st.tuples(amounts, amounts, counts)),
    "flags": (flags, st.tuples(times, st.integers(1, 9))),
    "shares": (first_share, st.tuples(shares, shares)),
    "messages": (messages, st.tuples(amounts, st.floats(1e6, 1e12), counts)),
    "flops": (Linear.flops, st.tuples(linears, entries)),
}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_every_printed_line_gives_its_value_again(case: str, data: st.DataObject) -> None:
    formula, inputs = CASES[case]
    given_inputs = data.draw(inputs)

    step = explain(formula, *given_inputs)

    assert_recomputable(step)
    assert step.value == pytest.approx(formula(*given_inputs), rel=1e-12, abs=0)


def test_most_lines_need_four_digits_and_no_more() -> None:
    examples = [explain(state, 70e9, Axes()), explain(ring, 14e9, Axes(), Chip()), explain(nested, 3e9, 7e9, 4)]

    assert {step.digits for example in examples for step in flat(example)} == {4}


def test_a_difference_of_near_numbers_gets_the_digits_that_it_needs() -> None:
    def left(capacity: Bytes, peak: Bytes) -> Bytes:
        """What is free."""
        return capacity - peak

    assert explain(left, 80_000_000_000, 79_990_000_000).numbers == "80 GB - 79.99 GB"
    assert explain(left, 80_000_000_000, 79_999_000_000).numbers == "80 GB - 79.999 GB"
    assert explain(left, 80_000_000_001, 80_000_000_000).numbers == "80.000000001 GB - 80 GB"


def test_the_judge_finds_a_wrong_bracket_a_lost_prefix_and_a_lost_digit() -> None:
    assert evaluate("x = a = 100 ms * (16 - 1) * 100 ms + 120 ms = 1.54 s")[0] != pytest.approx(1.54, rel=5e-4)
    assert evaluate("x = a = 2 * 12.5 GB = 25 MB  # Twice = two times.") == (25e9, 25e6)
    assert evaluate("    x = a = 80 GB - 79.99 GB [n > 3] = 1 MB") == (pytest.approx(1e7), 1e6)
    assert evaluate("x = a = 50 % * ceil(1,536 / 132) = 6") == (6, 6)
    assert evaluate("x = here = 3 GB") == (3e9, 3e9)


# --- parts ----------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_total_are_named_and_add_up() -> None:
    found = parts(state, 70e9, Axes())

    assert found == {"weights": 140e9, "optimizer": 52.5e9}
    assert sum(found.values()) == state(70e9, Axes())


def test_the_parts_of_rows_are_the_rows_and_what_is_named_beside_them() -> None:
    rows = (Linear("up"), Row("norm"))

    found = parts(layer, rows, Axes(), sizes(Axes()))

    assert found == {"up": 8192 * 3584, "norm": 0, "extra": 1}


def test_the_parts_are_not_flattened() -> None:
    assert list(parts(nested, 3, 7, 4)) == ["whole", "ratio", "less"]


def test_what_is_no_total_has_one_part() -> None:
    assert parts(bubble, 8, 32) == {"bubble": 7 / 39}
    assert parts(Linear("up").params, sizes(Axes())) == {"params": 8192 * 3584}
    assert parts(bubble, pp=8, micro_batches=32) == {"bubble": 7 / 39}


def test_two_parts_of_one_name_are_refused_because_one_would_be_lost() -> None:
    with pytest.raises(FormulaError, match="two parts named 'extra'"):
        parts(layer, (Row("extra"),), Axes(), sizes(Axes()))


def test_the_parts_of_a_formula_that_closes_over_a_name_are_read_too() -> None:
    factor = 3

    def tripled(a: Bytes, *, b: Bytes = 2) -> Bytes:
        """Three times."""
        return total(a=factor * a, b=b)

    assert parts(tripled, 5) == {"a": 15, "b": 2}
    assert parts(tripled, 5, b=4) == {"a": 15, "b": 4}


# --- what is refused ------------------------------------------------------------------------------------------------


def plain_assignment(a: Bytes) -> Bytes:
    """A plain b = a."""
    b = a
    return b  # noqa: RET504


def pair_assignment(a: Bytes) -> Bytes:
    """Two at once."""
    b, c = a, a
    return b + c


def augmented(a: Bytes) -> Bytes:
    """Added to itself."""
    b: Bytes = a
    b += a
    return b


def loop(a: Bytes) -> Bytes:
    """A loop."""
    for _ in range(3):
        a = 2 * a
    return a


def branch(a: Bytes) -> Bytes:
    """A branch."""
    if a:
        return a
    return 0


def second_return(a: Bytes) -> Bytes:
    """Two returns."""
    return a
    return 2 * a


def no_return(a: Bytes) -> Bytes:  # type: ignore[return]
    """No return."""
    b: Bytes = a  # noqa: F841


def no_docstring(a: Bytes) -> Bytes:
    return a


def choice(a: Bytes) -> Bytes:
    """A choice."""
    return a if a > 0 else 0


def conjunction(a: Bytes) -> Bytes:
    """And."""
    return where(a > 0 and a < 5, a, 0)


def negation(a: Bytes) -> Bytes:
    """Not."""
    return where(not a, a, 0)


def chain(a: Bytes) -> Bytes:
    """Two comparisons at once."""
    return where(0 < a < 5, a, 0)


def comprehension(a: tuple[Bytes, ...]) -> Bytes:
    """A hidden loop."""
    return sum(x for x in a)


def no_quantity(a: Bytes) -> Bytes:
    """A local that is no quantity."""
    b: float = a
    return b


def bare_annotation(a: Bytes) -> Bytes:
    """A name without a value."""
    b: Bytes  # noqa: F842
    return a


def given_twice(a: Bytes) -> Bytes:
    """An input given a new value."""
    a: Bytes = 2 * a  # type: ignore[no-redef]
    return a


def returns_a_float(a: Bytes) -> float:
    """No quantity comes out."""
    return a


REFUSED = {
    plain_assignment: "annotated assignment; got `b = a`",
    pair_assignment: "annotated assignment; got `b, c = (a, a)`",
    augmented: "annotated assignment; got `b += a`",
    loop: "annotated assignment; got `for _ in range(3):`",
    branch: "annotated assignment; got `if a:`",
    second_return: "one return, at the end; got `return a`",
    no_return: "one return of a quantity, at the end",
    no_docstring: "a docstring says what is counted",
    choice: "a choice is where(condition, yes, no)",
    conjunction: "conditions are joined by & and |",
    negation: "a condition is a comparison",
    chain: "one comparison at a time",
    comprehension: "a loop over rows is each(formula, rows, ..)",
    no_quantity: "an assignment is annotated with a quantity; got `b: float = a`",
    bare_annotation: "annotated assignment; got `b: Bytes`",
    given_twice: "a name is given once, and 'a' is taken",
    returns_a_float: "the return is annotated with a quantity",
}


@pytest.mark.parametrize("formula", REFUSED, ids=lambda formula: formula.__name__)
def test_what_is_no_straight_line_is_refused_with_the_formula_the_line_and_the_rule(
    formula: Callable[..., Any],
) -> None:
    first = formula.__code__.co_firstlineno

    for reader in (check, lambda one: explain(one, 1), lambda one: parts(one, 1)):
        with pytest.raises(FormulaError) as caught:
            reader(formula)
        assert REFUSED[formula] in str(caught.value)
        assert f"{formula.__name__} ({__file__}, line " in str(caught.value)
        line = int(str(caught.value).split("line ")[1].split(")")[0])
        assert first <= line <= first + 5


@pytest.mark.parametrize("case", CASES)
def test_a_straight_line_is_accepted(case: str) -> None:
    check(CASES[case][0])


def test_a_formula_without_source_is_refused() -> None:
    scope: dict[str, Any] = {"Bytes": Bytes}
    exec("def hidden(a: Bytes) -> Bytes:\n    'A.'\n    return a\n", scope)  # noqa: S102

    with pytest.raises(FormulaError, match=r"hidden .*: the source of a formula can be read"):
        check(scope["hidden"])


def test_the_formulas_of_a_module_are_its_functions_methods_and_properties() -> None:
    found = [formula.__qualname__ for formula in formulas(sys.modules[__name__])]

    assert {"bubble", "Linear.params", "Linear.flops", "Row.params", "Axes.ranks", "Axes.others"} <= set(found)
    assert not {"sizes", "lines", "returns_a_float", "total", "Chip"} & set(found)
    assert len(found) == len(set(found))


def test_a_module_does_not_list_what_it_imports() -> None:
    module = types.ModuleType("elsewhere")
    module.bubble = bubble  # type: ignore[attr-defined]

    assert formulas(module) == []


# --- where it runs, and how fast ------------------------------------------------------------------------------------

SAMPLE = '''
from outlay.formula import total
from outlay.quantities import Bytes


def twice(a: Bytes) -> Bytes:
    """Two of a."""
    b: Bytes = 2 * a
    return total(b=b, more=a)
'''


@pytest.mark.parametrize("flag", ["-B", "-O", "-OO"])
def test_a_package_in_an_archive_explains_itself_optimised_or_not(tmp_path: Path, flag: str) -> None:
    archive = tmp_path / "installed.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("outlay/__init__.py", "")
        zipped.writestr("sample.py", SAMPLE)
        for name in ("errors", "quantities", "formula", "reading", "wording", "derivation"):
            zipped.write(SOURCE / f"{name}.py", f"outlay/{name}.py")
    program = "import sample\nfrom outlay.derivation import explain, parts\n"
    program += "print(*explain(sample.twice, 4).lines(), parts(sample.twice, 4), sep='\\n')"

    run = subprocess.run(
        [sys.executable, flag, "-c", program],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stdout.splitlines() == [
        "twice = b + more = 8 B + 4 B = 12 B  # Two of a.",
        "    b = 2 * a = 2 * 4 B = 8 B",
        "    more = a = 4 B",
        "{'b': 8, 'more': 4}",
    ], run.stderr


def best_seconds(work: Callable[[], object], times: int) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(times))


def test_parts_are_compiled_once_and_cost_little_more_than_the_formula() -> None:
    assert best_seconds(lambda: parts(state, 70e9, Axes()), 50) < 2e-4


def wide(rows: tuple[Row, ...], here: Sizes) -> Params:
    """A layer of many rows, counted in two ways."""
    plain: Params = total(each(Row.params, rows, here))
    return total(plain=plain, more=total(each(Row.params, rows, dict(here))))


def test_a_derivation_of_a_hundred_lines_takes_tens_of_milliseconds() -> None:
    rows = tuple(Linear(f"row{place}") for place in range(50))

    assert len(lines(explain(wide, rows, sizes(Axes())))) > 100
    assert best_seconds(lambda: explain(wide, rows, sizes(Axes())), 5) < 0.1


# --- formulas on units ----------------------------------------------------------------------------------------------


def bare_bytes(params: Params) -> Bytes:
    """Two what?"""
    return 2 * params


def bare_local(params: Params, rate: Bandwidth) -> Seconds:
    """A local that is no bytes, though the result may well be right."""
    weights: Bytes = 2 * params
    return weights * WORD_BYTES / WORD_BYTES / rate


def flops_for_bytes(moved: Bytes, chip: Chip) -> Seconds:
    """FLOP/s used as B/s."""
    return moved / chip.rate


def mixed_sum(moved: Bytes, flops: Flops) -> Bytes:
    """Bytes and FLOPs in one total."""
    return total(moved=moved, flops=flops)


def mixed_branch(moved: Bytes, flops: Flops) -> Bytes:
    """Bytes here, FLOPs there, where nobody looks."""
    return where(moved > 0, moved, flops)


def mixed_maximum(moved: Bytes, wait: Seconds) -> Bytes:
    """The larger of two unlike things."""
    return maximum(moved=moved, wait=wait)


def rounded_bytes(moved: Bytes) -> Bytes:
    """Rounded in a unit that nobody chose."""
    return ceil(moved)


def through_a_formula(moved: Bytes, chip: Chip) -> Seconds:
    """A fault one call down."""
    return flops_for_bytes(moved, chip) + chip.launch


def paged(moved: Bytes, page: Bytes) -> Bytes:
    """Whole pages."""
    return ceil(moved / page) * page


PLANTED: dict[Callable[..., Any], tuple[Any, ...]] = {
    bare_bytes: (7e9,),
    bare_local: (7e9, 1e9),
    flops_for_bytes: (1e9, Chip()),
    mixed_sum: (1e9, 1e9),
    mixed_branch: (1e9, 1e9),
    mixed_maximum: (1e9, 1.0),
    rounded_bytes: (1e9,),
    through_a_formula: (1e9, with_units(Chip(), {"launch": "s"})),
}


@pytest.mark.parametrize("formula", PLANTED, ids=lambda formula: formula.__name__)
def test_a_planted_fault_of_units_is_found(formula: Callable[..., Any]) -> None:
    with pytest.raises(UnitsError, match=formula.__name__):
        result_units(formula, *PLANTED[formula])


def test_a_formula_right_in_its_units_passes() -> None:
    chip = with_units(Chip(), {"launch": "s"})
    linked = with_units(Axes(), {"bandwidth": "B/s"})

    right = (
        (roofline, 1e9, 1e6, chip), (ring, 14e9, linked, chip), (bubble, 8, 32), (paged, 1e9, 4096),
        (exposed, 16, 0.1, 0.12, 0.08), (layer, (Linear("up"), Row("norm")), Axes(), sizes(Axes())),
        (Linear("up").params, sizes(Axes())),
    )  # fmt: skip
    assert [result_units(*each) for each in right] == [None] * len(right)  # else it raises
    result_units(Axes.ranks, Axes())


def test_a_field_without_its_unit_is_found() -> None:
    with pytest.raises(UnitsError, match="roofline"):
        result_units(roofline, 1e9, 1e6, Chip())


def test_a_copy_with_units_leaves_the_record_as_it_was() -> None:
    @dataclass(frozen=True, slots=True)
    class Node:
        chip: Chip
        ranks: int = 8

    node = Node(Chip())
    dressed = with_units(node, {"chip.launch": "s", "chip.rate": "FLOP/s"})

    assert dressed.chip.launch == UNITS.Quantity(4e-6, "s")
    assert dressed.chip.rate.dimensionality == UNITS.Quantity(1, "FLOP/s").dimensionality
    assert (node.chip.launch, dressed.ranks) == (4e-6, 8)


def test_the_words_are_put_back_after_a_fault() -> None:
    with pytest.raises(UnitsError):
        result_units(mixed_sum, 1e9, 1e9)

    assert total(a=1, b=2) == 3
    assert total is outlay.formula.total
