"""Task study: one of the studies, by the name of its kind."""

from dataclasses import replace
from typing import Any

from app.tables import Table
from app.tasks.context import Context
from app.tasks.studies.cells import Cells

STUDIES = Table(
    {
        "quality": "app.tasks.studies.quality:run_quality",
        "scaling": "app.tasks.studies.scaling:run_scaling",
        "answers": "app.tasks.studies.answers:run_answers",
        "partition": "app.tasks.studies.partition:run_partition",
        "models": "app.tasks.studies.gnn_models:run_models",
        "depth": "app.tasks.studies.gnn_models:run_depth",
        "breakdown": "app.tasks.studies.gnn_speed:run_breakdown",
        "permutation": "app.tasks.studies.gnn_stages:run_permutation",
        "overlap": "app.tasks.studies.gnn_stages:run_overlap",
        "density": "app.tasks.studies.gnn_speed:run_density",
        "sampling": "app.tasks.studies.gnn_sampling:run_sampling",
        "inference": "app.tasks.studies.gnn_inference:run_inference",
        "gnn_scaling": "app.tasks.studies.gnn_scaling:run_gnn_scaling",
        "rgcn": "app.tasks.studies.relations:run_relations",
        "selection": "app.tasks.studies.selection:run_selection",
        "strong_scaling": "app.tasks.studies.strong_scaling:run_strong_scaling",
        "learners": "app.tasks.studies.learners:run_learners",
        "progress": "app.tasks.studies.progress:run_progress",
        "memory": "app.tasks.studies.gnn_memory:run_memory",
        "throughput": "app.tasks.studies.gnn_throughput:run_throughput",
        "folds": "app.tasks.studies.gnn_folds:run_folds",
        "tune": "app.tasks.studies.gnn_tune:run_tune",
    }
)


def run_study(context: Context) -> dict[str, Any]:
    """The study that the case names. Ranks: all call."""
    return STUDIES[context.case.study.kind](replace(context, keeper=Cells(context.keeper)))
