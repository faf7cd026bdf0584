"""Classes and numbers of whole graphs (gnn.level = "graph"): readouts, sets of graphs, what is refused."""

import gzip
import json
import sys
import warnings
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import EXCHANGES, crossed
from jobs import mpirun, run_job, split_over
from mpi4py import MPI
from test_classify import same

from app import classify
from app.case.file import build
from app.comm.group import Group
from app.commands.report import report
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.classifier import Classifier
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits
from app.graphs.formats.tu import read_table
from app.graphs.generators.motifs import MOTIFS, SIZE, motif_of, with_motif
from app.graphs.graph import IN_A
from app.graphs.members import Members, readout_rows, with_own_rows
from app.graphs.nodes.data import SparseFeatures
from app.graphs.nodes.degrees import ALONE, RANGES, degree_ranges
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.union import unite
from app.memory.tiers import TierBudget
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.context import context_of_settings
from app.tasks.levels.reading import load

alone = pytest.mark.mpi_skip
MODELS = ("gcn", "sage", "gat", "gin", "gin_norm", "commnet")
PLAIN = {
    "run.task": "classify", "gnn.level": "graph", "gnn.feature_rows": "as_given", "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.hidden": 8, "gnn.weight_decay": 0.0,
}  # fmt: skip
READOUTS = [(readout, of) for readout in ("mean", "sum") for of in ("last", "all")]
COUNT, WIDTH = 40, 3


def drawn(seed=1):
    """Graphs of 1 to 12 nodes, features of all nodes, a class and a set (0, 1, 2) of each graph."""
    draws = np.random.default_rng(seed)
    graphs = [nx.gnp_random_graph(int(n), 0.4, seed=i) for i, n in enumerate(draws.integers(1, 13, COUNT))]
    X = draws.normal(size=(sum(map(len, graphs)), WIDTH))
    return graphs, X, draws.integers(0, 3, COUNT), draws.permutation(COUNT) % 3


def set_of(graphs):
    """Their stream, side by side."""
    streams = [stream_of_object(graph, f"g{i}")[0] for i, graph in enumerate(graphs)]
    return unite(streams, "set") if len(streams) > 1 else streams[0]


def classifier_on(group, settings=None, exchange="auto", budget=None, seed=1, values=False):
    """A classifier of drawn graphs on a group's ranks."""
    graphs, X, labels, sets = drawn()
    case = build(PLAIN | (settings or {}))
    source = with_own_rows(set_of(graphs)) if group.rank == 0 else None
    loaded = load_stream(group, source, case.graph, case)
    table = table_of_arrays(X, labels, *(sets == i for i in range(3)), COUNT, values=values)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, seed, budget=budget, members=loaded.members)


def of_graphs(classifier, own):
    """[graphs, ...] from the rows of all ranks."""
    block = classifier.block
    rows = np.ascontiguousarray(own[: block.n_real])
    return classifier.group.gather_host(rows, block.rows.row_counts())[classifier.members.own_rows]


# ---- rows -------------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("sizes", [[3, 1, 4], [1], [2, 0, 3, 0], [0]])
def test_the_matrix_of_a_readout(sizes):
    members = Members(np.concatenate([[0], np.cumsum(np.array(sizes) + 1)]))
    n, own = sum(sizes) + len(sizes), np.cumsum(np.array(sizes) + 1) - 1
    wanted = np.zeros((n, n), bool)
    for size, row in zip(sizes, own):
        wanted[row, row - size : row] = True
    for cut in range(n + 1):
        parts = [readout_rows(members, "R", lo, hi) for lo, hi in ((0, cut), (cut, n))]
        for bit, dense in ((IN_A, wanted), (3 - IN_A, wanted.T)):
            rows = [
                sp.csr_array(((g.arcs & bit) > 0, g.indices, g.indptr), shape=(g.hi - g.lo, n)).toarray()
                for g in parts
            ]
            assert np.array_equal(np.concatenate(rows), dense)
    assert members.own_rows.tolist() == own.tolist()
    assert (members.count, members.nodes) == (len(sizes), sum(sizes))
    assert sorted([*members.own_rows, *members.node_rows]) == list(range(n))
    assert all(members.own_of(lo, n).tolist() == np.isin(range(lo, n), own).tolist() for lo in range(n))


@alone
def test_edges_are_those_of_the_graphs():
    graphs, *_ = drawn()
    opened = with_own_rows(set_of(graphs))
    found = nx.Graph()
    found.add_nodes_from(range(opened.nodes))
    for u, v, _ in opened.chunks():
        found.add_edges_from(zip(u.tolist(), v.tolist()))
    for graph, first, row in zip(graphs, opened.members.starts, opened.members.own_rows):
        part = found.subgraph(range(first, row))
        assert nx.utils.graphs_equal(
            nx.convert_node_labels_to_integers(graph),
            nx.relabel_nodes(part, lambda v, first=first: v - first),
        )
        assert not found[row]


@alone
def test_an_edge_between_graphs_is_refused():
    opened = set_of([nx.path_graph(5)])
    opened.sizes = np.array([2, 3])
    with pytest.raises(GraphError, match="from node 1 to node 2, counted from 0, joins two graphs"):
        list(with_own_rows(opened).chunks())


