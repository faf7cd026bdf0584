"""A full-batch epoch of layers that read features of edges beside PyTorch Geometric's GINEConv, GATConv and
GATv2Conv.

Both programs have equal graphs, features and first weights; an epoch is forward, loss, backward and a step of
Adam, on one thread of a process of its own. What is compared is processor time, pairs of epochs by turns.
This program leaves out the messages that the loss does not depend on, as it does in training.
"""

from collections.abc import Iterator
from dataclasses import replace

from bench.edges_case import EdgesCase, graph, molecules
from bench.gnn import SAME_LOSS, Program, by_turns
from bench.gnn import about as about
from bench.graphs import beside_pyg
from bench.harness import Effort, Record, Table, record

GOAL = ">= 2"


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Molecules with categories of bonds, then graphs with numbers of edges."""
    sizes = (400, 10_200, 11_000) if quick else (4_110, 104_800, 113_000)
    few = 10 if quick else 1
    cases = [
        molecules("molecules", *sizes, hidden=64), graph("a graph", 40_000 // few, 400_000 // few, 64),
        graph("a graph", 40_000 // few, 400_000 // few, 16),
    ]  # fmt: skip
    attend = [replace(case, model=model) for case in cases[:2] for model in ("edge_gat", "edge_gatv2")]
    for case in cases + attend:
        yield from beside_pyg(case, "edges", pairs, effort, shape_of(case))


def shape_of(case: EdgesCase) -> str:
    """Its numbers."""
    many = f"{len(case.labels):,} graphs, " if case.whole else ""
    kind = "categories" if case.kinds else "numbers"
    edges = f"{len(case.u):,} edges with {case.E.shape[1]} {kind}"
    many = many if case.model == "gine" else f"{case.model}, {many}"
    return f"{many}{len(case.X):,} nodes, {edges}, {'-'.join(map(str, case.widths))}"


def pairs(case: EdgesCase, ours: Program, theirs: Program, mine: str, form: str, effort: Effort) -> Record:
    """Epochs of both by turns, from the first weights on."""
    ours.build(mine, 0.0)
    theirs.build(form, 0.0)
    note = ""
    if abs(ours.first_loss - theirs.first_loss) > SAME_LOSS * abs(ours.first_loss):
        note = f"OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
    taken = by_turns(ours, theirs, effort)
    return record(f"{case.name}, {shape_of(case)}", f"PyG {form}", *taken, goal=GOAL, note=note)
