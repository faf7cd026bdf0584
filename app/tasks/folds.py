"""Cross-validation: labelled nodes, graphs or edges, or links, are cut into folds; each is tested once."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, isnan
from statistics import fmean, stdev
from typing import Any

import numpy as np

from app.checkpoint.shared import share_state
from app.checkpoint.store import State
from app.comm.guard import digest, raise_together
from app.gnn.classifier import Classifier
from app.gnn.importance import importance
from app.gnn.loss import refuse_infinite_rows
from app.gnn.smoothing import smooth
from app.gnn.training import fit
from app.graphs.nodes.data import SPLITS
from app.output import plain
from app.tasks.context import Context
from app.tasks.levels.course import check_asked
from app.tasks.levels.examples import Examples

NETWORK = "test_network"  # the test score of the network alone, where [smooth] follows it
LOST = ("part", "score_lost", "loss_added")  # what the importance of a feature is told by


@dataclass(frozen=True)
class FoldRun:
    """The training that one fold tests.

    row        what the table tells of it: nodes or edges by split, epochs, scores by split, the examples'
               measures of the test fold; NETWORK, and test scores of plain rules (Examples.beside)
    curve      by evaluation: epoch, and scores of the training, validation and test sets, None of no nodes
    weights    digest of what was learned
    predicted  what the network says (Examples.predicted); None where nobody asked
    lost       of the features that were left out: name, and LOST; none where nobody asked
    """

    row: dict[str, Any]
    curve: list[list[Any]]
    weights: str
    predicted: np.ndarray | None
    lost: list[list[Any]]

    def state(self) -> State:
        """For other ranks."""
        told = {name: value for name, value in vars(self).items() if name != "predicted"}
        arrays = {} if self.predicted is None else {"predicted": self.predicted}
        return State(json.loads(json.dumps(told, default=plain)), arrays)


def run_fold(context: Context, examples: Examples, classifier: Classifier, predict: bool = False) -> FoldRun:
    """Train a network on the examples of one fold. Ranks: all call.

    Raises   Diverged where what it learned gives scores that are not finite, CaseError before it learns
             where it could not tell what is asked for
    """
    check_asked(context.case, classifier)
    found = fit(classifier, check_every=context.case.run.check_every, keeper=context.keeper)
    scores, smoothed = classifier.evaluate_ranking(), None
    beside = {NETWORK: None} | examples.plain_tests(classifier)
    if (asked := context.case.smooth).method != "none":
        smoothed = smooth(classifier, asked)
        beside[NETWORK], scores = _known(scores["test"].score), smoothed.scores
    test = scores["test"].named()
    row = {
        "score": next(iter(classifier.goal.told)),
        **{f"{name}_{examples.counted}": examples.counts[name] for name in SPLITS},
        "epochs": found.epochs, "best_epoch": found.best_epoch,
        **{name: _known(scores[name].score) for name in SPLITS},
        **{name: _known(test.get(name)) for name in examples.measures}, **beside,
    }  # fmt: skip
    curve = [[int(r["epoch"]), *(_known(r[f"{name}_score"]) for name in SPLITS)] for r in found.records]
    Z_own = classifier.scores_own() if smoothed is None else smoothed.rows
    refuse_infinite_rows(context.group, classifier.real_rows(Z_own))
    most = context.case.output.importance
    lost = importance(classifier, most, examples.measure).rows() if most else []
    predicted = examples.predicted(classifier, Z_own) if predict else None
    return FoldRun(row, curve, digest(found.weights), predicted, lost)


def trained(context: Context, train: Callable[[int], FoldRun], folds: int) -> list[FoldRun]:
    """The training of each fold; where every rank has the whole graph, they are dealt to the ranks.

    train   that of a fold, by the ranks that share it
    Ranks   all call; identical on all
    """
    group = context.alike
    if group is None:
        return [train(fold) for fold in range(folds)]
    with raise_together(group, "training", rest=True):
        own = {fold: train(fold).state() for fold in range(group.rank, folds, group.size)}
    found = [share_state(group, own.get(fold), fold % group.size) for fold in range(folds)]
    return [FoldRun(predicted=each.arrays.get("predicted"), **each.values) for each in found]


def summary(
    rows: list[dict[str, Any]], curves: list[list[list[Any]]], columns: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What the folds' trainings come to together.

    NAME_mean, NAME_std   over trainings, the sample standard deviation (None of one, and where an error is
                          beyond all numbers), of the weights that were kept: `train`, `val`, `test`,
                          and other columns
    best_mean_epoch       whose mean test score over all trainings is the highest, the first of equal ones;
                          test_at_best_mean_epoch, ..._std: the scores there. Test nodes choose the epoch, so
                          it is optimistic (Xu et al. 2019 report this)
    """
    found: dict[str, Any] = {"trainings": len(rows)}
    for name in (*SPLITS, *columns):
        found[f"{name}_mean"], found[f"{name}_std"] = _spread([row.get(name) for row in rows])
    by_epoch = [{point[0]: point[-1] for point in curve} for curve in curves]
    common = [epoch for epoch in by_epoch[0] if all(each.get(epoch) is not None for each in by_epoch)]
    best = max(common, key=lambda epoch: fmean(each[epoch] for each in by_epoch), default=None)
    mean, deviation = _spread([each.get(best) for each in by_epoch])
    return found | {
        "best_mean_epoch": best, "test_at_best_mean_epoch": mean, "test_at_best_mean_epoch_std": deviation,
    }  # fmt: skip


def columns_of(examples: Examples) -> tuple[str, ...]:
    """The columns of rows that are means over folds, beside the scores by split."""
    return (NETWORK, *examples.beside, *examples.measures)


def mean_lost(found: list[list[list[Any]]]) -> list[dict[str, Any]]:
    """The importance of features over trainings, the most important first: how many trainings have left a
    feature out, and the means of LOST over these, None where none tells it.

    found   by training what FoldRun.lost has
    """
    by_name: dict[str, list[list[Any]]] = {}
    for name, *values in (row for rows in found for row in rows):
        by_name.setdefault(name, []).append(values)
    rows = [
        {"feature": name, "trainings": len(each)}
        | {key: _spread(list(c))[0] for key, c in zip(LOST, zip(*each))}
        for name, each in by_name.items()
    ]
    by = "loss_added" if any(row["loss_added"] is not None for row in rows) else "score_lost"
    return sorted(rows, key=lambda row: -(row[by] if row[by] is not None else -inf))


def mean_curve(curves: list[list[list[Any]]]) -> dict[str, tuple[list[int], list[float]]]:
    """Epochs and mean scores over the trainings that came as far, by split."""
    found = {}
    for at, name in enumerate(SPLITS, start=1):
        values: dict[int, list[float]] = {}
        for point in (point for curve in curves for point in curve if point[at] is not None):
            values.setdefault(point[0], []).append(point[at])
        if values:
            epochs = sorted(values)
            found[name] = epochs, [fmean(values[epoch]) for epoch in epochs]
    return found


def _known(value: float | None) -> float | None:
    return None if value is None or isnan(value) else value


def _spread(values: list[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation; None of none, and the deviation of one and of infinite ones."""
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    mean = fmean(known)
    return mean, stdev(known) if len(known) > 1 and isfinite(mean) else None
