"""Local search for minimum vertex cover, hence for maximum independent set: methods, turns, checkpoints.

`swap`     iterated local search by swaps of one node for two (app/search/cover/swap.py)
`anneal`   simulated annealing (app/search/cover/anneal.py): on sparse graphs the best of all, given time
`numvc`    NuMVC, the best node of the whole cover leaves (app/search/cover/exchange.py)
`fast`     FastVC, the best of 50 drawn nodes leaves, edges weigh the same
`penalty`  phased local search on the independent set (app/search/cover/penalty.py), up to 5,000 nodes: for
           graphs whose optimum hides behind nodes of misleading degree
`auto`     `swap` and `anneal` by turns on more than 5,000 nodes, with `numvc` on sparse graphs of fewer; else
           `numvc` and `penalty`, where not even one pair in five is an edge with `anneal`: of these the one
           that has come to the better cover by itself has the longer turns
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.rng import SplitMix
from app.search.annealing import PROPOSALS
from app.search.cover.anneal import Anneal
from app.search.cover.exchange import Exchange
from app.search.cover.independent import IndependentSet
from app.search.cover.penalty import LARGEST, PenaltySearch
from app.search.cover.start import greedy_cover, without_redundant
from app.search.cover.swap import Swap
from app.toolbox import Search

METHODS = ("auto", "anneal", "swap", "numvc", "fast", "penalty")
SAMPLES = 50  # nodes drawn for a removal (Cai 2015)
TURN = 1_000  # steps of a short turn
LEAD = 7  # such turns for the method that has reached a better cover by itself than the others
OPENING = 10_000  # steps of the phased search before all turns: it soon gets far from a greedy cover
CALL = 200_000_000  # nanoseconds that one call of a kernel may take, roughly
SPARSE = 32  # mean degree up to which swaps are worth their time on few nodes
LEAST_CEILING = 10  # mean edge weight that makes NuMVC forget: half the nodes, but on tiny graphs
WEIGHTED = 8  # times as long takes an exchange of several nodes, as measured
HEAVIEST = 2**31 - 1

Method = Exchange | PenaltySearch | Anneal | Swap


@dataclass
class _Turn:
    """One method of a search: its turn lasts about as long as `steps` moves of the slowest method.

    time      of a move, in ns, as guessed from the graph
    moves     in a step, while its turn lasts
    reached   the cost of the best cover that the method has come to by itself
    """

    name: str
    search: Method
    steps: int
    time: int
    moves: int = 1
    reached: int = 1 << 62

    def pace(self) -> int:
        """Nanoseconds of a move, roughly: by what the search has counted, where it counts and has begun."""
        if self.counted:
            return max(1, self.search.work // self.search.steps)
        return self.time

    @property
    def counts(self) -> bool:
        """Whether the search counts what its moves cost: on some graphs far more than on others."""
        return isinstance(self.search, IndependentSet)

    @property
    def counted(self) -> bool:
        """Whether it has made enough moves for that."""
        return self.counts and self.search.steps >= TURN

    def begin(self, slowest: int, steps: int) -> int:
        """Set `moves` for a turn as long as so many moves that take `slowest` ns; returns its steps."""
        pace = self.pace()
        self.moves = max(1, slowest // pace)
        if not self.counts:
            return steps
        even = max(1, steps * slowest // (self.moves * pace))
        return even if self.counted else min(even, TURN)

    def cost(self, total: int) -> int:
        """Cost of its best cover, of nodes that weigh `total` together."""
        return self.search.best if isinstance(self.search, Exchange) else total - self.search.best


class CoverSearch(Search):
    """A search for a cover of least cost; a function of the graph, the start, the seed and the steps made.

    graph     whole; edge weights are not read
    seed      an integer, taken modulo 2^64
    start     [n] bool, a cover, or None: greedy
    weights   [n] int64 positive node weights below 2^31, or None: all one. graph.node_weights are not read
    method    one of METHODS
    compiled  False: the same without the compiled kernels

    steps     made so far. A step is one exchange (with node weights: two nodes out, as many in as fit) of the
              slowest method, or as many moves of another one as take about as long
    best      cost of the best cover found, found_at the step it was found in
    done      True when no better cover can exist; then run() does nothing
    """

    def __init__(
        self,
        graph: Graph,
        seed: int,
        start: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        method: str = "auto",
        compiled: bool = True,
    ) -> None:
        _check(graph, weights, method)
        self.graph = graph
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
        self.compiled = compiled
        self.steps = self.found_at = 0
        self._price = np.ones(graph.n, dtype=np.int64) if self.weights is None else self.weights
        self._total = int(self._price.sum())
        self._least = int(self._price[graph.degrees() > 0].min(initial=HEAVIEST)) if graph.edges else 0
        self._solution = self._started(start)
        self.best = self._cost(self._solution)
        self._turns = self._methods(method, SplitMix(seed))
        self._slowest = max(turn.time for turn in self._turns)
        phased = any(turn.name == "penalty" for turn in self._turns)
        self._apart = len(self._turns) > 1 and phased  # methods that do not go on from each other's covers
        # the opening is the phased search's turn, which comes last
        self._now, steps = (len(self._turns) - 1, OPENING) if self._apart else (0, self._turns[0].steps)
        self._left = self._turns[self._now].begin(self._slowest, steps)

    def _started(self, start: np.ndarray | None) -> np.ndarray:
        """[n] bool, the cover to start from."""
        if start is None:
            return greedy_cover(self.graph, self.weights, self.compiled)
        return without_redundant(self.graph, self._checked(start), self.weights, self.compiled)

    def _methods(self, method: str, draws: SplitMix) -> list[_Turn]:
        """The methods that take turns."""
        graph, weighted = self.graph, self.weights is not None
        turns = _auto(graph.n, len(graph.indices), weighted) if method == "auto" else {method: TURN}
        return [
            _Turn(name, self._search(name, draws.bits()), steps, _move_time(name, graph, weighted))
            for name, steps in turns.items()
        ]

    def _search(self, name: str, random: int) -> Method:
        n, common = self.graph.n, (self.graph, self._solution, self.weights, random)
        if name == "penalty":
            return PenaltySearch(*common, self.compiled)
        if name in ("anneal", "swap"):
            return (Anneal if name == "anneal" else Swap)(*common, self.compiled)
        if name == "numvc":
            return Exchange(*common, 0, max(n // 2, LEAST_CEILING), self.compiled)
        # Few nodes: a sample as large as the cover would always find the same one.
        return Exchange(*common, min(SAMPLES, 1 + n // 16), 0, self.compiled)

    @property
    def done(self) -> bool:
        """True when no better cover can exist: no edge, or the lightest node with edges covers them all."""
        return self.best <= self._least

    def run(self, steps: int) -> None:
        """Make `steps` more steps, fewer only if the search is done. How they are sliced changes nothing."""
        while steps > 0 and not self.done:
            if not self._left:
                self._next_turn()
            turn = self._turns[self._now]
            made = min(steps, self._left, max(1, CALL // (turn.moves * turn.pace())))
            self._advance(turn, made)
            steps -= made

    def _next_turn(self) -> None:
        """The next method's turn. A longer one is due to a method that is ahead by itself."""
        self._now = (self._now + 1) % len(self._turns)
        turn = self._turns[self._now]
        others = [other.reached for other in self._turns if other is not turn]
        ahead = self._apart and turn.reached < min(others)
        self._left = turn.begin(self._slowest, max(turn.steps, LEAD * TURN) if ahead else turn.steps)
        if not isinstance(turn.search, PenaltySearch) and self.best < turn.cost(self._total):
            turn.search.load(self._solution)  # what others found

    def _advance(self, turn: _Turn, steps: int) -> None:
        """Some steps of a turn."""
        search, earlier = turn.search, turn.cost(self._total)
        before = search.steps
        search.run(steps * turn.moves)
        cost = turn.cost(self._total)
        if cost < earlier:
            turn.reached = cost
        if cost < self.best:
            self.best = cost
            self._solution = search.solution()
            self.found_at = self.steps - (before - search.found_at) // turn.moves
        self.steps += steps
        self._left -= steps

    def solution(self) -> np.ndarray:
        """[n] bool, the best cover found; a copy."""
        return self._solution.copy()

    def offer(self, in_cover: np.ndarray) -> None:
        """Go on from a cover [n] bool that was found elsewhere, if it is better than the best."""
        cover = without_redundant(self.graph, self._checked(in_cover), self.weights, self.compiled)
        if self._cost(cover) >= self.best:
            return
        self.best, self.found_at, self._solution = self._cost(cover), self.steps, cover
        for turn in self._turns:
            turn.search.load(cover)

    def state(self) -> dict[str, Any]:
        """Everything that changes, as arrays (copies) and integers: restore() goes on from it bit for bit."""
        state = {
            "steps": self.steps,
            "best": self.best,
            "found_at": self.found_at,
            "solution": self.solution(),
            "turn": np.array([self._now, self._left]),
            "moves": np.array([turn.moves for turn in self._turns]),
            "reached": np.array([turn.reached for turn in self._turns]),
        }
        for turn in self._turns:
            state |= {f"{turn.name}.{key}": value for key, value in turn.search.state().items()}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state() of a search on the same graph with the same weights and method."""
        self.steps, self.best, self.found_at = (int(state[key]) for key in ("steps", "best", "found_at"))
        self._solution = np.array(state["solution"], dtype=bool)
        self._now, self._left = np.asarray(state["turn"]).tolist()
        for i, turn in enumerate(self._turns):
            turn.moves, turn.reached = int(state["moves"][i]), int(state["reached"][i])
            prefix = f"{turn.name}."
            turn.search.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def _cost(self, in_cover: np.ndarray) -> int:
        return int(self._price[in_cover].sum())

    def _checked(self, in_cover: np.ndarray) -> np.ndarray:
        """The cover itself; ValueError if it is none."""
        graph = self.graph
        if np.shape(in_cover) != (graph.n,) or np.asarray(in_cover).dtype != bool:
            raise ValueError(f"{graph.name}: a cover is [{graph.n}] bool")
        rows = graph.row_of()
        bare = np.flatnonzero(~(in_cover[rows] | in_cover[graph.indices]))
        if len(bare):
            u, v = rows[bare[0]], graph.indices[bare[0]]
            raise ValueError(f"{graph.name}: no cover, edge {u}-{v} has no end in it")
        return in_cover


def _move_time(name: str, graph: Graph, weighted: bool) -> int:
    """Nanoseconds of a move, roughly: of an exchange two rows and the nodes looked at, else some passes."""
    if name == "penalty":
        return graph.n // 6 + 80
    if name == "anneal":
        return PROPOSALS * (8 + min(graph.n // 4096, 24))
    if name == "swap":
        return 300 + 50 * graph.edges // max(graph.n, 1) + 40 * min(graph.n // 4096, 24)
    looks = 10 * SAMPLES if name == "fast" else graph.n // 16
    return (5 * graph.edges // max(graph.n, 1) + looks + 100) * (WEIGHTED if weighted else 1)


def _auto(n: int, nnz: int, weighted: bool) -> dict[str, int]:
    """The methods that `auto` takes for a graph, and how long their turns are."""
    if n > LARGEST:  # after a turn the next method reads all edges, to go on from a better cover
        turn = TURN + nnz // 16
        return {"swap": turn // 3 if weighted else turn, "anneal": turn}
    if 20 * nnz < n * n:
        others = {"anneal": TURN, "numvc": TURN}
        return {"swap": TURN} | others if nnz < SPARSE * n else others
    # Penalties help where the graph is dense; elsewhere they only guard against graphs made to mislead.
    if 5 * nnz >= n * n:
        return {"numvc": TURN, "penalty": TURN}
    return {"numvc": 8 * TURN, "anneal": 7 * TURN, "penalty": TURN}


def _check(graph: Graph, weights: np.ndarray | None, method: str) -> None:
    """ValueError for what a search cannot work on."""
    if method not in METHODS:
        raise ValueError(f"method: found {method!r}; one of {', '.join(METHODS)} is needed")
    if not graph.whole:
        raise ValueError(f"{graph.name}: rows {graph.lo}..{graph.hi - 1} held, a search needs all {graph.n}")
    if len(graph.indices) > HEAVIEST:
        raise ValueError(f"{graph.name}: {graph.edges} edges, a search takes fewer than 2^30")
    if weights is None:
        return
    if np.shape(weights) != (graph.n,) or not np.issubdtype(np.asarray(weights).dtype, np.integer):
        raise ValueError(f"weights: [{graph.n}] whole numbers are needed")
    if graph.n and (np.min(weights) < 1 or np.max(weights) > HEAVIEST):
        raise ValueError("weights: a node weight below 1 or above 2^31 - 1")
