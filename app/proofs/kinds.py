"""What proves a bound of a whole instance: the reductions step by step, and a witness of the core's bound.

A proof says nothing of the question itself: graph, weights and fixed nodes are those of the toolbox that
proves it (Toolbox.prove), so that a proof from a file can claim nothing about them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.bounds.clique.degeneracy import CliqueBound
from app.bounds.cover.witness import CoverBound
from app.bounds.coverage.prices import PriceBound
from app.bounds.cut.cycles import CycleCertificate
from app.bounds.cut.verify import CutCertificate, TriangleCertificate
from app.bounds.dfvs.witness import DirectedFeedbackPart
from app.bounds.dismantle.witness import DismantleBound
from app.bounds.domination.packing import Mask, Packing
from app.bounds.fvs.witness import FeedbackBound
from app.bounds.ordering.witness import OrderingPart
from app.bounds.steiner.witness import SteinerBound
from app.reductions.domination.reducer import Step


@dataclass(frozen=True, eq=False)
class CoverProof:
    """Of vertex covers and independent sets.

    log       [words] int64, reductions (app/reductions/cover/log.py)
    bound     of the covers of what they leave
    checked   False where finished searches have found a better bound of some parts
    """

    log: np.ndarray
    bound: CoverBound
    checked: bool

    def bound_with(self, weights: np.ndarray) -> CoverBound:
        """The bound for weights [k] int64 of what the reductions leave."""
        own = None if (weights == 1).all() else weights
        return replace(self.bound, packing=replace(self.bound.packing, weights=own))


@dataclass(frozen=True, eq=False)
class CutProof:
    """Of maximum cuts.

    log      [words] int64, reductions (app/reductions/cut/log.py), or None: the witness is of the graph
    witness  of the cuts of what they leave
    """

    log: np.ndarray | None
    witness: CutCertificate | CycleCertificate | TriangleCertificate
    checked = True


@dataclass(frozen=True, eq=False)
class DominationProof:
    """Of dominating sets.

    steps     reductions (app/reductions/domination/reducer.py)
    packing   of what they leave
    checked   False where a finished search has found a better bound
    """

    steps: tuple[Step, ...]
    packing: Packing
    checked: bool

    def packing_with(self, price: np.ndarray | None, needed: Mask, allowed: Mask) -> Packing:
        """The packing for the prices and masks of what the reductions leave; None: all one, all nodes."""
        return replace(self.packing, weights=price, needed=needed, allowed=allowed)


@dataclass(frozen=True, eq=False)
class CliqueProof:
    """Of cliques.

    peeled    [k] int64, nodes that no clique heavier than `least` holds, in order
    rest      of the cliques among the others: of the covers of their complement, or a colouring
    checked   False where a finished search has found a better bound
    """

    least: int
    peeled: np.ndarray
    rest: CoverProof | CliqueBound
    checked: bool


@dataclass(frozen=True, eq=False)
class ReducedProof:
    """Of what reductions leave, and these.

    log     [words] int64, reductions (log.py of the problem in app/reductions/)
    bound   of the solutions of what they leave
    """

    log: np.ndarray
    bound: Any

    @property
    def checked(self) -> bool:
        """False where a finished search has found a better bound."""
        return self.bound.checked


@dataclass(frozen=True, eq=False)
class SteinerProof(ReducedProof):
    """Of Steiner trees."""

    bound: SteinerBound


@dataclass(frozen=True, eq=False)
class PrizedProof(SteinerProof):
    """Of Steiner trees with prizes.

    entries   [m] int64, nodes of the graph, of which a tree holds one, or leaves the prizes of all out
    """

    entries: np.ndarray


@dataclass(frozen=True, eq=False)
class FeedbackProof(ReducedProof):
    """Of feedback vertex sets."""

    bound: FeedbackBound


@dataclass(frozen=True, eq=False)
class DismantleProof(ReducedProof):
    """Of sets that dismantle a graph."""

    bound: DismantleBound


@dataclass(frozen=True, eq=False)
class DirectedFeedbackProof:
    """Of directed feedback vertex sets.

    log     [words] int64, reductions (app/reductions/dfvs/log.py)
    parts   bounds of parts of what they leave, without common nodes
    cover   where all arcs of that are mutual: of the vertex covers of its pairs; else None
    """

    log: np.ndarray
    parts: tuple[DirectedFeedbackPart, ...]
    cover: CoverProof | None = None

    @property
    def checked(self) -> bool:
        """False where a finished search has found a better bound."""
        return self.cover is None or self.cover.checked


@dataclass(frozen=True, eq=False)
class OrderingProof:
    """Of orders of little weight backward.

    log     [words] int64, reductions (app/reductions/ordering/log.py)
    parts   bounds of parts of what they leave, without common arcs
    """

    log: np.ndarray
    parts: tuple[OrderingPart, ...]
    checked = True


@dataclass(frozen=True, eq=False)
class CoverageProof:
    """Of choices of sets.

    log       [words] int64, reductions (app/reductions/coverage/reducer.py)
    bound     prices of all elements that are asked for
    checked   False where branch and cut has found a better bound
    """

    log: np.ndarray
    bound: PriceBound
    checked: bool


@dataclass(frozen=True, eq=False)
class InfluenceProof:
    """Of seeds of largest spread, with the probability that is asked for: the sets are drawn again.

    number, sets   which collection of reverse reachable sets, and how many it has
    bound          prices of these: what no seeds hit more of
    checked        False where branch and cut has found a better bound
    """

    number: int
    sets: int
    bound: PriceBound
    checked: bool
