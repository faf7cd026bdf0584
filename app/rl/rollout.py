"""Rollouts: a policy solves graphs (RL4GO Alg. 2), many side by side, or one by a selection rule."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.comm.group import Group
from app.problems.problem import Problem
from app.rl import compact
from app.rl.compiled_lesson import CompiledLessons
from app.rl.dynamics import begin_environment
from app.rl.env import Environment, objective_of, step_together
from app.rl.incremental import FullScores, LiveScores, Scores, can_follow
from app.rl.learner import score_environments
from app.rl.other_ends import OTHER_ENDS
from app.rl.plain_rest import PLAIN, Greedy, play_rest
from app.rl.qnet import QNetwork
from app.rl.redundant import REDUNDANCY
from app.rl.rules import find_rule
from app.rl.select import Rule, Share, best_nodes, single
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock
from app.watchdog import beat

MOST_STEPS = 256  # selections of one node between looks at the clock; fewer on large graphs:
PIECE_WORK = 1 << 26  # stored entries of all graphs, times selections: some tenths of a second
AT_ONCE = 1 << 14  # nodes of one step that the policy is not asked about
SIDE_BY_SIDE_ROWS = 1 << 18  # rows of one batch of graphs that are solved together


def rolled_out_one_at_a_time(
    group: Group, net: QNetwork, params: Any, blocks: list[RowBlock]
) -> list[Environment]:
    """`one_at_a_time` from its beginning to its end, without a look."""
    envs, pieces = one_at_a_time(group, net, params, blocks)
    for _ in pieces:
        pass
    return envs


def one_at_a_time(
    group: Group, net: QNetwork, params: Any, blocks: list[RowBlock]
) -> tuple[list[Environment], Iterator[None]]:
    """Solve graphs one node at a time.

    On one rank graph by graph with scores that follow the selections; on more, and on a GPU, all of them side
    by side, so that they share their messages and launches. The choices are the same.

    blocks    rows of graphs that share their row blocks (partition/load.py)
    returns   the environments, in order, and pieces of work, after which they are done: one piece is about
              PIECE_WORK, and between two of them no collective is under way
    Ranks     all call, and take equally many pieces; identical choices on all
    """
    envs = [begin_environment(group, block, net.problem) for block in blocks]
    alone = group.size == 1 and group.device.name == "cpu"
    if alone and all(env.compiled and can_follow(group, net, env) for env in envs):
        return envs, _one_by_one(group, net, params, envs)
    return envs, _side_by_side(group, net, params, envs)


def _one_by_one(group: Group, net: QNetwork, params: Any, envs: list[Environment]) -> Iterator[None]:
    for env in envs:
        scores, steps = LiveScores(group, net, params, env), piece_steps([env.block])
        while not env.done:
            beat()
            scores.run(steps, 0)
            yield


def _side_by_side(group: Group, net: QNetwork, params: Any, envs: list[Environment]) -> Iterator[None]:
    """Solve small graphs in batches, one choice in each graph at a time. Ranks: all call."""
    for part in _parts([env.block for env in envs]):
        active = [i for i in part if not envs[i].done]
        batch = StateBatch(group, [(envs[i].block, 1) for i in active])
        made, steps = 0, piece_steps(batch.blocks)
        blocks = [envs[i].block for i in part]
        served = CompiledLessons.serves(group, net, blocks)
        whole = CompiledLessons(group, net, params, blocks) if served else None
        while active:
            live = [envs[i] for i in active]
            if whole is not None:
                nodes = _best_whole(whole, params, live, [i - part[0] for i in active])
            else:
                nodes = best_nodes(group, batch, *score_environments(net, params, batch, live))
            step_together(group, live, [nodes[k : k + 1] for k in range(len(live))])
            left = [i for i in active if not envs[i].done]
            if len(left) < len(active):
                active = left
                batch = StateBatch(group, [(envs[i].block, 1) for i in active])
            made += 1
            if not made % steps:
                beat()
                yield


def _best_whole(
    whole: CompiledLessons, params: Any, envs: list[Environment], graphs: list[int]
) -> np.ndarray:
    """best_nodes of environments on graphs that `whole` knows, in as many compiled calls as it takes."""
    return np.concatenate([whole.best(params, envs[cut], graphs[cut]) for cut in whole.cuts(graphs)])


def piece_steps(blocks: list[RowBlock]) -> int:
    """Selections of one node in each of some graphs between two looks at the clock and at signals.

    A power of two, at most MOST_STEPS, and the same on any number of ranks.
    """
    work = sum(2 * block.edges for block in blocks)
    steps = min(max(PIECE_WORK // max(work, 1), 1), MOST_STEPS)
    return 1 << steps.bit_length() - 1


def _parts(blocks: list[RowBlock]) -> list[list[int]]:
    """Graph numbers in order, cut so that one part has at most SIDE_BY_SIDE_ROWS rows."""
    parts: list[list[int]] = [[]]
    rows = 0
    for i, block in enumerate(blocks):
        if parts[-1] and rows + block.n > SIDE_BY_SIDE_ROWS:
            parts.append([])
            rows = 0
        parts[-1].append(i)
        rows += block.n
    return parts


@dataclass
class Rollout:
    """A finished rollout on one graph.

    chosen_at_own    [n_own] int32   the transition at which a node was chosen, negative: not
    solution_own     [n_real] bool   the solution (a cover, an independent set) on this rank's rows
    evaluations      of the policy, one for each of its choices
    objective        of the whole graph; before_dropping: with redundant nodes
    counted          True: the objective is the number of nodes in the solution
    rest             nodes that a plain greedy chose after the policy
    done             the policy has come to the end; False: it was stopped before
    """

    problem: Problem
    block: RowBlock
    chosen_at_own: np.ndarray
    solution_own: np.ndarray
    evaluations: int
    objective: int
    before_dropping: int
    counted: bool = True
    rest: int = 0
    done: bool = True


def finished_rollout(
    group: Group, problem: Problem, block: RowBlock, chosen_at_own: np.ndarray, evaluations: int,
    value: float | None = None,
) -> Rollout:  # fmt: skip
    """The solution of a rollout whose choices are known, and whose value is. Ranks: all call."""
    solution_own = problem.solution_of(chosen_at_own[: block.n_real])
    size = count_chosen(group, solution_own) if value is None else value
    return Rollout(problem, block, chosen_at_own, solution_own, evaluations, size, size, value is None)


@dataclass(frozen=True)
class FirstState:
    """The state in which a policy is asked first.

    marks    [n] int32 of a state, where some nodes are done with before it; None: a fresh one
    before   [k] global nodes that are chosen before the policy chooses; None: none
    begun    selections by which an earlier part of the rollout chose those before
    nodes    of the graph, where rows between them are padding; 0: all of the block
    """

    marks: np.ndarray | None = None
    before: np.ndarray | None = None
    begun: int = 0
    nodes: int = 0


@dataclass(frozen=True)
class Ending:
    """When a policy's choices end, and what then becomes of the rest.

    stop     asked before every selection (of `piece_steps` at once: before these), the same on all ranks;
             when true the solution is what it is so far
    most     selections after which it stops likewise; 0: any number
    finish   True: where it has stopped, a plain greedy decides the rest, unless every state is a solution
    greedy   how that one takes candidates
    enough   asked of the first state, the last and between them after each selection, or every `pieces` of
             one node, the same on all ranks: when true the solution is what it is so far, and no greedy
             goes on
    """

    stop: Callable[[], bool] = lambda: False
    most: int = 0
    finish: bool = False
    greedy: Greedy = PLAIN
    enough: Callable[[Environment], bool] = lambda env: False
    pieces: int = 1 << 62


FRESH, COMPLETE = FirstState(), Ending()


@dataclass(frozen=True)
class Terms:
    """Where a rollout begins and when it ends, and who is told of it.

    progress   called with the number of selections: after each, or every `piece_steps` of one node
    watch      called at first with a function that tells, before any selection, how many there were, and by
               chosen_at_own what they chose; of a greedy that goes on nothing
    """

    first: FirstState = FRESH
    ending: Ending = COMPLETE
    progress: Callable[[int, Environment], None] = lambda evaluations, env: None
    watch: Callable[[Callable[[], tuple[int, np.ndarray]]], None] = lambda so_far: None


TO_THE_END = Terms()


def roll_out(
    group: Group, net: QNetwork, params: Any, block: RowBlock, rule: str, fraction: float,
    terms: Terms = TO_THE_END, full: bool = False,
) -> Rollout:  # fmt: skip
    """Solve one graph: score, select by a rule, update, until the solution is complete.

    Scores follow the selections where they can (rl/incremental.py), and what is left of the graph is
    compacted as it shrinks (rl/compact.py); neither changes a bit.

    full    True: evaluate every state from the first row to the last, without compaction
    Ranks   all call; identical choices on all
    """
    course = _Course(group, net, params, block, terms.first, full)
    terms.watch(course.so_far)
    share = Share(terms.first.nodes or block.n, fraction)
    ends = course.play(find_rule(rule), share, terms.ending, terms.progress)
    return course.finish(terms.ending, ends)


class _Course:
    """A rollout under way. Ranks: all call each method.

    residual        what is left of the graph, and the environment there
    chosen_at_own   what was chosen before that was compacted last
    given           steps that were no selections: those of nodes that were chosen before
    """

    def __init__(
        self, group: Group, net: QNetwork, params: Any, block: RowBlock, first: FirstState, full: bool
    ) -> None:
        self.group, self.net, self.params, self.block, self.full = group, net, params, block, full
        self.residual = compact.begin(group, block, net.problem, own_marks(block, first.marks))
        self.chosen_at_own = np.full(block.n_own, -1, dtype=np.int32)
        self._last: tuple[int, np.ndarray] | None = None
        steps = _choose_before(group, self.residual.env, first.before)
        if steps and compact.worth_compacting(self.residual):
            self._compact()
        self.given = steps - first.begun

    @property
    def selections(self) -> int:
        """By the policy, so far."""
        return self.residual.first_step + self.residual.env.steps - self.given

    def so_far(self) -> tuple[int, np.ndarray]:
        """How many selections there were, and by chosen_at_own what they chose; of a greedy nothing."""
        if self._last is not None:
            return self._last
        chosen = self.chosen_at_own.copy()
        self.residual.write_back(chosen)
        return self.selections, chosen

    def play(
        self, choose: Rule, share: Share, ending: Ending, progress: Callable[[int, Environment], None]
    ) -> bool:
        """The policy's selections; returns whether they are enough (Ending)."""
        group, most, piece = self.group, ending.most or 1 << 62, piece_steps([self.block])
        scores, ends = self._scores(), ending.enough(self.residual.env)
        while not (ends or self.residual.env.done) and self.selections < most and not ending.stop():
            beat()
            env, made = self.residual.env, self.selections
            steps = min(most - made, piece - env.steps % piece, ending.pieces - made % ending.pieces)
            select(group, self.residual, scores, choose, share, steps)
            # The sums of a mixing head are cut in the row blocks of the whole graph.
            mixing = self.net.pools_to_choose
            smaller = not self.full and not mixing and compact.worth_compacting(self.residual)
            # At the same selections on any number of ranks, whenever rows are compacted.
            asked = choose is not single or not self.selections % ending.pieces or env.done
            ends = asked and ending.enough(env)
            if asked or smaller or not env.steps % piece:
                progress(self.selections, env)
            if smaller:
                del scores  # their rows, before there are new ones
                self._compact()
                piece, scores = piece_steps([self.residual.env.block]), self._scores()
        self._last = self.so_far()
        return ends

    def finish(self, ending: Ending, ends: bool) -> Rollout:
        """What was made, after a greedy where one goes on.

        ends   whether the selections are enough, so that none does
        """
        group, made, done = self.group, self.selections, self.residual.env.done
        if ending.finish and not ends and self.residual.env.value is None:
            self.residual = play_rest(
                group, self.residual, self.chosen_at_own, ending.stop, ending.enough, greedy=ending.greedy
            )
        self.residual.write_back(self.chosen_at_own)
        value = self.residual.env.value
        rollout = finished_rollout(group, self.net.problem, self.block, self.chosen_at_own, made, value)
        late = self.chosen_at_own >= made + self.given
        return replace(rollout, rest=count_chosen(group, late) if rollout.counted else 0, done=done)

    def _scores(self) -> Scores:
        return make_scores(self.group, self.net, self.params, self.residual.env, self.full)

    def _compact(self) -> None:
        """The rows that are left, alone."""
        self.residual.write_back(self.chosen_at_own)
        self.residual = compact.compact(self.group, self.residual)


