"""One instance of a solve by the pipeline: from the whole graph to its entry of result.json."""

import csv
import io
import itertools
import math
import time
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from app import stopping
from app.aside import aside
from app.case.config import Case
from app.case.search import STARTS, SearchCase
from app.checkpoint.checkpoints import NOTHING_KEPT
from app.checkpoint.store import State
from app.comm.guard import digest, raise_together
from app.errors import CaseError, Ended, FixedNodesError, GraphError, LockstepError
from app.graphs.covering import count_candidates, demand_called
from app.graphs.diffusion import Spreading
from app.graphs.formats.text import LARGEST_ID
from app.graphs.graph import Graph
from app.graphs.ids import CONTROL, NodeIndex, fault_of_name, name_array, one_id, plain_ids
from app.graphs.keys import shared_keys, sorted_set, without
from app.graphs.routes import after_of, depot_of, routes_of
from app.graphs.weights import decimals_of
from app.partition.load import Loaded
from app.partition.stands_for import is_covering, is_quadratic
from app.problems.problem import Problem
from app.problems.table import CLASSES, MAPPING, NODE_ORDERS, ORDERS, ROUTES, TREE
from app.search.dismantle.course import curves_text, read_order, robustness
from app.search.facility.tools import OF_NODES
from app.search.solution_text import read_nodes
from app.search.steiner.text import edges_of, tree_of
from app.search.treewidth.decomposition import OF_BAGS
from app.solver.pipeline import Answer, Pipeline
from app.solver.progress import Event, relative_gap
from app.solver.sampled import SampledPipeline
from app.tasks.compare import Rival, compare, heuristics, seconds_of_baselines, too_large, whole_graph
from app.tasks.context import Context
from app.tasks.deliveries import deliveries_of, demands_of
from app.tasks.pairings import pairing_for
from app.tasks.terminals import prizes_of, terminals_of, without_effect
from app.text import figures, is_whole
from app.toolbox import Asked, Beside, Instance, Toolbox

POLICY_ALONE = "policy alone"  # beside the plain heuristics
LONG = 1 << 16  # nodes and entries of a graph whose tools are made while signals are heard
LONG_TABLE = 1000  # nodes of one of which they may have a table of all pairs, likewise
WEAK = 0.1  # gap from which on a bound is called weak
CLOSING_SHARE = 0.3  # of a time limit, at most, for what is made of an answer after the search


@dataclass(frozen=True)
class Solved:
    """An entry of result.json, with what is written and drawn beside it.

    text    of the solution's file
    course  of the file of its course (Toolbox.course); empty: it has none
    curves  of the file of its curve and of those beside it (Toolbox.curve); empty: it has none
    trace   the best and the bound over time; empty where only the policy was asked
    certificate   the file of what proves the bound; empty: none
    """

    entry: dict[str, Any]
    text: str
    solution: np.ndarray
    trace: list[Event]
    graph: Graph | None
    metric: Any = None
    certificate: bytes = b""
    course: str = ""
    curves: str = ""

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        trace = [astuple(event) for event in self.trace]
        texts = {"text": self.text, "course": self.course, "curves": self.curves}
        values = {"entry": self.entry, **texts, "trace": trace}
        certificate = np.frombuffer(self.certificate, dtype=np.uint8)
        return State(values, {"solution": self.solution, "certificate": certificate})

    def named(self, ids: np.ndarray, labels: list[Any] | None, kind: str) -> list[Any]:
        """The solution, of a kind as Problem.solution, by ids [n], or by labels: the chosen nodes, those of a
        tree, those of a tour in order, or where there are classes a list of those of each.
        """
        if kind == TREE:
            return _called_by(ids[np.flatnonzero(self.solution >= 0)], labels)
        if kind == MAPPING:
            return _called_by(ids[np.flatnonzero(self.solution >= 0)], labels)
        if kind == ROUTES:
            return [node for route in routes_named(self.solution, ids, labels) for node in route]
        if kind in CLASSES:
            called = _called_by(ids[np.argsort(self.solution, kind="stable")], labels)
            ends = np.cumsum(np.bincount(self.solution)).tolist()
            return [called[start:end] for start, end in itertools.pairwise([0, *ends])]
        return _called_by(
            ids[np.flatnonzero(self.solution) if self.solution.dtype == bool else self.solution], labels
        )


