"""Tables of names whose things are imported as they are looked up, so that a run imports what it uses."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

from app.errors import CaseError


class Table(MutableMapping[str, Any]):
    """What names stand for. To ask which names there are imports nothing.

    places   name -> "module:name in it"
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._things: dict[str, Any] = dict(places)

    def __getitem__(self, name: str) -> Any:
        thing = self._things[name]
        if isinstance(thing, str):
            module, _, inside = thing.partition(":")
            thing = self._things[name] = getattr(import_module(module), inside)
        return thing

    def __setitem__(self, name: str, thing: Any) -> None:
        self._things[name] = thing

    def __delitem__(self, name: str) -> None:
        del self._things[name]

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def check(self, key: str, what: str, name: str) -> None:
        """Refuse a name that a case gives for `key` and the table lacks. Raises CaseError."""
        if name not in self:
            raise CaseError(f"{key}: unknown {what} {name!r}; known: {', '.join(self)}")
