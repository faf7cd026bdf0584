"""What a time limit leaves out or cuts short, by clocks and estimates that are given: nothing is timed."""

import itertools
import math
import tomllib
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from mpi4py import MPI
from msgspec import structs
from test_row_reductions import SELF

from app import check, solve, toolbox
from app.bounds.certificate import BadCertificate
from app.bounds.dense.bounds import ROUND_SECONDS
from app.bounds.dfvs.feasible import cycle_left
from app.bounds.feasible import fault_of_tree
from app.case.config import Case
from app.errors import OtherRankFailed
from app.graphs.arrangement import arrangement_of
from app.graphs.digraph import from_arcs
from app.graphs.graph import from_edges
from app.graphs.joined import components
from app.graphs.lists import kept_rows, row_counts, rows_ascend, rows_with
from app.graphs.sized import sized_of
from app.graphs.steiner import SteinerCore, steiner_of
from app.native.library import kernels
from app.reductions.steiner.reducer import SteinerReducer, Untouched
from app.reductions.steiner.verify import verify_log
from app.search.arrangement import tools as arrangement_tools
from app.search.coloring import tools as coloring_tools
from app.search.communities import baselines as communities
from app.search.communities import tools as community_tools
from app.search.cover import start as cover_start
from app.search.cover.tools import CoverTools
from app.search.dense import tools as dense_tools
from app.search.dfvs import baselines
from app.search.dismantle import tools as dismantle
from app.search.dismantle.course import by_degree
from app.search.influence import rounds
from app.search.routing import tools as routing_tools
from app.search.steiner import baselines as steiner_baselines
from app.search.steiner import prized
from app.search.steiner import tools as steiner_tools
from app.search.tour import tools as tour_tools
from app.solver import learned, pipeline, sampled
from app.solver.pipeline import Pipeline
from app.solver.rows import peel
from app.tasks import answer, compare
from app.toolbox import Toolbox

SMALL = nx.random_regular_graph(4, 60, seed=3)
BRIEF = {"search.steps": 200, "search.starts": 1, "search.bounds": False}
NO_TIME = 1e9  # s, an estimate of what never fits


def limited(seconds):
    case = Case()
    return structs.replace(case, search=structs.replace(case.search, seconds=seconds))


def entries(monkeypatch):
    """Entries of result.json of what is solved from now on."""
    kept, made = [], answer.entry_of

    def entry_of(*given):
        kept.append(made(*given))
        return kept[-1]

    monkeypatch.setattr(answer, "entry_of", entry_of)
    return kept


@pytest.mark.parametrize(
    ("limit", "used", "left"),
    [(50.0, 30.0, 25.0), (50.0, 60.0, 5.0), (50.0, math.inf, 5.0), (1.0, 1.0, 0.25), (0.0, 9.0, math.inf)],
)
def test_baselines_have_what_is_left_and_a_tenth(limit, used, left):
    assert compare.seconds_of_baselines(limited(limit), used) == left


def test_plain_heuristics_that_would_take_too_long_are_left_out(monkeypatch):
    settings = {"problem.component": 5, "search.steps": 50, "search.starts": 1, "search.bounds": False}
    whole = solve(SMALL, "dismantle", settings=settings, comm=MPI.COMM_WORLD)
    assert set(whole.curves) == {"answer", *whole.baselines}
    assert {"CoreHD", "high degree", "collective influence"} <= set(whole.baselines)
    slow = {"influence": NO_TIME}
    monkeypatch.setattr(dismantle.DismantleTools, "baseline_seconds", slow)
    monkeypatch.setattr(dismantle.DismantleTools, "curve_seconds", NO_TIME)
    brief = solve(SMALL, "dismantle", search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD)
    assert set(whole.baselines) - set(brief.baselines) == {"collective influence"}
    assert brief.curves == {"answer": whole.curves["answer"]}
    free = solve(SMALL, "dismantle", settings=settings, comm=MPI.COMM_WORLD)  # no limit, no estimate counts
    assert (free.nodes, free.baselines, free.curves) == (whole.nodes, whole.baselines, whole.curves)


def test_the_nearest_neighbour_of_many_customers_is_left_out(monkeypatch):
    points, demands = np.random.default_rng(3).random((40, 2)), np.r_[0, np.full(39, 3)]
    monkeypatch.setattr(routing_tools, "NEAREST_SECONDS", NO_TIME)
    given = {"demands": demands, "capacity": 20.0, "settings": BRIEF, "comm": MPI.COMM_WORLD}
    free = solve(points, "cvrp", **given)
    brief = solve(points, "cvrp", search_seconds=5.0, **given)
    assert set(free.baselines) - set(brief.baselines) == {"nearest neighbour"} and len(brief.baselines) == 2


def test_where_no_plain_heuristic_fits_a_replay_has_none_either(monkeypatch):
    """Else one that is better than the search of then would be the answer."""
    seen, settings = entries(monkeypatch), BRIEF | {"problem.component": 5}
    monkeypatch.setattr(compare, "heuristics", lambda case, toolbox: {"slow": toolbox.start})
    monkeypatch.setattr(dismantle.DismantleTools, "baseline_seconds", {"slow": NO_TIME})
    assert not solve(SMALL, "dismantle", search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD).baselines
    assert "search.baselines=false" in seen[-1]["replay"]


