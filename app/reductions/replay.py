"""What independent checks of reductions share: what they raise, and a log that is replayed entry by entry.

A check has in common with what reduces only the meaning of an entry (log.py of each problem), and searches
nothing: it asks of each entry whether the nodes it names satisfy what it demands of the graph that is left.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import LockstepError

CHECK_SECONDS = 1e-6  # of a check, about, for each node and entry of the graph
WORD_SECONDS = 1e-6  # for each word of a log


class BadReduction(LockstepError):
    """A log is none of reductions; the message says where, and what is wrong."""


def require(holds: bool, otherwise: str) -> None:
    """Raises BadReduction."""
    if not holds:
        raise BadReduction(otherwise)


def follow(
    log: np.ndarray, nodes: Sequence[int], there: Callable[[int], bool], apply: Callable[..., None]
) -> None:
    """All entries of a log [words] int64: a rule and its nodes, nodes[rule] of them. Raises BadReduction.

    there   whether a number is that of a node that is left       apply   takes an entry, rule and nodes
    """
    words, at = np.asarray(log).tolist(), 0
    while at < len(words):
        rule = words[at]
        if not 0 <= rule < len(nodes):
            raise BadReduction(f"reductions: word {at} is {rule}, no rule")
        named = words[at + 1 : at + 1 + nodes[rule]]
        if len(set(named)) < nodes[rule] or not all(map(there, named)):
            raise BadReduction(f"reductions: word {at}: no nodes that are left follow")
        try:
            apply(rule, named)
        except BadReduction as error:
            raise BadReduction(f"reductions: word {at}: {error}") from None
        at += 1 + nodes[rule]


class Replay:
    """A graph as the entries so far have left it.

    near    [n] of each node what edges lead to; None: it has gone
    rules   by the first word of an entry, what proves it and follows it: given all words and where the second
            one is, it returns where the next entry begins
    paid    what is taken in any case weighs
    """

    near: list[Any]
    rules: dict[int, Callable[[list[int], int], int]]
    paid: int = 0

    def follow(self, log: np.ndarray) -> None:
        """All entries of a log [words] int64. Raises BadReduction."""
        words, at = log.tolist(), 0
        while at < len(words):
            try:
                rule = self.rules.get(words[at])
                require(rule is not None, "no such rule")
                at = rule(words, at + 1)
            except BadReduction as error:
                raise BadReduction(f"reductions, word {at}: {error}") from None

    def node(self, words: list[int], at: int) -> int:
        """A node that is there."""
        require(at < len(words), "the log ends within it")
        node = words[at]
        require(0 <= node < len(self.near) and self.near[node] is not None, f"node {node} is not there")
        return node

    def nodes(self, words: list[int], at: int) -> tuple[list[int], int]:
        """Nodes that are there, behind their number; and where they end."""
        require(at < len(words) and 0 < words[at] < len(words) - at, "the log ends within it")
        end = at + 1 + words[at]
        return [self.node(words, i) for i in range(at + 1, end)], end

    def left(self) -> tuple[list[int], dict[int, int]]:
        """The nodes that are there, ascending, and the place of each among them."""
        there = [node for node, near in enumerate(self.near) if near is not None]
        return there, {node: place for place, node in enumerate(there)}
