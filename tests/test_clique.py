"""Maximum cliques: feasible, optimal on small graphs, the same with and without kernels and on any ranks."""

import itertools
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import graph_of, instance_of, is_clique, make_blocks
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import mpirun, run_job
from mpi4py import MPI

from app import solve, train
from app.bounds.certificate import BadCertificate
from app.bounds.clique import roots as clique_roots
from app.bounds.clique.degeneracy import check_peeling, coloured, core_order, peel, peeled_off
from app.bounds.clique.roots import RootSearch
from app.bounds.feasible import missing_edge
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.parameters import Parameters
from app.graphs.derived import complement, induced
from app.graphs.graph import from_edges
from app.problems.clique import MaximumClique
from app.rl.qnet import QNetwork
from app.rl.rollout import rolled_out_one_at_a_time
from app.rl.weights import default_weights, load_weights
from app.search.clique import complement as clique_complement
from app.search.clique import kernel as clique_kernel
from app.search.clique.kernel import CliqueKernel
from app.toolbox import verified

QUIET = {"search.baselines": False, "search.steps": 300, "search.bound_seconds": 0.2, "run.device": "cpu"}


def random_graph(n, p, seed):
    return graph_of(nx.gnp_random_graph(n, p, seed=seed))


def heaviest(graph, weights, inside=(), outside=()):
    """The weight of the heaviest clique, by trying all; None where none holds what is inside."""
    found = None
    for bits in itertools.product((False, True), repeat=graph.n):
        chosen = np.array(bits, dtype=bool)
        if chosen[list(inside)].all() and not chosen[list(outside)].any() and is_clique(graph, chosen):
            found = max(found or 0, int(weights[chosen].sum()))
    return found


@st.composite
def instances(draw, most=9):
    """A small graph, and node weights or none."""
    n, p, seed = draw(st.integers(0, most)), draw(st.floats(0, 1)), draw(st.integers(0, 999))
    weights = draw(st.sampled_from([None, np.random.default_rng(seed).integers(1, 9, n)]))
    return random_graph(n, p, seed), weights


def weights_of(graph, weights):
    return np.ones(graph.n, dtype=np.int64) if weights is None else weights


def tools_of(graph, weights=None, inside=(), outside=(), **keys):
    graph = graph if weights is None else replace(graph, node_weights=weights.astype(np.float32))
    fixed = (np.array(each, dtype=np.int64) for each in (inside, outside))
    return MaximumClique().toolbox(instance_of(graph, None, *fixed, **keys))


# ---- orders, peeling, colours ------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@settings(max_examples=60, deadline=None)
@given(instances(25), st.integers(0, 20))
def test_cores_and_colours_are_those_of_their_twins(drawn, least):
    graph, weights = drawn
    order, core = core_order(graph)
    for mine, other in zip((order, core), core_order(graph, compiled=False)):
        assert np.array_equal(mine, other)
    pairs = nx.Graph(list(zip(graph.row_of().tolist(), graph.indices.tolist())))
    pairs.add_nodes_from(range(graph.n))
    assert dict(enumerate(core.tolist())) == nx.core_number(pairs)
    whole = weights_of(graph, weights)
    gone = peel(graph, whole, least)
    assert np.array_equal(gone, peel(graph, whole, least, compiled=False))
    check_peeling(graph, whole, least, gone)
    for bound in (coloured, peeled_off):
        one, two = bound(graph, weights), bound(graph, weights, compiled=False)
        one.check(graph)
        assert (one.lower, one.upper) == (two.lower, two.upper)
        assert np.array_equal(one.colour, two.colour)
        assert np.array_equal(one.peeled, two.peeled)


@pytest.mark.mpi_skip
def test_a_wrong_witness_is_refused():
    graph = random_graph(12, 0.5, 1)
    bound = coloured(graph)
    with pytest.raises(BadCertificate, match="have one colour"):
        replace(bound, colour=np.zeros(12, dtype=np.int32)).check(graph)
    with pytest.raises(BadCertificate, match="the witness proves"):
        replace(bound, lower=bound.lower + 1).check(graph)
    bound = peeled_off(graph)
    with pytest.raises(BadCertificate, match="with its later neighbours"):
        replace(bound, least=bound.least - 1).check(graph)
    with pytest.raises(BadCertificate, match="the witness proves"):
        replace(bound, peeled=bound.peeled[:0], colour=np.arange(12)).check(graph)


