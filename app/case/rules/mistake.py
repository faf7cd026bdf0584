"""What rules of a case find, and the keys that they look at."""

from collections.abc import Iterable, Iterator
from typing import Any

from app.case.config import GRAPH_TABLES, Case, Keys, graph_tables

Mistake = tuple[Keys, str]  # a key, and what is wrong with it


def changed(table: Any, keys: Iterable[str]) -> Iterator[str]:
    """Those of a table's keys that are not at their default: at its default a key asks for nothing, and a
    written case has every key.
    """
    usual = type(table)()
    return (key for key in keys if getattr(table, key) != getattr(usual, key))


def unread_of_graphs(case: Case, keys: Iterable[str], read: bool = False) -> Iterator[Keys]:
    """Those of some keys that tables of graphs set and nothing reads; read: those of [graph] are read."""
    for at, graphs in zip(GRAPH_TABLES, graph_tables(case)):
        if graphs is not None and not (read and graphs is case.graph):
            yield from ((*at, key) for key in changed(graphs, keys))
