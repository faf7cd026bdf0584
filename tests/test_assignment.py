"""Graph alignment and quadratic assignment: against all permutations, kernels against their twins, damaged
proofs, files, what is refused."""

import itertools
import json
import sys
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import instance_of
from jobs import ROOT, mpirun, run_job
from mpi4py import MPI

from app import check, solve
from app.bounds.assignment.bounds import AssignmentBounds
from app.bounds.assignment.dual import Lean, least_assignment, state_of
from app.bounds.assignment.splitting import Splitting
from app.bounds.assignment.witness import by_rows, degree_sum, left_by, node_costs, placed, tables_of
from app.bounds.certificate import BadCertificate
from app.errors import CaseError, GraphError
from app.graphs.graph import from_edges
from app.graphs.pairing import (
    LARGEST,
    entries,
    mapping_of,
    pairing_of,
    permutation_of,
    products,
    tidy,
    whole,
    without_loops,
)
from app.native.library import kernels
from app.problems.assignment import GraphAlignment
from app.proofs.archive import from_bytes, to_bytes
from app.search.assignment.baselines import BASELINES, by_degree, by_refinement
from app.search.assignment.search import TABU_ARRAYS, TABU_NUMBERS, WALK_NUMBERS, TabuSearch, WalkSearch
from app.search.assignment.text import mapping_text, read_mapping
from app.search.assignment.tools import AssignmentTools
from app.tasks.pairings import _gain_of_file, _move_among_few, _move_among_many

QUICK = {"search.steps": 4000, "search.bound_seconds": 2.0, "output.certificates": True}
QAP, ALIGNMENT = "qap", "alignment"
SCRATCH = ("ea", "eb", "fa", "fb", "used")
SYMMETRIC = ("neither", "first", "second", "both")
alone = pytest.mark.mpi_skip
compiled = pytest.mark.skipif(kernels() is None, reason="no kernels")


def drawn(seed, problem, symmetric, n=5, m=5, seeds=0, gain=True):
    """Matrices, with loops and negative numbers, what pairs are worth, where nodes have to be."""
    draws = np.random.default_rng(seed)
    a, b = (draws.integers(-2, 6, (k, k)) * (draws.random((k, k)) < 0.6) for k in (n, m))
    a = a + a.T if symmetric in ("first", "both") else a
    b = b + b.T if symmetric in ("second", "both") else b
    worth = draws.integers(-3, 9, (n, m)) if gain else np.zeros((n, m), dtype=np.int64)
    fixed = np.full(n, -1)
    fixed[draws.permutation(n)[:seeds]] = draws.permutation(m)[:seeds]
    return a, b, worth, fixed


def asked_of(problem, a, b, worth, fixed):
    ids = np.arange(len(a)), np.arange(len(b))
    return pairing_of("x", problem, *(sp.csr_array(each) for each in (a, b, worth)), fixed, *ids)


def objective(problem, a, b, worth, mapping):
    """What a mapping is worth, by its definition; edges without direction count once in an alignment."""
    there = np.flatnonzero(mapping >= 0)
    on = mapping[there]
    if problem == ALIGNMENT:
        a, b = a - np.diag(np.diag(a)), b - np.diag(np.diag(b))
    total = (a[np.ix_(there, there)] * b[np.ix_(on, on)]).sum()
    once = problem == ALIGNMENT and (a == a.T).all() and (b == b.T).all()
    return total / (2 if once else 1) + worth[there, on].sum()


def best(problem, a, b, worth, fixed):
    """The best objective of all mappings."""
    n, m = len(a), len(b)
    found = []
    for p in itertools.permutations(range(max(n, m)), n):
        mapping = np.array(p)
        mapping[mapping >= m] = -1
        if ((fixed < 0) | (mapping == fixed)).all():
            found.append(objective(problem, a, b, worth, mapping))
    return max(found) if problem == ALIGNMENT else min(found)


