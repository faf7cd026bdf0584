"""Graphs split over the ranks, and whole on every rank: what a policy's steps take either way.

    mpirun -np 2 python bench/splitting.py [--rounds 9] [--batch 16]

Ratios of seconds, split over whole, medians of rounds by turns: above 1 every rank is faster by itself, which
is what app/partition/whole.py decides by the work of a step. Both make the same bits.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import msgspec  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.case.config import Case  # noqa: E402
from app.case.graph import GraphCase  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.comm.turns import by_turns  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.log import Log  # noqa: E402
from app.model.steps import make_step  # noqa: E402
from app.partition.whole import EVALUATED, LEARNED_ON, work_of  # noqa: E402
from app.problems.table import make_problem  # noqa: E402
from app.rl.qnet import QNetwork  # noqa: E402
from app.rl.rollout import rolled_out_one_at_a_time  # noqa: E402
from app.sparse.rowblock import RowBlock  # noqa: E402
from app.tasks.context import Context  # noqa: E402

GRAPHS = {
    "BA n=75": GraphCase(generator="ba", nodes=75, d=4),
    "BA n=300": GraphCase(generator="ba", nodes=300, d=4),
    "BA n=1,200": GraphCase(generator="ba", nodes=1200, d=4),
    "BA n=4,800": GraphCase(generator="ba", nodes=4800, d=4),
    "BA n=19,200": GraphCase(generator="ba", nodes=19200, d=4),
    "BA n=76,800": GraphCase(generator="ba", nodes=76800, d=4),
    "ER n=400 p=.15": GraphCase(generator="er", nodes=400, p=0.15),
    "ER n=1,920 p=.065": GraphCase(generator="er", nodes=1920, p=0.065),
}
ROLLED_OUT = 5000  # nodes of the largest graph that is solved one node at a time
KINDS = ("gradient step", "evaluation", "whole solution")


def main() -> None:
    """Measure every graph; print a table. Ranks: all call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    world = Group(MPI.COMM_WORLD, HostDevice())
    tell = partial(print, flush=True) if world.rank == 0 else lambda words: None
    tell(f"{world.size} ranks, minibatches of {options.batch}; split over whole (whole, ms)")
    tell(f"not split: gradient steps up to {LEARNED_ON} rows of work, evaluations up to {EVALUATED}")
    tell(f"| graph | work, rows | {' | '.join(KINDS)} |")
    tell("|---|---|---|---|---|")
    for name, table in GRAPHS.items():
        work, pairs = steps_of(world, table, options.batch)
        shown = [ratio(world, *pair, options.rounds) if pair else "-" for pair in pairs]
        tell(f"| {name} | {work:.0f} | {' | '.join(shown)} |")


Action = Callable[[], object]


def steps_of(world: Group, table: GraphCase, batch: int) -> tuple[float, list[tuple[Action, Action] | None]]:
    """The work of an evaluation, and (split, whole) of each kind of step; None: not measured."""
    case = Case(graph=table)
    problem = make_problem("mvc")
    context, net = Context(case, world, Log(False), None), QNetwork(case.policy, problem)
    (loaded,) = context.load(table, "instances")
    held = [
        (group, context.state_rows_on(group, [loaded], problem, case.policy.dimension)[0])
        for group in (world, world.alone())
    ]
    agent = msgspec.structs.replace(case.agent, batch=batch)
    learn, evaluate = (
        tuple(make_step(group, net, agent, block, states, 1).run for group, block in held)
        for states in (batch, 0)
    )
    params = net.new_parameters(world.device, 1)
    roll = tuple(partial(_rolled_out, group, net, params, block) for group, block in held)
    work = work_of(loaded.graph.n, 2 * loaded.graph.edges)
    return work, [learn, evaluate, roll if loaded.graph.n <= ROLLED_OUT else None]


def _rolled_out(group: Group, net: QNetwork, params: object, block: RowBlock) -> object:
    return rolled_out_one_at_a_time(group, net, params, [block])


def ratio(world: Group, split: Action, whole: Action, rounds: int) -> str:
    """Median and quartiles of the rounds' ratios, and the milliseconds of the second. Ranks: all call."""
    taken = by_turns(world, {"split": split, "whole": whole}, rounds)
    ratios = sorted(a / b for a, b in zip(taken["split"], taken["whole"]))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return f"{median(ratios):.2f} [{low:.2f}, {high:.2f}] ({1e3 * median(taken['whole']):.2f})"


if __name__ == "__main__":
    main()
