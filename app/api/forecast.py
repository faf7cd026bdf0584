"""Forecasts of series on a graph, from Python."""

import csv
import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mpi4py import MPI
from msgspec import structs

from app.api.classify import names_of_file
from app.api.given import check_given, digest_of_arrays, refuse_data_keys, setting
from app.api.graph import loaded_graph
from app.api.learning import Asked, refuse_level
from app.api.tune import Tuning, tuned_by
from app.case.file import merged
from app.comm.guard import raise_together
from app.errors import CaseError
from app.files import whole_file
from app.gnn.forecast.covariates import Covariates
from app.gnn.forecast.errors import Errors
from app.gnn.forecast.forecaster import NETWORK
from app.gnn.forecast.intervals import Intervals
from app.gnn.forecast.saved import SavedForecaster, load_forecaster, save_forecaster
from app.graphs.formats.source import Limits
from app.graphs.series import known_numbers, refuse_other_steps, series_of_object, shared_of_object
from app.partition.loaded import Loaded
from app.partition.series import load_series, load_shared, own_series
from app.tasks.context import Context, context_of_settings, reading_together
from app.tasks.forecast import learn_forecasts, whole_saved
from app.tasks.forecast_inputs import covariates_of, holes_of, refuse_no_nodes, whole_where_small
from app.tasks.forecast_told import Forecasted, digest_of, plain_scores_of, scores_of
from app.tasks.studies.gnn_subjects import check_study_network
from app.tasks.studies.series import SeriesTuned
from app.tasks.studies.series_folds import digest_of_origins, origins_of, summary_of, with_deviation
from app.text import show
from app.threads import with_few_threads

# What forecasts are learned by unless settings say otherwise: the table [gnn] of inputs/forecast.toml.
RECIPE = {
    "gnn.level": "forecast", "gnn.hidden": 16, "gnn.epochs": 10, "gnn.learning_rate": 0.005,
    "gnn.weight_decay": 0.0, "gnn.keep": "best", "gnn.patience": 4,
}  # fmt: skip

BESIDE = ("covariates", "shared_covariates")  # arguments


@dataclass(frozen=True, eq=False)
class Forecast:
    """What comes next of the series of every node, and how good such forecasts were on windows held out.

    predicted   [H, n] float64, of C > 1 channels [H, n, C], the steps after the end, in the units of the data
    nodes       what the columns are called, as `classify` has it
    scores      by part of time, "val" and "test": mae and rmse over all steps of the horizon, mae_by_step and
                rmse_by_step, and of "test" skill, 1 - MAE / MAE of the last value
    baselines   the same of plain rules on the test part: "last_value", "last_season" with a period, "mean"
                of the node, "linear" and "linear_neighbours" regressions
    intervals   [2, H, n] (C), least and largest value, with settings={"output.coverage": 0.9}; infinite
                where the validation windows are too few; else None; coverage: the share of the test values
                they held
    errors      [H, C] errors of the network and of plain rules on the test part, by rule
    quantiles   [Q, H, n] (C) of settings={"forecast.quantiles": [0.1, 0.5, 0.9]}, in their order; `predicted`
                are those of 0.5; else None. scores["test"]["quantiles"] tells what they are worth: pinball
                losses, crps, and the shares of values that are not above them
    spread      [H, n] (C) standard deviation over the networks of settings={"gnn.members": 5}, whose mean
                `predicted` is; members: [H, n] (C) of each; else None and []
    held        what intervals are worth on the test part: held (share, width), with quantiles beside
                `constant`, those of one width at all times, and `raw`, the quantiles as they are
    """

    predicted: np.ndarray
    nodes: list[Any]
    scores: dict[str, Any]
    baselines: dict[str, Any]
    epochs: int
    train_loss: float | None
    seconds: float
    records: list[dict[str, float]]
    digest: str
    model: SavedForecaster
    intervals: np.ndarray | None = None
    coverage: float | None = None
    errors: dict[str, Errors] = field(default_factory=dict)
    quantiles: np.ndarray | None = None
    spread: np.ndarray | None = None
    members: list[np.ndarray] = field(default_factory=list)
    held: Intervals | None = None

    def save(self, path: str) -> None:
        """Write weights.npz, for `gnn.weights=PATH` of a case or `forecast(weights=PATH)`."""
        save_forecaster(os.fspath(path), self.model, "trained from Python")

    def save_csv(self, path: str) -> None:
        """Write a table with a line for each step and a column for each node, of the first channel."""
        rows = self.predicted if self.predicted.ndim == 2 else self.predicted[:, :, 0]
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")  # names may have commas
        lines.writerow(self.nodes)
        lines.writerows([f"{x:.9g}" for x in row] for row in rows)
        with whole_file(os.fspath(path)) as file:
            file.write(text.getvalue().encode())

    def __repr__(self) -> str:
        steps, test = len(self.predicted), self.scores.get("test", {})
        told = [f"{name} {test[key]:.3g}" for name, key in (("MAE", "mae"), ("skill", "skill"))
                if test.get(key) is not None]  # fmt: skip
        return f"Forecast({steps} steps of {len(self.nodes)} nodes, {', '.join(told) or 'not tested'})"


