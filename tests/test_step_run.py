"""A real step beside its bill, as far as it needs no torch: classes of kernels, what shows, sizes, what is said."""

import json
from dataclasses import replace
from typing import Any

import pytest

import outlay
from outlay.bill import Bill, case_of, load
from outlay.cli.main import main
from outlay.errors import InputError
from outlay.job import AUTO
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style
from outlay.show.verified import agrees_all, verified_lines, verified_record
from outlay.verify.scaled import Scaled
from outlay.verify.steps import profiled
from outlay.verify.steps import run as step
from outlay.verify.steps.classes import counted_step
from outlay.verify.steps.profiled import CLASSES, Device, Kernel, Moments, Ran, class_of, moments_of, union
from outlay.verify.steps.run import StepItem, Stepped, compared, no_memory, otherwise, short_of_memory, stepped
from outlay.verify.steps.sizing import AtHand, Sized, sized
from outlay.verify.subject import NotRun, Subject
from outlay.verify.verified import Verified
from test_json import faults
from test_verify_face import without_torch

FSDP = "fsdp2-uncompiled"
H100 = AtHand("cuda", 8, 85.0e9)
NVIDIA = Device("cuda", "NVIDIA H100 80GB HBM3", 85_000_000_000, {"torch": "2.13.0+cu130", "driver": "580.65"})

# Names as profilers of H100, A100 and MI300X print them.
NAMED = {
    "matmul": (
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel"
        "__5x_cublas",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(Params)",
        "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<"
        "cutlass::gemm::GroupProblemShape>>>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false>",
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false>",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB0",
        "triton_tem_fused_mm_12",
        "aten::mm",
        "aten::addmm",
    ),
    "attention": (
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4>>(Params)",
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8>>",
        "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128, 64, 128, 8>>",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<cutlass::bfloat16_t>>>",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_32_64x128x128_4x1x1_kernel0_0",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)",
        "attn_fwd.kd",
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
    "communication": (
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "c10d::_reduce_scatter_base_",
        "_c10d_functional::wait_tensor",
        "gloo:all_gather",
    ),
    "optimizer": (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "
        "FusedAdamMathFunctor<float, 4, (ADAM_MODE)1, false>>",
        "aten::_fused_adamw_",
    ),
    "copies": (
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "void at::native::(anonymous namespace)::split_with_sizes_copy_out_contiguous_no_cast_kernel(char**, char*)",
        "void at::native::(anonymous namespace)::chunk_cat_cuda_kernel<float, c10::BFloat16>",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, "
        "Copy<c10::BFloat16, float, 2, 1, 1>>",
        "fsdp::all_gather_copy_in",
    ),
    "memory-bound": (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<OpaqueType<2u>>",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, LogSoftMax>",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
        "triton_poi_fused_mul_silu_3",
        "triton_red_fused__to_copy_mean_pow_rsqrt_5",
        "aten::silu",
    ),
}  # fmt: skip


def bill(hand: str = "8xh100-sxm", model: str = "llama-3.1-8b", sequence: int = 4096, **axes: Any) -> Bill:
    job = outlay.Job(sequence_length=sequence, precision="bf16", global_batch=axes.pop("batch", AUTO))
    cluster = outlay.load_cluster(hand)
    return outlay.count(outlay.load_model(model), job, cluster, outlay.Layout(**axes), axes.pop("engine", FSDP))


def size(of: Bill, hand: AtHand, layers: int = 0) -> Sized:
    return sized(of.model, of.job, of.cluster, of.layout, of.engine, hand, layers)


def as_counted(of: Bill, device: Device = NVIDIA) -> Ran:
    """A run that does exactly what a bill says: no measurement, and never shown as one."""
    shown = counted_step(load(case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]))
    moments = Moments(of.step.seconds, shown, shown, ())
    held = int(of.memory.allocated_bytes)
    return Ran(0, device, (of.step.seconds,) * 5, held, int(of.memory.reserved_bytes), moments)


# --- kernels by class -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "name"), [(kind, name) for kind, names in NAMED.items() for name in names])
def test_a_kernel_is_of_the_class_that_its_name_says(found: str, name: str) -> None:
    assert class_of(name) == found


def test_every_class_has_names_here() -> None:
    assert set(NAMED) == set(CLASSES)


def test_a_union_has_no_moment_twice_and_no_gap_filled() -> None:
    assert union([(4, 6), (0, 2), (1, 3), (5, 5), (6, 7), (9, 9)]) == [(0, 3), (4, 7)]
    assert union([]) == []


def test_exchange_shows_only_where_nothing_else_runs() -> None:
    """Two streams: 0 1 2 3 4 5 6 7 8
    compute         m m m m . e e . .
    exchange        . . . n n n . . .   of a step of 9 s that ends with a copy.
    """
    kernels = [
        Kernel("aten::mm", 0, 4), Kernel("ncclDevKernel_AllGather_RING_LL", 3, 6), Kernel("aten::silu", 5, 7),
        Kernel("Memcpy DtoD (Device -> Device)", 8, 9),
    ]  # fmt: skip
    found = moments_of(kernels, 9)

    assert found.shown == {
        "matmul": 4, "attention": 0, "memory-bound": 2, "optimizer": 0, "copies": 1, "communication": 1,
        "nothing runs": 1,
    }  # fmt: skip
    assert sum(found.shown.values()) == found.seconds == 9
    assert found.alone["communication"] == 3


