"""The independent check of a log of reductions: replays it on sets, and proves each step from what it meets.

It shares with the reducer only the meaning of the log (log.py), and searches nothing: it asks
of each step whether the nodes it names satisfy what its rule demands. What remains at the end is returned, so
that offset + bound of the kernel bounds every cover of the graph without trust in the code that reduced it.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from app.graphs.graph import Graph, index_type
from app.graphs.keys import sorted_set
from app.reductions.cover import verify_compiled
from app.reductions.cover.log import (
    CLIQUE,
    CROWN,
    FOLD,
    LARGEST_FOLD,
    NEIGHBOURS,
    RULES,
    TAKE,
    TRANSFER,
    TWIN,
    UNCONFINED,
    parsed,
)
from app.reductions.replay import BadReduction, require

Nodes = Sequence[int] | np.ndarray


class Verified(NamedTuple):
    """What a log proves: optimum of the graph = offset + optimum of the kernel.

    kernel    the residual graph, its nodes in ascending order; nodes [k] their numbers in the reduced graph
    weights   [k] int64
    """

    offset: int
    kernel: Graph
    nodes: np.ndarray
    weights: np.ndarray


def verify_log(
    graph: Graph, weights: np.ndarray | None, log: np.ndarray, inside: Nodes = (), outside: Nodes = (),
    compiled: bool = True,
) -> Verified:  # fmt: skip
    """Replay a log [words] int64 on a whole graph; raises BadReduction at the first step that is not proved.

    weights           [n] positive whole numbers, or None: all one
    inside, outside   nodes fixed in and out of the cover before the first step
    compiled          let app/native/check_cover.c replay it, where it was built. What that does not accept is
                      replayed here, to say why
    """
    require(graph.whole, f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, all are needed")
    weight = _whole_weights(graph, weights)
    covered = _fixed_cover(graph, inside, outside)
    if not len(log) and not len(covered) and graph.degrees().all():
        return Verified(0, graph, np.arange(graph.n), weight)
    found = verify_compiled.replay(graph, weight, covered, np.asarray(log)) if compiled else None
    if found is not None:
        return Verified(found.offset, _kernel(graph, found.indptr, found.indices), found.nodes, found.weights)
    replay = _Replay(graph, weight)
    for v in covered.tolist():
        replay.cover(v)
    for step, (rule, entry, whole) in enumerate(parsed(log)):
        name = RULES[rule] if 0 <= rule < len(RULES) else f"rule {rule}"
        try:
            require(rule in CHECKS and whole, "no entry of a log")
            CHECKS[rule](replay, *entry)
        except BadReduction as error:
            shown = " ".join(map(str, entry[:8])) + (" ..." if len(entry) > 8 else "")
            raise BadReduction(f"{graph.name}: step {step} ({name} {shown}): {error}") from None
    return replay.rest()


def _whole_weights(graph: Graph, weights: np.ndarray | None) -> np.ndarray:
    """[n] int64."""
    weight = np.ones(graph.n, dtype=np.int64) if weights is None else np.asarray(weights, dtype=np.int64)
    require(weight.shape == (graph.n,) and bool((weight > 0).all()), "not n positive weights")
    return weight


def _fixed_cover(graph: Graph, inside: Nodes, outside: Nodes) -> np.ndarray:
    """The nodes inside and the neighbours of those outside, ascending."""
    ins, outs = (sorted_set(np.asarray(nodes, dtype=np.int64)) for nodes in (inside, outside))
    fixed = np.concatenate([ins, outs])
    require(bool(((fixed >= 0) & (fixed < graph.n)).all()), "a fixed node is not in the graph")
    rows = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]] for v in outs.tolist()]
    covered = sorted_set(np.concatenate([ins, *rows]))
    require(not np.isin(outs, covered).any(), "no cover leaves these nodes out")
    return covered


def _kernel(graph: Graph, indptr: np.ndarray, indices: np.ndarray) -> Graph:
    """What is left of a graph."""
    k = len(indptr) - 1
    return Graph(f"{graph.name} (kernel)", k, 0, k, indptr, indices, edges=len(indices) // 2)


class _Replay:
    """The residual graph as sets of neighbours; nodes without an edge are of no more interest."""

    def __init__(self, graph: Graph, weight: np.ndarray) -> None:
        self.graph, self.offset = graph, 0
        self.near = _Near(graph)
        self.weight: list[int] = weight.tolist()

    def drop(self, v: int) -> None:
        """Remove a node and its edges."""
        for u in self.near.pop(v):
            self.near[u].remove(v)

    def cover(self, v: int) -> None:
        """Pay for a node and remove it."""
        self.offset += self.weight[v]
        self.drop(v)

    def neighbours(self, v: int) -> set[int]:
        """N(v), which must not be empty."""
        require(bool(self.near.get(v)), f"{v} has no edge left")
        return self.near[v]

    def pairs_adjacent(self, nodes: Sequence[int]) -> Iterator[bool]:
        """For each pair of nodes, whether it is an edge."""
        return (w in self.near[u] for u, w in combinations(nodes, 2))

    def total(self, nodes: Sequence[int]) -> int:
        """The sum of the nodes' weights."""
        return sum(self.weight[v] for v in nodes)

    def rest(self) -> Verified:
        """What is left."""
        u, v = self.near.entries()
        degree = np.bincount(u, minlength=self.graph.n)
        nodes = np.flatnonzero(degree)
        k, number = len(nodes), np.cumsum(degree > 0) - 1
        indptr = np.concatenate([[0], np.cumsum(degree[nodes])]).astype(np.int64)
        kernel = _kernel(self.graph, indptr, number[v].astype(index_type(k)))
        return Verified(self.offset, kernel, nodes, np.array(self.weight, dtype=np.int64)[nodes])


