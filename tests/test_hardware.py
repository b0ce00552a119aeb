"""Every accelerator and node type against the published tables, and the networks that they stand on."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.cluster.accelerator import Cluster, Link
from outlay.cluster.catalogue import accelerator_names, cluster, figures, node, node_names
from outlay.cluster.network import DeepGroup, Group, all_to_all_time, gather_time, group, level

FACTS = Path(__file__).parent
GB = 1e9


def rows(file: str) -> list[dict[str, str]]:
    with (FACTS / file).open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


CARDS, NODES = rows("accelerator_facts.csv"), rows("node_facts.csv")
COLUMNS = {  # of the published table: the figure, and its unit there
    "bf16_tflops": ("bf16 flops", 1e12),
    "fp16_tflops": ("fp16 flops", 1e12),
    "fp8_tflops": ("fp8 flops", 1e12),
    "fp4_tflops": ("fp4 flops", 1e12),
    "fp32_tflops": ("fp32 flops", 1e12),
    "mem_total_mib": ("memory bytes", 2.0**20),
    "mem_bw_gbs": ("memory bandwidth", GB),
    "link_gbs_per_dir": ("link bandwidth", GB),
    "scaleup_domain": ("link size", 1),
    "nic_per_dev_gbps": ("nic bandwidth", GB / 8),
}


def without_link(row: dict[str, str]) -> bool:
    return not row["link_gbs_per_dir"]


# ---- the published tables


def test_all_published_accelerators_and_node_types_are_known() -> None:
    assert [row["name"] for row in CARDS] == list(accelerator_names())
    assert len(CARDS) == 63
    assert len(NODES) == 52
    assert {row["name"] for row in NODES} <= set(node_names())
    assert set(node_names()) - {row["name"] for row in NODES} == {"BM.GPU.B200.8", "dgx-h200"}  # a row of two each


@pytest.mark.parametrize("row", CARDS, ids=[row["name"] for row in CARDS])
def test_an_accelerator_has_the_figures_of_the_published_table(row: dict[str, str]) -> None:
    """H100 and H200 print 989 there, and 989.4 is what their units and clock give: 1 part in 2,000."""
    found = {figure.name: figure for figure in figures(row["name"])}
    for column, (name, unit) in COLUMNS.items():
        if name == "link size" and without_link(row):
            continue  # cards behind PCIe, and TPU v3: see below
        if row[column]:
            assert found[name].si == pytest.approx(float(row[column]) * unit, rel=5e-4), name
            assert found[name].kind == "specified", name
        elif name.endswith("flops"):
            assert found[name].si == 0 or found[name].kind == "assumed", name
        else:
            assert found[name].kind == "assumed" or found[name].unverified, name


@pytest.mark.parametrize("row", CARDS, ids=[row["name"] for row in CARDS])
def test_what_was_recalled_is_marked_and_named_in_every_answer(row: dict[str, str]) -> None:
    found = {figure.name: figure for figure in figures(row["name"])}
    spared = row["recalled"].removeprefix("all but ") if row["recalled"].startswith("all but") else ""
    marked = [column for column in COLUMNS if row[column] and column != spared]
    if not row["recalled"].startswith("all"):
        marked = row["recalled"].split()
    named = load_cluster(f"8x{row['name']}").unverified
    for column in marked:
        name = COLUMNS[column][0]
        if not (name == "link size" and without_link(row)):
            assert found[name].unverified, name
            assert name in named
    assert named == tuple(name for name, figure in found.items() if figure.unverified)


@pytest.mark.parametrize("row", NODES, ids=[row["name"] for row in NODES])
def test_a_node_type_has_the_figures_of_the_published_table(row: dict[str, str]) -> None:
    one = node(row["name"])
    assert (one.accelerator, one.accelerators) == (row["accelerator"], int(row["accelerators"]))
    if row["nic_total_gbps"]:
        assert one.nic_bandwidth == pytest.approx(float(row["nic_total_gbps"]) * GB / 8 / one.accelerators)
    if cluster(row["name"]).inside.name != "PCIe 4":
        assert one.domain == int(row["scaleup_domain"])
    assert one.price_per_hour == (float(row["price_usd_per_hour"]) if row["price_usd_per_hour"] else None)
    assert one.host_bytes == (float(row["host_mem_gib"]) * 2**30 if row["host_mem_gib"] else None)
    each = cluster(f"2x{row['name']}").host_bytes
    assert each == (one.host_bytes / one.accelerators if one.host_bytes else None)


@pytest.mark.parametrize("row", NODES, ids=[row["name"] for row in NODES])
def test_a_price_that_was_not_seen_says_so(row: dict[str, str]) -> None:
    price = cluster(f"3x{row['name']}").price
    assert (price is None) == (not row["price_usd_per_hour"])
    if price:
        assert price.unverified == (row["price_seen"] == "no")
        assert price.date.startswith("20")
        assert cluster(f"3x{row['name']}").dollars() == pytest.approx(3 * float(row["price_usd_per_hour"]))


@pytest.mark.parametrize("row", [row for row in CARDS if row["scaleup_domain"] == "1"], ids=lambda row: row["name"])
def test_a_card_without_a_link_talks_over_pcie_or_stands_alone(row: dict[str, str]) -> None:
    inside = cluster(row["name"]).inside
    assert (inside.name.startswith("PCIe") and inside.size == 8) or (inside.name == "none" and inside.size == 1)


def test_a_rate_that_a_card_lacks_breaks_a_rule_and_not_the_count() -> None:
    model = load_model("llama-3.1-8b")
    bill = count(model, Job(4096, 8, precision="bf16"), load_cluster("8xv100-sxm2-16"), Layout(tp=8))
    assert "JOB002" in [each.code for each in bill.violations]
    assert bill.step.seconds > 0


@pytest.mark.parametrize("name", [*accelerator_names(), *node_names()])
def test_a_model_can_be_counted_on_every_kind_of_hardware(name: str) -> None:
    on = load_cluster(f"8x{name}")
    bill = count(load_model("llama-3.1-8b"), Job(4096, on.ranks), on, Layout(tp=2))
    assert 0 < bill.step.seconds < 1e5
    used = [figure for figure in on.unverified if figure != "host bytes"]  # nothing is offloaded
    assert all(f"{figure}: recalled, not read from its source" in bill.assumptions for figure in used)


# ---- bridges


BRIDGED = {"rtx3090": 2, "a100-pcie-40": 2, "a100-pcie-80": 2, "h100-pcie": 2, "h100-nvl": 2, "h200-nvl": 4, "mi210": 4}


def test_cards_that_a_bridge_joins_have_pcie_inside_a_host_and_a_nic_between_hosts() -> None:
    assert {name for name in accelerator_names() if "bridge" in cluster(name).inside.name} == set(BRIDGED)
    for name, size in BRIDGED.items():
        two = cluster(f"16x{name}")
        assert two.spine is not None
        assert (two.inside.size, two.outside.size, two.spine.size) == (size, 8, 16)
        assert two.outside.name.startswith("PCIe") and two.spine.name == "Ethernet"
        assert [level(ranks, 1, two) for ranks in (size, 8, 16)] == [two.inside.name, two.outside.name, "Ethernet"]
        one = cluster(f"8x{name}")
        assert (one.outside.name, one.outside.size, one.spine) == (two.outside.name, 8, None)


@pytest.mark.parametrize(
    ("bridged", "plain"), [("a100-pcie-80", "l40s"), ("h100-pcie", "rtxpro6000"), ("mi210", "l40s")]
)
def test_a_ring_through_a_host_is_as_fast_with_bridges_as_without(bridged: str, plain: str) -> None:
    """What leaves a bridge shares one ring through the host, and 8 A100 PCIe cards reach 12.5 of 31.5 GB/s there.

    Source: kernel tables of MooreThreads/SimuMax: all-reduce on 8 cards, 30 GB/s x 0.4176 = 12.53 GB/s.
    """
    assert group(8, 1, cluster(f"8x{bridged}")).pace == pytest.approx(group(8, 1, cluster(f"8x{plain}")).pace)
    reached = 7 / 8 / group(8, 1, cluster("8xa100-pcie-80")).pace
    assert reached == pytest.approx(12.53e9, rel=0.01)


def test_eight_bridged_cards_do_not_talk_at_the_speed_of_a_nic() -> None:
    job, at = Job(4096, 8, precision="bf16"), Layout(zero=3)
    found = {name: count(load_model("llama-3.1-8b"), job, load_cluster(f"8x{name}"), at) for name in BRIDGED}
    for name, bill in found.items():
        (dp,) = bill.traffic
        on = bill.cluster
        assert dp.link == on.outside.name
        assert dp.seconds == pytest.approx(dp.bytes / (0.4 * on.outside.bandwidth), rel=0.01), name
    assert found["h100-pcie"].step.seconds < 4


@pytest.mark.parametrize(
    ("pp", "tp", "dp", "name"),
    [(16, 1, 1, "NVLink4 bridge (pair)"), (4, 2, 2, "PCIe 5"), (8, 1, 2, "PCIe 5"), (2, 1, 8, "Ethernet")],
)
def test_pipeline_traffic_has_the_name_of_the_level_that_a_hop_crosses(pp: int, tp: int, dp: int, name: str) -> None:
    at = Layout(pp=pp, tp=tp, dp_shard=dp)
    bill = count(load_model("llama-3.1-8b"), Job(4096, 16), load_cluster("16xh100-pcie"), at)
    assert [item.link for item in bill.traffic if item.axis == "pp"] == [name]


def test_the_sum_of_a_tied_embedding_crosses_the_spine_between_its_ends() -> None:
    """2 x 50,304 x 1,600 gradients in 4 bytes, over 1.5625 GB/s at 0.75 of it, and two latencies of 30 us."""
    model, at = load_model("gpt2-xl"), Layout(pp=2, dp_shard=8, micro_batch=1)
    (dp,) = [item for item in count(model, Job(1024, 8), load_cluster("16xh100-pcie"), at).traffic if item.axis == "dp"]
    near = replace(load_cluster("16xh100-pcie"), spine=replace(load_cluster("16xh100-pcie").outside, size=16))
    (other,) = [item for item in count(model, Job(1024, 8), near, at).traffic if item.axis == "dp"]
    size = 4 * 50_304 * 1600
    slow, fast = size / (12.5e9 / 8 * 0.75) + 30e-6, size / (63e9 * 0.2) + 9e-6
    assert dp.seconds - other.seconds == pytest.approx(2 * (slow - fast))


# ---- torus and mesh


def test_a_tpu_slice_is_one_domain_of_a_torus() -> None:
    pod = cluster("256xtpu-v5e")
    assert (pod.inside.name, pod.inside.size, pod.inside.paths) == ("ICI", 256, 4)
    assert cluster("64xtpu-v5p").inside.paths == 6
    assert level(256, 1, pod) == "ICI"
    assert group(256, 1, pod).far == 1


def test_a_trainium_node_is_a_torus_of_sixteen() -> None:
    inside = cluster("2xtrn2.48xlarge").inside
    assert (inside.name, inside.size, inside.paths) == ("NeuronLink-v3", 16, 4)


def test_one_pair_of_a_mesh_has_one_path_and_all_of_them_have_the_bandwidth() -> None:
    """Measured on MI300X: 47.7 of 64 GB/s between two, 313 of 448 among eight (stas00/ml-engineering)."""
    mesh = cluster("8xmi300x")
    reached = {ranks: (ranks - 1) / ranks / group(ranks, 1, mesh).pace / GB for ranks in (2, 8)}
    assert reached[2] == pytest.approx(47.671, rel=0.07)
    assert reached[8] == pytest.approx(312.912, rel=0.01)


def test_behind_a_switch_two_ranks_fill_their_links() -> None:
    switch = cluster("8xh100-sxm")
    assert type(group(2, 1, switch)) is Group
    assert 0.5 / group(2, 1, switch).pace == pytest.approx(450e9 * 0.8)


def test_rings_between_nodes_reach_the_measured_bus_bandwidth() -> None:
    """Four nodes of eight: 377 GB/s on p6-b200 at 4 GiB and 365 GB/s on p5en with rings (stas00/ml-engineering)."""
    for name, measured in {"4xp6-b200.48xlarge": 377.34, "4xp5en.48xlarge": 364.65}.items():
        one = group(32, 1, cluster(name))
        assert 31 / 32 / one.pace / GB == pytest.approx(measured, rel=0.02)


# ---- a spine


def spined(size: int = 64, over: float = 4, rails: int = 1) -> Cluster:
    """256 H100 in leaves of 64, their uplinks oversubscribed."""
    base = cluster("256xh100-sxm")
    spine = replace(base.outside, name="spine", bandwidth=base.outside.bandwidth / over)
    return replace(base, outside=replace(base.outside, size=size), spine=spine, rails=rails)


@given(st.sampled_from([1, 2, 4, 8, 16, 32]), st.sampled_from([1, 2, 3, 4, 8, 16, 32, 64]), st.integers(1, 10**10))
def test_without_a_spine_or_a_mesh_both_kinds_of_group_are_one(ranks: int, stride: int, buffer: int) -> None:
    flat = cluster("2048xh100-sxm")
    plain, deep = Group(ranks, stride, flat), DeepGroup(ranks, stride, flat)
    assert plain.pace == deep.pace
    assert plain.latency == pytest.approx(deep.latency)
    assert plain.send(buffer) == pytest.approx(deep.send(buffer))
    assert all_to_all_time(buffer, plain) == pytest.approx(all_to_all_time(buffer, deep))


@pytest.mark.parametrize(("ranks", "stride"), [(256, 1), (32, 8), (4, 64), (16, 16), (128, 2)])
@pytest.mark.parametrize("over", [1, 2, 4, 16])
def test_a_gather_takes_as_long_as_its_busiest_wire(ranks: int, stride: int, over: float) -> None:
    """Counted on the wires: all groups run at once, and what leaves a leaf is the buffer once, over its uplinks."""
    net = spined(over=over)
    buffer, sent = 8 * GB, 8 * GB * (ranks - 1) / ranks
    card = {rank: rank * stride for rank in range(ranks)}  # of the group that begins at card 0
    domain, leaf = {card[r] // 8 for r in card}, {card[r] // 64 for r in card}
    wires = [0.0]
    if ranks / len(domain) > 1:
        wires.append(sent / (450e9 * 0.8))
    if len(domain) > len(leaf):
        wires.append(sent / (ranks / len(domain)) / (50e9 * 0.85))
    if len(leaf) > 1:
        uplinks = 64 / min(stride, 64)  # the uplinks of a leaf, shared by the groups that stand in it
        wires.append(sent / uplinks / (50e9 / over * 0.85))
    made = group(ranks, stride, net)
    assert gather_time(buffer, made) - made.latency == pytest.approx(max(wires))


def test_an_all_to_all_pays_for_a_spine_where_a_ring_does_not() -> None:
    flat, deep = group(256, 1, spined(over=1)), group(256, 1, spined(over=2))
    assert flat.pace == deep.pace
    slower = all_to_all_time(1e12, deep) / all_to_all_time(1e12, flat)
    assert slower == pytest.approx(2 * 192 / 248, rel=1e-3)  # 192 of 256 ranks beyond the leaf, 248 beyond the domain


def test_what_leaves_for_another_rail_crosses_the_domain_first() -> None:
    """Of 31/32 that leave a rank's domain, 7 of 8 stand on another rail, beside the 7/256 that stay inside."""
    slow = replace(spined(over=1), inside=Link("slow", 8, 1e9, 1.0, 0.0))
    railed = replace(slow, rails=8)
    near, far = 7 / 256, 248 / 256
    inside = [all_to_all_time(1e9, group(256, 1, each)) for each in (slow, railed)]
    assert inside[1] == pytest.approx(near + far * 7 / 8, rel=1e-3)
    assert inside[0] < inside[1]
    assert all_to_all_time(1e9, group(32, 8, railed)) == all_to_all_time(1e9, group(32, 8, slow))


def test_a_message_between_leaves_is_slower_and_named_after_the_spine() -> None:
    net, flat = spined(over=4), cluster("256xh100-sxm")
    assert group(4, 64, net).send(1e9) == pytest.approx(1e9 / (50e9 / 4 * 0.85) + 14e-6 + 8.4e-6)
    assert group(4, 16, net).send(1e9) == group(4, 16, flat).send(1e9)
    assert level(4, 64, net) == "spine"
    assert level(4, 16, net) == "InfiniBand NDR"


def test_a_layout_across_leaves_takes_longer_than_one_inside_them() -> None:
    model, job = load_model("llama-3.1-8b"), Job(4096, 256)
    layout = Layout(tp=8, pp=4)
    seconds = [count(model, job, net, layout).step.seconds for net in (spined(over=1), spined(over=16))]
    assert seconds[0] < seconds[1]
