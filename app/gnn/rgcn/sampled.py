"""Learning triples against some nodes that are drawn in each epoch: softmax over these, corrected for it."""

from typing import Any, NamedTuple

import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.gnn.rgcn.scorers import ends_columns
from app.gnn.rgcn.softmax import Asked, Asking, groups_of_blocks, over_blocks, scored_nodes
from app.gnn.rgcn.split import Split
from app.gnn.rgcn.triples import SharedTriples
from app.numerics.elementary import exp, log
from app.rng import stream

Array = Any
NOWHERE = np.float32(-1e30)  # a score whose exponential is zero, of a candidate that is a right answer


def draw_candidates(seed: int, epoch: int, nodes: int, count: int, groups: int = 1) -> list[np.ndarray]:
    """[count] int64 ascending for each group: nodes, each equally likely, none in two groups.

    groups   times count: at most as many as there are nodes
    """
    order = stream(seed, "links/candidates", epoch).permutation(nodes)
    return [np.sort(each) for each in order[: groups * count].reshape(groups, count)]


class Right(NamedTuple):
    """The right answers of the queries, by their scores.

    f, share   [2 m] the score of each, and its part of exp R_u     R   [q], the logarithm of their sum
    """

    f: Array
    share: Array
    R: Array


class Drawn(NamedTuple):
    """The candidates of a group of blocks in an epoch.

    at     [n] int64 host, the place of each node among them, -1: none
    X, X_t   [C + 1, c] their rows of `ends`, then one of zeros; and the same transposed
    """

    at: np.ndarray
    X: Array
    X_t: Array


