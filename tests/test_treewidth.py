"""Treewidth and fill-in: against all orders of small graphs, known widths, on any ranks; files."""

import itertools
import json
import shutil
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job
from mpi4py import MPI

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.treewidth.atoms import atoms_of, cardinality, joined
from app.bounds.treewidth.blocks import seek_blocks
from app.bounds.treewidth.bounds import PROBE, WidthBounds
from app.bounds.treewidth.cycles import CycleProof, packed
from app.bounds.treewidth.exact import seek
from app.bounds.treewidth.feasible import Decomposition, fault_of
from app.bounds.treewidth.minors import (
    LEAST_COMMON,
    LEAST_DEGREE,
    Contractions,
    MinorProof,
    contracted,
    minor_of,
)
from app.bounds.treewidth.orders import BY_DEGREE, BY_FILL, by_parents, greedy, lists_of, tree_of
from app.bounds.treewidth.quotients import least_degree
from app.errors import CaseError, GraphError
from app.graphs.derived import induced
from app.graphs.graph import from_edges
from app.search.treewidth.baselines import is_large, min_degree
from app.search.treewidth.decomposition import decomposition_of
from app.search.treewidth.dissection import dissected, separator
from app.search.treewidth.kernel import EliminationKernel
from app.search.treewidth.search import TreeSearch
from app.search.treewidth.sweeps import swept
from app.toolbox import never

alone = pytest.mark.mpi_skip
QUICK = {"search.steps": 400, "search.bound_seconds": 20.0}


def whole(given):
    """A NetworkX graph as the solver holds it."""
    given = nx.convert_node_labels_to_integers(given)
    ends = np.array(list(given.edges), dtype=np.int64).reshape(-1, 2)
    return from_edges(given.number_of_nodes(), ends[:, 0], ends[:, 1], name="drawn")


def drawn(seed, most=7):
    """A random graph of any density, and weights of its nodes, some 0."""
    draws = np.random.default_rng(seed)
    n = most if seed % 3 else int(draws.integers(1, most + 1))
    graph = whole(nx.gnp_random_graph(n, float(draws.uniform(0.2, 0.8)), seed=seed))
    return graph, draws.integers(0, 6, n)


def queens(n):
    """The graph of queens' moves on a board."""
    squares = [(i, j) for i in range(n) for j in range(n)]
    graph = nx.Graph()
    for a, b in itertools.combinations(squares, 2):
        if a[0] == b[0] or a[1] == b[1] or abs(a[0] - b[0]) == abs(a[1] - b[1]):
            graph.add_edge(a, b)
    return graph


def partial_tree(n, k, kept, seed):
    """A graph of treewidth at most k: k-trees without some edges."""
    draws = np.random.default_rng(seed)
    graph, cliques = nx.complete_graph(k + 1), [tuple(range(k + 1))]
    for v in range(k + 1, n):
        held = list(cliques[draws.integers(len(cliques))])
        held.pop(int(draws.integers(len(held))))
        graph.add_edges_from((u, v) for u in held)
        cliques.append((*held, v))
    graph.remove_edges_from([edge for edge in list(graph.edges) if draws.random() > kept])
    return graph


def bags_of(graph, order):
    """The bags of an order by eliminating, one node after the other, on a dense matrix."""
    near = np.zeros((graph.n, graph.n), dtype=bool)
    near[graph.row_of(), graph.indices] = True
    bags = []
    for v in order:
        own = np.flatnonzero(near[v])
        bags.append([v, *own.tolist()])
        near[np.ix_(own, own)] = True
        near[own, own] = False
        near[v] = near[:, v] = False
    return bags


def least(graph, weights):
    """The least weight of a heaviest bag, and the least fill-in, of all orders."""
    found = []
    for order in itertools.permutations(range(graph.n)):
        bags = bags_of(graph, order)
        heaviest = max((sum(int(weights[v]) for v in bag) for bag in bags), default=0)
        found.append((heaviest, sum(len(bag) - 1 for bag in bags) - graph.edges))
    return min(each[0] for each in found), min(each[1] for each in found)


