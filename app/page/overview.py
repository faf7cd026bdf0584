"""The head of a report: which runs, where they ran, and in which settings they differ."""

from collections.abc import Callable, Sequence
from typing import Any

from app.page.markup import Markup, join, table, tag
from app.page.runs import Run
from app.page.values import mapping, number, seconds
from app.text import show

LONGEST = 60  # characters of a setting


def show_runs(runs: Sequence[Run]) -> Markup:
    """A table of the runs: a column each where there are several."""
    rows = []
    for name, read in FACTS.items():
        cells = [read(run) for run in runs]
        if any(cells):
            rows.append([name, *cells])
    head = ["", *(run.label for run in runs)]
    return join(
        [tag("h2", "What ran where"), *map(_unfinished, runs), _same_digests(runs), table(head, rows)]
    )


def _unfinished(run: Run) -> Markup:
    """What is known of a run without a result: the last lines of its log."""
    if run.complete:
        return Markup("")
    again = "It has a checkpoint: the same command with --resume goes on from there." if run.resumable else ""
    said = f"{run.label} is not complete: it is still running, was stopped early, or failed."
    return join([
        tag("p", tag("b", said), " What follows is what it wrote so far. ", again, class_="note"),
        tag("details", tag("summary", "the last lines of its log"), tag("pre", "\n".join(run.tail)))
        if run.tail
        else "",
    ])  # fmt: skip


def _same_digests(runs: Sequence[Run]) -> Markup:
    """Whether runs that should have the same bits have them."""
    done = [run for run in runs if run.complete]
    if len(done) < 2 or any(different_work(done[0], run) for run in done[1:]):
        return Markup("")
    digests = {run.result.get("digest") for run in done}
    same = "The settings that define the result are equal, and so are the digests: the same bits."
    other = "The settings that define the result are equal, but the digests are not. "
    why = "Under a time limit that is to be expected; with a budget of steps it is not."
    return tag("p", same) if len(digests) == 1 else tag("p", other, why, class_="note")


def different_work(one: Run, other: Run) -> list[str]:
    """The keys that define the result and differ between two runs."""
    a, b = one.settings, other.settings
    differ = [key for key in sorted({*a, *b}) if a.get(key) != b.get(key)]
    return [key for key in differ if key in DEFINING or not key.startswith(FREE)]


# Where and how it runs, what it keeps and what it says: no result depends on it.
NAMES = ("run.name", "run.out")  # said elsewhere
FREE = (
    "run.name", "run.out", "run.device", "run.kernels", "run.watchdog_seconds", "run.check_every",
    "parallel.", "memory.", "output.", "checkpoint.",
)  # fmt: skip
DEFINING = ("parallel.data", "memory.whole_graph_mb")  # of these tables the keys that define the result


def _status(run: Run) -> Any:
    return "complete" if run.complete else tag("b", "not complete")


def _what(run: Run) -> str:
    model = mapping(run.case.get("gnn")).get("model")
    problem = run.result.get("problem") or mapping(run.case.get("problem")).get("name")
    kind = mapping(run.case.get("study")).get("kind")
    about = {"classify": model, "study": kind}.get(run.task, problem)
    return f"{run.task}, {about}" if about else run.task


def _mpi(run: Run) -> str:
    library = str(run.environment.get("mpi_library") or "").replace("Version:", " ")
    on_host = str(run.environment.get("device", "")).startswith("cpu")
    travels = "" if on_host else str(run.environment.get("messages") or "")
    return "; messages ".join(filter(None, (" ".join(library.split()), travels)))


def _hosts(run: Run) -> str:
    hosts = run.environment.get("hosts")
    names = [str(host) for host in hosts] if isinstance(hosts, list) else []
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _versions(run: Run) -> str:
    known = mapping(run.environment.get("versions"))
    named = {"Lockstep": run.environment.get("lockstep"), "Python": run.environment.get("python"), **known}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def _plain(key: str) -> Callable[[Run], Any]:
    return lambda run: run.environment.get(key)


def _digest(run: Run) -> Any:
    digest = run.result.get("digest")
    return tag("code", str(digest)[:16]) if digest else None


FACTS: dict[str, Callable[[Run], Any]] = {
    "status": _status,
    "task": _what,
    "seed": lambda run: str(run.case.get("seed", run.result.get("seed", ""))),
    "seconds": lambda run: seconds(run.result.get("seconds")),
    "ranks": lambda run: str(run.ranks or ""),
    "hosts": _hosts,
    "device": _plain("device"),
    "sparse product": _plain("sparse_product"),
    "MPI": _mpi,
    "processor": _plain("machine"),
    "versions": _versions,
    "digest": _digest,
    "folder": lambda run: run.folder,
}


def show_settings(runs: Sequence[Run], defaults: dict[str, Any]) -> Markup:
    """The settings in which runs differ; of a single run those that are not the defaults."""
    runs = [run for run in runs if run.case]
    if not runs:
        return Markup("")
    if len(runs) == 1:
        rows = [
            [key, show(value), show(_default(key, defaults))]
            for key, value in runs[0].settings.items()
            if _default(key, defaults) != value
        ]
        title, head, none = "Settings", ["key", "this run", "default"], "Every key has its default."
    else:
        keys = list(dict.fromkeys(key for run in runs for key in run.settings))
        values = {key: [run.settings.get(key, _default(key, defaults)) for run in runs] for key in keys}
        rows = [
            [key, *map(show, found)]
            for key, found in values.items()
            if key not in NAMES and any(value != found[0] for value in found)
        ]
        title, head = "Settings that differ", ["key", *(run.label for run in runs)]
        none = "None: the cases are equal."
    return join([tag("h2", title), table(head, rows) if rows else tag("p", none)])


def _default(key: str, defaults: dict[str, Any]) -> Any:
    """The default of a key; training and held-back graphs have those of graphs."""
    for prefix in ("train.graphs.", "train.held_back."):
        key = key.replace(prefix, "graph.", 1)
    return defaults.get(key, "-")


def total_seconds(run: Run) -> float | None:
    """The seconds of the whole run."""
    return number(run.result.get("seconds"))
