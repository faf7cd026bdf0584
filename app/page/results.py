"""What runs found: answers with bounds beside plain heuristics, accuracies, policies, rows of studies."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from app.page.charts import Line, line_chart
from app.page.markup import Markup, join, table, tag
from app.page.runs import Run
from app.page.values import flat, listing, mapping, number, percent, seconds, shown

MOST_ROWS = 200  # of one table
MOST_COLUMNS = 24
SPLITS = ("train", "val", "test")


def show_results(runs: Sequence[Run]) -> Markup:
    """All results, each kind under its own head."""
    parts = [
        *_answers(runs),
        *_policies(runs),
        *_scores(runs),
        *_plain(runs),
        *_vectors(runs),
        *_forecasts(runs),
    ]
    parts += _links(runs)
    parts += [part for run in runs for part in _study(run)]
    return join([tag("h2", "Results"), *parts]) if parts else Markup("")


def summary(run: Run) -> str:
    """A run in one line."""
    words = [f"task {run.task}", "complete" if run.complete else "not complete"]
    answers = [entry for entry in run.instances if "objective" in entry]
    if answers:
        optimal = sum(bool(entry.get("optimal")) for entry in answers)
        gaps = [gap for gap in (number(entry.get("gap")) for entry in answers) if gap is not None]
        words.append(f"{len(answers)} graph{'s' if len(answers) > 1 else ''}, {optimal} proved optimal")
        words += [f"largest gap {percent(max(gaps))} %"] if gaps else []
    tested = number(run.result.get("test_accuracy"))
    words += [f"test accuracy {percent(tested)} %"] if tested is not None else []
    if mapping(run.case.get("gnn")).get("level") == "link":
        area = number(run.result.get("test_auc"))
        words += [f"test ROC AUC {percent(area)} %"] if area is not None else []
    explained = number(run.result.get("test_r2"))
    words += [f"test R2 {explained:.4f}"] if explained is not None else []
    held = mapping(run.result.get("held_back"))
    words += [f"held-back total {shown(held['learned'], 8)}"] if "learned" in held else []
    took = seconds(run.result.get("seconds"))
    words += [f"{f'{took} ' if took else ''}on {run.ranks} rank{'s' if run.ranks != 1 else ''}"]
    return "; ".join(words)


# ---- answers of optimisation ------------------------------------------------------------------------------


def _answers(runs: Sequence[Run]) -> Iterator[Markup]:
    """For each problem a table of the answers, a row for each graph and run."""
    found = [(run, entry) for run in runs for entry in run.instances if "objective" in entry]
    problems = list(dict.fromkeys(str(run.result.get("problem")) for run, _ in found))
    for problem in problems:
        some = [(run, entry) for run, entry in found if str(run.result.get("problem")) == problem]
        yield tag("h3", "Answers" if len(problems) == 1 else f"Answers, {problem}")
        yield _answer_table(some, len(runs) > 1)
        if len(runs) == 1:
            yield tag("div", _beside_bound(some), class_="charts")
    if found:
        yield tag("p", _explain(any(entry.get("bound_is_weak") for _, entry in found)), class_="soft")


def _answer_table(found: list[tuple[Run, dict[str, Any]]], several: bool) -> Markup:
    """The answers to one problem, graph by graph."""
    order = {name: i for i, name in enumerate(dict.fromkeys(str(entry.get("name")) for _, entry in found))}
    found = sorted(found, key=lambda each: order[str(each[1].get("name"))])
    labels = list(dict.fromkeys(label for _, entry in found for label in mapping(entry.get("baselines"))))
    head = ["graph", *(["run"] if several else []), "nodes", "edges", "answer", "bound", "gap %"]
    head += ["learned", *labels, "seconds", "found by", "certificate"]
    rows = [_answer(run, entry, labels, several) for run, entry in found]
    return limited(head, rows, "smaller is better" if _minimised(found) else "larger is better")


def _minimised(found: list[tuple[Run, dict[str, Any]]]) -> bool:
    return all(entry.get("sense") == "minimise" for _, entry in found)


def _answer(run: Run, entry: dict[str, Any], labels: list[str], several: bool) -> list[Any]:
    """One row of the table of answers."""
    baselines = mapping(entry.get("baselines"))
    value = shown(entry.get("objective"), 10)
    feasible = entry.get("feasible") is not False
    return [
        str(entry.get("name")), *([run.label] if several else []),
        shown(entry.get("nodes"), 10), shown(entry.get("edges"), 10),
        tag("b", value if feasible else f"{value} NOT FEASIBLE"),
        shown(entry.get("bound"), 10), percent(entry.get("gap")), shown(entry.get("learned"), 10),
        *(shown(baselines.get(label), 10) for label in labels), seconds(entry.get("seconds")),
        entry.get("source"), tag("div", certificate(entry), class_="text"),
    ]  # fmt: skip


def certificate(entry: dict[str, Any]) -> str:
    """What proves the bound, and how far it can be relied on."""
    if entry.get("bound") is None:
        return "no bound"
    words = [str(entry.get("bound_method"))]
    if entry.get("optimal"):
        words.append("proved optimal")
    if (confidence := entry.get("spread", {}).get("confidence", 1)) < 1:
        words.append(f"with probability {confidence:g}")
    if entry.get("bound_is_weak"):
        words.append("a weak bound")
    if entry.get("bound_verified"):
        words.append("verified")
    return ", ".join(words)


def _explain(weak: bool) -> str:
    text = (
        "Every answer was checked for feasibility by code that did not make it. The gap is the distance to "
        "the bound, relative to the bound: the answer is at most that far from the best possible one. A "
        "verified bound was checked again from its witness."
    )
    return text + (" A weak bound says more about the bound than about the answer." if weak else "")


def _beside_bound(found: list[tuple[Run, dict[str, Any]]]) -> Markup:
    """Answers and plain heuristics as multiples of the bound, graph by graph."""
    kept = [entry for _, entry in found if (number(entry.get("bound")) or 0) > 0]
    if len(kept) < 3:
        return Markup("")
    values: dict[str, list[tuple[float, float]]] = {}
    for at, entry in enumerate(kept, 1):
        named = {"answer": entry.get("objective"), **mapping(entry.get("baselines"))}
        for label, value in named.items():
            ratio = number(value)
            if ratio is not None:
                values.setdefault(str(label), []).append((float(at), ratio / float(kept[at - 1]["bound"])))
    apart = 0.5 / max(1, len(values))
    lines = [
        Line(
            label,
            [x + k * apart for x, _ in points],
            [y for _, y in points],
            k,
            marks="rings" if k else "only",
        )
        for k, (label, points) in enumerate(values.items())
    ]
    return line_chart(
        "Values relative to the bound", lines, "graph, in the order of the table", "value / bound"
    )


# ---- learned policies -------------------------------------------------------------------------------------


def _policies(runs: Sequence[Run]) -> Iterator[Markup]:
    """Totals over held-back graphs, learned and by plain heuristics; a table for each problem."""
    trained = [run for run in runs if mapping(run.result.get("held_back"))]
    problems = list(dict.fromkeys(str(run.result.get("problem")) for run in trained))
    for problem in problems:
        chosen = [run for run in trained if str(run.result.get("problem")) == problem]
        labels = list(dict.fromkeys(label for run in chosen for label in mapping(run.result["held_back"])))
        rows = [
            [run.label, *(shown(run.result["held_back"].get(label), 8) for label in labels),
             shown(run.result.get("best_step"), 8)]
            for run in chosen
        ]  # fmt: skip
        of = f" ({problem})" if len(problems) > 1 else ""
        yield tag("h3", f"The learned policy beside plain heuristics{of}")
        yield table(["run", *labels, "best step"], rows, "totals over the held-back graphs")


# ---- accuracies -------------------------------------------------------------------------------------------


def _scores(runs: Sequence[Run]) -> Iterator[Markup]:
    """Accuracy and F1 by split, of predicted numbers their errors."""
    several, sets = len(runs) > 1, any("graphs" in entry for entry in _classified(runs))
    names = {f"{split}_{key}": f"{split} {text}" for key, text in SCORES.items() for split in SPLITS}
    forms = {f"{split}_{key}": SCORE_FORMS.get(key, percent) for key in SCORES for split in SPLITS}
    rows, kept = [], [key for key in names if any(number(e.get(key)) is not None for e in _classified(runs))]
    for run in runs:
        for entry in run.instances:
            if any(key in entry for key in names):
                scores = [forms[key](entry.get(key)) for key in kept]
                loss, epochs = shown(entry.get("train_loss")), shown(entry.get("epochs"))
                sizes = [*(["graphs"] if sets else []), "nodes", "edges"]
                size = [shown(entry.get(key)) for key in sizes]
                name = [*([run.label] if several else []), str(entry.get("name"))]
                rows.append([*name, *size, *scores, loss, epochs, seconds(entry.get("seconds"))])
    if rows:
        yield tag("h3", "Scores")
        head = [
            *(["run"] if several else []),
            "graph",
            *(["graphs"] if sets else []),
            "nodes",
            "edges",
            *(names[key] for key in kept),
            "loss",
            "epochs",
            "seconds",
        ]
        yield table(head, rows)


VECTORS = {
    "dimension": "columns",
    "alignment": "correlation of the views",
    "redundancy": "of different columns",
    "modularity": "modularity of clusters",
    "nmi": "mutual information with classes",
    "ari": "adjusted Rand index",
}  # of vectors that are learned without labels, by keys of result.json


def _vectors(runs: Sequence[Run]) -> Iterator[Markup]:
    """How good vectors without labels, and their clusters, are."""
    chosen = [run for run in runs if mapping(run.case.get("gnn")).get("level") == "embed"]
    rows = [
        [run.label, str(entry.get("name")), *(shown(entry.get(key), 4) for key in VECTORS)]
        for run in chosen
        for entry in run.instances
    ]
    if rows:
        yield tag("h3", "Vectors")
        yield table(["run", "graph", *VECTORS.values()], rows)


def _forecasts(runs: Sequence[Run]) -> Iterator[Markup]:
    """Errors of forecasts on the test windows, beside those of plain rules."""
    rows = []
    for run in runs:
        if mapping(run.case.get("gnn")).get("level") != "forecast":
            continue
        for entry in run.instances:
            rules = {"network": entry.get("test"), **mapping(entry.get("plain"))}
            for rule, found in rules.items():
                told = [shown(mapping(found).get(key), 4) for key in ("mae", "rmse", "skill")]
                rows.append([run.label, str(entry.get("name")), rule.replace("_", " "), *told])
    if rows:
        yield tag("h3", "Forecasts")
        yield table(["run", "graph", "rule", "MAE", "RMSE", "skill"], rows, "on the test windows")


SCORES = {
    "accuracy": "accuracy %",
    "macro_f1": "macro F1 %",
    "auc": "ROC AUC %",
    "ap": "average precision %",
    "hits_20": "hits@20 %",
    "hits_50": "hits@50 %",
    "hits_100": "hits@100 %",
    "r2": "R2",
    "rmse": "RMSE",
    "mae": "MAE",
}
SCORE_FORMS = dict.fromkeys(("r2", "rmse", "mae"), shown)


def _plain(runs: Sequence[Run]) -> Iterator[Markup]:
    """Scores of what is predicted beside those of the network alone and of plain rules, by split."""
    named = ("plain", "network")
    found = [
        (run, entry)
        for run in runs
        for entry in run.instances
        if any(mapping(entry.get(key)) for key in named)
    ]
    parts = [(run, entry, _rules(entry)) for run, entry in found]
    told = [scores for *_, rules in parts for scores in rules.values()]
    kept = [
        (f"{split}_{key}", f"{split} {text}", SCORE_FORMS.get(key, percent))
        for key, text in SCORES.items()
        for split in SPLITS[1:]
        if any(number(each.get(f"{split}_{key}")) is not None for each in told)
    ]
    if not kept:
        return
    yield tag("h3", "Scores beside plain rules")
    rows = [
        [run.label, str(entry.get("name")), rule, *(form(scores.get(key)) for key, _, form in kept)]
        for run, entry, rules in parts
        for rule, scores in rules.items()
    ]
    yield table(["run", "graph", "by", *(text for _, text, _ in kept)], rows)


def _rules(entry: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By what scores are, in words, those of a classified graph or of its links."""
    after = mapping(entry.get("network"))
    found = {"smoothed": entry, "network": after} if after else {"learned": entry}
    return found | {
        str(rule).replace("_", " "): mapping(scores) for rule, scores in mapping(entry.get("plain")).items()
    }


