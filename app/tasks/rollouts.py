"""The policy alone (RL4GO Alg. 2): rollouts on row partitions of any size, each checked and accounted for."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.comm.guard import digest, raise_together
from app.errors import CaseError, LockstepError
from app.graphs.covering import HITTING, count_candidates
from app.graphs.fixed_point import whole_numbers
from app.graphs.ids import one_id
from app.graphs.quadratic import SPINS
from app.partition.generated import with_shared_blocks
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.partition.stands_for import is_covering, is_quadratic
from app.partition.whole import EVALUATED, followed_by, sharers, work_of
from app.problems.problem import Problem, state_size
from app.problems.table import UNTRAINED, WEIGHED
from app.rl.dynamics import follows_compiled
from app.rl.env import Environment
from app.rl.forest import ACROSS
from app.rl.rollout import (
    FRESH,
    Ending,
    FirstState,
    Rollout,
    Terms,
    drop_redundant,
    finished_rollout,
    one_at_a_time,
    roll_out,
)
from app.rl.rules import find_rule
from app.rl.select import single
from app.search.node_tools import refuse_weights
from app.solver.learned import ROLLOUTS, StartClock, StartLimits
from app.sparse.rowblock import RowBlock
from app.tasks.compare import (
    baseline_values,
    bound_of,
    seconds_of_baselines,
    seconds_of_bounds,
    spatial_of,
    whole_graph,
)
from app.tasks.context import Context
from app.tasks.entry import bound_and_gap, in_unit, is_weak
from app.tasks.names import written_ids
from app.tasks.policy import Policy
from app.tasks.solved import Solved
from app.tasks.tools import make_toolbox

COMPARED_NODES = 1024  # larger graphs have no rollout beside the pipeline
TIME_SHARE = 0.75  # of a time limit, for the policy and the greedy after it: then come the bounds
REST_SECONDS = 6e-7  # of that greedy, for each node and entry; 1e-6 where a few nodes have most of the edges
SIDE_BY_SIDE_NODES = 4096  # larger graphs are solved alone: their residual graphs are worth compacting


class Before(NamedTuple):
    """What was done of a graph before its policy is asked.

    chosen   [k] int64, nodes that are in the solution; None: the policy begins anew
    begun    when the solve did, by time.perf_counter
    share    of a time limit, for the policy and the greedy after it
    """

    chosen: np.ndarray | None
    begun: float
    share: float = TIME_SHARE


def follow_policy(
    context: Context, problem: Problem, policy: Policy, graphs: list[Loaded],
    known: dict[int, Solved] | None = None, before: Before | None = None,
) -> Iterator[tuple[Loaded, Solved]]:  # fmt: skip
    """Every graph with the policy's solution, in order. Ranks: all call; identical on all.

    known    solutions that an earlier part of the run has found, by id(loaded)
    before   of the only graph, what was done before the policy is asked
    """
    known = known or {}
    if problem.dynamics in ROLLOUTS:
        raise CaseError(
            f'{problem.name}: the policy alone chooses sets of nodes; right is search.solver = "full" with '
            "search.steps = 0, and a memory.whole_graph_mb that holds the graph"
        )
    todo = {id(loaded) for loaded in graphs if id(loaded) not in known}
    prices = {
        id(g): prices_of(context, problem, g) for g in graphs if id(g) in todo
    }  # refused before any work
    found = _solve_all(context, policy, graphs, todo, before)
    for loaded in graphs:
        if id(loaded) in known:
            yield loaded, known[id(loaded)]
        else:
            yield loaded, _account(context, problem, *next(found), prices.pop(id(loaded)))


@dataclass(frozen=True)
class Prices:
    """Node weights of a whole graph on every rank, [n] int64, in units."""

    weights: np.ndarray
    unit: float


def prices_of(context: Context, problem: Problem, loaded: Loaded) -> Prices | None:
    """The weights of nodes, where they count. Raises what they are refused for. Ranks: all call."""
    graph = loaded.graph
    if graph.node_weights is None or WEIGHED[problem.name] != "nodes":
        return None
    found = context.group.gather_host(np.ascontiguousarray(graph.node_weights), loaded.rows.row_counts())
    weights, unit = whole_numbers(found, f"{graph.name}: a node weight")
    ids = ids_everywhere(context.group, loaded.graph, loaded.rows)
    refuse_weights(weights, found, graph.name, problem.solution, partial(one_id, ids))
    return Prices(weights, unit)


def policy_alone(
    context: Context, problem: Problem, policy: Policy, graphs: list[Loaded], largest: int = 1
) -> dict[int, np.ndarray]:
    """Solutions [n] bool of the policy by itself on small graphs, by id(loaded), beside the baselines.

    largest   nodes of the largest small graph of a set of which these are a part
    returns   nothing under a time limit, with fixed or weighted nodes, where one heuristic is named, and
              where the learned start is the policy's own rollout
    Ranks     all call
    """
    search = context.case.search
    small = [g for g in graphs if is_small(g)]
    compared = search.baselines and not (
        search.seconds or search.inside or search.outside or search.heuristic
    )
    if not small or not compared or problem.dynamics in ROLLOUTS or problem.name in UNTRAINED:
        return {}
    with context.log.phase("policy"):
        mixable = with_shared_blocks(context.group, small, largest=largest)
        envs = _solve_side_by_side(context, policy, mixable)
    return {id(loaded): _whole_solution(_finished(context, env)) for loaded, env in zip(small, envs)}


def is_small(loaded: Loaded) -> bool:
    """Whether `policy_alone` has the policy solve this graph."""
    return loaded.graph.n <= COMPARED_NODES and loaded.graph.node_weights is None


def introduce(context: Context, loaded: Loaded) -> None:
    """One line on a graph: its size, and what its file held."""
    graph, counts, log = loaded.graph, loaded.counts, context.log
    if loaded.source == "cache":
        log.info("%s: from the cache in %s", graph.name, context.case.memory.cache)
    dropped = {"self loops": counts.loops, "repeats": counts.repeats}
    dropped["of the other direction"] = counts.reversed
    of = ", ".join(f"{count} {what}" for what, count in dropped.items() if count)
    if is_quadratic(context.case):
        what = "spin" if context.case.problem.name == SPINS else "variable"
        what += "s" if graph.n != 2 else ""
        log.info(
            "%s: %d %s, as a cut of %d nodes, %d edges", graph.name, graph.n - 1, what, graph.n, graph.edges
        )
        return
    if is_covering(context.case):
        chosen = context.group.max_integer(count_candidates(graph))
        left = graph.n - chosen - 1
        sets, elements = (left, chosen) if context.case.problem.name == HITTING else (chosen, left)
        log.info("%s: %d sets, %d elements, %d pairs", graph.name, sets, elements, graph.edges - chosen)
        return
    log.info(
        "%s: %d nodes, %d edges (%d edge lines%s)%s", graph.name, graph.n, graph.edges, counts.lines,
        f": {of}" if of else "", ", complemented" if loaded.complemented else "",
    )  # fmt: skip


def _solve_all(
    context: Context, policy: Policy, graphs: list[Loaded], todo: set[int], before: Before | None = None
) -> Iterator[tuple[Loaded, Rollout, float]]:
    """(graph, solution, seconds) in order: small generated graphs side by side, others one by one.

    Under a limit of seconds or evaluations, which are those of each graph, all of them one by one.

    todo     id(loaded) of the graphs to solve
    before   see follow_policy
    """
    case = context.case
    generated = [g for g in graphs if g.source == "generator" and id(g) in todo]
    small = [g for g in generated if g.graph.n <= SIDE_BY_SIDE_NODES]
    together: dict[int, Environment] = {}
    start = time.perf_counter()
    limited = case.search.seconds or case.search.evaluations or before is not None
    if case.select.rule == "single" and small and not limited:
        with context.log.phase("policy"):
            envs = _solve_side_by_side(context, policy, small)
        together = {id(loaded): env for loaded, env in zip(small, envs)}
    share = (time.perf_counter() - start) / max(len(small), 1)
    for loaded in (g for g in graphs if id(g) in todo):
        env = together.get(id(loaded))
        if env is None:
            yield (loaded, *_solve_one(context, policy, loaded, before))
        else:
            yield loaded, _finished(context, env), share


def _solve_side_by_side(context: Context, policy: Policy, graphs: list[Loaded]) -> list[Environment]:
    """Graphs one node at a time, with a look at signals now and then. Ranks: all call."""
    blocks = _state_rows(context, policy, graphs, "single")
    envs, pieces = one_at_a_time(blocks[0].group, policy.net, policy.params, blocks)
    for _ in pieces:
        done, chosen = sum(env.done for env in envs), sum(env.steps for env in envs)
        context.log.progress("policy: %d of %d graphs, %d nodes chosen", done, len(envs), chosen)
        context.keeper.at(0)
    return envs


def _solve_one(
    context: Context, policy: Policy, loaded: Loaded, before: Before | None = None
) -> tuple[Rollout, float]:
    """One graph by the case's selection rule, with progress in the log."""
    case, log, graph = context.case, context.log, loaded.graph
    if before is None:
        introduce(context, loaded)
    if graph.node_weights is not None and not policy.net.problem.sees_weights:
        log.info("warning: %s has node weights, which the policy does not see", graph.name)
    (block,) = _state_rows(context, policy, [loaded], case.select.rule)
    mode = block.plan.mode
    if mode in ("halo", "staged") and not policy.net.problem.complemented:
        loaded.release()  # the block has numbered the columns anew

    made, start = 0, time.perf_counter() if before is None else before.begun
    share = TIME_SHARE if before is None else before.share
    stop = _Stop(context, block, lambda: made, share, time.perf_counter() - start)

    def progress(evaluations: int, env: Environment) -> None:
        nonlocal made
        made = evaluations
        left, what = env.problem.left(env.totals)
        row = {"phase": "solve", "name": graph.name, "step": evaluations, "left": left}
        log.record(**row, sent_bytes=sum(context.group.sent_bytes.values()))
        candidates = env.totals.candidates
        log.progress(
            "%s: evaluation %d, %d candidates and %d %s left", graph.name, evaluations, candidates, left, what
        )

    first = FRESH if before is None else FirstState(before=before.chosen)
    terms = Terms(first, Ending(stop, case.search.evaluations, finish=True), progress)
    with log.phase("policy"):
        rollout = roll_out(
            block.group, policy.net, policy.params, block, case.select.rule, case.select.fraction, terms
        )
    log.info(
        "%s: %s of %.10g%s, %d evaluations%s, exchange %s",
        graph.name, rollout.problem.solution, rollout.objective, " nodes" if rollout.counted else "",
        rollout.evaluations, _limited(rollout), mode,
    )  # fmt: skip
    return _finish(context, rollout), time.perf_counter() - start


