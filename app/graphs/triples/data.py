"""Triples: a knowledge graph as (subject, relation, object), labels of some nodes, the npz layout of both.

The npz layout: triples [m, 3], num_nodes, num_relations, and for classification train_idx, train_label,
test_idx, test_label; val_idx, val_label and names are optional, and so are val_triples, test_triples [k, 3]
for the prediction of links. The text layouts are those of app/graphs/triples/text.py.
"""

from dataclasses import dataclass, field

import numpy as np

from app.errors import GraphError
from app.graphs.formats.npz import Npz
from app.graphs.formats.source import Limits, Source, graph_name
from app.graphs.keys import sorted_set

DEFAULT_LIMITS = Limits()
PIECE = 1 << 18  # triples of an array that are read at a time
MOST = 2**31 - 1  # of nodes and of triples: numbers are int32
NO_NODES = np.zeros(0, dtype=np.int32)
TRAIN, VALID, TEST = range(3)  # what a triple is for
SET_KEYS = {VALID: "val_triples", TEST: "test_triples"}
NO_SETS = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Triples:
    """Labelled directed edges between numbered nodes.

    subject, relation, object   [m] int32, in the order of the file, repeats included
    relation_names              [relations], or empty
    node_names                  [nodes] as the file spells them, or empty
    sets                        [m] uint8: TRAIN, VALID (to choose by) or TEST (to be ranked), or empty where
                                nothing is said of it: all are to learn from
    """

    name: str
    nodes: int
    relations: int
    subject: np.ndarray
    relation: np.ndarray
    object: np.ndarray
    relation_names: list[str] = field(default_factory=list)
    node_names: list[str] = field(default_factory=list)
    sets: np.ndarray = field(default_factory=lambda: NO_SETS)

    def __len__(self) -> int:
        return len(self.subject)

    def rows(self, of: int | None = None) -> np.ndarray:
        """[k, 3] (subject, relation, object), the triples of a set, or all of them."""
        rows = np.stack([self.subject, self.relation, self.object], axis=1)
        if of is None:
            return rows
        return rows[self.sets == of] if len(self.sets) else rows[: len(rows) if of == TRAIN else 0]