def test_what_comes_before_and_after_the_search_is_part_of_the_limit(monkeypatch):
    seen, answered = [], Pipeline.answer

    def watched(self, toolbox, name, given=None, spent=0.0, kept=0.0):
        seen.append((spent, kept, toolbox.closing_seconds))
        return answered(self, toolbox, name, given, spent, kept)

    monkeypatch.setattr(Pipeline, "answer", watched)
    for closing, kept in ((0.25, 0.25), (NO_TIME, 0.3 * 2.0)):
        monkeypatch.setattr(dismantle.DismantleTools, "closing_seconds", closing)
        solve(SMALL, "dismantle", search_seconds=2.0, settings=BRIEF | {"search.baselines": False})
        assert seen[-1][0] > 0 and seen[-1][1:] == (kept, closing)


def test_the_order_of_a_set_is_found_once(monkeypatch):
    asked, found = [], dismantle.removal_order

    def removal_order(*given):
        asked.append(given[1])
        return found(*given)

    monkeypatch.setattr(dismantle, "removal_order", removal_order)
    settings = BRIEF | {"search.baselines": False}
    solution = solve(SMALL, "dismantle", settings=settings, comm=MPI.COMM_SELF)
    assert len(asked) == 1 and len(solution.order) == asked[0].sum() and "answer" in solution.curves


def test_a_start_that_takes_too_long_is_given_up_and_the_replay_says_so(monkeypatch):
    """The plain greedy that completes a policy's set has no end of its own."""
    seen, settings = entries(monkeypatch), BRIEF | {"search.baselines": False, "search.reductions": False}
    with monkeypatch.context() as patch:
        patch.setattr(learned, "REST_PATIENCE", -1.0)
        first = solve(SMALL, "fvs", search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD)
    assert seen[-1]["learned"] is None and "search.start=greedy" in seen[-1]["replay"]
    again = solve(SMALL, "fvs", settings=settings | {"search.start": "greedy"}, comm=MPI.COMM_SELF)
    assert first.nodes == again.nodes


@pytest.mark.mpi_skip
def test_a_replay_does_not_take_the_place_of_a_file_to_start_from(monkeypatch, tmp_path):
    """search.start says both: whether the policy is asked, and the file."""
    seen, file = entries(monkeypatch), tmp_path / "known.txt"
    settings = BRIEF | {"search.baselines": False, "search.reductions": False}
    solve(SMALL, "fvs", settings=settings).save(str(file))
    monkeypatch.setattr(learned, "REST_PATIENCE", -1.0)
    solve(SMALL, "fvs", search_seconds=5.0, settings=settings | {"search.start": str(file)})
    assert seen[-1]["learned"] is None and seen[-1]["replay"] == []


# ---- greedy choices on rows --------------------------------------------------------------------------------


class Kind:
    """What is left, in numbers."""

    def __init__(self, nodes, edges, weights=None, marks=None):
        self.nodes, self.edges, self.weights = range(nodes), edges, weights
        self.marks = lambda: marks


def test_a_plain_greedy_takes_as_much_at_once_as_its_time_asks_for():
    small, large = Kind(100, 300), Kind(10**7, 10**8)
    assert peel.affordable_greedy(SELF, small, 1.0) == peel.LATE_GREEDY
    assert peel.affordable_greedy(SELF, small, 0.0) == peel.LATE_GREEDY
    assert peel.affordable_greedy(SELF, large, 1.0) == peel.LARGEST_GREEDY
    assert peel.affordable_greedy(SELF, large, 1e9) == peel.LATE_GREEDY
    assert peel.affordable_greedy(SELF, large, math.inf) == 0.0
    middle = peel.affordable_greedy(SELF, large, 20.0)
    assert peel.LATE_GREEDY < middle < peel.LARGEST_GREEDY
    assert peel.affordable_greedy(SELF, Kind(10**7, 10**8, marks=1), 60.0) > peel.affordable_greedy(
        SELF, large, 60.0
    )


@pytest.mark.parametrize("problem", ["mvc", "mds"])
def test_hasty_choices_are_the_same_on_any_number_of_ranks(problem):
    """Around hubs few nodes have no neighbour in common; a share of them is taken nevertheless."""
    hubs = nx.barabasi_albert_graph(400, 4, seed=5)
    settings = BRIEF | {
        "memory.whole_graph_mb": 0.03, "search.row_evaluations": -1, "search.row_fraction": 0.2,
        "search.baselines": False, "search.row_regions": 0,
    }  # fmt: skip
    here = solve(hubs, problem, settings=settings, comm=MPI.COMM_WORLD)
    alone = solve(hubs, problem, settings=settings, comm=MPI.COMM_SELF)
    assert here.feasible and here.nodes == alone.nodes


