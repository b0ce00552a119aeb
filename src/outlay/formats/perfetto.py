"""A Perfetto trace, written by hand: the few messages of its protocol buffers that slices, flows and counters need.

Field numbers are those of `protos/perfetto/trace` in google/perfetto: TracePacket, TrackDescriptor, TrackEvent,
InternedData, DebugAnnotation. Open the file at https://ui.perfetto.dev, which reads it in the browser.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# TracePacket
PACKET, TIMESTAMP, TRACK_EVENT, INTERNED, SEQUENCE, FLAGS, DESCRIPTOR = 1, 8, 11, 12, 10, 13, 60
CLEARED, NEEDS = 1, 2  # sequence_flags: incremental state begins here; is needed here
# TrackDescriptor, ProcessDescriptor, ThreadDescriptor
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER = 1, 2, 3, 4, 5, 8
PID, PROCESS_NAME, TID, THREAD_NAME = 1, 6, 2, 5
# TrackEvent
CATEGORY_IID, ANNOTATION, TYPE, NAME_IID, TRACK, VALUE, FLOW, LAST_FLOW = 3, 4, 9, 10, 11, 30, 47, 48
BEGIN, END, COUNT = 1, 2, 4
# InternedData, its entries, and DebugAnnotation
CATEGORIES, NAMES, ANNOTATION_NAMES = 1, 2, 3
IID, TEXT = 1, 2
ANNOTATION_IID, UNSIGNED = 1, 3
FIXED64, LENGTH = 1, 2


@dataclass(frozen=True)
class Slice:
    """Something that takes time on a track. Slices of one track do not overlap."""

    name: str
    category: str
    start: int  # ns
    end: int
    numbers: Mapping[str, int] = field(default_factory=dict)
    sends: tuple[int, ...] = ()  # flows that begin here
    receives: tuple[int, ...] = ()  # flows that end here


@dataclass(frozen=True)
class Track:
    """One stream of a process: slices in order; or a counter, as (ns, value) steps."""

    process: str
    name: str
    slices: Sequence[Slice] = ()
    steps: Sequence[tuple[int, int]] = ()


def trace(tracks: Iterable[Track]) -> bytes:
    """The whole file: what the tracks are called, the words, then the events of each track in order."""
    tracks = list(tracks)
    words = _Words()
    events = b"".join(each for uuid, track in enumerate(tracks, 1) for each in _events(uuid, track, words))
    opening = _number(FLAGS, CLEARED) + _bytes(INTERNED, words.table())
    return b"".join([*_descriptors(tracks), _packet(opening), events])


# --- the wire -------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    if value < 128:
        return bytes((value,))
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(name: int, value: int) -> bytes:
    return _varint(name << 3) + _varint(value)


def _fixed(name: int, value: int) -> bytes:
    return _varint(name << 3 | FIXED64) + value.to_bytes(8, "little")


def _bytes(name: int, value: bytes) -> bytes:
    return _varint(name << 3 | LENGTH) + _varint(len(value)) + value


def _text(name: int, value: str) -> bytes:
    return _bytes(name, value.encode())


def _packet(content: bytes) -> bytes:
    return _bytes(PACKET, content + _number(SEQUENCE, 1))


# --- what is in it --------------------------------------------------------------------------------------------------


class _Words:
    """Words that events name by a number: each is written once."""

    def __init__(self) -> None:
        self.known: dict[int, dict[str, int]] = {CATEGORIES: {}, NAMES: {}, ANNOTATION_NAMES: {}}
        self.phrases: dict[tuple[object, ...], bytes] = {}

    def number(self, table: int, word: str) -> int:
        """The number of a word, from 1."""
        known = self.known[table]
        return known.setdefault(word, len(known) + 1)

    def said(self, category: str, name: str, numbers: Mapping[str, int]) -> bytes:
        """The words and numbers of a slice: many slices say the same."""
        key = (category, name, *numbers.items())
        if key not in self.phrases:
            found = _number(CATEGORY_IID, self.number(CATEGORIES, category))
            found += _number(NAME_IID, self.number(NAMES, name))
            for word, value in numbers.items():
                note = _number(ANNOTATION_IID, self.number(ANNOTATION_NAMES, word)) + _number(UNSIGNED, value)
                found += _bytes(ANNOTATION, note)
            self.phrases[key] = found
        return self.phrases[key]

    def table(self) -> bytes:
        """All words so far."""
        return b"".join(
            _bytes(table, _number(IID, number) + _text(TEXT, word))
            for table, known in self.known.items()
            for word, number in known.items()
        )


def _descriptors(tracks: Sequence[Track]) -> Iterator[bytes]:
    """Processes and their tracks, in the order in which they are given."""
    processes = {name: pid for pid, name in enumerate(dict.fromkeys(track.process for track in tracks), 1)}
    base = len(tracks)
    for name, pid in processes.items():
        process = _number(PID, pid) + _text(PROCESS_NAME, name)
        yield _packet(_bytes(DESCRIPTOR, _number(UUID, base + pid) + _bytes(PROCESS, process)))
    for uuid, track in enumerate(tracks, 1):
        pid = processes[track.process]
        what = _number(UUID, uuid) + _number(PARENT, base + pid)
        if track.steps:
            what += _text(NAME, track.name) + _bytes(COUNTER, b"")
        else:
            what += _bytes(THREAD, _number(PID, pid) + _number(TID, base + uuid) + _text(THREAD_NAME, track.name))
        yield _packet(_bytes(DESCRIPTOR, what))


def _events(uuid: int, track: Track, words: _Words) -> Iterator[bytes]:
    """Begin and end of each slice; each step of a counter."""
    begin, end, count = (_number(TYPE, kind) + _number(TRACK, uuid) for kind in (BEGIN, END, COUNT))
    for each in track.slices:
        flows = b"".join(_fixed(FLOW, flow) for flow in each.sends)
        flows += b"".join(_fixed(LAST_FLOW, flow) for flow in each.receives)
        said = words.said(each.category, each.name, each.numbers)
        yield _event(each.start, begin + said + flows)
        yield _event(each.end, end)
    for time, value in track.steps:
        yield _event(time, count + _number(VALUE, value))


def _event(time: int, content: bytes) -> bytes:
    whole = STAMP + _varint(time) + NEEDED + _varint(len(content)) + content + SAME
    return OPEN + _varint(len(whole)) + whole


# What every event's packet holds beside its time and content.
OPEN, STAMP = _varint(PACKET << 3 | LENGTH), _varint(TIMESTAMP << 3)
NEEDED, SAME = _number(FLAGS, NEEDS) + _varint(TRACK_EVENT << 3 | LENGTH), _number(SEQUENCE, 1)
