"""app/elementwise: kernels and plain path have the same bits, dropout its share, losses their gradients."""

import itertools

import numpy as np
import pytest
from helpers import small_integers
from scipy.sparse import csr_array

from app.device import HostDevice
from app.errors import NumericsError
from app.numerics.elementary import exp
from app.numerics.elementwise import Dropout, Elementwise, splitmix
from app.rng import SplitMix

pytestmark = pytest.mark.mpi_skip  # nothing here knows of other ranks
PLAIN = HostDevice(compiled=False)
ROWS = (0, 1, 7, 8, 19)
WIDTHS = (1, 3, 7, 16, 17, 40, 128, 602)
everywhere = pytest.mark.parametrize(("rows", "m"), list(itertools.product(ROWS, WIDTHS)))
DROPS = (None, Dropout(2**64 - 3, 0.3, 10**9), Dropout(5, 0.0), Dropout(6, 0.999999))


class Double(Elementwise):
    """The operations in float64, for central differences."""

    xp = np

    def fold(self, starts, X):
        """Sums of consecutive rows."""
        return np.add.reduceat(X, starts[:-1], axis=0)


def numbers(draws, *shape):
    """Numbers of many magnitudes, among them both zeros."""
    X = (draws.standard_normal(shape) * 10.0 ** draws.integers(-3, 3, shape)).astype(np.float32)
    return np.where(draws.random(shape) < 0.2, draws.choice(np.float32([0.0, -0.0]), shape), X)


