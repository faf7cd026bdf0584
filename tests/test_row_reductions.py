"""Graphs too large for one rank: reductions on row partitions, and answers of what they leave."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, growing_graph, keys_of_replay
from mpi4py import MPI

from app import check, solve
from app.checkpoint.keeper import NOTHING_KEPT, Nothing
from app.checkpoint.store import State
from app.comm.group import Group
from app.device import HostDevice
from app.errors import LockstepError
from app.graphs.fixed_point import whole_numbers
from app.graphs.graph import from_edges, holds_entries
from app.model.memory import whole_graph
from app.partition.rows import partition_rows
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.cover.log import RULES, entries, renumbered
from app.reductions.cover.reducer import CoverReducer
from app.reductions.cover.verify import verify_log
from app.solver.rows import own
from app.solver.rows.cover_check import check_rows
from app.solver.rows.covers import reduce_rows
from app.solver.rows.own import Rounds
from app.tasks.answer_rest import _rounds, reduce_first
from app.tasks.entry import entry_of

WORLD, SELF = (Group(comm, HostDevice()) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF))


def drawn(seed):
    """A small random graph of few edges for its nodes."""
    draws = np.random.default_rng(seed)
    n, m = int(draws.integers(1, 60)), int(draws.integers(0, 90))
    return from_edges(n, draws.integers(0, n, m), draws.integers(0, n, m))


def own_rows(group, graph):
    """This rank's rows of a whole graph."""
    lo, hi = partition_rows(graph.n, group.size).range_of(group.rank)
    first, last = graph.indptr[[lo, hi]]
    return replace(
        graph, lo=lo, hi=hi, indptr=graph.indptr[lo : hi + 1] - first, indices=graph.indices[first:last]
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(0, 120, 20))
def test_what_is_left_is_what_the_log_leaves(seed, weighted):
    """Step by step a log of NEIGHBOURS, with the same offset and rest; the same on any number of ranks."""
    for each in range(seed, seed + 20):
        graph = drawn(each)
        weights = np.random.default_rng(each).integers(1, 6, graph.n) if weighted else None
        mine = own_rows(WORLD, graph)
        reduced = reduce_rows(WORLD, mine, weights)
        check_rows(WORLD, mine, reduced)
        proved = verify_log(graph, weights, reduced.log())
        rest = reduced.rest(WORLD, "rest")
        assert proved.offset == reduced.taken
        assert np.array_equal(proved.nodes, reduced.nodes)
        assert np.array_equal(proved.kernel.indptr, rest.indptr)
        assert np.array_equal(proved.kernel.indices, rest.indices)
        assert rest.edges == reduced.edges == len(rest.indices) // 2
        alone = reduce_rows(SELF, graph, weights)
        assert np.array_equal(alone.log(), reduced.log()) and alone.rounds == reduced.rounds


def test_no_leaf_and_no_triangle_is_left_of_small_graphs():
    for seed in range(60):
        reduced = reduce_rows(SELF, drawn(seed))
        rest = reduced.rest(SELF, "rest")
        assert (rest.degrees() >= 2).all()
        two = np.flatnonzero(rest.degrees() == 2)
        a, b = rest.indices[rest.indptr[two]], rest.indices[rest.indptr[two] + 1]
        assert not holds_entries(rest.indptr, rest.indices, a, b).any()


def test_a_lifted_cover_covers():
    for seed in range(30):
        graph = drawn(seed)
        reduced = reduce_rows(SELF, graph)
        cover = reduced.lift(np.ones(len(reduced.nodes), dtype=bool))
        assert (cover[graph.row_of()] | cover[graph.indices]).all()
        assert np.count_nonzero(cover) == reduced.taken + len(reduced.nodes)


def test_rounds_end_where_little_comes_of_them():
    """A path of 60,000 nodes goes from its ends alone: after two nodes no other round follows."""
    reduced = reduce_rows(SELF, from_edges(60_000, np.arange(59_999), np.arange(1, 60_000)))
    assert (reduced.rounds, reduced.taken, len(reduced.nodes)) == (1, 2, 59_996)


