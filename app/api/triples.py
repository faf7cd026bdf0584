"""The Python interface for knowledge graphs: relational networks on triples, without case files."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.given import (
    Begun,
    check_given,
    digest_of_arrays,
    digest_of_names,
    digests_of_table,
    setting,
)
from app.api.learning import Asked
from app.api.networks import LinkPrediction, RelationalClassification
from app.api.tune import Tuning, tuned_by
from app.case.config import Case
from app.case.file import merged
from app.comm.guard import check_same, digest, raise_together
from app.comm.share import share_arrays
from app.errors import CaseError, GraphError
from app.gnn.metrics import Scores, scores_among
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.saved import SavedRgcn
from app.gnn.rgcn.training import RelationalFit
from app.graphs.nodes.data import NodeTable
from app.graphs.nodes.memory import table_of_arrays
from app.graphs.triples.data import SET_KEYS, TEST, VALID, NodeLabels, Triples
from app.graphs.triples.memory import Classes, NamedTriples, as_texts, labels_of_arrays, triples_of_object
from app.tasks.context import Context, context_of_settings, reading_together
from app.tasks.links import learn_links
from app.tasks.relational_explained import Called
from app.tasks.rgcn import classify_relations, saved_of
from app.tasks.rgcn_inputs import open_features, read_case_triples
from app.tasks.studies.tuned import RelationalTuned
from app.threads import with_few_threads

SETS = ("train", "val", "test")


@with_few_threads
def classify_relational(
    triples: Any,
    features: Any = None,
    labels: Any = None,
    *,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    weights: Any = None,
    nodes: int | None = None,
    relations: int | None = None,
    relation: str = "relation",
    vary: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> RelationalClassification | Tuning:
    """Train a relational network (R-GCN) on nodes of a knowledge graph, full batch; or apply trained weights.

    triples    [m, 3] integers (subject, relation, object), numbered from 0; a list of rows (subject,
               relation, object) of any names, or a DataFrame of three columns; a NetworkX MultiDiGraph; or a
               file (docs/formats.md)
    features   [n, F] numbers or a SciPy sparse matrix, rows in the order of the nodes; None: one for every
               node of its own
    labels     [n] classes, -1 for none, or names of classes, None for none; also a mapping of nodes to
               classes or names; None: those of the file
    train, val, test   [n] bool, or nodes by name; node numbers where there are no names, or these are texts.
               A node is in one at most. val is what "rgcn.keep": "best" and "rgcn.patience" go by; test None:
               all labelled nodes that are in neither of the others. Nodes of the test need no label: their
               classes are predicted, too
    weights    a weights.npz, or what an earlier call returned: applied, or with "rgcn.epochs" of the settings
               trained further. Applied, they need no labels: without any the classes of the nodes of the
               test are asked, without a test those of all nodes. Weights of a graph without features are of
               its nodes, and of those whose classes were learned or asked, `nodes` of that call
    nodes, relations   how many there are, of numbers; None: one more than the largest
    relation   the edge attribute of a NetworkX graph that names the relation
    vary       settings to choose among by the accuracy on val, as for `classify`: {"rgcn.hidden": [16, 32]}
    settings   keys of a case, as {"rgcn.hidden": 16, "rgcn.epochs": 50, "seed": 1}
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Names are numbered in the order in which they occur, a triple's subject before its object; nodes of a
    NetworkX graph keep their order. The answer is that of the same triples in a file, bit for bit.
    Raises GraphError for what is no knowledge graph or no label of it, CaseError for wrong settings.
    Source     Schlichtkrull et al. 2018; on ranks as in Kibata et al. 2020
    """
    triples = os.fspath(triples) if isinstance(triples, os.PathLike) else triples
    begun, asked = Begun(weights, "rgcn", settings), Asked(None, vary, {}, of_folds=())
    context = _context(triples, "classes", begun, asked, comm, verbose)
    context, model = begun.put(context, SavedRgcn)
    group, case = context.group, context.case
    with raise_together(group, "reading the triples"):
        named, own = _read(context, triples, nodes, relations, relation, labels is None)
        sets = dict(zip(SETS, (train, val, test)))
        classes = _classes_of(own, labels, sets, named, case.rgcn.epochs > 0)
        inputs, table = _inputs_of(features, case, named.triples)
        given = {} if table is None or group.size == 1 else digests_of_table(table)
    check_same(group, _shape_of(inputs), "features", GraphError)
    check_given(group, given)
    named, classes = _shared(context, named, classes)

    def train(context: Context) -> RelationalClassification:
        return _classified(context, named, classes, inputs, model)

    if vary is not None:
        return tuned_by(context, RelationalTuned(context, named.triples, classes.labels, inputs), train)
    return train(context)


def _classified(
    context: Context, named: NamedTriples, classes: Classes, inputs: Features | None, model: SavedRgcn | None
) -> RelationalClassification:
    """What one training, or the given weights, come to. Ranks: all call."""
    case = context.case
    called = Called(named.nodes, named.relations)
    done = classify_relations(context, named.triples, classes.labels, inputs, model, called)
    fit, known = done.fit, done.labels
    chosen, called = known.nodes, classes.called_as(known.class_names, known.classes)
    likely: dict[str, Any] = {}
    if case.output.probabilities:
        likely = {"probabilities": fit.probabilities, "classes": called[: known.classes]}
    return RelationalClassification(
        predicted=called[fit.predictions], nodes=[_called(named.nodes, i) for i in chosen.tolist()],
        scores=_scores(fit, known), epochs=fit.epochs,
        train_loss=fit.records[-1]["loss"] if fit.records else None, seconds=fit.seconds, digest=done.digest,
        records=fit.records, model=saved_of(done), **likely, explanations=done.explained,
    )  # fmt: skip


def _classes_of(
    own: NodeLabels | None, labels: Any, sets: dict[str, Any], named: NamedTriples, learns: bool
) -> Classes:
    """The classes of nodes: those of the file, `own`, or the labels and sets of a caller.

    learns   there have to be some to train with
    """
    given = any(each is not None for each in sets.values())
    if own is None or (given and not own.classes):  # of a file that knows no class
        return labels_of_arrays(labels, sets, named.nodes, named.triples.nodes, learns)
    if given:
        raise CaseError("train, val, test: with the labels of a file its own sets count; leave them out")
    return Classes(own, np.array(own.class_names or np.arange(own.classes)))


def _inputs_of(features: Any, case: Case, triples: Triples) -> tuple[Features | None, NodeTable | None]:
    """Features of the nodes, those of a caller or of graph.features; and the caller's as a table."""
    inputs = open_features(case, triples)
    if features is None:
        return inputs, None
    if inputs is not None:
        raise CaseError("features: given here and in graph.features; one of them would be right")
    table = table_of_arrays(features)
    table.check(triples.nodes, triples.name)
    inputs = Features(table.features)
    inputs.check()  # here, where an error of one rank reaches all
    return inputs, table


