"""What training R-GCN will take: memory of a rank, from the triples themselves (--dry-run, and the log).

What relations use of the nodes is in no header, so a dry run reads the triples and labels.
"""

from app.config import Case, RgcnCase
from app.gnn.rgcn_features import Features
from app.gnn.rgcn_saved import load_rgcn
from app.gnn.rgcn_training import choose_placement
from app.graphs.relational import RelationalGraph, nodes_by_layer, relational_graph
from app.graphs.triples import NodeLabels
from app.model import memory
from app.model.defaults import DEFAULTS
from app.model.rgcn_memory import peak
from app.tasks.rgcn_inputs import open_features, read_case_triples


def relational_plan(case: Case, ranks: int) -> tuple[list[str], int]:
    """What was read, and the memory of a rank, as lines of text; and the bytes of the rank that takes most.

    Raises CaseError
    """
    triples, labels = read_case_triples(case)
    lines = [f"{triples.name}: {len(triples)} triples, {triples.nodes} nodes, {triples.relations} relations"]
    if labels is None or case.rgcn.goal == "links":
        return [*lines, 'the memory of rgcn.goal = "links" is not estimated'], 0
    saved = load_rgcn(case.rgcn.weights) if case.rgcn.weights else None
    rgcn = saved.architecture_of(case.rgcn) if saved else case.rgcn
    graph = relational_graph(triples, rgcn.inverse, rgcn.min_edges)
    inputs = open_features(case, triples)
    fast_bytes = round(case.memory.fast_mb * 1e6)
    said, held = memory_held(rgcn, ranks, len(triples), graph, labels, inputs, fast_bytes)
    return [*lines, f"{said}: {memory.words(held)}"], memory.total(held)


def memory_held(
    case: RgcnCase, ranks: int, triples: int, graph: RelationalGraph, labels: NodeLabels,
    inputs: Features | None, fast_bytes: int,
) -> tuple[str, dict[str, int]]:  # fmt: skip
    """How much the rank takes that takes most, in words, and bytes by term; triples: how many were read."""
    placement = choose_placement(ranks, graph, labels, case, fast_bytes, inputs)
    nodes = nodes_by_layer(graph, labels.nodes, case.layers, case.prune)
    widths = [case.hidden] * (case.layers - 1) + [labels.classes]
    features = inputs.width if inputs else 0
    held = peak(triples, graph, nodes, widths, case, placement, ranks, features, DEFAULTS.base_bytes)
    parts = f" in {placement.turns} parts" if placement.turns > 1 else ""
    return f"{memory.size(memory.total(held))} a rank on {ranks} rank{'s' * (ranks > 1)}{parts}", held
