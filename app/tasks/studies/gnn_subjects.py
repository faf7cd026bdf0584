"""What the studies of node classification train on: graphs with a recipe each, and one training."""

import os
import re
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import msgspec

from app.case.check import mistakes
from app.case.gnn import GnnCase
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.metrics import Scores
from app.gnn.training import Fit, fit
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.partition.load import Loaded
from app.sparse.rowblock import RowBlock
from app.tasks.classify import load
from app.tasks.context import Context

SETTING = re.compile(r"\s+(\w+)=(\S+)$")
CLOCKED_EPOCHS = 5  # of which the median counts


@dataclass(frozen=True)
class Subject:
    """A graph of a study with its nodes' data and the recipe that every training on it follows.

    recipe   the settings of the subject, as the case has them
    """

    name: str
    context: Context
    loaded: Loaded
    data: NodeData
    block: RowBlock
    gnn: GnnCase
    seeds: list[int]
    recipe: str

    def classifier(self, gnn: GnnCase, seed: int, budget: TierBudget | None = None) -> Classifier:
        """A model with weights drawn for a seed, perhaps under a limit of memory. Ranks: all call."""
        return Classifier(
            self.context.group,
            gnn,
            self.block,
            self.data,
            seed,
            budget=budget or TierBudget.of(self.context.case.memory),
        )


@dataclass(frozen=True)
class Trained:
    """One training: scores of the weights that were kept, and the processor's seconds of an epoch."""

    classifier: Classifier
    fit: Fit
    scores: dict[str, Scores]
    epoch_cpu_s: float


def subjects(context: Context) -> Iterator[Subject]:
    """The data sets of the study one after the other; without any, [graph]. Ranks: all call."""
    case, names = context.case, {}
    for text in case.study.datasets or [""]:
        path, settings = split_settings(text)
        graph = case.graph
        if path:
            if not os.path.isfile(path):
                raise CaseError(
                    f"study.datasets: no such file: {path}; set LOCKSTEP_DATA to the data's folder"
                )
            graph = msgspec.structs.replace(graph, path=[path], generator="")
        seeds = case.study.seeds[: _number_of_seeds(settings, text)]
        gnn = with_settings(case.gnn, settings, f"study.datasets: {text}")
        changed = msgspec.structs.replace(case, graph=graph, gnn=gnn)
        subject = make_subject(replace(context, case=changed), seeds, _recipe(settings))
        yield replace(subject, name=distinct_name(names, subject.name, path))


def distinct_name(names: dict[str, str], name: str, path: str) -> str:
    """The name of a file's graph; where another file has it already, with the folder before it.

    names   those given so far, and their files; the new one is added
    """
    folder = os.path.basename(os.path.dirname(path))
    for each in (name, f"{folder}/{name}", path):
        if names.setdefault(each, path) == path:
            return each
    return path


def make_subject(context: Context, seeds: list[int], recipe: str = "") -> Subject:
    """The graph of a case, loaded. Raises CaseError without labels or training nodes. Ranks: all call."""
    loaded, data = load(context)
    if not data.classes or not data.counts["train"]:
        raise CaseError(f"{loaded.graph.name}: the study needs labels and splits (docs/formats.md)")
    block = context.rows(loaded, context.case.gnn.hidden)
    return Subject(loaded.graph.name, context, loaded, data, block, context.case.gnn, seeds, recipe)


def _recipe(settings: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items())


def _number_of_seeds(settings: dict[str, str], text: str) -> int | None:
    """How many of study.seeds; taken out of the settings. None: all."""
    value = settings.pop("seeds", None)
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise CaseError(f"study.datasets: {text}: seeds must be a number from 1, got {value}")
    return int(value)


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """ "HEAD key=value key=value" as its head and its settings."""
    head, settings = text.rstrip(), {}
    while found := SETTING.search(head):
        if found[1] in settings:
            raise CaseError(f"study: {text}: has {found[1]} twice")
        settings[found[1]] = found[2]
        head = head[: found.start()]
    return head, dict(reversed(settings.items()))


def with_settings(gnn: GnnCase, settings: dict[str, str], place: str) -> GnnCase:
    """The [gnn] table with other values, checked like those of a case. Raises CaseError."""
    values = {key: _value(text) for key, text in settings.items()}
    wrong = list(mistakes(GnnCase, values, ("gnn",), {}))
    if wrong:
        raise CaseError(f"{place}: {'; '.join(wrong)}")
    return msgspec.convert({**msgspec.structs.asdict(gnn), **values}, GnnCase)


def _value(text: str) -> Any:
    """A value as TOML writes it, or a word as it stands."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def train(subject: Subject, gnn: GnnCase, seed: int) -> Trained:
    """Train, evaluate, and clock some more epochs (forward, backward, sum of gradients). Ranks: all call."""
    classifier = subject.classifier(gnn, seed)
    context = subject.context
    found = fit(classifier, check_every=context.case.run.check_every, keeper=context.keeper)
    scores = classifier.evaluate()
    return Trained(classifier, found, scores, epoch_seconds(classifier, found.epochs))


def epoch_seconds(classifier: Classifier, first: int) -> float:
    """Median seconds of the processor of an epoch, of the slowest rank; weights stay. Ranks: all call."""
    taken = []
    for epoch in range(first + 1, first + 1 + CLOCKED_EPOCHS):
        start = time.process_time()
        classifier.epoch(epoch)
        taken.append(time.process_time() - start)
    return 1e-9 * classifier.group.max_integer(round(1e9 * median(taken)))
