"""What a run of learning leaves: weights, answers, plots, and its part of result.json."""

from typing import Any

from app.comm.guard import digest, raise_together
from app.gnn.saved import save_model
from app.plots.runs import plot_breakdown, plot_training
from app.tasks.context import Context
from app.tasks.levels.course import Learned


def result_of(context: Context, done: Learned, answer: Any) -> dict[str, Any]:
    """The task's part of result.json. Ranks: all call."""
    records, examples = done.fit.records, done.examples
    entry = examples.sizes(context) | {
        "train_loss": records[-1]["loss"] if records else None,
        "epochs": done.fit.epochs, "best_epoch": done.fit.best_epoch,
        "watched": done.fit.watched if records else None, "best_watched": done.fit.best,
        "seconds": sum(each.seconds for each in done.fits),
    }  # fmt: skip
    entry |= examples.named(done.final)
    if done.smoothed is not None:
        entry |= {"smooth": done.smoothed.told, "network": examples.named(done.scores)}
    if done.importance is not None:
        entry["importance"] = done.importance.told()
    if done.filled is not None:
        entry["missing_features"] = done.filled.told()
    if done.explained is not None:
        entry["explanations"] = done.explained.told()
    if done.together is not None:
        entry["members"] = [
            {"seed": context.case.seed + i, "epochs": each.epochs, "best_epoch": each.best_epoch}
            | examples.named(scores)
            for i, (each, scores) in enumerate(zip(done.fits, done.together.apart))
        ]
    if done.conformal is not None:
        entry["coverage"] = done.conformal.told()
    if done.plain:
        entry["plain"] = {rule: examples.named(each) for rule, each in done.plain.items()}
    # An applied model has no new weights: its answer are the predictions.
    both = digest({**examples.digested(answer), **done.weights})
    operations = {kind: round(s, 6) for kind, s in sorted(done.classifier.engine.seconds.items())}
    return {
        "digest": both, "weights_digest": done.digest, "instances": [entry], **entry,
        "operations": operations,
    }  # fmt: skip


def write_learned(context: Context, done: Learned, answer: Any) -> None:
    """weights.npz, what the network says, importance and plots. Ranks: all call."""
    folder, group, case = context.folder, context.group, context.case
    name = done.examples.loaded.graph.name
    with context.log.phase("write"):
        with raise_together(group, "writing the results"):
            if group.rank == 0:
                note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
                save_model(folder.file("weights.npz"), done.saved, note)
        done.examples.write_answer(context, done, answer)
    if done.importance is not None:
        folder.write_text(f"importance/{name}.csv", done.importance.text())
    if done.explained is not None:
        folder.write_text(f"explanations/{name}.csv", done.explained.text())
    if case.output.plots:
        score = next(iter(done.classifier.goal.told))
        plot_training(folder, context.log, done.fit.records, score=score)
        plot_breakdown(folder, context.log, {name: done.classifier.engine.seconds})
