"""Which nodes of a graph are joined (gnn.level = "link"): pairs, losses, gradients, scores, refusals."""

import json
import sys
from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES
from jobs import mpirun, run_job, split_over
from linked import PLAIN, drawn, edges_of, pairs_apart, predictor_on, rows_of
from mpi4py import MPI
from standin_device import StandInDevice

from app import find_links
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.links.pairs import find_columns
from app.gnn.links.plain import plain_scores
from app.gnn.links.predictor import likelihood
from app.gnn.links.propose import propose
from app.gnn.links.scores import LinkScores
from app.gnn.links.split import spans_of, split_edges
from app.gnn.links.wrong import Permutations, rounds_of
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.log import Log
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.node_plan import UNKNOWN, training_of
from app.model.plan import plan_lines
from app.numerics.pairs import lane_dots
from app.partition.streams import load_stream
from app.tasks.classify import run_classify
from app.tasks.context import Context

alone = pytest.mark.mpi_skip

# ---- pairs ------------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (2, 1), (7, 2), (60, 3), (1 << 20, 2), (2_999_999_999, 2)])
def test_permutations_pair_nodes_from_both_ends(n, rounds):
    drawn = Permutations(n, rounds, 3, 7)
    nodes = np.unique(np.linspace(0, n - 1, 50).astype(np.int64))
    found = drawn.partners(nodes)
    assert found.min() >= 0
    assert found.max() < n
    assert (np.diff(found, axis=1) >= 0).all()
    for column in found.T:
        assert all(node in back for node, back in zip(nodes, drawn.partners(column)))
    if n < 100:
        every = drawn.partners(np.arange(n))
        assert np.bincount(every.reshape(-1)).tolist() == [2 * rounds] * n


@alone
def test_rounds_are_at_most_those_of_all_pairs():
    assert rounds_of(10, 20, 1.0) == 2
    assert rounds_of(10, 20, 1e308) == 4
    assert rounds_of(2, 1, 1e-9) == 1


@alone
def test_partners_are_uniform():
    n, counts = 50, np.zeros(50)
    for epoch in range(400):
        for partner in Permutations(n, 1, 1, epoch).partners(np.array([7]))[0]:
            counts[partner] += 1
    assert counts[np.arange(n) != 7].min() > 4
    assert counts.max() < 36  # of a mean of 16


def test_pairs_apart_are_no_edges_and_no_repeats(group):
    predictor = predictor_on(group, {"links.negatives": 4.0})
    joined = set(map(tuple, edges_of(predictor).tolist()))
    found = list(map(tuple, pairs_apart(predictor, 3).tolist()))
    assert len(found) == len(set(found)) > 3 * len(joined)
    assert not joined & set(found)
    assert not any(u == v for u, v in found)


@alone
def test_a_complete_graph_has_no_pairs_apart():
    found = find_links(nx.complete_graph(9), settings={"gnn.epochs": 3, "links.propose": 4})
    assert found.proposed == []
    assert found.scores["test"].hits == {}
    assert np.isnan(found.scores["test"].auc)


# ---- edges that are held out ------------------------------------------------------------------------------


def test_edges_held_out_are_the_same_on_any_ranks_and_in_any_order(group, solo):
    for order in ("natural", "random"):
        mine, one = (predictor_on(each, {"graph.order": order}).split for each in (group, solo))
        for name in ("train", "val", "test"):
            assert mine.sets[name].both.tolist() == one.sets[name].both.tolist()
        old = one.loaded.order_all
        graph = nx.Graph((one.held if old is None else old[one.held]).tolist())
        if order == "natural":
            first = graph
    assert nx.utils.edges_equal(first.edges, graph.edges)
    whole = drawn()[0]
    assert 0.15 * whole.size() < first.size() < 0.45 * whole.size()
    assert first.size() + one.loaded.graph.edges == whole.size()
    for each in one.sets.values():
        assert len(each.joined) == len(each.apart) == len({*map(tuple, each.apart.tolist())})


