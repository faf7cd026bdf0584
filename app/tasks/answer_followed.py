"""A graph of which reductions leave more than one rank may work on, where choices of a policy leave no
smaller rest, as in cuts: the policy answers by itself on the rows. That answer is made better on them, by
exchanges (solver/rows/exchanges.py), then region by region until the time is up (tasks/answer_regions.py).
"""

import time

from app.checkpoint.keeper import Keeper
from app.errors import Ended
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.solver.pipeline import Answer
from app.tasks.answer_annealed import annealed
from app.tasks.answer_on_rows import START, Work, begun_before, exchanged, solved_on_rows
from app.tasks.answer_regions import kept_answer, recalled_answer, search_again
from app.tasks.answer_rest import Rest
from app.tasks.compare import words_of_need
from app.tasks.context import Context
from app.tasks.policy import Policy
from app.tasks.rollouts import follow_policy
from app.tasks.solved import Solved

POLICY = "policy"  # the source of an answer
SHARE = 0.05  # of a time limit, for the policy: on large graphs it makes few of its choices in any time


def answer_followed(
    context: Context, policy: Policy, problem: Problem, loaded: Loaded, rest: Rest, keeper: Keeper
) -> Solved:
    """The policy's answer, exchanges on the rows, then regions of these.

    keeper  remembers the answer before the regions, and these: see reduce_first
    Ranks   all call; identical on all
    """
    work = Work(context, problem, loaded, begun_before(rest, keeper), keeper)
    known = keeper.recall("answer")
    try:
        if known is None:
            found = exchanged(work, annealed(work, _start(work, policy)))
            keeper.keep("answer", kept_answer(found, 0, time.perf_counter() - work.rest.begun))
        else:
            found, _ = recalled_answer(known)
        found = search_again(context, problem, loaded.graph, work.rest, found, keeper)
    except Ended as ended:
        if ended.so_far is not None:
            ended.so_far = solved_on_rows(work, ended.so_far, None)
        raise
    return solved_on_rows(work, found, None)


def _start(work: Work, policy: Policy) -> Answer:
    """The policy's answer, which is kept. Ranks: all call; identical on all."""
    known = work.keeper.recall(START)
    if known is not None:
        return recalled_answer(known)[0]
    found = _policy_answer(work, policy)
    work.keeper.keep(START, kept_answer(found, 0, time.perf_counter() - work.rest.begun))
    return found


def _policy_answer(work: Work, policy: Policy) -> Answer:
    """What the policy comes to by itself. Ranks: all call; identical on all."""
    context, loaded, rest = work.context, work.loaded, work.rest
    context.log.info(
        "%s: the policy answers on the rows, which then are searched again: %s", loaded.graph.name,
        words_of_need(context, rest.nbytes),
    )  # fmt: skip
    before = rest.before()._replace(share=SHARE)
    ((_, solved),) = follow_policy(context, work.problem, policy, [loaded], before=before)
    value, entry = rest.kind.value(context.group, loaded.graph, solved.solution), solved.entry
    return Answer(
        solution=solved.solution, value=value, bound=None, method="", learned=value, quick=None,
        evaluations=entry["policy_evaluations"], steps=0, source=POLICY, verified=False, integral=0.0,
        seconds=time.perf_counter() - rest.begun, trace=[], replay=[*entry["replay"], *rest.replay],
        certificate=b"",
    )  # fmt: skip
