"""What is explained of the rows that a network gives: a node's scores, or what the rows of two ends say.

Nodes   z = Z_v
Edges   z = U W + c     U = relu(p_u + p_v + q_u * q_v + |r_u - r_v| + F W_e + b), Z = [p q r]
        (edge_level/head.py). With G = dz:     T = [U > 0]     dU = (G W^T) * T
        dp_u = dp_v = dU     dq_u = dU * q_v     dr_u = dU * sign(r_u - r_v)     dF = dU W_e^T
Pairs   z = Z_u . Z_v, one column (links/predictor.py)     dZ_u = G Z_v     dZ_v = G Z_u

In float64: the rows are those of float32.
"""

from typing import Any, Protocol

import numpy as np

from app.gnn.edge_level.head import EdgeHead
from app.gnn.explain.field import Field
from app.gnn.goals import Goal


class Reader(Protocol):
    """Scores [columns] of rows [1|2, width], and back; the features of an edge are multiplied by a share."""

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """[columns] float64."""

    def back(self, Z: np.ndarray, G: np.ndarray) -> np.ndarray:
        """[1|2, width], the gradient by the rows from that by the scores."""

    def put_share(self, share: float) -> None:
        """Let `share` of the features of the edge be read."""

    def contributions(self) -> np.ndarray:
        """[c] float64, the features of the edge times the gradients by them, of the last `back`."""


class OfNode:
    """The scores of a node, or of a graph."""

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """See Reader."""
        return Z[0]

    def back(self, Z: np.ndarray, G: np.ndarray) -> np.ndarray:
        """See Reader."""
        return G[None]

    def put_share(self, share: float) -> None:
        """Nothing: no edge is explained."""

    def contributions(self) -> np.ndarray:
        """[0]."""
        return np.zeros(0)


class OfPair(OfNode):
    """The product of the rows of two nodes."""

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """See Reader."""
        return np.array([Z[0] @ Z[1]])

    def back(self, Z: np.ndarray, G: np.ndarray) -> np.ndarray:
        """See Reader."""
        return G[0] * Z[::-1]


class OfEdge:
    """What a head says of an edge.

    F   [c] its features; None: it has none
    """

    def __init__(self, head: EdgeHead, params: Any, F: np.ndarray | None) -> None:
        def known(name: str, there: bool) -> np.ndarray:
            return params[name].astype(np.float64) if there else np.zeros((1, 1))

        self.h, self.F, self.share = head.hidden, F, 1.0
        self.W, self.W_edge = known(head.W, True), known(head.W_edge, F is not None)
        self.b, self.c = known(head.b, head.bias), known(head.c, head.bias)
        self._found = np.zeros(0 if F is None else len(F))

    def _units(self, Z: np.ndarray) -> np.ndarray:
        """[h] before relu."""
        (p_u, q_u, r_u), (p_v, q_v, r_v) = Z.reshape(2, 3, self.h)
        given = 0.0 if self.F is None else self.share * self.F @ self.W_edge
        return p_u + p_v + q_u * q_v + np.abs(r_u - r_v) + given + self.b[0]

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """See Reader."""
        return np.maximum(self._units(Z), 0) @ self.W + self.c[0]

    def back(self, Z: np.ndarray, G: np.ndarray) -> np.ndarray:
        """See Reader."""
        dU = np.where(self._units(Z) > 0, self.W @ G, 0)
        (_, q_u, r_u), (_, q_v, r_v) = Z.reshape(2, 3, self.h)
        away = dU * np.sign(r_u - r_v)
        if self.F is not None:
            self._found = self.F * (self.W_edge @ dU)
        return np.stack([np.concatenate([dU, dU * q_v, away]), np.concatenate([dU, dU * q_u, -away])])

    def put_share(self, share: float) -> None:
        """See Reader."""
        self.share = share

    def contributions(self) -> np.ndarray:
        """See Reader."""
        return self._found


def reader_of(head: EdgeHead | None, params: Any, goal: Goal, field: Field) -> Reader:
    """What reads the scores of a field."""
    if head is not None:
        return OfEdge(head, params, field.of_edge)
    return OfPair() if goal.kind == "links" else OfNode()
