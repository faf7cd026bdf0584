"""Answers beside plain heuristics and the policy alone: never worse than these, alike on any ranks."""

import networkx as nx
import numpy as np
import pytest
from helpers import keys_of_replay
from mpi4py import MPI

from app import check, solve
from app.api.graph import loaded_graph
from app.errors import CaseError, LockstepError
from app.graphs.covering import COVERAGE, COVERING
from app.problems.table import PROBLEMS, WEIGHED, make_problem
from app.tasks.answer import POLICY_ALONE
from app.tasks.context import context_of_settings
from app.tasks.policy import find_policy
from app.tasks.solve import solve_graph

MINIMISED = {name for name, problem in PROBLEMS.items() if problem.sense == "minimise"}
SHORT = {"search.bounds": False, "search.steps": 16, "search.start": "greedy"}


def couplings(n, p, seed):
    """A graph of couplings -1 and 1 with fields."""
    draws, graph = np.random.default_rng(seed), nx.gnp_random_graph(n, p, seed=seed)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = int(draws.choice([-1, 1]))
    graph.add_weighted_edges_from((v, v, int(draws.integers(1, 5))) for v in range(n))
    return graph


def instance(problem, seed):
    """What `solve` takes, small, but hard for a search of a few steps."""
    if problem in ("tsp", "cvrp"):
        return np.random.default_rng(seed).integers(0, 1000, (30, 2)).astype(float)
    if problem in ("qubo", "ising"):
        return couplings(50, 0.4, seed)
    if problem in ("alignment", "qap"):
        return tuple(nx.gnp_random_graph(50, 0.3, seed=seed + k) for k in (0, 100))
    if problem in (*COVERING, COVERAGE):
        return np.random.default_rng(seed).random((50, 50)) < 0.15
    return nx.gnp_random_graph(50, 0.3, seed=seed, directed=problem in ("dfvs", "influence", "ordering"))


def worse(problem, objective, other):
    return objective > other if problem in MINIMISED else objective < other


WEIGHTED = [(problem, True) for problem, counted in WEIGHED.items() if counted == "nodes"]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("steps", [0, 100])
@pytest.mark.parametrize(("problem", "weighted"), [*((each, False) for each in PROBLEMS), *WEIGHTED])
def test_an_answer_is_never_worse_than_a_plain_heuristic(problem, weighted, steps):
    draws = np.random.default_rng(1)
    weights = {"node_weights": draws.integers(1, 30, 50).tolist()} if weighted else {}
    for seed in range(3):
        settings = SHORT | {"search.steps": steps}
        more = {"terminals": range(0, 50, 3)} if problem == "steiner" else {}
        more = {"demands": [0, *[3] * 29], "capacity": 20} if problem == "cvrp" else more
        answer = solve(instance(problem, seed), problem, settings=settings, **weights, **more)
        assert answer.baselines
        assert not any(worse(problem, answer.objective, each) for each in answer.baselines.values())


@pytest.mark.parametrize("problem", ["ising", "maxcut", "tsp"])
def test_the_answer_of_a_heuristic_is_the_same_on_any_ranks(problem):
    settings = SHORT | {"search.steps": 0}
    graph = instance(problem, 1)
    alone = solve(graph, problem, settings=settings, comm=MPI.COMM_SELF)
    together = solve(graph, problem, settings=settings, comm=MPI.COMM_WORLD)
    assert alone.source in alone.baselines
    assert alone.objective == alone.baselines[alone.source] == alone.trace[-1][1]
    assert (together.nodes, together.source) == (alone.nodes, alone.source)
    assert (together.digest, together.baselines) == (alone.digest, alone.baselines)
    assert check(graph, alone, settings={"search.bounds": False}).objective == alone.objective


@pytest.mark.parametrize("problem", ["ising", "tsp"])
def test_a_search_without_heuristics_has_the_answer_of_its_own(problem):
    """And one that is better than the heuristics is the answer, as it was."""
    graph = instance(problem, 1)
    for steps, source in ((0, "greedy"), (30_000, "search")):
        settings = SHORT | {"search.steps": steps}
        own = solve(graph, problem, settings=settings | {"search.baselines": False})
        beside = solve(graph, problem, settings=settings)
        assert own.source == source and not own.baselines
        assert (beside.digest == own.digest) == (steps > 0)


def entry_of(problem, graph, settings, alone=None):
    """The entry of result.json, on all ranks together."""
    context = context_of_settings(SHORT | {"problem.name": problem} | settings, MPI.COMM_WORLD, False)
    loaded, _ = loaded_graph(context, graph)
    found = solve_graph(context, make_problem(problem), find_policy(context), loaded, alone=alone)
    return found.entry


@pytest.mark.parametrize(("steps", "won"), [(0, True), (100_000, False)])
def test_a_replay_has_the_heuristic_that_counted(steps, won):
    """Of a time limit, under which a clock says which heuristics begin; here the steps end the search."""
    graph = couplings(50, 0.4, 1)
    entry = entry_of("ising", graph, {"search.seconds": 600.0, "search.steps": steps})
    keys = keys_of_replay(entry["replay"])
    assert keys["search.heuristic"] in PROBLEMS["ising"].baselines
    assert (entry["source"] in entry["baselines"]) == won
    again = entry_of("ising", graph, keys)
    assert (again["digest"], again["source"]) == (entry["digest"], entry["source"])
    assert len(again["baselines"]) == 1


def test_one_heuristic_alone_and_unknown_ones():
    graph = nx.gnp_random_graph(20, 0.3, seed=1)
    entry = entry_of("maxcut", graph, {"search.heuristic": "greedy"})
    assert list(entry["baselines"]) == ["greedy construction"]
    with pytest.raises(CaseError, match=r'^search.heuristic: found "gready"; one of descent, .* right$'):
        entry_of("maxcut", graph, {"search.heuristic": "gready"})


def test_the_policy_alone_may_be_the_answer():
    """Handed a good cut; and a set that is none is found out."""
    graph = nx.gnp_random_graph(60, 0.4, seed=1)
    good = solve(graph, "maxcut", settings=SHORT | {"search.steps": 100_000}, comm=MPI.COMM_SELF)
    sides = np.isin(np.arange(60), good.nodes)
    quick = {"search.steps": 0, "search.heuristic": "descent"}
    entry = entry_of("maxcut", graph, quick)
    assert POLICY_ALONE not in entry["baselines"] and entry["objective"] < good.objective
    entry = entry_of("maxcut", graph, quick, sides)
    assert entry["source"] == POLICY_ALONE
    assert entry["objective"] == entry["baselines"][POLICY_ALONE] == good.objective
    with pytest.raises(LockstepError, match=r"^policy alone on graph: the independent set holds both ends"):
        entry_of("mis", graph, quick | {"search.heuristic": ""}, np.ones(60, dtype=bool))
