"""Forecasts of series on graphs: gradients, windows, plain rules, ranks, files, what is missing, Python."""

import csv
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES, by_one
from jobs import mpirun, run_job, split_over
from mpi4py import MPI
from standin_device import StandInDevice

from app import forecast
from app.__main__ import main
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, Diverged, GraphError, NumericsError
from app.gnn.forecast.covariates import Covariates
from app.gnn.forecast.drawn import drawn_series, floor_of
from app.gnn.forecast.forecaster import Forecaster
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.regression import ridge_solution
from app.gnn.forecast.series import SeriesScale, filled
from app.gnn.forecast.training import fit_forecaster
from app.gnn.forecast.windows import SeriesData
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.source import Limits
from app.graphs.generators.random_nodes import near_normal
from app.graphs.series import open_series
from app.native import gates as native_gates
from app.numerics.gates import Gates
from app.numerics.products import Operand
from app.partition.load import ordered
from app.partition.series import own_series
from app.partition.streams import load_stream
from app.rng import key_of
from app.sparse.rowblock import RowBlock

alone = pytest.mark.mpi_skip
NODES, STEPS = 26, 60
PLAIN = {
    "run.task": "classify", "gnn.level": "forecast", "gnn.hidden": 5, "gnn.epochs": 3,
    "gnn.weight_decay": 0.0,
    "gnn.learning_rate": 0.01, "gnn.keep": "best", "forecast.window": 4, "forecast.horizon": 2, "seed": 1,
    "forecast.batch": 5,
}  # fmt: skip


def drawn_graph(directed=False):
    """A graph with hubs and a node alone; directed: with some arcs of one direction."""
    graph, edges = (
        nx.DiGraph() if directed else nx.Graph(),
        nx.barabasi_albert_graph(NODES - 1, 2, seed=3).edges,
    )
    graph.add_nodes_from(range(NODES))
    graph.add_edges_from([(u, v) for u, v in edges if (u + v) % 3] + [(4, 0), (1, 3)] if directed else edges)
    return graph


def drawn(channels=1, steps=STEPS, holes=0.0):
    """Series [T, n, C] that follow themselves, with another level and size at each node."""
    draws = np.random.default_rng(1)
    out = np.zeros((steps, NODES, channels))
    for t in range(1, steps):
        out[t] = 0.7 * out[t - 1] + draws.normal(size=(NODES, channels)) + np.sin(2 * np.pi * t / 6)
    out = out * draws.uniform(1, 5, size=(1, NODES, 1)) + 20 * draws.normal(size=(1, NODES, 1))
    out[draws.random(out.shape) < holes] = np.nan
    return out.astype(np.float32)


def forecaster_on(group, settings=None, series=None, directed=False, exchange="auto", known=None):
    """A network of the drawn graph on a group's ranks; known: covariates [T, n, a] and [T, b]."""
    settings = PLAIN | (settings or {}) | ({"graph.neighbours": "in"} if directed else {})
    case, series = build(settings), drawn() if series is None else series
    source = None
    if group.rank == 0:
        source = stream_of_object(drawn_graph(directed), case.graph.neighbours)[0]
    loaded = ordered(group, load_stream(group, source, case.graph, case), case.graph.order, case)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.forecast.batch * case.gnn.hidden)
    S_own = own_series(loaded, series, group.rank)
    steps = int(case.forecast.train * len(series) + 1e-6)
    scale = SeriesScale.of(group, S_own, steps, case.forecast.normalise == "node", block.n_real)
    masks = bool(np.isnan(series).any())
    known = known and Covariates(own_series(loaded, known[0], group.rank), known[1])
    data = SeriesData(S_own, scale, masks, known)
    return Forecaster(group, case.gnn, case.forecast, block, data, case.seed)


def weights_of(params):
    """Values for all parameters, none of them at a special point."""
    draws = np.random.default_rng(5)
    return {name: draws.uniform(-0.6, 0.6, shape).astype(np.float32) for name, shape in params.shapes.items()}


# ---- gradients --------------------------------------------------------------------------------------------


