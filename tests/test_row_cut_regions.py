"""Cuts of graphs too large for one rank, whose policy answers by itself: exchanges, and regions searched
again.
"""

import contextlib

import numpy as np
import pytest
from jobs import ROOT
from mpi4py import MPI
from test_main import result_of
from test_resume import job
from test_row_cuts import QUIET, drawn, own
from test_row_peel import MESH, limit
from test_row_reductions import SELF, WORLD
from test_row_regions import Enough, Stopping, adversarial, fresh

from app import solve
from app.case.file import build_from
from app.graphs.graph import from_edges
from app.model.policy_plan import Counts, _beyond
from app.problems.table import PROBLEMS, ROW_FOLLOWED
from app.rng import stream
from app.solver.rows.kinds import ROW_KINDS
from app.solver.rows.own import Rounds
from app.solver.rows.regions import COUNT, NONE, Course, search_regions
from app.tasks import answer_followed
from app.toolbox import Instance, never

SIGNED = MESH.copy()
for number, (_, _, about) in enumerate(SIGNED.edges(data=True)):
    about["weight"] = (-1, 2, -3, 0.5)[number % 4]


def graphs():
    """Of all kinds, each also with weights of both signs, some of them large."""
    draws = np.random.default_rng(5)
    for graph in adversarial():
        yield graph
        upper = graph.row_of() < graph.indices
        ends = graph.row_of()[upper], graph.indices[upper]
        weights = draws.choice([-3, -0.5, 1, 1 << 20], int(upper.sum())).astype(np.float32)
        yield from_edges(graph.n, *ends, weights)
    yield from (drawn(seed) for seed in range(6))


def reduced(group, graph):
    """The rows of a graph after reductions, and its own part."""
    mine, _ = own(group, graph)
    kind = ROW_KINDS["maxcut"]("maximise", None, lambda n, m: False, 1e9, True)
    kind.reduce(group, mine, Rounds())
    return kind, mine


def searched(group, graph, start, most, size):
    """The cut that so many regions lead to, how, and what it is worth."""
    kind, mine = reduced(group, graph)
    regions, course = kind.regions(group, start), Course(size, size)
    search_regions(group, regions, PROBLEMS["maxcut"](), 3, course, most, never)
    found = kind.joined(regions)
    return found, course, kind.value(group, mine, found)


def test_cuts_never_get_worse_and_are_the_same_on_any_number_of_ranks():
    """With regions of all sizes, within rounds and at their ends; better ones are told as such."""
    for at, graph in enumerate(graphs()):
        start = stream(1, "start", at).random(graph.n) < 0.5
        kind, mine = reduced(WORLD, graph)
        start = kind.improve(WORLD, mine, start, Rounds())
        before = kind.value(WORLD, mine, start)
        for size, most in ((24, 7), (200, 35)):
            found, course, value = searched(WORLD, graph, start, most, size)
            again, _, alone = searched(SELF, graph, start, most, size)
            assert np.array_equal(found, again) and value == alone
            assert (value > before) == (course.better > 0) and value >= before


def test_exchanges_lead_to_cuts_that_no_single_flip_makes_better():
    """They lose nothing on the way; the same on any number of ranks."""
    for at, graph in enumerate(graphs()):
        kind, mine = reduced(WORLD, graph)
        alone, whole = reduced(SELF, graph)
        start = stream(2, "start", at).random(graph.n) < 0.5
        rounds = Rounds(most=1000)
        found = kind.improve(WORLD, mine, start, rounds)
        assert rounds.made < 1000
        assert np.array_equal(found, alone.improve(SELF, whole, start, Rounds(most=1000)))
        assert kind.value(WORLD, mine, found) >= max(kind.value(WORLD, mine, start), 0)
        weights, marks = alone._whole, 1 - 2 * found.astype(np.int64)
        gains = np.zeros(graph.n, dtype=np.int64)
        np.add.at(gains, graph.row_of(), weights * marks[graph.row_of()] * marks[graph.indices])
        assert (gains <= 0).all()


def test_free_nodes_of_two_regions_are_not_next_to_each_other():
    """Nor is any of them in two; what is next to a later region alone stays."""
    graph = adversarial_mesh()
    kind, _ = reduced(WORLD, graph)
    regions = kind.regions(WORLD, np.zeros(graph.n, dtype=bool))
    regions.settle(regions.solution, stream(1, "regions"), 300)
    label = regions._label
    u, v = graph.row_of(), graph.indices
    assert ((label[u] == label[v]) | (label[u] == NONE) | (label[v] == NONE)).all()
    assert set(label) > {NONE, COUNT - 1}


def adversarial_mesh():
    """A graph in which much is near all."""
    return from_edges(len(MESH), *np.array(MESH.edges).T)


