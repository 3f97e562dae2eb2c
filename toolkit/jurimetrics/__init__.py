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
    from jurimetrics.answers import Answers
    from jurimetrics.calibrate.agreement import agreement
    from jurimetrics.calibrate.alternatives import alt_test
    from jurimetrics.calibrate.budget import label_budget
    from jurimetrics.calibrate.calibration import Calibration, calibrate
    from jurimetrics.calibrate.claim_agreement import claim_agreement
    from jurimetrics.calibrate.corrected import corrected_means
    from jurimetrics.calibrate.disagreements import disagreements_with_people
    from jurimetrics.calibrate.logged import log_calibration
    from jurimetrics.calibrate.panels import panel_report
    from jurimetrics.calibrate.part_labels import load_claim_labels, load_span_labels
    from jurimetrics.calibrate.raters import rater_report
    from jurimetrics.calibrate.reviews import labels_from_review, open_review
    from jurimetrics.calibrate.sampling import sample_for_labelling
    from jurimetrics.calibrate.span_agreement import span_agreement
    from jurimetrics.calibrate.trust import selective
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
    from jurimetrics.prompts import Prompt
    from jurimetrics.records import Record, iter_records, load_records
    from jurimetrics.report.page import report
    from jurimetrics.results import Results
    from jurimetrics.results.halo import halo
    from jurimetrics.scorers import as_scorer, from_scorer
    from jurimetrics.stats.estimate import Estimate
    from jurimetrics.tracking.load import load_run
    from jurimetrics.tracking.log import log_run
    from jurimetrics.tracking.registry import register_prompts
    from jurimetrics.tracking.study import log_comparison
    from jurimetrics.variants.compare import Comparison, compare
    from jurimetrics.variants.gate import Gate, gate
    from jurimetrics.variants.generate import generate, plan_answers
    from jurimetrics.variants.leaderboard import leaderboard
    from jurimetrics.variants.library import load_prompts
    from jurimetrics.variants.references import write_references
    from jurimetrics.variants.runs import compare_runs
    from jurimetrics.variants.slices import slices
    from jurimetrics.variants.tradeoff import tradeoff
    from jurimetrics.variants.variant import Variant

_HOMES = {
    "Answers": "answers",
    "BaselineJudge": "judges.baseline",
    "Calibration": "calibrate.calibration",
    "Cascade": "judges.cascade",
    "ChatJudge": "judges.chat",
    "Comparison": "variants.compare",
    "EmbeddedEmbedder": "judges.embedders",
    "EndpointEmbedder": "judges.embedders",
    "Estimate": "stats.estimate",
    "Gate": "variants.gate",
    "InputError": "errors",
    "JudgeError": "judges.judge",
    "Panel": "judges.panel",
    "Prompt": "prompts",
    "Record": "records",
    "Results": "results",
    "Score": "metrics.metric",
    "Variant": "variants.variant",
    "aevaluate": "engine.evaluate",
    "agreement": "calibrate.agreement",
    "alt_test": "calibrate.alternatives",
    "as_scorer": "scorers",
    "calibrate": "calibrate.calibration",
    "checklist": "metrics.rubrics",
    "claim_agreement": "calibrate.claim_agreement",
    "compare": "variants.compare",
    "compare_runs": "variants.runs",
    "corrected_means": "calibrate.corrected",
    "disagreements_with_people": "calibrate.disagreements",
    "evaluate": "engine.evaluate",
    "from_scorer": "scorers",
    "gate": "variants.gate",
    "generate": "variants.generate",
    "halo": "results.halo",
    "iter_records": "records",
    "label_budget": "calibrate.budget",
    "labels_from_review": "calibrate.reviews",
    "leaderboard": "variants.leaderboard",
    "load_claim_labels": "calibrate.part_labels",
    "load_labels": "labels",
    "load_prompts": "variants.library",
    "load_records": "records",
    "load_run": "tracking.load",
    "load_span_labels": "calibrate.part_labels",
    "local_server": "judges.local",
    "log_calibration": "calibrate.logged",
    "log_comparison": "tracking.study",
    "log_run": "tracking.log",
    "metric": "metrics.metric",
    "metrics": "",
    "open_review": "calibrate.reviews",
    "panel_report": "calibrate.panels",
    "plan": "engine.plan",
    "plan_answers": "variants.generate",
    "plots": "",
    "probes": "",
    "rater_report": "calibrate.raters",
    "register_prompts": "tracking.registry",
    "report": "report.page",
    "rubric": "metrics.rubrics",
    "run_experiment": "experiment",
    "sample_for_labelling": "calibrate.sampling",
    "selective": "calibrate.trust",
    "slices": "variants.slices",
    "span_agreement": "calibrate.span_agreement",
    "tradeoff": "variants.tradeoff",
    "write_references": "variants.references",
}

__all__ = [
    "Answers",
    "BaselineJudge",
    "Calibration",
    "Cascade",
    "ChatJudge",
    "Comparison",
    "EmbeddedEmbedder",
    "EndpointEmbedder",
    "Estimate",
    "Gate",
    "InputError",
    "JudgeError",
    "Panel",
    "Prompt",
    "Record",
    "Results",
    "Score",
    "Variant",
    "aevaluate",
    "agreement",
    "alt_test",
    "as_scorer",
    "calibrate",
    "checklist",
    "claim_agreement",
    "compare",
    "compare_runs",
    "corrected_means",
    "disagreements_with_people",
    "evaluate",
    "from_scorer",
    "gate",
    "generate",
    "halo",
    "iter_records",
    "label_budget",
    "labels_from_review",
    "leaderboard",
    "load_claim_labels",
    "load_labels",
    "load_prompts",
    "load_records",
    "load_run",
    "load_span_labels",
    "local_server",
    "log_calibration",
    "log_comparison",
    "log_run",
    "metric",
    "metrics",
    "open_review",
    "panel_report",
    "plan",
    "plan_answers",
    "plots",
    "probes",
    "rater_report",
    "register_prompts",
    "report",
    "rubric",
    "run_experiment",
    "sample_for_labelling",
    "selective",
    "slices",
    "span_agreement",
    "tradeoff",
    "write_references",
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
