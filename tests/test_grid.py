"""The process grid: replicas of an agent on groups of ranks, the same bits however they are shared out."""

from copy import deepcopy
from itertools import product

import msgspec
import numpy as np
import pytest
from helpers import by_one, growing_graph, make_blocks, random_graph
from mpi4py import MPI
from standin_device import StandInDevice
from test_learners import AGENTS, short
from test_train import changed

from app.case.config import Case
from app.case.graph import GraphCase
from app.case.policy import AgentCase
from app.case.run import ParallelCase
from app.case.search import SearchCase
from app.checkpoint.keeper import Nothing
from app.checkpoint.shared import share_state
from app.comm.grid import cut_grid, fit_groups
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError, GraphError, NumericsError, Stopped
from app.log import Log
from app.partition.whole import (
    EVALUATED,
    FOLLOWED_ENTRIES,
    FOLLOWED_ROWS,
    followed_by,
    learning_work,
    sharers,
    taken_off,
)
from app.problems.table import make_problem
from app.rl.agent import Agent
from app.rl.learner import Lesson
from app.rl.replica import Replica
from app.rl.training import Observers, mean_lesson, share_of, train_policy
from app.tasks.compare import spatial_of, too_large
from app.tasks.context import Context
from app.tasks.solve import run_solve

WORLD, SELF = MPI.COMM_WORLD, Group(MPI.COMM_SELF, HostDevice())
GRAPHS = [growing_graph(31, 2, 1), random_graph(26, 0.2, 3), growing_graph(40, 3, 4)]
HELD = [growing_graph(12, 2, 8), random_graph(9, 0.3, 9), growing_graph(11, 3, 5)]


def with_replicas(case, replicas):
    """The case with D replicas, and minibatches that they can share."""
    batch = 6 if case.agent.learner == "dqn" else 12
    return msgspec.structs.replace(
        changed(case, agent={"batch": batch}), parallel=ParallelCase(data=replicas)
    )


def trained(group, case, groups=1, unsplit=False, **more):
    """Digests of the last and the best weights and every record of a training on a grid of ranks."""
    last = []
    grid = cut_grid(group, case.parallel.data, groups)
    grid = grid.unsplit() if unsplit else grid
    result = train_policy(
        grid.group, case, make_problem("mvc"), make_blocks(grid.group, GRAPHS),
        make_blocks(grid.group, HELD),
        Observers(snapshot=lambda step, weights: last.append(digest(weights))), grid=grid, **more,
    )  # fmt: skip
    assert more or len(set(last)) > 1  # it did learn
    return last, digest(result.weights), repr(result.records), result.best_total


def grids(replicas):
    """All numbers of groups that this session's ranks can form."""
    return [g for g in range(1, replicas + 1) if WORLD.size % g == 0]


# ---- how ranks are cut ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "replicas", "spatial", "groups"),
    [
        (1, 1, 0, 1), (1, 5, 0, 1), (4, 1, 0, 1), (4, 2, 0, 2), (4, 4, 0, 4), (3, 2, 0, 1), (4, 3, 0, 1),
        (6, 4, 0, 2), (4, 3, 2, 2), (4, 8, 1, 4), (4, 2, 4, 1), (6, 96, 1, 6),
        (4, 2, 1, 2), (3, 1, 1, 1), (4, 3, 1, 2),
    ],
)  # fmt: skip
def test_groups_divide_the_ranks(ranks, replicas, spatial, groups):
    assert fit_groups(ranks, replicas, spatial) == groups


@pytest.mark.parametrize(
    ("ranks", "replicas", "spatial", "right"),
    [(4, 2, 3, "1, 2, 4"), (4, 1, 2, "1, 4"), (3, 1, 2, "1, 3"), (1, 2, 2, "1")],
)
def test_ranks_that_do_not_fit_are_refused(ranks, replicas, spatial, right):
    with pytest.raises(CaseError, match=rf"parallel.spatial: .*: {right}; got {spatial}$"):
        fit_groups(ranks, replicas, spatial)


