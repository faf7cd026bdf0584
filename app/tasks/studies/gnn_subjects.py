"""What the studies of node classification train on: graphs with a recipe each, and one training."""

import os
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import msgspec
import numpy as np

from app.case.check import mistakes
from app.case.config import Case
from app.case.conflicts import conflicts
from app.case.gnn import GnnCase
from app.case.graph import GRAPH_FOLDERS
from app.case.study import split_settings
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.layers.layer import parse_layer
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import Scores
from app.gnn.missing import KEY, lacking_of
from app.gnn.model import Model, check_inner_decay, check_layers
from app.gnn.training import Fit, fit
from app.graphs.nodes.data import NodeData, known_floats
from app.memory.tiers import TierBudget
from app.partition.loaded import Loaded
from app.partition.nodes import known_by
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels.examples import Examples
from app.tasks.levels.table import LEVELS

OF_KINDS = ("heads", "normalisation", "own_loops", "edge_weights", "first_product")  # that few layers read
CLOCKED_EPOCHS = 5  # of which the median counts


@dataclass(frozen=True)
class Subject:
    """A graph of a study with what is known of it and the recipe that every training on it follows.

    examples   what is learned     block   the rows of the graph they are learned from
    recipe     the settings of the subject, as the case has them
    """

    name: str
    context: Context
    examples: Examples
    block: RowBlock
    gnn: GnnCase
    seeds: list[int]
    recipe: str

    @property
    def loaded(self) -> Loaded:
        """The graph."""
        return self.examples.loaded

    @property
    def data(self) -> NodeData:
        """What is known of its nodes."""
        return self.examples.data

    def of(self, examples: Examples) -> "Subject":
        """The same graph with other examples, and the rows of its edges that these are learned from."""
        same = examples.learned is self.examples.learned
        block = self.block if same else examples.rows(self.context, self.gnn)
        return replace(self, examples=examples, block=block)

    def classifier(self, gnn: GnnCase, seed: int, budget: TierBudget | None = None) -> Classifier:
        """A model with weights drawn for a seed, perhaps under a limit of memory. Ranks: all call. Raises
        CaseError on all where the data are not for it."""
        with raise_together(self.context.group, "checking the data"):
            self.examples.check_data(gnn)
        self._refuse_missing(gnn)
        examples, _ = self.examples.filled(self.context, gnn, self.block, None)
        return examples.classifier(self.context, gnn, self.block, seed, budget=budget)

    def _refuse_missing(self, gnn: GnnCase) -> None:
        """Refuse missing features where a training of several does not fill them. Ranks: all call. Raises
        CaseError."""
        X, checked = self.data.features, known_by(self.context.case) is not known_floats
        if checked or gnn.missing_features != "refuse" or not isinstance(X, np.ndarray):
            return
        if lacking_of(self.context.group, X).any():
            right = '"mean" or "propagate" would be right'
            raise CaseError(f'{KEY}: "refuse", and features of {self.name} are missing; {right}')


@dataclass(frozen=True)
class Trained:
    """One training: scores of the weights that were kept, and the processor's seconds of an epoch."""

    classifier: Classifier
    fit: Fit
    scores: dict[str, Scores]
    epoch_cpu_s: float


@dataclass(frozen=True)
class Asked:
    """A data set of a study as the case names it.

    path    of its file; "": [graph]
    place   where mistakes are said to be
    """

    path: str
    gnn: GnnCase
    seeds: list[int]
    recipe: str
    place: str


def subjects(
    context: Context, trainings: Callable[[GnnCase], list[GnnCase]] | None = None, splits: bool = True
) -> Iterator[Subject]:
    """The data sets of the study one after the other; without any, [graph]. Ranks: all call.

    trainings   what the study trains by the recipe of a data set; None: the recipe as it is
    splits      data sets must bring splits; False: labels are enough
    Raises      CaseError before the first one where any of them is wrong
    """
    case, names = context.case, {}
    asked = [_asked(case, text) for text in case.study.datasets or [""]]
    for each in asked:
        check_network(case, each.gnn, each.place)
        if trainings is None:
            check_layers(each.gnn)
        else:
            _check_networks(case, each, trainings(each.gnn))
    for each in asked:
        graph = case.graph
        if each.path:
            graph = msgspec.structs.replace(graph, path=[each.path], generator="")
        changed = msgspec.structs.replace(case, graph=graph, gnn=each.gnn)
        subject = make_subject(replace(context, case=changed), each.seeds, each.recipe, splits)
        yield replace(subject, name=distinct_name(names, subject.name, each.path))


def _asked(case: Case, text: str) -> Asked:
    """A data set from its line in study.datasets. Raises CaseError."""
    path, settings = split_settings(text)
    folder = case.graph.format in GRAPH_FOLDERS and os.path.isdir(path)
    if path and not (folder or os.path.isfile(path)):
        raise CaseError(f"study.datasets: no such file: {path}; set LOCKSTEP_DATA to the data's folder")
    place = f"study.datasets: {text}" if text else "study"
    seeds = case.study.seeds[: _number_of_seeds(settings, text)]
    return Asked(path, with_settings(case.gnn, settings, place), seeds, _recipe(settings), place)


