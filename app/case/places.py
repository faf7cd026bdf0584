"""The line on which each key of a TOML text is set, which tomllib does not tell."""

import re
import tomllib
from typing import ClassVar

from app.case.config import Keys

Places = dict[Keys, str]  # where a key was set: "line 4" or "command line"
DEEPEST = 4  # parts of a key whose line is kept; the tables are three deep


def key_places(text: str) -> Places:
    """The line of each key and table of a valid TOML text with line ends of one character."""
    return _Lines(text).places


class _Lines:
    """Where each key of a valid TOML text is set: a scan for keys that steps over the values."""

    KEY: ClassVar = {
        end: re.compile(rf"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^{end}"'])*""") for end in ("=", "\\]")
    }
    BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
    SCALAR = re.compile(
        r'''"""(?:[^\\]|\\.)*?"{3,5}|"(?:[^"\\]|\\.)*"|'''
        r"""'''.*?'{3,5}|'[^']*'|[^\[\]{},\n"'#]+""",
        re.DOTALL,
    )

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.line, self.counted = 1, 0
        self.places: Places = {}
        table: Keys = ()
        while self._next():
            if self._next() == "[":
                brackets = 2 if text.startswith("[[", self.at) else 1
                self.at += brackets
                table = self._key((), "\\]")
                self.at += brackets
            else:
                self._setting(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Step over what the pattern matches, and return it."""
        found = pattern.match(self.text, self.at)
        self.at = found.end()
        return found[0]

    def _next(self) -> str:
        """The next character that is neither blank nor in a comment; "" at the end."""
        self._skip(self.BLANK)
        return self.text[self.at : self.at + 1]

    def _key(self, table: Keys, end: str) -> Keys:
        """Read a dotted key up to `end`, and note its line."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        path = table + dotted(self._skip(self.KEY[end]))
        for length in range(1, min(len(path), DEEPEST) + 1):
            self.places.setdefault(path[:length], f"line {self.line}")
        return path

    def _setting(self, table: Keys) -> None:
        """Step over "key = value"."""
        path = self._key(table, "=")
        self.at += 1
        self._value(path)

    def _value(self, path: Keys) -> None:
        """Step over a value; the keys of inline tables are noted on the way."""
        opening = self._next()
        if opening not in ("[", "{"):
            self._skip(self.SCALAR)
            return
        self.at += 1
        while (character := self._next()) not in ("]", "}"):
            if character == ",":
                self.at += 1
            elif opening == "{":
                self._setting(path)
            else:
                self._value(path)
        self.at += 1


def dotted(text: str) -> Keys:
    """The parts of a dotted TOML key, quotes removed."""
    node, parts = tomllib.loads(f"{text.strip()} = 0"), []
    while isinstance(node, dict):
        if len(node) != 1:
            raise ValueError("more than one key")
        ((part, node),) = node.items()
        parts.append(part)
    return tuple(parts)
