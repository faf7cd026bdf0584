"""The Q-network: values and gradients against dense float64 forms of RL4GO eqs. 1 and 2."""

import itertools
import math

import numpy as np
import pytest
from helpers import (
    dense,
    listed,
    make_blocks,
    own_states,
    random_graph,
    residual,
    small_integers,
    totals_of,
    whole_rows,
    whole_states,
)

from app.case.policy import PolicyCase
from app.errors import CaseError
from app.gnn.structure2vec import NodeInputs
from app.numerics.products import Operand
from app.problems.mvc import MinimumVertexCover
from app.problems.problem import FIRST_ALIVE, Totals
from app.problems.table import make_problem
from app.recipes import PAPER_POLICY
from app.rl.qnet import QNetwork
from app.sparse.batch import StateBatch

K, HIDDEN = 3, 4

# ---- the reference: one state, dense, float64 ---------------------------------------------------------


def relu(Z):
    return np.maximum(Z, 0)


def coarse(mean):
    """A positive number rounded to four binary digits."""
    fraction, exponent = math.frexp(mean)
    return math.ldexp(round(16 * fraction), exponent - 4)


def scale_free(degree, mean):
    """The features of app/problems/mvc.py, one node at a time."""
    rows = []
    for d in degree:
        ratio = min(mean / d, 8) if d else 0
        row = [1, math.log(1 + d / mean), ratio, ratio**2 / 4, d == 1, d == 2, 1 / mean]
        rows.append(row if d else [0] * 7)
    return np.array(rows, dtype=float)


def reference(policy, w, graph, removed):
    """Q [..., n] of every node of one state; the arrays of w may have leading axes."""
    K = policy.dimension
    A, M = (residual(X, removed) for X in dense(graph))
    degree = A.sum(axis=1)
    count = int((degree > 0).sum())
    mean = coarse(degree.sum() / count) if count else 1.0
    not_removed = np.ones((len(A), 1))
    not_removed[removed] = 0
    if policy.features == "paper":
        x, alive, present, share = 1 - not_removed, not_removed, np.ones((len(A), 1)), 1.0
    else:
        x, share = scale_free(degree, mean), 1 / max(count, 1)
        alive = present = (degree > 0)[:, None]
    assert not (A * (1 - alive)).any()
    scale = 1 / mean if policy.mean_degree else 1.0
    if policy.hub_degree:
        scale = 1 / np.maximum(mean, degree[:, None] / policy.hub_degree)

    H = None
    for layer in range(1, policy.layers + 1):
        W = w["embed.W" if policy.shared_layers else f"embed.W{layer}"]
        theta1, W = W[..., : x.shape[1], :], W[..., x.shape[1] :, :]
        Z = x @ theta1
        if policy.edge_weights:
            terms = relu(w["embed.theta2"][..., None, :, :] * M[:, :, None]) * A[:, :, None]
            theta3, W = W[..., :K, :], W[..., K:, :]
            Z = Z + terms.sum(axis=-2) @ theta3
        if H is not None:
            Z = Z + (scale * (A @ H)) @ W[..., :K, :]
            if policy.self_weight:
                Z = Z + H @ W[..., K:, :]
        H = present * relu(Z)
    p = share * H.sum(axis=-2, keepdims=True)
    extra = np.broadcast_to(x, (*H.shape[:-2], *x.shape))
    V = H if policy.features == "paper" else np.concatenate([H, extra], axis=-1)
    graph_part, node_part = p @ w["head.theta5"], V @ w["head.theta6"]
    if policy.head == "mixing":
        return (relu(node_part + graph_part) @ w["head.theta7b"])[..., 0]
    return (relu(node_part) @ w["head.theta7b"] + relu(graph_part) @ w["head.theta7a"])[..., 0]


def slopes(function, w, step=1e-6):
    """Central differences of function(w) [...] by every entry of every array of w."""
    out = {}
    for name, array in w.items():
        moves = step * np.eye(array.size).reshape(array.size, *array.shape)
        up, down = (function({**w, name: array + sign * moves}) for sign in (1, -1))
        out[name] = ((up - down) / (2 * step)).reshape(array.shape)
    return out