# ---- starts and reductions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [0, 1, 2, 5])
def test_a_greedy_that_is_ended_leaves_no_directed_cycle(monkeypatch, asked):
    """After any number of looks; one that is never ended is as before."""
    monkeypatch.setattr(baselines, "BETWEEN", 2)
    draws = np.random.default_rng(asked)
    digraph, _ = from_arcs(40, *draws.integers(40, size=(2, 200)))
    looks = iter(range(1000))
    graph = digraph.pattern("drawn")
    chosen, _ = baselines.most_ways(digraph, draws.integers(1, 9, 40), look=lambda: next(looks) >= asked)
    assert cycle_left(graph, chosen) is None and not chosen.all()


def test_the_part_with_the_terminals_needs_no_reducer():
    """As a reducer without rules leaves it, and as the check of an empty log does."""
    u, v = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (5, 6), (6, 7), (5, 7), (8, 2)]).T
    for terminals, size in (([0, 2], 5), ([5, 7], 3), ([6], 0)):
        core, _ = steiner_of(from_edges(10, u, v), np.array(terminals))
        mine, theirs = Untouched(core), SteinerReducer(core)
        left, expected = mine.kernel(), theirs.kernel()
        checked, paid = verify_log(core, np.array([], dtype=np.int64))
        assert left.core.n == size and paid == left.paid == expected.paid == 0
        for found in (left.core, checked):
            assert all(np.array_equal(a, b) for a, b in zip(found, expected.core))
        assert np.array_equal(left.nodes, expected.nodes)
        nodes = np.arange(10)
        assert np.array_equal(mine.places(left, nodes), theirs.places(expected, nodes))
        if size:
            parent = np.full(size, -1, dtype=np.int64)
            parent[:2] = 0  # nodes 0 and 1 of the core are joined in both
            assert np.array_equal(mine.lift(left, parent), theirs.lift(expected, parent))


def test_arcs_in_any_order_are_one_digraph():
    tails, heads = np.array([(0, 1), (0, 2), (1, 2), (2, 0), (3, 1)]).T
    sorted_, order = from_arcs(4, tails, heads)[0], np.array([4, 2, 0, 0, 3, 1, 4])
    mixed = from_arcs(4, tails[order], heads[order])[0]
    for name in ("out_ptr", "out", "in_ptr", "into"):
        assert np.array_equal(getattr(sorted_, name), getattr(mixed, name))
    assert np.array_equal(sorted_.in_ptr, [0, 1, 3, 5, 5]) and np.array_equal(sorted_.into, [2, 0, 3, 0, 1])


# ---- starts that are cut short, and their replays ----------------------------------------------------------


def replayed(told, settings):
    """Settings with the keys of a replay."""
    keys = dict(each.split("=", 1) for each in told)
    words = {key for key, value in keys.items() if value.isidentifier() and value not in ("true", "false")}
    return settings | {
        key: value if key in words else tomllib.loads(f"x = {value}")["x"] for key, value in keys.items()
    }


def ringing_after(monkeypatch, questions):
    """Clocks of starts are up after so many."""

    class Clock(pipeline.StartClock):
        asked = 0

        def rings(self):
            self.asked += 1
            return self.asked >= questions

    monkeypatch.setattr(pipeline, "StartClock", Clock)


@pytest.mark.parametrize("problem", ["dfvs", "partition", "communities", "mvc", "mis"])
def test_a_start_that_is_cut_short_is_replayed_by_its_questions(monkeypatch, problem):
    draws, n = np.random.default_rng(3), 150
    arcs = np.zeros((n, n))
    arcs[draws.integers(n, size=4 * n), draws.integers(n, size=4 * n)] = 1
    np.fill_diagonal(arcs, 0)
    graph = arcs.astype(int) if problem == "dfvs" else nx.from_numpy_array(arcs)
    monkeypatch.setattr(baselines, "BETWEEN", 2)
    monkeypatch.setattr(communities, "LOOKED_AT", 20)
    monkeypatch.setattr(cover_start, "PIECE", 50)
    settings = BRIEF | {"search.steps": 5, "search.reductions": False, "search.baselines": False}
    settings |= {"search.start": "greedy"} if problem in ("partition", "mvc", "mis") else {}
    settings |= {"problem.parts": 4} if problem == "partition" else {}
    kept, free = entries(monkeypatch), solve(graph, problem, settings=settings)
    with monkeypatch.context() as patch:
        ringing_after(patch, 4)
        cut = solve(graph, problem, search_seconds=60.0, settings=settings, comm=MPI.COMM_WORLD)
    told = kept[-1]["replay"]
    assert "search.start_looks=4" in told and "search.seconds=0" in told
    again = solve(graph, problem, settings=replayed(told, settings), comm=MPI.COMM_SELF)
    assert (again.nodes, again.objective) == (cut.nodes, cut.objective)
    assert cut.feasible and cut.nodes != free.nodes


