"""What a run of forecasts tells: in the log, in result.json, in files."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.graph import WORDS
from app.comm.guard import digest, raise_together
from app.gnn.conformal import fewest_for
from app.gnn.forecast.drawn import floor_of
from app.gnn.forecast.errors import Errors, skill
from app.gnn.forecast.forecaster import LAST, NETWORK, Forecaster
from app.gnn.forecast.saved import SavedForecaster, save_forecaster
from app.gnn.forecast.series import PARTS
from app.gnn.training import Fit
from app.graphs.ids import blank_between, plain_ids
from app.log import ToGo
from app.partition.load import Loaded
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


def recorder(context: Context) -> Any:
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


def say_scores(done: Forecasted) -> None:
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


def write(done: Forecasted, saved: SavedForecaster, ids: np.ndarray) -> None:
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
