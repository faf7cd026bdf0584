"""Explanations of the scores of relational networks that a case names (output.explain), in its words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.explain.explanations import KEY, Explanations
from app.gnn.explain.relational import LinkGoal, Node, Triple, Weights, Words, explain_relational
from app.gnn.goals import OneClass
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.grid import widths_of
from app.gnn.rgcn.links import LinkFit
from app.gnn.rgcn.scorers import SCORERS, split_relations
from app.gnn.rgcn.training import RelationalFit
from app.graphs.triples.data import NodeLabels, Triples
from app.graphs.triples.relational import RelationalGraph
from app.tasks.context import Context
from app.tasks.levels.explained import tell
from app.text import show

MB = 1e6


@dataclass(frozen=True)
class Called:
    """What nodes and relations are called, in the order of their numbers; None: by these."""

    nodes: list[Any] | None = None
    relations: list[Any] | None = None

    @classmethod
    def of(cls, triples: Triples) -> "Called":
        """As a file has them."""
        return cls(triples.node_names or None, triples.relation_names or None)

    def node(self, number: int) -> Any:
        """A node."""
        return number if self.nodes is None else self.nodes[number]

    def relation(self, number: int) -> Any:
        """A relation."""
        return number if self.relations is None else self.relations[number]


def _numbers(names: list[Any] | None, count: int) -> dict[str, int]:
    """Numbers by names, as text; the first of equal ones."""
    found: dict[str, int] = {}
    for i, name in enumerate(range(count) if names is None else names):
        found.setdefault(str(name), i)
    return found


def _number(each: Any, known: dict[str, int], what: str) -> int:
    """The number of a name. Raises CaseError."""
    if isinstance(each, list) or str(each) not in known:
        raise CaseError(f"{KEY}: {show(each)} is no {what}; names of such would be right")
    return known[str(each)]


# ---- classes ---------------------------------------------------------------------------------------------


def check_nodes(context: Context, triples: Triples, labels: NodeLabels, called: Called) -> np.ndarray | None:
    """[k] the nodes that a case names, each once; None: it names none. Raises CaseError for nodes of whose
    class nothing is said."""
    asked = context.case.output.explain
    if isinstance(asked, int):
        return None
    known, of = _numbers(called.nodes, triples.nodes), set(labels.nodes.tolist())
    rows = [_number(each, known, "node of the knowledge graph") for each in asked]
    for each, row in zip(asked, rows):
        if row not in of:
            right = "one of a set, whose class is told, would be right"
            raise CaseError(f"{KEY}: {show(each)} is in no set; {right}")
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64)


def explain_classes(
    context: Context, graph: RelationalGraph, labels: NodeLabels, inputs: Features | None,
    fit: RelationalFit, rows: np.ndarray | None, called: Called,
) -> Explanations | None:  # fmt: skip
    """Explanations of nodes; None: nobody asked. Ranks: all call.

    rows   what `check_nodes` found     called   names, of relations those of the triples
    """
    case, group, net = context.case, context.group, fit.net
    if not case.output.explain:
        return None
    with context.log.phase("explain"), context.each_by_itself("explaining predictions"):
        rows = _least_certain(labels, fit, case.output.explain) if rows is None else rows
        scores = _scores_of(context, net, rows)
        widths, width = widths_of(fit.case, labels.classes), inputs.width if inputs else 0
        weights = Weights.of(group, net, fit.case, widths, width, _most(context))
        kept = np.flatnonzero(graph.kept)
        words = Words(
            called.node, lambda r: called.relation(int(kept[r])),
            lambda c: labels.class_names[c] if labels.class_names else c, inputs is not None, "node",
        )  # fmt: skip
        asked = [(rows[i : i + 1], Node(), scores[i], called.node(int(rows[i]))) for i in range(len(rows))]
        found = explain_relational(
            group, graph, weights, inputs, OneClass(), asked, words, _most(context), case.seed
        )
    tell(context, found, " ")
    return found


def _scores_of(context: Context, net: Any, rows: np.ndarray) -> np.ndarray:
    """[k, classes] float32, what the network says of nodes. Ranks: all call."""
    group, own = context.group, net.out.nodes
    Z = group.device.get(net.forward()[: len(own)])
    counts = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    nodes, scores = (group.gather_host(np.ascontiguousarray(each), counts) for each in (own, Z))
    return scores[np.searchsorted(nodes, rows)]


def _least_certain(labels: NodeLabels, fit: RelationalFit, count: int) -> np.ndarray:
    """[k] so many nodes of the test, without one of all, those that are predicted wrongly first, of these and
    of the others the least certain ones."""
    some, right = (labels.test_idx, labels.test_label) if len(labels.test_idx) else (labels.nodes, None)
    at = np.searchsorted(labels.nodes, some)
    top = np.sort(fit.probabilities[at].astype(np.float64), axis=1)
    certain = top[:, -1] - top[:, -2] if top.shape[1] > 1 else top[:, -1]
    wrong = np.zeros(len(some), bool) if right is None else (fit.predictions[at] != right) & (right >= 0)
    return some[np.lexsort((some, certain, ~wrong))[:count]].astype(np.int64)


# ---- links -----------------------------------------------------------------------------------------------


def check_asked_triples(context: Context, triples: Triples, called: Called) -> np.ndarray | None:
    """[k, 3] the triples that a case names, each once; None: it names none. Raises CaseError."""
    asked, case = context.case.output.explain, context.case.rgcn
    if asked and not case.layers:
        right = "layers, or to leave it out, would be right"
        raise CaseError(f"{KEY}: without a network (rgcn.layers = 0) no edge counts for anything; {right}")
    if isinstance(asked, int):
        return None
    nodes, relations = _numbers(called.nodes, triples.nodes), _numbers(called.relations, triples.relations)
    rows = []
    for each in asked:
        if not isinstance(each, list) or len(each) != 3:
            right = f"a subject, a relation and an object, as {KEY} = [[S, R, O], ...], would be right"
            raise CaseError(f"{KEY}: found {show(each)}; {right}")
        ends = [_number(end, nodes, "node of the knowledge graph") for end in (each[0], each[2])]
        rows.append((ends[0], _number(each[1], relations, "relation of the knowledge graph"), ends[1]))
    return np.array(list(dict.fromkeys(rows)), dtype=np.int64)


def explain_triples(
    context: Context, graph: RelationalGraph, case: Any, found: LinkFit, rows: np.ndarray | None,
    called: Called,
) -> Explanations | None:  # fmt: skip
    """Explanations of the scores of triples, of a count those of the worst ranks; None: nobody asked.

    case   [rgcn] of the network     rows   what `check_asked_triples` found     Ranks   all call
    """
    asked, group = context.case.output.explain, context.group
    if not asked:
        return None
    with context.log.phase("explain"), context.each_by_itself("explaining predictions"):
        if rows is None:
            rows = found.test[np.lexsort((*found.test.T[::-1], -found.ranks.sum(axis=1)))[:asked]]
        E, most = found.embeddings.astype(np.float64), _most(context)
        D, loops = split_relations(np, found.relations.astype(np.float64), E.shape[1])
        weights = Weights.of(group, found.net, case, widths_of(case, E.shape[1]), 0, most)
        words = Words(called.node, called.relation, lambda c: "score", False, "triple")
        wanted = []
        for s, r, o in rows.tolist():
            loop = float(loops[r]) if loops is not None and s == o else 0.0
            reader = Triple(SCORERS[case.scorer], D[r : r + 1], loop)
            name = called.node(s), called.relation(r), called.node(o)
            wanted.append((np.array([s, o]), reader, reader.scores(E[[s, o]]), name))
        given = LinkGoal(), wanted, words, most, context.case.seed
        told = explain_relational(group, graph, weights, None, *given)
    tell(context, told, " ")
    return told


def _most(context: Context) -> int:
    """Bytes that a field may take."""
    return int(context.case.memory.whole_graph_mb * MB)
