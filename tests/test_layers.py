"""app/gnn/layers and app/gnn/block: gradients, exactly and by differences; the same bits on any ranks."""

import functools
import tracemalloc

import numpy as np
import pytest
from helpers import EXCHANGES, by_one, growing_graph, listed, random_graph
from hypothesis import given
from hypothesis import strategies as st
from layer_models import CONVOLUTIONS, Single, Trial, case_of, differences, drawn
from mpi4py.MPI import COMM_SELF
from mpi4py.MPI import COMM_WORLD as WORLD
from standin_device import StandInDevice

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.buffers import Lifetime, plan_buffers
from app.gnn.model import Model
from app.gnn.parameters import Parameters

KINDS = [*sorted(CONVOLUTIONS), "gat heads=2", "gatv2 heads=2"]
TOLERANCE = 5e-6  # of float32 gradients, relative to the largest
NORMED_TOLERANCE = 4e-5  # where rows of 3 or 4 columns are divided by their deviation in every layer
OPTIONS = ["", "residual", "layer_norm", "batch_norm", "residual batch_norm", "residual layer_norm"]
GRAPHS = {
    "random": random_graph(41, 0.1, 3),  # with isolated nodes
    "hubs": growing_graph(30, 3, 5),
    "few rows": listed(5, (0, 1), (1, 2), (0, 2), (2, 3)),  # one block: a single rank has rows
}


def data_of(graph, features=5, classes=3, seed=11):
    """Features with zeros among them, labels of most nodes."""
    draws, n = np.random.default_rng(seed), graph[0]
    X = (draws.normal(size=(n, features)) * (draws.random((n, features)) < 0.6)).astype(np.float32)
    labels = draws.integers(0, classes, n)
    labels[draws.random(n) < 0.2] = -1
    labels[:classes] = np.arange(classes)
    return X, labels


def relative_error(trial, gradient, expected):
    """Largest difference from the expected gradient, relative to its largest entry."""
    found = {
        n: gradient[s].reshape(trial.engine.params.shapes[n]) for n, s in trial.engine.params.slices.items()
    }
    top = max(np.abs(each).max() for each in expected.values())
    return max(np.abs(found[name] - each).max() for name, each in expected.items()) / top


# ---- whole models against differences ------------------------------------------------------------------


