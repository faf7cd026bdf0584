"""Quadratic functions of 0-1 variables: least values against all assignments, however they are given."""

import itertools
import json
import sys
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import run_job
from mpi4py import MPI

from app import TrainingRun, gym_environment, solve
from app.case.file import build
from app.case.graph import GraphCase
from app.errors import CaseError, GraphError
from app.graphs.fixed_point import integer_weights
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.ids import LONGEST
from app.graphs.quadratic import as_cut
from app.graphs.whole import whole_graph
from app.partition.generators import generated
from app.problems.table import make_problem
from app.search.cut.tools import step_of_cuts
from app.tasks.refused import check_names
from app.toolbox import Instance

QUICK = {"search.steps": 3000, "search.bound_seconds": 0.3}
alone = pytest.mark.mpi_skip


def all_values(Q):
    """[2^n, n] all assignments, [2^n] their values x^T Q x."""
    X = np.array(list(itertools.product([0, 1], repeat=len(Q))), dtype=np.float64).reshape(-1, len(Q))
    return X, np.einsum("ki,ij,kj->k", X, Q, X)


def drawn(seed, n=0):
    """A matrix of a few entries with few decimals, now and then of one half alone."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(1, 11))
    Q = np.round(draws.normal(size=(n, n)) * draws.choice([1, 10, 50]), int(draws.integers(0, 4)))
    Q *= draws.random((n, n)) < draws.choice([0.3, 0.8])
    return np.triu(Q) if seed % 3 == 0 else Q


def terms_of(Q):
    return {(i, j): float(Q[i, j]) for i, j in zip(*np.nonzero(Q))}


def looped(Q):
    """NetworkX: every pair of nodes once."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(Q)))
    for i in range(len(Q)):
        for j in range(i + 1):
            c = Q[i, j] + Q[j, i] if i != j else Q[i, i]
            if c:
                graph.add_edge(i, j, weight=c)
    return graph


FORMS = {
    "array": lambda Q: Q,
    "sparse": sp.csr_array,
    "mapping": lambda Q: {(f"x{i}", f"x{j}"): c for (i, j), c in terms_of(Q).items()},
    "networkx": looped,
    "tuples": lambda Q: [(i, j, c) for (i, j), c in terms_of(Q).items()],
}


def random_terms():
    """(pairs, matrix) of 150 terms of 40 variables, some linear, of many decimals."""
    draws = np.random.default_rng(5)
    ends, values = draws.integers(0, 40, (2, 150)), draws.normal(size=150)
    Q = np.zeros((40, 40))
    np.add.at(Q, tuple(ends), values.astype(np.float32))
    return [(int(i), int(j), float(c)) for i, j, c in zip(*ends, values)], Q


def alike_on_any_ranks(problem, pairs, solver):
    """The answer of all ranks, which is that of one."""
    settings = QUICK | {"search.solver": solver, "search.bounds": False}
    found, other = (solve(pairs, problem, settings=settings, comm=c) for c in (MPI.COMM_WORLD, MPI.COMM_SELF))
    assert (found.objective, found.digest, found.text) == (other.objective, other.digest, other.text)
    return found


def assigned(nodes, n):
    """[n] the variables that an answer has as 1."""
    x = np.zeros(n)
    x[[int(str(node).lstrip("x")) for node in nodes]] = 1
    return x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_least_values_of_all_forms(form, seed):
    Q = drawn(seed)
    Q[0, 0] = Q[0, 0] or 1.0  # a mapping of nothing has no variables
    found = solve(FORMS[form](Q), "qubo", settings=QUICK)
    values = all_values(Q)[1]
    x = assigned(found.nodes, len(Q))
    assert found.objective == pytest.approx(x @ Q @ x, abs=1e-5) == pytest.approx(values.min(), abs=1e-5)
    assert found.bound <= values.min() + 1e-9 and all(v >= found.objective for v in found.baselines.values())
    assert not found.optimal or found.bound == found.objective


