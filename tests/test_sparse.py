"""Sparse products on row partitions: exact adjoints, and one rank's bits on any number of ranks."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import standin
from helpers import (
    dense,
    edge_stream,
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
from helpers import (
    residual as residual_of,
)
from mpi4py import MPI

from app.comm.group import Group
from app.device import HostDevice
from app.numerics.products import Finish, Operand
from app.partition.assemble import assemble
from app.problems.mvc import MinimumVertexCover
from app.rl import compact
from app.rl.env import GraphEnv, step_together
from app.rl.select import independent
from app.sparse import host_rows, rowblock
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock


def positive(graph):
    """A graph with the absolute values of its weights."""
    n, edges, weights = graph
    return n, edges, np.abs(weights)


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
    "equal": ([random_graph(37, 0.2, 3), listed(9, (0, 8)), growing_graph(64, 2, 4)], [2, 2, 2]),
    "positive": ([positive(random_graph(45, 0.2, 2, weighted=True))], [2]),
    "two halves": ([listed(64, *[(i, i + 1) for i in range(63) if i != 31])], [1]),
}
EXCHANGES = ["gather", "halo", "staged"]
everything = pytest.mark.parametrize("name", BATCHES)


@pytest.fixture
def ranks():
    """All ranks on the host: for what has no part on the device."""
    return Group(MPI.COMM_WORLD, HostDevice())


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
def test_masks_of_removed_nodes(group, device, name):
    batch = make_batch(group, name)
    removed = removed_nodes(name)
    mask = batch.alive_mask(removed)[:, None]
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
def test_neighbours_and_degrees(ranks, name, exchange):
    for block, graph in zip(make_batch(ranks, name, exchange).blocks, BATCHES[name][0]):
        A, _ = dense(graph)
        mine = A[block.lo : block.lo + block.n_real]
        assert np.array_equal(block.degrees_own()[: block.n_real], mine.sum(axis=1))
        assert not block.degrees_own()[block.n_real :].any()
        # Of the whole graph, on ranks without rows as well.
        assert block.max_degree == A.sum(axis=1).max(initial=0)
        assert block.weighted == (graph[2] is not None)
        for node in range(block.n):
            assert np.array_equal(block.neighbours_own(node), np.flatnonzero(mine[:, node]))
            assert block.owns(node) == (block.lo <= node < block.lo + block.n_real)
        for nodes in (np.arange(block.n), np.arange(block.n)[::-2], np.arange(min(block.n, 1)), np.arange(0)):
            near, place = block.adjacent_own(nodes)
            found = sorted(zip(place.tolist(), near.tolist()))
            assert found == [(i, row) for i, v in enumerate(nodes) for row in np.flatnonzero(mine[:, v])]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_host_values_of_extended_columns(ranks, exchange):
    graph = growing_graph(200, 2, 1)
    block = make_block(ranks, graph, exchange)
    values = np.arange(block.n_own) + block.lo
    extended = block.extend_host(ranks, values)
    indptr, columns = block.host_rows()
    A, _ = dense(graph)
    for row in range(block.n_real):
        near = extended[columns[indptr[row] : indptr[row + 1]]]
        assert np.array_equal(near, np.flatnonzero(A[block.lo + row]))


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_extended_columns_are_in_global_order(ranks, exchange):
    """Own columns first, or ghosts of all ranks after them, would change the order of additions."""
    block = make_block(ranks, random_graph(200, 0.03, 1), exchange)
    if block.columns is not None:
        assert (np.diff(block.columns) > 0).all()
        assert block.columns[block.own_at] == block.lo or block.n_own == 0
    indptr, columns = block.host_rows()
    assert all((np.diff(columns[a:b]) > 0).all() for a, b in pairwise(indptr))


@pytest.mark.parametrize("exchange", ["gather", "halo"])
def test_ghosts_and_boundary(ranks, exchange):
    """Where nodes stand among the extended columns; which own rows, and which of theirs, are ghosts."""
    graph = random_graph(200, 0.02, 1)
    A, _ = dense(graph)
    block = make_block(ranks, graph, exchange)
    nodes = np.arange(200)
    at = block.extended_of(nodes)
    held = np.arange(block.n_ext) if block.columns is None else block.columns
    assert np.array_equal(held[at[at >= 0]], nodes[at >= 0])
    here = (nodes >= block.lo) & (nodes < block.lo + block.n_real)
    needed = here | A[block.lo : block.lo + block.n_real].any(axis=0)
    assert (at[needed] >= 0).all()
    if exchange == "halo" and ranks.size > 1:
        assert np.array_equal(at >= 0, needed)
        abroad = A[block.lo : block.lo + block.n_real][:, ~here].any(axis=1)
        assert np.array_equal(block.boundary_own()[: block.n_real], abroad)
    pointers, rows = block.ghost_index()
    for node in nodes[(at >= 0) & ~here]:
        near = rows[pointers[at[node]] : pointers[at[node] + 1]]
        assert np.array_equal(near, np.flatnonzero(A[block.lo : block.lo + block.n_real, node]))


def test_the_cheaper_exchange_is_taken(ranks, monkeypatch):
    """Few ghosts: halo; else a small array is gathered, and a large one comes in large enough stages."""
    parts = []
    for graph in (listed(400, *[(i, i + 1) for i in range(399)]), random_graph(64, 0.9, 1)):
        parts.append(assemble(ranks, edge_stream(graph) if ranks.rank == 0 else None)[:2])
    nbytes, found = 64 * 3 * 4, []
    for gathered, stage in [(nbytes, 1), (nbytes - 1, nbytes // ranks.size + 1), (nbytes - 1, 1)]:
        monkeypatch.setattr(rowblock, "GATHERED_BYTES", gathered)
        monkeypatch.setattr(rowblock, "STAGE_BYTES", stage)
        found += [RowBlock(ranks, *part, "auto", width).plan.mode for width in (3, 0) for part in parts]
    several = [*["halo", "gather"] * 4, "halo", "staged", "halo", "gather"]
    assert found == (["none"] * 12 if ranks.size == 1 else several)


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("piece", [1 << 18, 5])
def test_stored_entries(ranks, name, exchange, piece, monkeypatch):
    """Rows in any order come back in global columns, whatever the pieces that a block was made in."""
    for module in (host_rows, rowblock):
        monkeypatch.setattr(module, "PIECE", piece)
    for block, graph in zip(make_batch(ranks, name, exchange).blocks, BATCHES[name][0]):
        A, M = dense(graph)
        rows = np.arange(block.n_real)[::-2]
        counts, columns = block.global_rows(rows)
        same_counts, extended, weights = block.extended_rows(rows)
        assert counts.tolist() == same_counts.tolist() == A[block.lo + rows].sum(axis=1).tolist()
        globally = np.arange(block.n_ext) if block.columns is None else block.columns
        assert np.array_equal(columns, globally[extended])
        wanted = [np.flatnonzero(A[block.lo + row]) for row in rows]
        assert np.array_equal(columns, np.concatenate([*wanted, []]))
        found = np.ones(len(columns)) if weights is None else weights
        assert np.array_equal(found, M[np.repeat(block.lo + rows, counts), columns])
        degrees_here = A[block.lo : block.lo + block.n_real].sum(axis=0)
        assert [len(block.neighbours_own(v)) for v in range(block.n)] == degrees_here.tolist()


def array_of(device, M):
    """A sparse matrix of a device as a host array."""
    if hasattr(M, "toarray"):
        found = M.toarray()
        return found if isinstance(found, np.ndarray) else device.get(found)
    indptr, indices = device.get(M.indptr), device.get(M.indices)
    data = np.ones(len(indices), np.float32) if M.data is None else device.get(M.data)
    return sp.csr_array((data, indices, indptr), shape=M.shape).toarray()


@everything
def test_tiles(group, name):
    """One for each rank, with columns counted from the rank's first row; an entry stands in one of them."""
    for block, graph in zip(make_batch(group, name, "staged").blocks, BATCHES[name][0]):
        if group.size == 1:
            continue
        A = dense(graph)[0][block.lo : block.lo + block.n_real]
        assert [tile.shape for tile in block.A] == [(block.n_own, rows) for rows in block.own_counts]
        for tile, first, last in zip(block.A, *(block.rows.offsets[i:].tolist() for i in (0, 1))):
            found = array_of(group.device, tile)
            assert np.array_equal(found[: block.n_real, : block.n - first], A[:, first:last])
            assert found.sum() == A[:, first:last].sum()


