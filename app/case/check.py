"""Checking keys one by one: a mistake is a line with the key, its place, what is right, what was found."""

import difflib
import math
import re
from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert
from msgspec import inspect as kinds

from app.case.config import Keys, all_keys, all_tables, fields_of, table_of
from app.case.places import Places
from app.case.table import Table, bare_type, expected, limits
from app.text import is_plain, not_plain, printable, shorten, show


def mistakes(table: type[Table], data: dict[str, Any], above: Keys, places: Places) -> Iterator[str]:
    """The unknown keys, wrong types and values out of range of one table and those in it."""
    known = fields_of(table)
    for key, value in data.items():
        keys = (*above, key)
        if key not in known:
            unknown = f"unknown {'table' if _is_table(value) else 'key'} {_spell(keys, value)}"
            yield f"{unknown}{_place(keys, places)}: {_suggestion(table, keys, value)}"
        elif (inner := table_of(known[key].type)) is None:
            mistake = value_mistake(known[key].type, value)
            if mistake:
                yield f"{where(keys, places)}: {mistake}"
        elif isinstance(value, dict):
            yield from mistakes(inner, value, keys, places)
        else:
            yield f"{where(keys, places)}: must be a table, got {show(value)}"


def value_mistake(kind: object, value: object) -> str | None:
    """What is wrong with one value, or None."""
    items = value if isinstance(value, list | tuple) else [value]
    for item in items:
        if isinstance(item, float) and not math.isfinite(item):
            return f"must be a finite number, got {show(item)}"
        if isinstance(item, int) and abs(item) >= 1 << 63:
            return f"must be a number of at most 64 bits, got {show(item)}"
        if isinstance(item, str) and not is_plain(item):
            return not_plain(item)
    try:
        convert(value, kind)
    except ValidationError as error:
        info = bare_type(kinds.type_info(kind))
        if isinstance(value, list) and isinstance(info, kinds.ListType) and " at `$[" in str(error):
            info = bare_type(info.item_type)
            value = value[int(re.search(r"\$\[(\d+)\]", str(error))[1])]
        bounded = re.match(r"Expected `(int|float)` [<>]", str(error)) and hasattr(info, "ge")
        return f"must be {limits(info) if bounded else expected(info)}, got {show(value)}"
    return None


def _suggestion(table: type[Table], keys: Keys, value: object) -> str:
    """The nearest name of the same table, else of any table."""
    names = all_tables() if _is_table(value) else [each for each, _, _ in all_keys()]
    here = {each[-1]: each for each in names if each[:-1] == keys[:-1]}
    anywhere = {each[-1]: each for each in reversed(names)}
    for candidates, cutoff in ((here, 0.7), (anywhere, 0.7)):
        found = difflib.get_close_matches(keys[-1], candidates, n=1, cutoff=cutoff)
        if found:
            return f"did you mean {_spell(candidates[found[0]], value)}?"
    inside = ", ".join(fields_of(table))
    return f"{_spell(keys[:-1], {}) if keys[:-1] else 'a case'} has {inside}"


def where(keys: Keys, places: Places) -> str:
    """`train.steps (line 4)`, where a mistake is."""
    return _name(keys) + _place(keys, places)


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
