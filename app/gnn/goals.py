"""What the scores of nodes mean: one class, several classes, or numbers. Losses, predictions and measures.

A goal is told by the labels of the data, or by the weights that are applied; the layers know nothing of it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.comm.ordered import sum_tree
from app.gnn.areas import keys_of, mean_areas
from app.gnn.engine import Engine
from app.gnn.metrics import (
    Scores,
    SplitScores,
    ValueScores,
    count_classes,
    count_hits,
    scores_of,
)
from app.gnn.scale import Scale, known_of, known_or_zero, pieces_of
from app.graphs.nodes.data import SPLITS, NodeData
from app.numerics.elementary import exp

Array = Any
PIECE = 1 << 12  # rows whose predictions are compared at a time
PIECE_NUMBERS = 1 << 20  # of a rank's errors that are added up at a time


class Goal(Protocol):
    """What a classifier asks of the meaning of its scores Z [n_own, columns].

    kind    what the columns stand for, in words
    told    what the log tells of scores: names of attributes by the words for them; first the one over epochs
    digits  how it tells them
    """

    kind: str
    told: dict[str, str]
    digits: str

    def targets(self, group: Group, data: NodeData) -> np.ndarray:
        """What scores are compared with, of k rows of labels: [k] int32 classes, [k, classes] float32 of 0
        and 1, or [k, columns] float32 numbers in the scale of the network; NaN where it is not known.

        Ranks   all call
        """
        ...

    def encoded(self, data: NodeData) -> np.ndarray:
        """The same of any labels of the kind that `targets` was told of."""
        ...

    def share(self, group: Group, data: NodeData, split: str, balanced: bool) -> Any:
        """The weight of a node of a split in its mean loss: of all, or by rows of labels [k].

        balanced   every class weighs the same, where a node has one
        Ranks      all call
        """
        ...

    def losses(self, device: Any, Z: Array, targets: Array, weight: Array) -> Array:
        """[n_own] float32 losses, each times its weight; the scores become the gradient by them.

        Z        [n_own, columns] float32, in and out     targets   as of `targets`, on the device
        weight   [n_own] float32, 0 of rows that are not learned from
        """
        ...

    def predicted(self, Z: np.ndarray) -> np.ndarray:
        """What host scores [k, columns] say of k nodes."""
        ...

    def probabilities(self, Z: np.ndarray) -> np.ndarray:
        """[k, columns] float32, how likely host scores [k, columns] make each column; none of values."""
        ...

    def margins(self, Z: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Of host scores and labels of k nodes [k, m] what ranks them, and [k, m] bool which are positive;
        None where there is no such question."""
        ...

    def measure(self, engine: Engine, data: NodeData, targets: Array, Z: Array) -> Any:
        """This rank's part of what `scores` tells.

        targets   as of `targets`, on the device     Z   [n_own, columns] float32, scores on the device
        """
        ...

    def scores(self, engine: Engine, data: NodeData, measured: Any) -> SplitScores:
        """How good predictions are, by split. Ranks: all call."""
        ...


