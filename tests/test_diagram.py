"""Timing diagrams: what stands on paper is what the timeline says, however it is drawn, folded or written."""

import json
import re
import runpy
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.formats.perfetto import Slice, trace
from outlay.formats.perfetto import Track as Stream
from outlay.formats.perfetto_timeline import timeline_trace
from outlay.schedule.orders import facts, names, order
from outlay.schedule.steady import simulate_long
from outlay.schedule.timeline import Timeline, simulate
from outlay.schedule.times import Times
from outlay.show.diagram.chart import chart_of
from outlay.show.diagram.drawing import CAUSES, Chart, Cut, Lane, View, merged
from outlay.show.diagram.fold import fold
from outlay.show.diagram.html import html
from outlay.show.diagram.rows import BUCKET, covers, runs
from outlay.show.diagram.svg import Picture, svg
from outlay.show.diagram.text import BACKWARD, FORWARD, WEIGHT, cells, diagram_lines, fitted, rows
from outlay.show.palette import tone_of
from outlay.show.text import Style

ROOT = Path(__file__).parent.parent
MS = 1_000_000  # in ticks of a nanosecond
NS = 1e-9
EVEN = Times(10 * MS, 10 * MS, 10 * MS)
SVG = "{http://www.w3.org/2000/svg}"


def timeline(name: str, pp: int = 4, micro_batches: int = 8, times: Times = EVEN) -> Timeline:
    return simulate(order(name, pp, micro_batches, 1 if facts(name).chunks == "one" else 2), times)


def chart(name: str = "1f1b", pp: int = 4, micro_batches: int = 8, times: Times = EVEN, whole: bool = False) -> Chart:
    return chart_of(timeline(name, pp, micro_batches, times), f"{name} {pp} {micro_batches}", NS, whole=whole)


def lane(parts: list[tuple[float, float, str]], makespan: float) -> Lane:
    """A row of (wait, length, kind)."""
    start, end, time = [], [], 0.0
    for wait, length, _ in parts:
        start.append(time + wait)
        time += wait + length
        end.append(time)
    none = np.zeros(len(parts), int)
    gap = np.array([0.0])
    return Lane(
        (0,), np.array(start), np.array(end), np.array([kind for *_, kind in parts]), none, none, none, none - 1,
        gap, gap, np.array(["fill"]), 0.0, {"fill": 0.0},
    )  # fmt: skip


# --- where times stand ----------------------------------------------------------------------------------------------


def test_places_are_to_scale_on_both_sides_of_a_tear() -> None:
    view = View(100.0, 90.0, Cut(20.0, 70.0, 5), 40.0)

    assert view.scale == 1
    assert view.place([0.0, 20.0, 70.0, 100.0]).tolist() == [0, 20, 60, 90]


def test_what_lies_in_the_cut_is_not_drawn_and_what_reaches_into_it_ends_there() -> None:
    view = View(100.0, 90.0, Cut(20.0, 70.0, 5), 40.0)
    index, left, right = view.drawn(np.array([0.0, 15, 30, 65, 80]), np.array([10.0, 25, 40, 75, 90]))

    assert index.tolist() == [0, 1, 3, 4]
    assert left.tolist() == [0, 15, 60, 70] and right.tolist() == [10, 20, 65, 80]


parts = st.lists(st.tuples(st.floats(0, 9), st.floats(0.01, 9), st.sampled_from("FBIWRP")), min_size=1, max_size=60)


@given(parts, st.floats(1, 300))
def test_a_bucket_holds_the_work_that_lies_in_it(found: list[tuple[float, float, str]], width: float) -> None:
    total = sum(wait + length for wait, length, _ in found)
    row, view = lane(found, total), View(total, width)
    edges = np.append(np.arange(0, width, BUCKET), width)
    work = {tone: np.diff(covered(edges)) for tone, covered in covers(row, view).items()}

    expected: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(edges) - 1))
    for start, end, kind in zip(row.start, row.end, row.kind):
        left, right = start * width / total, end * width / total
        tone = "X" if kind == "P" else tone_of(str(kind))
        expected[tone] += np.clip(np.minimum(right, edges[1:]) - np.maximum(left, edges[:-1]), 0, None)
    assert work.keys() == expected.keys()
    for tone in work:
        assert work[tone] == pytest.approx(expected[tone], abs=1e-6)


