"""The four coarse counts, each figure as a textbook gives it, and what the refined counts make of the same inputs."""

from fractions import Fraction
from math import isclose, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import LLAMA_7B, loaded
from outlay import Bill, Job, Layout, count, explain, load_cluster
from outlay.ladder import rungs
from outlay.memory.activations import best_segments, checkpoint_share, checkpoint_units, coarse_activation_bytes
from outlay.memory.states import resident_bytes, state_bytes
from outlay.schedule.bubble import bubble_share, held_slots, schedule_share, useful_slots
from outlay.schedule.laws import SCHEDULES
from outlay.step.traffic import coarse_gradient_bytes, tokens_at_parity, transfer_seconds

GB = 1e9
TOKENS, LAYERS, HIDDEN, VALUES, HALF = 32_768, 32, 4096, 10, 2


def exact_share(pp: int, micro_batches: int) -> Fraction:
    """The bubble by the formula itself, with whole numbers that never round."""
    share = bubble_share(Fraction(pp), Fraction(micro_batches))
    assert isinstance(share, Fraction)
    return share


def bill(seq: int = 4096, batch: int = 64, cluster: str = "8xa100-sxm-80", **axes: object) -> Bill:
    """A 7 B model on eight accelerators, 16 bytes a parameter."""
    return count(LLAMA_7B, Job(seq, batch, bytes_per_parameter="16"), load_cluster(cluster), Layout(**axes))


# --- idle time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pp", "micro_batches", "share"),
    [(8, 1, Fraction(7, 8)), (16, 48, Fraction(15, 63)), (8, 32, Fraction(7, 39)), (1, 5, Fraction(0))],
)
def test_a_pipeline_idles_p_minus_1_slots_of_m_plus_p_minus_1(pp: int, micro_batches: int, share: Fraction) -> None:
    assert exact_share(pp, micro_batches) == share


def test_8_stages_and_32_micro_batches_use_256_of_312_slots() -> None:
    assert (useful_slots(8, 1, 32), held_slots(8, 1, 32), held_slots(8, 1, 32) / 8) == (256, 312, 39)
    bubble = bill(batch=32, pp=8).bubble
    assert (bubble.slots, bubble.useful_slots, bubble.held_slots) == (39, 256, 312)
    assert bubble.share == 7 / 39


@given(st.integers(1, 64), st.integers(1, 200))
def test_a_staircase_drawn_slot_by_slot_idles_the_share_of_the_formula(pp: int, micro_batches: int) -> None:
    ends: dict[tuple[int, int], int] = {}
    for batch in range(micro_batches):
        for stage in range(pp):
            ends[batch, stage] = 1 + max(ends.get((batch, stage - 1), 0), ends.get((batch - 1, stage), 0))
    last = max(ends.values())
    assert last == micro_batches + pp - 1
    assert exact_share(pp, micro_batches) == Fraction(pp * last - len(ends), pp * last)


def test_8_stages_idle_at_most_5_percent_from_133_micro_batches_on() -> None:
    assert exact_share(8, 133) <= Fraction(5, 100) < exact_share(8, 132)


def test_4_stages_idle_at_most_20_percent_from_12_micro_batches_on() -> None:
    assert exact_share(4, 12) <= Fraction(1, 5) < exact_share(4, 11)
    assert exact_share(4, 12) == Fraction(1, 5)


def test_the_share_tends_to_nothing_as_micro_batches_grow() -> None:
    shares = [exact_share(8, 10**power) for power in range(8)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < Fraction(1, 10**6)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_gpipe_and_1f1b_idle_alike_and_only_hold_different_numbers_of_micro_batches(schedule: str) -> None:
    law = SCHEDULES[schedule]
    assert schedule_share(8, law.parts(1, 1, 1, 8, 1), 32) == 7 / 39
    assert law.in_flight(0, 8, 1, 32, 8) == {"gpipe": 32, "1f1b": 8}[schedule]


def test_twice_the_micro_batches_of_one_size_halve_the_share_and_lengthen_the_step() -> None:
    once, twice = bill(batch=32, pp=8, micro_batch=1), bill(batch=64, pp=8, micro_batch=1)
    assert (once.bubble.share, twice.bubble.share) == (7 / 39, 7 / 71)
    assert 0.5 < twice.bubble.share / once.bubble.share < 0.56
    assert twice.step.seconds > once.step.seconds
    assert twice.bubble.seconds == once.bubble.seconds > 0
    assert (once.bubble.slots, twice.bubble.slots) == (39, 71)


# --- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "stock", "ranks", "share"), [(50e9, 800, 64, 12.5), (13e9, 208, 32, 6.5), (7e9, 112, 1, 112)]
)
def test_state_is_a_stock_of_16_bytes_a_parameter_before_it_is_a_share(
    parameters: float, stock: float, ranks: int, share: float
) -> None:
    assert state_bytes(parameters, 16) / GB == stock
    assert state_bytes(parameters, 16) / ranks / GB == share


