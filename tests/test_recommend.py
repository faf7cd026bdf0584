"""Recommendations by links: the best partners of each node, their rankings, graphs of two kinds of nodes."""

import json
import math
import sys
from itertools import chain, pairwise

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES
from jobs import mpirun, run_job, split_over
from linked import PLAIN, edges_of, pairs_apart, predictor_on, rows_of

from app import find_links
from app.case.file import build
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.links import best, wrong
from app.gnn.links.best import Search, best_partners, left_out
from app.gnn.links.plain import plain_scores
from app.gnn.links.propose import propose, propose_each
from app.gnn.links.scores import LinkScores
from app.gnn.links.sides import Sides, coloured_sides
from app.gnn.links.wrong import Crossings
from app.gnn.training import fit
from app.graphs.generators.random_nodes import communities
from app.graphs.generators.table import GENERATORS
from app.model import gnn_memory
from app.model.node_plan import training_of
from app.sparse.repartition import graph_of

alone = pytest.mark.mpi_skip
USERS, ITEMS = 50, 30


def two_sides(users=USERS, items=ITEMS, p=0.12):
    """A bipartite graph whose sides lie mixed, features, and [n] bool which nodes are of the first side."""
    draws = np.random.default_rng(4)
    places = draws.permutation(users + items)
    A = draws.random((users, items)) < p
    graph = nx.Graph()
    graph.add_nodes_from(range(users + items))
    graph.add_edges_from((int(places[u]), int(places[users + i])) for u, i in np.argwhere(A))
    first = np.zeros(users + items, dtype=bool)
    first[places[:users]] = True
    return graph, draws.normal(size=(users + items, 3)).astype(np.float32), first


def between(group, settings=None, **how):
    """A predictor of links between two sides."""
    graph, X, first = two_sides()
    given = {"links.between": "sides", **(settings or {})}
    return predictor_on(group, given, given=(graph, X), first=first, **how), graph, first


def chained(Z):
    """[n, n] float32, products of all rows: a chain over the columns of each."""
    S = np.zeros((len(Z), len(Z)), np.float32)
    for column in Z.T.astype(np.float32):
        S += column[:, None] * column
    return S


def dense_lists(S, allowed, count, names):
    """By node the partners with the largest scores, of equal ones the lowest name first, one by one."""
    found = {}
    for u in range(len(S)):
        partners = [v for v in range(len(S)) if allowed[u, v]]
        found[u] = sorted(partners, key=lambda v: (-S[u, v], names[v]))[:count]
    return found


def allowed_pairs(n, first, taken):
    """[n, n] bool: two nodes, of two sides where there are any, without an edge of `taken` [k, 2]."""
    allowed = ~np.eye(n, dtype=bool)
    if first is not None:
        allowed &= first[:, None] != first
    allowed[taken[:, 0], taken[:, 1]] = allowed[taken[:, 1], taken[:, 0]] = False
    return allowed


# ---- the best partners of each node -----------------------------------------------------------------------


@pytest.mark.parametrize("order", ["natural", "random"])
@pytest.mark.parametrize("kinds", [False, True])
def test_best_partners_are_those_of_all_pairs(group, monkeypatch, kinds, order):
    """Rows of small whole numbers, many of whose products are equal; a block of scores at a time."""
    monkeypatch.setattr(best, "ROWS", 8)
    monkeypatch.setattr(best, "COLUMNS", 16)
    settings = {"graph.order": order}
    if kinds:
        predictor, _, _ = between(group, settings)
    else:
        predictor = predictor_on(group, settings)
    block, split = predictor.block, predictor.split
    names = split.loaded.order_all
    names = np.arange(block.n) if names is None else names
    Z = np.random.default_rng(6).integers(-2, 3, (block.n, 3)).astype(np.float32)
    own = np.zeros((block.n_own, 3), np.float32)
    own[: block.n_real] = Z[block.lo : block.lo + block.n_real]
    graph = left_out(graph_of(block), split.held)
    taken = np.concatenate([edges_of(predictor), split.held])
    allowed = allowed_pairs(block.n, None if split.sides is None else split.sides.first, taken)
    for count in (1, 4, block.n):
        rows = np.arange(graph.lo, graph.hi)[::3]
        asked = Search(rows, count, graph, split.loaded.order_all, split.sides)
        found = best_partners(group, block, group.device.put(own), group.device.put(own), asked)
        wanted = dense_lists(Z @ Z.T, allowed, count, names)
        for u, nodes, scores in zip(rows.tolist(), found.nodes.tolist(), found.scores):
            assert [v for v in nodes if v >= 0] == wanted[u]
            assert np.array_equal(scores[: len(wanted[u])], (Z[u] * Z[wanted[u]]).sum(axis=1))
            assert np.isneginf(scores[len(wanted[u]) :]).all()


