"""A third held out: siblings are never split, no order has a say, planted constants come back, over-fitting shows."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.cli.main import main
from outlay.cluster.catalogue import accelerator_names
from outlay.engines.tables import engine_names, facts_of, kernel_set_names
from outlay.errors import InputError
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import PLAIN
from outlay.show.validation.hold_out import hold_out_lines, hold_out_page, hold_out_record
from outlay.validate import OWN
from outlay.validate.hold_out import HoldOut, hold_out, measured_steps
from outlay.validate.refit import Counter, Measured, Moved, refitted
from outlay.validate.shared_constants import Shared, bases, counted, value_in
from outlay.validate.siblings import siblings_of, third_of
from outlay.validate.table import entries, sources
from test_json import faults


@cache
def own() -> tuple[Measured, ...]:
    """The 17 runs of the project's own table."""
    return measured_steps([OWN])


@dataclass(frozen=True)
class Planted:
    """A fit that is made up: the tables, and times by heart."""

    by_heart: dict[int, float]
    moved: tuple[Moved, ...] = ()

    def predicted(self, row: Measured) -> float:
        return self.by_heart.get(id(row), row.predicted)


def by_heart(rows: Sequence[Measured], count: Counter) -> Planted:
    """A profile that memorises every step that it is fitted on."""
    return Planted({id(row): row.seconds for row in rows})


def by_the_tables(rows: Sequence[Measured], count: Counter) -> Planted:
    """A profile that learns nothing."""
    return Planted({})


def row(siblings: str, error: float, tier: int = 1, facts: str = "MaxText") -> Measured:
    """A step whose count is off by so much."""
    return replace(own()[0], siblings=siblings, predicted=1 + error, seconds=1.0, tier=tier, facts=facts)


errors = st.floats(-0.5, 0.5).filter(lambda error: abs(error) > 1e-3)


def covering(more: list[str]) -> list[str]:
    """Some configurations, and one of each third, so that each third has a step."""
    return more + [next(str(n) for n in range(99) if third_of(str(n)) == third) for third in range(3)]


# --- the split ------------------------------------------------------------------------------------------------------


@given(
    micro_batch=st.integers(1, 64), batch=st.integers(1, 9999), sequence=st.integers(128, 10**6), dp=st.integers(1, 99),
    zero=st.integers(0, 3), precision=st.sampled_from(["bf16", "fp16", "fp8", "nvfp4"]), vocab=st.integers(1000, 10**6),
    again=st.sampled_from(["none", "selective", "full"]), place=st.integers(0, 16),
)  # fmt: skip
def test_siblings_are_never_split(
    micro_batch: int, batch: int, sequence: int, dp: int, zero: int, precision: Any, vocab: int, again: Any, place: int
) -> None:
    case = own()[place].case
    other: Any = {"micro_batch": micro_batch, "dp_shard": dp, "zero": zero, "recompute": again, "schedule": "gpipe"}
    sibling = replace(
        case,
        model=replace(case.model, vocab=vocab, name="another name"),
        job=replace(case.job, global_batch=batch, sequence_length=sequence, precision=precision),
        layout=replace(case.layout, **other),
    )

    assert third_of(siblings_of(sibling)) == third_of(siblings_of(case))
    assert siblings_of(sibling) == own()[place].siblings


@pytest.mark.parametrize("axis", ["tp", "pp", "vpp", "cp", "ep", "etp"])
def test_another_degree_is_another_configuration(axis: str) -> None:
    case = own()[0].case
    layout: Any = replace(case.layout, **{axis: 3})

    assert siblings_of(replace(case, layout=layout)) != siblings_of(case)


def test_the_split_is_the_same_in_every_run() -> None:
    # sha256sum of each name: the first 16 hexadecimal digits, modulo 3
    assert third_of("96 12288 0 8 8 1 1 1 1") == 0xA85B445452F0F83E % 3 == 2
    assert third_of("96 12288 0 8 8 3 1 1 1") == 0x6912FD5BB2D43E27 % 3 == 1
    assert third_of("61 7168 256 1 2 8 1 32 1") == 0xE06E042A9F5684E4 % 3 == 1


@given(st.integers(1, 10**6), st.integers(600, 900))
def test_about_a_third_of_many_configurations_is_held_out(first: int, count: int) -> None:
    held = [third_of(f"{layers} 4096 0 1 1 1 1 1 1") == 0 for layers in range(first, first + count)]

    assert 0.27 < sum(held) / len(held) < 0.40


@given(st.data())
@settings(max_examples=25)
def test_the_order_of_rows_has_no_say(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.integers(0, 40).map(str), min_size=5, max_size=40))
    rows = [row(name, data.draw(errors), tier=data.draw(st.sampled_from([1, 2]))) for name in covering(names)]
    shuffled = data.draw(st.permutations(rows))

    first, second = hold_out(rows, by_heart), hold_out(shuffled, by_heart)

    assert first.thirds == second.thirds and first.configurations == second.configurations
    for one, other in zip(first.groups, second.groups, strict=True):
        assert one.name == other.name and one.tables.rows == other.tables.rows
        assert one.gap == pytest.approx(other.gap)
        assert (one.held is None) == (other.held is None)
        if one.held and other.held:
            assert one.held.rows == other.held.rows and one.held.mean == pytest.approx(other.held.mean)


