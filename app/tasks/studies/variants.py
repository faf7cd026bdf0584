"""Variants: a case with other settings, written in a line of text."""

import tomllib
from typing import Any

import msgspec

from app.case.check import mistakes
from app.case.config import Case
from app.case.conflicts import conflicts
from app.comm.grid import fit_groups
from app.errors import CaseError
from app.problems.table import problem_of
from app.rl.learners import find_learner
from app.rl.qnet import QNetwork
from app.rl.training import share_of

# What one of several trainings compared may have for itself: tables, keys of others, and keys of these
# tables that no training of a study reads.
OF_TRAINING = ("agent", "memory", "parallel", "policy", "train", "run.check_every")
UNREAD = (
    "memory.cache", "memory.estimate_first", "memory.max_decompressed_gb", "memory.method",
    "memory.whole_graph_mb", "parallel.cost_model", "parallel.transport", "policy.weights", "train.graphs",
    "train.held_back",
)  # fmt: skip


def split_variant(text: str) -> tuple[str, dict[str, str]]:
    """ "NAME table.key=value ..." as its name, which may have blanks, and its settings. Raises CaseError."""
    name, settings = [], {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or "." not in key:
            name.append(word)  # such as B=16
        elif not value or key.count(".") != 1 or key in settings:
            raise CaseError(f"study: {text}: {word!r} must be table.key=value, each key once")
        else:
            settings[key] = value
    return " ".join(name), settings


def refuse_keys(settings: dict[str, str], others: tuple[str, ...], place: str) -> None:
    """Refuse settings that a training of a study does not follow.

    others   tables and keys that this study follows beside those of a training
    Raises   CaseError
    """
    followed = (*OF_TRAINING, *others)
    for key in settings:
        if key in UNREAD or not (key in followed or key.split(".")[0] in followed):
            right = f"keys of {', '.join(followed)} that a training reads would be right"
            raise CaseError(f"{place}: {key} has no effect there; {right}")


def refuse_conflicts(case: Case, place: str) -> None:
    """Refuse settings that are right one by one and wrong together. Raises CaseError."""
    wrong = list(conflicts(case, {}))
    if wrong:
        raise CaseError(f"{place}: {'; '.join(wrong)}")


def check_training(case: Case, ranks: int, place: str) -> None:
    """Refuse settings with which a training on so many ranks would not begin. Raises CaseError."""
    refuse_conflicts(case, place)
    try:
        find_learner(case.agent.learner)
        share_of(case.agent, case.parallel.data)
        fit_groups(ranks, case.parallel.data, case.parallel.spatial)
        QNetwork(case.policy, problem_of(case))
    except CaseError as error:
        raise CaseError(f"{place}: {error}") from None


def with_variant(case: Case, settings: dict[str, str], place: str) -> Case:
    """The case with other values, checked like those of a file. Raises CaseError."""
    tables: dict[str, dict[str, Any]] = {}
    for key, text in settings.items():
        table, name = key.split(".")
        tables.setdefault(table, {})[name] = _value(text)
    wrong = list(mistakes(Case, tables, (), {}))
    if wrong:
        raise CaseError(f"{place}: {'; '.join(wrong)}")
    changed = {}
    for table, values in tables.items():
        old = getattr(case, table)
        changed[table] = msgspec.convert({**msgspec.structs.asdict(old), **values}, type(old))
    return msgspec.structs.replace(case, **changed)


def _value(text: str) -> Any:
    """A value as TOML writes it, or a word as it stands."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
