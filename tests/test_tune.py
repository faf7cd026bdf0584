"""The study of kind tune, and classify(..., vary={...}): which settings are tried, and which are found."""

import csv
import math
import sys

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from jobs import PROGRAM, mpirun, run_job
from test_gnn_studies import alone as one_rank
from test_gnn_studies import study_of

from app import classify, classify_relational, predict_links
from app.api.tune import texts_of
from app.case.file import build, load
from app.errors import CaseError, NumericsError
from app.log import Log
from app.tasks.context import Context
from app.tasks.studies.gnn_tune import plan_of, run_tune, rungs
from app.tasks.studies.trials import Varied, make_trials
from app.tasks.studies.tuned import GraphTuned
from app.text import toml_value

alone = pytest.mark.mpi_skip
BASE = {"run.task": "study", "study.kind": "tune"}
STUDY = {
    "study.kind": "tune", "study.seeds": [3, 4], "gnn.hidden": 4, "gnn.epochs": 4, "graph.nodes": 60,
    "graph.random_classes": 3, "graph.random_features": 4, "graph.generator": "sbm", "gnn.keep": "best",
    "study.vary": ["model gcn sage", "learning_rate 0.01 0.1"],
}  # fmt: skip


def trials_of(vary, **more):
    return make_trials(build({**BASE, "study.vary": vary, **more})).possible


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


def test_a_key_decides_whether_its_numbers_are_whole_and_narrow_ranges_have_more_digits():
    found = trials_of(["weight_decay 0..1"], **{"study.trials": 20})
    assert len({each.gnn.weight_decay for each in found}) == 20
    assert {each.gnn.hidden for each in trials_of(["hidden 1023..1025"], **{"study.trials": 20})} == {
        1023, 1024, 1025,
    }  # fmt: skip
    found = trials_of(["dropout 0.9995..0.9999"], **{"study.trials": 9})
    assert len(found) == 9
    assert all(0.9995 <= each.gnn.dropout <= 0.9999 for each in found)


