"""Directed graphs in graph networks: what a node hears forward, what hears it backward, on any ranks."""

import functools
import json
import sys
from unittest import mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import EXCHANGES, crossed, edge_stream, make_block
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import ROOT, run_job
from layer_models import CONVOLUTIONS, Trial, case_of, differences, drawn
from mpi4py.MPI import COMM_WORLD as WORLD
from msgspec import structs
from test_layers import KINDS, NORMED_TOLERANCE, TOLERANCE, data_of, relative_error
from test_reach import MODELS, NODES, classifier_on, learned

import app
from app.case.file import build, load
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.model import Model
from app.graphs import kernels
from app.graphs.graph import IN_A, IN_TRANSPOSE
from app.graphs.rows import ListedArcs, row_builder
from app.graphs.union import unite
from app.model import gnn_memory
from app.model.node_plan import training_of
from app.partition.load import load_united
from app.partition.rows import block_count, partition_rows

DIRECTIONS = ["in", "out"]
WEIGHTS = [False, True]


def arcs_graph(n=41, share=0.06, seed=9, weighted=False):
    """(n, arcs [m, 2], weights): among them loops, repeats, and pairs both ways with other weights."""
    draws = np.random.default_rng(seed)
    u, v = np.nonzero(draws.random((n, n)) < share)
    arcs = np.stack([u, v], axis=1)
    arcs = np.concatenate([arcs, arcs[:20, ::-1], arcs[5:15]])
    weights = draws.integers(1, 9, len(arcs)).astype(np.float32) / 4
    return n, arcs, weights if weighted else None


def heard_matrix(graph, neighbours):
    """[n, n], row i: the weights of the arcs by which node i hears; of repeats the largest."""
    n, arcs, weights = graph
    A = np.zeros((n, n))
    for at, (u, v) in enumerate(arcs):
        if u != v:
            row, column = (v, u) if neighbours == "in" else (u, v)
            A[row, column] = max(A[row, column], 1 if weights is None else weights[at])
    return A


# ---- rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [True, False])
@given(
    st.integers(1, 30), st.integers(0, 200), st.integers(0, 99), st.booleans(), st.sampled_from(DIRECTIONS)
)
@settings(max_examples=100, deadline=None)
@pytest.mark.mpi_skip
def test_rows_say_which_directions_there_are(native, n, m, seed, weighted, neighbours):
    draws = np.random.default_rng(seed)
    arcs = draws.integers(0, n, (m, 2)).astype(np.uint32)
    weights = draws.integers(-2, 3, m).astype(np.float32) if weighted else None
    counts = np.bincount(arcs.reshape(-1).astype(np.int64), minlength=n)
    with mock.patch.object(kernels, "FINISH_MERGED", kernels.FINISH_MERGED if native else None):
        builder = row_builder(n, 0, counts, weighted, neighbours)
    builder.add_pairs(arcs, weights)
    built = builder.finish()
    listed = ListedArcs(n, 0, counts, weighted, neighbours)
    listed.add_pairs(arcs, weights)
    for mine, other in zip(built, listed.finish()):
        assert np.array_equal(mine, other) and getattr(mine, "dtype", 0) == getattr(other, "dtype", 0)
    heard, told = {}, {}
    for at, (u, v) in enumerate(arcs.tolist()):
        if u == v:
            continue
        row, column = (v, u) if neighbours == "in" else (u, v)
        w = weights[at] if weighted else 1
        heard[row, column] = max(heard.get((row, column), w), w)
        told[column, row] = max(told.get((column, row), w), w)
    rows = np.repeat(np.arange(n), np.diff(built.indptr))
    assert list(zip(rows, built.indices)) == sorted({*heard, *told})
    assert built.written == len(heard)
    for at, pair in enumerate(zip(rows.tolist(), built.indices.tolist())):
        assert (pair in heard, pair in told) == (
            bool(built.arcs[at] & IN_A),
            bool(built.arcs[at] & IN_TRANSPOSE),
        )
        if weighted:
            assert built.weights[at] == heard.get(pair, 0)
            assert built.transpose_weights[at] == told.get(pair, 0)


# ---- layers -----------------------------------------------------------------------------------------------


