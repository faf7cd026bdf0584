"""Branch and bound for the maximum cut of a small problem, by its semidefinite relaxation with triangles."""

import heapq
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from app.bounds.cut.relaxation import SIGNS, Multipliers, TriangleRelaxation, lifted, mean_size
from app.rng import stream

WAIT = 5.0  # rounds as good as the last that would have to come: more, and the part is branched on
LEAST_ROUNDS = 2
AGAIN, ROUGH = 3.0, 0.1  # the smoothing of a branch, over that of its parent; at most
DRAWS = 8  # of cuts from a relaxation
KEPT = 2_000  # open parts that keep their multipliers
PAIRS = ((0, 1), (0, 2), (1, 2))  # of the places of an inequality's nodes


@dataclass(eq=False)
class CutCase:
    """The cuts in which some nodes are on one side, or on two, together: `count` signs decide them.

    where, sign  [n] int64, node v has the sign sign[v] * x[where[v]], x of `count` signs
    upper        no such cut weighs more
    start        multipliers to begin with, or None
    depth        branches that led here
    """

    where: np.ndarray
    sign: np.ndarray
    upper: int
    start: Multipliers | None = None
    depth: int = 0

    @property
    def count(self) -> int:
        """Signs that are open; all of them may change together."""
        return int(self.where.max(initial=-1)) + 1

    def weights(self, W: np.ndarray) -> tuple[np.ndarray, int]:
        """M [count, count] of these signs, with zeros on its diagonal, and b: a cut weighs b/2 - x'Mx/4.

        W   [n, n] float64, whole numbers
        """
        S = np.zeros((len(self.where), self.count))
        S[np.arange(len(self.where)), self.where] = self.sign
        M = S.T @ W @ S
        twice = int(W.sum() - np.trace(M)) // 2
        np.fill_diagonal(M, 0.0)
        return M, twice

    def merged(self, i: int, j: int, sign: int, start: Multipliers | None) -> "CutCase":
        """The part of this one in which x[j] = sign * x[i]; i < j."""
        where, signs = self.where.copy(), self.sign.copy()
        signs[where == j] *= sign
        where[where == j] = i
        where[where > j] -= 1
        return CutCase(where, signs, self.upper, start, self.depth)


def whole_part(W: np.ndarray, fixed: np.ndarray | None = None) -> CutCase:
    """All cuts of W [n, n], those with the given sides fixed [n] int8: 0, 1; -1: either."""
    n, most = len(W), int(np.maximum(W, 0.0).sum()) // 2
    where, sign = np.arange(n), np.ones(n, dtype=np.int64)
    if fixed is not None and (fixed >= 0).any():
        given, free = fixed >= 0, fixed < 0
        where[given], where[free] = 0, 1 + np.arange(free.sum())
        sign[given] = 2 * fixed[given].astype(np.int64) - 1
    return CutCase(where, sign, most)


