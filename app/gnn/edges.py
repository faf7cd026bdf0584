"""What a graph network reads of the edges: features as they are given, scaled, or categories."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import scipy.sparse as sp

from app.case.gnn import EDGE_READERS
from app.comm.group import Group
from app.errors import CaseError
from app.gnn.categories import Categories, refuse_fractions
from app.gnn.scale import Scale
from app.graphs.edge_data import EdgeData
from app.numerics.edges import EdgeEntries
from app.sparse.rowblock import RowBlock

WHAT = "edge features"


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """The columns of the features of edges that a network has learned on; the same on all ranks.

    given    how many    inputs   what they are scaled by, or their categories; None: they are read as given
    """

    given: int
    inputs: Scale | Categories | None = None

    @property
    def width(self) -> int:
        """Columns that layers multiply by weights."""
        return self.inputs.width if isinstance(self.inputs, Categories) else self.given

    @classmethod
    def of(cls, group: Group, kind: str, edges: EdgeData, chosen: np.ndarray) -> "EdgeColumns":
        """Those of the edges that chosen nodes hear.

        kind     gnn.edge_feature_rows     chosen   [n_own] bool
        Ranks    all call. Raises GraphError where numbers are no categories
        """
        values = edges.heard.values
        if kind == "as_given":
            return cls(edges.width)
        heard = np.repeat(chosen, edges.heard.counts)
        if kind == "standard":
            return cls(edges.width, Scale.of(group, values, heard))
        refuse_fractions(group, values, None, WHAT)
        return cls(edges.width, Categories.of(group, values, heard, WHAT))

    @classmethod
    def read(cls, saved: object, kind: str) -> "EdgeColumns":
        """Those that `told` has made. Raises ValueError where they are none."""
        found = msgspec.convert(saved, dict[str, Any])
        given = msgspec.convert(found["columns"], int)
        if given < 1 or (kind != "as_given") != ("inputs" in found):
            raise ValueError("no columns of edge features")
        if kind == "as_given":
            return cls(given)
        inputs = Scale.read(found["inputs"]) if kind == "standard" else Categories.read(found["inputs"])
        if given != len(inputs.mean if isinstance(inputs, Scale) else inputs.values):
            raise ValueError("other columns of edge features")
        return cls(given, inputs)

    def told(self) -> dict[str, Any]:
        """What a manifest holds of them."""
        inputs = {} if self.inputs is None else {"inputs": self.inputs.told()}
        return {"columns": self.given, **inputs}

    def rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows [nnz, given] as layers read them (numerics/edges.py), and by column how many numbers are no
        known category."""
        if isinstance(self.inputs, Categories):
            return self.inputs.numbered(values)
        none = np.zeros(self.given, dtype=np.int64)
        return (values if self.inputs is None else self.inputs.small(values)), none


@dataclass(frozen=True, eq=False)
class EdgeInputs:
    """The features of edges on the device, by the entries of A and of A^T; of an undirected graph the same.

    unknown   [given] int64, numbers of this rank that are no known category
    loops     those of an edge from every own row to itself: the means of the edges that it hears, of
              categories the shares of these that have each; zeros where it hears none. None: none are read
    """

    heard: EdgeEntries
    hearing: EdgeEntries
    unknown: np.ndarray
    loops: EdgeEntries | None = None

    @classmethod
    def of(
        cls, device: Any, block: RowBlock, edges: EdgeData, columns: EdgeColumns, loops: bool = False
    ) -> "EdgeInputs":
        """Those of the rows of a block; loops: with those of loops."""
        values, unknown = columns.rows(edges.heard.values)
        heard = hearing = device.edge_entries(block.adjacency.A, values, columns.width)
        own = None
        if loops:
            ramp, n = np.arange(block.n_own + 1, dtype=np.int32), block.n_own
            means = mean_rows(edges.heard.counts, values, columns.width)
            own = device.edge_entries(device.csr(ramp, ramp[:n], None, (n, n)), means, columns.width)
        if edges.directed:
            back = columns.rows(edges.hearing.values)[0]
            hearing = device.edge_entries(block.transpose.A, back, columns.width)
        return cls(heard, hearing, unknown, own)

    def within(self, group: Group, block: RowBlock, rows_own: np.ndarray) -> "EdgeInputs":
        """Those of the entries of A in some rows, and of the same entries of A^T, which has them in columns.

        rows_own   [n_own] bool
        Ranks      all call (one exchange of a byte a row)
        """
        extended = block.extend_host(group, rows_own.view(np.uint8)).astype(bool)
        heard = _some(group.device, self.heard, *block.adjacency.part(group.device, rows_own))
        hearing = _some(group.device, self.hearing, *block.transpose.part(group.device, None, extended))
        return EdgeInputs(heard, hearing, self.unknown, self.loops)


def mean_rows(counts: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    """[n, width] float32, the mean of the entries of each row, zeros where it has none.

    counts   [n] int64, entries of each row     values   [nnz, k] float32, or int32 categories, -1 for none
    A sum is one chain of float64 in stored order, or a count.
    """
    n, indptr = len(counts), np.concatenate([[0], np.cumsum(counts)])
    if values.dtype.kind == "i":
        row, known = np.repeat(np.arange(n), counts)[:, None].repeat(values.shape[1], axis=1), values >= 0
        ones = np.ones(int(known.sum()), dtype=np.float64)
        sums = sp.coo_array((ones, (row[known], values[known])), (n, width)).toarray()
    else:
        add = sp.csr_array((np.ones(len(values)), np.arange(len(values)), indptr), (n, len(values)))
        sums = add @ values.astype(np.float64)
    return (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)


def _some(device: Any, entries: EdgeEntries, matrix: Any, chosen: np.ndarray) -> EdgeEntries:
    """Those entries [nnz] bool, which are those of a matrix."""
    return device.edge_entries(matrix, device.get(entries.values)[chosen], entries.width)


def no_edge_features(name: str, kind: str, key: str = "graph.edge_features") -> str:
    """Why layers of a kind that reads edge features have nothing to read in a graph; key: what would name
    them."""
    right = f"{key}, or layers of {EDGE_READERS.get(kind, 'gin')}, would be right"
    return f"{kind} reads edge features, and {name} has none; {right}"


def refuse_stages(block: RowBlock) -> None:
    """Refuse rows that come stage after stage. Raises CaseError."""
    if block.plan.mode == "staged":
        right = '"auto", "halo" or "gather" would be right for layers that read edge features'
        raise CaseError(f'parallel.exchange: found "staged"; {right}')
