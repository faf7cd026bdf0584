"""The first and the last lines of a run's log: what runs where, where the time went, what to do about it."""

import os
import platform
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.case.config import Case
from app.comm.cores import own_cores
from app.comm.group import Group
from app.comm.transport import mpi_library
from app.errors import LockstepError
from app.log import Log
from app.memory.room import memory_room
from app.model import memory
from app.model.plan import plan_lines
from app.problems.table import make_problem
from app.tasks.context import KEPT_FIRST

NAMED = 3  # hosts and estimates that are listed
LISTED = 0.005  # share of the run from which on a phase has a line
WAITING = 0.5  # share of the time in MPI calls from which on ranks are too many
NOTABLE = 0.1  # share of the run from which on a phase is named in advice
WHOLE = ("search", "bounds", "baselines")  # phases whose work ranks do not share row by row
STAGED = 0.2  # share of the time in MPI calls from which on staging is worth a word
UNEVEN = 1.25  # slowest rank against the mean
BRIEF = 2.0  # s: a shorter run needs no advice
FIRST_RANK = ("plots", "write")  # phases in which rank 0 works for all
MEMORY = r"MB (a|on a|of a|on each) rank"  # in a line of the plan
TERMS = re.compile(r"( \(exchange \w+\))?: base.*")  # how it comes to the bytes of a rank
COMM = "comm."  # begins the names of times in MPI calls
RESTING = f"{COMM}rest"  # of ranks that sleep
RESTED = 0.3  # share of that from which on it is worth a word


@dataclass(frozen=True)
class Place:
    """Where one rank runs.

    cores      those that it may use        threads    as many it was told to use
    compiled   its host has the compiled kernels, or its work needs none
    """

    host: str
    cores: frozenset[int]
    threads: int
    compiled: bool = True


def places(group: Group) -> list[Place]:
    """The place of every rank. Ranks: all call; the same on all."""
    cores = own_cores()
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    plain = group.device.name == "cpu" and not getattr(group.device, "native", None)
    texts = group.gather_texts(
        f"{platform.node()}|{' '.join(map(str, cores))}|{threads}|{'plain' if plain else ''}"
    )
    found = [text.split("|") for text in texts]
    return [
        Place(host, frozenset(map(int, cores.split())), int(threads) if threads.isdigit() else 1, not plain)
        for host, cores, threads, plain in found
    ]


# ---- at the start -----------------------------------------------------------------------------------------


def say_start(log: Log, group: Group, case: Case, where: list[Place]) -> None:
    """What runs where, a few lines; `where` is `places` of the group."""
    if not log.speaks:
        return
    for line in (*_host_lines(where), *_message_lines(group), *_memory_lines(case, group), _room_line(where)):
        log.info("%s", line)


def _host_lines(where: list[Place]) -> Iterator[str]:
    """Ranks and cores of each host."""
    hosts = Counter(place.host for place in where)
    listed = []
    for host, ranks in list(hosts.items())[:NAMED]:
        cores = len(frozenset().union(*(place.cores for place in where if place.host == host)))
        listed.append(f"{host} ({_count(ranks, 'rank')}, {_count(cores, 'core')})")
    more = f" and {len(hosts) - NAMED} more" if len(hosts) > NAMED else ""
    threads = max(place.threads for place in where)
    yield f"hosts: {', '.join(listed)}{more}; {_count(threads, 'thread')} a rank"


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _message_lines(group: Group) -> Iterator[str]:
    if group.size > 1:
        yield f"MPI: {' '.join(mpi_library().replace('Version:', '').split())}"


def _memory_lines(case: Case, group: Group) -> Iterator[str]:
    """What --dry-run would say of the memory of a rank; nothing where that is known only after reading."""
    try:
        lines = [each for each in plan_lines(case, group.size, group.device) if re.search(MEMORY, each)]
    except (LockstepError, OSError):  # the run itself meets it again, and says it in better words
        return
    for line in lines[:NAMED]:
        yield f"estimate: {TERMS.sub('', line)}"


def _room_line(where: list[Place]) -> str:
    """What a rank may take on this host: a job that was ended for its memory has left this in its log."""
    here = sum(place.host == platform.node() for place in where)
    room, what = memory_room(here)
    return f"memory: {what} leaves {memory.size(room)} to {'each rank' if here > 1 else 'it'}"