@pytest.mark.parametrize("kinds", [False, True])
def test_partners_are_proposed_for_each_node(group, kinds):
    predictor = between(group)[0] if kinds else predictor_on(group)
    Z, sides = rows_of(predictor), predictor.split.sides
    taken = np.concatenate([edges_of(predictor), predictor.split.held])
    allowed = allowed_pairs(len(Z), None if sides is None else sides.first, taken)
    wanted = dense_lists(chained(Z), allowed, 5, np.arange(len(Z)))
    found = propose_each(predictor, 5, None)
    assert found.rows.tolist() == (list(range(len(Z))) if sides is None else sides.rows[0].tolist())
    for u, nodes in zip(found.rows.tolist(), found.nodes.tolist()):
        assert [v for v in nodes if v >= 0] == wanted[u]
    some = propose_each(predictor, 5, np.array([7, 3, 7]))
    assert some.rows.tolist() == [3, 7]
    assert [[v for v in nodes if v >= 0] for nodes in some.nodes.tolist()] == [wanted[3], wanted[7]]
    pairs = propose(predictor, 10)
    assert allowed[pairs[:, 0], pairs[:, 1]].all()
    scores = chained(Z)[np.triu(allowed)]
    assert np.allclose(predictor.score_pairs(pairs), np.sort(scores)[::-1][:10], rtol=1e-5)


def plain_tables(edges, n, kinds):
    """By rule [n, n] float32 what plain rules say of all pairs, from whole arrays; sums column by column."""
    A = np.zeros((n, n), np.float32)
    A[edges[:, 0], edges[:, 1]] = A[edges[:, 1], edges[:, 0]] = 1
    degree = A.sum(axis=0)

    def walks(*inner):
        S = A
        for factor in inner:
            S = sum((A[:, k, None] * (factor[k] * S[k]) for k in range(n)), np.zeros((n, n), np.float32))
        return S.T

    one, table = np.ones(n, np.float32), np.tile(degree, (n, 1))
    if kinds:
        root = (1 / np.sqrt(np.maximum(degree.astype(np.float64), 1))).astype(np.float32)
        return {"paths_3": walks(one, one), "l3": walks(root, root), "degrees": table}
    weights = np.array([1 / math.log(d) if d > 1 else 0 for d in degree.tolist()], np.float32)
    return {"common_neighbours": walks(one), "adamic_adar": walks(weights), "degrees": table}


# ---- rankings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [False, True])
def test_rankings_are_those_of_whole_arrays(group, monkeypatch, kinds):
    """Recall, precision and NDCG, node by node, of the network and of plain rules."""
    settings = {"links.rank_each": 6}
    predictor = between(group, settings)[0] if kinds else predictor_on(group, settings)
    Z, split, n = rows_of(predictor), predictor.split, predictor.block.n
    first = None if split.sides is None else split.sides.first
    edges = edges_of(predictor)
    allowed = allowed_pairs(n, first, edges)
    monkeypatch.setattr("app.gnn.links.ranking.WALKS", 7)
    plain = plain_scores(group, split, predictor.ranking(("val", "test")))
    tables = plain_tables(edges, n, kinds)
    assert set(tables) == set(plain)
    tables = [(chained(Z), predictor.evaluate_ranking()), *((tables[rule], plain[rule]) for rule in tables)]
    for S, scores in tables:
        lists = dense_lists(S, allowed, 6, np.arange(n))
        for name in ("val", "test"):
            held = split.sets[name].joined.tolist()
            wanted = {u: {a + b - u for a, b in held if u in (a, b)} for u in {*chain(*held)}}
            wanted = {u: found for u, found in wanted.items() if first is None or first[u]}
            recall, precision, ndcg = [], [], []
            for u, partners in sorted(wanted.items()):
                gains = [(v in partners) / math.log2(place + 2) for place, v in enumerate(lists[u])]
                hits = sum(v in partners for v in lists[u])
                recall.append(hits / len(partners))
                precision.append(hits / 6)
                ideal = sum(1 / math.log2(place + 2) for place in range(min(len(partners), 6)))
                ndcg.append(sum(gains) / ideal)
            each = scores[name].each
            assert (each.k, each.nodes) == (6, len(wanted))
            means = [np.mean(column) for column in (recall, precision, ndcg)]
            assert np.allclose([each.recall, each.precision, each.ndcg], means)
            assert scores[name].named()["ndcg_6"] == each.ndcg
    assert predictor.evaluate()["val"].each is None
    assert predictor.evaluate("recall")["val"] == predictor.evaluate_ranking()["val"]