# --- the gap --------------------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=25)
def test_a_profile_that_memorises_shows_a_gap(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.integers(0, 40).map(str), min_size=5, max_size=40))
    rows = [row(name, data.draw(errors)) for name in covering(names)]

    (tier, *_) = hold_out(rows, by_heart).groups

    assert tier.seen.mean == 0 and tier.unseen.mean == pytest.approx(tier.tables.mean)
    assert tier.gap == pytest.approx(tier.tables.mean) and tier.gap > 0


@given(st.data())
@settings(max_examples=25)
def test_a_profile_that_learns_nothing_shows_none(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.integers(0, 40).map(str), min_size=5, max_size=40))
    rows = [row(name, data.draw(errors)) for name in covering(names)]

    (tier, *_) = hold_out(rows, by_the_tables).groups

    assert tier.gap == pytest.approx(0, abs=1e-12)
    assert tier.seen.rows == tier.unseen.rows == len(rows)


def test_the_sides_of_the_split_add_up_to_all_steps() -> None:
    rows = [row(name, 0.1) for name in covering(list(map(str, range(30))))]

    (tier, *_) = hold_out(rows, by_the_tables).groups

    assert tier.fitted and tier.held
    assert tier.held.rows == sum(third_of(each.siblings) == 0 for each in rows)
    assert tier.fitted.rows + tier.held.rows == len(rows)
    assert tier.fitted.mean == pytest.approx(0.1) and tier.held.bias == pytest.approx(0.1)


def test_sources_of_few_rows_are_one_group_and_a_source_says_whether_a_constant_rests_on_it() -> None:
    rows = [row(name, 0.1, facts="Zero Bubble") for name in covering(list(map(str, range(30))))]
    rows += [row("9", 0.2) for _ in range(3)]

    groups = {group.name: group for group in hold_out(rows, by_the_tables).groups}

    assert list(groups) == ["tier 1", "Zero Bubble", "sources under 20 rows"]
    assert [group.rested for group in groups.values()] == [True, False, True]
    assert groups["sources under 20 rows"].tables.rows == 3


# --- constants fitted again -----------------------------------------------------------------------------------------


def test_a_count_under_the_values_of_the_tables_is_the_count() -> None:
    for each in own():
        shared = [one for basis in bases() for one in basis.constants if one.stands_in(each.case)]
        values = {(one.of, name): value_in(each.case, name) for one in shared for name in one.names}

        assert shared and counted(each.case, shared, values) == pytest.approx(each.predicted)


def planted(factor: float) -> list[Measured]:
    """The project's own runs, as if multiplies of A100 reached so much more than the tables say."""
    shared = bases()[0].constants[0]
    value = factor * value_in(own()[0].case, "matmul_share")
    assert shared.names == ("matmul_share",)
    return [replace(each, seconds=counted(each.case, [shared], {(shared.of, "matmul_share"): value})) for each in own()]


def test_a_planted_constant_comes_back_from_two_thirds_and_leaves_no_gap() -> None:
    factor = 0.9
    found = hold_out(planted(factor))
    constants = {(each.of, each.name): each for each in found.constants}
    share = constants["a100-sxm", "matmul_share"]
    (tier, *_) = found.groups

    assert share.shipped == 0.775
    assert all(value == pytest.approx(0.775 * factor, rel=0.01) for value in share.values if value)
    assert tier.tables.mean > 0.05 and tier.unseen.mean < 0.01 and abs(tier.gap) < 0.005


def test_constants_that_steps_do_not_fix_stay_and_say_so() -> None:
    moved = {(each.of, each.name): each for each in refitted(own(), Counter()).moved}
    loose = moved["megatron-2022", "backward_exposed"]

    assert moved["h100-sxm", "matmul_share"].held == "no row that is fitted has it"
    assert "loose" in loose.held and loose.value == loose.shipped == 0.43


def test_no_constant_is_kept_that_the_steps_leave_loose_by_more_than_30_percent() -> None:
    noisy = [replace(each, seconds=each.seconds * (1 + 0.1 * (-1) ** place)) for place, each in enumerate(own())]
    moved = refitted(noisy, Counter()).moved

    assert all(each.loose <= 0.3 for each in moved) and any(each.loose > 0 for each in moved)


def test_a_constant_that_is_fitted_serves_engines_that_inherit_it_and_no_other() -> None:
    steps = Shared(("step_seconds",), engines=("megatron-2022",))
    (narayanan,) = {each.case.engine.name for each in own() if each.facts.startswith("Narayanan")}
    cases = {each.case.engine.name: each.case for each in own()}

    assert narayanan == "megatron-2021" and steps.stands_in(cases["megatron-2021"])
    assert not Shared(("step_seconds",), engines=("megatron",)).stands_in(cases["megatron-2021"])
    assert not Shared(("matmul_share",), ("h100-sxm",)).stands_in(cases["megatron-2021"])