@alone
def test_ranges_of_degrees():
    degrees = np.arange(20000)
    columns = degree_ranges(degrees)
    assert columns[:ALONE].tolist() == list(range(ALONE))
    assert (np.diff(columns) >= 0).all()
    assert columns[-1] == RANGES - 1
    for column in range(ALONE, RANGES - 1):
        inside = degrees[columns == column]
        octave, quarter = divmod(column - ALONE, 4)
        assert (inside[0], inside[-1] + 1) == tuple(
            ALONE * 2**octave * (4 + quarter + i) // 4 for i in (0, 1)
        )


def test_a_row_of_features_that_names_a_column_twice_is_told_by_its_node(group):
    columns, indptr = np.array([0, 2, 2], np.int32), np.array([0, 1, 1, 1, 1, 3])
    parts = partial(map, lambda count: (columns[len(columns) - count :], None))  # all entries come together
    X = SparseFeatures(5, 3, indptr, True, parts, GraphError)
    source = with_own_rows(set_of([nx.path_graph(2), nx.path_graph(3)])) if group.rank == 0 else None
    case = build(PLAIN)
    loaded = load_stream(group, source, case.graph, case)
    table = replace(table_of_arrays(None, np.array([0, 1]), n=2), features=X) if group.rank == 0 else None
    with pytest.raises(GraphError, match="row 4 names a column twice"):
        deal_node_table(group, table, loaded)


# ---- what is computed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("readout", "of"), READOUTS)
@pytest.mark.parametrize("model", MODELS)
def test_a_graph_is_told_by_its_own_nodes(group, model, readout, of):
    """Scores are W times the sum or mean of what layers make of the graph alone."""
    settings = {"gnn.model": model, "gnn.readout": readout, "gnn.readout_of": of}
    classifier = classifier_on(group, settings)
    params = classifier.params
    params.set({name: value * 3 for name, value in drawn_like(params).items()})
    scores, told = (of_graphs(classifier, own) for own in (classifier.scores_own(), classifier.embed_own()))
    names = [name for name in params.shapes if name.startswith("layer3.W_")]
    W = np.concatenate([classifier.device.get(params[name]) for name in names])
    assert len(W) == told.shape[1] == (16 if of == "all" else 8)
    assert np.allclose(scores, told @ W + classifier.device.get(params["layer3.bias"]), rtol=1e-4, atol=1e-4)
    graphs, X, *_ = drawn()
    first = np.cumsum([0, *map(len, graphs)])
    solo = Group(MPI.COMM_SELF, group.device)
    for i in (0, 7, COUNT - 1):
        case = build(
            PLAIN
            | settings
            | {"gnn.level": "node", "gnn.depth": 3, "gnn.readout": "mean", "gnn.readout_of": "last"}
        )
        loaded = load_stream(solo, stream_of_object(graphs[i])[0], case.graph, case)
        rows = X[first[i] : first[i + 1]]
        data = deal_node_table(solo, table_of_arrays(rows, np.arange(len(rows)) % 2, n=len(rows)), loaded)
        block = RowBlock(solo, loaded.graph, loaded.rows, "auto", 8)
        one = Classifier(solo, case.gnn, block, data, 1)
        known = {
            name: classifier.device.get(params[name])
            for name in params.shapes
            if not name.startswith("layer3")
        }
        one.params.set(
            known
            | {name: np.zeros(s, np.float32) for name, s in one.params.shapes.items() if name not in known}
        )
        H = one.embed_own()[: len(rows)]
        wanted = H.sum(axis=0) if readout == "sum" else H.mean(axis=0)
        assert np.allclose(told[i, -8:], wanted, rtol=1e-4, atol=1e-5)


def drawn_like(params):
    """Values for all parameters, none at a special point."""
    draws = np.random.default_rng(5)
    return {name: draws.uniform(-0.4, 0.4, shape).astype(np.float32) for name, shape in params.shapes.items()}


def difference(classifier, values, name, at, step):
    """What the loss changes by along one parameter, for each unit of it."""
    losses = []
    for sign in (1, -1):
        moved = {each: array.copy() for each, array in values.items()}
        moved[name].reshape(-1)[at] += sign * step
        classifier.params.set(moved)
        losses.append(classifier.epoch(1))
    return (losses[0] - losses[1]) / (2 * step)


