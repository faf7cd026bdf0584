"""Rules of what networks learn: what whole graphs are, links, vectors of nodes, what edges are."""

from collections.abc import Iterator

from app.case.config import Case
from app.case.embed import EmbedCase
from app.case.gnn import EDGE_READERS, GnnCase
from app.case.links import LinksCase
from app.case.rules.graphs import LIKE_CLASSIFY
from app.case.rules.mistake import Mistake, changed, unread_of_graphs
from app.case.rules.networks import OF_RANKINGS
from app.case.rules.studies import own_folds
from app.text import show

OF_EDGES = ("tune", "folds")  # studies that are of edges and of links, too


def sets_of_graphs(case: Case) -> Iterator[Mistake]:
    """What networks that learn what whole graphs are leave of [graph] and of studies."""
    gnn, graph, kind = case.gnn, case.graph, case.study.kind
    if gnn.level != "graph" or case.run.task not in ("classify", "study"):
        return
    if case.run.task == "study" and kind not in LIKE_CLASSIFY:
        right = '"node", or study.kind = "models", "depth", "folds" or "tune", would be right'
        yield ("gnn", "level"), f'study.kind = "{kind}" is of one graph; {right}'
    if graph.order != "natural":
        right = '"natural" would be right for sets of graphs, each of whose nodes follow each other'
        yield ("graph", "order"), f"{right}, got {show(graph.order)}"
    if graph.complement:
        yield ("graph", "complement"), "must be false for sets of graphs, got true"
    if graph.generator and graph.path:
        yield (
            ("graph", "generator"),
            "is given beside graph.path; one of them would be right for sets of graphs",
        )


def links(case: Case) -> Iterator[Mistake]:
    """What networks that predict edges leave of other tables, and [links] where there are none."""
    gnn, graph, task = case.gnn, case.graph, case.run.task
    if gnn.level != "link" or task not in ("classify", "study"):
        wrong = next(changed(case.links, LinksCase.__struct_fields__), "")
        if wrong and task == "classify":
            yield ("links", wrong), 'is read by gnn.level = "link" alone; leave it out'
        return
    if task == "study":
        yield from _study_of_links(case)
    for key in changed(gnn, ("goal", "class_weights", "baselines")):
        yield ("gnn", key), 'is of labels, which gnn.level = "link" does not read; leave it out'
    if gnn.watch not in ("auto", "auc", "ap", *OF_RANKINGS):
        yield ("gnn", "watch"), f"{gnn.watch} is no score of links; auto, auc or ap would be right"
    if gnn.watch in OF_RANKINGS and not case.links.rank_each:
        yield ("links", "rank_each"), f"must be at least 1 for gnn.watch = {gnn.watch}, got 0"
    if case.links.propose_for and not case.links.propose_each:
        yield ("links", "propose_for"), "is read where links.propose_each is at least 1; leave it out"
    if case.links.loss == "bpr" and case.links.negatives % 1:
        yield ("links", "negatives"), f"must be whole for links.loss = bpr, got {case.links.negatives}"
    if case.links.sides and case.links.between != "sides":
        yield ("links", "sides"), 'is read by links.between = "sides" alone; leave it out'
    for key in ("labels", "splits"):
        if getattr(graph, key):
            yield ("graph", key), 'is not read by gnn.level = "link", which learns the edges; leave it out'
    if graph.neighbours != "both":
        yield (
            ("graph", "neighbours"),
            f'must be "both" for links of either direction, got "{graph.neighbours}"',
        )
    if case.output.probabilities:
        yield ("output", "probabilities"), "is of classes; predictions of links tell how likely each is"
    if case.links.held_out + case.links.validation >= 1:
        yield ("links", "held_out"), "leaves no edge to learn from beside links.validation"


def _study_of_links(case: Case) -> Iterator[Mistake]:
    """What studies of links are not of, and keys of [links] that they do not read."""
    kind, links, usual = case.study.kind, case.links, LinksCase()
    if kind not in OF_EDGES:
        yield _no_study_of("links", kind)
        return
    for key in changed(links, ("pairs", "propose", "propose_each")):
        right = f"{show(getattr(usual, key))} would be right"
        yield ("links", key), f'is read by run.task = "classify" alone; {right}'
    if kind == "tune" and links.rank_each and case.gnn.watch not in OF_RANKINGS:
        right = 'is read by study.kind = "tune" where gnn.watch is recall, precision or ndcg; leave it out'
        yield ("links", "rank_each"), right
    held_out = ("held_out", "validation", "val_edges", "test_edges")
    for key in changed(links, held_out if kind == "folds" else ()):
        right = 'is not read by study.kind = "folds", which holds each edge out once; leave it out'
        yield ("links", key), right


