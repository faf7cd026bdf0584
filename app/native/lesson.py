"""Whole lessons of learners, and scores of states, in a compiled call or two each; see lesson.c."""

import ctypes
from dataclasses import dataclass

import numpy as np

from app.errors import NumericsError
from app.native.library import address, aligned, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
INT32, INT64, FLOAT32 = (np.dtype(kind) for kind in (np.int32, np.int64, np.float32))
MOST_ROUNDS = 16  # as in lesson.h
GRAPH_FIELDS = 24
BY_DEGREE, BY_GAIN, BY_SIDES, BY_FAMILY = range(4)


class _Network(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("layers", "K", "F", "hidden", "self_weight", "shared", "paper")),
        ("W", Long * MOST_ROUNDS),
        *((name, Long) for name in ("theta5", "theta6", "theta7a", "theta7b", "theta2", "size")),
    )  # fmt: skip


class _World(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("graphs", "blocks", "first_candidate", "tile")),
        ("graph", Pointer),
        *((name, Long) for name in ("codes", "closed", "least", "parts", "ages")),
        ("code_of", Pointer),
        *((name, Long) for name in ("by_weight", "owns")),
        ("own", Pointer),
        *((name, Long) for name in ("entries", "looks")),
        *((name, Pointer) for name in ("tables", "factors")),
        *((name, Long) for name in ("by_entry", "by_degree")),
    )  # fmt: skip


class _Sample(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("states", "apart", "every", "draws")), ("graph", Pointer),
        *((name, Long) for name in ("rows", "members", "entries")),
    )  # fmt: skip


class _Look(ctypes.Structure):
    _fields_ = tuple((name, Pointer) for name in ("look", "own", "alive", "code", "chosen", "begin", "count"))


class _Lesson(ctypes.Structure):
    _fields_ = (
        ("net", ctypes.POINTER(_Network)), ("world", ctypes.POINTER(_World)),
        ("sample", ctypes.POINTER(_Sample)), ("before", ctypes.POINTER(_Look)),
        ("after", ctypes.POINTER(_Look)),
        *((name, Pointer) for name in ("weights", "target_weights", "nodes", "returns", "discounts")),
        *((name, Long) for name in ("twice", "huber", "whole")),
        *((name, Pointer) for name in ("losses", "gradient")),
    )  # fmt: skip


class _PolicyLesson(ctypes.Structure):
    _fields_ = (
        ("net", ctypes.POINTER(_Network)), ("world", ctypes.POINTER(_World)),
        ("sample", ctypes.POINTER(_Sample)), ("look", ctypes.POINTER(_Look)),
        *((name, Pointer) for name in ("weights", "value", "nodes", "log_probability", "entropy", "values")),
        *((name, Pointer) for name in ("dlog", "dentropy", "dvalue", "addends", "gradient")),
    )  # fmt: skip


N, W, S = (ctypes.POINTER(kind) for kind in (_Network, _World, _Sample))
ROOM = function("lk_lesson_room", N, W, S, returns=Long)
LESSON = function("lk_lesson", ctypes.POINTER(_Lesson), Pointer, returns=Long)
SCORES = function("lk_lesson_scores", N, W, S, ctypes.POINTER(_Look), *(Pointer,) * 4)
BEST = function("lk_lesson_best", N, W, S, ctypes.POINTER(_Look), *(Pointer,) * 3, returns=Long)

DRAW = function(
    "lk_lesson_draw", N, W, S, ctypes.POINTER(_Look), *(Pointer,) * 2, ctypes.c_uint64, Pointer, returns=Long
)
ADDENDS = function("lk_policy_addends", N, W, S, Long, returns=Long)
PLAY = function("lk_policy_play", ctypes.POINTER(_PolicyLesson), Pointer, returns=Long)
BACK = function("lk_policy_back", ctypes.POINTER(_PolicyLesson), Pointer)
CLOSE = function("lk_policy_close", ctypes.POINTER(_PolicyLesson), Pointer)


def available() -> bool:
    """True where the library was built."""
    return None not in (ROOM, LESSON, SCORES, BEST, DRAW, ADDENDS, PLAY, BACK, CLOSE)


