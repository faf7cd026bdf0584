"""What `make bench` runs: this program beside plain PyTorch, beside itself, and beside the memory bus.

    python bench/speed.py [PART ...] [--quick]
    mpirun -np 2 python bench/speed.py ranks [--quick]

Records go to runs/bench/PART.json, and the tables of all recorded parts to docs/measurements.md. --quick
takes few pairs, writes to runs/bench/quick/ and leaves the document alone.
"""

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import cli

cli.limit_threads()

from mpi4py import MPI  # noqa: E402

from bench import harness  # noqa: E402

PARTS = {
    "evaluation": "Policy evaluation beside PyTorch",
    "training": "Training step beside PyTorch",
    "solve": "A whole solution, one node at a time",
    "products": "The sparse product against the memory bus",
    "compaction": "Compaction of the residual graph",
    "ranks": "Two ranks against one",
}


def main() -> None:
    """Run the parts that were asked for. Ranks: all call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="few pairs; the document stays as it is")
    asked = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    for part in asked.parts or [name for name in PARTS if (name == "ranks") == (ranks > 1)]:
        if (part == "ranks") != (ranks > 1):
            parser.error("the part ranks, and no other, runs on several ranks (mpirun -np 2)")
        run_part(part, asked.quick)


def run_part(part: str, quick: bool) -> None:
    """Measure one part, and write what came of it on rank 0. Ranks: all call."""
    module = importlib.import_module(f"bench.{part}")
    records, speaks = [], MPI.COMM_WORLD.Get_rank() == 0
    if speaks:
        print(f"---- {part}: {PARTS[part]}", flush=True)
    for record in module.measure(harness.QUICK if quick else harness.FULL, quick):
        records.append(record)
        if speaks:
            print(record.line(), flush=True)
    if not speaks:
        return
    folder = harness.RECORDS / "quick" if quick else harness.RECORDS
    command = harness.command_line(MPI.COMM_WORLD.Get_size())
    harness.save(part, records, command, module.about(), folder)
    if not quick:
        harness.write_section(PARTS, folder, harness.DOCUMENT)


if __name__ == "__main__":
    main()
