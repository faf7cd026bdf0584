"""Orders of rows: functions of the graph and the seed, on any number of ranks; the graph stays the same."""

import importlib.util
import sys

import networkx
import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import edge_stream, growing_graph, random_graph
from mpi4py import MPI

from app.case.config import Case
from app.case.file import build
from app.case.graph import GraphCase
from app.case.run import MemoryCase, ParallelCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.graphs.formats.memory import stream_of_object
from app.partition import order
from app.partition.assemble import gather_whole
from app.partition.even import entries_weights
from app.partition.generated import generate_set
from app.partition.load import load_graphs, ordered
from app.partition.rows import cut_blocks
from app.partition.streams import load_stream
from app.tasks.refused import check_names

WORLD = MPI.COMM_WORLD
ORDERS = ["random", "rcm", "blocks", pytest.param("metis", marks=pytest.mark.skipif(
    importlib.util.find_spec("pymetis") is None, reason="pymetis is not installed"))]  # fmt: skip


@pytest.fixture
def group():
    """Nothing here leaves the host."""
    return Group(WORLD, HostDevice())


@pytest.fixture
def solo():
    """This rank alone."""
    return Group(MPI.COMM_SELF, HostDevice())


def loaded(group, graph, name, case=None):
    stream = edge_stream(graph) if group.rank == 0 else None
    item = load_stream(group, stream, GraphCase(), case or Case())
    return ordered(group, item, name, case or Case())


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_graph_in_another_order(group, solo, name, weighted, monkeypatch):
    monkeypatch.setattr(order, "SENT_ENTRIES", 32)
    graph = random_graph(83, 0.1, 5, weighted)
    item = loaded(group, graph, name)
    whole, plain = gather_whole(group, item.graph, item.rows), loaded(solo, graph, "natural").graph
    old = item.order_all
    assert np.array_equal(np.sort(old), np.arange(83)) and not np.array_equal(old, np.arange(83))
    assert np.array_equal(whole.ids, old) and whole.edges == plain.edges
    for row in range(83):
        cut = slice(whole.indptr[row], whole.indptr[row + 1])
        columns = whole.indices[cut]
        assert (np.diff(columns) > 0).all()
        at = slice(plain.indptr[old[row]], plain.indptr[old[row] + 1])
        back = np.argsort(old[columns])
        assert np.array_equal(old[columns][back], plain.indices[at])
        if weighted:
            assert np.array_equal(whole.weights[cut][back], plain.weights[at])
    alone = loaded(solo, graph, name)
    assert np.array_equal(alone.order_all, old) and np.array_equal(alone.graph.indices, whole.indices)
    assert np.array_equal(alone.rows.starts, item.rows.starts)


@pytest.mark.parametrize("balance", ["rows", "edges"])
def test_random_order_shares_the_entries_of_a_skewed_graph(group, balance):
    graph = growing_graph(1200, 4, 3)
    case = Case(parallel=ParallelCase(partition=balance))
    most = {}
    for name in ("natural", "random"):
        item = loaded(group, graph, name, case)
        most[name] = group.max_integer(len(item.graph.indices))
    mean = 2 * item.graph.edges / group.size
    assert most["random"] <= 1.25 * mean
    if group.size > 1 and balance == "rows":
        assert most["random"] < most["natural"]


def test_cuthill_mckee_brings_neighbours_together(group):
    graph = networkx.relabel_nodes(networkx.grid_2d_graph(12, 12), dict(zip(
        networkx.grid_2d_graph(12, 12), np.random.default_rng(0).permutation(144).tolist())))  # fmt: skip
    ordered_graph = networkx.Graph()
    ordered_graph.add_nodes_from(range(144))
    ordered_graph.add_edges_from(graph.edges)
    width = {}
    for name in ("natural", "rcm"):
        stream = stream_of_object(ordered_graph)[0] if group.rank == 0 else None
        item = ordered(group, load_stream(group, stream, GraphCase(), Case()), name, Case())
        found = np.abs(item.graph.row_of() - item.graph.indices).max(initial=0)
        width[name] = group.max_integer(int(found))
    assert width["rcm"] <= 20 < 80 < width["natural"]


