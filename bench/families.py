"""Set covers of drawn families: the policy alone, plain heuristics, and the whole pipeline, as means.

    python bench/families.py [--weights default FILE ...] [--count 20] [--seconds 1] [--graphs] [--only NAME]

Runs `run.py inputs/set_cover.toml` on families that no training has seen (of FAMILIES, with equal costs and
with costs of 1 to 100; with --graphs on closed neighbourhoods of graphs, which no training draws), one set at
a time, with the policy alone for every file of weights, then with everything for some seconds. Prints means
over the families.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PLAIN = str.maketrans(" ", "_", ",")  # names of files
FAMILIES = [
    "200 elements=100 p=0.05", "1000 elements=200 p=0.02", "500 elements=1000 p=0.02",
    "3000 elements=2000 p=0.005",
    "400 elements=400 p=0.03 members=skewed", "2000 elements=2000 p=0.005 members=skewed",
    "400 elements=400 p=0.03 members=near", "2000 elements=2000 p=0.005 members=near",
]  # fmt: skip


def shuffled(graph: nx.Graph, seed: int) -> nx.Graph:
    """The same graph, its nodes in a drawn order."""
    nodes, other = list(graph), nx.Graph()
    random.Random(seed).shuffle(nodes)
    other.add_nodes_from(nodes)
    other.add_edges_from(graph.edges)
    return other


GRAPHS = {
    "ba 500 d=3": lambda seed: nx.barabasi_albert_graph(500, 3, seed=seed),
    "er 500 d=6": lambda seed: nx.gnp_random_graph(500, 6 / 499, seed=seed),
    "grid 25 x 25": lambda seed: nx.grid_2d_graph(25, 25),
    "grid 25 x 25, any order": lambda seed: shuffled(nx.grid_2d_graph(25, 25), seed),
    "torus 25 x 25, any order": lambda seed: shuffled(nx.grid_2d_graph(25, 25, periodic=True), seed),
    "geometric 500": lambda seed: nx.random_geometric_graph(500, 0.08, seed=seed),
}


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", nargs="+", default=["default"], help="as policy.weights")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of the pipeline for each family; 0: leave it out"
    )
    parser.add_argument("--graphs", action="store_true", help="neighbourhoods of graphs")
    parser.add_argument("--only", default="", help="rows whose names hold this")
    options = parser.parse_args()
    labels = [
        "most gain",
        "most gain, pruned",
        *(f"policy, {each}" for each in options.weights),
        *(["pipeline, greedy start", "pipeline, learned start", "bound"] if options.seconds else []),
    ]
    print(f"| family | costs | {' | '.join(labels)} |\n|---|---|" + "---|" * len(labels))
    with tempfile.TemporaryDirectory() as folder:
        for name, costs, source in sources(options, Path(folder)):
            found = measured(source, options)
            cells = [f"{found[label]:.6g}" if label in found else "-" for label in labels]
            print(f"| {name} | {costs} | {' | '.join(cells)} |", flush=True)


def sources(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(name, costs, settings) of each row."""
    if options.graphs:
        for name, make in GRAPHS.items():
            if options.only not in name:
                continue
            files = [folder / f"{name} {i}.sets".translate(PLAIN) for i in range(options.count)]
            paths = [written(path, make(i)) for i, path in enumerate(files)]
            yield name, "1", ['graph.generator=""', f"graph.path={json.dumps(paths)}"]
        return
    for family in FAMILIES:
        if options.only not in family:
            continue
        sets, *keys = family.split()
        drawn = [f"graph.{key}" for key in keys] + [f"graph.nodes={sets}", f"graph.count={options.count}"]
        for costs, said in (("one", "1"), ("whole", "1-100")):
            yield family, said, [*drawn, f"graph.costs={costs}", "graph.generator_seed=20261130"]


def written(path: Path, graph: nx.Graph) -> str:
    """A file of the closed neighbourhoods of a graph."""
    number = {node: i for i, node in enumerate(graph)}
    rows = [[number[node], *(number[each] for each in graph[node])] for node in graph]
    path.write_text("".join(f"s{row[0]}: {' '.join(f'e{each}' for each in row)}\n" for row in rows))
    return str(path)


def measured(source: list[str], options: argparse.Namespace) -> dict[str, float]:
    """The mean of every label."""
    found = {}
    for weights in options.weights:
        entries = run(source, "search.solver=policy", "search.bounds=false", f"policy.weights={weights}")
        found[f"policy, {weights}"] = statistics.mean(each["objective"] for each in entries)
        for label in entries[0]["baselines"]:
            found[label] = statistics.mean(each["baselines"][label] for each in entries)
    if options.seconds:
        for start in ("greedy", "learned"):
            limit = f"search.seconds={options.seconds}"
            entries = run(source, limit, f"search.start={start}", "search.baselines=false")
            found[f"pipeline, {start} start"] = statistics.mean(each["objective"] for each in entries)
            found["bound"] = statistics.mean(each["bound"] for each in entries)
    return found


def run(source: list[str], *settings: str) -> list[dict]:
    """What result.json says of every family."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "run.py", "inputs/set_cover.toml", *source, *settings, "select.rule=single",
            "output.plots=false", "--out", folder + "/out",
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return json.loads(Path(folder, "out", "result.json").read_text())["instances"]


if __name__ == "__main__":
    main()
