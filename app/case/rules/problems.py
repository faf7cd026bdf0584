"""Rules of problems: keys of one that others leave unread, and graphs that it is not of."""

from collections.abc import Iterator

from app.case.config import Case
from app.case.graph import OF_POINTS
from app.case.influence import InfluenceCase
from app.case.policy import ProblemCase
from app.case.rules.mistake import Mistake, changed, unread_of_graphs
from app.text import show

OF_ARCS = ("arcs", "rmat", "rmat_natural")  # generators whose edges have directions
ONLY_ONE = 'only problem.name = "{}" has {}, and run.task = "solve" reads {}: leave it out'
PAIRED = ("alignment", "qap")  # problems of two graphs


def communities(case: Case) -> Iterator[Mistake]:
    """Keys of communities, of other problems or of a null model that has none."""
    problem, read = case.problem, case.problem.name == "communities"
    if problem.null != "degrees" and not read:
        yield (
            ("problem", "null"),
            f'only communities have one: "degrees" would be right, got {show(problem.null)}',
        )
    if problem.resolution != 1 and (not read or problem.null == "none"):
        whose = f"nothing reads it with null {show(problem.null)}" if read else "only communities have one"
        yield ("problem", "resolution"), f"{whose}: 1.0 would be right, got {problem.resolution}"


def partition(case: Case) -> Iterator[Mistake]:
    """Keys of balanced partitions, of other problems."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "partition":
        return
    for key in changed(problem, ("parts", "imbalance")):
        found = f"{getattr(usual, key)} would be right, got {getattr(problem, key)}"
        yield ("problem", key), f"only partition has one: {found}"


def dismantling(case: Case) -> Iterator[Mistake]:
    """How large components may be, of other problems; neither a whole number nor a share."""
    problem, usual = case.problem, ProblemCase()
    given = problem.component
    if problem.name != "dismantle":
        if given != usual.component:
            right = f"only dismantle has one: {usual.component} would be right, got {given:g}"
            yield ("problem", "component"), right
    elif given > 1 and given % 1:
        right = "a whole number of nodes, or a share of them below 1, would be right"
        yield ("problem", "component"), f"{right}, got {given:g}"


def coverage(case: Case) -> Iterator[Mistake]:
    """What is chosen for which budget, and weights of elements, of other problems."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "coverage":
        if case.run.task != "solve":
            return  # what else there is refuses it by its name
        if problem.sets == "neighbourhoods" and case.graph.generator in ("sets", *OF_POINTS):
            found = f"er or ba would be right, got {show(case.graph.generator)}"
            yield ("graph", "generator"), f"neighbourhoods are those of a graph: {found}"
        if problem.sets == "family" and case.graph.generator not in ("", "sets"):
            right = '"sets", or problem.sets = "neighbourhoods", would be right'
            yield ("graph", "generator"), f"{right}, got {show(case.graph.generator)}"
        return
    for key in changed(problem, ("budget", "sets")):
        if problem.name in ("influence", "facility") and key == "budget":
            continue
        whose = "coverage, influence and facility have" if key == "budget" else "coverage has"
        found = f"{show(getattr(usual, key))} would be right, got {show(getattr(problem, key))}"
        yield ("problem", key), f"only {whose} one: {found}"
    for keys in unread_of_graphs(case, ("element_weights",)):
        yield keys, "only coverage has weights of elements: leave it out"


def influence(case: Case) -> Iterator[Mistake]:
    """Keys of influence maximisation, of other problems; one that the probabilities leave unread."""
    asked, usual = case.influence, InfluenceCase()
    if case.problem.name == "influence" and case.run.task in ("train", "study"):
        return  # what else there is refuses it by its name
    if case.problem.name != "influence" or case.run.task != "solve":
        for key in changed(asked, asked.__struct_fields__):
            yield ("influence", key), ONLY_ONE.format("influence", "one", "it")
        return
    if asked.probability != usual.probability and asked.probabilities != "constant":
        yield ("influence", "probability"), 'is read with influence.probabilities = "constant"; leave it out'
    if case.graph.generator in ("sets", *OF_POINTS):
        found = f"er, ba or arcs would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"news spreads along edges: {found}"
    if case.graph.complement:
        yield ("graph", "complement"), "is of edges without directions; false would be right"


