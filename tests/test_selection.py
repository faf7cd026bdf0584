"""Independent sets with a node of every clique: found where there are any, and what bounds make of them."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
from helpers import random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds.cover import part as cover_part
from app.bounds.cover import selection
from app.bounds.cover.bounds import CoverBounds
from app.bounds.cover.clique_cover import CliqueSearch
from app.bounds.cover.kernels import Rows
from app.bounds.cover.part import CLIQUES
from app.bounds.cover.selection import Selection, available
from app.graphs.graph import from_edges
from app.search.cover.start import greedy_cover

pytestmark = pytest.mark.mpi_skip
if not available():
    pytest.skip("python-sat is not installed", allow_module_level=True)


def planted(groups, size, p, seed):
    """Cliques of `size` nodes, and between them random edges that spare one node of each: a hidden set."""
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(groups * size, 1)
    hidden = (u % size == 0) & (v % size == 0)
    keep = (u // size == v // size) | ((rng.random(len(u)) < p) & ~hidden)
    return from_edges(groups * size, u[keep], v[keep])


def answer(graph, weights, clique):
    """A selection asked to its end: the set, or None."""
    selection = Selection(Rows(graph), weights, clique)
    for _ in range(1000):
        selection.run()
        if selection.done:
            break
    found = selection.found
    assert selection.done
    selection.run()  # does nothing more
    assert selection.found is found
    selection.close()
    return found


def heaviest_set(graph, weights):
    """The weight of the heaviest independent set, by looking at all."""
    rows, columns = graph.row_of(), graph.indices
    sets = np.array(list(itertools.product([False, True], repeat=graph.n)), dtype=bool)
    free = ~(sets[:, rows] & sets[:, columns]).any(axis=1)
    return int((sets[free] @ weights).max())


@st.composite
def weighted_graphs(draw):
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return from_edges(n, [u for u, _ in edges], [v for _, v in edges]), np.array(weights)


@given(case=weighted_graphs())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_set_is_found_exactly_where_the_bound_is_attained(case):
    graph, weights = case
    cliques = CliqueSearch(Rows(graph), weights)
    for _ in range(3):
        cliques.run(5)
    found = answer(graph, weights, cliques.clique)
    assert (found is not None) == (heaviest_set(graph, weights) == cliques.left_out)
    if found is not None:
        assert int(weights[found].sum()) == cliques.left_out
        assert not (found[graph.row_of()] & found[graph.indices]).any()


def test_equal_questions_have_equal_answers():
    graph = planted(40, 6, 0.1, 1)
    clique = np.arange(graph.n) // 6
    one, other = (answer(graph, np.ones(graph.n, dtype=np.int64), clique) for _ in range(2))
    assert one.sum() == 40
    assert np.array_equal(one, other)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_bounds_find_the_cover_that_attains_them(weighted, monkeypatch):
    """A cover that is near is known; the bounds come to the optimum by themselves, before any search does."""
    monkeypatch.setattr(cover_part, "NEAR", 0.1)
    graph = planted(60, 5, 0.08, 3)
    weights = np.repeat(np.random.default_rng(4).integers(1, 9, 60), 5) if weighted else None
    price = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    start = greedy_cover(graph, weights)
    hidden = int(price[np.arange(graph.n) % 5 != 0].sum())
    assert price[start].sum() > hidden
    bounds = CoverBounds(graph, weights, search=False)
    bounds.expect(60.0)
    closing = False
    for _ in range(2000):
        more = bounds.improve(0.001, int(price[start].sum()), start)
        closing |= bounds.closing
        if bounds.optimum is not None or not more:
            break
    assert closing
    assert not bounds.closing
    assert bounds.method == CLIQUES
    assert bounds.lower == price[bounds.optimum].sum() == hidden
    assert (bounds.optimum[graph.row_of()] | bounds.optimum[graph.indices]).all()
    bounds.certificate().check(graph)


def test_a_signal_is_the_programs(monkeypatch):
    """The solver leaves SIGINT alone: a slice ends, and the program's own handler has been called."""
    monkeypatch.setattr(selection, "CONFLICTS", 3000)
    graph = planted(60, 12, 0.35, 7)
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        asked = Selection(Rows(graph), np.ones(graph.n, dtype=np.int64), np.arange(graph.n) // 12)
        for _ in range(2):
            count = len(heard)
            timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            asked.run()
            timer.join()
            while len(heard) == count:  # a limit of time is the suite's
                time.sleep(0.01)
        assert len(heard) == 2
        asked.close()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_cover_of_one_component_does_not_wait_for_the_others(monkeypatch):
    """The hidden cover of a component that a solver finds, and the best known of one that stays open."""
    monkeypatch.setattr(cover_part, "NEAR", 0.1)
    hidden, (n, edges, _) = planted(60, 5, 0.08, 3), random_graph(300, 0.1, 3)
    both = np.concatenate([np.stack([hidden.row_of(), hidden.indices], axis=1), edges + hidden.n])
    graph = from_edges(hidden.n + n, both[:, 0], both[:, 1])
    known = greedy_cover(graph)
    least = int(known[hidden.n :].sum()) + 4 * 60
    assert known.sum() > least
    bounds = CoverBounds(graph, search=False)
    bounds.expect(60.0)
    found = None
    for _ in range(2000):
        bounds.improve(0.001, int(known.sum()), known)
        found = bounds.pieces()
        if found is not None and found.sum() == least:
            break
    assert bounds.optimum is None
    assert found.sum() == least
    assert (found[graph.row_of()] | found[graph.indices]).all()


def test_a_question_ends_with_its_part(monkeypatch):
    """The caller's own cover reaches the bound of one component meanwhile: nothing is closing any more."""
    monkeypatch.setattr(cover_part, "NEAR", 0.1)
    monkeypatch.setattr(selection, "CONFLICTS", 1)
    hidden, (n, edges, _) = planted(60, 5, 0.08, 3), random_graph(300, 0.1, 3)
    both = np.concatenate([np.stack([hidden.row_of(), hidden.indices], axis=1), edges + hidden.n])
    graph = from_edges(hidden.n + n, both[:, 0], both[:, 1])
    known = greedy_cover(graph)
    bounds = CoverBounds(graph, search=False)
    bounds.expect(60.0)
    while not bounds.closing:
        assert bounds.improve(1e-6, int(known.sum()), known)
    known[: hidden.n] = np.arange(hidden.n) % 5 != 0
    for _ in range(5):
        bounds.improve(0.01, int(known.sum()), known)
    assert not bounds.closing


def test_what_is_not_asked(monkeypatch):
    """Nothing where the best cover is far from the bound, the graph too large, or the solver missing."""
    graph = planted(60, 5, 0.08, 3)
    start = greedy_cover(graph)
    for name, value in (("NEAR", 0.0), ("MOST_ENTRIES", 10), ("available", lambda: False)):
        with monkeypatch.context() as patch:
            patch.setattr(cover_part, "NEAR", 0.1)
            patch.setattr(cover_part, name, value)
            patch.setattr(cover_part, "Selection", None)
            known = np.ones(graph.n, dtype=bool) if name == "NEAR" else start
            bounds = CoverBounds(graph, search=False)
            bounds.expect(60.0)
            for _ in range(100):
                bounds.improve(0.001, int(known.sum()), known)
            assert bounds.optimum is None
    with monkeypatch.context() as patch:  # without a time limit nobody would take it
        patch.setattr(cover_part, "NEAR", 0.1)
        patch.setattr(cover_part, "Selection", None)
        bounds = CoverBounds(graph, search=False)
        for _ in range(100):
            bounds.improve(0.001, int(start.sum()), start)
        assert bounds.optimum is None
