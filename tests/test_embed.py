"""Vectors of nodes without labels (gnn.level = "embed"): gradients, views, ranks, clusters, files, Python."""

import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from embedded import PLAIN, WIDTH, drawn, embedder_on, reference_loss, reference_views
from helpers import EXCHANGES, by_one
from jobs import digest_after_a_stop, mpirun, run_job, split_over
from mpi4py import MPI
from standin_device import StandInDevice

from app import classify, embed
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.embed.clusters import cluster, to_length_one
from app.gnn.embed.spectral import leading, spectral_rows
from app.gnn.embed.told import adjusted_rand, modularity, mutual_information
from app.gnn.embed.views import VIEWS, draw_view
from app.gnn.rehearsal import Sizes, rehearse
from app.gnn.training import ended_early, fit
from app.memory.tiers import TierBudget
from app.model.gnn_memory import judging
from app.model.node_plan import training_of

alone = pytest.mark.mpi_skip
LAYERS = {
    "gcn": {}, "sage": {}, "gin": {}, "gat": {"embed.edge_drop": 0.3}, "gcn2": {}, "appnp": {"gnn.hops": 2},
    "gatv2": {"gnn.heads": 2, "embed.edge_drop": 0.3}, "sgc": {"gnn.hops": 2}, "commnet": {}, "dense": {},
    "lightgcn": {"gnn.hops": 2},
}  # fmt: skip


def weights_of(embedder):
    """Values for all parameters, none of them at a special point."""
    draws = np.random.default_rng(3)
    return {
        name: draws.uniform(-1, 1, shape).astype(np.float32) for name, shape in embedder.params.shapes.items()
    }


def gradient_of(embedder, epoch=1):
    """The loss, and the gradient of all parameters by name."""
    loss = embedder.epoch(epoch)
    flat, shapes = embedder.device.get(embedder.engine.gradient), embedder.params.shapes
    return loss, {
        name: np.array(flat[part]).reshape(shapes[name]) for name, part in embedder.params.slices.items()
    }


# ---- loss, gradient ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "objective"), [*((model, "cca") for model in LAYERS), ("gcn", "barlow"), ("gin", "barlow")]
)
def test_loss_and_gradient_are_those_of_the_definition(group, model, objective):
    """Against central differences in float64."""
    settings = {"gnn.model": model, "embed.objective": objective} | LAYERS[model]
    embedder, case = embedder_on(group, settings), build(PLAIN | settings)
    values = weights_of(embedder)
    embedder.params.set(values)
    loss, found = gradient_of(embedder)
    graph, X = drawn()
    views = reference_views(case.embed, case.seed, 1, nx.to_numpy_array(graph), X)
    W = {name: each.astype(float) for name, each in values.items()}
    assert loss == pytest.approx(reference_loss(views, case, W), rel=2e-5)
    for name, array in W.items():
        for at in list(np.ndindex(array.shape))[::5]:
            held, ends = array[at], []
            for step in (1e-6, -1e-6):
                array[at] = held + step
                ends.append(reference_loss(views, case, W))
            array[at] = held
            assert found[name][at] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=5e-3, abs=1e-4), name


# ---- ranks, devices, memory -------------------------------------------------------------------------------

