"""Charts that several studies share: groups of bars, and panels of lines."""

from collections.abc import Mapping, Sequence

from app.log import Log
from app.output import RunFolder
from app.plots.runs import drawn, open_pyplot, save_figure

WIDEST = 14.0  # inches of a chart
MANY = 6  # lines beyond which the legend stands beside the chart
STYLES = ("-", "--", ":")  # of the first ten lines, the next ten, ...
Bars = Mapping[str, Mapping[str, tuple[float, float]]]
Panels = Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]


@drawn
def plot_bars(folder: RunFolder, log: Log, bars: Bars, name: str, y: str, lowest: float = 0.0) -> None:
    """Groups of bars side by side.

    bars     group -> label -> (height, half the length of the error bar, 0: none)
    lowest   where the axis begins
    """
    plt = open_pyplot(folder, log)
    if plt is None or not bars:
        return
    labels = list(dict.fromkeys(label for group in bars.values() for label in group))
    inches = 0.35 * len(bars) * (len(labels) + 1) + 2.5
    figure, axes = plt.subplots(figsize=(min(max(5.0, inches), WIDEST), 4.2))
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        at = [i for i, group in enumerate(bars.values()) if label in group]
        shown = [group[label] for group in bars.values() if label in group]
        places = [i + (k + 0.5) * width - 0.4 for i in at]
        spread = [each[1] for each in shown]
        heights = [each[0] for each in shown]
        axes.bar(places, heights, width, yerr=spread if any(spread) else None, capsize=2, label=label)
    axes.set_xticks(range(len(bars)), list(bars), rotation=20, ha="right", fontsize=8)
    axes.set_ylim(bottom=lowest)
    axes.margins(x=0.01)
    axes.set_ylabel(y)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, plt, folder, name)


@drawn
def plot_lines(
    folder: RunFolder, log: Log, panels: Panels, name: str, x: str, y: Sequence[str], scale: str = "linear"
) -> None:
    """Lines with dots, one panel for each title; y is the axis of each panel, or the one of all.

    panels   title -> label -> (values of x, values of y)
    scale    of the x axis: linear or log
    """
    plt = open_pyplot(folder, log)
    if plt is None or not panels:
        return
    figure, found = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4), squeeze=False)
    for k, (axes, (title, lines)) in enumerate(zip(found[0], panels.items())):
        for i, (label, (at, values)) in enumerate(lines.items()):
            style = STYLES[i // 10 % len(STYLES)]
            axes.plot(at, values, "o", ls=style, ms=3, lw=1.2, label=label)
        if scale == "log":
            axes.set_xscale("log", base=2)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(x)
        axes.set_ylabel(y[min(k, len(y) - 1)])
        beside = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(lines) > MANY else {}
        axes.legend(frameon=False, fontsize=8, **beside)
    save_figure(figure, plt, folder, name)
