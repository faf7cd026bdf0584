"""Independent checks of sets of nodes: they read the graph and the answer, and nothing of how it was made."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from app.graphs.deliveries import Deliveries
from app.graphs.graph import Graph, narrow
from app.graphs.lists import entries_of, kept_rows
from app.graphs.metric import Metric
from app.graphs.pairing import Pairing


def edge_inside(graph_rows: Graph, chosen_all: np.ndarray) -> tuple[int, int] | None:
    """The first edge of the held rows, in their order, with both ends in the set; None: it is independent.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    Ranks        a set is independent when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    rows = graph_rows.row_of()
    inside = chosen_all[rows] & chosen_all[graph_rows.indices]
    if not inside.any():
        return None
    first = int(inside.argmax())
    return int(rows[first]), int(graph_rows.indices[first])


def edge_of_one_color(graph_rows: Graph, colors_all: np.ndarray) -> tuple[int, int] | None:
    """The first edge of the held rows, in their order, whose ends have one colour; None: there is none.

    graph_rows   any rows of the graph        colors_all  [n] integers, all nodes, whatever rows are held
    Ranks        a colouring is proper when every rank gets None for the rows it holds
    """
    if colors_all.shape != (graph_rows.n,) or colors_all.dtype.kind not in "iu":
        raise ValueError(f"a colouring is [n] integers, got {colors_all.dtype} {colors_all.shape}")
    rows = graph_rows.row_of()
    same = colors_all[rows] == colors_all[graph_rows.indices]
    if not same.any():
        return None
    first = int(same.argmax())
    return int(rows[first]), int(graph_rows.indices[first])


def missing_edge(graph_rows: Graph, chosen_all: np.ndarray) -> tuple[int, int] | None:
    """The first two chosen nodes that no edge joins, the first of them held; None: these are joined to all.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    Ranks        a set is a clique when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    rows = graph_rows.row_of()
    joined = chosen_all[rows] & chosen_all[graph_rows.indices]
    met = np.bincount(rows[joined] - graph_rows.lo, minlength=graph_rows.hi - graph_rows.lo)
    own = chosen_all[graph_rows.lo : graph_rows.hi]
    short = np.flatnonzero(own & (met < np.count_nonzero(chosen_all) - 1))
    if not len(short):
        return None
    row = int(short[0])
    near = graph_rows.indices[graph_rows.indptr[row] : graph_rows.indptr[row + 1]]
    apart = chosen_all.copy()
    apart[near] = apart[row + graph_rows.lo] = False
    return row + graph_rows.lo, int(apart.argmax())


def undominated_node(
    graph_rows: Graph, chosen_all: np.ndarray, needed_all: np.ndarray | None = None
) -> int | None:
    """The first held node that is neither in the set nor next to it; None: the set dominates the held rows.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    needed_all   [n] bool, the nodes that have to be dominated; None: all
    Ranks        a set dominates when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    dominated = chosen_all[graph_rows.lo : graph_rows.hi].copy()
    rows = graph_rows.row_of()[chosen_all[graph_rows.indices]]
    dominated[rows - graph_rows.lo] = True
    if needed_all is not None:
        dominated |= ~needed_all[graph_rows.lo : graph_rows.hi]
    return None if dominated.all() else int(dominated.argmin()) + graph_rows.lo


def node_of_cycle(graph: Graph, chosen_all: np.ndarray) -> int | None:
    """A node of a whole graph that a cycle of nodes outside the set goes through; None: it meets all cycles.

    chosen_all  [n] bool
    """
    _require(graph, chosen_all)
    kept = ~chosen_all
    rows = graph.row_of()
    inner = kept[rows] & kept[graph.indices]
    rows, columns = rows[inner], graph.indices[inner]
    matrix = narrow(sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(graph.n, graph.n)))
    tree = minimum_spanning_tree(matrix).tocoo()
    if 2 * tree.nnz == len(rows):  # both directions of each edge are the forest's
        return None
    keys = np.concatenate([tree.row * np.int64(graph.n) + tree.col, tree.col * np.int64(graph.n) + tree.row])
    closing = ~np.isin(rows * np.int64(graph.n) + columns, keys)
    return int(rows[closing.argmax()]) if closing.any() else None


