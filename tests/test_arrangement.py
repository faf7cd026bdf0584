"""Linear arrangements: reductions, search, bounds against brute force, proofs, files, ranks."""

import itertools
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, instance_of
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.arrangement import witness
from app.bounds.arrangement.bounds import ArrangementBounds
from app.bounds.arrangement.exact import fitting, least
from app.bounds.arrangement.witness import ArrangementProof, part_of
from app.bounds.certificate import BadCertificate
from app.errors import CaseError, GraphError
from app.graphs.arrangement import (
    BANDWIDTH,
    CUTWIDTH,
    KINDS,
    LENGTH,
    PROFILE,
    SEPARATION,
    SUMS,
    WEIGHTED,
    Arrangement,
)
from app.graphs.graph import Graph
from app.problems.arrangement import LinearArrangement
from app.proofs import archive
from app.search.arrangement.baselines import RULES
from app.search.arrangement.search import ArrangementSearch
from app.search.arrangement.spectral import spectral
from app.search.arrangement.tools import ArrangementTools

alone = pytest.mark.mpi_skip
QUICK = {"search.steps": 20_000, "search.bound_seconds": 20.0}


def asked_of(graph, kind, heaviest=0, seed=0):
    """The question of a NetworkX graph; with weights up to `heaviest`."""
    graph = nx.convert_node_labels_to_integers(graph)
    draws = np.random.default_rng(seed)
    table = np.zeros((len(graph),) * 2, dtype=np.int64)
    for u, v in graph.edges:
        table[u, v] = table[v, u] = draws.integers(1, heaviest + 1) if heaviest else 1
    rows, columns = np.nonzero(table)
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=len(graph))))
    return Arrangement(kind, indptr, columns.astype(np.int32), table[rows, columns])


def drawn(seed, n=7, degree=2.6):
    """A random graph; with nodes that are apart where it is sparse."""
    return nx.gnm_random_graph(n, int(degree * n / 2), seed=seed)


def connected(seed, n=7, degree=2.6):
    """The largest component of one."""
    graph = drawn(seed, n, degree)
    return graph.subgraph(max(nx.connected_components(graph), key=len))


def without_lone(graph):
    """Without nodes that have no edge."""
    graph = nx.Graph(graph)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    return graph


def grouped(asked):
    """The given order, component by component."""
    return np.argsort(asked.parts(), kind="stable")


def worth(table, order, kind):
    """From the definition, of a matrix of weights [n, n]."""
    n, place = len(order), np.argsort(order)
    edges = [(u, v) for u in range(n) for v in range(u) if table[u, v]]
    spans = [abs(place[u] - place[v]) for u, v in edges]
    if kind == LENGTH:
        return sum(table[e] * d for e, d in zip(edges, spans))
    if kind == BANDWIDTH:
        return max(spans, default=0)
    if kind == PROFILE:
        near = [[place[u] for u in range(n) if table[u, v]] for v in range(n)]
        return sum(place[v] - min([place[v], *near[v]]) for v in range(n))
    found = [0]
    for g in range(n - 1):
        across = [e for e in edges if (place[e[0]] <= g) != (place[e[1]] <= g)]
        if kind == CUTWIDTH:
            found.append(sum(table[e] for e in across))
        else:
            found.append(len({min(e, key=lambda v: place[v]) for e in across}))
    return max(found)


def table_of(asked):
    """[n, n], its weights."""
    table = np.zeros((asked.n, asked.n), dtype=np.int64)
    table[asked.row_of(), asked.indices] = asked.weights
    return table


def lowest(asked):
    """The least value of all orders."""
    return min(asked.value(np.array(order)) for order in itertools.permutations(range(asked.n)))


# ---- parts, against brute force -----------------------------------------------------------------------


