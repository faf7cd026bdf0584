"""The table of networks that learn vectors of nodes without labels."""

from typing import Annotated, Literal

from msgspec import Meta, field

from app.case.table import Amount, BelowOne, Count, Positive, Table, about


class EmbedCase(Table, frozen=True):
    """Vectors of nodes, learned without labels (gnn.level = "embed")."""

    dimension: Annotated[Positive, about("columns of the vectors, which the last layer gives")] = 64
    objective: Annotated[
        Literal["cca", "barlow"],
        about(
            "what two views of the graph are to agree in; cca: each column with the same of the other view, "
            "the columns of a view uncorrelated (CCA-SSG); barlow: both by the correlations between views "
            "(Graph Barlow Twins)"
        ),
    ] = "cca"
    decorrelation: Annotated[
        float,
        Meta(ge=0.0, le=1e6),
        about("how much columns that are alike count, beside views that differ; over dimension"),
    ] = 0.5
    feature_drop: Annotated[
        BelowOne, about("share of the columns of features that a view leaves out, others in each epoch")
    ] = 0.2
    edge_drop: Annotated[
        BelowOne,
        about(
            "share of the edges that a view leaves out, others in each epoch; 0 for layers that read "
            "features of edges"
        ),
    ] = 0.4
    clusters: Annotated[
        Count,
        about("clusters that vectors are put in (k-means); 0: as many as there are classes, none without"),
    ] = 0
    starts: Annotated[
        Positive, about("first centres that are drawn for the clusters, of which the best end counts")
    ] = 10
    probe_epochs: Annotated[
        Count,
        about(
            "epochs of the linear classifier that says, where there are labels and splits, how much the "
            "vectors tell of them; 0: none"
        ),
    ] = 300
    probe_decays: Annotated[
        list[Amount],
        Meta(min_length=1, max_length=16),
        about(
            "its weight decays, for columns of variance 1, one after the other: that of the best validation "
            "score counts, without validation nodes the first"
        ),
    ] = field(default_factory=lambda: [0.03, 0.001, 1.0])


def reads_clusters(case: EmbedCase, classes: int) -> int:
    """How many clusters a case asks for, of nodes of so many known classes; 0: none."""
    return case.clusters or classes
