"""The PyTorch side of the measurements, made from our side's graph and weights."""

import numpy as np
import scipy
import torch

from app.case.policy import AgentCase, PolicyCase
from app.recipes import PAPER_AGENT
from app.rl.agent import Agent
from app.sparse.rowblock import RowBlock
from bench.reference_torch import TorchAgent, TorchGraph

FORM_NAMES = {
    "csr": "PyTorch CSR",
    "coo": "PyTorch COO, 3D",
    "stacked": "PyTorch COO, along a diagonal",
}


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__, "torch": torch.__version__}


def torch_graph(block: RowBlock) -> TorchGraph:
    """A graph held by one rank, without padding."""
    torch.set_num_threads(1)
    indptr, indices = block.host_rows()
    return TorchGraph(indptr[: block.n + 1], indices)


def make_agent(
    form: str,
    block: RowBlock,
    policy: PolicyCase,
    arrays: dict[str, np.ndarray],
    case: AgentCase = PAPER_AGENT,
) -> TorchAgent:
    """A PyTorch learner with these weights."""
    return TorchAgent(torch_graph(block), policy, case, arrays, form)


def torch_agent(form: str, block: RowBlock, agent: Agent) -> TorchAgent:
    """A PyTorch learner that starts where ours stands."""
    return make_agent(form, block, agent.net.policy, agent.params.host(), agent.case)
