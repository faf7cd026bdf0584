"""What belongs to a run's folder, and what may change between two parts of a run."""

import json
import os
import re
import shutil
import signal
import sys

import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job

from app.case.file import build
from app.checkpoint import store
from app.checkpoint.identity import described, differences, input_digests
from app.errors import CaseError
from app.output import OWN_FILES, OWN_FOLDERS, RunFolder

pytestmark = pytest.mark.mpi_skip


def test_all_that_is_written_is_known_to_be_the_runs_own():
    """Names in calls that write tables, texts and plots; --overwrite clears them."""
    found, folders = set(), set()
    for path in (ROOT / "app").rglob("*.py"):
        text = path.read_text("utf-8")
        folders |= set(re.findall(r'(?:write_text|write_arrays|placed)\(\s*f?"(\w+)/', text))
        found |= set(re.findall(r'write_(?:csv|json|text)\(\s*"([\w.]+)"', text))
        found |= set(re.findall(r'"(\w+\.png)"', text))
        found |= set(re.findall(r'name = "(\w+\.csv)"', text))
    assert len(found) > 45
    assert found - set(OWN_FILES) == set()
    assert len(folders) > 5
    assert folders - {name for name, _ in OWN_FOLDERS} == set()


def test_what_is_no_finite_number_is_null(tmp_path, solo):
    folder = RunFolder(solo, str(tmp_path / "out"), False)
    folder.write_json(
        "result.json", {"gap": float("inf"), "all": [float("nan"), 1.5, "NaN"], "n": np.int64(3)}
    )
    text = (tmp_path / "out" / "result.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"gap": None, "all": [None, 1.5, "NaN"], "n": 3}


def test_a_study_leaves_nothing_behind_another_run(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("case.toml", "learners.csv", "learners.png", "mine.csv"):
        (tmp_path / "out" / name).write_text("")
    command = [
        sys.executable,
        "run.py",
        "inputs/mvc.toml",
        "graph.path=networkx:karate_club",
        "output.plots=false",
    ]
    code, printed = run_job([*command, "--out", tmp_path / "out", "--overwrite"])
    assert code == 0, printed
    names = {each.name for each in (tmp_path / "out").iterdir()}
    assert "mine.csv" in names and not names & {"learners.csv", "learners.png"}


def test_limits_that_change_answers_define_a_run(tmp_path):
    """The size beyond which the policy alone solves; a cost model only cuts rows."""
    keys = {"run.task": "solve", "problem.name": "mvc"}
    before = {"case": described(build(keys))}
    assert differences(before, build(keys | {"memory.fast_mb": 1}), None) == []
    (line,) = differences(before, build(keys | {"memory.whole_graph_mb": 0}), None)
    assert line.startswith("memory.whole_graph_mb: 4096.0 there, 0")
    model = tmp_path / "cost.json"
    model.write_text("{}")
    assert input_digests(build(keys | {"parallel.cost_model": str(model)})) == {}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["search.solver=policy", "search.start=README.md"], "search.start (command line): the policy"),
        (["search.solver=policy", "search.start=greedy"], "search.start (command line): the policy"),
        (["search.solver=policy", "search.starts=3"], "search.starts (command line): the policy alone"),
        (["search.solver=policy", "search.peels=2"], "search.peels (command line): the policy alone"),
        (["search.starts=1000000000"], "must be from 0 to 65536"),
        (["parallel.data=1000000000"], "must be from 1 to 65536"),
        (["agent.adam_epsilon=1e-300"], "must be at least 1e-30"),
        (["search.sweeps=100000000"], "to 16777216"),
    ],
)  # fmt: skip
def test_values_without_a_meaning_are_refused(tmp_path, keys, said):
    code, printed = run_job([sys.executable, "run.py", "inputs/mvc.toml", *keys, "--out", tmp_path / "out"])
    assert code == 2 and said in printed, printed


NOPE = ['learners=["nope"]', 'embeddings=["nope"]', 'problems=["nope"]', 'settings=["nope agent.batch=3"]']


@pytest.mark.parametrize("key", NOPE)
def test_a_study_of_learners_knows_its_names_before_it_trains(tmp_path, key):
    command = [sys.executable, "run.py", "inputs/study_learners.toml", f"study.{key}"]
    code, printed = run_job([*command, "--out", tmp_path / "out"])
    assert code == 2 and "nope" in printed, printed


