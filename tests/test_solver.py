"""app/solver: budgets, progress, and rounds of searches and bounds that any number of ranks share."""

import math
import time
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from app.case.file import build
from app.graphs.graph import from_edges
from app.log import Log
from app.problems.table import make_problem
from app.rng import SplitMix
from app.search.node_tools import NodeTools
from app.solver import budget as budgets
from app.solver import workload
from app.solver.budget import Budget
from app.solver.exact import Exact
from app.solver.pipeline import Pipeline
from app.solver.progress import Progress, relative_gap
from app.solver.rounds import Beginning, Rounds
from app.solver.workload import Workload
from app.toolbox import Bounds, Instance, Search, Toolbox, Tree


class Walk(Search):
    """A search whose best is the least number it has drawn; slices change nothing."""

    def __init__(self, seed, floor=0):
        self.draws, self.floor = SplitMix(seed), floor
        self.steps = self.found_at = 0
        self.best, self.done = 10_000, False

    def run(self, steps):
        for _ in range(steps):
            self.steps += 1
            value = self.floor + self.draws.below(5000)
            if value < self.best:
                self.best, self.found_at = value, self.steps

    def solution(self):
        return np.array([self.best, self.found_at])


class Shown(NamedTuple):
    """A proof that its number is a bound."""

    value: int
    checked: bool = True


class Stairs(Bounds):
    """Bounds that climb a step with every look at the clock."""

    method, step = "stairs", 1

    def __init__(self, top, optimal=None):
        self.value, self.top, self.optimal = -1, top, optimal

    def improve(self, seconds, best, solution=None):
        self.value = min(self.value + self.step, self.top)
        return self.value < self.top

    def optimum(self):
        return self.optimal

    def proof(self):
        return Shown(self.value)


class Tools(Toolbox):
    """A toolbox over Walk and Stairs: values are those of the core."""

    sense = "minimise"
    start = fault = None

    def __init__(self, bounds=None, floor=0):
        self.made, self.floor = bounds, floor

    def search(self, seed, start):
        return Walk(seed, self.floor)

    def bounds(self):
        return self.made

    def value(self, solution):
        return int(solution[0])

    def as_solution(self, numbers):
        return numbers

    def prove(self, proof):
        return proof.value


def search(group, starts, budget, bounds=None, floor=0):
    progress = Progress(Log(False), "walk", True, 1.0)
    progress.found(10_000, "start", 0)
    tools = Tools(bounds, floor)
    rounds = Rounds(
        group, tools, Beginning([None] * starts, list(range(starts))), budget, progress, bounds is not None
    )
    return rounds.run(), progress


@pytest.mark.parametrize("starts", [1, 2, 5])
def test_the_result_depends_on_seeds_and_steps_alone(group, starts):
    outcome, progress = search(group, starts, Budget.of_case(700, 0.0, 0.0, 100))
    alone = []
    for seed in range(starts):
        walk = Walk(seed)
        walk.run(700)
        alone.append((walk.best, walk.found_at, seed))
    best, found_at, seed = min(alone)
    assert (outcome.solution.tolist(), outcome.steps, outcome.search) == ([best, found_at], 700, seed)
    assert progress.best == best


class Gossip(Walk):
    """A search that tells its steps and its best, and adds up what it hears."""

    meeting_steps, searches, heard = 30, 1, 0

    def join(self, searches):
        self.searches = searches

    def news(self):
        return np.array([[self.steps, self.best]] * (1 + self.best % 3))

    def meet(self, others):
        assert len(others) == self.searches - 1 and self.steps % 30 == 0
        for news in others:
            assert news.shape == (1 + news[0, 1] % 3, 2) and (news[:, 0] == self.steps).all()
            self.heard += int(news.sum())

    def solution(self):
        return np.array([self.best, self.found_at, self.heard])


