"""Writing about a case: its TOML text, its digest, and the reference of its keys, as text and as Markdown."""

import hashlib
import os
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import NODEFAULT, structs
from msgspec import inspect as kinds

from app.case.config import TRAIN_TABLES, Case, Keys, all_keys, all_tables, fields_of, table_of
from app.case.graph import GRAPH_FILES, GraphCase
from app.case.run import CheckpointCase, MemoryCase, OutputCase, ParallelCase, RunCase
from app.case.table import expected
from app.text import toml_value


def to_toml(case: Case) -> str:
    """The case with every key and its value; loading the text gives an equal case."""
    return _toml(case, lambda keys: TRAIN_TABLES[keys].partition("absent: ")[2].rstrip("."))


def _toml(case: Case, absent: Callable[[Keys], str]) -> str:
    """The text; absent: what is said of a table that is."""
    lines = [f"seed = {case.seed}"]
    for keys in all_tables():
        table: Any = case
        for key in keys:
            table = getattr(table, key)
        if table is None:
            lines += ["", f"# [{'.'.join(keys)}] is absent: {absent(keys)}"]
            continue
        lines += ["", f"[{'.'.join(keys)}]"]
        for name, each in fields_of(type(table)).items():
            if table_of(each.type) is None:
                lines.append(f"{name} = {toml_value(getattr(table, name))}")
    return "\n".join(lines) + "\n"


def case_digest(case: Case) -> str:
    """sha256 of all that can change the result.

    Left out: name, folder, device and guards of the run, [parallel], [memory], [checkpoint] and [output].
    Files count by their names without folders, so that a copy elsewhere has the same digest; their content
    has its own.
    """
    digested = structs.replace(
        case,
        run=structs.replace(
            case.run,
            name="",
            out="",
            device="auto",
            check_every=RunCase().check_every,
            watchdog_seconds=RunCase().watchdog_seconds,
        ),
        graph=_without_folders(case.graph),
        train=structs.replace(
            case.train,
            graphs=case.train.graphs and _without_folders(case.train.graphs),
            held_back=case.train.held_back and _without_folders(case.train.held_back),
        ),
        policy=structs.replace(case.policy, weights=os.path.basename(case.policy.weights)),
        search=structs.replace(
            case.search,
            **{key: os.path.basename(getattr(case.search, key)) for key in ("start", "inside", "outside")},
        ),
        study=structs.replace(
            case.study,
            data=os.path.basename(case.study.data),
            catalogue=os.path.basename(case.study.catalogue),
        ),
        parallel=ParallelCase(),
        memory=MemoryCase(),
        checkpoint=CheckpointCase(),
        output=OutputCase(),
    )
    text = _toml(
        digested, lambda keys: "the graphs of [graph]"
    )  # digests do not hang on what is told to people
    return hashlib.sha256(text.encode()).hexdigest()


def _without_folders(graphs: GraphCase) -> GraphCase:
    """The graphs with the last part of each path."""
    paths = [graphs.path] if isinstance(graphs.path, str) else graphs.path
    beside = {key: os.path.basename(getattr(graphs, key)) for key in GRAPH_FILES}
    return structs.replace(graphs, path=[os.path.basename(each) for each in paths if each], **beside)


# --------------------------------------------------------------------------------
# Help

USAGE = """\
usage: mpirun -np N python run.py CASE.toml [section.key=value ...] [options]

Graph optimisation and graph learning in lockstep on any number of MPI ranks.
Without mpirun it runs on one rank.

  CASE.toml            the case file; inputs/ has one for each kind of work
  section.key=value    set a key of the case; the value is TOML, but text needs no quotes:
                       train.steps=2000 graph.path=a.mtx 'graph.path=["a.mtx", "b.mtx"]'
  --out DIR            output folder; sets run.out (default: runs/NAME)
  --check FILE         say whether the solution in FILE is feasible, its value and how far from
                       optimal it can be; write nothing
  --check RUN          the same of all answers in the folder RUN, which hold or are named; what
                       its certificates prove (output.certificates)
  --overwrite          write into an output folder that has results already
  --resume             go on from the newest valid checkpoint in the output folder, on any number
                       of ranks, with the bits of a run that was never stopped; from the beginning
                       where there is none
  --max-hours H        stop in time with a checkpoint, H hours after the start (see --resume)
  --force-unlock       take over an output folder that a job has locked which is certainly gone
  --dry-run            check the case and the headers of its graph files, print the case with
                       its defaults, write nothing
  --device DEVICE      auto, cpu or gpu; sets run.device
  --allow-mixed        run although ranks have different versions of the software: results
                       may then depend on the ranks
  --version            print the version
  --help               print this text

Paths in a case file are relative to that file, except run.out; run.out and paths on the
command line are relative to the working directory.

exit codes:
  0  complete
  1  any other error
  2  the case, the command line or an input file is wrong
  3  stopped early by --max-hours or a signal (SIGUSR1, SIGTERM, SIGINT), with a checkpoint;
     a second SIGINT ends the job at once

environment variables:
  LOCKSTEP_THREADS     threads per rank of the linear algebra libraries (default 1)
  LOCKSTEP_DATA        folder of reference data; study.data says what is looked for

Keys of a case file, with their defaults:
"""


