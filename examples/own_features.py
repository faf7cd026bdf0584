"""Node classification on arrays of one's own: a SciPy adjacency, features, labels, masks; then a plot.

python examples/own_features.py [PLOT.png]
mpirun -np 2 python examples/own_features.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from app import classify


def three_groups(n: int, seed: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Adjacency [n, n], features [n, 8], labels [n]: friends mostly of one group, features noisy."""
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 3, n)
    chance = np.where(labels[:, None] == labels, 0.08, 0.01)
    upper = np.triu(draws.random((n, n)) < chance, 1)
    features = draws.normal(size=(n, 8))
    features[np.arange(n), labels] += 0.7
    return sp.csr_array((upper | upper.T).astype(np.float32)), features, labels


def main(plot: str = "") -> None:
    """Learn from a tenth of the labels; the rest are held back."""
    adjacency, features, labels = three_groups(240, seed=5)
    known = np.arange(len(labels)) % 10 == 0
    found = classify(
        adjacency, features, labels, train=known, test=~known,
        settings={"gnn.model": "gcn", "gnn.epochs": 60, "gnn.input_dropout": 0.0, "seed": 1},
    )  # fmt: skip
    right = float((found.predicted == labels)[~known].mean())
    assert abs(right - found.scores["test"].accuracy) < 1e-9
    if MPI.COMM_WORLD.rank > 0:
        return
    print(found)
    print(f"features alone (largest column): {np.mean(features[:, :3].argmax(axis=1) == labels):.2f}")
    if plot:
        found.plot().savefig(plot)


if __name__ == "__main__":
    main(*sys.argv[1:2])
