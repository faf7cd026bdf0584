"""Cross-validation: labelled nodes, or graphs, are cut into folds, of which each is tested once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite, isnan
from statistics import fmean, stdev
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.loss import refuse_infinite_rows
from app.gnn.plain import ALIKE, plain_scores
from app.gnn.smoothing import check_smoothing, smooth
from app.gnn.training import fit
from app.graphs.generators.random_nodes import fold_keys
from app.graphs.nodes.data import SPLITS, NodeData
from app.partition.load import Loaded
from app.partition.nodes import own_old_rows
from app.tasks.context import Context

BESIDE = ("test_network", "test_propagated", "test_alike")  # test scores that the test fold's stand beside
MEASURES = ("accuracy", "micro_f1", "macro_f1", "auc", "ap", "r2", "rmse", "mae")  # of the test fold
Make = Callable[[GnnCase, NodeData, int], Classifier]


@dataclass(frozen=True)
class FoldRun:
    """The training that one fold tests.

    row        what the table tells of it: nodes by split, epochs, scores by split, MEASURES of the test fold;
               BESIDE: of the network alone where [smooth] follows it, of label propagation, and of what is
               best said of all nodes alike
    curve      by evaluation: epoch, and scores of the training, validation and test nodes, None of no nodes
    weights    digest of what was learned
    predicted  [n_own, ...] what the network says of own rows; None where nobody asked
    """

    row: dict[str, Any]
    curve: list[list[Any]]
    weights: str
    predicted: np.ndarray | None


def draw_folds(group: Group, data: NodeData, loaded: Loaded, seed: int, folds: int) -> np.ndarray:
    """[n_own] int64, the fold of each labelled row from 0, else -1: a function of the seed and the numbers of
    rows, on any ranks.

    Rows are put in the order of their classes, those of a class at random, and dealt to the folds in turn:
    these differ by at most one row, also of each class. Values, and rows of several classes, are all alike.

    Ranks   all call; 12 bytes for each labelled row of all ranks are brought to each
    Raises  CaseError where there are fewer than `folds`
    """
    old = np.zeros(len(data.labelled), dtype=np.int64)
    held = own_old_rows(loaded, group.rank)
    old[: len(held)] = held
    rows = np.flatnonzero(data.labelled)
    alike = data.multilabel or data.values
    classes = np.zeros(len(rows), np.int32) if alike else data.labels[data.places(rows)].astype(np.int32)
    sizes = group.gather_integers(np.array([len(rows)]))[:, 0].tolist()
    if sum(sizes) < folds:
        what = "nodes" if loaded.members is None else "graphs"
        right = f"at most {sum(sizes)}, the labelled {what} of {loaded.graph.name}, would be right"
        raise CaseError(f"study.folds: found {folds}; {right}")
    keys = group.gather_host(fold_keys(seed, old[rows]), sizes)
    turn = np.empty(len(keys), dtype=np.int64)
    turn[np.lexsort((keys, group.gather_host(classes, sizes)))] = np.arange(len(keys)) % folds
    first = sum(sizes[: group.rank])
    found = np.full(len(data.labelled), -1, dtype=np.int64)
    found[rows] = turn[first : first + len(rows)]
    return found


def split_by_fold(group: Group, data: NodeData, fold_own: np.ndarray, fold: int, held_back: int) -> NodeData:
    """Node data in which a fold is tested, the next one validated and all others trained on.

    held_back   the number of folds that are not trained on, 1: there is no validation
    Ranks       all call
    """
    count = int(group.max_integer(int(fold_own.max(initial=-1)))) + 1
    test, val = fold_own == fold, (fold_own == (fold + 1) % count) & (held_back > 1)
    masks = {"train": (fold_own >= 0) & ~test & ~val, "val": val, "test": test}
    sizes = group.sum_integers(np.array([mask.sum() for mask in masks.values()])).tolist()
    return replace(data, **masks, counts=dict(zip(masks, sizes)))


def run_fold(
    context: Context, gnn: GnnCase, data: NodeData, seed: int, make: Make, predict: bool = False
) -> FoldRun:
    """Train on one fold's data. Ranks: all call.

    make     a classifier of the graph, from the table, the data and the seed of weights
    Raises   NumericsError where what it learned gives scores that are not finite
    """
    classifier = make(gnn, data, seed)
    found = fit(classifier, check_every=context.case.run.check_every, keeper=context.keeper)
    scores, smoothed = classifier.evaluate_ranking(), None
    beside = beside_test(classifier)
    if (asked := context.case.smooth).method != "none":
        check_smoothing(asked, classifier.goal.kind, data)
        smoothed = smooth(classifier, asked)
        beside["test_network"], scores = _known(scores["test"].score), smoothed.scores
    test = scores["test"].named()
    row = {
        "score": next(iter(classifier.goal.told)), **{f"{name}_nodes": data.counts[name] for name in SPLITS},
        "epochs": found.epochs, "best_epoch": found.best_epoch,
        **{name: _known(scores[name].score) for name in SPLITS},
        **{name: test.get(name) for name in MEASURES}, **beside,
    }  # fmt: skip
    curve = [[int(r["epoch"]), *(_known(r[f"{name}_score"]) for name in SPLITS)] for r in found.records]
    Z_own = classifier.scores_own() if smoothed is None else smoothed.rows
    refuse_infinite_rows(context.group, Z_own[: classifier.block.n_real])
    predicted = classifier.goal.predicted(Z_own) if predict else None
    return FoldRun(row, curve, digest(found.weights), predicted)


def beside_test(classifier: Classifier) -> dict[str, float | None]:
    """BESIDE: the test scores of plain rules, None where gnn.baselines leaves them out or there is no such
    rule, and of the network alone None. Ranks: all call."""
    plain = plain_scores(classifier) if classifier.case.baselines else {}
    found = {rule: _known(each["test"].score) for rule, each in plain.items()}
    alike = found.get(ALIKE[classifier.goal.kind])
    return dict(zip(BESIDE, (None, found.get("label_propagation"), alike)))


def summary(rows: list[dict[str, Any]], curves: list[list[list[Any]]]) -> dict[str, Any]:
    """What the folds' trainings come to together.

    NAME_mean, NAME_std   over trainings, the sample standard deviation (None of one, and where an error is
                          beyond all numbers), of the weights that were kept: `train`, `val`, `test`,
                          MEASURES, BESIDE
    best_mean_epoch       whose mean test score over all trainings is the highest, the first of equal ones;
                          test_at_best_mean_epoch, ..._std: the scores there. Test nodes choose the epoch, so
                          it is optimistic (Xu et al. 2019 report this)
    """
    found: dict[str, Any] = {"trainings": len(rows)}
    for name in (*SPLITS, *MEASURES, *BESIDE):
        found[f"{name}_mean"], found[f"{name}_std"] = _spread([row.get(name) for row in rows])
    by_epoch = [{point[0]: point[-1] for point in curve} for curve in curves]
    common = [epoch for epoch in by_epoch[0] if all(each.get(epoch) is not None for each in by_epoch)]
    best = max(common, key=lambda epoch: fmean(each[epoch] for each in by_epoch), default=None)
    mean, deviation = _spread([each.get(best) for each in by_epoch])
    return found | {
        "best_mean_epoch": best, "test_at_best_mean_epoch": mean, "test_at_best_mean_epoch_std": deviation,
    }  # fmt: skip


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


def lacking(group: Group, data: NodeData, folds: int) -> Iterator[str]:
    """What to say of classes that some folds have no row of. Ranks: all call."""
    if data.multilabel or data.values:
        return
    sizes = group.sum_integers(np.bincount(data.labels[data.among(data.labelled)], minlength=data.classes))
    few = np.flatnonzero(sizes < folds)
    if len(few):
        named = ", ".join(map(str, data.called(few[:5]).tolist())) + (", ..." if len(few) > 5 else "")
        yield f"classes with fewer labels than there are folds ({named}): some folds have none of them"


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _spread(values: list[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation; None of none, and the deviation of one and of infinite ones."""
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    mean = fmean(known)
    return mean, stdev(known) if len(known) > 1 and isfinite(mean) else None
