"""`outlay`: the commands, how a command line is read, and what the exit says.

Exit 0: yes. Exit 1: the question is clear and the answer is no. Exit 2: the question cannot be read.
"""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from .commands import COMMANDS, Command
from .flags import Given
from .help import asked_for_help

YES, NO, UNREADABLE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 still gets its answer
    try:
        code = _answer(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader left, as `head` does: no fault of ours, and nobody to tell
        with contextlib.suppress(Exception):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return YES


def _answer(words: list[str]) -> int:
    from .output import tell_faults

    as_json, plain = "--json" in words, "--plain" in words
    try:
        return _run(words)
    except InputError as error:
        tell_faults(error.faults, as_json, plain)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:  # a fault of the program: said shortly, never as a traceback
        tell_faults([_unexpected(error, "--debug" in words)], as_json, plain)
    return UNREADABLE


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
        print(said)
        return YES
    _known(words)
    app, faults, left = _app(words), list[Fault](), list(words)
    while True:
        try:
            called, bound, unused, _ = app.parse_known_args(left)
            break
        except cyclopts.CycloptsError as error:
            faults.append(_fault(error, words))
            kept = _without(left, error)
            if kept == left:
                raise InputError(*faults) from None
            left = kept
    faults += _unused(unused, words)
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
        app.command(command.function(), name=command.name)
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
    name = error.argument.name if getattr(error, "argument", None) else "the command line"
    rule, got = {
        "MissingArgumentError": (f"{name} needs a value", "nothing after it"),
        "RepeatArgumentError": (f"{name} is given once", "it is given several times"),
        "CoercionError": (f"{name} is a switch: it takes no value, or true or false", _token(error)),
    }.get(type(error).__name__, ("flags and values as --help lists them", quoted(str(error).splitlines()[-1:])))
    return Fault("CLI002", f"{name} cannot be read", rule, got, f"outlay {' '.join(words[:1])} --help lists {name}")


def _token(error: Any) -> str:
    token = getattr(error, "token", None)
    return quoted(token.value) if token is not None else "something else"


def _without(words: list[str], error: Any) -> list[str]:
    """The command line without the flag that could not be read, so that the rest is still checked."""
    names = getattr(getattr(error, "argument", None), "names", ())
    for index in range(len(words) - 1, -1, -1):
        if words[index].split("=")[0] in names:
            return words[:index] + words[index + 1 :]
    return words


def _unused(unused: Sequence[str], words: list[str]) -> list[Fault]:
    """Words that no flag took: unknown flags with what was probably meant, and arguments that are too many."""
    command, name = _command(words), " ".join(words[:1])
    known = {flag[2:]: flag for each in (command.flags() if command else ()) for flag in each.names}
    faults, valued = [], False
    for word in unused:
        if word.startswith("-") and not word[1:2].isdigit():
            flag, equals, _ = word.partition("=")
            close = nearest(flag.strip("-"), known, 2)
            fix = f"did you mean {' or '.join(known[one] for one in close)}?" if close else f"outlay {name} --help"
            faults.append(
                Fault(
                    "CLI001",
                    f"there is no flag {quoted(flag)}",
                    "flags are written as --help lists them",
                    quoted(word),
                    fix,
                )
            )
            valued = not equals  # the word after it is its value, and part of the same fault
        elif valued:
            valued = False
        else:
            rule = f"outlay {name} takes: {command.takes() if command else 'a command'}"
            faults.append(
                Fault(
                    "CLI005",
                    f"{quoted(word)} is one argument too many",
                    rule,
                    quoted(word),
                    "remove it, or give it with its flag",
                )
            )
    return faults
