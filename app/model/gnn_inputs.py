"""What a network learns from, as sizes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ranked:
    """Rankings of the partners of nodes, of links.

    nodes        that have an edge held out for validation, and of either set     candidates   of each
    count        K     sides   nodes are of two
    """

    validated: float
    nodes: float
    candidates: int
    count: int
    sides: bool


@dataclass(frozen=True)
class Inputs:
    """What is learned from: sizes of the features and labels.

    features   columns        stored   entries of sparse features of all nodes; 0: they are dense
    classes    columns of the last layer
    weighted   edges have weights that count
    train      share of the nodes that are in the loss
    several    a node may have several of the classes
    graphs     rows that labels are of, those of the graphs of a set; 0: of all nodes
    edges      columns of the features of edges, where layers read them; of categories edge_width those that
               they become
    apart      of links: pairs that are not joined for each edge
    ranks      of links.loss = "bpr": such pairs of a node, whose scores travel beside rows; else 0
    learned    where edges have the labels, the share of them that is learned from; else 0
    ranked     of links: rankings that are asked for
    dropped    of vectors: the share of the edges that a view leaves out
    clusters   of vectors: how many these are put in
    probed     of vectors: whether plain rules stand beside a linear classifier of them
    """

    features: int
    classes: int
    stored: int = 0
    weighted: bool = False
    train: float = 1.0
    several: bool = False
    graphs: int = 0
    edges: int = 0
    edge_width: int = 1
    apart: float = 1.0
    ranks: int = 0
    learned: float = 0.0
    ranked: Ranked | None = None
    dropped: float = 0.0
    clusters: int = 0
    probed: bool = False

    @property
    def dense(self) -> bool:
        """Whether the features are rows like all others."""
        return self.stored == 0
