"""The toolbox of facility location among so many points that no table of all pairs is made for searches."""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.facility.bounds import LateBounds, RadiusBounds, SumBounds
from app.bounds.facility.witness import CenterBound, FacilityBound
from app.errors import CaseError
from app.graphs.facility import CENTER, Demands, Question, Sites, pair_bytes
from app.graphs.facility_points import (
    MOST_FIRST,
    along,
    farthest_points_first,
    question_of_points,
    without_table,
)
from app.rng import stream
from app.search.facility.points import PointSearch
from app.search.facility.search import CenterSearch
from app.search.facility.tools import FacilityTools
from app.toolbox import Baseline, Bounds, Instance, Search

LOAD_SECONDS = 1e-8  # of looking at a facility, for each customer
NODE_SECONDS = 1e-5  # of the nearest facility of a node, and its line in a file
TABLE_SECONDS = 3e-7  # of a table, sorted, for each place and customer
ALONG = "along a curve"


def points_of(instance: Instance) -> bool:
    """Whether an instance is one for PointTools."""
    pairs = (instance.graph.n - len(instance.outside)) * instance.graph.n
    if instance.demands is not None:
        pairs = pairs // max(instance.graph.n, 1) * int(np.count_nonzero(instance.demands.amounts))
    return without_table(instance.metric, pairs, pair_bytes(instance.facility), instance.most_bytes)


class PointTools(FacilityTools):
    """Facilities of one instance; a core solution is [m] bool, of places in the order of a curve."""

    usual_steps = 100_000

    def _question(self, demands: Demands, opening: Demands | None) -> Question:
        """What is asked, without a table."""
        return question_of_points(
            self.graph.name, self.kind, self.distances, demands, opening, self.most, self.instance.inside,
            self.barred,
        )  # fmt: skip

    def _refuse_apart(self) -> None:
        """Points are never apart."""

    @property
    def _pairs(self) -> int:
        return self.sites.m * self.sites.n

    @property
    def _table_fits(self) -> bool:
        return self._pairs * pair_bytes(self.kind) <= self.instance.most_bytes

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Nothing is reduced: a line that says what there is no room for."""
        if self._table_fits:
            return ""
        need, limit = self._pairs * pair_bytes(self.kind) / 1e6, self.instance.most_bytes / 1e6
        return f"no bound: its table of all pairs takes {need:.0f} MB, memory.whole_graph_mb is {limit:g}"

    @property
    def search_seconds(self) -> float:
        """An estimate of what making a search takes."""
        return LOAD_SECONDS * self.sites.n * (self.sites.most if self.kind != "uncapacitated" else 1)

    @property
    def closing_seconds(self) -> float:
        """An estimate of what a check and a table of all nodes take after the search."""
        return super().closing_seconds + NODE_SECONDS * self.graph.n

    @cached_property
    def _begun(self) -> np.ndarray:
        """[m] bool, a quick choice."""
        sites = self.sites
        found = [along(sites)]
        if self.kind == CENTER and sites.most * sites.n <= MOST_FIRST:
            found.append(farthest_points_first(sites))
        return min(found, key=sites.value)

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Interchanges; none where nobody needs anything."""
        if not self.sites.n:
            return None
        compiled = self.instance.compiled
        if self.kind == CENTER:
            return CenterSearch(self.sites, start, seed, compiled, PointSearch)
        return PointSearch(self.sites, start, seed, compiled)

    @cached_property
    def _table(self) -> Sites:
        return self.sites.table()

    def bounds(self) -> Bounds | None:
        """Those of a table, where it fits; they begin when there is time for it."""
        if not self._table_fits:
            return None
        kind = RadiusBounds if self.kind == CENTER else SumBounds
        return LateBounds(
            lambda: kind(self._table, self._begun, self.instance.compiled), TABLE_SECONDS * self._pairs
        )

    def prove(self, proof: FacilityBound | CenterBound) -> int:
        """Check the multipliers and the cases on distances, demands and costs. Raises CaseError."""
        if not self._table_fits:
            need = math.ceil(self._pairs * pair_bytes(self.kind) / 1e6)
            told = f"{self.graph.name}: a check of the bound takes a table of {need} MB"
            raise CaseError(f"{told}; memory.whole_graph_mb = {need} would be right")
        proof.check(self._table)
        return proof.lower

    def baselines(self) -> dict[str, Baseline]:
        """Plain choices of facilities."""
        rules = {"along": (along, ALONG), "random": (_random, "random order")}
        if self.kind == CENTER and self.sites.most * self.sites.n <= MOST_FIRST:
            rules = {"farthest_first": (farthest_points_first, "farthest first"), **rules}
        return {name: partial(self._plain, rule, label) for name, (rule, label) in rules.items()}


def _random(sites: Any) -> np.ndarray:
    """[m] bool, facilities in a random order, as many as `along` has."""
    count, chosen = int(np.count_nonzero(along(sites))), sites.forced.copy()
    order = stream(0, "facility").permutation(sites.m)
    order = order[~chosen[order]]
    chosen[order[: count - int(np.count_nonzero(chosen))]] = True
    return chosen
