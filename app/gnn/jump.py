"""Jumping knowledge: a last layer that reads what all layers before it give (Xu et al. 2018)."""

from itertools import pairwise
from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.programs import Rows

Array = Any
KEY = "gnn.jump"
KINDS = ("concat", "max")


class Jump:
    """J of the outputs H_1..H_m of the inner layers, which the last layer reads in the place of H_m.

    Source    Xu et al. 2018, section 4 (concatenation, max-pooling)
    Forward   concat   J = [H_1 | ... | H_m]     max   J = the largest H_l by elements, of layers of one width
    Shapes    H_l [n_own, f_l]   J [n_own, f_1 + ... + f_m], or [n_own, f]
    Backward  D = dJ comes in; beside what comes back from layer l + 1,
              concat   dH_l += the columns of D that are H_l's
              max      dH_l += D where H_l = J and no later layer has it, else 0: a subgradient of the
                       maximum. The last layer comes first; what it takes is zero for those before it
    Ranks     rows partitioned, each worked on alone: no exchange
    Memory    J and dJ beside the outputs, which training keeps in any case; without a backward pass all H_l
              until J is made
    Differs   H_l are as the next layer hears them, with its dropout; no LSTM-attention
    """

    def __init__(self, kind: str, widths: list[int]) -> None:
        """widths   columns of the inner layers. Raises CaseError where there is nothing to be joined."""
        if len(widths) < 2:
            found = f"{len(widths)} layer{'s' * (len(widths) != 1)} before the last one"
            raise CaseError(f'{KEY}: joins what at least two layers give, here is {found}; "" would be right')
        if kind == "max" and len(set(widths)) > 1:
            found = ", ".join(map(str, widths))
            raise CaseError(f'{KEY}: max is of layers of one width, not of {found}; "concat" would be right')
        self.kind, self.widths = kind, widths
        self.cuts: list[int] = np.cumsum([0, *widths]).tolist()
        self.width = self.cuts[-1] if kind == "concat" else widths[0]
        self.held: list[Rows] = []
        self._joined: Rows | None = None
        self._D: Rows | None = None

    def join(self, engine: Engine, keep: bool) -> Rows:
        """J of the rows that are held; keep: a backward pass follows, which needs them; else freed."""
        J = engine.take("J", self.width)
        if self.kind == "concat":
            for (lo, hi), each in zip(pairwise(self.cuts), self.held):
                engine.put_columns(J, each, lo, hi)
        else:
            xp, held = engine.device.xp, self.held
            work = lambda: _largest(xp, [each.array for each in held], J.array)  # noqa: E731
            engine.apply("elementwise", "largest", self.held, [J], work)
        if keep:
            self._joined = J
        else:
            engine.free(*self.held)
            self.held = []
        return J

    def begin_back(self, engine: Engine, D: Rows) -> None:
        """Take D = dJ, of which `part` gives each layer its own, the last one first, and then frees it."""
        self._D = D

    def part(self, engine: Engine, layer: int, back: Rows | None) -> Rows:
        """The gradient by what layer `layer`, from 0, gives.

        back   that by what the next layer heard of it, which becomes the result; None: the last layer's
        """
        D, dH = self._D, engine.take("dH", self.widths[layer]) if back is None else back
        if self.kind == "concat":
            lo, hi = self.cuts[layer : layer + 2]
            work = lambda: self._add(dH, D.array[:, lo:hi], back is None)  # noqa: E731
            engine.apply("elementwise", "jump_back", [D, dH], [dH], work)
        else:
            self._part_of_largest(engine, layer, D, dH, back is None)
        if not layer:
            engine.free(D, self._joined)
            self.held, self._D, self._joined = [], None, None
        return dH

    def _part_of_largest(self, engine: Engine, layer: int, D: Rows, dH: Rows, first: bool) -> None:
        """Add to dH what is its layer's of D, and take it off D."""
        J, H, own = self._joined, self.held[layer], engine.take("own", self.width)

        def work() -> None:
            engine.device.xp.multiply(D.array, H.array == J.array, out=own.array)
            D.array[...] -= own.array
            self._add(dH, own.array, first)

        engine.apply("elementwise", "jump_back", [D, dH, H, J], [D, dH, own], work)
        engine.free(own)

    def _add(self, dH: Rows, own: Array, first: bool) -> None:
        """dH = own, or += own."""
        if first:
            dH.array[...] = own
        else:
            dH.array[...] += own


def _largest(xp: Any, rows: list[Array], out: Array) -> None:
    """out = the largest of rows by elements."""
    out[...] = rows[0]
    for each in rows[1:]:
        xp.maximum(out, each, out=out)
