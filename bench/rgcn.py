"""A full-batch epoch of R-GCN on AIFB beside PyTorch Geometric: 40 bases, 16 hidden units, two layers, Adam.

Both programs get the nodes within two hops of a labelled one, as the published experiments do, and equal
first weights; an epoch is forward, loss, backward and a step, on one thread of a process of its own. What is
compared is processor time, pairs of epochs by turns; the note says where losses differ.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from app.graphs.triples.data import read_triples_npz
from app.graphs.triples.relational import nodes_by_layer, relational_graph
from bench.gnn import SAME_LOSS, Missing, Program, by_turns
from bench.gnn import about as about
from bench.harness import Effort, Record, Table, record
from bench.rgcn_case import RgcnCase

GOAL = ">= 4"


def aifb() -> RgcnCase | None:
    """AIFB of $LOCKSTEP_DATA, pruned; None where it is missing."""
    path = Path(os.environ.get("LOCKSTEP_DATA", ""), "rgcn", "aifb.npz")
    if not path.exists():
        return None
    triples, labels = read_triples_npz(str(path))
    graph = relational_graph(triples)
    hops = nodes_by_layer(graph, labels.nodes, 2, prune=True)
    edges, near = graph.of_targets(hops[1]), hops[0]
    order = np.argsort(labels.train_idx, kind="stable")
    number = {name: np.searchsorted(near, each) for name, each in (
        ("target", edges.target), ("source", edges.source), ("train", labels.train_idx[order]),
        ("read", labels.nodes),
    )}  # fmt: skip
    return RgcnCase(
        "AIFB", len(near), graph.relations, labels.classes, relation=edges.relation.astype(np.int64),
        labels=labels.train_label[order].astype(np.int64), **number,
    )  # fmt: skip


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Both forms of the other program, then memory."""
    case = aifb()
    if case is None:
        yield Table("Not measured", ["case", "why"], [["AIFB", "set LOCKSTEP_DATA"]])
        return
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.npz")
        case.save(path)
        with Program("rgcn:lockstep", path) as ours:
            try:
                with Program("rgcn:pyg", path) as theirs:
                    for form in theirs.forms:
                        yield pairs(case, ours, theirs, form, effort)
                        found.append(
                            [f"PyTorch Geometric, {form}", f"{theirs.grown / 1e6:,.0f}", theirs.version]
                        )
            except Missing as why:
                found.append([f"PyTorch Geometric: {why}", "", ""])
            found.insert(0, ["Lockstep", f"{ours.grown / 1e6:,.0f}", ours.version])
    sizes = (
        f"{case.nodes:,} nodes, {len(case.target):,} edges, {case.relations} relations with their inverses"
    )
    yield Table(
        f"Most memory above that of libraries and data ({sizes})", ["program", "MB", "version"], found
    )


def pairs(case: RgcnCase, ours: Program, theirs: Program, form: str, effort: Effort) -> Record:
    """Epochs of both by turns, from the first weights on."""
    ours.build(ours.forms[0], 0.0)
    theirs.build(form, 0.0)
    note = ""
    if abs(ours.first_loss - theirs.first_loss) > SAME_LOSS * abs(ours.first_loss):
        note = f"OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
    name = f"{case.name}, 40 bases, hidden 16"
    return record(name, f"PyG {form}", *by_turns(ours, theirs, effort), goal=GOAL, note=note)