def closed(core, value):
    """Bounds that have worked until they were done, knowing a cost."""
    found = AssignmentBounds(core)
    while found.improve(1.0, value):
        pass
    return found


# ---- answers -----------------------------------------------------------------------------------------------


@alone
@compiled
@pytest.mark.parametrize("symmetric", SYMMETRIC)
@pytest.mark.parametrize(
    ("problem", "n", "m"), [(QAP, 6, 6), (QAP, 4, 6), (ALIGNMENT, 6, 6), (ALIGNMENT, 6, 4)]
)
def test_searches_and_bounds_meet_at_the_best_of_all_mappings(problem, n, m, symmetric):
    seed = 10 * SYMMETRIC.index(symmetric) + n + m
    given = drawn(seed, problem, symmetric, n, m, seeds=seed % 3, gain=seed % 4 > 0)
    asked, wanted = asked_of(problem, *given), best(problem, *given)
    core, sign = asked.core, -1 if problem == ALIGNMENT else 1
    cost = sign * int(wanted / asked.unit) * core.scale
    for kind in (TabuSearch, WalkSearch):
        search = kind(core, permutation_of(core, given[3], n), 1)
        search.run(5000)
        mapping = mapping_of(core, search.solution(), asked.seeds, m)
        assert asked.value(mapping) * asked.unit == objective(problem, *given[:3], mapping) == wanted
        assert search.best == core.cost(search.solution()) == cost
        assert ((given[3] < 0) | (mapping == given[3])).all()
    bounds = closed(core, cost)
    assert bounds.value == cost and bounds.proof().checked
    proof = from_bytes(to_bytes(bounds.proof()))
    proof.check(core)
    with pytest.raises(BadCertificate):
        replace(proof, lower=cost + core.scale).check(core)
    for name, (rule, _) in BASELINES.items():
        p = rule(core)
        assert sorted(p.tolist()) == list(range(core.k)), name
        assert core.cost(p) >= cost


def test_the_answer_is_that_of_the_best_mapping_on_any_ranks():
    a, b, worth, _ = drawn(3, QAP, "both", 7, 7)
    found = solve((a, b), QAP, similarity=worth, seeds={2: 5}, settings=QUICK)
    fixed = np.array([-1, -1, 5, -1, -1, -1, -1])
    assert found.objective == best(QAP, a, b, worth, fixed) and found.mapping[2] == 5
    mapping = np.array([found.mapping[i] for i in range(7)])
    assert objective(QAP, a, b, worth, mapping) == found.objective
    checked = check((a, b), found, similarity=worth, seeds={2: 5})
    assert checked.objective == found.objective and checked.bound == found.bound


def test_a_planted_alignment_is_found_with_names():
    first = nx.barabasi_albert_graph(60, 3, seed=1)
    second = nx.relabel_nodes(first, {v: f"node {(7 * v + 3) % 60}" for v in first})
    second = nx.Graph(sorted(second.edges))
    found = solve((first, second), settings=QUICK | {"problem.name": ALIGNMENT})
    assert found.objective == found.edges_kept == found.bound == first.number_of_edges()
    assert found.optimal and found.edges_lost == 0
    assert all(second.has_edge(found.mapping[u], found.mapping[v]) for u, v in first.edges)
    again = solve((first, second), ALIGNMENT, start=found, settings=QUICK | {"search.steps": 1})
    assert again.objective == found.objective


def test_arcs_count_each_way_and_weights_are_multiplied():
    first, second = nx.DiGraph([(0, 1), (1, 2)]), nx.DiGraph([("x", "y"), ("z", "y"), ("y", "w")])
    found = solve((first, second), ALIGNMENT, settings=QUICK)
    assert found.objective == 2 and found.mapping[1] == "y" and found.mapping[2] == "w"
    weighted = sp.csr_array(np.array([[0, 0.5], [0.5, 0]])), sp.csr_array(np.array([[0, 0.25], [0.25, 0]]))
    assert solve(weighted, ALIGNMENT, settings=QUICK).objective == 0.125


