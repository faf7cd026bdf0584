"""Toolboxes of facility location without a table of all pairs for searches: many points, large networks."""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.facility.bounds import LateBounds, ListBounds, RadiusBounds, SumBounds
from app.bounds.facility.lists import ENTRY_SECONDS, MORE, TIMES, width_of
from app.bounds.facility.reach import ENTRY_BYTES as REACH_BYTES
from app.bounds.facility.reach import MOST_ENTRIES
from app.bounds.facility.witness import CenterBound, FacilityBound, unit_of
from app.bounds.highs import available as highs_available
from app.errors import CaseError
from app.graphs.facility import CENTER, UNCAPACITATED, Demands, Question, Sites, pair_bytes
from app.graphs.facility_network import along_walk, question_of_network
from app.graphs.facility_points import (
    MOST_FIRST,
    along,
    farthest_points_first,
    question_of_points,
    without_table,
)
from app.rng import stream
from app.search.facility.network import NetworkSearch, farthest_nodes_first
from app.search.facility.points import PointSearch
from app.search.facility.search import CenterSearch
from app.search.facility.tools import FacilityTools
from app.toolbox import Baseline, Bounds, Instance, Search

LOAD_SECONDS = 1e-8  # of looking at a facility, for each customer
NODE_SECONDS = 1e-5  # of the nearest facility of a node, and its line in a file
PATHS_SECONDS = 2.5e-7  # of the two nearest facilities, for each node and entry of a network
ROW_SECONDS, CHECK_SECONDS = 1e-6, 1.5e-7  # of a line in a file; of the nearest, for each node and entry
CHOICE_NODE_SECONDS, CHOICE_ENTRY_SECONDS = 4e-6, 2e-7  # of a plain choice and its value, for each, about
TABLE_SECONDS = 3e-7  # of a table, sorted, for each place and customer
MORE_REACHED = 2  # times what is expected, before lists are given up
ALONG, ALONG_WALK = "along a curve", "along a walk"


def tableless(instance: Instance) -> "type[TablelessTools] | None":
    """The toolbox of an instance that is searched without a table; None: it has one."""
    pairs = (instance.graph.n - len(instance.outside)) * instance.graph.n
    if instance.beside.demands is not None:
        pairs = pairs // max(instance.graph.n, 1) * int(np.count_nonzero(instance.beside.demands.amounts))
    if not without_table(instance.metric, pairs, pair_bytes(instance.asked.facility), instance.most_bytes):
        return None
    return NetworkTools if instance.metric is None else PointTools


