"""The Python interface: what a notebook sees, on any number of ranks."""

import importlib.util
import json
import re
import sys
import threading
import warnings
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import Frame
from jobs import ROOT, run_job
from mpi4py import MPI

from app import (
    TrainingRun,
    api,
    check,
    classify,
    embed,
    find_links,
    forecast,
    gym_environment,
    predict_links,
    solve,
    train,
)
from app.errors import CaseError, GraphError
from app.rl import rollout
from app.rl.learners import LEARNERS
from app.search.cover.tools import CoverTools
from app.tasks import compare, rollouts, tools
from app.tasks.context import context_of_settings
from app.tasks.train import run_train

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


def test_weights_are_judged_by_graphs_of_their_own():
    """Training graphs generated, of files, in memory; the kept weights do best on [train.held_back]."""
    judge = {"generator": "torus", "nodes": 30, "count": 4}
    sources = (
        {key: value for key, value in TINY.items() if key.startswith("train.graphs.")},
        {"train.graphs.path": ["networkx:karate_club", "networkx:les_miserables"]},
    )
    for source in sources:
        settings = {**source, "train.steps": 60, "train.evaluate_every": 20, "train.held_back": judge}
        policy = train({**settings, "run.device": "cpu"})
        scores = {row["step"]: row["held_back_nodes"] for row in policy.records}
        # Four grids of 30 nodes, a cover of each has 15 to 30.
        assert all(60 <= score <= 120 for score in scores.values())
        assert policy.records[-1]["best_step"] == min(
            step for step, score in scores.items() if score == min(scores.values())
        )
    run = TrainingRun(
        graphs=[nx.cycle_graph(9)], train={"steps": 40, "held_back": judge}, run={"device": "cpu"}
    )
    assert all(60 <= row["held_back_nodes"] <= 120 for row in run.run().records)


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "fvs", "clique"])
def test_a_training_says_that_policies_see_no_node_weights(problem):
    """And learns what it learns without; a loop of one's own says so, too."""
    plain = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(4)]
    weighed = [graph.copy() for graph in plain]
    nx.set_node_attributes(weighed[0], {0: 7}, "weight")  # of one node: not read
    runs = [TrainingRun(problem, each, train={"steps": 70}, seed=3) for each in (plain, weighed)]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*node weights")
        one, _ = runs[0].run(), runs[0].agent()
    said = "graph has node weights, which a policy does not see"
    with pytest.warns(UserWarning, match=said):
        two = runs[1].run()
    with pytest.warns(UserWarning, match=said):
        runs[1].agent()
    assert (one.digest, repr(one.records)) == (two.digest, repr(two.records))


def test_a_training_on_files_with_node_weights_counts_nodes(shared_path):
    """Of plain rules, too, beside which it stands."""
    if MPI.COMM_WORLD.rank == 0:
        for number in range(3):
            (shared_path / f"{number}.graph").write_text("4 3 10\n50 2\n60 1 3\n70 2 4\n80 3\n")
    MPI.COMM_WORLD.barrier()
    settings = {"run.task": "train", "graph.path": [str(shared_path / "*.graph")], "train.steps": 4}
    context = context_of_settings(settings, None, False)
    with pytest.warns(UserWarning, match="0 and 2 more have node weights"):
        found = run_train(context)["held_back"]
    assert found.pop("graphs") == 1
    assert set(found.values()) <= {2, 3}


def test_a_training_on_graphs_some_of_whose_edges_have_weights_is_refused_as_a_solve_is():
    graph = nx.path_graph(4)
    graph.edges[0, 1]["weight"] = 2.0
    for call in (
        lambda: solve(graph, "maxcut"),
        lambda: TrainingRun("maxcut", [graph] * 3, train={"steps": 4}).run(),
    ):
        with pytest.raises(GraphError, match="edge 1-2 has no weight, others have"):
            call()


@pytest.mark.parametrize(
    ("key", "graphs", "settings"),
    [
        ("train.graphs", {"generator": "er", "nodes": 9}, {"train": {"graphs": {"d": 2}}}),
        ("train.graphs", {"generator": "er", "nodes": 9}, {"train.graphs.nodes": 8}),
        ("train.graphs", [nx.path_graph(4)], {"train": {"graphs": {"generator": "er", "nodes": 9}}}),
        ("graph.generator", [nx.path_graph(4)], {"graph": {"generator": "er", "nodes": 9}}),
        ("graph.path", [nx.path_graph(4)], {"graph.path": "networkx:karate_club"}),
    ],
)
def test_training_graphs_that_are_named_twice_are_refused(key, graphs, settings):
    """One of the two was not read, or keys of both were mixed."""
    with pytest.raises(CaseError, match=rf"^{key}: given beside graphs; one of them would be right"):
        TrainingRun(graphs=graphs, **settings)


def test_a_training_says_that_directions_are_lost():
    arcs = [nx.gnp_random_graph(9, 0.3, seed=seed, directed=True) for seed in range(2)]
    with pytest.warns(UserWarning, match="mds is of edges without directions"):
        TrainingRun("mds", arcs).agent()


@pytest.mark.parametrize(
    ("learner", "hint"),
    [("dqn", r"agent\.warmup = 64"), ("ppo", r"agent\.rollout_steps = 256"), ("reinforce", "whole episodes")],
)
def test_a_training_without_a_gradient_step_says_so(learner, hint):
    graphs = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(3)]
    with pytest.warns(UserWarning, match=rf"no gradient step in 6 steps, .*{hint}"):
        TrainingRun(graphs=graphs, learner=learner, train={"steps": 6}).run()


def test_settings_that_are_wrong_on_one_rank_end_all():
    """With the line of that rank; else the others would wait for it."""
    wrong = MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1
    with pytest.raises(CaseError, match=r"search\.nope"):
        solve(nx.path_graph(5), settings={"search.nope": 1} if wrong else {})


@pytest.mark.mpi_skip
@pytest.mark.parametrize("settings", [3, [("seed", 1)], "seed=1", {1: 2}])
def test_settings_that_are_no_keys_are_refused_in_a_line(settings):
    for call in (solve, classify, train):
        with pytest.raises(
            CaseError, match=r'settings: found .*; keys of a case, as {"seed": 1}, would be right'
        ):
            call(*([] if call is train else [nx.path_graph(4)]), settings=settings)


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


@pytest.mark.parametrize("solver", ["full", "policy"])
@pytest.mark.parametrize("order", ["random", "rcm"])
def test_rows_in_another_order_are_answered_in_the_callers_numbers(order, solver, shared_path, monkeypatch):
    """The hub of a star whose rows are renumbered, by its label, its number, and its id in a file."""
    star = nx.star_graph(["hub", *(f"leaf {i}" for i in range(40))])
    settings = {"graph.order": order, "search.solver": solver, "seed": 5}
    seen, solve_graph = [], api.solve.solve_graph

    def spy(context, problem, policy, loaded):
        seen.append(loaded.order_all)
        return solve_graph(context, problem, policy, loaded)

    monkeypatch.setattr(api.solve, "solve_graph", spy)
    assert solve(star, settings=settings).nodes == ["hub"]
    assert seen[0][0] != 0  # the hub's row is another one
    A = sp.csr_array(nx.to_scipy_sparse_array(star))
    assert solve(A, settings=settings).nodes == [0]
    path = shared_path / "star.edges"
    if MPI.COMM_WORLD.rank == 0:
        path.write_text("".join(f"7 {10 + i}\n" for i in range(40)))
    MPI.COMM_WORLD.barrier()
    assert solve(str(path), settings=settings).nodes == [7]
    tour = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=float)
    with pytest.raises(CaseError, match=r"graph\.order: .* has distances between all nodes"):
        solve(tour, "tsp", settings=settings)


