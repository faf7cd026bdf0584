"""CoreBounds: bounds that improve in slices of time, as the solver wants them."""

from typing import Any

import numpy as np


class CoreBounds:
    """Around an object with improve(seconds, best), method, certificate(), and its bound under a side's name.

    inner     CoverBounds, CutBounds, TourBounds
    subject   the graph or metric that its certificate is checked on
    side      "lower" or "upper"
    """

    def __init__(self, inner: Any, subject: Any, side: str) -> None:
        self.inner, self.subject, self.side = inner, subject, side

    @property
    def value(self) -> int:
        """The best bound so far."""
        return int(getattr(self.inner, self.side))

    @property
    def method(self) -> str:
        """How it was found."""
        return self.inner.method

    def expect(self, seconds: float) -> None:
        """The time limit of the run, where the inner object asks for it."""
        expect = getattr(self.inner, "expect", None)
        if expect is not None:
            expect(seconds)

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so many seconds, knowing a solution's value; True while there is more to try."""
        return self.inner.improve(seconds, best)

    @property
    def closing(self) -> bool:
        """Whether what works on the bound now may end with a proof that the best solution is optimal."""
        return getattr(self.inner, "closing", False)

    @property
    def gaining(self) -> bool:
        """Whether what works on the bound now may make it much better."""
        return getattr(self.inner, "gaining", False)

    @property
    def least_seconds(self) -> float:
        """An estimate of the shortest call of `improve`, where it is long."""
        return getattr(self.inner, "least_seconds", 0.0)

    @property
    def check_seconds(self) -> float:
        """An estimate of what `verify` takes, where it is long."""
        return getattr(self.inner, "check_seconds", 0.0)

    def optimum(self) -> np.ndarray | None:
        """An optimal solution, where the bounds' own search has finished with one."""
        return getattr(self.inner, "optimum", None)

    def pieces(self) -> np.ndarray | None:
        """A better solution than the caller's, made of the best of each part, where the inner object can."""
        made = getattr(self.inner, "pieces", None)
        return None if made is None else made()

    def verify(self) -> bool:
        """Prove the bound from its witness; False where a finished search has left none."""
        certificate = self.inner.certificate()
        certificate.check(self.subject)
        return getattr(certificate, "checked", True)
