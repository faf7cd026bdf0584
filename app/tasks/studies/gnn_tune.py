"""Task study, kind tune: the settings of [gnn] (of links of [links], of forecasts of [forecast], too), or of
[rgcn], with the best validation score, by successive halving.

All trials are trained with the first seed; the best of them, one in study.race, go on with twice as many
seeds, and so on until those left have been trained with all. Ranks share the trials, parallel.spatial of them
each; a training has the same bits on any ranks, so that no number depends on how.

Source   Jamieson and Talwalkar 2016 (successive halving), over seeds in the place of epochs
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from statistics import fmean, stdev
from typing import Any

import msgspec

from app.case.config import Case, is_forecast
from app.case.study import StudyCase
from app.case.text import to_toml
from app.comm.grid import Grid, cut_grid, fit_groups
from app.comm.guard import digest_text
from app.errors import CaseError, Diverged
from app.gnn.watch import WORDS, worth
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.studies.cells import cells_at_once
from app.tasks.studies.trials import Trial, Trials, make_trials
from app.tasks.studies.tuned import Record, Tuned, tuned_of
from app.text import counted

TOLD = 10  # combinations that the log names
BEST = "best.toml"  # the case that trains with the settings found
COLUMNS = (
    "place", "trial", "settings", "score", "seeds", "val_mean", "val_std", "epochs", "weights", "failed",
)  # fmt: skip


@dataclass
class Course:
    """A trial and what its trainings came to, a record for each seed."""

    trial: Trial
    records: list[Record]

    def worth(self, watch: str) -> float:
        """How good it is: the mean over its seeds; below all others where one did not end well."""
        values = [worth(watch, each["val"]) for each in self.records]
        return fmean(values) if values and all(value == value for value in values) else -inf

    def goes_on(self, seeds: int, watch: str) -> bool:
        """Whether seeds are left of so many, and all went well so far."""
        return len(self.records) < seeds and (not self.records or self.worth(watch) > -inf)


def run_tune(context: Context) -> dict[str, Any]:
    """Try, compare, and train no more than what is left. Ranks: all call; identical on all."""
    case = context.case
    trials = make_trials(case)
    say_impossible(context, trials)
    groups = _groups(context)
    grid = cut_grid(context.group, groups, groups)
    inner = context.within(grid)
    with grid.together("reading the graph"):
        tuned = _series_of(inner) if is_forecast(case) else tuned_of(inner)
    courses, watch = tune(context, grid, tuned, trials)
    best, rows = best_of(courses, watch), rows_of(courses, watch)
    _finish(context, courses, tuned, best)
    return {
        "digest": digest_of(courses), "best": best, "rows": rows, "not_possible": trials.impossible,
        "instances": [],
    }  # fmt: skip


def _series_of(context: Context) -> Tuned:
    """The series of a case of forecasts, loaded. Ranks: all call."""
    from app.tasks.forecast_inputs import read_series
    from app.tasks.studies.series import SeriesTuned  # of this level alone

    return SeriesTuned(context, *read_series(context))


def tune(context: Context, grid: Grid, tuned: Tuned, trials: Trials) -> tuple[list[Course], str]:
    """The courses of all possible trials, the best first, and the score that they are compared by.

    grid     groups of ranks that train a trial each     tuned   what they train, of a group's ranks
    trials   those that the data rule out join the impossible ones
    Raises   CaseError without validation nodes, or possible trials, Diverged where none ended well
    Ranks    all call
    """
    study, watch = context.case.study, tuned.watch
    tuned.refuse_unjudged()
    words = counted(len(trials.possible), "trial")
    context.log.info("%s: %s by %s, %s", tuned.name, words, shown(watch), _at_once(grid))
    courses = [Course(trial, []) for trial in trials.possible]
    for seeds, count in rungs(len(courses), len(study.seeds), study.race):
        while todo := [each for each in courses[:count] if each.goes_on(seeds, watch)]:
            _go_on(context, grid, tuned, todo, study.seeds[:seeds])
            courses = _ranked(_not_ruled_out(context, courses, trials), watch)
        _say(context, courses[0], watch, count, seeds)
        _write(context, courses, trials, watch)
    best = courses[0]
    if best.worth(watch) == -inf:
        said = next((each["failed"] for each in best.records if each["failed"]), "no finite score")
        words = counted(len(courses), "trial")
        raise Diverged(f"study.vary: none of {words} ended well: {said}")
    return courses, watch


def digest_of(courses: list[Course]) -> str:
    """Of the weights of all trainings."""
    found = {each.trial.name: {str(r["seed"]): r["digest"] for r in each.records} for each in courses}
    return digest_text({name: digest_text(each) for name, each in found.items()})


def _groups(context: Context) -> int:
    """Groups of ranks that train a trial each: of parallel.spatial ranks, by default one. Raises
    CaseError."""
    ranks, spatial = context.group.size, context.case.parallel.spatial
    return fit_groups(ranks, ranks, spatial) if spatial else ranks


def _at_once(grid: Grid) -> str:
    """How many trials are trained at once, in words."""
    ranks = counted(grid.group.size, "rank")
    return f"{grid.groups} at once on {ranks} each" if grid.groups > 1 else f"one at a time on {ranks}"


def rungs(trials: int, seeds: int, race: float) -> Iterator[tuple[int, int]]:
    """(seeds, trials that are trained with so many), until those left have been trained with all."""
    now, left = 1 if race > 1 else seeds, trials
    while True:
        yield now, left
        if now == seeds:
            return
        now, left = min(2 * now, seeds), max(int(-(-left // race)), 1)


def plan_of(case: Case) -> str:
    """What a tuning will train, in words. Raises CaseError where it could not begin."""
    trials, study = make_trials(case), case.study
    left_out = f"; {len(trials.impossible)} more not possible" if trials.impossible else ""
    count = len(trials.possible)
    steps = [
        f"{count} with {counted(seeds, 'seed')}"
        for seeds, count in rungs(count, len(study.seeds), study.race)
    ]
    return f"{counted(count, 'trial')}: {', '.join(steps)}{left_out}"


def _ranked(courses: list[Course], watch: str) -> list[Course]:
    """The best first: of those that all went well with, the ones with the most seeds; of equal ones that with
    the lower number. Those are last that did not end well, so that others take their place.
    """

    def place(course: Course) -> tuple[bool, int, float, int]:
        found = course.worth(watch)
        return found == -inf, -len(course.records), -found, course.trial.number

    return sorted(courses, key=place)


def _go_on(context: Context, grid: Grid, tuned: Tuned, courses: list[Course], seeds: list[int]) -> None:
    """Train what the courses have not been trained with yet. Ranks: all call."""
    todo = [(each, seed) for each in courses for seed in seeds[len(each.records) :]]
    for first in range(0, len(todo), grid.groups):
        turn = todo[first : first + grid.groups]
        make = partial(_trained_together, context, grid, tuned, turn)
        keys = [f"{course.trial.name} seed {seed}" for course, seed in turn]
        for (course, _), record in zip(turn, cells_at_once(context, keys, make)):
            course.records.append(record)
        context.log.progress("%d of %d trainings", first + len(turn), len(todo))


def _not_ruled_out(context: Context, courses: list[Course], trials: Trials) -> list[Course]:
    """The courses but those that the data rule out, which are said and join the impossible trials. Raises
    CaseError where no other is left.
    """
    known = len(trials.impossible)
    for each in courses:
        if why := next((record["refused"] for record in each.records if "refused" in record), ""):
            trials.impossible[each.trial.name] = why
    for name, why in list(trials.impossible.items())[known:][:TOLD]:
        context.log.info("not possible, and left out: %s: %s", name, why)
    left = [each for each in courses if each.trial.name not in trials.impossible]
    if not left:
        name = courses[0].trial.name
        raise CaseError(f"study.vary: {name}: {trials.impossible[name]}")
    return left


def _trained_together(
    context: Context, grid: Grid, tuned: Tuned, turn: list[tuple[Course, int]], missing: list[int]
) -> list[Record]:
    """The records of some trainings of a turn, one by each group. Ranks: all call."""
    own = None
    with context.log.phase("train"), grid.together("training"):
        if grid.number < len(missing):
            course, seed = turn[missing[grid.number]]
            own = tuned.train_once(course.trial, seed)
    first = [grid.group.size * number for number in range(len(missing))]
    return [json.loads(context.group.broadcast_text(json.dumps(own), rank)) for rank in first]


# ---- what is told -----------------------------------------------------------------------------------------


def shown(watch: str) -> str:
    """A watched score in words."""
    return f"validation {WORDS[watch.removeprefix('val_')]}"


def _spread(values: list[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation; None of none, and the deviation of one."""
    known = [value for value in values if value is not None]
    return (fmean(known) if known else None, stdev(known) if len(known) > 1 else None)


