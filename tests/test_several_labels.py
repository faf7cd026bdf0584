"""Yes/no labels of several tasks of which some are not known: losses, scores, files, from Python."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
from jobs import mpirun, run_job, split_over
from mpi4py import MPI
from test_classify import same

from app import classify
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import GraphError
from app.gnn.areas import area_under_roc, average_precision
from app.gnn.classifier import Classifier
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.ogb import read_table
from app.graphs.formats.source import Limits
from app.graphs.members import with_own_rows
from app.graphs.nodes.files import read_labels
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.union import unite
from app.memory.tiers import TierBudget
from app.model.gnn import Training
from app.model.gnn_inputs import Inputs
from app.model.gnn_memory import at_rest
from app.model.layout import of_blocks
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

alone = pytest.mark.mpi_skip
LEVELS = ("node", "graph")
COUNT, TASKS = 24, 5
PLAIN = {
    "gnn.epochs": 3, "gnn.hidden": 4, "gnn.depth": 2, "gnn.dropout": 0.0, "gnn.input_dropout": 0.0,
    "gnn.feature_rows": "as_given", "gnn.weight_decay": 0.0,
}  # fmt: skip


def drawn(level, seed=1, lacking=0.4):
    """Graphs of 1 to 9 nodes, features, and labels [n, TASKS] of 0, 1 and NaN of the nodes or graphs.

    Of the last task none is known, of the second one only zeros.
    """
    draws = np.random.default_rng(seed)
    graphs = [nx.gnp_random_graph(int(n), 0.4, seed=i) for i, n in enumerate(draws.integers(1, 10, COUNT))]
    n = sum(map(len, graphs))
    labels = draws.integers(0, 2, (n if level == "node" else COUNT, TASKS)).astype(float)
    labels[draws.random(labels.shape) < lacking] = np.nan
    labels[:, 0] = draws.integers(0, 2, len(labels))  # something is known of each
    if lacking:
        labels[:, 1] *= 0
        labels[:, -1] = np.nan
    return graphs, draws.normal(size=(n, 3)), labels


def classifier_on(group, level, labels, settings=None, budget=None):
    """A classifier of drawn graphs, side by side as one or as a set, on a group's ranks."""
    graphs, X, _ = drawn(level)
    case = build({"run.task": "classify", "gnn.level": level} | PLAIN | (settings or {}))
    source = unite([stream_of_object(graph, f"g{i}")[0] for i, graph in enumerate(graphs)], "set")
    source = with_own_rows(source) if level == "graph" else source
    loaded = load_stream(group, source if group.rank == 0 else None, case.graph, case)
    sets = np.arange(len(labels)) % 3
    table = table_of_arrays(X, labels, *(sets == i for i in range(3)), len(labels))
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, 1, budget=budget, members=loaded.members)


def of_labelled(classifier, own):
    """Rows of all nodes or graphs from those of all ranks."""
    block, members = classifier.block, classifier.members
    rows = np.ascontiguousarray(own[: block.n_real])
    rows = classifier.group.gather_host(rows, block.rows.row_counts())
    return rows if members is None else rows[members.own_rows]


def loss_of(Z, labels):
    """The mean of the cross-entropies of known entries, float64."""
    known = ~np.isnan(labels)
    z, y = Z.astype(float)[known], labels[known]
    return (np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))).sum() / known.sum()


# ---- what is computed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_the_loss_is_the_mean_over_known_entries(group, level):
    _, _, labels = drawn(level)
    classifier = classifier_on(group, level, labels)
    train = np.arange(len(labels)) % 3 == 0
    Z = of_labelled(classifier, classifier.scores_own())
    assert classifier.epoch(1) == pytest.approx(loss_of(Z[train], labels[train]), rel=1e-5)
    name = f"layer{len(classifier.model.blocks)}.bias"  # its gradient is the sum of those by the scores
    part = classifier.params.slices[name]
    found = np.array(classifier.device.get(classifier.engine.gradient))[part]
    known = ~np.isnan(labels[train])
    by_scores = np.where(known, 1 / (1 + np.exp(-Z[train])) - np.nan_to_num(labels[train]), 0) / known.sum()
    assert np.allclose(found, by_scores.sum(axis=0), atol=1e-6)
    assert found[-1] == 0