@pytest.mark.parametrize("text", ["1e-3..1e+1", "1E-3..1E1", ".001..10"])
def test_ends_of_a_range_are_written_as_numbers_are(text):
    more = {"study.trials": 5}
    assert texts([f"learning_rate {text}"], **more) == texts(["learning_rate 0.001..10.0"], **more)


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
        (["hidden 8..1.2.3"], {"study.trials": 3}, "at least two values, each once, or a range"),
        (["hidden 8..." + "9" * 999], {"study.trials": 3}, r"found 8\.\.\.9+\.\.\.9+; A\.\.B"),
        (["hidden 8....16"], {"study.trials": 3}, "at least two values, each once, or a range"),
        (["hidden 0..1"], {"study.trials": 9}, r"study\.vary: hidden=0: gnn\.hidden: must be"),
        (["dropout 0.1..2"], {"study.trials": 9}, r"study\.vary: dropout=2\.0: gnn\.dropout: must be"),
        (["bias 0..1"], {"study.trials": 3}, "bias has no range; its values one by one"),
        (["model 1..2"], {"study.trials": 3}, "model has no range; its values one by one"),
        (["hidden 8 x"], {}, r"study\.vary: hidden=x: .*gnn\.hidden"),
        (["hidden 8 " + "9" * 5000], {}, r"gnn\.hidden: must be a whole number"),
        (["hidden 8 " + "[" * 5000], {}, r"gnn\.hidden: must be a whole number"),
        (["hidden 8 " + "x" * 5000], {}, r"gnn\.hidden: must be a whole number"),
        (["hidden 8 \u202e16"], {}, r"study\.vary: hidden=\\u202e16: "),
        (["baselines true false"], {}, '"baselines" is not tried'),
        (["heads 1 2"], {}, r"study\.vary: heads is not read by any of the trials"),
        (["hidden 8 16"], {"gnn.heads": 3}, r"gnn\.heads: is not read by any of the trials"),
        (["model gcn nothing"], {}, "unknown layer 'nothing'"),
        (["hidden 8 16"], {"study.datasets": ["x.npz"]}, r"study\.datasets: is not read by"),
        (["class_weights equal balanced"], {"gnn.watch": "loss"}, "class_weights change the loss"),
        (["warmup 6 9"], {"gnn.epochs": 5}, r"study\.vary: warmup=6: gnn\.warmup: less than gnn\.epochs"),
        (["heads 3 5"], {"gnn.model": "gat"}, r"study\.vary: heads=3: "),
        (["links.dimension 2 3"], {}, r'study\.vary: "links.dimension 2 3": \[links\] is read by gnn\.level'),
        (["links.pairs a b"], {"gnn.level": "link"}, '"links.pairs" is not tried; dimension, loss'),
        (["links.dim 2 3"], {"gnn.level": "link"}, r'"links.dim" is no key of \[links\]'),
        (["links.loss bpr nothing"], {"gnn.level": "link"}, r"study\.vary: links\.loss=nothing: "),
        (["rgcn.hidden 2 3"], {}, r'gnn\.model = "rgcn", whose keys these are, would be right'),
        (["hidden 2 3"], {"gnn.model": "rgcn"}, r'a key "rgcn\.KEY" of \[rgcn\] would be right'),
        (["rgcn.parts 2 3"], {"gnn.model": "rgcn"}, '"rgcn.parts" is not tried; hidden, layers'),
        (["rgcn.hiden 2 3"], {"gnn.model": "rgcn"}, r'"rgcn.hiden" is no key of \[rgcn\]'),
        (["rgcn.scorer complex distmult"], {"gnn.model": "rgcn"}, r'read with rgcn\.goal = "links"'),
        (["rgcn.keep best last"], {"gnn.model": "rgcn", "rgcn.goal": "links"}, r'rgcn\.goal = "classes"'),
        (["rgcn.dropout 0..0.5"], {"gnn.model": "rgcn", "rgcn.layers": 1, "study.trials": 3},
         r"study\.vary: rgcn\.dropout is not read by any of the trials"),
        (["rgcn.hidden 2 3"], {"gnn.model": "rgcn", "rgcn.epochs": 0}, r"rgcn\.epochs: must be at least 1"),
        (["depth " + " ".join(map(str, range(1, 200))), "hidden " + " ".join(map(str, range(1, 200)))], {},
         r"39,601 combinations; study\.trials would draw"),
    ],
)  # fmt: skip
def test_what_cannot_be_tried_is_refused_before_anything_is_read(vary, more, said):
    with pytest.raises(CaseError, match=said) as caught:
        trials_of(vary, **more)
    said = str(caught.value)
    assert said.isascii()
    assert said.isprintable()
    assert len(said) < 400


@pytest.mark.parametrize("key", ["vary", "trials", "race"])
def test_keys_of_tuning_are_refused_in_other_studies(key):
    value = {"vary": ["hidden 2 3"], "trials": 3, "race": 2.0}[key]
    with pytest.raises(CaseError, match=rf'study\.{key}: is read by study\.kind = "tune" alone'):
        build({"run.task": "study", "study.kind": "models", f"study.{key}": value})


def test_settings_that_are_impossible_together_are_left_out():
    found = make_trials(build({**BASE, "study.vary": ["model gcn gat", "heads 2 4", "hidden 6 8"]}))
    assert [each.name for each in found.possible] == [
        "model=gcn hidden=6", "model=gcn hidden=8", "model=gat heads=2 hidden=6",
        "model=gat heads=2 hidden=8", "model=gat heads=4 hidden=8",
    ]  # fmt: skip
    ((name, why),) = found.impossible.items()
    assert name == "model=gat heads=4 hidden=6"
    assert "4" in why and "6" in why
    found = make_trials(build({**BASE, "gnn.epochs": 5, "study.vary": ["warmup 1 9"]}))
    assert [each.name for each in found.possible] == ["warmup=1"]
    assert found.impossible == {"warmup=9": "gnn.warmup: less than gnn.epochs = 5 would be right, got 9"}


def test_keys_of_links_are_tried_where_pairs_are_scored():
    more = {"gnn.level": "link", "study.trials": 6, "graph.generator": "er", "graph.nodes": 20}
    vary = ["links.dimension 4..64", "links.loss logistic bpr", "links.negatives 1 1.5", "depth 1 2"]
    found = make_trials(build({**BASE, **more, "study.vary": vary, "study.trials": 40}))
    assert all(
        4 <= each.links.dimension <= 64 and each.links.negatives in (1, 1.5) for each in found.possible
    )
    assert {each.links.loss for each in found.possible} == {"logistic", "bpr"}
    assert all("must be whole for links.loss = bpr" in why for why in found.impossible.values())
    assert found.impossible and not any("1.5" in each.name and "bpr" in each.name for each in found.possible)


