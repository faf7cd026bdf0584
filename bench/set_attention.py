"""What attention within each graph of a set takes, in passes over its rows: what estimates of epochs go by.

Of `sgformer` on sets of drawn graphs, seconds of the processor of the forward ("weigh_each") and the backward
operation ("by_each") of app/gnn/layers/all_nodes.py, for each exchange of rows with those of graphs, over
those of a pass X * X over as many numbers. The medians are PASSES_OF_SUMS of app/model/gnn.py.

    python bench/set_attention.py [--rounds 2]
"""

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np

from app import classify
from app.gnn.engine import Engine

NAMES = ("weigh_each", "by_each")
SHAPES = ((400, 30, 32, 1), (400, 30, 32, 4), (2000, 20, 16, 1), (100, 200, 64, 2), (40, 1000, 32, 2))
EPOCHS, PASSES = 6, 15


def pass_s(rows: int, columns: int) -> float:
    """Seconds of a pass for each number: the median."""
    X, took = np.ones((rows, columns), dtype=np.float32), []
    for _ in range(PASSES):
        begun = time.process_time()
        X * X
        took.append(time.process_time() - begun)
    return float(np.median(took)) / X.size


def number_s(graphs: int, nodes: int, hidden: int, heads: int) -> dict[str, float]:
    """By operation its seconds for each number of its rows and exchange."""
    spent, numbers, over_all = defaultdict(float), defaultdict(float), Engine.over_all

    def timed(
        self: Engine, name: str, reads: Any, writes: Any, work: Any, shape: tuple[int, int],
        exchanges: tuple[int, ...] = (),
    ) -> Any:  # fmt: skip
        def and_timed() -> Any:
            begun = time.process_time()
            found = work()
            spent[name] += time.process_time() - begun
            numbers[name] += self.n_own * shape[1] * max(len(exchanges), 1)
            return found

        return over_all(self, name, reads, writes, and_timed, shape, exchanges)

    drawn = [nx.gnm_random_graph(nodes, 2 * nodes, seed=i) for i in range(graphs)]
    X = [np.random.default_rng(i).normal(size=(nodes, 8)).astype(np.float32) for i in range(graphs)]
    settings = {
        "gnn.model": "sgformer", "gnn.depth": 1, "gnn.hidden": hidden, "gnn.heads": heads,
        "gnn.epochs": EPOCHS, "gnn.baselines": False, "graph.splits": "random",
        "gnn.feature_rows": "as_given",
    }  # fmt: skip
    with patch.object(Engine, "over_all", timed):
        classify(drawn, X, labels=[i % 2 for i in range(graphs)], settings=settings)
    return {name: spent[name] / numbers[name] for name in NAMES}


def main() -> None:
    """A line for each shape, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    print(f"{'graphs':>6} {'nodes':>6} {'hidden':>6} {'heads':>5}  passes for each exchange")
    for shape in SHAPES * parser.parse_args().rounds:
        one, graphs, (nodes, hidden, heads) = number_s(*shape), shape[0], shape[1:]
        each = pass_s(graphs * (nodes + 1), hidden + heads)
        for name in NAMES:
            found[name].append(one[name] / each)
        words = ", ".join(f"{name} {found[name][-1]:.1f}" for name in NAMES)
        print(f"{graphs:6} {nodes:6} {hidden:6} {heads:5}  {words}", flush=True)
    print("medians: " + ", ".join(f"{name} {np.median(found[name]):.1f}" for name in NAMES))


if __name__ == "__main__":
    main()
