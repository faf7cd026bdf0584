"""The policy alone (RL4GO Alg. 2): rollouts on row partitions of any size, each checked and accounted for."""

import time
from typing import Any

import numpy as np

from app.bounds.verify import uncovered_edge
from app.comm.guard import digest, raise_together
from app.errors import LockstepError
from app.partition.load import Loaded
from app.rl.env import GraphEnv
from app.rl.rollout import Cover, cover_graph, cover_one_at_a_time, drop_redundant, finished_cover
from app.tasks.compare import baseline_objectives, best_bound, whole_graph
from app.tasks.context import Context
from app.tasks.policy import Policy

SIDE_BY_SIDE_NODES = 4096  # larger graphs are covered alone: their residual graphs are worth compacting


def _cover_all(context: Context, policy: Policy, graphs: list[Loaded]) -> Any:
    """(graph, cover, seconds) in order: small generated graphs side by side, others one by one."""
    case, group = context.case, context.group
    small = [g for g in graphs[len(case.graph.path) :] if g.graph.n <= SIDE_BY_SIDE_NODES]
    together: dict[int, GraphEnv] = {}
    start = time.perf_counter()
    if case.select.rule == "single" and small:
        blocks = [context.rows(loaded) for loaded in small]
        with context.log.phase("policy"):
            envs = cover_one_at_a_time(group, policy.net, policy.params, blocks)
        together = {id(loaded): env for loaded, env in zip(small, envs)}
    share = (time.perf_counter() - start) / max(len(small), 1)
    for loaded in graphs:
        env = together.get(id(loaded))
        if env is None:
            yield (loaded, *_cover_one(context, policy, loaded))
        else:
            cover = finished_cover(group, env.block, env.chosen_at, env.steps)
            yield loaded, _finish(context, cover), share


def _cover_one(context: Context, policy: Policy, loaded: Loaded) -> tuple[Cover, float]:
    """One graph by the case's selection rule, with progress in the log."""
    case, log, counts = context.case, context.log, loaded.counts
    graph = loaded.graph
    if loaded.source == "cache":
        log.info("%s: from the cache in %s", graph.name, case.memory.cache)
    log.info(
        "%s: %d nodes, %d edges (%d edge lines: %d self loops, %d repeats, %d of the other direction)%s",
        graph.name, graph.n, graph.edges, counts.lines, counts.loops, counts.repeats, counts.reversed,
        ", complemented" if loaded.complemented else "",
    )  # fmt: skip
    if graph.node_weights is not None:
        log.info("warning: %s has node weights, which are not used: nodes are counted", graph.name)
    block = context.rows(loaded)
    mode = block.plan.mode
    if mode in ("halo", "staged"):
        loaded.release()  # the block has numbered the columns anew

    def progress(evaluations: int, env: GraphEnv) -> None:
        edges = env.totals.degree_sum // 2
        row = {"phase": "solve", "name": graph.name, "step": evaluations, "edges_left": edges}
        log.record(**row, sent_bytes=sum(context.group.sent_bytes.values()))
        log.progress(
            "%s: evaluation %d, %d nodes and %d edges left", graph.name, evaluations, env.totals.alive, edges
        )

    start = time.perf_counter()
    with log.phase("policy"):
        cover = cover_graph(
            context.group, policy.net, policy.params, block, case.select.rule, case.select.fraction, progress
        )
    log.info(
        "%s: covered by %d nodes, %d evaluations, exchange %s",
        graph.name,
        cover.objective,
        cover.evaluations,
        mode,
    )
    return _finish(context, cover), time.perf_counter() - start


def _finish(context: Context, cover: Cover) -> Cover:
    """Drop redundant nodes where the case wants it."""
    return drop_redundant(context.group, cover) if context.case.search.drop_redundant else cover


def _account(
    context: Context, loaded: Loaded, cover: Cover, seconds: float
) -> tuple[dict[str, Any], np.ndarray]:
    """Check the cover, bound it, compare it: its entry of result.json, its ids. Ranks: all call."""
    case, block = context.case, cover.block
    if len(loaded.graph.indices) < loaded.graph.indptr[-1]:
        loaded.restore(block.global_rows(np.arange(block.n_real))[1])
    graph = loaded.graph
    with context.log.phase("check"):
        chosen = _check(context, loaded, cover)
    instance: dict[str, Any] = {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges, "objective": cover.objective,
        "bound": None, "bound_method": None, "gap": None, "feasible": True,
        "policy_evaluations": cover.evaluations, "seconds": round(seconds, 4),
        "before_dropping": cover.before_dropping, "independent_set": graph.n - cover.objective,
        "baselines": {},
        "digest": digest({"chosen": chosen.astype("<i8"), "size": np.array([graph.n, graph.edges], "<i8")}),
    }  # fmt: skip
    whole = whole_graph(context, loaded) if case.search.bounds or case.search.baselines else None
    if whole is not None and case.search.bounds:
        with context.log.phase("bounds"):
            bound, method = best_bound(context, whole)
        gap = (cover.objective - bound) / bound if bound else 0.0
        instance.update(bound=bound, bound_method=method, gap=round(gap, 6), bound_is_weak=gap > 0.1)
    if whole is not None and case.search.baselines:
        with context.log.phase("baselines"):
            instance["baselines"] = baseline_objectives(context, whole)
    return instance, _chosen_ids(context, loaded, cover)


def _check(context: Context, loaded: Loaded, cover: Cover) -> np.ndarray:
    """The chosen nodes, after every rank has checked its rows against the whole solution. Ranks: all call.

    A wrong answer is an internal error, never a result.
    """
    group = context.group
    in_cover = group.gather_host(cover.cover_own.astype(np.uint8), loaded.rows.row_counts()).astype(bool)
    with raise_together(group, "checking the solution"):
        edge = uncovered_edge(loaded.graph, in_cover)
        if edge is not None:
            raise LockstepError(f"{loaded.graph.name}: the solution leaves edge {edge} uncovered")
        if np.count_nonzero(in_cover) != cover.objective:
            raise LockstepError(f"{loaded.graph.name}: the solution's size is not {cover.objective}")
    return np.flatnonzero(in_cover)


def _chosen_ids(context: Context, loaded: Loaded, cover: Cover) -> np.ndarray:
    """[objective] int64, the chosen nodes by the input file's ids. Ranks: all call; identical on all."""
    graph, group = loaded.graph, context.group
    ids_own = graph.node_ids(np.flatnonzero(cover.cover_own) + graph.lo).astype(np.int64)
    counts = group.gather_integers(np.array([len(ids_own)]))[:, 0].tolist()
    return group.gather_host(ids_own, counts)