def test_a_graph_without_nodes_or_edges_needs_nothing():
    for graph in (nx.Graph(), nx.empty_graph(5)):
        solution = solve(graph)
        assert (solution.nodes, solution.objective, solution.bound, solution.gap) == ([], 0, 0, 0.0)


def test_tools_are_made_by_the_thread_that_calls(monkeypatch):
    """Of a command it is another one, which a caller's KeyboardInterrupt would leave at work."""
    makers, made = [], CoverTools.__init__
    monkeypatch.setattr(tools, "LONG", 0)
    monkeypatch.setattr(
        CoverTools, "__init__", lambda *given: made(*given) or makers.append(threading.current_thread())
    )
    assert solve(nx.star_graph(4), "mvc").objective == 1
    assert set(makers) == {threading.current_thread()}


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
    own = {"dqn": {"warmup": 16}, "ppo": {"rollout_steps": 64}, "reinforce": {"rollouts": 4}}
    agent = {"learning_rate": 0.01, **own[learner]}
    run = {"train": {"steps": 300, "environments": 4, "evaluate_every": 100}, "seed": 3}
    policy = TrainingRun(graphs=graphs, learner=learner, agent=agent, **run).run()
    assert policy.problem == "mvc"
    assert policy.records[-1]["gradient_steps"] > 0
    graph = nx.gnp_random_graph(60, 0.1, seed=3)
    assert covers(graph, solve(graph, weights=policy).nodes)


def test_features_by_node_and_random_splits():
    graph = nx.karate_club_graph()
    rows = {v: [float(v % 3), float(graph.degree(v))] for v in reversed(list(graph))}
    labels = [v % 2 for v in graph]
    settings = {"gnn.epochs": 2, "graph.splits": "random"}
    found = classify(graph, rows, labels, settings=settings)
    same = classify(graph, [rows[v] for v in graph], labels, settings=settings)
    assert found.digest == same.digest
    assert set(found.scores) == {"train", "val", "test"}
    del rows[7]
    with pytest.raises(GraphError, match=r"features: none of node .*7"):
        classify(graph, rows, labels, settings=settings)


def test_features_and_sets_of_unusual_kinds():
    """Dictionaries of keys are matrices, whole numbers may be floats; what is masked is no number."""
    graph, draws = nx.karate_club_graph(), np.random.default_rng(1)
    features = (draws.random((34, 6)) < 0.4).astype(float)
    labels, settings = np.arange(34) % 2, {"gnn.epochs": 2}
    plain = classify(graph, features, labels, train=[0, 33], test=[5, 6], settings=settings)
    sparse = classify(graph, sp.csr_array(features), labels, train=[0, 33], settings=settings)
    keyed = classify(graph, sp.dok_array(features), labels, train=[0, 33], settings=settings)
    assert keyed.digest == sparse.digest
    sets = {"train": np.array([0.0, 33.0]), "test": [np.int8(5), np.uint64(6)]}
    floats = classify(graph, features, labels, **sets, settings=settings)
    assert floats.digest == plain.digest and floats.scores["test"] == plain.scores["test"]
    masked = np.ma.masked_array(features, mask=features > 0)
    for wrong, said in (
        ({"features": masked}, "features: found masked entries"),
        ({"labels": np.ma.masked_array(labels, mask=labels > 0)}, "labels: found masked entries"),
        ({"features": sp.coo_array(features[:, 0])}, "features: found float64 of shape"),
        ({"train": np.array([0.5, 1.0])}, "found .*0.5.*; a node of the graph"),
        ({"train": np.array([0.0, np.nan])}, "found .*nan.*; a node of the graph"),
    ):
        given = {"features": features, "labels": labels, "train": [0, 33]} | wrong
        with pytest.raises(GraphError, match=said):
            classify(graph, settings=settings, **given)


def test_a_policy_solves_the_problem_that_it_was_trained_for():
    policy = train(TINY)
    with pytest.raises(CaseError, match=r"trained for 'mvc', not for 'mds'"):
        solve(nx.path_graph(6), "mds", weights=policy)


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


def test_arrays_are_graphs():
    """An adjacency matrix, pairs of nodes, and coordinates of a tour."""
    graph = nx.gnp_random_graph(40, 0.15, seed=3)
    wanted = solve(graph, "mis").nodes
    assert solve(nx.to_numpy_array(graph), "mis").nodes == wanted
    pairs = np.array(graph.edges)
    assert solve(pairs, problem="mis").objective == len(wanted) - sum(v > pairs.max() for v in graph)
    points = np.array([[0, 0], [0, 10], [10, 10], [10, 0], [5, 12]])
    tour = solve(points, "tsp")
    assert sorted(tour.nodes) == list(range(5)) and tour.objective == 10 + 10 + 10 + 5 + 5


@pytest.mark.parametrize(
    ("array", "problem", "said"),
    [
        (np.zeros((3, 4)), "mvc", "float64 of shape"),
        (np.zeros((5, 2)), "mvc", "2. integers"),
        (np.array([[0, -1], [1, 2], [0, 2]]), "mvc", "node number -1; node numbers from 0"),
        (np.array([[0, 1.5, 1], [1, 2, 1]]), "mvc", "node number 1.5; .m, 3. holds two and a weight"),
        (np.array([[0, 1, np.inf], [1, 2, 1]]), "maxcut", "the weight of edge 0-1 is NaN or infinite"),
        (np.array([[0, 1, np.nan], [1, 2, 1]]), "maxcut", "the weight of edge 0-1 is NaN or infinite"),
        (np.zeros((2, 3), bool), "mvc", "bool of shape"),
        (np.zeros((3, 1), int), "mvc", "int64 of shape"),
        (np.array([[0, np.nan], [np.nan, 0]]), "mvc", "NaN"),
        (np.zeros((5, 3)), "tsp", "coordinates"),
        (np.array([["a", "b"]]), "mvc", "shape"),
    ],
)
def test_arrays_that_are_no_graphs_are_refused(array, problem, said):
    with pytest.raises(GraphError, match=said):
        solve(array, problem)


def test_edges_with_weights_are_arrays(recwarn):
    edges = np.array([[0, 1, 2.5], [1, 2, 1], [2, 3, 4], [3, 0, 1.5], [1, 0, 2.5]])
    assert solve(edges, "maxcut").objective == 9
    assert not recwarn.list
    assert solve(np.array([[0, 1, 2], [1, 2, 3]]), "maxcut").objective == 5
    # A square array is an adjacency matrix, whatever it looks like.
    assert solve(np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]]), "maxcut").objective == 5
    edges[4, 2] = 3
    with pytest.warns(UserWarning, match="of parallel edges the one of largest weight counts"):
        assert solve(edges, "maxcut").objective == 9.5


def pandas_frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def polars_frame(**columns):
    return pytest.importorskip("polars").DataFrame(columns)


