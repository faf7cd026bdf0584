"""Cross-validation from Python: what `classify(..., folds=k)`, `classify_edges` and `find_links` return."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.comm.guard import digest_text
from app.errors import CaseError
from app.graphs.nodes.data import NodeData, no_labels
from app.partition.loaded import Loaded
from app.tasks.context import Context
from app.tasks.folds import FoldRun, columns_of, mean_lost, run_fold, summary, trained
from app.tasks.levels.examples import Examples
from app.tasks.studies.gnn_subjects import subject_of


@dataclass(frozen=True)
class CrossValidation:
    """What the networks say that were trained without a fold, of its nodes, graphs or edges.

    folds       a row for each fold: nodes (or edges) by split, epochs, scores of the weights that were kept
    summary     means and sample standard deviations over the folds, by name ("test_mean", "test_std",
                "auc_mean", ...); "best_mean_epoch" and "test_at_best_mean_epoch", which is optimistic: the
                test folds chose the epoch
    score       the words for "train", "val" and "test" in both: accuracy, micro F1, R2 or, of `find_links`,
                area under the ROC curve
    predicted   as that of Classification, of each node by the network that tested it; nodes without a label
                have -1 (or "", NaN, zeros)
    fold        [n] the fold that tested a node, -1: none
    nodes       as those of Classification
    edges       where edges are tested: pairs of nodes, which `predicted` and `fold` have rows for; of
                `find_links` all edges, and how likely each is by the network that has not seen it
    importance  with "output.importance" of the settings, a row for each feature: means over the folds that
                have left it out
    """

    folds: list[dict[str, Any]]
    summary: dict[str, Any]
    score: str
    predicted: np.ndarray
    fold: np.ndarray
    nodes: list[Any]
    digest: str
    edges: list[tuple[Any, Any]] = field(default_factory=list)
    importance: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        mean, deviation = self.summary["test_mean"], self.summary["test_std"]
        about = "-" if mean is None else f"{mean:.4f}"
        about += "" if deviation is None else f" +- {deviation:.4f}"
        return f"CrossValidation({len(self.folds)} folds; test {self.score} {about})"


def refuse_beside(given: dict[str, Any]) -> None:
    """Refuse what folds take the place of. Raises CaseError."""
    for name, value in given.items():
        if value is not None:
            raise CaseError(f"{name}: given beside folds, which are drawn and trained anew; leave it out")


def run_folds(context: Context, examples: Examples) -> tuple[Any, list[tuple[Examples, FoldRun]]]:
    """Test each of study.folds by a network that is trained on the others. Ranks: all call.

    returns   what the examples know folds by, and by fold its examples and its training
    """
    study, gnn, seed = context.case.study, context.case.gnn, context.case.seed
    if gnn.level != "link" and not examples.about.classes:
        raise CaseError(no_labels(gnn.level))
    subject = subject_of(context, examples, gnn, [seed], splits=False)
    for text in examples.lacking_folds(context.group, study.folds):
        context.warn(text)
    drawn, held_back = examples.folds(context, seed, study.folds), 2 if study.fold_validation == "next" else 1
    parts = [examples.of_fold(context, drawn, fold, held_back) for fold in range(study.folds)]

    def train(fold: int) -> FoldRun:
        classifier = subject.of(parts[fold]).classifier(gnn, seed)
        return run_fold(context, parts[fold], classifier, predict=True)

    return drawn, list(zip(parts, trained(context, train, study.folds)))


def told_of_folds(examples: Examples, runs: list[FoldRun]) -> dict[str, Any]:
    """What a CrossValidation tells of trainings, whatever they are of."""
    rows = [run.row for run in runs]
    return {
        "folds": rows, "summary": summary(rows, [run.curve for run in runs], columns_of(examples)),
        "score": rows[0]["score"], "importance": mean_lost([run.lost for run in runs]),
        "digest": digest_text({str(fold): run.weights for fold, run in enumerate(runs)}),
    }  # fmt: skip


def by_own_fold(about: NodeData, runs: list[FoldRun], fold_own: np.ndarray) -> np.ndarray:
    """What each own row was told by the network that tested it; about: labels of the rows."""
    predicted = np.full_like(runs[0].predicted, 0 if about.multilabel else np.nan if about.values else -1)
    for fold, run in enumerate(runs):
        predicted[fold_own == fold] = run.predicted[fold_own == fold]
    return predicted


def cross_validate(context: Context, examples: Examples, names: list[Any] | None) -> CrossValidation:
    """Folds of nodes, or graphs; names: of these by their numbers, or None. Ranks: all call."""
    fold_own, both = run_folds(context, examples)
    runs = [run for _, run in both]
    data, loaded = examples.data, examples.loaded
    said = _by_node(context, loaded, by_own_fold(data, runs, fold_own))
    return CrossValidation(
        predicted=called_by(data, said), fold=_by_node(context, loaded, fold_own),
        nodes=list(range(len(said))) if names is None else names, **told_of_folds(examples, runs),
    )  # fmt: skip


def _by_node(context: Context, loaded: Loaded, own: np.ndarray) -> np.ndarray:
    """Rows of all nodes or graphs in their order from those of ranks [n_own, ...]. Ranks: all call."""
    group, rows = context.group, loaded.rows
    lo, hi = rows.range_of(group.rank)
    found = group.gather_host(np.ascontiguousarray(own[: hi - lo]), rows.row_counts())
    if loaded.order_all is not None:
        found[loaded.order_all] = found.copy()
    return found if loaded.members is None else found[loaded.members.own_rows]


def called_by(data: NodeData, rows: np.ndarray) -> np.ndarray:
    """Classes, by name where they have names; values of one column [n]."""
    if data.values:
        return rows[:, 0] if rows.shape[1] == 1 else rows
    if data.multilabel:
        return rows
    return np.where(rows < 0, "" if data.class_names else -1, data.called(rows))