def test_given_edges_are_held_out(group):
    graph, _ = drawn()
    case = build(PLAIN)
    source = stream_of_object(graph)[0] if group.rank == 0 else None
    loaded = load_stream(group, source, case.graph, case)
    val, test = np.array([[0, 3], [80, 81]]), np.array(sorted(map(sorted, list(graph.edges)[5:9])))
    split = split_edges(group, loaded, spans_of(0.1, 0.2), 1, val, test)
    assert split.sets["val"].joined.tolist() == val.tolist()  # the second is no edge, and counts as one
    assert split.sets["test"].joined.tolist() == test.tolist()
    assert split.loaded.graph.edges == graph.size() - len(test) - graph.has_edge(0, 3)
    every = {tuple(pair) for each in split.sets.values() for pair in each.apart.tolist()}
    assert (80, 81) not in every
    with pytest.raises(CaseError, match="edge 0-3 is in both"):
        split_edges(group, loaded, spans_of(0, 0), 1, val, val)
    with pytest.raises(CaseError, match=r"links.test_edges, links.validation: no edge is left to learn from"):
        split_edges(group, loaded, spans_of(0, 0), 1, None, np.array(sorted(map(sorted, graph.edges))))


@alone
def test_columns_are_found():
    graph, _ = drawn()
    case = build(PLAIN)
    rows = load_stream(Group(MPI.COMM_SELF, HostDevice()), stream_of_object(graph)[0], case.graph, case).graph
    u, v = np.indices((90, 90)).reshape(2, -1)
    assert find_columns(rows, u, v).reshape(90, 90).tolist() == (nx.to_numpy_array(graph) > 0).tolist()


# ---- loss and gradient ------------------------------------------------------------------------------------


def test_loss_and_gradient_are_those_of_all_pairs(group):
    """Against float64 and every pair by itself."""
    predictor = predictor_on(group)
    Z, edges, apart = rows_of(predictor), edges_of(predictor), pairs_apart(predictor, 4)
    loss, D = 0.0, np.zeros_like(Z)
    for pairs, target in ((edges, 1), (apart, 0)):
        s = (Z[pairs[:, 0]] * Z[pairs[:, 1]]).sum(axis=1)
        loss += (np.logaddexp(0, s) - target * s).mean()
        g = (1 / (1 + np.exp(-s)) - target) / len(pairs)
        np.add.at(D, pairs[:, 0], g[:, None] * Z[pairs[:, 1]])
        np.add.at(D, pairs[:, 1], g[:, None] * Z[pairs[:, 0]])
    engine, found = predictor.engine, []

    def keep(engine_, rows):
        found.append(np.array(group.device.get(rows.array)))
        return backward(engine_, rows)

    backward, predictor.model.backward = predictor.model.backward, keep
    assert abs(predictor.epoch(4) - loss) < 1e-6
    own = slice(predictor.block.lo, predictor.block.lo + predictor.block.n_real)
    assert np.allclose(found[0][: predictor.block.n_real], D[own], atol=1e-7, rtol=1e-4)
    assert not found[0][predictor.block.n_real :].any()
    assert engine.gradient.shape == (predictor.params.size,)


@pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
def test_gradients_are_differences_of_the_loss(solo, model):
    predictor = predictor_on(solo, {"gnn.model": model, "gnn.layers": [f"{model} 6 linear", model]})
    predictor.epoch(2)
    gradient = np.array(solo.device.get(predictor.engine.gradient)).astype(np.float64)
    weights, step = predictor.params.host(), 1e-3
    length = np.linalg.norm(gradient)
    direction = (step * gradient / length).astype(np.float32)
    at = {}
    for sign in (1, -1):
        first = 0
        moved = {}
        for name, each in weights.items():
            moved[name] = each + sign * direction[first : first + each.size].reshape(each.shape)
            first += each.size
        predictor.params.set(moved)
        at[sign] = predictor.epoch(2)
    assert length > 0.01
    assert (at[1] - at[-1]) / 2 == pytest.approx(step * length, rel=0.02)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_training_has_the_same_bits_on_any_ranks(group, single, exchange):
    settings = {"gnn.epochs": 6, "gnn.dropout": 0.2, "gnn.keep": "best"}
    found = []
    for each in (group, single):
        predictor = predictor_on(each, settings, exchange)
        done = fit(predictor)
        pairs = predictor.split.sets["test"].both
        found.append((done.weights, done.records, predictor.score_pairs(pairs), propose(predictor, 12)))
    (weights, *more), (wanted, *wanted_more) = found
    assert all(weights[name].tobytes() == wanted[name].tobytes() for name in wanted)
    assert more[0] == wanted_more[0]
    assert all(np.array_equal(one, other) for one, other in zip(more[1:], wanted_more[1:]))


