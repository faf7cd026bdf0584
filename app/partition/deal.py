"""A stream's raw edges on the ranks: each reads its part of the file, or rank 0 reads and deals.

Either way a rank holds a share of the edges as the file has them (graphs/pairs.py), in no particular order;
ids are then numbered.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app import stopping
from app.comm.group import Group
from app.comm.guard import share_failure
from app.errors import GraphError, Halted
from app.graphs.ids import name_numbers
from app.graphs.kernels import count_ids, renumber
from app.graphs.keys import sorted_set
from app.graphs.pairs import Pairs, check_ends
from app.watchdog import beat

MOST_NODES = (1 << 32) - 2
SMALL_TABLE = 1 << 16  # ids: up to here a table of all of them is always worth its memory
PIECE, END, FAILED = 1, 2, 3
ASKED = "asked to stop while the graph is read"


def check_nodes(name: str, nodes: int) -> None:
    if nodes > MOST_NODES:
        raise GraphError(
            f"{name}: {nodes} nodes; decisions are made on keys of 32 bits: at most {MOST_NODES}"
        )


def halt_if_asked() -> None:
    """Raise Halted where this rank is asked to stop, for the caller to share."""
    if stopping.asked():
        raise Halted(ASKED)


def share_header(group: Group, stream: Any) -> tuple[str, int, int, bool, bool, bool]:
    """Name, node count (-1: unknown), first id, whether weighted, undirected, named, from rank 0 to all."""
    numbers = np.zeros(5, dtype=np.int64)
    if group.rank == 0:
        known = -1 if stream.nodes is None else stream.nodes
        flags = stream.weighted, stream.undirected, stream.named
        numbers[:] = known, stream.first_id, *map(int, flags)
    name = group.broadcast_text(stream.name if group.rank == 0 else "")
    nodes, first_id, *flags = group.broadcast(numbers).tolist()
    return name, nodes, first_id, *map(bool, flags)


def read_part(group: Group, stream: Any, weighted: bool) -> Pairs | None:
    """This rank's part of a stream; None on all ranks where one of them failed, or edges are missing.

    The stream is then to be read from its start, for its message, or for what only that understands.
    """
    pairs, failed = Pairs(weighted), 0
    try:
        for u, v, w in stream.part(stream, group.rank, group.size):
            pairs.append(u, v, w)
            halt_if_asked()
    except Exception:  # whatever it is, reading from the start meets it again
        failed = 1
    lines, failures = group.sum_integers(np.array([pairs.count, failed])).tolist()
    return pairs if not failures and stream.lines in (None, lines) else None


def deal(group: Group, stream: Any, weighted: bool) -> Pairs:
    """Rank 0 reads piece by piece; each piece is dealt to the ranks in equal consecutive parts.

    Raises Halted on all ranks where one was asked to stop before, or rank 0 meanwhile.
    """
    if group.max_integer(int(stopping.asked())):
        raise Halted(ASKED)
    pairs = Pairs(weighted)
    source = _guarded(stream.chunks()) if group.rank == 0 else None
    while True:
        beat()
        piece, failure = next(source) if source is not None else (None, None)
        head = np.zeros(3, dtype=np.int64)
        if group.rank == 0:
            wide = piece is not None and _largest(piece) >> 32
            state = FAILED if failure else END if piece is None else PIECE
            head[:] = state, 0 if piece is None else len(piece[0]), bool(wide)
        state, count, wide = group.broadcast(head).tolist()
        if state == FAILED:
            share_failure(group, failure, "reading the graph")
        if state == END:
            return pairs
        if group.size > 1:
            piece = _deal_piece(group, piece, count, np.int64 if wide else np.uint32, weighted)
        pairs.append(*piece)


def _largest(piece: Any) -> int:
    return max(int(ends.max(initial=0)) for ends in piece[:2])


def _deal_piece(group: Group, piece: Any, count: int, kind: type, weighted: bool) -> tuple:
    """This rank's consecutive part of rank 0's piece of `count` edges."""
    counts = np.diff(count * np.arange(group.size + 1) // group.size).tolist()
    into = [counts[group.rank]] + [0] * (group.size - 1)
    out, u, v, w = [0] * group.size, *(np.empty(0, kind) for _ in range(2)), np.empty(0, np.float32)
    if group.rank == 0:
        out, (u, v, w) = counts, piece
    ends = group.exchange_host(np.stack([u, v], axis=1).astype(kind), out, into)
    w_own = group.exchange_host(np.asarray(w, dtype=np.float32), out, into) if weighted else None
    return ends[:, 0], ends[:, 1], w_own


def _guarded(chunks: Iterator[Any]) -> Iterator[tuple[Any, Exception | None]]:
    """(piece, None) for each piece, then (None, None); (None, error) when reading fails."""
    try:
        for piece in chunks:
            check_ends(*piece[:2])
            yield piece, None
            halt_if_asked()
    except Exception as error:  # shared with all ranks by the caller
        yield None, error
    yield None, None


# ---- ids --------------------------------------------------------------------------------------------------


def number_names(group: Group, stream: Any, pairs: Pairs) -> tuple[int, np.ndarray]:
    """Number the names of a stream, which rank 0 has read, in ascending order, and renumber the pairs.

    returns   n, and this rank's consecutive share of the sorted names: all on rank 0
    Ranks     all call; a rank holds 4 bytes for each name meanwhile, rank 0 the names
    """
    sizes, names = np.zeros(2, dtype=np.int64), None
    if group.rank == 0:
        order, numbers = name_numbers(stream.ids)
        names = stream.ids[order]
        sizes[:] = len(names), names.itemsize
    n, width = group.broadcast(sizes).tolist()
    numbers = group.broadcast(numbers if group.rank == 0 else np.empty(n, dtype=np.uint32))
    renumber(numbers, pairs.ends)
    return n, np.empty(0, dtype=f"S{width}") if names is None else names


def compact_ids(group: Group, pairs: Pairs) -> tuple[int, np.ndarray, np.ndarray | None]:
    """Number the ids that occur 0..n-1 in ascending order of id, and renumber the pairs.

    returns   n, this rank's consecutive share of the sorted ids (rank order = id order), and what
              `_count_ends` returns where it is known already
    """
    largest = group.max_integer(pairs.largest)
    lines = int(group.sum_integers(np.array([pairs.count]))[0])
    if largest < max(lines // group.size, SMALL_TABLE):
        return _compact_by_table(group, pairs, largest)
    return *_compact_by_sorting(group, pairs), None


def _compact_by_table(group: Group, pairs: Pairs, largest: int) -> tuple[int, np.ndarray, np.ndarray]:
    """compact_ids through a table of all ids up to the largest."""
    table = np.zeros(largest + 1, dtype=np.uint32)
    count_ids(pairs.ends, table)
    ids = np.flatnonzero(group.max_integers((table > 0).astype(np.uint8)))
    ends = table[ids]
    if len(ids) <= largest:
        table[ids] = np.arange(len(ids), dtype=np.uint32)
        renumber(table, pairs.ends)
    bounds = len(ids) * np.arange(group.size + 1) // group.size
    return len(ids), ids[bounds[group.rank] : bounds[group.rank + 1]].astype(np.int64), ends


def _compact_by_sorting(group: Group, pairs: Pairs) -> tuple[int, np.ndarray]:
    """compact_ids by a sample sort of the ids that occur."""
    mine, places = pairs.number()
    # Regular samples of every rank give the borders between ranks.
    samples = mine[(len(mine) * np.arange(32)) // 32] if len(mine) else mine
    counts = group.gather_integers(np.array([len(samples)]))[:, 0].tolist()
    pool = np.sort(group.gather_host(samples, counts), kind="stable")
    borders = pool[(len(pool) * np.arange(1, group.size)) // group.size] if len(pool) else pool
    owner = np.searchsorted(borders, mine, side="right") if len(borders) else np.zeros(len(mine), np.int64)
    out = np.bincount(owner, minlength=group.size).tolist()
    into = group.exchange_counts(out)
    asked = group.exchange_host(mine, out, into)
    held = sorted_set(asked)
    sizes = group.gather_integers(np.array([len(held)]))[:, 0]
    first = int(sizes[: group.rank].sum())
    check_nodes("ids", int(sizes.sum()))
    numbers = group.exchange_host(first + np.searchsorted(held, asked), into, out)
    pairs.become(mine, places, numbers)
    return int(sizes.sum()), held
