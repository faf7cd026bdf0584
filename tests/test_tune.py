"""The study of kind tune, and classify(..., vary={...}): which settings are tried, and which are found."""

import csv
import math

import networkx as nx
import numpy as np
import pytest
from test_gnn_studies import alone as one_rank
from test_gnn_studies import study_of

from app import classify
from app.case.file import build, load
from app.errors import CaseError, NumericsError
from app.tasks.studies.gnn_tune import run_tune, rungs
from app.tasks.studies.trials import Varied, make_trials

alone = pytest.mark.mpi_skip
BASE = {"run.task": "study", "study.kind": "tune"}
STUDY = {
    "study.kind": "tune", "study.seeds": [3, 4], "gnn.hidden": 4, "gnn.epochs": 4, "graph.nodes": 60,
    "graph.random_classes": 3, "graph.random_features": 4, "graph.generator": "sbm", "gnn.keep": "best",
    "study.vary": ["model gcn sage", "learning_rate 0.01 0.1"],
}  # fmt: skip


def trials_of(vary, **more):
    return make_trials(build({**BASE, "study.vary": vary, **more}))


def texts(vary, **more):
    return [each.name for each in trials_of(vary, **more)]


# ---- what is tried ----------------------------------------------------------------------------------------


def test_all_combinations_are_tried_in_the_order_of_the_lists():
    assert texts(["hidden 8 16", "bias true false"]) == [
        "hidden=8 bias=true", "hidden=8 bias=false", "hidden=16 bias=true", "hidden=16 bias=false",
    ]  # fmt: skip
    assert [each.gnn.hidden for each in trials_of(["hidden 8 16"])] == [8, 16]


def test_keys_that_layers_do_not_read_make_no_further_trials():
    found = texts(["model gcn gat", "heads 1 2 4", "depth 1 2"])
    assert found == [
        "model=gcn depth=1", "model=gcn depth=2", "model=gat depth=1", "model=gat heads=1 depth=2",
        "model=gat heads=2 depth=2", "model=gat heads=4 depth=2",
    ]  # fmt: skip


def test_draws_are_those_of_the_seed_and_each_is_new():
    vary = ["hidden 4..64", "learning_rate 1e-3..1e-1", "dropout 0..0.8", "model gcn sage"]
    found = trials_of(vary, **{"study.trials": 30})
    assert len({each.name for each in found}) == len(found) == 30
    assert [each.name for each in found] == texts(vary, **{"study.trials": 30})
    assert texts(vary, **{"study.trials": 30, "seed": 9}) != [each.name for each in found]
    assert texts(vary, **{"study.trials": 7}) == [each.name for each in found[:7]]
    assert {each.gnn.model for each in found} == {"gcn", "sage"}
    assert all(4 <= each.gnn.hidden <= 64 for each in found)
    rates = [each.gnn.learning_rate for each in found]
    assert all(1e-3 <= rate <= 1e-1 for rate in rates)
    assert 5 < sum(rate < 1e-2 for rate in rates) < 25  # half of a logarithmic scale
    assert len(texts(["hidden 2 3"], **{"study.trials": 30})) == 2
    assert len(texts(["hidden 2..4"], **{"study.trials": 30})) == 3


