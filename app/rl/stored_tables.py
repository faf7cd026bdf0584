"""StoredTables: feature tables of states, kept: most states of a training look like one met before."""

from typing import Any

import numpy as np

from app.rl.qnet import QNetwork

MOST_BYTES = 1 << 25  # of tables
MOST_TOTALS = 1 << 16  # states that are known by their totals
FIRST_ROOM = 16  # tables that there is room for at the beginning


class StoredTables:
    """What QNetwork.tables makes of states, by numbers; the same bits.

    What a node looks like is a function of its code and of a few coarse numbers of the state (Problem.state).
    Where a problem names features that are numbers of a state alone (Problem.own_features), tables have ones
    there and are told apart by the other numbers; a state's own are given beside its table.

    own        [k] int64, these features
    entries    of each table, a multiple of 8
    features   [room, entries, F] float32; factors [room], or [room, entries] with policy.hub_degree: what
               neighbour sums are multiplied by
    changed    counts how often these arrays have become others
    """

    def __init__(self, net: QNetwork, entries: int) -> None:
        self.net, self.entries, self.changed = net, entries, 0
        own = () if net.paper else getattr(net.problem, "own_features", ())
        self.own = np.array(own, dtype=np.int64)
        self._shared = net.problem.shared_numbers if own else None
        self._of_totals: dict[Any, int] = {}
        self._of_state: dict[tuple[float, ...], int] = {}
        self._make_room(FIRST_ROOM)

    def numbers(self, totals: list[Any]) -> list[int]:
        """The numbers of the tables of states; they hold until the next call."""
        found = list(map(self._of_totals.get, totals))
        if None in found:
            self._learn(totals, [each for each, number in zip(totals, found) if number is None])
            found = list(map(self._of_totals.get, totals))
        return found

    def _learn(self, totals: list[Any], unknown: list[Any]) -> None:
        """Know all of some states by their totals, of which some are unknown."""
        if len(self._of_totals) + len(totals) > MOST_TOTALS:
            self._of_totals.clear()
            unknown = totals
        states = {each: self._key(each) for each in unknown}
        new = {state: each for each, state in states.items() if state not in self._of_state}
        if len(self._of_state) + len(new) > self._most(len(totals)):
            self._of_totals.clear()
            self._of_state.clear()
            self._learn(totals, totals)
            return
        self._store(new)
        self._of_totals.update((each, self._of_state[state]) for each, state in states.items())

    def own_values(self, totals: list[Any]) -> np.ndarray:
        """[states, k] float32, the own features of states."""
        if not len(self.own):
            return np.empty((len(totals), 0), dtype=np.float32)
        problem = self.net.problem
        state = np.array([problem.state(each) for each in totals], dtype=np.float32)
        code = np.array([[problem.first_candidate]], dtype=np.float32)
        features = problem.features(self.net.policy.features, np, code, state[:, None])
        return np.ascontiguousarray(features[:, 0, self.own])

    def _key(self, totals: Any) -> tuple[float, ...]:
        """The numbers of a state that its table depends on."""
        return self.net.problem.state(totals)[: self._shared]

    def _most(self, least: int) -> int:
        """Tables that are kept at a time."""
        return max(MOST_BYTES // self.features[0].nbytes, least)

    def _store(self, new: dict[tuple[float, ...], Any]) -> None:
        """Make the tables of states that have none, in one go."""
        if not new:
            return
        first = len(self._of_state)
        if first + len(new) > len(self.features):
            self._make_room(2 * (first + len(new)))
        features, factors = self._made(list(new.values()))
        rows = slice(first, first + len(new))
        self.features[rows], self.factors[rows] = features, factors
        self._of_state.update((state, first + i) for i, state in enumerate(new))

    def _made(self, totals: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Features [k, entries, F] and factors [k (, entries)] of states."""
        features, _, factors = self.net.tables_of(self.entries, totals)
        k = len(totals)
        if len(self.own):
            features[..., self.own] = features[..., :1]  # one of nodes with an embedding
        # With the paper's features there is one table for all states.
        features = np.broadcast_to(
            features.reshape(-1, self.entries, self.net.F), (k, self.entries, self.net.F)
        )
        return features, factors.reshape(k, *self.factors.shape[1:])

    def _make_room(self, room: int) -> None:
        """Arrays for so many tables, with those that there are."""
        shape = (room, self.entries) if self.net.policy.hub_degree else (room,)
        features = np.empty((room, self.entries, self.net.F), np.float32)
        factors = np.empty(shape, np.float32)
        if self.changed:
            features[: len(self.features)], factors[: len(self.factors)] = self.features, self.factors
        self.features, self.factors = features, factors
        self.changed += 1