def test_many_trials_of_many_keys_are_looked_at_once_each(monkeypatch):
    asked = []
    monkeypatch.setattr("app.tasks.studies.trials.check_layers", asked.append)
    vary = ["learning_rate 1e-4..1e-1", "weight_decay 1e-6..1e-2", "dropout 0..0.8", "hidden 8 16"]
    found = make_trials(build({**BASE, "study.vary": vary, "study.trials": 300}))
    assert len(found.possible) == 300
    assert len(asked) < 20  # of both widths, and of each key


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
    whole = by_one(lambda: run_tune(study_of(one_rank(group), STUDY)))
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


def test_a_trial_that_ends_badly_with_a_later_seed_gives_its_place_to_the_next(group, monkeypatch):
    """The best of the first seed, 0.4, fails with the second one, as does the next; 0.2 goes on alone."""
    trained = []

    def train_once(self, trial, seed):
        value, fails = trial.gnn.learning_rate, seed == 4 and trial.gnn.learning_rate > 0.2
        trained.append((value, seed))
        return {
            "seed": seed, "weights": 1, "failed": "epoch 1" if fails else "", "score": "accuracy",
            "val": None if fails else value, "test": 0.5, "epochs": 1, "digest": "",
        }  # fmt: skip

    monkeypatch.setattr(GraphTuned, "train_once", train_once)
    vary = ["learning_rate 0.1 0.2 0.3 0.4"]
    found = run_tune(study_of(group, {**STUDY, "study.vary": vary, "study.race": 4.0}))
    assert [row["settings"][14:] for row in found["rows"]] == ["0.2", "0.1", "0.3", "0.4"]
    assert [row["seeds"] for row in found["rows"]] == [2, 1, 2, 2]
    assert [bool(row["failed"]) for row in found["rows"]] == [False, False, True, True]
    if group.size == 1:
        assert trained[4:] == [(0.4, 4), (0.3, 4), (0.2, 4)]
    with pytest.raises(NumericsError, match="none of 2 trials ended well: epoch 1"):
        run_tune(study_of(group, {**STUDY, "study.vary": ["learning_rate 0.3 0.4"]}))


def test_a_trial_that_does_not_fit_the_memory_is_named(group):
    with pytest.raises(CaseError, match=r"study\.vary: hidden=4: memory limit"):
        run_tune(study_of(group, {**STUDY, "study.vary": ["hidden 4 8"], "memory.fast_mb": 1e-5}))


def test_a_trial_that_the_data_rule_out_is_left_out_and_listed(group, tmp_path):
    """That it does not fit the memory is found when it begins; in every way that ranks share trials."""
    asked = {**STUDY, "study.vary": ["hidden 4 4000 8"], "memory.fast_mb": 1.0}
    found = run_tune(study_of(group, asked))
    assert sorted(row["settings"] for row in found["rows"]) == ["hidden=4", "hidden=8"]
    assert list(found["not_possible"]) == ["hidden=4000"]
    assert found["not_possible"]["hidden=4000"].startswith("memory limit")
    kept = run_tune(study_of(group, {**STUDY, "study.vary": ["hidden 4 8"]}))
    assert [row["val_mean"] for row in found["rows"]] == [row["val_mean"] for row in kept["rows"]]


@alone
def test_what_the_data_rule_out_is_told_from_python_too(group):
    graph = nx.karate_club_graph()
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = -1.0 if u == 0 else 1.0
    labels = [int(node > 16) for node in graph]
    found = classify(
        graph, labels=labels, train=[0, 1, 30, 31], val=[2, 3, 28, 29], vary={"edge_weights": [True, False]},
        settings={"gnn.epochs": 3, "study.seeds": [1]},
    )  # fmt: skip
    assert list(found.not_possible) == ["edge_weights=true"]
    assert "negative" in found.not_possible["edge_weights=true"]
    assert [row["settings"] for row in found.trials] == ["edge_weights=false"]


