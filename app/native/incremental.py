"""The state of incremental inference on one rank as incremental.c sees it."""

import ctypes
from typing import Any

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LAYERS, CHUNK, BLOCK, LANES = 16, 256, 64, 16  # as in incremental.c
DYNAMICS = {
    "residual": 0,
    "domination": 1,
    "core": 2,
    "parts": 3,
    "": 4,
    "family": 5,
}  # by Environment.compiled


class _Net(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("layers", "K", "F", "hidden", "self_weight", "head_F")),
        ("W", Pointer * LAYERS), ("theta6", Pointer), ("theta7", Pointer),
    )  # fmt: skip


class _State(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("dynamics", "n_own", "n_ext", "own_at", "lo", "steps")),
        *((name, Pointer) for name in ("indptr", "indices", "ghost_ptr", "ghost_rows")),
        *((name, Pointer) for name in ("columns", "boundary")),
        ("net", ctypes.POINTER(_Net)), ("closed", Long), ("first", Long),
        *((name, Pointer) for name in ("worth", "reached", "table", "factor")),
        ("full_share", ctypes.c_float),
        *((name, Pointer) for name in ("live", "chosen_at", "mark", "field", "look", "price")),
        ("X", Pointer * LAYERS),
        *((name, Pointer) for name in ("key", "top")), ("aside_X", Pointer * LAYERS),
        *((name, Pointer) for name in ("aside_key", "aside_top", "behind", "listed")),
        *((name, Pointer) for name in ("touched", "dead", "changed", "affected", "ghosts", "scratch")),
        *((name, Long) for name in ("round", "n_touched", "n_dead", "n_changed", "n_ghosts")),
        ("totals", Long * 4), ("rows_made", Long), ("layers_full", Long),
    )  # fmt: skip


