"""Terms: kinds of work and their amounts, of which a step or an epoch is the sum.

Rates (rates.py) turn a term into seconds. Kinds and amounts:

    product                  entries, rows, columns of the operand, its bytes, columns of one state, and the
                             share of results that are left out
    lookup                   entries and rows of live states, columns of the table, bytes of the numbers
    dense, gram              rows, k, m, bytes of a [rows, K]
    element, take, reduce    numbers, bytes of the array
    skip dense, skip gram    masked rows, bytes of a [rows, K]
    feature                  entries of feature tables
    call                     times; the name says of what
    one of MESSAGES          bytes that the rank sends, that it receives, messages that follow one another
"""

from typing import NamedTuple

from app.comm.ordered import GATHER_BYTES

# kind: the phase that Group counts its bytes in, and the collective it is
MESSAGES = {
    "max": ("decide", "max"), "merge": ("merge", "merge"), "stage": ("stage", "stage"),
    "gather": ("gather", "gather"), "exchange": ("exchange", "exchange"),
    "addends": ("sum", "gather"), "slices": ("sum", "exchange"),
}  # fmt: skip
MOST_GATHERING = 8  # ranks, beyond which addends travel by slices


class Term(NamedTuple):
    """Work of one kind, done `times` times in a step."""

    part: str
    name: str
    kind: str
    amounts: tuple[float, ...]
    times: int


class Terms:
    """The terms of one rank of P, added one by one.

    part   of the step that is added to
    """

    def __init__(self, rank: int, P: int) -> None:
        self.rank, self.P = rank, P
        self.terms: list[Term] = []
        self.part = ""

    def add(self, name: str, kind: str, *amounts: float) -> None:
        """One more term."""
        self.terms.append(Term(self.part, name, kind, amounts, 1))

    def message(self, name: str, kind: str, sent: int, received: int, turns: int | None) -> None:
        """A collective; turns None: log2 P messages follow one another."""
        self.add(name, kind, sent, received, (self.P - 1).bit_length() if turns is None else turns)

    def passes(self, name: str, numbers: float, kind: str = "element") -> None:
        """Passes over arrays, of 4 bytes a number."""
        if numbers:
            self.add(name, kind, numbers, 4 * numbers)

    def sum_addends(self, name: str, width: int, own: int, every: int) -> None:
        """Addends [width] of all ranks to all, whole or by slices of the columns (comm/ordered.py).

        own, every   addends of this rank, and of all
        """
        others = self.P - 1
        if by_slices(self.P, width, every):
            piece = 4 * -(-width // self.P)
            self.message(f"{name}: slices", "slices", own * piece * others, (every - own) * piece, others)
            self.message(f"{name}: results", "addends", piece * others, piece * others, None)
            self.passes(f"{name}: finish", every * piece // 4)
            return
        if others:
            self.message(name, "addends", 4 * own * width * others, 4 * (every - own) * width, None)
        self.passes(f"{name}: finish", every * width)


def by_slices(ranks: int, width: int, addends: int) -> bool:
    """Whether so many addends [width] of all ranks travel by slices of the columns (comm/ordered.py)."""
    return ranks > 1 and (4 * width * addends > GATHER_BYTES or ranks > MOST_GATHERING)
