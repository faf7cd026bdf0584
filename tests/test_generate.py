"""Generated graphs: defined by their arguments, with the properties of their family."""

import math
from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.case.rules import graphs as rules
from app.errors import CaseError
from app.graphs import stream
from app.graphs.generators import bter, checks, near
from app.graphs.generators import chung_lu as chung_lu_module
from app.graphs.generators import random as generate
from app.graphs.generators import rmat as rmat_module
from app.graphs.generators import torus as torus_module
from app.graphs.generators.chung_lu import chung_lu
from app.graphs.generators.drawn_weights import LARGEST, NORMAL_UNIT, WEIGHTS, with_weights
from app.graphs.generators.near import SIDE, geometric, small_world
from app.graphs.generators.random import barabasi_albert, erdos_renyi
from app.graphs.generators.rmat import rmat
from app.graphs.generators.table import GENERATORS
from app.graphs.generators.torus import torus
from app.graphs.graph import from_edges

pytestmark = pytest.mark.mpi_skip


def pairs(opened):
    """u, v [m] of all chunks."""
    chunks = list(opened.chunks())
    assert all(w is None and u.dtype == v.dtype == np.int64 for u, v, w in chunks)
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *(c[0] for c in chunks)]), np.concatenate([empty, *(c[1] for c in chunks)])


@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_er_is_simple_and_repeatable(n, p, seed):
    opened = erdos_renyi(n, p, seed)
    u, v = pairs(opened)
    assert (u >= 0).all() and (u < v).all() and (v < n).all()
    assert len(np.unique(u * n + v)) == len(u) == from_edges(n, u, v).edges
    again = pairs(erdos_renyi(n, p, seed))
    assert np.array_equal(u, again[0]) and np.array_equal(v, again[1])
    assert (opened.nodes, opened.first_id, opened.format) == (n, 0, "generated")


@pytest.mark.parametrize(("n", "p"), [(3000, 0.15), (20_000, 0.0005), (200, 0.9), (1000, 0.5)])
def test_er_has_the_expected_number_of_edges(n, p):
    u, v = pairs(erdos_renyi(n, p, seed=5))
    total = n * (n - 1) // 2
    sigma = math.sqrt(total * p * (1 - p))
    assert abs(len(u) - total * p) < 6 * sigma
    degrees = np.bincount(np.concatenate([u, v]), minlength=n)
    assert abs(degrees.mean() - (n - 1) * p) < 12 * sigma / n
    # A node's degree is binomial: its variance over nodes tells uneven rows from even ones.
    assert degrees.var() == pytest.approx((n - 1) * p * (1 - p), rel=0.3)


def test_er_chooses_every_pair_equally_often():
    n, p, runs = 6, 0.3, 4000
    seen = np.zeros((n, n))
    for seed in range(runs):
        np.add.at(seen, pairs(erdos_renyi(n, p, seed)), 1)
    frequencies = seen[np.triu_indices(n, 1)]
    assert (np.abs(frequencies - runs * p) < 6 * math.sqrt(runs * p * (1 - p))).all()