def test_a_bucket_has_the_colour_of_the_kind_that_does_nine_tenths_of_its_work() -> None:
    row = lane([(0, 20, "F"), (0, 1.85, "F"), (0, 0.15, "B"), (0, 1, "F"), (0, 1, "B"), (0, 20, "B")], 44)

    assert [(kind, step) for kind, step, *_ in runs(row, View(44.0, 44.0))] == [("F", 4), ("X", 4), ("B", 4)]


def test_a_bucket_is_as_dark_as_it_is_busy_in_four_steps() -> None:
    row = lane([(1.5, 0.5, "F"), (1, 1, "F"), (0.5, 1.5, "F"), (0, 2, "F")], 8)
    alone = [next(iter(runs(lane([(2 - busy, busy, "F")], 2), View(2.0, 2.0))))[1] for busy in (0.5, 1, 1.5, 2)]

    assert alone == [1, 2, 3, 4]
    assert {kind for kind, *_ in runs(row, View(8.0, 8.0))} == {"F"}


def test_rows_that_do_the_same_are_one() -> None:
    one, two = lane([(0, 1, "F")], 1), lane([(1, 1, "F")], 2)
    both, row_of = merged([Lane(**{**vars(each), "ranks": (rank,)}) for rank, each in enumerate([one, two, one])])

    assert [row.ranks for row in both] == [(0, 2), (1,)]
    assert row_of == {0: 0, 1: 1, 2: 0}
    assert both[0].label == "rank 0, 2"


# --- what repeats ---------------------------------------------------------------------------------------------------

UNEVEN = Times([11 * MS, 9 * MS, 14 * MS, 8 * MS], [10 * MS] * 4, [7 * MS] * 4, send=MS)


def kept(found: Chart) -> list[list[tuple[object, ...]]]:
    """What each row does outside the cut, the later part moved up to the earlier one."""
    cut = found.cut or Cut(found.makespan, found.makespan, 0)
    result = []
    for row in found.lanes:
        late = row.start >= cut.end - NS / 2
        drawn = late | (row.start < cut.start - NS / 2)
        start, length = np.rint((row.start - cut.length * late) / NS), np.rint((row.end - row.start) / NS)
        batch, other = (each - cut.micro_batches * (late & (each >= 0)) for each in (row.micro_batch, row.other))
        columns = (start, length, row.kind, row.stage, batch, other)
        result.append(list(zip(*(column[drawn].tolist() for column in columns))))
    return result


