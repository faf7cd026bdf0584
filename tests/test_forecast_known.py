"""Forecasts that read what is known beforehand: gradients, columns, ranks, files, origins, what lacks."""

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from mpi4py import MPI
from standin_device import StandInDevice
from test_forecast import (
    NODES,
    STEPS,
    Labelled,
    check_gradients,
    contents,
    drawn,
    drawn_graph,
    forecaster_on,
    run,
)

from app import forecast
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.forecast.saved import load_forecaster
from app.graphs.formats.source import Limits
from app.graphs.series import columns_of_shared, read_shared

alone = pytest.mark.mpi_skip
WORLD, HORIZON = MPI.COMM_WORLD, 2


def known(a=2, b=1, steps=STEPS + HORIZON):
    """Covariates [T, n, a] and [T, b] that are small whole numbers."""
    draws = np.random.default_rng(8)
    return draws.integers(0, 3, (steps, NODES, a)).astype(np.float32), draws.integers(0, 3, (steps, b)) * 1.0


# ---- networks ---------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    ("model", "directed", "counts"), [("recurrent", True, (2, 1)), ("temporal", False, (1, 0))]
)
def test_gradients_are_those_of_central_differences(model, directed, counts):
    group = Group(MPI.COMM_SELF, HostDevice())
    settings = {"forecast.model": model, "forecast.loss": "squared", "forecast.period": 6, "gnn.depth": 1}
    settings.pop("gnn.depth") if model == "recurrent" else None
    found = forecaster_on(group, settings, drawn(2, holes=0.05), directed, known=known(*counts))
    check_gradients(found, ("ahead.W", "input.W", "head.W"), 8, directed)


@alone
@pytest.mark.parametrize("model", ["recurrent", "temporal"])
def test_a_device_of_another_kind_has_the_same_bits(model):
    found = []
    for device in (HostDevice(), StandInDevice()):
        group = Group(MPI.COMM_SELF, device)
        of = forecaster_on(group, {"forecast.model": model}, drawn(holes=0.02), known=known())
        ends = of.windows.parts.ends("train")[:3]
        loss = of.learn(ends)
        found.append((loss, np.array(device.get(of.steps.gradient)), of.forecast(ends), of.next()))
    assert found[0][0] == found[1][0]
    assert all(np.array_equal(*pair) for pair in zip(found[0][1:], found[1][1:]))


@alone
def test_columns_are_those_of_the_steps_that_are_read_and_forecast():
    (own, shared), group = known(), Group(MPI.COMM_SELF, HostDevice())
    found = forecaster_on(group, {"forecast.hops": 1}, drawn(), known=(own, shared))
    windows, end = found.windows, 30
    batch = windows.batch(np.array([end]))
    P = nx.to_numpy_array(drawn_graph(), nodelist=range(NODES))
    P /= np.maximum(P.sum(axis=1, keepdims=True), 1)
    first = windows.parts.steps
    small = (own - own[:first].mean(axis=(0, 1))) / own[:first].std(axis=(0, 1))
    of_all = (shared - shared[:first].mean(axis=0)) / shared[:first].std(axis=0)

    def read(step):
        alike = np.broadcast_to(of_all[step], (NODES, 1))
        return np.concatenate([small[step], P @ small[step], alike], axis=1)

    ahead = np.concatenate([read(end + h) for h in (1, 2)], axis=1)
    assert np.allclose(batch.ahead[:NODES], ahead, atol=1e-5) and batch.ahead.shape[1] == windows.ahead == 10
    for back, inputs in enumerate(batch.inputs[::-1]):  # after the value and its walk, before the ones
        assert np.allclose(inputs[:NODES, 2:7], read(end - back), atol=1e-5) and inputs.shape[1] == 8
    steps = range(end - 3, end + 3)
    both = [np.concatenate([small[t], np.broadcast_to(of_all[t], (NODES, 1))], axis=1) for t in steps]
    own_part, heard = np.split(batch.linear[:NODES], [windows.own_columns], axis=1)
    assert np.allclose(own_part[:, 4:], np.concatenate(both, axis=1), atol=1e-5)
    assert np.allclose(heard[:, 4:], np.concatenate([P @ small[t] for t in steps], axis=1), atol=1e-5)


