"""A full-batch epoch of graph convolutional networks beside plain PyTorch, PyTorch Geometric and DGL.

An epoch is the forward pass, the cross-entropy of the training nodes, the backward pass and a step of Adam,
from equal first weights; nothing is evaluated. Every program runs on one thread of a process of its own and
says what processor time its epochs took; pairs of epochs alternate. Of the forms that PyTorch Geometric and
DGL have (how the adjacency is kept, dense or sparse features) the fastest on the case is taken, from a trial
before. Dropout, where there is any, is of what a layer gives to the next, not of the features.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import scipy

from bench import gnn_lockstep, gnn_subjects
from bench.gnn_case import GcnCase
from bench.gnn_exact import loss_and_gradients, relative_errors
from bench.harness import INTERPRETERS, ROOT, Effort, Record, Table, asked_for, record, repeats_for

OURS = "lockstep"
PEERS = {"torch": "PyTorch CSR, hand-written", "pyg": "PyTorch Geometric", "dgl": "DGL"}
DROPOUT = 0.5
TRIAL_EPOCHS = 2
SAME_LOSS = 1e-4  # relative: more between two programs' first losses is said


def about() -> dict[str, str]:
    """Versions that matter; those of the other programs stand with what they measured."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


class Missing(Exception):
    """A program that cannot be run here; the message says why."""


class Program:
    """One program with one case, in a process of its own (bench/gnn_worker.py)."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.form, self.grown, self.loss, self.first_loss = name, "", 0, 0.0, 0.0
        interpreter = INTERPRETERS.get(name.rpartition(":")[2], sys.executable)
        command = [interpreter, str(ROOT / "bench/gnn_worker.py"), name, str(path)]
        # A process that a launcher's variables reach takes itself for one of its ranks.
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "HYDRA"))}
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        try:
            self.process = subprocess.Popen(command, text=True, env=env, **pipes)
        except OSError as error:
            raise Missing(str(error)) from error
        hello = self._answer()
        self.version, self.forms = hello["version"], hello["forms"]

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()

    def build(self, form: str, dropout: float) -> None:
        """A new model, and its first epoch, which warms up."""
        self.form = form
        self._ask(do="build", form=form, dropout=dropout)
        self._ask(do="epochs", count=1)
        self.first_loss = self.loss

    def epoch_s(self, count: int = 1) -> float:
        """Processor seconds of an epoch, the mean of `count`."""
        return self._ask(do="epochs", count=count)["cpu_s"] / count

    def gradients(self) -> dict[str, np.ndarray]:
        """At the first weights, by a new model."""
        self._ask(do="build", form=self.form, dropout=0.0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "gradients.npz")
            self._ask(do="gradients", path=str(path))
            with np.load(path) as f:
                return dict(f)

    def _ask(self, **request: Any) -> dict[str, Any]:
        with suppress(OSError):  # it has ended: the answer, which does not come, says why
            print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self._answer()
        self.loss, self.grown = answer.get("loss", self.loss), answer["grown"]
        return answer

    def _answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines()
        raise Missing(said[-1] if said else f"ended with code {self.process.returncode}")


@dataclass
class Study:
    """One case while it is measured, and the rows of its tables."""

    name: str
    case: GcnCase
    path: Path
    effort: Effort
    exact: dict[str, np.ndarray]
    findings: list[list[str]] = field(default_factory=list)
    missing: list[list[str]] = field(default_factory=list)

    def records(self) -> Iterator[Record]:
        """Every form of ours against every other program, the last one with dropout too."""
        sides = [self._ours(form) for form in gnn_lockstep.forms(self.case)]
        try:
            for peer in PEERS:
                try:
                    yield from self._against(peer, sides)
                except Missing as why:
                    self.missing.append([self.name, PEERS[peer], str(why)])
        finally:
            for side in sides:
                side.close()

    def _ours(self, form: str) -> Program:
        """One form of this program, its memory and gradients found."""
        program = Program(OURS, self.path)
        program.build(form, 0.0)
        program.epoch_s()
        self._find(program, "Lockstep")
        return program

    def _against(self, peer: str, sides: list[Program]) -> Iterator[Record]:
        """The records against one other program."""
        # Our hand-written opponent does what we do, form by form; the others are taken as they are.
        groups = [[ours] for ours in sides] if peer == "torch" else [sides]
        for group in groups:
            with self.fastest(peer, [group[0].form] if peer == "torch" else None) as theirs:
                self._find(theirs, PEERS[peer])
                for ours in group:
                    yield self._pairs(ours, theirs, 0.0)
                if group[0] is sides[0]:
                    yield self._pairs(sides[0], theirs, DROPOUT)

    def fastest(self, peer: str, forms: list[str] | None = None) -> Program:
        """The program in the form that takes the least time; each is tried in a fresh process."""
        best, best_s, tried = None, 0.0, 0
        while forms is None or tried < len(forms):
            program = Program(peer, self.path)
            forms = forms or program.forms
            program.build(forms[tried], 0.0)
            seconds, tried = program.epoch_s(TRIAL_EPOCHS), tried + 1
            if best is None or seconds < best_s:
                best, program, best_s = program, best, seconds
            if program is not None:
                program.close()
        return best

    def _pairs(self, ours: Program, theirs: Program, dropout: float) -> Record:
        """Epochs of both by turns from the first weights on; who begins changes each time."""
        for side in (ours, theirs):
            side.build(side.form, dropout)
        note, what = theirs.form, f", dropout {dropout}" if dropout else ""
        if not dropout and abs(ours.first_loss - theirs.first_loss) > SAME_LOSS * abs(ours.first_loss):
            note += f"; OTHER LOSS: {ours.first_loss:.6f} and {theirs.first_loss:.6f}"
        case = f"{self.name}, A X {ours.form}{what}"
        return record(case, PEERS[theirs.name], *by_turns(ours, theirs, self.effort), note=note)

    def _find(self, program: Program, title: str) -> None:
        """One row of the table: memory so far, then the gradients' errors by another model."""
        grown = f"{program.grown / 1e6:,.0f}"
        errors = relative_errors(program.gradients(), self.exact)
        layers = range(1, self.case.layers + 1)
        shown = [", ".join(f"{errors[f'{kind}{i}']:.1e}" for i in layers) for kind in "Wb"]
        self.findings.append([self.name, title, program.form, grown, *shown, program.version])