def test_a_region_of_all_is_the_plain_search(monkeypatch):
    """What stays around it is nothing: the annealing of the toolbox, from the sides that are there."""
    for module in ("regions", "cut_regions"):
        monkeypatch.setattr(f"app.solver.rows.{module}.COUNT", 1)
    graph = adversarial_mesh()
    start = stream(1, "start").random(graph.n) < 0.5
    _, _, value = searched(SELF, graph, start, 1, 1 << 14)
    toolbox = PROBLEMS["maxcut"]().toolbox(Instance(graph))
    assert toolbox.value(start) < value <= graph.edges
    search = toolbox.search(0, start)
    search.run(100 * graph.n)
    assert value > 0.97 * search.best


@pytest.mark.parametrize("problem", ROW_FOLLOWED)
@pytest.mark.parametrize("graph", [MESH, SIGNED], ids=["plain", "signed"])
def test_answers_are_better_than_the_policys(graph, problem):
    """Of a policy that has few moves; the same on any number of ranks."""
    settings = QUIET | limit(100, 150) | {"search.evaluations": 40}
    found = [solve(graph, problem, settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes and found[0].objective == found[1].objective
    sources = ("regions on rows", "exchanges on rows", "annealing on rows")
    assert found[0].source in sources and found[0].bound is None
    inside = set(found[0].nodes)
    crossing = sum(w for u, v, w in graph.edges(data="weight", default=1) if (u in inside) != (v in inside))
    assert crossing == found[0].objective
    alone = solve(graph, problem, settings=settings | {"search.solver": "policy"}, comm=MPI.COMM_SELF)
    assert found[0].objective > alone.objective


@pytest.mark.mpi_skip
def test_what_a_clock_has_ended_is_replayed(tmp_path):
    """By the keys of the answer, on another number of ranks."""
    case = (
        ROOT / "inputs" / "maxcut.toml", "graph.generator=er", "graph.path=[]", "graph.nodes=1500",
        "graph.p=0.004", "graph.count=1", "memory.whole_graph_mb=0.1", "search.baselines=false",
        "output.plots=false",
    )  # fmt: skip
    code, printed = job((*case, "search.seconds=0.5"), tmp_path / "timed", ranks=2)
    assert code == 0, printed
    (entry,) = result_of(tmp_path / "timed")["instances"]
    assert entry["source"] in ("regions on rows", "annealing on rows")
    assert entry["objective"] > entry["learned"] and any("row_sweeps" in key for key in entry["replay"])
    code, printed = job((*case, *entry["replay"]), tmp_path / "again")
    assert code == 0, printed
    assert result_of(tmp_path / "again")["digest"] == result_of(tmp_path / "timed")["digest"]


@pytest.mark.parametrize(("looks", "among"), [(4, "annealing"), (12, "regions")])
def test_a_resumed_run_ends_like_one_that_was_never_stopped(looks, among, monkeypatch):
    """Stopped among sweeps of annealing, and among regions."""
    settings = QUIET | limit(100, 150) | {"search.row_regions": 24, "search.row_sweeps": [5, 3]}
    whole = solve(SIGNED, "maxcut", settings=settings, comm=MPI.COMM_WORLD)
    answered = answer_followed.answer_followed

    def kept(context, policy, problem, loaded, rest, _):
        keeper = Stopping(looks)
        with contextlib.suppress(Enough):
            answered(context, policy, problem, loaded, rest, keeper)
        assert list(keeper.kept)[-1] == among
        return answered(context, policy, problem, loaded, fresh(context, problem, loaded), keeper.again())

    monkeypatch.setattr("app.tasks.solve.answer_followed", kept)
    again = solve(SIGNED, "maxcut", settings=settings, comm=MPI.COMM_WORLD)
    assert again.nodes == whole.nodes and again.objective == whole.objective


def test_the_table_of_problems_names_those_whose_policy_answers_by_itself():
    assert {name for name in ROW_KINDS if ROW_KINDS[name].follows} == set(ROW_FOLLOWED)


@pytest.mark.parametrize(
    ("problem", "regions", "then"),
    [
        ("maxcut", -1, "answer on the rows; all ranks at once would search regions again, unless"),
        ("maxcut", 0, "answer on the rows, unless"),
        ("clique", -1, "search for cliques root by root, unless"),
        ("clique", 0, "core numbers alone would answer, unless"),
        ("fvs", -1, "policy alone would answer, unless"),
    ],
)
def test_the_estimate_says_who_answers(problem, regions, then):
    case = build_from(
        [
            "run.task=solve", f"problem.name={problem}", f"search.row_regions={regions}",
            "memory.whole_graph_mb=1", "graph.generator=er", "graph.nodes=60000", "graph.p=1e-4",
        ]
    )  # fmt: skip
    assert then in _beyond(case, Counts("er", 1, 60000, 360000))
