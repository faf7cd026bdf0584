"""SlicedBounds: the base of bounds that get better in slices of time, each with a certificate."""

from abc import ABC, abstractmethod

import numpy as np

from app.bounds.certificate import Proof


class SlicedBounds(ABC):
    """A bound of one graph or metric that is improved while there is time.

    The solver has it as Bounds of a core (app/toolbox.py, app/search/core_bounds.py).

    method          how it was found; "": no bound yet
    optimum         a solution that is as good as the bound, once the bound's own search has found one
    least_seconds   an estimate of the shortest call of `improve`, where it is long
    check_seconds   an estimate of what checking the certificate takes, where it is long
    closing         whether the work under way may end with a proof that the best solution is optimal
    gaining         whether it may make the bound much better
    leads           whether it leads to the best solutions, or nearly
    """

    method: str
    optimum: np.ndarray | None = None
    least_seconds: float = 0.0
    check_seconds: float = 0.0
    closing: bool = False
    gaining: bool = False
    leads: bool = False

    @abstractmethod
    def improve(self, seconds: float, known: int | None = None) -> bool:
        """Work for about so many seconds; True where there is more to try.

        known   the value of the caller's best solution: a bound that meets it ends the work
        """

    @abstractmethod
    def certificate(self) -> Proof:
        """The bound with what proves it."""

    def expect(self, seconds: float) -> None:
        """Before the first call: the time limit of the run, in which what takes too long is not begun."""

    def allow(self, seconds: float) -> None:
        """Before the first call, where there is no time limit: what all calls may take, or more."""

    def close(self) -> None:
        """No more calls of `improve` will come. What is known stays."""

    def pieces(self) -> np.ndarray | None:
        """A solution better than the caller's, made of the best of each part; None: there is none."""
        return None
