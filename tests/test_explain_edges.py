"""Explanations where edges have features, of edges, of links, of several networks: gradients, sums, ranks."""

import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from jobs import run_job
from layer_models import case_of, drawn
from mpi4py import MPI
from test_edge_attention import KINDS as ATTENTIONS
from test_explain import like_one, planted
from test_gine import WIDTH, dense_rows, example, trial_of

from app import classify, classify_edges, explain, find_links
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.edge_level.head import EdgeHead
from app.gnn.edges import EdgeColumns
from app.gnn.explain.ends import OfEdge, OfPair
from app.gnn.explain.field import Fields
from app.gnn.explain.network import FieldNetwork, Trained, reach_of
from app.gnn.goals import OneClass
from app.gnn.model import Model
from app.graphs.edge_data import EdgeData
from app.tasks.levels.explained import MaskedDevice

NODE, SHARE, STEP = 3, 0.7, 1e-6
TOLERANCE = 4e-5  # of float32 gradients by central differences, relative to the largest
QUICK = {"gnn.epochs": 40, "gnn.hidden": 8, "gnn.baselines": False, "gnn.feature_rows": "as_given"}


# ---- gradients -------------------------------------------------------------------------------------------


def masked_scores(kind, edges, X, F, M, heads, W):
    """Scores of two layers in float64 where the message from u to v is multiplied by M[v, u], written down
    node by node; F [n, n, k], of arcs from u to v."""
    n, H = len(X), X
    near = [[u for u in range(n) if (u, v) in edges or (v, u) in edges] for v in range(n)]
    for layer in (1, 2):
        w = {name.partition(".")[2]: W[name] for name in W if name.startswith(f"layer{layer}.")}
        if kind == "gine":
            S = H @ w["W_in"] if layer == 1 else H
            Y = (1 + w["eps"][0, 0]) * S
            for v in range(n):
                for u in near[v]:
                    Y[v] += M[v, u] * np.maximum(S[u] + F[u, v] @ w["W_edge"] + w["edge_bias"][0], 0)
            Z = np.maximum(Y @ w["W1"] + w["hidden_bias"], 0) @ w["W2"]
        else:
            Z = np.zeros((n, w["W_edge"].shape[1]))
            for v in range(n):
                rows = [F[u, v] for u in near[v]]
                E = np.array([*rows, np.mean(rows, axis=0) if rows else np.zeros(WIDTH)]) @ w["W_edge"]
                of, m = [*near[v], v], np.append(M[v, near[v]], 1)
                for c in np.split(np.arange(Z.shape[1]), heads):
                    if kind == "edge_gatv2":
                        S = H @ w["W_source"]
                        inner = (H @ w["W_target"])[v, c] + S[of][:, c] + E[:, c]
                        e = np.where(inner > 0, inner, 0.2 * inner) @ w["a"][c, 0]
                    else:
                        S = H @ w["W"]
                        e = S[v, c] @ w["a1"][c, 0] + S[of][:, c] @ w["a2"][c, 0] + E[:, c] @ w["a3"][c, 0]
                        e = np.where(e > 0, e, 0.2 * e)
                    alpha = np.exp(e - e.max())
                    Z[v, c] = (m * alpha / alpha.sum()) @ S[of][:, c]
            Z = Z.reshape(n, heads, -1).mean(1) if layer == 2 else Z
        H = np.maximum(Z + w["bias"], 0) if layer == 1 else Z + w["bias"]
    return H