@functools.cache
def expected(kind, weighted, neighbours, **keys):
    """Features, labels, parameters, and the gradient by central differences in float64."""
    graph = arcs_graph(weighted=weighted)
    X, labels = data_of(graph)
    case = case_of(kind, "residual layer_norm", edge_weights=weighted, **keys)
    values = drawn(Model(case, X.shape[1], labels.max() + 1).shapes())
    return X, labels, values, differences(heard_matrix(graph, neighbours), X, labels, case, values)


def trial_of(group, kind, weighted, neighbours, exchange="auto", first="auto", **keys):
    X, labels, values, gradient = expected(kind, weighted, neighbours, **keys)
    case = case_of(kind, "residual layer_norm", first_product=first, edge_weights=weighted, **keys)
    graph = arcs_graph(weighted=weighted)
    return Trial(group, graph, X, labels, case, exchange, values=values, neighbours=neighbours), gradient


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(
    ("kind", "weighted", "way"), crossed(KINDS, WEIGHTS, [("in", "auto"), ("in", "live"), ("out", "auto")])
)
def test_gradients_are_differences_of_the_loss(group, kind, weighted, way, exchange):
    neighbours, first = way
    if weighted and kind.startswith("gat"):
        pytest.skip("attention leaves edge weights aside")
    if (neighbours, first) != ("in", "live") and (group.size > 1 or not group.device.direct):
        pytest.skip("one way is enough on this device and on ranks, whose bits are those of one")
    trial, gradient = trial_of(group, kind, weighted, neighbours, exchange, first)
    tolerance = NORMED_TOLERANCE if kind == "gin_norm" else TOLERANCE
    assert relative_error(trial, trial.epoch(1), gradient) < tolerance


@pytest.mark.parametrize("own_loops", [True, False])
@pytest.mark.parametrize("normalisation", ["in_degree", "symmetric"])
@pytest.mark.parametrize("weighted", WEIGHTS)
def test_normalisations_are_those_of_the_arcs_that_are_heard(group, weighted, normalisation, own_loops):
    keys = {"normalisation": normalisation, "own_loops": own_loops}
    trial, gradient = trial_of(group, "gcn", weighted, "in", **keys)
    assert relative_error(trial, trial.epoch(1), gradient) < TOLERANCE


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_on_any_ranks(group, single, kind):
    graph = arcs_graph(200, 0.02)
    X, labels = data_of(graph)
    case = case_of(kind, "residual layer_norm", dropout=0.5, input_dropout=0.25)
    alone = Trial(single, graph, X, labels, case, neighbours="in")
    wanted = [alone.epoch(number).tobytes() for number in (1, 2)]
    for exchange in EXCHANGES:
        trial = Trial(group, graph, X, labels, case, exchange, neighbours="in")
        assert [trial.epoch(number).tobytes() for number in (1, 2)] == wanted


@pytest.mark.parametrize("kind", sorted(CONVOLUTIONS))
def test_arcs_both_ways_are_an_undirected_graph(group, kind):
    n, arcs, _ = arcs_graph()
    X, labels = data_of((n, arcs, None))
    both = n, np.concatenate([arcs, arcs[:, ::-1]]), None
    case = case_of(kind, "residual")
    found = [
        Trial(group, graph, X, labels, case, neighbours=neighbours).epoch(1).tobytes()
        for graph, neighbours in (((n, arcs, None), "both"), (both, "in"), (both, "out"))
    ]
    assert len(set(found)) == 1


def test_a_direction_and_the_other_one_of_the_reversed_graph(group):
    n, arcs, _ = graph = arcs_graph()
    X, labels = data_of(graph)
    reverse = n, arcs[:, ::-1], None
    case = case_of("gcn")
    tried = [(graph, "in"), (reverse, "out"), (graph, "out"), (graph, "both")]
    found = [Trial(group, g, X, labels, case, neighbours=which).epoch(1).tobytes() for g, which in tried]
    assert found[0] == found[1] and len(set(found)) == 3


# ---- training ---------------------------------------------------------------------------------------------


