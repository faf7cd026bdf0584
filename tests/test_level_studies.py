"""Studies of edges and links: folds, tuning, importance; and what trained weights of links know."""

import csv

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from test_gnn_studies import alone as one_rank

from app import classify, classify_edges, find_links
from app.case.file import build, load
from app.comm.group import Group
from app.errors import CaseError
from app.gnn.saved import load_model
from app.graphs.nodes.of_edges import EdgeLabels
from app.log import Log
from app.model.node_plan import ranking_lines, training_of
from app.model.plan import rates_of
from app.output import RunFolder
from app.tasks.classify import run_classify
from app.tasks.context import Context
from app.tasks.levels.table import LEVELS
from app.tasks.studies.gnn_folds import run_folds
from app.tasks.studies.gnn_tune import run_tune

alone = pytest.mark.mpi_skip
GRAPH = {
    "graph.generator": "sbm", "graph.nodes": 90, "graph.random_classes": 3, "graph.random_features": 6,
    "graph.degree_in": 6.0, "graph.degree_out": 2.0, "gnn.hidden": 4, "gnn.epochs": 4, "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.feature_rows": "as_given", "gnn.keep": "best",
}  # fmt: skip
SIDES = {
    "graph.generator": "bipartite", "graph.nodes": 90, "graph.elements": 40, "graph.random_classes": 3,
    "graph.degree_in": 5.0, "graph.degree_out": 1.0, "gnn.level": "link", "gnn.model": "lightgcn",
    "gnn.depth": 1, "gnn.input_dropout": 0.0, "gnn.epochs": 4, "links.between": "sides",
    "links.loss": "bpr", "links.rank_each": 5, "gnn.watch": "ndcg", "links.dimension": 4,
}  # fmt: skip
LEVEL = {
    "edge": GRAPH | {"gnn.level": "edge", "gnn.model": "sage", "graph.edge_splits": "random"},
    "link": GRAPH | {"gnn.level": "link", "links.dimension": 4},
    "sides": SIDES,
}
FOLDS = {"run.task": "study", "study.kind": "folds", "study.folds": 3, "study.seeds": [2]}
TUNE = {
    "run.task": "study", "study.kind": "tune", "study.seeds": [3, 4],
    "study.vary": ["learning_rate 0.01 0.1"],
}  # fmt: skip


def context_of(group, settings, path=None):
    """A context of a case; it writes where a path is given."""
    folder = RunFolder(group, str(path), True) if path else None
    return Context(build({"output.plots": False, **settings}), group, Log(False), folder)


def folds_of(group, level, **more):
    asked = LEVEL[level] | FOLDS | more
    if level == "edge":
        asked["graph.edge_splits"] = ""
    return asked


# ---- folds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", list(LEVEL))
def test_a_study_of_folds_is_the_same_on_any_ranks(group, shared_path, level):
    asked = folds_of(group, level)
    found = run_folds(context_of(group, asked, shared_path / "out"))
    again = by_one(lambda: run_folds(context_of(one_rank(group), asked)))
    assert again == found
    assert len(found["folds"]) == 3
    (row,) = found["rows"]
    assert row["test_mean"] == pytest.approx(np.mean([each["test"] for each in found["folds"]]))
    if group.rank == 0:
        with open(shared_path / "out" / "folds.csv") as file:
            lines = list(csv.DictReader(file))
        sizes = [[int(line[f"{name}_edges"]) for name in ("train", "val", "test")] for line in lines[:3]]
        assert len({sum(each) for each in sizes}) == 1  # of all edges
        assert sum(each[2] for each in sizes) == sum(sizes[0])  # each is tested once
        assert sizes[0][1] == sizes[1][2]  # the next fold is for validation
    group.barrier()
    rules = {"edge": "test_ends", "link": "test_adamic_adar", "sides": "test_l3"}
    assert row[f"{rules[level]}_mean"] is not None
    if level == "sides":
        assert 0 <= row["recall_5_mean"] <= 1


