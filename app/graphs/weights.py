"""Weights as graphs keep them, in float32; of whole numbers that are not kept as they are a warning tells."""

import re
from collections.abc import Callable, Iterable

import numpy as np

LARGEST_WHOLE = 1 << 24  # up to here every whole number is a float32
MOST_DECIMALS = 8
ADVICE = f"whole numbers up to {LARGEST_WHOLE} are exact; weights in a coarser unit would be right"

# Where the text of a number may be one that even 64 bits keep as 0, as those below 2.5e-324 are.
_TINY = re.compile(rb"[eE]-0*[0-9]{3}|0{300}")
_DIGITS = re.compile(rb"[1-9]")

LARGER = "weights in a finer unit, of 1e-37 and more, would be right"


def kept_weights(found: np.ndarray, name: Callable[[int], str], warnings: list[str]) -> np.ndarray:
    """Weights [k] float32, infinite where a number has no place there.

    found      [k] numbers of any real type
    name       what the i-th weight is called
    warnings   gets a line on the first whole number that is changed, and on the first number that becomes 0,
               once however many calls there are
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kept = found.astype(np.float32)
    changed = _changed(found, kept)
    if len(changed) and not any(text.endswith(ADVICE) for text in warnings):
        i = int(changed[0])
        value = f"{found[i]}" if found.dtype.kind in "iu" else f"{found[i]:.0f}"
        warnings.append(f"{name(i)}, {value}, is kept as {kept[i]:.0f}: {ADVICE}")
    lost = np.flatnonzero((kept == 0) & (found != 0)) if found.dtype.kind == "f" else changed[:0]
    if len(lost) and not any(text.endswith(LARGER) for text in warnings):
        warnings.append(f"{name(int(lost[0]))}, {found[lost[0]]:g}, is kept as 0: {LARGER}")
    return kept


def tell_vanished(
    found: np.ndarray, text: bytes, fields: Callable[[], Iterable[bytes]], name: Callable[[int], str],
    warnings: list[str],
) -> None:  # fmt: skip
    """The warning of `kept_weights` for the first number that is 0 as soon as it is read, such as 1e-400.

    found    [k] float64
    text     that they are read from, whole: a look at it is enough for nearly all
    fields   gives the text of each, and is called where some may be such numbers
    """
    if found.all() or not _TINY.search(text) or any(told.endswith(LARGER) for told in warnings):
        return
    for i, (value, field) in enumerate(zip(found.tolist(), fields())):
        if value == 0 and vanishes(field):
            warnings.append(f"{name(i)}, {field.decode()[:40]}, is kept as 0: {LARGER}")
            return


def vanishes(field: bytes) -> bool:
    """Whether a number is written with digits other than 0 before its exponent, and is read as 0."""
    return float(field) == 0 and _DIGITS.search(re.split(rb"[eE]", field)[0]) is not None


def _changed(found: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Where whole numbers [k] have become other ones, ascending."""
    if found.dtype.kind == "b" or found.dtype in (np.float16, np.float32):
        return np.empty(0, np.int64)
    large = np.flatnonzero((found > LARGEST_WHOLE) | (found < -LARGEST_WHOLE))
    found, kept = found[large], kept[large]
    with np.errstate(invalid="ignore"):
        other = kept.astype(found.dtype) != found
        whole = found == np.rint(found) if found.dtype.kind == "f" else True
    return large[other & whole & np.isfinite(kept)]


def decimals_of(weights: np.ndarray) -> int | None:
    """The fewest decimals, at most 8, that tell all weights [k] apart as float32; None: more are needed.

    Decimal weights such as 0.1 have few, and sums of them are exact when rounded to as many.
    """
    kept = weights.astype(np.float32)
    for decimals in range(MOST_DECIMALS + 1):
        if (np.round(weights, decimals).astype(np.float32) == kept).all():
            return decimals
    return None
