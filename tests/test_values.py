"""Numbers in place of classes (gnn.goal = "values"): what is learned, measured, read, saved and refused."""

import json
import math
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI
from test_classify import same

from app import classify
from app.case.file import build
from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.errors import CaseError, GraphError
from app.gnn.classifier import Classifier
from app.gnn.metrics import ValueScores
from app.gnn.saved import load_model
from app.gnn.scale import Scale
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.source import Limits
from app.graphs.nodes.files import read_labels
from app.graphs.nodes.keyed import Nodes
from app.graphs.nodes.memory import table_of_arrays
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

NODES = 240
MODELS = ("gcn", "sage", "gat", "gin", "gin_norm", "commnet")
PLAIN = {"gnn.goal": "values", "gnn.feature_rows": "as_given", "gnn.dropout": 0.0, "gnn.input_dropout": 0.0}


def field(columns=1, seed=1):
    """A mesh whose nodes have a temperature (and its square): graph, features, values, splits."""
    draws = np.random.default_rng(seed)
    graph = nx.random_geometric_graph(NODES, 0.15, seed=seed)
    x = np.array([graph.nodes[v]["pos"] for v in graph])
    small = np.sin(4 * x[:, 0]) * np.cos(3 * x[:, 1])
    features = np.column_stack([small + draws.normal(size=NODES), x]).astype(np.float32)
    values = np.column_stack([300 + 20 * small, small**2])[:, :columns]
    values[::17] = np.nan
    split = draws.integers(0, 3, NODES)
    return graph, features, values, [(split == i) & ~np.isnan(values[:, 0]) for i in range(3)]


def classifier_on(group, settings=None, columns=1, seed=1, exchange="auto", given=None):
    """A classifier of the mesh on a group's ranks; given: other values."""
    graph, X, values, splits = field(columns)
    values = values if given is None else given
    case = build({"run.task": "classify", **PLAIN, "gnn.hidden": 8, **(settings or {})})
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    table = table_of_arrays(X, values, *splits, NODES, values=True)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, seed)


def rows_of_all(group, classifier, own):
    """Real rows of all ranks."""
    block = classifier.block
    return group.gather_host(np.ascontiguousarray(own[: block.n_real]), block.rows.row_counts())


# ---- learning and measures --------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2])
def test_scores_are_those_of_numpy(group, columns):
    classifier = classifier_on(group, {"gnn.epochs": 30}, columns)
    fit(classifier)
    found = rows_of_all(group, classifier, classifier.predict_own()).astype(np.float64)
    _, _, values, splits = field(columns)
    for scores, chosen in zip(classifier.evaluate().values(), splits, strict=True):
        error, spread = found[chosen] - values[chosen], values[chosen] - values[chosen].mean(axis=0)
        assert scores.nodes == chosen.sum()
        assert scores.rmse == pytest.approx(math.sqrt((error**2).mean()), rel=1e-4)
        assert scores.mae == pytest.approx(np.abs(error).mean(), rel=1e-4)
        assert scores.r2 == pytest.approx(
            (1 - (error**2).sum(axis=0) / (spread**2).sum(axis=0)).mean(), abs=1e-4
        )


def test_the_loss_is_the_mean_squared_error_in_the_scale_of_training(group):
    classifier = classifier_on(group, columns=2)
    _, _, values, (train, *_) = field(2)
    scale = classifier.goal.scale
    assert np.allclose(scale.mean, values[train].mean(axis=0), rtol=1e-12)
    assert np.allclose(scale.deviation, values[train].std(axis=0), rtol=1e-12)
    Z = rows_of_all(group, classifier, classifier.scores_own())[train]
    wanted = ((Z - (values[train] - scale.mean) / scale.deviation) ** 2).mean()
    assert classifier.epoch(1) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_a_field_is_learned(group, model):
    more = {"gnn.epochs": 60, "gnn.learning_rate": 0.03, "gnn.model": model, "gnn.hidden": 16}
    classifier = classifier_on(group, more)
    first = classifier.evaluate()["train"]
    fit(classifier)
    train = classifier.evaluate()["train"]
    assert train.r2 > 0.3 > first.r2