class Curious(Stairs):
    """Bounds that keep the solutions they are shown; `closing` ones stay at work."""

    closing = True

    def __init__(self, top):
        super().__init__(top)
        self.shown, self.seconds = [], 0.0

    def improve(self, seconds, best, solution=None):
        if solution is not None:
            self.shown.append(solution)
        begun = time.perf_counter()
        time.sleep(max(seconds, 0.001))
        self.seconds += time.perf_counter() - begun
        self.value = self.top
        return True


def test_bounds_without_a_search_are_told_the_best_solution(group, monkeypatch):
    """Those on a rank of their own, and only where the toolbox says that they want to know."""
    for follows in (False, True):
        monkeypatch.setattr(Tools, "bounds_follow", follows)
        bounds = Curious(-1)
        outcome, _ = search(group, 1, Budget.of_case(2000, 0.4, 0.0, 100), bounds)
        alone = group.size > 1 and group.rank == 1
        told = [shown.tolist() for shown in bounds.shown if shown is not None]
        if alone:
            assert (outcome.solution.tolist() in told) == follows
        elif group.rank:
            assert not told


@pytest.mark.mpi_skip
def test_bounds_apart_do_not_keep_the_first_steps_of_searches_waiting(group):
    """Slices grow from round to round; a long turn of another rank in each would be most of a short limit."""
    progress = Progress(Log(False), "walk", True, 1.0)
    progress.found(10_000, "start", 0)
    budget = Budget.of_case(1 << 62, 60.0, 0.0, 100)
    work = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
    progress._begun -= 30.0
    work.mine, work.made, work.steps, work.bound_seconds = {}, 16, 16, 1.0
    for last, most in (
        (0.0, workload.SHORTEST),
        (0.01, 0.04),
        (10.0, workload.LONGEST),
        (0.0, workload.LONGEST),
    ):
        work.wait(last)
        assert 0 < work._bound_time() <= most
    assert work._bound_time() == workload.LONGEST  # slices are as long as rounds now
    other = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
    other.mine[0].done = True
    assert other.last_of_searches == math.inf  # nobody waits


@pytest.mark.mpi_skip
def test_bounds_that_may_close_the_gap_get_most_of_the_time(group, monkeypatch):
    """Once the search has settled: it has made twice the steps to its best."""
    shares = {}
    for closing in (False, True):
        monkeypatch.setattr(Curious, "closing", closing)
        progress = Progress(Log(False), "walk", True, 1.0)
        progress.found(10_000, "start", 0)
        tools = Tools(Curious(999), 1000)
        rounds = Rounds(
            group, tools, Beginning([None], [0]), Budget.of_case(0, 60.0, 0.0, 100), progress, True
        )
        work = rounds.work
        work.steps, work.search_seconds = 10**6, 1.0
        work.mine[0].best, work.mine[0].found_at = 1000, 10
        progress.found(1000, "search", 10)
        progress.proved(999, "stairs", 10)
        work.made, work.bound_seconds = 1, 0.2
        shares[closing] = work.bound_share()
        monkeypatch.setattr(Curious, "leads", True)
        assert work.bound_share() > 1  # bounds that lead to the best solutions, near the end or not
        work.mine[0].found_at = 10**6 - 1
        assert work.bound_share() > 1
        monkeypatch.setattr(Curious, "leads", False)
        assert work.bound_share() == shares[False]
    assert shares[True] > 1 > shares[False]


@pytest.mark.parametrize("starts", [1, 2, 5])
@pytest.mark.parametrize("steps", [29, 30, 250])
def test_searches_meet_at_steps_of_their_own(group, starts, steps, monkeypatch):
    """What searches hear depends on the steps alone, however rounds are cut, on any number of ranks."""
    monkeypatch.setattr(Tools, "search", lambda self, seed, start: Gossip(seed))
    outcome, _ = search(group, starts, Budget.of_case(steps, 0.0, 0.0, 100))
    walks = [Gossip(seed) for seed in range(starts)]
    for walk in walks:
        walk.join(starts)
    for made in range(1, steps + 1):
        for walk in walks:
            walk.run(1)
        if starts > 1 and made % 30 == 0:
            told = [walk.news() for walk in walks]
            for i, walk in enumerate(walks):
                walk.meet(told[:i] + told[i + 1 :])
    best = min(walks, key=lambda walk: (walk.best, walk.found_at))
    assert outcome.solution.tolist() == best.solution().tolist()
    assert (best.heard > 0) == (starts > 1 and steps >= 30)


