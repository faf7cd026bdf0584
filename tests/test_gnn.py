"""app/gnn and app/elementary: loss, Adam, parameters, logarithm; structure2vec's linear pieces, exactly."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from helpers import (
    EXCHANGES,
    exact_dot,
    growing_graph,
    listed,
    make_blocks,
    own_states,
    random_graph,
    small_integers,
    whole_states,
)

from app.gnn.loss import td_loss
from app.gnn.optim import Adam
from app.gnn.parameters import Parameters
from app.gnn.structure2vec import NodeInputs, Structure2Vec
from app.numerics.elementary import log
from app.numerics.products import Operand
from app.sparse.batch import StateBatch

# ---- elementary ---------------------------------------------------------------------------------------


def test_log_has_six_digits_at_all_magnitudes(device):
    draws = np.random.default_rng(1)
    spread = 10.0 ** draws.uniform(-37.9, 38.5, 4000)
    near_one = 1 + draws.uniform(-0.5, 1, 2000) * 10.0 ** draws.uniform(-6, 0, 2000)
    switch = np.sqrt(0.5) * (1 + draws.uniform(-1e-5, 1e-5, 500))  # where the series changes its octave
    powers = 2.0 ** np.arange(-126, 128)
    x = np.concatenate([spread, near_one, switch, 2 * switch, powers, np.arange(1.0, 3000)]).astype(
        np.float32
    )
    x = x[x != 1]
    found = device.get(log(device.xp, device.put(x)))
    assert found.dtype == np.float32
    expected = np.array([math.log(v) for v in x.tolist()])
    assert np.max(np.abs(found / expected - 1)) < 1e-6


def test_log_of_one_is_zero(device):
    assert device.get(log(device.xp, device.put(np.ones(3, dtype=np.float32)))).tolist() == [0, 0, 0]


# ---- loss ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_gradient_of_the_loss(kind):
    q = np.array([0.3, -2.0, 4.0, 1.5, 0.0])
    target = np.array([0.1, 1.0, 1.0, 1.2, 0.9])
    for whole in (5, 12):
        _, gradient = td_loss(q, target, kind, whole)
        for i in range(len(q)):
            h = 1e-6 * np.eye(len(q))[i]
            up, down = (td_loss(q + move, target, kind, whole)[0].sum() / whole for move in (h, -h))
            assert gradient[i] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)


def test_values_of_the_loss():
    q, target = np.array([3.0, 0.5], dtype=np.float32), np.array([1.0, 0.0], dtype=np.float32)
    assert td_loss(q, target, "squared", 2)[0].tolist() == [4, 0.25]
    assert td_loss(q, target, "huber", 2)[0].tolist() == [1.5, 0.125]
    assert td_loss(q, target, "huber", 2)[1].tolist() == [0.5, 0.25]
    assert td_loss(q, target, "squared", 2)[1].tolist() == [2, 0.5]
    assert all(array.dtype == np.float32 for array in td_loss(q, target, "squared", 2))


@pytest.mark.parametrize("kind", ["squared", "huber"])
def test_the_loss_of_a_part_is_a_part_of_the_loss(kind):
    q, target = (np.random.default_rng(seed).normal(size=7).astype(np.float32) for seed in (1, 2))
    whole = td_loss(q, target, kind, 7)
    for cut in (slice(0, 3), slice(3, 7)):
        part = td_loss(q[cut], target[cut], kind, 7)
        assert [array.tobytes() for array in part] == [array[cut].tobytes() for array in whole]


# ---- Adam ---------------------------------------------------------------------------------------------


def test_adam_is_algorithm_1(device):
    rate, beta1, beta2, epsilon = 0.01, 0.8, 0.95, 1e-6
    theta = np.linspace(-1, 1, 7)
    flat = device.put(theta.astype(np.float32))
    adam = Adam(7, device.xp, rate, beta1, beta2, epsilon)
    m, v = np.zeros(7), np.zeros(7)
    for t in range(1, 31):
        g = np.sin(np.arange(7) * t) * 10.0 ** (np.arange(7) - 3)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        theta = theta - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        adam.update(flat, device.put(g.astype(np.float32)))
    assert np.allclose(device.get(flat), theta, rtol=0, atol=2e-6)
    assert adam.step == 30


def test_adam_first_step_is_the_rate_against_the_gradient(device):
    flat = device.put(np.zeros(3, dtype=np.float32))
    Adam(3, device.xp, 0.5).update(flat, device.put(np.array([1e-3, -7, 0], dtype=np.float32)))
    assert device.get(flat) == pytest.approx([-0.5, 0.5, 0], rel=1e-4)


# ---- parameters ---------------------------------------------------------------------------------------

SHAPES = {"b": (2, 3), "a": (4, 1), "c": (1, 1)}


def test_parameters_are_views_of_one_vector(device):
    params = Parameters(device, SHAPES)
    assert params.size == 11
    arrays = {name: small_integers(i, *shape) for i, (name, shape) in enumerate(SHAPES.items())}
    params.set(arrays)
    for name, array in arrays.items():
        assert np.array_equal(device.get(params[name]), array)
        assert np.array_equal(params.host()[name], array)
    params.flat += 1
    assert np.array_equal(device.get(params["a"]), arrays["a"] + 1)
    params["b"][:] = 0
    assert not params.host()["b"].any()
    assert np.array_equal(params.host()["c"], arrays["c"] + 1)


def test_copies_of_parameters_are_independent(device):
    params = Parameters(device, SHAPES)
    params.draw_glorot(3)
    first, other = params.host(), params.copy()
    params.flat[:] = 0
    assert all(np.array_equal(other.host()[name], first[name]) for name in SHAPES)
    assert all(first[name].any() for name in SHAPES)  # host() gave copies


def test_parameters_refuse_what_is_missing_or_does_not_fit(device):
    params = Parameters(device, SHAPES)
    arrays = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    with pytest.raises(KeyError):
        params.set({"a": arrays["a"]})
    with pytest.raises(ValueError):
        params.set({**arrays, "b": np.zeros((2, 2), dtype=np.float32)})


def test_glorot_draws_within_its_limit_by_name_and_seed(device):
    params = Parameters(device, {"a": (30, 20), "b": (30, 20)})
    params.draw_glorot(5)
    drawn, limit = params.host(), math.sqrt(6 / 50)
    assert np.abs(drawn["a"]).max() <= limit
    assert np.abs(drawn["a"]).max() > 0.98 * limit
    assert abs(drawn["a"].mean()) < 0.02
    assert not np.array_equal(drawn["a"], drawn["b"])
    again = Parameters(device, {"a": (30, 20)})
    again.draw_glorot(5)
    assert np.array_equal(again.host()["a"], drawn["a"])
    again.draw_glorot(6)
    assert not np.array_equal(again.host()["a"], drawn["a"])


# ---- structure2vec: adjoint identities in exact arithmetic --------------------------------------------

# Sizes that expose off-by-one: rows not divisible by the ranks, ranks without rows, no edge, one edge.
BATCHES = {
    "mixed": [(random_graph(37, 0.2, 1), 3), (random_graph(21, 0.3, 2), 2)],
    "two octets": [(random_graph(13, 0.4, 3), 1)],
    "one octet": [(random_graph(5, 0.7, 4), 4)],
    "no edge": [(listed(9), 2), (listed(3, (0, 2)), 1)],
    "hubs": [(growing_graph(150, 3, 5), 2)],
}


def make_batch(group, members, exchange):
    blocks = make_blocks(group, [graph for graph, _ in members], exchange)
    return StateBatch(group, [(block, count) for block, (_, count) in zip(blocks, members)])


def zeros_and_ones(group, batch, seed):
    """A random 0/1 column on real rows, three in four of them one, the same on any number of ranks."""
    sizes = [block.n for block, count in zip(batch.blocks, batch.counts) for _ in range(count)]
    states = [np.random.default_rng([seed, i]).random((n, 1)) < 0.75 for i, n in enumerate(sizes)]
    return own_states(group, batch, [s.astype(np.float32) for s in states])


def integers_of(group, batch, seed, width):
    """Random small integers on real rows, the same on any number of ranks."""
    sizes = [block.n for block, count in zip(batch.blocks, batch.counts) for _ in range(count)]
    return own_states(group, batch, [small_integers([seed, i], n, width) for i, n in enumerate(sizes)])


def random_inputs(group, batch, draw):
    """Two features from a table, all masks drawn at random, and scales of 1/4 or 1/8: exact.

    An entry says whether a node is alive, whether it has an embedding, and which of two features it has; so
    do edge weights that stand in a table of the same index, in every draw but the second.
    """
    device, xp = group.device, group.device.xp
    alive, present, quarter, row = (zeros_and_ones(group, batch, 10 * draw + i)[:, 0] for i in range(4))
    if draw == 2:  # as with the default features: what is alive is what has an embedding
        present = alive
    code = (alive + 2 * present + 4 * row).astype(np.int32)
    bits = np.arange(8)[:, None] >> np.arange(3) & 1
    table = (np.abs(small_integers(draw, 2, 2)) + 1)[bits[:, 2]] * bits[:, 1:2]
    weights = Operand(xp.stack([quarter, 1 - quarter], axis=1))
    if draw != 1:
        sums = np.stack([1 + bits[:, 2], 2 - bits[:, 2]], axis=1) * bits[:, 1:2]
        weights = Operand(device.put(float32(sums)), code)
    features, alive_entries = Operand(device.put(float32(table)), code), device.put(float32(bits[:, :1]))
    scale = alive / (4 * quarter + 4)
    return NodeInputs(features, alive_entries, alive, alive * present, present, scale, weights)


def float32(values):
    return np.ascontiguousarray(values, dtype=np.float32)


def network(group, **options):
    """Two rounds with K = 3 whose relus never bend: every weight is a positive integer."""
    kinds = {"shared": False, "self_weight": False, "edge_weights": False, **options}
    net = Structure2Vec(2, 3, 2, **kinds)
    params = Parameters(group.device, net.shapes())
    params.set({name: np.abs(small_integers(i, *s)) + 1 for i, (name, s) in enumerate(net.shapes().items())})
    return net, params


def neighbour_sums(saved):
    """The first embeddings, and what the second round made of the neighbours': N, written out."""
    (_, H), (parts, _) = saved
    (N,) = [part for part in parts if part.scale is not None]
    return H.rows(), N.rows()


