"""Optimisers on replicated flat parameter vectors: every rank makes the same update, nothing is sent."""

import math
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.case.rgcn import RgcnCase
from app.native import optim as compiled

Array = Any
CLIP_COLUMNS = 1024  # sums of squares side by side


def rate_of(case: GnnCase | RgcnCase, epoch: int) -> float:
    """The step size of an epoch, from 1 to case.epochs: learning_rate, times a factor of the schedule.

    First `warmup` epochs by which it rises in equal steps; from then on, of the E epochs that are left the
    i-th, from 0: linear 1 - i/E, cosine (1 + cos(pi i/E)) / 2 (Loshchilov and Hutter 2017, eq. 5, one
    period).
    """
    if epoch <= case.warmup:
        return case.learning_rate * epoch / case.warmup
    done = min((epoch - case.warmup - 1) / max(case.epochs - case.warmup, 1), 1.0)
    factors = {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done}
    return case.learning_rate * factors.get(case.schedule, 1.0)


def clip_gradient(device: Any, gradient: Array, most: float) -> None:
    """Scale a gradient [size] in place so that its 2-norm is at most `most` (Pascanu et al. 2013, alg. 1).

    Squares are added in a fixed order, so that the same gradient has the same bits on every rank and device.
    """
    top = float(device.get(device.xp.abs(gradient).max()))
    if not 0 < top < math.inf:
        return
    rows = -(-gradient.shape[0] // CLIP_COLUMNS)
    squares = device.zeros((rows * CLIP_COLUMNS,))
    squares[: gradient.shape[0]] = gradient / np.float32(top)
    squares *= squares
    columns = device.fold(np.array([0, rows]), squares.reshape(rows, CLIP_COLUMNS))
    norm = top * math.sqrt(math.fsum(device.get(columns)[0].tolist()))
    if norm > most:
        gradient *= np.float32(most / norm)


class SGD:
    """Steps against the gradient."""

    def __init__(self, rate: float) -> None:
        self.rate, self.step = rate, 0
        self.moments: dict[str, Array] = {}

    def update(self, flat: Array, gradient: Array) -> None:
        """flat [size] -= rate * gradient [size], in place."""
        self.step += 1
        flat -= self.rate * gradient


def make_optimiser(
    case: GnnCase | RgcnCase,
    size: int,
    xp: Any,
    moments: tuple[Array, Array] | None = None,
    kernel: Any = None,
) -> "SGD | Adam":
    """The optimiser a case names, for `size` parameters; moments and kernel: of Adam, see there."""
    if case.optimiser == "sgd":
        return SGD(case.learning_rate)
    return Adam(size, xp, case.learning_rate, moments=moments, kernel=kernel)


def optimiser_arrays(optimiser: "SGD | Adam", device: Any, name: str) -> dict[str, np.ndarray]:
    """Host copies of what an optimiser keeps beside its step, as NAME.m and so on."""
    return {f"{name}.{key}": np.array(device.get(each)) for key, each in optimiser.moments.items()}


def restore_optimiser(
    optimiser: "SGD | Adam", device: Any, name: str, step: int, arrays: dict[str, np.ndarray]
) -> None:
    """Make an optimiser what optimiser_arrays and its step tell of."""
    optimiser.step = step
    for key, each in optimiser.moments.items():
        each[...] = device.put(arrays[f"{name}.{key}"])


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1): m, v moving averages, bias-corrected step.

    Element-wise operations and square roots only, so equal gradients give equal weights everywhere.
    compiled   False: leave the compiled kernel, which has the same bits, aside
    moments    zeros [size] twice, where m and v are to lie; None: made here
    kernel     one step of a device, which has the same bits (Elementwise.adam), or None
    """

    compiled = True

    def __init__(
        self, size: int, xp: Any, rate: float, beta1: float = 0.9, beta2: float = 0.999,
        epsilon: float = 1e-8, moments: tuple[Array, Array] | None = None, kernel: Any = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.xp, self.rate, self.beta1, self.beta2, self.epsilon = xp, rate, beta1, beta2, epsilon
        self.m, self.v = moments or (xp.zeros(size, dtype=xp.float32), xp.zeros(size, dtype=xp.float32))
        self.step = 0

    @property
    def moments(self) -> dict[str, Array]:
        """What it keeps beside `step`, by name."""
        return {"m": self.m, "v": self.v}

    def update(self, flat: Array, gradient: Array) -> None:
        """flat [size] -= the step for gradient [size], in place."""
        self.step += 1
        correction1 = 1 - self.beta1**self.step
        correction2 = 1 - self.beta2**self.step
        kernel = compiled.adam if self.compiled and compiled.fits(flat, gradient) else self.kernel
        if kernel is not None:
            rest = (1 - self.beta1, self.beta2, 1 - self.beta2, correction2, self.epsilon)
            kernel((self.beta1, *rest, self.rate / correction1), flat, gradient, self.m, self.v)
            return
        self.m *= self.beta1
        self.m += (1 - self.beta1) * gradient
        self.v *= self.beta2
        self.v += (1 - self.beta2) * (gradient * gradient)
        root = self.xp.sqrt(self.v / correction2) + self.epsilon
        flat -= (self.rate / correction1) * self.m / root
