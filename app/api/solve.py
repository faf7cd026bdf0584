"""Answers from Python: a problem solved on a graph in memory or in a file, and answers checked."""

import os
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any, NamedTuple

from mpi4py import MPI

from app.api.given import check_given, refuse_data_keys
from app.api.graph import loaded_graph, loses_directions, refuse_node_weights, with_element_weights
from app.api.nodes import with_fixed, with_start, with_terminals
from app.api.pairs import mapping_named, two_graphs, with_pairs
from app.api.results import Checked, Solution, TrainedPolicy
from app.api.routes import with_deliveries, with_needs
from app.case.file import merged
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.gnn.parameters import Parameters
from app.log import warn_caller
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.problems.table import MAPPING, ROUTES, TREE, WEIGHED, problem_of
from app.rl.qnet import QNetwork
from app.rl.weights import trained_for
from app.search.dismantle.course import read_curves
from app.tasks.check import value_given
from app.tasks.compare import refuse_unfit
from app.tasks.context import Context, context_of_settings
from app.tasks.deliveries import FACILITY
from app.tasks.policy import Policy, find_policy
from app.tasks.solve import solve_graph, with_searches
from app.tasks.solved import Solved, assignment_named, bags_named, edges_named, order_named, routes_named
from app.text import show
from app.threads import with_few_threads


