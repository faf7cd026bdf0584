"""Answers of the whole pipeline: optimal on small graphs, alike on any ranks; fixed nodes, starts, checks."""

import itertools
import json
import os
import sys
import tempfile
from importlib.util import find_spec

import networkx as nx
import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import keys_of_replay
from jobs import ROOT, run_job
from mpi4py import MPI

from app import check as prove
from app import solve
from app.errors import CaseError, GraphError, LockstepError
from app.problems.table import ROW_PEELED
from app.reductions.cover import compiled
from app.reductions.cut import compiled as cut_compiled
from app.reductions.domination import table_rows
from app.solver import pipeline
from app.solver.learned import StartClock
from app.solver.pipeline import Pipeline

QUIET = {"search.baselines": False, "search.steps": 300, "search.bound_seconds": 0.2}
# problem -> a graph whose kernel is not empty, so that there is something to search
CORES = {
    "mvc": lambda: nx.barabasi_albert_graph(300, 4, seed=3),
    "mis": lambda: nx.gnp_random_graph(120, 0.1, seed=3),
    "mds": lambda: nx.barabasi_albert_graph(120, 3, seed=3),
    "clique": lambda: nx.gnp_random_graph(120, 0.9, seed=3),
    "maxcut": lambda: nx.gnp_random_graph(60, 0.15, seed=3),
    "maxcut_once": lambda: nx.gnp_random_graph(60, 0.15, seed=3),
    "tsp": lambda: cities(90),
}


FILES = tempfile.TemporaryDirectory(prefix="lockstep-cities-")


def cities(n):
    """The name of a TSPLIB file; rank 0 reads it."""
    points = np.random.default_rng(n).integers(0, 1000, (n, 2)).tolist()
    lines = [f"{i + 1} {x} {y}" for i, (x, y) in enumerate(points)]
    head = ["NAME : cities", "TYPE : TSP", f"DIMENSION : {n}", "EDGE_WEIGHT_TYPE : EUC_2D"]
    path = os.path.join(tempfile.mkdtemp(dir=FILES.name), "cities.tsp")
    with open(path, "w") as file:
        file.write("\n".join([*head, "NODE_COORD_SECTION", *lines, "EOF", ""]))
    return path


def smallest_cover(graph, weights):
    """The least weight of a vertex cover, by trying all."""
    nodes = list(graph)
    best = sum(weights.values())
    for mask in itertools.product((0, 1), repeat=len(nodes)):
        chosen = {node for node, bit in zip(nodes, mask) if bit}
        if all(u in chosen or v in chosen for u, v in graph.edges):
            best = min(best, sum(weights[node] for node in chosen))
    return best


@pytest.mark.mpi_skip
@pytest.mark.parametrize("seed", range(6))
def test_small_graphs_are_solved_to_proved_optimality(seed):
    graph = nx.gnp_random_graph(12, 0.35, seed=seed)
    cover = smallest_cover(graph, dict.fromkeys(graph, 1))
    answer = solve(graph, settings=QUIET)
    assert (answer.objective, answer.bound, answer.optimal) == (cover, cover, True)
    others = solve(graph, settings=QUIET | {"problem.name": "mis"})
    assert (others.objective, others.bound, others.optimal) == (12 - cover, 12 - cover, True)


@pytest.mark.parametrize("problem", CORES)
@pytest.mark.parametrize("starts", [1, 3])
def test_an_answer_does_not_depend_on_the_ranks(problem, starts):
    graph = CORES[problem]()
    settings = QUIET | {"problem.name": problem, "search.starts": starts}
    alone = solve(graph, settings=settings, comm=MPI.COMM_SELF)
    together = solve(graph, settings=settings, comm=MPI.COMM_WORLD)
    assert together.nodes == alone.nodes
    assert together.objective == alone.objective
    assert together.source == alone.source


