"""The rows that scores need on the host (app/rl/incremental.py): in NumPy and SciPy, and compiled."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.native import incremental as native
from app.numerics.products import Finish, Operand
from app.problems.problem import FIRST_ALIVE
from app.rl.env import Environment
from app.rl.qnet import QNetwork
from app.rl.select import make_keys, refuse_nan

Array = Any
FULL_SHARE = 0.25  # of the stored entries: where a selection touches more, a layer is made anew


class PlainRows:
    """The rows of one rank in NumPy and SciPy."""

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment, X: np.ndarray) -> None:
        self.device, self.net, self.params, self.env, self.X = group.device, net, params, env, X
        self.block = env.block
        self.key = np.zeros(self.block.n_own, dtype=np.uint64)
        self.ghosts = np.empty(0, dtype=np.int64)
        self.boundary = self.block.boundary_own() if group.size > 1 else None
        self.behind: np.ndarray | None = None  # [n_ext] rows touched since the others were put aside

    def set_state(self, table: np.ndarray, factors: np.ndarray) -> None:
        """Features and factors of neighbour sums of each code in this state."""
        self.table, self.factors = table, factors
        self.code = self.env.codes_own()

    def best(self) -> int:
        """The largest key."""
        return int(self.key.max(initial=0))

    def remove(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose nodes, make layer 0; returns this rank's change of the totals [T]."""
        change = self.env.choose_own(nodes, reached)
        at = self.block.extended_of(self.env.gone)
        self.X[:, at[at >= 0]] = 0
        self.touched = self.env.touched
        self._note(at[at >= 0])
        self.code[self.touched] = self.env.codes_own(self.touched)
        self.key[self.touched] = 0
        self._make(0, self.touched)
        return change

    def _note(self, gone: np.ndarray) -> None:
        """What was put aside is behind in the touched rows and in extended rows that are gone."""
        if self.behind is not None:
            self.behind[gone] = True
            self.behind[self.block.own_at + self.touched] = True

    def turn(self) -> None:
        """Put X and the keys aside, and go on with those put aside before, at first with fresh ones.

        The last removal's rows are behind in what is put aside: its later layers were not made. `catch_up` or
        `refresh` is next.
        """
        if self.behind is None:
            xp = self.device.xp
            self.aside = xp.zeros_like(self.X), xp.zeros_like(self.key)
            self.behind = np.zeros(self.block.n_ext, dtype=bool)
        (self.X, self.key), self.aside = self.aside, (self.X, self.key)
        last, self.late = self.touched, np.flatnonzero(self.behind)
        self.behind[:] = False
        self.behind[self.block.own_at + last] = True

    def catch_up(self) -> None:
        """Layer 0 of the rows that are behind; all of them count as changed."""
        rows = self.late - self.block.own_at
        own = (rows >= 0) & (rows < self.block.n_own)
        self.touched = rows[own]
        self._forget(self.late[~own])
        self.key[self.touched] = 0
        self._make(0, self.touched)
        self.changed = self.touched

    def _forget(self, at: np.ndarray) -> None:
        """Extended rows [k] of other ranks that are gone."""
        self.X[:, at] = 0

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        changed = np.concatenate([self.block.own_at + self.changed, self.ghosts])
        near = [self.touched, self.block.rows_touching(changed)]
        if self.net.policy.self_weight:
            near.append(self.changed)
        rows = self.block.each_once(near)
        if self.block.degrees_own()[rows].sum() > FULL_SHARE * len(self.block.host_rows()[1]):
            rows = self.block.each_once([np.flatnonzero(self.code), self.touched])
        self._make(layer, rows)

    def refresh(self, layer: int) -> None:
        """Every row of a layer."""
        if layer == 0:
            self.key[:] = 0
        if layer < len(self.X):
            self.X[layer, self.block.own_at : self.block.own_at + self.block.n_own] = 0
        self._make(layer, np.flatnonzero(self.code))

    def _make(self, layer: int, rows: np.ndarray) -> None:
        """Make a layer's rows; keep which of them changed, or in the last layer the keys.

        Rows whose code has become 0 have no embedding any more: theirs is made zero.
        """
        self.ghosts = self.ghosts[:0]
        self.changed = rows[:0]
        if layer < len(self.X):
            dead = rows[self.code[rows] == 0]
            at = self.block.own_at + dead
            lost = dead[self.X[layer, at].any(axis=1)]
            self.X[layer, at] = 0
        rows = rows[self.code[rows] > 0]
        if len(rows):
            self._make_alive(layer, rows)
        if layer < len(self.X):
            self.changed = np.concatenate([self.changed, lost])

    def _make_alive(self, layer: int, rows: np.ndarray) -> None:
        """The rows that have an embedding."""
        code = np.zeros(-(-len(rows) // 8) * 8, dtype=np.int32)
        code[: len(rows)] = self.code[rows]
        own = np.zeros(len(code), dtype=np.int32)
        own[: len(rows)] = rows + self.block.own_at
        parts = [Operand(self.table, code)]
        if layer > 0:
            parts.append(Operand(self._sums(self.X[layer - 1], rows, code)))
            if self.net.policy.self_weight:
                parts.append(Operand(self.X[layer - 1], own))
        H = self.device.dense(parts, self.net.embedding.weight(self.params, layer), Finish(relu=True))
        if layer < len(self.X):
            at = own[: len(rows)]
            made = H[: len(rows)]
            differs = (made.view(np.int32) != self.X[layer, at].view(np.int32)).any(axis=1)
            self.X[layer, at] = made
            self.changed = rows[differs]
            return
        x = Operand(self.table[:, : self.net.F], code)
        theta6, theta7 = self.params["head.theta6"], self.params["head.theta7b"]
        head = [Operand(H)] if self.net.paper else [Operand(H), x]
        scores = self.device.score(head, theta6, theta7, Finish(relu=True))[: len(rows)]
        may = self.code[rows] >= self.net.problem.first_candidate
        self.key[rows] = np.where(may, make_keys(np, scores, rows + self.block.lo), np.uint64(0))

    def _sums(self, X: np.ndarray, rows: np.ndarray, code: np.ndarray) -> np.ndarray:
        """[padded, K] sums over neighbours, by the factors of the codes [padded]."""
        padded = len(code)
        counts, columns, _ = self.block.extended_rows(rows)
        indptr = np.zeros(padded + 1, dtype=columns.dtype)
        np.cumsum(counts, out=indptr[1 : len(rows) + 1])
        indptr[len(rows) + 1 :] = indptr[len(rows)]
        N = np.zeros((padded, self.net.K), dtype=np.float32)
        self.device.spmm_add(self.device.csr(indptr, columns, None, (padded, len(X))), X, N)
        N *= self.factors[code][:, None]
        return N

    def pack(self, layer: int) -> np.ndarray:
        """[k, 1+K] the changed rows that other ranks hold: the global node's bits, then the row."""
        rows = self.changed[self.boundary[self.changed]]
        records = np.empty((len(rows), 1 + self.net.K), dtype=np.float32)
        records[:, 0] = (rows + self.block.lo).astype(np.uint32).view(np.float32)
        records[:, 1:] = self.X[layer, self.block.own_at + rows]
        return records

    def unpack(self, layer: int, records: np.ndarray) -> None:
        """Take records of other ranks; they count as changed for the next layer."""
        nodes = np.ascontiguousarray(records[:, 0]).view(np.uint32).astype(np.int64)
        at = self.block.extended_of(nodes)
        held = at >= 0
        self.X[layer, at[held]] = records[held, 1:]
        self.ghosts = np.concatenate([self.ghosts, at[held]])

    def run(self, most: int, least_alive: int, follows_state: bool) -> int:
        """One selection; see NativeRows.run."""
        return select_one(self, follows_state)


def select_one(rows: Any, follows_state: bool) -> int:
    """The best node, on one rank: all that follows, but later layers where the state moves. Returns 1."""
    env, net = rows.env, rows.net
    key, state = rows.best(), net.problem.state(env.totals)
    refuse_nan(np.array([key], dtype=np.uint64))
    node = np.array([0xFFFFFFFF - (key & 0xFFFFFFFF)], dtype=np.int64)
    env.settle(rows.remove(node, env.reached_own(node)))
    if not (follows_state and net.problem.state(env.totals) != state):
        for layer in range(1, net.policy.layers):
            rows.layer(layer)
    return 1


class NativeRows:
    """The rows of one rank through the compiled kernels (app/native/incremental.c)."""

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment, X: np.ndarray) -> None:
        self.net, self.env, self.X, self.aside = net, env, X, None
        weights = [net.embedding.weight(params, layer) for layer in range(net.policy.layers)]
        head = params["head.theta6"], params["head.theta7b"]
        sizes = net.K, net.embedding.first_rows, net.hidden, net.policy.self_weight, 0 if net.paper else net.F
        boundary = env.block.boundary_own() if group.size > 1 else None
        self.state = native.IncrementalState(env, X, weights, head, sizes, boundary, FULL_SHARE)
        self.key = self.state.key

    def set_state(self, table: np.ndarray, factors: np.ndarray) -> None:
        """Features and factors of neighbour sums of each code in this state."""
        first = FIRST_ALIVE if self.env.compiled == "residual" else 0  # by degrees
        self.state.set_state(table[first:], factors[first:])

    def best(self) -> int:
        """The largest key."""
        return self.state.best()

    def remove(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose nodes, make layer 0; returns this rank's change of the totals [T]."""
        if self.env.compiled != "residual":
            change = self.env.choose_own(nodes, reached)
            self.state.touch(self.env.touched, self.env.codes_own(self.env.touched))
            return change
        self.env.chosen += len(nodes)
        return self.state.remove(nodes, reached[:, 0], self.env.steps)[: len(self.env.totals)]

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        self.state.layer(layer)

    def refresh(self, layer: int) -> None:
        """Every row of a layer."""
        self.state.refresh(layer)

    def turn(self) -> None:
        """Put X and the keys aside, and go on with those put aside before, at first with fresh ones."""
        if self.aside is None:
            self.aside = np.zeros_like(self.X)
            self.state.keep_two(self.aside)
        self.state.turn()
        self.X, self.aside, self.key = self.aside, self.X, self.state.key

    def catch_up(self) -> None:
        """Layer 0 of the rows that are behind; all of them count as changed."""
        self.state.catch_up()

    def pack(self, layer: int) -> np.ndarray:
        """[k, 1+K] the changed rows that other ranks hold."""
        return self.state.pack(layer)

    def unpack(self, layer: int, records: np.ndarray) -> None:
        """Take records of other ranks."""
        self.state.unpack(layer, records)

    def run(self, most: int, least_alive: int, follows_state: bool) -> int:
        """Select the best node up to `most` times; returns the steps made.

        follows_state   True: it stops where what all features see moves, later layers as before that step
        """
        env = self.env
        if not env.compiled:
            return select_one(self, follows_state)
        steps, totals, bad = self.state.run(most, least_alive, follows_state, env.totals, env.steps)
        env.ran(totals, steps)
        if bad:
            refuse_nan(np.array([self.state.best()], dtype=np.uint64))
        return steps
