"""The lower bounds for vertex cover by name, cheapest first."""

from collections.abc import Callable

from app.bounds.certificate import Certificate
from app.bounds.lp import half_integral
from app.bounds.matching import maximal_matching
from app.graphs.graph import Graph

BOUNDS: dict[str, Callable[[Graph], Certificate]] = {
    "matching": maximal_matching,
    "lp": half_integral,
}
