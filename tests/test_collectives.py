"""Collectives against published bus bandwidths: rings, switches that add, trees, all-to-alls, by size and span."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay import load_cluster
from outlay.cluster.network import Group, all_reduce_time, all_to_all_time, gather_time, group

GIB, MIB = 2**30, 2**20
ROWS = list(csv.DictReader((Path(__file__).parent / "collectives.csv").read_text().splitlines()))
TIMES = {
    "all_reduce": all_reduce_time, "all_gather": gather_time, "reduce_scatter": gather_time,
    "all_to_all": all_to_all_time,
}  # fmt: skip
SWITCHED = ["h100-sxm", "h200-sxm", "b200", "gb300"]


def counted(row: dict[str, str], made: Group) -> float:
    """Seconds of a row: of the ring alone where that was forced, which takes as long as a scatter and a gather."""
    buffer = float(row["bytes"])
    if row["op"] == "all_reduce" and row["algorithm"] == "ring":
        return 2 * float(gather_time(buffer, made)) - made.cluster.accelerator.collective_seconds
    return float(TIMES[row["op"]](buffer, made))


def error(row: dict[str, str]) -> float:
    """Counted over measured, less 1. A bus bandwidth is the buffer, times (n - 1)/n a pass, over the time."""
    ranks = int(row["ranks"])
    passes = (2 if row["op"] == "all_reduce" else 1) * (ranks - 1) / ranks
    measured = passes * float(row["bytes"]) / (float(row["bus_bandwidth_GBps"]) * 1e9)
    return counted(row, group(ranks, 1, load_cluster(row["on"]))) / measured - 1


def errors(least: float, *unlike: str) -> np.ndarray:
    return np.array([error(row) for row in ROWS if float(row["bytes"]) >= least and row["on"] not in unlike])


RACKS = ("144xgb300", "216xgb300")  # one pair of racks reads 48 and 90 GB/s for the same exchange
OLD = ("2xp4d.24xlarge", "3xp4d.24xlarge", "4xp4d.24xlarge")  # NCCL of 2021 on the first EFA: 57, 32 and 30 GB/s


def test_long_collectives_take_what_was_measured_on_seven_kinds_of_cards() -> None:
    found = np.abs(errors(GIB, *RACKS, *OLD))
    assert len(found) > 75
    assert np.median(found) < 0.02
    assert np.quantile(found, 0.9) < 0.13
    assert found.max() < 0.16


def test_collectives_inside_a_node_take_what_was_measured_from_four_mebibytes_on() -> None:
    inside = [row for row in ROWS if row["on"].startswith("8x") and float(row["bytes"]) >= 4 * MIB]
    found = np.array([error(row) for row in inside])
    assert len(found) > 60
    assert np.abs(found).mean() < 0.09
    assert np.abs(found).max() < 0.36


def test_all_reduces_of_four_to_512_mebibytes_between_nodes_take_up_to_two_thirds_longer_than_counted() -> None:
    between = [row for row in ROWS if row["on"] in ("2xp5.48xlarge", "4xp6-b200.48xlarge", "16xmi300x")]
    found = np.array([error(row) for row in between if 4 * MIB <= float(row["bytes"]) < GIB])
    assert -0.68 < found.min() < found.mean() < -0.2


@pytest.mark.parametrize("card", SWITCHED)
@pytest.mark.parametrize("ranks", [2, 8])
def test_where_the_switch_adds_a_long_all_reduce_sends_the_buffer_once_and_a_share(card: str, ranks: int) -> None:
    """Each link carries (n + 1)/n of the buffer in place of 2 (n - 1)/n; two ranks gain nothing and take the ring."""
    cluster = load_cluster(f"72x{card}")
    link = cluster.inside
    ring = 2 * (ranks - 1) / ranks / (link.bandwidth * link.share)
    switch = (ranks + 1) / ranks / (link.bandwidth * link.switch_share)
    assert all_reduce_time(1e12, group(ranks, 1, cluster)) / 1e12 == pytest.approx(min(ring, switch), rel=1e-3)
    assert (switch < ring) == (ranks == 8)


@given(st.sampled_from(["h100-sxm", "b200", "a100-sxm-80", "mi300x"]), st.integers(2, 512), st.integers(1, 10**11))
def test_an_all_reduce_is_never_longer_than_a_scatter_and_a_gather(card: str, ranks: int, buffer: int) -> None:
    made = group(ranks, 1, load_cluster(f"512x{card}"))
    assert all_reduce_time(buffer, made) <= 2 * gather_time(buffer, made)


@given(st.sampled_from(["h100-sxm", "b200", "a100-sxm-80", "mi300x"]), st.integers(2, 512), st.integers(1, 10**11))
def test_no_collective_moves_more_than_its_links_carry(card: str, ranks: int, buffer: int) -> None:
    """A rank sends at least (n - 1)/n of a gathered buffer, and of an all-reduced one half of 2 (n - 1)/n."""
    made = group(ranks, 1, load_cluster(f"512x{card}"))
    least = (ranks - 1) / ranks * buffer / made.cluster.inside.bandwidth
    assert gather_time(buffer, made) >= least
    assert all_reduce_time(buffer, made) >= least


def test_a_tree_of_many_nodes_spares_a_small_all_reduce_the_steps_of_the_ring() -> None:
    """63 of 511 steps of NCCL's ring enter another node; its tree of 64 nodes is six deep."""
    made = group(512, 1, load_cluster("512xh100-sxm"))
    assert made.hops == pytest.approx(448 * 3.4e-6 + 63 * 14e-6)
    assert all_reduce_time(1, made) == pytest.approx(8.4e-6 + 60e-6 + 12 * 14e-6, rel=1e-3)


def test_no_switch_adds_where_each_node_holds_one_rank() -> None:
    """64 ranks, each in a node of its own: a start, and up and down a tree six deep."""
    made = group(64, 8, load_cluster("512xh100-sxm"))
    assert made.near == 1
    assert all_reduce_time(1, made) == pytest.approx(8.4e-6 + 12 * 14e-6, rel=1e-3)