WAYS = {
    "plain": ({}, {}),
    "sparse": ({"gnn.dropout": 0.2, "gnn.input_dropout": 0.2}, {"sparse": True}),
    "arcs": ({"gnn.model": "sage"}, {"arcs": True}),
    "weighted": ({"gnn.edge_weights": True, "gnn.batch_norm": True}, {}),
    "gat": ({"gnn.model": "gat", "gnn.dropout": 0.2}, {}),
    "kept": ({"embed.edge_drop": 0.0, "gnn.model": "sgc", "embed.objective": "barlow"}, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_bits_are_those_of_one_rank(group, solo, way):
    settings, data = WAYS[way]
    settings = settings | {"gnn.epochs": 3, "gnn.keep": "best"}

    def learned(ranks, exchange):
        embedder = embedder_on(ranks, settings, exchange, **data)
        result = fit(embedder)
        own = np.ascontiguousarray(embedder.scores_own()[: embedder.block.n_real])
        rows = ranks.gather_host(own, embedder.block.rows.row_counts())
        return rows.tobytes(), repr(result.records), result.best, embedder.agreement

    expected = by_one(lambda: learned(solo, "auto"))
    for exchange in EXCHANGES:
        assert learned(group, exchange) == expected


@alone
@pytest.mark.parametrize("way", ["plain", "sparse", "gat", "weighted"])
def test_every_device_makes_the_same_bits(way):
    settings, data = WAYS[way]
    found = []
    for device in (HostDevice(), HostDevice(compiled=False), StandInDevice()):
        embedder = embedder_on(Group(MPI.COMM_SELF, device), settings, **data)
        found.append((*gradient_of(embedder), embedder.scores_own()))
    for loss, gradient, rows in found[1:]:
        assert loss == found[0][0]
        assert all(np.array_equal(gradient[name], found[0][1][name]) for name in gradient)
        assert np.array_equal(rows, found[0][2])


@alone
@pytest.mark.parametrize("way", ["plain", "gat"])
def test_kernels_of_gpus_make_the_same_bits(emulated, way):
    """Training, vectors and clusters, by the CUDA kernels compiled for the host."""
    settings, found = WAYS[way][0] | {"gnn.epochs": 3}, []
    for device in (HostDevice(), emulated):
        embedder = embedder_on(Group(MPI.COMM_SELF, device), settings)
        records = fit(embedder).records
        rows = embedder.scores_own()
        real = np.arange(len(rows)) < embedder.block.n_real
        rows[~real] = 0
        done = cluster(embedder.engine, to_length_one(device, rows), real, 4, 1, 2)
        found.append((rows, done.of_own, done.centres, repr(records), done.spread))
    for one, other in zip(*found):
        assert np.array_equal(one, other)


def test_rows_may_move_between_epochs(group, solo):
    from app.partition.rows import RowPartition

    moved, one = (embedder_on(each, {"gnn.epochs": 2}) for each in (group, solo))
    rows = moved.block.rows
    draws, last = np.random.default_rng(2), len(rows.starts) - 1
    cuts = np.array([0, *sorted(draws.integers(0, last + 1, group.size - 1)), last])
    moved.epoch(1)
    moved.move(RowPartition(rows.n, rows.starts, cuts))
    assert gradient_of(moved)[0] == gradient_of(one)[0]


@alone
@pytest.mark.parametrize("limit", [4 * 64 * 30, 4 * 64 * 44])
def test_under_a_limit_of_memory_no_bit_changes(limit):
    host = Group(MPI.COMM_SELF, HostDevice())
    settings = {"gnn.epochs": 3, "gnn.hidden": 8}
    wanted = fit(embedder_on(host, settings)).weights
    limited = embedder_on(host, settings, budget=TierBudget(limit))
    assert limited.engine.tiered
    assert all(np.array_equal(each, wanted[name]) for name, each in fit(limited).weights.items())


@alone
@pytest.mark.parametrize("edge_drop", [0.0, 0.3])
def test_estimates_are_of_what_runs(edge_drop):
    host = Group(MPI.COMM_SELF, HostDevice())
    embedder = embedder_on(host, {"embed.edge_drop": edge_drop, "gnn.model": "gcn"})
    sizes = Sizes(embedder.block.n_own, WIDTH, True, embedder.classes)
    engine = rehearse(host.device, embedder.case, sizes)
    told = [
        {name: [(each.kind, each.name, each.exchanges) for each in some] for name, some in of.items()}
        for of in (engine.recorded, embedder.engine.recorded)
    ]
    assert told[0] == told[1]
    assert engine.plan.columns == embedder.engine.plan.columns


@alone
def test_losses_below_zero_end_and_keep_a_training_as_others_do():
    host = Group(MPI.COMM_SELF, HostDevice())
    asked = {"gnn.epochs": 60, "gnn.keep": "best", "gnn.patience": 3, "gnn.learning_rate": 0.01}
    embedder = embedder_on(host, asked)
    found = fit(embedder)
    losses = [row["loss"] for row in found.records]
    assert found.epochs < 60
    last = embedder_on(host, asked)
    last.params.set(found.weights)
    assert found.best == min(*losses, last.epoch(found.best_epoch + 1)) < 0
    assert last.epoch(found.best_epoch + 1) == found.best  # a loss is that before the step of its epoch
    falls = replace(found, best_epoch=1, records=[{"epoch": 1, "loss": -1.0, "train_score": 0.1}])
    for last, told in ((-1.2, True), (-1.01, False), (-0.9, False)):
        row = {"epoch": 9, "loss": last, "train_score": 0.2}
        said = ended_early(replace(falls, records=[*falls.records, row]), embedder.case)
        assert bool(said) == told


# ---- views ------------------------------------------------------------------------------------------------


@alone
def test_views_leave_out_what_they_are_asked_to():
    host = Group(MPI.COMM_SELF, HostDevice())
    embedder = embedder_on(host, {"embed.edge_drop": 0.5, "embed.feature_drop": 0.5}, n=700)
    of = embedder.engine, embedder.case, embedder.embed, 1, 1
    first, second = (draw_view(*of, name, 4096) for name in VIEWS)
    whole = embedder.block.degrees_own()
    left = [view.sides[0].degrees() for view in (first, second)]
    for each in left:
        assert 0.45 < each.sum() / whole.sum() < 0.55
        assert (each <= whole).all()
    assert not np.array_equal(*left)
    assert first.sides[0] is first.sides[1]  # an edge is left out from both ends
    columns = [np.array(view.columns) for view in (first, second)]
    assert all(0.45 < each.mean() < 0.55 for each in columns)
    assert 0.2 < (columns[0] * columns[1]).mean() < 0.3  # of each other independent
    another = draw_view(*of[:-1], 2, VIEWS[0], 4096)
    assert not np.array_equal(another.columns, columns[0])


# ---- clusters and probes ----------------------------------------------------------------------------------


def blobs(n=64, d=4, k=3, apart=6.0):
    """[n, d] rows about k centres, and which one each is of."""
    draws = np.random.default_rng(7)
    kinds = np.arange(n) % k
    return (draws.normal(size=(n, d)) + apart * draws.normal(size=(k, d))[kinds]).astype(np.float32), kinds


def test_clusters_are_found_and_are_those_of_one_rank(group, solo):
    X, kinds = blobs(60)
    found = []
    for each in (solo, group):
        embedder = embedder_on(each)
        block = embedder.block
        own, real = np.zeros((block.n_own, 4), np.float32), np.arange(block.n_own) < block.n_real
        own[real] = X[block.lo : block.lo + block.n_real]
        done = cluster(embedder.engine, each.device.put(own), real, 3, 5, 4)
        mine = np.ascontiguousarray(done.of_own[: block.n_real])
        found.append((each.gather_host(mine, block.rows.row_counts()), done.centres, done.spread))
    assert all(np.array_equal(one, other) for one, other in zip(*found))
    of_all, centres, spread = found[0]
    table = np.zeros((3, 3), dtype=np.int64)
    np.add.at(table, (of_all, kinds), 1)
    assert adjusted_rand(table) == mutual_information(table) == 1.0
    assert np.allclose(centres, [X[of_all == c].mean(axis=0) for c in range(3)], atol=1e-5)
    assert spread == pytest.approx(((X - centres[of_all]) ** 2).sum(), rel=1e-4)


def test_modularity_is_that_of_networkx(group):
    embedder = embedder_on(group)
    graph, _ = drawn()
    kinds = np.random.default_rng(3).integers(0, 4, len(graph))
    own = np.full(embedder.block.n_own, -1)
    own[: embedder.block.n_real] = kinds[embedder.block.lo :][: embedder.block.n_real]
    sets = [set(np.flatnonzero(kinds == c).tolist()) for c in range(4)]
    found = modularity(group, embedder.block, own, 4)
    assert found == pytest.approx(nx.community.modularity(graph, sets))


@alone
def test_measures_of_clusters_are_their_definitions():
    draws = np.random.default_rng(1)
    clusters, classes = draws.integers(0, 3, 90), draws.integers(0, 4, 90)
    classes[:40] = clusters[:40]
    table = np.zeros((3, 4), dtype=np.int64)
    np.add.at(table, (clusters, classes), 1)
    p = table / 90
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.nansum(p * np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0))))
    entropy = [-(q * np.log(q)).sum() for q in (p.sum(axis=0), p.sum(axis=1))]
    assert mutual_information(table) == pytest.approx(shared / np.mean(entropy))
    u, v = np.triu_indices(90, 1)
    one, two = clusters[u] == clusters[v], classes[u] == classes[v]
    chance = one.sum() * two.sum() / len(u)
    wanted = ((one & two).sum() - chance) / ((one.sum() + two.sum()) / 2 - chance)
    assert adjusted_rand(table) == pytest.approx(wanted)
    assert np.isnan(mutual_information(table * 0))
    assert np.isnan(adjusted_rand(table * 0))
    assert adjusted_rand(np.array([[5]])) == mutual_information(np.array([[5]])) == 1.0


