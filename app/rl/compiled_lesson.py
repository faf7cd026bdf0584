"""CompiledLessons: minibatches of learners, and scores of states, in a compiled call or two each."""

from dataclasses import dataclass

import numpy as np

from app.case.policy import AgentCase
from app.comm.group import Group
from app.errors import Diverged
from app.gnn.parameters import Parameters
from app.gnn.structure2vec import Structure2Vec
from app.native import lesson
from app.native.lesson import (
    BY_DEGREE,
    BY_FAMILY,
    BY_GAIN,
    BY_SIDES,
    MOST_ROUNDS,
    CodeRules,
    LessonKernels,
    Looks,
    PlayedStates,
)
from app.native.library import address
from app.problems.problem import Problem, StateTotals
from app.rl.core_env import LEAST_DEGREE
from app.rl.env import Environment, codes_of
from app.rl.family_env import family_of
from app.rl.field import sums_near
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.select import NAN_SCORE
from app.rl.sides import grain_of, side_codes, start_marks
from app.rl.stored_tables import StoredTables
from app.sparse.rowblock import RowBlock
from app.sparse.whole_weights import whole_weights

MOST_NUMBERS = 1 << 19  # of an array [rows, K]: with more, asking for products costs little
LEAST_NEIGHBOURS = {"residual": 0, "core": LEAST_DEGREE}  # with which nodes stay, by dynamics
MOST_HIDDEN = 4096  # as in dense_lanes.h
ENTRIES = 6  # of the fields of a graph in lesson.h


