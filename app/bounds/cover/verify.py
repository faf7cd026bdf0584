"""The independent check of a vertex cover: reads the graph and the answer, and nothing of how it was made."""

import numpy as np

from app.graphs.graph import Graph


def uncovered_edge(graph_rows: Graph, in_cover_all: np.ndarray) -> tuple[int, int] | None:
    """The first edge of the held rows, in their order, that has no end in the cover; None if there is none.

    graph_rows    any rows of the graph
    in_cover_all  [n] bool, all nodes, whatever rows are held
    Ranks         a cover is valid when every rank gets None for the rows it holds
    """
    if in_cover_all.shape != (graph_rows.n,) or in_cover_all.dtype != bool:
        raise ValueError(
            f"in_cover_all: needs [{graph_rows.n}] bool, got {in_cover_all.shape} {in_cover_all.dtype}"
        )
    rows = graph_rows.row_of()
    bare = ~(in_cover_all[rows] | in_cover_all[graph_rows.indices])
    if not bare.any():
        return None
    first = int(bare.argmax())
    return int(rows[first]), int(graph_rows.indices[first])
