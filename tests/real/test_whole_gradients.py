"""Gradients that stand whole, and a model that is one unit: FSDP2's own collectives and tensors against the counts."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from test_exchange_bytes import (
    FSDP2,
    HEADS,
    HIDDEN,
    LAYERS,
    MODEL,
    VOCAB,
    WIDTH,
    N,
    counted,
    logged_step,
    sent,
    sharded,
    small_model,
    whole_bytes,
)
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import outlay
from outlay.layout.axes import ALONE
from outlay.verify.comparisons.tracking import tracked_step
from outlay.verify.models.llama import Llama, cross_entropy

pytestmark = pytest.mark.filterwarnings("ignore")
WHOLE = replace(ALONE, dp_shard=8, zero=3, accumulate_whole=True)
UNIT = replace(ALONE, dp_shard=8, zero=3, gather_unit="model")


def held_whole(model: Any) -> int:
    """Bytes of gradients that wait, not yet scattered."""
    groups = [group for part in (*model.layers, model) for group in fully_shard.state(part)._fsdp_param_groups]
    weights = [weight for group in groups for weight in group.fsdp_params]
    summed = [weight.unsharded_accumulated_grad for weight in weights]
    return sum(gradient.nbytes for gradient in summed if gradient is not None)


def loss_of(model: Llama, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """What a step goes backward from."""
    return cross_entropy(model(tokens), targets)


@pytest.mark.parametrize("reshard", [True, False])
def test_without_sync_gradients_are_scattered_once_and_weights_are_gathered_as_ever(
    mesh: DeviceMesh, reshard: bool
) -> None:
    wrap = sharded(mesh, reshard)
    calls = logged_step(wrap, 3, before=lambda model, last: model.set_requires_gradient_sync(last))
    layout = replace(WHOLE, zero=3 if reshard else 2)

    assert whole_bytes(calls, "scatter") == 4 * N
    assert whole_bytes(calls, "gather") == 3 * (4 if reshard else 2) * N
    assert sent(calls) == counted("dp", layout, 3, replace(FSDP2, gathers_ends=False))


def test_without_sync_every_gradient_waits_whole_in_the_type_it_is_reduced_in(mesh: DeviceMesh) -> None:
    with small_model() as (model, tokens):
        sharded(mesh, True)(model)
        model.set_requires_gradient_sync(False)
        cross_entropy(model(tokens), tokens.clone()).backward()
        assert held_whole(model) == 4 * N


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_one_unit_is_gathered_once_a_micro_batch(mesh: DeviceMesh, micro_batches: int) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    calls = logged_step(lambda model: fully_shard(model, mesh=mesh, mp_policy=policy), micro_batches)

    assert whole_bytes(calls, "gather") == 2 * N * micro_batches
    assert whole_bytes(calls, "scatter") == 4 * N * micro_batches
    assert sent(calls) == counted("dp", UNIT, micro_batches)


@pytest.mark.parametrize(("reduce", "name"), [(torch.float32, "fp32"), (torch.bfloat16, "bf16")])
def test_at_its_end_one_unit_holds_its_gradients_and_what_is_scattered_of_them(
    mesh: DeviceMesh, reduce: torch.dtype, name: str
) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    with FakeTensorMode():
        model = Llama(HIDDEN, LAYERS, HEADS, HEADS, WIDTH, VOCAB)
        tokens = torch.zeros(1, 8, dtype=torch.long)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        step = tracked_step(model, iter(model.layers), loss_of, (tokens, tokens))
    ends = {kind: size for kind, size in step.peaks["ends"].items() if kind not in ("Activation", "Inputs")}
    job = outlay.Job(sequence_length=8, global_batch=8, precision="bf16", reduce_dtype=name)
    layout = replace(UNIT, micro_batch=1)
    found = outlay.count(MODEL, job, outlay.load_cluster("8xh100-sxm"), layout, FSDP2).memory.items
    held = {item.name: item.value for item in found if item.name != "buffers"}

    counters = 4 * len(list(model.parameters()))
    assert sum(ends.values()) - counters == pytest.approx(sum(held.values()), rel=1e-4)
