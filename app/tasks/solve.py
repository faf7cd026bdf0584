"""Task solve: answer the problem on every graph of the case, checked, bounded, beside plain heuristics."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.search import SearchCase
from app.checkpoint.keeper import NOTHING_KEPT, Keeper, PieceKeeper
from app.checkpoint.store import State
from app.comm.grid import Grid
from app.errors import CaseError, Ended, Halted
from app.output import plain
from app.partition.load import count_graphs
from app.partition.loaded import Loaded
from app.partition.whole import whole_of
from app.plots.runs import plot_curves, plot_solutions, plot_solves
from app.problems.problem import Problem
from app.problems.table import SAMPLED, problem_of
from app.search.clique.complement import COMPLEMENT_EDGES
from app.search.dismantle.course import read_curves
from app.solver.pipeline import Pipeline
from app.solver.sampled import SampledPipeline
from app.tasks.answer import answer_whole
from app.tasks.answer_followed import answer_followed
from app.tasks.answer_peeled import answer_peeled
from app.tasks.answer_rest import answer_rest, reduce_first
from app.tasks.answer_roots import answer_by_roots
from app.tasks.compare import holds, refuse_unfit, tell_too_large, too_large
from app.tasks.context import Context
from app.tasks.policy import Policy, find_policy
from app.tasks.rollouts import follow_policy, introduce, is_small, policy_alone
from app.tasks.solve_told import (
    LISTED,
    Written,
    file_name,
    say_answer,
    say_table,
    write_answers,
    write_so_far,
    write_solution,
    written_of,
)
from app.tasks.solved import Solved, recalled

DRAWN = 4  # instances of which the course of the search is drawn
FEW_RANKS = 2  # a search and the bounds of a graph keep so many at work
TURNS = 8  # after which groups of ranks that solve graphs at once tell each other of their answers


def run_solve(context: Context) -> dict[str, Any]:
    """Answer the problem on every graph; returns the task's part of result.json. Ranks: all call."""
    problem, policy = problem_of(context.case), find_policy(context)
    count = count_graphs(context.case.graph)
    if not count:
        raise CaseError("graph: nothing to solve; set graph.path=FILE or graph.generator")
    _say_policy(context, policy)
    if count == 1:
        context = replace(context, case=with_searches(context.case))
    work = _work_of(context, problem, policy, count)
    solve = _solve_one_by_one if work.grid.groups == 1 else _solve_at_once
    instances, traced = [], []
    try:
        for entry, written, solved in solve(context, work):
            instances.append(entry)
            traced += [] if solved is None else [solved]
            if context.folder is not None:
                write_solution(context, file_name(entry["name"]), written)
            if count <= LISTED:
                say_answer(context, entry)
    except Ended as ended:
        write_so_far(context, instances, ended.so_far)
        raise
    say_table(context, instances)
    write_answers(context, instances)
    if context.folder is not None and context.case.output.plots:
        plot_solutions(context.folder, context.log, instances, problem.solution)
        plot_solves(context.folder, context.log, traced[:DRAWN], problem.solution)
        curves = [(each.entry, read_curves(each.curves)) for each in traced[:DRAWN]]
        plot_curves(context.folder, context.log, curves)
    together = hashlib.sha256("".join(i["digest"] for i in instances).encode()).hexdigest()
    return {"digest": together, "weights_digest": policy.digest, "instances": instances}


@dataclass(frozen=True)
class _Work:
    """What the groups of a grid have to answer.

    graphs    of this group: of all graphs, in order, every so many-th
    largest   nodes of the largest graph of all groups, of those that are small (rollouts.is_small)
    known     answers of an earlier part of the run, by number in the case
    """

    grid: Grid
    problem: Problem
    policy: Policy
    graphs: list[Loaded]
    largest: int
    known: dict[int, State]


