"""Orders of passes: complete, able to run, with the peaks, messages and listings that others state, or refused."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlay.errors import Fault, InputError
from outlay.schedule.checks import waiting_for_ever
from outlay.schedule.listing import action
from outlay.schedule.orders import facts, interleaved, names, order, rounds
from outlay.schedule.orders.facts import Shape
from outlay.schedule.passes import Operation, Order, Pair, Pass, loop

V = {"one": (1,), "two": (2,), "any": (1, 2, 3), "several": (2, 3), "even": (2, 4)}


def legal(most_pp: int = 6, most_micro_batches: int = 19) -> Iterator[Order]:
    """Every order up to these sizes that is not refused."""
    for name in names():
        for pp in range(1, most_pp + 1):
            for micro_batches in range(1, most_micro_batches + 1):
                for vpp in V[facts(name).chunks]:
                    try:
                        yield order(name, pp, micro_batches, vpp)
                    except InputError:
                        continue


def passes(row: tuple[Operation, ...]) -> list[Pass]:
    """The passes of a rank, a pair as its forward and its backward pass."""
    return [each for operation in row for each in ([*operation] if isinstance(operation, Pair) else [operation])]


def peak(row: tuple[Operation, ...]) -> int:
    """Forward passes whose activations a rank holds at once: +1 at F, -1 after B or W."""
    held = highest = 0
    for each in passes(row):
        held += {"F": 1, "B": -1, "I": 0, "W": -1}[each.kind]
        highest = max(highest, held)
    return highest


def peaks(of: Order) -> list[int]:
    return [peak(row) for row in of.ranks]


def faults(*arguments: object, **named: object) -> tuple[Fault, ...]:
    """The faults of an order that must be refused; each has its four parts."""
    with pytest.raises(InputError) as caught:
        order(*arguments, **named)  # type: ignore[arg-type]
    assert all(all((each.what, each.rule, each.got, each.fix)) for each in caught.value.faults)
    return caught.value.faults


def codes(*arguments: object, **named: object) -> list[str]:
    return [each.code for each in faults(*arguments, **named)]


# --- laws -----------------------------------------------------------------------------------------------------------


def test_each_rank_does_each_pass_of_its_stages_once() -> None:
    for of in legal():
        seen = Counter(each for row in of.ranks for each in passes(row))
        whole = Counter(each._replace(kind="B") for each in seen if each.kind in "BI")
        halves = [{each[1:] for each in seen if each.kind == kind} for kind in "IW"]
        copy_of = {m: m * of.copies // of.micro_batches for m in range(of.micro_batches)}
        visits = [(s, m) for m in copy_of for s in range(of.stages) if s // of.depth == copy_of[m]]

        assert set(seen.values()) == {1}
        assert sorted(each[1:] for each in seen if each.kind == "F") == sorted(visits)
        assert sorted(each[1:] for each in whole.elements()) == sorted(visits)
        assert halves[0] == halves[1]
        assert all(of.rank_of(each.stage) == rank for rank, row in enumerate(of.ranks) for each in passes(row))


def test_on_each_stage_backward_follows_forward_and_the_weight_gradient_the_input_gradient() -> None:
    for of in legal():
        for row in of.ranks:
            place = {each: place for place, operation in enumerate(row) for each in passes((operation,))}
            for each, at in place.items():
                if each.kind in "BI":
                    assert place[each._replace(kind="F")] < at
                if each.kind == "W":
                    assert place[each._replace(kind="I")] < at


def test_no_order_waits_for_itself() -> None:
    assert [of.name for of in legal() if waiting_for_ever(of)] == []


def test_enough_orders_are_tried() -> None:
    tried = Counter(of.name for of in legal())

    assert set(tried) == set(names())
    assert all(tried[name] >= 6 * 19 for name in ("gpipe", "1f1b", "looped_bfs", "zb_h1", "zb_h2", "zbv"))
    assert tried.pop("chimera") == 9 + 4 + 3  # pp 2, 4, 6: micro-batches up to 19 in whole units of pp
    assert min(tried.values()) >= 18  # dualpipe: pp 2, 4, 6


def folded_out(of: Pass, pp: int, up: bool, half: int) -> Pass:
    """A pass of a V of `pp` ranks on a model in each direction: chunk 0 goes the rank's own way, chunk 1 the other."""
    rank = min(of.stage, 2 * pp - 1 - of.stage)
    down = (of.stage < pp) != up
    place = 2 * pp - 1 - rank if up else rank
    return Pass(of.kind, place if down else 4 * pp - 1 - place, of.micro_batch + (0 if down else half))


