"""Peak memory of full-batch training on every rank, beside the model and beside MG-GCN's L+3 buffers.

    python bench/gnn_memory.py [--nodes N] [--ranks 1 2 4] [--exchanges halo gather staged] [--hidden F]

Every line of the table is a job of its own (mpirun), on a ring of nodes of which each is joined to the five
on either side and, by a tenth of the edges, to any other. Counted is what the resident memory of a rank grows
by at its peak, from when graph and features are there until three epochs and their evaluations are done.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import threads

threads.limit_threads()

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.case.file import build  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.gnn.classifier import Classifier  # noqa: E402
from app.gnn.training import fit  # noqa: E402
from app.graphs.stream import CHUNK_EDGES, EdgeStream  # noqa: E402
from app.memory.room import resident_bytes  # noqa: E402
from app.model import memory  # noqa: E402
from app.model.calibrate import reset_peak  # noqa: E402
from app.model.gnn import Training  # noqa: E402
from app.model.gnn_inputs import Inputs  # noqa: E402
from app.model.gnn_memory import at_rest, in_training, mg_gcn_rule  # noqa: E402
from app.model.layout import of_blocks  # noqa: E402
from app.partition.nodes import load_node_data  # noqa: E402
from app.partition.streams import load_stream  # noqa: E402
from app.rng import stream  # noqa: E402
from app.sparse.rowblock import RowBlock  # noqa: E402

REACH = 5  # nodes on either side
FAR = 0.1  # share of edges that go anywhere
EPOCHS = 3
HEAD = (
    "| ranks | exchange | grows by, MB | predicted | ratio | plan's buffers | L+3 buffers | grows by / L+3 |"
)


def main() -> None:
    """All jobs one after the other, or inside a job its measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--hidden", type=int, default=256, help="columns of all layers, and classes")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--exchanges", nargs="+", default=["halo", "gather", "staged"])
    parser.add_argument("--inside", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        measure(asked.inside, asked.nodes, asked.hidden)
        return
    print(HEAD + "\n" + "|---" * 8 + "|", flush=True)
    for ranks in asked.ranks:
        for exchange in asked.exchanges if ranks > 1 else asked.exchanges[:1]:
            job = [sys.executable, __file__, "--inside", exchange, "--nodes", str(asked.nodes)]
            command = ["mpirun", "-np", str(ranks), *job, "--hidden", str(asked.hidden)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
            print(line(json.loads(done.stdout.splitlines()[-1])), flush=True)


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    grown, rule, plan = row["grown"], row["rule"], memory.total(row["terms"])
    mode = row["exchange"] if row["ranks"] > 1 else "-"
    numbers = [grown / 1e6, plan / 1e6, grown / plan, row["terms"]["buffers"] / 1e6, rule / 1e6, grown / rule]
    shown = [f"{n:.2f}" if i in (2, 5) else f"{n:.0f}" for i, n in enumerate(numbers)]
    return f"| {row['ranks']} | {mode} | {' | '.join(shown)} |"


def measure(exchange: str, nodes: int, width: int) -> None:
    """Train, and print what the rank that grew most grew by, as JSON. Ranks: all call."""
    group = Group(MPI.COMM_WORLD, HostDevice())
    case = build(
        {
            "run.task": "classify", "graph.generator": "er", "graph.nodes": nodes,
            "graph.random_features": 64, "graph.random_classes": width, "gnn.depth": 3, "gnn.hidden": width,
            "gnn.epochs": EPOCHS, "gnn.input_dropout": 0.0, "gnn.feature_rows": "as_given",
            "gnn.first_product": "live",
        }
    )  # fmt: skip
    loaded = load_stream(group, ring(nodes) if group.rank == 0 else None, case.graph, case)
    loaded.source = "generator"  # whose random features and labels are drawn where the rows are
    data = load_node_data(group, case.graph, loaded, case)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, width)
    give_back()
    base = resident_bytes()
    reset_peak()
    classifier = Classifier(group, case.gnn, block, data, 0)
    fit(classifier)
    grown = group.gather_integers(np.array([resident_bytes("VmHWM") - base]))[:, 0]
    layout, reach = of_blocks(group, block), (classifier.shares(), classifier.copies())
    training = Training(group.device, case.gnn, Inputs(64, width), layout, None, *reach)
    rank = int(np.argmax(grown))
    terms = in_training(training, rank) | {"labels": at_rest(training, rank)["labels"]}
    row = {
        "ranks": group.size, "exchange": exchange, "grown": int(grown[rank]), "terms": terms,
        "rule": mg_gcn_rule(training, rank),
    }  # fmt: skip
    if group.rank == 0:
        print(json.dumps(row))


def ring(nodes: int) -> EdgeStream:
    """The graph."""
    return EdgeStream("ring", "", "generated", nodes, 0, False, lambda _: _edges(nodes))


def _edges(nodes: int) -> Iterator[tuple[np.ndarray, np.ndarray, None]]:
    draws = stream(0, "bench/ring")
    for first in range(0, nodes, CHUNK_EDGES // REACH):
        u = np.repeat(np.arange(first, min(first + CHUNK_EDGES // REACH, nodes)), REACH)
        near = (u + np.tile(np.arange(1, REACH + 1), len(u) // REACH)) % nodes
        yield u, np.where(draws.random(len(u)) < FAR, draws.integers(0, nodes, len(u)), near), None


def give_back() -> None:
    """Return freed memory to the system, so that what grows is seen to grow."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
