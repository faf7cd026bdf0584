"""Learners: each with every model on every problem, equal on any ranks, targets by hand, and they learn."""

from functools import partial

import numpy as np
import pytest
from helpers import crossed, growing_graph, listed, make_blocks, posed, random_graph
from mpi4py import MPI
from test_train import SMALL, changed
from test_tsp import blocks_of

from app.case.config import Case
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError, LockstepError, NumericsError
from app.graphs.metric import uniform_points
from app.problems.problem import better
from app.problems.table import PROBLEMS as ALL
from app.problems.table import UNTRAINED, make_problem
from app.rl import agent as agent_module
from app.rl.dynamics import begin_environment
from app.rl.env import step_together
from app.rl.learner import Learner
from app.rl.learners import LEARNERS, find_learner, register_learner
from app.rl.policy_gradient import Moment, Played, PolicyLearner
from app.rl.ppo import ProximalPolicy, Target
from app.rl.qnet import QNetwork
from app.rl.reinforce import Reinforce, returns_of
from app.rl.replay import Episode
from app.rl.select import random_candidates
from app.rl.training import Observers, train_policy
from app.rng import stream

# ---- every learner, model, problem ----------------------------------------------------------------------

AGENTS = {
    "dqn": AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20),
    "ppo": AgentCase(learner="ppo", rollout_steps=12, batch=5, epochs_per_batch=2),
    "reinforce": AgentCase(learner="reinforce", rollouts=2, rollout_graphs=2, discount=0.9),
}


STEPS = {"dqn": 12, "ppo": 26, "reinforce": 90}


def short(learner, environments=3, **policy):
    return Case(
        seed=6, agent=AGENTS[learner], policy=PolicyCase(dimension=8, hidden=8, **policy),
        train=TrainCase(steps=STEPS[learner], environments=environments, evaluate_every=40),
    )  # fmt: skip


def small_blocks(group, problem):
    """Training and held-back graphs of 7 to 12 nodes."""
    if problem == "tsp":
        metrics = [uniform_points(n, n) for n in (7, 9, 8)]
        return blocks_of(group, metrics[:2]), blocks_of(group, metrics[2:])
    graphs = [growing_graph(9, 2, 1), random_graph(12, 0.3, 3), growing_graph(8, 2, 5)]
    graphs = [posed(problem, graph) for graph in graphs]
    return make_blocks(group, graphs[:2]), make_blocks(group, graphs[2:])


def outcome(group, case, problem):
    """Digests of the last and the best weights, and every record."""
    last = []
    result = train_policy(
        group, case, make_problem(problem), *small_blocks(group, problem),
        Observers(snapshot=lambda step, weights: last.append(digest(weights))),
    )  # fmt: skip
    assert result.records[-1]["gradient_steps"] > 0
    assert len(set(last)) > 1  # it did learn
    return last, digest(result.weights), repr(result.records), result.best_total


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("learner", "model", "problem"),
    crossed(AGENTS, ["structure2vec", "gin"], [name for name in ALL if name not in UNTRAINED]),
)
def test_any_learner_with_any_model_on_any_problem(learner, model, problem):
    assert outcome(Group(MPI.COMM_SELF, HostDevice()), short(learner, model=model), problem)


OTHERS = [
    ("dqn", "gcn", "mis"), ("ppo", "sage", "mds"), ("reinforce", "commnet", "maxcut_once"),
    ("ppo", "gcn", "tsp"), ("ppo", "structure2vec", "mvc"), ("reinforce", "gin", "maxcut"),
]  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("learner", "model", "problem"), OTHERS)
def test_compiled_kernels_learn_what_plain_ones_learn(compiled, learner, model, problem):
    """The other layers too."""
    case = short(learner, model=model)
    found = [
        outcome(Group(MPI.COMM_SELF, device), case, problem)
        for device in (compiled, HostDevice(compiled=False))
    ]
    assert found[0] == found[1]


