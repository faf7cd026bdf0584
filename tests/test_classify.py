"""Task classify: the same bits on any number of ranks, saved weights applied again, wrong data refused."""

import json
import math
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from data import data_dir, needs_data
from helpers import EXCHANGES
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI

from app import classify
from app.case.file import build
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError, NumericsError
from app.gnn.areas import area_under_roc
from app.gnn.classifier import Classifier
from app.gnn.metrics import count_classes, count_hits, scores_of
from app.gnn.model import Model
from app.gnn.parameters import Parameters
from app.gnn.saved import SavedModel, load_model, save_model
from app.gnn.training import Fit, decayed_parts, ended_early, fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

COMMUNITIES, SIZE = 3, 60


def communities(seed=1, binary=False, many=False):
    """Three communities with noisy features: graph, features, labels, splits."""
    draws = np.random.default_rng(seed)
    graph = nx.planted_partition_graph(COMMUNITIES, SIZE, 0.15, 0.02, seed=seed)
    labels = np.repeat(np.arange(COMMUNITIES), SIZE)
    features = draws.normal(size=(len(labels), 8)) + 1.0 * np.eye(COMMUNITIES, 8)[labels]
    if binary:
        features = (features > 1).astype(np.float32)
    if many:
        labels = np.stack([labels == 0, labels > 0, draws.random(len(labels)) < 0.5], axis=1).astype(int)
    split = draws.integers(0, 3, len(labels))
    return graph, features, labels, [split == i for i in range(3)]


def classifier_on(group, settings, exchange="auto", sparse=False, many=False, seed=1):
    """A classifier of the communities on a group's ranks."""
    graph, features, labels, splits = communities(binary=sparse, many=many)
    case = build({"run.task": "classify", **settings})
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    X = sp.csr_array(features) if sparse else features
    table = table_of_arrays(X, labels, *splits, len(labels), values=case.gnn.goal == "values")
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, seed)


def weights_after(group, epochs=4, **options):
    """Host weights after some epochs."""
    settings = {"gnn.epochs": epochs, "gnn.hidden": 8, **options.pop("settings", {})}
    return fit(classifier_on(group, settings, **options)).weights


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_weights_are_those_of_one_rank(group, single, exchange, sparse, many):
    options = {"sparse": sparse, "many": many}
    assert same(weights_after(group, exchange=exchange, **options), weights_after(single, **options))


def test_a_plain_all_reduce_gives_other_weights(group):
    if group.size == 1:
        pytest.skip("one rank has nothing to reduce")
    plain = Group(group.comm, group.device, group.direct, reproducible=False)
    assert not same(weights_after(plain, epochs=20), weights_after(group, epochs=20))


def test_dropout_depends_on_the_seed(group):
    assert not same(weights_after(group, seed=1), weights_after(group, seed=2))


@pytest.mark.parametrize("mode", ["cached", "live"])
def test_first_products_agree(group, mode):
    plain = {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0}
    wanted = weights_after(group, settings=plain)
    found = weights_after(group, settings={**plain, "gnn.first_product": mode})
    assert all(np.allclose(wanted[name], found[name], atol=2e-3) for name in wanted)


def test_the_shortcut_of_mg_gcn_is_another_gradient(group):
    plain = {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0}
    wanted = weights_after(group, settings=plain)
    found = weights_after(group, settings={**plain, "gnn.first_product": "mg_gcn"})
    assert not np.allclose(wanted["layer1.W"], found["layer1.W"], atol=2e-3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_communities_are_found(group, sparse, many):
    settings = {"gnn.epochs": 60, "gnn.hidden": 16, "gnn.feature_rows": "as_given"}
    classifier = classifier_on(group, settings, sparse=sparse, many=many)
    first = classifier.epoch(1)
    result = fit(classifier)
    assert result.records[-1]["loss"] < 0.8 * first
    assert classifier.evaluate()["test"].micro_f1 > 0.7


def test_training_stops_early_and_keeps_the_best(group):
    settings = {"gnn.epochs": 500, "gnn.patience": 5, "gnn.keep": "best", "gnn.hidden": 8}
    classifier = classifier_on(group, settings)
    result = fit(classifier)
    assert result.epochs < 500
    assert result.epochs == result.best_epoch + 5
    best = max(row["val_score"] for row in result.records)
    assert classifier.evaluate()["val"].micro_f1 == best


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("losses", "score", "settings", "said"),
    [
        ([1.6, 1.5, 1.45, 1.4], 0.5, {}, r"after epoch 4 .*1.5 at the best epoch, 1.4 at the end"),
        ([1.6, 1.5, 1.49, 1.5], 0.5, {}, ""),  # it fell no more
        ([1.6, 1.5, 1.45, 0.4], 0.95, {}, ""),  # nearly all was learned
        ([1.6, 1.5, 1.45, 1.4], 0.5, {"gnn.patience": 0}, ""),
        ([1.6, 1.5, 1.45, 1.4], 0.5, {"gnn.epochs": 4}, ""),  # patience did not end it
    ],
)
def test_a_training_that_ended_while_it_learned_says_so(losses, score, settings, said):
    case = build({"run.task": "classify", "gnn.epochs": 9, "gnn.patience": 2, **settings}).gnn
    rows = [{"epoch": i, "loss": loss, "train_score": score} for i, loss in enumerate(losses, 1)]
    found = ended_early(Fit({}, epochs=4, best_epoch=2, records=rows), case)
    assert re.search(said, found) if said else found == ""