@pytest.mark.mpi_skip
def test_checks_of_some_rows_name_the_first_fault():
    path = from_edges(4, np.arange(3), np.arange(1, 4))
    mask = np.array([True, True, False, True])
    assert missing_edge(path, mask) == (0, 3)
    assert missing_edge(path, mask & (np.arange(4) < 2)) is None
    rows = replace(path, lo=1, hi=2, indptr=path.indptr[1:3] - 1, indices=path.indices[1:3])
    assert missing_edge(rows, mask) == (1, 3)
    assert missing_edge(rows, np.array([True, False, False, True])) is None
    with pytest.raises(ValueError, match="chosen_all: needs"):
        missing_edge(path, mask[1:])


@pytest.mark.mpi_skip
@pytest.mark.parametrize("piece", [1, 40])
def test_complements_and_parts(monkeypatch, piece):
    monkeypatch.setattr("app.graphs.derived.PIECE", piece)
    graph = random_graph(17, 0.4, 3)
    other, A = complement(graph), np.zeros((2, 17, 17), dtype=bool)
    for matrix, each in zip(A, (graph, other)):
        matrix[each.row_of(), each.indices] = True
        assert each.edges == matrix.sum() // 2
    assert np.array_equal(A[0] ^ A[1], ~np.eye(17, dtype=bool))
    nodes = np.array([1, 4, 5, 11, 16])
    part = induced(graph, nodes)
    B = np.zeros((5, 5), dtype=bool)
    B[part.row_of(), part.indices] = True
    assert np.array_equal(B, A[0][np.ix_(nodes, nodes)])


# ---- branch and bound by roots -----------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("seed", [None, 3])
@settings(max_examples=60, deadline=None)
@given(drawn=instances(26), slices=st.lists(st.integers(1, 90), min_size=1, max_size=30))
def test_roots_take_the_course_of_their_twin_however_sliced(seed, drawn, slices):
    graph, weights = drawn
    whole = weights_of(graph, weights)
    A = nx.Graph(list(zip(graph.row_of().tolist(), graph.indices.tolist())))
    A.add_nodes_from((v, {"weight": int(w)}) for v, w in enumerate(whole))
    best = nx.max_weight_clique(A)[1] if graph.n else 0
    searches = [RootSearch(graph, weights, 0, seed, compiled) for compiled in (True, False, True)]
    for search in searches:
        search._each = 20  # many passes
        search._begin(search.open()[::-1])
    until = 0
    for more in itertools.chain(slices, itertools.repeat(10_000)):
        until += more
        for search in searches[:2]:
            search.run(until)
        assert agree(*searches[:2])
        assert searches[0].best <= best <= searches[0].upper
        if searches[0].done:
            break
    searches[2].run(until)
    assert agree(*searches[1:])
    assert searches[0].best == best
    if graph.n:
        assert whole[searches[0].found()].sum() == best
        assert is_clique(graph, np.isin(np.arange(graph.n), searches[0].found()))


def agree(one, two):
    """Whether two searches stand where the other does."""
    found = one.found(), two.found()
    same = (found[0] is None) == (found[1] is None) and (found[0] is None or np.array_equal(*found))
    numbers = ((each.work, each.best, each.found_at, each.upper, each.done) for each in (one, two))
    return same and next(numbers) == next(numbers) and np.array_equal(one.bound, two.bound)


@pytest.mark.mpi_skip
def test_a_known_clique_and_too_many_neighbours_are_kept_in_mind(monkeypatch):
    graph = random_graph(30, 0.6, 2)
    search = RootSearch(graph, None, 0)
    search.run(1 << 30)
    best = search.best
    known = RootSearch(graph, None, best)
    known.run(1 << 30)
    assert known.done
    assert known.found() is None
    later = RootSearch(graph, None, 0)
    later.run(10)
    later.learn(best)
    later.run(1 << 30)
    assert (later.best, later.done) == (best, True)
    monkeypatch.setattr(clique_roots, "MOST", 3)
    few = RootSearch(graph, None, 0)
    few.run(1 << 30)
    assert few.stuck
    assert not few.done
    assert few.best <= best <= few.upper


