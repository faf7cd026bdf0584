"""Label propagation, Correct and Smooth: those of the papers' equations on whole matrices, on any ranks."""

import json
import sys
import tracemalloc
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from helpers import EXCHANGES, edge_stream, whole_rows
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI
from msgspec import structs
from test_directed import arcs_graph, heard_matrix
from test_folds import everywhere
from test_gnn_studies import study_of

from app import classify
from app.case.file import build
from app.case.smooth import SmoothCase
from app.comm.group import Group
from app.errors import CaseError, NumericsError
from app.gnn.classifier import Classifier
from app.gnn.plain import plain_scores
from app.gnn.propagation import columns_at_once, propagate, propagate_fixed
from app.gnn.smoothing import check_smoothing, probabilities_of, smooth
from app.graphs.nodes.memory import table_of_arrays
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.node_plan import products_words, training_of
from app.page.results import _plain
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.folds import run_fold
from app.tasks.levels.dealt import draw_folds, split_by_fold
from app.tasks.levels.nodes import NodeExamples
from app.tasks.levels.reading import load

NODES, CLASSES = 61, 3
KINDS = [(False, "both"), (True, "both"), (False, "in"), (True, "out")]  # weighted, neighbours


def setting(weighted=False, neighbours="both", seed=9):
    """A graph with an isolated node, its matrix, features, classes, and sets of nodes."""
    n, ends, weights = arcs_graph(NODES, 0.05, seed, weighted)
    keep = (ends != 7).all(axis=1)
    graph = n, ends[keep], None if weights is None else weights[keep]
    A = heard_matrix(graph, "out" if neighbours == "both" else neighbours)
    A = np.maximum(A, A.T) if neighbours == "both" else A
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, CLASSES, n)
    X = (np.eye(CLASSES, 5)[labels] + draws.normal(size=(n, 5))).astype(np.float32)
    split = draws.integers(0, 4, n)
    return graph, A, X, labels, {name: split == i for i, name in enumerate(("train", "val", "test"))}


def classifier_on(group, weighted=False, neighbours="both", exchange="auto", limit=0, labels=None, **keys):
    """A network on that graph as it is before training, its rows on the group's ranks."""
    graph, _, X, classes, sets = setting(weighted, neighbours)
    labels = classes if labels is None else labels
    gnn = {"gnn.edge_weights": weighted, "gnn.hidden": 4, "gnn.feature_rows": "as_given", **keys}
    case = build({"run.task": "classify", "graph.neighbours": neighbours, **gnn})
    values = case.gnn.goal == "values"
    loaded = load_stream(group, edge_stream(graph) if group.rank == 0 else None, case.graph, case)
    table = table_of_arrays(X, labels, *sets.values(), NODES, values=values)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, 1, budget=TierBudget(limit) if limit else None)


def own_of(classifier, rows):
    """This rank's rows of whole ones, with its padding."""
    block, out = classifier.block, np.zeros((classifier.block.n_own, *rows.shape[1:]), rows.dtype)
    out[: block.n_real] = rows[block.lo : block.lo + block.n_real]
    return out


def whole(classifier, rows):
    return whole_rows(classifier.group, classifier.block, rows)


# ---- the papers' equations, on whole matrices in float64 --------------------------------------------------


def power(d, p):
    return np.where(d > 0, np.where(d > 0, d, 1) ** p, 0)


def normalised(A):
    """S = D^-1/2 A D^-1/2."""
    return power(A.sum(axis=1), -0.5)[:, None] * A * power(A.sum(axis=0), -0.5)


def spread(S, Y, alpha, steps, low, high):
    """Y <- clip(alpha S Y + (1 - alpha) Y0)."""
    H = Y
    for _ in range(steps):
        H = np.clip(alpha * S @ H + (1 - alpha) * Y, low, high)
    return H


def correct(A, P, labels, train, case):
    """Z + sigma E^ / |E^|_1, or Z + s E^ with E^ held on training nodes."""
    E = np.where(train[:, None], np.eye(CLASSES)[labels] - P, 0)
    if case.scale == "fixed":
        H, mean = E, power(A.sum(axis=1), -1)[:, None] * A
        for _ in range(case.steps):
            H = np.where(train[:, None], E, mean @ H)
        return P + case.factor * H
    found = spread(normalised(A), E, case.correct_alpha, case.steps, -1, 1)
    norms = np.abs(found).sum(axis=1)
    sigma = np.abs(E[train]).sum() / train.sum()
    times = np.where(norms > sigma / 1000, sigma / np.where(norms > 0, norms, 1), 1)
    return P + times[:, None] * found


