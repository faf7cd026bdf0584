"""Models on small graphs, for tests of layers: an engine, one epoch, and the same in dense float64."""

import msgspec
import numpy as np
import scipy.sparse as sp
from helpers import dense, exact_dot, make_block

from app.case.gnn import GnnCase
from app.gnn.engine import NORM_EPSILON, Engine
from app.gnn.features import make_features
from app.gnn.layers.layer import LayerSpec, Settings
from app.gnn.layers.table import make_convolution
from app.gnn.model import Draws, Model, layer_specs
from app.gnn.neighbours import Neighbours, both_ways
from app.gnn.parameters import Parameters
from app.numerics.aggregation import EPSILON

SEED = 7


def own_rows(block, values, fill=0):
    """This rank's padded rows of a whole host array."""
    out = np.full((block.n_own, *values.shape[1:]), fill, dtype=values.dtype)
    out[: block.n_real] = values[block.lo : block.lo + block.n_real]
    return out


def drawn(shapes, seed=SEED):
    """Values for all parameters, none of them at a special point; variances are positive."""
    draws = np.random.default_rng(seed)
    values = {name: draws.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    values |= {name: np.full((1, 1), 1.25, np.float32) for name in values if "mean_log_degree" in name}
    return {name: np.abs(each) + 0.1 if "variance" in name else each for name, each in values.items()}


class Trial:
    """A model of a case on one graph with features X [n, f], labels [n] (-1: none), softmax cross-entropy.

    neighbours   "in", "out": the graph's edges are arcs
    counted      [n] bool, the nodes that batch normalisation is over; None: all
    """

    def __init__(
        self, group, graph, X, labels, case, exchange="auto", sparse=False, values=None, neighbours="both",
        edge_width=1, counted=None,
    ):  # fmt: skip
        self.group, self.device, self.case = group, group.device, case
        self.block = make_block(group, graph, exchange, neighbours=neighbours)
        self.labels, self.classes = labels, int(labels.max()) + 1
        X_own = own_rows(self.block, X.astype(np.float32))
        self.features = make_features(group, sp.csr_array(X_own) if sparse else X_own, self.block.own_counts)
        self.model = Model(case, X.shape[1], self.classes, edge_width)
        params = Parameters(self.device, self.model.shapes())
        self.values = values or drawn(params.shapes)
        params.set(self.values)
        direct = self.model.input_parameters() if self.features.whole_gradient else 0
        rows = self.block.rows
        forward, adjoint = both_ways(group, self.block, case.edge_weights)
        self.engine = Engine(forward, rows, params, direct, adjoint)
        put = self.device.put
        nodes = np.ones(len(labels), dtype=bool) if counted is None else counted
        self.engine.count_rows(own_rows(self.block, nodes))
        counted = ((labels >= 0) / max((labels >= 0).sum(), 1)).astype(np.float32)
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


class Single:
    """One convolution on one graph: Z from H, then the gradients from D = dZ; whole host arrays go in.

    sparse   None: H is the output of another layer; else H are features, dense or sparse
    """

    def __init__(self, group, graph, kind, H, D, values, exchange="auto", sparse=None, **settings):
        self.group, self.device = group, group.device
        self.block = block = make_block(group, graph, exchange)
        self.H, self.D = (own_rows(block, each.astype(np.float32)) for each in (H, D))
        f_in, f_out = H.shape[1], D.shape[1]
        spec = LayerSpec(kind, f_out, heads=settings.pop("heads", 1))
        self.conv = make_convolution("c", spec, f_in, f_out, Settings(**settings))
        params = Parameters(self.device, self.conv.shapes())
        params.set({f"c.{name}": value for name, value in values.items()})
        self.features, direct = None, 0
        if sparse is not None:
            X = sp.csr_array(self.H) if sparse else self.H
            self.features = make_features(group, X, block.own_counts)
            direct = sum(params[name].size for name in self.conv.meets_input) if sparse else 0
        self.engine = Engine(Neighbours(group, block), block.rows, params, direct)
        self.Z = self.dH = self.gradient = None
        with self.engine.dry():
            self._pass()
        self.engine.allocate()
        self._pass()

    def _load(self, name, host):
        rows = self.engine.take(name, host.shape[1])

        def work():
            rows.array[...] = self.device.put(host)

        self.engine.apply("load", name, [], [rows], work)
        return rows

    def _keep(self, rows):
        return self.engine.apply("keep", "", [rows], [], lambda: np.array(self.device.get(rows.array)))

    def _pass(self):
        engine = self.engine
        with engine.program("epoch"):
            H = self.features or self._load("H", self.H)
            Z = self.conv.forward(engine, H)
            scale = self.conv.output_scale(engine, H)
            engine.activate(Z, scale)
            self.Z = self._keep(Z)
            engine.free(Z)
            D = self._load("D", self.D)
            engine.activate(D, scale)
            dH = self.conv.backward(engine, H, D)
            self.dH = None if dH is None else self._keep(dH)
            engine.free(dH, H)
            engine.reduce_gradients()
        if engine.numeric:
            flat = self.device.get(engine.gradient)
            shapes = engine.params.shapes
            self.gradient = {
                name[2:]: np.array(flat[part]).reshape(shapes[name])
                for name, part in engine.params.slices.items()
            }

    def dot(self, X_own, Y_own, unit):
        """<X, Y> over all ranks in units, exactly."""
        return exact_dot(self.group, self.device.put(X_own), self.device.put(Y_own), unit)


# ---- the same in float64, written down from the definitions ------------------------------------------------


def reference_scores(graph, X, case, classes, W):
    """Scores [n, classes] with dense matrices.

    graph   or A [n, n], whose row i has the weights of what node i hears
    """
    A = graph if isinstance(graph, np.ndarray) else dense(graph)[0]
    return reference_layers(A, X.astype(float), case, layer_specs(case, classes), W)[-1]


def reference_layers(A, H, case, specs, W, first=1, H0=None):
    """What layer `first` is given and all layers from there on make of it; H0: what the first layer gives.

    W   by name; of one, of all, or of some of them several values may be given: [several, rows, columns]
    """
    made = [H]
    for number, spec in enumerate(specs[first - 1 :], start=first):
        w = {name.partition(".")[2]: W[name] for name in W if name.startswith(f"layer{number}.")}
        w |= {"H0": H0, "number": number - 1}  # of gcn2: all layers but the first are of its kind
        U = CONVOLUTIONS[spec.kind](A, H, w, case, spec) + w.get("bias", 0)
        if spec.residual:
            U = U + (H @ w["residual"] if "residual" in w else H)
        if spec.layer_norm:
            U = _normalised(U, w["gamma"], w["beta"])
        if spec.batch_norm:
            U = _normalised_columns(U, w["gamma"], w["beta"])
        H = U if spec.linear else np.maximum(U, 0)
        H0 = H if number == 1 else H0
        made.append(H)
    return made


def _normalised(U, gamma, beta):
    U = U - U.mean(-1, keepdims=True)
    return U / np.sqrt((U * U).mean(-1, keepdims=True) + NORM_EPSILON) * gamma + beta


def _normalised_columns(U, gamma, beta):
    return _normalised(U.mT, 1, 0).mT * gamma + beta


def reference_loss(Z, labels):
    """Mean cross-entropy of scores Z [..., n, classes] over the labelled nodes."""
    Z = Z - Z.max(-1, keepdims=True)
    terms = np.log(np.exp(Z).sum(-1)) - Z[..., np.arange(len(labels)), labels]
    return terms[..., labels >= 0].mean(-1)


AT_ONCE = 32  # losses of as many values


def differences(graph, X, labels, case, values, step=1e-6):
    """Central differences of reference_loss by every parameter, by name."""
    A = graph if isinstance(graph, np.ndarray) else dense(graph)[0]
    W = {name: array.astype(float) for name, array in values.items()}
    specs = layer_specs(case, int(labels.max()) + 1)
    given, found = reference_layers(A, X.astype(float), case, specs, W), {}

    def losses(name, several):
        first = int(name.removeprefix("layer").partition(".")[0])  # layers below see nothing of it
        made = reference_layers(A, given[first - 1], case, specs, W | {name: several}, first, given[1])
        return np.broadcast_to(reference_loss(made[-1], labels), len(several))  # if it does not depend on it

    for name, array in W.items():
        steps = step * np.eye(array.size).reshape(-1, *array.shape)  # each entry's
        parts = [steps[at : at + AT_ONCE] for at in range(0, array.size, AT_ONCE)]
        each = [(losses(name, array + part) - losses(name, array - part)) / (2 * step) for part in parts]
        found[name] = np.concatenate(each).reshape(array.shape)
    return found


def _adjacency(A, case):
    B = A + case.own_loops * np.eye(len(A))
    rows, columns = (np.where(d > 0, d, 1) for d in (B.sum(1), B.sum(0)))
    symmetric = case.normalisation == "symmetric"
    return B / np.sqrt(rows[:, None] * columns) if symmetric else B / rows[:, None]


def _gcn(A, H, w, case, spec):
    return _adjacency(A, case) @ H @ w["W"]


def _gcn2(A, H, w, case, spec):
    S = (1 - case.alpha) * _adjacency(A, case) @ H + case.alpha * w["H0"]
    beta = np.log(case.theta / w["number"] + 1)
    return (1 - beta) * S + beta * S @ w["W"]


def _hops(usual, shares, loops=True):
    def convolution(A, H, w, case, spec):
        P = _adjacency(A, msgspec.structs.replace(case, own_loops=case.own_loops and loops))
        K, begun = case.hops or usual, H @ w["W"]
        return sum(share * np.linalg.matrix_power(P, k) @ begun for k, share in shares(case, K).items())

    return convolution


def _appnp_shares(case, K):
    """Of powers of P, from the sum of the series written out."""
    return {k: case.alpha * (1 - case.alpha) ** k for k in range(K)} | {K: (1 - case.alpha) ** K}


def _gprgnn(A, H, w, case, spec):
    P, begun = _adjacency(A, case), H @ w["W"]
    shares = enumerate(np.moveaxis(w["hop_weights"][..., None], -2, 0))  # [..., 1, 1] each
    return sum(share * (np.linalg.matrix_power(P, k) @ begun) for k, share in shares)


def _all_pairs(normed):
    """Attention to all nodes as a matrix [n, n] of a head."""

    def convolution(A, H, w, case, spec):
        Q, K, V = (H @ w[f"W_{name}"] for name in ("query", "key", "value"))
        out, n = [], len(A)
        for own in np.split(np.arange(V.shape[-1]), spec.heads):
            q, k = Q[..., own], K[..., own]
            if normed:
                q, k = (
                    x / np.where(x.any(-1, keepdims=True), np.sqrt((x * x).sum(-1, keepdims=True)), 1)
                    for x in (q, k)
                )
                B = np.eye(n) + q @ k.mT / n
            else:
                q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
                B = q @ k.mT
            out.append(B @ V[..., own] / np.maximum(B.sum(-1, keepdims=True), 0.01 if normed else 0))
        share = case.attention_share
        return share * np.concatenate(out, axis=-1) + (1 - share) * _gcn(A, H, w, case, spec)

    return convolution


def _dense(A, H, w, case, spec):
    return H @ w["W"]


def _mean(own, mean):
    def convolution(A, H, w, case, spec):
        d = A.sum(1)
        return H @ w[own] + (A @ H) / np.where(d > 0, d, 1)[:, None] @ w[mean]

    return convolution


def _gin(A, H, w, case, spec):
    Y = (1 + w["eps"]) * H + A @ H
    return np.maximum(Y @ w["W1"] + w.get("hidden_bias", 0), 0) @ w["W2"]


def _gin_norm(A, H, w, case, spec):
    V = ((1 + w["eps"]) * H + A @ H) @ w["W1"] + w.get("hidden_bias", 0)
    return np.maximum(_normalised(V, w["hidden_gamma"], w["hidden_beta"]), 0) @ w["W2"]


def _gin_batch_norm(A, H, w, case, spec):
    V = ((1 + w["eps"]) * H + A @ H) @ w["W1"] + w.get("hidden_bias", 0)
    return np.maximum(_normalised_columns(V, w["hidden_gamma"], w["hidden_beta"]), 0) @ w["W2"]


def _gat(A, H, w, case, spec):
    S, near = H @ w["W"], A + np.eye(len(A)) > 0
    out = []
    for own in np.split(np.arange(S.shape[-1]), spec.heads):
        s = S[..., own] @ w["a1"][..., own, :] + (S[..., own] @ w["a2"][..., own, :]).mT
        out.append(_shares(np.where(s > 0, s, 0.2 * s), near) @ S[..., own])
    return np.mean(out, axis=0) if spec.linear else np.concatenate(out, axis=-1)


def _shares(e, near):
    """[..., n, n] what each node hears of each, of their scores."""
    e = np.where(near, e, -np.inf)
    alpha = np.exp(e - e.max(-1, keepdims=True))
    return alpha / alpha.sum(-1, keepdims=True)


def _gatv2(A, H, w, case, spec):
    S, T, near = H @ w["W_source"], H @ w["W_target"], A + np.eye(len(A)) > 0
    out = []
    for own in np.split(np.arange(S.shape[-1]), spec.heads):
        s = T[..., :, None, own] + S[..., None, :, own]
        e = np.where(s > 0, s, 0.2 * s) @ w["a"][..., None, own, :]
        out.append(_shares(e[..., 0], near) @ S[..., own])
    return np.mean(out, axis=0) if spec.linear else np.concatenate(out, axis=-1)


def _pna(A, H, w, case, spec, M=None):
    c = (A != 0).sum(1)[:, None]
    columns, some = np.argsort(A == 0, axis=1, kind="stable")[:, : c.max()], np.where(c > 0, c, 1)
    near, heard = (np.arange(c.max()) < c)[..., None], (H @ w["W_in"])[..., columns, :]
    if M is not None:  # messages are multiplied
        heard = heard * np.take_along_axis(M, columns, axis=1)[..., None]
    mean = np.where(near, heard, 0).sum(-2) / some
    away = np.where(near, heard - mean[..., None, :], 0)
    ends = (np.where(near, heard, end) for end in (-np.inf, np.inf))
    parts = [mean, next(ends).max(-2), next(ends).min(-2), np.sqrt((away**2).sum(-2) / some + EPSILON)]
    V = np.where(c > 0, np.concatenate(parts, axis=-1), 0)
    a = np.log(c + 1) / np.round(w["mean_log_degree"], 2)  # of the graph: no gradient goes through it
    less = np.divide(1, a, out=np.zeros_like(a), where=c > 0)
    return H @ w["W_own"] + V @ w["W_same"] + (a * V) @ w["W_more"] + (less * V) @ w["W_less"]


CONVOLUTIONS = {
    "appnp": _hops(10, _appnp_shares),
    "dense": _dense,
    "gat": _gat,
    "gatv2": _gatv2,
    "gcn": _gcn,
    "gcn2": _gcn2,
    "gin": _gin,
    "gin_batch_norm": _gin_batch_norm,
    "gin_norm": _gin_norm,
    "pna": _pna,
    "gprgnn": _gprgnn,
    "linear_attention": _all_pairs(normed=False),
    "lightgcn": _hops(3, lambda case, K: dict.fromkeys(range(K + 1), 1 / (K + 1)), loops=False),
    "sage": _mean("W_self", "W_neigh"),
    "sgc": _hops(2, lambda case, K: {K: 1}),
    "sgformer": _all_pairs(normed=True),
    "commnet": _mean("W_H", "W_C"),
}


def case_of(kind, options="", widths=(8, 4, 6), **keys):
    """A case of inner layers of some widths and the same options, and a last one; nothing is dropped.

    kind   may be followed by options that the last layer has too
    """
    defaults = {"dropout": 0.0, "input_dropout": 0.0}
    layers = [f"{kind} {width} {options}" for width in widths] + [kind]
    if kind == "gcn2":
        ends, width = (f"dense {widths[0]} {options}".replace("residual", ""), "dense"), widths[0]
        layers = [ends[0], *[f"gcn2 {width} {options}"] * (len(widths) - 1), ends[1]]
    return GnnCase(layers=layers, **{**defaults, **keys})


def check_gradient(trial, W, reference, each):
    """Assert that a trial has the scores of a reference, and so many entries of its gradient by each weight
    central differences of the loss.

    W           weights by name, in float64, which this moves and puts back
    reference   without arguments, by W: the loss, and the scores of all rows
    """
    gradient = trial.epoch(1)
    scores = reference()[1][trial.block.lo : trial.block.lo + trial.block.n_real]
    assert np.allclose(trial.scores()[: trial.block.n_real], scores, atol=1e-5)
    draws, top = np.random.default_rng(1), np.abs(gradient).max()
    for name, part in trial.engine.params.slices.items():
        found = gradient[part].reshape(W[name].shape)
        for _ in range(each):
            at = tuple(draws.integers(0, size) for size in W[name].shape)
            held, losses = W[name][at], []
            for step in (1e-6, -1e-6):
                W[name][at] = held + step
                losses.append(reference()[0])
            W[name][at] = held
            assert abs(found[at] - (losses[0] - losses[1]) / 2e-6) < 2e-5 * top, name
