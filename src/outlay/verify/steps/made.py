"""The model of a case on a rank's device: shaped without memory, cut over the ranks, then given memory. Loads torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from ...layout.case import Case
from ..models.build import cut, plain_model, recomputed
from ..models.gpt import gpt
from ..models.llama import Attention, Norm, angles

SPREAD = 0.02  # of the weights as they begin


def made(case: Case, mesh: DeviceMesh, device: torch.device) -> nn.Module:
    """The model of a case on this rank: cut first, and given memory then."""
    model = shaped(case)
    cut(model, mesh, case)
    filled(model, case, device)
    if case.model.tied:
        table = model.embedding if isinstance(model.embedding, nn.Embedding) else model.embedding.tokens
        table.weight = model.head.weight
    return model


def shaped(case: Case) -> nn.Module:
    """The model of a case without memory."""
    with torch.device("meta"), dtype_of(case):
        model = gpt(case.model) if case.model.positions else plain_model(case.model)[0]
    recomputed(model, case.layout.recompute)
    return model


@contextmanager
def dtype_of(case: Case) -> Iterator[None]:
    """The type that weights are made in: fp32 where they are cast for each use."""
    cast = case.layout.zero or case.layout.dp > 1 or case.job.precision == "fp32"
    torch.set_default_dtype(torch.float32 if cast else torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def filled(model: nn.Module, case: Case, device: torch.device) -> None:
    """Give a model memory and weights, positions, and the kernels of its device."""
    model.to_empty(device=device)
    with torch.no_grad():
        for weight in model.parameters():
            nn.init.normal_(weight, mean=float(weight.dim() == 1), std=SPREAD)
    dtype = torch.float32 if case.job.precision == "fp32" else torch.bfloat16
    for part in model.modules():
        if isinstance(part, Norm):
            part.fused = device.type == "cpu"  # torch has a fused one on a GPU
        if isinstance(part, Attention):
            shape = (case.job.sequence_length, part.dim)
            part.rotate = not case.model.positions
            part.tables = angles(torch.empty(shape, dtype=dtype, device=device))
