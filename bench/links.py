"""A full-batch epoch of link prediction beside PyTorch Geometric: graph convolutions, products of rows, Adam.

Both programs have the same graph, features and first weights, and draw as many pairs without an edge as there
are edges in each epoch (not the same ones, so that losses differ a little); an epoch is that, forward, loss,
backward and a step, on one thread of a process of its own. What is compared is processor time, by turns.
"""

from collections.abc import Iterator

from bench.gnn import Program, by_turns
from bench.gnn import about as about
from bench.gnn_case import GcnCase
from bench.gnn_subjects import ARXIV, generated, real
from bench.graphs import beside_pyg
from bench.harness import Effort, Record, Table, record

GOAL, NEAR = ">= 2", 0.02  # share of the first loss
HIDDEN, DIMENSION = 64, 32
SMALLER = 16  # times: products of rows that are far from 0 have no gradient


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Both forms of both programs, then memory."""
    for case in subjects(quick):
        yield from beside_pyg(case, "links", pairs, effort, f"links of {case.name}")


def subjects(quick: bool) -> Iterator[GcnCase]:
    """Cora, where there are data, and a graph of Arxiv's shape, with 64 and 32 columns."""
    cora = real("Cora", "cora.npz", HIDDEN, 2)
    for case in (cora, generated("Arxiv shape", ARXIV, HIDDEN, 2, 8 if quick else 1)):
        if case is not None:
            case.widths[-1] = DIMENSION
            case.X = case.X if case.sparse else case.X / SMALLER
            yield case


def pairs(case: GcnCase, ours: Program, theirs: Program, mine: str, form: str, effort: Effort) -> Record:
    """Epochs of both by turns, from the first weights on."""
    ours.build(mine, 0.0)
    theirs.build(form, 0.0)
    note = ""
    if abs(ours.first_loss - theirs.first_loss) > NEAR * abs(ours.first_loss):
        note = f"OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
    kept = "A X kept" if mine == "kept" else "A X in each epoch"
    layers = "-".join(map(str, case.widths[1:]))
    return record(
        f"{case.name}, {layers}, {kept}", f"PyG {form}", *by_turns(ours, theirs, effort), goal=GOAL, note=note
    )