def test_dualpipe_on_twice_the_ranks_is_dualpipe_v_folded() -> None:
    for pp in range(1, 6):
        for half in range(2 * pp, 3 * pp + 3):
            v, both = order("dualpipe_v", pp, half, 2), order("dualpipe", 2 * pp, 2 * half)
            for rank, row in enumerate(both.ranks):
                on_v, up = v.ranks[min(rank, 2 * pp - 1 - rank)], rank >= pp

                assert [passes((each,)) for each in row] == [
                    [folded_out(one, pp, up, half) for one in passes((each,))] for each in on_v
                ]


@pytest.mark.parametrize(("pp", "micro_batches"), [(1, 1), (2, 5), (4, 4), (4, 8), (5, 3), (8, 20)])
def test_one_chunk_makes_a_looped_schedule_the_plain_one(pp: int, micro_batches: int) -> None:
    looped, gpipe = order("looped_bfs", pp, micro_batches), order("gpipe", pp, micro_batches)

    assert (
        order("interleaved_zb", pp, micro_batches, group=micro_batches).ranks == order("zb_h1", pp, micro_batches).ranks
    )
    assert [sorted(row) for row in looped.ranks] == [sorted(row) for row in gpipe.ranks]
    assert [row[:micro_batches] for row in looped.ranks] == [row[:micro_batches] for row in gpipe.ranks]


def test_zbv_with_few_micro_batches_is_its_order_for_enough_without_those_that_lack() -> None:
    for pp in range(1, 7):
        enough = order("zbv", pp, 2 * pp - 1)
        for few in range(1, 2 * pp):
            kept = [[each for each in passes(row) if each.micro_batch < few] for row in enough.ranks]

            assert [passes(row) for row in order("zbv", pp, few).ranks] == kept


# --- what others state ----------------------------------------------------------------------------------------------

PYTORCH = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "LoopedBFS": "looped_bfs",
    "Interleaved1F1B": "interleaved",
    "InterleavedZeroBubble": "interleaved_zb",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipe_v",
}


def listings() -> dict[str, list[str]]:
    """PyTorch's own, for 4 ranks and 8 micro-batches: a row a rank."""
    lines = (Path(__file__).parent / "pytorch_orders.txt").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    return {lines[at]: lines[at + 1 : at + 5] for at in range(0, len(lines), 5)}


@pytest.mark.parametrize(("title", "name"), PYTORCH.items())
def test_an_order_is_what_pytorch_lists(title: str, name: str) -> None:
    of = order(name, 4, 8, 1 if facts(name).chunks == "one" else 2)

    rows = [" ".join(action(each).removesuffix("OVERLAP_F_B") for each in row) for row in of.ranks]

    assert rows == listings()[title]


def test_all_seven_of_pytorch_are_listed() -> None:
    assert set(listings()) == set(PYTORCH)


