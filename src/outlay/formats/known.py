"""The formats by name, and which of them a file is in."""

from types import ModuleType

from ..errors import Fault, InputError, nearest, quoted
from . import deepspeed, megatron
from .deepspeed_text import KEYS
from .setting import Found
from .source import text_of

FORMATS: dict[str, ModuleType] = {"megatron": megatron, "deepspeed": deepspeed}


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
    """What a file of any known format says. A JSON object with keys of DeepSpeed is its; all else is Megatron-LM's."""
    text = text_of(content)
    quoted_keys = any(f'"{key}"' in text or f"'{key}'" in text for key in KEYS)
    of_deepspeed = "{" in text and quoted_keys and not text.lstrip().startswith("#!")
    found: Found = FORMATS["deepspeed" if of_deepspeed else "megatron"].read(content)
    return found
