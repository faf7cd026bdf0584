"""The policy's softmax and heads: against dense float64 forms, exact adjoints, equal bits on any ranks."""

import dataclasses

import msgspec
import numpy as np
import pytest
from helpers import (
    dense,
    exact_dot,
    make_blocks,
    own_states,
    random_graph,
    residual,
    small_integers,
    whole_states,
)
from test_qnet import (
    CHOSEN,
    GRAPHS,
    REMOVED,
    STATES,
    close,
    evaluate,
    random_weights,
    reference,
    slopes,
)

from app.case.policy import PolicyCase
from app.gnn.structure2vec import NodeInputs
from app.numerics.elementwise import splitmix
from app.numerics.products import Operand
from app.problems.mvc import MinimumVertexCover
from app.rl.node_head import ValueHead, node_gradient, node_scores
from app.rl.qnet import Evaluation, QNetwork
from app.rl.softmax import Softmax, draw_nodes
from app.sparse.batch import StateBatch

K, HIDDEN = 3, 4
# The loss: sum over states of c log pi(chosen) + h entropy + d value.
C, ENTROPY, D = (np.array(each) for each in (
    [0.5, -1.0, 0.75, 1.0, -0.25], [0.3, 0.1, -0.2, 0.4, 0.2], [1.0, -0.5, 0.25, 0.5, 0.75],
))  # fmt: skip
VALUE = {"value.w": np.array([[0.5], [-1.0], [0.25]]), "value.b": np.array([[0.125]])}


# ---- by definition ------------------------------------------------------------------------------------


def candidates(state):
    graph, removed = state
    return residual(dense(graph)[0], removed).any(axis=1)


def log_softmax(z, state):
    """[..., n] log-probabilities of the candidates, -inf for other nodes."""
    z = np.where(candidates(state), z, -np.inf)
    top = z.max(axis=-1, keepdims=True)
    return z - top - np.log(np.exp(z - top).sum(axis=-1, keepdims=True))


def entropy(log_pi):
    return -(np.exp(log_pi) * np.where(np.isfinite(log_pi), log_pi, 0)).sum(axis=-1)


def pooled_value(policy, w, value, state):
    """p w + b: by the head "separate" with theta5 the identity, as p is not negative, and nothing else."""
    nothing = {"head.theta6": np.zeros((w["head.theta6"].shape[-2], K)), "head.theta7b": np.zeros((K, 1))}
    bare = {**w, **nothing, "head.theta5": np.eye(K), "head.theta7a": value["value.w"]}
    policy = msgspec.structs.replace(policy, head="separate")
    return reference(policy, bare, *state)[..., 0] + value["value.b"][..., 0, 0]


def loss(policy, w, value):
    total = 0.0
    for state, node, c, h, d in zip(STATES, CHOSEN, C, ENTROPY, D):
        log_pi = log_softmax(reference(policy, w, *state), state)
        total = (
            total + c * log_pi[..., node] + h * entropy(log_pi) + d * pooled_value(policy, w, value, state)
        )
    return total


# ---- the program --------------------------------------------------------------------------------------


def make_net(group, seed=1, **policy):
    net = QNetwork(PolicyCase(dimension=K, hidden=HIDDEN, **policy), MinimumVertexCover())
    params = net.new_parameters(group.device, 0)
    params.set(random_weights(net, seed))
    head = ValueHead(group.device, K)
    head.params.set(VALUE)
    return net, params, head


def softmax_of(group, net, params, exchange="auto"):
    e = evaluate(net, params, group, exchange)
    scores_own, R_own = node_scores(net, params, e)
    return e, R_own, scores_own, Softmax(group, e.batch, scores_own, e.inputs.candidate_own > 0)


def gradients(group, net, params, head, exchange="auto"):
    """Of the loss above by all weights: one host vector each for the network and the value head."""
    e, R_own, _, softmax = softmax_of(group, net, params, exchange)
    dvalue, dpooled = head.backward(e, D)
    dz_own = softmax.backward(np.array(CHOSEN), C, ENTROPY)
    gradient = node_gradient(net, params, e, R_own, dz_own, dpooled)
    return group.device.get(net.flatten(params, e.batch, gradient)), group.device.get(dvalue)