def reference_loss(found, flat, ends, directed):
    """The loss by dense matrices in float64: of weights `flat`, of windows that end at some steps."""
    case, gnn, params = found.case, found.gnn, found.params
    w = {name: flat[part].reshape(params.shapes[name]) for name, part in params.slices.items()}
    A = nx.to_numpy_array(drawn_graph(directed), nodelist=range(NODES))
    A = A.T if directed else A  # a node hears the tails
    sides = [A, A.T] if directed else [A]
    walks = [side / np.maximum(side.sum(axis=1, keepdims=True), 1) for side in sides]
    powers = [np.linalg.matrix_power(P, k) for P in walks for k in range(1, case.hops + 1)]
    batch = found.windows.batch(ends)
    shape = NODES, len(ends)
    get = lambda X: np.array(X, dtype=np.float64)[: NODES * len(ends)].reshape(*shape, -1)  # noqa: E731
    hear = lambda H: np.concatenate([H, *(np.einsum("ij,jbh->ibh", P, H) for P in powers)], axis=2)  # noqa: E731
    logistic = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    U, h = [get(each) for each in batch.inputs], gnn.hidden
    ahead = 0 if batch.ahead is None else get(batch.ahead) @ w["ahead.W"]
    if case.model == "recurrent":
        H = np.zeros((*shape, h))
        for inputs in U:
            X, G = inputs @ w["input.W"], hear(H) @ w["hidden.W"]
            X = X + ahead if inputs is U[-1] else X
            r, z = (logistic(X[..., i * h : (i + 1) * h] + G[..., i * h : (i + 1) * h]) for i in (0, 1))
            c = np.tanh(X[..., 2 * h :] + r * (G[..., 2 * h :] + w["hidden.bias"]))
            H = z * H + (1 - z) * c
    else:
        X = np.concatenate(U, axis=2) @ w["input.W"] + ahead
        H = X[..., :h] * logistic(X[..., h:])
        for layer in range(1, gnn.depth + 1):
            H = H + np.maximum(hear(H) @ w[f"layer{layer}.W"] + w[f"layer{layer}.bias"], 0)
    base = get(batch.last) if found.base is None else get(batch.last) + get(batch.linear) @ found.base
    known = get(batch.known)
    Z = H @ w["head.W"] + w["head.bias"]
    if case.quantiles:
        away = np.stack([Z[..., q * 4 : q * 4 + 4] for q in range(len(case.quantiles))])
        away = (away + base - get(batch.target)) * known
        levels = np.array(case.quantiles)[:, None, None, None]
        return np.maximum((1 - levels) * away, -levels * away).sum() / known.sum() / len(levels)
    away = (Z + base - get(batch.target)) * known
    return (np.abs(away) if case.loss == "absolute" else away**2).sum() / known.sum()


def check_gradients(found, names, each, directed):
    """Assert that the loss is that of `reference_loss`, and so many entries of the gradient by each of some
    weights its central differences.
    """
    found.params.set(weights_of(found.params))
    ends = found.windows.parts.ends("train")[[3, 9, 20]]
    loss = found.learn(ends)
    flat = np.array(found.params.flat, dtype=np.float64)
    assert loss == pytest.approx(reference_loss(found, flat, ends, directed), rel=2e-5)
    gradient, eps = np.array(found.steps.gradient), 1e-6
    for name in names:
        part = found.params.slices[name]
        count = min(each, part.stop - part.start)
        for at in np.random.default_rng(2).choice(np.arange(part.start, part.stop), count):
            step = np.zeros_like(flat)
            step[at] = eps
            losses = [reference_loss(found, flat + s * step, ends, directed) for s in (1, -1)]
            slope = (losses[0] - losses[1]) / (2 * eps)
            assert gradient[at] == pytest.approx(slope, rel=2e-3, abs=2e-5), (name, at)


CASES = [
    ({"forecast.loss": "squared"}, False),
    ({"forecast.loss": "squared", "forecast.period": 6, "forecast.calendar": [4, 9]}, True),
    ({"forecast.model": "temporal", "forecast.loss": "squared", "forecast.base": "last"}, False),
    ({"forecast.model": "temporal", "gnn.depth": 1}, True),
    ({"forecast.hops": 0, "forecast.normalise": "channel"}, False),
    ({"forecast.quantiles": [0.1, 0.5, 0.8]}, False),
]


@alone
@pytest.mark.parametrize(("settings", "directed"), CASES)
def test_gradients_are_those_of_central_differences(settings, directed):
    group = Group(MPI.COMM_SELF, HostDevice())
    found = forecaster_on(group, settings, drawn(2, holes=0.05), directed)
    check_gradients(found, found.params.slices, 4, directed)


@pytest.mark.parametrize("model", ["recurrent", "temporal"])
@pytest.mark.parametrize("exchange", EXCHANGES[:2])
def test_the_same_bits_on_any_ranks_and_exchanges(model, exchange):
    settings, series = {"forecast.model": model, "gnn.epochs": 2, "forecast.period": 6}, drawn(holes=0.03)
    one = Group(MPI.COMM_SELF, HostDevice(compiled=False))

    def learned(group, travels):
        of = forecaster_on(group, settings, series, directed=True, exchange=travels)
        fit = fit_forecaster(of)
        errors = [each.told() for each in of.judge("test").values()]
        return fit.weights, errors, of.intervals(0.5)[1], fit.records

    weights, *expected = by_one(lambda: learned(one, "auto"))
    others, *found = learned(Group(MPI.COMM_WORLD, HostDevice()), exchange)
    assert all(np.array_equal(weights[name], others[name]) for name in weights)
    assert found == expected


@alone
def test_a_device_of_another_kind_has_the_same_bits():
    found = []
    for device in (HostDevice(), StandInDevice()):
        of = forecaster_on(Group(MPI.COMM_SELF, device), {"forecast.period": 6}, drawn(holes=0.02))
        ends = of.windows.parts.ends("train")[:3]
        loss = of.learn(ends)
        found.append((loss, np.array(device.get(of.steps.gradient)), of.forecast(ends)))
    assert found[0][0] == found[1][0]
    assert all(np.array_equal(*pair) for pair in zip(found[0][1:], found[1][1:]))


