"""Learning triples against all nodes: the right one at an end of a triple by softmax (1-vs-all)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.comm.ordered import sum_tree
from app.comm.tree import owned_spans
from app.gnn.rgcn.decoder import Decoder
from app.gnn.rgcn.split import Split
from app.numerics.products import merge_span

Array = Any
SCORES_AT_ONCE = 1 << 21  # numbers of a block of scores; it makes the blocks, and so the order of sums
MOST_QUERIES = 512  # of a block


class Asked(NamedTuple):
    """A block of queries, in r rows, r a multiple of 8; the first `count` of them are queries.

    side             0: the subjects are known, 1: the objects
    known, relation  [r] int64     counts   [r] float32, the right answers of each
    first            [r] int32, the first of these, -1: none     lines   [count] 0, 1, ...
    rows, answers    [t] int64, row and right node of each
    """

    side: int
    count: int
    known: np.ndarray
    relation: np.ndarray
    counts: np.ndarray
    first: np.ndarray
    lines: np.ndarray
    rows: np.ndarray
    answers: np.ndarray


@dataclass(frozen=True)
class Queries:
    """The distinct pairs of a known end and a relation in learned triples, in blocks of one side each.

    known        [q] int64 nodes     relation   [q] int64
    answers      [t] int64, the right nodes at the other ends, query after query: each triple twice
    triples      [t] int64, which of the learned triples have them
    starts       [q+1] where those of a query begin
    blocks       [B+1] queries that begin the blocks     first_object_block   the first with known objects
    """

    known: np.ndarray
    relation: np.ndarray
    answers: np.ndarray
    triples: np.ndarray
    starts: np.ndarray
    blocks: np.ndarray
    first_object_block: int

    def __len__(self) -> int:
        return len(self.known)

    def block(self, number: int) -> "Asked":
        """The queries of a block, filled up to a multiple of 8 by ones without an answer."""
        lo, hi = self.blocks[number], self.blocks[number + 1]
        count, rows = int(hi - lo), -(-int(hi - lo) // 8) * 8
        starts = self.starts[lo : hi + 1] - self.starts[lo]
        answers, counts = self.answers[self.starts[lo] : self.starts[hi]], np.diff(starts)
        filled = np.zeros((3, rows), dtype=np.int64)
        filled[:, :count] = self.known[lo:hi], self.relation[lo:hi], counts
        first = np.full(rows, -1, dtype=np.int32)
        first[:count] = answers[starts[:-1]]
        lines = np.arange(count)
        return Asked(
            int(number >= self.first_object_block), count, filled[0], filled[1], filled[2].astype(np.float32),
            first, lines, np.repeat(lines, counts), answers,
        )  # fmt: skip

    @staticmethod
    def of(train: np.ndarray, nodes: int, scored: int) -> "Queries":
        """Those of distinct triples [m, 3]: first of known subjects, then of known objects.

        scored   nodes that each is scored with, which makes the blocks
        """
        known, relation, answers, triples, counts, sides = [], [], [], [], [], []
        for near, far in ((0, 2), (2, 0)):
            key = train[:, 1] * nodes + train[:, near]
            order = np.lexsort((train[:, far], key))
            found, count = np.unique(key, return_counts=True)
            known.append(found % nodes)
            relation.append(found // nodes)
            answers.append(train[order, far])
            triples.append(order)
            counts.append(count)
            sides.append(len(found))
        size = queries_at_once(scored)
        blocks = [*range(0, sides[0], size), *range(sides[0], sum(sides), size), sum(sides)]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        joined = (np.concatenate(each) for each in (known, relation, answers, triples))
        return Queries(*joined, starts, np.array(blocks), -(-sides[0] // size))


def scored_nodes(case: RgcnCase, nodes: int) -> int:
    """How many nodes each query is scored with, beside its right answers: rgcn.candidates, or all."""
    return min(case.candidates, nodes) or nodes


def groups_of_blocks(blocks: int, nodes: int, scored: int) -> np.ndarray:
    """[k+1] the first block of each group that is scored with the same nodes: as many as have others."""
    groups = max(min(blocks, nodes // scored), 1)
    return np.arange(groups + 1) * blocks // groups


def queries_at_once(nodes: int) -> int:
    """How many make a block, each scored with so many nodes: a multiple of 8."""
    return max(min(SCORES_AT_ONCE // max(nodes, 1), MOST_QUERIES) // 8 * 8, 8)


def deal_blocks(blocks: int, ranks: int) -> list[int]:
    """[ranks+1] the first block of each rank."""
    return [blocks * rank // ranks for rank in range(ranks + 1)]


def over_blocks(
    group: Group, blocks: np.ndarray, work: Callable[[int], tuple[Array, Array]], width: int, columns: int,
    groups: np.ndarray,
) -> tuple[list[Array], Array]:  # fmt: skip
    """[width] of each group, the sum of what its blocks make; [q, columns], what all make of queries.

    blocks   [B+1] queries that begin the blocks
    work     makes of a block's number [1, width], and [queries, columns]
    groups   [k+1] the first block of each
    Ranks    all call
    """
    device, xp = group.device, group.device.xp
    cuts = np.array(deal_blocks(len(blocks) - 1, group.size))
    inside = [(np.clip(cuts, lo, hi) - lo, hi - lo) for lo, hi in pairwise(groups.tolist())]
    of_queries, parts = [], []
    block = int(cuts[group.rank])

    def addend(first: int, number: int) -> Array:
        sums, rows = work(first + number)
        of_queries.append(rows)
        return sums

    for own, count in inside:
        first, last = own[group.rank : group.rank + 2].tolist()
        spans = owned_spans(count, first, last)
        roots = [merge_span(partial(addend, block), *span) for span in spans]
        parts.append(xp.concatenate(roots) if roots else device.zeros((0, width)))
        block += last - first
    sums = [sum_tree(group, part, own, count) for part, (own, count) in zip(parts, inside)]
    made = xp.concatenate(of_queries) if of_queries else device.zeros((0, columns))
    return sums, group.gather_rows(made, np.diff(blocks[cuts]).tolist())


def fold_by(device: Any, X: Array, keys: np.ndarray, lo: int, hi: int) -> Array:
    """[hi - lo, d], row i the sum of the rows of X with key lo + i, in their order."""
    order = np.argsort(keys, kind="stable")
    ends = np.searchsorted(keys[order], np.arange(lo, hi + 1))
    order = order[ends[0] : ends[-1]]
    return device.fold(ends - ends[0], device.xp.take(X, device.put(order), axis=0))


def softmax_block(
    device: Any, asked: Asked, unit: np.float32, Q: Array, X: Array, X_t: Array,
    loops: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """[1, n c + 1], dX and the loss of a block of queries among all rows of X; and its dq [queries, c].

    unit    what a right answer weighs     Q   [r, c]     X, X_t   [n, c], [c, n]
    loops   [count] each, a column of the scores of each query and what is added there; the gradient by it is
            a last column of dq
    """
    xp, put, count = device.xp, device.put, asked.count
    F = device.row_product(Q, X_t)
    rows, answers, line, first = (put(each) for each in (asked.rows, asked.answers, asked.lines, asked.first))
    if loops is not None:
        F[line, loops[0]] += loops[1]
    # softmax_loss takes the first right answer for all k: what the others score instead is added.
    others = (F[line, first[:count]][rows] - F[rows, answers]) * unit
    weight = put(unit * asked.counts)
    losses = device.softmax_loss(F, first, weight)
    F[line, first[:count]] += weight[:count]
    F[rows, answers] -= unit
    dQ = device.row_product(F, X)[:count]
    if loops is not None:
        dQ = xp.concatenate([dQ, F[line, loops[0]][:, None]], axis=1)
    dX = device.block_gram(F[:count], xp.ascontiguousarray(Q[:count]), np.array([[0, count]]))
    terms = xp.concatenate([losses[:count], others])[:, None]
    return xp.concatenate([dX, device.fold(np.array([0, len(terms)]), terms)], axis=1), dQ


class Asking(Decoder):
    """What losses have in common that ask for the ends of triples, by blocks of queries.

    Ranks     own blocks of queries: what a block makes exists for one block at a time. What it makes of nodes
              is added up over the blocks as a fixed tree (comm/tree.py), what of its queries is gathered.

    queries   all of them
    unit      what a learned triple weighs at an end: 1 / (2 m)
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        super().__init__(group, split, nodes, relations, case, seed)
        self.queries = Queries.of(split.train, nodes, scored_nodes(case, nodes))
        self.unit = np.float32(1 / (2 * len(split.train)))

    def query_rows(self, E: Array, asked: Asked) -> Array:
        """[r, c], the rows of a block's queries."""
        return self.scorer.query(self.device.xp, asked.side, *self._rows(E, asked.known, asked.relation))

    def lead_back(self, E: Array, dQ: Array, lo: int, hi: int) -> tuple[Array, Array]:
        """From gradients by rows of queries those by E of the nodes lo..hi-1 as known ends, and by D.

        dQ   [q, c]; with loops [q, c + 1], the last column by the score of each known end itself
        """
        xp, queries, c = self.device.xp, self.queries, dQ.shape[1] - (self.loops is not None)
        cut, pieces = queries.blocks[queries.first_object_block], []
        for side, part in enumerate((slice(0, cut), slice(cut, None))):
            rows = self._rows(E, queries.known[part], queries.relation[part])
            pieces.append(self.scorer.query_back(xp, side, *rows, dQ[part, :c]))
        of_known, of_relations = (xp.concatenate(each) for each in zip(*pieces))
        if self.loops is not None:
            of_relations = xp.concatenate([of_relations, dQ[:, c:]], axis=1)
        dD = fold_by(self.device, of_relations, queries.relation, 0, self.R)
        return fold_by(self.device, of_known, queries.known, lo, hi), dD

    def _rows(self, E: Array, known: np.ndarray, relation: np.ndarray) -> tuple[Array, Array]:
        """The rows of known ends and of relations."""
        put, take = self.device.put, self.device.xp.take
        return take(E, put(known), axis=0), take(self.rows, put(relation), axis=0)


