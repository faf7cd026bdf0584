"""Transfers by the dynamic program, least recently used and streaming, side by side (ROC, Figure 10).

    python bench/transfers.py

From operation graphs alone, in half a second: nothing is measured, and all machines print the same.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.memory.operations import Epoch
from app.memory.plan import make_plan
from bench import architectures

REDDIT = (232_965, 602, 41)  # nodes, features, classes (ROC, Table 4)
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
COMPARED = ("dynamic program", "least recently used", "streaming")


def epochs_compared(
    nodes: int = REDDIT[0], features: int = REDDIT[1], classes: int = REDDIT[2], hidden: int = 256
) -> dict[str, Epoch]:
    """GCN and GIN of 2 to 4 layers, residual GCN and a step of policy training (16 states of n/16 nodes)."""
    epochs = {}
    for depth in (2, 3, 4):
        widths = [features, *[hidden] * (depth - 1), classes]
        epochs[f"GCN, {depth} layers"] = architectures.gcn(nodes, widths)
        epochs[f"GIN, {depth} layers"] = architectures.gin(nodes, widths)
    deep = [features, *[hidden] * 7, classes]
    epochs["residual GCN, 8 layers"] = architectures.gcn(nodes, deep, residual=True)
    epochs["structure2vec, 4 rounds"] = architectures.policy_step(nodes, 16, 4, 6)
    return dict(sorted(epochs.items()))


def transfers_table(epochs: dict[str, Epoch], shares: tuple[float, ...] = SHARES) -> list[str]:
    """A line for each epoch and limit: MB moved in an epoch by each method, and the ratios to the least.

    shares   limits, of what is alive at once; those too small for an operation are left out, and the least
             limit that works is put before them
    """
    lines = [
        "| epoch | limit, MB | of alive | dynamic program, MB | ahead | least recently used | streaming |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, epoch in epochs.items():
        limits = [int(share * epoch.most_bytes) for share in shares]
        for limit in [epoch.least_bytes, *[each for each in limits if each > epoch.least_bytes]]:
            lines.append(_line(name, epoch, limit))
    return lines


def _line(name: str, epoch: Epoch, limit: int) -> str:
    """One limit: MB of the least plan, what of its loads is read ahead, and the others' ratios to it."""
    best, *others = (make_plan(epoch, limit, method) for method in COMPARED)
    ratios = [
        f"{plan.moved_bytes / 1e6:,.0f} ({plan.moved_bytes / best.moved_bytes:.2f})"
        if best.moved_bytes
        else f"{plan.moved_bytes / 1e6:,.0f}"
        for plan in others
    ]
    ahead = f"{best.ahead_bytes / best.loaded_bytes:.0%}" if best.loaded_bytes else "-"
    mark = "" if best.exact else " (not certain)"
    return (
        f"| {name} | {limit / 1e6:,.0f} | {limit / epoch.most_bytes:.0%} | "
        f"{best.moved_bytes / 1e6:,.0f}{mark} | {ahead} | {' | '.join(ratios)} |"
    )


if __name__ == "__main__":
    print("\n".join(transfers_table(epochs_compared())))