@pytest.mark.parametrize(("model", "read"), crossed([*MODELS, "appnp", "gcn2"], READOUTS))
def test_gradients_are_those_of_differences(model, read):
    readout, of = read
    group = Group(MPI.COMM_WORLD, HostDevice())  # other devices make its bits
    more = {
        "gcn": {"gnn.residual": True, "gnn.layer_norm": True},
        "gcn2": {"gnn.batch_norm": True, "gnn.dropout": 0.3},
    }.get(model, {})
    settings = {"gnn.model": model, "gnn.readout": readout, "gnn.readout_of": of, **more}
    classifier = classifier_on(group, settings)
    values = drawn_like(classifier.params)
    classifier.params.set(values)
    classifier.epoch(1)
    gradient = np.array(classifier.device.get(classifier.engine.gradient)).astype(np.float64)
    draws, wrong, steps = np.random.default_rng(9), 0, (1e-3, 3e-4) if model == "gcn2" else (4e-3, 1e-3)
    for name in values:
        part = gradient[classifier.params.slices[name]]
        for at in draws.permutation(values[name].size)[:3]:
            found = [difference(classifier, values, name, at, step) for step in steps]
            wrong += min(abs(part[at] - each) - 0.04 * abs(each) for each in found) > 2e-3
    assert wrong <= 1  # an activation may begin between two losses
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("readout", "of"), READOUTS)
def test_bits_are_those_of_one_rank(group, single, device, exchange, readout, of):
    settings = {
        "gnn.model": "gin" if of == "last" else "gcn2",
        "gnn.batch_norm": True,
        "gnn.readout": readout,
        "gnn.readout_of": of,
        "gnn.dropout": 0.3,
        "gnn.epochs": 4,
    }
    found = classifier_on(Group(group.comm, device), settings, exchange)
    wanted = classifier_on(single, settings, exchange)
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()
    for name in ("scores_own", "embed_own", "probabilities_own"):
        assert np.array_equal(*(of_graphs(each, getattr(each, name)()) for each in (found, wanted)))


def test_an_epoch_makes_what_training_graphs_need(group):
    classifier = classifier_on(group, {"gnn.model": "gcn", "gnn.depth": 3, "gnn.first_product": "live"})
    engine, (graphs, _, _, sets) = classifier.engine, drawn()
    edges = np.array([graph.number_of_edges() for graph in graphs])
    share = edges[sets == 0].sum() / edges.sum()
    assert sorted(engine.narrow) == [0, 1, 2]
    assert all(each.share == pytest.approx(share) for each in engine.narrow.values())
    narrow, engine.narrow = engine.narrow, {}
    loss, gradient = classifier.epoch(1), np.array(classifier.device.get(engine.gradient))
    engine.narrow = narrow
    assert classifier.epoch(1) == loss
    assert np.array_equal(classifier.device.get(engine.gradient), gradient)


def test_batch_normalisation_is_over_the_nodes_of_training_graphs(group):
    classifier = classifier_on(group, {"gnn.model": "gin", "gnn.batch_norm": True, "gnn.epochs": 1})
    graphs, _, _, sets = drawn()
    assert classifier.engine.counted_rows == sum(len(g) for g, kind in zip(graphs, sets) if kind == 0)
    held = classifier.engine.counted
    nodes = classifier._nodes(classifier.block)
    assert not np.array(classifier.device.get(held))[~nodes].any()


def test_features_have_the_scale_of_the_nodes_of_training_graphs(group):
    classifier = classifier_on(group, {"gnn.feature_rows": "standard"})
    graphs, X, _, sets = drawn()
    chosen = np.repeat(sets == 0, list(map(len, graphs)))
    scale = classifier.inputs
    assert np.allclose(scale.mean, X[chosen].mean(axis=0), rtol=1e-5, atol=1e-7)
    assert np.allclose(scale.deviation, X[chosen].std(axis=0), rtol=1e-5)


@pytest.mark.parametrize("of", ["last", "all"])
def test_a_limit_of_memory_changes_no_bit(group, of):
    settings = {"gnn.model": "gin_norm", "gnn.epochs": 3, "gnn.readout_of": of}
    wanted = classifier_on(group, settings)
    plan = 4 * wanted.engine.n_own * wanted.engine.plan.columns
    limit = group.max_integer(int(0.8 * plan))
    found = classifier_on(group, settings, budget=TierBudget(limit, "host"))
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()


def test_rows_may_move_between_epochs(group):
    wanted, found = (classifier_on(group, {"gnn.model": "gcn", "gnn.epochs": 2}) for _ in range(2))
    rows = found.block.rows
    cuts = rows.cuts.copy()
    cuts[1:-1] = np.maximum(cuts[1:-1] - 1, 0)
    found.move(type(rows)(rows.n, rows.starts, cuts))
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()


def test_numbers_of_graphs(group):
    classifier = classifier_on(group, {"gnn.goal": "values", "gnn.epochs": 5}, values=True)
    fit(classifier)
    _, _, labels, sets = drawn()
    error = of_graphs(classifier, classifier.predict_own())[:, 0].astype(float) - labels
    for i, scores in enumerate(classifier.evaluate().values()):
        assert scores.nodes == (sets == i).sum()
        assert scores.mae == pytest.approx(np.abs(error[sets == i]).mean(), rel=1e-4)


# ---- from Python ------------------------------------------------------------------------------------------


def bipartite_or_not():
    """Rings of 5 to 8 nodes, and whether they are bipartite."""
    graphs = [nx.cycle_graph(5 + i % 4) for i in range(24)]
    return graphs, [len(graph) % 2 == 0 for graph in graphs]


