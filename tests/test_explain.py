"""Explanations of single predictions (output.explain): gradients by edges, sums, planted causes, ranks."""

import json
import sys
from functools import partial
from types import SimpleNamespace

import layer_models
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import WORLD
from helpers import by_one, dense, random_graph
from jobs import run_job
from layer_models import CONVOLUTIONS, Trial, case_of, reference_scores
from mpi4py import MPI
from test_layers import data_of

from app import classify, explain
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.explain.field import Fields
from app.gnn.explain.network import FieldNetwork, Trained, reach_of
from app.gnn.goals import OneClass
from app.tasks.levels.explained import MaskedDevice

KINDS = [kind for kind in sorted(CONVOLUTIONS) if kind not in ("dense", "gin_batch_norm")]
GRAPH = random_graph(41, 0.1, 3)
NODE, SHARE, STEP = 3, 0.7, 1e-6  # what is explained; of all messages and features; of a difference
TOLERANCE = 4e-5  # of float32 gradients by central differences, relative to the largest
DEAD = ("gcn", "gatv2")  # whose units are dead with layer_norm
QUICK = {"gnn.epochs": 40, "gnn.hidden": 8, "gnn.baselines": False, "gnn.feature_rows": "as_given"}


# ---- gradients -------------------------------------------------------------------------------------------


def masked_scores(M, X, case, values, monkeypatch):
    """Scores in float64 where messages are multiplied by M [n, n], normalisation as without it."""
    A = dense(GRAPH)[0]
    d = np.maximum(A.sum(1), 1)[:, None]

    def mean(own, of):
        return lambda A, H, w, case, spec: H @ w[own] + ((M * A) @ H) / d @ w[of]

    adjacency, shares = layer_models._adjacency, layer_models._shares
    with monkeypatch.context() as changed:
        changed.setattr(layer_models, "_adjacency", lambda A, case: M * adjacency(A, case))
        changed.setattr(layer_models, "_shares", lambda e, near: M * shares(e, near))
        changed.setitem(CONVOLUTIONS, "sage", mean("W_self", "W_neigh"))
        changed.setitem(CONVOLUTIONS, "commnet", mean("W_H", "W_C"))
        changed.setitem(CONVOLUTIONS, "pna", partial(CONVOLUTIONS["pna"], M=M))
        kind = case.layers[1].split()[0]
        given = M * A if kind.startswith("gin") else A
        return reference_scores(given, X, case, 3, values)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("kind", [*KINDS, "gat heads=2", "gatv2 heads=2"])
def test_gradients_by_edges_and_features_are_differences(kind, monkeypatch):
    X, labels = data_of(GRAPH)
    options = "residual" if kind.split()[0] in DEAD else "residual layer_norm"
    case = case_of(kind, options, feature_rows="as_given")
    trial = Trial(Group(MPI.COMM_SELF, HostDevice()), GRAPH, X, labels, case)
    data = SimpleNamespace(features=X, width=X.shape[1], numbers=None, beside=0)
    network = SimpleNamespace(
        case=case, goal=OneClass(), classes=3, device=trial.device, params=trial.engine.params, inputs=None,
        group=trial.group, block=trial.block, engine=trial.engine, members=None, data=data,
        edge_columns=None, model=trial.model,
    )  # fmt: skip
    field = Fields(network, reach_of(trial.model), 1 << 30, 99).of(np.array([NODE]))
    found = FieldNetwork(Trained(network, MaskedDevice()), field)
    known = trial.scores()[NODE]
    assert np.allclose(found.scores(), known, rtol=1e-5, atol=1e-5)
    found.choose(known)
    seed = (np.arange(3) == found.column) - 1 / 3

    def score(change, at, features):
        M, Y = np.full((len(labels),) * 2, SHARE), SHARE * X.astype(float)
        np.fill_diagonal(M, 1)
        (Y if features else M)[at] += change
        if features:
            M[:] = 1
        else:
            Y = X.astype(float)
        return masked_scores(M, Y, case, trial.values, monkeypatch)[NODE] @ seed

    def difference(at, features):
        return (score(STEP, at, features) - score(-STEP, at, features)) / (2 * STEP)

    by_edges = found.gradients(np.full(len(field.weights), SHARE))[0]
    some = np.argsort(-np.abs(by_edges), kind="stable")[:8]
    expected = [difference(tuple(field.nodes[field.ends[:, e]]), False) for e in some]
    assert np.abs(by_edges[some] - expected).max() < TOLERANCE * np.abs(expected).max()
    by_features = found.gradients(share=SHARE)[1]
    rows = np.argsort(-np.abs(by_features).max(axis=1), kind="stable")[:2]
    expected = np.array([[difference((field.nodes[k], j), True) for j in range(5)] for k in rows])
    assert np.abs(by_features[rows] - expected).max() < TOLERANCE * np.abs(expected).max()