@pytest.mark.parametrize("times", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("name", ["1f1b", "interleaved", "zb_h1", "zb_h2", "zbv", "interleaved_zb", "dualpipe_v"])
def test_a_fold_leaves_exactly_the_step_of_fewer_micro_batches(name: str, times: Times) -> None:
    depth = 4 if facts(name).chunks == "one" else 8
    passes = (times.forward, times.input_gradient, times.weight_gradient)
    spread = Times(*(np.resize(each, depth).tolist() for each in passes), send=times.send)
    long = chart(name, 4, 64, spread)
    assert long.cut is not None and long.cut.micro_batches > 0
    short = chart(name, 4, 64 - long.cut.micro_batches, spread, whole=True)

    assert long.makespan - long.cut.length == pytest.approx(short.makespan)
    assert kept(long) == kept(short)


def test_gpipe_is_not_folded_since_its_forward_passes_repeat_apart_from_its_backward_passes() -> None:
    assert chart("gpipe", 4, 64).cut is None
    assert chart("gpipe", 4, 64, Times(40 * MS, MS, MS)).cut is None


def test_few_micro_batches_are_never_folded() -> None:
    assert chart("1f1b", 4, 12).cut is None
    assert chart("1f1b", 4, 20).cut is not None


@pytest.mark.parametrize("micro_batches", range(13, 30))
def test_a_fold_spares_a_fifth_of_the_step_or_is_not_worth_its_tear(micro_batches: int) -> None:
    found = chart("1f1b", 4, micro_batches)

    assert found.cut is None or found.cut.length >= 0.2 * found.makespan


def test_the_whole_step_is_shown_on_request() -> None:
    assert chart("1f1b", 4, 40, whole=True).cut is None


def test_a_step_that_does_not_repeat_is_not_folded() -> None:
    long = timeline("1f1b", 4, 40)
    rng = np.random.default_rng(0)
    rows = [lane([(0, float(length), "F") for length in rng.uniform(1, 2, 40)], 80) for _ in long.ranks]

    assert fold(rows, 40, 80.0) is None


@pytest.mark.parametrize("name", ["1f1b", "zb_h1", "interleaved"])
def test_a_steady_state_that_was_never_simulated_is_drawn_as_if_it_had_been(name: str) -> None:
    chunks = 1 if facts(name).chunks == "one" else 2
    long = simulate_long(lambda batches: order(name, 4, batches, chunks), 4, 400, EVEN)
    found, full = chart_of(long, "a", NS), chart(name, 4, 400, whole=True)

    assert long.repeats is not None and found.cut is not None
    assert found.makespan == pytest.approx(full.makespan)
    assert found.idle_by_cause == pytest.approx(full.idle_by_cause)
    assert found.share == pytest.approx(full.share)
    short = chart(name, 4, 400 - found.cut.micro_batches, whole=True)
    assert found.makespan - found.cut.length == pytest.approx(short.makespan)
    assert kept(found) == kept(short)
    for drawn, whole in zip(found.lanes, full.lanes):
        outside = (drawn.start < found.cut.start) | (drawn.end > found.cut.end)
        there = set(zip(np.rint(whole.start / NS), whole.kind, whole.stage, whole.micro_batch))
        here = zip(
            np.rint(drawn.start / NS)[outside], drawn.kind[outside], drawn.stage[outside], drawn.micro_batch[outside]
        )
        assert set(here) <= there
        assert 0 < outside.sum() < len(whole.start) / 4


# --- in a terminal --------------------------------------------------------------------------------------------------


def letter(kind: str, number: int) -> str:
    return {"F": FORWARD, "W": WEIGHT}.get(kind, BACKWARD)[number % 10]


OTHERWISE = ("dualpipe", "dualpipe_v", "gems", "hanayo")  # pairs; longer than a row in whole columns


@pytest.mark.parametrize("name", [name for name in names() if name not in OTHERWISE])
def test_the_letters_of_a_row_are_its_passes_one_column_a_unit_of_time(name: str) -> None:
    line = timeline(name)
    found = chart_of(line, name, NS)
    view, exact = fitted(found, 70)

    assert exact
    for row, track in zip(found.lanes, line.ranks):
        expected = [" "] * round(view.width)
        for start, end, kind, batch in zip(
            track.start // (10 * MS), track.end // (10 * MS), track.kind, track.micro_batch
        ):
            expected[start:end] = letter(kind, batch) * (end - start)
        text = "".join(cells(row, view, True)[0].tolist())
        assert re.sub(r"[/\\.x]", " ", text) == "".join(expected)


def test_a_row_of_1f1b_reads_as_the_paper_draws_it() -> None:
    """Rank 3 of Narayanan et al. 2021, figure 4 (PipeDream-Flush): F1 B1 F2 B2 .., no wait between first and last."""
    text = [line for line in rows(chart(), Style(80)) if line.startswith("  rank")]

    assert text[3] == r"  rank 3  ///1aa2bb3cc4dd5ee6ff7gg8hh\\\\\\"
    assert text[0] == "  rank 0  1234......aa5bb6cc7dd8ee.ff.gg.hh"


def test_a_pair_shows_both_micro_batches() -> None:
    found = chart("dualpipe_v")
    text = rows(found, Style(80))
    row = found.lanes[3]
    (at, *_) = np.flatnonzero(row.kind == "P").tolist()
    both = letter("F", row.micro_batch[at]) + letter("B", row.other[at])

    assert row.micro_batch[at] != row.other[at]
    assert next(line for line in text if "rank 3" in line)[10 + round(row.start[at] * 100) :].startswith(f"{both}&")
    assert "as a pair" in "\n".join(text)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize(("name", "pp", "micro_batches"), [("1f1b", 4, 8), ("interleaved", 16, 128), ("zbv", 8, 40)])
def test_a_diagram_fits_its_columns_and_is_ascii(name: str, pp: int, micro_batches: int, width: int) -> None:
    lines = diagram_lines(chart(name, pp, micro_batches), Style(width))

    assert all(len(line) <= width and line.isascii() for line in lines)
    assert sum(line.startswith("  rank") for line in lines) == pp


def test_colour_only_repeats_what_the_letters_say() -> None:
    plain, painted = (rows(chart("zb_h1"), Style(80, colour)) for colour in (False, True))

    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in painted] == plain
    assert painted != plain


