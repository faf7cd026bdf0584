"""Bayesian personalised ranking: a node's edges are to score higher than its pairs that no edge joins.

Source    Rendle et al. 2009 (BPR-Opt), over all edges at once, each against the pairs apart of its node
Loss      L = 1/c sum over nodes u that rank, their edges (u, v) and rounds r of -log sigmoid(s_uv - t_ur);
          t_ur = z_u z_p is the score of (u, p), p = p_r(u) drawn anew for each epoch (wrong.py) and joined to
          u by no edge; c comparisons in all
Backward  With g_uvr = sigmoid(t_ur - s_uv) / c, G_ur = sum over v of g_uvr:
          dz_u = -sum over v of (sum over r of g_uvr) z_v + sum over r of G_ur z_p     from its own ranking
          dz_v = -sum over u of (sum over r of g_uvr) z_u                              where u ranks v
          dz_p = +sum over u with p_r(u) = p of G_ur z_u
          Row v has every edge (v, u), and p all its u: with t_u and G_u beside the rows that travel no rank
          needs addends of another
Ranks     three exchanges: Z one rank after the other, for t; rows and t for the edges; rows and G one rank
          after the other, for the pairs apart
Differs   Rendle et al. draw one comparison at a time, and a pair apart for each; here all edges of a node
          meet the same pairs apart of it, links.negatives of them in an epoch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.links import LinksCase
from app.comm.group import Group
from app.gnn.engine import Engine
from app.gnn.links.split import LinkSplit
from app.gnn.links.wrong import Drawn, joined_here, pieces_drawn
from app.graphs.graph import index_type
from app.graphs.lists import starts
from app.sparse.rowblock import RowBlock

Array = Any
SCORED = 1 << 14  # pairs whose rows are brought together at a time


@dataclass(frozen=True)
class Apart:
    """Pairs apart of own rows, [k] each: rows, columns, rounds, and which of them own rows rank; rows ascend,
    and so do the columns of a row."""

    rows: np.ndarray
    columns: np.ndarray
    rounds: np.ndarray
    ahead: np.ndarray

    def of(self, chosen: Any) -> "Apart":
        """Some of the pairs."""
        return Apart(self.rows[chosen], self.columns[chosen], self.rounds[chosen], self.ahead[chosen])


class Tile:
    """Pairs apart on the device: t of those that own rows rank, and of all a matrix whose entries are G.

    own     of pairs that own rows rank: their entries, rows, columns, and where T [n_own, d + k] has t and G
    other   of the others: their entries, and where the rows of the columns have G
    """

    def __init__(self, device: Any, pairs: Apart, shape: tuple[int, int], d: int, k: int) -> None:
        self.device, width = device, d + k
        indptr = starts(pairs.rows, shape[0])
        kind = index_type(max(len(pairs.rows), *(rows * width for rows in shape)))
        values = np.zeros(len(pairs.rows), dtype=np.float32)
        self.matrix = device.csr(indptr.astype(kind), pairs.columns.astype(kind), values, shape)
        own, other = np.flatnonzero(pairs.ahead), np.flatnonzero(~pairs.ahead)
        ahead, behind = pairs.of(own), pairs.of(other)
        parts = own, ahead.rows, ahead.columns, ahead.rows * width + d + ahead.rounds
        self.own = tuple(device.put(part.astype(kind)) for part in parts)
        parts = other, behind.columns * width + d + behind.rounds
        self.other = tuple(device.put(part.astype(kind)) for part in parts)

    def score(self, Z: Array, X: Array, T: Array) -> None:
        """The scores t of pairs that own rows rank into T [n_own, d + k]; Z [n_own, d], X [*, d]."""
        xp, flat, (_, rows, columns, at) = self.device.xp, T.reshape(-1), self.own
        for lo in range(0, len(rows), SCORED):
            part = slice(lo, lo + SCORED)
            pair = (xp.take(each, index[part], axis=0) for each, index in ((Z, rows), (X, columns)))
            flat[at[part]] = self.device.pair_dots(*pair)

    def add(self, T: Array, X: Array, Y: Array) -> None:
        """Y [n_own, d + k] += G times rows, where T has the G of own rows, and X those of the columns."""
        xp, values = self.device.xp, self.matrix.data
        for (entries, *_, at), G in ((self.own, T), (self.other, X)):
            values[entries] = xp.take(G.reshape(-1), at)
        self.device.spmm_add(self.matrix, X, Y)


@dataclass(frozen=True)
class RankBatch:
    """By rank the pairs apart with its nodes, None where there are none; how many comparisons there are."""

    tiles: list[Tile | None]
    compared: int


def rounds_of_ranks(links: LinksCase, split: LinkSplit, n: int) -> int:
    """Pairs apart that are drawn for each node: at most as many as it may have partners, at least one."""
    most = n - 1 if split.sides is None else len(split.sides.rows[1])
    return max(min(int(links.negatives), most), 1)


def ranks_apart(group: Group, block: RowBlock, drawn: Drawn, d: int) -> RankBatch:
    """The pairs that nodes' edges are compared with in an epoch; d: columns of rows. Ranks: all call."""
    own, degrees, compared = block.lo + np.arange(block.n_real), block.degrees_own(), 0
    found, k = [], len(drawn.factors)
    for ahead, nodes, ask in zip((True, False), drawn.ranking(own), (drawn.ahead, drawn.behind)):
        for mine, near in pieces_drawn(block, nodes, ask):
            flat = near.reshape(len(mine), -1)
            keep = (flat >= 0) & (flat != block.lo + mine[:, None]) & ~joined_here(block, mine, flat)
            at, place = np.nonzero(keep)
            rounds = place * k // flat.shape[1]
            found.append(Apart(mine[at], flat[at, place], rounds, np.full(len(at), ahead)))
            compared += int(degrees[mine] @ keep.sum(axis=1)) if ahead else 0
    compared = int(group.sum_integers(np.array([compared]))[0])
    return RankBatch(_tiles(group, block, found, d, k), compared)


