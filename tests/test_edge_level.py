"""What the edges of a graph are (gnn.level = "edge"): gradients, ranks, files, Python, refusals."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
from edged import WIDTH, classifier_on, drawn, edges_of, reference_loss, reference_scores
from helpers import Frame
from jobs import digest_after_a_stop, mpirun, run_job, split_over
from mpi4py import MPI
from standin_device import StandInDevice

from app import classify_edges
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError, NumericsError
from app.gnn.edge_level import entries
from app.gnn.edge_level.plain import plain_edge_scores
from app.gnn.rehearsal import Sizes, rehearse
from app.gnn.training import fit
from app.memory.tiers import TierBudget

alone = pytest.mark.mpi_skip
KINDS = ["classes", "labels", "values"]
F = np.random.default_rng(5).normal(size=(141, 2))  # features of the edges of a drawn graph


def weights_of(classifier):
    """Values for all parameters, none of them at a special point."""
    draws = np.random.default_rng(3)
    return {
        name: draws.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in classifier.params.shapes.items()
    }


def gradient_of(classifier, epoch=1):
    """The loss, and the gradient of all parameters by name."""
    loss = classifier.epoch(epoch)
    flat, shapes = classifier.device.get(classifier.engine.gradient), classifier.params.shapes
    return loss, {
        name: np.array(flat[part]).reshape(shapes[name]) for name, part in classifier.params.slices.items()
    }


# ---- loss, gradient, scores -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("featured", [False, True])
def test_loss_gradient_and_scores_are_those_of_the_definition(group, kind, featured):
    """Against central differences in float64."""
    settings = {"gnn.model": "sage", "gnn.baselines": False}
    classifier = classifier_on(group, settings, kind, F=F if featured else None)
    values = weights_of(classifier)
    classifier.params.set(values)
    loss, found = gradient_of(classifier)
    graph, X, _ = drawn(kind=kind)
    edges, labels, train = edges_of(classifier)
    place = {frozenset(edge): i for i, edge in enumerate(graph.edges)}
    rows = F[[place[frozenset(edge)] for edge in edges.tolist()]] if featured else None
    A, case = nx.to_numpy_array(graph), classifier.case
    scale = getattr(classifier.goal, "scale", None)
    W = {name: each.astype(float) for name, each in values.items()}

    def reference():
        S = reference_scores(X, A, edges, case, classifier.classes, W, rows)
        return reference_loss(S[train], labels[train], kind, scale), S

    wanted, S = reference()
    assert loss == pytest.approx(wanted, rel=1e-5)
    own = classifier.scores_own()
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    assert np.allclose(group.gather_host(np.ascontiguousarray(own), sizes), S, rtol=1e-3, atol=1e-4)
    for name, array in W.items():
        for at in list(np.ndindex(array.shape))[::3]:
            held, ends = array[at], []
            for step in (1e-6, -1e-6):
                array[at] = held + step
                ends.append(reference()[0])
            array[at] = held
            assert found[name][at] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-3, abs=2e-5), name


def test_products_leave_out_what_few_edges_do_not_depend_on(group):
    classifier = classifier_on(group, {"gnn.model": "gcn"}, n=600, few=9)
    classifier.params.set(weights_of(classifier))
    loss, found = gradient_of(classifier)
    assert 0 < min(classifier.shares()) < 0.5
    classifier.engine.narrow = {}
    whole, wanted = gradient_of(classifier)
    assert loss == whole
    assert all(np.array_equal(found[name], wanted[name]) for name in found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_one_rank(group, solo, kind, monkeypatch):
    settings = {
        "gnn.model": "gcn",
        "gnn.epochs": 4,
        "gnn.class_weights": "balanced" if kind == "classes" else "equal",
    }
    found = []
    for each, exchange, piece in ((solo, "auto", 1 << 13), (group, "halo", 7), (group, "gather", 64)):
        monkeypatch.setattr(entries, "PIECE", piece)
        classifier = classifier_on(each, settings, kind, exchange, F=F)
        result = fit(classifier)
        scores = classifier.evaluate_ranking()
        plain = plain_edge_scores(classifier)
        found.append((result.weights, scores, plain, result.records))
    for weights, *rest in found[1:]:
        assert all(np.array_equal(weights[name], found[0][0][name]) for name in weights)
        assert repr(rest) == repr(list(found[0][1:]))


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_every_device_makes_the_same_bits(kind):
    found = []
    for device in (HostDevice(), HostDevice(compiled=False), StandInDevice()):
        classifier = classifier_on(Group(MPI.COMM_SELF, device), {"gnn.model": "sage"}, kind, F=F)
        loss, gradient = gradient_of(classifier)
        found.append((loss, gradient, classifier.scores_own(), classifier.evaluate_ranking()))
    for loss, gradient, scores, told in found[1:]:
        assert loss == found[0][0]
        assert all(np.array_equal(gradient[name], found[0][1][name]) for name in gradient)
        assert np.array_equal(scores, found[0][2])
        assert repr(told) == repr(found[0][3])


@alone
def test_categories_of_edges_are_columns():
    host = Group(MPI.COMM_SELF, HostDevice())
    kinds = np.random.default_rng(1).integers(0, 3, (141, 2))
    columns = (kinds[:, :, None] == np.arange(3)).reshape(141, 6).astype(float)
    losses = []
    for rows, settings in ((kinds, {"gnn.edge_feature_rows": "one_hot"}), (columns, {})):
        classifier = classifier_on(host, {"gnn.model": "sage", **settings}, F=rows)
        classifier.params.set(weights_of(classifier))
        losses.append(gradient_of(classifier))
    assert losses[0][0] == losses[1][0]
    assert all(np.array_equal(losses[0][1][name], losses[1][1][name]) for name in losses[0][1])


@pytest.mark.parametrize("model", ["gine", "gat", "gcn2"])
def test_other_layers_learn(group, model):
    classifier = classifier_on(group, {"gnn.model": model, "gnn.epochs": 5, "gnn.dropout": 0.1}, F=F)
    rows = fit(classifier).records
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_rows_may_move_between_epochs(group, solo):
    from app.partition.rows import RowPartition

    moved, one = (classifier_on(each, {"gnn.epochs": 2, "gnn.model": "gcn"}, F=F) for each in (group, solo))
    rows = moved.block.rows
    cuts = np.array(
        [
            0,
            *sorted(np.random.default_rng(2).integers(0, len(rows.starts), group.size - 1)),
            len(rows.starts) - 1,
        ]
    )
    moved.epoch(1)
    moved.move(RowPartition(rows.n, rows.starts, cuts))
    assert gradient_of(moved)[0] == gradient_of(one)[0]
    assert repr(moved.evaluate_ranking()) == repr(one.evaluate_ranking())


@alone
def test_under_a_limit_of_memory_no_bit_changes():
    host = Group(MPI.COMM_SELF, HostDevice())
    one = classifier_on(host, {"gnn.epochs": 3, "gnn.model": "gcn", "gnn.hidden": 8})
    wanted = fit(one).weights
    limited = classifier_on(
        host, {"gnn.epochs": 3, "gnn.model": "gcn", "gnn.hidden": 8}, budget=TierBudget(4 * 64 * 56)
    )
    assert all(np.array_equal(each, wanted[name]) for name, each in fit(limited).weights.items())


# ---- kernels ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize(
    ("h", "begun", "biased"), [(1, False, False), (7, True, True), (16, False, True), (33, True, False)]
)
def test_kernels_have_the_bits_of_the_plain_path(compiled, h, begun, biased):
    draws, found = np.random.default_rng(h), []
    counts = draws.integers(0, 5, 30)
    row = (4 + np.repeat(np.arange(30), counts)).astype(np.int32)
    column = draws.integers(0, 50, len(row)).astype(np.int32)
    Z, X, U, G, D = (
        draws.normal(size=shape).astype(np.float32)
        for shape in ((40, 3 * h), (50, 3 * h), (len(row), h), (len(row), h), (30, 3 * h))
    )
    X[column[3]] = Z[row[3]]  # a distance of 0
    Z[row[5], 0] = np.nan
    bias = draws.normal(size=h).astype(np.float32) if biased else None
    for device in (compiled, HostDevice(compiled=False)):
        u, g, d = U.copy(), G.copy(), D.copy()
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        ones = device.csr(indptr, np.arange(len(row), dtype=np.int32), None, (30, len(row)))
        device.head_units(Z, X, row, column, bias, u, begun)
        device.head_back(Z, X, row, column, u, g, d, 4, ones)
        found.append((u, g, d))
    for one, other in zip(*found):
        assert np.array_equal(one, other, equal_nan=True)
    assert np.isnan(found[0][0]).any()
    with pytest.raises(NumericsError, match="head: operands must be float32"):
        compiled.head_units(Z.astype(float), X, row, column, bias, U, begun)
    with pytest.raises(NumericsError, match="do not fit"):
        compiled.head_units(Z[:, 1:], X, row, column, bias, U, begun)


# ---- estimates --------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("featured", [False, True])
def test_estimates_are_of_what_runs(featured):
    host = Group(MPI.COMM_SELF, HostDevice())
    settings = {"gnn.model": "sage", "gnn.hidden": 8}
    classifier = classifier_on(host, settings, F=F if featured else None)
    width = F.shape[1] if featured else 0
    sizes = Sizes(classifier.block.n_own, WIDTH, True, classifier.classes, edge_width=width)
    engine = rehearse(host.device, classifier.case, sizes)
    told = [
        {name: [(each.kind, each.name, each.exchanges) for each in some] for name, some in of.items()}
        for of in (engine.recorded, classifier.engine.recorded)
    ]
    assert told[0] == told[1]
    assert engine.plan.columns == classifier.engine.plan.columns


@alone
def test_a_dry_run_tells_of_edges(tmp_path):
    graph, _ = signed()
    (tmp_path / "y.txt").write_text("\n".join(kind for *_, kind in graph.edges(data="kind")))
    arrays = {"edge_index": np.array(graph.edges).T, "num_nodes": 40, "edge_feat": np.ones((graph.size(), 5))}
    np.savez(tmp_path / "g.npz", **arrays)
    files = [f"graph.path={tmp_path / 'g.npz'}", f"graph.edge_labels={tmp_path / 'y.txt'}"]
    for more in (files, []):
        code, printed = run_job([sys.executable, "run.py", "inputs/edges.toml", *more, "--dry-run"])
        assert code == 0, printed
        held = printed.partition("a rank on 1 rank")[2]
        assert ("edge features" in held) == bool(more)
        assert "scores of edges" in held
        assert "an epoch with its evaluations" in held


# ---- plain rules ------------------------------------------------------------------------------------------


def test_plain_rules_are_what_they_say(group):
    classifier = classifier_on(group, {"gnn.model": "gcn"})
    edges, labels, train = edges_of(classifier)
    counts = np.zeros((60, 3))
    for (u, v), label in zip(edges[train].tolist(), labels[train].tolist()):
        counts[[u, v], label] += 1
    prior = np.bincount(labels[train], minlength=3) / train.sum()
    both = counts[edges[:, 0]] + counts[edges[:, 1]] + prior
    said = (both / both.sum(axis=1, keepdims=True)).astype(np.float32).argmax(axis=1)
    found = plain_edge_scores(classifier)
    own = classifier.about
    for name in ("val", "test"):
        sizes = group.gather_integers(np.array([len(own.train)]))[:, 0].tolist()
        chosen = group.gather_host(np.ascontiguousarray(getattr(own, name)), sizes)
        assert found["ends"][name].accuracy == (said == labels)[chosen].mean()
        assert found["largest_class"][name].accuracy == (prior.argmax() == labels)[chosen].mean()


# ---- from Python ------------------------------------------------------------------------------------------

FEW = {"gnn.epochs": 3, "gnn.hidden": 4}


def signed():
    """A graph of two camps, whose edges within one are of kind "trust"."""
    graph = nx.planted_partition_graph(2, 20, 0.4, 0.3, seed=4)
    graph.remove_edge(0, 1)
    for u, v in graph.edges:
        graph[u][v]["kind"] = "trust" if (u < 20) == (v < 20) else "distrust"
    X = np.random.default_rng(1).normal(size=(40, 4))
    X[:20, 0] += 3
    return graph, X


@alone
def test_it_learns_what_edges_are():
    graph, X = signed()
    found = classify_edges(
        graph, "kind", X, settings={"output.probabilities": True, "output.embeddings": True}
    )
    assert found.scores["test"].accuracy > 0.95 > found.plain["largest_class"]["test"].accuracy + 0.2
    assert found.edges == list(graph.edges)
    assert set(found.plain) == {"ends", "largest_class"}
    assert found.classes.tolist() == ["distrust", "trust"]
    assert (found.classes[found.probabilities.argmax(axis=1)] == found.predicted).all()
    assert found.embeddings.shape == (40, 32)
    assert repr(found).startswith(f"EdgeClassification({graph.size()} edges, 200 epochs; train")
    assert "edges" in found._repr_html_()
    again = classify_edges(graph, "kind", X, weights=found)
    assert (again.predicted == found.predicted).all()


def test_all_ranks_get_the_same_answer():
    graph, X = signed()
    edges = list(graph.edges)
    more = {"train": edges[:150], "test": edges[150:], "settings": FEW | {"output.probabilities": True}}
    found, one = (classify_edges(graph, "kind", X, comm=comm, **more) for comm in (None, MPI.COMM_SELF))
    assert found.digest == one.digest
    assert (found.predicted == one.predicted).all()
    assert np.array_equal(found.probabilities, one.probabilities)
    if MPI.COMM_WORLD.Get_size() > 1:
        labels = [str(MPI.COMM_WORLD.Get_rank())] * len(edges)
        with pytest.raises(GraphError, match="labels: rank 1 was given other ones than rank 0"):
            classify_edges(graph, labels, X, settings=FEW)


@alone
def test_labels_are_told_in_any_way():
    graph, X = signed()
    kinds = [kind for *_, kind in graph.edges(data="kind")]
    frame = Frame(a=[u for u, _ in graph.edges], b=[v for _, v in graph.edges], kind=kinds)
    ways = [
        (graph, "kind"),
        (graph, kinds),
        (graph, np.array(kinds)),
        (graph, {(v, u): kind for u, v, kind in graph.edges(data="kind")}),
        (frame, "kind"),
        (list(graph.edges), kinds),
        (nx.to_scipy_sparse_array(graph), {(u, v): kind for u, v, kind in graph.edges(data="kind")}),
    ]
    found = [classify_edges(each, labels, X, settings=FEW) for each, labels in ways]
    told = [dict(zip(map(frozenset, each.edges), each.predicted.tolist())) for each in found]
    assert all(each == told[0] for each in told[1:])
    assert len({each.digest for each in found}) == 1


@alone
@pytest.mark.parametrize("order", ["natural", "random", "rcm"])
def test_predictions_stand_beside_the_edges_in_any_order(order):
    graph, X = signed()
    settings = {"gnn.epochs": 100, "graph.order": order}
    found = classify_edges(graph, "kind", X, settings=settings)
    truth = np.array([kind for *_, kind in graph.edges(data="kind")])
    assert found.edges == list(graph.edges)
    assert (found.predicted == truth).mean() > 0.95
    assert (
        found.scores["train"].nodes + found.scores["val"].nodes + found.scores["test"].nodes == graph.size()
    )


@alone
def test_sets_are_flags_or_pairs():
    graph, X = signed()
    edges = list(graph.edges)
    flags = np.arange(len(edges)) < 60
    pairs = classify_edges(
        graph, "kind", X, train=edges[:60], test=[edge[::-1] for edge in edges[60:]], settings=FEW
    )
    same = classify_edges(graph, "kind", X, train=flags, test=(~flags).tolist(), settings=FEW)
    assert pairs.digest == same.digest
    assert pairs.scores["train"].nodes == 60
    assert pairs.scores["val"].nodes == 0


@alone
def test_several_labels_and_numbers():
    graph, X = signed()
    draws = np.random.default_rng(1)
    both = [[int(u < 20), None if draws.random() < 0.2 else int(v < 20)] for u, v in graph.edges]
    found = classify_edges(graph, both, X, settings=FEW | {"gnn.epochs": 60})
    assert found.predicted.shape == (graph.size(), 2)
    assert found.scores["test"].auc > 0.8
    length = {(u, v): abs(float(X[u, 0] - X[v, 0])) for u, v in graph.edges}
    length[next(iter(length))] = None
    found = classify_edges(
        graph, length, X, settings=FEW | {"gnn.goal": "values", "gnn.epochs": 200, "gnn.hidden": 16}
    )
    assert found.predicted.dtype == np.float32
    assert found.predicted.shape == (graph.size(),)
    assert found.scores["train"].r2 > 0.5


@alone
def test_weights_go_by_the_features_that_they_have_learned_on():
    graph, X = signed()
    rows = np.ones((graph.size(), 2))
    bare = classify_edges(graph, "kind", X, settings=FEW)
    with pytest.warns(UserWarning, match="its edge features are not read; weights that have learned on some"):
        told = classify_edges(graph, "kind", X, edge_features=rows, weights=bare)
    assert (told.predicted == bare.predicted).all()
    featured = classify_edges(graph, "kind", X, edge_features=rows, settings=FEW)
    with pytest.raises(CaseError, match=r"for edges with 2 features; .* have none; edge_features= would be"):
        classify_edges(graph, "kind", X, weights=featured)
    with pytest.raises(GraphError, match="weights: for edges with 2 features; these have 3"):
        classify_edges(graph, "kind", X, edge_features=np.ones((graph.size(), 3)), weights=featured)
    with pytest.raises(GraphError, match="weights: for 2 classes; these data have class love besides"):
        classify_edges(graph, ["love"] * graph.size(), X, edge_features=rows, weights=featured)


@alone
def test_files_from_python(tmp_path):
    graph, X = signed()
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    (tmp_path / "y.txt").write_text("".join(f"{v} {u} {kind}\n" for u, v, kind in graph.edges(data="kind")))
    given = {"graph.edge_labels": str(tmp_path / "y.txt"), "graph.edge_data_by": "ends"}
    found = classify_edges(path, features=X, settings=FEW | given)
    told = {(u, v): kind for u, v, kind in graph.edges(data="kind")}
    same = classify_edges(path, told, X, settings=FEW)
    assert found.edges == same.edges == sorted(map(tuple, map(sorted, graph.edges)))
    assert found.digest == same.digest == classify_edges(graph, "kind", X, settings=FEW).digest
    with pytest.raises(CaseError, match=r"graph\.edge_splits of the settings would be right beside labels"):
        classify_edges(path, features=X, train=list(graph.edges), settings=FEW | given)
    with pytest.raises(GraphError, match="labels: only of graphs in memory"):
        classify_edges(path, "kind", X, settings=FEW)


@alone
def test_edges_without_labels_are_predicted_too():
    graph, X = signed()
    for u, v in list(graph.edges)[::3]:
        del graph[u][v]["kind"]
    found = classify_edges(graph, "kind", X, settings=FEW)
    assert len(found.predicted) == graph.size()
    assert sum(each.nodes for each in found.scores.values()) == sum(
        "kind" in d for *_, d in graph.edges(data=True)
    )
    bare = classify_edges(nx.Graph(graph.edges), None, X, weights=found)
    assert bare.scores == {}
    assert len(bare.predicted) == graph.size()


@alone
def test_loops_and_repeats():
    edges = [(0, 1), (1, 1), (1, 2), (2, 1), (2, 3), (3, 0)]
    found = classify_edges(edges, [0, 1, 1, 1, 0, 1], settings=FEW, train=np.ones(6, bool))
    assert found.edges == [edge for edge in edges if edge != (1, 1)]
    assert found.scores["train"].nodes == 4
    with pytest.raises(
        GraphError, match="edges 2 and 3, counted from 0, are both 1-2 and have unlike labels"
    ):
        classify_edges(edges, [0, 1, 1, 0, 0, 1], settings=FEW)


@alone
@pytest.mark.parametrize(
    ("labels", "more", "said"),
    [
        ("color", {}, "labels: no edge has an attribute 'color'"),
        ([1, 2], {}, "labels: found 2 rows"),
        (None, {}, "the edges have no labels: set graph.edge_labels"),
        ({(0, 1): 1}, {"train": [(0, 1)]}, "labels of edges: found 1-0, which is none"),
        ({(0, 99): 1}, {}, "labels: found 99; a node of the graph would be right"),
        ("kind", {"train": [(0, 1)]}, "splits of edges: found 1-0, which is none"),
        ("kind", {"train": [True]}, "train: found 1 rows; 278, one for each edge, would be right"),
        ("kind", {"settings": {"gnn.level": "node", "graph.edge_splits": ""}}, 'gnn.level: must be "edge"'),
        ("kind", {"settings": {"graph.labels": "x"}}, r"graph\.labels"),
        ("kind", {"settings": {"graph.edge_labels": "x.txt"}}, r"graph\.edge_labels"),
        ("kind", {"settings": {"graph.edge_splits": ""}}, "no edge is to be trained on: set graph.edge"),
        ("kind", {"settings": {"graph.neighbours": "in"}}, 'graph.neighbours: must be "both" for edges'),
        ("kind", {"settings": {"parallel.exchange": "staged"}}, '"auto", "halo" or "gather" would be right'),
        ("kind", {"settings": {"gnn.layers": ["gcn 8", "gcn 4"]}}, "gives 96 columns, 3 times gnn.hidd"),
        ("kind", {"settings": {"gnn.goal": "values"}}, r"labels: .*real numbers"),
        ("kind", {"settings": {"gnn.edge_feature_rows": "one_hot"}}, "edge_feature_rows: edges"),
        ("kind", {"settings": {"smooth.method": "both"}}, "is of nodes, whose neighbours it hears"),
        ("kind", {"settings": {"run.task": "study", "study.kind": "models"}}, "is not of edges"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(labels, more, said):
    graph, X = signed()
    assert not graph.has_edge(0, 1)
    with pytest.raises((CaseError, GraphError), match=said):
        classify_edges(graph, labels, X, **more)


@alone
def test_an_edge_in_two_sets_and_training_without_labels_are_refused():
    graph, X = signed()
    edges = list(graph.edges)
    with pytest.raises(
        GraphError, match=r"edges 0 and 60, counted from 0, are both .* and have unlike splits"
    ):
        classify_edges(graph, "kind", X, train=edges[:60], test=edges[:9])
    labels = dict.fromkeys(edges[:9], 1)
    with pytest.raises(GraphError, match=r"edge .+ in train, which has no label"):
        classify_edges(graph, labels, X, train=edges[:10])
    with pytest.warns(UserWarning, match="1 held-back edges have no label and are left out"):
        classify_edges(graph, labels, X, train=edges[:6], test=edges[6:10], settings=FEW)


# ---- runs -------------------------------------------------------------------------------------------------


def run(folder, *more, ranks=1, code=0):
    """What a run prints; its result, where it ends well."""
    start = mpirun(ranks) if ranks > 1 else []
    command = [
        *start,
        sys.executable,
        "run.py",
        "inputs/edges.toml",
        "output.plots=false",
        split_over(ranks),
        *more,
        "--out",
        folder,
    ]
    found, printed = run_job(command, limit_s=120)
    assert found == code, printed
    return json.loads((folder / "result.json").read_text()) if code == 0 else printed


@alone
def test_runs_have_one_digest_on_any_ranks_and_after_a_stop(tmp_path):
    keys = ["graph.nodes=300", "gnn.epochs=12", "gnn.evaluate_every=4", "output.probabilities=true"]
    found = [run(tmp_path / str(ranks), *keys, ranks=ranks) for ranks in (1, 2, 3)]
    assert len({each["digest"] for each in found}) == 1
    assert set(found[0]["plain"]) == {"ends", "largest_class"}
    texts = {(tmp_path / f"{ranks}/predictions/sbm-300-0.txt").read_text() for ranks in (1, 2, 3)}
    assert len(texts) == 1
    assert len(texts.pop().splitlines()) == found[0]["edges"]
    likely = np.load(tmp_path / "2/probabilities/sbm-300-0.npz")
    assert likely["ids"].shape == (found[0]["edges"], 2)
    assert np.allclose(likely["probabilities"].sum(axis=1), 1)
    moved = run(tmp_path / "moved", *keys, "parallel.partition=learned", ranks=2)
    assert moved["digest"] == found[0]["digest"]

    again = digest_after_a_stop(["inputs/edges.toml", *keys], tmp_path / "stopped", 7)
    assert again == found[0]["digest"]


@alone
def test_files_in_order_and_by_ends_and_weights(tmp_path):
    graph, X = signed()
    edges, kinds = list(graph.edges), [kind for *_, kind in graph.edges(data="kind")]
    told = list(zip(edges, kinds))
    sets = ["train" if i % 3 else "test" for i in range(len(edges))]
    names = {
        "club.txt": [f"n{u} n{v}" for u, v in edges], "kinds.txt": kinds, "sets.txt": sets,
        "by_ends.txt": ["from to kind", *(f"n{v} n{u} {kind}" for (u, v), kind in told[::-1])],
        "sets_by_ends.txt": [f"n{u}\tn{v}\t{each}" for (u, v), each in zip(edges, sets)],
        "wrong.txt": ["n0 n1 trust", "n0 n2 distrust"], "nobody.txt": ["n0 n77 trust"], "few.txt": kinds[:9],
    }  # fmt: skip
    for name, lines in names.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "X.npy", X[np.argsort([f"n{v}" for v in range(40)])])
    file = lambda name: str(tmp_path / name)  # noqa: E731
    common = [
        f"graph.path={file('club.txt')}", "graph.ids=names", f"graph.features={file('X.npy')}",
        "gnn.epochs=100", "gnn.hidden=16",
    ]  # fmt: skip
    order = [f"graph.edge_labels={file('kinds.txt')}", f"graph.edge_splits={file('sets.txt')}"]
    ends = [f"graph.edge_labels={file('by_ends.txt')}", f"graph.edge_splits={file('sets_by_ends.txt')}"]
    ends += ["graph.edge_data_by=ends"]
    found = [
        run(tmp_path / "order", *common, *order),
        run(tmp_path / "ends", *common, *ends),
        run(tmp_path / "three", *common, *ends, ranks=3),
        run(tmp_path / "rcm", *common, *ends, "graph.order=rcm"),
    ]
    assert len({each["digest"] for each in found[:3]}) == 1
    assert found[3]["test_accuracy"] > 0.85 < found[0]["test_accuracy"]
    lines = (tmp_path / "order/predictions/club.txt").read_text().splitlines()
    told = {frozenset(line.split()[:2]): line.split()[2] for line in lines}
    truth = {frozenset((f"n{u}", f"n{v}")): kind for (u, v), kind in zip(edges, kinds)}
    assert set(told) == set(truth)
    assert np.mean([told[edge] == kind for edge, kind in truth.items()]) > 0.9

    # What is predicted can be read as labels, and weights say of another graph what its edges are.
    weights = [f"gnn.weights={tmp_path / 'order/weights.npz'}", "gnn.epochs=0", "graph.edge_splits=''"]
    same = [f"graph.edge_labels={tmp_path / 'order/predictions/club.txt'}", "graph.edge_data_by=ends"]
    applied = run(tmp_path / "applied", *common[:3], *weights, *same)
    assert applied["test_accuracy"] == 1.0
    assert applied["epochs"] == 0
    train = np.arange(len(edges)) % 3 > 0
    np.savez(tmp_path / "lists.npz", train_idx=np.flatnonzero(train), test_idx=np.flatnonzero(~train))
    again = run(tmp_path / "lists", *common, order[0], f"graph.edge_splits={file('lists.npz')}")
    assert again["digest"] == found[0]["digest"]
    bare = run(tmp_path / "bare", *common[:3], *weights)
    assert "test_accuracy" not in bare

    for name, more, said in (
        ("few.txt", [], "found 9 rows of labels of edges; 278, one for each edge of club, would be right"),
        ("wrong.txt", ["graph.edge_data_by=ends"], "labels of edges: found"),
        ("nobody.txt", ["graph.edge_data_by=ends"], "nobody.txt:1: found node n77; a node of club would"),
        ("kinds.txt", ["graph.edge_data_by=ends"], "kinds.txt:1: found nothing after the ids"),
        ("X.npy", ["graph.edge_data_by=ends"], "found arrays, in which edges are not named by the ids"),
    ):  # fmt: skip
        keys = [f"graph.edge_labels={file(name)}", "graph.edge_splits=random", *more]
        printed = run(tmp_path / "wrong", *common, *keys, code=2)
        assert said in printed, printed
    nodes = [sys.executable, "run.py", "inputs/gcn.toml", *weights[:2], "--out", tmp_path / "wrong"]
    code, printed = run_job(nodes)
    assert (code, "says what edges are" in printed) == (2, True), printed


@alone
def test_archives_hold_labels(tmp_path):
    graph, X = signed()
    pairs = np.array(graph.edges)
    np.savez(
        tmp_path / "g.npz",
        edge_index=pairs.T,
        num_nodes=40,
        features=X,
        edge_label=(pairs < 20).sum(axis=1) == 1,
    )
    keys = [
        f"graph.path={tmp_path / 'g.npz'}",
        "graph.edge_splits=random",
        "gnn.epochs=60",
    ]
    assert run(tmp_path / "run", *keys)["test_accuracy"] > 0.9
    metis = tmp_path / "g.graph"
    lines = [" ".join(str(v + 1) for v in graph[u]) for u in range(40)]
    metis.write_text(f"40 {graph.size()}\n" + "\n".join(lines) + "\n")
    (tmp_path / "one.txt").write_text("1\n")
    keys = [f"graph.path={metis}", f"graph.edge_labels={tmp_path / 'one.txt'}"]
    printed = run(tmp_path / "wrong", *keys, code=2)
    assert "graph.edge_labels: metis lists no edges one by one; edges" in printed
    assert 'graph.edge_data_by = "ends"' in printed