@pytest.mark.mpi_skip
def test_slices_end_where_steps_begin_to_cost_more(group, monkeypatch):
    """A search says how long its steps stay even; what it finds does not depend on that."""
    seen = []

    class Uneven(Walk):
        @property
        def even_steps(self):
            return 50 - self.steps % 50

        def run(self, steps):
            seen.append((self.steps, steps))
            super().run(steps)

    plain, _ = search(group, 1, Budget.of_case(700, 0.0, 0.0, 100))
    monkeypatch.setattr(Tools, "search", lambda self, seed, start: Uneven(seed))
    outcome, _ = search(group, 1, Budget.of_case(700, 0.0, 0.0, 100))
    assert outcome.solution.tolist() == plain.solution.tolist()
    assert all(begun % 50 + steps <= 50 for begun, steps in seen[1:])


@pytest.mark.mpi_skip
def test_slices_end_in_time_were_steps_as_dear_as_of_late(group, monkeypatch):
    """Phases of a search cost more than others: the last slice of a time limit may meet a dear one."""
    monkeypatch.setattr(Budget, "left", lambda self: 1.0)
    found = {}
    for seconds in (60.0, 0.0):
        budget = Budget.of_case(1 << 62, seconds, 0.0, 100)
        progress = Progress(Log(False), "walk", True, 1.0)
        progress._begun -= 30.0  # rounds are long by now
        work = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
        work.steps, work.made, found[seconds] = 1000, 100, []
        for last in (0.1, 0.001, 0.001, 0.1):  # a step takes 1 ms, 10 us
            work.last = last
            found[seconds].append(work.next_slice(1 << 40))
    room = [1.0 / each for each in (1e-3, 0.8e-3, 0.64e-3, 1e-3)]
    expected = [min(each, own) for each, own in zip(room, found[0.0])]
    assert found[60.0] == pytest.approx(expected, abs=1)
    assert found[0.0][1] > 10 * room[1]


@pytest.mark.parametrize(("limit", "steps"), [(10.0, 3), (12.0, 4), (0.0, 5)])
def test_a_step_that_would_end_late_is_not_begun(group, monkeypatch, limit, steps):
    """By what the last one took: 3 s, of which a limit of 12 has room for a fourth, all but little."""
    now = [0.0]

    class Dear(Walk):
        def run(self, steps):
            now[0] += 3.0 * steps
            super().run(steps)

    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(workload, "time", clock)
    monkeypatch.setattr(budgets, "time", clock)
    monkeypatch.setattr(Tools, "first_steps", 1)
    monkeypatch.setattr(Tools, "search", lambda self, seed, start: Dear(seed))
    outcome, _ = search(group, 1, Budget.of_case(5, limit, 0.0, 100))
    assert outcome.steps == steps


@pytest.mark.mpi_skip
def test_what_a_first_step_takes_ends_no_search(group, monkeypatch):
    """It sets things up."""
    monkeypatch.setattr(Budget, "left", lambda self: 1.0)
    budget, progress = Budget.of_case(1 << 62, 60.0, 0.0, 100), Progress(Log(False), "walk", True, 1.0)
    work = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
    work.made, work.last = 1, 9.0
    for made, expected in ((Tools.first_steps, 1), (Tools.first_steps + 1, 0)):
        work.steps = made
        assert work.next_slice(16) == expected
    assert work.next_slice(0) == 0  # none will come


def test_time_for_a_check_is_kept_from_the_round_on_that_finds_the_bound(group):
    for seconds, goes_on in ((0.5, True), (2.0, False)):
        bounds, budget = Stairs(10**9), Budget.of_case(-1, 10.0, 0.0, 100)
        bounds.check_seconds = seconds
        progress = Progress(Log(False), "walk", True, 1.0)
        progress.found(10_000, "start", 0)
        rounds = Rounds(group, Tools(bounds), Beginning([None], [0]), budget, progress, True)
        budget.begun -= 8.5
        assert rounds._share()[1] == goes_on