class FullSoftmax(Asking):
    """Every node stands in the place of an end of each learned triple; softmax says how likely the right is.

    Query     u = (s, r), or (o, r): its row q_u of e_s and w_r is what a product with a row x of `ends` of E
              scores (scorers.py); it has the k_u right answers of the triples that it stands for
    Forward   f_uj = <q_u, x_j>, with loops + l_r [j is the known end]     L_u = log sum_j exp f_uj
    Loss      1 / (2 m) sum_u (k_u L_u - sum of f_uj over right j)     over m triples, each from both ends
    Shapes    E [n, d]   X [n, c]   f, G [q, n]   q_u [c]
    Backward  G_uj = (k_u exp(f_uj - L_u) - [j is right]) / (2 m)
              dx_j = sum_u G_uj q_u     dq_u = sum_j G_uj x_j, which the scorer leads to e_s, or e_o, and w_r
              dl_r = sum_u G_uj over the queries of r, j the known end
    Ranks     as all that ask (Asking): n c + 1 numbers are added up, dq is gathered, 4 c bytes a query
    Source    Lacroix, Usunier and Obozinski 2018, section 2.1, without reciprocal relations
    """

    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD and dE of the nodes lo..hi-1. Ranks: all call."""
        device, xp = self.device, self.device.xp
        X = self.scorer.ends(xp, E)
        X_t = xp.ascontiguousarray(X.T)
        blocks, columns = self.queries.blocks, X.shape[1] + (self.loops is not None)
        (whole,), dQ = over_blocks(
            self.group, blocks, lambda block: self._block(E, X, X_t, block), X.size + 1, columns,
            np.array([0, len(blocks) - 1]),
        )  # fmt: skip
        of_known, dD = self.lead_back(E, dQ, lo, hi)
        dX = whole[:-1].reshape(X.shape)[lo:hi]
        dE = self.scorer.ends_back(xp, E[lo:hi], dX) + of_known
        return float(device.get(whole[-1:])[0]), dD, dE

    def _block(self, E: Array, X: Array, X_t: Array, block: int) -> tuple[Array, Array]:
        """As softmax_block."""
        put, asked, loops = self.device.put, self.queries.block(block), None
        if self.loops is not None:
            known, relation = (put(each[: asked.count]) for each in (asked.known, asked.relation))
            loops = known, self.device.xp.take(self.loops, relation)
        return softmax_block(self.device, asked, self.unit, self.query_rows(E, asked), X, X_t, loops)
