"""What a cluster costs an hour, where its price is known."""

from dataclasses import dataclass

from ..cluster.accelerator import Cluster


@dataclass(frozen=True)
class Price:
    """Price of a whole cluster: a node's list price on demand, or what the user said."""

    dollars: float  # USD an hour
    date: str
    unverified: bool


def price_of(cluster: Cluster) -> Price | None:
    """The price of a whole cluster; None where none is known."""
    dollars, price = cluster.dollars(), cluster.price
    return Price(dollars, price.date, price.unverified) if price and dollars is not None else None
