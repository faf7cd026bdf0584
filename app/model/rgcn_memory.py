"""Memory of a rank in training R-GCN, term by term; h columns, B bases, f, m columns of other layers.

Of links: T triples in all, m of them to learn from, w wrong ones for each, d numbers of a row, n nodes.

before training
    triples          12 for each triple; 12 for each edge, twice: of all layers, and of the first one's rows
    products         columns, factors and offsets of rows: first layer 12 for each edge, 8 for each pair;
                     others 16 for each edge, 12 for each pair
    rows by bases    20 for each source row of an owned node, and their sums by block
in training
    weights          free: 4 h for each source row of the first layer; bases: 4 B h for each owned node that
                     is a source; 4 h for each owned node; 4 f m for each weight matrix of other layers
    optimiser        Adam: twice the weights, where there are epochs
    pairs            the most of: forward in the first layer, 4 h for each pair, with bases and for each
                     source row of the largest part; its gradient, 4 h for each source row of the largest
                     part, with bases twice and for those of owned nodes; other layers, 4 f for each pair of
                     them all, and of one at a time 4 (f + m) for each pair, 4 f for each source row
    gradients        of the matrices of other layers, 4 f m for each; with bases one piece (CHUNK_ELEMENTS)
    nodes            activations and gradients: 4 times the layer's width for each owned node of each layer
    exchange         on several ranks, rows on their way: those of the pairs and source rows of one layer
    wrong triples    links: 32 m w while they are drawn, or 16 m w + 16 t and 40 for each of a rank's share of
                     all t = m (w + 1) right and wrong ones
    rows of nodes    links: 4 n d of all nodes, and the most of the operands that scores of triples read (not
                     by softmax over all nodes), of ComplEx 16 n d, and of what ranking takes: 4 n c, of
                     distances twice, and 8 n for each of the triples that are ranked at a time
    queries          by softmax, in place of wrong triples: 40 for each query and 40 m of their answers; 12 c
                     for each, of gradients, c = d or, of distances, d + 2; 8 for each score of a block; 4 C c
                     for each level of the tree of blocks and three more, C = n or the candidates; with these
                     84 m of the scores of right answers, 12 c more for each query, whose gradients are led
                     back beside the operands, and 8 C c for each group of blocks
    pairs asked      with rgcn.ask_relations, the same of pairs of nodes for queries, of relations for nodes
    known triples    links: 24 T, and KNOWN more for each while triples are ranked
    best             of links, or with keep = "best": weights once more

Setting up takes 96 for each edge of the first layer for a while (keys of 8 bytes, sorted): where that is
more than training, it is what counts. Weights and optimisers of the slow tier are counted like others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.case.config import Case
from app.case.rgcn import RgcnCase, bases_of
from app.comm.tree import top_level
from app.gnn.rgcn.ranks import RANKED_AT_ONCE
from app.gnn.rgcn.scorers import SCORERS, choices_columns, ends_columns
from app.gnn.rgcn.softmax import Queries, groups_of_blocks, queries_at_once, scored_nodes
from app.gnn.rgcn.weights import CHUNK_ELEMENTS
from app.graphs.formats.source import Limits, graph_suffix
from app.graphs.keys import sorted_set
from app.graphs.triples.data import stated_triples
from app.graphs.triples.relational import RelationalGraph
from app.model.counts import mean_nodes
from app.model.defaults import DEFAULTS
from app.model.memory import Need
from app.partition.relations import Placement

READ, SORTED, SORTED_BOTH_WAYS = 12, 24, 100  # bytes for each triple: columns; keys, with inverse relations
SETTING_UP = 96  # bytes for each edge of the first layer: LayerEdges, and sorted keys of one product
KNOWN = 96  # bytes for each triple while the sorted ends of all are made (gnn/rgcn/ranks.py: Known)
Counts = np.ndarray  # [ranks] int64


@dataclass(frozen=True)
class LayerCounts:
    """What each rank has of one layer.

    edges, pairs, sources   held, on average of both directions; sources by part: [turns, ranks]
    owned_sources           source rows of owned nodes      source_nodes   owned nodes that are a source
    nodes                   rows that it makes
    """

    edges: Counts
    pairs: Counts
    sources: Counts
    owned_sources: Counts
    source_nodes: Counts
    nodes: Counts


def count_layer(graph: RelationalGraph, placement: Placement, outputs: np.ndarray, ranks: int) -> LayerCounts:
    """Counts of the layer that makes rows `outputs`, on every rank of a placement."""
    used, R = graph.of_targets(outputs), graph.relations
    pairs = sorted_set(used.target.astype(np.int64) * R + used.relation)
    rows = sorted_set(used.source.astype(np.int64) * R + used.relation)
    relation, node = rows % R, rows // R

    def by_rank(at: np.ndarray) -> Counts:
        return np.bincount(at, minlength=ranks)

    into = by_rank(placement.holder(used.relation, used.target))
    out_of = by_rank(placement.holder(used.relation, used.source))
    turn = placement.turn_of[relation] * ranks + placement.holder(relation, node)
    return LayerCounts(
        edges=np.maximum(into, out_of),
        pairs=by_rank(placement.holder(pairs % R, pairs // R)),
        sources=np.bincount(turn, minlength=placement.turns * ranks).reshape(placement.turns, ranks),
        owned_sources=by_rank(placement.owner(node)),
        source_nodes=by_rank(placement.owner(sorted_set(node))),
        nodes=by_rank(placement.owner(outputs)),
    )


def by_rank(
    triples: int, graph: RelationalGraph, nodes: list[np.ndarray], widths: list[int], case: RgcnCase,
    placement: Placement, ranks: int, features: int = 0,
) -> dict[str, Counts]:  # fmt: skip
    """Bytes of every rank, by what they are for; without what setting up takes.

    triples    read, of which `graph` has the edges
    nodes      by layer, as nodes_by_layer     widths   of the layers' outputs
    features   columns of the given features; 0: one-hot
    """
    counts = [count_layer(graph, placement, made, ranks) for made in nodes[1:]]
    inputs = np.bincount(placement.owner(nodes[0]), minlength=ranks)
    edges = 0 if features else len(graph.of_targets(nodes[1]))
    shapes = list(zip([features, *widths], widths, counts))[0 if features else 1 :]
    layers = [_other(f, m, layer, case, placement, graph.relations) for f, m, layer in shapes]
    layers += [] if features else [_first(widths[0], counts[0], case)]
    terms = {
        "triples": np.full(ranks, 12 * (triples + len(graph) + edges)),
        "features": 4 * features * inputs,
        "nodes": sum(16 * width * layer.nodes for width, layer in zip(widths, counts)),
    }
    for name in ("products", "rows by bases", "weights", "gradients"):
        terms[name] = sum(layer.get(name, 0) for layer in layers) + np.zeros(ranks, dtype=np.int64)
    kept = sum((layer.get("kept", 0) for layer in layers), np.zeros(ranks, dtype=np.int64))
    terms["pairs"] = np.maximum.reduce([(kept if "kept" in each else 0) + each["pairs"] for each in layers])
    if case.keep == "best":
        terms["best"] = terms["weights"]
    terms["optimiser"] = (2 if case.optimiser == "adam" and case.epochs else 0) * terms["weights"]
    sent = [4 * max(widths) * (each.pairs + each.owned_sources) for each in counts]
    terms["exchange"] = (ranks > 1) * np.maximum.reduce(sent)
    return terms


def of_links(
    terms: dict[str, Counts], nodes: int, learned: int, triples: int, case: RgcnCase, queries: Queries | None,
    pairs: Queries | None = None, relations: int = 0,
) -> dict[str, Counts]:  # fmt: skip
    """The terms of `by_rank` with those of learning links: `learned` of so many triples.

    queries   that softmax asks; None: triples are learned beside wrong ones
    pairs     whose relations are asked among so many `relations`; None: none are
    """
    ranks, d, scorer = len(terms["triples"]), case.dimension, SCORERS[case.scorer]
    all_of, scored = np.ones(ranks, dtype=np.int64), scored_nodes(case, nodes)
    if queries is None:
        beside = "wrong triples", _of_wrong(learned, case.negatives, ranks)
    else:
        beside = "queries", _of_queries(queries, learned, nodes, scored, ends_columns(scorer, d))
    rows, columns = scorer.shape(nodes, d)
    made = (rows, columns) != (nodes, d) and (queries is None or scored < nodes)
    operands = rows * columns if made else 0
    ranking = nodes * ((1 + scorer.distance) * ends_columns(scorer, d) + 2 * RANKED_AT_ONCE)
    if pairs is not None:
        columns = choices_columns(scorer, d)
        terms = terms | {"pairs asked": _of_queries(pairs, learned, relations, relations, columns) * all_of}
    return terms | {
        beside[0]: beside[1] * all_of,
        "rows of nodes": 4 * (nodes * d + max(ranking, operands)) * all_of,
        "known triples": (24 + KNOWN) * triples * all_of,
        "best": terms["weights"],
    }


def _of_wrong(learned: int, negatives: int, ranks: int) -> int:
    """Bytes of drawing wrong triples for so many right ones, or of scoring both."""
    wrong = learned * negatives
    every = learned + wrong
    return max(32 * wrong, 16 * wrong + 16 * every + 40 * every // ranks)


def _of_queries(queries: Queries, learned: int, nodes: int, scored: int, c: int) -> int:
    """Bytes of the queries that softmax asks, of a block of scores and of gradients.

    scored   nodes that each is scored with
    """
    blocks = len(queries.blocks) - 1
    total = (40 + 12 * c) * len(queries) + 40 * learned + 8 * queries_at_once(scored) * scored
    total += 4 * scored * c * (top_level(blocks) + 3)
    if scored == nodes:
        return total
    groups = len(groups_of_blocks(blocks, nodes, scored)) - 1
    return total + 84 * learned + 12 * c * len(queries) + 8 * scored * c * groups


def heaviest(terms: dict[str, Counts], setting_up: int = 0, base: int = 0) -> dict[str, int]:
    """Bytes of the rank that takes most, by what they are for.

    setting_up   bytes of making the first layer, beside the triples; base: before anything is read
    """
    rank = int(np.argmax(sum(terms.values())))
    found = {"base": base, **{name: int(each[rank]) for name, each in terms.items() if each[rank]}}
    if found["triples"] + setting_up > sum(found.values()) - base:
        return {"base": base, "triples": found["triples"], "setting up": setting_up}
    return found


def setting_up(graph: RelationalGraph, nodes: list[np.ndarray]) -> int:
    """Bytes that making the first layer takes for a while."""
    return SETTING_UP * len(graph.of_targets(nodes[1]))


def _first(h: int, layer: LayerCounts, case: RgcnCase) -> dict[str, Counts]:
    """Of a layer of h columns with one-hot inputs."""
    largest = layer.sources.max(axis=0)
    if not bases_of(case):
        sources, pairs = layer.sources.sum(axis=0), np.maximum(layer.pairs, largest)
        return {
            "products": 12 * layer.edges + 8 * layer.pairs,
            "weights": 4 * h * layer.nodes + 4 * (h // max(case.blocks, 1)) * sources,
            "pairs": 4 * h * (layer.pairs + largest if case.blocks else pairs),
        }
    return {
        "products": 12 * layer.edges + 8 * layer.pairs,
        "rows by bases": 20 * layer.owned_sources,
        "weights": 4 * h * (layer.nodes + case.bases * layer.source_nodes),
        "gradients": np.full(len(largest), 4 * CHUNK_ELEMENTS),
        "pairs": 4 * h * np.maximum(layer.pairs + largest, layer.owned_sources + 2 * largest),
    }


def _other(
    f: int, m: int, layer: LayerCounts, case: RgcnCase, placement: Placement, relations: int
) -> dict[str, Counts]:
    """Of a layer [n, f] -> [n, m] with dense inputs."""
    ranks, bases, size = len(layer.edges), bases_of(case), 4 * f * m // max(case.blocks, 1)
    own = np.bincount(placement.group_of, minlength=placement.groups)[np.arange(ranks) % placement.groups]
    return {
        "products": 16 * layer.edges + 12 * layer.pairs,
        "weights": 4 * f * m + size * (bases + 0 * own if bases else own),
        "gradients": 4 * f * m + size * (own + (relations + bases if bases else own)),
        "kept": 4 * f * layer.pairs,
        "pairs": 4 * (f + m) * layer.pairs + 4 * f * layer.sources.sum(axis=0),
    }


def needs_of_triples(case: Case) -> Iterator[Need]:
    """Of reading triples and sorting them by keys: what a network on them takes is known after that."""
    triples = _stated_triples_of(case)
    if not triples:
        return
    sorting = SORTED_BOTH_WAYS if case.rgcn.inverse or case.rgcn.goal == "links" else SORTED
    held = {"base": DEFAULTS.base_bytes, "triples": READ * triples, "sorting": SORTED * triples}
    yield Need(case.run.name, held, beside=(sorting - SORTED) * triples)


def _stated_triples_of(case: Case) -> int:
    """Triples of a knowledge graph, as far as they are known before they are read or drawn; else 0."""
    table = case.graph
    if table.generator:
        return table.edges or int(mean_nodes(table) * table.d)
    path = table.path[0] if len(table.path) == 1 else ""
    if graph_suffix(path) != ".npz":
        return 0
    return stated_triples(path, Limits(int(case.memory.max_decompressed_gb * 1e9)))
