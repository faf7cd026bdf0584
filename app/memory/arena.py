"""Arena: which part of one block of memory every tensor has."""

LINE = 64  # bytes; sizes are multiples of it, so that every tensor begins at a cache line


def padded(size: int) -> int:
    """The least multiple of LINE that holds `size` bytes."""
    return -(-size // LINE) * LINE


class Arena:
    """Places in a block of `capacity` bytes; knows nothing of the memory itself.

    places   {name: (offset, size)} of what lies in it, in bytes
    peak     the most bytes that were taken at once
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.places: dict[str, tuple[int, int]] = {}
        self.used = self.peak = 0

    def take(self, name: str, size: int) -> bool:
        """Give a tensor the smallest gap that holds it, the lowest of equals; False: there is none."""
        fits = [(end - begin, begin) for begin, end in self._gaps() if end - begin >= size]
        if not fits:
            return False
        self.places[name] = (min(fits)[1], size)
        self.used += size
        self.peak = max(self.peak, self.used)
        return True

    def free(self, name: str) -> None:
        """Give a tensor's place back."""
        self.used -= self.places.pop(name)[1]

    def clear(self) -> None:
        """Give all places back."""
        self.places.clear()
        self.used = 0

    def close_gaps(self) -> list[tuple[int, int, int]]:
        """Move everything to the front. Returns (from, to, size), to be copied in this order."""
        moves, front = [], 0
        for name, (offset, size) in self._in_order():
            if offset != front:
                moves.append((offset, front, size))
                self.places[name] = (front, size)
            front += size
        return moves

    def _in_order(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(self.places.items(), key=lambda each: each[1])

    def _gaps(self) -> list[tuple[int, int]]:
        """(begin, end) of what is free, ascending."""
        gaps, begin = [], 0
        for _, (offset, size) in self._in_order():
            if offset > begin:
                gaps.append((begin, offset))
            begin = offset + size
        return [*gaps, (begin, self.capacity)] if begin < self.capacity else gaps
