"""Where the time and the bytes went: phases with imbalance, and scaling of runs over ranks."""

from collections.abc import Iterator, Sequence
from typing import Any

from app.page.charts import Line, line_chart, stacked_bars
from app.page.markup import Markup, join, table, tag
from app.page.overview import different_work, total_seconds
from app.page.runs import Run
from app.page.values import mapping, number, percent, seconds, shown, size

SMALL = 0.01  # share of a run from which on a phase has a colour of its own
REST = "all else"
MPI = "comm."  # begins the names of times spent in MPI calls, which lie within the other phases


def show_phases(runs: Sequence[Run]) -> Markup:
    """Times and bytes of every run that has them."""
    chosen = [run for run in runs if _times(run)]
    if not chosen:
        return Markup("")
    parts = [tag("h2", "Where the time went")]
    parts.append(stacked_bars("Seconds by phase, mean over ranks", _bars(chosen), "seconds"))
    parts += _advice(chosen)
    if len(chosen) == 1:
        return join([*parts, *_tables(chosen[0])])
    parts.append(_side_by_side(chosen))
    for run in chosen:
        parts.append(tag("details", tag("summary", f"all of {run.label}"), *_tables(run)))
    return join(parts)


def _bars(runs: Sequence[Run]) -> list[tuple[str, dict[str, float]]]:
    """The phases of each run as parts of a bar; those that are small in all of them together as one."""
    parts = [_whole(run) for run in runs]
    large = {name for each in parts for name, mean in each.items() if mean >= SMALL * sum(each.values())}
    bars = []
    for run, each in zip(runs, parts):
        kept = {name: mean for name, mean in each.items() if name in large and name != REST}
        rest = sum(each.values()) - sum(kept.values())
        bars.append((run.label, {**kept, REST: rest} if rest > 0 else kept))
    return bars


def _side_by_side(runs: Sequence[Run]) -> Markup:
    """Mean seconds of every phase and the imbalance, a pair of columns for each run."""
    names = list(dict.fromkeys(name for run in runs for name in _times(run)))
    names.sort(key=lambda name: name.startswith(MPI))
    head = [column for run in runs for column in (run.label, "imbalance")]
    rows = []
    for name in names:
        cells: list[Any] = []
        for run in runs:
            _, mean, high = _times(run).get(name, (0.0, None, 0.0))
            cells += [seconds(mean), _ratio(high, mean or 0.0)]
        rows.append([f"MPI, {name.removeprefix(MPI)}" if name.startswith(MPI) else name, *cells])
    return table(["phase", *head], rows, "mean seconds over the ranks; imbalance: most / mean")


def _times(run: Run) -> dict[str, tuple[float, float, float]]:
    """Seconds of each phase: least, mean and most over the ranks."""
    found = {}
    for name, row in mapping(mapping(run.result.get("phases")).get("seconds")).items():
        values = [number(mapping(row).get(key)) for key in ("min_s", "mean_s", "max_s")]
        if None not in values and min(values) >= 0:
            found[str(name)] = tuple(values)
    return dict(sorted(found.items(), key=lambda item: -item[1][1]))


def _whole(run: Run) -> dict[str, float]:
    """The mean seconds of each phase, and what is left of the whole run."""
    parts = {name: mean for name, (_, mean, _) in _times(run).items() if not name.startswith(MPI)}
    rest = (total_seconds(run) or 0.0) - sum(parts.values())
    return {**parts, REST: rest} if rest > 0 else parts