@pytest.mark.parametrize("problem", CORES)
def test_every_problem_takes_a_time_limit(problem):
    """Under which bounds work until the end, on a rank of their own where there is one."""
    settings = {"problem.name": problem, "search.seconds": 0.3, "search.baselines": False}
    answer = solve(CORES[problem](), settings=settings, comm=MPI.COMM_WORLD)
    assert answer.feasible
    assert answer.bound is not None
    assert answer.seconds < 30  # only against hangs


@pytest.mark.skipif(find_spec("highspy") is None, reason="needs highspy")
@pytest.mark.parametrize("starts", [1, 2])
def test_dominating_sets_are_proved_optimal_on_any_ranks(starts):
    """By branch and cut, which has a rank of its own where there is one."""
    graph = nx.disjoint_union(nx.gnp_random_graph(60, 0.1, seed=1), nx.barabasi_albert_graph(60, 4, seed=3))
    settings = {"problem.name": "mds", "search.seconds": 60.0, "search.baselines": False}
    answers = [
        solve(graph, settings=settings | {"search.starts": starts}, comm=comm)
        for comm in (MPI.COMM_SELF, MPI.COMM_WORLD)
    ]
    for answer in answers:
        assert answer.optimal
        assert nx.is_dominating_set(graph, answer.nodes)
    assert answers[0].objective == answers[1].objective


@pytest.mark.mpi_skip
def test_a_pass_that_is_not_begun_costs_nothing():
    """Of reduce and peel: the evaluations may be used up when the next pass would begin."""
    graph, found = nx.gnp_random_graph(120, 0.08, seed=1), []
    for evaluations in range(1, 12):
        settings = {
            "search.steps": 0, "search.reductions": False, "search.bounds": False, "search.baselines": False,
            "search.peel_fraction": 0.1, "search.evaluations": evaluations,
        }  # fmt: skip
        found.append(solve(graph, settings=settings).objective)
    assert len(set(found)) > 2
    assert all(later <= found[5] for later in found[6:])


@pytest.mark.parametrize(
    ("problem", "graph", "steps", "sizes"),
    [
        (
            "tsp",
            lambda: cities(400),
            1000,
            {"tour.search.KICKS": 40, "tour.search.LEAST_KICKS": 10, "tour.search.LEAST_MEETING": 50},
        ),
        (
            "maxcut",
            lambda: nx.gnp_random_graph(400, 0.05, seed=3),
            40_000,
            {"cut.search.SWEEPS": 2, "cut.search.POOL": 4},
        ),
    ],
)
def test_searches_meet_alike_on_any_ranks(problem, graph, steps, sizes, monkeypatch):
    """Each of three searches goes on from what all have found; without meetings they find something else."""
    graph, found = graph(), []
    for name, value in sizes.items():
        monkeypatch.setattr(f"app.search.{name}", value)
    settings = {"problem.name": problem, "search.starts": 3, "search.steps": steps, "search.start": "greedy"}
    for meeting in (True, False):
        if not meeting:
            monkeypatch.setattr("app.solver.meetings.Meetings.hold", lambda *_: None)
        for comm in (MPI.COMM_SELF, MPI.COMM_WORLD):
            answer = solve(graph, settings=QUIET | settings | {"search.bounds": False}, comm=comm)
            found.append((answer.nodes, answer.objective, answer.source))
    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("reductions", [True, False])
@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_fixed_nodes_are_respected(tmp_path, problem, reductions):
    graph = nx.barabasi_albert_graph(40, 3, seed=2)
    free = solve(graph, settings=QUIET | {"problem.name": problem})
    inside = [v for v in graph if v not in free.nodes][:1]
    outside = [v for v in free.nodes if not graph.has_edge(v, inside[0])][:2]
    if problem == "mvc":
        outside = outside[:1]  # no two adjacent nodes may both stay uncovered
    (tmp_path / "in.txt").write_text("".join(f"{v}\n" for v in inside))
    (tmp_path / "out.txt").write_text("".join(f"{v}\n" for v in outside))
    fixed = {"search.inside": str(tmp_path / "in.txt"), "search.outside": str(tmp_path / "out.txt")}
    more = {"problem.name": problem, "search.reductions": reductions}
    answer = solve(graph, settings=QUIET | fixed | more)
    assert set(inside) <= set(answer.nodes)
    assert not set(outside) & set(answer.nodes)
    assert answer.objective >= free.objective if problem == "mvc" else answer.objective <= free.objective


