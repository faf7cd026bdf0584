"""Rules of forecasts of series."""

from collections.abc import Iterator

from app.case.config import Case, is_forecast
from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.case.graph import OF_POINTS, PLANTED, WORDS
from app.case.rules.levels import OF_EDGES
from app.case.rules.mistake import Mistake, changed, unread_of_graphs
from app.text import show

# What forecasts read of tables that other networks read too.
READ_BY_FORECASTS = {
    "gnn": (
        "level", "hidden", "depth", "edge_weights", "epochs", "optimiser", "learning_rate", "schedule",
        "warmup", "clip", "weight_decay", "decayed", "evaluate_every", "patience", "keep", "baselines",
        "weights", "members",
    ),
    "output": ("solutions", "plots", "coverage", "log_seconds", "certificates"),
}  # fmt: skip
OF_SERIES = ("series", "covariates", "shared_covariates", "series_steps", "series_noise")  # of [graph]
OF_NODE_FILES = (
    "features", "labels", "splits", "node_data_by", "random_features", "random_classes", "signal",
)  # fmt: skip


def forecasts(case: Case) -> Iterator[Mistake]:
    """What forecasts of series leave of other tables, and their keys where there are none."""
    gnn, forecast, task, kind = case.gnn, case.forecast, case.run.task, case.study.kind
    for keys in unread_of_graphs(case, OF_SERIES, read=is_forecast(case)):
        right = 'gnn.level = "forecast" of run.task = "classify" and "study", of [graph]'
        yield keys, f"is read by {right}; leave it out"
    if not is_forecast(case):
        wrong = next(changed(forecast, ForecastCase.__struct_fields__), "")
        if wrong and task in ("classify", "study"):
            yield ("forecast", wrong), 'is read by gnn.level = "forecast" alone; leave it out'
        if gnn.level == "forecast" and task == "study":
            right = " or ".join(show(each) for each in OF_EDGES)
            yield ("gnn", "level"), f'study.kind = {right} would be right for "forecast", got {show(kind)}'
        return
    yield from _series(case)
    yield from _unread_by_forecasts(case)
    if forecast.train + forecast.val + forecast.test > 1 + 1e-9:
        total = forecast.train + forecast.val + forecast.test
        yield ("forecast", "train"), f"train, val and test are {total:g} in all; at most 1 would be right"
    if forecast.model != "temporal" and gnn.depth != GnnCase().depth and not _tried(case, "forecast.model"):
        yield ("gnn", "depth"), 'is read by forecast.model = "temporal"; leave it out'
    yield from _unread_ridge(case)
    yield from _quantiles(case)
    if len(set(forecast.calendar)) < len(forecast.calendar) or forecast.period in forecast.calendar:
        right = "each once, and without forecast.period, would be right"
        yield ("forecast", "calendar"), f"{right}, got {show(forecast.calendar)}"
    if task == "study":
        yield from _study_of_series(case)


def _quantiles(case: Case) -> Iterator[Mistake]:
    """Levels that are none, and a loss beside them."""
    levels, forecast = case.forecast.quantiles, case.forecast
    if not levels:
        return
    if sorted(set(levels)) != levels or 0.5 not in levels:
        right = "ascending shares with 0.5 among them, which is the forecast of a value, would be right"
        yield ("forecast", "quantiles"), f"{right}, got {show(levels)}"
    for key in changed(forecast, ("loss",)):
        right = "is not read beside forecast.quantiles, which have their own; leave it out"
        yield ("forecast", key), right
    if _tried(case, "forecast.loss"):
        yield ("study", "vary"), "forecast.loss is not read beside forecast.quantiles; leave it out"


def _unread_ridge(case: Case) -> Iterator[Mistake]:
    """A key of regressions where there is none."""
    tunes = case.run.task == "study" and case.study.kind == "tune"
    plain = not tunes and case.gnn.baselines
    based = case.forecast.base == "linear" or _tried(case, "forecast.base")
    for key in changed(case.forecast, () if plain or based else ("ridge",)):
        beside = "" if tunes else " and gnn.baselines = false"
        yield ("forecast", key), f'is not read with forecast.base = "last"{beside}; leave it out'


def _study_of_series(case: Case) -> Iterator[Mistake]:
    """Keys of studies that those of series do not read."""
    folds = case.study.kind == "folds"
    for key in changed(case.study, ("datasets", "fold_validation") if folds else ("datasets",)):
        yield ("study", key), 'is not read by gnn.level = "forecast"; leave it out'
    for key in changed(case.gnn, () if folds else ("baselines",)):
        yield ("gnn", key), 'is not read by study.kind = "tune" of gnn.level = "forecast"; leave it out'


def _tried(case: Case, key: str) -> bool:
    """Whether a tuning tries values of a key."""
    tunes = case.study.kind == "tune"
    return tunes and any(text.split()[:1] == [key] for text in case.study.vary)


def _series(case: Case) -> Iterator[Mistake]:
    """Where series come from."""
    graph, drawn = case.graph, case.graph.series == WORDS["series"]
    if graph.generator in ("sets", *OF_POINTS):
        yield (
            ("graph", "generator"),
            f"series are of nodes of a graph: er or ba would be right, got {show(graph.generator)}",
        )
    if graph.generator and graph.path:
        yield ("graph", "generator"), "is given beside graph.path; one of them would be right for series"
    if graph.generator and not drawn:
        yield ("graph", "series"), f'must be "diffusion" for a generated graph, got {show(graph.series)}'
    if graph.path and drawn:
        yield ("graph", "series"), "diffusion is drawn for generated graphs; a file would be right"
    for key in changed(graph, () if drawn else ("series_steps", "series_noise")):
        yield ("graph", key), 'is read with graph.series = "diffusion"; leave it out'


def _unread_by_forecasts(case: Case) -> Iterator[Mistake]:
    """Keys of other networks."""
    for name, read in READ_BY_FORECASTS.items():
        table = getattr(case, name)
        for key in changed(table, (each for each in table.__struct_fields__ if each not in read)):
            yield (name, key), 'is not read by gnn.level = "forecast"; leave it out'
    planted = case.graph.generator in PLANTED
    for key in changed(case.graph, OF_NODE_FILES):
        if not (planted and key == "random_classes"):
            right = "which learns from graph.series; leave it out"
            yield ("graph", key), f'is not read by gnn.level = "forecast", {right}'
    if case.memory.fast_mb:
        yield ("memory", "fast_mb"), 'is not read by gnn.level = "forecast"; 0 would be right'
    if case.parallel.partition == "learned" or case.parallel.cost_model:
        key = "partition" if case.parallel.partition == "learned" else "cost_model"
        yield ("parallel", key), 'is not read by gnn.level = "forecast", whose rows stay; leave it out'
