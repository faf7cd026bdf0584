"""What partitions of a graph's nodes into communities are worth, in whole numbers: a sum over pairs of nodes.

    value = sum over pairs {u, v} in one community of (near w_uv - far s_u s_v) + constant

With node sizes s and whole numbers near, far and constant this is, times a unit,

- null "degrees": the modularity Q = 1/(2m) sum over ordered pairs (u, v), u = v too, in one community of
  (w_uv - gamma k_u k_v / 2m), with the weighted degrees k and 2m their sum (Newman and Girvan 2004;
  resolution gamma: Reichardt and Bornholdt 2006): s = k;
- null "sizes": the constant Potts model, sum over pairs of (w_uv - gamma) (Traag, Van Dooren, Nesterov 2011);
- null "none": the weight inside communities, of which some is negative: correlation clustering (Bansal, Blum,
  Chawla 2004), the clique partitioning problem of Grötschel and Wakabayashi 1989.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from app.errors import GraphError
from app.graphs.contracted import WeightedRows
from app.graphs.fixed_point import LARGEST, whole_numbers
from app.graphs.graph import Graph
from app.graphs.joined import components
from app.graphs.lists import row_counts

NULLS = ("degrees", "sizes", "none")
FULL = 1 << 56  # of all sums: in int64 there is room for proofs, whose numbers are finer
FINEST = {"degrees": 1000, "sizes": 10**6, "none": 1}  # denominator of a resolution
MARGIN = 4  # times as many units as weights, where these are rounded


@dataclass(frozen=True, eq=False)
class Quality(WeightedRows):
    """What pairs of the nodes of a whole graph are worth in one community.

    near, far   see above
    """

    near: int
    far: int

    def worths(self) -> np.ndarray:
        """[nnz] int64, what the pair of each entry is worth."""
        return self.near * self.weights - self.far * self.size[self.row_of()] * self.size[self.indices]

    def parts(self, compiled: bool = True) -> np.ndarray:
        """[n] int64, which nodes pairs of positive worth connect: no best community holds nodes of two
        parts.
        """
        positive = self.worths() > 0
        ptr = np.append(0, np.cumsum(row_counts(positive, self.indptr)))
        return components(ptr, self.indices[positive], compiled=compiled)

    def value(self, label: np.ndarray) -> int:
        """Of communities, [n] integers, without a constant."""
        same = label[self.row_of()] == label[self.indices]
        _, place = np.unique(label, return_inverse=True)
        total = np.zeros(self.n, dtype=np.int64)
        np.add.at(total, place.reshape(-1), self.size)
        far = int((total * total).sum()) - int((self.size * self.size).sum())
        return self.near * (int(self.weights[same].sum()) // 2) - self.far * (far // 2)


@dataclass(frozen=True, eq=False)
class Asked:
    """What a caller asks of the communities of a graph.

    quality, constant   values in whole numbers; unit: objective = (value + constant) * unit
    exact               whether these are the weights and the resolution as given, nothing rounded
    """

    quality: Quality
    constant: int
    unit: float
    exact: bool


def quality_of(graph: Graph, null: str, resolution: float) -> Asked:
    """What communities of a whole graph are worth with one of NULLS. Raises GraphError.

    Sums stay below FULL. Where the weights are so many, or so fine, that they would not, they are rounded to
    multiples of a power of two; where they are all one, the resolution is rounded instead.
    """
    raw = np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights
    asked = Fraction(0) if null == "none" else Fraction(str(float(resolution)))
    make = _beside_degrees if null == "degrees" else _beside_sizes
    quality, constant, step, unit, given = make(graph, raw, asked.limit_denominator(FINEST[null]))
    exact = given == asked and bool((quality.weights * unit == raw).all())
    return Asked(quality, constant, step, exact)


Made = tuple[Quality, int, float, float, Fraction]  # constant, unit of values, unit of weights, resolution


def _beside_degrees(graph: Graph, raw: np.ndarray, gamma: Fraction) -> Made:
    """The modularity, of weights [nnz]."""
    if (raw < 0).any():
        where = int((raw < 0).argmax())
        pair = graph.called_entry(where)
        right = 'problem.null = "sizes" or "none" would be right'
        raise GraphError(f"{graph.name}: edge {pair} has the weight {raw[where]:g} < 0; {right}")
    needed = len(raw) if graph.weights is None else MARGIN * len(raw)
    if _room(gamma) < needed:
        gamma = gamma.limit_denominator(max(FULL // needed**2, 1))
    if _room(gamma) < needed:
        right = "a lower problem.resolution would be right"
        raise GraphError(f"{graph.name}: {graph.edges} edges are too many for whole numbers; {right}")
    weights, unit = whole_numbers(raw, f"{graph.name}: an edge weight", min(_room(gamma), LARGEST))
    size = _degrees(graph, weights)
    total = int(size.sum())
    quality = _quality(graph, weights, size, gamma.denominator * total, gamma.numerator)
    constant = -gamma.numerator * int((size * size).sum()) // 2
    step = 2.0 / (float(gamma.denominator) * float(total) ** 2) if total else 1.0
    return quality, constant, step, unit, gamma


def _room(gamma: Fraction) -> int:
    """What the weights at all nodes may be together, in units."""
    return math.isqrt(FULL // max(gamma.numerator, gamma.denominator))


def _beside_sizes(graph: Graph, raw: np.ndarray, gamma: Fraction) -> Made:
    """The weight in communities, less gamma for each pair of nodes."""
    what, most = f"{graph.name}: an edge weight", LARGEST // gamma.denominator
    weights, unit = whole_numbers(raw, what, most)
    while gamma.numerator * graph.n**2 > FULL * Fraction(unit):
        most //= 2
        if most <= MARGIN * len(raw):
            right = "a smaller problem.resolution, or one of fewer decimals, would be right"
            raise GraphError(f"{graph.name}: weights are too small beside those of all pairs; {right}")
        weights, unit = whole_numbers(raw, what, most)
    far = round(gamma.numerator / Fraction(unit))
    quality = _quality(graph, weights, np.ones(graph.n, dtype=np.int64), gamma.denominator, far)
    return quality, 0, unit / gamma.denominator, unit, far * Fraction(unit) / gamma.denominator


def _quality(graph: Graph, weights: np.ndarray, size: np.ndarray, near: int, far: int) -> Quality:
    indptr, indices = np.asarray(graph.indptr, np.int64), np.asarray(graph.indices, np.int32)
    return Quality(np.ascontiguousarray(indptr), np.ascontiguousarray(indices), weights, size, near, far)


def _degrees(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """[n] int64, the weight [nnz] at each node."""
    ends = np.append(0, np.cumsum(weights))
    return ends[graph.indptr[1:]] - ends[graph.indptr[:-1]]