S = ctypes.POINTER(_State)
BEST = function("lk_inc_best", S, returns=ctypes.c_uint64)
REMOVE = function("lk_inc_remove", S, Pointer, Long, Long, Pointer)
TOUCH = function("lk_inc_touch", S, Pointer, Pointer, Long)
LAYER = function("lk_inc_layer", S, Long)
REFRESH = function("lk_inc_refresh", S, Long)
TURN = function("lk_inc_turn", S)
CATCH_UP = function("lk_inc_catch_up", S)
PACK = function("lk_inc_pack", S, Long, Pointer, returns=Long)
UNPACK = function("lk_inc_unpack", S, Long, Pointer, Long)
RUN = function("lk_inc_run", S, Long, Long, ctypes.c_int, ctypes.POINTER(ctypes.c_int), returns=Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (BEST, REMOVE, TOUCH, LAYER, REFRESH, TURN, CATCH_UP, PACK, UNPACK, RUN)


class IncrementalState:
    """Arrays and counters of one environment; see incremental.c.

    env       on a block that is not staged; where its steps are compiled (Environment.compiled) its state is
              updated in place
    X         [layers-1, n_ext, K] float32
    weights   one matrix per layer; head: theta6, theta7
    sizes     K, columns of the table, hidden, self weight, columns of the table that the head uses
    boundary  [n_own] bool, own rows that other ranks hold, or None on one rank
    """

    def __init__(
        self,
        env: Any,
        X: np.ndarray,
        weights: list[np.ndarray],
        head: tuple[np.ndarray, np.ndarray],
        sizes: tuple[int, int, int, bool, int],
        boundary: np.ndarray | None,
        full_share: float,
    ) -> None:
        block = env.block
        self.key = np.zeros(block.n_own, dtype=np.uint64)
        self.width = 1 + sizes[0]
        self._held: list[Any] = [env, X]  # what the structures, which hold addresses only, refer to
        self._net = self._make_net(weights, head, sizes)
        s = self._state = _State(DYNAMICS[env.compiled], block.n_own, block.n_ext, block.own_at, block.lo)
        s.net, s.full_share = ctypes.pointer(self._net), full_share
        self._point_at_rows(block, boundary)
        self._point_at_environment(env)
        self._point_at_scores(block, X)
        self._change = np.zeros(4, dtype=np.int64)

    def _at(self, array: np.ndarray | None) -> int:
        """The address of an array that lives as long as this object."""
        self._held.append(array)
        return address(array)

    def _make_net(
        self, weights: list[np.ndarray], head: tuple[np.ndarray, np.ndarray], sizes: tuple[int, ...]
    ) -> _Net:
        """The weights, with columns as the kernels want them."""
        K, F, hidden, self_weight, head_F = sizes
        net = _Net(len(weights), K, F, hidden, int(self_weight), head_F)
        net.theta6, net.theta7 = self._at(_padded(head[0])), self._at(np.ascontiguousarray(head[1]))
        for layer, W in enumerate(weights):
            net.W[layer] = self._at(_padded(W))
        return net

    def _point_at_rows(self, block: Any, boundary: np.ndarray | None) -> None:
        """The own rows of the graph, and who touches its ghost columns."""
        s = self._state
        s.indptr, s.indices = map(self._at, block.host_rows())
        s.ghost_ptr, s.ghost_rows = map(self._at, block.ghost_index())
        s.columns, s.boundary = self._at(block.columns), self._at(boundary)

    def _point_at_environment(self, env: Any) -> None:
        """What a selection reads and changes of the state."""
        s, most = self._state, env.block.max_degree
        worth = np.empty(0, dtype=np.int64)
        if env.compiled and env.compiled != "family":
            worth = env.problem.worth(np.arange(2 + most)).astype(np.int64)
        s.closed, s.worth = int(env.problem.closed), self._at(worth)
        room = env.block.n_own if env.compiled in ("core", "parts") else 1 + most
        s.reached = self._at(np.empty(max(room, 1), dtype=np.int64))
        residual = env.compiled == "residual"
        s.live = self._at(env.degree_own if residual else env.codes_own())
        s.first = 1 if residual else env.problem.first_candidate
        s.chosen_at = self._at(env.chosen_at)
        if env.compiled in ("domination", "family"):
            s.mark, s.field = self._at(env.mark_own), self._at(env.field_own)
        if env.compiled == "family":
            s.look, s.price = self._at(env.family.look), self._at(env.family.price)
        elif env.compiled in ("core", "parts"):
            s.mark, s.field = self._at(np.zeros(env.block.n_own, np.int32)), self._at(env.degree_own)

    def _point_at_scores(self, block: Any, X: np.ndarray) -> None:
        """Embeddings, keys and their maxima, lists of rows, room to work in."""
        s, n, K = self._state, block.n_own, self.width - 1
        for layer in range(len(X)):
            s.X[layer] = address(X[layer])
        s.key, s.top = address(self.key), self._at(np.zeros(-(-n // BLOCK), dtype=np.uint64))
        lists = [np.zeros(max(n, 1), dtype=np.int32) for _ in range(5)]
        s.listed, s.touched, s.dead, s.changed, s.affected = map(self._at, lists)
        s.ghosts = self._at(np.empty(max(block.n_ext, 1), dtype=np.int32))
        padded = -(-K // LANES) * LANES
        s.scratch = self._at(np.empty(CHUNK * (2 * padded + 2), dtype=np.float32))

    def set_state(self, table: np.ndarray, factor: np.ndarray) -> None:
        """Features [entries, F] and factors of neighbour sums [entries], by codes (residual: by degrees)."""
        self._table = table, factor
        self._state.table, self._state.factor = address(table), address(factor)

    def best(self) -> int:
        """The largest key."""
        return BEST(self._state)

    def remove(self, nodes: np.ndarray, ruled_out: np.ndarray, steps: int) -> np.ndarray:
        """Choose global nodes [k] in transition `steps`, remove them and those ruled out, make layer 0.

        returns   [4] the change of alive nodes, degree sum, sum of worth, free nodes
        """
        chosen = len(nodes)
        nodes = np.concatenate([nodes, ruled_out], dtype=np.int64)
        self._state.steps = steps
        REMOVE(self._state, address(nodes), len(nodes), chosen, address(self._change))
        return self._change

    def touch(self, rows: np.ndarray, codes: np.ndarray) -> None:
        """Own rows [k], each once, and their codes: layer 0 of those that changed. Not of residual graphs."""
        rows, codes = (np.ascontiguousarray(each, dtype=np.int32) for each in (rows, codes))
        TOUCH(self._state, address(rows), address(codes), len(rows))

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        LAYER(self._state, layer)

    def refresh(self, layer: int) -> None:
        """Every row of a layer."""
        REFRESH(self._state, layer)

    def keep_two(self, X: np.ndarray) -> None:
        """Have a second [layers-1, n_ext, K] X, and keys, for `turn`."""
        s = self._state
        self._aside = np.zeros_like(self.key)
        top, behind = np.zeros(-(-len(self.key) // BLOCK), dtype=np.uint64), np.zeros(len(self.key), np.uint8)
        s.aside_key, s.aside_top, s.behind = address(self._aside), address(top), address(behind)
        for layer in range(len(X)):
            s.aside_X[layer] = address(X[layer])
        self._held += (X, top, behind)

    def turn(self) -> None:
        """Put X and the keys aside, and go on with those put aside before."""
        TURN(self._state)
        self.key, self._aside = self._aside, self.key

    def catch_up(self) -> None:
        """Layer 0 of the rows touched since what is in use now was put aside."""
        CATCH_UP(self._state)

    def pack(self, layer: int) -> np.ndarray:
        """[k, 1+K] records of the changed rows that other ranks hold."""
        records = np.empty((self._state.n_changed, self.width), dtype=np.float32)
        return records[: PACK(self._state, layer, address(records))]

    def unpack(self, layer: int, records: np.ndarray) -> None:
        """Take records of other ranks."""
        records = np.ascontiguousarray(records)
        UNPACK(self._state, layer, address(records), len(records))

    def run(
        self, most: int, least_alive: int, follows_state: bool, totals: tuple[int, ...], steps: int
    ) -> tuple[int, tuple[int, ...], bool]:
        """Select the best node again and again; returns the steps made, the totals, whether NaN was met."""
        bad = ctypes.c_int(0)
        told = totals[: len(self._state.totals)]
        self._state.totals[: len(told)] = told
        self._state.steps = steps
        made = RUN(self._state, most, least_alive, int(follows_state), bad)
        return made, tuple(self._state.totals), bool(bad.value)

    def counters(self) -> tuple[int, int]:
        """Rows computed so far, and layers that were made anew because a selection touched too much."""
        return self._state.rows_made, self._state.layers_full


def _padded(W: np.ndarray) -> np.ndarray:
    """A copy with columns padded by zeros to a multiple of LANES."""
    out = np.zeros((W.shape[0], -(-W.shape[1] // LANES) * LANES), dtype=np.float32)
    out[:, : W.shape[1]] = W
    return out
