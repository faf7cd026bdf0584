"""R-GCN: layers against dense matrices, exact adjoints, differences, the same bits for any partition."""

from dataclasses import replace

import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import by_one
from mpi4py import MPI
from msgspec import structs
from scipy.sparse import csr_array

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.archive import load_archive
from app.gnn.optim import Adam
from app.gnn.rgcn import basis
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.grid import choose_placement
from app.gnn.rgcn.model import RGCN, Drops, NetShape, OneHotLayer, RelationalLayer
from app.gnn.rgcn.saved import SavedRgcn, edges_digest, load_rgcn, save_rgcn
from app.gnn.rgcn.training import Course, Targets, train_rgcn
from app.graphs.generators.random_triples import random_labels, random_triples
from app.graphs.nodes.data import DenseFeatures, SparseFeatures
from app.graphs.triples.data import NodeLabels, Triples, read_triples_npz
from app.graphs.triples.relational import nodes_by_layer, relational_graph
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.model.rgcn_memory import by_rank, count_layer, heaviest
from app.numerics.elementwise import kept
from app.partition.relations import place

# ---- graphs -----------------------------------------------------------------------------------------------


def make_graph(nodes=70, relations=5, edges=160, seed=1, inverse=True):
    draws = np.random.default_rng(seed)
    r = np.minimum(draws.geometric(0.4, edges) - 1, relations - 1)
    ends = draws.integers(0, nodes - 3, (2, edges))  # the last three have no edge
    triples = Triples("t", nodes, relations, *(a.astype(np.int32) for a in (ends[0], r, ends[1])))
    return relational_graph(triples, inverse)


def dyadic_graph(nodes=60, relations=4, seed=2):
    """A graph whose pairs have 1, 2 or 4 sources, so that 1 / c is exact."""
    draws = np.random.default_rng(seed)
    rows = []
    for i in range(0, nodes - 2, 2):
        for r in range(relations):
            count = draws.choice([0, 1, 2, 4])
            rows += [(j, r, i) for j in draws.choice(nodes, count, replace=False)]
    s, r, o = np.array(rows, dtype=np.int32).T
    return relational_graph(Triples("d", nodes, relations, s, r, o), inverse=False)


def make_labels(graph, seed=3, classes=3, count=20):
    draws = np.random.default_rng(seed)
    nodes = draws.choice(graph.nodes, count, replace=False).astype(np.int32)
    label = (nodes % classes).astype(np.int32)
    half = count // 2
    return NodeLabels(classes, nodes[:half], label[:half], nodes[half:], label[half:])


def grids(size):
    """(groups, turns, grouping) that `size` ranks can have."""
    columns = [groups for groups in (1, 2, 3, 4) if size % groups == 0]
    return [(groups, turns, kind) for groups in columns for turns, kind in ((1, "relations"), (3, "edges"))]


def normalised(graph):
    """[relations, n, n] float64: A[r, i, j] = 1 / c_ir."""
    A = np.zeros((graph.relations, graph.nodes, graph.nodes))
    A[graph.relation, graph.target, graph.source] = 1
    return A / np.maximum(A.sum(axis=2, keepdims=True), 1)


def rows_of(out, X_all):
    """The own rows of a whole array, padded."""
    own = np.zeros((out.padded, *X_all.shape[1:]), dtype=np.float32)
    own[: len(out.nodes)] = X_all[out.nodes]
    return own


def whole_rows(group, out, X_own, nodes):
    """[n, f] from the own rows of all ranks, zero where no rank has a row. Ranks: all call."""
    X = group.device.get(X_own)[: len(out.nodes)]
    counts = group.gather_integers(np.array([len(out.nodes)]))[:, 0].tolist()
    keys, rows = group.gather_host(out.nodes, counts), group.gather_host(np.ascontiguousarray(X), counts)
    whole = np.zeros((nodes, X.shape[1]), dtype=np.float32)
    whole[keys] = rows
    return whole


