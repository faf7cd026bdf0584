"""Tuning from Python: what `classify(..., vary={...})` returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from app.comm.grid import cut_grid
from app.errors import CaseError
from app.graphs.nodes.data import NodeData, no_labels
from app.partition.load import Loaded
from app.results import Classification
from app.tasks.context import Context
from app.tasks.studies.gnn_subjects import Subject
from app.tasks.studies.gnn_tune import best_of, digest_of, rows_of, tune
from app.tasks.studies.trials import Trial, make_trials
from app.text import counted, printable, shorten, show, toml_value


@dataclass(frozen=True)
class Tuning:
    """What settings were tried, and the network that was trained with the best ones.

    best        the Classification of a training with them and the seed of the call
    settings    the best ones, as {"gnn.hidden": 32, ...}, for the settings of a call
    trials      a row for each trial, the best first: settings, validation score (mean, sample standard
                deviation), seeds it was trained with
    score       what trials were compared by, in words
    test_mean, test_std   of the best settings over the seeds, by the words of `test_score`; test nodes chose
                nothing. None without test nodes; the deviation of one seed is None
    """

    best: Classification
    settings: dict[str, Any]
    trials: list[dict[str, Any]]
    score: str
    test_score: str
    test_mean: float | None
    test_std: float | None
    digest: str

    def __repr__(self) -> str:
        named = " ".join(f"{key}={value}" for key, value in self.settings.items())
        first = self.trials[0]
        found = f"{self.score} {first['val_mean']:.4f} over {counted(first['seeds'], 'seed')}"
        return f"Tuning({counted(len(self.trials), 'trial')}; {named}: {found})"


def texts_of(vary: dict[str, Any]) -> list[str]:
    """Lines of study.vary from a mapping of keys to lists, or to (least, largest). Raises CaseError."""
    if not isinstance(vary, Mapping):
        right = (
            '{"hidden": [16, 64]}, a mapping of keys to lists or to pairs (least, largest), would be right'
        )
        raise CaseError(f"vary: found a {type(vary).__name__}; {right}")
    return [_line(str(key).removeprefix("gnn."), values) for key, values in vary.items()]


def _line(key: str, values: Any) -> str:
    """A line of study.vary. Raises CaseError."""
    is_range = isinstance(values, tuple) and len(values) == 2 and all(map(_is_number, values))
    if not (is_range or isinstance(values, list)):
        right = "a list of values or a pair of numbers (least, largest) would be right"
        raise CaseError(f"vary: {shorten(printable(key))}: {right}")
    words = [key, *map(toml_value, values)]
    for word in words:
        if len(word.split()) != 1:
            raise CaseError(f"vary: found {show(word)}; a word or a number, without blanks, would be right")
    return f"{key} {'..'.join(words[1:])}" if is_range else " ".join(words)


def _is_number(value: Any) -> bool:
    """Whether a value is a number, Python's or NumPy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def tuned(
    context: Context, loaded: Loaded, data: NodeData
) -> tuple[Trial, list[dict[str, Any]], dict[str, Any]]:
    """The best trial of study.vary, the rows of all, and what else a Tuning tells. Ranks: all call."""
    case, group = context.case, context.group
    if not data.classes:
        raise CaseError(no_labels(case.gnn.level))
    block = context.rows(loaded, case.gnn.hidden if data.edges is None else 0)
    subject = Subject(loaded.graph.name, context, loaded, data, block, case.gnn, case.study.seeds, "")
    courses, watch = tune(context, cut_grid(group, 1, 1), subject, make_trials(case))
    told = best_of(courses, watch)
    named = {f"gnn.{key}": getattr(courses[0].trial.gnn, key) for key in courses[0].trial.settings}
    beside = {key: told[key] for key in ("score", "test_score", "test_mean", "test_std")}
    beside |= {"settings": named, "digest": digest_of(courses)}
    return courses[0].trial, rows_of(courses, watch), beside
