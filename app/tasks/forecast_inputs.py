"""Graph and series of a case of forecasts: read, checked, on ranks that share them or whole on each."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.case.graph import WORDS
from app.comm.cores import are_crowded
from app.comm.group import Group
from app.errors import CaseError, GraphError
from app.gnn.forecast.covariates import KEYS, NO_COLUMNS, Covariates
from app.gnn.forecast.drawn import drawn_series
from app.gnn.forecast.hops import Hops
from app.graphs.formats.source import Limits
from app.model.fits import least_room, refuse_needs
from app.model.forecast_plan import SeriesSizes, learns_whole, need_of, training_of
from app.model.whole import said_whole
from app.partition.dealer import own_old_rows
from app.partition.load import load_united
from app.partition.loaded import Loaded
from app.partition.series import load_series, load_shared
from app.partition.whole import held_whole
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.text import show


def read_series(context: Context) -> tuple[Loaded, np.ndarray, Covariates | None]:
    """The graph of the case, the series of its own nodes [n_own, T, C] float32, and what is known beforehand.
    Ranks: all call."""
    case, group = context.case, context.group
    with context.log.phase("read"):
        loaded = load_united(group, case.graph, case)
        for warning in loaded.warnings:
            context.log.info("warning: %s", warning)
        refuse_no_nodes(loaded)
        limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
        table = case.graph
        if table.series == WORDS["series"]:
            S_own = _drawn(context, loaded)
        else:
            S_own = load_series(group, loaded, table.series, limits)
        own = load_series(group, loaded, table.covariates, limits, True) if table.covariates else None
        shared = load_shared(group, table.shared_covariates, limits) if table.shared_covariates else None
        called = [f"{key} = {show(getattr(table, key.partition('.')[2]))}" for key in KEYS]
        return loaded, S_own, covariates_of(own, shared, len(S_own), called)


def covariates_of(
    own: np.ndarray | None, shared: np.ndarray | None, n_own: int, names: Sequence[str]
) -> Covariates | None:
    """What is known beforehand of own nodes, and of all; None: nothing is."""
    if own is None and shared is None:
        return None
    own = np.zeros((n_own, 0, 0), dtype=np.float32) if own is None else own
    shared = np.zeros((0, 0), dtype=np.float32) if shared is None else shared
    return Covariates(own, shared, (names[0], names[1]))


def holes_of(group: Group, S_own: np.ndarray) -> int:
    """Values of all nodes that are not known. Ranks: all call."""
    return int(group.sum_integers(np.array([np.isnan(S_own).sum()], dtype=np.int64))[0])


def counts_of(covariates: Covariates | None) -> tuple[int, int]:
    """Columns of what is known beforehand, of a node and of all."""
    return NO_COLUMNS if covariates is None else covariates.counts


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


def sizes_of(loaded: Loaded, S_own: np.ndarray, masks: bool, covariates: Covariates | None) -> SeriesSizes:
    """What is known of a graph and its series once they are read; S_own [n_own, steps, channels]."""
    graph, (_, steps, channels) = loaded.graph, S_own.shape
    return SeriesSizes(graph.name, graph.n, 2 * graph.edges, steps, channels, masks, counts_of(covariates))


def whole_where_small(
    context: Context, loaded: Loaded, S_own: np.ndarray, masks: bool, covariates: Covariates | None = None
) -> tuple[Context, Loaded, np.ndarray, Covariates | None]:
    """What to go on with: as it is or, of a training too small to be split, all of it on each rank. Refuses
    what does not fit the memory. Ranks: all call."""
    case, group, graph = context.case, context.group, loaded.graph
    sizes, whole = sizes_of(loaded, S_own, masks, covariates), False
    training, alone = training_of(case, sizes, group.size), training_of(case, sizes, 1)
    if group.size > 1:
        fits = are_crowded(group) and need_of(case, alone).most <= least_room(group)
        whole = learns_whole(case, training, alone, fits)
    need = need_of(case, alone if whole else training)
    for warning in refuse_needs(group, case, lambda: [need])[1]:
        context.log.info("warning: %s", warning)
    if not whole:
        return context, loaded, S_own, covariates
    context.log.info("%s: %s", graph.name, said_whole(case))
    rows = np.diff(loaded.rows.offsets).tolist()
    series = _of_all(group, S_own, rows)
    if covariates is not None:
        covariates = replace(covariates, own=_of_all(group, covariates.own, rows))
    return context.whole(), held_whole(group, loaded), series, covariates


def _of_all(group: Group, S_own: np.ndarray, sizes: list[int]) -> np.ndarray:
    """[rows, T, C] of all ranks. Ranks: all call."""
    flat = np.ascontiguousarray(S_own.reshape(len(S_own), S_own.shape[1] * S_own.shape[2]))
    if not flat.shape[1]:
        return np.zeros((sum(sizes), *S_own.shape[1:]), dtype=S_own.dtype)
    return group.gather_host(flat, sizes).reshape(-1, *S_own.shape[1:])
