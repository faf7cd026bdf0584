"""Accuracy and F1 of class scores, from counts that all ranks add up as integers; errors of numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group

Array = Any


@dataclass(frozen=True)
class Scores:
    """How good predictions are on some nodes; nan where there are none.

    accuracy   share of nodes with the right class; several labels: share of right (node, label) pairs, of
               those that are known
    micro_f1   of all (node, class) pairs together; of one label per node it equals the accuracy
    macro_f1   mean over the classes; a class that is neither there nor predicted counts 0
    auc        area under the ROC curve (`area_under_roc`), of two classes, or of several a node the mean over
               the classes that have nodes of both kinds; None where nobody asked, of more classes, and where
               no class has both kinds
    ap         average precision (`average_precision`), likewise
    loss       what training makes small, without dropout; None where nobody asked
    """

    accuracy: float
    micro_f1: float
    macro_f1: float
    nodes: int
    auc: float | None = None
    ap: float | None = None
    loss: float | None = None

    @property
    def score(self) -> float:
        """What is shown over epochs."""
        return self.micro_f1

    def named(self) -> dict[str, float]:
        """What is told in result.json."""
        found = {"accuracy": self.accuracy, "micro_f1": self.micro_f1, "macro_f1": self.macro_f1}
        return found if self.auc is None else found | {"auc": self.auc, "ap": self.ap}


@dataclass(frozen=True)
class ValueScores:
    """How good predicted numbers are on some nodes; nan where there are none.

    r2      the share of the spread about the mean of these nodes that predictions explain (coefficient of
            determination), mean over the columns of which something is known; of a column without spread 1
            where all is right, else 0
    rmse    root of the mean squared error, mae the mean of its magnitude, over the known entries of nodes and
            columns, in the units of the labels
    error   mean squared error in the scale of the training nodes, in which the loss is
    """

    r2: float
    rmse: float
    mae: float
    error: float
    nodes: int

    @classmethod
    def of(
        cls, squares: np.ndarray, magnitudes: np.ndarray, spread: np.ndarray, unit: np.ndarray,
        nodes: int, known: np.ndarray,
    ) -> "ValueScores":  # fmt: skip
        """From sums over the known entries, [columns] each, in the scale of the training nodes.

        squares, magnitudes   of errors     spread   squared distances of labels from their mean
        unit                  a step of that scale in the units of the labels
        known                 [columns] int64, nodes whose label is known
        """
        if not nodes:
            return cls(*[float("nan")] * 4, 0)
        exact = np.where(squares > 0, 0.0, 1.0)
        explained = np.where(spread > 0, 1 - squares / np.where(spread > 0, spread, 1), exact)
        count, there = int(known.sum()), known > 0
        rmse = float(np.sqrt((squares * unit * unit).sum() / count))
        mae = float((magnitudes * unit).sum() / count)
        return cls(
            float(explained[there].sum()) / int(there.sum()), rmse, mae, float(squares.sum()) / count, nodes
        )

    @property
    def score(self) -> float:
        """What is shown over epochs."""
        return self.r2

    @property
    def loss(self) -> float:
        """What training makes small, without dropout."""
        return self.error

    def named(self) -> dict[str, float]:
        """What is told in result.json."""
        return {"r2": self.r2, "rmse": self.rmse, "mae": self.mae}


SplitScores = dict[str, Scores | ValueScores]  # by "train", "val", "test"


def count_hits(
    predicted: np.ndarray, wanted: np.ndarray, chosen: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray:
    """[4, classes] int64: true positives, predicted, wanted, and right entries, of the chosen own rows; of
    entries that are partly known [5, classes], of those alone, and how many these are.

    predicted, wanted, known   [n_own, classes] bool host     chosen [n_own] bool
    """
    p, w, more = predicted[chosen], wanted[chosen], []
    right = p == w
    if known is not None:
        k = known[chosen]
        p, w, right, more = p & k, w & k, right & k, [k]
    return np.stack([each.sum(axis=0) for each in (p & w, p, w, right, *more)]).astype(np.int64)


def count_classes(predicted: np.ndarray, wanted: np.ndarray, chosen: np.ndarray, classes: int) -> np.ndarray:
    """`count_hits` of rows of one class each, without a flag for each row and class.

    predicted   [rows] class     wanted [rows] class, -1: none     chosen [rows] bool
    """
    p, w = predicted[chosen], wanted[chosen]
    found = (np.bincount(each, minlength=classes) for each in (p[p == w], p, w[w >= 0]))
    hit, predictions, labels = (each.astype(np.int64) for each in found)
    return np.stack([hit, predictions, labels, len(p) - predictions - labels + 2 * hit])


def scores_of(group: Group, counts: list[np.ndarray], nodes: list[int], multilabel: bool) -> list[Scores]:
    """Scores of several sets of nodes from every rank's counts, in one sum. Ranks: all call."""
    classes = counts[0].shape[1]
    flat = np.concatenate([*(each.reshape(-1) for each in counts), np.array(nodes, dtype=np.int64)])
    flat = group.sum_integers(flat)
    tables = flat[: -len(nodes)].reshape(len(nodes), -1, classes)
    return [_score(table, int(n), multilabel) for table, n in zip(tables, flat[-len(nodes) :])]


def scores_among(predicted: np.ndarray, wanted: np.ndarray, classes: int) -> Scores:
    """Scores of nodes that are all here, one class for each.

    predicted, wanted   [k] classes; wanted -1: the node does not count
    """
    known = wanted >= 0
    counts = count_classes(predicted, wanted, known, classes)
    return _score(counts, int(known.sum()), False)


def _score(table: np.ndarray, nodes: int, multilabel: bool) -> Scores:
    hit, predicted, wanted, right, *known = table
    if not nodes:
        return Scores(float("nan"), float("nan"), float("nan"), 0)
    both = predicted + wanted
    each = np.where(both > 0, 2 * hit / np.maximum(both, 1), 0.0)
    micro = 2 * int(hit.sum()) / max(int(both.sum()), 1)
    accuracy = int(right.sum()) / (nodes * len(hit)) if multilabel else int(hit.sum()) / nodes
    if known:
        accuracy, each = int(right.sum()) / int(known[0].sum()), each[known[0] > 0]
    return Scores(accuracy, micro, float(each.sum()) / len(each), nodes)
