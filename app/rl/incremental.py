"""Scores that follow the residual graph: after a selection only what changed is computed again.

A selection changes the codes of some nodes (of a residual graph: the degrees of the neighbours of the removed
nodes); layer by layer the rows that can differ are those rows, the neighbours of rows that did differ, and
with a self weight these rows themselves.
They are computed with the operations of a full evaluation, so every score keeps the bits of one; rows whose
bits stayed the same are passed on to nobody. When what all features see of the state moves (Problem.state, as
the mean degree: a few dozen times in a run), everything is computed anew.
"""

from typing import Any, Protocol

import numpy as np

from app.comm.group import Group
from app.native import incremental as native
from app.problems.problem import FIRST_ALIVE
from app.products import Finish, Part
from app.rl.agent import score_environments
from app.rl.env import Environment, reach_together, step_together
from app.rl.qnet import QNetwork
from app.rl.select import best_of, make_keys, refuse_nan
from app.sparse.batch import StateBatch

Array = Any
FULL_SHARE = 0.25  # of the stored entries: where a selection touches more, a layer is made anew
MESSAGE_WORDS = 1 << 10  # of records in the message that every rank sends for every layer


class Scores(Protocol):
    """The keys of the candidates of one environment, and the selections that change them."""

    env: Environment

    def keys_own(self) -> Array:
        """[n_own] uint64 on the device, 0 where a node is no candidate. Ranks: all call."""
        ...

    def best(self) -> int:
        """The global node of the largest key of all ranks. Ranks: all call; identical on all."""
        ...

    def remove(self, nodes: np.ndarray) -> None:
        """Select nodes [k] (global, the same on all ranks). Ranks: all call."""
        ...


class FullScores:
    """Every state evaluated from the first row to the last: any network, any device."""

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment) -> None:
        self.group, self.net, self.params, self.env = group, net, params, env
        self.batch = StateBatch(group, [(env.block, 1)])

    def keys_own(self) -> Array:
        """[n_own] uint64 keys on the device. Ranks: all call."""
        xp = self.group.device.xp
        scores_own, candidate_own = score_environments(self.net, self.params, self.batch, [self.env])
        nodes = xp.arange(self.env.block.lo, self.env.block.lo + self.env.block.n_own)
        return xp.where(candidate_own, make_keys(xp, scores_own, nodes), 0)

    def best(self) -> int:
        """The best candidate. Ranks: all call."""
        keys = self.keys_own()
        top = int(keys.max()) if len(keys) else 0
        return best_of(self.group, top)

    def remove(self, nodes: np.ndarray) -> None:
        """Select nodes. Ranks: all call."""
        step_together(self.group, [self.env], [nodes])


def can_follow(group: Group, net: QNetwork, env: Environment) -> bool:
    """True where LiveScores gives the bits of FullScores: the same answer on all ranks.

    Not with other layers than structure2vec's, with a mixing head (its scores all change with the sum over
    nodes), with an edge term that is no function of the code, where a step changes most rows or what all of
    them see, on a staged exchange (no rank holds ghost rows; on such dense graphs nearly every row changes),
    on a GPU, or without reproducible products.
    """
    device = group.device
    weighted = net.policy.edge_weights and (env.block.weighted or not net.problem.degree_codes)
    other = net.pools_to_choose or weighted or env.block.plan.mode == "staged"
    followed = net.policy.model == "structure2vec" and env.follows
    return device.name == "cpu" and device.reproducible and followed and not other