@pytest.mark.mpi_skip
def test_a_given_solution_is_where_the_search_starts(tmp_path):
    graph = nx.gnp_random_graph(150, 0.1, seed=1)
    best = solve(graph, settings=QUIET | {"search.steps": 20_000})
    path = tmp_path / "start.txt"
    path.write_text("".join(f"{v}\n" for v in best.nodes))
    again = solve(graph, settings=QUIET | {"search.steps": 0, "search.start": str(path)})
    assert again.objective == best.objective
    # What is no cover is repaired.
    path.write_text("0\n1\n")
    repaired = solve(graph, settings=QUIET | {"search.start": str(path)})
    assert all(u in repaired.nodes or v in repaired.nodes for u, v in graph.edges)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\nx\n", "start.txt:2: found 'x'"),
        ("0\n0\n", "named twice"),
        ("99\n", "node 99 is not in the graph"),
    ],
)
def test_a_wrong_solution_file_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "start.txt").write_text(text)
    with pytest.raises(GraphError, match=said):
        solve(nx.path_graph(5), settings=QUIET | {"search.start": str(tmp_path / "start.txt")})
    with pytest.raises(CaseError, match="no such file"):
        solve(nx.path_graph(5), settings=QUIET | {"search.start": str(tmp_path / "none.txt")})


@pytest.mark.mpi_skip
def test_ids_of_nineteen_digits_are_read_back(tmp_path):
    """Edge lists have ids up to 2^63 - 1: files of solutions, and of what must be chosen, name them all."""
    first, last = 10**18, 2**63 - 1
    (tmp_path / "g.txt").write_text(f"{first} 7\n{first} {last}\n")
    (tmp_path / "in.txt").write_text(f"{last}\n")
    settings = QUIET | {"search.inside": str(tmp_path / "in.txt")}
    answer = solve(str(tmp_path / "g.txt"), settings=settings)
    assert answer.nodes[-1] == last and answer.objective == 2
    tree = solve(str(tmp_path / "g.txt"), "steiner", terminals=[7, last], settings=QUIET)
    for problem, found in (("mvc", answer), ("coloring", None), ("steiner", tree)):
        found = solve(str(tmp_path / "g.txt"), problem, settings=QUIET) if found is None else found
        found.save(tmp_path / "found.txt")
        more = {} if problem != "steiner" else {"terminals": [7, last]}
        assert prove(str(tmp_path / "g.txt"), tmp_path / "found.txt", problem, **more).objective == 2
    (tmp_path / "in.txt").write_text(f"{last + 1}\n")
    with pytest.raises(GraphError, match="right is one node id per line"):
        solve(str(tmp_path / "g.txt"), settings=settings)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("seed", range(4))
def test_node_weights_count(tmp_path, seed):
    """A METIS file carries weights of nodes."""
    graph = nx.gnp_random_graph(11, 0.4, seed=seed)
    draws = np.random.default_rng(seed)
    weights = dict(enumerate(draws.integers(1, 9, 11).tolist()))
    lines = [f"{11} {graph.number_of_edges()} 10"]
    lines += [" ".join(map(str, [weights[v], *(u + 1 for u in sorted(graph[v]))])) for v in graph]
    path = tmp_path / "weighted.graph"
    path.write_text("\n".join(lines) + "\n")
    cover = smallest_cover(graph, weights)
    answer = solve(str(path), settings=QUIET)
    assert (answer.objective, answer.bound) == (cover, cover)
    others = solve(str(path), settings=QUIET | {"problem.name": "mis"})
    assert (others.objective, others.bound) == (sum(weights.values()) - cover,) * 2