def test_a_falling_score_is_best_where_it_is_least(group):
    found = run_tune(study_of(group, {**STUDY, "gnn.watch": "loss", "study.race": 1.0}))
    means = [row["val_mean"] for row in found["rows"]]
    assert means == sorted(means)
    assert found["rows"][0]["score"] == "validation loss"


def test_without_validation_nodes_nothing_can_be_compared():
    graph = nx.path_graph(6)
    with pytest.raises(CaseError, match="tuning compares scores of validation nodes; there are none"):
        classify(graph, labels=[0, 1] * 3, train=[0, 1], test=[2, 3], vary={"hidden": [2, 3]})


# ---- knowledge graphs -------------------------------------------------------------------------------------


RELATIONAL = {
    **BASE, "study.seeds": [1, 2], "gnn.model": "rgcn", "graph.generator": "ba", "graph.nodes": 60,
    "graph.d": 3, "rgcn.relations": 3, "rgcn.bases": 0, "rgcn.goal": "links", "rgcn.epochs": 4,
    "rgcn.dimension": 4, "rgcn.evaluate_every": 2, "rgcn.validation": 0.2,
    "study.vary": ["rgcn.scorer complex distmult", "rgcn.layers 1 2", "rgcn.hidden 3 5"],
}  # fmt: skip


def context_of(group, settings):
    return Context(build(settings), group, Log(False), None)


def test_keys_of_relational_networks_are_tried():
    """What a single layer does not read makes no further trials; impossible ones are listed."""
    trials = make_trials(build(RELATIONAL))
    assert [each.name for each in trials.possible][:4] == [
        "rgcn.scorer=complex rgcn.layers=1", "rgcn.scorer=complex rgcn.layers=2 rgcn.hidden=3",
        "rgcn.scorer=complex rgcn.layers=2 rgcn.hidden=5", "rgcn.scorer=distmult rgcn.layers=1",
    ]  # fmt: skip
    losses = {**RELATIONAL, "study.vary": ["rgcn.loss sigmoid softmax", "rgcn.negatives 2 3"]}
    assert [each.name for each in make_trials(build(losses)).possible] == [
        "rgcn.loss=sigmoid rgcn.negatives=2", "rgcn.loss=sigmoid rgcn.negatives=3", "rgcn.loss=softmax",
    ]  # fmt: skip
    some = {**RELATIONAL, "study.vary": ["rgcn.loss sigmoid softmax", "rgcn.candidates 0 9"]}
    assert [each.name for each in make_trials(build(some)).possible] == [
        "rgcn.loss=sigmoid", "rgcn.loss=softmax rgcn.candidates=0", "rgcn.loss=softmax rgcn.candidates=9",
    ]  # fmt: skip
    apart = {**RELATIONAL, "study.vary": ["rgcn.scorer complex transe", "rgcn.margin 3 9"]}
    assert [each.name for each in make_trials(build(apart)).possible] == [
        "rgcn.scorer=complex", "rgcn.scorer=transe rgcn.margin=3", "rgcn.scorer=transe rgcn.margin=9",
    ]  # fmt: skip
    layers = {**RELATIONAL, "study.vary": ["rgcn.layers 1 2"], "rgcn.dropout": 0.3}
    assert [each.rgcn.dropout for each in make_trials(build(layers)).possible] == [0.0, 0.3]
    none = {**RELATIONAL, "study.vary": ["rgcn.layers 0 1"], "rgcn.partition": "rows"}
    assert [each.rgcn.partition for each in make_trials(build(none)).possible] == ["relations", "rows"]
    more = {**RELATIONAL, "study.vary": ["rgcn.loops false true", "rgcn.ask_relations 0 0.5"]}
    found = [(each.rgcn.loops, each.rgcn.ask_relations) for each in make_trials(build(more)).possible]
    assert found == [(False, 0.0), (False, 0.5), (True, 0.0), (True, 0.5)]
    odd = build({**RELATIONAL, "study.vary": ["rgcn.dimension 4 5 6"]})
    assert plan_of(odd) == "2 trials: 2 with 1 seed, 1 with 2 seeds; 1 more not possible"
    trials = make_trials(odd)
    assert [each.rgcn.dimension for each in trials.possible] == [4, 6]
    assert list(trials.impossible) == ["rgcn.dimension=5"]
    assert "an even number would be right" in trials.impossible["rgcn.dimension=5"]


