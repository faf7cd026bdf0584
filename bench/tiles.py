"""Sparse products of a matrix that is laid out by tiles too (app/native/tiled.py), against the matrix alone.

Both sides are one matrix, or one model, with its tiled copy and without: the same bits. A bare product has
the width of hidden layers or of the classes; an epoch is a gradient step.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy

from bench import subjects
from bench.gnn_case import GcnCase
from bench.gnn_lockstep import Model, forms
from bench.gnn_subjects import cases, products_shape
from bench.harness import Effort, Record, compare

WIDTHS = (16, 41, 64, 128)


def about() -> dict[str, str]:
    """Versions that matter, and whose kernels ours are."""
    device = subjects.open_group().device
    return {"numpy": np.__version__, "scipy": scipy.__version__, "device": device.describe()}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Bare products and epochs of the cases whose matrix is laid out by tiles."""
    for make in [*cases(quick).values(), partial(products_shape, 8 if quick else 1)]:
        case = make()
        if case is not None:
            yield from _products(case, effort)
            yield from _epochs(case, effort)


def _products(case: GcnCase, effort: Effort) -> Iterator[Record]:
    """A record for each width."""
    device = subjects.open_group().device
    A = device.csr(case.indptr.astype(np.int32), case.indices, None, (case.n, case.n))
    device.tile(A, max(WIDTHS))
    tiled = A.tiled
    for width in WIDTHS if tiled else ():
        X, Y = device.zeros((case.n, width)), device.zeros((case.n, width))
        X[...] = np.random.default_rng(0).standard_normal(X.shape, dtype=np.float32)
        ours, theirs = (partial(_product, device, A, X, Y, form) for form in (tiled, None))
        note = f"{tiled.nbytes / 1e6:.1f} MB beside {(A.indices.nbytes + A.indptr.nbytes) / 1e6:.1f}"
        yield compare(f"{case.name}: product, {width} columns", "without", ours, theirs, effort, note=note)


def _product(device: Any, A: Any, X: np.ndarray, Y: np.ndarray, tiled: Any, _: int) -> None:
    """Y += A X by one form of A."""
    A.tiled = tiled
    device.spmm_add(A, X, Y)


def _epochs(case: GcnCase, effort: Effort) -> Iterator[Record]:
    """A record for each form of the model, where it has tiles."""
    for form in forms(case):
        model = Model(case, form, 0.0)
        engine = model.classifier.engine
        matrices = [model.classifier.block.A, *(each.matrix for each in engine.narrow.values())]
        tiled = [(A, A.tiled) for A in matrices if A is not None and A.tiled]
        if tiled:
            ours, theirs = (partial(_epoch, model, tiled, used) for used in (True, False))
            yield compare(f"{case.name}, A X {form}: epoch", "without", ours, theirs, effort)


def _epoch(model: Model, tiled: list[tuple[Any, Any]], used: bool, _: int) -> None:
    """An epoch with the tiled copies or without."""
    for A, form in tiled:
        A.tiled = form if used else None
    model.epoch()