def test_a_range_is_drawn_from_evenly_on_a_logarithmic_scale():
    draws = np.random.default_rng(1)
    rates = [float(Varied("learning_rate", ("1e-4", "1.0"), (1e-4, 1.0)).drawn(draws)) for _ in range(4000)]
    assert abs(np.mean(np.log10(rates)) + 2) < 0.1
    shares = [float(Varied("dropout", ("0", "0.8"), (0, 0.8)).drawn(draws)) for _ in range(4000)]
    assert abs(np.mean(shares) - 0.4) < 0.02
    assert {Varied("hidden", ("1", "3"), (1, 3)).drawn(draws) for _ in range(200)} == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("vary", "more", "said"),
    [
        ([], {}, r"study\.vary: must name what is tried"),
        (["hiden 2 3"], {}, r'study\.vary: "hiden 2 3": "hiden" is no key of \[gnn\]'),
        (["layers gcn sage"], {}, '"layers" is not tried'),
        (["watch auc loss"], {}, '"watch" is not tried'),
        (["hidden 8"], {}, "at least two values, each once, or a range"),
        (["hidden 8 8"], {}, "at least two values, each once, or a range"),
        (["hidden 8 16", "hidden 2 4"], {}, r"study\.vary: found hidden twice"),
        (["hidden 8..16"], {}, r"study\.trials: must be at least 1 to draw from the range of hidden"),
        (["hidden 8..2"], {"study.trials": 3}, r"found 8\.\.2; A\.\.B with 0 <= A < B"),
        (["hidden 8..1.2.3"], {"study.trials": 3}, r"found 8\.\.1\.2\.3; A\.\.B"),
        (["hidden 8 x"], {}, r"study\.vary: hidden=x: .*gnn\.hidden"),
        (["heads 1 2"], {}, r"study\.vary: heads is not read by any of the trials"),
        (["hidden 8 16"], {"gnn.heads": 3}, r"gnn\.heads: is not read by any of the trials"),
        (["model gcn nothing"], {}, "unknown layer 'nothing'"),
        (["hidden 8 16"], {"study.datasets": ["x.npz"]}, r"study\.datasets: is not read by"),
        (["class_weights equal balanced"], {"gnn.watch": "loss"}, "class_weights change the loss"),
        (["warmup 1 9"], {"gnn.epochs": 5}, r"gnn\.warmup: less than gnn\.epochs"),
        (["depth " + " ".join(map(str, range(1, 200))), "hidden " + " ".join(map(str, range(1, 200)))], {},
         r"39,601 combinations; study\.trials would draw"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_is_refused_before_anything_is_read(vary, more, said):
    with pytest.raises(CaseError, match=said) as caught:
        trials_of(vary, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["vary", "trials", "race"])
def test_keys_of_tuning_are_refused_in_other_studies(key):
    value = {"vary": ["hidden 2 3"], "trials": 3, "race": 2.0}[key]
    with pytest.raises(CaseError, match=rf'study\.{key}: is read by study\.kind = "tune" alone'):
        build({"run.task": "study", "study.kind": "models", f"study.{key}": value})


# ---- the race ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "seeds", "race", "expected"),
    [
        (9, 4, 3.0, [(1, 9), (2, 3), (4, 1)]),
        (10, 3, 2.0, [(1, 10), (2, 5), (3, 3)]),
        (5, 3, 1.0, [(3, 5)]),
        (4, 1, 3.0, [(1, 4)]),
        (2, 8, 9.0, [(1, 2), (2, 1), (4, 1), (8, 1)]),
    ],
)
def test_the_best_go_on_with_twice_as_many_seeds(trials, seeds, race, expected):
    assert list(rungs(trials, seeds, race)) == expected


def test_the_same_trial_is_found_on_any_ranks(group):
    """Each rank trains trials of its own, or all of them share each."""
    whole = run_tune(study_of(one_rank(group), STUDY))
    settings = [{}, {"parallel.spatial": group.size}]
    for found in [run_tune(study_of(group, {**STUDY, **each})) for each in settings]:
        assert found == whole
    rows = whole["rows"]
    assert [row["seeds"] for row in rows] == [2, 2, 1, 1]
    assert rows[0]["val_mean"] >= rows[1]["val_mean"]
    assert rows[2]["val_mean"] >= rows[3]["val_mean"]
    assert whole["best"]["settings"] == dict(each.split("=") for each in rows[0]["settings"].split())
    assert 0 <= whole["best"]["test_mean"] <= 1


def test_trials_that_end_badly_are_last_and_say_why(group):
    found = run_tune(study_of(group, {**STUDY, "study.vary": ["learning_rate 0.01 1e38"]}))
    assert found["best"]["settings"] == {"learning_rate": "0.01"}
    last = found["rows"][-1]
    assert last["val_mean"] is None
    assert "epoch" in last["failed"]
    with pytest.raises(NumericsError, match=r"study\.vary: none of 2 trials ended well: .*epoch"):
        run_tune(study_of(group, {**STUDY, "study.vary": ["learning_rate 1e38 2e38"]}))


def test_a_falling_score_is_best_where_it_is_least(group):
    found = run_tune(study_of(group, {**STUDY, "gnn.watch": "loss", "study.race": 1.0}))
    means = [row["val_mean"] for row in found["rows"]]
    assert means == sorted(means)
    assert found["rows"][0]["score"] == "validation loss"


def test_without_validation_nodes_nothing_can_be_compared():
    graph = nx.path_graph(6)
    with pytest.raises(CaseError, match="tuning compares scores of validation nodes; there are none"):
        classify(graph, labels=[0, 1] * 3, train=[0, 1], test=[2, 3], vary={"hidden": [2, 3]})


# ---- what a run leaves ------------------------------------------------------------------------------------


@alone
def test_a_run_leaves_the_table_and_a_case_that_trains_with_the_best_settings(group, tmp_path):
    found = run_tune(study_of(group, {**STUDY, "run.name": "t"}, tmp_path / "out"))
    with open(tmp_path / "out" / "tune.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["place"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["settings"] for row in rows] == [row["settings"] for row in found["rows"]]
    best = load(str(tmp_path / "out" / "best.toml"), [])
    assert (best.run.task, best.run.name, best.graph.nodes) == ("classify", "t_best", 60)
    assert rows[0]["settings"] == f"model={best.gnn.model} learning_rate={best.gnn.learning_rate}"
    assert best.gnn.hidden == 4


# ---- from Python ------------------------------------------------------------------------------------------


def test_from_python_the_best_settings_are_trained_with():
    graph = nx.planted_partition_graph(3, 15, 0.4, 0.05, seed=1)
    X = np.random.default_rng(2).normal(size=(45, 4)) + np.repeat(np.eye(3, 4) * 2, 15, axis=0)
    labels = [i // 15 for i in range(45)]
    sets = {"train": range(0, 45, 3), "val": range(1, 45, 3), "test": range(2, 45, 3)}
    settings = {"gnn.epochs": 8, "study.seeds": [1, 2], "study.trials": 5, "seed": 1}
    vary = {"gnn.hidden": [4, 8], "learning_rate": (0.001, 0.1)}
    found = classify(graph, X, labels, **sets, vary=vary, settings=settings)
    assert len(found.trials) == 5
    assert set(found.settings) == {"gnn.hidden", "gnn.learning_rate"}
    assert "5 trials" in repr(found)
    again = classify(graph, X, labels, **sets, settings={"gnn.epochs": 8, "seed": 1, **found.settings})
    assert again.digest == found.best.digest
    assert math.isclose(found.trials[0]["val_mean"], max(row["val_mean"] for row in found.trials[:2]))


@pytest.mark.parametrize(
    ("vary", "more", "said"),
    [
        ({"hidden": 3}, {}, "vary: hidden: a list of values or a pair"),
        ({"hidden": [2, 3]}, {"folds": 3}, "folds: given beside vary"),
        ({"hidden": [2, 3]}, {"weights": "w.npz"}, "weights: given beside vary"),
    ],
)
def test_what_python_cannot_vary_is_refused(vary, more, said):
    with pytest.raises(CaseError, match=said):
        classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], val=[2], vary=vary, **more)
