"""The lower bounds for vertex cover by name, cheapest first."""

from collections.abc import Callable

from app.bounds.certificate import Bound
from app.bounds.cliques import clique_cover
from app.bounds.lp import half_integral
from app.bounds.matching import maximal_matching
from app.graphs.graph import Graph

BOUNDS: dict[str, Callable[[Graph], Bound]] = {
    "matching": maximal_matching,
    "lp": half_integral,
    "cliques": clique_cover,
}
