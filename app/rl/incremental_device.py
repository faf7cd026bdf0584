"""The rows that scores need (app/rl/incremental.py), on a GPU."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.keys import sorted_set, union
from app.numerics.products import Finish, Operand
from app.rl.env import Environment
from app.rl.incremental_rows import FULL_SHARE, PlainRows
from app.rl.qnet import QNetwork

Array = Any
MOST_NEAR = 1 << 16  # entries of changed rows that the host goes through; beyond it a layer is made anew


class DeviceRows(PlainRows):
    """The rows of one rank on the device; lists of rows are made on the host.

    A row is made again where a row that it reads was, whether or not a bit of that changed: so nothing but
    the best key, and rows that other ranks hold, comes back from the device. The scores are the same.
    """

    def __init__(self, group: Group, net: QNetwork, params: Any, env: Environment, X: Array) -> None:
        super().__init__(group, net, params, env, X)
        self.key = self.device.xp.zeros(self.block.n_own, dtype=np.uint64)
        self.degree = self.block.degrees_own()
        self.stored = int(self.degree.sum(dtype=np.int64))

    def set_state(self, table: np.ndarray, factors: np.ndarray) -> None:
        """Features and factors of neighbour sums of each code in this state."""
        super().set_state(self.device.put(table), self.device.put(factors))

    def best(self) -> int:
        """The largest key: what waits for the device."""
        return int(self.device.top_keys(self.key, 1).max(initial=0))

    def remove(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Choose nodes, make layer 0; returns this rank's change of the totals [T]."""
        change = self.env.choose_own(nodes, reached)
        self.touched = self.env.touched
        self.code[self.touched] = self.env.codes_own(self.touched)
        at = self.block.extended_of(self.env.gone)
        self._note(at[at >= 0])
        self._forget(at[at >= 0])
        self._make(0, self.touched)
        return change

    def catch_up(self) -> None:
        """Layer 0 of the rows that are behind."""
        rows = self.late - self.block.own_at
        own = (rows >= 0) & (rows < self.block.n_own)
        self.touched = rows[own]
        self._forget(self.late[~own])
        self._make(0, self.touched)

    def layer(self, layer: int) -> None:
        """The rows of a later layer that can have changed."""
        own = self.block.own_at + self.changed
        near = int(self.degree[self.changed].sum(dtype=np.int64)) + len(self.ghosts)
        rows = None
        if near <= MOST_NEAR:
            own_too = [self.changed] if self.net.policy.self_weight else []
            near_rows = self.block.rows_touching(np.concatenate([own, self.ghosts]))
            rows = sorted_set(np.concatenate([self.touched, near_rows, *own_too]))
        if rows is None or int(self.degree[rows].sum(dtype=np.int64)) > FULL_SHARE * self.stored:
            rows = union(np.flatnonzero(self.code), self.touched)
        self._make(layer, rows)

    def refresh(self, layer: int) -> None:
        """Every row of a layer."""
        if layer == 0:
            self.key.fill(0)
        if layer < len(self.X):
            self.X[layer, self.block.own_at : self.block.own_at + self.block.n_own] = 0
        self.touched = np.empty(0, dtype=np.int64)
        self._make(layer, np.flatnonzero(self.code))

    def pack(self, layer: int) -> np.ndarray:
        """[k, 1+K] the rows made again that other ranks hold: the global node's bits, then the row."""
        rows = self.changed[self.boundary[self.changed]]
        records = np.empty((len(rows), 1 + self.net.K), dtype=np.float32)
        if len(rows):
            at = self.device.put(self.block.own_at + rows)
            records[:, 1:] = self.device.get(self.device.xp.take(self.X[layer], at, axis=0))
        records[:, 0] = (rows + self.block.lo).astype(np.uint32).view(np.float32)
        return records

    def unpack(self, layer: int, records: np.ndarray) -> None:
        """Take records of other ranks; they count as changed for the next layer."""
        nodes = np.ascontiguousarray(records[:, 0]).view(np.uint32).astype(np.int64)
        at = self.block.extended_of(nodes)
        held = at >= 0
        if held.any():
            rows = self.device.put(np.ascontiguousarray(records[held, 1:]))
            self.device.place_rows(self.X[layer], self.device.put(at[held].astype(np.int32)), rows)
        self.ghosts = np.concatenate([self.ghosts, at[held]])

    # ---- making rows --------------------------------------------------------------------------------------

    def _forget(self, gone: np.ndarray) -> None:
        """The keys of touched rows; embeddings of those without one any more and of extended rows `gone`."""
        dead = self.touched[self.code[self.touched] == 0]
        at = union(gone, self.block.own_at + dead)
        if len(self.touched):
            numbers = self.device.put(np.asarray(self.touched, dtype=np.int32))
            self.device.place_keys(self.key, numbers, numbers, 0, 0, None)
        if len(at) and len(self.X):
            self.device.clear_rows(self.X, self.device.put(at.astype(np.int32)))

    def _make(self, layer: int, rows: np.ndarray) -> None:
        """Make a layer's rows that have an embedding."""
        self.ghosts = self.ghosts[:0]
        made = rows[self.code[rows] > 0]
        lost = self.touched[self.code[self.touched] == 0]
        self.changed = np.concatenate([made, lost])
        if len(made):
            self._make_alive(layer, made)

    def _make_alive(self, layer: int, rows: np.ndarray) -> None:
        """The rows that have an embedding; in the last layer their keys."""
        device, net = self.device, self.net
        lists = np.stack([self.code[rows], rows, rows + self.block.own_at]).astype(np.int32)
        code, numbers, own = (device.put(each) for each in lists)
        parts = [Operand(self.table, code)]
        if layer > 0:
            N = device.spmm_rows(self.block.A, rows, numbers, self.X[layer - 1])
            scale = device.xp.take(self.factors, code) if net.policy.mean_degree else None
            parts.append(Operand(N, scale=scale))
            if net.policy.self_weight:
                parts.append(Operand(self.X[layer - 1], own))
        H = device.dense(parts, net.embedding.weight(self.params, layer), Finish(relu=True))
        if layer < len(self.X):
            device.place_rows(self.X[layer], own, H)
            return
        head = [Operand(H)] if net.paper else [Operand(H), Operand(self.table[:, : net.F], code)]
        theta6, theta7 = self.params["head.theta6"], self.params["head.theta7b"]
        scores = device.score(head, theta6, theta7, Finish(relu=True))
        first = net.problem.first_candidate
        device.place_keys(self.key, numbers, code, self.block.lo, first, scores)