@pytest.mark.parametrize("order", ["natural", "random"])
def test_edges_are_dealt_to_folds_evenly_from_both_ends(group, order):
    found = []
    for ranks in (group, one_rank(group)):
        context = context_of(ranks, folds_of(ranks, "edge", **{"graph.order": order}))
        examples = LEVELS["edge"](context)
        labels, graph = examples.labels, examples.loaded.graph
        fold = examples.folds(context, 5, 4)
        ends = np.stack([graph.row_of(), graph.indices.astype(np.int64)], axis=1)
        old = examples.loaded.order_all
        ends = np.sort(ends if old is None else old[ends], axis=1)
        rows = np.column_stack([ends, fold, labels.about.labels])
        sizes = ranks.gather_integers(np.array([len(rows)]))[:, 0].tolist()
        rows = ranks.gather_host(np.ascontiguousarray(rows.astype(np.int64)), sizes)
        found.append(rows[np.lexsort(rows.T[::-1])])
    assert (found[0] == found[1]).all()
    assert (found[0][::2] == found[0][1::2]).all()  # both entries of an edge
    table = np.array([np.bincount(found[0][found[0][:, 3] == c, 2], minlength=4) for c in (0, 1)])
    assert (np.ptp(table, axis=1) <= 2).all()  # entries, two an edge
    part = examples.of_fold(context, fold, 1, 2).labels
    assert isinstance(part, EdgeLabels)
    assert (part.about.test == (fold == 1)).all() and (part.about.val == (fold == 2)).all()


def test_more_folds_than_edges_are_refused(group):
    for level, what in (("edge", "labelled edges"), ("link", "edges")):
        context = context_of(group, folds_of(group, level))
        examples = LEVELS[level](context)
        with pytest.raises(CaseError, match=rf"study\.folds: found 9999; at most \d+, the {what} of sbm"):
            examples.folds(context, 1, 9999)


def test_importance_is_told_by_means_over_folds(group, shared_path):
    asked = folds_of(group, "link", **{"output.importance": 2, "study.seeds": [1, 2]})
    found = run_folds(context_of(group, asked, shared_path / "out"))["rows"][0]["importance"]
    again = by_one(lambda: run_folds(context_of(one_rank(group), asked)))["rows"][0]["importance"]
    assert found == again
    assert sum(row["trainings"] for row in found) == 2 * 6
    lost = [row["score_lost"] for row in found]
    assert lost == sorted(lost, reverse=True)
    if group.rank == 0:
        (path,) = (shared_path / "out" / "importance").iterdir()
        assert path.read_text().startswith("feature,trainings,part,score_lost,loss_added")
    group.barrier()


# ---- tuning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", list(LEVEL))
def test_the_same_settings_are_found_on_any_ranks(group, level):
    asked = LEVEL[level] | TUNE
    if level != "edge":
        asked["study.vary"] = [*TUNE["study.vary"], "links.dimension 2 4"]
    whole = by_one(lambda: run_tune(context_of(one_rank(group), asked)))
    for more in ({}, {"parallel.spatial": group.size}):
        assert run_tune(context_of(group, asked | more)) == whole
    words = {"edge": "validation micro F1", "link": "validation area under the ROC curve"}
    assert whole["rows"][0]["score"] == words.get(level, "validation NDCG")
    assert 0 <= whole["best"]["test_mean"] <= 1
    if level == "sides":
        assert whole["best"]["test_score"] == "NDCG"


@alone
def test_the_best_case_trains_with_the_keys_of_links(group, tmp_path):
    asked = LEVEL["link"] | TUNE | {"study.vary": ["links.dimension 2 3"], "run.name": "t"}
    found = run_tune(context_of(group, asked, tmp_path / "out"))
    best = load(str(tmp_path / "out" / "best.toml"), [])
    assert str(best.links.dimension) == found["best"]["settings"]["links.dimension"]
    assert best.run.task == "classify"
    assert run_classify(Context(best, group, Log(False), None))["digest"]


def test_without_validation_edges_nothing_can_be_compared(group):
    asked = LEVEL["link"] | TUNE | {"links.validation": 0.0}
    with pytest.raises(CaseError, match="tuning compares scores of validation edges; there are none"):
        run_tune(context_of(group, asked))