# ---- sums, causes, ranks ---------------------------------------------------------------------------------


def planted(centres=60, leaves=4, seed=5):
    """Stars, in each a leaf with a number whose sign is the class of the centre; and a column of noise."""
    draws = np.random.default_rng(seed)
    graph, n = nx.Graph(), centres * (1 + leaves)
    X, labels, carriers = draws.normal(size=(n, 2)) * (0, 0.3), np.full(n, -1), np.zeros(centres, np.int64)
    graph.add_nodes_from(range(n))
    for i in range(centres):
        own = centres + leaves * i + np.arange(leaves)
        graph.add_edges_from((i, int(leaf)) for leaf in own)
        carriers[i], labels[i] = own[draws.integers(leaves)], i % 2
        X[carriers[i], 0] = 2 * labels[i] - 1
    return graph, X.astype(np.float32), labels, carriers


def sums(each, near=1e-5):
    """Assert that contributions add up, as near as `missing` says, which is near enough."""
    for parts, base, missing in (
        (each.of_edges, each.bare, each.missing[0]),
        (each.of_features, each.blank, each.missing[1]),
        (each.of_neighbours, each.blank, each.missing[1]),
    ):
        if len(parts):
            assert abs(each.score - base - parts.sum() - missing) < near * (1 + abs(each.score))
            assert abs(missing) <= max(0.011 * abs(each.score - base), 1.1e-3)


def like_one(told, learn):
    """Assert that one process explains the same; of one rank `told` is that already.

    learn   settings of one process -> what it learns, with its explanations
    """
    if WORLD.size > 1:
        assert by_one(lambda: said(learn({"parallel.spatial": 1}).explanations)) == said(told)


def said(told):
    """All that explanations say, in words and in numbers."""
    return told.text(), repr(told.told())


@pytest.mark.parametrize(
    "settings",
    [
        {"gnn.model": "sage"},
        {"gnn.model": "gat", "gnn.heads": 2},
        {"gnn.model": "gin", "gnn.batch_norm": True},
        {"gnn.model": "pna"},
        {"gnn.model": "linear_attention", "gnn.depth": 1, "gnn.heads": 2},
    ],
    ids=["sage", "gat", "gin batch_norm", "pna", "linear_attention"],
)
def test_the_edge_and_the_feature_that_tell_the_class_come_first(settings):
    graph, X, labels, carriers = planted()
    asked = {**QUICK, **settings, "output.explain": list(range(55, 60)), "parallel.spatial": WORLD.size}
    sets = {"train": range(55), "test": range(55, 60)}
    found = classify(graph, X, labels, settings=asked, comm=WORLD, **sets)
    told = found.explanations
    assert found.scores["test"].accuracy == 1 and [each.node for each in told] == list(range(55, 60))
    for each in told:
        assert each.edges[0] == (each.node, carriers[each.node]) and each.features[0] == 0
        assert each.neighbours[0] == carriers[each.node] and each.of_edges[0] > 0
        assert each.predicted == labels[each.node] and each.taken == 1
        sums(each)
    assert (
        told.fell["explained"] > max(told.fell["random"], 0)
        and told.changed["explained"] > told.changed["random"]
    )
    like_one(told, lambda one: classify(graph, X, labels, settings=asked | one, comm=MPI.COMM_SELF, **sets))
    again = explain(graph, np.arange(55, 60), found, X, settings={"parallel.spatial": WORLD.size}, comm=WORLD)
    assert again.text() == told.text()
    without = classify(graph, X, labels, settings=asked | {"output.explain": 0}, comm=WORLD, **sets)
    assert without.explanations is None and without.digest == found.digest


def small(n=90, seed=2):
    graph = nx.gnm_random_graph(n, 2 * n, seed=seed)
    draws = np.random.default_rng(seed)
    return graph, draws.normal(size=(n, 5)).astype(np.float32), draws.integers(0, 3, n)


