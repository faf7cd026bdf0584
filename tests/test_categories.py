"""Features that are categories (gnn.feature_rows = "one_hot"): what they become, is learned and kept."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import mpirun, run_job
from mpi4py import MPI
from test_classify import same

from app import classify
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.categories import MOST, Categories, refuse_fractions
from app.gnn.classifier import Classifier
from app.gnn.saved import load_model
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.members import with_own_rows
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.union import unite
from app.memory.tiers import TierBudget
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

alone = pytest.mark.mpi_skip
LEVELS = ("node", "graph")
COUNT = 24
QUICK = {"gnn.epochs": 3, "gnn.hidden": 4, "gnn.depth": 2, "gnn.dropout": 0.0, "gnn.input_dropout": 0.3}
ONE_HOT = QUICK | {"gnn.feature_rows": "one_hot"}


def drawn(seed=1):
    """Graphs of 1 to 9 nodes, three columns of categories of all nodes, and a class of each graph."""
    draws = np.random.default_rng(seed)
    graphs = [nx.gnp_random_graph(int(n), 0.4, seed=i) for i, n in enumerate(draws.integers(1, 10, COUNT))]
    n = sum(map(len, graphs))
    X = np.stack([draws.integers(0, 5, n), 7 * draws.integers(-2, 9, n), np.full(n, 3)], axis=1)
    return graphs, X.astype(float), draws.integers(0, 2, COUNT)


def by_hand(X, chosen):
    """A dense one-hot matrix of the categories in the chosen rows, and the categories."""
    values = [np.unique(column[chosen]) for column in X.T]
    return np.concatenate([X[:, [i]] == each for i, each in enumerate(values)], axis=1) * 1.0, values


def chosen_of(level, graphs):
    """The rows whose categories are learned: all nodes, or those of the first 16 graphs, of training."""
    sizes = np.array(list(map(len, graphs)))
    return np.ones(sizes.sum(), bool) if level == "node" else np.repeat(np.arange(COUNT) < 16, sizes)


def classifier_on(group, level, X, settings=None, budget=None):
    """A classifier of drawn graphs, side by side as one or as a set, on a group's ranks."""
    graphs, _, kinds = drawn()
    case = build({"run.task": "classify", "gnn.level": level} | ONE_HOT | (settings or {}))
    whole = level == "graph"
    labels = kinds if whole else np.repeat(kinds, list(map(len, graphs)))
    count = len(labels)
    sets = np.arange(count) < (16 if whole else 40)
    source = unite([stream_of_object(graph, f"g{i}")[0] for i, graph in enumerate(graphs)], "set")
    source = with_own_rows(source) if whole else source
    loaded = load_stream(group, source if group.rank == 0 else None, case.graph, case)
    val = ~sets & (np.arange(count) % 2 == 0)
    table = table_of_arrays(X, labels, sets, val, ~sets & ~val, count)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, 1, budget=budget, members=loaded.members)