def _choose_before(group: Group, env: Environment, nodes: np.ndarray | None) -> int:
    """Choose nodes [k] that the policy is not asked about; returns the steps it took. Ranks: all call."""
    steps = range(0, 0 if nodes is None else len(nodes), AT_ONCE)
    for first in steps:
        step_together(group, [env], [nodes[first : first + AT_ONCE]])
    return len(steps)


def select(
    group: Group, residual: compact.Residual, scores: Scores, choose: Rule, share: Share, steps: int
) -> None:
    """One selection by a rule; of one node at a time, as many as one compiled call makes of `steps`.

    Ranks   all call; identical choices on all
    """
    if choose is not single:
        scores.remove(choose(group, group.device, scores.keys_own(), residual.env, share))
    elif group.size == 1 and isinstance(scores, LiveScores):
        scores.run(steps if scores.compiled else 1, compact.least_alive(residual))
    else:
        scores.remove(np.array([scores.best()]))


def judged(env: Environment) -> float:
    """The objective of the solution so far; of an episode that is over and has played on (Problem.plays_on)
    without what it does not need. Ranks: all of the environment's group call; identical on all.
    """
    if not (env.problem.plays_on and env.done):
        return objective_of(env)
    group = env.block.group
    made = finished_rollout(group, env.problem, env.block, env.chosen_at, env.steps, env.value)
    return drop_redundant(group, made).objective