# ---- kernels and toolboxes ---------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize("work", [1, 300, 1 << 26])
@settings(max_examples=40, deadline=None)
@given(drawn=instances(12))
def test_kernels_hold_all_heavier_cliques(work, drawn):
    graph, weights = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clique_kernel, "SPARSE", 2.0)
        patch.setattr(clique_kernel, "WORK", work)
        patch.setattr(clique_roots, "FIRST_LIMIT", 20)
        one, two = (CliqueKernel(graph, weights, compiled) for compiled in (True, False))
        for each in (one, two):
            each.reduce(lambda: None)
    assert np.array_equal(one.nodes, two.nodes)
    assert np.array_equal(one.clique, two.clique)
    whole = weights_of(graph, weights)
    best = heaviest(graph, whole)
    assert is_clique(graph, one.clique)
    assert whole[one.clique].sum() == one.best <= best <= one.upper
    if one.best < best:
        inner = heaviest(one.core, weights_of(one.core, one.weights))
        assert inner == best


@pytest.mark.mpi_skip
@pytest.mark.parametrize("body", ["complement", "sparse"])
@pytest.mark.parametrize("reduced", [True, False])
@settings(max_examples=30, deadline=None)
@given(drawn=instances(8), draws=st.integers(0, 99))
def test_toolboxes_find_and_prove_the_optimum(body, reduced, drawn, draws):
    """With fixed nodes and without, from any start, by either body: as good as trying all."""
    graph, weights = drawn
    whole = weights_of(graph, weights)
    fixed = np.random.default_rng(draws).choice(3, graph.n, p=[[1, 0, 0], [0.7, 0.15, 0.15]][draws % 2])
    inside, outside = np.flatnonzero(fixed == 1), np.flatnonzero(fixed == 2)
    best = heaviest(graph, whole, inside, outside)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clique_kernel, "WORK", 1)
        if body == "sparse":
            patch.setattr(clique_complement, "COMPLEMENT_EDGES", -1)
        if best is None:
            with pytest.raises(ValueError, match="not adjacent to all others"):
                tools_of(graph, weights, inside, outside)
            return
        tools = tools_of(graph, weights, inside, outside)
        if reduced:
            assert "reduced to" in tools.reduce(lambda: None)
        assert bool(tools.unasked) == (body == "sparse")
    for core in (tools.start(), tools.restrict(np.random.default_rng(draws).random(graph.n) < 0.5)):
        assert tools.fault(tools.lift(core)) is None
        search, bounds = tools.search(draws, core), tools.bounds()
        if search is not None:
            search.run(3000)
            core = search.solution()
            assert tools.value(tools.lift(core)) == tools.value_of_core(search.best)
        assert tools.fault(tools.lift(core)) is None
        assert tools.value(tools.lift(core)) == best
        while tools.value_of_core(bounds.value) > best:
            bounds.improve(0.01, tools.core_value(best), core)
        assert tools.value_of_core(bounds.value) == best
        assert bounds.method or not graph.n or not reduced
        verified(tools, bounds)


@pytest.mark.mpi_skip
def test_bounds_of_a_sparse_kernel_are_a_colouring_and_what_its_search_leaves_open(monkeypatch):
    graph = random_graph(60, 0.5, 4)
    monkeypatch.setattr(clique_complement, "COMPLEMENT_EDGES", -1)
    tools = tools_of(graph)
    alone = tools.bounds()
    assert not alone.improve(0.0, 3)
    assert (alone.method, verified(tools, alone)) == ("colouring", True)
    search = tools.search(1, tools.start())
    bounds = tools.bounds()
    search.run(1 << 20)
    assert search.done
    assert (bounds.value, bounds.method) == (search.best, clique_roots.METHOD)
    assert not verified(tools, bounds)
    assert tools.tree(0, 1) is None  # the search does it
    assert tools.tree(0, 2).name == clique_roots.METHOD


