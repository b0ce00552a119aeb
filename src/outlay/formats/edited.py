"""Edits of a file at the places of its settings: words go, change or come, and all other bytes stay as they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError
from .json_comments import ends_at
from .setting import Edit, Finding

MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
WORD = re.compile(r"""[ \t]+(?!--?[A-Za-z])(?:"[^"\n]*"|'[^'\n]*'|\$\(\([^)\n]*\)\)|\$\{[^}\n]*\}|[^\s\\;|&()<>"']+)""")
EQUALS = re.compile(r"""=(?:"[^"\n]*"|'[^'\n]*'|[^\s\\;|&()<>"']*)""")
KEY = re.compile(r"""(?P<quote>["'])(?P<name>[^"'\n]+)(?P=quote)\s*:\s*$""")
YAML_KEY = re.compile(r"""(?P<quote>["']?)(?P<name>[\w.-]+)(?P=quote)[ \t]*:[ \t]+""")


class UnmendableError(ValueError):
    """An edit whose place is not what it should be: a value that a variable holds, a log, another way of writing."""


@dataclass(frozen=True)
class Span:
    """A piece of the text and what takes its place."""

    start: int
    end: int
    text: str


def edited(content: bytes, findings: Sequence[Finding]) -> bytes:
    """The file with the edits of some findings. Raises UnmendableError where one cannot be made at its place."""
    encoding, mark = next(((name, mark) for name, mark in MARKS.items() if content.startswith(mark)), ("utf-8", b""))
    text = content[len(mark) :].decode(encoding)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    spans = [span for one in findings for span in _spans(text, starts, one)]
    return mark + _made(text, spans).encode(encoding)


def _made(text: str, spans: Sequence[Span]) -> str:
    """The text with its pieces changed, from the end on."""
    last = len(text) + 1
    for span in sorted(set(spans), key=lambda one: (one.start, one.end), reverse=True):
        if span.end > last:
            raise UnmendableError("two changes of one place")
        text, last = text[: span.start] + span.text + text[span.end :], span.start
    return text


def _spans(text: str, starts: Sequence[int], finding: Finding) -> list[Span]:
    """What the edits of one finding change; a setting that goes as another one comes is one change."""
    here = _offset(text, starts, finding.line, finding.column)
    new = [one for one in finding.edits if not one.line and one.value is not None]
    old = [one for one in finding.edits if one.line]
    made = list[Span]()
    for one in old:
        at = _offset(text, starts, one.line, one.column)
        if one.value is None and new and at == here:
            made.append(_renamed(text, at, one, new.pop(0)))
        else:
            made.append(_changed(text, at, one))
    return made + ([_inserted(text, here, new)] if new else [])


def _offset(text: str, starts: Sequence[int], line: int, column: int) -> int:
    if not 0 < line <= len(starts) or column < 1:
        raise UnmendableError("no place in the file")
    return min(starts[line - 1] + column - 1, len(text))


# --- one change, in each way of writing ----------------------------------------------------------------------------


def _changed(text: str, at: int, edit: Edit) -> Span:
    """Another value of a setting, or its end."""
    if flag := FLAG.match(text, at):
        end = _flag_end(text, flag.end(), edit.words)
        if edit.value is None:
            return _cut(text, at, end)
        if text[flag.end() : flag.end() + 1] == "=":
            return Span(flag.end(), end, f"={edit.value}")
        return Span(flag.end(), end, f" {edit.value}" if edit.value else "")
    start, value, end = _entry(text, at)
    if edit.value is not None:
        return Span(value, end, edit.value)
    return _entry_cut(text, start, end) if start != at or text[start] in "\"'" else _line_cut(text, start, end)


def _renamed(text: str, at: int, old: Edit, new: Edit) -> Span:
    """One setting in the place of another."""
    if flag := FLAG.match(text, at):
        return Span(at, _flag_end(text, flag.end(), old.words), _as_flag(new))
    start, _, end = _entry(text, at)
    return Span(start, end, _as_entry(text, start, new))