@dataclass
class Looks:
    """How some states look before or after a choice, one each.

    look    [states] int32, the number of a stored feature table
    own     [states, k] float32, features that are numbers of a state
    alive   [states] int64, nodes that an embedding is the mean over
    code    [rows] int32, or None: made from the choices that led to the states
    chosen  int64, those of all states, end to end; begin, count [states] int64: where a state's are
    """

    look: np.ndarray
    own: np.ndarray
    alive: np.ndarray
    code: np.ndarray | None = None
    chosen: np.ndarray | None = None
    begin: np.ndarray | None = None
    count: np.ndarray | None = None

    def tell(self, to: _Look, states: int, rows: int) -> None:
        """Tell a struct what the kernels see of it. Raises NumericsError."""
        to.look, to.alive = _vector(self.look, states, INT32), _vector(self.alive, states, INT64)
        to.own = _vector(self.own.reshape(-1), self.own.size, FLOAT32)
        to.code = 0 if self.code is None else _vector(self.code, rows, INT32)
        if self.chosen is None:
            to.chosen = to.begin = to.count = 0
            return
        to.chosen = _vector(self.chosen, len(self.chosen), INT64)
        to.begin, to.count = _vector(self.begin, states, INT64), _vector(self.count, states, INT64)


@dataclass
class CodeRules:
    """How codes follow from the choices that led to a state.

    kind      BY_DEGREE, BY_GAIN, BY_SIDES or BY_FAMILY
    closed    choices remove their neighbours      least  with how many live neighbours nodes stay
    code_of   of sides: [ages + 1, 2 parts + 1, 2] int32 by age in rests, gain in parts of a grain, and
              whether the side is -1; larger ones count as the largest
    """

    kind: int
    closed: bool = False
    least: int = 0
    code_of: np.ndarray | None = None