def test_classify_warns_of_a_training_that_ended_while_it_learned():
    graph, draws = nx.gnm_random_graph(60, 150, seed=1), np.random.default_rng(0)
    labels = np.where(np.arange(60) < 30, np.arange(60) % 3, 3)  # no score of validation ever rises
    X = draws.normal(size=(60, 6))
    settings = {"gnn.dropout": 0, "gnn.input_dropout": 0, "gnn.feature_rows": "as_given", "gnn.patience": 8}
    options = {"labels": labels, "train": range(30), "val": range(30, 60), "settings": settings}
    with pytest.warns(UserWarning, match="classify: gnn.patience ended the training after epoch"):
        found = classify(graph, X, **options)
    assert found.epochs < 200


@pytest.mark.parametrize("rate", [0.3, 2.0])
@pytest.mark.parametrize("every", [1, 4])
def test_without_validation_the_weights_of_the_least_training_loss_are_kept(group, rate, every):
    """Steps that lead down to the end, or astray: the loss of an epoch is that before its step."""
    draws = np.random.default_rng(0)
    graph, X, y = nx.gnm_random_graph(30, 60, seed=1), draws.normal(size=(30, 4)), draws.normal(size=30)
    settings = {
        "gnn.goal": "values", "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.optimiser": "sgd",
        "gnn.feature_rows": "as_given", "gnn.weight_decay": 0.0, "gnn.learning_rate": rate, "seed": 2,
        "gnn.hidden": 8, "gnn.epochs": 30, "gnn.evaluate_every": every,
    }  # fmt: skip
    best, last = (
        classify(graph, X, y, train=range(30), settings=settings | {"gnn.keep": keep}, comm=group.comm)
        for keep in ("best", "last")
    )
    known = [*(row["loss"] for row in last.records), last.scores["train"].error]
    assert best.scores["train"].error == pytest.approx(min(known), rel=1e-5)
    assert (best.digest == last.digest) == (rate < 1)


def test_the_loss_is_the_mean_over_all_training_nodes(group, device):
    classifier = classifier_on(Group(group.comm, device), {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0})
    own = classifier.scores_own()
    data = classifier.data
    rows = np.flatnonzero(data.train)
    Z = own[rows].astype(np.float64)
    logs = Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))
    part = -logs[np.arange(len(rows)), data.labels[rows]].sum()
    total = group.comm.allreduce(part) / group.comm.allreduce(len(rows))
    assert classifier.epoch(1) == pytest.approx(total, abs=1e-5)


def rare(group, settings):
    """A classifier of the communities of which two are hardly ever trained on; other nodes are tested."""
    classifier = classifier_on(
        group, {"gnn.hidden": 8, "gnn.input_dropout": 0.0, "gnn.dropout": 0.0, **settings}
    )
    data = classifier.data
    own = np.arange(classifier.block.lo, classifier.block.lo + len(data.labels))
    train = data.train & ((data.labels == 0) | (own % 7 == 0))
    test = data.labelled & ~train
    counts = [int(each) for each in group.sum_integers(np.array([train.sum(), 0, test.sum()]))]
    masks = {"train": train, "val": np.zeros_like(train), "test": test}
    changed = replace(data, **masks, counts=dict(zip(masks, counts)))
    return Classifier(group, classifier.case, classifier.block, changed, 1)


def test_balanced_classes_weigh_alike(group, device):
    group = Group(group.comm, device)
    classifier = rare(group, {"gnn.class_weights": "balanced"})
    data, (_, weight) = classifier.data, classifier._targets
    weight = device.get(weight)
    for c in range(3):
        mine = weight[data.train & (data.labels == c)].sum(dtype=np.float64)
        assert group.comm.allreduce(mine) == pytest.approx(1 / 3, abs=1e-6)
    Z, rows = classifier.scores_own().astype(np.float64), np.flatnonzero(data.train)
    losses = np.log(np.exp(Z).sum(axis=1))[rows] - Z[rows, data.labels[rows]]
    means = []
    for c in range(3):
        of = data.labels[rows] == c
        means.append(group.comm.allreduce(losses[of].sum()) / group.comm.allreduce(int(of.sum())))
    assert classifier.epoch(1) == pytest.approx(np.mean(means), abs=1e-5)