def gradient_of(net, params, batch, parts):
    """The whole gradient by parameter name from the addends of backward, of which some are views."""
    contiguous = batch.device.xp.ascontiguousarray
    return net.finish(params, {name: batch.sum_blocks(contiguous(part)) for name, part in parts.items()})


@pytest.mark.parametrize("exchange", ["halo", "gather"])
@pytest.mark.parametrize("name", BATCHES)
def test_a_round_is_adjoint_to_its_backward(group, name, exchange):
    """<N Wn + H Wo, Y> = <H, dH>, where dH is what backward sends through the round for dZ = Y."""
    batch = make_batch(group, BATCHES[name], exchange)
    device = group.device
    Y = integers_of(group, batch, 4, 3)
    Wn, Wo = (device.put(small_integers(seed, 3, 3)) for seed in (5, 6))
    for draw, self_weight in itertools.product(range(3), (False, True)):
        net, params = network(group, self_weight=self_weight)
        inputs = random_inputs(group, batch, draw)
        saved = net.forward(params, batch, inputs)[1]
        H, N = neighbour_sums(saved)
        Z = device.row_product(N, Wn)
        W = Wn
        if self_weight:
            Z, W = Z + device.row_product(H, Wo), device.xp.concatenate([Wn, Wo], axis=0)
        dH, none = net._through_round(batch, inputs, W.T, Y, Operand(H))
        assert none is None
        left = exact_dot(group, Z, Y, 1 / 8)
        assert left == exact_dot(group, H, dH, 1 / 8)
        assert exact_dot(group, N, N, 1 / 64) or name == "no edge"
        # The first embeddings are a table, whose rows are the gate as well as those written out.
        assert saved[0][1].index is not None
        found, _ = net._through_round(batch, inputs, W.T, Y, saved[0][1])
        assert np.array_equal(device.get(found), device.get(dH))
        # Where no embedding is, relu or the mask was shut: nothing goes through.
        assert not device.get(dH)[device.get(H) == 0].any()
        shut = H * zeros_and_ones(group, batch, 7)
        found, _ = net._through_round(batch, inputs, W.T, Y, Operand(shut))
        assert np.array_equal(device.get(found), device.get(dH) * (device.get(shut) > 0))


