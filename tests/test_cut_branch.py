"""The semidefinite relaxation with triangles, and branch and bound: above the optimum, at the end on it."""

import itertools

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, seeds
from mpi4py import MPI
from test_cut import KINDS, all_sides, brute_values, optimum, random_graph

from app import solve
from app.bounds.cover.kernels import triangles
from app.bounds.cut.branch import (
    CutBranching,
    ascending,
    decided,
    descended,
    folded,
    whole_part,
    without,
)  # fmt: skip
from app.bounds.cut.relaxation import SIGNS, Multipliers, TriangleRelaxation, lifted
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import from_edges
from app.search.cut import tree as cut_tree
from app.search.cut.search import CutSearch
from app.search.cut.tree import CutTree, suits


def dense(graph):
    """[n, n] float64 weights in units."""
    matrix = np.zeros((graph.n, graph.n))
    matrix[graph.row_of(), graph.indices] = integer_weights(graph)[0]
    return matrix


def drawn(n, p, seed, signed=False):
    """[n, n] weights of a random graph."""
    W = nx.to_numpy_array(nx.gnp_random_graph(n, p, seed=seed))
    signs = np.triu(np.random.default_rng(seed).choice([-1.0, 1.0], (n, n)), 1)
    return W * (signs + signs.T) if signed else W


def quadratic(M):
    """[2^k] the values x'Mx of all signs."""
    x = 2.0 * all_sides(len(M)) - 1
    return np.einsum("ai,ij,aj->a", x, M, x)


def relaxed(seed, n=12, rounds=4):
    """A relaxation of a dense signed problem after some rounds."""
    draws = np.random.default_rng(seed)
    W = np.triu(draws.integers(-5, 6, (n, n)), 1).astype(np.float64)
    relaxation = TriangleRelaxation(W + W.T)
    for _ in range(rounds):
        relaxation.round()
    return relaxation


def vectors_gram(seed, n, k=3):
    V = np.random.default_rng(seed).standard_normal((n, k))
    V /= np.sqrt(np.square(V).sum(axis=1, keepdims=True))
    return V @ V.T


# ---- triangles -------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("most", [1, 7, 100_000])
def test_the_most_violated_triangles_are_found_by_both_kernels(most):
    for seed, n in enumerate((0, 1, 2, 3, 9, 25)):
        X = vectors_gram(seed, n)
        found = triangles(X, 0.05, most)
        assert np.array_equal(found, triangles(X, 0.05, most, compiled=False))
        assert len({tuple(row) for row in found.tolist()}) == len(found)
        by = {}
        for i, j, k in itertools.combinations(range(n), 3):
            sums = SIGNS @ [X[i, j], X[i, k], X[j, k]]
            by[i, j, k, int(np.argmin(sums))] = -1 - sums.min()
        over = sorted((value for value in by.values() if value > 0.05), reverse=True)
        assert len(found) == min(most, len(over))
        if len(found):  # by buckets of 1/128
            assert min(by[tuple(row)] for row in found.tolist()) >= over[len(found) - 1] - 1 / 128


@pytest.mark.mpi_skip
def test_every_cut_obeys_all_triangles():
    x = 2.0 * all_sides(5) - 1
    for signs in x:
        assert not len(triangles(np.outer(signs, signs), 0.0, 100))


# ---- the relaxation --------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("seeds", seeds(25, 12))
@pytest.mark.parametrize("kind", KINDS)
def test_no_round_ends_below_the_optimum(kind, seeds):
    for seed in seeds:
        graph = random_graph(seed, kind)
        W, best = dense(graph), optimum(graph)
        relaxation = TriangleRelaxation(W)
        for _ in range(12):
            if relaxation.settled:
                break
            relaxation.round()
            assert W.sum() / 4 + relaxation.bound >= best