@dataclass(frozen=True)
class RollingOrigins:
    """How good forecasts were from several origins, each with a network that has seen nothing after it.

    folds      a row for each seed and origin: its step of time ("origin"), windows to learn from, to choose
               weights by and to test, epochs, and "rules": errors of the network and of plain rules, as
               those of `Forecast.scores`
    scores     of the network: mae_mean, mae_std, rmse_mean, ..., skill_..., and lists by step of the horizon,
               mae_by_step_mean, ...; means and sample deviations over origins; with "output.coverage" of the
               settings coverage_mean, ..., of the shares of the test values that intervals held
    baselines  the same of plain rules
    """

    folds: list[dict[str, Any]]
    scores: dict[str, Any]
    baselines: dict[str, dict[str, Any]]
    nodes: list[Any]
    digest: str

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {with_deviation(self.scores, key)}"
                         for name, key in (("MAE", "mae"), ("skill", "skill")))  # fmt: skip
        origins = len({row["fold"] for row in self.folds})
        return f"RollingOrigins({origins} origins; {told})"


@with_few_threads
def forecast(
    graph: Any,
    series: Any,
    *,
    horizon: int | None = None,
    window: int | None = None,
    period: int | None = None,
    weights: Any = None,
    covariates: Any = None,
    shared_covariates: Any = None,
    folds: int | None = None,
    vary: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Forecast | RollingOrigins | Tuning:
    """Learn from the series of a graph's nodes, and forecast what comes next of each.

    graph      as for `classify`; graph.neighbours of the settings says whether directions count
    series     an array T x n (or T x n x channels), nodes in the order of the graph's; a DataFrame with a
               column for each node; a dict {node: its series}; or the path of a file as graph.series; nan is
               not known
    horizon    steps that are forecast; None: 3, or those of the weights
    window     steps that a forecast goes by; None: 12, or those of the weights
    period     steps after which series repeat themselves, as 24 of hours; None: none, or that of the weights
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    covariates   what is known beforehand of each node and step of time, of the steps after the end, too (a
               plan, a forecast of the weather): as series, with `horizon` more steps at least; networks and
               regressions read it; nan is refused, and so are indexes of pandas that begin with other steps
               than that of the series. shared_covariates: of all nodes alike (holidays), an
               array T or T x columns, a DataFrame, or the path of a file
    folds      rolling origins: the test part of time is cut into so many pieces, each is forecast by a
               network that has seen what is before it ("study.fold_training": "sliding" of the settings: as
               many steps of it as the first one), with each of "study.seeds" where the settings have them,
               and a RollingOrigins is returned
    vary       settings to choose among by errors on the validation windows: a mapping of keys of [forecast]
               or [gnn] to lists of values, {"forecast.window": [6, 12], "hidden": [8, 16]}, or to pairs
               (least, largest) that "study.trials" of the settings are drawn from; a Tuning is returned, of
               trainings with "study.seeds"
    settings   keys of a case, as {"forecast.model": "temporal", "gnn.epochs": 20, "seed": 1}, over those of
               inputs/forecast.toml
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Raises GraphError for what is no graph, or no series of it, CaseError for wrong settings
    Source     Li et al. 2018 (DCRNN); Yu et al. 2018 (STGCN)
    """
    given = {"forecast.horizon": horizon, "forecast.window": window, "forecast.period": period}
    given = {key: value for key, value in given.items() if value is not None}
    asked = Asked(folds, vary, {}, ("fold_training", "seeds"))
    context, model = _begun(weights, settings, given, asked, comm, verbose)
    model = _fitting(context, model, given)
    loaded, names = loaded_graph(context, graph)
    names = names or names_of_file(context, loaded)
    S_own = _series(context, loaded, names, series)
    known = _covariates(context, loaded, names, series, covariates, shared_covariates)
    if folds is not None:
        chosen = setting(settings, "study", "seeds") is not None
        seeds = context.case.study.seeds if chosen else [context.case.seed]
        return _from_origins(context, loaded, names, S_own, seeds, known)

    def train_once(chosen: Context) -> Forecast:
        return _told(learn_forecasts(chosen, loaded, S_own, model, known), names)

    return train_once(context) if vary is None else _tuned(context, loaded, S_own, train_once, known)


def _tuned(
    context: Context, loaded: Loaded, S_own: np.ndarray, train: Callable[[Context], Any],
    covariates: Covariates | None,
) -> Tuning:  # fmt: skip
    """What trials come to, and the forecaster of the best one. Ranks: all call."""
    masks = holes_of(context.group, S_own) > 0
    inner, own, whole, covariates = whole_where_small(context, loaded, S_own, masks, covariates)
    groups = context.group.size if inner.alike else 1
    return tuned_by(context, SeriesTuned(inner, own, whole, covariates), train, groups)


def _from_origins(
    context: Context, loaded: Loaded, names: list[Any] | None, S_own: np.ndarray, seeds: list[int],
    covariates: Covariates | None,
) -> RollingOrigins:  # fmt: skip
    """What origins come to. Ranks: all call."""
    rows = origins_of(context, loaded, S_own, seeds, covariates=covariates)
    summary, nodes = summary_of(rows), list(range(loaded.graph.n)) if names is None else names
    digest = digest_of_origins(rows)
    return RollingOrigins(rows, summary.pop(NETWORK), summary, nodes, digest)


def _begun(
    weights: Any,
    settings: dict[str, Any] | None,
    given: dict[str, Any],
    asked: Asked,
    comm: MPI.Comm | None,
    verbose: bool,
) -> tuple[Context, SavedForecaster | None]:
    """The context of a call, and the weights that are in memory. Ranks: all call."""
    model = None
    with reading_together(comm):
        over = given | asked.keys(weights)
        for key in given:
            table, _, name = key.partition(".")
            if setting(settings, table, name) not in (None, given[key]):
                raise CaseError(f"settings: {key}: given beside {name}={given[key]}; leave either out")
        recipe = dict(RECIPE)
        if weights is not None:
            if setting(settings, "gnn", "weights") is not None:
                raise CaseError("weights: given here and in the settings; one of them would be right")
            model = getattr(weights, "model", None)
            in_file = isinstance(weights, str | os.PathLike)
            if not in_file and not isinstance(model, SavedForecaster):
                right = "the path of a weights.npz or what an earlier call returned would be right"
                raise CaseError(f"weights: found {type(weights).__name__}; {right}")
            recipe.pop("gnn.hidden")
            over |= {"gnn.weights": os.fspath(weights)} if in_file else {}
            if setting(settings, "gnn", "epochs") is None and in_file:
                over |= {"gnn.epochs": 0}
            if setting(settings, "gnn", "epochs") == 0 and not in_file:
                over |= {"gnn.epochs": 1}  # no more than a case without gnn.weights may have: _with_weights
        chosen = merged({"run.task": "classify"}, recipe, settings, over)
    context = context_of_settings(chosen, comm, verbose, by_task=False)
    refuse_level(context, "forecast")
    with raise_together(context.group, "reading the settings"):
        if asked.word:
            check_study_network(context.case.gnn)
            asked.refuse_members(context)
        asked.refuse_unread(context, settings)
        for key in ("series", "covariates", "shared_covariates"):
            if getattr(context.case.graph, key):
                raise CaseError(f"settings: graph.{key}: the argument {key} would be right")
    refuse_data_keys(context.case, "classify")
    if model is not None:
        check_given(context.group, {"weights": digest_of_arrays(*model.all_arrays.values())})
        context = _with_weights(context, setting(settings, "gnn", "epochs"))
    return context, model


def _fitting(
    context: Context, model: SavedForecaster | None, given: dict[str, Any]
) -> SavedForecaster | None:
    """The weights that are applied, which arguments do not contradict; None: there are none. Ranks: all
    call."""
    if not context.case.gnn.weights:
        return None
    with raise_together(context.group, "reading the weights"):
        saved = model or load_forecaster(context.case.gnn.weights)
        for key, value in given.items():
            name = key.partition(".")[2]
            if value != (learned := getattr(saved.forecast, name)):
                raise CaseError(f"{name}: found {value}, the weights have {learned}; leave it out")
    return saved


def _with_weights(context: Context, epochs: Any) -> Context:
    """A context whose weights are in memory, under a name for messages; epochs: of the settings, None:
    applied."""
    gnn = structs.replace(
        context.case.gnn, weights="weights", epochs=context.case.gnn.epochs if epochs else 0
    )
    return replace(context, case=structs.replace(context.case, gnn=gnn))


def _series(context: Context, loaded: Loaded, names: list[Any] | None, series: Any) -> np.ndarray:
    """[n_own, T, C] float32 of own nodes. Ranks: all call."""
    group = context.group
    refuse_no_nodes(loaded)
    if isinstance(series, str | os.PathLike):
        limits = Limits(int(context.case.memory.max_decompressed_gb * 1e9))
        return load_series(group, loaded, os.fspath(series), limits)
    with raise_together(group, "reading the series"):
        array = series_of_object(series, names, loaded.graph.n)
    check_given(group, {"series": digest_of_arrays(array)})
    return own_series(loaded, array, group.rank)


def _covariates(
    context: Context, loaded: Loaded, names: list[Any] | None, series: Any, given: Any, shared: Any
) -> Covariates | None:
    """What is known beforehand; None: nothing is. Ranks: all call."""
    group, limits = context.group, Limits(int(context.case.memory.max_decompressed_gb * 1e9))
    given_path, shared_path = (isinstance(each, str | os.PathLike) for each in (given, shared))
    with raise_together(group, "reading the covariates"):
        arrays: dict[str, np.ndarray] = {}
        if given is not None and not given_path:
            arrays[BESIDE[0]] = series_of_object(given, names, loaded.graph.n, BESIDE[0], known_numbers)
        if shared is not None and not shared_path:
            arrays[BESIDE[1]] = shared_of_object(shared, BESIDE[1])
        for name, each in zip(BESIDE, (given, shared)):
            refuse_other_steps(each, series, name)
    check_given(group, {name: digest_of_arrays(each) for name, each in arrays.items()})
    own, of_all = arrays.get(BESIDE[0]), arrays.get(BESIDE[1])
    if given_path:
        own = load_series(group, loaded, os.fspath(given), limits, True)
    elif own is not None:
        own = own_series(loaded, own, group.rank)
    if shared_path:
        of_all = load_shared(group, os.fspath(shared), limits)
    paths = zip(BESIDE, (given, shared), (given_path, shared_path))
    called = [show(os.fspath(each)) if in_file else name for name, each, in_file in paths]
    return covariates_of(own, of_all, int(np.diff(loaded.rows.offsets)[group.rank]), called)


def _told(done: Forecasted, names: list[Any] | None) -> Forecast:
    """What the call tells. Ranks: all call."""
    fit, order = done.fit, done.loaded.order_all
    by_node = lambda rows: _steps_first(rows if order is None else _unordered(rows, order))  # noqa: E731
    found, spread = done.intervals, done.spread
    intervals = None if found is None else np.stack([by_node(found.low), by_node(found.high)])
    levels = [by_node(done.levels[:, q]) for q in range(done.levels.shape[1])]
    members = [by_node(done.members[:, i]) for i in range(done.members.shape[1])] if done.others else []
    nodes = list(range(done.loaded.graph.n)) if names is None else names
    return Forecast(
        predicted=by_node(done.next), nodes=nodes, scores=scores_of(done), baselines=plain_scores_of(done),
        epochs=fit.epochs, train_loss=fit.records[-1]["loss"] if fit.records else None, seconds=fit.seconds,
        records=fit.records, digest=digest_of(done), model=whole_saved(done), intervals=intervals,
        coverage=None if found is None else found.held.share, errors=done.test.errors,
        quantiles=np.stack(levels) if levels else None, spread=None if spread is None else by_node(spread),
        members=members, held=found,
    )  # fmt: skip


def _unordered(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Rows by the nodes' own numbers."""
    out = np.empty_like(rows)
    out[order] = rows
    return out


def _steps_first(rows: np.ndarray) -> np.ndarray:
    """[H, n], or [H, n, C], of rows [n, H, C]."""
    steps = rows.transpose(1, 0, 2)
    return np.ascontiguousarray(steps[:, :, 0] if steps.shape[2] == 1 else steps)