def long_ways(weighted=False):
    """A directed graph of long ways."""
    draws = np.random.default_rng(4)
    graph = nx.DiGraph(nx.connected_watts_strogatz_graph(NODES, 4, 0.02, seed=3))
    graph.remove_edges_from([e for e in sorted(graph.edges) if draws.random() < 0.4])
    for _, _, found in graph.edges(data=True) if weighted else ():
        found["weight"] = float(draws.integers(1, 9))
    return graph


def on_arcs(group, keys, **more):
    return classifier_on(
        group, {"graph.neighbours": "in", **keys}, graph=long_ways(more.get("weighted")), **more
    )


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("name", MODELS)
def test_what_the_loss_does_not_depend_on_is_left_out(group, name, exchange):
    classifier = on_arcs(group, MODELS[name], exchange=exchange)
    engine = classifier.engine
    assert 0 < engine.narrow[len(classifier.model.blocks) - 1].share < 0.1
    narrow, engine.narrow = engine.narrow, {}
    loss, gradient = learned(classifier, 1)
    engine.narrow = narrow
    found, same = learned(classifier, 1)
    assert found == loss and np.array_equal(same, gradient) and np.abs(gradient).max() > 0


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("weighted", WEIGHTS)
def test_rows_may_move(group, weighted, exchange):
    classifier = on_arcs(group, {"gnn.depth": 3}, weighted=weighted, exchange=exchange)
    wanted = learned(classifier, 1)
    costs = np.ones(block_count(NODES))
    costs[: len(costs) // 3] = 5
    classifier.move(partition_rows(NODES, group.size, costs))
    found = learned(classifier, 1)
    assert found[0] == wanted[0] and np.array_equal(found[1], wanted[1])


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_rank_may_hear_by_weights_of_one_only(group, single, exchange):
    order, graph = np.random.default_rng(6).permutation(NODES).tolist(), nx.DiGraph()
    graph.add_nodes_from(range(NODES))
    for tail, head in long_ways().edges:
        graph.add_edge(order[tail], order[head], weight=1.0 if order[head] < 0.6 * NODES else 2.0)
    keys = {"gnn.depth": 3, "graph.neighbours": "in"}
    alone, spread = (
        learned(classifier_on(ranks, keys, graph=graph, weighted=True, exchange=exchange), 1)
        for ranks in (single, group)
    )
    assert alone[0] == spread[0] and np.array_equal(alone[1], spread[1])


def test_rows_that_the_loss_depends_on_are_those_heard(group):
    classifier = on_arcs(group, {"gnn.depth": 3}, sparse=True)
    block, train = classifier.block, classifier.data.train
    flags = group.gather_host(train.astype(np.int64), block.own_counts)[:NODES] > 0
    A = nx.to_scipy_sparse_array(long_ways(), nodelist=range(NODES)).T  # row v hears column u of an arc u-v
    for layer in (2, 1, 0):
        narrow = classifier.engine.narrow[layer]
        rows = classifier.device.get(narrow.rows)[: block.n_real]
        assert np.array_equal(rows, flags[block.lo : block.lo + block.n_real])
        assert narrow.share == A[flags].nnz / A.nnz
        flags = flags | (A[flags].sum(axis=0) > 0)


# ---- from files to results --------------------------------------------------------------------------------


def text_of(graph):
    _, arcs, weights = graph
    if weights is None:
        return "".join(f"{u} {v}\n" for u, v in arcs)
    return "".join(f"{u} {v} {w}\n" for (u, v), w in zip(arcs, weights))


@pytest.fixture
def files(shared_path):
    """A folder with arcs, their weights, and nothing else."""
    if WORLD.rank == 0:
        for name, weighted in (("arcs.txt", False), ("weighted.txt", True)):
            (shared_path / name).write_text(text_of(arcs_graph(600, 0.01, weighted=weighted)))
    WORLD.barrier()
    return shared_path


def arcs_of(group, loaded):
    """{(id, id): (arcs, weight, told weight)} of all ranks' rows."""
    graph = loaded.graph
    ids = np.concatenate(WORLD.allgather(graph.node_ids(np.arange(graph.lo, graph.hi))))
    found = {}
    for at, (row, column) in enumerate(zip(graph.row_of(), graph.indices)):
        values = [graph.arcs[at]]
        values += [] if graph.weights is None else [graph.weights[at], graph.transpose_weights[at]]
        found[int(ids[row]), int(ids[column])] = tuple(map(float, values))
    return {pair: each for part in WORLD.allgather(found) for pair, each in part.items()}


@pytest.mark.parametrize("name", ["arcs.txt", "weighted.txt"])
def test_orders_cuts_and_kept_files_keep_the_arcs(group, files, name):
    keys = {"run.task": "classify", "graph.path": str(files / name), "graph.neighbours": "in"}
    read = lambda more: load_united(group, (case := build({**keys, **more})).graph, case)  # noqa: E731
    wanted = arcs_of(group, read({}))
    A = heard_matrix(arcs_graph(600, 0.01, weighted=name == "weighted.txt"), "in")
    heard = {pair: each for pair, each in wanted.items() if int(each[0]) & IN_A}
    assert {pair: (*each, 1.0)[1] for pair, each in heard.items()} == {pair: A[pair] for pair in heard}
    assert len(heard) == np.count_nonzero(A)
    for more in (
        {"graph.order": "random"},
        {"graph.order": "rcm"},
        {"memory.cache": str(files / "kept")},
        {"memory.cache": str(files / "kept")},
        {"parallel.partition": "rows"},
    ):
        loaded = read(more)
        assert arcs_of(group, loaded) == wanted
    assert loaded.source == "file" and read({"memory.cache": str(files / "kept")}).source == "cache"
    other = read({"memory.cache": str(files / "kept"), "graph.neighbours": "out"})
    assert other.source == "file" and arcs_of(group, other) != wanted


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "name, text, undirected",
    [
        ("a.txt", "0 1\n1 2\n", False),
        ("a.gr", "p sp 3 2\na 1 2 1\na 2 3 1\n", False),
        ("a.col", "p edge 3 2\ne 1 2\ne 2 3\n", True),
        ("a.graph", "3 2\n2\n1 3\n2\n", True),
        ("a.gset", "3 2\n1 2 1\n2 3 1\n", True),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", False),
        ("b.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n", True),
    ],
)
def test_a_format_says_whether_edges_have_directions(tmp_path, solo, name, text, undirected):
    (tmp_path / name).write_text(text)
    format = "gset" if name == "a.gset" else "auto"
    keys = {"graph.path": str(tmp_path / name), "graph.format": format, "graph.neighbours": "in"}
    case = build({"run.task": "classify", **keys})
    loaded = load_united(solo, case.graph, case)
    said = [each for each in loaded.warnings if "is undirected" in each]
    assert (loaded.graph.arcs is None, len(said)) == (undirected, undirected)
    assert undirected or loaded.graph.arcs.tolist() == [IN_TRANSPOSE, IN_A, IN_TRANSPOSE, IN_A]