@pytest.mark.mpi_skip
@pytest.mark.parametrize("kind", ["gine", *ATTENTIONS])
def test_gradients_by_messages_and_features_of_edges_are_differences(kind):
    graph, X, labels, _, F = example(False)
    heads = 1 if kind == "gine" else 2
    case = case_of(kind if heads == 1 else f"{kind} heads={heads}", widths=(4,), feature_rows="as_given")
    values = drawn(Model(case, 4, 3, WIDTH).shapes())
    trial = trial_of(Group(MPI.COMM_SELF, HostDevice()), graph, X, labels, case, F, values=values)
    heard = dense_rows(trial.block.adjacency, F, True)
    data = SimpleNamespace(features=X, width=4, numbers=None, edges=EdgeData(heard, heard), beside=0)
    network = SimpleNamespace(
        case=case, goal=OneClass(), classes=3, device=trial.device, params=trial.engine.params, inputs=None,
        group=trial.group, block=trial.block, engine=trial.engine, members=None, data=data,
        edge_columns=EdgeColumns(WIDTH), model=trial.model,
    )  # fmt: skip
    field = Fields(network, reach_of(trial.model), 1 << 30, 99).of(np.array([NODE]))
    found, known = FieldNetwork(Trained(network, MaskedDevice()), field), trial.scores()[NODE]
    assert np.allclose(found.scores(), known, rtol=1e-5, atol=1e-5)
    found.choose(known)
    seed, W = (np.arange(3) == found.column) - 1 / 3, {n: each.astype(float) for n, each in values.items()}
    edges, ones, x = set(map(tuple, graph[1])), np.ones((13, 13)), X.astype(float)

    def difference(at):
        change = at(STEP), at(-STEP)
        return np.subtract(*(masked_scores(kind, edges, *each, heads, W)[NODE] @ seed for each in change)) / (
            2 * STEP
        )

    def by_message(e):
        def given(step):
            M = np.full((13, 13), SHARE)
            M[tuple(field.nodes[field.ends[:, e]])] += step
            return x, F, M

        return given

    by_edges = found.gradients(np.full(len(field.weights), SHARE))[0]
    some = np.argsort(-np.abs(by_edges), kind="stable")[:8]
    expected = [difference(by_message(e)) for e in some]
    assert np.abs(by_edges[some] - expected).max() < TOLERANCE * np.abs(expected).max()
    dX = found.gradients(of_edges=SHARE)[1]
    by_columns = found.by_edge_features()
    expected = [
        difference(lambda step, k=k: (x, F * (SHARE + step * (np.arange(WIDTH) == k)), ones))
        for k in range(WIDTH)
    ]
    assert np.abs(by_columns - expected).max() < TOLERANCE * np.abs(expected).max()
    at = int(np.abs(dX).max(axis=1).argmax())

    def by_feature(step):
        Y = x.copy()
        Y[field.nodes[at], 1] += step
        return Y, F * SHARE, ones

    assert abs(dX[at, 1] - difference(by_feature)) < TOLERANCE * np.abs(dX).max()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("featured", [False, True])
def test_gradients_of_what_reads_both_ends_are_differences(featured):
    draws, head = np.random.default_rng(3), EdgeHead(5, 3, 4 * featured, True)
    params = {name: draws.normal(size=shape) for name, shape in head.shapes().items()}
    F = draws.normal(size=4) if featured else None
    for reader, Z, G in (
        (OfEdge(head, params, F), draws.normal(size=(2, 15)), draws.normal(size=3)),
        (OfPair(), draws.normal(size=(2, 6)), draws.normal(size=1)),
    ):
        D = reader.back(Z, G)
        for at in np.ndindex(Z.shape):
            step = np.zeros(Z.shape)
            step[at] = STEP
            change = (reader.scores(Z + step) - reader.scores(Z - step)) @ G / (2 * STEP)
            assert abs(change - D[at]) < 1e-7 * (1 + np.abs(D).max())
        if featured and isinstance(reader, OfEdge):
            reader.put_share(1 + STEP)
            above = reader.scores(Z)
            reader.put_share(1 - STEP)
            change = (above - reader.scores(Z)) @ G / (2 * STEP)
            assert abs(reader.contributions().sum() - change) < 1e-7 * (1 + abs(change))


# ---- sums, causes, ranks ---------------------------------------------------------------------------------


def sums(each):
    """Assert that contributions add up, as near as `missing` says, which is near enough."""
    for parts, base, missing in (
        (each.of_edges, each.bare, each.missing[0]),
        (each.of_features, each.blank, each.missing[1]),
        (each.of_neighbours, each.blank, each.missing[1]),
        (each.of_edge_features, each.plain, each.missing[2]),
    ):
        if len(parts):
            assert abs(each.score - base - parts.sum() - missing) < 1e-5 * (1 + abs(each.score))
            assert abs(missing) <= max(0.011 * abs(each.score - base), 1.1e-3)


def told_by_bonds(centres=50, leaves=4, seed=5):
    """Stars, in each an edge whose first feature, of two, has as its sign the class of the centre; the leaves
    have a feature of noise."""
    draws = np.random.default_rng(seed)
    graph, n = nx.Graph(), centres * (1 + leaves)
    labels, carriers = np.full(n, -1), np.zeros(centres, np.int64)
    graph.add_nodes_from(range(n))
    for i in range(centres):
        own = centres + leaves * i + np.arange(leaves)
        carriers[i], labels[i] = own[draws.integers(leaves)], i % 2
        for leaf in own.tolist():
            kind = 2 * int(labels[i]) - 1 if leaf == carriers[i] else 0
            graph.add_edge(i, leaf, bond=float(kind), noise=float(draws.normal() * 0.2))
    X = np.concatenate([np.ones((n, 1)), 0.2 * draws.normal(size=(n, 1))], axis=1)
    return graph, X.astype(np.float32), labels, carriers


