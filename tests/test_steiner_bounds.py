"""Bounds of Steiner trees: against the shortest trees of small graphs, with and without kernels; their proofs."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from app.bounds.certificate import BadCertificate
from app.bounds.steiner import program
from app.bounds.steiner.ascent import Ascent
from app.bounds.steiner.bounds import SteinerBounds
from app.bounds.steiner.case import CaseWork, Clock, Effort
from app.bounds.steiner.cuts import violated
from app.bounds.steiner.net import Net
from app.bounds.steiner.trees import Best
from app.bounds.steiner.witness import Case, SteinerBound
from app.graphs.steiner import SteinerCore, ends_of
from app.proofs import archive

pytestmark = pytest.mark.mpi_skip
HEIGHTS = ("terminals", "totals", "ptr", "nodes", "heights")


def core_of(graph, terminals):
    """A NetworkX graph with lengths, nodes 0..n-1."""
    rows = sorted((a, b, d["length"]) for u, v, d in graph.edges(data=True) for a, b in ((u, v), (v, u)))
    u, v, lengths = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    indptr = np.append(0, np.cumsum(np.bincount(u, minlength=graph.number_of_nodes())))
    return SteinerCore(indptr, v.astype(np.int32), lengths, np.unique(terminals).astype(np.int64))


def drawn(seed, n=None, edges=None, most=None, longest=9):
    """A connected graph of one of several families, with terminals."""
    random = np.random.default_rng(seed)
    n = int(random.integers(4, 13)) if n is None else n
    if seed % 3 == 0 and edges is None:
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, max(n // 3, 2)))
    elif seed % 3 == 1 and edges is None:
        graph = nx.cycle_graph(n)
        graph.add_edges_from(nx.wheel_graph(n).edges if seed % 2 else [])
    else:
        graph = nx.random_labeled_tree(n, seed=seed)
        graph.add_edges_from(nx.gnm_random_graph(n, edges or 2 * n, seed=seed).edges)
    for u, v in graph.edges:
        graph[u][v]["length"] = int(random.integers(1, longest + 1))
    n = graph.number_of_nodes()
    k = int(random.integers(1, min(most or 6, n) + 1))
    return core_of(graph, random.choice(n, k, replace=False))


def shortest(core):
    """The length of a shortest tree (Dreyfus and Wagner 1971)."""
    far = np.full((core.n, core.n), np.iinfo(np.int64).max // 4)
    np.fill_diagonal(far, 0)
    far[core.row_of(), core.indices] = core.lengths
    for k in range(core.n):
        far = np.minimum(far, far[:, k, None] + far[k])
    *others, root = core.terminals.tolist()
    held = {}
    for i, t in enumerate(others):
        held[1 << i] = far[t]
    for some in range(1, 1 << len(others)):
        if some in held:
            continue
        joined, part = None, (some - 1) & some
        while part:
            both = held[part] + held[some ^ part]
            joined = both if joined is None else np.minimum(joined, both)
            part = (part - 1) & some
        held[some] = (joined[None, :] + far).min(axis=1)
    return int(held[(1 << len(others)) - 1][root]) if others else 0


def finished(core, compiled=True):
    """Bounds whose work has come to an end, knowing a tree that they found."""
    bounds = SteinerBounds(core, compiled)
    upper = int(core.lengths.sum()) + 1
    while bounds.improve(5.0, upper):
        found = bounds.pieces()
        upper = upper if found is None else core.length(found)
    return bounds


def test_bounds_are_the_shortest_trees_of_small_graphs():
    for seed in range(150):
        core = drawn(seed)
        least, bounds = shortest(core), finished(core)
        assert bounds.value == least and bounds.method
        tree = bounds.optimum()
        assert core.length(tree) == least and (tree[core.terminals] >= 0).all()
        proof = archive.from_bytes(archive.to_bytes(bounds.proof()))
        assert proof.lower == least and proof.checked
        proof.check(core)
        with pytest.raises(BadCertificate):
            replace(proof, lower=least + 1).check(core)


def test_kernels_and_plain_code_agree():
    for seed in range(40):
        core = drawn(seed, 30, 60, 12)
        made = []
        for compiled in (True, False):
            net = Net.of(*core, compiled=compiled)
            ascent = Ascent(net, 1 << 40)
            while not ascent.run(37):
                pass
            heights = ascent.heights()
            tree = net.tree(np.where(ascent.room[net.back] == 0, net.length, -1))
            useful = net.useful(ascent.room, core.length(tree) - ascent.lower)
            x = np.random.default_rng(seed).random(len(net.indices)) * 0.4
            cuts = violated(net, x, net.terminals[net.terminals != net.root])
            told = [np.append(cut.nodes, cut.terminal) for cut in cuts]
            arrays = [ascent.room, tree, useful, *(getattr(heights, each) for each in HEIGHTS), *told]
            made.append((ascent.lower, ascent.work, len(cuts), *(each.tolist() for each in arrays)))
        assert made[0] == made[1]


def test_heights_take_what_an_ascent_leaves_of_lengths():
    for seed in range(20):
        core = drawn(seed, 20, 45, 8)
        net = Net.of(*core)
        ascent = Ascent(net, 1 << 40)
        ascent.run(1 << 40)
        heights, taken = ascent.heights(), np.zeros(len(net.indices), dtype=np.int64)
        for i, total in enumerate(heights.totals):
            h = np.full(core.n, total)
            part = slice(heights.ptr[i], heights.ptr[i + 1])
            h[heights.nodes[part]] = heights.heights[part]
            taken += np.maximum(h[net.indices] - h[net.row], 0)
        assert (net.length - taken == ascent.room).all() and heights.totals.sum() == ascent.lower
