"""Errors of float32 gradients against float64, over several first weights, of the programs of bench/gnn.py.

A relu whose input lies within rounding of zero lets through in one program what it stops in another. The
rows of one node then differ altogether, by chance, and one reading says little; so each program's error of a
parameter is the median over first weights of several seeds, and ours is divided by that of each other one,
which is taken in the form that part gnn times: the fastest of its forms.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench import gnn_lockstep, gnn_subjects
from bench.gnn import OURS, PEERS, Missing, Program, Study, about
from bench.gnn_case import GcnCase
from bench.gnn_exact import loss_and_gradients, relative_errors
from bench.harness import Effort, Record, Table

__all__ = ["about", "measure"]
SEEDS, FEW = 15, 2
KINDS = "aWb"  # first letters of "all" and of parameters
Errors = dict[str, list[float]]  # of a parameter, one for each seed


def measure(effort: Effort, quick: bool) -> Iterator[Record | Table]:
    """A table for each case: the errors of every program, and ours over them."""
    for name, make in gnn_subjects.cases(quick).items():
        case = make()
        if case is None:
            continue
        seeds = FEW if quick else SEEDS
        yield Table(
            f"{name}: error of float32 gradients relative to float64, median of {seeds} seeds [smallest, "
            "largest]; last, ours over it, of our forms the one that errs most",
            [
                "program",
                "form",
                "all",
                "dW, layer by layer",
                "db, layer by layer",
                "ours over it: all; dW; db",
            ],
            table_rows(case, seeds, effort),
        )


def table_rows(case: GcnCase, seeds: int, effort: Effort) -> list[list[str]]:
    """One row for each form of ours and for each other program that is there."""
    exact = [loss_and_gradients(replace(case, seed=seed))[1] for seed in range(1, seeds + 1)]
    ours = {form: errors_of(OURS, form, case, exact) for form in gnn_lockstep.forms(case)}
    rows = [["Lockstep", f"A X {form}", *shown(found), ""] for form, found in ours.items()]
    for peer, title in PEERS.items():
        try:
            form = fastest_form(peer, case, effort)
            found = errors_of(peer, form, case, exact)
        except Missing as why:
            rows.append([title, str(why), "", "", "", ""])
            continue
        rows.append([title, form, *shown(found), over(list(ours.values()), found)])
    return rows


def fastest_form(name: str, case: GcnCase, effort: Effort) -> str:
    """The form in which a program's epochs take the least time. Raises Missing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.npz")
        case.save(path)
        with Study(case.name, case, path, effort, {}).fastest(name) as program:
            return program.form


def errors_of(name: str, form: str, case: GcnCase, exact: list[dict[str, np.ndarray]]) -> Errors:
    """A program's errors, those of a parameter seed by seed. Raises Missing."""
    errors: Errors = {}
    for seed, wanted in enumerate(exact, 1):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "case.npz")
            replace(case, seed=seed).save(path)
            with Program(name, path) as program:
                program.form = form
                found = program.gradients()
            together = {"all": stacked(found)}, {"all": stacked(wanted)}
            both = relative_errors(*together) | relative_errors(found, wanted)
            for parameter, error in sorted(both.items()):
                errors.setdefault(parameter, []).append(error)
    return errors


def stacked(gradients: dict[str, np.ndarray]) -> np.ndarray:
    """All parameters' gradients as one vector."""
    return np.concatenate([gradients[name].reshape(-1) for name in sorted(gradients)])


def shown(errors: Errors) -> list[str]:
    """The errors of the whole gradient, of all weights, and of all biases, layer by layer."""
    cells = {p: f"{np.median(e):.1e} [{min(e):.0e}, {max(e):.0e}]" for p, e in errors.items()}
    return [", ".join(cell for p, cell in cells.items() if p[0] == kind) for kind in KINDS]


def over(ours: list[Errors], theirs: Errors) -> str:
    """The medians of ours, of the form that errs most, divided by theirs."""
    ratio = {p: max(np.median(each[p]) for each in ours) / np.median(e) for p, e in theirs.items()}
    return "; ".join(", ".join(f"{r:.2f}" for p, r in ratio.items() if p[0] == kind) for kind in KINDS)
