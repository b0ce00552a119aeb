"""A shell script read, never run: words with their places, variables, arrays and simple arithmetic.

Command substitution is shown and left alone; both branches of a condition are read, the last one wins.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from .arithmetic import evaluate
from .script import Script, Word, parted
from .setting import unreadable
from .source import short

MOST_WORDS, MOST_PARTS, LONGEST_VALUE, DEEPEST = 20_000, 5_000, 200_000, 8  # of a command, of a variable
NAME = re.compile(r"[A-Za-z_]\w*")
ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=")
BRANCHES = ("if", "elif", "else", "case", "for", "while", "until")
LEADERS = ("export", "local", "declare", "readonly", "env", "exec", "time", "then", "do", "else", "{", "!")


def read_script(text: str) -> Script:
    """A whole script. Raises InputError (FMT003) with line and column for a quote or bracket that is not closed."""
    return _Reader(short(text)).read()


class _Reader:
    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.at, self.script, self.words, self.size = text, 0, Script(), list[Word](), 0
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.row, self.depth = 0, depth

    def place(self, index: int) -> tuple[int, int]:
        """Line and column; indexes come almost in order, so a row is looked for near the last one."""
        while self.row + 1 < len(self.starts) and self.starts[self.row + 1] <= index:
            self.row += 1
        while self.starts[self.row] > index:
            self.row -= 1
        return self.row + 1, index - self.starts[self.row] + 1

    def read(self) -> Script:
        """Read to the end: words until an operator or the end of a line make a command."""
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

    def skip_blanks(self) -> bool:
        """Go to the next word or operator; False at the end of the text."""
        while self.at < len(self.text):
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n;("):
                self.comment()
            elif self.text[self.at] in " \t\r\f\v":
                self.at += 1
            else:
                return True
        return False

    def comment(self) -> None:
        """Skip to the end of the line. Inside continued lines a comment ends the command, as in a shell."""
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

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

    def word(self) -> list[Word]:
        """The words that one word of the script becomes: none, one, or those of an array or a split variable."""
        return list(self.pieces(split=True))

    def pieces(self, split: bool) -> Iterator[Word]:
        """Join neighbouring pieces into words; blanks of an unquoted variable part them."""
        made: Word | None = None
        while self.at < len(self.text) and self.text[self.at] not in " \t\n;&|()<>\r\f\v":
            found = self.piece(split)
            for index, one in enumerate(found):
                if made is not None and index == 0:
                    made = replace(made, text=made.text + one.text, unknown=made.unknown or one.unknown)
                else:
                    if made is not None:
                        yield made
                    made = one
                if len(made.text) > LONGEST_VALUE:
                    raise unreadable("a word is too long", f"{LONGEST_VALUE:,} characters", *self.place(self.at))
        if made is not None:
            yield made

    def piece(self, split: bool) -> list[Word]:
        """What stands next inside a word: quotes, a variable, a command, or plain letters."""
        start, letter = self.at, self.text[self.at]
        if letter == "'":
            return [self.quoted_plain()]
        if letter == '"':
            return self.quoted_words(split)
        if letter == "$" and self.text[start + 1 : start + 2] in ('"', "'"):
            self.at += 1
            return self.piece(split)
        if letter in "$`":
            return self.dollar(quoted=False, split=split)
        if letter == "\\":
            self.at += 2
            text = self.text[start + 1 : start + 2]
            return [Word("" if text == "\n" else text, *self.place(start))]
        match = re.compile(r"[^\s;&|()<>'\"$`\\]+").match(self.text, start)
        self.at = match.end() if match else start + 1
        return [Word(self.text[start : self.at], *self.place(start))]

    def quoted_plain(self) -> Word:
        start = self.at
        end = self.text.find("'", start + 1)
        if end < 0:
            raise unreadable("a quote is not closed", "'", *self.place(start))
        self.at = end + 1
        return Word(self.text[start + 1 : end], *self.place(start), bare=False)

    def quoted_words(self, split: bool) -> list[Word]:
        """What double quotes hold: one word, or the words of "${ARRAY[@]}". Each piece keeps its own place."""
        start, made = self.at, list[Word]()
        self.at += 1
        while self.at < len(self.text):
            letter, here = self.text[self.at], self.at
            if letter == '"':
                self.at += 1
                return self.joined(made, start, split)
            if letter in "$`":
                made += self.dollar(quoted=True, split=split)
            elif letter == "\\":
                self.at += 2
                text = self.text[here + 1 : here + 2]
                kept = text if text in '\n$`"\\' else f"\\{text}"
                made.append(Word(kept, *self.place(here), bare=False))
            else:
                match = re.compile(r'[^"$`\\]+').match(self.text, here)
                assert match is not None
                self.at = match.end()
                made.append(Word(match[0], *self.place(here), bare=False))
        raise unreadable("a quote is not closed", '"', *self.place(start))

    def joined(self, made: list[Word], start: int, split: bool) -> list[Word]:
        """The pieces as one word; an array alone in quotes as its words; in an assignment, piece by piece."""
        if not made and self.at - start > 2:  # "$@", the words of a command line that is not here
            return []
        if split and len(made) > 1 and all(word.bare for word in made):
            return [replace(word, bare=False) for word in made]
        unknown = next((word.unknown for word in made if word.unknown), "")
        line, column = (made[0].line, made[0].column) if made else self.place(start)
        return [Word("".join(word.text for word in made), line, column, unknown, bare=False)]

    def dollar(self, quoted: bool, split: bool) -> list[Word]:
        """A variable, arithmetic, or a command that is not run."""
        start = self.at
        line, column = self.place(start)
        if self.text.startswith("$((", start):
            inner = self.closed("$((", "))")
            value = evaluate(inner, self.script.first)
            why = "" if value is not None else f"$(({inner[:60]})) cannot be told"
            return [Word(str(value) if value is not None else f"$(({inner}))", line, column, why)]
        if self.text.startswith("$(", start) or self.text[start] == "`":
            opened = "$(" if self.text[start] == "$" else "`"
            inner = self.closed(opened, ")" if opened == "$(" else "`")
            shown = " ".join(inner.split())[:60]
            self.script.note(f"line {line}: $({shown}) is shown, not run")
            return [Word(f"$({shown})", line, column, f"$({shown}) is not run", bare=False)]
        if self.text.startswith("${", start):
            return self.variable(self.closed("${", "}"), quoted, split, line, column)
        match = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?!$-])").match(self.text, start)
        if match is None:
            self.at += 1
            return [Word("$", line, column)]
        self.at = match.end()
        return self.variable(match[1], quoted, split, line, column)

    def closed(self, opened: str, end: str) -> str:
        """The text between two brackets, which may hold others of their kind."""
        start, depth = self.at, 0
        self.at += len(opened)
        first, last = opened[-1], end[-1]
        while self.at < len(self.text):
            if self.text.startswith(end, self.at) and depth == 0:
                self.at += len(end)
                return self.text[start + len(opened) : self.at - len(end)]
            letter = self.text[self.at]
            depth += (letter == first and first != last) - (letter == last and first != last)
            self.at += 1
        raise unreadable("a bracket is not closed", opened, *self.place(start))

    def variable(self, inside: str, quoted: bool, split: bool, line: int, column: int) -> list[Word]:
        """The value of a variable; its default in ${NAME:-default}; else unknown."""
        match = re.fullmatch(r"([A-Za-z_]\w*)(\[[@*0-9]+\])?(?::?([-=+?])(.*))?", inside, re.DOTALL)
        if inside in ("@", "*", "#", "?", "1"):
            return []
        if match is None:
            return [Word(f"${{{inside[:60]}}}", line, column, f"${{{inside[:60]}}} cannot be told")]
        name, words = match[1], self.script.variables.get(match[1])
        if words is None and match[3] in ("-", "="):
            found = [replace(word, line=line, column=column) for word in self.default(match[4], line, column)]
            return [replace(found[0], text=" ".join(word.text for word in found), bare=False)] if quoted else found
        if words is None:
            return [Word(f"${name}", line, column, f"the file does not set {name}", bare=not quoted)]
        if quoted and not (match[2] and "@" in match[2]):
            text = " ".join(word.text for word in words)
            unknown = next((word.unknown for word in words if word.unknown), "")
            return [Word(text, *((words[0].line, words[0].column) if words else (line, column)), unknown, bare=False)]
        if quoted or not split:
            return [replace(word, bare=True) for word in words] if quoted else list(words)
        return [piece for word in words for piece in parted(word)]

    def default(self, text: str, line: int, column: int) -> list[Word]:
        """A default, in which variables stand as they are."""
        if self.depth > DEEPEST:
            return [Word("", line, column, "a default inside a default inside ..")]
        inner = _Reader(text.strip("\"'"), self.depth + 1)
        inner.script.variables = self.script.variables
        made = list[Word]()
        while inner.skip_blanks():
            before = inner.at
            made += inner.pieces(split=False)
            inner.at += inner.at == before
        return made or [Word("", line, column)]
