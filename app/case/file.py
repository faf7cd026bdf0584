"""Reading a case: a TOML file with overrides, or settings from Python -> a checked Case.

A case is read in four moves: `tomllib` parses the file, the overrides of the command line are laid over it,
every key is checked (all mistakes are reported together, each with its line), and paths are made absolute.
"""

import glob
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from msgspec import convert, structs, to_builtins

from app.case.check import mistakes, where
from app.case.config import GRAPH_TABLES, Case, Keys, all_tables, graph_tables, type_of
from app.case.conflicts import conflicts, unread
from app.case.graph import (
    BY_GENERATOR,
    GRAPH_BESIDE,
    GRAPH_FILES,
    GRAPH_FOLDERS,
    LABEL_TABLES,
    OF_GENERATED,
    WORDS,
    GraphCase,
)
from app.case.places import DEEPEST, Places, dotted, key_places
from app.case.search import STARTS
from app.case.study import StudyCase, split_settings
from app.case.table import expected, takes_text
from app.errors import CaseError
from app.text import foreign, is_plain, not_plain, printable, shorten, show

COMMAND_LINE = "command line"
LARGEST_FILE = 1 << 18  # bytes; a case file is written by hand
FILES = (  # keys that name a file which must be there
    ("parallel", "cost_model"), ("search", "start"), ("search", "inside"), ("search", "outside"),
    ("gnn", "weights"), ("rgcn", "weights"), ("rgcn", "train_labels"), ("rgcn", "test_labels"),
    ("rgcn", "val_labels"), ("rgcn", "val_triples"), ("rgcn", "test_triples"), ("rgcn", "queries"),
    ("links", "val_edges"), ("links", "test_edges"),
    ("links", "pairs"), ("links", "sides"), ("links", "propose_for"),
)  # fmt: skip
OF_DATA = ("quality",)  # kinds of studies that read test graphs from study.data,
OF_FILES = ("scaling", "strong_scaling")  # and files of the folder around it
LONGEST_KEY = 200  # characters of an override's key


def load(path: str, overrides: list[str]) -> Case:
    """The case of a file with the overrides `section.key=value` laid over it.

    Raises CaseError with every mistake that was found. Paths in the result are absolute (run.out apart, which
    stays relative to the working directory), graph.path is a list of files, run.name is filled in, and so is
    study.data of a study where LOCKSTEP_DATA is set.
    """
    data, places = _read(path)
    own = deepcopy(data)
    for keys, value in _parse_overrides(overrides):
        _lay_over(data, places, keys, value)
    _last_source_wins(data, places)
    _drop_former(data, places, own)
    case = _checked(printable(path), data, places, os.path.dirname(os.path.abspath(path)))
    if case.run.name:
        return case
    name = re.sub(r"[^\w.+=,@-]", "_", os.path.splitext(os.path.basename(path))[0])
    return structs.replace(case, run=structs.replace(case.run, name=name))


def merged(*tables: Any) -> Any:
    """Settings from Python, the later ones laid over the others; what is no table is left for `build`."""
    wrong = [table for table in tables if table is not None and not isinstance(table, Mapping)]
    return wrong[0] if wrong else {key: value for table in tables for key, value in (table or {}).items()}


def build(settings: dict[str, Any], has_training: bool = False, by_task: bool = True) -> Case:
    """The case of settings from Python, such as {"train.steps": 2000}: checked and filled in like a file.

    Raises CaseError with every mistake that was found. Paths are relative to the working directory. The
    graphs of a solve may be missing: the caller has them; and with has_training those to train on. by_task:
    keys that run.task does not read are refused; False where the caller reads some of them.
    """
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        found = printable(shorten(repr(settings), 60))
        raise CaseError(f'settings: found {found}; keys of a case, as {{"seed": 1}}, would be right')
    data: dict[str, Any] = {}
    plain = to_builtins(dict(settings), str_keys=True, enc_hook=_plain_value)
    for key in sorted(plain, key=lambda key: "." not in key and not isinstance(plain[key], dict)):
        _lay_over(data, {}, tuple(key.split(".")), plain[key])  # what is no table comes last, to be refused
    return _checked("settings", data, {}, working_folder(), True, has_training, by_task)