@pytest.mark.parametrize("problem", ["mvc", "mds", "coloring", "treewidth"])
def test_what_a_large_core_has_no_time_to_begin_with_is_not_begun(monkeypatch, problem):
    """No search, no bounds and no policy, nor in the replay; all of them without a limit."""
    monkeypatch.setattr(toolbox, "LARGE", 0)
    monkeypatch.setattr(pipeline, "LARGE", 0)
    monkeypatch.setattr(toolbox, "BEGIN_SECONDS", NO_TIME)
    settings = {"search.steps": 20, "search.baselines": False, "search.reductions": False}
    kept, whole = entries(monkeypatch), solve(SMALL, problem, settings=settings)
    assert kept[-1]["bound"] is not None and kept[-1]["steps"] > 0
    monkeypatch.setattr(pipeline.Budget, "left", lambda self: 0.0 if self.seconds else math.inf)
    cut = solve(SMALL, problem, search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD)
    assert kept[-1]["bound"] is None and kept[-1]["steps"] == 0 and kept[-1]["policy_evaluations"] == 0
    assert cut.feasible and whole.feasible
    again = solve(SMALL, problem, settings=replayed(kept[-1]["replay"], settings), comm=MPI.COMM_SELF)
    assert (again.nodes, again.objective, again.bound) == (cut.nodes, cut.objective, None)


def true_after(questions):
    """A look that is true from then on."""
    asked = itertools.count()
    return lambda: next(asked) >= questions


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_greedy_of_ways_is_the_plain_one(monkeypatch, seed):
    """With looks that end it, and of nodes that are not needed, too."""
    monkeypatch.setattr(baselines, "BETWEEN", 3)
    draws = np.random.default_rng(seed)
    n = 30 + seed
    digraph, _ = from_arcs(n, *draws.integers(n, size=(2, 5 * n)))
    price = draws.integers(1, 9, n) if seed % 2 else np.ones(n, dtype=np.int64)
    begun = draws.random(n) < 0.1 * (seed > 1)
    for most in (0, 1, 3, 1000):
        found = []
        for compiled in (False, True):
            chosen = baselines.greedy(digraph, price, begun, true_after(most), compiled)
            left = baselines.needed(digraph, price, chosen, compiled, true_after(most))
            found.append((chosen.tolist(), left.tolist()))
        assert found[0] == found[1]
    huge = np.full(n, baselines.EXACT)  # beyond what the kernel divides exactly: the plain one
    assert np.array_equal(
        baselines.greedy(digraph, huge, begun), baselines.greedy(digraph, huge, begun, compiled=False)
    )


def test_nodes_of_a_set_by_degree_are_the_same_without_kernels():
    draws = np.random.default_rng(5)
    graph = from_edges(80, *draws.integers(80, size=(2, 300)))
    whole = sized_of(graph, np.ones(80, dtype=np.int64), 80)
    chosen = draws.random(80) < 0.5
    plain = by_degree(whole, chosen, compiled=False)
    assert (
        np.array_equal(by_degree(whole, chosen), plain) and sorted(plain) == np.flatnonzero(chosen).tolist()
    )


def test_what_plain_heuristics_cost_follows_from_the_size(monkeypatch):
    """By name, for each node and entry; those that are known otherwise are as they are told."""
    asked = []
    monkeypatch.setattr(compare, "seconds_of_baselines", lambda case, used: 1.0)
    monkeypatch.setattr(CoverTools, "baseline_costs", {"max_degree": NO_TIME})

    def seconds_of(self, name, own=CoverTools.seconds_of):
        asked.append((name, own(self, name)))
        return asked[-1][1]

    monkeypatch.setattr(CoverTools, "seconds_of", seconds_of)
    monkeypatch.setattr(answer, "seconds_of_baselines", lambda case, used: 1.0)
    found = solve(SMALL, "mvc", settings=BRIEF, comm=MPI.COMM_SELF)
    assert dict(asked) == {"max_degree": NO_TIME * (60 + 240), "min_degree": 0.0, "one_hop": 0.0}
    assert len(found.baselines) == 2


@pytest.mark.parametrize("problem", ["mvc", "mis", "maxcut"])
def test_plain_heuristics_that_take_long_on_large_graphs_all_have_a_cost(monkeypatch, problem):
    """One without a cost would begin however little time is left."""
    costs = {}

    def seconds_of(self, name, own=Toolbox.seconds_of):
        costs[name] = own(self, name)
        return costs[name]

    monkeypatch.setattr(Toolbox, "seconds_of", seconds_of)
    solve(SMALL, problem, search_seconds=60.0, settings=BRIEF, comm=MPI.COMM_SELF)
    assert len(costs) >= 3 and all(costs.values())


# ---- reductions that end in time ---------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "steps"), [("communities", 1), ("coloring", 1)])
def test_reductions_that_end_in_time_are_replayed_by_their_steps(monkeypatch, problem, steps):
    graph = nx.barbell_graph(5, 30)
    graph.add_edges_from((f"{v}", v) for v in range(5, 35))
    settings = BRIEF | {"search.baselines": False, "search.steps": 20}
    kept = entries(monkeypatch)
    with monkeypatch.context() as patch:
        ringing = lambda self: setattr(self, "rang", True) or True  # noqa: E731
        patch.setattr(pipeline.StartClock, "rings", ringing)
        cut = solve(graph, problem, search_seconds=60.0, settings=settings, comm=MPI.COMM_WORLD)
    told = kept[-1]["replay"]
    assert f"search.reduction_steps={steps}" in told
    again = solve(graph, problem, settings=replayed(told, settings), comm=MPI.COMM_SELF)
    assert again.nodes == cut.nodes