class LiveScores:
    """Scores of one environment, kept up to date.

    Ranks   each keeps its rows, and of every layer but the last the ghost rows that its neighbours read. A
            selection costs one MAX, then for each layer but the last one gathering of messages: the change of
            the totals, and the changed rows that others hold as (node, row) records
    Memory  (layers - 1) * K * 4 bytes for each extended row, and 33 bytes for each own row
    """

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment) -> None:
        self.group, self.net, self.params, self.env = group, net, params, env
        self.layers = net.policy.layers
        shape = self.layers - 1, env.block.n_ext, net.K
        narrow = env.block.host_rows()[1].dtype == np.int32
        compiled = env.compiled and group.device.native and group.device.portable and native.available()
        kind = NativeRows if compiled and narrow else PlainRows
        self.rows = kind(group, net, params, env, group.device.zeros(shape))
        self.refresh()

    def keys_own(self) -> Array:
        """[n_own] uint64 keys (read only)."""
        return self.rows.key

    def best(self) -> int:
        """The best candidate. Ranks: all call."""
        return best_of(self.group, self.rows.best())

    def refresh(self) -> None:
        """Everything from the codes. Ranks: all call."""
        self.seen = self._state()
        self.rows.set_state(*feature_table(self.net, self.params, self.group.device, self.env))
        block = self.env.block
        for layer in range(self.layers):
            self.rows.refresh(layer)
            if layer < self.layers - 1 and self.group.size > 1:
                X = self.rows.X[layer]
                own = np.ascontiguousarray(X[block.own_at : block.own_at + block.n_own])
                X[:] = block.extend_host(self.group, own)

    def remove(self, nodes: np.ndarray) -> None:
        """Select nodes [k]. Ranks: all call."""
        (reached,) = reach_together(self.group, [self.env], [nodes])
        change = self.rows.remove(nodes, reached)
        if self.group.size > 1:
            change = self._exchange(0, change)
        self.env.settle(change)
        if self.follows_state and self._state() != self.seen:
            self.refresh()
            return
        for layer in range(1, self.layers):
            if self.group.size > 1 and layer > 1:
                self._exchange(layer - 1, np.zeros_like(change))
            self.rows.layer(layer)

    def run(self, most: int, least_alive: int) -> None:
        """Select the best node up to `most` times, while `least_alive` nodes are alive; one rank only."""
        while most > 0 and not self.env.done and self.env.totals.alive >= least_alive:
            most -= self.rows.run(most, least_alive, self.follows_state)
            if self.follows_state and self._state() != self.seen:
                self.refresh()

    @property
    def follows_state(self) -> bool:
        """True when numbers of the state are an input."""
        return not self.net.paper or self.net.policy.mean_degree

    def _state(self) -> tuple[float, ...]:
        """What all features see of the state."""
        return self.net.problem.state(self.env.totals)

    def _exchange(self, layer: int, change: np.ndarray) -> np.ndarray:
        """Bring the changed rows of a layer to all ranks; returns the sum over ranks of `change` [T].

        Every rank sends one message of equal length: change, number of records, the first records. Only where
        a rank has more of them a second one follows.
        Ranks   all call
        """
        group = self.group
        records = (
            self.rows.pack(layer) if layer < self.layers - 1 else np.empty((0, 1 + self.net.K), np.float32)
        )
        most = MESSAGE_WORDS // records.shape[1]
        head = 2 * (len(change) + 1)  # words of float32: integers of 8 bytes
        message = np.zeros((1, head + most * records.shape[1]), dtype=np.float32)
        message[0, :head].view(np.int64)[:] = *change, len(records)
        inline = min(len(records), most)
        message[0, head : head + inline * records.shape[1]] = records[:inline].reshape(-1)
        messages = group.gather_host(message, [1] * group.size)
        heads = np.ascontiguousarray(messages[:, :head]).view(np.int64)
        rest = np.maximum(heads[:, -1] - most, 0).tolist()
        more = group.gather_host(records[inline:], rest) if sum(rest) else records[:0]
        for rank in range(group.size):
            if rank == group.rank:
                continue
            count = min(int(heads[rank, -1]), most)
            if count:
                first = messages[rank, head : head + count * records.shape[1]].reshape(count, -1)
                self.rows.unpack(layer, first)
            if rest[rank]:
                at = sum(rest[:rank])
                self.rows.unpack(layer, more[at : at + rest[rank]])
        return heads[:, :-1].sum(axis=0)