# ---- what they become -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_made_by_hand(seed):
    group, draws = Group(MPI.COMM_WORLD, HostDevice()), np.random.default_rng(seed)
    n, width = int(draws.integers(0, 60)), int(draws.integers(1, 5))
    X = draws.integers(-4, int(draws.integers(-3, 30)), (n, width)).astype(np.float32)
    chosen, nodes = draws.random(n) < draws.choice([0.0, 0.2, 1.0]), draws.random(n) < 0.8
    chosen &= nodes
    lo, hi = (n * i // group.size for i in (group.rank, group.rank + 1))
    found = Categories.of(group, X[lo:hi], chosen[lo:hi])
    values = [np.unique(column[chosen]) if chosen.any() else np.zeros(1) for column in X.T]
    assert all(np.array_equal(*each) for each in zip(found.values, values, strict=True))
    rows, unknown = found.expand(X[lo:hi], nodes[lo:hi])
    wanted = np.concatenate([X[:, [i]] == each for i, each in enumerate(values)], axis=1) & nodes[:, None]
    assert np.array_equal(rows.toarray(), wanted[lo:hi])
    assert rows.has_canonical_format
    lacking = [(~np.isin(X[lo:hi, i], each) & nodes[lo:hi]).sum() for i, each in enumerate(values)]
    assert unknown.tolist() == lacking
    again = Categories.read(json.loads(json.dumps(found.told())))
    assert all(np.array_equal(*each) for each in zip(again.values, found.values, strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_a_network_is_that_of_columns_made_by_hand(group, level):
    graphs, X, _ = drawn()
    wide, values = by_hand(X, chosen_of(level, graphs))
    found = classifier_on(group, level, X)
    wanted = classifier_on(group, level, sp.csr_array(wide), {"gnn.feature_rows": "as_given"})
    assert [each.tolist() for each in found.inputs.values] == [each.tolist() for each in values]
    assert found.unknown.tolist() == [(~np.isin(X[:, i], each)).sum() for i, each in enumerate(values)]
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()
    assert np.array_equal(found.scores_own(), wanted.scores_own())


@pytest.mark.parametrize("level", LEVELS)
def test_bits_are_those_of_one_rank_under_a_limit_and_after_a_move(group, single, level):
    _, X, _ = drawn()
    wanted = classifier_on(single, level, X)
    plan = 4 * wanted.engine.n_own * wanted.engine.plan.columns
    kinds = [classifier_on(group, level, X)]
    kinds.append(
        classifier_on(group, level, X, budget=TierBudget(group.max_integer(int(0.8 * plan)), "host"))
    )
    weights = fit(wanted).weights
    rows = kinds[0].block.rows
    cuts = rows.cuts.copy()
    cuts[1:-1] = np.maximum(cuts[1:-1] - 1, 0)
    kinds[0].move(type(rows)(rows.n, rows.starts, cuts))
    for each in kinds:
        assert same(fit(each).weights, weights)
        assert each.evaluate() == wanted.evaluate()


# ---- from Python ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_weights_know_categories_of_other_graphs(shared_path, level):
    """Those of which nothing was learned count as none."""
    graphs, X, labels = drawn()
    if level == "node":
        graphs, labels = nx.disjoint_union_all(graphs), np.repeat(labels, list(map(len, graphs)))
    count = len(labels)
    other = X.copy()
    other[::3, 0] = 99
    learned = classify(graphs, X, labels, train=range(count), settings=ONE_HOT)
    assert learned.model.features == 5 + 11 + 1
    path = str(shared_path / "weights.npz")
    if MPI.COMM_WORLD.rank == 0:
        learned.save(path)
    MPI.COMM_WORLD.barrier()
    hand, _ = by_hand(X, np.ones(len(X), bool))
    hand[::3, :5] = 0
    asked = {"output.probabilities": True}
    plain = QUICK | {"gnn.feature_rows": "as_given"}
    wanted = classify(graphs, sp.csr_array(by_hand(X, np.ones(len(X), bool))[0]), labels, train=range(count),
                      settings=plain)  # fmt: skip
    assert wanted.digest == learned.digest
    wanted = classify(graphs, sp.csr_array(hand), weights=wanted, settings=asked)
    for weights in (learned, path):
        with pytest.warns(UserWarning, match=r"numbers of the features \(column 0\) are categories that no"):
            found = classify(graphs, other, weights=weights, settings=asked)
        assert np.array_equal(found.probabilities, wanted.probabilities)
    trained = classify(graphs, X, labels, train=range(2), weights=path, settings=QUICK)
    assert trained.model.features == learned.model.features
    with pytest.raises((CaseError, GraphError), match="for nodes with 3 features; these have 2"):
        classify(graphs, X[:, :2], weights=path)


def test_embeddings_of_categories_are_added():
    """The first layer's product is the sum of the rows of W that a node's categories have."""
    draws = np.random.default_rng(2)
    X, labels = draws.integers(0, 4, (30, 2)), draws.integers(0, 2, 30)
    settings = {"gnn.feature_rows": "one_hot", "gnn.depth": 1, "gnn.epochs": 20, "output.probabilities": True}
    found = classify(nx.empty_graph(30), X, labels, train=range(30), settings=settings)
    W, b = found.model.arrays["layer1.W"], found.model.arrays["layer1.bias"]
    table = [W[:4], W[4:]]
    Z = table[0][X[:, 0]] + table[1][X[:, 1]] + b
    likely = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert np.allclose(found.probabilities, likely, atol=1e-5)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 1], [1, 0.5], [2, 2], [0, 0]], r"found 0\.5 in row 1, column 1; whole numbers below 2\^24"),
        ([[0, 1], [1, 1], [2, 2], [0, 1 << 24]], "found 16777216.0 in row 3, column 1"),
        ([[0, 1], [1, 1], [-(1 << 24), 2], [0, 0]], "found -16777216.0 in row 2, column 0"),
        (sp.eye_array(4), 'these are sparse; "one_hot" is for dense features'),
        (None, 'there are none; "one_hot" is for dense features'),
    ],
)
def test_features_that_are_no_categories(X, message):
    for order in ("natural", "random"):
        with pytest.raises((CaseError, GraphError), match=message):
            classify(nx.path_graph(4), X, [0, 1, 0, 1], train=[0], settings=ONE_HOT | {"graph.order": order})


