"""CommNet (Sukhbaatar, Szlam and Fergus 2016) on graphs, one of the models of ROC."""

from app.gnn.layers.own_mean import OwnAndMean


class CommNet(OwnAndMean):
    """Z = H W_H + C W_C, C the mean over the other nodes that a node hears.

    Source    Sukhbaatar et al. 2016: h' = f(h, c) with f linear and an activation, c the mean of the h of all
              other agents (eqs. 1-2), or of those in range where communication is local; here: the neighbours
    Forward, shapes, backward, ranks: OwnAndMean
    Differs   From GraphSAGE-mean by name only: both are the same function of H. The paper's encoder is the
              first layer, and its optional connections from the encoder's output to every step are not made;
              `residual` joins each layer with the one before.
    """

    own, mean = "W_H", "W_C"
