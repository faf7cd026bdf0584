"""The tables of graph networks on nodes with features, and on knowledge graphs."""

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


class LinksCase(Table, frozen=True):
    """Prediction of links (gnn.level = "link"): what is held out, how pairs are scored."""

    dimension: Annotated[
        Positive, about("columns of the last layer: the score of two nodes is the product of their rows")
    ] = 32
    loss: Annotated[
        Literal["logistic", "bpr"],
        about(
            "what is learned; logistic: which pairs are joined; bpr: Bayesian personalised ranking, that a "
            "node's edges score higher than its pairs without one (with between = sides: a node's of the "
            "first side): scores are then no likelihoods"
        ),
    ] = "logistic"
    negatives: Annotated[
        AboveZero,
        about(
            "pairs without an edge, drawn anew in each epoch, for each edge that is learned from; bpr: a "
            "whole number of such pairs of each node, with all of which each of its edges is compared"
        ),
    ] = 1.0
    held_out: Annotated[
        BelowOne, about("share of the edges that is not learned from, to tell at the end how good scores are")
    ] = 0.1
    validation: Annotated[
        BelowOne, about("share of the edges that is not learned from, to choose weights by at evaluations")
    ] = 0.05
    val_edges: Annotated[
        str, about('file of edges, of any format of graphs, in place of the share validation; "": the share')
    ] = ""
    test_edges: Annotated[str, about('file of edges in place of the share held_out; "": the share')] = ""
    pairs: Annotated[
        str, about('file of pairs of nodes, as of edges, that predictions tell of; "": the edges held out')
    ] = ""
    between: Annotated[
        Literal["any", "sides"],
        about(
            "which nodes are joined; sides: a node of the first side with one of the second, as users with "
            "items: pairs are drawn, ranked and proposed only between them"
        ),
    ] = "any"
    sides: Annotated[
        str,
        about(
            'between = sides: file of lines "id 0" (first side) and "id 1"; "": found by colouring a '
            "connected graph, the first node's side the first"
        ),
    ] = ""
    propose: Annotated[
        Count, about("pairs without an edge that are written, the likeliest of all; work grows with nodes^2")
    ] = 0
    propose_each: Annotated[
        Count,
        about("best partners without an edge that are written for each node; work grows with nodes^2"),
    ] = 0
    propose_for: Annotated[
        str,
        about(
            'file of ids of the nodes that propose_each is of; "": all, with between = sides those of the '
            "first side"
        ),
    ] = ""
    rank_each: Annotated[
        Count,
        about(
            "K of recall, precision and NDCG: of each node with held-out edges the best K of all nodes that "
            "it has no learned edge with; work grows with such nodes x nodes; 0: not told"
        ),
    ] = 0


class RgcnCase(Table, frozen=True):
    """Relational graph convolution (R-GCN) on triples: the model, its partition and its training."""

    hidden: Annotated[Positive, about("columns between layers")] = 16
    layers: Annotated[
        int,
        Meta(ge=0, le=64),
        about(
            "relational layers; the first reads graph.features, or one-hot inputs; links: 0: rows of nodes "
            "are learned as they are, without a graph"
        ),
    ] = 2
    bases: Annotated[Count, about("bases of a layer's relation weights; 0: no decomposition")] = 40
    blocks: Annotated[
        Count,
        about(
            "blocks on the diagonal of a layer's relation weights, zeros elsewhere, in place of bases; they "
            "divide the columns of a first layer with one-hot inputs; 0: none"
        ),
    ] = 0
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
    val_labels: Annotated[
        str, about('table of nodes and labels that keep and patience go by, beside the other two; "": none')
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
        Literal["classes", "links"], about("classes: of nodes; links: which triples are likely")
    ] = "classes"
    scorer: Annotated[
        Literal["complex", "distmult", "rotate", "transe"],
        about(
            "links: what triples are scored by; complex (ComplEx): products of complex numbers, so that the "
            "directions of a relation may differ, and dimension is even; distmult: the same in both; rotate "
            "(RotatE), transe (TransE): minus the squared distance of an object from its subject that the "
            "relation turns, with an even dimension, or moves by a step"
        ),
    ] = "complex"
    loops: Annotated[
        bool,
        about(
            "links: learn for each relation a number that is added to the score of a node with itself, so "
            "that the known end is no answer where no relation leads back to it"
        ),
    ] = False
    dimension: Annotated[Positive, about("links: numbers per node that triples are scored by")] = 16
    loss: Annotated[
        Literal["sigmoid", "softmax"],
        about(
            "links: what triples are learned by; sigmoid: right ones beside drawn wrong ones; softmax: each "
            "end among all nodes, which is work that grows with triples x nodes, or among candidates"
        ),
    ] = "sigmoid"
    negatives: Annotated[Positive, about("links: wrong triples for each right one, with loss = sigmoid")] = 4
    candidates: Annotated[
        Count,
        about(
            "links, loss = softmax: nodes drawn in each epoch that stand for all wrong answers; 0, or as "
            "many as there are nodes: all"
        ),
    ] = 0
    ask_relations: Annotated[
        float,
        Meta(ge=0.0, le=1e6),
        about(
            "links: times the mean loss of the relation of each triple, asked by softmax among all "
            "relations, is added to the loss"
        ),
    ] = 0.0
    margin: Annotated[
        float,
        Meta(ge=0.0, le=1e6),
        about("links, loss = sigmoid: the squared distance at which rotate and transe take a triple as open"),
    ] = 6.0
    n3: Annotated[
        float,
        Meta(ge=0.0, le=1e6),
        about("links: times the mean over triples of the cubes of their rows' numbers is added to the loss"),
    ] = 0.0
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
    queries: Annotated[
        str,
        about(
            'links: file of triples with "?" in the place of an end, the best of which go to proposed/; "": '
            "none"
        ),
    ] = ""
    propose_each: Annotated[Positive, about("ends for each of rgcn.queries that are not known")] = 10
    epochs: Annotated[Count, about("passes over all training nodes or triples")] = 50
    optimiser: Annotated[Literal["adam", "sgd"], about("how weights follow gradients")] = "adam"
    learning_rate: Annotated[AboveZero, about("step size")] = 0.01
    schedule: Annotated[
        Literal["constant", "cosine", "linear"],
        about("how the step size falls over the epochs after rgcn.warmup, to about 0 in the last one"),
    ] = "constant"
    warmup: Annotated[Count, about("first epochs, in which the step size rises in equal steps")] = 0
    dropout: Annotated[BelowOne, about("share of what layers give to the next that training drops")] = 0.0
    weight_decay: Annotated[Amount, about("times a weight of the first layer is added to its gradient")] = 0.0
    evaluate_every: Annotated[Positive, about("epochs between evaluations")] = 1
    patience: Annotated[
        Count, about("evaluations without a better validation score before training stops; 0: never")
    ] = 0
    keep: Annotated[
        Literal["last", "best"],
        about("classes: weights of the last epoch, or of the best validation score; links: always the best"),
    ] = "last"


def bases_of(case: RgcnCase) -> int:
    """Bases of a layer's relation weights; 0: they are free, or of blocks, or there are none."""
    return 0 if case.blocks or not case.layers else case.bases
