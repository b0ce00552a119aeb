"""How tapes, gathered inputs, gradients and weights are held: who can do it, and what follows."""

import json

import pytest

from models import LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import Bill, Job, Layout, count, load_cluster, parameters
from outlay.cli.main import main
from outlay.search.plan import plan
from outlay.show.parts import how

WHOLE = parameters(LLAMA_8B).total


def bill(engine: str, on: str = "8xh200-sxm", batch: int = 32, **axes: object) -> Bill:
    return count(LLAMA_8B, Job(4096, batch), load_cluster(on), Layout(**axes), engine)  # type: ignore[arg-type]


def items(found: Bill) -> dict[str, float]:
    return {item.name: item.value for item in found.memory.items}


def broken(found: Bill) -> dict[str, tuple[str, ...]]:
    """The codes of broken rules, and the values that would obey."""
    return {rule.code: rule.legal_values for rule in found.violations}


@pytest.mark.parametrize(
    ("engine", "axes", "code"),
    [
        ("megatron", {"recompute": "full", "recompute_group": 4}, None),
        ("megatron", {"recompute": "full", "recompute_layers": 16, "recompute_group": 4}, "LAY050"),
        ("megatron", {"recompute_group": 4}, "LAY050"),
        ("megatron_deepspeed", {"recompute": "full", "recompute_group": 4}, None),
        ("fsdp2", {"recompute": "full", "recompute_group": 4}, None),
        ("fsdp2-torchtitan", {"recompute": "full", "recompute_group": 4}, "LAY051"),
        ("hf_trainer", {"recompute": "full", "recompute_group": 4}, "LAY051"),
        ("nanotron", {"tp": 2, "keep_gathered": True}, None),
        ("megatron", {"tp": 2, "keep_gathered": True}, "LAY052"),
        ("fsdp2", {"tp": 2, "keep_gathered": False}, "LAY052"),
        ("fsdp2", {"gather_unit": "model"}, None),
        ("hf_trainer", {"zero": 3, "gather_unit": "model"}, None),
        ("deepspeed", {"zero": 3, "gather_unit": "model"}, "LAY053"),
        ("megatron", {"zero": 3, "gather_unit": "model"}, "LAY053"),
        ("fsdp2", {"accumulate_whole": True}, None),
        ("deepspeed", {"zero": 1, "accumulate_whole": True}, None),
        ("deepspeed", {"zero": 2, "accumulate_whole": True}, "LAY054"),
        ("nanotron", {"offload_optimizer": 1.0}, "LAY056"),
        ("megatron-2022", {"offload_activations": 1.0}, "LAY056"),
        ("megatron_deepspeed", {"offload_optimizer": 1.0}, None),
        ("megatron", {"offload_activations": 1.0, "pp": 2}, None),
        ("megatron", {"offload_parameters": 1.0}, None),
        ("megatron", {"offload_parameters": 1.0, "pp": 2}, "LAY057"),
        ("megatron", {"offload_parameters": 1.0, "recompute": "full"}, "LAY057"),
        ("fsdp2", {"offload_parameters": 1.0, "recompute": "full"}, None),
        ("deepspeed", {"zero": 0, "offload_optimizer": 1.0}, "LAY058"),
        ("deepspeed", {"zero": 1, "offload_optimizer": 1.0}, None),
        ("deepspeed", {"zero": 2, "offload_parameters": 1.0}, "LAY058"),
    ],
)
def test_who_can_hold_what(engine: str, axes: dict[str, object], code: str | None) -> None:
    """Megatron-Core, transformer_block.py, model_parallel_config.py: cpu_offloading; nanotron, tp_recompute_allgather;
    DeepSpeed, engine.py: no_sync, zero/config.py and zero/offload_config.py."""
    assert [*broken(bill(engine, **axes))] == ([code] if code else [])


def test_a_choice_that_an_engine_has_not_is_refused_with_the_one_that_it_has() -> None:
    assert broken(bill("megatron", tp=2, keep_gathered=True)) == {"LAY052": ("false",)}
    assert broken(bill("deepspeed", zero=3, gather_unit="model")) == {"LAY053": ("layer",)}


def test_gradients_leave_with_the_optimizer_in_deepspeed_with_the_weights_in_fsdp_and_stay_in_megatron() -> None:
    """Published ZeRO-3 peaks with the optimizer on the host hold none; torch, CPUOffloadPolicy; Megatron's buffer."""
    assert items(bill("deepspeed", zero=3, offload_optimizer=0.5))["gradients"] == 0.5 * 2 * WHOLE / 8
    assert items(bill("deepspeed", zero=3, offload_parameters=1.0))["gradients"] == 2 * WHOLE / 8
    assert items(bill("fsdp2", offload_parameters=1.0))["gradients"] == 0
    assert items(bill("megatron", zero=1, offload_optimizer=1.0, offload_parameters=1.0))["gradients"] == 4 * WHOLE


def test_gradients_that_leave_stand_on_the_host() -> None:
    """12 bytes of optimizer and 2 of gradients a parameter, over 8 ranks."""
    said = next(text for text in bill("deepspeed", zero=3, offload_optimizer=1.0).assumptions if "offload:" in text)
    assert said.startswith(f"offload: {14 * WHOLE / 8 / 1e9:,.1f} GB of host memory an accelerator")


