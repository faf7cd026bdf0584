"""graph.node_weights: the answer of a format that carries the weights itself, on any number of ranks."""

import gzip
import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
from helpers import growing_graph
from jobs import mpirun, run_job
from mpi4py import MPI

from app import classify, solve, train
from app.errors import CaseError, GraphError, LockstepError
from app.graphs.formats.source import Limits, Source
from app.graphs.nodes import weights as nodes_weights
from app.graphs.nodes.weights import read_node_weights

N = 40
PAIRS = growing_graph(N, 2, 3)[1]  # every node is in one
WEIGHTS = 1 + np.arange(N) * 7 % 11
SETTINGS = {"search.steps": 4000, "run.device": "cpu", "seed": 2}


def written(folder):
    """Paths of one graph as edges of ids 3 i + 10, as METIS with weights, and of its weights in two forms."""
    both = np.concatenate([PAIRS, PAIRS[:, ::-1]])
    near = [np.sort(both[both[:, 0] == i, 1]) + 1 for i in range(N)]
    if MPI.COMM_WORLD.rank == 0:
        (folder / "g.edges").write_text("".join(f"{3 * u + 10} {3 * v + 10}\n" for u, v in PAIRS.tolist()))
        rows = "".join(f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WEIGHTS, near))
        (folder / "heavy.graph").write_text(f"{N} {len(PAIRS)} 010\n{rows}")
        order = np.random.default_rng(1).permutation(N)
        lines = "".join(f"{3 * i + 10} {WEIGHTS[i]}\n" for i in order)
        (folder / "w.txt").write_text(f"# weights\n{lines}\n")
        np.save(folder / "w.npy", WEIGHTS.astype(np.float64))
    MPI.COMM_WORLD.barrier()
    return {name: str(folder / name) for name in ("g.edges", "heavy.graph", "w.txt", "w.npy")}


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "clique"])
def test_the_answer_is_that_of_weights_in_the_graphs_file(problem, shared_path):
    paths = written(shared_path)
    wanted = solve(paths["heavy.graph"], problem, settings=SETTINGS)
    rows = [node - 1 for node in wanted.nodes]
    assert wanted.objective == WEIGHTS[rows].sum() != len(rows)
    for file in ("w.txt", "w.npy"):
        settings = {**SETTINGS, "graph.node_weights": paths[file]}
        found = solve(paths["g.edges"], problem, settings=settings)
        assert found.nodes == [3 * row + 10 for row in rows]
        assert (found.objective, found.bound) == (wanted.objective, wanted.bound)
        alone = solve(paths["g.edges"], problem, settings=settings, comm=MPI.COMM_SELF)
        assert alone.nodes == found.nodes


@pytest.mark.parametrize("order", ["random", "rcm"])
def test_rows_in_another_order_keep_their_weights(order, shared_path):
    paths = written(shared_path)
    settings = {**SETTINGS, "graph.order": order}
    wanted = solve(paths["heavy.graph"], "mvc", settings=settings)
    found = solve(paths["g.edges"], "mvc", settings={**settings, "graph.node_weights": paths["w.txt"]})
    assert found.nodes == [3 * (node - 1) + 10 for node in wanted.nodes]
    assert found.objective == wanted.objective


def ran(folder, ranks, *more):
    launch = mpirun(ranks) if ranks > 1 else []
    fixed = ["search.steps=4000", "seed=2", "output.plots=false", "run.device=cpu"]
    command = [*launch, sys.executable, "run.py", "inputs/mvc.toml", *fixed, *more]
    code, printed = run_job([*command, *([] if "--check" in more else ["--out", str(folder)])], limit_s=200)
    assert code == 0, printed
    return printed if "--check" in more else json.loads((folder / "result.json").read_text())


