"""What layers do with rows besides products: scaling, bias, relu, dropout, losses, normalisation.

Every function is a fixed sequence of IEEE-exact operations for each element, and sums over the columns of a
row are chains from the left: the same bits on every device, and in the compiled kernels that HostDevice puts
in their place. Arrays are float32 (the functions here also run in float64, for tests). NaN stays NaN, with a
sign and payload that are not defined.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.numerics.elementary import exp, log

Array = Any
MASK = (1 << 64) - 1
GAMMA, FIRST_FACTOR, SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
FIELDS = 4  # columns that share one hash, 16 bits each
SHARES = 1 << 16  # a share of dropped elements is a multiple of one over this
MASKED_AT_ONCE = 1 << 20  # elements whose hashes are made at a time


@dataclass(frozen=True)
class Dropout:
    """Which elements of an array of rows are dropped: a function of the key and of (node, column).

    Node v has the generator state s = output v of SplitMix64 (Steele, Lea and Flood 2014) from state `key`;
    output j of SplitMix64 from state s holds 16 bits for each of the columns 4 j .. 4 j + 3, lowest first. An
    element is kept if its 16 bits are at least `threshold`.

    key         64 bits, of (seed, layer, epoch)
    share       of the elements that are dropped, 0 <= share < 1, rounded to a multiple of 2^-16
    first_row   number of the node in row 0
    cell        [1] uint64 on a GPU that holds the key, for launches that are replayed with others; or None
    """

    key: int
    share: float
    first_row: int = 0
    cell: Array | None = None

    @property
    def threshold(self) -> int:
        """An element with fewer in its 16 bits is dropped."""
        return min(round(self.share * SHARES), SHARES - 1)

    @property
    def factor(self) -> float:
        """What kept elements are multiplied by, a float32."""
        return float(np.float32(SHARES / (SHARES - self.threshold)))


def splitmix(xp: Any, state: Array, i: Array) -> Array:
    """Output i (from 0) of SplitMix64 from `state`, both uint64."""
    z = state + (i + np.uint64(1)) * np.uint64(GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return z ^ (z >> np.uint64(31))


def kept(xp: Any, drop: Dropout, nodes: Array, columns: Array) -> Array:
    """True where an element is kept; nodes and columns are uint64 arrays of shapes that broadcast."""
    state = splitmix(xp, np.uint64(drop.key & MASK), nodes)
    word = splitmix(xp, state, columns // np.uint64(FIELDS))
    field = (word >> (columns % np.uint64(FIELDS) * np.uint64(16))) & np.uint64(SHARES - 1)
    return field >= np.uint64(drop.threshold)


class Elementwise:
    """Operations on the rows of a device that has `xp`; a row is a node, its columns are features."""

    xp: Any
    fold: Any  # sums of consecutive rows (HostDevice.fold)
    adam: Any = None  # one step of the optimiser in a kernel (app/gnn/optim.py), where the device has one

    # ---- between products --------------------------------------------------------------------------------

    def activate(
        self,
        Z: Array,
        scale: Array | None = None,
        bias: Array | None = None,
        add: Array | None = None,
        relu: bool = False,
        drop: Dropout | None = None,
    ) -> None:
        """What follows a product, in place and in this order, each only where given.

        z *= scale[row]; z += bias[column]; z += add[row, column]; z = 0 where z <= 0 (relu);
        z = z * drop.factor where kept, else 0

        Z, add   [rows, m]     scale [rows]     bias [m]
        relu leaves NaN as it is and makes +0 of -0; a dropped element is +0 whatever it was.
        """
        xp = self.xp
        if scale is not None:
            Z *= scale[:, None]
        if bias is not None:
            Z += bias
        if add is not None:
            Z += add
        if relu:
            Z[...] = xp.where(Z <= 0, 0, Z)
        if drop is not None:
            self._drop(Z, drop)

    def deactivate(
        self,
        D: Array,
        H: Array | None = None,
        scale: Array | None = None,
        drop: Dropout | None = None,
        relu: bool = False,
    ) -> None:
        """The adjoint of activate by its Z, in place over the gradient, in this order.

        d = d * drop.factor where kept and active, else +0; d *= scale[row]
        (The gradient by activate's `add` is what stands before the scale, that by `bias` its sum over rows.)

        D      [rows, m]   the gradient by what activate left; becomes that by its Z
        H      [rows, m]   what activate left, for relu: it is 0 where not active or dropped
        drop   without relu the mask is made again from its key
        """
        xp = self.xp
        if relu:
            D[...] = xp.where(H <= 0, 0, D if drop is None else D * drop.factor)
        elif drop is not None:
            self._drop(D, drop)
        if scale is not None:
            D *= scale[:, None]

    def _drop(self, Z: Array, drop: Dropout) -> None:
        """Z = Z * factor where kept, else 0."""
        xp = self.xp
        columns = xp.arange(Z.shape[1], dtype=np.uint64)
        for lo, hi in _pieces(*Z.shape):
            first = drop.first_row
            nodes = xp.arange(first + lo, first + hi, dtype=np.uint64)[:, None]
            Z[lo:hi] = xp.where(kept(xp, drop, nodes, columns), Z[lo:hi] * drop.factor, 0)

    @property
    def place_bytes(self) -> int:
        """Of an entry, in what `places_of` makes."""
        return 16

    def places_of(
        self, indptr: np.ndarray, indices: np.ndarray, first: tuple[int, int], by_columns: bool
    ) -> Any:
        """The node and the column of each stored entry of a CSR matrix, as this device drops them.

        indptr, indices   host
        first             numbers of the first node and of the first column
        by_columns        the matrix's rows are columns, and its columns nodes
        """
        along, across = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices.astype(np.int64)
        nodes, columns = (across, along) if by_columns else (along, across)
        return self.put(nodes + first[0]), self.put(columns + first[1])

    def drop_stored(self, values: Array, places: Any, drop: Dropout, out: Array) -> Array:
        """Dropout of the stored entries of a sparse matrix, with the mask that its dense form would have.

        values, out   [nnz] float32, may be the same array     places   see `places_of`
        returns       out: values * drop.factor where kept, else 0 (drop.first_row plays no part)
        """
        return self.drop_entries(values, *places, drop, out)

    def drop_entries(self, values: Array, rows: Array, columns: Array, drop: Dropout, out: Array) -> Array:
        """The same of entries whose nodes `rows` and columns are given, [nnz] integers each."""
        xp = self.xp
        for lo, hi in _pieces(values.shape[0], 1):
            nodes, at = rows[lo:hi].astype(np.uint64), columns[lo:hi].astype(np.uint64)
            out[lo:hi] = xp.where(kept(xp, drop, nodes, at), values[lo:hi] * drop.factor, 0)
        return out

    def copy_into(self, Y: Array, X: Array) -> None:
        """Y = X, both [rows, m], of which either may be columns of a wider array."""
        Y[...] = X

    def add_into(self, Y: Array, X: Array, factor: float = 1.0) -> None:
        """Y += factor * X in place; both [rows, m]."""
        Y += X if factor == 1.0 else X * factor

    def elu_plus_one(self, Z: Array) -> None:
        """Z [rows, m] = z + 1 where z > 0, else exp z, in place: elu(z) + 1, which is positive."""
        xp = self.xp
        for lo, hi in _pieces(*Z.shape):
            z = Z[lo:hi]
            z[...] = xp.where(z > 0, z + np.float32(1), exp(xp, xp.minimum(z, np.float32(0))))

    # ---- losses ------------------------------------------------------------------------------------------

    def softmax_loss(self, Z: Array, labels: Array, weight: Array) -> Array:
        """Cross-entropy of softmax against one label a row; Z becomes the gradient.

        loss = weight (log sum_j exp(z_j - top) - (z_label - top)), top the largest z of the row
        dz_j = weight (exp(z_j - top) / sum - [j = label])

        Z         [rows, c]
        labels    [rows] int32, -1 (or any that is no column): none     weight [rows]
        returns   [rows] losses; 0, with a gradient of 0, where there is no label or the weight is 0
        """
        xp = self.xp
        counted = (labels >= 0) & (labels < Z.shape[1]) & (weight != 0)
        label = xp.where(counted, labels, 0)
        columns = xp.arange(Z.shape[1], dtype=np.int32)
        hit = columns == label[:, None]
        Z -= Z.max(axis=1)[:, None]
        chosen = xp.where(hit, Z, 0).sum(axis=1)  # of one element that is not zero: exact
        E = exp(xp, Z)
        total = row_sums(xp, E)
        losses = (log(xp, total) - chosen) * weight
        E /= total[:, None]
        E -= hit
        E *= weight[:, None]
        Z[...] = xp.where(counted[:, None], E, 0)
        return xp.where(counted, losses, 0)

    def sigmoid_loss(self, Z: Array, targets: Array, weight: Array) -> Array:
        """Binary cross-entropy of sigmoid, summed over the columns of a row; Z becomes the gradient.

        loss = weight sum_j (max(z, 0) - z t + log(1 + exp(-|z|)))     dz = weight (sigmoid(z) - t)

        The sum is over the columns whose target is known; the others have no part in it, so their dz is 0.

        Z, targets   [rows, c], targets 0 or 1, or NaN for none     weight [rows]
        returns      [rows] losses; 0, with a gradient of 0, where the weight is 0
        """
        xp = self.xp
        E = exp(xp, -xp.abs(Z))
        below = 1 + E
        terms = (xp.where(Z > 0, Z, 0) - Z * targets) + log(xp, below)
        counted, known = weight != 0, targets == targets
        losses = row_sums(xp, xp.where(known, terms, 0)) * weight
        G = (xp.where(Z < 0, E, 1) / below - targets) * weight[:, None]
        Z[...] = xp.where(counted[:, None] & known, G, 0)
        return xp.where(counted, losses, 0)

    def squared_loss(self, Z: Array, targets: Array, weight: Array) -> Array:
        """Squared error, summed over the columns of a row; Z becomes the gradient.

        loss = weight sum_j (z - t)^2     dz = 2 weight (z - t)

        The sum is over the columns whose target is known; the others have no part in it, so their dz is 0.

        Z, targets   [rows, c], targets NaN for none     weight [rows]
        returns      [rows] losses; 0, with a gradient of 0, where the weight is 0
        """
        xp = self.xp
        E, counted = xp.where(targets == targets, Z - targets, 0), weight != 0
        losses = row_sums(xp, E * E) * weight
        Z[...] = xp.where(counted[:, None], E * (2 * weight)[:, None], 0)
        return xp.where(counted, losses, 0)

    def argmax_rows(self, Z: Array) -> Array:
        """[rows] int32, the column of each row's largest element: the first of equal ones, NaN above all."""
        return Z.argmax(axis=1).astype(np.int32)

    # ---- layer normalisation -----------------------------------------------------------------------------

    def normalise_rows(
        self, Z: Array, gamma: Array, beta: Array, epsilon: float, out: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Layer normalisation (Ba, Kiros and Hinton 2016): y = x gamma + beta, x = (z - mean) inverse.

        inverse = 1 / sqrt(sum (z - mean)^2 / m + epsilon)

        Z, out        [rows, m]; out may be Z, and is made where it is None
        gamma, beta   [m]
        returns       out, mean [rows], inverse [rows]
        """
        xp, m = self.xp, Z.shape[1]
        mean = row_sums(xp, Z) / m
        X = Z - mean[:, None]
        inverse = 1 / xp.sqrt(row_sums(xp, X * X) / m + epsilon)
        X *= inverse[:, None]
        X *= gamma
        X += beta
        if out is None:
            return X, mean, inverse
        out[...] = X
        return out, mean, inverse

    def normalise_rows_back(
        self,
        D: Array,
        Z: Array,
        mean: Array,
        inverse: Array,
        gamma: Array,
        product: Array | None = None,
    ) -> None:
        """The adjoint of normalise_rows by Z, in place over the gradient.

        With g = d gamma and x as above: dz = ((g - sum(g) / m) - x (sum(g x) / m)) inverse. The gradient by
        beta is the sum of D over rows, that by gamma the sum of D x.

        D                [rows, m]   the gradient by the output; becomes that by Z
        Z, mean, inverse             what normalise_rows was given, and returned
        product          [rows, m]   gets D x, or None
        """
        xp, m = self.xp, D.shape[1]
        X = (Z - mean[:, None]) * inverse[:, None]
        if product is not None:
            product[...] = D * X
        D *= gamma
        first, second = row_sums(xp, D) / m, row_sums(xp, D * X) / m
        D -= first[:, None]
        D -= X * second[:, None]
        D *= inverse[:, None]

    # ---- batch normalisation -----------------------------------------------------------------------------

    def counted_sums(self, Z: Array, counted: Array, mean: Array | None, starts: np.ndarray) -> Array:
        """Sums of the rows that are counted, by blocks of rows; of squares of z - mean[column] where mean is
        given. A block's sum is a chain over its rows.

        Z         [rows, m]     counted [rows], 0 where a row is not     mean [m]
        starts    [blocks+1] host integers, ascending
        returns   [blocks, m]
        """
        X = Z if mean is None else (Z - mean) ** 2
        return self.fold(starts, self.xp.where(counted[:, None] != 0, X, 0))

    def normalise_columns(
        self, Z: Array, mean: Array, inverse: Array, gamma: Array, beta: Array, out: Array
    ) -> None:
        """out = x gamma + beta, x = (z - mean) inverse: batch normalisation (Ioffe and Szegedy 2015, alg. 1).

        Z, out                       [rows, m], which may be the same array
        mean, inverse, gamma, beta   [m]; inverse: 1 over the deviation
        """
        X = (Z - mean) * inverse
        X *= gamma
        X += beta
        out[...] = X

    def norm_sums(self, D: Array, Z: Array, mean: Array, inverse: Array, starts: np.ndarray) -> Array:
        """Sums of d, and of d x with x as in normalise_columns, by blocks of rows: the addends of the
        gradients by beta and by gamma.

        D, Z      [rows, m]     mean, inverse [m]     starts  [blocks+1] host integers, ascending
        returns   [blocks, 2 m]
        """
        return self.fold(starts, self.xp.concatenate([D, D * ((Z - mean) * inverse)], axis=1))

    def normalise_columns_back(
        self, D: Array, Z: Array, mean: Array, inverse: Array, gamma: Array, first: Array, second: Array,
        counted: Array,
    ) -> None:  # fmt: skip
        """The adjoint of normalise_columns by Z, in place over the gradient, of statistics made of Z.

        dz = (d - counted[row] (first + x second)) (gamma inverse), x as in normalise_columns
        (Ioffe and Szegedy 2015, section 3, in closed form.)

        D               [rows, m]   the gradient by the output; becomes that by Z
        first, second   [m]         sums of d and of d x over all rows, divided by the rows that were counted
        counted         [rows]      1 where a row has part in mean and inverse, else 0
        """
        T = (Z - mean) * inverse
        T *= second
        T += first
        T *= counted[:, None]
        D -= T
        D *= gamma * inverse


def row_sums(xp: Any, X: Array) -> Array:
    """[rows], the sum of each row as one chain from the left, which starts at 0."""
    total = xp.zeros(X.shape[0], dtype=X.dtype)
    for j in range(X.shape[1]):
        total += X[:, j]
    return total


def _pieces(rows: int, m: int) -> Iterator[tuple[int, int]]:
    """Row ranges of about MASKED_AT_ONCE elements."""
    step = max(MASKED_AT_ONCE // max(m, 1), 1)
    for lo in range(0, rows, step):
        yield lo, min(lo + step, rows)