@pytest.mark.mpi_skip
def test_the_bound_is_that_of_its_multipliers():
    """By the largest eigenvalue, and by what the relaxation says of every cut."""
    for seed in range(10):
        relaxation = relaxed(seed)
        at, unit, n = relaxation.at, relaxation.unit, 12
        W = -4 * unit * relaxation.C
        M = lifted(W, at, unit) - np.diag(at.y)
        values = np.maximum(np.linalg.eigvalsh(M), 0.0)
        linear = at.y.sum() + at.g.sum()
        by_norm = linear + np.square(values).sum() / (2 * at.smoothing) + at.smoothing * n * n / 2
        assert relaxation.bound == pytest.approx(unit * (linear + n * values.max()), rel=1e-9)
        assert relaxation.bound <= unit * by_norm
        assert (at.g >= 0).all()
        assert relaxation.bound >= (quadratic(-W / 4)).max()


@pytest.mark.mpi_skip
def test_triangles_close_gaps():
    """The relaxation alone says 4.52 of a cycle of five and 12.25 of K7; with triangles they are 4 and 12."""
    for graph, best in ((nx.cycle_graph(5), 4), (nx.complete_graph(7), 12), (nx.petersen_graph(), 12)):
        W = nx.to_numpy_array(graph)
        relaxation = TriangleRelaxation(W)
        while not relaxation.settled:
            relaxation.round()
        assert best <= W.sum() / 4 + relaxation.bound < best + 0.4


@pytest.mark.mpi_skip
def test_the_gradient_is_that_of_the_value():
    relaxation = relaxed(3)
    at = relaxation.at
    z, step = np.concatenate([at.y, at.g]), 1e-6
    relaxation.prepare(at.triangles)
    value, gradient = relaxation.value(z, 0.05)
    for place in range(0, len(z), 5):
        other = z.copy()
        other[place] += step
        assert (relaxation.value(other, 0.05)[0] - value) / step == pytest.approx(gradient[place], abs=1e-4)


# ---- parts -----------------------------------------------------------------------------------------------


def random_part(seed, n=9):
    """A part in which some nodes were merged."""
    draws = np.random.default_rng(seed)
    part = whole_part(np.zeros((n, n)))
    for _ in range(int(draws.integers(0, max(n - 1, 1)))):
        i, j = np.sort(draws.choice(part.count, 2, replace=False)).tolist()
        part = part.merged(i, j, int(draws.choice([-1, 1])), None)
    return part


@pytest.mark.mpi_skip
def test_the_problem_of_a_part_is_worth_what_its_cuts_are():
    for seed in range(30):
        graph = random_graph(seed, "whole")
        W, part = dense(graph), random_part(seed, graph.n)
        M, twice = part.weights(W)
        signs = 2 * all_sides(part.count) - 1
        sides = (part.sign * signs[:, part.where]) > 0
        assert np.array_equal((2 * twice - quadratic(M)) / 4, brute_values(graph, sides))


@pytest.mark.mpi_skip
def test_both_halves_of_a_part_are_all_of_it():
    part = random_part(5)
    whole, halves = (
        {tuple((p.sign * x[p.where]).tolist()) for p in parts for x in 2 * all_sides(p.count) - 1}
        for parts in ([part], [part.merged(0, 1, sign, None) for sign in (1, -1)])
    )
    assert whole == halves


@pytest.mark.mpi_skip
def test_given_sides_are_one_sign():
    fixed = np.array([-1, 1, -1, 0, 1], dtype=np.int8)
    part = whole_part(np.zeros((5, 5)), fixed)
    assert part.count == 3
    for x in 2 * all_sides(3) - 1:
        sides = (part.sign * x[part.where] > 0)[fixed >= 0]
        assert (sides == (fixed[fixed >= 0] == 1)).all() or (sides != (fixed[fixed >= 0] == 1)).all()


@pytest.mark.mpi_skip
def test_a_decided_pair_is_so_in_a_best_cut():
    seen = 0
    for seed in range(200):
        draws = np.random.default_rng(seed)
        M = np.triu(draws.integers(-3, 4, (6, 6)) * (draws.random((6, 6)) < 0.5), 1).astype(np.float64)
        M += M.T
        pair = decided(M)
        if pair is None:
            continue
        i, j, sign = pair
        x = 2 * all_sides(6) - 1
        agree = x[:, i] * x[:, j] == sign
        assert quadratic(M)[agree].min() == quadratic(M).min()
        seen += 1
    assert 50 < seen < 200