CELLS = {
    "ppo": ("ppo", "mvc", {}),
    "ppo mixing": ("ppo", "mis", {"head": "mixing", "layers": 3}),
    "ppo gin": ("ppo", "mds", {"model": "gin"}),
    "ppo paper": ("ppo", "mvc", {"features": "paper", "edge_weights": True}),
    "reinforce": ("reinforce", "mvc", {}),
    "reinforce gin": ("reinforce", "maxcut_once", {"model": "gin"}),
    "reinforce tsp": ("reinforce", "tsp", {}),
    "ppo maxcut": ("ppo", "maxcut", {}),
    "dqn gin": ("dqn", "mis", {"model": "gin"}),
}


@pytest.mark.parametrize("cell", CELLS)
def test_the_ranks_learn_what_one_process_learns(group, single, cell):
    learner, problem, policy = CELLS[cell]
    case = short(learner, **policy)
    assert outcome(group, case, problem) == outcome(single, case, problem)


@pytest.mark.parametrize("learner", ["ppo", "reinforce"])
@pytest.mark.parametrize("head", ["separate", "mixing"])
def test_the_ranks_learn_alike_where_each_owns_rows(group, single, monkeypatch, learner, head):
    """Graphs of several blocks for every rank; minibatches that go through the network in parts."""
    monkeypatch.setattr(agent_module, "PART_ROWS", 500)
    monkeypatch.setattr(agent_module, "MOST_ROWS", 500)
    graphs = [growing_graph(230, 4, 5), growing_graph(200, 2, 6)]
    case = short(learner, head=head)
    found = []
    for ranks in (group, single):
        learning = make_learner(ranks, graphs, case)
        envs = [begin_environment(ranks, block, learning.net.problem) for block in learning.blocks]
        for number, env in enumerate(envs):
            learning.begin(number, number, env)
        for step in range(10):
            nodes = learning.act(envs, [0, 1], step)
            step_together(ranks, envs, [nodes[:1], nodes[1:]])
            for number, node in enumerate(nodes.tolist()):
                learning.remember(number, node, -1.0 - node / 300, envs[number])
        moments = [Moment(number, t) for number in (0, 1) for t in range(10)]
        advantage = {m: float(m.t - 4) for m in moments}
        if learner == "reinforce":
            losses = learning.descend(moments, partial(learning._push, advantage))
        else:
            targets = learning._targets()
            losses = learning.descend(moments, partial(learning._push, targets, len(moments)))
        assert len(list(learning.evaluations(moments))) == 10
        found.append((repr(losses), digest(learning.params.host())))
    assert found[0] == found[1]


# ---- the steps of a learner -----------------------------------------------------------------------------


def make_learner(group, graphs, case, problem="mvc"):
    net = QNetwork(case.policy, make_problem(problem))
    return find_learner(case.agent.learner)(group, case.agent, net, make_blocks(group, graphs), case.seed, 1)


def episode_of(rewards, finished=True):
    episode = Episode(0, make_problem("mvc").totals(5, 8, 0))
    for i, reward in enumerate(rewards):
        episode.add(i, reward, make_problem("mvc").totals(4, 6, 0))
    episode.finished = finished
    return episode


def test_returns_are_discounted_sums():
    assert returns_of(episode_of([1.0, 2.0, 4.0]), 0.5) == [3.0, 4.0, 4.0]


def test_rollouts_are_each_others_baseline(solo):
    """G from a step on, less the mean of those of the graph's other rollouts, 0 after their ends."""
    case = changed(short("reinforce"), agent={"rollouts": 3, "rollout_graphs": 2, "discount": 1.0})
    learner = make_learner(solo, SMALL[:1], case)
    rewards = [[1.0, 1.0], [2.0], [0.0, 0.0, 3.0], [5.0], [5.0], [8.0]]
    learner.episodes = {i: episode_of(each) for i, each in enumerate(rewards)}
    found = learner._advantages()
    expected = {
        (0, 0): 2 - 2.5, (0, 1): 1 - 1.5, (1, 0): 2 - 2.5, (2, 0): 3 - 2.0, (2, 1): 3 - 0.5, (2, 2): 3.0,
        (3, 0): 5 - 6.5, (4, 0): 5 - 6.5, (5, 0): 8 - 5.0,
    }  # fmt: skip
    assert found == {Moment(*m): value for m, value in expected.items()}


