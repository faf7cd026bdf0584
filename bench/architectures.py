"""Training epochs as operation graphs in which features count as a tensor too (ROC, section 5, Figure 3).

An engine records its own operations (app/gnn/engine.py), with features by pieces and elementwise operations
one by one. ROC has them as one tensor and fuses the elementwise operations with those before them, so its
epochs are written down here: weights first in every convolution, gradients in the order of the layers'
derivations. The graph is not a tensor.
"""

from dataclasses import replace

from app.memory.arena import padded
from app.memory.operations import Epoch, Operation


class Tape:
    """Operations as they are written down, and the columns of their tensors."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.widths: dict[str, int] = {}

    def run(self, kind: str, reads: tuple[str, ...], writes: str = "", width: int = 0) -> str:
        """Add an operation. writes: what it makes or changes, and its columns where it is new."""
        if width:
            self.widths[writes] = width
        name = f"{', '.join(reads)} -> {writes}" if writes else ", ".join(reads)
        self.operations.append(Operation(kind, name, reads, (writes,) if writes else ()))
        return writes

    def change(self, kind: str, reads: tuple[str, ...], tensor: str) -> None:
        """Change a tensor elementwise, where the last operation made it as part of that one."""
        last = self.operations[-1]
        if tensor not in last.writes:
            self.run(kind, (tensor, *reads), tensor)
            return
        more = tuple(name for name in reads if name not in last.reads)
        fused = replace(last, kind=f"{last.kind}+{kind}", reads=last.reads + more)
        self.operations[-1] = fused

    def epoch(self, rows: int) -> Epoch:
        """The epoch of float32 tensors of so many rows."""
        return Epoch(self.operations, {name: padded(4 * rows * width) for name, width in self.widths.items()})


def gcn(rows: int, widths: list[int], residual: bool = False) -> Epoch:
    """Graph convolutions H' = relu(A (H W) [+ H]).

    widths     of the features, of every layer's output
    residual   between layers of equal width
    """
    tape, depth = Tape(), len(widths) - 1
    tape.widths["H0"] = widths[0]
    skips = [residual and widths[i] == widths[i + 1] and 0 < i < depth - 1 for i in range(depth)]
    for i, width in enumerate(widths[1:]):
        S = tape.run("dense", (f"H{i}",), f"S{i + 1}", width)
        H = tape.run("neighbours", (S,), f"H{i + 1}", width)
        tape.change("activate", (f"H{i}",) if skips[i] else (), H)
    D = f"H{depth}"
    tape.change("loss", (), D)
    for i in reversed(range(depth)):
        if i < depth - 1:
            tape.change("deactivate", (f"H{i + 1}",), D)
        dS = tape.run("neighbours", (D,), f"dS{i + 1}", widths[i + 1])
        tape.run("gram", (f"H{i}", dS))
        if i:
            dH = tape.run("dense", (dS,), f"dH{i}", widths[i])
            if skips[i]:
                tape.change("add", (D,), dH)
            D = dH
    return tape.epoch(rows)


def gin(rows: int, widths: list[int]) -> Epoch:
    """Isomorphism layers H' = relu(relu((H + A H) W1) W2), as deep and as wide as `widths` says."""
    tape, depth = Tape(), len(widths) - 1
    tape.widths["H0"] = widths[0]
    for i, width in enumerate(widths[1:], start=1):
        M = tape.run("neighbours", (f"H{i - 1}",), f"M{i}", widths[i - 1])
        U = tape.run("dense", (M,), f"U{i}", width)
        tape.change("activate", (), U)
        H = tape.run("dense", (U,), f"H{i}", width)
        tape.change("activate", (), H)
    D = f"H{depth}"
    tape.change("loss", (), D)
    for i in reversed(range(1, depth + 1)):
        if i < depth:
            tape.change("deactivate", (f"H{i}",), D)
        tape.run("gram", (f"U{i}", D))
        dU = tape.run("dense", (D,), f"dU{i}", widths[i])
        tape.change("deactivate", (f"U{i}",), dU)
        tape.run("gram", (f"M{i}", dU))
        if i > 1:
            dM = tape.run("dense", (dU,), f"dM{i}", widths[i - 1])
            D = tape.run("neighbours", (dM,), f"dH{i - 1}", widths[i - 1])
    return tape.epoch(rows)


def policy_step(rows: int, dimension: int, rounds: int, features: int) -> Epoch:
    """A step of policy training: structure2vec (RL4GO eq. 1) forward for the target, forward and backward.

    rows       nodes times states of the minibatch
    features   columns of the nodes' features; the head, which touches as many rows as states, is no tensor
    """
    tape = Tape()
    tape.widths.update({"x": features, "next x": features})
    H = _rounds(tape, "next ", dimension, rounds)
    tape.run("score", (H,))
    H = _rounds(tape, "", dimension, rounds)
    tape.run("score", (H,))
    D = tape.run("spread", (H,), f"dZ{rounds}", dimension)
    for i in reversed(range(1, rounds + 1)):
        below = f"H{i - 1}"
        tape.run("gram", ("x", f"N{i}", below, D) if i > 1 else ("x", D))
        if i > 1:
            dN = tape.run("dense", (D,), f"dN{i}", dimension)
            dH = tape.run("neighbours", (dN,), f"dZ{i - 1}", dimension)
            tape.run("dense+add", (D, below, dH), dH)
            D = dH
    return tape.epoch(rows)


def _rounds(tape: Tape, prefix: str, dimension: int, rounds: int) -> str:
    """Rounds of message passing; the first one needs no product. Returns the last embedding."""
    H = tape.run("dense", (f"{prefix}x",), f"{prefix}H1", dimension)
    for i in range(2, rounds + 1):
        N = tape.run("neighbours", (H,), f"{prefix}N{i}", dimension)
        H = tape.run("dense", (f"{prefix}x", N, H), f"{prefix}H{i}", dimension)
    return H