def test_rare_classes_are_found_where_classes_weigh_alike(group, single):
    scores = {}
    for kind in ("equal", "balanced"):
        classifier = rare(group, {"gnn.class_weights": kind, "gnn.epochs": 40})
        alone = rare(single, {"gnn.class_weights": kind, "gnn.epochs": 40})
        assert same(fit(classifier).weights, fit(alone).weights)
        scores[kind] = classifier.evaluate()["test"].macro_f1
    assert scores["balanced"] > scores["equal"] + 0.05


@pytest.mark.mpi_skip
def test_balanced_classes_are_of_one_class_a_node():
    settings = {"gnn.class_weights": "balanced", "gnn.epochs": 1}
    with pytest.raises(CaseError, match=r"gnn\.class_weights: balanced is for one class a node"):
        classify(nx.path_graph(3), labels=[[0, 1], [1, 1], [0, 0]], train=[0, 1], settings=settings)


def test_scores_are_those_of_counting(group):
    draws = np.random.default_rng(3)
    predicted, wanted = draws.integers(0, 4, (2, 50))
    chosen = draws.random(50) < 0.6
    hot = [np.arange(4) == each[:, None] for each in (predicted, wanted)]
    mine = chosen & (np.arange(50) % group.size == group.rank)
    (scores,) = scores_of(group, [count_hits(*hot, mine)], [int(mine.sum())], False)
    p, w = predicted[chosen], wanted[chosen]
    assert scores.accuracy == scores.micro_f1 == pytest.approx((p == w).mean())
    each = [2 * ((p == c) & (w == c)).sum() / max((p == c).sum() + (w == c).sum(), 1) for c in range(4)]
    assert scores.macro_f1 == pytest.approx(np.mean(each))
    labels = np.where(draws.random(50) < 0.2, -1, wanted)
    both = (
        count_hits(hot[0], np.arange(4) == labels[:, None], chosen),
        count_classes(predicted, labels, chosen, 4),
    )
    assert np.array_equal(*both) and both[1].dtype == np.int64
    empty = scores_of(group, [count_hits(*hot, np.zeros(50, dtype=bool))], [0], False)[0]
    assert math.isnan(empty.accuracy)


# ---- from Python ------------------------------------------------------------------------------------------


def test_from_python_and_applied_again(group, shared_path):
    graph, features, labels, (train, val, test) = communities()
    named = nx.relabel_nodes(graph, {i: f"node {i}" for i in graph})
    settings = {"gnn.epochs": 60, "gnn.feature_rows": "as_given", "gnn.layers": ["gcn 16 residual", "gcn"]}
    found = classify(
        named, features, 5 + 2 * labels, train=train, val=val, test=test, settings=settings, comm=group.comm
    )
    assert found.nodes[3] == "node 3"
    assert set(np.unique(found.predicted)) <= {5, 7, 9}
    assert found.scores["test"].accuracy > 0.7
    path = str(shared_path / "weights.npz")
    if group.rank == 0:
        found.save(path)
    group.barrier()
    applied = {"gnn.epochs": 0, "gnn.weights": path}
    again = classify(graph, features, settings=applied, comm=group.comm)
    assert np.array_equal(again.predicted, found.predicted)
    assert again.scores == {}
    one = classify(graph, features, np.full(len(labels), 7), test=test, settings=applied, comm=group.comm)
    assert one.scores["test"].accuracy == pytest.approx((found.predicted[test] == 7).mean())
    # Without sets all labelled nodes tell how good the weights are: none of them is trained on here.
    known = np.where(np.arange(len(labels)) % 3 > 0, 5 + 2 * labels, -1)
    all_of_them = classify(graph, features, known, settings=applied, comm=group.comm)
    assert all_of_them.scores["test"].nodes == (known >= 0).sum() and not all_of_them.scores["train"].nodes
    right = (found.predicted == known)[known >= 0].mean()
    assert all_of_them.scores["test"].accuracy == pytest.approx(right)
    for wrong, text in (
        ((graph, features[:, :5], None), "for nodes with 8 features; these have 5"),
        ((graph, features, np.full(len(labels), 6)), "these data have class 6 besides"),
    ):
        with pytest.raises(GraphError, match=text):
            classify(*wrong, settings=applied, comm=group.comm)


@pytest.mark.parametrize("order", ["random", "rcm"])
def test_rows_in_another_order_from_python(group, order):
    graph, features, labels, (train, val, test) = communities()
    settings = {"gnn.epochs": 60, "gnn.feature_rows": "as_given", "graph.order": order}
    masks = {"train": train, "val": val, "test": test}
    found = classify(graph, features, labels, **masks, settings=settings, comm=group.comm)
    natural = {**settings, "graph.order": "natural"}
    plain = classify(graph, features, labels, **masks, settings=natural, comm=group.comm)
    assert found.digest != plain.digest  # sums over nodes go another way
    assert (found.predicted[test] == labels[test]).mean() == found.scores["test"].accuracy > 0.7
    assert (found.predicted == plain.predicted).mean() > 0.95


