"""app/gnn and app/elementary: loss, Adam, parameters, logarithm; structure2vec's linear pieces, exactly."""

import math

import numpy as np
import pytest
from helpers import (
    exact_dot,
    growing_graph,
    listed,
    make_blocks,
    own_states,
    random_graph,
    small_integers,
    whole_states,
)

from app.elementary import log
from app.gnn.loss import td_loss
from app.gnn.optim import Adam
from app.gnn.parameters import Parameters
from app.gnn.structure2vec import NodeInputs, Structure2Vec
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
    _, gradient = td_loss(q, target, kind)
    for i in range(len(q)):
        h = 1e-6 * np.eye(len(q))[i]
        slope = (td_loss(q + h, target, kind)[0] - td_loss(q - h, target, kind)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_values_of_the_loss():
    q, target = np.array([3.0, 0.5], dtype=np.float32), np.array([1.0, 0.0], dtype=np.float32)
    assert td_loss(q, target, "squared")[0] == (4 + 0.25) / 2
    assert td_loss(q, target, "huber")[0] == (1.5 + 0.125) / 2
    assert td_loss(q, target, "huber")[1].tolist() == [0.5, 0.25]
    assert td_loss(q, target, "squared")[1].dtype == np.float32


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
    """A random 0/1 column on real rows, the same on any number of ranks."""
    sizes = [block.n for block, count in zip(batch.blocks, batch.counts) for _ in range(count)]
    states = [np.random.default_rng([seed, i]).integers(0, 2, (n, 1)) for i, n in enumerate(sizes)]
    return own_states(group, batch, [s.astype(np.float32) for s in states])


def integers_of(group, batch, seed, width):
    """Random small integers on real rows, the same on any number of ranks."""
    sizes = [block.n for block, count in zip(batch.blocks, batch.counts) for _ in range(count)]
    return own_states(group, batch, [small_integers([seed, i], n, width) for i, n in enumerate(sizes)])


@pytest.mark.parametrize("exchange", ["halo", "gather"])
@pytest.mark.parametrize("name", BATCHES)
def test_gather_and_scatter_are_adjoint(group, name, exchange):
    batch = make_batch(group, BATCHES[name], exchange)
    net = Structure2Vec(2, 3, 1, shared=False, self_weight=False, edge_weights=False)
    alive, present = zeros_and_ones(group, batch, 1), zeros_and_ones(group, batch, 2)
    scale = 1 / (4 * zeros_and_ones(group, batch, 3) + 4)  # 1/4 or 1/8: exact
    Y = integers_of(group, batch, 4, 3)
    X = integers_of(group, batch, 5, 3)
    for inputs in (
        NodeInputs(X, alive, present),
        NodeInputs(X, alive, present, scale),
        NodeInputs(X, alive, alive, scale),
    ):
        H = X * inputs.present_own  # an embedding is zero where it is not present
        gathered = net._gather_neighbours(batch, inputs, H)
        scattered = net._scatter_to_neighbours(batch, inputs, Y)
        left = exact_dot(group, gathered, Y, 1 / 8)
        assert left == exact_dot(group, H, scattered, 1 / 8)
        assert left or name == "no edge"


@pytest.mark.parametrize("name", BATCHES)
def test_gather_is_the_masked_product(group, name):
    """N = alive * A (alive * H) by loops over the edges, state by state."""
    batch = make_batch(group, BATCHES[name], "auto")
    net = Structure2Vec(2, 3, 1, shared=False, self_weight=False, edge_weights=False)
    alive, present = zeros_and_ones(group, batch, 1), zeros_and_ones(group, batch, 2)
    H = integers_of(group, batch, 4, 3)
    N = whole_states(group, batch, net._gather_neighbours(batch, NodeInputs(H, alive, present), H))
    alive, H = whole_states(group, batch, alive), whole_states(group, batch, H)
    graphs = [graph for graph, count in BATCHES[name] for _ in range(count)]
    for (n, edges, _), N_s, alive_s, H_s in zip(graphs, N, alive, H):
        expected = np.zeros((n, 3))
        for u, v in edges.tolist():
            if alive_s[u] and alive_s[v]:
                expected[u] += H_s[v]
                expected[v] += H_s[u]
        assert np.array_equal(N_s, expected)


@pytest.mark.parametrize("name", BATCHES)
def test_dense_products_are_adjoint(group, name):
    """<X W, D> = <W, X^T D> with the gradient's addends summed over ranks, = <X, D W^T>."""
    batch = make_batch(group, BATCHES[name], "auto")
    device, xp = group.device, group.device.xp
    X, D = integers_of(group, batch, 1, 5), integers_of(group, batch, 2, 4)
    W = device.put(small_integers(3, 5, 4))
    left = exact_dot(group, device.row_product(X, W), D)
    gram = device.get(batch.sum_blocks(batch.gram_part(X, D))).reshape(5, 4)
    assert left == int((gram.astype(np.float64) * device.get(W)).sum())
    assert left == exact_dot(group, X, device.row_product(D, xp.ascontiguousarray(W.T)))


@pytest.mark.parametrize("name", BATCHES)
def test_pool_and_spread_are_adjoint(group, name):
    batch = make_batch(group, BATCHES[name], "auto")
    H = integers_of(group, batch, 1, 3)
    y = small_integers(2, batch.states, 3)
    pooled = group.device.get(batch.pool(H)).astype(np.float64)
    spread = batch.spread(group.device.put(y)) + H * 0
    assert int((pooled * y).sum()) == exact_dot(group, H, spread)
