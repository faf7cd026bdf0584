"""Several networks that have learned the same from other seeds: what they say together, and how far apart.

Source   Lakshminarayanan, Pritzel, Blundell: Simple and scalable predictive uncertainty estimation using deep
         ensembles, NeurIPS 2017, section 2.4: the mixture of all members, each with the same weight
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.gnn.classifier import Classifier
from app.gnn.goals import PIECE, Goal
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores

MIDDLE = np.float32(0.5)  # of a probability: above it a node has a label


@dataclass(frozen=True)
class Together:
    """What members say of own rows [k].

    rows      [k, columns] float32, as the goal predicts by: of classes mean probabilities, of several labels
              those less one half, of values mean scores
    spread    [k] float32, the standard deviation over members of the probability of the class predicted; of
              labels [k, labels] of each one's; of values [k, columns] of the numbers
    each      [members, k, ...] what each predicts
    scores    of `rows`, by split     apart   of each member alone
    """

    kind: str
    rows: np.ndarray
    spread: np.ndarray
    each: np.ndarray
    scores: SplitScores
    apart: list[SplitScores]

    @property
    def probabilities(self) -> np.ndarray:
        """[k, classes] float32, the means over members; of values nothing that is one."""
        return self.rows + MIDDLE if self.kind == "labels" else self.rows


class Moments:
    """Mean and variance of arrays that come one after the other (Welford 1962), in float64."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.mean, self.squares = np.zeros(shape), np.zeros(shape)

    def add(self, rows: np.ndarray) -> None:
        """One more array, a piece of rows at a time."""
        self.count += 1
        for lo in range(0, len(rows), PIECE):
            part = slice(lo, lo + PIECE)
            away = rows[part] - self.mean[part]
            self.mean[part] += away / self.count
            self.squares[part] += away * (rows[part] - self.mean[part])

    def deviation(self) -> np.ndarray:
        """[rows, ...] of all that came, as of a whole population, in the place of the squares."""
        self.squares /= self.count
        return np.sqrt(self.squares, out=self.squares)


def say_together(classifier: Classifier, members: Sequence[dict[str, np.ndarray]]) -> Together:
    """What networks of one shape say together; the first one's weights are those of the classifier after it.

    members   their weights by name
    Ranks     all call; the same bits on any number of them
    Raises    Diverged where scores of a member are not finite
    """
    goal, moments, each, apart = classifier.goal, None, [], []
    for weights in members:
        classifier.params.set(weights)
        Z_own = classifier.scores_own()
        refuse_infinite_rows(classifier.group, classifier.real_rows(Z_own))
        each.append(goal.predicted(Z_own))
        apart.append(classifier.evaluate_rows(Z_own))
        moments = moments or Moments(Z_own.shape)
        moments.add(Z_own if goal.kind == "values" else goal.probabilities(Z_own))
    classifier.params.set(members[0])
    rows = moments.mean.astype(np.float32)
    if goal.kind == "labels":
        rows -= MIDDLE
    spread = _spread(goal, rows, moments.deviation()).astype(np.float32)
    return Together(goal.kind, rows, spread, np.stack(each), classifier.evaluate_rows(rows), apart)


def _spread(goal: Goal, rows: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """`Together.spread` of the deviations of what moments are of."""
    if goal.kind == "values":
        return deviation * goal.scale.deviation
    if goal.kind == "labels":
        return deviation
    return np.take_along_axis(deviation, goal.predicted(rows)[:, None], axis=1)[:, 0]
