"""A trained forecaster on disk: its tables, its weights, the scale of its series."""

from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import structs

from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.errors import GraphError
from app.gnn.archive import arrays_of, load_archive, members_of, refusing, save_archive
from app.gnn.forecast.covariates import KEYS, NO_COLUMNS, ahead_columns
from app.gnn.forecast.forecaster import MEDIAN, network_of
from app.gnn.forecast.series import SeriesScale
from app.gnn.forecast.windows import input_columns, linear_columns, output_columns

KIND = "forecast"
OF_FORECAST = ("model", "window", "horizon", "hops", "quantiles", "normalise", "base", "period", "calendar")
OF_GNN = ("hidden", "depth", "edge_weights", "members")
BASE, MEAN, DEVIATION = "base.W", "scale.mean", "scale.deviation"
OF_COVARIATES = "covariates.mean", "covariates.deviation"


@dataclass(frozen=True, eq=False)
class SavedForecaster:
    """A forecaster read back, or about to be written.

    forecast, gnn   the keys OF_FORECAST and OF_GNN; others play no part
    channels        of its series     masks   it reads where values are known
    sides           directions of its random walks: 2 of a directed graph
    nodes           digest of the ids of the nodes that `scale` is of; "" of all nodes alike
    scale           [1, C] of all, or [n, C] of each node of the graph that it has learned on
    base            [k, H C] of the regression that it adds its part to; None: the last value
    covariates      columns of a node, and of all, that it reads; their scale [1, columns], None of none
    arrays          weights of the first member by name     others   those of the other ones (gnn.members)
    """

    forecast: ForecastCase
    gnn: GnnCase
    channels: int
    masks: bool
    sides: int
    nodes: str
    scale: SeriesScale
    base: np.ndarray | None
    arrays: dict[str, np.ndarray]
    others: tuple[dict[str, np.ndarray], ...] = ()
    covariates: tuple[int, int] = NO_COLUMNS
    covariate_scale: SeriesScale | None = None

    @property
    def members(self) -> tuple[dict[str, np.ndarray], ...]:
        """Weights of all."""
        return (self.arrays, *self.others)

    def forecast_of(self, given: ForecastCase) -> ForecastCase:
        """The given table with what these weights have."""
        return structs.replace(given, **{key: getattr(self.forecast, key) for key in OF_FORECAST})

    def gnn_of(self, given: GnnCase) -> GnnCase:
        """The same of [gnn]."""
        return structs.replace(given, **{key: getattr(self.gnn, key) for key in OF_GNN})

    def check_fits(
        self, path: str, channels: int, sides: int, covariates: tuple[int, int] = NO_COLUMNS
    ) -> None:
        """Refuse weights for other series or covariates, or graphs of other directions. Raises GraphError."""
        for key, learned, found in zip(KEYS, self.covariates, covariates):
            if learned != found:
                raise GraphError(f"{path}: for {learned} columns of {key}; there are {found}")
        if channels != self.channels:
            raise GraphError(f"{path}: for series of {self.channels} channels; these have {channels}")
        if sides != self.sides and self.forecast.hops:
            learned, here = (
                ("a directed", "an undirected") if self.sides == 2 else ("an undirected", "a directed")
            )
            raise GraphError(f"{path}: for {learned} graph, this is {here} one; graph.neighbours says which")

    @property
    def all_arrays(self) -> dict[str, np.ndarray]:
        """What is written."""
        more = {MEAN: self.scale.mean, DEVIATION: self.scale.deviation}
        if (known := self.covariate_scale) is not None:
            more |= zip(OF_COVARIATES, (known.mean, known.deviation))
        return arrays_of(self.members) | more | ({} if self.base is None else {BASE: self.base})


def save_forecaster(path: str, saved: SavedForecaster, trained: str) -> str:
    """Write weights.npz; returns its digest. Rank 0 only. trained: one line on how they came about"""
    about = {
        "trained": trained, "channels": saved.channels, "masks": saved.masks, "sides": saved.sides,
        "nodes": saved.nodes, "forecast": {key: getattr(saved.forecast, key) for key in OF_FORECAST},
        "gnn": {key: getattr(saved.gnn, key) for key in OF_GNN},
    }  # fmt: skip
    if saved.covariate_scale is not None:
        about["covariates"] = list(saved.covariates)
    return save_archive(path, saved.all_arrays, KIND, about)


def load_forecaster(path: str) -> SavedForecaster:
    """The forecaster of a weights.npz. Raises GraphError, one line, for what is none."""
    arrays, about = load_archive(path, KIND)
    with refusing(path):
        forecast = msgspec.convert(about["forecast"], ForecastCase)
        gnn = msgspec.convert(about["gnn"], GnnCase)
        channels, sides = (msgspec.convert(about[key], int) for key in ("channels", "sides"))
        masks, nodes = msgspec.convert(about["masks"], bool), msgspec.convert(about["nodes"], str)
        scale = SeriesScale(arrays.pop(MEAN), arrays.pop(DEVIATION))
        base = arrays.pop(BASE, None)
        covariates = msgspec.convert(about.get("covariates", NO_COLUMNS), tuple[int, int])
        known = SeriesScale(*map(arrays.pop, OF_COVARIATES)) if "covariates" in about else None
        first, *others = members_of(arrays, gnn.members)
        saved = SavedForecaster(
            forecast, gnn, channels, masks, sides, nodes, scale, base, first, tuple(others), covariates, known
        )
        _check(saved)
    return saved


def _check(saved: SavedForecaster) -> None:
    """Raise ValueError where arrays do not have the shapes that the tables ask for."""
    case = saved.forecast
    outputs = output_columns(case, saved.channels)
    walks = saved.sides * case.hops
    f = input_columns(case, saved.channels, walks, saved.masks, saved.covariates)
    ahead = ahead_columns(case.horizon, walks, saved.covariates)
    shapes = network_of(case, saved.gnn, f, outputs, walks, ahead).shapes()
    scale = saved.scale
    wrong = any({name: array.shape for name, array in each.items()} != shapes for each in saved.members)
    wrong |= scale.mean.shape != scale.deviation.shape or scale.mean.shape[1:] != (saved.channels,)
    wrong |= not (scale.deviation > 0).all()
    if saved.base is not None:
        k = linear_columns(case, saved.channels, saved.sides, saved.covariates)
        columns = k, case.horizon * saved.channels
        wrong |= saved.base.shape != columns
    if (known := saved.covariate_scale) is not None:
        wrong |= any(each.shape != (1, sum(saved.covariates)) for each in (known.mean, known.deviation))
        wrong |= min(saved.covariates) < 0 or not (known.deviation > 0).all()
    levels = case.quantiles
    wrong |= bool(levels) and (sorted(set(levels)) != levels or MEDIAN not in levels)
    if wrong or (saved.base is None) != (case.base == "last") or saved.sides not in (1, 2):
        raise ValueError("shapes that do not fit")
