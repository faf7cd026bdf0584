"""GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec 2017)."""

from app.gnn.layers.own_mean import OwnAndMean


class Sage(OwnAndMean):
    """Z = H W_self + mean over neighbours (H) W_neigh.

    Source    Hamilton et al. 2017, algorithm 1, lines 4-5 with the mean aggregator over all neighbours: a
              product of the concatenation [h | mean] with one W is the sum of two products
    Forward, shapes, backward, ranks: OwnAndMean
    Differs   Full batch, so no neighbours are sampled; rows are not divided by their length (line 7):
              `layer_norm` is there instead.
    """

    own, mean = "W_self", "W_neigh"
