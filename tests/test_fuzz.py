"""Damaged input: tests/fuzz.py in a process of its own, some hundred inputs, and many in the long mode."""

import os
import pickle
import random
import re
import signal
import sys
import time
import warnings
from pathlib import Path

import fuzz
import numpy as np
import pytest
from fuzz_targets import PAIRS, TARGETS, Sample, Target, npz, read_graph
from jobs import ROOT, run_job
from scipy.sparse import csr_matrix

from app.errors import CaseError, GraphError, NumericsError
from app.memory.room import resident_bytes
from app.tasks.studies.answers import read_catalogue

pytestmark = pytest.mark.mpi_skip
HUGE = 1 << 31


def run_fuzz(inputs, first):
    """Run these inputs in a process of their own; a fault ends the test."""
    command = [sys.executable, ROOT / "tests" / "fuzz.py", "--inputs", inputs, "--first", first]
    code, printed = run_job(command, limit_s=280, LOCKSTEP_DATA=os.environ.get("LOCKSTEP_DATA", ""))
    assert code == 0, printed
    assert f"{inputs} inputs, 0 faults" in printed


def test_damaged_input_is_read_or_refused():
    run_fuzz(390, 0)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_much_damaged_input_is_read_or_refused():
    """In pieces, so that no process grows old."""
    for first in range(1000, 28_200, 2720):
        run_fuzz(2720, first)


def test_a_fault_is_found(tmp_path, monkeypatch):
    """What the run looks for, planted: an error of another kind, much memory, a long message, a long time."""

    def read(path, draw):
        match Path(path).parent.name:
            case "0":
                raise KeyError("planted")
            case "1":
                raise NumericsError("planted")
            case "2":
                raise GraphError("planted\nin two lines")
            case "3":
                bytearray(resident_bytes("VmHWM") - resident_bytes() + (128 << 20))
            case "4":
                time.sleep(5)

    monkeypatch.setattr(fuzz, "MOST_BYTES", 16 << 20)
    monkeypatch.setattr(fuzz, "LIMIT_S", 1)
    monkeypatch.setitem(TARGETS, "planted", Target(read, lambda: [Sample({"a": b"1 2"}, "a")]))
    before = signal.signal(signal.SIGALRM, fuzz.ring)
    faults = []
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        faults.append(fuzz.attempt(number, ["planted"], tmp_path / str(number))[2])
    signal.signal(signal.SIGALRM, before)
    shown = (
        "KeyError: 'planted'",
        "exit code 1: planted",
        "not one line: planted",
        "MiB more memory",
        "longer than",
    )
    assert all(part in (fault or "") for part, fault in zip(shown, faults)), faults
    assert faults[5] is None


@pytest.mark.parametrize("name", TARGETS)
def test_the_good_files_are_good(name, tmp_path):
    """Else the run would damage what nobody reads; two samples of formats that hold no graph are refused."""
    target = TARGETS[name]
    for number, sample in enumerate(target.samples()):
        for each, content in sample.files.items():
            path = tmp_path / str(number) / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            target.read(str(tmp_path / str(number) / sample.main), random.Random(4))
        except (CaseError, GraphError) as error:
            assert "found format 'array'; coordinate would be right" in str(error), sample.main


# ---- what the run has found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.col", b"p edge %d 1\ne 1 2\n" % HUGE),
        ("n.col", b"p edge %d 1\nn 1 5\ne 1 2\n" % HUGE),
        ("a.mtx", b"%%%%MatrixMarket matrix coordinate pattern symmetric\n%d %d 1\n2 1\n" % (HUGE, HUGE)),
        ("G1", b"%d 1\n1 2 1\n" % HUGE),
        ("e.npz", npz(edges=PAIRS, num_nodes=[HUGE])),
        ("c.npz", npz(row=[0, 1], col=[1, 0], shape=[HUGE, HUGE], format=np.array(b"coo"))),
    ],
)
def test_headers_cost_no_memory(tmp_path, name, content):
    """The arrays of 2^31 nodes would take 8 GiB and more."""
    path = tmp_path / name
    path.write_bytes(content)
    before = resident_bytes("VmHWM")
    with pytest.raises(GraphError, match=rf"the header states {HUGE} nodes, for \d+ edge lines; at most"):
        read_graph(str(path), random.Random(4))
    assert resident_bytes("VmHWM") - before < 64 << 20


def test_many_isolated_nodes_are_a_graph(tmp_path):
    path = tmp_path / "d.col"
    path.write_bytes(b"p edge 100000 1\ne 1 2\n")
    read_graph(str(path), random.Random(4))


@pytest.mark.parametrize(
    "content",
    [b"\xff[[file]]\n", b"file = 3\n", b'file = ["a"]\n', b"[[file]\n", b"a = " + b"[" * 5000],
)
def test_a_catalogue_that_is_none(tmp_path, content):
    path = tmp_path / "catalogue.toml"
    path.write_bytes(content)
    with pytest.raises(CaseError, match=f"^{re.escape(str(path))}: no catalogue of graphs: ") as caught:
        read_catalogue(str(path), ["mvc"])
    assert "\n" not in str(caught.value)


def test_planetoid_features_that_do_not_fit_32_bits_are_refused(tmp_path):
    """They became infinite, with a warning of NumPy's."""
    for name, content in TARGETS["planetoid"].samples()[0].files.items():
        (tmp_path / name).write_bytes(content)
    values = csr_matrix(np.full((4, 5), 1e300))
    (tmp_path / "ind.x.tx").write_bytes(pickle.dumps(values, protocol=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GraphError, match=r"ind\.x\.tx: holds no sound CSR matrix"):
            TARGETS["planetoid"].read(str(tmp_path), random.Random(4))
