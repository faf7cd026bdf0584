"""Cliques of graphs too large for one rank: what core numbers leave is searched root by root on the rows."""

import contextlib
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, keys_of_replay
from jobs import ROOT
from mpi4py import MPI
from test_main import result_of
from test_resume import job
from test_row_cliques import QUIET, heaviest
from test_row_peel import kept_entries
from test_row_reductions import SELF, WORLD, Remembering, drawn, graph_rows, own_rows
from test_row_regions import Enough, Stopping, fresh

from app import check, solve
from app.bounds.clique.roots import RootSearch
from app.errors import Stopped
from app.solver.rows.clique_roots import ORDER_ROUNDS, RootCourse, load_order, search_roots
from app.solver.rows.kinds import ROW_KINDS
from app.solver.rows.own import Rounds
from app.tasks import answer_roots
from app.toolbox import never

LEAST_ENTRIES = 12  # of a part, some of whose roots then have too many later neighbours


def begun(group, graph, weights, entries, clique=None):
    """The search of all of a graph, from a clique of one node, in parts of so many entries."""
    kind = ROW_KINDS["clique"]("maximise", weights, lambda n, m: False, 1e9, True)
    kind.reduce(group, own_rows(group, graph), Rounds())
    kind._entries = entries
    order = kind.order(group, Rounds(most=ORDER_ROUNDS))
    return kind.roots(group, order, kind.rows.clique if clique is None else clique, None)


def meshes():
    """Sparse and dense graphs, cliques that share nodes, one without an edge."""
    yield from (drawn(seed) for seed in range(6))
    yield from (graph_rows(nx.gnp_random_graph(70, p, seed=3)) for p in (0.1, 0.3, 0.6))
    yield graph_rows(nx.ring_of_cliques(7, 6))
    yield graph_rows(nx.relaxed_caveman_graph(8, 9, 0.2, seed=1))
    yield graph_rows(nx.powerlaw_cluster_graph(200, 6, 0.6, seed=2))


@pytest.mark.parametrize("weighted", [False, True])
def test_heaviest_cliques_are_found_and_proved(weighted):
    """Whatever the parts may hold, where all roots fit; the same on any number of ranks at every step."""
    for at, graph in enumerate(meshes()):
        weights = np.random.default_rng(at).integers(1, 6, graph.n) if weighted else None
        best = heaviest(graph, range(graph.n), weights)
        for entries in (LEAST_ENTRIES, 300, 1 << 20):
            found = [begun(group, graph, weights, entries) for group in (WORLD, SELF)]
            for most in (3, 16, 21, 2000):
                for roots, group in zip(found, (WORLD, SELF)):
                    search_roots(group, roots, most, never)
                ours, alone = found
                assert np.array_equal(ours.clique, alone.clique) and ours.best == alone.best <= best
                assert np.array_equal(ours.course.bound, alone.course.bound) and ours.upper >= best
            assert ours.done
            if ours._closable.all():
                assert ours.best == best == ours.upper


def test_an_order_has_every_node_once_and_few_later_neighbours():
    """About as few as the degeneracy; also where no round is left."""
    graph = graph_rows(nx.barabasi_albert_graph(800, 5, seed=4))
    for rounds in (Rounds(most=ORDER_ROUNDS), Rounds(most=2)):
        kind = ROW_KINDS["clique"]("maximise", None, lambda n, m: False, 1e9, True)
        kind.reduce(WORLD, own_rows(WORLD, graph), Rounds(most=1))
        order = load_order(WORLD, kind.rows.own, None, 1, rounds)
        assert np.array_equal(np.sort(order), kind.nodes)
        if rounds.made > 2:
            roots = kind.roots(WORLD, order, kind.rows.clique, None)
            assert roots.counts.max() <= 6 and roots.counts.sum() == kind.edges


def test_roots_of_some_places_alone_count():
    """Of two cliques the one whose root is asked for, in a given order."""
    graph = graph_rows(nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(7)))
    for compiled in (False, True):
        order, mine = np.arange(12, dtype=np.int32), np.arange(12) < 5
        search = RootSearch(graph, None, 0, compiled=compiled, order=order, roots=mine)
        search.run(1 << 20)
        assert search.done and search.best == 5 and search.found().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("stops", [(4, 16, 27), (1, 2, 3)])