@pytest.mark.mpi_skip
def test_in_python_a_directed_graph_is_one_where_it_is_said_to_be():
    graph = long_ways()
    draws = np.random.default_rng(1)
    X, labels = draws.normal(size=(NODES, 6)), draws.integers(0, 3, NODES)
    train = np.arange(NODES) < 200

    def digest(graph, **keys):
        chosen = {"gnn.epochs": 3, "graph.neighbours": "in", **keys}
        return app.classify(graph, X, labels, train=train, val=~train, settings=chosen).digest

    with pytest.warns(UserWarning, match="directed"):
        both = app.classify(graph, X, labels, train=train, settings={"gnn.epochs": 3}).digest
    known = digest(graph)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=list(graph))
    assert known == digest(matrix) == digest(matrix.toarray())
    assert known == digest(graph.reverse(), **{"graph.neighbours": "out"}) != digest(graph.reverse())
    assert both not in (known, digest(graph.reverse()))
    with pytest.warns(UserWarning, match="is undirected: its edges count in both directions"):
        digest(graph.to_undirected())


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore:classify. all")
def test_what_is_said_of_directions(capsys, tmp_path):
    """How many arcs there are, and weights that have learned on other ones."""
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 3)])
    nx.set_edge_attributes(graph, 2.0, "weight")
    options = {"labels": [0, 1, 0, 1], "train": [0, 1], "verbose": True}
    keys = {"gnn.epochs": 1, "gnn.edge_weights": True, "graph.neighbours": "in"}
    found = app.classify(graph, settings=keys, **options)
    said = " ".join(capsys.readouterr().out.split())
    assert "directed, 4 arcs: a node hears the tails of those into it" in said and "warning" not in said
    found.save(str(tmp_path / "w.npz"))
    applied = {"gnn.weights": str(tmp_path / "w.npz"), "gnn.epochs": 0}
    app.classify(graph, settings={**applied, "graph.neighbours": "in"}, **options)
    assert "warning" not in capsys.readouterr().out
    app.classify(graph, settings={**applied, "graph.neighbours": "out"}, **options)
    said = " ".join(capsys.readouterr().out.split())
    assert 'the weights have learned with graph.neighbours = "in"; here nodes hear "out"' in said