class _Near:
    """The neighbours of each node that is left, as a set that is made when a step first meets the node.

    What changes a node's neighbours goes through its set, so the rows of nodes without one still hold.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._made: dict[int, set[int]] = {}
        self._gone: set[int] = set()

    def __contains__(self, v: int) -> bool:
        return 0 <= v < self.graph.n and v not in self._gone

    def get(self, v: int) -> set[int] | None:
        """The neighbours of a node; None where it is not in the graph, or no longer."""
        if v not in self._made and v in self:
            graph = self.graph
            self._made[v] = set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist())
        return self._made.get(v)

    def __getitem__(self, v: int) -> set[int]:
        found = self.get(v)
        if found is None:
            raise KeyError(v)
        return found

    @property
    def untouched(self) -> bool:
        """True while no step has met a node."""
        return not (self._made or self._gone)

    def pop(self, v: int) -> set[int]:
        """The neighbours of a node that leaves; they keep it until it is taken out of their sets."""
        found = self[v]
        del self._made[v]
        self._gone.add(v)
        return found

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Both directions u[i] -> v[i] [nnz] int64 of every edge that is left, by u, then v."""
        u, v = self.graph.row_of(), self.graph.indices.astype(np.int64)
        if self.untouched:
            return u, v
        old = np.ones(self.graph.n, dtype=bool)
        old[[*self._made, *self._gone]] = False
        tails = [u for u, near in self._made.items() for _ in near]
        heads = [v for near in self._made.values() for v in near]
        u = np.concatenate([u[old[u]], np.array(tails, dtype=np.int64)])
        v = np.concatenate([v[old[self.graph.row_of()]], np.array(heads, dtype=np.int64)])
        order = np.argsort(u * self.graph.n + v, kind="stable")
        return u[order], v[order]


def _all_neighbours(r: _Replay, v: int, nodes: Sequence[int]) -> None:
    require(r.neighbours(v) == set(nodes) and len(nodes) == len(set(nodes)), f"not the neighbours of {v}")


def _check_neighbours(r: _Replay, v: int, *near: int) -> None:
    _all_neighbours(r, v, near)
    heaviest = r.total(near)
    if len(near) <= LARGEST_FOLD:
        parts = [part for size in range(len(near) + 1) for part in combinations(near, size)]
        heaviest = max(r.total(part) for part in parts if not any(r.pairs_adjacent(part)))
    require(heaviest <= r.weight[v], f"{v} weighs {r.weight[v]}, its neighbours {heaviest}")
    for u in near:
        r.cover(u)


