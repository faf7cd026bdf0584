"""Families of sets: set cover, hitting set and maximum coverage, on a graph with one node more.

Given are sets of elements. A *set cover* is a choice of sets such that every element is in one of them; a
*hitting set* is a choice of elements such that every set has one of them. Either chooses *candidates* such
that every *demand* meets one: of a cover candidates are the sets and demands the elements, of a hitting set
it is the other way round. In the graph of

    an edge from a candidate to every demand that it meets, and
    one more node r, the *reference*, with an edge to every candidate

the dominating sets that hold r and no demand are these choices and r: r dominates all candidates, and a
demand is next to a candidate that meets it. Candidates come first, then demands, the reference is last, so
that its degree tells how many candidates there are.

*Maximum coverage* chooses sets for a budget such that elements of most weight are in one of them: the same
graph, in which a demand may stay unmet, and has a weight. The sets may also be the closed neighbourhoods of
the nodes of a graph, which are elements then, too.

Source     Karp 1972 (both problems); Garey and Johnson 1979, GT2 and SP5, for dominating sets
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from app.errors import GraphError
from app.graphs.formats.text import LARGEST_ID
from app.graphs.graph import Graph
from app.graphs.ids import name_array, named, one_id
from app.graphs.keys import sorted_set
from app.graphs.stream import Chunk, EdgeStream

HITTING = "hitting_set"
COVERING = ("set_cover", HITTING)  # problems of families of sets that leave no demand
COVERAGE = "coverage"  # the one that leaves some
NEIGHBOURHOODS = "coverage of neighbourhoods"  # the same of a graph
OF_FAMILIES = (*COVERING, COVERAGE, NEIGHBOURHOODS)  # what the graphs of a case may hold
FAMILIES = ("sets", "gmt")  # formats that hold families and do not count sets
PAIRS = ("edges", *FAMILIES)  # whose pairs (u, v) say that v is in u
MARK = b"\xf4\x8f\xbf\xbf"  # begins names of demands, once, and of the reference, twice: behind all others


@dataclass(frozen=True, eq=False)
class Side:
    """The sets of a family, or its elements.

    what    "set" or "element", for messages
    ids     [k] int64 or names, ascending     costs   [k] float32 of choosing them, or None: all one
    """

    what: str
    ids: np.ndarray
    costs: np.ndarray | None = None


def as_covering(family: EdgeStream, problem: str) -> EdgeStream:
    """The edges of the graph whose dominating sets are the covers, or the hitting sets, of a family.

    family    pairs (set, element): of numbers 0..sets-1 and sets..nodes-1 where the stream counts its sets;
              else u is a set and v an element of it, each by an id or name of its own kind
    problem   one of OF_FAMILIES
    """
    family = closed_neighbourhoods(family) if problem == NEIGHBOURHOODS else family
    if family.metric is not None or (family.sets is None and family.format not in PAIRS):
        right = "an edge list of sets and their elements, .sets, .gmt, .hgr or .scp would be right"
        right = 'graph.generator = "sets" would be right' if family.format == "generated" else right
        raise GraphError(f"{family.name}: found the format {family.format} for a family of sets; {right}")
    if family.weighted:
        right = "'set element' would be right (costs: graph.node_weights)"
        raise GraphError(f"{family.path or family.name}: found pairs with a weight; {right}")
    nodes = None if family.sets is None else family.nodes + 1
    return replace(
        family, nodes=nodes, make=lambda made: _chunks(family, made, problem), part=None, lines=None,
        undirected=True, mirrored=False, node_weights=None, entries=None, sets=None,
    )  # fmt: skip


def closed_neighbourhoods(stream: EdgeStream) -> EdgeStream:
    """The family of a graph whose sets are its nodes, and hold these and their neighbours. Raises GraphError.

    Edges count in both directions, whatever their weights; weights of nodes are costs of the sets.
    """
    where = stream.path or stream.name
    if stream.metric is not None or stream.sets is not None or stream.format in FAMILIES:
        right = 'problem.sets = "family" would be right' if stream.metric is None else "edges would be right"
        raise GraphError(f"{where}: found {stream.format} for a graph of neighbourhoods; {right}")
    stated = stream.nodes is not None
    return replace(
        stream, nodes=2 * stream.nodes if stated else None, sets=stream.nodes, weighted=False,
        format=stream.format if stated else "edges", make=lambda made: _neighbours(stream, made), part=None,
        lines=None, undirected=False, mirrored=False, entries=None,
    )  # fmt: skip


def _neighbours(stream: EdgeStream, made: EdgeStream) -> Iterator[Chunk]:
    """Pairs of a node and itself or a neighbour, each once."""
    u, v = _pairs(stream)
    made.warnings[:] = stream.warnings
    made.ids = stream.ids
    nodes = sorted_set(np.concatenate([u, v])) if stream.nodes is None else np.arange(stream.nodes)
    rows = np.searchsorted(nodes, np.concatenate([u, v, nodes]))
    heads = np.searchsorted(nodes, np.concatenate([v, u, nodes]))
    keys = sorted_set(rows * len(nodes) + heads)
    if stream.node_weights is not None:
        made.node_weights = np.append(stream.node_weights, np.ones(len(nodes), dtype=np.float32))
    rows, heads = np.divmod(keys, max(len(nodes), 1))
    yield nodes[rows], nodes[heads] + (0 if stream.nodes is None else len(nodes)), None


def _chunks(family: EdgeStream, made: EdgeStream, problem: str) -> Iterator[Chunk]:
    """All edges; what the family says of itself on the way is said of the graph."""
    u, v = _pairs(family)
    for text in family.warnings:
        made.warn(text)
    left, right = _sides(family, u, v)
    u, v = _places(family, u, v, left, right)
    hits, partial = problem == HITTING, problem not in COVERING
    candidates, demands = (right, left) if hits else (left, right)
    of, met = (v, u) if hits else (u, v)
    if not partial:
        _refuse_unmet(family, demands, met, candidates.what)
        _tell_costs(family, made, demands)
    count, numbers = len(candidates.ids), _numbers(family, made, candidates, demands)
    if partial and family.node_weights is not None:
        made.node_weights = np.append(family.node_weights, np.float32(0))
    elif candidates.costs is not None:
        made.node_weights = np.zeros(count + len(demands.ids) + 1, dtype=np.float32)
        made.node_weights[:count] = candidates.costs
    yield numbers[of], numbers[count + met], None
    yield numbers[:count], np.full(count, numbers[-1]), None


def _pairs(family: EdgeStream) -> tuple[np.ndarray, np.ndarray]:
    """All pairs, as the stream has them: u, v [m] int64, sets and elements."""
    found = [(u, v) for u, v, _ in family.chunks()]
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    u, v = (np.concatenate(part).astype(np.int64) for part in zip(*found))
    return u, v


def _sides(family: EdgeStream, u: np.ndarray, v: np.ndarray) -> tuple[Side, Side]:
    """Sets and elements: as many as the stream counts, or those of pairs u, v [m]."""
    if family.sets is None:
        known = [sorted_set(each) for each in (u, v)]
        known = [np.sort(family.ids[each]) for each in known] if family.named else known
        return Side("set", known[0]), Side("element", known[1])
    cut, counts = (slice(0, family.sets), slice(family.sets, None)), (family.sets, family.nodes - family.sets)
    costs = [None if family.node_weights is None else family.node_weights[part] for part in cut]
    ids = [np.arange(count, dtype=np.int64) + family.first_id for count in counts]
    return Side("set", ids[0], costs[0]), Side("element", ids[1], costs[1])


def _places(
    family: EdgeStream, u: np.ndarray, v: np.ndarray, left: Side, right: Side
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs u, v [m] as the stream has them, by places [m] among the sets, and among the elements."""
    if family.sets is not None:
        return u, v - family.sets
    u, v = (family.ids[u], family.ids[v]) if family.named else (u, v)
    return np.searchsorted(left.ids, u), np.searchsorted(right.ids, v)


