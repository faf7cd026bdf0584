"""python -m app generate: a random graph to a file."""

from typing import Any

from app.case.config import Case
from app.case.file import build_from
from app.case.graph import PLANTED
from app.commands.convert import packing_of, refuse_existing, sort_arguments
from app.errors import CaseError
from app.files import whole_file
from app.text import printable

HELP = """\
usage: python -m app generate FAMILY OUT nodes=N [seed=K] [KEY=VALUE ...] [--to FORMAT]

Draws a random graph and writes it. It depends on the arguments alone: with the same keys and
seed, run.py solves exactly this graph (graph.generator=FAMILY graph.nodes=N seed=K).

  FAMILY    er (p)                          each pair of nodes with probability p
            ba (d)                          preferential attachment of d edges
            rmat (edges, rmat_a, _b, _c)    recursive quarters of the matrix
            chung_lu (edges, exponent)      power-law expected degrees
            bter (edges, exponent, clustering, degrees_of ...)   power law with triangles
            torus (removed)                 a closed square grid, or a share of its edges
            small_world (d, p)              a ring of neighbours, some edges moved
            geometric (edges or d)          points in a square, joined where near
            sbm (random_classes, degree_in, degree_out)          planted communities
            bipartite (random_classes, elements, degree_in, degree_out)   such of two sides
            uniform_points                  points in a square; OUT as .tsp keeps all distances
            customers (depot_at, stops, window ...)   points with demands, and times; OUT as .vrp
  OUT       the file to write; its suffix says the format (python -m app convert --help)
  KEY=VALUE keys of [graph], as run.py --help lists them. random_classes=C and random_features=F
            give nodes classes, features and splits, which an .npz holds.
  --to FORMAT, --overwrite   as python -m app convert has them

  python -m app generate ba graph.mtx nodes=10000 d=4 seed=1
  python -m app generate sbm nodes.npz nodes=4000 random_classes=4 random_features=32 seed=1
"""

FAMILIES = (
    "er", "ba", "rmat", "rmat_natural", "chung_lu", "bter", "sbm", "bipartite", "torus", "small_world",
    "geometric", "uniform_points", "customers",
)  # fmt: skip

# Keys of [graph] that a generated file knows nothing of.
UNHEARD = (
    "complement",
    "order",
    "node_weights",
    "terminals",
    "prizes",
    "demands",
    "onto",
    "seeds",
    "similarity",
    "neighbours",
    "features",
    "labels",
    "splits",
    "node_data_by",
)


def generate(arguments: list[str]) -> str:
    """Draw and write a graph; returns the lines that say what was written."""
    options = sort_arguments(arguments, ("--to",), ("--overwrite",))
    family, out, settings = _sort(options.files)
    case = build_from([*settings, f'graph.generator="{family}"'])
    nodes = case.graph.nodes
    for key in UNHEARD:
        if getattr(case.graph, key) != getattr(type(case.graph)(), key):
            raise CaseError(f"generate: {key}: says what run.py makes of a graph; leave it out here")
    if case.graph.count != 1 or not isinstance(nodes, int):
        raise CaseError("generate: makes one graph; nodes=N, and no count, would be right")
    from app.graphs.formats.writers import format_of, losses, write_graph
    from app.graphs.whole import whole_graph  # NumPy is imported where it is needed

    format = format_of(out, options.values.get("--to", "auto"))
    refuse_existing(out, "--overwrite" in options.flags)
    stream = _stream(case, family, nodes)
    graph, merged = whole_graph(stream)
    planted = family in PLANTED  # whose edges follow from the classes
    data = case.graph.random_features or (case.graph.random_classes and not planted)
    if data and format != "npz":
        raise CaseError(f"generate: {format} holds no classes and features; OUT as .npz would be right")
    with whole_file(out) as file:
        more = _node_data(case, nodes) if format == "npz" else {}
        write_graph(file, graph, format, packing_of(out), stream.metric, more, stream.deliveries)
    said = [f"{stream.path}: {merged.loops} self loops and {merged.repeats} repeats dropped"]
    said += [f"warning: {each}" for each in losses(graph, stream.metric, format, stream.deliveries)]
    return "\n".join([*said, f"{printable(out)}: {format}, {graph.n} nodes, {graph.edges} edges"])


def _sort(files: list[str]) -> tuple[str, str, list[str]]:
    """Family, file, and the settings as keys of a case."""
    if len(files) < 2 or "=" in files[0]:
        raise CaseError("generate: FAMILY and OUT are needed; --help says more")
    family, out, *settings = files
    if family not in FAMILIES:
        raise CaseError(f"generate: unknown family {printable(family)}: there are {', '.join(FAMILIES)}")
    for each in settings:
        if "=" not in each:
            raise CaseError(
                f"generate: found {printable(each)}; KEY=VALUE, such as nodes=1000, would be right"
            )
    return family, out, [each if each.startswith("seed=") else f"graph.{each}" for each in settings]


def _stream(case: Case, family: str, nodes: int) -> Any:
    """The edges of the graph that the case names."""
    from app.graphs.formats.readers import open_edges
    from app.graphs.generators.drawn_weights import with_weights
    from app.graphs.generators.table import GENERATORS
    from app.graphs.whole import whole_graph
    from app.partition.generators import parameters_of, weights_of

    found = None
    if family == "bter" and case.graph.degrees_of:
        found = whole_graph(open_edges(case.graph.degrees_of))[0].degrees()
    drawn = GENERATORS[family](nodes, *parameters_of(case.graph, family, nodes, found), _seed(case))
    return with_weights(drawn, weights_of(case.graph), _seed(case))


def _seed(case: Case) -> int:
    return case.seed if case.graph.generator_seed < 0 else case.graph.generator_seed


def _node_data(case: Case, nodes: int) -> dict[str, Any]:
    """Classes, features and masks of all nodes, those of a run; nothing where the case names none."""
    import numpy as np

    from app.graphs.generators.random_nodes import random_features, random_labels, random_splits
    from app.graphs.nodes.data import SPLITS

    table, everyone, arrays = case.graph, np.arange(nodes), {}
    planted = table.generator in PLANTED
    labels = None
    if table.random_classes:
        labels = random_labels(_seed(case), nodes, table.random_classes, everyone, planted)
        flags = random_splits(_seed(case), everyone)
        arrays = {"labels": labels, **{f"{name}_mask": (flags & bit) > 0 for name, bit in SPLITS.items()}}
    if table.random_features:
        own = labels if planted else None
        arrays["features"] = random_features(
            _seed(case), everyone, table.random_features, own, table.random_classes, table.signal
        )
    return arrays
