"""Task train: learn a policy on training graphs, beside the plain baselines on held-back graphs."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from app.case.graph import GraphCase
from app.checkpoint.identity import TRAINED
from app.checkpoint.store import State
from app.comm.grid import Grid
from app.comm.group import Group
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.log import Log, ToGo
from app.partition.generated import with_shared_blocks
from app.partition.loaded import Loaded
from app.partition.whole import LEARNED_ON, learning_work, sharers
from app.plots.runs import plot_learning
from app.problems.problem import Problem, state_size
from app.problems.table import WEIGHED, problem_of
from app.rl.qnet import QNetwork
from app.rl.training import Observers, Recorder, Training, train_policy, whole_or_float
from app.rl.weights import save_weights
from app.sparse.rowblock import RowBlock
from app.tasks.compare import compare_graphs, spatial_of
from app.tasks.context import KEPT_FIRST, LEARNED, Context

SAVED = ("best_step", "best_total", "records", "replay_bytes", "paper_replay_bytes")  # of a Training
RECORDED = ("step", "episodes", "gradient_steps", "loss", "held_back_nodes", "best_step")  # of every learner


def run_train(context: Context) -> dict[str, Any]:
    """Train, save weights.npz, and return the task's part of result.json. Ranks: all call."""
    grid = context.grid()
    training, held_back = learn(context, grid)
    with grid.together("comparing"):
        compared = compare_graphs(context.within(grid), held_back)
    totals = {name: whole_or_float(math.fsum(values)) for name, values in compared.items()}
    context.log.info("held-back graphs: %.10g learned; %s", training.best_total, _listed(totals))
    weights = save_training(context, training)
    if context.folder is not None and context.case.output.plots:
        sense = problem_of(context.case).sense
        plot_learning(context.folder, context.log, training.records, totals, sense)
    return {
        "digest": weights,
        "best_step": training.best_step,
        "held_back": {"graphs": len(held_back), "learned": training.best_total, **totals},
        "instances": [],
    }


def _listed(totals: dict[str, float]) -> str:
    return ", ".join(f"{value:.10g} {name}" for name, value in totals.items()) or "no baselines"


def learn(
    context: Context, grid: Grid, given: Callable[[Context], list[Loaded]] | None = None
) -> tuple[Training, list[Loaded]]:
    """Load training and held-back graphs and train.

    given     loads graphs from memory, of which some are held back; None: those that the case names
    returns   what was learned, and the held-back graphs on the ranks of this one's group
    Ranks     all call; identical on all
    """
    case, log, inner = context.case, context.log, context.within(grid)
    problem = problem_of(case)
    with grid.together("loading the training graphs"):
        if given is None:
            graphs, held_back = training_graphs(inner, case.train.graphs or case.graph)
        else:
            graphs, held_back = hold_back(inner, given(inner))
        group, blocks, held = rows_to_learn_on(inner, problem, graphs, held_back)
    if group.size < inner.group.size:
        grid = grid.unsplit()
    if grid.replicas > 1:
        log.info("%s", grid)
    nodes, edges = sum(g.graph.n for g in graphs), sum(g.graph.edges for g in graphs)
    whole = "; too small to be split: every rank has them all" if group.size < inner.group.size else ""
    whole += ", and the first one learns for all" if grid.led else ""
    log.info(
        "training on %d graphs, %d nodes, %d edges; %d held back%s",
        len(graphs), nodes, edges, len(held_back), whole,
    )  # fmt: skip

    training = _trained_before(context, problem)
    if training is None:
        observers = Observers(_recorder(context), tell=partial(_tell, log))
        with log.phase("train"):
            training = train_policy(grid.group, case, problem, blocks, held, observers, context.keeper, grid)
        _keep(context, training)
    log.info(
        "trained %d steps; best weights from step %d; replay memory %d bytes (RL4GO's tuples: %d)",
        case.train.steps, training.best_step, training.replay_bytes, training.paper_replay_bytes,
    )  # fmt: skip
    _warn_of_untrained(context, training)
    return training, held_back


def rows_to_learn_on(
    context: Context, problem: Problem, graphs: list[Loaded], held_back: list[Loaded]
) -> tuple[Group, list[RowBlock], list[RowBlock]]:
    """The device rows of the training and the held-back graphs, and the ranks that they are split over.

    Ranks   all of a group call
    """
    case, count = context.case, len(graphs)
    nodes, entries = (sum(each) / count for each in zip(*(state_size(problem, g.graph) for g in graphs)))
    work = learning_work(case, nodes, entries)
    group = sharers(context.group, spatial_of(context, graphs + held_back), work, LEARNED_ON)
    width = case.policy.dimension
    blocks, held = (context.state_rows_on(group, part, problem, width) for part in (graphs, held_back))
    return group, blocks, held


def _warn_of_untrained(context: Context, training: Training) -> None:
    """Say where the weights that are kept are the first ones, drawn at random."""
    agent, steps = context.case.agent, context.case.train.steps
    waits = {"dqn": f"agent.warmup = {agent.warmup}", "ppo": f"agent.rollout_steps = {agent.rollout_steps}"}
    if agent.learner == "dqn" and not agent.gradient_steps:
        context.warn("agent.gradient_steps: 0, so that nothing was learned; at least 1 would be right")
    elif not training.records[-1]["gradient_steps"]:
        waited = waits.get(agent.learner, f"{agent.learner} learns from whole episodes")
        right = f"a longer training would be right ({waited})"
        context.warn(f"train.steps: no gradient step in {steps} steps, so that nothing was learned; {right}")
    elif not training.best_step and (context.called or context.case.run.task != "train"):
        context.warn(f"{KEPT_FIRST}; more train.steps, or another agent.learning_rate, may")


