"""A cluster as a TOML file that `--on` reads back: to be edited."""

import json
from collections.abc import Iterator
from dataclasses import fields

from ..accelerator import Accelerator, Cluster, Link
from .tables import accelerator, accelerator_names, used_figures, words
from .units import written

HEAD = """\
# A cluster for outlay. Edit it, then:  outlay count MODEL --on FILE.toml   (64xFILE.toml: with so many accelerators)
# Bandwidths are of one accelerator in one direction, as specified; `share` is what a large collective reaches of them.
"""
NODES = "# accelerators_per_node = 8    # ranks must be whole nodes\n"
RAILS = "# rails = 8                    # networks side by side, one to each accelerator of a domain\n"
HOST = '# host_bytes = "256 GiB"         # host memory, an accelerator: offload is checked against it\n'
STORAGE = '# storage_bandwidth = "200 GB/s"  # where checkpoints go, all accelerators together\n'
SITE = """\
# mtbf_seconds = "50000 h"         # mean time between failures of ONE accelerator
# restart_seconds = "10 min"       # from a failure until the job runs again
# pue = 1.2                        # all power of the site over that of the accelerators
"""
NETWORK = """\
# nics = 2                     # NICs an accelerator, where `bandwidth` is that of one (0.5: two share one)
# oversubscription = 2         # divides the bandwidth
"""
SPINE = """\
# A third level joins leaves of the second, which then needs a size; what is left out is as on the second level.
# [[levels]]
# name = "spine"
# oversubscription = 2
"""
PRICE = """\
# [price]                      # what you pay
# price = "20 USD/h"
# accelerators = 8             # that so much pays
# date = "2026-11-29"
"""


def template(cluster: Cluster, whole: bool = False) -> str:
    """The file of a cluster. `whole` writes every figure of its accelerator, else its name where that says them all."""
    named = not whole and cluster.accelerator.name in accelerator_names()
    named = named and accelerator(cluster.accelerator.name) == cluster.accelerator
    said = _said(cluster.accelerator.name) if named else ()
    recalled = ", ".join(_text(each) for each in cluster.unverified if each not in said)
    lines = [HEAD, f"name = {_text(cluster.name)}\n"]
    card = _text(cluster.accelerator.name)
    lines += [f"accelerator = {card}    # or a table [accelerator]: outlay hardware {card} --toml\n"] if named else []
    lines += [f"ranks = {cluster.ranks}\n", NODES]
    lines += [RAILS] if cluster.rails == 1 else [f"rails = {cluster.rails}\n"]
    lines += [HOST] if cluster.host_bytes is None else [_figure("host_bytes", cluster.host_bytes)]
    storage = cluster.storage_bandwidth
    lines += [STORAGE] if storage is None else [_figure("storage_bandwidth", storage)]
    timed = {name: getattr(cluster, name) for name in ("mtbf_seconds", "restart_seconds")}
    lines += [_figure(name, value) for name, value in timed.items() if value is not None] or [SITE]
    lines += [] if cluster.pue is None else [f"pue = {cluster.pue!r}\n"]
    lines += [f"unverified = [{recalled}]    # rest on memory; every answer says so\n"] if recalled else []
    lines += [] if named else ["\n[accelerator]\n", *_card(cluster.accelerator)]
    lines += _levels(cluster)
    lines += ["\n", *(_price(cluster) if cluster.price else [PRICE])]
    return "".join(lines)


def _text(value: str) -> str:
    """A text as TOML writes it, whatever is in it: the escapes of JSON are TOML's too."""
    return json.dumps(value, ensure_ascii=False)


def _said(name: str) -> tuple[str, ...]:
    """Unverified figures of an accelerator itself: whoever reads its name knows of them."""
    own = {words(field.name) for field in fields(Accelerator)}
    return tuple(figure for figure, of in used_figures(name).items() if of.unverified and figure in own)


def _card(card: Accelerator) -> Iterator[str]:
    for field in fields(Accelerator):
        value = getattr(card, field.name)
        if isinstance(value, str):
            yield f"{field.name} = {_text(value)}\n"
        else:
            yield _figure(field.name, value)


def _figure(name: str, value: float) -> str:
    measure = name.split("_")[-1]
    return f"{name} = {float(value)!r}\n" if measure == "share" else f'{name} = "{written(value, measure)}"\n'


def _levels(cluster: Cluster) -> Iterator[str]:
    spine = [cluster.spine] if cluster.spine else []
    every = [cluster.inside, cluster.outside, *spine]
    for index, link in enumerate(every):
        yield f"\n[[levels]]{'    # the scale-up domain' if index == 0 else ''}\n"
        yield from _level(link, "" if link is not every[-1] else f"# size = {link.size}    # all of the cluster\n")
        yield NETWORK if index else ""
    yield "" if spine else f"\n{SPINE}"


def _level(link: Link, size: str) -> Iterator[str]:
    yield f"name = {_text(link.name)}\n"
    yield size or f"size = {link.size}\n"
    yield _figure("bandwidth", link.bandwidth)
    yield _figure("share", link.share)
    yield _figure("latency_seconds", link.latency_seconds)
    if link.switch_share:
        yield _figure("switch_share", link.switch_share)
        yield _figure("switch_seconds", link.switch_seconds)
    yield f"paths = {link.paths}    # of a mesh or a torus: one pair has one of them\n" if link.paths > 1 else ""


def _price(cluster: Cluster) -> Iterator[str]:
    assert cluster.price is not None
    yield f'[price]\nprice = "{written(cluster.price.dollars, "price")}"\naccelerators = {cluster.price.accelerators}\n'
    yield f"date = {_text(cluster.price.date)}\n"
    yield "unverified = true\n" if cluster.price.unverified else ""
