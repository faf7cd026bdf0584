"""The entry of an answer in result.json: objectives in their unit, the bound as it is shown, the gap."""

import math
from typing import Any

import numpy as np

from app.comm.guard import digest
from app.graphs.graph import Graph
from app.graphs.weights import decimals_of
from app.solver.pipeline import Answer
from app.solver.progress import relative_gap
from app.toolbox import Toolbox

WEAK = 0.1  # gap from which on a bound is called weak


def in_unit(toolbox: Any, value: int | None) -> float | int | None:
    """A value as the objective it stands for, rounded to the decimals that its weights, or its unit, have."""
    if value is None or toolbox.unit == 1:
        return value
    objective, weights = value * toolbox.unit, toolbox.weights
    decimals = _decimals(toolbox.unit) if weights is None else decimals_of(weights * toolbox.unit)
    return objective if decimals is None else round(objective, decimals or None)


def _decimals(unit: float) -> int | None:
    """Those of the multiples of a power of ten below one; None for another number."""
    digits = round(-math.log10(unit))
    return digits if digits > 0 and 10.0**-digits == unit else None


def bound_and_gap(toolbox: Toolbox, best: int, bound: int | None) -> tuple[float | int | None, float | None]:
    """A bound as it is shown beside the best value, and how far that is from it: 0 where it is optimal.

    Decimal weights are kept in 32 bits, so that sums are near numbers of as many decimals, not at them.
    A bound is shown as the next such number that a solution can have, where all that was lost is far less
    than one unit of the last decimal; else rounded away from the best value.
    """
    if bound is None:
        return None, None
    decimals = None
    if bound != best and toolbox.unit != 1 and toolbox.weights is not None:
        decimals = decimals_of(toolbox.weights * toolbox.unit)
    if decimals is None:
        return in_unit(toolbox, bound), relative_gap(best, bound)
    exact, step, upward = bound * toolbox.unit, 10.0**-decimals, toolbox.sense == "minimise"
    error = 2 * (2.0**-24 * float(np.abs(toolbox.weights).sum()) + len(toolbox.weights)) * toolbox.unit
    if error <= step / 4:
        whole = math.ceil((exact - error) / step) if upward else math.floor((exact + error) / step)
        shown = round(whole * step, decimals or None)
        return shown, relative_gap(in_unit(toolbox, best), shown)
    whole = math.floor(exact / step) if upward else math.ceil(exact / step)
    return round(whole * step, decimals or None), relative_gap(best, bound)


def is_weak(entry: dict[str, Any]) -> bool:
    """Whether the bound of an entry of result.json is far from all values that are known, not from the answer
    alone."""
    if entry["bound"] is None:
        return False
    known = [entry["objective"], *entry["baselines"].values()]
    best = min(known) if entry["sense"] == "minimise" else max(known)
    return relative_gap(best, entry["bound"]) > WEAK


def entry_of(toolbox: Toolbox, graph: Graph, answer: Answer) -> dict[str, Any]:
    """The instance's entry of result.json, without baselines."""
    bound, gap = bound_and_gap(toolbox, answer.value, answer.bound)
    return {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges,
        "objective": in_unit(toolbox, answer.value), "sense": toolbox.sense,
        "bound": bound, "bound_method": answer.method or None,
        "gap": None if gap is None else round(gap, 6), "bound_is_weak": False,
        "bound_verified": answer.verified, "optimal": gap == 0, "feasible": True,
        "source": answer.source, "learned": in_unit(toolbox, answer.learned),
        "greedy": in_unit(toolbox, answer.quick), "policy_evaluations": answer.evaluations,
        "steps": answer.steps, "replay": answer.replay, "seconds": round(answer.seconds, 4),
        "primal_dual_integral": round(answer.integral, 4), "baselines": {},
        "digest": digest(
            {
                "solution": answer.solution.astype("<i8"),
                "size": np.array([graph.n, graph.edges], dtype="<i8"),
            }
        ),
    }  # fmt: skip
