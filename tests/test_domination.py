"""bounds/domination/: packings never pass the smallest dominating set, wrong ones are refused."""

import itertools
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.optimize
from helpers import graph_of

from app.bounds.certificate import BadCertificate
from app.bounds.domination.bounds import DominationBounds
from app.bounds.domination.packing import (
    DOMINATION_BOUNDS,
    ONE,
    improving_packings,
    linear_program,
    packed_neighbourhoods,
    shared_prices,
    solved_program,
)

pytestmark = pytest.mark.mpi_skip


def smallest(drawn):
    """Nodes of a smallest dominating set, by trying all."""
    closed = [{v, *drawn[v]} for v in drawn]
    for k in range(len(closed) + 1):
        for chosen in itertools.combinations(closed, k):
            if len(set().union(*chosen)) == len(closed):
                return k
    raise AssertionError


@pytest.mark.parametrize("name", DOMINATION_BOUNDS)
@pytest.mark.parametrize("seed", range(30))
def test_a_bound_is_no_more_than_the_smallest_set(name, seed):
    drawn = nx.gnp_random_graph(4 + seed % 9, 0.1 + 0.02 * seed, seed=seed)
    graph = graph_of(drawn)
    bound = DOMINATION_BOUNDS[name](graph)
    bound.check(graph)
    assert bound.lower <= smallest(drawn)


def test_known_values():
    assert linear_program(graph_of(nx.path_graph(9))).lower == 3
    assert linear_program(graph_of(nx.star_graph(5))).lower == 1
    assert linear_program(graph_of(nx.empty_graph(4))).lower == 4
    assert linear_program(graph_of(nx.cycle_graph(5))).lower == 2
    assert linear_program(graph_of(nx.empty_graph(0))).lower == 0


def test_packings_come_close_to_the_linear_program():
    """The bound only gets better, says what it proves, and when nothing better is to come."""
    for drawn in (nx.barabasi_albert_graph(300, 3, seed=1), nx.gnp_random_graph(200, 0.05, seed=2)):
        graph = graph_of(drawn)
        wanted = linear_program(graph)
        found = list(improving_packings(graph))
        assert found[-1].numerators.sum() >= 0.995 * wanted.numerators.sum()
        for each in found[::20]:
            each.check(graph)
            assert each.lower <= wanted.lower
        bounds = DominationBounds(graph)
        assert (bounds.value, bounds.method, bounds.optimum()) == (0, "", None)
        values = []
        while bounds.improve(0.0, graph.n):
            bounds.best.check(graph)
            values.append(bounds.value)
        assert values == sorted(values)
        assert bounds.value == wanted.lower
        assert not bounds.improve(0.0, graph.n)
        closing = DominationBounds(graph)
        assert not closing.improve(60.0, wanted.lower - 1)
        assert closing.value >= wanted.lower - 1


def cheapest(drawn, price):
    """The least price of a dominating set, by trying all."""
    closed = [{v, *drawn[v]} for v in drawn]
    sets = itertools.product((False, True), repeat=len(closed))
    return min(
        int(price[list(chosen)].sum()) for chosen in sets
        if len(set().union(*itertools.compress(closed, chosen))) == len(closed)
    )  # fmt: skip


