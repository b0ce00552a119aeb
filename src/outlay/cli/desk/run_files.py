"""The files of a run in a question's body: what is wrong with them, and their corrected copies."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import Fault, InputError, quoted
from ..flags import Given
from .words import given_of

if TYPE_CHECKING:
    from ...show.check.answer import Answer
    from ..check.files import Held

Record = dict[str, Any]
LONGEST_NAME = 100


def content_of(file: Mapping[str, Any]) -> bytes:
    """The bytes of one file."""
    return str(file.get("text") or "").encode("utf-8", "surrogatepass")


def check(question: Mapping[str, Any]) -> Record:
    """What `outlay check` prints of them."""
    from ...show.check.record import check_record

    return check_record(_checked(question)[0])


def fix(question: Mapping[str, Any]) -> Record:
    """The corrected copy of each file in which something can be mended, as `outlay check --fix` writes it."""
    from ..check.mending import beside, corrected

    answer, held = _checked(question)
    made = []
    for one in held:
        own = [each.finding for each in answer.placed if each.file.title == one.title]
        content = corrected(one, own)[0]
        if content is not None:
            made.append({"name": beside(one.path), "text": content.decode("utf-8", "replace")})
    return {"files": made}


def _checked(question: Mapping[str, Any]) -> tuple["Answer", tuple["Held", ...]]:
    from ..check.files import held_of
    from ..checking import answer_of

    if question.get("config") is not None:
        rule = "check takes the model of its files, or a name of the catalogue"
        raise InputError(Fault("WEB002", "check takes no config", rule, "a config", "leave it out, and name the model"))
    files = _files(question)
    words = dict(question.get("words") or {})
    model = words.pop("model", None)
    given = given_of("check", words)
    named = given_of("count", {} if model is None else {"model": model}).text("model")
    held = held_of([(name, content) for name, content in files])
    asked = Given({**given.values, "files": None, "file": held[0].path, "model": named})
    return answer_of(asked, held, {}), held


def _files(question: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """The names and contents of the body's files."""
    files = [*(question.get("files") or []), *([question["file"]] if question.get("file") else [])]
    names = [str(one.get("name") or "file")[:LONGEST_NAME].replace("\0", "") or "file" for one in files]
    if not files:
        rule = "the body holds the files of a run: the name and the text of each"
        raise InputError(Fault("CLI004", "no file is given", rule, "nothing", '"file": {"name": "train.sh", ..}'))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        rule = "each file of a run is given once, with a name of its own"
        what = f"{quoted(twice[0])} is given twice"
        raise InputError(Fault("CLI005", what, rule, quoted(twice[0]), "leave one out"))
    return [(name, content_of(one)) for name, one in zip(names, files, strict=True)]
