"""Maximum cut: two sides of the nodes with the most weight between them, by moves that last or are undone."""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.graphs.graph import Graph
from app.numerics.elementary import log
from app.problems.problem import FIRST_ALIVE, GRAIN_PARTS, room_for_features
from app.rng import stream
from app.search.cut.baselines import CUT_BASELINES
from app.search.cut.tools import CutTools
from app.search.solution_text import read_sides, sides_text
from app.toolbox import Instance

Array = Any
SINGLE = 6  # up to here each part of a grain is a level of gains
FINE = GRAIN_PARTS * SINGLE
# The least gain of each level, in parts of a grain: up to 62 grains.
LEVELS = (*range(1, FINE + 1), *(GRAIN_PARTS * (SINGLE + k + k * k) for k in range(1, 8)))
GAINS = 2 * len(LEVELS) + 1  # levels of a gain: -19..19
RESTS = 10  # a node that has moved rests for a share 1/RESTS of the nodes, in moves
AGES = 6  # 0 (it rests), 1-2, 3-6, 7-14, 15-30, 31 and more rests since a move
OLDEST = AGES - 1
FIRST = FIRST_ALIVE + 1
_SIZES = np.searchsorted(LEVELS, np.arange(LEVELS[-1] + 1), side="right").astype(np.int32)
LEVEL_OF = np.concatenate([-_SIZES[:0:-1], _SIZES])  # of gains from -LEVELS[-1] parts to as many
AGE_OF = np.array([(1 + age).bit_length() - 1 for age in range(1 << OLDEST)], dtype=np.int32)  # in rests


class CutTotals(NamedTuple):
    """The totals of two sides. The first four are sums over nodes (of candidates: before those that rest).

    alive        nodes
    gain_sum     sum over nodes of what moving each adds to the cut
    improving    nodes whose move gains something
    candidates   nodes that may be moved; those that rest (Problem.rest) may not
    steps        moves made, and transitions without one
    best         the largest cut so far, in units
    weight       sum of the weights of both directions of every edge
    edges        edges
    grain        what gains are measured in, the mean |weight| (app/rl/sides.py), in units
    """

    alive: int
    gain_sum: int
    improving: int
    candidates: int
    steps: int
    best: int
    weight: int
    edges: int
    grain: int

    @property
    def cut(self) -> int:
        """The weight between the sides: each edge inside a side counts 2w in gain_sum, one between -2w."""
        return (self.weight - self.gain_sum) // 4

    @property
    def mean_degree(self) -> float:
        """Edges at a node."""
        return max(2 * self.edges, 1) / max(self.alive, 1)


def level_of(xp: Any, field: Array) -> Array:
    """[k] the level -19..19 of gains in parts of a grain, whole numbers."""
    if xp is np:
        return LEVEL_OF[np.clip(field, -LEVELS[-1], LEVELS[-1]).astype(np.int32) + LEVELS[-1]]
    size, level = xp.where(field < 0, -field, field), 0
    for least in LEVELS:
        level = level + (size >= least)
    return xp.where(field < 0, -level, level)


def age_of(xp: Any, age: Array) -> Array:
    """[k] 0..AGES-1, the whole part of log2(1 + age) of ages in rests, whole numbers, cut."""
    if xp is np:
        return AGE_OF[np.minimum(age, len(AGE_OF) - 1).astype(np.int32)]
    return sum((age >= (1 << k) - 1) * 1 for k in range(1, AGES))


class _Cut:
    """What both ways to build a cut share."""

    sense = "maximise"
    solution = "cut"
    dynamics = "sides"
    closed = False
    adjacent = True
    redundancy = ""
    plays_on = sees_weights = False
    degree_codes = sized_codes = False
    own_degree = False
    mirrors = False
    totals = CutTotals
    baselines: ClassVar = CUT_BASELINES
    bounds: ClassVar = {}
    complemented = False
    unit_share = 1.0  # the objective is a whole number of so many units of the weights
    largest_parts, largest_age = LEVELS[-1], len(AGE_OF) - 1  # that `code` tells from larger ones
    known = False

    def rest(self, n: int) -> int:
        """Transitions for which a node may not move again."""
        return 0

    def reward(self, before: CutTotals, after: CutTotals, chosen: int, shaping: str) -> float:
        """The gain of the best cut, in grains and square roots of the mean degree."""
        return (after.best - before.best) / _scale(before)

    def objective(self, chosen: int, totals: CutTotals) -> int:
        """The best cut, in units."""
        return totals.best

    def solution_of(self, chosen_at: np.ndarray) -> np.ndarray:
        """The nodes that the best state has on the other side."""
        return chosen_at >= 0

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """The solution as it is."""
        return solution_all

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """None: any two sides are a cut."""
        return None

    def bound(self, n: int, lower: int) -> int:
        """An upper bound."""
        return lower

    def toolbox(self, instance: Instance) -> CutTools:
        """Local search and bounds of cuts."""
        return CutTools(instance, self)

    text, read = staticmethod(sides_text), staticmethod(read_sides)