@pytest.mark.mpi_skip
def test_an_exact_search_whose_calls_are_long_waits_for_its_share(group, monkeypatch):
    """Under a time limit, of which one of its rounds may be the most; not where the end is in sight."""
    monkeypatch.setattr(Budget, "left", lambda self: 50.0)
    budget = Budget.of_case(1 << 62, 60.0, 0.0, 100)
    progress = Progress(Log(False), "walk", True, 1.0)
    progress.found(10_000, "start", 0)
    work = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
    tree = SimpleNamespace(least_seconds=0.5, closing=False)
    work.exact = SimpleNamespace(tree=tree, seconds=0.0, room=50.0, more=True, begun=True, eager=False)
    work.made, work.last, share = 1, 0.1, workload.BOUND_SHARE * workload.TREE_SHARE
    for searched, wanted in ((1.0, 0.0), (4.9, 0.0), (6.0, 6.0 * share)):
        work.search_seconds = searched
        assert work._exact_time() == pytest.approx(wanted)
    work.exact.eager = True
    assert 0 < work._exact_time() < 0.5
    work.budget = Budget.of_case(1 << 62, 0.0, 9.0, 100)
    work.exact.eager, work.search_seconds = False, 1.0
    assert work._exact_time() == pytest.approx(share)


@pytest.mark.mpi_skip
def test_a_short_limit_must_have_room_for_estimates_that_are_too_low(group, monkeypatch):
    monkeypatch.setattr(Curious, "least_seconds", 0.5)
    monkeypatch.setattr(Budget, "left", lambda self: 0.7)
    for seconds, fits in ((60.0, True), (1.0, False)):
        budget, progress = Budget.of_case(1 << 62, seconds, 0.0, 100), Progress(Log(False), "walk", True, 1.0)
        work = Rounds(group, Tools(Curious(999), 1000), Beginning([None], [0]), budget, progress, True).work
        assert work.may_bound() == fits


def test_a_closed_gap_ends_the_search(group):
    bounds = Stairs(3)
    outcome, progress = search(group, 2, Budget.of_case(1 << 40, 60.0, 0.0, 100), bounds, floor=3)
    assert progress.closed
    assert (progress.best, progress.bound, progress.method) == (3, 3, "stairs")
    assert outcome.solution[0] == 3


def test_seconds_end_the_search(group):
    budget = Budget.of_case(-1, 0.4, 0.0, 100)
    bounds = Stairs(10**9)
    bounds.value = -(10**9)  # far below what it could reach
    outcome, _ = search(group, 1, budget, bounds)
    assert outcome.steps > 0
    assert group.rank or budget.left() <= 0  # rank 0's clock decides


def test_an_exact_solution_counts_under_a_time_limit_only(group):
    optimal = np.array([-7, 0])
    outcome, progress = search(group, 1, Budget.of_case(-1, 60.0, 0.0, 100), Stairs(-7, optimal), floor=1)
    assert (outcome.solution.tolist(), progress.source) == ([-7, 0], "exact search")
    outcome, progress = search(group, 1, Budget.of_case(50, 0.0, 0.1, 100), Stairs(-7, optimal), floor=1)
    assert outcome.solution[0] == progress.best >= 1


@pytest.mark.mpi_skip
def test_budgets():
    assert Budget.of_case(-1, 0.0, 1.0, 77).steps == 77
    assert Budget.of_case(5, 9.0, 1.0, 77).steps == 5
    assert Budget.of_case(-1, 9.0, 1.0, 77).steps > 1 << 60
    assert math.isinf(Budget.of_case(7, 0.0, 1.0, 77).left())
    assert 0 < Budget.of_case(7, 900.0, 1.0, 77).left() < 900


