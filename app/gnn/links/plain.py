"""Scores of pairs by what two nodes have in common, without learning: what learned ones stand beside.

Counts are whole numbers, so that sums over ranks have no order.
"""

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.gnn.links.pairs import own_rows
from app.gnn.links.ranking import EachScores, Ranking
from app.gnn.links.scores import LinkScores
from app.gnn.links.split import LinkSplit
from app.graphs.graph import Graph
from app.graphs.lists import ranges
from app.partition.loaded import Loaded

ONE = 1 << 32  # what a weight of one is counted as
ENTRIES, PATHS = 1 << 22, 1 << 20  # neighbours, and paths, that are looked at together


def plain_scores(
    group: Group, split: LinkSplit, ranking: Ranking | None = None
) -> dict[str, dict[str, LinkScores]]:
    """How well plain rules tell the held-out edges apart, by rule and split. Ranks: all call.

    ranking  of the partners of each node, which is told of the degrees; None: of nothing
    Source   Liben-Nowell and Kleinberg 2007, section 3: common neighbours; Adamic/Adar, the sum of 1 / log of
             the degrees of these; preferential attachment, the product of both degrees. Nodes of two sides
             have no neighbour in common: Kovacs et al. 2019 count the paths of length 3 between them, and
             weigh each (L3) by 1 / sqrt of the product of the degrees of its two inner nodes
    """
    out: dict[str, dict[str, LinkScores]] = {rule: {} for rule in rules_of(split.sides is not None)}
    count = _counted if split.sides is None else _counted_paths
    for name in ("val", "test"):
        chosen = split.sets[name]
        found = count(group, split.loaded, chosen.both)
        for rule, scores in zip(out, found):
            out[rule][name] = LinkScores.of(scores, len(chosen.joined))
    for rule, each in (_rankings(ranking) if ranking else {}).items():
        out[rule] |= {name: replace(out[rule][name], each=scores) for name, scores in each.items()}
    return out


def rules_of(sides: bool) -> tuple[str, ...]:
    """The rules for pairs of two sides, or of any nodes."""
    return (*(("paths_3", "l3") if sides else ("common_neighbours", "adamic_adar")), "degrees")


def _rankings(ranking: Ranking) -> dict[str, dict[str, EachScores]]:
    """How well the rules rank the partners of each node, by rule and split. Ranks: all call."""
    degree = ranking.block.degrees_own().astype(np.float64)
    some, one = np.maximum(degree, 1), np.ones(len(degree), dtype=np.float32)
    if ranking.split.sides is None:
        weights = [1 / math.log(d) if d > 1 else 0 for d in degree.tolist()]
        walks = {"common_neighbours": [one], "adamic_adar": [np.array(weights, dtype=np.float32)]}
    else:
        walks = {"paths_3": [one] * 2, "l3": [(1 / np.sqrt(some)).astype(np.float32)] * 2}
    return {rule: ranking.by_walks(inner) for rule, inner in walks.items()} | {
        "degrees": ranking.by_degrees()
    }


def _counted(group: Group, loaded: Loaded, pairs: np.ndarray) -> list[np.ndarray]:
    """[k] float32 by rule, in the order of its scores. Ranks: all call."""
    graph, own = loaded.graph, own_rows(loaded.graph)
    columns = own.tocsc()  # of a node its neighbours among the own rows: A is symmetric
    weights = np.array(
        [round(ONE / math.log(d)) if d > 1 else 0 for d in graph.degrees().tolist()], dtype=np.int64
    )
    sizes = np.diff(columns.indptr)
    common, weighed = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    degrees = np.stack([sizes[pairs[:, 0]], sizes[pairs[:, 1]]]).astype(np.int64)
    for part in _pieces(degrees.sum(axis=0), ENTRIES):
        u, v = pairs[part].T
        both = columns[:, u].multiply(columns[:, v])
        common[part], weighed[part] = both.sum(axis=0), weights @ both
    common, weighed, first, second = (group.sum_integers(each) for each in (common, weighed, *degrees))
    return [_ranks(each) for each in (common, weighed, first.astype(np.float64) * second)]


def _counted_paths(group: Group, loaded: Loaded, pairs: np.ndarray) -> list[np.ndarray]:
    """As `_counted`, of paths of length 3 and of degrees.

    A path u - i - w - v is counted by the owner of i, which has the row of i; the rows of the nodes v travel.
    Paths u - i - w are counted in the upper half of a number, and weighed by i in the lower.
    """
    graph, own = loaded.graph, own_rows(loaded.graph)
    columns, degree = own.tocsc(), group.gather_host(graph.degrees(), loaded.rows.row_counts())
    unit = 1 << min(16, 31 - int(degree.max(initial=1)).bit_length())
    weigh = np.array([round(unit / math.sqrt(d)) if d else 0 for d in degree.tolist()], dtype=np.int64)
    own.data[:] = np.repeat(ONE + weigh[graph.lo : graph.hi], graph.degrees())
    heard = group.sum_integers(np.asarray(own_rows(graph).T @ graph.degrees()))  # by the neighbours of each
    turned = heard[pairs[:, 1]] + degree[pairs[:, 0]] < heard[pairs[:, 0]] + degree[pairs[:, 1]]
    u, v = np.where(turned, pairs[:, 1], pairs[:, 0]), np.where(turned, pairs[:, 0], pairs[:, 1])
    count, weighed = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for part in _pieces(heard[u] + degree[v], PATHS):
        first, ends = columns[:, u[part]].T.tocsr(), _rows_everywhere(group, graph, v[part])
        steps = (first @ own).multiply(ends).tocsr()
        rows = np.repeat(np.arange(part.stop - part.start), np.diff(steps.indptr))
        np.add.at(count, part.start + rows, steps.data >> 32)
        np.add.at(weighed, part.start + rows, (steps.data & (ONE - 1)) * weigh[steps.indices])
    count, weighed = (group.sum_integers(each) for each in (count, weighed))
    return [_ranks(each) for each in (count, weighed, degree[u].astype(np.float64) * degree[v])]


def _rows_everywhere(group: Group, graph: Graph, rows: np.ndarray) -> sp.csr_array:
    """[k, n] int64, the rows of A of nodes [k], on all ranks. Ranks: all call."""
    at = np.flatnonzero((rows >= graph.lo) & (rows < graph.hi))
    starts, ends = (graph.indptr[rows[at] - graph.lo + k] for k in (0, 1))
    column = graph.indices[ranges(starts, ends - starts)].astype(np.int64)
    sizes = group.gather_integers(np.array([len(column)]))[:, 0].tolist()
    row, column = (group.gather_host(each, sizes) for each in (np.repeat(at, ends - starts), column))
    return sp.csr_array((np.ones(len(row), dtype=np.int64), (row, column)), shape=(len(rows), graph.n))


def _ranks(scores: np.ndarray) -> np.ndarray:
    """[k] float32 in the same order, equal where scores [k] are."""
    return np.unique(scores, return_inverse=True)[1].astype(np.float32)


def _pieces(work: np.ndarray, most: int) -> list[slice]:
    """Slices of pairs of about `most` neighbours each."""
    turn = np.cumsum(work) // most
    cuts = np.flatnonzero(np.diff(turn, prepend=-1)).tolist()
    return [slice(lo, hi) for lo, hi in zip(cuts, [*cuts[1:], len(work)])]