def correct_and_smooth(A, P, labels, sets, case):
    """Both steps, or the one that is asked for."""
    G = correct(A, P, labels, sets["train"], case) if case.method in ("both", "correct") else P
    if case.method == "correct":
        return G
    given = sets["train"] | (sets["val"] & case.validation_labels)
    H = np.where(given[:, None], np.eye(CLASSES)[labels], G)
    return spread(normalised(A), H, case.smooth_alpha, case.steps, 0, 1)


# ---- propagation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(("weighted", "neighbours"), KINDS)
def test_propagation_is_that_of_whole_matrices(group, exchange, weighted, neighbours):
    _, A, _, _, sets = setting(weighted, neighbours)
    classifier = classifier_on(group, weighted, neighbours, exchange)
    Y = np.random.default_rng(2).normal(size=(NODES, 5)).astype(np.float32)
    found = whole(classifier, propagate(classifier, own_of(classifier, Y), 0.75, 9, -0.5, 0.5))
    np.testing.assert_allclose(found, spread(normalised(A), Y, 0.75, 9, -0.5, 0.5), atol=2e-6)
    held = sets["train"]
    Y = np.where(held[:, None], Y, 0)
    found = whole(classifier, propagate_fixed(classifier, own_of(classifier, Y), own_of(classifier, held), 9))
    mean, H = power(A.sum(axis=1), -1)[:, None] * A, Y
    for _ in range(9):
        H = np.where(held[:, None], Y, mean @ H)
    np.testing.assert_allclose(found, H, atol=2e-6)
    assert (found[held] == Y[held]).all()


