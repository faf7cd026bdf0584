"""Routes in time: when vehicles come to customers, and whom none can come to.

A vehicle leaves the depot when that opens, waits where it is early, and may not be late; a unit of length
takes a unit of time (Times of app/graphs/deliveries.py). Distances need not satisfy the triangle inequality.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from app.graphs.deliveries import Deliveries
from app.graphs.metric import Metric

NEVER = 1 << 62


def in_time(metric: Metric, deliveries: Deliveries, route: Sequence[int]) -> bool:
    """Whether a vehicle can serve the customers of a route, in this order, within their windows."""
    times, depot = deliveries.times, deliveries.depot
    if times is None:
        return True
    stops = np.array([depot, *route, depot])
    legs = metric.between(stops[:-1], stops[1:]).tolist()
    at = int(times.opens[depot])
    for (_, stop), leg in zip(pairwise(stops.tolist()), legs):
        at = max(at + leg, int(times.opens[stop])) if stop != depot else at + leg
        if at > times.closes[stop]:
            return False
        at += int(times.service[stop])
    return True


def hours_of(metric: Metric, deliveries: Deliveries, route: Sequence[int]) -> tuple[int, int]:
    """When a vehicle has to be at the first customer of a route, and can leave the last one; -NEVER and NEVER
    where it cannot serve them all in time.
    """
    times, depot = deliveries.times, deliveries.depot
    if not in_time(metric, deliveries, route):
        return -NEVER, NEVER
    stops = np.array([depot, *route, depot])
    legs = metric.between(stops[:-1], stops[1:]).tolist()
    opens, closes, service = (each[stops].tolist() for each in times.arrays)
    ready, latest = opens[0], closes[-1]
    for place in range(1, len(stops) - 1):
        ready = max(ready + legs[place - 1], opens[place]) + service[place]
    for place in range(len(stops) - 2, 0, -1):
        latest = min(latest - legs[place] - service[place], closes[place])
    return latest, ready


def one_after_other(metric: Metric, deliveries: Deliveries, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """[...] bool: whether windows let one of points i and j be served just after the other, in some order."""
    times = deliveries.times
    if times is None:
        return np.ones(np.broadcast_shapes(np.shape(i), np.shape(j)), dtype=bool)
    way = metric.between(i, j)
    there = times.opens[i] + times.service[i] + way <= times.closes[j]
    return there | (times.opens[j] + times.service[j] + way <= times.closes[i])


def alone_in_time(metric: Metric, deliveries: Deliveries) -> np.ndarray:
    """[n] bool: whom a vehicle can serve that comes from the depot and goes back to it; the depot itself."""
    n, depot, times = metric.n, deliveries.depot, deliveries.times
    if times is None:
        return np.ones(n, dtype=bool)
    home = metric.between(np.full(n, depot), np.arange(n))
    begin = np.maximum(times.opens[depot] + home, times.opens)
    fits = (begin <= times.closes) & (begin + times.service + home <= times.closes[depot])
    fits[depot] = True
    return fits


def never_in_time(metric: Metric, deliveries: Deliveries) -> int:
    """A customer whom no route can serve in time; -1: there is none, or none that this can tell.

    Of those whom no vehicle can serve alone: earliest and latest times over all paths, of any customers.
    """
    times, depot = deliveries.times, deliveries.depot
    alone = alone_in_time(metric, deliveries)
    if alone.all():
        return -1
    horizon = int(times.closes[depot])
    begin = _earliest(metric, depot, int(times.opens[depot]), *times.arrays)
    # Backwards in time from the end on, where a service begins when it ends.
    ends = horizon - times.closes - times.service, horizon - times.opens - times.service
    back = _earliest(metric, depot, 0, *ends, times.service)
    late = (begin >= NEVER) | (back >= NEVER) | (begin + back + times.service > horizon)
    late &= ~alone
    late[depot] = False
    return int(late.argmax()) if late.any() else -1


def _earliest(
    metric: Metric, depot: int, start: int, opens: np.ndarray, closes: np.ndarray, service: np.ndarray
) -> np.ndarray:
    """[n] when service can begin at the earliest on any path, NEVER where it cannot."""
    n = metric.n
    begin = np.full(n, NEVER)
    begin[depot] = start
    waiting = np.ones(n, dtype=bool)
    for _ in range(n):
        at = int(np.where(waiting, begin, NEVER).argmin())
        if not waiting[at] or begin[at] >= NEVER:
            break
        waiting[at] = False
        leaves = int(begin[at]) + (int(service[at]) if at != depot else 0)
        comes = np.maximum(leaves + metric.between(np.full(n, at), np.arange(n)), opens)
        comes[comes > closes] = NEVER
        comes[depot] = NEVER
        begin = np.where(waiting, np.minimum(begin, comes), begin)
    return begin
