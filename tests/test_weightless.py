"""Nodes of weight 0: answers, bounds and baselines are those of trying all sets, on any number of ranks."""

import networkx as nx
import numpy as np
import pytest
from helpers import random_graph
from mpi4py import MPI

from app import solve
from app.errors import CaseError

SETTINGS = {"search.steps": 400, "run.device": "cpu"}
LEAST = {"mvc": True, "mis": False, "mds": True, "clique": False}


def drawn(seed):
    """A graph of up to ten nodes, perhaps in two pieces, with weights 0 to 3, in some cases all 0."""
    random = np.random.default_rng(seed)
    n, edges, _ = random_graph(int(random.integers(2, 11)), float(random.uniform(0.1, 0.7)), seed)
    graph = nx.Graph()
    for v in range(n):
        graph.add_node(v, weight=0 if seed % 7 == 6 else int(random.integers(0, 4)))
    graph.add_edges_from(edges.tolist())
    return graph


def is_solution(problem, graph, chosen):
    inside = set(chosen)
    if problem == "mvc":
        return all(u in inside or v in inside for u, v in graph.edges)
    if problem == "mds":
        return all(v in inside or inside & set(graph[v]) for v in graph)
    pairs = [(u, v) for u in inside for v in inside if u < v]
    return all(graph.has_edge(u, v) == (problem == "clique") for u, v in pairs)


def best_weight(problem, graph, inside=(), outside=()):
    """By trying all; None: there is no solution."""
    nodes, found = list(graph), []
    for mask in range(1 << len(nodes)):
        chosen = [v for i, v in enumerate(nodes) if mask >> i & 1]
        if (
            set(inside) <= set(chosen)
            and not set(outside) & set(chosen)
            and is_solution(problem, graph, chosen)
        ):
            found.append(sum(graph.nodes[v]["weight"] for v in chosen))
    return (min if LEAST[problem] else max)(found, default=None)


@pytest.mark.parametrize("reductions", [True, False])
@pytest.mark.parametrize("problem", LEAST)
def test_answers_are_the_best_of_all_sets(problem, reductions):
    for seed in range(14):
        graph = drawn(seed)
        wanted = best_weight(problem, graph)
        settings = {**SETTINGS, "search.reductions": reductions}
        found = solve(graph, problem, settings=settings)
        assert is_solution(problem, graph, found.nodes)
        assert found.objective == wanted == sum(graph.nodes[v]["weight"] for v in found.nodes)
        assert found.bound <= wanted if LEAST[problem] else found.bound >= wanted
        own = solve(graph, problem, settings=settings, comm=MPI.COMM_SELF)
        assert (own.nodes, own.bound) == (found.nodes, found.bound)


@pytest.mark.parametrize("problem", LEAST)
def test_fixed_nodes_of_weight_0_stay_where_they_are(problem):
    for seed in range(8):
        graph = drawn(seed)
        light = [v for v in graph if not graph.nodes[v]["weight"]]
        for fixed in (
            {"inside": light[:1]},
            {"outside": light[:1]},
            {"inside": light[:1], "outside": light[1:2]},
        ):
            wanted = best_weight(problem, graph, **fixed)
            if wanted is None:
                continue
            found = solve(graph, problem, settings=SETTINGS, **fixed)
            assert is_solution(problem, graph, found.nodes)
            assert found.objective == wanted
            assert set(fixed.get("inside", ())) <= set(found.nodes)
            assert not set(fixed.get("outside", ())) & set(found.nodes)


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore:graph. the weight of node")
@pytest.mark.parametrize("problem", LEAST)
def test_weights_that_would_be_rounded_to_0_are_refused(problem):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: 1e-30, 1: 1e30, 2: 1.0, 3: 2.0}, "weight")
    with pytest.raises(CaseError, match="node 0 is below 0, or nothing beside the largest"):
        solve(graph, problem, settings=SETTINGS)