QUICK = {"gnn.epochs": 3, "gnn.hidden": 4, "gnn.depth": 1}
FORMS = {
    "networkx": lambda graphs: graphs,
    "sparse": lambda graphs: [nx.to_scipy_sparse_array(graph) for graph in graphs],
    "arrays": lambda graphs: tuple(nx.to_numpy_array(graph) for graph in graphs),
    "mapping": lambda graphs: {f"g{i}": graph for i, graph in enumerate(graphs)},
    "iterator": iter,
    "objects": lambda graphs: np.array([*graphs, None], dtype=object)[:-1],
    "table": lambda graphs: [TableOfEdges(graph) for graph in graphs],
}


class TableOfEdges:
    """What DataFrames of pandas and polars have in common, of a graph's edges."""

    def __init__(self, graph):
        self.columns, self._edges = ["u", "v"], np.array(graph.edges)

    def __getitem__(self, name):
        return self._edges[:, self.columns.index(name)]

    def to_numpy(self):
        return self._edges


@pytest.mark.parametrize("form", FORMS)
def test_sets_of_all_forms_are_one(form):
    graphs, labels = bipartite_or_not()
    features = [np.full((len(graph), 1), i / 24) for i, graph in enumerate(graphs)]
    usual = classify(
        graphs, np.concatenate(features), labels, train=range(12), test=range(12, 24), settings=QUICK
    )
    given = FORMS[form](graphs)
    if form == "mapping":
        features, labels = dict(zip(given, features)), dict(zip(given, labels))
    named = form == "mapping"
    train = [f"g{i}" for i in range(12)] if named else [i < 12 for i in range(24)]
    test = [f"g{i}" for i in range(12, 24)] if named else range(12, 24)
    found = classify(given, features, labels, train=train, test=test, settings=QUICK)
    assert found.digest == usual.digest
    assert found.nodes == (list(given) if named else list(range(24)))
    assert np.array_equal(found.predicted, usual.predicted)
    assert "24 graphs" in repr(found)


def test_what_was_learned_is_applied_to_other_graphs():
    graphs, labels = bipartite_or_not()
    names = ["yes" if each else "no" for each in labels]
    asked = {"gnn.epochs": 40, "output.embeddings": True, "output.probabilities": True}
    learned = classify(graphs, labels=names, train=range(24), settings=asked)
    assert learned.embeddings.shape == (24, 32)
    assert learned.probabilities.sum(axis=1) == pytest.approx(1)
    applied = classify([nx.cycle_graph(6), nx.cycle_graph(7)], weights=learned)
    assert applied.predicted.tolist() == learned.predicted[[1, 2]].tolist()
    options = {"labels": ["no", "yes"], "train": [0, 1], "settings": {"gnn.epochs": 1}}
    with warnings.catch_warnings(record=True) as said:
        classify([nx.cycle_graph(6), nx.cycle_graph(7)], weights=learned, **options)
    assert not any("bring their layers" in str(each.message) for each in said)
    one = classify(nx.cycle_graph(6), weights=learned, settings={"gnn.level": "graph"})
    assert one.predicted.tolist() == applied.predicted[:1].tolist()
    with pytest.raises(CaseError, match="says what graphs are"):
        classify(nx.cycle_graph(64), weights=learned)


def test_three_dimensional_arrays_are_sets():
    stack = np.array([nx.to_numpy_array(nx.cycle_graph(4)), nx.to_numpy_array(nx.path_graph(4))] * 3)
    found = classify(stack, labels=[0, 1] * 3, train=range(6), settings=QUICK)
    assert len(found.predicted) == 6


def test_features_of_three_dimensions_are_those_of_sets():
    stack = np.array([nx.to_numpy_array(nx.cycle_graph(4)), nx.to_numpy_array(nx.path_graph(4))] * 3)
    X = np.random.default_rng(1).normal(size=(6, 4, 2))
    found, usual = (
        classify(stack, each, [0, 1] * 3, train=range(6), settings=QUICK) for each in (X, X.reshape(24, 2))
    )
    assert found.digest == usual.digest


def test_graphs_without_weights_leave_others_theirs():
    weighted = nx.Graph([(0, 1, {"weight": 2.0}), (1, 2, {"weight": 3.0})])
    ones, none = nx.path_graph(3), nx.empty_graph(2)
    settings = QUICK | {"gnn.edge_weights": True, "gnn.model": "gcn"}
    plain = [weighted, nx.to_scipy_sparse_array(ones), none]
    found = classify(plain, labels=[0, 1, 0], train=range(3), settings=settings)
    nx.set_edge_attributes(ones, 1.0, "weight")
    wanted = classify([weighted, ones], labels=[0, 1], weights=found, settings={"output.embeddings": True})
    alone = classify([weighted], labels=[0], weights=found, settings={"output.embeddings": True})
    assert np.array_equal(alone.embeddings[0], wanted.embeddings[0])
    all_ones = classify([ones], labels=[1], weights=found, settings={"output.embeddings": True})
    assert np.array_equal(all_ones.embeddings[0], wanted.embeddings[1])
    doubled = [nx.Graph([(0, 1, {"weight": 4.0}), (1, 2, {"weight": 6.0})]), *plain[1:]]
    other = classify(doubled, labels=[0, 1, 0], train=range(3), settings=settings)
    assert other.digest != found.digest


