"""The table of studies."""

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from app.case.table import AboveZero, Amount, Count, Positive, Share, Table, about
from app.errors import CaseError

SETTING = re.compile(r"\s+(\w+)=(\S+)$")


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
            "folds",
            "tune",
        ],
        about(
            "quality: approximation ratio by graph size; scaling: the performance model, checked; "
            "answers: solves of a catalogue of graphs with known best values; "
            "partition: imbalance of equal rows, equal edges and the learned partitioner on [graph]; "
            "of node classification by [gnn]: models: accuracy of layer kinds; depth: of depths and widths; "
            "folds: cross-validation; tune: the settings with the best validation score, both also of edges, "
            "links and forecasts, tune of [rgcn] as well; "
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
    vary: Annotated[
        list[str],
        about(
            'tune: what is tried, "KEY VALUE VALUE ..." of a key of [gnn] (of links also links.dimension, '
            "links.loss and links.negatives, of forecasts forecast.KEY; of knowledge graphs rgcn.KEY alone), "
            'or "KEY A..B", a '
            "range that study.trials are drawn from, evenly on a logarithmic scale (from 0: evenly), whole "
            "where the key's numbers are"
        ),
    ] = field(default_factory=list)
    trials: Annotated[
        int, Meta(ge=0, le=10_000), about("tune: combinations that are drawn; 0: all of them, without ranges")
    ] = 0
    race: Annotated[
        float,
        Meta(ge=1.0, le=1000.0),
        about(
            "tune: after one seed, two, four and so on of study.seeds the best one in so many trials go on; "
            "1: all trials are trained with all seeds"
        ),
    ] = 3.0
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
    folds: Annotated[
        int,
        Meta(ge=2, le=10_000),
        about(
            "folds: parts of the labelled nodes, graphs or edges, each tested once, each class as even as "
            "can be; of links parts of the edges, each held out once; drawn anew for each of study.seeds; "
            "of forecasts origins, in order of time: each forecasts its piece of the test part from what is "
            "before it"
        ),
    ] = 10
    fold_validation: Annotated[
        Literal["next", "none"],
        about(
            "folds: next: the fold after the tested one is for validation; none: all others are trained on, "
            "as Xu et al. 2019 do"
        ),
    ] = "next"
    fold_training: Annotated[
        Literal["expanding", "sliding"],
        about(
            "folds of forecasts: expanding: an origin learns from all steps before its validation; sliding: "
            "from as many as the first origin has"
        ),
    ] = "expanding"
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


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """ "HEAD key=value key=value" as its head and its settings."""
    head, settings = text.rstrip(), {}
    while found := SETTING.search(head):
        if found[1] in settings:
            raise CaseError(f"study: {text}: has {found[1]} twice")
        settings[found[1]] = found[2]
        head = head[: found.start()]
    return head, dict(reversed(settings.items()))
