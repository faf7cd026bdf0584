"""From the [graph] table of a case to graphs on row partitions: files one by one, or a generated set."""

from dataclasses import replace

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.group import Group
from app.errors import CaseError
from app.graphs.covering import COVERING, count_candidates
from app.graphs.formats.source import Limits
from app.partition.assemble import EdgeRules, build, complement_of, refuse_unwanted
from app.partition.cache import Cache
from app.partition.generated import generate_set, generate_united
from app.partition.loaded import Loaded
from app.partition.members import share_members
from app.partition.node_weights import weigh, weigh_elements
from app.partition.order import find_order, reorder
from app.partition.recut import read_cost_model, recut_all
from app.partition.stands_for import (
    directions,
    directions_made,
    is_covering,
    is_quadratic,
    is_set,
    reads_prizes,
    stands_for,
)
from app.partition.streams import load_stream, open_stream, told_of_edges, undirected_words
from app.partition.terminals import share_prized, share_terminals

EVERY = slice(None)


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
        return generate_united(group, table, case)
    if not any(paths) or table.generator:
        loaded = load_graphs(group, table, "instances", case)
        if len(loaded) != 1:
            right = 'one, files to unite, or gnn.level = "graph" to learn what each is, would be right'
            raise CaseError(f"graph: found {len(loaded)} graphs; {right}")
        return loaded[0]
    item = ordered(group, _load_file(group, table, paths, case), table.order, case)
    return recut_all(group, [item], read_cost_model(group, case))[0]


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
    source, parts = open_stream(group, table, paths, int(case.memory.max_decompressed_gb * 1e9), case, names)
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
            refuse_unwanted(built, EdgeRules.of(table))
        cache.keep(built)
    graph = complement_of(group, built.graph) if table.complement else built.graph
    warnings = (
        *(source.warnings if source is not None else ()),
        *cache.warnings,
        *undirected_words(table, graph),
    )
    members, terminals = share_members(group, source), share_terminals(group, source)
    held, (prized, heaviest) = told_of_edges(table, source), share_prized(group, source)
    return Loaded(
        graph, built.rows, built.counts, warnings, table.complement, origin, terminals=terminals,
        prized=prized, heaviest=heaviest, members=members, stream=held, seconds=built.seconds,
    )  # fmt: skip
