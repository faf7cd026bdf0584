"""Parameters: named views into one flat float32 vector, replicated on every rank."""

from typing import Any

import numpy as np

from app.rng import stream

Array = Any
# What arrays that are not drawn begin with, by the last part of their name, where a layer says nothing else.
CONSTANTS = {
    "bias": 0.0,
    "hidden_bias": 0.0,
    "beta": 0.0,
    "gamma": 1.0,
    "eps": 0.0,
    "hidden_gamma": 1.0,
    "hidden_beta": 0.0,
    "mean": 0.0,
    "variance": 1.0,
    "hidden_mean": 0.0,
    "hidden_variance": 1.0,
    "mean_log_degree": 1.0,
    "hop_weights": 1.0,
}


class Parameters:
    """Weights by name, all views of `flat` [size] float32 on a device: one step updates them all."""

    def __init__(self, device: Any, shapes: dict[str, tuple[int, ...]]) -> None:
        self.device, self.shapes = device, shapes
        self.slices: dict[str, slice] = {}
        at = 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            self.slices[name] = slice(at, at + size)
            at += size
        self.size = at
        self.flat = device.xp.zeros(at, dtype=np.float32)
        self._views = {name: self.flat[part].reshape(shapes[name]) for name, part in self.slices.items()}

    def __getitem__(self, name: str) -> Array:
        return self._views[name]

    def set(self, arrays: dict[str, np.ndarray]) -> None:
        """Take host arrays by name; shapes must agree."""
        for name, part in self.slices.items():
            host = np.ascontiguousarray(arrays[name], dtype=np.float32).reshape(-1)
            self.flat[part] = self.device.put(host)

    def host(self) -> dict[str, np.ndarray]:
        """Host copies by name."""
        flat = np.array(self.device.get(self.flat))
        return {name: flat[part].reshape(self.shapes[name]) for name, part in self.slices.items()}

    def copy(self) -> "Parameters":
        """An independent copy, for a target network."""
        other = Parameters(self.device, self.shapes)
        other.flat[:] = self.flat
        return other

    def draw_glorot(self, seed: int, constants: dict[str, float | np.ndarray] | None = None) -> None:
        """Glorot's uniform initialisation, each array from a stream of its own name.

        constants   by name the arrays that are not drawn, or one value that is everywhere in them
        """
        fixed = constants or {}
        self.set(
            {
                name: np.full(shape, fixed[name]) if name in fixed else _glorot(shape, seed, name)
                for name, shape in self.shapes.items()
            }
        )


def constants_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, float]:
    """What parameters of layers that are not drawn begin with, by name."""
    last = {name: name.rpartition(".")[2] for name in shapes}
    return {name: CONSTANTS[kind] for name, kind in last.items() if kind in CONSTANTS}


def _glorot(shape: tuple[int, ...], seed: int, name: str) -> np.ndarray:
    """Uniform in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010, eq. 16)."""
    limit = np.sqrt(6.0 / (shape[0] + shape[-1]))
    return stream(seed, f"initial/{name}").uniform(-limit, limit, size=shape).astype(np.float32)
