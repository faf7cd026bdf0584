"""Tuning from Python: what the calls that learn return of `vary={...}`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from app.comm.grid import cut_grid
from app.comm.guard import raise_together
from app.errors import CaseError
from app.tasks.context import Context
from app.tasks.levels.examples import Examples
from app.tasks.levels.whole import whole_where_small
from app.tasks.studies.gnn_subjects import subject_of
from app.tasks.studies.gnn_tune import best_of, digest_of, rows_of, tune
from app.tasks.studies.trials import Trial, make_trials
from app.tasks.studies.tuned import GraphTuned, Tuned
from app.text import counted, printable, shorten, show, toml_value


@dataclass(frozen=True)
class Tuning:
    """What settings were tried, and the network that was trained with the best ones.

    best        what the call returns of a training with them and the seed of the call: a Classification,
                EdgeClassification, FoundLinks, Forecast, RelationalClassification or LinkPrediction
    settings    the best ones, as {"gnn.hidden": 32, ...}, for the settings of a call
    trials      a row for each trial, the best first: settings, validation score (mean, sample standard
                deviation), seeds it was trained with
    score       what trials were compared by, in words
    not_possible   combinations that were left out, by settings in a line, and why
    test_mean, test_std   of the best settings over the seeds, by the words of `test_score`; test nodes chose
                nothing. None without test nodes; the deviation of one seed is None
    """

    best: Any
    settings: dict[str, Any]
    trials: list[dict[str, Any]]
    score: str
    test_score: str
    test_mean: float | None
    test_std: float | None
    digest: str
    not_possible: dict[str, str] = field(default_factory=dict)

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


def tuned(context: Context, examples: Examples, train: Callable[[Context], Any]) -> Tuning:
    """What the trials of study.vary come to, and the network of the best one. Ranks: all call.

    train   what the call does without `vary`
    """
    with raise_together(context.group, "checking the data"):
        examples.check(context.case.gnn, False)
    inner, examples = whole_where_small(context, examples, None)
    subject = subject_of(inner, examples, context.case.gnn, context.case.study.seeds)
    return tuned_by(context, GraphTuned(subject), train, context.group.size if inner.alike else 1)


def tuned_by(context: Context, data: Tuned, train: Callable[[Context], Any], groups: int = 1) -> Tuning:
    """The same of data that are loaded; groups: of ranks that train a trial each. Ranks: all call."""
    trials = make_trials(context.case)
    courses, watch = tune(context, cut_grid(context.group, groups, groups), data, trials)
    told, best = best_of(courses, watch), courses[0].trial
    with_best = replace(context, case=best.case_of(context.case))
    return Tuning(
        best=train(with_best), settings=_settings_of(best), trials=rows_of(courses, watch),
        score=told["score"], test_score=told["test_score"], test_mean=told["test_mean"],
        test_std=told["test_std"], digest=digest_of(courses), not_possible=trials.impossible,
    )  # fmt: skip


def _settings_of(trial: Trial) -> dict[str, Any]:
    """The settings of a trial, as a call takes them."""
    found = {}
    for key in trial.settings:
        table, _, name = f"gnn.{key}".rpartition(".") if "." not in key else key.rpartition(".")
        found[f"{table}.{name}"] = getattr(getattr(trial, table), name)
    return found