@pytest.mark.parametrize("exchange", ["halo", "staged"])
@pytest.mark.parametrize("columns", [1, 2])
def test_bits_are_those_of_one_rank(group, single, exchange, columns):
    found, wanted = (
        classifier_on(each, {"gnn.epochs": 4, "gnn.dropout": 0.3}, columns, exchange=exchange)
        for each in (group, single)
    )
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()
    assert np.array_equal(
        rows_of_all(group, found, found.predict_own()), rows_of_all(single, wanted, wanted.predict_own())
    )


def test_the_best_weights_are_those_of_the_least_error(group):
    classifier = classifier_on(group, {"gnn.epochs": 60, "gnn.keep": "best", "gnn.learning_rate": 0.2})
    result = fit(classifier)
    assert result.best_epoch < 60
    best = max(row["val_score"] for row in result.records)
    assert classifier.evaluate()["val"].r2 == best


def test_sums_do_not_depend_on_who_holds_a_row(group):
    draws = np.random.default_rng(3)
    rows = draws.normal(size=(97, 4)) * [1e-30, 1, 1e30, 0] + [0, 1e9, 0, 0]
    for given in (rows, rows[:1], rows[:0]):
        mine = given[group.rank :: group.size]
        found = sum_exactly(group, lambda rows=mine: [rows[:5], rows[5:]], 4)
        alone = Group(MPI.COMM_SELF, group.device)
        assert found.tobytes() == sum_exactly(alone, lambda rows=given: [rows], 4).tobytes()
        wanted = [math.fsum(column) for column in given.T]
        largest = np.abs(given).max(axis=0, initial=0)
        assert (np.abs(found - wanted) <= 1e-15 * largest * max(len(given), 1)).all()


def test_scores_of_labels_without_spread():
    exact = ValueScores.of(np.zeros(1), np.zeros(1), np.zeros(1), np.ones(1), 5, np.array([5]))
    wrong = ValueScores.of(np.ones(1), np.ones(1), np.zeros(1), np.ones(1), 5, np.array([5]))
    assert (exact.r2, exact.rmse, wrong.r2) == (1, 0, 0)
    assert wrong.mae == 0.2
    assert math.isnan(ValueScores.of(*[np.zeros(1)] * 4, 0, np.array([0])).r2)


@pytest.mark.parametrize("value", [7.5, 0.1, -1e20, 0.0])
def test_labels_that_are_all_the_same(group, value):
    graph, X, _, splits = field()
    case = build({"run.task": "classify", **PLAIN})
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    table = table_of_arrays(X, np.full(NODES, value), *splits, NODES, values=True)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    scale = Scale.of(group, data.labels, data.labelled)
    assert (scale.mean.tolist(), scale.deviation.tolist()) == ([pytest.approx(value, rel=1e-14)], [1.0])


def test_what_is_far_from_all_that_was_learned_stays_finite(group):
    graph, X, values, splits = field()
    values = values * 1e-30
    values[splits[1]] = 1e30
    case = build({"run.task": "classify", **PLAIN, "gnn.epochs": 2})
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    table = table_of_arrays(X, values, *splits, NODES, values=True)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", case.gnn.hidden)
    classifier = Classifier(group, case.gnn, block, data, 1)
    fit(classifier)
    found = classifier.evaluate()
    assert all(math.isfinite(each.rmse) and math.isfinite(each.r2) for each in found.values())


@pytest.mark.parametrize("columns", [1, 2])
def test_errors_are_added_up_some_columns_at_a_time(group, columns, monkeypatch):
    classifier = classifier_on(group, {"gnn.epochs": 3}, columns)
    whole = classifier.evaluate()
    monkeypatch.setattr("app.gnn.goals.PIECE_NUMBERS", 1)
    assert classifier.evaluate() == whole


# ---- what is not known ------------------------------------------------------------------------------------


def partly(seed=2):
    """Values of four columns of which some are not known, of the third none in training, of the last none."""
    values = np.column_stack([field(2)[2], field(2)[2][:, ::-1]])
    draws = np.random.default_rng(seed)
    values[(draws.random(values.shape) < 0.3) & [True, False, True, True]] = np.nan
    values[field()[3][0], 2] = np.nan
    values[:, 3] = np.nan
    return values


