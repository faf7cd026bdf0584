"""Forecasts of series on a graph: read, learn on windows, judge, forecast what comes next, write."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.graph import WORDS
from app.comm.cores import are_crowded
from app.comm.guard import check_same, digest, digest_text, raise_together
from app.errors import CaseError, GraphError
from app.gnn.archive import replaced
from app.gnn.conformal import fewest_for
from app.gnn.forecast.drawn import drawn_series, floor_of
from app.gnn.forecast.errors import Errors, skill
from app.gnn.forecast.forecaster import LAST, NETWORK, Forecaster
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.saved import SavedForecaster, load_forecaster, save_forecaster
from app.gnn.forecast.series import FARTHEST, PARTS, Parts, SeriesScale
from app.gnn.forecast.training import fit_forecaster
from app.gnn.training import Fit
from app.graphs.formats.source import Limits
from app.graphs.ids import blank_between, plain_ids
from app.log import ToGo
from app.memory.room import resident_bytes
from app.model.fits import least_room, refuse_needs
from app.model.forecast_plan import learns_whole, need_of, training_of
from app.model.whole import said_whole
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded, load_united
from app.partition.nodes import own_old_rows
from app.partition.series import load_series
from app.partition.whole import held_whole
from app.plots.forecasts import plot_forecasts
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.text import printable

SHOWN_NODES, SHOWN_STEPS = 4, 6  # of a plot: nodes, and windows of steps before the end
WORDS_OF = {
    NETWORK: "network", LAST: "last value", "last_season": "last season", "mean": "mean of the node",
    "linear": "linear", "linear_neighbours": "linear, with neighbours",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Forecasted:
    """A forecaster after its run, and what it says.

    context     that it learned in     loaded   the graph as it has met it     nodes   digest of its ids
    test, val   errors by rule         digest   of the weights
    next        [n, H, C] float64, the steps after the end, by rows of the graph
    half        [n, H, C] float64, half widths of intervals; None: nobody asked
    held        share of the test values in such intervals; None of none
    tail        [t, k, C] float64, the last known steps of the first nodes, for the plot
    """

    context: Context
    loaded: Loaded
    forecaster: Forecaster
    nodes: str
    fit: Fit
    test: dict[str, Errors]
    val: dict[str, Errors]
    next: np.ndarray
    half: np.ndarray | None
    held: float | None
    tail: np.ndarray
    digest: str

    @property
    def saved(self) -> SavedForecaster:
        """What weights.npz holds, but for the scale of all nodes on several ranks (`whole_scale`)."""
        of = self.forecaster
        base = None if of.base is None else np.array(of.device.get(of.base))
        by_node = of.case.normalise == "node"
        return SavedForecaster(
            of.case, of.gnn, of.windows.channels, of.windows.masks, of.hops.sides,
            self.nodes if by_node else "",
            of.scale, base, self.fit.weights,
        )  # fmt: skip


def run_forecast(context: Context) -> dict[str, Any]:
    """Learn and forecast, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, S_own = read_series(context)
    held = resident_bytes()
    done = learn_forecasts(context, loaded, S_own)
    context.say_memory(held)
    with done.context.each_by_itself("writing the results"):
        saved = whole_saved(done)
        ids = ids_everywhere(done.context.group, done.loaded.graph, done.loaded.rows)
        if done.context.folder is not None:
            _write(done, saved, ids)
    return _result(done)


# ---- reading ----------------------------------------------------------------------------------------------


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


# ---- learning ---------------------------------------------------------------------------------------------


def learn_forecasts(
    context: Context, loaded: Loaded, S_own: np.ndarray, model: SavedForecaster | None = None
) -> Forecasted:
    """Train for gnn.epochs on the series of a graph, from gnn.weights where given; a graph too small to be
    split each rank has whole. Ranks: all call.

    S_own   [n_own, T, C] float32, NaN where not known     model   the weights, where they are in memory
    """
    case, group, name = context.case, context.group, loaded.graph.name
    sides = 1 if loaded.graph.arcs is None else 2
    with raise_together(group, "checking the series"):
        saved = (model or load_forecaster(case.gnn.weights)) if case.gnn.weights else None
        if saved is not None:
            saved.check_fits(printable(case.gnn.weights), S_own.shape[2], sides)
            context = _with_tables(context, saved)
            case = context.case
        parts = Parts.of(case.forecast, S_own.shape[1])
        parts.check(name, S_own.shape[1], bool(case.gnn.epochs))
        _check_weights(case.gnn.edge_weights, loaded)
    holes = int(group.sum_integers(np.array([np.isnan(S_own).sum()], dtype=np.int64))[0])
    masks = saved.masks if saved else holes > 0
    _say_series(context, loaded, S_own.shape, parts, holes, masks)
    context, loaded, S_own = _whole_where_small(context, loaded, S_own, masks)
    with context.each_by_itself("setting up the network"):
        forecaster, nodes = _set_up(context, loaded, S_own, saved, masks)
    with context.log.phase("train"):
        recorder = _recorder(context)
        fit = fit_forecaster(forecaster, recorder, case.run.check_every, context.keeper, context.alike)
    with context.each_by_itself("evaluating the network"):
        done = _told(context, loaded, forecaster, nodes, fit, S_own)
    if context.alike is not None and case.run.check_every:
        both = digest_text({"weights": done.digest, "forecasts": digest({"next": done.next})})
        check_same(context.alike, both, "weights and forecasts after the training")
    return done