# ---- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "what"), [("edge", "edges"), ("link", "links")])
def test_other_studies_name_those_that_are_of_edges_and_links(level, what):
    said = rf'gnn\.level: study\.kind = "models" is not of {what}; "tune" or "folds" would be right'
    with pytest.raises(CaseError, match=said):
        build(LEVEL[level] | {"run.task": "study", "study.kind": "models"})


@pytest.mark.parametrize(
    ("level", "more", "said"),
    [
        ("edge", {"graph.edge_splits": "a.npy"}, "graph.edge_splits: .* draws its own"),
        ("link", {"links.held_out": 0.3}, "links.held_out: is not read by study.kind"),
        ("link", {"links.validation": 0.3}, "links.validation: is not read by study.kind"),
        ("link", {"links.val_edges": "x.txt"}, "links.val_edges: is not read by study.kind"),
        ("link", {"links.propose": 3}, "links.propose: is read by run.task"),
        ("sides", {"links.propose_each": 3}, "links.propose_each: is read by run.task"),
        ("link", {"output.embeddings": True}, "output.embeddings: is read by run.task"),
        ("edge", {"output.probabilities": True}, "output.probabilities: is read by run.task"),
    ],
)
def test_keys_that_folds_do_not_read_are_refused(level, more, said):
    with pytest.raises(CaseError, match=said):
        build(LEVEL[level] | FOLDS | more)


def test_a_tuning_refuses_rankings_that_it_does_not_watch():
    build(LEVEL["sides"] | TUNE)
    for level, more in (("sides", {"gnn.watch": "auto"}), ("link", {"links.rank_each": 5})):
        with pytest.raises(CaseError, match=r"links\.rank_each: is read by study"):
            build(LEVEL[level] | TUNE | more)


@pytest.mark.parametrize(
    ("level", "more", "said"),
    [
        ("edge", {"gnn.edge_feature_rows": "standard"}, "edge_feature_rows: edges of .* have no features"),
        ("link", {"graph.random_features": 0, "output.importance": 2}, "the graph has no features"),
    ],
)
def test_folds_refuse_what_a_single_training_does_before_they_train(group, monkeypatch, level, more, said):
    monkeypatch.setattr("app.tasks.folds.fit", lambda *args, **keys: pytest.fail("trained"))
    with pytest.raises(CaseError, match=said):
        run_folds(context_of(group, folds_of(group, level, **more)))


@pytest.mark.parametrize("key", ["embeddings", "probabilities"])
@pytest.mark.parametrize("task", ["solve", "train", "study"])
def test_what_a_network_says_is_of_the_task_classify(task, key):
    with pytest.raises(CaseError, match=rf'output\.{key}: is read by run\.task = "classify" alone'):
        build({"run.task": task, "graph.generator": "er", "graph.nodes": 9, f"output.{key}": True})


# ---- from Python ------------------------------------------------------------------------------------------


def planted():
    """A graph with features of nodes, labels of edges that features of edges say, and these."""
    graph, draws = nx.gnp_random_graph(40, 0.15, seed=3), np.random.default_rng(4)
    F = draws.normal(size=(graph.size(), 3))
    return graph, draws.normal(size=(40, 3)), (F[:, 1] > 0).astype(int), F


SMALL = {"gnn.epochs": 30, "gnn.hidden": 8, "seed": 1}


def test_folds_of_edges_from_python(group):
    graph, X, labels, F = planted()
    asked = {**SMALL, "output.importance": 3}
    found = classify_edges(graph, labels, X, edge_features=F, folds=4, settings=asked, comm=group.comm)
    assert found.edges == list(graph.edges) and len(found.folds) == 4
    assert sorted(np.unique(found.fold)) == [0, 1, 2, 3]
    assert np.ptp(np.bincount(found.fold)) <= 1
    sets = {name: (found.fold == (1 + i) % 4) for i, name in enumerate(("test", "val"))}
    train = ~(sets["test"] | sets["val"])
    one = classify_edges(
        graph, labels, X, edge_features=F, train=train, **sets, settings=asked, comm=group.comm
    )
    assert (found.predicted[sets["test"]] == one.predicted[sets["test"]]).all()
    assert found.folds[1]["test"] == one.scores["test"].score
    assert found.importance[0]["feature"] == "edge feature 1"
    again = classify_edges(
        graph, labels, X, edge_features=F, folds=4, settings=asked, comm=one_rank(group).comm
    )
    assert (again.digest, again.summary) == (found.digest, found.summary)


