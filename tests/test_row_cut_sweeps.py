"""Annealing of cuts on row partitions: colours, sweeps, and answers with them."""

import numpy as np
import pytest
from mpi4py import MPI
from test_row_cut_regions import MESH, QUIET, SELF, SIGNED, WORLD, graphs, limit, reduced

from app import solve
from app.case.file import build_from
from app.graphs.graph import from_edges
from app.model.policy_plan import Counts, _beyond
from app.rng import key_of, stream
from app.search.cut.plain import logs
from app.search.cut.search import _mean_field
from app.solver.rows.colours import NONE, coloured
from app.solver.rows.cut_sweeps import HOT, CutSweeps, draws, mean_field
from app.solver.rows.own import OwnRows
from app.tasks import answer_annealed, answer_followed

LEVELS = 6


def sweeps_of(group, graph, start, compiled=True):
    """Of what reductions leave."""
    kind, _ = reduced(group, graph)
    rows = kind.own
    return CutSweeps(group, rows, kind.rows.rows.data, start, 7, compiled), rows, kind


def gains_of(kind, sides):
    """[n] int64 of all nodes, by one rank that has all rows."""
    rows, weights = kind.own, kind.rows.rows.data
    of = np.repeat(rows.nodes, rows.degrees())
    gains = np.zeros(rows.n, dtype=np.int64)
    np.add.at(gains, of, np.where(sides[of] != sides[rows.indices], -weights, weights))
    return gains


def test_neighbours_have_different_colours():
    """Each the least one that is free; the same on any number of ranks."""
    for graph in graphs():
        alone, _ = reduced(SELF, graph)
        part, _ = reduced(WORLD, graph)
        colour, rows = coloured(SELF, alone.own), alone.own
        assert np.array_equal(coloured(WORLD, part.own), colour)
        of = np.repeat(rows.nodes, rows.degrees())
        assert (colour[of] != colour[rows.indices]).all()
        assert set(np.flatnonzero(colour != NONE)) == set(rows.nodes)
        for least in range(colour.max(initial=0)):
            near = set(of[colour[rows.indices] == least])
            assert near >= set(np.flatnonzero(colour > least))


def test_scale_free_graphs_have_few_colours():
    """Hubs come first: not as many as one of them has neighbours."""
    draws_ = np.random.default_rng(3)
    weight = (np.arange(2000) + 1.0) ** -0.7
    ends = draws_.choice(2000, (2, 12000), p=weight / weight.sum())
    graph = from_edges(2000, *ends[:, ends[0] != ends[1]])
    assert coloured(SELF, OwnRows.of(graph)).max() < 30 < graph.degrees().max()


@pytest.mark.parametrize("compiled", [True, False])
def test_sweeps_are_the_same_on_any_number_of_ranks(compiled):
    """With kernels and without; the gains stay exact."""
    for at, graph in enumerate(graphs()):
        start = stream(1, "start", at).random(graph.n) < 0.5
        mine, _, _ = sweeps_of(WORLD, graph, start, compiled)
        alone, _, kind = sweeps_of(SELF, graph, start, not compiled)
        for level in range(LEVELS):
            mine.sweep(level, LEVELS)
            alone.sweep(level, LEVELS)
            found = alone.solution()
            assert np.array_equal(mine.solution(), found)
            ids = alone._arrays["ids"]
            assert np.array_equal(alone._arrays["gain"], gains_of(kind, found)[ids])
        assert mine.made == LEVELS and mine.field == alone.field


def test_trials_of_a_colour_are_those_of_one_node_after_the_other():
    """Metropolis' rule, node by node, on a graph with weights of both signs."""
    u, v = stream(2, "edges").integers(0, 400, (2, 1500))
    signs = stream(2, "signs").choice([-2.0, 1.0, 3.0], 1500).astype(np.float32)
    graph = from_edges(400, u[u != v], v[u != v], signs[u != v])
    start = stream(2, "start").random(400) < 0.5
    made, rows, kind = sweeps_of(SELF, graph, start)
    made.made = 5
    made.sweep(1, LEVELS)
    sides, weights, colour = start.copy(), kind.rows.rows.data, coloured(SELF, rows)
    temperature = HOT * made.field * (2 * (LEVELS - 1) - 1) / (2 * LEVELS)
    bits = draws(key_of(7, "sweeps of a cut", 5), np.arange(graph.n))
    for node in rows.nodes[np.argsort(colour[rows.nodes], kind="stable")]:
        at = int(np.searchsorted(rows.nodes, node))
        part = slice(*rows.indptr[[at, at + 1]])
        across = sides[rows.indices[part]] != sides[node]
        gain = int(np.where(across, -weights[part], weights[part]).sum())
        most = temperature * logs()[int(bits[node]) >> 52] / 2**16
        assert gain == 0 or abs(-gain - most) > 1e-6
        sides[node] ^= gain > 0 or (gain == 0 and not int(bits[node]) & 1) or 0 < -gain <= most
    assert np.array_equal(made.solution(), sides) and (sides != start).sum() > 50


