"""What a graph network reads of the nodes: features as they are given, scaled, or none at all."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.errors import CaseError
from app.gnn.categories import Categories, refuse_fractions
from app.gnn.scale import Scale
from app.graphs.nodes.data import NodeData, rows_per_piece
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.partition.dealer import InMemory, MakeRoom
from app.sparse.rowblock import RowBlock

Array = Any
NOT_DENSE = 'gnn.feature_rows: {}; "{}" is for dense features'
BY_COLUMN = ("one_hot", "standard")  # gnn.feature_rows that read columns of dense features
LARGEST_FACTOR = 2.0**126  # of a row of features, as float32: larger ones are float64


@dataclass(frozen=True)
class Scaling:
    """How features become what is multiplied.

    kind     "as_given"
             "sum_to_one": each row is divided by the sum of its absolute values (Kipf and Welling 2017 divide
             by the sum, of entries that are not negative)
             "standard": each column by `inputs`, those of dense features alone
             "one_hot": the same array, which is made of them before (categories.py)
    inputs   the scale of the columns
    n_real   rows that are nodes; the others are zero
    beside   last columns that are positions, which stay as they are
    """

    kind: str
    inputs: Scale | Categories | None
    n_real: int
    beside: int = 0


def input_scale(
    group: Group, data: NodeData, scaling: str, chosen: np.ndarray | None, known: Scale | None = None
) -> Scale | None:
    """The scale of the columns over some nodes; None where none is asked for.

    scaling   gnn.feature_rows     chosen   [n_own] bool; None where no scale is asked for
    known     that of weights which are applied
    Ranks     all call
    Raises    CaseError where features are not dense
    """
    if scaling != "standard":
        return None
    refuse_not_dense(data, scaling)
    if known is not None:
        return known
    return Scale.of(group, data.features, chosen)


def input_categories(
    group: Group, data: NodeData, numbers: np.ndarray, chosen: np.ndarray, known: Categories | None = None
) -> Categories:
    """The categories of the columns in some nodes.

    numbers  [n_own] int64, what rows are called     chosen   [n_own] bool
    known    those of weights which are applied
    Ranks    all call
    Raises   CaseError where features are not dense, GraphError where they are no categories
    """
    refuse_not_dense(data, "one_hot")
    refuse_fractions(group, data.features, numbers)
    return known or Categories.of(group, data.features, chosen)


def refuse_not_dense(data: NodeData, scaling: str) -> None:
    """Raise CaseError where features are not dense."""
    if not isinstance(data.features, np.ndarray):
        found = "there are none" if data.features is None else "these are sparse"
        raise CaseError(NOT_DENSE.format(found, scaling))


def input_rows(
    data: NodeData, block: RowBlock, feature_rows: str, inputs: Scale | Categories | None = None
) -> np.ndarray | sp.csr_array:
    """[n_own, F] float32 host: the features of this rank's padded rows, as Scaling says.

    Without features every node has one of its own, the identity matrix, whatever the order of the rows: a
    model that learned on that can be applied to the same nodes only.
    """
    if data.features is None:
        return _identity(block, data.numbers)
    return scaled_rows(data.features, Scaling(feature_rows, inputs, block.n_real, data.beside))


def scaled_rows(X: np.ndarray | sp.csr_array, scaling: Scaling, first: int = 0) -> np.ndarray | sp.csr_array:
    """Some rows of features, the first of them row `first` of this rank; "as_given" the same array."""
    if scaling.kind in ("as_given", "one_hot"):
        return X
    if scaling.beside:
        given = scaled_rows(X[:, : -scaling.beside], replace(scaling, beside=0), first)
        positions = X[:, -scaling.beside :]
        if isinstance(X, np.ndarray):
            return np.concatenate([given, positions], axis=1)
        return sp.csr_array(sp.hstack([given, positions], format="csr"))
    if scaling.kind == "standard":
        return _standard_rows(X, scaling, first)
    sums = np.asarray(abs(X).sum(axis=1, dtype=np.float64)).reshape(-1)
    factors = 1 / np.where(sums > 0, sums, 1)
    wide = factors >= LARGEST_FACTOR  # row by row: the same bits whatever rows are scaled together
    narrow = np.where(wide, 1, factors).astype(np.float32)
    if isinstance(X, np.ndarray):
        scaled = X * narrow[:, None]
        scaled[wide] = X[wide] * factors[wide, None]
        return scaled
    entries = np.diff(X.indptr)
    values, at = X.data * np.repeat(narrow, entries), np.repeat(wide, entries)
    values[at] = X.data[at] * np.repeat(factors, entries)[at]
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)


def _standard_rows(X: np.ndarray, scaling: Scaling, first: int) -> np.ndarray:
    """Dense rows in the scale of their columns; the padding stays zero."""
    out, step = np.zeros(X.shape, dtype=np.float32), rows_per_piece(8 * X.shape[1])
    end = min(len(X), scaling.n_real - first)
    for lo in range(0, end, step):
        rows = slice(lo, min(lo + step, end))
        out[rows] = scaling.inputs.small(X[rows])
    return out


def feature_room(budget: TierBudget, device: Any) -> MakeRoom:
    """Where dense features are read to: the slow tier, where memory has a limit and that is a file."""
    if budget.limit and budget.tier(device) == "file":
        return lambda shape: SlowRows(shape, device, budget)
    return InMemory


def in_file(data: NodeData, device: Any, budget: TierBudget) -> NodeData:
    """The same data, dense features in a file where that is the slow tier.

    Raises CaseError where the disk has no room.
    """
    if budget.tier(device) != "file":
        return data
    return replace(data, features=SlowRows.of(data.features, device, budget).array)


def slow_input(
    data: NodeData, scaling: Scaling, pieces: list[slice], device: Any, budget: TierBudget
) -> SlowRows:
    """`input_rows` of dense features in the slow tier, made some rows at a time.

    Raises CaseError where the disk has no room.
    """
    if scaling.kind == "as_given":
        return SlowRows.of(data.features, device, budget)
    scaled = SlowRows.empty(data.features.shape, device, budget)
    given = SlowRows.of(data.features, device, budget) if budget.tier(device) == "file" else None
    for rows in pieces:
        scaled.array[rows] = scaled_rows(data.features[rows], scaling, rows.start)
        scaled.done(rows)
        if given is not None:
            given.done(rows)
    return scaled


def _identity(block: RowBlock, numbers: np.ndarray | None) -> sp.csr_array:
    ones = np.ones(block.n_real, dtype=np.float32)
    indptr = np.minimum(np.arange(block.n_own + 1), block.n_real)
    columns = np.arange(block.lo, block.lo + block.n_real) if numbers is None else numbers[: block.n_real]
    return sp.csr_array((ones, columns, indptr), shape=(block.n_own, block.n))
