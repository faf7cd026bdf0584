"""Simulated annealing of a cut on row partitions: sweeps in which nodes of one colour are tried at once.

Nodes of a colour (colours.py) are not next to each other, so that to try all of them at once, each with the
gain it has, is to try them one after the other: the annealing of app/search/cut/plain.py in another order of
nodes. After each colour ranks tell each other the sides of those nodes that are next to rows of others.
Whether a node flips follows from its gain, the temperature, and a draw that is a function of the sweep and
of the node's number: the same on any number of ranks.

Source   Kirkpatrick, Gelatt and Vecchi, Science 220, 1983; colours as in checkerboard updates of Ising models
"""

import math
from itertools import pairwise

import numpy as np

from app.comm.group import Group
from app.native import cut_sweep
from app.rng import key_of
from app.search.cut.plain import HEAT_BITS, LOG_BITS, logs
from app.solver.rows.colours import NONE, coloured, turned
from app.solver.rows.own import OwnRows, entries_of, everywhere, pieces

HOT = 0.6  # the first temperature, in units of the mean field: that of random cuts (app/search/cut/search.py)
GOLDEN, FIRST, SECOND = (np.uint64(z) for z in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
SHIFTS = [np.uint64(shift) for shift in (30, 27, 31, 52)]


class CutSweeps:
    """The sides of a cut, and sweeps over them at falling temperatures.

    rows      of nodes that have an edge      weights   [m] int64 of their entries, signed
    solution  [n] bool, sides of all nodes, the same on all ranks
    made      sweeps so far: the next one's draws follow from it

    Own nodes are numbered by colour, then by number, 0..k-1; after them, likewise, nodes of other ranks that
    are next to own ones.
    """

    def __init__(
        self,
        group: Group,
        rows: OwnRows,
        weights: np.ndarray,
        solution: np.ndarray,
        seed: int,
        compiled: bool,
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
        """Local numbers, the rows in them, and gains. Ranks: all call."""
        rows, colour = self.rows, coloured(self.group, self.rows)
        beside = np.zeros(rows.n, dtype=bool)
        beside[rows.indices] = True
        beside[rows.nodes] = False
        ids, halo = (
            nodes[np.argsort(colour[nodes], kind="stable")] for nodes in (rows.nodes, np.flatnonzero(beside))
        )
        k, count = len(ids), len(ids) + len(halo)
        local = np.full(rows.n, NONE, dtype=np.int32)
        local[ids], local[halo] = np.arange(k), np.arange(k, count)
        indptr, own, pulls = turned(rows, local[rows.indices], count, weights.astype(np.int64))
        self._arrays = {
            "indptr": indptr, "indices": local[rows.nodes][own], "weights": pulls, "ids": ids, "logs": logs(),
            "sides": self._whole[np.concatenate([ids, halo])].astype(np.uint8),
            "gain": np.zeros(k, dtype=np.int64),
        }  # fmt: skip
        colours = np.arange(int(colour.max(initial=NONE)) + 2)
        self._at = np.searchsorted(colour[ids], colours).tolist()
        self._halo_at = (k + np.searchsorted(colour[halo], colours)).tolist()
        self._plan(halo, colour, local)
        self._gains()

    def _plan(self, halo: np.ndarray, colour: np.ndarray, local: np.ndarray) -> None:
        """Of each colour: own nodes whose sides others are told, how many each, and how many come; None where
        no rank has any. Ranks: all call.

        halo   nodes of other ranks, by colour, then by number     local   [n] local numbers
        """
        group, colours = self.group, len(self._at) - 1
        nodes_all = everywhere(group, self.rows.nodes)
        ends = np.cumsum(group.gather_integers(np.array([len(self.rows.nodes)]))[:, 0])
        owner = np.searchsorted(ends, np.searchsorted(nodes_all, halo), side="right")
        received = np.bincount(owner, minlength=group.size).tolist()
        sent = group.exchange_counts(received)
        asked = group.exchange_host(halo[np.argsort(owner, kind="stable")], received, sent)
        asking = np.repeat(np.arange(group.size), sent)
        shape = colours, group.size
        to, come = (
            np.bincount(colour[nodes] * group.size + ranks, minlength=math.prod(shape)).reshape(shape)
            for nodes, ranks in ((asked, asking), (halo, owner))
        )
        travels = group.max_integers(come.sum(axis=1))
        tell = local[asked[np.argsort(colour[asked], kind="stable")]]  # within a colour rank by rank
        parts = np.split(tell, np.cumsum(to.sum(axis=1))[:-1])
        self._told = [
            (parts[c], to[c].tolist(), come[c].tolist()) if travels[c] else None for c in range(colours)
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
        ids, found = self._arrays["ids"], self._whole.copy()
        sides = self._arrays["sides"][: len(ids)].astype(bool)
        found[everywhere(self.group, ids)] = everywhere(self.group, sides)
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
        first, last = self._halo_at[c : c + 2]
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