def test_the_warm_up_of_interleaving_is_megatrons() -> None:
    warm_ups = [[each.kind for each in row].index("B") - 1 for row in order("interleaved", 4, 8, 2).ranks]

    assert warm_ups == [10, 8, 6, 4]  # Megatron-LM, question 675


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("micro_batches", [1, 2, 3, 8, 16, 24, 40])
def test_the_passes_in_flight_are_those_of_the_closed_forms(pp: int, micro_batches: int) -> None:
    P, M = pp, micro_batches
    each = range(P)

    assert peaks(order("gpipe", P, M)) == [M] * P
    assert peaks(order("1f1b", P, M)) == [min(M, P - r) for r in each]
    assert peaks(order("looped_bfs", P, M, 3)) == [3 * M] * P
    if M >= P:
        assert peaks(order("zb_h1", P, M)) == [P] * P
    if M >= 2 * P - 1:
        assert peaks(order("zb_h2", P, M)) == [2 * P - 1] * P
        assert peaks(order("zbv", P, M, 2)) == [2 * P] * P
    if M >= 2 * P:
        assert peaks(order("dualpipe_v", P, M, 2)) == [2 * P + 1] * P
    if M >= 2 * P and M % 2 == P % 2 == 0:
        assert peaks(order("dualpipe", P, M)) == [P + 1] * P
    for v in (2, 3):
        for N in range(P, M + 1):
            if M % N == 0 or M % N >= P:
                held = [min(M * v, (v - 1) * N + 2 * (P - 1 - r) + 1) for r in each]
                assert peaks(order("interleaved", P, M, v, N)) == held
        if M % P == 0:
            assert peaks(order("interleaved_zb", P, M, v)) == [P * v] * P


def test_the_passes_in_flight_are_those_that_pytorch_counted() -> None:
    """Four ranks, 8 micro-batches, in chunks."""
    assert peaks(order("interleaved", 4, 8, 2)) == [11, 9, 7, 5]
    assert peaks(order("interleaved_zb", 4, 8, 2)) == peaks(order("zbv", 4, 8, 2)) == [8] * 4
    assert peaks(order("dualpipe_v", 4, 8, 2)) == [9] * 4


def test_a_micro_batch_crosses_the_ranks_as_often_as_the_table_says() -> None:
    for of in legal():
        P, v = len(of.ranks), of.stages // len(of.ranks)
        edges = {"loop": v * P - 1 if P > 1 else 0, "folded": 2 * (P - 1), "both": P - 1, "snake": v * (P - 1)}
        for kinds, step, end in (("F", -1, 0), ("BI", 1, of.depth - 1)):
            crossings = Counter(
                each.micro_batch
                for row in of.ranks
                for each in passes(row)
                if each.kind in kinds and each.stage % of.depth != end
                if of.rank_of(each.stage) != of.rank_of(each.stage + step)
            )
            assert {crossings[m] for m in range(of.micro_batches)} == {edges[facts(of.name).placement]}


def test_the_embedding_and_the_head_stand_where_the_stages_do() -> None:
    for of in legal(4, 8):
        here, pp = facts(of.name), len(of.ranks)
        firsts = {of.rank_of(stage) for stage in range(of.stages) if stage % of.depth == 0}
        lasts = {of.rank_of(stage) for stage in range(of.stages) if (stage + 1) % of.depth == 0}

        assert (firsts, lasts) == (set(here.embedding_ranks(pp)), set(here.head_ranks(pp)))
        assert of.copies == here.copies == (2 if of.name in ("dualpipe", "chimera", "gems") else 1)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pp", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("vpp", [2, 3])
def test_interleaving_is_refused_where_megatron_refuses_it(pp: int, vpp: int) -> None:
    """Megatron-LM refuses N < P, N > M and 0 < M mod N < P. All M in one group is PyTorch's as well."""
    for micro_batches in range(1, 3 * pp + 2):
        for group in (0, *range(1, micro_batches + 3)):
            N = group or pp
            refused = not pp <= N <= micro_batches or 0 < micro_batches % N < pp
            if refused and group != micro_batches:
                assert codes("interleaved", pp, micro_batches, vpp, group) in (["SCH004"], ["SCH006"])
            else:
                assert len(order("interleaved", pp, micro_batches, vpp, group).ranks) == pp


@pytest.mark.parametrize(
    ("pp", "vpp", "waits", "runs"), [(4, 3, [5, 9], [6, 7]), (8, 2, [*range(10, 14), *range(18, 22)], [16, 24])]
)
def test_interleaving_with_a_short_last_group_would_wait_for_itself(
    pp: int, vpp: int, waits: list[int], runs: list[int]
) -> None:
    """Why it is refused; where it is and yet runs, its middle has bubbles."""

    def unchecked(micro_batches: int) -> Order:
        shape = Shape(pp, micro_batches, vpp)
        rows = tuple(tuple(interleaved.rank(r, shape)) for r in range(pp))
        return Order("interleaved", rows, pp * vpp, micro_batches, loop(pp))

    assert all(waiting_for_ever(unchecked(micro_batches)) for micro_batches in waits)
    assert not any(waiting_for_ever(unchecked(micro_batches)) for micro_batches in runs)