# --- as a picture ---------------------------------------------------------------------------------------------------


def boxes(d: str) -> Iterator[tuple[float, float]]:
    """Width and height of each shape of a path: boxes, and boxes with notches."""
    for shape in re.findall(r"M[^M]*", d):
        if box := re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h-(?:\S+)z", shape):
            yield float(box[3]), float(box[4])
        elif cut := re.fullmatch(r"M(\S+) (\S+)h\S+(?:l2.5 3l2.5-3h[\d.]+)+V(\S+)H\S+z", shape):
            flats = [float(each) for each in re.findall(r"h(-?[\d.]+)", shape)]
            yield sum(flats) + 5 * shape.count("l2.5 3"), float(cut[3]) - float(cut[2])


def drawn_widths(picture: str) -> dict[str, float]:
    """For each class of colour, and each hatch, the width of all its shapes in rows, in units of a row's height."""
    found: dict[str, float] = defaultdict(float)
    for path in ET.fromstring(picture).iter(f"{SVG}path"):
        name = path.get("class") or path.get("fill", "")
        for width, height in boxes(path.get("d", "")):
            if height != 10:  # swatches of the legend
                found[name.split()[0].removeprefix("url(#").removesuffix(")")] += width * height / 22
    return found


@pytest.mark.parametrize("name", names())
def test_the_coloured_area_is_the_work_and_the_hatched_area_the_idle_time(name: str) -> None:
    found = chart(name)
    scale, area = Picture(found).view.scale, drawn_widths(svg(found))
    busy: dict[str, float] = defaultdict(float)
    for row in found.lanes:
        for start, end, kind in zip(row.start, row.end, row.kind):
            for tone in "FB" if kind == "P" else tone_of(str(kind)):
                busy[tone] += (end - start) / (2 if kind == "P" else 1)

    for tone, time in busy.items():
        assert area[tone] == pytest.approx(time * scale, rel=0.01)
    for cause, time in found.idle_by_cause.items():
        assert area[cause] == pytest.approx(time * scale, rel=0.01, abs=1)


def numbers(picture: str) -> Counter[str]:
    texts = ET.fromstring(picture).iter(f"{SVG}text")
    return Counter(each.text or "" for each in texts if (each.get("class") or "").startswith("n "))


def test_every_operation_that_is_wide_enough_has_its_number() -> None:
    assert numbers(svg(chart())) == Counter({str(batch): 8 for batch in range(1, 9)})  # 4 ranks, F and B