@alone
def test_values_are_what_the_definitions_say():
    draws = np.random.default_rng(1)
    for seed in range(12):
        asked = asked_of(drawn(seed, 9), LENGTH, 5 * (seed % 2), seed)
        order = draws.permutation(9)
        found = asked.values(order)
        assert found == {kind: worth(table_of(asked), order, kind) for kind in KINDS}
        turned = asked.values(order[::-1])
        assert all(found[kind] == turned[kind] for kind in (LENGTH, BANDWIDTH, CUTWIDTH))


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_searches_and_bounds_reach_the_least_value_of_seven_nodes(kind):
    for seed in range(5):
        asked = asked_of(without_lone(drawn(seed)), kind, 6 * (kind in WEIGHTED and seed % 2), seed)
        best = lowest(asked)
        search = ArrangementSearch(asked, grouped(asked), seed)
        search.run(20_000)
        assert search.best == best == asked.value(search.solution())
        bounds = ArrangementBounds(asked)
        while bounds.improve(0.0, best + 1):
            assert bounds.value <= best
        assert bounds.value == best and bounds.proved
        assert ArrangementProof(bounds.witness(), True).proved(asked) == best
        found = bounds.optimum()
        assert found is None or asked.value(found) == best


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_programs_over_subsets_are_the_same_without_kernels(kind):
    for seed in range(4):
        asked = asked_of(connected(seed, 10, 3.0), kind, 9 * (kind in WEIGHTED), seed)
        if kind != BANDWIDTH:
            (value, order), (other, plain) = least(asked), least(asked, compiled=False)
            assert value == other == asked.value(order) and (order == plain).all()
            continue
        for width in range(1, 5):
            (order, *told), (plain, *others) = fitting(asked, width, 9000), fitting(asked, width, 9000, False)
            assert told == others and told[0]
            assert (order is None) == (plain is None) and (order is None or (order == plain).all())
            assert order is None or asked.value(order) <= width


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_searches_are_the_same_without_kernels_and_however_they_are_sliced(kind):
    """Of two components, with many orders of equal value, over several rounds."""
    graph = without_lone(nx.disjoint_union(drawn(3, 26, 3.4), nx.grid_2d_graph(3, 5)))
    asked = asked_of(graph, kind, 4 * (kind in WEIGHTED))
    found = []
    for compiled, each in ((True, 4000), (True, 1), (True, 77), (False, 1300)):
        search = ArrangementSearch(asked, grouped(asked), 5, compiled)
        search.turns = 250
        while search.steps < 4000:
            search.run(min(each, 4000 - search.steps))
        assert asked.value(search.solution()) == search.best
        fresh = ArrangementSearch(asked, search._turned(search.at.astype(np.int64)), 1, False)
        assert kind == BANDWIDTH or (fresh.value == search.value).all()
        state = search.best, search.found_at, search.cost, search.random, search.round
        found.append((state, search.solution().tolist(), search.at.tolist()))
    assert found.count(found[0]) == len(found) and found[0][0][-1] > 4


@alone
def test_plain_orders_are_the_same_without_kernels():
    for seed in range(6):
        asked = asked_of(drawn(seed, 40, 2.4 + seed), LENGTH)
        for _, rule in RULES.values():
            order = rule(asked, True)
            assert sorted(order) == list(range(40)) and (order == rule(asked, False)).all()


