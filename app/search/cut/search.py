"""Search for a maximum cut: annealing rounds, and a pool whose cuts are combined piece by piece."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.fixed_point import integer_weights
from app.graphs.graph import Graph
from app.native import cut_search
from app.rng import SplitMix
from app.search.cover.start import rows_of_kernels
from app.search.cut.merge import ARRAYS, Merge, pieces_of
from app.search.cut.plain import Annealer
from app.search.cut.pool import Pool, Recombiner
from app.toolbox import Search

SLICE = 1 << 22  # trials of one call of the kernel: some hundredths of a second
POOL, MERGED = 12, 8  # cuts kept; those that are merged at once
PATIENCE = 2  # a pool ends after PATIENCE * POOL rounds in a row that added nothing
FIRST_SWEEPS = 50  # of the first round: an answer soon, however large the graph
SWEEPS, MOST_SWEEPS = 1000, 1 << 24  # of the others; twice as many after every pool
LONG, PROBE = 1 << 18, 4  # entries from which on a round takes long; the share of a sweep that tells how long
SHORTEST = 1 << 14  # trials that tell it
HOT, WARM = 0.6, 0.25  # first temperatures of random cuts and of combined ones, in units of `field`
COOL = 0.12  # of rounds that go on from the best cut after a planned one
MARKS = 8  # parts of a planned round, after which it is planned again: trials are the dearer the hotter it is
LEAST_PLAN, PLAN_SHARE = 20, 0.9  # sweeps that are planned at least; of the trials expected

cut_weights = integer_weights


def perfect_sides(
    graph: Graph, weights: np.ndarray, fixed: np.ndarray, compiled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the graph whose sides can be read off: every positive edge is cut there and no negative one.

    That is possible where no cycle has an odd number of positive edges (a balanced signed graph, Harary 1953;
    with positive weights: a bipartite one), in one way once a node's side is chosen. In the double cover (a
    node for every node and side, an edge for every pair that an edge of the graph asks for) the two copies of
    such a part are different components. One more node, on side 0, is tied to all fixed nodes.

    weights  [nnz] int64; fixed [n] int8, -1 or a side
    returns  settled [n] bool, sides [n] bool, side 0 elsewhere; an isolated node is settled
    """
    if compiled and cut_search.available():
        return cut_search.perfect_sides((*rows_of_kernels(graph), weights), fixed)
    n = graph.n
    kept = weights != 0
    u, v, apart = graph.row_of()[kept], graph.indices[kept].astype(np.int64), weights[kept] > 0
    given = np.flatnonzero(fixed >= 0)
    u, v = np.append(u, given), np.append(v, np.full(len(given), n))
    apart = np.append(apart, fixed[given] == 1)
    ends = [(2 * u + side, 2 * v + (apart ^ side)) for side in (0, 1)]
    rows, cols = (np.concatenate(part) for part in zip(*ends))
    cover = sp.coo_array((np.ones(len(rows), dtype=np.int8), (rows, cols)), shape=(2 * n + 2, 2 * n + 2))
    name = connected_components(cover.tocsr(), directed=False)[1].reshape(n + 1, 2)
    settled = name[:n, 0] != name[:n, 1]
    # Components are numbered by their first copy; the one with side 0 of the extra node agrees with `fixed`.
    ties = name[:n, 1] == name[n, 0], name[:n, 0] == name[n, 0]
    return settled, settled & np.where(ties[0], True, np.where(ties[1], False, name[:n, 1] < name[:n, 0]))