def test_what_is_not_known_counts_in_no_loss_and_no_score(group):
    values, (train, *_) = partly(), field()[3]
    classifier = classifier_on(group, {"gnn.epochs": 10}, given=values)
    scale, known = classifier.goal.scale, ~np.isnan(values)
    assert np.allclose(scale.mean[:2], np.nanmean(values[train][:, :2], axis=0), rtol=1e-12)
    assert np.allclose(scale.deviation[:2], np.nanstd(values[train][:, :2], axis=0), rtol=1e-12)
    assert (scale.mean[2:].tolist(), scale.deviation[2:].tolist()) == ([0, 0], [1, 1])
    Z = rows_of_all(group, classifier, classifier.scores_own())
    error = np.where(known, Z - (values - scale.mean) / scale.deviation, 0)[train]
    assert classifier.epoch(1) == pytest.approx((error**2).sum() / known[train].sum(), rel=1e-4)
    found = np.array(classifier.device.get(classifier.engine.gradient))
    bias = found[classifier.params.slices[f"layer{len(classifier.model.blocks)}.bias"]]
    assert np.allclose(bias, 2 * error.sum(axis=0) / known[train].sum(), atol=1e-5)
    assert bias[2:].tolist() == [0, 0]
    fit(classifier)
    said = rows_of_all(group, classifier, classifier.predict_own()).astype(np.float64)
    for scores, chosen in zip(classifier.evaluate().values(), field()[3], strict=True):
        away, right = (said - values)[chosen], values[chosen]
        told = [c for c in range(4) if known[chosen][:, c].any()]
        assert len(told) == (2 if scores.nodes == train.sum() else 3)
        shares = []
        for c in told:
            spread = right[:, c] - np.nanmean(right[:, c])
            shares.append(1 - np.nansum(away[:, c] ** 2) / np.nansum(spread**2))
        assert scores.nodes == chosen.sum()
        assert scores.rmse == pytest.approx(math.sqrt(np.nanmean(away**2)), rel=1e-4)
        assert scores.mae == pytest.approx(np.nanmean(np.abs(away)), rel=1e-4)
        assert scores.r2 == pytest.approx(np.mean(shares), rel=1e-3)


def test_bits_with_unknown_values_are_those_of_one_rank_and_stay_after_a_move(group, single):
    more = {"gnn.epochs": 4, "gnn.watch": "mae", "gnn.keep": "best"}
    found, wanted = (classifier_on(each, more, given=partly()) for each in (group, single))
    rows = found.block.rows
    cuts = rows.cuts.copy()
    cuts[1:-1] = np.maximum(cuts[1:-1] - 1, 0)
    found.move(type(rows)(rows.n, rows.starts, cuts))
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()


def test_a_node_of_which_one_number_is_known_has_a_label(group):
    values = np.full((NODES, 2), np.nan)
    values[:, 1] = np.arange(NODES)
    data = classifier_on(group, {"gnn.epochs": 1}, given=values).data
    assert data.labelled.sum() == np.count_nonzero(~np.isnan(data.labels[:, 1]))
    assert data.counts["train"] == field()[3][0].sum()


@pytest.mark.mpi_skip
def test_forms_of_unknown_values_are_one(tmp_path):
    graph, X, _, (train, *_) = field()
    values = partly()[:, :3]
    values[5] = np.nan
    lists = [[None if np.isnan(each) else each for each in row] for row in values.tolist()]
    asked = PLAIN | {"gnn.epochs": 2}
    train = np.flatnonzero(train & ~np.isnan(values).all(axis=1))
    forms = (
        values,
        lists,
        np.array(lists, dtype=object),
        [*lists[:5], None, *lists[6:]],
        dict(enumerate(lists)),
    )
    digests = {classify(graph, X, each, train=train, settings=asked).digest for each in forms}
    assert len(digests) == 1
    text, array = tmp_path / "v.txt", tmp_path / "v.npy"
    text.write_text("".join(",".join("" if x is None else repr(x) for x in row) + "\n" for row in lists))
    np.save(array, values)
    for path in (text, array):
        assert np.array_equal(numbers(path), values, equal_nan=True)


