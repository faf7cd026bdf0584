"""References: what approximation ratios are taken to, found by the program's own exact and local search."""

from dataclasses import dataclass

import msgspec
import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.log import Log
from app.partition.assemble import gather_whole
from app.partition.loaded import Loaded
from app.problems.table import problem_of
from app.solver.pipeline import Pipeline
from app.toolbox import Asked, Instance


@dataclass(frozen=True)
class References:
    """Values of the best solutions known of some graphs, and which are proved optimal; both [graphs]."""

    values: np.ndarray
    proved: np.ndarray

    def words(self) -> str:
        """What the ratios are to."""
        if self.proved.all():
            return "the optimum, proved for each"
        return f"the best found ({int(self.proved.sum())} of {len(self.proved)} proved optimal)"


def ratios_to(reference: np.ndarray, values: np.ndarray, sense: str) -> np.ndarray:
    """Approximation ratios of objectives, from 1 for the reference upwards: of two zeros 1, and infinite
    where one of them is 0. All [graphs]."""
    over, under = (reference, values) if sense == "maximise" else (values, reference)
    found = np.where(over == under, 1.0, np.inf)
    np.divide(over, under, out=found, where=under != 0)
    return found


def find_references(group: Group, case: Case, graphs: list[Loaded]) -> References:
    """Solve each graph without the policy, by the budget of [search]. Ranks: all call; identical on all."""
    problem = problem_of(case)
    search = msgspec.structs.replace(case.search, start="greedy", inside="", outside="")
    pipeline = Pipeline(group, Log(False), msgspec.structs.replace(case, search=search), None, None)
    values, proved = [], []
    for loaded in graphs:
        whole = gather_whole(group, loaded.graph, loaded.rows)
        instance = Instance(whole, loaded.metric, asked=Asked.of(case.problem))
        answer = pipeline.answer(problem.toolbox(instance), whole.name)
        values.append(answer.value)
        proved.append(answer.value == answer.bound)
    return References(np.array(values), np.array(proved))
