"""The graph that networks learn on, and what its files say of nodes and of features of edges."""

from dataclasses import replace

from msgspec import structs

from app.case.config import Case
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.edges import no_edge_features
from app.gnn.inputs import feature_room
from app.gnn.model import case_reads_edges, edge_reader
from app.gnn.saved import SavedModel, load_model
from app.graphs.formats.source import Limits
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.model.counts import classified_counts
from app.model.fits import refuse_needs
from app.model.memory import Need
from app.model.node_plan import need_of_layers
from app.partition.edge_data import load_edge_data
from app.partition.load import load_united
from app.partition.loaded import Loaded
from app.partition.nodes import load_node_data
from app.tasks.context import Context
from app.text import printable


def load(context: Context) -> tuple[Loaded, NodeData]:
    """The graph of the case and what its files say of the nodes. Ranks: all call."""
    case, group = context.case, context.group
    with context.log.phase("read"):
        loaded = load_united(group, case.graph, _without_cost_model(case))
        for warning in loaded.warnings:  # at once: node data may fail for what they tell
            context.log.info("warning: %s", warning)
        make_room = feature_room(TierBudget.of(case.memory), group.device)
        data = load_node_data(group, case.graph, loaded, case, make_room)
        data = with_edges(context, loaded, data)
    for warning in data.warnings:
        context.log.info("warning: %s", warning)
    return loaded, data


def with_edges(context: Context, loaded: Loaded, data: NodeData, model: SavedModel | None = None) -> NodeData:
    """The data with features of edges, where layers read them; else a warning says that there are some.

    model   the weights, where they are in memory
    Ranks   all call. Raises CaseError where none are there that layers read
    """
    case, group = context.case, context.group
    with raise_together(group, "reading the edge features"):
        saved = (model or load_model(case.gnn.weights)) if case.gnn.weights else None
        gnn = saved.case if saved else case.gnn
        reads, named = case_reads_edges(gnn), case.graph.edge_features
        if named and not reads and gnn.level != "edge":
            layers = f"the layers of {printable(case.gnn.weights)}" if saved else "the layers of [gnn]"
            right = "leave it out" if saved else 'leave it out, or gnn.model = "gine" would be right'
            raise CaseError(f"graph.edge_features: is not read by {layers}; {right}")
    if gnn.level != case.gnn.level:
        return data  # weights of another level, which are refused where they are taken over
    told = group.max_integer(int(loaded.stream is not None and loaded.stream.edge_features is not None))
    if gnn.level == "edge" and not reads:  # the head reads them where there are any
        reads = bool(named or (told and not (saved and saved.edges is None)))
        if not (reads or told):
            return data
    if not reads:
        if told and loaded.source == "memory" and gnn.level != "edge":
            raise CaseError("edge_features: no layer reads them; leave them out, or gine would be right")
        if told:
            layers = "layers of gine, edge_gat or edge_gatv2"
            reader = "weights that have learned on some" if gnn.level == "edge" else layers
            context.warn(f"{loaded.graph.name}: its edge features are not read; {reader} would")
        return data
    if loaded.complemented and (told or named):
        raise CaseError("graph.complement: the edges of a complement have no features; false would be right")
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    edges = load_edge_data(group, loaded, named, limits, case.graph.neighbours)
    if edges is None:
        key = "edge_features=" if loaded.source == "memory" else "graph.edge_features"
        raise CaseError(no_edge_features(loaded.graph.name, edge_reader(gnn) or gnn.model, key))
    return replace(data, edges=edges)


def refuse_read(context: Context, loaded: Loaded) -> None:
    """Refuse a graph of files that tell no counts before they are read where its training does not fit.

    Ranks   all call
    """
    case, group = context.case, context.group
    if not (case.gnn.epochs and case.graph.path and loaded.graph.n):
        return

    def needs() -> list[Need]:
        entries = 2 * loaded.graph.edges
        known = all(classified_counts(case))  # it was asked before
        return [] if known else [need_of_layers(case, loaded.graph.n, entries, group.size, group.device)]

    for warning in refuse_needs(group, case, needs)[1]:
        context.log.info("warning: %s", warning)


def _without_cost_model(case: Case) -> Case:
    """The case for loading: whether parallel.cost_model is of the case's layers is known after it."""
    parallel = structs.replace(case.parallel, cost_model="")
    return structs.replace(case, parallel=parallel)