@alone
@pytest.mark.skipif(not native_gates.available(), reason="no compiled kernels")
def test_compiled_gates_have_the_bits_of_the_plain_ones():
    draws, device = np.random.default_rng(1), HostDevice()
    host = HostDevice(compiled=False)
    assert isinstance(host, Gates)
    m, h = 37, 11
    sizes = 20 ** draws.uniform(-1, 2, (m, 1))
    X, G, H, D = ((sizes * draws.normal(size=(m, k))).astype(np.float32) for k in (3 * h, 3 * h, h, h))
    bias = H[0].copy()
    made = []
    for each in (device, host):
        x, g, q, out, d = X.copy(), G.copy(), np.empty_like(H), np.empty_like(H), D.copy()
        each.gru_step(x, g, bias, H, q, out)
        step = x.copy()
        each.gru_back(x, q, H, d, g)
        y, unit = X[:, : 2 * h].copy(), np.empty_like(H)
        each.glu(y, unit)
        held = y.copy()
        each.glu_back(y, D)
        made.append((step, q, out, x, g, d, held, unit, y))
    assert all(np.array_equal(*pair) for pair in zip(*made))


@alone
def test_products_have_many_operands():
    draws, device = np.random.default_rng(1), HostDevice()
    parts = [draws.integers(-3, 4, (16, 3)).astype(np.float32) for _ in range(36)]
    W = draws.integers(-3, 4, (108, 17)).astype(np.float32)
    assert np.array_equal(
        device.dense([Operand(each) for each in parts], W), np.concatenate(parts, axis=1) @ W
    )
    if device.native:
        with pytest.raises(NumericsError, match="37 operands side by side, at most 36"):
            device.dense([Operand(each) for each in [*parts, parts[0]]], np.concatenate([W, W[:3]]))


# ---- windows, scales, plain rules -------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("normalise", ["node", "channel"])
def test_nothing_of_the_future_is_seen(normalise):
    group, series = Group(MPI.COMM_SELF, HostDevice()), drawn()
    settings = {"forecast.normalise": normalise, "forecast.period": 6}
    first = forecaster_on(group, settings, series)
    ends = first.windows.parts.ends("train")
    assert ends[-1] + 2 == 41  # 42 of 60 steps are learned from
    later = series.copy()
    later[42:] = later[42:] * 3 + 100
    other = forecaster_on(group, settings, later)
    assert np.array_equal(first.scale.mean, other.scale.mean)
    assert np.array_equal(first.scale.deviation, other.scale.deviation)
    assert np.array_equal(first.plain.best, other.plain.best)
    weights = weights_of(first.params)
    for each in (first, other):
        each.params.set(weights)
    assert first.learn(ends[-4:]) == other.learn(ends[-4:])
    assert np.array_equal(first.steps.gradient, other.steps.gradient)
    assert np.array_equal(first.forecast(np.array([41])), other.forecast(np.array([41])))
    assert not np.array_equal(first.forecast(np.array([42])), other.forecast(np.array([42])))
    for part, (lo, hi) in {"train": (0, 42), "val": (42, 48), "test": (48, 60)}.items():
        found = first.windows.parts.ends(part)
        assert ((found + 1 >= lo) & (found + 2 < hi)).all()


@alone
def test_plain_rules_are_those_of_dense_arrays():
    group, series = Group(MPI.COMM_SELF, HostDevice()), drawn(steps=80)
    of = forecaster_on(group, {"forecast.period": 6, "forecast.ridge": 1e-3}, series)
    found = of.judge("test")
    S, train = series[:, :, 0].astype(np.float64), 56
    mean, deviation = S[:train].mean(axis=0), S[:train].std(axis=0)
    A = nx.to_numpy_array(drawn_graph(), nodelist=range(NODES))
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    x = (S - mean) / deviation
    heard = x @ P.T

    def rows(ends, neighbours):
        """What is read, and what comes less the last value, of all windows and nodes."""
        V, Y = [], []
        for t in ends:
            angle = np.full((NODES, 1), 2 * np.pi * (t % 6) / 6)
            lags = [x[t - back] - x[t] for back in (1, 2, 3)] + [x[t + h - 6] - x[t] for h in (1, 2)]
            more = [heard[t - back] - x[t] for back in (0, 1, 2, 3)] if neighbours else []
            V.append(np.column_stack([np.ones(NODES), *lags, np.sin(angle), np.cos(angle), *more]))
            Y.append(np.column_stack([x[t + 1] - x[t], x[t + 2] - x[t]]))
        return np.concatenate(V), np.concatenate(Y)

    tested = np.arange(63, 78)
    ahead = np.stack([np.stack([S[t + 1], S[t + 2]], axis=1) for t in tested])
    rules = {
        "last_value": np.stack([np.stack([S[t], S[t]], axis=1) for t in tested]),
        "last_season": np.stack([np.stack([S[t - 5], S[t - 4]], axis=1) for t in tested]),
        "mean": np.broadcast_to(mean[:, None], ahead.shape),
    }
    for rule, neighbours in (("linear", False), ("linear_neighbours", True)):
        V, Y = rows(range(5, 54), neighbours)
        square = V.T @ V
        B = np.linalg.solve(square + np.diag(1e-3 * np.diag(square)), V.T @ Y)
        Z = (rows(tested, neighbours)[0] @ B).reshape(len(tested), NODES, 2)
        rules[rule] = (Z + x[tested][:, :, None]) * deviation[:, None] + mean[:, None]
    assert set(found) == {"network", *rules}
    for rule, values in rules.items():
        away = values - ahead
        assert found[rule].by_step[0] == pytest.approx(np.abs(away).mean(axis=(0, 1)), rel=1e-3), rule
        assert found[rule].by_step[1] == pytest.approx(np.sqrt((away**2).mean(axis=(0, 1))), rel=1e-3), rule
        assert found[rule].whole[0] == pytest.approx(np.abs(away).mean(), rel=1e-3)
    assert found["network"].told() == found["linear_neighbours"].told()  # before it has learned
    draws = np.random.default_rng(0)
    V = draws.normal(size=(50, 6))
    V[:, 3] = V[:, 1]
    S, R = V.T @ V, V.T @ draws.normal(size=(50, 2))
    assert ridge_solution(S, R, 0.5) == pytest.approx(np.linalg.solve(S + 0.5 * np.diag(np.diag(S)), R))
    assert np.allclose(S @ ridge_solution(S, R, 0.0), R)  # a column that another one makes up is left out


