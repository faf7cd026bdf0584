"""Scores that follow the residual graph: after a selection only what changed is computed again.

A selection changes the codes of some nodes (of a residual graph: the degrees of the neighbours of the removed
nodes); layer by layer the rows that can differ are those rows, the neighbours of rows that did differ, and
with a self weight these rows themselves.
They are computed with the operations of a full evaluation, so every score keeps the bits of one; rows whose
bits stayed the same are passed on to nobody. When what all features see of the state moves (Problem.state, as
the mean degree), everything is computed anew. Near a rounding step it moves to and fro, hundreds of times on
a large graph: rows and keys of the state before are kept, and where it comes back only what was touched
meanwhile is made again.
"""

from typing import Any, Protocol

import numpy as np

from app.comm.group import Group
from app.native import incremental as native
from app.problems.problem import FIRST_ALIVE
from app.rl.env import Environment, codes_of, reach_together, step_together
from app.rl.incremental_device import DeviceRows
from app.rl.incremental_rows import NativeRows, PlainRows
from app.rl.qnet import QNetwork
from app.rl.select import best_of, make_keys
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
State = tuple[float, ...]
NEAR = 8  # times the square of the mean degree is at most the number of nodes: then scores follow on a GPU
MESSAGE_WORDS = 1 << 10  # of records in the message that every rank sends for every layer
NO_CHANGE = np.zeros(0, dtype=np.int64)  # of the totals
KEPT_TABLES, KEPT_NUMBERS = 256, 1 << 14  # feature tables that a network keeps, and numbers of each at most


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
    """Every state evaluated from the first row to the last: any network, any device.

    An evaluation is the same launches each time, on codes and tables in the same memory, so that one rank can
    replay them (run.cuda_graph).
    """

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment) -> None:
        self.group, self.net, self.params, self.env = group, net, params, env
        self.batch = StateBatch(group, [(env.block, 1)])
        self._again = group.device.repeated()
        self._operands: list[Array] = []

    def keys_own(self) -> Array:
        """[n_own] uint64 keys on the device, until the next call. Ranks: all call."""
        device, env, every = self.group.device, self.env, self.net.paper and self.net.pools_to_choose
        given = [codes_of([env], every), *self.net.tables(self.batch, [env.totals])]
        if not (device.replays and self.group.size == 1):
            return self._keys(env.totals, *(device.put(each) for each in given))
        if not self._operands:
            self._operands = [device.put(each) for each in given]
        for operand, each in zip(self._operands, given):
            device.load(operand, np.ascontiguousarray(each))
        return self._again(self._operands, lambda: self._keys(env.totals, *self._operands))

    def _keys(self, totals: Any, code_own: Array, *tables: Array) -> Array:
        """[n_own] keys of a state from what was put on the device. Ranks: all call."""
        xp, net, block = self.group.device.xp, self.net, self.env.block
        inputs = net.inputs_of(self.batch, code_own, list(tables), net.paper and net.pools_to_choose)
        evaluation = net.evaluate(self.params, self.batch, inputs, [totals], pool=False, keep=False)
        scores_own = net.local_scores(self.params, evaluation)
        nodes = xp.arange(block.lo, block.lo + block.n_own)
        return xp.where(code_own >= net.problem.first_candidate, make_keys(xp, scores_own, nodes), 0)

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
    nodes), with an edge term that is no function of the code, with divisors that differ by node, where a step
    changes most rows or what all of them see, on a staged exchange (no rank holds ghost rows; on such dense
    graphs nearly every row changes), without reproducible products, or on a GPU where a step changes so many
    rows that it is done sooner with all of them.
    """
    device = group.device
    kept = device.name == "cpu" or (device.follows_rows and _stays_near(env.block))
    weighted = net.policy.edge_weights and (env.block.weighted or not net.problem.degree_codes)
    other = net.pools_to_choose or weighted or net.problem.own_degree or env.block.plan.mode == "staged"
    followed = net.policy.model == "structure2vec" and env.follows
    return kept and device.reproducible and followed and not other


def _stays_near(block: RowBlock) -> bool:
    """True where the neighbours of a node's neighbours are few among all nodes. The same on all ranks."""
    return NEAR * (2 * block.edges) ** 2 <= block.n**3


