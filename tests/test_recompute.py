"""Checkpoints of a chain: closed forms, the binomial plan, the program, and both its levels, against tables and
against programs that know nothing of layers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.memory.activations import checkpoint_units
from outlay.memory.chain import Link, Program, Sweep, Way, tape_link
from outlay.memory.recompute import (
    advances,
    best_tape_segments,
    extra_forwards,
    reach,
    revolve,
    slots_for,
    uniform_extra,
    uniform_slots,
)
from outlay.memory.ways import Operation, curve, ways
from outlay.search.recompute.stages import LONGEST, PARTS, SPARES

# Forward steps of the best plan by Griewank and Walther, checked against a program over all splits and, for short
# chains, against a search of all states. layers: slots:advances/extra ..
BINOMIAL = {
    16: "2:45/30 3:33/18 4:27/12 5:25/10 6:24/9 7:23/8 8:22/7 10:20/5 12:18/3 15:15/0",
    32: "2:140/109 3:93/62 4:75/44 5:68/37 6:60/29 7:55/24 8:54/23 10:52/21 12:50/19 16:46/15 20:42/11 24:38/7",
    64: "2:420/357 3:258/195 4:200/137 5:172/109 6:156/93 7:147/84 8:137/74 10:116/53 12:114/51 16:110/47 20:106/43"
    " 24:102/39 32:94/31 48:78/15",
    100: "2:845/746 3:490/391 4:374/275 5:316/217 6:280/181 7:255/156 8:245/146 10:222/123 12:195/96 13:185/86"
    " 16:182/83 20:178/79 24:174/75 32:166/67 48:150/51 64:134/35",
}
# layers: fewest slots and extra forward steps where a layer runs at most 1, 2 and 3 times
FEWEST = {
    16: [(15, 0), (5, 10), (3, 18)],
    32: [(31, 0), (7, 24), (4, 44)],
    64: [(63, 0), (10, 53), (6, 93)],
    100: [(99, 0), (13, 86), (7, 156)],
}
# Extra forward steps where a checkpoint costs 1 unit and a layer's tape kappa. (kappa, layers): units:extra ..
TAPES = {
    (1, 16): "1:120 2:34 3:20 4:14 5:11 6:10 8:8 9:7 12:4 14:2 16:0",
    (1, 32): "2:115 3:65 4:46 5:39 6:31 8:24 9:23 12:20 16:16 19:13 24:8 28:4 32:0",
    (1, 64): "2:366 3:200 5:112 6:95 9:65 12:52 16:48 19:45 25:39 32:32 38:26 48:16 57:7 64:0",
    (1, 100): "2:758 3:397 5:220 9:137 10:125 15:85 20:80 25:75 30:70 40:60 50:50 60:40 75:25 90:10 100:0",
    (2, 16): "2:120 3:45 4:31 6:20 8:13 10:11 12:10 16:8 19:7 24:4 28:2 32:0",
    (2, 32): "3:140 4:91 6:58 10:36 12:28 16:24 25:20 32:16 38:13 48:8 64:0",
    (2, 64): "3:420 4:256 6:156 10:100 19:56 25:52 32:48 51:39 64:32 96:16 128:0",
    (2, 100): "3:845 4:488 6:299 10:177 20:97 30:85 50:75 100:50 150:25 200:0",
    (10, 16): "10:120 11:45 12:33 14:25 18:21 24:15 32:14 48:12 64:10 80:8 96:7 120:4 144:2 160:0",
    (10, 32): "11:140 12:93 14:68 18:53 32:30 48:28 64:26 80:24 96:23 128:20 160:16 240:8 320:0",
    (10, 64): "11:420 12:258 14:172 18:126 32:87 64:59 96:55 160:48 256:39 320:32 480:16 640:0",
    (10, 100): "11:845 12:490 14:316 18:234 50:99 100:91 150:85 250:75 500:50 750:25 1000:0",
    (17, 16): "17:120 18:45 19:33 21:25 25:21 32:15 54:13 68:13 81:12 108:10 136:8 204:4 272:0",
    (17, 32): "18:140 19:93 21:68 25:53 48:30 81:28 136:24 217:20 272:16 408:8 544:0",
    (17, 64): "18:420 21:172 25:126 54:63 80:61 163:55 272:48 435:39 544:32 816:16 1088:0",
    (17, 100): "18:845 21:316 25:234 85:97 116:94 170:91 425:75 850:50 1275:25 1700:0",
}


def pairs(text: str) -> list[list[str]]:
    """The entries of one row of a table."""
    return [entry.split(":") for entry in text.split()]


# --- closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", BINOMIAL)
def test_the_binomial_form_gives_every_entry_of_the_table(layers: int) -> None:
    for slots, counts in pairs(BINOMIAL[layers]):
        assert f"{advances(layers, int(slots))}/{extra_forwards(layers, int(slots))}" == counts


@pytest.mark.parametrize("layers", FEWEST)
def test_the_fewest_slots_for_so_many_runs_of_a_layer(layers: int) -> None:
    found = [(slots_for(layers, times), extra_forwards(layers, slots_for(layers, times))) for times in (1, 2, 3)]

    assert found == FEWEST[layers]


def test_the_binomial_form_is_the_least_over_all_splits() -> None:
    least: dict[tuple[int, int], int] = {}
    for slots, layers in product(range(1, 7), range(1, 41)):
        splits = [i + least[layers - i, slots - 1] + least[i, slots] for i in range(1, layers) if slots > 1]
        least[layers, slots] = min(splits, default=layers * (layers - 1) // 2)
        assert advances(layers, slots) == least[layers, slots]


def test_uniform_segments_are_the_square_root_and_no_better_than_the_binomial_plan() -> None:
    assert (uniform_slots(16, 4), uniform_extra(16, 4)) == (7, 9)
    assert (uniform_slots(64, 8), uniform_extra(64, 8)) == (15, 49)
    assert (uniform_slots(100, 10), uniform_extra(100, 10)) == (19, 81)
    assert [extra_forwards(16, 7), extra_forwards(64, 15), extra_forwards(100, 19)] == [8, 48, 80]


def test_the_honest_best_number_of_segments_stores_less_than_the_square_root() -> None:
    layers, tape = 32, 16.1  # a Llama-2-7B: 131,720 B a token and layer, 16.1 inputs of 8,192 B

    assert checkpoint_units(layers, layers**0.5, tape) == pytest.approx(96.7, abs=0.1)
    assert best_tape_segments(layers, tape) == pytest.approx(22.7, abs=0.05)
    assert checkpoint_units(layers, best_tape_segments(layers, tape), tape) == pytest.approx(45.4, abs=0.1)
    assert checkpoint_units(layers, layers, tape) == pytest.approx(48.1, abs=0.05)


def follow(layers: int, slots: int) -> int:
    """Run a plan on a chain that knows only its rules; the forward steps it took without tape."""
    kept: list[int] = []
    steps, reached, standing = 0, layers, -1
    for action, start, end in revolve(layers, slots):
        if action == "keep":
            assert start in (0, standing) and len(kept) < slots
            kept.append(start)
        elif action == "advance":
            assert start == kept[-1] and end > start
            steps, standing = steps + end - start, end
        elif action == "back":
            assert end == reached and start in (standing, kept[-1])
            reached = start
        else:
            assert kept.pop() == start and reached == start
    assert reached == 0 and kept == []
    return steps


@pytest.mark.parametrize(("layers", "slots"), [(1, 1), (2, 1), (7, 1), (10, 3), (64, 5), (100, 13), (100, 100)])
def test_the_plan_of_revolve_obeys_its_rules_and_takes_what_its_form_says(layers: int, slots: int) -> None:
    assert follow(layers, slots) == advances(layers, slots)


@pytest.mark.parametrize("slots", [2, 3, 7, 20, 141])
def test_the_plan_of_ten_thousand_layers_is_as_long_as_its_chain_and_no_longer(slots: int) -> None:
    assert follow(10_000, slots) == advances(10_000, slots)
    assert sum(1 for _ in revolve(10_000, slots)) < 4 * 10_000 + 1


def test_the_reach_of_slots_is_binomial() -> None:
    assert [reach(13, 2), reach(12, 2), reach(3, 3)] == [105, 91, 20]


# --- the program ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tape", "layers"), TAPES)
def test_the_program_gives_every_entry_of_the_table(tape: int, layers: int) -> None:
    program = Program([tape_link(tape)] * layers, tape * layers).solve()

    for units, extra in pairs(TAPES[tape, layers]):
        assert program.extra(int(units)) == int(extra)


@pytest.mark.parametrize(("tape", "layers"), TAPES)
def test_with_one_tape_the_program_is_the_binomial_plan(tape: int, layers: int) -> None:
    program = Program([tape_link(tape)] * layers, 2 * tape).solve()

    for units in range(tape, min(2 * tape, tape * layers + 1)):
        assert program.extra(units) == advances(layers, units - tape + 1)


@pytest.mark.parametrize("layers", [16, 32, 64, 100])
@pytest.mark.parametrize("tape", [2, 10, 17])
def test_half_of_the_memory_costs_half_a_forward_pass(layers: int, tape: int) -> None:
    assert Program([tape_link(tape)] * layers, tape * layers).solve().extra(tape * layers // 2) == layers / 2


def test_less_than_one_tape_is_not_enough() -> None:
    assert Program([tape_link(10)] * 4, 40).solve().extra(9) == np.inf


@st.composite
def chains(draw: st.DrawFn, longest: int = 6) -> list[Link]:
    """Unlike layers, each with one to three ways to keep its tape."""
    kinds = []
    for _ in range(draw(st.integers(1, 3))):
        whole = draw(st.integers(1, 6))
        few = draw(st.lists(st.tuples(st.integers(0, whole), st.integers(1, 9)), max_size=2))
        options = (Way(whole), *(Way(kept, again) for kept, again in few))
        kinds.append(
            Link(draw(st.integers(1, 9)), draw(st.integers(0, 9)), draw(st.integers(1, 3)), options, whole,
                 draw(st.integers(0, 1)))
        )  # fmt: skip
    return draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=longest))


def plainly(links: list[Link], start: int, end: int, units: int) -> float:
    """The recurrence as it is written, without a table: least time of layers start .. end - 1, the input standing."""
    if units < 0:
        return np.inf
    if start == end:
        return 0.0
    least = taped(links, start, end, units)
    forward = 0.0
    for middle in range(start + 1, end):
        forward += links[middle - 1].forward
        behind = min(
            plainly(links, middle, end, units - links[middle].entry),
            taped(links, middle, end, units - links[middle].reads),
        )
        least = min(least, forward + behind + plainly(links, start, middle, units))
    return least


def taped(links: list[Link], start: int, end: int, units: int) -> float:
    link = links[start]
    if link.whole > units:
        return np.inf
    return min(
        link.forward + link.backward + way.again + plainly(links, start + 1, end, units - way.kept) for way in link.ways
    )


@given(chains(4))
def test_the_tables_are_the_recurrence(links: list[Link]) -> None:
    most = sum(link.whole for link in links) + 2
    program = Program(links, most).solve()

    for units in range(most + 1):
        assert program.table[program.kinds][units] == plainly(links, 0, len(links), units)


@given(chains())
def test_with_one_pass_in_flight_the_sweep_over_all_spares_is_the_program(links: list[Link]) -> None:
    most = sum(max(link.whole, *(way.kept for way in link.ways)) for link in links)
    program = Program(links, most).solve()
    found = np.full(most + 1, np.inf)
    for spare in range(most + 1):
        found[spare:] = np.minimum(found[spare:], Sweep(program, spare, most).extra()[: most + 1 - spare])

    for units in range(most + 1):
        assert min(found[: units + 1]) == program.extra(units)


@given(chains(), st.integers(0, 8))
def test_a_traced_plan_keeps_what_it_says_and_treats_every_layer_once(links: list[Link], spare: int) -> None:
    most = sum(max(link.whole, *(way.kept for way in link.ways)) for link in links)
    sweep = Sweep(Program(links, most).solve(), spare, most)
    for kept in np.flatnonzero(np.isfinite(sweep.extra())).tolist():
        steps = sweep.plan(kept)
        assert [layer for step in steps for layer in range(step.start, step.end)] == list(range(len(links)))
        ways_kept = sum(step.way.kept for step in steps if step.way)
        assert ways_kept <= kept and (ways_kept == kept or any(step.way is None for step in steps))


def peak_of_passes(tapes: list[int], whole: tuple[bool, ...], passes: int) -> int:
    """Units at the peak where every pass keeps tapes, or inputs of layers that run again, and one goes backward."""
    kept = [
        tape if keep else (1 if place + 1 < len(tapes) else 0) for place, (tape, keep) in enumerate(zip(tapes, whole))
    ]
    others, peak = (passes - 1) * sum(kept), passes * sum(kept)
    for place in range(len(tapes) - 1, -1, -1):
        peak = max(peak, others + sum(kept[:place]) + tapes[place])
    return peak


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_several_passes_in_flight_are_held_as_a_walk_through_them_holds_them(tapes: list[int], passes: int) -> None:
    links = [Link(place + 1, 0, 1, (Way(tape),), tape, reads=1) for place, tape in enumerate(tapes)]
    most = sum(tapes)
    program = Program(links, most).solve(1)
    walked = [
        (peak_of_passes(tapes, whole, passes), sum(place + 1 for place, keep in enumerate(whole) if not keep))
        for whole in product((True, False), repeat=len(tapes))
    ]
    found: dict[int, float] = {}
    for spare in range(most + 1):
        for kept, seconds in enumerate(Sweep(program, spare, most, longest=1).extra()):
            found[passes * kept + spare] = min(found.get(passes * kept + spare, np.inf), float(seconds))
    for units in range(passes * most + 1):
        assert least(found, units) == min((more for peak, more in walked if peak <= units), default=np.inf)


# --- the operations of a layer --------------------------------------------------------------------------------------

CHAIN = [
    Operation("norm", 1, 0, 4),
    Operation("matrix", 9),
    Operation("rotate", 1, 0, 6, (1,)),
    Operation("core", 5, 2, 4),
    Operation("back", 9),
]


def test_an_operation_whose_input_nobody_keeps_runs_again_with_those_before_it() -> None:
    points = {point.again: (point.seconds, point.freed) for point in curve(CHAIN, 1)}

    assert points[()] == (0, 0)
    assert points[(0,)] == (1, 4)
    assert points[(0, 3)] == (6, 10)
    assert points[(0, 1, 2, 3)] == (16, 16)  # rotate needs matrix
    assert (2,) not in points and all(4 not in again for again in points)


@st.composite
def layers(draw: st.DrawFn, most: int) -> list[Operation]:
    """Operations with whole sizes and times; each may need some before it."""
    made: list[Operation] = []
    for place in range(draw(st.integers(1, most))):
        needs = draw(st.sets(st.integers(max(0, place - 3), place - 1), max_size=2)) if place else set()
        sizes = draw(st.tuples(st.integers(0, 4), st.integers(0, 6)))
        made.append(Operation(f"{place}", draw(st.integers(1, 9)), *sizes, tuple(sorted(needs))))
    return made


def every_choice(operations: list[Operation]) -> dict[int, float]:
    """Least seconds by what stays kept, over all sets that may run again."""
    whole, found = sum(int(each.freed) for each in operations), dict[int, float]()
    for chosen in product((False, True), repeat=len(operations)):
        if all(chosen[need] for place, each in enumerate(operations) if chosen[place] for need in each.needs):
            again = [each for each, one in zip(operations, chosen, strict=True) if one]
            kept = whole - sum(int(each.freed) for each in again)
            found[kept] = min(found.get(kept, np.inf), sum(each.seconds for each in again))
    return found


def least(found: dict[int, float], units: int) -> float:
    return min((seconds for kept, seconds in found.items() if kept <= units), default=np.inf)


@given(layers(10))
def test_the_curve_of_a_layer_is_the_best_of_all_choices(operations: list[Operation]) -> None:
    found, every = {way.kept: way.again for way in ways(operations, 1)}, every_choice(operations)

    for units in range(sum(int(each.freed) for each in operations) + 1):
        assert least(found, units) == least(every, units)


def without_layers(operations: list[Operation]) -> dict[int, float]:
    """Least seconds by what stays kept, over a chain of operations that nobody has cut into layers."""
    states: dict[frozenset[int], dict[int, float]] = {frozenset(): {0: 0.0}}
    for place in range(len(operations) - 1, -1, -1):
        one, after = operations[place], dict[frozenset[int], dict[int, float]]()
        for waiting, values in states.items():
            choices: list[tuple[frozenset[int], int, float]] = [((waiting - {place}).union(one.needs), 0, one.seconds)]
            if place not in waiting:
                choices.append((waiting, int(one.freed), 0.0))
            for rest, kept, seconds in choices:
                into = after.setdefault(rest, {})
                for before, spent in values.items():
                    into[before + kept] = min(into.get(before + kept, np.inf), spent + seconds)
        states = after
    return states[frozenset()]


def two_levels(kinds: list[list[Operation]], pattern: list[int]) -> dict[int, float]:
    """The same by the curves of the kinds and the program over layers, whose inputs cost a unit each."""
    curves = [ways(kind, 1) for kind in kinds]
    links = []
    for place, kind in enumerate(pattern):
        behind = 1 if place + 1 < len(pattern) else 0
        whole = sum(int(each.freed) for each in kinds[kind])
        every = tuple(Way(way.kept + behind, way.again) for way in curves[kind])
        links.append(Link(sum(each.seconds for each in kinds[kind]), 0.0, 1, every, whole + behind, 1))
    most = sum(link.whole for link in links)
    extra = Sweep(Program(links, most).solve(1), most, most, longest=1).extra()
    return {kept - (len(pattern) - 1): float(extra[kept]) for kept in range(len(pattern) - 1, most + 1)}


@given(st.lists(layers(6), min_size=1, max_size=3), st.data())
def test_two_levels_reach_what_the_program_over_all_operations_reaches(
    kinds: list[list[Operation]], data: st.DataObject
) -> None:
    longest = 60 // max(map(len, kinds))
    pattern = data.draw(st.lists(st.sampled_from(range(len(kinds))), min_size=1, max_size=longest))
    flat: list[Operation] = []
    for kind in pattern:
        start = len(flat)
        flat += [
            Operation(each.name, each.seconds, each.inside, each.output, tuple(start + need for need in each.needs))
            for each in kinds[kind]
        ]
    assert len(flat) <= 60
    found, whole = two_levels(kinds, pattern), without_layers(flat)

    for units in range(sum(int(each.freed) for each in flat) + 1):
        assert least(found, units) == least(whole, units)


def test_eighty_layers_of_twenty_operations_are_counted_work() -> None:
    kind = [Operation(f"{place}", 1 + place % 7, 0.0, 1 + place % 3) for place in range(20)]
    unit = 2.0 / (PARTS // 2)  # a layer's input is 2 bytes here
    whole, entry = round(sum(each.freed for each in kind) / unit), round(2.0 / unit)
    every = tuple(Way(way.kept + entry, way.again) for way in ways(kind, unit))
    link = Link(sum(each.seconds for each in kind), 0.0, entry, every, whole + entry, entry)
    most = 80 * link.whole
    program = Program([link] * 80, most).solve(LONGEST)
    for spare in sorted({round(share * link.whole) for share in (0, *SPARES)}):
        extra = Sweep(program, spare, most, longest=LONGEST).extra()

    assert 0 < min(extra[: most // 2]) < 80 * link.forward
    assert program.cells < 3e8  # elements of arrays: at 2 ns each, under a second
