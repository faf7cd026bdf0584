"""bench/: the PyTorch reference computes our numbers, and the harness its ratios."""

import json

import numpy as np
import pytest
import scipy.sparse
from helpers import growing_graph, make_blocks, random_graph
from mpi4py import MPI

from app.case.policy import AgentCase, PolicyCase
from app.comm.group import Group
from app.device import HostDevice
from app.problems.mvc import MinimumVertexCover
from app.recipes import PAPER_AGENT, PAPER_POLICY
from app.rl.agent import Agent
from app.rl.env import GraphEnv, step_together
from app.rl.learner import score_environments
from app.rl.qnet import QNetwork
from app.rng import stream
from app.sparse.batch import StateBatch
from bench import harness

pytestmark = [pytest.mark.mpi_skip, pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")]
GRAPHS = {"random": random_graph(61, 0.2, 3), "growing": growing_graph(90, 3, 4)}
CASES = {"paper": (PAPER_POLICY, PAPER_AGENT), "default": (PolicyCase(), AgentCase(target_every=2))}
FORMS = ("coo", "stacked", "csr")


def close(theirs, ours):
    """Equal to 1e-4 of the largest entry."""
    ours = np.asarray(ours)
    assert np.abs(np.asarray(theirs) - ours).max() <= 1e-4 * np.abs(ours).max()


@pytest.fixture(params=GRAPHS)
def block(request):
    return make_blocks(Group(MPI.COMM_SELF, HostDevice()), [GRAPHS[request.param]])[0]


def both_sides(block, recipe, form):
    """Our learner after one episode of random choices, and PyTorch's with the same weights."""
    pytest.importorskip("torch", reason="the extra bench is not installed")
    from bench.opponents import torch_agent

    group = Group(MPI.COMM_SELF, HostDevice())
    policy, case = CASES[recipe]
    agent = Agent(group, case, QNetwork(policy, MinimumVertexCover()), [block], 5, 0)
    env = GraphEnv(group, block, MinimumVertexCover())
    episode = agent.replay.begin(0, env.totals)
    draws = np.random.default_rng(6)
    while env.totals.degree_sum:
        node = draws.choice(env.candidates_own(), 1)
        step_together(group, [env], [node])
        done = env.totals.degree_sum == 0
        agent.replay.remember(episode, int(node[0]), -draws.random(), env.totals, done)
    return agent, torch_agent(form, block, agent)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recipe", CASES)
def test_scores(block, recipe, form):
    from bench.subjects import state_after

    agent, reference = both_sides(block, recipe, form)
    order = np.array(agent.replay.episodes[0].actions)
    batch = StateBatch(agent.group, [(block, 1)])
    for removed in (order[:0], order[:7], order[:20]):
        env = state_after(agent.group, block, removed)
        scores, candidate = score_environments(agent.net, agent.params, batch, [env])
        states = reference.graph.states(form, [removed], [env.totals])
        theirs = reference.net.scores(states).detach().numpy()[0]
        chosen = np.flatnonzero(candidate[: block.n])
        # Ours leave out what all nodes of a state share.
        close(theirs[chosen] - theirs[chosen[0]], scores[chosen] - scores[chosen[0]])
        best = reference.evaluate(states)
        assert scores[best] >= scores[chosen].max() - 1e-4 * np.abs(scores[chosen]).max()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recipe", CASES)
def test_training_steps(block, recipe, form):
    agent, reference = both_sides(block, recipe, form)
    gradients, update = [], agent.optimiser.update

    def keep_and_update(flat, gradient):
        gradients.append(gradient.copy())
        update(flat, gradient)

    agent.optimiser.update = keep_and_update
    for step in range(3):
        sample = agent.replay.sample(stream(7, "sample", step), 6)
        loss = agent.learn(sample)
        close(reference.learn(sample), loss)
        for name, weight in reference.net.weights.items():
            close(weight.grad.numpy().reshape(-1), gradients[-1][agent.params.slices[name]])


def test_a_stored_target_is_the_computed_one(block):
    _, reference = both_sides(block, "paper", "csr")
    _, other = both_sides(block, "paper", "csr")
    agent, _ = both_sides(block, "paper", "csr")
    sample = agent.replay.sample(stream(7, "sample", 0), 6)
    assert other.learn(sample, reference.targets(sample)) == reference.learn(sample)


@pytest.mark.parametrize(("layers", "dimension"), [(2, 16), (3, 16), (2, 64)])
def test_a_policy_of_any_size_scores_much_as_the_one_hop_formula(block, layers, dimension):
    from bench import subjects

    group = Group(MPI.COMM_SELF, HostDevice())
    batch, env = StateBatch(group, [(block, 1)]), GraphEnv(group, block, MinimumVertexCover())
    net, arrays = subjects.formula_network(layers, dimension)
    scores = score_environments(net, subjects.parameters(group, net, arrays), batch, [env])[0][: block.n]
    indptr, indices = block.host_rows()
    stored = np.ones(len(indices)), indices, indptr
    A = scipy.sparse.csr_matrix(stored, shape=(len(indptr) - 1, block.n_ext)).toarray()[: block.n]
    formula = A[:, : block.n] @ (1 / np.maximum(A.sum(axis=1), 1) ** 2)
    assert np.corrcoef(scores, formula)[0, 1] > 0.9


def test_ratios_of_pairs():
    calls = []
    ours, theirs = harness.alternate(
        lambda i: calls.append(("ours", i)), lambda i: calls.append(("theirs", i)), harness.Effort(3, 1, 60.0)
    )
    assert len(ours) == len(theirs) == 3
    assert {name for name, _ in calls} == {"ours", "theirs"}
    assert harness.record("a", "b", [1.0, 2.0, 1.0], [3.0, 4.0, 5.0]).ratio == [2.5, 3.0, 4.0]


def test_the_section_is_written_between_its_markers(tmp_path):
    document = tmp_path / "measurements.md"
    document.write_text("# Measurements\n\n## Quality\n\ntext\n", "utf-8")
    for ratio in (3.0, 6.0):
        record = harness.Record("case", "other", [ratio] * 3, 5, 0.001, 0.003, ">= 5")
        harness.save("first", [record], "make bench", {"numpy": "2"}, tmp_path)
        harness.write_section({"first": "First part", "absent": "Not run"}, tmp_path, document)
        assert json.loads((tmp_path / "first.json").read_text("utf-8"))["records"][0]["met"] is (ratio > 5)
    text = document.read_text("utf-8")
    assert text.count("## Speed") == text.count("### First part") == text.count(harness.END) == 1
    assert ">= 5, met" in text and "missed" not in text
    assert text.startswith("# Measurements\n\n## Quality\n\ntext\n\n## Speed")
    (tmp_path / "first.json").rename(tmp_path / "second.json")  # another part
    harness.write_section({"second": "Second part", "first": "First part"}, tmp_path, document)
    both = document.read_text("utf-8")
    assert both.count("### First part") == both.count("### Second part") == both.count("## Quality") == 1
    assert both.count("| case | other |") == 2
    harness.write_section({"second": "Second part", "first": "First part"}, tmp_path / "none", document)
    assert document.read_text("utf-8") == both
