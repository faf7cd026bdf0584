"""Plain rules that forecasts are compared with."""

from typing import TYPE_CHECKING

import numpy as np

from app.gnn.forecast.windows import Batch

if TYPE_CHECKING:
    from app.gnn.forecast.forecaster import Forecaster

LAST, SEASON, MEAN, OWN, NEIGHBOURS = "last_value", "last_season", "mean", "linear", "linear_neighbours"


def plain_of(of: "Forecaster", batch: Batch) -> list[tuple[str, np.ndarray]]:
    """[n_own * B, H C] on the host, what plain rules forecast."""
    get, last = of.device.get, np.array(of.device.get(batch.last))
    found = [(LAST, last)]
    if of.case.period:
        found.append((SEASON, np.array(get(of.windows.season(batch.ends)))))
    mean = of.scale.small(of.node_mean[:, None])[:, 0]  # [n_own, C]
    rows = np.tile(mean, (1, of.case.horizon))
    found.append((MEAN, np.repeat(rows, len(batch.ends), axis=0)))
    if of.plain is not None:
        for rule, W in ((OWN, of.plain.own), (NEIGHBOURS, of.plain.neighbours)):
            if W is not None:
                Z = of.steps.dense([batch.linear], of.device.put(W))
                found.append((rule, np.array(get(Z)) + last))
    return found
