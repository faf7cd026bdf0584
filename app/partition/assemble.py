"""From a stream of edges on rank 0 to every rank's own rows of the symmetric adjacency matrix.

Rank 0 reads and deals the edges out in pieces, in the order of the file; from then on every step is an
exchange, so that no rank ever holds more than its share and one piece. The result does not depend on the
number of ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together, share_failure
from app.errors import GraphError
from app.graphs.graph import Graph, build_rows, index_type
from app.partition.rows import RowPartition, block_count, block_starts, cut_blocks

MOST_NODES = (1 << 32) - 2
COMPLEMENT_ENTRIES = 1 << 31  # directed entries: beyond this a complement is refused


@dataclass(frozen=True)
class EdgeCounts:
    """What the file held: edge lines, of which self loops, repeats, and the other direction of an edge."""

    lines: int
    loops: int
    repeats: int
    reversed: int


@dataclass(eq=False)
class _Dealt:
    """This rank's share of the raw edges."""

    u: np.ndarray
    v: np.ndarray
    weights: np.ndarray | None


def assemble(
    group: Group,
    stream: Any,
    *,
    blocks: int = 0,
    cuts: np.ndarray | None = None,
    complement: bool = False,
    self_loops: str = "drop",
    duplicates: str = "merge",
    balance: str = "edges",
) -> tuple[Graph, RowPartition, EdgeCounts]:
    """This rank's rows of the graph that a stream describes.

    stream       an EdgeStream on rank 0; other ranks pass None
    blocks, cuts for a set of graphs that share them; 0 and None: by this graph alone
    complement   True: the graph of the missing edges
    Ranks        all call; errors of the reader are raised on all
    """
    name, nodes, first_id, weighted = _share_header(group, stream)
    if nodes > MOST_NODES:
        raise GraphError(
            f"{name}: {nodes} nodes; decisions are made on keys of 32 bits: at most {MOST_NODES}"
        )
    dealt = _deal(group, stream, weighted)
    ids_part = None
    if nodes < 0:
        nodes, ids_part = _compact_ids(group, dealt)
    lines, loops = group.sum_integers(np.array([len(dealt.u), np.count_nonzero(dealt.u == dealt.v)])).tolist()
    _refuse(self_loops == "error" and loops, name, f"{loops} self loops", "graph.self_loops", "drop")
    blocks = blocks or block_count(nodes)
    starts = block_starts(nodes, blocks)
    if cuts is None:
        cuts = cut_blocks(_block_weights(group, dealt, starts, balance), group.size)
    rows = RowPartition(nodes, starts, cuts)
    lo, hi = rows.range_of(group.rank)
    indptr, indices, weights, arcs_own = _route(group, dealt, rows)
    entries, arcs = group.sum_integers(np.array([len(indices), arcs_own])).tolist()
    edges = entries // 2
    repeats = lines - loops - arcs
    _refuse(duplicates == "error" and repeats, name, f"{repeats} repeated edges", "graph.duplicates", "merge")
    if complement:
        with raise_together(group, "taking the complement"):
            indptr, indices = _complement(name, nodes, lo, hi, indptr, indices)
        weights, edges = None, nodes * (nodes - 1) // 2 - edges
    ids = None if ids_part is None else _spread_rows(group, ids_part, rows)
    node_weights = _deal_node_weights(group, stream, rows)
    graph = Graph(
        name, nodes, lo, hi, indptr, indices.astype(index_type(nodes)), edges, weights, ids, first_id,
        node_weights,
    )  # fmt: skip
    return graph, rows, EdgeCounts(lines, loops, repeats, arcs - edges)


def _refuse(found: int | bool, name: str, what: str, key: str, remedy: str) -> None:
    if found:
        raise GraphError(f'{name}: {what}; clean the file, or set {key}="{remedy}" to let them pass')


def _share_header(group: Group, stream: Any) -> tuple[str, int, int, bool]:
    """Name, node count (-1: unknown), first id and whether weighted, from rank 0 to all."""
    numbers = np.zeros(3, dtype=np.int64)
    if group.rank == 0:
        known = -1 if stream.nodes is None else stream.nodes
        numbers[:] = known, stream.first_id, int(stream.weighted)
    name = group.broadcast_text(stream.name if group.rank == 0 else "")
    nodes, first_id, weighted = group.broadcast(numbers).tolist()
    return name, nodes, first_id, bool(weighted)


