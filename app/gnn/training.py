"""Full-batch training: the loop over epochs, when it ends, and what it goes on from.

What an epoch is: classifier.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from app.case.gnn import GnnCase
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.led import led
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.loss import refuse_infinite
from app.gnn.metrics import SplitScores
from app.gnn.optim import clip_gradient, make_optimiser, optimiser_arrays, rate_of, restore_optimiser
from app.gnn.parameters import CONSTANTS
from app.gnn.stopwatch import Took
from app.gnn.watch import refuse_watch, value_of, watched_score, worth

Array = Any
FALLS = 0.05  # share of a loss: what is no noise
LEARNED = 0.9  # score of the training nodes above which little is left to learn


@dataclass
class Fit:
    """What training leaves: weights, and how they came about; seconds of all parts of the run.

    best_epoch   after which the weights were best; 0: before the first one
    watched      the name of the score that tells which are best, `best` what it was then
    """

    weights: dict[str, np.ndarray]
    epochs: int = 0
    best_epoch: int = 0
    records: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    watched: str = ""
    best: float | None = None


@np.errstate(over="ignore", invalid="ignore")  # what leaves the finite numbers is refused with its epoch
def fit(
    classifier: Classifier,
    record: Callable[[dict[str, float]], None] = lambda row: None,
    check_every: int = 0,
    after_epoch: Callable[[int], None] = lambda epoch: None,
    keeper: Keeper = NOTHING_KEPT,
    beside: "Resumable | None" = None,
    alike: Group | None = None,
) -> Fit:
    """Train for gnn.epochs, or until gnn.watch has not become better for gnn.patience evaluations.

    record        called with each evaluation
    check_every   epochs between comparisons of the weights over ranks; 0: never
    after_epoch   called with each epoch's number once the weights have changed; may move the rows
    keeper        where training may be stopped, and what it goes on from
    beside        what else is kept in a checkpoint
    alike         ranks that each have such a classifier: the first one trains, the others rest and take what
                  it learned; None: those of the classifier train together
    Ranks         all call; the result is identical on all
    Raises Diverged where loss or weights are no longer finite, CaseError where gnn.watch is a score
    that the nodes do not have.
    """
    refuse_watch(classifier)
    epochs = partial(_epochs, classifier, record, check_every, after_epoch, beside)
    return led(alike, keeper, "training", epochs)


def _epochs(
    classifier: Classifier, record: Callable[[dict[str, float]], None], check_every: int,
    after_epoch: Callable[[int], None], beside: "Resumable | None", keeper: Keeper,
) -> Fit:  # fmt: skip
    """The epochs of `fit`, by the ranks of the classifier. These all call."""
    case, params = classifier.case, classifier.params
    device = classifier.device
    optimiser = make_optimiser(case, params.size, device.xp, kernel=device.adam)
    by_loss = case.keep == "best" and not classifier.data.counts["val"]  # an epoch's is that before its step
    decay = decayed_parts(classifier)
    watch = watched_score(case, bool(classifier.data.counts["val"]))
    result, run, took = Fit(params.host(), watched=watch), Watched(), Took()
    if (earlier := keeper.recall("fit")) is not None:
        _restore(classifier, optimiser, result, run, beside, earlier)
        took = Took(earlier.values["seconds"])
    tell = partial(_state, classifier, optimiser, result, run, beside, took)
    for epoch in range(result.epochs + 1, case.epochs + 1):
        if run.over(case.patience):
            break
        keeper.at(epoch - 1, "fit", tell)
        loss = classifier.epoch(epoch)
        due = not epoch % case.evaluate_every or epoch == case.epochs
        held = params.host() if by_loss and due and -loss > run.best else None
        if case.clip:
            clip_gradient(device, classifier.engine.gradient, case.clip)
        add_decay(decay, classifier.engine.gradient, params.flat)
        optimiser.rate = rate_of(case, epoch)
        optimiser.update(params.flat, classifier.engine.gradient)
        after_epoch(epoch)
        result.epochs = epoch
        refuse_infinite(loss, epoch, case, epoch - 1)
        if check_every and epoch % check_every == 0:
            check_replicas(classifier.group, params.host(), f"the weights after epoch {epoch}")
        if not due:
            continue
        scores = classifier.evaluate(watch.removeprefix("val_"))
        row = _row(epoch, loss, scores, watch)
        result.records.append(row)
        record(row)
        if run.rises(worth(watch, row["watched"])):
            result.best_epoch = epoch - by_loss
            if case.keep == "best":
                result.weights = params.host() if held is None else held
    keeper.ended("fit", tell)
    _leave(classifier, result, run, by_loss)
    result.seconds = took()
    return result


def _leave(classifier: Classifier, result: Fit, run: "Watched", by_loss: bool) -> None:
    """Make the best weights, or the last ones, those of the classifier and the result. Ranks: all call.

    by_loss   training losses decide which are the best: that of the last weights is still to be made
    """
    case, params = classifier.case, classifier.params
    if by_loss and result.epochs and run.rises(-classifier.epoch(result.epochs + 1)):
        result.best_epoch, result.weights = result.epochs, params.host()
    if case.keep == "best" and run.best > -math.inf:
        params.set(result.weights)
    if by_loss and classifier.model.counts_rows:
        classifier.scores_own()  # leaves the statistics of columns of these weights
    result.weights = params.host()
    if run.best > -math.inf:
        result.best = 0.0 - run.best if worth(result.watched, 1.0) < 0 else run.best
    largest = float(np.max([abs(each).max(initial=0) for each in result.weights.values()], initial=0))
    refuse_infinite(largest, result.epochs, case, result.epochs, "the largest weight")


@dataclass
class Watched:
    """The score that decides when training ends: its best so far, and evaluations since."""

    best: float = -math.inf
    waited: int = 0

    def rises(self, score: float) -> bool:
        """Take an evaluation's score; whether it is the best so far."""
        if score > self.best:
            self.best, self.waited = score, 0
            return True
        self.waited += 1
        return False

    def over(self, patience: int) -> bool:
        """Whether it has not risen for so many evaluations (0: for ever)."""
        return bool(patience) and self.waited >= patience