@functools.cache
def expected_gradient(kind, options, normalisation="symmetric", own_loops=True):
    """Features, labels, values of the parameters, and the gradient by central differences in float64."""
    X, labels = data_of(GRAPHS["random"])
    case = case_of(kind, options, normalisation=normalisation, own_loops=own_loops)
    values = drawn(Model(case, X.shape[1], labels.max() + 1).shapes())
    return X, labels, values, differences(GRAPHS["random"], X, labels, case, values)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("first", ["auto", "live", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_differences_of_the_loss(group, kind, first, options):
    if options != OPTIONS[-1] and (group.size > 1 or not group.device.direct):
        pytest.skip(
            "all options together are enough on this device and on ranks, whose bits are those of one"
        )
    X, labels, values, expected = expected_gradient(kind, options)
    case = case_of(kind, options, first_product="auto" if first == "sparse" else first)
    trial = Trial(group, GRAPHS["random"], X, labels, case, sparse=first == "sparse", values=values)
    tolerance = NORMED_TOLERANCE if "norm" in kind else TOLERANCE
    assert relative_error(trial, trial.epoch(1), expected) < tolerance


@pytest.mark.parametrize("first", ["auto", "live", "sparse"])
@pytest.mark.parametrize("kinds", [("in_degree", True), ("in_degree", False), ("symmetric", False)])
def test_gradients_of_other_normalisations(group, kinds, first):
    X, labels, values, expected = expected_gradient("gcn", "", *kinds)
    product = "auto" if first == "sparse" else first
    case = case_of("gcn", normalisation=kinds[0], own_loops=kinds[1], first_product=product)
    trial = Trial(group, GRAPHS["random"], X, labels, case, sparse=first == "sparse", values=values)
    assert relative_error(trial, trial.epoch(1), expected) < TOLERANCE


# ---- linear pieces, exactly ------------------------------------------------------------------------------

QUADS = listed(37, *[(i + 8 * a, i + 8 * b) for i in range(8) for a in range(4) for b in range(a)])
RING = listed(39, *[(i, (i + step) % 32) for i in range(32) for step in (1, 9)], (33, 35))
EXACT = {  # graphs whose factors are powers of two; the layer's weights, and more settings
    "gcn": (QUADS, ("W",), {}),
    "gcn in_degree": (QUADS, ("W",), {"normalisation": "in_degree"}),
    "gcn alone": (RING, ("W",), {"own_loops": False}),
    "gcn in_degree alone": (RING, ("W",), {"normalisation": "in_degree", "own_loops": False}),
    "sage": (RING, ("W_self", "W_neigh"), {}),
    "commnet": (RING, ("W_H", "W_C"), {}),
}
ORDERS = [(3, 6, None), (6, 3, None), (4, 4, None), (9, 2, False), (3, 5, False), (9, 2, True)]


def integers(seed, *shape, low=-3):
    return np.random.default_rng(seed).integers(low, 4, shape).astype(np.float32)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("f_in, f_out, sparse", ORDERS)
@pytest.mark.parametrize("layer", EXACT)
def test_backward_is_the_exact_adjoint(group, layer, f_in, f_out, sparse, exchange):
    graph, names, settings = EXACT[layer]
    H, D = integers(1, graph[0], f_in), integers(2, graph[0], f_out)
    values = {name: integers(3 + i, f_in, f_out) for i, name in enumerate(names)}
    for first in ("auto", "live"):
        settings = {**settings, "first_product": first}
        one = Single(group, graph, layer.split()[0], H, D, values, exchange, sparse, **settings)
        product = one.dot(one.Z, one.D, 1 / 16)
        assert product == sum((values[n] * one.gradient[n]).sum(dtype=float) for n in names) * 16
        assert (one.dH is None) == (sparse is not None)
        if one.dH is not None:
            assert product == one.dot(one.H, one.dH, 1 / 16)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("f_in, f_out, sparse", [each for each in ORDERS if each[2] is not None])
@pytest.mark.parametrize("normalisation", ["symmetric", "in_degree"])
def test_the_shortcut_of_mg_gcn_has_the_identity_in_place_of_the_matrix(
    group, normalisation, f_in, f_out, sparse, exchange
):
    """Where it has something to save: a first layer that widens makes the product first, and is exact."""
    H, D, W = integers(1, QUADS[0], f_in), integers(2, QUADS[0], f_out), integers(3, f_in, f_out)
    settings = {"normalisation": normalisation}
    exact, short = (
        Single(group, QUADS, "gcn", H, D, {"W": W}, exchange, sparse, **settings, first_product=first)
        for first in ("live", "mg_gcn")
    )
    assert np.array_equal(exact.Z, short.Z)
    widens = f_in < f_out and not sparse
    wanted = exact.gradient["W"] if widens else H.T @ D
    assert np.array_equal(short.gradient["W"], wanted)
    assert not np.array_equal(exact.gradient["W"], H.T @ D)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("f_in, f_out, sparse", ORDERS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_gin_backward_is_the_exact_adjoint_where_relu_is_linear(group, graph, f_in, f_out, sparse, exchange):
    graph = GRAPHS[graph]
    H, D = integers(1, graph[0], f_in, low=0), integers(2, graph[0], f_out)
    values = {"W1": integers(3, f_in, f_out, low=1), "W2": integers(4, f_out, f_out)}
    for first in ("auto", "live"):
        with_eps = [
            Single(
                group, graph, "gin", H, D, {**values, "eps": np.full((1, 1), eps)}, exchange, sparse,
                bias=False, first_product=first,
            )
            for eps in (2, 3)
        ]  # fmt: skip
        one, other = with_eps
        product = one.dot(one.Z, one.D, 1)
        assert product == (values["W1"] * one.gradient["W1"]).sum(dtype=float)
        assert product == (values["W2"] * one.gradient["W2"]).sum(dtype=float)
        assert other.dot(other.Z, other.D, 1) - product == one.gradient["eps"]
        if one.dH is not None:
            assert product == one.dot(one.H, one.dH, 1)


# ---- the same bits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_same_bits_on_any_ranks(group, single, kind, sparse, graph):
    X, labels = data_of(GRAPHS[graph])
    norm = "batch_norm" if graph == "random" else "layer_norm"
    case = case_of(kind, f"residual {norm}", dropout=0.5, input_dropout=0.25)

    def learned():
        alone = Trial(single, GRAPHS[graph], X, labels, case, sparse=sparse)
        return [alone.epoch(number).tobytes() for number in (1, 2)], alone.scores()

    expected, scores = by_one(learned)
    assert expected[0] != expected[1]
    for exchange in EXCHANGES:
        trial = Trial(group, GRAPHS[graph], X, labels, case, exchange, sparse)
        assert [trial.epoch(number).tobytes() for number in (1, 2)] == expected
        lo, own = trial.block.lo, trial.block.n_real
        assert np.array_equal(trial.scores()[:own], scores[lo : lo + own])


# Its hub has more entries than kernels take at a time (GROUP in app/native/attention.h), and not a multiple.
STAR = listed(360, *[(3, i) for i in range(300) if i != 3], *[(i, i + 1) for i in range(4, 90)])


@pytest.mark.parametrize("graph", [GRAPHS["random"], STAR], ids=["random", "star"])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_kernels_change_no_bit(compiled, kind, graph):
    """The stand-in, of whose operations the plain ones are, has the small graph; test_batch_norm.py the other
    norm on it.
    """
    norm = "batch_norm" if graph is STAR else "layer_norm"
    devices = [compiled, HostDevice(compiled=False), *([] if graph is STAR else [StandInDevice()])]
    groups = [Group(WORLD, device) for device in devices]
    X, labels = data_of(graph)
    case = case_of(kind, f"residual {norm}", dropout=0.5)
    trials = [Trial(group, graph, X, labels, case) for group in groups]
    assert len({trial.epoch(1).tobytes() for trial in trials}) == 1


# ---- buffers ---------------------------------------------------------------------------------------------


@st.composite
def programs(draw):
    """Programs of arrays whose lives are any ranges of operations."""
    life = st.tuples(st.integers(1, 4), st.integers(0, 12), st.integers(0, 12))
    out = {}
    for name in draw(st.sampled_from([("epoch",), ("epoch", "evaluation")])):
        drawn_lives = draw(st.lists(life, max_size=12))
        out[name] = [
            Lifetime(f"a{i}", width, min(a, b), max(a, b)) for i, (width, a, b) in enumerate(drawn_lives)
        ]
    return out


@given(programs())
def test_arrays_that_live_together_never_share_a_buffer(lives):
    plan = plan_buffers(lives)
    for name, own in lives.items():
        for i, life in enumerate(own):
            assert plan.widths[plan.slots[name][i]] >= life.width
            for j in range(i):
                overlap = life.first <= own[j].last and own[j].first <= life.last
                assert not (overlap and plan.slots[name][i] == plan.slots[name][j])


@pytest.mark.parametrize("kind, norm", [*((kind, "layer_norm") for kind in KINDS), ("gcn", "batch_norm")])
def test_an_epoch_allocates_nothing_of_the_size_of_rows(compiled, kind, norm):
    group = Group(WORLD, compiled)
    graph, width = random_graph(3000, 0.002, 1), 16 if kind == "pna" else 32  # of 12 times as many weights
    X, labels = data_of(graph, features=20)
    case = case_of(kind, f"residual {norm}", (width, width), dropout=0.5)
    trial = Trial(group, graph, X, labels, case)
    trial.epoch(1)
    trial.epoch(2)
    tracemalloc.start()
    trial.epoch(3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    weights = 4 * trial.engine.params.size * (len(trial.engine.own_roots) + 8)
    columns = 4 * trial.block.n_own * 8  # numbers of a row: means, deviations, losses
    assert peak < weights + columns + 200_000
    assert weights + columns < 4 * 3000 * width * 3


def test_rows_of_an_epoch_lie_in_the_views_of_the_one_before():
    trial = Trial(
        Group(COMM_SELF, HostDevice()), GRAPHS["random"], *data_of(GRAPHS["random"]), case_of("gcn", "")
    )
    engine = trial.engine

    def taken():
        engine._program, engine._count = "epoch", 0
        found = engine.take("HW", engine.plan.lifetimes["epoch"][0].width)
        engine.free(found)
        return found.array

    before = taken()
    assert taken() is before
    engine.allocate()  # other buffers: nobody may find the rows of the old ones
    assert not np.shares_memory(taken(), before)
    assert any(np.shares_memory(taken(), buffer) for buffer in engine._buffers)


def test_parameters_are_views_that_follow_their_vector(device):
    params = Parameters(device, {"W": (2, 3), "bias": (1, 3)})
    assert params["W"] is params["W"]
    W = params["W"]
    params.set({"W": np.ones((2, 3)), "bias": np.full((1, 3), 2)})
    target = params.copy()
    params.flat[:] = device.put(np.arange(9, dtype=np.float32))
    assert device.get(W).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert device.get(params["bias"]).tolist() == [[6, 7, 8]]
    assert device.get(target["W"]).tolist() == [[1, 1, 1]] * 2
    target["bias"][...] = 5
    assert device.get(target.flat).tolist() == [1] * 6 + [5] * 3 and device.get(W)[1, 2] == 5


def test_one_graph_on_one_rank_is_multiplied_where_it_lies(monkeypatch):
    """Its rows are the operand of the product, without a walk over graphs and ranks."""
    graph, alone = GRAPHS["random"], Group(COMM_SELF, HostDevice())
    trials = [Trial(alone, graph, *data_of(graph), case_of("gcn", "")) for _ in range(2)]
    slow, fast = (each.engine.neighbours_of.exchange for each in trials)
    slow._at_once = False
    monkeypatch.setattr(fast, "_for_rows", None)
    assert trials[0].epoch(1).tobytes() == trials[1].epoch(1).tobytes()


def test_a_residual_connection_of_the_features_has_weights_that_meet_them(device):
    model = Model(case_of("gin", "residual", (5, 5)), 5, 3)
    names = list(model.shapes())
    assert names[:2] == ["layer1.residual", "layer1.W1"] and "layer2.residual" not in names
    assert model.input_parameters() == 50


def test_biases_begin_at_zero_and_gains_at_one(device):
    model = Model(case_of("gin_norm", "layer_norm"), 5, 3)
    params = Parameters(device, model.shapes())
    params.draw_glorot(3, model.constants())
    host = params.host()
    for name, array in host.items():
        kind = name.rpartition(".")[2]
        if kind in ("bias", "hidden_bias", "beta", "hidden_beta", "eps"):
            assert not array.any()
        elif kind in ("gamma", "hidden_gamma"):
            assert (array == 1).all()
        else:
            assert array.any()
    params.draw_glorot(3)
    assert np.array_equal(params.host()["layer2.W1"], host["layer2.W1"])


def test_an_unknown_layer_is_refused():
    with pytest.raises(CaseError, match=r"unknown layer 'gnc'.*gcn"):
        Model(case_of("gnc"), 5, 3)


@pytest.mark.parametrize("heads, width", [(100, 200), (256, 256), (3, 51)])
def test_attention_of_any_number_of_heads(compiled, heads, width):
    draws, n = np.random.default_rng(2), STAR[0]
    H, D = (draws.normal(size=(n, columns)) for columns in (6, width))
    values = drawn({"W": (6, width), "a1": (width, 1), "a2": (width, 1)})
    groups = [Group(WORLD, device) for device in (compiled, HostDevice(compiled=False))]
    one, plain = (Single(group, STAR, "gat", H, D, values, heads=heads) for group in groups)
    assert one.Z.tobytes() == plain.Z.tobytes() and one.dH.tobytes() == plain.dH.tobytes()
    assert all(one.gradient[name].tobytes() == plain.gradient[name].tobytes() for name in values)


@pytest.mark.parametrize("text", ["gat 10 heads=3", "gat 300 heads=300"])
def test_heads_that_do_not_fit_are_refused(text):
    with pytest.raises(CaseError, match="heads"):
        Model(GnnCase(layers=[text, "gat"]), 5, 3)