def edges_named(solution: np.ndarray, ids: np.ndarray, labels: list[Any] | None) -> list[tuple[Any, Any]]:
    """The edges of a tree, parents [n], by ids [n], or by labels."""
    edges = edges_of(solution)
    return list(zip(*(_called_by(ids[edges[:, end]], labels) for end in (0, 1))))


def routes_named(solution: np.ndarray, ids: np.ndarray, labels: list[Any] | None) -> list[list[Any]]:
    """The customers of each route, in order, by ids [n], or by labels; solution [n] stops."""
    routes = routes_of(solution, depot_of(solution))
    return [_called_by(ids[route], labels) for route in routes]


def order_named(
    solved: Solved, loaded: Loaded, ids: np.ndarray, labels: list[Any] | None, kind: str
) -> list[Any]:
    """The nodes of a course, or of a solution that is an order, in that, by ids [n], or by labels; none where
    there is none.
    """
    if kind in NODE_ORDERS:
        return _called_by(ids[solved.solution], labels)
    if not solved.course or solved.course.startswith(OF_NODES):
        return []
    named, written = read_order(solved.course), written_ids(loaded, ids)
    if written.dtype.kind in "iu":
        rows = NodeIndex(written).find(np.array(named, dtype=np.int64))
    else:
        places = _places(loaded, ids)
        rows = np.array([places[each] for each in named], dtype=np.int64)
    return _called_by(ids[rows], labels)


def assignment_named(
    solved: Solved, loaded: Loaded, ids: np.ndarray, labels: list[Any] | None
) -> dict[Any, Any]:
    """The facility of each node, by ids [n], or by labels (FacilityTools.course); None: none has a path."""
    if not solved.course.startswith(OF_NODES):
        return {}
    text = solved.course
    if '"' in text:
        rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
        nodes, at = [row[0] for row in rows], [row[1] for row in rows]
    else:  # no name has a comma
        fields = text.replace("\n", ",").split(",")
        nodes, at = fields[3:-1:3], fields[4:-1:3]
    called = dict(zip(_written(loaded, ids), _called_by(ids, labels)))
    called[""] = None  # of no facility
    return dict(zip(map(called.__getitem__, nodes), map(called.__getitem__, at)))


def bags_named(
    solved: Solved, ids: np.ndarray, labels: list[Any] | None
) -> tuple[list[list[Any]], list[tuple[int, int]]]:
    """Bags of a tree decomposition, by ids [n], or by labels, and the pairs of their numbers, from 0 on,
    that are edges of its tree (EliminationTools.course); none where there is none.
    """
    if not solved.course.startswith(OF_BAGS):
        return [], []
    lines = [line.split() for line in solved.course.splitlines()[1:] if not line.startswith("c")]
    names = _called_by(ids, labels)
    bags = [[names[int(node) - 1] for node in line[2:]] for line in lines if line[0] == "b"]
    return bags, [(int(a) - 1, int(b) - 1) for a, b, *_ in (line for line in lines if line[0] != "b")]


def _places(loaded: Loaded, ids: np.ndarray) -> dict[str, int]:
    """Rows by what files call their nodes."""
    return {each: i for i, each in enumerate(_written(loaded, ids))}


def _written(loaded: Loaded, ids: np.ndarray) -> list[str]:
    """What files call the nodes of rows."""
    return list(map(str, plain_ids(written_ids(loaded, ids))))


def _called_by(ids: np.ndarray, labels: list[Any] | None) -> list[Any]:
    """Nodes as their owner calls them."""
    return [each if labels is None else labels[each] for each in plain_ids(ids)]


