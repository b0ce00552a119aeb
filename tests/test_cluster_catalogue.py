"""The hardware catalogue: every figure says where it comes from, and `--on` is read or refused whole."""

import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.cluster.accelerator import Accelerator, Cluster
from outlay.cluster.catalogue import (
    Figure,
    accelerator,
    accelerator_names,
    cluster,
    clusters,
    convert,
    figures,
    node,
    node_names,
)
from outlay.cluster.efficiency import flops_per_byte, memory_over_link, peak_rate
from outlay.errors import Fault, InputError

MIB = 2**20
ALL_NAMES = (*accelerator_names(), *node_names())
EVERY_FIGURE = [(name, figure) for name in ALL_NAMES for figure in figures(name)]


def faults(text: str, read: object = cluster) -> tuple[Fault, ...]:
    with pytest.raises(InputError) as caught:
        read(text)  # type: ignore[operator]
    return caught.value.faults


def codes(text: str, read: object = cluster) -> list[str]:
    return [fault.code for fault in faults(text, read)]


def figure(name: str, of: str) -> Figure:
    return next(one for one in figures(of) if one.name == name)


# ---- the tables


def test_the_usual_nodes_are_there() -> None:
    usual = {"p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"}
    usual |= {"a2-ultragpu-8g", "a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4-highgpu-8g"}
    usual |= {"ND96isr_H100_v5", "trn2.48xlarge", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72"}
    assert usual <= set(node_names())


@pytest.mark.parametrize(("name", "of"), EVERY_FIGURE, ids=[f"{name}: {of.name}" for name, of in EVERY_FIGURE])
def test_every_figure_says_its_unit_kind_date_and_source(name: str, of: Figure) -> None:
    assert of.si >= 0
    assert of.unit
    assert of.kind in {"specified", "measured", "assumed"}
    assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", of.date)
    assert 3 < len(of.source) < 240
    assert isinstance(of.unverified, bool)


@pytest.mark.parametrize("name", accelerator_names())
def test_every_accelerator_has_each_figure_once(name: str) -> None:
    own = [field.name.replace("_", " ") for field in fields(Accelerator) if field.type is not str]
    links = [f"{level} {part}" for level in ("link", "nic") for part in ("bandwidth", "share", "latency seconds")]
    found = sorted(one.name for one in figures(name))
    mesh = ["link paths"] if cluster(name).inside.paths > 1 else []
    parts = ("bandwidth", "share", "latency seconds", "size")
    host = [f"pcie {part}" for part in parts] if "bridge" in cluster(name).inside.name else []
    own.remove("power watts")  # left out where no page says it
    power = ["power watts"] if accelerator(name).power_watts else []
    adds = ["link switch share", "link switch seconds"] if cluster(name).inside.switch_share else []
    assert found == sorted([*own, *power, *links, *adds, "link size", *mesh, *host])


@pytest.mark.parametrize("name", accelerator_names())
def test_every_accelerator_has_figures_of_a_likely_size(name: str) -> None:
    """A wrong unit is a factor of 8, 1000 or more; each range here is narrower than that."""
    card, built = accelerator(name), cluster(name)
    alone = built.inside.size == 1  # nothing is joined: one memory for CPU and GPU
    assert (1e13 if alone else 5e13) < max(card.bf16_flops, card.fp16_flops) < 1e16
    assert 1e10 < card.memory_bytes < 6e11
    assert 2e11 < card.memory_bandwidth < 3e13
    assert 1e10 < card.host_bandwidth < 5e11 or card.host_bandwidth == card.memory_bandwidth
    assert 5e-7 < card.launch_seconds < 2e-5
    assert 5e-7 < card.collective_seconds < 2e-5
    assert 1.5e10 < built.inside.bandwidth < 2e12
    assert 1e9 < built.outside.bandwidth <= 2e11
    assert 5e-7 < built.inside.latency_seconds <= built.outside.latency_seconds < 1e-4
    for share in (card.matmul_share, card.attention_share, card.memory_share, built.inside.share, built.outside.share):
        assert 0.1 < share <= 1


@pytest.mark.parametrize("name", accelerator_names())
def test_what_was_fitted_or_judged_is_never_called_specified(name: str) -> None:
    assert all(one.kind != "specified" for one in figures(name) if one.name.split()[-1] in {"share", "seconds"})


@pytest.mark.parametrize("name", node_names())
def test_every_node_is_filled_with_a_known_accelerator(name: str) -> None:
    one = node(name)
    assert one.accelerator in accelerator_names()
    assert 1 <= one.accelerators <= 72
    assert one.domain == 8 or one.accelerator not in {"b200", "b300", "h200-sxm", "mi300x"}
    assert 3e8 < one.nic_bandwidth < 2e11
    assert one.price_per_hour is None or 1 < one.price_per_hour < 500


# ---- figures that were read from public pages


@pytest.mark.parametrize(
    ("name", "bf16", "fp8", "mebibytes", "bandwidth", "domain", "link", "nic"),
    [
        ("a100-sxm-40", 312, 0, 40960, 1555, 8, 300, 200),
        ("a100-sxm-80", 312, 0, 81920, 2039, 8, 300, 200),
        ("h100-sxm", 989.4, 1979, 81559, 3350, 8, 450, 400),
        ("h200-sxm", 989.4, 1979, 143771, 4800, 8, 450, 400),
        ("h20", 148, 296, 97871, 4000, 8, 450, 400),
        ("b200", 2250, 4500, 183359, 7700, 8, 900, 400),
        ("gb200", 2500, 5000, 189471, 8000, 72, 900, 400),
        ("mi300x", 1307.4, 2614.9, 196592, 5300, 8, 448, 400),
        ("tpu-v5p", 459, 459, 97280, 2765, 8960, 600, 50),
        ("tpu-v6e", 918, 918, 32768, 1638, 256, 400, 100),
        ("trn2", 667, 1299, 98304, 2900, 16, 640, 200),
        ("gaudi3", 1677, 1677, 131072, 3700, 8, 525, 600),
        ("l40s", 362, 733, 46068, 864, 8, 31.5, 200),
        ("rtx4090", 165.2, 330.3, 24564, 1008, 8, 31.5, 12.5),
    ],
)
def test_an_accelerator_has_its_published_figures(
    name: str, bf16: float, fp8: float, mebibytes: int, bandwidth: float, domain: int, link: float, nic: float
) -> None:
    card, one = accelerator(name), cluster(name)
    assert card.bf16_flops == pytest.approx(bf16 * 1e12)
    assert card.fp8_flops == pytest.approx(fp8 * 1e12)
    assert card.memory_bytes == mebibytes * MIB
    assert card.memory_bandwidth == pytest.approx(bandwidth * 1e9)
    assert one.inside.size == domain
    assert one.inside.bandwidth == pytest.approx(link * 1e9)
    assert one.outside.bandwidth == pytest.approx(nic * 1e9 / 8)


def test_an_h100_has_81559_mib_and_not_its_label() -> None:
    assert accelerator("h100-sxm").memory_bytes == 81559 * MIB == 85_520_809_984


def test_a_v100_has_no_bf16_but_fp16() -> None:
    assert accelerator("v100-sxm2-32").bf16_flops == 0
    assert accelerator("v100-sxm2-32").fp16_flops == 125e12


def test_four_bits_run_at_their_published_rate_and_where_there_is_none_at_zero() -> None:
    rates = {name: accelerator(name).fp4_flops / 1e12 for name in ("h100-sxm", "b200", "gb200", "gb300", "mi355x")}
    assert rates == {"h100-sxm": 0, "b200": 9000, "gb200": 10000, "gb300": 15000, "mi355x": 10066}
    assert peak_rate(accelerator("gb300"), "fp4") == 15e15


def test_half_precision_runs_at_one_rate_on_every_nvidia_card_with_bf16() -> None:
    cards = [accelerator(name) for name in accelerator_names()]
    assert all(card.fp16_flops == card.bf16_flops for card in cards if card.vendor == "NVIDIA" and card.bf16_flops)


def test_the_matrix_share_is_the_one_that_predicts_published_runs() -> None:
    shares = {name: accelerator(name).matmul_share for name in ("a100-sxm-80", "h100-sxm", "b200", "gb200", "mi300x")}
    assert shares == {"a100-sxm-80": 0.775, "h100-sxm": 0.69, "b200": 0.423, "gb200": 0.52, "mi300x": 0.51}
    assert "Korthikanti 2022, Narayanan 2021" in figure("matmul share", "a100-sxm-80").source
    assert figure("matmul share", "h200-sxm").kind == "assumed"


def test_a_price_is_dated_and_a_recalled_one_says_so() -> None:
    assert node("p5.48xlarge").price_per_hour == 55.04
    assert not figure("price", "p5.48xlarge").unverified
    assert figure("price", "p4d.24xlarge").unverified
    assert figure("price", "p4d.24xlarge").date == "2025-06"
    assert node("dgx-h100").price_per_hour is None


# ---- balance


def test_an_h100_does_295_flops_in_the_time_of_one_byte() -> None:
    assert round(flops_per_byte(accelerator("h100-sxm"))) == 295


def test_h100_memory_is_67_times_faster_than_a_400_gigabit_nic() -> None:
    one = cluster("64xh100-sxm")
    assert memory_over_link(one.accelerator, one.outside) == pytest.approx(67)


# ---- units


def test_units_become_si() -> None:
    assert convert(400, "Gb/s", "bandwidth") == pytest.approx(convert(50, "GB/s", "bandwidth"))
    assert convert(81559, "MiB", "bytes") == 81559 * 1_048_576
    assert convert(15, "us", "seconds") == pytest.approx(15e-6)


@pytest.mark.parametrize(
    ("unit", "measure"), [("GiB", "bandwidth"), ("Gb/s", "bytes"), ("GFlops", "flops"), ("", "share"), ("%", "share")]
)
def test_a_unit_that_is_unknown_or_measures_something_else_is_refused(unit: str, measure: str) -> None:
    with pytest.raises(InputError) as caught:
        convert(1, unit, measure)
    assert [fault.code for fault in caught.value.faults] == ["UNI001"]


# ---- what --on means


def test_a_count_of_accelerators_is_that_many_ranks() -> None:
    one = cluster("64xh100-sxm")
    assert (one.name, one.ranks, one.accelerator) == ("64xh100-sxm", 64, accelerator("h100-sxm"))
    assert (one.inside.name, one.inside.size) == ("NVLink4", 8)
    assert one.outside.size == 64


def test_a_count_of_nodes_is_all_their_accelerators() -> None:
    one = cluster("8xp5.48xlarge")
    assert (one.name, one.ranks, one.accelerator.name) == ("8xp5.48xlarge", 64, "h100-sxm")
    assert one.outside.name == "EFAv2"
    assert cluster("2xgb200-nvl72").ranks == 144
    assert cluster("4xa4x-highgpu-4g").inside.size == 72


def test_a_name_alone_is_one_of_it() -> None:
    assert cluster("h100-sxm").ranks == 1
    assert cluster("p5.48xlarge").ranks == 8
    assert cluster("rtx4090") == cluster("1xrtx4090")


def test_a_cluster_smaller_than_its_domain_keeps_the_domain() -> None:
    assert cluster("4xh100-sxm").inside.size == 8
    assert cluster("8xgb200").inside.size == 72


@pytest.mark.parametrize("name", ["l40s", "rtx4090"])
def test_a_card_without_a_link_talks_over_pcie_in_a_host_of_eight(name: str) -> None:
    one = cluster(f"16x{name}")
    assert (one.inside.name, one.inside.size) == ("PCIe 4", 8)
    assert figure("link size", name).kind == "assumed"


def test_a_node_brings_its_own_network() -> None:
    assert cluster("2xa3-highgpu-8g").outside.bandwidth == pytest.approx(12.5e9)
    assert cluster("2xp5en.48xlarge").outside.share == 0.92
    assert cluster("16xh200-sxm").outside.share == 0.85


def test_figures_that_were_not_read_again_are_named() -> None:
    assert cluster("8xh100-sxm").unverified == ()
    assert cluster("8xa100-sxm-80").unverified == ("memory bytes", "nic bandwidth")
    assert cluster("8xp4de.24xlarge").unverified == ("memory bytes", "host bytes")
    assert "nic bandwidth" in cluster("ND96isr_H100_v5").unverified


@pytest.mark.parametrize("text", [" 64 x h100-sxm ", "64XH100-SXM", "64\u00d7h100-sxm", "064xh100-sxm"])
def test_spaces_capitals_and_a_times_sign_are_forgiven(text: str) -> None:
    assert cluster(text) == cluster("64xh100-sxm")


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_name_can_be_asked_for_with_a_count(name: str) -> None:
    many = cluster(f"3x{name.upper()}")
    assert isinstance(many, Cluster)
    assert many.name == f"3x{name}"
    assert many.ranks == 3 * cluster(name).ranks


def test_a_list_of_counts_is_a_scaling_table() -> None:
    assert [one.ranks for one in clusters("8,16, 32,64xh100-sxm")] == [8, 16, 32, 64]
    assert [one.ranks for one in clusters("1,2xp5.48xlarge")] == [8, 16]
    assert clusters("64xh100-sxm") == (cluster("64xh100-sxm"),)
    assert [one.name for one in clusters("8xh200-sxm,16xh100-sxm")] == ["8xh200-sxm", "16xh100-sxm"]


# ---- what cannot be read


def test_a_misspelt_name_is_answered_with_the_whole_corrected_text() -> None:
    (fault,) = faults("64xh100-smx")
    assert fault.code == "HW001"
    assert fault.what == 'no accelerator is called "h100-smx"'
    assert fault.got == '"64xh100-smx"'
    assert fault.fix.startswith("--on 64xh100-sxm ")
    assert "also close: h800-sxm, h200-sxm" in fault.fix


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("8xa100", "8xa100-sxm-80"),
        ("h100", "h100-sxm"),
        ("2xp5.48xlrge", "2xp5.48xlarge"),
        ("4xtpuv5p", "4xtpu-v5p"),
        ("8xdgx-h1000", "8xdgx-h100"),
        ("8xND96isr_H100", "8xND96isr_H100_v5"),
    ],
)
def test_a_name_that_is_nearly_right_gets_a_fix_that_can_be_pasted(text: str, right: str) -> None:
    (fault,) = faults(text)
    pasted = fault.fix.removeprefix("--on ").split("   ")[0]
    assert pasted == right
    assert cluster(pasted)


