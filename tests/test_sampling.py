"""Sampled minibatches beside full-batch training: GraphSAGE's sampler, FastGCN's, and the study of both."""

from itertools import pairwise, product
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from test_gnn_studies import TINY, alone, csv_of, direct, study_of

from app.case.file import build
from app.case.gnn import GnnCase
from app.comm.guard import check_same
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.graphs.formats.memory import stream_of_object
from app.graphs.graph import Graph
from app.graphs.nodes.memory import table_of_arrays
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.levels.reading import load
from app.tasks.studies.gnn_sampling import run_sampling
from app.tasks.studies.sampled_gcn import LayerSampler, SampledGCN
from app.tasks.studies.sampled_sage import NeighbourSampler, SampledSage

PARTS = {SampledSage: ("W_self", "W_neigh"), SampledGCN: ("W",)}
ALL = SimpleNamespace(random=lambda size: (np.arange(size) + 0.5) / size)  # even steps in place of chance


def always(number):
    """In place of a generator: one number."""
    return SimpleNamespace(random=lambda size: np.full(size, number))


def whole_graph(graph):
    """A NetworkX graph on nodes 0..n-1 as Graph."""
    A = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph))))
    A.sort_indices()
    return Graph("g", len(graph), 0, len(graph), A.indptr.astype(np.int64), A.indices, len(graph.edges))


def sampler_of(kind, graph, sizes, X=None, **gnn):
    """A sampler on a NetworkX graph."""
    return kind(whole_graph(graph), X, GnnCase(**gnn), sizes)


def weights_of(model, widths, draws, whole=False):
    """Weights of layers by name: small integers where `whole`."""
    found = {}
    for number, (a, b) in enumerate(pairwise(widths), start=1):
        for part, shape in (*((part, (a, b)) for part in PARTS[model]), ("bias", (1, b))):
            found[f"layer{number}.{part}"] = (
                draws.integers(-3, 4, shape).astype(np.float32) if whole else draws.normal(size=shape)
            )
    return found


def full_batch(group, graph, X, gnn):
    """A classifier of all nodes, of which three in four are to train on, and their data."""
    n = len(graph)
    labels, train = np.arange(n) % 3, np.arange(n) % 4 < 3
    settings = {**TINY, "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, **gnn}
    case = build(settings)
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    data = deal_node_table(group, table_of_arrays(X, labels, train, ~train, ~train, n), loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", 8)
    return Classifier(group, case.gnn, block, data, 1), loaded.graph, data


def assert_full_batch(classifier, data, model, X, blocks):
    """The minibatch of all training nodes has the loss and the gradient of an epoch of full batch."""
    wanted = classifier.epoch(1)
    nodes = np.flatnonzero(data.train)
    loss, found = model(classifier.params.host(), len(blocks), 0.0, 0.0).loss(
        X, blocks, data.labels[nodes], 1, 1
    )
    assert loss == pytest.approx(wanted, rel=1e-5)
    gradient = classifier.device.get(classifier.engine.gradient)
    for name, part in classifier.params.slices.items():
        assert np.allclose(found[name].reshape(-1), gradient[part], atol=1e-5), name
        assert np.abs(gradient[part]).max() > 1e-4, name


# ---- both -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sizes"), [(NeighbourSampler, [3, 2]), (LayerSampler, [9, 12]), (LayerSampler, [0, 12])]
)
def test_gradients_of_a_minibatch_by_central_differences(kind, sizes):
    draws = np.random.default_rng(5)
    X, labels = draws.normal(size=(30, 4)), np.array([0, 2, 1, 1])
    sampler = sampler_of(kind, nx.gnm_random_graph(30, 80, seed=6), sizes, X)
    blocks = sampler.blocks(np.array([3, 9, 20, 11]), 1, 1)
    weights = weights_of(kind.model, [4, 5, 3], draws)
    model = kind.model(weights, 2, 0.4, 0.0)
    _, gradients = model.loss(sampler.X, blocks, labels, 1, 1)
    step = 1e-5
    for name, array in weights.items():
        for at in list(np.ndindex(array.shape))[::3]:
            kept, ends = array[at], []
            for sign in (1, -1):
                array[at] = kept + sign * step
                ends.append(model.loss(sampler.X, blocks, labels, 1, 1)[0])
            array[at] = kept
            assert gradients[name][at] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-6)
        assert np.abs(gradients[name]).max() > 1e-3


