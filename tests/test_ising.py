"""Ground states of Ising spins against all configurations, with fields and without, in every form."""

import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import crossed
from jobs import run_job
from test_qubo import alike_on_any_ranks, drawn, looped, random_terms, terms_of

from app import TrainingRun, solve
from app.case.file import build
from app.errors import CaseError, GraphError
from app.problems.table import make_problem
from app.tasks.refused import check_names

QUICK = {"search.steps": 3000, "search.bound_seconds": 0.3}
alone = pytest.mark.mpi_skip


def energies(J):
    """[2^n, n] all configurations, [2^n] their energies: fields on the diagonal, couplings off it."""
    S = np.array(list(itertools.product([-1, 1], repeat=len(J))), dtype=np.float64).reshape(-1, len(J))
    couplings = J - np.diag(np.diag(J))
    return S, np.einsum("ki,ij,kj->k", S, couplings, S) + S @ np.diag(J)


def halves(J):
    """(h, J), with variables of names."""
    h = {f"s{i}": J[i, i] for i in range(len(J))}
    return h, {(f"s{i}", f"s{j}"): c for (i, j), c in terms_of(J).items() if i != j}


FORMS = {
    "array": lambda J: J,
    "sparse": sp.csr_array,
    "networkx": looped,
    "mapping": terms_of,
    "halves": halves,
    "fields in order": lambda J: (np.diag(J), terms_of(J - np.diag(np.diag(J)))),
    "couplings of a matrix": lambda J: (np.diag(J), J - np.diag(np.diag(J))),
    "a sparse one": lambda J: (list(np.diag(J)), sp.csr_array(J - np.diag(np.diag(J)))),
    "tuples": lambda J: (np.diag(J), [(i, j, c) for (i, j), c in terms_of(J).items() if i != j]),
}


def configuration(nodes, n):
    """[n] the spins of an answer."""
    s = -np.ones(n)
    s[[int(str(node).lstrip("s")) for node in nodes]] = 1
    return s


@pytest.mark.parametrize(("form", "seed"), crossed(FORMS, range(6)))
def test_ground_states_of_all_forms(form, seed):
    J = drawn(seed)
    J[0, 0] = J[0, 0] or 1.0  # a mapping of nothing has no spins
    if form == "mapping":
        J[np.diag_indices(len(J))] += J.diagonal() == 0  # nor has one of a spin that is in no term
    found = solve(FORMS[form](J), "ising", settings=QUICK)
    least = energies(J)[1].min()
    s = configuration(found.nodes, len(J))
    energy = s @ (J - np.diag(np.diag(J))) @ s + s @ np.diag(J)
    assert found.objective == pytest.approx(energy, abs=1e-5) == pytest.approx(least, abs=1e-5)
    assert found.bound <= least + 1e-9 and all(v >= found.objective for v in found.baselines.values())
    assert not found.optimal or found.bound == found.objective


def test_energies_are_numbers_of_the_entries_kind():
    assert solve([(0, 1, 1), (1, 2, 1), (2, 0, 1)], "ising", settings=QUICK).objective == -1
    assert type(solve([(0, 0, -3), (0, 1, 2)], "ising", settings=QUICK).objective) is int
    assert solve([(0, 0, -0.5), (1, 1, -2)], "ising", settings=QUICK).objective == -2.5
    assert solve(({"a": -0.1, "b": -0.2}, {}), "ising", settings=QUICK).objective == -0.3


def test_entries_of_a_pair_are_added():
    same = [(0, 1, 1.0), (1, 0, 2.0), (0, 1, -5.0), (0, 0, -1.0), (0, 0, 0.5)]
    found = solve(same, "ising", settings=QUICK)
    assert found.objective == -2.5 and found.nodes == [0, 1]


