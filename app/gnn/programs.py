"""Programs: what an epoch or an evaluation does in turn, and the buffers that its rows lie in.

A program is run once without numbers, which records its operations and how long every array is needed; from
that the buffers are planned. Then it runs again and again in the same buffers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from app.gnn.buffers import BufferPlan, Lifetime, plan_buffers
from app.gnn.features import Features
from app.gnn.tiered import TieredRows, epochs_of, key_of, least_bytes, plan_tiers
from app.gnn.work_clock import WorkClock
from app.memory.arena import LINE
from app.memory.operations import Epoch, Operation
from app.memory.plan import METHODS, Plan
from app.memory.tiers import Inputs, TierBudget

Array = Any


class Rows:
    """[n_own, width] float32 rows of this rank, in a buffer of the engine.

    rows    how many; None: all that the rank owns
    array   None in a dry run; under a limit of memory there only while an operation runs that names the rows
    relu    the rows are drop(relu(U)) and nobody but the next layer reads them: the gradient by U may take
            their place (Engine.dense_through)
    drop    dropout after relu, or None
    held    other layers than the next one read the rows: that one does not free them
    """

    __slots__ = ("array", "drop", "held", "name", "number", "relu", "rows", "width")

    def __init__(self, name: str, width: int, number: int, array: Array, rows: int | None = None) -> None:
        self.name, self.width, self.number, self.array, self.rows = name, width, number, array, rows
        self.relu, self.drop, self.held = False, None, False

    @property
    def key(self) -> str:
        """What the rows are called in the operations of their program, where two may have one name."""
        return key_of(self.number, self.name)


class Programs:
    """Runs operations on rows, in the buffers of one plan.

    clock      of this rank's work by layer, where somebody wants to know; `layer` is the one at work, from 0
    seconds    time spent so far by kind of operation, of this rank
    recorded   operations of each program (a training epoch, an evaluation) as the dry run saw them
    pieces     rows of the largest piece of features, where they are among the tensors that operations name
    """

    def __init__(self, device: Any, n_own: int) -> None:
        self.device, self.n_own = device, n_own
        self.numeric = False
        self.seconds: dict[str, float] = {}
        self.clock: WorkClock | None = None
        self.layer = 0
        self.recorded: dict[str, list[Operation]] = {}
        self.pieces = 0
        self.plan = BufferPlan()
        self.tiered: TieredRows | None = None
        self._lives: dict[str, list[Lifetime]] = {}
        self._named: dict[str, dict[str, tuple[int, bool]]] = {}
        self._program = ""
        self._count = self._at = 0
        self._backwards = False  # the next pass over pieces of features
        self._open: dict[int, Rows] = {}
        self._buffers: list[Array] = []
        self._places: dict[tuple[str, int], Array] = {}

    @contextmanager
    def program(self, name: str) -> Iterator[None]:
        """Everything inside belongs to program `name`; all rows must be free at its end."""
        self._program, self._count, self._at, self._backwards = name, 0, 0, False
        if not self.numeric:
            self._lives[name], self.recorded[name], self._named[name] = [], [], {}
        yield
        left = ", ".join(rows.name for rows in self._open.values())
        assert not left, f"rows never freed: {left}"
        if self.numeric and self.tiered:
            self.tiered.end(name)

    @contextmanager
    def dry(self) -> Iterator[None]:
        """Run programs without numbers; afterwards the buffers are planned and made.

        With pieces of features this is for the plan of what moves: the buffers are those without.
        """
        self.numeric = False
        yield
        if not self.pieces:
            self.plan = plan_buffers(self._lives)
        self.numeric = True

    def allocate(self, budget: TierBudget | None = None, inputs: Inputs | None = None) -> None:
        """Make the planned buffers; steady state allocates nothing else of their size.

        budget   where the buffers would pass its limit, rows go to and fro between two tiers of memory
        inputs   where the pieces of features lie, if there are any: then rows go to and fro in any case
        Raises CaseError where that is not possible, perhaps on one rank only.
        """
        if budget is not None and (inputs or 0 < budget.limit < 4 * self.n_own * self.plan.columns):
            plans = self.plans(budget.limit, budget.method)
            self.tiered = TieredRows(plans, self.n_own, self.device, budget, inputs)
        else:
            self._places = {}
            self._buffers = [self.device.empty((self.n_own * width,)) for width in self.plan.widths]

    def fits(self, n_own: int, limit: int, pieces: int = 0) -> bool:
        """Whether `allocate` would find a plan for n_own rows under a limit in bytes; 0: there is none.

        pieces   rows of the largest piece of features then
        """
        return self.least(n_own, limit, pieces) <= limit // LINE * LINE

    def least(self, n_own: int, limit: int, pieces: int = 0) -> int:
        """Bytes of the least limit that works for n_own rows, 0 where `limit` holds all of their buffers."""
        if not self.pieces and not 0 < limit < 4 * n_own * self.plan.columns:
            return 0
        return least_bytes(epochs_of(self.recorded, self._named, n_own, pieces))

    def bounds(self) -> tuple[int, int]:
        """Bytes of the least limit that works, and of what the program that holds most has alive at once."""
        epochs = self.epochs()
        return least_bytes(epochs), max((each.most_bytes for each in epochs.values()), default=0)

    def plans(self, limit: int, method: str = METHODS[0]) -> dict[str, Plan]:
        """Of each recorded program the moves that keep its rows below a limit in bytes, by a method."""
        return plan_tiers(self.epochs(), limit, method)

    def epochs(self) -> dict[str, Epoch]:
        """What plans are made from, of each recorded program."""
        return epochs_of(self.recorded, self._named, self.n_own, self.pieces)

    def take(self, name: str, width: int, count: int | None = None) -> Rows:
        """Unset rows of `width` columns; count: how many, beside pieces of features, None: all own ones."""
        array = None
        if self.numeric and not self.tiered:
            array = self._place(width)
        rows = Rows(name, width, self._count, array, count)
        self._open[self._count] = rows
        self._count += 1
        if not self.numeric:
            self._lives[self._program].append(Lifetime(name, width, self._at, -1))
        return rows

    def _place(self, width: int) -> Array:
        """[n_own, width] what the next rows of the program lie in, a view that is made once."""
        at = self._program, self._count
        array = self._places.get(at)
        if array is None or array.shape[1] != width:
            buffer = self._buffers[self.plan.slots[self._program][self._count]]
            array = self._places[at] = buffer[: self.n_own * width].reshape(self.n_own, width)
        return array

    def free(self, *each: Rows | Features | None) -> None:
        """Give buffers back; None and the features, which are nobody's to free, are left alone."""
        for rows in each:
            if isinstance(rows, Rows):
                del self._open[rows.number]
                if not self.numeric:
                    lives = self._lives[self._program]
                    life = lives[rows.number]
                    lives[rows.number] = Lifetime(life.name, life.width, life.first, self._at)

    def _run(
        self,
        kind: str,
        name: str,
        reads: list[Any],
        writes: list[Any],
        work: Callable[[], Any],
        flops: int = 0,
        **counts: Any,
    ) -> Any:
        """Do one operation, or only write down that it is done.

        counts   shape, sparse, exchanges: see app/memory/operations.py
        """
        self._at += 1
        if not self.numeric:
            rows = [[each for each in some if isinstance(each, Rows)] for some in (reads, writes)]
            self._named[self._program].update(
                {each.key: (each.width, each.rows is not None) for some in rows for each in some}
            )
            keys = [tuple(each.key for each in some) for some in rows]
            self.recorded[self._program].append(Operation(kind, name, *keys, flops=flops, **counts))
            return None
        if self.tiered:
            with self._in_fast_tier([r for r in (*reads, *writes) if isinstance(r, Rows)]):
                return self._timed(kind, work)
        return self._timed(kind, work)

    @contextmanager
    def _in_fast_tier(self, rows: list[Rows]) -> Iterator[None]:
        """While the operation under way runs its rows have arrays."""
        self._timed("memory", lambda: self.tiered.before(self._program, self._at - 1, rows))
        yield
        self.tiered.after(self._program, self._at - 1, rows)

    def _timed(self, kind: str, work: Callable[[], Any]) -> Any:
        """Do some work and add its seconds to its kind."""
        start, busy = time.perf_counter(), self.clock.now() if self.clock else 0.0
        result = work()
        if self.clock:
            self.clock.add(self.layer, busy)
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - start
        return result
