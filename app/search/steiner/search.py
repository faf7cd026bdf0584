"""Search for Steiner trees: trees of perturbed lengths, made lighter by local moves, and combined.

A pool holds the best trees that differ. A new tree grows by shortest paths under lengths that are perturbed,
comes of a tree of the pool by moves under such lengths, or grows of two trees of the pool: edges of both are
cheap, of one dearer, others dearest. Moves under the true lengths follow, until none gains; equal lengths are
told apart at random, another time in another way.

Source   perturbed lengths and their moves: Pajor, Uchoa and Werneck, A robust and scalable algorithm for the
         Steiner problem in graphs, Mathematical Programming Computation 2018; factors of combinations:
         Ribeiro, Uchoa and Werneck, A hybrid GRASP with perturbations for the Steiner problem in graphs,
         INFORMS Journal on Computing 2002
"""

from collections.abc import Callable, Generator

import numpy as np

from app.graphs.lists import by_columns
from app.graphs.steiner import SteinerCore, canonical_tree, rooted_at
from app.rng import SplitMix, stream
from app.search.steiner.trees import Trees
from app.toolbox import Search

Course = Generator[None, None, None]  # stops where the steps it was given are used up
POOL = 12  # trees
PATIENCE = 8  # times as many new trees as the pool holds, none of which it takes: it begins anew
WIDEST = 1 << 60  # of all weights
DEAREST = 32  # at most so many times its length is what an edge weighs
ONE = 256  # the denominator of factors
AMPLITUDES = (16, 32, 64, 128, 256)  # of perturbed lengths, in 1/ONE
EITHER, NEITHER = 4 * ONE, 20 * ONE  # combined trees: edges of one weigh up to so much more, others so much
TREE, PASS = 1 << 12, 1 << 10  # steps that a tree, and a pass over the nodes, cost beside what they look at
WHOLE, NEAR = 4096, 128  # nodes of cores whose trees are taken apart whole; of a part of others, at first
CHUNK = 4096  # nodes between two looks whether a tree is the best
LEAST_MEETING = 1 << 22  # steps between two meetings of several searches, or 64 for each entry


