"""Scores that follow the selections, one node at a time: rows of two states kept, and compiled steps."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from app.case.graph import GraphCase
from app.partition.generated import generate_set
from app.problems.table import make_problem
from app.rl import rollout
from app.rl.incremental import LiveScores
from app.rl.incremental_rows import PlainRows
from app.rl.qnet import QNetwork
from app.rl.rollout import Rollout, roll_out
from app.rl.weights import default_weights, load_weights
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.harness import Effort, Record, compare

SPARSE = GraphCase(generator="geometric", nodes=20_000, d=2, generator_seed=1)
HUBS = GraphCase(generator="chung_lu", nodes=20_000, d=4, generator_seed=1)


class OneState(LiveScores):
    """All rows anew whenever the state moves."""

    def _turned(self) -> bool:
        if not self.follows_state or self._state() == self.seen:
            return False
        self.refresh()
        return True


class PlainScores(LiveScores):
    """Rows and steps in NumPy."""

    def _kind(self) -> Any:
        return PlainRows


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """For each problem and graph a ratio, and whether the choices are the same."""
    group = subjects.open_group()
    effort = replace(effort, pairs=min(effort.pairs, 7), least=min(effort.least, 3))
    for name, graph in (("geometric n=20,000 d=2", SPARSE), ("Chung-Lu n=20,000 d=4", HUBS)):
        loaded = generate_set(group, graph, 0, "bench")[0]
        block = RowBlock(group, loaded.graph, loaded.rows, "auto")
        for problem in ("mvc", "mis", "mds"):
            yield _record(effort, group, block, f"{problem}, {name}", "one state's rows", problem, OneState)
            if problem == "mds":
                yield _record(effort, group, block, f"{problem}, {name}", "NumPy", problem, PlainScores)


def _record(
    effort: Effort, group: Any, block: RowBlock, subject: str, beside: str, problem: str, kind: type
) -> Record:
    saved = load_weights(default_weights(problem))
    net = QNetwork(saved.policy, make_problem(problem))
    params = subjects.parameters(group, net, saved.arrays)
    found: dict[type, Rollout] = {}

    def roll(scores: type) -> None:
        rollout.LiveScores = scores
        found[scores] = roll_out(group, net, params, block, "single", 1.0)
        rollout.LiveScores = LiveScores

    record = compare(subject, beside, lambda i: roll(LiveScores), lambda i: roll(kind), effort)
    same = np.array_equal(found[LiveScores].chosen_at_own, found[kind].chosen_at_own)
    record.note = f"{found[kind].evaluations} selections, {'the same' if same else 'OTHER'} choices"
    return record
