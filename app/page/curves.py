"""Curves of metrics.csv: learning, loss and accuracy, objective and bound over time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from app.page.charts import Line, line_chart
from app.page.markup import Markup, join, tag
from app.page.runs import Run
from app.page.values import mapping, number

MOST_GRAPHS = 12  # whose course is drawn
FAR = 4.0  # times the last distance to the bound: first values beyond are not drawn
LONG = 0.5  # s: a shorter search that found next to nothing new is not drawn
MEASURED = {"link": "pairs of nodes", "embed": "views of the graph"}  # by gnn.level, what scores are of
SCORES = {"train_score": "training", "val_score": "validation", "test_score": "test"}


def show_curves(runs: Sequence[Run]) -> Markup:
    """All curves that the runs have numbers for, the runs together in each chart."""
    charts = [*_learning(runs), *_accuracy(runs), *_courses(runs), *_left(runs)]
    charts = [chart for chart in charts if chart]
    return join([tag("h2", "Over time"), tag("div", *charts, class_="charts")]) if charts else Markup("")


def points(
    rows: Sequence[dict[str, str]], x: str, y: str, wanted: Callable[[dict[str, str]], bool] = bool
) -> tuple[list[float], list[float]]:
    """The numbers of two columns where both are there, x ascending."""
    found = [(number(row.get(x)), number(row.get(y))) for row in rows if wanted(row)]
    kept = sorted((pair for pair in found if None not in pair), key=lambda pair: pair[0])
    return [pair[0] for pair in kept], [pair[1] for pair in kept]


def _line(run: Run, at: int, several: bool, y: str, name: str, x: str = "step") -> Line:
    """A column of the training records of a run."""
    xs, ys = points(run.metrics, x, y, _trained)
    return Line(run.label if several else name, xs, ys, at)


def layered(lines: list[Line]) -> list[Line]:
    """Lines of several runs, the first ones broader: equal lines lie on each other, and all are seen."""
    return [replace(line, under=len(lines) - 1 - i) for i, line in enumerate(lines)]


def _trained(row: dict[str, str]) -> bool:
    return row.get("phase") == "train" and not row.get("name")


def _learning(runs: Sequence[Run]) -> Iterator[Markup]:
    """Held-back totals over steps with the baselines as lines, losses of policies; for each problem."""
    trained = [run for run in runs if any(row.get("held_back_nodes") for row in run.metrics)]
    problems = list(dict.fromkeys(_problem(run) for run in trained))
    for problem in problems:
        of = f" ({problem})" if len(problems) > 1 else ""
        yield from _learning_of([run for run in trained if _problem(run) == problem], of)


def _problem(run: Run) -> str:
    return str(run.result.get("problem") or mapping(run.case.get("problem")).get("name"))


def _learning_of(chosen: Sequence[Run], of: str) -> Iterator[Markup]:
    """The charts of runs of one problem; of: what their titles end with."""
    several = len(chosen) > 1
    lines = [_line(run, i, several, "held_back_nodes", "learned policy") for i, run in enumerate(chosen)]
    lines = [line for line in lines if line.x]
    if not lines:
        return
    end = max(line.x[-1] for line in lines)
    start = min(line.x[0] for line in lines)
    totals = mapping(chosen[0].result.get("held_back"))
    rules = {label: number(value) for label, value in totals.items() if label not in ("graphs", "learned")}
    for i, (label, value) in enumerate(rules.items()):
        if value is not None and not several:
            lines.append(Line(label, [start, end], [value, value], i + 1, dashed=True))
    yield line_chart(
        f"Held-back graphs{of}",
        _from_start(layered(lines) if several else lines),
        "environment steps",
        "total objective",
    )
    losses = [_line(run, i, several, "loss", "loss") for i, run in enumerate(chosen)]
    yield line_chart(
        f"Loss of the policy{of}", layered(losses), "environment steps", "loss", log_y=_positive(losses)
    )


def _from_start(lines: list[Line]) -> list[Line]:
    """Without the first value where it dwarfs all others: an untrained policy takes nearly every node."""
    out = []
    for line in lines:
        rest = line.y[1:]
        far = len(rest) > 1 and abs(line.y[0] - rest[0]) > 4 * max(1e-9, max(rest) - min(rest))
        out.append(replace(line, x=line.x[1:], y=rest) if far else line)
    return out


def _positive(lines: Sequence[Line]) -> bool:
    """Whether a logarithmic axis shows the values better: positive, and more than a factor of 30 apart."""
    values = [y for line in lines for y in line.y]
    return bool(values) and min(values) > 0 and max(values) > 30 * min(values)


def _accuracy(runs: Sequence[Run]) -> Iterator[Markup]:
    """Loss and scores over epochs of networks, what is measured alike in the same charts."""
    learned = [run for run in runs if run.task == "classify"]
    measures = list(dict.fromkeys(_measure(run) for run in learned))
    for measure in measures:
        of = f" ({measure})" if len(measures) > 1 else ""
        yield from _accuracy_of([run for run in learned if _measure(run) == measure], of)


def _measure(run: Run) -> str:
    """What the scores of a network are."""
    gnn, rgcn = mapping(run.case.get("gnn")), mapping(run.case.get("rgcn"))
    if gnn.get("model") == "rgcn":
        return "links" if rgcn.get("goal") == "links" else "classes"
    if gnn.get("level") in MEASURED:
        return MEASURED[gnn["level"]]
    return "values" if gnn.get("goal") == "values" else "classes"


def _accuracy_of(chosen: Sequence[Run], of: str) -> Iterator[Markup]:
    """The charts of runs of one measure; of: what their titles end with."""
    several = len(chosen) > 1
    losses = [_line(run, i, several, "loss", "training loss") for i, run in enumerate(chosen)]
    yield line_chart(f"Loss{of}", layered(losses), "epoch", "loss", log_y=_positive(losses))
    if several:
        for key, name in SCORES.items():
            lines = [_line(run, i, True, key, name) for i, run in enumerate(chosen)]
            yield line_chart(f"Score of the {name} {_what(chosen)}{of}", layered(lines), "epoch", "score")
    else:
        lines = [_line(chosen[0], i, False, key, name) for i, (key, name) in enumerate(SCORES.items())]
        yield line_chart(f"Scores{of}", lines, "epoch", "score")


def _what(chosen: Sequence[Run]) -> str:
    """What the networks of these runs say something of."""
    found = {str(mapping(run.case.get("gnn")).get("level", "node")) for run in chosen}
    levels = {"node" if level == "embed" else level for level in found}
    return " and ".join(f"{level}s" for level in sorted(levels, reverse=True))


def _courses(runs: Sequence[Run]) -> Iterator[Markup]:
    """Best value and bound over seconds, a chart for each graph."""
    names = list(
        dict.fromkeys(r["name"] for run in runs for r in run.metrics if _searched(r) and r.get("name"))
    )
    for name in names[:MOST_GRAPHS]:
        lines = []
        for i, run in enumerate(runs):
            lines += _course(run, i, name, len(runs) > 1)
        if any(len(set(line.y)) > 2 or line.x[-1] > LONG for line in lines):
            yield line_chart(f"{name}: objective and bound", lines, "seconds", "objective")


def _searched(row: dict[str, str]) -> bool:
    return row.get("phase") == "search"


def _course(run: Run, at: int, name: str, several: bool) -> list[Line]:
    """The two lines of one graph in one run, from its first record to its end."""
    rows = [row for row in run.metrics if _searched(row) and row.get("name") == name]
    entry: dict[str, Any] = next((e for e in run.instances if e.get("name") == name), {})
    lines = []
    begun = min((t for t in (number(row.get("time_s")) for row in rows) if t is not None), default=0.0)
    for column, final, label in (("best", "objective", "answer"), ("bound", "bound", "bound")):
        xs, ys = points(rows, "time_s", column)
        xs = [x - begun for x in xs]
        last = number(entry.get(final))
        if last is not None:
            xs.append(max([number(entry.get("seconds")) or 0.0, *xs]))
            ys.append(last)
            xs, ys = _near(xs, ys, number(entry.get("bound")))
        if xs:
            text = f"{run.label}: {label}" if several else label
            colour = at if several else len(lines)
            lines.append(Line(text, xs, ys, colour, step=True, dashed=column == "bound"))
    return lines


def _near(xs: list[float], ys: list[float], bound: float | None) -> tuple[list[float], list[float]]:
    """Without the first values that are so far off that nothing else could be told apart."""
    far = FAR * abs(ys[-1] - bound) if bound is not None else 0.0
    far = max(far, 0.05 * abs(ys[-1]))
    while len(ys) > 2 and abs(ys[0] - ys[-1]) > far:
        xs, ys = xs[1:], ys[1:]
    return xs, ys


def _left(runs: Sequence[Run]) -> Iterator[Markup]:
    """What the policy alone has left to decide, over evaluations, a chart for each graph."""
    chosen = [
        row["name"] for run in runs for row in run.metrics if row.get("phase") == "solve" and row.get("name")
    ]
    for name in list(dict.fromkeys(chosen))[:MOST_GRAPHS]:
        lines = []
        for i, run in enumerate(runs):
            rows = [row for row in run.metrics if row.get("phase") == "solve" and row.get("name") == name]
            lines.append(Line(run.label, *points(rows, "step", "left"), i))
        yield line_chart(f"{name}: what the policy has left", lines, "policy evaluations", "left", zero=True)
