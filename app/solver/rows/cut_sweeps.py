"""Simulated annealing of a cut on row partitions: sweeps in which nodes of one colour are tried at once.

Nodes of a colour are not next to each other, so that trying all of them at once, each with the gain it has, is
the same as one after the other: the annealing of app/search/cut/plain.py in another order of nodes. After each
colour ranks tell each other the sides of the nodes that are next to rows of others. Whether a node flips
follows from its gain, the temperature, and a draw that is a function of the sweep and the node's number:
the same on any number of ranks.

Source   Kirkpatrick, Gelatt and Vecchi, Science 220, 1983; colours as in the checkerboard updates of Ising
         models; the colouring as Jones and Plassmann, SIAM J. Sci. Comput. 14, 1993
"""

import math
from itertools import pairwise

import numpy as np

from app.comm.group import Group
from app.native import cut_sweep
from app.rng import key_of
from app.search.cut.plain import HEAT_BITS, LEVELS, LOG_BITS, logs
from app.solver.rows.own import LARGEST_RANK, OwnRows, entries_of, everywhere, keyed, pieces, row_counts

HOT = 0.6  # the first temperature, in units of the mean field: that of random cuts (app/search/cut/search.py)
NONE = -1
GOLDEN, FIRST, SECOND = (np.uint64(z) for z in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
SHIFTS = [np.uint64(shift) for shift in (30, 27, 31, 52)]


class CutSweeps:
    """The sides of a cut, and sweeps over them at falling temperatures.

    rows      of nodes that have an edge      weights   [m] int64 of their entries, signed
    solution  [n] bool, sides of all nodes, the same on all ranks
    made      sweeps so far: the next one's draws follow from it

    Own nodes are numbered by colour, then by number, 0..k-1; after them, likewise, h nodes of other ranks that
    are next to own ones.
    """

    def __init__(
        self, group: Group, rows: OwnRows, weights: np.ndarray, solution: np.ndarray, seed: int, compiled: bool
    ) -> None:
        """Ranks: all call."""
        self.group, self.rows, self.seed, self.made = group, rows, seed, 0
        self._whole = solution.copy()
        self.field = mean_field(group, rows, weights)
        binary = HEAT_BITS - math.frexp(HOT * self.field)[1] if self.field else 0
        self._hottest = round(math.ldexp(HOT * self.field, binary))
        self._shifts = max(LOG_BITS + binary, 0), max(-LOG_BITS - binary, 0)
        self._number(weights)
        self._native = None
        if compiled and cut_sweep.available():
            self._native = cut_sweep.bind(self._arrays, self._shifts)

    def _number(self, weights: np.ndarray) -> None:
        """Local numbers, the rows in them, what ranks tell each other, and gains. Ranks: all call."""
        rows, colour = self.rows, coloured(self.group, self.rows)
        ids = rows.nodes[np.argsort(colour[rows.nodes], kind="stable")]
        own = np.zeros(rows.n, dtype=bool)
        own[rows.nodes] = True
        beside = np.zeros(rows.n, dtype=bool)
        beside[rows.indices] = True
        halo = np.flatnonzero(beside & ~own)
        halo = halo[np.argsort(colour[halo], kind="stable")]
        k, colours = len(ids), int(colour.max(initial=-1)) + 1
        local = np.full(rows.n, NONE, dtype=np.int32)
        local[ids], local[halo] = np.arange(k), np.arange(k, k + len(halo))
        of = np.repeat(local[rows.nodes], rows.degrees())
        self._at, self._halo_at = (
            np.searchsorted(colour[nodes], np.arange(colours + 1)).tolist() for nodes in (ids, halo)
        )
        indptr, indices, order = _turned(k + len(halo), local[rows.indices], of)
        sides = self._whole[np.concatenate([ids, halo])].astype(np.uint8)
        gain = np.zeros(k, dtype=np.int64)
        self._arrays = {
            "indptr": indptr, "indices": indices, "weights": weights[order].astype(np.int64), "ids": ids, "logs": logs(),
            "sides": sides, "gain": gain,
        }  # fmt: skip
        self._plan(halo, colour, local, colours)
        self._gains()

    def _plan(self, halo: np.ndarray, colour: np.ndarray, local: np.ndarray, colours: int) -> None:
        """Of each colour: own nodes whose sides others are told, how many each, and how many come.

        Ranks: all call.
        """
        group = self.group
        nodes_all = everywhere(group, self.rows.nodes)
        ends = np.cumsum(group.gather_integers(np.array([len(self.rows.nodes)]))[:, 0])
        owner = np.searchsorted(ends, np.searchsorted(nodes_all, halo), side="right")
        order = np.argsort(owner, kind="stable")
        received = np.bincount(owner, minlength=group.size).tolist()
        sent = group.exchange_counts(received)
        asked = group.exchange_host(halo[order], received, sent)
        by = np.repeat(np.arange(group.size), sent)
        shape = colours, group.size
        cells = [
            np.bincount(colour[nodes] * group.size + ranks, minlength=colours * group.size).reshape(shape)
            for nodes, ranks in ((asked, by), (halo, owner))
        ]
        travels = group.max_integers(cells[1].sum(axis=1)) if group.size > 1 else np.zeros(colours)
        tell = local[asked[np.argsort(colour[asked], kind="stable")]]  # within a colour rank by rank
        at = np.concatenate([[0], np.cumsum(cells[0].sum(axis=1))])
        self._told = [
            (tell[at[c] : at[c + 1]], cells[0][c].tolist(), cells[1][c].tolist()) if travels[c] else None
            for c in range(colours)
        ]

    def _gains(self) -> None:
        """Of own nodes, by all rows."""
        arrays = self._arrays
        indptr, sides, gain = arrays["indptr"], arrays["sides"], arrays["gain"]
        gain[:] = 0
        for first, last in pieces(indptr):
            part = slice(*indptr[[first, last]])
            of = np.repeat(sides[first:last], np.diff(indptr[first : last + 1]))
            to, weights = arrays["indices"][part], arrays["weights"][part]
            np.add.at(gain, to, np.where(of != sides[to], -weights, weights))

    def solution(self) -> np.ndarray:
        """[n] bool, the present sides. Ranks: all call; identical on all."""
        nodes, arrays = self.rows.nodes, self._arrays
        sides = np.empty(len(nodes), dtype=bool)
        sides[np.searchsorted(nodes, arrays["ids"])] = arrays["sides"][: len(nodes)]
        found = self._whole.copy()
        found[everywhere(self.group, nodes)] = everywhere(self.group, sides)
        return found

    def sweep(self, level: int, levels: int) -> None:
        """Try every node once, at temperature `level` of so many that fall evenly. Ranks: all call."""
        heat = self._hottest * (2 * (levels - level) - 1) // (2 * levels)
        key = key_of(self.seed, "sweeps of a cut", self.made)
        for c, (first, last) in enumerate(pairwise(self._at)):
            self._try(first, last, heat, key)
            if self._told[c] is not None:
                self._exchange(c)
        self.made += 1

    def _exchange(self, c: int) -> None:
        tell, sent, received = self._told[c]
        sides = self.group.exchange_host(self._arrays["sides"][tell], sent, received)
        k = len(self._arrays["ids"])
        first, last = (k + at for at in self._halo_at[c : c + 2])
        if self._native is not None:
            cut_sweep.told(self._native, first, last, sides)
            return
        self._flip(first + np.flatnonzero(self._arrays["sides"][first:last] != sides))

    def _try(self, first: int, last: int, heat: int, key: int) -> None:
        """Own nodes of one colour."""
        if self._native is not None:
            cut_sweep.SWEEP(self._native, first, last, heat, key)
            return
        arrays, (down, up) = self._arrays, self._shifts
        loss = -arrays["gain"][first:last]
        bits = draws(key, arrays["ids"][first:last])
        most = (arrays["logs"][bits >> SHIFTS[3]] * heat >> down) << up
        flips = np.where(loss == 0, bits & np.uint64(1) == 0, loss <= most)
        changed = first + np.flatnonzero(flips)
        arrays["gain"][changed] *= -1
        self._flip(changed)

    def _flip(self, nodes: np.ndarray) -> None:
        """Change sides of nodes that are not next to each other, and what their own neighbours gain by it."""
        arrays = self._arrays
        indptr, sides = arrays["indptr"], arrays["sides"]
        sides[nodes] ^= 1
        of, entries = entries_of(indptr, nodes)
        to, twice = arrays["indices"][entries], 2 * arrays["weights"][entries]
        np.add.at(arrays["gain"], to, np.where(sides[to] == sides[nodes][of], twice, -twice))


def draws(key: int, ids: np.ndarray) -> np.ndarray:
    """[k] uint64 as in cut_sweep.c: 64 bits for each of ids [k] int64."""
    z = np.uint64(key) + ids.astype(np.uint64) * GOLDEN
    z = (z ^ (z >> SHIFTS[0])) * FIRST
    z = (z ^ (z >> SHIFTS[1])) * SECOND
    return z ^ (z >> SHIFTS[2])


def mean_field(group: Group, rows: OwnRows, weights: np.ndarray) -> float:
    """The mean over nodes that have an edge of the root of the sum of squares of their weights: a gain at
    random sides. Ranks: all call; the same bits on any number of them.
    """
    of = np.repeat(np.arange(len(rows.nodes)), rows.degrees())
    squares = np.bincount(of, weights=np.square(weights, dtype=np.float64), minlength=len(rows.nodes))
    roots = np.sqrt(squares)
    largest = group.max_integer(math.ceil(roots.max(initial=0.0)))
    bits = HEAT_BITS - largest.bit_length()  # each a whole number of as many bits: exact in any order
    total = int(group.sum_integers(np.array([np.rint(np.ldexp(roots, bits)).astype(np.int64).sum()]))[0])
    nodes, _ = rows.count(group)
    return math.ldexp(total / max(nodes, 1), -bits)


def coloured(group: Group, rows: OwnRows) -> np.ndarray:
    """[n] int32, colours of nodes of which neighbours have different ones; NONE of nodes without a row.

    Nodes with many neighbours first, each the least colour that is free, once all neighbours before it have
    theirs. Ranks: all call; identical on all.
    """
    degree = np.zeros(rows.n, dtype=np.int64)
    degree[everywhere(group, rows.nodes)] = everywhere(group, rows.degrees())
    keys = keyed(np.arange(rows.n), LARGEST_RANK - np.minimum(degree, LARGEST_RANK), 0)
    of = np.repeat(np.arange(len(rows.nodes), dtype=np.int32), rows.degrees())
    indptr, own, _ = _turned(rows.n, rows.indices, of)  # own neighbours of each node of the graph
    waits = row_counts(rows.indptr, keys[rows.indices] < np.repeat(keys[rows.nodes], rows.degrees()))
    colour = np.full(rows.n, NONE, dtype=np.int32)
    ready = np.flatnonzero(waits == 0)
    while len(told := everywhere(group, rows.nodes[ready])):
        colour[told] = everywhere(group, _least_free(rows, ready, colour))
        near, times = np.unique(own[entries_of(indptr, told)[1]], return_counts=True)
        waits[near] -= times  # of those before it below 0
        ready = near[waits[near] == 0]
    return colour


def _least_free(rows: OwnRows, at: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """[k] int32, the least colour that no neighbour has, of the nodes of rows at [k]."""
    of, entries = entries_of(rows.indptr, at)
    near = colour[rows.indices[entries]].astype(np.int64)
    width = len(rows.nodes) + rows.n + 1
    pairs = np.unique(of[near != NONE] * width + near[near != NONE])
    row, taken = np.divmod(pairs, width)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    found = np.bincount(row, minlength=len(at))  # where 0 .. count-1 are taken
    gap = np.flatnonzero(taken != place)
    which, first = np.unique(row[gap], return_index=True)
    found[which] = place[gap[first]]
    return found.astype(np.int32)


def _turned(nodes: int, of: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr [nodes+1] int64, indices [m] int32: `to` [m] by `of` [m], and [m] the order of entries."""
    order = np.argsort(of, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=nodes))]).astype(np.int64)
    return indptr, to[order], order