# ---- two sides --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("users", "items", "rounds"), [(50, 30, 3), (30, 50, 4), (1, 7, 7), (9, 1, 1), (8, 8, 2)]
)
def test_crossings_pair_nodes_from_both_ends(users, items, rounds):
    first = np.random.default_rng(1).permutation(users + items) < users
    drawn = Crossings(Sides(first), rounds, 3, 7)
    of_first, of_second = drawn.sides.rows
    ahead, behind = drawn.ahead(of_first), drawn.behind(of_second)
    assert ahead.shape == (users, rounds)
    assert not first[ahead].any()
    one = {(u, v, i) for u, row in zip(of_first.tolist(), ahead.tolist()) for i, v in enumerate(row)}
    other = {
        (u, v, i)
        for v, rows in zip(of_second.tolist(), behind.tolist())
        for i, row in enumerate(rows)
        for u in row
        if u >= 0
    }
    assert one == other
    assert (behind >= 0).sum() == users * rounds


@alone
def test_partners_of_a_side_are_uniform():
    """Over many draws every item is met as often as any, to within five standard deviations."""
    first = np.arange(37) < 26
    met = np.zeros(37, dtype=np.int64)
    for epoch in range(400):
        np.add.at(met, Crossings(Sides(first), 1, 5, epoch).ahead(np.arange(26)), 1)
    assert met[:26].sum() == 0
    assert (abs(met[26:] - 400 * 26 / 11) < 5 * (400 * 4 / 11 * 7 / 11) ** 0.5).all()  # 2 or 3 a draw


def test_pairs_are_drawn_between_sides_alone(group, monkeypatch):
    monkeypatch.setattr(wrong, "PIECE", 16)
    predictor, graph, first = between(group, {"links.negatives": 2.0})
    edges, apart = edges_of(predictor), pairs_apart(predictor, 3)
    assert len(apart) == len(np.unique(apart, axis=0)) > len(edges)
    for pairs in (apart, *(each.apart for each in predictor.split.sets.values())):
        assert (first[pairs[:, 0]] != first[pairs[:, 1]]).all()
    assert not {map(tuple, edges.tolist())} & {map(tuple, apart.tolist())}
    assert not any(graph.has_edge(*pair) for pair in predictor.split.sets["test"].apart.tolist())
    few = between(group, {"links.negatives": 1e9})[0]
    everything = len(pairs_apart(few, 1)) + len(edges_of(few))
    assert everything > 0.6 * USERS * ITEMS  # rounds may repeat pairs