def _deal(group: Group, stream: Any, weighted: bool) -> _Dealt:
    """Rank 0 reads piece by piece; each piece is dealt to the ranks in equal consecutive parts."""
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
    source = _guarded(stream.chunks()) if group.rank == 0 else None
    while True:
        u = v = np.empty(0, dtype=np.int64)
        w: np.ndarray | None = np.empty(0, dtype=np.float32)
        failure, more = None, False
        if source is not None:
            piece, failure = next(source)
            if piece is not None:
                more, (u, v, w) = True, piece
        share_failure(group, failure, "reading the graph")
        if not group.max_integer(int(more)):
            break
        if group.size == 1:
            parts.append((u, v, w))
            continue
        bounds = len(u) * np.arange(group.size + 1) // group.size
        counts = group.broadcast(np.diff(bounds).astype(np.int64))
        mine = [0] * group.size
        mine[0] = int(counts[group.rank])
        out = counts.tolist() if group.rank == 0 else [0] * group.size
        pair = group.exchange_host(np.ascontiguousarray(np.stack([u, v], axis=1)), out, mine)
        w_own = None
        if weighted:
            w_own = group.exchange_host(np.ascontiguousarray(w, dtype=np.float32), out, mine)
        parts.append((pair[:, 0], pair[:, 1], w_own))
    if not parts:
        parts.append((np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)))
    u, v, w = ([p[i] for p in parts] for i in range(3))
    return _Dealt(np.concatenate(u), np.concatenate(v), np.concatenate(w) if weighted else None)


def _guarded(chunks: Iterator[Any]) -> Iterator[tuple[Any, Exception | None]]:
    """(piece, None) for each piece, then (None, None); (None, error) when reading fails."""
    try:
        for piece in chunks:
            yield piece, None
    except Exception as error:  # shared with all ranks by the caller
        yield None, error
    yield None, None