def same(found, expected):
    """The same bits, but for sign and payload of NaN."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    lost = np.isnan(expected)
    assert (np.isnan(found) == lost).all()
    assert found[~lost].tobytes() == expected[~lost].tobytes()


def both_ways(compiled, name, *operands, **named):
    """What a method returns, and leaves in its operands, with kernels and without."""
    out = []
    for device in (compiled, PLAIN):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in operands]
        given = {k: a.copy() if isinstance(a, np.ndarray) else a for k, a in named.items()}
        returned = getattr(device, name)(*copies, **given)
        returned = returned if isinstance(returned, tuple) else (returned,)
        arrays = (*returned, *copies, *given.values())
        out.append([a for a in arrays if isinstance(a, np.ndarray)])
    assert len(out[0]) == len(out[1]) > 0
    for found, expected in zip(*out):
        same(found, expected)
    return out[0]


# ---- the same bits with and without kernels --------------------------------------------------------------


@everywhere
def test_activate(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    Z, scale, bias, add = (numbers(draws, *s) for s in ((rows, m), (rows,), (m,), (rows, m)))
    Z[: rows // 3, :1] = np.nan
    for given in itertools.product((False, True), repeat=4):
        for drop in DROPS:
            each = [a if use else None for a, use in zip((scale, bias, add), given)]
            both_ways(compiled, "activate", Z, *each, relu=given[3], drop=drop)


@everywhere
def test_deactivate(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    D, H, scale = (numbers(draws, *s) for s in ((rows, m), (rows, m), (rows,)))
    for drop, relu, scaled in itertools.product(DROPS, (False, True), (False, True)):
        both_ways(compiled, "deactivate", D, H, scale if scaled else None, drop, relu)


@everywhere
def test_add_into(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    Y, X = numbers(draws, rows, m), numbers(draws, rows, m)
    for factor in (1.0, -1.0, 0.1):
        both_ways(compiled, "add_into", Y, X, factor)


@everywhere
def test_elu_plus_one(compiled, rows, m):
    Z = numbers(np.random.default_rng(rows * 1000 + m), rows, m) * np.float32(40)
    both_ways(compiled, "elu_plus_one", Z)
    if Z.size:
        wanted = np.where(Z > 0, Z.astype(float) + 1, np.exp(np.minimum(Z, 0).astype(float)))
        compiled.elu_plus_one(Z)
        assert np.allclose(Z, wanted, rtol=1e-6, atol=1e-37)


@everywhere
def test_losses_and_the_largest(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    Z = numbers(draws, rows, m)
    labels = draws.integers(-1, m, rows).astype(np.int32)
    weight = draws.choice(np.float32([0, 1, 0.3]), rows)
    both_ways(compiled, "softmax_loss", Z, labels, weight)
    targets = (draws.random((rows, m)) < 0.5).astype(np.float32)
    both_ways(compiled, "sigmoid_loss", Z, targets, weight)
    targets[draws.random((rows, m)) < 0.3] = np.nan
    both_ways(compiled, "sigmoid_loss", Z, targets, weight)
    both_ways(compiled, "squared_loss", Z, numbers(draws, rows, m), weight)
    both_ways(compiled, "squared_loss", Z, np.where(np.isnan(targets), targets, Z - 1), weight)
    both_ways(compiled, "argmax_rows", np.round(Z))
    Z[: rows // 2, m // 2] = np.nan
    both_ways(compiled, "softmax_loss", Z, labels, weight)
    both_ways(compiled, "sigmoid_loss", Z, np.ones((rows, m), np.float32), weight)
    both_ways(compiled, "squared_loss", Z, np.ones((rows, m), np.float32), weight)
    both_ways(compiled, "argmax_rows", Z)


@everywhere
def test_layer_normalisation(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    Z, D, gamma, beta = (numbers(draws, *s) for s in ((rows, m), (rows, m), (m,), (m,)))
    Z[: rows // 3, :1] = np.nan
    _, mean, inverse, *_ = both_ways(compiled, "normalise_rows", Z, gamma, beta, 1e-5)
    both_ways(compiled, "normalise_rows", Z, gamma, beta, 1e-5, out=np.ones_like(Z))
    for product in (None, np.ones_like(D)):
        both_ways(compiled, "normalise_rows_back", D, Z, mean, inverse, gamma, product=product)


@everywhere
def test_batch_normalisation(compiled, rows, m):
    draws = np.random.default_rng(rows * 1000 + m)
    Z, D = numbers(draws, rows, m), numbers(draws, rows, m)
    Z[: rows // 3, :1] = np.nan
    mean, inverse, gamma, beta, first, second = (numbers(draws, m) for _ in range(6))
    counted = (draws.random(rows) < 0.5).astype(np.float32)
    starts = np.array([0, rows // 3, rows // 3, rows])
    for centre in (None, mean):
        both_ways(compiled, "counted_sums", Z, counted, centre, starts)
    both_ways(compiled, "normalise_columns", Z, mean, inverse, gamma, beta, np.ones_like(Z))
    both_ways(compiled, "norm_sums", D, Z, mean, inverse, starts)
    both_ways(compiled, "normalise_columns_back", D, Z, mean, inverse, gamma, first, second, counted)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.02, 0.0])
def test_stored_entries_are_dropped_as_dense_ones(compiled, kind, by_columns, share):
    """More of them than are drawn at a time, rows without any among them."""
    draws = np.random.default_rng(1)
    X = np.where(draws.random((70, 133)) < share, numbers(draws, 70, 133), np.float32(0))
    X[[0, 5, 6, 69]] = 0
    A = csr_array(X.T if by_columns else X)
    indptr, indices = A.indptr.astype(kind), A.indices.astype(kind)
    drop = Dropout(77, 0.4, 1000)
    out = []
    for device in (compiled, PLAIN):
        places = device.places_of(indptr, indices, (1000, 0), by_columns)
        found = device.drop_stored(A.data, places, drop, np.ones_like(A.data))
        held = A.data.copy()
        same(device.drop_stored(held, places, drop, held), found)
        out.append(found)
    same(*out)
    compiled.activate(X, drop=drop)
    A.data = out[0]
    same(A.toarray() + np.float32(0), (X.T if by_columns else X) + np.float32(0))  # a zero has no sign


def test_views_of_columns_and_misfits(compiled):
    """Rows may be longer than what is used of them; what does not fit is refused."""
    draws = np.random.default_rng(2)
    wide, wide_add = numbers(draws, 9, 30), numbers(draws, 9, 30)
    expected = wide.copy()
    PLAIN.activate(expected[:, 3:20], add=wide_add[:, 5:22], relu=True, drop=DROPS[1])
    compiled.activate(wide[:, 3:20], add=wide_add[:, 5:22], relu=True, drop=DROPS[1])
    same(wide, expected)
    for Z in (wide.T, wide.astype(np.float64), wide[:, ::2]):
        with pytest.raises(NumericsError):
            compiled.activate(Z, relu=True)
    with pytest.raises(NumericsError):
        compiled.activate(wide, bias=np.zeros(29, dtype=np.float32))
    with pytest.raises(NumericsError):
        compiled.add_into(wide, wide[:8])


def test_devices_agree(device):
    """Also the stand-in for CuPy, and a GPU: small integers, since a library may fuse on the way."""
    Z, add = small_integers(1, 16, 5), small_integers(2, 16, 5)
    labels, weight = (np.arange(16) % 6 - 1).astype(np.int32), np.ones(16, dtype=np.float32)
    expected, held = Z.copy(), device.put(Z)
    for on, rows, other in ((PLAIN, expected, add), (device, held, device.put(add))):
        on.activate(rows, add=other, relu=True, drop=Dropout(9, 0.5, 3))
        on.deactivate(rows, rows, drop=Dropout(9, 0.5, 3), relu=True)
        on.deactivate(rows, drop=Dropout(9, 0.5, 3))
    same(device.get(held), expected)
    losses = device.softmax_loss(held, device.put(labels), device.put(weight))
    same(device.get(losses), PLAIN.softmax_loss(expected, labels, weight))
    same(device.get(held), expected)
    losses = device.sigmoid_loss(held, device.put(add), device.put(weight))
    same(device.get(losses), PLAIN.sigmoid_loss(expected, add, weight))
    same(device.get(device.argmax_rows(held)), PLAIN.argmax_rows(expected))


# ---- what they mean --------------------------------------------------------------------------------------


def test_relu_and_zeros(device):
    Z = np.float32([[-0.0, 0.0, -1.0, 2.0, np.nan, -np.inf, np.inf]])
    held = device.put(Z)
    device.activate(held, relu=True)
    same(device.get(held), np.float32([[0, 0, 0, 2, np.nan, 0, np.inf]]))
    D = device.put(np.full_like(Z, -3))
    device.deactivate(D, held, relu=True)
    same(device.get(D), np.float32([[0, 0, 0, -3, -3, 0, -3]]))


def test_dropout_is_two_generators_deep():
    """The bits are those of SplitMix64 from a state that SplitMix64 makes for the node."""
    drop, node, column = Dropout(123, 0.37), 5, 9
    nodes = SplitMix(drop.key)
    states = [nodes.bits() for _ in range(node + 1)]
    words = SplitMix(states[node])
    word = [words.bits() for _ in range(column // 4 + 1)][-1]
    assert int(splitmix(np, np.uint64(123), np.array([node], dtype=np.uint64))[0]) == states[node]
    Z = np.ones((1, 16), dtype=np.float32)
    PLAIN.activate(Z, drop=Dropout(123, 0.37, node))
    assert (Z[0, column] > 0) == ((word >> 16 * (column % 4)) & 0xFFFF >= drop.threshold)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_has_its_share(device, share):
    """Of all elements, of rows, of columns; and masks of two keys are independent."""
    kept = []
    for key in (1, 2):
        Z = device.put(np.ones((600, 500), dtype=np.float32))
        device.activate(Z, drop=Dropout(key, share))
        Z = device.get(Z)
        assert set(np.unique(Z)) == {0, np.float32(Dropout(key, share).factor)}
        kept.append(Z > 0)
    deviation = np.sqrt(share * (1 - share))
    for axis, size in ((None, 300_000), (0, 600), (1, 500)):
        assert np.abs(kept[0].mean(axis=axis) - (1 - share)).max() < 5 * deviation / np.sqrt(size)
    assert abs((kept[0] & kept[1]).mean() - (1 - share) ** 2) < 5 * deviation / np.sqrt(300_000)


def test_rows_know_their_numbers(device):
    """A part of the rows has the mask that it has in the whole."""
    whole, part = (device.put(np.ones((n, 21), dtype=np.float32)) for n in (50, 13))
    device.activate(whole, drop=Dropout(3, 0.5, 100))
    device.activate(part, drop=Dropout(3, 0.5, 130))
    same(device.get(part), device.get(whole)[30:43])


def test_exponential():
    x = np.linspace(-86.99, 88.72, 400_001).astype(np.float32)
    assert np.abs(exp(np, x) / np.exp(x.astype(np.float64)) - 1).max() < 3e-7
    ends = exp(np, np.float32([-np.inf, -88, -87, 88.73, np.inf, np.nan, 0.0, -0.0]))
    same(ends, np.float32([0, 0, 0, np.inf, np.inf, np.nan, 1, 1]))


def central(f, X, step=1e-4):
    """df/dX by central differences."""
    G = np.zeros_like(X)
    for i in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[i] += step
        down[i] -= step
        G[i] = (f(up) - f(down)) / (2 * step)
    return G


def test_softmax_loss():
    draws = np.random.default_rng(3)
    Z, labels, weight = draws.standard_normal((6, 4)), np.array([0, 3, -1, 2, 1, 1]), draws.random(6)
    weight[3] = 0
    G = Z.copy()
    losses = Double().softmax_loss(G, labels, weight)
    probability = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    expected = -np.log(probability[np.arange(6), labels]) * weight * (labels >= 0)
    assert np.abs(losses - expected).max() < 1e-6
    found = central(lambda X: Double().softmax_loss(X, labels, weight).sum(), Z)
    assert np.abs(G - found).max() < 1e-5
    assert not G[2:4].any()
    assert not losses[2:4].any()


def test_sigmoid_loss():
    draws = np.random.default_rng(4)
    Z, targets, weight = (
        2 * draws.standard_normal((6, 4)),
        (draws.random((6, 4)) < 0.5) * 1.0,
        draws.random(6),
    )
    weight[3] = 0
    G = Z.copy()
    losses = Double().sigmoid_loss(G, targets, weight)
    p = 1 / (1 + np.exp(-Z))
    expected = -(targets * np.log(p) + (1 - targets) * np.log(1 - p)).sum(axis=1) * weight
    assert np.abs(losses - expected).max() < 1e-6
    found = central(lambda X: Double().sigmoid_loss(X, targets, weight).sum(), Z)
    assert np.abs(G - found).max() < 1e-5
    unknown, part = draws.random((6, 4)) < 0.5, Z.copy()
    losses = Double().sigmoid_loss(part, np.where(unknown, np.nan, targets), weight)
    assert np.array_equal(part, np.where(unknown, 0, G))
    each = -(targets * np.log(p) + (1 - targets) * np.log(1 - p)) * weight[:, None]
    assert np.abs(losses - np.where(unknown, 0, each).sum(axis=1)).max() < 1e-6


def test_squared_loss():
    draws = np.random.default_rng(5)
    Z, targets, weight = draws.standard_normal((6, 4)), draws.standard_normal((6, 4)), draws.random(6)
    weight[3] = 0
    G = Z.copy()
    losses = Double().squared_loss(G, targets, weight)
    assert np.abs(losses - ((Z - targets) ** 2).sum(axis=1) * weight).max() < 1e-12
    found = central(lambda X: Double().squared_loss(X, targets, weight).sum(), Z)
    assert np.abs(G - found).max() < 1e-5
    assert not G[3].any()
    unknown, part = draws.random((6, 4)) < 0.4, Z.copy()
    losses = Double().squared_loss(part, np.where(unknown, np.nan, targets), weight)
    assert np.array_equal(part, np.where(unknown, 0, G))
    assert np.allclose(losses, np.where(unknown, 0, (Z - targets) ** 2).sum(axis=1) * weight, atol=1e-12)
    unknown, part = draws.random((6, 4)) < 0.4, Z.copy()
    losses = Double().squared_loss(part, np.where(unknown, np.nan, targets), weight)
    assert np.array_equal(part, np.where(unknown, 0, G))
    assert np.allclose(losses, np.where(unknown, 0, (Z - targets) ** 2).sum(axis=1) * weight, atol=1e-12)


def test_extreme_logits_have_finite_losses(device):
    Z = np.float32([[1000, -1000, 0], [-3e38, 3e38, 1], [-100, 80, 60]])
    labels, weight = np.int32([1, 1, 0]), np.ones(3, dtype=np.float32)
    losses = device.get(
        device.softmax_loss(device.put(Z[[0, 2]]), device.put(labels[[0, 2]]), device.put(weight[:2]))
    )
    assert losses.tolist() == [2000, 180]
    held = device.put(Z)
    losses = device.get(device.sigmoid_loss(held, device.put(np.ones_like(Z)), device.put(weight)))
    assert np.isfinite(losses).all()
    assert np.abs(device.get(held)).max() <= 1


def test_layer_normalisation_and_its_adjoint():
    draws = np.random.default_rng(5)
    Z, gamma, beta, D = (draws.standard_normal(s) for s in ((5, 7), 7, 7, (5, 7)))
    double = Double()
    Y, mean, inverse = double.normalise_rows(Z, gamma, beta, 1e-3)
    expected = (Z - Z.mean(1)[:, None]) / np.sqrt(Z.var(1)[:, None] + 1e-3) * gamma + beta
    assert np.abs(Y - expected).max() < 1e-12
    dZ, product = D.copy(), np.empty_like(D)
    double.normalise_rows_back(dZ, Z, mean, inverse, gamma, product)

    def value(X, g, b):
        return (double.normalise_rows(X, g, b, 1e-3)[0] * D).sum()

    assert np.abs(dZ - central(lambda X: value(X, gamma, beta), Z)).max() < 1e-6
    assert np.abs(product.sum(0) - central(lambda g: value(Z, g, beta), gamma)).max() < 1e-6
    assert np.abs(D.sum(0) - central(lambda b: value(Z, gamma, b), beta)).max() < 1e-6


def test_batch_normalisation_and_its_adjoint():
    """Of statistics over some of the rows."""
    draws = np.random.default_rng(5)
    Z, gamma, beta, D = (draws.standard_normal(s) for s in ((9, 4), 4, 4, (9, 4)))
    double, counted, starts = Double(), (np.arange(9) % 3 > 0).astype(float), np.array([0, 4, 9])

    def forward(X, g, b):
        mean = double.counted_sums(X, counted, None, starts).sum(0) / counted.sum()
        squares, N = double.counted_sums(X, counted, mean, starts), np.empty_like(X)
        inverse = 1 / np.sqrt(squares.sum(0) / counted.sum() + 1e-3)
        double.normalise_columns(X, mean, inverse, g, b, N)
        return N, mean, inverse

    Y, mean, inverse = forward(Z, gamma, beta)
    some = Z[counted > 0]
    expected = (Z - some.mean(0)) / np.sqrt(some.var(0) + 1e-3) * gamma + beta
    assert np.abs(Y - expected).max() < 1e-12
    dZ, sums = D.copy(), double.norm_sums(D, Z, mean, inverse, starts).sum(0)
    means = sums[:4] / counted.sum(), sums[4:] / counted.sum()
    double.normalise_columns_back(dZ, Z, mean, inverse, gamma, *means, counted)

    def value(X, g, b):
        return (forward(X, g, b)[0] * D).sum()

    assert np.abs(dZ - central(lambda X: value(X, gamma, beta), Z)).max() < 1e-6
    assert np.abs(sums[4:] - central(lambda g: value(Z, g, beta), gamma)).max() < 1e-6
    assert np.abs(sums[:4] - central(lambda b: value(Z, gamma, b), beta)).max() < 1e-6


def test_deactivate_is_the_adjoint_of_activate(device):
    """Exactly: small integers, powers of two."""
    Z, D = small_integers(1, 24, 10), small_integers(2, 24, 10)
    scale, drop = np.ldexp(np.float32(1), np.arange(24) % 5 - 2), Dropout(4, 0.5)
    up, back, once = (device.put(a) for a in (Z.copy(), D.copy(), Z.copy()))
    device.activate(up, scale=device.put(scale), drop=drop)
    device.deactivate(back, scale=device.put(scale), drop=drop)
    assert (device.get(up) * D).sum() == (Z * device.get(back)).sum() != 0
    device.activate(once, scale=device.put(scale), relu=True, drop=drop)
    back = device.put(D.copy())
    device.deactivate(back, once, device.put(scale), drop, relu=True)
    assert (device.get(once) * D).sum() == (Z * device.get(back)).sum() != 0