class CutBranching:
    """Best-first search: of all open parts the one with the largest bound is relaxed; where that does not
    close it, two nodes are put on one side, and on two.

    Source   Rendl, Rinaldi, Wiegele 2010, "Solving Max-Cut to optimality by intersecting semidefinite and
             polyhedral relaxations" (Biq Mac): best first, the two nodes about which most is decided
    Differs  nodes are merged whose edge decides them; a part is branched on as soon as its bound comes down
             too slowly to close it
    W        [n, n] float64, symmetric, whole numbers below 2^53 in all, zeros on the diagonal
    best     weight of the best cut that is known; found: [n] bool that cut, None where another knows it
    step     no cut is better than `best` by less
    parts    relaxed so far
    closed   the share of the tree that is searched, where each branch halves what it divides
    """

    def __init__(
        self, W: np.ndarray, best: int, step: int = 1, root: CutCase | None = None, compiled: bool = True
    ) -> None:
        """root   None: of a search that gets its parts from another"""
        self._W, self._unit, self._compiled = W, mean_size(W), compiled
        self.best, self.step, self.found = best, step, None
        self.parts, self.closed = 0, 0.0
        self._open: list[tuple[int, int, CutCase]] = []
        self._number, self._active = 0, None
        if root is not None:
            self.add(root)

    # ---- what is open --------------------------------------------------------------------------------------

    @property
    def upper(self) -> int:
        """No cut of the parts that are open here weighs more; `best` where none is."""
        held = [-self._open[0][0]] if self._open else []
        if self._active is not None:
            held.append(self._active.part.upper)
        return max(self.best, *held) if held else self.best

    @property
    def left(self) -> int:
        """Parts that are open here."""
        return len(self._open) + (self._active is not None)

    def add(self, part: CutCase) -> None:
        """One part more."""
        if self._closes(part):
            return
        if len(self._open) > KEPT:
            part.start = None
        self._number += 1
        heapq.heappush(self._open, (-part.upper, self._number, part))

    def offer(self) -> CutCase | None:
        """The open part with the largest bound, to begin or to give away; those that have become hopeless are
        closed on the way.
        """
        while self._open and self._closes(self._open[0][2]):
            heapq.heappop(self._open)
        return self._open[0][2] if self._open else None

    def give(self) -> None:
        """What was offered is open here no more."""
        heapq.heappop(self._open)

    def learn(self, best: int) -> None:
        """A cut of this weight is known elsewhere."""
        if best > self.best:
            self.best, self.found = best, None

    def _closes(self, part: CutCase) -> bool:
        """Whether no cut of a part is better than the best: its share of the tree is then searched."""
        if part.upper >= self.best + self.step:
            return False
        self.closed += 2.0**-part.depth
        return True

    # ---- the search ----------------------------------------------------------------------------------------

    def run(self, seconds: float) -> float:
        """Work for so long, a round at least and then none that would end late; returns the seconds."""
        begun, spent, longest = time.perf_counter(), 0.0, 0.0
        while (not spent or spent + longest < seconds) and (self._active or self._next()):
            if self._active.round(self.best + self.step):
                self._close(self._active)
                self._active = None
            before, spent = spent, time.perf_counter() - begun
            longest = max(longest, spent - before)
        return spent

    def _next(self) -> bool:
        """Begin the open part with the largest bound; False where none is open."""
        part = self.offer()
        if part is not None:
            self.give()
            self._active = Relaxed(part, self._W, self._unit, self._compiled)
        return part is not None

    def _close(self, relaxed: "Relaxed") -> None:
        """What comes of a part whose relaxation is done with."""
        self.parts += 1
        cut, sides = relaxed.cut()
        if cut > self.best:
            self.best, self.found = cut, sides
        if relaxed.part.count < 2:
            relaxed.part.upper = min(cut, self.best)
        if not self._closes(relaxed.part):
            for part in relaxed.branches():
                self.add(part)


class Relaxed:
    """A part and its relaxation; `part.upper` falls with it."""

    def __init__(self, part: CutCase, W: np.ndarray, unit: float, compiled: bool = True) -> None:
        M, _ = part.weights(W)
        while part.count > 1 and (pair := decided(M)) is not None:
            part = part.merged(*pair, folded(part.start, M, unit, *pair))
            M = without(M, *pair)
        M, twice = part.weights(W)
        self.part, self._M, self._twice, self._unit = part, M, twice, unit
        self._relaxation = TriangleRelaxation(M, part.start, unit, compiled)
        self._rounds = 0

    def round(self, goal: int) -> bool:
        """One round; True where no more are wanted: the bound is below `goal`, or will not be soon."""
        if self.part.count < 2:
            return True
        relaxation, before = self._relaxation, self._relaxation.bound
        relaxation.round()
        self._rounds += 1
        upper = self._twice / 2 + relaxation.bound
        self.part.upper = min(self.part.upper, math.floor(upper))
        if self.part.upper < goal or relaxation.settled:
            return True
        return self._rounds > LEAST_ROUNDS and upper - goal > WAIT * (before - relaxation.bound)

    def cut(self) -> tuple[int, np.ndarray]:
        """The weight of a good cut of this part, and its sides [n] bool: planes through the relaxation's
        vectors (Goemans and Williamson 1995), then descent.
        """
        k, M = self.part.count, self._M
        values, Q = np.linalg.eigh(self._relaxation.X)
        planes = stream(0, "planes").standard_normal((k, DRAWS))
        V = (Q * np.sqrt(np.maximum(values, 0.0))) @ planes
        x = descended(M, np.where(V >= 0, 1.0, -1.0))
        weight = (2 * self._twice - int(x @ M @ x)) // 4
        return weight, self.part.sign * x[self.part.where] > 0

    def branches(self) -> list[CutCase]:
        """Both parts of this one, in which two nodes about which most is decided agree, and do not."""
        at, (i, j) = self._relaxation.at, self._pair()
        at = replace(at, smoothing=min(AGAIN * at.smoothing, ROUGH))
        starts = ((sign, folded(at, self._M, self._unit, i, j, sign)) for sign in (1, -1))
        parts = [self.part.merged(i, j, sign, start) for sign, start in starts]
        for part in parts:
            part.depth += 1
        return parts

    def _pair(self) -> tuple[int, int]:
        """The two nodes whose rows of the relaxation are nearest to signs."""
        X = self._relaxation.X
        length = np.sqrt(np.maximum(np.diag(X), 1e-9))
        X = np.abs(X / length[:, None] / length)
        i, j = np.argsort(np.square(1 - X).sum(axis=1), kind="stable")[:2].tolist()
        return min(i, j), max(i, j)


