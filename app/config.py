"""The case as frozen structs. The only home of key names, defaults, ranges and their meaning.

Neither this file nor those that read, check and write a case (casefile.py, casecheck.py, casetext.py) import
NumPy or MPI: a mistake is reported before they load.
"""

from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field, structs
from msgspec import inspect as kinds

from app.text import toml_value

VERSION = "0.1.0"

# --------------------------------------------------------------------------------
# The tables. One line per key: type and range, meaning with its unit, default.


def about(description: str) -> Meta:
    """The meaning of a key, as --help prints it."""
    return Meta(description=description)


STARTS = ("learned", "greedy")  # values of search.start that are not files
MOST_COPIES = 1 << 16  # of agents, or of searches
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Amount = Annotated[float, Meta(ge=0.0)]
AboveZero = Annotated[float, Meta(gt=0.0)]
BelowOne = Annotated[float, Meta(ge=0.0, lt=1.0)]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML table: immutable, strict."""


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
    device: Annotated[Literal["auto", "cpu", "gpu"], about("auto: the GPU where there is one")] = "auto"
    cuda_graph: Annotated[
        bool,
        about(
            "on one rank with a GPU: record the launches of an epoch, or of a policy's evaluation, once and "
            "replay them; not proven on a GPU yet"
        ),
    ] = False
    check_every: Annotated[
        Count, about("steps of learning between comparisons of what is the same on all ranks; 0: off")
    ] = 500
    watchdog_seconds: Annotated[
        Amount,
        about("time without a step, a message or a piece of a file that ends a job as stuck, s; 0: never"),
    ] = 3600.0


class GraphCase(Table, frozen=True):
    """Graphs: read from files, generated, or both (the files come first)."""

    path: Annotated[str | list[str], about('a file, a glob, "networkx:NAME", or a list of these')] = []
    format: Annotated[
        Literal[
            "auto",
            "edges",
            "matrix_market",
            "metis",
            "dimacs",
            "gset",
            "npz",
            "networkx",
            "tsplib",
            "ogb",
            "ppi",
            "graphsage",
        ],
        about(
            "of the files; auto: by the ending and the first lines; ogb, ppi: folders of these data sets; "
            "graphsage: PREFIX-G.json, other files beside it"
        ),
    ] = "auto"
    ids: Annotated[
        Literal["numbers", "names"],
        about('of the nodes of an edge list; names: any text, such as "TP53 MDM2"'),
    ] = "numbers"
    features: Annotated[
        str, about('file of node features: .npy, .npz or text, a row for each node; "": those in graph.path')
    ] = ""
    labels: Annotated[str, about('file of node classes: .npy, .npz or text; "": those in graph.path')] = ""
    splits: Annotated[
        str,
        about(
            'file of the nodes to train on, validate and test; random: 60 : 20 : 20; "": those in graph.path'
        ),
    ] = ""
    node_data_by: Annotated[
        Literal["order", "id"],
        about(
            "features, labels, splits; order: a line for each node, in the order of the ids; id: lines of "
            "text in any order that begin with an id"
        ),
    ] = "order"
    neighbours: Annotated[
        Literal["both", "in", "out"],
        about(
            "whose rows a node's layer sums: both: of all neighbours, whatever the direction of the edges; "
            "in: of the tails of the edges into it; out: of the heads of those out of it"
        ),
    ] = "both"
    node_weights: Annotated[
        str,
        about(
            "file of a weight for each node, for mvc, mis, mds, clique: lines of an id and a number, or "
            '.npy; "": those in graph.path'
        ),
    ] = ""
    order: Annotated[
        Literal["natural", "random", "rcm", "metis"],
        about("of the rows, before they are dealt; rcm: reverse Cuthill-McKee; metis: by parts (pymetis)"),
    ] = "natural"
    generator: Annotated[
        Literal[
            "",
            "er",
            "ba",
            "torus",
            "small_world",
            "geometric",
            "mixed",
            "varied",
            "diverse",
            "rmat",
            "rmat_natural",
            "chung_lu",
            "bter",
            "sbm",
            "uniform_points",
        ],
        about(
            "er: Erdos-Renyi; ba: Barabasi-Albert; torus: square grid, closed; small_world: Watts-Strogatz; "
            "geometric: points that are near each other; rmat; rmat_natural: rmat, hubs first; chung_lu: "
            "power-law degrees; bter: these and triangles; sbm: communities, which are the classes; "
            "uniform_points: in the unit square, for tours; by turns: mixed: ba, er; varied: ba, er, torus; "
            "diverse: nine families with keys of their own, sparse and dense"
        ),
    ] = ""
    edge_weights: Annotated[
        Literal["one", "signs", "whole", "normal", "mixed"],
        about(
            "of a generated graph: all one; 1 or -1; 1 to 100; normal of variance 1, in 64ths; mixed: one, "
            "signs, normal by turns"
        ),
    ] = "one"
    nodes: Annotated[int | tuple[int, int], about("of a generated graph, or drawn from [lo, hi]")] = 0
    p: Annotated[
        Share, about("er: probability of an edge; small_world: that the far end of one is moved")
    ] = 0.15
    d: Annotated[
        Positive,
        about(
            "ba: edges that each new node brings; small_world: neighbours ahead; rmat, chung_lu, bter, "
            "geometric: edges per node"
        ),
    ] = 4
    edges: Annotated[
        Count,
        about("rmat, chung_lu, bter: edges drawn, repeats included; geometric: expected; 0: nodes x d"),
    ] = 0
    removed: Annotated[Share, about("torus: share of the edges left out")] = 0.0
    exponent: Annotated[
        float, Meta(gt=2.0, le=100.0), about("chung_lu, bter: of the power law of the expected degrees")
    ] = 2.3
    degrees_of: Annotated[
        str, about('bter: a graph file whose degrees are taken instead of a power law; "": none')
    ] = ""
    degree_scale: Annotated[AboveZero, about("bter: factor of all expected degrees")] = 1.0
    clustering: Annotated[
        BelowOne, about("bter: clustering coefficient of nodes of degree 2, falling with the degree")
    ] = 0.6
    clustering_decay: Annotated[Amount, about("bter: of its logarithm, for each degree more")] = 0.02
    degree_in: Annotated[Amount, about("sbm: mean degree within the own community")] = 8.0
    degree_out: Annotated[Amount, about("sbm: mean degree to other communities")] = 2.0
    random_classes: Annotated[
        Count, about("of a generated graph: random labels; sbm: communities, which are the labels")
    ] = 0
    random_features: Annotated[
        Count, about("of a generated graph: random numbers for each node; sbm: around the class's mean")
    ] = 0
    signal: Annotated[
        Amount, about("sbm: distance of the class means from zero, by the noise of one number")
    ] = 1.0
    rmat_a: Annotated[Share, about("rmat: share of the edges in the first quarter of the matrix")] = 0.57
    rmat_b: Annotated[Share, about("rmat: in the upper right quarter")] = 0.19
    rmat_c: Annotated[Share, about("rmat: in the lower left quarter; the last one gets the rest")] = 0.19
    count: Annotated[Positive, about("generated graphs")] = 1
    generator_seed: Annotated[int, Meta(ge=-1), about("seed of the generator; -1: the case's seed")] = -1
    complement: Annotated[bool, about("use the complement graph (small graphs only)")] = False
    self_loops: Annotated[Literal["drop", "error"], about("in a file; drop: count and ignore them")] = "drop"
    duplicates: Annotated[Literal["merge", "error"], about("an edge given twice; merge: keep one")] = "merge"


class ProblemCase(Table, frozen=True):
    """The optimisation problem."""

    name: Annotated[
        str,
        about(
            "mvc: minimum vertex cover; mis: maximum independent set; mds: minimum dominating set; "
            "clique: maximum clique; maxcut: maximum cut by moves that may be undone, maxcut_once: by moves "
            "that last; tsp: travelling salesman"
        ),
    ] = "mvc"


class PolicyCase(Table, frozen=True):
    """The Q-network: structure2vec embedding and evaluation head (Khalil et al. 2017)."""

    model: Annotated[
        Literal["structure2vec", "gcn", "gin", "gin_norm", "sage", "commnet"],
        about(
            "the embedding network; all but structure2vec without shared_layers, self_weight, edge_weights, "
            "and for maxcut without the signs of edges"
        ),
    ] = "structure2vec"
    weights: Annotated[
        str,
        about('"default": shipped with the program; "train": train first, by [agent] and [train]; or a file'),
    ] = "default"
    features: Annotated[
        Literal["scale_free", "paper"], about("node inputs; scale_free: independent of the graph's size")
    ] = "scale_free"
    layers: Annotated[int, Meta(ge=1, le=16), about("rounds of message passing")] = 2
    dimension: Annotated[int, Meta(ge=1, le=1024), about("numbers per node in the embedding")] = 16
    head: Annotated[
        Literal["separate", "mixing"], about("separate: graph and node parts meet after relu; mixing: before")
    ] = "separate"
    hidden: Annotated[int, Meta(ge=1, le=4096), about("width of the head's hidden layer")] = 32
    shared_layers: Annotated[bool, about("one set of weights for all layers")] = False
    self_weight: Annotated[bool, about("a separate weight for the node's own embedding")] = True
    mean_degree: Annotated[
        bool, about("divide neighbour sums by the mean residual degree (maxcut: by the node's own degree)")
    ] = True
    hub_degree: Annotated[
        Amount,
        about(
            "neighbour sums of nodes of more than this many times the mean residual degree (mds: that would "
            "dominate so many times what sums are divided by) are scaled down to those of as many "
            "neighbours, so that hubs look like nothing new; 0: no sums are"
        ),
    ] = 0.0
    edge_weights: Annotated[
        bool, about("use sums of edge weights as an input (maxcut: in place of the signs of edges)")
    ] = False


class AgentCase(Table, frozen=True):
    """How a policy learns."""

    learner: Annotated[
        str,
        about(
            "dqn: deep Q-learning; ppo: proximal policy optimisation; reinforce: policy gradient of whole "
            "episodes, several rollouts of a graph as each other's baseline"
        ),
    ] = "dqn"
    learning_rate: Annotated[AboveZero, about("step size of Adam")] = 1e-3
    learning_rate_end: Annotated[
        Amount, about("step size at the end of train.steps, in a straight line; 0: as at the beginning")
    ] = 0.0
    average: Annotated[
        BelowOne,
        about(
            "decay, at each gradient step, of a moving average of the weights, which is what is evaluated "
            "and kept; 0: the weights themselves"
        ),
    ] = 0.0
    discount: Annotated[Share, about("weight of the next step's value")] = 0.5
    n_step: Annotated[int, Meta(ge=1, le=100), about("dqn: environment steps summed in a target")] = 1
    batch: Annotated[Positive, about("dqn, ppo: transitions per gradient step")] = 16
    gradient_steps: Annotated[
        int, Meta(ge=0, le=64), about("dqn: gradient steps per train_every environment steps")
    ] = 1
    train_every: Annotated[
        Positive, about("dqn: environment steps, of all episodes of a replica, between gradient steps")
    ] = 1
    replay: Annotated[
        Literal["episodes", "bits"], about("dqn: what is kept: the actions, or every state's node bits")
    ] = "episodes"
    replay_capacity: Annotated[Positive, about("dqn: transitions kept")] = 50_000
    warmup: Annotated[Count, about("dqn: transitions before the first gradient step")] = 64
    double: Annotated[
        bool, about("dqn: double Q-learning: choose with one network, value with the other")
    ] = False
    target_every: Annotated[Positive, about("dqn: gradient steps between copies to the target network")] = 200
    epsilon_start: Annotated[Share, about("dqn: exploration rate at the first step")] = 0.9
    epsilon_end: Annotated[Share, about("dqn: exploration rate after the decay")] = 0.1
    epsilon_decay_steps: Annotated[Positive, about("dqn: environment steps of the linear decay")] = 10_000
    shaping: Annotated[
        Literal["caro_wei", "none"], about("caro_wei: add the change of the problem's estimate of the rest")
    ] = "caro_wei"
    reward_scale: Annotated[
        Literal["one", "nodes"], about("nodes: divide rewards by the number of nodes")
    ] = "one"
    loss: Annotated[Literal["squared", "huber"], about("dqn: of the TD error")] = "squared"
    rollout_steps: Annotated[Positive, about("ppo: environment steps, of all replicas, to learn from")] = 256
    epochs_per_batch: Annotated[int, Meta(ge=1, le=64), about("ppo: passes over them")] = 4
    clip: Annotated[
        float, Meta(gt=0.0, lt=1.0), about("ppo: how far a probability's ratio may move, from one")
    ] = 0.2
    gae_lambda: Annotated[Share, about("ppo: weight of later errors of the value in an advantage")] = 0.95
    value_weight: Annotated[Amount, about("ppo: of the value's squared error in the loss")] = 0.5
    entropy: Annotated[
        Amount, about("ppo, reinforce: weight of the policy's entropy, in the rewards' unit")
    ] = 0.01
    rollouts: Annotated[int, Meta(ge=2, le=4096), about("reinforce: episodes played on a graph")] = 8
    rollout_graphs: Annotated[Positive, about("reinforce: graphs of one gradient step, for each replica")] = 1
    adam_beta1: Annotated[BelowOne, about("decay of Adam's mean")] = 0.9
    adam_beta2: Annotated[BelowOne, about("decay of Adam's mean square")] = 0.999
    adam_epsilon: Annotated[float, Meta(ge=1e-30), about("added to Adam's denominator")] = 1e-8


class TrainCase(Table, frozen=True):
    """The training run."""

    steps: Annotated[Positive, about("environment steps of each replica")] = 10_000
    environments: Annotated[Positive, about("episodes advanced together, of each replica")] = 1
    evaluate_every: Annotated[Positive, about("environment steps between evaluations")] = 500
    evaluate_graphs: Annotated[
        Positive,
        about(
            "graphs held back for evaluation, where there is no [train.held_back]; of files a fifth at most"
        ),
    ] = 20
    environment: Annotated[
        Literal["degree", "scan"], about("scan: the paper's edge scan (section 4.4), for comparison only")
    ] = "degree"
    graphs: Annotated[GraphCase | None, about("training graphs; absent: those of [graph]")] = None
    held_back: Annotated[
        GraphCase | None, about("graphs to judge weights by; absent: evaluate_graphs like those to train on")
    ] = None


class SelectCase(Table, frozen=True):
    """How many nodes one evaluation of the policy decides."""

    rule: Annotated[
        str,
        about(
            "single: the best node; other rules take several at once; for maxcut, whose episodes are so many "
            "transitions long, that saves no evaluations"
        ),
    ] = "single"
    fraction: Annotated[
        float, Meta(gt=0.0, le=1.0), about("largest share of the nodes taken at once, for rules that use it")
    ] = 0.02


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
            "heuristics come on top (search.baselines)"
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
            "4,096 nodes, else, and under a time limit, as many as its share of the work asks for"
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
        bool, about("the policy alone: drop chosen nodes that the solution does not need")
    ] = True
    baselines: Annotated[
        bool,
        about(
            "also run the classical heuristics, for comparison; under a limit of seconds they come after it: "
            "none begins once they have had as long again (at least 1 s), the last is finished; false: none"
        ),
    ] = True
    bounds: Annotated[bool, about("prove how far from optimal the answer can be")] = True


class GnnCase(Table, frozen=True):
    """Full-batch node classification: the model and its training."""

    model: Annotated[str, about("layer kind: gcn, gin, gin_norm, commnet, sage, gat")] = "gcn"
    depth: Annotated[int, Meta(ge=1, le=1024), about("layers")] = 2
    hidden: Annotated[Positive, about("columns between layers")] = 16
    layers: Annotated[
        list[str],
        about(
            'the layers one by one, in place of model, depth and hidden: "KIND WIDTH [residual] [layer_norm] '
            '[linear] [heads=H]", the last one without a width'
        ),
    ] = field(default_factory=list)
    residual: Annotated[bool, about("add the input of every layer but the last to its output")] = False
    layer_norm: Annotated[bool, about("normalise rows before the activation")] = False
    heads: Annotated[Positive, about("gat: attention heads")] = 1
    bias: Annotated[bool, about("layers add one number to each column")] = True
    normalisation: Annotated[
        Literal["symmetric", "in_degree"], about("gcn: of the adjacency matrix, with own loops or without")
    ] = "symmetric"
    own_loops: Annotated[
        bool, about("gcn: a node hears itself like a neighbour; false: neighbours alone, MG-GCN's eq. 2")
    ] = True
    edge_weights: Annotated[bool, about("weigh neighbours by the graph's edge weights")] = False
    first_product: Annotated[
        Literal["auto", "cached", "live", "mg_gcn"],
        about(
            "of a first layer with dense features; cached: A X once, exact, and only without input_dropout; "
            "live: in every epoch; "
            "mg_gcn: of gcn with MG-GCN's shortcut (its section 4.4), which is not the exact gradient"
        ),
    ] = "auto"
    feature_rows: Annotated[
        Literal["as_given", "sum_to_one"],
        about("sum_to_one: divide the features of a node by the sum of their magnitudes"),
    ] = "sum_to_one"
    dropout: Annotated[BelowOne, about("share of a layer's output that training drops")] = 0.5
    input_dropout: Annotated[BelowOne, about("share of the features that training drops")] = 0.5
    epochs: Annotated[Count, about("passes over all training nodes; 0: only apply gnn.weights")] = 200
    optimiser: Annotated[Literal["adam", "sgd"], about("how weights follow gradients")] = "adam"
    learning_rate: Annotated[AboveZero, about("step size")] = 0.01
    weight_decay: Annotated[Amount, about("times a weight is added to its gradient")] = 5e-4
    decayed: Annotated[
        Literal["first", "all"], about("weights that decay: of the first layer, or all; never biases")
    ] = "first"
    evaluate_every: Annotated[Positive, about("epochs between evaluations")] = 1
    patience: Annotated[
        Count, about("evaluations without a better validation score before training stops; 0: never")
    ] = 0
    keep: Annotated[
        Literal["last", "best"],
        about(
            "weights of the last epoch, or of the best validation score (without validation nodes: the least "
            "training loss, which patience goes by too)"
        ),
    ] = "last"
    weights: Annotated[str, about('a weights.npz to begin with; with epochs = 0 it is applied; "": none')] = (
        ""
    )


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
        Count, about("ranks that share a graph; 0: ranks / as many groups as divide ranks and data")
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


class RgcnCase(Table, frozen=True):
    """Relational graph convolution (R-GCN) on triples: the model, its partition and its training."""

    hidden: Annotated[Positive, about("columns between layers")] = 16
    layers: Annotated[
        int, Meta(ge=1, le=64), about("relational layers; the first reads graph.features, or one-hot inputs")
    ] = 2
    bases: Annotated[Count, about("bases of a layer's relation weights; 0: no decomposition")] = 40
    inverse: Annotated[bool, about("add an inverse relation for each relation")] = True
    min_edges: Annotated[Count, about("leave out relations with fewer triples")] = 0
    prune: Annotated[
        bool, about("leave out nodes that no labelled node reaches in as many hops as layers")
    ] = True
    weights: Annotated[str, about('a weights.npz to begin with; with epochs = 0 it is applied; "": none')] = (
        ""
    )
    train_labels: Annotated[
        str, about('table of training nodes and labels; "": trainingSet.tsv beside an N-Triples file')
    ] = ""
    test_labels: Annotated[
        str, about('table of test nodes and labels; "": testSet.tsv beside an N-Triples file')
    ] = ""
    relations: Annotated[Positive, about("of a generated graph")] = 100
    classes: Annotated[int, Meta(ge=2), about("of a generated graph")] = 10
    labelled: Annotated[
        Positive, about("nodes of a generated graph that have a class, half of them to train")
    ] = 1000
    partition: Annotated[
        Literal["relations", "rows", "both"],
        about("what ranks share out; both: a grid of row parts and relation groups"),
    ] = "relations"
    groups: Annotated[
        Count, about("both: relation groups, which divide the ranks; 0: as square as it gets")
    ] = 0
    grouping: Annotated[
        Literal["relations", "edges"],
        about("relations: equally many a part, dealt by turns; edges: equally many edges a part"),
    ] = "relations"
    parts: Annotated[
        Count, about("parts of a rank's relations, one after the other; 0: as few as fit memory.fast_mb")
    ] = 0
    goal: Annotated[
        Literal["classes", "links"], about("classes: of nodes; links: which triples are likely (DistMult)")
    ] = "classes"
    dimension: Annotated[Positive, about("links: numbers per node that triples are scored by")] = 16
    negatives: Annotated[Positive, about("links: wrong triples for each right one")] = 4
    held_out: Annotated[
        float,
        Meta(gt=0.0, lt=1.0),
        about("links: share of the triples that are ranked at the end, not learned"),
    ] = 0.1
    validation: Annotated[
        BelowOne, about("links: share that is ranked at evaluations, of which the best one counts; 0: none")
    ] = 0.05
    val_triples: Annotated[
        str, about('links: file of the triples that are ranked at evaluations; "": the share validation')
    ] = ""
    test_triples: Annotated[
        str, about('links: file of the triples that are ranked at the end; "": the share held_out')
    ] = ""
    epochs: Annotated[Count, about("passes over all training nodes or triples")] = 50
    optimiser: Annotated[Literal["adam", "sgd"], about("how weights follow gradients")] = "adam"
    learning_rate: Annotated[AboveZero, about("step size")] = 0.01
    weight_decay: Annotated[Amount, about("times a weight of the first layer is added to its gradient")] = 0.0
    evaluate_every: Annotated[Positive, about("epochs between evaluations")] = 1


class MemoryCase(Table, frozen=True):
    """Limits; no key here but whole_graph_mb changes a result."""

    whole_graph_mb: Annotated[
        Amount,
        about(
            "largest graph brought to one rank, MB; a larger one is left to the policy alone, without "
            "reductions, search, bounds and baselines; also the memory of tools that work on a whole graph"
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
    plots: Annotated[bool, about("draw the plots, where matplotlib is installed")] = True
    embeddings: Annotated[bool, about("classify: write what the last layer but one says of each node")] = (
        False
    )
    log_seconds: Annotated[Amount, about("time between progress lines, s")] = 2.0


class StudyCase(Table, frozen=True):
    """The grid of a study."""

    kind: Annotated[
        Literal[
            "quality",
            "scaling",
            "answers",
            "partition",
            "models",
            "depth",
            "breakdown",
            "permutation",
            "overlap",
            "density",
            "sampling",
            "inference",
            "gnn_scaling",
            "rgcn",
            "selection",
            "strong_scaling",
            "learners",
            "progress",
            "memory",
            "throughput",
        ],
        about(
            "quality: approximation ratio by graph size; scaling: the performance model, checked; "
            "answers: solves of a catalogue of graphs with known best values; "
            "partition: imbalance of equal rows, equal edges and the learned partitioner on [graph]; "
            "of node classification by [gnn]: models: accuracy of layer kinds; depth: of depths and widths; "
            "breakdown: time by operation; permutation: natural against random order; overlap: staged "
            "broadcasts ahead of the products or not; density: two ranks against one by mean degree; "
            "sampling: time to accuracy of minibatches; inference: latency on unseen graphs; "
            "memory: bytes moved and time of an epoch under limits of fast memory, by every memory.method; "
            "throughput: epochs a second with equal rows, equal edges and the learned partitioner; "
            "gnn_scaling: the model of full-batch training, checked on [graph], and study.networks on "
            "paper; rgcn: time of [rgcn] against the number of parts of its relations; "
            "selection: several nodes by one evaluation; strong_scaling: scaling beside the paper's; "
            "learners: each with each model on each problem; progress: ratio over training time of "
            "study.variants"
        ),
    ] = "quality"
    datasets: Annotated[
        list[str],
        about(
            "of node classification: files of graph, features, labels and splits, relative to "
            "$LOCKSTEP_DATA where set, each with its own settings behind it: "
            '"FILE seeds=3 hidden=64", keys of [gnn] and how many of study.seeds; []: [graph]'
        ),
    ] = field(default_factory=list)
    models: Annotated[
        list[str], Meta(min_length=1), about('models: layer kinds, such as "gcn" or "gcn residual=true"')
    ] = field(default_factory=lambda: ["gcn", "gcn residual=true", "gin", "sage", "commnet", "gat"])
    depths: Annotated[
        list[Annotated[int, Meta(ge=1, le=1024)]], Meta(min_length=1), about("depth: numbers of layers")
    ] = field(default_factory=lambda: [1, 2, 4, 8])
    fanouts: Annotated[
        list[Positive],
        Meta(max_length=16),
        about(
            "sampling: neighbours that GraphSAGE draws for each node, layer by layer from the features on; "
            "[]: without GraphSAGE"
        ),
    ] = field(default_factory=lambda: [10, 25])
    layer_samples: Annotated[
        list[Count],
        Meta(max_length=16),
        about(
            "sampling: nodes that FastGCN draws for each layer, from the features on; 0 in the first place: "
            "none, the graph's product with the features is made once; []: without FastGCN"
        ),
    ] = field(default_factory=lambda: [0, 400])
    layer_epochs: Annotated[
        Positive, about("sampling: epochs of FastGCN, which are much shorter; study.epochs: of GraphSAGE")
    ] = 60
    held_back: Annotated[Positive, about("inference: graphs of graph.count that are not trained on")] = 2
    limits: Annotated[
        list[Share],
        Meta(min_length=1),
        about(
            "memory: limits of a rank's fast memory, as shares of what an epoch has alive at once on the "
            "largest rank; the least limit that works stands for lower ones"
        ),
    ] = field(default_factory=lambda: [0.0, 0.6, 0.7, 0.8, 0.9])
    scales: Annotated[
        list[AboveZero], Meta(min_length=1), about("density: factors of the mean degree (graph.degree_scale)")
    ] = field(default_factory=lambda: [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    families: Annotated[
        list[Literal["er", "ba"]], Meta(min_length=1), about("graph families, as graph.generator names them")
    ] = field(default_factory=lambda: ["ba", "er"])
    seeds: Annotated[
        list[Count], Meta(min_length=1), about("one training per seed; selection: one graph")
    ] = field(default_factory=lambda: [1, 2, 3])
    recipes: Annotated[
        list[str],
        Meta(min_length=1),
        about(
            "settings compared: default, paper; the paper's with a target network, paper_target, and beside "
            "it with shaped rewards, paper_shaping, or the default policy, paper_features; the paper's "
            "policy with the default agent, paper_policy"
        ),
    ] = field(default_factory=lambda: ["default", "paper"])
    steps: Annotated[Positive, about("environment steps of each training")] = 10_000
    sizes: Annotated[list[Positive], Meta(min_length=1), about("nodes of the test graphs")] = field(
        default_factory=lambda: [50, 100, 150, 200, 250]
    )
    graphs_per_size: Annotated[Positive, about("test graphs of each size")] = 20
    data: Annotated[
        str, about('folder with ba.npz, er.npz; "": $LOCKSTEP_DATA/covers where set, else generated')
    ] = ""
    catalogue: Annotated[
        str, about('answers: a TOML file of [[file]] tables; "": $LOCKSTEP_DATA/catalogue.toml')
    ] = ""
    sets: Annotated[
        list[str], Meta(min_length=1), about("answers: folders of the catalogue: mvc, large, maxcut, tsp")
    ] = field(default_factory=lambda: ["mvc", "maxcut", "tsp"])
    measured: Annotated[
        list[str],
        Meta(min_length=1),
        about(
            "scaling, selection: graphs to measure, such as er:1920:0.065 (nodes, p) and ba:14400:4 "
            "(nodes, d); strong_scaling: also files, relative to $LOCKSTEP_DATA"
        ),
    ] = field(default_factory=lambda: ["er:1920:0.065", "er:2000:0.15", "ba:14400:4"])
    extrapolated: Annotated[
        list[str], about("scaling: further graphs, by counts alone; the files of [graph] are followed too")
    ] = field(default_factory=lambda: ["er:19200:0.15", "er:24000:0.15"])
    batches: Annotated[
        list[Positive],
        Meta(min_length=1),
        about("scaling: transitions of a training step; sampling: nodes of a minibatch"),
    ] = field(default_factory=lambda: [8, 96])
    ranks: Annotated[list[Positive], Meta(min_length=1), about("scaling: numbers of ranks predicted")] = (
        field(default_factory=lambda: [1, 2, 4, 6, 12, 24, 48, 96, 192, 384])
    )
    networks: Annotated[
        list[str],
        about(
            "gnn_scaling: data sets of which only counts are known, and the model trained on each: "
            "NAME NODES ENTRIES FEATURES CLASSES DEPTH HIDDEN; []: those of MG-GCN's Table 3"
        ),
    ] = field(default_factory=list)
    rounds: Annotated[
        Positive,
        about(
            "scaling: timings of each step, one rank and all ranks by turns; partition: passes of an epoch, "
            "of which the least seconds count; breakdown to throughput: of what is compared, by turns"
        ),
    ] = 15
    epochs: Annotated[
        Positive,
        about(
            "partition, rgcn: epochs of each partitioner; throughput: before the timed ones; "
            "sampling: of GraphSAGE"
        ),
    ] = 10
    horizon: Annotated[
        Positive,
        about(
            "partition: epochs of the training that begins with those shown; rows move where what they gain "
            "until its end exceeds what the move costs"
        ),
    ] = 200
    parts: Annotated[
        list[Positive],
        Meta(min_length=1),
        about("rgcn: parts of the relations, multiplexed and on as many ranks"),
    ] = field(default_factory=lambda: [1, 2, 3, 4])
    widths: Annotated[
        list[Annotated[int, Meta(ge=1, le=4096)]],
        Meta(min_length=1, max_length=1024),
        about(
            "partition: columns that the sparse product of each layer reads; depth: columns between layers; "
            "permutation, overlap: columns of the product"
        ),
    ] = field(default_factory=lambda: [64, 16])
    clock: Annotated[
        Literal["cpu", "simulated"],
        about("partition: cpu: seconds of the processor; simulated: a formula, whose best cuts are known"),
    ] = "cpu"
    blocks: Annotated[
        Literal["rows", "edges"],
        about(
            "partition: cuts fall between blocks of equally many rows, or of equal shares of rows and edges"
        ),
    ] = "rows"
    memory_graph: Annotated[str, about('scaling: graph whose peak memory is measured; "": none')] = (
        "er:12000:0.15"
    )
    calibration: Annotated[
        str,
        about('a calibration.json, relative to the working directory; "": measured (dry run: built-in)'),
    ] = ""
    rules: Annotated[
        list[str],
        Meta(min_length=1),
        about('selection: rules of [select] beside "single", each with its fraction: "fraction 0.01"'),
    ] = field(default_factory=lambda: ["adaptive", "fraction 0.01", "fraction 0.05", "fraction 0.2"])
    learners: Annotated[list[str], Meta(min_length=1), about("learners: names of agent.learner")] = field(
        default_factory=lambda: ["dqn", "ppo", "reinforce"]
    )
    embeddings: Annotated[list[str], Meta(min_length=1), about("learners: names of policy.model")] = field(
        default_factory=lambda: ["structure2vec", "gcn", "gin", "sage", "commnet"]
    )
    problems: Annotated[list[str], Meta(min_length=1), about("learners: names of problem.name")] = field(
        default_factory=lambda: ["mvc", "mis", "mds", "maxcut", "tsp"]
    )
    settings: Annotated[
        list[str],
        about(
            'learners: settings of some cells, "WORDS table.key=value ...", where all the words are names of '
            "the cell's learner, model and problem"
        ),
    ] = field(default_factory=list)
    variants: Annotated[
        list[str],
        Meta(min_length=1),
        about('progress: trainings compared, "NAME table.key=value ..."; NAME alone: the case as it is'),
    ] = field(default_factory=lambda: ["default"])
    targets: Annotated[
        list[AboveZero],
        Meta(min_length=1),
        about("progress: approximation ratios to reach, one for each of study.families"),
    ] = field(default_factory=lambda: [1.02, 1.03])
    alone: Annotated[
        bool, about("progress: of a variant: rank 0 trains it by itself while the others sleep")
    ] = False
    counted: Annotated[
        list[Positive],
        about("progress: numbers of ranks to which times are carried by the performance model and by counts"),
    ] = field(default_factory=list)
    stop: Annotated[bool, about("progress: end a training where the targets are reached")] = False
    beside: Annotated[Literal["", "fig_4", "table_3"], about("progress: RL4GO's numbers to print beside")] = (
        ""
    )
    latency_us: Annotated[Amount, about("scaling: of a message between ranks, us; 0: as calibrated")] = 0.0
    bandwidth_gbs: Annotated[Amount, about("scaling: into a rank, GB/s; 0: as calibrated")] = 0.0


class Case(Table, frozen=True):
    """The whole input, the same on all ranks."""

    seed: Annotated[Count, about("every random draw follows from it")] = 0
    run: RunCase = RunCase()
    graph: GraphCase = GraphCase()
    problem: ProblemCase = ProblemCase()
    policy: PolicyCase = PolicyCase()
    agent: AgentCase = AgentCase()
    train: TrainCase = TrainCase()
    select: SelectCase = SelectCase()
    search: SearchCase = SearchCase()
    gnn: GnnCase = field(default_factory=GnnCase)
    rgcn: RgcnCase = RgcnCase()
    parallel: ParallelCase = ParallelCase()
    memory: MemoryCase = MemoryCase()
    checkpoint: CheckpointCase = CheckpointCase()
    output: OutputCase = OutputCase()
    study: StudyCase = field(default_factory=StudyCase)


# --------------------------------------------------------------------------------
# The keys, and what their types ask for

Keys = tuple[str, ...]  # ("train", "steps")
TRAIN_TABLES = {
    ("train", "graphs"): "The training graphs, with the keys of [graph]; absent: [graph].",
    ("train", "held_back"): "The graphs to judge weights by, with the keys of [graph]; absent: more of the "
    "generated training graphs, or the last ones of their files.",
}
GRAPH_TABLES: tuple[Keys, ...] = (("graph",), *TRAIN_TABLES)


def graph_tables(case: Case) -> list[GraphCase | None]:
    """A case's tables of graphs, in the order of GRAPH_TABLES; None: absent."""
    return [case.graph, case.train.graphs, case.train.held_back]


