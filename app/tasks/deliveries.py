"""What vehicles deliver, and what facilities serve: of a file, a generator or a caller, by keys, too."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from app.case.config import Case, ProblemCase
from app.errors import CaseError, GraphError
from app.graphs.deliveries import MOST_TIME, Deliveries, Times
from app.graphs.facility import Demands
from app.graphs.formats.source import shown
from app.graphs.graph import Graph
from app.graphs.ids import NodeIndex, named, one_id, whole_number
from app.graphs.metric import Metric
from app.partition.loaded import Loaded
from app.problems.table import ROUTES, make_problem
from app.search.solution_text import lines_of

MOST = 2**53  # of all demands together, and of a capacity, in whole numbers
MOST_DIGITS = 6  # after the point
NO_DEPOT = -1
FACILITY = "facility"  # the problem whose nodes need something
LONGEST = 2**31 - 1  # a distance
Window = tuple[Decimal, Decimal]
RIGHT = (
    'a CVRPLIB file (.vrp), graph.demands=FILE, graph.generator="customers" or, from Python, demands= would '
    "be right"
)


def has_routes(case: Case) -> bool:
    """Whether what a case solves are routes."""
    return make_problem(case.problem.name).solution == ROUTES


def deliveries_of(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> Deliveries | None:
    """What is delivered to the nodes of a graph; None where the problem has no routes. Raises CaseError,
    GraphError.

    written   [n] what files call the nodes
    """
    if not has_routes(case):
        return None
    asked, found, path = case.problem, loaded.deliveries, case.graph.demands
    path = "" if loaded.source == "generator" else path
    if found is not None and path:
        raise CaseError(f"graph.demands: {whole.name} has demands of its own; leave the key out")
    if found is None and not path:
        raise GraphError(f"{whole.name}: found no demands; {RIGHT}")
    depot = _row_of_depot(asked.depot, found, whole)
    if found is None:
        amounts = _amounts_of_file(path, written, depot)
        found = made_of(amounts, asked.capacity, depot, asked.vehicles, path, whole)
        return _within_times(_with_keys(found, asked, loaded.metric, whole), loaded.metric)
    if depot != found.depot:
        right = f"{whole.called(found.depot)}, that of its own, would be right"
        raise CaseError(f"problem.depot: {whole.name} has another depot; {right}")
    capacity = found.capacity
    if asked.capacity:
        capacity = math.floor(asked.capacity)
        if capacity > MOST:
            raise CaseError(f"problem.capacity: found {asked.capacity:g}; at most {MOST} would be right")
        _refuse_larger(found.demand, capacity, "problem.capacity", whole)
    found = replace(found, capacity=capacity, vehicles=asked.vehicles or found.vehicles)
    return _within_times(_with_keys(found, asked, loaded.metric, whole), loaded.metric)


def _with_keys(found: Deliveries, asked: ProblemCase, metric: Metric | None, whole: Graph) -> Deliveries:
    """Deliveries with the limit of a route's length, and the service, that a case names. Raises CaseError."""
    for key in ("service", "max_length"):
        if getattr(asked, key) and found.times is not None:
            raise CaseError(f"problem.{key}: {whole.name} has times of its own; leave the key out")
    most, service = (Decimal(repr(getattr(asked, key))) for key in ("max_length", "service"))
    if not most or metric is None:
        return found
    return with_times(found, metric, None, [service] * metric.n, most, "problem.service")


def with_times(
    found: Deliveries, metric: Metric, windows: Sequence[Window] | None, service: Sequence[Decimal],
    most: Decimal | None, called: str,
) -> Deliveries:  # fmt: skip
    """Deliveries in windows [n], or on routes that take at most so long, service [n] included.

    Windows, limits and services are counted in units of the metric, rounded so that whatever keeps to the
    whole numbers keeps to what was asked for. Where distances are whole numbers services have to be, too.

    called   what services are called        Raises GraphError
    """
    unit, zero = Decimal(repr(metric.unit)), Decimal(0)
    spent = [zero if row == found.depot else each for row, each in enumerate(service)]
    for each in spent if unit == 1 else ():
        if each % 1:
            raise GraphError(f"{called}: found {each}; a whole number, as distances are, would be right")
    if windows is None:
        windows = [(zero, Decimal("inf") if most is None else most)] * len(spent)
    opens = [_counted(a, unit, ROUND_CEILING) for a, _ in windows]
    closes = [_counted(b, unit, ROUND_FLOOR) for _, b in windows]
    taken = [_counted(each, unit, ROUND_CEILING) for each in spent]
    return replace(found, times=Times(*(np.array(each, dtype=np.int64) for each in (opens, closes, taken))))


