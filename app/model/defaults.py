"""Rates where no calibration is given: what a scaling study measured on two ranks of the named machine."""

from app.model.rates import Calibration, DenseRate, Kernels, MessageRate, PassRate, ProductRate

OPERANDS = [131000.0, 1050000.0, 4190000.0, 16800000.0]  # bytes
ARRAYS = [131000.0, 1050000.0, 4190000.0]
MESSAGES = [64.0, 16400.0, 131000.0, 1050000.0, 4190000.0]

ALONE = Kernels(
    products=[
        ProductRate(1, OPERANDS[:2], [9.84e-10, 1e-09], [4.05e-09, 4.9e-09]),
        ProductRate(4, OPERANDS[:3], [8.5e-10, 9.54e-10, 1.32e-09], [4.12e-09, 4.57e-09, 7.4e-09]),
        ProductRate(
            16,
            OPERANDS[:4],
            [1.12e-09, 1.35e-09, 1.84e-09, 7.72e-09],
            [4.62e-09, 8.29e-09, 2.05e-08, 3.41e-09],
        ),
        ProductRate(
            64,
            OPERANDS[:4],
            [2.45e-09, 3.36e-09, 6.16e-09, 1.24e-08],
            [1.69e-08, 1.75e-08, 4.36e-08, 7.31e-08],
        ),
        ProductRate(
            256, OPERANDS[:4], [9.21e-09, 1.33e-08, 1.97e-08, 5.95e-08], [1.24e-07, 1.16e-07, 1.39e-07, 0.0]
        ),
        ProductRate(
            512, OPERANDS[:4], [1.83e-08, 3.96e-08, 5.11e-08, 9.34e-08], [3.25e-07, 1.74e-07, 1.51e-07, 0.0]
        ),
    ],
    dense={
        "dense": DenseRate(ARRAYS, [1.57e-08, 2.64e-09, 2.87e-09], [2.37e-11, 3.07e-11, 2.82e-11]),
        "gram": DenseRate(ARRAYS, [6.64e-09, 1.55e-09, 7.6e-12], [5.59e-11, 4.16e-11, 5.18e-11]),
    },
    passes={
        "element": PassRate(ARRAYS, [2.55e-10, 2.04e-10, 2.63e-10]),
        "take": PassRate(ARRAYS, [1.85e-09, 1.51e-09, 1.46e-09]),
        "reduce": PassRate(ARRAYS, [2.65e-09, 2.09e-09, 2.17e-09]),
        "skip dense": PassRate(ARRAYS, [8.66e-09, 8.67e-09, 8.85e-09]),
        "skip gram": PassRate(ARRAYS, [9.4e-09, 9.51e-09, 9.05e-09]),
    },
    feature_s=2.18e-08,
    calls={"evaluation": 0.00017, "step": 1.13e-05, "part": 0.000788, "state": 5.97e-06, "member": 5.51e-06},
)
TOGETHER = Kernels(
    products=[
        ProductRate(1, OPERANDS[:2], [9.5e-10, 1.08e-09], [4.44e-09, 4.45e-09]),
        ProductRate(4, OPERANDS[:3], [8.83e-10, 1.01e-09, 1.28e-09], [3.97e-09, 4.61e-09, 7.66e-09]),
        ProductRate(
            16,
            OPERANDS[:4],
            [1.15e-09, 1.39e-09, 1.78e-09, 6.93e-09],
            [4.87e-09, 6.42e-09, 2.14e-08, 1.09e-08],
        ),
        ProductRate(
            64,
            OPERANDS[:4],
            [3.16e-09, 3.6e-09, 6.07e-09, 1.43e-08],
            [1.54e-08, 2.35e-08, 5.49e-08, 6.22e-08],
        ),
        ProductRate(
            256, OPERANDS[:4], [1.26e-08, 1.75e-08, 1.88e-08, 5.41e-08], [1.21e-07, 8.27e-08, 1.5e-07, 0.0]
        ),
        ProductRate(
            512, OPERANDS[:4], [2.48e-08, 4.42e-08, 5.32e-08, 9.31e-08], [2.83e-07, 1.6e-07, 1.59e-07, 0.0]
        ),
    ],
    dense={
        "dense": DenseRate(ARRAYS, [1.93e-08, 3.34e-09, 3.4e-09], [1.91e-11, 2.86e-11, 2.62e-11]),
        "gram": DenseRate(ARRAYS, [8.34e-09, 2.13e-09, 1.59e-09], [5.71e-11, 4.69e-11, 4.98e-11]),
    },
    passes={
        "element": PassRate(ARRAYS, [3e-10, 2.03e-10, 2.5e-10]),
        "take": PassRate(ARRAYS, [1.89e-09, 1.48e-09, 1.45e-09]),
        "reduce": PassRate(ARRAYS, [2.81e-09, 2.06e-09, 2.04e-09]),
        "skip dense": PassRate(ARRAYS, [8.18e-09, 8.33e-09, 8.92e-09]),
        "skip gram": PassRate(ARRAYS, [9.76e-09, 8.89e-09, 8.4e-09]),
    },
    feature_s=2.11e-08,
    calls={"evaluation": 0.000172, "step": 1.13e-05, "part": 0.000782, "state": 6.29e-06, "member": 5.53e-06},
)
DEFAULTS = Calibration(
    machine="2 cores of AMD EPYC",
    backend="cpu, NumPy 2.4.6, dense products: one chain per element",
    ranks=2,
    oversubscribed=False,
    alone=ALONE,
    together=TOGETHER,
    messages={
        "round": MessageRate(MESSAGES[:1], [3.65e-06]),
        "max": MessageRate(MESSAGES[:3], [8.26e-06, 2.94e-05, 0.000112]),
        "merge": MessageRate(MESSAGES[:3], [8.28e-06, 3.15e-05, 0.000121]),
        "gather": MessageRate(MESSAGES[:5], [7.61e-06, 2.53e-05, 0.000117, 0.000745, 0.00204]),
        "exchange": MessageRate(MESSAGES[:5], [8.13e-06, 1.29e-05, 2.44e-05, 0.000158, 0.00106]),
        "stage": MessageRate(MESSAGES[:5], [4.44e-05, 5.03e-05, 0.000173, 0.000995, 0.00354]),
    },
    base_bytes=65 << 20,
)