# ---- the same bits -----------------------------------------------------------------------------------------


@alone
@compiled
@pytest.mark.parametrize("symmetric", SYMMETRIC)
def test_kernels_and_their_twins_have_the_same_numbers(symmetric):
    core = asked_of(QAP, *drawn(5, QAP, symmetric, 12, 12)).core
    fast, slow = (TabuSearch(core, np.arange(12), 3, each) for each in (True, False))
    for each in (fast, slow):
        each.span = each._record.span = 6
    for steps in (1, 99, 500):
        fast.run(steps)
        slow.run(steps)
        assert all(
            np.array_equal(getattr(fast, x), getattr(slow, x)) for x in TABU_ARRAYS if x not in SCRATCH
        )
        assert [getattr(fast, x) for x in TABU_NUMBERS] == [getattr(slow, x) for x in TABU_NUMBERS]
        assert fast.random == slow.random
    assert fast.filled == fast.elites  # so that some were crossed
    fast, slow = (WalkSearch(core, np.arange(12), 3, each) for each in (True, False))
    for steps in (1, 120):
        fast.run(steps)
        slow.run(steps)
        assert (fast.p == slow.p).all() and (fast.q == slow.q).all() and fast.random == slow.random
        assert [getattr(fast, x) for x in WALK_NUMBERS] == [getattr(slow, x) for x in WALK_NUMBERS]
    assert fast.cost == core.cost(fast.p.astype(np.int64)) and fast.cycle > 0
    states = [state_of(tables_of(core), 16) for _ in range(2)]
    for _ in range(3):
        gained = [state.sweep(each) for state, each in zip(states, (True, False))]
        assert gained[0] == gained[1]
    for name in ("linear", "square", "top", "rows", "columns"):
        assert np.array_equal(getattr(states[0], name), getattr(states[1], name))
    tables = tables_of(asked_of(QAP, *drawn(5, QAP, symmetric, 6, 6)).core)
    state, *lean = state_of(tables, 16), Lean(tables, 16), Lean(tables, 16)  # with products and without
    for _ in range(3):
        assert state.sweep(True) == lean[0].sweep(True) == lean[1].sweep(False)
    for name in ("linear", "top", "rows", "columns"):
        assert all(np.array_equal(getattr(state, name), getattr(each, name)) for each in lean)


def test_sliced_runs_and_ranks_have_the_same_bits():
    first = nx.gnp_random_graph(40, 0.2, seed=2)
    second = nx.gnp_random_graph(44, 0.2, seed=3)
    settings = {"search.steps": 3000, "search.starts": 3, "search.bounds": False}
    found = solve((first, second), ALIGNMENT, settings=settings)
    plain = solve((first, second), ALIGNMENT, settings=settings, comm=MPI.COMM_SELF)
    assert found.digest == plain.digest and found.mapping == plain.mapping


# ---- bounds ------------------------------------------------------------------------------------------------


@alone
def test_multipliers_of_a_case_prove_what_is_left_of_it():
    core = asked_of(QAP, *drawn(8, QAP, "neither", 6, 6)).core
    tables = tables_of(core)
    state = state_of(tables, 4)
    for _ in range(5):
        state.sweep(True)
    scaled = tables[0] * 4, tables[1], tables[2] * 4, tables[3] * 4
    found, rest = left_by(scaled, state.top, state.rows, state.columns)
    assert found == state.bound and (rest == state.linear).all()
    part = state.placed(1, 3)
    found, rest = left_by(placed(scaled, 1, 3), part.top, part.rows, part.columns)
    assert found >= part.bound == state.bound + state.linear[1, 3]
    for name in ("rows", "columns"):
        wrong = getattr(state, name).copy()
        wrong[0, 1, 2] += 1 << 20
        changed = {"rows": state.rows, "columns": state.columns} | {name: wrong}
        with pytest.raises(BadCertificate, match="left below 0"):
            left_by(scaled, state.top, changed["rows"], changed["columns"])