def test_a_minibatch_is_shared_out_evenly_or_refused():
    agent = AgentCase(batch=12, rollout_steps=10)
    assert share_of(agent, 1) == agent
    assert (share_of(agent, 4).batch, share_of(agent, 4).rollout_steps) == (3, 3)
    with pytest.raises(CaseError, match=r"agent\.batch: must be a multiple of parallel\.data = 5"):
        share_of(agent, 5)
    assert share_of(AgentCase(learner="reinforce", batch=16), 3).rollouts == 8


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7])
def test_every_replica_has_one_group(replicas):
    world = Group(WORLD, HostDevice())
    for groups in grids(replicas):
        grid = cut_grid(world, replicas, groups)
        assert grid.group.size * grid.groups == world.size
        assert grid.total([len(grid.mine)]) == [replicas]
        assert grid.total([sum(grid.mine)]) == [sum(range(replicas))]
        assert len(grid.mine) in (replicas // groups, replicas // groups + 1)
        assert grid.number == world.rank // grid.group.size


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7])
def test_unsplit_every_rank_has_replicas_and_whole_graphs(replicas):
    """As many groups as have one; the ranks of a group do the same, and take turns at what is dealt out."""
    world = Group(WORLD, HostDevice())
    grid = cut_grid(world, replicas, 1).unsplit()
    assert grid.group.size == 1
    assert grid.groups == max(g for g in range(1, replicas + 1) if world.size % g == 0)
    assert grid.beside.size == world.size
    assert grid.total([len(grid.mine)]) == [replicas]
    places = world.gather_integers(np.array([grid.number, grid.beside.rank]))
    assert places[:, 1].tolist() == list(range(world.size))
    assert np.bincount(places[:, 0]).tolist() == [world.size // grid.groups] * grid.groups
    assert cut_grid(world, replicas, 1).beside.size == 1


# ---- sums over replicas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2, 3, 5, 8])
def test_a_mean_over_replicas_is_one_tree(device, replicas):
    """Numbers whose sum depends on the order; every grid has the same bits, near the exact mean."""
    world = Group(WORLD, device)
    rows = np.random.default_rng(replicas).standard_normal((replicas, 300)).astype(np.float32)
    rows *= np.float32(10.0) ** np.arange(replicas, dtype=np.float32)[:, None]
    alone = Group(MPI.COMM_SELF, device)
    found = []
    for group, groups in [(alone, 1), *((world, g) for g in grids(replicas))]:
        grid = cut_grid(group, replicas, groups)
        lessons = [Lesson(float(rows[r, 0]), device.put(rows[r])) for r in grid.mine]
        mean = mean_lesson(grid, lessons)
        found.append((mean.loss, device.get(mean.gradient).tobytes()))
    assert len(set(found)) == 1
    mean = np.frombuffer(found[0][1], dtype=np.float32)
    np.testing.assert_allclose(mean, rows.astype(float).mean(axis=0), rtol=1e-5, atol=1e-5 * abs(rows).max())


def test_what_one_group_cannot_do_ends_all(solo):
    """One error on all ranks, whichever group it came from; and none where all went well."""
    world = Group(WORLD, HostDevice())
    grid = cut_grid(world, world.size, world.size)
    with grid.together("nothing"):
        pass
    with pytest.raises(GraphError, match=r"^group 0$"), grid.together("working"):
        if grid.number == 0:
            raise GraphError("group 0")
    if world.size > 1:
        with pytest.raises(NumericsError, match="diverged"), grid.together("working"):
            if grid.number == 1:
                raise NumericsError("diverged")


def test_groups_work_in_step_until_the_last_is_done():
    """One piece of every group at a time, however many a group has; one that fails ends all."""
    world = Group(WORLD, HostDevice())
    grid = cut_grid(world, world.size, world.size)

    def pieces(many, fails=False):
        for _ in range(many):
            yield
        if fails:
            raise GraphError("at the end")

    for longest in (0, 1, 4):
        mine = longest if grid.number == grid.groups - 1 else 0
        looks = [world.max_integer(grid.number) for _ in grid.in_step(pieces(mine), "working")]
        assert looks == [grid.groups - 1] * longest
    looks = 0
    with pytest.raises(GraphError, match="at the end"):
        for _ in grid.in_step(pieces(9 if grid.number else 2, fails=grid.number == 0), "working"):
            looks += 1
    assert looks == 2


# ---- training ---------------------------------------------------------------------------------------------

CASES = {name: short(name) for name in AGENTS}
CASES["reinforce"] = changed(short("reinforce", 4), train={"steps": 150, "evaluate_every": 60})
CASES["n-step"] = changed(short("dqn", 2), agent={"n_step": 3, "discount": 0.9, "train_every": 2})
CASES["double"] = changed(short("dqn", 1), agent={"double": True, "gradient_steps": 2})


@pytest.mark.parametrize(("name", "replicas"), [*((name, 2) for name in CASES), ("dqn", 3), ("reinforce", 3)])
def test_a_grid_trains_what_one_rank_emulates(name, replicas):
    """Every learner, every number of groups: as D replicas on one rank, one after the other."""
    case = with_replicas(CASES[name], replicas)
    expected = by_one(lambda: trained(SELF, case))
    world = Group(WORLD, HostDevice())
    for groups in grids(replicas) if WORLD.size > 1 else ():
        assert trained(world, case, groups) == expected
    if WORLD.size == 1:
        assert trained(world, with_replicas(CASES[name], 1)) != expected


def test_the_stand_in_trains_on_a_grid():
    case = with_replicas(CASES["ppo"], 2)
    expected = by_one(lambda: trained(SELF, case))
    for groups in grids(2):
        assert trained(Group(WORLD, StandInDevice()), case, groups) == expected


@pytest.mark.mpi_skip
def test_a_replica_is_the_agent_of_its_seed(solo):
    """Two replicas take the mean of the lessons that two agents of their seeds would take."""
    case = with_replicas(CASES["dqn"], 2)
    asked = []

    def watched(self, sample):
        asked.append((self.seed, sample.nodes.tolist(), len(sample.graphs)))
        return lesson(self, sample)

    lesson = Agent.lesson
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agent, "lesson", watched)
        trained(solo, case)
    assert {size for _, _, size in asked} == {3}  # half a minibatch of 6
    assert asked[0][0] == case.seed != asked[1][0]
    assert asked[0][1] != asked[1][1]