# ---- reading ----------------------------------------------------------------------------------------------


def numbers(path, nodes=None):
    """The values that a file holds."""
    found = read_labels(str(path), Limits(1 << 30), nodes, values=True)
    return np.concatenate(list(found.parts()))


@pytest.mark.mpi_skip
def test_values_are_read_from_text_and_arrays(tmp_path):
    text, one, two, archive = (tmp_path / name for name in ("v.txt", "v.npy", "w.npy", "v.npz"))
    text.write_text("1.5\n-2e3\nnan\n0\n")
    assert np.array_equal(numbers(text), [[1.5], [-2000], [np.nan], [0]], equal_nan=True)
    text.write_text("1.5,2\n-2e3,1\nnan,nan\n0,1\n")
    assert numbers(text).shape == (4, 2)
    for dtype in (np.float32, np.float64, np.int16, bool):
        np.save(one, np.arange(4).astype(dtype))
        assert numbers(one).tolist() == [[float(each)] for each in np.arange(4).astype(dtype)]
    np.save(two, np.arange(8.0).reshape(4, 2))
    assert numbers(two).tolist() == np.arange(8.0).reshape(4, 2).tolist()
    np.savez(archive, labels=np.array([0.5, np.nan, 1, 2]))
    assert np.array_equal(numbers(archive)[:, 0], [0.5, np.nan, 1, 2], equal_nan=True)
    text.write_text("20 1.5\n10 2.5\n40 nan\n30 0\n")
    assert numbers(text, Nodes(np.array([10, 20, 30, 40]), "g"))[:, 0].tolist()[:2] == [1.5, 2.5]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\ninf\n2\n3\n", "found label inf in row 1"),
        ("1\n1e39\n2\n3\n", "finite 32-bit numbers"),
        ("1\nx\n2\n3\n", "found 'x'; a number would be right"),
    ],
)
def test_wrong_values_are_refused(tmp_path, text, said):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(GraphError, match=said):
        numbers(path)


@pytest.mark.mpi_skip
def test_wrong_arrays_are_refused(tmp_path):
    path = tmp_path / "v.npy"
    for array in (np.zeros((4, 0)), np.zeros((4, 2, 2)), np.array(["a"] * 4), np.zeros(4, complex)):
        np.save(path, array)
        with pytest.raises(GraphError, match="real numbers of shape"):
            numbers(path)


# ---- whole runs -------------------------------------------------------------------------------------------


def written(folder, columns=1):
    """Files of the mesh, and the words of a command that learns it."""
    graph, X, values, splits = field(columns)
    nx.write_edgelist(graph, folder / "mesh.txt", data=False)
    np.save(folder / "x.npy", X)
    np.savetxt(folder / "v.txt", values)
    words = np.full(NODES, "none", dtype=object)
    for name, chosen in zip(("train", "val", "test"), splits, strict=True):
        words[chosen] = name
    (folder / "s.txt").write_text("\n".join(words) + "\n")
    files = {"path": "mesh.txt", "features": "x.npy", "labels": "v.txt", "splits": "s.txt"}
    keys = [f"graph.{key}={folder / name}" for key, name in files.items()]
    return [
        sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", *keys, "gnn.goal=values",
        "gnn.feature_rows=as_given", "gnn.epochs=20",
    ]  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize("columns", [pytest.param(1, marks=pytest.mark.long), 2])