@alone
def test_damaged_proofs_are_refused():
    core = asked_of(QAP, *drawn(4, QAP, "neither", 8, 8)).core
    search = TabuSearch(core, np.arange(8), 1)
    search.run(3000)
    proof = closed(core, search.best).proof()
    assert len(proof.branch) > 1
    for changed in (
        {"branch": proof.branch[:-1]}, {"branch": np.append(proof.branch, -1)}, {"one": 0},
        {"branch": np.where(proof.branch >= 0, -1, proof.branch)}, {"top": proof.top[:-1]},
        {"rows": proof.rows + (1 << 60)}, {"by": "hearsay"}, {"by": "Gilmore-Lawler"},
    ):  # fmt: skip
        with pytest.raises(BadCertificate):
            replace(proof, **changed).check(core)


@alone
@pytest.mark.parametrize("seed", range(4))
def test_degrees_and_nodes_bound_common_edges(seed):
    first, second = (nx.gnp_random_graph(6, 0.5, seed=seed + k) for k in (0, 50))
    a, b = (nx.to_numpy_array(each, dtype=np.int64) for each in (first, second))
    given = a, b, np.zeros((6, 6), dtype=np.int64), np.full(6, -1)
    core, wanted = asked_of(ALIGNMENT, *given).core, best(ALIGNMENT, *given)
    costs = node_costs(core)
    top = least_assignment(costs, True)[1]
    assert (top == least_assignment(costs, False)[1]).all()
    degrees = degree_sum(core)
    assert degrees <= by_rows(costs, top) <= -2 * wanted
    shared = sum(map(min, sorted(dict(first.degree).values()), sorted(dict(second.degree).values())))
    assert degrees == -shared


@alone
@pytest.mark.parametrize("symmetric", SYMMETRIC)
@pytest.mark.parametrize("problem", [QAP, ALIGNMENT])
def test_splits_bound_every_assignment_from_below(problem, symmetric):
    for seed, turned in ((1, False), (2, True)):
        given = drawn(seed, problem, symmetric, 6, 6, gain=seed > 1)
        uneven = given[turned]
        uneven[0, 1:] *= 9
        uneven[1:, 0] *= 9
        asked = asked_of(problem, *given)
        core, sign = asked.core, -1 if problem == ALIGNMENT else 1
        cost = sign * int(best(problem, *given) / asked.unit) * core.scale
        splitting = Splitting(core)
        for _ in range(250):
            splitting.step(cost)
        proof = from_bytes(to_bytes(splitting.proof))
        proof.check(core)
        rows = least_assignment(node_costs(core), True)[0] + core.constant
        assert min(rows, cost - 1) - core.scale < proof.lower <= cost
        assert proof.turned == turned


@alone
def test_damaged_splits_are_refused():
    core = asked_of(QAP, *drawn(6, QAP, "both", 14, 14)).core
    search = TabuSearch(core, np.arange(14), 1)
    search.run(2000)
    splitting = Splitting(core)
    for _ in range(250):
        splitting.step(search.best)
    proof = splitting.proof
    proof.check(core)
    assert proof.lower <= search.best
    far = np.full((14, 14), 1 << 40)
    for changed in (
        {"lower": proof.lower + core.scale}, {"part": proof.part[:-1]}, {"one": 0}, {"one": 1 << 50},
        {"top": proof.top + (1 << 59)}, {"top": proof.top[:-1]}, {"near": far}, {"top": proof.top * 0},
        {"diagonal": proof.diagonal + 1000 * proof.one * np.arange(14)},
        {"part": proof.part * 2}, {"part": proof.part + (1 << 53)},
    ):  # fmt: skip
        with pytest.raises(BadCertificate):
            replace(proof, **changed).check(core)