@alone
def test_missing_values_are_neither_learned_nor_judged():
    group, series = Group(MPI.COMM_SELF, HostDevice()), drawn(holes=0.2)
    series[:, 3] = np.nan  # a node of which nothing is known
    settings = {"forecast.base": "last"}
    of = forecaster_on(group, settings, series)
    of.params.set(weights_of(of.params))
    ends = of.windows.parts.ends("train")
    batch = of.windows.batch(ends[:4])
    known = np.isfinite(series[:, :, 0])
    wanted = np.stack([np.stack([known[t + 1], known[t + 2]], axis=1) for t in ends[:4]], axis=1)
    assert np.array_equal(batch.known[: NODES * 4].reshape(NODES, 4, 2) > 0, wanted)
    assert of.windows.known_in(ends[:4]) == wanted.sum()
    errors = of.judge("test")["last_value"]
    assert errors.count.sum() < 10 * NODES * 2 * 0.9
    assert np.isfinite(errors.told()["mae"])
    held = filled(series.transpose(1, 0, 2))
    assert np.isfinite(held).all()
    node = series[:, 0, 0]
    at = np.flatnonzero(np.isnan(node[1:]))[0] + 1
    assert held[0, at, 0] == held[0, at - 1, 0]
    assert np.isfinite(of.next()).all()
    fit = fit_forecaster(of)
    assert all(np.isfinite(each).all() for each in fit.weights.values())


def test_drawn_series_are_the_same_on_any_ranks_and_leave_their_noise():
    made = []
    for group in (Group(MPI.COMM_SELF, HostDevice()), Group(MPI.COMM_WORLD, HostDevice())):
        case = build(PLAIN)
        source = stream_of_object(drawn_graph())[0] if group.rank == 0 else None
        loaded = load_stream(group, source, case.graph, case)
        block = RowBlock(group, loaded.graph, loaded.rows)
        nodes = np.arange(*loaded.rows.range_of(group.rank))
        own = drawn_series(Hops(group, block, 1), nodes, block.n_own, 400, 0, 0.3, 7)[: block.n_real]
        made.append(group.gather_host(np.ascontiguousarray(own), block.rows.row_counts()))
    assert np.array_equal(*made)
    levels = near_normal(np.uint64(key_of(7, "series/levels")), np.arange(NODES)) * 3.0 + 10
    x = made[0][:, :, 0].T - levels
    A = nx.to_numpy_array(drawn_graph(), nodelist=range(NODES))
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    left = x[2:] - 0.5 * x[1:-1] - 0.9 * np.tanh(2 * x[:-2] @ P.T)
    assert np.sqrt((left**2).mean()) == pytest.approx(floor_of(0.3)["rmse"], rel=0.02)
    assert np.abs(left).mean() == pytest.approx(floor_of(0.3)["mae"], rel=0.02)


# ---- files ------------------------------------------------------------------------------------------------


def read(path, ids):
    """The series of a file by the rows of nodes."""
    table = open_series(str(path), Limits(), ids, "g")
    rows = np.concatenate(list(table.parts()))
    if table.places is None:
        return rows
    out = np.empty_like(rows)
    out[:, table.places] = rows
    return out


