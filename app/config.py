"""The case: TOML text -> frozen structs. The only home of key names, defaults, ranges and their meaning.

A case is read in four moves: `tomllib` parses the file, the overrides of the command line are laid over it,
every key is checked against the structs below (all mistakes are reported together, each with its line), and
the paths are made absolute. Nothing here imports NumPy or MPI: a mistake is reported before they load.
"""

import difflib
import glob
import hashlib
import math
import os
import re
import textwrap
import tomllib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import NODEFAULT, Meta, Struct, ValidationError, convert, field, structs
from msgspec import inspect as kinds

from app.errors import CaseError

# --------------------------------------------------------------------------------
# The tables. One line per key: type and range, meaning with its unit, default.


def about(description: str) -> Meta:
    """The meaning of a key, as --help prints it."""
    return Meta(description=description)


Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Amount = Annotated[float, Meta(ge=0.0)]
AboveZero = Annotated[float, Meta(gt=0.0)]
BelowOne = Annotated[float, Meta(ge=0.0, lt=1.0)]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML table: immutable, strict."""


class RunCase(Table, frozen=True):
    """What to do, where to write, on what device."""

    name: Annotated[str, about('name of the run; "": the case file\'s name without .toml')] = ""
    out: Annotated[str, about('output folder, relative to the working directory; "": runs/NAME')] = ""
    task: Annotated[
        Literal["train", "solve", "study"],
        about("train: learn a policy; solve: answer the problem on [graph]; study: run a grid of both"),
    ] = "solve"
    reproducible: Annotated[bool, about("the same bits on any number of ranks")] = True
    portable: Annotated[bool, about("the same bits on other processors too: no BLAS, slower")] = False
    device: Annotated[Literal["auto", "cpu", "gpu"], about("auto: the GPU where there is one")] = "auto"
    check_every: Annotated[Count, about("gradient steps between comparisons of the weights; 0: off")] = 500


class GraphCase(Table, frozen=True):
    """Graphs: read from files, generated, or both (the files come first)."""

    path: Annotated[str | list[str], about('a file, a glob, "networkx:NAME", or a list of these')] = []
    format: Annotated[
        Literal["auto", "edges", "matrix_market", "metis", "dimacs", "npz"],
        about("of the files; auto: by the ending and the first lines"),
    ] = "auto"
    generator: Annotated[
        Literal["", "er", "ba", "mixed"], about("er: Erdos-Renyi; ba: Barabasi-Albert; mixed: by turns")
    ] = ""
    nodes: Annotated[int | tuple[int, int], about("of a generated graph, or drawn from [lo, hi]")] = 0
    p: Annotated[Share, about("er: probability of an edge")] = 0.15
    d: Annotated[Positive, about("ba: edges that each new node brings")] = 4
    count: Annotated[Positive, about("generated graphs")] = 1
    generator_seed: Annotated[int, Meta(ge=-1), about("seed of the generator; -1: the case's seed")] = -1
    complement: Annotated[bool, about("use the complement graph (small graphs only)")] = False
    self_loops: Annotated[Literal["drop", "error"], about("in a file; drop: count and ignore them")] = "drop"
    duplicates: Annotated[Literal["merge", "error"], about("an edge given twice; merge: keep one")] = "merge"


class ProblemCase(Table, frozen=True):
    """The optimisation problem."""

    name: Annotated[str, about("mvc: minimum vertex cover")] = "mvc"


class PolicyCase(Table, frozen=True):
    """The Q-network: structure2vec embedding and evaluation head (Khalil et al. 2017)."""

    model: Annotated[Literal["structure2vec"], about("the embedding network")] = "structure2vec"
    weights: Annotated[
        str,
        about('"default": shipped with the program; "train": train first, by [agent] and [train]; or a file'),
    ] = "default"
    features: Annotated[
        Literal["scale_free", "paper"], about("node inputs; scale_free: independent of the graph's size")
    ] = "scale_free"
    layers: Annotated[int, Meta(ge=1, le=16), about("rounds of message passing")] = 2
    dimension: Annotated[int, Meta(ge=1, le=1024), about("numbers per node in the embedding")] = 16
    head: Annotated[
        Literal["separate", "mixing"], about("separate: graph and node parts meet after relu; mixing: before")
    ] = "separate"
    hidden: Annotated[int, Meta(ge=1, le=4096), about("width of the mixing head's hidden layer")] = 32
    shared_layers: Annotated[bool, about("one set of weights for all layers")] = False
    self_weight: Annotated[bool, about("a separate weight for the node's own embedding")] = True
    mean_degree: Annotated[bool, about("divide neighbour sums by the mean residual degree")] = True
    edge_weights: Annotated[bool, about("use edge weights as an input")] = False


class AgentCase(Table, frozen=True):
    """The deep Q-learning agent."""

    learning_rate: Annotated[AboveZero, about("step size of Adam")] = 1e-3
    discount: Annotated[Share, about("weight of the next step's value")] = 0.5
    n_step: Annotated[int, Meta(ge=1, le=100), about("environment steps summed in a target")] = 1
    batch: Annotated[Positive, about("transitions per gradient step")] = 16
    gradient_steps: Annotated[int, Meta(ge=0, le=64), about("per environment step")] = 1
    replay: Annotated[
        Literal["episodes", "bits"], about("what is kept: the actions, or every state's node bits")
    ] = "episodes"
    replay_capacity: Annotated[Positive, about("transitions kept")] = 50_000
    warmup: Annotated[Count, about("transitions before the first gradient step")] = 64
    double: Annotated[bool, about("double Q-learning: choose with one network, value with the other")] = False
    target_every: Annotated[Positive, about("gradient steps between copies to the target network")] = 200
    epsilon_start: Annotated[Share, about("exploration rate at the first step")] = 0.9
    epsilon_end: Annotated[Share, about("exploration rate after the decay")] = 0.1
    epsilon_decay_steps: Annotated[Positive, about("environment steps of the linear decay")] = 10_000
    shaping: Annotated[
        Literal["caro_wei", "none"], about("caro_wei: add the change of the Caro-Wei bound to the reward")
    ] = "caro_wei"
    reward_scale: Annotated[
        Literal["one", "nodes"], about("nodes: divide rewards by the number of nodes")
    ] = "one"
    loss: Annotated[Literal["squared", "huber"], about("of the TD error")] = "squared"
    adam_beta1: Annotated[BelowOne, about("decay of Adam's mean")] = 0.9
    adam_beta2: Annotated[BelowOne, about("decay of Adam's mean square")] = 0.999
    adam_epsilon: Annotated[AboveZero, about("added to Adam's denominator")] = 1e-8


class TrainCase(Table, frozen=True):
    """The training run."""

    steps: Annotated[Positive, about("environment steps")] = 10_000
    environments: Annotated[Positive, about("episodes advanced together")] = 1
    evaluate_every: Annotated[Positive, about("environment steps between evaluations")] = 500
    evaluate_graphs: Annotated[Count, about("graphs held back for evaluation")] = 20
    environment: Annotated[
        Literal["degree", "scan"], about("scan: the paper's edge scan (section 4.4), for comparison only")
    ] = "degree"
    graphs: Annotated[GraphCase | None, about("training graphs; absent: those of [graph]")] = None


class SelectCase(Table, frozen=True):
    """How many nodes one evaluation of the policy decides."""

    rule: Annotated[str, about("single: the best node; other rules take several at once")] = "single"
    fraction: Annotated[
        float, Meta(gt=0.0, le=1.0), about("largest share of the nodes taken at once, for rules that use it")
    ] = 0.02


class SearchCase(Table, frozen=True):
    """What happens around the policy's solution."""

    drop_redundant: Annotated[bool, about("drop chosen nodes that the solution does not need")] = True
    baselines: Annotated[bool, about("also run the classical heuristics, for comparison")] = True
    bounds: Annotated[bool, about("prove how far from optimal the answer can be")] = True