def test_14_of_the_112_gb_of_7_b_parameters_are_its_weights() -> None:
    assert (state_bytes(7e9, 2) / GB, state_bytes(7e9, 16) / GB) == (14, 112)
    held = {item.name: item.value for item in bill(cluster="1xa100-sxm-80").memory.items}
    weights, state = held["weights"], held["weights"] + held["gradients"] + held["optimizer"]
    assert state == 8 * weights == bill(cluster="1xa100-sxm-80").memory.unsharded_state_bytes


def test_the_two_moments_are_the_price_between_8_and_16_bytes() -> None:
    plain_descent = 2 + 2 + 4  # weight, gradient, master
    assert state_bytes(1, 16) - state_bytes(1, plain_descent) == 4 + 4


def test_freezing_a_parameter_removes_14_of_its_16_bytes() -> None:
    assert resident_bytes(1, 1, 2, 16) - resident_bytes(1, 0, 2, 16) == 14


def test_an_adapter_divides_what_is_trained_by_a_hundred_and_what_is_resident_by_less_than_8() -> None:
    everything, adapter = resident_bytes(7e9, 1, 2, 16), resident_bytes(7e9, 0.01, 2, 16)
    assert isclose(state_bytes(7e9, 16) / state_bytes(0.01 * 7e9, 16), 100)
    assert 7 < everything / adapter < 8
    assert isclose(adapter / GB, 1.12 + 13.86)


@given(st.floats(0, 1))
def test_no_freezing_saves_more_than_a_factor_of_8(trained: float) -> None:
    assert resident_bytes(7e9, 1, 2, 16) / resident_bytes(7e9, trained, 2, 16) <= 8


def test_the_bill_shows_the_stock_beside_the_share() -> None:
    memory = bill(zero=3).memory
    assert memory.unsharded_state_bytes == 16 * 6_738_415_616
    assert memory.state_bytes == 2 * 6_738_415_616


# --- activations ----------------------------------------------------------------------------------------------------


def tape(tokens: int = TOKENS) -> float:
    """The textbook's tape of 32 layers of width 4096 in half precision."""
    return float(coarse_activation_bytes(tokens, LAYERS, HIDDEN, VALUES, HALF))


def test_ten_values_a_token_a_layer_are_85_9_gb_for_32_768_tokens() -> None:
    assert tape() == 85_899_345_920


def test_twice_the_sequence_is_172_gb_and_more_than_the_state() -> None:
    assert round(tape(2 * TOKENS) / GB) == 172
    assert tape() < state_bytes(7e9, 16) < tape(2 * TOKENS)


def test_state_and_tape_of_7_b_parameters_are_112_and_86_gb_and_the_weights_are_counted_once() -> None:
    both = state_bytes(7e9, 16) + tape()
    assert round(both / GB) == 112 + 86
    exact = loaded(LLAMA_7B, "1xa100-sxm-80", seq=TOKENS, batch=1)
    coarse = rungs("memory", exact)[0].value
    assert coarse == 16 * 6_738_415_616 + 85_899_345_920


@pytest.mark.parametrize(("layers", "segments", "factor"), [(100, 10, 5), (64, 8, 4)])
def test_the_best_checkpoints_are_sqrt_l_segments_that_divide_the_tape_by_half_of_it(
    layers: int, segments: int, factor: int
) -> None:
    assert best_segments(layers) == segments
    assert isclose(1 / checkpoint_share(layers, segments), factor)
    assert isclose(factor, sqrt(layers) / 2)


@given(st.integers(1, 400))
def test_no_number_of_segments_stores_less_than_2_sqrt_l_layers(layers: int) -> None:
    least = min(checkpoint_share(layers, segments) * layers for segments in range(1, layers + 1))
    assert least >= 2 * sqrt(layers) * (1 - 1e-12)
    assert isclose(checkpoint_share(layers, best_segments(layers)) * layers, 2 * sqrt(layers))


def test_checkpoints_leave_30_of_86_gb_of_32_layers_and_then_the_state_binds() -> None:
    kept = tape() * checkpoint_share(LAYERS, best_segments(LAYERS))
    assert round(kept / GB, 1) == 30.4
    assert kept < state_bytes(7e9, 16)