def test_objectives_are_numbers_of_the_entries_kind():
    assert solve([(0, 0, -3), (0, 1, 2)], "qubo", settings=QUICK).objective == -3
    assert type(solve([(0, 0, -3), (0, 1, 2)], "qubo", settings=QUICK).objective) is int
    assert solve([(0, 0, -0.5), (1, 1, -2)], "qubo", settings=QUICK).objective == -2.5
    assert solve({("a", "a"): -0.1, ("b", "b"): -0.2}, "qubo", settings=QUICK).objective == -0.3


@pytest.mark.parametrize("entries", [[(0, 0, 1.0), (1, 1, 2.0)], [(0, 1, 0.0), (1, 1, 0.0)], [(0, 0, 0.0)]])
def test_functions_that_are_least_at_zero(entries):
    found = solve(entries, "qubo", settings=QUICK)
    assert found.objective == 0 and found.bound == 0 and found.optimal


def test_entries_of_a_pair_are_added():
    same = [(0, 1, 1.0), (1, 0, 2.0), (0, 1, -5.0), (0, 0, -1.0), (0, 0, 0.5)]
    assert solve(same, "qubo", settings=QUICK).objective == -2.5


def test_a_variable_whose_weights_cancel_is_none_the_less_one():
    # w = -(2 h + sum of q) is zero for both: nothing joins them to the reference.
    found = solve([(0, 0, -1.0), (1, 1, -1.0), (0, 1, 2.0)], "qubo", settings=QUICK)
    assert found.objective == -1 and len(found.nodes) == 1


@pytest.mark.parametrize("seed", range(4))
def test_fixed_variables(seed):
    Q = drawn(seed, n=8)
    X, values = all_values(Q)
    fixed = solve(Q, "qubo", inside=[1, 4], outside=[0], settings=QUICK)
    allowed = (X[:, 1] == 1) & (X[:, 4] == 1) & (X[:, 0] == 0)
    assert fixed.objective == pytest.approx(values[allowed].min(), abs=1e-5)
    assert {1, 4} <= set(fixed.nodes) and 0 not in fixed.nodes and not fixed.baselines


@alone
def test_decimals_that_sums_lose_are_a_warning():
    """Entries are kept as they are, but of x0 twice -0.1 and all of its factors are one number."""
    terms = [(0, 0, -0.1), *((0, j, 10000.25) for j in range(1, 1000))]
    with pytest.warns(UserWarning, match=r"a sum of entries, -9990249.55, is kept as -9990250.00: 32 bits"):
        solve(terms, "qubo", settings=QUICK)