class ParallelCase(Table, frozen=True):
    """How ranks share the work; no key here changes a result."""

    exchange: Annotated[
        Literal["auto", "gather", "halo"], about("gather: all rows to all ranks; halo: only the rows needed")
    ] = "auto"
    transport: Annotated[
        Literal["auto", "direct", "staged"], about("direct: device memory to MPI; staged: through the host")
    ] = "auto"
    partition: Annotated[
        Literal["rows", "edges"], about("what the cuts give every rank an equal share of")
    ] = "edges"


class MemoryCase(Table, frozen=True):
    """Limits; no key here changes a result."""

    whole_graph_mb: Annotated[
        Amount, about("largest graph brought to one rank, MB; beyond it bounds and baselines are skipped")
    ] = 4096.0
    max_decompressed_gb: Annotated[AboveZero, about("largest input file once decompressed, GB")] = 64.0


class OutputCase(Table, frozen=True):
    """What is written."""

    solutions: Annotated[bool, about("write solution/NAME.txt for each graph")] = True
    plots: Annotated[bool, about("draw the plots, where matplotlib is installed")] = True
    log_seconds: Annotated[Amount, about("time between progress lines, s")] = 2.0


class StudyCase(Table, frozen=True):
    """The grid of a study."""

    kind: Annotated[Literal["quality"], about("quality: approximation ratio by graph size")] = "quality"
    families: Annotated[list[str], Meta(min_length=1), about("graph families: er, ba")] = field(
        default_factory=lambda: ["ba", "er"]
    )
    seeds: Annotated[list[Count], Meta(min_length=1), about("one training per seed")] = field(
        default_factory=lambda: [1, 2, 3]
    )
    recipes: Annotated[list[str], Meta(min_length=1), about("settings compared: default, paper")] = field(
        default_factory=lambda: ["default", "paper"]
    )
    steps: Annotated[Positive, about("environment steps of each training")] = 10_000
    sizes: Annotated[list[Positive], Meta(min_length=1), about("nodes of the test graphs")] = field(
        default_factory=lambda: [50, 100, 150, 200, 250]
    )
    graphs_per_size: Annotated[Positive, about("test graphs of each size")] = 20
    data: Annotated[
        str, about('folder with ba.npz, er.npz; "": $LOCKSTEP_DATA/covers where set, else generated')
    ] = ""


