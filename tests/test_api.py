"""The Python interface: what a notebook sees, on any number of ranks."""

import importlib.util
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import ROOT
from mpi4py import MPI

from app import TrainingRun, solve, train
from app.errors import CaseError, GraphError
from app.rl.learners import LEARNERS

TINY = {
    "train.graphs.generator": "ba",
    "train.graphs.nodes": (20, 30),
    "train.graphs.count": 6,
    "train.steps": 120,
    "train.evaluate_graphs": 3,
    "run.device": "cpu",
}


def covers(graph, nodes):
    chosen = set(nodes)
    return all(u in chosen or v in chosen for u, v in graph.edges)


def test_a_networkx_graph_is_answered_in_its_own_labels():
    graph = nx.les_miserables_graph()
    solution = solve(graph, settings={"run.device": "cpu"})
    assert covers(graph, solution.nodes)
    assert solution.objective == len(set(solution.nodes))
    assert solution.bound <= 42 <= solution.objective
    assert solution.feasible and solution.baselines["max degree"] >= solution.bound
    assert solution.gap == pytest.approx((solution.objective - solution.bound) / solution.bound, abs=1e-6)


def test_a_scipy_matrix_and_a_file_give_the_answer_of_the_same_graph(tmp_path_factory):
    graph = nx.gnp_random_graph(60, 0.1, seed=3)
    matrix = nx.to_scipy_sparse_array(graph, dtype=np.float32)
    one, two = solve(graph), solve(sp.coo_array(matrix))
    assert covers(graph, one.nodes)
    assert one.nodes == two.nodes


def test_a_graph_without_nodes_or_edges_needs_nothing():
    for graph in (nx.Graph(), nx.empty_graph(5)):
        solution = solve(graph)
        assert (solution.nodes, solution.objective, solution.bound, solution.gap) == ([], 0, 0, 0.0)


def test_what_was_trained_can_be_used_and_saved(tmp_path):
    trained = train(TINY)
    again = train(TINY)
    assert trained.digest == again.digest
    assert train({**TINY, "seed": 9}).digest != trained.digest
    graph = nx.barabasi_albert_graph(80, 3, seed=1)
    direct = solve(graph, weights=trained)
    assert covers(graph, direct.nodes)
    path = tmp_path / "weights.npz"
    trained.save(str(path))
    assert solve(graph, weights=str(path)).nodes == direct.nodes


def test_a_training_run_is_one_line():
    table = {key.removeprefix("train.graphs."): TINY[key] for key in TINY if key.startswith("train.graphs.")}
    rest = {"steps": 120, "evaluate_graphs": 3}
    found = TrainingRun(problem="mvc", graphs=table, train=rest, run={"device": "cpu"}).run()
    assert found.digest == train(TINY).digest


@pytest.mark.parametrize("learner", ["dqn", "ppo", "reinforce"])
def test_a_training_run_takes_graphs_and_a_learner(learner):
    """Networks of NetworkX, matrices, of which the last fifth is held back."""
    graphs = [nx.gnp_random_graph(20 + i, 0.2, seed=i) for i in range(9)]
    graphs.append(nx.to_scipy_sparse_array(nx.gnp_random_graph(25, 0.2, seed=30)))
    agent = {"rollout_steps": 64, "rollouts": 4, "learning_rate": 0.01, "warmup": 16}
    run = {"train": {"steps": 300, "environments": 4, "evaluate_every": 100}, "seed": 3}
    policy = TrainingRun(graphs=graphs, learner=learner, agent=agent, **run).run()
    assert policy.problem == "mvc"
    assert policy.records[-1]["gradient_steps"] > 0
    graph = nx.gnp_random_graph(60, 0.1, seed=3)
    assert covers(graph, solve(graph, weights=policy).nodes)


def test_a_training_run_is_refused_as_settings_are():
    with pytest.raises(CaseError, match="training needs graphs"):
        TrainingRun()
    with pytest.raises(CaseError, match="no training graphs"):
        TrainingRun(graphs=[]).run()
    with pytest.raises(CaseError, match="unknown learner 'sarsa'"):
        TrainingRun(graphs=[nx.path_graph(4)], learner="sarsa")
    with pytest.raises(CaseError, match=r"agent\.rolouts.*rollouts"):
        TrainingRun(graphs=[nx.path_graph(4)], agent={"rolouts": 4})


@pytest.fixture
def example():
    """The module examples/own_learner.py, its learner forgotten afterwards."""
    spec = importlib.util.spec_from_file_location("own_learner", ROOT / "examples" / "own_learner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    LEARNERS.pop("imitation", None)


def test_the_example_learns_more_than_it_began_with(example, capsys):
    """A learner of one's own through the public interface, the same on any ranks."""
    if MPI.COMM_WORLD.size > 3:
        pytest.skip("three ranks show it")
    example.main()
    first, *_ = printed = capsys.readouterr().out.splitlines() or [""]
    if MPI.COMM_WORLD.rank > 0:
        assert first == ""
        return
    totals = [int(number) for number in re.findall(r"(\d+) \(step", first)]
    assert max(totals) > totals[0] * 1.1
    assert "a graph of 300 nodes" in printed[1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"select.rul": "single"}, "rul"), ({"train.steps": -1}, "steps"), ({"select.rule": "best"}, "best")],
)
def test_wrong_settings_are_named(settings, said):
    with pytest.raises(CaseError, match=said):
        solve(nx.path_graph(4), settings=settings)


def test_what_is_no_graph_is_refused():
    with pytest.raises(GraphError, match="NetworkX"):
        solve([1, 2, 3])
    with pytest.raises(GraphError, match="square"):
        solve(sp.csr_array((2, 3)))
    with pytest.raises(GraphError, match="no-such-file"):
        solve("no-such-file.txt")
