"""Rates where no calibration is given: what a scaling study measured on two ranks of the named machine."""

from app.model.rates import Calibration, DenseRate, Kernels, MessageRate, PassRate, ProductRate

OPERANDS = [131000.0, 1050000.0, 4190000.0, 16800000.0]  # bytes
ARRAYS = [131000.0, 1050000.0, 4190000.0]
LAYERS = [1024.0, 16400.0, 262000.0]  # bytes of the small matrix
LAYER_ARRAYS = [524000.0, 2100000.0, 8390000.0]
MESSAGES = [64.0, 16400.0, 131000.0, 1050000.0, 4190000.0]

ALONE = Kernels(
    products=[
        ProductRate(1, OPERANDS[:2], [1.61e-09, 1.51e-09], [9.68e-10, 3.33e-09]),
        ProductRate(4, OPERANDS[:3], [1.2e-09, 1.29e-09, 1.65e-09], [3.3e-09, 4.48e-09, 8.56e-09]),
        ProductRate(
            16,
            OPERANDS[:4],
            [1.41e-09, 1.46e-09, 1.59e-09, 6.85e-09],
            [4.44e-09, 6.95e-09, 2.8e-08, 7.12e-09],
        ),
        ProductRate(
            64,
            OPERANDS[:4],
            [2.84e-09, 3.34e-09, 4.37e-09, 1.15e-08],
            [1.19e-08, 2.06e-08, 5.18e-08, 4.29e-08],
        ),
        ProductRate(
            256,
            OPERANDS[:4],
            [1.09e-08, 1.26e-08, 1.64e-08, 3.53e-08],
            [8.17e-08, 1.19e-07, 1.47e-07, 5.81e-08],
        ),
        ProductRate(
            512,
            OPERANDS[:4],
            [2.01e-08, 3.72e-08, 3.69e-08, 6.61e-08],
            [2.91e-07, 2.22e-07, 3.23e-07, 1.12e-07],
        ),
    ],
    lookup=ProductRate(
        16, [8190.0, 131000.0, 1050000.0], [1.34e-09, 1.47e-09, 2.37e-09], [8.79e-09, 7.92e-09, 4.43e-09]
    ),
    dense={
        "dense": DenseRate(ARRAYS, [3.1e-08, 9.32e-09, 7.6e-09], [2.75e-11, 4.37e-11, 3.85e-11]),
        "gram": DenseRate(ARRAYS, [1.41e-08, 2.86e-09, 0.0], [7.52e-11, 4.01e-11, 6.02e-11]),
        "wide dense": DenseRate(LAYERS, [0.0, 0.0, 0.0], [3.21e-11, 2.44e-11, 5.42e-11]),
        "wide gram": DenseRate(LAYERS, [0.0, 0.0, 0.0], [3.62e-11, 3.92e-11, 7.39e-11]),
    },
    passes={
        "element": PassRate(ARRAYS, [1.91e-10, 1.4e-10, 2.14e-10]),
        "take": PassRate(ARRAYS, [2.14e-09, 1.7e-09, 1.72e-09]),
        "reduce": PassRate(ARRAYS, [1.09e-08, 2.26e-09, 1.42e-09]),
        "skip dense": PassRate(ARRAYS, [9.61e-09, 4.51e-09, 1.3e-08]),
        "skip gram": PassRate(ARRAYS, [1.45e-08, 4.16e-09, 1.08e-08]),
        "drop": PassRate(LAYER_ARRAYS, [1.37e-09, 6.1e-10, 4.79e-10]),
        "loss": PassRate(LAYER_ARRAYS, [2.39e-09, 1.85e-09, 4.24e-09]),
        "attend": PassRate(LAYER_ARRAYS[:1], [5.7e-09]),
    },
    feature_s=3.39e-08,
    calls={
        "operation": 1.95e-05,
        "evaluation": 0.000193,
        "step": 1.18e-05,
        "part": 0.00133,
        "state": 1.25e-05,
        "member": 0.0,
    },
)
TOGETHER = Kernels(
    products=[
        ProductRate(1, OPERANDS[:2], [9.82e-10, 1.24e-09], [5.11e-09, 3.33e-09]),
        ProductRate(4, OPERANDS[:3], [9.29e-10, 1.03e-09, 2.29e-09], [3.77e-09, 5.57e-09, 2.4e-08]),
        ProductRate(
            16,
            OPERANDS[:4],
            [1.48e-09, 1.53e-09, 2.88e-09, 1.71e-08],
            [7.68e-09, 1.16e-08, 2.09e-08, 4.15e-09],
        ),
        ProductRate(
            64, OPERANDS[:4], [3.39e-09, 3.84e-09, 8e-09, 4.21e-08], [1.73e-08, 3.03e-08, 4.15e-08, 4.39e-08]
        ),
        ProductRate(
            256,
            OPERANDS[:4],
            [1.34e-08, 1.78e-08, 3.67e-08, 9.74e-08],
            [9.5e-08, 1.55e-07, 8.84e-09, 4.08e-08],
        ),
        ProductRate(
            512, OPERANDS[:4], [2.89e-08, 4.77e-08, 7.07e-08, 2.02e-07], [2.19e-07, 2.09e-07, 3.38e-08, 0.0]
        ),
    ],
    lookup=ProductRate(
        16, [8190.0, 131000.0, 1050000.0], [1.04e-09, 1.5e-09, 1.35e-09], [7.7e-09, 4.91e-09, 2.78e-08]
    ),
    dense={
        "dense": DenseRate(ARRAYS, [3.05e-08, 1.03e-08, 1.09e-08], [1.99e-11, 3.61e-11, 4.89e-11]),
        "gram": DenseRate(ARRAYS, [1.72e-08, 9.88e-10, 4.98e-09], [5.8e-11, 5.97e-11, 6e-11]),
        "wide dense": DenseRate(LAYERS, [0.0, 0.0, 0.0], [3.34e-11, 2.35e-11, 6.7e-11]),
        "wide gram": DenseRate(LAYERS, [0.0, 0.0, 0.0], [3.91e-11, 3.95e-11, 8.74e-11]),
    },
    passes={
        "element": PassRate(ARRAYS, [1.94e-10, 2.54e-10, 3.38e-10]),
        "take": PassRate(ARRAYS, [2.47e-09, 1.57e-09, 1.63e-09]),
        "reduce": PassRate(ARRAYS, [8.53e-09, 1.92e-09, 1.28e-09]),
        "skip dense": PassRate(ARRAYS, [7.44e-09, 1.23e-08, 9.47e-09]),
        "skip gram": PassRate(ARRAYS, [9.99e-09, 1.01e-08, 1.09e-08]),
        "drop": PassRate(LAYER_ARRAYS, [1.35e-09, 6.14e-10, 4.61e-10]),
        "loss": PassRate(LAYER_ARRAYS, [2.44e-09, 1.85e-09, 5.82e-09]),
        "attend": PassRate(LAYER_ARRAYS[:1], [5.9e-09]),
    },
    feature_s=2.32e-08,
    calls={
        "operation": 1.98e-05,
        "evaluation": 0.000353,
        "step": 1.17e-05,
        "part": 0.00196,
        "state": 3.04e-06,
        "member": 1.31e-05,
    },
)
DEFAULTS = Calibration(
    machine="2 cores of AMD EPYC",
    backend="cpu, NumPy 2.4.6, dense products: one chain per element",
    ranks=2,
    oversubscribed=False,
    alone=ALONE,
    together=TOGETHER,
    messages={
        "round": MessageRate(MESSAGES[:1], [1.24e-05]),
        "max": MessageRate(MESSAGES[:3], [2.04e-05, 2.31e-05, 7.37e-05]),
        "merge": MessageRate(MESSAGES[:3], [2.15e-05, 4.51e-05, 7.7e-05]),
        "gather": MessageRate(MESSAGES[:5], [9.05e-06, 3.01e-05, 7.34e-05, 0.00111, 0.00392]),
        "exchange": MessageRate(MESSAGES[:5], [1.14e-05, 2.66e-05, 2.9e-05, 0.000193, 0.0017]),
        "stage": MessageRate(MESSAGES[:5], [0.000141, 0.00011, 0.000141, 0.000563, 0.00262]),
    },
    base_bytes=95 << 20,
)
