"""nanotron, and picotron: numbers of three digits with a letter, `time_per_iteration_ms: 2.5K`.

The batch is of tokens now and was of sequences before April 2025: its size tells. Source: huggingface/nanotron
src/nanotron/logging and trainer.py; huggingface/picotron train.py.
"""

import re
from collections.abc import Iterator

from .numbers import MIB, fields, number, positive, scaled
from .record import Begins, Event, Fact, Line, Memory, Step

NAME, TITLE = "nanotron", "nanotron"
LOOKS_FOR = "iteration: 20 / 1000 | consumed_tokens: 21M | time_per_iteration_ms: 2.5K | .."
WARM = 1
STEP = re.compile(r"\biteration:\s*(?P<step>\d{1,12})\s*/\s*(?P<total>\d{1,12})\s*\|(?P<fields>.{0,4000})")
SMALL = re.compile(r"\bStep:\s*(?P<step>\d{1,12})\s*\|\s*Loss:\s*(?P<loss>[-\d.naif]{1,20})\s*\|(?P<fields>.{0,2000})")
PEAK = re.compile(r"Peak allocated:? (?P<peak>[\d.]{1,20})MiB\.?\s*Peak reserved: (?P<reserved>[\d.]{1,20})MiB")


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "iteration:" in text and (match := STEP.search(text)):
            yield Fact("total_steps", float(match["total"]))
            yield _step(match, line)
        elif "Step:" in text and "Tokens/s/GPU" in text and (match := SMALL.search(text)):
            said = dict(fields(match["fields"]))
            mfu = positive(said.get("MFU", "").rstrip("%"))
            yield Step(
                int(match["step"]),
                tokens=scaled(said.get("Global batch size")),
                tokens_per_second=scaled(said.get("Tokens/s")),
                tokens_per_second_per_device=scaled(said.get("Tokens/s/GPU")),
                mfu=mfu / 100 if mfu else None,
                loss=number(match["loss"]),
                source="picotron",
            )
        elif "Peak allocated" in text and (match := PEAK.search(text)):
            for kind, name in (("allocated", "peak"), ("reserved", "reserved")):
                value = positive(match[name])
                if value:
                    yield Memory("allocated" if kind == "allocated" else "reserved", value * MIB, line.rank)
        elif "Start training from iteration" in text or "[Start training]" in text:
            yield Begins()


def _step(match: re.Match[str], line: Line) -> Step:
    said = dict(fields(match["fields"]))
    millis = scaled(said.get("time_per_iteration_ms") or said.get("elapsed_time_per_iteration_ms"))
    batch, rate = scaled(said.get("global_batch_size")), scaled(said.get("tokens_per_sec"))
    seconds = millis / 1e3 if millis else None
    of_tokens = _of_tokens(batch, rate, seconds)
    flops = positive(said.get("model_tflops_per_gpu"))
    return Step(
        int(match["step"]),
        seconds=seconds,
        tokens=batch if of_tokens else None,
        samples=None if of_tokens else batch,
        tokens_per_second=rate,
        tokens_per_second_per_device=scaled(said.get("tokens_per_sec_per_gpu")),
        flops_per_second=flops * 1e12 if flops else None,
        loss=number(said.get("lm_loss")),
        when=line.when,
        source=NAME,
    )


def _of_tokens(batch: float | None, rate: float | None, seconds: float | None) -> bool:
    """Whether a batch is of tokens: then it is what passes in a step, to three digits and the rounding of a time."""
    if not batch or not rate or not seconds:
        return False
    return 0.9 < rate * seconds / batch < 1.1
