"""1-trees of points in the plane: by cells of near points, against a look at all edges; and their checks."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from app.bounds.tour.near_tree import NearTrees
from app.bounds.tour.one_tree import METHOD, SCALE, OneTree, OneTrees, rounded_up
from app.graphs.metric import uniform_points
from bench.harness import Effort, Record, compare

GOALS = {2000: ">= 1", 20_000: ">= 10"}


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """A 1-tree in random weights, and the proof that it is minimum, of uniform points."""
    for n, goal in GOALS.items():
        if quick and n > 2000:
            continue
        metric = uniform_points(n, 0)
        spread = SCALE * metric.spacing // n
        pi = np.random.default_rng(0).integers(-spread, spread, n)
        near, every = NearTrees(metric, 0), OneTrees(metric, 0)
        find = partial(_find, near, pi), partial(_find, every, pi)
        yield compare(f"1-tree of {n:,} points", "all edges", *find, effort, goal)
        proof = OneTree(rounded_up(near.find(pi)), METHOD, pi, 0, near.tree)
        checks = (partial(_check, each, metric) for each in (proof, replace(proof, tree=None)))
        yield compare(f"check of {n:,} points", "all edges", *checks, effort, goal)


def _find(trees: Any, pi: np.ndarray, _: int) -> None:
    trees.find(pi)


def _check(proof: OneTree, metric: Any, _: int) -> None:
    proof.check(metric)