@pytest.mark.mpi_skip
def test_a_graph_beyond_the_memory_limit_is_left_to_the_policy():
    graph = nx.barabasi_albert_graph(200, 4, seed=1)
    answer = solve(graph, settings=QUIET | {"memory.whole_graph_mb": 0.0})
    assert (answer.source, answer.bound_verified) == ("policy", True)
    assert answer.bound <= answer.objective
    assert all(u in answer.nodes or v in answer.nodes for u, v in graph.edges)


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "fvs", "clique", "maxcut"])
def test_the_policy_alone_refuses_fixed_nodes_before_any_work(problem, shared_path, monkeypatch):
    """It holds to none: the key is named, whether it was asked for or the graph is too large."""
    monkeypatch.setattr("app.api.solve.find_policy", None)
    graph, path = nx.cycle_graph(9), shared_path / "in.txt"
    if MPI.COMM_WORLD.rank == 0:
        path.write_text("2\n")
    MPI.COMM_WORLD.barrier()
    alone, large = {"search.solver": "policy"}, {"memory.whole_graph_mb": 1e-4}
    for options, said in (
        ({"inside": [2], "settings": alone}, '^inside: the policy alone .* "full" would be right'),
        ({"outside": [6], "settings": large}, "^outside: .* memory.whole_graph_mb = 1 would be right"),
        ({"settings": alone | {"search.inside": str(path)}}, "search.inside: the policy alone"),
        ({"settings": large | {"search.outside": str(path)}}, "^search.outside: the policy alone"),
    ):
        with pytest.raises(CaseError, match=said) as caught:
            solve(graph, problem, **options)
        assert "\n" not in str(caught.value).strip()


def test_an_answer_of_the_policy_alone_is_checked_as_every_other(monkeypatch):
    monkeypatch.setattr("app.search.node_tools.NodeTools.fault", lambda *_: "not what was asked for")
    with pytest.raises(LockstepError, match="not what was asked for"):
        solve(nx.path_graph(5), settings={"search.solver": "policy", "search.baselines": False})


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "fvs", "clique"])
def test_the_policy_alone_tells_the_weight_of_its_nodes(problem):
    """With the whole graph at hand and without one; the same answer on any number of ranks."""
    graph = nx.gnp_random_graph(40, 0.2, seed=3)
    weights, alone = np.round(np.random.default_rng(1).uniform(0.1, 9, 40), 1), {"search.solver": "policy"}
    found = [
        solve(graph, problem, node_weights=weights, settings=settings, comm=comm)
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
        for settings in (
            alone, alone | {"search.bounds": False, "search.baselines": False},
            alone | {"memory.whole_graph_mb": 1e-4}, {"memory.whole_graph_mb": 1e-4},
        )
    ]  # fmt: skip
    for number, answer in enumerate(found):
        on_rows = number % 4 == 3 and problem in ROW_PEELED  # by a greedy that goes by weights
        first = found[3 if on_rows else 0]
        assert answer.objective == round(weights[answer.nodes].sum(), 1) != len(answer.nodes)
        assert (answer.nodes, answer.objective) == (first.nodes, first.objective)


# ---- the command line -------------------------------------------------------------------------------------


def check(tmp_path, text, *more):
    path = tmp_path / "mine.txt"
    path.write_text(text)
    graph = tmp_path / "square.txt"
    graph.write_text("10 20\n20 30\n30 40\n40 10\n")
    command = [
        sys.executable,
        ROOT / "run.py",
        "inputs/mvc.toml",
        f'graph.path="{graph}"',
        "--check",
        path,
        *more,
    ]
    code, printed = run_job(command)
    return code, printed.replace("\n  ", " ")  # a line with a long path is broken


