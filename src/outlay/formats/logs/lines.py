"""The lines of a log, one by one: decoded, however they end, without colours, of several ranks on one line apart."""

import bz2
import codecs
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from ...errors import Fault, InputError, quoted
from .prefixes import plain
from .record import Line

CHUNK = 2**16  # bytes read at once
LATE = 24  # characters before which a sign stands at the start of a line
LONGEST = 2**16  # characters of a line; what stands behind them is left out
STDIN = "-"
# Where a rank wrote its line behind another one's, without a line's end between them.
GLUED = re.compile(r"(?<=[^\s:])\s*(?=\[Rank \d+\] \(after |\[rank\d+\]:|\[titan\] \d|\{'loss': |completed step: \d)")
SIGNS = ("[Rank ", "[rank", "[titan] ", "{'loss': ", "completed step: ")
PACKED = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}
ZSTANDARD = b"\x28\xb5\x2f\xfd"


class Splitter:
    """Bytes in, lines out; what is not ended yet waits."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._rest = ""
        self._skipping = False

    def take(self, content: bytes) -> Iterator[Line]:
        """The lines that these bytes end."""
        if self._decoder is None and content:
            wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
            self._decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace")
        text = self._rest + self._decoder.decode(content) if self._decoder else ""
        *done, self._rest = re.split(r"[\r\n]", text)
        for one in done:
            if not self._skipping:
                yield from lines_of(one)
            self._skipping = False
        if len(self._rest) > LONGEST:
            if not self._skipping:
                yield from lines_of(self._rest)
            self._rest, self._skipping = "", True

    def rest(self) -> Iterator[Line]:
        """What the file ends with, where that is no whole line."""
        if self._rest.strip() and not self._skipping:
            yield from lines_of(self._rest, whole=False)
        self._rest = ""


def lines_of(text: str, whole: bool = True) -> Iterator[Line]:
    """The lines in a physical one."""
    bare = plain(text[:LONGEST])
    if not bare or bare.isspace():
        return
    parts = GLUED.split(bare) if any(bare.find(sign, LATE) > 0 for sign in SIGNS) else [bare]
    for index, part in enumerate(parts):
        yield Line(part, whole or index < len(parts) - 1)


def lines_in(content: bytes | str) -> Iterator[Line]:
    """The lines of a text that is held whole."""
    yield from lines_from([content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content])


def lines_from(chunks: Iterable[bytes]) -> Iterator[Line]:
    """The lines of bytes as they come."""
    splitter = Splitter()
    for chunk in chunks:
        yield from splitter.take(chunk)
    yield from splitter.rest()


def chunks_of(path: str) -> Iterator[bytes]:
    """A log in pieces, never whole; `-` is standard input. Raises InputError (LOG002)."""
    try:
        if path == STDIN:
            yield from _pieces(getattr(sys.stdin, "buffer", None) or _encoded(sys.stdin))
            return
        with _opened(path) as file:
            yield from _pieces(file)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise unreadable(path, getattr(error, "strerror", None) or str(error)) from None


def _opened(path: str) -> IO[bytes]:
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(ZSTANDARD):
        raise unreadable(path, "packed by zstd", "zstd -dc FILE | outlay watch -")
    how: Any = next((how for magic, how in PACKED.items() if start.startswith(magic)), open)
    return cast("IO[bytes]", how(path, "rb"))


def _pieces(file: Any) -> Iterator[bytes]:
    """What can be read now, at most so many bytes at once."""
    read = getattr(file, "read1", file.read)
    while piece := read(CHUNK):
        yield piece


def _encoded(stream: IO[str]) -> Any:
    class Encoded:
        def read(self, size: int) -> bytes:
            return stream.read(size).encode("utf-8", "surrogatepass")

    return Encoded()


def unreadable(path: str, why: str, fix: str = "the path of a log, or - for standard input") -> InputError:
    """The error of a log that cannot be read."""
    rule = "the text that a training run prints; packed by gzip, xz or bzip2, or not"
    return InputError(Fault("LOG002", f"{quoted(path)} cannot be read", rule, why, fix))
