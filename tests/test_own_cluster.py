"""A cluster of one's own, from a TOML file: read back as it was printed, and refused whole where it is wrong."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.cluster.accelerator import Cluster, Link, Price
from outlay.cluster.catalogue import accelerator, accelerator_names, cluster, clusters, node_names, template
from outlay.cluster.catalogue.units import UNITS, convert, written
from outlay.errors import Fault, InputError

LEVELS = """
[[levels]]
name = "NVLink4"
size = 8
bandwidth = "450 GB/s"
share = 0.8
latency_seconds = "2 us"
switch_share = 0.6
switch_seconds = "50 us"

[[levels]]
name = "RoCE"
bandwidth = "400 Gb/s"
share = 0.7
latency_seconds = "30 us"
"""
H100 = f'accelerator = "h100-sxm"\nranks = 64\n{LEVELS}'
OWN = """
[accelerator]
memory_bytes = "96 GiB"
context_bytes = "600 MiB"
memory_bandwidth = "2.4 TB/s"
host_bandwidth = "63 GB/s"
bf16_flops = "0.8 PFLOP/s"
matmul_share = 0.7
attention_share = 0.5
memory_share = 0.8
launch_seconds = "5 us"
"""


class Folder:
    """Writes files and reads clusters from them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, text: str | bytes, name: str = "lab.toml") -> str:
        (self.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(self.path / name)

    def made(self, text: str) -> Cluster:
        return cluster(self.file(text))

    def faults(self, text: str | bytes) -> tuple[Fault, ...]:
        with pytest.raises(InputError) as caught:
            cluster(self.file(text))
        assert all(all(vars(fault).values()) for fault in caught.value.faults)
        return caught.value.faults

    def said(self, text: str | bytes) -> list[tuple[str, str]]:
        """Each fault as its code and what it is about."""
        return [(fault.code, fault.what.split()[0]) for fault in self.faults(text)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# ---- there and back


@pytest.mark.parametrize("name", [*accelerator_names(), *node_names()])
@pytest.mark.parametrize("count", [1, 3, 64])
def test_a_printed_file_is_read_back_to_the_same_cluster(folder: Folder, name: str, count: int) -> None:
    printed = cluster(f"{count}x{name}")
    assert folder.made(template(printed)) == printed
    assert folder.made(template(printed, whole=True)) == printed


def test_a_file_of_ones_own_is_printed_and_read_back(folder: Folder) -> None:
    text = f'ranks = 64\nunverified = ["nic bandwidth"]\nname = "a \\"b\\" \\\\ c"\n{LEVELS}{OWN}'
    made = folder.made(text)
    assert made.name == 'a "b" \\ c'
    assert folder.made(template(made)) == made


@given(st.floats(1e-9, 1e18), st.sampled_from(["flops", "bytes", "bandwidth", "seconds", "price"]))
def test_a_written_figure_is_exactly_the_number(value: float, measure: str) -> None:
    number, unit = written(value, measure).split(" ")
    assert unit in UNITS[measure]
    assert convert(float(number), unit, measure) == value


def test_a_figure_is_written_as_its_maker_writes_it() -> None:
    assert written(81559 * 2**20, "bytes") == "81559 MiB"
    assert written(989.4e12, "flops") == "989.4 TFLOP/s"
    assert written(50e9, "bandwidth") == "50 GB/s"


# ---- what a file says


def test_the_levels_are_those_of_the_file(folder: Folder) -> None:
    made = folder.made(f'name = "lab"\n{H100}')
    assert (made.name, made.ranks, made.accelerator) == ("lab", 64, accelerator("h100-sxm"))
    assert made.inside == Link("NVLink4", 8, 450e9, 0.8, 2e-6, 0.6, 50 * 1e-6)
    assert made.outside == Link("RoCE", 64, 50e9, 0.7, 30 * 1e-6)
    assert (made.spine, made.rails, made.price, made.notes, made.unverified) == (None, 1, None, (), ())


def test_a_file_without_a_name_is_called_after_itself(folder: Folder) -> None:
    assert cluster(folder.file(H100, "dorm room.toml")).name == "dorm room"


def test_a_file_that_names_an_accelerator_alone_has_its_usual_links_and_says_so(folder: Folder) -> None:
    made, usual = folder.made('accelerator = "a100-sxm-80"\nranks = 64'), cluster("64xa100-sxm-80")
    assert (made.inside, made.outside) == (usual.inside, usual.outside)
    assert made.notes == ("NVLink3 and InfiniBand HDR as the catalogue has them for a100-sxm-80",)


def test_a_share_that_is_not_said_is_the_catalogues_and_is_named_in_the_bill(folder: Folder) -> None:
    text = H100.replace("share = 0.7\n", "")
    made = folder.made(text)
    assert made.outside.share == 0.85
    assert made.notes == ("share of RoCE as h100-sxm has them",)
    bill = count(load_model("llama-3.1-8b"), Job(4096, 64), made, Layout(tp=8))
    assert made.notes[0] in bill.assumptions


def test_a_base_gives_what_the_file_leaves_out(folder: Folder) -> None:
    card = folder.made(f'ranks = 8\n{LEVELS}[accelerator]\nbase = "h100-sxm"\nmemory_bytes = "96 GiB"').accelerator
    usual = accelerator("h100-sxm")
    assert (card.name, card.vendor, card.memory_bytes) == ("h100-sxm-own", "NVIDIA", 96 * 2**30)
    assert (card.bf16_flops, card.matmul_share) == (usual.bf16_flops, usual.matmul_share)


def test_a_recalled_figure_of_the_base_stays_marked_until_it_is_replaced(folder: Folder) -> None:
    start = f'ranks = 8\n{LEVELS}[accelerator]\nbase = "a100-sxm-80"\n'
    assert folder.made(start).unverified == ("memory bytes",)
    assert folder.made(f'{start}memory_bytes = "80 GiB"').unverified == ()
    assert folder.made(H100.replace("h100-sxm", "a100-sxm-80")).unverified == ("memory bytes",)


def test_an_accelerator_of_ones_own_lacks_the_rates_that_it_does_not_say(folder: Folder) -> None:
    card = folder.made(f"ranks = 8\n{LEVELS}{OWN}").accelerator
    assert (card.bf16_flops, card.fp16_flops, card.fp8_flops, card.fp4_flops) == (0.8e15, 0, 0, 0)


def test_nics_multiply_and_oversubscription_divides(folder: Folder) -> None:
    shared = folder.made(H100.replace('"400 Gb/s"', '"100 Gb/s"\nnics = 0.125')).outside
    four = folder.made(H100.replace('"400 Gb/s"', '"100 Gb/s"\nnics = 4\noversubscription = 2'))
    assert shared.bandwidth == 100e9 / 8 / 8
    assert four.outside.bandwidth == 4 * 100e9 / 8 / 2
    assert four.notes == ("RoCE: 25 GB/s an accelerator, at 2 to 1 oversubscription",)


def test_a_third_level_is_a_spine_over_leaves(folder: Folder) -> None:
    text = H100.replace('name = "RoCE"', 'name = "RoCE"\nsize = 32') + "\n[[levels]]\noversubscription = 4\n"
    made = folder.made(text)
    assert made.outside.size == 32
    assert made.spine == Link("spine", 64, 12.5e9, 0.7, 30 * 1e-6)
    assert folder.made(text.replace("ranks = 64", "ranks = 32")).spine is None  # one leaf has nothing above it


def test_two_levels_of_bridged_cards_are_the_bridge_and_the_network(folder: Folder) -> None:
    """What the file leaves out of its network is the catalogue's network's, not that of PCIe between the bridges."""
    text = 'accelerator = "h100-pcie"\nranks = 16\n[[levels]]\nname = "NVLink"\nsize = 2\nbandwidth = "300 GB/s"\n'
    text += '[[levels]]\nname = "RoCE"\nbandwidth = "100 Gb/s"\n'
    made, usual = folder.made(text), cluster("16xh100-pcie")
    assert usual.spine is not None
    assert made.spine is None
    assert (made.outside.share, made.outside.latency_seconds) == (usual.spine.share, usual.spine.latency_seconds)
    whole = folder.made('accelerator = "h100-pcie"\nranks = 16')
    assert (whole.inside, whole.outside, whole.spine) == (usual.inside, usual.outside, usual.spine)
    assert "NVLink4 bridge (pair) and PCIe 5 and Ethernet" in whole.notes[0]


def test_the_memory_of_the_host_is_an_accelerators_part(folder: Folder) -> None:
    assert folder.made(H100).host_bytes is None
    assert folder.made(f'host_bytes = "256 GiB"\n{H100}').host_bytes == 256 * 2**30
    assert folder.said(f'host_bytes = "0 GiB"\n{H100}') == [("HW007", "host_bytes")]


def test_one_level_joins_a_small_cluster(folder: Folder) -> None:
    only = 'accelerator = "rtx4090"\nranks = 4\n[[levels]]\nname = "PCIe"\nsize = 4\nbandwidth = "25 GB/s"\n'
    made = folder.made(only)
    assert (made.inside.size, made.outside.size, made.inside.share) == (4, 4, 0.4)
    assert folder.said(only.replace("ranks = 4", "ranks = 8")) == [("HW008", "levels[0].size")]


def test_a_price_of_ones_own_is_that_of_the_cluster(folder: Folder) -> None:
    text = f'{H100}[price]\nprice = "17.60 USD/h"\naccelerators = 8\ndate = "2026-10"\n'
    made = folder.made(text)
    assert made.price == Price(17.6, 8, "2026-10")
    assert made.dollars() == pytest.approx(8 * 17.6)


def test_rails_are_said(folder: Folder) -> None:
    made = folder.made(f"rails = 8\n{H100}")
    assert made.rails == 8
    assert made.notes == ("8 rails: what an all-to-all sends to another rail crosses NVLink4 first",)


# ---- counts before a file


def test_a_count_before_the_file_replaces_its_ranks(folder: Folder) -> None:
    path = folder.file(f'name = "lab"\naccelerators_per_node = 8\n{H100}')
    assert [one.ranks for one in clusters(f"8,16, 32x{path}")] == [8, 16, 32]
    assert [one.name for one in clusters(f"8,16x{path}")] == ["8xlab", "16xlab"]
    assert cluster(f"16x{path}").outside.size == 16
    assert [one.ranks for one in clusters(f"8xh100-sxm,{path}")] == [8, 64]


@pytest.mark.parametrize("count", ["0", "-1", "1e3", "10000001"])
def test_a_bad_count_before_a_file_is_refused(folder: Folder, count: str) -> None:
    with pytest.raises(InputError) as caught:
        cluster(f"{count}x{folder.file(H100)}")
    assert [fault.code for fault in caught.value.faults] == ["HW002"]


def test_a_file_whose_name_looks_like_a_count_is_that_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    folder.file(H100, "8xlab.toml")
    assert cluster("8xlab.toml").ranks == 64


# ---- what is refused


def test_every_fault_is_said_at_once_by_the_path_of_its_field(folder: Folder) -> None:
    text = (
        H100.replace("ranks = 64", "ranks = 0\nrail = 8")
        .replace('"450 GB/s"', "450")
        .replace("share = 0.7", "share = nan")
        .replace('"30 us"', '"30 GB"')
    )
    assert folder.said(text) == [
        ("HW007", "nothing"),
        ("HW007", "ranks"),
        ("UNI001", "levels[0].bandwidth"),
        ("HW007", "levels[1].share"),
        ("UNI001", "levels[1].latency_seconds"),
    ]
    assert "did you mean rails?" in folder.faults(text)[0].fix


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1.5", "true", '"much"', "[]", "1979-05-27"])
def test_a_share_is_above_zero_and_at_most_one(folder: Folder, value: str) -> None:
    assert [what for _, what in folder.said(H100.replace("share = 0.7", f"share = {value}"))] == ["levels[1].share"]


@pytest.mark.parametrize(
    "value", ['"0 GB/s"', '"-400 Gb/s"', '"nan Gb/s"', '"inf Gb/s"', '"1e400 Gb/s"', '"400 Gbps"', '"400"', "400",
              '"400 GiB"', '"fast"', '""', "[400]", "true", "0xffffffffffffffffffff", '"4 Gb/s a card"']
)  # fmt: skip
def test_a_bandwidth_is_above_zero_with_its_unit(folder: Folder, value: str) -> None:
    (fault,) = folder.faults(H100.replace('"400 Gb/s"', value))
    assert fault.code in {"HW007", "UNI001"}
    assert fault.what.startswith("levels[1].bandwidth ")
    assert tomllib.loads(fault.fix)


def test_the_fix_of_a_unit_keeps_the_users_number(folder: Folder) -> None:
    (fault,) = folder.faults(H100.replace('"400 Gb/s"', '"200 Gbps"'))
    assert fault.fix == 'bandwidth = "200 Gb/s"'
    assert "b is a bit and B a byte" in fault.rule


@pytest.mark.parametrize("value", ["0", "-8", "8.0", "true", '"8"', "10000001", "1e3", "0x" + "f" * 5000])
def test_ranks_are_a_whole_number(folder: Folder, value: str) -> None:
    assert folder.said(H100.replace("ranks = 64", f"ranks = {value}"))[0] == ("HW007", "ranks")


def test_ranks_are_whole_nodes(folder: Folder) -> None:
    (fault,) = folder.faults(f"accelerators_per_node = 8\n{H100.replace('ranks = 64', 'ranks = 60')}")
    assert (fault.code, fault.fix) == ("HW008", "ranks = 56 or 64")
    assert folder.made(f"accelerators_per_node = 8\n{H100.replace('ranks = 64', 'ranks = 4')}").ranks == 4


def test_a_leaf_holds_whole_domains(folder: Folder) -> None:
    text = H100.replace('name = "RoCE"', 'name = "RoCE"\nsize = 12') + "\n[[levels]]\n"
    (fault,) = folder.faults(text)
    assert (fault.code, fault.fix) == ("HW008", "size = 16")


def test_the_outermost_level_joins_all(folder: Folder) -> None:
    assert folder.said(H100.replace('name = "RoCE"', 'name = "RoCE"\nsize = 32')) == [("HW008", "levels[1].size")]


def test_there_are_no_more_rails_than_accelerators_of_a_domain(folder: Folder) -> None:
    assert folder.said(f"rails = 16\n{H100}") == [("HW008", "rails")]


@pytest.mark.parametrize(
    "text",
    [
        'accelerator = ["h100-sxm", "a100-sxm-80"]\nranks = 16',
        'ranks = 16\n[[accelerators]]\nname = "h100-sxm"\n[[accelerators]]\nname = "a100-sxm-80"',
        'ranks = 16\n[[nodes]]\nname = "p5.48xlarge"\n[[nodes]]\nname = "p4d.24xlarge"',
    ],
)
def test_two_kinds_of_accelerator_are_refused_with_the_reason(folder: Folder, text: str) -> None:
    fault = folder.faults(text)[0]
    assert fault.code == "HW005"
    assert "the slowest sets every step" in fault.rule
    assert "count each kind by itself" in fault.fix


@pytest.mark.parametrize("text", ["8xh100-sxm+8xa100-sxm-80", "2xp5.48xlarge + 2xp4d.24xlarge"])
def test_two_kinds_in_the_flag_are_refused_alike(text: str) -> None:
    with pytest.raises(InputError) as caught:
        cluster(text)
    (fault,) = caught.value.faults
    assert fault.code == "HW005"
    assert cluster(fault.fix.removeprefix("--on ").split("   ")[0])


def test_a_misspelt_accelerator_gets_the_nearest_and_a_node_type_its_own(folder: Folder) -> None:
    (near,) = folder.faults(H100.replace('"h100-sxm"', '"h100-smx"'))
    (node,) = folder.faults(H100.replace('"h100-sxm"', '"p5.48xlarge"'))
    assert near.code == node.code == "HW001"
    assert near.fix.startswith('accelerator = "h100-sxm"')
    assert node.fix.startswith('accelerator = "h100-sxm"') and "node type" in node.what


def test_every_missing_figure_of_an_accelerator_is_named(folder: Folder) -> None:
    needed = {"memory_bytes", "context_bytes", "memory_bandwidth", "host_bandwidth", "matmul_share", "memory_share",
              "attention_share", "launch_seconds"}  # fmt: skip
    found = folder.faults(f'ranks = 8\n{LEVELS}[accelerator]\nbf16_flops = "1 PFLOP/s"')
    assert {fault.what for fault in found} == {f"accelerator.{name} is missing" for name in needed}
    assert folder.said(f"ranks = 8\n{LEVELS}{OWN}".replace("bf16_flops", "fp8_flops")) == [
        ("HW007", "accelerator.bf16_flops")
    ]


def test_memory_of_nothing_is_refused(folder: Folder) -> None:
    assert folder.said(f"ranks = 8\n{LEVELS}{OWN}".replace('"96 GiB"', '"0 GiB"')) == [
        ("HW007", "accelerator.memory_bytes")
    ]


def test_an_empty_file_lacks_what_a_cluster_needs(folder: Folder) -> None:
    assert folder.said("") == [("HW007", "accelerator"), ("HW007", "ranks"), ("HW007", "levels")]


@pytest.mark.parametrize("text", ["levels = 3", "levels = []", "levels = [1, 2]", LEVELS * 2])
def test_levels_are_one_to_three_tables(folder: Folder, text: str) -> None:
    assert ("HW007", "levels") in folder.said(f'accelerator = "h100-sxm"\nranks = 8\n{text}')


@pytest.mark.parametrize("text", ["accelerator = 3", "price = 3", "name = 3", 'name = ""', 'name = "\\u001b[2J"',
                                  "unverified = 3", "unverified = [3]", 'rails = "8"'])  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_its_name(folder: Folder, text: str) -> None:
    rest = H100.replace('accelerator = "h100-sxm"\n', "") if text.startswith("accelerator") else H100
    assert ("HW007", text.split()[0]) in folder.said(f"{text}\n{rest}")


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (b"\xff\xfe\x00", "bytes that are not UTF-8"),
        (b"ranks = ", "no TOML"),
        (b"ranks = 8\nranks = 8", "no TOML"),
        (b"a = " + b"[" * 10_000, "no TOML"),
        (b"#" * (2**20 + 1), "more than 1,048,576 bytes"),
    ],
)
def test_a_file_that_is_no_small_toml_is_refused(folder: Folder, text: bytes, got: str) -> None:
    (fault,) = folder.faults(text)
    assert fault.code == "HW006"
    assert fault.got.startswith(got)


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe", "nul"])
def test_a_path_without_a_file_is_refused(folder: Folder, kind: str) -> None:
    place = folder.path / "place.toml"
    if kind == "folder":
        place.mkdir()
    if kind == "pipe":
        os.mkfifo(place)  # a reader would wait for ever
    with pytest.raises(InputError) as caught:
        cluster("a\0.toml" if kind == "nul" else str(place))
    assert [fault.code for fault in caught.value.faults] == ["HW006"]


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


def toml(value: Any) -> str:
    """A value as TOML; what TOML lacks is an empty text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value or "" if not 0xD800 <= ord(letter) < 0xE000) + '"'


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["name", "accelerator", "ranks", "rails", "levels", "price", "unverified", "size", "x"]), VALUES
    )
)
def test_any_file_is_a_cluster_or_faults(folder: Folder, values: dict[str, Any]) -> None:
    path = folder.file("".join(f"{key} = {toml(value)}\n" for key, value in values.items()))
    found: tuple[Fault, ...] = ()
    try:
        assert load_cluster(path).ranks >= 1
    except InputError as error:
        found = error.faults or (Fault("", "", "", "", ""),)
    for fault in found:
        assert all(part and len(part) < 400 and part.isprintable() for part in vars(fault).values())