@pytest.mark.mpi_skip
def test_the_result_counts_arcs(tmp_path):
    (tmp_path / "arcs.txt").write_text("0 1\n1 0\n1 2\n2 3\n")
    (tmp_path / "y.txt").write_text("0\n1\n0\n1\n")
    lines = ["[run]", 'task = "classify"', "[graph]", 'path = "arcs.txt"', 'neighbours = "out"']
    lines += ['labels = "y.txt"', 'splits = "random"', "[gnn]", "epochs = 1", "[output]", "plots = false"]
    (tmp_path / "case.toml").write_text("\n".join(lines))
    code, printed = run_job(
        [sys.executable, ROOT / "run.py", tmp_path / "case.toml", "--out", tmp_path / "run"]
    )
    assert code == 0, printed
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["edges"], result["arcs"]) == (3, 4)


@pytest.mark.mpi_skip
def test_a_dry_run_reckons_with_both_directions():
    drawn = {
        "graph.generator": "er",
        "graph.nodes": 1000,
        "graph.random_features": 8,
        "graph.random_classes": 2,
    }
    both = build({"run.task": "classify", **drawn})
    case = structs.replace(both, graph=structs.replace(both.graph, neighbours="in"))
    device = HostDevice()
    directed, undirected = (training_of(each, 1000, 8000, 1, device, False) for each in (case, both))
    assert directed.directed and not undirected.directed
    more = gnn_memory.at_rest(directed, 0)["directions"]
    assert more == 5 * 8000 and "directions" not in gnn_memory.at_rest(undirected, 0)
    products = [
        sum(term.amounts[0] for term in each.mean_epoch(0) if term.kind == "product")
        for each in (directed, undirected)
    ]
    assert products[0] == pytest.approx(products[1] / 2, rel=0.01)


@pytest.mark.mpi_skip
def test_among_directed_graphs_an_undirected_one_has_both_directions():
    one, other = edge_stream(arcs_graph(9)), edge_stream(arcs_graph(8))
    other.undirected = True
    united = unite([one, other], directions=True)
    assert not united.undirected
    ends = np.concatenate([np.stack([u, v], axis=1) for u, v, _ in united.chunks()])
    m = len(arcs_graph(9)[1])
    assert np.array_equal(ends[:m], arcs_graph(9)[1])
    assert {tuple(each) for each in ends[m:]} == {tuple(each[::-1]) for each in ends[m:]}
    looped = edge_stream((2, np.array([[0, 0], [0, 1]]), None))
    looped.undirected = True
    *_, mirrored = unite([one, looped], directions=True).chunks()
    assert [each.tolist() for each in mirrored[:2]] == [[10], [9]]