def _work_of(context: Context, problem: Problem, policy: Policy, count: int) -> _Work:
    """The groups of ranks, and the graphs that each has read. Ranks: all call."""
    grid = context.solving_grid(count)
    _say_groups(context, grid, count)
    with grid.together("reading the graphs"):
        share = slice(grid.number, None, grid.groups)
        graphs = context.within(grid).load(context.case.graph, "instances", share)
        for loaded in graphs:
            refuse_unfit(context, problem, loaded)
    graphs = _named_apart(context, grid, graphs)
    sizes = [loaded.graph.n for loaded in graphs if is_small(loaded)]
    largest = grid.across.max_integer(max(sizes, default=1))
    answers = {i: context.keeper.recall(f"answer {i}") for i in range(count)}
    known = {i: state for i, state in answers.items() if state is not None}
    _warn_of_unproved(context, known)
    return _Work(grid, problem, policy, graphs, largest, known)


def _say_policy(context: Context, policy: Policy) -> None:
    """Which policy there is, and which keys count for nothing with it."""
    weights = f", weights {policy.digest[:12]}" if policy.digest else ""
    context.log.info("policy: %s%s", policy.source, weights)
    if unread := unread_tables(context.case):
        context.log.info("not read, as policy.weights names weights: %s", ", ".join(unread))
    if (search := context.case.search).solver == "policy" and search.steps != SearchCase().steps:
        context.log.info('not read, as search.solver = "policy" makes no search: search.steps')


def _say_groups(context: Context, grid: Grid, count: int) -> None:
    """How many graphs are answered at once, and by how many ranks."""
    if grid.groups > 1:
        sharing = f"{grid.group.size} rank{'s' if grid.group.size > 1 else ''}"
        context.log.info("%d graphs, %d at once, %s each", count, grid.groups, sharing)
    elif count > 1 and context.group.size > FEW_RANKS and not context.case.parallel.spatial:
        most = max(g for g in range(1, count + 1) if context.group.size % g == 0)
        said = "%d graphs, one after the other on all ranks; parallel.data=%d would solve %d at once"
        context.log.info(said, count, most, most)


def _keep(context: Context, number: int, state: State) -> None:
    """Let checkpoints hold an answer, and whether what proves its bound was asked for. Ranks: all call."""
    values = {**state.values, "certificates": context.case.output.certificates}
    context.keeper.keep(f"answer {number}", State(values, state.arrays))


def _warn_of_unproved(context: Context, known: dict[int, State]) -> None:
    """Say that answers of an earlier part of the run were found without what is now asked for."""
    bare = sum(not state.values["certificates"] for state in known.values())
    if context.case.output.certificates and bare:
        found = f"{bare} answer{'s' if bare > 1 else ''} of an earlier part of the run came without"
        context.warn(f"output.certificates: {found}; --overwrite in place of --resume asks for all")


def _named_apart(context: Context, grid: Grid, graphs: list[Loaded]) -> list[Loaded]:
    """This group's graphs, each with a name that no other graph of the case has. Ranks: all call."""
    mine = json.dumps([loaded.graph.name for loaded in graphs])
    groups = [json.loads(text) for text in context.group.gather_texts(mine)[:: grid.group.size]]
    every = {i * grid.groups + g: name for g, names in enumerate(groups) for i, name in enumerate(names)}
    apart = dict(zip(sorted(every), names_apart([every[number] for number in sorted(every)])))
    called = [apart[grid.number + i * grid.groups] for i in range(len(graphs))]
    return [
        loaded if name == loaded.graph.name else replace(loaded, graph=replace(loaded.graph, name=name))
        for loaded, name in zip(graphs, called)
    ]


def names_apart(names: list[str]) -> list[str]:
    """Names of graphs with a number behind those whose file name an earlier one has."""
    first = {file_name(name): i for i, name in reversed(list(enumerate(names)))}
    used, found = set(first), []
    for i, name in enumerate(names):
        new, number = name, 1
        while first[file_name(name)] != i and file_name(new) in used:
            number += 1
            new = f"{name}-{number}"
        used.add(file_name(new))
        found.append(new)
    return found


