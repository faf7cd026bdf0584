"""Regions of solutions on row partitions that are searched again."""

import contextlib
import json
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from mpi4py import MPI
from test_row_peel import MESH, QUIET, limit, priced, rows_of
from test_row_reductions import SELF, WORLD, Remembering, drawn, own_rows

from app import solve
from app.graphs.graph import from_edges
from app.problems.table import PROBLEMS
from app.rl.plain_rest import unmet
from app.rng import stream
from app.solver.rows import peel
from app.solver.rows.kinds import ROW_KINDS
from app.solver.rows.own import Rounds, everywhere
from app.solver.rows.regions import COUNT, EFFORT, NONE, Course, course_of, grow, search_regions
from app.tasks import answer_on_rows, answer_peeled
from app.tasks.answer_regions import Searching
from app.tasks.answer_rest import reduce_first
from app.toolbox import Instance, never

KINDS = ("mvc", "mis", "mds")


def reduced(problem, group, graph, weights=None):
    """The rows of a graph after reductions."""
    kind = ROW_KINDS[problem](PROBLEMS[problem].sense, weights, lambda n, m: False, 1e9, True)
    kind.reduce(group, graph, Rounds())
    return kind


def searched(problem, group, graph, weights, start, most, size=None, course=None):
    """The solution that so many regions lead to, and how."""
    kind = reduced(problem, group, own_rows(group, graph), weights)
    regions = kind.regions(group, start)
    course = Course(size or course_of(regions, 1e9).size, size or 1 << 18) if course is None else course
    search_regions(group, regions, PROBLEMS[problem](), 3, course, most, lambda: False)
    return kind.joined(regions), course, kind


def start_of(problem, group, graph, weights):
    """A solution as reductions lead to one."""
    kind = reduced(problem, group, own_rows(group, graph), weights)
    whole = kind.rest(group, "rest")
    toolbox = PROBLEMS[problem]().toolbox(Instance(whole, **kind.instance()))
    return kind.lift(toolbox.lift(toolbox.start()) if whole.n else np.zeros(0, dtype=bool))