@pytest.mark.parametrize("largest", [5, 1 << 40])
@pytest.mark.parametrize("seed", range(8))
def test_a_bound_is_no_more_than_the_cheapest_set(seed, largest):
    drawn = nx.gnp_random_graph(5 + seed, 0.3, seed=seed)
    graph, price = graph_of(drawn), np.random.default_rng(seed).integers(1, largest, 5 + seed)
    wanted = cheapest(drawn, price)
    for bound in (*improving_packings(graph, price), linear_program(graph, price)):
        bound.check(graph)
        assert bound.lower <= wanted
    assert bound.lower >= 0.7 * wanted
    with pytest.raises(BadCertificate, match=r"add up to more than its price|prices above 0"):
        replace(bound, weights=bound.weights // 2).check(graph)


def test_components_are_rounded_up_apart():
    """A 4-cycle needs two nodes, of which the relaxation pays for 4/3."""
    graph = graph_of(nx.disjoint_union_all([nx.cycle_graph(4)] * 30))
    assert linear_program(graph).lower == 60
    assert max(each.lower for each in improving_packings(graph)) == 60


@pytest.mark.parametrize("seed", range(30))
def test_shared_prices_are_a_packing(seed):
    """Of any question: with prices, nodes that need not be dominated, nodes that may not be chosen."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 30))
    graph = graph_of(nx.gnp_random_graph(n, float(random.uniform(0, 0.6)), seed=seed))
    weights = random.integers(1, 50, n) if seed % 2 else None
    needed, allowed = (random.random(n) < 0.7 if seed % 3 else None for _ in range(2))
    found = shared_prices(graph, weights, needed, allowed)
    found.check(graph)
    if needed is None and allowed is None:
        dearest = 1 if weights is None else int(weights.min())
        assert found.lower >= -(-n * dearest // (1 + int(graph.degrees().max())))


@pytest.mark.parametrize("cheap", [1, 1000])
def test_prices_of_nodes_that_may_not_be_chosen_change_nothing(cheap):
    """The first-order method comes near the linear program's optimum whatever they are."""
    random = np.random.default_rng(2)
    graph = graph_of(nx.bipartite.random_graph(60, 30, 0.15, seed=2))
    allowed, weights = np.arange(90) < 60, random.integers(50, 100, 90)
    needed, weights[60:] = ~allowed & (graph.degrees() > 0), cheap
    found = packed_neighbourhoods(graph, weights, needed, allowed)
    found.check(graph)
    assert found.lower >= 0.99 * linear_program(graph, weights, needed, allowed).lower


def test_a_wrong_witness_is_refused():
    graph = graph_of(nx.barabasi_albert_graph(40, 3, seed=1))
    bound = linear_program(graph)
    more = bound.numerators.copy()
    more[int(more.argmax())] += ONE // 2
    for wrong in (
        replace(bound, lower=bound.lower + 1),
        replace(bound, numerators=more),
        replace(bound, numerators=-bound.numerators),
        replace(bound, numerators=bound.numerators[:-1]),
        replace(bound, numerators=bound.numerators.astype(float)),
    ):
        with pytest.raises(BadCertificate):
            wrong.check(graph)


@pytest.mark.parametrize(("limit", "begun"), [(None, True), (30.0, True), (0.05, False)])
def test_a_linear_program_is_begun_where_a_time_limit_has_room(limit, begun, monkeypatch):
    """Nothing is heard while it is solved; it ends with the limit."""
    seen, real = [], scipy.optimize.linprog

    def linprog(*arguments, options, **keys):
        seen.append(options.get("time_limit"))
        return real(*arguments, options=options, **keys)

    monkeypatch.setattr("scipy.optimize.linprog", linprog)
    monkeypatch.setattr("app.bounds.domination.exact.available", lambda: False)
    graph = graph_of(nx.barabasi_albert_graph(800, 3, seed=1))
    bounds = DominationBounds(graph)
    if limit is not None:
        bounds.expect(limit)
    while bounds.improve(0.0, graph.n):
        pass
    assert bounds.checked
    bounds.best.check(graph)
    assert len(seen) == begun
    if begun and limit is not None:
        assert 0 < seen[0] <= limit
    end = math.inf if limit is None else time.perf_counter() + limit
    assert len(list(solved_program(graph, None, end=lambda: end))) == begun


def test_a_linear_program_without_values_leaves_the_packings(monkeypatch):
    graph = graph_of(nx.gnp_random_graph(40, 0.1, seed=1))
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: SimpleNamespace(x=None))
    assert linear_program(graph).method == "packing of neighbourhoods"
    assert not list(solved_program(graph, None))