def test_weights_that_differ_between_groups_are_noticed():
    world = Group(WORLD, HostDevice())
    grid = cut_grid(world, world.size, world.size)
    case = with_replicas(changed(CASES["dqn"], run={"check_every": 1}), world.size)
    case = changed(case, agent={"batch": 2 * world.size})
    update = Agent.update

    def skewed(self, gradient):
        update(self, gradient)
        self.params.flat[0] += grid.number

    if world.size == 1:
        trained(world, case)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Agent, "update", skewed)
        with pytest.raises(NumericsError, match="the weights after 1 gradient steps: rank 1"):
            trained(world, case, world.size)


def test_what_groups_tell_each_other_is_counted_apart():
    """A gradient and the loss to every other group; nothing about rows where a rank has whole graphs."""
    world = Group(WORLD, HostDevice())
    grid = cut_grid(world, world.size, world.size)
    rows = [np.ones(100, dtype=np.float32)]
    mean_lesson(grid, [Lesson(1.0, rows[0])])
    others = world.size - 1
    assert world.sent_bytes == ({"data.sum": 4 * 101 * others} if others else {})
    assert grid.group.sent_bytes is world.sent_bytes


# ---- stopping and going on --------------------------------------------------------------------------------


class At(Nothing):
    """Tells the state at a step, or begins from one."""

    def __init__(self, step=-1, state=None):
        self.step, self.state = step, state

    def recall(self, key):
        return self.state

    def at(self, step, key="", state=None, now=False):
        if self.step >= 0 and step >= self.step:
            self.state, self.step = deepcopy(state()), -1


