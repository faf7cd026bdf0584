"""Exact search shared by ranks: one proof however roots are dealt and cut; forecasts; its part in a solve."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from helpers import graph_of, is_clique
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi4py import MPI

from app import solve
from app.bounds import shared_roots
from app.bounds.clique import roots as clique_roots
from app.bounds.clique.forecast import Forecast
from app.bounds.clique.roots import Roots
from app.bounds.shared_roots import SharedRoots
from app.graphs.derived import complement
from app.log import Log
from app.search import shared_tree
from app.search.clique import complement as clique_complement
from app.search.shared_tree import CliqueTree, CoverTree, suits
from app.solver.budget import Budget
from app.solver.exact import Exact
from app.solver.progress import Progress
from app.toolbox import Toolbox, Tree

KINDS = [pytest.param(True, id="kernels"), pytest.param(False, id="plain")]


@st.composite
def instances(draw, most=24):
    """A graph, node weights or none, and the weight of its heaviest clique."""
    n, p, seed = draw(st.integers(1, most)), draw(st.floats(0.1, 1)), draw(st.integers(0, 999))
    weights = draw(st.sampled_from([None, np.random.default_rng(seed).integers(1, 9, n)]))
    pairs = nx.gnp_random_graph(n, p, seed=seed)
    whole = np.ones(n, dtype=np.int64) if weights is None else weights
    nx.set_node_attributes(pairs, dict(enumerate(whole.tolist())), "weight")
    return graph_of(pairs), weights, nx.max_weight_clique(pairs)[1]


def exchange(parts):
    """What the ranks of a group do between two turns."""
    words = np.max([part.told() for part in parts], axis=0)
    best = max(part.best for part in parts)
    for part in parts:
        part.learn_all(words, best)


# ---- dealing -----------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("compiled", KINDS)
@settings(max_examples=40, deadline=None)
@given(
    drawn=instances(), ranks=st.integers(1, 4), turns=st.integers(0, 2**32), known=st.booleans(),
    hurried=st.booleans(),
)  # fmt: skip
def test_all_ranks_prove_the_same_however_their_turns_are_cut(compiled, drawn, ranks, turns, known, hurried):
    graph, weights, best = drawn
    random = np.random.default_rng(turns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_roots, "CHUNK", 40)
        patch.setattr(shared_roots, "PLAIN_CHUNK", 40)
        patch.setattr(shared_roots, "FIRST_LIMIT", 30)
        parts = [SharedRoots(graph, weights, best * known, r, ranks, compiled) for r in range(ranks)]
        for number in itertools.count():
            for part in parts:
                part.hurried = hurried and number > 2
                part.run(float(random.choice([0.0, 1e-6, 1e-4])))
            exchange(parts)
            assert len({part.upper for part in parts}) == 1
            assert all(np.array_equal(part.open(), parts[0].open()) for part in parts)
            assert all(part.left_seconds() >= 0 for part in parts)
            assert parts[0].best <= best <= parts[0].upper
            if parts[0].done:
                break
            assert not parts[0].stuck
    assert parts[0].best == best
    found = [clique for part in parts if (clique := part.found()) is not None]
    assert bool(found) == (not known)
    whole = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    for clique in found:
        assert is_clique(graph, np.isin(np.arange(graph.n), clique))
    assert known or max(whole[clique].sum() for clique in found) == best


@pytest.mark.mpi_skip
def test_no_root_is_searched_twice_at_a_time():
    graph = graph_of(nx.gnp_random_graph(60, 0.7, seed=4))
    parts = [SharedRoots(graph, None, 0, r, 3) for r in range(3)]
    for part in parts:
        part._chunk = 100
    for _ in range(20):
        for part in parts:
            part.run(1e-5)
        before = [part._active for part in parts]
        exchange(parts)
        groups = [[group[0] for group in part._groups] for part in parts]
        groups = [more if part._roots is None else [part._roots, *more] for part, more in zip(parts, groups)]
        dealt = [{root for group in dealt_to for root in group.tolist()} for dealt_to in groups]
        assert all(not one & two for one, two in itertools.combinations(dealt, 2))
        assert set().union(*dealt) == set(parts[0].open().tolist()) | {root for root in before if root >= 0}


@pytest.mark.mpi_skip
def test_a_search_that_knows_all_has_nothing_to_do():
    graph = graph_of(nx.complete_graph(5))
    roots = SharedRoots(graph, None, 5)
    roots.run(1.0)
    assert (roots.done, roots.seconds, roots.left_seconds()) == (True, 0.0, 0.0)
    empty = SharedRoots(graph_of(nx.empty_graph(0)), None, 0)
    assert empty.done


# ---- forecasts ---------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@settings(max_examples=40, deadline=None)
@given(drawn=instances(40), seed=st.integers(0, 2**63), paths=st.integers(1, 5))
def test_paths_are_those_of_their_twin(drawn, seed, paths):
    graph, weights, best = drawn
    for known in (0, best):
        one, two = (Roots(graph, weights, known, compiled) for compiled in (True, False))
        if one.compiled == two.compiled:
            pytest.skip("no kernels here")
        inner = one.another(), two.another()
        for root in range(graph.n):
            assert inner[0].probe(root, paths, seed) == inner[1].probe(root, paths, seed)
        assert np.array_equal(one.bound, two.bound)


def work_of(graph, weights, best):
    """What branch and bound of all roots takes that finds nothing better."""
    roots = Roots(graph, weights, best)
    inner = roots.another()
    inner.begin(np.ascontiguousarray(roots.open()[::-1], dtype=np.int32), 0)
    assert inner.run(1 << 60)
    return inner.work


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("n", "p", "weighted"), [(90, 0.5, False), (70, 0.8, False), (60, 0.7, True)])
def test_the_mean_of_paths_is_the_work(n, p, weighted):
    """Paths are an unbiased estimate: of many the mean comes near."""
    pairs = nx.gnp_random_graph(n, p, seed=n)
    weights = np.random.default_rng(n).integers(1, 9, n) if weighted else None
    whole = np.ones(n, dtype=np.int64) if weights is None else weights
    nx.set_node_attributes(pairs, dict(enumerate(whole.tolist())), "weight")
    graph, best = graph_of(pairs), nx.max_weight_clique(pairs)[1]
    roots = Roots(graph, weights, best)
    inner = roots.another()
    expected = sum(inner.probe(root, 4000, 7 + root) for root in roots.open().tolist())
    assert expected == pytest.approx(work_of(graph, weights, best), rel=0.05)


@pytest.mark.mpi_skip
def test_a_forecast_comes_near_and_falls_as_roots_end():
    graph = graph_of(nx.gnp_random_graph(250, 0.6, seed=1))
    roots = SharedRoots(graph, None, 0)
    while not roots.done:
        roots.run(0.1)
        exchange([roots])
    best, work = roots.best, work_of(graph, None, roots.best)
    roots = SharedRoots(graph, None, best)
    forecast = Forecast(roots)
    first = forecast.words()
    assert work / 3 < first < 3 * work
    assert forecast.speed > 0
    words = [first]
    while not roots.done:
        roots.run(0.001)
        exchange([roots])
        words.append(forecast.words())
    assert words[-1] == 0 < words[0]
    assert min(words[:2]) > words[-2]


@pytest.mark.mpi_skip
def test_trees_too_large_to_look_at_have_no_forecast(monkeypatch):
    monkeypatch.setattr("app.bounds.clique.forecast.LARGEST", 3)
    roots = SharedRoots(graph_of(nx.complete_graph(9)), None, 0)
    assert math.isinf(Forecast(roots).words())
    roots.run(0.0)
    assert math.isinf(roots.left_seconds())


# ---- trees of cores ----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_covers_are_what_cliques_of_the_complement_leave_out():
    pairs = nx.gnp_random_graph(40, 0.5, seed=3)
    graph, weights = graph_of(pairs), np.random.default_rng(3).integers(1, 9, 40)
    one, two = CliqueTree(graph, weights, 0, 1), CoverTree(complement(graph), weights, 0, 1, "reductions")
    assert two.method == f"reductions, {shared_tree.COVER_METHOD}"
    assert one.begin_seconds > 0 < two.begin_seconds
    for tree, start in ((one, 0), (two, int(weights.sum()))):
        tree.begin(start)
        assert tree.forecast_seconds > 0
        assert tree.left == (40, 40)
        while tree.more:
            tree.run(0.01)
            tree.take(tree.told(), tree.best)
    assert one.value == one.best == weights.sum() - two.best
    assert two.value == two.best == weights[two.solution()].sum()
    assert is_clique(graph, one.solution())
    assert is_clique(graph, ~two.solution())


@pytest.mark.mpi_skip
def test_what_is_searched_as_cliques_of_the_complement():
    assert suits(graph_of(nx.gnp_random_graph(40, 0.5, seed=3))) == (clique_roots.RUN is not None)
    assert not suits(graph_of(nx.path_graph(40)))
    assert not suits(graph_of(nx.disjoint_union(nx.complete_graph(20), nx.complete_graph(20))))
    assert not suits(graph_of(nx.empty_graph(0)))


# ---- the part of a solve -----------------------------------------------------------------------------------


class Given(Tree):
    """A tree of ten parts, of which a call of `run` does one."""

    method, left = "parts", (3, 10)

    def __init__(self, needs, optimal=3):
        self.needs, self.optimal = needs, optimal
        self.done, self.hurried, self.best, self.known = 0, False, None, []

    def begin(self, best):
        self.best = best

    @property
    def more(self):
        return self.done < 10

    @property
    def value(self):
        return self.optimal if self.done == 10 else 0

    def run(self, seconds):
        self.done = min(self.done + 1, 10)
        if self.done == 5:
            self.best = min(self.best, self.optimal)

    def told(self):
        return np.array([self.done])

    def take(self, words, best):
        self.done, self.best = int(words[0]), best
        self.known.append(best)

    def left_seconds(self):
        return self.needs * (10 - self.done)

    def hurry(self, wanted):
        self.hurried = wanted

    def solution(self):
        return np.array([self.optimal]) if self.best == self.optimal else None


class Tools(Toolbox):
    """A toolbox whose core is the instance, and that is asked for values alone."""

    sense = "minimise"
    value = fault = start = None


@pytest.fixture(autouse=True)
def exchange_at_once(monkeypatch):
    monkeypatch.setattr("app.solver.exact.PAUSE", 0.0)


def exact_of(group, tree, seconds=100.0, searches=1):
    progress = Progress(Log(group.rank == 0), "case", True, 1.0)
    progress.found(9, "start", 0)
    return Exact(group, Tools(), tree, Budget.of_case(-1, seconds, 5.0, 100), progress, searches)


@pytest.mark.parametrize("seconds", [100.0, 0.0])
def test_a_shared_search_ends_with_a_proof(group, seconds):
    exact = exact_of(group, Given(1.0), seconds)
    turns = 0
    while exact.more:
        if exact.begun:
            exact.run(0.0)
        exact.share(turns, 50.0)
        turns += 1
        assert exact.eager == (seconds > 0 and turns > 1 and exact.more)
    assert turns == 11
    assert (exact.progress.bound, exact.progress.method) == (3, "parts")
    if seconds:
        assert (exact.progress.best, exact.progress.source, exact.value) == (3, "exact search", 3)
        assert 0 <= exact.owner < group.size
        assert (exact.solution() is not None) == (exact.owner == group.rank)
    else:  # what it finds depends on the clock
        assert (exact.progress.best, exact.owner, exact.solution()) == (9, -1, None)
    assert exact.tree.known[-1] == 3


def test_an_end_is_in_sight_by_forecast(group, capsys):
    """Eager where the time is enough, no longer where it turns out not to be; told when it changes."""
    exact = exact_of(group, Given(0.0), searches=0)
    exact.share(0, 50.0)
    course = []
    for needs in (1000.0, 30.0, 45.0, 60.0, 45.0, 39.0):
        exact.tree.needs, exact.tree.done = needs / 10, 0
        exact.share(0, 50.0)
        course.append(exact.eager)
        assert exact.tree.hurried == exact.eager
    assert course == [0, 1, 1, 0, 0, 1]
    said = [line for line in " ".join(capsys.readouterr().out.split()).split("case: ") if "proof" in line]
    if group.rank == 0:
        assert len(said) == 2
        assert "about 17 min more on" in said[0]
        assert "(3 of 10 roots are open)" in said[0]
        assert "30 s more" in said[1]
        assert "most of the time" in said[1]


def test_a_room_in_which_no_call_fits_is_the_end(group):
    """Without a time limit nothing would ever use it up: rounds went on for ever."""
    exact = exact_of(group, Given(1.0), seconds=0.0)
    exact.tree.least_seconds = 0.2
    exact.share(0, 0.3)
    exact.share(1, 0.25)
    assert exact.begun and exact.more
    exact.share(2, 0.1)
    assert not exact.more


def test_the_first_rank_says_how_long_all_may_work(group):
    """A rank that ran out of time by itself, with a root at hand, would keep all others waiting for ever."""
    exact = exact_of(group, Given(1.0), seconds=0.0)
    exact.share(0, 50.0)
    exact.seconds = 1.0 + group.rank
    exact.share(1, 50.0 if group.rank == 0 else -1.0)
    assert (exact.more, exact.room, exact.spent) == (True, 50.0, group.size)
    exact.share(2, 0.0 if group.rank == 0 else 50.0)
    assert (exact.more, exact.room) == (False, 0.0)


@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.5, marks=pytest.mark.long)])
def test_steps_end_with_ranks_that_ran_out_of_time(seconds):
    pairs = nx.gnp_random_graph(190, 0.9, seed=1)
    keys = {"search.baselines": False, "run.device": "cpu"}
    keys |= {"search.steps": 2_000_000, "search.bound_seconds": seconds}
    found = solve(pairs, "clique", settings=keys)
    assert found.objective <= found.bound


def test_exchanges_that_take_long_are_rare(group):
    exact = exact_of(group, Given(1.0))
    exact.share(0, 50.0)
    exact._due = math.inf
    exact.run(0.0)
    exact.share(1, 50.0)
    assert (exact.more, exact.tree.known) == (True, [])
    exact.share(2, 0.0)  # the last
    assert (exact.more, exact.tree.known) == (False, [9])


def test_a_tree_that_takes_long_to_begin_is_left_out(group):
    tree = Given(1.0)
    tree.begin_seconds = 10.0
    exact = exact_of(group, tree)
    exact.share(0, 50.0)
    assert not exact.more
    assert not exact.begun
    assert not exact_of(group, None).more


@pytest.mark.parametrize("problem", ["clique", "mis", "mvc"])
@pytest.mark.parametrize("starts", [1, 3])
def test_dense_graphs_are_proved_on_any_ranks(problem, starts):
    """With steps and with seconds; the answer of steps is the same on any ranks."""
    pairs = nx.gnp_random_graph(90, 0.5, seed=6)
    size = max(map(len, nx.find_cliques(pairs if problem == "clique" else nx.complement(pairs))))
    best = 90 - size if problem == "mvc" else size
    keys = {"search.baselines": False, "run.device": "cpu", "search.starts": starts}
    timed = solve(pairs, problem, search_seconds=20.0, settings=keys)
    assert (timed.objective, timed.bound, timed.optimal) == (best, best, True)
    keys |= {"search.steps": 200, "search.bound_seconds": 0.3}
    here, alone = (
        solve(pairs, problem, settings=keys, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    )
    assert here.nodes == alone.nodes
    assert here.objective == alone.objective


def test_ranks_share_the_search_of_a_sparse_kernel(monkeypatch):
    monkeypatch.setattr(clique_complement, "COMPLEMENT_EDGES", -1)
    monkeypatch.setattr("app.search.clique.kernel.WORK", 1)
    pairs = nx.gnp_random_graph(70, 0.5, seed=2)
    size = max(map(len, nx.find_cliques(pairs)))
    keys = {"search.baselines": False, "run.device": "cpu"}
    for kernels in ("auto", "plain"):
        found = solve(pairs, "clique", search_seconds=20.0, settings={**keys, "run.kernels": kernels})
        assert (found.objective, found.bound, found.optimal) == (size, size, True)
