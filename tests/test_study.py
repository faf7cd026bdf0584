"""The quality study, end to end, on a few small graphs."""

import base64
import json
import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from jobs import mpirun, run_job
from msgspec.structs import replace

from app.commands.report import report
from app.recipes import RECIPES

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