def index_bytes(block):
    """Host memory of the stored column numbers of a block, those of ghost columns included."""
    parts = [part for part in (block, block._adjacency, block._transpose) if part is not None]
    held = sum(indices.nbytes for part in parts for indices in part._indices)
    return held + (0 if block.plan.mode == "none" else block._ghost_rows.nbytes)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_memory_of_a_block(group, solo, exchange):
    """At most 8 bytes for a stored entry; where columns are global numbers the graph's own array serves."""
    n, p = 400, 0.3
    for each in (group, solo):
        stream = edge_stream(random_graph(n, p, 1)) if each.rank == 0 else None
        part, rows, _ = assemble(each, stream)
        block = RowBlock(each, part, rows, exchange)
        entries = len(part.indices)
        ghosts = np.count_nonzero((part.indices < part.lo) | (part.indices >= part.hi))
        assert index_bytes(block) == 4 * entries + 4 * ghosts
        shared = np.shares_memory(block.host_rows()[1], part.indices)
        assert shared == (each.size == 1 or exchange == "gather") or entries == 0
        if isinstance(each.device, HostDevice):  # the matrices hold no copies
            tiles = block.A if block.plan.mode == "staged" else [block.A]
            mine = zip(tiles, block._indices)
            assert all(np.shares_memory(A.indices, kept) or not kept.size for A, kept in mine)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_memory_while_a_block_is_made(ranks, exchange, monkeypatch):
    """Beside what it keeps: pieces, and some bytes for each node."""
    for module in (host_rows, rowblock):
        monkeypatch.setattr(module, "PIECE", 1 << 12)
    stream = edge_stream(random_graph(1000, 0.4, 1)) if ranks.rank == 0 else None
    part, rows, _ = assemble(ranks, stream)
    RowBlock(ranks, part, rows, exchange)
    tracemalloc.start()
    block = RowBlock(ranks, part, rows, exchange)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = index_bytes(block) - (part.indices.nbytes if block.plan.mode in ("none", "gather") else 0)
    assert peak <= held + 100 * 1000 + 80 * (1 << 12)


