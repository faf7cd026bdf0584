"""Features that some nodes lack: filled before anything is learned, by means or from the neighbours.

mean        an entry becomes the mean of its column over the nodes that have it; of a set of graphs over
            those of the training graphs
propagate   Rossi et al. 2022 (feature propagation), algorithm 1: with P = D^-1/2 A D^-1/2, of a directed
            graph D_r^-1/2 A D_c^-1/2,
                Y_0 = X where it is known, else 0     Y_{k+1} = P Y_k, and X again where it is known
            STEPS times. The limit is what makes the Dirichlet energy of the columns least with the known
            entries held. An entry that no known one of its column is joined to by at most STEPS edges gets
            the mean
Ranks       rows partitioned; a row of P Y is one chain on one rank, so that the bits are the same on any
            number of ranks. For as many columns as are worked on at a time STEPS exchanges, and as many again
            until no more entries are reached
Differs     Rossi et al. leave 0 where nothing is reached
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.neighbours import Neighbours, both_ways
from app.gnn.scale import known_of, known_or_zero, pieces_of
from app.graphs.members import Members
from app.graphs.nodes.data import NodeData, rows_per_piece
from app.memory.slow_rows import read_over
from app.partition.dealer import InMemory, MakeRoom, Room
from app.sparse.rowblock import RowBlock
from app.watchdog import beat

KEY = "gnn.missing_features"
STEPS = 40
COLUMNS = 64  # that are worked on at a time
ARRAYS = 8  # of so many columns that are there at once
SCALE = "symmetric_alone"  # of Neighbours.scale


@dataclass(frozen=True, eq=False)
class Filled:
    """What was filled in, over all ranks.

    way        "mean" or "propagate"
    means      [F] float64, of the columns; 0 of one that no node has
    entries    that were missing     columns   with missing entries
    unreached  entries that propagation did not reach, which got means
    total      entries of all nodes
    """

    way: str
    means: np.ndarray
    entries: int
    columns: int
    unreached: int
    total: int

    def line(self) -> str:
        """For the log."""
        if not self.entries:
            return "no features are missing"
        share = 100 * self.entries / max(self.total, 1)
        said = f"{self.entries:,} entries ({share:.1f} %) of {self.columns} of {len(self.means)} features"
        by = "means" if self.way == "mean" else f"propagation, {STEPS} steps"
        rest = f"; {self.unreached:,} that it does not reach by means" if self.unreached else ""
        return f"missing: {said}; filled by {by}{rest}"

    def told(self) -> dict[str, Any]:
        """What result.json holds."""
        return {
            "filled_by": self.way, "entries": self.entries, "features": self.columns,
            "unreached": self.unreached,
        }  # fmt: skip


def fill(
    group: Group, data: NodeData, block: RowBlock, way: str, weighted: bool, members: Members | None,
    means: np.ndarray | None = None, make_room: MakeRoom = InMemory, limit: int = 0,
) -> tuple[NodeData, Filled]:  # fmt: skip
    """The data with all features.

    way     of filling     weighted   P has the edges' weights     members   of a set of graphs
    means   those of weights that are applied; None: those of these data
    make_room   where the filled rows go     limit   bytes of columns that are worked on at a time; 0: none
    Ranks   all call. Raises CaseError where features are not dense
    """
    X = data.features
    if not isinstance(X, np.ndarray):
        found = "there are no features" if X is None else "features are sparse, where no entry is missing"
        raise CaseError(f'{KEY}: {found}; "refuse" would be right')
    by_column = lacking_of(group, X)
    nodes, holes = _nodes_of(block, members), np.flatnonzero(by_column)
    means = _means(group, X, _learned_from(group, data, block, members, nodes)) if means is None else means
    counts = group.sum_integers(np.array([np.count_nonzero(nodes)]))
    found = Filled(way, means, int(by_column.sum()), len(holes), 0, int(counts[0]) * X.shape[1])
    if not found.entries:
        return data, found
    with raise_together(group, "filling missing features"):
        room = make_room(X.shape)
        for rows in _pieces(X):
            room.array[rows] = np.where(np.isnan(X[rows]), means.astype(np.float32), X[rows])
            room.done(rows)
            read_over(X, rows)
    if way == "propagate":
        sides, unreached, step = both_ways(group, block, weighted), 0, _columns_at_once(block, limit)
        for at in range(0, len(holes), step):
            unreached += _fill_columns(group, sides, X, room, holes[at : at + step], means)
        found = replace(found, unreached=int(group.sum_integers(np.array([unreached]))[0]))
    return replace(data, features=room.array), found


def lacking_of(group: Group, X: np.ndarray) -> np.ndarray:
    """[F] int64, the missing entries of each column of dense features on all ranks. Ranks: all call."""
    counts = np.zeros(X.shape[1], dtype=np.int64)
    for rows in _pieces(X):
        counts += np.count_nonzero(np.isnan(X[rows]), axis=0)
        read_over(X, rows)
    return group.sum_integers(counts)


def _pieces(X: np.ndarray) -> Iterator[slice]:
    """Rows that are worked on at a time."""
    step = rows_per_piece(4 * X.shape[1])
    return (slice(lo, lo + step) for lo in range(0, len(X), step))


def _columns_at_once(block: RowBlock, limit: int) -> int:
    """Columns that are worked on at a time, the same on all ranks; as many as fit a limit, at least one."""
    longest = int(np.diff(block.rows.offsets).max())
    return min(max(limit // (ARRAYS * 4 * max(longest, 1)), 1), COLUMNS) if limit else COLUMNS


def _fill_columns(
    group: Group, sides: tuple[Neighbours, Neighbours], X: np.ndarray, room: Room, some: np.ndarray,
    means: np.ndarray,
) -> int:  # fmt: skip
    """Propagate some columns of X into `room`; how many own entries got means. Ranks: all call."""
    columns = np.empty((len(X), len(some)), dtype=np.float32)
    for rows in _pieces(X):
        columns[rows] = X[rows][:, some]
        read_over(X, rows)
    unreached = _propagate(group, sides, columns, means[some].astype(np.float32))
    for rows in _pieces(X):
        room.array[rows, some] = columns[rows]
        room.done(rows)
    return unreached


def _propagate(
    group: Group, sides: tuple[Neighbours, Neighbours], rows: np.ndarray, means: np.ndarray
) -> int:
    """Fill columns [n_own, k] in place; how many own entries got means. Ranks: all call."""
    forward, adjoint = sides
    device, xp = group.device, group.device.xp
    lacking = device.put(np.isnan(rows))
    given = device.put(np.nan_to_num(rows, nan=0.0))
    left, right = forward.scale(SCALE)[:, None], adjoint.scale(SCALE)[:, None]
    Y = given.copy()
    for _ in range(STEPS):
        beat()
        Z = xp.zeros(Y.shape, dtype=np.float32)
        forward.accumulate(xp.ascontiguousarray(right * Y), Z)
        Y = xp.where(lacking, left * Z, given)
    reached = _reached(group, forward, ~lacking)
    Y = xp.where(reached, Y, device.put(means))
    rows[...] = device.get(Y)
    return int(np.count_nonzero(~device.get(reached)))


def _reached(group: Group, forward: Neighbours, known: Any) -> Any:
    """[n_own, k] bool, the entries that a known one is joined to by at most STEPS edges. Ranks: all call."""
    xp = group.device.xp
    reached = known
    for _ in range(STEPS):
        Z = xp.zeros(known.shape, dtype=np.float32)
        forward.accumulate(xp.ascontiguousarray(reached.astype(np.float32)), Z)
        more = reached | (Z > 0)
        if not group.max_integer(int((more != reached).any())):
            break
        reached = more
    return reached


def _means(group: Group, X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """[F] float64, means of what is known of chosen rows, exact sums: the same bits on any ranks. Ranks: all
    call."""
    counts = known_of(group, X, chosen)
    sums = sum_exactly(group, pieces_of(X, chosen, known_or_zero), X.shape[1])
    return sums / np.maximum(counts, 1)


def _nodes_of(block: RowBlock, members: Members | None) -> np.ndarray:
    """[n_own] bool, which rows are nodes."""
    nodes = np.arange(block.n_own) < block.n_real
    if members is not None:
        nodes[: block.n_real] &= ~members.own_of(block.lo, block.lo + block.n_real)
    return nodes


def _learned_from(
    group: Group, data: NodeData, block: RowBlock, members: Members | None, nodes: np.ndarray
) -> np.ndarray:
    """[n_own] bool, the nodes that means are over. Ranks: all call."""
    if members is None or not data.counts["train"]:
        return nodes
    train = group.gather_host(np.ascontiguousarray(data.train[: block.n_real]), block.rows.row_counts())
    graphs = members.graph_of(block.lo, block.lo + block.n_real)
    chosen = nodes.copy()
    chosen[: block.n_real] &= train[members.own_rows[graphs]]
    return chosen
