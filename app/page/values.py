"""Values of files that somebody else wrote: taken where they are what they should be, left out where not."""

import math
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[dict[str, Any]]:
    """The tables of a list, nothing where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """A finite number, else None; text counts where it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def shown(value: Any, digits: int = 4) -> str:
    """A number with so many digits that count, thousands set apart; text and truth values as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    found = None if isinstance(value, str) else number(value)
    if found is None:
        return "-" if value is None else str(value)
    if found == int(found) and abs(found) < 1e15:
        return f"{int(found):,}"
    if abs(found) >= 1e6 or abs(found) < 1e-4:
        return f"{found:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(found))))
    text = f"{found:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(value: Any, places: int = 2) -> str | None:
    """A share in per cent."""
    found = number(value)
    return None if found is None else f"{100 * found:.{places}f}"


def seconds(value: Any) -> str | None:
    """A time in the unit that suits it."""
    found = number(value)
    if found is None:
        return None
    for limit, scale, unit in (
        (1e-3, 1e6, "us"),
        (1.0, 1e3, "ms"),
        (600.0, 1.0, "s"),
        (36000.0, 1 / 60, "min"),
    ):
        if abs(found) < limit:
            return f"{shown(found * scale, 3)} {unit}"
    return f"{shown(found / 3600, 3)} h"


def size(value: Any) -> str | None:
    """Bytes in the unit that suits them."""
    found = number(value)
    if found is None:
        return None
    for unit in ("B", "kB", "MB", "GB"):
        if abs(found) < 1000:
            return f"{shown(found, 3)} {unit}"
        found /= 1000
    return f"{shown(found, 3)} TB"


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out.update(flat(value, f"{before}{key}."))
        else:
            out[f"{before}{key}"] = value
    return out