def _with_tables(context: Context, saved: SavedForecaster) -> Context:
    """The context with what weights bring, which the log tells where the case has set something else."""
    case = context.case
    forecast, gnn = saved.forecast_of(case.forecast), saved.gnn_of(case.gnn)
    said = [replaced("forecast", case.forecast, forecast), replaced("gnn", case.gnn, gnn)]
    if said := ", ".join(filter(None, said)):
        context.warn(f"the weights bring their network: {said}")
    return replace(context, case=structs.replace(case, forecast=forecast, gnn=gnn))


def _check_weights(counted: bool, loaded: Loaded) -> None:
    """Refuse negative weights of edges, where they count. Raises CaseError."""
    given = [each for each in (loaded.graph.weights, loaded.graph.transpose_weights) if each is not None]
    if counted and any((each < 0).any() for each in given):
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")


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


def _whole_where_small(
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


def _set_up(
    context: Context, loaded: Loaded, S_own: np.ndarray, saved: SavedForecaster | None, masks: bool
) -> tuple[Forecaster, str]:
    """A forecaster with drawn weights, or saved ones, and the digest of the ids of its nodes. Ranks: all
    call."""
    case, group = context.case, context.group
    nodes = digest({"ids": ids_everywhere(group, loaded.graph, loaded.rows)})
    block = context.rows(loaded, case.forecast.batch * case.gnn.hidden)
    with context.log.phase("set up"):
        scale = _scale_of(context, loaded, S_own, saved, nodes, block)
        forecaster = Forecaster(
            group,
            case.gnn,
            case.forecast,
            block,
            S_own,
            scale,
            masks,
            case.seed,
            saved.base if saved else None,
        )
        if saved is not None:
            forecaster.params.set(saved.arrays)
    if case.gnn.epochs and not len(forecaster.known_ends("train")):
        right = "known values in the steps of time to learn from would be right"
        raise GraphError(f"{loaded.graph.name}: no window to learn from has a known value ahead; {right}")
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
    context: Context, loaded: Loaded, forecaster: Forecaster, nodes: str, fit: Fit, S_own: np.ndarray
) -> Forecasted:
    """What is made of the trained weights, and said of them. Ranks: all call."""
    case, group, block = context.case, context.group, forecaster.block
    with context.log.phase("evaluate"):
        test = forecaster.judge("test", case.gnn.baselines)
        val = forecaster.judge("val", plain=False)
        half, held = forecaster.intervals(case.output.coverage) if case.output.coverage else (None, None)
        ahead = _of_all(forecaster, forecaster.next())
        half = None if half is None else _of_all(forecaster, half)
    shown = min(SHOWN_STEPS * case.forecast.horizon + case.forecast.window, S_own.shape[1])
    first = min(SHOWN_NODES, loaded.graph.n)
    own = max(min(first - block.lo, block.n_real), 0)
    counts = [
        max(min(first - int(lo), int(n)), 0) for lo, n in zip(block.rows.offsets, block.rows.row_counts())
    ]
    tail = group.gather_host(np.ascontiguousarray(S_own[:own, -shown:]), counts)
    done = Forecasted(
        context, loaded, forecaster, nodes, fit, test, val, ahead, half, held, tail, digest(fit.weights)
    )
    _say_scores(done)
    return done


# ---- what is said and written -----------------------------------------------------------------------------


def _recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    log, to_go = context.log, ToGo(context.case.gnn.epochs)

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        log.record(
            phase="train",
            name="",
            step=row["epoch"],
            loss=row["loss"],
            sent_bytes=sent,
            watched=row["watched"],
        )
        epoch = int(row["epoch"])
        log.progress(
            "epoch %5d  loss %.4f  validation %.4f%s", epoch, row["loss"], row["watched"], to_go(epoch)
        )

    return record


