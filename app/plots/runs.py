"""Plots of a run, drawn by rank 0 where matplotlib is installed (extra `report`)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from app.graphs.routes import depot_of, routes_of
from app.log import Log
from app.output import RunFolder


def drawn(plot: Callable[..., None]) -> Callable[..., None]:
    """A function of (folder, log, ...) whose time counts as the phase `plots`."""

    @wraps(plot)
    def timed(folder: RunFolder, log: Log, *values: Any, **named: Any) -> None:
        with log.phase("plots"):
            plot(folder, log, *values, **named)

    return timed


def open_pyplot(folder: RunFolder, log: Log) -> Any:
    """pyplot without a display on rank 0, None elsewhere or where matplotlib is missing."""
    if folder.group.rank != 0:
        return None
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        log.info("no plots: matplotlib is not installed (pip install matplotlib)")
        return None
    return plt


@drawn
def plot_learning(
    folder: RunFolder,
    log: Log,
    records: list[dict[str, Any]],
    totals: dict[str, float],
    sense: str,
) -> None:
    """Totals of the held-back graphs over environment steps, with the baselines as lines.

    sense   "minimise" or "maximise": where an untrained policy is far from all else, it is left out
    """
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    figure, axes = plt.subplots(figsize=(7, 4.2))
    steps = [r["step"] for r in records]
    axes.plot(steps, [r["held_back_nodes"] for r in records], marker="o", ms=3, label="learned policy")
    for i, (label, value) in enumerate(totals.items()):
        axes.axhline(value, ls="--", lw=1, color=f"C{i + 1}", label=label)
    sign = -1 if sense == "maximise" else 1
    learned, rules = sorted(sign * r["held_back_nodes"] for r in records), [sign * v for v in totals.values()]
    best, worst = min([learned[0], *rules]), max([*rules, learned[len(learned) // 2]])
    room = (worst - best) or 1
    axes.set_ylim(sorted((sign * (best - 0.1 * room), sign * (worst + 0.4 * room))))
    axes.set_xlabel("environment steps")
    axes.set_ylabel("total objective of the held-back graphs")
    axes.legend(frameon=False)
    save_figure(figure, plt, folder, "learning.png")


ORDER = "elimination order"  # what a solution of treewidth is called
ARRANGED = "arrangement"
MEASURES = {
    "cut": "weight",
    "order": "weight",
    "tour": "length",
    "coloring": "colors",
    "partition": "quality",
    "tree": "length",
    "routes": "length",
    ORDER: "width or fill-in",
    ARRANGED: "value",
    "mapping": "value",
}  # of solutions; of others the size


@drawn
def plot_solutions(folder: RunFolder, log: Log, instances: list[dict[str, Any]], words: str) -> None:
    """Answers, learned starts and baselines relative to the bound, instance by instance.

    words   what a solution is called
    """
    plt = open_pyplot(folder, log)
    shown = [i for i in instances if i["bound"]]
    if plt is None or not shown:
        return
    figure, axes = plt.subplots(figsize=(max(6, 0.5 * len(shown) + 3), 4.2))
    _draw_ratios(axes, shown)
    side = "lower bound" if shown[0]["sense"] == "minimise" else "upper bound"
    axes.axhline(1, color="black", lw=1, label=side)
    axes.set_xticks(range(len(shown)), [i["name"] for i in shown], rotation=60, ha="right", fontsize=7)
    axes.set_ylabel(f"{MEASURES.get(words, 'size')} of the {words} / {side}")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, plt, folder, "solutions.png")


def _draw_ratios(axes: Any, instances: list[dict[str, Any]]) -> None:
    """A mark for each value that an instance has, over its bound; instances side by side."""
    values = [{"answer": i["objective"], "learned": i["learned"], **i["baselines"]} for i in instances]
    for k, label in enumerate(dict.fromkeys(label for each in values for label in each)):
        at = [n for n, each in enumerate(values) if each.get(label) is not None]
        ratios = [values[n][label] / instances[n]["bound"] for n in at]
        if at:
            style = {"answer": "o", "learned": "+"}.get(label, "x")
            axes.plot(at, ratios, style, label=label, color=f"C{k % 10}", ms=8 if label == "learned" else 6)


DRAWN_NODES = 200  # of a graph that is drawn as one
MOST_POINTS = 5000  # of a tour, or of customers of facilities, that are drawn
FACILITIES = "choice of facilities"  # what a solution of these is called


@drawn
def plot_solves(folder: RunFolder, log: Log, solved: list[Any], words: str = "") -> None:
    """Objective and bound over time, instance by instance; beside them the tour, the routes, or a small
    graph's solution.

    solved   with entry, trace (events of seconds, best, bound), solution, metric, and graph: None where it is
             too large for one rank
    words    what a solution is called
    """
    solved = [each for each in solved if each.trace]
    plt = open_pyplot(folder, log)
    if plt is None or not solved:
        return
    figure, panels = plt.subplots(len(solved), 2, figsize=(11, 3.6 * len(solved)), squeeze=False)
    for (left, right), each in zip(panels, solved):
        _draw_course(left, each)
        right.set_axis_off()
        if words == FACILITIES and each.metric is not None:
            _draw_facilities(right, each)
        elif each.metric is not None and each.metric.plane is not None and len(each.solution) <= MOST_POINTS:
            _draw_tour(right, each, words == "routes")
        elif each.metric is None and each.graph is not None and each.graph.n <= DRAWN_NODES:
            _draw_graph(right, each, words)
    save_figure(figure, plt, folder, "solution.png")


@drawn
def plot_curves(
    folder: RunFolder, log: Log, drawn: list[tuple[dict[str, Any], dict[str, list[int]]]],
) -> None:  # fmt: skip
    """How the largest component falls as nodes are taken out, instance by instance: of the answer and of
    plain heuristics.

    drawn   entries of result.json with their curves by label; those without curves are left out
    """
    drawn = [each for each in drawn if each[1]]
    plt = open_pyplot(folder, log)
    if plt is None or not drawn:
        return
    figure, panels = plt.subplots(1, len(drawn), figsize=(4.8 * len(drawn), 3.6), squeeze=False)
    for axes, (entry, curves) in zip(panels[0], drawn):
        n, areas = max(entry["nodes"], 1), entry["robustness"]
        for k, (label, curve) in enumerate(curves.items()):
            shares = [largest / n for largest in curve]
            width, front = (2.2, 3) if label == "answer" else (1.2, 2)
            named = f"{label}, R {areas[label]:.3f}"
            gone = [i / n for i in range(len(curve))]
            axes.plot(gone, shares, f"C{k % 10}", lw=width, zorder=front, label=named)
        axes.set_xlabel("share of nodes taken out")
        axes.set_ylabel("share in the largest component")
        axes.set_title(entry["name"], fontsize=9)
        axes.legend(frameon=False, fontsize=8)
    save_figure(figure, plt, folder, "dismantling.png")


def _draw_course(axes: Any, solved: Any) -> None:
    """Best and bound as steps over seconds."""
    end = max(solved.entry["seconds"], solved.trace[-1].seconds, 1e-3)
    for label, color in (("best", "C0"), ("bound", "C3")):
        known = [(e.seconds, getattr(e, label)) for e in solved.trace if getattr(e, label) is not None]
        if known:
            seconds, values = zip(*known)
            axes.step([*seconds, end], [*values, values[-1]], where="post", color=color, label=label)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlabel("seconds")
    axes.set_title(f"{solved.entry['name']}: {solved.entry['objective']}", fontsize=9)
    axes.legend(frameon=False, fontsize=8)


def _draw_facilities(axes: Any, solved: Any) -> None:
    """Points, those that are facilities as squares; nothing where there are none in the plane."""
    points = solved.metric.plane
    if points is None or len(points) > MOST_POINTS:
        return
    axes.plot(points[:, 0], points[:, 1], ".", color="C7", ms=3)
    chosen = points[solved.solution.astype(bool)]
    axes.plot(chosen[:, 0], chosen[:, 1], "s", color="C3", ms=5)
    axes.set_aspect("equal")


def _draw_tour(axes: Any, solved: Any, routes: bool) -> None:
    """The closed tour, or the routes, each in its colour, with the depot."""
    tours, depot = [solved.solution.tolist()], None
    if routes:
        depot = depot_of(solved.solution)
        tours = [[depot, *each] for each in routes_of(solved.solution, depot)]
    for tour in tours:
        points = solved.metric.plane[[*tour, tour[0]]]
        axes.plot(points[:, 0], points[:, 1], lw=0.8, marker=".", ms=3)
    if depot is not None:
        axes.plot(*solved.metric.plane[depot], "ks", ms=5)
    axes.set_aspect("equal")


def _draw_graph(axes: Any, solved: Any, words: str) -> None:
    """The graph with the chosen nodes, the two sides, or the classes of a colouring, in their colours; a
    tree with its edges; nodes late in an order of elimination, or an arrangement, in lighter colours.
    """
    import networkx
    import numpy as np

    tree, ordered = words == "tree", words in (ORDER, ARRANGED)

    drawn = networkx.Graph()
    drawn.add_nodes_from(range(solved.graph.n))
    rows = solved.graph.row_of()
    drawn.add_edges_from(zip(rows.tolist(), solved.graph.indices.tolist()))
    places, solution = networkx.spring_layout(drawn, seed=1), solved.solution
    colors = np.argsort(solution) if ordered else _colors_drawn(solution >= 0 if tree else solution)
    networkx.draw_networkx(
        drawn, places, ax=axes, node_color=colors, node_size=30, width=0.4, with_labels=False
    )
    if tree:
        edges = [(node, above) for node, above in enumerate(solution.tolist()) if above not in (-1, node)]
        networkx.draw_networkx_edges(drawn, places, edges, ax=axes, edge_color="C1", width=2)


def _colors_drawn(solution: Any) -> list[Any]:
    """A colour for each node: one of two, or of a wheel of as many as a colouring has."""
    if solution.dtype == bool:
        return ["C1" if chosen else "C0" for chosen in solution.tolist()]
    from matplotlib.colors import hsv_to_rgb

    count = max(int(solution.max(initial=0)) + 1, 1)
    return [hsv_to_rgb((color / count, 0.8, 0.9)) for color in solution.tolist()]


@drawn
def plot_quality(
    folder: RunFolder, log: Log, curves: dict[str, dict[str, Any]], lines: dict[str, dict[str, float]]
) -> None:
    """Approximation ratio over training steps, one panel per graph family (RL4GO Fig. 3).

    curves   family -> recipe -> list of (steps [k], ratios [k]), one per seed
    lines    family -> baseline label -> ratio
    """
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    figure, panels = plt.subplots(1, len(curves), figsize=(6 * len(curves), 4.4), squeeze=False)
    for axes, (family, recipes) in zip(panels[0], curves.items()):
        for k, (recipe, runs) in enumerate(recipes.items()):
            for seed, (steps, ratios) in enumerate(runs):
                axes.plot(steps, ratios, color=f"C{k}", lw=1.2, label=recipe if seed == 0 else None)
        for k, (label, ratio) in enumerate(lines[family].items()):
            axes.axhline(ratio, ls="--", lw=1, color=f"C{k + len(recipes)}", label=f"{label} {ratio:.4f}")
        axes.set_yscale("log")
        axes.set_title(family.upper())
        axes.set_xlabel("training steps")
        axes.set_ylabel("mean approximation ratio")
        axes.legend(frameon=False, fontsize=8)
    save_figure(figure, plt, folder, "quality.png")


@drawn
def plot_scaling(folder: RunFolder, log: Log, curves: list[dict[str, Any]], title: str) -> None:
    """Seconds of a step over the number of ranks (RL4GO Fig. 7): lines are extrapolated, dots measured.

    curves   lines with graph, step, ranks, seconds, measured_s ("": not measured)
    """
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    steps = list(dict.fromkeys(row["step"] for row in curves))
    figure, panels = plt.subplots(1, len(steps), figsize=(6 * len(steps), 4.8), squeeze=False)
    for axes, step in zip(panels[0], steps):
        for k, graph in enumerate(dict.fromkeys(row["graph"] for row in curves)):
            rows = [row for row in curves if (row["graph"], row["step"]) == (graph, step)]
            style = {"color": f"C{k % 10}", "marker": ".+x"[k // 10 % 3]}
            axes.plot(*_pairs(rows, "seconds"), ls="--", lw=1.2, ms=4, label=graph, **style)
            seen = [row for row in rows if row["measured_s"] != ""]
            axes.plot(*_pairs(seen, "measured_s"), "o", color=style["color"], ms=6)
        axes.plot([], [], "o", color="black", label="measured")
        axes.plot([], [], "--", color="black", label="extrapolated by the model")
        ranks = sorted({row["ranks"] for row in curves})
        axes.set_xscale("log")
        axes.set_xticks(ranks, [str(each) for each in ranks], fontsize=8)
        axes.minorticks_off()
        axes.set_yscale("log")
        axes.set_title(step)
        axes.set_xlabel("ranks")
        axes.set_ylabel("seconds a step")
    panels[0][-1].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(title, fontsize=9)
    save_figure(figure, plt, folder, "scaling.png")


@drawn
def plot_partition(
    folder: RunFolder, log: Log, rows: list[dict[str, Any]], fresh: list[dict[str, Any]], title: str
) -> None:
    """Imbalance by epoch of each partitioner, and at the first pass over a new graph (ROC Figs. 8 and 9)."""
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=[2, 1], sharey=True)
    fresh = [row for row in fresh if not row["note"]]
    names = [row["partition"] for row in fresh]
    for k, name in enumerate(names):
        mine = [row for row in rows if row["partition"] == name]
        label = f"equal {name}" if name in ("rows", "edges") else name
        course = [row["epoch"] for row in mine], [row["imbalance"] for row in mine]
        left.plot(*course, "o-", ms=3, color=f"C{k}", label=label)
    left.set_xlabel("epoch")
    left.set_ylabel("slowest rank / mean")
    left.set_title(title, fontsize=9)
    left.legend(frameon=False)
    heights, colors = [row["imbalance"] - 1 for row in fresh], [f"C{k}" for k in range(len(names))]
    right.bar(names, heights, bottom=1, color=colors)
    right.set_title("first pass over a new graph", fontsize=9)
    for axes in (left, right):
        axes.axhline(1, color="black", lw=1)
    save_figure(figure, plt, folder, "partition.png")


@drawn
def plot_relations(folder: RunFolder, log: Log, rows: list[dict[str, Any]], title: str) -> None:
    """Time of an epoch over the number of parts, in parallel and multiplexed (Kibata et al. 2020, Fig. 5)."""
    plt = open_pyplot(folder, log)
    if plt is None:
        return
    figure, axes = plt.subplots(figsize=(6, 4.2))
    for k, grouping in enumerate(dict.fromkeys(row["grouping"] for row in rows)):
        for mode, style in (("multiplexed", "o-"), ("parallel", "s--")):
            # One part is the start of both.
            mine = [
                row
                for row in rows
                if row["grouping"] == grouping and (row["mode"] == mode or row["parts"] == 1)
            ]
            parts, milliseconds = [row["parts"] for row in mine], [1e3 * row["work_s"] for row in mine]
            axes.plot(parts, milliseconds, style, color=f"C{k}", label=f"{mode}, equal {grouping}")
    axes.set_xticks(sorted({row["parts"] for row in rows}))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("parts")
    axes.set_ylabel("work of the slowest rank in an epoch, ms")
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False)
    save_figure(figure, plt, folder, "relations.png")


def _pairs(rows: list[dict[str, Any]], key: str) -> tuple[list[int], list[float]]:
    return [row["ranks"] for row in rows], [row[key] for row in rows]


def save_figure(figure: Any, plt: Any, folder: RunFolder, name: str) -> None:
    figure.tight_layout()
    with folder.placed(name) as file:
        figure.savefig(file, dpi=120, format="png")
    plt.close(figure)


@drawn
def plot_training(
    folder: RunFolder,
    log: Log,
    records: list[dict[str, float]],
    score: str = "accuracy or micro F1",
) -> None:
    """Loss and scores of learning about nodes over epochs."""
    plt = open_pyplot(folder, log)
    if plt is None or not records:
        return
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
    epochs = [row["epoch"] for row in records]
    left.plot(epochs, [row["loss"] for row in records])
    left.set_ylabel("loss of the training nodes")
    for split in ("train", "val", "test"):
        if f"{split}_score" in records[0]:
            right.plot(epochs, [row[f"{split}_score"] for row in records], label=split, lw=1)
    right.set_ylabel(score)
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_xlabel("epoch")
    save_figure(figure, plt, folder, "training.png")


@drawn
def plot_breakdown(folder: RunFolder, log: Log, seconds: dict[str, dict[str, float]]) -> None:
    """Shares of the time by kind of operation, one bar for each run (MG-GCN, Fig. 5).

    seconds   for each run the time of each kind of operation
    """
    plt = open_pyplot(folder, log)
    if plt is None or not any(seconds.values()):
        return
    figure, axes = plt.subplots(figsize=(max(4.5, 1.1 * len(seconds) + 3), 4))
    kinds = sorted({kind for each in seconds.values() for kind in each})
    below = [0.0] * len(seconds)
    totals = [sum(each.values()) or 1.0 for each in seconds.values()]
    for kind in kinds:
        shares = [100 * each.get(kind, 0.0) / total for each, total in zip(seconds.values(), totals)]
        axes.bar(list(seconds), shares, bottom=below, label=kind, width=0.6)
        below = [a + b for a, b in zip(below, shares)]
    axes.set_ylabel("share of the time, %")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, plt, folder, "breakdown.png")
