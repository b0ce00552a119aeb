"""Whether torchrun started this process, as it tells each of its ranks. Loads nothing."""

import os

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells each of its ranks


def launched() -> bool:
    """Whether torchrun started this process as one of its ranks."""
    return all(name in os.environ for name in LAUNCHED)


def answers() -> bool:
    """Whether this process speaks for all that run together: of the ranks of torchrun the first one does."""
    return not launched() or os.environ["RANK"] == "0"
