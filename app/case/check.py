"""Checking a case: every mistake is one line with the key, its place, what is right, and what was found."""

import difflib
import math
import re
from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert, structs
from msgspec import inspect as kinds

from app.case.config import GRAPH_TABLES, Case, Keys, all_keys, all_tables, graph_tables, table_of
from app.case.graph import GraphCase
from app.case.places import Places
from app.case.policy import PolicyCase
from app.case.search import STARTS
from app.case.table import Table, bare_type, expected, limits
from app.text import is_plain, printable, shorten, show

LIKE_CLASSIFY = ("models", "depth")  # which train on a graph as the task classify does


def mistakes(table: type[Table], data: dict[str, Any], above: Keys, places: Places) -> Iterator[str]:
    """The unknown keys, wrong types and values out of range of one table and those in it."""
    known = {each.name: each.type for each in structs.fields(table)}
    for key, value in data.items():
        keys = (*above, key)
        if key not in known:
            unknown = f"unknown {'table' if _is_table(value) else 'key'} {_spell(keys, value)}"
            yield f"{unknown}{_place(keys, places)}: {_suggestion(table, keys, value)}"
        elif (inner := table_of(known[key])) is None:
            mistake = value_mistake(known[key], value)
            if mistake:
                yield f"{where(keys, places)}: {mistake}"
        elif isinstance(value, dict):
            yield from mistakes(inner, value, keys, places)
        else:
            yield f"{where(keys, places)}: must be a table, got {show(value)}"


def value_mistake(kind: object, value: object) -> str | None:
    """What is wrong with one value, or None."""
    items = value if isinstance(value, list | tuple) else [value]
    for item in items:
        if isinstance(item, float) and not math.isfinite(item):
            return f"must be a finite number, got {show(item)}"
        if isinstance(item, int) and abs(item) >= 1 << 63:
            return f"must be a number of at most 64 bits, got {show(item)}"
        if isinstance(item, str) and not is_plain(item):
            return f"must be text without control characters, got {show(item)}"
    try:
        convert(value, kind)
    except ValidationError as error:
        info = bare_type(kinds.type_info(kind))
        if isinstance(value, list) and isinstance(info, kinds.ListType) and " at `$[" in str(error):
            info = bare_type(info.item_type)
            value = value[int(re.search(r"\$\[(\d+)\]", str(error))[1])]
        out_of_range = re.match(r"Expected `(int|float)` [<>]", str(error))
        return f"must be {limits(info) if out_of_range else expected(info)}, got {show(value)}"
    return None


def _suggestion(table: type[Table], keys: Keys, value: object) -> str:
    """The nearest name of the same table, else of any table."""
    names = all_tables() if _is_table(value) else [each for each, _, _ in all_keys()]
    here = {each[-1]: each for each in names if each[:-1] == keys[:-1]}
    anywhere = {each[-1]: each for each in reversed(names)}
    for candidates, cutoff in ((here, 0.7), (anywhere, 0.7)):
        found = difflib.get_close_matches(keys[-1], candidates, n=1, cutoff=cutoff)
        if found:
            return f"did you mean {_spell(candidates[found[0]], value)}?"
    inside = ", ".join(each.name for each in structs.fields(table))
    return f"{_spell(keys[:-1], {}) if keys[:-1] else 'a case'} has {inside}"


def where(keys: Keys, places: Places) -> str:
    """`train.steps (line 4)`, where a mistake is."""
    return _name(keys) + _place(keys, places)


def _name(keys: Keys) -> str:
    """`train.steps`, fit to be printed."""
    return shorten(printable(".".join(keys)))


def _is_table(value: object) -> bool:
    """A table, or the list of tables that [[name]] makes."""
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in value)
    )


def _spell(keys: Keys, value: object) -> str:
    """A key as `train.steps`, a table as `[train]`."""
    return f"[{_name(keys)}]" if _is_table(value) else _name(keys)


def _place(keys: Keys, places: Places) -> str:
    """ " (line 4)", or nothing where the key was not set."""
    return f" ({places[keys]})" if keys in places else ""


# --------------------------------------------------------------------------------
# Rules between keys

READING = ("format", "ids", "node_data_by", "self_loops", "duplicates")  # how files are read
MOST_NODES, MOST_EDGES, MOST_GRAPHS = 1 << 31, 1 << 40, 1 << 20  # that generators make
LEAST_HUB = 0.01  # of policy.hub_degree: sums are divided by the degree over it


