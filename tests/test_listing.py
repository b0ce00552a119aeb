"""An order as text: written, read back, and refused with the passes that are wrong."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.errors import Fault, InputError
from outlay.schedule.checks import passes, waiting_for_ever
from outlay.schedule.listing import from_csv, to_csv
from outlay.schedule.orders import order
from outlay.schedule.passes import Order
from test_orders import legal

ONE_F_ONE_B = "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"


def refused(text: str, copies: int = 1) -> tuple[Fault, ...]:
    """The faults of a listing that must be refused; each has its four parts and a code."""
    with pytest.raises(InputError) as caught:
        from_csv(text, copies=copies)
    assert all(each.code.startswith("ORD") for each in caught.value.faults)
    assert all(all((each.what, each.rule, each.got, each.fix)) for each in caught.value.faults)
    return caught.value.faults


def codes(text: str, copies: int = 1) -> list[str]:
    return [each.code for each in refused(text, copies)]


# --- there and back -------------------------------------------------------------------------------------------------


def test_an_order_is_read_back_as_it_was_written() -> None:
    for of in legal(4, 12):
        again = from_csv(to_csv(of), of.name, of.copies)

        assert (again.ranks, again.stages, again.micro_batches) == (of.ranks, of.stages, of.micro_batches)
        assert [again.rank_of(stage) for stage in range(of.stages)] == [of.rank_of(s) for s in range(of.stages)]


def test_the_text_is_that_of_pytorch() -> None:
    assert to_csv(order("1f1b", 2, 3)) == ONE_F_ONE_B
    assert ",(0F7;7B3)OVERLAP_F_B," in to_csv(order("dualpipe_v", 4, 8, 2))


def test_padding_blanks_quotes_and_empty_lines_at_the_end_are_left_out() -> None:
    padded = "\ufeff" + ONE_F_ONE_B.replace("0B0", ' ,, "0B0" ').replace("\n", ",,\r\n") + "\r\n,,\n"

    assert from_csv(padded).ranks == from_csv(ONE_F_ONE_B).ranks == order("1f1b", 2, 3).ranks


# --- cells and numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    ["0G0", "F0", "0F", "0f0", "0F0 0F1", "-1F0", "0REDUCE_GRAD", "1SEND_F0", "(0F0)OVERLAP_F_B", "٣F0", "0F0;",
     "(0B0;0F1)OVERLAP_F_B", "(0F0;0W1)OVERLAP_F_B", "(0F0;1B0)", "99999999F0", "x" * 999, "\0"],
)  # fmt: skip
def test_a_cell_that_is_no_action_is_refused(cell: str) -> None:
    (fault,) = refused(ONE_F_ONE_B.replace("1F1", cell))

    assert fault.code == "ORD001"
    assert "rank 1" in fault.got and len(fault.got) < 100 and fault.got.isprintable()


@pytest.mark.parametrize("text", ["", " \n\n", ",,\n,,", "\ufeff"])
def test_an_empty_listing_is_refused(text: str) -> None:
    assert codes(text) == ["ORD007"]


def test_numbers_that_do_not_add_up_are_said_together() -> None:
    (fault,) = refused("0F0,0B0,3F0,3B0\n\n3F7,3B7\n")

    assert fault.code == "ORD002"
    assert fault.got == "rank 1 does nothing, stage 3 on ranks 0, 2, stage 3 without stage 1 and 1 more"
    assert codes("0F0,0B0\n1F9999999,1B9999999") == codes("9999999F0,9999999B0") == ["ORD002"]
    assert codes(ONE_F_ONE_B, copies=0) == codes("0F0,0B0", copies=2) == ["ORD002"]


# --- passes ---------------------------------------------------------------------------------------------------------


def test_a_missing_pass_and_a_pass_done_twice_are_named_together() -> None:
    found = refused(ONE_F_ONE_B.replace("1B1", "1F0"))

    assert [(each.code, each.got) for each in found] == [("ORD003", "1B1"), ("ORD004", "1F0")]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ("1B0", "1I0", [("ORD003", "1W0")]),
        ("1B0", "1W0", [("ORD003", "1I0")]),
        ("1B0", "1I0,1B0", [("ORD003", "1W0"), ("ORD004", "1B0")]),
        ("1B0", "1I0,1W0,1W0", [("ORD004", "1W0")]),
        ("1B0", "1W0,1I0", [("ORD005", "1W0 before 1I0")]),
        ("1F0,1B0", "1B0,1F0", [("ORD005", "1B0 before 1F0")]),
        ("1F0,1B0", "(1F0;1B0)OVERLAP_F_B", [("ORD005", "1B0 before 1F0")]),
    ],
)
def test_a_planted_fault_is_named(was: str, now: str, expected: list[tuple[str, str]]) -> None:
    assert [(each.code, each.got) for each in refused(ONE_F_ONE_B.replace(was, now))] == expected


def test_of_many_faults_the_first_are_shown() -> None:
    (fault,) = refused("0F0\n1F0\n2F0\n3F0\n4F0")

    assert fault.got == "0B0, 1B0, 2B0 and 2 more"


def test_a_model_that_is_held_twice_is_read_as_such() -> None:
    """As one model of twice the stages, each micro-batch would lack half of its way."""
    text = to_csv(order("dualpipe", 4, 8))

    assert from_csv(text, copies=2).depth == 4
    assert codes(text) == ["ORD003"]


# --- waiting --------------------------------------------------------------------------------------------------------


def test_two_ranks_that_wait_for_each_other_are_named() -> None:
    (fault,) = refused("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")

    assert fault.code == "ORD006"
    assert fault.got == "0B0 on rank 0 waits for 1B0, 1F1 on rank 1 waits for 0F1"
    assert fault.fix == "on rank 0, do 0F1 before 0B0"
    assert from_csv("0F0,0F1,0B0,0B1\n1F1,1B1,1F0,1B0\n").micro_batches == 2  # as the fix says


def test_a_rank_that_waits_for_itself_is_named() -> None:
    (fault,) = refused("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0".replace("0F0,3F0", "3F0,0F0"))

    assert fault.code == "ORD006"
    assert "3F0 on rank 0 waits for 2F0" in fault.got


def test_pytorchs_own_listing_of_1f1b_is_refused() -> None:
    """Its last rank begins with micro-batch 1: PyTorch's loader refuses it as well."""
    text = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F1,1B0,1F2,1B1,1F3,1B2,1F4,1B3\n"

    assert codes(text) == ["ORD003"]


