"""The table of relational graph networks on knowledge graphs."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.table import AboveZero, Amount, BelowOne, Count, Positive, Table, about


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
