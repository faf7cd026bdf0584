"""What callers of the Python interface hand in: the same on all ranks, of known kinds, named once."""

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from mpi4py import MPI

from app import TrainingRun, classify, classify_relational, predict_links, solve
from app.api.given import digest_of_names
from app.errors import CaseError, GraphError, LockstepError

RANK = MPI.COMM_WORLD.Get_rank()
QUICK = {"search.steps": 50, "run.device": "cpu"}
EDGES = [("ann", "bob"), ("bob", "cid"), ("cid", "dan"), ("dan", "ann"), ("ann", "eve")]
TRIPLES = [("a", "likes", "b"), ("b", "likes", "c"), ("c", "hates", "a"), ("d", "hates", "a")]


def other(first, second):
    """The first on rank 0, the second elsewhere."""
    return first if RANK == 0 else second


def of_edges(edges):
    graph = nx.Graph()
    graph.add_edges_from(edges)
    return graph


DIFFERENT = {
    "nodes": lambda: solve(of_edges(other(EDGES, EDGES[::-1])), settings=QUICK),
    "edges": lambda: solve(other(nx.path_graph(5), nx.star_graph(4)), settings=QUICK),
    "edges ": lambda: solve(sp.csr_array(nx.to_numpy_array(other(nx.path_graph(5), nx.star_graph(4))))),
    "node_weights": lambda: solve(nx.path_graph(3), node_weights=other([1, 2, 3], [1, 2, 4]), settings=QUICK),
    "inside": lambda: solve(nx.path_graph(3), inside=other([0], [1]), settings=QUICK),
    "graph": lambda: solve(other("networkx:karate_club", nx.path_graph(4)), settings=QUICK),
    "graphs": lambda: TrainingRun(graphs=[nx.path_graph(4)] * other(3, 4)),
    "labels": lambda: classify(nx.path_graph(4), labels=other([0, 1, 0, 1], [0, 1, 1, 1]), train=[0, 1]),
    "features": lambda: classify(nx.path_graph(4), np.eye(4) * other(1, 2), [0, 1, 0, 1], train=[0, 1]),
    "train, val, test": lambda: classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=other([0, 1], [0, 3])),
    "triples": lambda: predict_links(other(TRIPLES, [*TRIPLES[:3], ("d", "hates", "b")])),
    "relations": lambda: predict_links([(s, other(r, r.upper()), o) for s, r, o in TRIPLES]),
    "names of classes": lambda: classify_relational(
        TRIPLES, labels=other({"a": "x", "b": "y"}, {"a": "x", "b": "z"}), train=["a", "b"]
    ),
}


@pytest.mark.skipif(MPI.COMM_WORLD.Get_size() == 1, reason="one rank has nobody to differ from")
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_named_on_all_ranks(name):
    with pytest.raises(GraphError, match=f"^{name.strip()}: rank 1 was given other ones than rank 0"):
        DIFFERENT[name]()


@pytest.mark.mpi_skip
def test_objects_without_a_value_are_told_apart_by_their_kinds():
    class City:
        pass

    assert digest_of_names([City(), 1]) == digest_of_names([City(), 1])
    assert digest_of_names([("a", 1)]) != digest_of_names([("a", 2)]) != digest_of_names([City()])
    assert digest_of_names(["1"]) != digest_of_names([1])


@pytest.mark.mpi_skip
@pytest.mark.parametrize("comm", [MPI.COMM_NULL, 3, "x"])
def test_what_is_no_communicator_is_refused(comm):
    with pytest.raises(CaseError, match=r"comm: found .*; a communicator of the ranks that call"):
        solve(nx.path_graph(3), comm=comm)


