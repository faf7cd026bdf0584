"""The score of validation nodes that decides which weights are best and when training ends (gnn.watch)."""

import numpy as np

from app.case.gnn import GnnCase
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.metrics import SplitScores

AREAS = ("auc", "ap")
FALLING = ("loss", "rmse", "mae", "crps")  # less is better
TRAINING_LOSS = "train_loss"
WORDS = {
    "accuracy": "accuracy", "micro_f1": "micro F1", "macro_f1": "macro F1",
    "auc": "area under the ROC curve", "ap": "average precision", "loss": "loss",
    "recall": "recall", "precision": "precision", "ndcg": "NDCG",
    "r2": "R2", "rmse": "root mean squared error", "mae": "mean absolute error",
    "mrr": "mean reciprocal rank", "crps": "continuous ranked probability score",
}  # fmt: skip


def watched_score(case: GnnCase, has_val: bool) -> str:
    """The name of the score, "val_" and what it is; without validation nodes that of the training loss."""
    if not has_val:
        return TRAINING_LOSS
    if case.watch != "auto":
        return f"val_{case.watch}"
    if case.level == "link":
        return "val_auc"
    if case.goal == "values":
        return "val_loss"
    return "val_macro_f1" if case.class_weights == "balanced" else "val_micro_f1"


def value_of(name: str, scores: SplitScores, loss: float) -> float | None:
    """A watched score; None where the scores of nodes were not finite. loss: of the training nodes."""
    found = loss if name == TRAINING_LOSS else getattr(scores["val"], name.removeprefix("val_"))
    return found if found == found else None


def worth(name: str, value: float | None) -> float:
    """How good a watched score is: the more the better, NaN of none."""
    if value is None:
        return float("nan")
    return -value if name.partition("_")[2] in FALLING else value


def refuse_watch(classifier: Classifier) -> None:
    """Refuse a score that these nodes do not have. Ranks: all call. Raises CaseError."""
    case, data = classifier.case, classifier.about
    watch, what = case.watch, case.level
    if watch == "auto" or not case.epochs:
        return
    if not data.counts["val"]:
        raise CaseError(f"gnn.watch: {watch} is of validation {what}s; there are none; auto would be right")
    if watch not in AREAS or case.level == "link":
        return
    if classifier.goal.kind == "classes" and classifier.classes != 2:
        right = f"of two classes or of several labels of each {what}, not of {classifier.classes} classes"
        raise CaseError(f"gnn.watch: {watch} is {right}; macro_f1 would be right")
    labels = data.labels[data.among(data.val)]
    labels = labels[:, None] if labels.ndim == 1 else labels
    kinds = np.stack([(labels > 0).sum(axis=0), (labels == 0).sum(axis=0)])
    if not (classifier.group.sum_integers(kinds.reshape(-1)).reshape(2, -1) > 0).all(axis=0).any():
        found = f"found no class that some validation {what}s have and others have not"
        raise CaseError(f"gnn.watch: {watch}: {found}; auto would be right")
