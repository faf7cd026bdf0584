"""What the calls that learn on a graph have in common: settings, folds, tuning in place of one training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.folds import CrossValidation, refuse_beside
from app.api.given import Begun, refuse_data_keys, setting
from app.api.tune import texts_of, tuned
from app.case.file import merged
from app.case.rules.mistake import changed
from app.case.rules.studies import READ_BY_ALL
from app.case.study import StudyCase
from app.errors import CaseError
from app.gnn.saved import ARCHITECTURE, SavedModel
from app.tasks.context import Context, context_of_settings, reading_together
from app.tasks.levels.course import Learned
from app.tasks.levels.examples import Examples
from app.tasks.levels.whole import whole_where_small

OF_TUNINGS = ("trials", "race", "seeds")  # keys of [study] that a tuning reads beside those to vary


@dataclass(frozen=True)
class Asked:
    """What a call asks for in place of one training, if anything: `folds`, or settings to `vary`.

    beside     arguments that folds take the place of, by name
    of_folds, of_tunings   keys of [study] that folds of the call, and its tunings, read beside what is asked
               for; one training takes them, so that settings serve a tuning and what is trained after it
    """

    folds: int | None
    vary: dict[str, Any] | None
    beside: dict[str, Any]
    of_folds: tuple[str, ...] = ("fold_validation",)
    of_tunings: tuple[str, ...] = OF_TUNINGS

    @property
    def word(self) -> str:
        """The argument that asks for several trainings, "" where none does."""
        return "folds" if self.folds is not None else "vary" if self.vary is not None else ""

    def keys(self, weights: Any) -> dict[str, Any]:
        """Settings to be laid over those of the call. Raises CaseError for what is given beside."""
        found = {}
        if self.vary is not None:
            if self.folds is not None or weights is not None:
                wrong = "weights" if self.folds is None else "folds"
                raise CaseError(f"{wrong}: given beside vary; leave it out")
            found |= {"study.kind": "tune", "study.vary": texts_of(self.vary)}
        if self.folds is not None:
            refuse_beside(self.beside | {"weights": weights})
            found |= {"study.kind": "folds", "study.folds": self.folds}
        return found

    def check(self, context: Context, settings: Any) -> None:
        """Refuse settings that folds, or tunings, do not read. Raises CaseError."""
        case = context.case
        self.refuse_members(context)
        self.refuse_unread(context, settings)
        if self.folds is None:
            return
        refuse_beside({"gnn.weights": case.gnn.weights or None})
        for key in ("embeddings", "probabilities", "coverage", "explain"):
            if getattr(case.output, key):
                raise CaseError(f"output.{key}: is not read beside folds; leave it out")

    def refuse_members(self, context: Context) -> None:
        """Refuse several networks where each training is of one. Raises CaseError."""
        if context.case.gnn.members > 1 and self.word:
            raise CaseError(f"gnn.members: is not read beside {self.word}; leave it out")

    def refuse_unread(self, context: Context, settings: Any) -> None:
        """Refuse keys of [study] that the call does not read, or that say otherwise than its arguments.
        Raises CaseError.
        """
        study, given = context.case.study, ("kind", self.word) if self.word else ()
        by_word = {"folds": self.of_folds, "vary": self.of_tunings}
        read = (*given, *by_word.get(self.word, (*self.of_folds, *self.of_tunings)), *READ_BY_ALL)
        unread = [*changed(study, (key for key in StudyCase.__struct_fields__ if key not in read))]
        for key in given:
            told = setting(settings, "study", key)
            unread += [key] if told is not None and not np.array_equal(told, getattr(study, key)) else []
        if unread:
            why = f"not read beside {self.word}" if self.word else 'read by run.task = "study"'
            raise CaseError(f"settings: study.{unread[0]}: is {why}; leave it out")

    def done(
        self, context: Context, examples: Examples, train: Callable[[Context], Any],
        cross: Callable[[Context, Any], CrossValidation],
    ) -> Any:  # fmt: skip
        """What the call returns: of one training, or of several. Ranks: all call.

        train   one training by a context's case     cross   those of all folds, of the examples as each rank
                                                             has them
        """
        if self.folds is not None:
            return cross(*whole_where_small(context, examples, None))
        if self.vary is not None:
            return tuned(context, examples, train)
        return train(context)


def begin(
    begun: Begun, asked: Asked, recipe: dict[str, Any], comm: MPI.Comm | None, verbose: bool
) -> tuple[Context, SavedModel | None]:
    """The context of a call, and the weights that are in memory; recipe: settings that are there before.

    Ranks   all call
    """
    with reading_together(comm):
        over = begun.keys() | asked.keys(begun.weights)
        chosen = merged({"run.task": "classify"}, recipe, begun.settings, over)
    context, model = begun.put(context_of_settings(chosen, comm, verbose, by_task=False), SavedModel)
    asked.check(context, begun.settings)
    refuse_data_keys(context.case, "classify")
    return context, model


def refuse_level(context: Context, level: str) -> None:
    """Refuse settings of another level than a call is of. Raises CaseError."""
    if (found := context.case.gnn.level) != level:
        raise CaseError(f'settings: gnn.level: must be "{level}", got "{found}"; leave it out')


def recipe_of(
    recipe: dict[str, Any], begun: Begun, by_layers: tuple[str, ...], of_hidden: tuple[str, ...]
) -> dict[str, Any]:
    """A recipe without the keys that gnn.layers of the settings, or given weights, say otherwise.

    by_layers   keys of [gnn] that gnn.layers says of each layer     of_hidden   that a single layer does not
                read
    """
    settings = begun.settings
    told = by_layers if setting(settings, "gnn", "layers") else ()
    if setting(settings, "gnn", "depth") == 1:
        told = (*told, *of_hidden)
    if begun.weights is not None or setting(settings, "gnn", "weights"):
        told = tuple(key for key in ARCHITECTURE if key != "level")
    return {key: value for key, value in recipe.items() if key.removeprefix("gnn.") not in told}


def course_of(done: Learned) -> dict[str, Any]:
    """What results of all levels tell of a training, by their fields."""
    losses = [row["loss"] for row in done.fit.records]
    return {
        "epochs": done.fit.epochs, "train_loss": losses[-1] if losses else None, "seconds": done.fit.seconds,
        "records": done.fit.records, "model": done.saved, "plain": done.plain, "importance": done.importance,
    }  # fmt: skip