PATH = nx.path_graph(5)
WRONG = {
    "graph.features: the argument": lambda: classify(PATH, settings={"graph.features": __file__}),
    "graph.path: the argument": lambda: solve(PATH, settings={"graph.path": "networkx:karate_club"}),
    "run.task: must be": lambda: solve(PATH, settings={"run.task": "classify"}),
    "weights: found": lambda: solve(PATH, weights=3),
    "graph: found an array of 3 edges|graph: found node number 3000000000": lambda: solve(
        np.array([[0, 3_000_000_000], [1, 2], [2, 3]])
    ),
    "node_weights: found": lambda: solve(PATH, node_weights=5),
    "node_weights: found ": lambda: solve(PATH, node_weights={1, 2, 3}),
    "node_weights: found  ": lambda: solve(PATH, node_weights=sp.csr_array(np.ones((1, 5)))),
    "the weight of node 0 is NaN or infinite": lambda: solve(PATH, node_weights=[10**400] * 5),
    "holds weights beyond": lambda: solve(sp.csr_array([[0, 1e300], [1e300, 0]]), "maxcut"),
    "inside: found True": lambda: solve(PATH, inside=np.array([True, False, False, False, False])),
    "inside: found": lambda: solve(sp.csr_array(nx.to_numpy_array(PATH)), inside=[[0], [1, 2]]),
    "inside: found ": lambda: solve(sp.csr_array(nx.to_numpy_array(PATH)), inside=[2**63]),
    "learner: found": lambda: TrainingRun(learner=None),
    "graphs: found": lambda: TrainingRun(graphs=3),
    "graphs: found ": lambda: TrainingRun(graphs=PATH),
    "train.graphs: given beside": lambda: TrainingRun(
        graphs=[PATH], train={"graphs": {"generator": "ba", "nodes": 9}}
    ),
    "agent": lambda: TrainingRun(agent=3),
    "a NetworkX graph, a SciPy": lambda: solve(nx.Graph),
    "triples: found": lambda: classify_relational(sp.csr_array(np.ones((3, 3))), labels=[0]),
    "relation: found": lambda: predict_links(nx.MultiDiGraph([(0, 1)]), relation=[]),
    "train: found 9; a node": lambda: classify(nx.path_graph([1, 2, 3]), labels=[0, 1, 0], train=[1, 9]),
}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("said", WRONG)
def test_wrong_kinds_are_named(said):
    with pytest.raises((CaseError, GraphError), match=said.strip()):
        WRONG[said]()


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore:classify. all 4 nodes")
def test_whole_numbers_that_are_labels_name_nodes():
    """Nodes 1..4: a mapping of labels and the sets go by the same names."""
    graph = nx.path_graph([4, 1, 2, 3])
    settings = {"gnn.epochs": 3, "seed": 1, "run.device": "cpu"}
    labels, (train, test) = {4: 0, 1: 1, 2: 0, 3: 1}, ([4, 1], np.array([2, 3]))
    by_label = classify(graph, labels=labels, train=train, test=test, settings=settings)
    train, test = [True, True, False, False], np.arange(4) > 1
    by_mask = classify(graph, labels=[0, 1, 0, 1], train=train, test=test, settings=settings)
    assert by_label.digest == by_mask.digest and by_label.scores.keys() == by_mask.scores.keys()
    texts = nx.relabel_nodes(graph, str)
    by_row = classify(texts, labels=[0, 1, 0, 1], train=[0, 1], test=[2, 3], settings=settings)
    assert by_row.digest == by_label.digest  # labels that are no numbers: rows


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_paths_and_generators_are_taken(tmp_path):
    dense = np.asmatrix(nx.to_numpy_array(PATH))
    assert solve(dense, settings=QUICK).objective == 2
    weights = (weight for weight in [1, 9, 1, 9, 1])
    assert solve(PATH, node_weights=weights, settings=QUICK).objective == 3
    policy = TrainingRun(graphs=[PATH] * 3, train={"steps": 20, "evaluate_graphs": 1}).run()
    policy.save(str(tmp_path / "w.npz"))
    assert solve(PATH, weights=Path(tmp_path / "w.npz"), settings=QUICK).objective == 2


def test_fixed_nodes_in_any_order():
    """Iterators, and sets, whose order is another on each rank."""
    graph = nx.relabel_nodes(nx.path_graph(6), lambda v: f"n{v}")
    right = solve(graph, inside=["n0", "n5"], settings=QUICK)
    for nodes in ({"n0", "n5"}, iter(["n0", "n5"]), (node for node in ("n5", "n0"))):
        assert solve(graph, inside=nodes, settings=QUICK).nodes == right.nodes
    assert {"n0", "n5"} <= set(right.nodes)
    assert solve(nx.path_graph(4), inside=nx.path_graph(4).neighbors(1), settings=QUICK).nodes == [0, 2]


@pytest.mark.mpi_skip
def test_stacks_of_matrices_are_graphs():
    stack = np.stack([nx.to_numpy_array(nx.gnp_random_graph(12, 0.4, seed=i)) for i in range(3)])
    assert TrainingRun(graphs=stack, train={"steps": 20, "evaluate_graphs": 1}).run().digest


@pytest.mark.mpi_skip
def test_weights_that_become_nothing_are_told():
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=1e-300)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        solve(graph, "maxcut", settings=QUICK)
    assert any("1e-300, is kept as 0" in str(each.message) for each in said)


@pytest.mark.skipif(MPI.COMM_WORLD.Get_size() == 1, reason="one rank has nobody to differ from")
def test_other_weights_are_named(tmp_path):
    """A file may lie elsewhere on each rank; what it holds must be the same."""
    graphs, steps = [PATH] * 3, {"steps": 20, "evaluate_graphs": 1}
    first, second = (TrainingRun(graphs=graphs, train=steps, seed=seed).run() for seed in (1, 2))
    path = str(tmp_path / "w.npz")  # another folder on each rank
    first.save(path)
    assert solve(PATH, weights=path, settings=QUICK).objective == 2
    other(first, second).save(path)
    with pytest.raises(LockstepError, match=r"the weights in .*: rank 1.* has"):
        solve(PATH, weights=path, settings=QUICK)
    with pytest.raises(GraphError, match="weights: rank 1 was given other ones"):
        solve(PATH, weights=other(first, second), settings=QUICK)