def test_a_name_like_no_other_points_to_the_list() -> None:
    assert faults("8xqqqqqqqq")[0].fix == "outlay hardware lists the names"
    assert faults("qqqqqqqq")[0].code == "HW001"


@pytest.mark.parametrize(
    "count",
    ["0", "-3", "+8", "1e400", "1e3", "nan", "inf", "8.5", "10000001", "9" * 5000, "1_0", "\u0663", "abc", ""],
)
def test_a_count_that_is_not_a_positive_whole_number_is_refused(count: str) -> None:
    (fault,) = faults(f"{count}xh100-sxm")
    assert fault.code == "HW002"
    assert "1 to 10,000,000" in fault.rule
    assert cluster(fault.fix.removeprefix("--on "))


def test_ten_million_is_a_limit_on_accelerators_and_not_on_nodes() -> None:
    assert cluster("10000000xh100-sxm").ranks == 10_000_000
    assert cluster("1250000xp5.48xlarge").ranks == 10_000_000
    assert codes("1250001xp5.48xlarge") == ["HW002"]


@pytest.mark.parametrize("text", ["", "   ", "x", "8x", "64", ",", "8xx", "nan"])
def test_a_text_that_names_nothing_is_refused(text: str) -> None:
    assert codes(text) == ["HW003"]