@pytest.mark.mpi_skip
def test_progress_keeps_the_best_of_either_sense():
    down, up = (Progress(Log(False), "x", minimise, 1.0) for minimise in (True, False))
    assert [down.found(v, "a", 0) for v in (5, 6, 5, 4)] == [True, False, False, True]
    assert [up.found(v, "a", 0) for v in (5, 6, 6, 4)] == [True, True, False, False]
    for bound in (1, 3, 2):
        down.proved(bound, f"m{bound}", 0)
        up.proved(10 - bound, f"m{bound}", 0)
    assert (down.bound, up.bound, down.method) == (3, 7, "m3")
    assert down.gap() == pytest.approx(1 / 3)
    assert not down.closed
    down.proved(4, "m", 0)
    assert down.closed
    assert down.gap() == 0


@pytest.mark.mpi_skip
def test_gaps():
    assert relative_gap(0, 0) == 0
    assert relative_gap(3, 0) == math.inf
    assert relative_gap(11, 10) == relative_gap(9, 10) == pytest.approx(0.1)


@pytest.mark.mpi_skip
def test_the_integral_of_a_solved_instance_stops_growing():
    progress = Progress(Log(False), "x", True, 1.0)
    assert progress.integral() >= 0
    progress.found(5, "a", 0)
    progress.proved(5, "m", 0)
    first = progress.integral()
    while progress.elapsed() < 0.05:
        pass
    assert progress.integral() == pytest.approx(first, abs=1e-9)


def test_a_rank_without_a_search_has_settled():
    assert Workload._settled(SimpleNamespace(mine={}, steps=1))


# ---- a toolbox of the bases alone --------------------------------------------------------------------------


class Bare(Toolbox):
    """Dominating sets of a path with what a toolbox must have, and `tools` of what it may have."""

    sense, words = "minimise", "set"

    def __init__(self, graph, **tools):
        self.core = graph
        for name, made in tools.items():
            setattr(self, name, made)

    def value(self, solution):
        return int(solution.sum())

    def fault(self, solution):
        near = np.bincount(self.core.row_of()[solution[self.core.indices]], minlength=self.core.n)
        return None if (solution | (near > 0)).all() else "a node is not dominated"

    def start(self):
        return np.ones(self.core.n, dtype=bool)


class Ends(Search):
    """Takes nodes out of the start, one a step, while all others stay dominated."""

    def __init__(self, tools, start):
        self.tools, self.chosen = tools, start.copy()
        self.steps = self.found_at = 0
        self.best, self.done = int(start.sum()), False

    def run(self, steps):
        for node in range(self.steps, min(self.steps + steps, len(self.chosen))):
            less = self.chosen.copy()
            less[node] = False
            if self.tools.fault(less) is None:
                self.chosen, self.best, self.found_at = less, self.best - 1, node + 1
        self.steps += steps
        self.done = self.steps >= len(self.chosen)

    def solution(self):
        return self.chosen.copy()


