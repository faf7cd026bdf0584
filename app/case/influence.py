"""The table of influence maximisation: how news spreads, and how closely seeds are judged."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.table import Table, about


class InfluenceCase(Table, frozen=True):
    """How news spreads along edges, and how many samples judge seeds (problem "influence")."""

    model: Annotated[
        Literal["independent_cascade", "linear_threshold"],
        about(
            "independent_cascade: an active node makes a neighbour active with the edge's probability, once; "
            "linear_threshold: a node becomes active when the weights of edges from active nodes reach its "
            "random threshold"
        ),
    ] = "independent_cascade"
    probabilities: Annotated[
        Literal["in_degree", "weights", "constant", "trivalency"],
        about(
            "of edges; in_degree: one over the edges into the node (weighted cascade); weights: those of the "
            "graph, from 0 to 1; constant: all influence.probability; trivalency: 0.1, 0.01 or 0.001, drawn "
            "by the seed"
        ),
    ] = "in_degree"
    probability: Annotated[float, Meta(ge=0.0, le=1.0), about("constant: of every edge")] = 0.1
    directed: Annotated[
        bool,
        about(
            "edges of a directed graph (an edge list 'from to') lead one way; false: both, as those of "
            "undirected graphs do"
        ),
    ] = True
    epsilon: Annotated[
        float,
        Meta(ge=0.0, lt=1.0),
        about(
            "sampling ends when chance alone leaves less than this share between the bounds of spreads; what "
            "a search then leaves of a time limit goes into more sets"
        ),
    ] = 0.05
    delta: Annotated[
        float, Meta(gt=0.0, lt=1.0), about("probability that one of the bounds told does not hold, at most")
    ] = 0.01
    sets: Annotated[
        int,
        Meta(ge=256, le=1 << 30),
        about(
            "reverse reachable sets that seeds are chosen by, at most: doubled from 4,096 on as far as "
            "epsilon, the time (which may allow 256 to 2,048 alone) and memory.whole_graph_mb want; as many "
            "more judge each choice, four times as many the answer"
        ),
    ] = 1 << 22
    simulations: Annotated[
        int,
        Meta(ge=2, le=1 << 24),
        about(
            "cascades that the objective, and that of plain heuristics, is the mean size of; fewer where a "
            "time limit asks for it (replay)"
        ),
    ] = 1_000
