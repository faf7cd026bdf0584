"""Cora with features that are not known: filled by means, or from the neighbours (Rossi et al. 2022, Fig. 3).

Of every node each entry of its features is left out with the same probability, drawn anew for each seed; a
graph convolutional network of two layers (inputs/gcn.toml) learns on the published split from what is left,
filled in by gnn.missing_features, and from all features. Told is the accuracy on the 1,000 test nodes, with
the last weights: the mean over seeds and their deviation.

    LOCKSTEP_DATA=FOLDER python bench/missing_features.py [--seeds 5] [--shares 0.5 0.9 0.99]
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import numpy as np
import scipy.sparse as sp

from app import classify

SETTINGS = {
    "gnn.model": "gcn", "gnn.hidden": 16, "gnn.depth": 2, "gnn.dropout": 0.5, "gnn.input_dropout": 0.5,
    "gnn.epochs": 200, "gnn.learning_rate": 0.01, "gnn.weight_decay": 5e-4, "gnn.baselines": False,
}  # fmt: skip


def cora(folder: str) -> tuple[sp.csr_array, np.ndarray, dict[str, np.ndarray]]:
    """The graph, dense features, and labels and sets."""
    data = np.load(Path(folder) / "gnn" / "cora.npz")
    n, width = data["feat_shape"]
    indptr, indices = data["feat_indptr"], data["feat_indices"]
    values = data["feat_data"] if "feat_data" in data else np.ones(len(indices), np.float32)
    X = sp.csr_array((values, indices, indptr), shape=(n, width)).toarray().astype(np.float32)
    ones, parts = np.ones(len(data["adj_indices"])), (data["adj_indices"], data["adj_indptr"])
    graph = sp.csr_array((ones, *parts), shape=(n, n))
    sets = {name: data[f"{name}_mask"] for name in ("train", "val", "test")}
    return graph, X, {"labels": data["labels"], **sets}


def main() -> None:
    """Print a line for each share and way."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.9, 0.99])
    asked = options.parse_args()
    graph, X, given = cora(os.environ["LOCKSTEP_DATA"])

    def accuracies(share: float, way: str) -> list[float]:
        found = []
        for seed in range(asked.seeds):
            holed = X.copy()
            holed[np.random.default_rng(seed).random(X.shape) < share] = np.nan
            settings = SETTINGS | {"seed": seed, "gnn.missing_features": way}
            found.append(classify(graph, holed, settings=settings, **given).scores["test"].accuracy)
        return found

    for share, ways in [(0.0, ["refuse"]), *((share, ["mean", "propagate"]) for share in asked.shares)]:
        for way in ways:
            found = 100 * np.array(accuracies(share, way))
            print(f"{100 * share:g} % missing, {way}: {found.mean():.1f} +- {found.std():.1f}", flush=True)


if __name__ == "__main__":
    main()