class MaxCut(_Cut):
    """State: the sides, when each node moved last, and how good the best cut was. Nodes may move again.

    Source     ECO-DQN, Barrett, Clements, Foerster, Lvovsky 2020: every node may be moved again and again, an
               episode has 2n moves, the best cut met is the answer
    Reward     the improvement over the best cut so far, and with shaping what the move adds to the cut
    Differs    1. all episodes of a graph start from the same random sides; no reward for a local optimum
               2. gains and times since a move are rounded to levels, so that a node is a code; messages see
               the signs of weights and not their size, which the gains alone carry. Where an edge is negative
               a neighbour on one side acts like one on the other where it is positive: it shows its mirror
               image (`mirror`), so that turning a node with the signs of its edges changes nothing, and a
               policy that has learned without signs knows what to do with them
               3. a node that has moved rests for n/10 moves (Glover 1989): the best scores would else
               move a few nodes to and fro, and on large graphs nothing else changes meanwhile. Times count
               rests, so that they mean the same on graphs of any size
               4. neighbour sums are divided by the node's degree, not by the mean: hubs of large graphs have
               many times the largest degree of training, and such sums outweigh all gains
    """

    name = "maxcut"
    ordered = True
    own_degree = True
    mirrors = True
    first_candidate = FIRST + 2 * GAINS
    feature_counts: ClassVar = {"scale_free": 17}
    own_features = (12, 13, 14, 15, 16)
    shared_numbers = 1

    def rest(self, n: int) -> int:
        """A share of the nodes, so that it means the same on graphs of any size."""
        return max(n // RESTS, 1)

    def start_marks(self, n: int) -> np.ndarray:
        """[n] int8, +1 or -1 at random, the same for all graphs of n nodes."""
        return (1 - 2 * stream(0, "sides", n).integers(0, 2, n)).astype(np.int8)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Nodes, their gains, those that gain, nodes again."""
        alive = np.count_nonzero(mark)
        return np.array([alive, field.sum(), np.count_nonzero(field > 0), alive], dtype=np.int64)

    def change(self, gains: int, improving: int, free: int) -> np.ndarray:
        """[T] int64, what changes of the sums of `shares` are when their parts that can change do.

        gains, improving, free   the sum of the gains, nodes that gain, those of them on the first side
        """
        return np.array([0, gains, improving, 0], dtype=np.int64)

    def code(
        self, xp: Any, mark: Array, field: Array, real: Array | None = None, age: Array | None = None
    ) -> Array:
        """3 + (time since the last move, level of the gain, side); 0 on padding."""
        levels = level_of(xp, field) + len(LEVELS)
        number = (age_of(xp, age) * GAINS + levels) * 2 + (mark < 0)
        return ((mark != 0) * (FIRST + number)).astype(np.int32)

    def entries(self, max_degree: int) -> int:
        """Every level, time and side."""
        return FIRST + 2 * GAINS * AGES

    def mirror(self, code: np.ndarray, max_degree: int) -> np.ndarray:
        """The code of the same node on the other side."""
        sided = (code >= FIRST) & (code < self.entries(max_degree))
        return np.where(sided, FIRST + ((code - FIRST) ^ 1), code)

    def reward(self, before: CutTotals, after: CutTotals, chosen: int, shaping: str) -> float:
        """The gain of the best cut, and with shaping that of the cut, in the same unit."""
        shaped = (after.cut - before.cut) / _scale(before) if shaping == "caro_wei" else 0.0
        return super().reward(before, after, chosen, shaping) + shaped

    def state(self, totals: CutTotals) -> tuple[float, ...]:
        """The mean degree, how far the best cut is, the share of nodes that gain, the share of moves made."""
        away = (totals.best - totals.cut) / _scale(totals)
        return (
            totals.mean_degree,
            away / (1 + away),
            totals.improving / max(totals.alive, 1),
            totals.steps / self.limit(totals),
        )

    def limit(self, totals: CutTotals) -> int:
        """Moves of an episode."""
        return max(2 * totals.alive, 1)

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """Of gain g, its level l, mean degree d, level of the time a, side s; and of the state.

        1, s, r / (1 + |r|) of r = g/sqrt(d), [g>0], [g=0], a/5, [a=0], [a=1], [a=5], g/4 within +-1, l/6,
        [g>0] a/5, how far the best cut is, [this is the best], share that gains, [none gains], share of moves
        """
        number = xp.maximum(code - FIRST, 0)
        pair = xp.floor(number * 0.5)
        side = number - 2 * pair
        age = xp.floor((pair + 0.5) * (1 / GAINS))
        level = pair - GAINS * age - len(LEVELS)
        gain = _gain_of(xp, level)
        degree, away, improving, progress = (state[..., i : i + 1] for i in range(4))
        relative = gain / degree**0.5
        columns = [
            1, 2 * side - 1, relative / (1 + xp.where(relative < 0, -relative, relative)), gain > 0,
            gain == 0, age * (1 / OLDEST), age == 0, age == 1, age == OLDEST,
            xp.minimum(xp.maximum(gain, -4), 4) * 0.25, _rank_of(xp, level) * (1 / SINGLE),
            (gain > 0) * age * (1 / OLDEST), away, away == 0, improving, improving == 0, progress,
        ]  # fmt: skip
        return _masked(xp, columns, code, state)

    def done(self, totals: CutTotals) -> bool:
        """True after 2n moves, and where there is no edge."""
        return totals.steps >= self.limit(totals) or not totals.edges

    def left(self, totals: CutTotals) -> tuple[int, str]:
        """Moves."""
        return self.limit(totals) - totals.steps, "moves"


def _scale(totals: CutTotals) -> float:
    """What rewards and distances of cuts are measured in, in units: about the spread of gains."""
    return totals.grain * totals.mean_degree**0.5


def _masked(xp: Any, columns: list[Any], code: Array, state: Array) -> Array:
    """[..., F] float32 of columns [..., 1] or numbers, zero where there is no embedding.

    Columns of the code alone are filled in once for all states.
    """
    x = room_for_features(xp, code, state, len(columns))
    of_code = xp.zeros((*code.shape[:-1], len(columns)), dtype=code.dtype)
    embedded, of_state = code >= FIRST, []
    for i, column in enumerate(columns):
        if getattr(column, "shape", code.shape) == code.shape:
            of_code[..., i : i + 1] = column
        else:
            of_state.append(i)
    of_code *= embedded
    x[...] = of_code
    for i in of_state:
        x[..., i : i + 1] = columns[i] * embedded
    return x


def _gain_of(xp: Any, level: Array) -> Array:
    """The least gain of a level -19..19, in grains."""
    size = xp.where(level < 0, -level, level)
    beyond = xp.maximum(size - FINE, 0)
    gain = (size - beyond) * (1 / GRAIN_PARTS) + beyond + beyond * beyond
    return xp.where(level < 0, -gain, gain)


def _rank_of(xp: Any, level: Array) -> Array:
    """A level -19..19 as one of whole gains, -13..13: those between them are fractions."""
    beyond = xp.maximum(level - FINE, 0) + xp.minimum(level + FINE, 0)
    return (level - beyond) * (1 / GRAIN_PARTS) + beyond


class MaxCutOnce(_Cut):
    """State: the sides. A node moves once, to the other side, for good; candidates are those that gain.

    Source     S2V-DQN, Khalil, Dai, Zhang, Dilkina, Song 2017, section 3 and 4
    Reward     what the move adds to the cut
    Differs    codes are levels of gains; messages do not see weights
    """

    name = "maxcut_once"
    ordered = False
    first_candidate = FIRST_ALIVE + 1 + GAINS + len(LEVELS) + 1
    feature_counts: ClassVar = {"scale_free": 9}

    def start_marks(self, n: int) -> np.ndarray:
        """[n] int8, all +1."""
        return np.ones(n, dtype=np.int8)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Nodes, their gains, those that gain, those of them that have not moved."""
        alive, improving = np.count_nonzero(mark), np.count_nonzero(field > 0)
        free = np.count_nonzero((field > 0) & (mark > 0))
        return np.array([alive, field.sum(), improving, free], dtype=np.int64)

    def change(self, gains: int, improving: int, free: int) -> np.ndarray:
        """See MaxCut.change."""
        return np.array([0, gains, improving, free], dtype=np.int64)

    def code(
        self, xp: Any, mark: Array, field: Array, real: Array | None = None, age: Array | None = None
    ) -> Array:
        """3 + level of the gain of moved nodes, then of others; the last ones are candidates."""
        number = (mark > 0) * GAINS + level_of(xp, field) + len(LEVELS)
        return ((mark != 0) * (FIRST + number)).astype(np.int32)

    def entries(self, max_degree: int) -> int:
        """Every level and side."""
        return FIRST + 2 * GAINS

    def state(self, totals: CutTotals) -> tuple[float, ...]:
        """The mean degree."""
        return (totals.mean_degree,)

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """1, s, r/(1+|r|) of r = g/sqrt(d), [g>0], [g=0], log(1+|g|), s log(1+|g|), g/d, 1/d.

        g, s, d   gain, side, mean degree
        """
        number = xp.maximum(code - FIRST, 0)
        stays = (number >= GAINS) * 1
        gain = _gain_of(xp, number - GAINS * stays - len(LEVELS))
        size = xp.where(gain < 0, -gain, gain)
        side = 2 * stays - 1
        relative = gain / state**0.5
        columns = [
            1, side, relative / (1 + size / state**0.5), gain > 0, gain == 0, log(xp, 1 + size),
            side * log(xp, 1 + size), gain / state, 1 / state,
        ]  # fmt: skip
        return _masked(xp, columns, code, state)

    def done(self, totals: CutTotals) -> bool:
        """True when no node that has not moved gains."""
        return totals.candidates == 0

    def left(self, totals: CutTotals) -> tuple[int, str]:
        """Nodes that gain and may move."""
        return totals.candidates, "candidates"