@pytest.mark.parametrize("given", ["none", "sparse", "one_hot", "standard", "values", "weights", "arcs"])
def test_contributions_add_up_whatever_a_network_reads(given):
    graph, X, labels = small()
    asked = {**QUICK, "graph.splits": "random", "output.explain": 4, "parallel.spatial": WORLD.size}
    features = {"none": None, "sparse": sp.csr_array(X * (X > 0)), "one_hot": (X > 0) * 2.0}.get(given, X)
    asked |= {"gnn.feature_rows": given} if given in ("one_hot", "standard") else {}
    asked |= {"gnn.goal": "values"} if given == "values" else {}
    if given == "weights":
        nx.set_edge_attributes(graph, {edge: 0.5 + i % 3 for i, edge in enumerate(graph.edges)}, "weight")
        asked["gnn.edge_weights"] = True
    if given == "arcs":
        graph, asked["graph.neighbours"] = nx.gnm_random_graph(90, 180, seed=2, directed=True), "in"
    found = classify(graph, features, labels, settings=asked, comm=WORLD)
    told = found.explanations
    assert len(told) == 4 and len({each.node for each in told}) == 4
    for each in told:
        sums(each)
        if given == "none":
            assert not each.features
        else:
            assert set(each.features) <= set(range(5)) and len(each.features)
        joined = graph.has_edge if given == "arcs" else lambda u, v: graph.has_edge(u, v) and u < v
        assert all(joined(u, v) for u, v in each.edges)
        if given == "arcs":
            assert {u for u, v in each.edges if v == each.node} == set(graph.predecessors(each.node))
    if given == "standard":  # the least certain ones of those that are wrong
        wrong = [each.node for each in told if found.predicted[each.node] != labels[each.node]]
        assert wrong == [each.node for each in told]


@pytest.mark.parametrize(
    ("readout", "model"), [("mean", "gin"), ("max", "gin"), ("sum", "linear_attention"), ("max", "pna")]
)
def test_whole_graphs_are_explained_by_their_nodes(readout, model):
    graphs = [nx.cycle_graph(6 + i % 3) if i % 2 else nx.star_graph(6 + i % 3) for i in range(24)]
    asked = {
        **QUICK, "gnn.hidden": 4, "gnn.model": model, "gnn.depth": 2, "gnn.readout": readout,
        "graph.splits": "random", "output.explain": ["g3", "g4"], "gnn.epochs": 15,
        "parallel.spatial": WORLD.size,
    }  # fmt: skip
    named, kinds = {f"g{i}": graph for i, graph in enumerate(graphs)}, [i % 2 for i in range(24)]
    found = classify(named, labels=kinds, settings=asked, comm=WORLD)
    ring, star = found.explanations
    assert (ring.node, star.node) == ("g3", "g4") and found.explanations.what == "graph"
    assert set(ring.edges) <= {tuple(sorted(edge)) for edge in graphs[3].edges}
    assert set(star.neighbours) <= set(graphs[4])
    for each in (ring, star):
        sums(each)
    like_one(
        found.explanations,
        lambda one: classify(named, labels=kinds, settings=asked | one, comm=MPI.COMM_SELF),
    )


def test_attention_to_all_nodes_is_explained_on_all_of_them():
    graph, X, labels = small(40)
    asked = {
        **QUICK,
        "gnn.epochs": 8,
        "gnn.model": "linear_attention",
        "graph.splits": "random",
        "output.explain": [5],
    }
    graph = nx.DiGraph([(u, v) if (u + v) % 3 else (v, u) for u, v in graph.edges])
    graph.add_nodes_from(range(40))
    asked |= {"graph.neighbours": "in", "graph.splits": "random"}
    for depth in (1, 2):
        both = asked | {"gnn.depth": depth, "gnn.members": 3 - depth}
        found = classify(graph, X, labels, settings=both | {"parallel.spatial": WORLD.size}, comm=WORLD)
        (each,) = found.explanations
        sums(each)
        assert sorted(each.neighbours) == sorted(graph) and np.count_nonzero(each.of_neighbours) == 40
        # one layer: what others are does not depend on edges; two: on all of them
        assert set(each.edges) == (set(graph.in_edges(5)) if depth == 1 else set(graph.edges))
        assert np.count_nonzero(each.of_edges) == len(each.edges)
        like_one(
            found.explanations,
            lambda one, both=both: classify(graph, X, labels, settings=both | one, comm=MPI.COMM_SELF),
        )


# ---- files, refusals -------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_a_run_writes_what_made_predictions(tmp_path):
    asked = ["gnn.epochs=5", "output.plots=false", "graph.nodes=300", "output.explain=[7, 8]"]
    command = [sys.executable, "run.py", "inputs/gcn.toml", *asked, "--out", out := tmp_path / "out"]
    code, said = run_job(command)
    assert code == 0, said
    lines = next((out / "explanations").iterdir()).read_text().splitlines()
    assert lines[0] == "node,kind,what,contribution" and lines[1].startswith("7,score,")
    assert {line.split(",")[1] for line in lines[1:]} == {"score", "edge", "feature", "neighbour"}
    told = json.loads((out / "result.json").read_text())["explanations"]
    assert told["explained"] == 2 and told["left_out"] == 0 and set(told["fell"]) == set(told["changed"])
    assert "explanations: 2 nodes" in (out / "log.txt").read_text()


