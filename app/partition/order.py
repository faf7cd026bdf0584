"""Renumbering the rows of a graph, before they are cut into blocks.

An order is a function of (graph, seed) alone, never of the number of ranks, so that results stay the same on
any number of them:

natural   as the file numbers its nodes
random    a random permutation: consecutive rows share the work (MG-GCN, section 5.2)
rcm       reverse Cuthill-McKee (1969), SciPy's: neighbours get near numbers
blocks    the blocks of a balanced partition (app/blocks/) one after the other, those of the first half first,
          each in the file's order; as many as with metis
metis     the parts of METIS (Karypis and Kumar 1998) one after the other, each in the file's order; PARTS of
          them, one for each block of rows where there are fewer blocks, whatever the number of ranks

Solutions and predictions are written by the file's ids, which go with the rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from app.blocks.whole import by_levels
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows
from app.graphs.graph import Graph, index_type
from app.graphs.orders import places_of
from app.numerics.pieces import row_pieces
from app.partition.assemble import block_cuts
from app.partition.rows import RowPartition, block_count
from app.partition.scatter import EntryRows, rounds, send_entries, send_rows
from app.rng import stream

PARTS = 64
IMBALANCE = 0.03  # of blocks
SENT_ENTRIES = 1 << 20  # entries of all ranks that one exchange moves, where rows are no longer than that
ORDERING = "ordering the rows"
VALUES = ("weights", "arcs", "transpose_weights")  # of a Graph, one for each entry


def find_order(
    group: Group, graph: Graph, rows: RowPartition, order: str, seed: int, whole_bytes: float
) -> np.ndarray:
    """[n] int64, the same on all ranks: the old number of each new row.

    whole_bytes   largest graph that one rank may hold; "random" needs none
    Ranks         all call
    """
    if order == "random":
        return stream_permutation(seed, graph.n)
    need = 12 * 2 * graph.edges + 24 * graph.n
    if need > whole_bytes:
        raise CaseError(
            f'graph.order = "{order}": {graph.name} needs {need / 1e6:.0f} MB on one rank; '
            '"random", or a larger memory.whole_graph_mb, would be right'
        )
    indptr, indices = _pattern_on_first(group, graph, rows)
    found = np.empty(graph.n, dtype=np.int64)
    with raise_together(group, ORDERING):
        if group.rank == 0:
            found[:] = FROM_PATTERN[order](indptr, indices)
    return group.broadcast(found)


def stream_permutation(seed: int, n: int) -> np.ndarray:
    """[n] int64, a random permutation."""
    return stream(seed, "order").permutation(n)


def _cuthill_mckee(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    n = len(indptr) - 1
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # loads scipy.linalg, for few runs

    pattern = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    return reverse_cuthill_mckee(pattern, symmetric_mode=True)


def _blocks(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Nodes by (block, old number): blocks are numbered half by half, so that few of them are near, too."""
    n = len(indptr) - 1
    parts = _parts(n)
    if parts < 2:
        return np.arange(n)
    ones = np.ones(len(indices), dtype=np.int64)
    rows = WeightedRows(indptr.astype(np.int64), indices.astype(np.int32), ones, np.ones(n, dtype=np.int64))
    most = int((1 + IMBALANCE) * -(-n // parts)) + 1
    return np.argsort(
        by_levels(Balance(rows, np.full(parts, most, dtype=np.int64)), both=False), kind="stable"
    )


def _parts(n: int) -> int:
    return min(PARTS, block_count(n), max(n, 1))


def check_order(order: str) -> None:
    """Refuse an order whose library is not installed. Raises CaseError."""
    if order == "metis" and find_spec("pymetis") is None:
        right = "pip install pymetis, or another order, would be right"
        raise CaseError(f'graph.order = "metis": pymetis is not installed; {right}')


def _metis(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Nodes by (part, old number)."""
    check_order("metis")
    import pymetis

    n = len(indptr) - 1
    parts = _parts(n)
    if parts < 2:
        return np.arange(n)
    adjacency = pymetis.CSRAdjacency(indptr, indices)
    options = pymetis.Options(seed=1)
    _, part_of = pymetis.part_graph(parts, adjacency, recursive=False, options=options)
    return np.argsort(np.asarray(part_of), kind="stable")


FROM_PATTERN = {"rcm": _cuthill_mckee, "blocks": _blocks, "metis": _metis}


def _pattern_on_first(
    group: Group, graph: Graph, rows: RowPartition
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The whole CSR pattern on rank 0, as 32-bit numbers; None elsewhere. Ranks: all call."""
    if 2 * graph.edges >= 1 << 31:
        raise CaseError(f"graph.order: {graph.name} has too many edges for this order; random would be right")
    first = group.rank == 0
    out, into = [0] * group.size, [0] * group.size
    out[0] = len(graph.indices)
    entries = group.gather_integers(np.array([len(graph.indices)]))[:, 0].tolist()
    indices = group.exchange_host(graph.indices, out, entries if first else into)
    out[0] = graph.hi - graph.lo
    degrees = group.exchange_host(graph.degrees(), out, rows.row_counts() if first else into)
    if not first:
        return None, None
    return np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32), indices.astype(np.int32, copy=False)


def reorder(
    group: Group, graph: Graph, rows: RowPartition, order_all: np.ndarray, balance: str | None
) -> tuple[Graph, RowPartition]:
    """The same graph with its rows in another order, and who owns them.

    order_all   [n] int64, the old number of each new row, on all ranks
    balance     "rows" or "edges": cut the blocks anew; None: keep the cuts
    Ranks       all call; the rows move in bounded pieces
    """
    new_of = places_of(order_all)
    numbers = new_of[graph.lo : graph.hi]
    if balance is not None:
        rows = RowPartition(rows.n, rows.starts, _new_cuts(group, graph, rows, numbers, balance))
    lo, hi = rows.range_of(group.rank)
    held = EntryRows(_at_home(group, rows, numbers, graph.degrees()), np.int64, _valued(graph))
    pieces = _pieces(graph, max(1, SENT_ENTRIES // group.size))
    for piece in rounds(group, pieces, ORDERING):
        start, counts, columns, values = piece or _nothing(graph)
        at, counts, (columns, *values) = send_entries(
            group, rows, numbers[start : start + len(counts)], counts, new_of[columns], *values
        )
        held.put(at - lo, counts, columns, values)
    held.sort()
    weights, loops = graph.node_weights, graph.loops
    moved = replace(
        graph, lo=lo, hi=hi, indptr=held.indptr, indices=held.columns.astype(index_type(graph.n)),
        **dict(zip(VALUES, held.values)), ids=_at_home(group, rows, numbers, graph.held_ids()),
        node_weights=None if weights is None else _at_home(group, rows, numbers, weights),
        loops=None if loops is None else _at_home(group, rows, numbers, loops),
    )  # fmt: skip
    return moved, rows


def _new_cuts(
    group: Group, graph: Graph, rows: RowPartition, numbers: np.ndarray, balance: str
) -> np.ndarray:
    """Cuts of the blocks by their rows and entries in the new order."""
    block = np.searchsorted(rows.starts, numbers, side="right") - 1
    sums = np.zeros(len(rows.starts) - 1, dtype=np.int64)
    np.add.at(sums, block, graph.degrees())
    return block_cuts(group, rows.starts, group.sum_integers(sums), balance)


def _at_home(group: Group, rows: RowPartition, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """[hi-lo] values of rows with new numbers, on their new owners, in order. Ranks: all call."""
    lo, hi = rows.range_of(group.rank)
    at, found = send_rows(group, rows, numbers, values)
    own = np.empty(hi - lo, dtype=values.dtype)
    own[at - lo] = found
    return own


def _valued(graph: Graph) -> list[type | None]:
    """The types of what entries have beside columns, None for what they have not."""
    return [None if (values := getattr(graph, name)) is None else values.dtype.type for name in VALUES]


def _values(graph: Graph, cut: slice) -> list[np.ndarray | None]:
    return [None if (values := getattr(graph, name)) is None else values[cut] for name in VALUES]


def _pieces(graph: Graph, most: int) -> Iterator[tuple[int, np.ndarray, np.ndarray, list[Any]]]:
    """(first row, entries of each row, columns, VALUES) of held rows, about `most` entries at a time."""
    for at, stop in row_pieces(graph.indptr, most):
        cut = slice(int(graph.indptr[at]), int(graph.indptr[stop]))
        yield at, np.diff(graph.indptr[at : stop + 1]), graph.indices[cut], _values(graph, cut)


def _nothing(graph: Graph) -> tuple[int, np.ndarray, np.ndarray, list[Any]]:
    """A piece without rows."""
    return 0, np.empty(0, np.int64), graph.indices[:0], _values(graph, slice(0))
