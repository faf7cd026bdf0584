"""The tools of one whole instance: its graph, what is given beside it, and the nodes that are fixed."""

import math
from functools import partial

import numpy as np

from app import stopping
from app.aside import aside
from app.case.config import Case
from app.case.search import SearchCase
from app.checkpoint.keeper import NOTHING_KEPT
from app.comm.guard import raise_together
from app.errors import CaseError, FixedNodesError, GraphError
from app.graphs.diffusion import Spreading
from app.graphs.graph import Graph
from app.graphs.ids import one_id
from app.graphs.keys import shared_keys, without
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.search.solution_text import read_nodes
from app.tasks.compare import heuristics
from app.tasks.context import Context
from app.tasks.deliveries import deliveries_of, demands_of
from app.tasks.names import called_as, written_ids
from app.tasks.pairings import pairing_for
from app.tasks.terminals import prizes_of, terminals_of, without_effect
from app.toolbox import Asked, Beside, Instance, Toolbox

LONG = 1 << 16  # nodes and entries of a graph whose tools are made while signals are heard
LONG_TABLE = 1000  # nodes of one of which they may have a table of all pairs, likewise


def make_toolbox(context: Context, problem: Problem, loaded: Loaded, whole: Graph) -> Toolbox:
    """The problem's tools for one whole instance, with the nodes that are fixed. Ranks: all call."""
    search = context.case.search
    with raise_together(context.group, "reading the fixed nodes"):
        ids = whole.held_ids()
        inside, outside = (
            np.flatnonzero(read_nodes(path, written_ids(loaded, ids))) if path else _rows_of(given, ids)
            for path, given in ((search.inside, loaded.inside), (search.outside, loaded.outside))
        )
        both = shared_keys(inside, outside)
        if len(both):
            right = "a node in one of them would be right"
            raise CaseError(f"search.inside, search.outside: node {one_id(ids, both[0])} is in both; {right}")
        compiled = context.case.run.kernels == "auto"
        try:
            limit = 1e6 * context.case.memory.whole_graph_mb
            asked = Asked.of(context.case.problem)
            beside = _beside(context.case, loaded, whole, written_ids(loaded, ids))
            instance = Instance(
                graph=whole, metric=loaded.metric, inside=inside, outside=outside, compiled=compiled,
                whole_weights=None, most_bytes=limit, asked=asked, beside=beside,
                seconds=_seconds_to_prepare(search),
            )  # fmt: skip
            for told in without_effect(instance, partial(called_as, context.case, loaded, whole)):
                context.warn(f"{whole.name}: {told}")
            make = partial(problem.toolbox, instance)
            # Of a call from Python signals are the caller's, who is left with no thread at work.
            long = whole.n + len(whole.indices) >= LONG or whole.n >= LONG_TABLE
            heard = context.keeper is not NOTHING_KEPT and long
            toolbox = aside(make) if heard else make()
        except FixedNodesError as error:
            named = error.words.format(
                *(called_as(context.case, loaded, whole, node) for node in error.nodes)
            )
            raise CaseError(f"search.inside, search.outside: {named}") from None
        toolbox.stops = stopping.asked
        heuristics(context.case, toolbox)  # refuses an unknown name before any work
        return toolbox


def _beside(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> Beside:
    """What is given beside a whole graph; written: the ids of its nodes as files have them."""
    terminals = terminals_of(case, loaded, whole, written)
    deliveries = deliveries_of(case, loaded, whole, written)
    demands = demands_of(case, loaded, whole, written)
    prizes = prizes_of(case, loaded, whole)
    pairing = pairing_for(case, loaded, whole, written)
    return Beside(terminals, prizes, loaded.heaviest, deliveries, demands, pairing, _spreading(case))


def _seconds_to_prepare(search: SearchCase) -> float:
    """A limit that tools may make ready in, by their own estimates; none where they could not (replay)."""
    return 0.0 if search.start_looks else search.seconds or math.inf


def _spreading(case: Case) -> Spreading:
    """What is asked of seeds, beside their budget."""
    asked = case.influence
    return Spreading(
        asked.model, asked.probabilities, asked.probability, asked.epsilon, asked.delta, asked.sets,
        asked.simulations, case.seed,
    )  # fmt: skip


def _rows_of(nodes: np.ndarray | None, ids: np.ndarray) -> np.ndarray:
    """[k] int64, ascending: the rows of nodes that a caller names by their ids. Raises GraphError."""
    if nodes is None:
        return np.empty(0, dtype=np.int64)
    unknown = without(nodes, ids)
    if len(unknown):
        raise GraphError(f"inside, outside: node {one_id(unknown, 0)} is not in the graph")
    return np.flatnonzero(np.isin(ids, nodes))
