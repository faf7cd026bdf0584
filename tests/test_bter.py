"""Graphs with given degrees and triangles, and with planted communities."""

import numpy as np
import pytest
import scipy.sparse as sp
from data import data_dir, needs_data
from mpi4py import MPI

from app.case.config import Case
from app.case.file import build
from app.case.graph import GraphCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.graphs.generators.bter import _Blocks, _cut, bter, power_law_degrees, spread_degrees
from app.graphs.generators.drawn import Weighted
from app.graphs.generators.random_nodes import communities, random_features, random_splits
from app.graphs.generators.sbm import planted
from app.graphs.generators.table import GENERATORS
from app.graphs.graph import from_edges
from app.partition.assemble import gather_whole
from app.partition.load import load_graphs
from app.rng import stream

WORLD = MPI.COMM_WORLD


@pytest.fixture
def group():
    """Nothing here leaves the host."""
    return Group(WORLD, HostDevice())


def graph_of(edges):
    chunks = list(edges.chunks())
    u, v = (np.concatenate([chunk[at] for chunk in chunks]) for at in (0, 1))
    return from_edges(edges.nodes, u, v)


def clustering(graph):
    """Mean local clustering coefficient: of the pairs of a node's neighbours, those that are neighbours."""
    A = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(graph.n, graph.n))
    d = A.sum(axis=1)
    return np.mean((A @ A * A).sum(axis=1) / np.maximum(d * (d - 1), 1))


@pytest.mark.mpi_skip
@pytest.mark.parametrize("scale", [1, 4])
def test_degrees_as_wanted_and_far_more_triangles_than_chung_lu(scale):
    n, edges = 2000, 2000 * 5 * scale
    degrees = power_law_degrees(n, edges, 2.3)
    graph = graph_of(bter(n, degrees, (0.6, 0.02), 3))
    plain = graph_of(GENERATORS["chung_lu"](n, edges, 2.3, 3))
    # Pairs of hubs are drawn more than once, in both kinds of graphs alike.
    assert abs(2 * graph.edges / n / degrees.mean() - 1) < (0.05 if scale == 1 else 0.09)
    assert clustering(graph) > 3 * clustering(plain) and clustering(graph) > 0.25
    # Many nodes have few edges, few have many, as was asked for; node numbers are no order of degrees.
    wanted, found = np.sort(np.minimum(degrees, n - 1)), np.sort(graph.degrees())
    for share in (0.3, 0.5, 0.8, 0.95):
        assert found[int(share * n)] == pytest.approx(wanted[int(share * n)], rel=0.25, abs=2)
    assert abs(np.corrcoef(np.arange(n), graph.degrees())[0, 1]) < 0.1


@pytest.mark.mpi_skip
def test_a_profile_of_zero_is_chung_lu():
    degrees = power_law_degrees(1500, 6000, 2.5)
    graph = graph_of(bter(1500, degrees, (0.0, 0.0), 1))
    assert clustering(graph) < 0.05 and abs(2 * graph.edges / 1500 / 8 - 1) < 0.05


@pytest.mark.mpi_skip
def test_clustering_falls_with_the_decay():
    degrees = np.full(1200, 12.0)
    found = [clustering(graph_of(bter(1200, degrees, (0.5, decay), 2))) for decay in (0.0, 0.1, 0.5)]
    assert found[0] > found[1] > found[2]
    assert found[0] == pytest.approx(0.5, abs=0.12)


@pytest.mark.mpi_skip
def test_blocks_hold_one_node_more_than_their_smallest_degree():
    degrees = np.sort(np.random.default_rng(0).pareto(1.5, 500) * 2 + 0.5)
    starts, sizes = _cut(degrees)
    assert starts[0] == np.searchsorted(degrees, 2) and (starts[1:] == starts[:-1] + sizes[:-1]).all()
    assert np.array_equal(sizes[:-1], degrees[starts[:-1]].astype(int) + 1)
    assert starts[-1] + sizes[-1] == 500
    blocks = _Blocks(degrees, 0.9, 0.0)
    assert (blocks.excess >= 0).all() and (blocks.excess <= degrees).all()
    empty = _Blocks(np.ones(10), 0.5, 0.1)
    assert len(empty.starts) == 0 and (empty.excess == 1).all()


