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
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"])
        log.progress("epoch %5d  loss %.4f", row["epoch"], row["loss"])

    start = time.perf_counter()
    with log.phase("train"):
        found = train_links(group, triples, case.rgcn, case.seed, record)
    for name, scores in found.scores.items():
        log.info("%-13s %s", name, "  ".join(f"{key} {value:.4f}" for key, value in scores.items()))
    weights = {"links/D": found.relations, **found.net.whole_weights(group)}
    entry = {
        "name": triples.name, "nodes": triples.nodes, "relations": triples.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": case.rgcn.epochs,
        "seconds": time.perf_counter() - start, "links": found.scores,
    }  # fmt: skip
    return {"digest": digest(weights), "weights_digest": digest(weights), "instances": [entry], **entry}