def test_of_operations_inside_each_other_the_inner_one_says_more() -> None:
    kernels = [Kernel("aten::linear", 0, 5), Kernel("aten::mm", 1, 4), Kernel("aten::_foreach_copy_", 6, 8)]
    kernels.append(Kernel("aten::copy_", 6.5, 7.5))
    found = moments_of(kernels, 8, profiled.ON_A_CPU)

    assert (found.shown["matmul"], found.shown["memory-bound"], found.shown["copies"]) == (3, 2, 2)


def test_the_longest_kernels_are_kept_with_their_runs() -> None:
    found = moments_of([Kernel("aten::mm", at, at + 1) for at in range(3)] + [Kernel("aten::silu", 3, 4)], 4)

    assert found.longest == (("matmul", "aten::mm", 3, 3.0), ("memory-bound", "aten::silu", 1, 1.0))


# --- the bill by class ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "axes"),
    [
        ("llama-3.1-8b", {}),
        ("llama-3.1-8b", {"tp": 4, "recompute": "full"}),
        ("llama-3.1-8b", {"tp": 2, "pp": 2, "batch": 32, "recompute": "selective"}),
        ("mixtral-8x7b", {"batch": 32}),
        ("gpt3-175b", {"recompute": "full"}),
    ],
)
def test_the_classes_of_a_step_add_up_to_it(model: str, axes: dict[str, Any]) -> None:
    of = bill(model=model, sequence=2048, **axes)
    found = counted_step(load(case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]))

    assert sum(found.values()) == pytest.approx(of.step.seconds, rel=1e-12)
    assert set(found) == {*CLASSES, "nothing runs"}


def test_multiplies_take_no_less_than_their_arithmetic_at_the_peak() -> None:
    """6 N D FLOPs, and what attention has is not among them: 989 TFLOP/s of an H100."""
    of = bill()
    found = counted_step(load(case_of(of.model, of.job, of.cluster, of.layout, of.engine)[0]))
    least = 6 * (8.03e9 - 128_256 * 4096) * 4096 / 989.4e12

    assert least < found["matmul"] < 2 * least


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_a_case_is_cut_to_the_devices_and_to_their_memory() -> None:
    of = bill("64xh100-sxm", "llama-3.1-70b", batch=512, tp=4)
    small = size(of, H100)

    assert (small.bill.cluster.ranks, small.bill.layout.tp, small.bill.layout.dp) == (8, 4, 2)
    assert small.bill.derived.micro_batches == 4
    assert small.bill.memory.peak_band_bytes[1] <= small.bill.memory.usable_bytes
    assert small.bill.model.hidden == of.model.hidden and 1 < small.bill.model.layers < 80
    more = size(of, H100, small.bill.model.layers)
    assert more.bill.model.layers == small.bill.model.layers
    assert [said.partition(" of ")[0] for said in small.scaled] == ["8", "4", str(small.bill.model.layers)]


def test_what_fits_is_run_as_it_is_asked() -> None:
    of = bill(model="llama-3.2-1b", tp=2)
    small = size(of, H100)

    assert small.scaled == () and small.bill.step.seconds == of.step.seconds


@pytest.mark.parametrize(
    ("axes", "hand", "layers", "code"),
    [
        ({"tp": 8}, AtHand("cuda", 4, 85e9), 0, "VER021"),
        ({}, AtHand("cuda", 1, 2e9), 0, "VER022"),
        ({}, AtHand("cuda", 1, 20e9), 32, "VER022"),
        ({"pp": 8, "batch": 8}, AtHand("cpu", 2, 8e9), 0, "VER021"),
    ],
)
def test_what_cannot_be_run_here_is_one_fault(axes: dict[str, Any], hand: AtHand, layers: int, code: str) -> None:
    with pytest.raises(InputError) as failed:
        size(bill(**axes), hand, layers)

    assert [fault.code for fault in failed.value.faults] == [code]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"cp": 2}, "cp 2"), ({"engine": "megatron"}, "engine megatron"), ({"zero": 1}, "zero 1"),
        ({"offload_optimizer": 1.0}, "offload"), ({"pp": 2, "schedule": "zbv", "vpp": 2, "batch": 32}, "schedule zbv"),
        ({"recompute": "full", "recompute_layers": 3}, "some layers"), ({}, ""),
    ],
)  # fmt: skip
def test_what_no_step_is_run_of_is_said_in_one_line(axes: dict[str, Any], words: str) -> None:
    engine = axes.pop("engine", FSDP)
    job = outlay.Job(sequence_length=4096, precision="bf16", global_batch=axes.pop("batch", AUTO))
    model, cluster = outlay.load_model("llama-3.1-8b"), outlay.load_cluster("8xh100-sxm")
    why = otherwise(case_of(model, job, cluster, outlay.Layout(**axes), engine)[0])

    assert (words in why and "\n" not in why) if words else not why


