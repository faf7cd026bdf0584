"""Collection: reverse reachable sets as a family of which seeds are to hit most, with its search and bounds.

A node is a set of the family (app/graphs/family.py), and holds the reverse reachable sets that it is in:
seeds that hit most of them are a maximum coverage.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from app.bounds.coverage.bounds import CoverageBounds
from app.bounds.coverage.prices import PriceBound, priced, proved_by, unit_of
from app.graphs.family import Family
from app.graphs.graph import Graph
from app.proofs.kinds import InfluenceProof
from app.search.core_bounds import InnerBounds
from app.search.coverage.baselines import by_gain, greedy, order_by_gain
from app.search.coverage.search import CoverageSearch
from app.search.coverage.tools import paid
from app.toolbox import Bounds, Search, Toolbox

BY_GREEDY = "greedy choices"
EVER = 1.0  # a gap at which bounds get most of the time: any
PREFIXES = 4  # of a greedy choice, that bounds are looked for at


class CollectionTools(Toolbox):
    """Seeds [n] bool that hit as many sets of one collection as may be, in units of n / sets.

    A core solution is a mask [m] of `names`, the nodes that may be chosen and are in sets that none of
    those hits which are chosen in any case (`asked.forced`).

    asked    the InfluenceTools of the graph     number   of the collection (Rounds)
    offset   sets that are hit in any case
    """

    sense, bounds_follow, usual_steps = "maximise", True, 20_000

    def __init__(self, asked: Any, number: int, sizes: np.ndarray, nodes: np.ndarray) -> None:
        """sizes [sets], nodes [.]   of the sets, as Sampler.sets has them"""
        self.asked, self.number, self.words = asked, number, asked.words
        self.graph, self.sets = asked.graph, len(sizes)
        self.unit = asked.graph.n / max(self.sets, 1)
        ptr = np.append(0, np.cumsum(sizes))
        hit = np.add.reduceat(asked.forced[nodes], ptr[:-1]) > 0 if len(nodes) else np.zeros(0, dtype=bool)
        self.offset = int(hit.sum())
        self.inner, self.names = self._family(ptr, nodes, hit)
        self._begun: np.ndarray | None = None
        self._prices: PriceBound | None = None
        self.core = _pattern(self.inner, asked.graph.name)

    def _family(self, ptr: np.ndarray, nodes: np.ndarray, hit: np.ndarray) -> tuple[Family, np.ndarray]:
        """The nodes that may be chosen, and the sets they are in; nodes without one are left out."""
        asked, n = self.asked, self.asked.graph.n
        kept = asked.free[nodes] & ~np.repeat(hit, np.diff(ptr))
        rows = (
            np.append(0, np.cumsum(np.add.reduceat(kept.astype(np.int64), ptr[:-1]))) if len(nodes) else ptr
        )
        ones = np.ones(int(kept.sum()), dtype=np.int8)
        by_node = sp.csr_array((ones, nodes[kept], rows), shape=(len(hit), n)).tocsc()
        names = np.flatnonzero(np.diff(by_node.indptr))
        set_ptr = np.append(by_node.indptr[names], by_node.indptr[-1]).astype(np.int64)
        by_set = sp.csc_array((ones, by_node.indices, set_ptr), shape=(len(hit), len(names))).tocsr()
        first, times = alike(by_set.indptr, by_set.indices)
        by_set = by_set[first]
        by_node = by_set.tocsc()
        return Family(
            by_node.indptr.astype(np.int64), by_node.indices.astype(np.int32), by_set.indptr.astype(np.int64),
            by_set.indices.astype(np.int32), times, asked.costs[names], asked.left,
        ), names  # fmt: skip

    # ---- core and instance ---------------------------------------------------------------------------------

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, with the nodes that are chosen in any case."""
        solution = self.asked.forced.copy()
        solution[self.names[core_solution]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows seeds [n] bool as far as the budget goes, and spends the rest."""
        chosen = paid(self.inner, solution[self.names])
        return by_gain(self.inner, False, self.asked.instance.compiled, chosen)

    def value_of_core(self, value: int) -> int:
        """The sets that are hit in all."""
        return self.offset + value

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value - self.offset

    def value(self, solution: np.ndarray) -> int:
        """How many sets seeds [n] bool hit."""
        return self.offset + self.inner.value(solution[self.names])

    def fault(self, solution: np.ndarray) -> str | None:
        """What the question does not allow."""
        return self.asked.fault(solution)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The greedy choice."""
        if self._begun is None:
            self._begun = greedy(self.inner, self.asked.instance.compiled)
        return self._begun.copy()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Exchanges; none where nothing is left."""
        if not self.inner.m:
            return None
        return CoverageSearch(self.inner, start, seed, self.asked.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Prices of sets, and branch and cut."""
        return CollectionBounds(self)

    def greedy_bound(self) -> int:
        """What no seeds hit more of, by the sets that a greedy choice has hit after some steps, and what each
        node would add: the largest of these for the budget (Tang et al. 2018, eq. 10; the best of some).
        """
        return self.offset + self.greedy_prices().upper

    def greedy_prices(self) -> PriceBound:
        """The prices that say so: none of sets that are hit, one of the others."""
        if self._prices is not None:
            return self._prices
        family, one = self.inner, unit_of(self.inner)
        order = order_by_gain(family, False, self.asked.instance.compiled)
        found = []
        for part in range(PREFIXES + 1):
            chosen = np.zeros(family.m, dtype=bool)
            chosen[order[: len(order) * part // PREFIXES]] = True
            prices = np.where(family.covered(chosen), 0, family.weight * one)
            found.append(priced(family, prices, one, BY_GREEDY))
        self._prices = min(found, key=lambda each: each.upper)
        return self._prices

    def prove(self, proof: InfluenceProof) -> int:
        """What the prices prove, on this collection."""
        bound = proof.bound
        return self.offset + proved_by(self.inner, bound.prices, bound.price, bound.one, bound.method)


class CollectionBounds(InnerBounds):
    """Bounds of what seeds can hit of a collection."""

    def __init__(self, tools: CollectionTools) -> None:
        super().__init__(CoverageBounds(tools.inner))
        self.tools, self.near = tools, EVER

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long; the first bound is no worse than that of the greedy choice."""
        if self.inner.best is not None:
            return self.inner.improve(seconds, best, solution)
        more, known = self.inner.improve(0.0, best, solution), self.tools.greedy_prices()
        if known.upper < self.inner.best.upper:
            self.inner.best = known
        return more and self.value > best

    @property
    def closing(self) -> bool:
        """Whether most of the time is theirs once the search has settled: greedy choices are nearly the best
        of a collection, and what there is to gain are better prices.
        """
        return self.inner.converging or self.inner.closing

    def proof(self) -> InfluenceProof:
        """Which collection it is, and prices of its sets."""
        tools = self.tools
        return InfluenceProof(tools.number, tools.sets, self.inner.best, self.inner.checked)


def _pattern(family: Family, name: str) -> Graph:
    """The family as rows, one for each node that may be chosen: what ranks compare, and no graph else."""
    return Graph(name, family.m, 0, family.m, family.set_ptr, family.elements, family.entries)


def alike(ptr: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One of those rows that have the same nodes, [k] int64 ascending, and how many it stands for [k] int64.

    ptr [s+1], nodes [.], ascending in a row; empty rows are left out. Rows are told apart by their sizes
    and two sums of hashes, and compared with the first of theirs node by node: one that differs stands for
    itself.
    """
    sizes = np.diff(ptr)
    rows = np.flatnonzero(sizes)
    if not len(rows):
        return rows, rows
    hashed = _mixed(nodes.astype(np.uint64))
    sums = [np.add.reduceat(each, ptr[rows]) for each in (hashed, _mixed(hashed))]
    order = np.lexsort((rows, *sums, sizes[rows]))
    same = np.ones(len(rows), dtype=bool)
    same[0] = False
    for each in (*sums, sizes[rows]):
        same[1:] &= each[order][1:] == each[order][:-1]
    kind = np.cumsum(~same) - 1
    first = rows[order][~same][kind]  # of each row, in this order
    of = np.empty(len(sizes), dtype=np.int64)
    of[rows[order]] = first
    within = np.arange(len(nodes)) - np.repeat(ptr[:-1], sizes)
    differs = nodes != nodes[np.repeat(ptr[np.where(sizes > 0, of, 0)], sizes) + within]
    wrong = rows[np.add.reduceat(differs.astype(np.int64), ptr[rows]) > 0]
    of[wrong] = wrong
    kept, times = np.unique(of[rows], return_counts=True)
    return kept, times.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """[k] uint64, the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