def _say_scores(done: Forecasted) -> None:
    """How good forecasts are, step by step, beside plain rules."""
    log, fit = done.context.log, done.fit
    if fit.epochs:
        log.info("%d epochs in %.2f s, the best after epoch %d", fit.epochs, fit.seconds, fit.best_epoch)
    if not done.test:
        return
    horizon = done.forecaster.case.horizon
    shown = sorted({1, (horizon + 1) // 2, horizon})
    log.table(
        [["test", "MAE", "RMSE", "skill", *(f"MAE {h}" for h in shown)]]
        + [
            [WORDS_OF[rule], *(f"{x:.4g}" for x in each.whole), _percent(_skill_of(done, rule)),
             *(f"{each.by_step[0][h - 1]:.4g}" for h in shown)]
            for rule, each in done.test.items()
        ]
    )  # fmt: skip
    if (floor := floor_told(done)) is not None:
        log.info(
            "no forecast of the next step can have less than MAE %.4g, RMSE %.4g", floor["mae"], floor["rmse"]
        )
    if done.half is None:
        return
    coverage = done.context.case.output.coverage
    if np.isinf(done.half).any():
        log.info(
            "warning: output.coverage: intervals for %g need %d validation windows; some are infinite",
            coverage, fewest_for(coverage),
        )  # fmt: skip
    if done.held is not None:
        log.info("intervals for %g held %.4f of the test values", coverage, done.held)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _skill_of(done: Forecasted, rule: str) -> float | None:
    """Against the last value."""
    return skill(done.test[rule], done.test[LAST]) if LAST in done.test else None


def floor_told(done: Forecasted) -> dict[str, float] | None:
    """The least errors of drawn series; None of others."""
    table = done.context.case.graph
    return floor_of(table.series_noise) if table.series == WORDS["series"] else None


def scores_of(done: Forecasted) -> dict[str, dict[str, Any]]:
    """Errors of the network in the parts of time, and skill over the last value."""
    found = {part: each[NETWORK].told() for part, each in (("val", done.val), ("test", done.test)) if each}
    if "test" in found:
        found["test"]["skill"] = _skill_of(done, NETWORK)
    return found


def plain_scores_of(done: Forecasted) -> dict[str, dict[str, Any]]:
    """The same of plain rules, on the test part."""
    return {
        rule: each.told() | {"skill": _skill_of(done, rule)}
        for rule, each in done.test.items()
        if rule != NETWORK
    }


def digest_of(done: Forecasted) -> str:
    """Of weights and forecasts."""
    return digest({**done.fit.weights, "next": done.next})


def _result(done: Forecasted) -> dict[str, Any]:
    """The task's part of result.json."""
    fit, graph, case, windows = done.fit, done.loaded.graph, done.forecaster.case, done.forecaster.windows
    entry = {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges, "steps": windows.steps,
        "channels": windows.channels,
        "windows": {part: len(windows.parts.ends(part)) for part in PARTS},
        "window": case.window, "horizon": case.horizon,
        "train_loss": fit.records[-1]["loss"] if fit.records else None, "epochs": fit.epochs,
        "best_epoch": fit.best_epoch, "best_watched": fit.best, "watched": fit.watched,
        "seconds": fit.seconds, "parameters": done.forecaster.params.size, **scores_of(done),
    }  # fmt: skip
    if len(done.test) > 1:
        entry["plain"] = plain_scores_of(done)
    if (floor := floor_told(done)) is not None:
        entry["floor"] = floor
    if done.half is not None:
        entry["coverage"] = {"asked": done.context.case.output.coverage, "test": done.held}
    return {"digest": digest_of(done), "weights_digest": done.digest, "instances": [entry], **entry}


def forecast_text(done: Forecasted, ids: np.ndarray) -> str:
    """forecast/NAME.csv: a line for each node, step and channel, with its interval where one is asked for."""
    channels, ahead, half = done.next.shape[2], done.next, done.half
    between = "," if blank_between(ids) == " " else "\t"
    titles = ["node", "step", *(["channel"] if channels > 1 else []), "value"]
    titles += ["low", "high"] if half is not None else []
    lines = [between.join(titles)]
    for node, name in enumerate(plain_ids(ids)):
        for step in range(ahead.shape[1]):
            for channel in range(channels):
                value = ahead[node, step, channel]
                fields = [str(name), str(step + 1), *([str(channel)] if channels > 1 else []), f"{value:.9g}"]
                if half is not None:
                    wide = half[node, step, channel]
                    fields += ["", ""] if math.isinf(wide) else [f"{value - wide:.9g}", f"{value + wide:.9g}"]
                lines.append(between.join(fields))
    return "\n".join(lines) + "\n"


def _score_rows(done: Forecasted) -> list[dict[str, Any]]:
    """Lines of scores.csv: of each rule, step and channel of the test part."""
    return [
        {"rule": rule, "step": h + 1, "channel": c, "mae": each.mae[h, c], "rmse": each.rmse[h, c],
         "values": int(each.count[h, c])}
        for rule, each in done.test.items() for h, c in np.ndindex(each.mae.shape)
    ]  # fmt: skip


def _write(done: Forecasted, saved: SavedForecaster, ids: np.ndarray) -> None:
    """weights.npz, forecast/NAME.csv, scores.csv and the plots. Ranks: all of the context call."""
    context, name = done.context, done.loaded.graph.name
    folder, group, case = context.folder, context.group, context.case
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_forecaster(folder.file("weights.npz"), saved, note)
        folder.write_text(f"forecast/{name}.csv", forecast_text(done, ids))
        folder.write_csv(
            "scores.csv", ("rule", "step", "channel", "mae", "rmse", "values"), _score_rows(done)
        )
    if case.output.plots:
        steps = {WORDS_OF[rule]: each.by_step[0].tolist() for rule, each in done.test.items()}
        names = [str(each) for each in plain_ids(ids[: len(done.tail)])]
        plot_forecasts(folder, context.log, done.fit.records, steps, names, done.tail, done.next, done.half)
