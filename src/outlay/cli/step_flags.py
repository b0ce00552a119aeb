"""The flag of a real step, which `outlay verify --only step` runs."""

from .flags import Flag

DEVICE = Flag(
    "device", ("--device",), "what --only step, a real run, is on: cuda (any accelerator, the default) or cpu"
)
