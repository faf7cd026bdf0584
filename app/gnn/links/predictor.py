"""A network that says which pairs of nodes are likely to be joined: layers, and products of their rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.case.links import LinksCase
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.known import NOTHING, Known
from app.gnn.links.ranking import EACH, Ranking
from app.gnn.links.ranks import RankBatch, rank_pairs, ranks_apart, rounds_of_ranks
from app.gnn.links.scores import LinkScores
from app.gnn.links.split import LinkSplit
from app.gnn.links.wrong import Crossings, Drawn, Permutations, apart_rows, rounds_of, tiles_of
from app.gnn.model import Draws
from app.gnn.programs import Rows
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.numerics.elementary import exp
from app.sparse.rowblock import RowBlock

Array = Any
SCORED = 1 << 14  # pairs whose rows are brought together at a time


@dataclass(frozen=True)
class LinkGoal:
    """What the columns of a network's scores are: no classes, but a row of numbers for each node."""

    kind: str = "links"
    digits: str = ".4f"

    @property
    def told(self) -> dict[str, str]:
        """Scores by words, as goals of labels have them: the first is shown over epochs."""
        return {"area under the ROC curve": "auc"}


@dataclass(frozen=True)
class Batch:
    """The pairs of an epoch that no edge joins: by rank the pattern of own rows with its columns; of all how
    many pairs."""

    tiles: list[Any]
    pairs: int


