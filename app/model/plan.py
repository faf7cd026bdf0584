"""What a case will take, from headers of files and parameters of generators alone (--dry-run)."""

from collections.abc import Iterator
from typing import Any

from app.case.config import Case, is_forecast
from app.case.graph import GraphCase
from app.case.rules.graphs import graph_conflicts
from app.errors import CaseError
from app.graphs.generators.table import GENERATORS
from app.model.counts import classified_counts
from app.model.defaults import DEFAULTS
from app.model.rates import Rates, given_network, load_calibration
from app.native.device import HostDevice
from app.text import printable


def graph_case(text: str) -> GraphCase:
    """The table of a graph such as er:1920:0.065 or ba:14400:4. Raises CaseError."""
    family, *numbers = text.split(":")
    try:
        nodes, parameter = int(numbers[0]), float(numbers[1])
        known = family in GENERATORS and len(numbers) == 2 and nodes > 0 and parameter > 0
        known = known and (family != "er" or parameter <= 1)
    except (ValueError, IndexError, OverflowError):
        known = False
    if not known or (family != "er" and parameter != int(parameter)):
        right = f"NAME:NODES:PARAMETER, such as er:1920:0.065, NAME one of {', '.join(GENERATORS)}"
        raise CaseError(f"study: a graph must be {right}, got {text!r}")
    keys = {"p": parameter} if family == "er" else {"d": int(parameter)}
    table = GraphCase(generator=family, nodes=nodes, **keys)
    for key, mistake in graph_conflicts(table):
        raise CaseError(f"study: {text}: {key} {mistake}")
    return table


def plan_lines(case: Case, ranks: int, device: Any = None) -> Iterator[str]:
    """Memory of a rank and seconds of a step for the graphs of a case, as lines of text."""
    yield origin_line(case)
    rates = rates_of(case, ranks)
    if is_forecast(case):
        from app.model.forecast_plan import forecast_plan_lines  # of this task alone

        yield from forecast_plan_lines(case, ranks, rates)
    elif case.run.task == "classify":
        from app.model.node_plan import node_plan_lines  # of no use to policies

        yield from node_plan_lines(case, *classified_counts(case), ranks, device, rates)
    else:
        from app.model.policy_plan import policy_plan_lines  # of no use to networks

        yield from policy_plan_lines(case, ranks, rates.calibration)


def origin_line(case: Case) -> str:
    """Whose rates the estimates of a case go by."""
    origin = case.study.calibration or f"built-in rates ({DEFAULTS.machine})"
    return f"estimates by {origin}; study.calibration=FILE takes those of a scaling study"


def rates_of(case: Case, ranks: int) -> Rates:
    """The rates of so many ranks, by study.calibration where it is given."""
    given = case.study.calibration
    return Rates(load_calibration(given) if given else DEFAULTS, ranks, given_network(case))


def memory_line(case: Case, ranks: int, error: MemoryError) -> str:
    """Of a rank that ran out of memory: what was asked for, what was planned, what would help."""
    try:
        plan = "; ".join(list(plan_lines(case, ranks, HostDevice()))[1:])
    except Exception as failure:  # the first error is the one to tell
        plan = f"no plan, {type(failure).__name__}"
    asked = " ".join(str(error).split()) or "an array did not fit"
    ways = "more ranks, memory.fast_mb (classify) or a smaller batch would help"
    return printable(f"out of memory: {asked}; planned: {plan or 'nothing'}; {ways}")