@pytest.mark.parametrize("loss", ["logistic", "bpr"])
def test_ranks_may_have_nodes_of_one_side_alone(group, single, loss):
    """Users before items, as graphs of two sides mostly come."""
    graph = nx.complete_bipartite_graph(12, 6)
    graph.remove_edges_from([(u, 12 + i) for u in range(12) for i in range(6) if (u + i) % 3])
    X, first = np.ones((18, 2), dtype=np.float32), np.arange(18) < 12
    settings = {"links.between": "sides", "links.loss": loss, "gnn.epochs": 2}
    both = [predictor_on(each, settings, given=(graph, X), first=first) for each in (group, single)]
    weights, wanted = (fit(each).weights for each in both)
    assert all(weights[name].tobytes() == wanted[name].tobytes() for name in wanted)
    drawn = both[0].drawn(1)
    assert all(len(drawn.partners(rows[:0])) == 0 for rows in drawn.sides.rows)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_learning_between_sides_has_the_same_bits_on_any_ranks(group, single, exchange):
    settings = {"gnn.epochs": 4, "gnn.keep": "best", "gnn.watch": "ndcg", "links.rank_each": 5}
    found = []
    for each in (group, single):
        predictor = between(each, settings, exchange=exchange)[0]
        done = fit(predictor)
        lists = propose_each(predictor, 4, None)
        found.append((done.weights, done.records, lists, predictor.evaluate_ranking(), done.watched))
    (weights, records, lists, scores, watched), (wanted, *other) = found
    assert all(weights[name].tobytes() == wanted[name].tobytes() for name in wanted)
    assert (records, watched) == (other[0], "val_ndcg")
    assert records[-1]["watched"] is not None
    assert lists.nodes.tolist() == other[1].nodes.tolist()
    assert lists.scores.tobytes() == other[1].scores.tobytes()
    assert scores == other[2]


def test_sides_are_found_by_colouring(group):
    graph, X, first = two_sides(p=0.2)
    predictor = predictor_on(group, {"graph.order": "random"}, given=(graph, X))
    whole = predictor_on(group, {"links.held_out": 0.0, "links.validation": 0.0}, given=(graph, X))
    assert nx.is_connected(graph)
    found = coloured_sides(whole.split.loaded, group)
    assert found.first.tolist() == (first == first[0]).tolist()
    loaded = predictor.split.loaded
    if predictor.split.held.size and nx.is_connected(nx.Graph(edges_of(predictor).tolist())):
        found = coloured_sides(loaded, group)
        assert found.first.tolist() == (first == first[0])[loaded.order_all].tolist()
    odd = predictor_on(group, {"links.held_out": 0.0, "links.validation": 0.0}, n=30)
    with pytest.raises(CaseError, match="is in 11 parts, of which nobody knows what sides belong together"):
        coloured_sides(odd.split.loaded, group)


def test_plain_rules_between_sides_are_those_of_whole_arrays(group, monkeypatch):
    monkeypatch.setattr("app.gnn.links.plain.PATHS", 100)
    predictor = between(group)[0]
    split = predictor.split
    n, edges = predictor.block.n, edges_of(predictor)
    A = np.zeros((n, n))
    A[edges[:, 0], edges[:, 1]] = A[edges[:, 1], edges[:, 0]] = 1
    degree = A.sum(axis=0)
    weigh = np.diag([round(65536 / math.sqrt(d)) if d else 0 for d in degree])
    rules = {"paths_3": A @ A @ A, "l3": A @ weigh @ A @ weigh @ A, "degrees": np.outer(degree, degree)}
    found = plain_scores(group, split)
    assert set(found) == set(rules)
    for rule, S in rules.items():
        for name in ("val", "test"):
            pairs = split.sets[name].both
            scores = np.unique(S[pairs[:, 0], pairs[:, 1]], return_inverse=True)[1].astype(np.float32)
            assert found[rule][name] == LinkScores.of(scores, len(split.sets[name].joined))


# ---- Bayesian personalised ranking ------------------------------------------------------------------------

BPR = {"links.loss": "bpr", "links.negatives": 3.0}


def bpr_predictor(group, kinds, settings=None, **how):
    """A predictor that learns to rank."""
    chosen = BPR | (settings or {})
    return between(group, chosen, **how)[0] if kinds else predictor_on(group, chosen, **how)


