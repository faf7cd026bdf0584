"""What a case may not ask for beyond its keys' own rules: found before any work, by tables of names."""

from collections.abc import Iterator
from typing import Any

from app.case.config import GRAPH_TABLES, Case, graph_tables, is_relational
from app.case.policy import PolicyCase
from app.errors import CaseError
from app.graphs.formats.source import graph_suffix
from app.graphs.quadratic import QUADRATIC
from app.partition.order import check_order
from app.partition.stands_for import is_covering, is_ordering, is_quadratic
from app.problems.table import (
    NODE_WEIGHTS_RIGHT,
    UNTRAINED,
    asks_policy,
    check_problem,
    counted_by,
    not_alone,
    reads_node_weights,
    without_policy,
)
from app.recipes import find_recipe
from app.rl.learners import check_learner
from app.rl.rules import check_rule

OF_CLASSES = 'rgcn.goal = "classes"'
# Keys of [rgcn] that links alone read, beside those that have messages of their own.
OF_LINKED_TRIPLES = (
    "scorer", "loops", "queries", "dimension", "loss", "ask_relations", "negatives", "candidates",
    "margin", "n3", "held_out", "validation",
)  # fmt: skip
# Keys of graphs whose rows are dealt, and of their networks: table, key, what would be right with triples.
UNREAD_BY_RELATIONS = (
    ("graph", "edge_features", "leaving it out"),
    ("graph", "labels", "rgcn.train_labels and rgcn.test_labels"),
    ("graph", "splits", "rgcn.train_labels and rgcn.test_labels"),
    ("graph", "order", '"natural"'), ("graph", "complement", "false"), ("graph", "self_loops", '"drop"'),
    ("graph", "duplicates", '"merge"'), ("graph", "ids", '"numbers"'), ("graph", "format", '"auto"'),
    ("graph", "count", "1"), ("graph", "random_features", "0"), ("graph", "random_classes", "rgcn.classes"),
    ("graph", "edge_weights", '"one"'), ("memory", "cache", '""'), ("output", "embeddings", "false"),
    ("output", "importance", "0"),
)  # fmt: skip
SETS_WANT = {"order": "natural", "complement": False, "neighbours": "both", "edge_weights": "one"}
ARCS_WANT = {"self_loops": "drop", "duplicates": "merge"}
TERMS_WANT = {"order": "natural", "complement": False, "self_loops": "drop", "duplicates": "merge"}


def check_names(case: Case) -> None:
    """Refuse names that no table knows before any work is done. Raises CaseError."""
    check_problem(case.problem.name)
    if case.graph.node_weights and not reads_node_weights(case.problem.name):
        counted = f"{case.problem.name} counts {counted_by(case.problem.name)}"
        raise CaseError(f"graph.node_weights: {counted}; {NODE_WEIGHTS_RIGHT}")
    if case.run.task == "solve" and case.search.solver == "policy" and case.problem.name in UNTRAINED:
        right = 'search.solver = "full" would be right'
        raise CaseError(f"{case.problem.name}: {not_alone(case.problem.name)}; {right}")
    _refuse_for_terms(case)
    _refuse_for_sets(case)
    check_rule(case.select.rule)
    check_learner(case.agent.learner)
    if case.run.task in ("train", "study") or case.policy.weights == "train":
        from app.rl.training import share_of  # of no use to tasks that do not learn a policy

        share_of(case.agent, case.parallel.data)
    _refuse_late(case)
    for recipe in case.study.recipes:
        find_recipe(recipe)
    if case.run.task == "classify":
        _check_network(case)


def _refuse_late(case: Case) -> None:
    """Refuse what a run would come to after a policy is trained, or graphs are read. Raises CaseError."""
    learns = case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")
    if learns and case.memory.fast_mb and case.policy.model != PolicyCase().model:
        from app.rl.qnet import one_tier  # of no use to tasks that do not learn a policy

        raise one_tier(case.policy)
    for table in (case.graph, *((case.train.graphs, case.train.held_back) if learns else ())):
        if table is not None:
            check_order(table.order)


def _check_network(case: Case) -> None:
    """Refuse layers that no table knows, and keys that a network does not read. Raises CaseError."""
    from app.gnn.model import check_layers, check_only_model  # of no use to tasks without one

    if is_relational(case):
        check_only_model(case.gnn)
        _refuse_unread_by_relations(case)
    else:
        check_layers(case.gnn, bool(case.graph.edge_features))


def _refuse_for_terms(case: Case) -> None:
    """Refuse what a graph may have and the terms of a quadratic function have not. Raises CaseError."""
    problems = [case.problem.name, *(case.study.problems if case.study.kind == "learners" else [])]
    if case.run.task == "study" and not set(QUADRATIC).isdisjoint(problems):
        said = "no study compares values of quadratic functions, which are below 0; maxcut would be right"
        raise CaseError(f"problem.name, study.problems: {said}")
    if is_ordering(case):
        _refuse_keys(case, ARCS_WANT, "has arcs that add up")
    if not is_quadratic(case):
        return
    _refuse_keys(case, TERMS_WANT, "holds the terms of a function")


