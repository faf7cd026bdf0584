"""Relations' weights of blocks on the diagonal (Schlichtkrull et al. 2018, eq. 4), against dense matrices."""

import numpy as np
import pytest
from msgspec import structs
from test_rgcn import (
    dense_feature_loss,
    dense_loss,
    features_of,
    gradients_of,
    make_graph,
    make_labels,
    normalised,
    trained,
    with_val,
)

from app.case.file import build
from app.case.rgcn import RgcnCase
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn.rgcn.model import RGCN, NetShape, diagonal, shape_of
from app.gnn.rgcn.saved import SavedRgcn, edges_digest, load_rgcn, save_rgcn
from app.gnn.rgcn.training import Course, Targets, train_rgcn
from app.graphs.triples.relational import nodes_by_layer
from app.memory.tiers import TierBudget
from app.model.rgcn_memory import by_rank, count_layer
from app.partition.relations import place
from app.tasks.relational_plan import relational_plan

BLOCKS = 3


@pytest.mark.mpi_skip
def test_blocks_share_rows_and_columns():
    assert diagonal((6, 4), 2) == [(slice(0, 3), slice(0, 2)), (slice(3, 6), slice(2, 4))]
    assert [shape_of(part) for part in diagonal((7, 3), 3)] == [(2, 1), (2, 1), (3, 1)]
    assert diagonal((5, 2), 1) == [(slice(0, 5), slice(0, 2))]


# ---- the network against the dense one ----------------------------------------------------------------


def whole_matrices(name, weights, f, m):
    """[R, f m] matrices of a layer with their zeros, from the blocks."""
    given, at = weights[f"{name}/W"], 0
    W = np.zeros((len(given), f, m))
    for rows, columns in diagonal((f, m), BLOCKS):
        r, c = shape_of((rows, columns))
        W[:, rows, columns] = given[:, at : at + r * c].reshape(-1, r, c)
        at += r * c
    return W.reshape(len(given), -1)


def whole_rows(graph, weights, outputs):
    """[source rows, h] of the first layer with their zeros."""
    Q, edges = weights["first/W"], graph.of_targets(outputs)
    nodes = np.unique(edges.source.astype(np.int64) * graph.relations + edges.relation) // graph.relations
    W = np.zeros((len(Q), BLOCKS, Q.shape[1]))
    for row, node in enumerate(nodes):
        W[row, node % BLOCKS] = Q[row]
    return W.reshape(len(Q), -1)


@pytest.mark.parametrize("features", [False, True])
def test_loss_and_gradients_are_those_of_the_dense_network(group, features):
    graph = make_graph()
    labels, A = make_labels(graph), normalised(graph)
    placement = place(graph, group.size, group.size)
    X = np.random.default_rng(4).normal(size=(70, 5)).astype(np.float32)
    inputs = features_of(X) if features else None
    net = RGCN(group, placement, graph, labels.nodes, NetShape([6, 4], 0, 1, BLOCKS), inputs=inputs)
    targets, hops = Targets(group, net, placement, labels), nodes_by_layer(graph, labels.nodes, 2, True)
    Z_own = net.forward()
    loss = targets.loss(Z_own)
    gradient = gradients_of(group, net, Z_own)
    weights = {name: array.astype(np.float64) for name, array in net.whole_weights(group).items()}

    def reference(weights):
        dense = {**weights, "layer1/W": whole_matrices("layer1", weights, 6, 4)}
        if features:
            return dense_feature_loss(
                A, X, {**dense, "first/W": whole_matrices("first", weights, 5, 6)}, labels
            )
        dense["first/W"] = whole_rows(graph, weights, hops[1])
        return dense_loss(graph, A, dense, labels, 6, hops)

    assert loss == pytest.approx(reference(weights), abs=1e-6)
    draws = np.random.default_rng(5)
    for name, array in weights.items():
        for at in draws.choice(array.size, min(array.size, 5), replace=False):
            values = []
            for step in (1e-5, -1e-5):
                moved = {**weights, name: array.copy()}
                moved[name].reshape(-1)[at] += step
                values.append(reference(moved))
            slope = (values[0] - values[1]) / 2e-5
            assert gradient[name].reshape(-1)[at] == pytest.approx(slope, abs=2e-6), (name, at)


# ---- the same bits ------------------------------------------------------------------------------------


def test_the_same_bits_for_any_partition(group, single):
    graph = make_graph(150, 6, 420)
    labels, settings = with_val(make_labels(graph, count=40)), {"blocks": BLOCKS, "layers": 3}
    wanted = trained(single, graph, labels, parts=1, **settings)
    forms = [
        {"partition": "relations", "grouping": "edges", "parts": 2},
        {"partition": "rows", "parts": 4},
        {"partition": "both", "groups": 2 if group.size % 2 == 0 else 1},
    ]
    for form in forms:
        assert trained(group, graph, labels, **form, **settings) == wanted, form
    assert trained(single, graph, labels, bases=0, layers=3) != wanted


