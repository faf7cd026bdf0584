"""Sparse products on row partitions: exact adjoints, and one rank's bits on any number of ranks."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import (
    dense,
    exact_dot,
    growing_graph,
    listed,
    make_block,
    make_blocks,
    own_states,
    random_graph,
    small_integers,
    whole_states,
)

from app.sparse.batch import StateBatch

# Graphs of a batch, and how many states of each.
BATCHES = {
    "one": ([random_graph(61, 0.1, 1)], [1]),
    "states": ([random_graph(61, 0.1, 1)], [3]),
    "weighted": ([random_graph(45, 0.2, 2, weighted=True)], [2]),
    "mixed": ([random_graph(37, 0.2, 3), growing_graph(64, 2, 4), listed(5, (0, 1), (1, 4))], [2, 1, 4]),
    "mixed weights": ([random_graph(40, 0.2, 5, weighted=True), random_graph(40, 0.1, 6)], [1, 2]),
    "five nodes": ([listed(5, (0, 1), (1, 2), (0, 4))], [2]),
    "one node": ([listed(1)], [3]),
    "no edges": ([listed(30)], [2]),
    "hubs": ([growing_graph(500, 3, 7)], [1]),
}
EXCHANGES = ["gather", "halo"]
everything = pytest.mark.parametrize("name", BATCHES)


def make_batch(group, name, exchange="auto", cuts=None):
    graphs, states = BATCHES[name]
    return StateBatch(group, list(zip(make_blocks(group, graphs, exchange, cuts), states)))


def per_state(name):
    """(adjacency, edge weights) of every state, dense."""
    graphs, states = BATCHES[name]
    return [dense(graph) for graph, count in zip(graphs, states) for _ in range(count)]


def removed_nodes(name, seed=9):
    """For each state some nodes that were removed; none, all, and anything between."""
    draws = np.random.default_rng(seed)
    shares = [0.4, 0.0, 1.0, 0.2, 0.7]
    return [np.flatnonzero(draws.random(len(A)) < shares[i % 5]) for i, (A, _) in enumerate(per_state(name))]


def drawn(name, width, seed, normal=False):
    """One [n, width] array for each state: small integers, or floats whose sums depend on the order."""
    draws = np.random.default_rng(seed)
    sizes = [len(A) for A, _ in per_state(name)]
    if normal:
        return [draws.standard_normal((n, width)).astype(np.float32) for n in sizes]
    return [small_integers(seed + i, n, width) for i, n in enumerate(sizes)]


def same_bits(ones, others):
    return [a.tobytes() for a in ones] == [b.tobytes() for b in others]


# ---- rows and states --------------------------------------------------------------------------------------


@everything
def test_rows_of_states_and_nodes(group, name):
    batch = make_batch(group, name)
    assert batch.rows % 8 == 0
    seen = []
    for state, (A, _) in enumerate(per_state(name)):
        nodes = np.arange(len(A))
        rows = batch.row_of(np.full(len(A), state), nodes)
        block = batch.blocks[batch.member_of_state[state]]
        assert np.array_equal(rows >= 0, [block.owns(v) for v in nodes])
        seen += rows[rows >= 0].tolist()
    assert len(set(seen)) == len(seen)
    assert all(0 <= row < batch.rows for row in seen)
    owned = group.sum_integers(np.array([len(seen)]))[0]
    assert owned == sum(len(A) for A, _ in per_state(name))


@everything
def test_values_of_a_state_reach_its_rows(group, device, name):
    batch = make_batch(group, name)
    values = np.arange(batch.states * 2, dtype=np.float32).reshape(-1, 2)
    spread = batch.spread(device.put(values))
    if batch.states > 1:
        for state, whole in enumerate(whole_states(group, batch, spread)):
            assert (whole == values[state]).all()
    else:
        assert device.get(spread).tolist() == values.tolist()


@everything
def test_the_rows_of_a_member(group, device, name):
    batch = make_batch(group, name)
    X_states = drawn(name, 2, 1)
    X_own = own_states(group, batch, X_states)
    for (states, rows), block in zip(batch.by_member(X_own), batch.blocks):
        rows = device.get(rows.copy())
        assert rows.shape == (block.n_own, states.stop - states.start, 2)
        for state in range(states.start, states.stop):
            mine = X_states[state][block.lo : block.lo + block.n_real]
            assert np.array_equal(rows[: block.n_real, state - states.start], mine)


@everything
def test_masks_of_removed_nodes(group, device, name):
    batch = make_batch(group, name)
    removed = removed_nodes(name)
    mask = batch.alive_mask(removed)
    for whole, gone, (A, _) in zip(whole_states(group, batch, mask), removed, per_state(name)):
        wanted = np.ones((len(A), 1))
        wanted[gone] = 0
        assert np.array_equal(whole, wanted)
    # Padding is masked too.
    ones = int(device.get(mask).sum())
    assert group.sum_integers(np.array([ones]))[0] == sum(
        len(A) - len(g) for (A, _), g in zip(per_state(name), removed)
    )


# ---- row blocks -------------------------------------------------------------------------------------------


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_neighbours_and_degrees(group, name, exchange):
    for block, graph in zip(make_batch(group, name, exchange).blocks, BATCHES[name][0]):
        A, _ = dense(graph)
        mine = A[block.lo : block.lo + block.n_real]
        assert np.array_equal(block.degrees_own()[: block.n_real], mine.sum(axis=1))
        assert not block.degrees_own()[block.n_real :].any()
        assert block.max_degree_own() == mine.sum(axis=1).max(initial=0)
        for node in range(block.n):
            assert np.array_equal(block.neighbours_own(node), np.flatnonzero(mine[:, node]))
            assert block.owns(node) == (block.lo <= node < block.lo + block.n_real)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_host_values_of_extended_columns(group, exchange):
    graph = growing_graph(200, 2, 1)
    block = make_block(group, graph, exchange)
    values = np.arange(block.n_own) + block.lo
    extended = block.extend_host(group, values)
    indptr, columns = block.host_rows()
    A, _ = dense(graph)
    for row in range(block.n_real):
        near = extended[columns[indptr[row] : indptr[row + 1]]]
        assert np.array_equal(near, np.flatnonzero(A[block.lo + row]))


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_extended_columns_are_in_global_order(group, exchange):
    """Own columns first, or ghosts of all ranks after them, would change the order of additions."""
    block = make_block(group, random_graph(200, 0.03, 1), exchange)
    if block.columns is not None:
        assert (np.diff(block.columns) > 0).all()
        assert block.columns[block.own_at] == block.lo or block.n_own == 0
    indptr, columns = block.host_rows()
    assert all((np.diff(columns[a:b]) > 0).all() for a, b in pairwise(indptr))


def test_the_cheaper_exchange_is_taken(group):
    path = listed(400, *[(i, i + 1) for i in range(399)])
    modes = [make_block(group, graph).plan.mode for graph in (path, random_graph(64, 0.9, 1))]
    assert modes == (["none", "none"] if group.size == 1 else ["halo", "gather"])


# ---- products ---------------------------------------------------------------------------------------------


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_products_are_those_of_dense_masked_matrices(group, name, exchange):
    batch, X_states = make_batch(group, name, exchange), drawn(name, 3, 1)
    mask = batch.alive_mask(removed_nodes(name))
    X_own = own_states(group, batch, X_states) * mask
    products = whole_states(group, batch, batch.times(X_own) * mask)
    for product, X, gone, (A, _) in zip(products, X_states, removed_nodes(name), per_state(name)):
        M = np.ones((len(A), 1))
        M[gone] = 0
        assert np.array_equal(product, M * (A @ (M * X)))


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_product_is_its_own_adjoint(group, name, exchange):
    """<M A M X, Y> == <X, M A M Y> with small integers: every sum is exact."""
    batch = make_batch(group, name, exchange)
    mask = batch.alive_mask(removed_nodes(name))
    X_own, Y_own = (own_states(group, batch, drawn(name, 3, seed)) for seed in (1, 50))
    left = exact_dot(group, batch.times(X_own * mask) * mask, Y_own)
    right = exact_dot(group, X_own, batch.times(Y_own * mask) * mask)
    assert left == right


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_products_have_the_bits_of_one_rank(group, solo, name, exchange):
    X_states = drawn(name, 5, 3, normal=True)
    results = []
    for each in (group, solo):
        batch = make_batch(each, name, exchange)
        results.append(whole_states(each, batch, batch.times(own_states(each, batch, X_states))))
    assert same_bits(*results)


def uneven_cuts(group, name):
    """Cuts that leave all ranks but the last without rows, and cuts in the middle of the order."""
    blocks = -(-max(len(A) for A, _ in per_state(name)) // 8)
    return [[0] * group.size + [blocks], [0] + [(blocks + 1) // 2] * (group.size - 1) + [blocks]]


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("name", ["states", "mixed", "mixed weights", "five nodes"])
@pytest.mark.parametrize("which", [0, 1])
def test_borders_between_ranks_do_not_change_bits(group, solo, name, exchange, which):
    if group.size == 1:
        return
    X_states, results = drawn(name, 5, 3, normal=True), []
    for each, cuts in ((group, uneven_cuts(group, name)[which]), (solo, None)):
        batch = make_batch(each, name, exchange, cuts)
        X_own = own_states(each, batch, X_states)
        Y_own = batch.times(X_own)
        sums = [batch.pool(Y_own), batch.sum_blocks(batch.gram_part(X_own, Y_own))]
        results.append([*whole_states(each, batch, Y_own), *map(each.device.get, sums)])
    assert same_bits(*results)


def test_a_batch_may_mix_exchanges(group, solo):
    """One graph by halo and one by gather share one message."""
    name = "mixed"
    X_states, results = drawn(name, 2, 3, normal=True), []
    for each in (group, solo):
        graphs, states = BATCHES[name]
        blocks = [
            make_blocks(each, graphs, exchange)[g] for g, exchange in enumerate(["halo", "gather", "halo"])
        ]
        batch = StateBatch(each, list(zip(blocks, states)))
        X_own = own_states(each, batch, X_states)
        before = each.calls
        Y_own = batch.times(X_own)
        assert each.calls == before + (each.size > 1)
        results.append(whole_states(each, batch, Y_own))
    assert same_bits(*results)


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_weight_sums(group, name, exchange):
    batch = make_batch(group, name, exchange)
    removed = removed_nodes(name)
    sums = whole_states(group, batch, batch.weight_sums(batch.alive_mask(removed)))
    for found, gone, (_, M) in zip(sums, removed, per_state(name)):
        alive = np.ones(len(M))
        alive[gone] = 0
        assert np.array_equal(found, np.stack([np.maximum(M, 0) @ alive, np.maximum(-M, 0) @ alive], axis=1))


# ---- sums over nodes --------------------------------------------------------------------------------------


@everything
def test_pooled_states(group, device, name):
    batch, X_states = make_batch(group, name), drawn(name, 3, 1)
    pooled = device.get(batch.pool(own_states(group, batch, X_states)))
    assert np.array_equal(pooled, np.stack([X.sum(axis=0) for X in X_states]))


@everything
def test_grams(group, device, name):
    batch, X_states, D_states = make_batch(group, name), drawn(name, 3, 1), drawn(name, 2, 70)
    X_own, D_own = (own_states(group, batch, states) for states in (X_states, D_states))
    gram = device.get(batch.sum_blocks(batch.gram_part(X_own, D_own)))
    assert np.array_equal(gram.reshape(3, 2), sum(X.T @ D for X, D in zip(X_states, D_states)))


@everything
def test_sums_have_the_bits_of_one_rank(group, solo, name):
    X_states, D_states, results = drawn(name, 4, 3, normal=True), drawn(name, 3, 4, normal=True), []
    for each in (group, solo):
        batch = make_batch(each, name)
        X_own, D_own = (own_states(each, batch, states) for states in (X_states, D_states))
        sums = [batch.pool(X_own), batch.sum_blocks(batch.gram_part(X_own, D_own))]
        results.append([each.device.get(array) for array in sums])
    assert same_bits(*results)