def _compact_ids(group: Group, dealt: _Dealt) -> tuple[int, np.ndarray]:
    """Number the ids that occur 0..n-1 in ascending order of id, and renumber the dealt edges.

    returns   n, and this rank's consecutive share of the sorted ids (rank order = id order)
    """
    mine = np.unique(np.concatenate([dealt.u, dealt.v]))
    # Sample sort: regular samples of every rank give the borders between ranks.
    samples = mine[(len(mine) * np.arange(32)) // 32] if len(mine) else np.empty(0, np.int64)
    counts = group.gather_integers(np.array([len(samples)]))[:, 0].tolist()
    pool = np.sort(group.gather_host(samples, counts), kind="stable")
    borders = pool[(len(pool) * np.arange(1, group.size)) // group.size] if len(pool) else pool
    owner = np.searchsorted(borders, mine, side="right") if len(borders) else np.zeros(len(mine), np.int64)
    out = np.bincount(owner, minlength=group.size).tolist()
    into = group.exchange_counts(out)
    asked = group.exchange_host(mine, out, into)
    held = np.unique(asked)
    sizes = group.gather_integers(np.array([len(held)]))[:, 0]
    first = int(sizes[: group.rank].sum())
    answers = group.exchange_host(first + np.searchsorted(held, asked), into, out)
    dealt.u = answers[np.searchsorted(mine, dealt.u)]
    dealt.v = answers[np.searchsorted(mine, dealt.v)]
    return int(sizes.sum()), held


def _block_weights(group: Group, dealt: _Dealt, starts: np.ndarray, balance: str) -> np.ndarray:
    """[blocks] int64, the cost of each block: its rows, or its rows and entries."""
    rows = np.diff(starts)
    if balance == "rows" or group.size == 1:
        return rows
    ends = np.concatenate([dealt.u, dealt.v])
    entries = np.bincount(np.searchsorted(starts[1:], ends, side="right"), minlength=len(rows))
    # A row costs about as much as sixteen entries: dense products against one gathered row each.
    return 16 * rows + group.sum_integers(entries[: len(rows)])


def _route(
    group: Group, dealt: _Dealt, rows: RowPartition
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """Send both directions of every edge to the rank that owns the row; build the CSR rows there.

    returns   indptr, indices, weights, and the distinct arcs as written in the file that start here
    """
    lo, hi = rows.range_of(group.rank)
    source = np.concatenate([dealt.u, dealt.v])
    target = np.concatenate([dealt.v, dealt.u])
    weights = None if dealt.weights is None else np.concatenate([dealt.weights, dealt.weights])
    written = np.repeat(np.array([1, 0], dtype=np.int8), len(dealt.u))
    dealt.u = dealt.v = np.empty(0, np.int64)
    if group.size > 1:
        owner = rows.owner(source)
        order = np.argsort(owner, kind="stable")
        out = np.bincount(owner, minlength=group.size).tolist()
        into = group.exchange_counts(out)
        source = group.exchange_host(source[order], out, into)
        target = group.exchange_host(target[order], out, into)
        written = group.exchange_host(written[order], out, into)
        weights = None if weights is None else group.exchange_host(weights[order], out, into)
    as_written = (written == 1) & (source != target)
    arcs = len(np.unique((source[as_written] - lo) * rows.n + target[as_written]))
    return *build_rows(source, target, weights, lo, hi), arcs


def _complement(
    name: str, n: int, lo: int, hi: int, indptr: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """CSR rows of the missing edges."""
    if (hi - lo) * n > COMPLEMENT_ENTRIES:
        raise GraphError(f"{name}: the complement of {n} nodes is too large for this number of ranks")
    missing = []
    for row in range(hi - lo):
        absent = np.ones(n, dtype=bool)
        absent[indices[indptr[row] : indptr[row + 1]]] = False
        absent[lo + row] = False
        missing.append(np.flatnonzero(absent))
    counts = np.array([len(m) for m in missing], dtype=np.int64)
    filled = np.concatenate(missing) if missing else np.empty(0, np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), filled


def _spread_rows(group: Group, part: np.ndarray, rows: RowPartition) -> np.ndarray:
    """Move consecutive shares of a per-row array to the owners of the rows."""
    if group.size == 1:
        return part
    sizes = group.gather_integers(np.array([len(part)]))[:, 0]
    first = int(sizes[: group.rank].sum())
    owner = rows.owner(np.arange(first, first + len(part)))
    out = np.bincount(owner, minlength=group.size).tolist()
    into = group.exchange_counts(out)
    return group.exchange_host(np.ascontiguousarray(part), out, into)


def _deal_node_weights(group: Group, stream: Any, rows: RowPartition) -> np.ndarray | None:
    """Rank 0's node weights, if the file has any, to the owners of the rows."""
    held = group.rank == 0 and stream.node_weights is not None
    if not group.max_integer(int(held)):
        return None
    counts = rows.row_counts()
    values = np.ascontiguousarray(stream.node_weights, dtype=np.float32) if held else np.empty(0, np.float32)
    mine = [0] * group.size
    mine[0] = counts[group.rank]
    return group.exchange_host(values, counts if held else [0] * group.size, mine)


def gather_whole(group: Group, graph: Graph, rows: RowPartition) -> Graph:
    """The whole graph on every rank (bounds and baselines: the caller checks the memory limit first).

    Ranks   all call
    """
    if group.size == 1:  # graph.whole would differ between ranks where one of them owns every row
        return graph
    counts = rows.row_counts()
    degrees = group.gather_host(graph.degrees(), counts)
    entries = group.gather_integers(np.array([len(graph.indices)]))[:, 0].tolist()
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)

    def whole(part: np.ndarray | None, sizes: list[int]) -> np.ndarray | None:
        return None if part is None else group.gather_host(np.ascontiguousarray(part), sizes)

    return Graph(
        graph.name, graph.n, 0, graph.n, indptr, whole(graph.indices, entries), graph.edges,
        whole(graph.weights, entries), whole(graph.ids, counts), graph.first_id,
        whole(graph.node_weights, counts),
    )  # fmt: skip
