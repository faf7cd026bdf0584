"""Task solve: cover every graph of the case with a policy, beside baselines and a certified bound."""

import hashlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.guard import check_same, digest, raise_together
from app.errors import CaseError, GraphError, LockstepError
from app.gnn.parameters import Parameters
from app.partition.load import Loaded
from app.problems.table import make_problem
from app.report import plot_solutions
from app.rl.env import Environment
from app.rl.qnet import QNetwork
from app.rl.rollout import Cover, cover_graph, cover_one_at_a_time, drop_redundant, finished_cover
from app.rl.weights import default_weights, load_weights
from app.tasks.compare import baseline_objectives, best_bound, whole_graph
from app.tasks.context import Context
from app.tasks.train import learn, save_training

SIDE_BY_SIDE_NODES = 4096  # larger graphs are covered alone: their residual graphs are worth compacting


@dataclass(frozen=True)
class Policy:
    """A network with parameters on the device, and where they come from."""

    net: QNetwork
    params: Parameters
    source: str
    digest: str


def run_solve(context: Context) -> dict[str, Any]:
    """Answer the problem on every graph; returns the task's part of result.json. Ranks: all call."""
    policy = find_policy(context)
    graphs = context.load(context.case.graph, "instances")
    if not graphs:
        raise CaseError("graph: nothing to solve; set graph.path=FILE or graph.generator")
    context.log.info("policy: %s, weights %s", policy.source, policy.digest[:12])
    instances, used = [], set()
    for loaded, cover, seconds in _cover_all(context, policy, graphs):
        instance, ids = _account(context, loaded, cover, seconds)
        instances.append(instance)
        if context.folder is not None and context.case.output.solutions:
            _write_solution(context, _file_name(loaded, used), ids)
        if len(graphs) <= 20:
            _say(context, instance)
    _table(context, instances)
    if context.folder is not None and context.case.output.plots:
        plot_solutions(context.folder, context.log, instances)
    together = hashlib.sha256("".join(i["digest"] for i in instances).encode()).hexdigest()
    return {"digest": together, "weights_digest": policy.digest, "instances": instances}


