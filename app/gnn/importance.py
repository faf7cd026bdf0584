"""Importance of features: what a network's scores lose where features are left out, one at a time.

Whatever its kind, the first layer multiplies features by weights before all else (`meets_input`). So a
feature is left out where its row of these weights is zero: the same network then hears zeros in that column,
of standardised columns their mean. That is one forward pass for each, whether features are dense, sparse, in
the slow tier, or there as A X alone, and on any number of ranks.

Source    occlusion: Zeiler and Fergus 2014; the features that are tried are those with the largest part
          x_j w_j of the product X W
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.comm.exact import sum_exactly
from app.errors import CaseError
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.inputs import Scaling, scaled_rows
from app.graphs.nodes.data import rows_per_piece
from app.memory.slow_rows import read_over
from app.watchdog import beat

SETS = {"val": "validation", "test": "test", "train": "training"}  # the first that has labels is looked at
Measured = tuple[float, float]  # score, loss


@dataclass(frozen=True, eq=False)
class Importance:
    """Scores of a network without some features, the most important first: by the loss where there is one.

    split    the set that scores are of: "val", "test" or "train"
    whole    (score, loss) of the network, nan where that set tells no loss; none: without any feature
    feature  [k] int64, columns of the data, from 0
    part     [k] float64, root of the mean square of a feature's part of X W
    score, loss   [k] float64 without it
    """

    split: str
    whole: Measured
    none: Measured
    feature: np.ndarray
    part: np.ndarray
    score: np.ndarray
    loss: np.ndarray

    def lines(self, most: int) -> Iterator[str]:
        """For the log."""
        score, loss = self.whole
        by = "loss" if loss == loss else "score"
        yield f"importance of features, by the {by} of the {SETS[self.split]} set without them:"
        yield f"all features: {_told(score, loss)}; none: {_told(*self.none)}"
        for row in zip(self.feature[:most].tolist(), self.score.tolist(), self.loss.tolist()):
            yield f"without feature {row[0]}: {_told(*row[1:])}"

    def told(self) -> dict[str, Any]:
        """What result.json holds."""
        columns = {"score_without": self.score.tolist(), "loss_without": [_or_none(x) for x in self.loss]}
        score, loss = self.none
        return {
            "set": self.split,
            "without_any": {"score": score, "loss": _or_none(loss)},
            "features": self.feature.tolist(),
            **columns,
        }

    def text(self) -> str:
        """A line for each feature, for a file."""
        rows = zip(self.feature.tolist(), self.part.tolist(), self.score.tolist(), self.loss.tolist())
        score, loss = self.whole
        head = "feature,part,score_without,score_lost,loss_without,loss_added\n"
        lines = (
            f"{j},{part:.6g},{s:.6g},{score - s:.6g},{_or_blank(x)},{_or_blank(x - loss)}\n"
            for j, part, s, x in rows
        )
        return head + "".join(lines)


def importance(
    classifier: Classifier, most: int, measure: Callable[[str], Measured] | None = None
) -> Importance:
    """Leave out the `most` features with the largest parts of X W, each by itself, and all together.

    measure   score and loss of a set; by default those of the classifier's labels
    Ranks     all call; result identical on all
    Raises    CaseError where there are no features, or nothing to tell a score by
    """
    split, measure = told_by(classifier), measure or partial(measured, classifier)
    columns, parts = _parts(classifier)
    tried = np.argsort(-parts, kind="stable")[:most]
    measures, classifier.engine.measures = classifier.engine.measures, False  # statistics stay as they are
    kept = classifier.params.host()
    try:
        found = [measure(split)]
        for places in (np.arange(classifier.model.f_in), *(columns[j] for j in tried)):
            beat()
            classifier.params.set(_without(classifier, kept, places))
            found.append(measure(split))
    finally:
        classifier.params.set(kept)
        classifier.engine.measures = measures
    score, loss = np.array(found[2:], dtype=np.float64).reshape(-1, 2).T
    worth = -loss if found[0][1] == found[0][1] else score
    order = np.lexsort((tried, worth))
    chosen = tried[order].astype(np.int64)
    return Importance(split, *found[:2], chosen, np.sqrt(parts[chosen]), score[order], loss[order])


def told_by(classifier: Classifier) -> str:
    """The set that tells how good a network is: the first of SETS that has labels; of links that is held out.

    Raises CaseError where there are no features, or no such set
    """
    counts, links = classifier.data.counts, classifier.case.level == "link"
    if not classifier.data.width:
        raise CaseError("output.importance: the graph has no features; 0 would be right")
    split = next((name for name in SETS if counts[name] and not (links and name == "train")), "")
    if not split or not (links or classifier.about.classes):
        raise CaseError("output.importance: nothing tells how good the network is; 0 would be right")
    return split


def measured(classifier: Classifier, split: str) -> Measured:
    """Score and loss of a set with labels. Ranks: all call."""
    scores = classifier.evaluate("loss" if split == "val" else "")[split]
    loss = scores.error if classifier.goal.kind == "values" else scores.loss
    return float(scores.score), float("nan") if loss is None else float(loss)


def _without(
    classifier: Classifier, weights: dict[str, np.ndarray], places: np.ndarray
) -> dict[str, np.ndarray]:
    """Weights without the rows that meet some columns of X."""
    found = dict(weights)
    for name in classifier.model.blocks[0].meets_input:
        found[name] = weights[name].copy()
        found[name][places] = 0
    return found


def _parts(classifier: Classifier) -> tuple[list[np.ndarray], np.ndarray]:
    """Of each feature its columns of X, and [k] float64 the mean square of its part of X W. Ranks: all."""
    weights, inputs = classifier.params.host(), classifier.inputs
    squares = np.zeros(classifier.model.f_in)
    for name in classifier.model.blocks[0].meets_input:
        squares += (weights[name].astype(np.float64) ** 2).sum(axis=1)
    squares *= _mean_squares(classifier)
    starts = inputs.starts if isinstance(inputs, Categories) else np.arange(len(squares) + 1)
    columns = [np.arange(lo, hi) for lo, hi in zip(starts[:-1].tolist(), starts[1:].tolist())]
    return columns, np.add.reduceat(squares, starts[:-1])


def _mean_squares(classifier: Classifier) -> np.ndarray:
    """[F] float64, the mean over all nodes of the square of each column of X. Ranks: all call."""
    block, X = classifier.block, classifier.data.features
    scaling = Scaling(classifier.case.feature_rows, classifier.inputs, block.n_real)
    step = rows_per_piece(8 * X.shape[1])

    def pieces() -> Iterator[np.ndarray]:
        for lo in range(0, block.n_real, step):
            rows = slice(lo, min(lo + step, block.n_real))
            some = scaled_rows(X[rows], scaling, lo)
            yield (some if isinstance(some, np.ndarray) else some.toarray()).astype(np.float64) ** 2
            if isinstance(X, np.ndarray):
                read_over(X, rows)

    return sum_exactly(classifier.group, pieces, X.shape[1]) / max(block.n, 1)


def _told(score: float, loss: float) -> str:
    return f"score {score:.4f}" + (f", loss {loss:.4f}" if loss == loss else "")


def _or_none(number: float) -> float | None:
    return None if number != number else float(number)


def _or_blank(number: float) -> str:
    return "" if number != number else f"{number:.6g}"
