"""A shell script read, never run: its commands, variables and arrays.

Command substitution is shown and left alone; both branches of a condition are read, the last one wins.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from .script import Script, Word
from .setting import unreadable
from .shell_words import LONGEST_VALUE, Words
from .source import short

MOST_WORDS, MOST_PARTS = 20_000, 5_000  # of a command, of a variable
ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=")
BRANCHES = ("if", "elif", "else", "case", "for", "while", "until")
LEADERS = ("export", "local", "declare", "readonly", "env", "exec", "time", "then", "do", "else", "{", "!")


def read_script(text: str) -> Script:
    """A whole script. Raises InputError (FMT003) with line and column for a quote or bracket that is not closed."""
    return _Reader(short(text)).read()


class _Reader(Words):
    """Words until an operator or the end of a line make a command."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.words, self.size = list[Word](), 0

    def read(self) -> Script:
        """Read to the end."""
        while self.skip_blanks():
            letter = self.text[self.at]
            if letter == "\n" or letter in ";&|()<>":
                self.operator(letter)
            elif match := self.assigned():
                self.assignment(match)
            else:
                self.words += self.word()
                if len(self.words) > MOST_WORDS:
                    raise unreadable(
                        "the script has too many words", f"{MOST_WORDS:,} in one command", *self.place(self.at)
                    )
        self.end()
        return self.script

    def operator(self, letter: str) -> None:
        """End a command; skip a here document whole, and the file of a redirection."""
        here = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?").match(self.text, self.at)
        if here:
            end = re.compile(rf"^\s*{here[1]}\s*$", re.MULTILINE).search(self.text, here.end())
            self.script.note(f"line {self.place(self.at)[0]}: the text behind << is not read")
            self.at = end.end() if end else len(self.text)
            return
        self.at += 1
        if letter in "<>":
            stream = self.words and self.words[-1].text.isdigit() and self.text[self.at - 2].isdigit()
            self.words = self.words[:-1] if stream else self.words  # the number of a stream, as in 2>&1
            self.at += self.text[self.at : self.at + 1] in ("&", ">")
            self.skip_blanks()
            if self.at < len(self.text) and self.text[self.at] not in "\n;&|()<>":
                self.word()
            return
        self.end()

    def end(self) -> None:
        """Keep the command that ends here, and say where a condition stands."""
        words, self.words = self.words, []
        while words and words[0].text in LEADERS + BRANCHES:
            if words[0].text in BRANCHES:
                self.script.note(
                    f"line {words[0].line}: {words[0].text} is not decided; every branch is read, the last wins"
                )
            words = words[1:]
        if words and words[0].text not in ("fi", "done", "esac"):
            self.script.commands.append(words)

    def assigned(self) -> re.Match[str] | None:
        """A name and an equals sign where a command begins."""
        leads = all(word.text in LEADERS or word.text.startswith("-") for word in self.words)
        begins = leads or (self.words and self.words[0].text in ("export", "local", "declare", "readonly"))
        return ASSIGNS.match(self.text, self.at) if begins else None

    def assignment(self, match: re.Match[str]) -> None:
        """NAME=value, NAME+=value, or NAME=( words )."""
        self.at, name = match.end(), match[1]
        old = self.script.variables.get(name, ()) if match[2] else ()
        if self.at < len(self.text) and self.text[self.at] == "(":
            self.keep(name, (*old, *self.array()))
            return
        blank = self.at >= len(self.text) or self.text[self.at] in " \t\n;&|"
        new = tuple(self.pieces(split=False)) if not blank else ()
        if old and new and not match[2].startswith("("):
            new = (replace(new[0], text=new[0].text, bare=True), *new[1:])
        self.keep(name, (*old, *new))

    def keep(self, name: str, words: tuple[Word, ...]) -> None:
        self.size += sum(len(word.text) + 1 for word in words)
        long = sum(len(word.text) for word in words) > LONGEST_VALUE
        if long or len(words) > MOST_PARTS or self.size > 50 * LONGEST_VALUE:
            raise unreadable("a variable grows too long", name, *self.place(self.at), "write its value out")
        self.script.variables[name] = words

    def array(self) -> Iterator[Word]:
        """The words between two parentheses."""
        start = self.at
        self.at += 1
        while self.skip_blanks():
            letter = self.text[self.at]
            if letter == ")":
                self.at += 1
                return
            if letter in "\n;&|(<>":
                self.at += 1
            else:
                yield from self.word()
        raise unreadable("a parenthesis is not closed", "( without )", *self.place(start))