def test_a_fraction_in_a_set_of_graphs_is_named_by_its_node():
    graphs, X = [nx.path_graph(2), nx.path_graph(3)], [[1], [2], [3], [4], [0.5]]
    with pytest.raises(GraphError, match=r"found 0\.5 in row 4, column 0"):
        classify(graphs, X, [0, 1], train=[0, 1], settings=ONE_HOT)


def test_a_column_of_too_many_numbers():
    X = np.arange(2 * MOST + 2).reshape(-1, 2) // [4, 1]
    graph = nx.empty_graph(len(X))
    with pytest.raises(GraphError, match=r"column 1 has more than 10,000 categories; at most 10,000, or"):
        classify(graph, X, np.arange(len(X)) % 2, train=[0], settings=ONE_HOT)


def test_rows_are_named_as_they_are_numbered(group):
    rows = np.zeros((5, 2), dtype=np.float32)
    if group.rank == group.size - 1:
        rows[3:, 1] = 0.25
    with pytest.raises(GraphError, match=r"found 0.25 in row 70, column 1"):
        refuse_fractions(group, rows, np.array([4, 6, 5, 70, 8]))


# ---- files ------------------------------------------------------------------------------------------------


@alone
def test_runs_from_files(tmp_path):
    graphs, X, labels = drawn()
    graph = nx.disjoint_union_all(graphs)
    text = "".join(f"{len(graph)} {graph.number_of_edges()}\n" + "\n".join(
        " ".join(str(u + 1) for u in graph[v]) for v in graph) + "\n" for graph in [graph])  # fmt: skip
    (tmp_path / "g.metis").write_text(text)
    np.savetxt(tmp_path / "x.txt", X, fmt="%d")
    np.savetxt(tmp_path / "y.txt", np.repeat(labels, list(map(len, graphs))), fmt="%d")
    command = [
        sys.executable, "run.py", "inputs/gcn.toml", f"graph.path={tmp_path}/g.metis", "gnn.epochs=3",
        f"graph.features={tmp_path}/x.txt", f"graph.labels={tmp_path}/y.txt", "graph.splits=random",
        "gnn.feature_rows=one_hot", "output.plots=false",
    ]  # fmt: skip
    digests = []
    for name, ranks, more in (("a", 1, []), ("b", 2, ["memory.fast_mb=0.02", "graph.order=natural"])):
        code, printed = run_job([*mpirun(ranks), *command, *more, "--out", str(tmp_path / name)])
        assert code == 0, printed
        assert "17 features, 2 classes" in printed
        assert "3 columns of 1 to 11 categories" in printed
        digests.append(json.loads((tmp_path / name / "result.json").read_text())["digest"])
    assert digests[0] == digests[1]
    assert load_model(str(tmp_path / "a" / "weights.npz")).columns == 3
    code, planned = run_job([*command, "--dry-run"])
    assert code == 0, planned
    assert "buffers" in planned
    other = [
        *command,
        f"gnn.weights={tmp_path}/a/weights.npz",
        "gnn.epochs=0",
        'graph.splits=""',
        'graph.labels=""',
    ]
    np.savetxt(tmp_path / "x.txt", X + 1, fmt="%d")
    code, printed = run_job([*other, "--out", str(tmp_path / "c")])
    assert code == 0, printed
    assert "are categories that no weights are for: they count as none" in " ".join(printed.split())


@alone
def test_generators_have_no_categories():
    with pytest.raises(CaseError, match="one_hot is of whole numbers, which no generator draws"):
        build({"run.task": "classify", "graph.generator": "er", "gnn.feature_rows": "one_hot"})


@alone
@pytest.mark.parametrize("wrong", [{"categories": [[1, 1]]}, {"categories": []}, {"mean": [1]}, [1]])
def test_manifests_that_hold_none(wrong):
    with pytest.raises((ValueError, KeyError)):
        Categories.read(wrong)
