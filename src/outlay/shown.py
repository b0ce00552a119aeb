"""How a value shows itself in a notebook: as HTML, made by a face that is told of here and loaded when it is needed."""

from collections.abc import Callable

Face = Callable[[object], str]
_loaders: list[Callable[[], Face]] = []


def shown_by(loader: Callable[[], Face]) -> None:
    """Let a face show every such value; `loader` gives it when the first is shown."""
    _loaders[:] = [loader]


class Shown:
    """A value that Jupyter and marimo show as HTML."""

    def _repr_html_(self) -> str | None:
        """The value as HTML; None where no face is told of, and the plain text stands."""
        return _loaders[0]()(self) if _loaders else None
