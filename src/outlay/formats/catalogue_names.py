"""Names that other frameworks have for models of the catalogue."""

from functools import cache

from ..model.catalogue import names


def named_like(text: str) -> str | None:
    """The catalogue's name with the same letters and digits: `llama31_8b` and `llama3.1-8b` are llama-3.1-8b."""
    return _by_letters().get(_letters(text))


@cache
def _by_letters() -> dict[str, str]:
    return {_letters(name): name for name in names()}


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
