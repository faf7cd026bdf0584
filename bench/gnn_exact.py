"""The gradients of a graph convolutional network in float64: what every program's float32 is held against."""

import numpy as np

from bench.gnn_case import GcnCase


def loss_and_gradients(case: GcnCase) -> tuple[float, dict[str, np.ndarray]]:
    """The mean cross-entropy of the training nodes at the first weights, and its gradient by each of them.

    Forward   Z_l = A (H_{l-1} W_l) + b_l     H_l = relu(Z_l), H_0 = X; no relu after the last layer
    Backward  dZ_L = (softmax(Z_L) - onehot) / m on training rows, else 0     db_l = sum of dZ_l over nodes
              dS = A dZ_l (A is symmetric)    dW_l = H_{l-1}^T dS    dZ_{l-1} = (dS W_l^T) * [Z_{l-1} > 0]
    """
    A = case.adjacency(np.float64)
    weights = {name: array.astype(np.float64) for name, array in case.weights().items()}
    inputs = [case.X.astype(np.float64)]
    for layer in range(1, case.layers + 1):
        Z = A @ (inputs[-1] @ weights[f"W{layer}"]) + weights[f"b{layer}"]
        inputs.append(np.maximum(Z, 0) if layer < case.layers else Z)
    loss, dZ = softmax_loss(inputs.pop(), case)
    gradients = {}
    for layer in range(case.layers, 0, -1):
        H, dS = inputs.pop(), A @ dZ
        gradients[f"W{layer}"], gradients[f"b{layer}"] = np.asarray(H.T @ dS), dZ.sum(axis=0)
        if layer > 1:
            dZ = (dS @ weights[f"W{layer}"].T) * (H > 0)
    return loss, gradients


def softmax_loss(Z: np.ndarray, case: GcnCase) -> tuple[float, np.ndarray]:
    """The loss of the last layer's output [n, classes], and its gradient."""
    rows, picked = case.train, (np.arange(len(case.train)), case.labels[case.train])
    shifted = Z[rows] - Z[rows].max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    dZ = np.zeros_like(Z)
    dZ[rows] = np.exp(logarithms) / len(rows)
    dZ[rows, case.labels[rows]] -= 1 / len(rows)
    return float(-logarithms[picked].mean()), dZ


def relative_errors(gradients: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> dict[str, float]:
    """||dW - exact|| / ||exact|| in Frobenius norms, for every parameter."""
    norm = np.linalg.norm
    return {name: float(norm(gradients[name] - value) / norm(value)) for name, value in exact.items()}