@pytest.mark.parametrize(("what", "said"), [("edge", "the attributes J"), ("node", "the attributes h")])
def test_numbers_under_other_names_are_a_warning(what, said):
    graph = nx.path_graph(3)
    if what == "edge":
        nx.set_edge_attributes(graph, -5.0, "J")
    else:
        nx.set_edge_attributes(graph, 1.0, "weight")
        nx.set_node_attributes(graph, 5.0, "h")
    with pytest.warns(UserWarning, match=said):
        solve(graph, "ising", settings=QUICK)


def test_a_table_of_named_rows_and_columns_is_a_matrix():
    J = np.array([[0.5, 1, 1], [0, 0, 1], [0, 0, 0]])
    found = solve(Frame(J, ["a", "b", "c"]), "ising", settings=QUICK)
    assert found.objective == energies(J)[1].min() and set(found.nodes) < {"a", "b", "c"}
    assert solve(Frame(np.ones((3, 3)), ["a", "b", "c"]), "mvc", settings=QUICK).objective == 2


class Frame:
    """As a DataFrame whose rows have the names of its columns."""

    def __init__(self, values, names):
        self.values, self.index, self.columns = values, names, names

    def to_numpy(self):
        return self.values

    def __getitem__(self, names):
        at = [self.columns.index(name) for name in ([names] if isinstance(names, str) else names)]
        return self.values[:, at[0]] if isinstance(names, str) else self.values[:, at]


def test_a_field_turns_its_spin():
    assert solve([(0, 0, 1.0), (1, 1, -1.0)], "ising", settings=QUICK).nodes == [1]


@pytest.mark.parametrize("seed", range(4))
def test_fixed_spins(seed):
    J = drawn(seed, n=8)
    S, values = energies(J)
    fixed = solve(J, "ising", inside=[1, 4], outside=[0], settings=QUICK)
    allowed = (S[:, 1] == 1) & (S[:, 4] == 1) & (S[:, 0] == -1)
    assert fixed.objective == pytest.approx(values[allowed].min(), abs=1e-5)
    assert {1, 4} <= set(fixed.nodes) and 0 not in fixed.nodes and not fixed.baselines


@pytest.mark.parametrize("seed", range(3))
def test_energies_and_cuts_without_fields(seed):
    """E = sum J - 2 cut, as of maxcut with J for weights."""
    draws = np.random.default_rng(seed)
    edges = [(u, v, int(draws.choice([-1, 1]))) for u, v in nx.grid_2d_graph(6, 6, periodic=True).edges]
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    spins, cut = (solve(graph, name, settings=QUICK) for name in ("ising", "maxcut"))
    assert spins.objective == sum(J for _, _, J in edges) - 2 * cut.objective
    assert spins.bound == sum(J for _, _, J in edges) - 2 * cut.bound


def test_an_answer_begins_another_search(tmp_path):
    J = drawn(5, n=9)
    first = solve(J, "ising", settings=QUICK)
    again = solve(J, "ising", start=first, settings=QUICK | {"search.steps": 1, "search.reductions": False})
    assert again.objective == first.objective


@alone
def test_a_solution_is_read_back(tmp_path):
    problem, ids = make_problem("ising"), np.array([5, 7, 9, 10])
    path = tmp_path / "s.txt"
    path.write_text(problem.text(np.array([True, False, True, True]), ids))
    assert path.read_text() == "5 -1\n7 1\n9 -1\n"
    assert problem.read(str(path), ids).tolist() == [False, True, False, False]
    path.write_text("5 0\n7 1\n9 -1\n")
    with pytest.raises(
        GraphError, match=r"s\.txt:1: found '5 0'; right is each node once, with spin -1 or 1"
    ):
        problem.read(str(path), ids)


@pytest.mark.parametrize("solver", ["full", "policy"])
def test_the_same_bits_on_any_ranks(solver):
    """By the pipeline, and by the policy alone, whose cut may turn the reference over."""
    pairs, J = random_terms()
    found = alike_on_any_ranks("ising", pairs, solver)
    s = configuration(found.nodes, 40)
    assert found.objective == pytest.approx(s @ (J - np.diag(np.diag(J))) @ s + s @ np.diag(J), rel=1e-5)


