"""MaxText: `completed step: 20, seconds: 2.500, TFLOP/s/device: 337.316, Tokens/s/device: 6553.600, .., loss: 7.100`.

Steps are counted from 0. Step 0 compiles, and step 1 is far too short since its work is only handed over. GB are of
2^30. Source: AI-Hypercomputer/maxtext, metric_logger.py, max_utils.py.
"""

import re
from collections.abc import Iterator

from .numbers import GIB, number, positive
from .record import Begins, Event, Fact, Line, Memory, Step

NAME, TITLE = "maxtext", "MaxText"
LOOKS_FOR = "completed step: 20, seconds: 2.500, TFLOP/s/device: 337.316, Tokens/s/device: 6553.600, .."
WARM = 2
STEP = re.compile(
    r"completed step: (?P<step>\d{1,12}), seconds: (?P<seconds>[\d.]{1,20})(?:, live slice count: \d+)?"
    r"(?:, TFLOP/s(?:/device)?: (?P<flops>[\d.]{1,20}))?(?:, Tokens/s/device: (?P<rate>[\d.]{1,20}))?"
    r"(?:, total_weights: (?P<weights>[\d.]{1,20}))?, (?:lm_)?loss: (?P<loss>[\d.naif-]{1,20})"
)
ESTIMATE = re.compile(r"Total (?:estimated )?memory size: (?P<gib>[\d.]{1,20}) GB")
USED = re.compile(
    r"Using \(GB\) (?P<used>[\d.]{1,20}) / (?P<limit>[\d.]{1,20}) \((?P<percent>[\d.]{1,20})%\) on (?P<device>\S{1,60})"
)
DEVICES = re.compile(r"Num_devices: (?P<devices>\d{1,9}), shape")
CONFIG = re.compile(r"Config param (?P<name>\w{1,80}): (?P<value>.{0,200})")
NUMBERS = {
    "max_target_length": "sequence_length",
    "global_batch_size_to_train_on": "samples",
    "per_device_batch_size": "samples_each",
    "steps": "total_steps",
}


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "completed step:" in text and (match := STEP.search(text)):
            flops = positive(match["flops"])
            yield Step(
                int(match["step"]),
                positive(match["seconds"]),
                tokens_per_second_per_device=positive(match["rate"]),
                flops_per_second=flops * 1e12 if flops else None,
                loss=number(match["loss"]),
                when=line.when,
                source=NAME,
            )
        elif "memory size:" in text and (match := ESTIMATE.search(text)):
            value = positive(match["gib"])
            if value:
                yield Memory("estimated", value * GIB, line.rank)
        elif "Using (GB)" in text and (match := USED.search(text)):
            limit = positive(match["limit"])
            if limit:
                yield Fact("capacity_bytes", limit * GIB)
        elif "Config param" in text and (match := CONFIG.search(text)):
            yield from _config(match)
        elif "Num_devices:" in text and (match := DEVICES.search(text)):
            yield Fact("devices", float(match["devices"]))


def _config(match: re.Match[str]) -> Iterator[Event]:
    name, value = match["name"], positive(match["value"])
    if name in NUMBERS and value:
        yield Fact(NUMBERS[name], value)
    elif name == "model_name":
        yield Fact("model", match["value"].strip())
    elif name == "run_name":
        yield Begins()
