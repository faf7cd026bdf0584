"""Generated graphs: sets that share blocks and cuts, and graphs side by side as one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.graphs.covering import NEIGHBOURHOODS
from app.graphs.formats.source import Limits
from app.graphs.members import with_own_rows
from app.graphs.stream import EdgeStream
from app.graphs.union import unite
from app.partition.assemble import assemble, build
from app.partition.cost import CostModel
from app.partition.deal import halt_if_asked
from app.partition.generators import base_seed, drawn_of, generated, most_elements
from app.partition.loaded import Loaded
from app.partition.metric import share_deliveries, share_metric
from app.partition.migrate import move_rows
from app.partition.recut import read_cost_model, recut_all
from app.partition.rows import RowPartition, block_count, block_starts, cut_blocks
from app.partition.stands_for import graph_of
from app.partition.streams import load_stream, open_stream

# Every rank draws a part of the edges
BY_PARTS = ("rmat", "rmat_natural", "chung_lu", "bter", "sbm", "bipartite")
MADE_BY_ALL = 2048  # nodes of the largest graph of a generated set that every rank makes by itself


def generate_united(group: Group, table: GraphCase, case: Case) -> Loaded:
    """Generated graphs side by side, each with a row of its own. Ranks: all call."""
    source, (sizes, seeds) = None, drawn_of(table, case.seed, "instances")
    make = _maker(group, table, sizes, seeds, int(case.memory.max_decompressed_gb * 1e9))
    with raise_together(group, "generating graphs"):
        if group.rank == 0:
            united = unite(list(_opened(make, table.count)), f"{table.generator}-{table.count}")
            source = with_own_rows(replace(united, sizes=sizes, graph_names=()))
    item = replace(
        load_stream(group, source, table, case), source="generator", seed=base_seed(table, case.seed)
    )
    return recut_all(group, [item], read_cost_model(group, case))[0]


def _opened(make: Callable[[int], EdgeStream], count: int) -> Iterator[EdgeStream]:
    """The streams of `count` generated graphs. Raises Halted where this rank is asked to stop meanwhile."""
    for number in range(count):
        halt_if_asked()
        yield make(number)


def generate_set(
    group: Group,
    table: GraphCase,
    seed: int,
    purpose: str,
    limit: int = Limits.decompressed,
    numbers: list[int] | None = None,
    made_for: str = "",
    neighbours: str = "both",
) -> list[Loaded]:
    """Generated graphs that share row blocks and cuts, so that batches may mix them.

    limit     bytes of a packed file that degrees are taken from
    numbers   of the graphs to make, the same as in the whole set; None: all
    made_for  the problem that `stands_for` names: their edges are terms or sets; "": none
    neighbours  as of graph.neighbours
    Ranks     all call
    """
    numbers = list(range(table.count)) if numbers is None else numbers
    sizes, seeds = drawn_of(table, seed, purpose)
    make = _maker(group, table, sizes, seeds, limit)
    makers = [lambda i=i: graph_of(make(i), made_for) for i in numbers]
    largest = int(sizes.max()) * (2 if made_for == NEIGHBOURHOODS else 1) + bool(made_for)
    if table.generator == "sets":
        largest = int(sizes.max() + most_elements(table, int(sizes.max()))) + 1
    if largest <= MADE_BY_ALL and group.size > 1:
        made = make_blocks_alike(group, largest, makers, neighbours)
    else:
        parts = table.generator in BY_PARTS and not made_for
        made = share_blocks(group, largest, makers, parts, neighbours)
    return [replace(item, source="generator", seed=int(seeds[i])) for item, i in zip(made, numbers)]


def _maker(
    group: Group, table: GraphCase, sizes: np.ndarray, seeds: np.ndarray, limit: int
) -> Callable[[int], EdgeStream]:
    """What makes graph i of a table. Ranks: all call."""
    takes_file = table.generator == "bter" and table.degrees_of
    found = degrees_of_file(group, table.degrees_of, limit) if takes_file else None
    return lambda i: generated(table, i, int(sizes[i]), int(seeds[i]), found)


def degrees_of_file(group: Group, path: str, limit: int) -> np.ndarray:
    """[m] int64, the degrees of all nodes of a graph file, on all ranks. Ranks: all call."""
    source, parts = open_stream(group, GraphCase(), [path], limit)
    built = build(group, source, 0, None, "rows", parts)
    return group.gather_host(built.graph.degrees(), built.rows.row_counts())


def with_shared_blocks(
    group: Group,
    loaded: list[Loaded],
    model: CostModel | None = None,
    largest: int = 1,
    balance: str = "rows",
) -> list[Loaded]:
    """The graphs with one number of row blocks and one set of cuts, so that batches may mix them.

    model     balances the predicted time of all of them
    largest   nodes of the largest graph of a set of which these are a part
    balance   without a model, as parallel.partition: "rows" for equal blocks
    Ranks     all call
    """
    blocks = block_count(max([largest, *(item.graph.n for item in loaded)]))
    cuts = cut_blocks(np.ones(blocks, dtype=np.int64), group.size)
    out = []
    for item in loaded:
        rows = RowPartition(item.graph.n, block_starts(item.graph.n, blocks), cuts)
        graph = move_rows(group, item.graph, item.rows, rows)
        out.append(replace(item, graph=graph, rows=rows))
    return recut_all(group, out, model, balance)


def share_blocks(
    group: Group, largest: int, streams: list[Callable[[], Any]], parts: bool = False,
    neighbours: str = "both",
) -> list[Loaded]:  # fmt: skip
    """Assemble graphs of at most `largest` nodes with one number of blocks and one set of cuts.

    streams   makers of edge streams, called on rank 0 only; with parts on all ranks, each for its part
    Ranks     all call
    """
    blocks = block_count(largest)
    cuts = cut_blocks(np.ones(blocks, dtype=np.int64), group.size)
    out = []
    for make in streams:
        source: Any = None
        with raise_together(group, "generating a graph"):
            if parts or group.rank == 0:
                source = make()
        item = Loaded(*assemble(group, source, blocks=blocks, cuts=cuts, parts=parts, neighbours=neighbours))
        metric = None if source is None else source.metric
        deliveries = share_deliveries(group, None if source is None else source.deliveries)
        out.append(replace(item, metric=share_metric(group, metric), deliveries=deliveries))
    return out


def make_blocks_alike(
    group: Group, largest: int, streams: list[Callable[[], Any]], neighbours: str = "both"
) -> list[Loaded]:
    """The same of small graphs that every rank can make: each makes all of them, and keeps its rows and the
    whole. Dealing out hundreds of small graphs would take longer, as each takes some twenty messages.

    Ranks   all call
    """
    with raise_together(group, "generating graphs"):
        made = share_blocks(group.alone(), largest, streams, neighbours=neighbours)
    out = []
    for item in made:
        blocks = len(item.rows.starts) - 1
        rows = replace(item.rows, cuts=cut_blocks(np.ones(blocks, dtype=np.int64), group.size))
        graph = item.graph.held(*rows.range_of(group.rank))
        out.append(replace(item, graph=graph, rows=rows, made=(graph, item.graph)))
    return out
