"""Jumping knowledge (gnn.jump): gradients by differences, the same bits on any ranks, levels, refusals."""

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from helpers import dense, random_graph
from layer_models import Trial, case_of, drawn, reference_layers, reference_loss
from mpi4py import MPI
from msgspec import structs

from app import classify, classify_edges, embed, find_links
from app.errors import CaseError
from app.gnn.model import Model, layer_specs
from app.gnn.saved import load_model

GRAPH = random_graph(31, 0.12, 3)
KINDS = ["gcn", "sage residual", "gin layer_norm", "pna"]


def data():
    draws = np.random.default_rng(4)
    labels = draws.integers(0, 3, 31)
    labels[draws.random(31) < 0.2] = -1
    return draws.normal(size=(31, 4)).astype(np.float32), labels


def by_hand(A, X, case, classes, W):
    """Scores in float64."""
    specs = layer_specs(case, classes)
    made = reference_layers(A, X.astype(float), case, specs[:-1], W)[1:]
    made = [
        np.broadcast_to(each, np.broadcast_shapes(each.shape, (*made[-1].shape[:-1], 1))) for each in made
    ]
    J = np.concatenate(made, axis=-1) if case.jump == "concat" else np.maximum.reduce(made)
    return reference_layers(A, J, case, specs, W, first=len(specs))[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("jump", ["concat", "max"])
def test_gradients_are_differences_of_the_loss(group, kind, jump):
    (X, labels), A = data(), dense(GRAPH)[0]
    name, _, options = kind.partition(" ")
    widths = (3, 4, 5) if jump == "concat" else (4, 4, 4)
    case = structs.replace(case_of(name, options, widths), jump=jump)
    values = drawn(Model(case, 4, 3).shapes())
    trial = Trial(group, GRAPH, X, labels, case, values=values)
    found, W = trial.epoch(1), {name: each.astype(float) for name, each in values.items()}
    wanted = by_hand(A, X, case, 3, W)[trial.block.lo : trial.block.lo + trial.block.n_real]
    assert np.allclose(trial.scores()[: trial.block.n_real], wanted, rtol=1e-4, atol=1e-4)
    top = np.abs(found).max()
    for name, array in W.items():
        if "log_degree" in name:
            continue
        steps = 1e-6 * np.eye(array.size).reshape(-1, *array.shape)
        ends = [by_hand(A, X, case, 3, W | {name: array + sign * steps}) for sign in (1, -1)]
        each = (reference_loss(ends[0], labels) - reference_loss(ends[1], labels)) / 2e-6
        mine = found[trial.engine.params.slices[name]]
        assert np.abs(mine - each).max() < (4e-5 if "norm" in kind else 5e-6) * top, name


@pytest.mark.parametrize("jump", ["concat", "max"])
def test_bits_are_those_of_one_rank(group, single, jump):
    X, labels = data()
    case = structs.replace(case_of("gat", "residual", (4, 4), dropout=0.5), jump=jump)
    one, other = (Trial(each, GRAPH, X, labels, case) for each in (group, single))
    for number in (1, 2):
        assert one.epoch(number).tobytes() == other.epoch(number).tobytes()


def test_levels_and_weights_have_it(shared_path):
    graph = nx.gnm_random_graph(50, 120, seed=2)
    X, kinds = np.random.default_rng(1).normal(size=(50, 3)), np.arange(50) % 2
    asked = {"gnn.epochs": 3, "gnn.depth": 3, "gnn.hidden": 4, "gnn.jump": "max"}
    named = asked | {"graph.splits": "random", "output.embeddings": True, "parallel.spatial": WORLD.size}
    found = classify(graph, X, kinds, settings=named, comm=WORLD)
    alone = classify(graph, X, kinds, settings=named | {"parallel.spatial": 1}, comm=MPI.COMM_SELF)
    assert found.digest == alone.digest and found.embeddings.shape == (50, 4)
    wide = classify(graph, X, kinds, settings=named | {"gnn.jump": "concat"}, comm=WORLD)
    assert wide.embeddings.shape == (50, 8)
    path = str(shared_path / "weights.npz")
    if WORLD.rank == 0:
        wide.save(path)
    WORLD.Barrier()
    assert load_model(path).case.jump == "concat"
    told = {"gnn.epochs": 0, "output.probabilities": True}
    again = classify(graph, X, weights=path, settings=told, comm=WORLD)
    # In memory they bring their layers, which gnn.jump is read with, too.
    kept = classify(graph, X, weights=wide, settings=told | {"gnn.jump": "concat"}, comm=WORLD)
    assert kept.digest == again.digest
    assert np.array_equal(again.predicted, wide.predicted)
    assert np.isfinite(embed(graph, X, settings=asked | {"embed.dimension": 4}, comm=WORLD).vectors).all()
    assert find_links(graph, X, settings=asked, comm=WORLD).scores["val"].auc > 0
    for i, (u, v) in enumerate(graph.edges):
        graph.edges[u, v]["kind"] = i % 2
    edges = asked | {"graph.edge_splits": "random"}
    assert 0 < classify_edges(graph, "kind", X, settings=edges, comm=WORLD).scores["test"].accuracy <= 1
    graphs = [nx.gnp_random_graph(6, 0.5, seed=i) for i in range(20)]
    whole = classify(graphs, labels=[i % 2 for i in range(20)], train=range(20), settings=asked, comm=WORLD)
    assert len(whole.predicted) == 20


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({"gnn.depth": 2}, "joins what at least two layers give, here is 1 layer before the last one"),
        ({"gnn.layers": ["gcn 4", "gcn 5", "gcn"]}, "max is of layers of one width, not of 4, 5"),
        ({"gnn.depth": 4, "gnn.model": "gcn2"}, "gcn2 reads the first layer"),
        (
            {"gnn.level": "graph", "gnn.readout_of": "all", "gnn.depth": 3},
            "a readout of all layers joins them",
        ),
    ],
)
def test_what_is_not_joined_is_refused(settings, right):
    graph = [nx.path_graph(4)] * 4 if "gnn.level" in settings else nx.path_graph(4)
    with pytest.raises(CaseError, match=rf"gnn\.jump: {right}"):
        classify(graph, None, [0, 1, 0, 1], train=range(4), settings={"gnn.jump": "max"} | settings)
