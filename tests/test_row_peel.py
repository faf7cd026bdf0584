"""Graphs of which reductions leave too much for one rank: choices, bounds and exchanges on row partitions."""

import itertools
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from helpers import keys_of_replay
from jobs import ROOT
from mpi4py import MPI
from skewed import CLOCKS
from test_main import result_of
from test_resume import fault, job
from test_row_reductions import SELF, WORLD, Remembering, drawn, own_rows

from app import check, solve
from app.errors import LockstepError
from app.graphs.graph import from_edges
from app.model.memory import whole_graph
from app.problems.table import ROW_PEELED
from app.proofs.archive import from_bytes
from app.solver.rows import peel
from app.solver.rows.cover_bound import bound_covers
from app.solver.rows.covers import reduce_rows
from app.solver.rows.domination_bound import bound_dominations
from app.solver.rows.dominations import reduce_dominations
from app.solver.rows.exchanges import drop_dominators, exchange
from app.solver.rows.kinds import ROW_KINDS
from app.solver.rows.own import Rounds, keyed, keyed_node
from app.tasks import answer_peeled
from app.tasks.entry import entry_of

PROBLEMS = ("mvc", "mis", "mds")
QUIET = {"search.baselines": False, "search.steps": 200, "output.certificates": True}
MESH = nx.random_regular_graph(5, 300, seed=2)  # of which no rule takes a node


def limit(nodes, edges):
    """That of a rank, MB, for graphs up to so large."""
    return {"memory.whole_graph_mb": whole_graph(nodes, edges) / 1e6}


def priced(seed, n, least=0):
    """Whole weights of nodes."""
    return np.random.default_rng(seed).integers(least, 7, n)


def rows_of(graph):
    """A NetworkX graph as one of ours."""
    return from_edges(len(graph), *np.array(graph.edges).T)


def optimum(graph, problem, weights):
    """By trying every set of nodes."""
    n, near = graph.n, np.eye(graph.n, dtype=bool)
    near[graph.row_of(), graph.indices] = True
    price = np.ones(n, dtype=int) if weights is None else weights
    sets = np.array(list(itertools.product((False, True), repeat=n)))
    if problem == "mds":
        right = ((sets.astype(int) @ near.T) > 0).all(axis=1)
        return int((sets[right] @ price).min())
    open_ = sets if problem == "mis" else ~sets
    right = np.ones(len(sets), dtype=bool)
    for u, v in zip(graph.row_of(), graph.indices):
        right &= ~(open_[:, u] & open_[:, v])
    return int((sets[right] @ price).max() if problem == "mis" else (sets[right] @ price).min())


# ---- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_small_graphs_are_answered_and_bounded(problem, weighted):
    """No answer is better than the best one, and no bound beyond it, whatever the limit leaves to the
    pipeline.
    """
    for seed in range(4):
        draws = np.random.default_rng(seed)
        graph = from_edges(11, draws.integers(0, 11, 26), draws.integers(0, 11, 26))
        weights = priced(seed, 11) if weighted else None
        more = {} if weights is None else {"node_weights": weights}
        best = optimum(graph, problem, weights)
        ends = np.stack([graph.row_of(), graph.indices], axis=1)
        given = nx.Graph()
        given.add_nodes_from(range(11))
        given.add_edges_from(ends.tolist())
        for nodes, edges in ((0, 0), (6, 8)):
            settings = QUIET | limit(nodes, edges)
            found = solve(given, problem, settings=settings, comm=MPI.COMM_SELF, **more)
            least, most = sorted((found.bound, found.objective))
            assert least <= best <= most
            assert found.objective >= best if problem != "mis" else found.objective <= best
            assert check(given, found, comm=MPI.COMM_SELF, **more).bound == found.bound