# --- any listing ----------------------------------------------------------------------------------------------------


def runs(of: Order) -> bool:
    """Whether every pass comes to its turn, found by trying all ranks again and again."""
    given, at, moved = set(), [0] * len(of.ranks), True
    while moved:
        moved = False
        for rank, row in enumerate(of.ranks):
            while at[rank] < len(row):
                needs = []
                for kind, stage, m in passes(row[at[rank]]):
                    needs += [("F", stage - 1, m)] if kind == "F" and stage % of.depth else []
                    needs += [("B", stage + 1, m)] if kind in "BI" and (stage + 1) % of.depth else []
                if not given.issuperset(needs):
                    break
                given |= {("B" if k == "I" else k, stage, m) for k, stage, m in passes(row[at[rank]]) if k != "W"}
                at[rank] += 1
                moved = True
    return at == [len(row) for row in of.ranks]


ORDERS = [of for of in legal(4, 8) if len(of.ranks) > 1]


@given(st.sampled_from(ORDERS), st.data())
def test_a_listing_whose_cells_are_moved_is_read_where_it_can_run_and_refused_where_not(
    of: Order, data: st.DataObject
) -> None:
    rows = [list(row) for row in of.ranks]
    for _ in range(data.draw(st.integers(1, 3))):
        row = rows[data.draw(st.integers(0, len(rows) - 1))]
        row.insert(data.draw(st.integers(0, len(row) - 1)), row.pop(data.draw(st.integers(0, len(row) - 1))))
    moved = Order(of.name, tuple(map(tuple, rows)), of.stages, of.micro_batches, of.rank_of, of.copies)
    try:
        from_csv(to_csv(moved), copies=of.copies)
    except InputError as error:
        found = [each.code for each in error.faults]
        assert found in (["ORD005"], ["ORD006"])
        assert found == ["ORD005"] or not runs(moved)
    else:
        assert runs(moved)
        assert waiting_for_ever(moved) == []


@given(st.sampled_from(ORDERS), st.data())
def test_a_listing_without_one_of_its_cells_or_with_one_twice_is_refused(of: Order, data: st.DataObject) -> None:
    rows = [list(row) for row in of.ranks]
    row = rows[data.draw(st.integers(0, len(rows) - 1))]
    at = data.draw(st.integers(0, len(row) - 1))
    gone = data.draw(st.booleans())
    row[at : at + 1] = [] if gone else [row[at], row[at]]
    text = to_csv(Order(of.name, tuple(map(tuple, rows)), of.stages, of.micro_batches, of.rank_of))

    assert codes(text, of.copies)[0] in (("ORD002", "ORD003") if gone else ("ORD004",))


@given(st.text(st.sampled_from("0123FBIW,;()\n OVERLAP_"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        assert from_csv(text).ranks
