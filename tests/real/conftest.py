"""What the tests on torch share: eight ranks of which one is real, no noise from the libraries, and a question."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from command_runs import Ask, run
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from outlay.cli.flags import Given


@pytest.fixture(scope="module")
def eight_ranks() -> Iterator[None]:
    """A process group of eight in one process: it moves nothing, so collectives can be logged on one machine."""
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    yield
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def mesh(eight_ranks: None) -> DeviceMesh:
    """The eight in a row. Made here: a mesh cannot be made of tensors without data."""
    return init_device_mesh("cpu", (8,))


@pytest.fixture
def bf16() -> Iterator[None]:
    """Build models in bf16: one on tensors without data cannot be cast afterwards."""
    torch.set_default_dtype(torch.bfloat16)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def ask_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Verify a config as the command does."""

    def asked(config: dict[str, Any], **flags: str) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "config.json"
        file.write_text(json.dumps(config))
        code = run("verify", Given({"model": str(file), "as_json": True, **flags}))
        return code, json.loads(capsys.readouterr().out)

    return asked