class _Stop:
    """What is asked before every choice: whether the policy's share of a time limit is over.

    It never is before the first choice: a replay has at least one. Each question is a look at signals too.

    block   rows of the states, of cliques those of the complement
    made    tells the choices made
    share   of the limit, for the policy and what follows
    spent   seconds of the limit that are over
    """

    def __init__(
        self, context: Context, block: RowBlock, made: Callable[[], int], share: float, spent: float = 0.0
    ) -> None:
        limit, rest = context.case.search.seconds, REST_SECONDS * (block.n + 2 * block.edges)
        seconds = share * limit - rest - spent if limit else math.inf
        self.clock, self.asked = StartClock(context.group, StartLimits(1.0, 0, seconds), seconds), False
        self.keeper, self.made = context.keeper, made

    def __call__(self) -> bool:
        """True when the time is up. Ranks: all call; identical on all."""
        self.keeper.at(self.made())
        before, self.asked = self.asked, True
        return before and self.clock.rings()


def _limited(rollout: Rollout) -> str:
    """What a limit of time or of evaluations did to a rollout, for the log."""
    if rollout.rest:
        return f", the last {rollout.rest} by a plain greedy: the limit was reached"
    return "" if rollout.done else ": the limit was reached"


def _state_rows(context: Context, policy: Policy, graphs: list[Loaded], rule: str) -> list[RowBlock]:
    """The rows of the states of graphs that are solved side by side, split where that helps.

    rule     that chooses nodes: of one at a time, scores follow each choice
    Ranks    all call
    """
    problem, spatial = policy.net.problem, spatial_of(context, graphs)
    sizes = np.array([state_size(problem, loaded.graph) for loaded in graphs])
    if find_rule(rule) is single and follows_compiled(problem):
        group = followed_by(context.group, spatial, *sizes.max(axis=0).tolist())
    else:
        group = sharers(context.group, spatial, work_of(*sizes.sum(axis=0).tolist()), EVALUATED)
    return context.state_rows_on(group, graphs, problem)


