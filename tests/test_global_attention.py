"""Attention of every node to all nodes: heads, sets of graphs, what only it sees; learned propagation."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
from layer_models import Single, Trial, differences, drawn
from mpi4py import MPI
from mpi4py.MPI import COMM_WORLD as WORLD
from test_classify import same
from test_graph_level import COUNT, classifier_on, difference, drawn_like, of_graphs
from test_graph_level import drawn as drawn_graphs
from test_layers import GRAPHS, TOLERANCE, data_of, relative_error

from app import classify
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.layers.all_nodes import share_of
from app.gnn.model import Model, check_layers
from app.gnn.training import fit
from app.model import gnn_memory
from app.model.gnn import Training
from app.model.gnn_inputs import Inputs
from app.model.layout import estimate

alone = pytest.mark.mpi_skip
KINDS = ("sgformer", "linear_attention")


# ---- one graph --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_heads_are_differences(group, kind):
    X, labels = data_of(GRAPHS["random"])
    layers = [f"{kind} 6 heads=2", f"{kind} 8 heads=4", "dense"]
    case = GnnCase(layers=layers, dropout=0.0, input_dropout=0.0, attention_share=0.8)
    values = drawn(Model(case, X.shape[1], labels.max() + 1).shapes())
    trial = Trial(group, GRAPHS["random"], X, labels, case, values=values)
    expected = differences(GRAPHS["random"], X, labels, case, values)
    assert relative_error(trial, trial.epoch(1), expected) < TOLERANCE


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_node_hears_is_a_mean_of_all_of_one_graph(group, kind):
    """Where all nodes are alike attention gives what it is given; who is numbered last is heard as well."""
    n = GRAPHS["random"][0]
    W = drawn({f"W_{name}": (3, 4) for name in ("query", "key", "value")} | {"W": (3, 4)})
    W["W"][...] = 0
    for X in (np.ones((n, 3)), np.eye(3)[np.arange(n) % 3] + (np.arange(n) == n - 1)[:, None]):
        one = Single(group, GRAPHS["random"], kind, X, np.ones((n, 4)), W, attention_share=0.75)
        wanted = _all_pairs(X @ W["W_query"], X @ W["W_key"], X @ W["W_value"], kind == "sgformer")
        own = slice(one.block.lo, one.block.lo + one.block.n_real)
        assert np.allclose(one.Z[: one.block.n_real], 0.75 * wanted[own], rtol=1e-5, atol=1e-6)


def _all_pairs(Q, K, V, normed):
    """The same, pair by pair."""
    n, phi = len(Q), lambda x: x + 1 if x > 0 else np.exp(x)
    heard = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            if normed:
                heard[i, j] = (i == j) + Q[i] @ K[j] / np.linalg.norm(Q[i]) / np.linalg.norm(K[j]) / n
            else:
                heard[i, j] = sum(phi(q) * phi(k) for q, k in zip(Q[i], K[j]))
    return heard @ V / np.maximum(heard.sum(axis=1, keepdims=True), 0.01 if normed else 0)


@alone
def test_weights_that_are_about_0_give_gradients_that_are_numbers(device):
    """The square of a sum of weights of 1e-23 is 0 in float32; one of 0 is of a row that hears nothing."""
    X, labels = data_of(GRAPHS["random"])
    X, group = np.clip(np.abs(X), 0.5, 1).astype(np.float32), Group(MPI.COMM_SELF, device)
    case = GnnCase(layers=["linear_attention 4 heads=4", "dense"], dropout=0.0, input_dropout=0.0)
    values = drawn(Model(case, X.shape[1], labels.max() + 1).shapes())
    for times, hears in ((-11, True), (-60, False)):
        some = values | {name: np.full((5, 4), times, np.float32) for name in values if "query" in name}
        trial = Trial(group, GRAPHS["random"], X, labels, case, values=some)
        gradient = trial.epoch(1)
        assert np.isfinite(gradient).all()
        assert hears == np.any(gradient[trial.engine.params.slices["layer1.W_value"]])
        if hears:
            expected = differences(GRAPHS["random"], X, labels, case, some)
            assert relative_error(trial, gradient, expected) < TOLERANCE


@alone
def test_learned_propagation_begins_as_appnp(device):
    X, labels = data_of(GRAPHS["hubs"])
    group, scores = Group(MPI.COMM_SELF, device), []
    for kind in ("appnp", "gprgnn"):
        case = GnnCase(layers=["dense 8", kind], alpha=0.3, hops=4, dropout=0.0, input_dropout=0.0)
        model = Model(case, X.shape[1], labels.max() + 1)
        values = drawn({name: shape for name, shape in model.shapes().items() if "hop" not in name})
        begun = {name: each for name, each in model.constants().items() if "hop" in name}
        scores.append(Trial(group, GRAPHS["hubs"], X, labels, case, values=values | begun).scores())
    assert np.allclose(*scores, rtol=1e-4, atol=1e-5)
    weights = begun["layer2.hop_weights"]
    assert weights.sum() == pytest.approx(1, abs=1e-6) and weights[0, 0] == pytest.approx(0.3)


@alone
def test_a_node_alone_hears_itself():
    assert [share_of(n, normed) for n in (1, 4) for normed in (True, False)] == [0, 1, 0.25, 0.25]


# ---- sets of graphs ---------------------------------------------------------------------------------------

OF_GRAPHS = {"gnn.depth": 1, "gnn.heads": 2, "gnn.attention_share": 0.7}


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_told_without_its_batch_mates(group, kind):
    """What a graph is told by is the mean of all pairs of its own nodes, one by one."""
    settings = OF_GRAPHS | {"gnn.model": kind}
    classifier = classifier_on(group, settings)
    values = {name: value * 3 for name, value in drawn_like(classifier.params).items()}
    classifier.params.set(values)
    told = of_graphs(classifier, classifier.embed_own())
    graphs, X, *_ = drawn_graphs()
    W = {name.removeprefix("layer2."): each.astype(float) for name, each in values.items()}
    first = np.cumsum([0, *map(len, graphs)])
    for i in range(COUNT):
        H = np.maximum(X[first[i] : first[i + 1]] @ values["layer1.W"] + values["layer1.bias"], 0)
        A = nx.to_numpy_array(graphs[i]) + np.eye(len(graphs[i]))
        P = A / np.sqrt(np.outer(A.sum(1), A.sum(1)))
        parts = [H @ W[f"W_{name}"] for name in ("query", "key", "value")]
        both = [
            _all_pairs(*(part[:, cut] for part in parts), kind == "sgformer")
            if len(H) > 1
            else parts[2][:, cut]
            for cut in (slice(4), slice(4, 8))
        ]
        Z = 0.7 * np.concatenate(both, axis=1) + 0.3 * P @ H @ W["W"] + W["bias"]
        assert np.allclose(told[i], np.maximum(Z, 0).mean(axis=0), rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_sets_are_those_of_differences(kind):
    group = Group(MPI.COMM_WORLD, HostDevice())
    classifier = classifier_on(group, OF_GRAPHS | {"gnn.model": kind, "gnn.depth": 2, "gnn.residual": True})
    values = drawn_like(classifier.params)
    classifier.params.set(values)
    classifier.epoch(1)
    gradient = np.array(classifier.device.get(classifier.engine.gradient)).astype(np.float64)
    draws, wrong = np.random.default_rng(9), 0
    for name in values:
        part = gradient[classifier.params.slices[name]]
        for at in draws.permutation(values[name].size)[:3]:
            found = [difference(classifier, values, name, at, step) for step in (4e-3, 1e-3)]
            wrong += min(abs(part[at] - each) - 0.04 * abs(each) for each in found) > 2e-3
    assert wrong <= 1  # an activation may begin between two losses
    parts = [name for name in values if "query" in name or "key" in name]
    assert all(np.abs(gradient[classifier.params.slices[name]]).max() > 1e-5 for name in parts)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_sets_are_those_of_one_rank(group, single, device, kind):
    settings = OF_GRAPHS | {"gnn.model": kind, "gnn.batch_norm": True, "gnn.dropout": 0.3, "gnn.epochs": 3}
    found = classifier_on(Group(group.comm, device), settings)
    wanted = classifier_on(single, settings)
    assert same(fit(found).weights, fit(wanted).weights)
    assert np.array_equal(*(of_graphs(each, each.scores_own()) for each in (found, wanted)))


# ---- runs -------------------------------------------------------------------------------------------------


@alone
def test_what_the_layers_do_not_read_is_refused():
    def refused(match, **keys):
        with pytest.raises(CaseError, match=match):
            check_layers(GnnCase(**keys))

    refused(
        r"attention_share: is not read by gcn; .* linear_attention or sgformer would", attention_share=0.2
    )
    refused(r"first_product: is not read by dense", model="sgformer", first_product="live")
    refused(r"gnn\.theta: is not read by dense and gprgnn", model="gprgnn", theta=0.2)
    refused(r"3 heads do not share 16 columns equally", model="linear_attention", heads=3)
    refused(r"heads is not read by gprgnn", layers=["dense 8", "gprgnn heads=2"])
    check_layers(GnnCase(model="sgformer", depth=1, hidden=8, heads=2, own_loops=False))


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_one_layer_between_dense_ones_has_embeddings(kind):
    graph, asked = nx.path_graph(30), {"gnn.model": kind, "gnn.depth": 1, "gnn.epochs": 1, "gnn.hidden": 4}
    asked |= {"graph.splits": "random", "output.embeddings": True}
    assert classify(graph, np.eye(30), np.arange(30) % 2, settings=asked).embeddings.shape == (30, 4)


@pytest.mark.parametrize("kind", ["sgformer 8 heads=2", "gprgnn 8"])
def test_weights_that_are_saved_give_the_same_scores_on_any_ranks(shared_path, kind):
    graph, X = nx.gnm_random_graph(70, 200, seed=3), np.random.default_rng(2).normal(size=(70, 3))
    asked = {
        "gnn.layers": ["dense 8", kind, "linear_attention 8", "dense"], "gnn.epochs": 3, "gnn.decayed": "all",
        "graph.splits": "random", "gnn.attention_share": 0.3, "gnn.members": 2, "output.probabilities": True,
    }  # fmt: skip
    labels, path = np.arange(70) % 2, str(shared_path / "weights.npz")
    found = classify(graph, X, labels, settings=asked | {"parallel.spatial": WORLD.size}, comm=WORLD)
    alone = classify(graph, X, labels, settings=asked | {"parallel.spatial": 1}, comm=MPI.COMM_SELF)
    assert found.digest == alone.digest
    if WORLD.rank == 0:
        found.save(path)
    WORLD.Barrier()
    applied = classify(
        graph, X, weights=path, settings={"gnn.epochs": 0, "output.probabilities": True}, comm=WORLD
    )
    assert applied.probabilities.shape == (70, 2)
    assert np.array_equal(applied.probabilities, alone.probabilities)


@alone
@pytest.mark.parametrize("heads", [1, 8])
def test_what_passes_make_for_a_moment_is_in_the_plan(heads, monkeypatch):
    over_all, n, most = Engine.over_all, 4000, [0]

    def traced(self, name, reads, writes, work, *about):
        def and_traced():
            tracemalloc.start()
            found = work()
            most[0] = max(most[0], tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            return found

        return over_all(self, name, reads, writes, and_traced, *about)

    monkeypatch.setattr(Engine, "over_all", traced)
    asked = {"gnn.model": "sgformer", "gnn.depth": 1, "gnn.heads": heads, "gnn.epochs": 1}
    graph = nx.gnm_random_graph(n, 2 * n, seed=1)
    classify(graph, np.ones((n, 3)), np.arange(n) % 2, settings=asked | {"graph.splits": "random"})
    case = GnnCase(model="sgformer", depth=1, heads=heads)
    training = Training(HostDevice(), case, Inputs(3, 2), estimate("er", n, 4 * n, 1))
    planned = gnn_memory.in_training(training, 0)["passes"]
    objects = 8192  # bytes of what arrays are to Python
    assert 0.8 * planned < most[0] <= planned + objects
