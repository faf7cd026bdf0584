"""The plot of forecasts: how training went, errors by step of the horizon, some nodes with what comes
next."""

from typing import Any

import numpy as np

from app.log import Log
from app.output import RunFolder
from app.plots.runs import drawn, open_pyplot, save_figure

DRAWN_NODES = 4


@drawn
def plot_forecasts(
    folder: RunFolder, log: Log, records: list[dict[str, float]], steps: dict[str, list[float]],
    names: list[str], tail: np.ndarray, ahead: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray] | None,
) -> None:  # fmt: skip
    """Panels side by side.

    records   of the training     steps   mean absolute error by step of the horizon, by rule
    names     of the first nodes, of which tail [k, t, C] are the last known values, ahead [n, H, C] the next
              ones and `ends` the least and largest values of intervals around them, or None
    """
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    names = names[:DRAWN_NODES]
    panels = bool(records) + bool(steps) + 1
    figure, axes = plt.subplots(1, panels, figsize=(5 * panels, 3.8), squeeze=False)
    row = iter(axes[0])
    if records:
        _draw_training(next(row), records)
    if steps:
        _draw_errors(next(row), steps)
    _draw_nodes(next(row), names, tail, ahead, ends)
    save_figure(figure, plt, folder, "forecasts.png")


def _draw_training(axes: Any, records: list[dict[str, float]]) -> None:
    """Loss of the training windows, and of those of validation, over epochs."""
    epochs = [row["epoch"] for row in records]
    axes.plot(epochs, [row["loss"] for row in records], label="training windows")
    axes.plot(epochs, [row["watched"] for row in records], label="watched")
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    axes.legend(frameon=False, fontsize=8)


def _draw_errors(axes: Any, steps: dict[str, list[float]]) -> None:
    """Mean absolute errors by step of the horizon."""
    for rule, errors in steps.items():
        width = 2.2 if rule == "network" else 1.0
        axes.plot(range(1, len(errors) + 1), errors, marker="o", ms=3, lw=width, label=rule)
    axes.set_xlabel("step of the horizon")
    axes.set_ylabel("mean absolute error, test windows")
    axes.legend(frameon=False, fontsize=8)


def _draw_nodes(axes: Any, names: list[str], tail: np.ndarray, ahead: np.ndarray, ends: Any) -> None:
    """The end of the series of some nodes, and what follows it, of the first channel."""
    known = tail.shape[1]
    for k, called in enumerate(names):
        next_steps = np.arange(known, known + ahead.shape[1])
        axes.plot(range(known), tail[k, :, 0], lw=1, color=f"C{k}", label=called)
        axes.plot(next_steps, ahead[k, :, 0], "o--", ms=3, lw=1, color=f"C{k}")
        low, high = (None, None) if ends is None else (each[k, :, 0] for each in ends)
        if ends is not None and np.isfinite(low).all() and np.isfinite(high).all():
            axes.fill_between(next_steps, low, high, color=f"C{k}", alpha=0.15)
    axes.axvline(known - 0.5, color="black", lw=0.8)
    axes.set_xlabel("steps of time")
    axes.legend(frameon=False, fontsize=8, title="node")
