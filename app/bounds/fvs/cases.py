"""The bound of one connected multigraph: inequalities, then cases told apart by nodes, the one of the least
bound first (branch and cut). All that is proved is kept as whole numbers (witness.py).
"""

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from app.bounds.case_proof import FREE, KEPT, TAKEN
from app.bounds.fvs.program import FeedbackProgram
from app.bounds.fvs.witness import PartBound
from app.graphs.joined import root_of
from app.graphs.keys import sorted_set
from app.graphs.multigraph import Multigraph
from app.rng import stream

ROUNDS, CASE_ROUNDS = 200, 4  # of inequalities, for the whole; for a case
STALLED = 12  # rounds in which the value hardly moves: the whole is left at that
MOVES = 1e-3  # of a unit of weight: hardly
BRIEF, PATIENT = 5e-2, 1  # the same of a case, and so many rounds
IDLE, MOST_HELD = 20, 6  # inequalities with slack are left out: so many, when there are so many for each node
DRAWN = 3  # drawn starts of a search for dense subgraphs
MOST_BYTES = 200_000_000  # of the multipliers of all cases
ROOTS = 400  # nodes from which light cycles are looked for at once


@dataclass(order=True)
class _Open:
    """A case not looked into yet; the number makes the order definite."""

    lower: int
    depth: int  # less one for each case that it is a part of
    number: int
    state: np.ndarray = field(compare=False)
    which: int = field(compare=False)  # the multipliers that prove `lower`


