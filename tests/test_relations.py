"""Grouping of relations over parts, the grid of ranks, and sizes of what parts hold."""

import numpy as np
import pytest

from app.errors import CaseError
from app.graphs.triples.data import Triples
from app.graphs.triples.relational import relational_graph
from app.partition.relations import fit_turns, group_by_edges, group_by_relations, part_sizes, place

pytestmark = pytest.mark.mpi_skip


def random_graph(nodes, relations, edges, seed=1):
    draws = np.random.default_rng(seed)
    r = np.minimum(draws.geometric(0.3, edges) - 1, relations - 1)
    ends = draws.integers(0, nodes, (2, edges))
    return relational_graph(
        Triples("t", nodes, relations, *(a.astype(np.int32) for a in (ends[0], r, ends[1])))
    )


def test_relations_are_dealt_in_snake_order():
    counts = np.array([5, 80, 70, 10, 60, 20, 40])
    # Descending: 1 2 4 6 5 3 0; parts 0 1 2, then 2 1 0, then 0.
    assert group_by_relations(counts, 3).tolist() == [0, 0, 1, 0, 2, 1, 2]


def test_edges_are_balanced_longest_first():
    assert group_by_edges(np.array([3, 9, 5, 4, 1]), 2).tolist() == [0, 0, 1, 1, 1]
    counts = np.random.default_rng(0).integers(1, 1000, 90)
    for parts in (1, 2, 4, 7):
        load = np.bincount(group_by_edges(counts, parts), weights=counts, minlength=parts)
        # Graham 1969, theorem 2: longest first is within 4/3 of the best, which is at least the mean.
        assert load.max() <= 4 / 3 * max(counts.sum() / parts, counts.max())


@pytest.mark.parametrize("group", [group_by_edges, group_by_relations])
def test_equal_counts_and_more_parts_than_relations(group):
    assert group(np.full(4, 7), 2).tolist() in ([0, 1, 0, 1], [0, 1, 1, 0])
    found = group(np.array([1, 2]), 5)
    assert len(set(found.tolist())) == 2 and found.max() < 5


def test_relation_counts_differ_by_at_most_one():
    counts = np.random.default_rng(2).integers(1, 50, 23)
    for parts in (2, 3, 5):
        held = np.bincount(group_by_relations(counts, parts), minlength=parts)
        assert held.max() - held.min() <= 1


def test_sizes_are_counts():
    graph = random_graph(40, 4, 90)
    part_of = group_by_relations(graph.edge_counts(), 3)
    sizes = part_sizes(graph, part_of, 3, hidden=5)
    assert sum(size.edges for size in sizes[:-1]) == len(graph)
    assert sum(size.relations for size in sizes[:-1]) == graph.relations
    edges = set(zip(graph.target.tolist(), graph.relation.tolist(), graph.source.tolist()))
    for part, size in enumerate(sizes[:-1]):
        mine = [(i, r, j) for i, r, j in edges if part_of[r] == part]
        assert size.edges == len(mine)
        assert size.rows == len({(r, j) for _, r, j in mine})
        assert size.nodes == len({i for i, _, _ in mine} | {j for _, _, j in mine})
        assert size.weights == 5 * size.rows <= size.bound == size.relations * size.nodes * 5
    assert sizes[-1].rows == 40 and sizes[-1].relations == 1


@pytest.mark.parametrize(("ranks", "groups"), [(1, 1), (4, 4), (4, 1), (4, 2), (6, 3)])
def test_the_grid_shares_everything_out_once(ranks, groups):
    graph = random_graph(300, 6, 700)
    placement = place(graph, ranks, groups)
    nodes = np.arange(300)
    owner = placement.owner(nodes)
    assert (np.diff(owner) >= 0).all() and owner.max() < ranks
    for relation in range(graph.relations):
        holder = placement.holder(np.full(300, relation), nodes)
        # The row part is the owner's, the column the relation's.
        assert (holder // groups == owner // groups).all()
        assert (holder % groups == placement.group_of[relation]).all()


def test_cuts_of_rows_follow_no_group():
    graph = random_graph(300, 6, 700)
    offsets = [place(graph, 4, groups).rows.offsets.tolist() for groups in (1, 2, 4)]
    assert offsets[0] == offsets[1] == offsets[2]


def test_as_few_parts_as_fit():
    graph = random_graph(500, 8, 4000)
    limits = [fit_turns(graph, "edges", 1, limit, 16, 1000) for limit in (10**9, 500_000, 400_000)]
    assert limits[0] == 1 and limits == sorted(limits) and limits[-1] > 1
    with pytest.raises(CaseError, match=r"memory.fast_mb: .* is too small for one relation"):
        fit_turns(graph, "edges", 1, 10_000, 16, 0)