def test_rollouts_of_a_round_play_its_graphs_and_wait_for_each_other(solo):
    case = changed(short("reinforce"), agent={"rollouts": 3, "rollout_graphs": 2})
    learner = make_learner(solo, SMALL[:1], case)
    assert [learner.begins(number) for number in (0, 5, 6)] == [True, True, False]
    assert [learner.draw_of(number) for number in range(7)] == [0, 0, 0, 1, 1, 1, 2]
    played, begin = [], Reinforce.begin

    def watched(self, number, graph, env):
        played.append((number, graph, self.learned))
        begin(self, number, graph, env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reinforce, "begin", watched)
        small = [growing_graph(9 + i, 2, i) for i in range(4)]
        blocks = make_blocks(solo, small)
        train_policy(
            solo, changed(case, train={"steps": 150, "environments": 6}), make_problem("mvc"), blocks, blocks
        )
    assert len(played) > 12
    for number, graph, learned in played:
        assert number // 6 * 6 == learned
        assert graph == played[number // 3 * 3][1]
    assert len({graph for _, graph, _ in played}) > 1


def test_advantages_of_ppo_are_generalised(solo):
    """delta_t = r + g V' - V; A_t = delta_t + g l A_t+1: one episode that ended, one that goes on."""
    case = changed(short("ppo"), agent={"discount": 0.5, "gae_lambda": 0.8})
    learner = make_learner(solo, SMALL[:1], case)
    learner.episodes = {0: episode_of([1.0, 2.0]), 1: episode_of([7.0, 3.0], finished=False)}
    learner.fresh = [Moment(0, 0), Moment(1, 1), Moment(0, 1)]  # the first step of 1 was learned from before
    targets = {m: Target(0.0, 0.0, 0.0) for m in learner.fresh}
    values = {Moment(0, 0): 0.5, Moment(0, 1): 1.5, Moment(1, 1): 2.0, Moment(1, 2): 4.0}
    learner._estimate(targets, values)
    last = 2.0 - 1.5
    first = 1.0 + 0.5 * 1.5 - 0.5 + 0.5 * 0.8 * last
    going = 3.0 + 0.5 * 4.0 - 2.0
    expected = [(first, first + 0.5), (going, going + 2.0), (last, last + 1.5)]
    found = [(targets[m].advantage, targets[m].value) for m in learner.fresh]
    assert found == [pytest.approx(pair) for pair in expected]


def played_with(log_probability, value):
    moments = [Moment(0, t) for t in range(len(log_probability))]
    return Played(moments, None, log_probability, np.full(len(moments), 0.7), value, None)


def test_pushes_are_central_differences(solo):
    """Of the losses by log-probability, value and entropy, on both sides of the clip."""
    ppo = make_learner(solo, SMALL[:1], changed(short("ppo"), agent={"clip": 0.2, "entropy": 0.03}))
    log_pi, value = np.array([-1.0, -1.1, -0.7, -1.35, -1.0, -0.5]), np.linspace(-1, 1, 6)
    A = [1.5, 1.0, 2.0, -1.0, -0.5, -1.5]  # the third and the fourth are clipped
    targets = {Moment(0, t): Target(-1.0, A[t], 0.3) for t in range(6)}
    reinforce = make_learner(solo, SMALL[:1], short("reinforce"))
    advantage = {Moment(0, t): A[t] for t in range(6)}

    def push(learner, log_pi, value):
        played = played_with(log_pi, value)
        if learner is ppo:
            return ppo._push(targets, 6, played)
        return reinforce._push(advantage, played)

    step = 1e-6
    for learner in (ppo, reinforce):
        found = push(learner, log_pi, value)
        up, down = (push(learner, log_pi + s, value).losses for s in (step, -step))
        assert found.dlog == pytest.approx((up - down) / (2 * step), abs=1e-6)
        assert (found.dlog != 0).tolist() == ([1, 1, 0, 0, 1, 1] if learner is ppo else [1] * 6)
        assert found.dentropy == pytest.approx(-learner.case.entropy / 6)
    up, down = (push(ppo, log_pi, value + s).losses for s in (step, -step))
    assert push(ppo, log_pi, value).dvalue == pytest.approx((up - down) / (2 * step), abs=1e-6)


def test_the_first_pass_of_ppo_starts_from_the_policy_that_played(solo):
    """Its ratios are one, to the bit, so it follows the plain policy gradient."""
    learner = make_learner(solo, [growing_graph(15, 2, 1)], short("ppo"))
    env = begin_environment(solo, learner.blocks[0], learner.net.problem)
    learner.begin(0, 0, env)
    for step in range(4):
        nodes = learner.act([env], [0], step)
        step_together(solo, [env], [nodes])
        learner.remember(0, int(nodes[0]), -1.0, env)
    targets = learner._targets()
    for played in learner.replay(learner.fresh):
        old = [targets[m].log_probability for m in played.moments]
        assert old == played.log_probability.tolist()
        assert played.nodes.tolist() == list(learner.episodes[0].actions)


def test_a_learner_that_diverges_ends_training(group):
    for learner in ("ppo", "reinforce"):
        case = changed(short(learner), agent={"learning_rate": 1e30})
        with np.errstate(all="ignore"), pytest.raises(NumericsError, match=r"agent\.learning_rate"):
            outcome(group, case, "mvc")


# ---- names ----------------------------------------------------------------------------------------------


def test_names_of_learners():
    assert set(LEARNERS) == set(AGENTS)
    assert all(find_learner(name).name == name for name in AGENTS)
    with pytest.raises(
        CaseError, match=r"agent\.learner: unknown learner 'sarsa'; known: dqn, ppo, reinforce"
    ):
        find_learner("sarsa")
    with pytest.raises(CaseError, match="'ppo' cannot be the name"):
        register_learner("ppo", Reinforce)
    register_learner("ppo", ProximalPolicy)  # once more is no change
    never = type("Never", (Learner,), {"name": "never", "lessons": lambda self, steps: iter(())})
    with pytest.raises(CaseError, match="Never has no ready of its own, so it would learn nothing"):
        register_learner("never", never)
    assert "never" not in LEARNERS


def test_a_learner_that_begins_nothing_is_told(solo):
    class Idle(Learner):
        name = "idle"

        def begins(self, number):
            return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LEARNERS, "idle", Idle)
        case = changed(short("dqn"), agent={"learner": "idle"})
        with pytest.raises(LockstepError, match="'idle' begins no episode"):
            outcome(solo, case, "mvc")