def build_from(overrides: list[str]) -> Case:
    """The case of `section.key=value` texts alone, as a command line has them; raises CaseError."""
    data: dict[str, Any] = {}
    for keys, value in _parse_overrides(overrides):
        _lay_over(data, {}, keys, value)
    return _checked(COMMAND_LINE, data, {}, working_folder(), True, by_task=False)


def named_files(case: Case) -> list[str]:
    """The files and folders that a case reads, absolute paths."""
    tables = [table for table in graph_tables(case) if table is not None]
    found = [path for table in tables for path in table.path if not path.startswith("networkx:")]
    found += [name for table in tables for path in table.path for name in _together(path, table.format)]
    beside = {getattr(table, key) for table in tables for key in GRAPH_FILES} - {*WORDS.values()}
    others = {getattr(getattr(case, table), key) for table, key in FILES} - set(STARTS)
    weights = {case.policy.weights} - {"default", "train"}
    text = case.graph.path and not case.graph.path[0].lower().endswith(".npz")
    if case.gnn.model == "rgcn" and case.rgcn.goal == "classes" and text:
        found += [path for path in label_tables(case) if os.path.isfile(path)]
    return [*found, *sorted((beside | others | weights) - {""})]


def study_files(case: Case) -> list[str]:
    """The files that a study reads beside those of its graph tables and that are there, absolute paths."""
    study, folder = case.study, os.path.dirname(case.study.data)
    if case.run.task != "study":
        return []
    found = [os.path.abspath(study.calibration)] if study.calibration else []
    found += [split_settings(text)[0] for text in study.datasets]
    if study.kind in OF_DATA and study.data:
        found += [os.path.join(study.data, f"{family}.npz") for family in study.families]
    if study.kind in OF_FILES and study.data:
        words = [word for text in study.variants for word in re.findall(r'"([^"]+)"', text)]
        found += [os.path.join(folder, name) for name in (*study.measured, *words)]
    if study.kind == "scaling" and study.data and not case.graph.path and not case.graph.generator:
        found.append(os.path.join(folder, "large"))
    if study.kind == "answers":
        found += _of_catalogue(study.catalogue, study.sets)
    return [path for path in dict.fromkeys(found) if path and os.path.exists(path)]


def _of_catalogue(path: str, sets: list[str]) -> list[str]:
    """A catalogue and the files that it lists in some folders; [] where it is none."""
    try:
        with open(path, "rb") as file:
            listed = [str(each.get("path", "")) for each in tomllib.load(file).get("file", [])]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []
    folder = os.path.dirname(path)
    return [path, *(os.path.join(folder, each) for each in listed if each.split("/")[0] in sets)]


def label_tables(case: Case) -> list[str]:
    """The tables of labels that go with a text file of triples: of nodes to learn from, and of the test."""
    folder = os.path.dirname(case.graph.path[0] if case.graph.path else "")
    return [getattr(case.rgcn, key) or os.path.join(folder, file) for key, file in LABEL_TABLES.items()]


def _together(path: str, format: str) -> list[str]:
    """The files that go with one of a graph."""
    end, others = GRAPH_BESIDE.get(format, ("", ()))
    names = [path.removesuffix(end) + other for other in others] if path.endswith(end) else []
    return [name for name in names if os.path.isfile(name)]