# ---- what orders are worth --------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(6))
def test_all_orders_of_small_graphs(seed):
    graph, weights = drawn(seed, 6 if seed % 2 else 7)
    ones = np.ones(graph.n, dtype=np.int64)
    width, fill = least(graph, ones)
    heaviest, _ = least(graph, weights)
    for own, best in ((None, width), (weights, heaviest)):
        for compiled in (True, False):
            found = seek_blocks(graph, best, 1 << 20, own, compiled)
            assert tree_of(graph, found.order, own).bag.max(initial=0) <= best
            none = seek_blocks(graph, best - 1, 1 << 20, own, compiled)
            assert none.order is None and none.known
        for rule in (LEAST_COMMON, LEAST_DEGREE):
            told, label = contracted(graph, own, rule, seed)
            assert told <= MinorProof(label, True).lower(graph, own) <= best
        kernel = EliminationKernel(graph, own, False)
        kernel.reduce(never)
        left = None if own is None else own[kernel.nodes]
        values = (v for v in range(best + 1) if seek_blocks(kernel.core, v, 1 << 20, left).order is not None)
        assert max(kernel.low, next(values)) == best  # reductions keep the optimum
        assert MinorProof(kernel.low_minor(), True).lower(graph, own) >= kernel.low
        told, label = contracted(kernel.core, left)
        assert told <= MinorProof(kernel.minor(label), True).lower(graph, own) <= best
    for compiled in (True, False):
        found = seek(graph, fill, 1 << 20, compiled)
        assert (tree_of(graph, found.order).bag - 1).sum() - graph.edges == fill
        assert seek(graph, fill - 1, 1 << 20, compiled).order is None
    assert CycleProof(*packed(graph), True).lower(graph) <= fill
    parts = atoms_of(graph)
    inner = [induced(graph, nodes) for nodes in parts]
    orders = [next(o for v in range(fill + 1) if (o := seek(g, v, 1 << 20).order) is not None)
              for g in inner]  # fmt: skip
    order = joined(graph, parts, orders)
    assert (tree_of(graph, order).bag - 1).sum() - graph.edges == fill
    width_solved, weighted, filled = (
        solve(as_given(graph), "treewidth", comm=MPI.COMM_SELF, settings=QUICK | more, **given)
        for more, given in (({}, {}), ({}, {"node_weights": weights}), ({"problem.eliminate": "fill"}, {}))
    )
    assert width_solved.objective == width_solved.bound == max(width - 1, 0)
    assert weighted.objective == weighted.bound == heaviest
    assert filled.objective == filled.bound == fill


def as_given(graph):
    """As a NetworkX graph again."""
    given = nx.empty_graph(graph.n)
    given.add_edges_from(zip(graph.row_of().tolist(), graph.indices.tolist()))
    return given


@alone
@pytest.mark.parametrize("seed", range(12))
def test_kernels_and_plain_functions_are_equal(seed):
    graph, weights = drawn(seed, 24)
    draws = np.random.default_rng(seed)
    order, ties = draws.permutation(graph.n), draws.permutation(graph.n)
    bags = bags_of(graph, order)
    for own in (None, weights):
        fast, slow = tree_of(graph, order, own), tree_of(graph, order, own, False)
        assert np.array_equal(fast.parent, slow.parent) and np.array_equal(fast.bag, slow.bag)
        each = np.ones(graph.n, dtype=np.int64) if own is None else own
        assert fast.bag[order].tolist() == [int(each[bag].sum()) for bag in bags]
    for fast, slow in zip(lists_of(graph, order), lists_of(graph, order, False)):
        assert np.array_equal(fast, slow)
    tree = tree_of(graph, order)
    assert np.array_equal(tree_of(graph, by_parents(tree.parent)).bag, tree.bag)
    for rule in (BY_DEGREE, BY_FILL):
        assert np.array_equal(greedy(graph, rule, ties), greedy(graph, rule, ties, False))
    for own, fill in ((None, False), (weights, False), (None, True)):
        fast, slow = (TreeSearch(graph, order, seed, own, fill, compiled) for compiled in (True, False))
        for steps in (1, 7, 60):
            fast.run(steps)
            slow.run(steps)
            assert (fast.worth, fast.best, fast.random) == (slow.worth, slow.best, slow.random)
            assert np.array_equal(fast.parent, slow.parent)
        bag = tree_of(graph, fast.solution(), own).bag
        assert fast.best == ((bag - 1).sum() if fill else bag.max())
        most = int(fast.best - graph.edges - 1 if fill else fast.best - 1)
        for limit in (60, 300, 3000):
            for worth in (most, most + 1):
                if fill:
                    fast, slow = (seek(graph, worth, limit, compiled) for compiled in (True, False))
                else:
                    fast, slow = (seek_blocks(graph, worth, limit, own, c) for c in (True, False))
                assert fast.known == slow.known and fast.states == slow.states
                assert np.array_equal(fast.order, slow.order)