def unread_tables(case: Case) -> list[str]:
    """The tables of training that a case sets and that count for nothing: its weights are given."""
    if case.policy.weights == "train":
        return []
    return [f"[{name}]" for name in ("train", "agent") if getattr(case, name) != getattr(Case(), name)]


def with_searches(case: Case) -> Case:
    """The case of a single graph: parallel.data independent searches of it, where search.starts are fewer."""
    if case.parallel.data == 1:
        return case
    starts = max(case.search.starts, case.parallel.data)
    return structs.replace(case, search=structs.replace(case.search, starts=starts))


# an instance's entry of result.json, what is written of it, and where it was solved, what is drawn of it
Told = tuple[dict[str, Any], Written, Solved | None]


def _solve_one_by_one(context: Context, work: _Work) -> Iterator[Told]:
    """Every graph on all ranks, in order. Ranks: all call."""
    graphs, known = work.graphs, work.known
    found = {id(graphs[i]): recalled(context, graphs[i], known[i], drawn=i < DRAWN) for i in known}
    for i, solved in enumerate(_solve_all(context, work, graphs, found)):
        yield solved.entry, written_of(solved), solved
        if i not in known:
            _keep(context, i, solved.state())
        context.keeper.at(i + 1)


def _solve_at_once(context: Context, work: _Work) -> Iterator[Told]:
    """Each group solves its graphs; all are told of all, in the order of the case. Ranks: all call.

    A run can be stopped between turns, when every group has solved some, and within one by a signal to all
    ranks.
    """
    grid, graphs, known = work.grid, work.graphs, work.known
    apart, most = context.within(grid), context.group.max_integer(len(graphs))
    for turn in range(min(TURNS, most)):
        places = range(most * turn // TURNS, most * (turn + 1) // TURNS) if most > TURNS else [turn]
        part = {i: graphs[i] for i in places if i < len(graphs)}
        mine: dict[int, Solved] = {}
        halted = False
        with grid.together("solving"):
            numbers = {i: grid.number + i * grid.groups for i in part}
            found = {
                id(part[i]): recalled(apart, part[i], known[n], drawn=n < DRAWN)
                for i, n in numbers.items()
                if n in known
            }
            try:
                mine.update(zip(part, _solve_all(apart, work, list(part.values()), found)))
            except Halted:  # what is finished is kept
                halted = True
        for number, entry, written, solved in _exchange(context, grid, mine):
            yield entry, written, solved
            if number not in known:
                kept = {"certificate": np.frombuffer(written.certificate, dtype=np.uint8)}
                texts = {"text": written.text, "course": written.course, "curves": written.curves}
                told = State({"entry": entry, **texts, "trace": []}, kept)
                _keep(context, number, told if solved is None else solved.state())
        if context.group.max_integer(int(halted)):
            context.keeper.halt()
        context.keeper.at(turn + 1)


def _exchange(
    context: Context, grid: Grid, mine: dict[int, Solved]
) -> Iterator[tuple[int, dict[str, Any], Written, Solved | None]]:
    """(number in the case, entry, what is written, where it was solved the rest) of what all groups have
    solved.

    mine    this group's, by their place among its graphs
    Ranks   all call
    """
    context.log.info("waiting for the other groups")
    size, texts = grid.group.size, context.folder is not None  # also for checkpoints, of which others go on
    entries = json.dumps([[i, solved.entry] for i, solved in mine.items()], default=plain)
    every = context.group.gather_texts(entries)[::size]
    told = {
        place * grid.groups + owner: (owner, place, entry)
        for owner, text in enumerate(every)
        for place, entry in json.loads(text)
    }
    for number, (owner, place, entry) in sorted(told.items()):
        solved = mine[place] if owner == grid.number else None
        written, root = Written() if solved is None else written_of(solved), owner * size
        if texts:
            text, course, curves = (
                context.group.broadcast_text(each, root)
                for each in (written.text, written.course, written.curves)
            )
            certificate = context.group.broadcast_bytes(written.certificate, root)
            written = Written(text, certificate, course, curves)
        yield number, entry, written, solved


def _solve_all(
    context: Context, work: _Work, graphs: list[Loaded], known: dict[int, Solved]
) -> Iterator[Solved]:
    """Some graphs on the ranks of a context, in order. Ranks: all call.

    known   answers of an earlier part of the run, by id(loaded)
    """
    problem, policy = work.problem, work.policy
    if context.case.search.solver == "policy":
        for _, solved in follow_policy(context, problem, policy, graphs, known):
            yield solved
        return
    todo = [loaded for loaded in graphs if id(loaded) not in known]
    alone = policy_alone(context, problem, policy, todo, work.largest)
    for i, loaded in enumerate(graphs):
        if id(loaded) in known:
            yield known[id(loaded)]
            continue
        keeper = PieceKeeper(context.keeper, f"instance {i}")
        yield solve_graph(context, problem, policy, loaded, keeper, alone.get(id(loaded)))


def solve_graph(
    context: Context, problem: Problem, policy: Policy, loaded: Loaded, keeper: Keeper = NOTHING_KEPT,
    alone: np.ndarray | None = None,
) -> Solved:  # fmt: skip
    """One graph by the pipeline; by the policy alone where the graph is too large for one rank.

    keeper  where this solve may be stopped, and what it goes on from
    alone   the solution of the policy by itself, where the pipeline's is to be compared with it
    Ranks   all call; identical on all
    """
    if context.case.search.solver == "policy":
        ((_, solved),) = follow_policy(context, problem, policy, [loaded])
        return solved
    if problem.name in SAMPLED:
        pipeline = SampledPipeline(context.group, context.log, context.case, keeper)
    else:
        pipeline = Pipeline(context.group, context.log, context.case, policy.net, policy.params, keeper)
    if too_large(context, loaded):
        return _solve_large(context, problem, policy, pipeline, loaded, keeper)
    introduce(context, loaded)
    whole = whole_of(context.group, loaded)
    return answer_whole(context, pipeline, problem, loaded, whole, alone)


def _solve_large(
    context: Context, problem: Problem, policy: Policy, pipeline: Pipeline, loaded: Loaded, keeper: Keeper
) -> Solved:
    """A graph too large for one rank: by the pipeline where reductions, or after them the policy's choices,
    make it small enough, else by what they know, or by the policy alone. Ranks: all call; identical on all.
    """
    rest = reduce_first(context, problem, loaded, keeper)
    if rest is None:
        tell_too_large(context, loaded)
        ((_, solved),) = follow_policy(context, problem, policy, [loaded])
        return solved
    if holds(context, rest.nbytes):
        return answer_rest(context, pipeline, problem, loaded, rest)
    if rest.kind.peels and not policy.net.pools_to_choose:
        return answer_peeled(context, pipeline, policy, problem, loaded, rest, keeper)
    if rest.kind.follows:
        return answer_followed(context, policy, problem, loaded, rest, keeper)
    if problem.complemented:
        asked = [policy] if _has_complement(loaded) else []
        return answer_by_roots(context, problem, loaded, rest, keeper, *asked)
    tell_too_large(context, loaded, rest.nbytes)
    ((_, solved),) = follow_policy(context, problem, policy, [loaded], before=rest.before())
    solved.entry["replay"] += rest.replay
    return solved


def _has_complement(loaded: Loaded) -> bool:
    """Whether the policy of cliques may be asked: the complement, whose rows it sees, has few edges."""
    n = loaded.graph.n
    return n * (n - 1) // 2 - loaded.graph.edges <= COMPLEMENT_EDGES