# ---- a batch of states of two graphs ------------------------------------------------------------------

GRAPHS = [random_graph(19, 0.25, 11, weighted=True), random_graph(9, 0.4, 12)]
REMOVED = [[[], [3, 4, 10], [17]], [[8, 0], []]]
CHOSEN = [0, 7, 12, 3, 5]  # one node per state that still has an edge
STATES = [(graph, removed) for graph, states in zip(GRAPHS, REMOVED) for removed in states]


def test_the_chosen_nodes_have_edges_and_weights_of_both_signs():
    assert all(residual(dense(g)[0], r)[v].any() for (g, r), v in zip(STATES, CHOSEN))
    assert (GRAPHS[0][2] > 0).any()
    assert (GRAPHS[0][2] < 0).any()


def without_weights(graph):
    return *graph[:2], None


def make_state_batch(group, exchange="auto", graphs=GRAPHS):
    """The states as a batch, their alive and degree columns and totals."""
    blocks = make_blocks(group, graphs, exchange)
    batch = StateBatch(group, [(b, len(r)) for b, r in zip(blocks, REMOVED)])
    alive = batch.alive_mask([np.array(r, dtype=np.int64) for _, r in STATES])
    degree = batch.times(alive[:, None])[:, 0] * alive
    return batch, alive, degree, [totals_of(residual(dense(g)[0], r)) for g, r in STATES]


def evaluate(net, params, group, exchange="auto", graphs=GRAPHS):
    batch, alive, degree, totals = make_state_batch(group, exchange, graphs)
    return net.evaluate(params, batch, inputs_of(net, batch, alive, degree, totals), totals, pool=True)


def inputs_of(net, batch, alive, degree, totals):
    """Inputs from the columns alive (None: candidates only) and degree."""
    real = batch.alive_mask([np.empty(0, np.int64)] * batch.states) if net.paper else None
    every = net.paper and alive is not None
    code = net.problem.code(batch.device.xp, alive, degree, real if every else None)
    return net.inputs(batch, code, totals, every)


def backward(net, params, e, kept, dq):
    """The gradient as one host vector."""
    gradient = net.chosen_backward(params, e, kept, dq.astype(np.float32))
    return e.batch.device.get(net.flatten(params, e.batch, gradient))


def random_weights(net, seed):
    """Weights of both signs, spread widely enough that no relu of the network is shut."""
    draws = np.random.default_rng(seed)
    return {
        name: (draws.uniform(0.2, 1, shape) * draws.choice([-1, 1, 1], shape)).astype(np.float32)
        for name, shape in net.shapes().items()
    }


FLAGS = ("shared_layers", "self_weight", "edge_weights", "mean_degree")
OPTIONS = [
    dict(zip(("layers", "features", "head", *FLAGS), values))
    for values in itertools.product(
        (1, 2, 3), ("paper", "scale_free"), ("separate", "mixing"), *[(False, True)] * 4
    )
]

OPTIONS += [
    {**options, "hub_degree": 0.8}  # of most nodes, not of all
    for options in OPTIONS
    if options["mean_degree"] and options["features"] == "scale_free" and not options["edge_weights"]
]


def some_policies(layers, features, head):
    for options in OPTIONS:
        if (options["layers"], options["features"], options["head"]) == (layers, features, head):
            yield PolicyCase(dimension=K, hidden=HIDDEN, **options)