def test_weights_without_a_negative_one_are_not_copied(ranks):
    batch = make_batch(ranks, "positive", "gather")
    assert all(block.A_weights[1] is None for block in batch.blocks if block.A_weights)


# ---- products ---------------------------------------------------------------------------------------------


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_products_are_those_of_dense_masked_matrices(group, name, exchange):
    batch, X_states = make_batch(group, name, exchange), drawn(name, 3, 1)
    mask = batch.alive_mask(removed_nodes(name))[:, None]
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
    mask = batch.alive_mask(removed_nodes(name))[:, None]
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


def codes_of(group, batch, name, entries):
    """[rows] int32, a number below `entries` for every row, 0 on padding; the same on any number of ranks."""
    draws = np.random.default_rng(8)
    states = [draws.integers(0, entries, (len(A), 1)).astype(np.float32) for A, _ in per_state(name)]
    return own_states(group, batch, states)[:, 0].astype(np.int32)


def table_of(group, entries, width):
    table = np.random.default_rng(entries).standard_normal((entries, width)).astype(np.float32)
    table[0] = 0
    return group.device.put(table)


def times_lookup(batch, table, code, live=None):
    """[rows, f], the product of rows table[code], of which only the numbers travel."""
    return batch.exchange.multiply_lookup(table, code, [block.A for block in batch.blocks], live)


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_products_of_rows_that_stand_in_a_table(group, solo, name, exchange):
    """Only their numbers travel: the bits of the product of the rows written out, and those of one rank."""
    for entries, width in ((16, 3), (8, 16), (300, 5)):
        results = []
        for each in (group, solo):
            batch, table = make_batch(each, name, exchange), table_of(each, entries, width)
            code = codes_of(each, batch, name, entries)
            results.append(whole_states(each, batch, times_lookup(batch, table, code)))
            results.append(whole_states(each, batch, batch.times(table[code])))
        assert all(same_bits(results[0], other) for other in results[1:])


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_rows_that_are_not_read_may_be_left_out(group, name, exchange):
    """Of a product of rows, and of a table: the others are as they would be."""
    batch = make_batch(group, name, exchange)
    live = batch.alive_mask(removed_nodes(name))
    table = table_of(group, 8, 16)
    code = codes_of(group, batch, name, 8)
    expected = whole_states(group, batch, batch.times(table[code]) * live[:, None])
    for found in (batch.times(table[code], live), times_lookup(batch, table, code, live)):
        found = whole_states(group, batch, found * live[:, None])
        assert all(np.array_equal(X, Y) for X, Y in zip(found, expected))


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_rows_behind_a_gate(group, name, exchange):
    """A product times (gate > 0), zero where rows are not live; the gate as rows, and as a table."""
    batch = make_batch(group, name, exchange)
    live = batch.alive_mask(removed_nodes(name))
    table, code = table_of(group, 8, 16), codes_of(group, batch, name, 8)
    signs = np.where(np.arange(8 * 16).reshape(8, 16) % 3 == 0, -1, 1).astype(np.float32)
    shut = Operand(table * group.device.put(signs), code)
    product = batch.times(table[code], live)
    expected = group.device.xp.where(live[:, None] > 0, product, 0) * (shut.rows() > 0)
    for gate in (shut, Operand(shut.rows())):
        found = batch.times(table[code], live, gate)
        assert np.array_equal(group.device.get(found), group.device.get(expected))


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_sums_over_neighbours_as_an_operand(group, name, exchange):
    """A product that makes them as it needs them gives what it gives when they are there."""
    batch = make_batch(group, name, exchange)
    live = batch.alive_mask(removed_nodes(name))
    table, code = table_of(group, 8, 16), codes_of(group, batch, name, 8)
    W = group.device.put(np.arange(16 * 5, dtype=np.float32).reshape(16, 5) - 30)
    there = Operand(times_lookup(batch, table, code, live), None, live)
    found, sums = group.device.dense_pooled(
        [batch.lookup_part(table, code, live, live)], W, Finish(relu=True), batch.members
    )
    expected = group.device.dense([there], W, Finish(relu=True))
    assert same_bits([group.device.get(found)], [group.device.get(expected)])
    pooled = [group.device.get(x) for x in (batch.sum_states(sums), batch.pool(expected))]
    assert np.array_equal(*pooled)


