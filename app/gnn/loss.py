"""Losses, each with its gradient."""

import math
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.errors import Diverged

Array = Any


def td_loss(q: np.ndarray, target: np.ndarray, kind: str, whole: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses of temporal-difference errors, and the gradient of their mean by q (Mnih et al. 2015, eq. 2).

    q, target   [b] float32 host arrays, the same on all ranks
    kind        "squared": e^2     "huber": e^2/2 within 1, |e| - 1/2 beyond
    whole       transitions the mean is over, of which these b may be a part
    returns     [b] losses, and d mean / dq [b]
    """
    error = q - target
    count = np.float32(whole)
    if kind == "squared":
        return error * error, (2 / count) * error
    inside = np.abs(error) <= 1
    losses = np.where(inside, 0.5 * error * error, np.abs(error) - 0.5)
    return losses, np.clip(error, -1, 1) / count


SMALLER = "features and edge weights of smaller magnitude would be right"


def refuse_infinite(
    value: float, epoch: int, case: GnnCase | RgcnCase, steps: int, what: str = "the loss"
) -> None:
    """Stop a training that has left the finite numbers. Raises Diverged: on all ranks, as they agree.

    value   of an epoch     case   has the learning rate     steps   that the weights had made by then
    """
    if math.isfinite(value):
        return
    if not steps:  # it is what the network reads that makes them so
        raise Diverged(f"training: {what} before the first step is {value}; {SMALLER}")
    right = f"a learning_rate below {case.learning_rate:g}, or a smaller weight_decay, would be right"
    table = "rgcn" if isinstance(case, RgcnCase) else "gnn"
    raise Diverged(f"training: {what} after epoch {epoch} is {value}; {right} in [{table}]")


def refuse_infinite_rows(group: Group, rows: np.ndarray, what: str = "nodes") -> None:
    """Refuse scores of nodes [k, columns] that are no numbers any more: they say nothing of these nodes.

    Ranks   all call. Raises Diverged on all
    """
    wrong = int(group.sum_integers(np.array([np.count_nonzero(~np.isfinite(rows).all(axis=1))]))[0])
    if wrong:
        raise Diverged(f"the scores of {wrong} {what} are not finite; {SMALLER}")
