"""Many ranks in one process, of which one is real: its collectives move nothing, and its memory is that of any rank."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from ...layout.axes import Layout

AXES = ("copies", "shards", "tensor")


@contextmanager
def one_of(ranks: int, rank: int = 0) -> Iterator[None]:
    """A process group of so many ranks, as one of them sees it. Nothing else may have one meanwhile."""
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def mesh_of(layout: Layout) -> DeviceMesh:
    """The ranks of a layout along its axes. To be made before any tensor without data: a mesh is made of real ones."""
    return init_device_mesh("cpu", (layout.dp_replicate, layout.dp_shard, layout.tp), mesh_dim_names=AXES)
