"""Views of a graph: some of its edges and some columns of its features, drawn anew for each epoch.

What a view leaves out is a function of (seed, view, epoch) and of an edge's ends, or a column's number: the
same on any number of ranks, from either end of an edge and in both directions of arcs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.gnn.embed.objectives import Compared, Objective
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.model import Draws, Model
from app.gnn.neighbours import Neighbours
from app.numerics.elementwise import Dropout, kept
from app.rng import key_of

VIEWS = ("first", "second")


class ViewDraws(Draws):
    """Dropout of one epoch within the layers of one view."""

    def __init__(self, case: GnnCase, seed: int, epoch: int, view: str) -> None:
        super().__init__(case, seed, epoch)
        self.view = view

    def _key(self, number: int) -> int:
        return key_of(self.seed, f"embed/{self.view}/dropout/{number}", self.epoch)


class Thinned(Neighbours):
    """The products of a graph's adjacency matrix without the entries of some edges, by the same exchanges.

    Degrees, and the factors of rows that follow from them, are those of the edges that are left.
    """

    def __init__(self, whole: Neighbours, chosen: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """chosen   see RowBlock.of_pairs"""
        self.__dict__ |= whole.__dict__
        self._matrix, self._counts = whole.block.of_pairs(whole.device, chosen, whole.weighted)
        self._scales, self._patterns = {}, {}

    @property
    def _pattern(self) -> object:
        """See Neighbours."""
        return self._matrix

    def counts(self) -> np.ndarray:
        """See Neighbours."""
        return self._counts.astype(np.float64)


@dataclass(frozen=True, eq=False)
class View:
    """What a pass over a view reads.

    draws    dropout within the layers
    columns  [F] float32 on the device, 1 for the columns of features that are read, else 0; None: all are
    sides    the products with A and A^T; None: those of the whole graph
    """

    draws: Draws
    columns: object = None
    sides: tuple[Neighbours, Neighbours] | None = None

    @contextmanager
    def seen(self, engine: Engine, model: Model) -> Iterator[None]:
        """Passes within read the view alone.

        A column of features is left out by zeros in its row of the weights that meet the features: the
        product is that of features without it, be they dense, sparse, in the slow tier or there as A X.
        """
        params, whole = engine.params, (engine.neighbours_of, engine.adjoint)
        met = model.input_parameters() if engine.numeric and self.columns is not None else 0
        held = params.flat[:met].copy()
        engine.neighbours_of, engine.adjoint = self.sides or whole
        if met:
            for name in model.blocks[0].meets_input:
                params[name][...] *= self.columns[:, None]
        yield
        params.flat[:met] = held
        engine.neighbours_of, engine.adjoint = whole

    def mask_gradient(self, engine: Engine, model: Model) -> None:
        """Of the weights that meet features, the gradient by those of columns that are not read is zero."""
        if self.columns is None:
            return
        for name in model.blocks[0].meets_input:
            gradient = engine.gradient[engine.params.slices[name]].reshape(engine.params.shapes[name])
            gradient *= self.columns[:, None]


def draw_view(
    engine: Engine, case: GnnCase, embed: EmbedCase, seed: int, epoch: int, view: str, width: int
) -> View:
    """A view of an epoch; width: columns of the features."""
    draws, columns, sides = ViewDraws(case, seed, epoch, view), None, None
    if embed.feature_drop:
        key = key_of(seed, f"embed/{view}/columns", epoch)
        flags = kept_of(Dropout(key, embed.feature_drop), np.zeros(1), np.arange(width))
        columns = engine.device.put(flags.astype(np.float32))
    if embed.edge_drop:
        drop = Dropout(key_of(seed, f"embed/{view}/edges", epoch), embed.edge_drop)
        chosen = lambda rows, columns: kept_of(drop, np.minimum(rows, columns), np.maximum(rows, columns))  # noqa: E731
        forward = Thinned(engine.neighbours_of, chosen)
        both_are_one = engine.adjoint is engine.neighbours_of
        sides = forward, forward if both_are_one else Thinned(engine.adjoint, chosen)
    return View(draws, columns, sides)


def kept_of(drop: Dropout, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[k] bool on the host, which pairs of numbers a draw keeps."""
    with np.errstate(over="ignore"):
        return kept(np, drop, first.astype(np.uint64), second.astype(np.uint64))


def epoch_of_views(
    engine: Engine, models: list[Model], X: Features, views: list[View], objective: Objective
) -> Compared | None:
    """The loss of two views, its gradient in the engine. Ranks: all call.

    models   one for each view, with the same weights: what its layers keep for their backward pass is its own
    """
    both = list(zip(models, views))
    with engine.program("epoch"):
        rows = []
        for model, view in both:
            with view.seen(engine, model):
                rows.append(model.forward(engine, X, view.draws))
        found, gradients = objective.learn(engine, rows)
        for number, ((model, view), D) in enumerate(zip(both, gradients)):
            held = engine.gradient.copy() if engine.numeric and number else None
            X.begin(view.draws.of_input(engine))
            with view.seen(engine, model):
                model.backward(engine, D)
            engine.reduce_gradients()
            add = partial(_add_view, engine, model, view, held)
            engine.apply("reduce", "both views", [], [], add)
    return found


def _add_view(engine: Engine, model: Model, view: View, held: Any) -> None:
    """The gradient of a view, with that of the views before it; held: theirs, or None."""
    view.mask_gradient(engine, model)
    if held is not None:
        engine.gradient += held