class Case(Table, frozen=True):
    """The whole input, the same on all ranks."""

    seed: Annotated[Count, about("every random draw follows from it")] = 0
    run: RunCase = RunCase()
    graph: GraphCase = GraphCase()
    problem: ProblemCase = ProblemCase()
    policy: PolicyCase = PolicyCase()
    agent: AgentCase = AgentCase()
    train: TrainCase = TrainCase()
    select: SelectCase = SelectCase()
    search: SearchCase = SearchCase()
    parallel: ParallelCase = ParallelCase()
    memory: MemoryCase = MemoryCase()
    output: OutputCase = OutputCase()
    study: StudyCase = field(default_factory=StudyCase)


# --------------------------------------------------------------------------------
# Reading a case

Keys = tuple[str, ...]  # ("train", "steps")
Places = dict[Keys, str]  # where a key was set: "line 4" or "command line"
COMMAND_LINE = "command line"
VERSION = "0.1.0"
LARGEST_FILE = 1 << 18  # bytes; a case file is written by hand
LONGEST_KEY = 200  # characters of an override's key
DEEPEST = 4  # parts of a key whose line is kept; the tables are three deep


def load(path: str, overrides: list[str]) -> Case:
    """The case of a file with the overrides `section.key=value` laid over it.

    Raises CaseError with every mistake that was found. Paths in the result are absolute (run.out apart, which
    stays relative to the working directory), graph.path is a list of files, run.name is filled in.
    """
    data, places = _read(path)
    for keys, value in _parse_overrides(overrides):
        _lay_over(data, places, keys, value)
    _last_source_wins(data, places)
    _refuse(path, list(_mistakes(Case, data, (), places)))
    case = convert(data, Case)
    try:
        located, missing = _locate(case, path, places)
    except OSError as error:
        raise CaseError(f"{printable(path)}: cannot look for its files: {error.strerror}") from None
    _refuse(path, [*_conflicts(case, places), *missing])
    return located