def _inserted(text: str, at: int, new: Sequence[Edit]) -> Span:
    """Settings that the file does not have yet, before the one that the finding is about."""
    if FLAG.match(text, at):
        return Span(at, at, "".join(f"{_as_flag(one)} " for one in new))
    start, _, _ = _entry(text, at)
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if text[start] in "\"'" and _in_braces(text, start):
        return Span(start, start, "".join(f"{_as_entry(text, start, one)}, " for one in new))
    if before.strip():
        raise UnmendableError("not at the beginning of a line")
    return Span(start, start, "".join(f"{_as_entry(text, start, one)}{_end(text)}{before}" for one in new))


def _as_flag(edit: Edit) -> str:
    return f"--{edit.name.lstrip('-').replace('_', '-')} {edit.value}".rstrip()


def _as_entry(text: str, at: int, edit: Edit) -> str:
    """As JSON has it where the key beside it is in quotes, else as YAML has it; a switch is true."""
    value = edit.value or "true"
    quote = text[at] if text[at] in "\"'" else ""
    return f"{quote}{edit.name}{quote}: {value}"


def _end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _in_braces(text: str, at: int) -> bool:
    return text.count("{", 0, at) > text.count("}", 0, at)


def _flag_end(text: str, at: int, words: int) -> int:
    """The end of a flag's value of so many words on its line."""
    if equals := EQUALS.match(text, at):
        return equals.end()
    for _ in range(words):
        match = WORD.match(text, at)
        if match is None:
            raise UnmendableError("its value stands elsewhere")
        at = match.end()
    return at


def _cut(text: str, start: int, end: int) -> Span:
    """Words out of a line, with the blanks before them; a line that is empty then goes, unless it ends a command."""
    begin, stop = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    head, tail = text[begin:start], text[end:stop]
    if head.strip():
        return Span(begin + len(head.rstrip(" \t")), end, "")
    if tail.strip() not in ("", "\\"):
        return Span(start, stop - len(tail.lstrip(" \t")), "")
    ends_command = text[:begin].rstrip("\r\n").endswith("\\") and not tail.strip()
    return Span(begin, stop if ends_command else _next(text, stop), "")


def _line_end(text: str, at: int) -> int:
    match = re.compile(r"[\r\n]").search(text, at)
    return match.start() if match else len(text)


def _next(text: str, stop: int) -> int:
    """The start of the next line."""
    return stop + (2 if text.startswith("\r\n", stop) else 1 if stop < len(text) else 0)


def _entry(text: str, at: int) -> tuple[int, int, int]:
    """Where an entry of JSON or YAML begins, where its value begins, and where that ends; `at` is key or value."""
    line = text.rfind("\n", 0, at) + 1
    if before := KEY.search(text[line:at]):
        return line + before.start(), at, _value_end(text, at)
    key = YAML_KEY.match(text, at)
    if key is None:
        raise UnmendableError("no setting stands there")
    if _in_braces(text, at):
        return at, key.end(), _value_end(text, key.end())
    value = re.compile(r"""(?:"[^"\r\n]*"|'[^'\r\n]*'|[^\s#](?:[^\r\n#]|(?<!\s)#)*)""").match(text, key.end())
    if value is None:
        raise UnmendableError("its value stands on other lines")
    return at, key.end(), key.end() + len(value[0].rstrip())


def _value_end(text: str, at: int) -> int:
    """The end of a value as JSON has it."""
    try:
        return ends_at(text, at)
    except InputError:
        raise UnmendableError("no value of JSON stands there") from None


def _entry_cut(text: str, start: int, end: int) -> Span:
    """An entry out of an object, with one comma, and its line where nothing else stands on it."""
    if after := re.compile(r"\s*,[ \t]*").match(text, end):
        alone = not text[text.rfind("\n", 0, start) + 1 : start].strip() and text[after.end()] in "\r\n"
        return _line_cut(text, start, after.end()) if alone else Span(start, after.end(), "")
    before = re.compile(r",\s*$").search(text[:start])
    return Span(before.start() if before else start, end, "")


def _line_cut(text: str, start: int, end: int) -> Span:
    begin, stop = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    behind = text[end:stop].strip()
    if text[begin:start].strip() or (behind and not behind.startswith(("#", "//"))):
        raise UnmendableError("something else stands on the line")
    return Span(begin, _next(text, stop), "")
