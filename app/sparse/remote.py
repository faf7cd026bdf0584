"""Rows that other ranks hold, found by key: their exchange, and products with them.

A key is an integer that names a row of a distributed array, the same on every rank; each rank holds some keys
and wants some. Everything a relational layer moves is of this kind: rows of nodes, and rows of
(relation, node) pairs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import NumericsError
from app.graphs.graph import index_type

Array = Any


class Held:
    """Which rows of an array this rank holds.

    keys   [k] int64, distinct     at   [k] the row of each, or None: 0 .. k-1
    rows   of the array, padding included
    """

    def __init__(self, keys: np.ndarray, rows: int | None = None, at: np.ndarray | None = None) -> None:
        self.keys, self.rows = keys, len(keys) if rows is None else rows
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]
        self._at = np.arange(len(keys)) if at is None else at

    def find(self, keys: np.ndarray) -> np.ndarray:
        """[k] the row of each key [k] int64. Raises NumericsError where one is not held."""
        place = np.searchsorted(self._sorted, keys)
        if len(keys) and (place.max() >= len(self._sorted) or (self._sorted[place] != keys).any()):
            raise NumericsError("exchange: a rank was asked for a row that it does not hold")
        return self._at[self._order[place]]


class Fetch:
    """The exchange that brings wanted rows to a rank; made once.

    places   [wanted] the row of each wanted key in what `rows` returns, until `forget`
    count    rows of what `rows` returns
    Where no rank wants a row of another nothing travels, and `rows` returns its argument.
    """

    def __init__(self, group: Group, held: Held, wanted: np.ndarray, owner: np.ndarray) -> None:
        """wanted [m] distinct keys, owner [m] the ranks that hold them. Ranks: all call."""
        self.group = group
        self.travels = bool(group.max_integer(int((owner != group.rank).any())))
        if not self.travels:
            self.places, self.count = held.find(wanted), held.rows
            return
        order = np.argsort(owner, kind="stable")
        self._received = np.bincount(owner, minlength=group.size).tolist()
        self._sent = group.exchange_counts(self._received)
        asked = group.exchange_host(wanted[order], self._received, self._sent)
        self._send_rows = group.device.put(held.find(asked))
        self.places = np.empty(len(wanted), dtype=np.int64)
        self.places[order] = np.arange(len(wanted))
        self.count = len(wanted)

    def forget(self) -> None:
        """Keep what `rows` needs, no places."""
        del self.places

    def rows(self, X_own: Array) -> Array:
        """[count, f], the wanted rows of X_own [held rows, f]. Ranks: all call."""
        if not self.travels:
            return X_own
        send = self.group.device.xp.take(X_own, self._send_rows, axis=0)
        return self.group.exchange_rows(send, self._sent, self._received)


class OrderedFetch:
    """The exchange that brings wanted rows to a rank in the order they were asked for."""

    def __init__(self, group: Group, held: Held, wanted: np.ndarray, owner: np.ndarray) -> None:
        """As Fetch. Ranks: all call."""
        self._fetch = fetch = Fetch(group, held, wanted, owner)
        places, self.device = fetch.places, group.device
        ordered = len(places) == fetch.count and np.array_equal(places, np.arange(fetch.count))
        self._order = None if ordered else self.device.put(places)
        fetch.forget()

    def rows(self, X_own: Array) -> Array:
        """[wanted, f]. Ranks: all call."""
        rows = self._fetch.rows(X_own)
        return rows if self._order is None else self.device.xp.take(rows, self._order, axis=0)


class RemoteProduct:
    """Y += A X, where a column of A is a key: each row one chain over its entries in the given order."""

    def __init__(
        self,
        group: Group,
        held: Held,
        owner: Callable[[np.ndarray], np.ndarray],
        rows: int,
        row: np.ndarray,
        key: np.ndarray,
        values: np.ndarray | None = None,
    ) -> None:
        """The product, and the exchange before it. Ranks: all call.

        held     what rows of X this rank holds        owner   the ranks that hold some keys
        rows     of Y                                  row     [nnz] ascending
        key      [nnz] the row of X of each entry      values  [nnz] float32, or None: ones
        """
        self.device, self.n = group.device, rows
        wanted, inverse = np.unique(key, return_inverse=True)
        self.fetch = Fetch(group, held, wanted, owner(wanted))
        kind = index_type(max(len(key), rows, self.fetch.count))
        indptr = np.zeros(rows + 1, dtype=kind)
        np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:])
        columns = self.fetch.places[inverse].astype(kind)
        self.fetch.forget()
        self.A = self.device.csr(indptr, columns, values, (rows, self.fetch.count))

    def add(self, X_own: Array, Y: Array) -> None:
        """Y += A X.

        X_own   [held rows, f] float32, on the device     Y   [rows, f] float32, in and out
        Ranks   all call (one exchange)
        """
        self.device.spmm_add(self.A, self.fetch.rows(X_own), Y)

    def times(self, X_own: Array) -> Array:
        """[rows, f] float32, A X, of X_own as in `add`. Ranks: all call (one exchange)."""
        Y = self.device.zeros((self.n, X_own.shape[1]))
        self.add(X_own, Y)
        return Y