def rows_of(courses: list[Course], watch: str) -> list[dict[str, Any]]:
    """A line for each trial that was trained, the best first."""
    rows = []
    for place, each in enumerate(courses, start=1):
        mean, deviation = _spread([record["val"] for record in each.records])
        failed = [record["failed"] for record in each.records if record["failed"]]
        rows.append({
            "place": place, "trial": each.trial.number, "settings": each.trial.name, "score": shown(watch),
            "seeds": len(each.records), "val_mean": None if failed else mean,
            "val_std": None if failed else deviation, "failed": "; ".join(dict.fromkeys(failed)),
            "epochs": max(record["epochs"] for record in each.records), "weights": each.records[0]["weights"],
        })  # fmt: skip
    return rows


def say_impossible(context: Context, trials: Trials) -> None:
    """The combinations that are left out, the first ones by name."""
    if not (found := trials.impossible):
        return
    context.log.info("%s of study.vary not possible, and left out:", counted(len(found), "combination"))
    for name, why in list(found.items())[:TOLD]:
        context.log.info("not possible: %s: %s", name, why)
    if len(found) > TOLD:
        context.log.info("... and %d more", len(found) - TOLD)


def _write(context: Context, courses: list[Course], trials: Trials, watch: str) -> None:
    """The table so far: a study that is stopped leaves what it has. Ranks: all call."""
    if context.folder is None:
        return
    left_out = [
        {"settings": name, "failed": f"not possible: {why}"} for name, why in trials.impossible.items()
    ]
    rows = [*rows_of([c for c in courses if c.records], watch), *left_out]
    context.folder.write_csv("tune.csv", COLUMNS, rows)