def test_eigenvectors_are_those_of_the_whole_matrix(group, solo):
    found = []
    for each in (solo, group):
        block = embedder_on(each).block
        own = np.ascontiguousarray(spectral_rows(each, block, 5)[: block.n_real])
        found.append(each.gather_host(own, block.rows.row_counts()))
    assert np.array_equal(*found)
    A = nx.to_numpy_array(drawn()[0])
    factor = 1 / np.sqrt(A.sum(axis=1) + A.sum(axis=1).mean())
    values, vectors = np.linalg.eigh(factor[:, None] * A * factor)
    for j, vector in enumerate(found[0].T):
        assert abs(vector @ vectors[:, -1 - j]) == pytest.approx(1, abs=1e-4)
        assert vector[np.abs(vector).argmax()] > 0
    assert values[-1] - values[-6] > 0.01  # none of them are any others


@alone
@pytest.mark.parametrize("graph", [nx.complete_graph(40), nx.disjoint_union_all([nx.complete_graph(2)] * 60)])
def test_eigenvectors_of_alike_nodes_are_the_same_each_time(graph):
    A = nx.to_scipy_sparse_array(graph, format="csr")
    found = [leading(np.diff(A.indptr), A.indices, 10) for _ in range(2)]
    assert np.array_equal(*found)
    assert np.allclose(found[0].T @ found[0], np.eye(10))