@pytest.mark.parametrize(("reduce", "held"), [("fp32", 4), ("bf16", 2)])
def test_one_unit_is_gathered_once_a_micro_batch_and_holds_the_larger_of_gradients_and_what_is_scattered(
    reduce: str, held: int
) -> None:
    """torch 2.13: bf16 gradients beside bf16 weights, or beside a buffer in the type that is reduced."""
    job = Job(4096, 16, reduce_dtype=reduce)
    found = count(LLAMA_8B, job, load_cluster("8xh200-sxm"), Layout(gather_unit="model", recompute="full"), "fsdp2")
    assert found.traffic[-1].bytes == 2 * (2 + held) * WHOLE * 7 / 8
    assert items(found)["gathered"] == 2 * WHOLE
    assert items(found)["unit"] == held * WHOLE


def test_all_recomputed_together_are_a_tape_of_everything() -> None:
    """One group of all layers keeps one input, and holds what no recompute would have kept."""
    one = items(bill("megatron", on="8xb200", recompute="full", recompute_group=32))
    none = items(bill("megatron", on="8xb200"))
    assert one["activations"] == 2 * 4096 * 4096
    assert one["activations"] + one["recomputed"] == none["activations"]


def test_a_larger_group_changes_memory_and_no_time() -> None:
    single, pairs = (bill("megatron", recompute="full", recompute_group=group) for group in (1, 2))
    assert single.step == pairs.step


def test_what_a_layout_says_of_it_survives_the_bill(capsys: pytest.CaptureFixture[str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    flags = "--engine nanotron --tp 2 --keep-gathered --seq 4096 --batch 32"
    main(["count", "llama-3-8b", "--on", "8xh200-sxm", *flags.split(), "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["layout"]["keep_gathered"] is True
    (file := tmp_path / "bill.json").write_text(json.dumps(printed))
    main(["count", str(file), "--json"])
    again = json.loads(capsys.readouterr().out)
    assert again["memory"] == printed["memory"]
    main(["count", str(file), "--engine", "megatron", "--json"])
    other = json.loads(capsys.readouterr().out)
    assert (other["layout"]["keep_gathered"], other["violations"]) == (False, [])


def test_a_search_with_the_trainer_counts_as_its_bills_do() -> None:
    """Its gradients stay whole while they accumulate, in the search too."""
    small = {"tp": (1,), "cp": (1,), "micro_batch": (1,), "recompute": ("full",), "zero": (3,), "hybrid": (False,)}
    found = plan(LLAMA_8B, Job(4096, 64), load_cluster("8xh200-sxm"), "hf_trainer", best=3, **small)
    (best, *_) = found.best
    assert best.layout.accumulate_whole
    same = next(point for point in found.frontier if point.layout == best.layout)
    assert same.peak_bytes == pytest.approx(best.bill.memory.peak_bytes)
    assert items(best.bill)["gradients"] == 2 * WHOLE  # in the type that they are reduced in


def test_a_pipeline_of_torch_accumulates_whole_whatever_is_said() -> None:
    """torch 2.13, PipelineStage: no gradient sync until the last backward pass."""
    each, last = (
        items(
            count(
                LLAMA_70B,
                Job(4096, 64),
                load_cluster("64xh200-sxm"),
                Layout(pp=4, zero=3, accumulate_whole=told),
                "fsdp2",
            )
        )
        for told in (False, True)
    )
    assert each["gradients"] == last["gradients"]


@pytest.mark.parametrize("axes", [{"pp": 4}, {"pp": 2, "vpp": 2, "schedule": "interleaved"}])
def test_a_group_is_never_more_layers_than_a_chunk_has(axes: dict[str, object]) -> None:
    """Chunks of 8 layers: a group of 16 is one of 8."""
    own, more = (items(bill("megatron", recompute="full", recompute_group=group, **axes)) for group in (8, 16))

    assert own == more
    assert own["recomputed"] > 0


def test_gradients_that_are_not_cut_are_not_said_to_be() -> None:
    """One micro-batch makes them in its backward pass; no_sync, and a pipeline of torch, scatter after the last one."""

    def said(engine: str, batch: int, **axes: object) -> dict[str, str]:
        found = bill(engine, batch=batch, **axes)
        return {item.name: how(item, found) for item in found.memory.items}

    fresh, cut, kept = said("fsdp2", 8), said("fsdp2", 32), said("fsdp2", 32, accumulate_whole=True)
    whole = said("fsdp2-torchtitan", 32, pp=2)
    assert fresh["gradients"] == "come with the backward pass"
    assert cut["gradients"] == "8.030 billion x 4 bytes / 8 ranks"
    assert kept["gradients"] == "whole until the last micro-batch"
    assert (whole["gradients"], whole["weights"]) == ("4.015 billion x 4 bytes", "4.015 billion x 4 bytes / 4 ranks")


@pytest.mark.parametrize(
    ("axes", "legal"),
    [
        ({"ep": 4}, True),
        ({"ep": 1}, False),
        ({"ep": 4, "pp": 2}, False),
        ({"ep": 4, "pp": 2, "vpp": 4}, True),
        ({"ep": 4, "recompute": "full"}, False),
        ({"ep": 4, "recompute": "selective", "recompute_modules": ("moe_act",)}, True),
        ({"ep": 4, "recompute": "selective", "recompute_modules": ("moe",)}, False),
        ({"ep": 4, "moe_dispatch": "all_gather"}, False),
        ({"ep": 4, "moe_dispatch": "deduplicated"}, True),
    ],
)
def test_megatron_hides_the_exchange_between_experts_beside_other_passes_alone(
    axes: dict[str, object], legal: bool
) -> None:
    """Megatron-Core, TransformerConfig: what overlap_moe_expert_parallel_comm asserts."""
    made = count(MIXTRAL, Job(2048, 32), load_cluster("8xh100-sxm"), Layout(overlap_ep=True, **axes))  # type: ignore[arg-type]
    assert ("LAY055" not in broken(made)) == legal