def test_columns_at_a_time_and_limits_of_memory_change_no_bit(group, single):
    Y = np.random.default_rng(2).normal(size=(NODES, 150)).astype(np.float32)
    found = []
    for ranks in (group, single):
        free = classifier_on(ranks)
        least = ranks.max_integer(free.engine.least(free.engine.n_own, 1, 0))
        tight = classifier_on(ranks, limit=least * 5 // 4)  # there are pieces of features beside
        assert ranks.max_integer(int(tight.engine.tiered is not None))
        assert columns_at_once(free.engine) == 64 and columns_at_once(tight.engine) < 16
        for each in (free, tight):
            before = each.scores_own().tobytes()
            found.append(whole(each, propagate(each, own_of(each, Y), 0.9, 4)))
            assert each.scores_own().tobytes() == before  # rows that were lent are brought in anew
    assert len({each.tobytes() for each in found}) == 1


def test_no_room_for_one_column_is_refused(group):
    flat = np.zeros(2, np.float32)
    tiered = SimpleNamespace(lent=lambda: flat)
    engine = SimpleNamespace(group=group, n_own=8, tiered=tiered)
    with pytest.raises(CaseError, match=r"memory\.fast_mb: propagation needs room for 3 numbers"):
        columns_at_once(engine)


# ---- plain rules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weighted", "neighbours"), KINDS)
def test_label_propagation_and_the_largest_class(group, weighted, neighbours):
    _, A, _, labels, sets = setting(weighted, neighbours)
    found = plain_scores(classifier_on(group, weighted, neighbours))
    H = spread(normalised(A), np.where(sets["train"][:, None], np.eye(CLASSES)[labels], 0), 0.9, 50, 0, 1)
    largest = np.bincount(labels[sets["train"]]).argmax()
    said = np.where(H.sum(axis=1) > 0, H.argmax(axis=1), largest)
    assert list(found) == ["label_propagation", "largest_class"]
    assert (H.sum(axis=1) == 0).any()
    for split in ("val", "test"):
        right = sets[split]
        assert found["label_propagation"][split].accuracy == (said == labels)[right].mean()
        assert found["largest_class"][split].accuracy == (labels[right] == largest).mean()
    assert "train" not in found["label_propagation"]


@pytest.mark.parametrize("unknown", [False, True])
def test_several_labels_and_values_are_means_of_what_arrives(group, unknown):
    _, A, _, _, sets = setting()
    draws = np.random.default_rng(5)
    for kind in ("labels", "values"):
        Y = draws.normal(size=(NODES, 2)) * [1, 9] + 4
        Y = Y if kind == "values" else (Y > 4).astype(float)
        if unknown:
            Y[draws.random(NODES) < 0.4, draws.integers(0, 2)] = np.nan
        keys = {"gnn.goal": "values"} if kind == "values" else {}
        found = plain_scores(classifier_on(group, labels=Y, **keys))
        known = sets["train"][:, None] & ~np.isnan(Y)
        sums, weight = (
            spread(normalised(A), np.where(known, each, 0), 0.9, 50, -np.inf, np.inf)
            for each in (Y, np.ones_like(Y))
        )
        mean = np.where(known, Y, 0).sum(axis=0) / known.sum(axis=0)
        said = np.where(weight > 0, sums / np.where(weight > 0, weight, 1), mean)
        other = {"labels": "majority", "values": "mean"}[kind]
        assert list(found) == ["label_propagation", other]
        for rule, rows in (("label_propagation", said), (other, np.broadcast_to(mean, Y.shape))):
            there = sets["test"][:, None] & ~np.isnan(Y)
            scores = found[rule]["test"]
            if kind == "values":
                error = np.sqrt(((rows - Y)[there] ** 2).mean())
                assert scores.rmse == pytest.approx(error, rel=1e-4)
            else:
                assert scores.accuracy == pytest.approx(((rows > 0.5) == Y)[there].mean())


def test_plain_rules_of_whole_graphs_and_without_training_nodes(group):
    classifier = classifier_on(group)
    classifier.data.counts["train"] = 0
    assert plain_scores(classifier) == {}
    graphs = [nx.cycle_graph(4 + i % 5) for i in range(30)]
    labels = [len(graph) % 2 for graph in graphs]
    asked = {"gnn.epochs": 1, "gnn.hidden": 4}
    found = classify(
        graphs, labels=labels, train=range(20), test=range(20, 30), settings=asked, comm=group.comm
    )
    assert list(found.plain) == ["largest_class"]
    largest = np.bincount(labels[:20]).argmax()
    assert found.plain["largest_class"]["test"].accuracy == np.mean(np.array(labels[20:]) == largest)


# ---- Correct and Smooth -----------------------------------------------------------------------------------

WAYS = [
    {"method": "both"},
    {"method": "both", "scale": "fixed", "factor": 1.5, "smooth_alpha": 0.6},
    {"method": "correct", "correct_alpha": 0.5, "steps": 7},
    {"method": "correct", "scale": "fixed", "steps": 1},
    {"method": "smooth", "smooth_alpha": 0.9},
    {"method": "both", "validation_labels": True, "steps": 3},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
@pytest.mark.parametrize(("weighted", "neighbours"), KINDS)
def test_the_steps_are_those_of_the_paper(group, way, weighted, neighbours):
    _, A, _, labels, sets = setting(weighted, neighbours)
    case = SmoothCase(**way)
    classifier = classifier_on(group, weighted, neighbours)
    P = whole(classifier, classifier.probabilities_own())
    found = smooth(classifier, case)
    rows = whole(classifier, found.rows)
    wanted = correct_and_smooth(A, P.astype(np.float64), labels, sets, case)
    np.testing.assert_allclose(rows, wanted, atol=5e-6)
    assert found.scores["test"].accuracy == (rows.argmax(axis=1) == labels)[sets["test"]].mean()
    assert found.scores["val"].nodes == (0 if case.validation_labels else sets["val"].sum())
    assert found.told["method"] == case.method
    assert all(found.told[key] == value for key, value in way.items())
    likely = probabilities_of(rows)
    np.testing.assert_allclose(likely.sum(axis=1), 1, atol=1e-6)
    assert (likely >= 0).all()


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("way", [*WAYS[:2], {"method": "auto"}], ids=["auto scale", "fixed", "auto"])
def test_smoothed_bits_are_those_of_one_rank(group, single, exchange, way):
    found = []
    for ranks, mode in ((group, exchange), (single, "auto")):
        classifier = classifier_on(ranks, exchange=mode)
        done = smooth(classifier, SmoothCase(**way))
        found.append((whole(classifier, done.rows).tobytes(), done.told, done.scores))
    assert found[0] == found[1]


def test_auto_takes_what_is_best_on_validation_nodes(group):
    classifier = classifier_on(group)
    found = smooth(classifier, SmoothCase(method="auto"))
    tried = [smooth(classifier, SmoothCase(**way)).scores["val"].accuracy for way in found_ways()]
    assert found.scores["val"].accuracy == max([*tried, classifier.evaluate()["val"].accuracy])
    again = smooth(classifier, SmoothCase(**found.told))
    assert again.rows.tobytes() == found.rows.tobytes()
    told = smooth(classifier, SmoothCase(method="auto", validation_labels=True)).told
    assert {**told, "validation_labels": False} == {"validation_labels": False, **found.told}
    fixed = smooth(classifier, SmoothCase(method="auto", scale="fixed", factor=0.5)).told
    assert fixed["method"] in ("none", "smooth") or fixed["factor"] == 0.5


def found_ways():
    """All that "auto" tries beside the network."""
    alphas = (0.5, 0.8, 0.95)
    yield from ({"method": "smooth", "smooth_alpha": a} for a in alphas)
    for c in alphas:
        yield {"method": "correct", "correct_alpha": c}
        yield from ({"method": "both", "correct_alpha": c, "smooth_alpha": a} for a in alphas)


def test_scores_that_are_no_numbers_are_refused(group):
    classifier = classifier_on(group)
    classifier.params.flat[:] = np.float32(np.inf)
    with pytest.raises(NumericsError, match="the scores of"), np.errstate(invalid="ignore"):
        smooth(classifier, SmoothCase(method="both"))


def test_a_network_without_errors_is_left_as_it_is(group):
    classifier = classifier_on(group)
    labels = own_of(classifier, setting()[3])
    classifier.scores_own = lambda: np.where(
        np.arange(CLASSES) == labels[:, None], np.float32(200), np.float32(0)
    )
    found = smooth(classifier, SmoothCase(method="correct"))
    assert (whole(classifier, found.rows) == np.eye(CLASSES)[setting()[3]]).all()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("smoothed", [False, True])
def test_memory_beside_the_buffers_is_foreseen(compiled, smoothed):
    settings = {"graph.nodes": 4000, "graph.random_classes": 20, "graph.random_features": 4}
    context = study_of(Group(MPI.COMM_SELF, compiled), settings)
    loaded, data = load(context)
    classifier = Classifier(context.group, context.case.gnn, context.rows(loaded, 8), data, 1)
    smooth(classifier, SmoothCase(method="auto"))  # factors, and what is sent, are kept
    training = training_of(context.case, 4000, loaded.graph.edges * 2, 1, compiled)
    foreseen = gnn_memory.propagation(training, 0, smoothed)["propagation"]
    tracemalloc.start()
    if smoothed:
        smooth(classifier, SmoothCase(method="auto"))
    else:
        plain_scores(classifier)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.6 * foreseen < most < 1.05 * foreseen


@pytest.mark.mpi_skip
def test_a_dry_run_tells_products():
    base = {"run.task": "classify", "graph.generator": "sbm", "graph.nodes": 9, "graph.random_classes": 5}
    said = [
        products_words(build({**base, **keys}), 5)
        for keys in (
            {},
            {"smooth.method": "both", "smooth.steps": 7},
            {"smooth.method": "auto", "gnn.baselines": False},
            {"gnn.baselines": False},
        )
    ]
    end = ", products with the graph of 5 columns"
    assert said[0] == f"once training has ended: 50 of label propagation{end}"
    assert said[1] == f"once training has ended: 50 of label propagation and 14 of smoothing{end}"
    assert said[2] == f"once training has ended: up to 850 of smoothing{end}"
    assert not said[3]


# ---- what is refused --------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_data_that_cannot_be_smoothed():
    data = SimpleNamespace(classes=3, counts={"train": 4, "val": 0, "test": 1})
    both, auto = SmoothCase(method="both"), SmoothCase(method="auto")
    check_smoothing(SmoothCase(), "values", data)
    check_smoothing(both, "classes", data)
    wrong = [
        (both, "labels", data, r"smooth\.method: is of one class a node, the labels are several a node"),
        (both, "values", data, r"smooth\.method: is of one class a node, the labels are numbers"),
        (auto, "classes", data, r'smooth\.method: "auto" goes by validation nodes, of which there are none'),
        (structs.replace(both, validation_labels=True), "classes", data, "there are no validation nodes"),
    ]
    none = SimpleNamespace(classes=0, counts={"train": 0, "val": 0, "test": 0})
    wrong.append((both, "classes", none, r"smooth\.method: needs labels of training nodes"))
    for case, kind, given, words in wrong:
        with pytest.raises(CaseError, match=words):
            check_smoothing(case, kind, given)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"smooth.steps": 3}, r'smooth\.steps: is not read by smooth\.method = "none"; leave it out'),
        ({"smooth.method": "auto", "smooth.correct_alpha": 0.5}, r'correct_alpha: is not read by .*"auto"'),
        ({"smooth.method": "smooth", "smooth.scale": "fixed"}, r'scale: is not read by .*"smooth"'),
        (
            {"smooth.method": "both", "smooth.factor": 2.0},
            r'factor: is read by smooth\.scale = "fixed" alone',
        ),
        ({"smooth.method": "both", "gnn.level": "graph"}, r"method: is of nodes, whose neighbours it hears"),
        ({"smooth.method": "both", "gnn.level": "link"}, r"method: is of nodes, whose neighbours it hears"),
        ({"smooth.method": "both", "gnn.goal": "values"}, r"method: is of classes, got gnn\.goal"),
        ({"smooth.method": "both", "gnn.model": "rgcn"}, r'method: is not read by gnn\.model = "rgcn"'),
        (
            {"smooth.method": "both", "run.task": "study", "study.kind": "models"},
            r'method: is not read by study\.kind = "models"',
        ),
        ({"smooth.method": "both", "smooth.smooth_alpha": 1.0}, r"smooth_alpha: must be"),
        ({"gnn.baselines": False, "gnn.level": "link"}, r"baselines: is of labels"),
    ],
)
def test_cases_that_make_no_sense(keys, words):
    with pytest.raises(CaseError, match=words):
        build({"run.task": "classify", "graph.generator": "sbm", **keys})