def _tiles(group: Group, block: RowBlock, found: list[Apart], d: int, k: int) -> list[Tile | None]:
    """Pairs by the ranks of their columns, which are global numbers here; of a row in one order anywhere."""
    names = ("rows", "columns", "rounds", "ahead")
    parts = [[getattr(each, name) for each in found] for name in names]
    pairs = Apart(*(np.concatenate(each) if each else np.empty(0, dtype=np.int64) for each in parts))
    pairs = pairs.of(np.argsort(pairs.rows * block.n + pairs.columns, kind="stable"))  # by rounds, as found
    owner, offsets = block.rows.owner(pairs.columns), block.rows.offsets
    tiles: list[Tile | None] = []
    for rank, count in enumerate(block.own_counts):
        some = pairs.of(owner == rank)
        local = Apart(some.rows, some.columns - int(offsets[rank]), some.rounds, some.ahead.astype(bool))
        shape = block.n_own, count
        tiles.append(Tile(group.device, local, shape, d, k) if len(some.rows) else None)
    return tiles


def rank_pairs(engine: Engine, batch: RankBatch, counts: list[int], Z: Array, T: Array, Y: Array) -> Array:
    """Addends of the loss; the first columns of Y become the gradient by Z.

    counts  padded rows of each rank     Z [n_own, d]
    T, Y    [n_own, d + k] room: rows and, beside them, t, then G; gradients
    Ranks   all call (three exchanges)
    """
    group, device, d = engine.group, engine.device, Z.shape[1]
    T[:, :d], T[:, d:], Y[...] = Z, np.float32(-np.inf), 0
    for rank, X in group.stage_rows(Z, counts):
        if batch.tiles[rank] is not None:
            batch.tiles[rank].score(Z, X, T)
    losses, weight = device.zeros((len(Z), T.shape[1] - d)), np.float32(1 / max(batch.compared, 1))

    def add(pattern: Any, X: Array) -> None:
        device.rank_add(pattern, X, T, d, weight, Y, losses)

    engine.neighbours_of.visit(T, False, add)
    T[:, d:] = Y[:, d:]
    for rank, X in group.stage_rows(T, counts):
        if batch.tiles[rank] is not None:
            batch.tiles[rank].add(T, X, Y)
    total = losses[:, 0]
    for r in range(1, losses.shape[1]):
        total = total + losses[:, r]
    return device.column_roots((total * weight)[:, None], engine.starts, engine.spans)
