"""The policy alone on graphs far larger than any in its training, beside the best plain heuristic.

    python bench/larger.py [--problems mvc mis] [--weights default FILE ...] [--files FILE ...]
                           [--settings KEY=VALUE ...] [--rules NAME ...]

Runs `run.py inputs/PROBLEM.toml search.solver=policy`, 1 % of the candidates at once, on one generated graph
of each of GRAPHS (or on files of graphs), and prints for each graph the objective of the best plain heuristic
(with --rules of plain heuristics by name, "-" where one was left out) and of every file of weights.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = [
    "torus 10000 removed=0.3", "rmat 4096 d=8", "rmat 16384 d=3", "chung_lu 10000 d=4 exponent=2.1",
    "chung_lu 20000 d=2 exponent=2.3", "chung_lu 3000 d=12 exponent=2.1", "bter 8000 d=5 exponent=2.3",
    "geometric 6000 d=3", "small_world 6000 d=3 p=0.1", "ba 5000 d=2", "ba 5000 d=5", "er 5000 p=0.0012",
    "er 10000 p=0.0003", "er 1000 p=0.15",
]  # fmt: skip


def main() -> None:
    """Measure and print one table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=["mvc", "mis"])
    parser.add_argument("--weights", nargs="+", default=["default"], help="as policy.weights")
    parser.add_argument("--files", nargs="+", default=[], help="graphs, in place of generated ones")
    parser.add_argument("--settings", nargs="+", default=[], help="of the case, KEY=VALUE")
    parser.add_argument("--rules", nargs="+", default=[], help="plain heuristics, in place of the best one")
    options = parser.parse_args()
    sources = [[f"graph.path={json.dumps(options.files)}"]] if options.files else map(generated, GRAPHS)
    sources = list(sources)
    for problem in options.problems:
        columns = [*(options.rules or ["best plain heuristic"]), *options.weights]
        print(f"\n| {problem} | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
        for number, source in enumerate(sources):
            given = source + options.settings
            found = [instances(problem, given, weights) for weights in options.weights]
            for each in zip(*found):
                name = each[0]["name"] if options.files else GRAPHS[number]
                told = plain(problem, each[0], options.rules)
                print(f"| {' | '.join([name, *told, *map(objective, each)])} |", flush=True)


def generated(graph: str) -> list[str]:
    """The settings of one of GRAPHS."""
    family, n, *keys = graph.split()
    settings = [f"graph.generator={family}", f"graph.nodes={n}", "graph.count=1", "graph.generator_seed=99"]
    return ["graph.path=[]", *settings, *(f"graph.{key}" for key in keys)]


def instances(problem: str, source: list[str], weights: str) -> list[dict[str, Any]]:
    """What result.json says of every graph."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "run.py", f"inputs/{problem}.toml", *source, "search.solver=policy",
            "select.rule=fraction", "select.fraction=0.01", "search.bounds=false", "output.plots=false",
            f"policy.weights={weights}", "--out", folder + "/out",
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return json.loads(Path(folder, "out", "result.json").read_text())["instances"]


def plain(problem: str, instance: dict[str, Any], rules: list[str]) -> list[str]:
    """The objectives of plain heuristics, or the best one's and its name."""
    if rules:
        found = [instance["baselines"].get(rule) for rule in rules]
        return ["-" if value is None else f"{value:,.0f}" for value in found]
    best = max if problem in ("mis", "clique", "maxcut") else min
    name, value = best(instance["baselines"].items(), key=lambda item: item[1])
    return [f"{value:,.0f} ({name})"]


def objective(instance: dict[str, Any]) -> str:
    """The policy's own."""
    return f"{instance['objective']:,.0f}"


if __name__ == "__main__":
    main()