@alone
def test_splits_of_matrices_that_say_nothing():
    """Linear costs that are all 0, and directions of ascent that are."""
    ones, none = np.ones((6, 6)) - np.eye(6), np.zeros((6, 6))
    ring = sum(np.roll(np.eye(6), by, 1) * sign for by, sign in ((1, 1), (2, -1)))
    for a, b in ((ones, ones), (none, ones), (ring, ring)):
        core = asked_of(QAP, a, b, none, np.full(6, -1)).core
        cost, splitting, steps = core.cost(np.arange(6)), Splitting(core), 0
        while not splitting.done and steps < 3000:
            splitting.step(cost)
            steps += 1
        splitting.proof.check(core)
        assert splitting.proof.lower <= cost and splitting.done


# ---- files -------------------------------------------------------------------------------------------------

FILES = {
    "a.txt": "1 2\n2 3\n3 4\n4 1\n1 3\n", "b.txt": "5 6\n6 7\n7 8\n8 5\n6 8\n", "seeds.txt": "1 8\n",
    "similarity.txt": "2 5 0.5\n", "q.dat": "3\n0 1 2\n1 0 3\n2 3 0\n\n0 9 4\n9 0 1\n4 1 0\n",
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@alone
def test_two_files_pairs_and_the_file_of_the_answer(files):
    settings = QUICK | {
        "graph.seeds": str(files / "seeds.txt"),
        "graph.similarity": str(files / "similarity.txt"),
    }
    both = str(files / "a.txt"), str(files / "b.txt")
    found = solve(both, ALIGNMENT, settings=settings)
    assert found.objective == 5.5 and found.mapping == {1: 8, 2: 5, 3: 6, 4: 7}
    found.save(str(files / "out.txt"))
    assert check(both, str(files / "out.txt"), ALIGNMENT, settings=settings).objective == 5.5
    (files / "out.txt").write_text("1 8\n2 5\n3 6\n4 6\n")
    with pytest.raises(GraphError, match=r"out\.txt:4: node 6 is taken, by line 3"):
        check(both, str(files / "out.txt"), ALIGNMENT, settings=settings)
    with pytest.raises(GraphError, match="does not put node 1 on 8, where"):
        check(both, {1: 5, 2: 6, 3: 7, 4: 8}, ALIGNMENT, settings=settings)
    with pytest.raises(GraphError, match="puts 2 nodes on others; 4 would be right"):
        check(both, {1: 8, 2: 5}, ALIGNMENT, settings=settings)


@alone
def test_files_of_qaplib_and_runs_on_any_ranks(files):
    draws = np.random.default_rng(2)
    a, b = (draws.integers(0, 9, (8, 8)) for _ in range(2))
    numbers = "\n".join(" ".join(map(str, row)) for row in (*a.tolist(), *b.tolist()))
    (files / "q.dat").write_text(f"8\n{numbers}\n")
    found = solve(str(files / "q.dat"), QAP, settings=QUICK | {"seed": 1, "search.starts": 3})
    mapping = np.array([found.mapping[i] for i in range(1, 9)]) - 1
    assert (a * b[np.ix_(mapping, mapping)]).sum() == found.objective == found.bound
    out = str(files / "out")
    keys = [f"graph.path={files / 'q.dat'}", "search.steps=4000", "search.starts=3", "output.plots=false"]
    keys += ["output.certificates=true", "search.bound_seconds=2", "--out", out]
    code, said = run_job([*mpirun(3), sys.executable, "run.py", "inputs/qap.toml", *keys], limit_s=100)
    assert code == 0, said
    result = json.loads((files / "out" / "result.json").read_text())["instances"][0]
    assert result["digest"] == found.digest and result["objective"] == found.objective
    code, said = run_job([sys.executable, "run.py", f"{out}/case.toml", "--check", out], limit_s=100)
    assert code == 0 and f"at least {found.objective} is proved" in said, said


@alone
def test_names_with_blanks_come_back(tmp_path):
    ids, others = np.array([b"a b", b"c"]), np.array([b"x", b"y z", b"w"])
    path = tmp_path / "m.txt"
    path.write_text(mapping_text(np.array([1, -1]), ids, others))
    assert read_mapping(str(path), ids, others).tolist() == [1, -1]


def objective_of(first, second, **keys):
    return solve((first, second), keys.pop("name", ALIGNMENT), settings=QUICK, **keys).objective


@alone
def test_numbers_of_any_type_count_as_what_they_are():
    path = nx.to_numpy_array(nx.path_graph(3))
    repeated = sp.coo_array((np.full(4, 100, dtype=np.int8), ([0] * 4, [1] * 4)), shape=(2, 2))
    assert objective_of(repeated, np.ones((2, 2)), name=QAP) == 400
    assert objective_of(path.astype(np.float16), path.astype(bool)) == 2
    with pytest.raises(GraphError, match="is above"):
        solve((np.full((2, 2), (1 << 64) - 1, dtype=np.uint64), path), ALIGNMENT)
    parallel, loop = nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), nx.Graph([(0, 0), (0, 1)])
    assert objective_of(parallel, path) == 3 and objective_of(loop, loop) == 1
    assert objective_of(loop, loop, name=QAP) == 2  # the loop on a node without one
    assert objective_of(path, path, similarity={(0, 0): Fraction(1, 4), (1, 1): np.float32(2)}) == 4.25
    for weights, words in (("x", 1), "the weight 'x'"), ((None, 1), "has no weight, others"):
        graph = nx.Graph()
        graph.add_weighted_edges_from([(0, 1, weights[0]), (1, 2, weights[1])])
        with pytest.raises(GraphError, match=words):
            solve((graph, graph), ALIGNMENT)
    with pytest.raises(GraphError, match=r"an entry of the similarities is 1\.18059e\+21; at most"):
        solve((path, path), ALIGNMENT, similarity={(0, 0): 1 << 70}, settings=QUICK)