class LinkPredictor(Classifier):
    """s_uv = z_u z_v for the rows Z [n_own, d] that the layers give: how likely u and v are joined.

    Source    Kipf and Welling 2016, section 2 (GAE: the inner product of two rows, a sigmoid of it), over any
              of the layers
    Forward   Z = layers(X), A without the edges that are held out
    Loss      links.loss = "logistic"; of "bpr" see ranks.py
              L = 1/m sum over edges of -log sigmoid(s) + 1/k sum over k pairs apart of -log(1 - sigmoid(s)):
              pairs apart are drawn anew for each epoch (wrong.py)
    Backward  g_uv = (sigmoid(s_uv) - t) w, t = 1 and w = 1/m of an edge, t = 0 and w = 1/k of others;
              dZ_u = sum over the pairs of u of g_uv z_v. Row u has all pairs of u, so that dZ needs no
              addends of other ranks, and L is half the sum over rows
    Shapes    X [n_own, F]     Z, dZ [n_own, d]
    Ranks     rows partitioned; each epoch an exchange of Z for the edges, and Z one rank after the other for
              the pairs apart, beside those of the layers
    Differs   Kipf and Welling count the pair of a node with itself, and weigh all n^2 pairs in every epoch.
    """

    def __init__(
        self, group: Group, case: GnnCase, links: LinksCase, block: RowBlock, data: NodeData,
        split: LinkSplit, seed: int, known: Known = NOTHING, budget: TierBudget | None = None,
    ) -> None:  # fmt: skip
        """See Classifier; data: features alone, see `data_of_links`."""
        self.links, self.split, self._batch = links, split, Batch([], 0)
        self.rounds = rounds_of_ranks(links, split, block.n) if links.loss == "bpr" else 0
        known = replace(known, classes=links.dimension, goal=LinkGoal())
        super().__init__(group, case, block, data, seed, known, budget)

    # ---- one epoch --------------------------------------------------------------------------------------

    def _epoch(self, draws: Draws) -> Array:
        """See Classifier._epoch."""
        if self.engine.numeric:
            drawn = self.drawn(draws.epoch)
            self._batch = self._draw_ranks(drawn) if self.rounds else self._draw(drawn)
        return super()._epoch(draws)

    def _repeats(self) -> bool:
        """False: pairs are others in each epoch."""
        return False

    def _draw(self, drawn: Drawn) -> Batch:
        """The pairs apart of an epoch. Ranks: all call."""
        block = self.block
        counts, columns = apart_rows(block, drawn)
        pairs = int(self.group.sum_integers(np.array([len(columns)]))[0]) // 2
        return Batch(tiles_of(block, self.device, counts, columns), pairs)

    def _draw_ranks(self, drawn: Drawn) -> RankBatch:
        """The same of rankings. Ranks: all call."""
        return ranks_apart(self.group, self.block, drawn, self.classes)

    def drawn(self, epoch: int) -> Drawn:
        """How nodes are paired in an epoch."""
        sides, edges, ratio = self.split.sides, self.split.loaded.graph.edges, self.links.negatives
        if sides is None:
            rounds = self.rounds or rounds_of(self.block.n, edges, ratio)
            return Permutations(self.block.n, rounds, self.seed, epoch)
        rounds = self.rounds or rounds_of(len(sides.rows[0]), edges, ratio, len(sides.rows[1]))
        return Crossings(sides, rounds, self.seed, epoch)

    def _learn(self, Z: Rows) -> tuple[Array, Rows]:
        """Addends of the loss, and new rows dZ; the last layer frees Z."""
        engine, width = self.engine, Z.width + self.rounds
        D = engine.take("dZ", Z.width)
        if not self.rounds:
            work = lambda: self._pairs(Z.array, D.array)  # noqa: E731
            return engine.apply("loss", "pairs", [Z], [D], work, (Z.width, Z.width)), D
        T, Y = engine.take("ZT", width), engine.take("dZT", width)

        def rank() -> Array:
            batch = self._batch
            losses = rank_pairs(engine, batch, self.block.own_counts, Z.array, T.array, Y.array)
            D.array[...] = Y.array[:, : Z.width]
            return losses

        losses = engine.apply("loss", "pairs", [Z], [D, T, Y], rank, (width, width, Z.width))
        engine.free(T)
        engine.free(Y)
        return losses, D

    def _pairs(self, Z: Array, D: Array) -> Array:
        """Addends of the loss; D becomes the gradient by Z. Ranks: all call (two exchanges)."""
        group, device, engine, batch = self.group, self.device, self.engine, self._batch
        D[...] = 0
        joined, apart = device.zeros((len(Z),)), device.zeros((len(Z),))
        edge = np.float32(1 / self.split.loaded.graph.edges)
        other = np.float32(1 / max(batch.pairs, 1))

        def add(pattern: Any, X: Array) -> None:
            device.pair_add(pattern, X, Z, 1.0, edge, D, joined)

        engine.neighbours_of.visit(Z, False, add)
        for rank, X in group.stage_rows(Z, self.block.own_counts):
            if batch.tiles[rank] is not None:
                device.pair_add(batch.tiles[rank], X, Z, 0.0, other, D, apart)
        losses = joined * (edge / 2) + apart * (other / 2)
        return device.column_roots(losses[:, None], engine.starts, engine.spans)

    # ---- scores -----------------------------------------------------------------------------------------

    def evaluate(self, watched: str = "") -> dict[str, LinkScores]:
        """How good scores are, by split; watched: one of them, which is made too. Ranks: all call."""
        return self._scores_of(("val",) if watched in EACH else ())

    def evaluate_ranking(self) -> dict[str, LinkScores]:
        """`evaluate`, and how well each node's partners are ranked where that is asked for. Ranks: all."""
        return self._scores_of(("val", "test") if self.links.rank_each else ())

    def _scores_of(self, ranked: tuple[str, ...]) -> dict[str, LinkScores]:
        """Scores by split; ranked: of these the rankings, too. Ranks: all call."""
        sets, ranking = self.split.sets, self.ranking(ranked)
        pairs = np.concatenate([each.both for each in sets.values()])
        scores, each = self.with_rows(lambda Z: (self._scored(Z, pairs), ranking.scores(Z, Z)))
        cuts = np.cumsum([len(pair.both) for pair in sets.values()])[:-1]
        parts = zip(sets.items(), np.split(scores, cuts))
        found = {name: LinkScores.of(part, len(pair.joined)) for (name, pair), part in parts}
        return found | {name: replace(found[name], each=ranks) for name, ranks in each.items()}

    def ranking(self, names: tuple[str, ...]) -> Ranking:
        """What rankings of the partners of each node are held against, by split."""
        return Ranking(self.group, self.block, self.split, self.links.rank_each, names)

    def score_pairs(self, pairs: np.ndarray) -> np.ndarray:
        """[k] float32 host, s of pairs of rows [k, 2], the same on all ranks. Ranks: all call."""
        return self.with_rows(lambda Z: self._scored(Z, pairs))

    def with_rows(self, read: Callable[[Array], Any]) -> Any:
        """What is read from Z [n_own, d] while it stands in a buffer. Ranks: all call."""
        return self._with_scores(read)

    def _scored(self, Z: Array, pairs: np.ndarray) -> np.ndarray:
        """See `score_pairs`. Ranks: all call."""
        group, xp, block = self.group, self.device.xp, self.block
        owners = block.rows.owner(pairs[:, 0])
        mine = np.flatnonzero(owners == group.rank)
        u, v = pairs[mine].T
        found, owner = np.zeros(len(mine), dtype=np.float32), block.rows.owner(v)
        for rank, X in group.stage_rows(Z, block.own_counts):
            first = int(block.rows.offsets[rank])
            there = np.flatnonzero(owner == rank)
            for lo in range(0, len(there), SCORED):
                at = there[lo : lo + SCORED]
                rows = xp.take(Z, self.device.put(u[at] - block.lo), axis=0)
                others = xp.take(X, self.device.put(v[at] - first), axis=0)
                found[at] = self.device.get(self.device.pair_dots(rows, others))
        scores = np.empty(len(pairs), dtype=np.float32)
        order = np.argsort(owners, kind="stable")  # the pairs of rank 0, then of rank 1, ...
        scores[order] = group.gather_host(found, np.bincount(owners, minlength=group.size).tolist())
        return scores


def told_of(links: LinksCase, scores: np.ndarray) -> np.ndarray:
    """[k] float32, what is told of scores: how likely pairs are joined, of links.loss = "bpr" they."""
    return likelihood(scores) if links.loss == "logistic" else scores


def likelihood(scores: np.ndarray) -> np.ndarray:
    """[k] float32, the sigmoid of scores: how likely pairs are joined, of as many that are as are not."""
    return 1 / (1 + exp(np, -scores))
