"""The toolbox of Steiner trees with prizes: what that of Steiner trees is, on the graph of gadgets."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.bounds.certificate import BadCertificate
from app.bounds.feasible import fault_of_tree
from app.bounds.steiner.bounds import SteinerBounds
from app.bounds.steiner.witness import SteinerBound
from app.graphs.keys import sorted_set, union
from app.graphs.prizes import Gadgets, Prized, best_part, cost_without, entries_of, gadgets_of, prized_of
from app.graphs.steiner import SteinerCore, canonical_tree, forest_of_edges
from app.proofs.kinds import PrizedProof
from app.reductions.steiner.reducer import Untouched
from app.reductions.steiner.verify import verify_log
from app.search.kernel_tools import ReducedBounds
from app.search.steiner.baselines import joined, on_paths
from app.search.steiner.growth import grown_edges
from app.search.steiner.search import SteinerSearch
from app.search.steiner.tools import SteinerTools
from app.search.steiner.trees import Trees
from app.toolbox import Baseline, Bounds, Instance, Search

SPLIT = "length", "prizes_lost"  # of a value
READY_SECONDS, READY_SHARE = 1.5e-6, 0.4  # of the gadgets, for each node and entry, about; of a time limit
GROWTH_SECONDS = 8e-7  # of a tree by growth, likewise
GROWTH, SPANNING = "Goemans-Williamson", "pruned spanning tree"


class Parts:
    """The best trees on some nodes of a graph with prizes."""

    def __init__(self, asked: Prized, compiled: bool = True) -> None:
        core = asked.core
        self.asked, self.compiled, self._row = asked, compiled, core.row_of()
        ends = union(core.terminals, np.flatnonzero(asked.prizes))
        self._ends = ends if len(ends) else np.zeros(1, dtype=np.int64)
        self._core = SteinerCore(core.indptr, core.indices, core.lengths, self._ends)
        self._trees = Trees(self._core, compiled)
        self._end = np.zeros(core.n, dtype=bool)
        self._end[self._ends] = True

    def best(self, nodes: np.ndarray) -> np.ndarray:
        """[n] int64, the parents of the best tree within a lightest spanning tree of some nodes [k], which
        hold all terminals; what of them lies apart is joined by shortest paths before.
        """
        chosen = np.zeros(self.asked.core.n, dtype=bool)
        chosen[nodes] = True
        if len(sorted_set(self._parts_of(chosen)[chosen])) > 1:
            chosen |= on_paths(self._core, np.flatnonzero(chosen))
        return self._best_of(chosen)

    def of_edges(self, entries: np.ndarray) -> np.ndarray:
        """[n] int64, the best tree within a forest, entries [m] of the core that join all terminals, or one
        node alone. Of other edges between the same nodes lighter trees may have worse parts.
        """
        core, terminals = self.asked.core, self.asked.core.terminals
        ends = self._row[entries], core.indices[entries]
        roots = terminals[:1] if len(terminals) else np.unique(self._parts_by(entries), return_index=True)[1]
        return canonical_tree(best_part(self.asked, forest_of_edges(core.n, *ends, roots))[0])

    def spanning(self) -> np.ndarray:
        """[n] int64, the best part of a tree that joins all prizes and terminals by shortest paths."""
        return self.best(self._ends)

    def _parts_of(self, chosen: np.ndarray) -> np.ndarray:
        """[n], the part of each of some nodes [n] bool, and numbers of others."""
        return self._parts_by(np.flatnonzero(chosen[self._row] & chosen[self.asked.core.indices]))

    def _parts_by(self, entries: np.ndarray) -> np.ndarray:
        """[n], the part of each node, where entries [m] alone join them."""
        core = self.asked.core
        ends = self._row[entries], core.indices[entries]
        matrix = sp.csr_array((np.ones(len(entries), np.int8), ends), shape=(core.n, core.n))
        return connected_components(matrix, directed=False)[1]

    def _best_of(self, chosen: np.ndarray) -> np.ndarray:
        """The best tree of all parts of chosen nodes [n] bool."""
        part, terminals = self._parts_of(chosen), self.asked.core.terminals
        firsts = terminals[:1] if len(terminals) else _first_of_each(part, chosen & self._end)
        single = self.asked.single()
        best = np.full(len(chosen), -1, dtype=np.int64)
        best[single] = single
        least = int(self.asked.prizes.sum()) - int(self.asked.prizes[single])
        prizes = np.bincount(part[chosen], weights=self.asked.prizes[chosen]).astype(np.int64)
        for first in firsts.tolist():
            if not len(terminals) and int(self.asked.prizes.sum()) - prizes[part[first]] >= least:
                continue
            self._trees.span(chosen & (part == part[first]), first)
            found, cost = best_part(self.asked, self._trees.parent)
            if cost < least or len(terminals):
                best, least = found, cost
        return canonical_tree(best)


def _first_of_each(part: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """[k] int64, the first of some nodes [n] bool in each part that has some."""
    rows = np.flatnonzero(nodes)
    return rows[np.unique(part[rows], return_index=True)[1]]


def growth(parts: Parts) -> tuple[np.ndarray, str]:
    """The best part of what growth by prizes joins (app/search/steiner/growth.py)."""
    return parts.of_edges(grown_edges(parts.asked, parts.compiled)), GROWTH


def spanning(parts: Parts) -> tuple[np.ndarray, str]:
    """The best part of a tree that joins all prizes and terminals."""
    return parts.spanning(), SPANNING


PRIZED_BASELINES = {"growth": growth, "spanning": spanning}


class PrizedTools(SteinerTools):
    """Trees of one graph that pay their edges and the prizes that they leave out, as little as may be.

    A solution is as that of SteinerTools, of no node, too, where there are no terminals. The core is what is
    left of the graph of gadgets (app/graphs/prizes.py); what a core solution is worth is what the best tree
    on its nodes of the graph is worth. Where there is no time for that graph the core is the graph itself,
    and its solutions are trees that shortest paths make.
    """

    _last: tuple[Gadgets, int | None] | None = None  # see _of_entries
    baseline_costs: ClassVar = {}  # they are known by then

    def __init__(self, instance: Instance, problem: object) -> None:
        self._refuse_fixed(instance, problem)
        self.instance, self.problem, self.graph = instance, problem, instance.graph
        self.question = self._asked_of(instance)
        self.terminals, self.unit = self.question.core.terminals, self.question.unit
        self.weights = np.concatenate([self.question.core.lengths, self.question.prizes])
        self.parts, self._trees = Parts(self.question, instance.compiled), {}
        self.unready = READY_SECONDS * self._size > READY_SHARE * instance.seconds
        if self.unready:
            self.asked, self.baseline_seconds = self.question.core, {"growth": GROWTH_SECONDS * self._size}
            return
        self._ask(entries_of(self.question, self._cost(self._grown)))

    def _asked_of(self, instance: Instance) -> Prized:
        """In whole numbers."""
        return prized_of(self.graph, instance.beside.terminals, instance.beside.prizes, instance.compiled)

    def _of_entries(self, entries: np.ndarray) -> tuple[Gadgets, int | None]:
        """The question of terminals for some entries [m], and what trees without them cost; those that were
        asked last are not made again, as both follow from the question and the entries alone.
        """
        known = self._last
        if known is None or not np.array_equal(known[0].entries, entries):
            known = gadgets_of(self.question, entries), cost_without(self.question, entries)
        return known

    def _ask(self, entries: np.ndarray) -> None:
        """The question of terminals for these entries."""
        self._last = self._of_entries(entries)
        self.gadgets = self._last[0]
        self.asked, self.offset = self.gadgets.core, -self.gadgets.more
        self.kernel = self.reducer = None
        if not self.asked.connected(self.instance.compiled):
            self.reducer = Untouched(self.asked)
            self.kernel = self.reducer.kernel()

    # ---- core and instance ---------------------------------------------------------------------------------

    def _said(self) -> str:
        """What is left, for the log."""
        core, extra = self.inner, int((self._names >= self.graph.n).sum())
        prizes = np.count_nonzero(self.question.prizes)
        beside = f"{core.n - extra} of {self.graph.n} nodes, and {extra} beside them for"
        return f"reduced to {beside} {prizes} prizes, {core.edges} edges ({self.reducer.used})"

    @property
    def _names(self) -> np.ndarray:
        """[k] int64, what the nodes of the core are called in the graph of gadgets."""
        return np.arange(self.asked.n) if self.kernel is None else self.kernel.nodes

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """As of Steiner trees, on the graph of gadgets."""
        return "" if self.unready else super().reduce(look, most)

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the best tree on the nodes of the graph that one of the core holds."""
        if self.unready:
            return core_solution
        nodes = np.flatnonzero(super().lift(core_solution) >= 0)
        own = nodes[nodes < self.graph.n]
        return self.parts.best(union(own, self.terminals) if len(own) else self._only)

    @property
    def _only(self) -> np.ndarray:
        return np.array([self.question.single()])

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A tree of the core that follows one of the graph."""
        if self.unready:
            return solution
        nodes = self.gadgets.inside(solution if (solution >= 0).any() else self._grown)
        if self.kernel is not None:
            nodes = self.reducer.places(self.kernel, nodes)
        if not self.inner.n:
            return np.zeros(0, dtype=np.int64)
        return joined(self.inner, union(nodes, self.inner.terminals), self.instance.compiled)

    def value(self, solution: np.ndarray) -> int:
        """What a tree costs, in units."""
        return self._cost(solution)

    def _cost(self, solution: np.ndarray) -> int:
        return sum(self.question.cost(solution))

    def _core_cost(self, cost: int) -> int:
        """What a cost is of the core."""
        return self.core_value(cost)

    def fault(self, solution: np.ndarray) -> str | None:
        """What makes it no tree of the graph that holds all terminals; a tree of no node is one."""
        empty = solution.shape == (self.graph.n,) and bool((solution == -1).all())
        if empty and not len(self.terminals):
            return None
        fault = fault_of_tree(self.graph, solution, self.terminals)
        return None if fault is None else f"the {self.words} {fault}"

    def split(self, solution: np.ndarray) -> dict[str, int]:
        """Its length, and the prizes that it leaves out."""
        return dict(zip(SPLIT, self.question.cost(solution)))

    # ---- tools ---------------------------------------------------------------------------------------------

    @cached_property
    def _grown(self) -> np.ndarray:
        """[n] int64, the tree that searches begin with: the better one of the plain heuristics."""
        names = ["spanning"] if self.unready else PRIZED_BASELINES
        return min((self._plain(name)[0] for name in names), key=self._cost)

    def _plain(self, name: str) -> tuple[np.ndarray, str]:
        """The tree of a plain heuristic, which is made once."""
        if name not in self._trees:
            self._trees[name] = PRIZED_BASELINES[name](self.parts)
        return self._trees[name]

    @cached_property
    def _start(self) -> np.ndarray:
        return self.restrict(self._grown)

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Perturbed and combined trees; none where one terminal is left, or nothing is made ready."""
        if self.unready or len(self.inner.terminals) < 2:
            return None
        return SteinerSearch(
            self.inner, start, seed, self.instance.compiled, still_lengths(self.inner, self._beside),
            self._worth,
        )  # fmt: skip

    @property
    def _beside(self) -> np.ndarray:
        """[k] bool, nodes of the core that stand for no node of the graph."""
        return self._names >= self.graph.n

    def _worth(self, core_solution: np.ndarray) -> int:
        """What a core solution is worth, as a core value."""
        return self._core_cost(self._cost(self.lift(core_solution)))

    def bounds(self) -> Bounds | None:
        """Those of Steiner trees, for trees that hold an entry; others cost so much."""
        if self.unready:
            return None
        inner = SteinerBounds(self.inner, self.instance.compiled)
        decided = "one terminal" if len(self.inner.terminals) < 2 else ""
        entries, most = self._last[0].entries, self._last[1]
        return PrizedBounds(self, inner, decided, entries, None if most is None else self._core_cost(most))

    def prove(self, proof: PrizedProof) -> int:
        """Check the entries, the reductions one by one, and the witness of what they leave."""
        entries, n = np.asarray(proof.entries, dtype=np.int64), self.graph.n
        if not len(self.terminals):
            if not len(entries) or entries.min() < 0 or entries.max() >= n or (np.diff(entries) <= 0).any():
                raise BadCertificate("entries that are no nodes, one or more, in ascending order")
        elif len(entries):
            raise BadCertificate("entries beside terminals")
        gadgets, without = self._of_entries(entries)
        left, paid = verify_log(gadgets.core, proof.log)
        proof.bound.check(left)
        found = paid + proof.bound.lower - gadgets.more
        return found if without is None else min(found, without)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole graph."""
        return {name: partial(self._plain, name) for name in PRIZED_BASELINES}


def still_lengths(core: SteinerCore, beside: np.ndarray) -> np.ndarray:
    """[nnz] int64, what of each length a search does not perturb.

    A node beside the graph takes one edge, so what all its edges have in common decides nothing.

    beside   [n] bool, nodes that stand for no node of the graph
    """
    rows, columns = core.row_of(), core.indices
    least = np.full(core.n, np.iinfo(np.int64).max)
    np.minimum.at(least, rows, core.lengths)
    least = np.where(beside & (least < np.iinfo(np.int64).max), least - 1, 0)
    return np.minimum(np.maximum(least[rows], least[columns]), core.lengths - 1)


class PrizedBounds(ReducedBounds):
    """Bounds of a kernel of gadgets, which hold for trees with an entry; trees without one cost `most`.

    most   as a core value; None: no less than some tree with an entry
    """

    def __init__(
        self, tools: PrizedTools, inner: Bounds, decided: str, entries: np.ndarray, most: int | None
    ) -> None:
        super().__init__(tools, inner, decided, partial(PrizedProof, entries=entries), SteinerBound)
        self._most = most

    @property
    def value(self) -> int:
        """The best bound so far."""
        return self.inner.value if self._most is None else min(self.inner.value, self._most)