def own_marks(block: RowBlock, marks: np.ndarray | None) -> np.ndarray | None:
    """[n_own] int32, those of the own rows, zero on padding."""
    if marks is None:
        return None
    mark_own = np.zeros(block.n_own, dtype=np.int32)
    mark_own[: block.n_real] = marks[block.lo : block.lo + block.n_real]
    return mark_own


def make_scores(group: Group, net: QNetwork, params: Any, env: Environment, full: bool = False) -> Scores:
    """Scores that follow the selections where that gives the same bits. Ranks: all call."""
    kind = FullScores if full or not can_follow(group, net, env) else LiveScores
    return kind(group, net, params, env)


def count_chosen(group: Group, solution_own: np.ndarray) -> int:
    """Nodes in the solution over all ranks. Ranks: all call."""
    return int(group.sum_integers(np.array([np.count_nonzero(solution_own)]))[0])


def drop_redundant(group: Group, rollout: Rollout) -> Rollout:
    """Take out the nodes that the solution does not need, where the problem has such; of several solutions
    that the choices lead to (app/rl/other_ends.py) the first of the fewest nodes stays, where these have
    weights of the lightest. Ranks: all call.
    """
    problem, block = rollout.problem, rollout.block
    if not problem.redundancy:
        return rollout
    kept = _dropped(group, rollout, rollout.solution_own, rollout.before_dropping)
    if problem.redundancy in OTHER_ENDS:
        for solution_own in OTHER_ENDS[problem.redundancy](group, block, problem, rollout.chosen_at_own):
            other = _dropped(group, rollout, solution_own, count_chosen(group, solution_own))
            kept = other if _cost(group, other) < _cost(group, kept) else kept
    return kept


def _cost(group: Group, rollout: Rollout) -> float:
    """Nodes of a solution, or what these weigh, rounded once (fsum). Ranks: all call; identical on all."""
    weights = rollout.block.node_weights
    if weights is None:
        return rollout.objective
    own = weights[rollout.solution_own]
    counts = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return math.fsum(group.gather_host(own, counts).tolist())


def _dropped(group: Group, rollout: Rollout, solution_own: np.ndarray, nodes: int) -> Rollout:
    """The rollout with a solution [n_real] of so many nodes, without those that it does not need."""
    problem, block = rollout.problem, rollout.block
    find, limits = REDUNDANCY[problem.redundancy], problem.limits(block.n)
    dropped = find(group, block, rollout.chosen_at_own, solution_own, *limits)
    solution_own = solution_own.copy()
    own = dropped[(dropped >= block.lo) & (dropped < block.lo + block.n_real)] - block.lo
    solution_own[own] = False
    return replace(rollout, solution_own=solution_own, objective=nodes - len(dropped))
