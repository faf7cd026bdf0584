"""The steps of app/native/routing.c in Python: the same bits, slowly."""

from typing import Any

from app.rng import SplitMix

TOLLS = 4096  # draws that a temperature is multiplied for
PERIOD, FITTING = 100, 50  # steps between two looks at the price; fewer that fit make it go up
LONGEST, MEAN_REMOVED = 10, 10  # customers of a string at most, and of all strings together, about
NEVER = 1 << 61  # a cost beyond all others
ONE = 256  # the denominator of mean lengths
SPLIT_ON = 100  # one in so many split strings spares one customer more
NO_BLINK = 127  # one in 128 places is not seen
AT_RANDOM, BY_DEMAND, FAR_FIRST, ORDERS = 4, 8, 10, 11  # shares of the orders of insertion, summed up


class Steps:
    """Steps of a kernel.Routing, which holds the arrays and numbers."""

    def __init__(self, held: Any) -> None:
        self.s, self.random = held, SplitMix(int(held.random))
        self.bits = self.left = 0

    def run(self, steps: int) -> None:
        """Ruin and recreate so many times."""
        s = self.s
        for _ in range(steps):
            before = self._value()
            self._begin_step()
            self._ruin()
            complete = self._recreate()
            s.place[self.ruined] = -1
            toll = s.temperature * int(s.toll[self.random.below(TOLLS)]) >> 26
            if not complete or not self._timely() or self._value() >= before + toll:
                self._undo()
            elif not s.over and s.length < s.best_length:
                self._note()
            s.fitting += not s.over
            if s.steps % PERIOD == 0:
                self._reprice()
        s.random = self.random.state

    def pack(self, steps: int) -> None:
        """Steps until every customer is on a route, so many at most."""
        s = self.s
        for _ in range(steps):
            if not s.absents:
                break
            before, missed = s.length, s.absent[: s.absents].tolist()
            total = int(s.absence[missed].sum())
            self._begin_step()
            self._ruin()
            self.removed += missed
            s.absents = 0
            self._recreate()
            s.place[self.ruined] = -1
            toll = s.temperature * int(s.toll[self.random.below(TOLLS)]) >> 26
            fewer = int(s.absence[s.absent[: s.absents]].sum()) < total
            worse = s.absents > len(missed) or s.length >= before + toll
            if not self._timely() or (not fewer and worse):
                self._undo()
                s.absents, s.absent[: len(missed)] = len(missed), missed
            s.absence[s.absent[: s.absents]] += 1
        if not s.absents and s.length < s.best_length:
            self._note()
        s.random = self.random.state

    def _begin_step(self) -> None:
        """Nothing has left a route, or come to one."""
        self.s.steps += 1
        self.changes, self.ruined, self.removed, self.grown = [], [], [], []

    def _value(self) -> int:
        """The length, and the price of what is carried beyond capacities."""
        return self.s.length + (self.s.price * self.s.over >> 10)

    def _timely(self) -> bool:
        """Whether no vehicle is late. Where a way is longer than one round by a customer it may be once that
        one has left.
        """
        return self.s.opens is None or not self.s.late[self.ruined].any()

    def _reprice(self) -> None:
        """The price goes up where routes too seldom carry what they can, else down."""
        s = self.s
        s.price += (s.price >> 6) + 1 if s.fitting < FITTING else -(s.price >> 6)
        s.price, s.fitting = min(s.price, s.dearest), 0

    def _note(self) -> None:
        """The routes are the best."""
        s = self.s
        s.best_length, s.found_at = s.length, s.steps
        following = s.next[s.customers]
        s.best[s.customers] = [s.depot if x >= s.n else x for x in following.tolist()]

    # ---- routes ----------------------------------------------------------------------------------------

    def _apart(self, a: int, b: int) -> int:
        s = self.s
        if a >= s.n:
            return 0 if b >= s.n else int(s.home[b])
        return int(s.home[a]) if b >= s.n else int(s.metric.between(a, b))

    def _beyond(self, load: int) -> int:
        return max(load - self.s.capacity, 0)

    def _carry(self, r: int, more: int) -> None:
        """Route r carries so much more."""
        s = self.s
        before = int(s.load[r])
        s.over += self._beyond(before + more) - self._beyond(before)
        s.load[r] = before + more

    def _unlink(self, c: int, leg: int) -> None:
        s = self.s
        p, x, r = int(s.prev[c]), int(s.next[c]), int(s.route[c])
        s.length += leg - int(s.leg[p]) - int(s.leg[c])
        s.next[p], s.prev[x] = x, p
        s.leg[p] = s.back[x] = leg
        self._carry(r, -int(s.demand[c]))
        s.route[c] = -1
        s.size[r] -= 1
        if not s.size[r]:
            s.empty[s.empties] = r
            s.empties += 1

    def _take_out(self, c: int) -> None:
        s = self.s
        p, x = int(s.prev[c]), int(s.next[c])
        self.changes.append((c, p, int(s.leg[p]), int(s.leg[c])))
        self._unlink(c, self._apart(p, x))

    def _link_in(self, c: int, p: int, leg_before: int, leg: int) -> None:
        s = self.s
        x, r = int(s.next[p]), p - s.n if p >= s.n else int(s.route[p])
        s.length += leg_before + leg - int(s.leg[p])
        s.next[p] = s.prev[x] = c
        s.prev[c], s.next[c] = p, x
        s.leg[p] = s.back[c] = leg_before
        s.leg[c] = s.back[x] = leg
        self._carry(r, int(s.demand[c]))
        s.route[c] = r
        s.size[r] += 1
        if s.size[r] == 1:
            s.empties -= 1

    def _insert(self, c: int, p: int) -> None:
        self.changes.append((c, p, int(self.s.leg[p]), -1))
        self._link_in(c, p, self._apart(p, c), self._apart(c, int(self.s.next[p])))
        if self.s.opens is not None:
            r = int(self.s.route[c])
            retime(self.s, r)
            self.grown.append(r)

    def _undo(self) -> None:
        for c, p, leg_before, leg in reversed(self.changes):
            if leg >= 0:
                self._link_in(c, p, leg_before, leg)
            else:
                self._unlink(c, leg_before)
        if self.s.opens is not None:
            for r in {*self.ruined, *self.grown}:
                retime(self.s, r)

    # ---- ruin and recreate -----------------------------------------------------------------------------

    def _ruin_route(self, c: int, longest: int) -> None:
        """A string with c leaves its route."""
        s, draw = self.s, self.random.below
        r = int(s.route[c])
        size = int(s.size[r])
        length, kept = min((ONE + draw(min(longest, size * ONE))) // ONE, size), 0
        if 1 < length < size and draw(2):
            kept = 1
            while length + kept < size and not draw(SPLIT_ON):
                kept += 1
        whole = length + kept
        ahead, behind = self._reach(s.prev, c, whole - 1), self._reach(s.next, c, whole - 1)
        least = whole - 1 - behind
        back, x = least + draw(ahead - least + 1), c
        first_kept = 1 + draw(length - 1) if kept else whole
        for _ in range(back):
            x = int(s.prev[x])
        s.place[r] = len(self.ruined)
        self.ruined.append(r)
        for i in range(whole):
            y = int(s.next[x])
            if not first_kept <= i < first_kept + kept:
                self._take_out(x)
                self.removed.append(x)
            x = y
        if s.opens is not None:
            retime(s, r)

    def _reach(self, way: Any, c: int, most: int) -> int:
        """Stops from c on along a way, the depot not passed, up to `most`."""
        found, x = 0, int(way[c])
        while x < self.s.n and found < most:
            found, x = found + 1, int(way[x])
        return found

    def _ruin(self) -> None:
        """Strings near a drawn customer leave their routes."""
        s, draw = self.s, self.random.below
        longest = min(ONE * s.count // max(s.n - s.empties, 1), LONGEST * ONE)
        strings = (ONE + draw(4 * MEAN_REMOVED * ONE * ONE // (ONE + longest) - ONE)) // ONE
        seed = int(s.customers[draw(s.count)])
        if s.route[seed] >= 0:
            self._ruin_route(seed, longest)
        for c in s.near[seed].tolist():
            if len(self.ruined) >= strings:
                break
            r = int(s.route[c])
            if r >= 0 and s.place[r] < 0:
                self._ruin_route(c, longest)

    def _sorted(self) -> list[int]:
        """Removed customers in the order in which they are inserted."""
        s, kind = self.s, self.random.below(ORDERS)
        if kind < AT_RANDOM:
            rank = {c: self.random.below(1 << 30) for c in self.removed}
        elif kind < BY_DEMAND:
            rank = {c: -int(s.demand[c]) for c in self.removed}
        else:
            rank = {c: int(s.home[c]) * (-1 if kind < FAR_FIRST else 1) for c in self.removed}
        return sorted(self.removed, key=rank.__getitem__)

    def _blinks(self) -> bool:
        """Whether a place is not seen."""
        if not self.left:
            self.bits, self.left = self.random.bits(), 8
        found = not self.bits & NO_BLINK
        self.bits, self.left = self.bits >> 8, self.left - 1
        return found

    def _fine(self, c: int, r: int) -> int:
        """What it costs that route r cannot carry c, too; beyond NEVER: it shall not."""
        s = self.s
        load = int(s.load[r])
        more = self._beyond(load + int(s.demand[c])) - self._beyond(load)
        return 2 * NEVER if more and s.packing else s.price * more >> 10

    def _in_time(self, c: int, p: int, before: int, x: int, behind: int) -> bool:
        """Whether c, so far from p and from x, can be served between them."""
        s = self.s
        if s.opens is None:
            return True
        at = max(int(s.ready[p]) + before, int(s.opens[c]))
        return at <= s.closes[c] and at + int(s.service[c]) + behind <= s.latest[x]

    def _best_place(self, c: int) -> int:
        """The stop after which c is inserted; -1: there is none."""
        s = self.s
        home, least, found = int(s.home[c]), NEVER if s.packing else 1 << 63, -1
        if s.empties and s.n - s.empties < s.limit:
            depot = s.n + int(s.empty[s.empties - 1])
            if self._in_time(c, depot, home, depot, home):
                least, found = 2 * home, depot
        for r in self.ruined:
            if not s.size[r]:
                continue
            depot, fine = s.n + r, self._fine(c, r)
            first, last = int(s.next[depot]), int(s.prev[depot])
            for end, stop, leg in ((first, depot, s.leg[depot]), (last, last, s.leg[last])):
                d = self._apart(c, end)
                cost, way = fine + home + d - int(leg), (home, d) if stop == depot else (d, home)
                fits = cost < least and self._in_time(c, stop, way[0], int(s.next[stop]), way[1])
                if fits and not self._blinks():
                    least, found = cost, stop
        near = s.near[c, : s.looked_at]
        rows = (each[near].tolist() for each in (s.route, s.next, s.leg, s.prev, s.back))
        for j, d, r, after, leg, before, back in zip(near.tolist(), s.far[c, : s.looked_at].tolist(), *rows):
            if r < 0:
                continue
            ends = (after, leg, j), (before, back, before)
            looks = [2 * d - leg < least or (x >= s.n and home < d) for x, leg, _ in ends]
            if True not in looks:
                continue
            fine = self._fine(c, r)
            for look, (x, leg, stop) in zip(looks, ends):
                if look and (fine + 2 * d - leg < least or x >= s.n):
                    other = self._apart(c, x)
                    cost, way = fine + d + other - leg, (d, other) if stop == j else (other, d)
                    fits = cost < least and self._in_time(c, stop, way[0], int(s.next[stop]), way[1])
                    if fits and not self._blinks():
                        least, found = cost, stop
        return found

    def _recreate(self) -> bool:
        """Insert what is removed; whether there was a place for all."""
        self.left = 0
        for c in self._sorted():
            p = self._best_place(c)
            if p >= 0:
                self._insert(c, p)
            elif self.s.packing:
                self.s.absent[self.s.absents] = c
                self.s.absents += 1
            else:
                return False
        return True


def retime(s: Any, r: int) -> None:
    """When a vehicle leaves the stops of route r, and when it has to be there; whether it is late."""
    at, x, late = int(s.opens[s.depot]), int(s.next[s.n + r]), False
    while x < s.n:
        comes = at + int(s.back[x])
        late |= comes > s.closes[x]
        at = max(comes, int(s.opens[x])) + int(s.service[x])
        s.ready[x] = at
        x = int(s.next[x])
    s.late[r] = late or at + int(s.back[s.n + r]) > s.closes[s.depot]
    at, x = int(s.closes[s.depot]), int(s.prev[s.n + r])
    while x < s.n:
        at = min(at - int(s.leg[x]) - int(s.service[x]), int(s.closes[x]))
        s.latest[x] = at
        x = int(s.prev[x])
