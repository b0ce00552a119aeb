"""The formats by name, and which of them a file is in.

A format is a module with `read(content) -> Found`, `write(run) -> Written`, `is_of(text) -> bool`, the engine that its
runs are counted with (`ENGINE`, and all that it holds, `ENGINES`), the fields of a layout that it holds (`HELD`), and
whether its files hold comments (`COMMENTS`).
"""

from types import ModuleType

from ..errors import Fault, InputError, nearest, quoted
from . import (
    accelerate,
    axolotl,
    bridge,
    deepspeed,
    llamafactory,
    maxtext,
    megatron,
    nanotron,
    torchtitan,
    trainer,
)
from .setting import Found
from .source import text_of

# In the order in which a file is tried.
FORMATS: dict[str, ModuleType] = {
    "axolotl": axolotl,
    "llama-factory": llamafactory,
    "trainer": trainer,
    "torchtitan": torchtitan,
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "nanotron": nanotron,
    "maxtext": maxtext,
    "megatron-bridge": bridge,
    "megatron": megatron,
}


def format_of(name: str) -> ModuleType:
    """The format of a framework. Raises InputError (FMT001) for a name that there is none of."""
    plain = name.strip().lower()
    if plain in FORMATS:
        return FORMATS[plain]
    close = nearest(plain, FORMATS)
    fix = close[0] if close else "megatron"
    raise InputError(
        Fault("FMT001", f"no format is called {quoted(name)}", f"one of {', '.join(FORMATS)}", quoted(name), fix)
    )


def read(content: bytes) -> Found:
    """What a file of any known format says."""
    text = text_of(content)
    form = next((form for form in FORMATS.values() if form.is_of(text)), megatron)
    found: Found = form.read(content)
    return found
