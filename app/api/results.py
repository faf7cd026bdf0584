"""What `solve`, `check` and `train` return: answers and policies, as text, as HTML and as plots.

`plot()` needs matplotlib; what a notebook shows of a result by itself does not.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.api.drawing import draw, figure_of, finish, framed, line_of
from app.case.policy import PolicyCase
from app.files import whole_file
from app.page.charts import Line, line_chart
from app.page.markup import table, tag
from app.page.values import percent, seconds, shown
from app.rl.weights import save_weights
from app.text import gap_words


@dataclass(frozen=True, repr=False)
class Solution:
    """An answer, checked, with a bound; the fields are those of an instance in result.json.

    bound_verified   the certificate of the bound was checked by code that did not make it
    digest  SHA-256 of the answer, the same on any number of ranks
    nodes   the chosen nodes, the nodes on side 1 of a cut, the variables of a quadratic function (spins) that
            are 1, all nodes in the order of a tour, those of a tree or of routes, or of a colouring a list
            of nodes for each colour: the labels of a NetworkX graph, the nodes of a DataFrame, the ids or
            names of a file, or row numbers
    trace   (seconds, objective, bound) whenever one of them got better; None before there is one
    text    what `save` writes: nodes by the ids or names of a file, or by the labels of a graph in memory
            where all are whole numbers or names that files may have, else by row numbers
    certificate   what proves the bound, for `check`, here or elsewhere (a run's certificates/NAME.npz); empty
            without output.certificates in the settings, and where nothing but a finished search proves it
    problem   that it answers, as problem.name
    edges   of a Steiner tree, pairs of nodes, whose lengths are the objective; else none
    length, prizes_lost   of a Steiner tree with prizes, the two parts of the objective; else None
    routes  of vehicles, lists of customers in order, the depot left out; else none
    order   of a dismantling set, its nodes in the order in which they are best taken out; of treewidth all
            nodes in that of their elimination, of an arrangement from first to last; else none
    bags    of treewidth, lists of nodes, and tree, the pairs of their numbers, from 0 on, that are joined: a
            tree decomposition; else none
    curves  of a dismantling set and of those of plain heuristics, by label ("answer"): nodes of the largest
            component, then without one node more each time, as long as one of them leaves an edge; else none
    robustness   the area below each: the mean share of nodes in it, R of Schneider et al. 2011
    measures     of an arrangement, what its order is worth by each of the five, by name; of a dense
                 subgraph its nodes, edges, weight, average and density; else none
    mapping      of alignment and qap, the node of the second graph that each of the first is put on
    edges_kept, edges_lost   of alignment, the edges of the first graph that are on edges of the second, and
                 those that are not; else None
    assignment   of facilities, the one that serves each node, a mapping; else none
    kept    of an order (ordering), whose nodes `nodes` and `order` have from first to last, the weight of the
            arcs that lead forward: the weight of all arcs less the objective; else None
    spread  of seeds (influence): `objective` is the mean of so many `simulations`, with its `standard_error`;
            the expected spread is `at_least` so much, and that of no seeds above `bound`, with probability
            `confidence`; `sets`, `judges`: reverse reachable sets that seeds were chosen and judged by
    """

    nodes: list[Any]
    objective: float
    bound: float | None
    bound_method: str | None
    bound_verified: bool
    gap: float | None
    feasible: bool
    policy_evaluations: int
    seconds: float
    baselines: dict[str, float]
    optimal: bool
    source: str
    steps: int
    digest: str
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    text: str = ""
    certificate: bytes = b""
    problem: str = ""
    edges: list[tuple[Any, Any]] = field(default_factory=list)
    routes: list[list[Any]] = field(default_factory=list)
    order: list[Any] = field(default_factory=list)
    bags: list[list[Any]] = field(default_factory=list)
    tree: list[tuple[int, int]] = field(default_factory=list)
    curves: dict[str, list[int]] = field(default_factory=dict)
    robustness: dict[str, float] = field(default_factory=dict)
    spread: dict[str, Any] = field(default_factory=dict)
    length: float | None = None
    prizes_lost: float | None = None
    assignment: dict[Any, Any] = field(default_factory=dict)
    kept: float | None = None
    measures: dict[str, float] = field(default_factory=dict)
    mapping: dict[Any, Any] = field(default_factory=dict)
    edges_kept: int | None = None
    edges_lost: int | None = None

    @property
    def curve(self) -> list[int]:
        """That of the answer."""
        return self.curves.get("answer", [])

    def save(self, path: str) -> None:
        """Write the file that a run has as solution/NAME.txt: for `search.start=PATH` on the same graph, or
        `--check PATH`."""
        with whole_file(os.fspath(path)) as file:
            file.write(self.text.encode())

    def __repr__(self) -> str:
        what = "colors" if any(isinstance(each, list) for each in self.nodes) else "nodes"
        return f"Solution({_worth(self)}, {len(self.nodes)} {what})"

    def _repr_html_(self) -> str:
        gap = "-" if self.gap is None else percent(self.gap)
        row = [self.objective, self.bound, *self.baselines.values()]
        cells = [*(shown(value, 10) for value in row[:2]), gap, *(shown(value, 10) for value in row[2:])]
        head = ["answer", "bound", "gap %", *self.baselines, "proved by", "seconds"]
        chart = line_chart("Objective and bound", self._lines(), "seconds", "objective")
        return framed(
            table(head, [[*cells, self.bound_method or "-", seconds(self.seconds)]]),
            chart if len(self.trace) > 2 else "",
        )

    def _lines(self) -> list[Line]:
        """The course of objective and bound."""
        lines = []
        for place, name in ((1, "objective"), (2, "bound")):
            known = [(each[0], each[place]) for each in self.trace if each[place] is not None]
            if known:
                end = max(self.seconds, known[-1][0])
                xs, ys = [x for x, _ in known] + [end], [float(y) for _, y in known] + [float(known[-1][1])]
                lines.append(Line(name, xs, ys, place - 1, step=True, dashed=place == 2))
        return lines

    def plot(self) -> Any:
        """Objective and bound over seconds, plain heuristics as lines; a matplotlib figure."""
        figure, (axes,) = figure_of(1)
        for line in self._lines():
            style = "--" if line.dashed else "-"
            axes.step(line.x, line.y, where="post", label=line.label, ls=style, color=f"C{line.colour}")
        for i, (label, value) in enumerate(self.baselines.items()):
            axes.axhline(value, ls=":", lw=1, label=label, color=f"C{i + 2}")
        return finish(figure, axes, "seconds", "objective")


@dataclass(frozen=True, repr=False)
class Checked:
    """What a feasible answer is worth, and how far from optimal it can be.

    bound_verified   the bound was proved from a certificate, or from the witness of the search for it
    """

    objective: float
    bound: float | None
    bound_method: str | None
    bound_verified: bool
    gap: float | None
    optimal: bool

    def __repr__(self) -> str:
        return f"Checked({_worth(self)})"


def _worth(answer: Solution | Checked) -> str:
    """Objective, bound and gap in words."""
    objective = f"objective {shown(answer.objective, 10)}"
    if answer.bound is None:
        return f"{objective}, no bound"
    gap = "optimal" if answer.optimal else gap_words(answer.gap)
    return f"{objective}, bound {shown(answer.bound, 10)} ({answer.bound_method}), {gap}"


@dataclass(frozen=True, repr=False)
class TrainedPolicy:
    """Learned weights, host arrays by name, and how learning went (one record per evaluation)."""

    weights: dict[str, np.ndarray]
    policy: PolicyCase
    problem: str
    records: list[dict[str, float]]
    digest: str

    def save(self, path: str) -> None:
        """Write weights.npz, for `policy.weights=PATH` of a case or `solve(weights=PATH)`."""
        save_weights(path, self.weights, self.policy, self.problem, "trained from Python")

    def __repr__(self) -> str:
        last = f", {self.records[-1]['step']} steps" if self.records else ""
        return f"TrainedPolicy({self.problem}{last}, weights {self.digest[:12]})"

    def _repr_html_(self) -> str:
        held = line_of(self.records, "step", "held_back_nodes", "held-back total", 0)
        loss = line_of(self.records, "step", "loss", "loss", 1)
        return framed(
            tag("p", repr(self)),
            line_chart("Held-back graphs", held, "environment steps", "total objective"),
            line_chart("Loss", loss, "environment steps", "loss"),
        )

    def plot(self) -> Any:
        """The total over the held-back graphs, and the loss, over environment steps; a matplotlib figure."""
        figure, axes = figure_of(2)
        for panel, key, name in zip(axes, ("held_back_nodes", "loss"), ("held-back total", "loss")):
            draw(panel, line_of(self.records, "step", key, name, 0))
            finish(figure, panel, "environment steps", name)
        return figure
