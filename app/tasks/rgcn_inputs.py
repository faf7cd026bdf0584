"""What a case of R-GCN reads: triples, the labels and the features of nodes."""

import os

import numpy as np

from app.case.config import Case
from app.case.file import label_tables
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.queries import Query
from app.graphs.formats.source import Limits, Source, graph_suffix
from app.graphs.generators.random_triples import random_labels, random_triples
from app.graphs.nodes.data import NodeTable
from app.graphs.nodes.files import read_features
from app.graphs.triples.asked import read_asked
from app.graphs.triples.data import (
    SET_KEYS,
    TEST,
    VALID,
    NodeLabels,
    Triples,
    asked_of,
    read_triples_npz,
)
from app.graphs.triples.label_tables import read_label_tables
from app.graphs.triples.text import read_triple_text
from app.rng import stream
from app.tasks.context import Context
from app.text import show


def check_triples(case: Case) -> None:
    """Refuse files that cannot be opened, before anything is written. Raises GraphError."""
    for path in (*case.graph.path, *_files_of_sets(case).values()):
        Source(path).check()


def load_triples(context: Context) -> tuple[Triples, NodeLabels | None]:
    """Triples and labels of the file that [graph] names, the same on all ranks. Ranks: all call."""
    with context.log.phase("read"), raise_together(context.group, "reading the triples"):
        triples, labels = read_case_triples(context.case)
    context.log.info(
        "%s: %d triples, %d nodes, %d relations", triples.name, len(triples), triples.nodes, triples.relations
    )
    return triples, labels


def read_case_triples(case: Case, labelled: bool = True) -> tuple[Triples, NodeLabels | None]:
    """Triples and labels of graph.path, one .npz or a text file with two tables, or generated ones.

    labelled   False: labels are not wanted, those of tables not read
    Raises CaseError. Labels may be None where they are not wanted, or links are to be predicted. Where
    trained weights are applied and there are none, the classes of all nodes are asked.
    """
    labelled, learns = labelled and case.rgcn.goal == "classes", case.rgcn.epochs > 0
    others = _files_of_sets(case)
    if case.graph.generator == "ba":
        seed = case.seed if case.graph.generator_seed < 0 else case.graph.generator_seed
        low, high = (case.graph.nodes,) * 2 if isinstance(case.graph.nodes, int) else case.graph.nodes
        nodes, rgcn = int(stream(seed, "triples/nodes").integers(low, high + 1)), case.rgcn
        triples = random_triples(nodes, case.graph.edges or nodes * case.graph.d, rgcn.relations, seed)
        return triples, random_labels(triples, rgcn.labelled, rgcn.classes, seed) if labelled else None
    if case.graph.generator:
        right = '"ba" would be right for triples'
        raise CaseError(f"graph.generator: {right}, got {show(case.graph.generator)}")
    paths = [case.graph.path] if isinstance(case.graph.path, str) else list(case.graph.path)
    if len(paths) != 1:
        raise CaseError(f"graph.path: found {len(paths)} files; one of triples would be right")
    limits = Limits(decompressed=int(case.memory.max_decompressed_gb * 1e9))
    path = paths[0]
    if graph_suffix(path) == ".npz":
        triples, labels = read_triples_npz(path, limits, learns)
        if labels is None and labelled:
            if not learns:
                return triples, asked_of(np.arange(triples.nodes))
            right = "train_idx, train_label, test_idx and test_label would be right"
            raise CaseError(f"graph.path: {triples.name} holds no labels; {right}")
        return triples, labels
    triples = read_triple_text(path, others, limits)
    if not labelled:
        return triples, None
    tables = label_tables(case)
    if not learns:  # only those that there are
        named = case.rgcn.train_labels, case.rgcn.test_labels
        tables = [path if name or os.path.exists(path) else "" for path, name in zip(tables, named)]
    if not any((*tables, case.rgcn.val_labels)):
        return triples, asked_of(np.arange(triples.nodes))
    return triples, read_label_tables(*tables, triples, limits, learns, case.rgcn.val_labels)


def _files_of_sets(case: Case) -> dict[int, str]:
    """The files of rgcn.val_triples and test_triples by set. Raises CaseError where they do not apply."""
    named = {VALID: case.rgcn.val_triples, TEST: case.rgcn.test_triples}
    others = {number: path for number, path in named.items() if path}
    for number in others:
        key = f"rgcn.{SET_KEYS[number]}"
        if case.rgcn.goal != "links":
            raise CaseError(f'{key}: of rgcn.goal = "links"; leave it out for classes')
        if case.graph.generator:
            raise CaseError(f"{key}: beside a file of triples; leave it out for generated ones")
        if graph_suffix(case.graph.path[0] if case.graph.path else "") == ".npz":
            raise CaseError(
                f"{key}: beside a text file; an array {SET_KEYS[number]} in the .npz would be right"
            )
    return others


def read_queries(case: Case, triples: Triples) -> list[Query]:
    """What rgcn.queries asks; [] without it. Raises GraphError."""
    if not case.rgcn.queries:
        return []
    limits = Limits(decompressed=int(case.memory.max_decompressed_gb * 1e9))
    rows = read_asked(case.rgcn.queries, triples, limits)
    return [Query(0, s, r) if o < 0 else Query(1, o, r) for s, r, o in rows.tolist()]


def open_features(case: Case, triples: Triples) -> Features | None:
    """The file that graph.features names, a row for each node by its number; None: one-hot."""
    if not case.graph.features:
        return None
    if case.graph.node_data_by == "id":
        raise CaseError(
            'graph.node_data_by: features of a knowledge graph are by "order", which would be right'
        )
    limits = Limits(decompressed=int(case.memory.max_decompressed_gb * 1e9))
    source = read_features(case.graph.features, limits)
    NodeTable(features=source).check(triples.nodes, triples.name)
    return Features(source)