def test_the_recipe_gives_way_to_layers_and_to_weights(recwarn):
    graphs, labels = bipartite_or_not()
    settings = {"gnn.layers": ["gin 4", "gcn 3"], "gnn.epochs": 2}
    learned = classify(graphs, labels=labels, train=range(24), settings=settings)
    assert learned.model.case.layers == ["gin 4", "gcn 3"]
    classify(graphs, weights=learned)
    assert not [each for each in recwarn if "the weights bring their layers" in str(each.message)]


@pytest.mark.parametrize("nothing", [[], {}, np.zeros((0, 4, 4))])
def test_sets_without_graphs_are_refused(nothing):
    with pytest.raises(GraphError, match="a set without graphs; at least one would be right"):
        classify(nothing, labels=[], train=[], settings={"gnn.level": "graph"})


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([nx.path_graph(3), "x.txt"], r"graph 1 \(from 0\): found the name of a file among graphs in memory"),
        ([nx.path_graph(3), None], r"graph 1 \(from 0\): graph: a NetworkX graph"),
    ],
)
def test_what_is_no_graph_of_a_set_is_told_by_its_place(graphs, message):
    with pytest.raises(GraphError, match=message):
        classify(graphs, labels=[0, 1], train=[0, 1], settings=QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0] * 23}, "found 23 rows; 24, one for each graph of graphs, would be right"),
        ({"features": [[1.0]] * 5}, "found 5 rows; 156, one for each node of graphs, would be right"),
        ({"features": [np.ones((3, 1))] * 24}, r"found shape \(3, 1\) for graph 0 \(from 0\); \[5, F\]"),
        ({"features": [np.ones((3, 1))] * 3}, "found 3 items; 24, one for each graph, would be right"),
        ({"features": [None] + [np.ones((5, 1))] * 23}, r"found shape \(\) for graph 0 \(from 0\); \[5, F\]"),
        ({"features": [{0: [1.0]}] * 24}, r"graph 0 \(from 0\): features: none of node 1"),
        ({"train": [24]}, r"graph numbers 0\.\.23"),
        ({"train": [True] * 5}, "found 5 rows; 24, one for each graph, would be right"),
        ({"settings": {"gnn.level": "node", "gnn.depth": 2}}, "found a set of 24 graphs; one graph, or"),
        ({"settings": {"graph.order": "random"}}, '"natural" would be right for sets of graphs'),
        ({"settings": {"graph.complement": True}}, "graph.complement: must be false for sets of graphs"),
        ({"train": None}, "no graph is to be trained on"),
        ({"labels": None}, "the graphs have no labels"),
        ({"train": [0, 1], "test": [1]}, "graph 1 in both train and test"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(options, message):
    graphs, labels = bipartite_or_not()
    given = {"labels": labels, "train": range(12), "settings": QUICK} | options
    if "settings" in options:
        given["settings"] = QUICK | options["settings"]
    with pytest.raises((CaseError, GraphError), match=message):
        classify(graphs, **given)


def test_keys_of_readouts_are_of_graphs_alone():
    for key, value in (("readout", "sum"), ("readout_of", "all")):
        with pytest.raises(CaseError, match=f'gnn.{key}: is read by gnn.level = "graph" alone'):
            classify(nx.cycle_graph(4), labels=[0, 1, 0, 1], train=[0], settings={f"gnn.{key}": value})


def test_degrees_are_features_of_nodes_too():
    graph = nx.barabasi_albert_graph(60, 2, seed=1)
    labels = [int(degree > 3) for _, degree in graph.degree]
    settings = {"graph.features": "degrees", "gnn.own_loops": True, "gnn.model": "sage", "gnn.dropout": 0.0}
    found = classify(graph, labels=labels, train=range(60), settings=settings | {"gnn.input_dropout": 0.0})
    assert found.model.features == RANGES
    assert found.scores["train"].accuracy > 0.95
    other = nx.barabasi_albert_graph(30, 2, seed=2)
    assert len(classify(other, weights=found, settings={"graph.features": "degrees"}).predicted) == 30


# ---- files ------------------------------------------------------------------------------------------------


def write_tu(folder, labels=("1", "-1", "1"), kinds=None, attributes=None, pack=False):
    """A set of a triangle, an edge and a node, as TU Dortmund has it."""
    texts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n", "graph_indicator": "1\n1\n1\n2\n2\n3\n",
        "graph_labels": "".join(f"{each}\n" for each in labels), "node_labels": kinds,
        "node_attributes": attributes,
    }  # fmt: skip
    folder.mkdir()
    for name, text in texts.items():
        if text is not None:
            path = folder / f"TOY_{name}.txt"
            path.write_text(text)
            if pack:
                path.with_suffix(".txt.gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
    return str(folder)


@alone
@pytest.mark.parametrize("pack", [False, True])
def test_folders_of_tu(tmp_path, pack):
    path = write_tu(tmp_path / "TOY", kinds="0\n1\n0\n2\n2\n0\n", attributes="1.5, 2\n" * 6, pack=pack)
    opened = open_edges(path, "tu")
    assert (opened.name, opened.nodes, opened.sizes.tolist(), opened.first_graph) == ("TOY", 6, [3, 2, 1], 1)
    assert sum(len(u) for u, *_ in opened.chunks()) == 8
    table = read_table(path, Limits())
    X = np.concatenate(list(table.features.parts()))
    assert X.tolist() == [[1.5, 2, *np.eye(3)[kind]] for kind in (0, 1, 0, 2, 2, 0)]
    assert table.labels.names == ("-1", "1")
    assert np.concatenate(list(table.labels.parts())).tolist() == [1, 0, 1]
    values = read_table(path, Limits(), values=True).labels
    assert np.concatenate(list(values.parts())).tolist() == [[1], [-1], [1]]


@alone
def test_kinds_alone_are_sparse_and_labels_from_zero_are_numbers(tmp_path):
    table = read_table(write_tu(tmp_path / "TOY", "201", "0, 1\n" * 5 + "2, 0\n"), Limits())
    (columns, values), *_ = table.features.parts([12])
    assert (table.features.width, values) == (5, None)
    assert columns.tolist() == [0, 4] * 5 + [2, 3]
    assert (table.labels.names, next(table.labels.parts()).tolist()) == ((), [2, 0, 1])


@alone
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("graph_indicator", "1\n2\n1\n2\n2\n3\n", "graph 1 of node 3; graphs from 1, the nodes of one after"),
        ("graph_indicator", "0\n1\n1\n2\n2\n3\n", "graph 0 of node 1"),
        ("graph_indicator", "1\n1\n1\n2\n2\n9\n", "found graph 9; at most 6 would be right"),
        ("graph_indicator", "x\n", "found"),
        ("A", "1, 7\n", r"1\.\.6"),
        ("A", "1, 4\n", "joins two graphs"),
        ("graph_labels", "1\n2\n", "found 2 rows; 3, one for each graph of TOY, would be right"),
        ("graph_labels", "1\n2.5\n1\n", "found 2.5; whole numbers would be right"),
        ("node_labels", "0\n", "found 1 rows; 6, one for each node of TOY, would be right"),
        ("node_labels", "-1\n" * 6, "found kind -1; numbers from 0 would be right"),
        ("node_labels", "99999\n" * 6, "found 100000 kinds; at most 65536"),
    ],
)  # fmt: skip
def test_folders_that_are_wrong(tmp_path, name, text, message):
    path = write_tu(tmp_path / "TOY")
    (tmp_path / "TOY" / f"TOY_{name}.txt").write_text(text)
    with pytest.raises(GraphError, match=message):
        path_case(path)


