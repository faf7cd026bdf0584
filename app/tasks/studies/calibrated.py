"""The rates of a study: those of a file that the case names, or measured by the running ranks."""

from typing import Any

from msgspec import convert, to_builtins

from app.case.policy import AgentCase
from app.model.calibrate import calibrate
from app.model.rates import Calibration, load_calibration
from app.rl.qnet import QNetwork
from app.tasks.context import Context
from app.tasks.studies.cells import measurement


def calibrated(context: Context, key: str, net: QNetwork, agent: AgentCase, base: int) -> Calibration:
    """The file of the case, or rates measured now. Ranks: all call.

    key         of this calibration among the measurements of the study
    net, agent  the policy whose steps are measured, and how it learns
    base        bytes of this process before it read a graph
    """
    given = context.case.study.calibration
    if given:
        return load_calibration(given)

    def measured() -> dict[str, Any]:
        with context.log.phase("calibrate"):
            return to_builtins(calibrate(context.group, net, agent, base))

    return convert(measurement(context, key, measured), Calibration)