def _say(context: Context, best: Course, watch: str, count: int, seeds: int) -> None:
    """What is the best so far."""
    mean, deviation = _spread([record["val"] for record in best.records])
    value = "-" if mean is None else f"{mean:.4f}" + ("" if deviation is None else f" +- {deviation:.4f}")
    words = f"{counted(count, 'trial')} with {counted(seeds, 'seed')}"
    context.log.info("%s: best of %s: %s (%s)", words, shown(watch), value, best.trial.name)


def best_of(courses: list[Course], watch: str) -> dict[str, Any]:
    """The line of the best trial, its settings by key, and its scores of test nodes, None of none."""
    best = courses[0]
    mean, deviation = _spread([record["test"] for record in best.records])
    tested = {"test_score": best.records[0]["score"], "test_mean": mean, "test_std": deviation}
    return rows_of(courses[:1], watch)[0] | {"settings": best.trial.settings} | tested


def _finish(context: Context, courses: list[Course], tuned: Tuned, told: dict[str, Any]) -> None:
    """The best settings, their test score, the case that trains with them, and the picture. Ranks: all
    call."""
    best, folder, log, case = courses[0], context.folder, context.log, context.case
    if told["test_mean"] is not None:
        spread = "" if told["test_std"] is None else f" +- {told['test_std']:.4f}"
        said = f"test {tuned.what} chose nothing; the validation score chose the trial, and is optimistic"
        log.info("its %s of test: %.4f%s (%s)", told["test_score"], told["test_mean"], spread, said)
    if folder is None:
        return
    run = msgspec.structs.replace(case.run, task="classify", name=f"{case.run.name}_best", out="")
    trained = msgspec.structs.replace(best.trial.case_of(case), run=run, study=StudyCase())
    folder.write_text(BEST, to_toml(trained))
    log.info("%s trains with its settings", folder.file(BEST))
    if case.output.plots:
        _plot(context, courses, tuned.watch)


def _plot(context: Context, courses: list[Course], watch: str) -> None:
    """The validation score of every training, and the mean of each trial, by the trial's place."""
    values = [[r["val"] for r in each.records if r["val"] is not None] for each in courses]
    points = [(place, value) for place, found in enumerate(values, start=1) for value in found]
    means = [(place, fmean(found)) for place, found in enumerate(values, start=1) if found]
    lines = {"mean": means, "each seed": points}
    panel = {name: ([x for x, _ in line], [y for _, y in line]) for name, line in lines.items()}
    plot_lines(context.folder, context.log, {"trials": panel}, "tune.png", "place", [shown(watch)])
