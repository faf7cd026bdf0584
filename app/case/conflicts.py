"""Rules between keys: those of a case that are right one by one and wrong together, a line for each."""

from collections.abc import Iterator

from msgspec import structs

from app.case.check import where
from app.case.config import GRAPH_TABLES, Case, Keys, graph_tables, is_forecast, is_relational
from app.case.embed import EmbedCase
from app.case.forecast import ForecastCase
from app.case.gnn import EDGE_READERS, GnnCase, LinksCase, RgcnCase
from app.case.graph import BY_EDGE, OF_POINTS, PLANTED, WORDS, GraphCase
from app.case.influence import InfluenceCase
from app.case.places import Places
from app.case.policy import PolicyCase, ProblemCase
from app.case.search import STARTS, SearchCase
from app.case.smooth import unread_keys
from app.case.study import StudyCase
from app.text import show

Mistake = tuple[Keys, str]  # a key, and what is wrong with it
LIKE_CLASSIFY = ("models", "depth", "folds", "tune")  # studies that train as the task classify does
OF_EDGES = ("tune", "folds")  # studies that are of edges and of links, too
READING = ("format", "ids", "node_data_by", "self_loops", "duplicates")  # how files are read
MOST_NODES, MOST_EDGES, MOST_GRAPHS = 1 << 31, 1 << 40, 1 << 20  # that generators make
MOTIFS, LEAST_MOTIF = 5, 7  # of the generator "motifs": how many it knows, and nodes of its least graph
SETS_EACH = 60  # elements of a set of drawn families of all kinds, at most on the average
OF_ARCS = ("arcs", "rmat", "rmat_natural")  # generators whose edges have directions
OF_RANKINGS = ("recall", "precision", "ndcg")  # values of gnn.watch that are of links.rank_each
# Keys of [rgcn] that nothing reads where there is no layer.
OF_RELATIONAL_LAYERS = (
    "hidden", "bases", "blocks", "inverse", "dropout", "partition", "groups", "grouping", "parts",
)  # fmt: skip
# Keys of [search] that are of reductions, starts and local searches, which the policy alone has none of.
OF_SEARCHES = (
    "steps", "starts", "sweeps", "reductions", "reduction_steps", "start_looks", "row_rounds",
    "row_evaluations", "row_fraction", "row_sweeps", "row_exchanges", "row_regions", "peel_fraction", "peels",
    "moves_at_once",
)  # fmt: skip
PAIRED = ("alignment", "qap")  # problems of two graphs
LEAST_HUB = 0.01  # of policy.hub_degree: sums are divided by the degree over it


def conflicts(
    case: Case, places: Places, has_graphs: bool = False, has_training: bool = False
) -> Iterator[str]:
    """Keys that are right one by one and wrong together.

    has_graphs, has_training   the graphs to solve, or to train on, are not in the case
    """
    yield from _located(_tables_of_graphs(case, has_graphs), places)
    yield from _missing_graphs(case, has_graphs, has_training)
    yield from _located(_training_and_hubs(case), places)
    yield from _policy_conflicts(case, places)
    of_problems = (
        _policy_alone, _communities, _partition, _dismantling, _coverage, _influence, _facility, _steiner,
        _pairs, _routing, _directed, _eliminations, _arrangements,
    )  # fmt: skip
    for rules in (*of_problems, _agent, _name_of_run):
        yield from _located(rules(case), places)
    yield from network_conflicts(case, places)
    for rules in (_studies, _empty):
        yield from _located(rules(case), places)


def network_conflicts(case: Case, places: Places | None = None) -> Iterator[str]:
    """Those of networks alone."""
    of_networks = (
        _nothing_to_apply, _networks, _relations, _told_by_network, _sets_of_graphs, _links, _embeds, _edges,
        _smooth, _forecasts,
    )  # fmt: skip
    for rules in of_networks:
        yield from _located(rules(case), places or {})


def _located(found: Iterator[Mistake], places: Places) -> Iterator[str]:
    return (f"{where(keys, places)}: {mistake}" for keys, mistake in found)


# ---- graphs -----------------------------------------------------------------------------------------------


def _tables_of_graphs(case: Case, has_graphs: bool) -> Iterator[Mistake]:
    """Within each table of graphs, and between it and the task."""
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        if graphs is None:
            continue
        given = has_graphs and case.run.task == "solve" and graphs is case.graph
        for key, mistake in (*graph_conflicts(graphs), *(() if given else _file_keys(graphs))):
            yield (*keys, key), mistake
        if graphs.neighbours != "both" and not (graphs is case.graph and _hears_arcs(case)):
            right = '"both" would be right but for node classification on layers of sums over neighbours'
            yield (*keys, "neighbours"), f"{right}, got {show(graphs.neighbours)}"
        if graphs.edge_features and not (graphs is case.graph and case.run.task in ("classify", "study")):
            yield (*keys, "edge_features"), "only networks that classify read those of [graph]: leave it out"
        if graphs.node_weights and (case.run.task != "solve" or graphs is not case.graph):
            right = 'only run.task = "solve" reads those of [graph]: leave it out'
            yield (*keys, "node_weights"), f"policies and networks see none; {right}"


