"""What the labels of training edges say without features and without learning: what networks stand beside."""

import numpy as np

from app.gnn.edge_level.classifier import EdgeClassifier
from app.gnn.metrics import SplitScores
from app.gnn.plain import ALIKE, alike_of, as_scores, given_of, judged, mean_of

PRIOR = 1.0  # edges that the mean over all edges counts as


def plain_edge_scores(classifier: EdgeClassifier) -> dict[str, SplitScores]:
    """How good plain rules are on validation and test edges, by rule; none without training labels.

    ends     the mean of the labels of the training edges at both ends, with that of all training edges as one
             edge more
    largest_class, majority, mean   by goal: what is best said of all edges alike
    Ranks    all call
    """
    about = classifier.about
    if not about.classes or not about.counts["train"]:
        return {}
    alike = np.broadcast_to(alike_of(classifier), (len(about.train), classifier.classes))
    return {
        "ends": judged(classifier, as_scores(classifier, _at_ends(classifier))),
        ALIKE[classifier.goal.kind]: judged(classifier, np.ascontiguousarray(alike)),
    }


def _at_ends(classifier: EdgeClassifier) -> np.ndarray:
    """[m_own, columns] float32, the means of `ends` for own edges. Ranks: all call (one exchange)."""
    group, block, labels = classifier.group, classifier.block, classifier.labels
    mean = mean_of(classifier).astype(np.float64)
    Y, known = given_of(classifier, labels.about)
    known = np.broadcast_to(known, Y.shape)
    starts = np.concatenate([[0], np.cumsum(labels.counts)])
    sums, counts = (_by_row(np.asarray(each, dtype=np.float64), starts) for each in (Y, known))
    both = np.ascontiguousarray(np.concatenate([sums, counts], axis=1))
    other = block.extend_host(group, both)
    rows = np.repeat(np.arange(block.n_own), labels.counts)[labels.first]
    columns = block.host_rows()[1][labels.first]
    total = both[rows] + other[columns]
    width = Y.shape[1]
    return ((total[:, :width] + PRIOR * mean) / (total[:, width:] + PRIOR)).astype(np.float32)


def _by_row(X: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """[n_own, columns] sums of rows of X [nnz, columns] from starts [n_own+1], from the left."""
    out = np.zeros((len(starts) - 1, X.shape[1]))
    np.add.at(out, np.repeat(np.arange(len(out)), np.diff(starts)), X)
    return out
