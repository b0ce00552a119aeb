"""The ranks of a pipeline as a chain: each takes a run of layers, which its chunks share.

With several chunks a rank this is for layers of one kind, of which it only matters how many a rank has.
"""

import numpy as np

from .chain import Cuts, best_cuts
from .exchange import settled
from .pipeline import Array, Pipeline, unevennesses


class Chained:
    """What each rank of a pipeline costs with each run of layers, and the best cuts of the chain."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.layers = pipeline, pipeline.case.model.layers
        start, end = np.triu_indices(self.layers + 1)
        counts, which = np.unique(pipeline.before[end] - pipeline.before[start], axis=0, return_inverse=True)
        self.runs = np.full((self.layers + 1,) * 2, len(counts))  # (from, to); the last is no run
        self.runs[start, end] = which.ravel()
        self.held = counts.sum(1).astype(int)
        self.shares = [spread(self.layers, pipeline.least[list(places)]) for places in pipeline.places]
        found = [self._rank(rank, counts) for rank in range(pipeline.shape[0])]
        self.times, self.peaks = [times for times, _ in found], [peaks for _, peaks in found]

    def _rank(self, rank: int, counts: Array) -> tuple[Array, Array]:
        """Times and peak of a rank with each run of layers; infinite where its chunks cannot share them."""
        shares = self.shares[rank][self.held]
        times, peaks = self.pipeline.terms(self.pipeline.stage(rank, counts, unevennesses(shares)))
        peaks = np.where(shares.min(1) < 0, np.inf, peaks)
        return np.column_stack((times, np.full(len(times), np.inf))), np.append(peaks, np.inf)

    def best(self, limit: float) -> Array:
        """The split with the shortest step under a limit of memory; where there is none, of those that need least.

        Of the splits that are as fast in each of their times, that of the lowest peak; the chunks of a rank share its
        layers so that none holds up the others.
        """
        found = self._fastest(limit)
        if found is None:
            found = self._fastest(float(self._lowest(np.inf).worst.min()))
        assert found is not None  # there are layers enough
        calm = self._lowest(found)
        sizes: Array = self._chunks(calm.ends)[0]
        if self.pipeline.shape[1] == 1:
            return sizes
        return settled(self.pipeline, sizes, max(limit, float(calm.worst[0, 0])))

    def _fastest(self, limit: float) -> Array | None:
        """The times of the fastest split of which no stage has a higher peak; None where there is none."""

        def costs(rank: int) -> Array:
            return np.where(self.peaks[rank] <= limit, self.times[rank], np.inf)[:, self.runs]

        cuts = best_cuts(self.layers, self.pipeline.shape[0], costs)
        if not len(cuts.ends):
            return None
        seconds, peaks = self.pipeline.counted(self._chunks(cuts.ends))
        best = np.lexsort((peaks, seconds))[0]
        fastest: Array = cuts.worst[best]
        return fastest

    def _lowest(self, times: Array | float) -> Cuts:
        """The split of the lowest peak of which no stage takes longer in any of some times."""

        def costs(rank: int) -> Array:
            able = (self.times[rank] <= np.reshape(times, (-1, 1))).all(0) & np.isfinite(self.times[rank][0])
            return np.where(able, self.peaks[rank], np.inf)[None, self.runs]

        return best_cuts(self.layers, self.pipeline.shape[0], costs)

    def _chunks(self, ends: Array) -> Array:
        """Layers of each chunk along the model, of the layers at which each rank ends."""
        ranks = np.diff(ends, axis=1, prepend=0)
        sizes = np.empty((len(ranks), len(self.pipeline.least)), int)
        for rank, places in enumerate(map(list, self.pipeline.places)):
            sizes[:, places] = self.shares[rank][ranks[:, rank]]
        return sizes


def spread(layers: int, least: Array) -> Array:
    """Each number of layers over the chunks of a rank, as even as it goes with the longer chunks last; a row a number.

    The earlier chunks hold more passes in flight, so shorter ones there keep least. Below 0 where it does not go.
    """
    chunks = len(least)
    numbers, places = np.arange(layers + 1)[:, None], np.arange(chunks)
    shares = numbers // chunks + (places >= chunks - numbers % chunks)
    few = numbers == least.sum()
    shares = np.where(few, least, shares)
    held: Array = np.where((shares >= least).all(1, keepdims=True), shares, -1)
    return held
