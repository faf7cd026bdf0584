"""Searches for tours or cuts that meet against searches that do not, at equal CPU time of one process.

    python bench/meetings.py FILE... [--searches 4] [--seconds 15] [--seeds 3]

A FILE is a TSPLIB file (.tsp), uniform:N:SEED (cities), or a graph whose cut is searched. `one` is a single
search that has the time of all together. Values are the best of all searches, one for each seed.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from mpi4py import MPI  # noqa: E402

from app.case.file import build  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.log import Log  # noqa: E402
from app.partition.streams import load_stream  # noqa: E402
from app.search.cut.search import CutSearch  # noqa: E402
from app.search.tour.search import TourSearch  # noqa: E402
from app.solver.meetings import Meetings  # noqa: E402
from app.tasks.context import Context, open_group  # noqa: E402
from app.toolbox import Search  # noqa: E402
from bench.equal_time_tours import read as read_metric  # noqa: E402

Maker = Callable[[int], Search]


def main() -> None:
    """Measure every file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--searches", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each search")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| | apart | meeting | one |\n|---|---|---|---|")
    for name in options.files:
        make, pick = maker(name)
        cells: dict[str, list[int]] = {"apart": [], "meeting": [], "one": []}
        for seed in range(0, 100 * options.seeds, 100):
            seconds = options.searches * options.seconds
            for kind, values in cells.items():
                count = 1 if kind == "one" else options.searches
                searches = [make(seed + i) for i in range(count)]
                follow(searches, seconds, kind == "meeting")
                values.append(pick(search.best for search in searches))
        said = (", ".join(f"{value:,}" for value in values) for values in cells.values())
        print(f"| {Path(name).name} | " + " | ".join(said) + " |", flush=True)


def maker(name: str) -> tuple[Maker, Callable[..., int]]:
    """What makes a search from a seed, and which of two values is the better one."""
    if name.startswith("uniform:") or name.endswith(".tsp"):
        metric = read_metric(name)
        return lambda seed: TourSearch(metric, seed), min
    case = build({"problem.name": "maxcut", "graph.path": []})
    context = Context(case, open_group(MPI.COMM_SELF, case), Log(False), None)
    graph = load_stream(context.group, open_edges(name), case.graph, case).graph
    return lambda seed: CutSearch(graph, seed), max


def follow(searches: list[Search], seconds: float, meet: bool) -> None:
    """All searches, the same steps each, for so much process CPU time together."""
    begun, every = time.process_time(), searches[0].meeting_steps
    group = Group(MPI.COMM_SELF, HostDevice())
    meetings = Meetings(group, dict(enumerate(searches)), len(searches) if meet else 1)
    steps = 0
    while time.process_time() - begun < seconds and not any(search.done for search in searches):
        for search in searches:
            search.run(every)
        steps += every
        meetings.hold(steps)


if __name__ == "__main__":
    main()