@alone
@pytest.mark.parametrize("d", [1, 15, 16, 40, 100])
def test_kernels_change_no_bit(compiled, d):
    """Rows of no pair, and of more than are taken at a time."""
    draws = np.random.default_rng(d)
    A = np.triu(draws.random((200, 200)) < 0.6)
    A[[0, 9]] = False
    indptr, indices = np.concatenate([[0], np.cumsum(A.sum(axis=1))]), np.nonzero(A)[1].astype(np.int32)
    Z, X = draws.normal(size=(2, 200, d)).astype(np.float32)
    found = []
    for device in (compiled, HostDevice(compiled=False)):
        pattern = device.attention_pattern(device.csr(indptr.astype(np.int32), indices, None, A.shape))
        Y, losses = np.ones((200, d), np.float32), np.ones(200, np.float32)
        for target in (1.0, 0.0):
            device.pair_add(pattern, X, Z, target, 0.3, Y, losses)
        found.append((Y.tobytes(), losses.tobytes(), device.pair_dots(Z, X).tobytes()))
    assert found[0] == found[1]
    assert np.allclose(lane_dots(np, Z, X), (Z.astype(np.float64) * X).sum(axis=1), atol=1e-4)


def test_a_limit_of_memory_changes_no_bit(group):
    settings, found = {"gnn.epochs": 3}, []
    for budget in (None, TierBudget(9000, "optimal")):
        found.append(fit(predictor_on(group, settings, budget=budget)).weights)
    assert all(found[0][name].tobytes() == found[1][name].tobytes() for name in found[0])


# ---- scores -----------------------------------------------------------------------------------------------


@alone
def test_scores_are_those_of_every_pair_of_pairs():
    draws = np.random.default_rng(5)
    scores = np.round(draws.normal(size=150), 1).astype(np.float32)
    found = LinkScores.of(scores, 60)
    joined, others = scores[:60], scores[60:]
    wins = (joined[:, None] > others).sum() + 0.5 * (joined[:, None] == others).sum()
    assert found.auc == pytest.approx(wins / 60 / 90)
    falling = np.sort(others)[::-1]
    assert found.hits == {k: (joined > falling[k - 1]).mean() for k in (20, 50)}
    assert found.named()["hits_20"] == found.hits[20]
    assert np.isnan(LinkScores.of(scores[:5], 5).auc)
    assert np.isnan(LinkScores.of(np.array([1, np.inf, 0], np.float32), 1).auc)


def test_plain_rules_are_those_of_networkx(group):
    predictor = predictor_on(group)
    split = predictor.split
    graph = nx.Graph(edges_of(predictor).tolist())
    graph.add_nodes_from(range(90))
    found = plain_scores(group, split)
    rules = {
        "adamic_adar": nx.adamic_adar_index, "degrees": nx.preferential_attachment,
        "common_neighbours": nx.common_neighbor_centrality,
    }  # fmt: skip
    for name in ("val", "test"):
        pairs = list(map(tuple, split.sets[name].both.tolist()))
        for rule, of in rules.items():
            if rule == "common_neighbours":
                scores = [len(list(nx.common_neighbors(graph, *pair))) for pair in pairs]
            else:
                scores = [round(score, 9) for *_, score in of(graph, pairs)]
            ranks = np.unique(scores, return_inverse=True)[1].astype(np.float32)
            wanted = LinkScores.of(ranks, len(split.sets[name].joined))
            assert found[rule][name] == wanted


def test_proposals_are_the_best_of_all_pairs(group, monkeypatch):
    monkeypatch.setattr("app.gnn.links.propose.ROWS", 8)
    monkeypatch.setattr("app.gnn.links.propose.COLUMNS", 32)
    predictor = predictor_on(group)
    whole, _ = drawn()
    pairs = np.array([pair for pair in combinations(range(90), 2) if not whole.has_edge(*pair)])
    Z = rows_of(predictor)
    scores = (Z[pairs[:, 0]] * Z[pairs[:, 1]]).sum(axis=1)
    found = propose(predictor, 25)
    assert np.allclose(np.sort(scores)[::-1][:25], predictor.score_pairs(found), rtol=1e-5)
    assert len({*map(tuple, found.tolist())}) == 25
    assert not any(whole.has_edge(*pair) for pair in found.tolist())
    assert len(propose(predictor, 10**6)) == len(pairs)


@pytest.mark.parametrize("make", [partial(HostDevice, portable=False), StandInDevice])
def test_proposals_on_devices_that_want_rows_by_eights(make):
    settings = {"links.propose": 12, "run.portable": False}
    found = [
        propose(predictor_on(Group(comm, make()), settings), 12) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    ]
    assert len(found[0]) == 12
    assert np.array_equal(*found)


