"""Steps: the optimisers of a network's weights, and what a checkpoint holds of them."""

from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.gnn.optim import make_optimiser
from app.gnn.rgcn.model import RGCN
from app.gnn.rgcn.weights import Gradient
from app.memory.slow_rows import SlowRows

Array = Any


class Steps:
    """Optimisers of all weights: each piece of a weight array has one of its own.

    rate   the step size from now on
    """

    def __init__(self, group: Group, case: RgcnCase, net: RGCN) -> None:
        self.group, self.case, self.net = group, case, net
        self.rate = case.learning_rate
        self._of: dict[tuple[str, int | None], Any] = {}
        self._moments: dict[str, tuple[SlowRows, SlowRows]] = {}
        self._before = 0  # steps of an earlier part of the run, and its moments by kind and name
        self._earlier: dict[str, dict[str, np.ndarray]] = {}

    def take(self, gradient: Gradient) -> None:
        """Change some rows of one weight array by their gradient."""
        name, rows, dW = gradient
        shard, device = self.net.weights[name], self.group.device
        W, xp = shard.array[rows], device.xp
        if shard.slow:
            dW, xp = device.get(dW), np
        if self.case.weight_decay and name.startswith("first/"):
            dW = dW + self.case.weight_decay * W
        optimiser = self._optimiser(name, rows, W.size, xp)
        optimiser.rate = self.rate
        optimiser.update(W.reshape(-1), dW.reshape(-1))
        for each in self._moments.get(name, ()):
            each.done(rows)

    def _optimiser(self, name: str, rows: slice, size: int, xp: Any) -> Any:
        """That of some rows; what it keeps of them lies beside weights of the slow tier."""
        key, shard = (name, rows.start), self.net.weights[name]
        if key not in self._of:
            moments = None
            if shard.slow and self.case.optimiser == "adam":
                if name not in self._moments:
                    self._moments[name] = (shard.slow.like(), shard.slow.like())
                m, v = (each.array[rows].reshape(-1) for each in self._moments[name])
                moments = m, v
            kernel = None if shard.slow else self.group.device.adam
            self._of[key] = made = make_optimiser(self.case, size, xp, moments, kernel)
            made.step = self._before
            for kind, earlier in self._earlier.items():
                rest = earlier[name][rows].reshape(-1)
                made.moments[kind][:] = rest if xp is np else self.group.device.put(rest)
        else:
            self._earlier = {}  # a later epoch: every piece has its optimiser
        return self._of[key]

    # ---- stopping and going on ----------------------------------------------------------------------------

    @property
    def taken(self) -> int:
        """Steps that every optimiser has made."""
        return max((each.step for each in self._of.values()), default=self._before)

    @property
    def has_moments(self) -> bool:
        """Whether there is something in the optimisers beside the number of their steps."""
        return self.case.optimiser == "adam" and self.taken > 0

    def moments(self, kind: str) -> "dict[str, Array | SlowRows]":
        """What Adam keeps, "m" or "v", by the names of the weights and with their rows."""
        found: dict[str, Array | SlowRows] = {}
        for name, shard in self.net.weights.items():
            if name in self._moments:
                found[name] = self._moments[name][kind == "v"]
            else:
                found[name] = self._joined(name, kind, shard.array)
        return found

    def _joined(self, name: str, kind: str, like: Array) -> Array:
        """[rows, ...] on the device, from the optimisers of all pieces of a weight array."""
        device = self.group.device
        out = device.put(self._earlier[kind][name]) if self._earlier else device.zeros(like.shape)
        flat, width = out.reshape(-1), like[:1].size
        for (of, start), optimiser in self._of.items():
            if of == name:
                part = optimiser.moments[kind]
                at = (start or 0) * width
                flat[at : at + len(part)] = part
        return out

    def go_on(self, taken: int, moments: dict[str, dict[str, np.ndarray]]) -> None:
        """Begin after `taken` steps with moments by kind and name, as `moments` gave them, on the host."""
        self._before, self._earlier = taken, moments