@pytest.mark.mpi_skip
@pytest.mark.parametrize("sign", [1, -1])
def test_a_folded_problem_is_that_of_the_merged_part(sign):
    W = drawn(9, 0.7, 1, signed=True)
    part = whole_part(W).merged(2, 5, sign, None)
    assert np.array_equal(without(W, 2, 5, sign), part.weights(W)[0])


@pytest.mark.mpi_skip
@pytest.mark.parametrize("sign", [1, -1])
def test_folded_multipliers_are_those_of_the_folded_matrix(sign):
    for seed in range(10):
        relaxation = relaxed(seed)
        at, unit, (i, j) = relaxation.at, relaxation.unit, (2, 7)
        W = -4 * unit * relaxation.C
        both = (at.triangles[:, :3] == i).any(axis=1) & (at.triangles[:, :3] == j).any(axis=1)
        g = np.where(both, 0.0, at.g)
        part = whole_part(W).merged(i, j, sign, None)
        S = np.zeros((12, 11))
        S[np.arange(12), part.where] = part.sign
        without = lifted(W, Multipliers(at.y, at.triangles, g, 0.1), unit)
        wanted = S.T @ (without - np.diag(at.y)) @ S
        new = folded(at, W, unit, i, j, sign)
        found = lifted(part.weights(W)[0], new, unit)
        off = ~np.eye(11, dtype=bool)
        assert np.allclose(found[off], wanted[off])
        assert np.allclose(np.delete(-new.y, i), np.delete(np.diag(wanted), i))
        kept = at.y[i] + at.y[j] - 2 * sign * lifted(W, at, unit)[i, j]
        assert new.y[i] == pytest.approx(kept)
        assert (np.diff(new.triangles[:, :3].astype(int), axis=1) > 0).all()
        assert new.g.sum() == pytest.approx(g.sum())


@pytest.mark.mpi_skip
def test_an_inequality_says_the_same_in_any_order_of_its_nodes():
    signs = SIGNS[2]  # of (0, 1), (0, 2), (1, 2)
    of_pair = {frozenset(pair): s for pair, s in zip(((4, 1), (4, 9), (1, 9)), signs)}
    found, first, back = ascending(np.array([[4, 1, 9], [4, 1, 9]]), np.array([signs, signs]), 10)
    assert found[:, :3].tolist() == [[1, 4, 9]]
    assert SIGNS[found[0, 3]].tolist() == [of_pair[frozenset(pair)] for pair in ((1, 4), (1, 9), (4, 9))]
    assert (first.tolist(), back.tolist()) == ([0], [0, 0])


@pytest.mark.mpi_skip
def test_descent_ends_where_no_flip_helps():
    M = drawn(30, 0.4, 1, signed=True)
    x = descended(M, np.random.default_rng(0).choice([-1.0, 1.0], (30, 5)))
    assert (x * (M @ x)).max() <= 0


# ---- branch and bound ------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_proved(kind, compiled):
    for seed in range(15):
        graph = random_graph(seed, kind)
        W, best = dense(graph), optimum(graph)
        search = CutBranching(W, 0, root=whole_part(W), compiled=compiled)
        while search.left:
            assert search.upper >= best
            search.run(1.0)
        assert search.upper == search.best == best
        assert search.closed == 1.0
        if best:
            assert brute_values(graph, search.found[None])[0] == best


@pytest.mark.mpi_skip
def test_every_branch_is_taken(monkeypatch):
    """With relaxations cut short the tree goes down to its leaves, and the optimum is the same."""
    monkeypatch.setattr("app.bounds.cut.branch.WAIT", 1e-9)
    monkeypatch.setattr("app.bounds.cut.branch.LEAST_ROUNDS", 0)
    monkeypatch.setattr("app.bounds.cut.relaxation.ITERATIONS", 1)
    parts = 0
    for seed in range(8):
        W = np.rint(drawn(10, 1.0, seed, signed=True) * np.random.default_rng(seed).uniform(1, 9))
        best = round((W.sum() - quadratic(W).min()) / 4)
        search = CutBranching(W, 0, root=whole_part(W))
        while search.left:
            search.run(1.0)
        assert (search.best, search.closed) == (best, 1.0)
        parts += search.parts
    assert parts > 50


