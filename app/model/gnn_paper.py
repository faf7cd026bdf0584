"""Full-batch training on paper: memory and seconds of an epoch on data sets known by counts alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from app.case.gnn import GnnCase
from app.errors import CaseError
from app.model import gnn_memory, memory
from app.model.gnn import Training, flops, gathered, traffic
from app.model.gnn_inputs import Inputs
from app.model.layout import estimate
from app.model.rates import Rates

# MG-GCN, Table 1, and the models of its section 6.1 whose times its Table 3 has.
NETWORKS = (
    "Reddit 233000 115000000 602 41 2 16",
    "Products 2500000 126000000 104 47 3 256",
    "Proteins 8740000 1300000000 128 256 3 256",
    "Papers 111000000 1610000000 128 172 3 208",
)
# MG-GCN, Table 3: seconds of an epoch on a DGX-A100, by the number of GPUs.
PUBLISHED = {
    "Reddit": {1: 0.033, 2: 0.017, 4: 0.012, 8: 0.012},
    "Papers": {8: 2.89},
    "Products": {1: 0.355, 2: 0.202, 4: 0.110, 8: 0.067},
    "Proteins": {1: 4.221, 2: 2.272, 4: 1.191, 8: 0.641},
}
DENSE = ("dense", "gram")


@dataclass(frozen=True)
class DataSet:
    """Counts of a data set, and the model that is trained on it: `depth` layers, `hidden` columns between."""

    name: str
    nodes: int
    entries: int
    features: int
    classes: int
    depth: int
    hidden: int

    def text(self) -> str:
        """Name and widths."""
        widths = [self.features, *[self.hidden] * (self.depth - 1), self.classes]
        return f"{self.name} {'-'.join(map(str, widths))}"


def data_set(text: str) -> DataSet:
    """The data set that a text such as "Reddit 233000 115000000 602 41 2 16" describes. Raises CaseError."""
    name, *numbers = text.split() or [""]
    if len(numbers) != 6 or not all(word.isdecimal() and int(word) > 0 for word in numbers):
        right = "NAME NODES ENTRIES FEATURES CLASSES DEPTH HIDDEN, whole numbers above 0"
        raise CaseError(f"study.networks: a data set must be {right}, got {text!r}")
    return DataSet(name, *map(int, numbers))


def training_of(device: Any, case: GnnCase, each: DataSet, ranks: int, exchange: str, first: str) -> Training:
    """Counts of a data set's training on `ranks` ranks; first: gnn.first_product."""
    gnn = msgspec.structs.replace(
        case, depth=each.depth, hidden=each.hidden, layers=[], weights="", first_product=first
    )
    layout = estimate(each.name, each.nodes, each.entries, ranks, exchange, each.hidden)
    return Training(device, gnn, Inputs(each.features, each.classes), layout)


def paper_rows(
    device: Any, case: GnnCase, sets: list[DataSet], ranks: list[int], exchange: str, machines: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row for each data set and number of ranks.

    machines   for each name a function from the number of ranks to Rates
    """
    for each in sets:
        for count in ranks:
            live, kept = (
                training_of(device, case, each, count, exchange, first) for first in ("mg_gcn", "cached")
            )
            yield _row(each, live, kept, {name: rates(count) for name, rates in machines.items()})


def _row(each: DataSet, live: Training, kept: Training, machines: dict[str, Rates]) -> dict[str, Any]:
    """A row of the table: memory, messages and seconds of an epoch on the rank that has most to do.

    live, kept   the training with MG-GCN's first product, and with one that is made once
    """
    layout, rank = live.layout, live.layout.heaviest
    terms, held = live.epoch(rank), gnn_memory.peak(live, rank)
    row: dict[str, Any] = {
        "set": each.name, "model": each.text(), "ranks": layout.ranks, "exchange": layout.mode,
        "memory": held, "memory_bytes": memory.total(held),
        "kept_bytes": memory.total(gnn_memory.peak(kept, rank)),
        "rule_bytes": gnn_memory.mg_gcn_rule(live, rank),
        "sent_bytes": sum(sent for sent, _ in traffic(terms).values()), "flops": sum(flops(terms).values()),
        "gathered_bytes": gathered(terms), "published_s": PUBLISHED.get(each.name, {}).get(layout.ranks),
    }  # fmt: skip
    for name, rates in machines.items():
        parts = rates.by_part(terms)
        row[name] = {
            "seconds": rates.total(terms), "kept_s": rates.total(kept.epoch(rank)),
            "spmm": parts.get("spmm", 0.0), "dense": sum(parts.get(part, 0.0) for part in DENSE),
            "messages": parts.get("messages", 0.0),
        }  # fmt: skip
    return row


def table_lines(rows: list[dict[str, Any]], machines: list[str]) -> Iterator[str]:
    """The rows as a table of docs/measurements/networks.md."""
    columns = [f"{name}, s: products / dense / messages / epoch (A X kept)" for name in machines]
    head = [
        "data set, widths", "P", "exchange",
        "a rank, GB: graph + tiled copy + features + buffers + exchange = all",
        "sent by a rank, GB", *columns, "MG-GCN, s",
    ]  # fmt: skip
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        held = row["memory"]
        parts = [held.get(name, 0) for name in ("graph", "tiles", "features", "buffers", "exchange")]
        found = f"{' + '.join(gigabytes(part) for part in parts)} = {gigabytes(row['memory_bytes'])}"
        times = [_times(row[name]) for name in machines]
        published = "-" if row["published_s"] is None else f"{row['published_s']:g}"
        cells = [
            row["model"], str(row["ranks"]), row["exchange"], found, gigabytes(row["sent_bytes"]), *times,
            published,
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def gigabytes(nbytes: float) -> str:
    """Bytes as a number of three digits."""
    return f"{nbytes / 1e9:.3g}"


def _times(found: dict[str, float]) -> str:
    first = " / ".join(f"{found[name]:.3g}" for name in ("spmm", "dense", "messages"))
    return f"{first} / {found['seconds']:.3g} ({found['kept_s']:.3g})"