def whole_bpr(predictor, Z, epoch):
    """Loss and gradient [n, d] float64 of all comparisons, one by one."""
    n, sides, drawn = len(Z), predictor.split.sides, predictor.drawn(epoch)
    edges = edges_of(predictor)
    near = {u: set() for u in range(n)}
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)
    rankers = np.arange(n) if sides is None else sides.rows[0]
    loss, D, compared = 0.0, np.zeros_like(Z), 0
    for u, partners in zip(rankers.tolist(), drawn.ahead(rankers).tolist()):
        for p in partners:
            for v in near[u] if p != u and p not in near[u] else ():
                x = Z[u] @ Z[p] - Z[u] @ Z[v]
                g = 1 / (1 + np.exp(-x))
                loss += np.logaddexp(0, x)
                D[u] += g * (Z[p] - Z[v])
                D[p] += g * Z[u]
                D[v] -= g * Z[u]
                compared += 1
    return loss / compared, D / compared


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("kinds", [False, True])
def test_bpr_loss_and_gradient_are_those_of_all_comparisons(group, kinds, exchange):
    predictor, found = bpr_predictor(group, kinds, exchange=exchange), []
    loss, D = whole_bpr(predictor, rows_of(predictor), 4)
    backward = predictor.model.backward

    def keep(engine, rows):
        found.append(np.array(group.device.get(rows.array)))
        return backward(engine, rows)

    predictor.model.backward = keep
    assert predictor.epoch(4) == pytest.approx(loss, abs=1e-6)
    block = predictor.block
    own = slice(block.lo, block.lo + block.n_real)
    assert np.allclose(found[0][: block.n_real], D[own], atol=1e-7, rtol=1e-4)
    assert not found[0][block.n_real :].any()


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("kinds", [False, True])
def test_bpr_has_the_same_bits_on_any_ranks(group, single, kinds, exchange):
    found = []
    for each in (group, single):
        predictor = bpr_predictor(each, kinds, {"gnn.epochs": 4, "gnn.dropout": 0.2}, exchange=exchange)
        found.append((fit(predictor).weights, predictor.epoch(9)))
    (weights, loss), (wanted, other) = found
    assert all(weights[name].tobytes() == wanted[name].tobytes() for name in wanted)
    assert loss == other


@alone
@pytest.mark.parametrize(("d", "k"), [(1, 1), (15, 2), (16, 1), (40, 5)])
def test_the_kernel_of_bpr_changes_no_bit(compiled, d, k):
    """Rows of no edge, rows that rank nobody, and more entries than are taken at a time."""
    draws = np.random.default_rng(d)
    A = np.triu(draws.random((150, 150)) < 0.6)
    A[[0, 9]] = False
    indptr, indices = np.concatenate([[0], np.cumsum(A.sum(axis=1))]), np.nonzero(A)[1].astype(np.int32)
    Z, X = draws.normal(size=(2, 150, d + k)).astype(np.float32)
    Z[30:60, d:], X[::2, d:], X[1, d] = -np.inf, -np.inf, -np.inf
    found = []
    for device in (compiled, HostDevice(compiled=False)):
        pattern = device.attention_pattern(device.csr(indptr.astype(np.int32), indices, None, A.shape))
        Y, losses = np.ones((150, d + k), np.float32), np.ones((150, k), np.float32)
        device.rank_add(pattern, X, Z, d, 0.3, Y, losses)
        found.append((Y.tobytes(), losses.tobytes()))
    assert found[0] == found[1]
    assert (losses[40:60] == 1).all()
    assert (losses[1:9] > 1).all()


@alone
def test_bpr_learns_an_order(solo):
    """A node's edges come to lie above what no edge joins it to."""
    predictor = bpr_predictor(solo, True, {"gnn.epochs": 60, "gnn.learning_rate": 0.05})
    before = whole_bpr(predictor, rows_of(predictor), 99)[0]
    fit(predictor)
    assert whole_bpr(predictor, rows_of(predictor), 99)[0] < 0.8 * before


@alone
def test_buffers_of_an_estimate_are_those_of_training(solo):
    """Of nodes without features, of a graph without hubs."""
    settings, graph = {"links.negatives": 7.0, "links.loss": "bpr"}, nx.cycle_graph(200)
    predictor = predictor_on(solo, settings, given=(graph, None))
    case = build(PLAIN | settings)
    training = training_of(case, 200, predictor.block.stored, 1, HostDevice())
    found, wanted = (
        [(each.name, each.exchanges, each.writes) for each in engine.recorded["epoch"]]
        for engine in (training.engine, predictor.engine)
    )
    assert found == wanted
    assert training.engine.plan.widths == predictor.engine.plan.widths
    assert gnn_memory.pairs_apart(training, 0) == pytest.approx(gnn_memory.RANKED * 2 * 7 * 200)


