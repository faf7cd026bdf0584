"""Keys of a case that are right one by one and wrong together; the rules stand in rules/, by subject."""

from collections.abc import Iterator

from app.case.check import where
from app.case.config import Case
from app.case.places import Places
from app.case.rules import forecasts, graphs, levels, networks, policies, problems, studies
from app.case.rules.mistake import Mistake

# Each takes a case and yields mistakes, a key and what is wrong with it; they are told in this order.
OF_POLICIES_AND_PROBLEMS = (
    policies.policy_alone, problems.communities, problems.partition, problems.dismantling, problems.coverage,
    problems.influence, problems.facility, problems.dense, problems.steiner, problems.pairs, problems.routing,
    problems.directed, problems.eliminations, problems.arrangements, policies.agent, studies.name_of_run,
)  # fmt: skip
# Keys that ask for nothing in a case that is right otherwise.
OF_UNREAD = (graphs.unread_by_generators, policies.unread_by_learners, policies.unread_by_tasks)
# The same by the task of a case; callers that read some of them beside it have words of their own.
OF_UNREAD_BY_TASK = (graphs.unread_without_networks, studies.unread)
OF_NETWORKS = (
    networks.nothing_to_apply, networks.networks, networks.relations, networks.told_by_network,
    levels.sets_of_graphs, levels.links, levels.embeds, levels.edges, networks.smooth, forecasts.forecasts,
)  # fmt: skip


def conflicts(
    case: Case, places: Places, has_graphs: bool = False, has_training: bool = False, by_task: bool = False
) -> Iterator[str]:
    """What is wrong, with the lines of the keys; where nothing is, the keys that nothing reads.

    has_graphs, has_training   the graphs to solve, or to train on, are not in the case
    by_task                    also keys that its task does not read; a caller that reads some of them
                               (folds, tunings, `python -m app generate`) refuses the others itself
    """
    found = list(_wrong(case, places, has_graphs, has_training))
    yield from found or _located(unread(case, by_task), places)


def unread(case: Case, by_task: bool) -> Iterator[Mistake]:
    """The keys that nothing reads; by_task: see conflicts."""
    for rules in (*OF_UNREAD, *OF_UNREAD_BY_TASK) if by_task else OF_UNREAD:
        yield from rules(case)


def _wrong(case: Case, places: Places, has_graphs: bool, has_training: bool) -> Iterator[str]:
    """What is wrong but for keys that nothing reads."""
    yield from _located(graphs.tables_of_graphs(case, has_graphs), places)
    yield from graphs.missing_graphs(case, has_graphs, has_training)
    yield from _located(policies.training_and_hubs(case), places)
    yield from policies.policy_conflicts(case, places)
    for rules in OF_POLICIES_AND_PROBLEMS:
        yield from _located(rules(case), places)
    yield from network_conflicts(case, places)
    for rules in (studies.studies, studies.empty):
        yield from _located(rules(case), places)


def network_conflicts(case: Case, places: Places | None = None) -> Iterator[str]:
    """Those of networks alone."""
    for rules in OF_NETWORKS:
        yield from _located(rules(case), places or {})


def _located(found: Iterator[Mistake], places: Places) -> Iterator[str]:
    return (f"{where(keys, places)}: {mistake}" for keys, mistake in found)