def test_only_numbers_of_rows_travel(group):
    """Four bytes for a row, whatever its width."""
    for exchange in EXCHANGES:
        batch = make_batch(group, "mixed", exchange)
        table, code = table_of(group, 16, 64), codes_of(group, batch, "mixed", 16)
        sent = []
        for product in (lambda: batch.times(table[code]), lambda: times_lookup(batch, table, code)):  # noqa: B023
            before = sum(group.sent_bytes.values())
            product()
            sent.append(sum(group.sent_bytes.values()) - before)
        assert sent[0] == 64 * sent[1]


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
        sums = [batch.pool(Y_own), batch.sum_blocks(batch.gram_part([Operand(X_own)], Y_own))]
        looked_up = times_lookup(batch, table_of(each, 9, 4), codes_of(each, batch, name, 9))
        states = [*whole_states(each, batch, Y_own), *whole_states(each, batch, looked_up)]
        results.append([*states, *map(each.device.get, sums)])
    assert same_bits(*results)


@pytest.mark.parametrize(
    ("name", "modes"),
    [
        ("mixed", ["halo", "gather", "halo"]),
        ("mixed", ["halo", "staged", "gather"]),
        ("mixed", ["staged", "gather", "staged"]),
        ("equal", ["gather", "halo", "staged"]),
        ("mixed weights", ["staged", "halo"]),
    ],
)
def test_a_batch_may_mix_exchanges(group, solo, name, modes):
    """Graphs by halo and by gather share one message; those in stages share broadcasts."""
    X_states, results = drawn(name, 2, 3, normal=True), []
    for each in (group, solo):
        graphs, states = BATCHES[name]
        blocks = [make_blocks(each, graphs, exchange)[g] for g, exchange in enumerate(modes)]
        batch = StateBatch(each, list(zip(blocks, states)))
        X_own = own_states(each, batch, X_states)
        before = each.calls
        Y_own = batch.times(X_own)
        staged = [block.own_counts for block in blocks if block.plan.mode == "staged"]
        messages = np.count_nonzero(np.sum(staged, axis=0)) + any(mode != "staged" for mode in modes)
        assert each.calls == before + (messages if each.size > 1 else 0)
        sums = batch.weight_sums(batch.alive_mask(removed_nodes(name))[:, None])
        looked_up = times_lookup(batch, table_of(each, 9, 4), codes_of(each, batch, name, 9))
        results.append([row for Z in (Y_own, sums, looked_up) for row in whole_states(each, batch, Z)])
    assert same_bits(*results)


@everything
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_weight_sums(group, name, exchange):
    batch = make_batch(group, name, exchange)
    removed = removed_nodes(name)
    sums = whole_states(group, batch, batch.weight_sums(batch.alive_mask(removed)[:, None]))
    for found, gone, (_, M) in zip(sums, removed, per_state(name)):
        alive = np.ones(len(M))
        alive[gone] = 0
        assert np.array_equal(found, np.stack([np.maximum(M, 0) @ alive, np.maximum(-M, 0) @ alive], axis=1))


