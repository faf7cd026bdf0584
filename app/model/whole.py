"""Networks that are not worth splitting: every rank holds the whole graph and learns by itself.

An epoch on a small graph takes less time than the messages of its ranks would. Where a graph is split changes
no bit (docs/how_it_works.md), so it is decided by sizes alone, by built-in rates and the same on all ranks
and all machines. Policies: partition/whole.py.
"""

from app.case.config import Case
from app.errors import CaseError
from app.model.defaults import DEFAULTS
from app.model.rates import Rates
from app.model.terms import MESSAGES, Term
from app.partition.whole import taken_off

WAITED = 2.0  # what messages take, waiting for the slowest rank and packing, over what they do by themselves
WHOLE = "too small to be split: every rank has the whole graph, and learns by itself"


def decided_by_case(case: Case, ranks: int, nbytes: int) -> bool | None:
    """Whether every rank holds the whole graph, where keys, or its size in memory, say so; else None.

    nbytes   of the graph, as memory.whole_graph_mb counts them
    Raises CaseError for keys that contradict each other.
    """
    if ranks == 1:
        return False
    refuse_spatial(case, ranks)
    if case.parallel.spatial > 1 or needs_splitting(case) or nbytes > 1e6 * case.memory.whole_graph_mb:
        return False
    return True if case.parallel.spatial == 1 else None


def needs_splitting(case: Case) -> str:
    """The key by which a network is on all ranks together, however small it is; "": none."""
    if case.parallel.partition == "learned":
        return "parallel.partition"
    return "memory.fast_mb" if case.memory.fast_mb else ""


def refuse_spatial(case: Case, ranks: int) -> None:
    """Refuse a number of ranks that no network is split over. Raises CaseError."""
    spatial, key = case.parallel.spatial, needs_splitting(case)
    if spatial not in (0, 1, ranks):
        right = f"{ranks} (all), 1 (every rank has the whole graph) or 0 (by its size) would be right"
        raise CaseError(f"parallel.spatial: found {spatial}, and a network is split over all ranks; {right}")
    if spatial == 1 < ranks and key:
        raise CaseError(
            f"parallel.spatial: 1 gives every rank the whole graph, and {key} is of ranks that share it; "
            "leave either out"
        )


def is_small(alone: list[Term], shared: list[Term], ranks: int) -> bool:
    """Whether ranks would take less work off each other than their messages take; see below."""
    work, messages = work_and_messages(alone, shared, ranks)
    return work <= WAITED * messages


def work_and_messages(alone: list[Term], shared: list[Term], ranks: int) -> tuple[float, float]:
    """Seconds of an epoch's work that ranks take off each other, and of their messages.

    alone, shared   the terms of an epoch on one rank, and of the slowest of so many
    """
    there, here = Rates(DEFAULTS, ranks), Rates(DEFAULTS, 1)
    messages = sum(there.seconds(term) for term in shared if term.kind in MESSAGES)
    work = sum(here.seconds(term) for term in alone if term.kind != "call")
    return taken_off(work, ranks), messages
