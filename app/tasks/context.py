"""Context: what every task needs, made once by app.main and handed down unchanged."""

from dataclasses import dataclass
from typing import Any

from app.comm.group import Group
from app.config import Case, GraphCase
from app.log import Log
from app.output import RunFolder
from app.partition.load import Loaded, load_graphs
from app.sparse.rowblock import RowBlock


@dataclass(frozen=True)
class Context:
    """A case, the ranks that run it, where they write (None: nowhere) and what they say."""

    case: Case
    group: Group
    log: Log
    folder: RunFolder | None

    @property
    def device(self) -> Any:
        """The device of this rank."""
        return self.group.device

    def load(self, table: GraphCase, purpose: str) -> list[Loaded]:
        """The graphs a table names, with what the files held in the log. Ranks: all call."""
        with self.log.phase("read"):
            loaded = load_graphs(self.group, table, purpose, self.case)
        for item in loaded:
            for warning in item.warnings:
                self.log.info("warning: %s", warning)
        return loaded

    def rows(self, loaded: Loaded) -> RowBlock:
        """The device rows of a loaded graph. Ranks: all call."""
        with self.log.phase("distribute"):
            return RowBlock(self.group, loaded.graph, loaded.rows, self.case.parallel.exchange)