def test_folds_of_links_without_anything_to_tell_apart(group):
    found = find_links(nx.complete_graph(5), folds=3, settings={"gnn.epochs": 2}, comm=group.comm)
    assert repr(found) == "CrossValidation(3 folds; test area under the ROC curve -)"
    with pytest.raises(CaseError, match=r"study\.folds: no edge is left to learn from beside one of 3 folds"):
        find_links(nx.path_graph(4), folds=3, comm=group.comm)


def test_negative_weights_of_one_rank_are_refused_on_all(group):
    graph = nx.cycle_graph(60)
    nx.set_edge_attributes(graph, 1.0, "weight")
    graph[0][1]["weight"] = -1.0
    asked = {"gnn.edge_weights": True, "gnn.epochs": 2}
    said = "gnn.edge_weights: the graph has negative weights"
    for more in ({"vary": {"hidden": [4, 8]}}, {"folds": 3}):
        settings = asked | ({"graph.splits": "random", "study.seeds": [1]} if "vary" in more else {})
        with pytest.raises(CaseError, match=said):
            classify(graph, None, np.arange(60) % 3, settings=settings, comm=group.comm, **more)
    with pytest.raises(CaseError, match=said):
        find_links(graph, folds=3, settings=asked, comm=group.comm)


def test_folds_of_links_tell_of_each_edge_what_others_say(group):
    graph, X, _, _ = planted()
    found = find_links(graph, X, folds=3, settings=SMALL, comm=group.comm)
    assert sorted(map(tuple, map(sorted, found.edges))) == sorted(map(tuple, map(sorted, graph.edges)))
    assert found.predicted.shape == found.fold.shape == (graph.size(),)
    assert ((found.predicted > 0) & (found.predicted < 1)).all()
    assert [row["test_edges"] for row in found.folds] == np.bincount(found.fold).tolist()
    again = find_links(graph, X, folds=3, settings=SMALL, comm=one_rank(group).comm)
    assert again.digest == found.digest and (again.predicted == found.predicted).all()
    for more, said in (
        ({"test": [(0, 1)]}, "test: given beside folds"),
        ({"settings": {"links.held_out": 0.4}}, "links.held_out: is not read beside folds"),
        ({"settings": {"output.embeddings": True}}, "output.embeddings: is not read beside folds"),
        ({"settings": {"parallel.partition": "learned"}}, 'parallel.partition: "rows" or "edges", or a'),
    ):
        with pytest.raises(CaseError, match=said):
            find_links(graph, X, folds=3, comm=group.comm, **more)


def test_the_best_settings_are_trained_with(group):
    graph, X, labels, F = planted()
    vary = {"gnn.hidden": [4, 8], "learning_rate": [0.01, 0.05]}
    asked = {"gnn.epochs": 6, "study.seeds": [1], "seed": 1}
    found = classify_edges(graph, labels, X, edge_features=F, vary=vary, settings=asked, comm=group.comm)
    assert set(found.settings) == {"gnn.hidden", "gnn.learning_rate"} and len(found.trials) == 4
    again = classify_edges(
        graph, labels, X, edge_features=F, settings={"gnn.epochs": 6, "seed": 1, **found.settings},
        comm=group.comm,
    )  # fmt: skip
    assert again.digest == found.best.digest
    vary = {"links.dimension": [2, 4], "links.loss": ["logistic", "bpr"], "links.negatives": [1.0, 1.5]}
    found = find_links(graph, X, vary=vary, settings=asked, comm=group.comm)
    assert set(found.settings) == set(vary) and len(found.trials) == 6 and len(found.not_possible) == 2
    again = find_links(graph, X, settings={"gnn.epochs": 6, "seed": 1, **found.settings}, comm=group.comm)
    assert again.digest == found.best.digest


