"""What `make bench` runs: this program beside PyTorch, PyG and DGL, beside itself, and beside the memory bus.

    python bench/speed.py [PART ...] [--quick] [--pairs N] [--only WORD ...] [--python PROGRAM=PATH ...]
    mpirun -np 2 python bench/speed.py [ranks] [gnn_ranks] [--quick]

Records go to runs/bench/PART.json, tables of all recorded parts to docs/measurements/speed.md. --quick
takes few pairs, writes to runs/bench/quick/ and leaves the document alone. --pairs takes N pairs of each
case, however long they last (default: 7 to 31, by the time they take). --only measures those cases of parts
gnn and training whose names have one of these words in them, writes to runs/bench/only/ and leaves the
document alone. --python names the interpreter of a program that parts gnn, gnn_gradients, rgcn, graphs,
links, edges and deep run in a process of its own (torch, pyg, dgl): default, the running one.
"""

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import threads

threads.limit_threads()

from mpi4py import MPI  # noqa: E402

from bench import harness  # noqa: E402

PARTS = {
    "evaluation": "Policy evaluation beside PyTorch",
    "training": "Training step beside PyTorch",
    "lessons": "Training steps in one compiled call",
    "solve": "A whole solution, one node at a time",
    "products": "The sparse product against the memory bus",
    "environments": "Training with 32 environments against one",
    "compaction": "Compaction of the residual graph",
    "distinct": "Distinct keys of an array",
    "follow": "Scores that follow the selections",
    "gnn": "Full-batch training of graph convolutional networks",
    "tiles": "Sparse products by tiles",
    "reach": "Training that leaves out what the loss does not depend on",
    "gnn_gradients": "Gradients of graph convolutional networks against float64",
    "rgcn": "Full-batch training of a relational network",
    "graphs": "Full-batch training on whole graphs",
    "links": "Full-batch link prediction",
    "edges": "Full-batch training with features of edges",
    "deep": "Deep networks and batch normalisation",
    "tours": "1-trees of points",
    "startup": "Start-up",
    "reading": "Reading graph files",
    "ranks": "Two ranks against one",
    "gnn_ranks": "Two ranks against one: full-batch training",
    "exact_ranks": "Two ranks against one: exact search",
}
WITH_ONLY = ("gnn", "training")  # parts whose cases --only chooses from
ON_RANKS = ("ranks", "gnn_ranks", "exact_ranks")  # parts that need several ranks; the others run on one


def main() -> None:
    """Run the parts that were asked for. Ranks: all call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few pairs; the document stays as it is")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs of each case")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="cases of gnn, training")
    parser.add_argument("--python", action="append", default=[], metavar="PROGRAM=PATH")
    asked = parser.parse_args()
    if asked.pairs is not None and asked.pairs < 1:
        parser.error(f"--pairs: must be at least 1, is {asked.pairs}")
    if asked.only and (not asked.parts or {*asked.parts} - {*WITH_ONLY}):
        parser.error(f"--only: chooses cases of {', '.join(WITH_ONLY)}; name these parts, and no others")
    if any("=" not in each for each in asked.python):
        parser.error("--python: must be PROGRAM=PATH, as in dgl=/opt/dgl/bin/python")
    harness.ONLY += asked.only
    harness.INTERPRETERS.update(each.split("=", 1) for each in asked.python)
    ranks = MPI.COMM_WORLD.Get_size()
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    for part in asked.parts or [name for name in PARTS if (name in ON_RANKS) == (ranks > 1)]:
        if (part in ON_RANKS) != (ranks > 1):
            parser.error(f"{', '.join(ON_RANKS)}, and no others, run on several ranks (mpirun -np 2)")
        run_part(part, asked.quick, asked.pairs)


def run_part(part: str, quick: bool, pairs: int | None) -> None:
    """Measure one part, and write what came of it on rank 0. Ranks: all call."""
    effort = harness.QUICK if quick else harness.FULL
    effort = harness.Effort(pairs, pairs, 0.0) if pairs else effort
    module = importlib.import_module(f"bench.{part}")
    found, speaks = [], MPI.COMM_WORLD.Get_rank() == 0
    if speaks:
        print(f"---- {part}: {PARTS[part]}", flush=True)
    for each in module.measure(effort, quick):
        found.append(each)
        if speaks:
            print(each.line(), flush=True)
    if not speaks:
        return
    some = "quick" if quick else "only" if harness.ONLY else ""  # rows that are not to take the place of all
    folder = harness.RECORDS / some
    command = harness.command_line(MPI.COMM_WORLD.Get_size())
    harness.save(part, found, command, module.about(), folder)
    if not found:
        print(f"no case was measured; --only {' '.join(harness.ONLY)}", flush=True)
    if not some:
        harness.write_section(PARTS, folder, harness.DOCUMENT)


if __name__ == "__main__":
    main()