@alone
def test_ids_of_nineteen_digits_come_back_and_numbers_are_plain(tmp_path):
    ids, others = np.array([7, (1 << 63) - 1]), np.array([5, 1 << 40])
    path = tmp_path / "m.txt"
    path.write_text(mapping_text(np.array([1, 0]), ids, others))
    assert read_mapping(str(path), ids, others).tolist() == [1, 0]
    path.write_text(f"{1 << 63} 5\n")
    with pytest.raises(GraphError, match="is not in the first graph"):
        read_mapping(str(path), ids, others)
    for word in ("1_0", "nan", "1e999", "0x1"):
        path.write_text(f"7 5 {word}\n")
        with pytest.raises(GraphError, match=r"m\.txt:1: found .*; a number would be right"):
            _gain_of_file(str(path), ids, others)
    path.write_text("7 5 -1.5e1\n")
    assert _gain_of_file(str(path), ids, others).toarray().tolist() == [[-15, 0], [0, 0]]


@alone
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.7, 0.97, 1.0])
def test_edges_of_copies_move_to_free_pairs(share, directed):
    draws, n = np.random.default_rng(5), 15
    u, v = np.nonzero(~np.eye(n, dtype=bool) if directed else np.triu(np.ones((n, n)), 1))
    kept = draws.permutation(len(u))[: round(share * len(u))]
    free = len(u) - len(kept)
    u, v = u[kept], v[kept]
    before = set(zip(u.tolist(), v.tolist()))
    chosen = draws.permutation(len(u))[:10]
    move = _move_among_many if n * n > 4 * len(u) else _move_among_few
    move(u, v, chosen, n, directed, draws)
    after = set(zip(u.tolist(), v.tolist()))
    assert len(after) == len(before) == len(u)
    assert len(after - before) == min(free, len(chosen))
    assert all(i != j if directed else i < j for i, j in after)


