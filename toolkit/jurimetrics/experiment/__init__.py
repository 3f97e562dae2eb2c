"""An experiment file (TOML) and all that it asks for: `load_experiment`, `run_experiment`."""

from __future__ import annotations

from jurimetrics.experiment.load import Experiment, load_experiment
from jurimetrics.experiment.planning import plan_experiment
from jurimetrics.experiment.run import check_ready, evaluate_experiment, log_experiment, run_experiment
from jurimetrics.experiment.studying import (
    Written,
    compare_experiment,
    log_study,
    report_experiment,
    write_answers,
)

__all__ = [
    "Experiment",
    "Written",
    "check_ready",
    "compare_experiment",
    "evaluate_experiment",
    "load_experiment",
    "log_experiment",
    "log_study",
    "plan_experiment",
    "report_experiment",
    "run_experiment",
    "write_answers",
]
