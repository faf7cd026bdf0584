"""python -m app report: one HTML page of one run or of several side by side."""

import os
import tomllib

from app.case.config import VERSION
from app.case.file import build, working_folder
from app.case.text import to_toml
from app.errors import CaseError
from app.files import write_whole
from app.page.report import make_page
from app.page.runs import read_runs
from app.page.values import flat
from app.text import printable

HELP = """\
usage: python -m app report RUN... [-o FILE]

One HTML page from the folders of one run or of several: what ran where, the settings that
differ, answers with bounds, gaps and certificates beside plain heuristics, curves, phases,
bytes, scaling where the runs differ in ranks. It holds all it shows, needs no network and
no JavaScript, and can be printed. Unfinished runs are shown as such.

  RUN        an output folder: of train, solve, classify or study, on any number of ranks
  -o FILE    where the page goes (default: report.html in the folder of the first run)

  python -m app report runs/quickstart
  python -m app report runs/np1 runs/np2 runs/np4 -o scaling.html
"""


START = b"<!DOCTYPE html>"


def report(arguments: list[str]) -> str:
    """Write the page; returns the line that says where it is."""
    folders, out = _sort(arguments)
    working_folder()
    runs = read_runs(folders)
    page = make_page(runs, flat(tomllib.loads(to_toml(build({})))), VERSION)
    out = out or os.path.join(folders[0], "report.html")
    _refuse_others(out)
    write_whole(out, page.encode("ascii"))
    return f"{printable(out)}: {len(runs)} run{'s' if len(runs) > 1 else ''}, {len(page) / 1000:.0f} kB"


def _refuse_others(out: str) -> None:
    """Replace an earlier page, and nothing else."""
    if not os.path.isfile(out):
        return
    with open(out, "rb") as file:
        start = file.read(len(START))
    if start != START:
        raise CaseError(f"-o {printable(out)}: is a file, and no page; name another one")


def _sort(arguments: list[str]) -> tuple[list[str], str]:
    """Run folders and the name of the page."""
    folders, out = [], ""
    rest = iter(arguments)
    for each in rest:
        if each in ("-o", "--out"):
            out = next(rest, "")
            if not out:
                raise CaseError(f"option {each}: needs a value: FILE")
        elif each.startswith("-"):
            raise CaseError(f"unknown option {printable(each)}: there is -o FILE")
        else:
            folders.append(each)
    if not folders:
        raise CaseError("report: no run given: python -m app report RUN... [-o FILE]; --help says more")
    return folders, out
