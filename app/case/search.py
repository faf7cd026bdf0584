"""The table of searches and bounds."""

from typing import Annotated, Literal

from msgspec import Meta, field

from app.case.run import MOST_COPIES
from app.case.table import Amount, Count, Table, about

STARTS = ("learned", "greedy")  # values of search.start that are not files


class SearchCase(Table, frozen=True):
    """How a solve looks for its answer, and for how long."""

    solver: Annotated[
        Literal["full", "policy"],
        about("full: reductions, learned start, local search, bounds; policy: the learned policy alone"),
    ] = "full"
    seconds: Annotated[
        Amount,
        about(
            "wall time for each graph after reading, s; 0: steps decide, the same bits anywhere; plain "
            "heuristics may take a tenth more (search.baselines)"
        ),
    ] = 0.0
    steps: Annotated[
        int,
        Meta(ge=-1),
        about("of each local search; -1: as many as fit the seconds, a second's work without a limit"),
    ] = -1
    starts: Annotated[
        int,
        Meta(ge=0, le=MOST_COPIES),
        about(
            "local searches, dealt to the ranks: the best one counts; those for cuts and tours meet; 0: one, "
            "under a time limit one for each rank but that of the bounds"
        ),
    ] = 0
    start: Annotated[
        str, about("where the searches begin: learned, greedy, or a file with a solution (ids, one per line)")
    ] = "learned"
    sweeps: Annotated[
        list[Annotated[int, Meta(ge=1, le=1 << 24)]],
        about(
            "of a long annealing of a cut, and those left at each eighth of it; []: as many as a time limit "
            "allows, where it does not allow many annealings"
        ),
    ] = field(default_factory=list)
    reductions: Annotated[bool, about("apply exact reductions first")] = True
    reduction_steps: Annotated[
        Count,
        about(
            "of exact reductions, at most, as a time limit cut them short (replay); 0: all; not of cliques"
        ),
    ] = 0
    start_looks: Annotated[
        Count,
        about(
            "times that a plain start asks whether its time is up, after which it is, as a time limit cut it "
            "short (replay); tours then begin with a curve, and of trees with prizes there is no search; "
            "0: never"
        ),
    ] = 0
    row_rounds: Annotated[
        Count,
        about(
            "of reductions of the rows of a graph beyond memory.whole_graph_mb, at most, as a time limit cut "
            "them short (replay); 0: all"
        ),
    ] = 0
    row_evaluations: Annotated[
        int,
        Meta(ge=-1),
        about(
            "of the policy on the rows of a graph of which reductions leave more than memory.whole_graph_mb, "
            "at most, until the rest fits; then a plain greedy goes on (replay); 0: any number; -1: none"
        ),
    ] = 0
    row_fraction: Annotated[
        float,
        Meta(ge=0.0, le=1.0),
        about(
            "share of the candidates that the policy takes at once there, while more than 16,384 nodes are "
            "left and select.rule is single, 1e-9: one node; 0: one where that is no great work, else 1/500, "
            "more where a time limit asks for it (replay); where no policy is asked what the plain greedy "
            "takes at least"
        ),
    ] = 0.0
    row_sweeps: Annotated[
        list[Annotated[int, Meta(ge=0, le=1 << 24)]],
        about(
            "of the annealing of a cut on the rows of such a graph, at each of so many temperatures, which "
            "fall evenly; [0]: none; []: at 32, as many as fit the seconds, 10 at each without a limit"
        ),
    ] = field(default_factory=list)
    row_exchanges: Annotated[
        Count,
        about(
            "rounds of exchanges on the rows of such a graph, at most, as a time limit cut them short "
            "(replay); 0: all"
        ),
    ] = 0
    row_regions: Annotated[
        int,
        Meta(ge=-1),
        about(
            "regions of the rows of such a graph that are searched again, 16 a round, dealt to the ranks, of "
            "cliques parts of the roots; 0: none; -1: as many as fit the seconds, 64 without a limit, of "
            "cliques 256"
        ),
    ] = -1
    peel_fraction: Annotated[
        float,
        Meta(gt=0.0, le=1.0),
        about("share of the candidates that the policy takes at once, with reductions in between"),
    ] = 0.01
    peels: Annotated[
        Count,
        about("passes of reduce and peel, each with smaller parts; 0: as long as they need few evaluations"),
    ] = 0
    moves_at_once: Annotated[
        Count,
        about(
            "maximum cut: nodes that the policy's start moves by one evaluation; 0: one in graphs of up to "
            "4,096 nodes, else, and under a time limit, as many as its share of the work asks for; "
            "dominating and feedback vertex sets: nodes that its first evaluation adds, later in proportion; "
            "0: one in graphs of up to 16,384 nodes, else 1/500 of them, under a time limit as many as that "
            "asks for"
        ),
    ] = 0
    evaluations: Annotated[
        Count,
        about(
            "most policy evaluations of a learned start, and of the policy alone, the rest is greedy (tours: "
            "about as many, by several cities at once); 0: any number; of a cut's moves on "
            "graphs of over 4,096 nodes a bounded work"
        ),
    ] = 0
    inside: Annotated[str, about('a file with ids of nodes that the solution must hold; "": none')] = ""
    outside: Annotated[str, about('a file with ids of nodes that it must not hold; "": none')] = ""
    bound_seconds: Annotated[
        Amount, about("what bounds may take beyond the time of the search, where seconds is 0, s")
    ] = 2.0
    drop_redundant: Annotated[
        bool,
        about(
            "the policy alone: drop chosen nodes that the solution does not need (dismantle: many where "
            "components of more than 8 nodes may stay; its policy plays on for that; where its first choices "
            "leave trees these are broken exactly, too, and the smallest set counts)"
        ),
    ] = True
    baselines: Annotated[
        bool,
        about(
            "also run the classical heuristics, for comparison: the answer is never worse than the best of "
            "them; under a limit of seconds they have what an answer leaves of it and a tenth more (at least "
            "0.25 s): none begins later, nor one that would take longer; false: none"
        ),
    ] = True
    heuristic: Annotated[
        str,
        about('of the classical heuristics this one alone, by its name, as a replay asks for; "": all'),
    ] = ""
    bounds: Annotated[bool, about("prove how far from optimal the answer can be")] = True