@pytest.mark.parametrize("frame", [Frame, pandas_frame, polars_frame])
def test_tables_are_graphs(frame):
    """Nodes by name and by number, those that occur; weights; nodes as these are named in all arguments."""
    named = frame(a=["TP53", "MDM2", "ATM", "\u00c9lan"], b=["MDM2", "ATM", "TP53", "ATM"])
    assert solve(named).nodes in (["ATM", "MDM2"], ["ATM", "TP53"])
    assert solve(named, inside=["TP53"], outside=["MDM2"]).nodes == ["ATM", "TP53"]
    weights = {"TP53": 1, "MDM2": 1, "ATM": 9, "\u00c9lan": 1}
    assert solve(named, node_weights=weights).nodes == ["MDM2", "TP53", "\u00c9lan"]
    numbers = frame(a=[1001, -7, 30], b=[30, 1001, 5], w=[1.5, 2.5, -1])
    assert solve(numbers, "maxcut").objective == 4
    assert set(solve(numbers, "mis", inside=[-7]).nodes) in ({-7, 5}, {-7, 30})
    large = frame(a=np.array([2**60 + 1, 7], np.uint64), b=np.array([2**60 + 3, 8], np.int64))
    assert solve(large, "mis", inside=[2**60 + 1, 8]).nodes == [8, 2**60 + 1]  # no float between
    found = classify(
        named, {name: [1.0, i] for i, name in enumerate(weights)}, dict.fromkeys(weights, 1), train=["ATM"],
        settings={"gnn.epochs": 2},
    )  # fmt: skip
    assert found.nodes == ["ATM", "MDM2", "TP53", "\u00c9lan"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [1, 2]}, "found a table of 1 columns .a.; two columns of nodes"),
        ({"a": [1], "b": [2], "c": [3], "d": [4]}, "found a table of 4 columns"),
        ({"a": [1, 2], "b": ["x", "y"]}, "found whole numbers and texts as nodes; all of one kind"),
        ({"a": [1.5, 2], "b": [1, 2]}, "found 1.5 in row 0 of column 'a'; a whole number or a text"),
        ({"a": ["x", "y"], "b": [None, "x"]}, "found None in row 0 of column 'b'"),
        ({"a": [True, False], "b": [1, 2]}, "found True in row 0 of column 'a'"),
        ({"a": [1, 2], "b": [2, 3], "w": ["x", "y"]}, "the weight of edge 1-2 is .*'x'.*; a number"),
        ({"a": [1, 2], "b": [2, 3], "w": [1, np.nan]}, "the weight of edge 2-3 is NaN or infinite"),
    ],
)
def test_tables_that_are_no_graphs_are_refused(columns, said):
    with pytest.raises(GraphError, match=said):
        solve(Frame(**columns), "maxcut")


def test_a_path_is_a_file(shared_path):
    path = shared_path / "g.txt"
    if MPI.COMM_WORLD.rank == 0:
        path.write_text("1 2\n2 3\n")
    MPI.COMM_WORLD.barrier()
    assert solve(path).nodes == solve(str(path)).nodes == [2]
    with pytest.raises(GraphError, match="no-such-file"):
        solve(shared_path / "no-such-file")


def test_a_communicator_of_ones_own():
    """Halves of the ranks answer different graphs at the same time."""
    world = MPI.COMM_WORLD
    comm = world.Split(world.rank % 2, world.rank)
    graph = nx.gnp_random_graph(50, 0.1, seed=world.rank % 2)
    found = solve(graph, comm=comm)
    assert covers(graph, found.nodes)
    assert world.allgather((world.rank % 2, found.nodes)).count((world.rank % 2, found.nodes)) == comm.size
    comm.Free()
    assert found.nodes == solve(graph, comm=MPI.COMM_SELF).nodes


def whole_markup(text):
    """Text that is well-formed but for its style."""
    ElementTree.fromstring(re.sub("<style>.*?</style>", "", text, flags=re.DOTALL))
    return text


def test_results_print_draw_and_show_themselves():
    """As text, as HTML for a notebook, as a matplotlib figure."""
    pytest.importorskip("matplotlib")
    graph = nx.gnp_random_graph(50, 0.15, seed=5)
    answer = solve(graph, "mis", settings={"search.steps": 2000})
    assert repr(answer).startswith(f"Solution(objective {answer.objective}, bound ")
    assert f">{answer.objective}<" in whole_markup(answer._repr_html_())
    assert answer.trace[-1][1:] == (answer.objective, answer.bound)
    assert len(answer.plot().axes) == 1
    policy = train(TINY)
    assert repr(policy).startswith("TrainedPolicy(mvc, 120 steps, weights ")
    assert "Held-back graphs" in whole_markup(policy._repr_html_())
    assert len(policy.plot().axes) == 2
    club = [int(graph.degree(v) > 7) for v in graph]
    found = classify(graph, labels=club, train=range(25), test=range(25, 50), settings={"gnn.epochs": 5})
    assert re.fullmatch(r"Classification\(50 nodes, 5 epochs; train [\d.]+ %, test [\d.]+ %\)", repr(found))
    assert "<svg" in whole_markup(found._repr_html_())
    assert [len(axes.lines) for axes in found.plot().axes] == [1, 2]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["mvc", "maxcut", "tsp"])
def test_a_solution_is_what_a_run_writes(tmp_path, problem):
    """bound_verified, digest and the saved file are those of a run's folder; the file starts a solve."""
    path, steps = tmp_path / "g.txt", {"search.steps": 500}
    graph = nx.gnp_random_graph(24, 0.3, seed=2)
    path.write_text("".join(f"{u + 5} {v + 5}\n" for u, v in graph.edges))
    if problem == "tsp":
        path = tmp_path / "g.tsp"
        points = "".join(f"{i + 1} {i * i % 17} {i * 5 % 13}\n" for i in range(12))
        head = "NAME: g\nTYPE: TSP\nDIMENSION: 12\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
        path.write_text(f"{head}{points}EOF\n")
    answer = solve(str(path), problem, settings=steps)
    keys = [f"problem.name={problem}", f"graph.path={path}", "search.steps=500", "output.plots=false"]
    case = tmp_path / "case.toml"
    case.write_text('[policy]\nweights = "default"\n')
    code, printed = run_job([sys.executable, "run.py", case, *keys, "--out", tmp_path / "out"], cwd=ROOT)
    assert code == 0, printed
    entry = json.loads((tmp_path / "out/result.json").read_text())["instances"][0]
    assert answer.digest == entry["digest"]
    if answer.bound_method == entry["bound_method"]:  # the clock says which bound is there first
        assert answer.bound_verified == entry["bound_verified"]
    answer.save(tmp_path / "saved.txt")
    saved = (tmp_path / "saved.txt").read_text()
    assert saved == (tmp_path / "out/solution/g.txt").read_text()
    again = solve(str(path), problem, settings={**steps, "search.start": str(tmp_path / "saved.txt")})
    assert again.objective == answer.objective
    with pytest.raises(CaseError, match="cannot be written"):
        answer.save(tmp_path / "nowhere" / "x.txt")


def test_a_list_of_tuples_is_one_of_edges():
    """However many: an array of two pairs would be a matrix."""
    for edges in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3)], [(0, 1, 2.5), (1, 2, 1), (0, 2, 4)]):
        graph = nx.Graph()
        graph.add_weighted_edges_from(edges) if len(edges[0]) == 3 else graph.add_edges_from(edges)
        for problem in ("mvc", "maxcut"):
            wanted = solve(graph, problem, settings={"search.steps": 50})
            assert solve(edges, problem, settings={"search.steps": 50}).digest == wanted.digest
    for wrong, said in (
        ([("a", "b")], "found edge .*'a', 'b'.*; numbers of nodes would be right .names: a DataFrame"),
        ([(0, 1), (1, -2)], "found node number -2"),
        ([[0, 1], [1, 0]], "a list of tuples .u, v. or a file name is needed"),
        ([(0, 1), (1, 2, 3)], "is needed, got"),
        ([], "is needed, got"),
    ):
        with pytest.raises(GraphError, match=said):
            solve(wrong)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"select.rul": "single"}, "rul"), ({"train.steps": -1}, "steps"), ({"select.rule": "best"}, "best")],
)
def test_wrong_settings_are_named(settings, said):
    with pytest.raises(CaseError, match=said):
        solve(nx.path_graph(4), settings=settings)


