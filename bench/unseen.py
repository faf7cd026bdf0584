"""Every problem on unseen random graphs: the policy alone, the pipeline, and the plain heuristics, as means.

    python bench/unseen.py [--problems mvc mis mds fvs dismantle maxcut tsp] [--sizes 50 100 200] [--count 20]
                           [--families ba er] [--weights one]

Runs `run.py inputs/PROBLEM.toml` with the weights that ship on generated graphs that no training has seen;
prints for each problem, family and size the mean objective of every label over the graphs.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    """The mean of every label over the graphs of one family and size."""
    count, weights = options.count, "one" if problem in FAMILIES else options.weights
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "run.py", f"inputs/{problem}.toml", "graph.path=[]", f"graph.generator={family}",
            f"graph.nodes={n}", f"graph.count={count}", "graph.generator_seed=20261121",
            f"graph.edge_weights={weights}",
            "output.plots=false", "select.rule=single", "--out", folder + "/out",
        ]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        instances = json.loads(Path(folder, "out", "result.json").read_text())["instances"]
    values: dict[str, list[float]] = {}
    for each in instances:
        own = {"pipeline": each["objective"], "bound": each["bound"]}
        if problem == "tsp":
            own["policy alone"] = each["learned"]
        for label, value in (own | each["baselines"]).items():
            if value is not None:
                values.setdefault(label, []).append(value)
    order = ["policy alone", *(label for label in values if label != "policy alone")]
    return {label: statistics.mean(values[label]) for label in order if len(values.get(label, [])) == count}


if __name__ == "__main__":
    main()