GRAPH_FILES = (
    "features",
    "labels",
    "splits",
    "degrees_of",
    "node_weights",
)  # keys of such a table that name a file
GRAPH_FOLDERS = ("ogb", "ppi")  # formats whose graph.path is a folder
# Tables of labels that go with a text file of triples where no key names others, in its folder.
LABEL_TABLES = {"train_labels": "trainingSet.tsv", "test_labels": "testSet.tsv"}
GRAPH_BESIDE = {  # formats whose files go together: how the name of the first ends, and those of the others
    "ppi": ("_graph.json", ("_feats.npy", "_labels.npy")),
    "graphsage": ("-G.json", ("-feats.npy", "-id_map.json", "-class_map.json")),
}


def all_tables() -> list[Keys]:
    """The tables a case may have, in their order."""
    tops = [(each.name,) for each in structs.fields(Case) if table_of(each.type)]
    return [keys for top in tops for keys in (top, *(each for each in GRAPH_TABLES if each[:-1] == top))]


def all_keys() -> list[tuple[Keys, structs.FieldInfo, type[Table]]]:
    """Every key that has a value, with its field and its table."""
    found = [(("seed",), structs.fields(Case)[0], Case)]
    for keys in all_tables():
        table: Any = Case
        for key in keys:
            table = table_of(next(each.type for each in structs.fields(table) if each.name == key))
        found += [
            ((*keys, each.name), each, table) for each in structs.fields(table) if not table_of(each.type)
        ]
    return found