@pytest.mark.parametrize("p", [0, 0.0, 1, 1.0, 1e-300, 5e-324])
def test_er_at_the_ends_of_p(p):
    u, _ = pairs(erdos_renyi(700, p, seed=1))
    assert len(u) == (700 * 699 // 2 if p == 1 else 0)


def test_er_does_not_depend_on_the_chunk_size(monkeypatch):
    u, v = pairs(erdos_renyi(2000, 0.2, seed=3))
    assert len(u) > generate.BLOCK
    monkeypatch.setattr(stream, "CHUNK_EDGES", 777)
    opened = erdos_renyi(2000, 0.2, seed=3)
    assert max(len(chunk[0]) for chunk in opened.chunks()) == 777
    small = pairs(opened)
    assert np.array_equal(u, small[0]) and np.array_equal(v, small[1])


def test_seeds_give_different_graphs():
    assert not np.array_equal(pairs(erdos_renyi(50, 0.5, 1))[0], pairs(erdos_renyi(50, 0.5, 2))[0])
    assert not np.array_equal(pairs(barabasi_albert(50, 4, 1))[1], pairs(barabasi_albert(50, 4, 2))[1])


@pytest.mark.parametrize(("n", "d", "seed"), [(2, 1, 0), (20, 19, 5), (50, 4, 1), (700, 4, 9)])
def test_ba_is_the_graph_of_networkx(n, d, seed, monkeypatch):
    monkeypatch.setattr(generate, "CHUNK_EDGES", 100)
    stream = barabasi_albert(n, d, seed)
    u, v = pairs(stream)
    assert np.array_equal(pairs(stream), (u, v))  # another reading
    want = networkx.barabasi_albert_graph(n, d, seed=seed)
    assert sorted(map(sorted, zip(u.tolist(), v.tolist()))) == sorted(map(sorted, want.edges()))
    assert from_edges(n, u, v).edges == d * (n - d)


@pytest.mark.parametrize(
    ("kind", "arguments", "where"),
    [
        ("er", (0, 0.1, 1), "graph.n: must be an integer 1.."),
        ("er", (2.0, 0.1, 1), "graph.n"),
        ("er", (True, 0.1, 1), "graph.n"),
        ("er", (2**31 + 1, 0.1, 1), "graph.n"),
        ("er", (5, 1.5, 1), "graph.p: must be 0..1, got 1.5"),
        ("er", (5, -0.1, 1), "graph.p"),
        ("er", (5, math.nan, 1), "graph.p"),
        ("er", (5, "a", 1), "graph.p"),
        ("er", (5, 0.5, -1), "graph.seed"),
        ("ba", (5, 0, 1), "graph.d: must be an integer 1..4, got 0"),
        ("ba", (5, 5, 1), "graph.d"),
        ("ba", (1, 1, 1), "graph.n"),
        ("ba", (5, 2, 0.5), "graph.seed"),
        ("torus", (5, 1.5, 1), "graph.removed: must be 0..1, got 1.5"),
        ("torus", (5, math.nan, 1), "graph.removed"),
        ("small_world", (5, 5, 0.1, 1), "graph.d: must be an integer 1..4, got 5"),
        ("small_world", (5, 2, -0.1, 1), "graph.p: must be 0..1, got -0.1"),
        ("geometric", (0, 5, 1), "graph.nodes"),
        ("geometric", (5, -1, 1), "graph.edges"),
    ],
)
def test_bad_parameters_are_named(kind, arguments, where):
    with pytest.raises(CaseError) as caught:
        GENERATORS[kind](*arguments)
    assert where in str(caught.value)


# ---- R-MAT and Chung-Lu ------------------------------------------------------------------------------------

QUADRANTS = (0.57, 0.19, 0.19)


@pytest.mark.parametrize("n", [1, 2, 3, 50, 64, 1000])
@pytest.mark.parametrize("make", [lambda n: rmat(n, 500, QUADRANTS, 3), lambda n: chung_lu(n, 500, 2.3, 3)])
def test_drawn_edges_are_repeatable_and_in_range(make, n, monkeypatch):
    opened = make(n)
    u, v = pairs(opened)
    assert len(u) == len(v) == opened.lines == 500 and opened.nodes == n
    assert min(u.min(), v.min()) >= 0 and max(u.max(), v.max()) < n
    monkeypatch.setattr(stream, "CHUNK_EDGES", 77)
    again = pairs(make(n))
    assert np.array_equal(u, again[0]) and np.array_equal(v, again[1])


@pytest.mark.parametrize("module", [rmat_module, chung_lu_module])
@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_parts_of_drawn_edges_are_all_of_them(module, size, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 64)
    opened = rmat(90, 300, QUADRANTS, 1) if module is rmat_module else chung_lu(90, 300, 3.0, 1)
    wanted = np.stack(pairs(opened), axis=1)
    found = [c[:2] for rank in range(size) for c in opened.part(opened, rank, size)]
    found = np.concatenate([np.stack(c, axis=1) for c in found])
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, wanted.tolist()))


def test_rmat_fills_the_quarters_as_asked():
    draws = np.random.default_rng(0)
    u, v = rmat_module._descend(1, 200_000, QUADRANTS, draws)
    shares = np.bincount(2 * u + v, minlength=4) / 200_000
    assert np.abs(shares - [0.57, 0.19, 0.19, 0.05]).max() < 0.005
    u, v = rmat_module._descend(2, 200_000, QUADRANTS, draws)
    assert (u * 4 + v == 0).mean() == pytest.approx(0.57**2, abs=0.005)
    assert ((u == 3) & (v == 3)).mean() == pytest.approx(0.05**2, abs=0.001)


