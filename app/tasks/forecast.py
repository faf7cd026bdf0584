"""Forecasts of series on a graph: read, learn on windows, judge, forecast what comes next, write."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import structs

from app.case.forecast import ForecastCase
from app.comm.guard import check_same, digest, digest_text, raise_together
from app.errors import CaseError, GraphError
from app.gnn.archive import arrays_of, replaced
from app.gnn.forecast.covariates import Covariates
from app.gnn.forecast.forecaster import Forecaster
from app.gnn.forecast.intervals import conformal
from app.gnn.forecast.saved import SavedForecaster, load_forecaster
from app.gnn.forecast.series import FARTHEST, PARTS, Parts, SeriesScale
from app.gnn.forecast.training import fit_forecaster, steps_of
from app.gnn.forecast.windows import SeriesData
from app.gnn.training import Fit
from app.memory.room import resident_bytes
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.forecast_inputs import check_weights, counts_of, holes_of, read_series, whole_where_small
from app.tasks.forecast_told import Forecasted, recorder, result, say_scores, write
from app.tasks.levels.members import Learner, train_members
from app.text import printable

SHOWN_NODES, SHOWN_STEPS = 4, 6  # of a plot: nodes, and windows of steps before the end


def run_forecast(context: Context) -> dict[str, Any]:
    """Learn and forecast, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, S_own, covariates = read_series(context)
    held = resident_bytes()
    done = learn_forecasts(context, loaded, S_own, covariates=covariates)
    context.say_memory(held)
    with done.context.each_by_itself("writing the results"):
        saved = whole_saved(done)
        ids = ids_everywhere(done.context.group, done.loaded.graph, done.loaded.rows)
        if done.context.folder is not None:
            write(done, saved, ids)
    return result(done)


def learn_forecasts(
    context: Context, loaded: Loaded, S_own: np.ndarray, model: SavedForecaster | None = None,
    covariates: Covariates | None = None,
) -> Forecasted:  # fmt: skip
    """Train for gnn.epochs on the series of a graph, from gnn.weights where given; a graph too small to be
    split each rank has whole. Ranks: all call.

    S_own   [n_own, T, C] float32, NaN where not known     model   the weights, where they are in memory
    covariates   what is known beforehand; None: nothing is
    """
    case, group, name = context.case, context.group, loaded.graph.name
    sides = 1 if loaded.graph.arcs is None else 2
    with raise_together(group, "checking the series"):
        saved = (model or load_forecaster(case.gnn.weights)) if case.gnn.weights else None
        if saved is not None:
            saved.check_fits(printable(case.gnn.weights), S_own.shape[2], sides, counts_of(covariates))
            if saved.forecast.quantiles and case.forecast.loss != ForecastCase().loss:
                right = "which have a loss of their own; leave it out"
                raise CaseError(f"forecast.loss: is not read beside the quantiles of the weights, {right}")
            context = _with_tables(context, saved)
            case = context.case
        parts = Parts.of(case.forecast, S_own.shape[1])
        parts.check(name, S_own.shape[1], bool(case.gnn.epochs))
        if covariates is not None:
            covariates = covariates.reaching(S_own.shape[1], case.forecast.horizon)
        check_weights(case.gnn.edge_weights, loaded)
    holes = holes_of(group, S_own)
    masks = saved.masks if saved else holes > 0
    _say_series(context, loaded, S_own.shape, parts, holes, masks)
    _say_covariates(context, covariates)
    context, loaded, S_own, covariates = whole_where_small(context, loaded, S_own, masks, covariates)
    with context.each_by_itself("setting up the network"):
        forecaster, nodes = _set_up(context, loaded, S_own, saved, masks, covariates)
    fits = train_members(context, _learner(context, forecaster, saved))
    with context.each_by_itself("evaluating the network"):
        done = _told(context, loaded, forecaster, nodes, fits, S_own)
    if context.alike is not None and case.run.check_every:
        both = digest_text({"weights": done.digest, "forecasts": digest({"next": done.next})})
        check_same(context.alike, both, "weights and forecasts after the training")
    return done


def _learner(context: Context, forecaster: Forecaster, saved: SavedForecaster | None) -> Learner:
    """A forecaster whose members begin from seeds that follow each other, or from saved weights."""
    gnn, case = forecaster.gnn, forecaster.case

    def begin(number: int) -> None:
        forecaster.begin(context.case.seed + number)
        if saved is not None:
            forecaster.params.set(saved.members[number])

    batches = steps_of(case.batch, case.steps, len(forecaster.known_ends("train")))
    train = partial(fit_forecaster, forecaster)
    return Learner(gnn.members, gnn.epochs * batches, begin, partial(recorder, context), train)


