"""Task classify: train a graph network on a graph, or on graphs, full batch, or apply one."""

from typing import Any

from app.memory.room import resident_bytes
from app.tasks.context import Context
from app.tasks.levels.course import learn
from app.tasks.levels.reading import refuse_read
from app.tasks.levels.table import LEVELS
from app.tasks.levels.written import result_of, write_learned


def run_classify(context: Context) -> dict[str, Any]:
    """Train or apply, write the results, and return the task's part of result.json. Ranks: all call."""
    examples = LEVELS[context.case.gnn.level](context)
    refuse_read(context, examples.loaded)
    held = resident_bytes()
    done = learn(context, examples)
    with done.context.each_by_itself("answering"):
        answer = done.examples.answer(done.context, done)
    context.say_memory(held)
    with done.context.each_by_itself("writing the results"):
        if done.context.folder is not None:
            write_learned(done.context, done, answer)
    return result_of(done.context, done, answer)