@pytest.mark.parametrize("name", BATCHES)
def test_the_second_round_sees_the_masked_product(group, name):
    """N = scale * A (alive * H) by loops over the edges, state by state."""
    batch = make_batch(group, BATCHES[name], "auto")
    for draw in range(3):
        net, params = network(group)
        inputs = random_inputs(group, batch, draw)
        found = [*neighbour_sums(net.forward(params, batch, inputs)[1])]
        found += [column[:, None] for column in (inputs.alive_own, inputs.present_own, inputs.scale_own)]
        graphs = [graph for graph, count in BATCHES[name] for _ in range(count)]
        states = zip(*(whole_states(group, batch, X) for X in found))
        for (n, edges, _), (H, N, alive, present, scale) in zip(graphs, states):
            assert np.array_equal(H > 0, np.broadcast_to(present > 0, H.shape))
            expected = np.zeros((n, 3))
            for u, v in edges.tolist():
                expected[u] += H[v] * alive[v]
                expected[v] += H[u] * alive[u]
            assert np.array_equal(N, expected * scale)


def with_signs(graph, seed):
    n, edges, _ = graph
    return n, edges, np.random.default_rng(seed).choice([-3, 0.5, 1], len(edges)).astype(np.float32)


SIGNED = {
    "signs": [(with_signs(random_graph(37, 0.2, 1), 1), 3), (random_graph(21, 0.3, 2), 2)],
    "one": [(with_signs(random_graph(21, 0.3, 2), 2), 2)],
    "all negative": [((5, np.array([[0, 1], [1, 4]]), np.float32([-1, -1])), 2), (listed(3, (0, 2)), 1)],
}


