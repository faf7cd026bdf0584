"""From the keys of a [graph] table to the arguments of its generator."""

from typing import Any

import numpy as np

from app.config import GraphCase
from app.graphs.bter import power_law_degrees, spread_degrees


def parameters_of(case: GraphCase, family: str, n: int, found: np.ndarray | None = None) -> tuple[Any, ...]:
    """What a generator takes between the number of nodes and the seed.

    found   [m] the degrees in the file that graph.degrees_of names
    """
    edges = case.edges or n * case.d
    if family == "bter":
        return bter_degrees(case, n, edges, found), (case.clustering, case.clustering_decay)
    return {
        "er": (case.p,),
        "ba": (case.d,),
        "rmat": (edges, (case.rmat_a, case.rmat_b, case.rmat_c)),
        "rmat_natural": (edges, (case.rmat_a, case.rmat_b, case.rmat_c)),
        "chung_lu": (edges, case.exponent),
        "sbm": (case.random_classes, case.degree_in, case.degree_out),
        "uniform_points": (),
    }[family]


def bter_degrees(case: GraphCase, n: int, edges: int, found: np.ndarray | None) -> np.ndarray:
    """[n] expected degrees: like those of another graph, or a power law; times their scale."""
    if found is not None:
        return spread_degrees(found, n, case.degree_scale)
    return power_law_degrees(n, round(edges * case.degree_scale), case.exponent)