@pytest.mark.parametrize("neighbours", ["both", *DIRECTIONS])
def test_a_file_that_lists_both_directions_of_its_edges_has_no_repeats(group, shared_path, neighbours):
    arcs, metis = str(shared_path / "arcs.mtx"), str(shared_path / "edge.graph")
    if WORLD.rank == 0:
        banner = "%%MatrixMarket matrix coordinate pattern general"
        (shared_path / "arcs.mtx").write_text(f"{banner}\n3 3 2\n1 2\n2 3\n")
        (shared_path / "edge.graph").write_text("2 1\n2\n1\n")
    WORLD.barrier()
    keys = {"graph.path": [arcs, metis], "graph.neighbours": neighbours, "graph.duplicates": "error"}
    case = build({"run.task": "classify", **keys})
    loaded = load_united(group, case.graph, case)
    assert (loaded.counts.lines, loaded.counts.repeats, loaded.graph.edges) == (4, 0, 3)
    assert (loaded.graph.arcs is None) == (neighbours == "both")


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "text, said",
    [
        (
            '[run]\ntask = "solve"\n[graph]\npath = "a.txt"\nneighbours = "in"',
            "graph.neighbours.*node classification",
        ),
        (
            '[run]\ntask = "train"\n[train.graphs]\npath = "a.txt"\nneighbours = "in"',
            "train.graphs.neighbours",
        ),
        (
            '[run]\ntask = "classify"\n[graph]\ngenerator = "er"\nnodes = 9\nneighbours = "in"',
            "graph.neighbours.*for graphs from files",
        ),
        (
            '[run]\ntask = "classify"\n[graph]\npath = "a.txt"\nneighbours = "in"\ncomplement = true',
            "graph.complement.*must be false",
        ),
        (
            '[run]\ntask = "classify"\n[gnn]\nmodel = "rgcn"\n[graph]\npath = "a.txt"\nneighbours = "in"',
            "graph.neighbours.*node classification",
        ),
    ],
)
def test_where_directions_do_not_count_they_are_refused(tmp_path, text, said):
    path = tmp_path / "case.toml"
    path.write_text(text)
    with pytest.raises(CaseError, match=said):
        load(str(path), [])


def test_a_block_of_arcs_has_two_matrices(group):
    graph = arcs_graph()
    block = make_block(group, graph, neighbours="in")
    A = heard_matrix(graph, "in")
    own = slice(block.lo, block.lo + block.n_real)
    assert np.array_equal(block.adjacency.degrees_own()[: block.n_real], (A > 0).sum(1)[own])
    assert np.array_equal(block.transpose.degrees_own()[: block.n_real], (A > 0).sum(0)[own])
    assert block.A is None and not block.adjacency.directed


def dictionaries(k, count, seed=1):
    """(A, X, labels, training nodes, test nodes) of graphs in which each of k questions hears all k answers.

    An answer's features are its key and its value, a question's are its key; its class is the value of the
    answer with that key (Brody et al. 2022, section 4.1). A third of the graphs are to test.
    """
    draws, n = np.random.default_rng(seed), 2 * k * count
    values = np.array([draws.permutation(k) for _ in range(count)])
    first = 2 * k * np.arange(count)[:, None]
    answers, questions = first + np.arange(k), first + k + np.arange(k)
    X, labels = np.zeros((n, 2 * k), dtype=np.float32), np.full(n, -1)
    X[answers, np.arange(k)] = X[questions, np.arange(k)] = X[answers, k + values] = 1
    labels[questions] = values
    pairs = np.repeat(answers, k, axis=1).ravel(), np.tile(questions, k).ravel()
    cut = 2 * count // 3
    return (
        sp.csr_array((np.ones(k * k * count), pairs), shape=(n, n)), X, labels, questions[:cut].ravel(),
        questions[cut:].ravel(),
    )  # fmt: skip


@pytest.mark.mpi_skip
def test_dynamic_scores_find_what_a_node_asks_for():
    """One head of GAT ranks answers alike for all questions; GATv2's asks each for its own."""
    A, X, labels, learned_from, test = dictionaries(6, 90)
    found = {}
    for model in ("gat", "gatv2"):
        keys = {
            "gnn.layers": [f"{model} 32", "dense"], "graph.neighbours": "in", "gnn.epochs": 250, "seed": 1,
            "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.weight_decay": 0.0, "gnn.evaluate_every": 250,
            "gnn.feature_rows": "as_given", "gnn.baselines": False,
        }  # fmt: skip
        fit = app.classify(A, X, labels=labels, train=learned_from, test=test, settings=keys)
        found[model] = fit.scores["test"].accuracy
    assert found["gatv2"] > 0.95 and found["gat"] < 0.75, found
