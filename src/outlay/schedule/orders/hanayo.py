"""Hanayo: W waves, in which the model runs down the ranks and back up on 2 W chunks a rank. Source: Liu et al. 2023.

The order here is the greedy one: a rank does a backward pass where it can, else a forward pass, and P micro-batches at
most are under way. The published bubble (2 P - 2)/(3 P W + P - 1), for M = P and B = 2 F, does not come out of it: with
P = 4 it idles 1/3 with one wave where that is 2/5, and 0.119 with four where it is 0.118. So no law is stated here.
"""

from heapq import heappop, heappush

from ..passes import Pass, snake
from .facts import OrderFacts, Schedule, Shape

FORWARD, BACKWARD = 1, 2  # how long a chunk's passes are taken to be while the order is made


class _Board:
    """Which rank does what while time goes on."""

    def __init__(self, shape: Shape) -> None:
        self.P, self.M, v, _ = shape
        self.depth = self.P * v
        self.home = [snake(self.P)(stage) for stage in range(self.depth)]
        self.ready: list[list[tuple[int, int, int]]] = [[] for _ in range(self.P)]  # B before F, oldest, deepest
        self.busy = [False] * self.P
        self.rows: list[list[Pass]] = [[] for _ in range(self.P)]
        self.entered = 0

    def enter(self) -> None:
        """The next micro-batch may begin."""
        if self.entered < self.M:
            heappush(self.ready[0], (1, self.entered, 0))
            self.entered += 1

    def begin(self, rank: int, now: int, ends: list[tuple[int, int, int, int]]) -> None:
        """A rank that is free takes the first pass that is ready."""
        if self.busy[rank] or not self.ready[rank]:
            return
        forward, m, stage = heappop(self.ready[rank])
        stage = abs(stage)
        self.busy[rank] = True
        self.rows[rank].append(Pass("F" if forward else "B", stage, m))
        heappush(ends, (now + (FORWARD if forward else BACKWARD), forward, m, stage))

    def end(self, forward: int, m: int, stage: int) -> None:
        """What a pass that has ended makes ready."""
        self.busy[self.home[stage]] = False
        if not forward and stage == 0:
            self.enter()
        elif forward and stage < self.depth - 1:
            heappush(self.ready[self.home[stage + 1]], (1, m, -stage - 1))
        else:
            following = stage if forward else stage - 1
            heappush(self.ready[self.home[following]], (0, m, following))


def ranks(shape: Shape) -> list[list[Pass]]:
    """The passes of every rank, in the order in which they begin."""
    board, ends, now = _Board(shape), list[tuple[int, int, int, int]](), 0
    for _ in range(min(shape.pp, shape.micro_batches)):
        board.enter()
    for rank in range(shape.pp):
        board.begin(rank, now, ends)
    while ends:
        now = ends[0][0]
        while ends and ends[0][0] == now:
            board.end(*heappop(ends)[1:])
        for rank in range(shape.pp):
            board.begin(rank, now, ends)
    return board.rows


HANAYO = Schedule(
    OrderFacts("hanayo", "even", "snake", 1, "an even vpp, two chunks a wave; any number of micro-batches"),
    ranks,
)
