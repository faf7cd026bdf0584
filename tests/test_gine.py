"""app/gnn/layers/gine.py: layers that read the features of edges, from files and Python; what is refused."""

import sys
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES, Frame, by_one, random_graph
from jobs import run_job
from layer_models import Trial, case_of, check_gradient, drawn
from mpi4py import MPI

from app import classify
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.classifier import Classifier
from app.gnn.edges import EdgeColumns, EdgeInputs
from app.gnn.layers import gine
from app.gnn.layers.gine import side_by_side
from app.gnn.model import Model, case_reads_loops
from app.gnn.reach import fewer_edges
from app.gnn.saved import load_model
from app.graphs.edge_data import EdgeData, EdgeRows
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.memory_edges import edge_rows, features_of_rows
from app.graphs.formats.source import Limits
from app.graphs.nodes.memory import table_of_arrays
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.gnn import Training, traffic
from app.model.gnn_inputs import Inputs
from app.model.layout import of_blocks
from app.partition.edge_data import load_edge_data
from app.partition.nodes import deal_node_table
from app.partition.rows import RowPartition
from app.partition.streams import load_stream
from app.sparse import rowblock
from app.sparse.rowblock import RowBlock
from app.tasks.context import context_of_settings
from app.tasks.levels.reading import load

alone = pytest.mark.mpi_skip
READING = [each for each in EXCHANGES if each != "staged"]
GINE = {
    "gnn.model": "gine", "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.hidden": 8, "gnn.epochs": 3,
    "gnn.feature_rows": "as_given",
}  # fmt: skip
WIDTH = 3  # columns of edge features


# ---- kernels ----------------------------------------------------------------------------------------------