class Stopping(Nothing):
    """Stops from a step on."""

    def __init__(self, step):
        self.step = step

    def at(self, step, key="", state=None, now=False):
        if step >= self.step:
            raise Stopped("here")


@pytest.mark.parametrize("name", AGENTS)
def test_a_grid_goes_on_where_another_stopped(name):
    """The state is that of the replicas, whichever ranks have them."""
    case = with_replicas(CASES[name], 2)
    expected = by_one(lambda: trained(SELF, case))
    world, middle = Group(WORLD, HostDevice()), case.train.steps // 2
    told = []
    for groups in grids(2):
        keeper = At(middle)
        assert trained(world, case, groups, keeper=keeper) == expected
        told.append(keeper.state)
    for groups, state in zip(reversed(grids(2)), told):
        last, *rest = trained(world, case, groups, keeper=At(state=state))
        assert (last[-1], rest) == (expected[0][-1], [*expected[1:]])


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", AGENTS)
def test_ranks_that_have_the_graphs_whole_learn_the_same(name, replicas):
    """The same weights, records and checkpoints; one is gone on from by ranks that split the graphs."""
    case = with_replicas(CASES[name], replicas)
    world, middle = Group(WORLD, HostDevice()), case.train.steps // 2
    keeper = At(middle)
    expected, kept = by_one(lambda: (trained(SELF, case, keeper=keeper), keeper.state))
    whole = At(middle)
    assert trained(world, case, unsplit=True, keeper=whole) == expected
    state = whole.state
    if replicas == 1:  # the first rank has it
        state = share_state(world, None if world.rank else state, 0)
    assert repr(state.values) == repr(kept.values)  # some are not a number
    assert digest(state.arrays) == digest(kept.arrays)
    for unsplit in (False, True):
        last, *rest = trained(world, case, unsplit=unsplit, keeper=At(state=deepcopy(state)))
        assert (last[-1], rest) == (expected[0][-1], [*expected[1:]])


def test_the_first_rank_plays_for_those_that_would_do_the_same(monkeypatch):
    """The others rest, but for evaluations; its error is that of all, and so is a stop."""
    world, acts = Group(WORLD, HostDevice()), []
    act = Replica.act
    monkeypatch.setattr(Replica, "act", lambda self: (acts.append(1), act(self)))
    case = with_replicas(CASES["dqn"], 1)
    expected = trained(world, case, unsplit=True)
    assert bool(acts) == (world.rank == 0)

    def failing(self):
        acts.append(1)
        if len(acts) == 4:
            raise NumericsError("not finite")
        act(self)

    monkeypatch.setattr(Replica, "act", failing)
    acts.clear()
    with pytest.raises(NumericsError, match="not finite"):
        trained(world, case, unsplit=True)
    monkeypatch.setattr(Replica, "act", act)
    with pytest.raises(Stopped, match="here"):
        trained(world, case, unsplit=True, keeper=Stopping(case.train.steps // 2))
    assert trained(world, case, unsplit=True) == expected


# ---- solving ----------------------------------------------------------------------------------------------

SET = Case(
    seed=3, graph=GraphCase(generator="er", nodes=(30, 60), p=0.2, count=5),
    search=SearchCase(steps=60, bound_seconds=0.01, reductions=False),
)  # fmt: skip


def solved(group, case):
    """What a solve says of every instance, but for times and bounds, which depend on the clock."""
    result = run_solve(Context(case, group, Log(False), None))
    kept = ("name", "nodes", "edges", "objective", "source", "learned", "greedy", "digest", "baselines")
    return result["digest"], [{key: each.get(key) for key in kept} for each in result["instances"]]


@pytest.mark.parametrize("solver", ["full", "policy"])
@pytest.mark.parametrize("rest", [{"data": 2}, {"data": 5}, {"data": 4, "spatial": 1}], ids=str)
def test_a_set_is_solved_at_once_as_one_by_one(solver, rest):
    case = changed(SET, search={"solver": solver, "bounds": False})
    if rest.get("spatial") and WORLD.size == 3:
        case = changed(case, graph={"count": 2})  # fewer graphs than groups
    expected = by_one(lambda: solved(SELF, case))
    parallel = msgspec.structs.replace(case, parallel=ParallelCase(**rest))
    assert solved(Group(WORLD, HostDevice()), parallel) == expected


LEARNED = ("mvc", "mis", "clique", "mds", "maxcut", "fvs", "tsp")


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        *product(LEARNED, ["full"]),
        *product(LEARNED[:-1], ["policy"]),
    ],  # cities are inserted in the first alone
)
def test_where_a_graph_is_whole_changes_no_answer(name, solver):
    """By size, on every rank, and split over all: of the policy's start, the policy alone, and beside it."""
    case = changed(SET, problem={"name": name}, search={"solver": solver, "bounds": False, "steps": 40})
    graph = {"count": 2, "nodes": (40, 50)}
    graph |= {"generator": "uniform_points"} if name == "tsp" else {}
    case = changed(case, graph=graph)
    expected = by_one(lambda: solved(SELF, case))
    assert any(each["learned"] is not None for each in expected[1])
    for spatial in (0, 1, WORLD.size):
        assert solved(Group(WORLD, HostDevice()), changed(case, parallel={"spatial": spatial})) == expected


