"""What a tuning trains: networks on a graph, or relational networks on triples."""

from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.guard import digest, raise_together
from app.errors import CaseError, GraphError, NumericsError
from app.gnn.loss import refuse_infinite_rows
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.links import train_links
from app.gnn.rgcn.model import RGCN
from app.gnn.rgcn.training import Course, train_rgcn
from app.gnn.training import fit
from app.gnn.watch import value_of, watched_score
from app.graphs.triples.data import NodeLabels, Triples
from app.graphs.triples.relational import relational_graph
from app.memory.tiers import TierBudget
from app.tasks.context import Context
from app.tasks.relational_plan import split_of
from app.tasks.rgcn_inputs import load_triples, open_features
from app.tasks.studies.gnn_subjects import Subject, make_subject
from app.tasks.studies.trials import Trial

Record = dict[str, Any]  # of a training: seed, weights, failed, score, val, test, epochs, digest


class Tuned(Protocol):
    """Data, and networks that learn from them by the settings of a trial.

    name    of the data
    watch   the score that trials are compared by, "val_" and what it is
    what    what the test scores are of, in words
    """

    name: str
    watch: str
    what: str

    def refuse_unjudged(self) -> None:
        """Refuse data that trials cannot be compared on. Raises CaseError."""

    def train_once(self, trial: Trial, seed: int) -> Record:
        """One training: watched and test score, epochs, how many weights and their digest; `failed` says why
        there are none, `refused`, alone, why data or memory are not for the trial. Ranks: all call."""


def tuned_of(context: Context) -> Tuned:
    """The data of a case, loaded. Ranks: all call."""
    case = context.case
    if case.gnn.model == "rgcn":
        triples, labels = load_triples(context)
        with context.log.phase("set up"), raise_together(context.group, "reading features"):
            inputs = None if case.rgcn.goal == "links" else open_features(case, triples)
        return RelationalTuned(context, triples, labels, inputs)
    return GraphTuned(make_subject(context, case.study.seeds))


def unjudged(name: str, what: str) -> CaseError:
    return CaseError(f"{name}: tuning compares scores of {what}; there are none")


def failed(record: Record, error: NumericsError) -> Record:
    """That of a training that left the finite numbers."""
    return record | {"val": None, "test": None, "epochs": 0, "digest": "", "failed": str(error)}


@dataclass(frozen=True)
class GraphTuned:
    """Networks of [gnn] on a graph, or on many."""

    subject: Subject

    @property
    def name(self) -> str:
        """Of the graph."""
        return self.subject.name

    @property
    def watch(self) -> str:
        """The score of gnn.watch."""
        return watched_score(self.subject.gnn, True)

    @property
    def what(self) -> str:
        """Nodes, edges or graphs."""
        level = self.subject.gnn.level
        return {"link": "edges"}.get(level, f"{level}s")

    def refuse_unjudged(self) -> None:
        """Without validation examples. Raises CaseError."""
        if not self.subject.examples.counts["val"]:
            raise unjudged(self.name, f"validation {self.subject.examples.lacking}")

    def train_once(self, trial: Trial, seed: int) -> Record:
        """See Tuned. Ranks: all of the subject call."""
        subject, context, watch = self.subject, self.subject.context, self.watch
        try:
            classifier = subject.of(subject.examples.tried(trial.links)).classifier(trial.gnn, seed)
        except (CaseError, GraphError) as error:
            return {"seed": seed, "refused": str(error)}
        record = {"seed": seed, "weights": classifier.params.size, "failed": ""}
        try:
            found = fit(classifier, check_every=context.case.run.check_every, keeper=context.keeper)
            refuse_infinite_rows(context.group, classifier.real_rows(classifier.scores_own()))
        except NumericsError as error:
            return failed(record, error)
        scores = classifier.evaluate(watch.removeprefix("val_"))
        words, test = subject.examples.test_score(classifier, scores, watch)
        return record | {
            "val": value_of(watch, scores, inf), "score": words,
            "test": test if subject.examples.counts["test"] else None, "epochs": found.epochs,
            "digest": digest(found.weights),
        }  # fmt: skip


@dataclass(frozen=True)
class RelationalTuned:
    """Networks of [rgcn] on triples: classes of labelled nodes, or links.

    labels   of classes     inputs   features of nodes; None: one-hot
    """

    context: Context
    triples: Triples
    labels: NodeLabels | None
    inputs: Features | None

    @property
    def name(self) -> str:
        """Of the triples."""
        return self.triples.name

    @property
    def _links(self) -> bool:
        return self.context.case.rgcn.goal == "links"

    @property
    def watch(self) -> str:
        """Accuracy of classes, mean reciprocal rank of links."""
        return "val_mrr" if self._links else "val_accuracy"

    @property
    def what(self) -> str:
        """Triples or nodes."""
        return "triples" if self._links else "nodes"

    def refuse_unjudged(self) -> None:
        """Without validation triples or nodes. Raises CaseError."""
        if self._links:
            judged = len(split_of(self.context.case, self.context.case.rgcn, self.triples).valid) > 0
        else:
            judged = self.labels is not None and (self.labels.val_label >= 0).any()
        if not judged:
            raise unjudged(self.name, f"validation {self.what}")

    def train_once(self, trial: Trial, seed: int) -> Record:
        """See Tuned. Ranks: all call."""
        record = {"seed": seed, "weights": 0, "failed": ""}
        train = self._train_links if self._links else self._train_classes
        try:
            return record | train(trial.rgcn, seed)
        except NumericsError as error:
            return failed(record, error)
        except (CaseError, GraphError) as error:
            return {"seed": seed, "refused": str(error)}

    def _train_links(self, rgcn: RgcnCase, seed: int) -> Record:
        """What one training comes to. Ranks: all call."""
        context = self.context
        split = split_of(context.case, rgcn, self.triples)
        course = Course(check_every=context.case.run.check_every, keeper=context.keeper)
        found = train_links(context.group, self.triples, split, rgcn, seed, course)
        weights = {"links/D": found.relations, **found.net.whole_weights(context.group)}
        return {
            "weights": sum(each.size for each in weights.values()), "score": "mean reciprocal rank",
            "val": max(row["val_score"] for row in found.records if "val_score" in row),
            "test": found.scores["learned"]["mrr"], "epochs": found.epochs, "digest": digest(weights),
        }  # fmt: skip

    def _train_classes(self, rgcn: RgcnCase, seed: int) -> Record:
        """What one training comes to. Ranks: all call."""
        context, group = self.context, self.context.group
        graph = relational_graph(self.triples, rgcn.inverse, rgcn.min_edges)
        course = Course(check_every=context.case.run.check_every, keeper=context.keeper)
        budget = TierBudget.of(context.case.memory)
        found = train_rgcn(group, graph, self.labels, rgcn, seed, budget, self.inputs, course)
        return {
            "weights": _size(found.net, context), "score": "accuracy", "val": found.accuracy["val"],
            "test": found.accuracy.get("test"), "epochs": found.epochs,
            "digest": found.net.weights_digest(group),
        }  # fmt: skip


def _size(net: RGCN, context: Context) -> int:
    """Weights of a relational network on all ranks. Ranks: all call."""
    return sum(int(np.prod(each.shape)) for each in net.whole(context.group).values())
