"""Networks that are not worth splitting: every rank holds the whole graph, and rank 0 learns for all.

An epoch on a small graph takes less time than the messages of its ranks would. Where a graph is split changes
no bit (docs/how_it_works.md), so it is decided by sizes, by built-in rates and the same on all ranks, and
by whether these have a core each, or room for it all. Policies: partition/whole.py.
"""

from app.case.config import Case
from app.errors import CaseError
from app.model.defaults import DEFAULTS
from app.model.rates import Rates
from app.model.terms import MESSAGES, Term

# s that ranks wait for each other at a message, beside what it takes; and how many times as fast an epoch has
# to become by all cores in place of one, since other programs disturb ranks that wait, and the model may be
# wrong by a third (docs/measurements/speed.md).
WAITED_S, WORTH = 5e-5, 1.3
LARGE = 1 << 27  # bytes of a graph and its features, about a million edges: beyond, it is split


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
    if case.parallel.spatial == 1:
        return True
    return False if nbytes > LARGE or case.parallel.exchange != "auto" else None


def said_whole(case: Case) -> str:
    """What is said of a network that is not split."""
    several = case.gnn.members > 1 or case.study.kind in ("folds", "tune")
    does = "learns a network of its own in turn" if several else "the first one learns for all"
    return f"too small to be split: every rank has the whole graph, and {does}"


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


def is_small(alone: list[Term], shared: list[Term], ranks: int, crowded: bool) -> bool:
    """Whether ranks that share an epoch would hardly be faster than one by itself; see below.

    crowded   some host has fewer cores than ranks, and room for all of it on each of them: those that wait
              for a message take the core from those that make it, so that short epochs take many times as
              long, and even those of seconds gain little
    """
    return (0.0 if crowded else gained(alone, shared, ranks)) < WORTH


def gained(alone: list[Term], shared: list[Term], ranks: int) -> float:
    """How many times as fast an epoch is on ranks that share it as on one of them, while the others rest.

    alone, shared   the terms of an epoch on one rank, and of the slowest of so many
    """
    # Those of ranks that all work: what one gains that has the memory to itself is little.
    rates = Rates(DEFAULTS, ranks)
    waiting = sum(term.times for term in shared if term.kind in MESSAGES) * WAITED_S
    return rates.total(alone) / (rates.total(shared) + waiting)
