"""Studies of forecasts: tuning by validation errors, rolling origins; the same from Python."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from jobs import mpirun, run_job, split_over
from mpi4py import MPI
from test_forecast import FEW, NODES, PLAIN, STEPS, drawn, drawn_graph

from app import forecast
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.forecast.forecaster import drawn_forecaster
from app.gnn.forecast.origins import rolling_origins
from app.gnn.forecast.series import Parts
from app.gnn.forecast.training import fit_forecaster
from app.graphs.formats.memory import stream_of_object
from app.log import Log
from app.model.forecast_plan import forecast_plan_lines
from app.model.plan import rates_of
from app.partition.series import own_series
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.gnn_folds import run_folds
from app.tasks.studies.gnn_tune import run_tune
from app.tasks.studies.series import begun, trained
from app.tasks.studies.series_folds import origin_row
from app.tasks.studies.trials import make_trials

alone = pytest.mark.mpi_skip
DRAWN = {
    "run.task": "study", "graph.generator": "ba", "graph.nodes": NODES, "graph.d": 2,
    "graph.series": "diffusion", "graph.series_steps": STEPS, "study.seeds": [3, 4],
}  # fmt: skip
TUNE = PLAIN | DRAWN | {"study.kind": "tune", "gnn.epochs": 2}
FOLDS = PLAIN | DRAWN | {"study.kind": "folds", "study.folds": 3, "gnn.epochs": 2, "output.coverage": 0.5}


def context_of(group, settings):
    return Context(build(settings), group, Log(False), None)


def one_rank():
    return Group(MPI.COMM_SELF, HostDevice())


def all_ranks():
    return Group(MPI.COMM_WORLD, HostDevice())


# ---- tuning -----------------------------------------------------------------------------------------------


@alone
def test_trials_have_what_their_networks_read():
    vary = ["forecast.model recurrent temporal", "depth 1 2", "forecast.base linear last",
            "forecast.ridge 0.001 0.1"]  # fmt: skip
    found = make_trials(build(TUNE | {"study.vary": vary, "gnn.depth": 3}))
    last = {"forecast.base=last"}
    named = [each.name for each in found.possible]
    assert len(named) == 3 + 2 * 3
    assert named[:3] == [
        "forecast.model=recurrent forecast.base=linear forecast.ridge=0.001",
        "forecast.model=recurrent forecast.base=linear forecast.ridge=0.1",
        "forecast.model=recurrent forecast.base=last",
    ]
    assert all(("ridge" in name) != (last <= set(name.split())) for name in named)
    assert {each.gnn.depth for each in found.possible} == {2, 1}  # 2 is the default, which nothing reads
    case = found.possible[-1].case_of(build(TUNE))
    assert (case.forecast.model, case.forecast.base, case.gnn.depth) == ("temporal", "last", 2)
    found = make_trials(build(TUNE | {"study.vary": ["warmup 1 9"], "gnn.epochs": 5}))
    assert list(found.impossible) == ["warmup=9"]


@alone
@pytest.mark.parametrize(
    ("vary", "more", "said"),
    [
        (["forecast.horizon 1 2"], {}, '"forecast.horizon" is not tried of forecasts; model, window'),
        (["forecast.lags 1 2"], {}, r'"forecast.lags" is no key of \[forecast\]'),
        (["model gcn gat"], {}, '"model" is not tried of forecasts; hidden, depth'),
        (["links.dimension 2 3"], {}, '"links.dimension" is not tried of forecasts'),
        (["depth 1 2"], {}, r"study\.vary: depth is not read by any of the trials"),
        (["forecast.ridge 0.1 1"], {"forecast.base": "last"}, "forecast.ridge is not read by any"),
        (["forecast.window 0 3"], {}, r"study\.vary: forecast\.window=0: forecast\.window: must be"),
        (["hidden 2 3"], {"gnn.epochs": 0}, r"gnn\.epochs: must be at least 1 in a study"),
        (["hidden 2 3"], {"forecast.base": "last", "forecast.ridge": 1.0},
         'not read with forecast.base = "last"'),
        (["hidden 2 3"], {"gnn.members": 2}, r"gnn\.members: is "),
        (["hidden 2 3"], {"study.datasets": ["x.npz"]}, r"study\.datasets: is not read"),
        (["hidden 2 3"], {"study.fold_training": "sliding"}, r"study\.fold_training: is read by study\.kind"),
        (["hidden 2 3"], {"study.kind": "models"}, 'study.kind = "tune" or "folds" would be right'),
        (["forecast.window 2 3"], {"gnn.level": "node"}, r"\[forecast\] is read by gnn\.level"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_of_forecasts_is_refused(vary, more, said):
    settings = TUNE | {"study.vary": vary} | more
    if settings.get("gnn.level") == "node":
        settings = {"run.task": "study", "study.kind": "tune", "study.vary": vary}
    with pytest.raises(CaseError, match=said):
        make_trials(build(settings))


def test_the_best_forecaster_is_that_of_the_least_validation_error_on_any_ranks():
    """Trials are dealt to ranks, or shared by all; one that the series are too short for is left out."""
    vary = ["forecast.model recurrent temporal", "forecast.window 2 4 50"]
    asked = TUNE | {"study.vary": vary}
    whole = by_one(lambda: run_tune(context_of(one_rank(), asked)))
    for more in ({}, {"parallel.spatial": MPI.COMM_WORLD.size}):
        assert run_tune(context_of(all_ranks(), asked | more)) == whole
    means = [row["val_mean"] for row in whole["rows"]]
    assert means[0] <= means[1]
    assert [row["seeds"] for row in whole["rows"]] == [2, 2, 1, 1]
    assert whole["rows"][0]["score"] == "validation mean absolute error"
    assert len(whole["not_possible"]) == 2
    assert all("forecast.window=50" in name and "has 42 steps of time to learn from" in why
               for name, why in whole["not_possible"].items())  # fmt: skip


@alone
def test_a_trial_comes_to_what_one_training_comes_to():
    series, asked = drawn(holes=0.03), FEW | {"gnn.keep": "best", "seed": 7}
    more = {"horizon": 2, "settings": asked | {"study.seeds": [7]}}
    tuned = forecast(drawn_graph(), series, vary={"forecast.window": [3, 5], "hidden": [2, 4]}, **more)
    assert len(tuned.trials) == 4
    once = forecast(drawn_graph(), series, horizon=2, settings=asked | tuned.settings)
    assert tuned.best.digest == once.digest
    assert tuned.trials[0]["val_mean"] == once.scores["val"]["mae"]
    assert tuned.test_mean == once.scores["test"]["mae"]
    assert set(tuned.settings) == {"forecast.window", "gnn.hidden"}
    assert "validation mean absolute error" in repr(tuned)
    with pytest.raises(CaseError, match="compares scores of validation windows; there are none"):
        no_val = {"forecast.val": 0.0}
        forecast(drawn_graph(), series, vary={"hidden": [2, 4]}, settings=asked | no_val)


# ---- rolling origins --------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("sliding", [False, True])
def test_every_window_of_the_test_part_is_tested_once_by_the_origin_before_it(sliding):
    case = build(PLAIN | {"forecast.test": 0.3, "forecast.train": 0.5}).forecast
    whole = Parts.of(case, STEPS)
    found = rolling_origins(case, STEPS, 5, sliding, "g")
    tested = np.concatenate([each.parts.ends("test") + each.begin for each in found])
    assert np.array_equal(tested, whole.ends("test"))
    assert found[0].parts.at[:3] == whole.at[:3]
    for each in found:
        cuts = np.array(each.parts.at) + each.begin
        assert each.at == cuts[2] == each.parts.ends("test")[0] + each.begin + 1
        assert cuts[2] - cuts[1] == 6  # a tenth of the steps is for validation
        assert each.parts.at[1] == (30 if sliding else cuts[1])
        assert each.begin == (each.at - found[0].at if sliding else 0)
        assert (each.parts.ends("train") + case.horizon < each.parts.at[1]).all()
        assert (each.parts.ends("val") + each.begin + case.horizon < each.at).all()
    with pytest.raises(GraphError, match="g: has 17 windows to test; at least 18, one for each"):
        rolling_origins(case, STEPS, 18, sliding, "g")


def loaded_on(group, case, series):
    source = stream_of_object(drawn_graph())[0] if group.rank == 0 else None
    loaded = load_stream(group, source, case.graph, case)
    return loaded, own_series(loaded, series, group.rank)


@alone
@pytest.mark.parametrize("training", ["expanding", "sliding"])
def test_an_origin_has_seen_nothing_after_it(training):
    """Neither weights, nor scale, regression, masks of what is missing, nor what intervals go by."""
    context = context_of(one_rank(), FOLDS | {"forecast.period": 6, "study.fold_training": training})
    series = drawn()
    loaded, S_own = loaded_on(context.group, context.case, series)
    origin = rolling_origins(context.case.forecast, STEPS, 3, training == "sliding", "g")[1]
    later = S_own.copy()
    later[:, origin.at :] = later[:, origin.at :] * 3 + 100
    later[:3, origin.at :] = np.nan
    later[:, : origin.begin] = 7
    made = []
    for each in (S_own, later):
        of = begun(context, loaded, origin.of(each), 1, origin.parts, origin.at - origin.begin)
        fit = trained(context, of)
        first = of.forecast(origin.parts.ends("test")[:1])
        made.append((of, fit, first, of.intervals(0.5)[0]))
    (one, fit, first, half), (other, again, same, wide) = made
    assert not one.windows.masks and not other.windows.masks
    assert all(np.array_equal(fit.weights[name], again.weights[name]) for name in fit.weights)
    assert np.array_equal(one.scale.mean, other.scale.mean)
    assert np.array_equal(one.base, other.base)
    assert np.array_equal(first, same)
    assert np.array_equal(half, wide)
    assert fit.records == again.records
    rows = [origin_row(context, loaded, each, origin, 1) for each in (S_own, later)]
    assert rows[0]["weights"] == rows[1]["weights"]
    assert rows[0]["rules"]["network"]["mae"] != rows[1]["rules"]["network"]["mae"]  # the test values differ
    last = S_own.copy()
    last[:, origin.begin + origin.parts.at[1] - 1] += 9
    assert origin_row(context, loaded, last, origin, 1)["weights"] != rows[0]["weights"]


@alone
def test_an_origin_is_a_training_on_the_steps_before_it():
    """The row of an origin is that of a network that was never given more."""
    context, series = context_of(one_rank(), FOLDS), drawn(holes=0.05)
    case = context.case
    loaded, S_own = loaded_on(context.group, case, series)
    origin = rolling_origins(case.forecast, STEPS, 3, False, "g")[2]
    row = origin_row(context, loaded, S_own, origin, 5)
    block = RowBlock(context.group, loaded.graph, loaded.rows)
    table = replace_shares(case.forecast, origin)
    of = drawn_forecaster(context.group, case.gnn, table, block, S_own[:, : origin.end], True, 5)
    fit_forecaster(of)
    assert of.judge("test")["network"].told()["mae"] == row["rules"]["network"]["mae"]
    assert of.intervals(0.5)[1] == row["coverage"]


def replace_shares(case, origin):
    """The case whose shares cut the steps of an origin as it does."""
    at = origin.parts.at
    shares = dict(zip(("train", "val", "test"), (np.diff(at) / at[3]).tolist()))
    return build(PLAIN | {f"forecast.{key}": x for key, x in shares.items()}).forecast


def test_origins_are_the_same_on_any_ranks():
    asked = FOLDS | {"study.fold_training": "sliding", "gnn.epochs": 1}
    whole = by_one(lambda: run_folds(context_of(one_rank(), asked)))
    for more in ({}, {"parallel.spatial": MPI.COMM_WORLD.size}):
        assert run_folds(context_of(all_ranks(), asked | more)) == whole
    assert [(row["seed"], row["fold"]) for row in whole["folds"]] == [
        (s, f) for s in (3, 4) for f in range(3)
    ]
    network = whole["rows"][0]
    by_origin = [np.mean([row["rules"]["network"]["mae_by_step"][1] for row in whole["folds"]
                          if row["fold"] == fold]) for fold in range(3)]  # fmt: skip
    assert network["rule"] == "network"
    assert network["mae_by_step_mean"][1] == pytest.approx(np.mean(by_origin))
    assert network["mae_by_step_std"][1] == pytest.approx(np.std(by_origin, ddof=1))
    assert 0 <= network["coverage_mean"] <= 1


@alone
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"study.fold_validation": "none"}, r"study\.fold_validation: is not read by gnn\.level"),
        ({"study.datasets": ["x.npz"]}, r"study\.datasets: is not read"),
        ({"output.probabilities": True}, r"output\.probabilities: is "),
        ({"gnn.epochs": 0}, r"gnn\.epochs: must be at least 1 in a study"),
        ({"study.folds": 40}, r"has 11 windows to test; at least 40, one for each of study\.folds"),
        ({"forecast.train": 0.01}, r"steps of time to learn from; at least 6 would be right"),
    ],
)
def test_what_origins_do_not_fit_is_refused(more, said):
    with pytest.raises((CaseError, GraphError), match=said):
        run_folds(context_of(one_rank(), FOLDS | more))


@alone
def test_a_study_of_origins_goes_on_on_other_ranks(tmp_path):
    def run(folder, ranks, *more, code=0):
        command = [*(mpirun(ranks) if ranks > 1 else []), sys.executable, "run.py", "inputs/forecast.toml",
                   "run.task=study", "study.kind=folds", "study.folds=3", "study.seeds=[1]", "graph.nodes=30",
                   "graph.series_steps=90", "gnn.hidden=3", "gnn.epochs=2", "forecast.window=3",
                   "forecast.horizon=2", "forecast.period=0", "checkpoint.steps=1",
                   split_over(ranks), *more, "--out", folder]  # fmt: skip
        found, printed = run_job(command, limit_s=120)
        assert found == code, printed
        return json.loads((folder / "result.json").read_text()) if code == 0 else printed

    whole = run(tmp_path / "one", 1)
    assert (tmp_path / "one" / "folds.png").exists()
    assert len((tmp_path / "one" / "folds.csv").read_text().split("\n")) == 3 * 5 + 2
    run(tmp_path / "two", 2, "output.plots=false", "--max-hours", "1e-7", code=3)
    again = run(tmp_path / "two", 1, "output.plots=false", "--resume")
    assert again["digest"] == whole["digest"]
    assert again["rows"] == whole["rows"]


def test_origins_from_python_are_the_same_on_all_ranks():
    more = {"horizon": 2, "window": 4, "folds": 3, "settings": FEW}
    series = drawn(holes=0.02)
    found, one = (forecast(drawn_graph(), series, comm=comm, **more) for comm in (None, MPI.COMM_SELF))
    assert (found.digest, found.folds, found.scores) == (one.digest, one.folds, one.scores)
    assert set(found.baselines) == {"last_value", "mean", "linear", "linear_neighbours"}
    assert repr(found).startswith("RollingOrigins(3 origins; MAE ")
    with pytest.raises(CaseError, match="weights: given beside folds"):
        forecast(nx.path_graph(3), series[:, :3], folds=3, weights=found)


@alone
def test_origins_from_python_have_each_seed_and_refuse_what_they_do_not_read():
    more = {"horizon": 2, "window": 4}
    found = forecast(drawn_graph(), drawn(), folds=2, settings=FEW | {"study.seeds": [4, 5]}, **more)
    each = [
        forecast(drawn_graph(), drawn(), folds=2, settings=FEW | {"seed": seed}, **more) for seed in (4, 5)
    ]
    assert [(row["seed"], row["fold"]) for row in found.folds] == [(4, 0), (4, 1), (5, 0), (5, 1)]
    assert [row["weights"] for row in found.folds] == [row["weights"] for one in each for row in one.folds]
    assert repr(found).startswith("RollingOrigins(2 origins; ")
    for key, asked in (("trials", {"folds": 2}), ("fold_training", {"vary": {"hidden": [2, 3]}})):
        settings = FEW | {f"study.{key}": {"trials": 3, "fold_training": "sliding"}[key]}
        with pytest.raises(CaseError, match=rf"study\.{key}: is not read beside {next(iter(asked))}"):
            forecast(drawn_graph(), drawn(), settings=settings, **asked)


@alone
def test_validation_windows_without_values_are_no_ground_to_choose_by():
    series = drawn()
    series[42:48] = np.nan
    with pytest.warns(UserWarning, match="no validation window has a known value ahead"):
        forecast(drawn_graph(), series, horizon=2, window=4, settings=FEW)
    with pytest.raises(CaseError, match="scores of validation windows with a known value ahead; there are"):
        forecast(drawn_graph(), series, horizon=2, window=4, vary={"hidden": [2, 3]}, settings=FEW)


@alone
def test_dry_runs_tell_origins_and_refuse_too_many():
    case = build(FOLDS | {"study.folds": 11})
    said = list(forecast_plan_lines(case, 1, rates_of(case, 1)))
    assert "11 origins, steps 48 to 58, with 2 seeds each; 37 to 47 windows to learn from" in said
    case = build(FOLDS | {"study.folds": 12})
    with pytest.raises(GraphError, match="has 11 windows to test; at least 12"):
        list(forecast_plan_lines(case, 1, rates_of(case, 1)))


@alone
def test_keys_of_regressions_are_read_by_origins_and_of_baselines_not_by_trials():
    asked = {"forecast.base": "last", "forecast.ridge": 1.0}
    build(FOLDS | asked)
    with pytest.raises(CaseError, match=r"forecast\.ridge: is not read with"):
        build(FOLDS | asked | {"gnn.baselines": False})
    with pytest.raises(CaseError, match=r'gnn\.baselines: is not read by study\.kind = "tune"'):
        build(TUNE | {"study.vary": ["hidden 2 3"], "gnn.baselines": False})


@alone
def test_intervals_of_too_few_validation_windows_are_said_to_hold_everything():
    settings = FEW | {"output.coverage": 0.9, "gnn.epochs": 1}
    with pytest.warns(UserWarning, match="intervals for 0.9 need 9 validation windows, there are 5"):
        found = forecast(drawn_graph(), drawn(), horizon=2, window=4, folds=2, settings=settings)
    assert (found.scores["coverage_mean"], found.scores["width_mean"]) == (1, None)