class PartSearch:
    """The work on one part.

    core, nodes   the part, and what its nodes are called
    lower, upper  no set weighs less; what the best weighs that is known, `best` [k] bool
    cases         that were looked into       solved   the bound is the weight of the best set
    whole         what to try next is cases, no more inequalities
    kinds         of inequalities that proofs have lists of
    """

    kinds = 3

    def __init__(self, core: Multigraph, nodes: np.ndarray) -> None:
        self.core, self.nodes = core, nodes
        self.best = np.ones(core.n, dtype=bool)
        self.upper = int(core.weights.sum())
        self.lower, self.cases, self.kept, self.divided, self.given_up = 0, 0, True, False, False
        self.program = self.program_of(core)
        self._draws = stream(0, "feedback cuts")
        self._y: list[tuple[np.ndarray, np.ndarray]] = []
        self._nbytes = 0
        self._split: dict[
            int, tuple[int, int, int]
        ] = {}  # of a case: the node, the case that keeps it, that takes it
        self._leaf: dict[int, int] = {}  # of other cases: multipliers
        self._open: list[_Open] = []
        self._now: _Open | None = None
        self._count = 1
        self._end = np.inf

    @property
    def solved(self) -> bool:
        """Whether the best set is proved."""
        return self.lower >= self.upper

    def offer(self, chosen: np.ndarray) -> None:
        """A set [k] bool of the part."""
        value = int(self.core.weights[chosen].sum())
        if value < self.upper:
            self.best, self.upper = chosen.copy(), value

    def until(self, clock: float) -> None:
        """When all has to be over, by time.perf_counter()."""
        self._end = clock

    def run(self) -> Iterator[None]:
        """The work in pieces, a linear program each."""
        self._begin()
        state = np.zeros(self.core.n, dtype=np.uint8)
        self._leaf[0] = self._multipliers(*self._none())
        root = _Open(0, 0, 0, state, self._leaf[0])
        yield from self._look_into(root, ROUNDS, STALLED, MOVES)
        self.divided = True
        while self._open and not self.solved and not self.given_up:
            case = heapq.heappop(self._open)
            if case.lower >= self.upper:
                self.lower = self.upper
                return
            self._now = case
            yield from self._look_into(case, CASE_ROUNDS, PATIENT, BRIEF)
            self._now = None
            self._tell()
        self._tell()

    def program_of(self, core: Multigraph) -> FeedbackProgram:
        """The program of the part."""
        return FeedbackProgram(core)

    def _begin(self) -> None:
        """The first inequalities."""
        find = self.program.separation
        self.program.add([*find.doubles(), find.whole()])

    def _none(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def _tell(self) -> None:
        """The least bound of all that is left."""
        if self.given_up:
            return
        waiting = [each.lower for each in (*self._open[:1], self._now) if each is not None]
        self.lower = max(self.lower, min([self.upper, *waiting]))

    def _multipliers(self, which: np.ndarray, y: np.ndarray) -> int:
        self._y.append((which.astype(np.int32), y))
        self._nbytes += 12 * len(y)
        if self._nbytes > MOST_BYTES:
            self.kept = False
            self._y = self._y[:1]  # there is no proof any more
            return 0
        return len(self._y) - 1

    def _rounded(self, bound: int) -> int:
        return max(-(-bound >> self.program.places), 0)

    # ---- one case ------------------------------------------------------------------------------------------

    def _look_into(self, case: _Open, rounds: int, patience: int, moves: float) -> Iterator[None]:
        program, number, state = self.program, case.number, case.state
        self.cases += 1
        values: list[float] = []
        program.fix(state)
        which = self._y[case.which] if self.kept else self._none()  # of the case that this is a part of
        best, left = program.bound(*which)
        for _ in range(rounds):
            if not program.solve(max(self._end - time.perf_counter(), 0.01)):
                self.given_up = not values
                break
            self._round_off()
            told = program.multipliers()
            bound, rest = program.bound(*told)
            if bound > best:
                best, which, left = bound, told, rest
                case.lower = max(case.lower, self._rounded(bound))
                if not number:
                    self._root_bound(told)
            if case.lower >= self.upper:
                break
            values.append(program.value)
            stalled = len(values) > patience and values[-1] < values[-1 - patience] + moves * self._scale()
            if program.held > MOST_HELD * self.core.n:
                program.drop_idle(IDLE)
            if stalled or not self._separate(bool(number)):
                break
            yield
        if self.given_up:
            return
        self._close(number, case, self._multipliers(*which), best, left)
        yield

    def _scale(self) -> float:
        return float(self.core.weights.min())

    def _root_bound(self, told: tuple[np.ndarray, np.ndarray]) -> None:
        """The bound of all, while there are no cases."""
        which = self._y[0] = (told[0].astype(np.int32), told[1])
        self.lower = max(self.lower, self._rounded(self.program.bound(which[0], which[1])[0]))

    def _separate(self, brief: bool) -> int:
        """Inequalities that the last optimum violates; how many were found."""
        program, x = self.program, self.program.x
        find, most = program.separation, max(30, self.core.n)
        cuts = find.by_tree(x, most)
        cliques = find.cliques(x, most // 2)
        cuts += find.dense(x, x < 1 - 1e-6)
        if not brief:
            for _ in range(DRAWN):
                cuts += find.dense(x, (x < 1 - 1e-6) & (self._draws.random(self.core.n) < 0.7))
            light = np.flatnonzero(x < 1 - 1e-6)
            roots = light if len(light) <= ROOTS else np.sort(self._draws.permutation(light)[:ROOTS])
            if len(roots) and len(cuts) < most // 2:
                cuts += find.by_roots(x, most, roots)
        return program.add(cuts, cliques, program.halves(most // 2))

    def _round_off(self) -> None:
        """A set from the last optimum: the forest takes nodes that x has least of, while it is one."""
        find, x = self.program.separation, self.program.x
        part, chosen = list(range(self.core.n)), np.ones(self.core.n, dtype=bool)
        double = find.double.tolist()
        for v in np.lexsort((-self.core.weights, np.round(x, 6))).tolist():
            near = [(u, edge) for u, edge in find.near[v] if not chosen[u]]
            roots = [root_of(part, u) for u, _ in near]
            if len(set(roots)) < len(roots) or any(double[edge] for _, edge in near):
                continue
            chosen[v] = False
            for each in roots:
                part[each] = v
        self.offer(chosen)

    def _close(self, number: int, case: _Open, which: int, bound: int, left: np.ndarray) -> None:
        """A case that is proved, or divided in two; nodes whose change would weigh too much are fixed."""
        state = case.state.copy()
        if self._rounded(bound) >= self.upper:
            self._leaf[number] = which
            return
        most = (self.upper - 1) << self.program.places
        free = state == FREE
        for v in np.flatnonzero(free & (bound + np.abs(left) > most)).tolist():
            kind = KEPT if left[v] > 0 else TAKEN
            if kind == KEPT and self._closing(state, v) is not None:
                continue  # the next bound is to tell
            kept, taken = self._divide(number, v)
            number, closed = (kept, taken) if kind == KEPT else (taken, kept)
            self._leaf[closed] = which
            state[v] = kind
        v = self._chosen(state)
        if v < 0:  # what is taken is a set, of a known weight
            self._leaf[number] = self._multipliers(*self._none())
            self.offer(state == TAKEN)
            return
        self._branch(number, case, state, v, which, bound, left)

    def _divide(self, number: int, v: int) -> tuple[int, int]:
        """Two cases in the place of one: v is kept, v is taken."""
        first, second = self._count, self._count + 1
        self._count += 2
        self._split[number] = v, first, second
        self._leaf.pop(number, None)
        return first, second

    def _branch(
        self, number: int, case: _Open, state: np.ndarray, v: int, which: int, bound: int, left: np.ndarray
    ) -> None:
        """The case with a node kept, and the case with it taken."""
        first, second = self._divide(number, v)
        rest, gained = int(left[v]), max(-int(left[v]), 0)
        taken = state.copy()
        taken[v] = TAKEN
        self._push(_Open(self._rounded(bound + max(rest, 0)), case.depth - 1, second, taken, which))
        cycle = self._closing(state, v)
        if cycle is not None:
            self.program.add([cycle])
            number = self.program.pool.keys[(0, cycle)]
            enough = np.array([self.upper << self.program.places])
            self._leaf[first] = self._multipliers(np.array([number]), enough)
            return
        kept = state.copy()
        kept[v] = KEPT
        self._push(_Open(self._rounded(bound + gained), case.depth - 1, first, kept, which))

    def _push(self, case: _Open) -> None:
        self._leaf[case.number] = case.which
        if case.lower < self.upper:
            heapq.heappush(self._open, case)

    def _chosen(self, state: np.ndarray) -> int:
        """The node that tells two cases apart: a fractional one of many edges; -1: none is free."""
        free = np.flatnonzero(state == FREE)
        if not len(free):
            return -1
        x = self.program.x[free]
        score = np.minimum(x, 1 - x) + 1e-3
        return int(free[(score * self._degrees(state)[free]).argmax()])

    def _degrees(self, state: np.ndarray) -> np.ndarray:
        """[n] of each node its edges to nodes that are not taken."""
        find = self.program.separation
        live = (state[find.u] != TAKEN) & (state[find.v] != TAKEN)
        ends = np.concatenate([find.u[live], find.v[live]])
        return np.bincount(ends, minlength=self.core.n) + 1

    def _closing(self, state: np.ndarray, v: int) -> tuple | None:
        """A cycle of v and nodes that are kept; None: there is none."""
        find = self.program.separation
        kept = state == KEPT
        for u, edge in find.near[v]:
            if kept[u] and find.double[edge]:
                return ((min(u, v), max(u, v)),) * 2
        before, origin = {}, {}
        for first, _ in find.near[v]:
            if not kept[first]:
                continue
            if first in before:
                return _ring(before, first, origin, v, first)
            before[first], origin[first] = v, first
            waiting = [first]
            while waiting:
                a = waiting.pop()
                for b, _ in find.near[a]:
                    if kept[b] and b not in before:
                        before[b], origin[b] = a, first
                        waiting.append(b)
        return None

    # ---- the proof -----------------------------------------------------------------------------------------

    def proof(self) -> PartBound | None:
        """What proves the bound, or None where too much of it was to be kept."""
        if not self.kept or not (self._leaf or self._split):
            return None
        cases, waiting, used = [], [0], {}
        while waiting:
            number = waiting.pop()
            if number in self._split:
                v, first, second = self._split[number]
                cases.append(v)
                waiting += [second, first]
            else:
                cases.append(-1 - used.setdefault(self._leaf.get(number, 0), len(used)))
        return self._told(cases, [self._y[which] for which in used])

    def _used(self, y: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, list[list]]:
        """The places of inequalities among those that are used, and these by kind."""
        numbers = sorted_set(np.concatenate([np.zeros(0, np.int32), *(which for which, _ in y)]))
        keys = list(self.program.pool.keys)
        base = {each for number in numbers.tolist() if keys[number][0] == 2 for each in keys[number][1]}
        own = sorted(base.union(numbers.tolist()), key=lambda number: (self._rank(keys[number]), number))
        place = np.zeros(len(keys), dtype=np.int32)
        place[own] = np.arange(len(own))
        kinds = [[keys[i][1] for i in own if self._rank(keys[i]) == kind] for kind in range(self.kinds)]
        return place, kinds

    def _rank(self, key: tuple) -> int:
        """Which list of a proof an inequality is in; halves in the last."""
        return int(key[0])

    def _told(self, cases: list[int], y: list[tuple[np.ndarray, np.ndarray]]) -> PartBound:
        """The inequalities that are used, subgraphs before cliques."""
        place, (cuts, cliques, halves) = self._used(y)
        ends = np.array([edge for cut in cuts for edge in cut], dtype=np.int32).reshape(-1, 2)
        return PartBound(
            self.nodes.astype(np.int64), ends_of(cuts), ends[:, 0].copy(), ends[:, 1].copy(),
            ends_of(cliques),
            np.array([node for clique in cliques for node in clique], dtype=np.int32), ends_of(halves),
            place[[number for each in halves for number in each]].astype(np.int32),
            np.array(cases, dtype=np.int64), ends_of([which for which, _ in y]),
            np.concatenate([np.zeros(0, np.int32), *(place[which] for which, _ in y)]).astype(np.int32),
            np.concatenate([np.zeros(0, np.int64), *(value for _, value in y)]), self.program.places,
        )  # fmt: skip


def ends_of(lists: list) -> np.ndarray:
    """[k+1] int64, where each of some lists begins where they lie one behind the other, and the end."""
    return np.append(0, np.cumsum([len(each) for each in lists])).astype(np.int64)


def _ring(before: dict[int, int], first: int, origin: dict[int, int], v: int, last: int) -> tuple:
    """The cycle from v to an earlier neighbour's tree, in which `last` was met."""
    nodes = [last]
    while nodes[-1] != v:
        nodes.append(before[nodes[-1]])
    ring = zip(nodes, [*nodes[1:], nodes[0]])
    return tuple(sorted((min(a, b), max(a, b)) for a, b in ring))