@alone
def test_eigenvectors_that_lie_too_close_are_left_out(monkeypatch):
    monkeypatch.setattr("app.gnn.embed.spectral.RESTARTS", 2)
    A = nx.to_scipy_sparse_array(nx.path_graph(3000), format="csr")
    assert leading(np.diff(A.indptr), A.indices, 10) is None
    told = embed(nx.path_graph(300), labels=np.arange(300) % 2, train=range(200), dimension=8, settings=FEW)
    assert set(told.plain) == {"features", "propagated"}


# ---- from Python ------------------------------------------------------------------------------------------

FEW = {"gnn.epochs": 3, "gnn.hidden": 8, "embed.probe_epochs": 10, "embed.starts": 2}


def groups():
    """A graph of three groups, features that hardly tell them, and the groups."""
    graph, draws = nx.random_partition_graph([30, 30, 30], 0.3, 0.02, seed=1), np.random.default_rng(1)
    kinds = np.repeat([0, 1, 2], 30)
    X = draws.normal(size=(90, 6))
    X[np.arange(90), kinds] += 1
    return nx.Graph(graph.edges), X, np.array(["red", "green", "blue"])[kinds]


@alone
def test_vectors_tell_groups_that_nobody_named():
    graph, X, kinds = groups()
    asked = {"gnn.epochs": 40, "gnn.hidden": 32, "gnn.feature_rows": "as_given", "seed": 2}
    nodes = np.array(graph.nodes)
    bare = embed(graph, X[nodes], dimension=8, clusters=3, settings=asked)
    assert bare.vectors.shape == (90, 8)
    assert bare.predicted is None
    assert bare.scores == bare.plain == {}
    few = list(range(0, 90, 9))
    told = embed(
        graph, X[nodes], dict(zip(range(90), kinds)), dimension=8, train=few,
        test=sorted(set(range(90)) - set(few)), settings=asked,
    )  # fmt: skip
    assert np.array_equal(told.vectors, bare.vectors)  # labels change nothing of them
    assert np.array_equal(told.clusters, bare.clusters)
    assert told.measures["nmi"] > 0.9
    assert told.measures["ari"] > 0.9
    assert told.scores["test"].accuracy > told.plain["features"]["test"].accuracy + 0.1
    assert (told.predicted == kinds[nodes]).mean() > 0.9
    assert set(told.plain) == {"features", "propagated", "spectral"}
    assert repr(told).startswith("Embedding(90 nodes, 8 columns, 40 epochs; alignment 0.")
    assert "linear on the vectors, test" in told._repr_html_()
    again = embed(graph, X[nodes], weights=told)
    assert np.array_equal(again.vectors, told.vectors)
    assert again.epochs == 0


@alone
def test_weights_are_of_degrees_or_features_and_apply_to_other_graphs(tmp_path):
    graph, X, _ = groups()
    found = embed(graph, dimension=4, settings=FEW)
    found.save(tmp_path / "w.npz")
    other = embed(nx.karate_club_graph(), weights=tmp_path / "w.npz", clusters=2)
    assert other.vectors.shape == (34, 4)
    assert set(other.clusters.tolist()) == {0, 1}
    with pytest.raises(GraphError, match="features; these have 6"):
        embed(graph, X, weights=tmp_path / "w.npz")
    with pytest.raises(CaseError, match="makes vectors of nodes; weights for nodes"):
        classify(graph, X, weights=tmp_path / "w.npz", labels=[0, 1] * 45)


