"""QNetwork: structure2vec embedding and action-evaluation head (RL4GO eqs. 1 and 2), forward and backward."""

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from app.case.policy import PolicyCase
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.gnn.small import small_gram, small_product
from app.gnn.structure2vec import NodeInputs, Structure2Vec
from app.memory.shelf import Shelf
from app.memory.tiers import TierBudget
from app.numerics.products import Finish, Operand
from app.problems.problem import FIRST_ALIVE, Problem
from app.sparse.batch import StateBatch

if TYPE_CHECKING:
    from app.gnn.layer_embedding import LayerEmbedding

Array = Any
# Keys of [policy] that no other model reads.
OF_STRUCTURE2VEC = ("shared_layers", "self_weight", "mean_degree", "edge_weights")


@dataclass
class Evaluation:
    """What backward needs of one forward pass, and the embeddings that scores are made of."""

    batch: StateBatch
    inputs: NodeInputs
    saved: list[Any]
    H_own: Array
    pooled: Array | None  # [states, K]
    mean_factor: Array | None  # [states, 1], 1/alive, or 1 with the paper's plain sum; None: not needed


class QNetwork:
    """Scores of all candidate nodes of a batch of states.

    Source    RL4GO eq. 2:  Q(v) = theta7^T relu[theta5 p || theta6 h_v],  p = sum_u h_u
    Forward   V = [h | x]   (head "paper": V = h)
              separate   Q = relu(V theta6) theta7b + relu(p theta5) theta7a
              mixing     Q = relu(V theta6 + p theta5) theta7b
    Shapes    V [rows, K (+F)]  theta5 [K, hidden]  theta6 [K (+F), hidden]
              theta7a, theta7b [hidden, 1]  p [states, K]
    Backward  only the chosen rows carry a gradient; there are as many as states, so they are brought to all
              ranks and the head runs backward on them replicated (`chosen_backward`)
              with e = dQ [S, 1]:  dZ6 = (e theta7b^T) * [Z6 > 0];  dtheta6 = V^T dZ6;  dV = dZ6 theta6^T
              dp of "separate" = ((e theta7a^T) * [p theta5 > 0]) theta5^T, of "mixing" = dZ6 theta5^T
              dH = dV at the chosen rows + mean_factor * dp at every present row
    Note      with "separate" the pooled half adds one constant per state: it takes part in learning the
              value but never in a choice, so `local_scores` leaves it out and selecting needs no sum over
              nodes.
    Differs   the default pools the mean over alive nodes and gives the head the node features as well; the
              cases inputs/paper_*.toml restore the paper's form.
    """

    def __init__(self, policy: PolicyCase, problem: Problem) -> None:
        self.policy, self.problem = policy, problem
        self.paper = policy.features == "paper"
        if policy.features not in problem.feature_counts:
            known = ", ".join(problem.feature_counts)
            raise CaseError(f"policy.features: problem {problem.name!r} has {known}, not {policy.features!r}")
        self.F = problem.feature_counts[policy.features]
        self.K, self.hidden = policy.dimension, policy.hidden
        _check_hubs(policy, problem)
        self.embedding = _make_embedding(policy, self.F)
        # By entries and Problem.state: what one state's codes look like (app/rl/incremental.py).
        self.code_tables: dict[tuple[int, tuple[float, ...]], tuple[Array, np.ndarray]] = {}

    def playing(self, problem: Problem) -> "QNetwork":
        """The same network on the states of a problem of the same kind."""
        other = copy(self)
        other.problem = problem
        return other

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Parameter shapes by name."""
        shapes = self.embedding.shapes()
        shapes["head.theta5"] = (self.K, self.hidden)
        shapes["head.theta6"] = (self.K + (0 if self.paper else self.F), self.hidden)
        if self.policy.head == "separate":
            shapes["head.theta7a"] = (self.hidden, 1)
        shapes["head.theta7b"] = (self.hidden, 1)
        return shapes

    def new_parameters(self, device: Any, seed: int) -> Parameters:
        """Freshly drawn parameters."""
        params = Parameters(device, self.shapes())
        params.draw_glorot(seed, self.embedding.constants())
        return params

    def limit_memory(self, device: Any, budget: TierBudget) -> None:
        """Let what backward passes need lie in two tiers of memory; no bit changes. Raises CaseError."""
        if not isinstance(self.embedding, Structure2Vec):
            raise one_tier(self.policy)
        self.embedding.shelf = Shelf(device, budget)

    @property
    def pools_to_choose(self) -> bool:
        """True when a choice needs the sum over embeddings."""
        return self.policy.head == "mixing"

    # ---- inputs -----------------------------------------------------------------------------------------

    def inputs(
        self, batch: StateBatch, code_own: Array, totals: list[Any], every: bool = False
    ) -> NodeInputs:
        """Node inputs of a batch of states.

        code_own   [rows] int32   what each node looks like (Problem.code), 0 on padding
        totals     one per state
        every      True: codes of every node; False: of those that a choice needs, since nothing is summed
                   over nodes, or no other node has an embedding
        Ranks      all call (an exchange where edge weights are used)
        """
        tables = [batch.device.put(each) for each in self.tables(batch, totals)]
        return self.inputs_of(batch, code_own, tables, every)

    def tables(self, batch: StateBatch, totals: list[Any]) -> list[np.ndarray]:
        """What `inputs` makes node inputs of beside the codes, on the host and the same on all ranks.

        returns   features [t, F] of every entry of a state's table, one below the other: a feature is a
                  function of the state's numbers (Problem.state) and the node's code; 1 for entries of nodes
                  that are alive [t, 1]; what neighbour sums are multiplied by: 1 over the first number of
                  each state [states], with policy.hub_degree for each entry [t]
        """
        return self.tables_of(self._entries_of(batch), totals)

    def tables_of(self, entries: int, totals: list[Any]) -> list[np.ndarray]:
        """`tables` of so many entries for each state."""
        state = np.array([self.problem.state(t) for t in totals], dtype=np.float32)
        # The paper's features are of the code alone: one table serves all states.
        own = state[:1] if self.paper else state
        code = np.arange(entries, dtype=np.float32)[:, None]
        table = self.problem.features(self.policy.features, np, code, own[:, None])
        table[..., 0, :] *= 0
        number = _entries(entries, len(own))
        factors = 1 / state[:, 0]
        if self.policy.hub_degree:
            factors = self.sum_factors(number, np.repeat(state[:, 0], entries))
        return [table.reshape(-1, self.F), _one(number >= FIRST_ALIVE), factors]

    def sum_factors(self, code: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """[k] float32, what the neighbour sum of a node of a code [k, 1] is multiplied by in its state.

        1 / m, or 1 / max(m, d / h) with h = policy.hub_degree: the sum of h m neighbours, where a node has
        more. Else sums of hubs of large graphs leave what was ever learned from far behind.

        mean   [k] m, the first number of each one's state    code   of d neighbours (Problem.neighbours)
        """
        if self.policy.hub_degree:
            share = self.problem.neighbours(code[:, 0]) / np.float32(self.policy.hub_degree)
            mean = np.maximum(mean, share)
        return 1 / mean

    def inputs_of(self, batch: StateBatch, code_own: Array, tables: list[Array], every: bool) -> NodeInputs:
        """`inputs` from tables on the device. Ranks: all call (an exchange where edge weights are used)."""
        problem, (table, alive_entries, share) = self.problem, tables
        candidate_own = alive_own = present_own = (code_own >= problem.first_candidate).astype(np.float32)
        if every or problem.first_candidate > FIRST_ALIVE + 1:
            alive_own = (code_own >= FIRST_ALIVE).astype(np.float32)
            present_own = (code_own > 0).astype(np.float32)
        entries, index = self._entries_of(batch), code_own
        if len(table) > entries:
            index = code_own + batch.state_of_row() * np.int32(entries)
        x_own = Operand(table, index)
        scale_own = alive_own
        if self.policy.mean_degree:
            scale_own = alive_own * self._sum_factors_own(batch, share, index)
        weights_own = self._edge_sums(batch, alive_own, x_own) if self.policy.edge_weights else None
        mirror = self._mirror(batch, len(table)) if weights_own is None else None
        return NodeInputs(
            x_own, alive_entries, alive_own, candidate_own, present_own, scale_own, weights_own, mirror
        )

    def _sum_factors_own(self, batch: StateBatch, factors: Array, index: Array) -> Array:
        """[rows] float32, what neighbour sums are multiplied by; factors, index: see `tables`."""
        if self.problem.own_degree:
            return batch.inverse_degrees()
        return factors[index] if self.policy.hub_degree else batch.spread(factors)

    def _mirror(self, batch: StateBatch, rows: int) -> Array | None:
        """[rows of the table] int64, the row of each one's mirror image; None where no edge shows one."""
        if not (self.problem.mirrors and any(block.signed for block in batch.blocks)):
            return None
        key = f"mirror {self.problem.name} {rows}"
        if key not in batch.kept:
            entries, degree = self._entries_of(batch), max(block.max_degree for block in batch.blocks)
            image = self.problem.mirror(np.arange(entries), degree)
            batch.kept[key] = batch.device.put((np.arange(0, rows, entries)[:, None] + image).reshape(-1))
        return batch.kept[key]

    def _edge_sums(self, batch: StateBatch, alive_own: Array, x_own: Operand) -> Operand:
        """Sums of edge weights to live neighbours; the degree, hence a table, where all weights are one."""
        if any(block.weighted for block in batch.blocks) or not self.problem.degree_codes:
            alive_column = batch.device.xp.ascontiguousarray(alive_own[:, None])
            return Operand(batch.weight_sums(alive_column) * alive_column)
        entries = self._entries_of(batch)
        degree = np.maximum(_entries(entries, len(x_own.X) // entries) - FIRST_ALIVE, 0)
        return Operand(batch.device.put(np.concatenate([degree, np.zeros_like(degree)], axis=1)), x_own.index)

    def _entries_of(self, batch: StateBatch) -> int:
        """Entries of one feature table of a batch."""
        return self.entries(max(block.max_degree for block in batch.blocks))

    def entries(self, max_degree: int) -> int:
        """Entries of a state's table, a multiple of 8."""
        return -(-self.problem.entries(max_degree) // 8) * 8

    # ---- forward ----------------------------------------------------------------------------------------

    def evaluate(
        self, params: Parameters, batch: StateBatch, inputs: NodeInputs, totals: list[Any], pool: bool,
        keep: bool = True,
    ) -> Evaluation:  # fmt: skip
        """Embed a batch of states; `pool` also sums the embeddings; keep False: for values only.

        Ranks   all call
        """
        pool = pool or self.pools_to_choose
        H_own, saved, sums = self.embedding.embed(params, batch, inputs, pool=pool, keep=keep)
        pooled = None
        factor = self._mean_factor(batch.device, totals) if pool or keep else None
        if pool:
            pooled = batch.sum_states(sums) * factor
        return Evaluation(batch, inputs, saved, H_own, pooled, factor)

    def _mean_factor(self, device: Any, totals: list[Any]) -> Array:
        """[states, 1], by which sums over embeddings are multiplied."""
        ones = [[1.0 if self.paper else 1.0 / max(t.alive, 1)] for t in totals]
        return device.put(np.array(ones, dtype=np.float32))

    def local_scores(self, params: Parameters, e: Evaluation) -> Array:
        """[rows] scores of candidates up to one constant per state, enough to choose by; 0 on other rows."""
        base = None
        if self.policy.head == "mixing":
            base = e.batch.spread(small_product(e.batch.device, e.pooled, params["head.theta5"]))
            base = e.batch.device.xp.broadcast_to(base, (e.batch.rows, self.hidden))
        then = Finish(base=base, relu=True, scale=e.inputs.candidate_own)
        return e.batch.device.score(
            self.head_parts(e.H_own, e.inputs.x_own), params["head.theta6"], params["head.theta7b"], then
        )

    def pooled_scores(self, params: Parameters, e: Evaluation) -> Array:
        """[states] the constant that local_scores leaves out."""
        xp, device = e.batch.device.xp, e.batch.device
        if self.policy.head == "mixing":
            return xp.zeros(e.batch.states, dtype=np.float32)
        hidden = xp.maximum(small_product(device, e.pooled, params["head.theta5"]), 0)
        return small_product(device, hidden, params["head.theta7a"])[:, 0]

    def head_parts(self, H: Array, x: Operand) -> list[Operand]:
        """The columns of the head's input."""
        return [Operand(H)] if self.paper else [Operand(H), x]

    def _head_rows(self, xp: Any, e: Evaluation, rows: Array) -> Array:
        """The head's input at some rows, written out."""
        H = e.H_own[rows]
        return H if self.paper else xp.concatenate([H, e.inputs.x_own.X[e.inputs.x_own.index[rows]]], axis=1)

    # ---- the chosen actions -----------------------------------------------------------------------------

    def chosen_values(self, params: Parameters, e: Evaluation, nodes: np.ndarray) -> tuple[np.ndarray, Any]:
        """Q of one node per state, and what chosen_backward needs.

        nodes     [states] global node numbers
        returns   [states] float32 on the host, the same on all ranks
        Ranks     all call; the chosen rows are merged (Allreduce of bits)
        """
        batch, device, xp = e.batch, e.batch.device, e.batch.device.xp
        row = batch.row_of(np.arange(batch.states), nodes)
        held = np.flatnonzero(row >= 0)
        rows_held = device.put(row[held])
        V = xp.zeros((batch.states, params["head.theta6"].shape[0]), dtype=np.float32)
        V[device.put(held)] = self._head_rows(xp, e, rows_held)
        V = batch.group.merge_rows(V)
        Z6 = small_product(device, V, params["head.theta6"])
        Z5 = small_product(device, e.pooled, params["head.theta5"])
        if self.policy.head == "mixing":
            Z6 = Z6 + Z5
        q = small_product(device, xp.maximum(Z6, 0), params["head.theta7b"])
        if self.policy.head == "separate":
            q = q + small_product(device, xp.maximum(Z5, 0), params["head.theta7a"])
        return device.get(q[:, 0]), (V, Z6, Z5, held, rows_held)

    def chosen_backward(self, params: Parameters, e: Evaluation, kept: Any, dq: np.ndarray) -> "Gradient":
        """Addends of the gradient of a loss whose derivative by chosen_values is dq [states].

        Ranks     all call
        """
        V, Z6, Z5, held, rows_held = kept
        device, xp = e.batch.device, e.batch.device.xp
        err = device.put(dq.astype(np.float32)[:, None])
        head = {"head.theta7b": small_gram(device, xp.maximum(Z6, 0), err)}
        dZ6 = (err * params["head.theta7b"][:, 0]) * (Z6 > 0)
        head["head.theta6"] = small_gram(device, V, dZ6)
        if self.policy.head == "separate":
            head["head.theta7a"] = small_gram(device, xp.maximum(Z5, 0), err)
            dZ5 = (err * params["head.theta7a"][:, 0]) * (Z5 > 0)
        else:
            dZ5 = dZ6
        head["head.theta5"] = small_gram(device, e.pooled, dZ5)
        dV = small_product(device, dZ6, params["head.theta6"].T)
        dpool = small_product(device, dZ5, params["head.theta5"].T) * e.mean_factor
        # dH = dpool everywhere, dV more at the chosen rows; dZ = dH * [H > 0].
        dZ_own = device.gated_spread(dpool, e.batch.state_of_row(), e.H_own)
        chosen = device.put(held)
        dZ_own[rows_held] = (dpool[chosen] + dV[chosen, : self.K]) * (e.H_own[rows_held] > 0)
        return Gradient(head, self.embedding.backward(params, e.batch, e.inputs, e.saved, dZ_own))

    def flatten(self, params: Parameters, batch: StateBatch, gradient: "Gradient") -> Array:
        """The gradient [parameters]: the embedding's addends summed in one message, the head's as they are.

        Ranks     all call; identical on all
        """
        xp = batch.device.xp
        names = list(gradient.parts)
        parts_own = [gradient.parts[n] for n in names]
        summed = batch.sum_blocks(xp.ascontiguousarray(xp.concatenate(parts_own, axis=1)))
        whole, at = dict(gradient.head), 0
        for name, part_own in zip(names, parts_own):
            whole[name] = summed[at : at + part_own.shape[1]]
            at += part_own.shape[1]
        whole = self.embedding.finish(params, whole)
        flat = xp.empty(params.size, dtype=np.float32)
        for name, columns in params.slices.items():
            flat[columns] = whole[name].reshape(-1)
        return flat


def _check_hubs(policy: PolicyCase, problem: Problem) -> None:
    """Refuse policy.hub_degree where no sums are divided by the mean degree. Raises CaseError."""
    sized = problem.sized_codes and policy.model == "structure2vec"
    if policy.hub_degree and not (sized and policy.mean_degree and policy.features == "scale_free"):
        raise CaseError(
            "policy.hub_degree: is for structure2vec of covers, cliques, independent, dominating, feedback "
            "vertex and dismantling sets, with mean_degree and scale_free features, "
            f"got {policy.hub_degree}; 0 would be right"
        )


def one_tier(policy: PolicyCase) -> CaseError:
    """Why the rows of a policy's embedding cannot lie in two tiers of memory."""
    right = '"structure2vec", or no limit, would be right'
    return CaseError(f'memory.fast_mb: policy.model = "{policy.model}" keeps its rows in one tier; {right}')


def _make_embedding(policy: PolicyCase, features: int) -> "Structure2Vec | LayerEmbedding":
    """The embedding a case names. Raises CaseError."""
    if policy.model == "structure2vec":
        return Structure2Vec(
            policy.layers, policy.dimension, features, shared=policy.shared_layers,
            self_weight=policy.self_weight, edge_weights=policy.edge_weights,
        )  # fmt: skip
    for key in OF_STRUCTURE2VEC:
        if getattr(policy, key) != getattr(PolicyCase(), key):
            raise CaseError(f'policy.{key}: model = "{policy.model}" has none; "structure2vec" has')
    from app.gnn.layer_embedding import LayerEmbedding  # with all layers, of no use to most policies

    return LayerEmbedding(policy.model, policy.layers, policy.dimension, features)


def _entries(entries: int, tables: int) -> np.ndarray:
    """[tables * entries, 1] float32, the codes of the entries of feature tables, one below the other."""
    return np.tile(np.arange(entries, dtype=np.float32), tables)[:, None]


def _one(where: np.ndarray) -> np.ndarray:
    """float32, one where true."""
    return where.astype(np.float32)


@dataclass
class Gradient:
    """A gradient of which the sum over nodes is still due.

    head     by parameter name, the same on all ranks
    parts    by parameter name, [owned blocks, size]: addends of this rank's row blocks
    """

    head: dict[str, Array]
    parts: dict[str, Array]

    def add(self, other: "Gradient") -> None:
        """Add the gradient of another part of the minibatch, in place."""
        for mine, more in ((self.head, other.head), (self.parts, other.parts)):
            for name, value in more.items():
                mine[name] += value