class TablelessTools(FacilityTools):
    """Facilities of one instance; a core solution is [m] bool, of places in an order of their own.

    A kind says what is asked (`_question`), plain choices and the search.
    """

    usual_steps = 100_000
    kind_of_search: Any  # a TablelessSearch
    along: Any  # a plain choice of sites, and what it is called
    label: str
    most_first = MOST_FIRST

    def _farthest(self, sites: Any) -> np.ndarray:
        """[m] bool, the farthest first."""
        raise NotImplementedError

    @property
    def _far_fits(self) -> bool:
        """Whether there is time for the farthest first."""
        return self.sites.most * self.sites.n <= self.most_first

    @property
    def _pairs(self) -> int:
        return self.sites.m * self.sites.n

    @property
    def _table_fits(self) -> bool:
        return self._pairs * pair_bytes(self.kind) <= self.instance.most_bytes

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Nothing is reduced: a line that says what there is no room for."""
        if self._table_fits or self._width or self._covers_fit:
            return ""
        need, limit = self._pairs * pair_bytes(self.kind) / 1e6, self.instance.most_bytes / 1e6
        return f"no bound: its table of all pairs takes {need:.0f} MB, memory.whole_graph_mb is {limit:g}"

    @property
    def _reached(self) -> int:
        """Pairs of a customer and a place near enough, about: bounds of centres have lists of them."""
        each = min(TIMES * -(-self.sites.m // max(self.sites.most, 1)) + MORE, self.sites.m)
        return each * self.sites.n

    @property
    def _room(self) -> int:
        """As many of them as there may be."""
        return min(MOST_ENTRIES, int(min(self.instance.most_bytes, 1 << 62)) // REACH_BYTES)

    @property
    def _covers_fit(self) -> bool:
        return self.kind == CENTER and highs_available() and self._reached <= self._room

    @cached_property
    def _width(self) -> int:
        """Of lists of places for bounds; 0: none are made."""
        if self.kind == CENTER or not self.sites.n:
            return 0
        facilities = int(np.count_nonzero(self._begun)) if self.kind == UNCAPACITATED else self.sites.most
        return width_of(self.sites, facilities, self.instance.most_bytes)

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return LOAD_SECONDS * self.sites.n * (self.sites.most if self.kind != UNCAPACITATED else 1)

    @property
    def closing_seconds(self) -> float:
        """An estimate of what a check and a table of all nodes take after the search."""
        return super().closing_seconds + self._table_seconds

    @property
    def _table_seconds(self) -> float:
        """An estimate of what the table of all nodes takes."""
        return NODE_SECONDS * self.graph.n

    @cached_property
    def _begun(self) -> np.ndarray:
        """[m] bool, a quick choice."""
        found = [type(self).along(self.sites)]
        if self.kind == CENTER and self._far_fits:
            found.append(self._farthest(self.sites))
        return min(found, key=self.sites.value)

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Interchanges; none where nobody needs anything."""
        if not self.sites.n:
            return None
        compiled = self.instance.compiled
        if self.kind == CENTER:
            return CenterSearch(self.sites, start, seed, compiled, self.kind_of_search)
        return self.kind_of_search(self.sites, start, seed, compiled)

    @cached_property
    def _table(self) -> Sites:
        return self.sites.table()

    def bounds(self) -> Bounds | None:
        """Those of a table, where it fits, or of lists; they begin when there is time for it."""
        kinds: list[tuple[Any, float]] = []
        if self._covers_fit and self.sites.n:
            kinds.append((self._bounds_of_covers, ENTRY_SECONDS * self._reached))
        elif self._table_fits:
            kinds.append((self._bounds_of_table, TABLE_SECONDS * self._pairs))
        if self._width and self._width < self.sites.m:
            kinds.append((self._bounds_of_lists, ENTRY_SECONDS * self._width * self.sites.n))
        return LateBounds(*kinds) if kinds else None

    def _bounds_of_covers(self, found: np.ndarray | None) -> Bounds:
        start = self._begun if found is None else found
        room = min(self._room, MORE_REACHED * self._reached)
        return RadiusBounds(self.sites, start, self.instance.compiled, entries=room)

    def _bounds_of_table(self, found: np.ndarray | None) -> Bounds:
        """found   [m] bool, the best solution known; None: the start"""
        kind = RadiusBounds if self.kind == CENTER else SumBounds
        if "_table" not in self.__dict__:  # of a search, which may be asked to stop
            self.__dict__["_table"] = self.sites.table(heard=self.stops)
        return kind(self._table, self._begun if found is None else found, self.instance.compiled)

    def _bounds_of_lists(self, found: np.ndarray | None) -> Bounds:
        start = self._begun if found is None else found
        return ListBounds(self.sites, start, self._width, self.instance.compiled, self.stops)

    def prove(self, proof: FacilityBound | CenterBound) -> int:
        """Check the multipliers and the cases on distances, demands and costs. Raises CaseError."""
        if proof.lower <= 0:  # nothing to prove, whatever it is made of
            return proof.lower
        if isinstance(proof, CenterBound) and self.sites.largest:
            proof.check(self.sites)
            return proof.lower
        if self._of_lists(proof):
            proof.check(self.sites)
            return proof.lower
        if not self._table_fits:
            need = math.ceil(self._pairs * pair_bytes(self.kind) / 1e6)
            told = f"{self.graph.name}: a check of the bound takes a table of {need} MB"
            raise CaseError(f"{told}; memory.whole_graph_mb = {need} would be right")
        proof.check(self._table)
        return proof.lower

    def _of_lists(self, proof: Any) -> bool:
        """Whether a check makes lists. Cases take a table, and so do multipliers above what any facility
        costs that a path leads to: those of a table are up to `far`.
        """
        sites = self.sites
        if not isinstance(proof, FacilityBound) or sites.largest or len(proof.branch) != 1:
            return False
        if proof.one > unit_of(sites):
            return False
        fits = proof.rows.shape[1:] == (sites.n,)
        return not (self._table_fits and fits and (proof.rows > proof.one * sites.worst).any())

    @property
    def baseline_seconds(self) -> dict[str, float]:
        """An estimate of what one takes, with its value."""
        size = CHOICE_NODE_SECONDS * self.graph.n + CHOICE_ENTRY_SECONDS * len(self.graph.indices)
        return dict.fromkeys(("along", "random", "farthest_first"), size)

    def baselines(self) -> dict[str, Baseline]:
        """Plain choices of facilities."""
        rules = {"along": (type(self).along, self.label), "random": (self._random, "random order")}
        if self.kind == CENTER and self._far_fits:
            rules = {"farthest_first": (self._farthest, "farthest first"), **rules}
        return {name: partial(self._plain, rule, label) for name, (rule, label) in rules.items()}

    def _random(self, sites: Any) -> np.ndarray:
        """[m] bool, facilities in a random order, as many as `along` has."""
        count, chosen = int(np.count_nonzero(type(self).along(sites))), sites.forced.copy()
        order = stream(0, "facility").permutation(sites.m)
        order = order[~chosen[order]]
        chosen[order[: count - int(np.count_nonzero(chosen))]] = True
        return chosen


class PointTools(TablelessTools):
    """Of points; places in the order of a curve."""

    kind_of_search, along, label = PointSearch, staticmethod(along), ALONG

    def _question(self, demands: Demands, opening: Demands | None) -> Question:
        """What is asked, without a table."""
        return question_of_points(
            self.graph.name, self.kind, self.distances, demands, opening, self.most, self.instance.inside,
            self.barred,
        )  # fmt: skip

    def _farthest(self, sites: Any) -> np.ndarray:
        """[m] bool, the farthest first."""
        return farthest_points_first(sites)

    def _refuse_apart(self) -> None:
        """Points are never apart."""


class NetworkTools(TablelessTools):
    """Of a network; places in the order of a walk."""

    kind_of_search, along, label = NetworkSearch, staticmethod(along_walk), ALONG_WALK
    most_first = MOST_FIRST << 3  # where one opens little changes

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes: one search of paths from all facilities."""
        return PATHS_SECONDS * self._size

    @property
    def _table_seconds(self) -> float:
        """An estimate of what the table of all nodes takes, whose lengths a check finds by paths."""
        return ROW_SECONDS * self.graph.n + CHECK_SECONDS * self._size

    def _question(self, demands: Demands, opening: Demands | None) -> Question:
        """What is asked, without a table."""
        return question_of_network(
            self.graph.name, self.kind, self.distances, demands, opening, self.most, self.instance.inside,
            self.barred,
        )  # fmt: skip

    def _farthest(self, sites: Any) -> np.ndarray:
        """[m] bool, the farthest first."""
        return self._far_choice.copy()

    @cached_property
    def _far_choice(self) -> np.ndarray:
        return farthest_nodes_first(self.sites, self.instance.compiled)
