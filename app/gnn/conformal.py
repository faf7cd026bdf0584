"""Conformal prediction: sets of classes, or intervals of numbers, that hold the truth as often as is asked.

A threshold is taken from nodes whose labels nothing was learned from, the validation nodes. Where these and
other nodes are exchangeable (drawn alike), what is sought lies in a set of classes, or in an interval, with
at least the probability that is asked for, whatever the network is worth: a poor one has large sets.

Source   Vovk, Gammerman, Shafer: Algorithmic learning in a random world, 2005 (split conformal prediction);
         Sadinle, Lei, Wasserman: Least ambiguous set-valued classifiers with bounded error levels, JASA 2019
         (sets by a threshold of the probabilities, the smallest on average); Huang, Jin, Candes, Leskovec:
         Uncertainty quantification over graph with conformalized graph neural networks, NeurIPS 2023,
         theorem 3 (scores of a network that sees all nodes alike are exchangeable)
Departs  A set that would be empty holds the likeliest class. Where gnn.keep or gnn.patience go by validation
         nodes these have chosen the epoch, too: the share can be a little less then, and the test set tells.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.graphs.nodes.data import NodeData


@dataclass(frozen=True)
class Conformal:
    """Sets or intervals of own rows [k], and how often they hold the truth.

    sets        [k, classes] bool, which classes a set holds; None of values
    intervals   [k, columns, 2] float64, least and largest number; None of classes
    asked       the share of nodes whose set or interval is to hold the truth
    calibrated  how many validation nodes the threshold is from, of values the fewest of a column
    threshold   the least probability of a class in a set; of values [columns] half of the width
    held        the share of the test nodes (of values of their numbers) that it did hold for; None of none
    size        mean number of classes in the sets of the test nodes; None of values, and of no nodes
    """

    sets: np.ndarray | None
    intervals: np.ndarray | None
    asked: float
    calibrated: int
    threshold: Any
    held: float | None
    size: float | None

    def told(self) -> dict[str, Any]:
        """All but the rows; None in the place of a threshold that leaves nothing out."""
        known = self.threshold
        if isinstance(known, np.ndarray):
            known = [x if x < inf else None for x in known.tolist()]
        return {
            "asked": self.asked, "calibrated_on": self.calibrated,
            "threshold": known if known != -inf else None, "test": self.held, "mean_size": self.size,
        }  # fmt: skip


def check_conformal(coverage: float, kind: str, data: NodeData) -> None:
    """Refuse data that no sets can be made of, or calibrated on. Raises CaseError.

    kind   what scores are of (Goal.kind)     data   labels and sets of what is predicted
    """
    if not coverage:
        return
    if kind == "labels":
        raise CaseError("output.coverage: is of one class or of numbers, not of several labels; leave it out")
    if not data.classes or not data.counts["val"]:
        right = "sets with some would be right, or output.coverage = 0"
        raise CaseError(f"output.coverage: goes by labels of a validation set, which has none; {right}")


def conform(classifier: Classifier, rows: np.ndarray, coverage: float) -> Conformal:
    """Calibrate on the validation nodes and make the sets, or intervals, of own rows.

    rows    [k, columns] float32: probabilities of classes, or scores of values
    Ranks   all call; the same bits on any number of them
    """
    of = _intervals if classifier.goal.kind == "values" else _sets
    return of(classifier, rows, coverage)


def place_of(coverage: float, count: int) -> int:
    """Which of `count` scores in order, from 1, is not passed by at least a share of new ones;
    count + 1 where they are too few to tell.

    A new score is at most the k-th of m exchangeable ones with probability at least k / (m + 1).
    """
    return ceil(Fraction(repr(coverage)) * (count + 1))


def fewest_for(coverage: float) -> int:
    """How many scores tell anything: the fewest whose largest one is passed rarely enough."""
    asked = Fraction(repr(coverage))
    return ceil(asked / (1 - asked))


def _sets(classifier: Classifier, P_own: np.ndarray, coverage: float) -> Conformal:
    """Classes at least as probable as the true one of all but a share of the validation nodes."""
    group, data = classifier.group, classifier.about
    chosen, labels = _labelled(data, "val")
    likely = _gathered(group, P_own[chosen, labels])
    at = place_of(coverage, len(likely))
    least = float(np.sort(likely)[::-1][at - 1]) if at <= len(likely) else -inf
    sets = P_own >= np.float32(least)
    sets[np.arange(len(sets)), P_own.argmax(axis=1)] = True
    tested, truth = _labelled(data, "test")
    own = np.array([len(tested), np.count_nonzero(sets[tested, truth]), np.count_nonzero(sets[tested])])
    tests, held, size = group.sum_integers(own).tolist()
    shares = (held / tests, size / tests) if tests else (None, None)
    return Conformal(sets, None, coverage, len(likely), least, *shares)


def _intervals(classifier: Classifier, Z_own: np.ndarray, coverage: float) -> Conformal:
    """Numbers no farther from what is predicted than those of all but a share of the validation nodes."""
    group, data = classifier.group, classifier.about
    found = classifier.goal.predicted(Z_own).astype(np.float64)
    chosen, labels = _labelled(data, "val")
    errors = [_gathered(group, each) for each in np.abs(labels - found[chosen]).T]
    errors = [np.sort(each[np.isfinite(each)]) for each in errors]
    places = [place_of(coverage, len(each)) for each in errors]
    half = np.array([e[at - 1] if at <= len(e) else inf for e, at in zip(errors, places)])
    tested, truth = _labelled(data, "test")
    away = np.abs(truth - found[tested])
    own = np.array([np.count_nonzero(np.isfinite(away)), np.count_nonzero(away <= half)])
    tests, held = group.sum_integers(own).tolist()
    both = np.stack([found - half, found + half], axis=2)
    fewest = min(map(len, errors))
    return Conformal(None, both, coverage, fewest, half, held / tests if tests else None, None)


def _labelled(data: NodeData, split: str) -> tuple[np.ndarray, np.ndarray]:
    """[m] own rows of a set, and their labels [m, ...]."""
    rows = np.flatnonzero(getattr(data, split))
    return rows, data.labels[data.places(rows)]


def _gathered(group: Group, own: np.ndarray) -> np.ndarray:
    """[m] numbers of all ranks. Ranks: all call."""
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return group.gather_host(np.ascontiguousarray(own), sizes)