OF_FOLDS = ("seeds", "trials", "fold_validation")
PATH, TRIPLES = nx.path_graph(6), [(0, 0, 1), (1, 0, 2)]
OF_DRAWN = {"generator": "ba", "nodes": 9, "d": 2}


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("call", "read"),
    [
        (lambda more: solve(PATH, settings=more), ()),
        (lambda more: check(PATH, [1, 3], settings=more), ()),
        (lambda more: train({"train.graphs": OF_DRAWN} | more), ()),
        (lambda more: TrainingRun(graphs=OF_DRAWN, **more), ()),
        (lambda more: gym_environment([PATH], settings=more), ()),
        (lambda more: embed(PATH, settings=more), ()),
        (lambda more: classify(PATH, None, [0, 1] * 3, settings=more), OF_FOLDS),
        (lambda more: forecast(PATH, np.ones((60, 6)), settings=more), ("seeds", "trials", "fold_training")),
        (lambda more: find_links(PATH, settings=more), OF_FOLDS),
        (lambda more: predict_links(TRIPLES, settings=more), ("seeds", "trials")),
    ],
)
def test_studies_that_no_call_reads_are_refused_in_the_words_of_case_files(call, read):
    """What a call reads beside folds or vary is taken: settings serve a tuning and what follows it."""
    told = {"seeds": [7], "trials": 4, "race": 2, "fold_validation": "none", "fold_training": "sliding"}
    taken = {f"study.{key}": told[key] for key in read}
    for key, value in (told | {"rounds": 3, "kind": "folds", "folds": 4, "vary": ["hidden 2 4"]}).items():
        if key not in (*read, *(("race",) if read else ())):
            with pytest.raises(CaseError) as found:
                call(taken | {f"study.{key}": value})
            said = f'settings: study.{key}: is read by run.task = "study"; leave it out'
            assert str(found.value).startswith(said), key


@pytest.mark.mpi_skip
@pytest.mark.parametrize("key", ["features", "labels", "random_features", "node_data_by", "splits"])
def test_data_of_nodes_that_no_network_reads_is_refused_in_the_words_of_case_files(key):
    told = {"random_features": 3, "node_data_by": "id", "splits": "random", "features": "degrees"}
    asked, karate = {key: told.get(key, "y.txt")}, {"path": "networkx:karate_club"}
    for table, call in (
        ("graph", lambda: solve(PATH, settings={"graph": asked})),
        ("graph", lambda: train({"train.graphs": OF_DRAWN, "graph": asked})),
        ("train.graphs", lambda: TrainingRun(graphs=karate | asked)),
    ):
        with pytest.raises(CaseError, match="settings: ") as found:
            call()
        said = f'{table}.{key}: is read by run.task = "classify" and "study"; leave it out'
        assert said in str(found.value)


@pytest.mark.mpi_skip
def test_settings_of_studies_that_calls_read_are_taken():
    classes, few = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1], {"gnn.epochs": 1, "gnn.hidden": 2}
    ring = nx.cycle_graph(10)
    asked = few | {"study.kind": "folds", "study.folds": 3, "study.fold_validation": "none"}
    assert len(classify(ring, None, classes, folds=3, settings=asked).folds) == 3
    asked = few | {"graph.splits": "random", "study.seeds": [1], "study.trials": 2, "study.latency_us": 9}
    tuned = classify(ring, None, classes, vary={"hidden": [2, 3]}, settings=asked)
    assert len(tuned.trials) == 2
    assert classify(ring, None, classes, settings=asked | tuned.settings).epochs == 1
    for more, said in (
        ({"study.seeds": [1]}, "study.seeds: is not read beside folds"),
        ({"study.fold_training": "sliding"}, "study.fold_training: is not read beside folds"),
        ({"study.folds": 4}, "study.folds: is not read beside folds"),
        ({"study": {"kind": "tune"}}, "study.kind: is not read beside folds"),
    ):
        with pytest.raises(CaseError, match=f"settings: {said}"):
            classify(ring, None, classes, folds=3, settings=few | more)
    with pytest.raises(CaseError, match=r"settings: study\.rounds: is not read beside vary"):
        predict_links(TRIPLES, vary={"rgcn.dimension": [2, 4]}, settings={"study.rounds": 3})


def test_what_is_no_graph_is_refused():
    with pytest.raises(GraphError, match="NetworkX"):
        solve([1, 2, 3])
    with pytest.raises(GraphError, match="square"):
        solve(sp.csr_array((2, 3)))
    with pytest.raises(GraphError, match="no-such-file"):
        solve("no-such-file.txt")


@pytest.mark.parametrize("given", ["attributes", "array", "mapping"])
@pytest.mark.parametrize(("problem", "objective"), [("mvc", 2), ("mis", 10), ("mds", 2)])
def test_node_weights_count(problem, objective, given):
    """A path whose middle weighs 10."""
    graph, weights, options = nx.path_graph(3), [1, 10, 1], {}
    if given == "attributes":
        nx.set_node_attributes(graph, dict(enumerate(weights)), "weight")
    else:
        options["node_weights"] = weights if given == "array" else dict(enumerate(weights))
    assert solve(graph, problem, **options).objective == objective


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"node_weights": [1, 2]}, "found 2 node weights for 3 nodes"),
        ({"node_weights": {0: 1, 2: 1}}, "node 1 has no weight, others have"),
        ({"node_weights": [1, "heavy", 1]}, "the weight of node 1 is 'heavy'; a number would be right"),
        ({"node_weights": [1, np.nan, 1]}, "the weight of node 1 is NaN or infinite"),
    ],
)
def test_wrong_node_weights_are_named(options, said):
    with pytest.raises(GraphError, match=said):
        solve(nx.path_graph(3), **options)


def test_what_is_lost_of_weights_is_said():
    large = nx.Graph()
    large.add_edge(0, 1, weight=16777217)
    with pytest.warns(UserWarning, match="the weight of edge 0-1, 16777217, is kept as 16777216"):
        solve(large, "maxcut")
    with pytest.warns(UserWarning, match="of parallel edges the one of largest weight counts"):
        solve(nx.MultiGraph([(0, 1, {"weight": 2}), (0, 1, {"weight": 3})]), "maxcut")
    for matrix in (np.array([[0, 1], [3, 0]]), sp.csr_array(np.array([[0, 1], [3, 0]]))):
        with pytest.warns(UserWarning, match="not symmetric: of two entries of a pair the larger counts"):
            solve(matrix, "maxcut")
    with pytest.raises(GraphError, match="the weight of edge 0-1 is 'heavy'; a number would be right"):
        solve(nx.Graph([(0, 1, {"weight": "heavy"})]), "maxcut")


def test_weights_that_do_not_count_say_nothing(recwarn):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "red", 1: 2}, "weight")
    assert solve(graph, "maxcut").objective == 2
    edges = nx.MultiGraph([(0, 1, {"weight": 16777217}), (0, 1, {"weight": 3})])
    assert solve(edges, "mvc").objective == 1
    assert not [each for each in recwarn if "graph:" in str(each.message)]
    lacking = nx.path_graph(3)
    nx.set_node_attributes(lacking, {0: 1, 1: 2}, "weight")
    with pytest.raises(GraphError, match="node 2 has no weight, others have"):
        solve(lacking, "mvc")
    with pytest.raises(CaseError, match="node_weights: maxcut counts those of edges; mvc, mis, mds, fvs"):
        solve(graph, "maxcut", node_weights=[1, 2, 3])


def test_edges_without_a_weight_among_others_are_named():
    graph = nx.Graph([(0, 1, {"weight": 2}), (1, 2, {"weight": None})])
    loop = nx.Graph([(0, 1, {"weight": 3})])
    loop.add_edge(1, 1)  # dropped, so it needs no weight
    loop.add_edge(2, 2, weight=float("nan"))
    assert solve(loop, "maxcut", settings={"search.steps": 10}).objective == 3
    with pytest.raises(GraphError, match="edge 1-2 has no weight, others have"):
        solve(graph, "maxcut")
    assert solve(graph, "mvc").objective == 1
    with pytest.raises(GraphError, match=r"the weight of edge 0-1 is 1e\+39; at most 3.4e38"):
        solve(nx.Graph([(0, 1, {"weight": 1e39})]), "maxcut")