# ---- a dense network in float64 ---------------------------------------------------------------------------


def dense_first(graph, weights, n_out, hidden):
    """(relations' rows [R, n, h], self rows [n, h]) of the first layer, zero where nothing is stored."""
    n, R = graph.nodes, graph.relations
    edges = graph.of_targets(n_out)
    W = np.zeros((R, n, hidden))
    if "first/V" in weights:
        nodes = np.unique(edges.source)
        V = np.zeros((n, *weights["first/V"].shape[1:]))
        V[nodes] = weights["first/V"]
        W = np.einsum("rb,jbh->rjh", weights["first/a"].astype(float), V)
    else:
        keys = np.unique(edges.source.astype(np.int64) * R + edges.relation)
        W[keys % R, keys // R] = weights["first/W"]
    W0 = np.zeros((n, hidden))
    W0[n_out] = weights["first/self"]
    return W, W0


def dense_loss(graph, A, weights, labels, hidden, hops):
    """Mean cross-entropy of the training nodes, in float64; A as `normalised` makes it."""
    W, W0 = dense_first(graph, weights, hops[1], hidden)
    H = np.maximum((A @ W).sum(axis=0) + W0, 0)
    f, m = weights["layer1/self"].shape
    if "layer1/V" in weights:
        W1 = (weights["layer1/a"].astype(float) @ weights["layer1/V"]).reshape(-1, f, m)
    else:
        W1 = weights["layer1/W"].reshape(-1, f, m)
    Z = (A @ H @ W1).sum(axis=0) + H @ weights["layer1/self"]
    Z -= Z.max(axis=1, keepdims=True)
    P = Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))
    return -P[labels.train_idx, labels.train_label].mean()


def gradients_of(group, net, dZ_own):
    """Whole gradients by name, in the shapes of whole_weights; weights stay. Ranks: all call."""
    put, get = group.device.put, group.device.get
    found = {name: np.zeros_like(get(shard.array)) for name, shard in net.weights.items()}
    for name, rows, dW in net.gradients(dZ_own):
        found[name][rows] = get(dW).reshape(found[name][rows].shape)
    weights = {name: get(shard.array).copy() for name, shard in net.weights.items()}
    for name, shard in net.weights.items():
        shard.array[...] = put(found[name])
    whole = net.whole_weights(group)
    for name, shard in net.weights.items():
        shard.array[...] = put(weights[name])
    return whole


# ---- the network against the dense one ----------------------------------------------------------------


@pytest.mark.parametrize("bases", [0, 3])
@pytest.mark.parametrize("prune", [True, False])
def test_loss_and_gradients_are_those_of_the_dense_network(group, bases, prune):
    graph = make_graph()
    labels = make_labels(graph)
    placement = place(graph, group.size, group.size)
    net = RGCN(group, placement, graph, labels.nodes, NetShape([6, 3], bases, 1), prune)
    targets = Targets(group, net, placement, labels)
    Z_own = net.forward()
    loss = targets.loss(Z_own)
    gradient = gradients_of(group, net, Z_own)
    weights = {name: array.astype(np.float64) for name, array in net.whole_weights(group).items()}
    hops, A = nodes_by_layer(graph, labels.nodes, 2, prune), normalised(graph)
    assert loss == pytest.approx(dense_loss(graph, A, weights, labels, 6, hops), abs=1e-6)
    draws = np.random.default_rng(5)
    for name, array in weights.items():
        for at in draws.choice(array.size, min(array.size, 8), replace=False):
            values = []
            for step in (1e-5, -1e-5):
                moved = {**weights, name: array.copy()}
                moved[name].reshape(-1)[at] += step
                values.append(dense_loss(graph, A, moved, labels, 6, hops))
            slope = (values[0] - values[1]) / 2e-5
            assert gradient[name].reshape(-1)[at] == pytest.approx(slope, abs=2e-6), (name, at)


# ---- exact adjoints -------------------------------------------------------------------------------------


