"""PairProgram: which pairs of nodes are together, as a semidefinite program with triangles.

    maximise sum over pairs of c_uv x_uv where x, with ones on its diagonal, less `least` in every place is
    positive semidefinite, 0 <= x <= 1, sum over ordered pairs of s_u s_v x_uv (u = v too) <= squares,
    x_uv + x_uw - x_vw <= 1, and, of two groups, x_uv + x_uw + x_vw >= 1

x_uv is 1 where u and v are in one group. With at most `parts` groups x less 1/parts is semidefinite; without
a limit least is 0. Sizes s of groups are bounded by `squares`. Multipliers prove a bound; those of triangles
follow what the other part of the program comes to, a small step each time.

Source   Karisch and Rendl, Semidefinite programming and graph equipartition, 1998; Swamy 2004 (correlation
         clustering); Boyd et al., Distributed optimization and statistical learning via ADMM, 2011, section
         3.1; the nearest semidefinite matrix: Higham 1988; steps for the multipliers of triangles: Chambolle
         and Pock, Journal of Mathematical Imaging and Vision 2011
"""

import numpy as np

LOOK = 10  # steps between two bounds
SEARCH, RARER = 20, 6  # steps between two searches for triangles, at least; a share of all steps
PATIENT = 3  # searches without a multiplier, after which a triangle is dropped
READ = 1 << 23  # triangles of each kind that one search reads, at most
BATCH = 8  # new triangles for each node, at most, of one search
BROKEN = 0.002  # by how much a triangle is, that is taken up
IDLE = 1e-6  # multipliers below it are dropped
KINDS = ((1, 1, -1), (1, -1, 1), (-1, 1, 1), (-1, -1, -1))  # of x_ij, x_ik and x_jk, i < j < k
MOST = (1.0, 1.0, 1.0, -1.0)  # of their sums