POLICIES = [
    {"head": head, "features": features, "layers": layers, "edge_weights": features == "paper"}
    for head in ("separate", "mixing")
    for features in ("paper", "scale_free")
    for layers in (1, 2)
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_probabilities_are_those_of_the_dense_form(group, policy):
    net, params, head = make_net(group, **policy)
    w = {name: array.astype(float) for name, array in params.host().items()}
    e, _, scores_own, softmax = softmax_of(group, net, params)
    assert group.device.get(scores_own).tobytes() == group.device.get(net.local_scores(params, e)).tobytes()
    found = whole_states(group, e.batch, softmax.probability_own[:, None])
    log_pi = [log_softmax(reference(net.policy, w, *state), state) for state in STATES]
    for state, pi, expected in zip(STATES, found, log_pi):
        assert pi.sum() == pytest.approx(1, abs=2e-6)
        assert not pi[~candidates(state)].any()
        assert pi[:, 0] == pytest.approx(np.exp(expected), abs=2e-5)
    chosen = [each[node] for each, node in zip(log_pi, CHOSEN)]
    assert softmax.log_probabilities(np.array(CHOSEN)) == pytest.approx(chosen, abs=1e-4)
    assert group.device.get(softmax.entropy) == pytest.approx([entropy(each) for each in log_pi], abs=1e-4)
    values = [float(pooled_value(net.policy, w, VALUE, state)) for state in STATES]
    close(head.values(e), np.array(values), policy)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_gradients_are_central_differences(group, policy):
    net, params, head = make_net(group, seed=2, **policy)
    w = {name: array.astype(float) for name, array in params.host().items()}
    flat, dvalue = gradients(group, net, params, head)
    expected = slopes(lambda w: loss(net.policy, w, VALUE), w)
    largest = max(np.abs(each).max() for each in expected.values())
    for name, part in params.slices.items():
        # What shifts all scores alike is in no choice: its gradient is what rounding leaves of zero.
        error = np.abs(flat[part].reshape(params.shapes[name]) - expected[name]).max()
        assert error <= 1e-4 * np.abs(expected[name]).max() + 1e-5 * largest, (name, policy)
    assert any(expected[name].any() for name in w if name.startswith("embed"))
    by_value = slopes(lambda value: loss(net.policy, w, value), VALUE)
    close(dvalue, np.concatenate([by_value[name].reshape(-1) for name in VALUE]), policy)


@pytest.mark.parametrize("head", ["separate", "mixing"])
def test_bits_do_not_depend_on_ranks_or_exchange(group, solo, head):
    net, params, value = make_net(group, head=head, layers=3)
    found = []
    for ranks, exchange in [(solo, "auto"), (group, "halo"), (group, "gather"), (group, "staged")]:
        e, _, scores_own, softmax = softmax_of(ranks, net, params, exchange)
        drawn = [
            draw_nodes(ranks, e.batch, scores_own, e.inputs.candidate_own > 0, key).tolist()
            for key in (3, 5, 7)
        ]
        whole = [pi.tobytes() for pi in whole_states(ranks, e.batch, softmax.probability_own[:, None])]
        log_pi = softmax.log_probabilities(np.array(CHOSEN)).tobytes()
        flats = [each.tobytes() for each in gradients(ranks, net, params, value, exchange)]
        found.append((drawn, whole, log_pi, ranks.device.get(softmax.entropy).tobytes(), flats))
    assert all(each == found[0] for each in found)


def test_scores_far_apart_leave_finite_logarithms(group):
    """Probabilities below the smallest float32 are zero; log-probabilities and entropies stay numbers."""
    net, params, _ = make_net(group)
    params.set({name: 400 * array for name, array in params.host().items()})
    _, _, _, softmax = softmax_of(group, net, params)
    assert np.isfinite(softmax.log_probabilities(np.array(CHOSEN))).all()
    assert np.isfinite(group.device.get(softmax.entropy)).all()
    assert np.isfinite(group.device.get(softmax.backward(np.array(CHOSEN), C, ENTROPY))).all()


# ---- drawing ------------------------------------------------------------------------------------------


def test_nodes_are_drawn_with_their_probabilities(group):
    """600 draws of five states: every frequency within five standard deviations."""
    if group.device.xp is not np:
        pytest.skip("the draws are those of the host: test_bits_do_not_depend_on_ranks_or_exchange")
    net, params, _ = make_net(group)
    params.set({name: 0.4 * array for name, array in params.host().items()})
    e, _, scores_own, softmax = softmax_of(group, net, params)
    pi = [each[:, 0] for each in whole_states(group, e.batch, softmax.probability_own[:, None])]
    draws = 600
    keys = splitmix(np, np.uint64(9), np.arange(draws, dtype=np.uint64)).tolist()
    found = np.array([draw_nodes(group, e.batch, scores_own, e.inputs.candidate_own > 0, k) for k in keys])
    for state, expected in enumerate(pi):
        share = np.bincount(found[:, state], minlength=len(expected)) / draws
        assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-9).all()
        assert 0.02 < expected.max() < 0.98