def integers(seed, *shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def fill(group, layer, seed):
    """Small integers in all weights, the same for any partition; padding stays zero."""
    for k, (_, shard) in enumerate(sorted(layer.weights.items())):
        host = np.zeros_like(group.device.get(shard.array))
        for row, key in enumerate(shard.keys.tolist()):
            host[row] = integers(seed + 1000 * key + k, *host.shape[1:])
        shard.array[...] = group.device.put(host)


def dots(group, layer, gradients):
    """<W, dW> of each weight array over all ranks, once for each of its rows. Ranks: all call."""
    get, out = group.device.get, {}
    found = {}
    for name, rows, dW in gradients:
        found.setdefault(name, np.zeros_like(get(layer.weights[name].array)))
        found[name][rows] = get(dW).reshape(found[name][rows].shape)
    for name, dW in found.items():
        shard = layer.weights[name]
        k = len(shard.keys)
        counts = group.gather_integers(np.array([k]))[:, 0].tolist()
        product = get(shard.array)[:k].astype(float) * dW[:k]
        product = product.sum(axis=tuple(range(1, product.ndim)))
        keys, sums = group.gather_host(shard.keys, counts), group.gather_host(product, counts)
        out[name] = sums[np.unique(keys, return_index=True)[1]].sum()
    return out


@pytest.mark.parametrize("bases", [0, 3])
def test_one_hot_layer_and_its_gradient_are_adjoint(group, bases):
    graph = dyadic_graph()
    outputs = np.arange(0, 60, 3)
    for groups, turns, kind in grids(group.size):
        placement = place(graph, group.size, groups, kind, turns)
        layer = OneHotLayer(group, placement, graph, outputs, NetShape([5], bases, 1))
        fill(group, layer, 7)
        Y_own = rows_of(layer.products.out, integers(8, 60, 5))
        Z = whole_rows(group, layer.products.out, layer.forward(), 60).astype(float)
        found = dots(group, layer, layer.gradients(group.device.put(Y_own)))
        value = (Z[outputs] * integers(8, 60, 5)[outputs]).sum()
        loops = found.pop("first/self")
        # Z is linear in V for any a, and in a for any V: each product is the part of Z without self-loops.
        for name in ("first/V", "first/a") if bases else ():
            assert found[name] + loops == value
        if not bases:
            assert sum(found.values()) + loops == value


@pytest.mark.parametrize("bases", [0, 2])
def test_relational_layer_and_its_gradient_are_adjoint(group, bases):
    graph = dyadic_graph()
    outputs = np.arange(0, 60, 3)
    inputs = np.union1d(outputs, graph.of_targets(outputs).source)
    for groups, _, kind in grids(group.size):
        placement = place(graph, group.size, groups, kind)
        layer = RelationalLayer(
            group, placement, graph, inputs, outputs, (4, 3), NetShape([4, 3], bases, 1), "layer"
        )
        fill(group, layer, 9)
        H, Y = integers(10, 60, 4), integers(11, 60, 3)
        products = layer.products
        Z = whole_rows(group, products.out, layer.forward(group.device.put(rows_of(products.inputs, H))), 60)
        dH_own = layer.backward(group.device.put(rows_of(products.out, Y)))
        dH = whole_rows(group, products.inputs, dH_own, 60).astype(float)
        value = (Z[outputs].astype(float) * Y[outputs]).sum()
        assert (H[inputs] * dH[inputs]).sum() == value
        found = dots(group, layer, layer.gradients())
        loops = found.pop("layer/self")
        for each in found.values():
            assert each + loops == value


# ---- the same bits for any partition ------------------------------------------------------------------


def trained(group, graph, labels, **settings):
    """The digest of weights and predictions after some epochs. Ranks: all call."""
    case = RgcnCase(**{"hidden": 6, "epochs": 4, "learning_rate": 0.1, **settings})
    found = train_rgcn(group, graph, labels, case, seed=4, course=Course(check_every=2))
    return digest({"predictions": found.predictions, **found.net.whole_weights(group)})


@pytest.mark.parametrize(
    "settings",
    [
        {"bases": 0},
        {"bases": 5},
        {"bases": 3, "layers": 3, "prune": False},
        {"bases": 3, "layers": 3, "dropout": 0.4, "schedule": "linear", "keep": "best", "patience": 3},
    ],
)
def test_the_same_bits_for_any_partition(group, single, settings):
    graph = make_graph(150, 6, 420)
    labels = with_val(make_labels(graph, count=40))
    wanted = by_one(lambda: trained(single, graph, labels, parts=1, **settings))
    forms = [
        {"partition": "relations", "parts": 1},
        {"partition": "relations", "grouping": "edges", "parts": 2},
        {"partition": "rows", "parts": 4},
        {"partition": "both", "groups": 2 if group.size % 2 == 0 else 1},
    ]
    for form in forms:
        assert trained(group, graph, labels, **form, **settings) == wanted, form


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_gradients_go_the_way_of_dropout(group, share):
    """What is dropped is a function of seed, epoch, layer and node; the rest, and gradients, are scaled."""
    graph = make_graph()
    labels = make_labels(graph)
    net = RGCN(group, place(graph, group.size, group.size), graph, labels.nodes, NetShape([6, 3], 0, 1))
    drops = Drops(share, 1, 2) if share else None
    inputs = net.first.products.out
    nodes = nodes_by_layer(graph, labels.nodes, 2, True)[1]
    raw = whole_rows(group, inputs, net.first.forward(), graph.nodes)[nodes]
    net.forward(drops)
    ((H_own, _),) = net._active
    H = whole_rows(group, inputs, H_own, graph.nodes)[nodes]
    mask = np.ones(raw.shape)
    if drops:
        drop = drops.after(1, 0)
        rows, columns = np.arange(len(nodes), dtype=np.uint64)[:, None], np.arange(6, dtype=np.uint64)
        mask = kept(np, drop, rows, columns) * np.float32(drop.factor)
        assert 0.3 < (mask == 0).mean() < 0.7
    assert np.array_equal(H, np.maximum(raw, 0) * mask.astype(np.float32))
    D = integers(3, graph.nodes, 3)
    gradient = gradients_of(group, net, group.device.put(rows_of(net.out, D)))["first/self"]
    layer = net.rest[0]
    layer.forward(H_own)
    dH = whole_rows(group, inputs, layer.backward(group.device.put(rows_of(net.out, D))), graph.nodes)[nodes]
    assert np.allclose(gradient, dH * (H > 0) * mask, atol=1e-5)


def with_val(labels):
    """The same labels, some of the test for looking on."""
    k = len(labels.test_idx) // 2
    return replace(
        labels, test_idx=labels.test_idx[k:], test_label=labels.test_label[k:],
        val_idx=labels.test_idx[:k], val_label=labels.test_label[:k],
    )  # fmt: skip


def test_the_best_weights_are_those_of_the_best_evaluation(solo):
    """Kept where asked, the same as a training that ends there; patience ends one."""
    graph = make_graph(150, 6, 420)
    labels = with_val(make_labels(graph, count=60))
    settings = {"hidden": 6, "bases": 3, "learning_rate": 0.1, "dropout": 0.3}

    def fit(**more):
        return train_rgcn(solo, graph, labels, RgcnCase(**settings, **more), seed=4)

    last = fit(epochs=12)
    scores = [row["val_score"] for row in last.records] + [last.accuracy["val"]]
    best = int(np.argmax(scores))
    found = fit(epochs=12, keep="best")
    assert 0 < best < 12 and (found.best_epoch, found.epochs) == (best, 12)
    ended = fit(epochs=best)
    weights = [each.net.whole_weights(solo) for each in (found, ended)]
    assert all(np.array_equal(weights[0][name], array) for name, array in weights[1].items())
    assert found.accuracy["val"] == max(scores) and last.best_epoch == 12
    patient = fit(epochs=400, keep="best", patience=5)
    assert patient.epochs < 400 and patient.epochs == patient.best_epoch + 6
    with pytest.raises(CaseError, match=r"rgcn.keep: goes by labelled validation nodes, and there are none"):
        train_rgcn(solo, graph, make_labels(graph), RgcnCase(keep="best"), seed=4)


def test_every_device_gives_the_bits_of_the_host(solo):
    graph = make_graph()
    labels = make_labels(graph)
    host = Group(MPI.COMM_SELF, HostDevice())
    for settings in (
        {"bases": 4, "weight_decay": 0.01}, {"bases": 0, "optimiser": "sgd"}, {"dropout": 0.5, "warmup": 2}
    ):  # fmt: skip
        assert trained(solo, graph, labels, **settings) == trained(host, graph, labels, **settings)


def test_other_weights_give_another_digest(solo):
    graph = make_graph()
    labels = make_labels(graph)
    assert trained(solo, graph, labels) != trained(solo, graph, labels, learning_rate=0.11)


def test_more_ranks_than_labelled_rows(group, single):
    graph = make_graph(20, 2, 15)
    labels = make_labels(graph, count=4, classes=2)
    assert trained(group, graph, labels, bases=2) == trained(single, graph, labels, bases=2)


# ---- what is stored, and limits ----------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_rows_are_stored_for_edges_only():
    graph = make_graph()
    group = Group(MPI.COMM_SELF, HostDevice())
    net = RGCN(group, place(graph, 1, 1), graph, np.arange(graph.nodes), NetShape([4, 2], 0, 1), prune=False)
    rows = {(r, j) for r, j in zip(graph.relation.tolist(), graph.source.tolist())}
    assert net.weights["first/W0"].array.shape == (len(rows), 4)


@pytest.mark.parametrize("bases", [0, 30])
def test_a_memory_limit_makes_parts_and_changes_no_bit(solo, bases):
    graph = make_graph(400, 6, 2000)
    labels = make_labels(graph, count=100)
    case = RgcnCase(hidden=16, epochs=2, bases=bases)
    largest = choose_placement(1, graph, labels, case, 10**9)
    assert largest.turns == 1
    limit = next(k * 50_000 for k in range(1, 100) if fits(graph, labels, case, k * 50_000))
    found = [train_rgcn(solo, graph, labels, case, 1, TierBudget(fast)) for fast in (0, limit, 10**9)]
    assert [each.placement.turns for each in found][::2] == [1, 1]
    assert found[1].placement.turns > 1
    assert len({digest(each.net.whole_weights(solo)) for each in found}) == 1


def fits(graph, labels, case, limit):
    """Whether a limit in bytes is enough for one part at a time."""
    try:
        return bool(choose_placement(1, graph, labels, case, limit))
    except CaseError:
        return False


@pytest.mark.parametrize("partition", ["rows", "relations", "both"])
@pytest.mark.parametrize("bases, parts", [(0, 3), (6, 1)])
def test_counts_for_an_estimate_are_those_of_the_network(group, partition, bases, parts):
    graph = make_graph(200, 6, 700)
    labels = make_labels(graph, count=40)
    case = RgcnCase(hidden=8, bases=bases, partition=partition, parts=parts, layers=3)
    placement = choose_placement(group.size, graph, labels, case)
    nodes = nodes_by_layer(graph, labels.nodes, 3, case.prune)
    counts = [count_layer(graph, placement, made, group.size) for made in nodes[1:]]
    net = RGCN(group, placement, graph, labels.nodes, NetShape([8, 8, 3], bases, 1))
    first, at = net.first, group.rank
    for layer, found in zip(net.layers, counts):
        assert found.nodes[at] == len(layer.products.out.nodes)
    assert counts[0].pairs[at] == first.products.pairs[-1]
    for layer, found in zip(net.rest, counts[1:]):
        assert found.pairs[at] <= layer.products.rows < found.pairs[at] + 8 * graph.relations + 8
    if bases:
        assert counts[0].source_nodes[at] == len(net.weights["first/V"].keys)
        assert sum(counts[0].owned_sources) == counts[0].sources.sum()
    else:
        sizes = [len(net.weights[f"first/W{turn}"].keys) for turn in range(placement.turns)]
        assert sizes == counts[0].sources[:, at].tolist()
    terms = by_rank(700, graph, nodes, [8, 8, 3], case, placement, group.size)
    stored = sum(4 * shard.array.size for shard in net.weights.values())  # with padding, and shares of bases
    assert stored >= terms["weights"][at] >= 0.7 * stored - 4 * 8 * 8 * 8
    held = heaviest(terms, base=1000)
    assert held["base"] == 1000 and min(held.values()) > 0


@pytest.mark.mpi_skip
def test_groups_must_divide_the_ranks():
    graph = make_graph()
    with pytest.raises(CaseError, match=r"rgcn.groups: 3 does not divide 4 ranks"):
        choose_placement(4, graph, make_labels(graph), RgcnCase(partition="both", groups=3))


@pytest.mark.parametrize(
    "settings", [{"bases": 0, "parts": 3}, {"bases": 30}, {"bases": 4, "optimiser": "sgd"}]
)
def test_weights_in_a_file_have_the_bits_of_weights_in_memory(group, single, tmp_path, settings):
    graph = make_graph(400, 6, 2000)
    labels = make_labels(graph, count=100)
    case = RgcnCase(hidden=8, epochs=3, weight_decay=0.01, **settings)
    near = train_rgcn(single, graph, labels, case, 1).net.whole_weights(single)
    for slow in ("file", "host"):
        budget = TierBudget(10**9, slow, str(tmp_path))
        found = train_rgcn(group, graph, labels, case, 1, budget)
        first = next(shard for name, shard in found.net.weights.items() if name in ("first/V", "first/W0"))
        assert first.slow is not None
        assert found.net.weights_digest(group) == digest(near)
        assert digest(found.net.whole_weights(group)) == digest(near)


@pytest.mark.mpi_skip
def test_rows_of_a_file_stay_when_they_are_done_with(tmp_path):
    rows = SlowRows((3000, 7), HostDevice(), TierBudget(1, "file", str(tmp_path)))
    wanted = np.arange(21000, dtype=np.float32).reshape(3000, 7)
    assert not rows.array.any()
    for lo in range(0, 3000, 1100):
        rows.array[lo : lo + 1100] = wanted[lo : lo + 1100]
        rows.done(slice(lo, lo + 1100))
    rows.done()
    assert np.array_equal(rows.array, wanted) and not rows.like().array.any()
    assert not list(tmp_path.iterdir())
    with pytest.raises(CaseError, match=r"memory\.folder"):
        SlowRows((3, 7), HostDevice(), TierBudget(1, "file", str(tmp_path / "none")))


def test_pieces_make_the_whole(group, monkeypatch):
    graph = make_graph(150, 6, 420)
    labels = make_labels(graph, count=40)
    net = train_rgcn(group, graph, labels, RgcnCase(hidden=5, bases=0, epochs=1, parts=2), 1).net
    wanted = net.whole_weights(group)
    monkeypatch.setattr("app.gnn.rgcn.shards.GATHERED_AT_ONCE", 64)
    assert digest(net.whole_weights(group)) == digest(wanted) == net.weights_digest(group)
    whole = net.whole(group)
    for name, each in whole.items():
        each.set(wanted[name] + np.float32(1))
    assert all(np.array_equal(array, wanted[name] + 1) for name, array in net.whole_weights(group).items())


# ---- saved networks ----------------------------------------------------------------------------------


def test_a_saved_network_answers_as_before(group, tmp_path):
    graph = make_graph(150, 6, 420)
    labels = make_labels(graph, count=40)
    found = train_rgcn(group, graph, labels, RgcnCase(hidden=5, bases=3, epochs=4), 1)
    about = SavedRgcn(found.case, 0, 3, edges_digest(graph, labels.nodes), found.net.whole_weights(group))
    path = str(tmp_path / f"{group.rank}.npz")
    save_rgcn(path, about, "a test")
    saved = load_rgcn(path)
    case = saved.architecture_of(RgcnCase(epochs=0))
    assert (case.hidden, case.bases) == (5, 3)
    saved.check_fits(path, 0, 3, edges_digest(graph, labels.nodes))
    again = train_rgcn(
        group, graph, labels, case, 2, course=Course(begin=lambda net: saved.put(path, net.whole(group)))
    )
    assert np.array_equal(again.predictions, found.predictions) and not again.records
    for wrong, message in (((7, 3), "0 features; these have 7"), ((0, 4), "3 classes; these have 4")):
        with pytest.raises(GraphError, match=message):
            saved.check_fits(path, *wrong, about.edges)
    with pytest.raises(GraphError, match="another graph"):
        saved.check_fits(path, 0, 3, edges_digest(make_graph(seed=9), labels.nodes))
    with pytest.raises(GraphError, match="holds 'rgcn' weights, a graph network is needed"):
        load_archive(path, "gnn")


# ---- features instead of one-hot inputs --------------------------------------------------------------


def features_of(X, sparse=False):
    refuse = ValueError
    if not sparse:
        return Features(DenseFeatures(*X.shape, lambda: iter([X[:11], X[11:]]), refuse))
    A = csr_array(X)

    def parts(counts):
        at = 0
        for count in counts:
            yield A.indices[at : at + count], A.data[at : at + count]
            at += count

    return Features(SparseFeatures(*X.shape, A.indptr.astype(np.int64), False, parts, refuse))


@pytest.mark.parametrize("bases", [0, 3])
def test_features_give_the_dense_network_and_its_gradients(group, bases):
    graph = make_graph()
    labels = make_labels(graph)
    X = np.random.default_rng(4).normal(size=(70, 5)).astype(np.float32)
    placement = place(graph, group.size, group.size)
    net = RGCN(group, placement, graph, labels.nodes, NetShape([6, 3], bases, 1), inputs=features_of(X))
    targets = Targets(group, net, placement, labels)
    Z_own = net.forward()
    loss = targets.loss(Z_own)
    gradient = gradients_of(group, net, Z_own)
    weights = {name: array.astype(np.float64) for name, array in net.whole_weights(group).items()}
    A = normalised(graph)
    assert loss == pytest.approx(dense_feature_loss(A, X, weights, labels), abs=1e-6)
    draws = np.random.default_rng(5)
    for name, array in weights.items():
        for at in draws.choice(array.size, min(array.size, 6), replace=False):
            values = []
            for step in (1e-5, -1e-5):
                moved = {**weights, name: array.copy()}
                moved[name].reshape(-1)[at] += step
                values.append(dense_feature_loss(A, X, moved, labels))
            slope = (values[0] - values[1]) / 2e-5
            assert gradient[name].reshape(-1)[at] == pytest.approx(slope, abs=2e-6), (name, at)


def dense_feature_loss(A, X, weights, labels):
    """Mean cross-entropy of the training nodes, in float64."""

    def layer(name, H):
        f, m = weights[f"{name}/self"].shape
        if f"{name}/V" in weights:
            W = (weights[f"{name}/a"] @ weights[f"{name}/V"]).reshape(-1, f, m)
        else:
            W = weights[f"{name}/W"].reshape(-1, f, m)
        return (A @ H @ W).sum(axis=0) + H @ weights[f"{name}/self"]

    Z = layer("layer1", np.maximum(layer("first", X.astype(float)), 0))
    P = Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))
    return -P[labels.train_idx, labels.train_label].mean()


