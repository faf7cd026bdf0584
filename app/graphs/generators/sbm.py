"""Graphs with planted communities (Holland, Laskey and Leinhardt 1983), drawn edge by edge."""

import numpy as np

from app.errors import CaseError
from app.graphs.generators.checks import MOST_NODES, check_count, check_seed
from app.graphs.generators.drawn import Draw, drawn_edges
from app.graphs.generators.random_nodes import communities
from app.graphs.stream import EdgeStream


def planted(
    n: int, count: int, degree_in: float, degree_out: float, seed: int, name: str | None = None
) -> EdgeStream:
    """n nodes in `count` communities, with mean degrees to their own and to all others.

    Ends are drawn uniformly: n degree_in / 2 edges within communities, n degree_out / 2 between two. Repeats
    and loops are dropped later. Communities are those of random_nodes.communities(seed, n, count).
    """
    check_count("nodes", n, 1, MOST_NODES)
    check_count("random_classes", count, 2, n)
    check_seed(seed)
    edges = [round(n * degree / 2) for degree in (degree_in, degree_out)]
    if not (min(degree_in, degree_out) >= 0 and max(edges) < 1 << 40):
        raise CaseError(f"graph.degree_in, degree_out: must be 0 or more, got {degree_in!r}, {degree_out!r}")
    phases = [
        ("inside", edges[0], lambda: _draw(n, count, seed, own=True)),
        ("outside", edges[1], lambda: _draw(n, count, seed, own=False)),
    ]
    path = f"sbm(n={n}, communities={count}, inside={degree_in}, outside={degree_out}, seed={seed})"
    return drawn_edges(name or f"sbm-{n}-{count}-{seed}", path, n, "sbm", seed, phases)


def _draw(n: int, count: int, seed: int, own: bool) -> Draw:
    """Pairs of a node and another of its own community, or of one of the others."""
    label = communities(seed, n, count)
    members = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[members], np.arange(count + 1))

    def draw(size: int, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        u = draws.integers(0, n, size)
        other = label[u] if own else (label[u] + draws.integers(1, count, size)) % count
        v = members[draws.integers(starts[other], starts[other + 1])]
        return u, v

    return draw