def test_solutions_that_are_asked_for_later_are_whole(tmp_path):
    """Of graphs that two groups solve: turned on between two parts of a run."""
    keys = [
        "graph.generator=er", "graph.nodes=200", "graph.p=0.06", "graph.count=4", "search.steps=2000",
        "search.bounds=false", "search.baselines=false", "output.plots=false", "parallel.data=2",
    ]  # fmt: skip
    command = [*mpirun(2), sys.executable, "run.py", "inputs/mvc.toml", *keys, "--out", tmp_path / "out"]
    stop = {"LOCKSTEP_TESTING": "1", "LOCKSTEP_FAULT": f"signal:rank=1,step=0,code={signal.SIGTERM}"}
    code, printed = run_job([*command, "output.solutions=false"], **stop)
    assert code == 3, printed
    assert "answer 0" in store.newest(str(tmp_path / "out" / "checkpoint"))[0].parts
    code, printed = run_job([*command, "--resume"])
    assert code == 0, printed
    sizes = [each.stat().st_size for each in (tmp_path / "out" / "solution").iterdir()]
    assert len(sizes) == 4 and min(sizes) > 100


@pytest.mark.parametrize(("evaluations", "made"), [(0, 38), (20, 20), (1, 15)])
def test_a_tour_starts_with_about_as_many_evaluations(tmp_path, evaluations, made):
    """At most so many, where they suffice to take in three tenths of the cities outside at once."""
    keys = ["graph.generator=uniform_points", "graph.nodes=40", "search.steps=0", "output.plots=false"]
    command = [sys.executable, "run.py", "inputs/tsp.toml", *keys, f"search.evaluations={evaluations}"]
    code, printed = run_job([*command, "--out", tmp_path / "out"])
    assert code == 0, printed
    (answer,) = json.loads((tmp_path / "out" / "result.json").read_text())["instances"]
    assert answer["policy_evaluations"] <= made and answer["learned"] is not None
    assert evaluations or answer["policy_evaluations"] == made


def test_a_rollout_moves_as_many_at_once_as_the_case_says(tmp_path):
    """Also a large part of a small graph; not so many where a time limit would have it."""
    keys = ["graph.generator=er", "graph.nodes=60", "graph.p=0.1", "graph.generator_seed=1", "graph.count=1"]
    more = ["search.steps=0", "search.bounds=false", "output.plots=false", "search.moves_at_once=20"]
    command = [sys.executable, "run.py", "inputs/maxcut.toml", *keys, *more, "--out", tmp_path / "out"]
    code, printed = run_job(command)
    assert code == 0, printed
    (answer,) = json.loads((tmp_path / "out" / "result.json").read_text())["instances"]
    assert answer["learned"] is not None and answer["policy_evaluations"] > 0


def test_a_folder_that_may_not_be_read_is_said(tmp_path, solo, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("app.output.os.listdir", denied)
    with pytest.raises(CaseError, match=r"--out .*: cannot be used: Permission denied"):
        RunFolder(solo, str(tmp_path), overwrite=False)


def test_a_link_to_nothing_is_no_folder(tmp_path, solo):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(CaseError, match="a link to what is not there"):
        RunFolder(solo, str(tmp_path / "link"), overwrite=False)


def test_what_a_run_was_started_with_is_written_again(tmp_path, solo):
    folder = RunFolder(solo, str(tmp_path / "out"), overwrite=False)
    folder.begin(build({}), solo.device)
    before = (tmp_path / "out" / "case.toml").read_bytes()
    assert not folder.mend()
    shutil.rmtree(tmp_path / "out")
    assert folder.mend()
    assert (tmp_path / "out" / "case.toml").read_bytes() == before
    assert json.loads((tmp_path / "out" / "environment.json").read_text())["inputs"] == {}


def test_what_is_no_file_in_a_folder_of_inputs_is_passed_over(tmp_path):
    splits = tmp_path / "splits"
    splits.mkdir()
    for name in ("train", "valid", "test"):
        (splits / f"{name}.csv").write_text("0\n")
    case = build({"run.task": "classify", "graph.path": "networkx:karate_club", "graph.splits": str(splits)})
    before = input_digests(case)
    (splits / "old.tmp").symlink_to(tmp_path / "none")
    os.mkfifo(splits / "pipe")
    assert input_digests(case) != before
    (splits / "train.csv").unlink()
    os.mkfifo(splits / "train.csv")
    assert list(input_digests(case)) == list(before)


def test_a_folder_that_was_emptied_can_be_used_again(tmp_path, solo):
    out = tmp_path / "out"
    (out / "predictions").mkdir(parents=True)
    for name in ("case.toml", "predictions/a.txt"):
        (out / name).write_text("")
    RunFolder(solo, str(out), overwrite=True).release()  # and the job dies
    RunFolder(solo, str(out), overwrite=False).release()


def test_a_log_that_may_not_be_written_is_said(tmp_path):
    out = tmp_path / "out"
    (out / "log.txt").mkdir(parents=True)
    (out / "case.toml").write_text("")
    command = [sys.executable, "run.py", "inputs/mvc.toml", "graph.path=networkx:karate_club", "--out", out]
    for ranks in (1, 2):
        (out / "case.toml").unlink()
        (out / "environment.json").write_text("{}")
        code, printed = run_job([*mpirun(ranks), *command, "--resume"])
        assert (code, printed.count("cannot write there")) == (2, 1), printed
        assert "Traceback" not in printed