def _recorder(context: Context) -> Recorder:
    """What training calls with each evaluation: a row of metrics.csv and, now and then, a line."""
    log, to_go = context.log, ToGo(context.case.train.steps)

    def record(row: dict[str, float]) -> None:
        log.record(phase="train", sent_bytes=sum(context.group.sent_bytes.values()), **row)
        loss = "     -" if math.isnan(row["loss"]) else f"{row['loss']:.4f}"
        noted = "".join(f"{name} {row[name]:.2f}  " for name in row if name not in RECORDED)
        log.progress(
            "step %6d  episode %4d  %sloss %s  held-back %.10g%s",
            row["step"], row["episodes"], noted, loss, row["held_back_nodes"], to_go(int(row["step"])),
        )  # fmt: skip

    return record


def _tell(log: Log, graphs: int, all_graphs: int, chosen: int) -> None:
    """How far an evaluation is."""
    log.progress("evaluating: %d of %d held-back graphs, %d nodes chosen", graphs, all_graphs, chosen)


def _keep(context: Context, training: Training) -> None:
    """Let checkpoints hold a training that is finished."""
    values = {key: getattr(training, key) for key in SAVED}
    values["steps"] = context.case.train.steps
    context.keeper.keep(TRAINED, State(values, training.weights))


def _trained_before(context: Context, problem: Problem) -> Training | None:
    """The training that an earlier part of the run has finished."""
    state = context.keeper.recall(TRAINED)
    if state is None:
        return None
    net = QNetwork(context.case.policy, problem)
    return Training(net, state.arrays, **{key: state.values[key] for key in SAVED})


def training_graphs(context: Context, table: GraphCase) -> tuple[list[Loaded], list[Loaded]]:
    """Training graphs, and graphs held back: those of [train.held_back], more generated ones, or the last
    files of the list. Ranks: all call."""
    if not table.generator:
        return hold_back(context, context.load(table, LEARNED))
    wanted = context.case.train.evaluate_graphs
    more = msgspec.structs.replace(table, count=wanted, path=[])
    judges = context.case.train.held_back or more
    return load_set(context, table, LEARNED), load_set(context, judges, "held-back")


def load_set(context: Context, table: GraphCase, purpose: str) -> list[Loaded]:
    """The graphs of a table, as batches may mix them; generated ones are so already. Ranks: all call."""
    loaded = context.load(table, purpose)
    return shared_blocks(context, loaded) if table.path else loaded


def shared_blocks(context: Context, graphs: list[Loaded]) -> list[Loaded]:
    """The graphs as policies see them and batches may mix them, cut as the case wants. Ranks: all call."""
    balance = context.case.parallel.partition
    seen = without_node_weights(context, graphs)
    return with_shared_blocks(context.group, seen, context.cost_model(), balance=balance)


def without_node_weights(context: Context, graphs: list[Loaded]) -> list[Loaded]:
    """The graphs without what their nodes weigh, which is said where the problem counts it, unless policies
    see it, too.
    """
    if problem_of(context.case).sees_weights:
        return graphs
    weighed = [each for each in graphs if each.graph.node_weights is not None]
    warn_of_unseen(context, [each.graph.name for each in weighed])
    return [
        each
        if each.graph.node_weights is None
        else replace(each, graph=replace(each.graph, node_weights=None))
        for each in graphs
    ]


def warn_of_unseen(context: Context, names: list[str]) -> None:
    """Say that the graphs of these names have node weights, where the problem counts them."""
    seen = problem_of(context.case).sees_weights
    if names and WEIGHED[context.case.problem.name] == "nodes" and not seen:
        whose = f"{names[0]} has" if len(names) == 1 else f"{names[0]} and {len(names) - 1} more have"
        said = "which a policy does not see: it learns, and is judged, by numbers of nodes"
        context.warn(f"{whose} node weights, {said}")


def hold_back(context: Context, loaded: list[Loaded]) -> tuple[list[Loaded], list[Loaded]]:
    """Graphs to train on, and the last ones, which are held back; none of them where there is a table of
    graphs to judge by. Ranks: all call."""
    wanted, table = context.case.train.evaluate_graphs, context.case.train.held_back
    loaded = shared_blocks(context, loaded)
    if not loaded:
        raise CaseError("train.graphs: no training graphs; set train.graphs.generator or train.graphs.path")
    if table is not None:
        return loaded, load_set(context, table, "held-back")
    held = max(1, min(wanted, len(loaded) // 5)) if len(loaded) > 1 else 0
    if not held:
        context.log.info("warning: one training graph, none to hold back: weights are judged on it")
    return (loaded[:-held], loaded[-held:]) if held else (loaded, loaded)


def save_training(context: Context, training: Training) -> str:
    """Write weights.npz where there is a folder; returns the digest of the weights. Ranks: all call."""
    case, folder = context.case, context.folder
    note = f"{case.run.name}, seed {case.seed}, best of {case.train.steps} steps at {training.best_step}"
    with raise_together(context.group, "writing the weights"):
        if folder is not None and context.group.rank == 0:
            save_weights(folder.file("weights.npz"), training.weights, case.policy, case.problem.name, note)
    return digest(training.weights)