@alone
def test_numbers_become_whole_ones():
    assert whole(np.array([0.1, 2.25], dtype=np.float32), "x")[0].tolist() == [10, 225]
    assert whole(np.array([0.1, 1 / 3]), "x")[1].denominator == 1 << 31
    assert whole(np.array([3, -4]), "x")[0].tolist() == [3, -4]
    for wrong in ([np.inf], [np.nan], [1e30], np.array([LARGEST + 1])):
        with pytest.raises(GraphError):
            whole(np.array(wrong), "x")


# ---- what is refused ---------------------------------------------------------------------------------------

PAIR = (nx.path_graph(3), nx.path_graph(4))
ARCS = {"problem.directed": True}
HUGE = np.full((3, 3), 1 << 30)
REFUSED = {
    "one graph": (lambda: solve(nx.path_graph(3), ALIGNMENT), "alignment is of two graphs"),
    "a file beside": (lambda: solve((nx.path_graph(3), "b.txt"), ALIGNMENT), "as the second graph"),
    "no square": (lambda: solve((np.ones((2, 3)), np.ones((3, 3))), QAP), "a square matrix"),
    "fewer locations": (lambda: solve(PAIR[::-1], QAP, settings=QUICK), "found 3 locations for 4 facilities"),
    "sums": (lambda: solve((HUGE, HUGE), QAP, settings=QUICK), "products that may add up to"),
    "seeds twice": (lambda: solve(PAIR, ALIGNMENT, seeds=[(0, 1), (1, 1)]), "second graph is in two pairs"),
    "an unknown seed": (lambda: solve(PAIR, ALIGNMENT, seeds={0: 9}), "seeds: "),
    "similarity": (lambda: solve(PAIR, ALIGNMENT, similarity=np.ones((2, 2))), "a matrix"),
    "of others": (lambda: solve(nx.path_graph(3), "mvc", seeds={0: 1}), "seeds: mvc has none"),
    "inside": (lambda: solve(PAIR, ALIGNMENT, inside=[0]), "graph.seeds"),
    "directed": (lambda: solve(PAIR, ALIGNMENT, settings=ARCS), "problem.directed: is of"),
    "a key of others": (lambda: solve(nx.path_graph(3), "mvc", settings=ARCS), "directed"),
    "noise": (lambda: solve(PAIR, QAP, settings={"problem.noise": 0.5}), "problem.noise: is of"),
    "no second": (lambda: solve("networkx:karate_club", ALIGNMENT), "graph.onto=FILE"),
}  # fmt: skip


@alone
@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_wrong_is_told_in_a_line(case):
    call, words = REFUSED[case]
    with pytest.raises((CaseError, GraphError)) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)


WRONG = {
    "x\n": "the number of facilities", "": "then two matrices, would be right",
    "2\n0 1 1 0 0 1 1 99999999999999999": "found '99999999999999999'; a whole number from -7205",
    "2\n0 1 1 0 0 1 1": "found 7 entries of 2 facilities; 8 would",
    "1\n0 0 0": "more than 2 entries", "2\n0 1.5 1 0\n0 1 1 0\n": "q.dat:2: found '1.5'; a whole number",
}  # fmt: skip


@alone
@pytest.mark.parametrize("text", list(WRONG))
def test_damaged_files_of_qaplib_are_refused(files, text):
    (files / "q.dat").write_text(text)
    with pytest.raises(GraphError) as error:
        solve(str(files / "q.dat"), QAP, settings=QUICK)
    assert WRONG[text] in str(error.value)


@alone
def test_a_quadratic_assignment_is_no_graph(files):
    with pytest.raises(GraphError, match=r'problem\.name = "qap" would be right'):
        solve(str(files / "q.dat"), "mvc")


@alone
@pytest.mark.parametrize("name", [QAP, ALIGNMENT])
def test_the_case_as_it_is_and_a_dry_run(tmp_path, name):
    keys = ["graph.count=1", "search.steps=200", "output.plots=false"]
    if name == ALIGNMENT:
        keys.append("graph.nodes=12")
    command = [sys.executable, "run.py", f"inputs/{name}.toml", *keys, "--out", str(tmp_path / "o")]
    assert run_job([*command, "--dry-run"], limit_s=100)[0] == 0
    code, said = run_job(command, limit_s=100)
    assert code == 0 and ("edges on edges" in said) == (name == ALIGNMENT), said
    assert (ROOT / f"inputs/{name}.toml").exists()