def test_all_ranks_get_the_same_answer():
    graph, X, kinds = groups()
    more = {"labels": kinds, "train": range(0, 90, 2), "val": range(1, 90, 2), "settings": FEW}
    found, one = (embed(graph, X, comm=comm, **more) for comm in (None, MPI.COMM_SELF))
    assert found.digest == one.digest
    assert np.array_equal(found.vectors, one.vectors)
    assert np.array_equal(found.clusters, one.clusters)
    assert repr(found.scores) == repr(one.scores)
    assert repr(found.plain) == repr(one.plain)
    assert found.measures == one.measures


@alone
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"clusters": 91},
            r"embed\.clusters: found 91, more than the nodes of .*; at most 90 would be right",
        ),
        (
            {"dimension": 3, "settings": {"embed.dimension": 4}},
            "found 4 beside dimension=3; leave either out",
        ),
        ({"settings": {"gnn.watch": "accuracy"}}, r"gnn\.watch: auto would be right for vectors"),
        ({"settings": {"gnn.class_weights": "balanced"}}, r"gnn\.class_weights: is of labels"),
        ({"settings": {"gnn.goal": "values"}}, r"gnn\.goal: is of labels"),
        ({"settings": {"gnn.model": "gine"}}, r"embed\.edge_drop: gine reads the features of all edges"),
        (
            {"settings": {"gnn.first_product": "cached"}},
            "cached keeps a product that embed.edge_drop changes",
        ),
        ({"settings": {"gnn.level": "node"}}, 'gnn.level: must be "embed", got "node"'),
        ({"settings": {"output.embeddings": True}}, "writes the vectors in any case"),
        ({"settings": {"output.importance": 3}}, r"output\.importance: is of scores"),
        (
            {"settings": {"output.probabilities": True, "embed.probe_epochs": 0}},
            r"output\.probabilities: is of the probe",
        ),
        ({"settings": {"smooth.method": "both"}}, "is of nodes, whose neighbours it hears"),
        ({"settings": {"gnn.layers": ["gcn 8", "gcn 5"]}}, r"embed\.dimension is 64; leave the width out"),
        ({"settings": {"links.loss": "bpr"}}, r"links\.loss: is read by gnn.level = \"link\" alone"),
        ({"settings": {"run.task": "study", "study.kind": "models"}}, "no study is of vectors"),
        ({"settings": {"embed.probe_decays": []}}, r"embed\.probe_decays"),
        ({"settings": {"embed.decorrelation": 1e300}}, r"embed\.decorrelation: must be from 0 to 1000000"),
    ],
)
def test_what_does_not_fit_is_refused(more, said):
    graph, X, _ = groups()
    with pytest.raises((CaseError, GraphError), match=said):
        embed(graph, X, **more)


@alone
def test_keys_of_vectors_are_of_vectors():
    with pytest.raises(CaseError, match=r'embed\.dimension: is read by gnn.level = "embed" alone'):
        classify(nx.path_graph(9), settings={"embed.dimension": 3})
    with pytest.raises(CaseError, match='classify is of nodes or graphs, embed of "embed"'):
        classify(nx.path_graph(9), settings={"gnn.level": "embed"})


@alone
def test_layers_of_edge_features_learn_without_leaving_out_edges():
    graph, X, _ = groups()
    settings = FEW | {"gnn.model": "gine", "embed.edge_drop": 0.0}
    rows = np.random.default_rng(2).normal(size=(graph.size(), 2))
    found = embed(graph, X, edge_features=rows, dimension=4, settings=settings)
    assert np.isfinite(found.vectors).all()
    again = embed(graph, X, edge_features=rows, weights=found)
    assert np.array_equal(again.vectors, found.vectors)


# ---- runs -------------------------------------------------------------------------------------------------


def run(folder, *more, ranks=1, code=0, start=()):
    """What a run prints; its result, where it ends well."""
    before = mpirun(ranks) if ranks > 1 else []
    command = [*before, sys.executable, "run.py", "inputs/embed.toml", "output.plots=false"]
    command += [split_over(ranks), *more]
    found, printed = run_job([*command, "--out", folder, *start], limit_s=120)
    assert found == code, printed
    return json.loads((folder / "result.json").read_text()) if code == 0 else printed


