"""Tree decompositions of elimination orders, and their files: .td of the PACE challenge of 2017.

"s td BAGS LARGEST NODES", where LARGEST counts the nodes of a largest bag, "b BAG NODE NODE ..." for each
bag and "BAG BAG" for each edge between two; bags and nodes are numbered from 1. Nodes are numbered as the
graph has them; where its ids are no such numbers, lines "c node NUMBER ID" say what each stands for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.bounds.treewidth.feasible import Decomposition
from app.bounds.treewidth.orders import Tree, lists_of, tree_of
from app.errors import GraphError
from app.graphs.graph import Graph
from app.graphs.ids import plain_ids, whole_number
from app.search.solution_text import lines_of

OF_BAGS = "s td "  # how files of tree decompositions begin
MOST_ENTRIES = 1 << 23  # of bags, beyond which no decomposition is made


def decomposition_of(
    graph: Graph, order: np.ndarray, compiled: bool = True, tree: Tree | None = None
) -> Decomposition | None:
    """The bags of an order that are part of no other, and their tree; None where they would be too large.

    A bag without its node is that of a child where this has one node more: the child's then holds both.

    tree   that of the order, its bags without weights, where it is known
    """
    tree = tree_of(graph, order, None, compiled) if tree is None else tree
    parent, size = tree
    if int(size.sum()) > MOST_ENTRIES:
        return None
    kept = _kept_by(order, parent, size)
    own = np.flatnonzero(kept == np.arange(graph.n))
    number = np.full(graph.n, -1, dtype=np.int64)
    number[own] = np.arange(len(own))
    ptr, lists = lists_of(graph, order, compiled, tree)
    bag_ptr = np.concatenate([[0], np.cumsum(size[own])]).astype(np.int64)
    nodes = np.empty(int(bag_ptr[-1]), dtype=np.int64)
    nodes[bag_ptr[:-1]] = own
    rest = np.ones(len(nodes), dtype=bool)
    rest[bag_ptr[:-1]] = False
    taken = np.repeat(ptr[own] - (bag_ptr[:-1] - np.arange(len(own))), size[own] - 1)
    nodes[rest] = lists[taken + np.arange(len(taken))]
    child = np.flatnonzero(parent >= 0)
    ends = np.stack([number[kept[child]], number[kept[parent[child]]]], axis=1)
    ends = ends[ends[:, 0] != ends[:, 1]]
    roots = number[kept[np.flatnonzero(parent < 0)]]
    chain = np.stack([roots[:-1], roots[1:]], axis=1)
    return Decomposition(bag_ptr, nodes, np.concatenate([ends, chain]).astype(np.int64))


def _kept_by(order: np.ndarray, parent: np.ndarray, size: np.ndarray) -> np.ndarray:
    """[n] int64, the node whose bag holds that of each: itself, or what keeps a child's of one node more."""
    kept = np.arange(len(order))
    larger = np.full(len(order), -1, dtype=np.int64)
    inner = order[parent[order] >= 0]
    fits = inner[size[inner] == size[parent[inner]] + 1]
    larger[parent[fits][::-1]] = fits[::-1]  # the first child of several
    while True:  # chains are halved
        following = np.where(larger >= 0, larger, kept)
        if (following[following] == following).all():
            return following
        larger = following[following]


def text_of(made: Decomposition, n: int, ids: np.ndarray) -> str:
    """The lines of a .td file."""
    lines = [f"{OF_BAGS}{made.bags} {made.heaviest()} {n}"]
    if not _are_numbers(ids):
        lines += [f"c node {i} {name}" for i, name in enumerate(plain_ids(ids), 1)]
    nodes, ptr = (made.nodes + 1).tolist(), made.ptr.tolist()
    for i in range(made.bags):
        lines.append(" ".join(map(str, ["b", i + 1, *sorted(nodes[ptr[i] : ptr[i + 1]])])))
    lines += [f"{a} {b}" for a, b in (made.edges + 1).tolist()]
    return "\n".join(lines) + "\n"


def _are_numbers(ids: np.ndarray) -> bool:
    """Whether ids are 1, 2, ... themselves."""
    return ids.dtype.kind in "iu" and bool((ids == np.arange(1, len(ids) + 1)).all())


def read_td(path: str, ids: np.ndarray) -> Decomposition:
    """The tree decomposition of a file, of a graph whose nodes have these ids [n]. Raises GraphError."""
    n, names = len(ids), plain_ids(ids)
    head: list[int] = []
    bags: dict[int, list[int]] = {}
    edges: list[list[int]] = []
    for number, line in lines_of(path):
        words = line.split()
        if words[0] == "c":
            _refuse_other_node(path, number, words, names)
            continue
        if not head:
            head = _numbers(
                path, number, words[2:] if words[:2] == ["s", "td"] else [], "s td BAGS LARGEST NODES"
            )
            if len(head) != 3 or head[2] != n:
                right = f"'s td BAGS LARGEST {n}'"
                raise GraphError(f"{path}:{number}: found '{line[:60]}'; {right} would be right")
        elif words[0] == "b":
            bag, *nodes = _numbers(path, number, words[1:], "b BAG NODE NODE ...") or [0]
            if not 1 <= bag <= head[0] or bag in bags:
                raise GraphError(
                    f"{path}:{number}: found bag {bag}; each of 1 to {head[0]} once would be right"
                )
            bags[bag] = nodes
        else:
            edges.append(_numbers(path, number, words, "BAG BAG"))
            if len(edges[-1]) != 2:
                raise GraphError(f"{path}:{number}: found '{line[:60]}'; 'BAG BAG' would be right")
    if not head or len(bags) != head[0]:
        raise GraphError(f"{path}: found {len(bags)} bags; as many as its s line says would be right")
    sizes = [len(bags[i]) for i in range(1, head[0] + 1)]
    if max(sizes, default=0) != head[1]:
        raise GraphError(
            f"{path}: its s line says {head[1]}, its largest bag has {max(sizes, default=0)} nodes"
        )
    nodes = np.array([v for i in range(1, head[0] + 1) for v in bags[i]], dtype=np.int64) - 1
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Decomposition(ptr, nodes, np.array(edges, dtype=np.int64).reshape(-1, 2) - 1)


def _refuse_other_node(path: str, line: int, words: list[str], names: Sequence[Any]) -> None:
    """A line "c node NUMBER ID" of another node than the graph has there is refused. Raises GraphError."""
    if words[1:2] != ["node"] or len(words) < 4:
        return
    at = whole_number(words[2])
    right = str(names[at - 1]) if at is not None and 1 <= at <= len(names) else None
    if right is None or words[3:] != right.split():
        told = f"its nodes are 1 to {len(names)}" if right is None else f"node {at} is {right}"
        raise GraphError(f"{path}:{line}: found '{' '.join(words)[:60]}'; {told}")


def _numbers(path: str, line: int, words: list[str], right: str) -> list[int]:
    """Whole numbers. Raises GraphError."""
    if not all(word.isascii() and word.isdigit() and len(word) <= 18 for word in words):
        raise GraphError(f"{path}:{line}: found '{' '.join(words)[:60]}'; '{right}' would be right")
    return [int(word) for word in words]