@pytest.mark.parametrize("model", ["gat", "gatv2", "gcn", "pna", "sage"])
def test_nodes_without_edges_are_explained_by_their_own_features(model):
    graph, X, labels = small()
    graph.add_node(lone := len(graph))
    X, labels = np.vstack([X, X[:1]]), np.append(labels, 0)
    asked = {**QUICK, "gnn.epochs": 2, "gnn.model": model, "graph.splits": "random", "output.explain": [lone]}
    (each,) = classify(graph, X, labels, settings=asked, comm=WORLD).explanations
    assert not each.edges and each.neighbours == [lone] and each.score == each.bare and each.taken == 0
    sums(each)


@pytest.mark.parametrize("hears", ["in", "out"])
def test_edges_of_directed_graphs_are_their_arcs(hears):
    graph = nx.gnm_random_graph(40, 90, seed=4, directed=True)
    X = np.random.default_rng(3).normal(size=(40, 3))
    asked = {**QUICK, "gnn.epochs": 2, "graph.splits": "random", "graph.neighbours": hears}
    asked["output.explain"] = [7]
    (each,) = classify(graph, X, (X[:, 0] > 0) * 1, settings=asked, comm=WORLD).explanations
    near = {edge for edge in each.edges if edge[["out", "in"].index(hears)] == 7}
    assert near == set(graph.in_edges(7) if hears == "in" else graph.out_edges(7)) and near
    assert all(graph.has_edge(u, v) for u, v in each.edges)


def test_names_that_read_alike_are_told_apart():
    graph = nx.Graph([(1, "1"), ("1", "a"), ("a", 2)])
    X = np.arange(8.0).reshape(4, 2)
    asked = {**QUICK, "gnn.epochs": 1, "output.explain": [1, "1", "2"]}
    told = classify(graph, X, [0, 1, 0, 1], train=graph, settings=asked, comm=WORLD).explanations
    assert [each.node for each in told] == [1, "1", 2]


def test_of_numbers_no_prediction_is_said_to_change():
    graph, X, _ = small()
    asked = {**QUICK, "gnn.epochs": 2, "gnn.goal": "values", "graph.splits": "random"}
    learned = classify(graph, X, X[:, 0], settings=asked, comm=WORLD)
    found = explain(graph, np.int64(1), learned, X, comm=WORLD)
    assert len(found) == 1 and found.fell and not found.changed
    assert [line for line in found.log_lines() if "1 node," in line]
    assert not [line for line in found.log_lines() if "change" in line]


def test_what_is_not_explained_is_refused_in_one_line():
    graph, X, labels = small()
    asked = {**QUICK, "gnn.epochs": 2, "graph.splits": "random", "output.explain": [1, 500]}
    with pytest.raises(CaseError, match=r"output\.explain: 500 is no node of the graph"):
        classify(graph, X, labels, settings=asked, comm=WORLD)
    asked["output.explain"] = [[1, 2]]
    with pytest.raises(CaseError, match=r"output\.explain: \[1, 2\] is no node of the graph; ids of such"):
        classify(graph, X, labels, settings=asked, comm=WORLD)
    asked["output.explain"] = 2
    with pytest.raises(CaseError, match=r"output\.explain: is not read beside folds; leave it out"):
        classify(graph, X, labels, settings=QUICK | {"output.explain": 2}, comm=WORLD, folds=3)
    with pytest.warns(UserWarning, match=r"output\.explain: node \d+, and 1 more left out"):
        few = asked | {"memory.whole_graph_mb": 1e-4}
        found = classify(graph, X, labels, settings=few, comm=WORLD)
    assert not len(found.explanations) and len(found.explanations.left_out) == 2


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({"output.explain": -1}, r"must be a whole number, at least 0 or a list, .*, got -1"),
        ({"gnn.level": "embed"}, r'not of gnn\.level = "embed"'),
        ({"run.task": "study", "study.kind": "folds"}, r'is read by run\.task = "classify" alone'),
    ],
)
def test_cases_whose_predictions_are_not_explained_are_refused(settings, right):
    asked = {"run.task": "classify", "graph.generator": "sbm", "graph.nodes": 50, "output.explain": 3}
    with pytest.raises(CaseError, match=rf"output\.explain.*: .*{right}"):
        build(asked | settings)
