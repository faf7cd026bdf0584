"""Every problem on unseen random graphs: the policy alone, the pipeline, and the plain heuristics, as means.

    python bench/unseen.py [--problems mvc mis mds fvs dismantle maxcut tsp] [--sizes 50 100 200] [--count 20]
                           [--families ba er] [--weights one] [--alone] [--policy default FILE ...]

Runs `run.py inputs/PROBLEM.toml` with the weights that ship on generated graphs that no training has seen;
prints for each problem, family and size the mean objective of every label over the graphs; with --alone of
the policy and the plain heuristics only, which takes a hundredth of the time, so that --count may be large.
With --policy those of several files of weights stand beside each other.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {"tsp": ["uniform_points"]}  # others: these two
GRAPHS = ["ba", "er"]


def main() -> None:
    """Measure and print one table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems", nargs="+", default=["mvc", "mis", "mds", "fvs", "dismantle", "maxcut", "tsp"]
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--families", nargs="+", default=GRAPHS, help="as graph.generator; not of tsp")
    parser.add_argument("--weights", default="one", help="as graph.edge_weights; not of tsp")
    parser.add_argument("--alone", action="store_true", help="the policy and plain heuristics only")
    parser.add_argument("--policy", nargs="+", default=["default"], help="as policy.weights")
    options = parser.parse_args()
    for problem in options.problems:
        columns = {
            f"{family} {n}": means(problem, family, n, options)
            for family in FAMILIES.get(problem, options.families)
            for n in options.sizes
        }
        labels = list(dict.fromkeys(label for found in columns.values() for label in found))
        print(f"\n| {problem} | " + " | ".join(columns) + " |\n|---" + "|---" * len(columns) + "|")
        for label in labels:
            cells = [f"{found[label]:.6g}" if label in found else "-" for found in columns.values()]
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


def means(problem: str, family: str, n: int, options: argparse.Namespace) -> dict[str, float]:
    """The mean of every label over the graphs of one family and size: first of the policies."""
    alone: dict[str, float] = {}
    others: dict[str, float] = {}
    for policy in options.policy:
        found = instances(problem, family, n, policy, options)
        label = "policy alone" if len(options.policy) == 1 else f"policy {policy}"
        own = of_policy(problem, options.alone)
        alone[label] = statistics.mean(own(each) for each in found)
        others = others or mean_of_others(found, options.alone)
    others.pop("policy alone", None)
    return alone | others


def of_policy(problem: str, alone: bool) -> Callable[[dict[str, Any]], float]:
    """What gives the objective of the policy alone in an entry of result.json."""
    if problem == "tsp":
        return lambda each: each["learned"]
    if alone:
        return lambda each: each["objective"]
    return lambda each: each["baselines"]["policy alone"]


def mean_of_others(found: list[dict[str, Any]], alone: bool) -> dict[str, float]:
    """The means of the pipeline, the bounds and the plain heuristics, of those that all graphs have."""
    values: dict[str, list[float]] = {}
    for each in found:
        own = {} if alone else {"pipeline": each["objective"], "bound": each["bound"]}
        for label, value in (own | each["baselines"]).items():
            if value is not None:
                values.setdefault(label, []).append(value)
    return {label: statistics.mean(each) for label, each in values.items() if len(each) == len(found)}


def instances(
    problem: str, family: str, n: int, policy: str, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """What result.json says of the graphs of one family and size."""
    weights = "one" if problem in FAMILIES else options.weights
    only = "search.steps=0" if problem == "tsp" else "search.solver=policy"  # tours: what insertion makes
    alone = [only, "search.bounds=false"] if options.alone else []
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "run.py", f"inputs/{problem}.toml", "graph.path=[]", f"graph.generator={family}",
            f"graph.nodes={n}", f"graph.count={options.count}", "graph.generator_seed=20261121",
            f"graph.edge_weights={weights}", *alone, f"policy.weights={policy}",
            "output.plots=false", "select.rule=single", "--out", folder + "/out",
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return json.loads(Path(folder, "out", "result.json").read_text())["instances"]


if __name__ == "__main__":
    main()