SMALL = (
    "graph.nodes=300", "gnn.hidden=16", "embed.dimension=8", "gnn.epochs=12", "gnn.evaluate_every=4",
    "embed.probe_epochs=10", "embed.starts=2",
)  # fmt: skip


@alone
def test_runs_have_one_digest_on_any_ranks_and_after_a_stop(tmp_path):
    keys = [*SMALL, "output.probabilities=true"]
    found = [run(tmp_path / str(ranks), *keys, ranks=ranks) for ranks in (1, 2, 3)]
    assert len({each["digest"] for each in found}) == 1
    assert set(found[0]["plain"]) == {"features", "propagated", "spectral"}
    assert {"alignment", "redundancy", "modularity", "nmi", "ari", "test_accuracy"} <= set(found[0])
    assert found[0]["best_watched"] <= found[0]["train_loss"]  # of losses below zero, too
    for name in ("clusters", "predictions"):
        texts = {(tmp_path / f"{ranks}/{name}/sbm-300-0.txt").read_text() for ranks in (1, 2, 3)}
        assert len(texts) == 1
        assert len(texts.pop().splitlines()) == 300
    held = np.load(tmp_path / "2/embeddings/sbm-300-0.npz")
    assert held["embeddings"].shape == (300, 8)
    assert held["ids"].tolist() == list(range(300))
    assert (tmp_path / "3/probabilities/sbm-300-0.npz").exists()
    moved = run(tmp_path / "moved", *keys, "parallel.partition=learned", ranks=2)
    assert moved["digest"] == found[0]["digest"]

    again = digest_after_a_stop(["inputs/embed.toml", *keys], tmp_path / "stopped", 7)
    assert again == found[0]["digest"]


@alone
def test_files_without_labels_and_weights_on_another_graph(tmp_path):
    graph, X, kinds = groups()
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    file = [f"graph.path={path}"]
    found = run(tmp_path / "bare", *file, *SMALL[1:], "graph.features=degrees")
    assert "test_accuracy" not in found
    assert not (tmp_path / "bare/clusters").exists()
    asked = [*file, *SMALL[1:], "graph.features=degrees", "output.probabilities=true"]
    said = run(tmp_path / "unlikely", *asked, code=2)
    assert "output.probabilities: are those of the probe, which has no labels" in said
    (tmp_path / "y.txt").write_text("\n".join(kinds) + "\n")
    more = [f"graph.labels={tmp_path / 'y.txt'}", "graph.splits=random"]
    weights = [f"gnn.weights={tmp_path / 'bare/weights.npz'}", "gnn.epochs=0", "embed.clusters=2"]
    told = run(tmp_path / "told", *file, *SMALL[1:3], *weights, *more, "graph.features=degrees")
    assert told["epochs"] == 0
    assert told["alignment"] is None
    assert told["test_accuracy"] is not None
    assert (tmp_path / "told/predictions/g.txt").read_text().split()[1] in ("red", "green", "blue")
    both = [np.load(tmp_path / name / "embeddings/g.npz")["embeddings"] for name in ("bare", "told")]
    assert np.array_equal(*both)


@alone
def test_a_dry_run_tells_of_views():
    for more in ([], ["embed.edge_drop=0.0"]):
        command = [sys.executable, "run.py", "inputs/embed.toml", *more, "--dry-run"]
        code, printed = run_job(command)
        assert code == 0, printed
        assert "an epoch with its evaluations" in printed
        assert ("views" in printed.partition("an epoch with")[2]) == (not more)
    assert "up to 3 x 300 epochs each; 10 starts of k-means" in printed


@alone
def test_estimates_count_what_tells_how_good_vectors_are():
    keys = PLAIN | {"graph.generator": "sbm", "graph.nodes": 40_000, "graph.random_classes": 4}

    def judged(**more):
        case = build(keys | {key.replace("__", "."): value for key, value in more.items()})
        return judging(training_of(case, 40_000, 400_000, 1, HostDevice()), 0)["judging"]

    assert judged(embed__dimension=128) > judged(embed__dimension=64) >= 4 * 5 * 64 * 40_000
    assert judged(embed__clusters=3000) > 8 * 3000 * 40_000  # distances from all centres
    wide = {"graph__random_features": 500}
    assert judged(**wide) > 8 * 500 * 40_000 > judged(**wide, gnn__baselines=False)