@pytest.mark.mpi_skip
def test_nodes_drawn_by_weight():
    weights = np.array([0, 5, 0, 0, 1, 1000, 0, 1, 0, 3])
    table = Weighted(weights)
    drawn = np.bincount(table.draw(200_000, stream(1, "test")), minlength=10)
    assert (drawn[weights == 0] == 0).all() and drawn.sum() == 200_000
    assert np.allclose(drawn / 200_000, weights / weights.sum(), atol=0.002)


@pytest.mark.mpi_skip
def test_degrees_of_another_graph():
    assert spread_degrees(np.array([9, 1, 4]), 6, 2.0).tolist() == [2, 2, 8, 8, 18, 18]
    assert spread_degrees(np.arange(100), 4, 1.0).tolist() == [12, 37, 62, 87]
    with pytest.raises(CaseError, match="has no nodes"):
        spread_degrees(np.empty(0), 3, 1.0)


@needs_data
def test_degrees_of_a_file(group):
    path = str(data_dir() / "large" / "ca-GrQc.txt")
    table = GraphCase(generator="bter", nodes=3000, degrees_of=path, degree_scale=2.0)
    item = load_graphs(group, table, "instances", Case())[0]
    assert 2 * item.graph.edges / 3000 == pytest.approx(2 * 2 * 14484 / 5242, rel=0.06)


@pytest.mark.parametrize("keys", [
    {"generator": "bter", "d": 6}, {"generator": "sbm", "random_classes": 5},
], ids=lambda keys: keys["generator"])  # fmt: skip
def test_any_number_of_ranks_draws_the_same_graph(group, keys, monkeypatch):
    monkeypatch.setattr("app.graphs.generators.drawn.BLOCK", 500)
    monkeypatch.setattr("app.partition.generated.MADE_BY_ALL", 0)
    item = load_graphs(group, GraphCase(nodes=600, **keys), "instances", Case())[0]
    alone = load_graphs(
        Group(MPI.COMM_SELF, HostDevice()), GraphCase(nodes=600, **keys), "instances", Case()
    )[0]
    whole = gather_whole(group, item.graph, item.rows)
    assert np.array_equal(whole.indices, alone.graph.indices) and item.counts == alone.counts


@pytest.mark.mpi_skip
def test_planted_communities():
    graph = graph_of(planted(3000, 6, 10.0, 2.0, 4))
    label = communities(4, 3000, 6)
    assert np.bincount(label).tolist() == [500] * 6
    same = label[graph.row_of()] == label[graph.indices]
    assert same.sum() / 3000 == pytest.approx(10, rel=0.03)
    assert (~same).sum() / 3000 == pytest.approx(2, rel=0.05)


@pytest.mark.mpi_skip
def test_random_features_are_near_normal_and_of_the_node_alone():
    x = random_features(5, np.arange(3000), 20)
    assert abs(x.mean()) < 0.02 and x.std() == pytest.approx(1, abs=0.01) and np.abs(x).max() < 3.47
    assert abs(np.corrcoef(x.T) - np.eye(20)).max() < 0.1
    some = np.array([7, 2999, 0])
    assert np.array_equal(random_features(5, some, 20), x[some])
    flags = random_splits(5, np.arange(20000))
    assert np.allclose(np.bincount(flags)[[1, 2, 4]] / 20000, [0.6, 0.2, 0.2], atol=0.02)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"generator": "sbm", "nodes": 50}, "graph.random_classes: must be from 2 to the number of nodes"),
        ({"generator": "bter", "nodes": 50, "clustering": 1.0}, "graph.clustering: must be"),
        ({"generator": "bter", "nodes": 50, "degrees_of": "none.txt"}, "graph.degrees_of: no such file"),
        ({"generator": "er", "nodes": 50, "labels": "run.py"}, "graph.labels: is for graphs from files"),
    ],
)
def test_wrong_keys(keys, message):
    with pytest.raises(CaseError, match=message):
        build({f"graph.{key}": value for key, value in keys.items()})