@pytest.mark.mpi_skip
def test_a_run_its_check_and_its_case_file(tmp_path):
    """One digest for 1, 2 and 3 ranks, with a cache and without, and from the run's own case file."""
    paths = written(tmp_path)
    keys = [f"graph.path={paths['g.edges']}", f"graph.node_weights={paths['w.txt']}"]
    one = ran(tmp_path / "1", 1, *keys)
    cache = f"memory.cache={tmp_path / 'cache'}"
    others = [ran(tmp_path / f"{ranks} {i}", ranks, *keys, cache) for ranks, i in ((2, 0), (3, 1))]
    assert {each["digest"] for each in others} == {one["digest"]}
    entry = one["instances"][0]
    metis = ran(tmp_path / "m", 1, f"graph.path={paths['heavy.graph']}")
    assert metis["digest"] == one["digest"] and metis["instances"][0]["objective"] == entry["objective"]
    chosen = np.loadtxt(tmp_path / "1" / "solution" / "g.txt", dtype=int)
    assert WEIGHTS[(chosen - 10) // 3].sum() == entry["objective"]
    said = ran(None, 2, *keys, "--check", str(tmp_path / "1" / "solution" / "g.txt"))
    assert f"objective {entry['objective']}" in " ".join(said.split())
    again = [sys.executable, "run.py", str(tmp_path / "1" / "case.toml"), "--out", str(tmp_path / "again")]
    code, printed = run_job(again, limit_s=200)
    assert code == 0, printed
    assert json.loads((tmp_path / "again" / "result.json").read_text())["digest"] == one["digest"]
    assert ran(tmp_path / "bare", 1, keys[0])["digest"] != one["digest"]


IDS = np.array([10, 13, 16])


def read(path, text):
    if isinstance(text, str):
        path.write_text(text)
    else:
        np.save(path, text)
    return read_node_weights(str(path), Limits(), IDS, "ring")


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "text", ["10 1\n13 2.5\n16 3e0\n", "16,3\n\n# x\n10, 1\n13 ,+2.5", np.array([1, 2.5, 3])]
)
def test_lines_in_any_order_and_arrays(tmp_path, text):
    path = tmp_path / ("w.txt" if isinstance(text, str) else "w.npy")
    weights, said = read(path, text)
    assert weights.tolist() == [1, 2.5, 3] and weights.dtype == np.float32 and not said
    if isinstance(text, str):
        (tmp_path / "w.gz").write_bytes(gzip.compress(text.encode()))
        assert read_node_weights(str(tmp_path / "w.gz"), Limits(), IDS, "ring")[0].tolist() == [1, 2.5, 3]
    weights, _ = read_node_weights(str(path), Limits(), IDS, "ring")
    unsorted, _ = read_node_weights(str(path), Limits(), IDS[::-1], "ring")
    if isinstance(text, str):
        assert unsorted.tolist() == weights[::-1].tolist()


@pytest.mark.mpi_skip
def test_a_first_line_may_name_columns(tmp_path):
    names = np.array([b"b,c", b"cost", b"x"])
    (tmp_path / "n.csv").write_text('protein,weight\n"b,c",1\nx,2\ncost,3\n')
    weights, said = read_node_weights(str(tmp_path / "n.csv"), Limits(), names, "ring")
    assert weights.tolist() == [1, 3, 2]
    assert said == [f"{tmp_path / 'n.csv'}:1: skipped the first line 'protein,weight'"]
    weights, said = read(tmp_path / "w.csv", "id,cost\n10,1\n16,2\n13,3\n")
    assert weights.tolist() == [1, 3, 2] and len(said) == 1
    for text, line in (("id,cost\nid,cost\n10,1\n", 2), ("# c\nid,cost\n10,1\n", 2), ("id,nan\n10,1\n", 1)):
        with pytest.raises(GraphError, match=f"w.csv:{line}: found a node id that is no integer"):
            read(tmp_path / "w.csv", text)


