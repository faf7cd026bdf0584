"""app/gnn/layers/edge_gat.py and edge_gatv2.py: attention whose scores read the features of edges."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES, by_one
from layer_models import case_of, check_gradient, drawn
from mpi4py import MPI
from test_gine import GINE, WIDTH, attributed, bits_of, classifier_on, entries_of, example, rings, trial_of

from app import classify, embed, find_links
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.edges import mean_rows
from app.gnn.model import Model
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.gnn import Training, traffic
from app.model.gnn_inputs import Inputs
from app.model.layout import of_blocks
from app.partition.rows import RowPartition

alone = pytest.mark.mpi_skip
KINDS = ["edge_gat", "edge_gatv2"]
READING = [each for each in EXCHANGES if each != "staged"]
ROWS = 40
STARTS = np.array([0, 0, 8, 17, ROWS, ROWS])


# ---- kernels ----------------------------------------------------------------------------------------------


def attended(device, h, k, width, kinds):
    """What all operations give for the same operands."""
    draws = np.random.default_rng(width)

    def normal(*shape):
        return draws.normal(size=shape).astype(np.float32)

    entries = entries_of(device, draws, ROWS, width, kinds)
    f, B, W, a = h * k, normal(width, h), normal(width, h * k), normal(h * k, 1)
    S, R, L, D, T = normal(ROWS, f), normal(ROWS, h), normal(ROWS, h), normal(ROWS, f), normal(ROWS, f)
    t, V, F, dL = normal(ROWS, 3 * h), normal(ROWS, 2 * f), normal(ROWS, f + 4 * h), normal(ROWS, h)
    device.edge_attention_top(entries, B, R, t)
    device.attention_begin(L, t, V)
    device.edge_attention_add(entries, B, np.concatenate([S, R], axis=1), L, t, V)
    t[:, h : 2 * h] += 1  # of rows without entries
    device.attention_finish(t, V)
    device.attention_pack(D, L, t, V, F, dL)
    dS, dR = np.zeros((ROWS, f), np.float32), np.zeros((ROWS, h), np.float32)
    dB = device.edge_attention_back(entries, B, F, S, R, dS, dR, STARTS)
    found = [t, V, F, dL, dS, dR, dB]
    M, Z, F = normal(ROWS, 2 * h), normal(ROWS, f), normal(ROWS, 2 * f + 3 * h)
    device.dynamic_begin(M, Z)
    device.edge_dynamic_add(entries, W, S, T, a, M, Z)
    M[:, :h][M[:, h:] == 0] = 0
    M[:, h:] += 1
    device.dynamic_finish(M, Z)
    device.dynamic_pack(D, T, M, Z, F)
    dT, G, dS = (np.zeros((ROWS, f), np.float32) for _ in range(3))
    dW = device.edge_dynamic_back_rows(entries, W, S, F, a, dT, G, STARTS)
    device.edge_dynamic_back_columns(entries, W, F, S, a, dS)
    return [*found, M, Z, F, dT, G, dS, dW]


@alone
@pytest.mark.parametrize(
    ("h", "k", "width", "kinds"), [(1, 7, 5, 0), (3, 5, 9, 1), (8, 1, 1, 0), (2, 20, 13, 0), (1, 33, 3, 1)]
)
def test_kernels_have_the_bits_of_the_plain_path(compiled, lanes, h, k, width, kinds):
    found, plain = (attended(HostDevice(compiled=each), h, k, width, kinds) for each in (True, False))
    assert all(np.array_equal(a.view(np.int32), b.view(np.int32)) for a, b in zip(found, plain))


@alone
def test_rows_with_more_entries_than_are_made_at_a_time(compiled):
    found = []
    for device in (HostDevice(), HostDevice(compiled=False)):
        draws, n = np.random.default_rng(4), 150
        indptr = np.array([0, 3, 3, 133, 170, *[300] * 146], dtype=np.int32)
        columns, values = draws.integers(0, n, 300).astype(np.int32), draws.normal(size=(300, 2))
        matrix = device.csr(indptr[: n + 1], columns, None, (n, n))
        entries = device.edge_entries(matrix, values.astype(np.float32), 2)
        W, a, S = (draws.normal(size=s).astype(np.float32) for s in ((2, 6), (6, 1), (n, 6)))
        F = draws.normal(size=(n, 12 + 3)).astype(np.float32)
        dT, G = np.zeros((2, n, 6), np.float32)
        found.append((device.edge_dynamic_back_rows(entries, W, S, F, a, dT, G, np.array([0, 3, n])), dT, G))
    assert all(np.array_equal(a.view(np.int32), b.view(np.int32)) for a, b in zip(*found))


@alone
def test_the_features_of_a_loop_are_means():
    numbers = np.array([[1, 2], [3, 4], [9, 8]], dtype=np.float32)
    assert np.array_equal(mean_rows(np.array([2, 0, 1]), numbers, 2), [[2, 3], [0, 0], [9, 8]])
    kinds = np.array([[0, 3], [1, 3], [0, -1]], dtype=np.int32)
    wanted = [[0.5, 0.5, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert np.array_equal(mean_rows(np.array([2, 1, 0]), kinds, 4), wanted)


# ---- a model against its definition ------------------------------------------------------------------------


def reference_loss(kind, graph, X, labels, heads, F, W, arcs):
    """Mean cross-entropy of two layers of attention, written down node by node and edge by edge, and scores.

    The inner layer has its heads side by side, the last one their mean.
    """
    n, edges, _ = graph
    H = X.astype(float)
    heard = [(u, v) for u, v in edges] + ([] if arcs else [(v, u) for u, v in edges])
    for layer in (1, 2):
        w = {name.partition(".")[2]: W[name] for name in W if name.startswith(f"layer{layer}.")}
        Z = np.zeros((n, len(w["W_edge"][0])))
        for i in range(n):
            near = [u for u, v in heard if v == i]
            rows = [F[u, i] for u in near]
            E = np.array([*rows, np.mean(rows, axis=0) if rows else np.zeros(F.shape[2])]) @ w["W_edge"]
            of = [*near, i]
            for c in np.split(np.arange(Z.shape[1]), heads):
                if kind == "edge_gatv2":
                    S = H @ w["W_source"]
                    inner = (H @ w["W_target"])[i, c] + S[of][:, c] + E[:, c]
                    scores = np.where(inner > 0, inner, 0.2 * inner) @ w["a"][c, 0]
                else:
                    S = H @ w["W"]
                    scores = S[i, c] @ w["a1"][c, 0] + S[of][:, c] @ w["a2"][c, 0] + E[:, c] @ w["a3"][c, 0]
                    scores = np.where(scores > 0, scores, 0.2 * scores)
                alpha = np.exp(scores - scores.max())
                Z[i, c] = alpha @ S[of][:, c] / alpha.sum()
        H = np.maximum(Z + w["bias"], 0) if layer == 1 else Z.reshape(n, heads, -1).mean(1) + w["bias"]
    Z = H - H.max(1, keepdims=True)
    terms = np.log(np.exp(Z).sum(1)) - Z[np.arange(n), labels]
    return terms[labels >= 0].mean(), H


@pytest.mark.parametrize("neighbours", ["both", "in"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_differences_of_the_loss(group, kind, neighbours):
    graph, X, labels, _, F = example(neighbours == "in")
    case = case_of(f"{kind} heads=2", widths=(4,))
    values = drawn(Model(case, 4, 3, WIDTH).shapes())
    trial = trial_of(group, graph, X, labels, case, F, neighbours, sparse=True, values=values)
    W = {name: each.astype(float) for name, each in values.items()}
    given = kind, graph, X, labels, 2, F, W, neighbours == "in"
    check_gradient(trial, W, lambda: reference_loss(*given), 2)


# ---- the same bits ----------------------------------------------------------------------------------------


def settings_of(kind, rows="as_given"):
    """Two layers of a kind, two heads in the first."""
    return {"gnn.layers": [f"{kind} 8 heads=2", kind], "gnn.edge_feature_rows": rows}


@pytest.mark.parametrize(("rows", "exchange"), [("as_given", READING[0]), ("one_hot", READING[-1])])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_one_rank(group, single, kind, rows, exchange):
    settings, graph = settings_of(kind, rows), attributed(kinds=rows == "one_hot")
    found = bits_of(classifier_on(group, graph, settings, exchange))
    assert found == by_one(lambda: bits_of(classifier_on(single, graph, settings)))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_may_move_between_epochs(group, kind):
    settings = {**settings_of(kind), "graph.neighbours": "in"}
    classifier = classifier_on(group, nx.DiGraph(attributed()), settings)
    before, rows = bits_of(classifier), classifier.block.rows
    blocks = len(rows.starts) - 1
    cuts = np.minimum(np.arange(group.size + 1) * (1 + blocks // group.size), blocks)
    cuts[-1] = blocks
    classifier.move(RowPartition(rows.n, rows.starts, cuts))
    assert bits_of(classifier) == before


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_loss_does_not_depend_on_changes_nothing(group, kind):
    settings = {"gnn.layers": ["gcn 8", "gine 8", f"{kind} 8", "gcn"]}
    classifier = classifier_on(group, attributed(), settings, train=2)
    assert classifier.engine.narrow
    before = bits_of(classifier)
    classifier.engine.narrow = {}
    assert bits_of(classifier) == before


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_kernels_and_a_limit_of_memory_change_no_bit(compiled, kind):
    comm, settings = MPI.COMM_WORLD, settings_of(kind)
    free = classifier_on(Group(comm, HostDevice()), attributed(), settings)
    plain = classifier_on(Group(comm, HostDevice(compiled=False)), attributed(), settings)
    assert bits_of(free) == bits_of(plain)
    least, most = free.group.max_integers(np.array(free.engine.bounds())).tolist()
    free._settle(free.block, TierBudget((least + most) // 2, "host"))
    assert free.engine.tiered and bits_of(free) == bits_of(plain)


@alone
@pytest.mark.parametrize(("kind", "rows"), [("edge_gat", "one_hot"), ("edge_gatv2", "as_given")])
def test_a_gpu_has_the_bits_of_the_host(emulated, kind, rows):
    settings, graph = settings_of(kind, rows), attributed(kinds=rows == "one_hot")
    found, wanted = (
        bits_of(classifier_on(Group(MPI.COMM_SELF, device), graph, settings))
        for device in (emulated, HostDevice())
    )
    assert found == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_and_memory_of_exchanges_are_those_that_are_counted(kind):
    group = Group(MPI.COMM_WORLD, HostDevice())
    classifier = classifier_on(group, attributed(), settings_of(kind), READING[0])
    inputs = Inputs(4, 3, edges=WIDTH, edge_width=WIDTH)
    training = Training(classifier.device, classifier.case, inputs, of_blocks(group, classifier.block))
    assert training.engine.recorded == classifier.engine.recorded
    group._scratch.clear()
    before = dict(group.sent_bytes)
    classifier.epoch(1)
    sent = {phase: count - before.get(phase, 0) for phase, count in group.sent_bytes.items()}
    counted = {phase: count for phase, (count, _) in traffic(training.epoch(group.rank)).items() if count}
    assert counted == {phase: count for phase, count in sent.items() if count}
    terms = gnn_memory.in_training(training, group.rank)
    assert terms.get("exchange", 0) == sum(each.nbytes for each in group._scratch.values())
    loops = classifier.engine.edges.loops.values.nbytes
    bare = replace(training, case=classifier_on(group, attributed()).case)
    held = [gnn_memory.at_rest(each, group.rank)["edge features"] for each in (training, bare)]
    assert held[0] - held[1] == loops


# ---- learning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_neighbour_that_an_edge_names_is_found(kind, comm=MPI.COMM_WORLD):
    """The class of a node is that of its one neighbour whose edge is marked; attention alone finds it."""
    draws = np.random.default_rng(2)
    graph = nx.random_regular_graph(6, 150, seed=3)
    classes = draws.integers(0, 3, 150)
    nx.set_edge_attributes(graph, 0.0, "mark")
    pairs = nx.max_weight_matching(graph, maxcardinality=True)
    for u, v in pairs:
        graph.edges[u, v]["mark"] = 1.0
    other = {u: v for a, b in pairs for u, v in ((a, b), (b, a))}
    assert len(other) == 150
    X, labels = np.eye(3)[classes], classes[[other[v] for v in range(150)]]
    settings = {**GINE, "gnn.model": kind, "gnn.depth": 1, "gnn.epochs": 60, "gnn.learning_rate": 0.1}
    settings = {key: value for key, value in settings.items() if key not in ("gnn.hidden", "gnn.dropout")}
    sets = {"train": list(range(100)), "test": list(range(100, 150)), "comm": comm}
    found = classify(graph, X, labels, edge_features="mark", settings=settings, **sets)
    assert found.scores["test"].accuracy > 0.95
    again = classify(graph, X, weights=found, edge_features="mark", comm=comm)
    assert np.array_equal(again.predicted, found.predicted)


def test_whole_graphs_are_learned_too(comm=MPI.COMM_WORLD):
    graphs, labels = rings(8)
    settings = {**GINE, "gnn.model": "edge_gatv2", "gnn.depth": 2, "gnn.edge_feature_rows": "one_hot"}
    sets = {"train": list(range(6)), "test": [6, 7], "comm": comm}
    assert len(classify(graphs, None, labels, edge_features="bond", settings=settings, **sets).predicted) == 8


# ---- what is refused --------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "edge_gatv2 reads edge features, and graph has none; edge_features=, or layers of gatv2,"),
        ({"gnn.heads": 3}, "3 heads do not share 8 columns equally"),
        ({"gnn.normalisation": "in_degree"}, "gnn.normalisation: is not read by edge_gatv2"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(CaseError, match=message):
        classify(
            nx.path_graph(6),
            np.ones((6, 1)),
            [0, 1] * 3,
            settings={**GINE, "gnn.model": "edge_gatv2", **settings},
        )


def test_vectors_need_all_edges_and_pairs_of_nodes_hold_some_out(comm=MPI.COMM_WORLD):
    graph, X = nx.path_graph(6), np.ones((6, 1))
    with pytest.raises(CaseError, match="edge_drop: edge_gat reads the features of all edges"):
        embed(graph, X, settings={"gnn.model": "edge_gat"}, comm=comm)
    with pytest.raises(CaseError, match="these layers read features of edges; gin would be right"):
        find_links(graph, X, settings={"gnn.model": "edge_gat"}, comm=comm)