# ---- they learn -----------------------------------------------------------------------------------------


def random_total(group, problem, blocks):
    """The objective of random candidates, one after the other, on all graphs."""
    total, draws = 0, stream(1, "random policy")
    for block in blocks:
        env = begin_environment(group, block, problem)
        while not env.done:
            pick = int(draws.integers(env.totals.candidates))
            step_together(group, [env], [random_candidates(group, [env], [pick])])
        total += problem.objective(env.chosen, env.totals)
    return total


LEARNING = {
    "ppo": (AgentCase(learner="ppo", learning_rate=1e-2, rollout_steps=128, batch=32), 800),
    "reinforce": (AgentCase(learner="reinforce", learning_rate=2e-2), 2500),
}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["mvc", "mis"])
@pytest.mark.parametrize("learner", LEARNING)
def test_a_short_training_beats_a_random_policy(learner, problem):
    """On graphs held back, of 20 to 40 nodes, by at least a tenth."""
    group, rules = Group(MPI.COMM_SELF, HostDevice()), make_problem(problem)
    agent, steps = LEARNING[learner]
    sets = [
        [growing_graph(n, 3, s + n) if n % 8 else random_graph(n, 0.15, s + n) for n in range(20, 41, 4)]
        for s in (100, 200)
    ]
    blocks, held = (make_blocks(group, graphs) for graphs in sets)
    case = Case(seed=1, agent=agent, train=TrainCase(steps=steps, environments=8, evaluate_every=steps // 2))
    result = train_policy(group, case, rules, blocks, held)
    chance = random_total(group, rules, held)
    assert better(rules, result.best_total, chance * (1.1 if rules.sense == "maximise" else 0.9))
    assert better(rules, result.records[-1]["held_back_nodes"], chance)


def test_graphs_without_edges_are_passed_over(group):
    graphs = [listed(12), growing_graph(13, 2, 1)]
    case = short("reinforce")
    blocks = make_blocks(group, graphs)
    assert train_policy(group, case, make_problem("mvc"), blocks, blocks).records[-1]["gradient_steps"]
    assert issubclass(Reinforce, PolicyLearner)
