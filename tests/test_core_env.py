"""2-cores on row partitions: cascades, trees, what may go back, the learned start of feedback vertex sets."""

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from helpers import EXCHANGES, dense, growing_graph, listed, make_block, random_graph, whole_rows
from mpi4py import MPI
from test_problems import breaks_cycles, fvs_state, network

from app import solve
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.graphs.graph import Graph, from_edges
from app.graphs.multigraph import Multigraph, from_pairs
from app.problems.table import make_problem
from app.rl.dynamics import begin_environment
from app.rl.env import FEW_ROWS, RULED_OUT, _gather_few, step_together
from app.rl.forest import fault_of_forest, parts_ext
from app.rl.incremental import LiveScores
from app.rl.qnet import QNetwork
from app.rl.rollout import drop_redundant, finished_rollout, roll_out
from app.rl.weights import default_weights, load_weights
from app.search.fvs.tools import FeedbackTools
from app.toolbox import Instance

alone = pytest.mark.mpi_skip


def shuffled(graph, seed):
    """The same graph, its nodes in another order: neighbours lie on all ranks."""
    n, edges, _ = graph
    return n, np.random.default_rng(seed).permutation(n)[edges], None


def ring(n, *chords):
    return listed(n, *[(i, (i + 1) % n) for i in range(n)], *chords)


def tailed(n, tail):
    """A ring that a long path hangs on, which falls at the start, end by end."""
    return listed(n + tail, *ring(n)[1].tolist(), *[(max(n + i - 1, 0), n + i) for i in range(tail)])