@pytest.mark.mpi_skip
@pytest.mark.parametrize("signed", [False, True])
def test_problems_of_sixty_nodes(signed):
    """Of the random graphs of the literature (g05_60, pm1d_60): the root and a few parts."""
    W = drawn(60, 0.5, 1, signed)
    search = CutBranching(W, 0, root=whole_part(W))
    while search.left:
        search.run(10.0)
    x = np.where(search.found, 1.0, -1.0)
    assert search.upper == search.best == (W.sum() - x @ W @ x) / 4
    annealed = CutSearch(graph_of(W), 1)
    annealed.run(200_000)
    assert search.best == annealed.best
    assert search.parts < 60


@pytest.mark.mpi_skip
def test_a_cut_known_elsewhere_ends_parts_and_is_no_find_of_this_search():
    W = drawn(20, 0.5, 3)
    search = CutBranching(W, 0, root=whole_part(W))
    while search.left:
        search.run(1.0)
    again = CutBranching(W, 0, root=whole_part(W))
    again.learn(search.best)
    while again.left:
        again.run(1.0)
    assert (again.best, again.found) == (search.best, None)
    coarse = CutBranching(W, search.best - 2, step=3, root=whole_part(W))
    while coarse.left:
        coarse.run(1.0)
    assert search.best - 2 <= coarse.upper == coarse.best <= search.best


# ---- the search that ranks share -------------------------------------------------------------------------


def trees(graph, ranks, fixed=None):
    weights = integer_weights(graph)[0]
    made = [CutTree(graph, weights, fixed, lambda value: value + 1, rank, ranks) for rank in range(ranks)]
    for tree in made:
        tree.begin(0)
    return made


def graph_of(W):
    u, v = np.nonzero(np.triu(W))
    return from_edges(len(W), u, v, W[u, v])


@pytest.mark.mpi_skip
@pytest.mark.parametrize("ranks", [2, 5, pytest.param(1, marks=pytest.mark.long)])
def test_all_ranks_prove_the_same_and_every_one_works(ranks, monkeypatch):
    monkeypatch.setattr("app.bounds.cut.branch.WAIT", 1e-9)
    monkeypatch.setattr("app.bounds.cut.branch.LEAST_ROUNDS", 0)
    monkeypatch.setattr("app.bounds.cut.relaxation.ITERATIONS", 2)
    graph = graph_of(drawn(32, 0.9, 2, signed=True))
    W = dense(graph)
    alone = CutBranching(W, 0, root=whole_part(W))
    while alone.left:
        alone.run(1.0)
    made, uppers = trees(graph, ranks), []
    while made[0].more:
        for tree in made:
            tree.run(0.0)
        words = np.max([tree.told() for tree in made], axis=0)
        best = max(tree.best for tree in made)
        for tree in made:
            tree.take(words, best)
        assert len({(tree.value, tree.more, tree.left, tree.left_seconds()) for tree in made}) == 1
        uppers.append(made[0].value)
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[-1] == made[0].value == alone.best
    assert sum(tree.search.closed for tree in made) == 1.0
    assert alone.parts > 40
    assert all(tree.search.parts for tree in made)
    found = [tree.solution() for tree in made if tree.best == alone.best]
    (owner,) = {tuple(sides) for sides in found if sides is not None}
    x = np.where(owner, 1.0, -1.0)
    assert (W.sum() - x @ W @ x) / 4 == alone.best


@pytest.mark.mpi_skip
def test_given_sides_are_kept():
    for seed in range(20):
        graph = random_graph(seed, "whole")
        fixed = np.random.default_rng(seed).choice(np.array([-1, -1, 0, 1], dtype=np.int8), graph.n)
        if graph.n < 2:
            continue
        (tree,) = trees(graph, 1, fixed)
        tree.begin(optimum(graph, fixed) - 1)
        while tree.more:
            tree.run(1.0)
            tree.take(tree.told(), tree.best)
        assert tree.value == optimum(graph, fixed)
        found = tree.solution()
        assert (found[fixed >= 0] == fixed[fixed >= 0]).all()
        assert brute_values(graph, found[None])[0] == tree.value