def test_directions_of_unlike_weight_and_parallel_edges_are_said(recwarn):
    both = nx.DiGraph([(0, 1, {"weight": 2}), (1, 0, {"weight": 2})])
    assert solve(both, "maxcut").objective == 2
    assert not [each for each in recwarn if "graph:" in str(each.message)]
    both[1][0]["weight"] = 3
    with pytest.warns(UserWarning, match="the one of largest weight counts; one edge with the sum"):
        assert solve(both, "maxcut").objective == 3
    with pytest.warns(UserWarning, match="of parallel edges one counts"):
        assert solve(nx.MultiGraph([(0, 1), (0, 1)]), "maxcut").objective == 1
    twice = sp.coo_array(([1, 1, 2], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert solve(twice, "maxcut").objective == 2


def test_decimal_weights_have_decimal_objectives():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, 0.1, "weight")
    answer = solve(graph, "maxcut")
    assert (answer.objective, answer.bound) == (0.3, 0.3)
    assert solve(nx.path_graph(4), "mvc", node_weights=[0.1] * 4).objective == 0.2


def test_a_file_warns_of_weights_that_are_not_kept(shared_path):
    path = shared_path / "large.txt"
    if MPI.COMM_WORLD.rank == 0:
        path.write_text("1 2 16777217\n2 3 123456789\n")
    MPI.COMM_WORLD.barrier()
    if MPI.COMM_WORLD.rank == 0:
        with pytest.warns(UserWarning, match=r"large.txt:1: the weight, 16777217, is kept as 16777216"):
            solve(str(path), "maxcut")
    else:
        solve(str(path), "maxcut")


@pytest.mark.parametrize("order", ["natural", "random"])
def test_fixed_nodes_are_named_as_the_graph_names_them(order, shared_path):
    path = nx.path_graph(["a", "b", "c", "d", "e"])
    settings = {"graph.order": order}
    wanted = {"inside": ["a"], "outside": ["b"], "settings": settings}
    assert {"a", "c"} <= set(solve(path, **wanted).nodes) <= {"a", "c", "d", "e"}
    matrix = nx.to_scipy_sparse_array(path)
    assert sorted(solve(matrix, inside=np.array([0]), outside=[1], settings=settings).nodes)[0] == 0
    file = shared_path / "fixed.edges"
    if MPI.COMM_WORLD.rank == 0:
        file.write_text("10 20\n20 30\n30 40\n40 50\n")
    MPI.COMM_WORLD.barrier()
    assert 20 not in solve(str(file), outside=[20], settings=settings).nodes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inside": ["z"]}, "inside: found 'z'; a node of the graph would be right"),
        ({"inside": "a"}, "inside: found 'a'; a list of nodes would be right"),
        ({"inside": ["a"], "outside": ["a"]}, "node 'a' is in both"),
        ({"outside": ["a", "b"]}, "'a' and 'b' are adjacent: both cannot be outside a cover"),
        ({"problem": "clique", "inside": ["a", "c"]}, "'a' is not adjacent to all others"),
        ({"problem": "mds", "outside": ["b", "c"]}, "'c' and all neighbours are to be outside"),
    ],
)
def test_fixed_nodes_that_cannot_be_are_named(options, said):
    with pytest.raises((CaseError, GraphError), match=said):
        solve(nx.path_graph(["a", "b", "c"]), **options)
    with pytest.raises(GraphError, match="node 9 is not in the graph"):
        solve(np.array([[0, 1]]), inside=[9])


def test_classes_and_nodes_by_name():
    club = nx.karate_club_graph()
    graph = nx.relabel_nodes(club, {v: f"m{v}" for v in club})
    names = [data["club"] for _, data in graph.nodes(data=True)]
    settings = {"gnn.epochs": 60, "seed": 1}
    sets = {"train": ["m0", "m1", "m32", "m33"], "test": ["m5", "m20"]}
    found = classify(graph, labels=names, settings=settings, **sets)
    assert set(found.predicted) == {"Mr. Hi", "Officer"}
    numbers = {name: [int(node[1:]) for node in nodes] for name, nodes in sets.items()}
    classes = [int(name == "Officer") for name in names]
    again = classify(graph, labels=classes, settings=settings, **numbers)
    assert found.digest == again.digest
    mapped = classify(graph, labels=dict(zip(graph, names)), settings=settings, **sets)
    assert mapped.digest == found.digest
    for options, said in (
        ({"labels": names, "train": ["m99"]}, "train: found 'm99'"),
        ({"labels": {"q": "x"}, "train": ["m0"]}, "labels: found 'q'"),
        ({"labels": ["a", 1] * 17, "train": ["m0"]}, "labels: found 1 in row 1 among names of classes"),
    ):
        with pytest.raises(GraphError, match=said):
            classify(graph, **options)


def test_one_class_for_all_nodes_is_said():
    graph = nx.complete_graph(12)
    classes, same = [0] * 9 + [1] * 3, np.ones((12, 2))
    with pytest.warns(UserWarning, match="all 12 nodes are predicted to be of class 0"):
        classify(graph, same, classes, train=range(12), settings={"gnn.epochs": 2, "gnn.model": "gcn"})


def test_missing_weights_are_no_damaged_weights():
    with pytest.raises(GraphError, match=r"none.npz: no such file; the path of a weights.npz would be right"):
        solve(nx.path_graph(3), weights="none.npz")


@pytest.mark.parametrize("size", [1e-6, 1.0, 12345.6, 1e12])
def test_tours_of_real_coordinates_have_their_length(size):
    """Distances of whole numbers alone are rounded."""
    points = np.random.default_rng(1).random((30, 2)) * size - size / 3
    answer = solve(points, "tsp")
    at = points[answer.nodes]
    length = np.hypot(*(at - np.roll(at, -1, axis=0)).T).sum()
    assert answer.objective == pytest.approx(length, rel=1e-5)
    assert 0.9 * length < answer.bound <= answer.objective
    assert solve(np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), "tsp").objective == 4
    assert solve(np.zeros((5, 2)), "tsp").objective == 0


# ---- where searches begin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "clique", "maxcut", "tsp"])
def test_a_search_begins_with_a_solution_of_an_earlier_call(problem, world):
    """Of one step: an answer that is as good as the earlier one; as nodes and as a Solution, in any order."""
    sign = 1 if problem in ("mvc", "mds", "tsp") else -1
    drawn = nx.relabel_nodes(nx.gnp_random_graph(60, 0.15, seed=2), lambda v: f"n{v}")
    graph = complete_graph(distances_of(30), [f"n{v}" for v in range(30)]) if problem == "tsp" else drawn
    few = {"search.steps": 1, "search.bounds": False, "search.baselines": False, "search.start": "greedy"}
    best = solve(graph, problem, settings={"search.steps": 20_000}, comm=world)
    for start in (best, best.nodes, best.nodes if problem == "tsp" else best.nodes[::-1]):
        for order in ("natural",) if problem == "tsp" else ("natural", "random"):
            keys = {key: few[key] for key in few if key != "search.start"} | {"graph.order": order}
            again = solve(graph, problem, start=start, settings=keys, comm=world)
            assert sign * again.objective <= sign * best.objective
    assert solve(graph, problem, start=[] if problem != "tsp" else best, settings=few, comm=world).feasible


@pytest.mark.parametrize(
    ("problem", "options", "said"),
    [
        ("mvc", {"start": ["n1", "x"]}, "start: found 'x'; a node of the graph would be right"),
        ("mvc", {"start": "n1"}, "start: found 'n1'; a list of nodes would be right"),
        ("mvc", {"start": ["n1"], "settings": {"search.start": __file__}}, "start: given here and in"),
        ("mvc", {"start": ["n1"], "settings": {"search.solver": "policy"}}, "start: the policy alone"),
        ("tsp", {"start": ["n1", "n2", "n2"]}, "start: found 'n2' 2 times; each node once would be right"),
        ("tsp", {"start": ["n1", "n2"]}, "start: found 2 cities; each of 3 once would be right"),
        ("tsp", {"start": {"n1", "n2", "n3"}}, "start: found a set, which has no order; a list of cities"),
    ],
)  # fmt: skip
def test_what_is_no_solution_to_begin_with_is_refused(problem, options, said):
    graph = complete_graph(distances_of(3), ["n1", "n2", "n3"])
    with pytest.raises((CaseError, GraphError), match=said):
        solve(graph, problem, **options)


