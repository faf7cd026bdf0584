"""Variants: a case with other settings, written in a line of text."""

import tomllib
from typing import Any

import msgspec

from app.case.check import mistakes
from app.case.config import Case
from app.errors import CaseError


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