def test_it_goes_on_where_it_was(stops):
    """Within a round, too: order, clique and course are all there is."""
    graph = graph_rows(nx.gnp_random_graph(150, 0.4, seed=5))
    whole, roots = (begun(WORLD, graph, None, 900, np.array([0])) for _ in range(2))
    whole.course.work = roots.course.work = 2000  # so that a pass leaves some open
    search_roots(WORLD, whole, 60, never)
    for most in (*stops, 60):
        search_roots(WORLD, roots, most, never)
        again = begun(WORLD, graph, None, 900)
        course = replace(roots.course)
        roots = type(again)(WORLD, own_rows_left(graph), None, roots.order, roots.clique, 900, True, course)
    assert np.array_equal(whole.clique, roots.clique)
    assert np.array_equal(whole.course.bound, roots.course.bound)
    assert isinstance(roots.course, RootCourse) and roots.course.made == whole.course.made


def own_rows_left(graph):
    """The own rows of what reductions leave."""
    kind = ROW_KINDS["clique"]("maximise", None, lambda n, m: False, 1e9, True)
    kind.reduce(WORLD, own_rows(WORLD, graph), Rounds())
    return kind.rows.own


# ---- answers ----------------------------------------------------------------------------------------------

SCALED = nx.powerlaw_cluster_graph(5000, 7, 0.6, seed=7)
TINY = QUIET | {"memory.whole_graph_mb": 0.05, "output.certificates": True}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_far_beyond_the_limit_is_answered_and_proved(weighted):
    """On any number of ranks; the certificate is that of core numbers, which prove less."""
    weights = np.round(np.random.default_rng(5).uniform(0, 4, 5000)) if weighted else None
    more = {"node_weights": weights} if weighted else {}
    given = more | {"settings": TINY | {"search.row_regions": 400}}
    found = [solve(SCALED, "clique", comm=MPI.COMM_WORLD, **given)]
    found.append(by_one(lambda: solve(SCALED, "clique", comm=MPI.COMM_SELF, **given)))
    whole = by_one(lambda: solve(SCALED, "clique", settings=QUIET, comm=MPI.COMM_SELF, **more))
    for each in found:
        assert each.nodes == found[0].nodes
        assert each.objective == each.bound == whole.objective and each.optimal
        inside = each.nodes
        assert SCALED.subgraph(inside).number_of_edges() == len(inside) * (len(inside) - 1) // 2
        assert not each.bound_verified
        checked = by_one(lambda each=each: check(SCALED, each, comm=MPI.COMM_SELF, **more))
        assert checked.bound > whole.objective


@pytest.mark.mpi_skip
def test_what_a_clock_has_ended_is_replayed(tmp_path):
    """By the keys of the answer, on another number of ranks."""
    case = (
        ROOT / "inputs" / "clique.toml", "graph.generator=er", "graph.path=[]", "graph.nodes=6000",
        "graph.p=0.01", "graph.count=1", "memory.whole_graph_mb=1", "search.baselines=false",
        "output.plots=false",
    )  # fmt: skip
    code, printed = job((*case, "search.seconds=2"), tmp_path / "timed", ranks=2)
    assert code == 0, printed
    (entry,) = result_of(tmp_path / "timed")["instances"]
    code, printed = job((*case, *entry["replay"]), tmp_path / "again")
    assert code == 0, printed
    assert result_of(tmp_path / "again")["digest"] == result_of(tmp_path / "timed")["digest"]


def test_a_resumed_run_ends_like_one_that_was_never_stopped(monkeypatch):
    """Stopped among the parts."""
    graph = nx.gnp_random_graph(250, 0.25, seed=6)
    settings = QUIET | {"memory.whole_graph_mb": 0.05, "search.row_regions": 40}
    monkeypatch.setattr("app.tasks.solve._has_complement", lambda loaded: False)
    whole = solve(graph, "clique", settings=settings, comm=MPI.COMM_WORLD)
    answered = answer_roots.answer_by_roots

    def kept(context, problem, loaded, rest, _):
        keeper = Stopping(4)
        with contextlib.suppress(Enough):
            answered(context, problem, loaded, rest, keeper)
        assert "roots" in keeper.kept
        return answered(context, problem, loaded, fresh(context, problem, loaded), keeper.again())

    monkeypatch.setattr("app.tasks.solve.answer_by_roots", kept)
    again = solve(graph, "clique", settings=settings, comm=MPI.COMM_WORLD)
    assert (again.nodes, again.bound) == (whole.nodes, whole.bound)


# ---- where the policy may be asked, too --------------------------------------------------------------------

