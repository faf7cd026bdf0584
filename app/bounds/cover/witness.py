"""What proves a lower bound on vertex covers, part by part of a graph."""

from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Bound, exact_sum
from app.bounds.cover.packing import Packing
from app.bounds.cover.theta_verify import ThetaCertificate
from app.graphs.derived import induced
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set


@dataclass(frozen=True, eq=False)
class Claim:
    """What a finished search says: no cover of the part of the graph that `nodes` [k] span costs less."""

    nodes: np.ndarray
    cost: int


@dataclass(frozen=True, eq=False)
class ThetaPart:
    """What the theta function says of the part of the graph that `nodes` [k], ascending, span: all of their
    weight but that of an independent set has to be paid, at least `cost`.
    """

    nodes: np.ndarray
    cost: int
    certificate: ThetaCertificate

    def check(self, graph: Graph, weights: np.ndarray | None) -> None:
        """Prove the bound on the part. weights [n] of the graph, or None: all one. Raises BadCertificate."""
        method = self.certificate.method
        if len(self.nodes) and (np.diff(self.nodes) <= 0).any():
            raise BadCertificate(f"{method}: the nodes of a part are not ascending")
        own = None if weights is None else weights[self.nodes]
        self.certificate.check(induced(graph, self.nodes), own)
        total = len(self.nodes) if own is None else exact_sum(own)
        if self.cost != total - self.certificate.upper:
            raise BadCertificate(
                f"{method}: {total} and {self.certificate.upper} do not make a cost of {self.cost}"
            )


@dataclass(frozen=True, eq=False)
class CoverBound(Bound):
    """A packing for one part of the graph, the theta function or claims of finished searches for others,
    without common nodes.

    A search has no witness short enough to keep: `checked` is False where there are claims. `check` proves
    the packing and that the claims' nodes are apart from it and from each other; the claims' costs it takes
    as said.
    """

    lower: int
    method: str
    packing: Packing
    claims: tuple[Claim, ...] = ()
    thetas: tuple[ThetaPart, ...] = ()

    @property
    def checked(self) -> bool:
        """True where `check` proves all of the bound."""
        return not self.claims

    def check(self, graph: Graph) -> None:
        """Prove what has a witness. Raises BadCertificate."""
        self.packing.check(graph)
        times = np.zeros(graph.n, dtype=np.int64)
        times[sorted_set(self.packing.columns.nodes)] = 1
        for part in (*self.claims, *self.thetas):
            if len(part.nodes) and not 0 <= part.nodes.min() <= part.nodes.max() < graph.n:
                raise BadCertificate(f"{self.method}: a part's node is not in {graph.name}")
            np.add.at(times, part.nodes, 1)
        if (times > 1).any():
            raise BadCertificate(f"{self.method}: node {int(times.argmax())} is paid for twice")
        for part in self.thetas:
            part.check(graph, self.packing.weights)
        said = self.packing.lower + sum(part.cost for part in (*self.claims, *self.thetas))
        if said != self.lower:
            raise BadCertificate(
                f"{self.method}: the parts add up to {said}, the certificate says {self.lower}"
            )
