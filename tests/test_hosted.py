"""Host memory: what offload asks of one accelerator's part of its node, and the rule that refuses what it has not."""

from dataclasses import replace
from math import isclose

import pytest

from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.search.plan import plan

GB = 1e9
MODEL = load_model("llama-3.1-8b")
LAYER, TABLE = 218_112_000, 128_256 * 4_096  # parameters of a layer, of the embedding and of the head
JOB = Job(4096, 16, precision="bf16")


def bill(on: str = "8xh100-sxm", engine: str = "megatron", **axes: object) -> Bill:
    return count(MODEL, JOB, load_cluster(on), Layout(**axes), engine)  # type: ignore[arg-type]


def said(found: Bill) -> list[str]:
    return [text for text in found.assumptions if text.startswith("offload")]


@pytest.mark.parametrize(
    ("axes", "bytes_there"),
    [
        ({"zero": 0, "offload_optimizer": 1.0}, 12 * (32 * LAYER + 2 * TABLE)),  # replicas: all of it on every card
        ({"zero": 1, "offload_optimizer": 0.5}, 6 * (32 * LAYER + 2 * TABLE) / 8),
        ({"zero": 1, "pp": 2, "offload_optimizer": 1.0}, 12 * (16 * LAYER + TABLE) / 4),
        ({"zero": 1, "offload_parameters": 1.0}, 2 * (32 * LAYER + 2 * TABLE)),  # weights are whole under ZeRO-1
        ({"zero": 3, "offload_parameters": 1.0}, 2 * (32 * LAYER + 2 * TABLE) / 8),
    ],
)
def test_an_accelerator_keeps_on_its_host_what_its_own_cut_offloads(axes: dict[str, float], bytes_there: float) -> None:
    """12 bytes of master and moments a parameter, and 2 of weights, over the ranks that share them."""
    (text,) = said(bill(**axes))
    assert (
        text == f"offload: {bytes_there / GB:,.1f} GB of host memory an accelerator, and the host has it (not checked)"
    )


def test_offloaded_activations_stand_on_the_host_too() -> None:
    kept = next(item.value for item in bill(zero=1).memory.items if item.name == "activations")
    (text,) = said(bill(zero=1, offload_activations=1.0))
    assert text.startswith(f"offload: {kept / GB:,.1f} GB of host memory")
    assert said(bill(zero=1)) == []


def test_where_the_memory_of_the_node_is_known_the_bill_says_it() -> None:
    """A p5.48xlarge has 2,048 GiB for 8 accelerators: 256 GiB = 274.9 GB each."""
    (text,) = said(bill("p5.48xlarge", zero=1, offload_optimizer=1.0))
    assert text == "offload: 12.0 GB of host memory an accelerator, of 275 GB that its node has for it"


def test_a_recalled_memory_of_the_host_is_named_where_it_is_used() -> None:
    note = "host bytes: recalled, not read from its source"
    assert note in bill("dgx-h100", zero=1, offload_optimizer=1.0).assumptions
    assert note not in bill("dgx-h100", zero=1).assumptions


def test_offload_that_the_host_cannot_hold_is_refused_by_number() -> None:
    """405.85 billion parameters on 16 cards: 12 bytes each of a sixteenth are 304 GB, and a p5.48xlarge has 275."""
    job, at = Job(4096, 16), Layout(tp=8, pp=2, split=(63, 63), zero=1, offload_optimizer=1.0)
    found = count(load_model("llama-3.1-405b"), job, load_cluster("2xp5.48xlarge"), at)
    (rule,) = found.violations
    assert (rule.code, rule.got) == ("LAY042", "304.4 GB an accelerator, 274.9 GB there (2xp5.48xlarge)")
    assert rule.fix == "--offload-optimizer 0.9"
    assert found.memory.verdict is None
    less = replace(at, offload_optimizer=0.9)
    assert count(load_model("llama-3.1-405b"), job, load_cluster("2xp5.48xlarge"), less).violations == ()


def test_a_search_offers_no_offload_that_the_host_cannot_hold() -> None:
    small = {"tp": (1, 2), "pp": (1,), "vpp": (1,), "cp": (1,), "micro_batch": (1,), "recompute": ("full",)}
    roomy = load_cluster("p5.48xlarge")
    tight = replace(roomy, host_bytes=7 * GB)  # half of ZeRO-1's 12 GB is 6.0
    free = plan(MODEL, JOB, roomy, best=200, zero=(1,), **small).best
    assert {each.layout.offload_optimizer for each in free} == {0.0, 0.5, 1.0}
    best = plan(MODEL, JOB, tight, best=200, zero=(1,), **small).best
    assert {each.layout.offload_optimizer for each in best} == {0.0, 0.5}
    assert all(each.bill.violations == () for each in best)
    none = plan(MODEL, JOB, tight, offload_optimizer=(1.0,), zero=(1,), **small)
    assert none.best == () and none.frontier == ()
    assert none.smallest is not None
    assert [rule.code for rule in none.smallest.bill.violations] == ["LAY042"]


def test_the_parts_of_a_node_are_those_of_its_table() -> None:
    each = load_cluster("2xp5.48xlarge").host_bytes
    assert each is not None and isclose(each, 2048 * 2**30 / 8)
    assert load_cluster("8xh100-sxm").host_bytes is None