# ---- features of edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["as_given", "standard", "one_hot"])
def test_features_of_edges_have_an_importance_beside_those_of_nodes(group, rows):
    graph, X, labels, F = planted()
    F = (F > 0).astype(int) if rows == "one_hot" else F
    asked = {**SMALL, "gnn.edge_feature_rows": rows, "output.importance": 3}
    found = classify_edges(graph, labels, X, edge_features=F, settings=asked, comm=group.comm)
    told = found.importance.edges
    assert told.feature[0] == 1 and len(told.feature) == 3 and len(found.importance.feature) == 3
    assert told.score[0] < told.whole[0]
    if rows == "as_given":  # what a column of zeros says
        changed = F.copy()
        changed[:, 1] = 0
        same = {"train": [], "val": found.edges}
        on = {"gnn.epochs": 0, "graph.edge_splits": "random", "gnn.edge_feature_rows": rows, "seed": 1}
        bare = classify_edges(
            graph, labels, X, edge_features=changed, weights=found, settings=on, comm=group.comm
        )
        assert same and bare.scores["val"].score == told.score[0]
    again = classify_edges(graph, labels, X, edge_features=F, settings=asked, comm=one_rank(group).comm)
    assert again.importance.text() == found.importance.text()
    assert "\nedge 1," in found.importance.text()
    assert any(line.startswith("without edge feature 1:") for line in found.importance.lines(3))


def test_layers_of_gine_tell_it_too(group):
    graph, X, _, F = planted()
    labels = np.zeros(40, dtype=int)
    for (u, v), row in zip(graph.edges, F):
        labels[[u, v]] += int(row[1] > 0)
    labels = (labels > np.median(labels)).astype(int)
    asked = {
        "gnn.model": "gine", "gnn.epochs": 20, "gnn.dropout": 0.0, "gnn.input_dropout": 0.0,
        "gnn.feature_rows": "as_given", "graph.splits": "random", "output.importance": 2,
    }  # fmt: skip
    found = classify(graph, X, labels, edge_features=F, settings=asked, comm=group.comm)
    assert found.importance.edges.feature.shape == (2,)
    assert "edges" in found.importance.told()


# ---- weights of links -------------------------------------------------------------------------------------


@alone
def test_weights_of_links_know_what_their_scores_mean(group, tmp_path):
    trained = run_classify(context_of(group, SIDES, tmp_path / "a"))
    path = str(tmp_path / "a" / "weights.npz")
    saved = load_model(path)
    assert (saved.links.loss, saved.links.between, saved.links.dimension) == ("bpr", "sides", 4)
    applied = SIDES | {"gnn.epochs": 0, "gnn.weights": path, "links.loss": "logistic"}
    run_classify(context_of(group, applied, tmp_path / "b"))
    files = [next((tmp_path / name / "predictions").iterdir()).read_text() for name in "ab"]
    assert files[0] == files[1] and trained["digest"]
    other = {**SIDES, "gnn.weights": path, "links.loss": "logistic", "links.dimension": 4}
    said = []
    context = context_of(group, other | {"links.between": "any", "gnn.epochs": 0})
    context.log.info = lambda text, *values: said.append(text % values if values else text)
    run_classify(context)
    assert any('have learned with links.between = "sides"; here pairs are of "any"' in line for line in said)


@alone
def test_a_plan_tells_what_rankings_take(group):
    assert isinstance(group, Group)
    case = build(SIDES | {"graph.nodes": 900, "graph.elements": 300})
    training = training_of(case, 900, 6000, 1, group.device)
    assert training.inputs.ranked.candidates == 300
    watched = [each.part for each in training.evaluation(0)]
    assert "ranking" in watched
    (line,) = ranking_lines(training, rates_of(case, 1))
    assert "among 300 each are ranked, by three plain rules too" in line
    case = build(SIDES | {"gnn.watch": "auc"})
    training = training_of(case, 90, 600, 1, group.device)
    assert "ranking" not in [each.part for each in training.evaluation(0)]
