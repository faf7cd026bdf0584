"""The generators of graphs by name, as graph.generator has it."""

from collections.abc import Callable
from functools import partial

from app.graphs.generators.bipartite import two_sided
from app.graphs.generators.bter import bter
from app.graphs.generators.chung_lu import chung_lu
from app.graphs.generators.customers import generate_customers
from app.graphs.generators.motifs import with_motif
from app.graphs.generators.near import geometric, small_world
from app.graphs.generators.random import barabasi_albert, erdos_renyi, random_arcs
from app.graphs.generators.rmat import rmat
from app.graphs.generators.sbm import planted
from app.graphs.generators.sets import random_sets
from app.graphs.generators.torus import torus
from app.graphs.points import generate_points
from app.graphs.stream import EdgeStream

# A generator takes the number of nodes, its parameters, a seed and a name.
GENERATORS: dict[str, Callable[..., EdgeStream]] = {
    "er": erdos_renyi,
    "arcs": random_arcs,
    "ba": barabasi_albert,
    "rmat": rmat,
    "rmat_natural": partial(rmat, permuted=False),
    "chung_lu": chung_lu,
    "bter": bter,
    "sbm": planted,
    "bipartite": two_sided,
    "torus": torus,
    "small_world": small_world,
    "geometric": geometric,
    "motifs": with_motif,
    "sets": random_sets,
    "uniform_points": generate_points,
    "customers": generate_customers,
}