def ended_early(fit: Fit, case: GnnCase) -> str:
    """What to say of a training that gnn.patience ended while it still learned; "" of any other.

    Scores may stand still for long before a network tells the first classes apart, while the loss falls.
    """
    rows = [row for row in fit.records if row["epoch"] >= fit.best_epoch]
    if not (case.patience and rows and fit.epochs < case.epochs):
        return ""
    best, last = rows[0]["loss"], rows[-1]["loss"]
    if last > best - FALLS * abs(best) or rows[-1]["train_score"] > LEARNED:
        return ""
    falls = f"the training loss still fell ({best:.4g} at the best epoch, {last:.4g} at the end)"
    return f"gnn.patience ended the training after epoch {fit.epochs} while {falls}; more may be better"


def add_decay(decay: list[tuple[slice, float]], gradient: Array, flat: Array) -> None:
    """Add to a gradient [size] what weights `flat` [size] decay by, as `decayed_parts` says."""
    for part, share in decay:
        gradient[part] += share * flat[part]


def decayed_parts(classifier: Classifier) -> list[tuple[slice, float]]:
    """Where the weights lie that decay, and times what they are added to their gradient: all that are drawn,
    not biases and what else begins as a constant. Raises CaseError where gnn.weights brought no layers for
    gnn.inner_decay."""
    params, case = classifier.params, classifier.case
    names = [f"{block.name}." for block in classifier.model.blocks]
    if case.inner_decay and len(names) < 3:
        raise CaseError(
            "gnn.inner_decay: is of layers between the first and the last one, and the weights bring none; "
            "leave it out"
        )
    parts = (f"{part}." for part in classifier.model.parts)
    shares = dict.fromkeys(parts, case.weight_decay if case.decayed == "all" else 0.0)
    shares |= {name: case.inner_decay for name in names[1:-1] if case.inner_decay}
    shares[names[0]] = case.weight_decay
    found = [
        (part, shares[f"{name.partition('.')[0]}."])
        for name, part in params.slices.items()
        if name.split(".")[-1] not in CONSTANTS
    ]
    return [(part, share) for part, share in found if share]


def _row(epoch: int, loss: float, scores: SplitScores, watch: str) -> dict[str, float]:
    """One record of training; the score is micro F1, of one label per node the accuracy, of numbers R2.

    watch   the name of the score that is watched
    """
    row: dict[str, float] = {"epoch": epoch, "loss": loss}
    for name, each in scores.items():
        row[f"{name}_score"] = each.score
    return row | {"watched": value_of(watch, scores, loss)}


# ---- stopping and going on --------------------------------------------------------------------------------


class Resumable(Protocol):
    """Something else that a checkpoint of training holds."""

    def state(self) -> State:
        """What there is to keep. Ranks: all call; rank 0's is kept."""
        ...

    def restore(self, state: State) -> None:
        """Go on from what `state` told. Ranks: all call."""
        ...


def _state(
    classifier: Classifier, optimiser: Any, result: Fit, run: Watched, beside: Resumable | None, took: Took
) -> State:
    """All that later epochs depend on, after result.epochs of them. Ranks: all call."""
    device, params = classifier.device, classifier.params
    values = {
        "epochs": result.epochs, "best_epoch": result.best_epoch, "records": result.records,
        "best": run.best, "waited": run.waited, "seconds": took(),
    }  # fmt: skip
    arrays = {"params": np.array(device.get(params.flat))}
    arrays |= optimiser_arrays(optimiser, device, "optimiser")
    arrays |= {f"best/{name}": each for name, each in result.weights.items()}
    if beside is not None:
        more = beside.state()
        values["beside"] = more.values
        arrays |= {f"beside/{name}": each for name, each in more.arrays.items()}
    return State(values, arrays)


def _restore(
    classifier: Classifier, optimiser: Any, result: Fit, run: Watched, beside: Resumable | None, state: State
) -> None:
    """Make a training that has just begun what `_state` told of an earlier one. Ranks: all call."""
    values, device, params = state.values, classifier.device, classifier.params
    result.epochs, result.best_epoch, result.records = (
        values[key] for key in ("epochs", "best_epoch", "records")
    )
    run.best, run.waited = values["best"], values["waited"]
    params.flat[:] = device.put(state.arrays["params"])
    restore_optimiser(optimiser, device, "optimiser", result.epochs, state.arrays)
    result.weights = {name: state.arrays[f"best/{name}"] for name in result.weights}
    if beside is not None and "beside" in values:
        arrays = {
            name.partition("/")[2]: each for name, each in state.arrays.items() if name.startswith("beside/")
        }
        beside.restore(State(values["beside"], arrays))
