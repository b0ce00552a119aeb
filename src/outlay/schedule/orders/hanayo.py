"""Hanayo: W waves, in which the model runs down the ranks and back up on 2 W chunks a rank. Source: Liu et al. 2023.

The order here is the greedy one: a rank does a backward pass where it can, else a forward pass, and P micro-batches at
most are under way. The published bubble (2 P - 2)/(3 P W + P - 1), for M = P and B = 2 F, does not come out of it: with
P = 4 it idles 1/3 with one wave where that is 2/5, and 0.119 with four where it is 0.118. So no law is stated here.
"""

from heapq import heappop, heappush

from ..passes import Pass, many_passes, snake
from .facts import OrderFacts, Schedule, Shape

FORWARD, BACKWARD = 1, 2  # how long a chunk's passes are taken to be while the order is made


class _Board:
    """Which rank does what while time goes on."""

    def __init__(self, shape: Shape) -> None:
        self.P, self.M, v, _ = shape
        self.depth = self.P * v
        self.home = [snake(self.P)(stage) for stage in range(self.depth)]
        self.ready: list[list[tuple[int, int, int]]] = [[] for _ in range(self.P)]  # B before F, oldest, deepest
        self.does: list[tuple[int, int, int] | None] = [None] * self.P
        self.rows: list[list[tuple[int, int, int]]] = [[] for _ in range(self.P)]
        self.entered = 0

    def enter(self) -> None:
        """The next micro-batch may begin."""
        if self.entered < self.M:
            heappush(self.ready[0], (1, self.entered, 0))
            self.entered += 1

    def end(self, rank: int) -> int:
        """What a pass that has ended makes ready, and on which rank."""
        done = self.does[rank]
        assert done
        forward, m, stage = done
        stage = abs(stage)
        self.does[rank] = None
        if not forward and stage == 0:
            self.enter()
            return 0
        if forward and stage < self.depth - 1:
            heappush(self.ready[self.home[stage + 1]], (1, m, -stage - 1))
            return self.home[stage + 1]
        following = stage if forward else stage - 1
        heappush(self.ready[self.home[following]], (0, m, following))
        return self.home[following]

    def begin(self, ranks: set[int]) -> tuple[list[int], list[int]]:
        """Those that are free take the first pass that is ready: who begins a forward, and who a backward pass."""
        found: tuple[list[int], list[int]] = ([], [])
        for rank in ranks:
            if self.does[rank] is None and self.ready[rank]:
                self.does[rank] = first = heappop(self.ready[rank])
                self.rows[rank].append(first)
                found[1 - first[0]].append(rank)
        return found


def ranks(shape: Shape) -> list[list[Pass]]:
    """The passes of every rank, in the order in which they begin."""
    board = _Board(shape)
    for _ in range(min(shape.pp, shape.micro_batches)):
        board.enter()
    ends: list[list[int]] = [[] for _ in range(BACKWARD)]  # who ends after one slot, after two, ..
    changed = {0}
    while changed or any(ends):
        forward, backward = board.begin(changed)
        ends.append([])
        ends[FORWARD - 1] += forward
        ends[BACKWARD - 1] += backward
        done = ends.pop(0)
        changed = {*done, *map(board.end, done)}
    return [_passes(row) for row in board.rows]


def _passes(row: list[tuple[int, int, int]]) -> list[Pass]:
    return many_passes(("BF"[each[0]] for each in row), (abs(each[2]) for each in row), (each[1] for each in row))


HANAYO = Schedule(
    OrderFacts("hanayo", "even", "snake", 1, "an even vpp, two chunks a wave; any number of micro-batches"),
    ranks,
)