@pytest.mark.parametrize("rows", ["as_given", "one_hot"])
def test_the_edge_and_its_feature_that_tell_the_class_come_first(rows):
    graph, X, labels, carriers = told_by_bonds()
    names = ["bond"] if rows == "one_hot" else ["bond", "noise"]
    asked = {
        "gnn.layers": ["gine 16", "dense"], "gnn.epochs": 60, "gnn.learning_rate": 0.01,
        "gnn.baselines": False, "gnn.edge_feature_rows": rows, "output.explain": [47, 48, 49],
        "parallel.spatial": WORLD.size,
    }  # fmt: skip
    given = {"edge_features": names, "train": range(47), "test": range(47, 50)}
    found = classify(graph, X, labels, settings=asked, comm=WORLD, **given)
    told = found.explanations
    assert found.scores["test"].accuracy == 1
    for each in told:
        assert each.edge_features[0] == "bond" and each.predicted == labels[each.node]
        assert each.edges[0] == (each.node, carriers[each.node]) and each.of_edge_features[0] > 0
        sums(each)
        assert each.plain != each.score and len(each.edge_features) == len(names)
    like_one(told, lambda one: classify(graph, X, labels, settings=asked | one, comm=MPI.COMM_SELF, **given))
    assert set(told.told()["missing"]) == {"edges", "features", "edge_features"}
    assert "49,edge feature,bond," in told.text() and "49,score,without edge features," in told.text()


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("arcs", [False, True])
def test_contributions_of_attention_that_reads_edges_add_up(kind, arcs):
    graph = nx.gnm_random_graph(60, 150, seed=2, directed=arcs)
    draws = np.random.default_rng(1)
    for _, _, each in graph.edges(data=True):
        each["a"] = draws.normal(size=2).tolist()
    X, labels = draws.normal(size=(60, 4)).astype(np.float32), draws.integers(0, 3, 60)
    asked = {**QUICK, "gnn.model": kind, "gnn.heads": 2, "gnn.epochs": 20, "graph.splits": "random"}
    asked |= {"output.explain": 2, "gnn.edge_feature_rows": "standard", "parallel.spatial": WORLD.size}
    asked |= {"graph.neighbours": "in"} if arcs else {}
    found = classify(graph, X, labels, edge_features="a", settings=asked, comm=WORLD)
    for each in found.explanations:
        sums(each)
        assert sorted(each.edge_features) == [0, 1] and len(each.edges)


def graph_of_pairs(n=50, seed=3):
    """A graph whose edges have as their class the sign of the product of their ends' first numbers, and noise
    as a number."""
    draws = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(n, 3 * n, seed=seed)
    X = np.stack([draws.choice([-1.0, 1.0], n), 0.2 * draws.normal(size=n)], axis=1).astype(np.float32)
    for u, v, each in graph.edges(data=True):
        each["kind"], each["label"] = float(draws.normal() * 0.1), int(X[u, 0] * X[v, 0] > 0)
    return graph, X


