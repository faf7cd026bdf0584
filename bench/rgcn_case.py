"""What every program of bench/rgcn.py is given: edges with relations, labels, first weights: plain arrays.

Nothing of `app` is imported here, so an interpreter that holds another program's libraries alone can read it.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

LEARNING_RATE = 0.01  # of Adam
BASES, HIDDEN = 40, 16


@dataclass(eq=False)
class RgcnCase:
    """Full-batch training of a relational graph convolutional network with one-hot inputs and two layers.

    target, relation, source   [m] int64: row `source` counts in row `target` under `relation`
    train, labels   [k] int64: training nodes, ascending, and their classes
    read            [q] int64: all nodes whose outputs are read, ascending
    """

    name: str
    nodes: int
    relations: int
    classes: int
    target: np.ndarray
    relation: np.ndarray
    source: np.ndarray
    train: np.ndarray
    labels: np.ndarray
    read: np.ndarray
    seed: int = 1

    def weights(self) -> dict[str, np.ndarray]:
        """First weights by layer: V [bases, f_in, f_out], a [relations, bases], self [f_in, f_out]."""
        drawn = {}
        for layer, (f_in, f_out) in enumerate(((self.nodes, HIDDEN), (HIDDEN, self.classes)), 1):
            draws = np.random.Generator(np.random.Philox(key=[self.seed, layer]))
            for name, shape in (
                ("V", (BASES, f_in, f_out)),
                ("a", (self.relations, BASES)),
                ("self", (f_in, f_out)),
            ):
                bound = np.sqrt(6 / (shape[-2] + shape[-1]))
                drawn[f"{name}{layer}"] = draws.uniform(-bound, bound, shape).astype(np.float32)
        return drawn

    def save(self, path: Path) -> None:
        """Write all of it to an .npz file."""
        np.savez(path, **{each.name: getattr(self, each.name) for each in fields(self)})


def load_case(path: Path) -> RgcnCase:
    """Read what `RgcnCase.save` wrote."""
    kinds = {"name": str, "nodes": int, "relations": int, "classes": int, "seed": int}
    with np.load(path, allow_pickle=False) as f:
        return RgcnCase(**{name: kinds.get(name, np.asarray)(f[name]) for name in f.files})