def _finished(context: Context, env: Environment) -> Rollout:
    """The rollout of an environment that is done. Ranks: all call."""
    group = env.block.group
    made = finished_rollout(group, env.problem, env.block, env.chosen_at, env.steps, env.value)
    return _finish(context, made)


def _finish(context: Context, rollout: Rollout) -> Rollout:
    """Drop redundant nodes where the case wants it. Ranks: all call."""
    return drop_redundant(rollout.block.group, rollout) if context.case.search.drop_redundant else rollout


def _whole_solution(rollout: Rollout) -> np.ndarray:
    """[n] bool, the solution of all ranks' rows. Ranks: all call."""
    own, block = rollout.solution_own.astype(np.uint8), rollout.block
    return block.group.gather_host(own, block.rows.row_counts()).astype(bool)


def _account(
    context: Context, problem: Problem, loaded: Loaded, rollout: Rollout, seconds: float,
    prices: Prices | None,
) -> Solved:  # fmt: skip
    """Check the solution, bound it, compare it. Ranks: all call.

    prices   of nodes that have weights: the objective is what the solution costs
    """
    case = context.case
    if len(loaded.graph.indices) < loaded.graph.indptr[-1]:
        loaded.restore(rollout.block.global_rows(np.arange(rollout.block.n_real))[1])
    graph = loaded.graph
    with context.log.phase("check"):
        solution = _check(context, loaded, rollout)
    objective = rollout.objective
    if prices is not None:
        objective = in_unit(prices, int(prices.weights[solution].sum()))
    entry: dict[str, Any] = {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges, "objective": objective,
        "sense": problem.sense, "bound": None, "bound_method": None, "gap": None, "bound_is_weak": False,
        "bound_verified": False, "optimal": False, "feasible": True, "source": "policy",
        "learned": objective, "policy_evaluations": rollout.evaluations, "steps": 0,
        "replay": ["search.seconds=0", f"search.evaluations={rollout.evaluations}"],
        "by_greedy": rollout.rest, "seconds": round(seconds, 4),
        "before_dropping": rollout.before_dropping, "baselines": {},
        "digest": digest(
            {
                "chosen": np.flatnonzero(solution).astype("<i8"),
                "size": np.array([graph.n, graph.edges], "<i8"),
            }
        ),
    }  # fmt: skip
    asked = case.search.solver == "policy" and (case.search.bounds or case.search.baselines)
    whole = whole_graph(context, loaded) if asked else None
    certificate = b""
    if whole is not None:
        certificate = _compare(context, problem, loaded, whole, solution, entry, rollout.counted)
    ids = ids_everywhere(context.group, graph, loaded.rows)
    text = problem.text(solution, written_ids(loaded, ids))
    return Solved(entry, text, solution, [], whole, certificate=certificate)


