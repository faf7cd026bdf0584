"""Real graphs: covered, checked and bounded, with equal digests on 1 and 2 ranks."""

import json
import sys

import pytest
from data import catalogue, data_dir, needs_data
from jobs import mpirun, run_job

pytestmark = [pytest.mark.mpi_skip, needs_data]
QUICK_EDGES = 260_000  # larger graphs are left to the command in the README


def entries(family):
    """Files of a folder that are small enough for a test."""
    found = [e for e in catalogue() if e["path"].startswith(f"{family}/") and "edges" in e]
    return [e for e in found if e["edges"] <= QUICK_EDGES and e["nodes"] <= 40_000]


def solve_files(out, ranks, files, *more):
    launch = mpirun(ranks) if ranks > 1 else []
    paths = "[" + ", ".join(f'"{f}"' for f in files) + "]"
    command = [
        *launch, sys.executable, "run.py", "inputs/mvc.toml", f"graph.path={paths}", "search.baselines=false",
        "search.bound_seconds=0.1", "output.plots=false", *more, "--out", out,
    ]  # fmt: skip
    code, printed = run_job(command, limit_s=280)
    assert code == 0, printed[-3000:]
    return json.loads((out / "result.json").read_text())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("family", "complement"),
    [("mvc", False), ("mvc", True), ("large", False)],
    ids=["mvc", "cliques", "large"],
)
def test_real_graphs_are_covered_alike_on_one_and_two_ranks(tmp_path, family, complement):
    chosen = [e for e in entries(family) if (".clq" in e["path"]) == complement]
    files = [data_dir() / e["path"] for e in chosen]
    more = ["graph.complement=true"] if complement else []
    one = solve_files(tmp_path / "one", 1, files, *more)
    two = solve_files(tmp_path / "two", 2, files, *more)
    assert one["digest"] == two["digest"]
    for entry, found in zip(chosen, one["instances"]):
        pairs = entry["nodes"] * (entry["nodes"] - 1) // 2
        edges = pairs - entry["edges"] if complement else entry["edges"]
        assert (found["nodes"], found["edges"]) == (entry["nodes"], edges), entry["path"]
        assert found["feasible"]
        if "best_value" in entry:
            assert found["bound"] <= entry["best_value"] <= found["objective"], entry["path"]