def planted(steps=160, seed=3):
    """A ring, series that follow a plan of each node and days of rest, and both as far as 3 steps ahead."""
    draws, n, reach = np.random.default_rng(seed), 9, steps + 3
    plan, rest = (draws.random((reach, n)) < 0.2) * 1.0, (np.arange(reach) % 11 > 8) * 1.0
    series = np.zeros((steps, n))
    for t in range(1, steps):
        near = (np.roll(plan[t], 1) + np.roll(plan[t], -1)) / 2
        series[t] = 0.5 * series[t - 1] + 2 * rest[t] - 3 * plan[t] - 2 * near + 0.1 * draws.normal(size=n)
    return nx.cycle_graph(n), series, plan, rest


@pytest.mark.parametrize("model", ["recurrent", "temporal"])
def test_what_is_known_is_used_by_networks_and_regressions_on_any_ranks(model, shared_path):
    graph, series, plan, rest = planted()
    asked = {"forecast.model": model, "gnn.epochs": 3, "seed": 2, "gnn.members": 2, "output.coverage": 0.8}
    asked |= {"forecast.window": 4}
    given = {"covariates": plan, "shared_covariates": rest, "horizon": 3}
    found = forecast(graph, series, settings=asked | {"parallel.spatial": WORLD.size}, comm=WORLD, **given)
    if WORLD.size > 1:
        alone = asked | {"parallel.spatial": 1}
        one = by_one(lambda: contents(forecast(graph, series, settings=alone, comm=MPI.COMM_SELF, **given)))
        assert contents(found) == one
    without = forecast(graph, series, settings=asked, comm=WORLD, horizon=3)
    for rule in ("linear", "linear_neighbours"):
        assert found.baselines[rule]["mae"] < 0.6 * without.baselines[rule]["mae"]
    assert found.scores["test"]["mae"] < 0.3 * without.scores["test"]["mae"]
    path = str(shared_path / "weights.npz")
    if WORLD.rank == 0:
        found.save(path)
    WORLD.Barrier()
    assert load_forecaster(path).covariates == (1, 1)
    again = forecast(graph, series, weights=path, comm=WORLD, covariates=plan, shared_covariates=rest)
    assert np.array_equal(again.predicted, found.predicted)
    planned = plan.copy()
    planned[-1, 4] = 1 - planned[-1, 4]  # of the last step that is forecast, at one node
    other = forecast(graph, series, weights=path, comm=WORLD, covariates=planned, shared_covariates=rest)
    moved = np.abs(other.predicted - found.predicted)[2]
    assert moved.argmax() == 4 and moved[4] > 1
    assert other.scores == found.scores
    with pytest.raises(GraphError, match=r"for 1 columns of graph\.shared_covariates; there are 0"):
        forecast(graph, series, weights=path, comm=WORLD, covariates=plan)


def test_origins_and_trials_read_what_is_known_at_their_steps_alone():
    graph, series, plan, rest = planted()
    asked = {"forecast.model": "temporal", "gnn.epochs": 1, "forecast.window": 3, "output.coverage": 0.5}
    given = {"covariates": plan, "shared_covariates": rest, "horizon": 3, "comm": WORLD}
    found = forecast(graph, series, folds=2, settings=asked, **given)
    assert found.baselines["linear_neighbours"]["mae_mean"] < 0.5
    end = found.folds[1]["origin"] + 3  # beyond what the first origin is tested on, and forecasts
    later = plan.copy()
    later[end + 2 :] = 1 - later[end + 2 :]
    other = forecast(graph, series, folds=2, settings=asked, **given | {"covariates": later})
    assert other.folds[0] == found.folds[0] and other.folds[1] != found.folds[1]
    del asked["output.coverage"]
    tuned = forecast(
        graph, series, vary={"forecast.hops": [0, 1]}, settings=asked | {"study.seeds": [1]}, **given
    )
    assert tuned.settings["forecast.hops"] == 1 and tuned.best.scores["test"]["mae"] < 0.5