def mirrored_inputs(group, batch, draw):
    """random_inputs without edge weights, whose mirror images have the other of two features."""
    mirror = group.device.put(np.arange(8) ^ 4)
    return dataclasses.replace(random_inputs(group, batch, draw), weights_own=None, mirror=mirror)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("name", SIGNED)
def test_edges_of_negative_weight_show_mirror_images(group, solo, name, exchange):
    """N by loops over the edges, state by state; the bits of one rank."""
    results = []
    for ranks in (group, solo):
        batch = make_batch(ranks, SIGNED[name], exchange)
        inputs = mirrored_inputs(ranks, batch, 0)
        net, params = network(ranks)
        saved = net.forward(params, batch, inputs)[1]
        H, N = neighbour_sums(saved)
        image = inputs.mirrored(saved[0][1]).rows()
        columns = [H, image, N, inputs.alive_own[:, None], inputs.scale_own[:, None]]
        results.append([whole_states(ranks, batch, X) for X in columns])
    assert all(np.array_equal(a, b) for ours, one in zip(*results) for a, b in zip(ours, one))
    graphs = [graph for graph, count in SIGNED[name] for _ in range(count)]
    for (n, edges, weights), (H, image, N, alive, scale) in zip(graphs, zip(*results[0])):
        expected = np.zeros((n, 3))
        for (u, v), w in zip(edges.tolist(), np.ones(len(edges)) if weights is None else weights):
            for a, b in ((u, v), (v, u)):
                expected[a] += (H if w >= 0 else image)[b] * alive[b]
        assert np.array_equal(N, expected * scale)


@pytest.mark.parametrize("self_weight", [False, True])
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("name", SIGNED)
def test_backward_through_mirror_images_is_adjoint_to_forward(group, name, exchange, self_weight):
    """As below: <dZ, H(W + E) - H(W)> = <dW, E>."""
    batch = make_batch(group, SIGNED[name], exchange)
    net, params = network(group, self_weight=self_weight)
    inputs = mirrored_inputs(group, batch, 0)
    H, saved = net.forward(params, batch, inputs)
    dZ = integers_of(group, batch, 4, 3) * (H > 0)
    gradient = gradient_of(net, params, batch, net.backward(params, batch, inputs, saved, dZ))
    base = exact_dot(group, dZ, H, 1 / 64)
    for weight, shape in net.shapes().items():
        E = np.abs(small_integers(9, *shape))
        moved = params.copy()
        moved.set({**params.host(), weight: params.host()[weight] + E})
        change = exact_dot(group, dZ, net.forward(moved, batch, inputs)[0], 1 / 64) - base
        slope = group.device.get(gradient[weight]).astype(np.float64).reshape(shape)
        assert change == (slope * E).sum() * 64, weight


