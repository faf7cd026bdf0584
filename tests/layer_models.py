"""Models on small graphs for tests of layers: an engine made ready, one epoch, and the same in dense float64."""

import numpy as np
import scipy.sparse as sp
from helpers import dense, make_block

from app.config import GnnCase
from app.gnn.engine import NORM_EPSILON, Engine
from app.gnn.features import make_features
from app.gnn.model import Draws, Model, layer_specs
from app.gnn.neighbours import Neighbours
from app.gnn.parameters import Parameters

SEED = 7


def own_rows(block, values, fill=0):
    """This rank's padded rows of a whole host array."""
    out = np.full((block.n_own, *values.shape[1:]), fill, dtype=values.dtype)
    out[: block.n_real] = values[block.lo : block.lo + block.n_real]
    return out


def drawn(shapes, seed=SEED):
    """Values for all parameters, none of them at a special point."""
    draws = np.random.default_rng(seed)
    return {name: draws.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


class Trial:
    """A model of a case on one graph with features X [n, f], labels [n] (-1: none), softmax cross-entropy."""

    def __init__(self, group, graph, X, labels, case, exchange="auto", sparse=False, values=None):
        self.group, self.device, self.case = group, group.device, case
        self.block = make_block(group, graph, exchange)
        self.labels, self.classes = labels, int(labels.max()) + 1
        X_own = own_rows(self.block, X.astype(np.float32))
        self.features = make_features(group, sp.csr_array(X_own) if sparse else X_own, self.block.own_counts)
        self.model = Model(case, X.shape[1], self.classes)
        params = Parameters(self.device, self.model.shapes())
        self.values = values or drawn(params.shapes)
        params.set(self.values)
        direct = self.model.input_parameters() if self.features.whole_gradient else 0
        rows = self.block.rows
        self.engine = Engine(Neighbours(group, self.block, case.edge_weights), rows, params, direct)
        put = self.device.put
        counted = (labels >= 0).astype(np.float32) / max((labels >= 0).sum(), 1)
        self._targets = (
            put(own_rows(self.block, labels.astype(np.int32), -1)),
            put(own_rows(self.block, counted)),
        )
        with self.engine.dry():
            self.epoch(1)
            self.scores()
        self.engine.allocate()

    def epoch(self, number):
        """The gradient of all parameters [size], on the host."""
        engine = self.engine
        with engine.program("epoch"):
            Z = self.model.forward(engine, self.features, Draws(self.case, SEED, number))
            loss = lambda: self.device.softmax_loss(Z.array, *self._targets)  # noqa: E731
            engine.apply("loss", "loss", [Z], [Z], loss)
            self.model.backward(engine, Z)
            engine.reduce_gradients()
        return np.array(self.device.get(engine.gradient)) if engine.numeric else None

    def scores(self):
        """[n_own, classes] of own rows on the host, nothing dropped."""
        engine = self.engine
        with engine.program("evaluation"):
            Z = self.model.forward(engine, self.features, None)
            found = engine.apply("loss", "scores", [Z], [], lambda: np.array(self.device.get(Z.array)))
            engine.free(Z)
        return found


# ---- the same in float64, written down from the definitions ------------------------------------------------


def reference_scores(graph, X, case, classes, W):
    """Scores [n, classes] with dense matrices."""
    A, _ = dense(graph)
    H = X.astype(float)
    for number, spec in enumerate(layer_specs(case, classes), start=1):
        w = {name.partition(".")[2]: W[name] for name in W if name.startswith(f"layer{number}.")}
        U = CONVOLUTIONS[spec.kind](A, H, w, case, spec) + w.get("bias", 0)
        if spec.residual:
            U = U + (H @ w["residual"] if "residual" in w else H)
        if spec.layer_norm:
            U = U - U.mean(1, keepdims=True)
            U = U / np.sqrt((U * U).mean(1, keepdims=True) + NORM_EPSILON) * w["gamma"] + w["beta"]
        H = U if spec.linear else np.maximum(U, 0)
    return H


def reference_loss(graph, X, labels, case, W):
    """Mean cross-entropy over the labelled nodes."""
    Z = reference_scores(graph, X, case, int(labels.max()) + 1, W)
    Z = Z - Z.max(1, keepdims=True)
    terms = np.log(np.exp(Z).sum(1)) - Z[np.arange(len(Z)), labels]
    return terms[labels >= 0].mean()


def differences(graph, X, labels, case, values, step=1e-6):
    """Central differences of reference_loss by every parameter, by name."""
    W = {name: array.astype(float) for name, array in values.items()}
    found = {}
    for name, array in W.items():
        found[name] = np.empty_like(array)
        for at in np.ndindex(array.shape):
            held = array[at]
            array[at] = held + step
            up = reference_loss(graph, X, labels, case, W)
            array[at] = held - step
            found[name][at] = (up - reference_loss(graph, X, labels, case, W)) / (2 * step)
            array[at] = held
    return found


def _gcn(A, H, w, case, spec):
    B = A + np.eye(len(A))
    d = B.sum(1)
    P = B / np.sqrt(d[:, None] * d) if case.normalisation == "symmetric" else B / d[:, None]
    return P @ H @ w["W"]


def _mean(own, mean):
    def convolution(A, H, w, case, spec):
        d = A.sum(1)
        return H @ w[own] + (A @ H) / np.where(d > 0, d, 1)[:, None] @ w[mean]

    return convolution


def _gin(A, H, w, case, spec):
    Y = (1 + w["eps"]) * H + A @ H
    return np.maximum(Y @ w["W1"] + w.get("hidden_bias", 0), 0) @ w["W2"]


CONVOLUTIONS = {
    "gcn": _gcn,
    "gin": _gin,
    "sage": _mean("W_self", "W_neigh"),
    "commnet": _mean("W_H", "W_C"),
}


def case_of(kind, options="", widths=(7, 4, 6), **keys):
    """A case of inner layers of some widths, all with the same options, and a last one; nothing is dropped."""
    defaults = {"dropout": 0.0, "input_dropout": 0.0}
    layers = [f"{kind} {width} {options}".strip() for width in widths] + [kind]
    return GnnCase(layers=layers, **{**defaults, **keys})