def test_a_start_may_be_in_another_order_on_each_rank(world):
    """As sets of names are, but a tour's."""
    graph = nx.relabel_nodes(nx.gnp_random_graph(30, 0.2, seed=2), lambda v: f"n{v}")
    few = {"search.steps": 1, "search.bounds": False}
    turned = [f"n{(v + world.rank) % 30}" for v in range(30)]
    assert solve(graph, "mvc", start=turned, settings=few, comm=world).feasible


def test_a_start_holds_to_fixed_nodes_and_names_of_files(tmp_path):
    (tmp_path / "g.csv").write_text("a,b\nb,c\nc,d\nd,e\n")
    few = {"search.steps": 1, "graph.ids": "names"}
    answer = solve(str(tmp_path / "g.csv"), "mvc", start=["b", "d"], inside=["a"], settings=few)
    assert "a" in answer.nodes and answer.objective == 3


# ---- tours by distances -----------------------------------------------------------------------------------

FEW_STEPS = {"search.steps": 3000, "run.device": "cpu"}


def distances_of(n, seed=1):
    """[n, n] whole distances that no points have."""
    drawn = np.triu(np.random.default_rng(seed).integers(5, 900, (n, n)), 1)
    return drawn + drawn.T


def complete_graph(matrix, names):
    graph = nx.Graph()
    graph.add_nodes_from(names)
    pairs = zip(*np.triu_indices(len(matrix), 1))
    graph.add_weighted_edges_from((names[i], names[j], matrix[i, j].item()) for i, j in pairs)
    return graph


def told(answer):
    return answer.objective, answer.bound, answer.optimal, answer.gap


@pytest.mark.parametrize("layout", ["FULL_MATRIX", "UPPER_ROW"])
def test_distances_give_the_answer_of_their_tsplib_file(layout, shared_path):
    matrix, path = distances_of(23), shared_path / "d.tsp"
    rows = matrix if layout == "FULL_MATRIX" else [matrix[i, i + 1 :] for i in range(22)]
    head = f"TYPE : TSP\nDIMENSION : 23\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : {layout}\n"
    if MPI.COMM_WORLD.rank == 0:
        lines = "".join(" ".join(map(str, row)) + "\n" for row in rows)
        path.write_text(f"{head}EDGE_WEIGHT_SECTION\n{lines}EOF\n")
    MPI.COMM_WORLD.barrier()
    of_file = solve(str(path), "tsp", settings=FEW_STEPS)
    given = solve(matrix, "tsp", settings=FEW_STEPS)
    assert [node - 1 for node in of_file.nodes] == given.nodes and told(of_file) == told(given)
    names = [f"town {i}" for i in range(23)]
    of_graph = solve(complete_graph(matrix, names), "tsp", settings=FEW_STEPS)
    assert of_graph.nodes == [names[node] for node in given.nodes] and told(of_graph) == told(given)
    both = complete_graph(matrix, range(23)).to_directed()
    assert told(solve(both, "tsp", settings=FEW_STEPS)) == told(given)
    for same in (matrix.astype(float) + np.diag([np.nan] * 23), matrix.astype(np.uint64)):
        assert solve(same, "tsp", settings=FEW_STEPS).nodes == given.nodes
    alone = solve(matrix, "tsp", settings=FEW_STEPS, comm=MPI.COMM_SELF)
    assert alone.nodes == given.nodes and told(alone) == told(given)


@pytest.mark.parametrize("unit", [1e-9, 0.001, 1.7, 1e12])
def test_decimal_distances_are_not_rounded_to_whole_numbers(unit):
    points = np.random.default_rng(3).random((20, 2))
    matrix = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1)) * unit
    matrix *= 1 + 1e-15 * np.tri(20)  # the two directions differ in their last bits
    answer = solve(matrix, "tsp", settings=FEW_STEPS)
    at = np.array(answer.nodes)
    length = matrix[at, np.roll(at, -1)].sum()
    assert answer.objective == pytest.approx(length, rel=1e-6)
    assert 0.9 * length < answer.bound <= answer.objective
    of_points = solve(points, "tsp", settings=FEW_STEPS)
    assert answer.objective == pytest.approx(of_points.objective * unit, rel=1e-5)
    assert solve(complete_graph(matrix, list("abcdefghijklmnopqrst")), "tsp").feasible


def changed(i, j, value, n=4, dtype=float):
    matrix = distances_of(n).astype(dtype)
    matrix[i, j] = value
    return matrix


def lacking(u, v):
    graph = complete_graph(distances_of(4), list("abcd"))
    graph.remove_edge(u, v)
    return graph


def weighted(u, v, weight):
    graph = complete_graph(distances_of(4), list("abcd"))
    graph[u][v]["weight"] = weight
    return graph


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (changed(1, 3, np.nan), "the distance from 1 to 3 is nan; a finite number would be right"),
        (changed(1, 3, np.inf), "the distance from 1 to 3 is inf; a finite number"),
        (changed(1, 3, -2), "the distance from 1 to 3 is -2; 0 or more would be right"),
        (changed(1, 3, 2**40, dtype=int), "from 1 to 3 is 1.09951162778e.12; at most 2147483647"),
        (np.full((3, 3), 5e-324), "the largest distance is 4.94.*e-324; from 1e-300 to"),
        (np.full((3, 3), 1.7e308), "the largest distance is 1.7e.308; from 1e-300 to 5.99e.307"),
        (np.ma.masked_equal(np.eye(3), 1), "found a masked array"),
        (weighted("b", "d", 10**400), "the distance from 'b' to 'd' is inf; a finite number"),
        (np.ones((4, 4), dtype=bool), "an array of bool of shape .4, 4.; distances .n, n. would be"),
        (np.zeros((0, 0)), "distances of 0 points; 1 to 20000"),
        (np.zeros((0, 2)), "found no points; at least one"),
        (sp.csr_array(np.ones((4, 4))), "for a tour distances .n, n. or coordinates"),
        (lacking("b", "d"), "there is no edge 'b'-'d'; a tour needs the distance of every pair"),
        (weighted("b", "d", None), "edge 'b'-'d' has no weight; a number, its length"),
        (weighted("b", "d", "far"), "edge 'b'-'d' has the weight 'far'; a number"),
        (weighted("b", "d", -1), "the distance from 'b' to 'd' is -1; 0 or more"),
        (nx.MultiGraph([(0, 1, {"weight": 2}), (0, 1, {"weight": 3})]), "edge 0-1 is there twice"),
    ],
)
def test_what_gives_no_distances_is_refused_by_the_pair(graph, said):
    with pytest.raises(GraphError, match=said) as caught:
        solve(graph, "tsp")
    assert "\n" not in str(caught.value)


class IndexedFrame(Frame):
    """The same with names of its rows, and several columns by their names."""

    def __init__(self, index, **columns):
        super().__init__(**columns)
        self.index = index

    def __getitem__(self, name):
        return np.stack([self.held[n] for n in name], axis=1) if isinstance(name, list) else self.held[name]


TOWNS = ["Ulm", "Bonn", "Köln", "Trier", "Hof"]


def pairs_of(matrix, both, order=slice(None)):
    """The columns of a table of distances, each pair once or in both directions."""
    u, v = np.nonzero(~np.eye(len(matrix), dtype=bool) if both else np.triu(np.ones(matrix.shape), 1))
    towns = np.array(TOWNS)
    return {"a": towns[u][order], "b": towns[v][order], "km": matrix[u, v][order]}