def test_features_give_the_same_bits_for_any_partition(group, single):
    graph = make_graph(150, 6, 420)
    labels = make_labels(graph, count=40)
    X = np.random.default_rng(4).normal(size=(150, 5)).astype(np.float32) * (np.arange(5) % 2)
    case = RgcnCase(hidden=6, bases=3, epochs=3)

    def bits(group, partition, sparse):
        found = train_rgcn(
            group, graph, labels, structs.replace(case, partition=partition), 4,
            inputs=features_of(X.astype(np.float32), sparse),
        )  # fmt: skip
        return digest({"predictions": found.predictions, **found.net.whole_weights(group)})

    wanted = by_one(lambda: bits(single, "rows", False))
    for partition in ("relations", "rows", "both"):
        assert bits(group, partition, partition == "rows") == wanted


# ---- generated graphs ---------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_labels_follow_from_triples():
    triples = random_triples(300, 900, 7, 3)
    labels = random_labels(triples, 120, 3, 3)
    assert len(labels.train_idx) == len(labels.test_idx) == 60
    for node, label in zip(labels.train_idx.tolist(), labels.train_label.tolist()):
        votes = np.bincount(triples.relation[triples.subject == node] % 3, minlength=3)
        assert label == votes.argmax()
    with pytest.raises(CaseError, match=r"rgcn.labelled: at most 300"):
        random_labels(triples, 301, 3, 3)