def type_of(keys: Keys) -> kinds.Type | None:
    """The type of a key's value; None for a table and for an unknown key."""
    return next((kinds.type_info(each.type) for known, each, _ in all_keys() if known == keys), None)


@cache
def table_of(kind: object) -> type[Table] | None:
    """The struct behind a key that is a table."""
    info = bare_type(kinds.type_info(kind))
    options = info.types if isinstance(info, kinds.UnionType) else (info,)
    return next((each.cls for each in options if isinstance(each, kinds.StructType)), None)


def bare_type(info: kinds.Type) -> kinds.Type:
    """The type under its description."""
    while isinstance(info, kinds.Metadata):
        info = info.type
    return info


def takes_text(info: kinds.Type) -> bool:
    """Whether a value of this type may be text."""
    match bare_type(info):
        case kinds.StrType():
            return True
        case kinds.LiteralType(values):
            return all(isinstance(each, str) for each in values)
        case kinds.UnionType(types):
            return any(takes_text(each) for each in types)
    return False


def expected(info: kinds.Type) -> str:
    """What a value of this type is, in words."""
    match bare_type(info):
        case kinds.BoolType():
            return "true or false"
        case kinds.IntType() as number:
            return ", ".join(filter(None, ("a whole number", limits(number))))
        case kinds.FloatType() as number:
            return ", ".join(filter(None, ("a number", limits(number))))
        case kinds.StrType():
            return "text in quotes"
        case kinds.LiteralType(values):
            return ("one of " if len(values) > 1 else "") + ", ".join(
                toml_value(each) for each in sorted(values)
            )
        case kinds.ListType() as many:
            return f"a list{' of at least one' if many.min_length else ''}, each {expected(many.item_type)}"
        case kinds.TupleType(item_types):
            return f"a list of {len(item_types)} whole numbers"
        case kinds.UnionType(types):
            return " or ".join(expected(each) for each in types)
    raise TypeError(f"no words for {info}")


def limits(info: kinds.IntType | kinds.FloatType) -> str:
    """The range of a number, in words; "" without one."""
    if info.ge is not None and info.le is not None:
        return f"from {_plain(info.ge)} to {_plain(info.le)}"
    words = {"at least": info.ge, "above": info.gt, "at most": info.le, "below": info.lt}
    return " and ".join(f"{word} {_plain(limit)}" for word, limit in words.items() if limit is not None)


def _plain(limit: float) -> str:
    """Whole numbers with all their digits."""
    return str(int(limit)) if float(limit).is_integer() and abs(limit) < 1e15 else f"{limit:g}"
