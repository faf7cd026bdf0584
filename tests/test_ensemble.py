"""Several networks from other seeds (gnn.members): what they say together, on any ranks, saved, resumed."""

import csv
from contextlib import closing

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from app import classify, classify_edges
from app.case.file import build
from app.checkpoint.keeper import Nothing
from app.errors import CaseError, GraphError, Stopped
from app.gnn.ensemble import Moments
from app.gnn.saved import arrays_of, load_model, members_of
from app.log import Log
from app.output import RunFolder
from app.tasks.classify import run_classify
from app.tasks.context import Context

FEW = {"gnn.epochs": 8, "gnn.hidden": 6, "graph.splits": "random", "seed": 5, "gnn.baselines": False}
ASKED = {**FEW, "gnn.members": 3, "output.probabilities": True}


def clubs():
    """The karate club, features that tell the two sides about, and names of the sides."""
    graph = nx.karate_club_graph()
    sides = [graph.nodes[v]["club"] for v in graph]
    noise = np.random.default_rng(3).normal(size=(len(sides), 4))
    return graph, noise + np.array([side == "Officer" for side in sides])[:, None], sides


@pytest.mark.mpi_skip
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9))
def test_moments_are_mean_and_deviation(numbers):
    found = Moments((2,))
    for each in numbers:
        found.add(np.array([each, 1.0]))
    np.testing.assert_allclose(found.mean, [np.mean(numbers), 1], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(found.deviation(), [np.std(numbers), 0], rtol=1e-6, atol=1e-3)


@pytest.mark.mpi_skip
def test_members_are_the_networks_of_seeds_that_follow_each_other():
    graph, X, sides = clubs()
    splits = {"train": range(0, 20), "val": range(20, 26), "test": range(26, 34)}
    asked = {key: value for key, value in ASKED.items() if key != "graph.splits"}
    found = classify(graph, X, sides, **splits, settings=asked)
    alone = [
        classify(graph, X, sides, **splits, settings={**asked, "seed": 5 + i, "gnn.members": 1})
        for i in range(3)
    ]
    for member, one in zip(found.members, alone):
        assert member.tolist() == one.predicted.tolist()
    likely = np.stack([each.probabilities for each in alone])
    np.testing.assert_allclose(found.probabilities, likely.mean(axis=0), atol=1e-6)
    assert found.predicted.tolist() == found.classes[found.probabilities.argmax(axis=1)].tolist()
    columns = np.searchsorted(found.classes, found.predicted)
    np.testing.assert_allclose(found.spread, likely.std(axis=0)[np.arange(34), columns], atol=1e-6)
    assert found.spread.max() > 1e-3
    right = found.predicted == np.array(sides)
    assert found.scores["test"].accuracy == right[26:].mean()


@pytest.mark.parametrize("kind", ["classes", "labels", "values"])
def test_the_same_bits_on_any_ranks_and_from_saved_weights(kind, shared_path):
    graph, X, sides = clubs()
    draws = np.random.default_rng(8)
    labels, more = {
        "classes": (sides, {}), "labels": (draws.integers(0, 2, (34, 3)), {}),
        "values": (draws.normal(size=(34, 2)), {"gnn.goal": "values", "output.probabilities": False}),
    }[kind]  # fmt: skip
    asked = {**ASKED, "gnn.keep": "best", **more}
    found = classify(graph, X, labels, settings=asked, comm=WORLD)
    alone = classify(graph, X, labels, settings=asked, comm=MPI.COMM_SELF)
    assert (found.digest, found.spread.tobytes()) == (alone.digest, alone.spread.tobytes())
    assert found.predicted.tolist() == alone.predicted.tolist()
    if WORLD.Get_rank() == 0:
        found.save(str(shared_path / "weights.npz"))
    WORLD.Barrier()
    applied = {**asked, "gnn.epochs": 0}
    again = classify(graph, X, labels, weights=str(shared_path / "weights.npz"), settings=applied, comm=WORLD)
    assert again.digest == found.digest
    assert again.predicted.tolist() == found.predicted.tolist()
    assert again.spread.tobytes() == found.spread.tobytes() and len(again.members) == 3
    if kind == "labels":
        np.testing.assert_array_equal(found.predicted, found.probabilities > 0.5)


def test_members_of_edges_and_of_whole_graphs():
    graph, draws = nx.gnp_random_graph(30, 0.15, seed=3), np.random.default_rng(4)
    labels = draws.integers(0, 3, graph.size())
    asked = {**FEW, "gnn.members": 2, "graph.edge_splits": "random"}
    del asked["graph.splits"]
    found = classify_edges(graph, labels, draws.normal(size=(30, 3)), settings=asked, comm=WORLD)
    assert found.spread.shape == (graph.size(),) and len(found.members) == 2
    graphs = [nx.gnp_random_graph(int(n), 0.4, seed=i) for i, n in enumerate(draws.integers(5, 9, 20))]
    whole = classify(
        graphs, labels=[i % 2 for i in range(20)], settings={**FEW, "gnn.members": 2}, comm=WORLD
    )
    assert whole.spread.shape == (20,) and [len(each) for each in whole.members] == [20, 20]


@pytest.mark.mpi_skip
def test_smoothing_goes_on_from_the_mean_of_all_members():
    graph, X, sides = clubs()
    asked = {**ASKED, "smooth.method": "both"}
    found, network = (classify(graph, X, sides, settings=each) for each in (asked, ASKED))
    assert found.network == network.scores
    assert found.digest == network.digest and found.members[0].tolist() == network.members[0].tolist()
    assert found.probabilities.tobytes() != network.probabilities.tobytes()


@pytest.mark.parametrize("epochs", [1, 12])
def test_time_that_rows_take_is_measured_in_each_member(epochs, monkeypatch):
    looks = []

    def observe(balance, seconds, left):
        looks.append((float(seconds.min()), bool(np.isfinite(seconds).all()), left))

    monkeypatch.setattr("app.partition.balance.Balance.observe", observe)
    graph, X, sides = clubs()
    asked = {**FEW, "gnn.epochs": epochs, "gnn.members": 3, "parallel.partition": "learned"}
    classify(graph, X, sides, settings=asked, comm=WORLD)
    assert all(least >= 0 and finite for least, finite, _ in looks)
    assert [left for *_, left in looks] == [epochs - each for each in range(1, min(epochs, 10) + 1)] * 3


@pytest.mark.mpi_skip
def test_curves_are_those_of_the_first_member(group, tmp_path):
    settings = {
        "run.task": "classify", "graph.generator": "sbm", "graph.nodes": 60, "graph.random_classes": 2,
        "graph.random_features": 4, "graph.splits": "random", "gnn.epochs": 4, "gnn.members": 3,
        "output.plots": False,
    }  # fmt: skip
    folder = RunFolder(group, str(tmp_path / "run"), True)
    with closing(Log(True, folder.path, echo=False)) as log:
        run_classify(Context(build(settings), group, log, folder, Nothing()))
    with (tmp_path / "run" / "metrics.csv").open(encoding="utf-8") as file:
        rows = [(row["name"], row["step"]) for row in csv.DictReader(file)]
    names = "", "member 2", "member 3"
    assert rows == [(name, str(epoch)) for name in names for epoch in range(1, 5)]


class Stopping(Nothing):
    """Ends a run the so-many-th time that it could be, and has it go on from there."""

    def __init__(self, at):
        self.left, self.states = at, {}

    def recall(self, key):
        return self.states.get(key)

    def keep(self, key, state):
        assert key not in self.states, "made again"
        self.states[key] = state

    def at(self, step, key="", state=None, now=False):
        self.left -= 1
        if self.left == 0:
            self.states[key] = state()
            raise Stopped("here")


@pytest.mark.parametrize("at", [5, 19, 25])
def test_a_run_that_is_stopped_goes_on_in_the_member_that_it_was_at(at, group, shared_path):
    settings = {
        "run.task": "classify", "graph.generator": "sbm", "graph.nodes": 60, "graph.random_classes": 2,
        "graph.random_features": 4, "graph.splits": "random", "gnn.epochs": 9, "gnn.members": 3,
        "gnn.keep": "best", "gnn.evaluate_every": 2, "output.coverage": 0.7, "output.plots": False,
    }  # fmt: skip
    found = {}
    for name, keeper in (("whole", Stopping(0)), ("parts", Stopping(at))):
        folder = RunFolder(group, str(shared_path / name), True)
        context = Context(build(settings), group, Log(False), folder, keeper)
        if name == "parts":
            with pytest.raises(Stopped):
                run_classify(context)
            assert sum("done" in key for key in keeper.states) == (at - 1) // 9
        found[name] = run_classify(context)
    assert found["parts"]["digest"] == found["whole"]["digest"]
    told = [{k: v for k, v in each["instances"][0].items() if k != "seconds"} for each in found.values()]
    assert told[0] == told[1]
    assert [each["seed"] for each in told[0]["members"]] == [0, 1, 2]
    group.max_integer(0)
    for kind in ("sets", "predictions", "members"):
        (name,) = (shared_path / "whole" / kind).iterdir()
        assert (shared_path / "parts" / kind / name.name).read_bytes() == name.read_bytes()
    group.max_integer(0)  # before a rank removes the folders


@pytest.mark.mpi_skip
def test_weights_of_members_have_names_of_their_own(tmp_path):
    graph, X, sides = clubs()
    path = str(tmp_path / "weights.npz")
    found = classify(graph, X, sides, settings=ASKED)
    found.save(path)
    saved = load_model(path)
    assert saved.case.members == 3 and len(saved.others) == 2
    assert not np.array_equal(*(next(iter(each.values())) for each in saved.members[:2]))
    assert members_of(arrays_of(saved.members), 3) == list(saved.members)
    arrays = dict(np.load(path))
    arrays.pop(next(name for name in arrays if name.startswith("2/")))
    np.savez(path, **arrays)
    with pytest.raises(GraphError, match="damaged"):
        load_model(path)
    with pytest.raises(ValueError, match="not in list"):
        members_of({"3/W": np.zeros(1)}, 3)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"output.embeddings": True}, r"output\.embeddings: is of one network"),
        ({"output.importance": 2}, r"output\.importance: is of one network"),
        ({"gnn.level": "link"}, r"gnn\.members: is read by run\.task"),
        ({"gnn.level": "embed"}, r"gnn\.members: is read by run\.task"),
        ({"gnn.model": "rgcn"}, r"gnn\.members: is read by run\.task"),
        ({"run.task": "study", "study.kind": "folds"}, r"gnn\.members: is read by run\.task"),
    ],
)
def test_what_is_of_one_network_is_refused(keys, said):
    usual = {"run.task": "classify", "graph.generator": "sbm", "graph.nodes": 40, "gnn.members": 2}
    with pytest.raises(CaseError, match=said):
        build(usual | keys)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("beside", [{"folds": 3}, {"vary": {"hidden": [4, 8]}}])
def test_folds_and_tunings_are_of_one_network(beside):
    graph, X, sides = clubs()
    with pytest.raises(CaseError, match=r"gnn\.members: is not read beside (folds|vary)"):
        classify(graph, X, sides, **beside, settings={"gnn.members": 2})


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("key", "value"), [("embeddings", True), ("importance", 2)])
def test_saved_members_are_not_one_network_either(key, value):
    graph, X, sides = clubs()
    saved, asked = classify(graph, X, sides, settings=ASKED), {"gnn.epochs": 0, f"output.{key}": value}
    with pytest.raises(CaseError, match=rf"output\.{key}: is of one network, here are 3"):
        classify(graph, X, sides, weights=saved, settings=asked)