# ---- many nodes --------------------------------------------------------------------------------------------


@alone
@compiled
@pytest.mark.parametrize("density", [0.0, 0.05, 0.6])
def test_entries_and_sums_of_products_are_the_same_without_kernels(density):
    for seed in range(8):
        draws = np.random.default_rng(seed)
        n, m = draws.integers(1, 90, 2).tolist()
        a, b = (
            tidy(sp.csr_array(draws.integers(-9, 10, (k, k)) * (draws.random((k, k)) < density)))
            for k in (n, m)
        )
        mapping = np.full(n, -1)
        mapping[draws.permutation(n)[: min(n, m)]] = draws.permutation(m)[: min(n, m)]
        rows, columns = draws.integers(0, m, (2, 50))
        expected = b.toarray()[rows, columns]
        for each in (True, False):
            assert np.array_equal(entries(b, rows, columns, each), expected)
        there = np.flatnonzero(mapping >= 0)
        on = np.ix_(mapping[there], mapping[there])
        total = int((a.toarray()[np.ix_(there, there)] * b.toarray()[on]).sum())
        assert products(a, b, mapping) == products(a, b, mapping, compiled=False) == total


@alone
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_alike_but_for_their_order_are_found_to_be_so(directed):
    """Of random graphs by four rounds of refinement, whatever nodes are called; two of their nodes look the
    same where they have no neighbours.
    """
    draws, n = np.random.default_rng(3), 3000
    u, v = draws.integers(0, n, (2, 4 * n))
    a = sp.csr_array((draws.integers(1, 3, 4 * n), (u, v)), shape=(n, n))
    a = without_loops(a if directed else a + a.T)
    shuffled = draws.permutation(n)
    b = a[shuffled][:, shuffled]
    asked = pairing_of("x", ALIGNMENT, a, b, sp.csr_array((n, n)), np.full(n, -1), np.arange(n), np.arange(n))
    p = by_refinement(asked.core)
    assert np.array_equal(np.sort(p), np.arange(n))
    kept, edges = asked.kept(mapping_of(asked.core, p, asked.seeds, n))
    assert kept == edges > 0 and asked.core.cost(p) < asked.core.cost(by_degree(asked.core))
    tools = AssignmentTools(instance_of(from_edges(n, u, v), pairing=asked), GraphAlignment())
    assert asked.core.cost(tools.start()) == asked.core.cost(p)
    with tools.watched(lambda: True):  # no time: by degree alone
        assert np.array_equal(tools.start(), by_degree(asked.core))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("weight", "likeness"), [(1, 0), (3, 0), (1, 2)])
def test_values_and_kept_edges_are_those_of_each_mapping(compiled, weight, likeness):
    """The last value is known: not where the mapping is another, or the same array with other places."""
    draws = np.random.default_rng(7)
    a, b = (np.triu(draws.random((6, 6)) < 0.5, 1) for _ in range(2))
    a, b = a | a.T, b | b.T
    gain = likeness * draws.integers(0, 2, (6, 6))
    given = (sp.csr_array(weight * a.astype(int)), sp.csr_array(b.astype(int)), sp.csr_array(gain))
    nodes = np.arange(6)
    asked = pairing_of("x", "alignment", *given, np.full(6, -1), nodes, nodes, None, compiled)
    mapping = nodes.copy()
    for _ in range(5):
        mapping[:] = draws.permutation(6)
        both = int((a & b[np.ix_(mapping, mapping)]).sum()) // 2
        assert asked.kept(mapping) == (both, int(a.sum()) // 2)
        for _ in range(2):
            assert asked.value(mapping) == weight * both + int(gain[nodes, mapping].sum())
