"""Branch and bound with 1-trees: a better bound for small travelling salesman problems, often the optimum.

A tour either uses an edge or it does not; each case is a problem with fixed edges, whose 1-trees give a bound
of its own. The least bound of all cases holds for every tour.

Sources  Held and Karp 1971; Volgenant and Jonker 1982
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.bounds.one_tree import LARGEST_PI, SCALE, OneTrees, proved_value, rounded_up
from app.graphs.metric import Metric, explicit

METHOD = "branch and bound with 1-trees"
STEPS = 30  # of the ascent at each case
LARGEST_PENALTY, LARGEST_DISTANCE = 1 << 29, 2**31 - 1

Fixed = tuple[tuple[int, int, bool], ...]


@dataclass(frozen=True, eq=False)
class CaseTree(Bound):
    """No tour is shorter than `lower`: a binary tree of cases, each leaf with weights that prove its bound.

    edges     [c, 2] int32   the edge that tells a case's two children apart; -1, -1 at a leaf
    children  [c, 2] int32   the case without the edge, and that with it; larger than the case's own number
    leaf      [c] int32      row of pi, -1 where there are children
    pi        [leaves, n] int64, in multiples of 1/SCALE
    penalty   what a forbidden edge is made longer and a required one shorter by
    """

    lower: int
    method: str
    edges: np.ndarray
    children: np.ndarray
    leaf: np.ndarray
    pi: np.ndarray
    special: int
    penalty: int

    def check(self, metric: Metric) -> None:
        """Prove the bound at every leaf anew. Raises BadCertificate."""
        self._check_shapes(metric.n)
        least, waiting = None, [(0, ())]
        while waiting:
            case, fixed = waiting.pop()
            if self.leaf[case] < 0:
                waiting += self._cases_below(case, fixed)
                continue
            proved = rounded_up(_value(metric, fixed, self.pi[self.leaf[case]], self.special, self.penalty))
            least = proved if least is None else min(least, proved)
        if least < self.lower:
            raise BadCertificate(
                f"{self.method}: the witness proves {least}, the certificate says {self.lower}"
            )

    def _check_shapes(self, n: int) -> None:
        cases, leaves = len(self.leaf), len(self.pi)
        shapes = (self.edges.shape, self.children.shape) == ((cases, 2), (cases, 2))
        if not shapes or not cases or self.pi.shape != (leaves, n) or not 0 <= self.special < n:
            raise BadCertificate(f"{self.method}: the witness's arrays do not fit the problem")
        if self.pi.dtype != np.int64 or (self.pi > LARGEST_PI).any() or (self.pi < -LARGEST_PI).any():
            raise BadCertificate(f"{self.method}: a node weight beyond {LARGEST_PI}")
        if (self.leaf >= leaves).any() or not 0 <= self.penalty <= LARGEST_PENALTY:
            raise BadCertificate(f"{self.method}: a leaf without weights, or no penalty")

    def _cases_below(self, case: int, fixed: Fixed) -> list[tuple[int, Fixed]]:
        """The two cases of an edge: all tours of this case fall into one of them."""
        i, j = (int(end) for end in self.edges[case])
        children = [int(child) for child in self.children[case]]
        if not 0 <= i < j < self.pi.shape[1] or min(children) <= case or max(children) >= len(self.leaf):
            raise BadCertificate(f"{self.method}: case {case} has no two cases below it")
        return [(child, (*fixed, (i, j, with_edge))) for child, with_edge in zip(children, (False, True))]


def _restricted(metric: Metric, fixed: Fixed, penalty: int) -> tuple[Metric, int]:
    """The metric with fixed edges made shorter or longer, and by how much every tour of the case got shorter.

    At a city with two required edges the others are forbidden. A tour of the case uses no forbidden edge.
    """
    matrix = metric.between(np.arange(metric.n)[:, None], np.arange(metric.n))
    required = np.zeros(matrix.shape, dtype=bool)
    forbidden = np.zeros(matrix.shape, dtype=bool)
    for i, j, with_edge in fixed:
        (required if with_edge else forbidden)[[i, j], [j, i]] = True
    full = required.sum(axis=1) >= 2
    forbidden |= (full[:, None] | full[None, :]) & ~required
    matrix = np.minimum(matrix + penalty * forbidden, LARGEST_DISTANCE) - penalty * required
    return explicit(metric.name, matrix), penalty * int(required.sum() // 2)


def _value(metric: Metric, fixed: Fixed, pi: np.ndarray, special: int, penalty: int) -> int:
    restricted, shorter = _restricted(metric, fixed, penalty)
    return proved_value(restricted, pi, special) + SCALE * shorter


@dataclass(order=True)
class _Case:
    """A case not yet divided; the number makes the order definite."""

    bound: int
    number: int
    fixed: Fixed = field(compare=False)
    pi: np.ndarray = field(compare=False)


class Branching:
    """Cases divided one after the other, the one of the least bound first.

    lower    bound for every tour      closed   nothing is left to divide: no tour is shorter than `lower`
    upper    the length of a known tour: a case whose bound is as large is not looked at further
    """

    def __init__(
        self, metric: Metric, pi: np.ndarray, special: int, upper: int, compiled: bool = True
    ) -> None:
        self.metric, self.upper, self.special, self.compiled = metric, upper, special, compiled
        self.penalty = min(upper + 1, LARGEST_PENALTY)
        self._edges: list[tuple[int, int]] = [(-1, -1)]
        self._children: list[tuple[int, int]] = [(-1, -1)]
        self._pi = [pi]
        self._open: list[_Case] = []
        self._settled = upper  # the least bound of the cases that are not divided further
        self._add(0, (), pi)

    def lower_upper(self, upper: int) -> None:
        """A shorter tour is known."""
        self.upper = min(self.upper, upper)
        self._settled = min(self._settled, upper)

    @property
    def lower(self) -> int:
        """The least bound of all cases."""
        return min(self._settled, self._open[0].bound) if self._open else self._settled

    @property
    def closed(self) -> bool:
        """True when no case with a bound below the others is left."""
        return not self._open or self._open[0].bound >= self._settled

    @property
    def cases(self) -> int:
        """Number of cases made."""
        return len(self._pi)

    def run(self, cases: int) -> bool:
        """Divide up to so many cases; True if the bound grew."""
        before = self.lower
        for _ in range(cases):
            if self.closed:
                break
            self._divide(heapq.heappop(self._open))
        return self.lower > before

    def certificate(self) -> CaseTree:
        """The tree of all cases, with the weights of its leaves."""
        children = np.array(self._children, dtype=np.int32)
        ends = children[:, 0] < 0
        leaf = np.where(ends, np.cumsum(ends) - 1, -1).astype(np.int32)
        pi = np.array([pi for pi, end in zip(self._pi, ends) if end])
        edges = np.array(self._edges, dtype=np.int32)
        return CaseTree(self.lower, METHOD, edges, children, leaf, pi, self.special, self.penalty)

    def _divide(self, case: _Case) -> None:
        trees = self._trees(case.fixed)[0]
        edge = self._choose(trees, case)
        if edge is None:  # the 1-tree is a tour: the case's best
            self._settled = min(self._settled, case.bound)
            return
        self._edges[case.number] = edge
        self._children[case.number] = len(self._pi), len(self._pi) + 1
        for with_edge in (False, True):
            self._edges.append((-1, -1))
            self._children.append((-1, -1))
            self._pi.append(case.pi)
            self._add(len(self._pi) - 1, (*case.fixed, (*edge, with_edge)), case.pi)

    def _add(self, number: int, fixed: Fixed, pi: np.ndarray) -> None:
        """Improve the weights of a new case and keep it if its bound is below the known tour."""
        trees, shorter = self._trees(fixed)
        value, self._pi[number] = _ascend(trees, pi, SCALE * (self.upper - shorter))
        bound = rounded_up(value) + shorter
        if bound < self.upper:
            heapq.heappush(self._open, _Case(bound, number, fixed, self._pi[number]))

    def _trees(self, fixed: Fixed) -> tuple[OneTrees, int]:
        restricted, shorter = _restricted(self.metric, fixed, self.penalty)
        return OneTrees(restricted, self.special, self.compiled), shorter

    def _choose(self, trees: OneTrees, case: _Case) -> tuple[int, int] | None:
        """The edge at a city of degree 3 or more that the 1-tree misses most; None: it is a tour."""
        trees.find(case.pi)
        degree, taken = trees.degree.copy(), {(i, j) for i, j, _ in case.fixed}
        edges = [edge for edge in trees.edges(case.pi) if max(degree[list(edge)]) > 2 and edge not in taken]
        best, heaviest = None, -1
        for i, j in edges:
            matrix = trees.metric.matrix
            matrix[[i, j], [j, i]] += self.penalty
            value = trees.find(case.pi)
            matrix[[i, j], [j, i]] -= self.penalty
            if best is None or value > heaviest:
                best, heaviest = (i, j), value
        return best


def _ascend(trees: OneTrees, pi: np.ndarray, target: int) -> tuple[int, np.ndarray]:
    """Some steps towards a known value; returns the best value and its weights.

    A step is the missing value over the square of the excess of degrees (Held, Wolfe and Crowder 1974).
    """
    best, best_pi, last = None, pi, None
    for step in range(STEPS):
        value = trees.find(pi)
        if best is None or value > best:
            best, best_pi = value, pi
        excess = trees.degree.astype(np.int64) - 2
        if value >= target or not excess.any():
            break
        last = excess if last is None else last
        size = (target - value) / int((excess * excess).sum()) * (1 - step / STEPS)
        pi = pi + np.floor(size * (0.6 * excess + 0.4 * last) + 0.5).astype(np.int64)
        last = excess
    return best, best_pi
