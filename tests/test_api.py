"""The Python interface: what a notebook sees, on any number of ranks."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from app import solve, train
from app.errors import CaseError, GraphError

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
