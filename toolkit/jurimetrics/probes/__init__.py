"""Bias probes on one's own panel and records: what sways a judge that should not.

Those that ask nobody read existing results: `position`, `length`, `language`, `self_preference`, `leniency`, `retest`.
Those that ask send changed records through `evaluate`: `verbosity`, `format`, `injection`, `order`; `plan` says what they
would cost. `family` adjusts for several probes at once. `drift` holds a frozen anchor set, judged again, against before.
"""

from __future__ import annotations

from jurimetrics.probes.again import position, retest
from jurimetrics.probes.drifted import DriftReport, drift, refuse_across
from jurimetrics.probes.live import format, injection, measured, order, verbosity  # noqa: A004 - the probe's own word
from jurimetrics.probes.live import plan_probe as plan
from jurimetrics.probes.observed import language, length, leniency, self_preference
from jurimetrics.probes.perturbed import Perturbed, appealing, padded, reformatted, reordered
from jurimetrics.probes.report import ProbeLine, ProbeReport, family

__all__ = [
    "DriftReport",
    "Perturbed",
    "ProbeLine",
    "ProbeReport",
    "appealing",
    "drift",
    "family",
    "format",
    "injection",
    "language",
    "length",
    "leniency",
    "measured",
    "order",
    "padded",
    "plan",
    "position",
    "reformatted",
    "refuse_across",
    "reordered",
    "retest",
    "self_preference",
    "verbosity",
]
