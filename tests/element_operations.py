"""Arrays that count the work done with them: calls, and elements of each result. Independent of the machine."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Work:
    """Array calls, elements of their results, and elements by the name of the call and its size."""

    calls: int = 0
    elements: int = 0
    by_size: Counter[int] = field(default_factory=Counter)

    def add(self, result: Any) -> None:
        """Count one result."""
        size = sum(np.size(part) for part in result) if isinstance(result, tuple) else np.size(result)
        self.calls += 1
        self.elements += int(size)
        self.by_size[int(size)] += 1


class Counted(np.ndarray):
    """An array whose every operation is counted in `Counted.work`."""

    work = Work()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **how: Any) -> Any:
        plain = [part.view(np.ndarray) if isinstance(part, Counted) else part for part in inputs]
        if out is not None:
            how["out"] = tuple(part.view(np.ndarray) if isinstance(part, Counted) else part for part in out)
        result = getattr(ufunc, method)(*plain, **how)
        Counted.work.add(result)
        return result.view(Counted) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function: Any, types: Any, inputs: Any, how: Any) -> Any:
        result = function(*plainly(inputs), **plainly(how))
        if function is not np.broadcast_to:  # a view: nothing is computed
            Counted.work.add(result)
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def plainly(value: Any) -> Any:
    """The same value with plain arrays in it."""
    if isinstance(value, Counted):
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(plainly(part) for part in value)
    if isinstance(value, dict):
        return {key: plainly(part) for key, part in value.items()}
    return value