@alone
def test_series_are_read_by_order_and_by_title(tmp_path):
    names, numbers = np.array([b"ann", b"bob", b"cy"]), np.array([3, 5, 10])
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "b.npz", series=np.stack([values, values + 1], axis=2))
    assert np.array_equal(read(tmp_path / "a.npy", numbers)[:, :, 0], values)
    assert np.array_equal(read(tmp_path / "b.npz", names)[:, :, 1], values + 1)
    (tmp_path / "c.csv").write_text('time,cy,"ann",bob\n2020-01-01 00:00,2,0,1\nx,5,,4\n\nz,8,6,nan\n')
    found = read(tmp_path / "c.csv", names)[:, :, 0]
    wanted = np.array([[0, 1, 2], [np.nan, 4, 5], [6, np.nan, 8]], dtype=np.float32)
    assert np.array_equal(found, wanted, equal_nan=True)
    (tmp_path / "d.txt").write_text("10 3 5\n2 0 1\n5 3 4\n")
    assert np.array_equal(read(tmp_path / "d.txt", numbers)[:, :, 0], values[:2])
    (tmp_path / "f.txt").write_text("# x, y\nt 10 3 5\n 0  2 0 1\n# a, b\n1 5 3 4\n")
    assert np.array_equal(read(tmp_path / "f.txt", numbers)[:, :, 0], values[:2])
    (tmp_path / "g.csv").write_text('t,3,5,10\n"Jan 1, 2020",0,1,2\n"a ""b""",3,4,5\n')
    assert np.array_equal(read(tmp_path / "g.csv", numbers)[:, :, 0], values[:2])
    (tmp_path / "h.csv").write_text("t,ann\n1,5\n2,\n3,7\n4\n")  # steps without a value are steps
    found = read(tmp_path / "h.csv", names[:1])[:, 0, 0]
    assert np.array_equal(found, [5, np.nan, 7, np.nan], equal_nan=True)
    (tmp_path / "e.tsv").write_text("t\t10\t3\t5\n0\t2\t0\t1\n")
    assert np.array_equal(read(tmp_path / "e.tsv", numbers)[:, :, 0], values[:1])
    (tmp_path / "i.tsv").write_text(
        "time\tann\tbob\tcy\n1, a\t\t1\t2\n2\t3\t\t\r\n\t\t\t\n# x\ty\n3\t1\t2\t3\n"
    )
    found = read(tmp_path / "i.tsv", names)[:, :, 0]
    wanted = np.array([[np.nan, 1, 2], [3, np.nan, np.nan], [np.nan] * 3, [1, 2, 3]], dtype=np.float32)
    assert np.array_equal(found, wanted, equal_nan=True)
    (tmp_path / "j.tsv").write_text("ann\tbob\tcy\n\t1\t2\n\t\t\n4\t5\t6\t\n")
    assert np.array_equal(
        read(tmp_path / "j.tsv", names)[1:, :, 0], [[np.nan] * 3, [4, 5, 6]], equal_nan=True
    )
    (tmp_path / "k.tsv").write_text("ann\tbob\tcy\n\t1\t2\n4\t5\n")
    with pytest.raises(GraphError, match=":3: found 2 fields"):
        read(tmp_path / "k.tsv", names)


@alone
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,3,5\n1,2,3\n", "found no column of node 10; one for each of the 3 would be right"),
        ("3,5,10,3\n1,2,3,4\n", ":1: found node 3 twice"),
        ("t,3,7,10\n1,2,3,4\n", "found the title '7', which is no node"),
        ("3,5,10\n1,2\n", "found 2 numbers in the first line under 3 titles"),
        ("3,5,10\n1,2,x\n", ":2: found 'x'; a number would be right"),
        ("3,5,10\n1,2,3\n1,inf,3\n", "found inf"),
        ("3,5,10\n", "holds no numbers under its titles; a line of them for each step"),
        ("t,3,5,10\n1,2,3,4\n2\n3,2,3,4\n", ":3: found 1 fields"),
        ("", "holds nothing; a line of the ids of the nodes of g would be right"),
    ],
)
def test_files_of_series_that_are_wrong_are_refused_in_one_line(text, said, tmp_path):
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises(GraphError) as found:
        read(tmp_path / "s.csv", np.array([3, 5, 10]))
    assert said in str(found.value)
    assert "\n" not in str(found.value)


@alone
@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((4, 2)), "found the shape 4 x 2; T x 3, a column for each node of g"),
        (np.zeros((0, 3)), "found the shape 0 x 3"),
        (np.zeros(3), "found the shape 3;"),
        (np.array([["a", "b", "c"]]), "numbers would be right"),
        (np.asfortranarray(np.zeros((4, 3))), "is stored column by column"),
    ],
)
def test_arrays_of_series_that_are_wrong_are_refused(array, said, tmp_path):
    np.save(tmp_path / "s.npy", array)
    with pytest.raises(GraphError, match=said):
        read(tmp_path / "s.npy", np.array([3, 5, 10]))


# ---- runs -------------------------------------------------------------------------------------------------


def run(folder, *more, ranks=1, code=0, start=()):
    """What a run prints; its result, where it ends well."""
    before = mpirun(ranks) if ranks > 1 else []
    command = [*before, sys.executable, "run.py", "inputs/forecast.toml", "output.plots=false"]
    command += [split_over(ranks), *more]
    found, printed = run_job([*command, "--out", folder, *start], limit_s=120)
    assert found == code, printed
    return json.loads((folder / "result.json").read_text()) if code == 0 else printed


SMALL = (
    "graph.nodes=40", "graph.series_steps=90", "gnn.hidden=4", "gnn.epochs=3", "forecast.window=4",
    "forecast.horizon=2", "forecast.period=6", "forecast.batch=20",
)  # fmt: skip


