"""What a run of forecasts tells: in the log, in result.json, in files."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.graph import WORDS
from app.comm.guard import digest, raise_together
from app.gnn.archive import arrays_of
from app.gnn.conformal import fewest_for
from app.gnn.forecast.drawn import floor_of
from app.gnn.forecast.errors import Judged, skill
from app.gnn.forecast.forecaster import NETWORK, Forecaster
from app.gnn.forecast.intervals import Intervals
from app.gnn.forecast.rules import LAST
from app.gnn.forecast.saved import SavedForecaster, save_forecaster
from app.gnn.forecast.series import PARTS
from app.gnn.training import Fit
from app.graphs.ids import blank_between, plain_ids
from app.log import ToGo
from app.partition.loaded import Loaded
from app.plots.forecasts import plot_forecasts
from app.tasks.context import Context

WORDS_OF = {
    NETWORK: "network", LAST: "last value", "last_season": "last season", "mean": "mean of the node",
    "linear": "linear", "linear_neighbours": "linear, with neighbours",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Forecasted:
    """A forecaster after its run, and what it says.

    context     that it learned in     loaded   the graph as it has met it     nodes   digest of its ids
    fit         of the network, or of the first one     others   of the other members
    test, val   how good it is         digest   of the weights
    next        [n, H, C] float64, the steps after the end, by rows of the graph
    levels      [n, Q, H, C] float64, quantiles of these; members: [n, members, H, C], what each member says
    intervals   of these, of all nodes; None: nobody asked
    tail        [t, k, C] float64, the last known steps of the first nodes, for the plot
    """

    context: Context
    loaded: Loaded
    forecaster: Forecaster
    nodes: str
    fit: Fit
    test: Judged
    val: Judged
    next: np.ndarray
    levels: np.ndarray
    members: np.ndarray
    intervals: Intervals | None
    tail: np.ndarray
    digest: str
    others: tuple[Fit, ...] = ()

    @property
    def spread(self) -> np.ndarray | None:
        """[n, H, C] float64, the standard deviation over members of what they say; None of one."""
        return self.members.std(axis=1) if self.others else None

    @property
    def saved(self) -> SavedForecaster:
        """What weights.npz holds, but for the scale of all nodes on several ranks (`whole_scale`)."""
        of = self.forecaster
        base = None if of.base is None else np.array(of.device.get(of.base))
        by_node = of.case.normalise == "node"
        return SavedForecaster(
            forecast=of.case, gnn=of.gnn, channels=of.windows.channels, masks=of.windows.masks,
            sides=of.hops.sides, nodes=self.nodes if by_node else "", scale=of.scale, base=base,
            arrays=self.fit.weights, others=tuple(each.weights for each in self.others),
            covariates=of.windows.covariates, covariate_scale=of.covariate_scale,
        )  # fmt: skip


def recorder(context: Context, number: int = 0) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line; the curves of a
    run are those of its first member."""
    name = f"member {number + 1}" if number else ""
    log, to_go = context.log, ToGo(context.case.gnn.epochs)

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        log.record(
            phase="train",
            name=name,
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


def say_scores(done: Forecasted) -> None:
    """How good forecasts are, step by step, beside plain rules."""
    log, test = done.context.log, done.test.errors
    for fit in (done.fit, *done.others):
        if fit.epochs:
            log.info("%d epochs in %.2f s, the best after epoch %d", fit.epochs, fit.seconds, fit.best_epoch)
    if not test:
        return
    horizon = done.forecaster.case.horizon
    shown = sorted({1, (horizon + 1) // 2, horizon})
    log.table(
        [["test", "MAE", "RMSE", "skill", *(f"MAE {h}" for h in shown)]]
        + [
            [WORDS_OF[rule], *(f"{x:.4g}" for x in each.whole), _percent(_skill_of(done, rule)),
             *(f"{each.by_step[0][h - 1]:.4g}" for h in shown)]
            for rule, each in test.items()
        ]
    )  # fmt: skip
    if done.test.members:
        alone = ", ".join(f"{each.whole[0]:.4g}" for each in done.test.members)
        log.info("members alone: MAE %s; together %.4g", alone, test[NETWORK].whole[0])
    if (floor := floor_told(done)) is not None:
        log.info(
            "no forecast of the next step can have less than MAE %.4g, RMSE %.4g", floor["mae"], floor["rmse"]
        )
    _say_quantiles(done)
    _say_intervals(done)


def _say_quantiles(done: Forecasted) -> None:
    """Where values lie among quantiles, and what these are worth."""
    if (found := done.test.quantiles) is None:
        return
    told = found.told()
    log = done.context.log
    shown = ", ".join(f"{level}: {_short(below)}" for level, below in zip(found.levels, told["below"]))
    log.info("share of the test values that are not above the quantiles of %s", shown)
    log.info("CRPS %s by these quantiles", _short(told["crps"]))


def _short(x: float | None) -> str:
    return "-" if x is None else f"{x:.4g}"


def _say_intervals(done: Forecasted) -> None:
    """What intervals are worth."""
    if (found := done.intervals) is None:
        return
    log, coverage = done.context.log, done.context.case.output.coverage
    if found.endless:
        log.info(
            "warning: output.coverage: intervals for %g need %d known values of a node and step in the "
            "validation windows; some are infinite",
            coverage, fewest_for(coverage),
        )  # fmt: skip
    if (held := found.held).share is not None:
        log.info("intervals for %g held %.4f of the test values", coverage, held.share)
    beside = {
        "conformalised quantiles": held,
        "of one width": found.constant,
        "quantiles as they are": found.raw,
    }
    if found.constant is not None:
        log.table(
            [["intervals", "held", "mean width"]]
            + [[name, _short(each.share), _short(each.width)] for name, each in beside.items()]
        )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _skill_of(done: Forecasted, rule: str) -> float | None:
    """Against the last value."""
    test = done.test.errors
    return skill(test[rule], test[LAST]) if LAST in test else None


def floor_told(done: Forecasted) -> dict[str, float] | None:
    """The least errors of drawn series; None of others."""
    table = done.context.case.graph
    return floor_of(table.series_noise) if table.series == WORDS["series"] else None


def scores_of(done: Forecasted) -> dict[str, dict[str, Any]]:
    """Errors of the network in the parts of time, and skill over the last value."""
    both = (("val", done.val), ("test", done.test))
    found = {part: each.errors[NETWORK].told() for part, each in both if each.errors}
    for part, each in both:
        if part in found and each.quantiles is not None:
            found[part]["quantiles"] = each.quantiles.told()
    if "test" in found:
        found["test"]["skill"] = _skill_of(done, NETWORK)
    return found


def plain_scores_of(done: Forecasted) -> dict[str, dict[str, Any]]:
    """The same of plain rules, on the test part."""
    return {
        rule: each.told() | {"skill": _skill_of(done, rule)}
        for rule, each in done.test.errors.items()
        if rule != NETWORK
    }


def digest_of(done: Forecasted) -> str:
    """Of weights and forecasts."""
    weights = arrays_of([each.weights for each in (done.fit, *done.others)])
    levels = {"quantiles": done.levels} if done.levels.size else {}
    return digest({**weights, "next": done.next, **levels})


def result(done: Forecasted) -> dict[str, Any]:
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
    if done.others:
        tests = done.test.members or [None] * (1 + len(done.others))
        entry["members"] = [
            {"seed": done.context.case.seed + i, "epochs": each.epochs, "best_epoch": each.best_epoch,
             "best_watched": each.best, "test": None if test is None else test.told()}
            for i, (each, test) in enumerate(zip((done.fit, *done.others), tests))
        ]  # fmt: skip
    if len(done.test.errors) > 1:
        entry["plain"] = plain_scores_of(done)
    if (floor := floor_told(done)) is not None:
        entry["floor"] = floor
    if (found := done.intervals) is not None:
        entry["coverage"] = {"asked": done.context.case.output.coverage} | found.held.told()
        beside = {"constant": found.constant, "quantiles": found.raw}
        entry["coverage"] |= {name: each.told() for name, each in beside.items() if each is not None}
    return {"digest": digest_of(done), "weights_digest": done.digest, "instances": [entry], **entry}


def forecast_text(done: Forecasted, ids: np.ndarray) -> str:
    """forecast/NAME.csv: a line for each node, step and channel, with its quantiles, the spread over members
    and its interval where these are asked for."""
    channels, ahead, found, spread = done.next.shape[2], done.next, done.intervals, done.spread
    between = "," if blank_between(ids) == " " else "\t"
    titles = ["node", "step", *(["channel"] if channels > 1 else []), "value"]
    titles += [f"q{level}" for level in done.forecaster.levels]
    titles += (["spread"] if spread is not None else []) + (["low", "high"] if found is not None else [])
    lines = [between.join(titles)]
    for node, name in enumerate(plain_ids(ids)):
        for step in range(ahead.shape[1]):
            for channel in range(channels):
                value = ahead[node, step, channel]
                fields = [str(name), str(step + 1), *([str(channel)] if channels > 1 else []), f"{value:.9g}"]
                fields += [f"{each:.9g}" for each in done.levels[node, :, step, channel]]
                fields += [] if spread is None else [f"{spread[node, step, channel]:.9g}"]
                if found is not None:
                    ends = found.low[node, step, channel], found.high[node, step, channel]
                    fields += ["", ""] if math.isinf(ends[0]) else [f"{each:.9g}" for each in ends]
                lines.append(between.join(fields))
    return "\n".join(lines) + "\n"


def _score_rows(done: Forecasted) -> list[dict[str, Any]]:
    """Lines of scores.csv: of each rule, step and channel of the test part."""
    return [
        {"rule": rule, "step": h + 1, "channel": c, "mae": each.mae[h, c], "rmse": each.rmse[h, c],
         "values": int(each.count[h, c])}
        for rule, each in done.test.errors.items() for h, c in np.ndindex(each.mae.shape)
    ]  # fmt: skip


def write(done: Forecasted, saved: SavedForecaster, ids: np.ndarray) -> None:
    """weights.npz, forecast/NAME.csv, scores.csv and the plots. Ranks: all of the context call."""
    context, name = done.context, done.loaded.graph.name
    folder, group, case = context.folder, context.group, context.case
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_forecaster(folder.file("weights.npz"), saved, note)
        folder.write_text(f"forecast/{name}.csv", forecast_text(done, ids))
        if done.others:
            arrays = {"predicted": np.moveaxis(done.members, 1, 0), "spread": done.spread}
            folder.write_arrays(f"members/{name}.npz", ids=ids, **arrays)
        folder.write_csv(
            "scores.csv", ("rule", "step", "channel", "mae", "rmse", "values"), _score_rows(done)
        )
    if case.output.plots:
        steps = {WORDS_OF[rule]: each.by_step[0].tolist() for rule, each in done.test.errors.items()}
        names = [str(each) for each in plain_ids(ids[: len(done.tail)])]
        ends = None if done.intervals is None else (done.intervals.low, done.intervals.high)
        plot_forecasts(folder, context.log, done.fit.records, steps, names, done.tail, done.next, ends)
