"""Estimate how long a training step takes: from the sizes of a model, of its layout and of the machine, not a chart."""

from __future__ import annotations

from chartgen.estimator.estimate import Estimate, Range, estimate_run, least_seconds, seconds_of
from chartgen.estimator.run import Hardware, Run
from chartgen.estimator.step import StepTime

__all__ = ["Estimate", "Hardware", "Range", "Run", "StepTime", "estimate_run", "least_seconds", "seconds_of"]
