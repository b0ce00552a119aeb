"""Bytes of optimizer state and FLOPs of an update, against torch's own optimizers stepped once on a CPU."""

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim._muon import _zeropower_via_newtonschulz
from torch.utils.flop_counter import FlopCounterMode

from outlay.cluster.catalogue import cluster
from outlay.engines.tables import engine
from outlay.job import Job, recipe_of
from outlay.model.huggingface import read_config
from outlay.model.operations import Linear
from outlay.model.weights import newton_schulz
from outlay.undivided import state_of

HIDDEN, LAYERS, HEADS, KV_HEADS, FFN, VOCAB = 64, 2, 4, 2, 96, 160
KV = HIDDEN // HEADS * KV_HEADS
MODEL = read_config(
    {
        "model_type": "qwen2", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "intermediate_size": FFN, "vocab_size": VOCAB,
        "max_position_embeddings": 128, "tie_word_embeddings": False,
    }
)  # fmt: skip
CARDS = cluster("8xh100-sxm").accelerator


class Layer(nn.Module):
    """A layer as the kernels hold it: q, k and v in one matrix, gate and up in one; q, k and v with biases."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, HIDDEN + 2 * KV)
        self.proj = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 2 * FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)
        self.norms = nn.ParameterList([torch.ones(HIDDEN), torch.ones(HIDDEN)])


class Whole(nn.Module):
    """Layers, both tables and the final norm; every parameter with a gradient."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.Parameter(torch.ones(HIDDEN))
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)
        self.to(kind)
        for parameter in self.parameters():
            parameter.grad = torch.randn_like(parameter)


def stepped(optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """Bytes that optimizers hold after one step; their step counters, single values, apart."""
    held = 0
    for one in optimizers:
        one.step()
        kept = (value for state in one.state.values() for value in state.values())
        held += sum(each.numel() * each.element_size() for each in kept if isinstance(each, torch.Tensor) and each.ndim)
    return held


def counted(kind: torch.dtype = torch.float32, **job: Any) -> float:
    """The same as outlay counts it: all that the optimizer holds beside weights and gradients."""
    types = {"master_dtype": "none", "moment_dtype": "bf16", "gradient_dtype": "bf16"}
    task = Job(128, 8, precision="bf16", **({} if kind == torch.float32 else types), **job)
    return state_of(MODEL, recipe_of(task, engine("fsdp2"), CARDS)).optimizer


def split(model: Whole) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices inside layers, and all else."""
    matrices = [parameter for parameter in model.layers.parameters() if parameter.ndim == 2]
    return matrices, [one for one in model.parameters() if all(one is not matrix for matrix in matrices)]


def test_the_model_of_torch_has_the_parameters_that_are_counted() -> None:
    held = sum(parameter.numel() for parameter in Whole(torch.float32).parameters())
    assert held == state_of(MODEL, recipe_of(Job(128, 8, precision="bf16"), engine("fsdp2"), CARDS)).parameters


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("adam", torch.optim.Adam),
        ("adam", torch.optim.AdamW),
        ("sgd", torch.optim.SGD),
        ("momentum", lambda parameters: torch.optim.SGD(parameters, momentum=0.9)),
        ("adafactor", torch.optim.Adafactor),
    ],
    ids=["adam", "adamw", "sgd", "momentum", "adafactor"],
)
def test_an_optimizer_of_torch_holds_the_bytes_that_are_counted(name: str, made: Any, kind: torch.dtype) -> None:
    assert stepped([made(Whole(kind).parameters())]) == counted(kind, optimizer=name)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_muon_with_adam_beside_it_holds_the_bytes_that_are_counted(kind: torch.dtype) -> None:
    matrices, others = split(Whole(kind))
    held = stepped([torch.optim.Muon(matrices), torch.optim.AdamW(others)])
    assert held == counted(kind, optimizer="muon")
    assert held != stepped([torch.optim.AdamW(Whole(kind).parameters())])


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (64, 192), (160, 32)])
def test_torch_counts_the_flops_that_orthogonalise_a_matrix(rows: int, columns: int) -> None:
    here = {"one": 1, "multiply_add": 2, "ins": columns, "outs": rows}
    with FlopCounterMode(display=False) as counter:
        _zeropower_via_newtonschulz(torch.randn(rows, columns), (3.4445, -4.775, 2.0315), 5, 1e-7)
    assert counter.get_total_flops() == newton_schulz(Linear("matrix", "one", "ins", "outs"), here, 5)