def path_case(path):
    """Read a folder of TU, as the command line does; raises the error that it would print."""
    load_case({"graph.path": path, "graph.format": "tu"})


def load_case(keys):
    """Read what a case names."""
    return load(context_of_settings(PLAIN | keys, MPI.COMM_SELF, False))


@alone
def test_a_folder_without_its_files(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(GraphError, match="holds 0 files that end in"):
        open_edges(str(tmp_path / "a"), "tu")
    (tmp_path / "a" / "X_A.txt").write_text("1, 2\n")
    with pytest.raises(GraphError, match=r"holds no X_graph_indicator\.txt"):
        open_edges(str(tmp_path / "a"), "tu")
    path = write_tu(tmp_path / "TOY")
    with pytest.raises(GraphError, match=r'holds 3 graphs; one graph, or gnn.level = "graph"'):
        classify(path, settings={"graph.format": "tu"})


def write_ogb(folder):
    """A triangle and an edge as OGB has sets of graphs, the first to train on, the other to test."""
    for name in ("raw", "split/scaffold"):
        (folder / name).mkdir(parents=True)
    for name, text in {
        "raw/edge": "0,1\n1,2\n0,2\n0,1\n", "raw/num-node-list": "3\n2\n", "raw/num-edge-list": "3\n1\n",
        "raw/node-feat": "1,0\n" * 3 + "0,1\n" * 2, "raw/graph-label": "0\n1\n",
        "split/scaffold/train": "0\n", "split/scaffold/valid": "", "split/scaffold/test": "1\n",
    }.items():  # fmt: skip
        (folder / f"{name}.csv").write_text(text)
    return str(folder)


@alone
def test_folders_of_ogb_with_many_graphs(tmp_path):
    path = write_ogb(tmp_path / "ogbg")
    found = open_edges(path, "ogb")
    assert found.sizes.tolist() == [3, 2]
    assert [(u.tolist(), v.tolist()) for u, v, _ in found.chunks()] == [([0, 1, 0, 3], [1, 2, 2, 4])]
    code, printed = run_job(
        [sys.executable, "run.py", "inputs/graphs.toml", "--out", str(tmp_path / "out"), 'graph.generator=""',
         'graph.splits=""', f"graph.path={path}", "graph.format=ogb", "gnn.epochs=2"]
    )  # fmt: skip
    assert code == 0, printed
    assert "2 graphs of 5 nodes, 4 edges, 2 features, 2 classes" in printed
    assert "1 training, 0 validation, 1 test graphs" in printed


@alone
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("edge", "0,1\n1,2\n0,3\n0,1\n", r"found node 3 in graph 0; 0\.\.2 would be right"),
        ("edge", "0,1\n", "found 1 edges; 4, as num-edge-list states"),
        ("edge", "0,1\n" * 9, "found more than the 4 edges"),
        ("num-edge-list", "4\n", "found 1 lines; 2, one for each graph"),
    ],
)
def test_folders_of_ogb_that_are_wrong(tmp_path, name, text, message):
    path = write_ogb(tmp_path / "ogbg")
    (tmp_path / "ogbg" / "raw" / f"{name}.csv").write_text(text)
    with pytest.raises(GraphError, match=message):
        list(open_edges(path, "ogb").chunks())