def test_a_pair_has_both_numbers() -> None:
    found = chart("dualpipe")
    expected = Counter(str(batch + 1) for row in found.lanes for batch in row.micro_batch)
    expected += Counter(str(batch + 1) for row in found.lanes for batch in row.other if batch >= 0)

    assert numbers(svg(found)) == expected


def test_operations_lose_their_numbers_then_their_outlines_then_become_buckets() -> None:
    found = chart("1f1b", 4, 8)
    classes = {}
    for width in (1200, 600, 340, 300):
        picture = svg(found, width)
        drawn = {path.get("class") for path in ET.fromstring(picture).iter(f"{SVG}path")}
        classes[width] = ("F edge" in drawn, len(numbers(picture)), "buckets" in picture)

    assert classes[1200] == (True, 8, False)
    assert classes[600][0] and classes[600][1] > 0  # 11 px forward, 22 px backward
    assert classes[340] == (False, 0, True)
    assert classes[300] == (False, 0, True)


def test_a_later_chunk_is_notched_and_its_number_italic() -> None:
    picture = svg(chart("interleaved"))

    assert "l2.5 3l2.5-3" in picture and 'tF i"' in picture
    assert "l2.5 3l2.5-3" not in svg(chart("1f1b"))


def test_the_critical_path_has_a_dot_where_it_changes_rank() -> None:
    found = chart()
    changes = sum(a[0] != b[0] for a, b in zip(found.critical, found.critical[1:]))
    root = ET.fromstring(svg(found))
    dots = next(path for path in root.iter(f"{SVG}path") if path.get("class") == "line dot")

    assert changes == dots.get("d", "").count("M") > 0
    time = [found.lanes[row].end[at] - found.lanes[row].start[at] for row, at in found.critical]
    assert sum(time) == pytest.approx(found.makespan)  # free sends: work from the first start to the last end


def test_a_picture_says_in_words_what_it_shows() -> None:
    root = ET.fromstring(svg(chart("1f1b", 4, 40)))
    title, words = (root.find(f"{SVG}{name}") for name in ("title", "desc"))

    assert root.get("role") == "img" and root.get("aria-labelledby") == "t d"
    assert title is not None and title.text == "1f1b 4 40"
    assert words is not None and words.text is not None
    for said in ("Idle 6.98 %", "1.29 s", "fill 60.0 ms", "Not drawn:"):
        assert said in words.text


def test_a_title_cannot_break_out_of_its_picture_or_page() -> None:
    bad = "</title><script>alert(1)</script>&"
    found = chart_of(timeline("1f1b"), bad, NS)

    root = ET.fromstring(svg(found))
    assert root.find(f"{SVG}title") is not None and root.find(f"{SVG}title").text == bad  # type: ignore[union-attr]
    assert "<script>alert" not in html(found)


def test_a_folded_picture_says_what_is_left_out_and_shows_the_whole_in_a_strip() -> None:
    found = chart("1f1b", 4, 40)
    texts = [each.text or "" for each in ET.fromstring(svg(found)).iter(f"{SVG}text")]

    assert found.cut is not None
    assert f"… {found.cut.micro_batches} more micro-batches, the same pattern, 780 ms …" in texts
    assert Picture(found).strip > 0 == Picture(chart()).strip


@pytest.fixture(scope="module")
def large() -> Timeline:
    """64 ranks, 512 micro-batches, 2 chunks: 131,072 passes."""
    return timeline("interleaved", 64, 512)


@pytest.mark.parametrize("whole", [False, True])
def test_131_072_operations_are_at_most_50_elements(large: Timeline, whole: bool) -> None:
    found = chart_of(large, "large", NS, whole=whole)
    picture = svg(found)

    assert found.operations == 131_072
    assert len(list(ET.fromstring(picture).iter())) <= 50
    assert len(picture) < 60_000


