"""Engine: the operations that layers are made of, on arrays of which every rank holds its rows.

A layer's forward and backward passes call these methods and nothing else, so that the same code runs without
numbers to learn what an epoch needs (`Programs.dry`), and then in the buffers that were planned from it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.tree import owned_roots, owned_spans
from app.gnn.edges import EdgeInputs
from app.gnn.features import DenseFeatures, Features
from app.gnn.neighbours import Neighbours
from app.gnn.parameters import Parameters
from app.gnn.pieces import FeatureStore, PiecedFeatures
from app.gnn.products import Products
from app.gnn.programs import Rows
from app.gnn.reach import Narrow
from app.gnn.sums import Sums
from app.memory.tiers import TierBudget
from app.partition.rows import RowPartition

Array = Any
NORM_EPSILON = 1e-5  # of layer normalisation: added to the variance of a row


class Engine(Products, Sums):
    """Operations on rows, in the buffers of one plan (app/gnn/programs.py): products (app/gnn/products.py),
    sums over nodes (app/gnn/sums.py), and here what goes row by row.

    neighbours_of   the product with the adjacency matrix A, on rows partitioned over ranks
    adjoint         the product with A^T, by which gradients go back; of an undirected graph the same
    params          replicated weights; `gradient` [params.size] is complete after `reduce_gradients`
    kept            columns of the products of the features that are made once, by their normalisation
    training        a backward pass follows the forward pass under way
    way             FORWARD or BACKWARD, of a pass whose products leave out what the loss does not depend on
                    (gnn/reach.py); "": they make all rows
    products        (layer, way) of all such products, as a dry run saw them
    narrow          what they leave out, by layer
    pooling         the products with the matrix R of a readout and with R^T; None: scores are of nodes
    places          [n_own] float32, how many nodes of its graph come before each node; -1 in other rows
    edges           the features of edges, by the entries of A and of A^T; None: no layer reads any
    counted         [n_own] float32, 1 for the rows that statistics of columns are over, else 0; None: no
                    layer asks for any
    counted_rows    how many these are on all ranks, at least 1
    measures        passes without a backward pass make such statistics too, and keep them; False: they go by
                    those kept
    traces          backward passes are of the network as it is applied, for who asks what its scores came
                    from (gnn/explain): statistics of columns are those kept, and gradients go back through
                    each product in turn
    """

    traces = False

    def __init__(
        self, neighbours: Neighbours, rows: RowPartition, params: Parameters, direct: int,
        adjoint: Neighbours | None = None,
    ) -> None:  # fmt: skip
        """direct   how many of the first parameters have gradients that arrive whole, not by row blocks."""
        group, block = neighbours.group, neighbours.block
        super().__init__(group.device, block.n_own)
        self.group, self.neighbours_of, self.adjoint = group, neighbours, adjoint or neighbours
        self.params, self.direct, self.cuts = params, direct, rows.cuts
        self.blocks = len(rows.starts) - 1
        self.first_row = block.lo
        self.starts = block.block_starts[None]
        first, last = (int(cut) for cut in rows.cuts[group.rank : group.rank + 2])
        self.spans = owned_spans(self.blocks, first, last)
        self.own_roots = owned_roots(self.blocks, first, last)
        self.kept: dict[str, int] = {}
        self.training, self.way = True, ""
        self.products: set[tuple[int, str]] = set()
        self.narrow: dict[int, Narrow] = {}
        self.pooling: tuple[Neighbours, Neighbours] | None = None
        self.places: Array | None = None
        self.edges: EdgeInputs | None = None
        self.counted: Array | None = None
        self.counted_rows = 1.0
        self.measures = False
        self.gradient: Array = None
        self._parts: Array = None
        self._nodes: Array = None

    def allocate(self, budget: TierBudget | None = None, inputs: FeatureStore | None = None) -> None:
        """Make the planned buffers (Programs.allocate) and the gradients."""
        super().allocate(budget, inputs)
        self.gradient = self.device.zeros((self.params.size,))
        self._parts = self.device.zeros((len(self.own_roots), self.params.size - self.direct))

    def bytes_of_row(self, X: Features, dropped: bool) -> int:
        """What a row takes where there is no limit: its buffers, of dense features its share of them too.

        dropped   whether some of the features are dropped, from a copy of them
        """
        copies = 1 + len(self.kept) + dropped if isinstance(X, DenseFeatures) else 0
        return 4 * (self.plan.columns + X.width * copies)

    def nodes(self) -> Array:
        """[n_own] float32, 1 for the rows that are nodes, neither padding nor the own rows of graphs, else
        0."""
        if self._nodes is None:
            if self.pooling is None:
                found = np.arange(self.n_own) < self.neighbours_of.block.n_real
            else:
                found = self.device.get(self.pooling[1].scale("mean")) > 0
            self._nodes = self.device.put(found.astype(np.float32))
        return self._nodes

    # ---- elementwise ------------------------------------------------------------------------------------

    def activate(
        self,
        Z: Rows,
        scale: Array | None = None,
        bias: Array | None = None,
        add: Rows | None = None,
        relu: bool = False,
        drop: Any = None,
    ) -> None:
        """In place: Z = drop(relu(scale * Z + bias + add)), each only where given."""
        if scale is None and bias is None and add is None and not relu and drop is None:
            return
        flat = None if bias is None else bias.reshape(-1)

        def work() -> None:
            self.device.activate(Z.array, scale, flat, None if add is None else add.array, relu, drop)

        name = "activate" if drop is None else "activate, drop"
        self._run("elementwise", name, [Z, add], [Z], work, 4 * Z.width, shape=(0, Z.width))

    def deactivate(
        self, D: Rows, H: Rows | None = None, scale: Array | None = None, drop: Any = None, relu: bool = False
    ) -> None:
        """In place, the gradient through `activate` whose output was H: D = scale * (kept and active) D."""

        def work() -> None:
            self.device.deactivate(D.array, None if H is None else H.array, scale, drop, relu)

        self._run("elementwise", "deactivate", [D, H], [D], work, 2 * D.width, shape=(0, D.width))

    def copy(self, X: Rows | Features, name: str, scale: Array | None = None) -> Rows:
        """New rows scale * X."""
        if isinstance(X, PiecedFeatures):
            return self._copy_pieces(X, name, scale)
        Y = self.take(name, X.width)

        def work() -> None:
            Y.array[...] = X.array
            self.device.activate(Y.array, scale)

        self._run("elementwise", name, [X], [Y], work, X.width, shape=(0, X.width))
        return Y

    def add_into(self, Y: Rows, X: Rows | Features, factor: float = 1.0) -> None:
        """Y += factor * X."""
        work = lambda: self.device.add_into(Y.array, X.array, factor)  # noqa: E731
        self._run("elementwise", "add", [Y, X], [Y], work, 2 * Y.width, shape=(0, Y.width))

    def combine(self, X: DenseFeatures, factor: Array, Y: DenseFeatures, name: str) -> Rows:
        """New rows factor * X + Y, factor [1, 1]."""
        if isinstance(X, PiecedFeatures):
            return self._combine_pieces(X, factor, Y, name)
        Z = self.take(name, X.width)

        def work() -> None:
            self.device.xp.multiply(X.array, factor, out=Z.array)
            self.device.add_into(Z.array, Y.array)

        self._run("elementwise", name, [X, Y], [Z], work, 2 * X.width, shape=(0, X.width))
        return Z

    def normalise(self, Z: Rows, gamma: Array, beta: Array, name: str = "N") -> tuple[Rows, Any]:
        """New rows, those of Z normalised (layer normalisation), and what `normalise_back` needs beside Z."""
        N = self.take(name, Z.width)

        def work() -> tuple[Array, Array]:
            flat = gamma.reshape(-1), beta.reshape(-1)
            return self.device.normalise_rows(Z.array, *flat, NORM_EPSILON, N.array)[1:]

        return N, self._run("elementwise", name, [Z], [N], work, 8 * Z.width, shape=(0, Z.width))

    def normalise_back(self, D: Rows, Z: Rows, kept: Any, gamma: Array, names: tuple[str, str]) -> None:
        """In place, the gradient through `normalise`; names: the parameters gamma and beta, whose gradients
        go to the engine."""
        self.column_sums(names[1], D)
        product = self.take("DX", D.width)

        def work() -> None:
            self.device.normalise_rows_back(D.array, Z.array, *kept, gamma.reshape(-1), product.array)

        reads, writes, shape = [D, Z], [D, product], (0, D.width)
        self._run("elementwise", "normalise_back", reads, writes, work, 12 * D.width, shape=shape)
        self.column_sums(names[0], product)
        self.free(product)

    # ---- attention to all nodes -------------------------------------------------------------------------

    def over_all(
        self, name: str, reads: list[Rows], writes: list[Rows], work: Callable[[], Any],
        shape: tuple[int, int], exchanges: tuple[int, ...] = (),
    ) -> Any:  # fmt: skip
        """An operation of attention over all nodes (layers/all_nodes.py): `work` touches the arrays of the
        rows that it names and no others.

        shape   (k, m) of a product, (0, columns) of one that goes through rows     exchanges   as of `apply`
        """
        flops = 2 * shape[0] * shape[1]
        return self._run("global", name, reads, writes, work, flops, shape=shape, exchanges=exchanges)

    # ---- anything else ----------------------------------------------------------------------------------

    def apply(
        self,
        kind: str,
        name: str,
        reads: list[Any],
        writes: list[Any],
        work: Callable[[], Any],
        exchanges: tuple[int, ...] = (),
    ) -> Any:
        """An operation of a layer's own: `work` touches the arrays of the rows it names and no others.

        exchanges   columns of the rows that it exchanges, one number for each exchange
        """
        columns = max((each.width for each in (*reads, *writes) if each is not None), default=0)
        return self._run(kind, name, reads, writes, work, shape=(0, columns), exchanges=exchanges)