# ---- files, refusals --------------------------------------------------------------------------------------


@alone
def test_a_run_reads_files_and_says_how_far_they_must_reach(tmp_path):
    graph, series, plan, rest = planted(60)
    series = series.astype(np.float32)  # of which nine digits tell all
    named = [f"s{node}" for node in graph]
    (tmp_path / "g.txt").write_text("".join(f"s{u} s{v}\n" for u, v in graph.edges))
    order = np.random.default_rng(0).permutation(9)

    def table(values):
        lines = (",".join([f"h{t}", *(f"{x:.9g}" for x in row[order])]) for t, row in enumerate(values))
        return "\n".join([",".join(["time", *(named[i] for i in order)]), *lines, ""])

    (tmp_path / "series.csv").write_text(table(series))
    (tmp_path / "plan.csv").write_text(table(plan))
    days = "".join(f"day {t}\t{x:g}\n" for t, x in enumerate(rest))
    (tmp_path / "rest.tsv").write_text("date\trest\n" + days)
    asked = {"graph.path": "g.txt", "graph.ids": "names", "graph.series": "series.csv"}
    asked |= {"graph.covariates": "plan.csv", "graph.shared_covariates": "rest.tsv"}
    asked = {key: tmp_path / name if "." in name else name for key, name in asked.items()}
    more = {"gnn.epochs": 2, "forecast.window": 4, "forecast.horizon": 3, "forecast.period": 0, "seed": 1}
    more |= {"output.coverage": 0.0, "gnn.hidden": 5}
    words = [f"{key}={value}" for key, value in (asked | more).items()]
    told = run(tmp_path / "one", *words)
    log = " ".join((tmp_path / "one" / "log.txt").read_text().split())
    assert "known beforehand, at each step of time: 1 of each node, 1 of all nodes alike" in log
    given = {"covariates": dict(zip(named, plan.T)), "shared_covariates": rest, "horizon": 3, "window": 4}
    series = dict(zip(named, series.T))
    settings = {key: value for key, value in more.items() if key.startswith(("gnn", "seed"))}
    graph = nx.relabel_nodes(graph, dict(enumerate(named)))
    assert forecast(graph, series, settings=settings, **given).baselines == told["plain"]
    assert run(tmp_path / "two", *words, ranks=2)["digest"] == told["digest"]
    short = tmp_path / "plan.npy"
    np.save(short, plan[:-1])
    words[list(asked).index("graph.covariates")] = f"graph.covariates={short}"
    said = run(tmp_path / "no", *words, code=2)
    assert "has 62 steps of time; at least 63 would be right: the 60 of the series" in said