# ---- runs -------------------------------------------------------------------------------------------------


@alone
def test_runs_and_files(tmp_path):
    graph, _, first = two_sides()
    graph.remove_nodes_from(list(nx.isolates(graph)))
    (tmp_path / "bought.txt").write_text("".join(f"n{u} n{v}\n" for u, v in graph.edges))
    (tmp_path / "sides.txt").write_text("".join(f"n{v} {int(not first[v])}\n" for v in graph))
    users = sorted((v for v in graph if first[v]), key=lambda v: f"n{v}")
    (tmp_path / "some.txt").write_text("".join(f"n{v}\n" for v in users[:3]))
    common = [
        "inputs/links.toml", f"graph.path={tmp_path / 'bought.txt'}", "graph.ids=names", "output.plots=false",
        "gnn.epochs=10", "gnn.hidden=8", "links.between=sides", f"links.sides={tmp_path / 'sides.txt'}",
        "links.propose_each=4", "links.rank_each=5", "gnn.watch=recall",
    ]  # fmt: skip
    results = {}
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        command = [*mpirun(ranks), sys.executable, "run.py", *common, split_over(ranks)]
        code, printed = run_job([*command, "--out", out])
        assert code == 0, printed
        results[ranks] = json.loads((out / "result.json").read_text())
    assert "recall@5" in printed
    assert results[1]["digest"] == results[2]["digest"]
    assert results[1]["watched"] == "val_recall"
    assert 0 <= results[1]["test_ndcg_5"] <= 1
    assert "test_recall_5" in results[1]["plain"]["degrees"]
    text = (tmp_path / "1/proposed_each/bought.txt").read_text()
    assert text == (tmp_path / "2/proposed_each/bought.txt").read_text()
    lines = [line.split() for line in text.splitlines()]
    assert list(dict.fromkeys(u for u, *_ in lines)) == [f"n{v}" for v in users]
    for u, v, _ in lines:
        u, v = int(u[1:]), int(v[1:])
        assert (first[u], first[v], graph.has_edge(u, v)) == (True, False, False)
    assert all(float(a[2]) >= float(b[2]) for a, b in pairwise(lines) if a[0] == b[0])
    some = [*common, f"links.propose_for={tmp_path / 'some.txt'}", "--out", tmp_path / "some"]
    code, printed = run_job([sys.executable, "run.py", *some])
    assert code == 0, printed
    named = {f"n{v}" for v in users[:3]}
    assert (tmp_path / "some/proposed_each/bought.txt").read_text().splitlines() == [
        " ".join(line) for line in lines if line[0] in named
    ]
    (tmp_path / "sides.txt").write_text("".join(f"n{v} {int(v > 3)}\n" for v in graph))
    code, printed = run_job([sys.executable, "run.py", *common, "--out", tmp_path / "wrong"])
    assert code == 2
    assert "lies within a side; links.between = any would be right" in printed


@alone
def test_the_case_that_comes_with_the_program(tmp_path):
    """A generated graph, whose sides are known though it is in several parts."""
    out, small = tmp_path / "out", ["graph.nodes=300", "graph.elements=100", "graph.degree_in=3.0"]
    command = ["inputs/recommend.toml", *small, "gnn.epochs=5", "graph.order=random", "output.plots=false"]
    code, printed = run_job([sys.executable, "run.py", *command, "--out", out])
    assert code == 0, printed
    (name,) = (out / "proposed_each").iterdir()
    pairs = np.loadtxt(name)[:, :2].astype(int)
    assert sorted(set(pairs[:, 0].tolist())) == list(range(200))
    assert pairs[:, 1].min() >= 200
    assert "L3" in printed


