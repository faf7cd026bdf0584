"""Trials of a tuning: which settings of [gnn], and of [links] or [forecast], or of [rgcn], are tried, from
the lists and ranges that study.vary names."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import msgspec
import numpy as np

from app.case.check import mistakes
from app.case.config import Case, is_forecast
from app.case.conflicts import network_conflicts
from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.case.links import LinksCase
from app.case.rgcn import RgcnCase
from app.case.rules.forecasts import READ_BY_FORECASTS
from app.case.rules.networks import OF_RELATIONAL_LAYERS
from app.errors import CaseError
from app.gnn.model import check_layers
from app.gnn.rgcn.scorers import SCORERS
from app.gnn.watch import watched_score
from app.rng import stream
from app.tasks.studies.gnn_subjects import check_study_network, value_of_text
from app.text import printable, shorten, show

NUMBER = r"(-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
RANGE = re.compile(rf"{NUMBER}\.\.{NUMBER}", re.ASCII)
UNREAD = re.compile(r"gnn\.(\w+): is not read")
UNKNOWN = "gnn: unknown layer"
MOST_TRIALS = 10_000
DRAWS = 20  # of a trial, before it is left out for want of another one that is new
# Keys of the data, of what is compared by, of no word, of what no study reads.
FIXED = ("level", "goal", "watch", "weights", "layers", "baselines", "members")
OF_LINKS = ("dimension", "loss", "negatives")  # of [links], which say how pairs are scored and learned
# Of [rgcn], which say what a relational network is and how it learns, not what it learns or on which ranks.
OF_RGCN = (
    "hidden", "layers", "bases", "blocks", "inverse", "prune", "scorer", "loops", "dimension", "loss",
    "negatives", "candidates", "ask_relations", "margin", "n3", "epochs", "optimiser", "learning_rate",
    "schedule", "warmup", "dropout", "weight_decay", "evaluate_every", "patience", "keep",
)  # fmt: skip
OF_GOAL = {
    **dict.fromkeys(["scorer", "loops", "dimension", "loss", "negatives", "candidates"], "links"),
    **dict.fromkeys(["ask_relations", "margin", "n3"], "links"),
    **dict.fromkeys(["keep", "prune"], "classes"),
}
# Of [forecast], which say what a forecaster is and how it learns, not what it forecasts, or is judged by.
OF_FORECAST = ("model", "window", "hops", "batch", "steps", "loss", "normalise", "base", "ridge", "period")
# Tables by the prefix of a key; without one: GnnCase.
TABLES = {"links": LinksCase, "rgcn": RgcnCase, "forecast": ForecastCase}
Tables = tuple[GnnCase, LinksCase, RgcnCase, ForecastCase]
BETWEEN_LAYERS = ("hidden", "dropout")  # of [rgcn], which a single layer does not read
# Keys of [gnn] that decide which layers there are, hence which other keys are read.
STRUCTURE = ("model", "depth", "level", "layers", "readout_of")
# Keys of how layers are trained, which these take at any value (what they do not read is asked before).
TRAINED = (
    "epochs", "class_weights", "optimiser", "learning_rate", "schedule", "warmup", "clip", "weight_decay",
    "decayed", "evaluate_every", "patience", "keep", "watch", "input_dropout", "dropout",
)  # fmt: skip
DIGITS = 3  # of a number drawn from a wide range


@dataclass(frozen=True)
class Varied:
    """A key of [gnn], or "links." and one of [links], "rgcn." and one of [rgcn], "forecast." and one of
    [forecast], and what it is tried with.

    values   as TOML writes them, or words     ends   of a range, from which values are drawn; None: a list
    """

    key: str
    values: tuple[str, ...]
    ends: tuple[float, float] | None = None

    @property
    def usual(self) -> Any:
        """The default."""
        table, name = place_of(self.key)
        return getattr(table(), name)

    def drawn(self, draws: np.random.Generator) -> str:
        """A value at random: of a list each as likely; of a range evenly on a logarithmic scale, or evenly
        from 0; whole numbers of a key that has them."""
        if self.ends is None:
            return self.values[int(draws.integers(len(self.values)))]
        (low, high), share = self.ends, float(draws.random())
        if low > 0:
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            value = low + share * (high - low)
        digits = DIGITS + int(math.log10(high / (high - low)))
        return self._text(min(max(float(f"{value:.{digits}g}"), low), high))

    @property
    def tried(self) -> tuple[str, ...]:
        """Values that are right where all are but 0: those of a list, or the ends."""
        return self.values if self.ends is None else tuple(self._text(end) for end in self.ends if end)

    def _text(self, value: float) -> str:
        return str(round(value)) if isinstance(self.usual, int) else repr(value)


def place_of(key: str) -> tuple[type[Any], str]:
    """The table of a key of study.vary, and its name there."""
    table, _, name = key.rpartition(".")
    return TABLES.get(table, GnnCase), name


@dataclass(frozen=True)
class Trial:
    """Settings that are tried together.

    settings   by key, as they were written; keys that no layer reads are left out
    """

    number: int
    settings: dict[str, str]
    gnn: GnnCase
    links: LinksCase
    rgcn: RgcnCase
    forecast: ForecastCase

    @property
    def name(self) -> str:
        """The settings in a line."""
        return line_of(self.settings) or "as it is"

    def case_of(self, case: Case) -> Case:
        """A case with the settings."""
        tables = {"gnn": self.gnn, "links": self.links, "rgcn": self.rgcn, "forecast": self.forecast}
        return msgspec.structs.replace(case, **tables)


@dataclass
class Trials:
    """What a study tries, and by settings in a line what it cannot: why."""

    possible: list[Trial] = field(default_factory=list)
    impossible: dict[str, str] = field(default_factory=dict)


def line_of(settings: dict[str, str]) -> str:
    """Settings in a line, fit to be printed."""
    return " ".join(f"{key}={shorten(printable(value))}" for key, value in settings.items())


def make_trials(case: Case) -> Trials:
    """All combinations of study.vary, or study.trials of them drawn by the case's seed; each once.

    Raises CaseError where none could be trained, or a key is read by none
    """
    varied = [_varied(case, text) for text in case.study.vary]
    _refuse_varied(case, varied)
    networks, seen, found = _Networks(case, varied), set[bytes](), Trials()
    unread: list[set[str]] = []
    for settings in _combinations(case, varied):
        tables, left_out = networks.of(settings)
        unread.append(left_out)
        if (same := msgspec.json.encode(tables)) in seen:
            continue
        seen.add(same)
        kept = {key: value for key, value in settings.items() if key not in left_out}
        trial = Trial(len(found.possible) + 1, kept, *tables)
        if why := networks.refusal(trial):
            found.impossible[line_of(kept)] = why
        else:
            found.possible.append(trial)
    for key in sorted(set.intersection(*unread)):
        what = "study.vary" if key in {each.key for each in varied} else f"gnn.{key}"
        named = f"{key} is" if what == "study.vary" else "is"
        raise CaseError(f"{what}: {named} not read by any of the trials; leave it out")
    if not found.possible:
        name, why = next(iter(found.impossible.items()))
        raise CaseError(f"study.vary: {name}: {why}")
    return found


def _varied(case: Case, text: str) -> Varied:
    """A key and its values from a line of study.vary, each right by itself. Raises CaseError."""
    key, *values = text.split() or [""]
    place = f"study.vary: {show(text)}"
    _refuse_key(case, key, place)
    if len(values) == 1 and (ends := RANGE.fullmatch(values[0])):
        found = Varied(key, (ends[1], ends[2]))
        if isinstance(found.usual, bool) or not isinstance(found.usual, int | float):
            raise CaseError(f"{place}: {key} has no range; its values one by one would be right")
        return Varied(key, found.values, _ends(place, ends[1], ends[2]))
    if len(values) < 2 or len(set(values)) < len(values):
        raise CaseError(f"{place}: at least two values, each once, or a range A..B would be right")
    found = Varied(key, tuple(values))
    for value in values:
        checked = _checked(key, value)
        said = _refusal(GnnCase(model=checked)) if key == "model" else ""
        if said.startswith(UNKNOWN):
            raise CaseError(f"study.vary: {key}={value}: {said}")
    return found


def _refuse_key(case: Case, key: str, place: str) -> None:
    """Refuse what is not varied. Raises CaseError."""
    table, name = place_of(key)
    relational = case.gnn.model == "rgcn"
    if relational != (table is RgcnCase):
        right = 'a key "rgcn.KEY" of [rgcn]' if relational else 'gnn.model = "rgcn", whose keys these are,'
        raise CaseError(f"{place}: {right} would be right")
    if (case.gnn.level == "forecast" and not relational) or table is ForecastCase:
        _refuse_of_series(case, key, place)
    elif table is RgcnCase:
        _refuse_relational(case, name, place)
    elif table is LinksCase:
        if case.gnn.level != "link":
            raise CaseError(f'{place}: [links] is read by gnn.level = "link" alone; leave it out')
        if name not in OF_LINKS:
            fixed = "is not tried" if name in LinksCase.__struct_fields__ else "is no key of [links]"
            raise CaseError(f"{place}: {show(key)} {fixed}; {', '.join(OF_LINKS)} would be right")
    elif key not in GnnCase.__struct_fields__ or key in FIXED:
        fixed = "is not tried" if key in GnnCase.__struct_fields__ else "is no key of [gnn]"
        raise CaseError(f'{place}: {show(key)} {fixed}; "KEY VALUE VALUE ..." would be right')


def _refuse_of_series(case: Case, key: str, place: str) -> None:
    """Refuse what is not varied of forecasts. Raises CaseError."""
    table, name = place_of(key)
    if case.gnn.level != "forecast":
        raise CaseError(f'{place}: [forecast] is read by gnn.level = "forecast" alone; leave it out')
    if table is ForecastCase:
        section, tried = "forecast", OF_FORECAST
    else:
        section, tried = "gnn", tuple(each for each in READ_BY_FORECASTS["gnn"] if each not in FIXED)
    if name not in tried or table not in (ForecastCase, GnnCase):
        fixed = (
            "is not tried of forecasts" if name in table.__struct_fields__ else f"is no key of [{section}]"
        )
        raise CaseError(f"{place}: {show(key)} {fixed}; {', '.join(tried)} would be right")


def _refuse_relational(case: Case, name: str, place: str) -> None:
    """Refuse what is not varied of [rgcn]. Raises CaseError."""
    if name not in OF_RGCN:
        fixed = "is not tried" if name in RgcnCase.__struct_fields__ else "is no key of [rgcn]"
        raise CaseError(f"{place}: {show(f'rgcn.{name}')} {fixed}; {', '.join(OF_RGCN)} would be right")
    goal = OF_GOAL.get(name, case.rgcn.goal)
    if goal != case.rgcn.goal:
        raise CaseError(f'{place}: rgcn.{name} is read with rgcn.goal = "{goal}"; leave it out')


def _checked(key: str, text: str) -> Any:
    """A value as TOML writes it, of the type of its key and within its range. Raises CaseError."""
    table, name = place_of(key)
    value = value_of_text(text)
    section = key.partition(".")[0] if "." in key else "gnn"
    wrong = list(mistakes(table, {name: value}, (section,), {}))
    if wrong:
        raise CaseError(f"study.vary: {line_of({key: text})}: {'; '.join(wrong)}")
    return value


def _ends(place: str, low: str, high: str) -> tuple[float, float]:
    """The ends of a range A..B. Raises CaseError."""
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = math.nan, math.nan
    if not 0 <= ends[0] < ends[1] < math.inf:
        found = shorten(f"{low}..{high}")
        raise CaseError(f"{place}: found {found}; A..B with 0 <= A < B would be right")
    return ends


def _refuse_varied(case: Case, varied: list[Varied]) -> None:
    """Refuse a study without anything to try, or of more than can be listed. Raises CaseError."""
    study = case.study
    if not varied:
        raise CaseError('study.vary: must name what is tried, "KEY VALUE VALUE ...", got []')
    keys = [each.key for each in varied]
    for key in keys:
        if keys.count(key) > 1:
            raise CaseError(f"study.vary: found {key} twice; each once would be right")
    if study.datasets:
        raise CaseError(
            'study.datasets: is not read by study.kind = "tune", which is of [graph]; leave it out'
        )
    if "class_weights" in keys and watched_score(case.gnn, True) == "val_loss":
        raise CaseError(
            'study.vary: class_weights change the loss; gnn.watch = "macro_f1" would compare them'
        )
    ranges = [each.key for each in varied if each.ends]
    if ranges and not study.trials:
        raise CaseError(f"study.trials: must be at least 1 to draw from the range of {ranges[0]}, got 0")
    count = math.prod(len(each.values) for each in varied)
    if not study.trials and count > MOST_TRIALS:
        raise CaseError(f"study.vary: {count:,} combinations; study.trials would draw some of them")


def _combinations(case: Case, varied: list[Varied]) -> Iterator[dict[str, str]]:
    """Settings by key: all of them in the order of the lists, or as many draws as there are trials."""
    keys, trials = [each.key for each in varied], case.study.trials
    listed = not any(each.ends for each in varied)
    if listed and (not trials or math.prod(len(each.values) for each in varied) <= trials):
        for values in product(*(each.values for each in varied)):
            yield dict(zip(keys, values))
        return
    seen: set[tuple[str, ...]] = set()
    for number in range(trials):
        for attempt in range(DRAWS):
            draws = stream(case.seed, "trial", number * DRAWS + attempt)
            values = tuple(each.drawn(draws) for each in varied)
            if values not in seen:
                seen.add(values)
                yield dict(zip(keys, values))
                break


class _Networks:
    """[gnn], [links], [rgcn] and [forecast] with settings of trials; what is asked again is remembered."""

    def __init__(self, case: Case, varied: list[Varied]) -> None:
        self.case = case
        self._values: dict[tuple[str, str], Any] = {}
        self._unread: dict[bytes, set[str]] = {}
        self._refusals: dict[bytes, str] = {}
        usual, table = GnnCase(), case.gnn
        # By key a value that layers refuse which do not read it: at its default a key asks for nothing.
        self._asked = {k: getattr(table, k) for k in GnnCase.__struct_fields__ if k not in STRUCTURE}
        self._asked = {key: value for key, value in self._asked.items() if value != getattr(usual, key)}
        self._drawn = {each.key for each in varied if each.ends}
        for each in varied:
            values = [_checked(each.key, text) for text in each.tried]
            self._values |= {(each.key, text): value for text, value in zip(each.tried, values)}
            some = next((value for value in values if value != each.usual), None)
            if some is not None and place_of(each.key)[0] is GnnCase:
                self._asked[each.key] = some

    def of(self, settings: dict[str, str]) -> tuple[Tables, set[str]]:
        """The tables, and the keys that the layers do not read, which are at their defaults."""
        values: dict[Any, dict[str, Any]] = {table: {} for table in (GnnCase, *TABLES.values())}
        for key, text in settings.items():
            table, name = place_of(key)
            values[table][name] = self._value(key, text)
        if values[RgcnCase]:
            return self._relational(values[RgcnCase])
        if is_forecast(self.case) or values[ForecastCase]:
            return self._of_series(values)
        gnn = _replaced(self.case.gnn, values[GnnCase])
        unread = self._unread_of(gnn)
        gnn = _replaced(gnn, {key: getattr(GnnCase(), key) for key in unread}) if unread else gnn
        links = _replaced(self.case.links, values[LinksCase]) if values[LinksCase] else self.case.links
        return (gnn, links, self.case.rgcn, self.case.forecast), unread

    def _of_series(self, values: dict[Any, dict[str, Any]]) -> tuple[Tables, set[str]]:
        """The same of a forecaster."""
        gnn = _replaced(self.case.gnn, values[GnnCase])
        forecast = _replaced(self.case.forecast, values[ForecastCase])
        unread = set()
        if forecast.model != "temporal":
            unread |= {"depth"} & (self._asked.keys() | values[GnnCase].keys())
            gnn = _replaced(gnn, {"depth": GnnCase().depth})
        if forecast.base == "last":
            unread |= {f"forecast.{key}" for key in {"ridge"} & values[ForecastCase].keys()}
            forecast = _replaced(forecast, {"ridge": ForecastCase().ridge})
        return (gnn, self.case.links, self.case.rgcn, forecast), unread

    def _relational(self, values: dict[str, Any]) -> tuple[Tables, set[str]]:
        """The same of settings of [rgcn]."""
        rgcn = _replaced(self.case.rgcn, values)
        unread = BETWEEN_LAYERS if rgcn.layers <= 1 else ()
        unread += ("negatives",) if rgcn.loss == "softmax" else ("candidates",)
        by_distance = rgcn.loss == "sigmoid" and SCORERS[rgcn.scorer].distance
        unread += () if by_distance else ("margin",)
        unread += ("bases",) if rgcn.blocks or not rgcn.layers else ()
        unread += () if rgcn.layers else OF_RELATIONAL_LAYERS
        rgcn = _replaced(rgcn, {key: getattr(RgcnCase(), key) for key in unread})
        tables = self.case.gnn, self.case.links, rgcn, self.case.forecast
        return tables, {f"rgcn.{key}" for key in unread if key in values}

    def refusal(self, trial: Trial) -> str:
        """Why it cannot be trained; "" where it can."""
        wrong, gnn = list(network_conflicts(trial.case_of(self.case))), trial.gnn
        if wrong:
            return "; ".join(wrong)
        if gnn.model == "rgcn":
            return "" if trial.rgcn.epochs else "rgcn.epochs: must be at least 1 in a study, got 0"
        try:
            check_study_network(gnn)
        except CaseError as error:
            return str(error)
        if gnn.level == "forecast":
            return ""
        layers = msgspec.structs.replace(gnn, **{key: getattr(GnnCase(), key) for key in TRAINED})
        if (same := msgspec.json.encode(layers)) not in self._refusals:
            self._refusals[same] = _refusal(layers)
        return self._refusals[same]

    def _value(self, key: str, text: str) -> Any:
        """A value of a list, or a number between two ends, all of which have been checked."""
        if key in self._drawn:
            return (int(text) if text.isdecimal() else float(text)) or _checked(key, text)
        return self._values[key, text]

    def _unread_of(self, gnn: GnnCase) -> set[str]:
        """Keys that are asked for and that layers of this structure do not read."""
        structure = {key: getattr(gnn, key) for key in STRUCTURE}
        if (same := msgspec.json.encode(structure)) not in self._unread:
            found = set()
            for key, value in self._asked.items():
                said = UNREAD.match(_refusal(GnnCase(**structure | {key: value})))
                if said and said[1] == key:
                    found.add(key)
            self._unread[same] = found
        return self._unread[same]


def _replaced(table: Any, values: dict[str, Any]) -> Any:
    """A table with other values of the types of its keys."""
    return msgspec.convert({**msgspec.structs.asdict(table), **values}, type(table))


def _refusal(gnn: GnnCase) -> str:
    """Why layers do not take a table; "" where they do."""
    try:
        check_layers(gnn)
    except CaseError as error:
        return str(error)
    return ""