FORMS = {
    "whole": lambda draws: f"{draws.integers(0, 10**12)}",
    "decimals": lambda draws: f"{draws.uniform(0, 100):.{draws.integers(0, 9)}f}",
    "points": lambda draws: draws.choice(["+1", ".5", "7.", "+.25", "3"]),
    "exponents": lambda draws: f"{draws.uniform(0, 100):.3e}",
    "some that are wrong": lambda draws: draws.choice(["1", *20 * ["2.5"], "1.2.3", "+", "-1", "1e1000"]),
}  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize("between", [" ", "\t", ",", " , "])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_pieces_are_read_as_their_lines_are(tmp_path, monkeypatch, form, between):
    """The same ids, weights, lines and messages, whatever the form of the numbers and the blank lines."""
    draws = np.random.default_rng(4)
    lines = [f"{i}{between}{form(draws)}" for i in draws.permutation(200)]
    text = ""
    for i, line in enumerate(lines):
        text += f"  {line} \n" if i % 7 == 1 else f"\n{line}\n" if i % 11 == 1 else f"{line}\n"
    (tmp_path / "w").write_text(text)
    found = []
    for plain in (nodes_weights.numbers_by_id, lambda text: None):
        monkeypatch.setattr(nodes_weights, "numbers_by_id", plain)
        try:
            found.append(
                [each.tolist() for each in nodes_weights._lines(Source(str(tmp_path / "w"), Limits()), False)]
            )
        except GraphError as error:
            found.append(str(error))
    assert found[0] == found[1]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10 1\n13 2\n99 3\n", r"w:3: found node 99; a node of ring would be right"),
        ("10 1\n13 2\n17 3\n", r"w:3: found node 17; a node of ring"),
        ("10 1\n\n13 2\n16 3\n13 4\n10 2\n", r"w:5: found node 13 again, after line 3; one weight for each"),
        ("10 1\n16 2\n", r"w: found no weight of node 13; a line for each of the 3 nodes of ring"),
        ("", "w: found no weight of node 10"),
        ("10 1\n13\n", r"w:2: found 1 fields in '13'; 'id weight'"),
        ("10 1 1\n", r"w:1: found 3 fields in '10 1 1'"),
        ("a 1\n", r"w:1: found a node id that is no integer in 'a 1'"),
        ("-10 1\n", r"w:1: found a negative node id"),
        ("10 nan\n", r"w:1: found weight 'nan'; 'id weight', the weight a number from 0 to 3.4e38"),
        ("10 inf\n", r"w:1: found weight 'inf'"),
        ("10 1\n13 -2\n", r"w:2: found weight '-2'"),
        ("10 1e39\n", r"w:1: found weight '1e39'"),
        ("10 0x10\n", r"w:1: found weight '0x10'"),
        ("10 1_0\n", r"w:1: found weight '1_0'"),
        (np.array([1.0, 2.0]), r"found float64 of shape \(2,\); 3 numbers, one for each node of ring"),
        (np.array(["a", "b", "c"]), r"found <U1 of shape \(3,\)"),
        (np.array([1, np.nan, 2]), r"found weight nan in row 1; a number from 0"),
        (np.array([1, 2, -1]), r"found weight -1 in row 2"),
    ],
)
def test_wrong_weights_are_named_by_their_line(tmp_path, text, said):
    path = tmp_path / ("w" if isinstance(text, str) else "w.npy")
    with pytest.raises(GraphError, match=said) as caught:
        read(path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.mpi_skip
def test_whole_numbers_that_are_not_kept_are_said(tmp_path):
    weights, said = read(tmp_path / "w", "10 16777217\n13 1\n16 1\n")
    assert weights[0] == 16777216 and "w:1: the weight, 16777217, is kept as 16777216" in said[0]


def test_a_weight_that_is_0_as_soon_as_it_is_read_is_said(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("7 1\n# 1e-400\n8 1e-400\n9 0\n")
    kept, (said,) = read_node_weights(str(path), Limits(), np.array([7, 8, 9]), "g")
    assert kept.tolist() == [1, 0, 0]
    assert "w.txt:3: the weight, 1e-400, is kept as 0: weights in a finer unit" in said


def test_where_no_weights_count_they_are_refused(shared_path):
    paths = written(shared_path)
    key = {"graph.node_weights": paths["w.txt"]}
    for run, said in (
        (
            lambda: solve(paths["g.edges"], "maxcut", settings=key),
            "maxcut counts those of edges; mvc, mis, mds, fvs",
        ),
        (lambda: solve(paths["heavy.graph"], settings=key), "heavy has node weights of its own"),
        (lambda: solve(PAIRS, settings=key), "of a graph in memory node_weights= would be right"),
        (
            lambda: solve(paths["g.edges"], node_weights=WEIGHTS),
            "of a file graph.node_weights of the settings",
        ),
        (lambda: classify(paths["g.edges"], settings=key), 'only run.task = "solve" reads those'),
        (
            lambda: train({"train.graphs.path": paths["g.edges"], **key}),
            'only run.task = "solve" reads those',
        ),
        (
            lambda: train({"train.graphs": {"path": paths["g.edges"], "node_weights": paths["w.txt"]}}),
            "train.graphs.node_weights: policies and networks see none",
        ),
        (lambda: solve(paths["g.edges"], settings={"graph.node_weights": "none.txt"}), "no such file"),
    ):
        with pytest.raises((GraphError, CaseError), match=said) as caught:
            run()
        assert "\n" not in str(caught.value)


@pytest.mark.mpi_skip
def test_one_graph_has_one_file_of_weights(tmp_path):
    paths = written(tmp_path)
    graph, weights = f"graph.path={paths['g.edges']}", f"graph.node_weights={paths['w.txt']}"
    for keys, said in (
        ([f"graph.path=['{paths['g.edges']}','{paths['g.edges']}']", weights], "is for one graph, found 2"),
        (
            ["graph.generator=ba", "graph.nodes=50", weights],
            "graph.node_weights (command line): is for graphs",
        ),
        ([graph, f"graph.node_weights={tmp_path / 'none.txt'}"], "no such file"),
    ):
        command = [sys.executable, "run.py", "inputs/mvc.toml", *keys, "--out", str(tmp_path / "out")]
        code, printed = run_job(command, limit_s=100)
        assert code == 2 and said in printed, printed


# ---- decimals ---------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["maxcut", "mds", "mvc"])
def test_bounds_have_the_decimals_of_the_weights(problem):
    """Bounds never pass the best of all solutions, have three decimals, meet the answer that is optimal."""
    draws, optimal = np.random.default_rng(3), 0
    for seed in range(12):
        graph = nx.gnp_random_graph(8, 0.6, seed=seed)
        low = -2 if problem == "maxcut" else 0
        for u, v in graph.edges:
            graph.edges[u, v]["weight"] = round(float(draws.uniform(low, 2)), 3)
        for v in graph:
            graph.nodes[v]["weight"] = round(float(draws.uniform(0.1, 2)), 3)
        settings = {"search.bound_seconds": 0, "search.steps": 200, "run.device": "cpu"}
        found = solve(graph, problem, settings=settings)
        sets = (np.array(bits, dtype=bool) for bits in itertools.product((0, 1), repeat=8))
        values = [best_value(graph, problem, chosen) for chosen in sets]
        best = (max if problem == "maxcut" else min)(value for value in values if value is not None)
        assert (found.bound >= best - 1e-9) if problem == "maxcut" else (found.bound <= best + 1e-9)
        assert abs(found.bound - round(found.bound, 3)) < 1e-12
        assert found.optimal == (found.objective == found.bound) == (found.gap == 0)
        optimal += found.optimal
    assert optimal >= 8


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["maxcut", "mvc", "mis", "clique"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_proved_answers_of_any_weights_are_optimal(problem, scale):
    """Weights of as many decimals as float32 has, large ones beside small ones: the bound is the answer."""
    draws = np.random.default_rng(5)
    for seed in range(4):
        graph = nx.gnp_random_graph(14, 0.3, seed=seed)
        drawn = draws.uniform(0.2, 1, 14 + graph.number_of_edges())
        drawn[::5] = np.round(scale * drawn[::5], 1)
        for v in graph:
            graph.nodes[v]["weight"] = float(drawn[v])
        for i, (u, v) in enumerate(graph.edges):
            graph.edges[u, v]["weight"] = float(drawn[14 + i])
        found = solve(
            graph, problem, settings={"search.seconds": 30, "run.device": "cpu"}
        )  # a fraction is used
        assert found.optimal and found.gap == 0 and found.bound == found.objective


def best_value(graph, problem, chosen):
    """The value of a set of nodes in three decimals; None where it is no solution."""
    if problem == "maxcut":
        return round(sum(w for u, v, w in graph.edges(data="weight") if chosen[u] != chosen[v]), 3)
    if problem == "mvc" and not all(chosen[u] or chosen[v] for u, v in graph.edges):
        return None
    if problem == "mds" and not all(chosen[v] or any(chosen[u] for u in graph[v]) for v in graph):
        return None
    return round(sum(graph.nodes[v]["weight"] for v in graph if chosen[v]), 3)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("problem", "given", "said"),
    [
        ("mvc", {"node_weights": [1e30, 1e-7, 1, 0]}, "the weight of node 1 is below 0, or nothing beside"),
        ("partition", {"node_weights": [1e30, 1e-7, 1e30, 0]}, "weight of node 1, 1e-07, counts as 0"),
        ("steiner", {"node_weights": [1e15, -1e-3, 2, 0]}, "weight of node 1, -0.001, counts as 0"),
        ("steiner", {"prizes": [1e15, 1e-3, 2, 0]}, "prize of node 1, 0.001, counts as 0"),
        ("coverage", {"element_weights": [1e30, 1e-7, 1, 0]}, "weight of element .*, 1e-07, counts as 0"),
    ],
)
def test_weights_that_are_nothing_beside_the_largest_are_refused(problem, given, said):
    graph = nx.path_graph(4) if problem != "coverage" else [[0, 1], [2, 3], [1, 2]]
    settings = {"search.steps": 10} | ({"problem.budget": 1} if problem == "coverage" else {})
    with pytest.raises(LockstepError, match=said):
        solve(graph, problem, settings=settings, **given)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["maxcut", "ordering", "facility", "partition", "arrangement"])
def test_edge_weights_that_are_nothing_beside_the_largest_are_told(problem, tmp_path):
    """They are terms of sums, rounded as all others are; the log says so, and of others nothing."""
    for least, told in ((1e-7, True), (1e20, False)):
        (tmp_path / "g.txt").write_text(f"1 2 1e30\n2 3 {least}\n3 4 1e20\n")
        keys = [f"graph.path={tmp_path}/g.txt", "search.steps=10", "output.plots=false", "--overwrite"]
        keys += ["search.bounds=false", f"--out={tmp_path}/run"]
        code, said = run_job([sys.executable, "run.py", f"inputs/{problem}.toml", *keys], 60)
        assert code == 0, said
        found = "s of edges of up to 1e-07 count as 0 beside others of up to 1e+30" in " ".join(said.split())
        assert found == told, said