@pytest.mark.parametrize("goal", ["classes", "values"])
def test_edges_are_explained_by_both_ends(goal):
    graph, X = graph_of_pairs()
    pairs = [list(edge) for edge in graph.edges][:2]
    asked = {
        "gnn.model": "gine", "gnn.hidden": 16, "gnn.depth": 1, "gnn.epochs": 50, "gnn.goal": goal,
        "gnn.baselines": False, "output.explain": pairs, "parallel.spatial": WORLD.size,
    }  # fmt: skip
    given = {"labels": "label", "features": X, "edge_features": "kind"}
    found = classify_edges(graph, settings=asked, comm=WORLD, **given)
    told = found.explanations
    assert told.what == "edge" and [each.node for each in told] == [tuple(pair) for pair in pairs]
    for each in told:
        sums(each)
        assert each.edge_features == ["kind"] and each.features[0] == 0
        assert set(each.neighbours[:2]) == set(each.node)
        around = {u for edge in each.edges for u in edge}
        assert around <= set(nx.single_source_shortest_path_length(graph, each.node[0], 2)) | set(
            nx.single_source_shortest_path_length(graph, each.node[1], 2)
        )
    like_one(told, lambda one: classify_edges(graph, settings=asked | one, comm=MPI.COMM_SELF, **given))
    again = explain(
        graph, [tuple(pair) for pair in pairs], found, X, "label", edge_features="kind", comm=WORLD,
        settings={"parallel.spatial": WORLD.size, "gnn.goal": goal},
    )  # fmt: skip
    assert again.text() == told.text()
    some = classify_edges(graph, settings=asked | {"output.explain": 2}, comm=WORLD, **given).explanations
    assert len(some) == 2 and all(graph.has_edge(*each.node) for each in some)
    with pytest.raises(CaseError, match=r"output\.explain: \[0, 0\] is one node; two of them would be right"):
        beside = [pairs[0], pairs[0][::-1], [0, 0]]  # one edge, twice, and no edge
        classify_edges(graph, settings=asked | {"output.explain": beside}, comm=WORLD, **given)
    with pytest.raises(CaseError, match=r"gine reads edge features, and graph has none; edge_features="):
        classify_edges(graph, "label", X, settings=asked, comm=WORLD)
    strange = next(pair for pair in nx.non_edges(graph))
    with pytest.raises(CaseError, match=r"output\.explain: .* is no edge of the graph"):
        classify_edges(graph, settings=asked | {"output.explain": [list(strange)]}, comm=WORLD, **given)
    with pytest.raises(CaseError, match=r"output\.explain: found 3; both ends, .*, would be right"):
        classify_edges(graph, settings=asked | {"output.explain": [3]}, comm=WORLD, **given)


@pytest.mark.parametrize(("loss", "model"), [("logistic", "gcn"), ("bpr", "gcn"), ("logistic", "pna")])
def test_links_are_explained_by_both_ends(loss, model):
    graph = nx.relabel_nodes(nx.les_miserables_graph(), str)
    pairs = [["Valjean", "Javert"], ["Myriel", "Gavroche"]]
    asked = {"gnn.epochs": 20, "gnn.hidden": 8, "links.dimension": 8, "links.loss": loss, "gnn.model": model}
    asked |= {"output.explain": pairs, "parallel.spatial": WORLD.size}
    X = np.random.default_rng(1).normal(size=(len(graph), 4)).astype(np.float32)
    asked |= {"links.rank_each": 5} if loss == "bpr" else {}
    found = find_links(graph, X, settings=asked, comm=WORLD)
    told = found.explanations
    assert told.what == "link" and [each.node for each in told] == [tuple(pair) for pair in pairs]
    place = {name: i for i, name in enumerate(found.nodes)}
    for each in told:
        sums(each)
        u, v = (place[name] for name in each.node)
        score = float(found.node_rows[u] @ found.node_rows[v])
        assert abs(each.score - score) < 1e-4 * (1 + abs(score))
        expected = "score" if loss == "bpr" else ("joined" if score > 0 else "apart")
        assert each.predicted == expected
    assert bool(told.changed) == (loss == "logistic")
    like_one(told, lambda one: find_links(graph, X, settings=asked | one, comm=MPI.COMM_SELF))
    again = explain(graph, pairs, found, X, comm=WORLD, settings={"parallel.spatial": WORLD.size})
    assert again.text() == told.text()
    some = find_links(graph, X, settings=asked | {"output.explain": 3}, comm=WORLD).explanations
    assert len({each.node for each in some}) == 3 and all(graph.has_edge(*each.node) for each in some)


def test_several_networks_are_explained_by_means_and_deviations():
    graph, X, labels, _ = planted(30)
    asked = {**QUICK, "gnn.model": "sage", "output.explain": [28, 29], "parallel.spatial": WORLD.size}
    sets = {"train": range(28), "test": range(28, 30)}
    given = {"comm": WORLD, **sets}
    found = classify(graph, X, labels, settings=asked | {"gnn.members": 3, "seed": 4}, **given)
    told = found.explanations
    apart = [
        classify(graph, X, labels, settings=asked | {"seed": i}, **given).explanations for i in (4, 5, 6)
    ]
    for each, *others in zip(told, *apart):
        sums(each)
        assert {one.predicted for one in others} == {each.predicted}
        by_edge = [dict(zip(one.edges, one.of_edges)) for one in others]
        for edge, part, away in zip(each.edges, each.of_edges, each.spread["edges"]):
            parts = [one[edge] for one in by_edge]
            assert abs(part - np.mean(parts)) < 1e-9 and abs(away - np.std(parts)) < 1e-9
    assert told.text().startswith("node,kind,what,contribution,deviation\n")
    again = explain(graph, [28, 29], found, X, settings={"parallel.spatial": WORLD.size}, comm=WORLD)
    assert again.text() == told.text()


