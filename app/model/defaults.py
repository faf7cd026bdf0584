"""Rates where no calibration is given."""

from app.model.rates import Calibration

DEFAULTS: Calibration