@pytest.mark.parametrize("level", LEVELS)
def test_gradients_are_those_of_differences(level):
    _, _, labels = drawn(level)
    classifier = classifier_on(Group(MPI.COMM_WORLD, HostDevice()), level, labels)
    draws = np.random.default_rng(5)
    values = {
        name: draws.uniform(-0.5, 0.5, s).astype(np.float32) for name, s in classifier.params.shapes.items()
    }
    classifier.params.set(values)
    classifier.epoch(1)
    gradient = np.array(classifier.device.get(classifier.engine.gradient)).astype(float)
    wrong = 0
    for name in values:
        for at in draws.permutation(values[name].size)[:4]:
            losses = []
            for step in (2e-3, -2e-3):
                moved = {each: array.copy() for each, array in values.items()}
                moved[name].reshape(-1)[at] += step
                classifier.params.set(moved)
                losses.append(classifier.epoch(1))
            there = gradient[classifier.params.slices[name]][at]
            wrong += abs(there - (losses[0] - losses[1]) / 4e-3) > 2e-3 + 0.03 * abs(there)
    assert wrong <= 1  # an activation may begin between two losses


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_not_known_counts_in_no_score(group, level):
    _, _, labels = drawn(level)
    classifier = classifier_on(group, level, labels)
    fit(classifier)
    scores = classifier.evaluate_ranking()
    Z = of_labelled(classifier, classifier.scores_own())
    for i, found in enumerate(scores.values()):
        mine = np.arange(len(labels)) % 3 == i
        z, y = Z[mine], labels[mine]
        known = ~np.isnan(y)
        right = ((z > 0) == (y > 0.5)) & known
        assert found.nodes == mine.sum()
        assert found.accuracy == pytest.approx(right.sum() / known.sum())
        hits, predicted, wanted = (z > 0) & (y == 1), (z > 0) & known, y == 1
        both = predicted.sum(axis=0) + wanted.sum(axis=0)
        each = 2 * hits.sum(axis=0) / np.maximum(both, 1)
        assert found.micro_f1 == pytest.approx(2 * hits.sum() / max(both.sum(), 1))
        assert found.macro_f1 == pytest.approx(each[known.any(axis=0)].mean())
        tasks = [t for t in range(TASKS) if len(set(y[known[:, t], t])) == 2]
        assert 1 not in tasks
        assert TASKS - 1 not in tasks
        ranked = [(z[known[:, t], t], y[known[:, t], t] > 0) for t in tasks]
        assert found.auc == pytest.approx(np.mean([area_under_roc(*both) for both in ranked]))
        assert found.ap == pytest.approx(np.mean([slow_precision(*both) for both in ranked]))


def slow_precision(margins, positive):
    """Average precision by its definition, threshold by threshold downwards."""
    total, recall = 0.0, 0.0
    for threshold in np.unique(margins)[::-1]:
        above = margins >= threshold
        now = (positive & above).sum() / positive.sum()
        total += (now - recall) * (positive & above).sum() / above.sum()
        recall = now
    return total


@alone
@pytest.mark.parametrize("seed", range(40))
def test_average_precision(seed):
    draws = np.random.default_rng(seed)
    n = int(draws.integers(1, 30))
    margins = draws.integers(0, int(draws.integers(1, 30)), n).astype(np.float32)
    positive = draws.random(n) < 0.5
    positive[draws.integers(n)] = True
    assert average_precision(margins, positive) == pytest.approx(slow_precision(margins, positive))


@pytest.mark.parametrize("level", LEVELS)
def test_bits_are_those_of_one_rank_under_a_limit_and_after_a_move(group, single, level):
    _, _, labels = drawn(level)
    wanted = classifier_on(single, level, labels)
    plan = 4 * wanted.engine.n_own * wanted.engine.plan.columns
    limit = TierBudget(group.max_integer(int(0.8 * plan)), "host")
    moved, limited = classifier_on(group, level, labels), classifier_on(group, level, labels, budget=limit)
    weights = fit(wanted).weights
    rows = moved.block.rows
    cuts = rows.cuts.copy()
    cuts[1:-1] = np.maximum(cuts[1:-1] - 1, 0)
    moved.move(type(rows)(rows.n, rows.starts, cuts))
    for each in (moved, limited):
        assert same(fit(each).weights, weights)
        assert each.evaluate_ranking() == wanted.evaluate_ranking()