def _check_clique(r: _Replay, v: int, *light: int) -> None:
    near = r.neighbours(v)
    require(bool(light) and near >= set(light) and len(light) == len(set(light)), f"no neighbours of {v}")
    require(all(r.pairs_adjacent(list(near))), f"the neighbours of {v} are no clique")
    require(all(r.weight[u] <= r.weight[v] for u in light), f"some are heavier than {v}")
    for u in light:
        r.cover(u)


def _check_transfer(r: _Replay, v: int, *heavy: int) -> None:
    _all_neighbours(r, v, heavy)
    require(all(r.pairs_adjacent(heavy)), f"the neighbours of {v} are no clique")
    require(all(r.weight[u] > r.weight[v] for u in heavy), f"some are not heavier than {v}")
    r.drop(v)
    for u in heavy:
        r.weight[u] -= r.weight[v]
        r.offset += r.weight[v]


def _check_fold(r: _Replay, v: int, *near: int) -> None:
    _all_neighbours(r, v, near)
    total, least = r.total(near), min(r.weight[u] for u in near)
    require(total - least <= r.weight[v] < total, f"{v} weighs {r.weight[v]}, its neighbours {total}")
    require(not any(r.pairs_adjacent(near)), f"neighbours of {v} are adjacent")
    r.cover(v)
    x, *others = near
    for y in others:
        for z in set(r.near[y]):
            r.near[x].add(z)
            r.near[z].add(x)
        r.drop(y)
    r.weight[x] = total - r.weight[v]


def _check_twin(r: _Replay, *pair: int) -> None:
    require(len(set(pair)) == len(pair) == 2, "not two nodes")
    v, u = pair
    require(r.neighbours(u) == r.neighbours(v), f"{u} and {v} have different neighbours")
    r.weight[v] += r.weight[u]
    r.drop(u)


def _check_unconfined(r: _Replay, v: int, *chain: int) -> None:
    require(len(chain) % 2 == 1, "not pairs and a last node")
    chosen, closed = {v}, {v} | r.neighbours(v)
    for u, x in zip(chain[::2], [*chain[1::2], None]):
        near = r.neighbours(u)
        require(u not in chosen and bool(near & chosen), f"{u} is no neighbour of the chosen nodes")
        require(r.total(near & chosen) <= r.weight[u], f"{u} is lighter than its chosen neighbours")
        wanted = set() if x is None else {x}
        require(near - closed == wanted, f"{u} has other neighbours outside the chosen nodes' neighbourhood")
        if x is not None:
            chosen.add(x)
            closed |= {x} | r.near[x]
    r.cover(v)


def _check_crown(r: _Replay, count: int, *words: int) -> None:
    outs, flows = words[: max(count, 0)], words[max(count, 0) :]
    require(0 < count == len(set(outs)) and len(flows) % 3 == 0, "not a set of nodes and flows")
    covered = set().union(*(r.neighbours(v) for v in outs))
    require(covered.isdisjoint(outs), "the nodes left out are not independent")
    sent, got = dict.fromkeys(outs, 0), dict.fromkeys(covered, 0)
    for i, c, flow in zip(flows[::3], flows[1::3], flows[2::3]):
        require(i in sent and c in r.near[i] and flow > 0, f"a flow {i} -> {c} on no edge, or not positive")
        sent[i] += flow
        got[c] += flow
    for i, flow in sent.items():
        require(flow <= r.weight[i], f"{flow} leaves node {i}, which weighs {r.weight[i]}")
    for c, flow in got.items():
        require(flow == r.weight[c], f"{flow} reaches node {c}, which weighs {r.weight[c]}")
    for c in covered:
        r.cover(c)


def _check_take(r: _Replay, v: int, *_: int) -> None:
    raise BadReduction(f"{v} was chosen, not reduced: the log proves no bound")


CHECKS: dict[int, Callable[..., None]] = {
    NEIGHBOURS: _check_neighbours,
    CLIQUE: _check_clique,
    TRANSFER: _check_transfer,
    FOLD: _check_fold,
    TWIN: _check_twin,
    UNCONFINED: _check_unconfined,
    CROWN: _check_crown,
    TAKE: _check_take,
}
