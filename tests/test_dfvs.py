"""Directed feedback vertex sets: reductions, search and bounds against brute force, proofs, files, ranks."""

import itertools
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.dfvs.bounds import DirectedFeedbackBounds
from app.bounds.dfvs.feasible import cycle_left
from app.errors import CaseError, GraphError
from app.graphs.digraph import digraph_of, from_arcs
from app.graphs.formats.readers import open_edges
from app.problems.dfvs import DirectedFeedbackVertexSet
from app.proofs import archive
from app.reductions.dfvs.log import NAMES, NODES
from app.reductions.dfvs.reducer import DirectedFeedbackReducer
from app.reductions.dfvs.verify import verify_log
from app.reductions.replay import BadReduction
from app.search.dfvs import plain
from app.search.dfvs.baselines import FEEDBACK_BASELINES, greedy, needed
from app.search.dfvs.search import DirectedFeedbackSearch, order_without
from app.search.dfvs.tools import DirectedFeedbackTools
from app.toolbox import Instance

alone = pytest.mark.mpi_skip
QUICK = {"search.steps": 20_000, "search.bound_seconds": 20.0}


def drawn(seed, n=0, degree=0.0, loops=True):
    """A digraph, sometimes with many mutual arcs, and prices, sometimes all one."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(2, 10))
    share = degree / (n - 1) if degree else draws.choice([0.15, 0.25, 0.4, 0.6])
    arcs = draws.random((n, n)) < share
    arcs |= arcs.T & (draws.random((n, n)) < draws.choice([0.0, 0.3, 1.0]))
    np.fill_diagonal(arcs, loops & (draws.random(n) < 0.05))
    return arcs, draws.integers(1, 6, n) if seed % 2 else np.ones(n, dtype=np.int64)


def of_arcs(arcs):
    return from_arcs(len(arcs), *np.nonzero(arcs))


def leaves_none(digraph, chosen):
    return len(order_without(digraph, chosen)) == np.count_nonzero(~chosen)


def least(digraph, price):
    """By trying all sets, with NetworkX."""
    graph = nx.DiGraph(zip(digraph.tails().tolist(), digraph.out.tolist()))
    graph.add_nodes_from(range(digraph.n))
    return of_graph(graph, price)


def of_graph(graph, price=None, without=()):
    nodes, best = sorted(graph), None
    for size in range(len(nodes) + 1):
        for some in itertools.combinations(set(nodes) - set(without), size):
            cost = size if price is None else int(sum(price[v] for v in some))
            if best is None or cost < best:
                left = graph.subgraph(set(nodes) - set(some))
                if nx.is_directed_acyclic_graph(left):
                    best = cost
        if price is None and best is not None:
            return best
    return best


# ---- parts, against brute force -----------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(40))
def test_reductions_keep_the_least_set_and_are_proved(seed):
    arcs, price = drawn(seed, loops=False)
    digraph, _ = of_arcs(arcs)
    reducer = DirectedFeedbackReducer(digraph, price)
    reducer.reduce(lambda: False)
    kernel, names = reducer.kernel()
    left, places, paid = verify_log(digraph, price, np.array(reducer.log))
    assert (
        (places == names).all() and (left.out_ptr == kernel.out_ptr).all() and (left.out == kernel.out).all()
    )
    assert paid == price[reducer.chosen].sum()
    assert paid + least(kernel, price[names]) == least(digraph, price)
    every = np.ones(digraph.n, dtype=bool)
    assert leaves_none(kernel, reducer.moved(every)[names])


@alone
def test_all_reductions_occur_and_may_end_early():
    counts = np.zeros(len(NAMES), dtype=int)
    for seed in range(60):
        arcs, price = drawn(seed, 40, 3.0)
        reducer = DirectedFeedbackReducer(of_arcs(arcs)[0], price)
        reducer.reduce(lambda: False)
        counts += reducer.counts
    assert (counts > 0).all(), dict(zip(NAMES, counts))
    arcs, price = drawn(2, 3000, 3.0)
    digraph, _ = of_arcs(arcs)
    for most in range(1, 6):
        reducer = DirectedFeedbackReducer(digraph, price)
        reducer.reduce(lambda: False, most)
        assert reducer.steps == most and reducer.over
        kernel, names = reducer.kernel()
        left, places, _ = verify_log(digraph, price, np.array(reducer.log))
        assert (places == names).all() and (left.out == kernel.out).all()


@alone
def test_reductions_that_are_none_are_refused():
    """Logs with one word changed: what the check lets pass leaves the least set what it is."""
    draws, refused = np.random.default_rng(1), 0
    for seed in range(60):
        arcs, price = drawn(seed, 7, loops=False)
        digraph, _ = of_arcs(arcs)
        reducer = DirectedFeedbackReducer(digraph, price)
        reducer.reduce(lambda: False)
        log = np.array(reducer.log)
        log[draws.integers(len(log))] = draws.integers(-1, max(len(NODES), digraph.n) + 1)
        try:
            left, names, paid = verify_log(digraph, price, log)
        except BadReduction:
            refused += 1
        else:
            assert paid + least(left, price[names]) == least(digraph, price)
    assert refused > 30


@alone
@pytest.mark.parametrize("seed", range(20))
def test_searches_are_the_same_without_kernels_and_however_they_are_sliced(seed):
    arcs, price = drawn(seed, 30, 3.0)
    digraph, _ = of_arcs(arcs)
    start = greedy(digraph, price, np.zeros(digraph.n, dtype=bool))
    assert leaves_none(digraph, start)
    assert (order_without(digraph, start) == plain.order_without(digraph, start.astype(np.uint8))).all()
    found = []
    for compiled, slices in ((True, [4000]), (True, [1, 99, 400, 3500]), (False, [700, 3300])):
        search = DirectedFeedbackSearch(digraph, start, seed, price if seed % 2 else None, compiled)
        for steps in slices:
            search.run(steps)
        assert leaves_none(digraph, search.solution()) and price[search.solution()].sum() == search.best
        state = search.label.tolist(), search.apart[: search.apart_size].tolist(), search.cost, search.random
        found.append((search.best, search.found_at, search.steps, search.solution().tolist(), state))
    assert found[0] == found[1] == found[2]
    assert found[0][0] <= price[start].sum()


@alone
def test_labels_are_spread_where_there_is_no_room():
    """Nodes that always come in at one place use up the labels around it."""
    n = 300
    digraph, _ = from_arcs(n, np.arange(1, n), np.zeros(n - 1, dtype=int))
    states = []
    for compiled in (True, False):
        search = DirectedFeedbackSearch(digraph, np.arange(n) > 0, 3, compiled=compiled)
        search.run(20 * n)
        assert search.done and (np.diff(search.label[order_of(search)]) > 0).all()
        states.append(search.label.tolist())
    assert states[0] == states[1]


def order_of(search):
    order, v = [], int(search.next[search.n])
    while v != search.n:
        order.append(v)
        v = int(search.next[v])
    return order


@alone
def test_a_search_goes_on_from_what_it_hears():
    arcs, _ = drawn(4, 60, 3.0)
    digraph, _ = of_arcs(arcs)
    every = np.ones(digraph.n, dtype=bool)
    good, poor = (DirectedFeedbackSearch(digraph, every, seed) for seed in (1, 2))
    good.run(200_000)
    poor.meet([good.news()])
    poor.run(64 * digraph.n + 1)  # to its second round
    assert poor.best <= good.best and leaves_none(digraph, poor.solution())


@alone
@pytest.mark.parametrize("seed", range(40))
def test_bounds_reach_the_least_set_and_are_proved_on_the_way(seed):
    arcs, price = drawn(seed)
    digraph, _ = of_arcs(arcs)
    best = least(digraph, price)
    given = greedy(digraph, price, np.zeros(digraph.n, dtype=bool)) if seed % 3 else None
    bounds = DirectedFeedbackBounds(digraph, price)
    while bounds.improve(0.0, best + seed % 2, given):
        proved = sum(part.lower for part in bounds.witness())
        assert proved == bounds.value <= best
        for part in bounds.witness():
            part.check(digraph, price)
    assert bounds.value == best
    for part in bounds.witness():
        part.check(digraph, price)
    if (found := bounds.pieces()) is not None:
        assert leaves_none(digraph, found) and price[found].sum() == best


@alone
def test_a_tree_of_several_leaves_is_proved_and_its_parts_are_needed():
    arcs, _ = drawn(6, 60, 5.0)
    digraph, _ = of_arcs(arcs)
    price = np.ones(digraph.n, dtype=np.int64)
    search = DirectedFeedbackSearch(digraph, np.ones(digraph.n, dtype=bool), 1)
    search.run(300_000)
    bounds = DirectedFeedbackBounds(digraph, price)
    while bounds.improve(0.1, search.best, search.solution()):
        pass
    assert bounds.value == search.best
    (part,) = bounds.witness()
    part.check(digraph, price)
    assert len(part.tree) > 1 and bounds.method == "branch and bound"
    with pytest.raises(BadCertificate, match="does not prove"):
        replace(part, lower=part.lower + 1).check(digraph, price)
    last = part.leaf_ptr[-2]
    fewer = {"leaf_rows": part.leaf_rows[:last], "leaf_values": part.leaf_values[:last]}
    with pytest.raises(BadCertificate, match="the tree is no tree"):
        replace(part, tree=part.tree[:-1], leaf_ptr=part.leaf_ptr[:-1], **fewer).check(digraph, price)
    with pytest.raises(BadCertificate, match="a node is divided twice"):
        tree = np.concatenate([part.tree[:1], part.tree[:1], [-1], part.tree[1:]])
        ptr = np.append(0, part.leaf_ptr)
        replace(part, tree=tree, leaf_ptr=ptr).check(digraph, price)
    nodes = part.row_nodes.copy()
    nodes[: part.ptr[1]] = nodes[: part.ptr[1]][::-1]
    cycle = replace(part, row_nodes=nodes, cliques=np.zeros_like(part.cliques))
    with pytest.raises(BadCertificate, match=r"row \d has no arc where it needs one"):
        cycle.check(from_arcs(digraph.n, digraph.tails()[::2], digraph.out[::2])[0], price)


@alone
@pytest.mark.parametrize("seed", range(20))
def test_plain_heuristics_leave_no_cycle(seed):
    arcs, price = drawn(seed, 40, 4.0)
    digraph, _ = of_arcs(arcs)
    for rule in FEEDBACK_BASELINES.values():
        chosen, _ = rule(digraph, price, True)
        assert leaves_none(digraph, chosen) and (rule(digraph, price, False)[0] == chosen).all()
    every = np.ones(digraph.n, dtype=bool)
    assert leaves_none(digraph, needed(digraph, price, every)) and not needed(digraph, price, every).all()


# ---- whole answers ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(12))
def test_small_digraphs_have_least_sets(seed):
    arcs, price = drawn(seed)
    graph = nx.DiGraph(zip(*map(np.ndarray.tolist, np.nonzero(arcs))))
    graph.add_nodes_from(range(len(arcs)))
    weights = {v: int(price[v]) for v in graph} if seed % 2 else None
    best = of_graph(graph, price if seed % 2 else None)
    for keys in ({}, {"search.reductions": False}, {"run.kernels": "plain", "search.steps": 2000}):
        answer = solve(
            graph, "dfvs", node_weights=weights, settings=QUICK | keys | {"output.certificates": True}
        )
        assert answer.objective == best == answer.bound and answer.bound_verified and answer.optimal
        assert nx.is_directed_acyclic_graph(graph.subgraph(set(graph) - set(answer.nodes)))
        assert check(graph, answer, node_weights=weights).optimal
        assert set(answer.baselines) == {"most ways through", "backward arcs"}


@alone
def test_fixed_nodes_are_held_to():
    for seed in range(8):
        arcs, _ = drawn(2 * seed, 8, loops=False)
        graph = nx.DiGraph(zip(*map(np.ndarray.tolist, np.nonzero(arcs))))
        graph.add_nodes_from(range(8))
        if not nx.is_directed_acyclic_graph(graph.subgraph([0, 1])):
            continue
        answer = solve(graph, "dfvs", outside=[0, 1], inside=[2], settings=QUICK)
        assert 2 in answer.nodes and not {0, 1} & set(answer.nodes) and answer.bound_verified
        left = graph.subgraph(set(graph) - {2})
        assert answer.objective == 1 + of_graph(left, without=[0, 1])
    ring = nx.cycle_graph(3, create_using=nx.DiGraph)
    with pytest.raises(CaseError, match=r"0 and others that are to be outside the set have a directed cycle"):
        solve(ring, "dfvs", outside=[0, 1, 2])
    ring.add_edge(1, 1)
    with pytest.raises(CaseError, match=r"1 has an arc to itself and is to be outside"):
        solve(ring, "dfvs", outside=[1])
    assert solve(ring, "dfvs", settings=QUICK).nodes == [1]


@alone
@pytest.mark.parametrize("weighted", [False, True])
def test_mutual_arcs_are_a_question_of_vertex_covers(weighted):
    graph = nx.gnp_random_graph(60, 0.2, seed=1)
    weights = {v: 1 + v % 4 for v in graph} if weighted else None
    answer = solve(
        graph.to_directed(), "dfvs", node_weights=weights, settings=QUICK | {"output.certificates": True}
    )
    cover = solve(graph, "mvc", node_weights=weights, settings=QUICK | {"search.start": "greedy"})
    assert answer.objective == cover.objective and answer.bound == cover.bound
    assert check(graph.to_directed(), answer, node_weights=weights).bound > 0


def test_ranks_agree_with_one_rank():
    arcs, _ = drawn(8, 150, 4.0)
    keys = {"search.steps": 1_500_000, "search.starts": 3, "search.bounds": False}
    answer = solve(arcs.astype(int), "dfvs", settings=keys)
    one = by_one(lambda: solve(arcs.astype(int), "dfvs", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_an_answer_is_never_worse_than_where_it_starts_and_what_is_missing_is_repaired():
    arcs, _ = drawn(10, 80, 4.0)
    first = solve(arcs.astype(int), "dfvs", settings=QUICK | {"search.bounds": False})
    for start in (first, first.nodes):
        keys = {"search.steps": 1, "search.bounds": False, "search.baselines": False}
        assert solve(arcs.astype(int), "dfvs", start=start, settings=keys).objective <= first.objective
    assert solve(arcs.astype(int), "dfvs", start=first.nodes[:2], settings=keys).feasible


@alone
def test_damaged_certificates_prove_nothing_that_is_not_so():
    arcs, _ = drawn(6, 60, 5.0)
    answer = solve(arcs.astype(int), "dfvs", settings=QUICK | {"output.certificates": True})
    assert answer.optimal and "branch and bound" in answer.bound_method
    digraph, loops = of_arcs(arcs)
    pattern = digraph.pattern("drawn")
    object.__setattr__(pattern, "loops", loops.astype(np.uint8))
    tools = DirectedFeedbackTools(Instance(pattern), DirectedFeedbackVertexSet())
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert best == answer.objective
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(150)]
    assert sum(refused) > 50


# ---- arcs from everywhere -----------------------------------------------------------------------------

PACE = "% three nodes in a ring, two in a pair, a loop\n6 7 0\n2\n3\n1\n5\n\n% inside\n4\n6\n"


@alone
def test_formats_that_have_arcs(tmp_path):
    """A ring 1 2 3, a pair 4 5 and a loop at 6: three nodes are to be taken, whatever says so."""
    arcs = [(1, 2), (2, 3), (3, 1), (4, 5), (5, 4), (6, 6)]
    listed = "".join(f"{u} {v}\n" for u, v in arcs)
    lines = {
        "g.txt": listed,
        "g.col": "p sp 6 6\n" + "".join(f"a {u} {v} 1\n" for u, v in arcs),
        "g.mtx": "%%MatrixMarket matrix coordinate pattern general\n6 6 6\n" + listed,
        "g.gr": PACE.replace("6 7 0", "6 6 0").replace("5\n\n%", "5\n%"),
    }  # fmt: skip
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
        for keys in (
            {},
            {"memory.cache": str(tmp_path / "cache")},
            {"memory.cache": str(tmp_path / "cache")},
        ):
            answer = solve(str(tmp_path / name), "dfvs", settings=QUICK | keys)
            assert answer.objective == 3 and 6 in answer.nodes and answer.optimal, name
    graph = nx.DiGraph(arcs)
    for given in (graph, nx.to_numpy_array(graph), nx.to_scipy_sparse_array(graph), np.array(arcs), arcs):
        assert solve(given, "dfvs", settings=QUICK).objective == 3


@alone
def test_what_has_no_directions_is_refused(tmp_path):
    with pytest.raises(
        GraphError, match=r"edges without directions \(memory\); dfvs is of arcs: a networkx.DiGraph"
    ):
        solve(nx.path_graph(4), "dfvs")
    (tmp_path / "g.graph").write_text("2 1\n2\n1\n")
    with pytest.raises(
        GraphError, match=r"g.graph: found edges without directions \(metis\); dfvs is of arcs: an"
    ):
        solve(str(tmp_path / "g.graph"), "dfvs")
    with pytest.raises(CaseError, match="dfvs is of arcs: arcs, rmat, rmat_natural would be right, got"):
        solve([(0, 1)], settings={"problem.name": "dfvs", "graph.generator": "er", "graph.nodes": 5})


@alone
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no edges in .*; a header 'NODES ARCS 0' would be right"),
        ("3 1\n2\n\n\n", ":1: found 2 fields in '3 1'; 'NODES ARCS 0' would be right"),
        ("3 1 1\n2\n\n\n", ":1: found the type 1 in '3 1 1'; 'NODES ARCS 0' would be right"),
        ("3 1 0\n4\n\n\n", ":2: found node id 4 outside 1..3 in '4'; neighbours 1..3 would be right"),
        ("3 2 0\n2\n\n\n", ":1: the header states 2 arcs, found 1; equal numbers would be right"),
        (
            "3 1 0\n2\n",
            ":1: the header states 3 nodes, found 1 node lines; a line for each node would be right",
        ),
    ],
)
def test_files_of_pace_that_are_wrong_are_refused_by_line(tmp_path, text, message):
    (tmp_path / "p.gr").write_text(text)
    with pytest.raises(GraphError, match=message):
        list(open_edges(str(tmp_path / "p.gr"), "pace2022").chunks())


@alone
def test_a_cycle_that_is_left_is_told():
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 3)])
    with pytest.raises(GraphError, match=r"leaves the directed cycle (0-1-2-0|1-2-0-1|2-0-1-2)$"):
        check(graph, [3], "dfvs", settings=QUICK)
    assert check(graph, [2], "dfvs", settings=QUICK).optimal
    ring = nx.cycle_graph(30, create_using=nx.DiGraph)
    with pytest.raises(GraphError, match=r"leaves the directed cycle [\d-]+-\.\.\. of 30 nodes"):
        check(ring, [], "dfvs", settings=QUICK)
    pattern = from_arcs(4, [0, 1, 2], [1, 2, 0])[0].pattern("g")
    assert sorted(cycle_left(pattern, np.zeros(4, dtype=bool))) == [0, 1, 2]
    assert cycle_left(pattern, np.arange(4) == 1) is None
    assert digraph_of(pattern)[0].arcs == 3


@alone
def test_a_run_of_generated_digraphs_can_be_checked_and_replayed(tmp_path):
    keys = ["graph.nodes=60", "graph.p=0.05", "graph.count=2", "search.steps=30000", "search.seconds=0"]
    out = tmp_path / "run"
    job = [
        sys.executable,
        "run.py",
        "inputs/dfvs.toml",
        *keys,
        "output.certificates=true",
        "output.plots=false",
    ]
    code, told = run_job([*job, f"--out={out}"], 120)
    assert code == 0, told
    entries = json.loads((out / "result.json").read_text())["instances"]
    assert all(entry["bound_verified"] for entry in entries)
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 2 are proved" in told
