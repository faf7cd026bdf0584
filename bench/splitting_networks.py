"""Graphs split over the ranks, or whole on rank 0 while the others rest: what a network's epochs take.

    mpirun -np 2 python bench/splitting_networks.py [--rounds 9] ["inputs/gcn.toml graph.nodes=1000" ...]

Each case of run.task = "classify" is a line of a file and settings. Ratios of seconds, whole over split,
medians of rounds by turns with quartiles: below 1 one rank is faster by itself. Beside them the ratio of
the model, which app/model/whole.py decides by. Both make the same bits.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import msgspec  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.case.config import is_relational  # noqa: E402
from app.case.file import load  # noqa: E402
from app.checkpoint.keeper import Nothing  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.comm.turns import by_turns  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.gnn.rgcn.links import train_links  # noqa: E402
from app.gnn.rgcn.training import Course, train_rgcn  # noqa: E402
from app.graphs.triples.relational import relational_graph  # noqa: E402
from app.log import Log  # noqa: E402
from app.model.defaults import DEFAULTS  # noqa: E402
from app.model.node_plan import on_one_rank, training_by  # noqa: E402
from app.model.rates import Rates  # noqa: E402
from app.model.rgcn_work import slowest  # noqa: E402
from app.model.whole import WORTH, gained  # noqa: E402
from app.tasks.context import Context  # noqa: E402
from app.tasks.levels.table import LEVELS  # noqa: E402
from app.tasks.levels.whole import inputs_of, stored_of  # noqa: E402
from app.tasks.relational_plan import classes_plan, links_plan, split_of  # noqa: E402
from app.tasks.rgcn_inputs import load_triples, open_features  # noqa: E402

INPUTS = Path(__file__).resolve().parent.parent / "inputs"
CASES = (
    *(f"gcn.toml graph.nodes={n}" for n in (1000, 4000, 16000, 64000)),
    "gcn.toml gnn.depth=8",
    *(f"gcn.toml gnn.hidden=128 graph.nodes={n}" for n in (500, 2000, 8000)),
    *(f"gcn.toml gnn.model=gat graph.nodes={n}" for n in (1000, 4000)),
    *(f"graphs.toml graph.count={n}" for n in (100, 300)),
    *(f"edges.toml graph.nodes={n}" for n in (250, 1000, 4000)),
    *(f"links.toml graph.nodes={n}" for n in (500, 2000)),
    "recommend.toml",
    *(f"embed.toml graph.nodes={n}" for n in (500, 4000)),
    *(f"rgcn.toml rgcn.labelled=300 graph.nodes={n}" for n in (500, 2000)),
    *(f"rgcn_links.toml graph.nodes={n}" for n in (200, 1000)),
)
EPOCHS = 5  # in a row, of which the median counts
Action = Callable[[], float]


def main() -> None:
    """Measure every case; print a table. Ranks: all call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("cases", nargs="*", default=CASES)
    options = parser.parse_args()
    world = Group(MPI.COMM_WORLD, HostDevice())
    if world.rank == 0:
        print(f"{world.size} ranks; not split: ratios of the model below {WORTH:g}")
        print(
            "| case | whole / split, by the model | whole / split | whole, ms |\n|---|---|---|---|",
            flush=True,
        )
    for text in options.cases:
        name, *settings = text.split()
        path = name if "/" in name else str(INPUTS / name)
        case = load(path, [*settings, "run.device=cpu"])
        make = _relational if is_relational(case) else _of_levels
        share, (split, whole) = make(Context(case, world, Log(False), None))
        found = ratio(world, split, whole, options.rounds)
        if world.rank == 0:
            print(f"| {text} | {share:.2f} | {found} |", flush=True)


def _of_levels(context: Context) -> tuple[float, tuple[Action, Action]]:
    """What splitting gains by the model, and epochs on a graph that is split, or whole."""
    case, group = context.case, context.group
    examples = LEVELS[case.gnn.level](context)
    graph, inputs = examples.loaded.graph, inputs_of(case, examples, stored_of(context, examples), None)
    training = training_by(case, graph.name, graph.n, 2 * graph.edges, inputs, group.size, group.device)
    terms = on_one_rank(case, training).mean_epoch(0), training.mean_epoch(training.layout.heaviest)
    actions = []
    for each, own in ((context, examples), (context.whole(), examples.whole(group))):
        own = own.drawn(each)
        network = own.classifier(each, case.gnn, own.rows(each, case.gnn), case.seed)
        actions.append(_clocked(network.epoch))
    return gained(*terms, group.size), (actions[0], _by_first(group, actions[1]))


def _by_first(world: Group, action: Action) -> Action:
    """The same on rank 0 alone, while the others rest."""

    def run() -> float:
        seconds = action() if world.rank == 0 else 0.0
        world.rest()
        return seconds

    return run


def _clocked(epoch: Callable[[int], Any]) -> Action:
    """The median seconds of some epochs in a row."""

    def run() -> float:
        marks = [time.perf_counter()]
        for number in range(1, EPOCHS + 1):
            epoch(number)
            marks.append(time.perf_counter())
        return median(np.diff(marks))

    return run


class Marks(Nothing):
    """A keeper that notes when epochs begin."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def at(self, step: int, key: str = "", state: Any = None, now: bool = False) -> None:
        """See Keeper."""
        self.times.append(time.perf_counter())


def _relational(context: Context) -> tuple[float, tuple[Action, Action]]:
    """The same of triples."""
    case, world = context.case, context.group
    rgcn = msgspec.structs.replace(case.rgcn, epochs=EPOCHS + 1, evaluate_every=EPOCHS + 1)
    triples, labels = load_triples(context)
    if rgcn.goal == "links":
        split = split_of(case, rgcn, triples)
        plans = [links_plan(rgcn, ranks, triples, split) for ranks in (1, world.size)]
        train = lambda group, marks: train_links(group, triples, split, rgcn, 1, course=Course(keeper=marks))  # noqa: E731
    else:
        graph, inputs = relational_graph(triples, rgcn.inverse, rgcn.min_edges), open_features(case, triples)
        counts = len(triples), graph, labels, inputs, 0
        plans = [classes_plan(rgcn, ranks, *counts) for ranks in (1, world.size)]
        train = lambda group, marks: train_rgcn(  # noqa: E731
            group, graph, labels, rgcn, 1, inputs=inputs, course=Course(keeper=marks)
        )
    shared = slowest(Rates(DEFAULTS, world.size), plans[1].training.epochs())
    share = gained(plans[0].training.epochs()[0], shared, world.size)

    def clocked(group: Group) -> Action:
        def run() -> float:
            marks = Marks()
            train(group, marks)
            return median(np.diff(marks.times))

        return run

    return share, (clocked(world), _by_first(world, clocked(world.alone())))


def ratio(world: Group, split: Action, whole: Action, rounds: int) -> str:
    """Median and quartiles of the rounds' ratios, and the milliseconds of the second. Ranks: all call."""
    taken: dict[str, list[float]] = {"split": [], "whole": []}
    actions = {
        "split": lambda: taken["split"].append(split()), "whole": lambda: taken["whole"].append(whole())
    }  # fmt: skip
    by_turns(world, actions, rounds)
    slower = {
        name: world.max_integers(np.rint(1e9 * np.array(values[1:])).astype(np.int64))
        for name, values in taken.items()
    }
    ratios = sorted((slower["whole"] / slower["split"]).tolist())
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return f"{median(ratios):.2f} [{low:.2f}, {high:.2f}] | {1e-6 * median(slower['whole'].tolist()):.2f}"


if __name__ == "__main__":
    main()