@with_few_threads
def solve(
    graph: Any,
    problem: str | None = None,
    *,
    search_seconds: float | None = None,
    weights: str | TrainedPolicy = "default",
    node_weights: Any = None,
    element_weights: Any = None,
    inside: Any = None,
    outside: Any = None,
    terminals: Any = None,
    prizes: Any = None,
    demands: Any = None,
    capacity: float | None = None,
    depot: Any = None,
    vehicles: int | None = None,
    windows: Any = None,
    service: Any = None,
    max_length: float | None = None,
    seeds: Any = None,
    similarity: Any = None,
    start: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Solution:
    """Answer a problem on a graph, check the answer and bound it.

    mvc, mis, mds, fvs, dfvs, dismantle and clique of nodes with weights ask for the least (mis, clique: the
    largest) total weight of nodes, maxcut, tsp and cvrp of edges, qubo and ising of edges and loops,
    set_cover of sets, hitting_set of elements; coverage for the largest total weight of elements, where
    those of sets are costs, which problem.budget of the settings limits; influence for the largest expected
    spread of nodes, whose weights are costs likewise. What is lost of weights is a Python
    warning: they are kept in 32 bits.

    graph      a NetworkX graph, a SciPy sparse matrix, the name or path of a file (docs/formats.md), a
               DataFrame of edges (two columns of nodes, numbers or names, perhaps one of weights), an array:
               [n, n] adjacency, else [m, 2] pairs of node numbers, [m, 3] pairs and weights (a square one is
               always an adjacency matrix), a list of tuples, each an edge (u, v) or (u, v, weight) of node
               numbers; for a tour or routes [n, 2] coordinates, whose distances are rounded to whole
               numbers (TSPLIB's EUC_2D) only where they are integers, or distances: [n, n], or the edge
               attributes `weight` of a complete NetworkX graph; also a DataFrame of either
               (app/graphs/tour_tables.py).
               Distances may differ by direction: [i, j] is from i to j. Those that are no whole numbers are
               kept to 10^-7 of the largest, to 10^-6 where they differ by direction (less where all tours
               are far longer than the least ways out of and into all cities).
               For qubo a square matrix Q, whose function is x^T Q x, or terms: a list of (i, j, c), a mapping
               {(i, j): c}, a pair (h, J) of linear terms (numbers, or a mapping {i: c}) and products of two
               variables (such a mapping or list, or a matrix), a NetworkX graph with loops, each of which
               adds c x_i x_j, or c x_i where i = j. For ising the same terms of spins s_i, -1 or 1, in place
               of x_i.
               For set_cover, hitting_set and coverage a family of sets: a mapping {set: its elements}, a
               list of sets, a matrix [sets, elements], a DataFrame of two columns, set and element, or a
               NetworkX graph with the node attribute `bipartite` (app/graphs/formats/memory_sets.py); with
               problem.sets = "neighbourhoods" of the settings coverage takes any graph.
               For facility a graph as above, with lengths of edges as their weights; points or distances are
               NumPy arrays [n, 2] and [n, n], or DataFrames, as for a tour.
               For alignment and qap a pair of graphs, or of matrices, (A, B), whose entries may differ by
               direction, or of paths; of qap also the path of a QAPLIB file
    problem    mvc (the default), mis, mds, fvs, dfvs (of arcs: a directed graph), dismantle, clique, maxcut,
               qubo, ising, set_cover, hitting_set, coverage, influence (of arcs, where the graph is
               directed), facility, dense, ordering (of arcs; parallel ones add up, weights of any sign),
               coloring, communities, partition, steiner, treewidth, tsp, cvrp, alignment or qap; the same as
               problem.name of the settings
    search_seconds   wall time of the search; None: the work that search.steps says
    weights    "default", a weights.npz, or what `train` returned: of the policy
    node_weights   [n] numbers in the order of the nodes, or a mapping by node, of mvc, mis, mds, fvs, dfvs,
               dismantle and clique, of treewidth what they add to a bag, of facility what opening costs
               (uncapacitated), else demands, of dense (average) sizes; of steiner
               weights of any sign, for the connected subgraph that weighs most (edges cost nothing); None:
               the node attributes `weight` of a NetworkX graph, those of the file (METIS, DIMACS) or of the
               file that graph.node_weights of the settings names, or all one
    element_weights   of coverage, in memory: numbers in the order of the elements (ascending labels of a
               mapping or list, else as they are given), or a mapping by element; None: those of the file
               (hMETIS, or the one that graph.element_weights of the settings names), or all one
    inside, outside   nodes that the answer must hold, and must not: labels of a NetworkX graph, nodes of a
               DataFrame, ids or names of a file, or row numbers; of a cut: nodes of side 1 and of side 0; of
               qubo: variables that are 1, as `nodes` of the answer, and variables that are 0; of ising: spins
               that are 1, and -1; not of coloring, communities, treewidth, tsp and cvrp
    terminals  of steiner: the nodes, called likewise, that a tree has to hold; None: those of the file
               (SteinLib), of the file that graph.terminals of the settings names, or problem.terminals drawn
    prizes     of steiner: what a tree pays for nodes that it leaves out, a mapping of nodes to numbers (0 of
               others), or [n] numbers in the order of the nodes; None: the node attributes `prize` of a
               NetworkX graph, those of the file (SteinLib), of the file that graph.prizes of the settings
               names, or none. Terminals are then held beside, if there are some
    demands, capacity, depot, vehicles   of cvrp: what each customer needs, [n] numbers in the order of the
               nodes or a mapping by node (the depot's may be left out); what a vehicle carries; the node
               where routes begin and end (the first); how many there may be (any number); None: that of the
               file (CVRPLIB), or of graph.demands, problem.capacity, depot and vehicles of the settings
               demands also of facility: what each node needs; None: one each, or those of graph.demands
    windows, service, max_length   of cvrp: when service may begin, [n] pairs (earliest, latest; None: any
               time) in the order of the nodes or a mapping by node, of the depot when vehicles leave and have
               to be back; how long a service takes, a number or [n]; how long a route may be, services
               included, in the place of windows. A vehicle takes a unit of time for each of length
    seeds, similarity   of alignment and qap, in memory: pairs that are known and stay, a mapping of nodes
               of A to nodes of B; what pairs add to the objective (qap: cost) by themselves, a matrix [n, m]
               or a mapping {(node of A, node of B): number}; of files graph.seeds and graph.similarity
    start      a Solution of an earlier call, nodes as its `nodes` are, of steiner edges as its `edges` are or
               a NetworkX tree, of cvrp its `routes`, of alignment and qap its
               `mapping`, or a mapping of all nodes to 0 or 1
               (of spins -1 or 1, of coloring and communities to whole numbers from 0 on): where searches
               begin, as with the file search.start. What is infeasible is repaired; of a feasible one the
               answer is never worse
    settings   keys of a case, as {"select.rule": "fraction", "select.fraction": 0.01}
    comm       default: MPI.COMM_WORLD; all its ranks call with the same graph, all get the same answer
    """
    weights = os.fspath(weights) if isinstance(weights, os.PathLike) else weights
    named = weights if isinstance(weights, str) else "default"
    asked = {"problem.name": problem, "search.seconds": search_seconds}
    asked = {key: value for key, value in asked.items() if value is not None}
    context = context_of_settings(merged({"policy.weights": named}, settings, asked), comm, verbose)
    refuse_data_keys(context.case, "solve")
    if loses_directions(context, graph):
        said = f"solve: {context.case.problem.name} is of edges without directions"
        warn_caller(f"{said}: those of a directed graph count both ways")
    context = replace(context, case=with_searches(context.case))
    refuse_node_weights(context.case.problem.name, node_weights)
    words = _Words(
        element_weights=element_weights, inside=inside, outside=outside, terminals=terminals, demands=demands,
        capacity=capacity, depot=depot, vehicles=vehicles, windows=windows, service=service,
        max_length=max_length, seeds=seeds, similarity=similarity,
    )  # fmt: skip
    context, loaded, labels = _loaded(context, graph, node_weights, prizes, words)
    loaded = with_start(context, loaded, labels, start)
    problem = problem_of(context.case)
    refuse_unfit(context, problem, loaded)
    policy = _policy(context, weights)
    solved = solve_graph(context, problem, policy, loaded)
    return _solution(context, solved, loaded, labels)


@with_few_threads
def check(
    graph: Any,
    answer: Any,
    problem: str | None = None,
    *,
    certificate: str | bytes | None = None,
    node_weights: Any = None,
    element_weights: Any = None,
    inside: Any = None,
    outside: Any = None,
    terminals: Any = None,
    prizes: Any = None,
    demands: Any = None,
    capacity: float | None = None,
    depot: Any = None,
    vehicles: int | None = None,
    windows: Any = None,
    service: Any = None,
    max_length: float | None = None,
    seeds: Any = None,
    similarity: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Checked:
    """Whether an answer, of `solve` or from elsewhere, is feasible, what it is worth, how far from optimal.

    Neither the answer's objective nor its bound is believed. GraphError says why an answer is infeasible.

    graph, problem, node_weights, element_weights, inside, outside, terminals, prizes, demands,
    capacity, depot, vehicles, windows, service, max_length, seeds, similarity, settings, comm,
    verbose   as of `solve`
    answer       a Solution, whose problem need not be named; nodes as its `nodes` are: those chosen, a cut's
                 nodes of side 1, variables that are 1, all cities in the order of a tour, all nodes from
                 first to last, or in that of their elimination, a tree's edges, routes, or the classes of a
                 colouring, or communities; a mapping of all nodes to 0 or 1 (of spins -1 or 1, of coloring
                 and communities to whole numbers from 0 on); or the path of a file of solutions
    certificate  what proves a bound: the bytes, or the file, of a Solution's `certificate`; None: those of
                 the answer if it has some, else a bound is looked for within search.bound_seconds
    """
    if problem is None and isinstance(answer, Solution) and "problem.name" not in (settings or {}):
        problem = answer.problem
    asked = {} if problem is None else {"problem.name": problem}
    context = context_of_settings(merged(settings, asked), comm, verbose)
    refuse_data_keys(context.case, "solve")
    refuse_node_weights(context.case.problem.name, node_weights)
    certificate, path = _answer_given(context.group, answer, certificate)
    words = _Words(
        element_weights=element_weights, inside=inside, outside=outside, terminals=terminals, demands=demands,
        capacity=capacity, depot=depot, vehicles=vehicles, windows=windows, service=service,
        max_length=max_length, seeds=seeds, similarity=similarity,
    )  # fmt: skip
    context, loaded, labels = _loaded(context, graph, node_weights, prizes, words)
    refuse_unfit(context, problem_of(context.case), loaded)
    if not path:
        loaded = with_start(context, loaded, labels, answer, "answer")
    found = value_given(context, loaded, certificate, path)
    return Checked(**asdict(found), optimal=found.gap == 0)


def _answer_given(group: Group, answer: Any, certificate: str | bytes | None) -> tuple[str | bytes, str]:
    """What proves an answer's bound, and the path of the answer, "" in memory; both are refused where they
    are none. Ranks: all call.
    """
    if certificate is None:
        certificate = answer.certificate if isinstance(answer, Solution) else b""
    certificate = os.fspath(certificate) if isinstance(certificate, os.PathLike) else certificate
    path = os.fspath(answer) if isinstance(answer, str | os.PathLike) else ""
    with raise_together(group, "reading the certificate"):
        if not isinstance(certificate, str | bytes):
            right = "bytes or the path of a file would be right"
            raise CaseError(f"certificate: found {show(certificate)}; {right}")
        if answer is None:
            raise GraphError("answer: found None; a Solution or a list of nodes would be right")
    content = sha256(certificate).hexdigest() if isinstance(certificate, bytes) else "a file"
    check_given(group, {"certificate": content, "answer": "a file" if path else "nodes"})
    return certificate, path


def _policy(context: Context, weights: str | TrainedPolicy) -> Policy:
    """The policy that a caller names, or has. Ranks: all call."""
    with raise_together(context.group, "reading the weights"):
        if not isinstance(weights, str | TrainedPolicy):
            right = '"default", the path of a weights.npz or what train returned would be right'
            raise CaseError(f"weights: found {show(weights)}; {right}")
    named = isinstance(weights, str)
    check_given(context.group, {"weights": "named" if named else "trained"})
    policy = find_policy(context) if named else _installed(context, weights)
    check_given(context.group, {"weights": policy.digest})
    return policy


def _installed(context: Context, trained: TrainedPolicy) -> Policy:
    """A trained policy on this group's device. Raises CaseError where it is another problem's."""
    name = context.case.problem.name
    if trained_for(trained.problem) != trained_for(name):
        raise CaseError(f"weights: trained for {trained.problem!r}, not for {name!r}, the problem")
    net = QNetwork(trained.policy, problem_of(context.case))
    params = Parameters(context.device, net.shapes())
    params.set(trained.weights)
    return Policy(net, params, "trained from Python", trained.digest)


# ---- what a graph comes with, and what is told of an answer ------------------------------------------------


class _Words(NamedTuple):
    """What a caller says of a graph in memory, beside weights and prizes of its nodes; None: nothing."""

    element_weights: Any
    inside: Any
    outside: Any
    terminals: Any
    demands: Any
    capacity: float | None
    depot: Any
    vehicles: int | None
    windows: Any
    service: Any
    max_length: float | None
    seeds: Any
    similarity: Any


def _loaded(
    context: Context, graph: Any, node_weights: Any, prizes: Any, words: _Words
) -> tuple[Context, Loaded, list[Any] | None]:
    """A caller's graph, or two, with all that is said of it; the context of it; labels of its nodes, None:
    they have none. Ranks: all call.
    """
    context, graph, pair, first = two_graphs(context, graph)
    counts = WEIGHED.get(context.case.problem.name, "")
    loaded, labels = loaded_graph(context, graph, node_weights, counts, prizes=prizes)
    labels = labels if first is None else first
    return context, _with_words(context, loaded, labels, pair, words), labels


def _with_words(
    context: Context, loaded: Loaded, labels: list[Any] | None, pair: Any, words: _Words
) -> Loaded:
    """A graph with what a caller says of it. Ranks: all call."""
    loaded = with_element_weights(context, loaded, words.element_weights)
    loaded = with_fixed(context, loaded, labels, words.inside, words.outside)
    loaded = with_terminals(context, loaded, labels, words.terminals)
    loaded = with_needs(context, loaded, labels, words.demands)
    of_routes = None if context.case.problem.name == FACILITY else words.demands
    fleet = words.capacity, words.depot, words.vehicles
    limits = words.windows, words.service, words.max_length
    loaded = with_deliveries(context, loaded, labels, of_routes, *fleet, *limits)
    return with_pairs(context, loaded, labels, pair, words.seeds, words.similarity)


def _solution(context: Context, solved: Solved, loaded: Loaded, labels: list[Any] | None) -> Solution:
    """An answer by the labels of the nodes. Ranks: all call."""
    ids, kind = ids_everywhere(context.group, loaded.graph, loaded.rows), problem_of(context.case).solution
    nodes = solved.named(ids, labels, kind)
    edges = edges_named(solved.solution, ids, labels) if kind == TREE else []
    routes = routes_named(solved.solution, ids, labels) if kind == ROUTES else []
    names = set(Solution.__dataclass_fields__) - {
        "nodes", "edges", "routes", "trace", "text", "certificate", "problem", "order", "curves",
        "robustness", "spread", "length", "prizes_lost", "assignment", "kept", "bags", "tree", "mapping",
        "edges_kept", "edges_lost", "measures",
    }  # fmt: skip
    bags, tree = bags_named(solved, ids, labels)
    trace = tuple((event.seconds, event.best, event.bound) for event in solved.trace)
    entries = {name: solved.entry[name] for name in names}
    return Solution(
        nodes, **entries, trace=trace, text=solved.text, certificate=solved.certificate,
        problem=context.case.problem.name, edges=edges, routes=routes,
        order=order_named(solved, loaded, ids, labels, kind), curves=read_curves(solved.curves),
        robustness=solved.entry.get("robustness", {}), spread=solved.entry.get("spread", {}),
        length=solved.entry.get("length"), prizes_lost=solved.entry.get("prizes_lost"),
        assignment=assignment_named(solved, loaded, ids, labels), kept=solved.entry.get("kept"), bags=bags,
        tree=tree, measures=solved.entry.get("measures", {}),
        mapping=mapping_named(solved, loaded, ids, labels) if kind == MAPPING else {},
        edges_kept=solved.entry.get("edges_kept"), edges_lost=solved.entry.get("edges_lost"),
    )  # fmt: skip