class LiveScores:
    """Scores of one environment, kept up to date.

    Ranks   each keeps its rows, and of every layer but the last the ghost rows that its neighbours read. A
            selection costs one MAX, then for each layer but the last one gathering of messages: the change of
            the totals, and the changed rows that others hold as (node, row) records
    Memory  (layers - 1) * K * 4 bytes for each extended row, and 37 bytes for each own row; from the first
            state that came back on that again, and 9 bytes for each own row
    """

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment) -> None:
        self.group, self.net, self.params, self.env = group, net, params, env
        self.layers = net.policy.layers
        shape = self.layers - 1, env.block.n_ext, net.K
        self.rows = self._kind()(group, net, params, env, group.device.zeros(shape))
        self.before: State | None = None
        self.tables: dict[State, tuple[Array, np.ndarray]] = {}  # of the last two states
        self.two = False  # rows and keys of the state before are kept
        self.refresh()

    def _kind(self) -> Any:
        """What keeps the rows."""
        device, env = self.group.device, self.env
        if device.follows_rows:
            return DeviceRows
        narrow = env.block.host_rows()[1].dtype == np.int32
        compiled = device.native and device.portable and native.available()
        return NativeRows if compiled and narrow else PlainRows

    def keys_own(self) -> Array:
        """[n_own] uint64 keys (read only)."""
        return self.rows.key

    def best(self) -> int:
        """The best candidate. Ranks: all call."""
        return best_of(self.group, self.rows.best())

    def refresh(self) -> None:
        """Everything from the codes. Ranks: all call."""
        device, block = self.group.device, self.env.block
        self._look()
        for layer in range(self.layers):
            self.rows.refresh(layer)
            if layer < self.layers - 1 and self.group.size > 1:
                X = self.rows.X[layer]
                own = device.xp.ascontiguousarray(X[block.own_at : block.own_at + block.n_own])
                X[...] = device.put(block.extend_host(self.group, device.get(own)))

    def remove(self, nodes: np.ndarray) -> None:
        """Select nodes [k]. Ranks: all call."""
        (reached,) = reach_together(self.group, [self.env], [nodes])
        change = self.rows.remove(nodes, reached)
        if self.group.size > 1:
            change = self._exchange(0, change)
        self.env.settle(change)
        if not self._turned():
            self._follow()

    def _follow(self) -> None:
        """The later layers, once layer 0 was made and exchanged. Ranks: all call."""
        for layer in range(1, self.layers):
            if self.group.size > 1 and layer > 1:
                self._exchange(layer - 1, NO_CHANGE)
            self.rows.layer(layer)

    def _look(self) -> None:
        """Features by the state as it is now."""
        self.seen = self._state()
        if self.seen not in self.tables:
            self.tables = {state: table for state, table in self.tables.items() if state == self.before}
            self.tables[self.seen] = feature_table(self.net, self.params, self.group.device, self.env)
        self.rows.set_state(*self.tables[self.seen])

    def _turned(self) -> bool:
        """True where the state has moved: everything is by the new one then. Ranks: all call."""
        now = self._state()
        if not self.follows_state or now == self.seen:
            return False
        back = now == self.before
        kept, self.two = self.two, self.two or back
        self.before = self.seen
        if self.two:
            self.rows.turn()
        if kept and back:
            self._catch_up()
        else:
            self.refresh()
        return True

    def _catch_up(self) -> None:
        """What was touched since the state was this one the last time. Ranks: all call."""
        self._look()
        self.rows.catch_up()
        if self.group.size > 1:
            self._exchange(0, NO_CHANGE)
        self._follow()

    @property
    def compiled(self) -> bool:
        """True where `run` makes many selections in one call."""
        return isinstance(self.rows, NativeRows) and bool(self.env.compiled)

    def run(self, most: int, least_alive: int) -> None:
        """Select the best node up to `most` times, while `least_alive` nodes are alive; one rank only."""
        while most > 0 and not self.env.done and self.env.totals.alive >= least_alive:
            most -= self.rows.run(most, least_alive, self.follows_state)
            self._turned()

    @property
    def follows_state(self) -> bool:
        """True when numbers of the state are an input."""
        return not self.net.paper or self.net.policy.mean_degree

    def _state(self) -> State:
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


def feature_table(net: QNetwork, params: Any, device: Any, env: Environment) -> tuple[Array, np.ndarray]:
    """What a row looks like for each code [entries, F (+K)], and the factor [entries] of its neighbour sums.

    With edge weights (all one here) the edge term of eq. 1 follows the features. Both are read only.
    """
    entries, numbers = net.problem.entries(env.block.max_degree), net.problem.state(env.totals)
    if net.policy.edge_weights or entries * net.F > KEPT_NUMBERS:
        return _make_feature_table(net, params, device, entries, numbers)
    kept = net.code_tables
    if (entries, numbers) not in kept:
        if len(kept) >= KEPT_TABLES:
            kept.pop(next(iter(kept)))
        kept[entries, numbers] = _make_feature_table(net, params, device, entries, numbers)
    return kept[entries, numbers]


def _make_feature_table(
    net: QNetwork, params: Any, device: Any, entries: int, numbers: tuple[float, ...]
) -> tuple[Array, np.ndarray]:
    """`feature_table` of a state of these numbers (Problem.state)."""
    code = np.arange(entries, dtype=np.float32)[:, None]
    state = np.array([numbers], dtype=np.float32)
    table = net.problem.features(net.policy.features, np, code, np.repeat(state, entries, axis=0))
    if net.policy.edge_weights:
        degree = np.maximum(code - FIRST_ALIVE, 0)
        padded = np.zeros((-(-entries // 8) * 8, 2), dtype=np.float32)
        padded[:entries, :1] = degree
        R = net.embedding.relu_pair(device.xp, params)
        T = device.get(device.row_product(device.put(padded), R))[:entries]
        table = np.concatenate([table, T], axis=1)
    factors = np.ones(entries, dtype=np.float32)
    if net.policy.mean_degree:
        factors = net.sum_factors(code, np.repeat(state[:, 0], entries))
    return np.ascontiguousarray(table), factors
