"""The table of networks that forecast series of nodes."""

from typing import Annotated, Literal

from msgspec import Meta, field

from app.case.table import Amount, Count, Positive, Share, Table, about


class ForecastCase(Table, frozen=True):
    """Forecasts of the series of graph.series (gnn.level = "forecast")."""

    model: Annotated[
        Literal["recurrent", "temporal"],
        about(
            "recurrent: a gated recurrent unit whose gates are diffusion convolutions; temporal: gated "
            "convolutions over the window, then gnn.depth graph convolutions"
        ),
    ] = "recurrent"
    window: Annotated[Positive, about("steps of time that a forecast goes by")] = 12
    horizon: Annotated[Positive, about("steps of time that are forecast, all at once")] = 3
    hops: Annotated[
        int,
        Meta(ge=0, le=16),
        about(
            "random walks over the neighbours, in steps, whose means a convolution reads; of a directed "
            "graph in either direction; 0: a node hears itself alone"
        ),
    ] = 2
    batch: Annotated[Positive, about("windows of a training step")] = 16
    steps: Annotated[
        Count, about("training steps of an epoch; 0: as many as all windows of the training part make")
    ] = 0
    loss: Annotated[
        Literal["absolute", "squared"], about("of errors, in deviations of the series of the training part")
    ] = "absolute"
    quantiles: Annotated[
        list[Annotated[float, Meta(gt=0.0, lt=1.0)]],
        Meta(max_length=99),
        about(
            "shares of what comes that forecasts are to lie above, ascending, 0.5 among them, as [0.1, 0.5, "
            "0.9]: learned by the pinball loss in the place of forecast.loss; []: one forecast of each value"
        ),
    ] = field(default_factory=list)
    normalise: Annotated[
        Literal["node", "channel"],
        about(
            "whose mean and deviation over the training part series are measured in: each node's, or all's"
        ),
    ] = "node"
    base: Annotated[
        Literal["linear", "last"],
        about(
            "what the network adds its part to; linear: a ridge regression on the windows of nodes and of "
            "their neighbours' means; last: the last value"
        ),
    ] = "linear"
    ridge: Annotated[
        Amount, about("of linear regressions: added to the mean square of each column, as a share of it")
    ] = 1e-3
    period: Annotated[
        Count,
        about(
            "steps of time after which series repeat themselves, as 24 of hours: read by the network and by "
            "regressions, and a plain rule of its own; 0: none"
        ),
    ] = 0
    calendar: Annotated[
        list[Annotated[int, Meta(ge=2)]],
        Meta(max_length=16),
        about(
            "further periods, in steps of time, as 168 of hours: their sine and cosine are read by the "
            "network and by regressions"
        ),
    ] = field(default_factory=list)
    train: Annotated[Share, about("share of the steps of time to learn from, the first ones")] = 0.7
    val: Annotated[Share, about("share after these, by which weights are chosen")] = 0.1
    test: Annotated[Share, about("share after these, which tells how good forecasts are")] = 0.2
