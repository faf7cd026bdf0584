"""Task study: one of the studies, by the name of its kind."""

from dataclasses import replace
from typing import Any

from app.tasks.answers import run_answers
from app.tasks.cells import Cells
from app.tasks.context import Context
from app.tasks.gnn_inference import run_inference
from app.tasks.gnn_memory import run_memory
from app.tasks.gnn_models import run_depth, run_models
from app.tasks.gnn_sampling import run_sampling
from app.tasks.gnn_scaling import run_gnn_scaling
from app.tasks.gnn_speed import run_breakdown, run_density
from app.tasks.gnn_stages import run_overlap, run_permutation
from app.tasks.gnn_throughput import run_throughput
from app.tasks.learners import run_learners
from app.tasks.partition import run_partition
from app.tasks.progress import run_progress
from app.tasks.quality import run_quality
from app.tasks.relations import run_relations
from app.tasks.scaling import run_scaling
from app.tasks.selection import run_selection
from app.tasks.strong_scaling import run_strong_scaling

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
}


def run_study(context: Context) -> dict[str, Any]:
    """The study that the case names. Ranks: all call."""
    return STUDIES[context.case.study.kind](replace(context, keeper=Cells(context.keeper)))