# ---- compiled kernels ---------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("bases", "h"), [(1, 1), (3, 5), (16, 16), (20, 17), (40, 40)])
def test_compiled_bases_have_the_bits_of_the_plain_ones(compiled, lanes, bases, h):
    plain, draws = HostDevice(compiled=False), np.random.default_rng(bases)
    counts = draws.integers(0, 4, 30)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, relations = int(starts[-1]), 7
    node = np.repeat(np.arange(30, dtype=np.int32), counts)
    relation = draws.integers(0, relations, rows).astype(np.int32)
    V, a = draws.normal(size=(30, bases, h)), draws.normal(size=(relations, bases))
    V, a, dW = (x.astype(np.float32) for x in (V, a, draws.normal(size=(rows, h))))
    at = draws.integers(0, 9, rows)
    found = []
    for device in (compiled, plain):
        sums = np.ones((9, bases), dtype=np.float32)
        basis.ShareSums(device, starts, at, 9).add(V, dW, sums)
        W = basis.compose(device, V, a, node, relation)
        found.append((W, basis.node_gradient(device, dW, a, starts, relation), sums))
    for one, other in zip(*found):
        assert one.tobytes() == other.tobytes()
    assert np.allclose(found[0][0], np.einsum("pb,pbh->ph", a[relation], V[node]), atol=1e-4)


@pytest.mark.mpi_skip
def test_compiled_adam_has_the_bits_of_the_plain_one(compiled):
    draws = np.random.default_rng(1)
    weights = [draws.normal(size=1001).astype(np.float32)] * 2
    weights = [each.copy() for each in weights]
    optimisers = [Adam(1001, np, 0.01) for _ in range(2)]
    optimisers[1].compiled = False
    for _ in range(5):
        gradient = draws.normal(size=1001).astype(np.float32)
        gradient[::7] = 0
        for flat, optimiser in zip(weights, optimisers):
            optimiser.update(flat, gradient)
    assert weights[0].tobytes() == weights[1].tobytes()


# ---- AIFB -----------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.mpi_skip
def test_accuracy_on_aifb(compiled):
    group = Group(MPI.COMM_SELF, compiled)
    triples, labels = read_triples_npz(str(data_dir() / "rgcn" / "aifb.npz"))
    graph = relational_graph(triples)
    case = RgcnCase(hidden=16, bases=40, epochs=50)
    scores = [train_rgcn(group, graph, labels, case, seed).accuracy["test"] for seed in range(5)]
    assert np.mean(scores) >= 0.94
