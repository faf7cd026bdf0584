"""RL4GO section 4.5 in plain PyTorch: the network and training step of app/rl, as their opponent in speed.

Forms of the adjacency of B states, each state a graph without its removed nodes:

    coo       a 3D sparse COO tensor [B, n, n], torch.bmm, autograd: the paper's own
    stacked   the same states along one diagonal, COO [B n, B n], torch.sparse.mm, autograd
    csr       the same as CSR with 32-bit indices, and a backward that uses A^T = A

Where PyTorch leaves a choice, the faster way is taken: the first round, whose embeddings are zero, makes no
product; the edge term is a column of degrees times one row; COO tensors are born sorted; the head of a
training step sees the chosen rows only. Graphs have no weights: all edges count one.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from app.case.policy import AgentCase, PolicyCase

FORMS = ("coo", "stacked", "csr")
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


class SymmetricProduct(torch.autograd.Function):
    """A X of a symmetric CSR matrix: the gradient by X is A dY (autograd would transpose A)."""

    @staticmethod
    def forward(ctx: Any, A: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
        """[rows, K]."""
        ctx.A = A
        return torch.sparse.mm(A, X)

    @staticmethod
    def backward(ctx: Any, dY: torch.Tensor) -> tuple[None, torch.Tensor]:
        """None for A, [rows, K] for X."""
        return None, torch.sparse.mm(ctx.A, dY)


@dataclass
class States:
    """B states of one graph, ready for the network.

    A         the adjacency of all states in one of the forms
    removed   [B, n, 1] float32   1 for removed nodes      degree  [B, n, 1] float32   live degrees
    mean      [B, 1, 1] mean live degree                   alive   [B, 1, 1] nodes with a live edge
    """

    form: str
    A: torch.Tensor
    removed: torch.Tensor
    degree: torch.Tensor
    mean: torch.Tensor
    alive: torch.Tensor

    def times(self, H: torch.Tensor) -> torch.Tensor:
        """A H for every state, [B, n, K]."""
        if self.form == "coo":
            return torch.bmm(self.A, H)
        product = SymmetricProduct.apply if self.form == "csr" else torch.sparse.mm
        return product(self.A, H.reshape(-1, H.shape[2])).view(H.shape)


class TorchGraph:
    """A graph whose residual graphs are built for any batch of states."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.n = len(indptr) - 1
        self.indptr = torch.from_numpy(indptr.astype(np.int64))
        self.column = torch.from_numpy(indices.astype(np.int32))
        rows = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(indptr))
        self.row = torch.from_numpy(rows)

    def states(self, form: str, removed: list[np.ndarray], totals: list[Any]) -> States:
        """Build the states in which `removed` [B] lists of nodes are gone.

        totals   what the environment knows of each state: mean degree, nodes with a live edge
        """
        gone = torch.zeros(len(removed), self.n, dtype=torch.bool)
        for state, nodes in zip(gone, removed):
            state[torch.from_numpy(nodes)] = True
        kept, counts = self._kept(~gone)
        A = self._csr(kept, counts) if form == "csr" else self._coo(form, kept)
        mean, alive = ([value] for value in ([t.mean_degree() for t in totals], [t.alive for t in totals]))
        return States(
            form, A, gone.float()[:, :, None], counts.float()[:, :, None],
            torch.tensor(mean).view(-1, 1, 1), torch.tensor(alive, dtype=torch.float32).view(-1, 1, 1),
        )  # fmt: skip

    def _kept(self, stays: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """For each state the numbers of its live edges, and the live degrees [B, n]."""
        kept, counts = [], []
        for state in stays:  # state by state the masks stay in the cache
            mask = state.index_select(0, self.row)
            mask &= state.index_select(0, self.column)
            kept.append(mask.nonzero()[:, 0])
            counts.append(torch.searchsorted(kept[-1], self.indptr).diff())
        return kept, torch.stack(counts)

    def _csr(self, kept: list[torch.Tensor], counts: torch.Tensor) -> torch.Tensor:
        """The states along the diagonal of a CSR matrix."""
        size = counts.numel()
        column = [self.column.index_select(0, edges) + b * self.n for b, edges in enumerate(kept)]
        indptr = torch.zeros(size + 1, dtype=torch.int32)
        torch.cumsum(counts.view(-1), 0, dtype=torch.int32, out=indptr[1:])
        column = torch.cat(column)
        ones = torch.ones(len(column))
        return torch.sparse_csr_tensor(indptr, column, ones, (size, size), check_invariants=False)

    def _coo(self, form: str, kept: list[torch.Tensor]) -> torch.Tensor:
        """The states as a 3D COO tensor, or along the diagonal of a matrix."""
        sizes = torch.tensor([len(edges) for edges in kept])
        state, edges = torch.arange(len(kept)).repeat_interleave(sizes), torch.cat(kept)
        row, column = self.row.index_select(0, edges).long(), self.column.index_select(0, edges).long()
        if form == "coo":
            where, shape = [state, row, column], (len(kept), self.n, self.n)
        else:
            where, shape = [row + state * self.n, column + state * self.n], (len(kept) * self.n,) * 2
        return torch.sparse_coo_tensor(
            torch.stack(where), torch.ones(len(edges)), shape, is_coalesced=True, check_invariants=False
        )


def scale_free(degree: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """[B, n, 7] node features, see app/problems/mvc.py."""
    d = degree.clamp(min=1)
    ratio = (mean / d).clamp(max=8)
    columns = [
        torch.ones_like(d), torch.log(1 + d / mean), ratio, ratio * ratio * 0.25, (degree == 1).float(),
        (degree == 2).float(), (1 / mean).expand_as(d),
    ]  # fmt: skip
    return torch.cat(columns, dim=2) * (degree > 0)


def add_product(Z: torch.Tensor, X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """Z + X W [B, n, m] in one pass."""
    return torch.addmm(Z.flatten(0, 1), X.flatten(0, 1), W).view(Z.shape)


class TorchNetwork:
    """The Q-network of app/rl/qnet.py (separate head): RL4GO eqs. 1 and 2 under autograd."""

    def __init__(self, policy: PolicyCase, arrays: dict[str, np.ndarray]) -> None:
        if policy.head != "separate":
            raise ValueError("the reference has the separate head only")
        self.policy, self.K = policy, policy.dimension
        self.paper = policy.features == "paper"
        self.F = 1 if self.paper else 7
        self.weights = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}

    def embed(self, s: States, w: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings [B, n, K] and node features [B, n, F] of the states (eq. 1)."""
        x = s.removed if self.paper else scale_free(s.degree, s.mean)
        base = H = None
        for layer in range(self.policy.layers):
            W = w["embed.W" if self.policy.shared_layers else f"embed.W{layer + 1}"]
            if base is None or not self.policy.shared_layers:
                base = self._own_part(s, x, W, w)
            H = torch.relu(base) if H is None else torch.relu_(self._add_neighbours(s, base, H, W))
            if not self.paper:
                H = H * (s.degree > 0)
        return H, x

    def _own_part(
        self, s: States, x: torch.Tensor, W: torch.Tensor, w: dict[str, torch.Tensor]
    ) -> torch.Tensor:
        """theta1 x_v + theta3 sum_u relu(theta2 w(v,u)), all weights one."""
        Z = x @ W[: self.F]
        if self.policy.edge_weights:
            Z = add_product(Z, s.degree, torch.relu(w["embed.theta2"]) @ W[self.F : self.F + self.K])
        return Z

    def _add_neighbours(
        self, s: States, base: torch.Tensor, H: torch.Tensor, W: torch.Tensor
    ) -> torch.Tensor:
        """base + theta4 sum_u h_u, with the options of app/gnn/structure2vec.py."""
        at = self.F + (self.K if self.policy.edge_weights else 0)
        N = s.times(H)
        if self.policy.mean_degree:
            N = N / s.mean
        Z = add_product(base, N, W[at : at + self.K])
        return add_product(Z, H, W[at + self.K :]) if self.policy.self_weight else Z

    def scores(self, s: States, w: dict[str, torch.Tensor] | None = None) -> torch.Tensor:
        """[B, n], Q of every node (eq. 2)."""
        w = w or self.weights
        H, x = self.embed(s, w)
        return self._local(H, x, w) + self._pooled(H, s, w)

    def values(self, s: States, nodes: torch.Tensor) -> torch.Tensor:
        """[B], Q of one node per state."""
        H, x = self.embed(s, self.weights)
        states = torch.arange(len(nodes))
        chosen = self._local(H[states, nodes][:, None], x[states, nodes][:, None], self.weights)
        return (chosen + self._pooled(H, s, self.weights))[:, 0]

    def _local(self, H: torch.Tensor, x: torch.Tensor, w: dict[str, torch.Tensor]) -> torch.Tensor:
        V = H if self.paper else torch.cat([H, x], dim=2)
        return (torch.relu_(V @ w["head.theta6"]) @ w["head.theta7b"])[:, :, 0]

    def _pooled(self, H: torch.Tensor, s: States, w: dict[str, torch.Tensor]) -> torch.Tensor:
        """[B, 1], the part of eq. 2 that comes from the sum over nodes."""
        pooled = H.sum(dim=1) if self.paper else H.sum(dim=1) / s.alive[:, 0].clamp(min=1)
        return torch.relu(pooled @ w["head.theta5"]) @ w["head.theta7a"]


def best_scores(scores: torch.Tensor, s: States) -> tuple[torch.Tensor, torch.Tensor]:
    """[B] score and node of the best candidate of every state."""
    best = scores.masked_fill(s.degree[:, :, 0] == 0, -torch.inf).max(dim=1)
    return best.values, best.indices


class TorchAgent:
    """The learner of app/rl/agent.py: squared TD error, target network, Adam."""

    def __init__(
        self, graph: TorchGraph, policy: PolicyCase, case: AgentCase, arrays: dict[str, np.ndarray], form: str
    ) -> None:
        self.graph, self.case, self.form = graph, case, form
        self.net = TorchNetwork(policy, arrays)
        self.target = {name: weight.detach().clone() for name, weight in self.net.weights.items()}
        self.steps = 0
        betas = (case.adam_beta1, case.adam_beta2)
        weights = list(self.net.weights.values())
        self.optimiser = torch.optim.Adam(weights, lr=case.learning_rate, betas=betas, eps=case.adam_epsilon)

    @torch.no_grad()
    def evaluate(self, s: States) -> int:
        """The best candidate of one state."""
        return int(best_scores(self.net.scores(s), s)[1])

    @torch.no_grad()
    def targets(self, sample: Any) -> torch.Tensor:
        """[B] returns plus discounted values of the next states by the target network."""
        later = self.graph.states(self.form, sample.after, sample.totals_after)
        values = best_scores(self.net.scores(later, self.target), later)[0]
        values = torch.where(torch.isinf(values), 0, values)
        return torch.from_numpy(sample.returns) + torch.from_numpy(sample.discounts) * values

    def loss(self, sample: Any, target: torch.Tensor) -> torch.Tensor:
        """Mean squared TD error of a minibatch, with its gradient left on the weights."""
        now = self.graph.states(self.form, sample.before, sample.totals_before)
        q = self.net.values(now, torch.from_numpy(sample.nodes))
        self.optimiser.zero_grad()
        loss = torch.mean((q - target) ** 2)
        loss.backward()
        return loss.detach()

    def learn(self, sample: Any, target: torch.Tensor | None = None) -> float:
        """One gradient step on a minibatch; returns its loss.

        target   [B] stored targets; None: computed here by a forward pass over the next states
        """
        loss = self.loss(sample, self.targets(sample) if target is None else target)
        self.optimiser.step()
        self.steps += 1
        if self.steps % self.case.target_every == 0:
            for name, weight in self.net.weights.items():
                self.target[name].copy_(weight.detach())
        return float(loss)


def coo_bytes(form: str, entries: int) -> int:
    """Memory that a training step on this many live entries takes in a COO form, roughly.

    The tensor itself has 8 bytes for each of its indices and 4 for the value; the 3D form sorts its transpose
    in the backward pass: keys, permutation and the sorted copy.
    """
    tensor = (28 if form == "coo" else 20) * entries
    return tensor * (5 if form == "coo" else 3)