# ---- at the end -------------------------------------------------------------------------------------------


def say_end(log: Log, phases: dict[str, Any], seconds: float) -> None:
    """The phases of a run as a table, bytes below it, advice and remarks where there are any."""
    if not log.speaks:
        return
    for line in phase_lines(phases, seconds):
        log.info("%s", line)
    for line in filter(None, (phases.get("advice"), *phases.get("remarks", ()))):
        log.info("%s", f"advice: {line}")


def phase_lines(phases: dict[str, Any], seconds: float) -> Iterator[str]:
    """The table: seconds over the ranks by phase, the longest first, then MPI calls and bytes."""
    times = phases["seconds"]
    own = {name: row for name, row in times.items() if not name.startswith(COMM)}
    calls = {name: row for name, row in times.items() if name.startswith(COMM)}
    yield f"{'seconds by phase':<24}{'min':>9}{'mean':>10}{'max':>10}{'imbalance':>11}{'share %':>9}"
    for name, row in sorted(own.items(), key=lambda item: -item[1]["mean_s"]):
        if row["mean_s"] >= LISTED * seconds:
            yield _phase_line(name, row, seconds)
    rest = seconds - sum(row["mean_s"] for row in own.values())
    if rest >= LISTED * seconds > 0:
        yield _phase_line("all else", {"min_s": rest, "mean_s": rest, "max_s": rest}, seconds)
    for name, row in sorted(calls.items(), key=lambda item: -item[1]["mean_s"]):
        if row["mean_s"] >= LISTED * seconds:
            yield _phase_line(f"  within: MPI {name.removeprefix(COMM)}", row, seconds)
    sent = phases["bytes"].get("all", {})
    if sent.get("max"):
        share = sent["max"] / sent["mean"]
        yield f"sent by a rank: {1e-6 * sent['mean']:.1f} MB in the mean, imbalance {share:.2f}"


def _phase_line(name: str, row: dict[str, float], seconds: float) -> str:
    low, mean, high = row["min_s"], row["mean_s"], row["max_s"]
    uneven = f"{high / mean:.2f}" if mean else "-"
    share = 100 * mean / seconds if seconds else 0.0
    return f"{name:<24.24}{low:>9.2f}{mean:>10.2f}{high:>10.2f}{uneven:>11}{share:>9.1f}"


# ---- advice -----------------------------------------------------------------------------------------------


def advice(group: Group, case: Case, where: list[Place], phases: dict[str, Any], seconds: float) -> str:
    """One sentence on what holds this run up most; "" where nothing stands out. The same on all ranks."""
    if seconds < BRIEF:
        return ""
    device = group.device
    if case.run.kernels == "auto" and (said := _missing_kernels(where)):
        return said
    crowded = crowded_host(where)
    if crowded:
        return crowded
    times = phases["seconds"]
    waiting = sum(row["mean_s"] for name, row in times.items() if name.startswith(COMM)) / seconds
    resting = times.get(RESTING, {"mean_s": 0.0})["mean_s"] / seconds
    talking = waiting - resting
    if group.size > 1 and device.name != "cpu" and not group.direct and talking > STAGED:
        return (
            f"messages took {100 * talking:.0f} % of the time and go through the host; a CUDA-aware MPI, or "
            "fewer ranks, would shorten that"
        )
    if waiting > WAITING and (idle := _without_search(group, case)):
        return (
            f"{_count(idle, 'rank')} of {group.size} had no search; search.starts={group.size} gives each "
            "one, and those for cuts and tours share what they find"
        )
    if group.size > 1 and waiting > WAITING and (said := _whole_pieces(group, case, times, seconds)):
        return f"ranks waited for each other {100 * waiting:.0f} % of the time: {said}"
    if group.size > 1 and resting > RESTED:
        return (
            f"ranks slept {100 * resting:.0f} % of the time while others worked: this work is too small for "
            f"{group.size} ranks; fewer would be as fast"
        )
    if group.size > 1 and waiting > WAITING:
        return (
            f"MPI calls took {100 * waiting:.0f} % of the time: this work is too small for {group.size} "
            "ranks; fewer would be faster"
        )
    drawn = times.get("plots", {"max_s": 0.0})["max_s"] / seconds
    if drawn > WAITING:
        return f"plots took {100 * drawn:.0f} % of the time; output.plots=false leaves them out"
    return _uneven(times, seconds)


