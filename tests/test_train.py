"""Training: one digest on any number of ranks, targets by hand, and a policy that learns.

python tests/test_train.py      prints digests of short trainings; under mpirun they must not change
"""

import dataclasses
import hashlib
import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":  # started by test_other_kernels_and_hash_seeds, without pytest's paths
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

import msgspec
import numpy as np
import pytest
from helpers import dense, growing_graph, listed, make_blocks, random_graph, residual, totals_of
from jobs import mpirun, run_job
from mpi4py import MPI
from test_qnet import close, reference, slopes

from app.case.config import Case
from app.case.file import build
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.case.run import ParallelCase
from app.comm.grid import cut_grid
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import GraphError, NumericsError
from app.gnn.parameters import Parameters
from app.graphs.graph import from_edges
from app.log import Log
from app.partition.rows import block_count
from app.problems.mvc import MinimumVertexCover
from app.problems.table import make_problem
from app.recipes import PAPER_POLICY
from app.rl import agent as agent_module
from app.rl.agent import Agent
from app.rl.env import GraphEnv, step_together
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.rollout import rolled_out_one_at_a_time
from app.rl.training import Observers, Training, _does_better, train_policy
from app.search.cover.baselines import max_degree
from app.tasks.context import Context
from app.tasks.train import run_train

# ---- a training and its digest ------------------------------------------------------------------------


def changed(case, **tables):
    """A case with some keys of some tables replaced: changed(case, agent={"n_step": 3})."""
    return msgspec.structs.replace(
        case, **{name: msgspec.structs.replace(getattr(case, name), **keys) for name, keys in tables.items()}
    )


SHORT = Case(
    seed=4,
    agent=AgentCase(warmup=4, batch=8, target_every=5, epsilon_decay_steps=20, epsilon_end=0.2),
    train=TrainCase(steps=12, evaluate_every=1000),
)
SMALL = [
    growing_graph(53, 3, 1), growing_graph(97, 4, 2),
    random_graph(70, 0.1, 3), random_graph(61, 0.05, 4), listed(50, (3, 49)),
]  # fmt: skip
WEIGHTED = [random_graph(n, 0.1, n, weighted=True) for n in (50, 64, 81)]
POSITIVE = [(n, edges, abs(weights)) for n, edges, weights in WEIGHTED]
HELD = [growing_graph(12, 2, 8), random_graph(9, 0.3, 9)]
LARGE = [growing_graph(2300, 4, 5), growing_graph(2000, 2, 6)]


def watched(method, sha):
    """The method, its results hashed: of a lesson the loss."""

    def call(*args):
        result = method(*args)
        sha.update(np.asarray(getattr(result, "loss", result)).tobytes())
        return result

    return call


def trained(group, case, graphs, exchange="auto", cuts=None):
    """sha256 over the actions and losses of every step, the records, the last and the best weights."""
    sha = hashlib.sha256()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("act", "lesson"):
            patch.setattr(Agent, name, watched(getattr(Agent, name), sha))
        last = []
        result = train_policy(
            group, case, MinimumVertexCover(), make_blocks(group, graphs, exchange, cuts),
            make_blocks(group, HELD, exchange), Observers(
                lambda row: sha.update(repr(row).encode()),
                lambda step, weights: last.append(digest(weights)),
            ),
        )  # fmt: skip
    assert result.records[-1]["gradient_steps"] > 0
    assert len(set(last)) > 1  # it did learn
    sha.update(repr((last, digest(result.weights), result.best_step, result.best_total)).encode())
    return sha.hexdigest()


