"""Policy evaluation: scores of all nodes of one state and the best of them, ours against PyTorch.

Both sides have the state at hand: which nodes are gone, live degrees, totals; PyTorch also the adjacency of
the residual graph. So neither the paper's rebuild nor its environment is in these times. Ours is one compiled
call (app/rl/compiled_lesson.py), as where a learner acts and where sets of graphs are solved; "product by
product" is what several ranks, and selections of many nodes at once, ask for.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bench import subjects
from bench.harness import Effort, Record, compare
from bench.opponents import FORM_NAMES, about, torch_agent

__all__ = ["about", "measure"]
GOALS = {"ER n=1,920 p=.065": ">= 5", "ER n=2,000 p=.15": ">= 5", "BA n=14,400 d=4": ">= 3"}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """The whole graph, against all forms, and the middle of an episode, against CSR."""
    group, net = subjects.open_group(), subjects.paper_network()
    for name in list(GOALS)[: 1 if quick else None]:
        block = subjects.load_block(group, name)
        learner = subjects.paper_agent(group, block, net)
        order = np.array(learner.replay.episodes[0].actions, dtype=np.int64)
        batch = subjects.StateBatch(group, [(block, 1)])
        for removed, where in ((order[:0], "whole graph"), (order[: len(order) // 2], "half-way")):
            env = subjects.state_after(group, block, removed)
            for form in FORM_NAMES if len(removed) == 0 else ("csr",):
                agent = torch_agent(form, block, learner)
                states = agent.graph.states(form, [removed], [env.totals])
                goal = ">= 1" if form == "csr" else GOALS[name]
                yield compare(
                    f"{name}, {where}", FORM_NAMES[form],
                    partial(_ours, learner, env), partial(_theirs, agent, states), effort, goal,
                )  # fmt: skip
                if form == "csr":
                    yield compare(
                        f"{name}, {where}, product by product", FORM_NAMES[form],
                        partial(_by_products, group, net, learner.params, batch, env),
                        partial(_theirs, agent, states), effort,
                    )  # fmt: skip


def _ours(learner: Any, env: Any, pair: int) -> int:
    return int(learner.best_actions([0], [env])[0])


def _by_products(group: Any, net: Any, params: Any, batch: Any, env: Any, pair: int) -> int:
    return subjects.evaluate(group, net, params, batch, env)


def _theirs(agent: Any, states: Any, pair: int) -> int:
    return agent.evaluate(states)
