"""Placeholder until the bounds are joined."""

from app.bounds.table import BOUNDS


class CoverBounds:
    def __init__(self, graph, weights=None, compiled=True):
        self.graph, self.left, self.best, self.optimum = graph, list(BOUNDS.values()), None, None
        self.lower, self.method = 0, "trivial"

    def improve(self, seconds, upper=None, upper_solution=None):
        if self.left and self.graph.n:
            b = self.left.pop(0)(self.graph)
            if self.best is None or b.lower > self.lower:
                self.best, self.lower, self.method = b, b.lower, b.method
        return bool(self.left)

    def certificate(self):
        return self

    def check(self, graph):
        if self.best is not None:
            self.best.check(graph)