# ---- runs -------------------------------------------------------------------------------------------------

CLUBS = {"gnn.epochs": 6, "gnn.hidden": 4, "graph.splits": "random", "output.probabilities": True}


def clubs():
    graph = nx.karate_club_graph()
    sides = [graph.nodes[v]["club"] for v in graph]
    X = np.random.default_rng(3).normal(size=(34, 4)).astype(np.float32)
    return graph, X + np.array([side == "Officer" for side in sides])[:, None].astype(np.float32), sides


@pytest.mark.parametrize("order", ["natural", "random"])
def test_from_python(order):
    graph, X, sides = clubs()
    asked = {**CLUBS, "graph.order": order}
    alone = classify(graph, X, sides, settings=asked, comm=WORLD)
    found = classify(graph, X, sides, settings={**asked, "smooth.method": "both"}, comm=WORLD)
    assert found.network == alone.scores and alone.network is None and alone.smooth is None
    assert found.smooth["correct_alpha"] == 0.8
    assert found.plain == alone.plain
    assert list(found.plain) == ["label_propagation", "largest_class"]
    assert (found.probabilities.argmax(axis=1) == np.searchsorted(found.classes, found.predicted)).all()
    assert (found.probabilities != alone.probabilities).any()
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-6)
    right = np.mean([p == side for p, side in zip(found.predicted, sides)])
    total = sum(each.nodes for each in found.scores.values())
    assert sum(each.accuracy * each.nodes for each in found.scores.values()) / total == pytest.approx(right)
    assert "test, label propagation" in found._repr_html_()
    one = classify(graph, X, sides, settings={**asked, "smooth.method": "both"}, comm=MPI.COMM_SELF)
    assert one.probabilities.tobytes() == found.probabilities.tobytes()
    assert (one.scores, one.network, one.plain) == (found.scores, found.network, found.plain)
    off = classify(graph, X, sides, settings={**asked, "gnn.baselines": False}, comm=WORLD)
    assert off.plain == {} and off.digest == alone.digest


