"""How certain forecasts are: several networks together, quantiles, intervals by both."""

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from mpi4py import MPI
from standin_device import StandInDevice
from test_forecast import FEW, NODES, SMALL, drawn, drawn_graph, forecaster_on, run, weights_of

from app import forecast
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.forecast.intervals import bound_of, conformal, pair_of
from app.gnn.forecast.saved import load_forecaster
from app.gnn.forecast.training import fit_forecaster

alone = pytest.mark.mpi_skip
LEVELS = [0.1, 0.3, 0.5, 0.9]
ASKED = {"forecast.quantiles": LEVELS, "output.coverage": 0.75}


def one_rank():
    return Group(MPI.COMM_SELF, HostDevice())


# ---- several networks -------------------------------------------------------------------------------------


def test_members_are_trainings_from_seeds_that_follow_and_say_their_mean():
    series, more = drawn(2, holes=0.02), FEW | {"output.coverage": 0.5, "seed": 5}
    found = forecast(drawn_graph(), series, horizon=2, window=4, settings=more | {"gnn.members": 3})
    each = [
        forecast(drawn_graph(), series, horizon=2, window=4, settings=more | {"seed": 5 + i})
        for i in range(3)
    ]
    for one, alone_ in zip(found.members, each):
        assert np.array_equal(one, alone_.predicted)
    assert found.predicted == pytest.approx(np.mean(found.members, axis=0), rel=1e-5)
    assert found.spread == pytest.approx(np.std(found.members, axis=0), rel=1e-9)
    assert (found.spread > 0).any()
    assert found.scores["test"]["mae"] <= np.mean([one.scores["test"]["mae"] for one in each])
    assert ((found.intervals[0] + found.intervals[1]) / 2) == pytest.approx(found.predicted)
    again = forecast(drawn_graph(), series, weights=found, settings={"output.coverage": 0.5})
    assert np.array_equal(again.predicted, found.predicted)
    assert np.array_equal(again.spread, found.spread)
    one = forecast(drawn_graph(), series, horizon=2, window=4, settings=more | {"gnn.members": 3},
                   comm=MPI.COMM_SELF)  # fmt: skip
    assert (one.digest, one.scores, one.coverage) == (found.digest, found.scores, found.coverage)
    split = more | {"gnn.members": 3, "parallel.spatial": MPI.COMM_WORLD.size}
    assert forecast(drawn_graph(), series, horizon=2, window=4, settings=split).digest == found.digest


@alone
def test_runs_of_members_and_quantiles_are_the_same_on_any_ranks_and_resumed(tmp_path):
    asked = (*SMALL, "gnn.members=3", "forecast.quantiles=[0.1,0.5,0.9]", "gnn.epochs=2")
    found = run(tmp_path / "one", *asked, "output.plots=true")
    assert [each["seed"] for each in found["members"]] == [1, 2, 3]
    assert set(found["coverage"]) == {"asked", "test", "width", "constant", "quantiles"}
    lines = (tmp_path / "one" / "forecast" / "ba-40-0.csv").read_text().split("\n")
    assert lines[0] == "node,step,value,q0.1,q0.5,q0.9,spread,low,high"
    value, low, middle, high = map(float, lines[1].split(",")[2:6])
    assert low <= middle == value <= high
    with np.load(tmp_path / "one" / "members" / "ba-40-0.npz") as file:
        assert file["predicted"].shape == (3, 40, 2, 1)
        assert float(lines[1].split(",")[6]) == pytest.approx(file["spread"][0, 0, 0], rel=1e-6)
    several = run(tmp_path / "three", *asked, ranks=3)
    stopped = run(
        tmp_path / "two", *asked, "checkpoint.steps=1", ranks=2, code=3, start=("--max-hours", "1e-7")
    )
    assert "checkpoint" in stopped
    resumed = run(tmp_path / "two", *asked, "checkpoint.steps=1", start=("--resume",))
    for other in (several, resumed):
        for key in ("digest", "weights_digest", "test", "val", "coverage"):
            assert other[key] == found[key]
        assert [each["test"] for each in other["members"]] == [each["test"] for each in found["members"]]
    saved = load_forecaster(str(tmp_path / "three" / "weights.npz"))
    assert len(saved.members) == 3
    assert saved.forecast.quantiles == [0.1, 0.5, 0.9]
    weights = f"gnn.weights={tmp_path / 'three' / 'weights.npz'}"
    applied = run(tmp_path / "applied", *SMALL, "gnn.epochs=0", weights)
    assert applied["test"] == found["test"]
    assert applied["digest"] == found["digest"]


