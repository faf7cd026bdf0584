"""The study of answers: what its catalogue may say, and what is refused before anything is solved."""

import pytest
from mpi4py import MPI

from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.log import Log
from app.tasks.context import Context
from app.tasks.studies.answers import run_answers

GRAPHS = {"path.gr": "p td 3 2\n1 2\n2 3\n", "bare.gr": "p td 3 0\n", "more/path.gr": "p td 2 1\n1 2\n"}


def answers(folder, lines, whole=False, **settings):
    """The study of a catalogue of these lines, (file, best value as TOML), on one rank."""
    for name, text in GRAPHS.items():
        (folder / "mvc" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "mvc" / name).write_text(text)
    tables = [f'[[file]]\npath = "mvc/{name}"\n' for name, _ in lines]
    tables = [table + (f"best_value = {best}\n" if best else "") for table, (_, best) in zip(tables, lines)]
    (folder / "catalogue.toml").write_text("".join(tables))
    case = build({
        "run.task": "study", "study.kind": "answers", "study.catalogue": str(folder / "catalogue.toml"),
        "study.sets": ["mvc"], "search.steps": 20, **settings,
    })  # fmt: skip
    said = []
    log = Log(False)
    log.info = lambda text, *values: said.append(text % values)
    result = run_answers(Context(case, Group(MPI.COMM_SELF, HostDevice()), log, None))
    return result if whole else result["rows"], said


def test_a_best_value_of_zero_is_a_value(tmp_path):
    rows, said = answers(tmp_path, [("path.gr", "0"), ("bare.gr", "0"), ("path.gr", "1"), ("path.gr", "")])
    assert [row["best_known"] for row in rows] == [0, 0, 1, None]
    assert [row["ratio"] for row in rows] == [None, 1.0, 1.0, None]
    first, second = (line for line in said[:-1] if "best known 0" in line)
    assert "path.gr: 1, best known 0, gap" in first and "bare.gr: 0, best known 0 (1.0000), gap" in second
    assert "best known value on 2 of 3 graphs, at worst 0.000 % away" in said[-1]


@pytest.mark.parametrize("best", ['"1"', "1.5", "true", "[1]"])
def test_a_best_value_that_is_no_integer_is_refused(tmp_path, best):
    with pytest.raises(CaseError, match=r"mvc/path\.gr: best_value: must be an integer, or be left out, got"):
        answers(tmp_path, [("bare.gr", "0"), ("path.gr", best)])


def test_files_are_looked_for_before_the_first_is_solved(tmp_path, monkeypatch):
    monkeypatch.setattr("app.tasks.studies.answers.solve_graph", None)
    with pytest.raises(CaseError, match=r"no such file: .*mvc/none\.gr and 1 more; a path relative"):
        answers(tmp_path, [("path.gr", "1"), ("none.gr", "1"), ("nil.gr", "1")])


def test_a_set_that_is_none_is_refused(tmp_path):
    with pytest.raises(CaseError, match=r'study\.sets: found "mcv"; mvc, large, maxcut, tsp would be right'):
        answers(tmp_path, [("path.gr", "1")], **{"study.sets": ["mvc", "mcv"]})


def test_files_of_one_name_in_two_folders_both_count(tmp_path):
    lines = [("path.gr", "1"), ("more/path.gr", "1")]
    both, one, other = (
        answers(tmp_path / str(i), each, whole=True)[0]["digest"]
        for i, each in enumerate((lines, lines[:1], lines[1:]))
    )
    assert len({both, one, other}) == 3