def test_runs_on_several_ranks_and_weights_applied(tmp_path, columns):
    results = []
    for ranks in (1, 2, 3):
        out = tmp_path / f"r{ranks}"
        command = [*mpirun(ranks), *written(tmp_path, columns), split_over(ranks)]
        code, printed = run_job([*command, "--out", out], limit_s=120)
        assert code == 0, printed
        assert "R2: train" in printed
        assert f"3 features, {'1 value' if columns == 1 else '2 values'}" in " ".join(printed.split())
        results.append(json.loads((out / "result.json").read_text()))
    assert len({each["digest"] for each in results}) == 1
    assert results[0]["test_rmse"] > 0
    lines = (tmp_path / "r1" / "predictions" / "mesh.txt").read_text().splitlines()
    assert len(lines) == NODES
    assert {len(line.split()) for line in lines} == {1 + columns}
    assert abs(float(lines[0].split()[1]) - 300) < 40
    saved = load_model(str(tmp_path / "r1" / "weights.npz"))
    assert (saved.classes, saved.case.goal) == (columns, "values")
    again = [*written(tmp_path, columns), f"gnn.weights={tmp_path / 'r1' / 'weights.npz'}", "gnn.epochs=0"]
    code, printed = run_job([*again, "--out", tmp_path / "again"], limit_s=60)
    assert code == 0, printed
    assert (tmp_path / "again" / "predictions" / "mesh.txt").read_text().splitlines() == lines
    code, printed = run_job(
        [sys.executable, "-m", "app", "report", tmp_path / "r1", "-o", tmp_path / "p.html"]
    )
    assert code == 0, printed
    page = (tmp_path / "p.html").read_text()
    assert "test R2" in page
    assert "RMSE" in page


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["gnn.goal=classes"], "gnn.goal = values for numbers of any kind"),
        (
            ["run.task=study", "study.kind=sampling"],
            'study.kind = "sampling" compares accuracies of classes; "classes", or study.kind =',
        ),
        (["gnn.model=rgcn"], "gnn.goal"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, more, said):
    code, printed = run_job([*written(tmp_path), *more, "--out", tmp_path / "out"])
    assert code == 2, printed
    assert said in " ".join(printed.split())


@pytest.mark.mpi_skip
def test_estimates_and_generated_graphs(tmp_path):
    code, printed = run_job([*written(tmp_path), "--dry-run"])
    assert code == 0, printed
    command = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", "gnn.goal=values"]
    more = ["graph.nodes=500", "gnn.epochs=100", "gnn.input_dropout=0", "gnn.dropout=0"]
    code, printed = run_job([*command, *more, "--out", tmp_path / "out"])
    assert code == 0, printed
    assert json.loads((tmp_path / "out" / "result.json").read_text())["test_r2"] > 0.2


# ---- features of one scale --------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_features_are_brought_to_one_scale(tmp_path):
    graph, X, values, (train, val, test) = field()
    far = (X * [1, 1e-3, 1e4] + [300, 0, -1e5]).astype(np.float32)
    far = np.column_stack([far, np.full(NODES, 7)])  # a column that says nothing
    settings = {**PLAIN, "gnn.epochs": 30, "gnn.model": "sage", "gnn.feature_rows": "standard"}
    splits = {"train": train, "val": val, "test": test}
    found = classify(graph, far, values, **splits, settings=settings)
    wide = far.astype(np.float64)
    by_hand = (wide - wide[train].mean(axis=0)) / np.maximum(wide[train].std(axis=0), 1e-9)
    wanted = classify(graph, by_hand, values, **splits, settings={**settings, "gnn.feature_rows": "as_given"})
    assert np.allclose(found.predicted, wanted.predicted, atol=0.05)
    raw = classify(graph, far, values, **splits, settings={**settings, "gnn.feature_rows": "as_given"})
    assert found.scores["test"].r2 > raw.scores["test"].r2 + 0.2
    found.save(str(tmp_path / "w.npz"))
    applied = {"gnn.epochs": 0, "gnn.weights": str(tmp_path / "w.npz")}
    larger = graph.copy()
    larger.add_nodes_from((NODES, NODES + 1))  # with them the mean is another one
    part = classify(larger, np.vstack([far, np.full((2, 4), 1e6)]), settings=applied).predicted
    assert np.array_equal(part[:NODES], found.predicted)
    for X_wrong, said in ((sp.csr_array(far), "these are sparse"), (None, "there are none")):
        with pytest.raises(CaseError, match=said):
            classify(graph, X_wrong, values, **splits, settings=settings)
    with pytest.raises(CaseError, match="these are sparse"):
        classify(graph, sp.csr_array(far), settings=applied)