def node_of_large_component(graph: Graph, chosen_all: np.ndarray, most: int) -> tuple[int, int] | None:
    """A node of a whole graph in a component of more than `most` nodes outside the set, the largest one, and
    how many these are; None: there is none.

    chosen_all  [n] bool
    """
    _require(graph, chosen_all)
    kept = ~chosen_all
    ptr, columns = kept_rows(graph.indptr, graph.indices, kept)
    matrix = narrow(sp.csr_array((np.ones(len(columns), np.int8), columns, ptr), shape=(len(ptr) - 1,) * 2))
    part = connected_components(matrix, directed=False)[1]
    size = np.bincount(part, minlength=1)
    if size.max() <= most:
        return None
    return int(np.flatnonzero(kept)[(part == size.argmax()).argmax()]), int(size.max())


def fault_of_tree(graph: Graph, parent: np.ndarray, terminals: np.ndarray) -> str | None:
    """What makes parents [n] no tree of a whole graph that holds all terminals [k]; None: nothing.

    parent   the next node on the way to the root, which is its own; -1 outside the tree
    """
    if parent.shape != (graph.n,) or parent.dtype.kind not in "iu":
        return f"is {parent.dtype} {parent.shape}, not one parent for each node"
    if len(parent) and (parent.min() < -1 or parent.max() >= graph.n):
        return f"has a node number outside 0..{graph.n - 1}"
    without = terminals[parent[terminals] < 0]
    if len(without):
        return f"does not hold the terminal {graph.called(int(without[0]))}"
    nodes = np.flatnonzero(parent >= 0)
    above = parent[nodes]
    counts, has = graph.indptr[nodes + 1] - graph.indptr[nodes], np.zeros(graph.n, dtype=bool)
    found = graph.indices[entries_of(graph.indptr, nodes)] == np.repeat(above, counts)
    has[np.repeat(nodes, counts)[found]] = True
    hangs, lost = parent[above] < 0, (above != nodes) & ~has[nodes]
    for at in np.flatnonzero(hangs | lost)[:1].tolist():
        node, other = int(nodes[at]), int(above[at])
        if hangs[at]:
            return f"hangs on node {graph.called(other)}, which is not in it"
        return f"has the edge {graph.called(*sorted((node, other)))}, which the graph has not"
    edges = np.count_nonzero(above != nodes)
    matrix = sp.csr_array((np.ones(len(nodes), np.int8), (nodes, above)), shape=(graph.n, graph.n))
    part = connected_components(narrow(matrix), directed=False)[1][nodes]
    first = int(terminals[0]) if len(terminals) else int(nodes[0]) if len(nodes) else -1
    apart = nodes[part != part[nodes == first]] if len(nodes) else nodes
    if len(apart):
        return f"has no path between the nodes {graph.called(first)} and {graph.called(int(apart[0]))}"
    return None if edges == len(nodes) - 1 else f"has {edges} edges on {len(nodes)} nodes: a circle"


def fault_of_order(graph: Graph, order: np.ndarray, words: str = "order") -> str | None:
    """What keeps numbers from being an order of a whole graph's nodes, which `words` calls; None: nothing."""
    n = graph.n
    if len(order) and not 0 <= order.min() <= order.max() < n:
        return f"a node number is outside 0..{n - 1}"
    met = np.bincount(order, minlength=n) if n else np.zeros(0)
    wrong = np.flatnonzero(met != 1)
    return (
        f"node {graph.called(int(wrong[0]))} has {met[wrong[0]]} places in the {words}"
        if len(wrong)
        else None
    )


