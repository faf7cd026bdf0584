"""The partition study, end to end, by the clock whose best cuts are known."""

import csv
import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from jobs import mpirun, run_job

from app.partition.cost import parse_cost_model

pytestmark = pytest.mark.mpi_skip
SMALL = ["graph.nodes=4096", "study.epochs=5", "study.rounds=1", "study.widths=[24, 8]"]
SIMULATED = 'study.clock="simulated"'


def study(out, ranks, *more, small=SMALL):
    launch = mpirun(ranks) if ranks > 1 else []
    command = [*launch, sys.executable, "run.py", "inputs/study_partition.toml", *small, *more, "--out", out]
    code, printed = run_job(command, limit_s=240, LOCKSTEP_DATA="")
    return code, printed


def result_of(out):
    return json.loads((out / "result.json").read_text())


@pytest.mark.parametrize("blocks", ["rows", pytest.param("edges", marks=pytest.mark.long)])
def test_the_learned_cuts_beat_equal_rows_and_equal_edges(tmp_path, blocks):
    one, three = tmp_path / "one", tmp_path / "three"
    for out, ranks in ((one, 1), (three, 3)):
        code, printed = study(out, ranks, SIMULATED, f'study.blocks="{blocks}"')
        assert code == 0, printed
    assert "the same bits" in printed
    result = result_of(three)
    assert result["same_bits"] and result["digest"] == result_of(one)["digest"]
    last = {r["partition"]: r for r in result["rows"] if (r["graph"], r["epoch"]) == ("trained", 5)}
    assert last["learned"]["above_best"] <= 1.03
    assert last["learned"]["imbalance"] < last["edges"]["imbalance"] < last["rows"]["imbalance"]
    fresh = {r["partition"]: r for r in result["rows"] if r["graph"] == "new"}
    assert fresh["learned"]["imbalance"] <= 1.15
    assert fresh["learned"]["imbalance"] < fresh["rows"]["imbalance"]
    with open(three / "partition.csv") as file:
        assert len(list(csv.DictReader(file))) == len(result["rows"])
    lines = [r["partition"] for r in result["rows"]]
    assert [lines.count(name) for name in ("rows", "edges", "learned", "random")] == [6] * 4
    assert last["random"]["imbalance"] < last["rows"]["imbalance"]
    metis = [r for r in result["rows"] if r["partition"] == "metis"]
    if find_spec("pymetis"):
        assert len(metis) == 6 and all(r["imbalance"] < 2 and not r["note"] for r in metis)
    else:
        assert [r["graph"] for r in metis] == ["trained", "new"] and "pymetis is not" in metis[0]["note"]
    assert (three / "partition.png").stat().st_size > 0
    model = parse_cost_model((three / "cost_model.json").read_text(), "cost_model.json")
    assert model.widths == (24, 8) and np.count_nonzero(model.weights()) > 0


def test_measured_seconds_and_the_same_bits(tmp_path):
    code, printed = study(tmp_path / "out", 2, "output.plots=false")
    assert code == 0, printed
    result = result_of(tmp_path / "out")
    assert result["same_bits"]
    measured = [row for row in result["rows"] if not row["note"]]
    assert all(row["mean_s"] > 0 and row["above_best"] is None for row in measured)
    assert all(1 <= row["imbalance"] <= 2 for row in measured)


def test_what_the_study_wrote_cuts_the_next_run(tmp_path):
    code, printed = study(tmp_path / "first", 2, SIMULATED)
    assert code == 0, printed
    model = f'parallel.cost_model="{tmp_path}/first/cost_model.json"'
    code, printed = study(tmp_path / "second", 2, SIMULATED, 'parallel.partition="learned"', model)
    assert code == 0, printed
    assert result_of(tmp_path / "second")["digest"] == result_of(tmp_path / "first")["digest"]


def test_a_missing_model_and_a_study_of_files_are_refused(tmp_path):
    code, printed = study(tmp_path / "a", 1, 'parallel.cost_model="nowhere.json"')
    assert code == 2 and "parallel.cost_model" in printed and "no such file" in printed
    code, printed = study(tmp_path / "b", 1, 'graph.path="networkx:karate_club"', small=SMALL[1:])
    assert code == 2 and "the study needs a family" in printed