@pytest.mark.parametrize("kind", [NeighbourSampler, LayerSampler])
def test_the_adjoint_of_a_sampled_layer_is_exact(kind):
    """Weights of a block are multiples of a quarter, so that every sum is exact."""
    draws = np.random.default_rng(2)
    graph = nx.random_regular_graph(4, 32, seed=4)
    sampler = sampler_of(kind, graph, [4, 16], normalisation="in_degree", own_loops=False)
    block = sampler.draw(np.arange(8), 4 if kind is NeighbourSampler else 16, draws)
    assert block.M.nnz and np.all(block.M.data * 4 % 1 == 0)
    weights = weights_of(kind.model, [5, 6, 3], draws, whole=True)
    weights["layer2.bias"][...] = 0
    model = kind.model(weights, 2, 0.0, 0.0)
    H = draws.integers(-4, 5, (len(block.sources), 6)).astype(np.float32)
    D = draws.integers(-4, 5, (8, 3)).astype(np.float32)
    gradients = {}
    dH = model.backward(2, H, block, D, gradients)
    value = (model.forward(2, H, block) * D).sum()
    assert value == (H * dH).sum()
    assert value == sum((weights[name] * each).sum() for name, each in gradients.items() if ".W" in name)
    assert np.array_equal(gradients["layer2.bias"][0], D.sum(axis=0))


@pytest.mark.parametrize(("kind", "sizes"), [(NeighbourSampler, [3, 2]), (LayerSampler, [9, 12])])
def test_samples_are_functions_of_seed_step_and_layer(kind, sizes):
    graph, nodes = nx.gnm_random_graph(300, 3000, seed=6), np.array([3, 90, 20, 11])

    def drawn(seed, step):
        return [each.sources.tolist() for each in sampler_of(kind, graph, sizes).blocks(nodes, seed, step)]

    found = [drawn(seed, step) for seed, step in ((1, 1), (1, 2), (2, 1))]
    assert drawn(1, 1) == found[0]
    for layer in (0, 1):
        assert len({tuple(each[layer]) for each in found}) == 3
    below, top = found[0]
    assert set(below) != set(top)


# ---- GraphSAGE --------------------------------------------------------------------------------------------


def test_a_layer_is_drawn_among_neighbours():
    graph = nx.gnm_random_graph(40, 60, seed=3)
    graph.remove_edges_from(list(graph.edges(5)))
    targets = np.array([7, 5, 0, 31])
    block = sampler_of(NeighbourSampler, graph, [4]).draw(targets, 4, np.random.default_rng(1))
    assert block.targets == 4 and block.sources[:4].tolist() == targets.tolist()
    assert len(set(block.sources.tolist())) == len(block.sources)
    dense = block.M.toarray()
    for row, node in enumerate(targets):
        read = {int(block.sources[c]) for c in np.flatnonzero(dense[row])}
        assert read <= set(graph[node])
        assert dense[row].sum() == (1 if graph.degree(node) else 0)


def test_with_one_neighbour_each_the_sample_is_the_whole_graph(solo):
    """A matching: what is drawn is the only neighbour, so the minibatch of all nodes is the full batch."""
    graph = nx.Graph([(i, i + 1) for i in range(0, 40, 2)])
    X = np.random.default_rng(7).normal(size=(40, 6)).astype(np.float32)
    classifier, loaded, data = full_batch(solo, graph, X, {"gnn.model": "sage"})
    sampler = NeighbourSampler(loaded, data.features, classifier.case, [2, 2])
    blocks = sampler.blocks(np.flatnonzero(data.train), 1, 1)
    assert_full_batch(classifier, data, SampledSage, sampler.X, blocks)


# ---- FastGCN ----------------------------------------------------------------------------------------------

MATRICES = [
    {},
    {"normalisation": "in_degree"},
    {"own_loops": False},
    {"normalisation": "in_degree", "own_loops": False},
]


