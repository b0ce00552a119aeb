"""Laws of reading logs: what was printed is read back, whatever stands around it. And hostile logs."""

import random
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.errors import InputError
from outlay.formats.logs import collect
from outlay.formats.logs.known import Reading, read
from outlay.formats.logs.lines import lines_from, lines_in
from outlay.formats.logs.pace import pace_of
from outlay.formats.logs.record import Log
from test_logs import ALL, SHAPES, shaped

TOLD = ("seconds", "tokens", "samples", "samples_per_second", "tokens_per_second", "tokens_per_second_per_device",
        "flops_per_second", "mfu", "data_seconds")  # fmt: skip
NOISE = (
    "WARNING: NCCL version 2.27.5+cuda12.9",
    "[rank3]: Traceback (most recent call last):",
    "    self.fn(step=3, loss=None)",
    "Loading checkpoint shards: 100%|##########| 4/4 [00:05<00:00,  1.30s/it]",
    "number of parameters: 124 million; iterations: many | memory: some | loss: none",
    "\u2603 caf\u00e9 \u4e2d\u6587",
    "{'eval_loss': 2.0, 'eval_runtime': 3.1}",
    " iteration 12 of the loader | step: x | tps: fast",
    "",
)
PREFIXES = ("", "[rank{rank}]: ", "[default{rank}]:", "{rank}: ", "[1,{rank}]<stdout>:")
COLOURS = ("", "\x1b[32m", "\x1b[0m\x1b[1;31m")
KNOWN = ("megatron", "neox", "torchtitan", "nanotron", "maxtext", "xtuner", "nanochat", "nanogpt", "deepspeed")


def numbers(log: Log) -> list[tuple[int, int]]:
    return [(step.run, step.number) for step in log.steps]