RING = nx.watts_strogatz_graph(300, 6, 0.2, seed=5)
DENSE = nx.gnp_random_graph(90, 0.85, seed=4)
NO_BASELINES = {"search.baselines": False}


def test_what_roots_prove_the_policy_is_not_asked():
    """Of a small sparse graph the complement could be shown to it, which proves nothing."""
    for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
        found = solve(RING, "clique", settings=NO_BASELINES | {"memory.whole_graph_mb": 0.02}, comm=comm)
        assert found.objective == max(map(len, nx.find_cliques(RING))) == found.bound
        assert found.policy_evaluations == 0


def test_what_roots_leave_open_the_policy_is_asked():
    """The heavier of both cliques, with the bound of core numbers and roots, on any number of ranks."""
    tight = NO_BASELINES | {"memory.whole_graph_mb": 0.001}
    alone = solve(DENSE, "clique", settings={"search.solver": "policy"} | NO_BASELINES, comm=MPI.COMM_SELF)
    roots = solve(DENSE, "clique", settings=tight | {"search.start": "greedy"}, comm=MPI.COMM_SELF)
    assert roots.policy_evaluations == 0 and roots.objective < roots.bound
    for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
        found = solve(DENSE, "clique", settings=tight, comm=comm)
        assert found.objective == max(alone.objective, roots.objective) and found.bound == roots.bound
        assert found.policy_evaluations > 0
        best = alone if alone.objective >= roots.objective else roots
        assert found.nodes == best.nodes


@pytest.mark.parametrize("late", [False, True])
def test_a_clock_that_ends_both_is_replayed(late, monkeypatch):
    """Roots have half of the limit; where no time is left for the policy the replay does without it, too."""
    timed = NO_BASELINES | {"memory.whole_graph_mb": 0.001, "search.seconds": 0.6}
    if late:
        monkeypatch.setattr(answer_roots, "POLICY_SHARE", 0.0)
    seen = kept_entries(monkeypatch)
    first = solve(DENSE, "clique", settings=timed, comm=MPI.COMM_WORLD)
    keys = keys_of_replay(seen[0].replay)
    assert ("search.start" in keys, "search.evaluations" in keys) == (late, not late)
    again = solve(DENSE, "clique", settings=timed | keys, comm=MPI.COMM_SELF)
    assert (again.nodes, again.bound) == (first.nodes, first.bound)


@pytest.mark.parametrize("late", [False, True])
def test_roots_have_the_whole_limit_where_there_is_no_time_for_the_policy_anyway(late, monkeypatch):
    searched, shares = answer_roots._searched, []

    def kept(context, graph, rest, found, keeper, shared):
        shares.append(shared)
        return searched(context, graph, rest, found, keeper, shared)

    monkeypatch.setattr(answer_roots, "_searched", kept)
    if late:
        monkeypatch.setattr(answer_roots, "REST_SECONDS", 1.0)
    timed = NO_BASELINES | {"memory.whole_graph_mb": 0.001, "search.seconds": 1}
    seen = kept_entries(monkeypatch)
    solve(DENSE, "clique", settings=timed, comm=MPI.COMM_WORLD)
    assert shares == [not late]
    assert ("search.start=greedy" in seen[0].replay) == late


def test_a_run_stopped_while_the_policy_chooses_has_what_roots_led_to(monkeypatch):
    """And goes on from there, without another search."""
    settings = NO_BASELINES | {"memory.whole_graph_mb": 0.001}
    whole = solve(DENSE, "clique", settings=settings, comm=MPI.COMM_WORLD)
    answered, known = answer_roots.answer_by_roots, []

    def kept(context, problem, loaded, rest, _, policy):
        keeper = Remembering()
        with monkeypatch.context() as patch:
            patch.setattr(answer_roots, "follow_policy", stopped)
            with pytest.raises(Stopped) as ended:
                answered(context, problem, loaded, rest, keeper, policy)
        known.append(ended.value.so_far)
        made = keeper.kept["roots"].values["made"]
        again = answered(context, problem, loaded, fresh(context, problem, loaded), keeper, policy)
        assert keeper.kept["roots"].values["made"] == made
        return again

    def stopped(*given, **more):
        raise Stopped("asked to")

    monkeypatch.setattr("app.tasks.solve.answer_by_roots", kept)
    again = solve(DENSE, "clique", settings=settings, comm=MPI.COMM_WORLD)
    assert (again.nodes, again.bound) == (whole.nodes, whole.bound)
    assert known[0].entry["bound"] == whole.bound and known[0].entry["policy_evaluations"] == 0
