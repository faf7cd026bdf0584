"""Scores of pairs by what two nodes have in common, without learning: what learned ones stand beside.

Counts are whole numbers, so that sums over ranks have no order.
"""

import math

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.links.scores import LinkScores
from app.gnn.links.split import LinkSplit
from app.graphs.graph import Graph

ONE = 1 << 32  # what a weight of one is counted as
ENTRIES = 1 << 22  # neighbours that are looked at together


def plain_scores(group: Group, split: LinkSplit) -> dict[str, dict[str, LinkScores]]:
    """How well plain rules tell the held-out edges apart, by rule and split. Ranks: all call.

    Source   Liben-Nowell and Kleinberg 2007, section 3: common neighbours; Adamic/Adar, the sum of 1 / log of
             the degrees of these; preferential attachment, the product of both degrees
    """
    out: dict[str, dict[str, LinkScores]] = {"common_neighbours": {}, "adamic_adar": {}, "degrees": {}}
    for name in ("val", "test"):
        chosen = split.sets[name]
        found = _counted(group, split.loaded.graph, chosen.both)
        for rule, scores in zip(out, found):
            out[rule][name] = LinkScores.of(scores, len(chosen.joined))
    return out


def _counted(group: Group, graph: Graph, pairs: np.ndarray) -> list[np.ndarray]:
    """[k] float32 by rule, in the order of its scores. Ranks: all call."""
    own = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int64), graph.indices, graph.indptr),
        shape=(graph.hi - graph.lo, graph.n),
    )
    columns = own.tocsc()  # of a node its neighbours among the own rows: A is symmetric
    weights = np.array(
        [round(ONE / math.log(d)) if d > 1 else 0 for d in graph.degrees().tolist()], dtype=np.int64
    )
    sizes = np.diff(columns.indptr)
    common, weighed = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    degrees = np.stack([sizes[pairs[:, 0]], sizes[pairs[:, 1]]]).astype(np.int64)
    for part in _pieces(degrees.sum(axis=0)):
        u, v = pairs[part].T
        both = columns[:, u].multiply(columns[:, v])
        common[part], weighed[part] = both.sum(axis=0), weights @ both
    common, weighed, first, second = (group.sum_integers(each) for each in (common, weighed, *degrees))
    return [_ranks(each) for each in (common, weighed, first.astype(np.float64) * second)]


def _ranks(scores: np.ndarray) -> np.ndarray:
    """[k] float32 in the same order, equal where scores [k] are."""
    return np.unique(scores, return_inverse=True)[1].astype(np.float32)


def _pieces(work: np.ndarray) -> list[slice]:
    """Slices of pairs of about ENTRIES neighbours each."""
    turn = np.cumsum(work) // ENTRIES
    cuts = np.flatnonzero(np.diff(turn, prepend=-1)).tolist()
    return [slice(lo, hi) for lo, hi in zip(cuts, [*cuts[1:], len(work)])]