@alone
def test_reductions_use_each_rule_and_keep_the_width():
    counts, cube = {}, nx.cubical_graph()
    for n, p, seed in ((60, 0.04, 3), (60, 0.045, 5), (40, 0.06, 2), (40, 0.08, 4)):
        graph = whole(nx.disjoint_union(nx.gnp_random_graph(n, p, seed=seed), cube))
        kernel = EliminationKernel(graph, None, False)
        kernel.reduce(never)
        counts = {rule: counts.get(rule, 0) + count for rule, count in kernel.counts.items()}
        lifted = np.concatenate([np.array(kernel.gone, dtype=np.int64), kernel.nodes])
        bag = tree_of(graph, lifted).bag[lifted[: len(kernel.gone)]]
        assert bag.max(initial=0) <= kernel.low
        assert MinorProof(kernel.low_minor(), True).lower(graph) >= kernel.low
    assert counts["simplicial"] and counts["almost simplicial"]
    joined_by_three = nx.complete_bipartite_graph(3, 2)
    for graph, rule in ((three_and(joined_by_three), "buddies"), (three_and(cube_corner()), "cube")):
        kernel = EliminationKernel(whole(graph), None, False)
        kernel.reduce(never)
        assert kernel.counts[rule], rule
        told, label = contracted(kernel.core)
        assert MinorProof(kernel.minor(label), True).lower(whole(graph)) >= told


def three_and(part):
    """A part whose nodes 0, 1 and 2 are each joined to five nodes of a part of larger width."""
    graph = nx.disjoint_union(part, nx.gnp_random_graph(14, 0.6, seed=1))
    first = part.number_of_nodes()
    graph.add_edges_from((v, first + (4 * v + i) % 14) for v in range(3) for i in range(5))
    return graph


def cube_corner():
    """Nodes 0, 1, 2; three that have two of them each; one that has these three."""
    graph = nx.empty_graph(7)
    graph.add_edges_from([(0, 3), (1, 3), (0, 4), (2, 4), (1, 5), (2, 5), (6, 3), (6, 4), (6, 5)])
    return graph


# ---- answers ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    "graph, width",
    [
        (queens(5), 18),
        (queens(6), 25),
        (queens(7), 35),
        (nx.mycielski_graph(5), 10),
        (nx.mycielski_graph(6), 19),
        (nx.grid_2d_graph(6, 6), 6),
        (nx.grid_2d_graph(8, 8), 8),
        (nx.petersen_graph(), 4),
        (nx.complete_graph(9), 8),
        (nx.cycle_graph(30), 2),
    ],
)
def test_known_widths_are_found_and_proved(graph, width):
    answer = solve(graph, "treewidth", comm=MPI.COMM_SELF, settings=QUICK)
    assert answer.objective == answer.bound == width
    bags = [set(bag) for bag in answer.bags]
    assert max(map(len, bags)) == width + 1 and set().union(*bags) == set(graph)
    tree = nx.Graph(answer.tree)
    tree.add_nodes_from(range(len(bags)))
    assert nx.is_tree(tree)
    assert all(any({u, v} <= bag for bag in bags) for u, v in graph.edges)
    for node in graph:
        assert nx.is_connected(tree.subgraph(i for i, bag in enumerate(bags) if node in bag))
    assert check(graph, answer, comm=MPI.COMM_SELF).objective == width
    assert sorted(map(str, answer.order)) == sorted(map(str, graph))