def _plain_value(value: Any) -> Any:
    """A NumPy number or array as Python's own; anything else, such as a Path, as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _checked(
    shown: str, data: dict[str, Any], places: Places, folder: str, called: bool = False,
    has_training: bool = False, by_task: bool = True,
) -> Case:  # fmt: skip
    """The case of parsed data, its paths made absolute from `folder`; refused with all mistakes together.

    called   from Python, whose caller has the graphs     has_training, by_task   see conflicts
    """
    _refuse(shown, list(mistakes(Case, data, (), places)))
    case = convert(data, Case)
    try:
        located, missing = _locate(case, folder, places)
    except OSError as error:
        raise CaseError(f"{shown}: cannot look for its files: {error.strerror}") from None
    _refuse(shown, [*conflicts(case, places, called, has_training, by_task), *missing])
    return located


def _refuse(shown: str, errors: list[str]) -> None:
    """Raise one CaseError for all mistakes, if there are any."""
    if len(errors) == 1:
        raise CaseError(f"{shown}: {errors[0]}")
    if errors:
        raise CaseError(f"{shown}: {len(errors)} mistakes\n  " + "\n  ".join(errors))


def _read(path: str) -> tuple[dict[str, Any], Places]:
    """The parsed file, and the line of each key."""
    shown = printable(path)
    try:
        if os.path.isdir(path):
            raise CaseError(f"{shown}: is a folder; name a case file (inputs/quickstart.toml, for example)")
        if not os.path.isfile(path):
            raise CaseError(f"{shown}: no such case file")
        if os.path.getsize(path) > LARGEST_FILE:
            raise CaseError(f"{shown}: larger than {LARGEST_FILE} bytes: not a case file")
        with open(path, "rb") as file:
            raw = file.read()
    except (OSError, ValueError) as error:
        raise CaseError(f"{shown}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CaseError(f"{shown}: line {line}: byte 0x{raw[error.start]:02x} is not UTF-8 text") from None
    try:
        return tomllib.loads(text), key_places(text)
    except (ValueError, RecursionError) as error:
        raise CaseError(f"{shown}: {_syntax_message(error)}") from None


def _syntax_message(error: Exception) -> str:
    """tomllib's message with the place in front."""
    if isinstance(error, RecursionError):
        return "not a case file: nested too deeply"
    message = printable(str(error))
    found = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", message)
    return f"{found[2]}: not valid TOML: {found[1]}" if found else f"not valid TOML: {message}"


# --------------------------------------------------------------------------------
# Overrides


def _parse_overrides(overrides: list[str]) -> list[tuple[Keys, Any]]:
    """The overrides as (key, value); everything that is not `section.key=value` is refused at once."""
    parsed, errors = [], []
    for text in overrides:
        try:
            parsed.append(_parse_override(text))
        except CaseError as error:
            errors.append(str(error))
    if errors:
        raise CaseError("\n  ".join(errors))
    return parsed


def _parse_override(text: str) -> tuple[Keys, Any]:
    """`train.steps=2000` -> (("train", "steps"), 2000); text may go without quotes."""
    shown = shorten(printable(text))
    key, equals, value = text.partition("=")
    try:
        keys = dotted(key) if equals and "\n" not in key and len(key) < LONGEST_KEY else ()
    except (ValueError, RecursionError):
        keys = ()
    if not 0 < len(keys) <= DEEPEST:
        raise CaseError(f"{shown} ({COMMAND_LINE}): must be section.key=value, such as train.steps=2000")
    try:
        parsed = tomllib.loads(f"value = {value}")
        if set(parsed) != {"value"}:
            raise ValueError
    except (ValueError, RecursionError):
        return keys, _bare_text(shown, keys, value.strip())
    return keys, parsed["value"]


def _bare_text(shown: str, keys: Keys, text: str) -> str:
    """What is no TOML value, as text: for a key that takes text, and for an unknown one, refused by its name.

    Text that begins like a string, a list or a table was meant to be one and is refused, as is no text.
    """
    info, is_table = type_of(keys), keys in all_tables()
    if info is None and not is_table:
        return text
    if info is None or not takes_text(info) or not text or text[0] in "\"'[{":
        right = "a table" if info is None else expected(info)
        if not text and right.startswith(("text in quotes", 'one of ""')):
            right += f"; none is '{'.'.join(keys)}=\"\"', with quotes for the shell"
        raise CaseError(f"{shown} ({COMMAND_LINE}): not a TOML value; must be {right}")
    return text