def dense_matrix(graph, normalisation="symmetric", own_loops=True):
    """The normalised adjacency matrix by its definition, float64."""
    A = nx.to_numpy_array(graph, nodelist=range(len(graph))) + own_loops * np.eye(len(graph))
    D = np.diag([1 / d if d else 0 for d in A.sum(axis=1)])
    return np.sqrt(D) @ A @ np.sqrt(D) if normalisation == "symmetric" else D @ A


@pytest.mark.parametrize("gnn", MATRICES)
def test_the_expectation_over_all_samples_is_the_product(gnn):
    """Every sample of three out of six nodes, one of them isolated, times its probability."""
    graph = nx.Graph([(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)])
    graph.add_node(5)
    sampler, targets = sampler_of(LayerSampler, graph, [3], **gnn), np.array([4, 0, 5])
    P = dense_matrix(graph, **gnn)
    squares = (P**2).sum(axis=0)
    q = squares / squares.sum()
    expected, largest = np.zeros((3, 6)), 0.0
    for drawn in product(np.flatnonzero(q), repeat=3):
        block, probability = sampler.estimator(targets, np.array(drawn)), np.prod(q[list(drawn)])
        expected[:, block.sources] += probability * block.M.toarray()
        largest = max(largest, np.abs(block.M.toarray() - P[targets][:, block.sources]).max())
    assert np.allclose(expected, P[targets], atol=1e-6)
    assert largest > 0.5  # single samples are far from it


@pytest.mark.parametrize("gnn", MATRICES)
@pytest.mark.mpi_skip
def test_nodes_are_drawn_by_the_squared_norms_of_their_columns(gnn):
    graph = nx.barabasi_albert_graph(50, 2, seed=1)
    graph.remove_edges_from([*graph.edges(0), *graph.edges(20), *graph.edges(49)])
    sampler = sampler_of(LayerSampler, graph, [1], **gnn)
    squares = (dense_matrix(graph, **gnn) ** 2).sum(axis=0)
    drawn = [sampler.draw(np.arange(50), 1, always(at)).sources[0] for at in ALL.random(1000)]
    shares = np.bincount(drawn, minlength=50) / 1000
    assert np.abs(shares - squares / squares.sum()).max() <= 1 / 1000
    for end in (0.0, np.nextafter(1.0, 0.0)):
        node = sampler.draw(np.arange(50), 1, always(end)).sources[0]
        assert squares[node] > 0


def test_a_graph_without_edges_and_own_loops_has_zero_sums():
    sampler = sampler_of(LayerSampler, nx.empty_graph(4), [3], own_loops=False)
    assert sampler.blocks(np.array([2, 0]), 1, 1)[0].M.nnz == 0


@pytest.mark.parametrize("first", ["drawn", "kept"])
def test_with_every_node_drawn_once_the_sample_is_the_whole_graph(solo, first):
    """A regular graph: all nodes are equally likely, and n even steps through the chances are all of them."""
    n = 40
    graph = nx.random_regular_graph(3, n, seed=2)
    X = np.random.default_rng(7).normal(size=(n, 6)).astype(np.float32)
    classifier, loaded, data = full_batch(solo, graph, X, {"gnn.model": "gcn"})
    sampler = LayerSampler(loaded, data.features, classifier.case, [n if first == "drawn" else 0, n])
    top = sampler.draw(np.flatnonzero(data.train), n, ALL)
    assert top.sources.tolist() == list(range(n))
    blocks = [sampler.draw(top.sources, sampler.sizes[0], ALL), top]
    assert_full_batch(classifier, data, SampledGCN, sampler.X, blocks)


