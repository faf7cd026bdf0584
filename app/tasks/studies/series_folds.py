"""Task study, kind folds of forecasts: rolling origins, each with a network that has seen nothing after it.

Source   Tashman 2000 (app/gnn/forecast/origins.py); errors are means and sample deviations over
         origins, as of the folds of cross-validation; of several seeds those of an origin are their means
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np

from app.comm.guard import digest, digest_text, raise_together
from app.gnn.conformal import fewest_for
from app.gnn.forecast.covariates import Covariates
from app.gnn.forecast.errors import Errors, skill
from app.gnn.forecast.forecaster import NETWORK
from app.gnn.forecast.intervals import conformal
from app.gnn.forecast.origins import Origin, origins_of_study
from app.gnn.forecast.rules import LAST
from app.partition.loaded import Loaded
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.forecast_inputs import holes_of, read_series, whole_where_small
from app.tasks.forecast_told import WORDS_OF
from app.tasks.studies.cells import cells_at_once, measured
from app.tasks.studies.gnn_subjects import check_study_network
from app.tasks.studies.series import begun, trained

Row = dict[str, Any]
ABOUT = ("dataset", "seed", "fold", "origin", "train_windows", "val_windows", "test_windows", "epochs",
         "best_epoch")  # fmt: skip
OF_NETWORK = ("coverage", "width", "crps")  # of intervals, and of quantiles
KEPT = ("mae", "rmse", "skill", "mae_by_step", "rmse_by_step")  # of a rule, by origin


def run_origins(context: Context) -> dict[str, Any]:
    """Every origin with every seed. Ranks: all call."""
    study = context.case.study
    check_study_network(context.case.gnn)
    loaded, S_own, covariates = read_series(context)
    found = origins_of(context, loaded, S_own, study.seeds, partial(_write, context), covariates)
    summary = summary_of(found)
    rows = [{"dataset": loaded.graph.name, "folds": study.folds, "rule": rule} | each
            for rule, each in summary.items()]  # fmt: skip
    say_origins(context, loaded.graph.name, summary)
    if context.folder is not None and context.case.output.plots:
        _plot(context, found)
    return {"digest": digest_of_origins(found), "rows": rows, "folds": found, "instances": []}


def origins_of(
    context: Context, loaded: Loaded, S_own: np.ndarray, seeds: list[int], tell: Any = lambda rows: None,
    covariates: Covariates | None = None,
) -> list[Row]:  # fmt: skip
    """A row for each seed and origin, in order of time; where the graph is too small to be split each rank
    trains another origin.

    tell    is called with the rows so far
    Ranks   all call. Raises GraphError where an origin has nothing to learn from, or to test
    """
    case, name, shape = context.case, loaded.graph.name, S_own.shape
    with raise_together(context.group, "checking the series"):
        origins = origins_of_study(case.forecast, case.study, shape[1], name)
        if covariates is not None:
            covariates = covariates.reaching(shape[1], case.forecast.horizon)
    masks = holes_of(context.group, S_own) > 0
    _say(context, loaded, origins)
    inner, loaded, S_own, covariates = whole_where_small(context, loaded, S_own, masks, covariates)
    if inner.alike is not None:
        inner = replace(inner, keeper=inner.keeper.apart(inner.group))
    rows: list[Row] = []
    for seed in seeds:
        for fold, row in enumerate(_each(context, inner, loaded, S_own, origins, seed, covariates)):
            rows.append({"dataset": name, "seed": seed, "fold": fold} | row)
            tell(rows)
    return rows


def _each(
    context: Context, inner: Context, loaded: Loaded, S_own: np.ndarray, origins: list[Origin], seed: int,
    covariates: Covariates | None,
) -> Iterator[Row]:  # fmt: skip
    """The row of each origin, a cell of the study. Ranks: all call."""
    measure = lambda number: origin_row(inner, loaded, S_own, origins[number], seed, covariates)  # noqa: E731
    at_once = 1 if inner.alike is None else context.group.size
    for first in range(0, len(origins), at_once):
        turn = range(first, min(first + at_once, len(origins)))
        keys = [f"{loaded.graph.name} seed {seed}, origin {number} of {len(origins)}" for number in turn]
        with context.log.phase("train"):
            found = cells_at_once(context, keys, partial(measured, inner, measure, turn))
        context.log.progress("seed %d: %d of %d origins", seed, first + len(turn), len(origins))
        yield from found


def origin_row(
    context: Context, loaded: Loaded, S_own: np.ndarray, origin: Origin, seed: int,
    covariates: Covariates | None = None,
) -> Row:  # fmt: skip
    """What one origin comes to: a training on what is before it, judged on what it is tested by. Ranks: all
    of the context call."""
    case, known = context.case, origin.at - origin.begin
    if covariates is not None:
        covariates = covariates.between(origin.begin, origin.end + case.forecast.horizon)
    forecaster = begun(context, loaded, origin.of(S_own), seed, origin.parts, known, covariates)
    fit = trained(context, forecaster)
    judged = forecaster.judged("test", case.gnn.baselines)
    test = judged.errors
    rules = {rule: _told(each, test.get(LAST)) for rule, each in test.items()}
    count = {f"{part}_windows": len(origin.parts.ends(part)) for part in ("train", "val", "test")}
    row: Row = {"origin": origin.at} | count | {"epochs": fit.epochs, "best_epoch": fit.best_epoch}
    if case.output.coverage:
        held = conformal(forecaster, case.output.coverage).held
        row |= {"coverage": held.share, "width": held.width}
    if judged.quantiles is not None:
        row["crps"] = judged.quantiles.told()["crps"]
    return row | {"rules": rules, "weights": digest(fit.weights)}


def _told(errors: Errors, last: Errors | None) -> Row:
    """Errors of a rule, and its skill beside the last value."""
    return errors.told() | {"skill": None if last is None else skill(errors, last)}


def summary_of(rows: list[Row]) -> dict[str, Row]:
    """By rule NAME_mean and NAME_std over origins, of errors (by step, too) and skill; of the network
    those of OF_NETWORK, too.

    An origin's errors are means over seeds; one without a value known in its test windows counts for none
    """
    found: dict[str, Row] = {}
    by_fold = [[row for row in rows if row["fold"] == fold] for fold in sorted({row["fold"] for row in rows})]
    for rule in rows[0]["rules"]:
        found[rule] = {}
        for key in KEPT:
            values = [_mean([row["rules"][rule][key] for row in some]) for some in by_fold]
            found[rule] |= _both(key, values)
    for key in (key for key in OF_NETWORK if key in rows[0]):
        found[NETWORK] |= _both(key, [_mean([row[key] for row in some]) for some in by_fold])
    return found


def _mean(values: list[Any]) -> Any:
    """The mean of numbers, or of lists entry by entry; None of none."""
    if isinstance(values[0], list):
        return [_mean(list(each)) for each in zip(*values)]
    known = [each for each in values if each is not None]
    return fmean(known) if known else None


def _both(key: str, values: list[Any]) -> Row:
    """Mean and sample deviation, of numbers or of lists entry by entry; None of none, and the deviation of
    one."""
    if isinstance(values[0], list):
        each = [_both(key, list(some)) for some in zip(*values)]
        return {name: [entry[name] for entry in each] for name in (f"{key}_mean", f"{key}_std")}
    known = [each for each in values if each is not None]
    return {f"{key}_mean": _mean(values), f"{key}_std": stdev(known) if len(known) > 1 else None}


def digest_of_origins(rows: list[Row]) -> str:
    """Of the weights of all trainings."""
    return digest_text({f"seed {row['seed']}, origin {row['fold']}": row["weights"] for row in rows})


# ---- what is said and written -----------------------------------------------------------------------------


def _say(context: Context, loaded: Loaded, origins: list[Origin]) -> None:
    """What is compared."""
    first, last, case = origins[0], origins[-1], context.case
    context.log.info(
        "%s: %d origins, steps %d to %d, each with a network that has seen what is before it (%s); %d to %d "
        "windows to learn from, %d to choose weights by",
        loaded.graph.name, len(origins), first.at, last.at, case.study.fold_training,
        len(first.parts.ends("train")), len(last.parts.ends("train")), len(first.parts.ends("val")),
    )  # fmt: skip
    if not len(first.parts.ends("val")):
        context.warn("no window for validation: weights are chosen by the training loss")
    asked, most = case.output.coverage, max(len(each.parts.ends("val")) for each in origins)
    if asked and (least := fewest_for(asked)) > most:
        context.warn(
            f"output.coverage: intervals for {asked:g} need {least} validation windows, there are {most}: "
            "they are infinite, and hold everything"
        )


def say_origins(context: Context, name: str, summary: dict[str, Row]) -> None:
    """Errors by rule in the log, means and deviations over origins."""
    log = context.log
    horizon = len(summary[NETWORK]["mae_by_step_mean"])
    shown = sorted({1, (horizon + 1) // 2, horizon})
    head = [name, "MAE", "RMSE", "skill", *(f"MAE {h}" for h in shown)]
    lines = [
        [WORDS_OF[rule], *(with_deviation(each, key) for key in ("mae", "rmse", "skill")),
         *(with_deviation(each, "mae_by_step", h - 1) for h in shown)]
        for rule, each in summary.items()
    ]  # fmt: skip
    log.table([head, *lines])
    if "coverage_mean" in summary[NETWORK]:
        asked, held = context.case.output.coverage, with_deviation(summary[NETWORK], "coverage")
        wide = with_deviation(summary[NETWORK], "width")
        log.info("intervals for %g held %s of the test values, %s wide", asked, held, wide)
    if "crps_mean" in summary[NETWORK]:
        log.info("CRPS by the quantiles: %s", with_deviation(summary[NETWORK], "crps"))


def with_deviation(row: Row, key: str, at: int | None = None) -> str:
    """A mean and its deviation in words; at: the step."""
    mean, deviation = (row[f"{key}_{kind}"] for kind in ("mean", "std"))
    if at is not None:
        mean, deviation = mean[at], deviation[at]
    if mean is None:
        return "-"
    return f"{mean:.4g}" + ("" if deviation is None else f" +- {deviation:.2g}")


def _write(context: Context, rows: list[Row]) -> None:
    """folds.csv so far, a line for each seed, origin and rule: a study that is stopped leaves what it has.
    Ranks: all call."""
    if context.folder is None:
        return
    horizon = len(rows[0]["rules"][NETWORK]["mae_by_step"])
    steps = [f"{key}_{h}" for key in ("mae", "rmse") for h in range(1, horizon + 1)]
    held = [key for key in OF_NETWORK if key in rows[0]]
    columns = (*ABOUT, "rule", "mae", "rmse", "skill", *held, *steps)
    lines = []
    for row in rows:
        about = {key: row[key] for key in ABOUT}
        for rule, each in row["rules"].items():
            by_step = {f"{key}_{h + 1}": x for key in ("mae", "rmse")
                       for h, x in enumerate(each[f"{key}_by_step"])}  # fmt: skip
            own = {key: row[key] for key in held} if rule == NETWORK else {}
            told = {key: each[key] for key in ("mae", "rmse", "skill")}
            lines.append(about | {"rule": rule} | told | by_step | own)
    context.folder.write_csv("folds.csv", columns, lines)


def _plot(context: Context, rows: list[Row]) -> None:
    """Mean absolute errors by origin and rule, means over seeds. Ranks: all call."""
    lines = {}
    for rule in rows[0]["rules"]:
        by_origin: dict[int, list[float]] = {}
        for row in rows:
            if row["rules"][rule]["mae"] is not None:
                by_origin.setdefault(row["origin"], []).append(row["rules"][rule]["mae"])
        lines[WORDS_OF[rule]] = (list(by_origin), [fmean(each) for each in by_origin.values()])
    name = rows[0]["dataset"]
    plot_lines(context.folder, context.log, {name: lines}, "folds.png", "origin", ["mean absolute error"])
