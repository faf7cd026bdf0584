"""What a clock decides is decided alike on all ranks, however differently their clocks go."""

import sys

import pytest
from jobs import ROOT, mpirun, run_job
from test_main import result_of

SKEWED = ROOT / "tests" / "skewed.py"
QUIET = ("search.baselines=false", "output.plots=false", "graph.count=1", "graph.path=[]")
RANDOM = ("graph.generator=er", "graph.nodes=3000", "graph.p=0.002")
# name -> what is asked of a graph, in a time that is nearly over once the policy may be asked
CASES = {
    "cover": ("mvc.toml", *RANDOM, "search.seconds=1"),
    "cover on rows": ("mvc.toml", *RANDOM, "memory.whole_graph_mb=0.5", "search.seconds=1"),
    "dominating set on rows": ("mds.toml", *RANDOM, "memory.whole_graph_mb=0.5", "search.seconds=1"),
    "clique on rows": ("clique.toml", *RANDOM, "memory.whole_graph_mb=0.05", "search.seconds=1"),
    "cut on rows": ("maxcut.toml", *RANDOM, "memory.whole_graph_mb=0.5", "search.seconds=1"),
    "forest on rows": ("fvs.toml", *RANDOM, "memory.whole_graph_mb=0.5", "search.seconds=1"),
}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("speed", [0.1, 6])
@pytest.mark.parametrize("name", CASES)
def test_ranks_whose_clocks_differ_come_to_one_end(name, speed, tmp_path):
    """A second rank that is late, or early, at every look."""
    case, *keys = CASES[name]
    command = [*mpirun(2), sys.executable, SKEWED, speed, ROOT / "inputs" / case, *QUIET, *keys]
    code, printed = run_job([*command, "--out", tmp_path / "out"])
    assert code == 0, printed
    assert result_of(tmp_path / "out")["instances"][0]["feasible"]
