"""Rows of an engine in two tiers of memory (after ROC, section 5), where its buffers would pass a limit."""

from typing import Any

from app.memory.arena import LINE, padded
from app.memory.operations import Epoch
from app.memory.plan import METHODS, Plan, make_plan
from app.memory.tiers import Inputs, TierBudget, Tiers

Array = Any
TRAINING = "epoch"  # the program that runs again and again; the others now and then


def key_of(number: int, name: str) -> str:
    """What rows are called in the operations of their program, where two may have one name."""
    return f"{number} {name}"


def epochs_of(
    recorded: dict[str, list[Any]], named: dict[str, dict[str, tuple[int, bool]]], n_own: int, pieces: int = 0
) -> dict[str, Epoch]:
    """What a plan is made from, of each program on n_own rows.

    recorded   operations of each program, as the dry run saw them
    named      for each the columns of the rows that they name, and whether they are a piece's alone
    pieces     rows of the largest piece, as which all of them count
    """
    epochs = {}
    for name, operations in recorded.items():
        sizes = {
            key: row_bytes(pieces if piece else n_own, width) for key, (width, piece) in named[name].items()
        }
        epochs[name] = Epoch(operations, sizes)
    return epochs


def plan_tiers(epochs: dict[str, Epoch], limit: int, method: str = METHODS[0]) -> dict[str, Plan]:
    """The plan of each program under a limit in bytes, by one of METHODS; only training repeats.

    Raises CaseError, stating the least limit that works, where an operation alone does not fit.
    """
    limit = limit // LINE * LINE
    return {name: make_plan(epoch, limit, method, name == TRAINING) for name, epoch in epochs.items()}


def least_bytes(epochs: dict[str, Epoch]) -> int:
    """The least limit under which the operations of all programs can run."""
    return max((epoch.least_bytes for epoch in epochs.values()), default=0)


def row_bytes(n_own: int, width: int) -> int:
    """Bytes of float32 rows in a tier."""
    return padded(max(4 * n_own * width, 1))


class TieredRows:
    """Gives rows an array while an operation runs that names them, and none at any other time.

    The programs of an engine run one after another, so one block of fast memory serves them all.

    inputs   where the pieces of features lie, which all programs read
    """

    def __init__(
        self,
        plans: dict[str, Plan],
        n_own: int,
        device: Any,
        budget: TierBudget,
        inputs: Inputs | None = None,
    ) -> None:
        self.plans, self.n_own, self._last = plans, n_own, ""
        self._block = device.zeros((max([LINE, *(plan.peak_bytes for plan in plans.values())]) // 4,))
        self.tiers = {name: Tiers(plan, device, budget, self._block, inputs) for name, plan in plans.items()}

    def lent(self) -> Array:
        """The flat memory of all programs, for use between them; what they left there is lost."""
        self._last = ""
        return self._block

    def before(self, program: str, at: int, rows: list[Any]) -> None:
        """Bring the rows of operation `at` into the fast tier."""
        tiers = self.tiers[program]
        if program != self._last:
            tiers.forget()
            self._last = program
        tiers.before(at)
        for each in rows:
            count = self.n_own if each.rows is None else each.rows
            each.array = tiers.array(each.key)[: count * each.width].reshape(count, each.width)

    def after(self, program: str, at: int, rows: list[Any]) -> None:
        """The operation has run."""
        for each in rows:
            each.array = None
        self.tiers[program].after(at)

    def end(self, program: str) -> None:
        """The program has run."""
        self.tiers[program].end()

    def moved(self, program: str) -> tuple[int, int]:
        """Bytes of a program that were loaded, and stored, so far."""
        tiers = self.tiers[program]
        return tiers.loaded, tiers.stored

    def lines(self) -> list[str]:
        """The sums of each program's plan."""
        return [f"{name}: {line}" for name, plan in self.plans.items() for line in plan.lines()[:2]]
