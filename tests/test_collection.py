"""Real graphs: covered, checked and bounded, with equal digests on 1 and 2 ranks."""

import json
import sys

import pytest
from data import catalogue, data_dir, needs_data
from jobs import mpirun, run_job

pytestmark = [pytest.mark.mpi_skip, needs_data]
QUICK_EDGES = 15_000  # of what is solved: small enough for a test
LONG_EDGES = 260_000  # larger graphs are left to the command in the README


def entries(family, complement, most):
    """(file, edges of what is solved) of a folder's graphs with at most so many."""
    found = [e for e in catalogue() if e["path"].startswith(f"{family}/") and "edges" in e]
    found = [e for e in found if (".clq" in e["path"]) == complement and e["nodes"] <= 40_000]
    sizes = [e["nodes"] * (e["nodes"] - 1) // 2 - e["edges"] if complement else e["edges"] for e in found]
    return [(e, edges) for e, edges in zip(found, sizes) if edges <= most and e["edges"] <= LONG_EDGES]


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
@pytest.mark.parametrize("most", [QUICK_EDGES, pytest.param(LONG_EDGES, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("family", "complement"),
    [("mvc", False), ("mvc", True), ("large", False)],
    ids=["mvc", "cliques", "large"],
)
def test_real_graphs_are_covered_alike_on_one_and_two_ranks(tmp_path, family, complement, most):
    chosen = entries(family, complement, most)
    files = [data_dir() / e["path"] for e, _ in chosen]
    more = ["graph.complement=true"] if complement else []
    one = solve_files(tmp_path / "one", 1, files, *more)
    two = solve_files(tmp_path / "two", 2, files, *more)
    assert one["digest"] == two["digest"]
    for (entry, edges), found in zip(chosen, one["instances"], strict=True):
        assert (found["nodes"], found["edges"]) == (entry["nodes"], edges), entry["path"]
        assert found["feasible"]
        if "best_value" in entry:
            assert found["bound"] <= entry["best_value"] <= found["objective"], entry["path"]
