"""What an epoch of a model will do, from its sizes alone: the layers run without any numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.gnn.embed.objectives import Objective
from app.gnn.embed.views import View, epoch_of_views
from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, SparseFeatures
from app.gnn.model import Draws, Model
from app.gnn.parameters import Parameters
from app.gnn.pieces import Cut, PiecedFeatures
from app.gnn.programs import Rows
from app.memory.tiers import TierBudget


class SparseWidth(SparseFeatures):
    """Sparse features of which only the number of columns is known."""

    def __init__(self, width: int, stored: int) -> None:
        """stored   entries of a row, about."""
        self.width, self.stored = width, max(1, stored)

    def begin(self, drop: Any) -> None:
        """Nothing to drop from."""


class DenseWidth(DenseFeatures):
    """Dense features of which only the number of columns is known."""

    def __init__(self, width: int) -> None:
        self.width, self.stored, self.products = width, width, {}

    def begin(self, drop: Any) -> None:
        """Nothing to drop from."""


@dataclass(frozen=True)
class Sizes:
    """What the operations of an epoch on one rank depend on, beside the keys of a case.

    n_own      rows of the rank, those of padding among them
    features   columns of these     dense   they are rows like all others, not entries of a sparse matrix
    classes    columns of the scores
    stored     entries of a row of sparse features, about
    edge_width columns of the features of edges, where layers or a head read them
    ranks      of links.loss = "bpr": columns beside the rows of nodes (gnn/links/ranks.py)
    """

    n_own: int
    features: int
    dense: bool
    classes: int
    stored: int = 1
    edge_width: int = 1
    ranks: int = 0


def rehearse(device: Any, case: GnnCase, sizes: Sizes, cut: Cut | None = None) -> Engine:
    """An engine that has recorded what gnn/training.py does with the rows of a rank; it holds nothing.

    Programs "epoch", "evaluation" and "embedding", as Classifier runs them.
    cut      the pieces of dense features, which are tensors of the programs where they lie in the slow tier
    """
    features, dense, classes, edge_width = sizes.features, sizes.dense, sizes.classes, sizes.edge_width
    model = Model(case, features, classes, edge_width)
    blocks = np.zeros(2, dtype=np.int64)
    block = SimpleNamespace(n_own=sizes.n_own, lo=0, block_starts=blocks)
    group = SimpleNamespace(device=device, rank=0)
    rows = SimpleNamespace(cuts=np.array([0, 1]), starts=blocks)
    direct = 0 if dense else model.input_parameters()
    params = Parameters(device, model.shapes())
    engine = Engine(SimpleNamespace(group=group, block=block), rows, params, direct)
    engine.measures = bool(case.epochs)
    X: Any = DenseWidth(features) if dense else SparseWidth(features, sizes.stored)
    if cut is not None and dense:
        X, engine.pieces = PiecedFeatures(device, cut, features), cut.most
    with engine.dry():
        if case.level == "embed":
            models = [model, Model(case, features, classes, edge_width)]
            views = [View(Draws(case, 0, 0))] * len(models)
            epoch_of_views(engine, models, X, views, Objective(EmbedCase()))
        else:
            _record_epoch(engine, model, X, sizes.ranks)
        _record_reading(engine, "evaluation", "scores", lambda: model.forward(engine, X, None), case)
        _record_reading(engine, "embedding", "embedding", lambda: model.embed(engine, X))
    return engine


def _record_epoch(engine: Engine, model: Model, X: Any, ranks: int) -> None:
    with engine.program("epoch"):
        Z = model.forward(engine, X, Draws(model.case, 0, 0))
        D = _record_loss(engine, model.case, Z, ranks)
        model.backward(engine, D)
        engine.reduce_gradients()


def _record_loss(engine: Engine, case: GnnCase, Z: Rows, ranks: int) -> Rows:
    """The gradient by Z: in its place, or of pairs of nodes, or edges, in new rows (gnn/links/predictor.py,
    gnn/edge_level/classifier.py)."""
    if case.level == "edge":
        D = engine.take("dZ", Z.width)
        engine.apply("loss", "edges", [Z], [D], lambda: None, (Z.width,))
        return D
    if case.level != "link":
        engine.apply("loss", "loss", [Z], [Z], lambda: None)
        return Z
    D = engine.take("dZ", Z.width)
    if not ranks:
        engine.apply("loss", "pairs", [Z], [D], lambda: None, (Z.width, Z.width))
        return D
    width = Z.width + ranks
    beside = [engine.take(name, width) for name in ("ZT", "dZT")]
    engine.apply("loss", "pairs", [Z], [D, *beside], lambda: None, (width, width, Z.width))
    for each in beside:
        engine.free(each)
    return D


def _record_reading(
    engine: Engine, program: str, name: str, forward: Callable[[], Any], case: GnnCase | None = None
) -> None:
    """What is read of the rows that are made; case: of scores, which of edges are made of both ends' rows."""
    with engine.program(program):
        H = forward()
        if case is not None and case.level == "edge":
            engine.apply("loss", "edge scores", [H], [], lambda: None, (H.width,))
        else:
            engine.apply("loss", name, [H], [], lambda: None)
        engine.free(H)


def memory_lines(engine: Engine, limited: Engine | None, budget: TierBudget) -> list[str]:
    """The memory of a recorded epoch, and the plan of its moves where it passes a limit.

    limited   the engine that has recorded what runs then, or None
    """
    wanted = 4 * engine.n_own * engine.plan.columns
    lines = [
        f"{len(engine.plan.widths)} buffers of {engine.plan.columns} columns: {wanted / 1e6:.1f} MB a rank"
    ]
    if limited is not None:
        lines += limited.plans(budget.limit, budget.method)["epoch"].lines()
    return lines