def test_damaged_reductions_are_refused():
    edges = np.concatenate([growing_graph(60, 1, 3)[1], [[60, 61], [61, 62], [62, 60]]])  # a tree, a triangle
    graph = from_edges(64, *edges.T)
    reduced = reduce_rows(SELF, graph)
    check_rows(SELF, graph, reduced)
    first, *more = (nodes for nodes in reduced.steps if len(nodes))
    assert any(nodes.shape[1] == 3 for nodes in more)
    doubled, moved = np.concatenate([first, first[:1]]), first.copy()
    moved[0, 0] = 63  # a node without an edge
    other = replace(reduced, nodes=np.append(reduced.nodes, 63))
    for damaged in (
        replace(reduced, steps=(doubled, *more)), replace(reduced, steps=(moved, *more)),
        replace(reduced, steps=tuple(more)), other,
    ):  # fmt: skip
        with pytest.raises(LockstepError, match="reductions on rows: "):
            check_rows(SELF, graph, damaged)


# ---- answers ----------------------------------------------------------------------------------------------

LEFT = {"search.baselines": False, "search.steps": 500, "search.bound_seconds": 20.0}
SPARSE = nx.gnp_random_graph(900, 3 / 900, seed=5)  # of which the rules leave some hundred nodes


def graph_rows(graph):
    """A NetworkX graph of nodes 0..n-1 as one of ours."""
    return from_edges(graph.number_of_nodes(), *np.array(graph.edges).T)


def between(weights=None):
    """A limit that what is left of SPARSE keeps, and the graph itself does not."""
    graph = graph_rows(SPARSE)
    whole = None if weights is None else whole_numbers(weights.astype(np.float32), "a weight")[0]
    reduced = reduce_rows(SELF, graph, whole)
    return (whole_graph(graph.n, graph.edges) + whole_graph(len(reduced.nodes), reduced.edges)) / 2e6


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_a_graph_beyond_the_limit_is_answered_by_what_is_left(problem):
    """As well as without a limit; the same on any number of ranks; its certificate is the graph's."""
    limited = LEFT | {"memory.whole_graph_mb": between(), "output.certificates": True}
    whole = solve(SPARSE, problem, settings=LEFT)
    found = [solve(SPARSE, problem, settings=limited, comm=MPI.COMM_WORLD)]
    found.append(by_one(lambda: solve(SPARSE, problem, settings=limited, comm=MPI.COMM_SELF)))
    assert whole.optimal and all((each.objective, each.bound) == (whole.objective,) * 2 for each in found)
    assert found[0].nodes == found[1].nodes and all(each.bound_verified for each in found)
    inside = set(found[0].nodes)
    covered = [(u in inside) + (v in inside) for u, v in SPARSE.edges]
    assert min(covered) >= 1 if problem == "mvc" else max(covered) <= 1
    checked = check(SPARSE, found[1], comm=MPI.COMM_SELF)
    assert checked.bound == whole.objective


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_weights_of_nodes_count(problem):
    """Decimals of nodes that are gone, too; with the bound, and the certificate, of the whole graph."""
    draws = np.random.default_rng(3)
    weights = np.round(draws.uniform(1, 9, len(SPARSE)), draws.integers(0, 3))
    limited = LEFT | {"memory.whole_graph_mb": between(weights), "output.certificates": True}
    given = {"node_weights": weights, "settings": LEFT, "comm": MPI.COMM_SELF}
    whole = by_one(lambda: solve(SPARSE, problem, **given))
    found = [solve(SPARSE, problem, node_weights=weights, settings=limited, comm=MPI.COMM_WORLD)]
    found.append(by_one(lambda: solve(SPARSE, problem, **given | {"settings": limited})))
    assert found[0].nodes == found[1].nodes and whole.optimal
    assert all((each.objective, each.bound) == (whole.objective,) * 2 for each in found)
    assert found[0].objective == round(float(weights[found[0].nodes].sum()), 2)
    assert check(SPARSE, found[1], node_weights=weights, comm=MPI.COMM_SELF).bound == whole.objective


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_nodes_of_weight_0_cost_nothing(problem):
    """They are in the cover; where what is left is too large the policy decides on them, too."""
    weights = np.round(np.random.default_rng(4).uniform(0, 3, len(SPARSE)))
    weights[:3], settings = (0, 0, 2), {"node_weights": weights, "comm": MPI.COMM_SELF}
    limited = LEFT | {"memory.whole_graph_mb": between(weights), "output.certificates": True}
    whole, found = (solve(SPARSE, problem, settings=each, **settings) for each in (LEFT, limited))
    assert (found.objective, found.bound) == (whole.objective, whole.bound) == (whole.objective,) * 2
    assert check(SPARSE, found, **settings).bound == whole.objective
    alone = solve(SPARSE, problem, settings=limited | {"memory.whole_graph_mb": 0.001}, **settings)
    inside = set(alone.nodes)
    covered = [(u in inside) + (v in inside) for u, v in SPARSE.edges]
    assert min(covered) >= 1 if problem == "mvc" else max(covered) <= 1


