"""Branch and bound of cliques on two ranks against one, beside roots that are dealt once and for all.

The rounds are those of bench/ranks.py: rank 0 alone while the others sleep, then all together. The speedup of
a proof, whose roots are dealt anew at every exchange, is held against that of every other root for each rank,
without a word between them: what the cores of the machine give.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from app.bounds.clique.roots import Roots, RootSearch
from app.bounds.shared_roots import SharedRoots
from app.graphs.graph import Graph, from_edges
from bench.harness import Effort, Record
from bench.ranks import Work, about, compare_ranks, sides

__all__ = ["about", "measure"]

CASES = ((500, 0.5), (300, 0.7), (200, 0.9))  # nodes, share of the pairs that are edges
TURN_S = 0.1  # between two exchanges


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Proofs that the heaviest clique, which is known, is one. Ranks: all call."""
    rounds = replace(effort, pairs=effort.least) if quick else replace(effort, pairs=11, least=11)
    for n, p in CASES[:1] if quick else CASES:
        graph = random_graph(120 if quick else n, p)
        search = RootSearch(graph, None, 0)
        while not search.done:
            search.run(search.work + (1 << 24))
        case = f"clique of G({graph.n}, {p:g}) is {search.best}"
        yield compare_ranks(case, _proof(graph, search.best), _shares(graph, search.best), rounds)


def random_graph(n: int, p: float) -> Graph:
    """G(n, p) of seed 1."""
    edges = np.array(nx.gnp_random_graph(n, p, seed=1).edges, dtype=np.int64)
    return from_edges(n, edges[:, 0], edges[:, 1])


def _proof(graph: Graph, best: int) -> Work:
    """All roots; returns what no clique is heavier than."""

    def make(group: Any) -> Callable[[], Any]:
        def step() -> int:
            roots = SharedRoots(graph, None, best, group.rank, group.size)
            roots.hurried = True
            while not roots.done:
                roots.run(TURN_S)
                roots.learn_all(group.max_integers(roots.told()), best)
            return roots.upper

        return step

    return sides(make)


def _shares(graph: Graph, best: int) -> Work:
    """Every rank's share of the roots, searched to their ends."""

    def make(group: Any) -> Callable[[], Any]:
        def step() -> None:
            roots = Roots(graph, None, best)
            search = roots.another()
            search.begin(np.ascontiguousarray(roots.open()[group.rank :: group.size], dtype=np.int32), 0)
            search.run(1 << 62)

        return step

    return sides(make)
