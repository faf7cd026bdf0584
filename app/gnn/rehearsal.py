"""What an epoch of a model will do, from its sizes alone: the layers run without any numbers."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from app.config import GnnCase
from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, SparseFeatures
from app.gnn.model import Draws, Model
from app.gnn.parameters import Parameters


class SparseWidth(SparseFeatures):
    """Sparse features of which only the number of columns is known."""

    def __init__(self, width: int) -> None:
        self.width, self.stored = width, 1

    def begin(self, drop: Any) -> None:
        """Nothing to drop from."""


class DenseWidth(DenseFeatures):
    """Dense features of which only the number of columns is known."""

    def __init__(self, width: int) -> None:
        self.width, self.stored, self.products = width, width, {}

    def begin(self, drop: Any) -> None:
        """Nothing to drop from."""


def rehearse(device: Any, case: GnnCase, n_own: int, features: int, dense: bool, classes: int) -> Engine:
    """An engine that has recorded a training epoch of a rank's n_own rows; it has no buffers and no graph."""
    model = Model(case, features, classes)
    blocks = np.zeros(2, dtype=np.int64)
    block = SimpleNamespace(n_own=n_own, lo=0, block_starts=blocks)
    group = SimpleNamespace(device=device, rank=0)
    rows = SimpleNamespace(cuts=np.array([0, 1]), starts=blocks)
    direct = 0 if dense else model.input_parameters()
    params = Parameters(device, model.shapes())
    engine = Engine(SimpleNamespace(group=group, block=block), rows, params, direct)
    X = DenseWidth(features) if dense else SparseWidth(features)
    with engine.dry(), engine.program("epoch"):
        Z = model.forward(engine, X, Draws(case, 0, 0))
        engine.apply("loss", "loss", [Z], [Z], lambda: None)
        model.backward(engine, Z)
        engine.reduce_gradients()
    return engine


def memory_lines(engine: Engine, limit: int) -> list[str]:
    """The memory of a recorded epoch, and the plan of its moves under a limit in bytes (0: none)."""
    wanted = 4 * engine.n_own * engine.plan.columns
    lines = [
        f"{len(engine.plan.widths)} buffers of {engine.plan.columns} columns: {wanted / 1e6:.1f} MB a rank"
    ]
    if 0 < limit < wanted:
        lines += engine.plans(limit)["epoch"].lines()
    return lines
