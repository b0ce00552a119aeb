"""Words of a shell script with their places: quotes, variables, arithmetic; what is not run is shown and left alone."""

import re
from collections.abc import Iterator
from dataclasses import replace

from .arithmetic import evaluate
from .script import Script, Word, parted
from .setting import unreadable

LONGEST_VALUE, DEEPEST = 200_000, 8


class Words:
    """A place in a script, from which word after word is read; variables are those of `script`."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.at, self.script = text, 0, Script()
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.row, self.depth = 0, depth

    def place(self, index: int) -> tuple[int, int]:
        """Line and column; indexes come almost in order, so a row is looked for near the last one."""
        while self.row + 1 < len(self.starts) and self.starts[self.row + 1] <= index:
            self.row += 1
        while self.starts[self.row] > index:
            self.row -= 1
        return self.row + 1, index - self.starts[self.row] + 1

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
        inner = Words(text.strip("\"'"), self.depth + 1)
        inner.script.variables = self.script.variables
        made = list[Word]()
        while inner.skip_blanks():
            before = inner.at
            made += inner.pieces(split=False)
            inner.at += inner.at == before
        return made or [Word("", line, column)]