def test_wrong_settings_are_refused(group):
    graph, features, labels, (train, _, _) = communities()
    for settings, text in (
        ({"gnn.layers": ["gcn", "gcn"]}, "no width"),
        ({"gnn.layers": ["gcn 8 residul", "gcn"]}, "found 'residul'"),
        ({"gnn.layers": ["gcn 8", "gcn 4"]}, "the data have 3 classes"),
        ({"gnn.model": "cnn"}, "unknown layer 'cnn'"),
        ({"gnn.hidden": 1 << 27}, "at most 268435456 would be right"),
        ({"gnn.hidden": 1 << 40, "gnn.model": "gat"}, "at most 268435456 would be right"),
        ({"gnn.epochs": 0}, "at least 1 without gnn.weights"),
        ({"gnn.depth": 1, "output.embeddings": True}, "of one layer there are none"),
    ):
        with pytest.raises(CaseError, match=text):
            classify(graph, features, labels, train=train, settings=settings, comm=group.comm)
    with pytest.raises(CaseError, match="no labels"):
        classify(graph, features, comm=group.comm)
    with pytest.raises(CaseError, match="no node is to be trained on"):
        classify(graph, features, labels, comm=group.comm)


@pytest.mark.mpi_skip
def test_all_that_is_drawn_decays():
    """A matrix of one row, of one feature, too; biases and what else begins as a constant do not."""
    graph, features = nx.path_graph(6), np.arange(6.0)[:, None]
    settings = {"gnn.model": "gin_norm", "gnn.weight_decay": 0.5, "gnn.decayed": "all", "gnn.epochs": 1}
    digests = {
        classify(graph, features, [0, 1] * 3, train=range(4), settings={**settings, **more}).digest
        for more in ({}, {"gnn.weight_decay": 0.0}, {"gnn.decayed": "first"})
    }
    assert len(digests) == 3
    case = GnnCase(model="gin_norm", hidden=4, weight_decay=0.5, decayed="all")
    model = Model(case, 1, 2)
    shapes = model.shapes()
    kept = decayed_parts(SimpleNamespace(params=Parameters(HostDevice(), shapes), case=case, model=model))
    drawn = [name for name in shapes if name.split(".")[-1] in ("W1", "W2")]
    assert len(kept) == len(drawn) == 4


@pytest.mark.parametrize("epochs", [1, 2])
def test_training_that_leaves_the_finite_numbers_is_stopped(group, epochs):
    settings = {"gnn.epochs": epochs, "gnn.learning_rate": 3e38, "gnn.dropout": 0.0, "gnn.optimiser": "sgd"}
    with pytest.raises(
        NumericsError, match=r"training: the (loss|largest weight) (after epoch .|before the first step) is"
    ):
        for scale in (1e3, 1e6):  # weights that overflow at once, or a loss that does
            classifier = classifier_on(group, settings)
            classifier.params.flat *= np.float32(scale)
            fit(classifier)
    graph, features, labels, (train, _, _) = communities()
    with pytest.raises(NumericsError, match=r"a learning_rate below 1e.30, or a smaller weight_decay"):
        classify(graph, features, labels, train=train, settings={"gnn.learning_rate": 1e30}, comm=group.comm)


