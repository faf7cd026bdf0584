"""Lines that people read: 80 columns, tables at most 100; whatever names and paths leave whole."""

import sys

import pytest
from jobs import ROOT, mpirun, run_job

from app.log import STAMP, Log, stamp
from app.text import COLUMNS, WIDEST, table_lines, wrapped


def test_no_kind_of_lines_keeps_another_one_out(capsys):
    """What is said often leaves room for what is said now and then; each has a pace of its own."""
    log = Log(True, pace_s=0.0)
    log.pace_s = 1e6
    log._opened -= 1e7
    for i in range(3):
        log.progress("evaluating %d", i)
    for i in range(3):
        log.progress("step %d", i)
    assert capsys.readouterr().out.split("\n")[:-1] == ["evaluating 0", "step 0"]


SMALL = ("output.plots=false", "output.log_seconds=0.0")
RUNS = {
    "mvc": ("graph.path=[]", "graph.generator=ba", "graph.nodes=60", "graph.count=2", "search.steps=100"),
    "maxcut": ("graph.count=1", "search.steps=100", "search.bound_seconds=0.6"),
    "gcn": ("graph.nodes=100", "gnn.epochs=4"),
    "rgcn": ("graph.nodes=200", "graph.edges=900", "rgcn.labelled=60", "rgcn.epochs=3"),
    "train": (
        "graph.count=4", "graph.nodes=[16,24]", "train.steps=40", "train.evaluate_every=10", "agent.warmup=8",
        "agent.batch=8", "train.evaluate_graphs=2",
    ),
}  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name == "rgcn")) for name in RUNS]
)
def test_lines_of_a_run_fit_a_terminal(name, tmp_path):
    start = mpirun(2) if name == "mvc" else []
    command = [*start, sys.executable, "run.py", f"inputs/{name}.toml", *RUNS[name], *SMALL]
    code, printed = run_job([*command, "--out", tmp_path / "out"], cwd=ROOT)
    assert code == 0, printed
    lines = [line for line in printed.splitlines() if "/" not in line]
    assert len(lines) > 10
    wide = [line for line in lines if len(line) > COLUMNS]
    tables = [line for line in wide if line.count("  ") > 3 and len(line) <= WIDEST]
    assert wide == tables
    assert not wide or any(line.startswith("graph ") for line in wide)  # of the answers alone


def test_a_long_line_is_wrapped_and_a_table_is_not(tmp_path):
    text = " ".join(["word"] * 40)
    lines = list(wrapped(text))
    assert max(map(len, lines)) <= COLUMNS < len(text)
    assert " ".join(line.strip() for line in lines) == text
    assert all(line.startswith("  word") for line in lines[1:])
    row = "a  " + "b" * 90
    assert list(wrapped(row)) == [row]
    head = f"{'heading':>90}"  # of a table's last column alone
    assert list(wrapped(head)) == [head]
    log = Log(True, str(tmp_path), echo=False)
    log.info("%s", text)
    log.close()
    written = (tmp_path / "log.txt").read_text().splitlines()
    assert max(map(len, written)) <= COLUMNS
    assert " ".join(line[STAMP:].strip() for line in written) == text
    assert float(written[0][:STAMP]) < 60 and not written[1][:STAMP].strip()
    assert [len(stamp(seconds)) for seconds in (0.0, 9999.94, 9999.96, 864000.0)] == [STAMP] * 4


def test_a_wide_table_goes_on_below():
    head = ["graph", *(f"heading of {i}" for i in range(12))]
    rows = [head, *([name, *(str(10**i) for i in range(12))] for name in ("first", "the second"))]
    lines = list(table_lines(rows, WIDEST))
    assert COLUMNS < max(map(len, lines)) <= WIDEST
    assert max(map(len, table_lines(rows))) <= COLUMNS
    assert all(line.strip() for line in lines)
    firsts = [line for line in lines if line.startswith("first")]
    assert len(firsts) > 1
    assert " ".join(line.removeprefix("first") for line in firsts).split() == rows[1][1:]
    for line in lines:  # every part has whole rows
        assert line[:10].strip() in ("", "graph", "first", "the second")
    assert list(table_lines([["graph", "gap %"], ["a", "0.00"]])) == ["graph  gap %", "a       0.00"]