def test_chung_lu_has_the_expected_degrees():
    n, edges, exponent = 20_000, 200_000, 2.5
    ends = chung_lu_module.PowerLawEnds(n, edges, exponent)
    drawn = np.bincount(ends.draw(2 * edges, np.random.default_rng(0)), minlength=n)
    expected = np.diff(ends.sums) * (2 * edges / ends.total)
    assert expected[0] == pytest.approx(math.sqrt(2 * edges), rel=0.2)
    assert (np.diff(expected) <= 0).all()
    # Twice the rank divides the degree by 2^(1/(exponent-1)) far from both ends.
    assert expected[4000] / expected[8000] == pytest.approx(2 ** (1 / 1.5), rel=0.02)
    for group in np.array_split(np.arange(n), 20):
        mean = expected[group].sum()
        assert abs(drawn[group].sum() - mean) < 6 * math.sqrt(mean)


def test_a_large_power_law_graph():
    n, edges = 100_000, 400_000
    u, v = pairs(chung_lu(n, edges, 2.3, 1))
    graph = from_edges(n, u, v)
    assert 0.99 * edges < graph.edges <= edges
    degrees = np.sort(graph.degrees())[::-1]
    assert 750 < degrees[0] < 1250
    tail = degrees[:5_000]
    assert 1 + 1 / np.mean(np.log(tail / tail[-1])) == pytest.approx(2.3, abs=0.15)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6, 36, 97, 400])