def test_the_rounds_of_pytorch_divide_the_micro_batches() -> None:
    assert [rounds(4, M) for M in (1, 3, 4, 6, 8, 10, 12)] == [1, 3, 4, 6, 4, 5, 4]
    for M in (9, 11, 13, 14):  # PyTorch rejects them
        with pytest.raises(InputError, match="SCH004"):
            rounds(4, M)
        assert codes("interleaved_zb", 4, M, 2) == ["SCH004"]
    assert len(order("interleaved", 4, 10, 2, rounds(4, 10)).ranks[0]) == 40


def is_legal(name: str, pp: int, micro_batches: int, vpp: int) -> bool:
    try:
        return bool(order(name, pp, micro_batches, vpp))
    except InputError:
        return False


def test_a_refusal_names_the_nearest_number_of_micro_batches() -> None:
    refusals = 0
    for name in names():
        vpp = V[facts(name).chunks][-1]
        for pp in range(2, 9, 2):
            for M in range(1, 24):
                if not is_legal(name, pp, M, vpp):
                    (fault,) = faults(name, pp, M, vpp)
                    near = int(fault.fix.removeprefix("--micro-batches "))
                    nearer = [m for m in range(1, 48) if abs(m - M) < abs(near - M)]
                    refusals += 1

                    assert is_legal(name, pp, near, vpp) and not any(is_legal(name, pp, m, vpp) for m in nearer)
    assert refusals > 100


def test_a_refusal_says_the_rule_the_numbers_and_what_works() -> None:
    assert faults("interleaved", 8, 60, 2) == (
        Fault(
            "SCH004",
            "interleaved cannot take this number of micro-batches",
            "groups of N = 8: M >= N, and M mod N is 0 or at least pp",
            "pp 8, vpp 2, 60 micro-batches",
            "--micro-batches 64",
        ),
    )
    assert faults("dualpipe_v", 8, 10, 2)[0].fix == "--micro-batches 16"
    assert [each.fix for each in faults("dualpipe", 5, 7)] == ["--pp 6", "--micro-batches 12"]
    assert faults("interleaved", 8, 32, 2, 6)[0].fix == "group 8"
    assert faults("interleaved", 8, 12, 2, 13)[0].fix == "group 12"
    assert faults("interleaved", 4, 3, 2, 2)[0].fix == "group 3"  # all in one


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert codes("dualpipe", 5, 3, 2, 4) == ["SCH003", "SCH006", "SCH005", "SCH004"]
    assert codes("1f1b", 0, -1, 0, -2) == ["SCH002"] * 4
    assert codes("interleaved", 4, 6, 1) == ["SCH003", "SCH004"]


@pytest.mark.parametrize("value", [0, -3, 2.0, "4", None, True, float("nan")])
def test_what_is_not_a_count_is_refused(value: object) -> None:
    assert codes("gpipe", value, 4) == codes("gpipe", 4, value) == codes("looped_bfs", 4, 4, value) == ["SCH002"]


def test_an_unknown_schedule_is_refused_with_its_neighbour() -> None:
    assert faults("dualpip", 4, 8)[0].fix == "--schedule dualpipe"
    assert codes("", 4, 8) == codes(None, 4, 8) == codes(["1f1b"], 4, 8) == ["SCH001"]
    with pytest.raises(InputError, match="SCH001"):
        facts("terapipe")


def test_an_order_that_would_fill_the_memory_is_refused() -> None:
    assert codes("1f1b", 1000, 10**9) == ["SCH007"]
    assert codes("zbv", 10**12, 1, 2) == ["SCH007"]


def test_two_chunks_are_what_a_v_has_whether_said_or_not() -> None:
    for name in ("zbv", "dualpipe_v"):
        assert order(name, 2, 4).ranks == order(name, 2, 4, 2).ranks
        assert codes(name, 2, 4, 3) == ["SCH003"]
