"""The label tables of the R-GCN data sets, read line by line and strictly.

Source   Ristoski, de Vries, Paulheim 2016, as the R-GCN data sets use them
"""

import os

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Limits, Source, shown
from app.graphs.triples.data import DEFAULT_LIMITS, NodeLabels, Triples, check_labels


def read_label_tables(
    train_path: str, test_path: str, triples: Triples, limits: Limits = DEFAULT_LIMITS, learns: bool = True,
    val_path: str = "",
) -> NodeLabels:  # fmt: skip
    """Labels of nodes from tables with a header line, separated by tabs; "": there is no such table.

    The label is the column whose name begins with "label", the node is the other one that is not named "id"
    (which numbers the rows); nodes are IRIs without their angle brackets. Classes are numbered in the order
    of their names. A test node may lack its label: its class is asked, -1. Raises GraphError.
    learns   there have to be some to train with
    """
    number = {name: k for k, name in enumerate(triples.node_names)}
    seen: dict[int, str] = {}
    paths = {
        "rgcn.train_labels": train_path, "rgcn.test_labels": test_path, "rgcn.val_labels": val_path
    }  # fmt: skip
    tables = [
        _read_table(_source(path, limits, key), number, seen, key == "rgcn.test_labels") if path else []
        for key, path in paths.items()
    ]
    names = sorted({label for table in tables for _, label in table if label})
    class_of = {"": -1, **{name: k for k, name in enumerate(names)}}
    arrays = []
    for table in tables:
        arrays.append(np.array([node for node, _ in table], dtype=np.int32))
        arrays.append(np.array([class_of[label] for _, label in table], dtype=np.int32))
    source = Source(train_path or test_path or val_path, limits)
    return check_labels(NodeLabels(len(names), *arrays[:4], names, *arrays[4:]), source, learns)


def _source(path: str, limits: Limits, key: str) -> Source:
    """A table's file, if there is one."""
    if not os.path.exists(path):
        right = f'a table of labelled nodes, or {key} naming one, would be right (rgcn.goal = "links": none)'
        raise GraphError(f"{shown(path, 400)}: no such file; {right}")
    return Source(path, limits)


def _read_table(
    source: Source, number: dict[str, int], seen: dict[int, str], asked: bool
) -> list[tuple[int, str]]:
    """(node, label) of each row; `seen` says where nodes have got theirs, asked: labels may be empty."""
    rows: list[tuple[int, str]] = []
    columns: tuple[int, int] | None = None
    width = 0
    for line, text in source.lines():
        fields = [part.decode("utf-8", "backslashreplace").strip() for part in text.split(b"\t")]
        if not any(fields):
            continue
        if columns is None:
            columns, width = _header(source, fields, line), len(fields)
            continue
        if len(fields) != width:
            raise source.error(
                f"found {len(fields)} columns; {width}, as in the header, would be right", line
            )
        name, label = (fields[at] for at in columns)
        node = number.get(f"<{name}>", number.get(name))
        if node is None:
            raise source.error(f"found node '{shown(name)}'; a node of the graph would be right", line)
        if not (label or asked):
            raise source.error(f"found no label of node '{shown(name)}'; one would be right", line)
        if node in seen:
            found = f"found node '{shown(name)}', which has a label in {seen[node]}"
            raise source.error(f"{found}; one label a node would be right", line)
        seen[node] = f"line {line} of {source.where}"
        rows.append((node, label))
    if not rows:
        raise source.error("holds no labels; a header and rows 'node, label' would be right")
    return rows


def _header(source: Source, fields: list[str], line: int) -> tuple[int, int]:
    """Which columns hold the node and its label."""
    label = [at for at, name in enumerate(fields) if name.startswith("label")]
    node = [at for at, name in enumerate(fields) if at not in label and name != "id"]
    if len(label) != 1 or len(node) != 1:
        found = ", ".join(f"'{shown(name)}'" for name in fields[:6])
        right = "one column 'label...', one of nodes and at most one 'id' would be right"
        raise source.error(f"found columns {found}; {right}", line)
    return node[0], label[0]