def feature_table(net: QNetwork, params: Any, device: Any, env: Environment) -> tuple[Array, float]:
    """What a row looks like for each code [entries, F (+K)] in this state, and the factor of neighbour sums.

    With edge weights (all one here) the edge term of eq. 1 follows the features.
    """
    entries = net.problem.entries(env.block.max_degree)
    code = np.arange(entries, dtype=np.float32)[:, None]
    state = np.array([net.problem.state(env.totals)], dtype=np.float32)
    table = net.problem.features(net.policy.features, np, code, np.repeat(state, entries, axis=0))
    if net.policy.edge_weights:
        degree = np.maximum(code - FIRST_ALIVE, 0)
        padded = np.zeros((-(-entries // 8) * 8, 2), dtype=np.float32)
        padded[:entries, :1] = degree
        T = device.row_product(padded, net.embedding.relu_pair(np, params))[:entries]
        table = np.concatenate([table, T], axis=1)
    factor = float(np.float32(1) / state[0, 0]) if net.policy.mean_degree else 1.0
    return np.ascontiguousarray(table), factor


class PlainRows:
    """The rows of one rank in NumPy and SciPy."""

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment, X: np.ndarray) -> None:
        self.device, self.net, self.params, self.env, self.X = group.device, net, params, env, X
        self.block = env.block
        self.key = np.zeros(self.block.n_own, dtype=np.uint64)
        self.ghosts = np.empty(0, dtype=np.int64)
        self.boundary = self.block.boundary_own() if group.size > 1 else None

    def set_state(self, table: np.ndarray, factor: float) -> None:
        """Features and factor of the state."""
        self.table, self.factor = table, np.float32(factor)
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
        self.code[self.touched] = self.env.codes_own(self.touched)
        self.key[self.touched] = 0
        self._make(0, self.touched)
        return change

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        near = [self.touched]
        if self.net.policy.self_weight:
            near.append(self.changed)
        near += [self.block.neighbours_own(int(v)) for v in self.changed + self.block.lo]
        columns = self.block.columns
        ghosts = self.ghosts if columns is None else columns[self.ghosts]
        near += [self.block.neighbours_own(int(v)) for v in ghosts]
        rows = np.unique(np.concatenate(near))
        if self.block.degrees_own()[rows].sum() > FULL_SHARE * len(self.block.host_rows()[1]):
            rows = np.union1d(np.flatnonzero(self.code), self.touched)
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
        parts = [Part(self.table, code)]
        if layer > 0:
            parts.append(Part(self._sums(self.X[layer - 1], rows, len(code))))
            if self.net.policy.self_weight:
                parts.append(Part(self.X[layer - 1], own))
        H = self.device.dense(parts, self.net.embedding.weight(self.params, layer), Finish(relu=True))
        if layer < len(self.X):
            at = own[: len(rows)]
            made = H[: len(rows)]
            differs = (made.view(np.int32) != self.X[layer, at].view(np.int32)).any(axis=1)
            self.X[layer, at] = made
            self.changed = rows[differs]
            return
        x = Part(self.table[:, : self.net.F], code)
        theta6, theta7 = self.params["head.theta6"], self.params["head.theta7b"]
        head = [Part(H)] if self.net.paper else [Part(H), x]
        scores = self.device.score(head, theta6, theta7, Finish(relu=True))[: len(rows)]
        may = self.code[rows] >= self.net.problem.first_candidate
        self.key[rows] = np.where(may, make_keys(np, scores, rows + self.block.lo), np.uint64(0))

    def _sums(self, X: np.ndarray, rows: np.ndarray, padded: int) -> np.ndarray:
        """[padded, K] factor times the sum over neighbours."""
        counts, columns, _ = self.block.extended_rows(rows)
        indptr = np.zeros(padded + 1, dtype=columns.dtype)
        np.cumsum(counts, out=indptr[1 : len(rows) + 1])
        indptr[len(rows) + 1 :] = indptr[len(rows)]
        N = np.zeros((padded, self.net.K), dtype=np.float32)
        self.device.spmm_add(self.device.csr(indptr, columns, None, (padded, len(X))), X, N)
        N *= self.factor
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
        key = self.best()
        refuse_nan(np.array([key], dtype=np.uint64))
        node = np.array([0xFFFFFFFF - (key & 0xFFFFFFFF)], dtype=np.int64)
        change = self.remove(node, self.env.reached_own(node))
        for layer in range(1, self.net.policy.layers):
            self.layer(layer)
        self.env.settle(change)
        return 1


class NativeRows:
    """The rows of one rank through the compiled kernels (app/native/incremental.c)."""

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment, X: np.ndarray) -> None:
        self.env, self.X = env, X
        weights = [net.embedding.weight(params, layer) for layer in range(net.policy.layers)]
        head = params["head.theta6"], params["head.theta7b"]
        sizes = net.K, net.embedding.first_rows, net.hidden, net.policy.self_weight, 0 if net.paper else net.F
        boundary = env.block.boundary_own() if group.size > 1 else None
        self.state = native.IncrementalState(env, X, weights, head, sizes, boundary, FULL_SHARE)
        self.key = self.state.key

    def set_state(self, table: np.ndarray, factor: float) -> None:
        """Features and factor of the state; incremental.c counts entries from degree 0 as 1, codes as 2."""
        self.state.set_mean(np.ascontiguousarray(table[1:]), factor)

    def best(self) -> int:
        """The largest key."""
        return self.state.best()

    def remove(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Remove nodes and those reached, make layer 0; returns this rank's change of the totals [T]."""
        self.env.chosen += len(nodes)
        return self.state.remove(nodes, reached[:, 0], self.env.steps)[: len(self.env.totals)]

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        self.state.layer(layer)

    def refresh(self, layer: int) -> None:
        """Every row of a layer."""
        self.state.refresh(layer)

    def pack(self, layer: int) -> np.ndarray:
        """[k, 1+K] the changed rows that other ranks hold."""
        return self.state.pack(layer)

    def unpack(self, layer: int, records: np.ndarray) -> None:
        """Take records of other ranks."""
        self.state.unpack(layer, records)

    def run(self, most: int, least_alive: int, follows_state: bool) -> int:
        """Select the best node up to `most` times, until the mean degree moves; returns the steps made."""
        env = self.env
        steps, totals, bad = self.state.run(most, least_alive, follows_state, env.totals, env.steps)
        env.totals = type(env.totals)(*totals[: len(env.totals)])
        env.steps, env.chosen = env.steps + steps, env.chosen + steps
        if bad:
            refuse_nan(np.array([self.state.best()], dtype=np.uint64))
        return steps
