"""StateEngine: the operations that layers are made of, on a batch of states in place of one graph."""

from collections.abc import Callable
from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures
from app.gnn.parameters import Parameters
from app.gnn.programs import Rows
from app.numerics.products import Operand
from app.sparse.batch import StateBatch

Array = Any


class StateEngine(Engine):
    """Engine on rows (graph, node, state), of the residual graphs: rows of nodes that are gone are zero.

    Every operation leaves them so: neighbours are the live ones, and factors come from residual degrees.
    Batches differ in size, so rows are made when they are asked for, not planned.

    parts   [owned blocks, size] by parameter: addends of its gradient, a sum over row blocks
    """

    def __init__(self, params: Parameters, batch: StateBatch, alive_own: Array) -> None:
        self.group, self.device, self.params = batch.group, batch.device, params
        self.batch, self.alive_own, self.numeric = batch, alive_own, True
        self.parts: dict[str, Array] = {}
        self._column = batch.device.xp.ascontiguousarray(alive_own[:, None])
        self._degrees: Array = None

    def take(self, name: str, width: int) -> Rows:
        """Unset rows of `width` columns."""
        return Rows(name, width, 0, self.device.empty((self.batch.rows, width)))

    def free(self, *each: Any) -> None:
        """Rows go when nobody refers to them."""

    def _run(
        self,
        kind: str,
        name: str,
        reads: list[Any],
        writes: list[Any],
        work: Callable[[], Any],
        flops: int = 0,
        **counts: Any,
    ) -> Any:
        """Do one operation; what it wrote is zero again where nodes are gone."""
        found = work()
        for rows in writes:
            self.device.activate(rows.array, self.alive_own)
        return found

    # ---- the graph --------------------------------------------------------------------------------------

    def neighbours(
        self, X: Rows | DenseFeatures, own: bool, name: str = "AH", factor: Array | None = None
    ) -> Rows:
        """New rows A X, (A + I) X or (A + factor I) X; the own row comes last. Ranks: all call."""
        Y = Rows(name, X.width, 0, self.batch.times(X.array, self.alive_own))

        def work() -> None:
            if factor is not None:
                self.device.add_into(Y.array, X.array * factor)
            elif own:
                self.device.add_into(Y.array, X.array)

        self._run("spmm", name, [X], [Y], work)
        return Y

    def spread(self, X: Rows, own: bool, factor: Array | None = None) -> Rows:
        """What `neighbours` gives, as new rows. Ranks: all call."""
        return self.neighbours(X, own, X.name, factor)

    def neighbours_into(self, Y: Rows, X: Rows) -> None:
        """Y += A X. Ranks: all call (one exchange)."""
        self.add_into(Y, self.neighbours(X, own=False))

    def scale_of(self, kind: str, columns: bool = False) -> Array:
        """[rows] factors of rows and columns alike, as of Neighbours.scale, from residual degrees.

        Ranks   all call, the first time
        """
        xp, alive = self.device.xp, self.alive_own
        if self._degrees is None:
            self._degrees = self.batch.times(self._column, alive)[:, 0] * alive
        d = self._degrees
        if kind == "symmetric":
            return alive / xp.sqrt(d + 1)
        if kind == "in_degree":
            return alive / (d + 1)
        return xp.where(d > 0, 1 / xp.where(d > 0, d, 1), 0)

    # ---- gradients --------------------------------------------------------------------------------------

    def gram(
        self,
        name: str,
        X: Rows | DenseFeatures,
        D: Rows,
        scale: Array | None = None,
        pick: Array | None = None,
    ) -> None:
        """Addends of X^T D, rows of X times scale; see Engine.gram."""
        found = self.batch.gram_part([Operand(X.array, scale=scale)], D.array, self.alive_own)
        self.parts[name] = found if pick is None else found[:, pick]

    def column_sums(self, name: str, D: Rows) -> None:
        """Addends of the sum of the rows of D."""
        self.parts[name] = self.batch.gram_part([Operand(self._column)], D.array, self.alive_own)

    def dot(self, name: str, X: Rows, D: Rows) -> None:
        """Addends of the sum of all elements of X * D."""
        dots = self.device.xp.ascontiguousarray(self.device.row_dots(X.array, D.array)[:, None])
        self.parts[name] = self.batch.gram_part([Operand(self._column)], dots, self.alive_own)
