"""The rank of right triples among wrong ones, filtered (Bordes et al. 2013).

Difference from the paper: ranks of equal scores count half of the ties each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.rgcn.scorers import Scorer, split_relations
from app.gnn.rgcn.split import Split
from app.graphs.triples.data import Triples

Array = Any
RANKED_AT_ONCE = 64  # triples that are scored against all nodes together
HITS = (1, 3, 10)


class Known:
    """For each (relation, node, side) the other ends of known triples: they are not wrong answers."""

    def __init__(self, split: Split, relations: int) -> None:
        # Given sets may share triples: one that counted twice would take two wrong answers away.
        rows = np.unique(np.concatenate([split.train, split.valid, split.test]), axis=0)
        self._R, self._sides = relations, []
        for near, far in ((0, 2), (2, 0)):
            key = rows[:, near] * relations + rows[:, 1]
            order = np.argsort(key, kind="stable")
            self._sides.append((key[order], rows[order, far]))

    def ends(self, side: int, node: int, relation: int) -> np.ndarray:
        """Known objects of a subject (side 0), or subjects of an object (side 1)."""
        keys, far = self._sides[side]
        lo, hi = np.searchsorted(keys, [node * self._R + relation, node * self._R + relation + 1])
        return far[lo:hi]


def filtered_ranks(
    group: Group, split: Split, relations: int, scores_of: Callable[[int, np.ndarray], np.ndarray],
    ranked: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """[2 k] float64: the rank of the object of each triple in `ranked` [k, 3], then of its subject.

    Other known triples are left out; of equally good nodes half count as better.
    scores_of   (side, triples [k, 3]) -> [k, n] host scores of every node in the place of the end
    Ranks       all call; triples are shared out, the result is identical on all
    """
    known, tests = Known(split, relations), len(ranked)
    cuts = [tests * rank // group.size for rank in range(group.size + 1)]
    own = ranked[cuts[group.rank] : cuts[group.rank + 1]]
    twice = np.zeros((len(own), 2), dtype=np.int64)
    for side, (near, far) in enumerate(((0, 2), (2, 0))):
        for lo in range(0, len(own), RANKED_AT_ONCE):
            part = own[lo : lo + RANKED_AT_ONCE]
            for k, (row, scores) in enumerate(zip(part, scores_of(side, part))):
                right = scores[row[far]]
                others = known.ends(side, int(row[near]), int(row[1]))
                better = (scores > right).sum() - (scores[others] > right).sum()
                equal = (scores == right).sum() - (scores[others] == right).sum()
                twice[lo + k, side] = 2 + 2 * better + equal
    every = group.gather_host(twice, np.diff(cuts).tolist())
    return every.T.reshape(-1) / 2


def rank_learned(
    group: Group, E: Array, D: Array, split: Split, ranked: np.ndarray, scorer: Scorer
) -> np.ndarray:
    """filtered_ranks by learned scores.

    E, D    [n, d] rows of nodes; of relations [R, d], or with loops [R, d + 1] (decoder.py)
    Ranks   all call
    """
    device, xp = group.device, group.device.xp
    rows_of, loops = split_relations(xp, D, E.shape[1])
    of_loops = None if loops is None else device.get(loops)
    X_t = xp.ascontiguousarray(scorer.ends(xp, E).T)

    def scores_of(side: int, part: np.ndarray) -> np.ndarray:
        near = np.zeros(-(-len(part) // 8) * 8, dtype=np.int64)
        relation = near.copy()
        near[: len(part)], relation[: len(part)] = part[:, 2 * side], part[:, 1]
        of_relations = xp.take(rows_of, device.put(relation), axis=0)
        rows = scorer.query(xp, side, xp.take(E, device.put(near), axis=0), of_relations)
        scores = device.get(device.row_product(rows, X_t))[: len(part)]
        if of_loops is not None:
            scores[np.arange(len(part)), part[:, 2 * side]] += of_loops[part[:, 1]]
        return scores

    return filtered_ranks(group, split, D.shape[0], scores_of, ranked)


def rank_frequent(group: Group, triples: Triples, split: Split, ranked: np.ndarray) -> np.ndarray:
    """filtered_ranks by how often a node is an end of the relation in learned triples. Ranks: all call."""
    ones, shape = np.ones(len(split.train), dtype=np.int32), (triples.relations, triples.nodes)
    counts = [sp.csr_array((ones, (split.train[:, 1], split.train[:, far])), shape=shape) for far in (2, 0)]
    return filtered_ranks(
        group, split, triples.relations, lambda side, part: counts[side][part[:, 1]].toarray(), ranked
    )


def summary(ranks: np.ndarray) -> dict[str, float]:
    """Mean reciprocal rank, and the share of ranks up to 1, 3 and 10, of ranks of any shape, from 1 on."""
    return {"mrr": float((1 / ranks).mean()), **{f"hits_{k}": float((ranks <= k).mean()) for k in HITS}}


def random_summary(nodes: int) -> dict[str, float]:
    """What a rank drawn uniformly from 1 .. nodes would give on average."""
    mrr = float((1 / np.arange(1, nodes + 1)).sum() / nodes)
    return {"mrr": mrr, **{f"hits_{k}": min(k / nodes, 1.0) for k in HITS}}
