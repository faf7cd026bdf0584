"""From a stream of edges to every rank's own rows of the symmetric adjacency matrix.

Each rank first holds a share of the raw edges, 8 bytes each: its part of the file, or what rank 0 read and
dealt. From then on every step is an exchange in bounded pieces; raw edges give their memory back as their
two entries go to the owners of the rows. So a rank never holds more than 16 bytes for each edge of its share,
some numbers for each node, and one piece. The result does not depend on the number of ranks.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app import stopping
from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError, Halted
from app.graphs.derived import complement_rows
from app.graphs.formats.counted import check_share
from app.graphs.graph import Graph
from app.graphs.kernels import count_ids, deal_pairs
from app.graphs.pairs import Pairs
from app.graphs.rows import Rows, row_builder
from app.partition.deal import (
    ASKED,
    check_nodes,
    compact_ids,
    deal,
    halt_if_asked,
    number_names,
    read_part,
    share_header,
)
from app.partition.rows import RowPartition, block_count, block_starts, cut_blocks

COMPLEMENT_ENTRIES = 1 << 31  # directed entries: beyond this a complement is refused
ROUTED_PAIRS = 1 << 17  # pairs of all ranks that one exchange moves
STEPS = ("edges", "ids", "rows")  # of a reading: lines to pairs, ids to numbers, pairs to rows


@dataclass(frozen=True)
class EdgeCounts:
    """What the file held: edge lines, of which self loops, repeats, and the other direction of an edge."""

    lines: int
    loops: int
    repeats: int
    reversed: int


@dataclass(frozen=True, eq=False)
class Built:
    """This rank's rows, how rows are partitioned, and what the edges were.

    block_ends   [blocks] int64, ends of raw edges in each block of rows, on all ranks
    seconds      of each step of the reading on this rank; empty: it was read earlier
    """

    graph: Graph
    rows: RowPartition
    counts: EdgeCounts
    block_ends: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EdgeRules:
    """What a table [graph] wants of a stream's edges.

    complement               True: the graph of the missing edges
    self_loops, duplicates   "error": edges that have any are refused
    """

    complement: bool = False
    self_loops: str = "drop"
    duplicates: str = "merge"

    @classmethod
    def of(cls, table: GraphCase) -> "EdgeRules":
        """Of a table [graph]."""
        return cls(table.complement, table.self_loops, table.duplicates)


AS_THEY_ARE = EdgeRules()


def assemble(
    group: Group, stream: Any, rules: EdgeRules = AS_THEY_ARE, *, blocks: int = 0,
    cuts: np.ndarray | None = None, balance: str = "edges", parts: bool = False, neighbours: str = "both",
) -> tuple[Graph, RowPartition, EdgeCounts]:  # fmt: skip
    """This rank's rows of the graph that a stream describes.

    stream       an EdgeStream on rank 0; other ranks pass None
    blocks, cuts for a set of graphs that share them; 0 and None: by this graph alone
    parts        True: every rank passes the same stream, and reads its own part of it
    neighbours   "in", "out": of a directed graph, see graphs/rows.py
    Ranks        all call; errors of the reader are raised on all
    """
    built = build(group, stream, blocks, cuts, balance, parts, neighbours)
    refuse_unwanted(built, rules)
    graph = complement_of(group, built.graph) if rules.complement else built.graph
    return graph, built.rows, built.counts


def build(
    group: Group, stream: Any, blocks: int, cuts: np.ndarray | None, balance: str, parts: bool,
    neighbours: str = "both",
) -> Built:  # fmt: skip
    """The rows of a stream's graph as they are; arguments as for `assemble`. Ranks: all call."""
    name, nodes, first_id, weighted, undirected, names = share_header(group, stream)
    if undirected:
        neighbours = "both"
    check_nodes(name, nodes)
    times = [time.monotonic()]
    pairs = read_part(group, stream, weighted) if parts else None
    if pairs is None:
        pairs = deal(group, stream, weighted)
    times.append(time.monotonic())
    ids_part = ends = None
    if nodes < 0:
        nodes, ids_part, ends = (
            compact_ids(group, pairs) if not names else (*number_names(group, stream, pairs), None)
        )
        check_nodes(name, nodes)
    lines, loops = group.sum_integers(np.array([pairs.count, pairs.loops])).tolist()
    with raise_together(group, "counting edges"):
        if group.rank == 0 and stream.path:
            check_share(name, nodes, lines)
        ends = _count_ends(name, pairs, nodes) if ends is None else ends
    times.append(time.monotonic())
    blocks = blocks or block_count(nodes)
    starts = block_starts(nodes, blocks)
    block_ends = group.sum_integers(_by_block(ends, starts))
    rows = RowPartition(
        nodes, starts, block_cuts(group, starts, block_ends, balance) if cuts is None else cuts
    )
    lo, hi = rows.range_of(group.rank)
    own = _route(group, pairs, rows, _own_counts(group, ends, rows), neighbours)
    entries, arcs = group.sum_integers(np.array([len(own.indices), own.written])).tolist()
    ids = None if ids_part is None else _spread_rows(group, ids_part, rows)
    graph = Graph(
        name, nodes, lo, hi, own.indptr, own.indices, entries // 2, own.weights, ids, first_id,
        _deal_node_weights(group, stream, rows), own.arcs, own.transpose_weights, own.loops,
    )  # fmt: skip
    counts = EdgeCounts(lines, loops, lines - loops - arcs, arcs - entries // 2)
    times.append(time.monotonic())
    return Built(graph, rows, counts, block_ends, dict(zip(STEPS, np.diff(times).tolist())))


def refuse_unwanted(built: Built, rules: EdgeRules) -> None:
    """Raise where a case wants no loops or no repeats ("error"), on all ranks alike."""
    name, counts = built.graph.name, built.counts
    if rules.self_loops == "error":
        _refuse(counts.loops, name, "self loops", "graph.self_loops", "drop")
    if rules.duplicates == "error":
        _refuse(counts.repeats, name, "repeated edges", "graph.duplicates", "merge")


def _refuse(found: int, name: str, what: str, key: str, remedy: str) -> None:
    if found:
        raise GraphError(f'{name}: {found} {what}; clean the file, or set {key}="{remedy}" to let them pass')


def block_cuts(group: Group, starts: np.ndarray, block_ends: np.ndarray, balance: str) -> np.ndarray:
    """[ranks+1] int64, cuts of the blocks that share out the rows ("rows"), or the rows and their entries."""
    rows = np.diff(starts)
    if balance == "rows" or group.size == 1:
        return cut_blocks(rows, group.size)
    # A row costs about as much as sixteen entries: dense products against one gathered row each.
    return cut_blocks(16 * rows + block_ends, group.size)


def _count_ends(name: str, pairs: Pairs, nodes: int) -> np.ndarray:
    """[n] uint32, how many ends of this rank's pairs each node is."""
    ends = np.zeros(nodes, dtype=np.uint32)
    for piece in pairs.pieces():
        halt_if_asked()
        if int(piece.max()) >= nodes:
            raise GraphError(f"{name}: found node {piece.max()}; 0..{nodes - 1} would be right")
        count_ids(piece, ends)
    return ends


def _by_block(ends: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """[blocks] int64, the sums of `ends` [n] over the rows of each block."""
    sums = np.concatenate([[0], np.cumsum(ends, dtype=np.int64)])
    return np.diff(sums[np.minimum(starts, len(ends))])


def _own_counts(group: Group, ends: np.ndarray, rows: RowPartition) -> np.ndarray:
    """[hi-lo] int64, how many entries each own row gets from all ranks."""
    sizes = rows.row_counts()
    mine = sizes[group.rank]
    found = group.exchange_host(ends, sizes, [mine] * group.size)
    return found.reshape(group.size, mine).sum(axis=0, dtype=np.int64)


def _route(group: Group, pairs: Pairs, rows: RowPartition, counts: np.ndarray, neighbours: str) -> Rows:
    """Send both directions of every edge to the rank that owns the row; build the CSR rows there.

    counts    [hi-lo] how many entries each own row will get
    """
    lo, _ = rows.range_of(group.rank)
    built = row_builder(rows.n, lo, counts, pairs.weights is not None, neighbours, halt_if_asked)
    most = max(1, ROUTED_PAIRS // group.size)
    for _ in range(group.max_integer(-(-pairs.count // most))):
        if group.max_integer(int(stopping.asked())):
            raise Halted(ASKED)
        ends, weights = pairs.take(most)
        if group.size == 1:
            built.add_pairs(ends, weights)
            continue
        entries, weights, out = deal_pairs(ends, weights, rows.offsets, rows.n)
        into = group.exchange_counts(out)
        entries = group.exchange_host(entries, out, into)
        built.add_entries(entries, None if weights is None else group.exchange_host(weights, out, into))
    with raise_together(group, "sorting the rows"):
        halt_if_asked()
        finished = built.finish()
    return finished


def complement_of(group: Group, graph: Graph) -> Graph:
    """The same rows of the graph of the missing edges, without edge weights. Ranks: all call."""
    n, edges = graph.n, graph.n * (graph.n - 1) // 2 - graph.edges
    with raise_together(group, "taking the complement"):
        if (graph.hi - graph.lo) * n > COMPLEMENT_ENTRIES:
            raise GraphError(
                f"{graph.name}: the complement of {n} nodes is too large for this number of ranks"
            )
        indptr, indices = complement_rows(n, graph.lo, graph.indptr, graph.indices)
    return replace(graph, indptr=indptr, indices=indices, edges=edges, weights=None)


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
        whole(graph.node_weights, counts), whole(graph.arcs, entries),
        whole(graph.transpose_weights, entries), whole(graph.loops, counts),
    )  # fmt: skip
