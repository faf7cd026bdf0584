"""Two ranks against one on the cores of this machine, beside the bare product with an all-gather.

In each round rank 0 works alone while the others sleep, then all work together; which comes first changes
each time. A step's speedup is held against that of the bare product of the same width in the same round: what
is lost beyond it is this program's own.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import mpi4py
import numpy as np
from mpi4py import MPI

from app.comm.guard import digest
from app.rng import stream
from app.sparse.batch import StateBatch
from bench import subjects
from bench.harness import Effort, Record, quartiles, seconds_of

GOAL = ">= 0.9"
TAG = 17
NAP_S = 0.002  # a sleeping rank looks up this often
# graph, transitions of a training step (0: a policy evaluation)
CASES = (("ER n=7,200 p=.15", 0), ("ER n=2,000 p=.15", 96), ("BA n=14,400 d=4", 96))
WORLD = MPI.COMM_WORLD


@dataclass
class Work:
    """What one rank does alone (None on the others) and what all do together."""

    alone: Callable[[], Any] | None
    together: Callable[[], Any]


def about() -> dict[str, str]:
    """Versions that matter."""
    library = MPI.Get_library_version().split("\n")[0].split(",")[0].strip()
    return {"numpy": np.__version__, "mpi4py": mpi4py.__version__, "MPI": library}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """An evaluation and two training steps. Ranks: all call."""
    rounds = effort if quick else replace(effort, pairs=41, least=21)
    for name, batch in CASES[2:] if quick else CASES:
        size = 8 if quick else batch
        step = _training(name, size) if batch else _evaluation(name)
        bare = _bare(name, max(size, 1))
        what = f"{name}, training step B={size}" if batch else f"{name}, policy evaluation"
        yield compare_ranks(what, step, bare, rounds)


# ---- the work ---------------------------------------------------------------------------------------------


def sides(make: Callable[[Any], Callable[[], Any]]) -> Work:
    """The same work on rank 0 alone and on all ranks. Ranks: all call."""
    together = make(subjects.open_group(WORLD))
    alone = make(subjects.open_group(MPI.COMM_SELF)) if WORLD.Get_rank() == 0 else None
    return Work(alone, together)


def _evaluation(name: str) -> Work:
    """A full policy evaluation of the whole graph."""

    def make(group: Any) -> Callable[[], Any]:
        net, block = subjects.paper_network(), subjects.load_block(group, name)
        params = net.new_parameters(group.device, 1)
        batch = StateBatch(group, [(block, 1)])
        env = subjects.state_after(group, block, np.empty(0, np.int64))
        return lambda: subjects.evaluate(group, net, params, batch, env)

    return sides(make)


def _training(name: str, size: int) -> Work:
    """A training step of `size` transitions; returns a digest of the weights after it."""

    def make(group: Any) -> Callable[[], Any]:
        agent = subjects.paper_agent(group, subjects.load_block(group, name), subjects.paper_network())
        sample = subjects.draw_samples(agent, size, 1)[0]

        def step() -> str:
            agent.learn(sample)
            return digest(agent.params.host())

        return step

    return sides(make)


def _bare(name: str, states: int) -> Work:
    """One product of the adjacency with [n, K states] numbers, all rows brought to all ranks before it."""

    def make(group: Any) -> Callable[[], Any]:
        block = subjects.load_block(group, name, exchange="gather")
        batch = StateBatch(group, [(block, states)])
        K = subjects.PAPER_POLICY.dimension
        X_own = stream(0, "bench/bare").random((batch.rows, K), dtype=np.float32)
        return lambda: batch.times(X_own)

    return sides(make)


# ---- by turns ---------------------------------------------------------------------------------------------


def _alone(work: Work) -> float:
    """Seconds of rank 0's work while the others sleep. Ranks: all call; rank 0 knows."""
    WORLD.Barrier()
    done = np.zeros(1)
    if WORLD.Get_rank() > 0:
        while not WORLD.Iprobe(source=0, tag=TAG):
            time.sleep(NAP_S)
        WORLD.Recv(done, source=0, tag=TAG)
    else:
        done[0] = seconds_of(work.alone, clock=time.perf_counter)
        for rank in range(1, WORLD.Get_size()):
            WORLD.Send(done, dest=rank, tag=TAG)
    return float(done[0])


def _together(work: Work) -> float:
    """Seconds until all ranks are done. Ranks: all call."""

    def step() -> None:
        work.together()
        WORLD.Barrier()

    WORLD.Barrier()
    return seconds_of(step, clock=time.perf_counter)


def _speedup(work: Work, alone_first: bool) -> tuple[float, float]:
    """Seconds of one rank and of all, one after the other."""
    if alone_first:
        return _alone(work), _together(work)
    together = _together(work)
    return _alone(work), together


def compare_ranks(case: str, step: Work, bare: Work, effort: Effort) -> Record:
    """Rounds of both; the ratio is the step's speedup over that of the bare product. Ranks: all call."""
    same = _agree(step)
    steps, bares = [], []
    start = time.perf_counter()
    going = np.ones(1, dtype=np.int64)
    while going[0]:
        first = len(steps) % 2 == 0
        steps.append(_speedup(step, first))
        bares.append(_speedup(bare, first))
        going[0] = not effort.enough(len(steps), time.perf_counter() - start)
        WORLD.Bcast(going, root=0)
    gain, bare_gain = ([one / all_ for one, all_ in pairs] for pairs in (steps, bares))
    ratio = quartiles([a / b for a, b in zip(gain, bare_gain)])
    note = f"speedup {quartiles(gain)[1]:.2f}, of the bare product {quartiles(bare_gain)[1]:.2f}; {same}"
    one, all_ = (quartiles(list(side))[1] for side in zip(*steps))
    return Record(case, "one rank, over the bare product's", ratio, len(steps), all_, one, GOAL, note)


def _agree(step: Work) -> str:
    """Whether both ways give the same result, which is also their warm-up. Ranks: all call."""
    together = step.together()
    same = np.ones(1, dtype=np.int64)
    if step.alone is not None:
        same[0] = step.alone() == together
    WORLD.Bcast(same, root=0)
    return "same bits" if same[0] else "OTHER BITS"
