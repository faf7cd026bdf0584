"""How results are drawn: parts of a page for a notebook, and matplotlib figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import CaseError
from app.page.charts import Line, line_chart
from app.page.markup import Markup, join, tag
from app.page.style import SCOPED


def line_of(records: Sequence[dict[str, float]], x: str, y: str, label: str, colour: int) -> list[Line]:
    """A column of records as a line; nothing where it has no finite number."""
    points = [(row[x], row[y]) for row in records if np.isfinite(row.get(y, np.nan))]
    return (
        [Line(label, [float(a) for a, _ in points], [float(b) for _, b in points], colour)] if points else []
    )


def framed(*parts: str) -> str:
    """Parts of a page with their style, for a notebook."""
    return tag("div", tag("style", Markup(f"@scope{{{SCOPED}}}")), join(parts), class_="lockstep")


def figure_of(panels: int) -> tuple[Any, Any]:
    """A matplotlib figure that no window shows, with panels side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CaseError("plot: matplotlib is not installed (pip install matplotlib)") from None
    figure = Figure(figsize=(5.5 * panels, 3.8), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def draw(axes: Any, lines: Sequence[Line]) -> None:
    for line in lines:
        axes.plot(line.x, line.y, label=line.label, color=f"C{line.colour}", marker="o", ms=2.5, lw=1.3)


def finish(figure: Any, axes: Any, x: str, y: str) -> Any:
    """Names of the axes, and a legend where there is more than one thing."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False, fontsize=8)
    return figure


def loss_chart(records: Sequence[dict[str, float]]) -> str:
    """The training loss over epochs, for a notebook."""
    return line_chart("Loss", line_of(records, "epoch", "loss", "training loss", 0), "epoch", "loss")


def draw_losses(figure: Any, axes: Any, records: Sequence[dict[str, float]]) -> None:
    """The same on a panel of a matplotlib figure."""
    draw(axes, line_of(records, "epoch", "loss", "training loss", 0))
    finish(figure, axes, "epoch", "loss")