def facility(case: Case) -> Iterator[Mistake]:
    """Which facilities are sought, of other problems; a number of them that is none, or that nobody reads."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "facility" and case.run.task != "solve":
        return  # what else there is refuses it by its name
    if problem.name != "facility":
        if problem.facility != usual.facility:
            right = f"only facility has one: {show(usual.facility)} would be right"
            yield ("problem", "facility"), f"{right}, got {show(problem.facility)}"
        return
    if problem.facility == "uncapacitated":
        if problem.budget != usual.budget:
            yield ("problem", "budget"), "any number of facilities may be opened at their costs; leave it out"
    elif problem.budget % 1:
        yield ("problem", "budget"), f"a whole number of facilities would be right, got {problem.budget:g}"
    if case.graph.complement:
        yield ("graph", "complement"), "edges that are not there have no lengths; false would be right"
    if case.graph.generator in ("sets", "customers", "arcs"):
        found = f"er, geometric or uniform_points would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"facilities are nodes of a graph, or points: {found}"


def dense(case: Case) -> Iterator[Mistake]:
    """Which dense subgraphs are sought, and of how many nodes, of other problems; a number nobody reads."""
    problem, task = case.problem, case.run.task
    if problem.name == "dense" and task in ("train", "study"):
        return  # what else there is refuses it by its name
    if problem.name != "dense" or task != "solve":
        for key in changed(problem, ("dense", "size")):
            yield ("problem", key), ONLY_ONE.format("dense", "one", "it")
        return
    if problem.dense == "average":
        for key in changed(problem, ("size",)):
            yield ("problem", key), 'is read with problem.dense = "size"; leave it out'
    if problem.dense == "size" and case.graph.node_weights:
        yield ("graph", "node_weights"), "so many nodes are chosen, whatever they weigh: leave it out"
    if case.graph.generator in ("sets", *OF_POINTS):
        found = f"er or ba would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"dense subgraphs are of edges: {found}"


def steiner(case: Case) -> Iterator[Mistake]:
    """Terminals and prizes, of other problems; prizes of nodes that are not drawn, or that files have."""
    if case.problem.name == "steiner" and case.run.task == "solve":
        if case.problem.prizes and not case.problem.terminals:
            yield (
                ("problem", "prizes"),
                "is of nodes that problem.terminals draws: set that too, or leave it out",
            )
        for key in ("prizes", "terminals"):
            if case.problem.prizes and case.graph.path and getattr(case.graph, key):
                yield ("problem", "prizes"), f"graph.{key} names nodes: one of the two would be right"
        return
    for key in ("terminals", "prizes"):
        right = ONLY_ONE.format("steiner", key, "them")
        if getattr(case.problem, key):
            yield ("problem", key), right
        yield from ((keys, right) for keys in unread_of_graphs(case, (key,)))


def pairs(case: Case) -> Iterator[Mistake]:
    """Second graphs, and what is said of them, of other problems; what drawn graphs have not."""
    problem, usual = case.problem, ProblemCase()
    asked = problem.name in PAIRED and case.run.task == "solve"
    if problem.name in PAIRED and case.run.task in ("train", "study"):
        return  # what else there is refuses it by its name
    right = 'only alignment and qap have {}, and run.task = "solve" reads it: leave it out'
    for keys in unread_of_graphs(case, ("onto", "seeds", "similarity"), read=asked):
        yield keys, right.format("one")
    if not asked:
        for key in changed(problem, ("directed", "noise")):
            yield ("problem", key), right.format("it")
        return
    drawn = case.graph.generator and not case.graph.path
    if problem.noise != usual.noise and (problem.name == "qap" or not drawn):
        yield ("problem", "noise"), "is of the copies of graphs that are drawn, of alignment: leave it out"
    if problem.directed and drawn and case.graph.generator not in OF_ARCS:
        found = f"{', '.join(OF_ARCS)} would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"problem.directed is of arcs: {found}"
    if case.graph.generator in ("sets", *OF_POINTS):
        found = f"er or ba would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"nodes of a graph are put on others: {found}"
    if case.graph.complement:
        yield ("graph", "complement"), "is of the first graph alone; false would be right"


def routing(case: Case) -> Iterator[Mistake]:
    """Demands, capacities, depots, vehicles and limits, of other problems; services without a limit."""
    if case.problem.name == "cvrp" and case.run.task == "solve":
        if case.problem.service and not case.problem.max_length:
            yield (
                ("problem", "service"),
                "is part of the length of a route that problem.max_length limits: set that",
            )
        return
    for key in changed(case.problem, ("capacity", "depot", "vehicles", "max_length", "service")):
        right = 'only problem.name = "cvrp" has routes, and run.task = "solve" finds them: leave it out'
        yield ("problem", key), right
    read = case.problem.name == "facility" and case.run.task == "solve"
    for keys in unread_of_graphs(case, ("demands",), read):
        yield keys, 'only cvrp and facility have demands, and run.task = "solve" reads them: leave it out'


def directed(case: Case) -> Iterator[Mistake]:
    """Graphs of a problem of arcs that have none."""
    if case.problem.name not in ("dfvs", "ordering") or case.run.task != "solve":
        return
    right = f"{case.problem.name} is of arcs: {', '.join(OF_ARCS)} would be right"
    if case.graph.generator not in ("", *OF_ARCS):
        yield ("graph", "generator"), f"{right}, got {show(case.graph.generator)}"
    if case.graph.complement:
        yield ("graph", "complement"), "is of edges without directions; false would be right"


def eliminations(case: Case) -> Iterator[Mistake]:
    """What elimination orders are judged by, of other problems; weights that are not counted."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "treewidth" and case.run.task == "solve":
        if problem.eliminate == "fill" and case.graph.node_weights:
            yield ("graph", "node_weights"), "fill-in counts edges: leave it out"
        return
    if problem.eliminate != usual.eliminate:
        yield ("problem", "eliminate"), ONLY_ONE.format("treewidth", "one", "it")


def arrangements(case: Case) -> Iterator[Mistake]:
    """What linear arrangements are judged by, of other problems; weights that are not counted."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "arrangement" and case.run.task == "solve":
        if case.graph.edge_weights != "one" and problem.arrange not in ("length", "cutwidth"):
            right = f'{problem.arrange} counts edges and nodes, without weights: "one" would be right'
            yield ("graph", "edge_weights"), right
        return
    if problem.arrange != usual.arrange:
        yield ("problem", "arrange"), ONLY_ONE.format("arrangement", "one", "it")