# ---- influence ---------------------------------------------------------------------------------------------

SPREADING = {
    "problem.budget": 4, "search.steps": 50, "search.starts": 1, "search.bounds": False,
    "influence.sets": 8192, "influence.simulations": 100, "influence.epsilon": 0.0, "search.baselines": False,
}  # fmt: skip


def same_again(kept, graph, found, settings=SPREADING):
    """What is replayed on one rank."""
    again = solve(graph, "influence", settings=replayed(kept[-1]["replay"], settings), comm=MPI.COMM_SELF)
    assert (again.nodes, again.objective) == (found.nodes, found.objective)


def test_simulations_are_as_many_as_there_is_time_for(monkeypatch):
    kept = entries(monkeypatch)
    monkeypatch.setattr(sampled.SampledPipeline, "_seconds_to_judge", lambda self, toolbox, seeds: 60.0)
    found = solve(SMALL, "influence", search_seconds=60.0, settings=SPREADING, comm=MPI.COMM_WORLD)
    made = max(int(100 * sampled.JUDGED), sampled.FEWEST)
    assert f"influence.simulations={made}" in kept[-1]["replay"]
    assert found.spread["simulations"] == made
    same_again(kept, SMALL, found)


def test_a_first_collection_without_time_is_smaller_and_the_only_one(monkeypatch):
    kept, measure = entries(monkeypatch), rounds.Rounds.measure

    def slow(self, late):
        measure(self, late)
        self.each = NO_TIME

    monkeypatch.setattr(rounds.Rounds, "measure", slow)
    found = solve(SMALL, "influence", search_seconds=60.0, settings=SPREADING, comm=MPI.COMM_WORLD)
    assert found.spread["sets"] == min(rounds.SMALLER)
    assert f"influence.sets={min(rounds.SMALLER)}" in kept[-1]["replay"]
    monkeypatch.undo()
    kept = entries(monkeypatch)
    again = solve(SMALL, "influence", settings=SPREADING | {"influence.sets": 256}, comm=MPI.COMM_SELF)
    assert again.nodes == found.nodes


def test_certificates_of_smaller_collections_are_drawn_again():
    tools = rounds.Rounds.__new__(rounds.Rounds)
    tools.tools = SimpleNamespace(certain=False, asked=SimpleNamespace(delta=0.01, sets=8192))
    tools._most = 8192
    tools._begin(4096)
    for sets in (*rounds.SMALLER, 4096):
        tools._begin(4096)
        tools.refuse_other(0, sets)
        assert tools.sizes[0] == sets and (sets == 4096 or tools.delta == 0.005)
    for number, sets in ((0, 300), (1, 256), (0, 8192), (2, 4096)):
        tools._begin(4096)
        with pytest.raises(BadCertificate):
            tools.refuse_other(number, sets)


def test_what_a_search_leaves_of_the_time_is_for_more_sets(monkeypatch):
    """Until none would fit, or chance leaves little enough."""
    kept, turns = entries(monkeypatch), []

    def goes_on(self, toolbox, made, begun, kept):
        turns.append(made.sets)
        return self.next < self.rounds.fits

    monkeypatch.setattr(sampled.SampledPipeline, "_goes_on", goes_on)
    monkeypatch.setattr(sampled, "SHARE", 0.0)  # one round before a search
    monkeypatch.setattr(sampled, "AGAIN", 0.0)
    found = solve(SMALL, "influence", search_seconds=60.0, settings=SPREADING, comm=MPI.COMM_WORLD)
    assert turns == [4096, 8192] and found.spread["sets"] == 8192
    same_again(kept, SMALL, found)


@pytest.mark.parametrize("kind", ["tour", "prizes"])
def test_tools_that_would_take_too_long_are_not_made_ready_and_a_replay_has_none(monkeypatch, kind):
    graph = np.random.default_rng(3).random((80, 2)) if kind == "tour" else SMALL
    problem = "tsp" if kind == "tour" else "steiner"
    more = {} if kind == "tour" else {"prizes": np.arange(60) % 7}
    whole = solve(graph, problem, settings=BRIEF, comm=MPI.COMM_WORLD, **more)
    found = entries(monkeypatch)
    with monkeypatch.context() as slow:
        if kind == "tour":
            slow.setattr(tour_tools, "GREEDY_SECONDS", NO_TIME)
            slow.setattr(tour_tools, "BOUND_SECONDS", NO_TIME)
        else:
            slow.setattr(prized, "READY_SECONDS", NO_TIME)
        settings = BRIEF | {"search.bounds": True}
        brief = solve(graph, problem, search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD, **more)
    replay = found[0]["replay"]
    assert brief.bound is None and "search.start_looks=1" in replay
    assert (found[0]["steps"] > 0) == (kind == "tour")
    again = solve(graph, problem, settings=replayed(replay, BRIEF), comm=MPI.COMM_WORLD, **more)
    assert again.digest == brief.digest and again.objective == brief.objective
    assert found[0]["greedy"] == found[1]["greedy"]
    free = solve(graph, problem, settings=BRIEF, comm=MPI.COMM_WORLD, **more)
    assert free.digest == whole.digest  # no limit, no estimate counts


