"""Score language-model answers with panels of judges, and say how far each judge can be trusted.

    >>> import jurimetrics as jm
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain. It has 3 million inhabitants."]}
    >>> results = jm.evaluate([record], ["faithfulness"], jm.BaselineJudge(), store=None)
    >>> results.scores["score"].tolist()
    [1.0]

Names are looked up when they are first used, so importing is quick and has no effects.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jurimetrics import metrics, plots, probes
    from jurimetrics.calibrate.agreement import agreement
    from jurimetrics.calibrate.budget import label_budget
    from jurimetrics.calibrate.calibration import Calibration, calibrate
    from jurimetrics.calibrate.corrected import corrected_means
    from jurimetrics.calibrate.logged import log_calibration
    from jurimetrics.calibrate.reviews import labels_from_review, open_review
    from jurimetrics.calibrate.sampling import sample_for_labelling
    from jurimetrics.engine.evaluate import aevaluate, evaluate
    from jurimetrics.engine.plan import plan
    from jurimetrics.errors import InputError
    from jurimetrics.experiment import run_experiment
    from jurimetrics.judges.baseline import BaselineJudge
    from jurimetrics.judges.cascade import Cascade
    from jurimetrics.judges.chat import ChatJudge
    from jurimetrics.judges.embedders import EmbeddedEmbedder, EndpointEmbedder
    from jurimetrics.judges.judge import JudgeError
    from jurimetrics.judges.local import local_server
    from jurimetrics.judges.panel import Panel
    from jurimetrics.labels import load_labels
    from jurimetrics.metrics.metric import Score, metric
    from jurimetrics.metrics.rubrics import checklist, rubric
    from jurimetrics.records import Record, iter_records, load_records
    from jurimetrics.results import Results
    from jurimetrics.results.halo import halo
    from jurimetrics.stats.estimate import Estimate
    from jurimetrics.tracking.log import log_run
    from jurimetrics.variants.compare import compare

_HOMES = {
    "BaselineJudge": "judges.baseline",
    "Calibration": "calibrate.calibration",
    "Cascade": "judges.cascade",
    "ChatJudge": "judges.chat",
    "EmbeddedEmbedder": "judges.embedders",
    "EndpointEmbedder": "judges.embedders",
    "Estimate": "stats.estimate",
    "InputError": "errors",
    "JudgeError": "judges.judge",
    "Panel": "judges.panel",
    "Record": "records",
    "Results": "results",
    "Score": "metrics.metric",
    "aevaluate": "engine.evaluate",
    "agreement": "calibrate.agreement",
    "calibrate": "calibrate.calibration",
    "checklist": "metrics.rubrics",
    "compare": "variants.compare",
    "corrected_means": "calibrate.corrected",
    "evaluate": "engine.evaluate",
    "halo": "results.halo",
    "iter_records": "records",
    "label_budget": "calibrate.budget",
    "labels_from_review": "calibrate.reviews",
    "load_labels": "labels",
    "load_records": "records",
    "local_server": "judges.local",
    "log_calibration": "calibrate.logged",
    "log_run": "tracking.log",
    "metric": "metrics.metric",
    "metrics": "",
    "open_review": "calibrate.reviews",
    "plan": "engine.plan",
    "plots": "",
    "probes": "",
    "rubric": "metrics.rubrics",
    "run_experiment": "experiment",
    "sample_for_labelling": "calibrate.sampling",
}

__all__ = [
    "BaselineJudge",
    "Calibration",
    "Cascade",
    "ChatJudge",
    "EmbeddedEmbedder",
    "EndpointEmbedder",
    "Estimate",
    "InputError",
    "JudgeError",
    "Panel",
    "Record",
    "Results",
    "Score",
    "aevaluate",
    "agreement",
    "calibrate",
    "checklist",
    "compare",
    "corrected_means",
    "evaluate",
    "halo",
    "iter_records",
    "label_budget",
    "labels_from_review",
    "load_labels",
    "load_records",
    "local_server",
    "log_calibration",
    "log_run",
    "metric",
    "metrics",
    "open_review",
    "plan",
    "plots",
    "probes",
    "rubric",
    "run_experiment",
    "sample_for_labelling",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    # From now on the plain attribute is found first.
    globals()[name] = value
    return value


class _Package(ModuleType):
    """A package in which a public name stays what it is when a subpackage of the same name is imported.

    Importing `jurimetrics.calibrate.labels` would otherwise put the subpackage where the function `calibrate` is.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
