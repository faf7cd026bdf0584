"""The four graphs that graph convolutional networks are trained on: two real ones, two of known shapes.

The generated ones have power-law degrees (Chung-Lu), a class for every node, and features that are a centre
of the class plus noise. Reddit has 232,965 nodes and 114,615,892 stored entries, each edge counted twice; a
tenth of both is taken, so that a node has as many neighbours as there. Repeats among the edges drawn are
dropped, so 6,050,000 are drawn for 5,735,762.
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
from mpi4py import MPI

from app.case.graph import GraphCase
from app.partition.generated import generate_set
from app.rng import stream
from bench import subjects
from bench.gnn_case import GcnCase

EXPONENT = 2.3  # of the power law of the degrees
REDDIT = {"nodes": 23_297, "edges": 6_050_000, "features": 602, "classes": 41, "train": 15_343}
ARXIV = {"nodes": 169_343, "edges": 1_166_243, "features": 128, "classes": 40, "train": 90_941}

PRODUCTS = {"nodes": 61_226, "edges": 1_546_000, "features": 100, "classes": 47, "train": 4_915}


def real(name: str, file: str, hidden: int, layers: int) -> GcnCase | None:
    """A graph of $LOCKSTEP_DATA/gnn, sparse features with rows that sum to one; None where it is missing."""
    path = Path(os.environ.get("LOCKSTEP_DATA", ""), "gnn", file)
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as f:
        ones = np.ones(len(f["feat_indices"]), dtype=np.float32)
        data = f.get("feat_data", ones)
        X = scipy.sparse.csr_matrix((data, f["feat_indices"], f["feat_indptr"]), tuple(f["feat_shape"]))
        labels, train = f["labels"].astype(np.int64), np.flatnonzero(f["train_mask"])
        indptr, indices = f["adj_indptr"].astype(np.int64), f["adj_indices"].astype(np.int32)
    X.sort_indices()
    sums = np.asarray(X.sum(axis=1)).ravel()
    X = (scipy.sparse.diags(1 / np.where(sums, sums, 1)) @ X).tocsr().astype(np.float32)
    widths = [X.shape[1], *[hidden] * (layers - 1), int(labels.max()) + 1]
    return GcnCase(name, indptr, indices, X, labels, train, widths)


def generated(name: str, shape: dict[str, int], hidden: int, layers: int, shrink: int = 1) -> GcnCase:
    """A Chung-Lu graph of a shape, or of its `shrink`-th part."""
    n, edges, classes = shape["nodes"] // shrink, shape["edges"] // shrink, shape["classes"]
    table = GraphCase(generator="chung_lu", nodes=n, edges=edges, exponent=EXPONENT, generator_seed=1)
    graph = generate_set(subjects.open_group(MPI.COMM_SELF), table, 0, "bench")[0].graph
    draws = stream(1, f"bench/{name}")
    labels = draws.integers(0, classes, n)
    centres = draws.standard_normal((classes, shape["features"]), dtype=np.float32)
    X = draws.standard_normal((n, shape["features"]), dtype=np.float32) + centres[labels]
    train = np.sort(draws.permutation(n)[: shape["train"] // shrink])
    widths = [shape["features"], *[hidden] * (layers - 1), classes]
    return GcnCase(name, graph.indptr, graph.indices.astype(np.int32), X, labels, train, widths)


def products_shape(shrink: int = 1) -> GcnCase:
    """A fortieth of ogbn-products, 8 % of whose nodes are trained on, with MG-GCN's three layers of 256."""
    return generated("Products shape / 40", PRODUCTS, 256, 3, shrink)


def cases(quick: bool) -> dict[str, Callable[[], GcnCase | None]]:
    """Names and how to make each case; quick: the generated ones at an eighth."""
    shrink = 8 if quick else 1
    return {
        "Cora": lambda: real("Cora", "cora.npz", 16, 2),
        "Coauthor Physics": lambda: real("Coauthor Physics", "coauthor_physics.npz", 128, 2),
        "Reddit shape / 10": lambda: generated("Reddit shape / 10", REDDIT, 128, 2, shrink),
        "Arxiv shape": lambda: generated("Arxiv shape", ARXIV, 256, 3, shrink),
    }