@pytest.mark.parametrize("goal", ["classes", "values"])
@pytest.mark.parametrize("model", ["gin", "sage"])
def test_inputs_beyond_the_numbers_are_named(group, model, goal):
    """Of a training and of weights that are applied: there is no rate to be blamed, and no answer."""
    graph, X, labels, (train, _, _) = communities()
    settings = {"gnn.epochs": 2, "gnn.model": model, "gnn.goal": goal, "gnn.feature_rows": "as_given"}
    right = "features and edge weights of smaller magnitude would be right"
    given, huge = {"train": train, "comm": group.comm}, np.full(X.shape, 3e38)
    with pytest.raises(NumericsError, match=f"training: the loss before the first step is .*; {right}"):
        classify(graph, huge, labels, settings=settings, **given)
    found = classify(graph, X, labels, settings=settings, **given)
    huge[len(X) // 2 :] = 0
    with pytest.raises(NumericsError, match=f"the scores of [0-9]+ nodes are not finite; {right}"):
        classify(graph, huge, weights=found, comm=group.comm)


def test_without_features_every_node_has_its_own(group):
    graph, _, labels, (train, val, test) = communities()
    found = classify(
        graph, None, labels, train=train, val=val, test=test, settings={"gnn.epochs": 60}, comm=group.comm
    )
    assert found.scores["test"].accuracy > 0.7


@pytest.mark.parametrize("order", ["random", "rcm"])
def test_weights_of_nodes_without_features_are_the_nodes_whatever_the_order(group, order, shared_path):
    graph, _, labels, (train, val, test) = communities()
    exact = {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "graph.order": order, "seed": 3}
    settings = {**exact, "gnn.epochs": 40}
    masks = {"train": train, "val": val, "test": test}
    found = classify(graph, None, labels, **masks, settings=settings, comm=group.comm)
    natural = {**settings, "graph.order": "natural"}
    plain = classify(graph, None, labels, **masks, settings=natural, comm=group.comm)
    assert found.train_loss == pytest.approx(plain.train_loss, rel=1e-3)
    path = str(shared_path / f"{order}.npz")
    if group.rank == 0:
        found.save(path)
    group.barrier()
    for other in ({"graph.order": "natural"}, {"graph.order": "random", "seed": 4}, {"graph.order": order}):
        applied = {**exact, "gnn.epochs": 0, "gnn.weights": path, **other}
        again = classify(graph, None, labels, test=test, settings=applied, comm=group.comm)
        assert np.array_equal(again.predicted, found.predicted)


def test_isolated_nodes_and_ranks_without_rows(group):
    graph = nx.path_graph(5)
    graph.add_nodes_from(range(5, 9))
    features = np.eye(9, 4)
    found = classify(
        graph, features, np.arange(9) % 2, train=np.arange(9), settings={"gnn.epochs": 3}, comm=group.comm
    )
    assert len(found.predicted) == 9
    assert math.isfinite(found.train_loss)


# ---- the program ------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_a_run_under_a_limit_of_memory_says_what_it_holds(tmp_path):
    """The digest is that without the limit, which is 40 % of the buffers of a rank, by whatever method."""
    run = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", "graph.nodes=2000", "gnn.epochs=2"]
    run += ["gnn.depth=6", "gnn.hidden=32", "gnn.input_dropout=0", "output.plots=false"]
    digests = set()
    best = "dynamic program"
    for ranks, limit, method in ((1, 0, best), (1, 0.9, best), (2, 0.45, best), (1, 0.9, "streaming")):
        out = tmp_path / f"{ranks}-{limit}-{method}"
        more = [f"memory.fast_mb={limit}", f'memory.method="{method}"', "--out", out]
        code, printed = run_job([*(mpirun(ranks) if ranks > 1 else []), *run, *more], limit_s=120)
        assert code == 0, printed
        digests.add(json.loads((out / "result.json").read_text())["digest"])
        words = " ".join(printed.split())
        assert "memory of the largest process" in words
        assert (f"of which at most {limit:g} MB in its memory at once" in words) == bool(limit)
        assert (f"epoch: memory plan: {method}" in words) == bool(limit)
    assert len(digests) == 1


@pytest.mark.mpi_skip
def test_the_shipped_case(tmp_path):
    digests = []
    for ranks in (1, 2):
        out = tmp_path / f"r{ranks}"
        command = [*mpirun(ranks), sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml"]
        more = ("gnn.epochs=100", "graph.nodes=1000")
        code, printed = run_job([*command, *more, split_over(ranks), "--out", out], limit_s=120)
        assert code == 0, printed
        result = json.loads((out / "result.json").read_text())
        digests.append(result["digest"])
        assert result["status"] == "complete"
        assert result["epochs"] == 100
        assert result["test_accuracy"] > 0.6
        assert len((out / "predictions").glob("*.txt").__next__().read_text().splitlines()) == 1000
        assert load_model(str(out / "weights.npz")).classes == 4
    assert digests[0] == digests[1]


@pytest.mark.mpi_skip
def test_weights_without_a_key_of_today_mean_its_default(tmp_path):
    case, path = GnnCase(own_loops=False), str(tmp_path / "w.npz")
    arrays = {n: np.zeros(shape, dtype=np.float32) for n, shape in Model(case, 5, 2).shapes().items()}
    save_model(path, SavedModel(case, 5, np.arange(2), False, arrays), "")
    assert load_model(path).case.own_loops is False
    with np.load(path) as file:
        held = dict(file)
    manifest = json.loads(held["manifest"].tobytes())
    del manifest["gnn"]["own_loops"]
    np.savez(path, **{**held, "manifest": np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)})
    assert load_model(path).case.own_loops is True
    del manifest["gnn"]["bias"]
    np.savez(path, **{**held, "manifest": np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)})
    with pytest.raises(GraphError, match="a model that this Lockstep does not know"):
        load_model(path)


@pytest.mark.mpi_skip
def test_a_dry_run_says_the_memory_of_weights_that_are_trained_on(tmp_path):
    graph, features, labels, (train, val, test) = communities()
    found = classify(graph, features, labels, train=train, settings={"gnn.epochs": 1}, comm=MPI.COMM_SELF)
    found.save(str(tmp_path / "w.npz"))
    rows, columns = np.array(graph.edges).T
    masks = {"train_mask": train, "val_mask": val, "test_mask": test}
    np.savez(tmp_path / "g.npz", edges=np.c_[rows, columns], num_nodes=180, features=features, labels=labels,
             **masks)  # fmt: skip
    (tmp_path / "case.toml").write_text(
        '[run]\ntask = "classify"\n[graph]\npath = "g.npz"\n[gnn]\nepochs = 2\nweights = "w.npz"\n'
    )
    program = [sys.executable, ROOT / "run.py", tmp_path / "case.toml", "--out", tmp_path / "out"]
    code, printed = run_job([*program, "--dry-run"], limit_s=60)
    assert code == 0, printed
    assert re.search(r"\d+ buffers of \d+ columns: 0\.\d MB a rank", printed)
    wrong = tmp_path / "out" / "x.npy"
    wrong.parent.mkdir()
    np.save(wrong, features)
    code, printed = run_job([*program, f"graph.features={wrong}", "--overwrite"], limit_s=60)
    assert code == 2
    assert "holds the input" in printed