def _with_tables(context: Context, saved: SavedForecaster) -> Context:
    """The context with what weights bring, which the log tells where the case has set something else."""
    case = context.case
    forecast, gnn = saved.forecast_of(case.forecast), saved.gnn_of(case.gnn)
    said = [replaced("forecast", case.forecast, forecast), replaced("gnn", case.gnn, gnn)]
    if said := ", ".join(filter(None, said)):
        context.warn(f"the weights bring their network: {said}")
    return replace(context, case=structs.replace(case, forecast=forecast, gnn=gnn))


def _say_series(
    context: Context, loaded: Loaded, shape: tuple[int, ...], parts: Parts, holes: int, masks: bool
) -> None:
    """What is learned from."""
    log, graph, (_, steps, channels) = context.log, loaded.graph, shape
    about = graph.name, graph.n, graph.edges, steps, channels, "s" * (channels > 1)
    log.info("%s: %d nodes, %d edges; series of %d steps of time, %d channel%s", *about)
    sizes = {part: len(parts.ends(part)) for part in PARTS}
    log.info("windows: %d to learn from, %d to choose weights by, %d to test", *sizes.values())
    if holes:
        share = 100 * holes / max(graph.n * steps * channels, 1)
        beside = "" if masks else ", and the weights have learned on series without such"
        log.info("%d values (%.2g %%) are missing: left out of losses and scores%s", holes, share, beside)
    if context.case.gnn.epochs and not sizes["val"]:
        context.warn("no window for validation: weights are chosen by the training loss")
    if not sizes["test"]:
        context.warn("no window to test: nothing tells how good forecasts are")


def _say_covariates(context: Context, covariates: Covariates | None) -> None:
    """What is known beforehand."""
    if covariates is not None:
        words = [f"{a} of {of}" for a, of in zip(covariates.counts, ("each node", "all nodes alike")) if a]
        context.log.info("known beforehand, at each step of time: %s", ", ".join(words))


def _set_up(
    context: Context, loaded: Loaded, S_own: np.ndarray, saved: SavedForecaster | None, masks: bool,
    covariates: Covariates | None,
) -> tuple[Forecaster, str]:  # fmt: skip
    """A forecaster with drawn weights, or saved ones, and the digest of the ids of its nodes. Ranks: all
    call."""
    case, group = context.case, context.group
    nodes = digest({"ids": ids_everywhere(group, loaded.graph, loaded.rows)})
    block = context.rows(loaded, case.forecast.batch * case.gnn.hidden)
    with context.log.phase("set up"):
        scale = _scale_of(context, loaded, S_own, saved, nodes, block)
        base, known_scale = (saved.base, saved.covariate_scale) if saved else (None, None)
        data = SeriesData(S_own, scale, masks, covariates, known_scale)
        forecaster = Forecaster(group, case.gnn, case.forecast, block, data, case.seed, base)
        if saved is not None:
            forecaster.params.set(saved.arrays)
    if case.gnn.epochs:
        _check_known(context, loaded, forecaster)
    _warn_of_covariates(context, forecaster, saved is None)
    if far := forecaster.windows.far:
        context.warn(
            f"{far} values are farther than {FARTHEST:g} deviations from the mean of the training part: they "
            "are taken, and judged, as if they were that far"
        )
    kind = "recurrent unit" if case.forecast.model == "recurrent" else "temporal and graph convolutions"
    context.log.info(
        "%s of %d columns, %d hops, %d parameters; %d steps from the last %d, added to the %s", kind,
        case.gnn.hidden, case.forecast.hops, forecaster.params.size, case.forecast.horizon,
        case.forecast.window,
        "last value" if forecaster.base is None else "linear autoregression",
    )  # fmt: skip
    return forecaster, nodes


def _warn_of_covariates(context: Context, forecaster: Forecaster, begins: bool) -> None:
    """Of numbers of what is known beforehand that are cut, and of columns that say nothing in the training
    part. begins: the network learns from drawn weights on."""
    if far := forecaster.windows.far_known:
        context.warn(
            f"{far} numbers known beforehand are farther than {FARTHEST:g} deviations from the mean of the "
            "training part: they are read as if they were that far"
        )
    if (still := forecaster.windows.still_known) and begins:
        context.warn(
            f"{still} of the columns known beforehand have one value in all of the training part: nothing is "
            "learned of what they do later; leave them out"
        )


