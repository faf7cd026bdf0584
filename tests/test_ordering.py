"""Orders of little weight backward: reductions, search, bounds against brute force, proofs, files, ranks."""

import itertools
import json
import sys
from contextlib import nullcontext
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.ordering.bounds import OrderingBounds, parts_of
from app.bounds.ordering.cycles import packed
from app.errors import CaseError, GraphError
from app.graphs.formats.readers import open_edges
from app.graphs.graph import IN_A, IN_TRANSPOSE, Graph
from app.graphs.ordering import canonical_order, least_order, net_of
from app.problems.ordering import LinearOrdering
from app.proofs import archive
from app.reductions.ordering.log import NODES
from app.reductions.ordering.reducer import OrderingReducer
from app.reductions.ordering.verify import verify_log
from app.reductions.replay import BadReduction
from app.search.ordering.baselines import ORDERING_BASELINES
from app.search.ordering.search import OrderingSearch
from app.search.ordering.tools import OrderingTools
from app.toolbox import Instance

alone = pytest.mark.mpi_skip
QUICK = {"search.steps": 20_000, "search.bound_seconds": 20.0}


def drawn(seed, n=0, degree=0.0, largest=6):
    """Net arcs of a random digraph, sparse or dense."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(3, 8))
    count = int((degree or draws.uniform(1, 4)) * n)
    tails, heads = draws.integers(0, n, (2, count))
    apart = tails != heads
    weights = draws.integers(1, largest, count)
    return net_of(n, tails[apart], heads[apart], weights[apart])[0]


def trimmed(net):
    """Of the nodes that have arcs."""
    return net.part(np.unique(np.concatenate([net.tails, net.heads])))


def table(n, seed, spread=2.0):
    """A matrix with entries of a heavy tail, as input-output tables have them."""
    draws = np.random.default_rng(seed)
    matrix = np.exp(draws.normal(2, spread, (n, n))).astype(int)
    np.fill_diagonal(matrix, 0)
    return matrix


def least(net):
    """By trying all orders."""
    places = np.array(list(itertools.permutations(range(net.n))), dtype=np.int64)
    return int(((places[:, net.tails] > places[:, net.heads]) @ net.weights).min())


def least_backward(matrix):
    """Of a matrix, from its entries alone, and the orders that pay it."""
    n, best, found = len(matrix), None, []
    for order in itertools.permutations(range(n)):
        cost = sum(matrix[order[j], order[i]] for i in range(n) for j in range(i + 1, n))
        if best is None or cost < best:
            best, found = cost, []
        if cost == best:
            found.append(order)
    return best, found


# ---- parts, against brute force -----------------------------------------------------------------------


@alone
def test_reductions_keep_the_least_order_and_are_proved():
    counts, refused, draws = np.zeros(3, dtype=int), 0, np.random.default_rng(1)
    for seed in range(50):
        net = drawn(seed, degree=1.5)
        reducer = OrderingReducer(net)
        reducer.reduce(lambda: False)
        kernel, names = reducer.kernel()
        log = np.array(reducer.log, dtype=np.int64)
        left, places, paid = verify_log(net, log)
        assert (places == names).all() and paid == reducer.paid
        for name in ("tails", "heads", "weights"):
            assert (getattr(left, name) == getattr(kernel, name)).all()
        best = least(net)
        assert paid + least(kernel) == best
        order = draws.permutation(kernel.n)
        lifted = reducer.lift(order)
        assert sorted(lifted) == list(range(net.n)) and net.cost(lifted) == paid + kernel.cost(order)
        whole = draws.permutation(net.n)
        assert net.cost(reducer.lift(reducer.restrict(whole))) <= net.cost(whole)
        counts += reducer.counts
        if len(log):
            log[draws.integers(len(log))] = draws.integers(-1, max(len(NODES), net.n) + 1)
            try:
                left, _, paid = verify_log(net, log)
            except BadReduction:
                refused += 1
            else:  # what passes is a reduction, too
                assert paid + least(left) == best
    assert (counts > 0).all() and refused > 15


@alone
def test_reductions_may_end_early():
    net = drawn(2, 30_000, 1.6)
    for most in (1, 2, 3):
        reducer = OrderingReducer(net)
        reducer.reduce(lambda: False, most)
        assert reducer.steps == most and reducer.over
        kernel, names = reducer.kernel()
        left, places, paid = verify_log(net, np.array(reducer.log))
        assert (places == names).all() and (left.heads == kernel.heads).all() and paid == reducer.paid


@alone
def test_the_canonical_order_is_the_first_of_those_that_are_the_same_answer():
    for seed in range(12):
        net, draws = drawn(seed, 6, 1.2), np.random.default_rng(seed)
        order = draws.permutation(6)
        place = np.argsort(order)
        behind = place[net.tails] > place[net.heads]
        same = [
            each for each in itertools.permutations(range(6))
            if ((np.argsort(each)[net.tails] > np.argsort(each)[net.heads]) == behind).all()
        ]  # fmt: skip
        for compiled in (True, False):
            assert tuple(canonical_order(net, order, compiled)) == min(same)
    assert len(least_order(3, np.array([0, 1]), np.array([1, 0]))) == 1  # a cycle has no order
    for n in (63, 64, 65, 4097):  # words of one level, of two and of three; some arcs are told twice
        place = np.random.default_rng(n).permutation(n)
        u, v = np.random.default_rng(n).integers(0, n, (2, 2 * n))
        ahead = place[u] < place[v]
        tails, heads = np.where(ahead, u, v)[u != v], np.where(ahead, v, u)[u != v]
        tails, heads = np.append(tails, tails[:9]), np.append(heads, heads[:9])
        orders = [least_order(n, tails, heads, compiled) for compiled in (True, False)]
        np.testing.assert_array_equal(*orders)
        at = np.argsort(orders[0])
        assert len(orders[0]) == n and (at[tails] < at[heads]).all()


@alone
@pytest.mark.parametrize("seed", range(10))
def test_searches_are_the_same_without_kernels_and_however_they_are_sliced(seed):
    net = trimmed(drawn(seed, 40, 3.0) if seed % 2 else drawn(seed, 14, 40.0, 100))
    for rule in ORDERING_BASELINES.values():
        order, _ = rule(net, True)
        assert sorted(order) == list(range(net.n)) and (rule(net, False)[0] == order).all()
    found = []
    for compiled, slices in ((True, [4000]), (True, [1, 99, 400, 3500]), (False, [700, 3300])):
        search = OrderingSearch(net, np.arange(net.n), seed, compiled)
        search.patience = 60  # several rounds
        for steps in slices:
            search.run(steps)
            assert net.cost(search.solution()) == search.best
        current = search._current()
        assert net.cost(current) == search.cost and (np.diff(search.label[current]) > 0).all()
        found.append((search.best, search.found_at, search.steps, search.solution().tolist(), search.random))
    assert found[0] == found[1] == found[2] and search._rounds


@alone
@pytest.mark.parametrize("seed", range(4))
def test_of_orders_as_good_the_first_is_kept_however_runs_are_sliced(seed):
    net = trimmed(drawn(seed, 40, 3.0, 2))  # many orders cost the same
    found = []
    for compiled, each in ((True, 9000), (True, 31), (True, 777), (False, 4500)):
        search = OrderingSearch(net, np.arange(net.n), seed, compiled)
        while search.steps < 9000:
            search.run(min(each, 9000 - search.steps))
        found.append((search.best, search.found_at, search.solution().tolist()))
    assert found.count(found[0]) == len(found)


@alone
@pytest.mark.parametrize("seed", range(4))
def test_the_best_order_is_kept_through_more_moves_than_there_is_room_for(seed):
    net = trimmed(drawn(seed, 400, 3.0, 2))
    found = []
    for each in (300_000, 1000):
        search = OrderingSearch(net, np.arange(net.n), seed)
        while search.steps < 300_000:
            search.run(min(each, 300_000 - search.steps))
        assert net.cost(search.solution()) == search.best
        found.append((search.best, search.found_at, search.solution().tolist(), search.random))
    assert found[0] == found[1]


@alone
def test_searches_of_heavy_arcs_are_the_same_without_kernels():
    """Mean weights of 2^44, whose products with draws are beyond 64 bits."""
    net = trimmed(drawn(0, 14, 40.0, 100))
    net = replace(net, weights=net.weights * ((1 << 52) // int(net.weights.sum())))
    found = []
    for compiled in (True, False):
        search = OrderingSearch(net, np.arange(net.n), 1, compiled)
        search.patience = 200
        search.run(6000)
        found.append((search.best, search.steps, search.cost, search.solution().tolist(), search.random))
    assert net.weights.mean() > 1 << 44 and found[0] == found[1]


@alone
def test_searches_find_the_least_order_of_small_questions_and_hear():
    for seed in range(12):
        net = trimmed(drawn(seed, 7, 3.0))
        search = OrderingSearch(net, np.arange(net.n), seed)
        search.run(20_000)
        assert search.best == least(net)
    net = trimmed(drawn(4, 300, 4.0))
    good, poor = (OrderingSearch(net, np.arange(net.n), seed) for seed in (1, 2))
    good.run(400_000)
    poor.patience = 1
    poor.meet([good.news()])
    poor.run(20_000)
    assert poor.best <= good.best and net.cost(poor.solution()) == poor.best


@alone
def test_labels_are_spread_where_there_is_no_room():
    """Nodes that always come to stand at one place use up the labels around it."""
    n = 400
    net = net_of(n, np.arange(1, n), np.zeros(n - 1, dtype=int), np.ones(n - 1, dtype=int))[0]
    states = []
    for compiled in (True, False):
        search = OrderingSearch(net, np.arange(n), 3, compiled)
        search.run(20 * n)
        assert search.done and (np.diff(search.label[search._current()]) > 0).all()
        states.append(search.label.tolist())
    assert states[0] == states[1]


@alone
def test_bounds_reach_the_least_order_and_are_proved_on_the_way():
    for seed in range(30):
        net = drawn(seed)
        best, given = least(net), np.random.default_rng(seed).permutation(net.n) if seed % 3 else None
        bounds = OrderingBounds(net)
        while bounds.improve(0.0, best + seed % 2, given):
            assert sum(part.lower for part in bounds.witness()) == bounds.value <= best
            for part in bounds.witness():
                part.check(net)
        assert bounds.value == best
        for part in bounds.witness():
            part.check(net)
        if (found := bounds.pieces()) is not None:
            assert net.cost(found) == best


@alone
def test_packings_are_the_same_without_kernels_and_use_no_arc_up_twice():
    for seed in range(6):
        net = drawn(seed, 60, 4.0 if seed % 2 else 25.0, 30)
        (*_, found), (*_, plain) = packed(net), packed(net, False)
        assert found == plain and found
        load: dict[tuple[int, int], int] = {}
        for cycle, value in found:
            for pair in zip(cycle, (*cycle[1:], cycle[0])):
                load[pair] = load.get(pair, 0) + value
        held = dict(zip(zip(net.tails.tolist(), net.heads.tolist()), net.weights.tolist()))
        assert all(value <= held[pair] for pair, value in load.items())
        left = [pair for pair, weight in held.items() if weight > load.get(pair, 0)]
        assert nx.is_directed_acyclic_graph(nx.DiGraph(left))


@alone
def test_one_long_cycle_is_packed():
    nodes = np.arange(500)
    net = net_of(500, nodes, (nodes + 1) % 500, nodes + 7)[0]
    for compiled in (True, False):
        (*_, found) = packed(net, compiled)
        assert found == [(tuple(range(500)), 7)]


@alone
def test_parts_have_all_cycles_and_no_arc_in_common():
    """Two triangles that meet in a node, and a third that an arc leads to."""
    tails, heads = np.array([0, 1, 2, 2, 3, 4, 4, 5, 6, 7]), np.array([1, 2, 0, 3, 4, 2, 5, 6, 7, 5])
    net = net_of(8, tails, heads, np.ones(10, dtype=np.int64))[0]
    assert [part.tolist() for part in parts_of(net)] == [[0, 1, 2], [2, 3, 4], [5, 6, 7]]
    bounds = OrderingBounds(net)
    while bounds.improve(0.0, 9, np.arange(8)[::-1]):
        pass
    assert bounds.value == 3 == net.cost(bounds.pieces())


@alone
def test_a_tree_of_several_leaves_is_proved_and_its_parts_are_needed():
    net = trimmed(drawn(1, 24, 40.0, 100))
    search = OrderingSearch(net, np.arange(net.n), 1)
    search.run(300_000)
    bounds = OrderingBounds(net)
    while bounds.improve(0.1, search.best, search.solution()):
        pass
    assert bounds.value == search.best and bounds.method == "branch and bound"
    (part,) = bounds.witness()
    part.check(net)
    assert len(part.tree) > 1
    for wrong, why in (
        ({"lower": part.lower + 1}, "does not prove"),
        ({"tree": part.tree[:-1]}, "leaves that are not|the tree is no tree"),
        ({"leaf_values": -part.leaf_values}, "below 0"),
        ({"row_nodes": np.zeros_like(part.row_nodes)}, "has a node twice"),
        ({"us": part.vs}, "division|leaf|searchsorted|out of"),
        ({"one": part.one << 50}, "61 bits"),
    ):
        with pytest.raises((BadCertificate, IndexError), match=why):
            replace(part, **wrong).check(net)
    lighter = replace(net, weights=np.maximum(net.weights - 1, 1))
    with pytest.raises(BadCertificate, match="does not prove"):
        part.check(lighter)


def diagonal_told(told):
    """Loops are dropped with a word."""
    return pytest.warns(UserWarning, match="diagonal") if told else nullcontext()


# ---- whole answers ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(6))
def test_small_questions_have_least_orders(seed):
    """Of weights of any sign, fractions among them; parallel arcs add up."""
    draws = np.random.default_rng(seed)
    n = int(draws.integers(3, 7))
    matrix = draws.integers(-4, 9, (n, n)) * (draws.random((n, n)) < 0.7) * (0.25 if seed % 2 else 1)
    best, orders = least_backward(matrix)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(n))
    for u, v in zip(*np.nonzero(matrix)):
        graph.add_edge(int(u), int(v), weight=float(matrix[u, v] - 2))
        graph.add_edge(int(u), int(v), weight=2.0)
    total = matrix.sum() - np.trace(matrix)
    for keys in ({}, {"search.reductions": False}, {"run.kernels": "plain", "search.steps": 500}):
        with diagonal_told(np.trace(np.abs(matrix)) > 0):
            answer = solve(graph, "ordering", settings=QUICK | keys | {"output.certificates": True})
        assert answer.objective == best == answer.bound and answer.bound_verified and answer.optimal
        assert answer.order == answer.nodes and tuple(answer.order) in orders
        assert answer.kept == total - best
        with diagonal_told(np.trace(np.abs(matrix)) > 0):
            assert check(graph, answer).optimal
        assert len(answer.baselines) == 4 and min(answer.baselines.values()) >= best


def test_ranks_agree_with_one_rank():
    net = drawn(8, 300, 3.0)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(zip(*(each.tolist() for each in (net.tails, net.heads, net.weights))))
    keys = {"search.steps": 300_000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "ordering", settings=keys)
    one = solve(graph, "ordering", settings=keys, comm=MPI.COMM_SELF)
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_an_answer_is_never_worse_than_where_it_starts():
    matrix = table(30, 1)
    first = solve(matrix, "ordering", settings=QUICK | {"search.bounds": False})
    for start in (first, first.nodes):
        keys = {"search.steps": 1, "search.bounds": False, "search.baselines": False}
        assert solve(matrix, "ordering", start=start, settings=keys).objective <= first.objective
    with pytest.raises(GraphError, match="start: found 2 nodes; each of 30 once would be right"):
        solve(matrix, "ordering", start=[1, 2], settings=keys)
    with pytest.raises(GraphError, match="found a set, which has no order; a list of all nodes would be"):
        check(matrix, {1, 2}, "ordering")
    with pytest.raises(CaseError, match="all nodes are in an order, none inside or outside"):
        solve(matrix, "ordering", inside=[1], settings=keys)


@alone
def test_tables_are_proved_by_the_program_of_triangles():
    matrix = table(40, 2)
    answer = solve(matrix, "ordering", search_seconds=20.0, settings={"output.certificates": True})
    assert answer.optimal and answer.bound_method == "linear program of cycles"
    assert answer.kept == matrix.sum() - answer.objective
    order = np.array(answer.order)
    assert np.triu(matrix[np.ix_(order, order)], 1).sum() == answer.kept
    assert check(matrix, answer).bound == answer.objective


@alone
def test_damaged_certificates_prove_nothing_that_is_not_so():
    net = drawn(5, 60, 2.2)
    pattern = net.pattern("drawn")
    held = dict(zip(zip(net.tails.tolist(), net.heads.tolist()), net.weights.tolist()))
    pairs = list(zip(pattern.row_of().tolist(), pattern.indices.tolist()))
    arcs = [IN_A if pair in held else IN_TRANSPOSE for pair in pairs]
    weights = np.array([held.get(pair, 0) for pair in pairs], dtype=np.float32)
    graph = Graph(
        "drawn", net.n, 0, net.n, pattern.indptr, pattern.indices, pattern.edges, weights,
        arcs=np.array(arcs, dtype=np.uint8),
    )  # fmt: skip
    tools = OrderingTools(Instance(graph), LinearOrdering())
    listed = [(u, v, w) for (u, v), w in held.items()]
    answer = solve(listed, "ordering", settings=QUICK | {"output.certificates": True})
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert answer.optimal and best == answer.objective and "reductions" in answer.bound_method
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(150)]
    assert sum(refused) > 50


# ---- arcs from everywhere -----------------------------------------------------------------------------


@alone
def test_formats_that_have_arcs_and_matrices(tmp_path):
    """Arcs 1 -> 2 of 3 in two pieces, 2 -> 1 of 1, 2 -> 3 -> 1 of 2 each: order 1 2 3 pays 1 and 2."""
    listed = "1 2 1\n1 2 2\n2 1 1\n2 3 2\n3 1 2\n"
    texts = {
        "g.txt": listed,
        "g.gr": "p sp 3 5\n" + "".join(f"a {line}\n" for line in listed.splitlines()),
        "g.mtx": "%%MatrixMarket matrix coordinate integer general\n3 3 5\n" + listed,
        "table": "a table of three\n3\n 7 3 0\n1 0 2 2 0\n-5\n",
        "table.lop": "3\n7 3 0 1 0 2 2 0 -5",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        for keys in (
            {},
            {"memory.cache": str(tmp_path / "cache")},
            {"memory.cache": str(tmp_path / "cache")},
        ):
            with (
                pytest.warns(UserWarning, match="2 entries of the diagonal")
                if "table" in name
                else nullcontext()
            ):
                answer = solve(str(tmp_path / name), "ordering", settings=QUICK | keys)
            assert (answer.objective, answer.kept, answer.order) == (3, 5, [1, 2, 3]), name
    matrix = np.array([[0, 3, 0], [1, 0, 2], [2, 0, 0]])
    listed = [(0, 1, 1), (0, 1, 2), (1, 0, 1), (1, 2, 2), (2, 0, 2)]
    for given in (matrix, nx.from_numpy_array(matrix, create_using=nx.DiGraph), listed):
        assert solve(given, "ordering", settings=QUICK).order == [0, 1, 2]
    scores = matrix - matrix.T  # of a skew-symmetric matrix
    answer = solve(scores, "ordering", settings=QUICK)
    assert answer.kept == -answer.objective == 2 == np.triu(scores, 1).sum() and answer.optimal


@alone
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no edges in .*; the number of rows, then so many times so many numbers would be right"),
        ("a\nb\n1\n", ":2: found 'b'; the number of rows, then so many times so many numbers, would be"),
        ("0\n", ":1: found 0 rows; 1 to 20000 would be right"),
        ("2\n0 1\n2\n", ":1: the header states 2 rows, 4 numbers; found 3; equal numbers would be right"),
        ("2\n0 1\n2 3 4\n", ":1: the header states 2 rows, 4 numbers; found more; equal numbers would be"),
        ("2\n0 1\nx 0\n", ":3: found 'x'; a number would be right"),
        ("2\n0 1_0\n1 0\n", ":2: found '1_0'; a number would be right"),
        pytest.param(
            "600\n" + "1 " * 250_000 + "1" * 2_000_000,
            ":2: found '1111.*; a number would be right",
            id="a long word",
        ),
        ("2\n0 1e999\n1 0\n", ":2: found '1e999'; a number would be right"),
        ("2\n0 1e99\n1 0\n", "found an entry beyond 3.4e38; smaller entries would be right"),
    ],
)
def test_matrices_that_are_wrong_are_refused_by_line(tmp_path, text, message):
    (tmp_path / "m.lop").write_text(text)
    with pytest.raises(GraphError, match=message):
        list(open_edges(str(tmp_path / "m.lop")).chunks())


@alone
def test_what_asks_for_no_order_is_refused(tmp_path):
    with pytest.raises(GraphError, match=r"edges without directions|without directions \(networkx\)"):
        solve(nx.path_graph(4), "ordering")
    with pytest.raises(CaseError, match="ordering is of arcs: arcs, rmat, rmat_natural would be right, got"):
        solve([(0, 1)], settings={"problem.name": "ordering", "graph.generator": "er", "graph.nodes": 5})
    with pytest.raises(CaseError, match=r'graph.duplicates: .* has arcs that add up; "merge" would be right'):
        solve([(0, 1)], "ordering", settings={"graph.duplicates": "error"})
    answer = solve([(0, 1), (1, 2)], "ordering", settings=QUICK)
    assert (answer.objective, answer.bound, answer.order) == (0, 0, [0, 1, 2])
    (tmp_path / "s.txt").write_text("0\n1\n1\n")
    with pytest.raises(GraphError, match=r"s.txt:3: node 1 is named twice; an order has each once"):
        check([(0, 1), (1, 2)], str(tmp_path / "s.txt"), "ordering")


@alone
def test_a_run_of_generated_digraphs_can_be_checked_and_drawn(tmp_path):
    keys = ["graph.nodes=40", "graph.p=0.06", "graph.count=2", "search.steps=30000", "search.seconds=0"]
    out = tmp_path / "run"
    job = [sys.executable, "run.py", "inputs/ordering.toml", *keys, "output.certificates=true"]
    code, told = run_job([*job, f"--out={out}"], 120)
    assert code == 0, told
    entries = json.loads((out / "result.json").read_text())["instances"]
    assert all(entry["bound_verified"] and entry["kept"] > 0 for entry in entries)
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 2 are proved" in told