@pytest.mark.mpi_skip
def test_overwrite_takes_away_what_a_run_wrote(tmp_path):
    program = [
        sys.executable,
        ROOT / "run.py",
        ROOT / "inputs" / "gcn.toml",
        "graph.nodes=200",
        "gnn.epochs=3",
    ]
    program += ["output.plots=false", "--out", tmp_path / "out"]
    options = ["parallel.partition=learned", "output.embeddings=true"]
    code, printed = run_job([*mpirun(2), *program, *options], limit_s=60)
    assert code == 0, printed
    assert {"cost_model.json", "weights.npz"} <= {path.name for path in (tmp_path / "out").iterdir()}
    code, printed = run_job([*program, "--overwrite"], limit_s=60)
    assert code == 0, printed
    assert not (tmp_path / "out" / "cost_model.json").exists()
    assert not list((tmp_path / "out").glob("embeddings/*"))
    assert "problem" not in json.loads((tmp_path / "out" / "result.json").read_text())


@pytest.mark.mpi_skip
def test_a_cost_model_serves_layers_like_those_it_was_learned_for(tmp_path):
    start = [*mpirun(2), sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", "graph.nodes=200"]
    start += ["output.plots=false", "gnn.epochs=2", "parallel.partition=learned"]
    made = tmp_path / "first" / "cost_model.json"

    def run(name, *options):
        code, printed = run_job([*start, *options, "--out", tmp_path / name], limit_s=60)
        assert code == 0, printed
        return re.findall(r"warning: \S*cost_model.json is not used: .*", printed.replace("\n  ", " "))

    assert not run("first")
    kinds = json.loads(made.read_text())["cost_kinds"]
    assert [kind.split()[0] for kind in kinds] == ["gcn", "gcn"]
    given = f"parallel.cost_model={made}"
    assert not run("again", given)
    (said,) = run("other", given, "gnn.model=gin", "gnn.depth=4")
    assert re.search(r"learned for layers gcn \w+ \d+, gcn \w+ \d+; these are gin \w+ \d+, gin", said)
    for name, warnings in (("first", 0), ("other", 1)):
        weights = f"gnn.weights={tmp_path / name / 'weights.npz'}"
        assert len(run(f"apply {name}", given, weights, "gnn.epochs=0")) == warnings
    old = json.loads(made.read_text()) | {"format": 1}
    del old["cost_kinds"]
    made.write_text(json.dumps(old))
    assert not run("older", given, "gnn.model=sage")
    digests = [json.loads((tmp_path / n / "result.json").read_text())["digest"] for n in ("first", "again")]
    assert digests[0] == digests[1]


@pytest.mark.mpi_skip
@needs_data
def test_cora_reaches_the_published_accuracy(tmp_path):
    command = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml"]
    found = []
    for seed in (1, 2):
        options = [f"seed={seed}", "gnn.evaluate_every=200", "output.plots=false"]
        graph = f'graph.path="{data_dir() / "gnn" / "cora.npz"}"'
        code, printed = run_job([*command, graph, *options, "--out", tmp_path / str(seed)], limit_s=120)
        assert code == 0, printed
        found.append(json.loads((tmp_path / str(seed) / "result.json").read_text())["test_accuracy"])
    assert np.mean(found) > 0.8  # 0.815 +- 0.007 over ten seeds


# ---- keys that are not read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"gnn.model": "gat", "gnn.edge_weights": True},
            "gnn.edge_weights: is not read by gat; leave it out",
        ),
        (
            {"gnn.model": "gat", "gnn.normalisation": "in_degree"},
            "is not read by gat; .* appnp, gcn, gcn2, gprgnn, lightgcn, linear_attention, sgc, "
            "sgformer would be right",
        ),
        ({"gnn.model": "sage", "gnn.normalisation": "in_degree"}, "normalisation: is not read by sage"),
        (
            {"gnn.model": "gin", "gnn.own_loops": False},
            "own_loops: is not read by gin; leave it out, or appnp, gcn",
        ),
        (
            {"gnn.model": "gcn", "gnn.heads": 2},
            "heads: is not read by gcn; leave it out, or edge_gat, edge_gatv2, gat, gatv2, linear_attention, "
            "sgformer would be right",
        ),
        (
            {"gnn.model": "gat", "gnn.first_product": "live"},
            "is not read by gat; .* commnet, gcn, gin, gin_batch_norm, gin_norm, sage, sgc would",
        ),
        ({"gnn.layers": ["gat 8", "gat"], "gnn.edge_weights": True}, "edge_weights: is not read by gat"),
        ({"gnn.layers": ["gat 8", "gcn"], "gnn.first_product": "live"}, "first_product: is not read by gat"),
        (
            {"gnn.model": "sage", "gnn.first_product": "mg_gcn"},
            '"mg_gcn" is a shortcut of gcn, not of sage; "live" would be right',
        ),
        ({"gnn.layers": ["gcn 8", "gcn"], "gnn.hidden": 32}, "gnn.hidden: is not read beside gnn.layers"),
        ({"gnn.layers": ["gcn 8 9", "gcn"]}, "'gcn 8 9': found '9'; one width"),
        ({"gnn.layers": ["gcn \u0663", "gcn"]}, "found '\u0663'; one width"),
        ({"gnn.depth": 1, "gnn.hidden": 99}, "gnn.hidden: is not read by the last layer, the only one"),
        ({"gnn.depth": 1, "gnn.dropout": 0.9}, "gnn.dropout: is not read by the last layer, the only one"),
        ({"gnn.depth": 1, "gnn.model": "gat", "gnn.heads": 2}, "gnn.heads: is not read by the last"),
        ({"gnn.layers": ["gcn 8 heads=2", "gcn"]}, "gnn.layers: 'gcn 8 heads=2': heads is not read by gcn"),
        ({"gnn.layers": ["gcn 8", "gcn layer_norm"]}, "layer_norm is not read by the last layer"),
        ({"gnn.layers": ["gcn 8", "gcn batch_norm"]}, "batch_norm is not read by the last layer"),
        ({"gnn.layer_norm": True, "gnn.batch_norm": True}, "batch_norm: beside gnn.layer_norm; one of them"),
        ({"gnn.layers": ["gcn 8 layer_norm batch_norm", "gcn"]}, "layer_norm beside batch_norm; one of them"),
        ({"gnn.depth": 1, "gnn.batch_norm": True}, "gnn.batch_norm: is not read by the last layer, the only"),
        (
            {"gnn.alpha": 0.2},
            "alpha: is not read by gcn; leave it out, or appnp or gcn2 or gprgnn would be right",
        ),
        (
            {"gnn.theta": 0.2, "gnn.model": "appnp"},
            "theta: is not read by appnp and dense; leave it out, or gcn2",
        ),
        (
            {"gnn.hops": 2},
            "hops: is not read by gcn; leave it out, or appnp or gprgnn or lightgcn or sgc would be right",
        ),
        ({"gnn.model": "lightgcn", "gnn.own_loops": False}, "own_loops: is not read by dense and lightgcn"),
        ({"gnn.model": "appnp", "gnn.first_product": "live"}, "first_product: is not read by dense"),
        ({"gnn.layers": ["gcn2 8", "gcn"]}, "gcn2 reads what the first layer gives; dense would be right"),
        ({"gnn.layers": ["dense 8", "gcn2 4", "gcn"]}, "gcn2 makes 4 columns from 8; the first layer's 8"),
        ({"gnn.layers": ["dense 8", "gcn2"]}, "gcn2 keeps the first layer's width; dense would be right"),
        ({"gnn.model": "gcn2", "gnn.first_product": "live"}, "first_product: is not read by dense"),
        ({"gnn.model": "dense", "gnn.edge_weights": True}, "edge_weights: is not read by dense"),
        ({"gnn.warmup": 200}, "gnn.warmup: less than gnn.epochs = 200 would be right, got 200"),
        (
            {"gnn.depth": 2, "gnn.inner_decay": 0.1},
            "gnn.inner_decay: is not read without layers between the first",
        ),
        (
            {"gnn.model": "rgcn", "gnn.epochs": 5},
            'not read by gnn.model = "rgcn"; .* rgcn.epochs would be right',
        ),
        (
            {"gnn.model": "rgcn", "gnn.heads": 2},
            'gnn.heads: is not read by gnn.model = "rgcn"; leave it out$',
        ),
    ],
)
def test_keys_that_no_layer_reads_are_refused(settings, said):
    with pytest.raises(CaseError, match=said) as caught:
        classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], settings=settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"gnn.model": "gat", "gnn.heads": 2, "gnn.hidden": 4},
        {"gnn.model": "gcn", "gnn.normalisation": "in_degree", "gnn.first_product": "live"},
        {"gnn.model": "gin", "gnn.edge_weights": True, "gnn.first_product": "live"},
        {"gnn.depth": 1, "gnn.input_dropout": 0.1},
        {"gnn.layers": ["gat 8 heads=2", "gcn"], "gnn.edge_weights": True, "gnn.normalisation": "in_degree"},
        {"gnn.layers": ["gcn 8", "gat heads=2"], "gnn.first_product": "live"},
        {"gnn.model": "gcn2", "gnn.depth": 1, "gnn.dropout": 0.1, "gnn.theta": 1.0, "gnn.inner_decay": 0.1},
        {"gnn.layers": ["gcn 8", "gcn2 8", "gcn"], "gnn.alpha": 0.2},
        {"gnn.model": "dense", "gnn.depth": 3, "gnn.inner_decay": 0.1},
        {"gnn.model": "appnp", "gnn.alpha": 0.2, "gnn.hops": 3, "gnn.own_loops": False},
        {"gnn.model": "sgc", "gnn.depth": 1, "gnn.first_product": "cached", "gnn.input_dropout": 0.0},
        {"gnn.layers": ["dense 4", "lightgcn 4", "gcn"], "gnn.hops": 3, "gnn.edge_weights": True},
    ],
)
def test_keys_that_some_layer_reads_are_taken(settings):
    found = classify(
        nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], settings={"gnn.epochs": 1, **settings}
    )
    assert found.epochs == 1