def _missing_kernels(where: list[Place]) -> str:
    """What to do about hosts without compiled kernels; "" where all have them."""
    lacking = list(dict.fromkeys(place.host for place in where if not place.compiled))
    if not lacking:
        return ""
    some = len(lacking) < len({place.host for place in where})
    more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
    on = f" on {', '.join(lacking[:NAMED])}{more}, for which the others wait" if some else ""
    return (
        f"the compiled kernels are missing{on}; pip install with a C compiler makes runs several times faster"
    )


def _without_search(group: Group, case: Case) -> int:
    """Ranks that only wait while others search and bound under a time limit."""
    search = case.search
    told = max(search.starts, case.parallel.data if case.parallel.data > 1 else 0)
    if case.run.task != "solve" or search.solver != "full" or not search.seconds or not told:
        return 0
    return max(group.size - told - int(search.bounds), 0)


def _whole_pieces(group: Group, case: Case, times: dict[str, dict[str, float]], seconds: float) -> str:
    """Where most of a run is work dealt to ranks in whole pieces: what gives more of them some; else ""."""
    dealt = {name: times[name]["mean_s"] / seconds for name in WHOLE if name in times}
    if case.run.task != "solve" or sum(dealt.values()) <= WAITING:
        return ""
    names = [name for name, share in dealt.items() if share > NOTABLE]
    remedies = []
    told = case.search.starts or not case.search.seconds
    if told and "search" in names and max(case.search.starts, case.parallel.data) < group.size:
        remedies.append(f"search.starts={group.size} gives each rank a search")
    if "baselines" in names:
        remedies.append("search.baselines=false leaves the baselines out")
    right = ", ".join(remedies) or "fewer ranks would be as fast"
    return f"the work of {' and '.join(names)} comes in whole pieces, and some ranks had none; {right}"


def remarks(case: Case, result: dict[str, Any]) -> list[str]:
    """What is to be said of a task's result: plain heuristics or rules that did better. On all ranks.

    result   the task's part of result.json
    """
    told = _network_beaten if case.run.task == "classify" else _beaten
    beaten = list(filter(None, (told(case, entry) for entry in result.get("instances", ()))))
    more = len(beaten) - NAMED
    return [
        *beaten[:NAMED], *([f"so it is on {_count(more, 'other graph')}"] if more > 0 else ()),
        *(_poor_training(case, result) if "best_step" in result else ()),
    ]  # fmt: skip


def _beaten(case: Case, entry: dict[str, Any]) -> str:
    """Of an instance, the baseline that beat its search, or its policy, and what may be done; "" for none."""
    label, value = _best(entry.get("sense"), entry.get("baselines") or {})
    longer = "a longer search.seconds" if case.search.seconds else "more search.steps"
    if label and entry.get("source") in entry["baselines"]:
        if entry.get("optimal"):
            return ""
        said = f'the answer is that of the baseline "{entry["source"]}"'
        return f"{entry['name']}: {said}; {longer} may find more"
    if not label or not _is_better(entry["sense"], value, entry["objective"]):
        return ""
    right = longer if case.search.solver == "full" else 'search.solver="full"'
    return (
        f'{entry["name"]}: the baseline "{label}" found {value}, better than the answer, '
        f"{entry['objective']}; {right} may find more"
    )


def _network_beaten(case: Case, entry: dict[str, Any]) -> str:
    """Of a trained network, the plain rule that beats it and what may help; "" for none."""
    from app.gnn.watch import FALLING, WORDS  # of networks alone

    measure, split, reached, rules = _scores_beside(case, entry)
    sense = "minimise" if measure in FALLING else "maximise"
    label, value = _best(sense, {each: found for each, found in rules.items() if found is not None})
    if not case.gnn.epochs or not label or reached is None or not _is_better(sense, value, reached):
        return ""
    # Correct and Smooth is of one class a node, as this rule is.
    of_classes = case.gnn.level == "node" and "largest_class" in rules and case.smooth.method == "none"
    right = "more gnn.epochs, gnn.depth or another gnn.model"
    if case.gnn.level == "forecast":
        right = "more gnn.epochs, gnn.hidden or another forecast.model"
    elif label == "label_propagation" and of_classes:
        method = "auto" if split == "val" else "both"  # "auto" goes by validation nodes
        right = f'more gnn.epochs, gnn.depth, another gnn.model or smooth.method="{method}"'
    rule, score = label.replace("_", " "), WORDS.get(measure, measure.replace("_", " "))
    said = f'{entry["name"]}: the plain rule "{rule}" has {split} {score} {value:.4f}'
    return f"{said}, better than the network's {reached:.4f}; {right} may help"


