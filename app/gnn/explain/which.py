"""Which predictions are explained, and what the network on the whole graph says of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.gnn.classifier import Classifier
from app.gnn.ensemble import Together
from app.gnn.explain.field import own_of, shared
from app.graphs.nodes.data import NodeData


def known_scores(
    classifier: Classifier, members: Sequence[dict[str, np.ndarray]], rows: np.ndarray
) -> np.ndarray:
    """[members, k, columns] float32, the scores of rows [k, 1], or of edges or pairs [k, 2].

    The classifier's weights are the first member's after it.
    Ranks   all call; result identical on all
    """
    found = []
    for weights in members:
        if len(members) > 1:
            classifier.params.set(weights)
        found.append(_scores_of(classifier, rows))
    if len(members) > 1:
        classifier.params.set(members[0])
    return np.stack(found)


def _scores_of(classifier: Classifier, rows: np.ndarray) -> np.ndarray:
    """[k, columns] float32. Ranks: all call."""
    if classifier.case.level == "link":
        return classifier.score_pairs(rows)[:, None]
    Z, order = classifier.scores_own(), np.lexsort(rows.T[::-1])
    if classifier.case.level == "edge":
        own = _numbers_of(classifier, own_pairs(classifier))
        asked = np.sort(_numbers_of(classifier, rows))
        places = np.searchsorted(own, asked[np.isin(asked, own)])
    else:
        places = own_of(classifier.block, rows[order, 0])
    known = np.empty((len(rows), classifier.classes), dtype=np.float32)
    known[order] = shared(classifier.group, Z[places])
    return known


def _numbers_of(classifier: Classifier, pairs: np.ndarray) -> np.ndarray:
    """[k] int64, a number for each pair of rows [k, 2]."""
    return pairs[:, 0] * classifier.block.n + pairs[:, 1]


def own_pairs(classifier: Any) -> np.ndarray:
    """[m_own, 2] int64, of an EdgeClassifier own edges u < v by rows of the graph, in the order of scores."""
    block = classifier.block
    counts, heard = block.adjacency.global_rows(np.arange(block.n_own))
    hears = block.lo + np.repeat(np.arange(block.n_own), counts)
    return np.stack([hears, heard.astype(np.int64)], axis=1)[classifier.labels.first]


def are_edges(classifier: Any, pairs: np.ndarray) -> np.ndarray:
    """[k] bool, which pairs of rows [k, 2], u < v, are edges of an EdgeClassifier.

    Ranks   all call; result identical on all
    """
    own = np.isin(_numbers_of(classifier, pairs), _numbers_of(classifier, own_pairs(classifier)))
    return classifier.group.sum_integers(own.astype(np.int64)) > 0


def least_certain(classifier: Classifier, count: int, together: Together | None = None) -> np.ndarray:
    """[k] int64 rows, or [k, 2] edges or pairs, so many of the test set, of all that are predicted where
    there is none: those that are predicted wrongly first, of these and of the others the least certain ones;
    of values those of the largest errors, of pairs whose scores are no probabilities those of the lowest.

    together   what several networks say of own rows; None: there is one
    Ranks      all call; result identical on all
    """
    if classifier.case.level == "link":
        return _least_joined(classifier, count)
    data, block = classifier.about, classifier.block
    of_edges = classifier.case.level == "edge"
    Z = classifier.scores_own() if together is None else together.rows
    if of_edges:
        named, rows = own_pairs(classifier), np.arange(len(Z))
    else:
        rows = np.arange(block.n_own) if data.rows is None else data.rows
        named = (rows + block.lo)[:, None]
    real = np.ones(len(rows), dtype=bool) if of_edges else rows < block.n_real
    places = np.flatnonzero(data.among(data.test) if data.counts["test"] else real)
    likely = None if together is None else together.probabilities[rows[places]]
    wrong, certain = _told(classifier, data, Z[rows[places]], places, likely)
    known = np.concatenate([named[places], wrong[:, None]], axis=1).astype(np.int64)
    known, certain = shared(classifier.group, known), shared(classifier.group, certain)
    order = np.lexsort((*known[:, -2::-1].T, certain, -known[:, -1]))[:count]
    return known[order, :-1] if of_edges else known[order, 0]


def _least_joined(predictor: Any, count: int) -> np.ndarray:
    """[k, 2] the held-out edges that a LinkPredictor says are apart, or the least likely. Ranks: all call."""
    split = predictor.split
    some = (split.sets["test"].joined, split.held, split.sets["train"].joined)
    pairs = next((each for each in some if len(each)), some[0])
    scores = predictor.score_pairs(pairs).astype(np.float64)
    likely = predictor.links.loss == "logistic"
    wrong, certain = (scores <= 0, np.abs(scores)) if likely else (np.zeros(len(pairs), bool), scores)
    return pairs[np.lexsort((*pairs.T[::-1], certain, ~wrong))[:count]]


def _told(
    classifier: Classifier, data: NodeData, Z: np.ndarray, places: np.ndarray, likely: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """[k] bool, which predictions are known to be wrong, and [k] float64 how certain they are.

    Z   [k, columns] what the goal predicts by     likely   [k, columns] probabilities; None: those of Z
    """
    goal, labels = classifier.goal, None if data.labels is None else data.labels[places]
    none = np.zeros(len(Z), dtype=bool)
    if goal.kind == "values":
        errors = np.zeros(Z.shape) if labels is None else np.nan_to_num(np.abs(Z - goal.scale.small(labels)))
        return none, -errors.sum(axis=1).astype(np.float64)
    likely = (goal.probabilities(Z) if likely is None else likely).astype(np.float64)
    if goal.kind == "labels":
        certain = np.abs(likely - 0.5).min(axis=1)
        known = None if labels is None else labels.astype(np.int64)
        wrong = none if known is None else ((goal.predicted(Z) != known) & (known >= 0)).any(axis=1)
        return wrong, certain
    top = np.sort(likely, axis=1)
    certain = top[:, -1] - top[:, -2] if Z.shape[1] > 1 else top[:, -1]
    wrong = none if labels is None else (goal.predicted(Z) != labels) & (labels >= 0)
    return wrong, certain
