"""The base of a case's tables, the ranges of numbers in them, and what a type asks for, in words."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec import inspect as kinds

from app.text import toml_value


def about(description: str) -> Meta:
    """The meaning of a key, as --help prints it."""
    return Meta(description=description)


Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Amount = Annotated[float, Meta(ge=0.0)]
AboveZero = Annotated[float, Meta(gt=0.0)]
BelowOne = Annotated[float, Meta(ge=0.0, lt=1.0)]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML table: immutable, strict."""


def bare_type(info: kinds.Type) -> kinds.Type:
    """The type under its description."""
    while isinstance(info, kinds.Metadata):
        info = info.type
    return info


def takes_text(info: kinds.Type) -> bool:
    """Whether a value of this type may be text."""
    match bare_type(info):
        case kinds.StrType():
            return True
        case kinds.LiteralType(values):
            return all(isinstance(each, str) for each in values)
        case kinds.UnionType(types):
            return any(takes_text(each) for each in types)
    return False


def expected(info: kinds.Type) -> str:
    """What a value of this type is, in words."""
    match bare_type(info):
        case kinds.BoolType():
            return "true or false"
        case kinds.IntType() as number:
            return ", ".join(filter(None, ("a whole number", limits(number))))
        case kinds.FloatType() as number:
            return ", ".join(filter(None, ("a number", limits(number))))
        case kinds.StrType():
            return "text in quotes"
        case kinds.LiteralType(values):
            return ("one of " if len(values) > 1 else "") + ", ".join(
                toml_value(each) for each in sorted(values)
            )
        case kinds.ListType() as many:
            return f"a list{' of at least one' if many.min_length else ''}, each {expected(many.item_type)}"
        case kinds.TupleType(item_types):
            return f"a list of {len(item_types)} whole numbers"
        case kinds.UnionType(types):
            return " or ".join(expected(each) for each in types)
    raise TypeError(f"no words for {info}")


def limits(info: kinds.IntType | kinds.FloatType) -> str:
    """The range of a number, in words; "" without one."""
    if info.ge is not None and info.le is not None:
        return f"from {_plain(info.ge)} to {_plain(info.le)}"
    words = {"at least": info.ge, "above": info.gt, "at most": info.le, "below": info.lt}
    return " and ".join(f"{word} {_plain(limit)}" for word, limit in words.items() if limit is not None)


def _plain(limit: float) -> str:
    """Whole numbers with all their digits."""
    return str(int(limit)) if float(limit).is_integer() and abs(limit) < 1e15 else f"{limit:g}"
