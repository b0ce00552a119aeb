"""The words of a formula: the same on numbers, where counts stay exact, and on grids, which are float64 throughout."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.errors import FormulaError
from outlay.formula import WORDS, Stacked, ceil, divide, each, floor, kept, maximum, minimum, of_row, sqrt, total, where

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e12, 1e12, allow_subnormal=False))
positive = st.one_of(st.integers(0, 10**9), st.floats(0, 1e12, allow_subnormal=False))
lists = st.lists(st.tuples(numbers, numbers, st.booleans()), min_size=1, max_size=8)

PAIRS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ceil": lambda a, b, c: ceil(a),
    "floor": lambda a, b, c: floor(a),
    "sqrt": lambda a, b, c: sqrt(abs(a)),
    "where": lambda a, b, c: where(c, a, b),
    "where_of_numbers": lambda a, b, c: where(c, 1, 0),
    "divide": lambda a, b, c: divide(a, b),
    "divide_by_nothing": lambda a, b, c: divide(a, where(c, b, 0)),
    "maximum": lambda a, b, c: maximum(a, b, c=3),
    "maximum_of_a_mapping": lambda a, b, c: maximum({"a": a, "b": b}, c=3),
    "minimum": lambda a, b, c: minimum(a=a, b=b),
    "total": lambda a, b, c: total({"a": a}, b=b, c=7),
}


@dataclass(frozen=True)
class Row:
    name: str
    width: int

    def weight(self, factor: float) -> float:
        return factor * self.width


@dataclass(frozen=True)
class Heavy(Row):
    def weight(self, factor: float) -> float:
        return 10 * factor * self.width


def is_python(value: object) -> bool:
    return type(value) in (int, float)


# --- scalars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", PAIRS)
@given(a=numbers, b=numbers, c=st.booleans())
def test_a_word_on_numbers_gives_a_python_number(word: str, a: float, b: float, c: bool) -> None:
    assert is_python(PAIRS[word](a, b, c))


@pytest.mark.parametrize("word", PAIRS)
@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32])
def test_a_word_on_numpy_scalars_gives_a_python_number(word: str, kind: type) -> None:
    value = PAIRS[word](kind(7), kind(2), np.bool_(True))

    assert is_python(value)
    assert json.dumps(value)


@given(parts=st.lists(st.integers(2**62, 2**80), min_size=1, max_size=5))
def test_a_total_of_whole_numbers_is_exact_beyond_64_bits(parts: list[int]) -> None:
    assert total(dict(zip("abcde", parts, strict=False))) == sum(parts)


def test_a_total_of_numpy_integers_does_not_overflow() -> None:
    assert total(a=np.int64(2**62), b=np.int64(2**62), c=np.int64(2**62)) == 3 * 2**62


def test_a_total_of_nothing_is_zero() -> None:
    assert total() == 0
    assert total({}) == 0


@given(whole=st.integers(2**53, 2**70))
def test_the_larger_of_two_large_whole_numbers_is_exact(whole: int) -> None:
    assert maximum(whole, whole + 1) == whole + 1
    assert minimum(first=whole + 1, second=whole) == whole
    assert where(True, whole, 0) == whole


def test_a_quotient_by_zero_is_zero_and_not_an_error() -> None:
    assert divide(5, 0) == 0
    assert divide(0, 0) == 0
    assert divide(5, 2) == 2.5


# --- grids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", PAIRS)
@given(cells=lists)
def test_a_grid_holds_what_each_number_alone_gives(word: str, cells: list[tuple[float, float, bool]]) -> None:
    a, b = (np.array([cell[place] for cell in cells], dtype=np.float64) for place in (0, 1))
    c = np.array([cell[2] for cell in cells])

    grid = PAIRS[word](a, b, c)

    alone = [PAIRS[word](float(a[i]), float(b[i]), bool(c[i])) for i in range(len(cells))]
    np.testing.assert_array_equal(np.broadcast_to(grid, a.shape), np.array(alone, dtype=np.float64))


@pytest.mark.parametrize("word", PAIRS)
def test_a_grid_is_float64_throughout(word: str) -> None:
    a, b, c = np.array([1.0, 2.0]), np.array([[0.0], [3.0]]), np.array([True, False])

    assert PAIRS[word](a, b, c).dtype == np.float64


@given(cells=lists)
def test_maximum_and_minimum_are_those_of_numpy(cells: list[tuple[float, float, bool]]) -> None:
    a, b = (np.array([cell[place] for cell in cells], dtype=np.float64) for place in (0, 1))

    np.testing.assert_array_equal(maximum(a, b), np.maximum(a, b))
    np.testing.assert_array_equal(minimum(a, b), np.minimum(a, b))


def test_axes_of_length_one_stay_so_until_they_meet() -> None:
    rows, options = np.ones((3, 1)), np.ones((1, 2))

    assert total(a=rows, b=1).shape == (3, 1)
    assert maximum(rows, options).shape == (3, 2)
    assert divide(rows, 0).shape == (3, 1)


def test_a_grid_is_divided_where_the_divisor_is_there_and_says_nothing_where_it_is_not() -> None:
    np.testing.assert_array_equal(divide(np.array([6.0, 6.0]), np.array([3.0, 0.0])), [2.0, 0.0])
    np.testing.assert_array_equal(divide(6, np.array([3.0, 0.0])), [2.0, 0.0])


# --- rows -----------------------------------------------------------------------------------------------------------


def test_each_row_answers_in_its_own_way() -> None:
    rows = (Row("light", 2), Heavy("heavy", 2))

    assert each(Row.weight, rows, 3) == {"light": 6, "heavy": 60}
    assert of_row(Row.weight, Heavy) is Heavy.weight


def test_a_plain_formula_serves_rows_that_have_no_such_method() -> None:
    def half(row: Row, factor: float) -> float:
        return factor * row.width / 2

    assert each(half, (Row("light", 2),), 3) == {"light": 3.0}


def test_two_rows_of_one_name_are_refused_because_one_would_be_lost() -> None:
    with pytest.raises(FormulaError, match="two rows are named 'norm'"):
        each(Row.weight, (Row("norm", 2), Row("norm", 3)), 1)


@dataclass(frozen=True)
class Several:
    """One row that stands for two, of three columns."""

    name: str
    height: Any

    def tall(self, more: Any) -> Any:
        """What differs, through a word that is asked of this row alone."""
        return total(each(Several.own, (self,), more))

    def own(self, more: Any) -> Any:
        """The same."""
        return self.height + more

    def same(self, more: Any) -> Any:
        """What does not differ."""
        return more


def test_rows_that_are_stacked_answer_at_once_and_one_by_one() -> None:
    height, more = np.asarray([[1.0], [5.0]]), np.asarray([1.0, 2.0, 3.0])
    rows = Stacked([Several("row", height)])
    rows.axes = 2
    apart = each(Several.tall, rows, more)

    assert {name: value.tolist() for name, value in apart.items()} == {"row 0": [2, 3, 4], "row 1": [6, 7, 8]}
    assert maximum(apart).tolist() == [6, 7, 8]
    assert each(Several.same, rows, more) == {"row": more}
    assert each(Several.same, rows, 7) == {"row": 7}


def test_every_word_says_what_it_means() -> None:
    assert all(word.__doc__ for word in WORDS)


# --- answers that are kept ------------------------------------------------------------------------------------------


def test_a_kept_answer_is_of_its_record_and_its_inputs_and_an_array_is_answered_anew() -> None:
    asked: list[Any] = []

    class Shelf:
        def __init__(self, width: int) -> None:
            self.width = width

        @kept
        def holds(self, books: Any) -> Any:
            asked.append(books)
            return self.width * books

    one, other = Shelf(2), Shelf(3)
    assert [one.holds(5), one.holds(5), other.holds(5), one.holds(5.0)] == [10, 10, 15, 10.0]
    assert asked == [5, 5, 5.0] and isinstance(one.holds(5), int) and isinstance(one.holds(5.0), float)

    np.testing.assert_array_equal(one.holds(np.array([1.0, 2.0])), [2.0, 4.0])
    np.testing.assert_array_equal(one.holds(np.array([1.0, 3.0])), [2.0, 6.0])