def test_tables_of_distances_give_the_tour_of_their_matrix():
    matrix = distances_of(5) + 0.5 - 0.5 * np.eye(5)
    expected = solve(matrix, "tsp", settings=FEW_STEPS)
    columns = {town: matrix[:, i] for i, town in enumerate(TOWNS)}
    squares = [columns, dict(reversed(columns.items()))]  # columns in another order than the rows
    for table in (IndexedFrame(TOWNS, **each) for each in squares):
        answer = solve(table, "tsp", settings=FEW_STEPS)
        assert (answer.digest, answer.nodes) == (expected.digest, [TOWNS[i] for i in expected.nodes])
    for each in (
        pairs_of(matrix, False),
        pairs_of(matrix, True),
        pairs_of(matrix, False, slice(None, None, -1)),
    ):
        answer = solve(Frame(**each), "tsp", settings=FEW_STEPS)
        assert told(answer) == told(expected)
        at = [TOWNS.index(town) for town in answer.nodes]
        assert matrix[at, np.roll(at, -1)].sum() == answer.objective


@pytest.mark.parametrize("kind", [float, int])
def test_tables_of_coordinates_name_their_rows(kind):
    points = (100 * np.random.default_rng(3).random((5, 2))).astype(kind)
    expected = solve(points, "tsp", settings=FEW_STEPS)
    xy = {"x": points[:, 0], "y": points[:, 1]}
    for table in (
        Frame(town=TOWNS, **xy),
        IndexedFrame(TOWNS, **xy),
        IndexedFrame([0] * 5, town=TOWNS, **xy),
    ):
        answer = solve(table, "tsp", settings=FEW_STEPS)
        assert (answer.digest, answer.nodes) == (expected.digest, [TOWNS[i] for i in expected.nodes])
    assert solve(Frame(**xy), "tsp", settings=FEW_STEPS).nodes == expected.nodes


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (Frame(a=["p", "p"], b=["q", "r"], km=[1, 2]), "no distance from 'q' to 'r'; a tour needs"),
        (Frame(a=["p", "p"], b=["q", "q"], km=[1, 2]), "found [12] and [12] from 'p' to 'q'; one distance"),
        (Frame(a=["p"], b=["q"], km=["far"]), "found <U3 in column 'km'; numbers would be right"),
        (Frame(a=["p"], b=["q"], km=[-1]), "the distance from 'p' to 'q' is -1; 0 or more"),
        (Frame(town=["p", "p"], x=[1.0, 2.0], y=[1.0, 2.0]), "found the row 'p' twice; one for each city"),
        (Frame(town=["p"], x=[1.0]), "found <U1 in column 'town'; numbers would be right .names of cities"),
        (IndexedFrame(["p", "q"], a=[1], b=[2], c=[3], d=[4]), "a table of 4 columns; two of coordinates"),
    ],
)  # fmt: skip
def test_tables_that_give_no_tour_are_refused(table, said):
    with pytest.raises(GraphError, match=said):
        solve(table, "tsp")


def test_tours_of_few_points_by_distances():
    for n in (1, 2, 3):
        answer = solve(distances_of(n), "tsp")
        assert sorted(answer.nodes) == list(range(n)) and answer.optimal
    assert solve(np.zeros((5, 5)), "tsp").objective == 0
    assert solve(np.array([[0, 0.5], [0.5, 0]]).view(np.matrix), "tsp").objective == 1


@pytest.mark.parametrize("problem", ["mvc", "mis", "mds", "fvs", "clique", "maxcut"])
def test_the_policy_alone_keeps_a_time_limit(problem, monkeypatch):
    """A plain greedy decides what the clock leaves (a cut stays); as many evaluations give it again."""
    n = 40 if problem == "maxcut" else 80  # of a cut every node is looked at again and again
    graph, settings = nx.gnp_random_graph(n, 0.15, seed=3), {"search.solver": "policy", "seed": 5}
    settings["search.bounds"] = problem != "fvs"  # which would take all of the limit
    whole = solve(graph, problem, settings=settings)
    asked = []

    def rings(clock):
        asked.append(clock.seconds)
        return np.isfinite(clock.seconds) and len(asked) > 1

    monkeypatch.setattr(rollouts.StartClock, "rings", rings)
    monkeypatch.setattr(rollout, "MOST_STEPS", 1)
    cut = solve(graph, problem, search_seconds=60, settings=settings)
    assert 1 <= cut.policy_evaluations < whole.policy_evaluations and cut.feasible
    assert len(asked) > 1 and 0.6 * 60 < asked[0] < 60  # time is kept for what comes after
    limit = {"search.evaluations": cut.policy_evaluations}
    assert solve(graph, problem, settings=settings | limit).nodes == cut.nodes


class Estimated:
    """Bounds that say how long they take, and note what they are asked."""

    method, value = "said", 1

    def __init__(self, least, check):
        self.least_seconds, self.check_seconds, self.asked = least, check, []

    def expect(self, seconds):
        self.asked.append(("expect", seconds))

    def improve(self, seconds, best):
        self.asked.append(("improve", seconds))

    def proof(self):
        self.asked.append("verify")


@pytest.mark.parametrize(
    ("least", "check", "limited", "asked"),
    [
        (1.0, 0.5, True, [("expect", 2.0), ("improve", 0.5), "verify"]),
        (1.0, 1.5, True, [("expect", 2.0), ("improve", 1.0)]),  # no time for the check
        (3.0, 0.0, True, [("expect", 2.0)]),  # nor for a bound
        (3.0, 9.0, False, [("improve", 2.0), "verify"]),
    ],
)
def test_bounds_of_the_policy_alone_have_the_seconds_that_are_left(least, check, limited, asked):
    bounds = Estimated(least, check)
    assert not compare._improve(None, bounds, 2.0, limited, 1)
    assert bounds.asked == asked


@pytest.mark.parametrize("seed", [0, 3, 5])  # where the weights that ship beat the greedy start
def test_as_many_evaluations_as_a_rollout_takes_give_it_again(seed):
    """Its last allowed choice may be the one that completes it."""
    graph = nx.gnp_random_graph(60, 0.08, seed=seed)
    settings = {"search.baselines": False, "search.bounds": False, "search.steps": 0}
    settings["search.reductions"] = False
    whole = solve(graph, "mds", settings=settings)
    assert whole.source == "learned"
    limited = {
        less: solve(graph, "mds", settings=settings | {"search.evaluations": whole.policy_evaluations - less})
        for less in (0, 1)
    }
    assert (limited[0].nodes, limited[0].source) == (whole.nodes, "learned")
    assert limited[1].policy_evaluations == whole.policy_evaluations - 1
    assert limited[1].feasible and limited[1].objective >= whole.objective  # its rest is greedy


def test_a_time_limit_of_the_policy_alone_is_that_of_its_bounds_and_baselines(monkeypatch):
    seen = {}

    def bound_of(context, toolbox, best, seconds):
        seen["bounds"] = seconds
        return compare.FoundBound(None, "", False, b"")

    def baseline_values(context, toolbox, name, seconds):
        seen["baselines"] = seconds
        return {}

    monkeypatch.setattr(rollouts, "bound_of", bound_of)
    monkeypatch.setattr(rollouts, "baseline_values", baseline_values)
    for limit, bounds, baselines in (
        (50.0, (0.0, 50.0), (50.0, 55.0)), (None, (2.0, 2.0), (float("inf"), float("inf"))),
    ):  # fmt: skip
        solve(nx.path_graph(9), search_seconds=limit, settings={"search.solver": "policy"})
        assert bounds[0] <= seen["bounds"] <= bounds[1]
        assert baselines[0] <= seen["baselines"] <= baselines[1]


@pytest.mark.mpi_skip
def test_a_file_is_kept_for_the_next_call(tmp_path):
    (tmp_path / "g.txt").write_text("10 20\n20 30\n30 40\n")
    settings = {"memory.cache": str(tmp_path / "kept"), "search.steps": 5}
    answers = [solve(str(tmp_path / "g.txt"), settings=settings) for _ in range(2)]
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert answers[0].nodes == answers[1].nodes == solve(str(tmp_path / "g.txt")).nodes


