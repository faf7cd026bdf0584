"""Task study: one of the studies, by the name of its kind."""

from dataclasses import replace
from typing import Any

from app.tasks.context import Context
from app.tasks.studies.answers import run_answers
from app.tasks.studies.cells import Cells
from app.tasks.studies.gnn_folds import run_folds
from app.tasks.studies.gnn_inference import run_inference
from app.tasks.studies.gnn_memory import run_memory
from app.tasks.studies.gnn_models import run_depth, run_models
from app.tasks.studies.gnn_sampling import run_sampling
from app.tasks.studies.gnn_scaling import run_gnn_scaling
from app.tasks.studies.gnn_speed import run_breakdown, run_density
from app.tasks.studies.gnn_stages import run_overlap, run_permutation
from app.tasks.studies.gnn_throughput import run_throughput
from app.tasks.studies.learners import run_learners
from app.tasks.studies.partition import run_partition
from app.tasks.studies.progress import run_progress
from app.tasks.studies.quality import run_quality
from app.tasks.studies.relations import run_relations
from app.tasks.studies.scaling import run_scaling
from app.tasks.studies.selection import run_selection
from app.tasks.studies.strong_scaling import run_strong_scaling

STUDIES = {
    "quality": run_quality,
    "scaling": run_scaling,
    "answers": run_answers,
    "partition": run_partition,
    "models": run_models,
    "depth": run_depth,
    "breakdown": run_breakdown,
    "permutation": run_permutation,
    "overlap": run_overlap,
    "density": run_density,
    "sampling": run_sampling,
    "inference": run_inference,
    "gnn_scaling": run_gnn_scaling,
    "rgcn": run_relations,
    "selection": run_selection,
    "strong_scaling": run_strong_scaling,
    "learners": run_learners,
    "progress": run_progress,
    "memory": run_memory,
    "throughput": run_throughput,
    "folds": run_folds,
}


def run_study(context: Context) -> dict[str, Any]:
    """The study that the case names. Ranks: all call."""
    return STUDIES[context.case.study.kind](replace(context, keeper=Cells(context.keeper)))
