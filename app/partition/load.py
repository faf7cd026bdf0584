"""From the [graph] table of a case to graphs on row partitions: files one by one, or a generated set."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.graph import BY_EDGE, WORDS, GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.covering import COVERING, NEIGHBOURHOODS, count_candidates
from app.graphs.deliveries import Deliveries
from app.graphs.facility import Demands
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits, trace
from app.graphs.graph import Graph
from app.graphs.members import Members, with_own_rows
from app.graphs.metric import Metric
from app.graphs.pairing import Given
from app.graphs.stream import EdgeStream
from app.graphs.union import unite
from app.partition.assemble import EdgeCounts, assemble, build, complement_of, refuse_unwanted
from app.partition.cache import Cache
from app.partition.cost import CostModel
from app.partition.deal import halt_if_asked
from app.partition.generators import base_seed, drawn_of, generated, most_elements
from app.partition.members import share_members
from app.partition.metric import share_deliveries, share_metric
from app.partition.migrate import move_rows
from app.partition.node_weights import weigh, weigh_elements
from app.partition.order import find_order, reorder
from app.partition.pairing import share_pairing
from app.partition.recut import read_cost_model, recut, recut_evenly
from app.partition.rows import RowPartition, block_count, block_starts, cut_blocks
from app.partition.stands_for import (
    directions,
    directions_made,
    graph_of,
    graph_of_set,
    graph_to_solve,
    is_covering,
    is_quadratic,
    is_set,
    reads_prizes,
    refuse_sets,
    renamed,
    stands_for,
)
from app.partition.terminals import share_prized, share_terminals

LISTED = ("edges", "matrix_market", "dimacs", "npz", "graphsage", "ogb", "tu")  # a row of features an edge
BY_PARTS = (
    "rmat",
    "rmat_natural",
    "chung_lu",
    "bter",
    "sbm",
    "bipartite",
)  # every rank draws a part of the edges


@dataclass(eq=False)
class Loaded:
    """A graph's rows on this rank, how rows are partitioned, and what the file held.

    source   "file", "cache" (the copy of an earlier reading), "generator" or "memory"
    metric   distances between all pairs of nodes, the same on all ranks; None where the file states none
    paths    the files it was read from, several where they were united, and the format named for them
    seed     of the generator
    order_all   [n] int64 on all ranks, the old number of each row; None: rows are in the order of the file
    inside, outside   [k] int64 on all ranks, ids of nodes that a caller wants in the solution, or not in it
    terminals   the same of nodes that a Steiner tree has to hold, by a file or a caller
    prized   node weights of the graph are prizes of such a tree; heaviest: see graphs/stream.py
    deliveries  what vehicles deliver to the points of the metric, by a file, a generator or a caller; or None
    start    [k] ids on all ranks, of a caller's solution to begin with: those chosen, of side 1, or in order
    start_colors   [k] int64 on all ranks, the colours of those nodes; None: the solution is no colouring
    labels   [n] what a caller calls the node of each id, for messages; None: by its id
    demands  the same of the nodes that follow, which are not to be chosen (graphs/covering.py)
    members  the rows of the nodes, and of the graphs, of a set of graphs that a network learns on; or None
    pairing  what the nodes are put on, by a file or a caller; or None
    needs    what nodes need for whom facilities are sought, by a caller; or None
    routes   of a caller's solution to begin with, the route of each of its ids; None: it has none
    stream   on rank 0 the edges once more, where something is told of them (partition/edge_data.py)
    made     of a small graph that every rank has made by itself (the rows, all rows); they are no longer
             this graph's where `graph` is another object; or None
    seconds  of each step of its reading on this rank; empty where it was not read from text or arrays now
    """

    graph: Graph
    rows: RowPartition
    counts: EdgeCounts
    warnings: tuple[str, ...] = ()
    complemented: bool = False
    source: str = "memory"
    metric: Metric | None = None
    paths: tuple[str, ...] = ()
    format: str = "auto"
    seed: int = 0
    order_all: np.ndarray | None = None
    inside: np.ndarray | None = None
    outside: np.ndarray | None = None
    terminals: np.ndarray | None = None
    prized: bool = False
    heaviest: bool = False
    start: np.ndarray | None = None
    start_colors: np.ndarray | None = None
    labels: list[Any] | None = None
    demands: list[Any] | None = None
    members: Members | None = None
    deliveries: Deliveries | None = None
    needs: Demands | None = None
    pairing: Given | None = None
    routes: np.ndarray | None = None
    stream: EdgeStream | None = None
    made: tuple[Graph, Graph] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def release(self) -> None:
        """Let go of the columns of the rows, which somebody else now holds in another numbering."""
        self.graph = replace(self.graph, indices=self.graph.indices[:0].copy())

    def restore(self, columns: np.ndarray) -> None:
        """Take back the columns [nnz] that `release` let go of."""
        self.graph = replace(self.graph, indices=columns.astype(self.graph.indices.dtype, copy=False))


EVERY = slice(None)
MADE_BY_ALL = 2048  # nodes of the largest graph of a generated set that every rank makes by itself


def count_graphs(table: GraphCase) -> int:
    """How many graphs a table names."""
    files = 1 if isinstance(table.path, str) else len(table.path)
    return files + (table.count if table.generator else 0)


def load_graphs(
    group: Group, table: GraphCase, purpose: str, case: Case, share: slice = EVERY
) -> list[Loaded]:
    """The graphs that a table names: its files in order, then the generated ones.

    purpose   names the random streams: graphs of different purposes are independent
    share     of these graphs, the ones to load
    Ranks     all call
    """
    paths = [table.path] if isinstance(table.path, str) else list(table.path)
    wanted = range(count_graphs(table))[share]
    generated = [number - len(paths) for number in wanted if number >= len(paths)]
    paths = [paths[number] for number in wanted if number < len(paths)]
    model = read_cost_model(group, case)
    loaded = []
    for path in paths:
        item = ordered(group, _load_file(group, table, [path], case), table.order, case)
        loaded += recut_all(group, [item], model)
    if generated:
        limit = int(case.memory.max_decompressed_gb * 1e9)
        kind = stands_for(case), directions_made(case, table.generator)
        made = generate_set(group, table, case.seed, purpose, limit, generated, *kind)
        made = [ordered(group, item, table.order, case, keep_cuts=True) for item in made]
        loaded += recut_all(group, made, model, case.parallel.partition)
    return loaded


def load_united(group: Group, table: GraphCase, case: Case) -> Loaded:
    """One graph: the file that a table names, the disjoint union of its files, or the generated one.

    Ranks   all call
    """
    paths = [table.path] if isinstance(table.path, str) else list(table.path)
    if table.generator and is_set(case):
        return _generated_set(group, table, case)
    if not any(paths) or table.generator:
        loaded = load_graphs(group, table, "instances", case)
        if len(loaded) != 1:
            right = 'one, files to unite, or gnn.level = "graph" to learn what each is, would be right'
            raise CaseError(f"graph: found {len(loaded)} graphs; {right}")
        return loaded[0]
    item = ordered(group, _load_file(group, table, paths, case), table.order, case)
    return recut_all(group, [item], read_cost_model(group, case))[0]


def recut_all(
    group: Group, items: list[Loaded], model: CostModel | None, balance: str = "rows"
) -> list[Loaded]:
    """Graphs of equally many blocks, cut as a cost model wants; without one as parallel.partition does.

    balance   "rows": as they are
    Ranks     all call
    """
    if model is None and balance == "rows":
        return items
    held = [(item.graph, item.rows) for item in items]
    moved = recut_evenly(group, held) if model is None else recut(group, held, model)
    return [replace(item, graph=graph, rows=rows) for item, (graph, rows) in zip(items, moved)]


def ordered(group: Group, item: Loaded, order: str, case: Case, keep_cuts: bool = False) -> Loaded:
    """A graph with its rows in the order that a table names (partition/order.py). Ranks: all call."""
    if order == "natural":
        return item
    if item.metric is not None:
        raise CaseError(
            f'graph.order: {item.graph.name} has distances between all nodes; "natural" would be right'
        )
    whole_bytes = 1e6 * case.memory.whole_graph_mb
    order_all = find_order(group, item.graph, item.rows, order, case.seed, whole_bytes)
    balance = None if keep_cuts else case.parallel.partition
    graph, rows = reorder(group, item.graph, item.rows, order_all, balance)
    return replace(item, graph=graph, rows=rows, order_all=order_all)


def _refuse_several(table: GraphCase) -> None:
    """Refuse a file that tells of one graph beside several. Raises CaseError."""
    for key in ("terminals", "prizes", "demands", "onto", "seeds", "similarity"):
        if getattr(table, key) and (found := count_graphs(table)) > 1:
            raise CaseError(f"graph.{key}: is for one graph, found {found}; one would be right")


def _load_file(group: Group, table: GraphCase, paths: list[str], case: Case) -> Loaded:
    """The graph of a file, or of several side by side."""
    _refuse_several(table)
    item = weighted(group, read_paths(group, table, paths, case), table, case)
    return replace(item, paths=tuple(paths), format=table.format)


def weighted(group: Group, item: Loaded, table: GraphCase, case: Case) -> Loaded:
    """A graph, its rows in the file's order, with the node weights, or prizes, that a table names. Ranks: all
    call.
    """
    if table.prizes:
        return _with_prizes(group, item, table, case)
    if not (table.node_weights or table.element_weights):
        return item
    for key in ("node_weights", "element_weights"):
        if getattr(table, key) and (found := count_graphs(table)) > 1:
            raise CaseError(f"graph.{key}: is for one graph, found {found}; one would be right")
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    chosen = group.max_integer(count_candidates(item.graph)) if is_covering(case) else item.graph.n
    graph, said, more = item.graph, (), ()
    if table.node_weights:
        rest = 0.0 if case.problem.name in COVERING else 1.0  # demands of covers have no weights
        graph, said = weigh(group, graph, item.rows, table.node_weights, limits, chosen, rest)
    if table.element_weights:
        graph, more = weigh_elements(group, graph, item.rows, table.element_weights, limits, chosen)
    return replace(item, graph=graph, warnings=(*item.warnings, *said, *more))


def _with_prizes(group: Group, item: Loaded, table: GraphCase, case: Case) -> Loaded:
    """A graph with the prizes of a file in the place of node weights. Ranks: all call."""
    if item.prized:
        raise CaseError(f"graph.prizes: {item.graph.name} has prizes of its own; leave the key out")
    limits, bare = Limits(int(case.memory.max_decompressed_gb * 1e9)), replace(item.graph, node_weights=None)
    graph, said = weigh(group, bare, item.rows, table.prizes, limits, bare.n, missing=0.0)
    return replace(item, graph=graph, prized=True, warnings=(*item.warnings, *said))


def read_paths(
    group: Group, table: GraphCase, paths: list[str], case: Case, names: tuple[str, ...] = ()
) -> Loaded:
    """The graph of a file, or of several united, or what memory.cache keeps of it. Ranks: all call.

    names   of the graphs of a set, in place of those that files have
    """
    source, parts = _open(group, table, paths, int(case.memory.max_decompressed_gb * 1e9), case, names)
    beside = source is not None and (source.metric is not None or source.pairing is not None)
    if group.max_integer(int(beside)):
        return replace(load_stream(group, source, table, case), source="file")  # the cache keeps neither
    read_as = () if table.neighbours == "both" else (table.neighbours,)
    read_as += () if table.ids == "numbers" else (table.ids,)
    read_as += ("prizes",) if reads_prizes(case) else ()
    read_as += ("terms", stands_for(case)) if stands_for(case) else ()
    neighbours = directions(case, table.neighbours)
    read_as += () if neighbours == table.neighbours else (case.problem.name,)
    cache = Cache(group, case.memory.cache, source, (table.self_loops, table.duplicates, *read_as))
    built, origin = cache.fetch(case.parallel.partition), "cache"
    if built is None:
        built = build(group, source, 0, None, case.parallel.partition, parts, neighbours)
        origin = "file"
        if not is_quadratic(case):
            refuse_unwanted(built, table.self_loops, table.duplicates)
        cache.keep(built)
    graph = complement_of(group, built.graph) if table.complement else built.graph
    warnings = (*(source.warnings if source is not None else ()), *cache.warnings, *_undirected(table, graph))
    members, terminals = share_members(group, source), share_terminals(group, source)
    held, (prized, heaviest) = _with_edge_features(table, source), share_prized(group, source)
    return Loaded(
        graph, built.rows, built.counts, warnings, table.complement, origin, terminals=terminals,
        prized=prized, heaviest=heaviest, members=members, stream=held, seconds=built.seconds,
    )  # fmt: skip


def _with_edge_features(table: GraphCase, source: EdgeStream | None) -> EdgeStream | None:
    """The stream where there are features, or labels, of its edges, else None."""
    named = table.edge_features or table.edge_labels or table.edge_splits
    told = source is not None and (named or source.edge_features or source.edge_labels)
    return source if told else None


def _undirected(table: GraphCase, graph: Graph) -> list[str]:
    """A warning where a case tells directions apart that the graph has not."""
    if table.neighbours == "both" or graph.arcs is not None:
        return []
    said = f'graph.neighbours = "{table.neighbours}": {graph.name} is undirected'
    return [f"{said}: its edges count in both directions"]


def _open(
    group: Group, table: GraphCase, paths: list[str], limit: int, case: Case | None = None,
    names: tuple[str, ...] = (),
) -> tuple[EdgeStream | None, bool]:  # fmt: skip
    """The stream of a file on rank 0, and on all ranks where every rank finds the same file and it has parts.

    paths     several: the stream of their union, which has no parts
    limit     bytes of packed text
    case      what is solved of it; None: the graph itself
    names     of the graphs of a set; empty: those of the files
    returns   stream or None; True: all ranks have it
    Ranks     all call
    """
    source, path = None, paths[0]
    with raise_together(group, f"opening {path}"):
        if group.rank == 0:
            found = [open_edges(each, table.format, limit, ids=table.ids) for each in paths]
            _refuse_unlisted(table, found)
            if case is not None and is_set(case):
                found = [graph_of_set(each) for each in found]
            else:
                refuse_sets(found)
            source = unite(found, directions=table.neighbours != "both")
            source = renamed(source, names) if names else source
            source = source if case is None else graph_to_solve(source, case)
    if not group.max_integer(int(group.rank == 0 and source.part is not None)):
        return source, False
    if group.rank > 0:
        source = _open_same(path, table, limit)
    seen = group.gather_integers(np.array([0, 0, 0] if source is None else trace(path)))
    if (seen == seen[0]).all():
        return source, True
    return source if group.rank == 0 else None, False


def _refuse_unlisted(table: GraphCase, streams: list[EdgeStream]) -> None:
    """Refuse a file of rows of edges beside a format that lists no edges one by one. Raises GraphError."""
    keys = ["edge_features"] if table.edge_data_by == "ends" else list(BY_EDGE)
    asked = [key for key in keys if getattr(table, key) not in ("", WORDS.get(key))]
    for each in streams:
        if asked and each.format not in LISTED:
            right = f"{', '.join(LISTED[:-1])} or {LISTED[-1]} would be right"
            right += ', or graph.edge_data_by = "ends"' if asked[0] != "edge_features" else ""
            raise GraphError(f"graph.{asked[0]}: {each.format} lists no edges one by one; {right}")


def _open_same(path: str, table: GraphCase, limit: int) -> EdgeStream | None:
    """The stream of a file on another rank than 0; None where it cannot be opened: disks may differ."""
    try:
        return open_edges(path, table.format, limit, ids=table.ids)
    except Exception:  # rank 0 has opened it, and will read it for all
        return None


def load_stream(group: Group, source: Any, table: GraphCase, case: Case) -> Loaded:
    """The graph of a stream on rank 0 (others pass None), as a [graph] table wants it. Ranks: all call."""
    graph, rows, counts = assemble(
        group, source, complement=table.complement, self_loops=table.self_loops, duplicates=table.duplicates,
        balance=case.parallel.partition, neighbours=directions(case, table.neighbours),
    )  # fmt: skip
    warnings = (*(source.warnings if source is not None else ()), *_undirected(table, graph))
    metric = share_metric(group, source.metric if source is not None else None)
    deliveries = share_deliveries(group, source.deliveries if source is not None else None)
    members, terminals = share_members(group, source), share_terminals(group, source)
    held, (prized, heaviest) = _with_edge_features(table, source), share_prized(group, source)
    return Loaded(
        graph, rows, counts, warnings, table.complement, metric=metric, terminals=terminals,
        prized=prized, heaviest=heaviest, members=members, deliveries=deliveries, stream=held,
        pairing=share_pairing(group, source),
    )  # fmt: skip


def _generated_set(group: Group, table: GraphCase, case: Case) -> Loaded:
    """Generated graphs side by side, each with a row of its own. Ranks: all call."""
    source, (sizes, seeds) = None, drawn_of(table, case.seed, "instances")
    make = _maker(group, table, sizes, seeds, int(case.memory.max_decompressed_gb * 1e9))
    with raise_together(group, "generating graphs"):
        if group.rank == 0:
            united = unite(list(_opened(make, table.count)), f"{table.generator}-{table.count}")
            source = with_own_rows(replace(united, sizes=sizes, graph_names=()))
    item = replace(
        load_stream(group, source, table, case), source="generator", seed=base_seed(table, case.seed)
    )
    return recut_all(group, [item], read_cost_model(group, case))[0]


def _opened(make: Callable[[int], EdgeStream], count: int) -> Iterator[EdgeStream]:
    """The streams of `count` generated graphs. Raises Halted where this rank is asked to stop meanwhile."""
    for number in range(count):
        halt_if_asked()
        yield make(number)


def generate_set(
    group: Group,
    table: GraphCase,
    seed: int,
    purpose: str,
    limit: int = Limits.decompressed,
    numbers: list[int] | None = None,
    made_for: str = "",
    neighbours: str = "both",
) -> list[Loaded]:
    """Generated graphs that share row blocks and cuts, so that batches may mix them.

    limit     bytes of a packed file that degrees are taken from
    numbers   of the graphs to make, the same as in the whole set; None: all
    made_for  the problem that `stands_for` names: their edges are terms or sets; "": none
    neighbours  as of graph.neighbours
    Ranks     all call
    """
    numbers = list(range(table.count)) if numbers is None else numbers
    sizes, seeds = drawn_of(table, seed, purpose)
    make = _maker(group, table, sizes, seeds, limit)
    makers = [lambda i=i: graph_of(make(i), made_for) for i in numbers]
    largest = int(sizes.max()) * (2 if made_for == NEIGHBOURHOODS else 1) + bool(made_for)
    if table.generator == "sets":
        largest = int(sizes.max() + most_elements(table, int(sizes.max()))) + 1
    if largest <= MADE_BY_ALL and group.size > 1:
        made = make_blocks_alike(group, largest, makers, neighbours)
    else:
        parts = table.generator in BY_PARTS and not made_for
        made = share_blocks(group, largest, makers, parts, neighbours)
    return [replace(item, source="generator", seed=int(seeds[i])) for item, i in zip(made, numbers)]


def _maker(
    group: Group, table: GraphCase, sizes: np.ndarray, seeds: np.ndarray, limit: int
) -> Callable[[int], EdgeStream]:
    """What makes graph i of a table. Ranks: all call."""
    takes_file = table.generator == "bter" and table.degrees_of
    found = degrees_of_file(group, table.degrees_of, limit) if takes_file else None
    return lambda i: generated(table, i, int(sizes[i]), int(seeds[i]), found)


def degrees_of_file(group: Group, path: str, limit: int) -> np.ndarray:
    """[m] int64, the degrees of all nodes of a graph file, on all ranks. Ranks: all call."""
    source, parts = _open(group, GraphCase(), [path], limit)
    built = build(group, source, 0, None, "rows", parts)
    return group.gather_host(built.graph.degrees(), built.rows.row_counts())


def with_shared_blocks(
    group: Group,
    loaded: list[Loaded],
    model: CostModel | None = None,
    largest: int = 1,
    balance: str = "rows",
) -> list[Loaded]:
    """The graphs with one number of row blocks and one set of cuts, so that batches may mix them.

    model     balances the predicted time of all of them
    largest   nodes of the largest graph of a set of which these are a part
    balance   without a model, as parallel.partition: "rows" for equal blocks
    Ranks     all call
    """
    blocks = block_count(max([largest, *(item.graph.n for item in loaded)]))
    cuts = cut_blocks(np.ones(blocks, dtype=np.int64), group.size)
    out = []
    for item in loaded:
        rows = RowPartition(item.graph.n, block_starts(item.graph.n, blocks), cuts)
        graph = move_rows(group, item.graph, item.rows, rows)
        out.append(replace(item, graph=graph, rows=rows))
    return recut_all(group, out, model, balance)


def share_blocks(
    group: Group, largest: int, streams: list[Callable[[], Any]], parts: bool = False,
    neighbours: str = "both",
) -> list[Loaded]:  # fmt: skip
    """Assemble graphs of at most `largest` nodes with one number of blocks and one set of cuts.

    streams   makers of edge streams, called on rank 0 only; with parts on all ranks, each for its part
    Ranks     all call
    """
    blocks = block_count(largest)
    cuts = cut_blocks(np.ones(blocks, dtype=np.int64), group.size)
    out = []
    for make in streams:
        source: Any = None
        with raise_together(group, "generating a graph"):
            if parts or group.rank == 0:
                source = make()
        item = Loaded(*assemble(group, source, blocks=blocks, cuts=cuts, parts=parts, neighbours=neighbours))
        metric = None if source is None else source.metric
        deliveries = share_deliveries(group, None if source is None else source.deliveries)
        out.append(replace(item, metric=share_metric(group, metric), deliveries=deliveries))
    return out


def make_blocks_alike(
    group: Group, largest: int, streams: list[Callable[[], Any]], neighbours: str = "both"
) -> list[Loaded]:
    """The same of small graphs that every rank can make: each makes all of them, and keeps its rows and the
    whole. Dealing out hundreds of small graphs would take longer, as each takes some twenty messages.

    Ranks   all call
    """
    with raise_together(group, "generating graphs"):
        made = share_blocks(group.alone(), largest, streams, neighbours=neighbours)
    out = []
    for item in made:
        blocks = len(item.rows.starts) - 1
        rows = replace(item.rows, cuts=cut_blocks(np.ones(blocks, dtype=np.int64), group.size))
        graph = item.graph.held(*rows.range_of(group.rank))
        out.append(replace(item, graph=graph, rows=rows, made=(graph, item.graph)))
    return out
