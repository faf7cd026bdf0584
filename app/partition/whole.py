"""Graphs that are not worth splitting: every rank has them whole and follows a policy on them by itself.

A step of a policy on a small graph takes less time than the messages of its ranks would. Where a graph is
split changes no bit (docs/how_it_works.md), so it is decided by size alone, the same on all ranks.
"""

from dataclasses import replace

import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.graphs.graph import Graph
from app.partition.assemble import gather_whole
from app.partition.loaded import Loaded
from app.partition.rows import RowPartition

ENTRIES_A_ROW = 64  # stored entries that take about as long as what a row's dense products take
# Work that has to be taken off a rank before messages pay (bench/splitting.py):
LEARNED_ON = 10_000  # of a gradient step: all states of its minibatch
EVALUATED = 2_000  # of an evaluation from the first row to the last
FOLLOWED_ROWS, FOLLOWED_ENTRIES = 1 << 19, 1 << 24  # of one whose scores follow each choice: about 250 MB


def work_of(rows: float, entries: float) -> float:
    """What an evaluation of states of so many nodes and stored entries takes, in rows."""
    return rows + entries / ENTRIES_A_ROW


def learning_work(case: Case, nodes: float, entries: float) -> float:
    """What a replica's gradient step takes, on graphs of so many nodes and stored entries in the mean."""
    return max(case.agent.batch // case.parallel.data, 1) * work_of(nodes, entries)


def sharers(group: Group, spatial: int, work: float, most: int) -> Group:
    """The ranks that a graph is split over: those of `group`, or this one by itself.

    spatial   parallel.spatial: 0 by size, 1 this rank by itself, more: `group`, which has so many
    most      work up to which it does not help that others take it off
    """
    alone = spatial == 1 or (not spatial and taken_off(work, group.size) <= most)
    return group.alone() if alone and group.size > 1 else group


def taken_off(work: float, ranks: int) -> float:
    """The part of some work that the others of so many ranks do."""
    return work * (1 - 1 / ranks)


def followed_by(group: Group, spatial: int, rows: int, entries: int) -> Group:
    """`sharers` of a graph whose scores are computed anew only where a choice has changed them."""
    fits = rows <= FOLLOWED_ROWS and entries <= FOLLOWED_ENTRIES
    return sharers(group, spatial, 0 if fits else work_of(rows, entries), 0)


def held_whole(group: Group, loaded: Loaded) -> Loaded:
    """A graph with all its rows on every rank, in the row blocks it has. Ranks: all call."""
    graph = whole_of(group, loaded)
    starts = loaded.rows.starts
    rows = RowPartition(loaded.rows.n, starts, np.array([0, len(starts) - 1]))
    return replace(loaded, graph=graph, rows=rows)


def whole_of(group: Group, loaded: Loaded) -> Graph:
    """All rows of a graph on every rank; the caller checks the memory limit first. Ranks: all call."""
    if loaded.made is not None and loaded.made[0] is loaded.graph:
        return loaded.made[1]
    return gather_whole(group, loaded.graph, loaded.rows)