def _classified(runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [entry for run in runs for entry in run.instances]


def _links(runs: Sequence[Run]) -> Iterator[Markup]:
    """Ranks of held-back triples."""
    rows: list[list[Any]] = []
    for run in runs:
        for entry in run.instances:
            for method, scores in mapping(entry.get("links")).items():
                found = mapping(scores)
                rows.append([run.label, str(method), *(shown(found.get(key)) for key in LINKS)])
    if rows:
        yield tag("h3", "Link prediction")
        yield table(["run", "scored by", *LINKS.values()], rows, "filtered ranks of the held-back triples")


LINKS = {"mrr": "mean reciprocal rank", "hits_1": "hits@1", "hits_3": "hits@3", "hits_10": "hits@10"}


# ---- studies ----------------------------------------------------------------------------------------------


def _study(run: Run) -> Iterator[Markup]:
    """The tables of a study as they are in its result, and its pictures."""
    if run.task != "study":
        return
    tables = {
        name: listing(value) for name, value in run.result.items() if name not in ("instances", "phases")
    }
    for name, rows in tables.items():
        if rows:
            yield tag("h3", f"{run.label}: {name.replace('_', ' ')}")
            yield generic_table(rows)
    for name, content in run.pictures.items():
        data = base64.b64encode(content).decode("ascii")
        picture = tag("img", src=f"data:image/png;base64,{data}", alt=f"{name} of {run.label}", loading=None)
        yield tag("figure", tag("figcaption", f"{run.label}: {name}"), picture)


def generic_table(rows: list[dict[str, Any]]) -> Markup:
    """Rows of any columns; tables within them become columns of their own."""
    rows = [flat(row) for row in rows]
    columns = list(dict.fromkeys(key for row in rows for key in row))[:MOST_COLUMNS]
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    return limited([column.replace("_", " ") for column in columns], cells)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(shown(each) for each in value[:6]) + (" ..." if len(value) > 6 else "")
    return shown(value)


def limited(head: Sequence[object], rows: list[list[Any]], caption: str = "") -> Markup:
    """A table; of a long one the first rows are shown, the rest on request, the very long one is cut."""
    if len(rows) <= 30:
        return table(head, rows, caption)
    kept = rows[:MOST_ROWS]
    said = f"all {len(rows)} rows" if len(kept) == len(rows) else f"the first {len(kept)} of {len(rows)} rows"
    folded = tag("details", tag("summary", said), table(head, kept))
    return join([table(head, rows[:12], caption), folded])