def recalled(context: Context, loaded: Loaded, state: State, drawn: bool) -> Solved:
    """An answer of an earlier part of the run; with its graph only where that is drawn. Ranks: all call."""
    values = state.values
    drawn = drawn and bool(values["trace"]) and not too_large(context, loaded)
    whole = whole_graph(context, loaded) if drawn else None
    trace = [Event(*each) for each in values["trace"]]
    solution = state.arrays.get("solution", np.zeros(0, dtype=np.int64))
    return Solved(
        values["entry"], values["text"], solution, trace, whole, loaded.metric, certificate_in(state),
        values.get("course", ""), values.get("curves", ""),  # checkpoints of before have none
    )  # fmt: skip


def certificate_in(state: State) -> bytes:
    """The certificate that a checkpoint keeps of an answer; empty: none."""
    return state.arrays.get("certificate", np.zeros(0, dtype=np.uint8)).tobytes()


def make_toolbox(context: Context, problem: Problem, loaded: Loaded, whole: Graph) -> Toolbox:
    """The problem's tools for one whole instance, with the nodes that are fixed. Ranks: all call."""
    search = context.case.search
    with raise_together(context.group, "reading the fixed nodes"):
        ids = whole.held_ids()
        inside, outside = (
            np.flatnonzero(read_nodes(path, written_ids(loaded, ids))) if path else _rows_of(given, ids)
            for path, given in ((search.inside, loaded.inside), (search.outside, loaded.outside))
        )
        both = shared_keys(inside, outside)
        if len(both):
            right = "a node in one of them would be right"
            raise CaseError(f"search.inside, search.outside: node {one_id(ids, both[0])} is in both; {right}")
        compiled = context.case.run.kernels == "auto"
        try:
            limit = 1e6 * context.case.memory.whole_graph_mb
            asked = Asked.of(context.case.problem)
            beside = _beside(context.case, loaded, whole, written_ids(loaded, ids))
            instance = Instance(
                whole, loaded.metric, inside, outside, compiled, None, limit, asked, beside,
                seconds=_seconds_to_prepare(search),
            )  # fmt: skip
            for told in without_effect(instance, partial(_called, context.case, loaded, whole)):
                context.warn(f"{whole.name}: {told}")
            make = partial(problem.toolbox, instance)
            # Of a call from Python signals are the caller's, who is left with no thread at work.
            long = whole.n + len(whole.indices) >= LONG or whole.n >= LONG_TABLE
            heard = context.keeper is not NOTHING_KEPT and long
            toolbox = aside(make) if heard else make()
        except FixedNodesError as error:
            named = error.words.format(*(_called(context.case, loaded, whole, node) for node in error.nodes))
            raise CaseError(f"search.inside, search.outside: {named}") from None
        toolbox.stops = stopping.asked
        heuristics(context.case, toolbox)  # refuses an unknown name before any work
        return toolbox