class CutSearch(Search):
    """Maximum cut by annealing from random cuts, then from combinations of the best ones.

    Rounds fill a pool with distinct cuts. Then, by turns, two of the pool are combined piece by piece
    (pool.py) or several are merged (merge.py), and a cooler round goes on from there. When a pool takes
    nothing new any more, the next one begins with the best cut alone and rounds of twice as many sweeps.
    Several searches tell each other their best cuts, which join the pools.
    Where a clock leaves no time to fill a pool one round takes as long as there is time (`expect`): a slow
    cooling leads further than several fast ones. Short cool rounds from the best cut follow while they find
    better ones.
    A step is one trial of a flip, in a merge of a piece's. The result depends on graph, seed, start, fixed
    and the number of steps.

    seed      any integer; start [n] bool, a first cut, or None
    fixed     [n] int8, -1: free, 0 or 1: the side of the node; or None
    compiled  use the kernel where it was built: the same bits
    steps, best, found_at, done   best in units of cut_weights; done: nothing better exists
    planned   of a round as long as there is time: the sweeps left at each of its MARKS so far
    """

    hears = plans = True

    def __init__(
        self,
        graph: Graph,
        seed: int,
        start: np.ndarray | None = None,
        fixed: np.ndarray | None = None,
        compiled: bool = True,
    ) -> None:
        weights, self.unit = cut_weights(graph)
        self._graph, self._weights = graph, weights
        fixed = _checked(graph, start, fixed)
        settled, sides = perfect_sides(graph, weights, fixed, compiled)
        self._frozen = settled | (fixed >= 0)
        self._given_sides = np.where(fixed >= 0, fixed == 1, sides)
        self._near = max(1, int((~self._frozen).sum()) // 100)
        self._field = _mean_field(graph, weights)
        self._target = int(weights[weights > 0].sum()) // 2
        self._random = SplitMix(seed)
        self._annealer = Annealer(
            (*rows_of_kernels(graph), weights),
            self._frozen, HOT * self._field, self._target, self._random.bits(), compiled,
        )  # fmt: skip
        self._recombiner = Recombiner(graph, weights, self._frozen)
        self._pool, self._sweeps, self._stale = Pool(POOL, self._recombiner), SWEEPS, 0
        first = self._random_sides() if start is None else np.where(self._frozen, self._given_sides, start)
        self._annealer.begin(first, FIRST_SWEEPS, (HOT if start is None else WARM) * self._field)
        self._best, self._found_at, self._sides = self._annealer.best, 0, first
        self._heard, self._compiled = False, compiled
        self._merge: Merge | None = None  # what goes before a round
        self.planned: list[int] = []
        self._given: Sequence[int] = ()
        self._expected = self._mark = 0
        self._rounds, self._fruitless = 1, 0  # the present one; those in a row without a better cut

    @property
    def steps(self) -> int:
        """Trials so far."""
        return self._annealer.steps

    @property
    def best(self) -> int:
        """The best cut so far, in units."""
        return max(self._best, self._annealer.best)

    @property
    def found_at(self) -> int:
        """`steps` when the best cut was found."""
        return self._annealer.found_at if self._annealer.best > self._best else self._found_at

    @property
    def done(self) -> bool:
        """No cut is better: all positive edges are cut and no negative one, or no node is free."""
        return self.best >= self._target or bool(self._frozen.all())

    def run(self, steps: int) -> None:
        """Make `steps` trials, fewer only where the search is done."""
        while steps > 0 and not self.done:
            if self._merge is not None:
                steps -= self._run_merge(min(steps, SLICE))
                continue
            if self._annealer.over:
                self._end_round()
                continue
            planning = self._rounds == 2 and self._mark < MARKS
            most = self._annealer.until(self._mark, MARKS) if planning else SLICE
            steps -= self._annealer.run(min(steps, SLICE, most))
            if planning and self._annealer.until(self._mark, MARKS) <= 0:
                self._plan()

    def _run_merge(self, steps: int) -> int:
        """Up to `steps` trials of the merge; at its end a round goes on from there. Returns those made."""
        made = self._merge.run(steps)
        self._annealer.count(made)
        if self._merge.over:
            sides, self._merge = self._merge.solution(), None
            self._annealer.begin(sides, self._sweeps, WARM * self._field)
        return made

    def plan(self, sweeps: Sequence[int]) -> None:
        """Have a round as `planned` by another search; empty: as `expect` leads to."""
        self._given = sweeps

    def expect(self, trials: int) -> None:
        """There will be about so many trials from now on, by a clock."""
        self._expected = trials

    def _plan(self) -> None:
        """At a mark of the first hot round: the sweeps that it shall still have."""
        free = max(int((~self._frozen).sum()), 1)
        mark, self._mark = self._mark, self._mark + 1
        if self._annealer.over:
            return
        if self._given:
            left = self._given[mark] if mark < len(self._given) else 0
        elif mark == 0 and not 0 < self._expected < POOL * SWEEPS * free:
            left = 0
        else:
            left = max(int(PLAN_SHARE * self._expected) // free, LEAST_PLAN)
        if left:
            self.planned.append(min(left, MOST_SWEEPS))
            self._annealer.stretch(self.planned[-1])
        else:
            self._mark = MARKS

    def solution(self) -> np.ndarray:
        """[n] bool, the sides of the best cut."""
        return self._annealer.best_sides() if self._annealer.best > self._best else self._sides.copy()

    @property
    def even_steps(self) -> int:
        """Trials that cost about what the last ones did: a hot round takes many times what a cold one does.

        Where rounds are long, or one may be planned: the rest of this one; before the next a few, which tell
        what they cost.
        """
        if len(self._graph.indices) < LONG and self._rounds > 2:
            return 1 << 62
        if self._merge is not None:
            return max(1, self._merge.left)
        free = len(self._frozen) - int(self._frozen.sum())
        known = self._annealer.left if self._rounds == 1 or self._annealer.begun else 0  # not after a merge
        return known or max(1, min(max(SHORTEST, len(self._frozen) // PROBE), free // 2))

    @property
    def meeting_steps(self) -> int:
        """Trials between two meetings of several searches: those that fill a pool at first."""
        return POOL * SWEEPS * max(self._graph.n, 1)

    def join(self, searches: int) -> None:
        """Be one of so many searches: it changes nothing."""

    def news(self) -> np.ndarray:
        """[1, n] int8, the sides of the best cut."""
        return self.solution()[None, :].astype(np.int8)

    def meet(self, others: list[np.ndarray]) -> None:
        """The best cuts of other searches join the pool, where they are new to it."""
        rows, cols = self._graph.row_of(), self._graph.indices
        for sides in (news[0].astype(bool) for news in others):
            value = int(self._weights[sides[rows] != sides[cols]].sum()) // 2
            self._pool.add(value, sides, 0 if value > self.best else self._near)

    def hear(self, sides: np.ndarray) -> None:
        """A cut that others than searches have found: where it is better, the next round goes on from it."""
        value = int(self._weights[sides[self._graph.row_of()] != sides[self._graph.indices]].sum()) // 2
        if value > self.best:
            self._pool.add(value, sides, 0)
            self._best, self._found_at, self._sides = value, self.steps, sides.copy()
            self._heard = True

    def _random_sides(self) -> np.ndarray:
        words = [self._random.bits() for _ in range(-(-len(self._frozen) // 64))]
        bits = np.unpackbits(np.array(words, dtype="<u8").view(np.uint8), bitorder="little")
        return np.where(self._frozen, self._given_sides, bits[: len(self._frozen)].astype(bool))

    def _end_round(self) -> None:
        """Keep the round's cut where it is new, then begin the next round."""
        value, sides = self._annealer.best, self._annealer.best_sides()
        record = value > self._best
        self._rounds, self._expected = self._rounds + 1, 0  # what was expected of colder trials
        self._fruitless = 0 if record else self._fruitless + 1
        added = self._pool.add(value, sides, 0 if record else self._near)
        if record:
            self._best, self._found_at, self._sides = value, self._annealer.found_at, sides
        self._stale = 0 if added or record else self._stale + 1
        if self._stale > PATIENCE * POOL:
            self._new_pool()
        if self._heard:
            self._heard = False
            self._annealer.begin(self._sides, self._sweeps, WARM * self._field)
        elif self.planned and self._fruitless < POOL:
            self._annealer.begin(self._sides, FIRST_SWEEPS, COOL * self._field)
        elif len(self._pool.values) < POOL:
            self._annealer.begin(self._random_sides(), self._sweeps, HOT * self._field)
        elif self._rounds % 2:
            self._annealer.begin(self._combined(), self._sweeps, WARM * self._field)
        else:
            self._merge = self._merged()

    def _new_pool(self) -> None:
        self._pool = Pool(POOL, self._recombiner)
        self._pool.add(self._best, self._sides, 0)
        self._sweeps, self._stale = min(2 * self._sweeps, MOST_SWEEPS), 0

    def _combined(self) -> np.ndarray:
        """A combination of two cuts of the pool."""
        first, other = self._random.below(POOL), self._random.below(POOL - 1)
        other += other >= first
        sides = self._pool.sides
        return self._recombiner.combine(sides[first], sides[other], self._random)

    def _merged(self) -> Merge:
        """A round on the pieces that several cuts of the pool have in common."""
        places = list(range(POOL))
        for k in range(min(MERGED, POOL)):
            other = k + self._random.below(POOL - k)
            places[k], places[other] = places[other], places[k]
        cuts = [self._pool.sides[place] for place in places[:MERGED]]
        merge = self._merge_of(cuts[0], pieces_of(self._graph, cuts), self._random.bits())
        merge.begin(self._sweeps)
        return merge

    def _merge_of(self, sides: np.ndarray, pieces: np.ndarray, seed: int) -> Merge:
        heat = WARM * self._field
        return Merge(self._graph, self._weights, self._frozen, sides, pieces, heat, seed, self._compiled)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs on a search of the same graph, start and fixed: arrays and integers."""
        pool = np.array(self._pool.sides, dtype=bool).reshape(-1, len(self._frozen))
        own = {"best": self._best, "found_at": self._found_at, "sides": self._sides.copy()}
        own |= {"random": self._random.state, "sweeps": self._sweeps, "stale": self._stale}
        own |= {"rounds": self._rounds, "fruitless": self._fruitless, "expected": self._expected}
        own |= {"mark": self._mark, "planned": list(self.planned), "given": list(self._given)}
        own |= {"pool_values": np.array(self._pool.values, dtype=np.int64), "pool_sides": pool}
        own |= {f"round_{name}": array.copy() for name, array in self._annealer.arrays.items()}
        merge, none = self._merge, np.zeros(0, dtype=np.int64)
        own |= {"merge_given": none, "merge_pieces": none} | {f"merge_{name}": none for name in ARRAYS}
        if merge is None:
            return own
        own |= {"merge_given": merge.given.copy(), "merge_pieces": merge.pieces.copy()}
        return own | {f"merge_{name}": array for name, array in merge.state().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self._best, self._found_at = int(state["best"]), int(state["found_at"])
        self._sides = np.array(state["sides"], dtype=bool)
        self._random = SplitMix(int(state["random"]))
        self._sweeps, self._stale = int(state["sweeps"]), int(state["stale"])
        self._rounds, self._fruitless = int(state["rounds"]), int(state["fruitless"])
        self._expected, self._mark = int(state["expected"]), int(state["mark"])
        self.planned, self._given = ([int(each) for each in state[name]] for name in ("planned", "given"))
        self._pool = Pool(POOL, self._recombiner)
        self._pool.values = [int(value) for value in state["pool_values"]]
        self._pool.sides = [np.array(sides, dtype=bool) for sides in state["pool_sides"]]
        for name, array in self._annealer.arrays.items():
            array[...] = state[f"round_{name}"]
        self._merge = None
        if len(state["merge_given"]):
            given = np.array(state["merge_given"], dtype=bool)
            self._merge = self._merge_of(given, np.array(state["merge_pieces"], dtype=np.int64), 0)
            self._merge.restore({name: state[f"merge_{name}"] for name in ARRAYS})


def _checked(graph: Graph, start: np.ndarray | None, fixed: np.ndarray | None) -> np.ndarray:
    """`fixed` as int8, all -1 for None; raises ValueError where an argument does not fit the graph."""
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held of {graph.n}, needs all")
    fixed = np.full(graph.n, -1, dtype=np.int8) if fixed is None else np.asarray(fixed, dtype=np.int8)
    if fixed.shape != (graph.n,) or not np.isin(fixed, (-1, 0, 1)).all():
        raise ValueError(f"fixed: needs [{graph.n}] of -1, 0 and 1, got {fixed.shape}")
    if start is not None and (start.shape != (graph.n,) or start.dtype != bool):
        raise ValueError(f"start: needs [{graph.n}] bool, got {start.shape} {start.dtype}")
    return fixed


def _mean_field(graph: Graph, weights: np.ndarray) -> float:
    """The mean over nodes of the root of the sum of squares of their weights: a gain at random sides."""
    squares = np.square(weights, dtype=np.float64)
    if squares.sum() < 2**52:  # exact in any order
        squares = np.add.reduceat(np.append(squares, 0), graph.indptr[:-1]) * (graph.degrees() > 0)
    else:
        squares = np.bincount(graph.row_of(), weights=squares, minlength=graph.n)
    return math.fsum(np.sqrt(squares).tolist()) / graph.n if graph.n else 0.0
