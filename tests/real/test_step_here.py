"""outlay verify --only step run for real on the CPU: one rank, FSDP2, tensor parallelism and a pipeline over gloo."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from command_runs import Ask
from small_models import deepseek, gpt2, llama, mixtral
from torch.autograd import DeviceType

from outlay.errors import Fault, InputError
from outlay.verify import together
from outlay.verify.models.kernels import FusedNorm
from outlay.verify.steps import run as step
from outlay.verify.steps import training
from outlay.verify.steps.profiled import ON_A_DEVICE, moments_of

pytestmark = pytest.mark.filterwarnings("ignore")
LLAMA = llama(128, 4)
ALONE = {"on": "1xh100-sxm", "zero": "0", "bytes_per_parameter": "8", "sequence_length": "1024"}


@pytest.fixture
def ask(ask_verify: Ask) -> Ask:
    """A real step of a config."""
    return partial(ask_verify, on="2xh100-sxm", sequence_length="128", only="step", device="cpu")


def test_one_rank_holds_what_is_counted_and_its_time_is_shared_out(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[step.Stepped] = []
    whole = step.stepped
    monkeypatch.setattr(step, "stepped", lambda *inputs: kept.append(whole(*inputs)) or kept[0])
    code, record = ask(LLAMA, layers="2", **ALONE)
    time, peak = record["comparisons"]

    assert code == 0 and record["agrees"]
    assert peak["agrees"] is True and peak["within"] == 0.02  # to the allocator's own events
    assert time["agrees"] is None and "h100-sxm" in time["reason"]
    (rank,) = record["step"]["ranks"]
    assert len(rank["seconds"]) == 5 and all(seconds > 0 for seconds in rank["seconds"])
    assert sum(rank["shown_seconds"].values()) == pytest.approx(rank["profiled_seconds"])
    assert all(rank["shown_seconds"][name] > 0 for name in ("matmul", "attention", "memory-bound", "optimizer"))
    assert rank["shown_seconds"]["communication"] == 0
    assert {"aten::mm", "aten::_fused_adamw_"} <= {kernel["name"] for kernel in rank["kernels"]}
    assert "2 of 4 layers" in record["scaled"][0]
    half_of_the_activations_is_found(kept[0])
    a_gpu_is_judged_by_its_allocator(kept[0])


def half_of_the_activations_is_found(run: step.Stepped) -> None:
    """A fault planted in the bill of the same run: half of its activations."""
    memory = run.bill.memory
    less = replace(memory, allocated_bytes=memory.allocated_bytes - memory.activation_bytes / 2)
    found = [*step.compared(replace(run, bill=replace(run.bill, memory=less)))]

    assert [one.comparison.name for one in found if one.agrees is False] == ["peak allocated"]


def a_gpu_is_judged_by_its_allocator(run: step.Stepped) -> None:
    """The same run told as if an H100 had done it."""
    gpu = replace(run.device, kind="cuda", name="NVIDIA H100 80GB HBM3")
    ranks = tuple(replace(rank, device=gpu, reserved=2 * rank.allocated) for rank in run.ranks)
    time, allocated, reserved = step.compared(replace(run, ranks=ranks))

    assert time.agrees is False  # no H100 takes so long
    assert allocated.agrees is True and reserved.comparison.measured == 2 * allocated.comparison.measured


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        (LLAMA, {"layers": "2"}),
        (mixtral(128, 2), {"zero": "2", "global_batch": "4"}),
        (LLAMA, {"tp": "2", "layers": "2"}),
        (LLAMA, {"pp": "2", "vpp": "2", "global_batch": "4"}),
    ],
    ids=["shards", "experts", "tensors", "stages"],
)
def test_two_ranks_run_together(ask: Ask, config: dict[str, Any], flags: dict[str, str]) -> None:
    record = ask(config, **flags)[1]

    assert [rank["rank"] for rank in record["step"]["ranks"]] == [0, 1]
    assert all(rank["shown_seconds"]["communication"] > 0 for rank in record["step"]["ranks"])
    assert all(one["agrees"] is not False for one in record["comparisons"])
    assert record["step"]["layout"]["tp"] == int(flags.get("tp", 1))


def test_gpt_2_is_run_too(ask: Ask) -> None:
    code, record = ask(gpt2(128, 2), **ALONE)

    assert code == 0 and record["comparisons"][1]["agrees"] is True


def test_without_an_accelerator_one_line_says_what_to_do(ask: Ask) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    code, record = ask(LLAMA, device="cuda")

    assert code == 1 and record["comparisons"] == []
    assert "--device cpu" in record["not_run"][0]["reason"]


def test_memory_that_runs_out_on_a_rank_is_told_with_a_smaller_case(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*inputs: Any) -> list[Any]:
        got = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
        raise InputError(Fault("VER007", "rank 1 of 2 ended before its work was done", "", got, ""))

    monkeypatch.setattr(together, "together", lost)
    with pytest.raises(InputError) as failed:
        ask(LLAMA)
    (fault,) = failed.value.faults

    assert fault.code == "VER023" and "--layers 2" in fault.fix and "4 layers, 128 tokens" in fault.what


# --- what only a GPU gives, on events as its profiler makes them ------------------------------------------------------


class Event:
    """An event of torch's profiler."""

    def __init__(self, name: str, start: int, end: int, kind: Any = DeviceType.CUDA, note: bool = False) -> None:
        self.values = {"name": name, "start_ns": start, "end_ns": end, "device_type": kind, "is_user_annotation": note}

    def __getattr__(self, name: str) -> Any:
        return lambda: self.values.get(name, False)


def test_of_a_gpu_kernels_and_copies_count_and_no_span_around_them() -> None:
    events = [
        Event("ProfilerStep#3", 0, 10**9, note=True),
        Event("nccl:_all_gather_base", 3 * 10**8, 6 * 10**8, note=True),
        Event("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 3 * 10**8, 6 * 10**8),
        Event("nvjet_tst_128x256_64x4_2x1_v_bz_coopB_TNT", 10**8, 4 * 10**8),
        Event("Memcpy DtoD (Device -> Device)", 7 * 10**8, 8 * 10**8),
        Event("aten::mm", 0, 10**8, DeviceType.CPU),
        Event("cudaLaunchKernel", 0, 10**8, DeviceType.CPU),
    ]
    shown = moments_of(training.kernels_of(events, DeviceType.CUDA), 1.0, ON_A_DEVICE).shown

    assert {name: round(seconds, 9) for name, seconds in shown.items() if seconds} == {
        "matmul": 0.3, "copies": 0.1, "communication": 0.2, "nothing runs": 0.4,
    }  # fmt: skip


def test_latent_attention_is_not_run_on_a_cpu(ask: Ask) -> None:
    code, record = ask(deepseek(2))

    assert code == 1 and "latent attention" in record["not_run"][0]["reason"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_fused_norm_gives_what_torchs_own_gives(turned: bool) -> None:
    """In parts of 64 rows, of which 100 are no multiple; turned, as norms of heads come."""
    torch.manual_seed(0)
    x = torch.randn(2, 100, 4, 32, requires_grad=True)
    weight = torch.randn(32, requires_grad=True)
    seen = x.transpose(1, 2) if turned else x
    theirs, ours = torch.nn.functional.rms_norm(seen, (32,), weight, 1e-5), FusedNorm.apply(seen, weight, 1e-5)
    grads = [torch.autograd.grad(out.square().sum(), (x, weight)) for out in (theirs, ours)]

    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)
