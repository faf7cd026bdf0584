"""Graph and series of a case of forecasts: read, checked, on ranks that share them or whole on each."""

import numpy as np

from app.case.graph import WORDS
from app.comm.cores import are_crowded
from app.comm.group import Group
from app.errors import CaseError, GraphError
from app.gnn.forecast.drawn import drawn_series
from app.gnn.forecast.hops import Hops
from app.graphs.formats.source import Limits
from app.model.fits import least_room, refuse_needs
from app.model.forecast_plan import learns_whole, need_of, training_of
from app.model.whole import said_whole
from app.partition.load import Loaded, load_united
from app.partition.nodes import own_old_rows
from app.partition.series import load_series
from app.partition.whole import held_whole
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context


def read_series(context: Context) -> tuple[Loaded, np.ndarray]:
    """The graph of the case, and the series of its own nodes [n_own, T, C] float32. Ranks: all call."""
    case, group = context.case, context.group
    with context.log.phase("read"):
        loaded = load_united(group, case.graph, case)
        for warning in loaded.warnings:
            context.log.info("warning: %s", warning)
        refuse_no_nodes(loaded)
        if case.graph.series == WORDS["series"]:
            return loaded, _drawn(context, loaded)
        limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
        return loaded, load_series(group, loaded, case.graph.series, limits)


def holes_of(group: Group, S_own: np.ndarray) -> int:
    """Values of all nodes that are not known. Ranks: all call."""
    return int(group.sum_integers(np.array([np.isnan(S_own).sum()], dtype=np.int64))[0])


def refuse_no_nodes(loaded: Loaded) -> None:
    """Refuse a graph without nodes, on all ranks alike. Raises GraphError."""
    if not loaded.graph.n:
        raise GraphError(f"{loaded.graph.name}: has no nodes; one at least would be right")


def _drawn(context: Context, loaded: Loaded) -> np.ndarray:
    """Series of a generated graph. Ranks: all call."""
    case, group = context.case, context.group
    block = RowBlock(group, loaded.graph, loaded.rows, case.parallel.exchange)
    hops, nodes = Hops(group, block, 1, case.gnn.edge_weights), own_old_rows(loaded, group.rank)
    table = case.graph
    sizes = table.series_steps, case.forecast.period, table.series_noise
    return drawn_series(hops, nodes, block.n_own, *sizes, loaded.seed)


def check_weights(counted: bool, loaded: Loaded) -> None:
    """Refuse negative weights of edges, where they count. Raises CaseError."""
    given = [each for each in (loaded.graph.weights, loaded.graph.transpose_weights) if each is not None]
    if counted and any((each < 0).any() for each in given):
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")


def whole_where_small(
    context: Context, loaded: Loaded, S_own: np.ndarray, masks: bool
) -> tuple[Context, Loaded, np.ndarray]:
    """What to go on with: as it is or, of a training too small to be split, all of it on each rank. Refuses
    what does not fit the memory. Ranks: all call."""
    case, group, graph = context.case, context.group, loaded.graph
    sizes = graph.n, 2 * graph.edges, S_own.shape[1]
    make = lambda ranks: training_of(case, graph.name, *sizes, ranks, S_own.shape[2], masks)  # noqa: E731
    training, alone, whole = make(group.size), make(1), False
    if group.size > 1:
        fits = are_crowded(group) and need_of(case, alone).most <= least_room(group)
        whole = learns_whole(case, training, alone, fits)
    need = need_of(case, alone if whole else training)
    for warning in refuse_needs(group, case, lambda: [need])[1]:
        context.log.info("warning: %s", warning)
    if not whole:
        return context, loaded, S_own
    context.log.info("%s: %s", graph.name, said_whole(case))
    sizes = np.diff(loaded.rows.offsets).tolist()
    width = S_own.shape[1] * S_own.shape[2]
    series = group.gather_host(np.ascontiguousarray(S_own.reshape(len(S_own), width)), sizes)
    return context.whole(), held_whole(group, loaded), series.reshape(-1, *S_own.shape[1:])