@alone
def test_runs_on_one_two_and_three_ranks_and_resumed_ones_are_the_same(tmp_path):
    found = run(tmp_path / "one", *SMALL, "output.plots=true")
    assert found["test"]["mae"] < found["plain"]["last_value"]["mae"]
    assert found["floor"]["rmse"] == 0.3
    assert set(found["plain"]) == {"last_value", "last_season", "mean", "linear", "linear_neighbours"}
    assert 0 < found["coverage"]["test"] <= 1
    files = {each.relative_to(tmp_path / "one").as_posix() for each in (tmp_path / "one").rglob("*")}
    assert {"forecast/ba-40-0.csv", "scores.csv", "weights.npz", "forecasts.png"} <= files
    lines = (tmp_path / "one" / "forecast" / "ba-40-0.csv").read_text().split("\n")
    assert lines[0] == "node,step,value,low,high"
    assert len(lines) == 40 * 2 + 2
    several = run(tmp_path / "three", *SMALL, ranks=3)
    stopped = run(
        tmp_path / "two", *SMALL, "checkpoint.steps=1", ranks=2, code=3, start=("--max-hours", "1e-7")
    )
    assert "checkpoint" in stopped
    resumed = run(tmp_path / "two", *SMALL, "checkpoint.steps=1", start=("--resume",))
    for other in (several, resumed):
        assert other["digest"] == found["digest"]
        assert other["weights_digest"] == found["weights_digest"]
        assert other["test"] == found["test"]
        assert other["plain"] == found["plain"]
    assert main(["report", str(tmp_path / "one"), "-o", str(tmp_path / "page.html")]) == 0
    assert "linear neighbours" in (tmp_path / "page.html").read_text()
    one = (tmp_path / "one" / "forecast" / "ba-40-0.csv").read_bytes()
    assert (tmp_path / "three" / "forecast" / "ba-40-0.csv").read_bytes() == one
    weights = f"gnn.weights={tmp_path / 'three' / 'weights.npz'}"
    applied = run(tmp_path / "applied", *SMALL, "gnn.epochs=0", weights)
    assert applied["test"] == found["test"]
    assert (tmp_path / "applied" / "forecast" / "ba-40-0.csv").read_bytes() == one
    longer = run(
        tmp_path / "longer", *SMALL, "graph.nodes=50", "graph.series_steps=150", "gnn.epochs=0", weights,
        "forecast.model=temporal",
    )  # fmt: skip
    assert longer["nodes"] == 50
    said = " ".join((tmp_path / "longer" / "log.txt").read_text().split())
    assert "the weights bring their network: forecast.model = recurrent (not temporal)" in said
    assert "the weights have learned on other nodes" in said


@alone
def test_a_file_beside_a_graph_and_a_dry_run(tmp_path):
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")])
    (tmp_path / "g.txt").write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    t = np.arange(80)
    rows = np.stack([np.sin(t / 3), np.cos(t / 3), np.sin(t / 3 + 1), np.cos(t / 4)], axis=1)
    text = "d,c,b,a\n" + "".join(",".join(f"{x:.4f}" for x in row) + "\n" for row in rows)
    (tmp_path / "s.csv").write_text(text)
    files = f"graph.path={tmp_path / 'g.txt'}", "graph.ids=names", f"graph.series={tmp_path / 's.csv'}"
    small = *SMALL[2:], "graph.neighbours=in", "forecast.horizon=2", "forecast.base=linear"
    more = "graph.generator=''", "parallel.spatial=0"
    found = run(tmp_path / "out", *files, *small, *more)
    assert found["steps"] == 80
    assert found["test"]["skill"] > 0.5
    lines = (tmp_path / "out" / "forecast" / "g.csv").read_text().split("\n")
    assert [line.split(",")[0] for line in lines[1:9:2]] == ["a", "b", "c", "d"]
    assert float(lines[1].split(",")[2]) == pytest.approx(np.cos(80 / 4), abs=0.3)  # the last column is a
    command = [sys.executable, "run.py", "inputs/forecast.toml", "--dry-run"]
    code, printed = run_job(command, limit_s=60)
    assert code == 0
    assert "series 6.1 MB" in printed
    assert "671 windows to learn from, 42 training steps an epoch" in printed
    np.save(tmp_path / "s.npy", np.zeros((77, 4, 2)))
    more = f"graph.series={tmp_path / 's.npy'}", f"graph.path={tmp_path / 'g.mtx'}", "graph.generator=''"
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n4 3\n")
    code, printed = run_job([*command, *more], limit_s=60)
    assert code == 0, printed
    assert "series of 77 steps of time, 2 channels" in printed
    # Edges in a text tell no sizes, and covariates are looked at all the same.
    more = (
        f"graph.series={tmp_path / 's.npy'}",
        f"graph.path={tmp_path / 'g.txt'}",
        *more[2:],
        "graph.ids=names",
    )
    short, flat = tmp_path / "short.npy", tmp_path / "flat.npy"
    np.save(short, np.zeros((78, 2)))
    np.save(flat, np.zeros(90))
    for key, path, wrong in (
        ("shared_covariates", short, "has 78 steps of time; at least 83 would be right: the 77 of the"),
        ("covariates", flat, "found the shape 90; T x nodes, or T x nodes x channels, would be right"),
        ("series", flat, "found the shape 90; T x nodes, or T x nodes x channels, would be right"),
        ("shared_covariates", tmp_path / "g.txt", ""),
    ):
        code, printed = run_job([*command, *more, f"graph.{key}={path}"], limit_s=60)
        assert (code, wrong in printed) == (2 if wrong else 0, True), printed
    code, printed = run_job([*command, "graph.series_steps=10"], limit_s=60)
    assert code == 2
    assert "has 10 steps of time; at least 24 would be right for a window" in printed


# ---- from Python ------------------------------------------------------------------------------------------