def test_policies_learn_energies():
    graphs = [np.triu(drawn(seed, n=12)) for seed in (1, 2, 4, 5)]
    run = TrainingRun("ising", graphs, train={"steps": 20, "evaluate_graphs": 2}, run={"device": "cpu"})
    policy = run.run()
    assert policy.problem == "ising"
    solve(graphs[0], "qubo", weights=policy, settings=QUICK)


@alone
def test_a_run_its_certificate_and_its_cache(tmp_path):
    """Terms that are kept of one problem are not taken for those of the other."""
    path, found = tmp_path / "a.txt", {}
    draws = np.random.default_rng(2)
    path.write_text(
        "".join(f"{i} {i % 7 + 8 * (i % 2)} {c}\n" for i, c in enumerate(draws.integers(-9, 9, 24)))
    )
    keys = [f"graph.path={path}", "search.steps=20000", "output.certificates=true"]
    keys += ["output.plots=false", f"memory.cache={tmp_path / 'kept'}"]
    for name in ("ising", "qubo", "ising", "qubo"):
        out = tmp_path / name
        code, said = run_job(
            [sys.executable, "run.py", f"inputs/{name}.toml", *keys, "--out", out, "--overwrite"]
        )
        assert code == 0 and ("24 spins" if name == "ising" else "24 variables") in said
        entry = json.loads((out / "result.json").read_text())["instances"][0]
        assert found.setdefault(name, entry["objective"]) == entry["objective"]
    assert len(list((tmp_path / "kept").iterdir())) == 2
    lines = (tmp_path / "ising" / "solution" / "a.txt").read_text().splitlines()
    assert len(lines) == 24 and {line.split()[1] for line in lines} == {"1", "-1"}
    code, said = run_job(
        [sys.executable, "run.py", tmp_path / "ising" / "case.toml", "--check", tmp_path / "ising"]
    )
    entry = json.loads((tmp_path / "ising" / "result.json").read_text())["instances"][0]
    proved = f"bounds of {int(entry['bound_verified'])} are proved"  # 0: the exact search was quicker
    assert code == 0 and f"1 of 1 answers checked: all hold; {proved}" in " ".join(said.split())


REFUSED = {
    "a field that is no number": (lambda: solve(({0: "x"}, {}), "ising"), "a number would be right"),
    "no fields": (lambda: solve((5, {(0, 1): 1.0}), "ising"), "linear terms: found <class 'int'>"),
    "a spin with itself": (lambda: solve(([0, 0], np.ones((2, 2))), "ising"), "product of 0 with itself"),
    "names and a matrix": (lambda: solve(({"a": 1}, np.ones((1, 1))), "ising"), "found products as a matrix"),
    "what is no pair": (lambda: solve(({}, 5), "ising"), r"a pair \(h, J\) of linear terms and prod"),
    "a pair for cuts": (lambda: solve(({}, {(0, 1): 1.0}), "maxcut"), "a NetworkX graph, a SciPy"),
    "weights of nodes": (lambda: solve([(0, 1, 1.0)], "ising", node_weights=[1, 2]), "those of edges"),
    "the reference": (lambda: solve([(0, 1, 1.0)], "ising", inside=[2]), "is no variable"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_energy_is_refused(name):
    call, said = REFUSED[name]
    with pytest.raises((CaseError, GraphError), match=said):
        call()


@alone
def test_functions_of_other_variables_are_refused(tmp_path):
    path = tmp_path / "a.qubo"
    path.write_text("p qubo 0 3 1 1\n0 0 1\n0 1 2\n")
    with pytest.raises(GraphError, match="found the format qubo for a quadratic function of spins"):
        solve(str(path), "ising")
    with pytest.raises(CaseError, match="maxcut would be right"):
        check_names(build({"problem.name": "ising", "run.task": "study"}))