# ---- quantiles --------------------------------------------------------------------------------------------


@alone
def test_quantiles_do_not_cross_and_lie_where_values_do():
    """Series of independent noise: shares below learned quantiles, on windows held out, are their levels."""
    draws = np.random.default_rng(3)
    series = draws.normal(size=(400, NODES)) * draws.uniform(1, 9, NODES)
    more = {"gnn.epochs": 6, "gnn.hidden": 4, "gnn.learning_rate": 0.02, "forecast.hops": 0, **ASKED}
    found = forecast(drawn_graph(), series, horizon=2, window=3, settings=more)
    assert found.quantiles.shape == (4, 2, NODES)
    assert (np.diff(found.quantiles, axis=0) >= 0).all()
    assert np.array_equal(found.predicted, found.quantiles[2])
    told = found.scores["test"]["quantiles"]
    assert told["below"] == pytest.approx(LEVELS, abs=0.04)
    assert told["levels"] == LEVELS
    assert found.scores["test"]["mae"] == pytest.approx(2 * told["pinball"][2])
    weights = np.diff([0, 0.2, 0.4, 0.7, 1])
    assert told["crps"] == pytest.approx(2 * weights @ told["pinball"])


@alone
def test_scores_and_intervals_are_those_of_dense_arrays():
    """Pinball losses, and conformalised quantiles by Romano et al. 2019, with missing values."""
    of = forecaster_on(one_rank(), ASKED | {"gnn.epochs": 2}, drawn(holes=0.1))
    fit_forecaster(of)
    deviation = of.scale.deviation[:NODES, None].astype(np.float64)
    parts = {}
    for part in ("val", "test"):
        batch = of.windows.batch(of.windows.parts.ends(part))
        of.steps.begin(len(batch.ends))
        split = lambda x: np.array(x).reshape(of.n_own, len(batch.ends), -1)[:NODES]  # noqa: E731, B023
        ahead = of._ahead(batch)
        levels = np.stack([split(ahead[:, q]) for q in range(4)]).astype(np.float64)
        parts[part] = levels, split(batch.target).astype(np.float64), split(batch.known) > 0
    levels, y, known = parts["test"]
    found = of.judged("test").quantiles
    e = (levels - y) * deviation
    q = np.array(LEVELS)[:, None, None, None]
    losses = np.where(known, np.maximum((1 - q) * e, -q * e), 0).sum(axis=(1, 2)) / known.sum(axis=(0, 1))
    assert found.pinball[:, :, 0] == pytest.approx(losses, rel=1e-5)
    assert found.below == pytest.approx(((levels >= y) & known).sum(axis=(1, 2, 3)) / known.sum())
    assert pair_of(LEVELS, 0.75) == (0, 3)

    def score(part):
        levels, y, known = parts[part]
        return np.where(known, np.maximum(levels[0] - y, y - levels[3]), np.nan)

    val, bound = score("val"), np.zeros((NODES, 2))
    for i, h in np.ndindex(bound.shape):
        errors = np.sort(val[i, :, h][~np.isnan(val[i, :, h])])
        place = int(np.ceil(0.75 * (len(errors) + 1)))
        bound[i, h] = errors[place - 1] if place <= len(errors) else np.inf
    finite = np.isfinite(bound)
    intervals = conformal(of, 0.75)
    test = score("test")
    held = np.nan_to_num(test <= bound[:, None], nan=0)[known].mean()
    assert intervals.held.share == pytest.approx(held)
    assert intervals.raw.share == pytest.approx((test <= 0)[known].mean())
    assert (intervals.held.width is None) == (not finite.all())
    raw = np.where(known, (levels[3] - levels[0]) * deviation, 0).sum() / known.sum()
    assert intervals.raw.width == pytest.approx(raw, rel=1e-5)
    ahead = of.next_each()[0][:, :, :, 0]
    wide = np.where(finite, bound, np.inf) * deviation[:, :, 0]
    low, high = ahead[:, 0] - wide, ahead[:, 3] + wide
    empty = low > high
    assert intervals.low[:, :, 0][~empty] == pytest.approx(low[~empty], rel=1e-4)
    assert intervals.high[:, :, 0][~empty] == pytest.approx(high[~empty], rel=1e-4)
    assert (intervals.low <= intervals.high).all()
    assert np.array_equal(of.intervals(0.75)[1], intervals.constant.share)