def help_text() -> str:
    """Usage, options, exit codes and the reference of all keys; ASCII, at most 100 columns."""
    return USAGE + "\n" + "\n".join(_key_reference()) + "\n"


def _key_reference() -> Iterator[str]:
    """A heading per table, an entry per key: default, meaning, type and range."""
    shown: Keys = ()
    for keys, each, table in all_keys():
        if keys[:-1] in TRAIN_TABLES:
            continue
        if keys[:-1] != shown:
            shown = keys[:-1]
            yield from ("", f"[{shown[0]}]  {table.__doc__}")
        info = kinds.type_info(each.type)
        meaning = info.extra_json_schema["description"]
        yield f"  {each.name} = {toml_value(_default_of(each))}"
        yield from _wrap(f"{meaning} ({expected(info)})")
        if keys == ("train", "environment"):
            for (outer, name), text in TRAIN_TABLES.items():
                yield ""
                yield from textwrap.wrap(f"[{outer}.{name}]  {text}", 100)


def _wrap(text: str) -> list[str]:
    """Indented lines of at most 100 columns."""
    return textwrap.wrap(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)


# --------------------------------------------------------------------------------
# docs/cases.md

CASES = """\
# Case files and their keys

<!-- `python -m app keys > docs/cases.md` makes this file from the structs of app/case/: change those. -->

A case file is [TOML](https://toml.io): tables of keys. Every key has a default, so a case holds what differs
from it; the run folder gets `case.toml`, in which every key has its value. Any key can be set on the command
line as `section.key=value`, after the case file. A value there is TOML too, but text needs no quotes. Unknown
keys and values out of range are refused, all at once, with the line and the nearest name, before anything is
read or written.

Paths in a case file are relative to that file; `run.out` and paths on the command line are relative to the
working directory. `python run.py --help` prints this reference as text. The cases that come with the
program are described in [inputs/README.md](../inputs/README.md).
"""


def keys_markdown() -> str:
    """The reference of all keys as Markdown: a heading and a table of keys for each table of a case."""
    lines = [CASES]
    for keys in ((), *(each for each in all_tables() if each not in TRAIN_TABLES)):
        entries = [(key[-1], each, table) for key, each, table in all_keys() if key[:-1] == keys]
        title = f"[{'.'.join(keys)}]" if keys else "Above all tables"
        lines += [f"## {title}", ""]
        lines += [entries[0][2].__doc__, ""] if keys else []
        lines += ["| key | default | meaning | values |", "|---|---|---|---|"]
        lines += [_row(name, each) for name, each, _ in entries]
        lines.append("")
        if keys == ("train",):
            for inner, text in TRAIN_TABLES.items():
                lines += [f"## [{'.'.join(inner)}]", "", text.replace("[graph]", "`[graph]`"), ""]
    return "\n".join(lines)


def _row(name: str, each: structs.FieldInfo) -> str:
    """One key as a row of a Markdown table."""
    info = kinds.type_info(each.type)
    default, meaning = toml_value(_default_of(each)), info.extra_json_schema["description"]
    cells = (f"`{name}`", f"`{default}`", meaning, expected(info))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default_of(each: structs.FieldInfo) -> Any:
    """The value of a key that a case leaves out."""
    return each.default if each.default is not NODEFAULT else each.default_factory()
