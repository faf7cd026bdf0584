"""Ground states of spins (Ising, spin glasses): a maximum cut in disguise, too."""

from app.problems.maxcut import CutTotals
from app.problems.qubo import Qubo
from app.search.cut.quadratic import IsingTools
from app.search.solution_text import read_spins, spins_text
from app.toolbox import Instance


class Ising(Qubo):
    """State: that of the cut which stands for the energy (app/graphs/quadratic.py).

    The objective is the energy, all weights less twice the cut. A spin is 1 on the other side than the last
    node, and -1 on its side.
    """

    name = "ising"
    solution = "spins"
    unit_share = 1.0
    values_text, read_values = staticmethod(spins_text), staticmethod(read_spins)

    def objective(self, chosen: int, totals: CutTotals) -> int:
        """The least energy, in units of the weights."""
        return totals.weight // 2 - 2 * totals.best

    def toolbox(self, instance: Instance) -> IsingTools:
        """Those of the cut."""
        return IsingTools(instance, self)
