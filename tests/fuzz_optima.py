"""Instances of every problem, small enough for all their solutions to be tried, and what each is worth.

    python tests/fuzz_optima.py [--seconds S] [--first I] [--only PROBLEM]

Nothing of `app` values an answer here: solutions are read from their files by the words of docs/formats.md,
and valued by a definition; all subsets, orders or partitions are tried, with NetworkX where it has the words.
Run as a program it solves one instance after the other in its own process, about ten a second, and prints a
JSON line for each answer, bound or plain heuristic that cannot be; the exit code is 1 where there was one.
"""

import argparse
import itertools
import json
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent)]

Value = float | None  # None: not feasible
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Instance:
    """A problem on a small graph.

    settings, files   of the command that solves it
    least             small values are sought
    value             of the text of a solution file
    all_values        of all solutions, whatever they are written as
    """

    settings: list[str]
    files: dict[str, bytes]
    least: bool
    value: Callable[[str], Value]
    all_values: Callable[[], Iterable[Value]]

    def best(self) -> float:
        """The optimum."""
        found = [each for each in self.all_values() if each is not None]
        return min(found) if self.least else max(found)


def fault_of_answer(entry: dict[str, Any], text: str | None, instance: Instance) -> str | None:
    """What is wrong with an entry of result.json, beside the text of its solution, or None.

    text   None: none was written
    """
    best, objective, bound = instance.best(), entry["objective"], entry["bound"]
    slack = TOLERANCE * max(1.0, abs(best))
    sign = 1 if instance.least else -1
    if (entry["sense"] == "minimise") != instance.least:
        return f"the sense is {entry['sense']}"
    if text is not None:
        value = instance.value(text)
        if value is None:
            return f"the solution is not feasible: {text!r}"
        if abs(value - objective) > slack:
            return f"the solution is worth {value}, result.json says {objective}: {text!r}"
    if sign * (objective - best) < -slack:
        return f"an objective of {objective} is beyond the optimum {best}"
    if bound is not None and sign * (best - bound) < -slack:
        return f"a bound of {bound} ({entry['bound_method']}) is beyond the optimum {best}"
    if entry["optimal"] and abs(objective - best) > slack:
        return f"called optimal: {objective}, the optimum is {best} ({entry['bound_method']})"
    return None


# ---- graphs -----------------------------------------------------------------------------------------------


def edges_of(draw: random.Random, most: int, directed: bool = False, joined: bool = False) -> nx.Graph:
    """A graph of 2 to `most` nodes, none isolated, with whole or decimal weights of its edges."""
    n = draw.randint(2, most)
    pairs = list(itertools.permutations(range(n), 2) if directed else itertools.combinations(range(n), 2))
    chosen = set(draw.sample(pairs, min(len(pairs), draw.randint(1, 3 * n))))
    if joined:
        chosen |= {(draw.randrange(v), v) for v in range(1, n)}
    weight = draw.choice((lambda: 1, lambda: draw.randint(1, 9), lambda: round(draw.uniform(0.1, 3), 2)))
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_weighted_edges_from((u, v, weight()) for u, v in sorted(chosen))
    return graph


def text_of(graph: nx.Graph) -> bytes:
    """An edge list with weights."""
    return "".join(f"{u} {v} {w:g}\n" for u, v, w in graph.edges(data="weight")).encode()


def subsets(items: Iterable) -> Iterator[set]:
    """All of them."""
    items = list(items)
    return (set(each) for size in range(len(items) + 1) for each in itertools.combinations(items, size))


