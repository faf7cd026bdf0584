"""What a solve says and writes: a line for each graph, solutions, answers.csv, the table at the end."""

from typing import Any, NamedTuple

from app.comm.guard import raise_together
from app.errors import LockstepError
from app.output import STOPPED
from app.problems.table import COURSES
from app.search.steiner.prized import SPLIT
from app.tasks.context import Context
from app.tasks.solved import Solved
from app.text import WIDEST, figures, gap_words

LISTED = 20  # instances that have a line each in the log
COLUMNS = (
    "name", "nodes", "edges", "objective", "bound", "gap", "optimal", "bound_method", "bound_verified",
    "source", "learned", "greedy", "policy_evaluations", "steps", "seconds",
)  # fmt: skip
KEPT = ("edges_kept", "edges_lost")  # of alignments
SAMPLED_COLUMNS = ("at_least", "confidence", "standard_error", "simulations", "sets")


class Written(NamedTuple):
    """The text of a solution, the file of what proves its bound, the tables of its course and of its curve
    with those beside it; empty: none.
    """

    text: str = ""
    certificate: bytes = b""
    course: str = ""
    curves: str = ""


def written_of(solved: Solved) -> Written:
    """What is written of an answer."""
    return Written(solved.text, solved.certificate, solved.course, solved.curves)


def file_name(graph: str) -> str:
    """The name of a graph as a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in graph) or "graph"


def write_solution(context: Context, name: str, written: Written) -> None:
    """solution/NAME.txt by the input file's ids, certificates/NAME.npz, tables of COURSES and of curves/.
    Ranks: all call; rank 0 writes.
    """
    with context.log.phase("write"), raise_together(context.group, "writing the solution"):
        if context.case.output.solutions:
            context.folder.write_text(f"solution/{name}.txt", written.text)
            if written.course:
                path = COURSES[context.case.problem.name].format(name)
                context.folder.write_text(path, written.course)
            if written.curves:
                context.folder.write_text(f"curves/{name}.csv", written.curves)
        if written.certificate and context.group.rank == 0:
            with context.folder.placed(f"certificates/{name}.npz") as file:
                file.write(written.certificate)


def write_so_far(context: Context, instances: list[dict[str, Any]], solved: Solved | None) -> None:
    """Where a run is stopped: the best solution of the instance under way as that of one that is finished,
    and stopped.json, what is known of all. Ranks: all call; rank 0 writes.
    """
    known = [*instances, *([] if solved is None else [solved.entry])]
    if context.folder is None or not known:
        return
    about = {"status": "stopped", "task": "solve", "problem": context.case.problem.name}
    try:
        if solved is not None:
            say_answer(context, solved.entry)
            write_solution(context, file_name(solved.entry["name"]), written_of(solved))
        with raise_together(context.group, "writing what is known so far"):
            context.folder.write_json(STOPPED, {**about, "instances": known})
    except LockstepError as error:  # of a run that stops well: with a checkpoint
        context.log.info("warning: what is known so far is not written: %s", error)
        return
    context.log.info("what is known so far: %s, and solution/", STOPPED)


def write_answers(context: Context, instances: list[dict[str, Any]]) -> None:
    """answers.csv: a line for each graph, plain heuristics last. Ranks: all call; rank 0 writes."""
    if context.folder is None:
        return
    labels = tuple(dict.fromkeys(label for i in instances for label in i["baselines"]))
    with context.log.phase("write"), raise_together(context.group, "writing the answers"):
        rows = [i | i.get("spread", {}) | i["baselines"] for i in instances]
        sampled = SAMPLED_COLUMNS if any("spread" in i for i in instances) else ()
        split = tuple(name for name in (*SPLIT, *KEPT) if any(name in i for i in instances))
        context.folder.write_csv("answers.csv", COLUMNS + sampled + split + labels, rows)


def say_answer(context: Context, instance: dict[str, Any]) -> None:
    """One line on an instance: the answer, how good it can still get, and the plain heuristics."""
    bound = "no bound"
    if instance["bound"] is not None:
        side = "at least" if instance["sense"] == "minimise" else "at most"
        bound = (
            f"{side} {figures(instance['bound'])} ({instance['bound_method']}), {gap_words(instance['gap'])}"
        )
        bound += with_probability(instance)
        bound += ", optimal" if instance["optimal"] else ", a weak bound" if instance["bound_is_weak"] else ""
    if "primal_dual_integral" in instance:
        bound += f", primal-dual integral {instance['primal_dual_integral']:.3g} s"
    if "spread" in instance:
        context.log.info("%s: %s", instance["name"], spread_words(instance["spread"]))
    if SPLIT[0] in instance:
        length, lost = (figures(instance[name]) for name in SPLIT)
        context.log.info("%s: edges of length %s, and prizes of %s left out", instance["name"], length, lost)
    if KEPT[0] in instance:
        kept, lost = (instance[name] for name in KEPT)
        edges = f"edges on edges {kept} of {kept + lost}, {lost} are lost"
        context.log.info("%s: %s", instance["name"], edges)
    if "measures" in instance:
        each = ", ".join(f"{name} {figures(value)}" for name, value in instance["measures"].items())
        context.log.info("%s: %s", instance["name"], each)
    others = ", ".join(f"{label} {figures(value)}" for label, value in instance["baselines"].items())
    others, objective = others or "no baselines", figures(instance["objective"])
    context.log.info("%s: objective %s; %s; %s", instance["name"], objective, bound, others)
    if "robustness" in instance:
        areas = ", ".join(f"{label} {area:.4f}" for label, area in instance["robustness"].items())
        context.log.info("%s: area below the largest component (R): %s", instance["name"], areas)


def with_probability(instance: dict[str, Any]) -> str:
    """How sure a bound is that is not proved, in words; empty: it is."""
    confidence = instance.get("spread", {}).get("confidence", 1.0)
    return "" if confidence == 1 else f", with probability {confidence:g}"


def spread_words(spread: dict[str, Any]) -> str:
    """What is known of the spread of seeds beside its mean."""
    if spread["confidence"] == 1 and spread["simulations"] == 1:
        return f"spread {figures(spread['at_least'])}: no edge is left to chance"
    sure = "" if spread["confidence"] == 1 else f", with probability {spread['confidence']:g}"
    mean = f"mean of {spread['simulations']} cascades, standard error {spread['standard_error']:g}"
    return f"{mean}; at least {figures(spread['at_least'])} by {spread['judges']} unseen sets{sure}"


def say_table(context: Context, instances: list[dict[str, Any]]) -> None:
    """The table of a run: one line per instance; in several parts where it is wide."""
    labels = list(dict.fromkeys(label for i in instances for label in i["baselines"]))
    learned = ["learned"] if any(i["learned"] is not None for i in instances) else []
    rows = [["graph", "nodes", "edges", "answer", *learned, "bound", "gap %", *labels]]
    for i in instances:
        gap = "-" if i["gap"] is None else f"{100 * i['gap']:.2f}"
        before = ["-" if i[key] is None else f"{i[key]:.10g}" for key in ("objective", *learned, "bound")]
        beside = [i["baselines"].get(label) for label in labels]
        after = ["-" if value is None else f"{value:.10g}" for value in beside]
        rows.append([i["name"], str(i["nodes"]), str(i["edges"]), *before, gap, *after])
    context.log.table(rows, WIDEST)
