"""What the labels of training nodes say without features and without learning: what networks stand beside."""

import numpy as np

from app.comm.exact import sum_exactly
from app.gnn.classifier import Classifier
from app.gnn.metrics import SplitScores
from app.gnn.propagation import propagate
from app.gnn.scale import known_or_zero, pieces_of
from app.graphs.nodes.data import NodeData

ALPHA, STEPS = 0.9, 50
ALIKE = {"classes": "largest_class", "labels": "majority", "values": "mean"}  # by goal: of all nodes the same
JUDGED = ("val", "test")


def plain_scores(classifier: Classifier) -> dict[str, SplitScores]:
    """How good plain rules are on validation and test nodes, by rule; none without training labels.

    label_propagation   the labels of training nodes go to neighbours, STEPS products of as many columns as
                        there are classes: what is said of a node is the mean of the labels that have arrived,
                        each with its weight; where none has, what is best said of all. Of nodes alone
    largest_class, majority, mean   by goal: what is best said of all nodes alike
    Source              Zhu, Ghahramani and Lafferty 2003; Zhou et al. 2004, with their matrix
    Ranks               all call
    """
    data = classifier.data
    if not data.classes or not data.counts["train"]:
        return {}
    alike, out = alike_of(classifier), {}
    if classifier.members is None:
        out["label_propagation"] = judged(classifier, _arrived(classifier, alike))
    rows = np.broadcast_to(alike, (classifier.block.n_own, len(alike)))
    out[ALIKE[classifier.goal.kind]] = judged(classifier, np.ascontiguousarray(rows))
    return out


def judged(classifier: Classifier, Z_own: np.ndarray) -> SplitScores:
    """Scores of validation and test sets where rows of scores are others than the network's. Ranks: all."""
    scores = classifier.evaluate_rows(Z_own)
    return {split: scores[split] for split in JUDGED}


def given_of(classifier: Classifier, data: NodeData) -> tuple[np.ndarray, np.ndarray]:
    """Labels of training nodes [k, columns] in numbers, and where they are known [k, columns or 1] bool, by
    rows of labels. Of values they are in the scale of the network."""
    goal = classifier.goal
    train = data.among(data.train)[:, None]
    if goal.kind == "classes":
        return one_hot(data.labels, classifier.classes) * train, train
    if goal.kind == "labels":
        known = train & (data.labels >= 0) if data.partly else train
        return ((data.labels > 0) & known).astype(np.float32), known
    known = train & np.isfinite(data.labels)
    return np.where(known, known_or_zero(goal.scale.small(data.labels)), 0).astype(np.float32), known


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """[k, classes] float32, one in the column of each label; rows of -1 are zero."""
    out = np.zeros((len(labels), classes), dtype=np.float32)
    rows = np.flatnonzero(labels >= 0)
    out[rows, labels[rows]] = 1
    return out


def alike_of(classifier: Classifier) -> np.ndarray:
    """[columns] float32, the mean of the training labels as scores have it; ties go to the first class.

    Ranks   all call
    """
    return as_scores(classifier, mean_of(classifier))


def mean_of(classifier: Classifier) -> np.ndarray:
    """[columns] float32, the mean of the training labels. Ranks: all call."""
    group, data = classifier.group, classifier.about
    Y, known = given_of(classifier, data)
    sums = sum_exactly(group, pieces_of(Y, data.among(data.train), lambda rows: rows), Y.shape[1])
    count = np.maximum(group.sum_integers(known.sum(axis=0, dtype=np.int64)), 1)
    return (sums / count).astype(np.float32)


def _arrived(classifier: Classifier, alike: np.ndarray) -> np.ndarray:
    """[n_own, columns] float32, the mean of the labels that reach a node; where none does, `alike`.

    Ranks   all call
    """
    Y, known = given_of(classifier, classifier.data)
    if classifier.goal.kind == "classes":  # of which every node has one: what has arrived is a row's sum
        sums = propagate(classifier, Y, ALPHA, STEPS, 0.0, 1.0)
        weight = row_sums(sums)[:, None]
    else:
        both = np.concatenate([Y, known.astype(np.float32)], axis=1)
        both = propagate(classifier, both, ALPHA, STEPS, -np.inf, np.inf)
        sums, weight = both[:, : Y.shape[1]], both[:, Y.shape[1] :]
    there = weight > 0
    return np.where(there, as_scores(classifier, sums / np.where(there, weight, np.float32(1))), alike)


def as_scores(classifier: Classifier, means: np.ndarray) -> np.ndarray:
    """Means of labels as what the goal predicts by: of several labels above zero means yes."""
    return means - np.float32(0.5) if classifier.goal.kind == "labels" else means


def row_sums(rows: np.ndarray) -> np.ndarray:
    """[k] float32, the sum of each row [k, columns], one column after the other."""
    total = np.zeros(len(rows), dtype=np.float32)
    for column in rows.T:
        total += column
    return total
