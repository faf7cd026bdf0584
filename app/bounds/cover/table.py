"""The lower bounds for vertex cover by name, cheapest first."""

from collections.abc import Callable

from app.bounds.certificate import Bound
from app.bounds.cover.clique_cover import clique_cover
from app.bounds.cover.lp import half_integral
from app.bounds.cover.matching import maximal_matching
from app.graphs.graph import Graph

BOUNDS: dict[str, Callable[[Graph], Bound]] = {
    "matching": maximal_matching,
    "lp": half_integral,
    "cliques": clique_cover,
}
