"""GraphGym: the environments of this program as one of Gymnasium, for outside learners (extra `gym`)."""

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np

try:
    import gymnasium
except ImportError as missing:
    raise ImportError("app.rl.gym needs Gymnasium: pip install gymnasium") from missing
from gymnasium import spaces

from app.comm.group import Group
from app.errors import CaseError
from app.problems.problem import Problem
from app.rl.dynamics import begin_environment
from app.rl.env import Environment, step_together
from app.rl.rollout import judged
from app.sparse.rowblock import RowBlock
from app.text import is_whole, show

NO_EDGE = -1  # fills edge lists


class GraphGym(gymnasium.Env):
    """Episodes of a problem on some graphs, which lie whole on one rank; arrays are padded to the largest.

    Observation   features [N, F] float32, what the network is told of each node (Problem.features)
                  edges [2, M] int64, both directions of every edge of the graph, then -1
                  weights [M] float32, of these edges, then 0; where a graph has weights
                  mask [N] int8, one for nodes that may be chosen
    Action        a node. One that may not be chosen changes nothing and earns -penalty.
    Reward        Problem.reward of each choice; the return of an episode is what is maximised
    Episode       `reset` draws a graph, or takes options={"graph": number}; it ends with the solution, or is
                  cut after `most` steps for each node, which only refused actions can reach
    info          action_mask: the mask; objective: of the nodes chosen so far; graph: its number; accepted:
                  whether the last action was a choice

    group         one rank     blocks   its graphs     shaping   as agent.shaping
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        group: Group,
        problem: Problem,
        blocks: list[RowBlock],
        shaping: str = "none",
        penalty: float = 1.0,
        most: int = 4,
    ) -> None:
        if group.size != 1:
            raise CaseError(f"a Gymnasium environment is played by one rank, got {group.size}")
        if shaping not in ("caro_wei", "none"):
            raise CaseError(f'found shaping {shaping!r}; "caro_wei" or "none" would be right')
        numbers = isinstance(penalty, Real) and math.isfinite(penalty) and is_whole(most) and most >= 1
        if not numbers:
            found = f"penalty {show(penalty)}, most {show(most)}"
            raise CaseError(f"found {found}; numbers, most at least 1, would be right")
        self.group, self.problem, self.blocks = group, problem, blocks
        self.shaping, self.penalty, self.most = shaping, penalty, most
        self.playable = [
            i for i, block in enumerate(blocks) if not begin_environment(group, block, problem).done
        ]
        if not self.playable:
            raise CaseError("a Gymnasium environment needs a graph on which there is something to choose")
        self._edges = [_edges_of(block) for block in blocks]
        self._weighted = any(weights is not None for _, weights in self._edges)
        self.nodes = max(block.n for block in blocks)
        self.entries = max(max(edges.shape[1] for edges, _ in self._edges), 1)
        self.columns = problem.feature_counts["scale_free"]
        self.action_space = spaces.Discrete(self.nodes)
        self.observation_space = spaces.Dict(self._spaces())
        self.env: Environment | None = None
        self._steps = 0

    def _spaces(self) -> dict[str, spaces.Space]:
        """What each part of an observation may be."""
        found = {
            "features": spaces.Box(-np.inf, np.inf, (self.nodes, self.columns), np.float32),
            "edges": spaces.Box(NO_EDGE, self.nodes - 1, (2, self.entries), np.int64),
            "mask": spaces.MultiBinary(self.nodes),
        }
        if self._weighted:
            found["weights"] = spaces.Box(-np.inf, np.inf, (self.entries,), np.float32)
        return found

    # ---- playing ----------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode: the first observation, and info."""
        super().reset(seed=seed)
        drawn = self.playable[int(self.np_random.integers(len(self.playable)))]
        asked = (options or {}).get("graph", drawn)
        if not is_whole(asked) or not 0 <= asked < len(self.blocks):
            raise CaseError(f"found graph {asked!r}; 0..{len(self.blocks) - 1} would be right")
        self.graph = int(asked)
        self.env = begin_environment(self.group, self.blocks[self.graph], self.problem)
        self._steps = 0
        return self._observation(), self._info(accepted=False)

    def step(self, action: int) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Choose a node: observation, reward, whether the solution is complete, whether it was cut, info."""
        if self.env is None:
            raise CaseError("step: no episode has begun; a call of reset() before would be right")
        env, node = self.env, int(action)
        self._steps += 1
        accepted = 0 <= node < self.nodes and bool(self.action_masks()[node]) and not env.done
        reward = -self.penalty
        if accepted:
            before = env.totals
            step_together(self.group, [env], [np.array([node])])
            reward = self.problem.reward(before, env.totals, 1, self.shaping)
        cut = not env.done and self._steps >= self.most * self.nodes
        return self._observation(), float(reward), env.done, cut, self._info(accepted)

    def action_masks(self) -> np.ndarray:
        """[N] bool, the nodes that may be chosen."""
        mask = np.zeros(self.nodes, dtype=bool)
        mask[self.env.candidates_own()] = True
        return mask

    # ---- what is seen -----------------------------------------------------------------------------------

    def _observation(self) -> dict[str, np.ndarray]:
        """The state as `observation_space` says: features by node, edges and weights, padded; the mask."""
        env, n = self.env, self.env.block.n
        code = env.codes_own()[:n].astype(np.float32)[:, None]
        state = np.array([self.problem.state(env.totals)], dtype=np.float32)
        features = np.zeros((self.nodes, self.columns), dtype=np.float32)
        features[:n] = self.problem.features("scale_free", np, code, state) * (code > 0)
        edges, weights = self._edges[self.graph]
        padded = np.full((2, self.entries), NO_EDGE, dtype=np.int64)
        padded[:, : edges.shape[1]] = edges
        seen = {"features": features, "edges": padded, "mask": self.action_masks().astype(np.int8)}
        if self._weighted:
            seen["weights"] = np.zeros(self.entries, dtype=np.float32)
            seen["weights"][: edges.shape[1]] = 1 if weights is None else weights
        return seen

    def _info(self, accepted: bool) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "objective": judged(self.env),
            "graph": self.graph,
            "accepted": accepted,
        }


def _edges_of(block: RowBlock) -> tuple[np.ndarray, np.ndarray | None]:
    """[2, m] both directions of every edge, in the order of the rows, and their weights [m] or None."""
    counts, _, weights = block.extended_rows(np.arange(block.n))
    _, columns = block.global_rows(np.arange(block.n))
    return np.stack([np.repeat(np.arange(block.n), counts), columns]).astype(np.int64), weights
