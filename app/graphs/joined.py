"""Nodes that are joined one pair after the other: of each a node nearer to the root of its part."""

from typing import Any


def root_of(above: Any, node: int) -> int:
    """The root of a node's part; ways to it are halved (Tarjan and van Leeuwen, Journal of the ACM 1984).

    above   of each node one of its part, of a root itself; changed, and parts stay what they are
    """
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node