def test_a_torus_has_four_neighbours_a_node_and_is_connected(n, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK_EDGES", 7)
    u, v = pairs(torus(n, 0.0, 1))
    wanted = {tuple(sorted((i, (i + step) % n))) for i in range(n) for step in (1, math.isqrt(n))}
    assert {tuple(sorted(pair)) for pair in zip(u.tolist(), v.tolist())} == wanted
    if n >= 5:
        assert len(u) == from_edges(n, u, v).edges == 2 * n
        assert set(from_edges(n, u, v).degrees().tolist()) == {4}


def test_a_torus_is_as_wide_as_it_is_high():
    graph = networkx.Graph(zip(*(ends.tolist() for ends in pairs(torus(49, 0.0, 1)))))
    assert networkx.is_connected(graph)
    assert networkx.diameter(graph) == 6


def test_a_torus_loses_its_share_of_edges(monkeypatch):
    whole = set(zip(*(ends.tolist() for ends in pairs(torus(90_000, 0.0, 5)))))
    monkeypatch.setattr(torus_module, "BLOCK", 7000)
    found = set(zip(*(ends.tolist() for ends in pairs(torus(90_000, 0.3, 5)))))
    assert found < whole and abs(len(found) - 0.7 * len(whole)) < 6 * math.sqrt(0.21 * len(whole))
    assert found != set(zip(*(ends.tolist() for ends in pairs(torus(90_000, 0.3, 6)))))
    # Each direction by itself: no node has lost both edges ahead more often than chance has it.
    lost = {u for u, _ in whole - found}
    both = sum(u in lost for u in range(90_000)) / 90_000
    assert both == pytest.approx(1 - 0.7**2, abs=0.01)
    monkeypatch.setattr(stream, "CHUNK_EDGES", 11)
    assert set(zip(*(ends.tolist() for ends in pairs(torus(90_000, 0.3, 5))))) == found
    assert not pairs(torus(50, 1.0, 1))[0].size


# ---- small worlds and points near each other ---------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(2, 1), (5, 4), (40, 1), (97, 3)])
def test_a_ring_without_moved_ends(n, d):
    u, v = pairs(small_world(n, d, 0.0, 1))
    wanted = {frozenset((i, (i + hop) % n)) for i in range(n) for hop in range(1, d + 1)}
    assert {frozenset(pair) for pair in zip(u.tolist(), v.tolist())} == wanted and len(u) == n * d


def test_a_small_world_moves_its_share_of_ends_anywhere(monkeypatch):
    n, d, p = 30_000, 3, 0.2
    monkeypatch.setattr(near, "BLOCK", 4096)
    opened = small_world(n, d, p, 9)
    u, v = pairs(opened)
    assert len(u) == opened.lines == n * d
    ahead = (v - u) % n
    moved = (ahead == 0) | (ahead > d)
    assert abs(moved.sum() - p * n * d) < 6 * math.sqrt(p * (1 - p) * n * d)
    # Moved ends are even over the nodes, and each hop has its share.
    tenths = np.bincount(v[moved] // (n // 10), minlength=10)
    assert (np.abs(tenths - tenths.mean()) < 6 * math.sqrt(tenths.mean())).all()
    assert set(ahead[~moved].tolist()) == {1, 2, 3}
    parts = [c[:2] for rank in range(3) for c in opened.part(opened, rank, 3)]
    found = np.concatenate([np.stack(c, axis=1) for c in parts])
    assert sorted(map(tuple, found.tolist())) == sorted(zip(u.tolist(), v.tolist()))


@pytest.mark.parametrize(("n", "edges"), [(1, 0), (2, 1), (60, 90), (200, 1000), (50, 100_000)])
def test_points_within_a_distance_are_joined(n, edges, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK_EDGES", 17)
    u, v = pairs(geometric(n, edges, 4))
    points = near.stream(4, "geometric").integers(0, SIDE, (n, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    reach = SIDE**2 * 2 * edges / (math.pi * max(n * (n - 1), 1))
    close = [
        (a, b) for a in range(n) for b in range(a + 1, n) if squares[a, b] <= math.isqrt(int(reach)) ** 2
    ]
    assert list(zip(u.tolist(), v.tolist())) == close


def test_a_geometric_graph_has_about_the_edges_asked_for():
    u, _ = pairs(geometric(20_000, 60_000, 2))
    assert 0.95 * 60_000 < len(u) < 60_000  # along the border some have fewer neighbours


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_are_a_function_of_the_edge(kind, monkeypatch):
    n, seed = 300, 7

    def table(chunks):
        return {(*sorted((int(a), int(b))), float(c)) for u, v, w in chunks for a, b, c in zip(u, v, w)}

    opened = with_weights(erdos_renyi(n, 0.3, 1), kind, seed)
    wanted = table(opened.chunks())
    assert opened.weighted and len({edge[:2] for edge in wanted}) == len(wanted)
    monkeypatch.setattr(stream, "CHUNK_EDGES", 777)
    assert table(with_weights(erdos_renyi(n, 0.3, 1), kind, seed).chunks()) == wanted
    plain = erdos_renyi(n, 0.3, 1)
    turned = replace(plain, make=lambda found: ((v, u, w) for u, v, w in plain.make(found)))
    assert table(with_weights(turned, kind, seed).chunks()) == wanted
    assert table(with_weights(erdos_renyi(n, 0.3, 1), kind, seed + 1).chunks()) != wanted
    drawn = with_weights(rmat(90, 300, QUADRANTS, 1), kind, seed)
    assert table(drawn.chunks()) == table(c for rank in range(3) for c in drawn.part(drawn, rank, 3))


def test_weights_are_spread_as_their_kind_says():
    opened = erdos_renyi(500, 0.5, 1)
    streams = {kind: with_weights(opened, kind, 3) for kind in WEIGHTS}
    found = {kind: np.concatenate([w for *_, w in s.chunks()]) for kind, s in streams.items()}
    count = len(found["signs"])
    assert all(w.dtype == np.float32 and len(w) == count > 60_000 for w in found.values())
    assert set(found["signs"].tolist()) == {1.0, -1.0}
    assert abs(found["signs"].sum()) < 5 * count**0.5
    values, times = np.unique(found["whole"], return_counts=True)
    assert values.tolist() == list(range(1, LARGEST + 1))
    assert np.abs(times - count / LARGEST).max() < 5 * (count / LARGEST) ** 0.5
    normal = found["normal"]
    assert (normal * NORMAL_UNIT == np.rint(normal * NORMAL_UNIT)).all()
    assert abs(normal.mean()) < 5 / count**0.5
    assert normal.std() == pytest.approx(1, abs=0.01)
    assert with_weights(opened, "one", 3) is opened


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rmat(0, 5, QUADRANTS, 1), "graph.nodes: must be an integer 1.."),
        (lambda: rmat(5, -1, QUADRANTS, 1), "graph.edges: must be an integer 0.."),
        (lambda: rmat(5, 5, (0.5, 0.4, 0.3), 1), "sum of at most 1"),
        (lambda: rmat(5, 5, (0, 0, 0), 1), "a = b = c = 0"),
        (lambda: chung_lu(5, 5, 2.0, 1), "graph.exponent: must be above 2"),
        (lambda: chung_lu(5, 5, math.nan, 1), "graph.exponent: must be above 2"),
        (lambda: chung_lu(5, 5.0, 2.5, 1), "graph.edges: must be an integer"),
        (lambda: chung_lu(5, 5, 2.5, -1), "graph.seed"),
    ],
)
def test_parameters_that_are_refused(make, message):
    with pytest.raises(CaseError, match=message):
        make()


@pytest.mark.mpi_skip
def test_a_case_is_held_to_the_limits_of_the_generators():
    """They stand in both: what checks a case loads no NumPy."""
    assert (rules.MOST_NODES, rules.MOST_EDGES) == (checks.MOST_NODES, bter.MOST_EDGES)
