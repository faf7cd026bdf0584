"""What a clock decides is decided alike on all ranks, however differently their clocks go."""

import sys

import pytest
from jobs import ROOT, SKEWED, mpirun, run_job
from test_main import result_of

SPEED = 30.0
QUIET = ("search.baselines=false", "output.plots=false", "graph.count=1", "graph.path=[]", "search.seconds=1")
DRAWN = {
    "mvc": ("graph.nodes=30000", "graph.p=1e-4"),
    "maxcut": ("graph.nodes=3000", "graph.p=0.002"),
    "mds": ("graph.nodes=3000", "graph.p=0.002", "memory.whole_graph_mb=0.5"),  # on rows
    "dismantle": ("graph.nodes=1500", "graph.p=0.004", "search.baselines=true"),  # some left out
}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", DRAWN)
def test_ranks_whose_clocks_differ_come_to_one_end(problem, tmp_path):
    """The second one sees a limit that is over when the first one still has most of it."""
    case = ROOT / "inputs" / f"{problem}.toml", "graph.generator=er", *QUIET, *DRAWN[problem]
    code, printed = run_job(
        [*mpirun(2), sys.executable, SKEWED, SPEED, *case, "--out", tmp_path / "out"], forked=True
    )
    assert code == 0, printed
    assert result_of(tmp_path / "out")["instances"][0]["feasible"]
