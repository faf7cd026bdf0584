"""Metrics as edge streams: every node joined to its nearest ones, the distances as weights."""

from collections.abc import Iterator

import numpy as np

from app.graphs.deliveries import Deliveries
from app.graphs.formats.solomon import read_customers
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_deliveries
from app.graphs.generators.checks import check_count, check_seed
from app.graphs.metric import NEAREST, Metric, rounds_badly, uniform_points
from app.graphs.stream import Chunk, EdgeStream

MOST_POINTS = 1_000_000


def stream_of_metric(
    metric: Metric, path: str, format: str, first_id: int, deliveries: Deliveries | None = None
) -> EdgeStream:
    """The symmetric graph of the nearest neighbours; the stream carries the metric itself too."""

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        graph = metric.neighbour_graph(NEAREST)
        rows = graph.row_of()
        upper = rows < graph.indices
        yield rows[upper], graph.indices[upper].astype(np.int64), graph.weights[upper]

    return EdgeStream(
        metric.name, path, format, metric.n, first_id, True, chunks, metric=metric, undirected=True,
        deliveries=deliveries,
    )  # fmt: skip


def read_points(path: str, limits: Limits) -> EdgeStream:
    """A TSPLIB file: see graphs/formats/tsplib.py."""
    metric, deliveries = read_deliveries(path, limits)
    stream = stream_of_metric(metric, path, "tsplib", 1, deliveries)
    if rounds_badly(stream.metric):
        stream.warn(
            f"{path}: most distances round to 0 or 1, as TSPLIB's {stream.metric.kind} wants whole numbers; "
            "coordinates that are multiplied by 1000 or more would tell tours apart"
        )
    return stream


def read_solomon(path: str, limits: Limits) -> EdgeStream:
    """Customers with time windows: see graphs/formats/solomon.py; the depot is 0."""
    metric, deliveries = read_customers(path, limits)
    return stream_of_metric(metric, path, "solomon", 0, deliveries)


def generate_points(n: int, seed: int, name: str | None = None) -> EdgeStream:
    """n points drawn uniformly from a square; distances rounded to whole numbers (EUC_2D)."""
    check_count("n", n, 1, MOST_POINTS)
    check_seed(seed)
    metric = uniform_points(n, seed, name or f"uniform-{n}-{seed}")
    return stream_of_metric(metric, f"uniform_points(n={n}, seed={seed})", "generated", 0)
