"""An experiment file (TOML) and all that it asks for: `load_experiment`, `run_experiment`."""

from __future__ import annotations

from jurimetrics.experiment.load import Experiment, load_experiment
from jurimetrics.experiment.run import check_ready, evaluate_experiment, log_experiment, run_experiment

__all__ = [
    "Experiment",
    "check_ready",
    "evaluate_experiment",
    "load_experiment",
    "log_experiment",
    "run_experiment",
]
