"""Edge-attribute-wise partitioning: relations grouped over parts, and who holds what on a grid of ranks.

Source   Kibata, Tsukada, Matsutani 2020, section 3.1: two ways of grouping, self-loops apart
"""

from dataclasses import dataclass

import numpy as np

from app.errors import CaseError
from app.graphs.keys import sorted_set, union
from app.graphs.triples.relational import RelationalGraph
from app.partition.rows import RowPartition, cut_blocks, partition_rows

MOST_BLOCKS = 64  # of nodes: a relation's sums over nodes have at most so many addends


def group_by_edges(counts: np.ndarray, parts: int) -> np.ndarray:
    """The part of each relation, so that parts have about equally many edges (the paper's first way).

    The relation with most edges goes first, each to the part with fewest edges (the lowest of equal ones).
    counts   [relations] edges     returns   [relations] int64
    """
    load = np.zeros(parts, dtype=np.int64)
    out = np.zeros(len(counts), dtype=np.int64)
    for relation in _descending(counts):
        out[relation] = part = int(load.argmin())
        load[part] += counts[relation]
    return out


def group_by_relations(counts: np.ndarray, parts: int) -> np.ndarray:
    """The part of each relation, so that parts have equally many relations (the paper's second way).

    Sorted by edges, descending, relations are dealt to parts 1 .. N, then N .. 1, and so on.
    """
    turn, place = np.divmod(np.arange(len(counts)), parts)
    out = np.zeros(len(counts), dtype=np.int64)
    out[_descending(counts)] = np.where(turn % 2 == 0, place, parts - 1 - place)
    return out


GROUPINGS = {"edges": group_by_edges, "relations": group_by_relations}


def _descending(counts: np.ndarray) -> np.ndarray:
    """Relations by edges, most first; the lowest number of equal ones first."""
    return np.argsort(-np.asarray(counts, dtype=np.int64), kind="stable")


# ---- who holds what ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Placement:
    """A grid of ranks: row parts x relation groups; rank = row part * groups + group.

    rows       nodes over all ranks in whole blocks: their owners add up and keep rows of nodes
    groups     columns of the grid: 1 is a partition by rows alone, the number of ranks one by relations alone
    group_of   [relations] the group of each relation
    turn_of    [relations] when its group processes it: 0 .. turns-1
    """

    rows: RowPartition
    groups: int
    group_of: np.ndarray
    turn_of: np.ndarray
    turns: int

    def owner(self, nodes: np.ndarray) -> np.ndarray:
        """The rank that owns each node."""
        return self.rows.owner(nodes)

    def holder(self, relations: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """The rank that holds what belongs to each (relation, node)."""
        return self.owner(nodes) // self.groups * self.groups + self.group_of[relations]


def place(
    graph: RelationalGraph, ranks: int, groups: int, grouping: str = "relations", turns: int = 1
) -> Placement:
    """A placement: rows balanced by edges, relations by `grouping`, first over groups, then turns.

    groups   divides ranks
    turns    parts that a rank processes one after the other
    """
    counts = graph.edge_counts()
    part = GROUPINGS[grouping](counts, groups * turns)
    blocks = max(1, min(-(-graph.nodes // 8), MOST_BLOCKS))
    whole = partition_rows(graph.nodes, 1, blocks=blocks)
    weights = np.bincount(whole.starts.searchsorted(graph.target, side="right") - 1, minlength=blocks)
    rows = RowPartition(graph.nodes, whole.starts, cut_blocks(weights + np.diff(whole.starts), ranks))
    return Placement(rows, groups, part % groups, part // groups, turns)


# ---- sizes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartSize:
    """What one part holds; the last part of a table is the self-loops.

    rows      (relation, source) pairs that an edge uses: rows of first-layer weights that are stored
    weights   their elements, rows x hidden         bound   |R_i| |V_i| |H|, what one matrix per relation has
    """

    relations: int
    edges: int
    nodes: int
    rows: int
    weights: int
    bound: int


def part_sizes(
    graph: RelationalGraph, part_of: np.ndarray, parts: int, hidden: int, loops: int | None = None
) -> list[PartSize]:
    """Sizes of each part of a grouping, then those of the self-loops.

    loops   nodes that have one; None: all
    """
    out = []
    for part in range(parts):
        chosen = part_of[graph.relation] == part
        source = graph.source[chosen]
        rows = len(sorted_set(source.astype(np.int64) * graph.relations + graph.relation[chosen]))
        nodes = len(union(source, graph.target[chosen]))
        relations = int((part_of == part).sum())
        out.append(PartSize(relations, len(source), nodes, rows, rows * hidden, relations * nodes * hidden))
    n = graph.nodes if loops is None else loops
    return [*out, PartSize(1, n, n, n, n * hidden, n * hidden)]


def fit_turns(
    graph: RelationalGraph, grouping: str, groups: int, limit: int, hidden: int, resident: int
) -> int:
    """The fewest parts, of each group's relations, of which any one fits into fast memory.

    limit      bytes; resident: bytes of the limit that are taken whatever the part
    A part needs two rows of `hidden` numbers for each of its source rows: weights and their gradient.
    Raises CaseError where a part of a single relation is too large.
    """
    need = _bytes_by_relation(graph, hidden)
    for turns in range(1, graph.relations + 1):
        if resident + _largest_part(graph, grouping, groups * turns, need) <= limit:
            return turns
    least = -(-(resident + int(need.max())) // 1_000_000)
    raise CaseError(
        f"memory.fast_mb: {limit / 1e6:g} is too small for one relation at a time; {least} would do"
    )


def refuse_turns(
    graph: RelationalGraph, grouping: str, groups: int, turns: int, limit: int, hidden: int, resident: int
) -> None:
    """Raise CaseError where one of so many parts is too large; limit and resident: see fit_turns."""
    needed = resident + _largest_part(graph, grouping, groups * turns, _bytes_by_relation(graph, hidden))
    if needed > limit:
        raise CaseError(
            f"memory.fast_mb: {limit / 1e6:g} is too small for rgcn.parts = {turns};"
            f" {-(-needed // 1_000_000)} would do, or rgcn.parts = 0, as many as it takes"
        )


def _largest_part(graph: RelationalGraph, grouping: str, parts: int, need: np.ndarray) -> int:
    """Bytes of the largest of so many parts; need: [relations] of each relation."""
    part_of = GROUPINGS[grouping](graph.edge_counts(), parts)
    return int(np.bincount(part_of, weights=need).max(initial=0))


def _bytes_by_relation(graph: RelationalGraph, hidden: int) -> np.ndarray:
    """[relations] int64, what a relation's source rows take."""
    keys = sorted_set(graph.source.astype(np.int64) * graph.relations + graph.relation)
    return 2 * 4 * hidden * np.bincount(keys % graph.relations, minlength=graph.relations)