@pytest.mark.long
@pytest.mark.mpi_skip
def test_one_scale_of_features_on_any_ranks_and_under_a_limit(tmp_path):
    digests = set()
    for ranks, more in ((1, []), (2, []), (3, ["graph.order=random"]), (2, ["memory.fast_mb=0.02"])):
        command = [*mpirun(ranks), *written(tmp_path), "gnn.feature_rows=standard", split_over(ranks), *more]
        code, printed = run_job([*command, "--out", tmp_path / "out", "--overwrite"], limit_s=120)
        assert code == 0, printed
        result = json.loads((tmp_path / "out" / "result.json").read_text())
        if "graph.order=random" not in more:
            digests.add(result["digest"])
        assert result["test_r2"] > 0
    assert len(digests) == 1


# ---- from Python ------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_values_from_python(tmp_path):
    graph, X, values, (train, val, test) = field()
    named = nx.relabel_nodes(graph, {v: f"n{v}" for v in graph})
    names = list(named)
    told = {name: value for name, value in zip(names, values[:, 0].tolist()) if not math.isnan(value)}
    settings = {**PLAIN, "gnn.epochs": 10}
    one = classify(graph, X, values[:, 0], train=train, val=val, test=test, settings=settings)
    two = classify(named, X, told, train=train, val=val, test=test, settings=settings)
    lists = [None if math.isnan(value) else value for value in values[:, 0].tolist()]
    three = classify(graph, X, lists, train=train, val=val, test=test, settings=settings)
    assert one.predicted.dtype == np.float32
    assert one.predicted.shape == (NODES,)
    assert np.array_equal(one.predicted, two.predicted)
    assert np.array_equal(one.predicted, three.predicted)
    rows = [None if math.isnan(each[0]) else list(each) for each in field(2)[2].tolist()]
    rows[0] = None
    pairs = dict(enumerate(rows))
    several = {"train": train, "test": test, "settings": settings}
    four = classify(graph, X, rows, **several)
    assert np.array_equal(four.predicted, classify(graph, X, pairs, **several).predicted)
    assert four.predicted.shape == (NODES, 2)
    assert "test R2" in repr(one)
    assert "RMSE" in one._repr_html_()
    one.save(str(tmp_path / "w.npz"))
    applied = {**PLAIN, "gnn.epochs": 0, "gnn.weights": str(tmp_path / "w.npz")}
    assert np.array_equal(classify(graph, X, settings=applied).predicted, one.predicted)
    assert (
        classify(graph, X, values, test=test, settings=applied).scores["test"].rmse == one.scores["test"].rmse
    )
    both = classify(graph, X, field(2)[2], train=train, test=test, settings=settings)
    assert both.predicted.shape == (NODES, 2)
    with pytest.raises(GraphError, match="for 1 values; the labels of these data are of another kind"):
        classify(graph, X, field(2)[2], test=test, settings=applied)
    with pytest.raises(GraphError, match="for 1 values"):
        classify(graph, X, (values[:, 0] > 300) * 1, test=test, settings={**applied, "gnn.goal": "classes"})
    with pytest.raises(GraphError, match="real numbers"):
        classify(graph, X, ["a"] * NODES, train=train, settings=settings)
    with pytest.raises(CaseError, match="no node is to be trained on"):
        classify(graph, X, values, settings=settings)


@pytest.mark.mpi_skip
def test_tables_of_values_by_index():
    pandas = pytest.importorskip("pandas")
    graph, X, values, (train, _, test) = field(2)
    order = np.random.default_rng(1).permutation(NODES)
    table = pandas.DataFrame(values, columns=["t", "q"]).iloc[order]
    settings = {**PLAIN, "gnn.epochs": 3}
    plain = classify(graph, X, values, train=train, test=test, settings=settings)
    found = classify(graph, X, table, train=train, test=test, settings=settings)
    assert np.array_equal(plain.predicted, found.predicted)
    one, series = (
        classify(graph, X, given, train=train, test=test, settings=settings)
        for given in (values[:, 0], table["t"])
    )
    assert np.array_equal(one.predicted, series.predicted)
