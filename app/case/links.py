"""The table of the prediction of links."""

from typing import Annotated, Literal

from app.case.table import AboveZero, BelowOne, Count, Positive, Table, about


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
