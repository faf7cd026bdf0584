"""Unlearned: what problems have in common that no policy answers."""

from typing import ClassVar

import numpy as np

from app.graphs.graph import Graph


class Unlearned:
    """A problem without states; bounds and what makes a solution feasible are its toolbox's."""

    dynamics = ""
    redundancy = ""
    bounds: ClassVar = {}
    complemented = False
    known = False


def not_numbers(graph_rows: Graph, solution_all: np.ndarray, each: str) -> str | None:
    """What is not one number for each node; each: what the numbers are called."""
    fits = solution_all.shape == (graph_rows.n,) and solution_all.dtype.kind in "iu"
    return None if fits else f"is {solution_all.dtype} {solution_all.shape}, not one {each} for each node"
