"""Edges that are held out of a graph, and pairs that no edge joins to compare them with.

Whether an edge is held out is a function of the seed and its two nodes, whatever ranks, rows and order.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.graphs.generators.random_nodes import hashed
from app.graphs.graph import Graph
from app.partition.load import Loaded
from app.partition.rows import RowPartition
from app.rng import key_of, stream

PIECE = 1 << 20  # stored entries that are looked at together
KEPT, VAL, TEST = 0, 1, 2
DRAWS = 50  # times as many pairs as are wanted: of a graph with hardly a pair apart there are fewer
SHOWN = 10_000  # edges that are learned from, at most, whose scores are told too


@dataclass(frozen=True, eq=False)
class PairSet:
    """joined [k, 2] and apart [m, 2] int64, rows u < v: pairs with an edge, and without; on all ranks."""

    joined: np.ndarray
    apart: np.ndarray

    @cached_property
    def both(self) -> np.ndarray:
        """[k + m, 2], the joined ones first."""
        return np.concatenate([self.joined, self.apart])

    @property
    def told(self) -> int:
        """Edges that scores can tell from pairs without one: none where there are no such pairs."""
        return len(self.joined) if len(self.apart) else 0


NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """The edges of a graph by what they are for.

    loaded   the graph of the edges that are learned from
    sets     "train" (some of these edges), "val", "test": with as many pairs that no edge of any set joins
    """

    loaded: Loaded
    sets: dict[str, PairSet]

    @property
    def held(self) -> np.ndarray:
        """[k, 2] the pairs that are held out."""
        return np.concatenate([self.sets["val"].joined, self.sets["test"].joined])


def split_edges(
    group: Group, loaded: Loaded, shares: tuple[float, float], seed: int,
    val: np.ndarray | None = None, test: np.ndarray | None = None,
) -> LinkSplit:  # fmt: skip
    """Hold edges out, some to choose the weights by, some to tell how good they are.

    shares      of the edges, validation and test; each edge is drawn by itself
    val, test   [k, 2] rows u < v of given sets, on all ranks, in place of a share; edges among them are held
                out, other pairs count as joined too
    Ranks       all call. Raises CaseError where no edge is left to learn from
    """
    graph, n = loaded.graph, loaded.graph.n
    given = {VAL: val, TEST: test}
    given = {kind: pairs for kind, pairs in given.items() if pairs is not None}
    known = {kind: np.unique(pairs[:, 0] * n + pairs[:, 1]) for kind, pairs in given.items()}
    both = np.intersect1d(*known.values()) if len(known) == 2 else ()
    if len(both):
        said = f"edge {graph.called(*divmod(int(both[0]), n))} is in both"
        raise CaseError(f"links.val_edges, links.test_edges: {said}; in one of them would be right")
    limits = np.cumsum([0.0 if kind in known else share for kind, share in zip((VAL, TEST), shares)])
    kinds, some = _kinds(loaded, limits, known, seed)
    rest = _without(group, graph, kinds == KEPT)
    if not rest.edges:
        held = "links.held_out" if test is None else "links.test_edges"
        chosen = "links.validation" if val is None else "links.val_edges"
        raise CaseError(f"{held}, {chosen}: no edge is left to learn from; less would be right")
    parts = {kind: _of_kind(group, graph, kinds == kind) for kind in (VAL, TEST)}
    joined = parts | {kind: np.stack(np.divmod(keys, n), axis=1) for kind, keys in known.items()}
    wanted = min(max(*map(len, joined.values()), 1), SHOWN)
    shown = _of_kind(group, graph, (kinds == KEPT) & (some < _share(wanted / rest.edges)))
    sets = {"train": shown, "val": joined[VAL], "test": joined[TEST]}
    every = np.unique(np.concatenate([*known.values(), np.empty(0, dtype=np.int64)]))
    draw = partial(_draw_apart, group, graph, loaded.rows, every)
    both_kinds = {name: PairSet(pairs, draw(len(pairs), seed, name)) for name, pairs in sets.items()}
    return LinkSplit(replace(loaded, graph=rest), both_kinds)


def _share(share: float) -> np.uint64:
    """The 32-bit hash below which this share of all lie."""
    return np.uint64(min(max(share, 0.0), 1.0) * (1 << 32))


def _kinds(
    loaded: Loaded, limits: np.ndarray, known: dict[int, np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """[nnz] uint8, what each own entry is for, and [nnz] uint32 another hash of it.

    limits   shares up to which a hash is of VAL, and of TEST     known   keys u n + v, u < v, of given sets
    """
    graph, n, old = loaded.graph, loaded.graph.n, loaded.order_all
    kinds = np.zeros(len(graph.indices), dtype=np.uint8)
    some = np.zeros(len(graph.indices), dtype=np.uint32)
    key = np.uint64(key_of(seed, "links/split"))
    low, high = np.minimum, np.maximum
    for lo in range(0, len(kinds), PIECE):
        part = slice(lo, lo + PIECE)
        columns = graph.indices[part].astype(np.int64)
        rows = graph.lo + np.searchsorted(graph.indptr, np.arange(lo, lo + len(columns)), side="right") - 1
        u, v = (rows, columns) if old is None else (old[rows], old[columns])
        z = hashed(key, (low(u, v) * n + high(u, v)))
        some[part] = z & np.uint64(0xFFFFFFFF)
        z >>= np.uint64(32)
        kinds[part] = np.where(z < _share(limits[0]), VAL, np.where(z < _share(limits[1]), TEST, KEPT))
        for kind, keys in known.items():
            kinds[part][among(keys, low(rows, columns) * n + high(rows, columns))] = kind
    return kinds, some


def among(keys: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """[k] bool, which of `asked` [k] are among ascending keys."""
    if not len(keys):
        return np.zeros(len(asked), dtype=bool)
    return keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked


def _without(group: Group, graph: Graph, kept: np.ndarray) -> Graph:
    """The graph of the entries that are kept [nnz] bool. Ranks: all call."""
    before = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(kept, out=before[1:])
    stored = int(group.sum_integers(before[-1:])[0])
    weights = None if graph.weights is None else graph.weights[kept]
    return replace(
        graph, indptr=before[graph.indptr], indices=graph.indices[kept], weights=weights, edges=stored // 2
    )


def _of_kind(group: Group, graph: Graph, chosen: np.ndarray) -> np.ndarray:
    """[k, 2] int64, the pairs u < v of the entries [nnz] bool of all ranks, ascending. Ranks: all call."""
    at = np.flatnonzero(chosen)
    rows = graph.lo + np.searchsorted(graph.indptr, at, side="right") - 1
    pairs = np.stack([rows, graph.indices[at].astype(np.int64)], axis=1)
    pairs = np.ascontiguousarray(pairs[pairs[:, 0] < pairs[:, 1]])
    return group.gather_host(pairs, group.gather_integers(np.array([len(pairs)]))[:, 0].tolist())


def joined_rows(group: Group, graph: Graph, rows: RowPartition, pairs: np.ndarray) -> np.ndarray:
    """[k] bool on all ranks, which pairs of rows [k, 2] are edges of a graph. Ranks: all call."""
    found = np.zeros(len(pairs), dtype=np.int64)
    mine = np.flatnonzero(rows.owner(pairs[:, 0]) == group.rank)
    for lo in range(0, len(mine), PIECE):
        at = mine[lo : lo + PIECE]
        u, v = pairs[at].T
        found[at] = find_columns(graph, u, v)
    return group.sum_integers(found) > 0


def find_columns(graph: Graph, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[k] bool, which pairs of a held row u and any row v, [k] each, are edges: rows are halved together."""
    columns, last = graph.indices, max(len(graph.indices) - 1, 0)
    lo, end = (graph.indptr[u - graph.lo + k] for k in (0, 1))
    hi = end
    while (lo < hi).any():
        middle = (lo + hi) // 2
        below = (lo < hi) & (columns[np.minimum(middle, last)] < v)
        hi = np.where((lo < hi) & ~below, middle, hi)
        lo = np.where(below, middle + 1, lo)
    inside = lo < end
    inside[inside] = columns[lo[inside]] == v[inside]
    return inside


def _draw_apart(
    group: Group, graph: Graph, rows: RowPartition, known: np.ndarray, count: int, seed: int, name: str
) -> np.ndarray:
    """[count, 2] different pairs u < v, uniform among those that neither an edge joins nor a given set has.

    known   keys u n + v of the given sets. Fewer where DRAWS times as many draws find no more
    Ranks   all call
    """
    n, draws = graph.n, stream(seed, f"links/apart/{name}")
    found, drawn = np.empty(0, dtype=np.int64), 0
    while len(found) < count and drawn < DRAWS * count + 1000 and n > 1:
        ends = draws.integers(0, n, (2 * (count - len(found)) + 16, 2))
        drawn += len(ends)
        ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
        ends = ends[~joined_rows(group, graph, rows, ends)]
        keys = ends[:, 0] * n + ends[:, 1]
        keys = np.concatenate([found, keys[~among(known, keys)]])
        found = keys[np.sort(np.unique(keys, return_index=True)[1])][:count]  # in the order of the draws
    return np.stack(np.divmod(found, n), axis=1) if len(found) else NO_PAIRS