def conflicts(
    case: Case, places: Places, has_graphs: bool = False, has_training: bool = False
) -> Iterator[str]:
    """Keys that are right one by one and wrong together.

    has_graphs, has_training   the graphs to solve, or to train on, are not in the case
    """
    for keys, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        if graphs is not None:
            given = has_graphs and case.run.task == "solve" and graphs is case.graph
            beside = () if given else _file_keys(graphs)
            for key, mistake in (*graph_conflicts(graphs), *beside):
                yield f"{where((*keys, key), places)}: {mistake}"
            if graphs.neighbours != "both" and not (graphs is case.graph and _hears_arcs(case)):
                right = '"both" would be right but for node classification on layers of sums over neighbours'
                yield f"{where((*keys, 'neighbours'), places)}: {right}, got {show(graphs.neighbours)}"
            if graphs.node_weights and (case.run.task != "solve" or graphs is not case.graph):
                right = 'only run.task = "solve" reads those of [graph]: leave it out'
                yield f"{where((*keys, 'node_weights'), places)}: policies and networks see none; {right}"
    trains = case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")
    trained = case.train.graphs or case.graph
    if case.run.task == "solve" and not (has_graphs or case.graph.path or case.graph.generator):
        yield 'run.task = "solve" needs graphs: set graph.path or graph.generator'
    if case.run.task == "classify" and not (has_graphs or case.graph.path or case.graph.generator):
        yield 'run.task = "classify" needs a graph: set graph.path or graph.generator'
    if trains and not (
        has_training
        or trained.path
        or trained.generator
        or (trained is case.graph and case.run.task == "solve")
    ):
        yield "training needs graphs: set train.graphs.path or train.graphs.generator, or those of [graph]"
    held_back = case.train.held_back
    if held_back is not None and not trains:
        right = 'run.task = "train", or policy.weights = "train", reads it: leave it out'
        yield f"{where(('train', 'held_back'), places)}: {right}"
    elif held_back is not None and not (held_back.path or held_back.generator):
        yield f"{where(('train', 'held_back'), places)}: needs graphs: set its path or generator"
    if 0 < case.policy.hub_degree < LEAST_HUB:
        found = f"must be 0 or at least {LEAST_HUB}, got {case.policy.hub_degree}"
        yield f"{where(('policy', 'hub_degree'), places)}: {found}"
    yield from _policy_conflicts(case, places)
    for key in ("inside", "outside"):
        if case.run.task == "solve" and case.search.solver == "policy" and getattr(case.search, key):
            right = 'search.solver = "full" would be right, with search.steps = 0 for no search'
            yield f"{where(('search', key), places)}: the policy alone holds to no fixed nodes; {right}"
    if case.run.task == "solve" and case.search.solver == "policy" and case.search.start not in STARTS:
        right = 'search.solver = "full" would be right'
        yield f"{where(('search', 'start'), places)}: the policy alone begins with no solution; {right}"
    agent, run = case.agent, case.run
    applies = case.run.task == "classify" and case.gnn.model != "rgcn" and not case.gnn.epochs
    for wrong, keys, mistake in (
        (
            applies and not case.gnn.weights,
            ("gnn", "epochs"),
            "must be at least 1 without gnn.weights, got 0",
        ),
        (
            case.run.task == "classify"
            and case.gnn.model == "rgcn"
            and not (case.rgcn.epochs or case.rgcn.weights),
            ("rgcn", "epochs"),
            "must be at least 1 without rgcn.weights, got 0",
        ),
        (
            agent.epsilon_end > agent.epsilon_start,
            ("agent", "epsilon_end"),
            f"must be at most agent.epsilon_start = {agent.epsilon_start}, got {agent.epsilon_end}",
        ),
        (
            agent.warmup > agent.replay_capacity,
            ("agent", "warmup"),
            f"must be at most agent.replay_capacity = {agent.replay_capacity}, got {agent.warmup}",
        ),
        (
            "/" in run.name or "\\" in run.name or run.name in (".", ".."),
            ("run", "name"),
            f"must be the name of a folder, without slashes, got {show(run.name)}",
        ),
        (
            case.gnn.first_product == "cached" and case.gnn.input_dropout > 0,
            ("gnn", "first_product"),
            "cached keeps the product of features that gnn.input_dropout changes in every epoch; "
            "gnn.input_dropout = 0 or first_product = auto would be right",
        ),
        (
            case.run.task == "study" and case.gnn.goal == "values" and case.study.kind not in LIKE_CLASSIFY,
            ("gnn", "goal"),
            f'study.kind = "{case.study.kind}" compares accuracies of classes; "classes", or study.kind = '
            '"models" or "depth", would be right',
        ),
        (
            case.study.kind == "sampling" and not (case.study.fanouts or case.study.layer_samples),
            ("study", "fanouts"),
            "must have a number for each layer where study.layer_samples has none, got []",
        ),
        (
            0 in case.study.layer_samples[1:],
            ("study", "layer_samples"),
            f"must be at least 1 but in the first place, got {show(case.study.layer_samples)}",
        ),
        (not case.policy.weights, ("policy", "weights"), 'must be "default", "train" or a file, got ""'),
        (not case.search.start, ("search", "start"), 'must be "learned", "greedy" or a file, got ""'),
    ):
        if wrong:
            yield f"{where(keys, places)}: {mistake}"


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
    elif graphs.generator == "sbm" and not 2 <= graphs.random_classes <= lo:
        found = f"got {graphs.random_classes}"
        yield "random_classes", f'must be from 2 to the number of nodes for generator = "sbm", {found}'
    if graphs.edge_weights != "one" and graphs.generator in ("", "uniform_points"):
        found = f'got "{graphs.edge_weights}"'
        yield "edge_weights", f'must be "one" but for generated graphs without distances, {found}'
    for key in ("features", "labels", "splits"):
        if graphs.generator and not graphs.path and getattr(graphs, key) not in ("", "random"):
            yield key, "is for graphs from files; generated ones have random_features, random_classes"
    if graphs.order != "natural" and graphs.generator == "uniform_points":
        yield "order", f'must be "natural" for graphs with distances between all nodes, got "{graphs.order}"'


def _size_conflicts(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """(key, mistake) where a generator is asked for more than it makes."""
    if not graphs.generator:
        return
    n = graphs.nodes if isinstance(graphs.nodes, int) else graphs.nodes[1]
    key, edges = ("edges", float(graphs.edges)) if graphs.edges else ("d", float(n) * graphs.d)
    if graphs.generator == "sbm":
        key, edges = "degree_in", n * (graphs.degree_in + graphs.degree_out) / 2
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
    for key in ("complement", *READING, "neighbours", "node_weights"):
        if graphs.generator and not graphs.path and getattr(graphs, key) != getattr(GraphCase(), key):
            yield key, "is for graphs from files; generated ones are used as they are: leave it out"


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