class LessonKernels:
    """A network and graphs that it learns from, as lesson.c sees them; all arrays are on the host.

    sizes      layers, K, F, hidden; flags: self weight, shared weights, the paper's features
    offsets    [layers] of W, then theta5, theta6, theta7a (-1 where the head has none), theta7b, theta2 (-1
               where edge weights are not read); all weights
    graph      [graphs, GRAPH_FIELDS] int64, see lesson.h: an array whose addresses the caller keeps alive
    blocks     row blocks of each graph
    problem    first candidate's code, bytes of a tile; rules: how codes are made, where they are
    by_degree  neighbour sums are divided by degrees
    by_weight  edge weights are read, and are more than degrees
    own        [k] int64, the features that are numbers of a state alone
    """

    def __init__(
        self,
        sizes: tuple[int, int, int, int],
        flags: tuple[bool, bool, bool],
        offsets: tuple[list[int], int, int, int, int, int, int],
        graph: np.ndarray,
        blocks: int,
        problem: tuple[int, int],
        rules: CodeRules,
        by_degree: bool,
        by_weight: bool,
        own: np.ndarray,
    ) -> None:
        places, *head = offsets
        self._net = _Network(*sizes, *map(int, flags), (Long * MOST_ROUNDS)(*places), *head)
        self._graph, self._rules, self._own = graph, rules, own
        self._world = world = _World(len(graph), blocks, *problem, address(graph))
        world.codes, world.closed, world.least = rules.kind, int(rules.closed), rules.least
        world.by_degree, world.by_weight = int(by_degree), int(by_weight)
        world.owns, world.own = len(own), address(own)
        if rules.code_of is not None:
            ages, parts, _ = rules.code_of.shape
            world.ages, world.parts, world.code_of = ages - 1, parts // 2, address(rules.code_of)
        self._make_room(0)
        self._policy_room, self._played = aligned((0,), np.uint8), 0
        # Of each call anew what they hold: to make them takes longer than to fill them.
        self._sample, self._before, self._after = _Sample(), _Look(), _Look()
        given = self._net, world, self._sample, self._before, self._after
        self._lesson = _Lesson(*map(ctypes.pointer, given))

    def set_tables(self, tables: np.ndarray, factors: np.ndarray | None) -> None:
        """Feature tables [looks, entries, F], and factors of neighbour sums [looks] or [looks, entries]."""
        self._tables, world = (tables, factors), self._world
        world.looks, world.entries = tables.shape[:2]
        world.tables, world.factors = address(tables), address(factors)
        world.by_entry = int(factors is not None and factors.ndim == 2)

    def lesson(
        self,
        graphs: np.ndarray,
        before: Looks,
        after: Looks,
        weights: tuple[np.ndarray, np.ndarray],
        transitions: tuple[np.ndarray, np.ndarray, np.ndarray],
        twice: bool,
        huber: bool,
    ) -> tuple[np.ndarray, np.ndarray, bool]:
        """Losses [states] of a minibatch, the gradient [weights] of their mean, and whether a score was NaN.

        graphs        [states] int64, ascending
        weights       those that learn, and the target network's, flat
        transitions   nodes int64, returns and discounts float32, all [states]
        twice         double Q-learning      huber   else squared errors
        """
        room = self._prepare(graphs, False, bool(self._net.paper))
        states, size, lesson = len(graphs), self._net.size, self._lesson
        losses, gradient = np.empty(states, FLOAT32), np.empty(size, FLOAT32)
        before.tell(self._before, states, self._sample.rows)
        after.tell(self._after, states, self._sample.rows)
        lesson.weights, lesson.target_weights = (_vector(each, size, FLOAT32) for each in weights)
        nodes, *values = transitions
        lesson.nodes = _vector(nodes, states, INT64)
        lesson.returns, lesson.discounts = (_vector(each, states, FLOAT32) for each in values)
        lesson.twice, lesson.huber, lesson.whole = twice, huber, states
        lesson.losses, lesson.gradient = address(losses), address(gradient)
        bad = LESSON(lesson, room)
        return losses, gradient, bool(bad)

    def scores(
        self, graphs: np.ndarray, look: Looks, every: bool, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores [rows] and candidates [rows] bool of states with given codes, one after the other.

        every   the codes give every node an embedding
        """
        given = self._states(graphs, look, every, weights)
        rows = self._sample.rows
        score, candidate = np.empty(rows, FLOAT32), np.empty(rows, np.bool_)
        SCORES(*given, address(score), address(candidate))
        return score, candidate

    def best(
        self, graphs: np.ndarray, look: Looks, every: bool, weights: np.ndarray
    ) -> tuple[np.ndarray, bool]:
        """[states] int64, the best candidate of each such state, -1 for none; whether one's score is NaN."""
        node = np.empty(len(graphs), INT64)
        bad = BEST(*self._states(graphs, look, every, weights), address(node))
        return node, bool(bad)

    def draw(
        self, graphs: np.ndarray, look: Looks, every: bool, weights: np.ndarray, key: int
    ) -> tuple[np.ndarray, bool]:
        """`best` of scores with the Gumbel noise of a key of 64 bits: draws from their softmax."""
        node = np.empty(len(graphs), INT64)
        bad = DRAW(*self._states(graphs, look, every, weights), key, address(node))
        return node, bool(bad)

    def _states(self, graphs: np.ndarray, look: Looks, every: bool, weights: np.ndarray) -> tuple:
        """What a kernel that scores states begins with; holds until the next call."""
        room = self._prepare(graphs, True, every)
        look.tell(self._before, len(graphs), self._sample.rows)
        at = _vector(weights, self._net.size, FLOAT32)
        return self._net, self._world, self._sample, self._before, at, room

    def _prepare(self, graphs: np.ndarray, apart: bool, every: bool) -> int:
        """Tell the sample of a call, its rows among them; returns the address of room for the call."""
        sample = self._sample
        sample.states, sample.apart, sample.every = len(graphs), apart, every
        sample.graph = _vector(graphs, len(graphs), INT64)
        needed = ROOM(self._net, self._world, sample)
        if needed > self._room.size:
            self._make_room(needed + needed // 4)
        return self._room_at

    def _make_room(self, size: int) -> None:
        """Room of so many bytes for calls."""
        self._room = aligned((size,), np.uint8)
        self._room_at = address(self._room)

    # ---- policies ---------------------------------------------------------------------------------------

    def play(
        self,
        graphs: np.ndarray,
        look: Looks,
        weights: np.ndarray,
        value: np.ndarray | None,
        nodes: np.ndarray,
    ) -> "PlayedStates | None":
        """States in which a policy chose nodes [states] int64; None where a score is NaN.

        graphs   [states] int64, those of a graph one behind the other
        value    [K + 1] float32, the weights of a linear head and its constant, or None
        """
        sample = _Sample(len(graphs), 0, int(self._net.paper), 1, _vector(graphs, len(graphs), INT64))
        needed = ROOM(self._net, self._world, sample)
        if needed > self._policy_room.size:
            self._policy_room = aligned((needed + needed // 4,), np.uint8)
        self._played += 1
        played = PlayedStates(self, self._played, sample, (graphs, look, weights, value, nodes))
        return None if PLAY(played.struct, address(self._policy_room)) else played

    def back(self, played: "PlayedStates") -> None:
        """Fill the addends of the states that were played last. Raises NumericsError for others."""
        self._check_last(played)
        BACK(played.struct, address(self._policy_room))

    def close(self, played: "PlayedStates", addends: np.ndarray) -> np.ndarray:
        """The gradient [weights + those of a value] from the sum of the addends of several plays.

        played   the last of them
        """
        self._check_last(played)
        gradient = np.empty(self._net.size + (played.values is not None) * (self._net.K + 1), np.float32)
        played.struct.addends = _vector(addends, len(played.addends), FLOAT32)
        played.struct.gradient = address(gradient)
        CLOSE(played.struct, address(self._policy_room))
        return gradient

    def _check_last(self, played: "PlayedStates") -> None:
        if played.number != self._played:
            raise NumericsError("lesson: these states were not the last that were played")


class PlayedStates:
    """What became of one `play`: arrays [states] float32, and room for the addends of a gradient.

    values   None without a head for them
    """

    def __init__(self, kernels: LessonKernels, number: int, sample: _Sample, given: tuple) -> None:
        graphs, look, weights, value, nodes = self._held = given
        net, world, states = kernels._net, kernels._world, len(graphs)
        self.number = number
        self.log_probability, self.entropy = np.empty((2, states), np.float32)
        self.values = None if value is None else np.empty(states, np.float32)
        self.addends = np.empty(ADDENDS(net, world, sample, value is not None), np.float32)
        self._sample, self._look = sample, _Look()
        look.tell(self._look, states, sample.rows)
        self.struct = _PolicyLesson(
            *map(ctypes.pointer, (net, world, sample, self._look)), _vector(weights, net.size, FLOAT32),
            0 if value is None else _vector(value, net.K + 1, FLOAT32), _vector(nodes, states, INT64),
            address(self.log_probability), address(self.entropy), address(self.values),
        )  # fmt: skip
        self.struct.addends = address(self.addends)

    def push(self, dlog: np.ndarray, dentropy: np.ndarray, dvalue: np.ndarray | None) -> None:
        """The derivatives of a loss by log pi of the choices, entropies and values, [states] float32."""
        self._pushed = dlog, dentropy, dvalue
        states, given = len(self.entropy), (dlog, dentropy) if self.values is None else self._pushed
        at = [_vector(each, states, FLOAT32) for each in given]
        self.struct.dlog, self.struct.dentropy, self.struct.dvalue = *at, *(0,) * (3 - len(at))


def _vector(values: np.ndarray, size: int, kind: np.dtype) -> int:
    """The address of `size` numbers. Raises NumericsError."""
    if values.shape == (size,) and values.dtype == kind:
        try:  # of what has gaps there is no buffer
            return ctypes.addressof(ctypes.c_char.from_buffer(values))
        except (TypeError, ValueError, BufferError):
            if values.flags.c_contiguous:  # read-only, or empty
                return address(values)
    raise NumericsError(f"lesson: {values.dtype} {values.shape} is not {size} contiguous {kind}")