@pytest.mark.mpi_skip
def test_what_is_set_and_does_not_count_is_said(capsys, tmp_path):
    """Layers that weights bring, and weights of a graph that has none."""
    options = {"labels": [0, 1, 0, 1], "train": [0, 1], "verbose": True}
    found = classify(nx.path_graph(4), settings={"gnn.epochs": 1, "gnn.hidden": 4}, **options)
    assert "warning" not in capsys.readouterr().out
    found.save(str(tmp_path / "w.npz"))
    keys = {"gnn.weights": str(tmp_path / "w.npz"), "gnn.epochs": 0, "gnn.hidden": 32, "gnn.model": "gat"}
    assert classify(nx.path_graph(4), settings=keys, **options).digest == found.digest
    said = " ".join(capsys.readouterr().out.split())
    assert "the weights bring their layers: gnn.model = gcn (not gat), gnn.hidden = 4 (not 32)" in said
    classify(nx.path_graph(4), settings={"gnn.epochs": 1, "gnn.edge_weights": True}, **options)
    assert "graph has no edge weights; every edge counts one" in " ".join(capsys.readouterr().out.split())
    weighted = nx.path_graph(4)
    nx.set_edge_attributes(weighted, 2.0, "weight")
    classify(weighted, settings={"gnn.epochs": 1, "gnn.edge_weights": True}, **options)
    assert "no edge weights" not in capsys.readouterr().out