def test_a_certificate_of_what_is_left_names_the_nodes_of_the_graph():
    """Entries of all kinds, with the numbers of the graph; damaged they prove nothing."""
    limited = LEFT | {"memory.whole_graph_mb": between(), "output.certificates": True}
    answer = solve(SPARSE, "mvc", settings=limited, comm=MPI.COMM_SELF)
    proof = from_bytes(answer.certificate)
    assert {RULES[rule] for rule, _ in entries(proof.log)} >= {"neighbours", "fold"}
    log = proof.log.copy()
    log[3] = (log[3] + 1) % len(SPARSE)  # the first neighbour of the first leaf
    with pytest.raises(LockstepError):
        check(SPARSE, replace(answer, certificate=to_bytes(replace(proof, log=log))), comm=MPI.COMM_SELF)


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_what_is_left_may_still_be_too_large(problem):
    """The policy then decides the rest, from what reductions have decided; the bound is one of rows."""
    settings = {"search.baselines": False, "memory.whole_graph_mb": 0.0}
    found = [solve(SPARSE, problem, settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes and found[0].source == "policy" and found[0].bound_verified
    inside, reduced = set(found[0].nodes), reduce_rows(SELF, graph_rows(SPARSE))
    covered = [(u in inside) + (v in inside) for u, v in SPARSE.edges]
    assert min(covered) >= 1 if problem == "mvc" else max(covered) <= 1
    sure = set(np.flatnonzero(reduced.covered).tolist())
    assert sure <= inside if problem == "mvc" else not sure & inside
    alone = solve(SPARSE, problem, settings=settings | {"search.reductions": False}, comm=MPI.COMM_SELF)
    better = (
        found[0].objective <= alone.objective if problem == "mvc" else found[0].objective >= alone.objective
    )
    assert better and found[0].policy_evaluations < alone.policy_evaluations


def test_the_replay_reduces_rows_where_no_time_was_left_for_the_rest(monkeypatch):
    """Without reductions the policy alone would answer."""
    replays = []

    def kept(toolbox, graph, answer):
        replays.append(answer.replay)
        return entry_of(toolbox, graph, answer)

    monkeypatch.setattr("app.tasks.answer_rest.entry_of", kept)
    limited = LEFT | {"memory.whole_graph_mb": between()}
    hurried = limited | {"search.seconds": 1e-9, "search.steps": 0}
    tree = nx.Graph(growing_graph(900, 1, 3)[1].tolist())
    first = solve(tree, "mvc", settings=hurried)
    assert "search.reductions=false" not in replays[0]
    keys = keys_of_replay(replays[0])
    again = solve(tree, "mvc", settings=limited | keys)
    assert first.nodes == again.nodes and first.source == again.source == "reductions"
    mixed = nx.disjoint_union(nx.random_regular_graph(12, 500, seed=1), tree)
    solve(mixed, "mvc", settings=hurried | {"memory.whole_graph_mb": whole_graph(600, 3000) / 1e6})
    assert replays[2] == []


def test_logs_with_other_numbers_are_those_of_the_larger_graph():
    """All rules, flows of CROWN included: the log of a part, told by the numbers of the whole."""
    seen = set()
    for seed in range(40):
        part = drawn(seed + 500)
        draws = np.random.default_rng(seed)
        numbers = np.sort(draws.choice(3 * part.n, part.n, replace=False))
        reducer = CoverReducer(part)
        reducer.reduce()
        log = renumbered(reducer.log(), numbers)
        seen |= {RULES[rule] for rule, _ in entries(log)}
        larger = from_edges(3 * part.n, numbers[part.row_of()], numbers[part.indices])
        proved = verify_log(larger, None, log)
        assert proved.offset == reducer.offset and np.array_equal(proved.nodes, numbers[reducer.kernel()[1]])
    assert seen >= {"neighbours", "clique", "fold", "unconfined"}


# ---- time -------------------------------------------------------------------------------------------------


def test_rounds_end_by_a_look_that_all_ranks_share():
    """The first is always made: a replay has at least one."""
    rounds = Rounds(lambda: True)
    assert rounds.another() and not rounds.another() and not rounds.another()
    assert (rounds.made, rounds.cut_short, rounds.ended) == (1, True, True)
    counted = Rounds(most=2)
    assert [counted.another() for _ in range(3)] == [True, True, False]
    assert (counted.made, counted.cut_short) == (2, False)


def test_a_time_limit_cuts_rounds_short_and_the_replay_says_so(monkeypatch):
    """What is left then fits, and is answered."""
    replays = []

    def seen(toolbox, graph, answer):
        replays.append(answer.replay)
        return entry_of(toolbox, graph, answer)

    monkeypatch.setattr("app.tasks.answer_rest.SHARE", 0.0)
    monkeypatch.setattr("app.tasks.answer_rest.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("app.tasks.answer_rest.entry_of", seen)
    edges = SPARSE.number_of_edges()
    limited = LEFT | {"memory.whole_graph_mb": (whole_graph(900, edges) - 1) / 1e6}
    hurried = solve(SPARSE, "mvc", settings=limited | {"search.seconds": 5.0, "search.steps": 0})
    keys = keys_of_replay(replays[0])
    assert keys["search.row_rounds"] == 1
    again = solve(SPARSE, "mvc", settings=limited | keys)
    assert again.nodes == hurried.nodes


def test_a_resumed_run_makes_as_many_rounds():
    """As the part before it, whatever the clock says now."""
    kept = SimpleNamespace(recall=lambda key: State({"rounds": 3}, {}))
    search = SimpleNamespace(row_rounds=0, seconds=1e-9)
    rounds = _rounds(SimpleNamespace(case=SimpleNamespace(search=search), keeper=NOTHING_KEPT), kept)
    assert [rounds.another() for _ in range(4)] == [True, True, True, False] and not rounds.cut_short


class Remembering(Nothing):
    """Keeps what it is given, as checkpoints do."""

    def __init__(self):
        self.kept = {}

    def recall(self, key):
        return self.kept.get(key)

    def keep(self, key, state):
        self.kept[key] = state


def test_what_is_left_is_the_same_after_a_stop_whatever_the_clock_says(monkeypatch):
    """Solutions of it are kept. Only rounds that a clock has ended are told of in a replay, then too."""
    keepers, rests = [Remembering(), Remembering()], []

    def reduced(context, problem, loaded, _):
        rests.append(reduce_first(context, problem, loaded, keepers[len(rests) // 2]))
        return rests[-1]

    monkeypatch.setattr("app.tasks.solve.reduce_first", reduced)
    limited = LEFT | {"memory.whole_graph_mb": (whole_graph(900, SPARSE.number_of_edges()) - 1) / 1e6}
    for hurried in (False, True, True, False):
        with monkeypatch.context() as patch:
            if hurried:
                patch.setattr("app.tasks.answer_rest.SHARE", 0.0)
                patch.setattr("app.tasks.answer_rest.LEAST_SECONDS", 0.0)
            solve(SPARSE, "maxcut", settings=limited | {"search.seconds": 0.5, "search.steps": 0})
    assert np.array_equal(rests[0].kind.nodes, rests[1].kind.nodes)
    assert np.array_equal(rests[2].kind.nodes, rests[3].kind.nodes)
    assert len(rests[0].kind.nodes) < len(rests[2].kind.nodes)
    assert [rest.replay for rest in rests] == [[], [], ["search.row_rounds=1"], ["search.row_rounds=1"]]


def test_entries_are_counted_piece_by_piece(monkeypatch):
    """Rows that are longer than a piece, and empty ones."""
    indptr = np.array([0, 0, 7, 7, 9, 10, 25, 25])
    marks = np.random.default_rng(2).random(25) < 0.5
    counts = [int(marks[a:b].sum()) for a, b in itertools.pairwise(indptr)]
    for piece in (1, 2, 3, 10, 100):
        monkeypatch.setattr(own, "PIECE", piece)
        parts = list(own.pieces(indptr))
        assert [low for low, _ in parts] == [0, *(high for _, high in parts[:-1])] and parts[-1][1] == 7
        assert own.row_counts(indptr, marks).tolist() == counts
    assert own.row_counts(np.zeros(1, dtype=int), marks[:0]).tolist() == []