def test_weights_that_are_applied_are_smoothed_with_training_labels(shared_path):
    graph, X, sides = clubs()
    both = {**CLUBS, "smooth.method": "both"}
    first = classify(graph, X, sides, settings=both, comm=WORLD)
    again = classify(graph, X, sides, weights=first, settings={**both, "gnn.epochs": 0}, comm=WORLD)
    assert again.probabilities.tobytes() == first.probabilities.tobytes()
    assert again.network == first.network
    with pytest.raises(CaseError, match=r"smooth\.method: needs labels of training nodes"):
        classify(graph, X, weights=first, settings={"smooth.method": "both"}, comm=WORLD)


def test_folds_are_smoothed_each_by_the_labels_of_the_others(group):
    asked = {"study.kind": "folds", "study.folds": 3, "gnn.epochs": 2, "smooth.method": "both"}
    context = study_of(group, asked)
    loaded, data = load(context)
    own = split_by_fold(group, data, draw_folds(group, data, loaded, 1, 3), 0, 1)
    block, examples = context.rows(loaded, 8), NodeExamples(loaded, own)

    def run_in(context, **more):
        classifier = Classifier(group, context.case.gnn, block, own, 1)
        return run_fold(context, examples, classifier, **more)

    run = run_in(context, predict=True)
    labels, said, test = (everywhere(group, loaded, each) for each in (data.labels, run.predicted, own.test))
    assert run.row["test"] == (said == labels)[test].mean()
    alone = structs.replace(context.case, smooth=SmoothCase())
    other = run_in(SimpleNamespace(group=group, case=alone, keeper=context.keeper))
    assert run.row["test_network"] == other.row["test"] and other.row["test_network"] is None
    assert run.row["test_propagated"] == other.row["test_propagated"] > run.row["test_alike"]
    assert run.weights == other.weights