@dataclass(frozen=True, eq=False)
class NodeLabels:
    """Classes of some nodes: some to train with, others to look on, the rest for the test.

    classes   how many; 0: no node has one, all are asked of trained weights, which know how many there are
    train_idx, test_idx, val_idx   [k] int32 nodes
    train_label, test_label, val_label   [k] int32 in 0 .. classes-1; of the test -1, too: the class is asked
    class_names                    [classes], or empty
    """

    classes: int
    train_idx: np.ndarray
    train_label: np.ndarray
    test_idx: np.ndarray
    test_label: np.ndarray
    class_names: list[str] = field(default_factory=list)
    val_idx: np.ndarray = field(default_factory=lambda: NO_NODES)
    val_label: np.ndarray = field(default_factory=lambda: NO_NODES)

    @property
    def nodes(self) -> np.ndarray:
        """The nodes of all sets, ascending."""
        return sorted_set(np.concatenate([nodes for nodes, _ in self.sets().values()]))

    def sets(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Nodes and classes by the name of their set; without "val" where it is empty."""
        val = {"val": (self.val_idx, self.val_label)} if len(self.val_idx) else {}
        return {
            "train": (self.train_idx, self.train_label), **val, "test": (self.test_idx, self.test_label)
        }  # fmt: skip


def asked_of(nodes: np.ndarray) -> NodeLabels:
    """Labels of which none is known: the classes of these nodes are asked."""
    nodes = nodes.astype(np.int32)
    return NodeLabels(0, NO_NODES, NO_NODES, nodes, np.full(len(nodes), -1, dtype=np.int32))


def read_triples_npz(
    path: str, limits: Limits = DEFAULT_LIMITS, learns: bool = True
) -> tuple[Triples, NodeLabels | None]:
    """Triples and, where the file has them, labels; learns: some are to train with. Raises GraphError."""
    file = Npz(Source(path, limits))
    nodes, relations = _count(file, "num_nodes"), _count(file, "num_relations")
    parts = {TRAIN: _rows(file, "triples", nodes, relations)}
    for number, key in SET_KEYS.items():
        if key in file:
            parts[number] = _rows(file, key, nodes, relations)
    columns = np.concatenate(list(parts.values()), axis=1) if len(parts) > 1 else parts[TRAIN]
    sets = np.repeat(np.array(list(parts), dtype=np.uint8), [part.shape[1] for part in parts.values()])
    names = {
        key: _names(file, f"{key}_names", most) for key, most in (("relation", relations), ("node", nodes))
    }
    triples = Triples(
        graph_name(path), nodes, relations, *columns, names["relation"], names["node"],
        sets if len(parts) > 1 else NO_SETS,
    )  # fmt: skip
    return triples, _read_labels(file, nodes, learns)


def _rows(file: Npz, name: str, nodes: int, relations: int) -> np.ndarray:
    """[3, m] int32, subjects, relations and objects of an array of triples, read in pieces."""
    column = file.integers(name, (None, 3))
    if column.fortran:
        raise file.error("is stored column-major; row-major would be right", name)
    if column.shape[0] > MOST:
        raise file.error(f"holds {column.shape[0]} triples; at most {MOST} would be right", name)
    found, lo = np.empty((3, column.shape[0]), dtype=np.int32), 0
    for part in file.parts(column, 3 * PIECE):
        rows = file.wide(column, part).reshape(-1, 3)
        hi = lo + len(rows)
        for at, most in enumerate((nodes, relations, nodes)):
            _check_numbers(file, name, rows[:, at], most)
            found[at, lo:hi] = rows[:, at]
        lo = hi
    return found


def stated_triples(path: str, limits: Limits = DEFAULT_LIMITS) -> int:
    """How many triples an .npz has to learn from, by its header; 0 where it has none. Raises GraphError."""
    file = Npz(Source(path, limits))
    return file.integers("triples", (None, 3)).shape[0] if "triples" in file else 0


def _count(file: Npz, name: str) -> int:
    """A count that the file states as an array of one number."""
    column = file.integers(name, (1,) if name in file and len(file.columns[name].shape) else ())
    value = int(file.wide(column, file.whole(column))[0])
    if not 1 <= value <= MOST:
        raise file.error(f"found {value}; 1..{MOST} would be right", name)
    return value


def _check_numbers(file: Npz, name: str, values: np.ndarray, most: int) -> None:
    if len(values) and int(values.max()) >= most:
        raise file.error(f"found number {int(values.max())}; 0..{most - 1} would be right", name)


def _names(file: Npz, name: str, most: int) -> list[str]:
    """Names, or none where the file has none."""
    if name not in file:
        return []
    column = file.columns[name]
    if column.dtype.kind != "U" or column.shape != (most,):
        raise file.error(f"found {column.dtype} of shape {column.shape}; {most} texts would be right", name)
    return file.whole(column).tolist()


def _read_labels(file: Npz, nodes: int, learns: bool) -> NodeLabels | None:
    if "train_idx" not in file:
        return None
    found = {}
    for kind in ("train", "test", "val") if "val_idx" in file else ("train", "test"):
        index = file.list_of(f"{kind}_idx")
        found[kind] = [index, file.list_of(f"{kind}_label", len(index))]
        _check_numbers(file, f"{kind}_idx", found[kind][0], nodes)
    classes = 1 + max(int(label.max(initial=0)) for _, label in found.values())
    if "num_classes" in file:
        classes = _count(file, "num_classes")
        for kind, (_, label) in found.items():
            _check_numbers(file, f"{kind}_label", label, classes)
    arrays = [each.astype(np.int32) for kind in ("train", "test") for each in found[kind]]
    others = [each.astype(np.int32) for each in found.get("val", ())]
    labels = NodeLabels(classes, *arrays, _names(file, "class_names", classes), *others)
    return check_labels(labels, file.source, learns)


def check_labels(labels: NodeLabels, source: Source, learns: bool = True) -> NodeLabels:
    """The labels, if no node has two and, for who learns, there are some to train with. Raises GraphError."""
    both = np.concatenate([nodes for nodes, _ in labels.sets().values()])
    nodes, counts = np.unique(both, return_counts=True)
    if (counts > 1).any():
        node = int(nodes[counts > 1][0])
        raise source.error(f"node {node} is labelled twice; one label a node would be right")
    if learns and not len(labels.train_idx):
        raise source.error("no node to train with; at least one would be right")
    return labels


def check_sizes(source: Source, nodes: int, triples: int) -> None:
    """Refuse what int32 cannot number."""
    if max(nodes, triples) > MOST:
        raise GraphError(f"{source.where}: {nodes} nodes, {triples} triples; at most {MOST} would be right")
