"""Four problems on matrices and arrays: independent set, dominating set, cut, tour; each one checked.

python examples/several_problems.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from app import solve


def random_matrix(n: int, p: float, seed: int) -> sp.csr_array:
    """A symmetric matrix of zeros and ones: the adjacency of a random graph."""
    draws = np.random.default_rng(seed)
    upper = np.triu(draws.random((n, n)) < p, 1)
    return sp.csr_array((upper | upper.T).astype(np.float32))


def main() -> None:
    """Solve and check; a SciPy matrix, then a dense array, then coordinates."""
    matrix = random_matrix(60, 0.1, seed=2)
    dense = matrix.toarray()
    steps = {"search.steps": 2000}  # a budget of work: the same bits on any number of ranks

    free = solve(matrix, "mis", settings=steps)
    assert dense[np.ix_(free.nodes, free.nodes)].sum() == 0

    guards = solve(dense, "mds", settings=steps)
    assert (dense[guards.nodes].sum(axis=0)[np.setdiff1d(range(60), guards.nodes)] > 0).all()

    side = np.isin(range(60), solve(matrix, "maxcut", settings=steps).nodes)
    crossing = int(dense[side][:, ~side].sum())

    towns = np.random.default_rng(3).integers(0, 1000, (40, 2)).astype(float)
    tour = solve(towns, "tsp", settings=steps)
    assert sorted(tour.nodes) == list(range(40))
    if MPI.COMM_WORLD.rank == 0:
        print(f"independent set: {free}")
        print(f"dominating set: {guards}")
        print(f"cut: {crossing} edges between {side.sum()} and {(~side).sum()} nodes")
        print(f"tour of 40 towns: {tour}")


if __name__ == "__main__":
    main()
