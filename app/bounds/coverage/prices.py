"""Upper bounds on maximum coverage with a witness: prices of elements, and one of the budget."""

import math
from dataclasses import dataclass

import numpy as np

from app.bounds.certificate import BadCertificate, Proof, exact_sum
from app.graphs.family import Family

LARGEST = 1 << 60  # of the weights of all elements, and of what the budget is worth, in units of prices
FINEST = 1 << 40  # units of a price to one of a weight, at most


@dataclass(frozen=True, eq=False)
class PriceBound(Proof):
    """No sets that the budget pays for hold elements of more weight than `upper`.

    The witness gives each element v a price p_v from 0 to its weight w_v, and a unit of the budget, the
    greatest common divisor of the costs, a price q of at least 0. Of an element that a choice X holds,
    w_v - p_v is counted once and p_v for each set that has it, so X is worth at most

        sum over v of (w_v - p_v)  +  sum over sets S of X of (sum of p_v over v in S)
          <=  sum over v of (w_v - p_v)  +  q budget  +  sum over all S of max(0, sum of p_v - q cost_S),

    for what X costs is at most the budget. Sets dearer than it count for nothing. Values are multiples of the
    greatest common divisor of the weights, so the bound is rounded down to one. This is a bound by weak
    duality of the linear program of y_v <= sum of x_S over S with v, cost x <= budget, 0 <= x, y <= 1; the
    best prices give its optimum, a fractional knapsack of sets.

    prices   [n] int64, p_v, in parts of one     price   q, likewise     one   parts of a unit of weight
    """

    upper: int
    method: str
    prices: np.ndarray
    price: int
    one: int

    def check(self, family: Family) -> None:
        """Prove the bound from the prices and the family alone; raises BadCertificate."""
        proved = proved_by(family, self.prices, self.price, self.one, self.method)
        if proved > self.upper:
            raise BadCertificate(
                f"{self.method}: the witness proves {proved}, the certificate says {self.upper}"
            )


def proved_by(family: Family, prices: np.ndarray, price: int, one: int, method: str = "prices") -> int:
    """The bound that prices [n] int64 of elements and `price` of the budget prove. Raises BadCertificate."""
    if prices.shape != (family.n,) or prices.dtype != np.int64:
        raise BadCertificate(f"{method}: needs [{family.n}] whole numbers")
    total, (sets, cost, budget) = int(family.weight.sum()), payable(family)
    if not 0 < one <= LARGEST or one * total > LARGEST or not 0 <= price * max(budget, 1) <= LARGEST:
        raise BadCertificate(f"{method}: prices over {one} are not exact")
    if (prices < 0).any() or (prices > one * family.weight).any():
        raise BadCertificate(f"{method}: a price is below 0 or above its element's weight")
    left = family.values(prices)[sets] - price * cost
    bound = one * total - int(prices.sum()) + price * budget + exact_sum(np.maximum(left, 0))
    step = max(math.gcd(*family.weight.tolist()), 1)
    return bound // one // step * step


def payable(family: Family) -> tuple[np.ndarray, np.ndarray, int]:
    """The sets [k] that have elements and that the budget pays for, what they cost [k] and the budget in
    units of the greatest common divisor of that, the latter rounded down.
    """
    sets = np.flatnonzero((np.diff(family.set_ptr) > 0) & (family.cost <= family.budget))
    unit = max(math.gcd(*family.cost[sets].tolist()), 1)
    return sets, family.cost[sets] // unit, family.budget // unit


def unit_of(family: Family) -> int:
    """Parts of one that prices have: a power of two."""
    return min(FINEST, 1 << (LARGEST // max(int(family.weight.sum()), 1)).bit_length() - 1)


def priced(family: Family, prices: np.ndarray, one: int, method: str) -> PriceBound:
    """The bound of prices [n] int64, with the best price of the budget: that of the set at which a greedy
    choice by price for cost, one set divided, has spent it.
    """
    sets, cost, budget = payable(family)
    values = family.values(prices)[sets]
    order = np.argsort(-(values / cost), kind="stable")
    at = int(np.searchsorted(np.cumsum(cost[order]), budget, side="right"))
    low = int(values[order[at]]) // int(cost[order[at]]) if at < len(order) else 0
    most = LARGEST // max(budget, 1)
    upper, price = min(
        (proved_by(family, prices, min(each, most), one), min(each, most))
        for each in ((low, low + 1) if at < len(order) else (0,))
    )
    return PriceBound(upper, method, prices, price, one)


def spread(prices: np.ndarray, place: np.ndarray, weight: np.ndarray, one: int) -> np.ndarray:
    """[n] int64 prices of elements, from those [k] of elements that are in their place.

    Of several in one place the first take as much as their weights [n] allow. An element in no place (-1),
    which no set holds, has its whole weight for a price: it counts for nothing.
    """
    found = np.where(place < 0, weight * one, 0)
    order = np.argsort(place, kind="stable")
    order = order[place[order] >= 0]
    room = weight[order] * one
    before = np.cumsum(room) - room
    first = np.searchsorted(place[order], place[order])  # where those in the same place begin
    used = before - before[first]
    found[order] = np.clip(prices[place[order]] - used, 0, room)
    return found
