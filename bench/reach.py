"""Training that leaves out what the loss does not depend on (app/gnn/reach.py), against whole products.

Both sides are one model, with what its products leave out and without: the same losses, bit for bit. An epoch
is a gradient step; the second record of a case adds the evaluation that follows it, which makes all rows.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy

from app.gnn.reach import Narrow
from bench.gnn_lockstep import Model, forms
from bench.gnn_subjects import cases, products_shape
from bench.harness import Effort, Record, compare


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Two ratios for each case."""
    for make in [*cases(quick).values(), partial(products_shape, 8 if quick else 1)]:
        case = make()
        if case is None:
            continue
        form = forms(case)[0]
        model = Model(case, form, 0.0)
        narrow = model.classifier.engine.narrow
        shares = ", ".join(f"{100 * each:.0f}" for each in model.classifier.shares())
        for evaluated in (False, True):
            ours, theirs = (partial(_epoch, model, found, evaluated) for found in (narrow, {}))
            case_name = f"{case.name}, A X {form}: {'epoch and evaluation' if evaluated else 'epoch'}"
            note = f"entries read by layer: {shares} %"
            yield compare(case_name, "whole products", ours, theirs, effort, note=note)


def _epoch(model: Model, narrow: dict[int, Narrow], evaluated: bool, _: int) -> None:
    """An epoch whose products leave out what `narrow` says."""
    model.classifier.engine.narrow = narrow
    model.epoch()
    if evaluated:
        model.classifier.evaluate()