def _check(context: Context, loaded: Loaded, rollout: Rollout) -> np.ndarray:
    """[n] bool, the solution, after every rank has checked its rows against the whole. Ranks: all call.

    A wrong answer is an internal error, never a result.
    """
    group, solution = context.group, _whole_solution(rollout)
    across, together = ACROSS.get(rollout.problem.name), None
    if across is not None:
        block = rollout.block if rollout.block.group is group else context.state_rows(loaded, rollout.problem)
        limits = rollout.problem.limits(loaded.graph.n)
        together = across(group, block, loaded.graph, solution, *limits)
    with raise_together(group, "checking the solution"):
        wrong = together or rollout.problem.violation(loaded.graph, solution)
        if wrong is not None:
            raise LockstepError(f"{loaded.graph.name}: the {rollout.problem.solution} {wrong}")
        own = rollout.problem.value(loaded.graph, solution) if rollout.counted else 0
    value = int(group.sum_integers(np.array([own]))[0])
    if rollout.counted and value != rollout.objective:
        raise LockstepError(f"{loaded.graph.name}: the objective is {value}, not {rollout.objective}")
    return rollout.problem.canonical(solution)


def _compare(
    context: Context,
    problem: Problem,
    loaded: Loaded,
    whole: Any,
    solution: np.ndarray,
    entry: dict[str, Any],
    counted: bool,
) -> bytes:
    """Check the solution as every other is, enter objective, bound and baselines; the bound's certificate.

    Ranks: all call
    """
    begun = time.perf_counter()
    toolbox, certificate = make_toolbox(context, problem, loaded, whole), b""
    if (fault := toolbox.fault(solution)) is not None:
        raise LockstepError(f"{whole.name}: {fault}")
    value = toolbox.value(solution)
    worth = in_unit(toolbox, value) if counted else value * toolbox.unit
    if worth != entry["objective"]:
        raise LockstepError(f"{whole.name}: the value is {worth}, not {entry['objective']}")
    entry["objective"] = entry["learned"] = in_unit(toolbox, value)
    if context.case.search.bounds:
        with context.log.phase("bounds"):
            seconds = seconds_of_bounds(context.case, entry["seconds"])
            found = bound_of(context, toolbox, value, seconds)
        certificate = found.certificate
        if found.value is not None:
            shown, gap = bound_and_gap(toolbox, value, found.value)
            entry.update(
                bound=shown, bound_method=found.method, gap=round(gap, 6), optimal=gap == 0,
                bound_verified=found.verified,
            )  # fmt: skip
    if context.case.search.baselines:
        with context.log.phase("baselines"):
            used = entry["seconds"] + time.perf_counter() - begun
            values = baseline_values(context, toolbox, whole.name, seconds_of_baselines(context.case, used))
        entry["baselines"] = {label: in_unit(toolbox, each) for label, each in values.items()}
    entry["bound_is_weak"] = is_weak(entry)
    return certificate