def _refuse(path: str, errors: list[str]) -> None:
    """Raise one CaseError for all mistakes, if there are any."""
    if len(errors) == 1:
        raise CaseError(f"{printable(path)}: {errors[0]}")
    if errors:
        raise CaseError(f"{printable(path)}: {len(errors)} mistakes\n  " + "\n  ".join(errors))


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
        return tomllib.loads(text), _Lines(text).places
    except (ValueError, RecursionError) as error:
        raise CaseError(f"{shown}: {_syntax_message(error)}") from None


def _syntax_message(error: Exception) -> str:
    """tomllib's message with the place in front."""
    if isinstance(error, RecursionError):
        return "not a case file: nested too deeply"
    message = printable(str(error))
    found = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", message)
    return f"{found[2]}: not valid TOML: {found[1]}" if found else f"not valid TOML: {message}"


class _Lines:
    """Where each key of a valid TOML text is set: a scan for keys that steps over the values."""

    KEY: ClassVar = {
        end: re.compile(rf"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^{end}"'])*""") for end in ("=", "\\]")
    }
    BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
    SCALAR = re.compile(
        r'''"""(?:[^\\]|\\.)*?"{3,5}|"(?:[^"\\]|\\.)*"|'''
        r"""'''.*?'{3,5}|'[^']*'|[^\[\]{},\n"'#]+""",
        re.DOTALL,
    )

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.line, self.counted = 1, 0
        self.places: Places = {}
        table: Keys = ()
        while self._next():
            if self._next() == "[":
                brackets = 2 if text.startswith("[[", self.at) else 1
                self.at += brackets
                table = self._key((), "\\]")
                self.at += brackets
            else:
                self._setting(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Step over what the pattern matches, and return it."""
        found = pattern.match(self.text, self.at)
        self.at = found.end()
        return found[0]

    def _next(self) -> str:
        """The next character that is neither blank nor in a comment; "" at the end."""
        self._skip(self.BLANK)
        return self.text[self.at : self.at + 1]

    def _key(self, table: Keys, end: str) -> Keys:
        """Read a dotted key up to `end`, and note its line."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        path = table + _dotted(self._skip(self.KEY[end]))
        for length in range(1, min(len(path), DEEPEST) + 1):
            self.places.setdefault(path[:length], f"line {self.line}")
        return path

    def _setting(self, table: Keys) -> None:
        """Step over "key = value"."""
        path = self._key(table, "=")
        self.at += 1
        self._value(path)

    def _value(self, path: Keys) -> None:
        """Step over a value; the keys of inline tables are noted on the way."""
        opening = self._next()
        if opening not in ("[", "{"):
            self._skip(self.SCALAR)
            return
        self.at += 1
        while (character := self._next()) not in ("]", "}"):
            if character == ",":
                self.at += 1
            elif opening == "{":
                self._setting(path)
            else:
                self._value(path)
        self.at += 1


def _dotted(text: str) -> Keys:
    """The parts of a dotted TOML key, quotes removed."""
    node, parts = tomllib.loads(f"{text.strip()} = 0"), []
    while isinstance(node, dict):
        if len(node) != 1:
            raise ValueError("more than one key")
        ((part, node),) = node.items()
        parts.append(part)
    return tuple(parts)


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
    """`train.steps=2000` -> (("train", "steps"), 2000)."""
    shown = shorten(printable(text))
    key, equals, value = text.partition("=")
    try:
        keys = _dotted(key) if equals and "\n" not in key and len(key) < LONGEST_KEY else ()
    except (ValueError, RecursionError):
        keys = ()
    if not 0 < len(keys) <= DEEPEST:
        raise CaseError(f"{shown} ({COMMAND_LINE}): must be section.key=value, such as train.steps=2000")
    try:
        parsed = tomllib.loads(f"value = {value}")
        if set(parsed) != {"value"}:
            raise ValueError
    except (ValueError, RecursionError):
        quoted = shorten(printable(f"{key}={toml_value(value)}"))
        raise CaseError(
            f"{shown} ({COMMAND_LINE}): not a TOML value; text needs quotes: '{quoted}'"
        ) from None
    return keys, parsed["value"]


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
        if not isinstance(table, dict) or not (table.get("path") and table.get("generator")):
            continue
        from_file = [key for key in ("path", "generator") if places.get((*keys, key)) != COMMAND_LINE]
        if len(from_file) == 1:
            table[from_file[0]] = ""


# --------------------------------------------------------------------------------
# Checking: every mistake is one line with the key, its place, what is right, and what was found

GRAPH_TABLES: tuple[Keys, ...] = (("graph",), ("train", "graphs"))


def _mistakes(table: type[Table], data: dict[str, Any], above: Keys, places: Places) -> Iterator[str]:
    """The unknown keys, wrong types and values out of range of one table and those in it."""
    known = {each.name: each.type for each in structs.fields(table)}
    for key, value in data.items():
        keys = (*above, key)
        if key not in known:
            unknown = f"unknown {'table' if _is_table(value) else 'key'} {_spell(keys, value)}"
            yield f"{unknown}{_place(keys, places)}: {_suggestion(table, keys, value)}"
        elif (inner := _table_of(known[key])) is None:
            mistake = _value_mistake(known[key], value)
            if mistake:
                yield f"{_name(keys)}{_place(keys, places)}: {mistake}"
        elif isinstance(value, dict):
            yield from _mistakes(inner, value, keys, places)
        else:
            yield f"{_name(keys)}{_place(keys, places)}: must be a table, got {show(value)}"


def _value_mistake(kind: object, value: object) -> str | None:
    """What is wrong with one value, or None."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, float) and not math.isfinite(item):
            return f"must be a finite number, got {show(item)}"
        if isinstance(item, int) and abs(item) >= 1 << 63:
            return f"must be a number of at most 64 bits, got {show(item)}"
        if isinstance(item, str) and not _is_plain(item):
            return f"must be text without control characters, got {show(item)}"
    try:
        convert(value, kind)
    except ValidationError as error:
        info = _bare(kinds.type_info(kind))
        if isinstance(value, list) and isinstance(info, kinds.ListType) and " at `$[" in str(error):
            info = _bare(info.item_type)
            value = value[int(re.search(r"\$\[(\d+)\]", str(error))[1])]
        out_of_range = re.match(r"Expected `(int|float)` [<>]", str(error))
        return f"must be {_limits(info) if out_of_range else _expected(info)}, got {show(value)}"
    return None


def _is_plain(text: str) -> bool:
    """No control characters, no halves of a surrogate pair (bytes of an argument that are not UTF-8)."""
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text)


def _suggestion(table: type[Table], keys: Keys, value: object) -> str:
    """The nearest name of the same table, else of any table."""
    names = _tables() if _is_table(value) else [each for each, _, _ in _all_keys()]
    here = {each[-1]: each for each in names if each[:-1] == keys[:-1]}
    anywhere = {each[-1]: each for each in reversed(names)}
    for candidates, cutoff in ((here, 0.7), (anywhere, 0.7)):
        found = difflib.get_close_matches(keys[-1], candidates, n=1, cutoff=cutoff)
        if found:
            return f"did you mean {_spell(candidates[found[0]], value)}?"
    inside = ", ".join(each.name for each in structs.fields(table))
    return f"{_spell(keys[:-1], {}) if keys[:-1] else 'a case'} has {inside}"


def _table_of(kind: object) -> type[Table] | None:
    """The struct behind a key that is a table."""
    info = _bare(kinds.type_info(kind))
    options = info.types if isinstance(info, kinds.UnionType) else (info,)
    return next((each.cls for each in options if isinstance(each, kinds.StructType)), None)


def _bare(info: kinds.Type) -> kinds.Type:
    """The type under its description."""
    while isinstance(info, kinds.Metadata):
        info = info.type
    return info


def _expected(info: kinds.Type) -> str:
    """What a value of this type is, in words."""
    match _bare(info):
        case kinds.BoolType():
            return "true or false"
        case kinds.IntType() as number:
            return ", ".join(filter(None, ("a whole number", _limits(number))))
        case kinds.FloatType() as number:
            return ", ".join(filter(None, ("a number", _limits(number))))
        case kinds.StrType():
            return "text in quotes"
        case kinds.LiteralType(values):
            return ("one of " if len(values) > 1 else "") + ", ".join(
                toml_value(each) for each in sorted(values)
            )
        case kinds.ListType() as many:
            return f"a list{' of at least one' if many.min_length else ''}, each {_expected(many.item_type)}"
        case kinds.TupleType(item_types):
            return f"a list of {len(item_types)} whole numbers"
        case kinds.UnionType(types):
            return " or ".join(_expected(each) for each in types)
    raise TypeError(f"no words for {info}")


def _limits(info: kinds.IntType | kinds.FloatType) -> str:
    """The range of a number, in words; "" without one."""
    if info.ge is not None and info.le is not None:
        return f"from {info.ge:g} to {info.le:g}"
    words = {"at least": info.ge, "above": info.gt, "at most": info.le, "below": info.lt}
    return " and ".join(f"{word} {limit:g}" for word, limit in words.items() if limit is not None)


def _tables() -> list[Keys]:
    """The tables a case may have, in their order."""
    tops = [(each.name,) for each in structs.fields(Case) if _table_of(each.type)]
    return [keys for top in tops for keys in (top, *(each for each in GRAPH_TABLES if each[:-1] == top))]


def _all_keys() -> list[tuple[Keys, structs.FieldInfo, type[Table]]]:
    """Every key that has a value, with its field and its table."""
    found = [(("seed",), structs.fields(Case)[0], Case)]
    for keys in _tables():
        table: Any = Case
        for key in keys:
            table = _table_of(next(each.type for each in structs.fields(table) if each.name == key))
        found += [
            ((*keys, each.name), each, table) for each in structs.fields(table) if not _table_of(each.type)
        ]
    return found


def _name(keys: Keys) -> str:
    """`train.steps`, fit to be printed."""
    return shorten(printable(".".join(keys)))


def _is_table(value: object) -> bool:
    """A table, or the list of tables that [[name]] makes."""
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in value)
    )


def _spell(keys: Keys, value: object) -> str:
    """A key as `train.steps`, a table as `[train]`."""
    return f"[{_name(keys)}]" if _is_table(value) else _name(keys)


def _place(keys: Keys, places: Places) -> str:
    """ " (line 4)", or nothing where the key was not set."""
    return f" ({places[keys]})" if keys in places else ""


def show(value: object) -> str:
    """A value as it was found, short."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        inner = ["[...]" if isinstance(each, list) else show(each) for each in value[:8]]
        return "[" + ", ".join(inner + ["..."] * (len(value) > 8)) + "]"
    return shorten(toml_value(value))


def shorten(text: str, length: int = 80) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= length else f"{text[: length - 23]}...{text[-20:]}"


def printable(text: str) -> str:
    """The text in printable ASCII: everything else is escaped, so that no name can garble a terminal."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in text)


# --------------------------------------------------------------------------------
# Rules between keys, and where files lie


def _conflicts(case: Case, places: Places) -> Iterator[str]:
    """Keys that are right one by one and wrong together."""
    for keys, graphs in zip(GRAPH_TABLES, (case.graph, case.train.graphs)):
        if graphs is not None:
            for key, mistake in _graph_conflicts(graphs):
                yield f"{_name((*keys, key))}{_place((*keys, key), places)}: {mistake}"
    trains = case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")
    trained = case.train.graphs or case.graph
    if case.run.task == "solve" and not (case.graph.path or case.graph.generator):
        yield 'run.task = "solve" needs graphs: set graph.path or graph.generator'
    if trains and not (
        trained.path or trained.generator or (trained is case.graph and case.run.task == "solve")
    ):
        yield "training needs graphs: set train.graphs.path or train.graphs.generator, or those of [graph]"
    agent, run = case.agent, case.run
    for wrong, keys, mistake in (
        (
            agent.epsilon_end > agent.epsilon_start,
            ("agent", "epsilon_end"),
            f"must be at most agent.epsilon_start = {agent.epsilon_start}, got {agent.epsilon_end}",
        ),
        (
            agent.warmup > agent.replay_capacity,
            ("agent", "warmup"),
            f"must be at most agent.replay_capacity = {agent.replay_capacity}, got {agent.warmup}",
        ),
        (run.portable and not run.reproducible, ("run", "portable"), "needs run.reproducible = true"),
        (
            "/" in run.name or "\\" in run.name or run.name in (".", ".."),
            ("run", "name"),
            f"must be the name of a folder, without slashes, got {show(run.name)}",
        ),
        (not case.policy.weights, ("policy", "weights"), 'must be "default", "train" or a file, got ""'),
    ):
        if wrong:
            yield f"{_name(keys)}{_place(keys, places)}: {mistake}"


def _graph_conflicts(graphs: GraphCase) -> Iterator[tuple[str, str]]:
    """(key, mistake) within one table of graphs."""
    lo, hi = (graphs.nodes, graphs.nodes) if isinstance(graphs.nodes, int) else graphs.nodes
    if lo < 0 or hi < 0:
        yield "nodes", f"must be at least 1, got {min(lo, hi)}"
    elif lo > hi:
        yield "nodes", f"must be [lo, hi] with lo at most hi, got [{lo}, {hi}]"
    elif graphs.generator and lo == 0:
        yield "nodes", f'must be at least 1 for generator = "{graphs.generator}", got 0'
    elif graphs.generator in ("ba", "mixed") and graphs.d >= lo:
        yield "d", f"must be below the number of nodes ({lo}), got {graphs.d}"


def _locate(case: Case, path: str, places: Places) -> tuple[Case, list[str]]:
    """The case with absolute paths and its name filled in, and what was not found."""
    errors: list[str] = []
    beside = os.path.dirname(os.path.abspath(path))

    def base(keys: Keys) -> str:
        return os.getcwd() if places.get(keys) == COMMAND_LINE else beside

    def located(graphs: GraphCase, keys: Keys) -> GraphCase:
        found, missing = _files(graphs, base(keys))
        errors.extend(f"{_name(keys)}{_place(keys, places)}: {mistake}" for mistake in missing)
        return structs.replace(graphs, path=found)

    graph = located(case.graph, ("graph", "path"))
    train, policy, study, run = case.train, case.policy, case.study, case.run
    if train.graphs is not None:
        train = structs.replace(train, graphs=located(train.graphs, ("train", "graphs", "path")))
    if policy.weights not in ("", "default", "train"):
        policy = structs.replace(policy, weights=_absolute(policy.weights, base(("policy", "weights"))))
    if study.data:
        study = structs.replace(study, data=_absolute(study.data, base(("study", "data"))))
    if not run.name:
        run = structs.replace(
            run, name=re.sub(r"[^\w.+=,@-]", "_", os.path.splitext(os.path.basename(path))[0])
        )
    return structs.replace(case, graph=graph, train=train, policy=policy, study=study, run=run), errors


def _absolute(name: str, base: str) -> str:
    """The absolute path; links in its folders are resolved, a link in the last place keeps its name."""
    folder, last = os.path.split(os.path.join(base, name).rstrip("/") or "/")
    if last in ("", ".", ".."):
        return os.path.realpath(os.path.join(folder, last))
    return os.path.join(os.path.realpath(folder), last)


def _files(graphs: GraphCase, base: str) -> tuple[list[str], list[str]]:
    """The files that graph.path names, globs expanded and sorted; and the mistakes in it."""
    found, mistakes = [], []
    for pattern in [graphs.path] if isinstance(graphs.path, str) else graphs.path:
        if pattern.startswith("networkx:"):
            found.append(pattern)
            continue
        exact = os.path.join(base, pattern)
        matches = [exact] if os.path.isfile(exact) else glob.glob(pattern, root_dir=base, recursive=True)
        files = sorted(_absolute(each, base) for each in matches if os.path.isfile(os.path.join(base, each)))
        if not files and pattern:
            problem = "is a folder:" if os.path.isdir(exact) else "no such file:"
            mistakes.append(f"{'no file matches' if glob.has_magic(pattern) else problem} {show(pattern)}")
        mistakes += [
            f"control characters in the name of {show(each)}" for each in files if not _is_plain(each)
        ]
        found += files
    return found, mistakes


def study_data(case: Case) -> str:
    """The folder with the study's graphs; "" where they are to be generated."""
    root = os.environ.get("LOCKSTEP_DATA", "")
    return case.study.data or (os.path.join(root, "covers") if root else "")


# --------------------------------------------------------------------------------
# Writing a case


def toml_value(value: object) -> str:
    """A value in TOML, in ASCII."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(_toml_character(c) for c in value)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    return str(value)


def _toml_character(c: str) -> str:
    """One character of a TOML string."""
    if c in '"\\':
        return f"\\{c}"
    if " " <= c <= "~":
        return c
    return f"\\u{ord(c):04X}" if ord(c) < 1 << 16 else f"\\U{ord(c):08X}"


def to_toml(case: Case) -> str:
    """The case with every key and its value; loading the text gives an equal case."""
    lines = [f"seed = {case.seed}"]
    for keys in _tables():
        table: Any = case
        for key in keys:
            table = getattr(table, key)
        if table is None:
            lines += ["", f"# [{'.'.join(keys)}] is absent: the graphs of [graph]"]
            continue
        lines += ["", f"[{'.'.join(keys)}]"]
        for each in structs.fields(table):
            if _table_of(each.type) is None:
                lines.append(f"{each.name} = {toml_value(getattr(table, each.name))}")
    return "\n".join(lines) + "\n"


def case_digest(case: Case) -> str:
    """sha256 of all that can change the result.

    Left out: name and folder of the run, the device, [parallel], [memory] and [output]. Files count
    by their names without folders, so that a copy elsewhere has the same digest; their content has its own.
    """
    digested = structs.replace(
        case,
        run=structs.replace(case.run, name="", out="", device="auto"),
        graph=_without_folders(case.graph),
        train=structs.replace(case.train, graphs=case.train.graphs and _without_folders(case.train.graphs)),
        policy=structs.replace(case.policy, weights=os.path.basename(case.policy.weights)),
        study=structs.replace(case.study, data=os.path.basename(case.study.data)),
        parallel=ParallelCase(),
        memory=MemoryCase(),
        output=OutputCase(),
    )
    return hashlib.sha256(to_toml(digested).encode()).hexdigest()


def _without_folders(graphs: GraphCase) -> GraphCase:
    """The graphs with the last part of each path."""
    paths = [graphs.path] if isinstance(graphs.path, str) else graphs.path
    return structs.replace(graphs, path=[os.path.basename(each) for each in paths if each])


# --------------------------------------------------------------------------------
# Help

USAGE = """\
usage: mpirun -np N python run.py CASE.toml [section.key=value ...] [options]

Graph optimisation and graph learning in lockstep on any number of MPI ranks.
Without mpirun it runs on one rank.

  CASE.toml            the case file; inputs/ has one for each kind of work
  section.key=value    set a key of the case; the value is TOML, so text needs quotes:
                       train.steps=2000 'graph.path="a.mtx"'
  --out DIR            output folder; sets run.out (default: runs/NAME)
  --overwrite          write into an output folder that has results already
  --dry-run            check the case and the graphs, say what would be done, and stop
  --device DEVICE      auto, cpu or gpu; sets run.device
  --version            print the version
  --help               print this text

Paths in a case file are relative to that file, except run.out; run.out and paths on the
command line are relative to the working directory.

exit codes:
  0  complete
  1  any other error
  2  the case, the command line or an input file is wrong
  3  stopped early, with a valid checkpoint

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
    for keys, each, table in _all_keys():
        if keys[:-1] == GRAPH_TABLES[1]:
            continue
        if keys[:-1] != shown:
            shown = keys[:-1]
            yield from ("", f"[{shown[0]}]  {table.__doc__}")
        info = kinds.type_info(each.type)
        default = each.default if each.default is not NODEFAULT else each.default_factory()
        meaning = info.extra_json_schema["description"]
        yield f"  {each.name} = {toml_value(default)}"
        yield from _wrap(f"{meaning} ({_expected(info)})")
        if keys == ("train", "environment"):
            yield from ("", "[train.graphs]  The training graphs, with the keys of [graph]; absent: [graph].")


def _wrap(text: str) -> list[str]:
    """Indented lines of at most 100 columns."""
    return textwrap.wrap(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