def fault_of_mapping(graph: Graph, asked: Pairing, mapping: np.ndarray) -> str | None:
    """What makes places [n] no mapping of a graph's nodes to those of another; None: nothing.

    mapping   the node that each is put on; -1: none is left, which is so only where all are taken
    """
    if mapping.shape != (asked.n,) or mapping.dtype.kind not in "iu":
        return f"is {mapping.dtype} {mapping.shape}, not one place for each node"
    if _maps(asked, mapping):
        return None
    taken: dict[int, int] = {}  # one by one: what is wrong is told
    for node, place in enumerate(mapping.tolist()):
        if not -1 <= place < asked.m:
            return f"puts node {graph.called(node)} on number {place}, outside 0..{asked.m - 1}"
        if place in taken:
            both = f"nodes {graph.called(taken[place])} and {graph.called(node)}"
            return f"puts {both} on one node, {asked.called(place)}"
        if place >= 0:
            taken[place] = node
        if asked.seeds[node] not in (-1, place):
            told = f"{asked.called(int(asked.seeds[node]))}, where it is known to be"
            return f"does not put node {graph.called(node)} on {told}"
    wanted = min(asked.n, asked.m)
    return None if len(taken) == wanted else f"puts {len(taken)} nodes on others; {wanted} would be right"


def _maps(asked: Pairing, mapping: np.ndarray) -> bool:
    """Whether places [n] are what `fault_of_mapping` says."""
    if not len(mapping) or mapping.min() < -1 or mapping.max() >= asked.m:
        return False
    placed, known = mapping[mapping >= 0], (asked.seeds == -1) | (asked.seeds == mapping)
    one_each = int(np.bincount(placed, minlength=1).max()) <= 1
    return one_each and len(placed) == min(asked.n, asked.m) and bool(known.all())


def fault_of_routes(
    graph: Graph, deliveries: Deliveries, after: np.ndarray, metric: Metric | None = None
) -> str | None:
    """What makes stops [n] no routes from a depot through all other nodes of a whole graph, each of them with
    a load that a vehicle can carry; None: nothing.

    after    the next stop of each node; the depot's number at the end of a route, and as its own entry
    metric   distances, which times are told by, where there are some
    """
    n, depot = graph.n, deliveries.depot
    if after.shape != (n,) or after.dtype.kind not in "iu":
        return f"is {after.dtype} {after.shape}, not one stop for each node"
    if after.min() < 0 or after.max() >= n:
        return f"has a node number outside 0..{n - 1}"
    stops = after.tolist()
    if stops[depot] != depot:
        return f"has the stop {graph.called(stops[depot])} after the depot itself"
    reached = [0] * n
    for node, stop in enumerate(stops):
        reached[stop] += node != depot
    starts = [node for node in range(n) if node != depot and not reached[node]]
    passed = 0
    for node in starts:
        load, first = 0, node
        while node != depot:
            if reached[node] > 1:
                return f"comes to node {graph.called(node)} from {reached[node]} others"
            load, node, passed = load + int(deliveries.demand[node]), stops[node], passed + 1
        if load > deliveries.capacity:
            told = f"carries {load} on the route that begins or ends with {graph.called(first)}"
            return f"{told}, where {deliveries.capacity} can be carried"
        if deliveries.times is not None and (late := _lateness(graph, deliveries, stops, first, metric)):
            return late
    if passed < n - 1:
        return f"has a circle without the depot: {n - 1 - passed} nodes are on no route"
    if deliveries.vehicles and len(starts) > deliveries.vehicles:
        return f"has {len(starts)} routes, for {deliveries.vehicles} vehicles"
    return None


def _lateness(
    graph: Graph, deliveries: Deliveries, stops: list[int], first: int, metric: Metric
) -> str | None:
    """What is too late on the route that begins with a node; None: nothing."""
    times, depot, unit = deliveries.times, deliveries.depot, metric.unit
    clock, before, node = int(times.opens[depot]), depot, first
    while True:
        clock += int(metric.between(np.array([before]), np.array([node]))[0])
        if clock > times.closes[node]:
            told = f"comes to node {graph.called(node)} at {clock * unit:.10g}"
            if node == depot:
                told = f"is back at the depot at {clock * unit:.10g} on the route of {graph.called(first)}"
            return f"{told}, where {int(times.closes[node]) * unit:.10g} is the latest"
        if node == depot:
            return None
        clock = max(clock, int(times.opens[node])) + int(times.service[node])
        before, node = node, stops[node]


def _require(graph_rows: Graph, chosen_all: np.ndarray) -> None:
    if chosen_all.shape != (graph_rows.n,) or chosen_all.dtype != bool:
        raise ValueError(
            f"chosen_all: needs [{graph_rows.n}] bool, got {chosen_all.shape} {chosen_all.dtype}"
        )
