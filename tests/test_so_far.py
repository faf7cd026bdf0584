"""A solve that is stopped leaves the best solution it knows, on any number of ranks."""

import json
import sys
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from jobs import run_job
from mpi4py import MPI

from app import check
from app.api.graph import loaded_graph
from app.checkpoint.keeper import Nothing
from app.errors import Stopped
from app.problems.table import make_problem
from app.tasks.context import context_of_settings
from app.tasks.policy import find_policy
from app.tasks.solve import run_solve, solve_graph

GRAPH = nx.gnp_random_graph(60, 0.2, seed=3)
SETTINGS = {"search.steps": 3000, "search.bound_seconds": 0.2, "search.start": "greedy"}


class Ends(Nothing):
    """Stops a run when it has looked so many times."""

    def __init__(self, looks):
        self.left = looks

    def at(self, step, key="", state=None, now=False):
        self.left -= 1
        if self.left < 0:
            raise Stopped("here")


class Answers(Nothing):
    """Keeps the answers of a run for the next one."""

    def __init__(self):
        self.kept = {}

    def recall(self, key):
        return self.kept.get(key)

    def keep(self, key, state):
        self.kept[key] = state


def stopped(problem, looks, graph=GRAPH):
    """What a solve knew after so many looks; None: nothing; True: it had ended."""
    context = context_of_settings({**SETTINGS, "problem.name": problem}, MPI.COMM_WORLD, False)
    loaded, _ = loaded_graph(context, graph)
    try:
        solve_graph(context, make_problem(problem), find_policy(context), loaded, Ends(looks))
    except Stopped as error:
        return error.so_far
    return True


def test_answers_that_came_without_what_proves_them_are_counted():
    case = {"graph.generator": "ba", "graph.nodes": 9, "graph.count": 2, "search.start": "greedy"}
    answers = Answers()

    def part(certificates):
        settings = {**case, "search.steps": 1, "output.certificates": certificates}
        run_solve(replace(context_of_settings(settings, MPI.COMM_WORLD, False), keeper=answers))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part(False)
        part(False)
    with pytest.warns(UserWarning, match=r"^output\.certificates: 2 answers of an earlier part of the run"):
        part(True)


@pytest.mark.parametrize("problem", ["mvc", "maxcut", "mds", "tsp"])
def test_what_is_known_is_feasible_and_gets_better(problem):
    points = np.random.default_rng(1).integers(0, 1000, (40, 2))
    graph = points if problem == "tsp" else GRAPH
    found = []
    for looks in range(12):
        known = stopped(problem, looks, graph)
        if known is True:
            break
        texts = MPI.COMM_WORLD.allgather(None if known is None else known.text)
        assert len(set(texts)) == 1
        if known is not None:
            nodes = [int(line.split()[0]) for line in known.text.splitlines() if line.split()[-1] != "0"]
            nodes = [int(line) for line in known.text.splitlines()] if problem != "maxcut" else nodes
            assert (
                check(graph, nodes, problem, settings={"search.bounds": False}).objective
                == (known.entry["objective"])
            )
            found.append(known.entry["objective"])
    assert found == sorted(found, reverse=problem != "maxcut") and found


# run.py, but that it is asked to stop in the third round of the second graph's search, or before the plain
# heuristics on it.
STOPPED = """
import os, signal, sys
import run
from app.checkpoint import keeper
from app.tasks import answer
where, plain, compare = sys.argv.pop(1), keeper.PieceKeeper.at, answer.compare
def at(self, step, key="", state=None, now=False):
    if where == "search" and key == "search" and self.name == "instance 1" and step == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    plain(self, step, key, state, now)
def compared(context, toolbox, name, *more, **keys):
    if where == "baselines" and name != "ring":
        os.kill(os.getpid(), signal.SIGTERM)
    return compare(context, toolbox, name, *more, **keys)
keeper.PieceKeeper.at, answer.compare = at, compared
sys.exit(run.main(sys.argv[1:], whole_process=True))
"""


@pytest.mark.mpi_skip
@pytest.mark.parametrize("where", ["search", "baselines"])
def test_files_of_a_stopped_run_and_of_its_end(tmp_path, where):
    """One graph is finished, the next under way; the end of the run takes stopped.json away."""
    out, ring = tmp_path / "out", tmp_path / "ring.txt"
    ring.write_text("1 2\n2 3\n3 4\n4 5\n5 1\n")
    case = [
        "inputs/mvc.toml", f"graph.path={ring}", "graph.generator=er", "graph.nodes=400", "graph.p=0.1",
        "graph.count=1", "search.seconds=1", "search.start=greedy", "output.plots=false", "--out", out,
    ]  # fmt: skip
    code, said = run_job([sys.executable, "-c", STOPPED, where, *case], forked=True)
    assert code == 3 and "what is known so far: stopped.json, and solution/" in said
    known = json.loads((out / "stopped.json").read_text())
    assert known["status"] == "stopped" and [e["name"] for e in known["instances"]] == ["ring", "er-400-0"]
    lines = (out / "solution" / "er-400-0.txt").read_text().splitlines()
    assert len(lines) == known["instances"][1]["objective"] and not (out / "result.json").exists()
    code, said = run_job([sys.executable, "run.py", *case, "--resume"])
    result = json.loads((out / "result.json").read_text())
    assert code == 0 and result["status"] == "complete" and not (out / "stopped.json").exists()
    assert result["instances"][1]["objective"] <= len(lines)