def test_a_hundred_rows_have_few_labels() -> None:
    found = chart("1f1b", 100, 8)
    labels = [each.text for each in ET.fromstring(svg(found)).iter(f"{SVG}text") if each.get("class") == "e"]

    assert len(found.lanes) == 100 and len(labels) <= 9


@pytest.mark.parametrize(("pp", "micro_batches"), [(1, 1), (1, 5), (2, 1), (3, 2)])
def test_the_smallest_pipelines_are_drawn(pp: int, micro_batches: int) -> None:
    found = chart("1f1b", pp, micro_batches)

    ET.fromstring(svg(found))
    assert diagram_lines(found, Style(80)) and html(found)


def test_units_are_not_seconds() -> None:
    found = chart_of(timeline("1f1b", times=Times(1, 1, 1)), "units")

    assert found.time(found.makespan) == "33 F"
    assert "33 F" in svg(found) and " ms" not in svg(found)


def test_passes_without_a_duration_are_drawn() -> None:
    found = chart("1f1b", 4, 8, Times([0, 10 * MS, 10 * MS, 10 * MS], [10 * MS] * 4, [0] * 4))

    ET.fromstring(svg(found))
    assert diagram_lines(found, Style(80)) and html(found)


def test_collectives_stand_on_a_lane_of_their_own() -> None:
    found = chart("1f1b", 4, 8, Times(10 * MS, 10 * MS, 10 * MS, reduce=30 * MS))

    assert 'class="C"' in svg(found) and "collectives" in svg(found)
    assert 'class="C"' not in svg(chart())
    assert any("collectives make the step" in note for note in found.notes)