def test_likelihoods_are_sigmoids():
    s = np.array([-200, -1, 0, 2, 200], np.float32)
    with np.errstate(over="ignore"):
        assert np.allclose(likelihood(s), 1 / (1 + np.exp(-s.astype(np.float64))), atol=1e-6)


# ---- runs -------------------------------------------------------------------------------------------------


@alone
def test_runs_files_weights_and_what_is_refused(tmp_path):
    graph = nx.karate_club_graph()
    (tmp_path / "club.txt").write_text("".join(f"n{u} n{v}\n" for u, v in graph.edges))
    (tmp_path / "asked.txt").write_text("n0 n9\nn33 n4\n")
    (tmp_path / "wrong.txt").write_text("n0 nobody\n")
    common = [
        "inputs/links.toml",
        f"graph.path={tmp_path / 'club.txt'}",
        "graph.ids=names",
        "output.plots=false",
    ]
    learn = [*common, "gnn.epochs=12", "gnn.hidden=8", "links.propose=3", "output.embeddings=true"]
    results = {}
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        command = [*mpirun(ranks), sys.executable, "run.py", *learn, split_over(ranks)]
        code, printed = run_job([*command, "--out", out])
        assert code == 0, printed
        results[ranks] = json.loads((out / "result.json").read_text())
    assert results[1]["digest"] == results[2]["digest"]
    found = results[1]
    assert found["train_edges"] < found["edges"] == 78
    assert 0 <= found["test_auc"] <= 1
    assert set(found["plain"]) == {"common_neighbours", "adamic_adar", "degrees"}
    lines = (tmp_path / "1/predictions/club.txt").read_text().splitlines()
    assert all(graph.has_edge(*(int(name[1:]) for name in line.split()[:2])) for line in lines)
    proposed = [line.split() for line in (tmp_path / "1/proposed/club.txt").read_text().splitlines()]
    assert len(proposed) == 3
    assert not any(graph.has_edge(int(u[1:]), int(v[1:])) for u, v, _ in proposed)
    rows = np.load(tmp_path / "1/embeddings/club.npz")
    row = dict(zip(rows["ids"].tolist(), rows["embeddings"]))
    u, v, likely = proposed[0]
    score = row[u.encode()].astype(float) @ row[v.encode()].astype(float)
    assert 1 / (1 + np.exp(-score)) == pytest.approx(float(likely), rel=1e-4)

    applied = [*common, f"gnn.weights={tmp_path / '1/weights.npz'}", "gnn.epochs=0"]
    asked = [*applied, f"links.pairs={tmp_path / 'asked.txt'}", "--out", tmp_path / "applied"]
    code, printed = run_job([sys.executable, "run.py", *asked])
    assert code == 0, printed
    assert json.loads((tmp_path / "applied/result.json").read_text())["test_auc"] == found["test_auc"]
    lines = (tmp_path / "applied/predictions/club.txt").read_text().splitlines()
    assert [set(line.split()[:2]) for line in lines] == [{"n0", "n9"}, {"n4", "n33"}]

    # Its files are opened before an earlier run is removed, whose proposals are among what is.
    (tmp_path / "graph.xml").write_text("<graphml/>")
    other = [*common, f"gnn.weights={tmp_path / '2/weights.npz'}", "gnn.epochs=0"]
    again = [sys.executable, "run.py", *other, "--out", tmp_path / "1", "--overwrite"]
    code, printed = run_job([*again, f"links.pairs={tmp_path / 'graph.xml'}"])
    assert (code, "graph.xml: found GraphML" in printed) == (2, True), printed
    assert (tmp_path / "1/result.json").exists()
    code, printed = run_job(again)
    assert code == 0, printed
    assert not (tmp_path / "1/proposed").exists()

    wrong = [*common, f"links.test_edges={tmp_path / 'wrong.txt'}", "--out", tmp_path / "wrong"]
    code, printed = run_job([sys.executable, "run.py", *wrong])
    assert code == 2
    assert "wrong.txt: found node nobody; a node of club would be right" in printed
    nodes = ["inputs/gcn.toml", f"gnn.weights={tmp_path / '1/weights.npz'}", "gnn.epochs=0"]
    code, printed = run_job([sys.executable, "run.py", *nodes, "--out", tmp_path / "wrong"])
    assert code == 2
    assert "says what links are" in printed