def test_recompute_runs_a_forward_pass_again_a_third_of_the_arithmetic() -> None:
    forward, backward = 2, 4  # FLOPs a parameter and token
    step = bill(recompute="full").step
    head = 2 * 32_000 * 4096 * 64 * 4096 / (step.model_flops / 3)  # the head is not recomputed
    assert forward / (forward + backward) == 1 / 3
    assert isclose(step.hfu / step.mfu, 1 + (1 - head) / 3, rel_tol=1e-9)


def test_a_real_tape_of_a_llama_layer_is_1_6_times_ten_values_in_megatron_and_1_9_in_pytorch() -> None:
    for engine, ratio in (("megatron", 1.6), ("fsdp2", 1.9)):
        coarse, refined, *_ = rungs("memory.activations", loaded(LLAMA_7B, "1xa100-sxm-80", engine, TOKENS, 1))
        assert coarse.value == 85_899_345_920
        assert round(refined.value / coarse.value, 1) == ratio


def test_recompute_in_full_keeps_an_input_a_layer_and_the_tape_of_one() -> None:
    whole = bill(TOKENS, 1, "1xa100-sxm-80", recompute="full").memory
    plain = bill(TOKENS, 1, "1xa100-sxm-80").memory
    inputs = TOKENS * HIDDEN * HALF
    in_one_layer = plain.activation_bytes / LAYERS / inputs
    held = {item.name: item.value for item in whole.items}
    assert held["activations"] == LAYERS * inputs
    units = checkpoint_units(LAYERS, LAYERS, in_one_layer)  # the input of the layer that runs again stands among them
    assert held["activations"] + held["recomputed"] == inputs * (units - 1)


def test_state_does_not_depend_on_the_batch_and_activations_do() -> None:
    short, long = bill(TOKENS, 1, tp=8).memory, bill(2 * TOKENS, 1, tp=8).memory
    assert short.state_bytes == long.state_bytes
    assert long.activation_bytes == 2 * short.activation_bytes


# --- traffic --------------------------------------------------------------------------------------------------------


def test_the_gradients_of_7_b_parameters_take_0_28_s_over_50_gb_a_second_and_41_percent_of_a_step() -> None:
    sent = coarse_gradient_bytes(7e9, 2)
    exchange, arithmetic = transfer_seconds(sent, 50e9), 0.4
    assert (sent / GB, exchange) == (14, 0.28)
    assert round(100 * exchange / (exchange + arithmetic)) == 41


def sent(**axes: int) -> tuple[float, float]:
    """Bytes that a rank sends in a step on its one axis, for a sequence and for twice as long a one."""
    short, long = ({item.axis: item.bytes for item in bill(seq, **axes).traffic} for seq in (4096, 8192))
    axis = max(short, key=lambda each: short[each])
    return short[axis], long[axis]


def test_data_parallelism_moves_parameters_and_tensor_parallelism_moves_tokens() -> None:
    data, of_twice_the_tokens = sent(dp_shard=8)
    assert data == of_twice_the_tokens
    tensor, of_twice_the_tokens = sent(tp=8)
    assert 2 * tensor == of_twice_the_tokens


def test_a_pipeline_moves_least_of_all_and_pays_with_the_bubble() -> None:
    pipeline, of_twice_the_tokens = sent(pp=8)
    assert 2 * pipeline == of_twice_the_tokens
    assert pipeline < sent(dp_shard=8)[0] < sent(tp=8)[0]
    assert bill(pp=8).bubble.seconds > 0 == bill(tp=8).bubble.seconds == bill(dp_shard=8).bubble.seconds


def test_a_ring_moves_2_n_minus_1_over_n_of_the_gradients() -> None:
    case = loaded(LLAMA_7B, "8xa100-sxm-80", batch=64, zero=0)
    coarse, refined, *_ = rungs("traffic.dp", case)
    assert coarse.value == 2 * 6_738_415_616
    assert refined.value == 2 * 7 / 8 * 4 * 6_738_415_616  # gradients are summed in fp32


def test_the_tokens_at_which_both_axes_move_as_much_do_not_depend_on_either_of_them() -> None:
    tokens = tokens_at_parity(7e9, 2, HIDDEN, LAYERS, HALF, 8)
    assert isclose(coarse_gradient_bytes(7e9, 2) * 2, tokens * 8 * HALF * HIDDEN * LAYERS)


# --- the derivation -------------------------------------------------------------------------------------------------


def test_the_bubble_is_explained_with_its_numbers() -> None:
    line = next(iter(explain(bubble_share, 8, 32).lines()))
    assert line.startswith("bubble_share = (pp - 1) / (micro_batches + pp - 1) = (8 - 1) / (32 + 8 - 1) = 17.95 %")
