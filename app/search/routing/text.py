"""Routes as CVRPLIB writes them: `Route #1: 3 5 7`, then `Cost 123`.

Customers are counted from 1 on in the order of their ids, the depot left out, whatever these ids are.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import shown
from app.graphs.routes import after_of, depot_of, routes_of
from app.search.solution_text import lines_of

ROUTE = re.compile(r"route\s*#?\s*[0-9]*\s*:(.*)", re.IGNORECASE)
BESIDE = re.compile(r"[a-z][a-z _]*:?\s*[-+.0-9e]*", re.IGNORECASE)  # "Cost 123", "Time 4.5", "Optimal: 1"
COST = re.compile(r"cost\s*:?\s*([-+.0-9e]+)", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:e[-+]?[0-9]{1,2})?", re.IGNORECASE)
RIGHT = "'Route #1: 3 5 7', customers counted from 1 on, would be right"


def routes_text(after: np.ndarray, ids: np.ndarray) -> str:
    """A line for each route; after [n]. The ids [n] are not named."""
    depot = depot_of(after)
    return "".join(
        f"Route #{number}: {' '.join(str(_counted(c, depot)) for c in route)}\n"
        for number, route in enumerate(routes_of(after, depot), 1)
    )


def read_routes(path: str, ids: np.ndarray, depot: int = 0) -> np.ndarray:
    """[n] int64: the routes of such a file, each customer on one of them. Raises GraphError."""
    n, routes = len(ids), []
    met: dict[int, int] = {}
    for line, words in _lines(path):
        route = []
        for word in words:
            number = int(word) if word.isascii() and word.isdigit() and len(word) <= 18 else -1
            if not 1 <= number <= n - 1:
                right = f"a customer 1..{n - 1} would be right"
                raise GraphError(f"{path}:{line}: found {shown(word)!r}; {right}")
            if number in met:
                where = "twice" if met[number] == line else f"also on line {met[number]}"
                raise GraphError(f"{path}:{line}: found customer {number} {where}; once would be right")
            met[number] = line
            route.append(number - (number <= depot))
        routes += [route] if route else []
    if len(met) < n - 1:
        missing = next(number for number in range(1, n) if number not in met)
        told = f"{n - 1 - len(met)} customers are on no route, the first is {missing}"
        raise GraphError(f"{path}: {told}; each of {n - 1} on one would be right")
    return after_of(routes, n, depot)


def told_costs(path: str) -> Iterator[tuple[int, Decimal]]:
    """The line and number of what such a file calls the cost. Raises GraphError for what is no number."""
    for line, text in lines_of(path):
        if (found := COST.fullmatch(text)) is None:
            continue
        if not NUMBER.fullmatch(found[1]):
            raise GraphError(f"{path}:{line}: found {shown(text)!r}; 'Cost' and a number would be right")
        yield line, Decimal(found[1])


def _counted(row: int, depot: int) -> int:
    """The number of a customer in files."""
    return row + (row < depot)


def _lines(path: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, customers) of each route; what stands beside routes, a cost, counts for nothing."""
    for line, text in lines_of(path):
        found = ROUTE.fullmatch(text)
        if found is not None:
            yield line, found[1].split()
        elif not BESIDE.fullmatch(text):
            raise GraphError(f"{path}:{line}: found {shown(text)!r}; {RIGHT}")