class Rows(Frame):
    """As much of a table of pandas as is asked of one whose rows belong to nodes."""

    def __init__(self, rows, index):
        super().__init__(**{str(i): column for i, column in enumerate(np.transpose(rows))})
        self.index, self._rows = index, np.array(rows)

    def keys(self):
        return self.columns

    def to_numpy(self):
        return self._rows


def table_of_pandas(rows, index):
    return pytest.importorskip("pandas").DataFrame(rows, index=index)


@pytest.mark.parametrize("table", [Rows, table_of_pandas])
def test_rows_of_a_table_belong_to_the_nodes_of_its_index(table):
    """An index that only counts rows names no nodes where these have names; columns are never nodes."""
    X, settings = np.arange(9.0).reshape(3, 3), {"gnn.epochs": 2, "gnn.feature_rows": "as_given"}
    numbers, names = nx.path_graph(3), nx.path_graph(["a", "b", "c"])

    def digest(graph, features):
        return classify(graph, features, [0, 1, 0], train=[0, 1], settings=settings).digest

    expected = digest(numbers, X)
    assert expected != digest(numbers, X.T)
    assert digest(nx.to_scipy_sparse_array(numbers), table(X, [0, 1, 2])) == expected
    assert digest(numbers, table(X[[2, 0, 1]], [2, 0, 1])) == expected
    assert digest(names, table(X[[2, 0, 1]], ["c", "a", "b"])) == digest(names, X)
    assert digest(names, table(X, [0, 1, 2])) == digest(names, X)
    floats = nx.relabel_nodes(numbers, {0: 2.0, 1: 0.0, 2: 1.0})
    assert digest(floats, table(X, [2, 0, 1])) == digest(floats, X) != digest(floats, table(X, [0, 1, 2]))
    with pytest.raises(GraphError, match="features: found node 'a' twice; each once would be right"):
        digest(names, table(X, ["a", "b", "a"]))
    with pytest.raises(GraphError, match="features: found 'z'; a node of the graph would be right"):
        digest(names, table(X, ["a", "b", "z"]))


def test_weights_of_nodes_by_an_index_and_in_order():
    """Nodes that are floats are named by whole numbers, too; `index` may be a method (pyarrow)."""

    class Arrow(list):
        def to_numpy(self):
            raise TypeError

    path = nx.path_graph([2.0, 0.0, 1.0])
    column = Rows([9.0, 1.0, 9.0], [0, 1, 2])
    column.columns = []
    column.keys = lambda: column.index
    named = {0: 9, 1: 1, 2: 9}
    assert solve(path, node_weights=column).objective == solve(path, node_weights=named).objective == 9
    assert solve(nx.path_graph(3), node_weights=Arrow([1.0, 5.0, 1.0])).objective == 2


def test_masked_arrays_are_refused():
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [0, 4]])
    hidden, plain = np.ma.array(edges, mask=edges == 4), np.ma.array(edges, mask=edges == 9)
    with pytest.raises(GraphError, match="graph: found masked entries; an array without would be right"):
        solve(hidden)
    assert solve(plain).nodes == solve(edges).nodes
    weights = np.ma.array([100, 1, 100, 1, 100.0], mask=[0, 1, 0, 1, 0])
    with pytest.raises(GraphError, match="node_weights: found masked entries"):
        solve(edges, node_weights=weights)
    with pytest.raises(GraphError, match="graph: found masked entries"):
        solve(np.ma.array(np.ones((5, 2)), mask=np.eye(5, 2)), "tsp")
    with pytest.raises(GraphError, match="triples: found masked entries"):
        predict_links(np.ma.array([[0, 0, 1], [1, 0, 2]], mask=[[0, 0, 1], [0, 0, 0]]))


def test_sets_of_nodes_may_be_any_iterable():
    graph = nx.to_scipy_sparse_array(nx.path_graph(4))
    found = [
        classify(graph, labels=iter([0, 1, 0, 1]), train=train, settings={"gnn.epochs": 1}).digest
        for train in ([0, 1], {1, 0}, (v for v in (0, 1)), range(2))
    ]
    assert len(set(found)) == 1


def test_what_directions_and_half_matrices_lose_is_a_warning():
    with pytest.warns(UserWarning, match="mds is of edges without directions"):
        solve(nx.DiGraph([(1, 0), (2, 0)]), "mds")
    with pytest.warns(UserWarning, match="all distances below the diagonal are 0"):
        assert solve(np.array([[0, 3, 4], [0, 0, 5], [0, 0, 0]]), "tsp").objective == 4


@pytest.mark.filterwarnings("ignore:classify")
@pytest.mark.parametrize("goal", ["classes", "values"])
def test_weights_of_an_earlier_call_are_applied_and_trained_further(goal, shared_path):
    """From memory and from a file; on another graph, without labels; unless the settings name epochs."""
    X, graph = np.random.default_rng(3).normal(size=(34, 4)), nx.karate_club_graph()
    given = [graph.nodes[v]["club"] for v in graph] if goal == "classes" else X.sum(axis=1)
    settings = {"gnn.epochs": 5, "gnn.goal": goal, "gnn.feature_rows": "standard", "seed": 1}
    told = classify(graph, X, given, train=range(20), settings=settings)
    path = str(shared_path / "w.npz")
    if MPI.COMM_WORLD.rank == 0:
        told.save(path)
    MPI.COMM_WORLD.barrier()
    for weights in (told, path):
        again = classify(graph, X, weights=weights)
        assert np.array_equal(again.predicted, told.predicted) and again.epochs == 0
    other = classify([(0, 1), (1, 2)], X[:3], weights=told)
    assert len(other.predicted) == 3 and other.digest == told.digest
    for few in ({"gnn.epochs": 2}, {"gnn": {"epochs": 2}}):
        more = classify(graph, X, given, train=range(20), weights=told, settings={**few, "gnn.goal": goal})
        assert more.epochs == 2 and more.digest != told.digest
    for options, said in (
        ({"weights": 5}, "weights: found 5; the path of a weights.npz or what an earlier call returned"),
        ({"weights": told, "settings": {"gnn.weights": path}}, "weights: given here and in the settings"),
    ):
        with pytest.raises(CaseError, match=said):
            classify(graph, X, **options)
    with pytest.raises(GraphError, match="weights: for nodes with 4 features; these have 3"):
        classify(graph, X[:, :3], weights=told)


def test_nodes_without_a_label_and_entries_given_twice():
    """None among numbers of classes, NaN among names as in a column of pandas; sums as of SciPy."""
    graph, settings = [(0, 1), (1, 2), (2, 3)], {"gnn.epochs": 2, "seed": 1}

    def run(labels, X=None):
        return classify(graph, X, labels, train=[0, 1], settings=settings)

    wanted = run([0, 1, -1, 1]).digest
    assert run([0, 1, None, 1]).digest == run(np.array([0, 1, None, 1], dtype=object)).digest == wanted
    names = run(["a", "b", None, "b"])
    assert run(["a", "b", float("nan"), "b"]).digest == names.digest == wanted
    assert run(np.array(["a", "b", np.nan, "b"], dtype=object)).digest == wanted
    with pytest.raises(GraphError, match="found label nan in row 2; a class from 0, or -1 for none"):
        run([0, 1, np.nan, 1])
    entries, columns = np.array([1.0, 2, 3, 4, 5]), np.array([1, 1, 0, 2, 0])
    twice = sp.csr_array((entries, columns, np.array([0, 2, 3, 4, 5])), shape=(4, 3))
    assert run([0, 1, 1, 1], twice).digest == run([0, 1, 1, 1], sp.csr_array(twice.toarray())).digest
    assert twice.nnz == 5