def test_which_graphs_are_split():
    """Large ones, all where parallel.spatial says so, and none where a rank may not hold one."""
    world = Group(WORLD, HostDevice())
    alone = world.alone()
    assert sharers(world, 0, EVALUATED, EVALUATED) is (alone if world.size > 1 else world)
    assert sharers(world, 0, 2 * EVALUATED + 1, EVALUATED) is world
    assert [taken_off(12, ranks) for ranks in (1, 2, 4)] == [0, 6, 9]
    assert sharers(world, world.size, 1, EVALUATED) is (world if world.size > 1 else sharers(world, 1, 1, 1))
    assert sharers(world, 1, 1 << 40, EVALUATED).size == 1
    assert followed_by(world, 0, FOLLOWED_ROWS, FOLLOWED_ENTRIES).size == 1
    assert followed_by(world, 0, FOLLOWED_ROWS + 1, 1) is world
    assert followed_by(world, 0, 1, FOLLOWED_ENTRIES + 1) is world
    assert learning_work(Case(parallel=ParallelCase(data=4)), 10, 640) == 4 * 20


@pytest.mark.parametrize("spatial", [0, 1])
def test_a_graph_beyond_the_limit_of_a_rank_is_split(spatial):
    """P2: no rank takes the whole of it for the policy, small as it is."""
    world = Group(WORLD, HostDevice())
    case = changed(SET, graph={"count": 1}, memory={"whole_graph_mb": 0.001}, parallel={"spatial": spatial})
    context = Context(case, world, Log(False), None)
    (loaded,) = context.load(case.graph, "instances")
    assert too_large(context, loaded)
    assert spatial_of(context, [loaded]) == world.size
    roomy = Context(changed(case, memory={"whole_graph_mb": 10.0}), world, Log(False), None)
    assert spatial_of(roomy, [loaded]) == spatial
    problem = make_problem("mvc")
    whole, split = (roomy.state_rows_on(g, [loaded], problem)[0] for g in (world.alone(), world))
    assert whole.n_real == loaded.graph.n
    assert world.sum_integers(np.array([split.n_real]))[0] == loaded.graph.n


def test_a_single_graph_is_searched_by_all():
    """parallel.data independent searches of it, as search.starts would ask for."""
    one = changed(SET, graph={"count": 1, "nodes": 90}, search={"baselines": False})
    expected = by_one(lambda: solved(SELF, changed(one, search={"starts": 3})))
    world = Group(WORLD, HostDevice())
    assert solved(world, changed(one, parallel={"data": 3})) == expected
    assert solved(world, changed(one, parallel={"data": 2}, search={"starts": 3})) == expected
