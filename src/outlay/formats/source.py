"""The text of a file: decoded, with lines ended in one way, or an error with its place."""

from ..errors import Fault, InputError

LARGEST_FILE = 16 * 2**20  # bytes; a configuration is a few kilobytes, the log of a short run some megabytes
MOST_TEXT = 2**20  # characters of what is not a log


def text_of(content: bytes) -> str:
    """The text, without a byte order mark, lines ended by a line feed. Raises InputError (FMT002)."""
    if len(content) > LARGEST_FILE:
        raise InputError(_no_text(f"more than {LARGEST_FILE:,} bytes", "give the part with the settings"))
    encoding = "utf-8-sig"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise InputError(
            _no_text(f"line {line} column {column}: byte 0x{content[error.start]:02x} is not {encoding[:5].upper()}")
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        column = text.index("\0") - text.rfind("\n", 0, text.index("\0"))
        raise InputError(_no_text(f"line {line} column {column}: a zero byte, so a binary file"))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def short(text: str) -> str:
    """The text, where it is no longer than what people write. Raises InputError (FMT002)."""
    if len(text) > MOST_TEXT:
        raise InputError(_no_text(f"{len(text):,} characters", f"settings in {MOST_TEXT:,} characters or less"))
    return text


def place_of(text: str, index: int) -> tuple[int, int]:
    """Line and column of a character, both from 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _no_text(got: str, fix: str = "save it as UTF-8 text") -> Fault:
    return Fault(
        "FMT002", "the file is not the text of settings", f"text in UTF-8, up to {LARGEST_FILE:,} bytes", got, fix
    )