def _check_known(context: Context, loaded: Loaded, forecaster: Forecaster) -> None:
    """Refuse a training without a value to learn from; warn of one without a value to choose weights by.
    Raises GraphError."""
    if not len(forecaster.known_ends("train")):
        right = "known values in the steps of time to learn from would be right"
        raise GraphError(f"{loaded.graph.name}: no window to learn from has a known value ahead; {right}")
    if len(forecaster.windows.parts.ends("val")) and not len(forecaster.known_ends("val")):
        context.warn("no validation window has a known value ahead: weights are chosen by the training loss")


def _scale_of(
    context: Context,
    loaded: Loaded,
    S_own: np.ndarray,
    saved: SavedForecaster | None,
    nodes: str,
    block: RowBlock,
) -> SeriesScale:
    """What series are measured in: that of the weights where they are of these nodes, else of the training
    part.
    Ranks: all call."""
    case, by_node = context.case.forecast, context.case.forecast.normalise == "node"
    if saved is not None and (not by_node or saved.nodes == nodes):
        rows = loaded.graph.n if by_node else 1
        if len(saved.scale.mean) != rows:
            found = f"holds the scale of {len(saved.scale.mean)} nodes"
            raise GraphError(f"{printable(context.case.gnn.weights)}: {found}; {rows} would be right")
        return own_scale(saved.scale, block) if by_node else saved.scale
    if saved is not None:
        context.warn("the weights have learned on other nodes: these are measured by their own training part")
    steps = Parts.of(case, S_own.shape[1]).steps or S_own.shape[1]
    return SeriesScale.of(context.group, S_own, steps, by_node, block.n_real)


def own_scale(scale: SeriesScale, block: RowBlock) -> SeriesScale:
    """The rows of own nodes of a scale of all, 0 and 1 on padding."""
    rows = slice(block.lo, block.lo + block.n_real)
    mean = np.zeros((block.n_own, scale.mean.shape[1]), dtype=np.float32)
    deviation = np.ones_like(mean)
    mean[: block.n_real], deviation[: block.n_real] = scale.mean[rows], scale.deviation[rows]
    return SeriesScale(mean, deviation)


def whole_saved(done: Forecasted) -> SavedForecaster:
    """What weights.npz holds. Ranks: all call."""
    saved = done.saved
    if done.forecaster.case.normalise != "node":
        return saved
    own, scale = slice(done.forecaster.block.n_real), saved.scale
    both = (_of_all(done.forecaster, each[own]) for each in (scale.mean, scale.deviation))
    return replace(saved, scale=SeriesScale(*both))


def _of_all(forecaster: Forecaster, own: np.ndarray) -> np.ndarray:
    """[n, ...] the rows of all nodes, from those of own ones. Ranks: all call."""
    rows = forecaster.block.rows
    return forecaster.group.gather_host(np.ascontiguousarray(own), rows.row_counts())


def _told(
    context: Context,
    loaded: Loaded,
    forecaster: Forecaster,
    nodes: str,
    fits: list[Fit],
    S_own: np.ndarray,
) -> Forecasted:
    """What is made of the trained weights, and said of them. Ranks: all call."""
    case, group, block = context.case, context.group, forecaster.block
    weights = [each.weights for each in fits]
    if len(weights) > 1:
        forecaster.join(weights)
    with context.log.phase("evaluate"):
        test = forecaster.judged("test", case.gnn.baselines)
        val = forecaster.judged("val", plain=False)
        found = conformal(forecaster, case.output.coverage) if case.output.coverage else None
        ahead = _of_all(forecaster, forecaster.next())
        levels, members = (_of_all(forecaster, each) for each in forecaster.next_each())
        if found is not None:
            low, high = (_of_all(forecaster, each) for each in (found.low, found.high))
            found = replace(found, low=low, high=high)
    shown = min(SHOWN_STEPS * case.forecast.horizon + case.forecast.window, S_own.shape[1])
    first = min(SHOWN_NODES, loaded.graph.n)
    own = max(min(first - block.lo, block.n_real), 0)
    counts = [
        max(min(first - int(lo), int(n)), 0) for lo, n in zip(block.rows.offsets, block.rows.row_counts())
    ]
    tail = group.gather_host(np.ascontiguousarray(S_own[:own, -shown:]), counts)
    first, *others = fits
    done = Forecasted(
        context=context, loaded=loaded, forecaster=forecaster, nodes=nodes, fit=first, test=test, val=val,
        next=ahead, levels=levels, members=members, intervals=found, tail=tail,
        digest=digest(arrays_of(weights)), others=tuple(others),
    )  # fmt: skip
    say_scores(done)
    return done