def _file_name(loaded: Loaded, used: set[str]) -> str:
    """The graph's name as a file name, with a number where that is taken."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.graph.name) or "graph"
    name, number = plain, 1
    while name in used:
        number += 1
        name = f"{plain}-{number}"
    used.add(name)
    return name


def find_policy(context: Context) -> Policy:
    """Train first, take the weights that ship, or read a file: as policy.weights says. Ranks: all call."""
    case = context.case
    problem = make_problem(case.problem.name)
    wanted = case.policy.weights
    if wanted == "train":
        training, _ = learn(context)
        params = Parameters(context.device, training.net.shapes())
        params.set(training.weights)
        return Policy(training.net, params, "trained in this run", save_training(context, training))
    with raise_together(context.group, "reading the weights"):
        path = default_weights(case.problem.name) if wanted == "default" else wanted
        saved = load_weights(path)
        if saved.problem != case.problem.name:
            raise CaseError(
                f"{path}: weights for problem {saved.problem!r}, the case has {case.problem.name!r}"
            )
        net = QNetwork(saved.policy, problem)
        expected = {name: tuple(shape) for name, shape in net.shapes().items()}
        if expected != {name: array.shape for name, array in saved.arrays.items()}:
            raise CaseError(f"{path}: its arrays do not fit the architecture its manifest states")
    check_same(context.group, saved.digest, f"the weights in {path}", GraphError)
    params = Parameters(context.device, net.shapes())
    params.set(saved.arrays)
    source = "weights shipped with Lockstep" if wanted == "default" else path
    return Policy(net, params, source, saved.digest)


def _cover_all(context: Context, policy: Policy, graphs: list[Loaded]) -> Any:
    """(graph, cover, seconds) in order: small generated graphs side by side, others one by one."""
    case, group = context.case, context.group
    small = [g for g in graphs[len(case.graph.path) :] if g.graph.n <= SIDE_BY_SIDE_NODES]
    together: dict[int, Environment] = {}
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
            cover = finished_cover(group, env.problem, env.block, env.chosen_at, env.steps)
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

    def progress(evaluations: int, env: Environment) -> None:
        left, what = env.problem.left(env.totals)
        row = {"phase": "solve", "name": graph.name, "step": evaluations, "left": left}
        log.record(**row, sent_bytes=sum(context.group.sent_bytes.values()))
        candidates = env.totals.candidates
        log.progress(
            "%s: evaluation %d, %d candidates and %d %s left", graph.name, evaluations, candidates, left, what
        )

    start = time.perf_counter()
    with log.phase("policy"):
        cover = cover_graph(
            context.group, policy.net, policy.params, block, case.select.rule, case.select.fraction, progress
        )
    log.info(
        "%s: %s of %d nodes, %d evaluations, exchange %s",
        graph.name,
        cover.problem.solution,
        cover.objective,
        cover.evaluations,
        mode,
    )
    return _finish(context, cover), time.perf_counter() - start


def _finish(context: Context, cover: Cover) -> Cover:
    """Drop redundant nodes where the case wants it."""
    return drop_redundant(context.group, cover) if context.case.search.drop_redundant else cover


def solve_graph(context: Context, policy: Policy, loaded: Loaded) -> tuple[dict[str, Any], np.ndarray]:
    """One graph: its entry of result.json, and the chosen ids. Ranks: all call; identical on all."""
    cover, seconds = _cover_one(context, policy, loaded)
    return _account(context, loaded, cover, seconds)


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
        "before_dropping": cover.before_dropping, "left_out": graph.n - cover.objective,
        "baselines": {},
        "digest": digest({"chosen": chosen.astype("<i8"), "size": np.array([graph.n, graph.edges], "<i8")}),
    }  # fmt: skip
    whole = whole_graph(context, loaded) if case.search.bounds or case.search.baselines else None
    if whole is not None and case.search.bounds:
        with context.log.phase("bounds"):
            bound, method = best_bound(context, whole)
        if bound is not None:
            gap = abs(cover.objective - bound) / bound if bound else 0.0
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
        wrong = cover.problem.violation(loaded.graph, in_cover)
        if wrong is not None:
            raise LockstepError(f"{loaded.graph.name}: the {cover.problem.solution} {wrong}")
        own = cover.problem.value(loaded.graph, in_cover)
    value = int(group.sum_integers(np.array([own]))[0])
    if value != cover.objective:
        raise LockstepError(f"{loaded.graph.name}: the objective is {value}, not {cover.objective}")
    return np.flatnonzero(in_cover)


def _chosen_ids(context: Context, loaded: Loaded, cover: Cover) -> np.ndarray:
    """[objective] int64, the chosen nodes by the input file's ids. Ranks: all call; identical on all."""
    graph, group = loaded.graph, context.group
    ids_own = graph.node_ids(np.flatnonzero(cover.cover_own) + graph.lo).astype(np.int64)
    counts = group.gather_integers(np.array([len(ids_own)]))[:, 0].tolist()
    return group.gather_host(ids_own, counts)


def _write_solution(context: Context, name: str, ids: np.ndarray) -> None:
    """solution/NAME.txt: one id of the input file per line. Ranks: all call; rank 0 writes."""
    with context.log.phase("write"), raise_together(context.group, "writing the solution"):
        context.folder.write_text(f"solution/{name}.txt", "".join(f"{i}\n" for i in ids.tolist()))


def _say(context: Context, instance: dict[str, Any]) -> None:
    """One line on an instance: the answer, how good it can still get, and the baselines."""
    problem, bound = make_problem(context.case.problem.name), "no bound"
    if instance["bound"] is not None:
        weak = ", a weak bound" if instance["bound_is_weak"] else ""
        gap = f"gap {100 * instance['gap']:.2f} %{weak}"
        limit = "at most" if problem.sense == "maximise" else "at least"
        bound = f"{limit} {instance['bound']} ({instance['bound_method']}), {gap}"
    others = ", ".join(f"{label} {value}" for label, value in instance["baselines"].items())
    context.log.info(
        "%s: %s %d; %s; %s",
        instance["name"],
        problem.solution,
        instance["objective"],
        bound,
        others or "no baselines",
    )


def _table(context: Context, instances: list[dict[str, Any]]) -> None:
    """The table of a run: one line per instance, or the means where there are many."""
    labels = list(dict.fromkeys(label for i in instances for label in i["baselines"]))
    head = ["graph", "nodes", "edges", "learned", *labels, "bound", "gap %"]
    rows = [head]
    for i in instances:
        gap = "-" if i["gap"] is None else f"{100 * i['gap']:.2f}"
        base = [str(i["baselines"].get(label, "-")) for label in labels]
        rows.append(
            [
                i["name"],
                str(i["nodes"]),
                str(i["edges"]),
                str(i["objective"]),
                *base,
                str(i["bound"] or "-"),
                gap,
            ]
        )
    widths = [max(len(row[c]) for row in rows) for c in range(len(head))]
    for row in rows:
        context.log.info(
            "  ".join(
                cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths))
            )
        )