@pytest.mark.parametrize(
    ("problem", "looks"), [("steiner", 1), ("steiner", 2), ("coloring", 1), ("dense", 1)]
)
def test_a_quick_start_is_told_and_replayed(monkeypatch, problem, looks):
    graph, settings = nx.gnm_random_graph(150, 900, seed=5), dict(BRIEF)
    settings |= {"search.reductions": False} | ({"problem.terminals": 9} if problem == "steiner" else {})
    lengths = np.random.default_rng(5).integers(1, 99, 900).tolist()
    nx.set_edge_attributes(graph, dict(zip(graph.edges, lengths)), "weight")
    found = entries(monkeypatch)
    with monkeypatch.context() as slow:
        slow.setattr(steiner_tools, "GROWN_SECONDS", NO_TIME)
        slow.setattr(steiner_tools, "NEARLY_SECONDS", NO_TIME if looks == 1 else 0.0)
        slow.setattr(coloring_tools, "START_SHARE", 0.0)
        slow.setattr(dense_tools, "START_SHARE", 0.0)
        brief = solve(graph, problem, search_seconds=3.0, settings=settings, comm=MPI.COMM_WORLD)
    replay = found[0]["replay"]
    assert f"search.start_looks={looks}" in replay
    again = solve(graph, problem, settings=replayed(replay, settings), comm=MPI.COMM_WORLD)
    assert again.digest == brief.digest and found[0]["greedy"] == found[1]["greedy"]
    usual = solve(graph, problem, settings=settings, comm=MPI.COMM_WORLD)
    assert usual.feasible and found[2]["greedy"] != found[0]["greedy"]


@pytest.mark.parametrize(
    ("problem", "kind"),
    [("ordering", ""), *(("arrangement", kind) for kind in ("length", "bandwidth", "cutwidth"))],
)
def test_orders_by_the_quickest_rule_are_replayed(monkeypatch, problem, kind):
    """The time is up before the first rule: the answer is another than without a limit."""
    graph = nx.gnm_random_graph(200, 420, seed=5, directed=problem == "ordering")
    settings = BRIEF | {"search.steps": 5, "search.reductions": False, "search.baselines": False}
    settings |= {"problem.arrange": kind} if kind else {}
    found = entries(monkeypatch)
    with monkeypatch.context() as patch:
        ringing_after(patch, 1)
        patch.setattr(Pipeline, "_fits", lambda self, budget, *seconds: [False] * len(seconds))
        brief = solve(graph, problem, search_seconds=60.0, settings=settings, comm=MPI.COMM_WORLD)
    replay = found[0]["replay"]
    assert "search.start_looks=1" in replay and found[0]["steps"] == 0
    again = solve(graph, problem, settings=replayed(replay, settings), comm=MPI.COMM_SELF)
    assert again.digest == brief.digest and again.order == brief.order
    assert found[0]["greedy"] == found[1]["greedy"] == found[0]["objective"]
    usual = solve(graph, problem, settings=settings, comm=MPI.COMM_WORLD)
    assert brief.feasible and found[2]["greedy"] <= found[0]["greedy"]
    assert kind == "bandwidth" or usual.order != brief.order


@pytest.mark.parametrize("seed", range(3))
def test_links_of_parts_are_the_lightest_forest(seed):
    """Of links of the same nodes, and of one length, as the order of links says; and ways that are short."""
    draws = np.random.default_rng(seed)
    n, (u, v), length = 30, draws.integers(30, size=(2, 120)), draws.integers(1, 6, 120) << (20 * (seed == 2))
    one = u != v
    u, v, length = u[one], v[one], length[one]
    best = nx.MultiGraph()
    best.add_nodes_from(range(n))
    for i in np.argsort(length, kind="stable").tolist():
        if not nx.has_path(best, int(u[i]), int(v[i])):
            best.add_edge(int(u[i]), int(v[i]), link=i)
    wanted = sorted(link for _, _, link in best.edges(data="link"))
    assert sorted(steiner_baselines._forest(n, u, v, length).tolist()) == wanted
    assert not len(steiner_baselines._forest(n, u[:0], v[:0], length[:0]))


