"""Rolling origins: the test part of a series in consecutive pieces, each forecast from what is before it.

Source   Tashman 2000: Out-of-sample tests of forecasting accuracy, International Journal of Forecasting 16,
         437-450: rolling origins with recalibration; a window of training that grows, or of a fixed length
"""

from dataclasses import dataclass, replace

import numpy as np

from app.case.forecast import ForecastCase
from app.case.study import StudyCase
from app.errors import GraphError
from app.gnn.forecast.series import Parts


@dataclass(frozen=True)
class Origin:
    """Where one training ends, and what it is tested on.

    at      the first step of time that is not learned from, nor chosen by: the origin
    begin   the first step that is learned from     end   the first step beyond the last one tested
    parts   of time, of the steps begin .. end-1 alone
    """

    at: int
    begin: int
    end: int
    parts: Parts

    def of(self, S_own: np.ndarray) -> np.ndarray:
        """[n_own, end - begin, C] the steps that there are at this origin: nothing of the later ones."""
        return np.ascontiguousarray(S_own[:, self.begin : self.end])


def origins_of_study(case: ForecastCase, study: StudyCase, steps: int, name: str) -> list[Origin]:
    """Those of a study of a series of so many steps. Raises GraphError where one has too few of them."""
    found = rolling_origins(case, steps, study.folds, study.fold_training == "sliding", name)
    for each in found:
        each.parts.check(name, each.end - each.begin, True)
    return found


def rolling_origins(case: ForecastCase, steps: int, count: int, sliding: bool, name: str) -> list[Origin]:
    """The origins of a series of so many steps, in order of time.

    The windows of the test part of the case are cut into `count` runs, as even as can be, so that each is
    tested once, by the origin before it. As many steps as the case has for validation are before an origin,
    and what it learns from before these: all, or with `sliding` as many as the first origin has.

    Raises GraphError where there are fewer windows to test
    """
    whole = Parts.of(case, steps)
    ends, held = whole.ends("test"), whole.at[2] - whole.at[1]
    if len(ends) < count:
        right = f"at least {count}, one for each of study.folds, would be right"
        raise GraphError(f"{name}: has {len(ends)} windows to test; {right}")
    found = []
    for run in np.array_split(ends, count):
        at, end = int(run[0]) + 1, int(run[-1]) + case.horizon + 1
        begin = at - int(ends[0]) - 1 if sliding else 0
        cuts = 0, max(at - held - begin, 0), at - begin, end - begin
        found.append(Origin(at, begin, end, replace(whole, at=cuts)))
    return found
