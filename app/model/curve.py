"""Strong scaling by the model: seconds, bytes and memory of a step on many numbers of ranks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.model.layout import Layout
from app.model.memory import total
from app.model.policy_memory import peak
from app.model.rates import Calibration, Network, Rates
from app.model.terms import Term
from app.model.work import States, evaluation, learning, sent_bytes
from app.rl.qnet import QNetwork

PARTS = ("embedding", "evaluation", "environment", "learning", "messages")  # of a step (RL4GO section 6)
TYPICAL = States(1, 0.5, 0.3)  # of minibatches that nobody drew: shares of live and of removed nodes


@dataclass(frozen=True)
class Machine:
    """Rates, and the network between the ranks."""

    calibration: Calibration
    network: Network


@dataclass(frozen=True)
class StepKind:
    """What is done at once.

    batch    states of a minibatch; 0: a policy evaluation
    double   whether the target is double Q-learning's, which evaluates the next states twice
    """

    batch: int
    double: bool = False

    @property
    def name(self) -> str:
        """As tables call it."""
        return f"training B={self.batch}" if self.batch else "evaluation"

    def terms(self, net: QNetwork, layout: Layout) -> list[Term]:
        """What it takes a rank."""
        if not self.batch:
            return evaluation(net, layout)
        return learning(net, layout, self._states(layout), self.double)

    def held(self, net: QNetwork, layout: Layout, base_bytes: int) -> int:
        """Bytes that a rank holds at most."""
        kind = "learning" if self.batch else "evaluation"
        return total(peak(net, layout, self._states(layout), kind, base_bytes))

    def _states(self, layout: Layout) -> States:
        if not self.batch:
            return States()
        return States(self.batch, TYPICAL.live, TYPICAL.removed * layout.n)


def curve(
    machine: Machine, net: QNetwork, layouts: Callable[[int], Layout], ranks: list[int], step: StepKind
) -> Iterator[dict[str, Any]]:
    """A line for each number of ranks of one graph and step.

    layouts   ranks -> layout
    A line has the seconds of each part and the parallel efficiency, both over the fewest of the ranks
    (RL4GO eqs. 3 to 7, with all messages in a part of their own).
    """
    first, fewest = 0.0, min(ranks)
    for count in sorted(set(ranks)):
        layout = layouts(count)
        terms, rates = step.terms(net, layout), Rates(machine.calibration, count, machine.network)
        seconds, by_part = rates.total(terms), rates.by_part(terms)
        first = first or seconds
        yield {
            "graph": layout.name, "step": step.name, "ranks": count,
            "seconds": seconds, "speedup": first / seconds, "sent_bytes": sum(sent_bytes(terms).values()),
            "memory_mb": round(step.held(net, layout, machine.calibration.base_bytes) / 1e6, 1),
            "exchange": layout.mode,
            "counts": "exact" if layout.exact else "expected",
            "efficiency": first * fewest / (seconds * count),
            **{f"{part}_s": by_part.get(part, 0.0) for part in PARTS},
        }  # fmt: skip