@pytest.mark.parametrize("jump", ["concat", "max"])
def test_networks_that_join_layers_and_read_positions_are_explained(jump):
    """Of nodes, edges, links and whole graphs, by names and by numbers, of one network and of several."""
    graph, X = graph_of_pairs()
    asked = {
        "gnn.model": "sage", "gnn.depth": 3, "gnn.hidden": 8, "gnn.jump": jump, "gnn.epochs": 8,
        "gnn.positions": ["walks=3", "degree", "laplacian=2", "triangles"], "parallel.spatial": WORLD.size,
    }  # fmt: skip
    places = {"walks 2", "walks 3", "degree", "laplacian 1", "laplacian 2", "triangles 1", "triangles 2"}
    kinds = np.stack([X[:, 0] > 0, np.arange(50) % 3], axis=1).astype(int)
    plain, ends = {"gnn.baselines": False}, {"output.explain": [list(edge) for edge in graph.edges][:2]}
    nodes = {"gnn.feature_rows": "one_hot", "gnn.members": 2, "graph.splits": "random"}
    nodes |= plain | {"output.explain": [1, 2]}
    graphs, rows = zip(*((graph.subgraph(range(i, i + 10)), X[i : i + 10]) for i in range(0, 50, 10)))
    joined = {"gnn.jump": "", "gnn.readout_of": "all"} if jump == "concat" else {"gnn.readout_of": "last"}
    whole = plain | joined | {"output.explain": [0, 3]}
    sets = {"labels": [0, 1, 0, 1, 0], "train": range(5)}
    for told in (
        classify(graph, Table(kinds, ["sign", "third"]), kinds[:, 0], settings=asked | nodes, comm=WORLD),
        classify_edges(graph, "label", X, settings=asked | plain | ends, comm=WORLD),
        find_links(graph, X, settings=asked | ends, comm=WORLD),
        classify(graphs, rows, settings=asked | whole, comm=WORLD, **sets),
    ):
        assert len(told.explanations) == 2
        for each in told.explanations:
            sums(each)
            own = {"sign", "third"} if each.spread else {0, 1}
            assert set(each.features) - {"walks 1"} == own | places  # which is 0 in graphs without loops
            assert np.count_nonzero(each.of_features) > 4


# ---- names -----------------------------------------------------------------------------------------------


class Table:
    """What is asked of a table of pandas, with an index that counts rows."""

    def __init__(self, rows, columns):
        self.rows, self.columns, self.index = rows, columns, range(len(rows))

    def to_numpy(self):
        return self.rows


def test_columns_are_called_by_their_names():
    graph, X = graph_of_pairs(30)
    asked, table = {"gnn.epochs": 5, "output.explain": 1}, Table(X, ["side", "noise"])
    given = {"labels": "label", "features": table, "edge_features": ["kind"], "settings": asked}
    (each,) = classify_edges(graph, comm=WORLD, **given).explanations
    assert set(each.features) == {"side", "noise"} and each.edge_features == ["kind"]
    (each,) = find_links(graph, table, settings=asked, comm=WORLD).explanations
    assert set(each.features) == {"side", "noise"}
    (each,) = find_links(graph, Table(X, range(2)), settings=asked, comm=WORLD).explanations
    assert set(each.features) == {0, 1}


@pytest.mark.mpi_skip
def test_titles_of_a_file_name_columns(tmp_path):
    graph, X = graph_of_pairs(30)
    lines = [f"{v},{a:.6f},{b:.6f}\n" for v, (a, b) in enumerate(X.tolist())]
    (tmp_path / "x.csv").write_text('id,side,"a, b"\n' + "".join(lines))
    (tmp_path / "y.csv").write_text("".join(f"{v},{int(x[0] > 0)}\n" for v, x in enumerate(X)))
    (tmp_path / "g.txt").write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    (tmp_path / "case.toml").write_text(
        '[run]\ntask = "classify"\n[graph]\npath = "g.txt"\nfeatures = "x.csv"\nlabels = "y.csv"\n'
        'node_data_by = "id"\nsplits = "random"\n[gnn]\nepochs = 3\n[output]\nexplain = [3]\nplots = false\n'
    )
    code, said = run_job([sys.executable, "run.py", tmp_path / "case.toml", "--out", tmp_path / "out"])
    assert code == 0, said
    text = next((tmp_path / "out" / "explanations").iterdir()).read_text()
    assert "3,feature,side," in text and '3,feature,"a, b",' in text