def _lay_over(data: dict[str, Any], places: Places, keys: Keys, value: Any) -> None:
    """Set one key, making the tables above it; a table is merged key by key."""
    if isinstance(value, dict) and value and len(keys) < DEEPEST:
        for key, inner in value.items():
            _lay_over(data, places, (*keys, key), inner)
        return
    for length in range(1, len(keys)):
        if not isinstance(data.get(keys[length - 1]), dict):
            data[keys[length - 1]] = {}
            places[keys[:length]] = COMMAND_LINE
        data = data[keys[length - 1]]
    data[keys[-1]] = value
    places[keys] = COMMAND_LINE


def _last_source_wins(data: dict[str, Any], places: Places) -> None:
    """A path on the command line takes the place of the file's generator, and the other way round."""
    for keys in GRAPH_TABLES:
        table = data
        for key in keys:
            table = table.get(key) if isinstance(table, dict) else None
        if not isinstance(table, dict) or not (table.get("path") or table.get("generator")):
            continue
        from_file = [key for key in ("path", "generator") if places.get((*keys, key)) != COMMAND_LINE]
        if len(from_file) == 1 and table.get("path") and table.get("generator"):
            table[from_file[0]] = ""
        if len(from_file) < 2:
            _drop_unread(table, {key for key in table if places.get((*keys, key)) != COMMAND_LINE})


def _drop_unread(table: dict[str, Any], from_file: set[str]) -> None:
    """Take out keys of a case file that the generator it names would have read, and what the command line
    names in its place does not.
    """
    name = table.get("generator")
    of_generators = {key for keys in BY_GENERATOR.values() for key in keys}
    if not name:
        of_generators |= {*OF_GENERATED, "edge_weights"}
    elif name not in BY_GENERATOR:
        return
    for key in from_file & (of_generators - {*BY_GENERATOR.get(name, ())}):
        del table[key]


def _drop_former(data: dict[str, Any], places: Places, own: dict[str, Any]) -> None:
    """Take out keys that the case file's own choices read, of a learner, a kind of study or a task, and those
    of the command line in their place do not.

    own   the data of the file alone: what nothing reads there stays, to be refused
    """
    gone = {keys for keys in _unread(data) if places.get(keys) != COMMAND_LINE}
    for keys in gone - _unread(own) if gone else ():
        table = data
        for key in keys[:-1]:
            table = table[key]
        del table[keys[-1]]


def _unread(data: dict[str, Any]) -> set[Keys]:
    """The keys of parsed data that nothing reads; none where a value is wrong by itself."""
    if any(mistakes(Case, data, (), {})):
        return set()
    return {keys for keys, _ in unread(convert(data, Case), True)}


# --------------------------------------------------------------------------------
# Where files lie


def working_folder() -> str:
    """What relative paths of a command line are relative to. Raises CaseError where it has been removed."""
    try:
        return os.getcwd()
    except OSError as error:
        said = error.strerror or error
        raise CaseError(f"working directory: {said}; one that is there would be right") from None