def close(found, expected, what):
    """Equal to 1e-4 of the largest entry."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max() + 1e-12, what


def check_values(group, net, params, w, e, graphs=GRAPHS):
    """The chosen nodes' values, and every candidate's from its two halves. Returns what backward needs."""
    states = [(graph, removed) for graph, lists in zip(graphs, REMOVED) for removed in lists]
    q, kept = net.chosen_values(params, e, np.array(CHOSEN))
    q_all = [reference(net.policy, w, *state) for state in states]
    close(q, np.array([values[v] for values, v in zip(q_all, CHOSEN)]), net.policy)
    scores = group.device.get(net.local_scores(params, e))[:, None]
    halves = whole_states(group, e.batch, group.device.put(scores))
    constant = group.device.get(net.pooled_scores(params, e))
    for half, c, values, (graph, removed) in zip(halves, constant, q_all, states):
        candidates = residual(dense(graph)[0], removed).any(axis=1)
        close((half[:, 0] + c)[candidates], values[candidates], net.policy)
        assert not half[~candidates].any()
    return kept


def check_gradients(net, params, w, e, kept, graphs=GRAPHS):
    """Those of sum over states of dq * q, against central differences."""
    dq, policy = np.array([0.5, -1.0, 0.75, 1.0, -0.25]), net.policy
    states = [(graph, removed) for graph, lists in zip(graphs, REMOVED) for removed in lists]
    flat = backward(net, params, e, kept, dq)
    expected = slopes(
        lambda w: sum(c * reference(policy, w, *state)[..., v] for c, state, v in zip(dq, states, CHOSEN)), w
    )
    for name, part in params.slices.items():
        close(flat[part].reshape(params.shapes[name]), expected[name], (name, policy))
        # Without edge weights eq. 1 gives no node with an edge anything but zero.
        shut = policy.features == "paper" and not policy.edge_weights
        assert expected[name].any() or shut, (name, policy)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("features", ["paper", "scale_free"])
@pytest.mark.parametrize("head", ["separate", "mixing"])
def test_values_and_gradients_of_every_option(group, layers, features, head):
    # The host of one process tries all sixteen sets of flags, all else four, with every pair of values.
    policies = list(enumerate(some_policies(layers, features, head)))
    alone = group.size == 1 and group.device.direct and group.device.native
    for seed, policy in policies if alone else policies[::5]:
        net = QNetwork(policy, MinimumVertexCover())
        params = net.new_parameters(group.device, 0)
        params.set(random_weights(net, seed))
        w = {name: array.astype(float) for name, array in params.host().items()}
        e = evaluate(net, params, group)
        check_gradients(net, params, w, e, check_values(group, net, params, w, e))


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("features", ["paper", "scale_free"])
@pytest.mark.parametrize("self_weight", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_edge_weights_that_are_all_one(group, layers, features, self_weight, shared):
    """Sums of edge weights are degrees then: a table, and with them the edge term and the first embeddings.

    A batch with a weighted graph, as above, has them written out.
    """
    policy = PolicyCase(
        dimension=K, hidden=HIDDEN, layers=layers, features=features, self_weight=self_weight,
        shared_layers=shared, edge_weights=True,
    )  # fmt: skip
    net, graphs = QNetwork(policy, MinimumVertexCover()), [without_weights(graph) for graph in GRAPHS]
    params = net.new_parameters(group.device, 0)
    params.set(random_weights(net, 12 + 2 * shared + self_weight))
    w = {name: array.astype(float) for name, array in params.host().items()}
    e = evaluate(net, params, group, graphs=graphs)
    assert e.inputs.weights_own.index is e.inputs.x_own.index
    check_gradients(net, params, w, e, check_values(group, net, params, w, e, graphs), graphs)
    assert evaluate(net, params, group).inputs.weights_own.index is None


def test_gradients_do_not_depend_on_ranks_or_exchange(group, solo):
    policy = PolicyCase(dimension=K, hidden=HIDDEN, edge_weights=True, head="mixing", layers=3)
    net = QNetwork(policy, MinimumVertexCover())
    params = net.new_parameters(group.device, 7)
    flats = []
    for ranks, exchange in [(solo, "auto"), (group, "halo"), (group, "gather")]:
        e = evaluate(net, params, ranks, exchange)
        q, kept = net.chosen_values(params, e, np.array(CHOSEN))
        flats.append(q.tobytes() + backward(net, params, e, kept, np.ones(5)).tobytes())
    assert flats[0] == flats[1] == flats[2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("features", "edge_weights"), [("paper", True), ("scale_free", False), ("scale_free", True)]
)
@pytest.mark.parametrize("self_weight", [False, True])
def test_scores_of_candidates_need_no_other_nodes(group, features, edge_weights, self_weight, weighted):
    """Without the mask of what is alive, to the bit: then only nodes with an edge have an embedding."""
    policy = PolicyCase(
        dimension=K, hidden=HIDDEN, layers=3, features=features, self_weight=self_weight,
        edge_weights=edge_weights,
    )  # fmt: skip
    net = QNetwork(policy, MinimumVertexCover())
    graphs = GRAPHS if weighted else [without_weights(graph) for graph in GRAPHS]
    params = net.new_parameters(group.device, 0)
    params.set({name: np.abs(array) for name, array in random_weights(net, 5).items()})
    batch, alive, degree, totals = make_state_batch(group, graphs=graphs)
    scores = []
    for mask in (alive, None):
        e = net.evaluate(params, batch, inputs_of(net, batch, mask, degree, totals), totals, pool=False)
        assert e.pooled is None
        scores.append(group.device.get(net.local_scores(params, e)).copy())
    assert scores[0].tobytes() == scores[1].tobytes()
    assert np.array_equal(scores[0] > 0, group.device.get(degree) > 0)


# ---- the head, exactly --------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["separate", "mixing"])
@pytest.mark.parametrize("features", ["paper", "scale_free"])
def test_head_is_adjoint_to_its_backward(group, monkeypatch, head, features):
    """With positive integers no relu bends: dq . (q(H + E) - q(H)) = <dZ, E>, in exact arithmetic."""
    graphs = [random_graph(21, 0.3, 1), listed(9, (0, 1), (7, 8))]
    batch = StateBatch(group, [(b, c) for b, c in zip(make_blocks(group, graphs), (2, 1))])
    sizes, nodes, dq = (21, 21, 9), np.array([20, 4, 7]), np.array([2, -3, 1], dtype=np.float32)
    net = QNetwork(PolicyCase(dimension=K, hidden=HIDDEN, head=head, features=features), MinimumVertexCover())
    params = net.new_parameters(group.device, 0)
    params.set({name: np.abs(small_integers(i, *s)) + 1 for i, (name, s) in enumerate(net.shapes().items())})

    ones = own_states(group, batch, [np.ones((n, 1), dtype=np.float32) for n in sizes])
    x = Operand(group.device.put(np.ones((1, net.F), dtype=np.float32)), (0 * ones[:, 0]).astype(np.int32))
    H = own_states(group, batch, [np.abs(small_integers([7, s], n, K)) for s, n in enumerate(sizes)])
    E = own_states(group, batch, [np.abs(small_integers([8, s], n, K)) for s, n in enumerate(sizes)])
    E = E * (H > 0)  # where an embedding is 0 relu is shut
    totals = [Totals(8, 0, 0)] * 3  # a mean over 8: exact
    embedded, received = [H], []

    def embed(params, batch, inputs, pool, keep=True):
        return embedded[0], None, group.device.fold_members(batch.members, embedded[0]) if pool else None

    monkeypatch.setattr(net.embedding, "embed", embed)

    monkeypatch.setattr(net.embedding, "backward", lambda *args: received.append(args[-1]))

    def values(H_own):
        embedded[0] = H_own
        column, entries = ones[:, 0], group.device.put(np.ones((1, 1), dtype=np.float32))
        inputs = NodeInputs(x, entries, column, column, column, column)
        e = net.evaluate(params, batch, inputs, totals, pool=True)
        return e, *net.chosen_values(params, e, nodes)

    e, q, kept = values(H)
    gradient = net.chosen_backward(params, e, kept, dq).head
    (dZ,) = received
    _, moved, _ = values(H + E)
    change = float((dq.astype(float) * (moved.astype(float) - q)).sum())
    local = (group.device.get(dZ).astype(float) * group.device.get(E)).sum() * 8
    assert not group.device.get(dZ)[group.device.get(H) == 0].any()
    assert change * 8 == group.sum_integers(np.array([int(local)]))[0] != 0

    # The same of each weight of the head: moving it by one changes q by its derivative
    for name in ("head.theta5", "head.theta6", "head.theta7b", *(["head.theta7a"] * (head == "separate"))):
        found = group.device.get(gradient[name]).astype(float).reshape(params.shapes[name])
        for at in np.ndindex(params.shapes[name]):
            arrays = params.host()
            arrays[name][at] += 1
            changed = params.copy()
            changed.set(arrays)
            moved, _ = net.chosen_values(changed, e, nodes)
            assert (dq.astype(float) * (moved.astype(float) - q)).sum() == found[at], (name, at)


# ---- eqs. 1 and 2 as they are printed -----------------------------------------------------------------


def test_paper_policy_is_equations_1_and_2(group):
    """Loops over nodes and neighbours with theta1..theta7, on the graph without the edges of S."""
    n, edges, weights = random_graph(12, 0.35, 21, weighted=True)
    S = {2, 9}
    net = QNetwork(PAPER_POLICY, MinimumVertexCover())
    k, hidden, layers = PAPER_POLICY.dimension, PAPER_POLICY.hidden, PAPER_POLICY.layers
    params = net.new_parameters(group.device, 3)
    w = {name: array.astype(float) for name, array in params.host().items()}
    # Column vectors as in the paper: theta1 [K, 1], theta3, theta4 [K, K], theta5, theta6 [hidden, K]
    theta1, theta3, theta4 = w["embed.W"][:1].T, w["embed.W"][1 : 1 + k].T, w["embed.W"][1 + k :].T
    theta2 = w["embed.theta2"].T
    theta5, theta6 = w["head.theta5"].T, w["head.theta6"].T
    theta7 = np.concatenate([w["head.theta7a"], w["head.theta7b"]])
    assert (theta1.shape, theta3.shape, theta4.shape, theta2.shape) == ((k, 1), (k, k), (k, k), (k, 1))

    W = {}
    for (u, v), weight in zip(edges.tolist(), weights.tolist()):
        if u not in S and v not in S:
            W[u, v] = W[v, u] = weight
    N = {v: [u for u in range(n) if (v, u) in W] for v in range(n)}
    x = {v: 1.0 if v in S else 0.0 for v in range(n)}
    embed = {v: np.zeros((k, 1)) for v in range(n)}
    for _ in range(layers):
        before = embed
        embed = {
            v: relu(
                theta1 * x[v]
                + theta4 @ sum((before[u] for u in N[v]), np.zeros((k, 1)))
                + theta3 @ sum((relu(theta2 * W[v, u]) for u in N[v]), np.zeros((k, 1)))
            )
            for v in range(n)
        }
    everything = sum(embed.values())
    score = np.array(
        [
            float((theta7.T @ relu(np.concatenate([theta5 @ everything, theta6 @ embed[v]])))[0, 0])
            for v in range(n)
        ]
    )
    assert theta7.shape == (2 * hidden, 1)

    (block,) = make_blocks(group, [(n, edges, weights)])
    batch = StateBatch(group, [(block, 1)])
    alive = batch.alive_mask([np.array(sorted(S))])
    A = residual(dense((n, edges, weights))[0], sorted(S))
    totals = [totals_of(A)]
    degree = batch.times(alive[:, None])[:, 0] * alive
    e = net.evaluate(params, batch, inputs_of(net, batch, alive, degree, totals), totals, pool=True)
    found = whole_rows(group, block, group.device.get(net.local_scores(params, e)))
    candidates = A.any(axis=1)
    assert not found[~candidates].any()
    found += group.device.get(net.pooled_scores(params, e))[0]
    close(found[candidates], score[candidates], "scores")
    for v in range(n):
        close(net.chosen_values(params, e, np.array([v]))[0], score[v : v + 1], v)
    assert len({round(s, 4) for s in score.tolist()}) > 6


# ---- inputs -------------------------------------------------------------------------------------------


def test_mean_degree_is_coarse_and_close():
    for degree_sum in range(1, 3000):
        value = Totals(97, degree_sum, 0).mean_degree()
        assert value == coarse(degree_sum / 97)
        assert abs(value * 97 / degree_sum - 1) <= 1 / 16
    assert Totals(0, 0, 0).mean_degree() == 1


def test_parameter_shapes_are_the_documented_ones():
    net = QNetwork(PAPER_POLICY, MinimumVertexCover())
    assert net.shapes() == {
        "embed.W": (1 + 16 + 16, 16), "embed.theta2": (1, 16), "head.theta5": (16, 16),
        "head.theta6": (16, 16), "head.theta7a": (16, 1), "head.theta7b": (16, 1),
    }  # fmt: skip
    net = QNetwork(PolicyCase(head="mixing"), MinimumVertexCover())
    assert net.shapes() == {
        "embed.W1": (7, 16), "embed.W2": (7 + 16 + 16, 16), "head.theta5": (16, 32),
        "head.theta6": (16 + 7, 32), "head.theta7b": (32, 1),
    }  # fmt: skip


def test_sums_of_hubs_are_those_of_so_many_neighbours(group):
    """A hub's sum is divided by its degree's share; other nodes keep the bits that they have without."""
    star = listed(40, *((0, leaf) for leaf in range(1, 40)), (1, 2), (2, 3))
    block = make_blocks(group, [star])[0]
    batch = StateBatch(group, [(block, 1)])
    totals = [totals_of(dense(star)[0])]
    degree = np.zeros(block.n_own, np.int32)
    real = dense(star)[0].sum(axis=1).astype(np.int32)[block.lo : block.lo + block.n_real]
    degree[: block.n_real] = real
    code = batch.device.put(np.where(degree > 0, degree + 2, 0).astype(np.int32))
    found = {}
    for hub in (0.0, 4.0):
        net = QNetwork(PolicyCase(hub_degree=hub), MinimumVertexCover())
        found[hub] = batch.device.get(net.inputs(batch, code, totals).scale_own)
    mean = totals[0].mean_degree()
    few = (degree > 0) & (degree <= 4 * mean)
    assert np.array_equal(found[0.0][few], found[4.0][few])
    many = degree > 4 * mean
    assert np.allclose(found[4.0][many] * degree[many], 4)
    assert not found[4.0][degree == 0].any()
    if block.lo == 0 and block.n_real:
        assert many[0]


@pytest.mark.mpi_skip
def test_hubs_of_dominating_sets_are_those_that_would_dominate_many():
    """Codes of fields 0, 3, 40 with mark 0 and 1, after the two of no embedding; the mean is 2, h 4."""
    net = QNetwork(PolicyCase(hub_degree=4.0), make_problem("mds"))
    codes = [0, 1, *(FIRST_ALIVE + 2 * field + mark for field in (0, 3, 40) for mark in (0, 1))]
    found = net.sum_factors(np.array(codes, dtype=np.float32)[:, None], np.full(8, 2, dtype=np.float32))
    assert found.tolist() == pytest.approx([0.5] * 6 + [4 / 40] * 2)
    assert net.problem.neighbours(np.array(codes)).tolist() == [0, 0, 0, 0, 3, 3, 40, 40]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"mean_degree": False}, "mvc"),
        ({"model": "gin"}, "mvc"),
        ({"features": "paper"}, "mvc"),
        ({"mean_degree": False}, "mds"),
        ({}, "maxcut"),
        ({}, "tsp"),
    ],
)
def test_hubs_are_for_codes_that_tell_of_neighbours_and_sums_divided_by_a_mean(policy, problem):
    with pytest.raises(
        CaseError, match=r"policy\.hub_degree: is for structure2vec of covers, .* mean_degree"
    ):
        QNetwork(PolicyCase(**policy, hub_degree=4.0), make_problem(problem))
