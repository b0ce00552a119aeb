"""The question behind count, memory, traffic, explain and compare: a model, a cluster, a task and a layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..bill import Bill, count
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..engines.profile import Profile
from ..errors import Fault, InputError, quoted
from ..job import AUTO, Job
from ..layout.axes import Layout
from ..model.model import Model, with_extra
from ..show.restore import Asked, left_out, restore
from .configuring import config_of, standard_input
from .flags import Given
from .printed import bill_in, text_of
from .profiling import read_profile_of, under
from .refilling import read_record
from .splitting import freed, without_best
from .storing import with_site
from .values import Faults, unknown_key
from .values import count as read_count

MOST_ROWS, MOST_CLUSTERS = 64, 1_000  # of a scaling table, and of a search
TEXTS = {
    "model": "llama-3.1-8b",
    "on": "8xh100-sxm",
    "engine": "megatron",
    "profile": "my.toml",
    "family": "llama",
    "part": "text_config",
}
MOST_EXTRA = 10**12  # parameters
KEYS = (*TEXTS, "extra_parameters", "storage", "mtbf", "restart", "pue", "job", "layout")


@dataclass(frozen=True)
class Question:
    """One question, read and in range; several clusters make a table."""

    model: Model
    clusters: tuple[Cluster, ...]
    job: Job
    layout: Layout
    engine: str | Engine  # with the constants of a profile, where there is one
    best_split: bool = False

    def bills(self) -> tuple[Bill, ...]:
        """The bill of each cluster, of one job."""
        job, said = (self.job, ()) if len(self.clusters) == 1 else self._same_batch()
        how: Callable[..., Bill] = count
        if self.best_split:
            from ..search.split.best import best_count as how
        made = (how(self.model, job, cluster, self.layout, self.engine) for cluster in self.clusters)
        return tuple(replace(bill, assumptions=(*said, *bill.assumptions)) for bill in made)

    def bill(self) -> Bill:
        """The bill of the one cluster."""
        if len(self.clusters) > 1:
            rule = "several clusters make a table, which only `outlay count` prints"
            names = ", ".join(cluster.name for cluster in self.clusters)
            raise InputError(
                Fault("HW003", "--on names several clusters", rule, names, f"--on {self.clusters[-1].name}")
            )
        return self.bills()[0]

    def _same_batch(self) -> tuple[Job, tuple[str, ...]]:
        """A table compares one batch: where none was given, that which the largest cluster would take."""
        if self.job.global_batch is not AUTO:
            return self.job, ()
        largest = max(self.clusters, key=lambda cluster: cluster.ranks)
        batch = count(self.model, self.job, largest, self.layout, self.engine).job.global_batch
        said = f"GLOBAL BATCH {batch:,} ON EVERY ROW: ONE MICRO-BATCH A STEP ON THE LARGEST CLUSTER (--batch)"
        return replace(self.job, global_batch=batch), (said,)


def read_question(
    given: Given, extra: Mapping[str, str] | None = None, base: Asked | None = None, engine: str = "megatron"
) -> Question:
    """The question in a command line, its --config file and, where MODEL is one, a printed bill; `engine` where none of
    them names one. Raises every fault."""
    faults = Faults()
    at, best = without_best(read_task(given, faults, extra, base, engine))
    layout = read_record(Layout, at.asked, at.file.get("layout", {}), at.texts, given, faults)
    on = at.texts.get("on")
    clusters = () if at.broken and on is None else read_clusters(on, at.asked, faults, MOST_ROWS)
    clusters = with_site(clusters, {**at.file, **at.texts}, faults)
    clusters, driver = under(at.profile, clusters, at.engine, faults)
    faults.stop()
    assert at.model is not None
    job, layout = at.job, freed(layout, at) if best else layout
    if at.asked and len(clusters) == 1:
        now = Asked(at.model, job, clusters[0], layout, at.engine, at.asked.assumptions)
        job, layout = left_out(now, {*at.texts, *at.file.get("job", {}), *at.file.get("layout", {})})
    return Question(at.model, clusters, job, layout, driver, best)


@dataclass(frozen=True)
class Task:
    """What every question holds beside its cluster and layout, and the texts that these are still to be read from."""

    model: Model | None
    job: Job
    engine: str
    profile: Profile | None
    file: Mapping[str, Any]
    texts: Mapping[str, Any]
    asked: Asked | None
    broken: bool  # what would say the cluster cannot be read: a printed bill, or `on` of the file


def read_task(
    given: Given, faults: Faults, extra: Mapping[str, str] | None = None, base: Asked | None = None,
    usual: str = "megatron",
) -> Task:  # fmt: skip
    """Model, job and engine of a command line, its --config file and, where MODEL is one, a printed bill."""
    file = faults.attempt(config_of, given.text("config")) or {}
    faults.add(*(unknown_key(key, KEYS, quoted(given.text("config"))) for key in file if key not in KEYS))
    flags = {**_flags(given), **(extra or {})}
    said = {key: file[key] for key in TEXTS if key in file and key not in flags}
    wrong = [key for key, value in said.items() if not isinstance(value, str)]
    faults.add(*(_no_text(key, said[key], given) for key in wrong))
    texts = {key: value for key, value in said.items() if key not in wrong} | flags
    unread = base is not None or "model" in wrong
    found, asked, broken = (None, base, False) if unread else _model(texts, faults, given.content)
    job = read_record(Job, asked, file.get("job", {}), texts, given, faults)
    engine = str(texts.get("engine", asked.engine if asked else usual))
    faults.attempt(_engine, engine)
    model = _with_extra(asked.model if asked else found, {**file, **texts}.get("extra_parameters"), faults)
    profile = read_profile_of(texts.get("profile"), asked, faults)
    return Task(model, job, engine, profile, file, texts, asked, broken or "on" in wrong)


def _with_extra(model: Model | None, extra: object, faults: Faults) -> Model | None:
    """The model, and parameters beside it where a flag or the file gives them."""
    if extra is None:
        return model
    parameters = read_count(str(extra), "--extra-parameters", faults, MOST_EXTRA)
    return with_extra(model, parameters) if model and parameters else model


def _no_text(key: str, value: object, given: Given) -> Fault:
    rule = f"{', '.join(TEXTS)} are texts, in quotes"
    got = f"{quoted(value)}   ({quoted(given.text('config'))})"
    return Fault("CFG007", f"{key} is not a text", rule, got, f'{key} = "{TEXTS[key]}"')


def _flags(given: Given) -> dict[str, Any]:
    return {name: value for name, value in given.values.items() if value is not None}


def _engine(name: str) -> None:
    from ..engines.tables import engine

    engine(name)


def read_clusters(on: Any, asked: Asked | None, faults: Faults, most: int = MOST_CLUSTERS) -> tuple[Cluster, ...]:
    """What --on names; where it is not given, the cluster of a printed bill."""
    from ..cluster.catalogue import clusters

    if on is None and asked:
        return (asked.cluster,)
    if on is None:
        rule = "--on is COUNTxNAME, NAME an accelerator such as h100-sxm or a node type; or a TOML file of your own"
        faults.add(
            Fault("HW003", "no hardware is given", rule, "nothing", "--on 64xh100-sxm   (list: outlay hardware)")
        )
        return ()
    many = str(on).count(",") + 1
    if many > most:
        rule = f"--on names {most:,} clusters or less, each counted by itself"
        faults.add(
            Fault("HW004", "--on names too many clusters", rule, f"{many:,} clusters", "--on 8,16,32,64xh100-sxm")
        )
        return ()
    found: tuple[Cluster, ...] = faults.attempt(clusters, str(on)) or ()
    return found


def _model(texts: Mapping[str, Any], faults: Faults, content: bytes | None) -> tuple[Model | None, Asked | None, bool]:
    """The model that MODEL names; or the whole question where MODEL is a printed bill, and whether that is broken."""
    from ..model.catalogue import find

    text = texts.get("model")
    if not text:
        rule = "MODEL is a config.json, its folder, a name from the catalogue, or - for standard input"
        faults.add(Fault("CLI004", "no model is given", rule, "nothing", "llama-3.1-70b   (list: outlay models)"))
        return None, None, False
    text = str(text)
    stdin = None if text != "-" else standard_input() if content is None else content
    bill = bill_in(stdin if stdin is not None else text_of(text))
    if bill is not None:
        asked = faults.attempt(restore, bill)
        return None, asked, asked is None
    return faults.attempt(find, text, stdin=stdin, family=texts.get("family"), part=texts.get("part")), None, False
