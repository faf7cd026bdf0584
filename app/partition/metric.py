"""A metric on every rank, points or a matrix, and what is delivered there, read by rank 0."""

import numpy as np

from app.comm.group import Group
from app.graphs.deliveries import Deliveries, Times
from app.graphs.metric import Metric


def share_metric(group: Group, metric: Metric | None) -> Metric | None:
    """Rank 0's metric on all ranks (others pass None); None where it has none. Ranks: all call."""
    held = metric is not None and group.rank == 0
    points = 0 if not held or metric.points is None else metric.points.shape[1]
    shape = [held, held and metric.n, points, held and metric.matrix is not None]
    known, n, points, matrix = group.broadcast(np.array(shape, dtype=np.int64)).tolist()
    if not known or group.size == 1:
        return metric
    name = group.broadcast_text(metric.name if held else "")
    kind = group.broadcast_text(metric.kind if held else "")
    return Metric(
        name, n, kind,
        _shared(group, metric.points if held else None, (n, points), np.float64) if points else None,
        _shared(group, metric.matrix if held else None, (n, n), np.int32) if matrix else None,
        float(group.broadcast(np.array([metric.unit if held else 1.0]))[0]),
    )  # fmt: skip


def share_deliveries(group: Group, deliveries: Deliveries | None) -> Deliveries | None:
    """Rank 0's deliveries on all ranks (others pass None); None where it has none. Ranks: all call."""
    held = deliveries if group.rank == 0 else None
    told = [0] * 5
    if held is not None:
        told = [len(held.demand), held.depot, held.capacity, held.vehicles, held.times is not None]
    n, depot, capacity, vehicles, timed = group.broadcast(np.array(told, dtype=np.int64)).tolist()
    if not n:
        return None
    arrays = [None] * (4 if timed else 1)
    if held is not None:
        arrays = [held.demand, *(held.times.arrays if timed else ())]
    demand, *times = (_shared(group, each, (n,), np.int64) for each in arrays)
    return Deliveries(depot, demand, capacity, vehicles, Times(*times) if timed else None)


def _shared(group: Group, array: np.ndarray | None, shape: tuple[int, ...], kind: type) -> np.ndarray:
    """An array of rank 0 on all ranks. Ranks: all call."""
    held = np.empty(shape, dtype=kind) if array is None else np.ascontiguousarray(array, dtype=kind)
    return group.broadcast(held)