def _beside(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> Beside:
    """What is given beside a whole graph; written: the ids of its nodes as files have them."""
    terminals = terminals_of(case, loaded, whole, written)
    deliveries = deliveries_of(case, loaded, whole, written)
    demands = demands_of(case, loaded, whole, written)
    prizes = prizes_of(case, loaded, whole)
    pairing = pairing_for(case, loaded, whole, written)
    return Beside(terminals, prizes, loaded.heaviest, deliveries, demands, pairing, _spreading(case))


def _seconds_to_prepare(search: SearchCase) -> float:
    """A limit that tools may make ready in, by their own estimates; none where they could not (replay)."""
    return 0.0 if search.start_looks else search.seconds or math.inf


def _spreading(case: Case) -> Spreading:
    """What is asked of seeds, beside their budget."""
    asked = case.influence
    return Spreading(
        asked.model, asked.probabilities, asked.probability, asked.epsilon, asked.delta, asked.sets,
        asked.simulations, case.seed,
    )  # fmt: skip


def _called(case: Case, loaded: Loaded, whole: Graph, row: int) -> str:
    """A node as the user calls it."""
    if loaded.labels is not None:
        return repr([*loaded.labels, *(loaded.demands or [])][int(whole.held_ids()[row])])
    if is_covering(case) and row >= count_candidates(whole):
        return demand_called(whole, row)
    return one_id(whole.held_ids(), row)


def _rows_of(nodes: np.ndarray | None, ids: np.ndarray) -> np.ndarray:
    """[k] int64, ascending: the rows of nodes that a caller names by their ids. Raises GraphError."""
    if nodes is None:
        return np.empty(0, dtype=np.int64)
    unknown = without(nodes, ids)
    if len(unknown):
        raise GraphError(f"inside, outside: node {one_id(unknown, 0)} is not in the graph")
    return np.flatnonzero(np.isin(ids, nodes))


def read_solution(problem: Problem, toolbox: Toolbox, path: str, written: np.ndarray) -> np.ndarray:
    """The solution of a file, in which nodes are called as `written` [n] says. Raises GraphError."""
    return problem.read(path, written) if toolbox.read is None else toolbox.read(path)


def _given(
    case: Case, problem: Problem, toolbox: Toolbox, loaded: Loaded, ids: np.ndarray
) -> np.ndarray | None:
    """The solution to begin with that a caller or a file names, as the problem has it; None: there is none.

    Raises GraphError.
    """
    if loaded.start is None:
        path = case.search.start
        return None if path in STARTS else read_solution(problem, toolbox, path, written_ids(loaded, ids))
    if problem.solution == MAPPING:
        return mapping_given(toolbox, loaded, ids)
    return given_solution(case, problem, loaded, ids)


def written_ids(loaded: Loaded, ids: np.ndarray) -> np.ndarray:
    """[n] what files of solutions call the nodes; what is not to be named keeps the last places.

    The ids of a file, or the labels of a graph in memory where all are whole numbers or names that files may
    have, else row numbers.
    """
    labels = loaded.labels
    if labels is None:
        return ids
    known = list(map(labels.__getitem__, ids[ids < len(labels)].tolist()))
    more = len(ids) - len(known)  # a reference and demands, which no file names
    if _are_ids(known):
        return np.array([*known, *[max(known, default=0) + 1] * more], dtype=np.int64)
    if all(type(each) is str and _is_name(each) for each in known):
        names = [each.encode() for each in known]
        return name_array([*names, *[max(names, default=b"") + b"\x7f"] * more])  # no file has it
    return ids


def _are_ids(labels: list[Any]) -> bool:
    """Whether labels are whole numbers that a file may have."""
    if set(map(type, labels)) == {int}:
        return min(labels) >= 0 and max(labels) < LARGEST_ID
    return all(is_whole(each) and 0 <= each < LARGEST_ID for each in labels)


def _is_name(text: str) -> bool:
    """Whether a label is a name that files may have."""
    return not CONTROL.search(text) and text.isprintable() and fault_of_name(text.encode()) is None


def given_solution(
    case: Case, problem: Problem, loaded: Loaded, ids: np.ndarray, called: str = "start"
) -> np.ndarray:
    """`loaded.start`, what a caller names by nodes, as the problem has it. Raises GraphError."""
    named = ids[:-1] if is_quadratic(case) else ids  # the reference is no variable
    rows = NodeIndex(named).find(loaded.start)
    if (rows < 0).any():
        raise GraphError(
            f"{called}: node {one_id(loaded.start, int((rows < 0).argmax()))} is not in the graph"
        )
    if problem.solution == TREE:
        return _tree_of_rows(rows, loaded.start, ids, called)
    if problem.solution == ROUTES:
        return _routes_of_rows(rows, loaded.routes, ids, called)
    if problem.solution in CLASSES:
        return _classes_of_rows(rows, loaded.start_colors, ids, called, CLASSES[problem.solution])
    if problem.solution not in ORDERS:
        return np.isin(np.arange(len(ids)), rows)
    if len(rows) != len(ids) or len(sorted_set(rows)) != len(ids):
        what = ORDERS[problem.solution]
        raise GraphError(f"{called}: found {len(rows)} {what}; each of {len(ids)} once would be right")
    return rows


def mapping_given(toolbox: Any, loaded: Loaded, ids: np.ndarray, called: str = "start") -> np.ndarray:
    """[n] int64, `loaded.start` as a mapping: -1 of nodes that it does not name. Raises GraphError."""
    rows, places = NodeIndex(ids).find(loaded.start), loaded.start_colors
    if (rows < 0).any():
        raise GraphError(
            f"{called}: node {one_id(loaded.start, int((rows < 0).argmax()))} is not in the first graph"
        )
    if toolbox.asked.labels is None:
        at = NodeIndex(toolbox.asked.others).find(places)
        if (at < 0).any():
            lost = one_id(places, int((at < 0).argmax()))
            raise GraphError(f"{called}: node {lost} is not in the second graph")
        places = at
    found = np.full(len(ids), -1, dtype=np.int64)
    found[rows] = places
    return found


def _tree_of_rows(rows: np.ndarray, named: np.ndarray, ids: np.ndarray, called: str) -> np.ndarray:
    """[n] int64, the parents of the tree of edges, pairs of rows [2 m], or of one row. Raises GraphError."""
    if len(rows) == 1:
        return tree_of(np.zeros((0, 2), dtype=np.int64), ids, int(rows[0]))
    return tree_of(rows.reshape(-1, 2), ids, called=called)


def _routes_of_rows(rows: np.ndarray, routes: np.ndarray, ids: np.ndarray, called: str) -> np.ndarray:
    """[n] int64, the stops of routes: rows [k] in order, and the route of each. Raises GraphError."""
    missing = without(np.arange(len(ids)), rows)
    if len(missing) != 1:
        told = f"found {len(rows)} customers on routes"
        raise GraphError(f"{called}: {told}; all {len(ids) - 1}, each once, and no depot, would be right")
    parts = np.split(rows, np.flatnonzero(np.diff(routes)) + 1) if len(rows) else []
    return after_of([part.tolist() for part in parts], len(ids), int(missing[0]))


def _classes_of_rows(
    rows: np.ndarray, numbers: np.ndarray, ids: np.ndarray, called: str, what: str
) -> np.ndarray:
    """[n] int64, of the colours (communities) [k] of rows [k]. Raises GraphError where a node has none."""
    found = np.full(len(ids), -1, dtype=np.int64)
    found[rows] = numbers
    if (found < 0).any():
        missing = one_id(ids, int((found < 0).argmax()))
        raise GraphError(f"{called}: node {missing} has no {what}; one for each node would be right")
    return found


def answer_whole(
    context: Context, pipeline: Pipeline | SampledPipeline, problem: Problem, loaded: Loaded, whole: Graph,
    alone: np.ndarray | None = None,
) -> Solved:  # fmt: skip
    """The pipeline on one instance, or what is better: a plain heuristic's solution, or the policy's.

    alone   [n] bool, that of the policy by itself, or None
    Ranks   all call; identical on all
    """
    case, group, begun = context.case, context.group, time.perf_counter()
    pipeline.keeper.at(0)  # before a pass over the whole graph
    toolbox = make_toolbox(context, problem, loaded, whole)
    ids = whole.held_ids()
    with raise_together(group, "reading the solution to start from"):
        given = _given(case, problem, toolbox, loaded, ids)
        if given is not None and (fault := toolbox.fault(given)) is not None:
            path = "start" if loaded.start is not None else case.search.start
            context.log.info("warning: %s: %s; it is repaired", path, fault)
    answer: Answer | None = None
    baselines: dict[str, float | int | None] = {}
    beside: dict[str, np.ndarray] = {}

    def solved(found: Answer) -> Solved:
        told = {"baselines": baselines}, pipeline.told(toolbox, found)
        return _solved(problem, toolbox, loaded, whole, found, *told, beside)

    try:
        spent = time.perf_counter() - begun
        kept = min(toolbox.closing_seconds, CLOSING_SHARE * case.search.seconds)
        answer = pipeline.answer(toolbox, whole.name, given, spent, kept)
        _check(context, toolbox, whole.name, answer)
        if case.search.baselines:
            with context.log.phase("baselines"):
                used = pipeline.used + kept  # what is kept comes after
                compared = _compared(context, problem, toolbox, whole.name, answer, alone, used)
                answer, baselines, beside = compared
    except Ended as ended:
        known = ended.so_far if answer is None else answer
        if known is not None:
            _check(context, toolbox, whole.name, known)
            ended.so_far = solved(known)
        raise
    return solved(answer)


def _solved(
    problem: Problem, toolbox: Toolbox, loaded: Loaded, whole: Graph, found: Answer, compared: dict[str, Any],
    told: dict[str, Any], beside: dict[str, np.ndarray],
) -> Solved:  # fmt: skip
    """All that is told and written of an answer.

    compared, told   entries of plain heuristics and of the pipeline     beside   the curves of the former
    """
    solution, ids = found.solution, partial(written_ids, loaded, whole.held_ids())
    entry = entry_of(toolbox, whole, found) | compared
    curves = {} if toolbox.curve is None else {"answer": toolbox.curve(solution), **beside}
    if curves:
        entry["robustness"] = {label: round(robustness(curve), 6) for label, curve in curves.items()}
    entry |= {name: in_unit(toolbox, part) for name, part in toolbox.split(solution).items()}
    entry |= toolbox.counts(solution)
    if measures := toolbox.measures(solution):
        entry["measures"] = measures
    entry |= told
    entry["bound_is_weak"] = is_weak(entry)
    if toolbox.text is None:
        text = problem.text(solution, ids())
    else:
        text = toolbox.text(solution, entry["objective"])
    course = "" if toolbox.course is None else toolbox.course(solution, ids())
    rest = found.trace, whole, loaded.metric, found.certificate, course, curves_text(curves)
    return Solved(entry, text, solution, *rest)


def _check(context: Context, toolbox: Toolbox, name: str, answer: Answer) -> None:
    """A wrong answer is an internal error, never a result. Ranks: all call."""
    with context.log.phase("check"), raise_together(context.group, "checking the solution"):
        fault = toolbox.fault(answer.solution)
        if fault is not None:
            raise LockstepError(f"{name}: {fault}")


def _compared(
    context: Context,
    problem: Problem,
    toolbox: Toolbox,
    name: str,
    answer: Answer,
    alone: np.ndarray | None,
    used: float,
) -> tuple[Answer, dict[str, float | int | None], dict[str, np.ndarray]]:
    """The best of an answer and what it is compared with; the objectives of the latter, by label, and their
    curves.

    The search does not begin from it: its course, and with it nearly all answers, would be others.
    alone   see answer_whole
    used    seconds of a time limit that were
    Ranks   all call
    """
    begun = time.perf_counter()
    compared = compare(context, toolbox, name, seconds_of_baselines(context.case, used), drawn=True)
    values, rival = dict(compared.values), compared.rival(context.group, toolbox)
    curves = dict(compared.curves)
    if alone is not None:
        other = _rival_alone(problem, toolbox, name, alone)
        values[POLICY_ALONE] = other.value
        if toolbox.curve is not None:
            curves[POLICY_ALONE] = toolbox.curve(other.solution())
        rival = other if rival is None or toolbox.improves(other.value, rival.value) else rival
    if context.case.search.seconds and answer.replay:  # the clock says which begin, if any
        key = f"search.heuristic={compared.name}" if compared.name else "search.baselines=false"
        answer = replace(answer, replay=[*answer.replay, key])
    if rival is not None and toolbox.improves(rival.value, answer.value):
        spent = time.perf_counter() - begun
        context.log.info(
            "%s: the answer is that of %s, %s; the search found %s in %d steps", name, rival.source,
            figures(in_unit(toolbox, rival.value)), figures(in_unit(toolbox, answer.value)), answer.steps,
        )  # fmt: skip
        answer = _replaced(toolbox, name, answer, rival, spent)
    return answer, {label: in_unit(toolbox, each) for label, each in values.items()}, curves


def _rival_alone(problem: Problem, toolbox: Toolbox, name: str, alone: np.ndarray) -> Rival:
    """The policy's solution, checked."""
    solution = problem.canonical(alone)
    if (fault := toolbox.fault(solution)) is not None:
        raise LockstepError(f"{POLICY_ALONE} on {name}: {fault}")
    return Rival(POLICY_ALONE, toolbox.value(solution), lambda: solution)


def _replaced(toolbox: Toolbox, name: str, answer: Answer, rival: Rival, spent: float) -> Answer:
    """The answer with a better solution, found so many seconds after it. Ranks: all call."""
    solution = rival.solution()
    if (fault := toolbox.fault(solution)) is not None or toolbox.value(solution) != rival.value:
        raise LockstepError(f"{rival.source} on {name}: {fault or 'its value is another'}")
    best = rival.value if toolbox.unit == 1 else rival.value * toolbox.unit
    bound = None if answer.bound is None else answer.trace[-1].bound
    event = Event(answer.seconds + spent, best, bound)
    return replace(
        answer, solution=solution, value=rival.value, source=rival.source, trace=[*answer.trace, event]
    )


def in_unit(toolbox: Any, value: int | None) -> float | int | None:
    """A value as the objective it stands for, rounded to the decimals that its weights, or its unit, have."""
    if value is None or toolbox.unit == 1:
        return value
    objective, weights = value * toolbox.unit, toolbox.weights
    decimals = _decimals(toolbox.unit) if weights is None else decimals_of(weights * toolbox.unit)
    return objective if decimals is None else round(objective, decimals or None)


def _decimals(unit: float) -> int | None:
    """Those of the multiples of a power of ten below one; None for another number."""
    digits = round(-math.log10(unit))
    return digits if digits > 0 and 10.0**-digits == unit else None


def bound_and_gap(toolbox: Toolbox, best: int, bound: int | None) -> tuple[float | int | None, float | None]:
    """A bound as it is shown beside the best value, and how far that is from it: 0 where it is optimal.

    Decimal weights are kept in 32 bits, so that sums are near numbers of as many decimals, not at them.
    A bound is shown as the next such number that a solution can have, where all that was lost is far less
    than one unit of the last decimal; else rounded away from the best value.
    """
    if bound is None:
        return None, None
    decimals = None
    if bound != best and toolbox.unit != 1 and toolbox.weights is not None:
        decimals = decimals_of(toolbox.weights * toolbox.unit)
    if decimals is None:
        return in_unit(toolbox, bound), relative_gap(best, bound)
    exact, step, upward = bound * toolbox.unit, 10.0**-decimals, toolbox.sense == "minimise"
    error = 2 * (2.0**-24 * float(np.abs(toolbox.weights).sum()) + len(toolbox.weights)) * toolbox.unit
    if error <= step / 4:
        whole = math.ceil((exact - error) / step) if upward else math.floor((exact + error) / step)
        shown = round(whole * step, decimals or None)
        return shown, relative_gap(in_unit(toolbox, best), shown)
    whole = math.floor(exact / step) if upward else math.ceil(exact / step)
    return round(whole * step, decimals or None), relative_gap(best, bound)


def is_weak(entry: dict[str, Any]) -> bool:
    """Whether the bound of an entry of result.json is far from all values that are known, not from the answer
    alone."""
    if entry["bound"] is None:
        return False
    known = [entry["objective"], *entry["baselines"].values()]
    best = min(known) if entry["sense"] == "minimise" else max(known)
    return relative_gap(best, entry["bound"]) > WEAK


def entry_of(toolbox: Toolbox, graph: Graph, answer: Answer) -> dict[str, Any]:
    """The instance's entry of result.json, without baselines."""
    bound, gap = bound_and_gap(toolbox, answer.value, answer.bound)
    return {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges,
        "objective": in_unit(toolbox, answer.value), "sense": toolbox.sense,
        "bound": bound, "bound_method": answer.method or None,
        "gap": None if gap is None else round(gap, 6), "bound_is_weak": False,
        "bound_verified": answer.verified, "optimal": gap == 0, "feasible": True,
        "source": answer.source, "learned": in_unit(toolbox, answer.learned),
        "greedy": in_unit(toolbox, answer.quick), "policy_evaluations": answer.evaluations,
        "steps": answer.steps, "replay": answer.replay, "seconds": round(answer.seconds, 4),
        "primal_dual_integral": round(answer.integral, 4), "baselines": {},
        "digest": digest(
            {
                "solution": answer.solution.astype("<i8"),
                "size": np.array([graph.n, graph.edges], dtype="<i8"),
            }
        ),
    }  # fmt: skip