# ---- the heads, exactly -------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["separate", "mixing"])
def test_node_head_is_adjoint_to_its_backward(group, monkeypatch, head):
    """Scores are linear in each of H, theta6 (with theta5) and theta7b while no relu bends: Euler's identity.

    With h the gradient by one of them, <z, dz> = <it, h>, in exact arithmetic.
    """
    graphs = [random_graph(19, 0.3, 1), random_graph(9, 0.4, 2)]
    batch = StateBatch(group, [(b, c) for b, c in zip(make_blocks(group, graphs), (2, 1))])
    sizes = (19, 19, 9)
    policy = PolicyCase(dimension=K, hidden=HIDDEN, head=head, features="paper")
    net = QNetwork(policy, MinimumVertexCover())
    params = net.new_parameters(group.device, 0)
    params.set({name: small_integers(i, *s) for i, (name, s) in enumerate(net.shapes().items())})
    H = own_states(group, batch, [np.abs(small_integers([7, s], n, K)) for s, n in enumerate(sizes)])
    dz = own_states(group, batch, [small_integers([8, s], n, 1) for s, n in enumerate(sizes)])[:, 0]
    ones = own_states(group, batch, [np.ones((n, 1), dtype=np.float32) for n in sizes])
    column, xp = ones[:, 0], group.device.xp
    x = Operand(group.device.put(np.ones((1, 1), dtype=np.float32)), (0 * column).astype(np.int32))
    inputs = NodeInputs(x, ones[:1], column, column, column, column)
    factor = group.device.put(np.ones((3, 1), dtype=np.float32))
    e = Evaluation(batch, inputs, [], H, batch.pool(H), factor)
    received = []

    def keep(params, batch, inputs, saved, dZ_own):
        received.append(dZ_own)
        return {}

    monkeypatch.setattr(net.embedding, "backward", keep)
    z, R = node_scores(net, params, e)
    gradient = node_gradient(net, params, e, R, dz)
    total = exact_dot(group, z, dz)
    assert total
    H_own = group.device.get(H)
    assert exact_dot(group, group.device.put(H_own * (H_own > 0)), received[0]) == total

    def along(name):
        d = gradient.head.get(name)
        if d is None:
            d = batch.sum_blocks(xp.ascontiguousarray(gradient.parts[name]))
        return float((group.device.get(d).reshape(-1) * params.host()[name].reshape(-1)).sum())

    assert along("head.theta7b") == total
    assert along("head.theta6") + along("head.theta5") == total
    if head == "separate":
        assert along("head.theta5") == along("head.theta7a") == 0


def test_value_head_is_adjoint_to_its_backward(group):
    """v is linear in (w, b), and in p: <v, dv> = <w, dw> + <b, db>, <v - b, dv> = <p, dp>, exactly."""
    head = ValueHead(group.device, K)
    w, b, p, dv = (small_integers(i, *shape) for i, shape in enumerate([(K, 1), (1, 1), (5, K), (5,)]))
    head.params.set({"value.w": w, "value.b": b})
    e = dataclasses.make_dataclass("Pooled", ["pooled"])(group.device.put(p))
    gradient, dp = (group.device.get(each) for each in head.backward(e, dv))
    v = head.values(e)
    assert v.tolist() == (p @ w + b)[:, 0].tolist()
    assert (v * dv).sum() == (gradient * np.concatenate([w[:, 0], b[0]])).sum() != 0
    assert ((v - b[0]) * dv).sum() == (p * dp).sum()


def test_the_states_have_candidates():
    assert all(candidates(state)[node] for state, node in zip(STATES, CHOSEN))
    assert len(GRAPHS) == len(REMOVED)