class Thirds(Bounds):
    """A node of a path dominates three at most."""

    value, method = 0, ""

    def __init__(self, n):
        self.n = n

    def improve(self, seconds, best, solution=None):
        self.value, self.method = -(-self.n // 3), "thirds"
        return False


class Known(Tree):
    """An exact search of one part, whose answer is given."""

    method, value, left = "given", 0, (1, 1)

    def __init__(self, chosen):
        self.chosen, self.more = chosen, True

    def begin(self, best):
        self.best = best

    def run(self, seconds):
        self.best, self.more = int(self.chosen.sum()), False

    def told(self):
        return np.array([int(not self.more)])

    def take(self, words, best):
        if words[0]:
            self.value, self.more = best, False

    def solution(self):
        return self.chosen


@pytest.mark.parametrize(
    ("seconds", "call", "begun"), [(60.0, 5.0, True), (60.0, 7.0, False), (0.0, 7.0, True)]
)
def test_an_exact_search_is_not_begun_whose_calls_are_long_for_a_time_limit(group, seconds, call, begun):
    tree = Known(np.ones(3, dtype=bool))
    tree.least_seconds = call
    progress = Progress(Log(False), "x", True, 1.0)
    progress.found(9, "start", 0)
    exact = Exact(group, Tools(Curious(1), 0), tree, Budget.of_case(-1, seconds, 60.0, 100), progress, 1)
    exact.share(0, 60.0)
    assert (exact.begun, exact.more) == (begun, begun)


@pytest.mark.parametrize("limit", [{"search.steps": 100}, {"search.seconds": 5.0}], ids=["steps", "seconds"])
@pytest.mark.parametrize("parts", [(), ("search",), ("bounds",), ("search", "bounds"), ("tree",)])
def test_a_toolbox_of_the_bases_alone_is_solved(group, parts, limit):
    """What it does without has a default in app/toolbox.py: nothing of a problem's own is asked for."""
    n = 12
    graph = from_edges(n, np.arange(n - 1), np.arange(1, n))
    best = np.arange(n) % 3 == 1
    tools = Bare(graph)
    made = {
        "search": lambda seed, start: Ends(tools, start),
        "bounds": lambda: Thirds(n),
        "tree": lambda rank, ranks: Known(best),
    }
    for part in parts:
        setattr(tools, part, made[part])
    case = build({"problem.name": "mds", "graph.path": [], "search.start": "greedy", **limit})
    answer = Pipeline(group, Log(False), case, None, None).answer(tools, "path")
    exact = "tree" in parts and "search.seconds" in limit  # without a limit what it finds is not taken
    assert answer.value == (4 if "search" in parts or exact else n)
    assert tools.fault(answer.solution) is None and answer.solution.sum() == answer.value
    proved = {"bounds": (4, "thirds"), "tree": (4, "given")}
    if "bounds" in parts or exact:
        assert (answer.bound, answer.method) == proved[parts[-1]]
    assert not answer.verified


@pytest.mark.parametrize(("seconds", "made"), [(1e-9, True), (60.0, False)])
def test_a_search_is_not_begun_that_a_time_limit_has_no_room_for(group, seconds, made):
    """The start is the answer then, bounds go on, and a replay makes no step."""
    graph = from_edges(12, np.arange(11), np.arange(1, 12))
    tools = Bare(graph, search_seconds=seconds, bounds=lambda: Thirds(12))
    tools.search = lambda seed, start: Ends(tools, start)
    case = build({"problem.name": "mds", "graph.path": [], "search.start": "greedy", "search.seconds": 1.0})
    answer = Pipeline(group, Log(False), case, None, None).answer(tools, "path")
    assert (answer.value, answer.bound) == (4 if made else 12, 4)
    assert ("search.steps=0" in answer.replay) is not made and answer.replay[0] == "search.seconds=0"
    for steps, value in ((100, 4), (0, 12)):
        limits = {"search.seconds": 0.0, "search.steps": steps}
        unlimited = build({"problem.name": "mds", "graph.path": [], "search.start": "greedy", **limits})
        assert Pipeline(group, Log(False), unlimited, None, None).answer(tools, "path").value == value


def test_seconds_are_kept_for_what_comes_after():
    budget = Budget.of_case(-1, 10.0, 60.0, 100)
    left, end = budget.left(), budget.end
    budget.kept = 4.0
    assert left - 4.1 < budget.left() <= left - 4 and budget.end == end - 4


def test_sets_of_nodes_are_solved_without_tools_of_their_own(group):
    """NodeTools as SetProblem gives them: the plain heuristics, and the bounds by name."""
    n = 12
    graph = from_edges(n, np.arange(n - 1), np.arange(1, n))
    tools = NodeTools(Instance(graph), make_problem("mds"))
    case = build({"problem.name": "mds", "graph.path": [], "search.start": "greedy", "search.steps": 100})
    answer = Pipeline(group, Log(False), case, None, None).answer(tools, "path")
    assert tools.fault(answer.solution) is None
    assert (answer.value, answer.bound, answer.verified) == (4, 4, True)
