"""Trials of a tuning: which settings of [gnn] are tried, from the lists and ranges that study.vary names."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.case.gnn import GnnCase
from app.errors import CaseError
from app.gnn.model import check_layers
from app.gnn.watch import watched_score
from app.rng import stream
from app.tasks.studies.gnn_subjects import check_network, with_settings
from app.text import printable, shorten, show

NUMBER = r"(-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
RANGE = re.compile(rf"{NUMBER}\.\.{NUMBER}", re.ASCII)
UNREAD = re.compile(r"gnn\.(\w+): is not read")
MOST_TRIALS = 10_000
DRAWS = 20  # of a trial, before it is left out for want of another one that is new
# Keys of the data, of what is compared by, of no word, of what no study reads.
FIXED = ("level", "goal", "watch", "weights", "layers", "baselines")
DIGITS = 3  # of a number drawn from a wide range


@dataclass(frozen=True)
class Varied:
    """A key of [gnn] and what it is tried with.

    values   as TOML writes them, or words     ends   of a range, from which values are drawn; None: a list
    """

    key: str
    values: tuple[str, ...]
    ends: tuple[float, float] | None = None

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
        value = min(max(float(f"{value:.{digits}g}"), low), high)
        return str(round(value)) if isinstance(getattr(GnnCase(), self.key), int) else repr(value)


@dataclass(frozen=True)
class Trial:
    """Settings that are tried together.

    settings   by key, as they were written; keys that no layer reads are left out
    """

    number: int
    settings: dict[str, str]
    gnn: GnnCase

    @property
    def name(self) -> str:
        """The settings in a line."""
        return " ".join(f"{key}={value}" for key, value in self.settings.items()) or "as it is"


def make_trials(case: Case) -> list[Trial]:
    """All combinations of study.vary, or study.trials of them drawn by the case's seed; each once.

    Raises CaseError where one could not be trained, or a key is read by none
    """
    varied = [_varied(text) for text in case.study.vary]
    _refuse_varied(case, varied)
    found: dict[bytes, Trial] = {}
    asked = [(each.key, value) for each in varied if (value := _asked_of(case, each)) is not None]
    unread: list[set[str]] = []
    for settings in _combinations(case, varied):
        gnn, left_out = _network(case, settings, asked)
        unread.append(left_out)
        if (same := msgspec.json.encode(gnn)) not in found:
            kept = {key: value for key, value in settings.items() if key not in left_out}
            found[same] = Trial(len(found) + 1, kept, gnn)
    for key in sorted(set.intersection(*unread)):
        what = "study.vary" if key in {each.key for each in varied} else f"gnn.{key}"
        named = f"{key} is" if what == "study.vary" else "is"
        raise CaseError(f"{what}: {named} not read by any of the trials; leave it out")
    return list(found.values())


def _varied(text: str) -> Varied:
    """A key and its values from a line of study.vary. Raises CaseError."""
    key, *values = text.split() or [""]
    place = f"study.vary: {show(text)}"
    known = GnnCase.__struct_fields__
    if key not in known or key in FIXED:
        fixed = "is not tried" if key in known else "is no key of [gnn]"
        raise CaseError(f'{place}: {show(key)} {fixed}; "KEY VALUE VALUE ..." would be right')
    if len(values) == 1 and (ends := RANGE.fullmatch(values[0])):
        if isinstance(usual := getattr(GnnCase(), key), bool) or not isinstance(usual, int | float):
            raise CaseError(f"{place}: {key} has no range; its values one by one would be right")
        return Varied(key, (ends[1], ends[2]), _ends(place, ends[1], ends[2]))
    if len(values) < 2 or len(set(values)) < len(values):
        raise CaseError(f"{place}: at least two values, each once, or a range A..B would be right")
    return Varied(key, tuple(values))


def _ends(place: str, low: str, high: str) -> tuple[float, float]:
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


def _asked_of(case: Case, varied: Varied) -> Any:
    """A value of a key that is not its default, which layers that do not read it refuse; None of none."""
    values = varied.values if varied.ends is None else varied.values[1:]
    for text in values:
        value = getattr(with_settings(case.gnn, {varied.key: text}, "study.vary"), varied.key)
        if value != getattr(GnnCase(), varied.key):
            return value
    return None


def _network(case: Case, settings: dict[str, str], asked: list[tuple[str, Any]]) -> tuple[GnnCase, set[str]]:
    """[gnn] with settings of a trial, and the keys that its layers do not read, at their defaults.

    asked   keys that are varied, each with a value that is not its default
    """
    place = "study.vary: " + " ".join(f"{key}={_shown(value)}" for key, value in settings.items())
    gnn, left_out = with_settings(case.gnn, settings, place), set[str]()
    while unread := next(_unread(gnn, asked), ""):
        left_out.add(unread)
        gnn = msgspec.structs.replace(gnn, **{unread: getattr(GnnCase(), unread)})
        asked = [(key, value) for key, value in asked if key != unread]
    if said := _refusal(gnn):
        raise CaseError(f"{place}: {said}")
    check_network(case, gnn, place)
    return gnn, left_out


def _shown(value: str) -> str:
    """A value as it was written, fit to be printed."""
    return shorten(printable(value))


def _unread(gnn: GnnCase, asked: list[tuple[str, Any]]) -> Iterator[str]:
    """Keys that layers do not read: of the table itself, and of those asked for."""
    if found := UNREAD.match(_refusal(gnn)):
        yield found[1]
    for key, value in asked:
        found = UNREAD.match(_refusal(msgspec.structs.replace(gnn, **{key: value})))
        if found and found[1] == key:
            yield key


def _refusal(gnn: GnnCase) -> str:
    """Why layers do not take a table; "" where they do."""
    try:
        check_layers(gnn)
    except CaseError as error:
        return str(error)
    return ""
