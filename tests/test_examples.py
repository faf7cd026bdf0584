"""The scripts of examples/: each runs on any number of ranks, and says what it should."""

import importlib.util
import re

import pytest
from jobs import ROOT
from mpi4py import MPI

EXAMPLES = {
    "own_graph": r"objective 42, bound 42 .*optimal",
    "several_problems": r"tour of 40 towns: Solution\(objective \d",
    "train_and_apply": r"held-back totals: \[\d+, \d+, \d+",
    "own_features": r"test [89]\d\.\d %",
    "own_graphs": r"1252 graphs, 100 epochs; .*test R2 0\.9\d+\)\nthe same number",
    "own_triples": r"test (9\d|100)\.\d %\)\n.* is a \w+\nLinkPrediction\(31 held-out triples.*learned 0\.2",
    "own_loop": r"7\d\d steps, 6\d\d losses, weights [0-9a-f]{12}\na graph of 300 nodes: 2\d\d by the policy",
    "own_mpi_program": r"graph 0 on \d+ ranks: (\d+) nodes .* at most \1\ngraph 1 ",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs(name, capsys):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    printed = capsys.readouterr().out
    if MPI.COMM_WORLD.rank > 0:
        assert printed == ""
    else:
        assert re.search(EXAMPLES[name], printed)


def test_every_example_is_run():
    """own_learner.py by test_api.py."""
    found = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert found == {*EXAMPLES, "own_learner"}