@st.composite
def runs(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A framework, and the numbers of its steps."""
    framework = draw(st.sampled_from(KNOWN))
    first, every = draw(st.integers(2, 10**6)), draw(st.integers(1, 500))
    return framework, [first + every * index for index in range(draw(st.integers(1, 12)))]


def text_of(framework: str, step: int) -> str:
    return SHAPES[framework].format(step=step, samples=128 * step)


@settings(max_examples=150, deadline=None)
@given(runs(), st.data())
def test_steps_are_read_back_whatever_is_interleaved(run: tuple[str, list[int]], data: st.DataObject) -> None:
    framework, steps = run
    prefix = data.draw(st.sampled_from(PREFIXES)).format(rank=3)
    colour, end = data.draw(st.sampled_from(COLOURS)), data.draw(st.sampled_from(("\n", "\r\n")))
    lines = []
    for step in steps:
        lines += data.draw(st.lists(st.sampled_from(NOISE), max_size=4))
        lines.append(f"{colour}{prefix}{text_of(framework, step)}{colour and chr(27) + '[0m'}")
    log = read(lines_in(end.join([*lines, ""])))

    assert (log.framework, numbers(log)) == (framework, [(0, step) for step in steps])
    pace = pace_of(log, ALL)
    assert pace.seconds is not None and abs(pace.seconds / 2.5 - 1) < 1e-3


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(2, 5), st.randoms(use_true_random=False))
def test_the_order_of_ranks_does_not_matter(run: tuple[str, list[int]], ranks: int, shuffle: random.Random) -> None:
    framework, steps = run
    written = [[f"[rank{rank}]: {text_of(framework, step)}" for step in steps] for rank in range(ranks)]
    mixed, left = list[str](), [list(one) for one in written]
    while any(left):
        mixed.append(shuffle.choice([one for one in left if one]).pop(0))

    log, alone = (read(lines_in("\n".join([*lines, ""]))) for lines in (mixed, written[0]))
    assert log.steps == alone.steps and (log.seen, log.runs) == (len(steps), 1)
    assert [(one.kind, one.bytes, one.rank) for one in log.memory] == [(one.kind, one.bytes, 0) for one in alone.memory]


@settings(max_examples=60, deadline=None)
@given(runs(), st.integers(0, 10))
def test_a_restart_repeats_steps_and_loses_none(run: tuple[str, list[int]], back: int) -> None:
    framework, steps = run
    again = steps[max(0, len(steps) - 3 - back) :]
    text = "".join(f"[rank0]: {text_of(framework, step)}\n" for step in [*steps, *again])
    log = read(lines_in(text))
    expected = [(0, step) for step in steps] + [(1, step) for step in again if len(again) > 1]

    assert numbers(log) == (expected if len(steps) > 1 else [(0, steps[0])])


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(SHAPES)), st.data())
def test_a_cut_line_never_tells_a_wrong_step(framework: str, data: st.DataObject) -> None:
    whole = shaped(framework)
    lines = whole.splitlines()
    end = data.draw(st.integers(1, len(lines[-1]) - 1))
    for closing in ("", "\n"):
        log = read(lines_in("\n".join([*lines[:-1], lines[-1][:end]]) + closing))
        full = read(lines_in(whole)).steps[-1]
        for step in log.steps[-1:]:
            for name in TOLD:
                assert getattr(step, name) in (None, getattr(full, name)), (name, lines[-1][:end])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KNOWN), st.integers(1, 400))
def test_the_size_of_a_piece_does_not_matter(framework: str, size: int) -> None:
    content = ("\ufeffcaf\u00e9\n" + shaped(framework)).encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]

    assert read(lines_from(pieces)) == read(lines_in(content))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_log_in_any_of_the_usual_encodings_is_read(encoding: str) -> None:
    text = ("caf\u00e9\n" + shaped("megatron")).encode(encoding)

    assert len(read(lines_in(text)).steps) == 5


def test_zero_bytes_and_bytes_of_no_character_are_passed_over() -> None:
    content = shaped("torchtitan").encode().replace(b"step:", b"\0step:").replace(b"INFO", b"\xff\xfe\x80INFO")

    assert len(read(lines_in(content)).steps) == 5


def test_bars_that_are_redrawn_are_lines() -> None:
    text = "***** Running training *****\n" + "".join(
        f"\r  1%|          | {step}/100 [00:{step:02d}<02:00,  2.50s/it]" for step in range(1, 20)
    )
    log = read(lines_in(text + "\n"))

    assert [step.number for step in log.steps] == list(range(1, 20)) and pace_of(log).seconds == 2.5


def test_nan_is_a_loss_and_no_time() -> None:
    text = shaped("torchtitan").replace("7.10000", "nan").replace("tps: 6,554", "tps: 0")
    log = read(lines_in(text))

    assert all(step.loss != step.loss for step in log.steps)
    assert pace_of(log, ALL).seconds is None


def test_no_known_line_is_an_error_that_shows_those_of_each_framework() -> None:
    for content in (b"", b"hello\n" * 100, bytes(range(256)) * 50):
        with pytest.raises(InputError) as caught:
            read(lines_in(content))
        (fault,) = caught.value.faults
        assert fault.code == "LOG001" and "elapsed time per iteration" in fault.rule and "tps:" in fault.rule


# --- hostile, long ----------------------------------------------------------------------------------------------------


def broken(seed: int) -> bytes:
    """Lines of several frameworks with bytes cut, doubled, changed, joined."""
    dice = random.Random(seed)
    names = dice.sample(list(SHAPES), 3)
    content = bytearray("".join(shaped(name) for name in names).encode())
    for _ in range(dice.randint(1, 60)):
        at, size = dice.randrange(len(content) + 1), dice.choice((1, 1, 3, 20, 200))
        match dice.randrange(5):
            case 0:
                del content[at : at + size]
            case 1:
                content[at:at] = content[at : at + size] * dice.randint(1, 3)
            case 2:
                content[at:at] = bytes(dice.randrange(256) for _ in range(dice.randint(1, 8)))
            case 3:
                content[at:at] = dice.choice(
                    (b"9" * 30, b"1e999", b"|", b": ", b"\n", b"\r", b"-", b"nan", b"[Rank 9]")
                )
            case _:
                content[at : at + 1] = b"0"
    return bytes(content)


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_broken_logs_end_in_a_reading_or_an_error(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        try:
            log = read(lines_in(broken(seed)))
        except InputError:
            continue
        pace = pace_of(log, ALL)
        assert pace.seconds is None or pace.seconds > 0


@pytest.mark.parametrize(
    "line",
    ["a" * 200_000, "| " * 100_000, "iteration 1/ 2 | " * 20_000, "{'loss': " + "[" * 50_000, " " * 200_000,
     "step: 1 loss: 1 memory: " + "9" * 60_000, "Step 1 | " + "a:1 " * 40_000, "[" * 100_000, "x ...: " * 30_000,
     "  1%|" + "#" * 100_000],
    ids=range(10),
)  # fmt: skip
def test_a_line_without_end_takes_no_time(line: str) -> None:
    start = time.perf_counter()
    log = read(lines_in((line + "\n") * 5 + shaped("nanochat")))

    assert log.seen and time.perf_counter() - start < 5


def most_memory(blocks: int) -> int:
    """The most that Python holds while a log of so many thousand steps is read."""
    one = shaped("nanogpt", range(1))

    def pieces() -> Iterator[bytes]:
        for block in range(blocks):
            yield "".join(one.replace("iter 0", f"iter {block * 1000 + index}") for index in range(1000)).encode()

    reading = Reading()
    tracemalloc.start()
    for line in lines_from(pieces()):
        reading.take(line)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.log().seen == blocks * 1000
    return most


def test_a_long_log_is_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MOST_STEPS", 500)

    assert most_memory(6) < 1.1 * most_memory(2)


def test_the_first_step_that_is_kept_of_a_long_log_is_no_start_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MOST_STEPS", 20)
    log = read(lines_in(shaped("nanogpt", range(50))))

    assert (log.seen, log.steps[0].number) == (50, 30) and pace_of(log).left_out == ()


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_of_several_ranks_the_slowest_and_the_fullest_count(order: list[int], steps: int) -> None:
    text = ""
    for step in range(10, 10 + steps):
        for rank in order:
            line = text_of("torchtitan", step).replace("6,554", f"6,5{rank}4").replace("66.30GiB", f"6{rank}.30GiB")
            text += f"[rank{rank}]:{line}\n"
    log = read(lines_in(text))

    assert [step.tokens_per_second_per_device for step in log.steps] == [6504] * steps
    assert [(one.rank, one.bytes) for one in log.memory] == [(5, 65.3 * 2**30)]