@pytest.mark.parametrize("level", LEVELS)
def test_where_all_is_known_nothing_is_new(group, level):
    """One entry that is not known, of a graph that is tested, leaves losses and gradients as they are."""
    _, _, labels = drawn(level, lacking=0.0)
    whole = classifier_on(group, level, labels)
    assert (whole.data.labels.dtype, whole.data.partly) == (np.uint8, False)
    labels[2, 3] = np.nan
    partly = classifier_on(group, level, labels)
    assert partly.data.partly
    losses = [each.epoch(1) for each in (whole, partly)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    gradients = [np.array(each.device.get(each.engine.gradient)) for each in (whole, partly)]
    assert np.allclose(*gradients, rtol=1e-4, atol=1e-7)


def test_areas_are_none_where_nothing_is_of_both_kinds(group):
    _, _, labels = drawn("node")
    labels[:, 0] = 1
    labels[:, 1:] = np.nan
    classifier = classifier_on(group, "node", labels)
    found = classifier.evaluate_ranking()
    assert all((each.auc, each.ap) == (None, None) for each in found.values())


@pytest.mark.parametrize("level", LEVELS)
def test_labels_at_rest_are_those_that_are_held(group, level):
    _, _, labels = drawn(level)
    classifier = classifier_on(group, level, labels)
    data, graphs = classifier.data, 0 if level == "node" else len(labels)
    layout = of_blocks(group, classifier.block)
    inputs = Inputs(3, TASKS, several=True, graphs=graphs)
    found = at_rest(Training(classifier.device, classifier.case, inputs, layout), group.rank)["labels"]
    arrays = [data.labelled, data.train, data.val, data.test, data.labels, *classifier._targets]
    held = sum(each.nbytes for each in [*arrays, *([] if data.rows is None else [data.rows])])
    assert len(data.labels) == (len(data.labelled) if level == "node" else len(data.rows))
    total = group.sum_integers(np.array([held, found]))
    assert total[1] == pytest.approx(total[0], rel=0.05)  # ranks have about equally many graphs


# ---- from Python ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_forms_of_labels_are_one(level):
    graphs, X, labels = drawn(level)
    count = len(labels)
    given = graphs if level == "graph" else nx.disjoint_union_all(graphs)
    labels[count - 1] = np.nan  # nothing is known of the last one
    lists = [[None if np.isnan(each) else int(each) for each in row] for row in labels]
    objects = np.array(lists, dtype=object)
    rows = [*lists[:-1], None]
    mapping = dict(enumerate(lists[:-1]))
    named = [None, *[list(row) for row in lists[1:]]]
    digests = [
        classify(given, X, each, train=range(0, count - 1, 2), settings=PLAIN).digest
        for each in (labels, lists, objects, rows, mapping)
    ]
    assert len(set(digests)) == 1
    found = classify(given, X, named, train=range(2, count - 1, 2), test=[0, 1], settings=PLAIN)
    assert found.scores["test"].nodes == 1
    assert found.predicted.shape == (count, TASKS)
    again = classify(given, X, labels, weights=found, test=range(count))
    assert again.scores["test"].nodes == count - 1
    assert again.scores["test"].ap is not None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 1], [1, -1], [0, 0], [1, 1]], "found label -1 in row 1, column 1; 0 and 1, or a whole row"),
        ([[0, 1], [1, None], [0, 2], [1, 1]], r"found label 2\.0 in row 2, column 1"),
        ([[0, None], [None, None], [0, 1], [1, 1]], "node 1 in train, which has no label"),
        ([[0, 1], [1, None], [0], [1, 1]], "rows of different lengths"),
    ],
)
def test_labels_that_are_wrong(labels, message):
    with pytest.raises(GraphError, match=message):
        classify(nx.path_graph(4), np.eye(4), labels, train=range(4), settings=PLAIN)


