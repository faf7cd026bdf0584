"""A report: one HTML page of one run or several, with nothing that is not in the page itself."""

from typing import Any

from app.page.curves import show_curves
from app.page.markup import Markup, join, tag
from app.page.overview import show_runs, show_settings
from app.page.phases import show_phases, show_scaling
from app.page.results import show_results, summary
from app.page.runs import Run
from app.page.style import STYLE

# The browser itself then refuses scripts and anything from elsewhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def make_page(runs: list[Run], defaults: dict[str, Any], version: str) -> str:
    """The whole page as text, in ASCII.

    defaults   every key of a case with its default, as {"train.steps": 2000}
    """
    title = f"Lockstep: {', '.join(run.label for run in runs)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    body = tag(
        "body",
        tag("h1", _heading(runs)),
        tag("p", _summary(runs), class_="soft"),
        show_runs(runs),
        show_settings(runs, defaults) if len(runs) > 1 else "",
        show_results(runs),
        show_curves(runs),
        show_scaling(runs),
        show_phases(runs),
        show_settings(runs, defaults) if len(runs) == 1 else "",
        tag(
            "footer",
            f"Made by Lockstep {version} from the files of the run folders; it refers to nothing else.",
        ),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _heading(runs: list[Run]) -> str:
    return runs[0].label if len(runs) == 1 else f"{len(runs)} runs side by side"


def _summary(runs: list[Run]) -> Markup:
    """A line for each run: how it ended and the best that can be said of it."""
    lines = [f"{run.label}: {summary(run)}" if len(runs) > 1 else summary(run) for run in runs[:12]]
    return join(lines, tag("br"))
