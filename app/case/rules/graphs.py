"""Rules of tables of graphs: within each, and between it and the task."""

from collections.abc import Iterator

from app.case.config import GRAPH_TABLES, Case, graph_tables, is_forecast, is_relational
from app.case.graph import BY_EDGE, BY_GENERATOR, OF_GENERATED, OF_POINTS, PLANTED, WORDS, GraphCase
from app.case.rules.mistake import Mistake, changed, unread_of_graphs
from app.text import show

MOST_NODES, MOST_EDGES, MOST_GRAPHS = 1 << 31, 1 << 40, 1 << 20  # that generators make
OF_NODES = ("features", "labels", "splits", "node_data_by", "random_features")  # of networks that learn
MOTIFS, LEAST_MOTIF = 5, 7  # of the generator "motifs": how many it knows, and nodes of its least graph
SETS_EACH = 60  # elements of a set of drawn families of all kinds, at most on the average
OF_FILES = (
    "complement", "format", "ids", "node_data_by", "self_loops", "duplicates", "neighbours", "node_weights",
    "element_weights", "terminals", "prizes", "demands", "onto", "seeds", "similarity",
)  # fmt: skip
OWN_GENERATORS = ("learners", "progress")  # studies that make graphs of other generators, too
LIKE_CLASSIFY = ("models", "depth", "folds", "tune")  # studies that train as the task classify does


def tables_of_graphs(case: Case, has_graphs: bool) -> Iterator[Mistake]:
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


def unread_by_generators(case: Case) -> Iterator[Mistake]:
    """Keys of generators that the generator of a table, or its files, leave unread."""
    if case.run.task == "study" and (case.study.kind in OWN_GENERATORS or case.study.datasets):
        return
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        if graphs is not None:
            by_relations = graphs is case.graph and is_relational(case)
            yield from (((*keys, key), mistake) for key, mistake in _unread(graphs, by_relations))


def unread_without_networks(case: Case) -> Iterator[Mistake]:
    """What is known of nodes, where no network learns from it."""
    if case.run.task in ("classify", "study"):
        return
    for keys in unread_of_graphs(case, OF_NODES):
        yield keys, 'is read by run.task = "classify" and "study"; leave it out'


def _unread(graphs: GraphCase, by_relations: bool) -> Iterator[tuple[str, str]]:
    """(key, mistake) of one table; by_relations: it is triples that are drawn, by their numbers alone."""
    if not graphs.generator:
        for key in changed(graphs, (*OF_GENERATED, *_of_generators())):
            yield key, "is of generated graphs, and graph.generator names none; leave it out"
        return
    read = ("d", "edges") if by_relations else BY_GENERATOR[graphs.generator]
    for key in changed(graphs, (each for each in _of_generators() if each not in read)):
        others = ", ".join(each for each, keys in BY_GENERATOR.items() if key in keys)
        what = "drawn triples" if by_relations else f"graph.generator = {show(graphs.generator)}"
        yield key, f"is not read by {what}, but by {others}; leave it out"
    if graphs.edges and {"d", "edges"} <= {*read}:
        for key in changed(graphs, ("d",)):
            yield key, f"is not read beside graph.edges; {GraphCase().d} would be right, got {graphs.d}"


def _of_generators() -> list[str]:
    """Keys that some generators read."""
    return sorted({key for keys in BY_GENERATOR.values() for key in keys})


def missing_graphs(case: Case, has_graphs: bool, has_training: bool) -> Iterator[str]:
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
    if trains(case) and not (named or (trained is table and task == "solve")):
        yield "training needs graphs: set train.graphs.path or train.graphs.generator, or those of [graph]"


def trains(case: Case) -> bool:
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
        for key in changed(graphs, ("elements", "p")):
            found = f"got {getattr(graphs, key):g}"
            yield key, f'members = "mixed" has its own, by turns: leave it out, {found}'
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
    for key in changed(graphs, OF_FILES) if graphs.generator and not graphs.path else ():
        yield key, "is for graphs from files; generated ones are used as they are: leave it out"
