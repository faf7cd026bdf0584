"""A full-batch epoch on whole graphs beside PyTorch Geometric: three convolutions, means over graphs, Adam.

The set has the shape of NCI1: 4,110 graphs, 123 thousand nodes of 37 kinds, 133 thousand edges. Both programs
have all graphs side by side and equal first weights; an epoch is forward, loss, backward and a step, on one
thread of a process of its own. What is compared is processor time, pairs of epochs by turns.
"""

import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from bench.gnn import SAME_LOSS, Missing, Program, by_turns
from bench.gnn import about as about
from bench.graphs_case import GraphsCase, like_molecules
from bench.harness import Effort, Record, Table, record

GOAL = ">= 2"


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Both forms of both programs, then memory."""
    sizes = (300, 9_000, 9_800) if quick else (4_110, 122_747, 132_753)
    case = like_molecules("NCI1's shape", *sizes, features=37, hidden=64)
    shape = f"{len(case.labels):,} graphs, {len(case.X):,} nodes, {len(case.u):,} edges, 3 x 64"
    yield from beside_pyg(case, "graphs", pairs, effort, shape)


def beside_pyg(
    case: Any, family: str, pairs: Callable[..., Record], effort: Effort, shape: str, only: str = ""
) -> Iterator[Record | Table]:
    """All forms of this program beside all of PyG's, then the memory of both.

    family   of the programs (gnn_worker.py)     pairs   measures one form of either     shape   of the case
    only     what a form of PyG's begins with
    """
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.npz")
        case.save(path)
        with Program(f"{family}:lockstep", path) as ours:
            try:
                with Program(f"{family}:pyg", path) as theirs:
                    asked = [form for form in theirs.forms if form.startswith(only)]
                    for mine, form in product(ours.forms, asked):
                        yield pairs(case, ours, theirs, mine, form, effort)
                    found.append(["PyTorch Geometric", f"{theirs.grown / 1e6:,.0f}", theirs.version])
            except Missing as why:
                found.append([f"PyTorch Geometric: {why}", "", ""])
            found.insert(0, ["Lockstep", f"{ours.grown / 1e6:,.0f}", ours.version])
    yield Table(
        f"Most memory above that of libraries and data ({shape})", ["program", "MB", "version"], found
    )


def pairs(case: GraphsCase, ours: Program, theirs: Program, mine: str, form: str, effort: Effort) -> Record:
    """Epochs of both by turns, from the first weights on."""
    ours.build(mine, 0.0)
    theirs.build(form, 0.0)
    note = ""
    if abs(ours.first_loss - theirs.first_loss) > SAME_LOSS * abs(ours.first_loss):
        note = f"OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
    kept = "A X kept" if mine == "kept" else "A X in each epoch"
    return record(
        f"{case.name}, 3 x 64, {kept}", f"PyG {form}", *by_turns(ours, theirs, effort), goal=GOAL, note=note
    )
