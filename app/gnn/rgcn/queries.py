"""The best ends of triples that are asked: (subject, relation, ?) or (?, relation, object)."""

from typing import NamedTuple

import numpy as np

from app.comm.group import Group
from app.gnn.rgcn.scorers import SCORERS, split_relations
from app.numerics.elementwise import row_sums

NOBODY = -1  # in the place of a node, where fewer are left than were asked for


class Query(NamedTuple):
    """One end of a triple, and its relation. side   0: the object is asked, 1: the subject"""

    side: int
    node: int
    relation: int

    def triple(self, end: int) -> tuple[int, int, int]:
        """The whole triple (subject, relation, object) with another end."""
        return (end, self.relation, self.node) if self.side else (self.node, self.relation, end)


def best_ends(
    E: np.ndarray, D: np.ndarray, scorer: str, known: np.ndarray, query: Query, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes [k] and their scores [k] float32, the best first, of equal ones the lower number; k <= count.

    E, D    [n, d] rows of nodes; of relations [R, d], or with loops [R, d + 1] (decoder.py)
    scorer  one of SCORERS
    known   [m, 3] triples, whose ends are no answers
    """
    relation, loop = split_relations(np, D[query.relation : query.relation + 1], E.shape[1])
    rows, how = (E[query.node : query.node + 1], relation), SCORERS[scorer]
    scores = row_sums(np, how.ends(np, E) * how.query(np, query.side, *rows))
    if loop is not None:
        scores[query.node] += loop[0]
    near, far = (2, 0) if query.side else (0, 2)
    left = np.ones(len(scores), dtype=bool)
    left[known[(known[:, near] == query.node) & (known[:, 1] == query.relation), far]] = False
    order = np.argsort(-scores, kind="stable")
    best = order[left[order]][: max(count, 0)]
    return best, scores[best]


def best_of_all(
    group: Group, E: np.ndarray, D: np.ndarray, scorer: str, known: np.ndarray, queries: list[Query],
    count: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """`best_ends` of queries: nodes [q, k], NOBODY where there are fewer, and scores [q, k] float32, k =
    min(count, n).

    Ranks   all call, with the same rows; queries are shared out, the result is identical on all
    """
    cuts = [len(queries) * rank // group.size for rank in range(group.size + 1)]
    own, count = queries[cuts[group.rank] : cuts[group.rank + 1]], min(count, len(E))
    nodes, scores = np.full((len(own), count), NOBODY), np.zeros((len(own), count), dtype=np.float32)
    for row, query in enumerate(own):
        best, found = best_ends(E, D, scorer, known, query, count)
        nodes[row, : len(best)], scores[row, : len(best)] = best, found
    counts = np.diff(cuts).tolist()
    return group.gather_host(nodes, counts), group.gather_host(scores, counts)
