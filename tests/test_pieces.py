"""What bounds find of one component reaches the answer while another one is open, on any number of ranks."""

import networkx as nx
import pytest
from test_selection import planted

from app import solve
from app.bounds.cover import part as cover_part
from app.search.cover.tools import CoverTools


def without_search(self, seed, start):
    """No local search: what is better than the start comes from the bounds."""
    return


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_a_component_that_is_solved_is_in_the_answer(problem, monkeypatch):
    """A hidden set that a solver finds within a second, beside a random graph that nothing closes."""
    monkeypatch.setattr(cover_part, "NEAR", 0.1)
    monkeypatch.setattr(CoverTools, "search", without_search)
    monkeypatch.setattr(CoverTools, "tree", lambda self, rank, ranks: None)
    hidden = planted(60, 5, 0.08, 3)
    graph = nx.Graph(zip(hidden.row_of().tolist(), hidden.indices.tolist()))
    graph = nx.disjoint_union(graph, nx.gnp_random_graph(400, 0.06, seed=3))
    settings = {
        "search.seconds": 4.0,
        "search.start": "greedy",
        "search.baselines": False,
        "run.device": "cpu",
    }
    found = solve(graph, problem, settings=settings)
    inside = set(found.nodes) if problem == "mvc" else set(graph) - set(found.nodes)
    assert all(u in inside or v in inside for u, v in graph.edges)
    assert len([v for v in inside if v < 300]) == 240
    assert not found.optimal
    assert found.objective == len(found.nodes)
