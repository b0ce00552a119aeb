"""Orders against PyTorch's own: operation by operation what it lists, runs and loads, and what it refuses."""

from collections.abc import Iterator
from itertools import product

import pytest

from outlay.errors import InputError
from outlay.schedule.listing import from_csv, to_csv
from outlay.schedule.orders import facts, names, order, rounds
from outlay.schedule.passes import Order
from outlay.schedule.synthesis.best import best, problem_of
from outlay.schedule.times import Times
from outlay.verify.comparisons.schedule import LISTS, executed, listed, loaded, written
from test_orders import listings

PP, MICRO_BATCHES = (2, 4, 8), (1, 2, 3, 4, 6, 7, 8, 10, 12, 15, 16, 17, 24)


def asked(name: str, pp: int, micro_batches: int, vpp: int) -> Order:
    """The order as PyTorch asks for it: interleaved groups by its rounds."""
    return order(name, pp, micro_batches, vpp, rounds(pp, micro_batches) if name == "interleaved" else 0)


def cases() -> Iterator[tuple[str, str, int, int, int]]:
    for (name, title), pp, micro_batches in product(LISTS.items(), PP, MICRO_BATCHES):
        for vpp in {"one": (1,), "two": (2,)}.get(facts(name).chunks, (2, 3)):
            yield title, name, pp, micro_batches, vpp


def test_an_order_is_pytorchs_operation_by_operation_or_both_refuse() -> None:
    """The exceptions are said: the last rank of 1F1B is compared below, and 1F1B there asks for M >= P."""
    same, refused = 0, 0
    for title, name, pp, micro_batches, vpp in cases():
        try:
            theirs = listed(title, pp, micro_batches, vpp)
        except ValueError:
            refused += 1
            assert (name == "1f1b" and micro_batches < pp) or not legal(name, pp, micro_batches, vpp)
            continue
        ours = written(asked(name, pp, micro_batches, vpp))
        ranks = pp - 1 if name == "1f1b" else pp
        same += 1

        assert ours[:ranks] == theirs[:ranks]

    assert same > 250 and refused > 30


def legal(name: str, pp: int, micro_batches: int, vpp: int) -> bool:
    try:
        return bool(asked(name, pp, micro_batches, vpp))
    except InputError:
        return False


def test_the_listings_that_are_kept_are_todays() -> None:
    for name, title in LISTS.items():
        rows = listed(title, 4, 8, 1 if facts(name).chunks == "one" else 2)
        kept = [row.replace(")", ")OVERLAP_F_B").split(" ") for row in listings()[title]]

        assert kept[:3] == rows[:3]
        assert (kept[3] == rows[3]) == (title != "1F1B")


# --- the last rank of 1F1B ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pp", PP)
def test_1f1b_is_what_pytorch_runs_on_every_rank_though_it_lists_the_last_one_wrongly(pp: int) -> None:
    for micro_batches in (each for each in MICRO_BATCHES if each >= pp):
        ours = written(order("1f1b", pp, micro_batches))

        assert [executed(pp, micro_batches, rank) for rank in range(pp)] == ours
        assert listed("1F1B", pp, micro_batches, 1)[-1][:2] == [f"{pp - 1}F1", f"{pp - 1}B0"]  # its known fault


# --- PyTorch as a judge ---------------------------------------------------------------------------------------------


def test_pytorch_loads_every_order_that_it_can_express() -> None:
    seen = set()
    for name, pp, micro_batches in product(names(), (1, 2, 3, 4, 8), (1, 2, 3, 5, 8, 12, 16, 18)):
        for vpp in {"one": (1,), "two": (2,), "any": (1, 2), "even": (2, 4)}.get(facts(name).chunks, (2, 3)):
            if legal(name, pp, micro_batches, vpp) and facts(name).copies == 1:
                of = asked(name, pp, micro_batches, vpp)
                assert loaded(to_csv(of), pp, of.stages, micro_batches) == written(of)
                seen.add(name)

    assert seen == set(names()) - {"dualpipe", "chimera", "gems"}  # a model in each direction has no name there


@pytest.mark.parametrize(("chunks", "place"), [(1, "loop"), (2, "snake"), (2, "loop")])
@pytest.mark.parametrize("cap", [1, 2, 4])
def test_pytorch_loads_an_order_that_was_sought(chunks: int, place: str, cap: int) -> None:
    of = best(problem_of(Times(10, 12, 9, send=1), 4, 8, chunks, place, cap), 2.0, prove=False).order

    assert loaded(to_csv(of), 4, of.stages, 8) == written(of)


@pytest.mark.parametrize("group", [4, 5, 6, 7, 8, 10])
def test_pytorch_loads_groups_of_any_legal_size(group: int) -> None:
    for micro_batches in range(group, 30):
        if micro_batches % group == 0 or micro_batches % group >= 4:
            of = order("interleaved", 4, micro_batches, 2, group)
            assert loaded(to_csv(of), 4, 8, micro_batches) == written(of)


GOOD = "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n"
WRONG = {
    "its own listing of 1F1B": GOOD.replace("1F0,1B0,1F1,1B1,1F2,1B2,1F3", "1F1,1B0,1F2,1B1,1F3,1B2,1F4"),
    "a backward pass first": GOOD.replace("1F1,1B1", "1B1,1F1"),
    "a weight gradient first": GOOD.replace("1B1", "1W1,1I1"),
    "a pass that is missing": GOOD.replace(",1B3", ""),
    "ranks that wait": GOOD.replace("0F0,0F1,0B0", "0F0,0B0,0F1").replace("1F0,1B0,1F1,1B1", "1F1,1B1,1F0,1B0"),
    "a cell that is no action": GOOD.replace("1B3", "1X3"),
}


@pytest.mark.parametrize("title", WRONG)
def test_pytorch_and_outlay_refuse_the_same_planted_faults(title: str) -> None:
    assert loaded(GOOD, 2, 2, 4) == written(from_csv(GOOD))
    with pytest.raises((AssertionError, RuntimeError)):
        loaded(WRONG[title], 2, 2, 4)
    with pytest.raises(InputError):
        from_csv(WRONG[title])