@alone
def test_widths_follow_how_uncertain_an_hour_is():
    """Noise of each other step is ten times as large: intervals of one width do not tell."""
    draws = np.random.default_rng(2)
    noise = np.where(np.arange(600) % 2 == 0, 0.1, 1.0)[:, None]
    series = noise * draws.normal(size=(600, NODES))
    more = {"gnn.epochs": 8, "gnn.hidden": 6, "gnn.learning_rate": 0.02, "forecast.hops": 0,
            "forecast.quantiles": [0.1, 0.5, 0.9], "output.coverage": 0.8}  # fmt: skip
    found = forecast(drawn_graph(), series, horizon=2, window=2, period=2, settings=more)
    wide = (found.intervals[1] - found.intervals[0]).mean(axis=1)
    assert wide[1] > 4 * wide[0]  # steps 600 and 601
    assert found.held.held.share == pytest.approx(0.8, abs=0.04)
    assert found.held.held.width < 0.9 * found.held.constant.width  # normal noise: 1.41 of 1.68


def test_quantiles_have_the_same_bits_on_any_ranks_and_devices():
    series = drawn(holes=0.03)

    def learned(comm, device):
        of = forecaster_on(Group(comm, device), ASKED | {"gnn.epochs": 1}, series)
        fit = fit_forecaster(of)
        of.join([fit.weights, weights_of(of.params)])
        judged, intervals = of.judged("test"), conformal(of, 0.75)
        parts = judged.quantiles, judged.errors["network"], *judged.members
        parts += intervals.held, intervals.raw, intervals.constant
        return fit.weights, [each.told() for each in parts]

    weights, told = by_one(lambda: learned(MPI.COMM_SELF, HostDevice(compiled=False)))
    others = [learned(MPI.COMM_WORLD, HostDevice())]
    others += [learned(MPI.COMM_SELF, StandInDevice())] if MPI.COMM_WORLD.size == 1 else []
    for other, rest in others:
        assert all(np.array_equal(weights[name], other[name]) for name in weights)
        assert rest == told


def test_ranks_without_nodes_have_the_same_quantiles_and_origins():
    series, graph = drawn(holes=0.02)[:, :3], nx.path_graph(3)
    asked = FEW | ASKED | {"gnn.epochs": 1}
    split = asked | {"parallel.spatial": MPI.COMM_WORLD.size}

    def learned(comm, settings):
        more = {"horizon": 2, "window": 4, "comm": comm}
        found = forecast(graph, series, settings=settings | {"gnn.members": 2}, **more)
        origins = forecast(graph, series, folds=2, settings=settings, **more)
        held = [each.told() for each in (found.held.held, found.held.raw, found.held.constant)]
        return found.digest, found.scores, held, origins.digest, origins.folds

    assert learned(None, split) == by_one(lambda: learned(MPI.COMM_SELF, asked))


@alone
def test_the_nearest_quantiles_make_intervals_and_one_makes_those_of_one_width():
    assert pair_of([0.05, 0.1, 0.5, 0.9, 0.95], 0.9) == (0, 4)
    assert pair_of([0.05, 0.1, 0.5, 0.9, 0.95], 0.8) == (1, 3)
    assert pair_of([0.05, 0.15, 0.5, 0.85, 0.95], 0.8) == (0, 4)  # as near as the inner ones
    assert pair_of([0.5], 0.8) == (0, 0)
    assert bound_of(np.zeros((2, 0, 1, 1), dtype=np.float32), 0.9).shape == (2, 1, 1)
    series, more = drawn(), FEW | {"output.coverage": 0.5}
    one = forecast(drawn_graph(), series, horizon=2, settings=more | {"forecast.quantiles": [0.5]})
    assert one.held.held.told() == one.held.constant.told()
    assert one.scores["test"]["quantiles"]["crps"] == pytest.approx(one.scores["test"]["mae"])