@alone
def test_a_graph_in_each_file_with_labels_by_name(tmp_path):
    names = ["ring", "path", "star", "pair"]
    shapes = nx.cycle_graph(4), nx.path_graph(4), nx.star_graph(3), nx.path_graph(2)
    for name, graph in zip(names, shapes):
        nx.write_edgelist(nx.relabel_nodes(graph, lambda v: 10 * v + 5), tmp_path / f"{name}.txt", data=False)
    (tmp_path / "classes.csv").write_text("graph,class\nstar,tree\nring,loop\npath,tree\n")
    (tmp_path / "sets.csv").write_text("ring,train\nstar,train\npath,test\n")
    code, printed = run_job(
        [sys.executable, "run.py", "inputs/graphs.toml", "--out", str(tmp_path / "out"),
         f"graph.path={tmp_path}/????.txt", f"graph.labels={tmp_path}/classes.csv",
         f"graph.splits={tmp_path}/sets.csv", "graph.node_data_by=id", "gnn.epochs=30"]
    )  # fmt: skip
    assert code == 0, printed
    lines = dict(line.split() for line in (tmp_path / "out/predictions/pair+3.txt").read_text().splitlines())
    assert sorted(lines) == sorted(names)
    assert (lines["ring"], lines["star"]) == ("loop", "tree")
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["instances"][0]["graphs"], result["instances"][0]["nodes"]) == (4, 14)


@alone
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a x\nzz x\n", "labels:2: found graph zz; a graph of a[+]1 would be right"),
        ("a x\nb y\na x\n", "labels:3: found graph a again, after line 1; one line for each graph"),
        ("a x\nb\n", "nothing after the id in 'b'; a graph id and what is known of the graph would be right"),
        ("", "found no line of a graph of a[+]1"),
    ],
)
def test_labels_by_id_that_are_wrong_are_of_graphs(tmp_path, text, message):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("0 1\n")
    (tmp_path / "labels").write_text(text)
    paths = [str(tmp_path / f"{name}.txt") for name in "ab"]
    with pytest.raises(GraphError, match=message):
        load_case({"graph.path": paths, "graph.labels": str(tmp_path / "labels"), "graph.node_data_by": "id"})