def _refuse_keys(case: Case, wanted: dict[str, Any], said: str) -> None:
    """Refuse tables of graphs in which a key has another value than the wanted one. Raises CaseError."""
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        for key, right in wanted.items():
            if table is not None and getattr(table, key) != right:
                shown_right = str(right).lower() if right is False else f'"{right}"'
                name = f"{'.'.join(keys)}.{key}: the graph of {case.problem.name} {said}"
                raise CaseError(f"{name}; {shown_right} would be right")


def _refuse_for_sets(case: Case) -> None:
    """Refuse what families of sets have no place for. Raises CaseError."""
    problems = [case.problem.name, *(case.study.problems if case.study.kind == "learners" else [])]
    trains = case.run.task in ("train", "study") or case.policy.weights == "train"
    for name in problems if trains and case.run.task != "classify" else ():
        if name in UNTRAINED:
            raise CaseError(f"problem.name, study.problems: {without_policy(name)}")
    if case.run.task == "solve" and not asks_policy(case.problem.name) and case.policy.weights != "default":
        raise CaseError(f"policy.weights: no policy answers {case.problem.name}; leave it out")
    if is_covering(case):
        _refuse_keys(case, SETS_WANT, "stands for a family of sets")
        return
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        if table is not None and table.generator == "sets":
            right = 'problem.name = "set_cover" or "hitting_set" would be right, to solve it, or "coverage"'
            raise CaseError(f"{'.'.join(keys)}.generator: sets: a family of sets; {right}")


def _refuse_unread_by_relations(case: Case) -> None:
    """Refuse keys of a graph that has rows, which one of triples has not. Raises CaseError."""
    usual = Case()
    for table, key, instead in UNREAD_BY_RELATIONS:
        if getattr(getattr(case, table), key) != getattr(getattr(usual, table), key):
            raise CaseError(f'{table}.{key}: is not read by gnn.model = "rgcn"; {instead} would be right')
    for key, reader in _unread_of_rgcn(case, usual):
        raise CaseError(f"{key}: is read with {reader}; leave it out")
    rgcn, links, generated = case.rgcn, case.rgcn.goal == "links", bool(case.graph.generator)
    archive = bool(case.graph.path) and graph_suffix(case.graph.path[0]) == ".npz"
    reader = OF_CLASSES if links else "a graph.path" if generated else "triples of a text file"
    for key in ("train_labels", "test_labels", "val_labels"):
        if getattr(rgcn, key) and (links or generated or archive):
            raise CaseError(f"rgcn.{key}: is read with {reader}; leave it out")


def _unread_of_rgcn(case: Case, usual: Case) -> Iterator[tuple[str, str]]:
    """Keys that others leave nothing to do, and by what they would be read; usual: a case of defaults."""
    from app.gnn.rgcn.scorers import SCORERS  # of this task alone

    rgcn, links = case.rgcn, case.rgcn.goal == "links"
    varied = _varies(case, "rgcn.loss")
    beside, among = rgcn.loss == "sigmoid" or varied, rgcn.loss == "softmax" or varied
    apart = SCORERS[rgcn.scorer].distance or _varies(case, "rgcn.scorer") or bool(rgcn.weights)

    def differs(key: str) -> bool:
        return getattr(rgcn, key) != getattr(usual.rgcn, key)

    for unread, key, reader in (
        (links and case.output.probabilities, "output.probabilities", OF_CLASSES),
        (links and case.memory.fast_mb != usual.memory.fast_mb, "memory.fast_mb", OF_CLASSES),
        (links and bool(case.graph.features), "graph.features", OF_CLASSES),
        *((links and differs(key), f"rgcn.{key}", OF_CLASSES) for key in ("min_edges", "prune", "keep")),
        *((not links and differs(key), f"rgcn.{key}", 'rgcn.goal = "links"') for key in OF_LINKED_TRIPLES),
        (not rgcn.queries and differs("propose_each"), "rgcn.propose_each", "rgcn.queries"),
        (not beside and differs("negatives"), "rgcn.negatives", 'rgcn.loss = "sigmoid"'),
        (not among and differs("candidates"), "rgcn.candidates", 'rgcn.loss = "softmax"'),
        (
            not (beside and apart) and differs("margin"),
            "rgcn.margin",
            'rgcn.loss = "sigmoid" and rgcn.scorer = "rotate" or "transe"',
        ),
        (bool(rgcn.groups) and rgcn.partition != "both", "rgcn.groups", 'rgcn.partition = "both"'),
    ):
        if unread:
            yield key, reader
    layered = rgcn.layers > 1 or rgcn.weights or _varies(case, "rgcn.layers")  # weights bring their layers
    for key in ("hidden", "dropout"):
        if differs(key) and not layered:
            yield f"rgcn.{key}", "rgcn.layers of at least 2"


def _varies(case: Case, key: str) -> bool:
    """Whether a tuning tries values of a key."""
    return any(text.split()[:1] == [key] for text in case.study.vary)
