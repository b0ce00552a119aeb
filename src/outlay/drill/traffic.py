"""Exercises on traffic: how long gradients take over a link, and their share of a step."""

from fractions import Fraction
from random import Random

from ..step.traffic import coarse_gradient_bytes, transfer_seconds
from .counts import exchange_share
from .derived import derived
from .exercise import Exercise, Slip
from .memory import BILLIONS, GB

LINKS = (10, 25, 50, 100, 200, 450)  # GB/s
MILLISECONDS = (100, 200, 300, 400, 600, 900)
GRADIENT = 2  # bytes


def traffic(draw: Random, level: int) -> Exercise:
    """Time of the gradients' exchange; and the share of the step that waits for it."""
    parameters, link = Fraction(draw.choice(BILLIONS) * GB), Fraction(draw.choice(LINKS) * GB)
    sent = GRADIENT * parameters
    text = (
        f"Data parallelism sums the gradients of {int(parameters / GB)} billion parameters: 2 bytes each, once a step,"
        f" over a link of {int(link / GB)} GB/s. (On the wire a ring moves 2(n - 1)/n of that: leave it out.)"
    )
    given = {"parameters": parameters, "bandwidth": link}
    size = derived("bytes a rank sends", "bytes", sent, coarse_gradient_bytes, parameters, GRADIENT)
    slips = (Slip(8 * sent / link, "GB/s are bytes, not bits"), Slip(parameters / link, "a gradient has 2 bytes"))
    seconds = derived("time of the exchange", "seconds", sent / link, transfer_seconds, sent, link, slips=slips)
    if level == 1:
        return Exercise("traffic", level, text, given, (draw.choice((size, seconds)),))
    compute = Fraction(draw.choice(MILLISECONDS), 1000)
    text += f" The step computes for {int(compute * 1000)} ms, and nothing hides the exchange."
    ratio = Slip(sent / link / compute, "that is over the arithmetic: the step is both together")
    share = sent / link / (sent / link + compute)
    waits = derived("its share of the step", "share", share, exchange_share, sent / link, compute, slips=(ratio,))
    return Exercise("traffic", level, text, given | {"compute": compute}, (seconds, waits))
