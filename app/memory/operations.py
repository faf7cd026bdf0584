"""The operations of one epoch and the tensors they touch: what a memory plan is made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from app.errors import CaseError


@dataclass(frozen=True)
class Operation:
    """One operation: all it reads and writes lies in the fast tier while it runs.

    kind     what it does: dense, neighbours, gram, activate, ...
    name     for people: "layer 2 forward"
    reads    tensors whose values it needs; one that is also written is changed in place
    writes   tensors it writes; one that is not read is written whole, its old value is not needed
    frees    tensors whose values nobody reads after it; those of the last read need not be listed
    flops    multiplications and additions for each own row; a plan does not ask, nor for what follows
    shape    (k, m): of a product the columns of its operands, of sparse ones k the entries of a row; else 0
             and the columns that it goes through
    sparse   the left operand are sparse features
    exchanges   columns of the rows that neighbours bring to each other, one number for each exchange
    layer    whose output's rows alone a product needs to make or read (gnn/reach.py), from 0; -1: all rows
    way      of such a product: "forward", which makes those rows, or "backward", which reads them
    """

    kind: str
    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    frees: tuple[str, ...] = ()
    flops: int = 0
    shape: tuple[int, int] = (0, 0)
    sparse: bool = False
    exchanges: tuple[int, ...] = ()
    layer: int = -1
    way: str = ""


class Epoch:
    """The operations of an epoch in their order, as sets of tensors.

    A set of tensors is an integer: bit t stands for names[t]. A tensor read before anything writes it is an
    *input*: its value lies in the slow tier when the epoch starts, and one that no operation writes has it
    there for ever. A tensor is *alive* after an operation while its value will be read before it is written
    whole, or is a result; a value that is not alive is forgotten for nothing.

    names     [tensors] text, in the order of their first use
    sizes     [tensors] bytes
    reads, writes, needs   [operations] sets; needs: reads and writes
    alive     [operations] sets: alive after the operation
    unread    [operations] sets: those of `alive` that a later operation reads
    inputs, constants, results   sets; constants: inputs that nothing writes
    """

    def __init__(
        self, operations: list[Operation], sizes: dict[str, int], results: tuple[str, ...] = ()
    ) -> None:
        """sizes: bytes by name; results: tensors whose last values are wanted when the epoch has ended."""
        self.operations = list(operations)
        used = (name for each in operations for name in (*each.reads, *each.writes, *each.frees))
        self.names = list(dict.fromkeys([*used, *results]))
        self._bit = {name: 1 << at for at, name in enumerate(self.names)}
        for name in self.names:
            if sizes.get(name, 0) <= 0:
                raise CaseError(f"memory plan: tensor {name!r} needs a size in bytes above 0")
        self.sizes = [sizes[name] for name in self.names]
        self.reads = [self.set_of(each.reads) for each in operations]
        self.writes = [self.set_of(each.writes) for each in operations]
        self.needs = [r | w for r, w in zip(self.reads, self.writes)]
        self.results = self.set_of(results)
        self.inputs, self.constants = self._find_inputs()
        self.alive, self.unread = self._alive(self.results), self._alive(0)
        self._size_of: dict[int, int] = {}

    def set_of(self, names: tuple[str, ...] | list[str]) -> int:
        """The set of some names."""
        total = 0
        for name in names:
            total |= self._bit[name]
        return total

    def names_of(self, tensors: int) -> tuple[str, ...]:
        """The names in a set, in the order of `names`."""
        return tuple(self.names[at] for at in members(tensors))

    def bytes_of(self, tensors: int) -> int:
        """Bytes of all tensors of a set."""
        size = self._size_of.get(tensors)
        if size is None:
            size = self._size_of[tensors] = sum(self.sizes[at] for at in members(tensors))
        return size

    @cached_property
    def least_bytes(self) -> int:
        """The least limit under which every operation can run: the most that one of them touches."""
        return max((self.bytes_of(needed) for needed in self.needs), default=0)

    @cached_property
    def most_bytes(self) -> int:
        """The limit from which on nothing moves but inputs and results: the most that is alive at once."""
        held = [alive | needed for alive, needed in zip([self.inputs, *self.alive], self.needs)]
        return max((self.bytes_of(each) for each in held), default=0)

    def check_limit(self, limit: int) -> None:
        """Raise CaseError, stating the least limit that works, where an operation alone exceeds the limit."""
        if limit >= self.least_bytes:
            return
        at = max(range(len(self.needs)), key=lambda i: self.bytes_of(self.needs[i]))
        each = self.operations[at]
        raise CaseError(
            f"memory limit of {limit:,} bytes: {each.kind} ({each.name}) alone touches "
            f"{self.least_bytes:,} bytes, which is the least limit that works "
            f"(memory.fast_mb={self.least_bytes / 1e6})"
        )

    def _find_inputs(self) -> tuple[int, int]:
        """Tensors read before they are written, and those of them that nothing writes."""
        inputs = written = 0
        for read, write in zip(self.reads, self.writes):
            inputs |= read & ~written
            written |= write
        inputs |= self.results & ~written
        return inputs, inputs & ~written

    def _alive(self, results: int) -> list[int]:
        """[operations] sets of tensors whose values are read later, or are results."""
        alive, after = results, []
        for at in reversed(range(len(self.operations))):
            freed = self.set_of(self.operations[at].frees)
            wrong = alive & freed & ~self.constants
            if wrong:
                each = self.operations[at]
                freed_early = self.names_of(wrong)[0]
                raise CaseError(
                    f"memory plan: {each.kind} ({each.name}) frees {freed_early!r}, which is wanted later"
                )
            after.append(alive)
            alive = (alive & ~self.writes[at]) | self.reads[at]
        return after[::-1]


def members(tensors: int) -> Iterator[int]:
    """The numbers in a set, ascending."""
    while tensors:
        low = tensors & -tensors
        yield low.bit_length() - 1
        tensors ^= low
