"""Metrics as scorers of MLflow, and scorers of MLflow as metrics."""

from jurimetrics.scorers.asked import as_scorer
from jurimetrics.scorers.wrapped import from_scorer

__all__ = ["as_scorer", "from_scorer"]