def test_the_pictures_of_the_documents_are_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs/pictures/remake.py"))

    found = dict(made["pictures"]())
    assert set(found) == set((ROOT / "docs/pictures").glob("*.svg"))
    stale = [path.name for path, text in found.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "python docs/pictures/remake.py"


# --- as a page ------------------------------------------------------------------------------------------------------


def page_data(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]


def test_a_page_asks_for_nothing_outside() -> None:
    page = html(chart())

    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src=|href=|@import|fetch|XMLHttpRequest|url\((?![#$]))", page)


def test_a_page_holds_every_operation_of_the_timeline() -> None:
    found = chart("dualpipe_v")
    data = page_data(html(found))

    assert len(data["rows"]) == 4
    for row, expected in zip(data["rows"], found.lanes):
        gaps, lengths = np.array(row["d"]).T
        end = np.cumsum(gaps + lengths)
        assert end / data["end"] * data["makespan"] == pytest.approx(expected.end, abs=1e-6)
        assert row["m"] == expected.micro_batch.tolist() and row["o"] == expected.other.tolist()
        assert len(row["k"]) == len(row["c"]) == len(row["m"])


def test_a_page_has_a_table_with_every_rank() -> None:
    found = chart("1f1b", 4, 8)
    table = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', html(found))

    assert [rank for rank, _ in table] == ["0", "1", "2", "3"]
    assert re.findall(r"<td>(.*?)</td>", table[3][1]) == [
        "240 ms", "90.0 ms", "27.3 %", "30.0 ms", "60.0 ms", "0 s", "0 s", "1",
    ]  # fmt: skip


# --- as a trace -----------------------------------------------------------------------------------------------------


def fields(message: bytes) -> dict[int, list]:
    """A protocol buffer's fields by number: varints, eight bytes, or bytes."""
    found: dict[int, list] = defaultdict(list)
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found[key >> 3].append(varint())
        elif key & 7 == 1:
            found[key >> 3].append(int.from_bytes(message[at : at + 8], "little"))
            at += 8
        else:
            assert key & 7 == 2
            length = varint()
            found[key >> 3].append(message[at : at + length])
            at += length
    return found


def read_trace(raw: bytes) -> tuple[dict[int, str], list[tuple[int, int, int, dict[int, list]]], dict[int, str]]:
    """Tracks by number; events as (time, type, track, fields); names of events."""
    tracks, events, words, processes = {}, [], {}, {}
    for packet in map(fields, fields(raw)[1]):
        for descriptor in map(fields, packet[60]):
            for process in map(fields, descriptor[3]):
                processes[process[1][0]] = process[6][0].decode()
            for thread in map(fields, descriptor[4]):
                tracks[descriptor[1][0]] = f"{processes[thread[1][0]]} {thread[5][0].decode()}"
            if descriptor[8]:
                tracks[descriptor[1][0]] = f"counter {descriptor[2][0].decode()}"
        for interned in map(fields, packet[12]):
            words |= {entry[1][0]: entry[2][0].decode() for entry in map(fields, interned[2])}
        for event in map(fields, packet[11]):
            assert packet[10] == [1] and packet[13] == [2]
            events.append((packet[8][0], event[9][0], event[11][0], event))
    return tracks, events, words


@pytest.mark.parametrize("name", ["1f1b", "zbv", "dualpipe"])
def test_a_trace_reads_back_as_the_timeline(name: str) -> None:
    line = timeline(name, 4, 8, Times(10 * MS, 10 * MS, 10 * MS, send=MS))
    tracks, events, words = read_trace(timeline_trace(line, 1.0))

    for track in line.ranks:
        number = next(number for number, text in tracks.items() if text == f"rank {track.rank} compute")
        begins = [(time, words[event[10][0]]) for time, kind, place, event in events if (kind, place) == (1, number)]
        ends = [time for time, kind, place, _ in events if (kind, place) == (2, number)]
        assert [time for time, _ in begins] == track.start.tolist() and ends == track.end.tolist()
        expected = [
            f"F {batch + 1}, B {back + 1}" if kind == "P" else f"{kind} {batch + 1}"
            for kind, batch, back in zip(track.kind, track.micro_batch, track.back_micro_batch)
        ]
        assert [text for _, text in begins] == expected


@pytest.mark.parametrize("name", ["1f1b", "interleaved", "dualpipe_v"])
def test_every_message_is_a_flow_that_begins_and_ends_once_and_later(name: str) -> None:
    line = timeline(name, 4, 8, Times(10 * MS, 10 * MS, 10 * MS, send=MS))
    _, events, _ = read_trace(timeline_trace(line, 1.0))
    begins = {flow: (time, place) for time, _, place, event in events for flow in event[47]}
    ends = {flow: (time, place) for time, _, place, event in events for flow in event[48]}

    assert begins.keys() == ends.keys() and len(begins) == len(line.messages.start)
    assert all(ends[flow][0] >= begins[flow][0] + 11 * MS and ends[flow][1] != begins[flow][1] for flow in begins)


def test_a_counter_follows_the_activations_that_are_held() -> None:
    line = timeline("1f1b")
    tracks, events, _ = read_trace(timeline_trace(line, 1.0))
    first = next(number for number, text in tracks.items() if text.startswith("counter"))
    levels = [event[30][0] for _, kind, place, event in events if (kind, place) == (4, first)]

    assert max(levels) == 4 and levels[-1] == 0  # rank 0 of 1F1B holds P


def test_large_numbers_survive_the_wire() -> None:
    far = 2**62 + 3
    tracks, events, words = read_trace(trace([Stream("p", "t", [Slice("ä", "c", 0, far, {"n": 300}, (far,))])]))

    assert tracks == {1: "p t"} and words == {1: "ä"}
    assert events[1][0] == far and events[0][3][47] == [far]
    assert fields(events[0][3][4][0]) == {1: [1], 3: [300]}


def test_causes_have_one_name_everywhere() -> None:
    from outlay.schedule.timeline import CAUSES as SIMULATED
    from outlay.show.palette import CAUSES as HATCHED

    assert CAUSES == SIMULATED == tuple(HATCHED)