@alone
def test_shared_files_are_read_and_wrong_ones_refused(tmp_path):
    found = {}
    for name, text in {
        "ok.csv": "step,rest,cold\n1,0,2.5\n2,1,-1\n", "no.csv": "1,2\n3,4\n", "none.txt": "# nothing\n",
        "bare.csv": "rest,cold\n", "hole.csv": "rest,cold\n1,\n", "few.txt": "a b c\n1 2\n",
        "index.csv": ",rest,cold\n0,0,2.5\n1,1,-1\n", "tab.tsv": '""\trest\n2024-01-01 00:00\t7\n',
        "times.csv": "time\n1\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
        try:
            found[name] = read_shared(str(tmp_path / name), Limits()).tolist()
        except GraphError as error:
            found[name] = str(error)
    assert found["ok.csv"] == found["index.csv"] == [[0, 2.5], [1, -1]] and found["tab.tsv"] == [[7]]
    assert columns_of_shared(str(tmp_path / "ok.csv"), Limits()) == (None, 2)
    for name, said in (
        ("no.csv", "found the title '1'"), ("none.txt", "holds nothing"), ("bare.csv", "holds no numbers"),
        ("times.csv", "holds nothing but times"),
        ("hole.csv", "found nan in row 0, column 1; numbers, known at each step"),
        ("few.txt", "under 3 titles"),
    ):  # fmt: skip
        assert said in found[name], found[name]
    np.savez(tmp_path / "a.npz", shared_covariates=np.arange(6.0).reshape(3, 2))
    assert read_shared(str(tmp_path / "a.npz"), Limits()).shape == (3, 2)
    assert columns_of_shared(str(tmp_path / "a.npz"), Limits()) == (3, 2)


@alone
def test_what_lacks_is_said_in_one_line():
    graph, series, plan, rest = planted(60)
    for given, said in (
        ({"covariates": plan[:-1]}, r"covariates: has 62 steps of time; at least 63 would be right"),
        ({"covariates": plan[:, 1:]}, r"covariates: found the shape 63 x 8; T x 9"),
        ({"covariates": np.where(plan, np.nan, 0)}, r"covariates: found nan in row 0, column"),
        ({"shared_covariates": rest[None, None]}, r"shared_covariates: found the shape 1 x 1 x 63; T or T x"),
        ({"settings": {"graph.covariates": "x.npy"}}, r"graph\.covariates.*: .*"),
    ):
        with pytest.raises((GraphError, CaseError), match=said):
            forecast(graph, series, horizon=3, **given)


def test_steps_beyond_are_not_read_and_steps_of_other_names_refused():
    graph, series, plan, rest = planted(60)
    asked = {"gnn.epochs": 1, "gnn.hidden": 4, "parallel.spatial": WORLD.size}
    learned = lambda a, b, s=series: forecast(  # noqa: E731
        graph, s, horizon=3, settings=asked, comm=WORLD, covariates=a, shared_covariates=b
    )
    longer = np.concatenate([plan, 1 - plan]), np.concatenate([rest, rest + 9])
    assert learned(*longer).digest == learned(plan, rest).digest
    days, later = list(range(63)), list(range(1, 64))
    named = {node: Labelled(series[:, node], days[:60]) for node in graph}
    of = lambda labels: {node: Labelled(plan[:, node], labels) for node in graph}  # noqa: E731
    assert learned(of(days), Labelled(rest, days), named).digest == learned(plan, rest).digest
    assert learned(of(list(map(str, later))), rest, named).digest == learned(plan, rest).digest  # of no dates
    for given, what in (
        ((of(later), rest), "covariates"),
        ((plan, Labelled(rest, later)), "shared_covariates"),
    ):
        with pytest.raises(GraphError, match=f"^{what}: step 0 is called 1; 0, as of the series, would be"):
            learned(*given, named)


def test_columns_that_say_nothing_and_numbers_far_away_are_told():
    graph, series, plan, rest = planted(60)
    plan, rest = np.stack([plan, np.zeros(plan.shape)], axis=2), np.where(np.arange(63) < 42, 2024, 2025)
    plan[42:, 1, 1] = 3e9
    asked = {"gnn.epochs": 1, "gnn.hidden": 4, "parallel.spatial": WORLD.size}
    given = {"covariates": plan, "shared_covariates": rest, "comm": WORLD}
    with pytest.warns(UserWarning, match="2 of the columns known beforehand have one value in all of"):
        found = forecast(graph, series, horizon=3, settings=asked, **given)
    with pytest.warns(UserWarning, match="21 numbers known beforehand are farther than") as told:
        forecast(graph, series, weights=found, **given)
    assert not any("one value" in str(each.message) for each in told)