@alone
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"forecast.quantiles": [0.1, 0.9]}, r"ascending shares with 0\.5 among them"),
        ({"forecast.quantiles": [0.9, 0.5]}, r"ascending shares with 0\.5 among them"),
        ({"forecast.quantiles": [0.5, 1.0]}, r"forecast\.quantiles"),
        ({"forecast.quantiles": [0.5], "forecast.loss": "squared"}, r"forecast\.loss: is not read beside"),
        ({"forecast.period": 6, "forecast.calendar": [4, 6]}, r"forecast\.calendar: each once, and without"),
        (
            {"forecast.base": "last", "gnn.baselines": False, "forecast.ridge": 1.0},
            r"forecast\.ridge: is not",
        ),
    ],
)
def test_quantiles_and_keys_that_do_not_fit_are_refused(settings, said):
    with pytest.raises(CaseError, match=said):
        forecast(drawn_graph(), drawn(), settings=settings)
    build({"run.task": "classify", "gnn.level": "forecast", "forecast.base": "last", "forecast.ridge": 1.0,
           "graph.generator": "ba", "graph.nodes": 9, "graph.series": "diffusion"})  # fmt: skip


@alone
def test_columns_of_quantiles_have_titles_of_their_own(tmp_path):
    run(tmp_path / "one", *SMALL, "gnn.epochs=1", "forecast.quantiles=[0.4999999,0.5,0.5000001]")
    lines = (tmp_path / "one" / "forecast" / "ba-40-0.csv").read_text().split("\n")
    assert lines[0].startswith("node,step,value,q0.4999999,q0.5,q0.5000001")


@alone
def test_a_loss_is_not_read_beside_the_quantiles_of_weights():
    found = forecast(drawn_graph(), drawn(), settings=FEW | {"gnn.epochs": 1, "forecast.quantiles": [0.5]})
    with pytest.raises(CaseError, match=r"forecast\.loss: is not read beside the quantiles of the weights"):
        forecast(drawn_graph(), drawn(), weights=found, settings={"forecast.loss": "squared"})


@alone
def test_sine_and_cosine_of_the_calendar_are_read():
    of = forecaster_on(one_rank(), {"forecast.period": 6, "forecast.calendar": [4, 9]})
    ends, f = of.windows.parts.ends("train")[:3], of.windows.f
    batch = of.windows.batch(ends)
    assert batch.inputs.shape == (4, of.n_own * 3, f + 1)
    for back in (0, 3):
        angles = 2 * np.pi * (ends[:, None] - back) / np.array([6, 4, 9])
        wanted = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(3, 6)
        read = np.array(batch.inputs[3 - back])[: NODES * 3, f - 6 : f].reshape(NODES, 3, 6)
        assert read == pytest.approx(np.broadcast_to(wanted, read.shape), abs=2e-6)
    rows = np.array(batch.linear)[: NODES * 3].reshape(NODES, 3, -1)
    assert rows[0, :, of.windows.own_columns - 6 : of.windows.own_columns] == pytest.approx(
        np.array(batch.inputs[3])[:3, f - 6 : f]
    )
    more = FEW | {"forecast.calendar": [5]}
    found = forecast(drawn_graph(), drawn(), horizon=2, settings=more)
    assert found.model.forecast.calendar == [5]
    assert np.array_equal(forecast(drawn_graph(), drawn(), weights=found).predicted, found.predicted)


@alone
def test_tuning_and_origins_go_by_the_ranked_probability_score():
    asked = FEW | {"forecast.quantiles": [0.2, 0.5, 0.8], "study.seeds": [1], "seed": 1}
    found = forecast(drawn_graph(), drawn(), horizon=2, vary={"forecast.window": [3, 4]}, settings=asked)
    assert found.score == "validation continuous ranked probability score"
    assert found.trials[0]["val_mean"] == found.best.scores["val"]["quantiles"]["crps"]
    more = asked | {"output.coverage": 0.5}
    origins = forecast(drawn_graph(), drawn(), horizon=2, window=4, folds=2, settings=more)
    assert origins.scores["crps_mean"] == pytest.approx(np.mean([row["crps"] for row in origins.folds]))
    assert origins.scores["width_mean"] > 0
    for key in ("folds", "vary"):
        given = {"folds": 2} if key == "folds" else {"vary": {"hidden": [2, 3]}}
        with pytest.raises(CaseError, match=f"gnn.members: is not read beside {key}"):
            forecast(drawn_graph(), drawn(), settings={"gnn.members": 2}, **given)
