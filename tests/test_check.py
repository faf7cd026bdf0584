"""`check` of the Python interface: answers from elsewhere, certificates, and what is wrong with either."""

import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from jobs import mpirun, run_job
from mpi4py import MPI

from app import check, solve
from app.errors import CaseError, GraphError
from app.search.cut.tools import CutToolBounds
from app.solver.rounds import Rounds

QUICK = {"search.steps": 3000, "search.bound_seconds": 0.3}
PROVED = QUICK | {"output.certificates": True, "search.bound_seconds": 20.0}  # they end once they are proved
alone = pytest.mark.mpi_skip


def weighted(seed):
    """A graph whose edges and nodes have weights."""
    draws = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(14, 0.3, seed=seed)
    nx.set_edge_attributes(graph, {e: int(draws.integers(1, 9)) for e in graph.edges}, "weight")
    nx.set_node_attributes(graph, {v: int(draws.integers(1, 9)) for v in graph}, "weight")
    return graph


def complete(seed):
    """Distances between cities."""
    points = np.random.default_rng(seed).integers(0, 100, (12, 2))
    return np.rint(np.linalg.norm(points[:, None] - points[None], axis=2))


GRAPHS = {
    **dict.fromkeys(["mvc", "mis", "mds", "clique", "maxcut", "qubo", "ising"], weighted),
    "tsp": complete,
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("problem", GRAPHS)
def test_answers_hold_and_bounds_are_proved_from_the_graph_alone(problem, seed, monkeypatch):
    """Without the exact search that ranks share: where it is quicker than the bounds, by the clock, it has
    the better bound, and no certificate.
    """
    monkeypatch.setattr(Rounds, "_tree", lambda _: None)
    graph = GRAPHS[problem](seed)
    answer = solve(graph, problem, settings=PROVED)
    assert answer.certificate and answer.optimal and answer.bound_verified
    for given in (answer, answer.nodes):
        found = check(graph, given, problem, certificate=answer.certificate)
        assert (found.objective, found.bound, found.gap) == (answer.objective, answer.bound, 0)
        assert found.bound_verified and found.optimal and found.bound_method == "certificate"
    assert check(graph, answer, problem) == found  # its own certificate


@pytest.mark.parametrize("problem", ["maxcut", "ising"])
def test_bounds_of_the_exact_search_are_not_called_verified(problem, monkeypatch):
    monkeypatch.setattr(CutToolBounds, "improve", lambda *_: False)  # they stay where they begin
    answer = solve(weighted(1), problem, settings=PROVED)
    assert answer.optimal and "branch and bound" in answer.bound_method and not answer.bound_verified
    found = check(weighted(1), answer, problem)  # by the certificate of what it began with
    assert found.objective == answer.objective and found.bound_verified and not found.optimal


@pytest.mark.parametrize("problem", GRAPHS)
def test_answers_from_elsewhere_are_valued_and_bounded(problem):
    graph = GRAPHS[problem](3)
    best = solve(graph, problem, settings=QUICK)
    nodes = list(range(12)) if problem == "tsp" else [] if problem in ("mis", "clique") else list(graph)
    found = check(graph, nodes, problem, settings=QUICK)
    sign = -1 if problem in ("mis", "clique", "maxcut") else 1
    assert sign * found.objective >= sign * best.objective >= sign * found.bound - 1e-9
    assert found.bound is not None and found.bound_method != "certificate"
    assert not found.optimal or found.objective == best.objective
    assert check(graph, nodes, problem, settings={"search.bounds": False}).bound is None


def test_objectives_and_bounds_of_an_answer_are_not_believed():
    graph = nx.cycle_graph(9)
    answer = solve(graph, settings=PROVED)
    found = check(graph, replace(answer, objective=1, bound=1, gap=0.0))
    assert (found.objective, found.bound) == (5, 5)
    assert repr(found) == "Checked(objective 5, bound 5 (certificate), optimal)"
    more = check(graph, list(graph), certificate=answer.certificate)
    assert (more.objective, more.bound, more.gap, more.optimal) == (9, 5, 0.8, False)


def test_nodes_by_names_weights_and_fixed_ones():
    graph = nx.relabel_nodes(nx.path_graph(4), dict(enumerate("abcd")))
    assert check(graph, ["b", "c"]).optimal
    costs = {"a": 1, "b": 10, "c": 10, "d": 1}
    found = check(graph, ["a", "c", "d"], node_weights=costs)
    assert (found.objective, found.bound) == (12, 11)
    answer = solve(graph, node_weights=costs, inside=["b"], settings=PROVED)
    assert check(graph, answer, node_weights=costs, inside=["b"]).bound == 11
    with pytest.raises(GraphError, match="answer: not a feasible cover of graph: node b is fixed inside"):
        check(graph, ["a", "c", "d"], node_weights=costs, inside=["b"])


@pytest.mark.parametrize("problem", ["mvc", "maxcut", "qubo", "ising"])
def test_answers_by_values_and_of_their_own_problem(problem):
    graph, low = weighted(6), -1 if problem == "ising" else 0
    best = solve(graph, problem, settings=QUICK)
    values = {v: 1 if v in best.nodes else low for v in graph}
    assert check(graph, values, problem).objective == best.objective == check(graph, best).objective
    again = solve(graph, problem, start=values, settings=QUICK | {"search.steps": 1})
    assert again.objective == best.objective


@alone
@pytest.mark.parametrize("names", [range(20, 34), "abcdefghijklmn", [(i, 0) for i in range(14)]])
@pytest.mark.parametrize("problem", GRAPHS)
def test_saved_answers_name_nodes_as_their_owner_does(tmp_path, problem, names):
    """By labels, where files may have them; `check` and search.start read them."""
    if problem == "tsp":
        graph = nx.Graph()
        D, called = complete(1), list(names)[:12]
        graph.add_weighted_edges_from((called[i], called[j], D[i, j]) for i in range(12) for j in range(i))
    else:
        graph = nx.relabel_nodes(weighted(1), dict(enumerate(names)))
        graph = nx.subgraph(graph, graph.nodes)
    answer = solve(graph, problem, settings=QUICK)
    answer.save(tmp_path / "s.txt")
    first = {line.split()[0] for line in (tmp_path / "s.txt").read_text().splitlines()}
    rows = isinstance(names[0], tuple)  # no file has such names
    assert first <= {str(v) for v in (range(14) if rows else names)}
    assert check(graph, tmp_path / "s.txt", problem).objective == answer.objective
    settings = QUICK | {"search.steps": 1, "search.start": str(tmp_path / "s.txt")}
    assert solve(graph, problem, settings=settings).objective == answer.objective


def test_the_same_on_all_ranks():
    graph = weighted(4)
    answer = solve(graph, "maxcut", settings=PROVED)
    found = [check(graph, answer, "maxcut", comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0] == found[1]


UNLIKE = f"""
import networkx as nx
from mpi4py import MPI
from app import check, solve
from app.errors import GraphError
graph, comm = nx.cycle_graph(9), MPI.COMM_WORLD
answer, said = solve(graph, settings={PROVED}), "accepted"
try:
    check(graph, answer.nodes, certificate=None if comm.Get_rank() else answer.certificate)
except GraphError as error:
    said = str(error)
heard = comm.gather(said)  # one rank prints: lines of several may come mixed
if heard:
    print(heard)
"""


@alone
def test_certificates_that_differ_by_rank_are_refused_on_all():
    code, printed = run_job([*mpirun(2), sys.executable, "-c", UNLIKE], forked=True)
    assert code == 0, printed
    refused = "certificate: rank 1 was given other ones than rank 0; the same on all would be right"
    assert printed.strip() == repr([refused] * 2)


def test_a_bound_of_zero_has_no_relative_gap():
    found = check([(0, 0, 3.0), (0, 1, 2)], [0], "qubo")
    assert repr(found) == "Checked(objective 3, bound 0 (reductions), no relative gap: the bound is 0)"


@alone
def test_certificates_of_files(tmp_path):
    graph = weighted(5)
    answer = solve(graph, "maxcut", settings=PROVED)
    (tmp_path / "c.npz").write_bytes(answer.certificate)
    for path in (tmp_path / "c.npz", str(tmp_path / "c.npz")):
        assert check(graph, answer.nodes, "maxcut", certificate=path).bound == answer.bound
    with pytest.raises(GraphError, match=r"d\.npz: cannot be read: No such file"):
        check(graph, answer, "maxcut", certificate=tmp_path / "d.npz")


GRAPH = nx.cycle_graph(5)
REFUSED = {
    "no cover": (lambda: check(GRAPH, [0, 1]), "answer: not a feasible cover of graph: .* leaves edge 2-3"),
    "no cover of names": (lambda: check(nx.Graph([("x", "y")]), []), "the cover leaves edge x-y uncovered"),
    "no tour": (lambda: check(complete(1), [0, 1, 2], "tsp"), "answer: found 3 cities; each of 12 once"),
    "a set of cities": (lambda: check(complete(1), set(range(12)), "tsp"), "answer: found a set"),
    "an unknown node": (lambda: check(GRAPH, [0, 1, 7]), "answer: .*7"),
    "no answer": (lambda: check(GRAPH, None), "answer: found None"),
    "no file": (lambda: check(GRAPH, "nowhere.txt"), r"nowhere\.txt: cannot be read"),
    "a node twice": (lambda: check(GRAPH, [3, 2, 3]), "answer: found 3 2 times; each node once"),
    "a vector of values": (lambda: check(GRAPH, [0, 1, 0, 1, 0]), "found 0 3 times; a mapping of nodes"),
    "some values": (lambda: check(GRAPH, {0: 1, 1: 0}), "found a mapping of 2; .* all 5 to 0 or 1"),
    "other values": (lambda: check(GRAPH, dict.fromkeys(range(5), -1)), "found the value -1 of 0; .* 0 or 1"),
    "values of cities": (lambda: check(complete(1), {0: 1}, "tsp"), "found a mapping, which has no order"),
    "values to fix": (lambda: solve(GRAPH, inside={1: 1}), "inside: found a mapping; a list of nodes"),
    "of another kind": (lambda: check(GRAPH, solve(GRAPH, "mis"), "maxcut"), "of mis; one of maxcut"),
    "an empty file": (lambda: check(GRAPH, [0, 1, 3], certificate=b"PK"), "certificate: "),
    "a number": (lambda: check(GRAPH, [0, 1, 3], certificate=5), "certificate: found 5; bytes or"),
    "of another problem": (
        lambda: check(GRAPH, [0, 1, 3], certificate=solve(GRAPH, "maxcut", settings=PROVED).certificate),
        "certificate: graph: step 0",
    ),
    "of another graph": (
        lambda: check(GRAPH, [0, 1, 3], certificate=solve(nx.path_graph(9), settings=PROVED).certificate),
        "certificate: ",
    ),
    "weights of nodes": (lambda: check(GRAPH, [0], "maxcut", node_weights=[1] * 5), "those of edges"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said(name):
    call, said = REFUSED[name]
    with pytest.raises((CaseError, GraphError), match=said):
        call()


@alone
def test_a_graph_that_fits_on_no_rank():
    with pytest.raises(CaseError, match="check: the graph is too large for one rank"):
        check(nx.gnp_random_graph(200, 0.2, seed=1), range(200), settings={"memory.whole_graph_mb": 0.01})
