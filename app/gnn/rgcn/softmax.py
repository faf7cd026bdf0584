"""Learning triples against all nodes: the right one at an end of a triple by softmax (1-vs-all)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from app.case.gnn import RgcnCase
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
    starts       [q+1] where those of a query begin
    blocks       [B+1] queries that begin the blocks     first_object_block   the first with known objects
    """

    known: np.ndarray
    relation: np.ndarray
    answers: np.ndarray
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
    def of(train: np.ndarray, nodes: int, relations: int) -> "Queries":
        """Those of distinct triples [m, 3]: first of known subjects, then of known objects."""
        known, relation, answers, counts, sides = [], [], [], [], []
        for near, far in ((0, 2), (2, 0)):
            key = train[:, 1] * nodes + train[:, near]
            order = np.lexsort((train[:, far], key))
            found, count = np.unique(key, return_counts=True)
            known.append(found % nodes)
            relation.append(found // nodes)
            answers.append(train[order, far])
            counts.append(count)
            sides.append(len(found))
        size = queries_at_once(nodes)
        blocks = [*range(0, sides[0], size), *range(sides[0], sum(sides), size), sum(sides)]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        joined = (np.concatenate(each) for each in (known, relation, answers))
        return Queries(*joined, starts, np.array(blocks), -(-sides[0] // size))


def queries_at_once(nodes: int) -> int:
    """How many make a block: a multiple of 8."""
    return max(min(SCORES_AT_ONCE // max(nodes, 1), MOST_QUERIES) // 8 * 8, 8)


def deal_blocks(blocks: int, ranks: int) -> list[int]:
    """[ranks+1] the first block of each rank."""
    return [blocks * rank // ranks for rank in range(ranks + 1)]


class FullSoftmax(Decoder):
    """Every node stands in the place of an end of each learned triple; softmax says how likely the right is.

    Query     u = (s, r), or (o, r): its row q_u of e_s and w_r is what a product with a row of E scores
              (scorers.py); it has the k_u right answers of the triples that it stands for
    Forward   f_uj = <q_u, e_j>     L_u = log sum_j exp f_uj
    Loss      1 / (2 m) sum_u (k_u L_u - sum of f_uj over right j)     over m triples, each from both ends
    Shapes    E [n, d]   f, G [q, n]   q_u [d]
    Backward  G_uj = (k_u exp(f_uj - L_u) - [j is right]) / (2 m)
              dE_j = sum_u G_uj q_u     dq_u = sum_j G_uj e_j, which the scorer leads to e_s, or e_o, and w_r
    Ranks     own blocks of queries: scores and G exist for one block at a time, whatever the graph. dE is
              added up over the blocks as a fixed tree (comm/tree.py); dq is gathered, 4 d bytes a query.
    Source    Lacroix, Usunier and Obozinski 2018, section 2.1, without reciprocal relations
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        super().__init__(group, split, nodes, relations, case, seed)
        self.queries = Queries.of(split.train, nodes, relations)
        self._cuts = deal_blocks(len(self.queries.blocks) - 1, group.size)
        self._unit = np.float32(1 / (2 * len(split.train)))

    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD and dE of the nodes lo..hi-1. Ranks: all call."""
        group, device, xp, queries = self.group, self.device, self.device.xp, self.queries
        blocks, first = len(queries.blocks) - 1, self._cuts[group.rank]
        own = _Pass(self, E, first)
        roots = [
            merge_span(own.addend, *span) for span in owned_spans(blocks, first, self._cuts[group.rank + 1])
        ]
        width = E.size + 1
        part = xp.concatenate(roots) if roots else device.zeros((0, width))
        whole = sum_tree(group, part, self._cuts, blocks)
        ends = queries.blocks[self._cuts]
        dQ_own = xp.concatenate(own.dQ) if own.dQ else device.zeros((0, E.shape[1]))
        dQ = group.gather_rows(dQ_own, np.diff(ends).tolist())
        of_known, dD = self._lead_back(E, dQ, lo, hi)
        dE = whole[:-1].reshape(E.shape)[lo:hi] + of_known
        return float(device.get(whole[-1:])[0]), dD, dE

    def addend(self, E: Array, E_t: Array, block: int) -> tuple[Array, Array]:
        """[1, n d + 1], dE and the loss of a block of queries; and its dq [queries, d].

        E_t   [d, n], E transposed
        """
        device, xp, put, unit = self.device, self.device.xp, self.device.put, self._unit
        asked = self.queries.block(block)
        count = asked.count
        Q = self.scorer.query(xp, asked.side, *self._rows(E, asked.known, asked.relation))
        F = device.row_product(Q, E_t)
        rows, answers, line, first = (
            put(each) for each in (asked.rows, asked.answers, asked.lines, asked.first)
        )
        # softmax_loss takes the first right answer for all k: what the others score instead is added.
        others = (F[line, first[:count]][rows] - F[rows, answers]) * unit
        weight = put(unit * asked.counts)
        losses = device.softmax_loss(F, first, weight)
        F[line, first[:count]] += weight[:count]
        F[rows, answers] -= unit
        dQ = device.row_product(F, E)[:count]
        dE = device.block_gram(F[:count], xp.ascontiguousarray(Q[:count]), np.array([[0, count]]))
        terms = xp.concatenate([losses[:count], others])[:, None]
        return xp.concatenate([dE, device.fold(np.array([0, len(terms)]), terms)], axis=1), dQ

    def _rows(self, E: Array, known: np.ndarray, relation: np.ndarray) -> tuple[Array, Array]:
        """The rows of known ends and of relations."""
        put, take = self.device.put, self.device.xp.take
        return take(E, put(known), axis=0), take(self.D, put(relation), axis=0)

    def _lead_back(self, E: Array, dQ: Array, lo: int, hi: int) -> tuple[Array, Array]:
        """From gradients by rows of queries those by E of the nodes lo..hi-1 as known ends, and by D."""
        xp, queries = self.device.xp, self.queries
        cut, pieces = queries.blocks[queries.first_object_block], []
        for side, part in enumerate((slice(0, cut), slice(cut, None))):
            rows = self._rows(E, queries.known[part], queries.relation[part])
            pieces.append(self.scorer.query_back(xp, side, *rows, dQ[part]))
        of_known, of_relations = (xp.concatenate(each) for each in zip(*pieces))
        dD = self._sums(of_relations, queries.relation, 0, self.R)
        return self._sums(of_known, queries.known, lo, hi), dD

    def _sums(self, X: Array, keys: np.ndarray, lo: int, hi: int) -> Array:
        """[hi - lo, d], row i the sum of the rows of X with key lo + i, in their order."""
        order = np.argsort(keys, kind="stable")
        ends = np.searchsorted(keys[order], np.arange(lo, hi + 1))
        order = order[ends[0] : ends[-1]]
        return self.device.fold(ends - ends[0], self.device.xp.take(X, self.device.put(order), axis=0))


class _Pass:
    """The own blocks of queries in an epoch, one after the other.

    dQ   gradients by the rows of queries, block by block
    """

    def __init__(self, decoder: FullSoftmax, E: Array, first: int) -> None:
        self._decoder, self._E, self._first = decoder, E, first
        self._E_t = decoder.device.xp.ascontiguousarray(E.T)
        self.dQ: list[Array] = []

    def addend(self, block: int) -> Array:
        """[1, n d + 1] of an own block, counted from the first of the rank."""
        addend, dQ = self._decoder.addend(self._E, self._E_t, self._first + block)
        self.dQ.append(dQ)
        return addend