# ---- files ------------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    "text",
    ["0,,1\n,1,\n1,0,0\n", "0,nan,1\nnan,1,nan\n1,0,0\n", "0 nan 1\nnan 1 NaN\n1 0 0\n",
     "0,,1\r\n,1,\r\n1,0,0\r\n", "# tasks\n0, ,1.0\n , 1,\n\n1,0,0", "0.0,,1\n,1.0,\n1,0,0.0\n"],
)  # fmt: skip
def test_text_with_nothing_in_some_fields(tmp_path, text):
    (tmp_path / "y.txt").write_bytes(text.encode())
    labels = read_labels(str(tmp_path / "y.txt"), Limits())
    assert (labels.n, labels.columns) == (3, 3)
    assert np.concatenate(list(labels.parts())).tolist() == [[0, -1, 1], [-1, 1, -1], [1, 0, 0]]


@alone
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,,1\n,1\n", r"y.txt:2: found 2 fields in ',1'; 3, as in the first line"),
        ("0,,1\n,x,1\n", "y.txt:2: found 'x'; 0 or 1 for each class"),
        ("0,,1\n,-1,1\n", "found label -1.0 in row 1, column 1; 0 and 1, or a whole row of -1"),
    ],
)
def test_text_that_is_wrong(tmp_path, text, message):
    (tmp_path / "y.txt").write_text(text)
    with pytest.raises(GraphError, match=message):
        list(read_labels(str(tmp_path / "y.txt"), Limits()).parts())


@alone
def test_arrays_with_nan(tmp_path):
    array = np.array([[0, np.nan, 1], [np.nan] * 3, [1, 0, 0]], dtype=np.float32)
    np.save(tmp_path / "y.npy", array)
    found = np.concatenate(list(read_labels(str(tmp_path / "y.npy"), Limits()).parts()))
    assert found.tolist() == [[0, -1, 1], [-1, -1, -1], [1, 0, 0]]


def write_ogb(folder):
    """Rings and paths as OGB has a set of molecules: categories of atoms, three tasks, some unknown."""
    draws = np.random.default_rng(3)
    graphs = [(nx.cycle_graph if i % 2 else nx.path_graph)(int(draws.integers(3, 9))) for i in range(30)]
    for name in ("raw", "split/scaffold"):
        (folder / name).mkdir(parents=True)
    tasks = [[i % 2, "" if i % 3 else i % 2, "" if i % 5 else (i // 5) % 2] for i in range(30)]
    lines = {
        "raw/edge": [f"{u},{v}" for graph in graphs for u, v in graph.edges],
        "raw/num-node-list": map(len, graphs),
        "raw/num-edge-list": [graph.number_of_edges() for graph in graphs],
        "raw/node-feat": [f"{5 + v % 3},{v % 2}" for graph in graphs for v in graph],
        "raw/graph-label": [",".join(map(str, row)) for row in tasks],
        "split/scaffold/train": range(20), "split/scaffold/valid": range(20, 25),
        "split/scaffold/test": range(25, 30),
    }  # fmt: skip
    for name, each in lines.items():
        (folder / f"{name}.csv").write_text("".join(f"{line}\n" for line in each))
    return str(folder)


@alone
def test_numbers_of_folders_of_ogb_that_are_not_known(tmp_path):
    table = read_table(write_ogb(tmp_path / "mol"), Limits(), values=True)
    found = np.concatenate(list(table.labels.parts()))
    assert table.labels.values
    assert np.isnan(found).sum(axis=0).tolist() == [0, 20, 24]
    graphs = [nx.path_graph(3) for _ in range(30)]
    asked = {"gnn.goal": "values", "gnn.epochs": 1}
    scores = classify(graphs, labels=found, train=range(20), test=range(20, 30), settings=asked).scores
    assert (scores["test"].nodes, np.isfinite(scores["test"].r2)) == (10, True)


@alone
def test_folders_of_ogb_with_several_tasks(tmp_path):
    command = [
        sys.executable, "run.py", "inputs/graphs.toml", 'graph.generator=""', 'graph.splits=""',
        "gnn.epochs=30",
        f"graph.path={write_ogb(tmp_path / 'mol')}", "graph.format=ogb", "gnn.feature_rows=one_hot",
        "output.plots=false",
    ]  # fmt: skip
    results = []
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        code, printed = run_job([*mpirun(ranks), *command, split_over(ranks), "--out", str(out)])
        assert code == 0, printed
        results.append(json.loads((out / "result.json").read_text()))
    assert "5 features, 3 labels" in printed
    assert "average precision: train" in printed
    assert results[0]["digest"] == results[1]["digest"]
    assert results[0]["test_ap"] == results[1]["test_ap"] > 0.9
