"""What vehicles deliver, and routes, as a caller of the Python interface hands them in."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any

import numpy as np

from app.api.given import check_given, digest_of_arrays
from app.api.results import Solution
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.graphs.deliveries import Deliveries
from app.graphs.formats.source import shown
from app.graphs.graph import Graph
from app.graphs.ids import plain_ids
from app.partition.loaded import Loaded
from app.tasks.compare import whole_graph
from app.tasks.context import Context
from app.tasks.deliveries import (
    FACILITY,
    NO_DEPOT,
    Window,
    has_routes,
    made_of,
    needed_of,
    with_times,
)
from app.text import is_whole

NAMES = ("demands", "capacity", "depot", "vehicles", "windows", "service", "max_length")
OF_TIMES = NAMES[4:]
MISSING = object()  # what a mapping says nothing of


def with_deliveries(context: Context, loaded: Loaded, labels: list[Any] | None, *asked: Any) -> Loaded:
    """The graph with what a caller says of each of NAMES, in this order. Ranks: all call."""
    case, given = context.case, dict(zip(NAMES, asked, strict=True))
    said = [name for name, value in given.items() if value is not None]
    with raise_together(context.group, "reading the demands"):
        if said and not has_routes(case):
            right = "cvrp or facility" if said[0] == "demands" else "cvrp"
            raise CaseError(f"{said[0]}: {case.problem.name} has none; {right} would be right")
        if "demands" in said and (loaded.deliveries is not None or case.graph.demands):
            whose = "in graph.demands" if case.graph.demands else "by the file"
            raise CaseError(f"demands: given here and {whose}; one of them would be right")
        for name in said:
            if getattr(case.problem, name, 0) not in (0, -1):
                raise CaseError(f"{name}: given here and in problem.{name}; one of them would be right")
    whole = whole_graph(context, loaded) if said else None
    found = loaded.deliveries
    with raise_together(context.group, "reading the demands"):
        if whole is not None:
            found = _made(case.problem, loaded, whole, labels, given)
    parts = {} if found is None else {
        "demands": digest_of_arrays(found.demand),
        "capacity": str(found.capacity),
        "depot": str(found.depot),
        "vehicles": str(found.vehicles),
        **({} if found.times is None else {"windows": digest_of_arrays(*found.times.arrays)}),
    }  # fmt: skip
    check_given(context.group, parts)
    return replace(loaded, deliveries=found)


def with_needs(context: Context, loaded: Loaded, labels: list[Any] | None, demands: Any) -> Loaded:
    """The graph with what a caller says that its nodes need, where facilities are sought. Ranks: all call."""
    case = context.case
    if case.problem.name != FACILITY or demands is None:
        return loaded
    if case.graph.demands:
        raise CaseError("demands: given here and in graph.demands; one of them would be right")
    whole = whole_graph(context, loaded)
    if whole is None:
        return loaded
    with raise_together(context.group, "reading the demands"):
        order = np.argsort(whole.held_ids(), kind="stable")
        ids = whole.held_ids()[order]
        named = plain_ids(ids) if labels is None else [labels[i] for i in ids.tolist()]
        needs = needed_of(_amounts(demands, named, NO_DEPOT), order, "demands", whole)
    check_given(context.group, {"demands": digest_of_arrays(needs.amounts)})
    return replace(loaded, needs=needs)


def _made(
    asked: Any, loaded: Loaded, whole: Graph, labels: list[Any] | None, given: dict[str, Any]
) -> Deliveries | None:
    """Raises GraphError."""
    found, vehicles = loaded.deliveries, given["vehicles"]
    if vehicles is not None and not (is_whole(vehicles) and 1 <= vehicles < 1 << 31):
        raise GraphError(f"vehicles: found {shown(repr(vehicles))}; a number from 1 on would be right")
    vehicles = int(vehicles or asked.vehicles)
    named = labels if labels is not None else whole.held_ids().tolist()
    row = 0 if found is None else found.depot
    if given["depot"] is not None:
        row = _row(named, given["depot"], "depot")
    elif asked.depot >= 0:
        row = _row(whole.held_ids().tolist(), asked.depot, "problem.depot")
    capacity = given["capacity"] if given["capacity"] is not None else asked.capacity
    capacity = _number(capacity, "capacity") if capacity else None
    if found is None and given["demands"] is None:
        raise GraphError("demands: found none; demands=[...] of all nodes, and capacity=, would be right")
    if found is None:
        amounts = _amounts(given["demands"], named, row)
        made = made_of(amounts, str(capacity or ""), row, vehicles, "demands", whole)
        return _timed(made, loaded, named, given)
    if row != found.depot:
        right = f"{named[found.depot]!r}, that of the file, would be right"
        raise GraphError(f"depot: found {shown(repr(given['depot']))}; {right}")
    kept = [Decimal(int(each)) for each in found.demand]
    made = made_of(kept, str(capacity or found.capacity), row, vehicles or found.vehicles, "capacity", whole)
    return _timed(replace(made, times=found.times), loaded, named, given)


def _timed(made: Deliveries, loaded: Loaded, named: list[Any], given: dict[str, Any]) -> Deliveries:
    """Deliveries with the windows, or the limit of length, that a caller names. Raises GraphError."""
    windows, service, most = (given[name] for name in OF_TIMES)
    said = [name for name in OF_TIMES if given[name] is not None]
    if not said:
        return made
    if made.times is not None:
        raise GraphError(f"{said[0]}: the file has times of its own; leaving it out would be right")
    if loaded.metric is None:
        raise GraphError(f"{said[0]}: found no distances between all nodes; points would be right")
    if windows is not None and most is not None:
        right = "windows, that of the depot among them, or a limit, would be right"
        raise GraphError(f"max_length: given beside windows; {right}")
    if windows is None and most is None:
        raise GraphError("service: needs windows=, or max_length=, which it would count for")
    spent = [Decimal(0)] * len(named)
    if service is not None and isinstance(service, Real | Decimal):
        spent = [_number(service, "service")] * len(named)
    elif service is not None:
        spent = _amounts(service, named, made.depot, "service")
    limit = None if most is None else _number(most, "max_length")
    open_ = None if windows is None else _windows(windows, named, made.depot)
    return with_times(made, loaded.metric, open_, spent, limit, "service")


def _windows(given: Any, named: list[Any], depot: int) -> list[Window]:
    """[n] of a mapping of nodes to windows, or of a list in the order of the nodes; None: any time. Raises
    GraphError.
    """
    if isinstance(given, Mapping):  # of those whom it leaves out any time
        given = {**dict.fromkeys(named), **given}
    found = _listed(given, named, depot, "windows", "pairs", None)
    windows = []
    for node, window in zip(named, found):
        pair = (0, math.inf) if window is None else window
        pair = list(pair) if hasattr(pair, "__iter__") and not isinstance(pair, str | Mapping) else []
        if len(pair) != 2:
            right = "a pair, (earliest, latest), would be right"
            raise GraphError(f"windows: found {shown(repr(window))} of {shown(repr(node))}; {right}")
        first = _number(pair[0], "windows")
        last = Decimal("inf") if _is_endless(pair[1]) else _number(pair[1], "windows")
        if first > last:
            told = f"found {shown(repr(window))} of {shown(repr(node))}"
            raise GraphError(f"windows: {told}; one that ends no earlier than it begins would be right")
        windows.append((first, last))
    return windows


def _is_endless(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and value == math.inf


def _row(named: list[Any], node: Any, called: str) -> int:
    if isinstance(node, Hashable) and type(node) is not bool:  # an array is neither equal nor not
        for row, each in enumerate(named):
            if type(each) is not bool and each == node:
                return row
    raise GraphError(f"{called}: found {shown(repr(node))}; a node of the graph would be right")


def _number(value: Any, called: str) -> Decimal:
    """An amount as it is written."""
    if not isinstance(value, bool | np.bool_) and isinstance(value, Real | Decimal):
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            found = Decimal(str(plain))
        except InvalidOperation:
            found = Decimal("nan")
        if found.is_finite() and found >= 0:
            return found
    raise GraphError(f"{called}: found {shown(repr(value))}; a number from 0 on would be right")


def _amounts(given: Any, named: list[Any], depot: int, called: str = "demands") -> list[Decimal]:
    """[n] of a mapping of customers to demands, or of a list in the order of the nodes. Raises GraphError."""
    return [_number(each, called) for each in _listed(given, named, depot, called, "numbers", 0)]


def _listed(given: Any, named: list[Any], depot: int, called: str, what: str, of_depot: Any) -> list[Any]:
    """[n] what a caller gives each node: a mapping, or a list in their order, perhaps without the depot."""
    n = len(named)
    if isinstance(given, Mapping):
        known = dict(given)
        found = [known.pop(node, of_depot if row == depot else MISSING) for row, node in enumerate(named)]
        if known:
            node = shown(repr(next(iter(known))))
            raise GraphError(f"{called}: found {node}; nodes of the graph alone would be right")
        missing = next((row for row, each in enumerate(found) if each is MISSING), None)
        if missing is not None:
            node = shown(repr(named[missing]))
            raise GraphError(f"{called}: found none of {node}; one for each customer would be right")
        return found
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        right = f"a list of {what}, or a mapping of nodes to {what}, would be right"
        raise GraphError(f"{called}: found {shown(repr(given))}; {right}")
    found = list(given)
    if len(found) == n - 1 and depot != NO_DEPOT:  # of the customers alone
        found.insert(depot, of_depot)
    if len(found) != n:
        right = f"{n}" if depot == NO_DEPOT else f"{n}, or {n - 1} without the depot's,"
        raise GraphError(f"{called}: found {len(found)} {what}; {right} would be right")
    return found


def routes_given(given: Any, called: str) -> tuple[list[Any], np.ndarray]:
    """Customers in order, and the route of each [k] int64, of a Solution or a list of routes. Raises
    GraphError, CaseError.
    """
    right = "a list of routes, each a list of customers, would be right"
    if isinstance(given, Solution):
        if given.problem != "cvrp":
            raise CaseError(f"{called}: an answer of {given.problem}; one of cvrp would be right")
        given = given.routes
    plain = isinstance(given, str | Mapping | set | frozenset) or not hasattr(given, "__iter__")
    routes = [] if plain else list(given)
    if plain or any(
        isinstance(each, str | Mapping | set | frozenset) or not hasattr(each, "__iter__") for each in routes
    ):
        raise GraphError(f"{called}: found {shown(repr(given))}; {right}")
    stops = [list(each) for each in routes]
    numbers = np.repeat(np.arange(len(stops)), [len(each) for each in stops]).astype(np.int64)
    return [node for each in stops for node in each], numbers