def _missing_graphs(case: Case, has_graphs: bool, has_training: bool) -> Iterator[str]:
    """What a task works on and nobody names."""
    task, table = case.run.task, case.graph
    given = has_graphs or table.path or table.generator
    if task == "solve" and not given:
        yield 'run.task = "solve" needs graphs: set graph.path or graph.generator'
    if task == "classify" and not given:
        yield 'run.task = "classify" needs a graph: set graph.path or graph.generator'
    if is_forecast(case) and not has_graphs and not table.series:
        yield 'gnn.level = "forecast" needs series of the nodes: set graph.series'
    trained = case.train.graphs or table
    named = has_training or trained.path or trained.generator
    if _trains(case) and not (named or (trained is table and task == "solve")):
        yield "training needs graphs: set train.graphs.path or train.graphs.generator, or those of [graph]"


def _trains(case: Case) -> bool:
    """Whether the case trains a policy."""
    return case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")


def _hears_arcs(case: Case) -> bool:
    """Whether what a case runs tells the directions of edges apart."""
    task, study = case.run.task, case.study.kind
    networks = task == "classify" or (task == "study" and study in LIKE_CLASSIFY)
    return networks and case.gnn.model != "rgcn"


def graph_conflicts(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """(key, mistake) within one table of graphs."""
    yield from _table_conflicts(graphs)
    yield from _size_conflicts(graphs)


def _table_conflicts(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """Those of keys with each other."""
    if graphs.neighbours != "both" and graphs.complement:
        yield "complement", f'must be false where graph.neighbours = "{graphs.neighbours}", got true'
    lo, hi = (graphs.nodes, graphs.nodes) if isinstance(graphs.nodes, int) else graphs.nodes
    if lo < 0 or hi < 0:
        yield "nodes", f"must be at least 1, got {min(lo, hi)}"
    elif lo > hi:
        yield "nodes", f"must be [lo, hi] with lo at most hi, got [{lo}, {hi}]"
    elif graphs.generator and lo == 0:
        yield "nodes", f'must be at least 1 for generator = "{graphs.generator}", got 0'
    elif graphs.generator == "diverse" and lo < 2:
        yield "nodes", f'must be at least 2 for generator = "diverse", got {lo}'
    elif graphs.generator in ("ba", "small_world", "mixed", "varied") and graphs.d >= lo:
        yield "d", f"must be below the number of nodes ({lo}), got {graphs.d}"
    elif graphs.generator == "motifs" and not 2 <= graphs.random_classes <= MOTIFS:
        found = f"got {graphs.random_classes}"
        yield "random_classes", f'must be from 2 to {MOTIFS} for generator = "motifs", {found}'
    elif graphs.generator == "motifs" and lo < LEAST_MOTIF:
        yield "nodes", f'must be at least {LEAST_MOTIF} for generator = "motifs", got {lo}'
    elif graphs.generator in PLANTED and not 2 <= graphs.random_classes <= lo:
        found = f'for generator = "{graphs.generator}", got {graphs.random_classes}'
        yield "random_classes", f"must be from 2 to the number of nodes {found}"
    elif graphs.generator == "bipartite" and graphs.elements >= lo:
        yield "elements", f"must be below the number of nodes ({lo}), got {graphs.elements}"
    if graphs.generator == "sets" and graphs.members == "mixed":
        for key in ("elements", "p"):
            if (found := getattr(graphs, key)) != getattr(GraphCase(), key):
                yield key, f'members = "mixed" has its own, by turns: leave it out, got {found:g}'
    if graphs.least_demand > graphs.most_demand:
        yield "least_demand", f"must be at most most_demand = {graphs.most_demand}, got {graphs.least_demand}"
    if graphs.edge_weights != "one" and graphs.generator in ("", *OF_POINTS):
        found = f'got "{graphs.edge_weights}"'
        yield "edge_weights", f'must be "one" but for generated graphs without distances, {found}'
    for key in ("features", *BY_EDGE, "labels", "splits"):
        if graphs.generator and not graphs.path and getattr(graphs, key) not in ("", WORDS.get(key)):
            yield key, "is for graphs from files; generated ones have random_features, random_classes"
    if graphs.order != "natural" and graphs.generator in OF_POINTS:
        yield "order", f'must be "natural" for graphs with distances between all nodes, got "{graphs.order}"'


def _size_conflicts(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """(key, mistake) where a generator is asked for more than it makes."""
    if not graphs.generator:
        return
    n = graphs.nodes if isinstance(graphs.nodes, int) else graphs.nodes[1]
    key, edges = ("edges", float(graphs.edges)) if graphs.edges else ("d", float(n) * graphs.d)
    if graphs.generator in PLANTED:
        first = n / 2 if graphs.generator == "sbm" else n - (graphs.elements or n // 2)
        key, edges = "degree_in", first * (graphs.degree_in + graphs.degree_out)
    elif graphs.generator == "sets":
        each = SETS_EACH if graphs.members == "mixed" else graphs.p * (graphs.elements or n)
        key, edges = "p", (each + 1) * n
    elif graphs.generator == "bter" and edges <= MOST_EDGES:
        key, edges = "degree_scale", edges * graphs.degree_scale
    for wrong, at, mistake in (
        (n > MOST_NODES, "nodes", f"must be at most {MOST_NODES}, got {n}"),
        (graphs.count > MOST_GRAPHS, "count", f"must be at most {MOST_GRAPHS}, got {graphs.count}"),
        (edges > MOST_EDGES, key, f"asks for {edges:.3g} edges; at most {MOST_EDGES} would be right"),
    ):
        if wrong:
            yield at, mistake


def _file_keys(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """(key, mistake) for each key about files that is set in a table without files."""
    for key in (
        "complement", *READING, "neighbours", "node_weights", "element_weights", "terminals", "prizes",
        "demands", "onto", "seeds", "similarity",
    ):  # fmt: skip
        if graphs.generator and not graphs.path and getattr(graphs, key) != getattr(GraphCase(), key):
            yield key, "is for graphs from files; generated ones are used as they are: leave it out"


# ---- policies and their training --------------------------------------------------------------------------


def _training_and_hubs(case: Case) -> Iterator[Mistake]:
    """Graphs held back from a training, and policy.hub_degree."""
    held_back, hub = case.train.held_back, case.policy.hub_degree
    if held_back is not None and not _trains(case):
        right = 'run.task = "train", or policy.weights = "train", reads it: leave it out'
        yield ("train", "held_back"), right
    elif held_back is not None and not (held_back.path or held_back.generator):
        yield ("train", "held_back"), "needs graphs: set its path or generator"
    if 0 < hub < LEAST_HUB:
        yield ("policy", "hub_degree"), f"must be 0 or at least {LEAST_HUB}, got {hub}"


def _policy_conflicts(case: Case, places: Places) -> Iterator[str]:
    """Keys of [policy] that the task would not use."""
    policy, task = case.policy, case.run.task
    if task == "train" and policy.weights not in ("", "default", "train"):
        found = f"leave it out, got {show(policy.weights)}"
        yield f'{where(("policy", "weights"), places)}: is not read by run.task = "train": {found}'
    if task == "solve" and policy.weights not in ("", "train"):
        names = [each.name for each in structs.fields(PolicyCase) if each.name != "weights"]
        # A written case has every key: at its default a key asks for nothing.
        unused = [each for each in names if getattr(policy, each) != getattr(PolicyCase(), each)]
        if unused:
            keys = ", ".join(where(("policy", each), places) for each in unused)
            right = 'leave out, or set policy.weights = "train"'
            yield f"{keys}: the architecture comes from the weights {show(policy.weights)}: {right}"


def _policy_alone(case: Case) -> Iterator[Mistake]:
    """What a policy without the solver cannot do."""
    if case.run.task != "solve" or case.search.solver != "policy":
        return
    right = 'search.solver = "full" would be right'
    for key in ("inside", "outside"):
        if getattr(case.search, key):
            more = f"the policy alone holds to no fixed nodes; {right}, with search.steps = 0 for no search"
            yield ("search", key), more
    if case.search.start not in STARTS:
        yield ("search", "start"), f"the policy alone begins with no solution; {right}"
    for key in OF_SEARCHES:
        if getattr(case.search, key) != getattr(SearchCase(), key):
            yield ("search", key), f"the policy alone does not read it: leave it out, or {right}"


def _agent(case: Case) -> Iterator[Mistake]:
    """Bounds of one key of [agent] by another."""
    agent = case.agent
    if agent.epsilon_end > agent.epsilon_start:
        right = f"must be at most agent.epsilon_start = {agent.epsilon_start}"
        yield ("agent", "epsilon_end"), f"{right}, got {agent.epsilon_end}"
    if agent.warmup > agent.replay_capacity:
        right = f"must be at most agent.replay_capacity = {agent.replay_capacity}"
        yield ("agent", "warmup"), f"{right}, got {agent.warmup}"


def _communities(case: Case) -> Iterator[Mistake]:
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


def _partition(case: Case) -> Iterator[Mistake]:
    """Keys of balanced partitions, of other problems."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "partition":
        return
    for key in ("parts", "imbalance"):
        if (given := getattr(problem, key)) != (right := getattr(usual, key)):
            yield ("problem", key), f"only partition has one: {right} would be right, got {given}"


def _dismantling(case: Case) -> Iterator[Mistake]:
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


def _coverage(case: Case) -> Iterator[Mistake]:
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
    for key in ("budget", "sets"):
        if problem.name in ("influence", "facility") and key == "budget":
            continue
        if (given := getattr(problem, key)) != (right := getattr(usual, key)):
            whose = "coverage, influence and facility have" if key == "budget" else "coverage has"
            yield ("problem", key), f"only {whose} one: {show(right)} would be right, got {show(given)}"
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        if graphs is not None and graphs.element_weights:
            yield (*keys, "element_weights"), "only coverage has weights of elements: leave it out"


def _influence(case: Case) -> Iterator[Mistake]:
    """Keys of influence maximisation, of other problems; one that the probabilities leave unread."""
    asked, usual = case.influence, InfluenceCase()
    if case.problem.name == "influence" and case.run.task in ("train", "study"):
        return  # what else there is refuses it by its name
    if case.problem.name != "influence" or case.run.task != "solve":
        for key in InfluenceCase.__struct_fields__:
            if getattr(asked, key) != getattr(usual, key):
                right = (
                    'only problem.name = "influence" has one, and run.task = "solve" reads it: leave it out'
                )
                yield ("influence", key), right
        return
    if asked.probability != usual.probability and asked.probabilities != "constant":
        yield ("influence", "probability"), 'is read with influence.probabilities = "constant"; leave it out'
    if case.graph.generator in ("sets", *OF_POINTS):
        found = f"er, ba or arcs would be right, got {show(case.graph.generator)}"
        yield ("graph", "generator"), f"news spreads along edges: {found}"
    if case.graph.complement:
        yield ("graph", "complement"), "is of edges without directions; false would be right"


def _facility(case: Case) -> Iterator[Mistake]:
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


def _eliminations(case: Case) -> Iterator[Mistake]:
    """What elimination orders are judged by, of other problems; weights that are not counted."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "treewidth" and case.run.task == "solve":
        if problem.eliminate == "fill" and case.graph.node_weights:
            yield ("graph", "node_weights"), "fill-in counts edges: leave it out"
        return
    if problem.eliminate != usual.eliminate:
        right = 'only problem.name = "treewidth" has one, and run.task = "solve" reads it: leave it out'
        yield ("problem", "eliminate"), right


def _arrangements(case: Case) -> Iterator[Mistake]:
    """What linear arrangements are judged by, of other problems; weights that are not counted."""
    problem, usual = case.problem, ProblemCase()
    if problem.name == "arrangement" and case.run.task == "solve":
        if case.graph.edge_weights != "one" and problem.arrange not in ("length", "cutwidth"):
            right = f'{problem.arrange} counts edges and nodes, without weights: "one" would be right'
            yield ("graph", "edge_weights"), right
        return
    if problem.arrange != usual.arrange:
        right = 'only problem.name = "arrangement" has one, and run.task = "solve" reads it: leave it out'
        yield ("problem", "arrange"), right


def _pairs(case: Case) -> Iterator[Mistake]:
    """Second graphs, and what is said of them, of other problems; what drawn graphs have not."""
    problem, usual = case.problem, ProblemCase()
    asked = problem.name in PAIRED and case.run.task == "solve"
    if problem.name in PAIRED and case.run.task in ("train", "study"):
        return  # what else there is refuses it by its name
    right = 'only alignment and qap have {}, and run.task = "solve" reads it: leave it out'
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        for key in ("onto", "seeds", "similarity"):
            if graphs is not None and getattr(graphs, key) and not (asked and graphs is case.graph):
                yield (*keys, key), right.format("one")
    for key in ("directed", "noise"):
        if not asked and getattr(problem, key) != getattr(usual, key):
            yield ("problem", key), right.format("it")
    if not asked:
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


def _steiner(case: Case) -> Iterator[Mistake]:
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
    right = 'only problem.name = "steiner" has {}, and run.task = "solve" reads them: leave it out'
    for key in ("terminals", "prizes"):
        if getattr(case.problem, key):
            yield ("problem", key), right.format(key)
        for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
            if graphs is not None and getattr(graphs, key):
                yield (*keys, key), right.format(key)


def _directed(case: Case) -> Iterator[Mistake]:
    """Graphs of a problem of arcs that have none."""
    if case.problem.name not in ("dfvs", "ordering") or case.run.task != "solve":
        return
    right = f"{case.problem.name} is of arcs: {', '.join(OF_ARCS)} would be right"
    if case.graph.generator not in ("", *OF_ARCS):
        yield ("graph", "generator"), f"{right}, got {show(case.graph.generator)}"
    if case.graph.complement:
        yield ("graph", "complement"), "is of edges without directions; false would be right"


def _routing(case: Case) -> Iterator[Mistake]:
    """Demands, capacities, depots, vehicles and limits, of other problems; services without a limit."""
    if case.problem.name == "cvrp" and case.run.task == "solve":
        if case.problem.service and not case.problem.max_length:
            yield (
                ("problem", "service"),
                "is part of the length of a route that problem.max_length limits: set that",
            )
        return
    usual = ProblemCase()
    right = 'only problem.name = "cvrp" has routes, and run.task = "solve" finds them: leave it out'
    for key in ("capacity", "depot", "vehicles", "max_length", "service"):
        if getattr(case.problem, key) != getattr(usual, key):
            yield ("problem", key), right
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        read = case.problem.name == "facility" and case.run.task == "solve" and graphs is case.graph
        if graphs is not None and graphs.demands and not read:
            more = 'only cvrp and facility have demands, and run.task = "solve" reads them: leave it out'
            yield (*keys, "demands"), more


# ---- networks, studies, names -----------------------------------------------------------------------------


def _nothing_to_apply(case: Case) -> Iterator[Mistake]:
    """No epochs of training, and no weights to apply instead."""
    if case.run.task != "classify":
        return
    relational = case.gnn.model == "rgcn"
    if not relational and not (case.gnn.epochs or case.gnn.weights):
        yield ("gnn", "epochs"), "must be at least 1 without gnn.weights, got 0"
    if relational and not (case.rgcn.epochs or case.rgcn.weights):
        yield ("rgcn", "epochs"), "must be at least 1 without rgcn.weights, got 0"


def _name_of_run(case: Case) -> Iterator[Mistake]:
    """run.name, which names a folder."""
    name = case.run.name
    if "/" in name or "\\" in name or name in (".", ".."):
        yield ("run", "name"), f"must be the name of a folder, without slashes, got {show(name)}"


def _networks(case: Case) -> Iterator[Mistake]:
    """[gnn] with itself and with the study."""
    gnn, kind = case.gnn, case.study.kind
    if gnn.first_product == "cached" and gnn.input_dropout > 0:
        yield (
            ("gnn", "first_product"),
            "cached keeps the product of features that gnn.input_dropout changes in every epoch; "
            "gnn.input_dropout = 0 or first_product = auto would be right",
        )
    if gnn.warmup and gnn.warmup >= gnn.epochs > 0:
        right = f"less than gnn.epochs = {gnn.epochs} would be right"
        yield ("gnn", "warmup"), f"{right}, got {gnn.warmup}"
    of_values = gnn.watch in ("r2", "rmse", "mae")
    if gnn.watch not in ("auto", "loss") and of_values != (gnn.goal == "values"):
        what, right = ("values", "auto, loss or a score of classes")
        if not of_values:
            what, right = "classes", "auto, loss, r2, rmse or mae"
        yield ("gnn", "watch"), f"{gnn.watch} is a score of {what}; {right} would be right"
    if gnn.watch in OF_RANKINGS and gnn.level != "link":
        yield ("gnn", "watch"), f'{gnn.watch} is of gnn.level = "link", got "{gnn.level}"'
    if gnn.feature_rows == "one_hot" and case.graph.generator and case.run.task in ("classify", "study"):
        yield ("gnn", "feature_rows"), "one_hot is of whole numbers, which no generator draws"
    yield from _missing_features(case)
    if gnn.positions and case.memory.fast_mb and case.run.task in ("classify", "study"):
        said = "are made in memory, which memory.fast_mb limits; [] would be right"
        yield ("gnn", "positions"), said
    if gnn.positions and case.run.task == "study" and kind not in LIKE_CLASSIFY:
        right = " or ".join(f'"{each}"' for each in LIKE_CLASSIFY)
        yield (
            ("gnn", "positions"),
            f'are read by study.kind = {right} and by run.task = "classify"; [] would be right',
        )
    if case.run.task == "study" and gnn.goal == "values" and kind not in LIKE_CLASSIFY:
        yield (
            ("gnn", "goal"),
            f'study.kind = "{kind}" compares accuracies of classes; "classes", or study.kind = '
            '"models", "depth", "folds" or "tune", would be right',
        )


def _missing_features(case: Case) -> Iterator[Mistake]:
    """What filling features in is not of."""
    gnn, key = case.gnn, ("gnn", "missing_features")
    if gnn.missing_features == "refuse" or case.run.task not in ("classify", "study"):
        return
    if case.run.task == "study" and case.study.kind not in LIKE_CLASSIFY:
        right = 'run.task = "classify" and study.kind = "models", "depth", "folds" or "tune"'
        yield key, f'is read by {right}; "refuse" would be right'
    if gnn.feature_rows == "one_hot":
        yield key, 'is of numbers, and gnn.feature_rows = "one_hot" of categories; "refuse" would be right'
    if gnn.model == "rgcn":
        yield key, 'is not read by gnn.model = "rgcn"; "refuse" would be right'


def _relations(case: Case) -> Iterator[Mistake]:
    """[rgcn] with itself and with the memory."""
    rgcn = case.rgcn
    if not is_relational(case):
        return
    if case.run.task == "study":
        for key in ("weights", "queries"):
            if getattr(rgcn, key):
                yield ("rgcn", key), "is read by no study, which draws the weights it trains; leave it out"
    if rgcn.warmup and rgcn.warmup >= rgcn.epochs > 0:
        yield ("rgcn", "warmup"), f"less than rgcn.epochs = {rgcn.epochs} would be right, got {rgcn.warmup}"
    if rgcn.blocks and rgcn.bases not in (0, RgcnCase().bases):
        yield ("rgcn", "bases"), "is not read beside rgcn.blocks; leave one of them out"
    if rgcn.goal == "links":
        if rgcn.scorer in ("complex", "rotate") and rgcn.dimension % 2:
            right = 'an even number would be right, or rgcn.scorer = "distmult" or "transe"'
            yield ("rgcn", "dimension"), f"{right}, got {rgcn.dimension}"
        for key in OF_RELATIONAL_LAYERS:
            usual = (getattr(RgcnCase(), key), 0 if key == "bases" else None)
            if not rgcn.layers and getattr(rgcn, key) not in usual:
                yield ("rgcn", key), "is read by relational layers, and rgcn.layers is 0; leave it out"
    elif not rgcn.layers:
        yield ("rgcn", "layers"), 'at least 1 would be right without rgcn.goal = "links", got 0'
    elif rgcn.keep == "best" and case.memory.fast_mb:
        yield (
            ("rgcn", "keep"),
            "best keeps a copy of all weights, which memory.fast_mb forbids; leave one out",
        )


def _told_by_network(case: Case) -> Iterator[Mistake]:
    """What is told of the one network that the task classify has trained or applied, of folds by means."""
    task, asked = case.run.task, case.output
    folds = (task, case.study.kind) == ("study", "folds")
    if asked.importance and task != "classify" and not folds:
        right = 'run.task = "classify" and study.kind = "folds"'
        yield ("output", "importance"), f"is read by {right} alone; leave it out"
    for key in ("embeddings", "probabilities", "coverage", "explain"):
        if getattr(asked, key) and task != "classify":
            yield ("output", key), 'is read by run.task = "classify" alone; leave it out'
    gnn = case.gnn
    if asked.explain and task == "classify" and gnn.level == "embed" and gnn.model != "rgcn":
        found = 'is of nodes, edges, links and graphs, not of gnn.level = "embed"'
        yield ("output", "explain"), f"{found}; leave it out"
    yield from _of_members(case)


def _of_members(case: Case) -> Iterator[Mistake]:
    """What is told of one network, or of labels, beside several members and where there are no labels."""
    gnn, asked, task = case.gnn, case.output, case.run.task
    labelled = gnn.level in ("node", "edge", "graph") and gnn.model != "rgcn"
    if task == "classify" and asked.coverage and not labelled and not is_forecast(case):
        found = f'gnn.model = "{gnn.model}"' if gnn.model == "rgcn" else f'gnn.level = "{gnn.level}"'
        yield ("output", "coverage"), f"is of labels of nodes, edges or graphs, not of {found}; leave it out"
    if asked.coverage and case.smooth.method != "none" and case.smooth.validation_labels:
        said = "gives away the labels that output.coverage goes by; leave one of them out"
        yield ("smooth", "validation_labels"), said
    if gnn.members == 1 or task not in ("classify", "study") or is_forecast(case):
        return
    if task == "study" or not labelled:
        right = 'run.task = "classify" on labels of nodes, edges or graphs'
        yield ("gnn", "members"), f"is read by {right} alone; 1 would be right, got {gnn.members}"
    for key in ("embeddings", "importance"):
        if getattr(asked, key):
            yield ("output", key), f"is of one network: gnn.members = 1 would be right, got {gnn.members}"


def _sets_of_graphs(case: Case) -> Iterator[Mistake]:
    """What networks that learn what whole graphs are leave of [graph] and of studies."""
    gnn, graph, kind = case.gnn, case.graph, case.study.kind
    if gnn.level != "graph" or case.run.task not in ("classify", "study"):
        return
    if case.run.task == "study" and kind not in LIKE_CLASSIFY:
        right = '"node", or study.kind = "models", "depth", "folds" or "tune", would be right'
        yield ("gnn", "level"), f'study.kind = "{kind}" is of one graph; {right}'
    if graph.order != "natural":
        right = '"natural" would be right for sets of graphs, each of whose nodes follow each other'
        yield ("graph", "order"), f"{right}, got {show(graph.order)}"
    if graph.complement:
        yield ("graph", "complement"), "must be false for sets of graphs, got true"
    if graph.generator and graph.path:
        yield (
            ("graph", "generator"),
            "is given beside graph.path; one of them would be right for sets of graphs",
        )


def _links(case: Case) -> Iterator[Mistake]:
    """What networks that predict edges leave of other tables, and [links] where there are none."""
    gnn, graph, task = case.gnn, case.graph, case.run.task
    if gnn.level != "link" or task not in ("classify", "study"):
        keys = LinksCase.__struct_fields__
        wrong = next((key for key in keys if getattr(case.links, key) != getattr(LinksCase(), key)), "")
        if wrong and task == "classify":
            yield ("links", wrong), 'is read by gnn.level = "link" alone; leave it out'
        return
    if task == "study":
        yield from _study_of_links(case)
    for key in ("goal", "class_weights", "baselines"):
        if getattr(gnn, key) != getattr(GnnCase(), key):
            yield ("gnn", key), 'is of labels, which gnn.level = "link" does not read; leave it out'
    if gnn.watch not in ("auto", "auc", "ap", *OF_RANKINGS):
        yield ("gnn", "watch"), f"{gnn.watch} is no score of links; auto, auc or ap would be right"
    if gnn.watch in OF_RANKINGS and not case.links.rank_each:
        yield ("links", "rank_each"), f"must be at least 1 for gnn.watch = {gnn.watch}, got 0"
    if case.links.propose_for and not case.links.propose_each:
        yield ("links", "propose_for"), "is read where links.propose_each is at least 1; leave it out"
    if case.links.loss == "bpr" and case.links.negatives % 1:
        yield ("links", "negatives"), f"must be whole for links.loss = bpr, got {case.links.negatives}"
    if case.links.sides and case.links.between != "sides":
        yield ("links", "sides"), 'is read by links.between = "sides" alone; leave it out'
    for key in ("labels", "splits"):
        if getattr(graph, key):
            yield ("graph", key), 'is not read by gnn.level = "link", which learns the edges; leave it out'
    if graph.neighbours != "both":
        yield (
            ("graph", "neighbours"),
            f'must be "both" for links of either direction, got "{graph.neighbours}"',
        )
    if case.output.probabilities:
        yield ("output", "probabilities"), "is of classes; predictions of links tell how likely each is"
    if case.links.held_out + case.links.validation >= 1:
        yield ("links", "held_out"), "leaves no edge to learn from beside links.validation"


def _embeds(case: Case) -> Iterator[Mistake]:
    """What networks that learn vectors without labels leave of other tables, and [embed] where there are
    none."""
    gnn, embed, asked, task = case.gnn, case.embed, case.output, case.run.task
    if gnn.level != "embed" or task not in ("classify", "study") or gnn.model == "rgcn":
        keys = EmbedCase.__struct_fields__
        wrong = next((key for key in keys if getattr(embed, key) != getattr(EmbedCase(), key)), "")
        if wrong and task in ("classify", "study"):
            yield ("embed", wrong), 'is read by gnn.level = "embed" alone; leave it out'
        return
    if task == "study":
        yield ("gnn", "level"), 'no study is of vectors; run.task = "classify" would be right for "embed"'
        return
    for key in ("goal", "class_weights"):
        if getattr(gnn, key) != getattr(GnnCase(), key):
            yield ("gnn", key), 'is of labels, which gnn.level = "embed" does not learn; leave it out'
    if gnn.watch != "auto":
        right = "auto would be right for vectors, which go by the training loss"
        yield ("gnn", "watch"), f"{right}, got {gnn.watch}"
    if gnn.first_product in ("cached", "mg_gcn") and embed.edge_drop:
        found = f"{gnn.first_product} keeps a product that embed.edge_drop changes in every epoch"
        yield ("gnn", "first_product"), f"{found}; embed.edge_drop = 0 or first_product = auto would be right"
    readers = [kind for kind in _kinds_of_layers(gnn) if kind in EDGE_READERS]
    if embed.edge_drop and gnn.epochs and readers:
        yield ("embed", "edge_drop"), f"{readers[0]} reads the features of all edges; 0 would be right"
    if asked.embeddings:
        yield ("output", "embeddings"), 'gnn.level = "embed" writes the vectors in any case; leave it out'
    if asked.importance:
        yield ("output", "importance"), "is of scores, and vectors are none; leave it out"
    if asked.probabilities and not embed.probe_epochs:
        yield ("output", "probabilities"), "is of the probe: embed.probe_epochs of at least 1 would be right"


def _forecasts(case: Case) -> Iterator[Mistake]:
    """What forecasts of series leave of other tables, and their keys where there are none."""
    gnn, graph, forecast, task = case.gnn, case.graph, case.forecast, case.run.task
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        for key in ("series", "series_steps", "series_noise"):
            read = table is graph and is_forecast(case)
            if table is not None and not read and getattr(table, key) != getattr(GraphCase(), key):
                yield (*keys, key), 'is read by gnn.level = "forecast" of run.task = "classify"; leave it out'
    if not is_forecast(case):
        usual = ForecastCase()
        wrong = next(
            (key for key in usual.__struct_fields__ if getattr(forecast, key) != getattr(usual, key)), ""
        )
        if wrong and task in ("classify", "study"):
            yield ("forecast", wrong), 'is read by gnn.level = "forecast" alone; leave it out'
        if gnn.level == "forecast" and task == "study":
            right = 'run.task = "classify" would be right for "forecast"'
            yield ("gnn", "level"), f"no study is of series of nodes; {right}"
        return
    yield from _series(case)
    yield from _unread_by_forecasts(case)
    if forecast.train + forecast.val + forecast.test > 1 + 1e-9:
        total = forecast.train + forecast.val + forecast.test
        yield ("forecast", "train"), f"train, val and test are {total:g} in all; at most 1 would be right"
    if forecast.model != "temporal" and gnn.depth != GnnCase().depth:
        yield ("gnn", "depth"), 'is read by forecast.model = "temporal"; leave it out'


def _series(case: Case) -> Iterator[Mistake]:
    """Where series come from."""
    graph, drawn = case.graph, case.graph.series == WORDS["series"]
    if graph.generator in ("sets", *OF_POINTS):
        yield (
            ("graph", "generator"),
            f"series are of nodes of a graph: er or ba would be right, got {show(graph.generator)}",
        )
    if graph.generator and graph.path:
        yield ("graph", "generator"), "is given beside graph.path; one of them would be right for series"
    if graph.generator and not drawn:
        yield ("graph", "series"), f'must be "diffusion" for a generated graph, got {show(graph.series)}'
    if graph.path and drawn:
        yield ("graph", "series"), "diffusion is drawn for generated graphs; a file would be right"
    for key in ("series_steps", "series_noise"):
        if not drawn and getattr(graph, key) != getattr(GraphCase(), key):
            yield ("graph", key), 'is read with graph.series = "diffusion"; leave it out'


# What forecasts read of tables that other networks read too.
READ_BY_FORECASTS = {
    "gnn": (
        "level", "hidden", "depth", "edge_weights", "epochs", "optimiser", "learning_rate", "schedule",
        "warmup", "clip", "weight_decay", "decayed", "evaluate_every", "patience", "keep", "baselines",
        "weights",
    ),
    "output": ("solutions", "plots", "coverage", "log_seconds", "certificates"),
}  # fmt: skip
OF_NODE_FILES = (
    "features",
    "labels",
    "splits",
    "node_data_by",
    "random_features",
    "random_classes",
    "signal",
)


def _unread_by_forecasts(case: Case) -> Iterator[Mistake]:
    """Keys of other networks."""
    for name, read in READ_BY_FORECASTS.items():
        table = getattr(case, name)
        usual = type(table)()
        for key in table.__struct_fields__:
            if key not in read and getattr(table, key) != getattr(usual, key):
                yield (name, key), 'is not read by gnn.level = "forecast"; leave it out'
    planted = case.graph.generator in PLANTED
    for key in OF_NODE_FILES:
        if getattr(case.graph, key) != getattr(GraphCase(), key) and not (
            planted and key == "random_classes"
        ):
            yield (
                ("graph", key),
                'is not read by gnn.level = "forecast", which learns from graph.series; leave it out',
            )
    if case.memory.fast_mb:
        yield ("memory", "fast_mb"), 'is not read by gnn.level = "forecast"; 0 would be right'
    if case.parallel.partition == "learned" or case.parallel.cost_model:
        key = "partition" if case.parallel.partition == "learned" else "cost_model"
        yield ("parallel", key), 'is not read by gnn.level = "forecast", whose rows stay; leave it out'


def _kinds_of_layers(gnn: GnnCase) -> list[str]:
    """The kinds that gnn.layers, or gnn.model, names."""
    return [text.split()[0] for text in gnn.layers if text.split()] or [gnn.model]


def _no_study_of(what: str, kind: str) -> Mistake:
    """A study that is not of edges, or links, and those that are."""
    right = " or ".join(show(each) for each in OF_EDGES)
    return ("gnn", "level"), f"study.kind = {show(kind)} is not of {what}; {right} would be right"


def _own_folds() -> str:
    return '"" would be right for study.kind = "folds", which draws its own'


def _study_of_links(case: Case) -> Iterator[Mistake]:
    """What studies of links are not of, and keys of [links] that they do not read."""
    kind, links, usual = case.study.kind, case.links, LinksCase()
    if kind not in OF_EDGES:
        yield _no_study_of("links", kind)
        return
    for key in ("pairs", "propose", "propose_each"):
        if getattr(links, key) != getattr(usual, key):
            right = f'is read by run.task = "classify" alone; {show(getattr(usual, key))} would be right'
            yield ("links", key), right
    if kind == "tune" and links.rank_each and case.gnn.watch not in OF_RANKINGS:
        right = 'is read by study.kind = "tune" where gnn.watch is recall, precision or ndcg; leave it out'
        yield ("links", "rank_each"), right
    for key in ("held_out", "validation", "val_edges", "test_edges"):
        if kind == "folds" and getattr(links, key) != getattr(usual, key):
            right = 'is not read by study.kind = "folds", which holds each edge out once; leave it out'
            yield ("links", key), right


def _edges(case: Case) -> Iterator[Mistake]:
    """What networks that say what edges are leave of other tables, and their keys where there are none."""
    gnn, graph, task = case.gnn, case.graph, case.run.task
    kind = case.study.kind if task == "study" else ""
    learned = gnn.level == "edge" and (task == "classify" or kind in OF_EDGES)
    right = 'is read by gnn.level = "edge" of run.task = "classify", of [graph]; leave it out'
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        for key in ("edge_labels", "edge_splits", "edge_data_by"):
            read = learned and table is graph
            if table is not None and not read and getattr(table, key) != getattr(GraphCase(), key):
                yield (*keys, key), right
    if gnn.level != "edge" or task not in ("classify", "study"):
        return
    if kind and kind not in OF_EDGES:
        yield _no_study_of("edges", kind)
    if kind == "folds" and graph.edge_splits not in ("", "random"):
        yield ("graph", "edge_splits"), f"{_own_folds()}, got {show(graph.edge_splits)}"
    for key in ("labels", "splits"):
        if getattr(graph, key):
            right = f"graph.edge_{key} would be right"
            yield ("graph", key), f'is of nodes, and gnn.level = "edge" learns what edges are; {right}'
    if graph.edge_data_by == "ends" and not (graph.edge_labels or graph.edge_splits not in ("", "random")):
        yield ("graph", "edge_data_by"), "is read with graph.edge_labels or graph.edge_splits; leave it out"
    if graph.neighbours != "both":
        yield (
            ("graph", "neighbours"),
            f'must be "both" for edges, which have no direction here, got "{graph.neighbours}"',
        )
    if case.parallel.exchange == "staged":
        yield ("parallel", "exchange"), '"auto", "halo" or "gather" would be right for gnn.level = "edge"'


def _smooth(case: Case) -> Iterator[Mistake]:
    """[smooth] with itself, and what it is not of."""
    task, kind, gnn, asked = case.run.task, case.study.kind, case.gnn, ("smooth", "method")
    if task not in ("classify", "study"):
        return
    for key, mistake in unread_keys(case.smooth):
        yield ("smooth", key), mistake
    if case.smooth.method == "none":
        return
    right = '"none" would be right'
    if task == "study" and kind != "folds":
        yield asked, f'is not read by study.kind = "{kind}"; {right}, or study.kind = "folds"'
    elif gnn.model == "rgcn":
        yield asked, f'is not read by gnn.model = "rgcn"; {right}'
    elif gnn.level != "node":
        yield asked, f'is of nodes, whose neighbours it hears, got gnn.level = "{gnn.level}"; {right}'
    elif gnn.goal != "classes":
        yield asked, f'is of classes, got gnn.goal = "{gnn.goal}"; {right}'


def _studies(case: Case) -> Iterator[Mistake]:
    """Numbers of samples by layer, and folds."""
    study = case.study
    if study.kind == "folds" and study.fold_validation == "next" and study.folds < 3:
        found = f'got {study.folds} (study.fold_validation = "next")'
        yield ("study", "folds"), f"must be at least 3, to test, to validate and to train on, {found}"
    if (study.kind, case.run.task) == ("folds", "study") and case.graph.splits not in ("", "random"):
        yield ("graph", "splits"), f"{_own_folds()}, got {show(case.graph.splits)}"
    parallel = case.parallel
    folds = study.kind == "folds" and case.run.task in ("study", "classify")
    if folds and parallel.partition == "learned" and not parallel.cost_model:
        right = '"rows" or "edges", or a parallel.cost_model, would be right for folds, whose rows stay'
        yield ("parallel", "partition"), f"{right} where they are"
    for key in ("vary", "trials", "race"):
        asked = getattr(study, key) != getattr(StudyCase(), key)
        if asked and study.kind != "tune" and case.run.task == "study":
            yield ("study", key), 'is read by study.kind = "tune" alone; leave it out'
    if study.kind == "sampling" and not (study.fanouts or study.layer_samples):
        yield (
            ("study", "fanouts"),
            "must have a number for each layer where study.layer_samples has none, got []",
        )
    if 0 in study.layer_samples[1:]:
        right = "must be at least 1 but in the first place"
        yield ("study", "layer_samples"), f"{right}, got {show(study.layer_samples)}"


def _empty(case: Case) -> Iterator[Mistake]:
    """Keys that must name something."""
    if not case.policy.weights:
        yield ("policy", "weights"), 'must be "default", "train" or a file, got ""'
    if not case.search.start:
        yield ("search", "start"), 'must be "learned", "greedy" or a file, got ""'