def test_weights_in_a_file_have_the_bits_of_weights_in_memory(group, single, tmp_path):
    graph = make_graph(400, 6, 2000)
    labels = make_labels(graph, count=100)
    case = RgcnCase(hidden=6, epochs=3, weight_decay=0.01, blocks=BLOCKS, parts=3)
    near = train_rgcn(single, graph, labels, case, 1).net.whole_weights(single)
    found = train_rgcn(group, graph, labels, case, 1, TierBudget(10**9, "file", str(tmp_path)))
    assert found.net.weights["first/W0"].slow is not None
    assert found.net.weights_digest(group) == digest(near)


def test_a_saved_network_answers_as_before(group, tmp_path):
    graph = make_graph(150, 6, 420)
    labels = make_labels(graph, count=40)
    found = train_rgcn(group, graph, labels, RgcnCase(hidden=6, blocks=BLOCKS, epochs=4), 1)
    about = SavedRgcn(found.case, 0, 3, edges_digest(graph, labels.nodes), found.net.whole_weights(group))
    path = str(tmp_path / f"{group.rank}.npz")
    save_rgcn(path, about, "a test")
    saved = load_rgcn(path)
    case = saved.architecture_of(RgcnCase(epochs=0))
    assert (case.hidden, case.blocks) == (6, BLOCKS)
    again = train_rgcn(
        group, graph, labels, case, 2, course=Course(begin=lambda net: saved.put(path, net.whole(group)))
    )
    assert np.array_equal(again.predictions, found.predictions) and not again.records


def test_memory_is_that_of_the_weights(group):
    graph = make_graph(200, 6, 700)
    labels, case = make_labels(graph, count=40), RgcnCase(hidden=24, blocks=BLOCKS, layers=3)
    placement = place(graph, group.size, group.size)
    net = RGCN(group, placement, graph, labels.nodes, NetShape([24, 24, 3], 0, 1, BLOCKS))
    nodes = nodes_by_layer(graph, labels.nodes, 3, case.prune)
    terms = by_rank(700, graph, nodes, [24, 24, 3], case, placement, group.size)
    stored = sum(4 * shard.array.size for shard in net.weights.values())  # with padding
    assert stored >= terms["weights"][group.rank] >= 0.7 * stored - 4 * 24 * 8 * 8
    free = by_rank(
        700, graph, nodes, [24, 24, 3], structs.replace(case, blocks=0, bases=0), placement, group.size
    )
    assert terms["weights"][group.rank] < 0.8 * free["weights"][group.rank]
    counts = count_layer(graph, placement, nodes[1], group.size)
    sizes = [len(net.weights[f"first/W{turn}"].keys) for turn in range(placement.turns)]
    assert sizes == counts.sources[:, group.rank].tolist()


# ---- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": 4}, "rgcn.blocks: 4 blocks do not share the 6 columns of the first layer equally"),
        ({"blocks": 6}, "rgcn.blocks: 6 blocks of 3 columns; at most 3 would be right"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(group, settings, message):
    graph = make_graph()
    with pytest.raises(CaseError, match=message):
        train_rgcn(group, graph, make_labels(graph), RgcnCase(hidden=6, **settings), 1)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("keys", "columns"),
    [({"rgcn.classes": 3, "rgcn.hidden": 8}, 3), ({"rgcn.goal": "links", "rgcn.dimension": 2}, 2)],
)
def test_a_plan_refuses_blocks_that_do_not_fit(keys, columns):
    graph = {"graph.generator": "ba", "graph.nodes": 60, "graph.d": 2, "rgcn.relations": 3}
    usual = {"run.task": "classify", "gnn.model": "rgcn", "rgcn.labelled": 40, "rgcn.blocks": 4}
    case = build({**usual, **graph, "rgcn.hidden": 8, "rgcn.layers": 2, **keys})
    with pytest.raises(CaseError, match=f"4 blocks of {columns} columns; at most {columns} would be right"):
        relational_plan(case, 2)


@pytest.mark.mpi_skip
def test_bases_beside_blocks_are_refused():
    keys = {"run.task": "classify", "gnn.model": "rgcn", "graph.path": __file__, "rgcn.blocks": 2}
    build({**keys, "rgcn.bases": 40})
    with pytest.raises(CaseError, match=r"rgcn\.bases: is not read beside rgcn\.blocks; leave one"):
        build({**keys, "rgcn.bases": 3})