@pytest.mark.mpi_skip
def test_weights_below_zero_are_refused():
    graph = random_graph(5, 0.5, 1)
    with pytest.raises(CaseError, match="for cliques weights of 0 or more"):
        tools_of(graph, np.array([1, 2, -1, 1, 1]))


# ---- answers -----------------------------------------------------------------------------------------------

SMALL = {
    "nothing but nodes": (nx.empty_graph(5), 1),
    "one node": (nx.empty_graph(1), 1),
    "complete": (nx.complete_graph(11), 11),
    "isolated nodes": (nx.disjoint_union(nx.complete_graph(4), nx.empty_graph(3)), 4),
    "a triangle and a loop": (nx.Graph([(0, 1), (1, 2), (2, 0), (2, 2), (2, 3)]), 3),
    "no triangle": (nx.complete_bipartite_graph(5, 6), 2),
    "dense": (nx.gnp_random_graph(40, 0.8, seed=1), None),
    "sparse": (nx.barabasi_albert_graph(200, 5, seed=1), None),
}


@pytest.mark.parametrize("name", SMALL)
def test_answers_are_alike_on_any_ranks(name):
    graph, size = SMALL[name]
    pairs = nx.Graph(graph)
    pairs.remove_edges_from(list(nx.selfloop_edges(pairs)))
    size = size or max(map(len, nx.find_cliques(pairs)))
    found = solve(graph, "clique", settings=QUIET)
    assert all(pairs.has_edge(u, v) for u, v in itertools.combinations(found.nodes, 2))
    assert (found.objective, found.bound, found.optimal) == (size, size, True)
    alone = solve(graph, "clique", settings=QUIET, comm=MPI.COMM_SELF)
    assert alone.nodes == found.nodes


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_weights_and_fixed_nodes(kind):
    graph = SMALL[kind][0]
    weights = {v: 1 + v * 7 % 11 for v in graph}
    node = max(graph, key=graph.degree)
    least = min(graph[node])
    found = solve(
        graph, "clique", node_weights=weights, inside=[node], outside=[least], settings=QUIET,
    )  # fmt: skip
    part = nx.Graph(graph.subgraph(set(graph[node]) - {least}))
    nx.set_node_attributes(part, weights, "weight")
    assert found.objective == weights[node] + nx.max_weight_clique(part)[1]
    assert node in found.nodes
    assert least not in found.nodes
    alone = solve(
        graph, "clique", node_weights=weights, inside=[node], outside=[least], settings=QUIET,
        comm=MPI.COMM_SELF,
    )  # fmt: skip
    assert alone.nodes == found.nodes


def test_a_sparse_kernel_without_its_complement(monkeypatch):
    """The policy is left out, steps decide; the same on any ranks, with kernels and without."""
    monkeypatch.setattr(clique_complement, "COMPLEMENT_EDGES", -1)
    monkeypatch.setattr(clique_kernel, "WORK", 1)
    graph = nx.gnp_random_graph(60, 0.4, seed=5)
    keys = {**QUIET, "search.steps": 10, "search.starts": 3}
    answers = [
        solve(graph, "clique", settings={**keys, **more}, comm=comm)
        for comm, more in (
            (MPI.COMM_WORLD, {}), (MPI.COMM_SELF, {}), (MPI.COMM_SELF, {"run.kernels": "plain"}),
        )
    ]  # fmt: skip
    assert answers[0].nodes == answers[1].nodes == answers[2].nodes
    done = solve(graph, "clique", settings={**QUIET, "search.steps": 5000})
    size = max(map(len, nx.find_cliques(graph)))
    assert (done.objective, done.bound) == (size, size)
    timed = solve(graph, "clique", search_seconds=1.0, settings={**QUIET, "search.steps": -1})
    assert (timed.objective, timed.optimal) == (size, True)


@pytest.mark.mpi_skip
def test_what_cannot_be_is_refused():
    graph = nx.path_graph(5)
    with pytest.raises(CaseError, match="not adjacent to all others"):
        solve(graph, "clique", inside=[0, 4], settings=QUIET)
    with pytest.raises(GraphError, match="is in both"):
        solve(graph, "clique", inside=[0], outside=[0], settings=QUIET)
    with pytest.raises(GraphError):
        solve("missing.clq", "clique", settings=QUIET)