def adversarial():
    """Stars, nothing, nodes without an edge, hubs whose rows are longer than a region, cliques."""
    yield from_edges(0, [], [])
    yield from_edges(5, [], [])
    yield rows_of(nx.star_graph(200))
    yield rows_of(nx.disjoint_union_all([nx.star_graph(7), nx.complete_graph(9), nx.path_graph(6)] * 3))
    wheel = nx.wheel_graph(300)
    wheel.add_edges_from((v, v + 2) for v in range(1, 290, 3))
    yield rows_of(wheel)
    yield rows_of(nx.complete_bipartite_graph(30, 40))
    yield rows_of(nx.barabasi_albert_graph(250, 4, seed=1))
    yield rows_of(nx.circulant_graph(300, [1, 17]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("problem", KINDS)
def test_solutions_stay_right_and_never_get_worse(problem, weighted):
    """The same on any number of ranks, with regions of all sizes, after every region."""
    for at, graph in enumerate([*adversarial(), *(drawn(seed) for seed in range(4))]):
        weights = priced(at, graph.n, 1) if weighted else None
        start = start_of(problem, WORLD, graph, weights)
        toolbox = PROBLEMS[problem]().toolbox(Instance(graph, whole_weights=weights))
        before = toolbox.value(start)
        for size, most in ((24, 7), (200, 35)):
            found, course, _ = searched(problem, WORLD, graph, weights, start, most, size)
            again, _, _ = searched(problem, SELF, graph, weights, start, most, size)
            assert np.array_equal(found, again)
            assert toolbox.fault(found) is None
            assert not toolbox.improves(before, toolbox.value(found))
            assert not (course.better and toolbox.value(found) == before)


@pytest.mark.parametrize("problem", KINDS)
def test_a_region_of_all_is_the_plain_search(problem, monkeypatch):
    """One region that holds the graph comes to what the toolbox comes to by itself."""
    for module in ("regions", "cover_regions", "domination_regions"):
        monkeypatch.setattr(f"app.solver.rows.{module}.COUNT", 1)
    graph = rows_of(MESH)
    start = start_of(problem, SELF, graph, None)
    found, *_ = searched(problem, SELF, graph, None, start, 1, 1 << 14)
    toolbox = PROBLEMS[problem]().toolbox(Instance(graph))
    toolbox.reduce(never)
    seed = stream(3, "regions", 0).integers(1 << 62, size=1)[0]
    search = toolbox.search(int(seed), toolbox.restrict(start))
    search.run(EFFORT * toolbox.core.n)
    assert toolbox.value(found) == toolbox.value_of_core(search.best)
    assert toolbox.improves(toolbox.value(found), toolbox.value(start))


def test_regions_share_no_node_and_keep_to_their_size():
    """Some are grown from several nodes; hubs are in none."""
    graph = rows_of(nx.barabasi_albert_graph(2000, 3, seed=2))
    kind = reduced("mds", WORLD, own_rows(WORLD, graph))
    regions = kind.regions(WORLD, np.ones(graph.n, dtype=bool))
    label = grow(WORLD, regions, stream(1, "regions"), 800)
    for region in range(COUNT):
        held = regions.degrees[label == region] + 1
        assert held.sum() <= 800 and held.max(initial=0) <= 101
        assert held.sum() > 400
    assert (label[regions.degrees > 100] == NONE).all()


@pytest.mark.parametrize("problem", KINDS)
def test_they_go_on_where_they_were(problem):
    """In the midst of a round, too: solution, the one before the round, and numbers are all there is."""
    graph = rows_of(MESH)
    start = start_of(problem, WORLD, graph, None)
    whole, _, _ = searched(problem, WORLD, graph, None, start, 53, 120)
    kind = reduced(problem, WORLD, own_rows(WORLD, graph))
    regions, course = kind.regions(WORLD, start), Course(120, 120)
    for most in (5, 21, 32, 53):
        search_regions(WORLD, regions, PROBLEMS[problem](), 3, course, most, lambda: False)
        again = kind.regions(WORLD, start)
        again.solution = regions.solution
        course = Course(**course.numbers(), before=course.before.copy())
        regions = again
    assert np.array_equal(kind.joined(regions), whole)


@pytest.mark.parametrize("at", [16, 17, 32])
def test_they_go_on_where_a_look_stopped_them(at):
    """At the beginning of a round, too, when what it is to be is settled."""
    graph = rows_of(MESH)
    start = start_of("mvc", WORLD, graph, None)
    _, whole, _ = searched("mvc", WORLD, graph, None, start, 53, course=Course(120, 1 << 12))
    kind = reduced("mvc", WORLD, own_rows(WORLD, graph))
    regions, course = kind.regions(WORLD, start), Course(120, 1 << 12)
    search_regions(WORLD, regions, PROBLEMS["mvc"](), 3, course, 53, lambda: course.made >= at)
    course = Course(**course.numbers(), before=course.before.copy())
    search_regions(WORLD, regions, PROBLEMS["mvc"](), 3, course, 53, lambda: False)
    assert course.numbers() == whole.numbers()


def test_where_the_time_is_up_no_round_is_settled(monkeypatch):
    """Regions that are not searched are not grown either."""
    regions = reduced("mvc", WORLD, own_rows(WORLD, rows_of(MESH))).regions(WORLD, np.ones(300, dtype=bool))
    grown = []
    monkeypatch.setattr(regions, "settle", lambda *given: grown.append(given))
    course = Course(120, 120)
    search_regions(WORLD, regions, PROBLEMS["mvc"](), 3, course, 53, lambda: True)
    assert not grown and not course.made


@pytest.mark.parametrize(("seconds", "ends"), [(0, False), (2, True)])
def test_so_many_regions_keep_to_a_time_limit(seconds, ends, monkeypatch):
    told = []
    monkeypatch.setattr(
        Searching, "run", lambda searching, problem: told.append(searching.ends) or searching.found
    )
    settings = QUIET | limit(100, 150) | {"search.row_regions": 9, "search.seconds": seconds}
    solve(MESH, "mvc", settings=settings, comm=MPI.COMM_WORLD)
    assert told and np.isfinite(told[0]) == ends


def test_answers_are_those_of_the_last_region(monkeypatch):
    """Of as good ones, too: when it was asked for them depends on the number of ranks."""
    run, left = Searching.run, []

    def kept(searching, problem):
        answer = run(searching, problem)
        left.append((answer.solution, searching.rest.kind.joined(searching.regions), searching.course.better))
        return answer

    monkeypatch.setattr(Searching, "run", kept)
    settings = QUIET | limit(100, 150) | {"select.rule": "fraction", "search.row_regions": 60}
    found = [solve(MESH, "mvc", settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes
    for answered, last, better in left:
        assert better and np.array_equal(answered, last)


def test_few_better_regions_make_them_larger_then_searches_longer():
    course = Course(100, 150)
    for made, size, effort in ((0, 100, 1), (16, 150, 1), (32, 150, 2), (48, 150, 4)):
        course.made = made
        course.begin(np.zeros(1, dtype=bool))
        assert (course.size, course.effort) == (size, effort)
    course.made, course.better = 64, 9
    course.begin(np.zeros(1, dtype=bool))
    assert course.effort == 4


@pytest.mark.parametrize(
    ("problem", "weighted"), [("mvc", False), ("mis", True), ("mds", False), ("mds", True)]
)
def test_a_resumed_run_ends_like_one_that_was_never_stopped(problem, weighted, monkeypatch):
    """Stopped among the choices, after them, and among the regions."""
    settings = QUIET | limit(100, 150) | {"select.rule": "fraction", "search.row_regions": 24}
    more = {"node_weights": priced(3, len(MESH), 1).astype(float)} if weighted else {}
    whole = solve(MESH, problem, settings=settings, comm=MPI.COMM_WORLD, **more)
    answered = answer_peeled.answer_peeled
    for stop in (5, 30):
        keeper = Stopping(stop)

        def kept(context, pipeline, policy, problem, loaded, rest, _, keeper=keeper):
            with contextlib.suppress(Enough):
                answered(context, pipeline, policy, problem, loaded, rest, keeper)
            return answered(
                context, pipeline, policy, problem, loaded, fresh(context, problem, loaded), keeper.again()
            )

        monkeypatch.setattr("app.tasks.solve.answer_peeled", kept)
        again = solve(MESH, problem, settings=settings, comm=MPI.COMM_WORLD, **more)
        assert again.nodes == whole.nodes and again.objective == whole.objective


def fresh(context, problem, loaded):
    """What reductions leave, as a resumed run has it."""
    return reduce_first(context, problem, loaded, Remembering())


class Enough(Exception):
    """A stop."""


class Stopping(Remembering):
    """Remembers, and stops after some looks of a loop that tells its state."""

    def __init__(self, left):
        super().__init__()
        self.left = left

    def keep(self, key, state):
        json.dumps(state.values)  # as a file has to hold them
        super().keep(key, state)

    def at(self, step, key="", state=None, now=False):
        if state is None:
            return
        self.left -= 1
        if not self.left:
            self.keep(key, state())
            raise Enough

    def again(self):
        found = Remembering()
        found.kept = self.kept
        return found


def test_of_nodes_as_good_as_each_other_many_are_taken_at_once():
    """In the order of their numbers each stands in the way of the next one: all but one would wait."""
    kind = reduced("mds", WORLD, own_rows(WORLD, rows_of(nx.cycle_graph(300))))
    block, own = peel._block(WORLD, kind, "auto")
    ordered = everywhere(WORLD, block.lo + np.flatnonzero(own >= 0))
    found = unmet(WORLD, block, ordered)
    assert 30 <= len(found) <= 100
    place = np.sort(np.searchsorted(ordered, found))
    assert (np.diff(place) > 2).all()


@pytest.mark.parametrize(("rings", "rounds"), [(False, 3), (True, 1)])
def test_so_many_exchanges_keep_to_a_time_limit(rings, rounds, monkeypatch):
    """One round is made in any case, as a replay has at least one."""
    clock, made = answer_on_rows.Work.clock, []

    def late(work, share, keep=None):
        return clock(work, share, keep) if keep is not None else SimpleNamespace(rings=lambda: rings)

    def improve(kind, group, graph, solution, rounds):
        while rounds.another():
            pass
        made.append(rounds.made)
        return solution

    monkeypatch.setattr(answer_on_rows.Work, "clock", late)
    monkeypatch.setattr(ROW_KINDS["mvc"], "improve", improve)
    settings = QUIET | limit(100, 150) | {"search.row_exchanges": 3, "search.bounds": False}
    solve(MESH, "mvc", settings=settings | {"search.row_regions": 0}, comm=MPI.COMM_WORLD)
    assert made == [rounds]