def test_all_faults_come_at_once_and_none_twice() -> None:
    assert codes("0xh100-smx") == ["HW002", "HW001"]
    assert sorted(codes("0,-1,8,16xh100-smx", clusters)) == ["HW001", "HW002", "HW002"]
    assert codes("8,,16xh100-sxm", clusters) == ["HW003"]
    assert codes("8,16", clusters) == ["HW003"]


@pytest.mark.parametrize("ask", [accelerator, node, figures])
def test_an_unknown_name_is_refused_by_every_question(ask: object) -> None:
    assert codes("h100-smx", ask) == ["HW001"]


def test_a_users_text_is_printed_quoted_and_short() -> None:
    (fault,) = faults("64x\x1b[31mh100-smx")
    assert "\x1b" not in f"{fault.what}{fault.got}{fault.fix}"
    assert all(len(part) < 300 for part in vars(faults("h" * 100_000)[0]).values())


@given(st.text(max_size=40) | st.from_regex(r"[0-9.e-]{0,6}[xX]?[a-z0-9-]{0,12}", fullmatch=True))
def test_any_text_is_a_cluster_or_a_fault(text: str) -> None:
    assert all(isinstance(answer, Cluster) or all(vars(answer).values()) for answer in answers(text))


def answers(text: str) -> list[Cluster | Fault]:
    found: list[Cluster | Fault] = []
    for read in (lambda of: (cluster(of),), clusters):
        try:
            found.extend(read(text))
        except InputError as error:
            found.extend(error.faults or [Fault("", "", "", "", "")])
    return found