def test_draws_of_a_sweep_are_even_and_those_of_two_are_apart():
    ids = np.arange(20000)
    first, second = (draws(key_of(1, "sweeps of a cut", step), ids) >> np.uint64(52) for step in (0, 1))
    for found in (first, second):
        counts = np.bincount(found.astype(int) // 256, minlength=16)
        assert abs(counts - 1250).max() < 200
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.05


def test_cold_sweeps_lose_nothing():
    """At a temperature below every difference of gains."""
    for at, graph in enumerate(graphs()):
        start = stream(4, "start", at).random(graph.n) < 0.5
        made, _, kind = sweeps_of(WORLD, graph, start)
        mine = reduced(WORLD, graph)[1]
        before = kind.value(WORLD, mine, kind.annealed(made))
        for _ in range(3):
            made.sweep((1 << 27) - 1, 1 << 27)
        assert kind.value(WORLD, mine, kind.annealed(made)) >= before


def test_the_mean_field_is_that_of_the_search_of_whole_graphs():
    """Up to rounding, whatever the size of weights; the same bits on any number of ranks."""
    for graph in graphs():
        alone, _ = reduced(SELF, graph)
        if not len(alone.nodes):
            continue
        part, _ = reduced(WORLD, graph)
        found = mean_field(SELF, alone.own, alone.rows.rows.data)
        assert found == mean_field(WORLD, part.own, part.rows.rows.data)
        rest = alone.rest(SELF, "rest")
        whole = _mean_field(rest, alone.rows.rows.data) * len(alone.nodes) / max(len(alone.own.nodes), 1)
        assert found == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("graph", [MESH, SIGNED], ids=["plain", "signed"])
def test_annealed_cuts_are_better_than_local_optima(graph):
    """The same with kernels and without, on any number of ranks."""
    settings = QUIET | limit(100, 150) | {"search.evaluations": 5, "search.row_regions": 0}
    worth = {}
    for counts in ([0], [3], [3] * 30):
        more = settings | {"search.row_sweeps": counts}
        found = solve(graph, "maxcut", settings=more, comm=MPI.COMM_WORLD)
        plain = solve(graph, "maxcut", settings=more | {"run.kernels": "plain"}, comm=MPI.COMM_SELF)
        assert found.nodes == plain.nodes
        worth[len(counts) * counts[0]] = found.objective
    assert worth[0] < worth[90] > worth[3]


def test_no_annealing_begins_for_which_there_is_no_time(monkeypatch):
    """A replay, which has no clock, is told so."""
    settings = QUIET | limit(100, 150) | {"search.seconds": 0.3, "search.row_regions": 0}
    answers = []

    def annealed(work, found):
        answers.append(answer_annealed.annealed(work, found))
        return answers[-1]

    monkeypatch.setattr(answer_followed, "annealed", annealed)
    monkeypatch.setattr(answer_annealed, "BEGIN_SECONDS", 1e6)
    solve(MESH, "maxcut", settings=settings, comm=MPI.COMM_WORLD)
    (found,) = answers
    assert found.source == answer_followed.POLICY and found.replay[-1] == "search.row_sweeps=[0]"


@pytest.mark.parametrize(("sweeps", "who"), [("[]", "the policy, then annealing,"), ("[0,0]", "the policy")])
def test_the_estimate_says_what_answers(sweeps, who):
    case = build_from(
        [
            "run.task=solve", "problem.name=maxcut", f"search.row_sweeps={sweeps}",
            "memory.whole_graph_mb=1", "graph.generator=er", "graph.nodes=60000", "graph.p=1e-4",
        ]
    )  # fmt: skip
    assert f"{who} would answer on the rows; " in _beyond(case, Counts("er", 1, 60000, 360000))
