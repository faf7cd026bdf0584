"""One case of a Steiner tree problem: bounds by dual ascent from several roots, then by a linear program.

Each bound leaves out arcs that no shorter tree than the best known has, which makes the next one better.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.bounds import highs
from app.bounds.steiner.ascent import Ascent
from app.bounds.steiner.cuts import Cut, violated
from app.bounds.steiner.net import Net
from app.bounds.steiner.program import DirectedProgram, cuts_of
from app.bounds.steiner.trees import Best
from app.bounds.steiner.witness import LARGEST, Heights

ASCENT, CUTS = "dual ascent", "directed cuts"
SLICE_WORK = 1 << 23  # entries that an ascent goes through in one slice
WORTH = 0.02  # of the edges: what a further root has to leave out for another one to be tried
IDLE_ROOTS = 3  # roots in a row that left out less
FEWEST_IDLE = 20  # rows without use that are worth dropping
MOST_FIRST = 4000  # cuts of the ascent that a program begins with
MOST_CUTS = 400  # that a round adds
SLOW = 1e-3  # of what is missing: a round that gains less is idle
SMALLER = 0.8  # of a program's arcs: so few are left that it is made anew
PATIENCE = 30  # idle rounds in a row that end those of a case
ROUNDS, LOOK_SECONDS = 12, 2.0  # between two looks at what duals leave out
SHARE = 0.8  # of the time that is left, that one solution of a program may take
MARGIN = 1e-6  # of the best length: how far beyond what is wanted a program's value has to be
FINER = 1024  # lengths that count what a point has are this much finer


@dataclass
class Effort:
    """What is spent on a case: roots of ascents, whether there is a program, and its rounds."""

    roots: int
    program: bool
    rounds: int
    patience: int = PATIENCE


class CaseWork:
    """The work on one case.

    net      what is left of it            closed   no tree in it is shorter than the best
    lower    no tree in it is shorter, or than best.upper
    heights  what proves it, in order      method   of the last of them that raised the bound
    proof    the one that proves `lower`, or None: a case above has it
    cuts     of the last program, in the core's numbers
    """

    def __init__(self, net: Net, best: Best, lower: int = 0, cuts: list[Cut] | None = None) -> None:
        self.net, self.best, self.lower, self.method = net.smaller(net.alive), best, lower, ASCENT
        self.closed, self.heights, self.cuts = False, [], cuts or []
        self.proof: Heights | None = None
        self._running: Ascent | None = None  # one that has raised `lower` already
        self._x: tuple[np.ndarray, Net] | None = None  # a point, and the net of it

    def run(self, effort: Effort, until: "Clock") -> Iterator[None]:
        """All the work, in slices."""
        yield from self._ascents(effort.roots)
        if not self.closed and effort.program and highs.available() and until.fits(self.net):
            yield from self.cut(effort.rounds, until, effort.patience)

    def told(self) -> list[Heights]:
        """What proves `lower` now, in the midst of an ascent as well."""
        return self.heights if self._running is None else [*self.heights, self._running.heights()]

    @property
    def told_size(self) -> tuple[int, int]:
        """How many heights, and their bytes; of those of an ascent under way a guess."""
        return 1 + len(self.heights), sum(each.nbytes for each in self.heights)

    def x_of(self, net: Net) -> np.ndarray | None:
        """[nnz] the last point of the program in terms of a net, or None."""
        if self._x is None:
            return None
        x, other = self._x
        node = other.node
        known = node[other.row] * (node[-1] + 1) + node[other.indices]  # ascending
        wanted = net.node[net.row] * (node[-1] + 1) + net.node[net.indices]
        place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        return np.where(known[place] == wanted, x[place], 0.0) if len(known) else None

    # ---- dual ascent ---------------------------------------------------------------------------------------

    def _ascents(self, roots: int) -> Iterator[None]:
        idle, best = 0, (-1, self.net.node[self.net.root])
        for number in range(roots):
            root = self._root(number)
            edges = len(self.net.indices)
            bound = yield from self._ascent(root)
            if self.closed:
                return
            best = max(best, (bound, int(self.net.node[self.net.root])))
            idle = 0 if edges - len(self.net.indices) > WORTH * edges else idle + 1
            if idle >= IDLE_ROOTS:
                break
        place = np.flatnonzero(self.net.node == best[1])
        self.net = self.net.rooted_at(int(place[0]))

    def _root(self, number: int) -> int:
        """The root of the next ascent, apart from those before: the net's own, then others by turns."""
        if not number:
            return self.net.root
        terminals = self.net.terminals
        return int(terminals[int(len(terminals) * (number * 0.6180339887498949 % 1.0))])

    def _ascent(self, root: int) -> Iterator[None]:
        net, best = self.net.rooted_at(root), self.best
        ascent = Ascent(net, best.upper)
        while not ascent.run(SLICE_WORK):
            self._tell(ascent)
            yield
        self._tell(ascent)
        yield
        best.offer(net, np.where(ascent.room[net.back] == 0, net.length, -1))
        yield
        if self._running is not None:
            self.lower, self._running = min(self.lower, ascent.lower - 1), None
        self.take(net, 0, ascent.lower, ascent.heights(), ascent.room, ASCENT)
        yield
        return ascent.lower

    def _tell(self, ascent: Ascent) -> None:
        """What an ascent has come to, before it has been looked at what it leaves out."""
        lower = min(ascent.lower, self.best.upper)
        if lower > self.lower:
            self.lower, self._running = lower, ascent

    def take(
        self, net: Net, places: int, bound: int, heights: Heights, room: np.ndarray, method: str
    ) -> None:
        """What heights prove of a net, in multiples of 2^-places: the bound, and arcs that are out."""
        gap = ((self.best.upper - 1) << places) - bound
        rounded = min(-(-bound >> places), self.best.upper)
        if gap >= 0:
            useful = net.useful(room, gap)
            from_root = net.distances(room, gap)[0]
            self.closed = bool((from_root[net.wanted] > gap).any())
        if gap < 0 or self.closed:
            self.closed, self.lower, self.method = True, self.best.upper, method
            self.heights.append(heights)
            return
        left = net.smaller(useful)
        better = rounded > self.lower
        if better:
            self.lower, self.method, self.proof = rounded, method, heights
        same = net.root == self.net.root and left.alive.sum() < net.alive.sum()
        if better or same or len(left.indices) < len(net.indices):
            self.heights.append(heights)
            self.net = left

    # ---- the linear program --------------------------------------------------------------------------------

    def cut(self, rounds: int, until: "Clock", patience: int = PATIENCE) -> Iterator[None]:
        """Rounds of the program, in slices."""
        program = self._begin_program()
        value, idle, since = -np.inf, 0, 0
        looked = time.perf_counter()  # at what duals leave out
        for number in range(rounds):
            solved, net = program.solve(SHARE * until.left()), program.net
            cuts: list[Cut] = []
            if solved:
                self._x = program.x, net
                self._try_trees(net, program.x, number)
                cuts = self._separate(program, number)
            gained = program.value > value + SLOW * (self.best.upper - program.value)
            idle, value = 0 if gained else idle + 1, max(value, program.value)
            ends = not cuts or idle > patience or number == rounds - 1
            since += 1
            if ends or since >= ROUNDS or time.perf_counter() - looked > LOOK_SECONDS:
                self.take(net, *program.proved(self.best.upper), CUTS)
                since, looked = 0, time.perf_counter()
            if self.closed or ends:
                self._end(program)
                return
            if self.net.alive.sum() < SMALLER * program.arcs:
                self._end(program)
                program = self._begin_program()
            else:
                program.drop_idle(FEWEST_IDLE)
                program.add(cuts)
            yield

    def _begin_program(self) -> DirectedProgram:
        """With the cuts of an ascent, and those known from elsewhere."""
        net = self.net
        ascent = Ascent(net, self.best.upper)
        ascent.run(1 << 40)
        cuts = cuts_of(net, ascent.heights(), MOST_FIRST)
        place = np.full(self.best.core.n, -1)
        place[net.node] = np.arange(net.n)
        for cut in self.cuts:
            nodes = place[cut.nodes]
            nodes, terminal = nodes[nodes >= 0], int(place[cut.terminal])
            if terminal >= 0 and net.wanted[terminal] and not (nodes == net.root).any():
                cuts.append(Cut(terminal, nodes))
        return DirectedProgram(net, cuts)

    def _end(self, program: DirectedProgram) -> None:
        """Keep the cuts that count."""
        node = program.net.node
        self.cuts = [Cut(int(node[cut.terminal]), node[cut.nodes]) for cut in program.used()]

    def _separate(self, program: DirectedProgram, number: int) -> list[Cut]:
        """Cuts that the last point violates, none where it proves enough."""
        if program.value > self.best.upper - 1 + MARGIN * self.best.upper:
            return []
        net = program.net
        others = net.terminals[net.terminals != net.root]
        turned = np.roll(others, -(number * MOST_CUTS) % max(len(others), 1))
        return violated(net, program.x, turned, MOST_CUTS)

    def _try_trees(self, net: Net, x: np.ndarray, number: int) -> None:
        """Along arcs that are nearly free where the program uses them."""
        if number % 3:
            return
        x = np.clip(np.maximum(x, x[net.back]), 0.0, 1.0)
        finer = FINER if net.length.sum() < LARGEST // FINER else 1
        weight = np.rint(net.length * (1.0 - x) * finer).astype(np.int64) + 1
        self.best.offer(net, np.where(net.alive | net.alive[net.back], weight, -1))


@dataclass
class Clock:
    """When all has to be over, and what is worth a linear program."""

    end: float = np.inf
    most_arcs: int = 60_000

    def left(self) -> float:
        """Seconds."""
        return min(max(self.end - time.perf_counter(), 0.01), 1e6)

    def fits(self, net: Net) -> bool:
        """Whether a program of a net is worth its time."""
        return int(net.alive.sum()) <= self.most_arcs
