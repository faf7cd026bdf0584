"""What studies train forecasters on: the series of one graph, and one training of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.guard import digest, raise_together
from app.errors import CaseError, GraphError, NumericsError
from app.gnn.forecast.covariates import Covariates
from app.gnn.forecast.forecaster import NETWORK, Forecaster, drawn_forecaster
from app.gnn.forecast.series import Parts
from app.gnn.forecast.training import fit_forecaster
from app.gnn.training import Fit
from app.gnn.watch import WORDS
from app.model.fits import refuse_needs
from app.model.forecast_plan import need_of, training_of
from app.partition.loaded import Loaded
from app.tasks.context import Context
from app.tasks.forecast_inputs import check_weights, holes_of, sizes_of
from app.tasks.studies.trials import Trial
from app.tasks.studies.tuned import Record, failed, unjudged

# By forecast.loss, the errors that it makes small: by them, in the units of the data, forecasts are compared;
# with quantiles by the ranked probability score.
MEASURES = {"absolute": "mae", "squared": "rmse"}


@dataclass(frozen=True)
class SeriesTuned:
    """Forecasters of the series of a graph (see Tuned).

    S_own   [n_own, T, C] float32 of own nodes, NaN where not known
    Trials are compared by errors in the units of the data on the validation windows. These are the same for
    all windows and periods that a trial may have: they are told apart by the steps that are forecast.
    """

    context: Context
    loaded: Loaded
    S_own: np.ndarray
    covariates: Covariates | None = None

    @property
    def name(self) -> str:
        """Of the graph."""
        return self.loaded.graph.name

    @property
    def measure(self) -> str:
        """The errors that the loss of the case is of."""
        case = self.context.case.forecast
        return "crps" if case.quantiles else MEASURES[case.loss]

    @property
    def watch(self) -> str:
        """See Tuned."""
        return f"val_{self.measure}"

    @property
    def what(self) -> str:
        """Windows."""
        return "windows"

    def refuse_unjudged(self) -> None:
        """Without validation windows. Raises CaseError."""
        if not len(Parts.of(self.context.case.forecast, self.S_own.shape[1]).ends("val")):
            raise unjudged(self.name, "validation windows")

    def train_once(self, trial: Trial, seed: int) -> Record:
        """See Tuned. Ranks: all of the context call."""
        case = trial.case_of(self.context.case)
        try:
            forecaster = begun(
                replace(self.context, case=case), self.loaded, self.S_own, seed, covariates=self.covariates
            )
        except (CaseError, GraphError) as error:
            return {"seed": seed, "refused": str(error)}
        if not len(forecaster.known_ends("val")):
            raise unjudged(self.name, "validation windows with a known value ahead")
        record = {
            "seed": seed, "weights": forecaster.params.size, "failed": "", "score": WORDS[self.measure],
        }  # fmt: skip
        try:
            found = trained(self.context, forecaster)
            val, test = (value_of(forecaster, part, self.measure) for part in ("val", "test"))
        except NumericsError as error:
            return failed(record, error)
        return record | {"val": val, "test": test, "epochs": found.epochs, "digest": digest(found.weights)}


def begun(
    context: Context, loaded: Loaded, S_own: np.ndarray, seed: int, parts: Parts | None = None,
    known: int | None = None, covariates: Covariates | None = None,
) -> Forecaster:  # fmt: skip
    """A forecaster with drawn weights, by the tables of the context's case.

    parts   of time; None: those of the case     known   steps by which it is decided whether the network
    reads where values are known; None: all     covariates   known beforehand, from the first step of S_own on
    Ranks   all of the context call. Raises CaseError, GraphError on all for data that are not for it
    """
    case, group = context.case, context.group
    with raise_together(group, "checking the series"):
        check_weights(case.gnn.edge_weights, loaded)
        (parts or Parts.of(case.forecast, S_own.shape[1])).check(loaded.graph.name, S_own.shape[1], True)
        if covariates is not None:
            covariates = covariates.reaching(S_own.shape[1], case.forecast.horizon)
    masks = holes_of(group, S_own[:, :known]) > 0
    _refuse_too_large(context, loaded, S_own, masks, covariates)
    block = context.rows(loaded, case.forecast.batch * case.gnn.hidden)
    forecaster = drawn_forecaster(
        group, case.gnn, case.forecast, block, S_own, masks, seed, parts, covariates
    )
    if not len(forecaster.known_ends("train")):
        raise GraphError(f"{loaded.graph.name}: no window to learn from has a known value ahead")
    return forecaster


def _refuse_too_large(
    context: Context, loaded: Loaded, S_own: np.ndarray, masks: bool, covariates: Covariates | None
) -> None:
    """Refuse a training that the memory does not hold. Ranks: all call. Raises CaseError."""
    case, sizes = context.case, sizes_of(loaded, S_own, masks, covariates)
    training = training_of(case, sizes, context.group.size)
    refuse_needs(context.group, case, lambda: [need_of(case, training)])


def trained(context: Context, forecaster: Forecaster, record: Any = lambda row: None) -> Fit:
    """One training. Ranks: all of the context call. Raises NumericsError."""
    return fit_forecaster(forecaster, record, context.case.run.check_every, context.keeper)


def value_of(forecaster: Forecaster, part: str, measure: str) -> float | None:
    """Errors of the network on the windows of a part of time, None of none. Ranks: all call."""
    found = forecaster.judged(part, plain=False)
    if NETWORK not in found.errors:
        return None
    return (found.quantiles if measure == "crps" else found.errors[NETWORK]).told()[measure]