class OneClass:
    """One class for each node: the softmax of its scores."""

    kind = "classes"
    told: ClassVar = {"accuracy": "micro_f1", "macro F1": "macro_f1"}
    digits = ".4f"

    def targets(self, group: Group, data: NodeData) -> np.ndarray:
        """[k] int32 classes."""
        return self.encoded(data)

    def encoded(self, data: NodeData) -> np.ndarray:
        """See Goal.encoded."""
        return data.labels.astype(np.int32, copy=False)

    def share(self, group: Group, data: NodeData, split: str, balanced: bool) -> Any:
        """One over the number of nodes, or of those of a class and of the classes that are there."""
        if not balanced:
            return 1 / max(data.counts[split], 1)
        return self.class_shares(group, data, split)[data.labels]  # rows without a label are in no split

    def class_shares(self, group: Group, data: NodeData, split: str) -> np.ndarray:
        """[classes] the weight of a node of each class where every class weighs the same. Ranks: all call."""
        nodes = group.sum_integers(
            np.bincount(data.labels[data.among(getattr(data, split))], minlength=data.classes)
        )
        return np.where(nodes > 0, 1 / (np.maximum(nodes, 1) * np.count_nonzero(nodes)), 0.0)

    def losses(self, device: Any, Z: Array, targets: Array, weight: Array) -> Array:
        """Cross-entropy."""
        return device.softmax_loss(Z, targets, weight)

    def predicted(self, Z: np.ndarray) -> np.ndarray:
        """[k] int32, the class of the largest score."""
        return Z.argmax(axis=1).astype(np.int32)

    def probabilities(self, Z: np.ndarray) -> np.ndarray:
        """Softmax: they add up to one."""
        return softmax(Z)

    def margins(self, Z: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Of two classes, how much the second is more likely."""
        return (Z[:, 1:] - Z[:, :1], labels[:, None] == 1) if Z.shape[1] == 2 else None

    def measure(self, engine: Engine, data: NodeData, targets: Array, Z: Array) -> list[np.ndarray]:
        """`count_classes` of each split."""
        found = data.among(engine.device.get(engine.device.argmax_rows(Z)))
        sets = [data.among(getattr(data, name)) for name in SPLITS]
        return [count_classes(found, data.labels, chosen, Z.shape[1]) for chosen in sets]

    def scores(self, engine: Engine, data: NodeData, measured: list[np.ndarray]) -> dict[str, Scores]:
        """Accuracy and F1."""
        return _counted(engine.group, data, measured, False)


class SeveralClasses:
    """Any number of classes for a node: a sigmoid of each score.

    Loss      the mean over the pairs of a training node and a class of which it is known whether the node has
              the class, y in {0, 1}: L = sum of max(z, 0) - z y + log(1 + exp(-|z|)), over their number m
    Gradient  dL/dz = (sigmoid(z) - y) / m, of other pairs 0: their score has no part in L
    Source    Hu et al. 2020 (OGB): training and evaluation of sets of several tasks
    """

    kind = "labels"
    told: ClassVar = {"micro F1": "micro_f1", "macro F1": "macro_f1"}
    digits = ".4f"

    def targets(self, group: Group, data: NodeData) -> np.ndarray:
        """[k, classes] float32 of 0 and 1, NaN where it is not known."""
        return self.encoded(data)

    def encoded(self, data: NodeData) -> np.ndarray:
        """See Goal.encoded."""
        targets = data.labels.astype(np.float32)
        if data.partly:
            targets[data.labels < 0] = np.nan
        return targets

    def share(self, group: Group, data: NodeData, split: str, balanced: bool) -> Any:
        """One over the number of known entries."""
        if not data.partly:
            return 1 / max(data.counts[split], 1) / data.classes
        known = np.count_nonzero(data.labels[data.among(getattr(data, split))] >= 0)
        return 1 / max(int(group.sum_integers(np.array([known]))[0]), 1)

    def losses(self, device: Any, Z: Array, targets: Array, weight: Array) -> Array:
        """Binary cross-entropies."""
        return device.sigmoid_loss(Z, targets, weight)

    def predicted(self, Z: np.ndarray) -> np.ndarray:
        """[k, classes] uint8, one where the sigmoid is above one half."""
        return (Z > 0).astype(np.uint8)

    def probabilities(self, Z: np.ndarray) -> np.ndarray:
        """A sigmoid of each score."""
        return by_pieces(Z, lambda part: 1 / (1 + exp(np, -part)))

    def margins(self, Z: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The scores."""
        return Z, labels > 0

    def measure(self, engine: Engine, data: NodeData, targets: Array, Z: Array) -> list[np.ndarray]:
        """`count_hits` of each split."""
        counts = [np.zeros((4 + data.partly, Z.shape[1]), dtype=np.int64) for _ in SPLITS]
        sets = [data.among(getattr(data, name)) for name in SPLITS]
        for lo in range(0, len(data.labels), PIECE):  # a piece at a time: no copy of them all is made
            rows = slice(lo, lo + PIECE)
            own = Z[rows] if data.rows is None else Z[engine.device.put(data.rows[rows])]
            predicted, wanted = engine.device.get(own) > 0, data.labels[rows] > 0
            known = data.labels[rows] >= 0 if data.partly else None
            for total, chosen in zip(counts, sets):
                total += count_hits(predicted, wanted, chosen[rows], known)
        return counts

    def scores(self, engine: Engine, data: NodeData, measured: list[np.ndarray]) -> dict[str, Scores]:
        """Accuracy and F1."""
        return _counted(engine.group, data, measured, True)


class Values:
    """Numbers: the squared error of scores against labels, both in the scale of the training nodes.

    Loss      the mean of (z - y)^2 over the pairs of a training node and a column whose number y is known
    Gradient  dL/dz = 2 (z - y) over the number of such pairs, of other pairs 0
    """

    kind = "values"
    told: ClassVar = {"R2": "r2", "root mean squared error": "rmse", "mean absolute error": "mae"}
    digits = ".5g"

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self._spread: dict[str, np.ndarray] = {}
        self._known: dict[str, np.ndarray] = {}  # [columns] of each split, nodes whose number is known
        self._sets: list[Array] = []  # [k, 1] bool on the device, the rows of labels of each split

    def targets(self, group: Group, data: NodeData) -> np.ndarray:
        """[k, columns] float32 labels in the scale of the network, NaN where it is not known."""
        if not self._spread:  # wherever the rows lie it is the same
            self._known = {
                name: known_of(group, data.labels, data.among(getattr(data, name))) for name in SPLITS
            }
            self._spread = {name: self._squares(group, data, name) for name in SPLITS}
        self._sets = [group.device.put(data.among(getattr(data, name)))[:, None] for name in SPLITS]
        return self.encoded(data)

    def encoded(self, data: NodeData) -> np.ndarray:
        """See Goal.encoded."""
        return self.scale.small(data.labels)

    def share(self, group: Group, data: NodeData, split: str, balanced: bool) -> Any:
        """One over the number of known entries."""
        known, nodes = int(self._known[split].sum()), max(data.counts[split], 1)
        return 1 / nodes / data.classes if known == nodes * data.classes else 1 / max(known, 1)

    def losses(self, device: Any, Z: Array, targets: Array, weight: Array) -> Array:
        """Squared errors."""
        return device.squared_loss(Z, targets, weight)

    def predicted(self, Z: np.ndarray) -> np.ndarray:
        """[k, columns] float32 in the units of the labels."""
        return self.scale.large(Z).astype(np.float32)

    def margins(self, Z: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """None: numbers have no kinds."""
        return None

    def measure(self, engine: Engine, data: NodeData, targets: Array, Z: Array) -> Array:
        """[own roots, 6 columns] sums by row blocks of squares and magnitudes of each split's errors."""
        device, xp = engine.device, engine.device.xp
        rows = None if data.rows is None else device.put(data.rows)
        step, parts = max(1, PIECE_NUMBERS // max(len(Z), 1)), []
        for lo in range(0, Z.shape[1], step):  # some columns at a time: no copy of them all is made
            wanted = targets[:, lo : lo + step]
            scores = Z[:, lo : lo + step] if rows is None else Z[:, lo : lo + step][rows]
            error = xp.where(wanted == wanted, scores - wanted, np.float32(0))
            for chosen in self._sets:
                mine = xp.where(chosen, error, np.float32(0))
                for each in (mine * mine, xp.abs(mine)):
                    each = spread_out(xp, each, rows, len(Z))
                    parts.append(device.column_roots(each, engine.starts, engine.spans))
        return xp.concatenate(_by_set(parts, 2 * len(SPLITS)), axis=1)

    def scores(self, engine: Engine, data: NodeData, measured: Array) -> dict[str, ValueScores]:
        """Errors and the share of the spread that predictions explain."""
        group = engine.group
        sums = group.device.get(sum_tree(group, measured, engine.cuts, engine.blocks)).astype(np.float64)
        each = sums.reshape(len(SPLITS), 2, -1)
        return {
            name: ValueScores.of(
                *part, self._spread[name], self.scale.deviation, data.counts[name], self._known[name]
            )
            for name, part in zip(SPLITS, each)
        }

    def _squares(self, group: Group, data: NodeData, name: str) -> np.ndarray:
        """[columns] squared distances of a split's known labels from their mean, summed, in the network's
        scale."""
        chosen = data.among(getattr(data, name))
        small = lambda rows: self.scale.small(rows).astype(np.float64)  # noqa: E731
        count, width = np.maximum(self._known[name], 1), data.classes
        numbers = pieces_of(data.labels, chosen, lambda rows: known_or_zero(small(rows)))
        mean = sum_exactly(group, numbers, width) / count
        away = lambda rows: known_or_zero((small(rows) - mean) ** 2)  # noqa: E731
        return sum_exactly(group, pieces_of(data.labels, chosen, away), width)


def pick_rows(device: Any, Z: Array, rows: np.ndarray) -> np.ndarray:
    """[k, columns] host copy of some rows of device scores, a piece at a time.

    rows   [k] numbers of own rows
    """
    out = np.empty((len(rows), Z.shape[1]), dtype=np.float32)
    for lo in range(0, len(rows), PIECE):
        out[lo : lo + PIECE] = device.get(Z[device.put(rows[lo : lo + PIECE])])
    return out


def spread_out(xp: Any, some: Array, rows: Array | None, n_own: int) -> Array:
    """[n_own, ...] with `some` [k, ...] in rows [k], zero elsewhere; rows None: `some` as it is."""
    if rows is None:
        return some
    out = xp.zeros((n_own, *some.shape[1:]), dtype=some.dtype)
    out[rows] = some
    return out


def with_areas(
    group: Group, goal: Goal, data: NodeData, scores: SplitScores, rows: np.ndarray, Z_rows: np.ndarray,
    splits: tuple[str, ...] = tuple(SPLITS),
) -> SplitScores:  # fmt: skip
    """Scores with areas under ROC curves and average precisions, where the goal has such: means over the
    columns whose known entries are of both kinds, as OGB's evaluator has them.

    rows     [k] own rows of the nodes in the splits     Z_rows [k, columns] their host scores
    splits   those whose areas are asked for
    Ranks    all call (app/gnn/areas.py)
    """
    labels = data.labels[data.places(rows)] if data.classes else None
    found = goal.margins(Z_rows, labels) if data.classes else None
    if found is None or group.max_integer(int(not np.isfinite(Z_rows).all())):
        return scores
    known = labels >= 0 if data.partly else np.ones(found[1].shape, dtype=bool)
    out = dict(scores)
    for name in splits:
        mine = getattr(data, name)[rows]
        keys = keys_of(*(np.ascontiguousarray(each[mine].T) for each in (*found, known)))
        auc, ap = mean_areas(group, keys)
        out[name] = replace(scores[name], auc=auc, ap=ap)
    return out


def softmax(Z: np.ndarray) -> np.ndarray:
    """[k, classes] float32, exp(z) over the sum of its row: the same bits wherever the row lies."""

    def of(part: np.ndarray) -> np.ndarray:
        raised = exp(np, part - part.max(axis=1, keepdims=True))
        total = np.zeros(len(part), dtype=np.float32)
        for column in raised.T:
            total += column
        return raised / total[:, None]

    return by_pieces(Z, of)


def by_pieces(Z: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """[k, columns] float32, made a piece of rows at a time."""
    out = np.empty(Z.shape, dtype=np.float32)
    for lo in range(0, len(Z), PIECE):
        out[lo : lo + PIECE] = of(Z[lo : lo + PIECE])
    return out


def _by_set(parts: list[Array], kinds: int) -> list[Array]:
    """What was made for some columns after the others, kind by kind in each, as all columns of each kind."""
    return [part for kind in range(kinds) for part in parts[kind::kinds]]


def count_rows(data: NodeData, predicted: np.ndarray, columns: int) -> list[np.ndarray]:
    """What `measure` counts of each split, of classes that are on the host.

    predicted   as `predicted` of the goal gives them, [n_own, ...] of own rows     columns   classes
    """
    rows, sets = data.among(predicted), [data.among(getattr(data, name)) for name in SPLITS]
    if rows.ndim == 1:
        return [count_classes(rows, data.labels, chosen, columns) for chosen in sets]
    known = data.labels >= 0 if data.partly else None
    return [count_hits(rows > 0, data.labels > 0, chosen, known) for chosen in sets]


def goal_of(multilabel: bool, scale: Scale | None) -> Goal:
    """What labels are: of several classes, of one, or numbers of a scale."""
    if scale is not None:
        return Values(scale)
    return SeveralClasses() if multilabel else OneClass()


def _counted(group: Group, data: NodeData, measured: list[np.ndarray], multilabel: bool) -> dict[str, Scores]:
    nodes = [int(getattr(data, name).sum()) for name in SPLITS]
    return dict(zip(SPLITS, scores_of(group, measured, nodes, multilabel)))