@pytest.mark.parametrize("seed", range(3))
def test_ways_that_are_nearly_shortest_lead_to_terminals(seed):
    graph = nx.gnm_random_graph(80, 110, seed=seed)
    part = max(nx.connected_components(graph), key=len)
    lengths = np.random.default_rng(seed).integers(1, 99, graph.number_of_edges()).tolist()
    nx.set_edge_attributes(graph, dict(zip(graph.edges, lengths)), "weight")
    matrix = nx.to_scipy_sparse_array(graph, format="csr")
    core = SteinerCore(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.int64),
        np.array(sorted(part)[::9], dtype=np.int64),
    )  # fmt: skip
    distance, before, last = steiner_baselines.nearly_nearest(core, core.terminals)
    shortest = nx.multi_source_dijkstra_path_length(graph, set(core.terminals.tolist()))
    for v in range(80):
        if v not in part:
            assert before[v] == last[v] == v
            continue
        way, at = 0, v
        while before[at] != at:
            way, at = way + graph[at][int(before[at])]["weight"], int(before[at])
        assert at == last[v] and at in core.terminals and shortest[v] <= way <= distance[v]
    tree = steiner_baselines.nearly_joined(core)
    assert fault_of_tree(from_edges(80, *np.array(graph.edges).T), tree, core.terminals) is None
    assert core.length(tree) <= 1.3 * core.length(steiner_baselines.joined(core, core.terminals))


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_entries_of_rows_are_counted(n):
    draws = np.random.default_rng(n)
    graph = from_edges(n, *draws.integers(n, size=(2, 2 * n))) if n else from_edges(0, *np.zeros((2, 0), int))
    flags, kept = draws.random(len(graph.indices)) < 0.3, draws.random(n) < 0.6
    rows = [flags[a:b].tolist() for a, b in itertools.pairwise(graph.indptr.tolist())]
    assert row_counts(flags, graph.indptr).tolist() == list(map(sum, rows))
    assert rows_with(flags, graph.indptr).tolist() == list(map(any, rows))
    ptr, columns = kept_rows(graph.indptr, graph.indices, kept)
    near = [columns[a:b].tolist() for a, b in itertools.pairwise(ptr.tolist())]
    names = np.flatnonzero(kept)
    whole = [graph.indices[a:b] for a, b in itertools.pairwise(graph.indptr.tolist())]
    assert [[int(names[u]) for u in each] for each in near] == [
        [int(u) for u in whole[v] if kept[u]] for v in names.tolist()
    ]


@pytest.mark.parametrize(("rule", "looks"), [("sloan", 1), ("king", 2), ("breadth_first", None)])
def test_plain_orders_that_would_take_too_long_are_not_begun_and_a_replay_has_none(monkeypatch, rule, looks):
    graph, found = nx.gnm_random_graph(200, 420, seed=5), entries(monkeypatch)
    settings = BRIEF | {"search.steps": 5, "search.reductions": False, "search.baselines": False}
    with monkeypatch.context() as slow:
        slow.setitem(arrangement_tools.SECONDS, rule, NO_TIME)
        brief = solve(graph, "arrangement", search_seconds=60.0, settings=settings, comm=MPI.COMM_WORLD)
        free = solve(graph, "arrangement", settings=settings, comm=MPI.COMM_WORLD)
    replay = found[0]["replay"]
    assert looks is None or f"search.start_looks={looks}" in replay
    again = solve(graph, "arrangement", settings=replayed(replay, settings), comm=MPI.COMM_SELF)
    assert again.digest == brief.digest and found[0]["greedy"] == found[2]["greedy"]
    usual = solve(graph, "arrangement", settings=settings, comm=MPI.COMM_WORLD)
    assert free.digest == usual.digest  # no limit, no estimate counts
    assert rule != "sloan" or found[0]["greedy"] > found[3]["greedy"]


def test_plain_orders_of_a_start_are_made_once(monkeypatch):
    asked, (label, rule) = [], arrangement_tools.RULES["sloan"]

    def sloan(*given):
        asked.append(label)
        return rule(*given)

    monkeypatch.setitem(arrangement_tools.RULES, "sloan", (label, sloan))
    found = solve(SMALL, "arrangement", settings=BRIEF, comm=MPI.COMM_SELF)
    assert asked == [label] and label in found.baselines


@pytest.mark.parametrize("rows", [[], [[]], [[3], [], [1, 2], []], [[1, 3], [3, 1]], [[], [2, 2], [4]]])
def test_rows_ascend_where_each_of_them_does(rows):
    ptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    columns = np.array([each for row in rows for each in row], dtype=np.int32)
    assert rows_ascend(columns, ptr) == all(a < b for row in rows for a, b in itertools.pairwise(row))