class SteinerSearch(Search):
    """A tree that gets shorter; a function of core, start, seed, what it hears, and steps made.

    start   [n] parents of a tree that holds all terminals
    still   [nnz] int64, what of each length is not perturbed; None: nothing
    worth   of a tree [n] the value that counts, at most its length; None: its length
    steps   entries and nodes looked at so far
    best    the length of the best tree, found_at the step it was found in
    """

    hears = True
    done = False

    def __init__(
        self, core: SteinerCore, start: np.ndarray, seed: int, compiled: bool = True,
        still: np.ndarray | None = None, worth: Callable[[np.ndarray], int] | None = None,
    ) -> None:  # fmt: skip
        self.core, self._worth = core, worth
        self._still = np.zeros_like(core.lengths) if still is None else still
        self._random, self._draws = SplitMix(seed), stream(seed, "steiner")
        self._trees = Trees(core, compiled)
        self._trees.part = core.n if core.n <= WHOLE else NEAR
        self._edge, self._edges = _edge_numbers(core)
        self.scale = _scale(core)
        self._best = canonical_tree(start)
        self._shortest = core.length(start)
        self.best = self._shortest if worth is None else worth(self._best)
        self.steps = self.found_at = self._left = 0
        self._pool: list[tuple[int, np.ndarray]] = []
        self._guests = [self._best]
        self._course = self._forever()

    @property
    def meeting_steps(self) -> int:
        """Steps between two meetings of several searches."""
        return max(LEAST_MEETING, 64 * len(self.core.indices))

    def news(self) -> np.ndarray:
        """[1, n] int64, the best tree."""
        return self._best[None, :]

    def meet(self, others: list[np.ndarray]) -> None:
        """The best trees of the other searches."""
        self._guests += [each[0].astype(np.int64) for each in others]

    def hear(self, solution: np.ndarray) -> None:
        """A tree from elsewhere, for the pool."""
        self._guests.append(canonical_tree(solution))

    def solution(self) -> np.ndarray:
        """[n] int64, the best tree, a copy."""
        return self._best.copy()

    def run(self, steps: int) -> None:
        """Look at so many more entries and nodes, or some more where trees are made at once."""
        self._left += steps
        while self._left > 0:
            next(self._course)

    # ---- the course ----------------------------------------------------------------------------------------

    def _forever(self) -> Course:
        """New trees, one after the other; a pool that has long taken none is left for a new one."""
        failed = 0
        while True:
            self._charge(TREE)
            if self._guests:
                self._load(self._guests.pop(0))
            elif len(self._pool) < POOL or not self._random.below(POOL):
                self._fresh()
            elif self._random.below(2):
                self._combined()
            else:
                yield from self._kicked()
            yield from self._settled()
            failed = 0 if self._offer() else failed + 1
            if failed > PATIENCE * POOL:
                self._pool, failed = [], 0

    def _fresh(self) -> None:
        """A tree that grows from a drawn terminal under perturbed lengths."""
        self._trees.weigh(self._perturbed())
        self._grow()

    def _combined(self) -> None:
        """A tree that grows of two of the pool."""
        first = self._random.below(len(self._pool))
        second = (first + 1 + self._random.below(len(self._pool) - 1)) % len(self._pool)
        count = sum(self._has_edges(self._pool[i][1]) for i in (first, second))
        factor = ONE + self._draws.integers(0, EITHER, self._edges)
        factor[count == 2] = ONE
        factor[count == 0] = NEITHER
        self._trees.weigh(self._weights(factor))
        self._grow()

    def _kicked(self) -> Course:
        """A tree of the pool, after moves under perturbed lengths."""
        self._trees.weigh(self._perturbed())
        self._load(self._pool[self._random.below(len(self._pool))][1])
        yield from self._moved()

    def _settled(self) -> Course:
        """Moves under the true lengths, equal ones told apart, until none gains."""
        noise = self.scale // (self.core.n + 1)
        weights = self.core.lengths * self.scale
        if noise > 1:
            weights += self._draws.integers(0, noise, self._edges)[self._edge]
        self._trees.weigh(weights)
        self._load(self._trees.parent)
        while True:
            before = self._trees.total
            yield from self._moved(noted=True)
            if self._trees.total == before:
                return

    def _moved(self, noted: bool = False) -> Course:
        """The moves at all nodes, in a drawn order; noted: the weights are true, so that a tree may be the
        best.
        """
        order = self._draws.permutation(self.core.n).astype(np.int32)
        self._charge(PASS + self.core.n)
        for first in range(0, len(order), CHUNK):
            part, at = order[first : first + CHUNK], 0
            while at < len(part):
                while self._left <= 0:
                    yield
                before = self._trees.work
                at = self._trees.look(part, at, self._left)
                self._charge(self._trees.work - before)
            if noted:
                self._note()

    def _note(self) -> None:
        """The tree, where it is the best."""
        value = self._trees.total // self.scale
        if value >= self._shortest:
            return
        self._shortest, tree = value, canonical_tree(self._trees.parent)
        value = value if self._worth is None else self._worth(tree)
        if value < self.best:
            self.best, self.found_at, self._best = value, self.steps, tree

    def _offer(self) -> bool:
        """The tree to the pool, and to the best; whether the pool takes it."""
        value = self._trees.total // self.scale
        self._note()
        worst = max(self._pool, key=lambda each: each[0])[0] if len(self._pool) >= POOL else value
        if value > worst:
            return False
        tree = canonical_tree(self._trees.parent)
        if any(value == other and (tree == parent).all() for other, parent in self._pool):
            return False
        self._pool.append((value, tree))
        if len(self._pool) > POOL:
            worst = max(each[0] for each in self._pool)
            self._pool.pop(next(i for i, each in enumerate(self._pool) if each[0] == worst))
            return value < worst
        return True

    # ---- trees and weights ---------------------------------------------------------------------------------

    def _charge(self, steps: int) -> None:
        self.steps += steps
        self._left -= steps

    def _grow(self) -> None:
        """A new tree under the weights in force."""
        before, terminals = self._trees.work, self.core.terminals
        self._trees.grow(int(terminals[self._random.below(len(terminals))]))
        self._charge(self._trees.work - before + self._edges)

    def _load(self, parent: np.ndarray) -> None:
        """A tree under the weights in force, a terminal its root."""
        before = self._trees.work
        self._trees.load(rooted_at(parent, int(self.core.terminals[0])))
        self._charge(self._trees.work - before + self._edges)

    def _perturbed(self) -> np.ndarray:
        """[nnz] int64, lengths with up to a drawn part of themselves more."""
        amplitude = AMPLITUDES[self._random.below(len(AMPLITUDES))]
        return self._weights(ONE + self._draws.integers(0, amplitude + 1, self._edges))

    def _weights(self, factor: np.ndarray) -> np.ndarray:
        """[nnz] int64, lengths times factors / ONE of edges [edges], what is still as it is."""
        moved = (self.core.lengths - self._still) * self.scale * factor[self._edge] // ONE
        return np.maximum(moved + self._still * self.scale, 1)

    def _has_edges(self, parent: np.ndarray) -> np.ndarray:
        """[edges] int64, 1 for those of a tree."""
        rows, columns = self.core.row_of(), self.core.indices
        own = (parent[rows] == columns) & (rows != columns)
        found = np.zeros(self._edges, dtype=np.int64)
        found[self._edge[own]] = 1
        return found


def _edge_numbers(core: SteinerCore) -> tuple[np.ndarray, int]:
    """[nnz] int64, the number of the edge of each entry, by its lower node and then the other, and how many
    edges there are; in linear time, as rows ascend.
    """
    number, up = np.empty(len(core.indices), dtype=np.int64), core.row_of() < core.indices
    number[up] = np.arange(len(number) // 2)
    back = by_columns(core.indptr, core.indices, core.n)  # of each entry the one of the other direction
    number[~up] = number[back[~up]]
    return number, len(number) // 2


def _scale(core: SteinerCore) -> int:
    """What lengths are multiplied by, a power of two: perturbed ones and their sums stay in 63 bits."""
    room = WIDEST // (DEAREST * ONE * max(int(core.lengths.sum()), 1))
    return 1 << max(room.bit_length() - 1, 0)
