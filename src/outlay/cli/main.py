"""`outlay`: the commands, and how a command line is read."""

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from .commands import COMMANDS, Command
from .exits import INTERRUPTED, UNHEARD, UNREADABLE, YES
from .flags import Flag, Given
from .help import asked_for_help
from .streams import UnsaidError, let_go, open_streams, say


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    open_streams()
    try:
        return _written(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader left, as `head` does: no fault of ours, nobody to tell, and neither yes nor no
        let_go(sys.stdout, sys.stderr)
        return UNHEARD


def _written(words: list[str]) -> int:
    from .output import tell_faults

    try:
        return _answer(words)
    except UnsaidError as error:
        rule, fix = "the answer goes to standard output", "a terminal, a pipe, or a file on a disk with room"
        fault = Fault("OUT002", "standard output cannot be written", rule, str(error), fix)
        tell_faults([fault], as_json=False, plain="--plain" in words)
        return UNREADABLE


def _answer(words: list[str]) -> int:
    from .output import tell_faults

    as_json, plain = _as_json(words), "--plain" in words
    try:
        return _run(words)
    except InputError as error:
        tell_faults(error.faults, as_json, plain)
    except (KeyboardInterrupt, BrokenPipeError, UnsaidError):
        raise
    except Exception as error:  # a fault of the program: said shortly, never as a traceback
        tell_faults([_unexpected(error, "--debug" in words)], as_json, plain)
    return UNREADABLE


def _as_json(words: list[str]) -> bool:
    """Whether the answer is one object."""
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


def _unexpected(error: Exception, debug: bool) -> Fault:
    fix = "run it again with --debug, and report it with the file that it names"
    if debug:
        import tempfile
        import traceback

        with tempfile.NamedTemporaryFile("w", prefix="outlay-", suffix=".txt", delete=False, encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        fix = f"report it with {file.name}, which holds the traceback, and with this command line"
    rule = "every question gets an answer or a fault of its own"
    return Fault(
        "CLI000",
        "outlay met a fault of its own, which is not yours",
        rule,
        quoted(f"{type(error).__name__}: {error}"),
        fix,
    )


def _run(words: list[str]) -> int:
    """Read a command line and answer it. Every fault of its flags is in the one InputError."""
    import cyclopts

    if said := asked_for_help(words):
        say(said)
        return YES
    _known(words)
    left, faults = _without_strangers(words)
    app = _app(words)
    while True:
        try:
            called, bound, unused, _ = app.parse_known_args(left)
            break
        except cyclopts.CycloptsError as error:
            faults += [fault for fault in [_fault(error, words)] if fault not in faults]
            kept = _without(left, error)
            if kept == left:
                raise InputError(*faults) from None
            left = kept
    faults += [_too_many(word, words) for word in unused]
    command, result = _command(words), called(*bound.args, **bound.kwargs)
    if not isinstance(result, Given) or command is None:
        raise InputError(*faults, _no_command(words))
    if faults:
        raise InputError(*faults, *_further(command, result))
    return command.run(result)


def _further(command: Command, given: Given) -> tuple[Fault, ...]:
    """What else is wrong, beside flags that could not be read: so that one run says it all."""
    try:
        if command.module == "counting":
            from .question import read_question

            read_question(given)
        elif command.module == "planning":
            from .searching import read_search

            read_search(given)
    except InputError as error:
        return error.faults
    return ()


def _app(words: list[str]) -> Any:
    """The parser of the one command that is asked for: the others would only take time."""
    from cyclopts import App

    app = App(
        name="outlay", help_flags=[], version_flags=[], result_action="return_value", suppress_keyboard_interrupt=False
    )
    command = _command(words)
    if command:
        app.command(command.function({_flag_in(word) for word in words}), name=command.name)
    return app


def _known(words: list[str]) -> None:
    """A command that does not exist is told apart before anything is read."""
    names = [command.name for command in COMMANDS]
    if words[0] not in names:
        raise InputError(_no_command(words))


def _no_command(words: list[str]) -> Fault:
    names = [command.name for command in COMMANDS]
    close = nearest(words[0], names)
    fix = (
        f"did you mean outlay {close[0]}?" if close else "the command comes first: outlay count MODEL --on 64xh100-sxm"
    )
    return Fault(
        "CLI003", f"there is no command {quoted(words[0])}", f"commands: {', '.join(names)}", quoted(words[0]), fix
    )


def _command(words: list[str]) -> Command | None:
    return next((command for command in COMMANDS if words and command.name == words[0]), None)


def _fault(error: Any, words: list[str]) -> Fault:
    """A parser's complaint in our words."""
    kind, command = type(error).__name__, f"outlay {' '.join(words[:1])}"
    name = error.argument.name if getattr(error, "argument", None) else "the command line"
    if kind == "RepeatArgumentError":
        name = str(error.token.keyword)
        forms = _spellings(_flag_in(name), words)
        got = " and ".join(word for word in words if _flag_in(word) in forms)
        return Fault("CLI002", f"{name} is given several times", f"{name} is given once", got, "leave one of them out")
    if kind == "UnknownOptionError":  # `-` alone, where a command does not read standard input
        got = _token(error)
        return Fault("CLI005", f"{got} is no argument here", f"{command} reads files", got, "give the path of a file")
    rule, got = {
        "MissingArgumentError": (f"{name} needs a value", "nothing after it"),
        "CoercionError": (f"{name} is a switch: it takes no value, or true or false", _token(error)),
    }.get(kind, ("flags and values as --help lists them", quoted(" ".join(str(error).split()))))
    return Fault("CLI002", f"{name} cannot be read", rule, got, f"{command} --help lists {name}")


def _token(error: Any) -> str:
    token = getattr(error, "token", None)
    return quoted(token.value or token.keyword) if token is not None else "something else"


def _flag_in(word: str) -> str:
    """The flag that a word gives, in the spelling of the help; empty where it gives none."""
    return word.partition("=")[0].replace("_", "-") if re.match("--?[A-Za-z]", word) else ""


def _spellings(name: str, words: list[str]) -> set[str]:
    """All names of the flag that has this one."""
    command = _command(words)
    return next(({*flag.forms} for flag in _flags(command) if name in flag.forms), {name})


def _flags(command: Command | None) -> tuple[Flag, ...]:
    return command.flags() if command else ()


def _without(words: list[str], error: Any) -> list[str]:
    """The command line without the flag that could not be read, so that the rest is still checked."""
    token, again = getattr(error, "token", None), type(error).__name__ == "RepeatArgumentError"
    alone = again or type(error).__name__ == "UnknownOptionError"
    names = (token.keyword or token.value,) if alone and token else getattr(error.argument, "names", ())
    flags = {form for name in names for form in _spellings(_flag_in(name) or name, words)}
    for index in range(len(words) - 1, 0, -1):
        if (_flag_in(words[index]) or words[index]) in flags:
            more = again and "=" not in words[index] and _flag_in(words[index]) in _valued(_command(words))
            return words[:index] + words[index + 1 + more :]
    return words


def _without_strangers(words: list[str]) -> tuple[list[str], list[Fault]]:
    """The command line without flags that do not exist, and their faults. The word after an unknown flag is its value
    where the command has no place for one more argument. A value that begins with - is joined to its flag."""
    command, waiting = _command(words), ""  # the flag whose value comes next
    valued, known = _valued(command), _valued(command) | _switches(command)
    kept, faults, places, doubtful = words[:1], list[Fault](), list[int](), list[int]()
    for index, word in enumerate(words[1:], 1):
        flag, before, waiting = _flag_in(word), waiting, ""
        if word == "--":
            kept += words[index:]
            break
        if before and re.match(r"-[\d.]", word):
            kept[-1] += f"={word}"
        elif before and (before in _dashed(command) or not word.startswith("-")):
            kept.append(word)
        elif flag and flag not in known:
            faults.append(_no_flag(word, words))
            doubtful += [] if "=" in word else [len(kept)]
        else:
            waiting = flag if flag in valued and "=" not in word else ""
            places += [] if flag else [len(kept)]
            kept.append(word)
    positionals = command.positionals if command else ()
    surplus = 0 if any(one.many for one in positionals) else len(places) - len(positionals)
    values = [index for index in doubtful if index in places][-surplus:] if surplus > 0 else []
    return [word for index, word in enumerate(kept) if index not in values], faults


def _valued(command: Command | None) -> set[str]:
    """The flags that a value follows."""
    return {name for flag in _flags(command) if not flag.switch for name in flag.names}


def _dashed(command: Command | None) -> set[str]:
    """The flags whose value may begin with -."""
    return {name for flag in _flags(command) if flag.dash for name in flag.names}


def _switches(command: Command | None) -> set[str]:
    """The switches, and what takes them back."""
    return {name for flag in _flags(command) if flag.switch for name in flag.forms}


def _no_flag(word: str, words: list[str]) -> Fault:
    """An unknown flag, with what was probably meant."""
    command, flag = _command(words), word.partition("=")[0]
    known = {name[2:]: name for each in _flags(command) for name in each.names}
    close = nearest(flag.strip("-"), known, 2)
    fix = (
        f"did you mean {' or '.join(known[one] for one in close)}?" if close else f"outlay {' '.join(words[:1])} --help"
    )
    return Fault(
        "CLI001", f"there is no flag {quoted(flag)}", "flags are written as --help lists them", quoted(word), fix
    )


def _too_many(word: str, words: list[str]) -> Fault:
    command = _command(words)
    rule = f"outlay {' '.join(words[:1])} takes: {command.takes() if command else 'a command'}"
    fix = "remove it, or give it with its flag"
    return Fault("CLI005", f"{quoted(word)} is one argument too many", rule, quoted(word), fix)
