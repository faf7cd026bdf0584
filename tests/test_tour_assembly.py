"""Crossing of tours: cycles and children by their definitions, and the kernel against the plain path."""

import numpy as np
import pytest
from test_tour import MAKERS

from app.graphs.metric import uniform_points
from app.native import tour_assembly as native
from app.rng import SplitMix
from app.search.tour.assembly_plain import PlainAssembly
from app.search.tour.search import TourSearch
from app.search.tour.start import random_greedy, short_edges

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not native.available(), reason="the kernels are not built")


def edges_of(order):
    """The edges of a tour, as a set of pairs."""
    return {frozenset(pair) for pair in zip(order.tolist(), np.roll(order, -1).tolist())}


def pair(metric, seed):
    """Two local optima of different starts, or of random tours where there are few cities."""
    tours = []
    for start in np.random.default_rng(seed).permuted(np.tile(np.arange(metric.n), (2, 1)), axis=1):
        search = TourSearch(metric, 1, start)
        if metric.n > 40:
            search.run(0)
        tours.append(search.solution())
    return tours


def crossing(kind, metric, tours, seed, neighbours=8):
    """An assembly of two tours, begun."""
    assembly = kind(metric, np.ascontiguousarray(metric.neighbours(neighbours)), seed)
    assembly.order[:] = tours[0]
    assembly.begin(tours[1])
    return assembly


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [5, 8, 30, 200])
def test_cycles_are_the_difference(make, n):
    for seed in range(4):
        metric = make(n, seed)
        a, b = pair(metric, seed)
        assembly = crossing(PlainAssembly, metric, (a, b), seed)
        seen = [], []
        for cycle in assembly.cycles:
            assert len(cycle) % 2 == 0 and len(cycle) >= 4
            for i, ends in enumerate(zip(cycle, cycle[1:] + cycle[:1])):
                seen[i % 2].append(frozenset(ends))
        for mine, its, found in zip((a, b), (b, a), seen):
            assert len(found) == len(set(found)) and set(found) == edges_of(mine) - edges_of(its)


@pytest.mark.parametrize("n", [8, 30, 200])
def test_children(n):
    """A child is a tour, as long as its gain says, and has the cycle's edges of B unless a join took them."""
    metric = uniform_points(n, 5)
    joined = 0
    for seed in range(6):
        a, b = pair(metric, seed)
        assembly = crossing(PlainAssembly, metric, (a, b), seed)
        for number, cycle in enumerate(list(assembly.cycles)):
            assembly.order[:] = a
            assembly._set_links(a.tolist())
            gain = assembly._make([number])
            if gain is None:
                continue
            joined += len(assembly.joins)
            assembly._settle()
            child = assembly.order
            assert sorted(child.tolist()) == list(range(n))
            assert metric.length(child) == metric.length(a) - gain
            new = {frozenset(ends) for ends in zip(cycle[1::2], cycle[2::2] + cycle[:1])}
            kept = {frozenset(ends) for join in assembly.joins for ends in (join[::2], join[1::2])}
            assert new <= edges_of(child) | kept, number
    assert joined > 0


@needs_kernels
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [4, 5, 6, 8, 13, 60, 200])
def test_kernel_equals_plain(make, n):
    for seed in range(6):
        metric = make(n, seed)
        tours = pair(metric, seed)
        for neighbours in (2, 8):
            both = [
                crossing(kind, metric, tours, seed, neighbours)
                for kind in (native.NativeAssembly, PlainAssembly)
            ]
            for most in (1, 2, 3, 1000):
                assert both[0].draw(most) == both[1].draw(most)
                assert shape_of(both[0]) == shape_of(both[1])
            for assembly in both:
                if assembly.struct.gain:
                    assembly.take()
                assembly.begin(tours[1])
            for most in (1, 2, 1000):
                assert both[0].merge(most) == both[1].merge(most)
                assert shape_of(both[0]) == shape_of(both[1])
                assert metric.length(both[0].order) <= metric.length(tours[0])


def shape_of(assembly):
    counters = assembly.struct
    told = counters.count, counters.next, counters.gain, counters.random, assembly.order.tolist()
    return (*told, counters.best) if counters.gain else told


def test_merging_takes_over_what_gains():
    metric = uniform_points(300, 1)
    a, b = pair(metric, 1)
    assembly = crossing(PlainAssembly, metric, (a, b), 1)
    made = assembly.merge(10**6)
    assert made == assembly.struct.count and assembly.struct.gain > 0
    assert metric.length(assembly.order) == metric.length(a) - assembly.struct.gain
    drawn = crossing(PlainAssembly, metric, (a, b), 1)
    drawn.draw(10**6)
    drawn.take()
    assert metric.length(drawn.order) == metric.length(a) - drawn.struct.gain
    assert 0 < drawn.struct.gain <= assembly.struct.gain


def test_equal_tours_have_no_children():
    metric = uniform_points(30, 1)
    tour = pair(metric, 1)[0]
    assembly = crossing(PlainAssembly, metric, (tour, np.roll(tour[::-1], 7)), 1)
    assert assembly.struct.count == 0 == assembly.merge(10) == assembly.draw(10)


# ---- starts


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [4, 9, 70, 300])
def test_random_greedy(make, n):
    metric = make(n, 2)
    edges = short_edges(metric, metric.neighbours(8))
    lengths = metric.between(edges[:, 0], edges[:, 1])
    assert (np.diff(lengths) >= 0).all() and (edges[:, 0] < edges[:, 1]).all()
    base, found = np.random.default_rng(1).permutation(n).astype(np.int32), []
    for compiled in (False, True):
        random = SplitMix(3)
        first = random_greedy(edges, base, random, compiled)
        second = random_greedy(edges, base, random, compiled)
        assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(n))
        found.append((first.tolist(), second.tolist(), random.state))
    assert found[0] == found[1]
    if n > 20:
        assert found[0][0] != found[0][1] and metric.length(first) < metric.length(base)