def _scores(fit: RelationalFit, labels: NodeLabels) -> dict[str, Scores]:
    """How good the predictions are, by set."""
    return {
        name: scores_among(fit.predictions[np.searchsorted(labels.nodes, rows)], right, labels.classes)
        for name, (rows, right) in labels.sets().items()
    }


@with_few_threads
def predict_links(
    triples: Any,
    *,
    val: Any = None,
    test: Any = None,
    scorer: str | None = None,
    weights: Any = None,
    nodes: int | None = None,
    relations: int | None = None,
    relation: str = "relation",
    vary: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> LinkPrediction | Tuning:
    """Learn to score the triples of a knowledge graph, and rank those that are held out.

    triples    to learn from, as for `classify_relational`
    val, test  triples of the same kind to choose the epoch by, and to rank; None: drawn from the others,
               shares rgcn.validation and rgcn.held_out
    scorer     what triples are scored by, the decoder: "complex", "distmult", "rotate" or "transe"; None:
               rgcn.scorer of the settings, or "complex"
    weights    a weights.npz of the same triples, or what an earlier call returned: applied, or with
               "rgcn.epochs" of the settings trained further
    nodes, relations, relation   as for `classify_relational`
    vary       settings to choose among by the mean reciprocal rank of val, as {"rgcn.dimension": [64, 128]}
    settings   keys of a case, as {"rgcn.dimension": 128, "rgcn.held_out": 0.1, "seed": 1}
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    The answer tells the best `objects(subject, relation)` and `subjects(object, relation)` not yet known.
    Raises GraphError for what is no knowledge graph, CaseError for wrong settings.
    Source     Schlichtkrull et al. 2018, section 4; what scores are, and whose: app/gnn/rgcn/scorers.py
    """
    triples, val, test = (os.fspath(x) if isinstance(x, os.PathLike) else x for x in (triples, val, test))
    others = {number: each for number, each in ((VALID, val), (TEST, test)) if each is not None}
    begun, asked = Begun(weights, "rgcn", settings), Asked(None, vary, {}, of_folds=())
    context = _context(triples, "links", begun, asked, comm, verbose, others, scorer)
    context, model = begun.put(context, SavedRgcn)
    with raise_together(context.group, "reading the triples"):
        named, _ = _read(context, triples, nodes, relations, relation, False, others)
    named, _ = _shared(context, named, None)

    def train(context: Context) -> LinkPrediction:
        return _predicted(context, named, model)

    if vary is not None:
        return tuned_by(context, RelationalTuned(context, named.triples, None, None), train)
    return train(context)


def _predicted(context: Context, named: NamedTriples, model: SavedRgcn | None) -> LinkPrediction:
    """What one training, or the given weights, come to. Ranks: all call."""
    found, saved = learn_links(context, named.triples, model, Called(named.nodes, named.relations))
    graph = named.triples
    return LinkPrediction(
        held_out=[
            (_called(named.nodes, s), _called(named.relations, r), _called(named.nodes, o))
            for s, r, o in found.test.tolist()
        ],
        ranks=found.ranks,
        scores=found.scores,
        nodes=list(range(graph.nodes)) if named.nodes is None else named.nodes,
        relations=list(range(graph.relations)) if named.relations is None else named.relations,
        node_rows=found.embeddings,
        relation_rows=found.relations,
        known=np.stack([graph.subject, graph.relation, graph.object], axis=1),
        scorer=saved.case.scorer,
        epochs=found.epochs,
        best_epoch=found.best_epoch,
        train_loss=found.records[-1]["loss"] if found.records else None,
        seconds=found.seconds,
        digest=digest(saved.arrays),
        records=found.records,
        model=saved,
        explanations=found.explained,
    )


def _context(
    triples: Any,
    goal: str,
    begun: Begun,
    asked: Asked,
    comm: MPI.Comm | None,
    verbose: bool,
    others: dict[int, Any] | None = None,
    scorer: str | None = None,
) -> Context:
    """A context of a relational network that writes nothing. Ranks: all call."""
    with reading_together(comm):
        over = begun.keys() | asked.keys(begun.weights)
        if scorer is not None:
            if setting(begun.settings, "rgcn", "scorer") is not None:
                raise CaseError("scorer: given here and in the settings; one of them would be right")
            if begun.weights is not None:
                raise CaseError("scorer: the weights bring theirs; leave it out")
            over |= {"rgcn.scorer": scorer}
    chosen = {"run.task": "classify", "gnn.model": "rgcn", "rgcn.goal": goal}
    files = {}
    if isinstance(triples, str):
        sets = {f"rgcn.{SET_KEYS[number]}": path for number, path in (others or {}).items()}
        files = {"graph.path": triples, **sets}
    chosen = merged(chosen, begun.settings, over, files)
    context = context_of_settings(chosen, comm, verbose, by_task=False)
    case = context.case
    asked.refuse_unread(context, begun.settings)
    for key, found, right in (
        ("run.task", case.run.task, "classify"), ("gnn.model", case.gnn.model, "rgcn"),
        ("rgcn.goal", case.rgcn.goal, goal),
    ):  # fmt: skip
        if found != right:
            raise CaseError(f'settings: {key}: must be "{right}", got "{found}"; leave it out')
    return context


def _read(
    context: Context,
    triples: Any,
    nodes: int | None,
    relations: int | None,
    relation: str,
    labelled: bool,
    others: dict[int, Any] | None = None,
) -> tuple[NamedTriples, NodeLabels | None]:
    """The triples of an argument, and the labels of a file where they are wanted. Raises GraphError."""
    if not isinstance(triples, str):
        for key in SET_KEYS.values():
            if getattr(context.case.rgcn, key):
                raise CaseError(f"settings: rgcn.{key}: beside a file of triples; leave it out for others")
        return triples_of_object(triples, nodes, relations, relation, others), None
    if nodes is not None or relations is not None:
        raise GraphError("nodes, relations: a file tells them; leave them out")
    found, labels = read_case_triples(context.case, labelled)
    return NamedTriples(
        found, found.node_names or None, found.relation_names or None
    ), labels if labelled else None


def _shape_of(inputs: Features | None) -> str:
    """What must be the same on all ranks, so that they exchange the same."""
    return "none" if inputs is None else f"{inputs.width} columns"


def _called(names: list[Any] | None, number: int) -> Any:
    return number if names is None else names[number]


def _shared(
    context: Context, named: NamedTriples, classes: Classes | None
) -> tuple[NamedTriples, Classes | None]:
    """The numbers that rank 0 was given, on all ranks; all must have been given the same. Ranks: all call."""
    group, graph = context.group, named.triples
    arrays = {"sizes": np.array([graph.nodes, graph.relations]), "s": graph.subject, "r": graph.relation}
    arrays |= {"o": graph.object, "sets": graph.sets}
    if classes is not None:
        labels = classes.labels
        parts = (labels.train_idx, labels.train_label, labels.test_idx, labels.test_label)
        arrays |= {f"labels/{i}": each for i, each in enumerate(parts)}
        arrays |= {
            "val": labels.val_idx,
            "val_label": labels.val_label,
            "classes": np.array([labels.classes]),
        }
    parts = {name: digest_of_arrays(array) for name, array in arrays.items()} if group.size > 1 else {}
    called = {
        "triples": "".join(parts.get(name, "") for name in ("sizes", "s", "r", "o", "sets")),
        "nodes": digest_of_names(named.nodes),
        "relations": digest_of_names(named.relations),
        "labels, train, val, test": "".join(
            text for name, text in parts.items() if "label" in name or name == "val"
        ),
        "names of classes": "" if classes is None else digest_of_names(classes.called.tolist()),
    }
    check_given(group, called)
    arrays = share_arrays(group, arrays)
    n, r = arrays["sizes"].tolist()
    called, columns = map(as_texts, (named.relations, named.nodes)), [arrays[each] for each in "sro"]
    graph = Triples(graph.name, n, r, *columns, *called, sets=arrays["sets"])
    if classes is None:
        return replace(named, triples=graph), None
    four = [arrays[f"labels/{i}"] for i in range(4)]
    labels = NodeLabels(
        int(arrays["classes"][0]), *four, classes.labels.class_names, arrays["val"], arrays["val_label"]
    )  # fmt: skip
    return replace(named, triples=graph), replace(classes, labels=labels)