class SampledSoftmax(Asking):
    """FullSoftmax with its sum over all nodes estimated: right answers are exact, of the wrong ones some.

    Forward   C candidates c of n nodes, drawn without replacement in each epoch for a group of blocks of
              queries; as long as there are nodes, other groups have others
              f_uj = <q_u, x_j>     R_u = log sum of exp f_uj over right j
              L_u = log(exp R_u + n / C sum of exp f_uc over c that are not right)
    Loss      1 / (2 m) sum_u (k_u L_u - sum of f_uj over right j)
    Shapes    G [q, C]   g [2 m] of each answer   otherwise as FullSoftmax
              with loops f has l_r besides where j, or c, is the known end
    Backward  G_uc = k_u (n / C) exp(f_uc - L_u) / (2 m), 0 for right c, which leads to x_c and q_u as there
              g_uj = (k_u exp(f_uj - L_u) - 1) / (2 m) of right j. f_uj is the score of a triple, so both of
              a triple's g are added, and lead to dE and dD as SharedTriples says.
    Ranks     C c + 1 numbers are added up over the blocks of each group; 4 (c + 1) bytes a query and 4 a
              triple gathered
    Sources   Bengio and Senecal 2008: a sum over all words from drawn ones, each over its chance; Jean et al.
              2015: softmax over a right class and drawn ones, with scores less log(expected count)
    Differences from these: a node is drawn at most once for a query, C / n times expected; all its right
    answers are in its sum, each once and without a correction. With C = n the loss is that of FullSoftmax.
    Full batches make few steps: were the candidates the same for all queries, most nodes would be wrong
    answers in few of them.
    """

    def __init__(
        self, group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
    ) -> None:
        """case   rgcn.candidates is read besides"""
        super().__init__(group, split, nodes, relations, case, seed)
        self._seed, self._drawn, queries = seed, scored_nodes(case, nodes), self.queries
        self._columns = np.ascontiguousarray(self.train.T, dtype=np.int32)
        self._relations = np.bincount(self.train[:, 1], minlength=relations)
        self._groups = groups_of_blocks(len(queries.blocks) - 1, nodes, self._drawn)
        counts = np.diff(queries.starts)
        self._row_of = self.device.put(np.repeat(np.arange(len(queries)), counts))
        self._triple_of = self.device.put(queries.triples)
        self._weights = self.device.put(self.unit * counts.astype(np.float32))
        places = np.argsort(queries.triples, kind="stable").reshape(-1, 2)  # of each triple, by side
        self._places = [self.device.put(np.ascontiguousarray(side)) for side in places.T]

    def of_triples(self, E: Array, epoch: int, lo: int, hi: int) -> tuple[float, Array, Array]:
        """The loss, dD and dE of the nodes lo..hi-1. Ranks: all call."""
        device, xp, scorer = self.device, self.device.xp, self.scorer
        shared = SharedTriples(self.group, scorer, self._columns, self._relations, E, self.rows, self.loops)
        right = self._right(shared.gather_triples(shared.scores()[:, None])[:, 0])
        candidates = draw_candidates(self._seed, epoch, self.n, self._drawn, len(self._groups) - 1)
        c = ends_columns(scorer, E.shape[1])
        here: dict[int, Drawn] = {}

        def work(block: int) -> tuple[Array, Array]:
            group = int(np.searchsorted(self._groups, block, side="right")) - 1
            if group not in here:
                here.clear()
                here[group] = self._rows_of(E, candidates[group])
            return self._block(E, here[group], right, block)

        columns = c + (self.loops is not None)
        sums, made = over_blocks(
            self.group, self.queries.blocks, work, (self._drawn + 1) * c + 1, columns + 1, self._groups
        )
        of_known, dD = self.lead_back(E, xp.ascontiguousarray(made[:, :columns]), lo, hi)
        # Right answers, as scores of triples
        g = self._of_triples(right, made[:, columns])
        dD += shared.gather_relations(shared.relation_sums(xp.ascontiguousarray(g[shared.own])))
        dE = of_known + shared.node_sums(g, lo, hi)
        # Candidates, each in one group at most
        for nodes, whole in zip(candidates, sums):
            first, last = np.searchsorted(nodes, [lo, hi])
            at = device.put(nodes[first:last] - lo)
            dX = whole[first * c : last * c].reshape(-1, c)
            dE[at] += scorer.ends_back(xp, xp.take(E[lo:hi], at, axis=0), dX)
        others = (xp.take(right.R, self._row_of) - right.f) * self.unit
        terms = xp.concatenate([*(whole[-1:] for whole in sums), others])[:, None]
        return float(device.get(device.fold(np.array([0, len(terms)]), terms))[0, 0]), dD, dE

    def _right(self, f: Array) -> Right:
        """From the scores of the triples [m]."""
        device, xp, row_of, starts = self.device, self.device.xp, self._row_of, self.queries.starts
        f = xp.take(f, self._triple_of)
        top = device.put(np.maximum.reduceat(device.get(f), starts[:-1]))
        parts = exp(xp, f - xp.take(top, row_of))
        sums = device.fold(starts, parts[:, None])[:, 0]
        return Right(f, parts / xp.take(sums, row_of), top + log(xp, sums))

    def _rows_of(self, E: Array, nodes: np.ndarray) -> Drawn:
        """Of the candidates."""
        device, xp = self.device, self.device.xp
        at = np.full(self.n, -1)
        at[nodes] = np.arange(len(nodes))
        rows = self.scorer.ends(xp, xp.take(E, device.put(nodes), axis=0))
        X = xp.concatenate([rows, device.zeros((1, rows.shape[1]))])
        return Drawn(at, X, xp.ascontiguousarray(X.T))

    def _block(self, E: Array, drawn: Drawn, right: Right, block: int) -> tuple[Array, Array]:
        """[1, (C + 1) c + 1], dX and the loss of a block of queries; and [queries, c + 1], dq and dR of each,
        with loops [queries, c + 2], dl between them.

        Column C of the scores is R_u - log(n / C): softmax is the same where n / C is on neither side.
        """
        device, xp, put, C = self.device, self.device.xp, self.device.put, len(drawn.X) - 1
        asked, own = self.queries.block(block), slice(*self.queries.blocks[block : block + 2])
        count, Q = asked.count, self.query_rows(E, asked)
        F = device.row_product(Q, drawn.X_t)
        F[:count, C] = right.R[own] - np.float32(np.log(self.n / C))
        hit = self._add_loops(F, asked, drawn.at)
        self._hide_right(F, asked, drawn.at)
        labels, weight = np.full(len(F), -1, dtype=np.int32), device.zeros((len(F),))
        labels[:count] = C
        weight[:count] = self._weights[own]
        losses = device.softmax_loss(F, put(labels), weight)
        rows = device.row_product(F, drawn.X)[:count]
        of_loops = []
        if self.loops is not None:
            of_loops = [device.zeros((count, 1))]
            of_loops[0][hit[0], 0] = F[hit]
        made = xp.concatenate([rows, *of_loops, F[:count, C:]], axis=1)
        dX = device.block_gram(F[:count], xp.ascontiguousarray(Q[:count]), np.array([[0, count]]))
        loss = device.fold(np.array([0, count]), losses[:count, None])
        return xp.concatenate([dX, loss], axis=1), made

    def _add_loops(self, F: Array, asked: Asked, at: np.ndarray) -> tuple[Array, Array] | None:
        """Rows and columns of the scores of known ends that are candidates, of which loops are a part now."""
        if self.loops is None:
            return None
        put, column = self.device.put, at[asked.known[: asked.count]]
        line = np.flatnonzero(column >= 0)
        hit = put(line), put(column[line])
        F[hit] += self.device.xp.take(self.loops, put(asked.relation[line]))
        return hit

    def _hide_right(self, F: Array, asked: Asked, at: np.ndarray) -> None:
        """Candidates that are right answers of a query have no part as wrong ones."""
        column = at[asked.answers]
        hit = np.flatnonzero(column >= 0)
        F[self.device.put(asked.rows[hit]), self.device.put(column[hit])] = NOWHERE

    def _of_triples(self, right: Right, dR: Array) -> Array:
        """[m], g of each triple from both ends; dR [q] = k_u (exp(R_u - L_u) - 1) / (2 m)."""
        xp = self.device.xp
        g = right.share * xp.take(dR + self._weights, self._row_of) - self.unit
        return xp.take(g, self._places[0]) + xp.take(g, self._places[1])