LONG = {
    "ring": ring(40),
    "ring, mixed": shuffled(ring(40), 1),
    "ring and chords": shuffled(ring(45, (0, 20), (5, 30), (10, 41)), 2),
    "tail": tailed(9, 31),
    "tail, mixed": shuffled(tailed(9, 31), 3),
    "ladder": shuffled(
        listed(40, *[(i, i + 2) for i in range(38)], *[(i, i + 1) for i in range(0, 40, 2)]), 4
    ),
    "tree": listed(31, *[((i - 1) // 2, i) for i in range(1, 31)]),
}


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("graph", LONG.values(), ids=LONG)
def test_long_cascades_leave_the_core(group, graph, exchange):
    A, n = dense(graph)[0], graph[0]
    env = begin_environment(group, make_block(group, graph, exchange), make_problem("fvs"))
    chosen, draws = np.zeros(n, dtype=bool), np.random.default_rng(1)
    while True:
        codes, totals = fvs_state(A, chosen)
        assert whole_rows(group, env.block, env.codes_own()).tolist() == codes.tolist()
        assert tuple(env.totals) == totals
        chosen_at = whole_rows(group, env.block, env.chosen_at[: env.block.n_real])
        assert ((chosen_at == RULED_OUT) == (~chosen & (codes == 0))).all()
        if env.done:
            break
        nodes = draws.permutation(np.flatnonzero(codes))[: draws.integers(1, 3)]
        step_together(group, [env], [nodes])
        chosen[nodes] = True
    assert breaks_cycles(A, chosen)


def test_a_step_costs_no_look_at_what_stays(group):
    """A choice in one of two parts touches rows of that part alone."""
    first, second = ring(24, (0, 12)), ring(24, (0, 12))
    graph = listed(48, *first[1].tolist(), *(second[1] + 24).tolist())
    env = begin_environment(group, make_block(group, graph), make_problem("fvs"))
    step_together(group, [env], [np.array([3])])
    assert (env.touched + env.block.lo < 24).all()
    assert group.sum_integers(np.array([len(env.touched)]))[0] == 13  # 1 to 11, and both ends of the chord


def test_rounds_are_border_crossings(group):
    """Of a ring in its order, whose cascade each rank follows on its own rows, there are few."""
    block, problem = make_block(group, ring(2000)), make_problem("fvs")
    env, asked = begin_environment(group, block, problem), []
    reached_own = env.reached_own
    env.reached_own = lambda nodes: asked.append(1) or reached_own(nodes)
    step_together(group, [env], [np.array([1000])])
    assert env.done
    assert len(asked) <= group.size + 1


@pytest.mark.parametrize("most", [0, 1, FEW_ROWS, FEW_ROWS + 1])
def test_few_rows_are_told_with_how_many_there_are(group, most):
    """As many messages as are needed, the same rows as by two: of three lists, one without rows."""
    counts_all = [[most // 3, 0, most - most // 3], [0, 0, most // 2], [most, 0, 0]]
    rows_all = [np.arange(2 * sum(each)).reshape(-1, 2) + 1000 * i for i, each in enumerate(counts_all)]
    mine = group.rank % 3
    found, rows = _gather_few(group, np.array(counts_all[mine]), rows_all[mine])
    turns = [i % 3 for i in range(group.size)]
    assert found.tolist() == [counts_all[i] for i in turns]
    assert np.array_equal(rows, np.concatenate([rows_all[i] for i in turns]))


def test_the_papers_scan_is_refused(solo):
    with pytest.raises(CaseError, match=r"train\.environment"):
        begin_environment(solo, make_block(solo, ring(9)), make_problem("fvs"), scan=True)


# ---- forests ----------------------------------------------------------------------------------------------


def drawn_sets(graph, count):
    draws = np.random.default_rng(3)
    return [draws.random(graph[0]) < share for share in draws.uniform(0.2, 1.0, count)]


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(
    "graph", [*LONG.values(), random_graph(40, 0.08, 1), growing_graph(43, 2, 2), listed(5)]
)
def test_parts_and_cycles_are_those_of_networkx(group, graph, exchange):
    n, edges, _ = graph
    block, whole = make_block(group, graph, exchange), nx.empty_graph(n)
    whole.add_edges_from(edges.tolist())
    rows = from_edges(n, *edges.T)
    lo = min(block.lo, n)
    mine = slice(lo, lo + block.n_real)
    indptr = rows.indptr[lo : mine.stop + 1]
    columns = rows.indices[indptr[0] : indptr[-1]]
    part = Graph("g", n, lo, mine.stop, indptr - indptr[0], columns, rows.edges)
    for inside in drawn_sets(graph, 6):
        expected = np.full(n, -1)
        for nodes in nx.connected_components(whole.subgraph(np.flatnonzero(inside).tolist())):
            expected[list(nodes)] = min(nodes)
        found = parts_ext(group, block, inside[mine])[block.own_at : block.own_at + block.n_own]
        assert whole_rows(group, block, found).tolist() == expected.tolist()
        kept = whole.subgraph(np.flatnonzero(inside).tolist())
        cycles = kept.number_of_edges() - len(kept) + nx.number_connected_components(kept) if len(kept) else 0
        fault = fault_of_forest(group, block, part, ~inside)
        assert fault == (f"leaves {cycles} cycles" if cycles else None)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_go_back_latest_first(group, seed):
    graph = [growing_graph(60, 3, 3), random_graph(41, 0.1, 4), LONG["ladder"], LONG["tail"]][seed]
    n, A = graph[0], dense(graph)[0]
    draws = np.random.default_rng(seed)
    chosen_at = draws.integers(0, 6, n).astype(np.int32)
    block = make_block(group, graph)
    chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
    chosen_at_own[: block.n_real] = chosen_at[block.lo : block.lo + block.n_real]
    cover = drop_redundant(group, finished_rollout(group, make_problem("fvs"), block, chosen_at_own, 6))
    inside = np.ones(n, dtype=bool)
    for v in sorted(range(n), key=lambda v: (-chosen_at[v], v)):
        inside[v] = False
        inside[v] = not breaks_cycles(A, inside)
    assert whole_rows(group, block, cover.solution_own).tolist() == inside.tolist()
    assert cover.objective == inside.sum()


# ---- compiled runs ----------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("graph", [*LONG.values(), random_graph(90, 0.03, 3)])
def test_compiled_runs_make_the_choices_of_single_steps(graph):
    found = []
    for compiled in (True, False):
        group = Group(MPI.COMM_SELF, HostDevice(compiled=compiled))
        net, params = network("fvs", group.device)
        env = begin_environment(group, make_block(group, graph), net.problem)
        scores = LiveScores(group, net, params, env)
        while not env.done:
            scores.run(3, 0)
        found.append((env.chosen_at.tolist(), env.degree_own.tolist(), tuple(env.totals), env.steps))
    assert found[0] == found[1]


# ---- the learned start ------------------------------------------------------------------------------------


def least_set(A):
    """The nodes of a smallest set of a dense simple graph."""
    n = len(A)
    masks = sorted(range(1 << n), key=lambda mask: mask.bit_count())
    sets = (np.array([mask >> v & 1 for v in range(n)], dtype=bool) for mask in masks)
    return next(chosen for chosen in sets if breaks_cycles(A, chosen))


@alone
@pytest.mark.parametrize("seed", range(6))
def test_double_edges_are_shown_as_cycles_of_three(seed):
    draws = np.random.default_rng(seed)
    u, v = np.triu_indices(5, 1)
    some = np.sort(draws.permutation(len(u))[:7])
    count = 1 + (draws.random(len(some)) < 0.4)
    core = from_pairs(u[some], v[some], count, np.ones(5, dtype=np.int64))
    shown, ends = core.simple("g")
    assert shown.n == 5 + (count == 2).sum() == 5 + len(ends)
    A = np.zeros((shown.n, shown.n))
    A[shown.row_of(), shown.indices] = 1
    assert (A == A.T).all() and not A.diagonal().any()
    tools = FeedbackTools(Instance(from_edges(5, u[some], v[some])), make_problem("fvs"))
    tools.asked = core
    for solution in (least_set(A), np.ones(shown.n, dtype=bool)):
        told = tools.told(solution)
        left = core.without(told)[0]
        assert isinstance(left, Multigraph) and left.cycles() == 0
        assert told.sum() <= solution.sum()


@alone
def test_the_policy_beats_core_hd_where_both_put_nodes_back():
    """On unseen graphs of preferential attachment and random ones, one node at a time."""
    group, problem = Group(MPI.COMM_SELF, HostDevice()), make_problem("fvs")
    saved = load_weights(default_weights("fvs"))
    net = QNetwork(saved.policy, problem)
    params = Parameters(group.device, net.shapes())
    params.set(saved.arrays)
    for graphs in (
        [growing_graph(50 + 3 * i, 4, 300 + i) for i in range(40)],
        [random_graph(50 + 3 * i, 0.15, 300 + i) for i in range(40)],
    ):
        rollouts = [roll_out(group, net, params, make_block(group, g), "single", 1.0) for g in graphs]
        learned = sum(drop_redundant(group, rollout).objective for rollout in rollouts)
        core_hd = problem.baselines["core_hd"]
        assert learned < sum(int(core_hd(from_edges(n, *edges.T))[0].sum()) for n, edges, _ in graphs)


def test_large_graphs_are_answered_by_the_policy_alone():
    """The same set on any ranks, checked across them; and beside plain heuristics where a rank holds it."""
    n, edges, _ = growing_graph(220, 2, 5)
    graph = nx.empty_graph(n)
    graph.add_edges_from(edges.tolist())
    found = []
    for comm in (WORLD, MPI.COMM_SELF):
        settings = {"memory.whole_graph_mb": 0.001, "search.bounds": False}
        found.append(solve(graph, "fvs", comm=comm, settings=settings))
    assert found[0].digest == found[1].digest
    assert found[0].source == "policy"
    chosen = set(found[0].nodes)
    assert nx.is_forest(graph.subgraph(set(graph) - chosen)) and found[0].objective == len(chosen)
