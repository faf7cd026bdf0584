"""Strong scaling by the model: seconds, bytes and memory of a step on many numbers of ranks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.model.layout import Layout
from app.model.memory import total
from app.model.policy_memory import peak
from app.model.rates import Calibration, Network, Rates
from app.model.work import States, evaluation, learning, sent_bytes
from app.rl.qnet import QNetwork

PARTS = ("embedding", "evaluation", "environment", "learning", "messages")  # of a step (RL4GO section 6)
TYPICAL = States(1, 0.5, 0.3)  # of minibatches that nobody drew: shares of live and of removed nodes


@dataclass(frozen=True)
class Machine:
    """Rates, and the network between the ranks."""

    calibration: Calibration
    network: Network


def curve(
    machine: Machine,
    net: QNetwork,
    layouts: Callable[[int], Layout],
    ranks: list[int],
    batch: int,
    double: bool,
) -> Iterator[dict[str, Any]]:
    """A line for each number of ranks of one graph and step.

    layouts   ranks -> layout     batch   of a training step; 0: a policy evaluation
    A line has the seconds of each part and the parallel efficiency, both over the fewest of the ranks
    (RL4GO eqs. 3 to 7, with all messages in a part of their own).
    """
    first, fewest = 0.0, min(ranks)
    for count in sorted(set(ranks)):
        layout = layouts(count)
        states = States(batch, TYPICAL.live, TYPICAL.removed * layout.n) if batch else States()
        terms = learning(net, layout, states, double) if batch else evaluation(net, layout)
        rates = Rates(machine.calibration, count, machine.network)
        seconds, by_part = rates.total(terms), rates.by_part(terms)
        first = first or seconds
        kind = "learning" if batch else "evaluation"
        held = peak(net, layout, states, kind, machine.calibration.base_bytes)
        yield {
            "graph": layout.name, "step": f"training B={batch}" if batch else "evaluation", "ranks": count,
            "seconds": seconds, "speedup": first / seconds, "sent_bytes": sum(sent_bytes(terms).values()),
            "memory_mb": round(total(held) / 1e6, 1), "exchange": layout.mode,
            "counts": "exact" if layout.exact else "expected",
            "efficiency": first * fewest / (seconds * count),
            **{f"{part}_s": by_part.get(part, 0.0) for part in PARTS},
        }  # fmt: skip