def test_links_are_not_found_by_classify():
    with pytest.raises(CaseError, match=r'gnn\.level: classify is of nodes or graphs, find_links of "link"'):
        classify(nx.path_graph(4), labels=[0, 1, 0, 1], train=[0, 1], settings={"gnn.level": "link"})


def test_decay_of_inner_layers_is_refused_where_weights_bring_none():
    options = {"labels": [0, 1, 0, 1], "train": [0, 1]}
    found = classify(nx.path_graph(4), settings={"gnn.epochs": 1}, **options)
    keys = {"gnn.epochs": 1, "gnn.depth": 3, "gnn.inner_decay": 0.1}
    with pytest.raises(
        CaseError, match=r"gnn\.inner_decay: is of layers between .* and the weights bring none"
    ):
        classify(nx.path_graph(4), weights=found, settings=keys, **options)


# ---- areas under ROC curves -------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
def test_an_area_is_the_share_of_pairs_in_the_right_order(ties):
    draws = np.random.default_rng(3)
    margins = (
        draws.integers(0, 6, 50).astype(np.float32) if ties else draws.normal(size=50).astype(np.float32)
    )
    positive = draws.random(50) < 0.3
    larger = margins[positive][:, None] - margins[~positive]
    assert area_under_roc(margins, positive) == pytest.approx(((larger > 0) + 0.5 * (larger == 0)).mean())
    assert area_under_roc(margins, positive | True) is area_under_roc(margins, positive & False) is None


@pytest.mark.parametrize("several", [False, True])
def test_areas_are_told_of_two_classes_and_of_labels(group, several):
    draws = np.random.default_rng(4)
    X = draws.normal(size=(60, 4))
    labels = (
        (X[:, :3] + draws.normal(size=(60, 3)) > 0).astype(int) if several else (X[:, 0] > 0.5).astype(int)
    )
    graph = nx.gnp_random_graph(60, 0.05, seed=1)
    options = {"train": range(30), "test": range(30, 60), "comm": group.comm}
    asked = {"gnn.epochs": 10, "output.probabilities": True, "gnn.feature_rows": "as_given"}
    found = classify(graph, X, labels, settings=asked, **options)
    for name, rows in (("train", slice(0, 30)), ("test", slice(30, 60))):
        likely, wanted = found.probabilities[rows], labels[rows]
        pairs = zip(likely.T, wanted.T) if several else [(likely[:, 1], wanted)]
        areas = [area_under_roc(column, known > 0) for column, known in pairs]
        assert found.scores[name].auc == pytest.approx(np.mean(areas), abs=2e-3)  # likelihoods may tie
    assert "ROC AUC" in found._repr_html_()
    three = classify(graph, X, np.arange(60) % 3, settings={"gnn.epochs": 1}, **options)
    assert three.scores["test"].auc is None
