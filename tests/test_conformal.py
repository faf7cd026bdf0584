"""Sets of classes and intervals of numbers that hold the truth as often as is asked (output.coverage)."""

from math import ceil

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from hypothesis import given
from hypothesis import strategies as st
from jobs import ROOT, split_over
from mpi4py import MPI
from test_main import result_of
from test_resume import job

from app import classify, classify_edges
from app.case.file import build
from app.errors import CaseError
from app.gnn.conformal import fewest_for, place_of

ASKED = {
    "gnn.epochs": 25, "gnn.hidden": 8, "gnn.feature_rows": "as_given", "graph.splits": "random", "seed": 2,
    "output.coverage": 0.9, "gnn.baselines": False,
}  # fmt: skip


def communities(n=500, seed=1):
    """A graph of four groups of nodes, features that hint at them, and the groups."""
    graph, groups = nx.empty_graph(n), np.arange(n) * 4 // n
    graph.add_edges_from(nx.planted_partition_graph(4, n // 4, 12 / n, 4 / n, seed=seed).edges)
    X = np.random.default_rng(seed).normal(size=(len(groups), 6))
    X[:, :4] += 0.8 * np.eye(4)[groups]
    return graph, X, groups


@pytest.mark.mpi_skip
@given(st.integers(1, 999), st.integers(0, 10**6))
def test_a_place_is_that_of_the_definition(thousandths, count):
    coverage = thousandths / 1000
    assert place_of(coverage, count) == -(-(count + 1) * thousandths // 1000)
    assert place_of(coverage, fewest_for(coverage)) == fewest_for(coverage)
    assert place_of(coverage, fewest_for(coverage) - 1) > fewest_for(coverage) - 1


@pytest.mark.mpi_skip
def test_new_scores_pass_the_place_as_rarely_as_is_promised():
    draws = np.random.default_rng(4)
    held = [x[-1] <= np.sort(x[:-1])[place_of(0.8, 24) - 1] for x in draws.normal(size=(4000, 25))]
    assert abs(np.mean(held) - 0.8) < 0.02


@pytest.mark.parametrize("members", [1, 2])
def test_sets_are_by_the_threshold_of_the_validation_nodes(members):
    graph, X, groups = communities()
    asked = {**ASKED, "gnn.members": members, "output.probabilities": True}
    n, order = len(groups), np.random.default_rng(7).permutation(len(groups))
    sets = {"train": order[:150], "val": order[150:300], "test": order[300:]}
    del asked["graph.splits"]
    found = classify(graph, X, groups, **sets, settings=asked, comm=WORLD)
    P = found.probabilities
    true = np.sort(P[sets["val"], groups[sets["val"]]])[::-1]
    least = true[ceil(0.9 * 151) - 1]
    wanted = [tuple(np.flatnonzero((row >= least) | (row == row.max())).tolist()) for row in P]
    assert found.sets == wanted
    held = np.array([groups[v] in found.sets[v] for v in range(n)])
    told = found.coverage
    assert told["calibrated_on"] == 150 and told["threshold"] == pytest.approx(float(least))
    assert told["test"] == held[sets["test"]].mean() and abs(told["test"] - 0.9) < 0.1
    assert told["mean_size"] == np.mean([len(found.sets[v]) for v in sets["test"]])
    assert held[sets["val"]].sum() >= ceil(0.9 * 151)
    alone = classify(graph, X, groups, **sets, settings=asked, comm=MPI.COMM_SELF)
    assert (alone.sets, alone.coverage) == (found.sets, found.coverage)


def test_intervals_of_numbers_are_as_wide_as_errors_of_the_validation_nodes():
    graph, X, groups = communities()
    draws = np.random.default_rng(5)
    values = np.stack([groups + 0.3 * draws.normal(size=len(groups)), 5 * X[:, 4]], axis=1)
    values[3, 1] = np.nan
    found = classify(graph, X, values, settings={**ASKED, "gnn.goal": "values"}, comm=WORLD)
    low, high = found.intervals[..., 0], found.intervals[..., 1]
    np.testing.assert_allclose((low + high) / 2, found.predicted, rtol=1e-6)
    assert (np.ptp(high - low, axis=0) < 1e-9).all()
    np.testing.assert_allclose((high - low)[0] / 2, found.coverage["threshold"])
    assert abs(found.coverage["test"] - 0.9) < 0.1 and found.coverage["mean_size"] is None
    one = classify(graph, X, values[:, 0], settings={**ASKED, "gnn.goal": "values"}, comm=WORLD)
    assert one.intervals.shape == (len(groups), 2)


def test_sets_of_edges_and_of_whole_graphs():
    graph, draws = nx.gnp_random_graph(40, 0.3, seed=3), np.random.default_rng(4)
    asked = {key: value for key, value in ASKED.items() if key != "graph.splits"}
    labels = draws.integers(0, 3, graph.size())
    asked["graph.edge_splits"] = "random"
    found = classify_edges(graph, labels, draws.normal(size=(40, 3)), settings=asked, comm=WORLD)
    assert len(found.sets) == graph.size() and {type(each) for each in found.sets} == {tuple}
    graphs = [nx.gnp_random_graph(6, 0.5, seed=i) for i in range(80)]
    names = ["odd" if each.size() % 2 else "even" for each in graphs]
    whole = classify(graphs, labels=names, settings={**ASKED, "output.coverage": 0.6}, comm=WORLD)
    assert len(whole.sets) == 80 and set().union(*whole.sets) <= {"odd", "even"}


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_too_few_validation_nodes_rule_nothing_out():
    graph, X, groups = communities(60)
    sets = {"train": range(0, 30), "val": range(30, 38), "test": range(38, len(groups))}
    asked = {key: value for key, value in ASKED.items() if key != "graph.splits"}
    with pytest.warns(UserWarning, match="at least 9 would be right"):
        found = classify(graph, X, groups, **sets, settings=asked)
    assert set(found.sets) == {tuple(np.unique(groups))} and found.coverage["threshold"] is None
    with pytest.warns(UserWarning, match="at least 9 would be right"):
        found = classify(graph, X, 1.0 * groups, **sets, settings={**asked, "gnn.goal": "values"})
    assert np.isinf(found.intervals).all() and found.coverage["threshold"] == [None]


@pytest.mark.mpi_skip
def test_files_of_sets_have_the_names_of_classes(tmp_path):
    names = tmp_path / "y.txt"
    names.write_text("".join(f"{'big one' if i % 3 else 'small'}\n" for i in range(60)))
    (tmp_path / "g.txt").write_text("".join(f"{i} {(i * 7 + 1) % 60}\n" for i in range(60)))
    more = (
        f"graph.path={tmp_path}/g.txt", f"graph.labels={names}", "graph.splits=random", "gnn.epochs=5",
        "output.coverage=0.6", "graph.features=degrees", "output.plots=false",
    )  # fmt: skip
    printed = []
    for ranks in (1, 2):
        case = ROOT / "inputs" / "gcn.toml", split_over(ranks)
        code, said = job(case, tmp_path / str(ranks), *more, ranks=ranks)
        assert code == 0, said
        assert "sets of classes for 60 % of the nodes, by" in said
        printed.append((tmp_path / str(ranks) / "sets" / "g.txt").read_text())
    assert printed[0] == printed[1]
    said = [line.split("\t", 1)[1] for line in printed[0].splitlines()]
    assert len(said) == 60 and set(said) <= {"big one", "small", "big one\tsmall"}
    assert result_of(tmp_path / "1")["coverage"]["asked"] == 0.6


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"gnn.level": "link"}, r"output\.coverage: is of labels"),
        ({"gnn.level": "embed"}, r"output\.coverage: is of labels"),
        ({"gnn.model": "rgcn"}, r"output\.coverage: is of labels"),
        ({"run.task": "study", "study.kind": "folds"}, r"output\.coverage: is read by"),
        ({"output.coverage": 1.0}, r"output\.coverage"),
        ({"smooth.method": "smooth", "smooth.validation_labels": True}, r"smooth\.validation_labels: gives"),
    ],
)
def test_what_has_no_sets_is_refused(keys, said):
    usual = {"run.task": "classify", "graph.generator": "sbm", "graph.nodes": 40, "output.coverage": 0.9}
    with pytest.raises(CaseError, match=said):
        build(usual | keys)


@pytest.mark.mpi_skip
def test_what_cannot_be_calibrated_is_refused_before_training(monkeypatch):
    monkeypatch.setattr("app.tasks.levels.members.fit", lambda *args, **keys: pytest.fail("trained"))
    graph, X, groups = communities(60)
    asked = {key: value for key, value in ASKED.items() if key != "graph.splits"}
    with pytest.raises(CaseError, match="a validation set, which has none"):
        classify(graph, X, groups, train=range(20), test=range(20, 50), settings=asked)
    several = np.eye(4)[groups].astype(int)
    with pytest.raises(CaseError, match="not of several labels"):
        classify(graph, X, several, train=range(20), val=range(20, 50), settings=asked)
    with pytest.raises(CaseError, match=r"output\.coverage: is not read beside folds"):
        classify(graph, X, groups, folds=3, settings=asked)