def _refuse_unmet(family: EdgeStream, demands: Side, met: np.ndarray, candidate: str) -> None:
    """Raises GraphError where a demand meets no candidate: whatever is chosen, it is left.

    met        [m] the place of the demand of each pair
    candidate  "set" or "element"
    """
    times = np.bincount(met, minlength=len(demands.ids))
    if times.all():
        return
    demand = f"{demands.what} {one_id(demands.ids, int(times.argmin()))}"
    wrong = f"{demand} is in no set" if candidate == "set" else f"{demand} has no element"
    raise GraphError(f"{family.path or family.name}: {wrong}: no choice of {candidate}s is complete")


def _tell_costs(family: EdgeStream, made: EdgeStream, demands: Side) -> None:
    """A warning where what is not chosen has costs."""
    if demands.costs is not None and (demands.costs != 1).any():
        where = family.path or family.name
        made.warn(f"{where}: costs of {demands.what}s are not read: {demands.what}s are not chosen")


def _numbers(family: EdgeStream, made: EdgeStream, candidates: Side, demands: Side) -> np.ndarray:
    """[candidates + demands + 1] int64: what the stream calls the nodes; their names go to the stream."""
    if named(candidates.ids):
        made.ids = _names(family, candidates, demands)
    if named(candidates.ids) or family.sets is not None:
        return np.arange(len(candidates.ids) + len(demands.ids) + 1)
    first, last = (int(ids.max(initial=-1)) + 1 for ids in (candidates.ids, demands.ids))
    if first + last > LARGEST_ID:
        right = 'smaller ids, or graph.ids = "names",' if family.format == "edges" else "smaller ids"
        said = f"found ids of a set and an element that are above 2^63 together; {right} would be right"
        raise GraphError(f"{family.path or family.name}: {said}")
    return np.concatenate([candidates.ids, first + demands.ids, [first + last]])