@alone
@pytest.mark.parametrize("seed", range(8))
def test_contractions_have_the_same_bits_without_kernels_and_in_parts(seed):
    graph = whole(nx.gnp_random_graph(30 + 90 * seed, 4 / (30 + 90 * seed), seed=seed))
    weights = None if seed % 2 else np.random.default_rng(seed).integers(1, 9, graph.n)
    for rule in (LEAST_COMMON, LEAST_DEGREE):
        fast, slow, parted = (
            Contractions(graph, weights, rule, seed % 3 or None, c) for c in (True, False, True)
        )
        assert fast.run() and slow.run()
        pauses = sum(not parted.run(lambda: True) for _ in range(graph.n // 256 + 1))
        assert pauses == graph.n // 256 and parted.made == graph.n
        for count in (0, fast.kept, graph.n // 2, graph.n):
            for other in (slow, parted):
                assert (other.made, other.best, other.kept) == (fast.made, fast.best, fast.kept)
                assert np.array_equal(other.after(count), fast.after(count))
        minor, own = minor_of(graph, fast.after(fast.kept), weights)
        each = np.ones(minor.n, dtype=np.int64) if own is None else own
        assert min(each[v] + each[minor.indices[minor.indptr[v] : minor.indptr[v + 1]]].sum()
                   for v in range(minor.n)) == fast.best  # fmt: skip


@alone
@pytest.mark.parametrize("compiled", [True, False])
def test_a_search_that_is_late_ends_and_says_nothing(compiled):
    graph = whole(nx.gnp_random_graph(40, 0.15, seed=1))
    most = int(tree_of(graph, greedy(graph, BY_FILL)).bag.max())
    full = seek_blocks(graph, most - 4, 1 << 20, None, compiled)
    late = seek_blocks(graph, most - 4, 1 << 20, None, compiled, 0.0)
    assert full.known and full.order is None
    assert not late.known and late.order is None and late.states < full.states


@alone
@pytest.mark.parametrize("seed", range(3))
def test_orders_of_atoms_are_joined_without_kernels_too(seed):
    given = nx.disjoint_union(nx.gnp_random_graph(12, 0.4, seed=seed), partial_tree(30, 3, 0.9, seed))
    graph = whole(given)
    assert np.array_equal(cardinality(graph), cardinality(graph, False))
    atoms = atoms_of(graph)
    orders = [greedy(induced(graph, nodes), BY_DEGREE) for nodes in atoms]
    order = joined(graph, atoms, orders)
    assert np.array_equal(order, joined(graph, atoms, orders, False))
    bags = [tree_of(induced(graph, nodes), each).bag.max() for nodes, each in zip(atoms, orders)]
    assert tree_of(graph, order).bag.max() == max(bags)


@alone
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("graph", [partial_tree(120, 9, 0.9, 3), nx.grid_2d_graph(12, 12)])
def test_searches_of_minors_prove_no_more_than_there_is(graph, weighted):
    """The atoms are left out, so that minors alone are searched."""
    graph = whole(graph)
    weights = np.random.default_rng(1).integers(1, 5, graph.n) if weighted else None
    bounds = WidthBounds(graph, weights)
    bounds.improve(0.0, 1 << 40)
    bounds._parts = []
    while bounds.improve(1.0, 1 << 40):
        pass
    orders = [greedy(graph, BY_FILL), greedy(graph, BY_DEGREE), swept(graph)]
    least_found = min(tree_of(graph, order, weights).bag.max() for order in orders)
    assert bounds._probed and bounds.minors <= bounds.value <= least_found
    if graph.n == 144 and not weighted:
        assert bounds.value > bounds.minors and bounds.method == PROBE


@alone
def test_hidden_widths_are_found():
    graph = partial_tree(250, 8, 0.7, 1)
    answer = solve(graph, "treewidth", comm=MPI.COMM_SELF, settings=QUICK)
    assert answer.objective <= 8 < answer.baselines["max cardinality"]


@alone
def test_large_sparse_graphs_have_an_order_at_once():
    graph = whole(nx.random_regular_graph(3, 3000, seed=1))
    order = greedy(graph, BY_DEGREE)
    assert tree_of(graph, order).bag.max() < 900
    few = greedy(graph, BY_FILL, None, most=1000)  # the rest by degree
    assert np.array_equal(np.sort(few), np.arange(graph.n))


def after(count):
    """A look that is true from its `count`th question on."""
    asked = itertools.count(1)
    return lambda: next(asked) >= count


@alone
@pytest.mark.parametrize("seed", range(16))
def test_orders_of_large_graphs_have_the_same_bits_without_kernels(seed):
    draws = np.random.default_rng(seed)
    given = nx.grid_2d_graph(5, 4 + seed) if seed % 4 == 0 else None
    density = (0.04, 0.1, 0.3)[seed % 3]
    graph = whole(given or nx.gnp_random_graph(int(draws.integers(1, 60)), density, seed=seed))
    rank = draws.integers(0, 3, graph.n) if seed % 2 else None
    for count, share, own in ((99, 1 << 19, False), (99, 7, True), (2, 90, False), (99, 1 << 19, True)):
        fast, slow = (least_degree(graph, after(count), c, rank, own, share) for c in (True, False))
        assert np.array_equal(fast[0], slow[0]) and fast[1] == slow[1]
        assert np.array_equal(np.sort(fast[0]), np.arange(graph.n))
        if rank is not None:
            assert (np.diff(rank[fast[0]]) >= 0).all()
    order = swept(graph)
    assert np.array_equal(order, swept(graph, False)) and np.array_equal(np.sort(order), np.arange(graph.n))
    near, bag, gone, front = as_given(graph), tree_of(graph, order).bag, set(), set()
    for v in order.tolist():
        gone.add(v)
        front |= set(near[v])
        assert bag[v] <= len(front - gone) + 1


@alone
@pytest.mark.parametrize("own", [False, True])
def test_least_degree_is_right_where_bounds_are_degrees(own):
    for given, width in (
        (nx.random_labeled_tree(300, seed=1), 1),
        (nx.cycle_graph(40), 2),
        (nx.complete_graph(9), 8),
        (nx.star_graph(50), 1),
        (nx.ladder_graph(60), 2),
    ):
        order, all_of_it = least_degree(whole(given), never, own=own)
        assert all_of_it and tree_of(whole(given), order).bag.max() == width + 1


@alone
@pytest.mark.parametrize("seed", range(8))
def test_separators_are_the_fewest_nodes(seed):
    draws = np.random.default_rng(seed)
    u, v = draws.integers(0, 6, 9), draws.integers(6, 12, 9)
    chosen = separator(u, v)
    assert (np.isin(u, chosen) | np.isin(v, chosen)).all()
    for fewer in itertools.combinations(range(12), len(chosen) - 1):
        assert not (np.isin(u, fewer) | np.isin(v, fewer)).all()
    nothing = np.zeros(0, dtype=np.int64)
    assert len(separator(nothing, nothing)) == 0


@alone
def test_starts_of_large_graphs():
    grid = whole(nx.grid_2d_graph(60, 40))
    assert tree_of(grid, swept(grid)).bag.max() == 41 < tree_of(grid, least_degree(grid, never)[0]).bag.max()

    def worth(order):
        return int(tree_of(held, order).bag.max())

    held = whole(nx.random_geometric_graph(4000, 0.04, seed=2))
    order = dissected(held, worth, never)
    assert np.array_equal(np.sort(order), np.arange(held.n))
    assert worth(order) < worth(least_degree(held, never)[0])
    assert dissected(held, worth, after(1)) is None and dissected(grid, worth, never, least=9999) is None
    large = whole(nx.random_regular_graph(3, 52_000, seed=1))
    assert is_large(large) and not is_large(grid)
    order, label = min_degree(large)
    assert label == "min degree by bounds" and tree_of(large, order).bag.max() < 12_000


@alone
def test_levels_of_long_trees_are_found_at_once():
    parent = np.append(np.arange(1, 200_000), -1).astype(np.int32)
    assert np.array_equal(by_parents(parent), np.arange(200_000))


@alone
def test_trees_of_any_depth_and_bags_of_any_size():
    long = whole(nx.path_graph(50_000))
    order = np.arange(long.n)
    assert np.array_equal(by_parents(tree_of(long, order).parent), order)
    made = decomposition_of(long, order)
    assert fault_of(long, made) is None
    torn = np.concatenate([made.edges[1:], [[0, made.bags - 1]]])
    assert "hang together" in fault_of(long, replace(made, edges=torn))
    most = [TreeSearch(whole(graph), np.arange(600), 1).levels for graph in (nx.path_graph(600), dense(600))]
    assert most == [6, 5]  # where bags are large pieces are smaller


def dense(n):
    """All edges but those of a path."""
    return nx.complement(nx.path_graph(n))


@pytest.mark.parametrize("asked", [{}, {"problem.eliminate": "fill"}, {"search.starts": 3}])
def test_same_bits_on_any_ranks(asked):
    graph = nx.gnp_random_graph(60, 0.08, seed=2)
    settings = QUICK | {"search.bounds": False, "run.kernels": "auto"} | asked
    ours = solve(graph, "treewidth", comm=MPI.COMM_WORLD, settings=settings)
    alone_ = solve(graph, "treewidth", comm=MPI.COMM_SELF, settings=settings)
    assert ours.order == alone_.order and ours.bags == alone_.bags and ours.digest == alone_.digest


@alone
def test_a_start_is_gone_on_from_and_a_search_hears():
    graph = nx.gnp_random_graph(40, 0.1, seed=4)
    quick = {"search.steps": 100, "search.bounds": False}
    known = solve(graph, "treewidth", comm=MPI.COMM_SELF, settings=quick)
    again = solve(graph, "treewidth", start=known, comm=MPI.COMM_SELF, settings=quick | {"search.steps": 0})
    assert again.objective == known.objective
    held, worst = whole(graph), np.arange(40)
    search = TreeSearch(held, worst, 1)
    before = search.best
    search.hear(np.array(known.order))
    assert search.best == known.objective + 1 < before and search.solution().tolist() != worst.tolist()


# ---- checks and files -------------------------------------------------------------------------------------


@alone
def test_altered_decompositions_are_refused():
    graph = whole(nx.grid_2d_graph(4, 4))
    made = decomposition_of(graph, greedy(graph, BY_FILL))
    assert fault_of(graph, made) is None
    first = made.nodes[: made.ptr[1]]
    for change, said in (
        (replace(made, edges=made.edges[1:]), "a tree, would be right"),
        (replace(made, edges=np.vstack([made.edges[1:], made.edges[1]])), "no edges of its tree lead to"),
        (
            replace(made, nodes=np.where(made.nodes == first[0], first[1], made.nodes)),
            "twice|no bag with node",
        ),
        (replace(made, nodes=made.nodes + 1), "not in the graph"),
        (replace(made, edges=made.edges + 1), "not there"),
        (without(made, 0), "hang together|no bag|both ends"),
    ):
        assert any(each in fault_of(graph, change) for each in said.split("|"))
    apart = Decomposition(np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.array([[0, 1]]))
    assert fault_of(whole(nx.path_graph(3)), apart) is None
    assert "both ends of edge" in fault_of(whole(nx.complete_graph(3)), apart)


def without(made, at):
    """A decomposition without an entry of a bag."""
    ptr = made.ptr.copy()
    ptr[1:] -= 1
    return replace(made, ptr=ptr, nodes=np.delete(made.nodes, at))


@alone
def test_altered_certificates_are_refused():
    graph = whole(nx.grid_2d_graph(5, 5))
    worth, label = contracted(graph)
    assert MinorProof(label, True).lower(graph) >= worth == 5
    apart = label.copy()
    apart[[0, 24]] = label.max() + 1
    for wrong in (apart, label[1:], np.full(25, 30), label - 3):
        with pytest.raises(BadCertificate):
            MinorProof(wrong, True).lower(graph)
    ptr, nodes = packed(graph)
    assert CycleProof(ptr, nodes, True).lower(graph) == len(nodes) - 3 * (len(ptr) - 1) > 0
    for wrong in (
        CycleProof(ptr, nodes[::-1].copy() + 1, True),
        CycleProof(ptr[:-1], nodes, True),
        CycleProof(np.append(ptr, ptr[-1] + 4), np.append(nodes, nodes[:4]), True),
        CycleProof(np.array([0, 4]), np.array([0, 1, 2, 3]), True),
    ):
        with pytest.raises(BadCertificate):
            wrong.lower(graph)


@alone
def test_files_of_a_run_are_checked_again(tmp_path):
    (tmp_path / "ring.gr").write_text("c a ring with a chord\np tw 6 7\n1 2\n2 3\n3 4\n4 5\n5 6\n6 1\n1 4\n")
    names = [(f"{a}x", f"{b}y") for a in range(3) for b in range(3)]
    (tmp_path / "named.txt").write_text("".join(f"{u},{v}\n" for u, v in names))
    case = "run.py", "inputs/treewidth.toml", f"graph.path={tmp_path}/ring.gr", "output.certificates=true"
    out = tmp_path / "run"
    code, said = run_job([*mpirun(2), sys.executable, *case, "output.plots=false", "--out", out], cwd=ROOT)
    assert code == 0, said
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    assert entry["objective"] == entry["bound"] == 2 and entry["bound_verified"]
    td = out / "solution" / "ring.td"
    assert td.read_text().startswith("s td 4 3 6\nb 1 ")
    checks = [sys.executable, "run.py", out / "case.toml", "--check", out]
    code, said = run_job(checks, cwd=ROOT)
    assert code == 0 and "bounds of 1 are proved" in said
    good = td.read_text()
    for old, new, wrong in (
        ("s td 4 3 6", "s td 4 3 7", "found 's td 4 3 7'"),
        ("s td 4 3 6", "s td 4 4 6", "its s line says 4"),
        (good.splitlines()[-1], "1 9", "joins a bag that is not there"),
        (good.splitlines()[1], "b 1 1 2", "tree decomposition of ring.td"),
    ):
        td.write_text(good.replace(old, new))
        code, said = run_job(checks, cwd=ROOT)
        assert code == 2 and wrong in " ".join(said.split()), said
    shutil.rmtree(out)
    named = [sys.executable, *case[:2], f"graph.path={tmp_path}/named.txt", "graph.ids=names"]
    code, said = run_job([*named, "output.plots=false", "--out", out], cwd=ROOT)
    td = out / "solution" / "named.td"
    good = td.read_text()
    assert code == 0 and "c node 1 0x" in good
    checks = [sys.executable, "run.py", out / "case.toml", "--check", out]
    for text, expected, told in (
        (good, 0, "all hold"),
        (good.replace("c node 1 0x", "c node 1 1x"), 2, "node 1 is 0x"),
    ):
        td.write_text(text)
        code, said = run_job(checks, cwd=ROOT)
        assert code == expected and told in " ".join(said.split()), said


@alone
def test_what_is_refused():
    graph = nx.path_graph(4)
    for given, said in (
        ({"inside": [1]}, "an order has all nodes"),
        ({"node_weights": [1, 1, -1, 1]}, "below 0"),
        ({"node_weights": [1] * 4, "settings": {"problem.eliminate": "fill"}}, "fill-in counts edges"),
        ({"settings": {"problem.eliminate": "bags"}}, "eliminate"),
    ):
        with pytest.raises(CaseError, match=said):
            solve(graph, "treewidth", comm=MPI.COMM_SELF, **given)
    with pytest.raises(CaseError, match="has one, and run"):
        solve(graph, "mvc", comm=MPI.COMM_SELF, settings={"problem.eliminate": "fill"})
    for order, said in (([0, 1, 2], "found 3 nodes"), ({0: 1}, "has no order"), ([0, 1, 2, 9], "found 9")):
        with pytest.raises(GraphError, match=said):
            check(graph, order, "treewidth", comm=MPI.COMM_SELF)
