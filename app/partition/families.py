"""What generators that stand for several families make by turns: of each family, with which keys."""

from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from app.case.graph import GraphCase


@dataclass(frozen=True)
class Turn:
    """A family, and what it takes in place of the keys of its table.

    per_node   edges for each node, or None: as the table says; of "er" by its probability
    keys       other keys of [graph]
    """

    family: str
    per_node: float | None = None
    keys: dict[str, Any] = field(default_factory=dict)

    def table(self, case: GraphCase, n: int) -> GraphCase:
        """The table [graph] of a graph of n nodes."""
        changes = {"generator": self.family, **self.keys}
        if self.per_node is not None and self.family == "er":
            changes["p"] = min(2 * self.per_node / max(n - 1, 1), 1.0)
        elif self.per_node is not None and self.family in ("ba", "small_world"):
            changes["d"] = max(1, min(round(self.per_node), n - 1))
        elif self.per_node is not None:
            changes["edges"] = round(self.per_node * n)
        return structs.replace(case, **changes)


# Like roads, meshes, citations, social and other networks, sparse and dense: what a policy should have seen.
_ATTACHED = [Turn("ba", d) for d in (1, 2, 3, 4, 6)]
_SPARSE = [Turn("er", d) for d in (1, 1.5, 2, 2.5, 3.5, 5)]
_DENSE = [Turn("er", keys={"p": p}) for p in (0.1, 0.15, 0.2, 0.3, 0.5)]
_GRIDS = [Turn("torus", keys={"removed": share}) for share in (0.0, 0.1, 0.2, 0.3, 0.4)]
_NEAR = [Turn("geometric", d) for d in (1.5, 2, 3, 4.5)]
_WORLDS = [Turn("small_world", d, {"p": p}) for d in (2, 3) for p in (0.05, 0.1, 0.3)]
_HUBS = [
    Turn("chung_lu", d, {"exponent": e})
    for d, e in ((1, 2.5), (8, 2.1), (2, 2.1), (1.5, 3.0), (4, 2.2), (2, 2.5), (12, 2.1))
]
_QUARTERS = [Turn("rmat", d) for d in (2, 4, 10)]
_TRIANGLES = [
    Turn("bter", d, {"exponent": e, "clustering": c})
    for d, e, c in ((1.5, 3.0, 0.3), (2, 2.5, 0.7), (4, 2.3, 0.6))
]

# By turns, and within each by turns again.
FAMILIES: dict[str, list[list[Turn]]] = {
    "mixed": [[Turn("ba")], [Turn("er")]],
    "varied": [[Turn("ba")], [Turn("er")], [Turn("torus")]],
    "diverse": [_ATTACHED, _SPARSE, _DENSE, _GRIDS, _NEAR, _WORLDS, _HUBS, _QUARTERS, _TRIANGLES],
}


def turns_of(case: GraphCase) -> list[list[Turn]]:
    """What a table's generator makes by turns; itself alone where it is one family."""
    return FAMILIES.get(case.generator, [[Turn(case.generator)]])


def family_names(case: GraphCase) -> list[str]:
    """The families of a table's generator, in their turns."""
    return [turns[0].family for turns in turns_of(case)]


def turn_of(case: GraphCase, number: int) -> tuple[Turn, int]:
    """What graph `number` of a set is, and a count in which every turn of a family meets all kinds."""
    families = turns_of(case)
    before, which = divmod(number, len(families))
    cycle, turn = divmod(before, len(families[which]))
    return families[which][turn], cycle + turn