def entries_of(device, draws, n, k, kinds):
    """Entries of rows of 0 to about 9 with rows of k numbers, or of 3 of k categories, some of none."""
    counts = draws.poisson(4, n) * (draws.random(n) < 0.8)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = draws.integers(0, n, indptr[-1]).astype(np.int32)
    values = draws.normal(size=(len(columns), k)).astype(np.float32)
    if kinds:
        values = (draws.integers(0, k // 3, (len(columns), 3)) + np.arange(3) * (k // 3)).astype(np.int32)
        values[draws.random(values.shape) < 0.2] = -1
    return device.edge_entries(device.csr(indptr, columns, None, (n, n)), values, k)


@alone
@pytest.mark.parametrize(("k", "f", "kinds"), [(5, 7, 0), (9, 16, 1), (1, 1, 0), (13, 70, 0), (3, 33, 1)])
def test_kernels_have_the_bits_of_the_plain_path(compiled, lanes, k, f, kinds):
    found = []
    for device in (HostDevice(), HostDevice(compiled=False)):
        draws = np.random.default_rng(k)
        entries = entries_of(device, draws, 60, k, kinds)
        W, X, D, Y, dH = (draws.normal(size=(r, f)).astype(np.float32) for r in (k, 60, 60, 60, 60))
        b = draws.normal(size=f).astype(np.float32) if k > 1 else None
        device.edge_add(entries, W, b, X, Y)
        sums = device.edge_back(entries, W, b, X, D, dH, np.array([0, 0, 8, 31, 60, 60]))
        found.append((Y, dH, sums))
    assert all(np.array_equal(a.view(np.int32), b.view(np.int32)) for a, b in zip(*found))


@alone
@pytest.mark.parametrize("kinds", [0, 1])
def test_kernels_work_on_columns_of_wider_rows(compiled, lanes, kinds):
    found, starts = [], np.array([0, 20, 60])
    for device, piece in ((HostDevice(), 40), (HostDevice(), 16), (HostDevice(compiled=False), 16)):
        draws = np.random.default_rng(1)
        entries = entries_of(device, draws, 60, 6, kinds)
        W, X, D, Y, dH = (draws.normal(size=(r, 40)).astype(np.float32) for r in (6, 60, 60, 60, 60))
        sums = []
        for lo in range(0, 40, piece):
            some = slice(lo, lo + piece)
            device.edge_add(entries, W[:, some], None, np.ascontiguousarray(X[:, some]), Y[:, some])
            rows = X[:, some], np.ascontiguousarray(D[:, some]), dH[:, some]
            sums.append(device.edge_back(entries, W[:, some], None, *rows, starts))
        found.append((Y, dH, side_by_side(np, sums, 6)))
    for other in found[1:]:
        assert all(np.array_equal(a.view(np.int32), b.view(np.int32)) for a, b in zip(found[0], other))


# ---- a model against its definition ------------------------------------------------------------------------


def dense_rows(block, F, hear):
    """The rows of F [n, n, k], of arcs from i to j, for the entries of a block; hear: of A, else of A^T."""
    counts, columns = block.global_rows(np.arange(block.n_real))
    row = block.lo + np.repeat(np.arange(block.n_real), counts)
    values = F[columns, row] if hear else F[row, columns]
    return EdgeRows(np.pad(counts, (0, block.n_own - block.n_real)), values.astype(np.float32))


def trial_of(group, graph, X, labels, case, F, neighbours="both", **options):
    """A model whose arcs i, j have the features F[i, j]."""
    trial = Trial(group, graph, X, labels, case, neighbours=neighbours, edge_width=F.shape[2], **options)
    block = trial.block
    heard = dense_rows(block.adjacency, F, True)
    edges = EdgeData(heard, dense_rows(block.transpose, F, False) if block.directed else heard)
    columns, loops = EdgeColumns(F.shape[2]), case_reads_loops(case)
    trial.engine.edges = EdgeInputs.of(group.device, block, edges, columns, loops)
    return trial


def reference_loss(graph, X, labels, case, F, W, arcs):
    """Mean cross-entropy of layers of gine, written down node by node and edge by edge."""
    n, edges, _ = graph
    H = X.astype(float)
    heard = [(u, v) for u, v in edges] + ([] if arcs else [(v, u) for u, v in edges])
    for layer in range(1, len(case.layers) + 1):
        w = {name.partition(".")[2]: W[name] for name in W if name.startswith(f"layer{layer}.")}
        S = H @ w["W_in"] if layer == 1 else H
        Y = (1 + w["eps"][0, 0]) * S
        for u, v in heard:
            Y[v] += np.maximum(S[u] + F[u, v] @ w["W_edge"] + w["edge_bias"][0], 0)
        H = np.maximum(Y @ w["W1"] + w["hidden_bias"], 0) @ w["W2"] + w["bias"]
        H = H if layer == len(case.layers) else np.maximum(H, 0)
    Z = H - H.max(1, keepdims=True)
    terms = np.log(np.exp(Z).sum(1)) - Z[np.arange(n), labels]
    return terms[labels >= 0].mean(), H


def example(arcs):
    """A graph of 13 nodes, features, labels, a case, features of arcs, the same both ways unless `arcs`."""
    draws = np.random.default_rng(5)
    graph = random_graph(13, 0.25, 3)
    X, F = draws.normal(size=(13, 4)), draws.normal(size=(13, 13, WIDTH))
    labels = draws.integers(0, 3, 13)
    labels[draws.random(13) < 0.3] = -1
    labels[:3] = range(3)
    F = F.astype(np.float32)
    return (
        graph,
        X.astype(np.float32),
        labels,
        case_of("gine", widths=(4,)),
        F if arcs else F + F.swapaxes(0, 1),
    )


@pytest.mark.parametrize("neighbours", ["both", "in"])
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_differences_of_the_loss(group, neighbours, sparse):
    graph, X, labels, case, F = example(neighbours == "in")
    values = drawn(Model(case, 4, 3, WIDTH).shapes())
    trial = trial_of(group, graph, X, labels, case, F, neighbours, sparse=sparse, values=values)
    W = {name: each.astype(float) for name, each in values.items()}
    given = graph, X, labels, case, F, W, neighbours == "in"
    check_gradient(trial, W, lambda: reference_loss(*given), 4)


# ---- the same bits ----------------------------------------------------------------------------------------


def attributed(n=60, seed=2, kinds=False):
    """A graph with the edge attributes a, of one number, and b, of two."""
    graph, draws = nx.gnp_random_graph(n, 6 / n, seed=seed), np.random.default_rng(seed)
    for _, _, found in graph.edges(data=True):
        found["a"] = int(draws.integers(0, 4)) if kinds else float(draws.normal())
        found["b"] = draws.integers(0, 3, 2).tolist() if kinds else draws.normal(size=2).tolist()
    return graph


def classifier_on(group, graph, settings=(), exchange="auto", train=0):
    """A classifier of the nodes of an attributed graph on a group's ranks; train: some of them, 0: most."""
    n, draws = len(graph), np.random.default_rng(3)
    case = build({"run.task": "classify", **GINE, **dict(settings)})
    source = stream_of_object(graph)[0]
    rows = edge_rows(graph, ["a", "b"], source)
    source.edge_features = lambda: features_of_rows(rows)
    loaded = load_stream(group, source if group.rank == 0 else None, case.graph, case)
    train = np.arange(n) < train if train else np.arange(n) % 3 > 0
    table = table_of_arrays(draws.normal(size=(n, 4)), draws.integers(0, 3, n), train, ~train, ~train, n)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    edges = load_edge_data(group, loaded, "", Limits(), case.graph.neighbours)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange)
    return Classifier(group, case.gnn, block, replace(data, edges=edges), 1)


def bits_of(classifier):
    """The gradient of two epochs as bytes."""
    classifier.epoch(1)
    return np.array(classifier.device.get(classifier.engine.gradient)).tobytes()


@pytest.mark.parametrize("rows", ["as_given", "one_hot", "standard"])
@pytest.mark.parametrize("exchange", READING)
def test_gradients_are_those_of_one_rank(group, single, rows, exchange):
    settings = {"gnn.edge_feature_rows": rows}
    graph = attributed(kinds=rows == "one_hot")
    found = bits_of(classifier_on(group, graph, settings, exchange))
    assert found == by_one(lambda: bits_of(classifier_on(single, graph, settings)))


@pytest.mark.parametrize("rows", ["as_given", "one_hot"])
@pytest.mark.parametrize("exchange", READING)
def test_columns_that_travel_one_after_the_other_change_no_bit(group, single, monkeypatch, rows, exchange):
    settings = {"gnn.edge_feature_rows": rows, "gnn.layers": ["gine 8", "gine 7", "gine"]}
    graph = attributed(kinds=rows == "one_hot")
    found = by_one(lambda: bits_of(classifier_on(single, graph, settings)))
    monkeypatch.setattr(gine, "COLUMNS", 3)
    for group.stages_ahead in (0, 1):
        assert found == bits_of(classifier_on(group, graph, settings, exchange))


@pytest.mark.parametrize("columns", [64, 3])
@pytest.mark.parametrize("exchange", READING)
def test_bytes_and_memory_of_exchanges_are_those_that_are_counted(monkeypatch, columns, exchange):
    monkeypatch.setattr(gine, "COLUMNS", columns)
    group = Group(MPI.COMM_WORLD, HostDevice())
    classifier = classifier_on(group, attributed(), {"gnn.layers": ["gine 8", "gine 4", "gine"]}, exchange)
    inputs = Inputs(4, 3, edges=WIDTH, edge_width=WIDTH)
    training = Training(classifier.device, classifier.case, inputs, of_blocks(group, classifier.block))
    assert training.engine.recorded == classifier.engine.recorded
    group._scratch.clear()
    before = dict(group.sent_bytes)
    classifier.epoch(1)
    sent = {phase: count - before.get(phase, 0) for phase, count in group.sent_bytes.items()}
    counted = {phase: count for phase, (count, _) in traffic(training.epoch(group.rank)).items() if count}
    assert counted == {phase: count for phase, count in sent.items() if count}
    terms = gnn_memory.in_training(training, group.rank)
    assert terms.get("exchange", 0) == sum(each.nbytes for each in group._scratch.values())


def test_rows_may_move_between_epochs(group):
    classifier = classifier_on(group, nx.DiGraph(attributed()), {"graph.neighbours": "in"})
    before = bits_of(classifier)
    rows = classifier.block.rows
    blocks = len(rows.starts) - 1
    cuts = np.minimum(np.arange(group.size + 1) * (1 + blocks // group.size), blocks)
    cuts[-1] = blocks
    classifier.move(RowPartition(rows.n, rows.starts, cuts))
    assert bits_of(classifier) == before


def test_dropout_residuals_and_normalisation_go_with_it(group, single):
    layers = {"gnn.layers": ["gine 8 residual layer_norm", "gcn 8", "gine"], "gnn.dropout": 0.5}
    found = [bits_of(classifier_on(each, attributed(), layers)) for each in (group, single)]
    assert found[0] == found[1]


@pytest.mark.parametrize("neighbours", ["both", "in"])
@pytest.mark.parametrize("rows", ["as_given", "one_hot"])
def test_what_the_loss_does_not_depend_on_changes_nothing(group, single, neighbours, rows):
    settings = {"gnn.layers": ["gcn 8", "gine 8", "gine"], "gnn.edge_feature_rows": rows}
    settings["graph.neighbours"] = neighbours
    graph = nx.DiGraph(attributed(kinds=rows == "one_hot"))
    classifier = classifier_on(group, graph, settings, train=2)
    engine = classifier.engine
    assert (
        engine.narrow[2].edges and engine.narrow[2].edges.heard.values.size < engine.edges.heard.values.size
    )
    classifier.epoch(1)
    before = np.array(classifier.device.get(engine.gradient))
    assert before.tobytes() == bits_of(classifier_on(single, graph, settings, train=2))
    engine.narrow = {}
    classifier.epoch(1)
    assert np.array_equal(classifier.device.get(engine.gradient), before)


def test_memory_of_fewer_edges_is_that_which_is_counted():
    group = Group(MPI.COMM_WORLD, HostDevice())
    classifier = classifier_on(group, attributed(), {"gnn.layers": ["gine 8", "gine 4", "gine"]}, train=2)
    inputs = Inputs(4, 3, edges=WIDTH, edge_width=WIDTH)
    layout, shares = of_blocks(group, classifier.block), classifier.shares()
    training = Training(classifier.device, classifier.case, inputs, layout, shares=shares)
    kept = {narrow.edges for narrow in classifier.engine.narrow.values() if narrow.edges}
    assert set(training.fewer_edges) == {i for i, each in classifier.engine.narrow.items() if each.edges}
    held = sum(side.values.nbytes for edges in kept for side in (edges.heard, edges.hearing))
    counted = sum(gnn_memory.fewer_edges(training, rank) for rank in range(group.size))
    wanted = int(group.sum_integers(np.array([held]))[0])
    matrices = 8 * (sum(layout.rows) + group.size) * len(kept)
    assert (
        abs((counted - matrices) * 4 * WIDTH / (4 * WIDTH + 4) - wanted) < 16 * WIDTH * len(kept) * group.size
    )


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ([1.0, 0.5, 0.1], {2: 2, 1: 1}), ([0.9, 0.6, 0.5], {2: 2}), ([0.6, 0.6, 0.6], {2: 2, 1: 2, 0: 2}),
        ([0.3, 0.3, 0.7], {2: 2, 1: 1, 0: 1}), ([1.0, 1.0, 1.0], {}),
    ],
)  # fmt: skip
@alone
def test_layers_that_need_the_same_rows_share_what_they_read(shares, found):
    assert fewer_edges(shares, {0, 1, 2}) == found
    assert set(fewer_edges(shares, {0, 2})) <= {0, 2}


# ---- learning ---------------------------------------------------------------------------------------------


def rings(count=24, seed=4):
    """Rings of 6 nodes whose edges are of kind 0 or 1, the class: whether more than 2 edges are of kind 1."""
    draws, graphs, labels = np.random.default_rng(seed), [], []
    for _ in range(count):
        graph = nx.cycle_graph(6)
        kinds = draws.permutation([1, 1, 1, 1, 0, 0] if draws.random() < 0.5 else [0, 0, 0, 0, 0, 1])
        nx.set_edge_attributes(graph, dict(zip(graph.edges, kinds.tolist())), "bond")
        graphs.append(graph)
        labels.append(int(kinds.sum() > 2))
    return graphs, labels


def test_a_class_that_only_edges_tell_is_learned(comm=MPI.COMM_WORLD):
    graphs, labels = rings()
    settings = {**GINE, "gnn.depth": 2, "gnn.epochs": 40, "gnn.edge_feature_rows": "one_hot"}
    sets = {"train": list(range(16)), "test": list(range(16, 24)), "comm": comm}
    found = classify(graphs, None, labels, edge_features="bond", settings=settings, **sets)
    assert found.scores["test"].accuracy == 1
    again = classify(graphs, None, weights=found, edge_features="bond", comm=comm)
    assert np.array_equal(again.predicted, found.predicted)


# ---- from Python ------------------------------------------------------------------------------------------


def digest_of(graph, edge_features, **more):
    """Of the weights after some epochs on the first nodes."""
    settings = {**GINE, **more.pop("settings", {})}
    X, labels = np.eye(60)[:, :5], np.arange(60) % 2
    given = {"train": list(range(30)), "edge_features": edge_features, "settings": settings, **more}
    return classify(graph, X, labels, **given).digest


def test_attributes_arrays_and_tables_are_the_same_edges():
    graph = attributed()
    pairs = np.array(graph.edges)
    rows = np.array([[found["a"], *found["b"]] for _, _, found in graph.edges(data=True)])
    frame = Frame(u=pairs[:, 0], v=pairs[:, 1], a=rows[:, 0], b=rows[:, 1], c=rows[:, 2])
    expected = digest_of(graph, ["a", "b"])
    assert len(np.unique(pairs)) == 60
    assert digest_of(pairs, rows) == expected
    assert digest_of(frame, ["a", "b", "c"]) == expected
    assert digest_of([tuple(each) for each in pairs[::-1, ::-1].tolist()], rows[::-1]) == expected
    both = np.concatenate([pairs, pairs[:, ::-1], [[3, 3]]])
    assert digest_of(both, np.concatenate([rows, rows, rows[:1]])) == expected
    assert digest_of(pairs, rows[:, :1]) != expected


def test_rows_in_another_order_have_their_edges():
    graph, X = attributed(), np.random.default_rng(1).normal(size=(60, 4))
    given = {"train": list(range(40)), "edge_features": ["a", "b"]}
    found = classify(graph, X, np.arange(60) % 2, settings=GINE, **given)
    for order in ("random", "rcm"):
        settings = {"graph.order": order, "output.probabilities": True}
        rows = [
            classify(
                graph, X, weights=found, edge_features=["a", "b"], settings=settings | more
            ).probabilities
            for more in ({}, {"graph.order": "natural"})
        ]
        assert np.allclose(*rows, atol=1e-5)


@alone
@pytest.mark.parametrize(
    ("edge_features", "message"),
    [
        (
            None,
            "gine reads edge features, and graph has none; edge_features=, or layers of gin, would be right",
        ),
        ("zz", "edge 0-[0-9]+ has no attribute 'zz'"),
        (["a", "t"], "the t of edge 0-[0-9]+ is 'x'; a number, or equally many numbers, would be right"),
        (np.ones((7, 2)), "found 7 rows; [0-9]+, one for each edge, would be right"),
        (np.ones((2, 2, 2)), r"found float64 of shape \(2, 2, 2\)"),
        (np.array(["x"]), "found <U1 of shape"),
    ],
)
def test_features_that_are_wrong_are_refused(edge_features, message):
    graph = attributed()
    nx.set_edge_attributes(graph, "x", "t")
    with pytest.raises((GraphError, CaseError), match=message) as error:
        digest_of(graph, edge_features, comm=MPI.COMM_SELF)
    assert "\n" not in str(error.value)


@alone
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gnn.edge_feature_rows": "one_hot"}, r"edge features: found .* in column 0; whole numbers"),
        ({"parallel.exchange": "staged", "gnn.edge_feature_rows": "standard"}, None),
        (
            {"gnn.model": "gin", "gnn.edge_feature_rows": "standard"},
            "is not read by gin; leave it out, or edge_gat, edge_gatv2, gine would be right",
        ),
        ({"gnn.model": "gin"}, "edge_features: no layer reads them; leave them out, or gine would be right"),
        ({"gnn.model": "gine", "gnn.heads": 2}, "gnn.heads: is not read by gine"),
        ({"graph.edge_features": __file__}, "of a graph in memory edge_features= would be right"),
        ({"graph.complement": True}, "the edges of a complement have no features"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    if message is None:
        assert digest_of(attributed(), "a", settings=settings, comm=MPI.COMM_SELF)
        return
    with pytest.raises((GraphError, CaseError), match=message):
        digest_of(attributed(), "a", settings=settings, comm=MPI.COMM_SELF)


@alone
def test_what_has_no_edges_in_an_order_is_refused():
    graph = attributed()
    for given in (nx.to_scipy_sparse_array(graph), nx.to_numpy_array(graph, weight=None)):
        with pytest.raises(GraphError, match="found a matrix, which has no order of edges"):
            digest_of(given, np.ones((3, 1)), comm=MPI.COMM_SELF)
    rows = np.ones((4, 2))
    rows[2, 1] = np.nan
    with pytest.raises(GraphError, match="found nan in row 2, column 1; finite 32-bit numbers"):
        digest_of(np.array([[0, 1], [1, 2], [2, 3], [3, 59]]), rows, comm=MPI.COMM_SELF)
    rows[2] = 2
    with pytest.raises(GraphError, match=r"edges 1 and 2, counted from 0, are both .* unlike features"):
        digest_of(np.array([[0, 59], [1, 2], [2, 1], [3, 4]]), rows, comm=MPI.COMM_SELF)
    with pytest.raises(GraphError, match="found 1 items; 2, one for each graph"):
        classify([graph, graph], None, [0, 1], train=[0, 1], edge_features=[rows], settings=GINE)


@pytest.mark.skipif(MPI.COMM_WORLD.Get_size() == 1, reason="one rank has no stages")
def test_stages_are_refused():
    with pytest.raises(CaseError, match='found "staged"; "auto", "halo" or "gather" would be right'):
        digest_of(attributed(), "a", settings={"parallel.exchange": "staged"})


@pytest.mark.parametrize("more", [{"folds": 3}, {"train": range(30)}])
def test_rows_are_never_staged_unasked(monkeypatch, more):
    monkeypatch.setattr(rowblock, "GATHERED_BYTES", 0)
    monkeypatch.setattr(rowblock, "STAGE_BYTES", 0)
    graph = nx.complete_graph(60)
    rows, kinds = np.ones((graph.number_of_edges(), 1)), [i % 2 for i in range(60)]
    found = classify(graph, None, kinds, edge_features=rows, settings={**GINE, "gnn.epochs": 1}, **more)
    assert len(found.predicted) == 60


# ---- from files -------------------------------------------------------------------------------------------


def edges_read(keys):
    """By (row, column) the features of the entries that a case's files tell, and the data."""
    loaded, data = load(context_of_settings({"run.task": "classify", **GINE, **keys}, MPI.COMM_SELF, False))
    graph = loaded.graph
    names = graph.held_ids().tolist()
    row, sides = graph.row_of(), []
    for bit, rows in ((1, data.edges.heard), (2, data.edges.hearing)):
        chosen = slice(None) if graph.arcs is None else graph.arcs & bit > 0
        ends = zip(row[chosen].tolist(), graph.indices[chosen].tolist())
        sides.append({(names[u], names[v]): x for (u, v), x in zip(ends, rows.values.tolist())})
    return sides


@alone
@pytest.mark.parametrize("neighbours", ["both", "in", "out"])
def test_a_file_with_a_row_for_each_edge(tmp_path, neighbours):
    (tmp_path / "g.txt").write_text("# a comment\n30 7\n7 7\n7 5\n5 30\n")
    (tmp_path / "e.csv").write_text("1,2\n9,9\n3,4\n5,6\n")
    (tmp_path / "y.txt").write_text("0\n1\n1\n")
    keys = {
        "graph.path": str(tmp_path / "g.txt"), "graph.edge_features": str(tmp_path / "e.csv"),
        "graph.labels": str(tmp_path / "y.txt"), "graph.neighbours": neighbours,
    }  # fmt: skip
    heard, hearing = edges_read(keys)
    arcs = {(30, 7): [1.0, 2.0], (7, 5): [3.0, 4.0], (5, 30): [5.0, 6.0]}
    back = {(v, u): x for (u, v), x in arcs.items()}
    assert heard == {"both": arcs | back, "in": back, "out": arcs}[neighbours]
    assert hearing == {"both": arcs | back, "in": arcs, "out": back}[neighbours]
    for rows, found in (("1,2\n" * 3, 3), ("1,2\n" * 5, 5)):
        (tmp_path / "e.csv").write_text(rows)
        with pytest.raises(
            GraphError, match=f"found {found} rows of edge features; 4, one for each edge of g"
        ):
            edges_read(keys)
    (tmp_path / "e.csv").write_text("1,2\n3\n1,2\n1,2\n")
    with pytest.raises(GraphError, match=r"e\.csv:2"):
        edges_read(keys)


@alone
def test_names_of_nodes_in_a_file(tmp_path):
    (tmp_path / "g.txt").write_text("tp53 mdm2\nbrca1 tp53\n")
    np.save(tmp_path / "e.npy", np.array([[1.0], [2.0]]))
    (tmp_path / "y.txt").write_text("0\n1\n1\n")
    heard, _ = edges_read(
        {"graph.path": str(tmp_path / "g.txt"), "graph.ids": "names", "graph.labels": str(tmp_path / "y.txt"),
         "graph.edge_features": str(tmp_path / "e.npy"), "graph.order": "random"}
    )  # fmt: skip
    assert {(u.decode(), v.decode()): x for (u, v), x in heard.items() if u < v} == {
        ("mdm2", "tp53"): [1.0], ("brca1", "tp53"): [2.0]
    }  # fmt: skip


def test_names_that_are_not_in_order_on_ranks(group, shared_path):
    n = 60
    if group.rank == 0:
        (shared_path / "g.txt").write_text("".join(f"n{n - i} n{n - i - 1}\n" for i in range(n)))
        np.save(shared_path / "e.npy", np.arange(n)[:, None])
        (shared_path / "y.txt").write_text("0\n" * (n + 1))
    group.comm.barrier()
    keys = {
        "graph.path": str(shared_path / "g.txt"), "graph.ids": "names",
        "graph.edge_features": str(shared_path / "e.npy"), "graph.labels": str(shared_path / "y.txt"),
    }  # fmt: skip
    context = context_of_settings({"run.task": "classify", **GINE, **keys}, group.comm, False)
    values = group.comm.allgather(load(context)[1].edges.heard.values[:, 0])
    assert (np.sort(np.concatenate(values)) == np.arange(2 * n) // 2).all()


@alone
def test_more_names_than_have_products_of_32_bits(tmp_path):
    n = 66_000
    (tmp_path / "g.txt").write_text("".join(f"{i} {i + 1}\n" for i in range(n)))
    np.save(tmp_path / "e.npy", np.arange(n)[:, None])
    (tmp_path / "y.txt").write_text("0\n" * (n + 1))
    keys = {"graph.path": str(tmp_path / "g.txt"), "graph.labels": str(tmp_path / "y.txt")}
    keys |= {"graph.edge_features": str(tmp_path / "e.npy"), "graph.ids": "names"}
    data = load(context_of_settings({"run.task": "classify", **GINE, **keys}, MPI.COMM_SELF, False))[1]
    assert (np.sort(data.edges.heard.values[:, 0]) == np.arange(2 * n) // 2).all()


@alone
def test_archives_bring_features_of_edges(tmp_path):
    pairs, rows = np.array([[0, 1], [1, 2], [2, 1], [2, 2]]), np.array([[1, 2], [3, 4], [3, 4], [9, 9]])
    np.savez(tmp_path / "a.npz", edges=pairs, num_nodes=[3], edge_feat=rows, labels=[0, 1, 1])
    np.savez(tmp_path / "b.npz", edge_index=pairs.T.copy(), num_nodes=[3], edge_attr=rows, labels=[0, 1, 1])
    for name in "ab":
        heard, _ = edges_read({"graph.path": str(tmp_path / f"{name}.npz")})
        assert heard[0, 1] == heard[1, 0] == [1.0, 2.0] and heard[1, 2] == heard[2, 1] == [3.0, 4.0]
        assert len(heard) == 4


@alone
def test_folders_of_ogb_and_tu_bring_features_of_edges(tmp_path):
    for name, text in {
        "raw/edge": "0,1\n1,0\n1,2\n2,1\n0,1\n", "raw/num-node-list": "3\n2\n", "raw/num-edge-list": "4\n1\n",
        "raw/edge-feat": "0,1\n0,1\n2,0\n2,0\n1,1\n", "raw/graph-label": "0\n1\n",
    }.items():  # fmt: skip
        path = tmp_path / "ogbg" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    keys = {"gnn.level": "graph", "graph.path": str(tmp_path / "ogbg"), "graph.format": "ogb"}
    heard, _ = edges_read(keys)
    assert {pair: x for pair, x in heard.items() if pair[0] < pair[1]} == {
        (0, 1): [0.0, 1.0], (1, 2): [2.0, 0.0], (4, 5): [1.0, 1.0]
    }  # fmt: skip
    (tmp_path / "TOY").mkdir()
    for name, text in {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n", "graph_indicator": "1\n1\n1\n", "graph_labels": "1\n",
        "edge_labels": "0\n0\n2\n2\n", "edge_attributes": "0.5\n0.5\n-1\n-1\n",
    }.items():  # fmt: skip
        (tmp_path / "TOY" / f"TOY_{name}.txt").write_text(text)
    keys = {"gnn.level": "graph", "graph.path": str(tmp_path / "TOY"), "graph.format": "tu"}
    assert edges_read(keys)[0][0, 1] == [0.5, 1.0, 0.0, 0.0]
    assert edges_read(keys)[0][2, 1] == [-1.0, 0.0, 0.0, 1.0]


def write_rings(folder, features=None):
    """Rings as OGB has them; features: of all edges in place of their kinds."""
    graphs, labels = rings(12)
    rows = [str(kind) for graph in graphs for _, _, kind in graph.edges(data="bond")]
    for name, lines in {
        "raw/edge": [f"{u},{v}" for graph in graphs for u, v in graph.edges], "raw/num-node-list": ["6"] * 12,
        "raw/num-edge-list": ["6"] * 12, "raw/edge-feat": features or rows, "raw/graph-label": labels,
    }.items():  # fmt: skip
        path = folder / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{each}\n" for each in lines))
    return str(folder)


@alone
def test_weights_know_the_columns_of_edges(tmp_path):
    path, settings = write_rings(tmp_path / "ogbg"), {"gnn.level": "graph", "graph.format": "ogb"}
    learning = {**GINE, **settings, "gnn.edge_feature_rows": "one_hot", "graph.splits": "random"}
    with warnings.catch_warnings(action="ignore"):  # of what so few epochs predict
        found = classify(path, None, rings(12)[1], settings=learning)
    found.save(str(tmp_path / "weights.npz"))
    saved = load_model(str(tmp_path / "weights.npz"))
    assert saved.edges.width == 2 and saved.edges.inputs.values[0].tolist() == [0, 1]
    again = classify(path, settings=settings, weights=str(tmp_path / "weights.npz"))
    assert np.array_equal(again.predicted, found.predicted)
    write_rings(tmp_path / "ogbg", ["7"] * 72)
    with pytest.warns(UserWarning, match="72 numbers of the edge features are categories that no weights"):
        classify(path, settings=settings, weights=found)
    write_rings(tmp_path / "ogbg", ["1,1"] * 72)
    with pytest.raises(GraphError, match="for edges with 1 features; these have 2"):
        classify(path, settings=settings, weights=found)


@alone
def test_weights_of_another_level_are_refused_as_such():
    graph, sets = nx.path_graph(6), [nx.path_graph(3), nx.cycle_graph(4)]
    rows = [np.ones((each.number_of_edges(), 1)) for each in sets]
    found = classify(sets, None, [0, 1], train=[0, 1], edge_features=rows, settings=GINE)
    with pytest.raises(CaseError, match="weights: says what graphs are"):
        classify(graph, weights=found, settings={"gnn.level": "node"})


@alone
def test_a_run_with_edge_features_is_planned(tmp_path):
    keys = ["graph.format=ogb", 'graph.generator=""', "graph.splits=random", "gnn.model=gine"]
    path = write_rings(tmp_path / "ogbg")
    command = [sys.executable, "run.py", "inputs/graphs.toml", f"graph.path={path}", *keys, "--dry-run"]
    code, printed = run_job([*command, "gnn.edge_feature_rows=one_hot"])
    assert code == 0 and "edge features" in printed, printed


@alone
def test_features_of_edges_that_nobody_reads(tmp_path):
    (tmp_path / "e.txt").write_text("1\n")
    (tmp_path / "g.txt").write_text("0 1\n")
    keys = {"graph.path": str(tmp_path / "g.txt"), "graph.edge_features": str(tmp_path / "e.txt")}
    for more, message in (
        (
            {"gnn.model": "gcn"},
            "graph.edge_features: is not read by gcn; leave it out, or edge_gat, edge_gatv2, gine",
        ),
        ({"gnn.model": "rgcn"}, "graph.edge_features"),
    ):
        with pytest.raises(CaseError, match=message):
            context_of_settings({"run.task": "classify", **keys, **more}, MPI.COMM_SELF, False)


def test_memory_limits_and_features_in_pieces(group, single):
    whole = classifier_on(single, attributed())
    limit = 4 * 60 * 40
    given = classifier_on(group, attributed())
    given._settle(given.block, TierBudget(limit))
    assert bits_of(given) == bits_of(whole)
