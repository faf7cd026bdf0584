"""Training on windows of series: the loop over steps, when it ends, and what it goes on from."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.led import led
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.gnn.forecast.forecaster import Forecaster
from app.gnn.loss import refuse_infinite
from app.gnn.optim import clip_gradient, make_optimiser, optimiser_arrays, rate_of, restore_optimiser
from app.gnn.stopwatch import Took
from app.gnn.training import Fit, Watched, add_decay
from app.rng import stream

Array = Any
FIRST = "input.W"  # the weights that gnn.decayed = "first" means


def order_of(seed: int, epoch: int, windows: int) -> np.ndarray:
    """[windows] int64, the order in which an epoch takes the windows of the training part."""
    return stream(seed, "forecast/windows", epoch).permutation(windows)


def steps_of(batch: int, steps: int, windows: int) -> int:
    """Training steps of an epoch: as many as there are batches of so many windows, at most `steps` unless
    0."""
    batches = -(-windows // batch)
    return min(steps, batches) if steps else batches


@np.errstate(over="ignore", invalid="ignore")  # what leaves the finite numbers is refused with its epoch
def fit_forecaster(
    forecaster: Forecaster,
    record: Callable[[dict[str, float]], None] = lambda row: None,
    check_every: int = 0,
    keeper: Keeper = NOTHING_KEPT,
    alike: Group | None = None,
) -> Fit:
    """Train for gnn.epochs, or until the validation loss has not become less for gnn.patience evaluations.

    record, check_every, keeper, alike   as of gnn/training.py: fit
    Ranks         all call; the result is identical on all
    Raises NumericsError where loss or weights are no longer finite.
    """
    return led(alike, keeper, "training", partial(_epochs, forecaster, record, check_every))


class _Course:
    """Where a training stands: what a checkpoint holds of it."""

    def __init__(self, forecaster: Forecaster, watched: str) -> None:
        self.forecaster, gnn, device = forecaster, forecaster.gnn, forecaster.device
        self.result, self.run = Fit(forecaster.params.host(), watched=watched), Watched()
        self.optimiser = make_optimiser(gnn, forecaster.params.size, device.xp, kernel=device.adam)
        self.epoch, self.done, self.losses, self.took = 1, 0, 0.0, Took()

    def state(self) -> State:
        """All that later steps depend on. Ranks: all call."""
        device, result = self.forecaster.device, self.result
        values = {
            "epoch": self.epoch, "done": self.done, "losses": self.losses, "step": self.optimiser.step,
            "epochs": result.epochs, "best_epoch": result.best_epoch, "records": result.records,
            "best": self.run.best, "waited": self.run.waited, "seconds": self.took(),
        }  # fmt: skip
        arrays = {"params": np.array(device.get(self.forecaster.params.flat))}
        arrays |= optimiser_arrays(self.optimiser, device, "optimiser")
        return State(values, arrays | {f"best/{name}": each for name, each in result.weights.items()})

    def restore(self, state: State) -> None:
        """Go on from what `state` told."""
        values, device, result = state.values, self.forecaster.device, self.result
        self.epoch, self.done, self.losses = values["epoch"], values["done"], values["losses"]
        result.epochs, result.best_epoch = values["epochs"], values["best_epoch"]
        result.records, self.took = values["records"], Took(values["seconds"])
        self.run.best, self.run.waited = values["best"], values["waited"]
        self.forecaster.params.flat[:] = device.put(state.arrays["params"])
        restore_optimiser(self.optimiser, device, "optimiser", values["step"], state.arrays)
        result.weights = {name: state.arrays[f"best/{name}"] for name in result.weights}


def _epochs(
    forecaster: Forecaster, record: Callable[[dict[str, float]], None], check_every: int, keeper: Keeper
) -> Fit:
    """The epochs of `fit_forecaster`, by the ranks of the forecaster. These all call."""
    gnn, case = forecaster.gnn, forecaster.case
    train, val = (forecaster.known_ends(part) for part in ("train", "val"))
    course = _Course(forecaster, "val_loss" if len(val) else "train_loss")
    run, decay = course.run, _decayed(forecaster)
    batches = steps_of(case.batch, case.steps, len(train))
    if (earlier := keeper.recall("fit")) is not None:
        course.restore(earlier)
    elif gnn.epochs and len(val):
        run.rises(-forecaster.loss_of(val))  # of the first weights: what training has to pass
    while course.epoch <= gnn.epochs and not run.over(gnn.patience):
        order = order_of(forecaster.seed, course.epoch, len(train))
        while course.done < batches:
            keeper.at((course.epoch - 1) * batches + course.done, "fit", course.state)
            some = order[course.done * case.batch : (course.done + 1) * case.batch]
            loss = forecaster.learn(train[some])
            refuse_infinite(loss, course.epoch, gnn, course.optimiser.step)
            _step(forecaster, course, decay)
            course.losses += loss
            course.done += 1
        _ended(forecaster, course, record, course.losses / max(batches, 1), val, check_every)
    keeper.ended("fit", course.state)
    _leave(forecaster, course)
    return course.result


def _step(forecaster: Forecaster, course: _Course, decay: list[tuple[slice, float]]) -> None:
    """One step of the optimiser along the gradient."""
    gnn, steps, params = forecaster.gnn, forecaster.steps, forecaster.params
    if gnn.clip:
        clip_gradient(forecaster.device, steps.gradient, gnn.clip)
    add_decay(decay, steps.gradient, params.flat)
    course.optimiser.rate = rate_of(gnn, course.epoch)
    course.optimiser.update(params.flat, steps.gradient)


def _ended(
    forecaster: Forecaster, course: _Course, record: Callable[[dict[str, float]], None], loss: float,
    val: np.ndarray, check_every: int,
) -> None:  # fmt: skip
    """After an epoch: what it has come to, where that is asked. Ranks: all call."""
    gnn, epoch, result = forecaster.gnn, course.epoch, course.result
    course.epoch, course.done, course.losses, result.epochs = epoch + 1, 0, 0.0, epoch
    if check_every and epoch % check_every == 0:
        check_replicas(forecaster.group, forecaster.params.host(), f"the weights after epoch {epoch}")
    if epoch % gnn.evaluate_every and epoch != gnn.epochs:
        return
    watched = forecaster.loss_of(val) if len(val) else loss
    row = {"epoch": epoch, "loss": loss, "watched": watched}
    result.records.append(row)
    record(row)
    if course.run.rises(-watched):
        result.best_epoch = epoch
        if gnn.keep == "best":
            result.weights = forecaster.params.host()


def _leave(forecaster: Forecaster, course: _Course) -> None:
    """Make the best weights, or the last ones, those of the forecaster and of the result."""
    gnn, result = forecaster.gnn, course.result
    if gnn.keep == "best" and gnn.epochs:
        forecaster.params.set(result.weights)
    result.weights = forecaster.params.host()
    if course.run.best > -math.inf:
        result.best = 0.0 - course.run.best
    largest = float(np.max([abs(each).max(initial=0) for each in result.weights.values()], initial=0))
    refuse_infinite(largest, result.epochs, gnn, result.epochs, "the largest weight")
    result.seconds = course.took()


def _decayed(forecaster: Forecaster) -> list[tuple[slice, float]]:
    """Where the weights lie that decay, and by what; biases of their own do not."""
    gnn, params = forecaster.gnn, forecaster.params
    names = [name for name in params.shapes if name.endswith(".W") and name not in (FIRST, "head.W")]
    names = [FIRST, *names, "head.W"] if gnn.decayed == "all" else [FIRST]
    return [(params.slices[name], gnn.weight_decay) for name in names if gnn.weight_decay]