@alone
def test_spectral_orders_keep_their_scale_and_mix_two_vectors():
    """Degrees that differ from end to end, whose mean is far off at first; parts alone; a grid's rows."""
    lopsided = nx.disjoint_union(nx.lollipop_graph(30, 90), nx.empty_graph(3))
    grid = nx.grid_2d_graph(15, 15)
    for graph, kind, most in ((lopsided, LENGTH, 4700), (grid, CUTWIDTH, 20)):
        names = np.random.default_rng(1).permutation(len(graph)).tolist()
        graph = nx.relabel_nodes(nx.convert_node_labels_to_integers(graph), dict(enumerate(names)))
        shuffled = nx.Graph()
        shuffled.add_nodes_from(range(len(names)))
        shuffled.add_edges_from(graph.edges)
        asked = asked_of(shuffled, kind)
        found = list(spectral(asked, np.arange(asked.n)))
        assert all(sorted(order) == list(range(asked.n)) for order in found)
        assert (
            min(map(asked.value, found)) <= most
            and asked.value(found[0]) < asked.value(np.arange(asked.n)) / 2
        )
    assert not list(spectral(asked, np.arange(asked.n), lambda: True))
    looks = itertools.count()
    (early,) = spectral(asked, np.arange(asked.n), lambda: next(looks) > 30)  # all levels are made by then
    assert asked.value(early) < asked.value(np.arange(asked.n)) / 2


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_searches_begin_with_the_best_plain_order_beside_the_answer(kind):
    """Parts, nodes without edges, and leaves that go; also where the time is up during the spectral order."""
    graph = nx.disjoint_union_all([nx.star_graph(5), nx.empty_graph(2), drawn(3, 60, 3.0), drawn(4, 30, 4.0)])
    asked = asked_of(graph, kind)
    whole = Graph("g", asked.n, 0, asked.n, asked.indptr, asked.indices, len(asked.indices) // 2)
    for most in (1 << 30, 60, 1):
        tools = ArrangementTools(instance_of(whole, arrange=kind), LinearArrangement())
        tools.reduce(lambda: False)
        looks = itertools.count()
        with tools.watched(lambda looks=looks, most=most: next(looks) >= most):
            start = tools.start()
        first = RULES["cuthill_mckee" if kind == BANDWIDTH else "sloan"][1](asked)
        plain = {name: asked.value(made()[0]) for name, made in tools.baselines().items()}
        best = min(plain.values()) if most == 1 << 30 else asked.value(first)
        assert tools.value(tools.lift(start)) == tools.inner.value(start) <= best
        search = tools.search(1, start)
        search.run(3000)
        assert asked.value(tools.lift(search.solution())) <= best


@alone
def test_parts_of_arrangements_are_taken_out_in_any_order():
    asked = asked_of(nx.disjoint_union(drawn(1, 12), drawn(2, 12)), LENGTH, 9)
    nodes = np.random.default_rng(1).permutation(asked.n)[:17]
    part = asked.induced(nodes)
    assert (table_of(part) == table_of(asked)[np.ix_(nodes, nodes)]).all()
    assert all((np.diff(part.indices[a:b]) > 0).all() for a, b in itertools.pairwise(part.indptr))


@alone
def test_heavy_weights_are_exact():
    """Sums near 2^52, whose lengths are beyond 2^53."""
    asked = asked_of(connected(4, 12, 3.0), LENGTH, 9)
    scale = (1 << 52) // int(asked.weights.sum())
    heavy = replace(asked, weights=asked.weights * scale)
    assert least(heavy)[0] == scale * least(asked)[0]
    for compiled in (True, False):
        search = ArrangementSearch(heavy, np.arange(heavy.n), 1, compiled)
        search.run(3000)
        assert heavy.value(search.solution()) == search.best


@alone
def test_leaves_of_separations_go_and_come_back():
    """A caterpillar with many leaves, and stars; whatever order the core has, leaves pay nothing."""
    graph = nx.disjoint_union_all([nx.star_graph(5), nx.path_graph(2), drawn(2, 9, 2.2)])
    for seed in range(8):
        graph.add_edges_from((int(v), 100 + 10 * seed + i) for i, v in enumerate((seed, 8, 9)))
    asked = asked_of(graph, SEPARATION)
    indptr, indices = asked.indptr, asked.indices
    whole = Graph("g", asked.n, 0, asked.n, indptr, indices, len(indices) // 2)
    tools = ArrangementTools(instance_of(whole, arrange=SEPARATION), LinearArrangement())
    assert "leaves" in tools.reduce(lambda: False)
    draws = np.random.default_rng(1)
    for _ in range(50):
        order = draws.permutation(tools.inner.n)
        order = order[np.argsort(tools.label[tools.nodes][order], kind="stable")]
        lifted = tools.lift(order)
        assert tools.fault(lifted) is None and asked.value(lifted) <= max(tools.inner.value(order), 1)
        given = draws.permutation(asked.n)
        assert asked.value(tools.lift(tools.restrict(given))) <= asked.value(given)


# ---- bounds and proofs --------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_take_parts_one_by_one(kind):
    """The largest first; no order of all is known before each part has one."""
    asked = asked_of(nx.disjoint_union_all([nx.path_graph(4), nx.complete_graph(6), nx.cycle_graph(5)]), kind)
    bounds = ArrangementBounds(asked)
    assert bounds.improve(0.0, 1 << 40, np.arange(asked.n)) and bounds.pieces() is None
    assert bounds.value >= witness.by_degrees(asked_of(nx.complete_graph(6), kind))
    while bounds.improve(0.0, 1 << 40):
        pieces = bounds.pieces()
        assert pieces is None or sorted(pieces) == list(range(asked.n))
    assert asked.value(bounds.optimum()) == bounds.value and bounds.proved


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_a_bound_stays_below_and_is_proved(kind):
    """On graphs with too many nodes for programs over all subsets by the search's own limit of bytes."""
    methods = set()
    graphs = (connected(1, 15, 4.0), nx.grid_2d_graph(3, 5), nx.complete_graph(8), nx.star_graph(9),
              nx.random_regular_graph(6, 14, seed=1), nx.cycle_graph(11), nx.hypercube_graph(3))  # fmt: skip
    for seed, graph in enumerate(graphs):
        asked = asked_of(graph, kind, 5 * (kind in WEIGHTED and seed % 2), seed)
        best = least(asked)[0] if kind != BANDWIDTH else 0
        while kind == BANDWIDTH and fitting(asked, max(best, 1), 1 << 22)[0] is None:
            best = max(best, 1) + 1
        bounds = ArrangementBounds(asked, most_bytes=1 << 10)
        for _ in range(40):
            more = bounds.improve(0.0, 1 << 40)
            methods |= {part.method for part in bounds.witness()}
            assert 0 < bounds.value <= max(best, 1)
            assert ArrangementProof(bounds.witness(), True).proved(asked) == bounds.value or not bounds.proved
            if not more:
                break
    assert methods >= {
        LENGTH: {"degrees", "eigenvalue"}, CUTWIDTH: {"degrees", "eigenvalue"},
        BANDWIDTH: {"degrees", "first node", "all orders"}, SEPARATION: {"degrees", "minor"},
        PROFILE: {"degrees", "cycles"},
    }[kind]  # fmt: skip


@alone
def test_balls_bound_bandwidths():
    star = asked_of(nx.star_graph(8), BANDWIDTH)
    part_of([0], witness.BALL, 4, 1).check(star)
    broom = asked_of(nx.full_rary_tree(3, 40), BANDWIDTH)
    part_of([0], witness.BALL, 7, 3).check(broom)  # 39 others at most three edges away


@alone
def test_false_witnesses_are_refused():
    asked = asked_of(nx.grid_2d_graph(4, 4), LENGTH)
    nodes = np.arange(16)
    good = witness.by_degrees(asked)
    for wrong, why in (
        (part_of(nodes, witness.DEGREES, good + 1), "prove"),
        (part_of([0, 0], witness.DEGREES, 1), "twice"),
        (part_of([99], witness.DEGREES, 1), "not in it"),
        (part_of(nodes, witness.MINOR, 1, nodes), "proves nothing of the length"),
        (part_of(nodes, witness.EIGENVALUE, 1, [1 << 24, 24]), "semidefinite"),
        (part_of(nodes, witness.EIGENVALUE, 1, [5]), "two numbers"),
        (part_of(nodes, witness.ALL, 10_000), "prove"),
    ):
        with pytest.raises(BadCertificate, match=why):
            wrong.check(asked)
    half = part_of(nodes, witness.DEGREES, 1)
    with pytest.raises(BadCertificate, match="in common"):
        ArrangementProof([half, half], True).proved(asked)
    narrow = replace(asked, kind=BANDWIDTH)
    for wrong, why in (
        (part_of([5], witness.BALL, 9, 1), "prove"),
        (part_of([5], witness.BALL, 1, 0), "radius"),
        (part_of([5], witness.BALL, 1), "one number"),
        (part_of(nodes, witness.ALL, 5), "prove"),
        (part_of([0, 15], witness.FIRST, 1), "not connected"),
    ):
        with pytest.raises(BadCertificate, match=why):
            wrong.check(narrow)


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_certificates_prove_nothing_that_is_not_so(kind):
    graph = nx.disjoint_union(connected(2, 12, 3.0), nx.path_graph(4))
    asked = asked_of(graph, kind)
    whole = Graph("g", asked.n, 0, asked.n, asked.indptr, asked.indices, graph.number_of_edges())
    tools = ArrangementTools(instance_of(whole, arrange=kind), LinearArrangement())
    answer = solve(
        list(graph.edges),
        "arrangement",
        settings=QUICK | {"problem.arrange": kind, "output.certificates": True},
    )
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert answer.optimal and best == answer.objective
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(40)]
    assert sum(refused) > 10


# ---- whole answers ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("kind", KINDS)
def test_small_questions_are_answered_and_proved(kind):
    """With weights in decimals where they count, a node alone, and two components."""
    for seed in range(2):
        graph = drawn(seed, 6)
        graph.add_edge("a", "b")
        graph.add_node("c")
        table = np.zeros((9, 9))
        names = list(graph)
        for u, v in graph.edges:
            w = float(np.random.default_rng(len(names) * names.index(u) + names.index(v)).integers(1, 9)) / 4
            table[names.index(u), names.index(v)] = table[names.index(v), names.index(u)] = w
            if kind in WEIGHTED:
                graph.edges[u, v]["weight"] = w
        table = table if kind in WEIGHTED else (table > 0).astype(int)
        components = [sorted(names.index(v) for v in part) for part in nx.connected_components(graph)]
        least_ones = [
            min(worth(table[np.ix_(part, part)], np.array(order), kind)
                for order in itertools.permutations(range(len(part))))
            for part in components
        ]  # fmt: skip
        best = sum(least_ones) if kind in SUMS else max(least_ones)
        for keys in ({}, {"search.reductions": False}, {"run.kernels": "plain", "search.steps": 300}):
            given = QUICK | keys | {"problem.arrange": kind, "output.certificates": True}
            answer = solve(graph, "arrangement", settings=given)
            assert answer.objective == best == answer.bound and answer.bound_verified and answer.optimal
            assert answer.order == answer.nodes and sorted(map(str, answer.order)) == sorted(map(str, names))
            order = np.array([names.index(v) for v in answer.order])
            assert worth(table, order, kind) == best
            assert answer.measures == {each: worth(table, order, each) for each in KINDS}
            assert check(graph, answer, settings={"problem.arrange": kind}).optimal
            assert len(answer.baselines) == 6 and min(answer.baselines.values()) >= best


@alone
def test_known_values_are_found():
    for graph, kind, best in (
        (nx.grid_2d_graph(6, 9), BANDWIDTH, 6), (nx.grid_2d_graph(6, 9), SEPARATION, 6),
        (nx.grid_2d_graph(5, 9), CUTWIDTH, 6), (nx.hypercube_graph(5), LENGTH, 496),
        (nx.balanced_tree(2, 4), BANDWIDTH, 4), (nx.balanced_tree(2, 4), SEPARATION, 2),
        (nx.cycle_graph(30), LENGTH, 58), (nx.complete_graph(12), CUTWIDTH, 36),
        (nx.path_graph(40), PROFILE, 39),
    ):  # fmt: skip
        keys = {"problem.arrange": kind, "search.steps": 400_000, "search.bounds": False}
        answer = solve(graph, "arrangement", settings=keys)
        assert answer.objective == best, (kind, graph)


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_agree_with_one_rank(kind):
    graph = nx.gnm_random_graph(120, 220, seed=3)
    keys = {
        "problem.arrange": kind, "search.steps": 30_000, "search.starts": 3, "search.bounds": False,
    }  # fmt: skip
    answer = solve(graph, "arrangement", settings=keys)
    one = by_one(lambda: solve(graph, "arrangement", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_an_answer_is_never_worse_than_where_it_starts():
    graph = nx.gnm_random_graph(60, 120, seed=1)
    keys = {"problem.arrange": "profile", "search.bounds": False}
    first = solve(graph, "arrangement", settings=keys | {"search.steps": 200_000})
    keys |= {"search.steps": 1, "search.baselines": False}
    for start in (first, first.nodes):
        assert solve(graph, "arrangement", start=start, settings=keys).objective <= first.objective
    with pytest.raises(GraphError, match="start: found 2 nodes; each of 60 once would be right"):
        solve(graph, "arrangement", start=[1, 2], settings=keys)
    with pytest.raises(CaseError, match="all nodes are in an order, none inside or outside"):
        solve(graph, "arrangement", inside=[1], settings=keys)


@alone
def test_weights_that_are_not_counted_and_those_below_zero(tmp_path):
    """A matrix of any entries has a bandwidth; a length needs weights from 0 on."""
    path, drawn = tmp_path / "m.txt", nx.gnp_random_graph(12, 0.3, seed=3)
    path.write_text("".join(f"{u} {v} {(-1) ** u * (u + v)}\n" for u, v in drawn.edges))
    for kind in set(KINDS) - set(WEIGHTED):
        keys = QUICK | {"problem.arrange": kind}
        plain = solve(nx.Graph(drawn.edges), "arrangement", settings=keys)
        assert solve(str(path), "arrangement", settings=keys).objective == plain.objective
    keys = [f"graph.path={path}", "problem.arrange=profile", "search.steps=100", f"--out={tmp_path}/run"]
    code, told = run_job([sys.executable, "run.py", "inputs/arrangement.toml", *keys], 120)
    assert code == 0 and "weights of edges are not counted" in " ".join(told.split()), told
    with pytest.raises(GraphError, match=r"edge 1-2 has the weight -2 < 0; weights from 0 on"):
        solve([(1, 2, -2.0), (2, 3, 1.0)], "arrangement", settings=QUICK)
    answer = solve([(1, 2, 0.0), (2, 3, 1.5)], "arrangement", settings=QUICK)
    assert answer.objective == 1.5 and answer.optimal
    for graph, nodes in (([(1, 2, 0.0)], 3), ([(1, 1)], 2), (nx.empty_graph(3), 3)):
        answer = solve(graph, "arrangement", settings=QUICK)
        assert answer.objective == 0 and answer.optimal and len(answer.order) == nodes
    with pytest.raises(CaseError, match=r"problem.arrange: .*leave it out"):
        solve(nx.path_graph(3), "mvc", settings={"problem.arrange": "profile"})


@alone
def test_a_run_writes_an_order_that_check_reads(tmp_path):
    (tmp_path / "g.txt").write_text("".join(f"{u} {v}\n" for u, v in nx.path_graph(8).edges))
    out = tmp_path / "run"
    keys = [f"graph.path={tmp_path}/g.txt", "search.steps=2000", "problem.arrange=bandwidth"]
    job = [sys.executable, "run.py", "inputs/arrangement.toml", *keys, "output.certificates=true"]
    code, told = run_job([*job, f"--out={out}"], 120)
    assert code == 0 and "length 7, bandwidth 1, cutwidth 1, separation 1, profile 7" in told, told
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    assert entry["objective"] == 1 and entry["measures"]["profile"] == 7
    assert (out / "solution" / "g.txt").read_text().split() == list("01234567")
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 1 are proved" in told, told
    (tmp_path / "bad.txt").write_text("0\n0\n")
    with pytest.raises(GraphError, match=r"bad.txt:2: node 0 is named twice; an order has each once"):
        check(nx.path_graph(8), str(tmp_path / "bad.txt"), "arrangement")
