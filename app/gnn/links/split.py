"""Edges that are held out of a graph, and pairs that no edge joins to compare them with.

Whether an edge is held out is a function of the seed and its two nodes, whatever ranks, rows and order.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.gnn.links.pairs import among, joined_rows
from app.gnn.links.sides import Sides
from app.graphs.generators.random_nodes import hashed
from app.graphs.graph import Graph
from app.graphs.keys import shared_keys, sorted_set
from app.partition.loaded import Loaded
from app.partition.rows import RowPartition
from app.rng import key_of, stream

PIECE = 1 << 20  # stored entries that are looked at together
KEPT, VAL, TEST = 0, 1, 2
Spans = dict[int, tuple[float, float]]  # by kind the part of [0, 1) that its edges are drawn to
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
    sides    two kinds of nodes, of which pairs have one each; None: any two nodes are a pair
    """

    loaded: Loaded
    sets: dict[str, PairSet]
    sides: Sides | None = None

    @property
    def held(self) -> np.ndarray:
        """[k, 2] the pairs that are held out."""
        return np.concatenate([self.sets["val"].joined, self.sets["test"].joined])


def spans_of(validation: float, test: float) -> Spans:
    """The spans of shares of the edges, one after the other."""
    return {VAL: (0.0, validation), TEST: (validation, validation + test)}


def split_edges(
    group: Group, loaded: Loaded, spans: Spans, seed: int,
    val: np.ndarray | None = None, test: np.ndarray | None = None, sides: Sides | None = None,
    folds: int = 0,
) -> LinkSplit:  # fmt: skip
    """Hold edges out, some to choose the weights by, some to tell how good they are.

    spans       that edges are drawn to, each by itself
    val, test   [k, 2] rows u < v of given sets, on all ranks, in place of a span; edges among them are held
                out, other pairs count as joined too
    sides       of the graph's nodes; None: pairs are of any two
    folds       how many the spans are of, for what is said; 0: they are shares of [links]
    Ranks       all call. Raises CaseError where no edge is left to learn from
    """
    graph, n = loaded.graph, loaded.graph.n
    given = {VAL: val, TEST: test}
    given = {kind: pairs for kind, pairs in given.items() if pairs is not None}
    known = {kind: sorted_set(pairs[:, 0] * n + pairs[:, 1]) for kind, pairs in given.items()}
    both = shared_keys(*known.values()) if len(known) == 2 else ()
    if len(both):
        said = f"edge {graph.called(*divmod(int(both[0]), n))} is in both"
        raise CaseError(f"links.val_edges, links.test_edges: {said}; in one of them would be right")
    spans = {kind: span for kind, span in spans.items() if kind not in known}
    kinds, some = _kinds(loaded, spans, known, seed)
    rest = _without(group, graph, kinds == KEPT)
    if not rest.edges and folds:
        right = f"more folds, or more edges than the {graph.edges} of {graph.name}, would be right"
        raise CaseError(f"study.folds: no edge is left to learn from beside one of {folds} folds; {right}")
    if not rest.edges:
        held = "links.held_out" if test is None else "links.test_edges"
        chosen = "links.validation" if val is None else "links.val_edges"
        raise CaseError(f"{held}, {chosen}: no edge is left to learn from; less would be right")
    parts = {kind: _of_kind(group, graph, kinds == kind) for kind in (VAL, TEST)}
    joined = parts | {kind: np.stack(np.divmod(keys, n), axis=1) for kind, keys in known.items()}
    wanted = min(max(*map(len, joined.values()), 1), SHOWN)
    shown = _of_kind(group, graph, (kinds == KEPT) & (some < _share(wanted / rest.edges)))
    sets = {"train": shown, "val": joined[VAL], "test": joined[TEST]}
    every = sorted_set(np.concatenate([*known.values(), np.empty(0, dtype=np.int64)]))
    draw = partial(_draw_apart, group, graph, loaded.rows, every, sides)
    both_kinds = {name: PairSet(pairs, draw(len(pairs), seed, name)) for name, pairs in sets.items()}
    return LinkSplit(replace(loaded, graph=rest), both_kinds, sides)


def _share(share: float) -> np.uint64:
    """The 32-bit hash below which this share of all lie."""
    return np.uint64(min(max(share, 0.0), 1.0) * (1 << 32))


def _kinds(
    loaded: Loaded, spans: Spans, known: dict[int, np.ndarray], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """[nnz] uint8, what each own entry is for, and [nnz] uint32 another hash of it.

    spans    of a hash, by kind     known   keys u n + v, u < v, of given sets
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
        for kind, (first, end) in spans.items():
            kinds[part][(z >= _share(first)) & (z < _share(end))] = kind
        for kind, keys in known.items():
            kinds[part][among(keys, low(rows, columns) * n + high(rows, columns))] = kind
    return kinds, some


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


def _draw_apart(
    group: Group, graph: Graph, rows: RowPartition, known: np.ndarray, sides: Sides | None, count: int,
    seed: int, name: str,
) -> np.ndarray:  # fmt: skip
    """[count, 2] different pairs u < v, uniform among those that neither an edge joins nor a given set has.

    known   keys u n + v of the given sets     sides   pairs are of two sides; None: of any two nodes
    Fewer where DRAWS times as many draws find no more. Ranks: all call
    """
    n, draws = graph.n, stream(seed, f"links/apart/{name}")
    found, drawn = np.empty(0, dtype=np.int64), 0
    while len(found) < count and drawn < DRAWS * count + 1000 and n > 1:
        ends = _draw_ends(draws, 2 * (count - len(found)) + 16, n, sides)
        drawn += len(ends)
        ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
        ends = ends[~joined_rows(group, graph, rows, ends)]
        keys = ends[:, 0] * n + ends[:, 1]
        keys = np.concatenate([found, keys[~among(known, keys)]])
        found = keys[np.sort(np.unique(keys, return_index=True)[1])][:count]  # in the order of the draws
    return np.stack(np.divmod(found, n), axis=1) if len(found) else NO_PAIRS


def _draw_ends(draws: np.random.Generator, count: int, n: int, sides: Sides | None) -> np.ndarray:
    """[count, 2] rows of n drawn uniformly, with sides one of each."""
    if sides is None:
        return draws.integers(0, n, (count, 2))
    return np.stack([rows[draws.integers(0, len(rows), count)] for rows in sides.rows], axis=1)