# --- beside the bill ------------------------------------------------------------------------------------------------


def verified(of: Bill, *ranks: Ran) -> Verified:
    found = stepped(of, ranks)
    return Verified(tuple(compared(found)), (), (), step=found)


def test_a_run_as_counted_agrees_and_its_record_holds_all() -> None:
    of = bill()
    found = verified(of, as_counted(of))
    record = json.loads(json.dumps(verified_record(of, found)))

    assert agrees_all(found) and faults(OUTPUT_SCHEMAS["verify"](), record) == []
    assert [one["name"] for one in record["comparisons"]] == ["step time", "peak allocated", "peak reserved"]
    assert all(low <= one["measured"] <= high for one in record["comparisons"] for low, high in [one["band"]])
    assert all(item["in_band"] for item in record["step"]["items"])
    assert record["step"]["device"]["libraries"]["driver"] == "580.65"
    assert record["step"]["layers"] == 32 and len(record["step"]["ranks"][0]["seconds"]) == 5


def test_the_slowest_rank_is_told_and_the_largest_peak() -> None:
    of = bill()
    one = as_counted(of)
    other = replace(one, rank=1, seconds=(of.step.seconds * 2,) * 3, allocated=one.allocated + 10**9)
    time, peak, _ = verified(of, one, other).checked

    assert time.comparison.measured == 2 * of.step.seconds and time.agrees is False
    assert peak.comparison.measured == one.allocated + 10**9 and peak.agrees is False


def test_an_item_halved_lies_outside_its_band(monkeypatch: pytest.MonkeyPatch) -> None:
    of = bill()
    run = as_counted(of)
    monkeypatch.setattr(step, "counted_step", lambda loaded: counted_step(loaded) | {"matmul": 0.1})
    found = stepped(of, (run,))

    assert [item.name for item in found.items if not item.inside] == ["matmul"]
    assert "outside" in " ".join(verified_lines(of, Verified((), (), (), step=found), Style()))


def test_a_time_outside_its_band_disagrees_and_says_both() -> None:
    of = bill()
    found = verified(of, replace(as_counted(of), seconds=(1.2 * of.step.seconds,)))
    text = " ".join(" ".join(verified_lines(of, found, Style(width=120))).split())

    assert [one.comparison.name for one in found.wrong] == ["step time"]
    assert text.startswith("DISAGREES 1 of 3") and "OUTSIDE" in text and "NVIDIA H100 80GB HBM3" in text


@pytest.mark.parametrize("name", ["NVIDIA H200", "Intel(R) Xeon(R) Processor"])
def test_the_time_of_another_device_is_not_judged(name: str) -> None:
    of = bill()
    run = replace(as_counted(of), seconds=(3 * of.step.seconds,), device=replace(NVIDIA, name=name))
    time = verified(of, run).checked[0]

    assert time.agrees is None and name in time.reason and "h100-sxm" in time.reason


def test_memory_that_ran_out_is_told_with_a_smaller_case() -> None:
    fault = no_memory(bill(micro_batch=2), H100, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")

    assert fault.code == "VER023" and "32 layers, 4,096 tokens, micro-batch 2" in fault.what
    assert fault.fix.startswith("--layers 16, or --mbs 1")
    assert fault.what.startswith("memory ran out")
    assert no_memory(bill(), H100, "SIGKILL, as from the system").what.startswith("a rank was ended, as when")
    assert short_of_memory(fault.got) and not short_of_memory("ValueError: another shape")


@pytest.mark.parametrize(
    ("flags", "fix"), [(["step", "--device", "gpu"], "--device cpu"), (["peak", "--device", "cpu"], "--only step")]
)
def test_a_device_that_is_none_or_has_no_step_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str], fix: str
) -> None:
    without_torch(monkeypatch, {"torch": "2.13.0", "transformers": "5.24.0"})

    assert main(["verify", "llama-3.1-8b", "--on", "8xh100-sxm", "--json", "--only", *flags]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert fault["code"] == "VER020" and fault["fix"] in (fix, "--device cuda")


def test_what_is_not_run_needs_no_torch() -> None:
    of = bill(cp=2)
    subject = Subject(of.model, of.job, of.cluster, of.layout, of.engine, None)
    found = step.run_step(Scaled(subject, 0, lambda kind: None))

    assert found == NotRun(("step",), "cp 2: steps with data, tensor and pipeline parallelism are run")


def test_items_and_ranks_say_what_they_are() -> None:
    of = bill()
    found = Stepped(of, "2026-11-30", 3, (as_counted(of),), (StepItem("matmul", 1.0, 0.9, 1.1, 1.05),))

    assert found.items[0].inside and found.busiest is found.slowest and found.device is NVIDIA and found.judged
