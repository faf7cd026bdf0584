"""A job of several ranks that bench/gpu_check.py starts: what it finds is one JSON object on the last line.

python bench/gpu_worker.py digests DEVICE TRANSPORT SCALE     of what its TASKS make of small graphs
python bench/gpu_worker.py overlap DEVICE TRANSPORT SCALE     seconds of staged products, two ways
python bench/gpu_worker.py starve DEVICE TRANSPORT SCALE      an array that no memory is large enough for
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import app
from app import threads

os.environ.update(dict.fromkeys(threads.VARIABLES, "1"))  # before NumPy is imported, which reads them once

import hashlib

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from app.case.file import build
from app.comm.guard import abort_short
from app.model.plan import memory_line
from app.tasks.context import open_group

WORLD = MPI.COMM_WORLD


def settings(device: str, transport: str, **more: Any) -> dict[str, Any]:
    """Keys of a case."""
    return {"run.device": device, "parallel.transport": transport, **more}


def digests(device: str, transport: str, scale: int) -> dict[str, Any]:
    """Of what each of TASKS makes; also seconds, and how device arrays travelled."""
    keys = settings(device, transport, **{"output.log_seconds": 1000.0})
    found: dict[str, Any] = {}
    for name, task in TASKS.items():
        start = time.perf_counter()
        found[name] = task(keys, scale)[:12]
        found[f"{name}_s"] = time.perf_counter() - start
    return {**found, "transport": open_group(WORLD, build(keys, False)).transport}


def split(keys: dict[str, Any]) -> dict[str, Any]:
    """Keys by which graphs are split over the ranks, small as they are."""
    return {**keys, "parallel.spatial": WORLD.Get_size()}


def train(keys: dict[str, Any], scale: int) -> str:
    """A policy's weights, later ones than those it began with. Raises RuntimeError where there are none."""
    learned = app.train(
        {
            **split(keys), "train.graphs.generator": "ba", "train.graphs.nodes": [20, 24],
            "train.graphs.d": 3, "train.graphs.count": 6, "train.steps": 40 * scale,
            "train.evaluate_every": 5, "agent.batch": 8, "agent.warmup": 8, "agent.learning_rate": 0.005,
        }
    )  # fmt: skip
    if not learned.records[-1]["best_step"]:
        raise RuntimeError("the training kept its first weights, which prove nothing")
    return learned.digest


def solve(keys: dict[str, Any], scale: int) -> str:
    """A cover and its bound."""
    solved = app.solve(ring_graph(80 * scale), settings={**split(keys), "search.steps": 200 * scale})
    return hashlib.sha256(f"{solved.nodes} {solved.objective} {solved.bound}".encode()).hexdigest()


def classify(keys: dict[str, Any], scale: int) -> str:
    """Predictions and weights of a graph convolutional network."""
    return _classified(ring_graph(80 * scale), scale, {**keys, "gnn.dropout": 0.5})


def arcs(keys: dict[str, Any], scale: int) -> str:
    """The same of graph attention, by the directions of a graph's edges."""
    A = sp.triu(ring_graph(80 * scale)).tocsr()
    return _classified(A, scale, {**keys, "gnn.model": "gat", "gnn.heads": 2, "graph.neighbours": "in"})


def _classified(A: sp.csr_array, scale: int, keys: dict[str, Any]) -> str:
    n, draws = A.shape[0], np.random.Generator(np.random.Philox(key=5))
    features = draws.standard_normal((n, 10)).astype(np.float32)
    labels, known = draws.integers(0, 3, n), np.arange(0, n, 2)
    more = {**keys, "gnn.epochs": 5 * scale, "gnn.hidden": 16}
    return app.classify(A, features, labels, train=known, settings=more).digest


def links(keys: dict[str, Any], scale: int) -> str:
    """Weights of link prediction."""
    m = 300 * scale
    at = np.arange(m)
    triples = np.stack([at * 7 % 97, at % 5, (at * at + 3) % 97], axis=1)
    more = {"rgcn.epochs": 4 * scale, "rgcn.hidden": 8, "rgcn.dimension": 12, "rgcn.bases": 3}
    return app.predict_links(triples, settings={**keys, **more}).digest


def vectors(keys: dict[str, Any], scale: int) -> str:
    """Vectors of nodes without labels, and their clusters."""
    n = 200 * scale
    X = np.sin(np.arange(n * 12).reshape(n, 12))
    more = {"gnn.epochs": 4 * scale, "gnn.hidden": 24, "gnn.feature_rows": "as_given", "embed.starts": 2}
    return app.embed(ring_graph(n), X, dimension=8, clusters=4, settings={**keys, **more}).digest


TASKS = {
    "train": train, "solve": solve, "classify": classify, "arcs": arcs, "links": links, "vectors": vectors,
}  # fmt: skip


def ring_graph(n: int) -> sp.csr_array:
    """A connected graph of n nodes with some longer chords: the same every time, without drawing."""
    nodes = np.arange(n)
    rows = np.concatenate([nodes, nodes, nodes])
    columns = np.concatenate([(nodes + 1) % n, (7 * nodes + 3) % n, (nodes * nodes + 11) % n])
    rows, columns = rows[rows != columns], columns[rows != columns]
    A = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    return ((A + A.T) > 0).astype(np.float64).tocsr()


def overlap(device: str, transport: str, scale: int) -> dict[str, Any]:
    """Seconds of a product whose operand is broadcast rank by rank, one ahead of the product or not."""
    group = open_group(WORLD, build(settings(device, transport), False))
    n, c, degree = 512 * scale, 64, 32
    rows = np.arange(n, dtype=np.int64)[:, None]
    columns = np.sort((rows * 9973 + np.arange(degree) ** 3 * 7919) % n, axis=1).astype(np.int32)
    A = group.device.csr(np.arange(0, n * degree + 1, degree), columns.reshape(-1), None, (n, n))
    X = group.device.put(np.sin(np.arange(n * c, dtype=np.float32)).reshape(n, c).astype(np.float32))
    Y, found = group.device.zeros((n, c)), {}
    for ahead in (0, 1, 0, 1):
        group.stages_ahead = ahead
        taken = []
        for _ in range(5):
            group.barrier()
            start = time.perf_counter()
            for _, stage in group.stage_rows(X, [n] * group.size):
                group.device.spmm_add(A, stage, Y)
            group.device.synchronize()
            taken.append(time.perf_counter() - start)
        found[f"ahead {ahead}"] = statistics.median(taken[1:])
    return {**found, "transport": group.transport, "mb": n * c * 4 / 1e6}


def starve(device: str, transport: str, scale: int) -> dict[str, Any]:
    """What app/main.py does with an array that does not fit, on one rank only."""
    case = build(settings(device, transport), False)
    group = open_group(WORLD, case)
    try:
        if group.rank == group.size - 1:
            group.device.empty((1 << 44,))
    except MemoryError as error:
        abort_short(memory_line(case, group.size, error))
    group.barrier()
    return {}


def main() -> None:
    """Run what the command line names; rank 0 prints."""
    what, device, transport, scale = sys.argv[1:]
    found = {"digests": digests, "overlap": overlap, "starve": starve}[what](device, transport, int(scale))
    if WORLD.Get_rank() == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