VARIANTS = {
    "default": (SHORT, SMALL),
    "n-step": (changed(SHORT, agent={"n_step": 3, "discount": 0.9, "loss": "huber"}), SMALL),
    "double": (changed(SHORT, agent={"double": True, "gradient_steps": 2}), SMALL),
    "environments": (changed(SHORT, train={"environments": 4}, agent={"reward_scale": "nodes"}), SMALL),
    "mixing": (changed(SHORT, policy={"head": "mixing", "layers": 3}, agent={"double": True}), SMALL),
    "hubs": (changed(SHORT, policy={"hub_degree": 1.5}), SMALL),
    "averaged": (changed(SHORT, agent={"average": 0.7, "learning_rate_end": 1e-4}), SMALL),
    "edge weights": (changed(SHORT, policy={"edge_weights": True}), WEIGHTED),
    "positive edge weights": (changed(SHORT, policy={"edge_weights": True}), POSITIVE),
    "shared": (changed(SHORT, policy={"shared_layers": True, "mean_degree": False, "layers": 1}), SMALL),
    "paper": (msgspec.structs.replace(SHORT, policy=PAPER_POLICY, agent=changed(SHORT, agent={
        "discount": 0.9, "learning_rate": 1e-4, "target_every": 1, "shaping": "none",
    }).agent), SMALL),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_the_ranks_train_what_one_process_trains(group, single, name):
    case, graphs = VARIANTS[name]
    assert trained(group, case, graphs) == trained(single, case, graphs)


FEW_STEPS = changed(SHORT, train={"steps": 7}, agent={"warmup": 3, "batch": 5, "epsilon_start": 0.5})
LARGE_VARIANTS = {
    "default": FEW_STEPS,
    "mixing": changed(FEW_STEPS, policy={"head": "mixing"}, agent={"n_step": 2}),
    "paper": msgspec.structs.replace(FEW_STEPS, policy=PAPER_POLICY),
}


@pytest.mark.parametrize("name", LARGE_VARIANTS)
def test_the_ranks_train_alike_on_large_graphs(group, single, name):
    """Every rank owns rows and many blocks, also of the smaller graph."""
    case = LARGE_VARIANTS[name]
    counts = make_blocks(group, LARGE)[1].rows.block_counts
    assert min(counts) > 40
    assert trained(group, case, LARGE) == trained(single, case, LARGE)


@pytest.mark.parametrize("name", ["double", "mixing"])
def test_compiled_kernels_train_what_plain_ones_train(compiled, name):
    """On ranks; test_the_ranks_train_what_one_process_trains compares them on one."""
    if MPI.COMM_WORLD.Get_size() == 1:
        pytest.skip("one rank trains what one process trains")
    case, graphs = VARIANTS[name]
    plain = HostDevice(compiled=False)
    found = {trained(Group(MPI.COMM_WORLD, device), case, graphs) for device in (compiled, plain)}
    assert len(found) == 1


@pytest.mark.parametrize("kernels", [True, False], ids=["host", "plain"])
@pytest.mark.parametrize(("case", "graphs"), [(SHORT, SMALL), (FEW_STEPS, LARGE)], ids=["small", "large"])
def test_the_ranks_train_alike_with_blas(kernels, case, graphs):
    """Dense products by BLAS in blocks of 8 rows."""
    device = HostDevice(portable=False, compiled=kernels)
    found = {trained(Group(comm, device), case, graphs) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)}
    assert len(found) == 1