def _tables(run: Run) -> Iterator[Markup]:
    """The times and bytes of one run."""
    times = _times(run)
    whole = total_seconds(run)
    own = [_time_row(name, row, whole) for name, row in times.items() if not name.startswith(MPI)]
    within = [
        _time_row(name.removeprefix(MPI), row, whole) for name, row in times.items() if name.startswith(MPI)
    ]
    head = ["least", "mean", "most", "imbalance", "share %"]
    yield table(["phase", *head], own, "seconds over the ranks; imbalance: most / mean")
    if within:
        yield table(
            ["MPI calls", *head], within, "time in MPI calls, waiting included; part of the phases above"
        )
    sent = mapping(mapping(run.result.get("phases")).get("bytes"))
    rows = [_byte_row(str(name), mapping(row)) for name, row in sent.items()]
    if any(number(mapping(row).get("max")) for row in sent.values()):
        yield table(
            ["bytes sent", "least", "mean", "most", "imbalance"], rows, "by kind of message, over the ranks"
        )


def _advice(runs: Sequence[Run]) -> Iterator[Markup]:
    """What the runs said of themselves at their end."""
    for run in runs:
        phases = mapping(run.result.get("phases"))
        remarks = phases.get("remarks")
        for said in (phases.get("advice"), *(remarks if isinstance(remarks, list) else ())):
            if not (isinstance(said, str) and said):
                continue
            yield tag("p", f"{run.label}: {said}" if len(runs) > 1 else said, class_="note")


def _time_row(name: str, row: tuple[float, float, float], whole: float | None) -> list[Any]:
    low, mean, high = row
    share = percent(mean / whole, 1) if whole else None
    return [name, seconds(low), seconds(mean), seconds(high), _ratio(high, mean), share]


def _byte_row(name: str, row: dict[str, Any]) -> list[Any]:
    low, mean, high = (number(row.get(key)) for key in ("min", "mean", "max"))
    return [name, size(low), size(mean), size(high), _ratio(high or 0, mean or 0)]


def _ratio(high: float, mean: float) -> str:
    return f"{high / mean:.2f}" if mean > 0 else "-"


def show_scaling(runs: Sequence[Run]) -> Markup:
    """Runs of the same work on different numbers of ranks: speed-up and efficiency against the fewest."""
    done = [run for run in runs if run.complete and run.ranks and total_seconds(run)]
    families = _families(done)
    parts = [part for family in families for part in _scaling(family)]
    return join([tag("h2", "Scaling"), *parts]) if parts else Markup("")


def _families(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of equal work together, those on more than one number of ranks."""
    families: list[list[Run]] = []
    for run in runs:
        home = next((family for family in families if not different_work(family[0], run)), None)
        if home is None:
            families.append([run])
        else:
            home.append(run)
    families = [sorted(family, key=lambda run: run.ranks) for family in families]
    return [family for family in families if family[0].ranks != family[-1].ranks]


def _scaling(family: list[Run]) -> Iterator[Markup]:
    base = family[0]
    rows = []
    for run in family:
        up = total_seconds(base) / total_seconds(run)
        mpi = sum(mean for name, (_, mean, _) in _times(run).items() if name.startswith(MPI))
        sent = mapping(mapping(mapping(run.result.get("phases")).get("bytes")).get("all")).get("mean")
        same = run.result.get("digest") == base.result.get("digest")
        rows.append([
            run.label, shown(run.ranks), seconds(total_seconds(run)), f"{up:.2f}",
            percent(up * base.ranks / run.ranks, 1), percent(mpi / total_seconds(run), 1), size(sent),
            "the same" if same else "another",
        ])  # fmt: skip
    head = [
        "run",
        "ranks",
        "seconds",
        "speed-up",
        "efficiency %",
        "in MPI %",
        "bytes sent by a rank",
        "digest",
    ]
    yield table(head, rows, f"speed-up against {base.label}, the whole run with reading and set-up")
    ranks = [float(run.ranks) for run in family]
    times = [total_seconds(run) for run in family]
    ideal = [times[0] * ranks[0] / k for k in ranks]
    lines = [Line("seconds", ranks, times, 0), Line("perfect scaling", ranks, ideal, -1, dashed=True)]
    yield tag(
        "div",
        line_chart("Seconds over ranks", lines, "ranks", "seconds", log_y=True, ticks_x=ranks),
        class_="charts",
    )