class PairProgram:
    """The program of one part.

    value    the least bound so far
    matrix   [k, k], over: S and the multiplier of `squares` that prove it
    triangles [t, 3], kinds [t], g [t]: those of triangles
    steps    made so far
    """

    def __init__(
        self, worth: np.ndarray, same: np.ndarray, least: float = 0.0, sizes: np.ndarray | None = None,
        squares: float = np.inf, two: bool = False,
    ) -> None:  # fmt: skip
        """worth [k, k] of pairs, zeros on its diagonal; same [k, k] bool, groups to begin with; sizes [k];
        two: there are at most two groups
        """
        k = len(worth)
        self._worth, self._least, self._squares = worth / 2, least, squares
        self._pairs = np.zeros((0, 0)) if sizes is None else np.outer(sizes, sizes)
        self._box, self._dual = same.astype(np.float64), np.zeros((k, k))
        np.fill_diagonal(self._box, 1.0)
        self._kinds = KINDS if two else KINDS[:3]
        self._theta, self.steps, self._read, self._next = 0.0, 0, 0, SEARCH
        self._ijk, self._kind = np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._g, self._step, self._last = np.zeros(0), np.zeros(0), self._box
        self._age = np.zeros(0, dtype=np.int64)
        self.value, self.matrix, self.over = float(np.maximum(worth, 0).sum()) / 2, np.zeros((k, k)), 0.0
        self.triangles, self.kinds, self.g = self._ijk, self._kind, self._g

    def step(self) -> None:
        """One step: an eigenvalue decomposition."""
        values, vectors = np.linalg.eigh(self._box - self._dual - self._least)
        up = vectors * np.sqrt(np.maximum(values, 0.0))
        near = up @ up.T + self._least
        self._climb()
        before = self._box
        self._box = self._boxed(near + self._dual + self._worth - self._taken() / 2)
        self._last = before
        self._dual += near - self._box
        self.steps += 1
        if self.steps % LOOK == 0:
            down = vectors * np.sqrt(np.maximum(-values, 0.0))
            self._try(2 * (down @ down.T))
        if self.steps >= self._next:
            self._search()
            self._next = self.steps + max(SEARCH, self.steps // RARER)

    # ---- triangles ---------------------------------------------------------------------------------------

    def _climb(self) -> None:
        """Multipliers of triangles, by how much what comes next is likely to break them."""
        if len(self._g):
            ahead = 2 * self._box - self._last
            self._g = np.maximum(self._g + self._step * self._broken(ahead, self._ijk, self._kind), 0.0)

    @staticmethod
    def _broken(x: np.ndarray, ijk: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """[t] by how much triangles are broken."""
        i, j, k = ijk.T
        signs = np.array(KINDS, dtype=np.float64)[kind]
        most = np.array(MOST)[kind]
        return signs[:, 0] * x[i, j] + signs[:, 1] * x[i, k] + signs[:, 2] * x[j, k] - most

    def _taken(self) -> np.ndarray:
        """[k, k], what multipliers of triangles take off the worth of pairs."""
        return taken_off(len(self._box), self._ijk, self._kind, self._g)

    def _search(self) -> None:
        """Take up triangles that are broken, and drop those that no longer count."""
        x, n = self._box, len(self._box)
        used = (self._g > IDLE) | (self._broken(x, self._ijk, self._kind) > 0)
        age = np.where(used, 0, self._age + 1)
        kept = age < PATIENT
        ijk, kind, g, age = self._ijk[kept], self._kind[kept], self._g[kept], age[kept]
        found: list[tuple[float, int, int, int, int]] = []
        rows = [(self._read + i) % max(n - 2, 1) for i in range(min(max(READ // (n * n), 1), max(n - 2, 0)))]
        self._read += len(rows)
        for i in rows:
            rest = x[i + 1 :, i + 1 :]
            row = x[i, i + 1 :]
            for number, (a, b, c) in enumerate(self._kinds):
                much = a * row[:, None] + b * row[None, :] + c * rest - MOST[number]
                j, k = np.nonzero(np.triu(much, 1) > BROKEN)
                if len(j) > BATCH:
                    order = np.argsort(-much[j, k], kind="stable")[:BATCH]
                    j, k = j[order], k[order]
                found += [
                    (-much[p, q], i, p + i + 1, q + i + 1, number) for p, q in zip(j.tolist(), k.tolist())
                ]
        found.sort()
        known = {(*each, int(which)) for each, which in zip(map(tuple, ijk.tolist()), kind)}
        new = [each[1:] for each in found[: BATCH * n] if each[1:] not in known]
        if new:
            table = np.array(new, dtype=np.int64)
            ijk, kind = np.concatenate([ijk, table[:, :3]]), np.concatenate([kind, table[:, 3]])
            g, age = (np.concatenate([each, np.zeros(len(new), each.dtype)]) for each in (g, age))
        self._ijk, self._kind, self._g, self._age = ijk, kind, g, age
        count = np.zeros((n, n))
        for a, b in ((0, 1), (0, 2), (1, 2)):
            np.add.at(count, (ijk[:, a], ijk[:, b]), 1.0)
        most = np.maximum.reduce([count[ijk[:, a], ijk[:, b]] for a, b in ((0, 1), (0, 2), (1, 2))])
        self._step = 1.0 / (3 * np.maximum(most, 1.0)) if len(ijk) else np.zeros(0)

    # ---- the box, and bounds -----------------------------------------------------------------------------

    def _boxed(self, x: np.ndarray) -> np.ndarray:
        """The nearest pairs between 0 and 1, with ones on the diagonal, whose sum of squares is small
        enough.
        """

        k = len(x)

        def box(theta: float) -> np.ndarray:
            found = theta * self._pairs
            np.subtract(x, found, out=found)
            np.minimum(np.maximum(found, 0.0, out=found), 1.0, out=found)
            found.reshape(-1)[:: k + 1] = 1.0
            return found

        if not len(self._pairs):
            found = np.clip(x, 0.0, 1.0)
            np.fill_diagonal(found, 1.0)
            return found
        found = box(0.0)
        if float((found * self._pairs).sum()) <= self._squares:
            self._theta = 0.0
            return found
        low, high = 0.0, max(2 * self._theta, 1.0 / max(float(self._pairs.max()), 1.0) / len(x))
        while float((box(high) * self._pairs).sum()) > self._squares and high < 1e30:
            low, high = high, 2 * high
        for _ in range(30):
            middle = (low + high) / 2
            if float((box(middle) * self._pairs).sum()) > self._squares:
                low = middle
            else:
                high = middle
        self._theta = high
        return box(high)

    def _try(self, matrix: np.ndarray) -> None:
        worth = 2 * self._worth + matrix - self._taken()
        np.fill_diagonal(worth, 0.0)
        constant = float(np.trace(matrix)) - self._least * float(matrix.sum())
        constant += 2 * float((self._g * np.array(MOST)[self._kind]).sum())
        for over in (2 * self._theta, 0.0) if self._theta else (0.0,):
            rest = worth - over * self._pairs if over else worth
            if over:
                np.fill_diagonal(rest, 0.0)
            added = over * (self._squares - float(np.trace(self._pairs))) if over else 0.0
            value = (float(np.maximum(rest, 0.0).sum()) + constant + added) / 2
            if value < self.value:
                self.value, self.matrix, self.over = value, matrix, over
                self.triangles, self.kinds, self.g = self._ijk, self._kind, self._g


def taken_off(n: int, ijk: np.ndarray, kind: np.ndarray, g: np.ndarray) -> np.ndarray:
    """[n, n], what multipliers g [t] of triangles [t, 3] take off the worth of pairs; of the type of g."""
    taken = np.zeros((n, n), dtype=g.dtype)
    signs = np.array(KINDS, dtype=g.dtype)[kind]
    for place, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        np.add.at(taken, (ijk[:, a], ijk[:, b]), signs[:, place] * g)
    return taken + taken.T