def test_the_same_relational_trial_is_found_on_any_ranks(group):
    whole = by_one(lambda: run_tune(context_of(one_rank(group), RELATIONAL)))
    for more in ({}, {"parallel.spatial": group.size}):
        assert run_tune(context_of(group, {**RELATIONAL, **more})) == whole
    assert [row["seeds"] for row in whole["rows"]] == [2, 2, 1, 1, 1, 1]
    assert whole["best"]["score"] == "validation mean reciprocal rank"
    assert 0 < whole["best"]["test_mean"] < 1


def test_relational_trials_that_end_badly_or_do_not_fit_are_told(group):
    found = run_tune(context_of(group, {**RELATIONAL, "study.vary": ["rgcn.learning_rate 0.01 1e38"]}))
    assert found["best"]["settings"] == {"rgcn.learning_rate": "0.01"} and found["rows"][-1]["failed"]
    with pytest.raises(CaseError, match="tuning compares scores of validation triples; there are none"):
        run_tune(context_of(group, {**RELATIONAL, "rgcn.validation": 0.0}))
    with pytest.raises(CaseError, match=r"rgcn\.weights: is read by no study"):
        build({**RELATIONAL, "rgcn.weights": __file__})


@pytest.mark.parametrize("goal", ["links", "classes"])
def test_relational_networks_are_tuned_from_python(group, goal):
    """The best settings give the network that a call with them trains."""
    draws = np.random.default_rng(3)
    rows = np.stack(
        [draws.integers(0, 30, 120), draws.integers(0, 3, 120), draws.integers(0, 30, 120)], axis=1
    )
    settings, seeds = {"rgcn.epochs": 6, "rgcn.bases": 0, "seed": 1}, {"study.seeds": [1, 2]}
    if goal == "links":
        settings["rgcn.dimension"] = 4
        call, beside = predict_links, {"val": rows[100:110], "test": rows[110:]}
        rows, vary = rows[:100], {"rgcn.scorer": ["complex", "distmult"], "rgcn.layers": [1, 2]}
    else:
        call, beside = (
            classify_relational,
            {"labels": np.arange(30) % 2, "train": range(10), "val": range(10, 20)},
        )
        vary = {"rgcn.hidden": [3, 5], "rgcn.dropout": [0.0, 0.3]}
        settings["rgcn.keep"] = "best"
    found = call(rows, **beside, vary=vary, settings=settings | seeds, comm=group.comm)
    assert len(found.trials) == 4 and set(found.settings) == set(vary)
    again = call(rows, **beside, settings={**settings, **found.settings}, comm=group.comm)
    assert again.digest == found.best.digest
    assert {row["seeds"] for row in found.trials} == {1, 2} and 0 <= found.test_mean <= 1


@alone
def test_a_relational_run_leaves_a_case_that_trains_with_the_best_settings(tmp_path):
    keys = [f"{key}={toml_value(value)}" for key, value in RELATIONAL.items()] + ["output.plots=false"]
    case = tmp_path / "c.toml"
    case.write_text("")
    program = [sys.executable, PROGRAM, case, *keys, "--out"]
    code, printed = run_job([*program, tmp_path / "dry", "--dry-run"], limit_s=60)
    assert code == 0 and "# 6 trials: 6 with 1 seed, 2 with 2 seeds" in printed, printed
    assert "an epoch with its evaluations" in printed
    code, printed = run_job([*program, tmp_path / "out"], limit_s=120)
    assert code == 0, printed
    best = load(str(tmp_path / "out" / "best.toml"), [])
    with open(tmp_path / "out" / "tune.csv") as file:
        first = next(csv.DictReader(file))["settings"]
    assert f"rgcn.scorer={best.rgcn.scorer} rgcn.layers={best.rgcn.layers}" in first
    best_case = [sys.executable, PROGRAM, tmp_path / "out" / "best.toml", "--out", tmp_path / "best"]
    code, printed = run_job(best_case, limit_s=60)
    assert code == 0 and "learned" in printed, printed


# ---- what a run leaves ------------------------------------------------------------------------------------


