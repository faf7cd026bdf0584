"""Bipartite graphs with planted communities, as of users and what they like, drawn edge by edge."""

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.drawn import Draw, drawn_edges
from app.graphs.generators.random_nodes import communities
from app.graphs.stream import EdgeStream


def two_sided(
    n: int, second: int, count: int, degree_in: float, degree_out: float, seed: int, name: str | None = None
) -> EdgeStream:
    """n nodes, the last `second` of them on the second side, in `count` communities that have nodes of both.

    Nodes of the first side have mean degrees to their own community and to all others. Of a community of m
    nodes on the second side that at place floor(m x^2) is taken, x uniform: the density of its degrees falls
    with the root of the place, so that some are popular. Repeats are dropped later. Communities are those of
    random_nodes.communities(seed, n, count).
    """
    check_count("nodes", n, 2, MOST_NODES)
    check_count("elements", second, 1, n - 1)
    check_count("random_classes", count, 2, n)
    check_seed(seed)
    edges = [round((n - second) * degree) for degree in (degree_in, degree_out)]
    if not (min(degree_in, degree_out) >= 0 and max(edges) < 1 << 40):
        raise CaseError(f"graph.degree_in, degree_out: must be 0 or more, got {degree_in!r}, {degree_out!r}")
    phases = [
        ("inside", edges[0], lambda: _draw(n, second, count, seed, own=True)),
        ("outside", edges[1], lambda: _draw(n, second, count, seed, own=False)),
    ]
    shape = f"n={n}, second={second}, communities={count}"
    path = f"bipartite({shape}, inside={degree_in}, outside={degree_out}, seed={seed})"
    return drawn_edges(name or f"bipartite-{n}-{count}-{seed}", path, n, "bipartite", seed, phases)


def _draw(n: int, second: int, count: int, seed: int, own: bool) -> Draw:
    """Pairs of a node of the first side and one of the second, of its own community or of another one."""
    label, first = communities(seed, n, count), n - second
    members = first + np.argsort(label[first:], kind="stable")
    starts = np.searchsorted(label[members], np.arange(count + 1))

    def draw(size: int, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        u = draws.integers(0, first, size)
        other = label[u] if own else (label[u] + draws.integers(1, count, size)) % count
        x, wide = draws.random(size), starts[other + 1] - starts[other]
        place = (wide * (x * x)).astype(np.int64)
        there = wide > 0  # small graphs may have no such node
        return u[there], members[(starts[other] + place)[there]]

    return draw
