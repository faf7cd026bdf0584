"""From the keys of a [graph] table to the arguments of its generator."""

from typing import Any

import numpy as np

from app.case.graph import GraphCase
from app.graphs.generators.bter import power_law_degrees, spread_degrees
from app.graphs.generators.drawn_weights import with_weights
from app.graphs.generators.sets import Members
from app.graphs.generators.table import GENERATORS
from app.graphs.stream import EdgeStream
from app.partition.families import turn_of
from app.rng import stream

# What graph.edge_weights = "mixed" stands for, by turns.
WEIGHTS_BY_TURNS = ("one", "signs", "normal")
# What graph.members = "mixed" stands for, by turns within turns: of kinds, of sets that hold an element, of
# elements for each set; and graph.costs = "mixed".
MEMBERS_BY_TURNS = ("even", "skewed", "near")
SETS_EACH_BY_TURNS = (3, 5, 8, 12, 20, 30)
ELEMENTS_BY_TURNS = (1.0, 0.5, 2.0)
COSTS_BY_TURNS = ("one", "whole")
TURNS = len(MEMBERS_BY_TURNS) * len(SETS_EACH_BY_TURNS)


def generated(case: GraphCase, number: int, n: int, seed: int, found: np.ndarray | None = None) -> EdgeStream:
    """Graph `number` of the set that a table describes; every family meets all kinds of weights.

    found   as parameters_of takes it
    """
    turn, count = turn_of(case, number)
    family, table = turn.family, turn.table(case, n)
    parameters = parameters_of(table, family, n, found)
    more = {"members": members_of(case, number)} if family == "sets" else {}
    if family == "sets":
        parameters = sizes_of_sets(case, n, number)
    opened = GENERATORS[family](n, *parameters, seed, name=f"{family}-{n}-{number}", **more)
    return with_weights(opened, weights_of(case, count), seed)


def members_of(case: GraphCase, number: int) -> Members:
    """What the sets of family `number` of a table hold, and what they cost."""
    kind = MEMBERS_BY_TURNS[number % 3] if case.members == "mixed" else case.members
    by_turns = case.costs == "mixed"
    return Members(kind, COSTS_BY_TURNS[(number + number // TURNS) % 2] if by_turns else case.costs)


def sizes_of_sets(case: GraphCase, n: int, number: int) -> tuple[int, float]:
    """Elements of family `number` of a table beside n sets, and the probability that one is in a set."""
    if case.members != "mixed":
        return case.elements or n, case.p
    sets_each = SETS_EACH_BY_TURNS[number // 3 % len(SETS_EACH_BY_TURNS)]
    elements = max(1, round(n * ELEMENTS_BY_TURNS[number // TURNS % len(ELEMENTS_BY_TURNS)]))
    return elements, min(sets_each / n, 1.0)


def most_elements(case: GraphCase, n: int) -> int:
    """The most elements of a family of n sets of a table."""
    return max(1, round(n * max(ELEMENTS_BY_TURNS))) if case.members == "mixed" else case.elements or n


def weights_of(case: GraphCase, turn: int = 0) -> str:
    """The kind of edge weights (graphs/generators/drawn_weights.py) of the turn-th graph of a family."""
    by_turns = case.edge_weights == "mixed"
    return WEIGHTS_BY_TURNS[turn % len(WEIGHTS_BY_TURNS)] if by_turns else case.edge_weights


def parameters_of(case: GraphCase, family: str, n: int, found: np.ndarray | None = None) -> tuple[Any, ...]:
    """What a generator takes between the number of nodes and the seed.

    found   [m] the degrees in the file that graph.degrees_of names
    """
    edges = case.edges or n * case.d
    if family == "bter":
        return bter_degrees(case, n, edges, found), (case.clustering, case.clustering_decay)
    return {
        "er": (case.p,),
        "arcs": (case.p,),
        "ba": (case.d,),
        "rmat": (edges, (case.rmat_a, case.rmat_b, case.rmat_c)),
        "rmat_natural": (edges, (case.rmat_a, case.rmat_b, case.rmat_c)),
        "chung_lu": (edges, case.exponent),
        "sbm": (case.random_classes, case.degree_in, case.degree_out),
        "bipartite": (second_side(case, n), case.random_classes, case.degree_in, case.degree_out),
        "torus": (case.removed,),
        "small_world": (case.d, case.p),
        "geometric": (edges,),
        "motifs": (case.random_classes,),
        "sets": (case.elements or n, case.p),
        "uniform_points": (),
        "customers": (
            case.depot_at,
            case.customers_at,
            (case.least_demand, case.most_demand),
            case.stops,
            (case.window, case.service),
        ),
    }[family]


def second_side(case: GraphCase, n: int) -> int:
    """Nodes on the second side of a bipartite graph of n, the last ones."""
    return case.elements or n // 2


def bter_degrees(case: GraphCase, n: int, edges: int, found: np.ndarray | None) -> np.ndarray:
    """[n] expected degrees: like those of another graph, or a power law; times their scale."""
    if found is not None:
        return spread_degrees(found, n, case.degree_scale)
    return power_law_degrees(n, round(edges * case.degree_scale), case.exponent)


def drawn_of(table: GraphCase, seed: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
    """[count] int64 nodes and [count] int64 seeds of the generated graphs of a table."""
    base = base_seed(table, seed)
    draws = stream(base, f"graphs/{purpose}")
    low, high = (table.nodes, table.nodes) if isinstance(table.nodes, int) else table.nodes
    sizes = draws.integers(low, high + 1, table.count)
    if table.count == 1 and purpose == "instances":  # one graph to solve is the generator's own of this seed
        return sizes, np.array([base])
    return sizes, draws.integers(0, 2**31, table.count)


def base_seed(table: GraphCase, seed: int) -> int:
    """The seed of a table's generator, in a case of that seed."""
    return seed if table.generator_seed < 0 else table.generator_seed
