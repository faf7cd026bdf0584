"""Random walks over neighbours, on rows that ranks share: what diffusion convolutions multiply by."""

from typing import Any

from app.comm.group import Group
from app.gnn.neighbours import both_ways
from app.sparse.rowblock import RowBlock

Array = Any


class Hops:
    """The powers P, P^2, ... P^K of P = D^-1 A, of a directed graph also those of Q = D'^-1 A^T.

    Source    Li et al. 2018 (DCRNN), eq. 2: both directions of a random walk; an undirected graph has one
    Forward   X_k = P X_{k-1}, X_0 = X: a product with A, then each row divided by its degree
    Backward  of gradients D_1 ... D_K by X_1 ... X_K, from the last one on:
              D_{k-1} += P^T D_k = A^T (D^-1 D_k)     D_0, by X, is what is left
    Ranks     rows partitioned; an exchange for each power, forward and backward

    count    powers in all     sides   directions: 1, or 2 of a directed graph
    """

    def __init__(self, group: Group, block: RowBlock, hops: int, weighted: bool = False) -> None:
        forward, adjoint = both_ways(group, block, weighted)
        ways = [(forward, adjoint)]
        if block.directed:
            ways.append((adjoint, forward))
        self.device, self.powers, self.sides = group.device, hops, len(ways)
        self._ways = [(there, back, there.scale("mean")) for there, back in ways]
        self.count = self.sides * hops

    def forward(self, X: Array, powers: int | None = None, out: list[Array] | None = None) -> list[Array]:
        """[P X, P^2 X, ..., Q X, ...] of rows X [n_own, w]; powers: how many of either direction, None: all.

        out     where they go, as many; None: new arrays
        Ranks   all call
        """
        found: list[Array] = []
        for there, _, scale in self._ways:
            last = X
            for _ in range(self.powers if powers is None else powers):
                Y = self.device.zeros(X.shape) if out is None else out[len(found)]
                if out is not None:
                    Y[...] = 0
                there.accumulate(last, Y)
                self.device.activate(Y, scale)
                found.append(Y)
                last = Y
        return found

    def backward(self, gradients: list[Array], dX: Array) -> None:
        """Add to dX [n_own, w] what gradients by `forward` of X come to; they are used up. Ranks: all
        call."""
        for side, (_, back, scale) in enumerate(self._ways):
            own = gradients[side * self.powers : (side + 1) * self.powers]
            for k in range(len(own) - 1, -1, -1):
                self.device.activate(own[k], scale)
                back.accumulate(own[k], own[k - 1] if k else dX)
