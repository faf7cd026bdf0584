"""The table of graph networks on graphs whose nodes have features."""

from typing import Annotated, Literal

from msgspec import Meta, field

from app.case.table import AboveZero, Amount, BelowOne, Count, Positive, Table, about

# Layers that read features of edges, each with the same that reads none.
EDGE_READERS = {"gine": "gin", "edge_gat": "gat", "edge_gatv2": "gatv2"}


class GnnCase(Table, frozen=True):
    """Full-batch learning of what nodes are: the model and its training."""

    goal: Annotated[
        Literal["classes", "values"],
        about(
            "classes: of nodes; values: labels are numbers, one or several a node (regression), nan where "
            "not known"
        ),
    ] = "classes"
    level: Annotated[
        Literal["node", "edge", "graph", "link", "embed", "forecast"],
        about(
            "what is predicted; node: of each node of a graph; edge: of each edge, after a head that reads "
            "the rows of both ends; graph: of each graph of a set, after a readout; link: "
            "which pairs of nodes are joined, by [links]; embed: vectors of nodes, without labels, by "
            "[embed]; forecast: the next values of series of nodes, by [forecast]"
        ),
    ] = "node"
    readout: Annotated[
        Literal["max", "mean", "sum"],
        about("graph: what is taken of the rows of a graph's nodes; max: column by column the largest"),
    ] = "mean"
    readout_of: Annotated[
        Literal["last", "all"], about("graph: rows of the last layer, or of all layers side by side")
    ] = "last"
    model: Annotated[
        str,
        about(
            "layer kind: gcn, gcn2, gin, gin_norm, gin_batch_norm, gine, commnet, sage, gat, gatv2, "
            "edge_gat, edge_gatv2, pna, appnp, gprgnn, sgc, lightgcn, sgformer, linear_attention, dense"
        ),
    ] = "gcn"
    depth: Annotated[
        int,
        Meta(ge=1, le=1024),
        about(
            "layers; of gcn2, sgformer and linear_attention between a dense one and another dense one; of "
            "appnp, gprgnn and lightgcn all but the last, of sgc all but the first are dense"
        ),
    ] = 2
    hidden: Annotated[
        Positive, about("columns between layers; level = edge: of the head's hidden layer, too")
    ] = 16
    jump: Annotated[
        Literal["", "concat", "max"],
        about(
            "jumping knowledge: the last layer, or the readout, reads what all layers before it give: "
            'concat: side by side; max: the largest by columns, of one width; "": the one before it'
        ),
    ] = ""
    layers: Annotated[
        list[str],
        about(
            'the layers one by one, in place of model, depth and hidden: "KIND WIDTH [residual] [layer_norm] '
            '[batch_norm] [linear] [heads=H]", the last one without a width'
        ),
    ] = field(default_factory=list)
    residual: Annotated[bool, about("add the input of every layer but the last to its output")] = False
    layer_norm: Annotated[bool, about("normalise rows before the activation")] = False
    batch_norm: Annotated[
        bool,
        about(
            "normalise columns before the activation, over all nodes (level = graph: those of the training "
            "graphs); weights are applied by the means and variances of the graph trained on"
        ),
    ] = False
    heads: Annotated[
        Positive, about("gat, gatv2, edge_gat, edge_gatv2, sgformer, linear_attention: attention heads")
    ] = 1
    alpha: Annotated[
        BelowOne,
        about(
            "gcn2: share of the first layer's output in what each layer hears; appnp: of a node's own row "
            "in each product; gprgnn: the same before anything is learned"
        ),
    ] = 0.1
    hops: Annotated[
        int,
        Meta(ge=0, le=1000),
        about(
            "appnp, gprgnn, sgc, lightgcn: products with the adjacency matrix in a layer; 0: 10 of appnp and "
            "gprgnn, 2 of sgc, 3 of lightgcn"
        ),
    ] = 0
    theta: Annotated[
        float,
        Meta(ge=0.0, le=1000.0),
        about("gcn2: how far layers are from the identity; weights of the l-th count log(theta / l + 1)"),
    ] = 0.5
    attention_share: Annotated[
        float,
        Meta(gt=0.0, lt=1.0),
        about(
            "sgformer, linear_attention: share of the attention to all nodes in what a layer gives; the rest "
            "is that of a graph convolution as gcn's"
        ),
    ] = 0.5
    members: Annotated[
        int,
        Meta(ge=1, le=1000),
        about(
            "networks that learn the same from seed, seed + 1, ...; predictions are by their mean "
            "probabilities, or mean numbers, and members/NAME.npz tells how far they differ"
        ),
    ] = 1
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
        Literal["as_given", "one_hot", "standard", "sum_to_one"],
        about(
            "sum_to_one: divide the features of a node by the sum of their magnitudes; standard: of dense "
            "features, each column less its mean over the training nodes, divided by its deviation; one_hot: "
            "of dense whole numbers that are categories, a column for each category met, the first layer's W "
            "then has an embedding of each"
        ),
    ] = "sum_to_one"
    positions: Annotated[
        list[str],
        about(
            "columns that tell where in its graph a node is, beside the features or, without any, in their "
            "place; walks=K: probabilities that a random walk is back after 1 to K steps; laplacian=K: "
            "eigenvectors of the K smallest eigenvalues of each component; degree; core: core numbers; "
            "triangles: their number, and the share of the pairs of neighbours that are joined"
        ),
    ] = field(default_factory=list)
    position_work: Annotated[
        Amount,
        about(
            "thousand million multiplications that walks may take: K x stored entries x nodes of the largest "
            "graph"
        ),
    ] = 100.0
    missing_features: Annotated[
        Literal["mean", "propagate", "refuse"],
        about(
            "entries of dense features that are nan, or of .csv files nothing; mean: that of the column over "
            "nodes that have it; propagate: known entries spread over edges, 40 steps; refuse: none may be "
            "missing"
        ),
    ] = "refuse"
    edge_feature_rows: Annotated[
        Literal["as_given", "one_hot", "standard"],
        about(
            "gine, edge_gat, edge_gatv2: of the features of edges; standard: each column less its mean over "
            "the edges, divided by its deviation; one_hot: of whole numbers that are categories, as "
            "bonds of molecules, a column for each category met"
        ),
    ] = "as_given"
    dropout: Annotated[BelowOne, about("share of a layer's output that training drops")] = 0.5
    input_dropout: Annotated[BelowOne, about("share of the features that training drops")] = 0.5
    epochs: Annotated[Count, about("passes over all training nodes; 0: only apply gnn.weights")] = 200
    class_weights: Annotated[
        Literal["balanced", "equal"],
        about(
            "equal: of training nodes in the loss; balanced: all nodes of a class together weigh as much as "
            "those of any other, and where watch is auto keep and patience go by macro F1"
        ),
    ] = "equal"
    optimiser: Annotated[Literal["adam", "sgd"], about("how weights follow gradients")] = "adam"
    learning_rate: Annotated[AboveZero, about("step size")] = 0.01
    schedule: Annotated[
        Literal["constant", "cosine", "linear"],
        about("how the step size falls over the epochs after gnn.warmup, to about 0 in the last one"),
    ] = "constant"
    warmup: Annotated[Count, about("first epochs, in which the step size rises in equal steps")] = 0
    clip: Annotated[
        Amount, about("largest 2-norm of a gradient, which is scaled down to it; 0: whatever it is")
    ] = 0.0
    weight_decay: Annotated[Amount, about("times a weight is added to its gradient")] = 5e-4
    decayed: Annotated[
        Literal["first", "all"], about("weights that decay: of the first layer, or all; never biases")
    ] = "first"
    inner_decay: Annotated[
        Amount,
        about("weight_decay of the layers between the first and the last in place of it; 0: as decayed says"),
    ] = 0.0
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
    watch: Annotated[
        Literal[
            "auto",
            "accuracy",
            "micro_f1",
            "macro_f1",
            "auc",
            "ap",
            "loss",
            "r2",
            "rmse",
            "mae",
            "recall",
            "precision",
            "ndcg",
        ],
        about(
            "validation score that keep and patience go by; auto: micro F1, macro F1 with class_weights = "
            "balanced, the loss of values; auc, ap: area under the ROC curve and average precision, of two "
            "classes or the mean over labels of several; r2, rmse, mae: of values; recall, precision, ndcg: "
            "of links, by links.rank_each, made at each evaluation"
        ),
    ] = "auto"
    baselines: Annotated[
        bool,
        about(
            "tell beside the scores those of label propagation, which reads no features (level = edge: of "
            "the labels at both ends), and of the largest class"
        ),
    ] = True
    weights: Annotated[str, about('a weights.npz to begin with; with epochs = 0 it is applied; "": none')] = (
        ""
    )