@pytest.mark.parametrize("name", ORDERS)
def test_ids_of_a_file_go_with_the_rows(group, name):
    item = load_graphs(group, GraphCase(path=["networkx:les_miserables"], order=name), "instances", Case())[0]
    lo, hi = item.rows.range_of(group.rank)
    assert np.array_equal(item.graph.node_ids(np.arange(lo, hi)), item.order_all[lo:hi])
    assert item.graph.weights is not None


def test_a_set_of_graphs_keeps_its_cuts(group):
    """Equal rows are those of any order; equal edges follow the order, and are of all graphs together."""
    table = GraphCase(generator="er", nodes=(30, 60), p=0.2, count=4, order="random")
    plain = generate_set(group, table, 0, "training")
    rows, edges = (
        load_graphs(group, table, "training", Case(parallel=ParallelCase(partition=balance)))
        for balance in ("rows", "edges")
    )
    weights = sum(entries_weights(group, item.graph, item.rows.starts) for item in edges)
    for item, other, before in zip(rows, edges, plain, strict=True):
        assert np.array_equal(item.rows.cuts, before.rows.cuts) and item.graph.edges == before.graph.edges
        assert np.array_equal(other.rows.cuts, cut_blocks(weights, group.size))
        assert np.array_equal(other.rows.starts, before.rows.starts) and other.graph.edges == item.graph.edges
        assert np.array_equal(item.order_all, other.order_all)
        assert item.order_all is not None


def test_small_and_empty_graphs(group):
    for n in (1, 2, 9):
        item = loaded(group, random_graph(n, 0.0, 1), "rcm")
        assert sorted(item.order_all.tolist()) == list(range(n)) and len(item.graph.indices) == 0


def test_what_is_refused(group):
    small = Case(memory=MemoryCase(whole_graph_mb=0.001))
    graph = random_graph(60, 0.2, 1)
    with pytest.raises(CaseError, match=r'graph.order = "rcm": graph needs 0 MB on one rank; "random", or'):
        loaded(group, graph, "rcm", small)
    assert loaded(group, graph, "random", small).order_all is not None
    with pytest.raises(CaseError, match=r'graph.order: .* has distances between all nodes; "natural" would'):
        stream = stream_of_points() if group.rank == 0 else None
        ordered(group, load_stream(group, stream, GraphCase(), Case()), "random", Case())
    with pytest.raises(CaseError, match=r'graph.order: must be "natural" for graphs with distances'):
        build({"graph.generator": "uniform_points", "graph.nodes": 20, "graph.order": "random"})


def stream_of_points():
    from app.graphs.points import generate_points

    return generate_points(20, 1)


def test_metis_that_is_not_installed(group, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(CaseError, match=r'graph.order = "metis": pymetis is not installed; pip install'):
        loaded(group, random_graph(60, 0.2, 1), "metis")
    for table in ("graph", "train.graphs"):  # before anything is trained or read
        case = {"graph.generator": "er", "graph.nodes": 9, "policy.weights": "train"}
        drawn = {f"{table}.generator": "er", f"{table}.nodes": 9, f"{table}.order": "metis"}
        with pytest.raises(CaseError, match=r'graph.order = "metis": pymetis is not installed; pip install'):
            check_names(build(case | drawn))


@needs_data
@pytest.mark.parametrize("name", ORDERS)
def test_a_real_graph(group, solo, name):
    path = str(data_dir() / "large" / "ca-GrQc.txt")
    table = GraphCase(path=[path], order=name)
    item = load_graphs(group, table, "instances", Case())[0]
    alone = load_graphs(solo, table, "instances", Case())[0]
    whole = gather_whole(group, item.graph, item.rows)
    assert np.array_equal(whole.indices, alone.graph.indices) and np.array_equal(whole.ids, alone.graph.ids)