def _names(family: EdgeStream, candidates: Side, demands: Side) -> np.ndarray:
    """[candidates + demands + 1] names, ascending: those of demands and of the reference are marked."""
    for side in (candidates, demands):
        if len(side.ids) and bytes(side.ids[-1]).startswith(MARK):  # the last one in ascending order
            said = f"found the {side.what} {one_id(side.ids, -1)}, a name that begins with U+10FFFF"
            raise GraphError(f"{family.path or family.name}: {said}; another would be right")
    marked = [MARK + name for name in demands.ids.tolist()]
    return name_array([*candidates.ids.tolist(), *marked, MARK + MARK])


def count_candidates(graph: Graph) -> int:
    """How many candidates a graph of `as_covering` has, where its last row is held; else 0."""
    return int(graph.indptr[-1] - graph.indptr[-2]) if graph.hi == graph.n > graph.lo else 0


def demand_ids(ids: np.ndarray, count: int, first_id: int) -> np.ndarray:
    """[demands] int64 or names, as files call demands, of the ids [n] of a graph of `as_covering`.

    count   of candidates      first_id   of the graph
    """
    if named(ids):
        return name_array([name.removeprefix(MARK) for name in ids[count:-1].tolist()])
    return ids[count:-1] - ids[count - 1] - 1 + first_id if count else ids[count:-1]


def demand_called(graph: Graph, node: int) -> str:
    """A demand of a whole graph of `as_covering` as its file calls it, for a message."""
    ids = graph.node_ids(np.array([count_candidates(graph) - 1, node]))
    if named(ids):
        return one_id(np.array([ids[1].removeprefix(MARK)]), 0)
    return str(int(ids[1]) - int(ids[0]) - 1 + graph.first_id)