@alone
@pytest.mark.parametrize("size", [1e-3, 1, 1e3])
def test_numbers_of_many_decimals_are_no_warning(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(size * np.random.default_rng(1).normal(size=(30, 30)), "qubo", settings=QUICK)


@alone
def test_what_is_said_of_sums_is_kept_beside_the_graph(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0 0 -0.1\n" + "".join(f"0 {j} 10000.25\n" for j in range(1, 1000)))
    told = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="a sum of entries") as said:
            solve(str(path), "qubo", settings=QUICK | {"memory.cache": str(tmp_path / "kept")})
        told.append([str(each.message) for each in said])
    assert told[0] == told[1] and told[0][0].startswith(f"{path}: a sum")


BANNER = "%%MatrixMarket matrix coordinate real"
FILES = {
    "a.txt": "1 1 -3\n2 2 -2\n1 2 4\n3 3 1\n2 3 -2.5\n4 4 0\n",
    "b.qubo": "c x\np qubo 0 4 3 2\n0 0 -3\n1 1 -2\n# y\n2 2 1\n0 1 4\n1 2 -2.5\n",
    "c.txt": "p qubo 0 4 3 2\n0 0 -3\n1 1 -2\n2 2 1\n0 1 4\n1 2 -2.5\n",
    "d.mtx": f"{BANNER} symmetric\n4 4 5\n1 1 -3\n2 2 -2\n2 1 2\n3 3 1\n3 2 -1.25\n",
    "e.mtx": f"{BANNER} general\n4 4 6\n1 1 -3\n2 2 -2\n2 1 2\n1 2 2\n3 3 1\n3 2 -2.5\n",
    "f.gset": "4 5\n1 1 -3\n2 2 -2\n1 2 4\n3 3 1\n2 3 -2.5\n",
    "n.csv": "x1,x1,-3\nx2,x2,-2\nx1,x2,4\nx3,x3,1\nx2,x3,-2.5\nx4,x4,0\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_all_formats(shared_path, name):
    path = shared_path / name
    if MPI.COMM_WORLD.rank == 0:
        path.write_text(FILES[name])
    MPI.COMM_WORLD.barrier()
    settings = QUICK | ({"graph.ids": "names"} if name.endswith("csv") else {})
    found = solve(str(path), "qubo", settings=settings)
    first = {"b": 0, "c": 0, "n": "x1"}.get(name[0], 1)
    follows = (lambda k: f"x{1 + k}") if name[0] == "n" else (lambda k: first + k)
    assert found.objective == -3.5 and found.optimal and found.nodes == [follows(1), follows(2)]
    lines = [line.split() for line in found.text.splitlines()]
    assert [int(value) for _, value in lines] == [0, 1, 1, 0]
    assert [name for name, _ in lines] == [str(follows(k)) for k in range(4)]
    other = solve(str(path), "qubo", settings=settings, comm=MPI.COMM_SELF)
    assert (other.digest, other.text) == (found.digest, found.text)
    MPI.COMM_WORLD.barrier()


@alone
def test_a_solution_is_read_back(tmp_path):
    problem, ids = make_problem("qubo"), np.array([5, 7, 9, 10])
    path = tmp_path / "s.txt"
    path.write_text(problem.text(np.array([True, False, True, True]), ids))
    assert path.read_text() == "5 0\n7 1\n9 0\n"
    assert problem.read(str(path), ids).tolist() == [False, True, False, False]


@pytest.mark.parametrize("solver", ["full", "policy"])
def test_the_same_bits_on_any_ranks(solver):
    """Generated products, by the pipeline and by the policy alone, whose cut may turn the reference over."""
    pairs, Q = random_terms()
    found = alike_on_any_ranks("qubo", pairs, solver)
    x = assigned(found.nodes, 40)
    assert found.objective == pytest.approx(x @ Q @ x, rel=1e-5)


def test_weights_learned_for_cuts_and_for_functions_do_for_both():
    graphs = [np.triu(drawn(seed, n=12)) for seed in (1, 2, 4, 5)]
    run = TrainingRun("qubo", graphs, train={"steps": 20, "evaluate_graphs": 2}, run={"device": "cpu"})
    policy = run.run()
    assert policy.problem == "qubo"
    solve(nx.cycle_graph(9), "maxcut", weights=policy, settings=QUICK)
    solve(graphs[0], "qubo", weights=policy, settings=QUICK)


@alone
def test_a_gymnasium_environment_of_functions():
    pytest.importorskip("gymnasium")
    env = gym_environment([looped(drawn(3, n=6))], problem="qubo")
    env.reset(seed=1)


# ---- the cut ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(8))
def test_values_are_halves_of_cuts(seed):
    Q = drawn(seed, n=7)
    stream, _ = stream_of_object(Q, counts="terms")
    graph, _ = whole_graph(as_cut(stream, "qubo"))
    weights, unit = integer_weights(graph)
    assert graph.n == 8
    for x, value in zip(*all_values(Q)):
        sides = np.append(x, 0)
        cut = unit * weights[sides[graph.row_of()] != sides[graph.indices]].sum() / 2
        assert -cut / 2 == pytest.approx(value, rel=1e-5, abs=1e-4)


@alone
@pytest.mark.parametrize("seed", range(30))
def test_all_cuts_are_multiples_of_the_step(seed):
    draws = np.random.default_rng(seed)
    n, m = int(draws.integers(1, 9)), int(draws.integers(0, 15))
    graph = from_edges(n, *draws.integers(0, n, (2, m)), draws.choice([1, 2, 3, 4, 6, -2, -4, 8], m))
    weights, _ = integer_weights(graph)
    cuts = [
        int(weights[sides[graph.row_of()] != sides[graph.indices]].sum()) // 2
        for sides in np.array(list(itertools.product([0, 1], repeat=n)))
    ]
    assert step_of_cuts(graph, weights) == max(np.gcd.reduce(np.array(cuts)), 1)


@alone
def test_bounds_are_rounded_to_what_a_cut_may_weigh():
    odd = from_edges(5, np.arange(5), (np.arange(5) + 1) % 5, np.full(5, 3.0))  # cuts are multiples of 6
    tools = make_problem("maxcut").toolbox(Instance(odd))
    assert tools.step == 6 and tools.attainable(13) == 12 and tools.attainable(-1) == -6
    assert tools.bounds().value == 12 and tools.better(12) == 18


@alone
@pytest.mark.parametrize("nodes", [None, 3])
def test_the_reference_is_the_last_node(tmp_path, nodes):
    """Also where no variable is joined to it, and where only ids that occur are nodes."""
    path = tmp_path / "a.txt"
    path.write_text({None: "4 4 -1\n9 9 -1\n4 9 2\n", 3: "p qubo 0 3 2 1\n0 0 -1\n2 2 -1\n0 2 2\n"}[nodes])
    graph = whole_graph(as_cut(open_edges(str(path)), "qubo"))[0]
    assert graph.held_ids().tolist() == ([4, 9, 10] if nodes is None else [0, 1, 2, 3])
    assert graph.edges == 1


# ---- runs -------------------------------------------------------------------------------------------------


@alone
def test_a_run_and_its_certificate(tmp_path):
    out = tmp_path / "out"
    keys = [
        "graph.nodes=24",
        "graph.count=1",
        "search.steps=20000",
        "output.certificates=true",
        "output.plots=false",
    ]
    code, said = run_job([sys.executable, "run.py", "inputs/qubo.toml", *keys, "--out", out])
    assert code == 0 and "24 variables, as a cut of 25 nodes" in said
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    assert entry["sense"] == "minimise" and entry["bound"] <= entry["objective"] < 0
    assert len((out / "solution" / "er-24-0.txt").read_text().splitlines()) == 24
    code, said = run_job([sys.executable, "run.py", out / "case.toml", "--check", out])
    proved = f"bounds of {int(entry['bound_verified'])} are proved"  # 0: the exact search was quicker
    assert code == 0 and f"1 of 1 answers checked: all hold; {proved}" in " ".join(said.split())


PAIR, POINTS = [(0, 1, 1.0)], GraphCase(generator="uniform_points")
REFUSED = {
    "an order": (lambda: solve(PAIR, "qubo", settings={"graph.order": "random"}), "graph.order: the"),
    "a complement": (lambda: solve(PAIR, "qubo", settings={"graph.complement": True}), "complement: the"),
    "weights of nodes": (lambda: solve(PAIR, "qubo", node_weights=[1, 2]), "those of edges and loops"),
    "a key": (lambda: solve({(0, 1, 2): 1.0}, "qubo"), "found the key"),
    "no pair": (lambda: solve({"a": 1.0}, "qubo"), "found the key"),
    "loops as errors": (lambda: solve(PAIR, "qubo", settings={"graph.self_loops": "error"}), "loops: the"),
    "repeats as errors": (lambda: solve(PAIR, "qubo", settings={"graph.duplicates": "error"}), "cates: the"),
    "a mapping for another problem": (lambda: solve({(0, 1): 1.0}, "maxcut"), "a NetworkX graph, a SciPy"),
    "text": (lambda: solve({(0, 1): "x"}, "qubo"), "a number would be right"),
    "too large": (lambda: solve([(0, 0, 3e38), (0, 1, 1e38)], "qubo"), "beyond 3.4e38"),
    "distances": (lambda: as_cut(generated(POINTS, 0, 9, 1), "qubo"), "found distances between all nodes"),
    "the reference": (lambda: solve([(0, 1, 1.0)], "qubo", inside=[2]), "is no variable"),
    "a start with the reference": (lambda: solve(PAIR, "qubo", start=[2]), "node 2 is not in the graph"),
    "no weight": (lambda: solve(nx.Graph([(0, 0), (0, 1, {"weight": 2})]), "qubo"), "has no weight"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_is_refused(name):
    call, said = REFUSED[name]
    with pytest.raises((CaseError, GraphError), match=said):
        call()


WRONG_FILES = {
    "a.qubo": ("p qubo 0 3 2 1\n0 0 1\n0 1 2\n", "the header states 2 and 1, found 1 lines 'i i c' and 1"),
    "b.qubo": ("p qubo 0 3 1 1\n0 0 1\n0 3 2\n", "b.qubo:3: "),
    "c.qubo": ("0 0 1\n", "'p qubo 0 VARIABLES LINEAR PRODUCTS' would be right"),
    "d.qubo": ("p qubo 0 3 1\n", "'p qubo 0 VARIABLES LINEAR PRODUCTS' would be right"),
    "e.qubo": ("c\n", "'p qubo 0 VARIABLES LINEAR PRODUCTS'"),
    "f.graph": ("2 1\n2\n1\n", "found the format metis for a quadratic function"),
    "g.csv": (f"{'x' * LONGEST},b,1\n", f"found a name of {LONGEST} bytes"),
    "h.txt": (f"{2**63 - 1} {2**63 - 1} -1\n", r"h.txt: found the node id 2\^63-1"),
}


STUDIES = [{"problem.name": "qubo"}, {"study.kind": "learners", "study.problems": ["mvc", "qubo"]}]


@pytest.mark.parametrize("keys", STUDIES)
def test_studies_are_of_other_problems(keys):
    with pytest.raises(CaseError, match="maxcut would be right"):
        check_names(build(keys | {"run.task": "study"}))


@pytest.mark.parametrize("table", ["graphs", "held_back"])
def test_graphs_of_trainings_are_not_reordered(table):
    sizes = {"generator": "er", "nodes": 9, "p": 0.5}
    keys = {f"{name}.{key}": value for name in ("graph", f"train.{table}") for key, value in sizes.items()}
    keys |= {f"train.{table}.order": "rcm"}
    with pytest.raises(CaseError, match=rf"train\.{table}\.order: the graph of qubo"):
        check_names(build(keys | {"problem.name": "qubo", "run.task": "train"}))


@alone
@pytest.mark.parametrize("name", WRONG_FILES)
def test_files_that_hold_no_function_are_refused(tmp_path, name):
    (tmp_path / name).write_text(WRONG_FILES[name][0])
    settings = {"graph.ids": "names"} if name.endswith("csv") else {}
    with pytest.raises(GraphError, match=WRONG_FILES[name][1]):
        solve(str(tmp_path / name), "qubo", settings=settings)


@alone
def test_a_function_is_no_graph(tmp_path):
    path = tmp_path / "b.qubo"
    path.write_text(FILES["b.qubo"])
    with pytest.raises(GraphError, match=r'problem\.name = "qubo" would be right'):
        solve(str(path), "maxcut")
    code, said = run_job([sys.executable, "-m", "app", "convert", path, tmp_path / "b.mtx"], forked=True)
    assert code == 2 and "holds a quadratic function" in said
