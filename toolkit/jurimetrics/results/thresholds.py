"""Thresholds of metrics: they are applied when rows are read, so that other ones ask nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jurimetrics.errors import InputError


def under_thresholds(settings: Mapping[str, Any], thresholds: Mapping[str, float | None]) -> dict[str, Any]:
    """The settings of an evaluation with other thresholds for some metrics (None: no threshold); the given ones stay.

    Raises `InputError` for a metric that is not there and for a threshold outside the metric's range.

    >>> settings = {"metrics": {"f1": {"range": [0, 1], "threshold": 0.5}, "fluency": {"range": [1, 5], "threshold": 3}}}
    >>> {name: one["threshold"] for name, one in under_thresholds(settings, {"f1": 0.8})["metrics"].items()}
    {'f1': 0.8, 'fluency': 3}
    """
    if not isinstance(thresholds, Mapping):
        raise InputError(f"thresholds: expected a mapping of names to numbers, found {type(thresholds).__name__}")
    metrics = dict(settings["metrics"])
    for name, threshold in thresholds.items():
        if name not in metrics:
            raise InputError(f"no metric {name!r}; there are: {', '.join(metrics)}")
        limits = metrics[name].get("range")
        metrics[name] = {**metrics[name], "threshold": check_threshold(name, threshold, limits)}
    return {**settings, "metrics": metrics}


def check_threshold(name: str, threshold: object, limits: object) -> float | None:
    """`threshold` as a number within `limits` (low, high), or None. Raises `InputError` otherwise.

    >>> check_threshold("f1", 3, (0, 1))
    Traceback (most recent call last):
    jurimetrics.errors.InputError: f1: threshold 3 is outside the range 0 to 1
    """
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
        raise InputError(f"{name}: a threshold must be a number, not {threshold!r}")
    value = float(threshold)
    if isinstance(limits, list | tuple) and not limits[0] <= value <= limits[1]:
        raise InputError(f"{name}: threshold {value:g} is outside the range {limits[0]:g} to {limits[1]:g}")
    return value
