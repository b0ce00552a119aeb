"""The counts that exercises ask for and nothing else in outlay needs: one formula each."""

from ..quantities import Bytes, Count, Seconds, Share


def step_slots(pp: Count, micro_batches: Count) -> Count:
    """Slots from the first micro-batch's start to the last one's end: M + P - 1. Source: the staircase."""
    return micro_batches + pp - 1


def idle_seconds(pp: Count, slot: Seconds) -> Seconds:
    """How long each rank idles in a step: P - 1 slots, whatever M."""
    return (pp - 1) * slot


def each_bytes(stock: Bytes, ranks: Count) -> Bytes:
    """What one rank holds of a stock that is divided evenly."""
    return stock / ranks


def stored_layers(layers: Count, segments: Count) -> Count:
    """Layers whose tapes stand with g checkpoint segments: g inputs, and the inside of one segment, g + L/g.

    By the textbook, to which an input is as large as a layer's tape. Source: Chen et al. 2016.
    """
    return segments + layers / segments


def saved_factor(layers: Count, segments: Count) -> Count:
    """How many times less is stored than without checkpoints: L / (g + L/g)."""
    return layers / stored_layers(layers, segments)


def exchange_share(exchange: Seconds, compute: Seconds) -> Share:
    """Share of a step that waits for an exchange which nothing hides."""
    return exchange / (exchange + compute)


def both_bytes(state: Bytes, tape: Bytes) -> Bytes:
    """State and activations of one rank together; the weights are in the state already."""
    return state + tape
