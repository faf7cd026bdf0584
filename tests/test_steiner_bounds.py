"""Bounds of Steiner trees: against shortest trees of small graphs, with and without kernels; their proofs."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from test_certificates import REFUSED, altered

from app.bounds.certificate import BadCertificate
from app.bounds.highs import available
from app.bounds.steiner.ascent import Ascent
from app.bounds.steiner.bounds import SteinerBounds
from app.bounds.steiner.case import CaseWork, Clock, Effort
from app.bounds.steiner.cases import CaseTree
from app.bounds.steiner.cuts import violated
from app.bounds.steiner.net import Net
from app.bounds.steiner.program import DirectedProgram, cuts_of
from app.bounds.steiner.trees import Best
from app.bounds.steiner.witness import Case, SteinerBound
from app.graphs.steiner import SteinerCore
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


def hard(seed, n=24, k=8):
    """Lengths that depend on how many ends are terminals: an ascent alone hardly proves a shortest tree."""
    random = np.random.default_rng(seed)
    terminals = random.choice(n, k, replace=False)
    graph = nx.random_labeled_tree(n, seed=seed)
    graph.add_edges_from(nx.gnm_random_graph(n, 3 * n, seed=seed).edges)
    for u, v in graph.edges:
        ends = int((terminals == u).any()) + int((terminals == v).any())
        graph[u][v]["length"] = int(random.integers(95, 106)) + 100 * ends
    return core_of(graph, terminals)


def by_cases(core, upper):
    """All cases of a core, without a linear program; trees shorter than `upper` are of interest."""
    best, effort = Best(core, upper), Effort(1, False, 0)
    work = CaseWork(Net.of(*core), best)
    list(work.run(effort, Clock()))
    tree = CaseTree(work, best, effort, Clock())
    return best, tree


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


def test_cases_prove_what_an_ascent_does_not():
    divided = 0
    for seed in range(12):
        core = hard(seed)
        least = shortest(core)
        best, tree = by_cases(core, least + 40)
        lowers = [tree.lower]
        for _ in tree.run():
            lowers.append(tree.lower)
        assert best.upper == tree.lower == least and lowers == sorted(lowers)
        divided += tree.made > 3
        proof = SteinerBound(least, "cases", tree.cases())
        proof.check(core)
        if len(proof.cases) > 1:
            with pytest.raises(BadCertificate, match="missing"):
                replace(proof, cases=proof.cases[:-1]).check(core)
        with pytest.raises(BadCertificate, match="more cases"):
            replace(proof, cases=[*proof.cases, Case([])]).check(core)
    assert divided


def test_cases_that_are_open_are_proved_so_far():
    cube = nx.convert_node_labels_to_integers(nx.hypercube_graph(5))
    nx.set_edge_attributes(cube, 1, "length")
    core = core_of(cube, [v for v in cube if v.bit_count() % 2])
    _, tree = by_cases(core, cube.number_of_edges())
    for _ in itertools.islice(tree.run(), 30):
        SteinerBound(tree.lower, "cases", tree.cases()).check(core)
    assert tree.made > 10


class Blind(Best):
    """Finds no trees."""

    def offer_nodes(self, nodes):
        return False


def test_what_is_left_out_keeps_a_shortest_tree():
    left_out = 0
    for seed in range(40):
        core = drawn(seed, 16, 40, 7)
        least = shortest(core)
        work = CaseWork(Net.of(*core), Blind(core, least + 1))
        list(work.run(Effort(4, False, 0), Clock()))
        net = work.net
        assert not work.closed and work.lower <= least
        assert shortest(SteinerCore(net.indptr, net.indices, net.length, net.terminals)) == least
        left_out += core.edges - len(net.indices) // 2
    assert left_out > 100


def test_a_case_of_terminals_alone_is_a_spanning_tree():
    for seed in range(20):
        core = drawn(seed, 10, 30)
        core = core._replace(terminals=np.arange(core.n))
        graph = nx.Graph()
        graph.add_weighted_edges_from(zip(core.row_of(), core.indices, core.lengths))
        least = nx.minimum_spanning_tree(graph).size("weight")
        best, tree = by_cases(core, int(least) + 5)
        list(tree.run())
        assert best.upper == tree.lower == least and finished(core).value == least


def all_cuts(net):
    """The least length of x that brings 1 into every set of nodes around a terminal, without the root."""
    others = [v for v in range(net.n) if v != net.root]
    entries, rows = np.flatnonzero(net.alive), []
    for some in range(1, 1 << len(others)):
        inside = np.zeros(net.n, dtype=bool)
        inside[[v for i, v in enumerate(others) if some >> i & 1]] = True
        if (inside & net.wanted).any():
            rows.append(inside[net.row[entries]] & ~inside[net.indices[entries]])
    return linprog(net.length[entries], -np.array(rows, float), -np.ones(len(rows))).fun


@pytest.mark.skipif(not available(), reason="HiGHS is not there")
def test_the_program_reaches_the_bound_of_all_cuts():
    better = 0
    for seed in range(12):
        core = hard(seed, 9, 5)
        net, least = Net.of(*core), shortest(core)
        ascent = Ascent(net, 1 << 40)
        ascent.run(1 << 40)
        made = DirectedProgram(net, cuts_of(net, ascent.heights(), 100))
        others = net.terminals[net.terminals != net.root]
        while made.solve(60.0) and (cuts := violated(net, made.x, others)):
            made.add(cuts)
        assert made.value == pytest.approx(all_cuts(net), rel=1e-6)
        places, bound, heights, room = made.proved(1 << 40)
        proved = -(-bound >> places)
        assert ascent.lower <= proved <= least and bound / 2**places <= made.value + 1e-6
        assert made.value - bound / 2**places < 1e-3 and room[net.alive].min() >= 0
        SteinerBound(proved, "program", [Case([heights])]).check(core)
        better += proved > ascent.lower
    assert better


def test_a_program_proves_and_leaves_out():
    closed = 0
    for seed in range(8):
        core = hard(seed)
        least = shortest(core)
        best = Best(core, least)
        work = CaseWork(Net.of(*core), best)
        list(work.run(Effort(1, True, 200), Clock()))
        assert work.lower <= least and best.upper == least
        SteinerBound(work.lower, work.method, [Case(work.heights)]).check(core)
        closed += work.closed and len(work.heights) > 1
    assert closed or not available()


def test_bounds_are_the_same_without_kernels():
    for seed in range(6):
        core = hard(seed, 14, 6)
        made = [archive.to_bytes(finished(core, compiled).proof()) for compiled in (True, False)]
        assert made[0] == made[1]


def test_damaged_proofs_prove_nothing_that_is_not_true():
    random, refused, tried = np.random.default_rng(5), 0, 0
    for seed in range(6):
        core = hard(seed, 16, 6) if seed % 2 else drawn(seed, 12, 30, 6)
        least = shortest(core)
        _, tree = by_cases(core, least + 20)
        list(tree.run())
        content = archive.to_bytes(SteinerBound(least, "cases", tree.cases()))
        for _ in range(40):
            tried += 1
            try:
                proof = archive.from_bytes(altered(content, random))
                proof.check(core)
                assert proof.lower <= least
            except REFUSED:
                refused += 1
    assert tried > refused > tried // 4


def wrong_proofs(core, proof):
    """Proofs that are none, and what is said of each."""
    case = proof.cases[0]
    heights = case.heights[0]

    def of(**changes):
        return replace(proof, cases=[replace(case, heights=[replace(heights, **changes)])])

    other = int(np.setdiff1d(np.arange(core.n), core.terminals)[0])
    yield of(totals=heights.totals + 1), "take more than|not proved"
    yield of(totals=heights.totals * 1000), "take more than"
    yield of(totals=np.full_like(heights.totals, 1 << 62)), "too large"
    yield of(heights=heights.heights - 1), "below 0"
    yield of(root=other), "no terminal"
    yield of(terminals=np.full_like(heights.terminals, other)), "no terminal"
    yield of(nodes=heights.nodes + core.n), "unknown node"
    yield of(ptr=heights.ptr[:-1]), "not those of terminals"
    yield of(places=60), "multiples"
    yield replace(proof, cases=[Case([])]), "not proved"
    yield replace(proof, cases=[Case([], other)]), "missing|not proved"
    yield replace(proof, cases=[Case([], int(core.terminals[0])), *[Case([])] * 2]), "a terminal"
    yield replace(proof, cases=[]), "missing"


def test_forged_proofs_are_refused_in_a_line():
    core = next(core for core in map(drawn, range(2, 60, 3)) if 3 < len(core.terminals) < core.n)
    ascent = Ascent(Net.of(*core), 1 << 40)
    ascent.run(1 << 40)
    proof = SteinerBound(ascent.lower, "dual ascent", [Case([ascent.heights()])])
    proof.check(core)
    for wrong, what in wrong_proofs(core, proof):
        with pytest.raises(BadCertificate, match=what) as caught:
            wrong.check(core)
        assert "\n" not in str(caught.value)


def test_bounds_end_in_time_and_know_what_others_find():
    core = hard(2, 60, 20)
    bounds = SteinerBounds(core)
    bounds.expect(60.0)
    bounds.until(0.0)
    upper = int(core.lengths.sum())
    while bounds.improve(0.0, upper) and (not bounds.value or bounds.pieces() is None):
        pass
    assert 0 < bounds.value < upper and bounds.least_seconds > 0
    found = bounds.pieces()
    assert found is not None and core.length(found) < upper
    bounds.improve(0.0, core.length(found))
    assert bounds.pieces() is None or core.length(bounds.pieces()) < core.length(found)
    bounds.proof().check(core)


def test_one_terminal_is_a_tree():
    core = drawn(4)._replace(terminals=np.array([2]))
    bounds = finished(core)
    assert bounds.value == 0 and bounds.method and core.length(bounds.optimum()) == 0
    bounds.proof().check(core)
