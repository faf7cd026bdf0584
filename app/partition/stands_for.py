"""What edges stand for in a case: a graph, terms of functions, families of sets, sets of graphs."""

from dataclasses import replace

from app.case.config import Case
from app.case.rules.problems import OF_ARCS
from app.errors import GraphError
from app.graphs.covering import COVERAGE, FAMILIES, NEIGHBOURHOODS, OF_FAMILIES, as_covering
from app.graphs.formats.qaplib import FORMAT as QAPLIB
from app.graphs.members import counted, with_own_rows
from app.graphs.ordering import ORDERING, as_summed
from app.graphs.pairing import ALIGNMENT, QAP
from app.graphs.quadratic import QUADRATIC, as_cut
from app.graphs.stream import EdgeStream

DIRECTED = ("dfvs", ORDERING)  # problems of arcs
SPREADING = "influence"  # one of arcs, or of edges that lead both ways
OF_GRAPHS = ("ogb", "tu")  # formats that may hold graphs with labels of their own


def is_quadratic(case: Case) -> bool:
    """Whether the graphs of a case hold the terms of quadratic functions."""
    return case.problem.name in QUADRATIC and case.run.task != "classify"


def is_covering(case: Case) -> bool:
    """Whether the graphs of a case hold families of sets."""
    return case.problem.name in OF_FAMILIES and case.run.task != "classify"


def of_neighbourhoods(case: Case) -> bool:
    """Whether the sets of a case are the closed neighbourhoods of a graph."""
    return is_covering(case) and case.problem.name == COVERAGE and case.problem.sets == "neighbourhoods"


def is_ordering(case: Case) -> bool:
    """Whether arcs of a case that are listed several times add up."""
    return case.problem.name == ORDERING and case.run.task != "classify"


def is_directed(case: Case) -> bool:
    """Whether the problem of a case is one of arcs, from one node to another."""
    if is_paired(case):
        return case.problem.directed
    return case.problem.name in DIRECTED and case.run.task != "classify"


def directions(case: Case, neighbours: str) -> str:
    """Which arcs the rows of a case's graphs hold, where the table says `neighbours`."""
    return "out" if is_directed(case) or (_spreads(case) and case.influence.directed) else neighbours


def directions_made(case: Case, generator: str) -> str:
    """The same of graphs that a generator makes: edges of some have directions."""
    return "both" if _spreads(case) and generator not in OF_ARCS else directions(case, "both")


def _spreads(case: Case) -> bool:
    """Whether news spreads along the edges of a case."""
    return case.problem.name == SPREADING and case.run.task != "classify"


def is_paired(case: Case) -> bool:
    """Whether the nodes of a case's graph are put on those of another."""
    return case.problem.name in (QAP, ALIGNMENT) and case.run.task != "classify"


def is_set(case: Case) -> bool:
    """Whether a case learns what whole graphs are, of a set of them."""
    return case.gnn.level == "graph" and case.run.task in ("classify", "study")


def stands_for(case: Case) -> str:
    """The problem, where what a case reads stands for another graph: terms of functions, sets, arcs that add
    up; else "".
    """
    if of_neighbourhoods(case):
        return NEIGHBOURHOODS
    return case.problem.name if is_quadratic(case) or is_covering(case) or is_ordering(case) else ""


def graph_of(stream: EdgeStream, problem: str) -> EdgeStream:
    """The graph that terms or sets stand for, of a problem that `stands_for` names; else the stream."""
    if problem in QUADRATIC:
        return as_cut(stream, problem)
    if problem == ORDERING:
        refuse_family(stream)
        refuse_undirected(stream, problem)
        return as_summed(stream)
    return as_covering(stream, problem) if problem in OF_FAMILIES else stream


def graph_to_solve(stream: EdgeStream, case: Case) -> EdgeStream:
    """What a case solves of a stream, or learns on. Raises GraphError for what is no graph."""
    if is_set(case):
        return with_own_rows(stream)
    if made_for := stands_for(case):
        return graph_of(stream, made_for)
    if stream.format == "qubo" and case.run.task != "classify":
        raise GraphError(f'{stream.path}: a quadratic function; problem.name = "qubo" would be right')
    if (
        stream.deliveries is not None
        and case.problem.name in ("tsp", "facility")
        and case.run.task != "classify"
    ):
        right = 'problem.name = "cvrp", or a file of TYPE TSP, would be right'
        raise GraphError(f"{stream.path}: holds demands of customers, for several routes; {right}")
    if stream.format == QAPLIB and case.problem.name != QAP and case.run.task != "classify":
        raise GraphError(f'{stream.path}: a quadratic assignment; problem.name = "qap" would be right')
    if stream.metric is not None and is_paired(case):
        found = f"{stream.path or stream.name}: has distances between all nodes"
        raise GraphError(f"{found}; a graph, or a QAPLIB file, would be right")
    refuse_family(stream)
    if stream.prized and not reads_prizes(case):
        stream = replace(stream, node_weights=None, prized=False, heaviest=False)  # prizes are no weights
    if is_directed(case) and stream.pairing is None:
        refuse_undirected(stream, case.problem.name)
    return stream


def reads_prizes(case: Case) -> bool:
    """Whether prizes of nodes count in what a case solves."""
    return case.problem.name == "steiner" and case.run.task == "solve"


def refuse_undirected(stream: EdgeStream, problem: str) -> None:
    """Refuse edges that go nowhere, where arcs are wanted. Raises GraphError."""
    if stream.undirected or stream.metric is not None:
        what = "a graph without directions" if stream.format == "networkx" else "edges without directions"
        right = "an edge list 'from to', Matrix Market general, DIMACS 'a' lines, PACE 2022 or LOLIB"
        right += " would be right"
        if stream.format in ("memory", "networkx"):
            right = "a networkx.DiGraph, a matrix or a list of pairs (from, to) would be right"
        found = f"{stream.path or stream.name}: found {what} ({stream.format})"
        raise GraphError(f"{found}; {problem} is of arcs: {right}")


def refuse_family(stream: EdgeStream) -> None:
    """Refuse a family of sets where a graph is wanted. Raises GraphError."""
    if stream.sets is not None or stream.format in FAMILIES:
        right = 'problem.name = "set_cover" or "hitting_set" would be right, or "coverage"'
        raise GraphError(f"{stream.path or stream.name}: a family of sets; {right}")


def renamed(stream: EdgeStream, names: tuple[str, ...]) -> EdgeStream:
    """The stream of a set with other names of its graphs. Raises GraphError where there are not as many."""
    count = 1 if stream.sizes is None else len(stream.sizes)
    if count != len(names):
        right = "one graph in each file would be right"
        raise GraphError(f"{stream.name}: found {count} graphs for {len(names)} names; {right}")
    return replace(stream, graph_names=names)


def graph_of_set(stream: EdgeStream) -> EdgeStream:
    """A stream of one or several graphs of a set, which states its nodes. Raises GraphError."""
    refuse_family(stream)
    if stream.metric is not None:
        raise GraphError(f"{stream.name}: has distances between all nodes; edges would be right")
    return counted(stream) if stream.nodes is None else stream


def refuse_sets(streams: list[EdgeStream]) -> None:
    """Refuse files of many graphs where one is wanted. Raises GraphError."""
    for each in streams:
        if each.sizes is not None and each.format in OF_GRAPHS:
            right = 'one graph, or gnn.level = "graph" of networks, would be right'
            raise GraphError(f"{each.path}: holds {len(each.sizes)} graphs; {right}")