class CompiledLessons:
    """What learners do on one rank with many products of small graphs, by lesson.c: the same bits.

    A minibatch of 16 states of 75 nodes is arithmetic of half a millisecond; asking for its products one by
    one takes several times as long.

    blocks        the training graphs
    wants_codes   True: it does not know the dynamics, and is told the codes of states (`replayed`)
    """

    def __init__(self, group: Group, net: QNetwork, params: Parameters, blocks: list[RowBlock]) -> None:
        self.group, self.net, self.blocks = group, net, blocks
        graph = self._graph_table()
        self.tables = StoredTables(net, int(graph[:, ENTRIES].max()))
        self._told = 0  # which of these the kernels know
        self._sizes, self._most = [block.n for block in blocks], MOST_NUMBERS // net.K
        problem, policy, embedding = net.problem, net.policy, net.embedding
        rules = _code_rules(problem)
        self.wants_codes = rules is None
        weighted = any(block.weighted for block in blocks)
        self.kernels = LessonKernels(
            (embedding.layers, net.K, net.F, net.hidden),
            (embedding.self_weight, embedding.shared, net.paper),
            _offsets(net, params),
            graph,
            len(blocks[0].block_starts) - 1,
            (problem.first_candidate, group.device.native.tile_bytes),
            rules or CodeRules(BY_DEGREE),
            policy.mean_degree and problem.own_degree,
            policy.edge_weights and (weighted or not problem.degree_codes),
            self.tables.own,
        )

    def holds(self, graphs: list[int], most: int) -> bool:
        """Whether states of these graphs have at most `most` nodes together, and few enough for one call."""
        sizes = self._sizes
        return sum([sizes[graph] for graph in graphs]) <= min(most, self._most)

    @staticmethod
    def serves(group: Group, net: QNetwork, blocks: list[RowBlock]) -> bool:
        """Whether lesson.c knows this network, these graphs, and the device that they are on."""
        device, embedding, problem = group.device, net.embedding, net.problem
        if group.size > 1 or not (getattr(device, "native", None) and device.portable and lesson.available()):
            return False
        if not isinstance(embedding, Structure2Vec) or embedding.shelf:
            return False
        if embedding.layers > MOST_ROUNDS or net.hidden > MOST_HIDDEN or not blocks:
            return False
        if problem.mirrors and not embedding.edge_weights and any(block.signed for block in blocks):
            return False
        alike = len({len(block.block_starts) for block in blocks}) == 1
        return alike and all(block.plan.mode == "none" and not block.directed for block in blocks)

    def _graph_table(self) -> np.ndarray:
        """[graphs, GRAPH_FIELDS] int64, as lesson.h wants them."""
        self._held, rows = [], []
        dynamics = self.net.problem.dynamics
        for block in self.blocks:
            starts = np.ascontiguousarray(block.block_starts, dtype=np.int64)
            # As StateBatch.inverse_degrees.
            inverse = 1 / np.maximum(block.degrees_own(), 1).astype(np.float32)
            self._held += (starts, inverse, block.A)
            *shape, wide, indptr, indices, _ = block.A.record
            entries = self.net.entries(block.max_degree)
            rows.append(
                (*shape, wide, indptr, indices, block.n_real, entries, address(starts), address(inverse),
                 *self._weights_of(block), *self._states_of(block, dynamics))
            )  # fmt: skip
        return np.array(rows, dtype=np.int64)

    def _weights_of(self, block: RowBlock) -> tuple[int, ...]:
        """The fields of lesson.h from PLUS on."""
        parts = block.A_weights or (None, None)
        self._held += parts
        return tuple(field for part in parts for field in ((0,) * 4 if part is None else part.record[2:]))

    def _states_of(self, block: RowBlock, dynamics: str) -> tuple[int, ...]:
        """The fields of lesson.h from START on."""
        if dynamics == "sides":
            return *self._sides_of(block), 0, 0
        if dynamics != "family":
            return (0,) * 9
        family = family_of(self.group, block)
        mark, field = family.mark.astype(np.int8), sums_near(self.group, block, family.mark)
        self._held += (mark, field, family.look)
        return address(mark), 0, 0, 0, 0, 0, 0, address(field), address(family.look)

    def _sides_of(self, block: RowBlock) -> tuple[int, ...]:
        """The fields of lesson.h from START to REST."""
        whole, start = whole_weights(self.group, block), start_marks(self.net.problem, block)
        self._held += (whole, start)
        units = (0,) * 4
        if whole.matrix is not None:  # symmetric: its columns are its rows
            indptr, indices, data = (
                np.ascontiguousarray(each, dtype=np.int64)
                for each in (whole.matrix.indptr, whole.matrix.indices, whole.matrix.data)
            )
            self._held += (indptr, indices, data)
            units = (1, address(indptr), address(indices), address(data))
        rest = max(self.net.problem.rest(block.n), 1)
        return address(start), *units, grain_of(block, whole), rest

    def losses(
        self,
        sample: Sample,
        codes: tuple[np.ndarray, np.ndarray] | None,
        weights: tuple[Parameters, Parameters],
        case: AgentCase,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Losses [B] of a minibatch, and the gradient [parameters] of their mean. Raises Diverged.

        codes     [rows] of the states before and after, where `wants_codes`
        weights   those that learn, and the target network's
        """
        states = len(sample.graphs)
        totals = [*sample.totals_before, *sample.totals_after]
        look, alive = self._numbers(totals), _alive(totals)
        own = self.tables.own_values(totals)
        looks = tuple(Looks(look[k], own[k], alive[k]) for k in (slice(states), slice(states, None)))
        if codes is None:
            _give_choices(sample, *looks)
        else:
            for each, code in zip(looks, codes):
                each.code = np.ascontiguousarray(code, dtype=np.int32)
        losses, gradient, bad = self.kernels.lesson(
            np.ascontiguousarray(sample.graphs, dtype=np.int64), *looks,
            (weights[0].flat, weights[1].flat), (sample.nodes, sample.returns, sample.discounts),
            case.double, case.loss == "huber",
        )  # fmt: skip
        if bad:
            raise Diverged(NAN_SCORE)
        return losses, gradient

    def cuts(self, graphs: list[int]) -> list[slice]:
        """Consecutive ones of these states, together few enough for one call, or one by itself."""
        ends, rows = [0], 0
        for at, graph in enumerate(graphs):
            rows += self._sizes[graph]
            if rows > self._most and at > ends[-1]:
                ends.append(at)
                rows = self._sizes[graph]
        return [slice(lo, hi) for lo, hi in zip(ends, [*ends[1:], len(graphs)])]

    def best(self, params: Parameters, envs: list[Environment], graphs: list[int]) -> np.ndarray:
        """best_nodes of these: [envs] int64 nodes. Raises Diverged."""
        nodes, bad = self.kernels.best(*self._states(envs, graphs), params.flat)
        if bad:
            raise Diverged(NAN_SCORE)
        return nodes

    def draw(self, params: Parameters, envs: list[Environment], graphs: list[int], key: int) -> np.ndarray:
        """draw_nodes of these: [envs] int64 nodes, by the noise of a key. Raises Diverged."""
        nodes, bad = self.kernels.draw(*self._states(envs, graphs), params.flat, key)
        if bad:
            raise Diverged(NAN_SCORE)
        return nodes

    def play(
        self,
        graphs: np.ndarray,
        totals: list[StateTotals],
        seen: "Choices | np.ndarray",
        weights: tuple[Parameters, Parameters | None],
        nodes: np.ndarray,
    ) -> PlayedStates:
        """States in which a policy chose nodes [states] int64. Raises Diverged.

        graphs    [states] int64, those of a graph one behind the other
        seen      the choices that led to the states, or where `wants_codes` their codes [rows]
        weights   of the network, and of a linear head for values or None
        """
        look = Looks(self._numbers(totals), self.tables.own_values(totals), _alive(totals))
        if isinstance(seen, Choices):
            look.chosen, look.begin, look.count = seen.chosen, seen.begin, seen.count
        else:
            look.code = np.ascontiguousarray(seen, dtype=np.int32)
        params, value = weights
        played = self.kernels.play(graphs, look, params.flat, value and value.flat, nodes)
        if played is None:
            raise Diverged(NAN_SCORE)
        return played

    def _states(self, envs: list[Environment], graphs: list[int]) -> tuple[np.ndarray, Looks, bool]:
        """The states of environments as the kernels want them."""
        every = self.net.paper and self.net.pools_to_choose
        code = np.ascontiguousarray(codes_of(envs, every), dtype=np.int32)
        totals = [env.totals for env in envs]
        return (
            np.array(graphs, dtype=np.int64),
            Looks(self._numbers(totals), self.tables.own_values(totals), _alive(totals), code),
            every,
        )

    def _numbers(self, totals: list[StateTotals]) -> np.ndarray:
        """[states] int32, the tables of states, which the kernels know from now on."""
        numbers = np.array(self.tables.numbers(totals), dtype=np.int32)
        if self._told != self.tables.changed:
            self._told = self.tables.changed
            factors = self.tables.factors if self.net.policy.mean_degree else None
            self.kernels.set_tables(self.tables.features, factors)
        return numbers


@dataclass
class Choices:
    """What led to some states: state i has count[i] of `chosen`, from begin[i] on; all int64."""

    chosen: np.ndarray
    begin: np.ndarray
    count: np.ndarray


def _give_choices(sample: Sample, before: Looks, after: Looks) -> None:
    """Tell of the choices that led to the states: those before are the first of those after."""
    if (found := sample.collected) is not None:
        after.chosen = before.chosen = found.chosen
        after.begin = before.begin = found.begin
        before.count, after.count = found.before, found.after
        return
    after.chosen = before.chosen = np.concatenate(sample.after, dtype=np.int64)
    after.count = np.array([len(each) for each in sample.after], dtype=np.int64)
    before.count = np.array([len(each) for each in sample.before], dtype=np.int64)
    after.begin = before.begin = np.cumsum(after.count) - after.count


def _alive(totals: list[StateTotals]) -> np.ndarray:
    """[states] int64, the nodes that embeddings are the mean over."""
    return np.array([each.alive for each in totals], dtype=np.int64)


def _code_rules(problem: Problem) -> CodeRules | None:
    """How lesson.c makes the codes of a problem's states; None: it is told them."""
    if problem.dynamics in LEAST_NEIGHBOURS:
        return CodeRules(BY_DEGREE, problem.closed, LEAST_NEIGHBOURS[problem.dynamics])
    if problem.dynamics == "field" and problem.compiled_field == "domination":
        return CodeRules(BY_GAIN, problem.closed)
    if problem.dynamics == "family":
        return CodeRules(BY_FAMILY, problem.closed)
    table = side_codes(problem) if problem.dynamics == "sides" else None
    return None if table is None else CodeRules(BY_SIDES, code_of=table.code_of)


def _offsets(net: QNetwork, params: Parameters) -> tuple[list[int], int, int, int, int, int, int]:
    """Where the weights begin in the flat vector, as LessonKernels wants them."""
    first = {name: each.start for name, each in params.slices.items()}
    rounds = range(net.embedding.layers)
    names = ["embed.W" if net.embedding.shared else f"embed.W{layer + 1}" for layer in rounds]
    head = (first.get(f"head.{name}", -1) for name in ("theta5", "theta6", "theta7a", "theta7b"))
    return [first[name] for name in names], *head, first.get("embed.theta2", -1), params.size