# ---- the policy --------------------------------------------------------------------------------------------


def test_policies_are_trained_alike_on_any_ranks():
    keys = {
        "problem.name": "clique", "train.steps": 30, "agent.warmup": 8, "agent.batch": 8, "seed": 2,
        "train.evaluate_every": 15, "train.evaluate_graphs": 3, "run.device": "cpu", "graph.p": 0.6,
        "graph.generator": "er", "graph.nodes": [20, 35], "graph.count": 8,
    }  # fmt: skip
    here, alone = train(settings=keys), train(settings=keys, comm=MPI.COMM_SELF)
    assert here.digest == alone.digest
    graph = nx.gnp_random_graph(60, 0.5, seed=2)
    found = solve(graph, "clique", weights=here, settings={**QUIET, "search.solver": "policy"})
    assert all(graph.has_edge(u, v) for u, v in itertools.combinations(found.nodes, 2))
    assert found.objective == len(found.nodes) <= found.bound
    again = solve(
        graph, "clique", weights=alone, comm=MPI.COMM_SELF, settings={**QUIET, "search.solver": "policy"},
    )  # fmt: skip
    assert again.nodes == found.nodes


@pytest.mark.mpi_skip
@pytest.mark.parametrize("p", [0.3, 0.7])
def test_the_weights_that_ship_beat_the_first_baseline(p):
    """On unseen random graphs, one node at a time."""
    group, problem = Group(MPI.COMM_SELF, HostDevice()), MaximumClique()
    saved = load_weights(default_weights("clique"))
    net = QNetwork(saved.policy, problem)
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    graphs = [random_graph(50 + 3 * i, p, 300 + i) for i in range(20)]
    others = [complement(graph) for graph in graphs]
    pairs = [(g.n, np.stack([g.row_of(), g.indices], axis=1)[g.row_of() < g.indices], None) for g in others]
    envs = rolled_out_one_at_a_time(group, net, params, make_blocks(group, pairs))
    for graph, env in zip(graphs, envs):
        assert is_clique(graph, problem.solution_of(env.chosen_at[: graph.n]))
    learned = sum(problem.objective(env.chosen, env.totals) for env in envs)
    for baseline in problem.baselines.values():
        assert learned > sum(int(baseline(graph)[0].sum()) for graph in graphs)


# ---- from the command line ---------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_runs_of_the_case(tmp_path):
    graph = nx.gnp_random_graph(50, 0.6, seed=3)
    path = tmp_path / "g.clq"
    lines = "".join(f"e {u + 1} {v + 1}\n" for u, v in graph.edges)
    path.write_text(f"p edge 50 {graph.number_of_edges()}\n{lines}")
    size = max(map(len, nx.find_cliques(graph)))
    digests = set()
    for ranks in (1, 2):
        folder = tmp_path / str(ranks)
        launch = mpirun(ranks) if ranks > 1 else []
        command = [*launch, sys.executable, "run.py", "inputs/clique.toml", f"graph.path={path}"]
        keys = ["search.steps=500", "output.plots=false", "run.device=cpu"]
        code, printed = run_job([*command, *keys, "--out", folder], limit_s=120)
        assert code == 0, printed
        result = json.loads((folder / "result.json").read_text())
        (entry,) = result["instances"]
        assert (entry["objective"], entry["bound"], entry["optimal"]) == (size, size, True)
        text = (folder / "solution" / f"{entry['name']}.txt").read_text()
        nodes = [int(line) - 1 for line in text.split()]
        assert len(nodes) == size
        assert all(graph.has_edge(u, v) for u, v in itertools.combinations(nodes, 2))
        digests.add(result["digest"])
    assert len(digests) == 1
    written = folder / "solution" / f"{entry['name']}.txt"
    code, printed = run_job([*command[-4:], "--check", written], limit_s=60)
    assert code == 0, printed
    assert "a feasible clique" in " ".join(printed.split())
    code, printed = run_job([*command[-4:], "--dry-run"], limit_s=60)
    assert code == 0, printed