@pytest.mark.mpi_skip
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_best_cut_below_nothing_is_proved(ranks):
    """Where sides are given and weights negative, the best cut weighs less than none."""
    u, v = np.triu_indices(8, 1)
    graph = from_edges(8, u, v, -1.0 - (u * v) % 4)
    fixed = np.full(8, -1, dtype=np.int8)
    fixed[:2] = 1, 0
    made, best = trees(graph, ranks, fixed), optimum(graph, fixed)
    assert best < 0
    for tree in made:
        tree.begin(best)
    for _ in range(100):
        for tree in made:
            tree.run(0.0)
        words = np.max([tree.told() for tree in made], axis=0)
        for tree in made:
            tree.take(words, best)
    assert {(tree.value, tree.more) for tree in made} == {(best, False)}


@pytest.mark.mpi_skip
def test_no_share_of_the_tree_is_searched_yet():
    (tree,) = trees(graph_of(drawn(10, 0.5, 1)), 1)
    told = tree.told()
    told[:5] = 9 + 1, 3 + 1, 40 + 1, 100e6 + 1, 0 + 1
    tree.take(told, 0)
    assert tree.left_seconds() == np.inf


@pytest.mark.mpi_skip
def test_the_forecast_is_of_the_tree_that_is_left():
    (tree,) = trees(graph_of(drawn(10, 0.5, 1)), 1)
    assert 0 < tree.left_seconds() <= cut_tree.ROOT_ROUNDS * tree.least_seconds
    told = tree.told()
    for parts, closed, wanted in ((2, 0.5, np.inf), (20, 0.25, 300.0), (20, 0.999, 0.1001)):
        told[:5] = 9 + 1, 3 + 1, parts + 1, 100e6 + 1, int(closed * 2**40) + 1
        tree.take(told, 0)
        assert tree.left_seconds() == pytest.approx(wanted, rel=1e-3)
        assert tree.left == (3, 3 + parts)


@pytest.mark.mpi_skip
def test_what_is_small_enough():
    def suited(graph):
        return suits(graph, integer_weights(graph)[0])

    assert suited(from_edges(2, [0], [1]))
    assert not suited(from_edges(2, [], []))
    assert not suited(from_edges(cut_tree.MOST + 1, [0], [1]))
    assert not suits(from_edges(2, [0], [1]), np.array([2**52, 2**52]))


# ---- whole solves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts", "kernels"),
    [(1, "auto"), (2, "auto"), (2, "plain"), pytest.param(1, "plain", marks=pytest.mark.long)],
)
def test_small_dense_graphs_are_proved_on_any_ranks(starts, kernels):
    n, steps = (40, 20_000) if kernels == "auto" else (28, 4_000)
    graph = nx.gnp_random_graph(n, 0.5, seed=4)
    keys = {"search.baselines": False, "run.device": "cpu", "search.starts": starts, "run.kernels": kernels}
    found = solve(graph, "maxcut", search_seconds=20.0, settings=keys)
    assert found.optimal
    assert "branch and bound" in found.bound_method or "semidefinite" in found.bound_method
    keys |= {"search.steps": steps, "search.bound_seconds": 0.3}
    here = solve(graph, "maxcut", settings=keys, comm=MPI.COMM_WORLD)
    alone = by_one(lambda: solve(graph, "maxcut", settings=keys, comm=MPI.COMM_SELF))
    assert here.nodes == alone.nodes
    assert here.objective == alone.objective


def test_sides_that_are_given_are_kept_by_the_exact_search():
    graph = nx.gnp_random_graph(30, 0.5, seed=4)
    keys = {"search.baselines": False, "run.device": "cpu", "search.reductions": False}
    free = solve(graph, "maxcut", search_seconds=10.0, settings=keys)
    found = solve(graph, "maxcut", inside=[0, 1, 2, 3], outside=[4], search_seconds=10.0, settings=keys)
    assert found.optimal
    assert found.objective <= free.objective
    assert {0, 1, 2, 3} <= set(found.nodes)
    assert 4 not in found.nodes