@pytest.mark.mpi_skip
def test_a_run_tells_the_network_and_plain_rules_beside_what_it_predicts(tmp_path):
    keys = ["graph.nodes=300", "gnn.epochs=3", "output.plots=false", "output.probabilities=true"]
    keys += ["smooth.method=auto"]
    program = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", *keys]
    results, files = [], []
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        code, printed = run_job([*mpirun(ranks), *program, split_over(ranks), "--out", out], limit_s=90)
        assert code == 0, printed
        for words in (
            "smooth: method",
            "after smoothing, accuracy: train",
            "label propagation: accuracy val",
        ):
            assert words in printed
        result = json.loads((out / "result.json").read_text())
        results.append({key: result[key] for key in ("digest", "plain", "network", "smooth")})
        files.append((out / "predictions" / "sbm-300-0.txt").read_bytes())
        assert result["test_accuracy"] >= 0 and result["network"]["test_accuracy"] >= 0
        assert set(result["plain"]) == {"label_propagation", "largest_class"}
    assert results[0] == results[1] and files[0] == files[1]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ((), 'the plain rule "label propagation" has val micro F1'),
        (("smooth.method=auto",), None),
        (("graph.signal=4.0", "gnn.epochs=60"), None),
    ],
    ids=["weak features", "smoothed", "strong features"],
)
def test_the_log_says_what_may_help_where_a_plain_rule_is_better(tmp_path, keys, said):
    program = [sys.executable, ROOT / "run.py", ROOT / "inputs" / "gcn.toml", "output.plots=false"]
    program += ["graph.nodes=1000", "gnn.epochs=5", *keys, "--out", tmp_path / "out"]
    code, printed = run_job(program, limit_s=90)
    assert code == 0, printed
    text = " ".join(printed.split())
    assert ("advice: " in text) == (said is not None)
    if said is not None:
        assert f"advice: sbm-1000-0: {said}" in text and 'smooth.method="auto"' in text


@pytest.mark.mpi_skip
def test_the_page_sets_plain_rules_beside_what_is_predicted():
    scores = {"val_accuracy": 0.5, "test_accuracy": 0.75}
    entry = {
        "name": "g",
        **scores,
        "plain": {"label_propagation": {"val_accuracy": 0.25, "test_accuracy": 1}},
    }
    shown = lambda entry: "".join(_plain([SimpleNamespace(label="r", instances=[entry])]))  # noqa: E731
    text = shown(entry)
    for words in ("Scores beside plain rules", "learned", "label propagation", "75.00", "100.00"):
        assert words in text
    text = shown({"name": "g", **scores, "network": {"test_accuracy": 0.125}})
    assert "smoothed" in text and "network" in text and "12.50" in text and "learned" not in text
    assert shown({"name": "g", **scores}) == ""