def test_every_constant_that_is_sought_stands_once_in_the_tables_that_ship() -> None:
    every = [(basis, each) for basis in bases() for each in basis.constants]
    keys = [(each.of, name) for _, each in every for name in each.names]

    assert len(keys) == len(set(keys))
    for basis, each in every:
        assert set(basis.facts) <= {source.name for source in sources()}
        assert set(each.accelerators) <= set(accelerator_names()) and set(each.engines) <= set(engine_names())
        assert not each.kernels or each.kernels in kernel_set_names()
        assert all(name in facts_of(engine) for engine in each.engines for name in each.names)


def facts_that_are_fits() -> Iterator[tuple[str, str]]:
    """What each constant is of, and its name, of those whose source says that a fit over runs gave it."""
    text = files("outlay.cluster.catalogue").joinpath("accelerators.toml").read_text()
    for card, facts in tomllib.loads(text).items():
        flat = {name: fact for name, fact in facts.items() if isinstance(fact, dict)}
        flat |= {f"{level}_{name}": fact for level in ("link", "nic") for name, fact in facts.get(level, {}).items()}
        yield from ((card, name) for name, fact in flat.items() if is_a_fit(fact))
    text = files("outlay.engines").joinpath("engines.toml").read_text()
    for engine, facts in tomllib.loads(text).items():
        yield from ((engine, name) for name, fact in facts.items() if is_a_fit(fact))


def is_a_fit(fact: object) -> bool:
    source = str(fact.get("source", "")) if isinstance(fact, dict) else ""
    return "fit over" in source and "held fixed in" not in source and "held in" not in source


def test_every_constant_that_a_fit_over_runs_gave_is_fitted_again_or_says_why_not() -> None:
    known = {(of, name) for basis in bases() for each in basis.constants for name in each.names
             for of in (*each.accelerators, *each.engines)}  # fmt: skip
    known |= {(of, str(entry["name"])) for entry in entries("fitted.toml", "left") for of in entry["of"]}
    found = set(facts_that_are_fits())

    assert len(found) > 40 and found - known == set()


# --- the command ----------------------------------------------------------------------------------------------------


STEPS: list[tuple[int, int]] = []  # what was told while the real fits ran


@cache
def found() -> HoldOut:
    return hold_out(own(), report=lambda *of: STEPS.append(of))


def test_lines_page_and_object_say_the_same() -> None:
    record = hold_out_record(found())
    (tier, *_) = found().groups
    page, text = "\n".join(hold_out_page(found())), "\n".join(hold_out_lines(found(), PLAIN))
    figures = f"{100 * tier.unseen.mean:.1f} {100 * tier.unseen.bias:+.1f}"

    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert faults(OUTPUT_SCHEMAS["hold_out"](), record) == []
    assert record["schema"] == "outlay.hold_out.1" and record["groups"][0]["gap"] == tier.gap
    assert figures in page and figures in text
    assert "| matmul_share | a100-sxm | 0.775 |" in page
    assert max(map(len, hold_out_lines(found(), PLAIN))) <= 100
    assert "fp8_share" not in page  # of no step of these files


def test_the_command_prints_the_projects_own_table_held_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--hold-out"]) == 0
    assert capsys.readouterr().out.startswith("HELD OUT  17 scored steps of 12 configurations.")


def test_a_file_without_scored_steps_in_every_third_is_refused(tmp_path: Path) -> None:
    lines = OWN.read_text().splitlines(keepends=True)
    file = tmp_path / "one.csv"
    file.write_text("".join(lines[:2]))

    with pytest.raises(InputError, match="VAL004"):
        hold_out(measured_steps([file]))


@pytest.mark.parametrize("flag", ["--fit", "--profile x", "--engine x", "--svg x", "--output x", "--date x"])
def test_a_flag_that_says_nothing_of_a_hold_out_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--hold-out", *flag.split()]) == 2
    assert "VAL005" in capsys.readouterr().err


def test_progress_is_told_of_rows_and_of_steps() -> None:
    rows: list[tuple[int, int]] = []
    steps: list[tuple[int, int]] = []

    measured_steps([OWN], lambda *of: rows.append(of))
    hold_out(own(), by_the_tables, lambda *of: steps.append(of))

    assert rows == [(done, 17) for done in range(1, 18)]
    assert steps[0][0] == 0 and [done for done, _ in steps] == list(range(3 * 17 + 1))

    assert found() and [done for done, _ in STEPS] == list(range(len(STEPS)))
    assert all(done <= total for done, total in STEPS)


def test_a_fit_that_takes_longer_than_was_guessed_is_never_over_before_it_ends() -> None:
    told: list[tuple[int, int]] = []
    count = Counter(lambda *of: told.append(of), total=2)

    for _ in range(4):
        count()

    assert told == [(1, 2), (2, 2), (3, 3), (4, 4)]