@alone
def test_bipartite_graphs_have_communities_and_popular_nodes():
    stream = GENERATORS["bipartite"](900, 300, 3, 12.0, 2.0, 7)
    u, v = (np.concatenate(each) for each in list(zip(*stream.chunks()))[:2])
    assert (u.max() < 600) & (v.min() >= 600)
    label = communities(7, 900, 3)
    assert len(u) == 600 * 14
    assert (label[u] == label[v]).sum() == 600 * 12
    degree = np.bincount(v, minlength=900)
    for community in range(3):
        own = np.sort(degree[600:][label[600:] == community])
        assert own[-len(own) // 4 :].sum() > 0.45 * own.sum()  # half are of the first quarter, the root of it
    few = GENERATORS["bipartite"](4, 1, 4, 3.0, 9.0, 1)  # most communities have no node there
    u, v = (np.concatenate(each) for each in list(zip(*few.chunks()))[:2])
    assert set(v.tolist()) == {3}


@alone
def test_from_python():
    graph, _, first = two_sides(p=0.2)
    nx.set_node_attributes(graph, {v: int(not first[v]) for v in graph}, "bipartite")
    settings = {"links.propose_each": 3, "links.rank_each": 5, "links.propose": 4, "gnn.epochs": 15}
    found = find_links(graph, sides=True, settings=settings)
    users = np.flatnonzero(first).tolist()
    assert list(found.proposed_each) == users
    row = dict(zip(found.nodes, found.node_rows.astype(np.float64)))
    for u, partners in found.proposed_each.items():
        assert not any(first[v] or graph.has_edge(u, v) for v, _ in partners)
        likely = [1 / (1 + np.exp(-row[u] @ row[v])) for v, _ in partners]
        assert np.allclose(likely, [p for _, p in partners], rtol=1e-4)
    assert all(first[u] != first[v] for (u, v), _ in found.proposed)
    assert found.scores["test"].each.nodes > 0
    named = find_links(graph, sides=users, settings=settings)
    nx.set_node_attributes(graph, None, "bipartite")
    coloured = find_links(graph, settings=settings | {"links.between": "sides"})
    assert named.digest == found.digest
    assert (coloured.digest == found.digest) == bool(first[0])
    items = find_links(graph, sides=users, propose_for=np.flatnonzero(~first)[:2], settings=settings)
    assert list(items.proposed_each) == np.flatnonzero(~first)[:2].tolist()
    ranked = find_links(graph, sides=users, settings=settings | BPR | {"gnn.depth": 1})
    row = dict(zip(ranked.nodes, ranked.node_rows.astype(np.float64)))
    for u, partners in ranked.proposed_each.items():
        assert np.allclose([row[u] @ row[v] for v, _ in partners], [s for _, s in partners], rtol=1e-4)
    for arguments, said in (
        ({"sides": users[1:]}, "lies within a side"),
        ({"sides": range(80)}, "the second side has no node"),
        ({"sides": [99]}, "sides: found 99; a node of the graph"),
        ({"sides": users, "pairs": [users[:2]]}, "is of one side; a node of each would be right"),
        ({"sides": 3}, "sides: found 3; nodes of the graph would be right"),
    ):
        with pytest.raises((CaseError, GraphError), match=said):
            find_links(graph, settings=settings, **arguments)
    nx.set_node_attributes(graph, {0: 7}, "bipartite")
    with pytest.raises(GraphError, match="has the attribute bipartite 7; 0 or 1 would be right"):
        find_links(graph, sides=True, settings=settings)


@alone
@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        ({"gnn.watch": "ndcg"}, {}, "links.rank_each: must be at least 1 for gnn.watch = ndcg"),
        ({"links.propose_for": "x.txt"}, {}, "links.propose_for"),
        ({"links.sides": "x.txt"}, {}, "links.sides"),
        ({"links.between": "any"}, {"sides": [0]}, "sides: is not read where links.between"),
        ({}, {"propose_for": [0]}, "propose_for: is read where links.propose_each"),
        ({"links.loss": "bpr", "links.negatives": 1.5}, {}, "links.negatives: must be whole"),
        ({"links.between": "sides"}, {}, "graph has a cycle of odd length, and so no two sides"),
    ],
)
def test_what_does_not_fit_is_refused(settings, arguments, said):
    graph = nx.cycle_graph(3)
    graph.add_edges_from((2, v) for v in range(3, 9))
    with pytest.raises(CaseError, match=said):
        find_links(graph, settings=settings, **arguments)