@pytest.mark.parametrize("edge_weights", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_backward_is_adjoint_to_forward(group, name, shared, edge_weights):
    """With positive integers no relu bends: <dZ, H(W + E) - H(W)> = <dW, E>.

    E is a move of the weights of one round, in which the embedding is linear, or of theta2.
    """
    batch = make_batch(group, BATCHES[name], "auto")
    # Sums of edge weights from a table, and written out; with and without a node's own embedding.
    for draw in (0, 1) if edge_weights else (1,):
        net, params = network(group, shared=shared, edge_weights=edge_weights, self_weight=shared == draw)
        inputs = random_inputs(group, batch, draw)
        H, saved = net.forward(params, batch, inputs)
        assert (saved[0][1].index is None) == (edge_weights and draw == 1)
        dZ = integers_of(group, batch, 4, 3) * (H > 0)
        gradient = gradient_of(net, params, batch, net.backward(params, batch, inputs, saved, dZ))
        assert gradient.keys() == net.shapes().keys()
        base = exact_dot(group, dZ, H, 1 / 64)
        for weight, shape in net.shapes().items():
            if weight == "embed.W":
                continue  # in both rounds at once it is not linear; test_qnet.py has its differences
            E = np.abs(small_integers(9, *shape))
            moved = params.copy()
            moved.set({**params.host(), weight: params.host()[weight] + E})
            change = exact_dot(group, dZ, net.forward(moved, batch, inputs)[0], 1 / 64) - base
            slope = group.device.get(gradient[weight]).astype(np.float64).reshape(shape)
            assert change == (slope * E).sum() * 64, weight


@pytest.mark.parametrize("self_weight", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_edge_sums_from_a_table_and_written_out_are_the_same(group, shared, self_weight):
    """The embedding and all gradients, to the bit."""
    batch = make_batch(group, BATCHES["mixed"], "auto")
    net, params = network(group, shared=shared, edge_weights=True, self_weight=self_weight)
    params.draw_glorot(3)
    table = random_inputs(group, batch, 0)
    written = dataclasses.replace(table, weights_own=Operand(table.weights_own.rows()))
    results = []
    for inputs in (table, written):
        H, saved = net.forward(params, batch, inputs)
        parts = net.backward(params, batch, inputs, saved, integers_of(group, batch, 4, 3) * (H > 0))
        results.append({"H": H, **gradient_of(net, params, batch, parts)})
    for name, found in results[0].items():
        assert group.device.get(found).tobytes() == group.device.get(results[1][name]).tobytes(), name


@pytest.mark.parametrize("name", BATCHES)
def test_dense_products_are_adjoint(group, name):
    """<X W, D> = <W, X^T D> with the gradient's addends summed over ranks, = <X, D W^T>."""
    batch = make_batch(group, BATCHES[name], "auto")
    device, xp = group.device, group.device.xp
    X, D = integers_of(group, batch, 1, 5), integers_of(group, batch, 2, 4)
    W = device.put(small_integers(3, 5, 4))
    table, rows = device.put(small_integers(4, 2, 3)), zeros_and_ones(group, batch, 5)[:, 0]
    halved = 0.5 * zeros_and_ones(group, batch, 6)[:, 0]
    for parts in (
        [Operand(X)],
        [Operand(X[:, :2]), Operand(X[:, 2:])],
        [Operand(table, rows.astype(np.int32)), Operand(X[:, :2], scale=halved)],
    ):
        left = exact_dot(group, device.dense(parts, W), D, 0.5)
        gram = device.get(batch.sum_blocks(batch.gram_part(parts, D))).reshape(5, 4)
        assert left == int((gram.astype(np.float64) * device.get(W)).sum() * 2)
        columns = xp.concatenate([part.rows() for part in parts], axis=1)
        assert left == exact_dot(group, columns, device.dense([Operand(D)], W.T), 0.5)
    assert exact_dot(group, device.row_product(X, W), D) == exact_dot(group, device.dense([Operand(X)], W), D)


@pytest.mark.parametrize("name", BATCHES)
def test_pool_and_spread_are_adjoint(group, name):
    batch = make_batch(group, BATCHES[name], "auto")
    H = integers_of(group, batch, 1, 3)
    y = small_integers(2, batch.states, 3)
    pooled = group.device.get(batch.pool(H)).astype(np.float64)
    spread = batch.spread(group.device.put(y)) + H * 0
    assert int((pooled * y).sum()) == exact_dot(group, H, spread)
