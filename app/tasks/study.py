"""Task study: one of the studies, by the name of its kind."""

from typing import Any

from app.tasks.answers import run_answers
from app.tasks.context import Context
from app.tasks.gnn_scaling import run_gnn_scaling
from app.tasks.partition import run_partition
from app.tasks.quality import run_quality
from app.tasks.scaling import run_scaling

STUDIES = {
    "quality": run_quality,
    "scaling": run_scaling,
    "answers": run_answers,
    "partition": run_partition,
    "gnn_scaling": run_gnn_scaling,
}


def run_study(context: Context) -> dict[str, Any]:
    """The study that the case names. Ranks: all call."""
    return STUDIES[context.case.study.kind](context)
