"""Reductions of cliques on row partitions: graphs too large for one rank come down to their densest part.

A clique that holds a node weighs at most what the node weighs with its neighbours. Once a clique is known,
the nodes go, round after round, that weigh no more than it with the neighbours they have left: without
weights those of core numbers below its size. The known clique itself stays, so that every answer of the rest
is at least as heavy.

The clique comes from a part of the graph that fits one rank: what is left once nodes go that weigh little
with their neighbours, or where too many stay or none some of them with their neighbours, of a single one that
is too large what fits. Two plain heuristics look for one there, and where what then is left is still too
large, so do core numbers and a limited search (app/search/clique/kernel.py).

Source   peeling by a known clique: Rossi, Gleich, Gebremedhin and Patwary 2014; cores: Seidman 1983
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.search.clique.baselines import CLIQUE_BASELINES
from app.search.clique.kernel import CliqueKernel
from app.solver.rows.own import LEAST_SHARE, OwnRows, Rounds, everywhere

PART_ENTRIES = 1 << 23  # of the part in which a clique is sought, nodes counted as entries
ROOM = 4  # times as many entries have the nodes from which the part is sought first
CUTS = 12  # loads by which it is sought
TRIES = 4  # limited searches, as long as each finds a heavier clique
SEEDS = 32  # nodes whose neighbourhoods are the part where nodes weigh too much alike
STEPS = 16  # of loads, from one power of two to the next
PASSES, FEW = 16, 1 / 64  # of peeling, for a part; share of nodes that a pass takes for there to be another
GROWTH = 1.05  # of a bound by core numbers, beside the least
SLOW = 2e-3  # share of nodes that a round of peeling for a bound takes for there to be another

Search = Callable[[Graph, np.ndarray | None], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class CliquesReduced:
    """What is left of a graph, the same on all ranks but for the rows.

    clique   [c] int64, ascending, the heaviest clique known, of weight `best`
    peeled   [k] int64 each: nodes that no heavier clique holds, round after round
    nodes    [k] int64, ascending, the others, the clique among them; none of weight 0
    edges    among them
    own      rows of this rank's share of `nodes`, in order
    weights  [n] int64 of all nodes, at least 0; None: all one
    """

    clique: np.ndarray
    best: int
    peeled: tuple[np.ndarray, ...]
    nodes: np.ndarray
    edges: int
    own: OwnRows
    weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class CoreBound:
    """No clique weighs more than `upper`: in this order nodes weigh no more, each with its neighbours that
    come later.

    peeled   [n] int64, all nodes but those of weight 0
    """

    upper: int
    peeled: np.ndarray


def reduce_cliques(
    group: Group, graph: Graph, weights: np.ndarray | None = None, rounds: Rounds | None = None,
    fits: Callable[[int, int], bool] = lambda nodes, edges: True, compiled: bool = True,
    most_entries: int = PART_ENTRIES,
) -> CliquesReduced:  # fmt: skip
    """Find a clique, and take off what no heavier one can hold.

    graph    own rows of the graph
    weights  [n] int64 of all nodes, at least 0, on all ranks; None: all one
    rounds   how many there may be, of peeling and of looking for cliques
    fits     whether a graph of so many nodes and edges is small enough for one rank
    most_entries   of the part in which cliques are sought, nodes counted as entries
    Ranks    all call; the same on any number of ranks
    """
    peeling = _Peeling(group, graph, weights, Rounds() if rounds is None else rounds, most_entries)
    peeling.seek(lambda part, own: _quick(part, own, compiled))  # no round: without a clique none goes off
    peeling.peel()
    for _ in range(TRIES):
        before = peeling.best
        if fits(*peeling.left.count(group)):
            break
        if peeling.rounds.another():
            peeling.seek(lambda part, own: _thorough(part, own, compiled))
        if peeling.best == before:
            break
        peeling.peel()
    return peeling.reduced()


def bound_by_cores(group: Group, reduced: CliquesReduced, rounds: Rounds) -> CoreBound:
    """An upper bound where what is left is too large for more: a load by which peeling leaves nothing.

    About the least such load where the rounds suffice; else the largest load of what is left.
    Ranks    all call
    """
    weights = reduced.weights
    left, low, order = reduced.own, reduced.best, list(reduced.peeled)
    least, high, last = low, 0, order
    while left.count(group)[0] and (not high or high > max(low + 1, GROWTH * low)):
        rest, peeled = _peeled(group, left, weights, least, rounds)
        if rest.count(group)[0]:
            left, low, order = rest, least, order + peeled
        else:
            high, last = least, order + peeled
        least = (low + high) // 2 if high else 2 * low
        if rounds.ended or high == low:
            break
    if not high and left.count(group)[0]:
        high = max(low, group.max_integer(int(loads_of(left, weights).max(initial=0))))
        last = [*order, everywhere(group, left.nodes)]
    return CoreBound(max(high, low), np.concatenate([np.empty(0, dtype=np.int64), *last]))


def _peeled(
    group: Group, left: OwnRows, weights: np.ndarray | None, most: int, rounds: Rounds
) -> tuple[OwnRows, list[np.ndarray]]:
    """What stays where nodes of loads up to `most` go, until few do; and those that went. Ranks: all call."""
    gone, peeled = np.zeros(left.n, dtype=bool), []
    while (alive := left.count(group)[0]) and rounds.another():
        nodes = everywhere(group, left.nodes[loads_of(left, weights) <= most])
        peeled.append(nodes)
        gone[nodes] = True
        left = left.among(~gone)
        if len(nodes) <= SLOW * alive:
            break
    return left, peeled


def _quick(part: Graph, weights: np.ndarray | None, compiled: bool) -> list[np.ndarray]:
    """[n] bool each, cliques of a whole graph by plain heuristics."""
    return [rule(part, compiled, weights)[0] for rule in CLIQUE_BASELINES.values()]


def _thorough(part: Graph, weights: np.ndarray | None, compiled: bool) -> list[np.ndarray]:
    """The same by a limited search."""
    kernel = CliqueKernel(part, weights, compiled)
    kernel.reduce(lambda: None)
    return [kernel.clique]


def loads_of(rows: OwnRows, weights: np.ndarray | None) -> np.ndarray:
    """[k] int64, what each node weighs with its neighbours."""
    return rows.degrees() + 1 if weights is None else weights[rows.nodes] + rows.sums(weights)


class _Peeling:
    """The own rows that are left, and the heaviest clique known: at first the heaviest node."""

    def __init__(
        self, group: Group, graph: Graph, weights: np.ndarray | None, rounds: Rounds, most_entries: int
    ) -> None:
        self.group, self.weights, self.rounds, self._most = group, weights, rounds, most_entries
        self.left = OwnRows.of(graph)
        self.clique, self.best = np.empty(0, dtype=np.int64), 0
        self._peeled: list[np.ndarray] = []
        self._here = np.ones(graph.n, dtype=bool)
        if weights is not None:
            self._here = weights > 0
            self.left = self.left.among(self._here)
        if self._here.any():
            first = self._here.argmax() if weights is None else weights.argmax()
            self._offer(np.array([first]))

    def _offer(self, clique: np.ndarray) -> None:
        """A clique [c] int64, ascending."""
        weight = len(clique) if self.weights is None else int(self.weights[clique].sum())
        if weight > self.best:
            self.clique, self.best = clique, weight

    def peel(self) -> None:
        """Take nodes off until few go. Ranks: all call."""
        goes_on = True
        while goes_on and self.rounds.another():
            alive = self.left.count(self.group)[0]
            light = loads_of(self.left, self.weights) <= self.best
            light &= ~np.isin(self.left.nodes, self.clique)
            gone = everywhere(self.group, self.left.nodes[light])
            self._peeled.append(gone)
            self._here[gone] = False
            self.left = self.left.among(self._here)
            goes_on = len(gone) > LEAST_SHARE * alive

    def seek(self, search: Search) -> None:
        """Look for a heavier clique in the densest part. Ranks: all call."""
        part = self._dense()
        if part is None:
            return
        graph, nodes = part.whole(self.group, "part")
        for found in search(graph, None if self.weights is None else self.weights[nodes]):
            self._offer(nodes[found])

    def reduced(self) -> CliquesReduced:
        """What is left. Ranks: all call."""
        nodes, edges = everywhere(self.group, self.left.nodes), self.left.count(self.group)[1]
        return CliquesReduced(
            self.clique, self.best, tuple(self._peeled), nodes, edges, self.left, self.weights
        )

    # ---- the densest part ----------------------------------------------------------------------------------

    def _dense(self) -> OwnRows | None:
        """The rows of nodes each of which weighs much with those that it meets there; None: all such parts
        are too large. Ranks: all call
        """
        large, low, high = self.left, self.best, 0
        if self._size(large) <= self._most:
            return large
        least = max(self._first(), low + 1)
        for _ in range(CUTS):
            core = self._core(large, least)
            size = self._size(core)
            if 0 < size <= self._most:
                return core
            if size:
                low, large = least, core
            else:
                high = least
            least = (low + high) // 2 if high else 2 * least
            if least == low:
                break
        return self._neighbourhoods(large)

    def _size(self, rows: OwnRows) -> int:
        """Nodes and entries on all ranks. Ranks: all call."""
        nodes, edges = rows.count(self.group)
        return nodes + 2 * edges

    def _first(self) -> int:
        """A load that is above that of nodes with most of the entries. Ranks: all call."""
        loads, degrees = loads_of(self.left, self.weights), self.left.degrees()
        sizes = np.bincount(_bins(loads), weights=degrees + 1, minlength=64 * STEPS).astype(np.int64)
        above = np.cumsum(self.group.sum_integers(sizes)[::-1])[::-1]  # from a bin on
        at = int(np.searchsorted(-above, -ROOM * self._most))
        return int(np.ldexp(0.5 + at % STEPS / (2 * STEPS), at // STEPS + 1))

    def _core(self, rows: OwnRows, least: int) -> OwnRows:
        """Without nodes of lower loads, again and again until few go. Ranks: all call."""
        for _ in range(PASSES):
            chosen, before = np.zeros(rows.n, dtype=bool), rows.count(self.group)[0]
            kept = everywhere(self.group, rows.nodes[loads_of(rows, self.weights) >= least])
            chosen[kept] = True
            rows = rows.among(chosen)
            if before - len(kept) <= FEW * before:
                break
        return rows

    def _neighbourhoods(self, rows: OwnRows) -> OwnRows | None:
        """Those of the nodes of a core that weigh least there, and of their neighbours. Ranks: all call."""
        loads = loads_of(rows, self.weights)
        order = np.lexsort((rows.nodes, loads))[:SEEDS]
        mine = np.stack([loads[order], rows.nodes[order]], axis=1)
        every = everywhere(self.group, mine)
        seeds = every[np.lexsort((every[:, 1], every[:, 0]))][:SEEDS, 1]
        while len(seeds):
            inside = np.repeat(np.isin(rows.nodes, seeds), rows.degrees())
            chosen = np.zeros(rows.n, dtype=bool)
            chosen[seeds] = True
            chosen[everywhere(self.group, rows.indices[inside])] = True
            part = rows.among(chosen)
            if self._size(part) <= self._most:
                return part
            if len(seeds) == 1:
                return self._some(part, seeds)
            seeds = seeds[: len(seeds) // 2]
        return None

    def _some(self, part: OwnRows, kept: np.ndarray) -> OwnRows:
        """Of a part that is too large the nodes `kept` and as many of the first others as there is room for,
        but for halves. Ranks: all call.
        """
        while (count := part.count(self.group)[0]) > len(kept) and self._size(part) > self._most:
            chosen = np.zeros(part.n, dtype=bool)
            chosen[np.sort(everywhere(self.group, part.nodes))[: count // 2]] = True
            chosen[kept] = True
            if np.count_nonzero(chosen) == count:
                break
            part = part.among(chosen)
        return part


def _bins(loads: np.ndarray) -> np.ndarray:
    """[k] int64, STEPS bins between powers of two, of loads [k] of at least 1; below 2^53 by exact steps."""
    mantissa, exponent = np.frexp(loads.astype(np.float64))
    return (exponent.astype(np.int64) - 1) * STEPS + ((mantissa - 0.5) * (2 * STEPS)).astype(np.int64)