@pytest.mark.parametrize("rule", ["single", "fraction"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_on_any_number_of_ranks(problem, rule):
    """Half of the graph fits. The search has its part in it, and the certificate is the graph's."""
    settings = QUIET | limit(150, 300) | {"select.rule": rule}
    found = [solve(MESH, problem, settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes and found[0].bound == found[1].bound
    assert found[0].policy_evaluations and found[0].bound_verified and not found[0].optimal
    assert check(MESH, found[1], comm=MPI.COMM_SELF).bound == found[1].bound


@pytest.mark.parametrize(
    ("problem", "rule", "fits"), [("mvc", "adaptive", (465, 619)), ("mds", "single", (45, 80))]
)
def test_padding_between_ranks_changes_no_choice(problem, rule, fits):
    """Each rank's rows are padded: neither what a rule goes by nor when a stage ends may count that."""
    graph = nx.gnm_random_graph(1078, 2695, seed=1)
    settings = {"search.baselines": False, "search.steps": 0, "search.bounds": False, "select.rule": rule}
    settings |= limit(*fits)
    found = [solve(graph, problem, settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes


@pytest.mark.parametrize("problem", PROBLEMS)
def test_weights_are_what_a_greedy_goes_by(problem):
    """The policy does not see them, and is not asked on rows. Far better than by its scores."""
    weights = priced(3, len(MESH), 1).astype(float)
    settings = QUIET | limit(0, 0)
    found, alone = (
        solve(MESH, problem, node_weights=weights, settings=settings | more, comm=MPI.COMM_WORLD)
        for more in ({}, {"search.solver": "policy"})
    )
    assert found.policy_evaluations == 0
    assert alone.objective < found.objective if problem == "mis" else found.objective < alone.objective


def test_a_certificate_that_claims_less_than_its_witness_proves_stands():
    """Rows round up once, the check of a packing in every component; more than that it does not prove."""
    apart = nx.disjoint_union_all([nx.cycle_graph(5)] * 40)
    found = solve(apart, "mds", settings=QUIET | limit(0, 0), comm=MPI.COMM_SELF)
    packing = from_bytes(found.certificate).packing
    whole = rows_of(apart)
    assert 67 <= packing.lower <= 80
    packing.check(whole)
    with pytest.raises(LockstepError):
        replace(packing, lower=len(apart)).check(whole)


# ---- time, stops ------------------------------------------------------------------------------------------


def kept_entries(monkeypatch):
    """The answers that entries are made of, in a list."""
    seen = []

    def kept(toolbox, graph, answer):
        seen.append(answer)
        return entry_of(toolbox, graph, answer)

    monkeypatch.setattr("app.tasks.answer_rest.entry_of", kept)
    return seen


class Clock:
    """It goes on when it is looked at, by next to nothing; once regions are searched by 0.05 s."""

    def __init__(self, patch):
        self.now, self.step, searched = 0.0, 1e-6, answer_peeled.search_again

        def search_again(*given):
            self.step = 0.05
            return searched(*given)

        patch.setattr(answer_peeled, "search_again", search_again)
        for name in CLOCKS:
            patch.setattr(time, name, self)

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_replay_leads_to_the_answer_that_a_clock_has_cut_short(problem, monkeypatch):
    """One selection by the policy, then a greedy; one round of exchanges."""
    seen = kept_entries(monkeypatch)
    limited = QUIET | limit(150, 300) | {"select.rule": "fraction", "search.steps": 50}
    with monkeypatch.context() as patch:
        clock = Clock(patch)
        for share in ("PEEL_SHARE", "EXCHANGE_SHARE"):
            patch.setattr(answer_peeled, share, 0.0)
        first = solve(MESH, problem, settings=limited | {"search.seconds": 2.0}, comm=MPI.COMM_WORLD)
    keys = keys_of_replay(seen[0].replay)
    assert keys["search.row_evaluations"] == 1 and keys["search.row_regions"] > 0
    assert WORLD.rank or clock.now > 1.9  # the time was up
    again = solve(MESH, problem, settings=limited | keys, comm=MPI.COMM_WORLD)
    assert first.nodes == again.nodes
    assert {each for each in seen[0].replay if "starts" not in each} == {
        each for each in seen[1].replay if "starts" not in each
    }


def test_a_policy_whose_time_is_up_computes_no_scores(monkeypatch):
    """Once its selections are made a greedy goes on, stage by stage; without time nothing is tried."""
    calls, rolled = [], peel.roll_out

    def counted(*given, **more):
        calls.append(given)
        return rolled(*given, **more)

    monkeypatch.setattr(peel, "roll_out", counted)
    settings = QUIET | limit(20, 20) | {"select.rule": "fraction", "search.row_evaluations": 1}
    solve(MESH, "mds", settings=settings, comm=MPI.COMM_SELF)
    assert len(calls) == 1
    kind = SimpleNamespace(weights=None, nodes=range(2 * peel.ONE_BY_ONE))
    for rule, part in (("single", peel.LARGEST_PART), ("fraction", peel.PART)):
        assert peel.affordable_part(SELF, kind, peel.Peeler(None, None, "auto", rule, 0.1), 1, 0.0) == part


def test_a_policy_without_time_for_one_selection_is_not_asked(monkeypatch):
    """A greedy chooses all, in the replay as well."""
    seen, limited = kept_entries(monkeypatch), QUIET | limit(150, 300) | {"search.steps": 50}
    with monkeypatch.context() as patch:
        Clock(patch)
        for share in ("PEEL_SHARE", "BRIEF_SHARE"):
            patch.setattr(answer_peeled, share, 0.0)
        first = solve(MESH, "mvc", settings=limited | {"search.seconds": 2.0}, comm=MPI.COMM_WORLD)
    keys = keys_of_replay(seen[0].replay)
    assert keys["search.row_evaluations"] == -1 and "search.row_fraction" not in keys
    again = solve(MESH, "mvc", settings=limited | keys, comm=MPI.COMM_SELF)
    assert first.nodes == again.nodes and "search.row_evaluations=-1" in seen[1].replay


def test_a_resumed_run_chooses_as_much_as_the_part_before_it(monkeypatch):
    """Whatever the clock says now: a solution of the rest is kept."""
    keeper, rests = Remembering(), []
    answered = answer_peeled.answer_peeled

    def kept(context, pipeline, policy, problem, loaded, rest, _):
        solved = answered(context, pipeline, policy, problem, loaded, rest, keeper)
        rests.append(rest.kind.nodes)
        return solved

    monkeypatch.setattr("app.tasks.solve.answer_peeled", kept)
    settings = QUIET | limit(150, 300) | {"select.rule": "fraction", "search.seconds": 0.3, "search.steps": 0}
    for share in (0.0, 0.9):
        monkeypatch.setattr(answer_peeled, "PEEL_SHARE", share)
        keeper.kept.pop("answer", None)  # it was stopped before that
        solve(MESH, "mvc", settings=settings, comm=MPI.COMM_SELF)
    assert keeper.kept["peel"].values["cut_short"] and np.array_equal(*rests)


@pytest.mark.mpi_skip
def test_a_signal_while_the_policy_chooses_stops_the_run(tmp_path):
    """With a checkpoint, from which the choices begin anew."""
    case = (
        ROOT / "inputs" / "mis.toml", "graph.generator=er", "graph.path=[]", "graph.nodes=600",
        "graph.p=0.01", "graph.count=1", "search.steps=300", "memory.whole_graph_mb=0.1",
        "search.baselines=false", "output.plots=false", "select.rule=fraction", "select.fraction=0.02",
    )  # fmt: skip
    out = tmp_path / "out"
    code, printed = job(case, out, ranks=2, **fault(f"signal:rank=1,step=3,code={int(signal.SIGUSR1)}"))
    assert (code, printed.count("stopped by SIGUSR1; checkpoint")) == (3, 1), printed
    code, printed = job(case, out, "--resume")
    assert (code, "resumed from" in printed) == (0, True), printed
    assert "the policy chose" in printed and result_of(out)["instances"][0]["peeled"] > 0
    code, printed = job(case, tmp_path / "whole", ranks=2)
    assert code == 0 and result_of(out)["digest"] == result_of(tmp_path / "whole")["digest"]


# ---- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_covers_are_checked_and_the_same_on_any_number_of_ranks(weighted):
    """Without weights near a largest matching, and beyond it where there are triangles."""
    for seed in range(12):
        graph = drawn(seed)
        weights = priced(seed, graph.n) if weighted else None
        mine = own_rows(WORLD, graph)
        bound = bound_covers(WORLD, reduce_rows(WORLD, mine, weights), "minimise", Rounds())
        alone = bound_covers(SELF, reduce_rows(SELF, graph, weights), "minimise", Rounds())
        bound.check(WORLD, mine)
        assert bound.value == alone.value and np.array_equal(bound.pairs, alone.pairs)
        assert np.array_equal(bound.triangles, alone.triangles)
    if not weighted:
        graph = rows_of(MESH)
        bound = bound_covers(SELF, reduce_rows(SELF, graph), "minimise", Rounds())
        assert bound.value >= 0.95 * len(nx.max_weight_matching(MESH, maxcardinality=True))
        one = from_edges(4, [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3])  # a clique of four
        assert bound_covers(SELF, reduce_rows(SELF, one), "minimise", Rounds()).value == 2


def test_damaged_bounds_of_covers_are_refused():
    graph = rows_of(MESH)
    bound = bound_covers(SELF, reduce_rows(SELF, graph), "minimise", Rounds())
    far = bound.pairs.copy()
    far[0, 1] = next(v for v in range(300) if v not in MESH[int(far[0, 0])] and v != far[0, 0])
    for wrong in (
        {"pays": bound.pays + 1}, {"pays": bound.pays[1:]}, {"pays": -bound.pays}, {"pairs": far},
        {"pairs": bound.pairs + 300}, {"triangles": np.array([[0, 0, 1]])},
    ):  # fmt: skip
        with pytest.raises(LockstepError, match="reductions on rows: "):
            replace(bound, **wrong).check(SELF, graph)


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_dominating_sets_are_checked_and_the_same_on_any_number_of_ranks(weighted):
    """Near those of the linear program: of a regular graph n over the closed degree."""
    for seed in range(8):
        graph = drawn(seed)
        weights = priced(seed, graph.n) if weighted else None
        mine = own_rows(WORLD, graph)
        bound = bound_dominations(WORLD, reduce_dominations(WORLD, mine, weights), weights, Rounds())
        alone = bound_dominations(SELF, reduce_dominations(SELF, graph, weights), weights, Rounds())
        bound.check(WORLD, mine)
        assert bound.value == alone.value and np.array_equal(bound.values, alone.values)
    graph = rows_of(MESH)
    bound = bound_dominations(SELF, reduce_dominations(SELF, graph), None, Rounds())
    assert bound.value == 50
    for wrong in (2 * bound.values, -bound.values, bound.values[1:]):
        with pytest.raises(LockstepError, match="reductions on rows: "):
            replace(bound, values=wrong).check(SELF, graph)


def test_the_estimate_names_the_problems_whose_policies_choose_on_rows():
    assert {name for name in ROW_KINDS if ROW_KINDS[name].peels} == set(ROW_PEELED)


def test_keys_know_their_nodes():
    nodes = np.array([0, 1, 7, 1 << 31, (1 << 32) + 5])
    for salt in (0, 1, 63):
        assert np.array_equal(keyed_node(keyed(nodes, np.arange(5), salt), salt), nodes)
    assert (np.diff(keyed(nodes, np.arange(5), 3).astype(float)) > 0).all()


# ---- exchanges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_exchanges_make_independent_sets_heavier(weighted):
    """Maximal ones; the same on any number of ranks. From nothing, and from a poor one."""
    for seed in range(20):
        graph = drawn(seed)
        weights = priced(seed, graph.n) if weighted else None
        price = np.ones(graph.n, dtype=int) if weights is None else weights
        inside = np.zeros(graph.n, dtype=bool)
        if seed % 2:
            inside[np.argmax(graph.degrees())] = True
        found = exchange(WORLD, own_rows(WORLD, graph), weights, inside, Rounds())
        assert np.array_equal(found, exchange(SELF, graph, weights, inside, Rounds()))
        rows, columns = graph.row_of(), graph.indices
        assert not (found[rows] & found[columns]).any()
        near = np.zeros(graph.n, dtype=bool)
        near[rows[found[columns]]] = True
        assert (found | near | (price == 0)).all()
        assert price[found].sum() >= price[inside].sum()


def test_one_node_gives_way_to_two():
    """The middle of stars; of two stars whose leaves are joined one after the other."""
    stars = nx.disjoint_union(nx.star_graph(2), nx.star_graph(2))  # middles 0 and 3
    stars.add_edges_from([(1, 4), (2, 5)])
    inside = np.isin(np.arange(6), [0, 3])
    found = exchange(SELF, rows_of(stars), None, inside, Rounds())
    assert np.count_nonzero(found) == 3
    heavy = exchange(SELF, from_edges(2, [0], [1]), np.array([2, 5]), np.array([True, False]), Rounds())
    assert heavy.tolist() == [False, True]


@pytest.mark.parametrize("weighted", [False, True])
def test_dominating_sets_lose_what_they_do_not_need(weighted):
    """Minimal ones are left, the same on any number of ranks."""
    for seed in range(20):
        graph = drawn(seed)
        weights = priced(seed, graph.n) if weighted else None
        every = np.ones(graph.n, dtype=bool)
        found = drop_dominators(WORLD, own_rows(WORLD, graph), weights, every, Rounds())
        assert np.array_equal(found, drop_dominators(SELF, graph, weights, every, Rounds()))
        near = np.eye(graph.n, dtype=int)
        near[graph.row_of(), graph.indices] = 1
        times = near @ found
        assert (times > 0).all()
        assert all((times[near[v] > 0] == 1).any() for v in np.flatnonzero(found))