# PART_ROWS and MOST_ROWS: at most two states of the small graphs, or one, or four of whatever size.
PARTS = {
    "default": (SHORT, SMALL, 150, 150),
    "double": (changed(SHORT, agent={"double": True, "n_step": 2}), SMALL, 1, 1),
    "mixing": (changed(SHORT, policy={"head": "mixing", "layers": 3}), SMALL, 150, 150),
    "shared": (changed(SHORT, policy={"shared_layers": True, "edge_weights": True}), WEIGHTED, 150, 150),
    "paper": (msgspec.structs.replace(SHORT, policy=PAPER_POLICY), SMALL, 200, 200),
    "large": (FEW_STEPS, LARGE, 5000, 5000),
    "four": (changed(SHORT, policy={"edge_weights": True}), SMALL, 1, 1 << 18),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_ranks_train_alike_in_parts(group, single, monkeypatch, name):
    """A minibatch of more than PART_ROWS rows goes through the network in parts."""
    case, graphs, part_rows, most_rows = PARTS[name]
    monkeypatch.setattr(agent_module, "PART_ROWS", part_rows)
    monkeypatch.setattr(agent_module, "MOST_ROWS", most_rows)
    states, learn_part = [], Agent._learn_part

    def learn(self, part, whole):
        states.append(part.batch.states)
        return learn_part(self, part, whole)

    monkeypatch.setattr(Agent, "_learn_part", learn)
    assert trained(group, case, graphs) == trained(single, case, graphs)
    steps = sum(states) // case.agent.batch
    assert steps > 2 * 2  # of two trainings, each of more than one gradient step
    assert len(states) > steps
    assert max(states) > 1 or name in ("double", "large")


def test_a_plain_sum_over_ranks_is_noticed(group, solo):
    """The digest test can fail: an all-reduce of floats gives other bits."""
    if group.size == 1:
        pytest.skip("one rank has nothing to sum")
    plain = Group(MPI.COMM_WORLD, group.device, reproducible=False)
    assert trained(plain, FEW_STEPS, LARGE) != trained(solo, FEW_STEPS, LARGE)


@pytest.mark.parametrize("graphs", [SMALL, LARGE], ids=["small", "large"])
def test_cuts_and_exchange_change_nothing(group, single, graphs):
    if group.size == 1 and graphs is LARGE:
        pytest.skip("one rank has no cuts, and its training is that of other tests")
    case = changed(FEW_STEPS, train={"steps": 10}) if graphs is SMALL else FEW_STEPS
    expected = trained(single, case, graphs)
    blocks = block_count(max(n for n, _, _ in graphs))
    draws = np.random.default_rng(1)
    skewed = [
        0,
        *[min(1, blocks)] * (group.size - 1),
        blocks,
    ]  # ranks with one block, with none, with all others
    drawn = [0, *np.sort(draws.integers(0, blocks + 1, group.size - 1)).tolist(), blocks]
    assert trained(group, case, graphs, "halo", skewed) == expected
    assert trained(group, case, graphs, "gather", drawn) == expected
    if group.size > 1:
        assert trained(group, case, graphs, "halo", drawn) == expected


@pytest.mark.parametrize(
    "change", [{"agent": {"replay": "bits"}}, {"train": {"environment": "scan"}}], ids=str
)
def test_what_is_for_comparison_only_trains_the_same(group, change):
    case = changed(SHORT, agent={"n_step": 3, "replay_capacity": 7}, train={"environments": 2})
    assert trained(group, changed(case, **change), SMALL) == trained(group, case, SMALL)


def test_another_seed_trains_otherwise(solo):
    other = msgspec.structs.replace(SHORT, seed=5)
    assert trained(solo, SHORT, SMALL) == trained(solo, SHORT, SMALL) != trained(solo, other, SMALL)


@pytest.mark.mpi_skip
def test_other_kernels_and_hash_seeds():
    """In OpenBLAS's Haswell kernels a row may depend on its neighbours; sets differ by hash seed.

    Without BLAS there is one digest, with it one for each of its kernels.
    """
    chains = set()
    for kernel in ("", "Haswell"):
        variables = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
        octets = set()
        for launch, seed in (([], "0"), (mpirun(2), "1")):
            code, printed = run_job([*launch, sys.executable, __file__], PYTHONHASHSEED=seed, **variables)
            assert code == 0, printed
            for start, found in (("chains ", chains), ("octets ", octets)):
                found |= {line for line in printed.splitlines() if line.startswith(start)}
        assert len(octets) == 1, octets
    assert len(chains) == 1, chains


# ---- the steps of Alg. 1 ------------------------------------------------------------------------------


def make_agent(group, graphs, policy=None, **keys):
    policy = policy or PolicyCase(dimension=3, hidden=4)
    net = QNetwork(policy, MinimumVertexCover())
    return Agent(group, AgentCase(**keys), net, make_blocks(group, graphs), seed=3, check_every=1)


def test_epsilon_decays_linearly(solo):
    agent = make_agent(solo, SMALL[:1], epsilon_start=0.9, epsilon_end=0.1, epsilon_decay_steps=8)
    found = [agent.epsilon(step) for step in (0, 2, 4, 8, 9, 1000)]
    assert found == pytest.approx([0.9, 0.7, 0.5, 0.1, 0.1, 0.1])


def flat_of(agent, params):
    return np.array(agent.group.device.get(params.flat))


def update(agent, gradient):
    agent.update(agent.group.device.put(gradient.astype(np.float32)))


def test_the_step_size_ends_where_it_shall(solo):
    agent = make_agent(solo, SMALL[:1], learning_rate=0.01, learning_rate_end=0.002)
    found = []
    for agent.progress in (0.0, 0.5, 1.0):
        before = flat_of(agent, agent.params)
        agent.optimiser = agent.new_optimiser(agent.params.size)
        update(agent, np.ones(agent.params.size))
        found.append(float(np.mean(before - flat_of(agent, agent.params))))
    assert found == pytest.approx([0.01, 0.006, 0.002], rel=1e-3)  # a first step of Adam is its step size
    assert make_agent(solo, SMALL[:1], learning_rate=0.01).rate() == 0.01


def test_the_policy_is_the_moving_average_of_the_weights(solo):
    agent = make_agent(solo, SMALL[:1], average=0.75)
    wanted = flat_of(agent, agent.params).astype(np.float64)
    for draw in range(6):
        update(agent, np.random.default_rng(draw).normal(size=agent.params.size))
        wanted = 0.75 * wanted + 0.25 * flat_of(agent, agent.params)
        assert np.allclose(flat_of(agent, agent.policy), wanted, rtol=1e-5, atol=1e-7)
        assert not np.array_equal(flat_of(agent, agent.policy), flat_of(agent, agent.params))
    plain = make_agent(solo, SMALL[:1])
    assert plain.policy is plain.params
    # A later learner goes on from both.
    later = make_agent(solo, SMALL[:1], average=0.75)
    later.restore(agent.state())
    assert np.array_equal(flat_of(later, later.policy), flat_of(agent, agent.policy))
    assert {"the average"} == {*agent.replicas()} - {*plain.replicas()}


def test_the_averaged_weights_are_those_evaluated_and_kept(solo):
    case = changed(SHORT, agent={"average": 0.9}, train={"steps": 30, "evaluate_every": 10})
    kept, seen = {}, []
    train = partial(train_policy, solo, problem=MinimumVertexCover(), blocks=make_blocks(solo, SMALL))
    result = train(
        case=case, held_back=make_blocks(solo, HELD),
        observers=Observers(snapshot=lambda step, w: kept.setdefault(step, w)),
    )  # fmt: skip
    assert digest(result.weights) == digest(kept[result.best_step])
    # The same steps without an average learn the same and keep other weights.
    plain = train(
        case=changed(case, agent={"average": 0.0}), held_back=make_blocks(solo, HELD),
        observers=Observers(snapshot=lambda step, weights: seen.append(digest(weights))),
    )  # fmt: skip
    assert [row["loss"] for row in result.records[1:]] == [row["loss"] for row in plain.records[1:]]
    assert digest(kept[30]) != seen[-1]


def test_acting_greedily_is_the_best_score_and_exploring_uniform(group):
    envs = [GraphEnv(group, block, MinimumVertexCover()) for block in make_blocks(group, SMALL[:2])]
    agent = make_agent(group, SMALL[:2], epsilon_start=0.0, epsilon_end=0.0)
    w = {name: array.astype(float) for name, array in agent.params.host().items()}
    best = []
    for graph in SMALL[:2]:
        candidates = dense(graph)[0].any(axis=1)
        scores = reference(agent.net.policy, w, graph, [])
        best.append(int(np.where(candidates, scores, -np.inf).argmax()))
    for step in range(3):
        assert agent.act(envs, [0, 1], step).tolist() == best
    agent = make_agent(group, SMALL[:2], epsilon_start=1.0, epsilon_end=1.0)
    envs = [
        GraphEnv(group, block, MinimumVertexCover())
        for block in make_blocks(group, [listed(40, (2, 3), (3, 39)), SMALL[1]])
    ]
    drawn = [agent.act(envs, [0, 1], step).tolist() for step in range(150)]
    counts = np.bincount([a for a, _ in drawn], minlength=40)
    assert set(np.flatnonzero(counts)) == {2, 3, 39}
    assert counts[[2, 3, 39]].min() > 30
    assert len({b for _, b in drawn}) > 50


def four_transitions(graphs):
    """Two of each graph, the last one into the end of its episode."""
    before = [[], [0, 5], [3], list(range(1, 17))]
    after = [[4], [0, 5, 1], [3, 0], list(range(17))]
    which, nodes = [0, 0, 1, 1], [4, 1, 0, 0]
    assert not residual(dense(graphs[1])[0], after[3]).any()
    states = [
        [totals_of(residual(dense(graphs[g])[0], r)) for g, r in zip(which, part)] for part in (before, after)
    ]
    returns, discounts = np.array([-1, -2, 0.5, -1]), np.array([0.5, 0.25, 0.5, 0.5])
    return Sample(
        np.array(which), np.array(nodes), returns.astype(np.float32), discounts.astype(np.float32),
        [np.array(r, dtype=np.int64) for r in before], [np.array(r, dtype=np.int64) for r in after], *states,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("part_rows", "most_rows", "cuts"),
    [
        (1 << 15, 1 << 18, [4]),
        (40, 40, [1, 2, 1]),
        (44, 44, [2, 2]),
        (1, 1, [1, 1, 1, 1]),
        (1, 1 << 18, [4]),
        (1, 61, [3, 1]),
        (1, 60, [2, 2]),
        (30, 20, [1, 1, 1, 1]),
        (39, 20, [1, 2, 1]),
    ],
)
def test_a_sample_is_cut_into_parts_of_consecutive_states(group, monkeypatch, part_rows, most_rows, cuts):
    """At most PART_ROWS rows of all ranks, or four states of at most MOST_ROWS, or one state."""
    graphs = [growing_graph(22, 2, 1), random_graph(17, 0.3, 2)]
    monkeypatch.setattr(agent_module, "PART_ROWS", part_rows)
    monkeypatch.setattr(agent_module, "MOST_ROWS", most_rows)
    parts = list(make_agent(group, graphs)._cut(four_transitions(graphs)))
    assert [part.cut.stop - part.cut.start for part in parts] == cuts
    assert [part.batch.states for part in parts] == cuts
    assert [part.cut.start for part in parts] == [0, *np.cumsum(cuts)[:-1].tolist()]
    sizes = [[part.batch.blocks[g].n for g in part.batch.member_of_state] for part in parts]
    assert [n for part in sizes for n in part] == [22, 22, 17, 17]


def test_at_most_four_states_of_a_larger_graph_go_together(group, monkeypatch):
    graphs = [growing_graph(22, 2, 1), random_graph(17, 0.3, 2)]
    monkeypatch.setattr(agent_module, "PART_ROWS", 1)
    sample = dataclasses.replace(four_transitions(graphs), graphs=np.repeat([0, 1], [6, 3]))
    parts = list(make_agent(group, graphs)._cut(sample))
    assert [(part.cut.start, part.cut.stop) for part in parts] == [(0, 4), (4, 8), (8, 9)]
    assert [part.batch.counts for part in parts] == [[4], [2, 2], [1]]


@pytest.mark.parametrize("part_rows", [1 << 15, 40, 1])
@pytest.mark.parametrize(
    ("head", "loss", "double"),
    [("separate", "squared", False), ("separate", "huber", True), ("mixing", "squared", True)],
)
def test_loss_and_step_are_those_of_the_equations(group, monkeypatch, head, loss, double, part_rows):
    """Target r + discount * max Q_target(s'), 0 at the end; double: at Q's argmax. Then one Adam step."""
    monkeypatch.setattr(agent_module, "PART_ROWS", part_rows)
    monkeypatch.setattr(agent_module, "MOST_ROWS", part_rows)
    graphs = [growing_graph(22, 2, 1), random_graph(17, 0.3, 2)]
    policy = PolicyCase(dimension=3, hidden=4, head=head)
    agent = make_agent(group, graphs, policy, loss=loss, double=double, learning_rate=0.01, target_every=2)
    agent.target.draw_glorot(77)
    sample = four_transitions(graphs)
    w, w_target = ({k: a.astype(float) for k, a in p.host().items()} for p in (agent.params, agent.target))
    target = []
    for g, removed, r, discount in zip(sample.graphs, sample.after, sample.returns, sample.discounts):
        candidates = residual(dense(graphs[g])[0], removed).any(axis=1)
        values, online = (reference(policy, x, graphs[g], removed) for x in (w_target, w))
        chooser = online if double else values
        best = np.where(candidates, chooser, -np.inf).argmax()
        target.append(r + (discount * values[best] if candidates.any() else 0))

    def mean_loss(w):
        states = zip(sample.graphs, sample.before, sample.nodes)
        q = [reference(policy, w, graphs[g], r)[..., v] for g, r, v in states]
        e = np.abs(np.stack(q, axis=-1) - target)
        return np.mean(e**2 if loss == "squared" else np.where(e <= 1, e**2 / 2, e - 0.5), axis=-1)

    gradients, update = [], agent.optimiser.update
    monkeypatch.setattr(agent.optimiser, "update", lambda flat, g: gradients.append(g) or update(flat, g))
    found = agent.learn(sample)
    assert found == pytest.approx(mean_loss(w), rel=1e-4)
    expected, gradient = slopes(mean_loss, w), group.device.get(gradients[0])
    for name, part in agent.params.slices.items():
        close(gradient[part].reshape(w[name].shape), expected[name], name)
    # Adam's first step has the length of the rate, against the sign of the gradient.
    for name, array in agent.params.host().items():
        sloping = np.abs(expected[name]) > 1e-4
        assert sloping.any()
        step = -0.01 * np.sign(expected[name][sloping])
        assert (array - w[name])[sloping] == pytest.approx(step, rel=1e-3), name
    # The target network is copied every second step.
    assert digest(agent.target.host()) != digest(agent.params.host())
    agent.learn(sample)
    assert digest(agent.target.host()) == digest(agent.params.host())


# ---- what ends a training -----------------------------------------------------------------------------


def test_a_training_that_diverges_ends_on_all_ranks(group):
    case = changed(SHORT, agent={"learning_rate": 1e30})
    with np.errstate(all="ignore"), pytest.raises(NumericsError, match=r"agent\.learning_rate"):
        trained(group, case, SMALL)


def test_graphs_without_edges_are_passed_over_or_refused(group):
    assert trained(group, SHORT, [listed(30), growing_graph(33, 2, 1), listed(1)])
    with pytest.raises(GraphError, match="none of them has an edge"):
        trained(group, SHORT, [listed(30), listed(1)])


def test_warmup_of_nothing_waits_for_the_first_transition(group):
    assert trained(group, changed(SHORT, agent={"warmup": 0, "n_step": 4}), SMALL)


def test_more_environments_than_the_memory_holds(group):
    case = changed(SHORT, agent={"replay_capacity": 3, "warmup": 2}, train={"environments": 5})
    assert trained(group, case, [listed(20, (0, 1), (5, 6)), growing_graph(20, 2, 2)])


def test_replicas_that_differ_end_a_training(group):
    """The weights are compared every check_every gradient steps."""
    if group.size == 1:
        pytest.skip("one rank has nothing to compare")
    agent = make_agent(group, SMALL[:1], warmup=1, batch=2)
    env = GraphEnv(group, agent.blocks[0], MinimumVertexCover())
    number = agent.replay.begin(0, env.totals)
    step_together(group, [env], [np.array([0])])
    agent.replay.remember(number, 0, -1.0, env.totals, False)
    sample = agent.replay.sample(np.random.default_rng(1), 2)
    agent.learn(sample)
    if group.rank == group.size - 1:
        agent.params.flat[-1:] += 0.001
    with pytest.raises(
        NumericsError, match=rf"the weights after 2 gradient steps: rank {group.size - 1} differs from rank 0"
    ):
        agent.learn(sample)


# ---- it learns ----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_600_steps_beat_the_largest_degree():
    """600 steps on small graphs of preferential attachment, covers of graphs held back."""
    group = Group(MPI.COMM_SELF, HostDevice())
    graphs = [growing_graph(50 + 5 * i, 4, 100 + i) for i in range(10)]
    held = [growing_graph(50 + 5 * i, 4, 200 + i) for i in range(10)]
    case = Case(
        seed=1,
        agent=AgentCase(epsilon_decay_steps=400, target_every=50),
        train=TrainCase(steps=600, evaluate_every=100),
    )
    held_blocks = make_blocks(group, held)
    result = train_policy(group, case, MinimumVertexCover(), make_blocks(group, graphs), held_blocks)
    greedy = sum(int(max_degree(from_edges(n, *edges.T))[0].sum()) for n, edges, _ in held)
    assert result.records[0]["held_back_nodes"] > greedy > result.best_total
    # The weights kept are those of the best evaluation.
    params = Parameters(group.device, result.net.shapes())
    params.set(result.weights)
    envs = rolled_out_one_at_a_time(group, result.net, params, held_blocks)
    assert sum(env.steps for env in envs) == result.best_total
    assert [row["step"] for row in result.records] == [0, 100, 200, 300, 400, 500, 600]
    assert result.best_total == min(row["held_back_nodes"] for row in result.records)


def test_a_ratio_counts_a_graph_of_few_choices_as_much_as_one_of_many():
    """Covers of 10 and 1000 nodes, then 9 and 1003: the sum is worse, the mean of the ratios better."""
    before = Training(None, {}, 0, 1010, [10, 1000])
    cover, set_ = MinimumVertexCover(), make_problem("mis")
    assert [_does_better(cover, [9, 1003], before, judge) for judge in ("total", "ratio")] == [False, True]
    assert [_does_better(set_, [9, 1003], before, judge) for judge in ("total", "ratio")] == [True, False]
    assert not any(_does_better(cover, [10, 1000], before, judge) for judge in ("total", "ratio"))
    below = Training(None, {}, 0, 0, [-10, -1000])
    assert [_does_better(cover, each, below, "ratio") for each in ([-11, -990], [-9, -1010])] == [True, False]
    assert not _does_better(cover, [0, 0], Training(None, {}, 0, 0, [0, 0]), "ratio")


def test_a_ratio_of_objectives_below_one_is_one():
    """Cuts of 0.2 and 0.01, then 0.19 and 0.02: 5 % less, and twice as much."""
    before = Training(None, {}, 0, 0.21, [0.2, 0.01])
    assert _does_better(make_problem("maxcut"), [0.15, 0.02], before, "ratio")


def test_graphs_that_are_solved_before_the_first_choice_are_refused(group):
    """Forests have no cycle to break: to look for one to begin with would never end."""
    blocks = make_blocks(group, [listed(5, (0, 1), (1, 2)), listed(9, (3, 4))])
    with pytest.raises(GraphError, match=r"in none of them is anything to choose.*train\.graphs"):
        train_policy(group, SHORT, make_problem("fvs"), blocks, [])


def test_graphs_are_judged_by_their_objectives_whatever_unit_their_weights_have(group):
    """One graph has weights of whole numbers, the other the same and a 64th: cuts are told, and summed, as
    they are, not in units of each graph's weights."""
    n, edges, _ = growing_graph(16, 2, 3)
    whole = np.arange(1, len(edges) + 1, dtype=np.float32)
    held = [(n, edges, whole), (n, edges, whole + np.float32(1 / 64))]
    case = Case(train=TrainCase(steps=4, evaluate_every=4), agent=AgentCase(warmup=8))
    blocks = make_blocks(group, held)
    trained = train_policy(group, case, make_problem("maxcut"), blocks[:1], blocks)
    first, second = trained.best_values
    assert 0 < first <= whole.sum() and first == int(first)
    assert 0 < second <= (whole + 1 / 64).sum() and second * 64 == int(second * 64)
    assert trained.best_total == trained.records[0]["held_back_nodes"] == first + second
    assert isinstance(trained.records[0]["held_back_nodes"], int if second == int(second) else float)


@pytest.mark.parametrize(("name", "unit"), [("maxcut", 64), ("qubo", 64), ("ising", 64), ("mvc", 1)])
def test_what_is_learned_and_plain_rules_are_told_in_one_unit(group, name, unit):
    """Of weights in 64ths: no total is as large as it is in 64ths."""
    settings = {
        "run.task": "train", "problem.name": name, "graph.generator": "er", "graph.nodes": 14, "graph.p": 0.3,
        "graph.edge_weights": "normal" if unit > 1 else "one", "graph.count": 2, "train.steps": 4,
        "train.evaluate_graphs": 2, "seed": 2, "run.device": "cpu",
    }  # fmt: skip
    found = run_train(Context(build(settings), group, Log(False), None))["held_back"]
    assert found.pop("graphs") == 2 and len(found) > 2
    most = 2 * 14 * 13 / 2 * 0.5  # far more than the sum of |weights| of both; one edge is 64 in 64ths
    assert all(abs(value) < most for value in found.values())
    assert max(abs(value) for value in found.values()) > 1
    if unit > 1:
        assert any(value != int(value) for value in found.values())


def test_graphs_held_back_without_an_edge_are_refused(group):
    """Of cliques the blocks are those of complements."""
    blocks = make_blocks(group, [growing_graph(9, 2, 1), listed(5)])
    for name, said in (("mvc", "has an edge"), ("clique", "lacks an edge")):
        with pytest.raises(GraphError, match=f"held-back graphs: none of them {said}"):
            train_policy(group, Case(), make_problem(name), blocks[:1], blocks[1:])


@pytest.mark.parametrize("judge", ["total", "ratio"])
def test_the_weights_that_are_kept_are_the_same_on_any_grid(group, judge):
    """The last weights that did better than all that were kept before them, whoever played which graph."""
    graphs = [growing_graph(20 + 5 * i, 2, 100 + i) for i in range(6)]
    held = [growing_graph(n, 2, 200 + n) for n in (8, 30, 12, 40, 10)]
    train = TrainCase(steps=45, evaluate_every=15, judge=judge)
    case = Case(seed=1, agent=AgentCase(batch=8), train=train, parallel=ParallelCase(data=4))

    def kept(grid):
        blocks = [make_blocks(grid.group, each) for each in (graphs, held)]
        result = train_policy(grid.group, case, MinimumVertexCover(), *blocks, grid=grid)
        return digest(result.weights), result.best_step, result.best_values, repr(result.records)

    found = kept(cut_grid(group, 4, 1))
    assert len(found[2]) == 5
    assert kept(cut_grid(group, 4, group.size)) == found


if __name__ == "__main__":
    for kind in ("chains", "octets"):
        world = Group(MPI.COMM_WORLD, HostDevice(portable=kind == "chains"))
        digests = trained(world, SHORT, SMALL), trained(world, FEW_STEPS, LARGE)
        if world.rank == 0:
            print(kind, *digests)
