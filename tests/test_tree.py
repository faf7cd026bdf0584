"""app/comm/tree and sum_tree: the sum over row blocks is one fixed tree, whoever owns which blocks."""

import gc
import weakref
from itertools import pairwise

import numpy as np
import pytest
from helpers import small_integers
from hypothesis import given
from hypothesis import strategies as st

from app.comm.group import Group
from app.comm.ordered import GATHER_BYTES, sum_tree
from app.comm.tree import finish_tree, owned_roots, owned_spans, top_level
from app.numerics.fused import fused
from app.numerics.products import Operand, merge_span
from app.partition.rows import block_starts


def tree_sum(X, lo=0, level=None):
    """The definition: node [lo, lo + 2^level) is its left half plus its right half, if that has blocks."""
    level = max(len(X) - 1, 0).bit_length() if level is None else level
    if level == 0:
        return X[lo]
    middle = lo + 2 ** (level - 1)
    left = tree_sum(X, lo, level - 1)
    return left if middle >= len(X) else left + tree_sum(X, middle, level - 1)


def cut(blocks, ranks, seed):
    """[ranks+1] random cuts of the blocks; some ranks own none."""
    inner = np.sort(np.random.default_rng(seed).integers(0, blocks + 1, ranks - 1))
    return [0, *inner.tolist(), blocks]


def addends(blocks, width, seed=0):
    """Numbers of many magnitudes: another order of additions gives other bits."""
    draws = np.random.default_rng(seed)
    scale = 10.0 ** draws.integers(-3, 4, (blocks, width))
    return (draws.standard_normal((blocks, width)) * scale).astype(np.float32)


def roots_of(X, cuts, rank):
    """[own roots, w], what a rank brings to sum_tree, from the addends of all blocks."""
    a, b = cuts[rank], cuts[rank + 1]
    rows = [merge_span(lambda block: X[a + block], *span) for span in owned_spans(len(X), a, b)]
    return np.stack(rows) if rows else np.zeros((0, X.shape[1]), dtype=np.float32)


@pytest.mark.mpi_skip
@given(blocks=st.integers(1, 300), ranks=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_any_cuts_give_the_tree_of_one_rank(blocks, ranks, seed):
    X, cuts = addends(blocks, 3), cut(blocks, ranks, seed)
    roots = [root for a, b in pairwise(cuts) for root in owned_roots(blocks, a, b)]
    found = finish_tree(np.concatenate([roots_of(X, cuts, rank) for rank in range(ranks)]), roots, blocks)
    assert found.tobytes() == tree_sum(X).tobytes()


@pytest.mark.mpi_skip
def test_roots_cover_a_ranks_blocks_and_are_few():
    for blocks in (1, 2, 3, 7, 8, 9, 100, 256, 300):
        assert owned_roots(blocks, 0, blocks) == [(top_level(blocks), 0)]
        for a in range(0, blocks + 1, 1 + blocks // 25):
            for b in range(a, blocks + 1):
                roots, spans = owned_roots(blocks, a, b), owned_spans(blocks, a, b)
                assert [block for lo, hi, _ in spans for block in range(lo, hi)] == list(range(b - a))
                assert [(lo + a) >> level for lo, _, level in spans] == [index for _, index in roots]
                assert len(roots) <= max(2 * top_level(blocks), 1)


@pytest.mark.mpi_skip
def test_five_blocks():
    """((0 + 1) + (2 + 3)) + 4, written out."""
    X = addends(5, 4)
    expected = ((X[0] + X[1]) + (X[2] + X[3])) + X[4]
    assert merge_span(lambda block: X[block], 0, 5, 3).tobytes() == expected.tobytes()
    assert owned_roots(5, 1, 5) == [(0, 1), (1, 1), (2, 1)]
    assert owned_roots(5, 4, 5) == [(2, 1)]
    assert owned_roots(5, 2, 2) == []


@pytest.mark.parametrize("width", [1, 5, GATHER_BYTES // 20])
@pytest.mark.parametrize("blocks", [1, 2, 5, 13])
def test_sum_tree_on_these_ranks(group, solo, blocks, width):
    X = addends(blocks, width)
    for seed in range(3):
        cuts = cut(blocks, group.size, seed)
        part_own = group.device.put(roots_of(X, cuts, group.rank))
        found = group.device.get(sum_tree(group, part_own, cuts, blocks))
        assert found.tobytes() == tree_sum(X).tobytes()
    whole = solo.device.put(roots_of(X, [0, blocks], 0))
    assert found.tobytes() == solo.device.get(sum_tree(solo, whole, [0, blocks], blocks)).tobytes()


def test_a_plain_sum_where_bits_may_depend_on_ranks(group):
    plain = Group(group.comm, group.device, reproducible=False)
    X = small_integers(1, 9, 4)
    cuts = cut(9, group.size, 0)
    found = sum_tree(plain, group.device.put(roots_of(X, cuts, group.rank)), cuts, 9)
    assert group.device.get(found).tolist() == X.sum(axis=0).tolist()


def test_gradients_and_column_sums_on_these_ranks(group):
    """From rows to the sum: the bits of one rank's tree of chains over the rows of blocks."""
    device, n, blocks = group.device, 150, 19
    starts = block_starts(n, blocks)
    rows = int(starts[-1])
    X, D = addends(rows, 6, 1), addends(rows, 5, 2)
    leaves = [np.zeros((6, 5), dtype=np.float32) for _ in range(blocks)]
    sums = np.zeros((blocks, 5), dtype=np.float32)
    for b in range(blocks):
        for r in range(starts[b], starts[b + 1]):
            leaves[b] = fused(X[r][:, None], D[r], leaves[b])
            sums[b] += D[r]
    for seed in range(3):
        cuts = cut(blocks, group.size, seed)
        a, b = cuts[group.rank], cuts[group.rank + 1]
        own, local = slice(starts[a], starts[b]), (starts[a : b + 1] - starts[a])[None]
        spans, D_own = owned_spans(blocks, a, b), device.put(D[own])
        parts = [Operand(device.put(np.ascontiguousarray(half[own]))) for half in (X[:, :4], X[:, 4:])]
        dW = sum_tree(group, device.gram_roots(parts, D_own, local, spans), cuts, blocks)
        db = sum_tree(group, device.column_roots(D_own, local, spans), cuts, blocks)
        assert device.get(dW).tobytes() == tree_sum(np.stack(leaves).reshape(blocks, 30)).tobytes()
        assert device.get(db).tobytes() == tree_sum(sums).tobytes()


@pytest.mark.mpi_skip
def test_nothing_keeps_the_sums_of_subtrees():
    """A training would hold those of many epochs, on a GPU too, until Python looks for cycles."""
    roots = owned_roots(13, 0, 5) + owned_roots(13, 5, 13)
    rows = np.ones((len(roots), 3), dtype=np.float32)
    held = weakref.ref(rows)
    gc.disable()
    try:
        found = finish_tree(rows, roots, 13)
        del rows
        assert held() is None and found.tolist() == [len(roots)] * 3
    finally:
        gc.enable()
