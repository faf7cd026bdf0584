"""A full-batch epoch of deep networks and of batch normalisation beside PyTorch Geometric.

GCNII's layers on Cora, 16 and 64 of them, and 8 on a graph of Arxiv's shape; APPNP, two dense layers and ten
steps of propagation, on Cora, and three on Arxiv's shape; the same steps with learned weights (GPR-GNN), and
a layer of attention to all nodes (SGFormer) between dense ones, on both; there, too, three graph
convolutions with batch normalisation, with the product of the features kept and made in each epoch. Equal
first weights, dropout 0.5 of what layers give (other draws in either); PyG's adjacency is a sparse tensor,
which is faster than `edge_index` on all of these; an epoch is forward, loss, backward and a step of Adam, on
one thread of a process of its own. What is compared is processor time, pairs of epochs by turns.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from bench.gnn import DROPOUT, SAME_LOSS, Program, by_turns
from bench.gnn import about as about
from bench.gnn_case import GcnCase
from bench.gnn_subjects import ARXIV, generated, real
from bench.graphs import beside_pyg
from bench.harness import Effort, Record, Table, record

GOAL = ">= 2"


def cases(quick: bool) -> list[Callable[[], GcnCase | None]]:
    """How to make each; quick: the generated ones at an eighth."""
    shrink = 8 if quick else 1
    return [
        lambda: deep(real("Cora", "cora.npz", 64, 2), 16),
        lambda: deep(real("Cora", "cora.npz", 64, 2), 64),
        lambda: deep(generated("Arxiv shape", ARXIV, 64, 2, shrink), 8),
        lambda: appnp(real("Cora", "cora.npz", 64, 2)),
        lambda: appnp(generated("Arxiv shape", ARXIV, 256, 3, shrink)),
        lambda: replace(generated("Arxiv shape", ARXIV, 256, 3, shrink), kind="batch_norm"),
        lambda: appnp(real("Cora", "cora.npz", 64, 2), "gprgnn"),
        lambda: appnp(generated("Arxiv shape", ARXIV, 64, 2, shrink), "gprgnn"),
        lambda: deep(real("Cora", "cora.npz", 64, 2), 1, "sgformer"),
        lambda: deep(generated("Arxiv shape", ARXIV, 64, 2, shrink), 1, "sgformer"),
    ]


def deep(case: GcnCase | None, layers: int, kind: str = "gcn2") -> GcnCase | None:
    """The case with so many layers of GCNII, or of another kind, between dense ones."""
    if case is None:
        return None
    features, hidden, classes = case.widths
    return replace(case, kind=kind, widths=[features, *[hidden] * (layers + 1), classes])


def appnp(case: GcnCase | None, kind: str = "appnp") -> GcnCase | None:
    """The case with dense layers before ten steps of propagation."""
    return case and replace(case, kind=kind)


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Every case, in all forms of both programs."""
    for make in cases(quick):
        case = make()
        if case is not None:
            yield from beside_pyg(case, "gnn", pairs, effort, shape_of(case), "csr")


def shape_of(case: GcnCase) -> str:
    """Its layers."""
    between = {"gcn2": "GCNII", "sgformer": "SGFormer"}
    inner = f"{case.layers - 2} x {case.widths[1]} of {between.get(case.kind)}"
    many = {"batch_norm": "batch normalisation", "appnp": "APPNP, 10 steps", "gprgnn": "GPR-GNN, 10 steps"}
    return inner if case.kind in between else f"{case.layers} x {case.widths[1]}, {many[case.kind]}"


def pairs(case: GcnCase, ours: Program, theirs: Program, mine: str, form: str, effort: Effort) -> Record:
    """Epochs of both by turns, from the first weights on; a pair of first losses without dropout before."""
    for each, what in ((ours, mine), (theirs, form)):
        each.build(what, 0.0)
    note = ""
    if abs(ours.first_loss - theirs.first_loss) > SAME_LOSS * abs(ours.first_loss):
        note = f"OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
    ours.build(mine, DROPOUT)
    theirs.build(form, DROPOUT)
    kept = f"{case.name}, {shape_of(case)}" + (", A X kept" if mine == "kept" else "")
    return record(kept, f"PyG {form}", *by_turns(ours, theirs, effort), goal=GOAL, note=note)
