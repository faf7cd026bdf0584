"""Link prediction on a knowledge graph: train on most triples, rank the others."""

import time
from typing import Any

from app.comm.guard import digest
from app.gnn.link_prediction import train_links
from app.graphs.triples import Triples
from app.tasks.context import Context


def run_links(context: Context, triples: Triples) -> dict[str, Any]:
    """Train on a share of the triples and rank the others. Ranks: all call."""
    case, log, group = context.case, context.log, context.group

    def record(row: dict[str, float]) -> None:
        score = row.get("val_score")
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"], val_score=score)
        shown = "" if score is None else f"  MRR of the validation triples {score:.4f}"
        log.progress("epoch %5d  loss %.4f%s", row["epoch"], row["loss"], shown)

    start = time.perf_counter()
    with log.phase("train"):
        found = train_links(group, triples, case.rgcn, case.seed, record, context.keeper)
    for name, scores in found.scores.items():
        log.info("%-13s %s", name, "  ".join(f"{key} {value:.4f}" for key, value in scores.items()))
    scores = [row["val_score"] for row in found.records if "val_score" in row]
    entry = {
        "name": triples.name, "nodes": triples.nodes, "relations": triples.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": case.rgcn.epochs,
        "best_epoch": found.best_epoch, "validation_mrr": max(scores, default=None),
        "seconds": time.perf_counter() - start, "links": found.scores,
    }  # fmt: skip
    weights = digest({"links/D": found.relations, **found.net.whole_weights(group)})
    return {"digest": weights, "weights_digest": weights, "instances": [entry], **entry}