def _scores_beside(case: Case, entry: dict[str, Any]) -> tuple[str, str, float | None, dict[str, Any]]:
    """A score, the split that it is of, the network's and those of plain rules.

    It is the watched one of validation rows; without any, of test rows; of forecasts the mean absolute error.
    """
    from app.gnn.watch import TRAINING_LOSS, watched_score

    plain = entry.get("plain") or {}
    if case.gnn.level == "forecast":  # whose rules are told of the test part
        found = {rule: each.get("mae") for rule, each in plain.items()}
        return "mae", "test", (entry.get("test") or {}).get("mae"), found
    watched = entry.get("watched") or ""
    if watched == TRAINING_LOSS:  # without validation rows: what they would be watched by
        watched = watched_score(case.gnn, True)
    measure = watched.removeprefix("val_")
    measure = "rmse" if measure == "loss" else measure  # rules know no loss
    split = "val" if entry.get(f"val_{measure}") is not None else "test"
    rules = {label: scores.get(f"{split}_{measure}") for label, scores in plain.items()}
    return measure, split, entry.get(f"{split}_{measure}"), rules


def _poor_training(case: Case, result: dict[str, Any]) -> Iterator[str]:
    """Whether a training has learned nothing, or less than all plain rules know."""
    if result["best_step"] == 0 and case.train.steps:
        yield (f"{KEPT_FIRST}; more train.steps, or another agent.learning_rate, may")
    held_back, sense = result["held_back"], make_problem(case.problem.name).sense
    rules = {label: value for label, value in held_back.items() if label not in ("graphs", "learned")}
    label, value = _best(sense, rules)
    if label and all(_is_better(sense, each, held_back["learned"]) for each in rules.values()):
        yield (
            f"every plain rule is better than what was learned, {held_back['learned']} on the held-back "
            f'graphs, best of all "{label}" with {value}; more train.steps may help'
        )


def _best(sense: str | None, values: dict[str, Any]) -> tuple[str, Any]:
    """The label and value of the best; ("", None) of none."""
    choose = max if sense == "maximise" else min
    return choose(values.items(), key=lambda item: item[1]) if values else ("", None)


def _is_better(sense: str, value: float, than: float) -> bool:
    return value > than if sense == "maximise" else value < than


def crowded_host(where: list[Place]) -> str:
    """What to do on a host whose ranks and threads do not have a core each; "" where all do."""
    for host in dict.fromkeys(place.host for place in where):
        here = [place for place in where if place.host == host]
        cores = frozenset().union(*(place.cores for place in here))
        wanted = sum(place.threads for place in here)
        if wanted > len(cores):
            who = f"{_count(len(here), 'rank')} with {_count(wanted, 'thread')}"
            right = "no more threads than cores (LOCKSTEP_THREADS, -np) would be faster"
            return f"{who} share {_count(len(cores), 'core')} of {host}; {right}"
        shared = len(cores) > len(here) > 1 and any(place.cores != here[0].cores for place in here)
        if shared and sum(len(place.cores) for place in here) > len(cores):
            return (
                f"ranks of {host} are pinned to cores that overlap; one core or more for each would be faster"
            )
    return ""


def _uneven(times: dict[str, dict[str, float]], seconds: float) -> str:
    """Of the longest phase, whether its slowest rank holds up the others."""
    own = {name: row for name, row in times.items() if not name.startswith(COMM) and name not in FIRST_RANK}
    if not own:
        return ""
    name, row = max(own.items(), key=lambda item: item[1]["max_s"])
    if row["max_s"] < 0.2 * seconds or row["max_s"] < UNEVEN * row["mean_s"]:
        return ""
    ratio = row["max_s"] / row["mean_s"]
    remedy = 'graph.order="random" or parallel.partition="edges" may even it out'
    return f"in phase {name} the slowest rank takes {ratio:.2f} times the mean; {remedy}"