def _counted(value: Decimal, unit: Decimal, way: str) -> int:
    """A time in whole units."""
    if value / unit >= MOST_TIME:
        return MOST_TIME
    return int((value / unit).to_integral_value(way))


def _within_times(found: Deliveries, metric: Metric | None) -> Deliveries:
    """The same deliveries, with no window that ends later than any route has to."""
    times = found.times
    if times is None or metric is None:
        return found
    longest = int(metric.matrix.max(initial=0)) if metric.matrix is not None else LONGEST
    last = sum(times.service.tolist()) + int(times.opens.max()) + (metric.n + 1) * longest
    if last > MOST_TIME:
        right = f"at most {MOST_TIME} units, the services and distances of a route included, would be right"
        raise GraphError(f"{metric.name}: found times that are too large; {right}")
    closes = np.minimum(times.closes, last)
    return replace(found, times=replace(times, closes=closes, given=times.closes))


def _row_of_depot(asked: int, found: Deliveries | None, whole: Graph) -> int:
    """The row of the depot. Raises GraphError."""
    if asked < 0:
        return 0 if found is None else found.depot
    ids = whole.held_ids()
    row = -1 if named(ids) else int(NodeIndex(ids).find(np.array([asked]))[0])
    if row < 0:
        raise GraphError(f"problem.depot: node {asked} is not in {whole.name}")
    return row


