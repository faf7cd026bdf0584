"""The quality study, end to end, on a few small graphs."""

import base64
import json
import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from jobs import mpirun, run_job
from mpi4py import MPI
from msgspec.structs import replace

from app.case.file import build
from app.comm.group import Group
from app.commands.report import report
from app.device import HostDevice
from app.log import Log
from app.problems.table import make_problem
from app.recipes import RECIPES
from app.tasks.context import Context
from app.tasks.studies import quality

pytestmark = pytest.mark.mpi_skip

SMALL = [
    "study.families=['ba']", "study.seeds=[1]", "study.steps=30", "study.sizes=[20, 30]",
    "study.graphs_per_size=3", "train.evaluate_graphs=3", "train.evaluate_every=15",
]  # fmt: skip


def study(out, ranks, *more):
    launch = mpirun(ranks) if ranks > 1 else []
    command = [*launch, sys.executable, "run.py", "inputs/study_quality.toml", *SMALL, *more, "--out", out]
    code, printed = run_job(command, limit_s=240, LOCKSTEP_DATA="")
    assert code == 0, printed
    return json.loads((out / "result.json").read_text()), printed


def test_the_table_has_baselines_and_both_recipes_and_does_not_depend_on_ranks(tmp_path):
    one, printed = study(tmp_path / "one", 1)
    two, _ = study(tmp_path / "two", 2)
    assert one["digest"] == two["digest"]
    assert one["rows"] == two["rows"]
    policies = [row["policy"] for row in one["rows"]]
    assert policies[:3] == ["max degree", "min degree", "one-hop formula"]
    assert policies[3:] == ["learned, default", "learned, paper"]
    assert all(row["ratio"] >= 1 for row in one["rows"])
    assert "AAR" in printed
    assert (tmp_path / "one" / "weights-ba-default-1.npz").is_file()
    check_page(tmp_path / "one", one["rows"])


def check_page(folder, rows):
    """The page of a study has the table of its rows, and its pictures as they are."""
    report([str(folder), "-o", str(folder / "page.html")])
    page = (folder / "page.html").read_text("ascii")
    assert "<th>policy</th>" in re.sub(r"<th[^>]*>", "<th>", page)
    for row in rows:
        assert re.search(rf"<td[^>]*>{row['policy']}</td>", page), row
    found = re.findall(r"data:image/png;base64,([^\"]*)", page)
    pictures = [path.read_bytes() for path in sorted(folder.glob("*.png"))]
    assert [base64.b64decode(each) for each in found] == pictures
    assert bool(pictures) == bool(find_spec("matplotlib"))


def test_a_quality_of_cuts_is_above_one_and_has_no_independent_sets(tmp_path):
    keys = ['problem.name="maxcut"', 'study.recipes=["default"]', "study.sizes=[12]", "study.steps=30"]
    result, printed = study(tmp_path / "out", 1, *keys)
    assert all(row["ratio"] >= 1 and "independent_set_ratio" not in row for row in result["rows"])
    assert "IS ratio" not in printed and "ratios to the optimum, proved for each" in printed


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("problem", "best", "found", "wanted"),
    [
        ("maxcut", [0, 0], [0, 0], [1, 1]), ("maxcut", [0, 6], [0, 4], [1, 1.5]),
        ("maxcut", [0, 6], [0, 0], [1, None]), ("mvc", [0, 4], [0, 6], [1, 1.5]),
    ],
)  # fmt: skip
def test_a_graph_on_which_nothing_is_to_be_gained_counts_as_one(problem, best, found, wanted):
    """A cut of nothing where there is more has no ratio."""
    graphs = [SimpleNamespace(graph=SimpleNamespace(n=n)) for n in (2, 8)]
    tests = quality.TestSet("er", graphs, [], np.array(best), "", make_problem(problem))
    row = quality._row(tests, "learned", 1, np.array(found))
    assert list(row["by_nodes"].values()) == wanted
    assert row["ratio"] == (None if None in wanted else np.mean(wanted))
    assert row.get("independent_set_ratio") == (0.75 if problem == "mvc" else None)


@pytest.mark.parametrize(
    ("name", "said"), [("mvc", "no such file: "), ("maxcut", "known covers say nothing of maxcut")]
)
def test_a_data_folder_that_is_not_read_is_told(tmp_path, name, said):
    keys = {
        "run.task": "study", "problem.name": name, "study.families": ["er"], "study.sizes": [2], "seed": 1,
        "study.graphs_per_size": 1, "study.seeds": [1], "study.steps": 4, "study.recipes": ["default"],
        "study.data": str(tmp_path / "none"), "train.evaluate_graphs": 1, "search.steps": 20,
    }  # fmt: skip
    lines, log = [], Log(False)
    log.info = lambda text, *values: lines.append(text % values)
    found = quality.run_quality(Context(build(keys), Group(MPI.COMM_SELF, HostDevice()), log, None))
    assert any(f"er: the test graphs are generated: {said}" in line for line in lines)
    assert all(np.isfinite(row["ratio"]) for row in found["rows"])


def test_recipes_lead_from_the_papers_to_the_default():
    paper, target, shaped, features = (
        RECIPES[f"paper{each}"] for each in ("", "_target", "_shaping", "_features")
    )
    assert target[0] == shaped[0] == paper[0] and features[0] == RECIPES["default"][0] != paper[0]
    assert replace(target[1], target_every=1) == paper[1] and features[1] == target[1]
    assert replace(shaped[1], shaping="none") == target[1] != shaped[1]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (['problem.name="tsp"'], "the study's families, er and ba, have no distances"),
        (['problem.name="maxcut"'], "has scale_free, not 'paper'"),
    ],
)
def test_what_would_fail_later_is_refused_before_anything_is_trained(tmp_path, keys, said):
    command = [
        sys.executable,
        "run.py",
        "inputs/study_quality.toml",
        *SMALL,
        *keys,
        "--out",
        tmp_path / "out",
    ]
    code, printed = run_job(command, limit_s=60, LOCKSTEP_DATA="")
    assert (code, said in printed, "AAR" in printed) == (2, True, False), printed


def test_known_covers_are_read_from_a_data_folder(tmp_path):
    # Two stars and a triangle: covers of 1, 1 and 2 nodes.
    graphs = [(20, [(0, i) for i in range(1, 20)]), (30, [(3, i) for i in range(30) if i != 3])]
    nodes, nnz, indptr, indices = [], [], [], []
    for n, edges in graphs:
        ends = np.array([*edges, *[(v, u) for u, v in edges]])
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        nodes.append(n)
        nnz.append(len(ends))
        indptr += np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=n))]).tolist()
        indices += ends[order, 1].tolist()
    data = tmp_path / "data"
    data.mkdir()
    np.savez(
        data / "ba.npz", nodes=nodes, nnz=nnz, indptr=indptr, indices=indices, best_cover=[1, 1],
        proved=[True, True],
    )  # fmt: skip
    result, _ = study(tmp_path / "out", 1, f'study.data="{data}"', 'study.recipes=["default"]')
    assert result["rows"][0]["ratio"] == 1.0