def check_network(case: Case, gnn: GnnCase, place: str) -> None:
    """Refuse a training that could not begin, whatever the data, or begins with weights. Raises CaseError."""
    try:
        check_study_network(gnn)
    except CaseError as error:
        raise CaseError(f"{place}: {error}") from error
    wrong = list(conflicts(msgspec.structs.replace(case, gnn=gnn), {}, True))  # the case had its graph
    if wrong:
        raise CaseError(f"{place}: {'; '.join(wrong)}")
    last = parse_layer(gnn.layers[-1]).width if gnn.layers else 0
    Model(gnn, 1, last or 1)


def check_training(case: Case, gnn: GnnCase, place: str) -> None:
    """Refuse one training of a study, of which others may read other keys. Raises CaseError."""
    check_network(case, gnn, place)
    try:
        check_inner_decay(gnn)
    except CaseError as error:
        raise CaseError(f"{place}: {error}") from None


def check_study_network(gnn: GnnCase) -> None:
    """Refuse a table of what no study trains. Raises CaseError."""
    if gnn.weights:
        raise CaseError("gnn.weights: a study draws the weights it trains; leave it out")
    if not gnn.epochs:
        raise CaseError("gnn.epochs: must be at least 1 in a study, got 0")


def _check_networks(case: Case, asked: Asked, trainings: list[GnnCase]) -> None:
    """Refuse what one training of a data set cannot do, and keys that none reads. Raises CaseError."""
    kind = case.study.kind
    if asked.gnn.layers:
        raise CaseError(f'{asked.place}: gnn.layers: is not read by study.kind = "{kind}"; leave it out')
    for gnn in trainings:
        check_training(case, gnn, asked.place)
    for key in OF_KINDS:
        refusals = [_refusal(gnn, key, getattr(asked.gnn, key)) for gnn in trainings]
        if all(refusals):
            raise CaseError(f"{asked.place}: {refusals[0]}")


def _refusal(gnn: GnnCase, key: str, value: Any) -> str:
    """Why the layers of a training do not read a value of a key; "" where they do."""
    try:
        check_layers(GnnCase(model=gnn.model, depth=gnn.depth, level=gnn.level, **{key: value}))
    except CaseError as error:
        return str(error)
    return ""


def distinct_name(names: dict[str, str], name: str, path: str) -> str:
    """The name of a file's graph; where another file has it already, with the folder before it.

    names   those given so far, and their files; the new one is added
    """
    folder = os.path.basename(os.path.dirname(path))
    for each in (name, f"{folder}/{name}", path):
        if names.setdefault(each, path) == path:
            return each
    return path


def make_subject(context: Context, seeds: list[int], recipe: str = "", splits: bool = True) -> Subject:
    """The graph of a case, loaded. Raises CaseError without labels, or training nodes where it is to have
    splits. Ranks: all call."""
    examples, gnn = LEVELS[context.case.gnn.level](context), context.case.gnn
    return subject_of(context, examples, gnn, seeds, recipe, splits)


def subject_of(
    context: Context, examples: Examples, gnn: GnnCase, seeds: list[int], recipe: str = "",
    splits: bool = True,
) -> Subject:  # fmt: skip
    """The same of examples that are there. Ranks: all call."""
    examples.refuse_untold(splits)
    examples = examples.drawn(context) if splits else examples
    block = examples.rows(context, gnn)
    return Subject(examples.loaded.graph.name, context, examples, block, gnn, seeds, recipe)


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


def with_settings(gnn: GnnCase, settings: dict[str, str], place: str) -> GnnCase:
    """The [gnn] table with other values, checked like those of a case. Raises CaseError."""
    values = {key: value_of_text(text) for key, text in settings.items()}
    wrong = list(mistakes(GnnCase, values, ("gnn",), {}))
    if wrong:
        raise CaseError(f"{place}: {'; '.join(wrong)}")
    return msgspec.convert({**msgspec.structs.asdict(gnn), **values}, GnnCase)


def value_of_text(text: str) -> Any:
    """A value as TOML writes it, or a word as it stands; so do thousands of digits or brackets."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def train(subject: Subject, gnn: GnnCase, seed: int) -> Trained:
    """Train, evaluate, and clock some more epochs (forward, backward, sum of gradients).

    Ranks   all call. Raises Diverged where what was learned gives scores that are not finite
    """
    classifier = subject.classifier(gnn, seed)
    context = subject.context
    found = fit(classifier, check_every=context.case.run.check_every, keeper=context.keeper)
    refuse_infinite_rows(context.group, classifier.scores_own()[: classifier.block.n_real])
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
