"""Cross-validation from Python: what `classify(..., folds=k)` returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.guard import digest_text
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.graphs.nodes.data import NodeData, no_labels
from app.memory.tiers import TierBudget
from app.partition.load import Loaded
from app.tasks.context import Context
from app.tasks.folds import draw_folds, lacking, run_fold, split_by_fold, summary


@dataclass(frozen=True)
class CrossValidation:
    """What the networks say that were trained without a fold, of its nodes or graphs.

    folds       a row for each fold: nodes by split, epochs, scores of the weights that were kept
    summary     means and sample standard deviations over the folds, by name ("test_mean", "test_std",
                "auc_mean", ...); "best_mean_epoch" and "test_at_best_mean_epoch", which is optimistic: the
                test folds chose the epoch
    score       the words for "train", "val" and "test" in both: accuracy, micro F1 or R2
    predicted   as that of Classification, of each node by the network that tested it; nodes without a label
                have -1 (or "", NaN, zeros)
    fold        [n] the fold that tested a node, -1: none
    nodes       as those of Classification
    """

    folds: list[dict[str, Any]]
    summary: dict[str, Any]
    score: str
    predicted: np.ndarray
    fold: np.ndarray
    nodes: list[Any]
    digest: str

    def __repr__(self) -> str:
        mean, deviation = self.summary["test_mean"], self.summary["test_std"]
        about = f"{mean:.4f}" + ("" if deviation is None else f" +- {deviation:.4f}")
        return f"CrossValidation({len(self.folds)} folds; test {self.score} {about})"


def refuse_beside(given: dict[str, Any]) -> None:
    """Refuse what folds take the place of. Raises CaseError."""
    for name, value in given.items():
        if value is not None:
            raise CaseError(f"{name}: given beside folds, which are drawn and trained anew; leave it out")


def cross_validate(
    context: Context, loaded: Loaded, data: NodeData, names: list[Any] | None
) -> CrossValidation:
    """Test each of study.folds by a network that is trained on the others. Ranks: all call.

    names   of the nodes or graphs by their numbers, or None
    """
    case, group = context.case, context.group
    study, gnn, members = case.study, case.gnn, loaded.members
    if not data.classes:
        raise CaseError(no_labels(gnn.level))
    for text in lacking(group, data, study.folds):
        context.warn(text)
    fold_own = draw_folds(group, data, loaded, case.seed, study.folds)
    block = context.rows(loaded, gnn.hidden if data.edges is None else 0)

    def make(gnn: GnnCase, data: NodeData, seed: int) -> Classifier:
        return Classifier(group, gnn, block, data, seed, budget=TierBudget.of(case.memory), members=members)

    runs, held_back = [], 2 if study.fold_validation == "next" else 1
    for fold in range(study.folds):
        own = split_by_fold(group, data, fold_own, fold, held_back)
        runs.append(run_fold(context, gnn, own, case.seed, make, predict=True))
    predicted = np.full_like(runs[0].predicted, 0 if data.multilabel else np.nan if data.values else -1)
    for fold, run in enumerate(runs):
        predicted[fold_own == fold] = run.predicted[fold_own == fold]

    def whole(own: np.ndarray) -> np.ndarray:
        return _by_node(context, loaded, own)

    rows, said = [run.row for run in runs], whole(predicted)
    return CrossValidation(
        rows, summary(rows, [run.curve for run in runs]), rows[0]["score"], _called(data, said),
        whole(fold_own), list(range(len(said))) if names is None else names,
        digest_text({str(fold): run.weights for fold, run in enumerate(runs)}),
    )  # fmt: skip


def _by_node(context: Context, loaded: Loaded, own: np.ndarray) -> np.ndarray:
    """Rows of all nodes or graphs in their order from those of ranks [n_own, ...]. Ranks: all call."""
    group, rows = context.group, loaded.rows
    lo, hi = rows.range_of(group.rank)
    found = group.gather_host(np.ascontiguousarray(own[: hi - lo]), rows.row_counts())
    if loaded.order_all is not None:
        found[loaded.order_all] = found.copy()
    return found if loaded.members is None else found[loaded.members.own_rows]


def _called(data: NodeData, rows: np.ndarray) -> np.ndarray:
    """Classes, by name where they have names; values of one column [n]."""
    if data.values:
        return rows[:, 0] if rows.shape[1] == 1 else rows
    if data.multilabel:
        return rows
    return np.where(rows < 0, "" if data.class_names else -1, data.called(rows))