def decided(M: np.ndarray) -> tuple[int, int, int] | None:
    """Two nodes i < j and the sign of x[j] x[i] that the heaviest entry of a row decides: none of the others
    together outweighs it. None: there is no such row.
    """
    sizes = np.abs(M)
    np.fill_diagonal(sizes, -1.0)
    heaviest = sizes.max(axis=1)
    rows = np.flatnonzero(2 * heaviest >= sizes.sum(axis=1) + 1)
    if not len(rows):
        return None
    v = int(rows[0])
    u = int(np.argmax(sizes[v]))
    return min(u, v), max(u, v), -1 if M[v, u] > 0 else 1


def without(M: np.ndarray, i: int, j: int, sign: int) -> np.ndarray:
    """The problem M [k, k] where x[j] = sign * x[i], but for a constant: zeros on its diagonal."""
    M = M.copy()
    M[i] += sign * M[j]
    M[:, i] += sign * M[:, j]
    M[i, i] = 0.0
    return np.delete(np.delete(M, j, axis=0), j, axis=1)


def folded(
    at: Multipliers | None, M: np.ndarray, unit: float, i: int, j: int, sign: int
) -> Multipliers | None:
    """Multipliers of the problem M [k, k] for that in which x[j] = sign * x[i], i < j.

    With S the matrix that unfolds the signs and A = C + T(g) - Diag(y), S'AS has no positive eigenvalue where
    A has none. It is the matrix of the new problem, with y[i] + y[j] - 2 sign (C + T)[i, j] in the place of
    y[i], but for inequalities of both nodes: those say nothing any more and are left out. One of j becomes
    one of i; where `sign` is -1, two of its signs change.
    """
    if at is None:
        return None
    y = np.delete(at.y, j)
    y[i] = at.y[i] + at.y[j] - 2 * sign * lifted(M, at, unit)[i, j]
    nodes = at.triangles[:, :3].astype(np.int64)
    kept = (at.g > 0) & ~((nodes == i).any(axis=1) & (nodes == j).any(axis=1))
    nodes, g, signs = nodes[kept], at.g[kept], SIGNS[at.triangles[kept, 3]]
    if sign < 0:
        flips = 1 - 2 * (nodes == j)
        signs = signs * np.stack([flips[:, a] * flips[:, b] for a, b in PAIRS], axis=1)
    nodes = np.where(nodes == j, i, nodes)
    triangles, first, back = ascending(nodes - (nodes > j), signs, len(M))
    return Multipliers(y, triangles, np.bincount(back, g, len(first)), at.smoothing)


def ascending(nodes: np.ndarray, signs: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inequalities [k, 4] of three nodes each, in any order [m, 3], and signs [m, 3] of PAIRS: each once.

    Also which of the m each is first [k], and which of the k each of the m is.
    """
    order, rows = np.argsort(nodes, axis=1), np.arange(len(nodes))
    nodes, of_pair = np.take_along_axis(nodes, order, axis=1), np.zeros((len(nodes), 3, 3))
    for place, (a, b) in enumerate(PAIRS):
        of_pair[:, a, b] = of_pair[:, b, a] = signs[:, place]
    first, second = (of_pair[rows, order[:, a], order[:, b]] for a, b in PAIRS[:2])
    kind = np.where(first > 0, np.where(second > 0, 0, 1), np.where(second > 0, 2, 3))
    keys = ((nodes[:, 0] * n + nodes[:, 1]) * n + nodes[:, 2]) * 4 + kind
    _, once, back = np.unique(keys, return_index=True, return_inverse=True)
    return np.column_stack([nodes, kind])[once].astype(np.int32), once, back


def descended(M: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The best [k] of some sign vectors x [k, m] after one-flip descent, for min x'Mx."""
    best, least = x[:, 0], np.inf
    for start in x.T:
        now = start.copy()
        field = M @ now
        while (gain := now * field).max() > 0:
            v = int(np.argmax(gain))
            field -= 2 * now[v] * M[v]
            now[v] = -now[v]
        if (value := float(now @ field)) < least:
            best, least = now, value
    return best
