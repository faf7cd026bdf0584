"""The Q-network's head at every node, forward and backward: the logits of a policy."""

from typing import Any

import numpy as np

from app.gnn.parameters import Parameters
from app.gnn.small import small_gram, small_product
from app.numerics.products import Finish, Operand
from app.rl.qnet import Evaluation, Gradient, QNetwork

Array = Any


def node_scores(net: QNetwork, params: Parameters, e: Evaluation) -> tuple[Array, Array]:
    """Scores z [rows], bit for bit those of QNetwork.local_scores, and the hidden layer [rows, hidden].

    Source    RL4GO eq. 2; with "separate" without the pooled half, which is one constant per state and
              cancels in a softmax
    Forward   R = candidate * relu(V theta6 [+ p theta5])        z = R theta7b        V = [h | x]
    Backward  `node_gradient`, with e = dz:
              dtheta7b = R^T e        dZ6 = (e theta7b^T) * [R > 0]        dtheta6 = V^T dZ6
              dV = dZ6 theta6^T       "mixing": D = sum_v dZ6 of each state, dtheta5 = p^T D, dp = D theta5^T
              dH = dV + mean_factor * dp at every present row
    Shapes    as in QNetwork
    Ranks     no messages forward; backward one sum over nodes with "mixing"
    """
    device, base = e.batch.device, None
    if net.policy.head == "mixing":
        base = e.batch.spread(small_product(device, e.pooled, params["head.theta5"]))
        base = device.xp.broadcast_to(base, (e.batch.rows, net.hidden))
    then = Finish(base=base, relu=True, scale=e.inputs.candidate_own)
    R_own = device.dense(net.head_parts(e.H_own, e.inputs.x_own), params["head.theta6"], then)
    return device.row_product(R_own, params["head.theta7b"])[:, 0], R_own


def node_gradient(
    net: QNetwork,
    params: Parameters,
    e: Evaluation,
    R_own: Array,
    dz_own: Array,
    dpooled: Array | None = None,
) -> Gradient:
    """Addends of the gradient of a loss with derivative dz_own [rows] by node_scores.

    dpooled   [states, K] or None: its derivative by the pooled embeddings through anything else
    Ranks     all call
    """
    batch, device, xp = e.batch, e.batch.device, e.batch.device.xp
    candidate_own = e.inputs.candidate_own
    err_own = xp.ascontiguousarray((dz_own * candidate_own)[:, None])
    dZ6_own = (err_own * params["head.theta7b"][:, 0]) * (R_own > 0)
    parts = {
        "head.theta7b": batch.gram_part([Operand(R_own)], err_own, candidate_own),
        "head.theta6": batch.gram_part(net.head_parts(e.H_own, e.inputs.x_own), dZ6_own, candidate_own),
    }
    head = {}
    if net.policy.head == "mixing":
        D = batch.pool(dZ6_own)
        head["head.theta5"] = small_gram(device, e.pooled, D)
        through = small_product(device, D, params["head.theta5"].T)
        dpooled = through if dpooled is None else dpooled + through
    else:  # the pooled half is in no choice
        head |= {name: xp.zeros_like(params[name]) for name in ("head.theta5", "head.theta7a")}
    base = None
    if dpooled is not None:
        base = device.gated_spread(dpooled * e.mean_factor, batch.state_of_row(), e.H_own)
    W = xp.ascontiguousarray(params["head.theta6"].T[:, : net.K])
    dZ_own = device.dense([Operand(dZ6_own)], W, Finish(base=base, gate=e.H_own))
    parts |= net.embedding.backward(params, batch, e.inputs, e.saved, dZ_own)
    return Gradient(head, parts)


class ValueHead:
    """The value of a state, linear in its pooled embedding.

    Forward   v = p w + b
    Backward  dw = p^T dv      db = sum dv      dp = dv w^T
    Shapes    p [states, K]    w [K, 1]    b [1, 1]    v [states]
    Ranks     replicated: p is already summed over nodes, so nothing is sent
    """

    def __init__(self, device: Any, K: int) -> None:
        self.device = device
        self.params = Parameters(device, {"value.w": (K, 1), "value.b": (1, 1)})

    def values(self, e: Evaluation) -> np.ndarray:
        """[states] float32 on the host."""
        found = small_product(self.device, e.pooled, self.params["value.w"]) + self.params["value.b"]
        return self.device.get(found[:, 0])

    def backward(self, e: Evaluation, dv: np.ndarray) -> tuple[Array, Array]:
        """The gradient [K + 1], and dp [states, K], of a loss with derivative dv [states]."""
        err = self.device.put(dv.astype(np.float32)[:, None])
        dw = small_gram(self.device, e.pooled, err)
        db = small_gram(self.device, self.device.xp.ones_like(err), err)
        return self.device.xp.concatenate([dw, db]), err * self.params["value.w"][:, 0]