def _no_study_of(what: str, kind: str) -> Mistake:
    """A study that is not of edges, or links, and those that are."""
    right = " or ".join(show(each) for each in OF_EDGES)
    return ("gnn", "level"), f"study.kind = {show(kind)} is not of {what}; {right} would be right"


def embeds(case: Case) -> Iterator[Mistake]:
    """What networks that learn vectors without labels leave of other tables, and [embed] where there are
    none."""
    gnn, embed, asked, task = case.gnn, case.embed, case.output, case.run.task
    if gnn.level != "embed" or task not in ("classify", "study") or gnn.model == "rgcn":
        wrong = next(changed(embed, EmbedCase.__struct_fields__), "")
        if wrong and task in ("classify", "study"):
            yield ("embed", wrong), 'is read by gnn.level = "embed" alone; leave it out'
        return
    if task == "study":
        yield ("gnn", "level"), 'no study is of vectors; run.task = "classify" would be right for "embed"'
        return
    for key in changed(gnn, ("goal", "class_weights")):
        yield ("gnn", key), 'is of labels, which gnn.level = "embed" does not learn; leave it out'
    if gnn.watch != "auto":
        right = "auto would be right for vectors, which go by the training loss"
        yield ("gnn", "watch"), f"{right}, got {gnn.watch}"
    if gnn.first_product in ("cached", "mg_gcn") and embed.edge_drop:
        found = f"{gnn.first_product} keeps a product that embed.edge_drop changes in every epoch"
        yield ("gnn", "first_product"), f"{found}; embed.edge_drop = 0 or first_product = auto would be right"
    readers = [kind for kind in _kinds_of_layers(gnn) if kind in EDGE_READERS]
    if embed.edge_drop and gnn.epochs and readers:
        yield ("embed", "edge_drop"), f"{readers[0]} reads the features of all edges; 0 would be right"
    if asked.embeddings:
        yield ("output", "embeddings"), 'gnn.level = "embed" writes the vectors in any case; leave it out'
    if asked.importance:
        yield ("output", "importance"), "is of scores, and vectors are none; leave it out"
    if asked.probabilities and not embed.probe_epochs:
        yield ("output", "probabilities"), "is of the probe: embed.probe_epochs of at least 1 would be right"


def _kinds_of_layers(gnn: GnnCase) -> list[str]:
    """The kinds that gnn.layers, or gnn.model, names."""
    return [text.split()[0] for text in gnn.layers if text.split()] or [gnn.model]


def edges(case: Case) -> Iterator[Mistake]:
    """What networks that say what edges are leave of other tables, and their keys where there are none."""
    gnn, graph, task = case.gnn, case.graph, case.run.task
    kind = case.study.kind if task == "study" else ""
    learned = gnn.level == "edge" and (task == "classify" or kind in OF_EDGES)
    right = 'is read by gnn.level = "edge" of run.task = "classify", of [graph]; leave it out'
    for keys in unread_of_graphs(case, ("edge_labels", "edge_splits", "edge_data_by"), read=learned):
        yield keys, right
    if gnn.level != "edge" or task not in ("classify", "study"):
        return
    if kind and kind not in OF_EDGES:
        yield _no_study_of("edges", kind)
    if kind == "folds" and graph.edge_splits not in ("", "random"):
        yield ("graph", "edge_splits"), f"{own_folds()}, got {show(graph.edge_splits)}"
    for key in ("labels", "splits"):
        if getattr(graph, key):
            right = f"graph.edge_{key} would be right"
            yield ("graph", key), f'is of nodes, and gnn.level = "edge" learns what edges are; {right}'
    if graph.edge_data_by == "ends" and not (graph.edge_labels or graph.edge_splits not in ("", "random")):
        yield ("graph", "edge_data_by"), "is read with graph.edge_labels or graph.edge_splits; leave it out"
    if graph.neighbours != "both":
        yield (
            ("graph", "neighbours"),
            f'must be "both" for edges, which have no direction here, got "{graph.neighbours}"',
        )
    if case.parallel.exchange == "staged":
        yield ("parallel", "exchange"), '"auto", "halo" or "gather" would be right for gnn.level = "edge"'
