"""One training step: minibatch -> states -> loss -> gradient -> Adam, ours against PyTorch.

Both sides get the same minibatches of transitions (lists of removed nodes) from one episode of random
choices, with the paper's settings. PyTorch rebuilds the residual adjacency of every batch. Ours always
computes the values of the next states; PyTorch is measured doing the same ("target computed") and being given
them ("target stored"), which is about half of the work.
"""

from collections.abc import Iterator
from dataclasses import replace

from bench import subjects
from bench.harness import Effort, Record, asked_for, compare
from bench.opponents import FORM_NAMES, about, torch_agent
from bench.reference_torch import coo_bytes

__all__ = ["about", "measure"]
MOST_BYTES = 12e9  # a COO form that needs more is left out
SAMPLES = 8
CSR_GOAL = ">= 3"
COO_GOALS = {
    "ER n=1,920 p=.065": ">= 10", "ER n=2,000 p=.15": ">= 10", "BA n=14,400 d=4": ">= 6",
    "BA n=75 d=4": ">= 3",
}  # fmt: skip


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Every graph and batch, against all forms."""
    group, net = subjects.open_group(), subjects.paper_network()
    for name in list(COO_GOALS)[: 1 if quick else None]:
        block = subjects.load_block(group, name)
        for batch in (8,) if quick else (8, 96):
            for form in FORM_NAMES:
                if not asked_for(f"{name}, B={batch}, {FORM_NAMES[form]}"):
                    continue
                yield from _against(form, group, net, name, block, batch, effort)


def _against(
    form: str,
    group: subjects.Group,
    net: subjects.QNetwork,
    name: str,
    block: subjects.RowBlock,
    batch: int,
    effort: Effort,
) -> Iterator[Record]:
    """One graph, batch and form, with targets computed and stored."""
    ours = subjects.paper_agent(group, block, net)
    samples = subjects.draw_samples(ours, batch, SAMPLES)
    entries = batch * len(block.host_rows()[1])
    if form != "csr" and coo_bytes(form, entries) > MOST_BYTES:
        return
    if form != "csr" and batch > 8:
        effort = replace(effort, least=min(effort.least, 3))
    theirs = torch_agent(form, block, ours)
    goal = CSR_GOAL if form == "csr" else COO_GOALS[name]
    case = f"{name}, B={batch}"
    yield compare(
        case, f"{FORM_NAMES[form]}, target computed",
        lambda i: ours.learn(samples[i % SAMPLES]), lambda i: theirs.learn(samples[i % SAMPLES]),
        effort, goal,
    )  # fmt: skip
    if form != "csr" and batch > 8:
        return
    targets = [theirs.targets(sample) for sample in samples]
    yield compare(
        case, f"{FORM_NAMES[form]}, target stored",
        lambda i: ours.learn(samples[i % SAMPLES]),
        lambda i: theirs.learn(samples[i % SAMPLES], targets[i % SAMPLES]), effort,
    )  # fmt: skip