def partitions(items: list) -> Iterator[list[set]]:
    """All ways to part items."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        for at in range(len(rest)):
            yield [*rest[:at], rest[at] | {items[0]}, *rest[at + 1 :]]
        yield [*rest, {items[0]}]


def ids(text: str) -> list[int]:
    """Ids, one a line."""
    return [int(line) for line in text.split()]


def pairs_in(text: str) -> dict[int, int]:
    """Lines of an id and a number."""
    return {int(a): int(b) for a, b in (line.split() for line in text.splitlines())}


def blocks_in(text: str) -> list[set[int]]:
    """The nodes of each colour, community or block."""
    found: dict[int, set[int]] = {}
    for node, block in pairs_in(text).items():
        found.setdefault(block, set()).add(node)
    return list(found.values())


# ---- sets of nodes ----------------------------------------------------------------------------------------


def _dominates(graph: nx.Graph, chosen: set) -> bool:
    return all(v in chosen or chosen.intersection(graph[v]) for v in graph)


def _without(graph: nx.Graph, chosen: set) -> nx.Graph:
    return graph.subgraph(set(graph) - chosen)


def _forest(graph: nx.Graph) -> bool:
    return graph.number_of_edges() == graph.number_of_nodes() - nx.number_connected_components(graph)


SETS: dict[str, tuple[bool, Callable[[nx.Graph, set], bool]]] = {  # small or large, and which are feasible
    "mvc": (True, lambda g, s: all(u in s or v in s for u, v in g.edges)),
    "mis": (False, lambda g, s: not any(u in s and v in s for u, v in g.edges)),
    "clique": (False, lambda g, s: all(g.has_edge(u, v) for u, v in itertools.combinations(s, 2))),
    "mds": (True, _dominates),
    "fvs": (True, lambda g, s: _forest(_without(g, s))),
    "dfvs": (True, lambda g, s: nx.is_directed_acyclic_graph(_without(g, s))),
}


def of_sets(draw: random.Random, name: str, scale: int) -> Instance:
    """Covers, independent sets, cliques, dominating sets, feedback vertex sets, dismantling sets."""
    graph = edges_of(draw, 9 * scale, name == "dfvs")
    files, settings = {"g.txt": text_of(graph)}, ["graph.path=g.txt"]
    size = draw.choice((1, 2, 3))
    if name == "dismantle":
        least = True
        settings.append(f"problem.component={size}")

        def holds(g: nx.Graph, s: set) -> bool:
            return all(len(part) <= size for part in nx.connected_components(_without(g, s)))
    else:
        least, holds = SETS[name]
    weights = dict.fromkeys(graph, 1.0)
    if draw.random() < 0.4:
        weights = {v: draw.choice((1, 2, 0.5, 7, 2.25)) for v in graph}
        files["nw.txt"] = "".join(f"{v} {w}\n" for v, w in weights.items()).encode()
        settings.append("graph.node_weights=nw.txt")

    def worth(chosen: set) -> Value:
        return sum(weights[v] for v in chosen) if holds(graph, chosen) else None

    return Instance(
        settings, files, least, lambda text: worth(set(ids(text))), lambda: map(worth, subsets(graph))
    )


def of_density(draw: random.Random, _: str, scale: int) -> Instance:
    """Densest subgraphs, of any or of a given size."""
    graph = edges_of(draw, 9 * scale)
    settings, size = ["graph.path=g.txt"], draw.randint(1, len(graph)) if draw.random() < 0.5 else 0
    settings += ["problem.dense=size", f"problem.size={size}"] if size else []

    def worth(chosen: set) -> Value:
        inside = graph.subgraph(chosen).size("weight")
        if size:
            return inside if len(chosen) == size else None
        return inside / len(chosen) if chosen else None

    return Instance(
        settings, {"g.txt": text_of(graph)}, False, lambda text: worth(set(ids(text))),
        lambda: map(worth, subsets(graph)),
    )  # fmt: skip


def of_sides(draw: random.Random, name: str, scale: int) -> Instance:
    """Cuts; spins, whose energy is the sum of weights times both spins."""
    graph = edges_of(draw, 9 * scale)
    if draw.random() < 0.5:
        for u, v in graph.edges:
            graph[u][v]["weight"] *= draw.choice((-1, 1))
    spins = name == "ising"

    def worth(ones: set) -> float:
        cut = sum(w for u, v, w in graph.edges(data="weight") if (u in ones) != (v in ones))
        return graph.size("weight") - 2 * cut if spins else cut

    return Instance(
        ["graph.path=g.txt"], {"g.txt": text_of(graph)}, spins,
        lambda text: worth({v for v, side in pairs_in(text).items() if side == 1}),
        lambda: map(worth, subsets(graph)),
    )  # fmt: skip


def of_quadratic(draw: random.Random, _: str, scale: int) -> Instance:
    """Functions of 0-1 variables."""
    n = draw.randint(1, 9 * scale)
    terms = {(i, i): draw.randint(-9, 9) for i in range(n)}
    terms |= {
        pair: draw.randint(-9, 9) for pair in itertools.combinations(range(n), 2) if draw.random() < 0.5
    }
    lines = [
        f"{i} {j} {value}" for (i, j), value in sorted(terms.items(), key=lambda t: (t[0][0] != t[0][1], t))
    ]
    text = "\n".join([f"p qubo 0 {n} {n} {len(terms) - n}", *lines, ""])

    def worth(ones: set) -> float:
        return sum(value for (i, j), value in terms.items() if i in ones and j in ones)

    return Instance(
        ["graph.path=q.qubo"], {"q.qubo": text.encode()}, True,
        lambda text: worth({v for v, x in pairs_in(text).items() if x}),
        lambda: map(worth, subsets(range(n))),
    )  # fmt: skip


# ---- groups -----------------------------------------------------------------------------------------------


def of_groups(draw: random.Random, name: str, scale: int) -> Instance:
    """Colourings, communities, balanced partitions."""
    graph = edges_of(draw, 7 * scale)
    settings, n = ["graph.path=g.txt"], len(graph)
    share, parts, uneven = draw.choice((1, 1, 0.5, 2)), draw.choice((2, 3)), draw.choice((0.03, 0.0, 0.5))
    limit = math.floor((1 + uneven) * math.ceil(n / parts) + 1e-9)
    if name == "communities":
        settings.append(f"problem.resolution={share}")
    if name == "partition":
        settings += [f"problem.parts={parts}", f"problem.imbalance={uneven}"]

    def worth(blocks: list[set]) -> Value:
        if name == "coloring":
            return len(blocks) if all(not graph.subgraph(each).edges for each in blocks) else None
        if name == "communities":
            return nx.community.modularity(graph, blocks, resolution=share)
        if len(blocks) > parts or max(map(len, blocks)) > limit:
            return None
        return graph.size("weight") - sum(graph.subgraph(each).size("weight") for each in blocks)

    return Instance(
        settings, {"g.txt": text_of(graph)}, name != "communities", lambda text: worth(blocks_in(text)),
        lambda: map(worth, partitions(sorted(graph))),
    )  # fmt: skip


# ---- orders -----------------------------------------------------------------------------------------------


def of_orders(draw: random.Random, name: str, scale: int) -> Instance:
    """Linear orders of arcs, elimination orders, arrangements."""
    graph = edges_of(draw, 6 * scale, name == "ordering")
    settings = ["graph.path=g.txt"]
    judge = {"ordering": _backward}.get(name)
    if name == "treewidth":
        fill = draw.random() < 0.4
        settings += ["problem.eliminate=fill"] if fill else []
        judge = _fill if fill else _width
    if name == "arrangement":
        way = draw.choice(list(ARRANGED))
        settings.append(f"problem.arrange={way}")
        judge = ARRANGED[way]

    def worth(order: tuple) -> float:
        return judge(graph, order)

    return Instance(
        settings, {"g.txt": text_of(graph)}, True, lambda text: worth(tuple(ids(text))),
        lambda: map(worth, itertools.permutations(graph)),
    )  # fmt: skip


def _backward(graph: nx.DiGraph, order: tuple) -> float:
    at = {v: i for i, v in enumerate(order)}
    return sum(w for u, v, w in graph.edges(data="weight") if at[u] > at[v])


def _eliminated(graph: nx.Graph, order: tuple) -> tuple[int, int]:
    """The width and the fill-in of an elimination order."""
    left, width, fill = nx.Graph(graph.edges), 0, 0
    left.add_nodes_from(graph)
    for v in order:
        near = list(left[v])
        width = max(width, len(near))
        for a, b in itertools.combinations(near, 2):
            fill += not left.has_edge(a, b)
            left.add_edge(a, b)
        left.remove_node(v)
    return width, fill


def _width(graph: nx.Graph, order: tuple) -> int:
    return _eliminated(graph, order)[0]


def _fill(graph: nx.Graph, order: tuple) -> int:
    return _eliminated(graph, order)[1]


def _spans(graph: nx.Graph, order: tuple) -> list[tuple[int, int, float]]:
    """First and last place of each edge, and its weight."""
    at = {v: i for i, v in enumerate(order)}
    return [(min(at[u], at[v]), max(at[u], at[v]), w) for u, v, w in graph.edges(data="weight")]


def _cutwidth(graph: nx.Graph, order: tuple) -> float:
    spans = _spans(graph, order)
    return max(sum(w for a, b, w in spans if a <= gap < b) for gap in range(len(order)))


def _separation(graph: nx.Graph, order: tuple) -> int:
    spans = _spans(graph, order)
    return max(len({a for a, b, _ in spans if a <= gap < b}) for gap in range(len(order)))


def _profile(graph: nx.Graph, order: tuple) -> int:
    spans = _spans(graph, order)
    return sum(max((b - a for a, b, _ in spans if b == at), default=0) for at in range(len(order)))


ARRANGED: dict[str, Callable[[nx.Graph, tuple], float]] = {
    "length": lambda g, o: sum(w * (b - a) for a, b, w in _spans(g, o)),
    "bandwidth": lambda g, o: max(b - a for a, b, _ in _spans(g, o)),
    "cutwidth": _cutwidth, "separation": _separation, "profile": _profile,
}  # fmt: skip


# ---- trees, facilities, spreads ---------------------------------------------------------------------------


def of_trees(draw: random.Random, _: str, scale: int) -> Instance:
    """Steiner trees: every set of nodes that holds the terminals has the tree that spans it."""
    graph = edges_of(draw, 9 * scale, joined=True)
    wanted = set(draw.sample(sorted(graph), draw.randint(1, len(graph))))

    def spanning(nodes: set) -> Value:
        part = graph.subgraph(nodes)
        whole = wanted <= nodes and nodes and nx.is_connected(part)
        return nx.minimum_spanning_tree(part).size("weight") if whole else None

    def worth(text: str) -> Value:
        tree, lines = nx.Graph(), [tuple(map(int, line.split())) for line in text.splitlines()]
        tree.add_edges_from(line for line in lines if len(line) == 2)
        tree.add_nodes_from(line[0] for line in lines if len(line) == 1)  # one that needs no edge
        if not (wanted <= set(tree) and nx.is_connected(tree) and set(tree.edges) <= _either(graph)):
            return None
        return sum(graph[u][v]["weight"] for u, v in tree.edges)

    files = {"g.txt": text_of(graph), "few.txt": "".join(f"{v}\n" for v in sorted(wanted)).encode()}
    settings = ["graph.path=g.txt", "graph.terminals=few.txt"]
    return Instance(settings, files, True, worth, lambda: map(spanning, subsets(graph)))


def _either(graph: nx.Graph) -> set[tuple]:
    """Edges in both directions."""
    return {*graph.edges, *((v, u) for u, v in graph.edges)}


def of_facilities(draw: random.Random, _: str, scale: int) -> Instance:
    """Medians, centres, facilities that cost one each."""
    graph = edges_of(draw, 9 * scale, joined=True)
    kind, count = draw.choice(("median", "center", "uncapacitated")), draw.choice((1, 2, 3))
    settings = ["graph.path=g.txt", f"problem.facility={kind}"]
    settings += [] if kind == "uncapacitated" else [f"problem.budget={count}"]
    away = dict(nx.all_pairs_dijkstra_path_length(graph))

    def worth(chosen: set) -> Value:
        if not chosen or (kind != "uncapacitated" and len(chosen) > count):
            return None
        far = [min(away[f][v] for f in chosen) for v in graph]
        return max(far) if kind == "center" else sum(far) + len(chosen) * (kind == "uncapacitated")

    return Instance(
        settings, {"g.txt": text_of(graph)}, True, lambda text: worth(set(ids(text))),
        lambda: map(worth, subsets(graph)),
    )  # fmt: skip


def of_spreads(draw: random.Random, _: str, scale: int) -> Instance:
    """News that every neighbour believes: what is reached is certain."""
    directed, count = draw.random() < 0.5, draw.choice((1, 2, 3))
    graph = edges_of(draw, 9 * scale, directed)
    settings = ["graph.path=g.txt", "influence.probabilities=constant", "influence.probability=1.0"]
    settings += [f"problem.budget={count}", f"influence.directed={str(directed).lower()}"]
    settings += ["influence.simulations=20", "influence.sets=256"]

    def worth(chosen: set) -> Value:
        if len(chosen) > count:
            return None
        return len(set().union(*({v} | nx.descendants(graph, v) for v in chosen)))

    return Instance(
        settings, {"g.txt": text_of(graph)}, False, lambda text: worth(set(ids(text))),
        lambda: map(worth, subsets(graph)),
    )  # fmt: skip


# ---- families of sets -------------------------------------------------------------------------------------


def of_families(draw: random.Random, name: str, scale: int) -> Instance:
    """Sets that hold all elements, elements that meet all sets, sets that hold most elements."""
    family = [
        set(draw.sample(range(7 * scale), draw.randint(1, 4))) for _ in range(draw.randint(1, 8 * scale))
    ]
    text = "".join(f"s{i}: {' '.join(f'e{e}' for e in sorted(each))}\n" for i, each in enumerate(family))
    elements, budget = set().union(*family), draw.choice((1, 2, 3))
    settings = ["graph.path=f.sets", "graph.ids=names"]
    settings += [f"problem.budget={budget}"] if name == "coverage" else []

    def worth(chosen: set) -> Value:
        if name == "hitting_set":
            return len(chosen) if all(chosen & each for each in family) else None
        held = len(set().union(*(family[i] for i in chosen)))
        if name == "coverage":
            return held if len(chosen) <= budget else None
        return len(chosen) if held == len(elements) else None

    items = elements if name == "hitting_set" else range(len(family))
    return Instance(
        settings, {"f.sets": text.encode()}, name != "coverage",
        lambda said: worth({int(line[1:]) for line in said.split()}), lambda: map(worth, subsets(items)),
    )  # fmt: skip


# ---- two graphs -------------------------------------------------------------------------------------------


def of_pairs(draw: random.Random, name: str, scale: int) -> Instance:
    """Quadratic assignments of QAPLIB files; alignments of two graphs of as many nodes."""
    if name == "qap":
        n = draw.randint(1, 6 * scale)
        flows, away = ([[draw.randint(0, 9) for _ in range(n)] for _ in range(n)] for _ in range(2))
        text = "\n".join([str(n), *(" ".join(map(str, row)) for row in (*flows, *away)), ""])

        def cost(to: tuple) -> float:
            return sum(flows[i][j] * away[to[i]][to[j]] for i in range(n) for j in range(n))

        return Instance(
            ["graph.path=q.dat"], {"q.dat": text.encode()}, True, lambda said: cost(_mapping(said, 1)),
            lambda: map(cost, itertools.permutations(range(n))),
        )  # fmt: skip
    first, second = (nx.Graph(edges_of(draw, 6 * scale, joined=True).edges) for _ in range(2))
    n = min(len(first), len(second))
    first, second = first.subgraph(range(n)), second.subgraph(range(n))
    if not (nx.is_connected(first) and nx.is_connected(second)) or n < 2:
        return of_pairs(draw, name, scale)

    def kept(to: tuple) -> float:
        return sum(second.has_edge(to[u], to[v]) for u, v in first.edges)

    lines = ["".join(f"{u} {v}\n" for u, v in each.edges).encode() for each in (first, second)]
    return Instance(
        ["graph.path=a.txt", "graph.onto=b.txt"], dict(zip(("a.txt", "b.txt"), lines)), False,
        lambda said: kept(_mapping(said, 0)), lambda: map(kept, itertools.permutations(range(n))),
    )  # fmt: skip


def _mapping(text: str, first: int) -> tuple:
    """Where the nodes go, from 0 on; first: the least id of the files."""
    found = pairs_in(text)
    low = min(found, default=first)
    return tuple(found[v] - low for v in sorted(found))


# ---- tours and routes -------------------------------------------------------------------------------------


def of_tours(draw: random.Random, name: str, scale: int) -> Instance:
    """Tours of points or of a table of distances, of which one way may be longer; routes."""
    n = draw.randint(3, 7 * scale)
    points = [(draw.randint(0, 30), draw.randint(0, 30)) for _ in range(n)]
    away = [[math.floor(math.dist(a, b) + 0.5) for b in points] for a in points]
    head = f"NAME : x\nTYPE : {name.upper()}\nDIMENSION : {n}\n"
    where = "".join(f"{i + 1} {x} {y}\n" for i, (x, y) in enumerate(points))
    body = f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{where}"
    if name == "tsp" and draw.random() < 0.5:
        away = [[draw.randint(0, 50) * (i != j) for j in range(n)] for i in range(n)]
        head = head.replace("TYPE : TSP", "TYPE : ATSP")
        rows = "".join(" ".join(map(str, row)) + "\n" for row in away)
        body = f"EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n{rows}"

    def length(stops: Iterable[int]) -> float:
        stops = list(stops)
        return sum(away[a][b] for a, b in zip(stops, [*stops[1:], stops[0]]))

    if name == "tsp":

        def tour(text: str) -> Value:
            stops = [each - 1 for each in ids(text)]
            return length(stops) if sorted(stops) == list(range(n)) else None

        return Instance(
            ["graph.path=p.tsp"], {"p.tsp": (head + body + "EOF\n").encode()}, True, tour,
            lambda: (length((0, *rest)) for rest in itertools.permutations(range(1, n))),
        )  # fmt: skip
    capacity, needs = draw.choice((3, 5, 9)), [0, *(draw.randint(0, 3) for _ in range(1, n))]
    told = "".join(f"{i + 1} {need}\n" for i, need in enumerate(needs))
    body = f"CAPACITY : {capacity}\n{body}DEMAND_SECTION\n{told}DEPOT_SECTION\n1\n-1\n"

    def routes(found: list[list[int]]) -> Value:
        served = sorted(itertools.chain(*found))
        fits = all(sum(needs[v] for v in route) <= capacity for route in found)
        return sum(length((0, *route)) for route in found) if fits and served == list(range(1, n)) else None

    def shortest(blocks: list[set]) -> Value:
        return routes(
            [list(min(itertools.permutations(each), key=lambda r: length((0, *r)))) for each in blocks]
        )

    def written(text: str) -> Value:
        lines = [line.partition(":")[2] for line in text.splitlines() if line.startswith("Route")]
        return routes([list(map(int, line.split())) for line in lines])

    return Instance(
        ["graph.path=p.vrp"], {"p.vrp": (head + body + "EOF\n").encode()}, True, written,
        lambda: map(shortest, partitions(list(range(1, n)))),
    )  # fmt: skip


MAKERS: dict[str, Callable[[random.Random, str, int], Instance]] = {
    **dict.fromkeys((*SETS, "dismantle"), of_sets), "dense": of_density,
    **dict.fromkeys(("maxcut", "maxcut_once", "ising"), of_sides), "qubo": of_quadratic,
    **dict.fromkeys(("coloring", "communities", "partition"), of_groups),
    **dict.fromkeys(("ordering", "treewidth", "arrangement"), of_orders),
    "steiner": of_trees, "facility": of_facilities, "influence": of_spreads,
    **dict.fromkeys(("set_cover", "hitting_set", "coverage"), of_families),
    **dict.fromkeys(("alignment", "qap"), of_pairs), **dict.fromkeys(("tsp", "cvrp"), of_tours),
}  # fmt: skip


def instance(draw: random.Random, name: str, scale: int = 1) -> Instance:
    """A small instance of a problem; with a scale from 2 on one that has too many solutions to try all."""
    return MAKERS[name](draw, name, scale)


# ---- answers in this process ------------------------------------------------------------------------------


def fault_of_call(number: int, name: str) -> str | None:
    """What is wrong with the answer of `app.solve` to an instance, which is written to this folder, or None.

    Half of the calls are checked by `app.check`, too.
    """
    from app import check, solve

    draw = random.Random(number)
    small = instance(draw, name)
    for file, data in small.files.items():
        Path(file).write_bytes(data)
    given = dict(each.split("=", 1) for each in small.settings)
    path = given.pop("graph.path")
    settings = {key: _value(text) for key, text in given.items()}
    budget = {"search.steps": draw.choice((0, 1, 7, 50, 300)), "search.starts": draw.choice((1, 1, 2))}
    budget |= {"search.bound_seconds": draw.choice((0, 0.1, 0.5)), "search.reductions": draw.random() < 0.8}
    asked = {"seed": number % 3, "output.certificates": draw.random() < 0.5}
    found = solve(path, name, settings=settings | budget | asked)
    sense = "minimise" if small.least else "maximise"
    entry = {"sense": sense, **{each: getattr(found, each) for each in FIELDS}}
    fault = fault_of_answer(entry, found.text, small)
    sign = 1 if small.least else -1
    for label, value in found.baselines.items() if name != "influence" else ():  # whose values are estimates
        if sign * (found.objective - value) > TOLERANCE * max(1.0, abs(value)):
            fault = fault or f"{found.objective}, and {label} finds {value}"
    if fault or draw.random() < 0.5:
        return fault
    again = check(path, found, name, settings=settings | asked)
    same = abs(again.objective - found.objective) <= TOLERANCE * max(1.0, abs(found.objective))
    return None if same else f"check says {again.objective} of {found.objective}"


FIELDS = ("objective", "bound", "bound_method", "optimal")


def _value(text: str) -> Any:
    """A setting as Python has it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def main() -> int:
    """Solve instances for so long."""
    from app.errors import LockstepError

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="a problem")
    asked = parser.parse_args()
    begun, counts, faults, number = time.monotonic(), Counter(), 0, asked.first
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while time.monotonic() - begun < asked.seconds:
            name = asked.only or random.Random(-number).choice(list(MAKERS))
            try:
                fault = fault_of_call(number, name)
            except LockstepError as error:
                fault = f"refused: {error}"
            if fault:
                faults += 1
                print(json.dumps({"number": number, "problem": name, "fault": fault[:900]}), flush=True)
            counts[name] += 1
            number += 1
        os.chdir("/")
    print(" ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print(f"{sum(counts.values())} answers, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
