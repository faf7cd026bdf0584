"""Elimination orders: the tree and the bags that one stands for, and greedy ones.

Eliminating a node joins all its neighbours that are left to each other. Its bag are the node and these
neighbours; the parent of a node is the first of its bag that is eliminated after it. The bags along the tree
of parents are a tree decomposition, and each of a graph comes from an order that has bags no larger.

Source   Rose, Tarjan and Lueker 1976; bags without making the edges: Liu, SIAM J. Matrix Anal. Appl. 1990;
         Gilbert, Ng and Peyton 1994
"""

import ctypes
from typing import NamedTuple

import numpy as np

from app.bounds.treewidth import plain_orders as plain
from app.graphs.graph import Graph
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
BAGS = function("lk_order_bags", Long, *[Pointer] * 6, returns=Long)
LISTS = function("lk_order_lists", Long, *[Pointer] * 6, returns=Long)
GREEDY = function("lk_greedy_order", Long, *[Pointer] * 3, Long, Long, Long, Pointer, returns=Long)
BY_DEGREE, BY_FILL = 0, 1  # rules of `greedy`
MOST_WORK = 1 << 30  # of greedy orders, in entries that are looked at: some seconds
MOST_KEPT = 1 << 26  # neighbours that they keep, of four bytes each


class Tree(NamedTuple):
    """What an order stands for.

    parent   [n] int32, -1 for none
    bag      [n] int64, the weight of each node's bag
    """

    parent: np.ndarray
    bag: np.ndarray


def rows_of(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Offsets [n+1] int64 and columns int32 of a whole graph, as kernels want them."""
    return (
        np.ascontiguousarray(graph.indptr, dtype=np.int64),
        np.ascontiguousarray(graph.indices, dtype=np.int32),
    )


def tree_of(
    graph: Graph, order: np.ndarray, weights: np.ndarray | None = None, compiled: bool = True
) -> Tree:
    """The tree of an order [n], and its bags by weights [n] int64, None: all one. Time about linear."""
    order = np.ascontiguousarray(order, dtype=np.int32)
    weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.int64)
    if not (compiled and BAGS):
        return Tree(*plain.tree_of(graph, order, weights))
    tree = Tree(np.empty(graph.n, dtype=np.int32), np.empty(graph.n, dtype=np.int64))
    arrays = *rows_of(graph), order, weights, *tree
    if BAGS(graph.n, *map(address, arrays)) < 0:
        raise MemoryError("elimination order")
    return tree


def lists_of(
    graph: Graph, order: np.ndarray, compiled: bool = True, tree: Tree | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Bags without their own nodes: offsets [n+1] int64 and nodes int32, each in the order of elimination.

    tree   that of the order, its bags without weights, where it is known
    """
    order = np.ascontiguousarray(order, dtype=np.int32)
    parent, bag = tree_of(graph, order, None, compiled) if tree is None else tree
    ptr = np.concatenate([[0], np.cumsum(bag - 1)]).astype(np.int64)
    if not (compiled and LISTS):
        return ptr, plain.lists_of(graph, order)
    lists = np.empty(int(ptr[-1]), dtype=np.int32)
    arrays = *rows_of(graph), order, parent, ptr, lists
    if LISTS(graph.n, *map(address, arrays)) < 0:
        raise MemoryError("elimination order")
    return ptr, lists


def by_parents(parent: np.ndarray) -> np.ndarray:
    """[n] int64, an order of the tree [n]: nodes far from their roots first, then the lowest."""
    depth, up = (parent >= 0).astype(np.int64), np.array(parent)  # steps to `up`, or to the root
    below = np.flatnonzero(up >= 0)
    while len(below):  # steps are doubled
        above = up[below]
        depth[below] += depth[above]
        up[below] = up[above]
        below = below[up[below] >= 0]
    return np.argsort(-depth, kind="stable")


def greedy(
    graph: Graph, rule: int, ties: np.ndarray | None = None, compiled: bool = True, most: int = MOST_WORK
) -> np.ndarray:
    """[n] int64, an order: always the node with the fewest neighbours (BY_DEGREE), or whose elimination makes
    the fewest edges (BY_FILL); of equal ones that of the lowest tie.

    ties   [n] all different; None: node numbers
    most   work, after which the rest follows by degree; so it does once MOST_KEPT neighbours are kept
    """
    ties = np.arange(graph.n) if ties is None else ties
    ties, order = np.ascontiguousarray(ties, dtype=np.int32), np.empty(graph.n, dtype=np.int32)
    if not (compiled and GREEDY):
        return plain.greedy(graph, rule, ties).astype(np.int64)
    arrays = *rows_of(graph), ties
    if GREEDY(graph.n, *map(address, arrays), rule, most, MOST_KEPT, address(order)) < 0:
        raise MemoryError("greedy order")
    return order.astype(np.int64)
