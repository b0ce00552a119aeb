"""A hundred thousand broken files over the readers of all formats: each ends in a reading or an error. By hand."""

import random
import time
from pathlib import Path

import pytest

from outlay.formats.known import FORMATS
from test_format_fuzz import BOMBS, CODES, JSON, LOG, PIECES, SCRIPT, YAML, broken, checked, outcome, written

CASES = Path(__file__).parent.parent / "check_cases"
INPUTS, SLOW = 100_000, 5.0  # of all formats together; seconds that one reading may take
STRANGE = [
    *PIECES, b"$(rm -rf /)", b"`id`", b"${A:-${B:-${C}}}", b"9" * 400, b"1e308", b"-0", b"0x10", b"+", b"\\\\\n",
    b"[" * 300, b"{" * 300, b"(" * 300, b"- " * 300, b"a: &x [*x]\n", b"<<: *x\n", b"%YAML 9\n", b"---\n---\n",
    b"\xe2\x80\xa8", b"\x00\x00", b"\xf0\x9f\x92\xa9", b'"' * 3, b"'" * 3, b"==", b"\t\t", b"null", b"true: false",
]  # fmt: skip


def samples(name: str) -> list[bytes]:
    """Good files to break: the format's own, and those that people paste, which it refuses or reads in its way."""
    return [written(FORMATS[name]), SCRIPT, LOG, YAML, JSON, *(path.read_bytes() for path in sorted(CASES.iterdir()))]


def made(files: list[bytes], chance: random.Random) -> bytes:
    """One hostile file."""
    kind = chance.randrange(20)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(2000)))
    if kind == 1:
        return b"".join(chance.choice(STRANGE) for _ in range(chance.randrange(60)))
    text = files[0] if kind < 12 else chance.choice(files)
    if kind == 2:
        at, bomb = chance.randrange(len(text) + 1), chance.choice(sorted(BOMBS))
        return text[:at] + BOMBS[bomb][:2000] + text[at:]
    text = broken(text, chance)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(STRANGE) + text[at + chance.randrange(8) :]
    return text


@pytest.mark.parametrize("name", FORMATS)
def test_no_file_of_a_hundred_thousand_is_a_fault_of_the_program(name: str) -> None:
    files, chance = samples(name), random.Random(name)
    readings = 0

    for number in range(INPUTS // len(FORMATS)):
        content, before = made(files, chance), time.perf_counter()
        said = outcome(FORMATS[name].read, content)
        readings += said == "read"
        taken = time.perf_counter() - before
        for one in (said, checked(content)) if number % 4 == 0 else (said,):
            assert one == "read" or CODES.fullmatch(one), content
        assert taken < SLOW, content

    assert readings > 100  # both ends are reached