def _locate(case: Case, folder: str, places: Places) -> tuple[Case, list[str]]:
    """The case with absolute paths, and what was not found."""
    errors: list[str] = []

    def base(keys: Keys) -> str:
        return working_folder() if places.get(keys) == COMMAND_LINE else folder

    def located(graphs: GraphCase, keys: Keys) -> GraphCase:
        found, missing = _files(graphs, base(keys))
        errors.extend(f"{where(keys, places)}: {mistake}" for mistake in missing)
        beside = {}
        for key in GRAPH_FILES:
            name, at = getattr(graphs, key), (*keys[:-1], key)
            if name and name != WORDS.get(key):
                beside[key] = _absolute(name, base(at))
                if not (os.path.isfile(beside[key]) or (key == "splits" and os.path.isdir(beside[key]))):
                    errors.append(f"{where(at, places)}: no such file: {show(name)}{foreign(name)}")
        return structs.replace(graphs, path=found, **beside)

    graph = located(case.graph, ("graph", "path"))
    train, policy, study = case.train, case.policy, case.study
    for key in ("graphs", "held_back"):
        if (table := getattr(train, key)) is not None:
            train = structs.replace(train, **{key: located(table, ("train", key, "path"))})
    if policy.weights not in ("", "default", "train"):
        policy = structs.replace(policy, weights=_absolute(policy.weights, base(("policy", "weights"))))
    tables = {name: getattr(case, name) for name, _ in FILES}
    for table, key in FILES:
        name = getattr(tables[table], key)
        if name and not (key == "start" and name in STARTS):
            path = _absolute(name, base((table, key)))
            tables[table] = structs.replace(tables[table], **{key: path})
            if not os.path.isfile(path):
                errors.append(f"{where((table, key), places)}: no such file: {show(name)}{foreign(name)}")
    root = os.environ.get("LOCKSTEP_DATA", "") if case.run.task == "study" else ""
    study, mistakes_of_study = _locate_study(study, root, base)
    errors += mistakes_of_study
    changed = {"train": train, "policy": policy, "study": study, **tables}
    return structs.replace(case, graph=graph, **changed), errors


def _locate_study(study: StudyCase, root: str, base: Callable[[Keys], str]) -> tuple[StudyCase, list[str]]:
    """The study with absolute paths, and what is wrong with them.

    root   LOCKSTEP_DATA, the folder of what no key names     base   the folder that the path of a key is in
    """
    found, errors = {}, []
    if root and is_plain(root):
        below = {"data": "covers", "catalogue": "catalogue.toml"}
        found = {key: _absolute(os.path.join(root, name), working_folder()) for key, name in below.items()}
    elif root and not study.data:
        errors.append(f"LOCKSTEP_DATA: {not_plain(root)}")
    for key in ("data", "catalogue"):
        if name := getattr(study, key):
            found[key] = _absolute(name, base(("study", key)))
    datasets = [_absolute(each, root or base(("study", "datasets"))) for each in study.datasets]
    return structs.replace(study, datasets=datasets, **found), errors


def _absolute(name: str, base: str) -> str:
    """The absolute path; links in its folders are resolved, a link in the last place keeps its name."""
    folder, last = os.path.split(os.path.join(base, name).rstrip("/") or "/")
    if last in ("", ".", ".."):
        return os.path.realpath(os.path.join(folder, last))
    return os.path.join(os.path.realpath(folder), last)


def _files(graphs: GraphCase, base: str) -> tuple[list[str], list[str]]:
    """The files that graph.path names, globs expanded and sorted; and the mistakes in it."""
    found, wrong = [], []
    for pattern in [graphs.path] if isinstance(graphs.path, str) else graphs.path:
        if pattern.startswith("networkx:"):
            found.append(pattern)
            continue
        exact = os.path.join(base, pattern)
        there = partial(_is_graph, graphs.format)
        matches = [exact] if there(exact) else glob.glob(pattern, root_dir=base, recursive=True)
        files = sorted(_absolute(each, base) for each in matches if there(os.path.join(base, each)))
        if not files and pattern:
            problem = "is a folder:" if os.path.isdir(exact) else "no such file:"
            problem = "no file matches" if glob.has_magic(pattern) else problem
            wrong.append(f"{problem} {show(pattern)}{foreign(pattern)}")
        wrong += [f"the name {not_plain(each)}" for each in files if not is_plain(each)]
        found += files
    return found, wrong


def _is_graph(format: str, path: str) -> bool:
    """Whether a path is there as a graph of a format is: a file or a folder; of PPI either."""
    if format not in GRAPH_FOLDERS:
        return os.path.isfile(path)
    part = format in GRAPH_BESIDE and path.endswith(GRAPH_BESIDE[format][0])
    return os.path.isdir(path) or (part and os.path.isfile(path))
