"""Rows that ranks need of each other under the orders of rows that there are (graph.order), counted.

    python bench/orders.py [--data FOLDER] [--ranks 2 4 8 16]

Of the node classification graphs of a folder (gnn/*.npz). Cuts between ranks give each an equal share of the
entries, as parallel.partition = "edges" does; a row that one rank needs of another counts once for each such
rank. The seconds are those of the order. "metis" needs pymetis.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.errors import CaseError  # noqa: E402
from app.partition.order import FROM_PATTERN  # noqa: E402

ORDERS = ("natural", *FROM_PATTERN)


def main() -> None:
    """Order every graph, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA", ""))
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8, 16])
    given = parser.parse_args()
    print("| graph | nodes | order |", " | ".join(f"{ranks} ranks" for ranks in given.ranks), "| s |")
    print("|---" * (4 + len(given.ranks)) + "|")
    for path in sorted((Path(given.data) / "gnn").glob("*.npz")):
        with np.load(path) as file:
            indptr, indices = (file[name].astype(np.int32) for name in ("adj_indptr", "adj_indices"))
        for name in ORDERS:
            begun = time.perf_counter()
            try:
                order = FROM_PATTERN[name](indptr, indices) if name in FROM_PATTERN else None
            except CaseError:
                continue
            spent = time.perf_counter() - begun
            counts = [needed(indptr, indices, order, ranks) for ranks in given.ranks]
            print("|", " | ".join(map(str, [path.stem, len(indptr) - 1, name, *counts, f"{spent:.1f}"])), "|")


def needed(indptr: np.ndarray, indices: np.ndarray, order: np.ndarray | None, ranks: int) -> int:
    """Rows that ranks need of each other; order [n]: the old number of each new row."""
    n = len(indptr) - 1
    order = np.arange(n) if order is None else order
    new = np.empty(n, dtype=np.int64)
    new[order] = np.arange(n)
    entries = np.cumsum(np.diff(indptr)[order])
    cuts = np.searchsorted(entries, entries[-1] * np.arange(1, ranks) / ranks)
    owner = np.searchsorted(cuts, new, side="right")
    row = np.repeat(np.arange(n), np.diff(indptr))
    apart = owner[row] != owner[indices]
    return len(np.unique(owner[row[apart]] * n + indices[apart]))


if __name__ == "__main__":
    main()