@alone
def test_what_is_left_out_is_told_in_the_table(group, tmp_path):
    asked = {**STUDY, "gnn.model": "gat", "study.vary": ["heads 2 3", "learning_rate 0.01 0.1"]}
    found = run_tune(study_of(group, asked, tmp_path / "out"))
    assert list(found["not_possible"]) == ["heads=3 learning_rate=0.01", "heads=3 learning_rate=0.1"]
    with open(tmp_path / "out" / "tune.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["place"] for row in rows] == ["1", "2", "", ""]
    assert all(row["failed"].startswith("not possible: ") for row in rows[2:])


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


def dry_run(folder, ranks, *words):
    """Exit code and what is printed of the case in inputs/."""
    program = [sys.executable, PROGRAM, "inputs/study_tune.toml", "--dry-run", "--out", folder / "none"]
    return run_job([*(mpirun(ranks) if ranks > 1 else []), *program, *words])


@alone
def test_a_dry_run_says_what_would_be_trained_and_refuses_what_cannot(tmp_path):
    words = "study.trials=0", "study.seeds=[1, 2, 3]"
    code, printed = dry_run(tmp_path, 1, 'study.vary=["hidden 2 4"]', *words)
    assert code == 0, printed
    assert "# 2 trials: 2 with 1 seed, 1 with 2 seeds, 1 with 3 seeds" in printed
    code, printed = dry_run(tmp_path, 1, 'study.vary=["hidden 2"]', *words)
    assert code == 2, printed
    assert 'lockstep: error: study.vary: "hidden 2": at least two values' in printed


@alone
def test_ranks_share_a_trial_as_parallel_spatial_says_whatever_parallel_data(tmp_path):
    code, printed = dry_run(tmp_path, 2, "parallel.spatial=1")
    assert code == 0, printed
    code, printed = dry_run(tmp_path, 2, "parallel.spatial=3")
    assert code == 2, printed
    assert "parallel.spatial: must divide the 2 ranks: 1, 2; got 3" in printed


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


@pytest.mark.parametrize(("key", "words"), [("model", ["gcn", "sage"]), ("schedule", ["constant", "cosine"])])
def test_words_are_varied_from_python(key, words):
    labels, settings = [0, 1, 0, 1, 0, 1], {"gnn.epochs": 2, "study.seeds": [1]}
    sets = {"train": [0, 1], "val": [2, 3], "test": [4, 5]}
    found = classify(nx.path_graph(6), labels=labels, **sets, vary={key: words}, settings=settings)
    assert len(found.trials) == 2 and not found.not_possible
    assert found.settings[f"gnn.{key}"] in words


def test_numbers_of_numpy_are_varied_as_those_of_python():
    pair = np.float64(0.001), np.float32(0.5)
    assert texts_of({"gnn.learning_rate": pair, "hidden": [np.int64(4), 8]}) == [
        "learning_rate 0.001..0.5", "hidden 4 8",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("vary", "more", "said"),
    [
        ({"hidden": 3}, {}, "vary: hidden: a list of values or a pair"),
        ({"bias": (True, False)}, {}, "vary: bias: a list of values or a pair of numbers"),
        ({"model": ("gcn", "sage")}, {}, "vary: model: a list of values or a pair of numbers"),
        ({"model": ["gcn", "sage gat"]}, {}, r"vary: found .*sage gat.*; a word or a number, without blanks"),
        ({"": [2, 3]}, {}, 'vary: found ""; a word or a number'),
        (["hidden 2 3"], {}, "vary: found a list; .* a mapping of keys"),
        ({"hidden": [2, 3]}, {"folds": 3}, "folds: given beside vary"),
        ({"hidden": [2, 3]}, {"weights": "w.npz"}, "weights: given beside vary"),
    ],
)
def test_what_python_cannot_vary_is_refused(vary, more, said):
    with pytest.raises(CaseError, match=said):
        classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], val=[2], vary=vary, **more)


def test_what_one_rank_cannot_vary_is_refused_on_all(group):
    vary = {"hidden": 3 if group.rank == group.size - 1 else [2, 3]}
    with pytest.raises(CaseError, match="vary: hidden: a list of values"):
        classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], val=[2], vary=vary)
