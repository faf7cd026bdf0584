"""The tables of any run: what to do and where, ranks, memory, checkpoints, output."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.table import AboveZero, Amount, BelowOne, Count, Positive, Table, about

MOST_COPIES = 1 << 16  # of agents, or of searches


class RunCase(Table, frozen=True):
    """What to do, where to write, on what device."""

    name: Annotated[str, about('name of the run; "": the case file\'s name without .toml')] = ""
    out: Annotated[str, about('output folder, relative to the working directory; "": runs/NAME')] = ""
    task: Annotated[
        Literal["train", "solve", "classify", "study"],
        about(
            "train: learn a policy; solve: answer the problem on [graph]; classify: train or apply a graph "
            "network on the nodes of [graph]; study: run a grid of these"
        ),
    ] = "solve"
    reproducible: Annotated[bool, about("the same bits on any number of ranks")] = True
    portable: Annotated[
        bool, about("the same bits on every processor and device; false: dense products by BLAS")
    ] = True
    kernels: Annotated[
        Literal["auto", "plain"],
        about("auto: the compiled kernels where they were built; plain: NumPy and SciPy; the bits are equal"),
    ] = "auto"
    device: Annotated[
        Literal["auto", "cpu", "gpu"],
        about(
            "auto: a GPU where there is one and it is likely to be faster, for networks of classify, for "
            "studies and for policies on graphs that are generated large and dense; else the host"
        ),
    ] = "auto"
    cuda_graph: Annotated[
        bool,
        about(
            "on one rank with a GPU: record the launches of an epoch on a small graph, or of a policy's "
            "evaluation, once and replay them: 3 to 6 times as fast"
        ),
    ] = True
    check_every: Annotated[
        Count,
        about(
            "steps of learning between comparisons of what is the same on all ranks; 0: off. What one rank "
            "learns for all, or as one of several networks, is compared once, when all have it"
        ),
    ] = 500
    watchdog_seconds: Annotated[
        Amount,
        about("time without a step, a message or a piece of a file that ends a job as stuck, s; 0: never"),
    ] = 3600.0


class ParallelCase(Table, frozen=True):
    """How ranks share the work; of these keys only `data` changes a result."""

    data: Annotated[
        int,
        Meta(ge=1, le=MOST_COPIES),
        about(
            "train: replicas of the agent, each with environments and memory of its own, that share out "
            "agent.batch and rollout_steps; solve: graphs solved at once, or searches of a single one"
        ),
    ] = 1
    spatial: Annotated[
        Count,
        about(
            "ranks that share a graph; 1: every rank has it whole and does all of it by itself, or of a "
            "network of classify the first one for all, which changes no bit; 0: 1 where graphs are so small "
            "that ranks would wait for each other, of classify also where they have no core each, but room "
            "for it, else ranks / as many groups as divide ranks and data; of classify all ranks; study.kind "
            "= tune: ranks that train a trial together, 0: one"
        ),
    ] = 0
    exchange: Annotated[
        Literal["auto", "gather", "halo", "staged"],
        about("gather: all rows to all ranks; halo: only the rows needed; staged: one rank's rows at a time"),
    ] = "auto"
    transport: Annotated[
        Literal["auto", "direct", "staged"], about("direct: device memory to MPI; staged: through the host")
    ] = "auto"
    partition: Annotated[
        Literal["rows", "edges", "learned"],
        about(
            "what the cuts give every rank an equal share of; learned: of the time that a cost model "
            "predicts (edges without one), and classify follows what it measures; graphs that share a "
            "batch share their cuts"
        ),
    ] = "edges"
    cost_model: Annotated[
        str,
        about(
            "learned: a cost_model.json that an earlier run wrote, for the first cuts and to go on learning; "
            'classify uses one of layers like its own alone; "": none'
        ),
    ] = ""


class MemoryCase(Table, frozen=True):
    """Limits; no key here but whole_graph_mb changes a result."""

    whole_graph_mb: Annotated[
        Amount,
        about(
            "largest graph brought to one rank, MB, at 100 bytes a node and 120 an edge for any problem; "
            "a larger one is left to the policy alone, without reductions, search, bounds and baselines, but "
            "for vertex covers, independent sets, cliques, cuts, dominating and feedback vertex sets, where "
            "reductions on the rows, and but for cliques, cuts and feedback vertex sets the policy's "
            "choices, leave less; work takes up to 2.4 times as much for cuts, 1.6 times for dominating "
            "sets; also the memory of tools that work on a whole graph"
        ),
    ] = 4096.0
    estimate_first: Annotated[
        bool, about("refuse a case that by estimate needs more memory than there is; false: try it")
    ] = True
    max_decompressed_gb: Annotated[AboveZero, about("largest input file once decompressed, GB")] = 64.0
    cache: Annotated[
        str, about('folder, relative to the working one, that keeps graphs read from text; "": none')
    ] = ""
    fast_mb: Annotated[
        Amount,
        about(
            "limit of a rank's arrays of all its rows, dense features among them, MB; what does not fit goes "
            "to slow; 0: none; task train: of the arrays of one round, and those that wait for the backward "
            "pass"
        ),
    ] = 0.0
    slow: Annotated[
        Literal["auto", "file", "host"],
        about("beyond fast_mb: a file, or memory of the host; auto: host beside a GPU, else file"),
    ] = "auto"
    folder: Annotated[str, about('of that file; "": the system\'s folder for temporary files')] = ""
    method: Annotated[
        Literal["dynamic program", "farthest next use", "least recently used", "streaming"],
        about(
            "classify: what is planned to move under fast_mb; dynamic program: the fewest bytes; the others "
            "are what it is compared with"
        ),
    ] = "dynamic program"


class CheckpointCase(Table, frozen=True):
    """What a run keeps so that it can go on after a stop; no key here changes a result."""

    enabled: Annotated[bool, about("write checkpoints; false: none, and a signal ends the run at once")] = (
        True
    )
    minutes: Annotated[Amount, about("between two checkpoints, min; one more when the run is stopped")] = 10.0
    steps: Annotated[
        Count, about("besides, a checkpoint after so many steps, epochs or answers; 0: by the minutes alone")
    ] = 0
    keep: Annotated[Positive, about("the newest ones that are kept")] = 2


class OutputCase(Table, frozen=True):
    """What is written."""

    solutions: Annotated[bool, about("write solution/NAME.txt for each graph")] = True
    certificates: Annotated[
        bool, about("write certificates/NAME.npz: what proves the bound, for --check RUN")
    ] = False
    plots: Annotated[bool, about("draw the plots, where matplotlib is installed")] = True
    embeddings: Annotated[bool, about("classify: write what the last layer but one says of each node")] = (
        False
    )
    probabilities: Annotated[
        bool, about("classify: write how likely each class is for each node, by the last layer")
    ] = False
    coverage: Annotated[
        BelowOne,
        about(
            "classify: write sets of classes, or intervals of numbers, that hold what is true of such a "
            "share of the nodes, by the validation nodes (conformal prediction); 0: none"
        ),
    ] = 0.0
    importance: Annotated[
        Count,
        about(
            "classify: leave so many features out of the trained network, one at a time (as many of edges), "
            "and write what its scores lose by it; study of folds: the means; 0: none"
        ),
    ] = 0
    explain: Annotated[
        Count | list[int | str | list[int | str]],
        about(
            "classify: ids of nodes, or graphs, whose predictions are explained by the edges and features "
            "that they depend on, of edges and links both ends of each, [[A, B], ...]; or how many of the "
            "test set, those that are wrong or least certain first; 0: none"
        ),
    ] = 0
    log_seconds: Annotated[Amount, about("time between progress lines, s")] = 2.0
