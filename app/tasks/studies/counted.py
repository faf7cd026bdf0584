"""A training's seconds on more ranks than run, by counts: by the performance model, or by a replica's share.

Spatial parallelism: seconds of the agent follow the model of app/model/ (its rates measured on the running
ranks), those of the environment stay: a step costs the degree of a node, and a message. Data parallelism: a
training of D replicas on fewer groups plays several in turn; on as many groups each plays one, and nothing
else changes.
"""

from functools import cache
from typing import Any

from msgspec import structs

from app.case.config import Case
from app.model.curve import Machine, StepKind, curve
from app.model.layout import count
from app.model.rates import Calibration, Network
from app.partition.assemble import gather_whole
from app.partition.generated import generate_set
from app.problems.table import problem_of
from app.rl.qnet import QNetwork
from app.tasks.context import Context


def counted_seconds(
    context: Context, case: Case, row: dict[str, Any], ranks: int, calibration: Calibration
) -> dict[str, Any] | None:
    """The line of a training that reached its targets, on `ranks` ranks; None where counts cannot say.

    case   of the training     row   its line: agent_s, environment_s, seconds
    Ranks  all call
    """
    running, replicas = context.group.size, case.parallel.data
    if case.study.alone or ranks <= running or case.parallel.spatial or case.train.environment == "scan":
        return None
    if replicas == 1:
        factor = _agent_factor(context, case, running, ranks, calibration)
        agent, environment = factor * row["agent_s"], row["environment_s"]
    elif replicas == ranks and replicas % running == 0:
        turns = replicas // running
        agent, environment = row["agent_s"] / turns, row["environment_s"] / turns
    else:
        return None
    changed = {"ranks": ranks, "agent_s": agent, "environment_s": environment, "processor_s": None}
    return {**row, **changed, "seconds": agent + environment}


def _agent_factor(context: Context, case: Case, running: int, ranks: int, calibration: Calibration) -> float:
    """Seconds of an evaluation and a gradient step on `ranks` ranks over those on the running ones."""
    one = structs.replace(case.graph, count=1)
    (loaded,) = generate_set(context.group, one, case.seed, "training")
    whole = gather_whole(context.group, loaded.graph, loaded.rows)
    parallel, width = case.parallel, case.policy.dimension
    layouts = cache(lambda p: count(whole, p, parallel.exchange, parallel.partition, width))
    net = QNetwork(case.policy, problem_of(case))
    seconds = dict.fromkeys((running, ranks), 0.0)
    for batch in (0, case.agent.batch):
        machine = Machine(calibration, Network())
        for line in curve(machine, net, layouts, list(seconds), StepKind(batch, case.agent.double)):
            seconds[line["ranks"]] += line["seconds"]
    return seconds[ranks] / seconds[running]