@pytest.mark.parametrize("name", ["states", "mixed", "equal"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_products_in_steady_state(group, device, name, exchange):
    """A second product takes the first one's buffers and leaves the first one's result alone."""
    batch = make_batch(group, name, exchange)
    X_own, Z_own = (own_states(group, batch, drawn(name, 3, seed)) for seed in (1, 2))
    first = batch.times(X_own)
    kept, scratch = device.get(first).copy(), dict(group._scratch)
    puts = standin.crossings.puts
    batch.times(Z_own)
    travels = puts_of_products(batch) if not group.direct else 0
    assert standin.crossings.puts - puts == travels
    assert np.array_equal(device.get(first), kept)
    assert {key: id(memory) for key, memory in group._scratch.items()} == {
        key: id(memory) for key, memory in scratch.items()
    }


def puts_of_products(batch):
    """Copies to the device that one product needs where MPI does not write there."""
    group = batch.group
    if group.size == 1:
        return 0
    staged = [block.own_counts for block in batch.blocks if block.plan.mode == "staged"]
    ranks = np.flatnonzero(np.sum(staged, axis=0)) if staged else []
    return (len(staged) < len(batch.blocks)) + len([rank for rank in ranks if rank != group.rank])


# ---- who reads row blocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("weighted", [False, True])
def test_residual_graphs(ranks, exchange, weighted):
    """A compacted graph is the graph of the nodes that are left, in order."""
    graph = random_graph(90, 0.1, 3, weighted=weighted)
    residual = compact.begin(ranks, make_block(ranks, graph, exchange), MinimumVertexCover())
    removed = np.arange(0, 90, 2)
    step_together(ranks, [residual.env], [removed])
    left = np.flatnonzero(residual_of(dense(graph)[0], removed).any(axis=1))
    smaller = compact.compact(ranks, residual)
    block = smaller.env.block
    assert block.exchange == exchange
    padded = ranks.gather_integers(np.array([block.n_own, len(np.flatnonzero(smaller.original >= 0))]))
    numbers = np.concatenate(
        [first + np.arange(real) for first, (_, real) in zip(np.cumsum(padded[:, 0]) - padded[:, 0], padded)]
    )
    M = np.zeros((block.n, block.n))
    M[np.ix_(numbers, numbers)] = dense(graph)[1][np.ix_(left, left)]
    counts, columns, weights = block.extended_rows(np.arange(block.n_own))
    columns = columns if block.columns is None else block.columns[columns]
    found = np.zeros((block.n_own, block.n))
    found[np.repeat(np.arange(block.n_own), counts), columns] = 1 if weights is None else weights
    assert np.array_equal(found, M[block.lo : block.lo + block.n_own])


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_independent_nodes(ranks, exchange):
    graph = random_graph(80, 0.1, 5)
    A, _ = dense(graph)
    ordered = np.random.default_rng(1).permutation(80)[:50]
    taken = []
    for node in ordered:
        if not A[node, taken].any():
            taken.append(int(node))
    assert independent(ranks, make_block(ranks, graph, exchange), ordered).tolist() == taken


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_scan_of_edges_finds_what_counters_find(ranks, exchange):
    block = make_block(ranks, growing_graph(60, 2, 3), exchange)
    envs = [GraphEnv(ranks, block, MinimumVertexCover(), scan=scan) for scan in (False, True)]
    for nodes in ([5], [0, 1, 7], [2]):
        step_together(ranks, envs, [np.array(nodes)] * 2)
        assert envs[0].totals == envs[1].totals


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
    gram = device.get(batch.sum_blocks(batch.gram_part([Operand(X_own)], D_own)))
    assert np.array_equal(gram.reshape(3, 2), sum(X.T @ D for X, D in zip(X_states, D_states)))


@everything
def test_sums_have_the_bits_of_one_rank(group, solo, name):
    X_states, D_states, results = drawn(name, 4, 3, normal=True), drawn(name, 3, 4, normal=True), []
    for each in (group, solo):
        batch = make_batch(each, name)
        X_own, D_own = (own_states(each, batch, states) for states in (X_states, D_states))
        sums = [batch.pool(X_own), batch.sum_blocks(batch.gram_part([Operand(X_own)], D_own))]
        results.append([each.device.get(array) for array in sums])
    assert same_bits(*results)