class Table:
    """As much of a DataFrame as is asked of one."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, key):
        return self._columns[key]

    def to_numpy(self):
        return np.column_stack(list(self._columns.values()))


FEW = {"gnn.epochs": 2, "gnn.hidden": 4, "forecast.batch": 10}


@alone
def test_series_come_as_arrays_tables_and_mappings():
    graph, series = nx.relabel_nodes(drawn_graph(), lambda node: f"n{node}"), drawn()[:, :, 0]
    names = [f"n{node}" for node in range(NODES)]
    places = [names.index(node) for node in graph.nodes]
    found = forecast(graph, series[:, places], horizon=2, window=4, settings=FEW)
    assert found.predicted.shape == (2, NODES)
    assert found.nodes == list(graph.nodes)
    assert set(found.baselines) == {"last_value", "mean", "linear", "linear_neighbours"}
    assert found.scores["test"]["mae"] > 0
    by_name = {name: series[:, i] for i, name in enumerate(names)}
    again = forecast(graph, by_name, horizon=2, window=4, settings=FEW)
    assert again.digest == found.digest
    table = Table(by_name)
    assert forecast(graph, table, horizon=2, window=4, settings=FEW).digest == found.digest
    table.columns.append("n0")
    with pytest.raises(GraphError, match="series: found 'n0' twice"):
        forecast(graph, table, horizon=2, window=4, settings=FEW)
    applied = forecast(graph, by_name, weights=found)
    assert np.array_equal(applied.predicted, found.predicted)
    assert applied.epochs == 0
    also = forecast(graph, by_name, weights=found, horizon=2, settings={"gnn.epochs": 0})
    assert np.array_equal(also.predicted, found.predicted)
    with pytest.raises(CaseError, match="horizon: found 3, the weights have 2; leave it out"):
        forecast(graph, by_name, weights=found, horizon=3)
    scale = SeriesScale(found.model.scale.mean[:2], found.model.scale.deviation[:2])
    with pytest.raises(GraphError, match=f"weights: holds the scale of 2 nodes; {NODES} would be right"):
        forecast(graph, by_name, weights=replace(found, model=replace(found.model, scale=scale)))
    assert repr(found).startswith(f"Forecast(2 steps of {NODES} nodes, MAE ")
    two = forecast(
        graph, np.stack([series, series + 1], axis=2)[:, places], horizon=3, window=4, settings=FEW
    )
    assert two.predicted.shape == (3, NODES, 2)


@alone
@pytest.mark.parametrize("channels", [1, 2])
def test_a_forecast_is_written_as_a_table(channels, tmp_path):
    """A column for each node, by its name, a line for each step; of several channels the first."""
    graph = nx.relabel_nodes(drawn_graph(), lambda node: f"n,{node}")
    series = drawn()[:, :, 0]
    given = series if channels == 1 else np.stack([series, 2 * series], axis=2)
    found = forecast(graph, given, horizon=2, window=4, settings=FEW)
    path = tmp_path / "ahead.csv"
    found.save_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == list(graph)
    first = found.predicted.reshape(2, NODES, channels)[:, :, 0]
    assert rows == [[f"{x:.9g}" for x in row] for row in first]


def contents(found):
    """All that a forecast says."""
    arrays = [each.tobytes() for each in (found.predicted, found.intervals, found.model.scale.mean)]
    return found.digest, found.scores, found.baselines, repr(found.coverage), arrays


def test_all_ranks_get_the_same_answer():
    more = {"horizon": 2, "window": 4, "settings": FEW | {"output.coverage": 0.5, "graph.order": "rcm"}}
    series = drawn(holes=0.02)
    found = forecast(drawn_graph(), series, **more)
    assert contents(found) == by_one(
        lambda: contents(forecast(drawn_graph(), series, comm=MPI.COMM_SELF, **more))
    )
    assert (found.intervals[0] <= found.predicted).all()


def test_ranks_without_nodes_have_the_same_answer():
    series, size = drawn(holes=0.02)[:, :3], MPI.COMM_WORLD.size
    more = FEW | {"output.coverage": 0.5, "gnn.keep": "last"}
    for settings in ({}, {"forecast.model": "temporal", "forecast.normalise": "channel"}):
        given = {"horizon": 2, "window": 4, "settings": more | settings}
        one = by_one(
            lambda given=given: contents(forecast(nx.path_graph(3), series, comm=MPI.COMM_SELF, **given))
        )
        found = forecast(
            nx.path_graph(3), series, **given | {"settings": more | settings | {"parallel.spatial": size}}
        )
        assert contents(found) == one


@alone
@pytest.mark.parametrize("normalise", ["node", "channel"])
def test_the_unit_of_series_plays_no_part(normalise):
    more = {"horizon": 2, "window": 4, "settings": FEW | {"forecast.normalise": normalise}}
    series, graph = drawn(), drawn_graph()
    found = forecast(graph, series, **more)
    for unit in (2.0**100, 2.0**-100):  # squares of such numbers are no float32
        other = forecast(graph, series * unit, **more)
        assert np.array_equal(other.predicted, found.predicted * unit)
        assert other.scores["test"]["mae"] == found.scores["test"]["mae"] * unit
    series[50, 1] = 1e30
    with pytest.warns(UserWarning, match="values are farther than 1e.06 deviations"):
        forecast(graph, series, **more)


@alone
def test_values_that_are_masked_are_not_known():
    series, more = drawn(), {"horizon": 2, "window": 4, "settings": FEW}
    holes = np.where(series > 25, np.nan, series)
    found = forecast(drawn_graph(), np.ma.masked_greater(series, 25), **more)
    assert found.digest == forecast(drawn_graph(), holes, **more).digest


class Labelled(list):
    """A list with labels of its entries, as series of pandas have."""

    def __init__(self, values, labels):
        super().__init__(values)
        self.index = Labels(labels)


class Labels(list):
    def equals(self, other):
        return self == other


@alone
def test_times_are_no_numbers_and_labels_of_steps_are_one_order():
    graph, settings = nx.path_graph(2), FEW | {"gnn.epochs": 1}
    values, times = drawn()[:, 0, 0], np.arange("2020-01-01", STEPS, dtype="datetime64[D]")
    with pytest.raises(GraphError, match=r"found ndarray that holds no real numbers at node 1"):
        forecast(graph, {0: values, 1: times}, settings=settings)
    with pytest.raises(GraphError, match=r"found ndarray that holds no real numbers at node 1"):
        forecast(graph, {0: values, 1: times - times[0]}, settings=settings)
    one, other = (Labelled(values, labels) for labels in (range(STEPS), reversed(range(STEPS))))
    with pytest.raises(GraphError, match="found series whose indexes differ; a DataFrame of them"):
        forecast(graph, {0: one, 1: other}, settings=settings)
    both = forecast(graph, {0: one, 1: one}, settings=settings)
    assert both.digest == forecast(graph, {0: values, 1: values}, settings=settings).digest


@alone
def test_a_training_that_diverges_says_what_would_be_right():
    settings = FEW | {"gnn.learning_rate": 1e30, "gnn.optimiser": "sgd"}
    with pytest.raises(Diverged, match=r"after epoch 1 is nan; a learning_rate below 1e\+30"):
        forecast(drawn_graph(), drawn(), horizon=2, window=4, settings=settings)
    with pytest.raises(GraphError, match="has no nodes"):
        forecast(nx.Graph(), np.zeros((50, 0)))


@alone
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"series": np.zeros((50, 3))},
            f"series: found the shape 50 x 3; T x {NODES} or T x {NODES} x channels",
        ),
        ({"series": {0: np.zeros(50)}}, "series: found none of node 1"),
        (
            {"series": dict.fromkeys([*range(NODES), "x"], np.zeros(50))},
            "series: found 'x', which is no node",
        ),
        ({"series": np.zeros((14, NODES))}, "has 9 steps of time to learn from; at least 15 would be right"),
        ({"series": np.zeros((5, NODES))}, "has 5 steps of time; at least 12 would be right for a window"),
        ({"series": np.full((50, NODES), np.inf)}, "series: found inf"),
        ({"series": np.full((50, NODES), np.nan)}, "no window to learn from has a known value ahead"),
        ({"series": dict.fromkeys(range(NODES), "a")}, "series: found str that holds no real numbers"),
        ({"series": dict.fromkeys(range(NODES), 1.0)}, "series: found float that holds no real numbers"),
        ({"series": np.full((50, NODES), 1j)}, "series: found ndarray that holds no real numbers"),
        ({"series": None}, "series: found NoneType"),
        ({"horizon": 2, "settings": {"forecast.horizon": 4}}, "given beside horizon=2; leave either out"),
        ({"settings": {"gnn.dropout": 0.1}}, r"gnn\.dropout: is not read by gnn.level = \"forecast\""),
        ({"settings": {"gnn.level": "node"}}, 'gnn.level: must be "forecast", got "node"'),
        ({"settings": {"gnn.depth": 3}}, r"gnn\.depth: is read by forecast.model = \"temporal\""),
        ({"settings": {"forecast.train": 0.9}}, r"train, val and test are 1\.2 in all; at most 1"),
        ({"settings": {"output.probabilities": True}}, r"output\.probabilities: is not read"),
        ({"settings": {"memory.fast_mb": 3}}, r"memory\.fast_mb: is not read"),
        ({"settings": {"graph.labels": "degrees"}}, "graph.labels"),
        ({"weights": 3}, "weights: found int"),
    ],
)
def test_what_does_not_fit_is_refused(more, said):
    given = {"series": np.zeros((50, NODES))} | more
    with pytest.raises((CaseError, GraphError), match=said):
        forecast(drawn_graph(), **given)


@alone
def test_keys_of_forecasts_are_of_forecasts(tmp_path):
    for key, said in (
        ("forecast.hops=3", 'forecast.hops (command line): is read by gnn.level = "forecast" alone'),
        ("graph.series=diffusion", 'graph.series (command line): is read by gnn.level = "forecast"'),
        ("graph.series=diffusion", 'of run.task = "classify" and "study", of [graph]; leave it out'),
    ):
        code, printed = run_job([sys.executable, "run.py", "inputs/gcn.toml", key, "--out", tmp_path / "x"])
        assert code == 2
        assert said in printed.replace("\n  ", " ")


@alone
def test_a_training_that_diverges_names_the_learning_rate():
    """It ends after its first step, before the first epoch is over, and says which key would help."""
    more = {"gnn.learning_rate": 1e38, "gnn.optimiser": "sgd"}
    with pytest.raises(Diverged, match=r"after epoch 1 is nan; a learning_rate below 1e\+38.* in \[gnn\]"):
        forecast(drawn_graph(), drawn()[:, :, 0], settings=PLAIN | more)
