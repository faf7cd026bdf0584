"""app/gnn/layer_embedding: layers on states of several graphs, against dense residual graphs in float64."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import dense, make_blocks, own_states, random_graph, residual, whole_states
from layer_models import CONVOLUTIONS, drawn

from app.case.policy import PolicyCase
from app.errors import CaseError
from app.gnn.layer_embedding import LayerEmbedding
from app.gnn.parameters import Parameters
from app.gnn.structure2vec import NodeInputs
from app.numerics.products import Operand
from app.problems.mvc import MinimumVertexCover
from app.rl.qnet import QNetwork
from app.sparse.batch import StateBatch

KINDS = ["commnet", "gcn", "gin", "gin_norm", "sage"]
GRAPHS = [random_graph(19, 0.25, 11), random_graph(9, 0.4, 12)]
REMOVED = [[[], [3, 4, 10], [17]], [[8, 0], []]]
STATES = [(graph, removed) for graph, states in zip(GRAPHS, REMOVED) for removed in states]
F, K = 3, 8


def whole_inputs(seed=1):
    """For each state the features of its nodes, the alive ones, and a gradient by its embeddings."""
    draws, out = np.random.default_rng(seed), []
    for graph, removed in STATES:
        alive = np.ones((graph[0], 1), dtype=np.float32)
        alive[removed] = 0
        x, Y = (draws.normal(size=(graph[0], width)).astype(np.float32) for width in (F, K))
        out.append((x, alive, Y))
    return out


def run(group, kind, layers, exchange="auto"):
    """Embeddings of every state, and the gradient of <embeddings, Y> over all of them, by name."""
    device = group.device
    blocks = make_blocks(group, GRAPHS, exchange)
    batch = StateBatch(group, [(block, len(states)) for block, states in zip(blocks, REMOVED)])
    x, alive, Y = (own_states(group, batch, list(each)) for each in zip(*whole_inputs()))
    index = device.put(np.arange(batch.rows, dtype=np.int32))
    one = alive[:, 0].copy()
    inputs = NodeInputs(Operand(x, index), alive, one, one, one, one)
    net = LayerEmbedding(kind, layers, K, F)
    params = Parameters(device, net.shapes())
    params.set(drawn(params.shapes))
    H, saved, sums = net.embed(params, batch, inputs, pool=True)
    found = whole_states(group, batch, H)
    pooled = device.get(batch.sum_states(sums))
    parts = net.backward(params, batch, inputs, saved, Y * (H > 0))
    assert set(parts) == set(params.shapes)
    gradient = {
        name: device.get(batch.sum_blocks(device.xp.ascontiguousarray(parts[name]))) for name in parts
    }
    return found, pooled, {name: each.reshape(params.shapes[name]) for name, each in gradient.items()}


def reference(kind, layers, W):
    """Embeddings of every state with dense residual matrices."""
    case, out = SimpleNamespace(normalisation="symmetric", own_loops=True), []
    for (graph, removed), (x, alive, _) in zip(STATES, whole_inputs()):
        A = residual(dense(graph)[0], removed)
        H = x * alive
        for layer in range(1, layers + 1):
            start = f"embed.layer{layer}."
            w = {name[len(start) :]: W[name] for name in W if name.startswith(start)}
            H = alive * np.maximum(CONVOLUTIONS[kind](A, H, w, case, None) + w["bias"], 0)
        out.append(H)
    return out


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_on_states(group, kind, layers):
    found, pooled, gradient = run(group, kind, layers)
    W = {
        name: each.astype(float) for name, each in drawn(LayerEmbedding(kind, layers, K, F).shapes()).items()
    }
    expected = reference(kind, layers, W)
    top = max(np.abs(H).max() for H in expected)
    for H, wanted, total in zip(found, expected, pooled):
        assert np.abs(H - wanted).max() < 5e-6 * top
        assert np.abs(total - wanted.sum(axis=0)).max() < 5e-5 * top

    def value():
        pairs = zip(reference(kind, layers, W), whole_inputs())
        return sum((H * Y).sum() for H, (_, _, Y) in pairs)

    draws, slopes, differences = np.random.default_rng(5), [], []
    for name, array in W.items():
        for flat in draws.choice(array.size, min(array.size, 6), replace=False):
            at = np.unravel_index(flat, array.shape)
            held = array[at]
            array[at] = held + 1e-6
            up = value()
            array[at] = held - 1e-6
            slopes.append((up - value()) / 2e-6)
            array[at] = held
            differences.append(gradient[name][at] - slopes[-1])
    assert np.abs(differences).max() < 5e-6 * np.abs(slopes).max()


@pytest.mark.parametrize("kind", KINDS)
def test_layers_on_states_are_the_same_bits_on_any_ranks(group, solo, kind):
    found, pooled, gradient = run(solo, kind, 2)
    for exchange in ("halo", "gather", "staged") if group.size > 1 else ("auto",):
        others = run(group, kind, 2, exchange)
        assert [H.tobytes() for H in others[0]] == [H.tobytes() for H in found]
        assert others[1].tobytes() == pooled.tobytes()
        assert {n: g.tobytes() for n, g in others[2].items()} == {n: g.tobytes() for n, g in gradient.items()}


@pytest.mark.parametrize("key", ["edge_weights", "shared_layers", "self_weight", "mean_degree"])
def test_keys_that_no_layer_reads_are_refused(key):
    other = not getattr(PolicyCase(), key)
    with pytest.raises(CaseError, match=rf'policy\.{key}: model = "gin" has none; "structure2vec" has'):
        QNetwork(PolicyCase(model="gin", **{key: other}), MinimumVertexCover())