@pytest.mark.mpi_skip
def test_check_verifies_a_users_solution(tmp_path):
    code, printed = check(tmp_path, "10\n30\n")
    assert code == 0, printed
    assert "a feasible cover of square, objective 2" in " ".join(
        printed.split()
    )  # a long path breaks the line
    assert "optimal: every cover has at least 2" in printed
    code, printed = check(tmp_path, "10\n20\n30\n")
    assert (code, "at most 50.00 % from optimal" in printed) == (0, True)
    code, printed = check(tmp_path, "10\n20\n")
    assert code == 2
    assert printed.count("\n") == 1
    assert "not a feasible cover of square: the cover leaves edge" in printed
    code, printed = check(tmp_path, "10\n50\n")
    assert (code, "mine.txt:2: node 50 is not in the graph" in printed) == (2, True)
    code, printed = check(tmp_path, "10\n", "problem.name=mis")
    assert (code, "a feasible independent set of square, objective 1" in printed) == (0, True)


@pytest.mark.mpi_skip
def test_steps_of_a_timed_solve_give_the_same_answer_again(tmp_path):
    graph = tmp_path / "er.txt"
    graph.write_text("".join(f"{u} {v}\n" for u, v in nx.gnp_random_graph(250, 0.15, seed=5).edges))
    case = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "mvc.toml", f'graph.path="{graph}"']
    quiet = ["search.baselines=false", "output.plots=false"]
    found = []
    for out, budget in (("timed", ["search.seconds=1"]), ("again", [])):
        if found:
            budget = [*found[0]["replay"], "search.bound_seconds=0.1"]
        code, printed = run_job([*case, *quiet, *budget, "--out", tmp_path / out])
        assert code == 0, printed
        (instance,) = json.loads((tmp_path / out / "result.json").read_text())["instances"]
        found.append(instance)
    if found[0]["source"] != "exact search":
        assert found[0]["digest"] == found[1]["digest"]
    assert found[0]["steps"] > 0


class _RingsEarly(StartClock):
    """A clock that rings at the third look."""

    looks = 0

    def rings(self):
        self.looks += 1
        self.rang = self.looks >= 3
        return self.rang


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["mvc", "mis", "maxcut", "mds"])
def test_reductions_that_are_cut_short_are_in_the_replay(problem, monkeypatch):
    """As far as they got they count, and the steps of the replay lead to the same answer."""
    answers, answer = [], Pipeline.answer
    monkeypatch.setattr(
        Pipeline, "answer", lambda *args, **names: answers.append(answer(*args, **names)) or answers[-1]
    )
    monkeypatch.setattr(pipeline, "StartClock", _RingsEarly)
    monkeypatch.setattr(compiled, "SLICE", 500)
    monkeypatch.setattr(cut_compiled, "SLICE", 500)
    monkeypatch.setattr(table_rows, "PIECE", 500)
    graph = nx.gnp_random_graph(3000, 0.0012, seed=2)
    settings = {"search.baselines": False, "search.start": "greedy", "search.bounds": False}
    first = solve(graph, problem, settings=settings | {"search.seconds": 0.5})
    keys = keys_of_replay(answers[0].replay)
    assert keys["search.reduction_steps"] > 1
    monkeypatch.setattr(pipeline, "StartClock", StartClock)
    again = solve(graph, problem, settings=settings | keys)
    whole = solve(graph, problem, settings=settings | {"search.steps": 1})
    assert again.objective == first.objective
    assert np.array_equal(answers[1].solution, answers[0].solution)
    assert answers[2].replay and whole.feasible


@pytest.mark.mpi_skip
@needs_data
def test_real_graphs_reach_the_best_known_value(tmp_path):
    names = ["frb30-15-1.mis", "power.graph.gz", "vc-exact_005.gr.gz", "as-22july06.graph.gz"]
    best = [420, 2203, 129, 3303]
    for name, value in zip(names, best):
        answer = solve(str(data_dir() / "mvc" / name), settings=QUIET | {"search.steps": 200_000})
        assert answer.objective == value, name
        assert answer.bound <= value
