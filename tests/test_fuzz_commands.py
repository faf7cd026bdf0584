"""Whole commands, drawn: a share of tests/fuzz_commands.py, and that it finds what is planted."""

import json

import fuzz_commands
import pytest
from fuzz_commands import Ended, attempt, fault_of_end, fault_of_result, shrunk
from fuzz_draws import LEFT_OUT, SPECIAL, SUBJECTS, command, known, unread

from app.case.config import all_keys

pytestmark = pytest.mark.mpi_skip
OF_TRAINING = (("train", "graphs"), ("train", "held_back"))  # with the keys of [graph]
SHARE = (3, 17, 41, 52, 76, 88, 103, 119)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", SHARE)
def test_drawn_commands_end_as_promised(number):
    """Solves, trainings, networks, studies and calls, on 1 to 3 ranks."""
    _, fault, shown = attempt(command(number))
    assert fault is None, f"{fault}\n{shown}"


def test_all_subjects_and_keys_are_drawn():
    drawn = [command(number) for number in range(6000)]
    assert {each.subject for each in drawn} == set(SUBJECTS)
    assert drawn[:50] == [command(number) for number in range(50)]
    names = {".".join(keys) for keys, _, _ in all_keys() if keys[:2] not in OF_TRAINING}
    assert names - LEFT_OUT == {name for table in known().values() for name, _ in table}
    assert set(SPECIAL) <= names
    found = {each.split("=", 1)[0] for one in drawn for each in (*one.fixed, *one.loose)}
    assert len(names - found) < 0.02 * len(names), names - found


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(None, "x", "", 90.0), "not done after"),
        (Ended(1, "", "boom", 1.0), "exit code 1"),
        (Ended(0, "", "a.py:3: RuntimeWarning: overflow", 1.0), "on stderr"),
        (Ended(0, "", "something", 1.0), "complete, and on stderr"),
        (Ended(2, "", "lockstep: error: a.b: wrong\nand more\n", 1.0), "a refusal of 2 lines"),
        (Ended(2, "", "lockstep: error: bad luck\n", 1.0), "names nothing"),
        (Ended(2, "", "lockstep: error: c.toml: 2 mistakes\n  a.b: wrong\n", 1.0), "a refusal of 2 lines"),
        (Ended(2, "", "Traceback (most recent call last)\n", 1.0), "on stderr"),
    ],
)
def test_ends_that_are_faults(ended, said):
    assert said in fault_of_end(ended)


def test_ends_that_are_none():
    many = "lockstep: error: c.toml: 2 mistakes\n  a.b: wrong\n  c.d: wrong\n"
    for ended in (Ended(0, "done", "", 1.0), Ended(3, "", "", 1.0), Ended(2, "", many, 1.0)):
        assert fault_of_end(ended) is None
    assert fault_of_end(Ended(3, "", "", 1.0), whole=False) == "exit code 3: "


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"objective": 3, "bound": 4, "sense": "minimise"}, "beyond the bound"),
        ({"objective": 3, "bound": 2.5, "sense": "maximise"}, "beyond the bound"),
        ({"objective": 3, "bound": 3, "sense": "maximise", "feasible": False}, "not feasible"),
        ({"objective": 3, "bound": 3, "sense": "maximise"}, None),
        ({"objective": 3, "bound": None, "sense": "minimise"}, None),
    ],
)
def test_results_that_are_faults(tmp_path, entry, said):
    result = {"status": "complete", "digest": "x", "instances": [{"name": "g", **entry}]}
    (tmp_path / "result.json").write_text(json.dumps(result))
    fault = fault_of_result(tmp_path)
    assert fault is None if said is None else said in fault
    (tmp_path / "result.json").write_text(json.dumps(result | {"status": "stopped"}))
    assert "says 'stopped'" in fault_of_result(tmp_path)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["problem.name=mis", 'problem.dense="size"'], 'problem.dense="size"'),
        (["problem.name=mis", 'problem.dense="average"', "graph.p=0.3"], None),
        (["problem.name=dense", 'problem.dense="size"', "problem.size=3"], None),
        (["problem.name=facility", "problem.budget=2"], None),
        (["problem.size=3"], "problem.size=3"),
        (["gnn.level=node", "gnn.heads=2"], "gnn.heads=2"),
        (["gnn.model=sgformer", "gnn.heads=2", "gnn.attention_share=0.2"], None),
        (['gnn.layers=["gat 4", "gcn"]', "gnn.heads=2"], None),
        (["gnn.level=graph", 'gnn.readout="max"'], None),
    ],
)
def test_settings_that_are_of_something_else(settings, said):
    assert unread(settings) == said


def test_a_command_is_made_smaller_while_it_fails(monkeypatch):
    """Of five settings the two that matter are left."""
    drawn = next(d for d in map(command, range(1000)) if len(set(d.loose)) >= 4)
    needed = {drawn.loose[1], drawn.loose[3]}

    def fails(tried, limit):
        return "failed", "planted" if needed <= set(tried.loose) else None, []

    monkeypatch.setattr(fuzz_commands, "attempt", fails)
    assert set(shrunk(drawn).loose) == needed