def demands_of(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> Demands | None:
    """What the nodes of a graph need, where facilities are sought; None: none are, or nothing is said of it.
    Raises CaseError, GraphError.

    written   [n] what files call the nodes
    """
    if case.problem.name != FACILITY:
        return None
    if loaded.needs is not None or not case.graph.demands or loaded.source == "generator":
        return loaded.needs
    order = np.argsort(whole.held_ids(), kind="stable")
    amounts = _amounts_of_file(case.graph.demands, written[order], NO_DEPOT)
    return needed_of(amounts, order, case.graph.demands, whole)


def needed_of(amounts: Sequence[Decimal], order: np.ndarray, called: str, whole: Graph) -> Demands:
    """Demands of decimal amounts, in the order [n] of the rows. Raises GraphError."""
    numbers, digits = _counted_amounts(amounts, called, [whole.called(int(row)) for row in order])
    demand = np.zeros(len(order), dtype=np.int64)
    demand[order] = numbers
    return Demands(demand, Fraction(1, 10**digits))


def _counted_amounts(amounts: Sequence[Decimal], called: str, names: Sequence[str]) -> tuple[list[int], int]:
    """Amounts as whole numbers of their last decimal, and its place. Raises GraphError.

    names   whose they are: of `names` nodes, the last one of the capacity where there is one more
    """
    for row, amount in enumerate(amounts):
        if not amount.is_finite() or amount < 0:
            what = f"the demand of {names[row]}" if row < len(names) else "the capacity"
            raise GraphError(f"{called}: {what} is {amount}; a number from 0 on would be right")
    digits = max((max(-int(amount.normalize().as_tuple().exponent), 0) for amount in amounts), default=0)
    if digits > MOST_DIGITS:
        raise GraphError(
            f"{called}: found amounts of {digits} decimals; at most {MOST_DIGITS} would be right"
        )
    numbers = [int(amount.scaleb(digits)) for amount in amounts]
    if sum(numbers[: len(names)]) > MOST:
        right = f"at most {MOST} units of the last decimal would be right"
        raise GraphError(f"{called}: the demands are too large together; {right}")
    return numbers, digits


def made_of(
    amounts: Iterable[Decimal], capacity: float | str, depot: int, vehicles: int, called: str, whole: Graph
) -> Deliveries:
    """Deliveries of decimal amounts [n], counted in the unit of their last decimal. Raises GraphError."""
    if not capacity:
        raise GraphError(f"{whole.name}: found no capacity; problem.capacity (capacity=) would be right")
    exact = [*amounts, Decimal(repr(capacity) if isinstance(capacity, float) else capacity)]
    whole_numbers, _ = _counted_amounts(exact, called, [whole.called(row) for row in range(whole.n)])
    if whole_numbers[-1] > MOST:
        right = f"at most {MOST} units of the last decimal would be right"
        raise GraphError(f"{called}: the capacity is too large; {right}")
    demand = np.array(whole_numbers[:-1], dtype=np.int64)
    if demand[depot]:
        told = f"the demand of the depot, {whole.called(depot)}, is {exact[depot]}"
        raise GraphError(f"{called}: {told}; 0 would be right")
    _refuse_larger(demand, whole_numbers[-1], called, whole)
    return Deliveries(depot, demand, whole_numbers[-1], vehicles)


def _refuse_larger(demand: np.ndarray, capacity: int, called: str, whole: Graph) -> None:
    """Refuse a customer whom no vehicle can bring all. Raises GraphError."""
    over = np.flatnonzero(demand > capacity)
    if len(over) or capacity < 1:
        node = whole.called(int(over[0])) if len(over) else "any customer"
        right = "a capacity of at least the largest demand, and 1, would be right"
        raise GraphError(f"{called}: the demand of {node} is above the capacity; {right}")


def _amounts_of_file(path: str, written: np.ndarray, depot: int) -> list[Decimal]:
    """[n] the demands of lines `demand`, in the order of the ids, or `id demand`; that of the depot may be
    left out (NO_DEPOT: there is none). Raises GraphError.
    """
    n, lines = len(written), [(line, text.split()) for line, text in lines_of(path)]
    amounts: list[Decimal | None] = [None] * n
    if all(len(words) == 1 for _, words in lines):
        if len(lines) != n and (depot == NO_DEPOT or len(lines) != n - 1):
            right = f"{n}, or {n - 1} without the depot's, would be right"
            right = f"{n} would be right" if depot == NO_DEPOT else right
            raise GraphError(f"{path}: found {len(lines)} demands; {right}")
        rows = [row for row in range(n) if len(lines) == n or row != depot]
        for row, (line, words) in zip(rows, lines):
            amounts[row] = _amount(path, line, words[0])
    else:
        index, texts = NodeIndex(written), named(written)
        for line, words in lines:
            if len(words) < 2 or (len(words) > 2 and not texts):
                raise GraphError(
                    f"{path}:{line}: found {shown(' '.join(words))!r}; 'id demand' would be right"
                )
            name = " ".join(words[:-1])
            found = name.encode() if texts else whole_number(name)
            row = None if found is None else index.row(found)
            if row is None:
                raise GraphError(f"{path}:{line}: node {shown(name)} is not in the graph")
            if amounts[row] is not None:
                raise GraphError(
                    f"{path}:{line}: node {shown(name)} has a demand already; one would be right"
                )
            amounts[row] = _amount(path, line, words[-1])
    if depot != NO_DEPOT and amounts[depot] is None:
        amounts[depot] = Decimal(0)
    for row, amount in enumerate(amounts):
        if amount is None:
            raise GraphError(
                f"{path}: node {one_id(written, row)} has no demand; one for each would be right"
            )
    return amounts


def _amount(path: str, line: int, word: str) -> Decimal:
    """A demand of a file, exactly as it is written. Raises GraphError."""
    try:
        found = Decimal(word) if len(word) <= 30 and word.isascii() else Decimal("nan")
    except InvalidOperation:
        found = Decimal("nan")
    if not (found.is_finite() and 0 <= found <= MOST):
        raise GraphError(
            f"{path}:{line}: found {shown(word)!r} as a demand; a number from 0 on would be right"
        )
    return found
