"""Independent checks of sets of nodes: they read the graph and the answer, and nothing of how it was made."""

import numpy as np

from app.graphs.graph import Graph


def edge_inside(graph_rows: Graph, chosen_all: np.ndarray) -> tuple[int, int] | None:
    """The first edge of the held rows, in their order, with both ends in the set; None: it is independent.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    Ranks        a set is independent when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    rows = graph_rows.row_of()
    inside = chosen_all[rows] & chosen_all[graph_rows.indices]
    if not inside.any():
        return None
    first = int(inside.argmax())
    return int(rows[first]), int(graph_rows.indices[first])


def edge_of_one_color(graph_rows: Graph, colors_all: np.ndarray) -> tuple[int, int] | None:
    """The first edge of the held rows, in their order, whose ends have one colour; None: there is none.

    graph_rows   any rows of the graph        colors_all  [n] integers, all nodes, whatever rows are held
    Ranks        a colouring is proper when every rank gets None for the rows it holds
    """
    if colors_all.shape != (graph_rows.n,) or colors_all.dtype.kind not in "iu":
        raise ValueError(f"a colouring is [n] integers, got {colors_all.dtype} {colors_all.shape}")
    rows = graph_rows.row_of()
    same = colors_all[rows] == colors_all[graph_rows.indices]
    if not same.any():
        return None
    first = int(same.argmax())
    return int(rows[first]), int(graph_rows.indices[first])


def missing_edge(graph_rows: Graph, chosen_all: np.ndarray) -> tuple[int, int] | None:
    """The first two chosen nodes that no edge joins, the first of them held; None: these are joined to all.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    Ranks        a set is a clique when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    rows = graph_rows.row_of()
    joined = chosen_all[rows] & chosen_all[graph_rows.indices]
    met = np.bincount(rows[joined] - graph_rows.lo, minlength=graph_rows.hi - graph_rows.lo)
    own = chosen_all[graph_rows.lo : graph_rows.hi]
    short = np.flatnonzero(own & (met < np.count_nonzero(chosen_all) - 1))
    if not len(short):
        return None
    row = int(short[0])
    near = graph_rows.indices[graph_rows.indptr[row] : graph_rows.indptr[row + 1]]
    apart = chosen_all.copy()
    apart[near] = apart[row + graph_rows.lo] = False
    return row + graph_rows.lo, int(apart.argmax())


def undominated_node(
    graph_rows: Graph, chosen_all: np.ndarray, needed_all: np.ndarray | None = None
) -> int | None:
    """The first held node that is neither in the set nor next to it; None: the set dominates the held rows.

    graph_rows   any rows of the graph        chosen_all  [n] bool, all nodes, whatever rows are held
    needed_all   [n] bool, the nodes that have to be dominated; None: all
    Ranks        a set dominates when every rank gets None for the rows it holds
    """
    _require(graph_rows, chosen_all)
    dominated = chosen_all[graph_rows.lo : graph_rows.hi].copy()
    rows = graph_rows.row_of()[chosen_all[graph_rows.indices]]
    dominated[rows - graph_rows.lo] = True
    if needed_all is not None:
        dominated |= ~needed_all[graph_rows.lo : graph_rows.hi]
    return None if dominated.all() else int(dominated.argmin()) + graph_rows.lo


def _require(graph_rows: Graph, chosen_all: np.ndarray) -> None:
    if chosen_all.shape != (graph_rows.n,) or chosen_all.dtype != bool:
        raise ValueError(
            f"chosen_all: needs [{graph_rows.n}] bool, got {chosen_all.shape} {chosen_all.dtype}"
        )