def by_turns(ours: Program, theirs: Program, effort: Effort) -> tuple[list[float], list[float]]:
    """Processor seconds of an epoch of both sides, pair by pair."""
    sides = (ours, theirs)
    repeats = [repeats_for(side.epoch_s()) for side in sides]
    taken: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while not effort.enough(len(taken[0]), time.perf_counter() - start):
        for i in (0, 1) if len(taken[0]) % 2 == 0 else (1, 0):
            taken[i].append(sides[i].epoch_s(repeats[i]))
    return taken


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """Every case, then memory and gradient errors, then what could not be measured."""
    findings: list[list[str]] = []
    missing: list[list[str]] = []
    shapes: list[list[str]] = []
    for name, make in gnn_subjects.cases(quick).items():
        if not asked_for(name):
            continue
        case = make()
        if case is None:
            missing.append([name, "every program", "the graph is not there: set LOCKSTEP_DATA"])
            continue
        shapes.append(shape_of(case))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "case.npz")
            case.save(path)
            study = Study(name, case, path, effort, loss_and_gradients(case)[1])
            yield from study.records()
        findings += study.findings
        missing += study.missing
    columns = ["case", "nodes", "stored entries", "layers", "training nodes", "features"]
    yield Table("Cases", columns, shapes)
    columns = ["case", "program", "form", "MB", "error of dW, layer by layer", "error of db", "version"]
    title = (
        "Most memory above that of the libraries and the case's arrays, over set-up and two epochs or more; "
        "error of float32 gradients at the first weights, relative to float64, in Frobenius norms"
    )
    yield Table(title, columns, findings)
    if missing:
        yield Table("Not measured", ["case", "program", "why"], missing)


def shape_of(case: GcnCase) -> list[str]:
    """Its row in the table of cases."""
    kind = f"sparse, {case.X.nnz:,} entries" if case.sparse else "dense"
    widths = "-".join(map(str, case.widths))
    return [case.name, f"{case.n:,}", f"{len(case.indices):,}", widths, f"{len(case.train):,}", kind]