@alone
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gnn.goal": "values"}, "gnn.goal: is of labels"),
        ({"gnn.class_weights": "balanced"}, "gnn.class_weights: is of labels"),
        ({"gnn.watch": "macro_f1"}, "gnn.watch: macro_f1 is no score of links"),
        ({"gnn.watch": "ap", "links.validation": 0.0}, "gnn.watch: ap is of validation links"),
        ({"graph.neighbours": "in"}, 'graph.neighbours: must be "both"'),
        ({"output.probabilities": True}, "output.probabilities: is of classes"),
        ({"links.held_out": 0.6, "links.validation": 0.4}, "links.held_out: leaves no edge"),
        ({"gnn.level": "node", "links.dimension": 4}, 'links.dimension: is read by gnn.level = "link" alone'),
        ({"gnn.layers": ["gcn 8", "gcn 7"]}, "links.dimension is 32; leave the width out"),
        ({"gnn.readout": "max"}, "gnn.readout: is read by"),
        ({"gnn.model": "gine"}, "these layers read features of edges"),
        ({"run.task": "study", "study.kind": "models"}, "gnn.level: study.kind = .models. is not of links"),
    ],
)
def test_what_does_not_fit_is_refused(settings, said):
    with pytest.raises(CaseError, match=said):
        find_links(nx.path_graph(40), settings=settings)


@alone
@pytest.mark.parametrize(("negatives", "times"), [(1.0, 1.0), (6.0, 6.0), (1e308, 99 / 8)])
def test_pairs_apart_are_in_the_estimate_of_memory(negatives, times):
    case = build({"run.task": "classify", "gnn.level": "link", "links.negatives": negatives})
    training = training_of(case, 100, 800, 1, HostDevice())
    wanted = gnn_memory.APART * times * int(training.layout.stored[0])
    assert gnn_memory.pairs_apart(training, 0) == round(wanted)


@alone
def test_a_complete_graph_is_watched_by_its_loss():
    settings = {"links.validation": 0.3, "gnn.epochs": 6, "gnn.evaluate_every": 1, "gnn.patience": 6}
    found = find_links(nx.complete_graph(6), settings=settings)
    assert [row["watched"] == row["loss"] for row in found.records] == [True] * 6
    with pytest.raises(CaseError, match="ap is of validation links; there are none"):
        find_links(nx.complete_graph(6), settings=settings | {"gnn.watch": "ap"})


@alone
def test_from_python():
    graph = nx.les_miserables_graph()
    found = find_links(graph, settings={"links.propose": 4, "gnn.epochs": 60, "seed": 3})
    assert found.scores["test"].auc > 0.75
    assert repr(found).startswith("FoundLinks(77 nodes, 60 epochs; val AUC")
    assert "average precision" in found._repr_html_()
    assert all(graph.has_edge(*pair) for pair in found.pairs)
    (u, v), likely = found.proposed[0]
    row = dict(zip(found.nodes, found.node_rows))
    assert likelihood(np.float32(row[u] @ row[v])) == pytest.approx(likely, rel=1e-4)
    again = find_links(graph, weights=found, pairs=[("Javert", "Valjean"), (u, v)], settings={"seed": 3})
    assert again.scores == found.scores
    assert [set(pair) for pair in again.pairs] == [{"Javert", "Valjean"}, {u, v}]
    assert again.likely[1] == np.float32(likely)
    given = find_links(graph, test=[("Javert", "Valjean")], settings={"gnn.epochs": 2})
    assert [set(pair) for pair in given.pairs[-1:]] == [{"Javert", "Valjean"}]
    for pairs, said in (
        (["ab"], "pairs of nodes would be right"), ([("Javert", "nobody")], "a node of the graph would be"),
        ("all", "pairs of nodes would be right"), ([("Javert", "Javert")], "two nodes would be right"),
        (np.array(3), "pairs of nodes would be right"),
    ):  # fmt: skip
        with pytest.raises(GraphError, match=said):
            find_links(graph, pairs=pairs, weights=found)
    with pytest.raises(CaseError, match="has no edges"):
        find_links(nx.empty_graph(5))


@alone
@pytest.mark.parametrize(("level", "said"), [("link", "has no edges"), ("embed", "has 0 nodes")])
def test_a_graph_without_nodes_is_refused_by_what_it_lacks(tmp_path, level, said):
    path = tmp_path / "none.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n0 0 0\n")
    case = build({"run.task": "classify", "graph.path": str(path), "gnn.level": level})
    assert UNKNOWN in list(plan_lines(case, 2, HostDevice()))
    with pytest.raises(CaseError, match=f"^none: {said}"):
        run_classify(Context(case, Group(MPI.COMM_SELF, HostDevice()), Log(False), None))
