"""The arrays in old pickle files, read without running anything.

A pickle is a program for a small stack machine, which may call any function by name. This machine knows no
functions: it builds tuples, lists, dicts, numbers and text, and takes a few names as marks for the arrays of
NumPy and the CSR matrices of SciPy whose plain contents follow. Any other name, and any other instruction, is
refused. It is for conversions that somebody asks for; files of graphs that are pickles are never read.
"""

import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.graphs.formats.source import Source, shown

ARRAY, KIND, CSR, DICT, LIST, OBJECT, BYTES, REBUILD = (
    "array", "dtype", "csr", "dict", "list", "object", "bytes", "rebuild",
)  # fmt: skip
# The names that may occur, and what they mark.
NAMES = {
    "numpy.core.multiarray _reconstruct": REBUILD,
    "numpy._core.multiarray _reconstruct": REBUILD,
    "numpy ndarray": ARRAY,
    "numpy dtype": KIND,
    "scipy.sparse.csr csr_matrix": CSR,
    "scipy.sparse._csr csr_matrix": CSR,
    "collections defaultdict": DICT,
    "__builtin__ list": LIST,
    "builtins list": LIST,
    "__builtin__ object": OBJECT,
    "builtins object": OBJECT,
    "copy_reg _reconstructor": CSR,
    "_codecs encode": BYTES,
}
NUMBERS = re.compile(r"[<>|=]?[biuf][1248]")
PUSHES = {
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "BINFLOAT", "FLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
RIGHT = "arrays, CSR matrices, lists, dicts and numbers would be right"


@dataclass(frozen=True)
class Mark:
    """A name of the file that stands for something; never what the name names."""

    means: str


class Held:
    """An array, a dtype or a CSR matrix whose content is set by a later instruction.

    means   ARRAY, KIND or CSR     value   np.ndarray, np.dtype, or the matrix's attributes by name
    """

    def __init__(self, means: str, value: Any = None) -> None:
        self.means, self.value = means, value


class Wrong(ValueError):
    """What a file asks for and must not have."""


def read_pickled(source: Source) -> Any:
    """The content of a pickle file: plain objects, np.ndarray, and a dict of attributes for a CSR matrix."""
    text = b"".join(source.blocks())
    try:
        return _plain(_Machine().run(text))
    except (Wrong, ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = shown(str(error)) if isinstance(error, Wrong) else "a damaged pickle"
        raise source.error(f"found {reason}; {RIGHT}") from None


class _Machine:
    """The stack machine; a mark on the stack is the start of a list of arguments."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, text: bytes) -> Any:
        """What the program leaves on the stack."""
        for code, argument, _ in pickletools.genops(text):
            name = code.name
            if name == "STOP":
                return self.stack.pop()
            if name in PUSHES:
                self.stack.append(argument)
            elif name in CONSTANTS:
                self.stack.append(CONSTANTS[name]())
            elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
                self.memo[argument] = self.stack[-1]
            elif name in ("GET", "BINGET", "LONG_BINGET"):
                self.stack.append(self.memo[argument])
            elif name in STEPS:
                STEPS[name](self, argument)
            elif name not in ("PROTO", "FRAME"):
                raise Wrong(f"the instruction {name}")
        raise Wrong("no end")

    def since_mark(self) -> list[Any]:
        """Take what lies above the last mark."""
        at = self.marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def last(self, count: int) -> list[Any]:
        """Take the last `count`."""
        if len(self.stack) < count:
            raise Wrong("too few values")
        found = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return found

    def named(self, name: str) -> None:
        """Push the mark of a name."""
        if name not in NAMES:
            raise Wrong(f"the name '{name}'")
        self.stack.append(Mark(NAMES[name]))

    def mapping(self, pairs: list[Any]) -> None:
        """Push a dict."""
        self.stack.append({})
        self.fill(pairs)

    def fill(self, pairs: list[Any]) -> None:
        """Set items of the dict below."""
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise Wrong("items of what is no dict")
        target.update(zip(pairs[0::2], pairs[1::2], strict=True))

    def extend(self, items: list[Any]) -> None:
        """Append to the list below."""
        if not isinstance(self.stack[-1], list):
            raise Wrong("items of what is no list")
        self.stack[-1].extend(items)

    def construct(self) -> None:
        """Push what a mark and its arguments stand for."""
        mark, arguments = self.last(2)
        if not isinstance(mark, Mark) or not isinstance(arguments, tuple):
            raise Wrong("a call of what is no name")
        self.stack.append(_constructed(mark.means, arguments))

    def build(self) -> None:
        """Give a held object its content."""
        held, state = self.last(2)
        if not isinstance(held, Held):
            raise Wrong("a state of what has none")
        held.value = BUILD[held.means](held.value, state)
        self.stack.append(held)


STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "GLOBAL": lambda m, name: m.named(name),
    "STACK_GLOBAL": lambda m, _: m.named(" ".join(m.last(2))),
    "MEMOIZE": lambda m, _: m.memo.__setitem__(len(m.memo), m.stack[-1]),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.last(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.last(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.last(3))),
    "LIST": lambda m, _: m.stack.append(m.since_mark()),
    "APPEND": lambda m, _: m.extend(m.last(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "DICT": lambda m, _: m.mapping(m.since_mark()),
    "SETITEM": lambda m, _: m.fill(m.last(2)),
    "SETITEMS": lambda m, _: m.fill(m.since_mark()),
    "REDUCE": lambda m, _: m.construct(),
    "NEWOBJ": lambda m, _: m.construct(),
    "BUILD": lambda m, _: m.build(),
}


def _constructed(means: str, arguments: tuple[Any, ...]) -> Any:
    """What stands where the file would call something."""
    if means == KIND:
        if not isinstance(arguments[0], str) or not NUMBERS.fullmatch(arguments[0]):
            raise Wrong(f"elements of type '{arguments[0]}'")
        return Held(KIND, np.dtype(arguments[0]))
    if means == REBUILD:
        return Held(ARRAY)
    if means == CSR:
        return Held(CSR, {})
    if means == DICT:
        return {}
    if means == BYTES and len(arguments) == 2 and arguments[1] == "latin1":
        return arguments[0].encode("latin1")
    raise Wrong(f"a call that makes a {means}")


def _build_kind(kind: np.dtype, state: Any) -> np.dtype:
    """A dtype in the byte order that the second element of its state says."""
    return kind.newbyteorder(state[1]) if state[1] in ("<", ">") else kind


def _build_array(_: Any, state: Any) -> np.ndarray:
    """An array from (version, shape, dtype, column-major, bytes)."""
    _, shape, kind, fortran, data = state
    data = data.encode("latin1") if isinstance(data, str) else data
    sizes = [int(length) for length in shape]
    if not isinstance(kind, Held) or kind.means != KIND or not isinstance(data, bytes):
        raise Wrong("an array of Python objects")
    if min(sizes, default=0) < 0 or int(np.prod(sizes, dtype=object)) * kind.value.itemsize != len(data):
        raise Wrong(f"{len(data)} bytes for an array of shape {tuple(sizes)}")
    flat = np.frombuffer(data, dtype=kind.value)
    return flat.reshape(sizes, order="F" if fortran else "C")


def _build_csr(_: Any, state: Any) -> dict[str, Any]:
    """The attributes of a CSR matrix."""
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise Wrong("a matrix without attributes")
    return state


BUILD = {KIND: _build_kind, ARRAY: _build_array, CSR: _build_csr}


def _plain(found: Any, seen: dict[int, Any] | None = None) -> Any:
    """`found` with held objects replaced by their contents; marks and empty ones refused.

    seen   what was made of each object so far: one that occurs often is made once
    """
    seen = {} if seen is None else seen
    if id(found) not in seen:
        seen[id(found)] = _made_plain(found, seen)
    return seen[id(found)]


def _made_plain(found: Any, seen: dict[int, Any]) -> Any:
    if isinstance(found, Held):
        if found.value is None:
            raise Wrong(f"an empty {found.means}")
        return _plain(found.value, seen) if found.means == CSR else found.value
    if isinstance(found, Mark):
        raise Wrong("a name in place of a value")
    if isinstance(found, dict):
        return {key: _plain(value, seen) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(_plain(value, seen) for value in found)
    return found
