"""The lines of an answer as pairs of a word and a sentence, for faces that fold text themselves."""

from collections.abc import Sequence

from ...bill import Bill
from ...search.advice import Advice
from ..answer import binds_line, headline, idle_line, next_line, ramp_line, step_line
from ..terminal import subject_lines
from ..text import Style

UNFOLDED = Style(100_000)
Pairs = list[tuple[str, str]]


def answer_pairs(bill: Bill, advice: Sequence[Advice] = ()) -> Pairs:
    """Verdict and memory, step, idle time, what binds, what to attack next."""
    lines = (headline, step_line, ramp_line, idle_line, binds_line)
    return pairs([*(line for each in lines for line in each(bill, UNFOLDED)), *next_line(bill, advice, UNFOLDED)])


def subject_pairs(bill: Bill) -> Pairs:
    """Model, task and layout."""
    return pairs(subject_lines(bill, UNFOLDED))


def pairs(lines: Sequence[str]) -> Pairs:
    """Lines of a keyword and a text beside it, as they are printed, in two parts."""
    return [(word, ", ".join(text.strip().split("   "))) for word, _, text in (line.partition("  ") for line in lines)]
