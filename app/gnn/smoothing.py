"""Correct and Smooth: a network's class probabilities, improved by the labels of training nodes nearby.

Source   Huang, He, Singh, Lim, Benson: Combining label propagation and simple models out-performs graph
         neural networks, ICLR 2021 (arXiv 2010.13993), sections 2.2 and 2.3
Departs  1. S is the matrix that the network's layers hear, of a directed graph not made symmetric.
         2. Corrections are added to training nodes too, as the authors' program does; smoothing gives these
            their labels anyway.
         3. A propagated error of less than a thousandth of the mean is not made larger (their program).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from app.case.smooth import OF_SCALE, READ, SmoothCase
from app.comm.exact import sum_exactly
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.goals import by_pieces
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import Scores, SplitScores
from app.gnn.plain import one_hot, row_sums
from app.gnn.propagation import propagate, propagate_fixed
from app.graphs.nodes.data import NodeData

ALPHAS = (0.5, 0.8, 0.95)  # that "auto" tries in either step
TRIED = len(ALPHAS) * (len(ALPHAS) + 2)  # steps that it makes: corrections, and smoothings after each or none
LARGEST = 1000.0  # times: beyond, a node's propagated error is as good as none
NOBODY = Scores(float("nan"), float("nan"), float("nan"), 0)


@dataclass(frozen=True)
class Smoothed:
    """What Correct and Smooth makes of a network's probabilities.

    rows     [n_own, classes] float32, by whose largest column a class is predicted
    told     the settings that made them, in words of the table [smooth]
    scores   by split, as those of the network; none of validation nodes whose labels were given
    """

    rows: np.ndarray
    told: dict[str, Any]
    scores: SplitScores


def check_smoothing(case: SmoothCase, kind: str, data: NodeData) -> None:
    """Refuse data that Correct and Smooth has nothing to say of. Raises CaseError.

    kind   what scores are of (Goal.kind)
    """
    if case.method == "none":
        return
    if kind != "classes":
        said = "the labels are several a node" if kind == "labels" else "the labels are numbers"
        raise CaseError(f'smooth.method: is of one class a node, {said}; "none" would be right')
    if not data.classes or not data.counts["train"]:
        raise CaseError("smooth.method: needs labels of training nodes: set graph.labels and graph.splits")
    val = data.counts["val"]
    if case.method == "auto" and not val:
        raise CaseError('smooth.method: "auto" goes by validation nodes, of which there are none')
    if case.validation_labels and not val:
        raise CaseError("smooth.validation_labels: there are no validation nodes; leave it out")


def smooth(classifier: Classifier, case: SmoothCase, P_own: np.ndarray | None = None) -> Smoothed:
    """Correct and smooth the probabilities of a trained network, as the table [smooth] says.

    P_own    [n_own, classes] float32, those of several networks in place of the classifier's
    Ranks    all call; the same bits on any number of them
    Raises   Diverged where scores of the network are not finite
    """
    if P_own is None:
        Z_own = classifier.scores_own()
        refuse_infinite_rows(classifier.group, Z_own[: classifier.block.n_real])
        P_own = classifier.goal.probabilities(Z_own)
    if case.method == "auto":
        case = _best(classifier, case, P_own)
    G_own = _corrected(classifier, case, P_own)
    rows = _smoothed(classifier, case, G_own)
    scores = classifier.evaluate_rows(rows)
    if case.validation_labels and case.method in ("both", "smooth"):
        scores["val"] = NOBODY
    return Smoothed(rows, _told(case), scores)


def probabilities_of(rows: np.ndarray) -> np.ndarray:
    """[k, classes] float32 that add up to one, of smoothed rows; of rows without any all classes alike."""

    def of(part: np.ndarray) -> np.ndarray:
        inside = np.clip(part, 0, 1)
        total = row_sums(inside)[:, None]
        none = np.float32(1 / part.shape[1])
        return np.where(total > 0, inside / np.where(total > 0, total, np.float32(1)), none)

    return by_pieces(rows, of)


# ---- the two steps ----------------------------------------------------------------------------------------


def _corrected(classifier: Classifier, case: SmoothCase, P_own: np.ndarray) -> np.ndarray:
    """[n_own, classes] the probabilities, from which the errors that nearby training nodes have are taken.

    Forward    E = Y - P on training nodes, 0 elsewhere          (eq. 1)
               E^ by E^ <- alpha S E^ + (1 - alpha) E             (eqs. 2, 3), clipped to -1..1
    autoscale  P + E^ sigma / |E^|_1, sigma the mean of |E|_1 over training nodes
    fixed      P + factor E^, where E^ <- D^-1 A E^ but for training nodes, whose errors are held
    Ranks      all call
    """
    if case.method not in ("both", "correct"):
        return P_own
    data = classifier.data
    train = data.train[:, None]
    E_own = np.where(train, one_hot(data.labels, classifier.classes) - P_own, np.float32(0))
    if case.scale == "fixed":
        found = propagate_fixed(classifier, E_own, data.train, case.steps)
        return P_own + np.float32(case.factor) * found
    found = propagate(classifier, E_own, case.correct_alpha, case.steps)
    sigma, norms = _mean_error(classifier, E_own), row_sums(np.abs(found))
    with np.errstate(over="ignore"):  # of errors that are next to none
        times = sigma / np.where(norms > 0, norms, np.float32(1))
    times = np.where((norms > 0) & (times <= LARGEST), times, np.float32(1))
    return P_own + times[:, None] * found


def _mean_error(classifier: Classifier, E_own: np.ndarray) -> np.float32:
    """The mean of |e|_1 over the training nodes of all ranks. Ranks: all call."""
    norms = row_sums(np.abs(E_own[classifier.data.train])).astype(np.float64)[:, None]
    total = sum_exactly(classifier.group, lambda: [norms], 1)[0]
    return np.float32(total / classifier.data.counts["train"])


def _smoothed(classifier: Classifier, case: SmoothCase, G_own: np.ndarray) -> np.ndarray:
    """[n_own, classes] H of H <- alpha S H + (1 - alpha) G, clipped to 0..1, where G has the labels of
    training nodes (eq. 5), and of validation nodes where that is asked for. Ranks: all call."""
    if case.method not in ("both", "smooth"):
        return G_own
    data = classifier.data
    given = data.train | data.val if case.validation_labels else data.train
    H_own = np.where(given[:, None], one_hot(data.labels, classifier.classes), G_own)
    return propagate(classifier, H_own, case.smooth_alpha, case.steps, 0.0, 1.0)


# ---- settings by validation score -------------------------------------------------------------------------


def _best(classifier: Classifier, case: SmoothCase, P_own: np.ndarray) -> SmoothCase:
    """Of the settings that "auto" tries those of the best validation score, the first of equal ones; no
    validation label is given meanwhile. Ranks: all call; the same on all."""
    measure = "macro_f1" if classifier.case.class_weights == "balanced" else "micro_f1"
    best, found = -1.0, case
    for corrected in _corrections(case):
        G_own = _corrected(classifier, corrected, P_own)
        for one in _smoothings(corrected):
            score = getattr(classifier.evaluate_rows(_smoothed(classifier, one, G_own))["val"], measure)
            if score > best:
                best, found = score, one
    return replace(found, validation_labels=case.validation_labels)


def _corrections(case: SmoothCase) -> Iterator[SmoothCase]:
    """No first step, and those of some alphas; of scale "fixed", which has none, the one."""
    case = replace(case, method="none", validation_labels=False)
    yield case
    alphas = ALPHAS if case.scale == "autoscale" else (case.correct_alpha,)
    yield from (replace(case, method="correct", correct_alpha=alpha) for alpha in alphas)


def _smoothings(case: SmoothCase) -> Iterator[SmoothCase]:
    """After a first step, or none, no second one, and those of some alphas."""
    yield case
    method = "both" if case.method == "correct" else "smooth"
    yield from (replace(case, method=method, smooth_alpha=alpha) for alpha in ALPHAS)


def _told(case: SmoothCase) -> dict[str, Any]:
    """The keys that were read, of either scale its own."""
    scale = case.scale if case.method in ("both", "correct") else ""
    read = [key for key in READ[case.method] if OF_SCALE.get(key, scale) == scale]
    return {"method": case.method, **{key: getattr(case, key) for key in read}}