@alone
def test_a_graph_in_two_sets_is_called_as_its_set_calls_it(tmp_path):
    masks = {
        name: np.array([1, i, 0], bool) for i, name in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    np.savez(tmp_path / "splits.npz", **masks)
    with pytest.raises(GraphError, match="found graph 1 in both train and"):
        load_case(
            {
                "graph.path": write_tu(tmp_path / "TOY"),
                "graph.format": "tu",
                "graph.splits": str(tmp_path / "splits.npz"),
            }
        )


@alone
@pytest.mark.parametrize("count", [1, 2])
def test_families_of_sets_and_distances_are_no_graphs(tmp_path, count):
    city = "TYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 2 2\nEOF\n"
    for i in range(count):
        (tmp_path / f"{i}.sets").write_text("1 2 3\n2 3\n")
        (tmp_path / f"{i}.tsp").write_text(f"NAME: x{i}\n{city}")
    for ending, message in (("sets", "a family of sets"), ("tsp", "has distances between all nodes")):
        paths = [str(tmp_path / f"{i}.{ending}") for i in range(count)]
        with pytest.raises(GraphError, match=message):
            load_case({"graph.path": paths})


@alone
def test_files_of_one_name_have_none_of_their_own(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.txt").write_text("0 1\n")
    paths = [str(tmp_path / name / "same.txt") for name in "ab"]
    with pytest.raises(GraphError, match="two graphs are called 'same'"):
        classify(paths, labels=[0, 1], train=[0, 1], settings=QUICK)
    found = classify(dict(zip("xy", paths)), labels={"y": 0, "x": 1}, train=["x", "y"], settings=QUICK)
    assert found.nodes == ["x", "y"]
    with pytest.raises(GraphError, match="two graphs are called '1'"):
        classify({1: paths[0], "1": paths[1]}, labels=[0, 1], train=[0, 1], settings=QUICK)


@alone
def test_graphs_of_files_are_named_in_all_languages(tmp_path):
    names = ["größe", "図 1", "x" * 210 + "a", "x" * 210 + "b"]
    for name in names:
        (tmp_path / f"{name}.txt").write_text("0 1\n")
    (tmp_path / "labels").write_text("".join(f"{name}\t{i % 2}\n" for i, name in enumerate(names)))
    keys = {"graph.path": [str(tmp_path / f"{name}.txt") for name in names], "graph.node_data_by": "id"}
    loaded, data = load_case(keys | {"graph.labels": str(tmp_path / "labels")})
    assert loaded.members.names == tuple(names)
    assert data.rows.tolist() == loaded.members.own_rows.tolist()
    assert data.labels.tolist() == [0, 1, 0, 1]


@alone
def test_names_are_one_for_each_graph_of_files(tmp_path):
    path, settings = write_tu(tmp_path / "TOY"), QUICK | {"graph.format": "tu"}
    with pytest.raises(GraphError, match="found 6 graphs for 2 names; one graph in each file"):
        classify({"a": path, "b": path}, labels=[0, 1] * 3, train=range(2), settings=settings)


# ---- generators and whole runs ----------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(12))
def test_motifs_hang_on_trees(seed):
    (u, v, _), *more = list(with_motif(20, len(MOTIFS), seed).chunks())
    graph = nx.Graph(zip(u.tolist(), v.tolist()))
    for u, v, _ in more:
        graph.add_edges_from(zip(u.tolist(), v.tolist()))
    assert nx.is_connected(graph)
    assert len(graph) == 20
    motif = list(MOTIFS.values())[motif_of(np.array([seed]), len(MOTIFS))[0]]
    inside = graph.subgraph(range(20 - SIZE, 20))
    assert nx.utils.edges_equal(inside.edges, [(i + 15, j + 15) for i, j in motif])
    assert nx.is_tree(graph.subgraph(range(20 - SIZE)))


@alone
def test_the_case_that_ships_learns_and_its_estimate_counts_graphs(tmp_path):
    command = [
        sys.executable,
        "run.py",
        "inputs/graphs.toml",
        "--out",
        str(tmp_path / "out"),
        "gnn.epochs=40",
    ]
    code, printed = run_job(command)
    assert code == 0, printed
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["test_accuracy"] > 0.9
    assert len((tmp_path / "out" / "predictions" / "motifs-300.txt").read_text().splitlines()) == 300
    code, again = run_job([*mpirun(2), *command, split_over(2), "--overwrite"])
    assert code == 0, again
    assert json.loads((tmp_path / "out" / "result.json").read_text())["digest"] == result["digest"]
    code, planned = run_job([*command, "--dry-run"])
    assert code == 0
    assert "buffers" in planned


@alone
@pytest.mark.parametrize(
    ("kind", "vary"),
    [("models", 'study.models=["gcn", "gin readout_of=all"]'), ("depth", "study.depths=[1, 2]")],
)
def test_studies_of_sets(tmp_path, kind, vary):
    command = [
        sys.executable, "run.py", "inputs/graphs.toml", "--out", str(tmp_path / "out"), "run.task=study",
        f"study.kind={kind}", "graph.count=30", "gnn.epochs=3", "study.seeds=[1, 2]", vary,
    ]  # fmt: skip
    code, printed = run_job(command)
    assert code == 0, printed


@alone
@pytest.mark.parametrize(
    ("kind", "options", "names"),
    [
        (
            "depth",
            ["study.depths=[1]", "study.widths=[4, 8]", "gnn.model=gat", "gnn.heads=2"],
            ["1 layers of 4", "1 layers of 8"],
        ),
        ("models", ['study.models=["gin readout=sum", "gat heads=2"]'], ["gin readout=sum", "gat heads=2"]),
    ],
)
def test_what_studies_say_of_layers_before_a_readout(tmp_path, kind, options, names):
    command = [
        sys.executable, "run.py", "inputs/graphs.toml", "--out", str(tmp_path / "out"), "run.task=study",
        f"study.kind={kind}", "graph.count=30", "gnn.epochs=1", "study.seeds=[1]", *options,
    ]  # fmt: skip
    code, printed = run_job(command)
    assert code == 0, printed
    assert all(name in printed for name in names)


@alone
def test_a_plan_and_a_report_tell_graphs(tmp_path):
    path = write_tu(tmp_path / "TOY")
    out = [str(tmp_path / name) for name in "ab"]
    command = [sys.executable, "run.py", "inputs/graphs.toml", f"graph.path={path}", "graph.format=tu"]
    code, printed = run_job([*command, "--dry-run", "--out", out[0]])
    assert (code, "TOY: tu, 3 graphs of 6 nodes" in printed) == (0, True)
    for folder in out:
        code, printed = run_job([*command, "--out", folder, "gnn.epochs=2", "seed=3"])
        assert code == 0, printed
    report([*out, "-o", str(tmp_path / "page.html")])
    text = (tmp_path / "page.html").read_text()
    assert "Score of the training graphs" in text
    assert ">graphs</th>" in text


@alone
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("study.kind=models; run.task=study; study.models=['gin level=node']", "gnn.level: is of the data"),
        ("graph.random_classes=6", "must be from 2 to 5 for generator"),
        ("graph.nodes=6", "must be at least 7 for generator"),
        ("graph.path=x.txt", "no such file"),
        ("study.kind=quality; run.task=study", 'study.kind = "quality" is of one graph'),
    ],
)
def test_cases_that_are_wrong(tmp_path, key, message):
    keys = key.split("; ")
    command = [sys.executable, "run.py", "inputs/graphs.toml", "--out", str(tmp_path / "out"), *keys]
    code, printed = run_job(command)
    assert (code, message in printed) == (2, True), printed
