"""python -m app convert: a graph file to another format."""

import os
from dataclasses import dataclass
from typing import Any

from app.errors import CaseError
from app.files import whole_file
from app.text import printable, shorten

HELP = """\
usage: python -m app convert IN OUT [--from FORMAT] [--to FORMAT] [--ids FILE] [--names]
                             [--overwrite]

Reads a graph in any format that a case can name, checks it, and writes it in another one.
Self loops are dropped, repeated edges and the two directions of an edge become one, the
largest weight is kept; it says how many. What a format cannot hold is named, too.

  IN           a graph file, perhaps packed (.gz, .bz2, .xz), or networkx:NAME
  OUT          the file to write; its suffix says the format, and .gz, .bz2 or .xz after it
               packs it:
                 .txt .tsv .edges .el   edge list            .csv         source,target[,weight]
                 .mtx                   Matrix Market        .graph .metis     METIS
                 .col .gr .clq .mis     DIMACS               .gset        Gset
                 .npz                   NumPy arrays         .tsp         TSPLIB
  --from, --to FORMAT   where content or suffix do not tell it: edges, csv, matrix_market,
               metis, dimacs, gset, npz, tsplib (to read also: solomon, stp, ogb, ppi,
               graphsage, networkx)
  --ids FILE   also write the ids that IN gave its nodes, one a line, in the order of OUT's nodes
  --names      IN is an edge list whose nodes have names, as graph.ids = "names" reads it
  --overwrite  replace OUT where it exists

  python -m app convert facebook.txt.gz facebook.mtx
  python -m app convert networkx:karate_club karate.graph
"""
PACKINGS = (".gz", ".bz2", ".xz")


@dataclass
class Options:
    """What the arguments say."""

    files: list[str]
    values: dict[str, str]
    flags: set[str]


def sort_arguments(arguments: list[str], valued: tuple[str, ...], flags: tuple[str, ...]) -> Options:
    """Files, options with a value, and flags; raises CaseError for what is unknown."""
    found = Options([], {}, set())
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.partition("=")
        if name in valued:
            found.values[name] = value if equals else next(rest, "")
            if not found.values[name]:
                raise CaseError(f"option {name}: needs a value")
        elif each in flags:
            found.flags.add(each)
        elif each.startswith("-") and each != "-":
            raise CaseError(
                f"unknown option {shorten(printable(each))}: there are {', '.join((*valued, *flags))}"
            )
        else:
            found.files.append(each)
    return found


def refuse_existing(path: str, overwrite: bool) -> None:
    """Refuse to replace a file unasked."""
    if os.path.isfile(path) and not overwrite:
        raise CaseError(
            f"{shorten(printable(path), 200)}: is there already; name another file, or add --overwrite"
        )


def packing_of(path: str) -> str:
    """.gz, .bz2, .xz or nothing, at the end of a path."""
    return next((packing for packing in PACKINGS if path.lower().endswith(packing)), "")


def convert(arguments: list[str]) -> str:
    """Read, check and write a graph; returns the lines that say what was written."""
    options = sort_arguments(arguments, ("--from", "--to", "--ids"), ("--names", "--overwrite"))
    if len(options.files) != 2:
        raise CaseError("convert: IN and OUT are needed; --help says more")
    from app.graphs.covering import FAMILIES
    from app.graphs.formats.readers import open_edges
    from app.graphs.formats.writers import format_of, losses, write_graph
    from app.graphs.whole import whole_graph

    source, out = options.files
    format = format_of(out, options.values.get("--to", "auto"))
    beside = options.values.get("--ids", "")
    _refuse_places(out, beside, format, "--overwrite" in options.flags)
    named = options.values.get("--from", "auto")
    ids = "names" if "--names" in options.flags else "numbers"
    stream = open_edges(source, "edges" if named == "csv" else named, ids=ids)
    if stream.format == "qubo":
        right = "a graph would be right (inputs/qubo.toml finds its least value)"
        raise CaseError(f"convert: {printable(source)} holds a quadratic function; {right}")
    if stream.sets is not None or stream.format in FAMILIES:
        right = "a graph would be right (inputs/set_cover.toml finds set covers)"
        raise CaseError(f"convert: {printable(source)} holds a family of sets; {right}")
    graph, merged = whole_graph(stream)
    with whole_file(out) as file:
        write_graph(file, graph, format, packing_of(out), stream.metric, deliveries=stream.deliveries)
    lines = [f"{printable(source)}: {stream.format}, {merged.lines} edge lines: {merged.loops} self loops, "
             f"{merged.repeats} of an edge that was there"]  # fmt: skip
    if merged.loops and graph.weights is not None:
        lines.append(
            "warning: loops are dropped with their weights; as linear terms of qubo or ising they count"
        )
    lines += [
        f"warning: {each}"
        for each in (*stream.warnings, *losses(graph, stream.metric, format, stream.deliveries))
    ]
    if beside:
        _write_ids(beside, graph)
    return "\n".join([*lines, f"{printable(out)}: {format}, {graph.n} nodes, {graph.edges} edges"])


def _refuse_places(out: str, beside: str, format: str, overwrite: bool) -> None:
    """Refuse files that cannot be, or must not be, written; beside: that of the ids, or ""."""
    if format == "npz" and packing_of(out):
        raise CaseError(
            f"{printable(out)}: an .npz is packed already; a name without {packing_of(out)} would be right"
        )
    if beside and os.path.abspath(beside) == os.path.abspath(out):
        raise CaseError(f"convert: --ids {printable(beside)} is OUT; another file would be right")
    if beside and not os.path.isdir(os.path.dirname(os.path.abspath(beside))):
        raise CaseError(f"convert: --ids {printable(beside)}: no such folder")
    for path in (out, beside):
        refuse_existing(path, overwrite)


def _write_ids(path: str, graph: Any) -> None:
    """The ids of a graph's nodes, one per line."""
    import numpy as np  # where it is needed

    from app.graphs.ids import plain_ids

    with whole_file(path) as file:
        for at in range(0, graph.n, 1 << 16):
            ids = plain_ids(graph.node_ids(np.arange(at, min(at + (1 << 16), graph.n))))
            file.write("".join(f"{each}\n" for each in ids).encode())
