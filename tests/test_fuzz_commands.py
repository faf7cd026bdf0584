"""Whole commands, drawn: a share of tests/fuzz_commands.py, and that it finds what is planted."""

import json
import random
from dataclasses import replace

import fuzz_commands
import pytest
from fuzz_commands import Attempt, Ended, attempt, fault_of_baselines, fault_of_end, fault_of_result, shrunk
from fuzz_draws import LEFT_OUT, SPECIAL, SUBJECTS, command, known, python_value, unread
from fuzz_optima import MAKERS, fault_of_answer, fault_of_call, instance

from app.case.config import all_keys
from app.problems.table import PROBLEMS

pytestmark = pytest.mark.mpi_skip
OF_TRAINING = (("train", "graphs"), ("train", "held_back"))  # with the keys of [graph]
# Solves, a training, networks, a study and a call; they are run again, altered and stopped in every way.
SHARE = (2, 13, 15, 17, 62, 88, 94)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", SHARE)
def test_drawn_commands_end_as_promised(number):
    """Solves, trainings, networks, studies and calls, on 1 to 3 ranks."""
    _, fault, shown = attempt(command(number))
    assert fault is None, f"{fault}\n{shown}"


@pytest.mark.parametrize("name", MAKERS)
def test_small_answers_are_what_all_solutions_say(name, tmp_path, monkeypatch):
    """Objective, bound and plain heuristics beside the best of all subsets, orders or partitions."""
    monkeypatch.chdir(tmp_path)
    assert fault_of_call(11, name) is None


def test_every_problem_has_small_instances():
    assert set(MAKERS) == set(PROBLEMS)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"objective": 3}, "result.json says 3"),
        ({"objective": 1, "text": None}, "beyond the optimum 2"),
        ({"bound": 2.5}, "a bound of 2.5 (x) is beyond the optimum 2"),
        ({"objective": 3, "optimal": True, "text": "0\n1\n2\n"}, "called optimal: 3"),
        ({"text": "0\n"}, "not feasible"),
        ({"sense": "maximise"}, "the sense is maximise"),
    ],
)
def test_answers_of_known_instances_that_are_faults(changed, said):
    """A minimum vertex cover of a path of four nodes, of two nodes."""
    path = replace(instance(random.Random(1), "mvc"), **_cover_of_a_path())
    entry = {"objective": 2, "bound": 2, "bound_method": "x", "optimal": False, "sense": "minimise"} | changed
    fault = fault_of_answer(entry, entry.pop("text", "1\n2\n"), path)
    assert fault is None if said is None else said in fault


def _cover_of_a_path():
    covers = [{1, 2}, {0, 2}, {1, 3}, {0, 1, 2}, {0, 1, 2, 3}]
    worth = lambda chosen: len(chosen) if {1, 2} <= chosen or chosen in covers else None  # noqa: E731
    return {
        "least": True, "value": lambda text: worth({int(v) for v in text.split()}),
        "all_values": lambda: map(worth, covers),
    }  # fmt: skip


def test_an_answer_below_a_plain_heuristic_is_a_fault(tmp_path):
    entry = {"name": "g", "objective": 5, "sense": "minimise", "baselines": {"greedy": 4, "other": 6}}
    for sense, said in (("minimise", "g: 5, and greedy finds 4"), ("maximise", "g: 5, and other finds 6")):
        (tmp_path / "result.json").write_text(json.dumps({"instances": [entry | {"sense": sense}]}))
        assert fault_of_baselines(tmp_path) == said
    (tmp_path / "result.json").write_text(json.dumps({"instances": [entry | {"objective": 4}]}))
    assert fault_of_baselines(tmp_path) is None


def test_tame_commands_keep_what_the_program_takes(tmp_path):
    fixed = ("run.task=solve", "problem.name=mis", "graph.generator=er", "graph.nodes=9")
    given = ("search.steps=-3", "search.starts=2", "problem.parts=5", "select.rule='x'", "graph.p=0.5")
    drawn = replace(command(0), fixed=fixed, loose=given, files={}, python="", exact=None)
    assert Attempt(replace(drawn, tame=True), tmp_path).drawn.loose == ("search.starts=2", "graph.p=0.5")
    assert Attempt(replace(drawn, tame=False), tmp_path).drawn.loose == given


@pytest.mark.parametrize("text", ["1e400", "nan", "-inf", "true", "'x'", "[1, 2]", "9"])
def test_settings_as_python_writes_them(text):
    assert isinstance(eval(python_value(text)), bool | int | float | str | list)


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