@pytest.mark.parametrize("form", ["dense", "few", "many", "none"])
def test_one_layer_whose_product_is_kept_is_exact(solo, form):
    """Nothing is drawn: any graph, dense features, sparse ones with few and many entries, and none at all."""
    graph, n = nx.barabasi_albert_graph(60, 2, seed=3), 60
    X = np.random.default_rng(7).normal(size=(n, 40)).astype(np.float32)
    if form in ("few", "many"):
        X = sp.csr_array(X * (np.abs(X) > (2 if form == "few" else 0.5)))
    settings = {"gnn.model": "gcn", "gnn.depth": 1}
    classifier, loaded, data = full_batch(solo, graph, None if form == "none" else X, settings)
    given = sp.eye_array(n, dtype=np.float32, format="csr") if form == "none" else data.features
    sampler = LayerSampler(loaded, given, classifier.case, [0])
    assert sp.issparse(sampler.X) == (form in ("few", "none"))
    blocks = sampler.blocks(np.flatnonzero(data.train), 1, 1)
    assert_full_batch(classifier, data, SampledGCN, sampler.X, blocks)


# ---- the study --------------------------------------------------------------------------------------------

STUDY = {
    "study.kind": "sampling", "study.seeds": [1], "study.batches": [32], "study.fanouts": [3, 5],
    "study.epochs": 12, "study.layer_samples": [40, 80], "study.layer_epochs": 20, "gnn.learning_rate": 0.03,
    "gnn.epochs": 12, "gnn.evaluate_every": 4,
}  # fmt: skip


def test_the_study_of_sampling(group, tmp_path):
    context = study_of(alone(group), STUDY, tmp_path / "out")
    found = run_sampling(context)
    check_same(group, found["digest"], "the weights of the study on each rank")
    assert found["digest"] == run_sampling(study_of(alone(group), STUDY))["digest"]
    _, data = load(context)
    for layers, method, epochs in (("sage", "GraphSAGE", 12), ("gcn", "FastGCN", 20)):
        mine = [row for row in found["rows"] if row["layers"] == layers]
        full = [row for row in mine if row["method"] == "full batch"]
        assert [row["epoch"] for row in full] == [4, 8, 12]
        assert full[-1]["test"] == direct(alone(group), context, 1, model=layers, epochs=12)
        few = [row for row in mine if row["method"] == method]
        assert [row["epoch"] for row in few] == list(range(1, epochs + 1))
        assert few[-1]["steps"] == epochs * -(-data.counts["train"] // 32)
        assert {row["batch"] for row in few} == {32} and few[-1]["val"] > 0.5
        best = max(row["val"] for row in full)
        last = [line for line in found["reached"] if (line["layers"], line["share_of_best"]) == (layers, 1.0)]
        assert [line["method"] for line in last] == ["full batch", method]
        assert last[0]["val"] == best and last[0]["cpu_s"] in [row["cpu_s"] for row in full]
    assert len(csv_of(tmp_path / "out" / "sampling.csv")) == 2 * 3 + 12 + 20
    assert len(csv_of(tmp_path / "out" / "reached.csv")) == 2 * 2 * 4
    assert (tmp_path / "out" / "sampling.png").stat().st_size > 0


def test_a_sampler_may_be_left_out(group):
    """One alone trains as it does beside the other."""
    both = run_sampling(study_of(alone(group), STUDY))["rows"]
    for key, layers in (("fanouts", "gcn"), ("layer_samples", "sage")):
        rows = run_sampling(study_of(alone(group), {**STUDY, f"study.{key}": []}))["rows"]
        scores = [{name: row[name] for name in row if name != "cpu_s"} for row in rows]
        assert scores == [
            {name: row[name] for name in row if name != "cpu_s"} for row in both if row["layers"] == layers
        ]


def test_wrong_studies_of_sampling_are_refused(group):
    with pytest.raises(CaseError, match="plain layers"):
        run_sampling(study_of(alone(group), {**STUDY, "gnn.residual": True}))
    with pytest.raises(CaseError, match=r"gnn\.edge_weights: .* counts every edge one"):
        run_sampling(study_of(alone(group), {**STUDY, "gnn.edge_weights": True}))
    with pytest.raises(CaseError, match=r"gnn\.class_weights: .* weighs nodes alike"):
        run_sampling(study_of(alone(group), {**STUDY, "gnn.class_weights": "balanced"}))
    if group.size > 1:
        with pytest.raises(CaseError, match="sampling runs on one rank"):
            run_sampling(study_of(group, STUDY))