@pytest.mark.parametrize("n", [1, 9, 30])
def test_what_nodes_in_any_order_induce_has_ascending_rows(n):
    draws = np.random.default_rng(n)
    graph = from_edges(n, *draws.integers(n, size=(2, n)), draws.integers(1, 9, n))
    asked, label = arrangement_of(graph, "length"), components(graph.indptr, graph.indices)
    dense = sp.csr_array((asked.weights, asked.indices, asked.indptr), shape=(n, n)).toarray()
    ends = np.flatnonzero(np.diff(asked.indptr))
    for nodes in (ends, ends[np.argsort(label[ends], kind="stable")], draws.permutation(n)[: n // 2 + 1]):
        part = asked.induced(nodes)
        found = sp.csr_array((part.weights, part.indices, part.indptr), shape=(len(nodes),) * 2)
        assert np.array_equal(found.toarray(), dense[np.ix_(nodes, nodes)])
        assert rows_ascend(part.indices, part.indptr)


def test_components_are_numbered_by_their_lowest_nodes():
    graph = from_edges(9, np.array([1, 5, 6, 7, 2]), np.array([3, 6, 7, 8, 4]))
    for large, compiled in ((1, False), (100, False), (100, True)):
        found = components(graph.indptr, graph.indices, large, compiled)
        assert found.tolist() == [0, 1, 2, 1, 2, 3, 3, 3, 3]
    for seed in range(20):
        graph = from_edges(60, *np.random.default_rng(seed).integers(60, size=(2, 20 + 2 * seed)))
        found = [components(graph.indptr, graph.indices, 1000, compiled) for compiled in (False, True)]
        assert np.array_equal(*found) and found[0].dtype == found[1].dtype


@pytest.mark.skipif(kernels() is None, reason="the kernels are not built")
@pytest.mark.parametrize("problem", ["partition", "fvs", "communities", "steiner", "alignment"])
def test_a_case_without_kernels_takes_none_for_components_and_pairings(problem, monkeypatch):
    def refused(*given):
        raise AssertionError("a kernel is called")

    graph, keys = nx.gnm_random_graph(24, 34, seed=1), {"search.steps": 50, "search.bound_seconds": 0.1}
    keys |= {"problem.terminals": 4} if problem == "steiner" else {}
    given = (graph, nx.complement(graph)) if problem == "alignment" else graph
    expected = solve(given, problem, settings=keys).objective
    for name in ("joined.COMPONENTS", "pairing.ENTRIES", "pairing.PRODUCTS"):
        monkeypatch.setattr(f"app.graphs.{name}", refused)
    assert solve(given, problem, settings=keys | {"run.kernels": "plain"}).objective == expected
    told = (AssertionError, OtherRankFailed)  # where all ranks hear of it
    with pytest.raises(told, match="a kernel is called"):  # else nothing was looked at
        solve(given, problem, settings=keys)


@pytest.mark.parametrize("slow", [("BACK_SECONDS", "MOST_BACK"), ("NODE_SECONDS",)])
def test_an_order_goes_by_degrees_where_there_is_no_time_for_more(monkeypatch, slow):
    """Nor where all else that comes after the search leaves none."""
    settings = {"problem.component": 5, **BRIEF}
    for each in slow:
        monkeypatch.setattr(dismantle, each, NO_TIME)
    brief = solve(SMALL, "dismantle", search_seconds=5.0, settings=settings, comm=MPI.COMM_WORLD)
    chosen = np.zeros(SMALL.number_of_nodes(), dtype=bool)
    chosen[brief.nodes] = True
    u, v = np.array(SMALL.edges).T
    whole = sized_of(from_edges(60, u, v), np.ones(60, dtype=np.int64), 60)
    assert brief.order == by_degree(whole, chosen).tolist()


def test_what_a_search_leaves_of_a_limit_goes_into_more_sets():
    settings = {"problem.budget": 3, "influence.epsilon": 0.5, "influence.sets": 16_384}
    graph, keys = nx.karate_club_graph(), {"comm": MPI.COMM_WORLD}
    brief = solve(graph, "influence", settings=settings, **keys)
    settings["output.certificates"] = True
    found = solve(graph, "influence", search_seconds=60.0, settings=settings, **keys)
    assert (brief.spread["sets"], found.spread["sets"]) == (4096, 16_384)
    assert found.bound < brief.bound and found.gap < brief.gap
    told = check(graph, found, "influence", certificate=found.certificate, settings=settings, **keys)
    assert told.bound <= found.bound


@pytest.mark.mpi_skip
def test_the_check_of_joined_communities_is_told_by_its_rounds(monkeypatch):
    graph = nx.caveman_graph(6, 4)
    graph.add_edges_from((4 * i, 100 + i) for i in range(6))  # ends that belong to their neighbours
    kept, seen = entries(monkeypatch), []

    def may_check(self):
        seen.append(self.bounds.check_seconds)
        return False

    monkeypatch.setattr("app.solver.workload.Workload.may_check", may_check)
    solve(graph, "communities", settings=BRIEF | {"search.bounds": True}, search_seconds=5.0)
    size = graph.number_of_nodes() + 2 * graph.number_of_edges()
    rounds = round(seen[-1] / (community_tools.CHECK_SECONDS * size)) - 1
    assert rounds >= 1 and kept[-1]["bound_verified"] is False


def test_a_search_of_a_large_core_has_time_for_its_first_round(monkeypatch):
    """Of dense subgraphs; small ones begin whatever is left."""
    graph, seen = nx.gnm_random_graph(150, 900, seed=5), []

    def fits(self, budget, *seconds):
        seen.append(seconds)
        return [True] * len(seconds)

    monkeypatch.setattr(Pipeline, "_fits", fits)
    for large in (toolbox.LARGE, 0):
        monkeypatch.setattr(toolbox, "LARGE", large)
        solve(graph, "dense", settings=BRIEF | {"search.reductions": False}, search_seconds=5.0)
    size = 150 + 2 * 900
    assert seen == [(0.0, 0.0), (pytest.approx((toolbox.BEGIN_SECONDS + ROUND_SECONDS) * size), seen[1][1])]
