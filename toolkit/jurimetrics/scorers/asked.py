"""Metrics of the toolkit as scorers for `mlflow.genai.evaluate`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jurimetrics.engine.evaluate import evaluate
from jurimetrics.engine.options import StoreChoice, check_language, check_whole, store_path
from jurimetrics.engine.setup import Judges, Metrics, Setup, set_up
from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Judge
from jurimetrics.metrics.metric import Metric, passes
from jurimetrics.results.reading import COMPUTED
from jurimetrics.scorers.fields import check_columns, record_of, seen
from jurimetrics.tracking.measures import clip
from jurimetrics.tracking.names import assessment_names, encode
from jurimetrics.tracking.quiet import quiet_mlflow

if TYPE_CHECKING:
    from mlflow.entities import Feedback
    from mlflow.genai.scorers import Scorer

COST = "mlflow.assessment.judgeCost"
TOKENS = {
    "judge_prompt_tokens": "mlflow.assessment.judgeInputTokens",
    "judge_completion_tokens": "mlflow.assessment.judgeOutputTokens",
}


def as_scorer(
    metric: Metrics,
    judges: Judges,
    *,
    name: str | None = None,
    members: bool = False,
    columns: Mapping[str, str] | None = None,
    store: StoreChoice = "auto",
    repeats: int = 1,
    retries: int = 4,
    retry_failed: bool = False,
    embedder: Judge | None = None,
    reason_language: str | None = None,
) -> Scorer:
    """A metric with its judges as an MLflow scorer: `mlflow.genai.evaluate(data=..., scorers=[as_scorer(...)])`.

    Parameters
    ----------
    metric : a metric or its name; several of them, or a group, make one scorer that gives feedback for each and asks
        what they have in common once.
    judges : as in `evaluate`. A panel or a cascade gives its own feedback, with `members` that of each member too; a list
        gives one for each judge.
    name : of the scorer and, for one metric, of its feedback; by default the metric's, with "_" for all but letters and
        digits. MLflow makes a run metric `<name>/mean` of it. Needed for several metrics.
    columns : the caller's names for question, contexts, answer, reference, id, as `{"question": "prompt"}`.
    repeats : of the judges of a cascade, whose agreement is its confidence; of others one is enough.
    store, retries, retry_failed, embedder, reason_language : as in `evaluate`. Scorers and rows share what the store
        holds; with None nothing is shared.

    From inputs come question and contexts, from outputs the answer, from expectations the reference, under all names that
    `load_records` knows (`expected_response` among them); a text alone, the only text of a dictionary, and chat messages are
    understood too, and contexts are taken from the trace's RETRIEVER spans where inputs and outputs have none. All else
    is metadata of the record.

    Feedback: the score as value, the reason as rationale, the judge as source (LLM_JUDGE; CODE where nothing was asked of
    a model), and as metadata metric, version, status, flags, threshold and passed, disagreement, calls from the store, and
    tokens and cost (left out where unknown; those of the members where the panel speaks alone). A row without a score is an
    error with the kind of failure, "undefined" or "not_applicable" as its code, never a number.

    The scorer runs in MLflow's threads, each call in a loop of its own, and leaves tracing as it is. MLflow sets no time
    limit on it, since the judges have theirs. It cannot be registered. Its `pass_if` is the metric's threshold. With its
    default of ten workers, `mlflow.genai.evaluate` loses rows on a sqlite store, as it says in warnings: set
    `MLFLOW_GENAI_EVAL_MAX_WORKERS=1`, or take `evaluate` and `log_run` for more than a few records.

    Raises `InputError` as `evaluate` does, before anything is asked, and for metrics that see several variants at once.

    >>> from jurimetrics import BaselineJudge
    >>> scorer = as_scorer("faithfulness", BaselineJudge(), store=None)
    >>> inputs = {"question": "Where is Madrid?", "contexts": ["Madrid is in Spain."]}
    >>> [found.value for found in scorer(inputs=inputs, outputs="Madrid is in Spain.")]
    [1.0]
    """
    store_path(store)
    check_whole("retries", retries, 0)
    check_language(reason_language)
    setup = set_up(metric, judges, repeats, embedder)
    if repeats > 1 and setup.plan.cascade is None:
        raise InputError(f"as_scorer: repeats are for a cascade; of other judges one is enough, not {repeats}")
    chosen = setup.plan.metrics
    if together := [each.name for each in chosen if each.together]:
        raise InputError(f"as_scorer: {together[0]} compares variants, and a scorer sees one answer at a time")
    if name is None and len(chosen) > 1:
        raise InputError(f"as_scorer: give the scorer of {len(chosen)} metrics a name")
    if name is not None and (not isinstance(name, str) or not name.strip() or encode(name) != name):
        raise InputError(f"as_scorer: a name is made of letters, digits, '_', '-', '.' and spaces, not {name!r}")
    options = {"store": store, "retries": retries, "retry_failed": retry_failed, "embedder": embedder}
    options |= {"repeats": repeats, "reason_language": reason_language, "progress": False}
    asked = _Asked(setup, judges, _spoken(setup, name), members, check_columns(columns or {}), options)
    return _scorer(name or asked.names[chosen[0].name, ""], asked)


@dataclass(frozen=True)
class _Asked:
    """What a scorer does with a row."""

    setup: Setup
    judges: Judges
    names: Mapping[tuple[str, str], str]
    members: bool
    columns: Mapping[str, str]
    options: Mapping[str, Any]

    def feedback(self, inputs: Any, outputs: Any, expectations: Any, trace: Any) -> list[Feedback]:
        """All feedback on one row, in the order of the metrics, the headline before its members."""
        record = record_of(inputs, outputs, expectations, trace, self.columns)
        results = evaluate([record], self.setup.plan.metrics, self.judges, **self.options)
        rows = results.scores.to_dict("records")
        found = []
        for metric in self.setup.plan.metrics:
            mine = [{str(key): value for key, value in row.items()} for row in rows if row["metric"] == metric.name]
            for row in self._shown(metric, mine):
                if row["status"] == "not_applicable":
                    row["reason"] += f" ({seen(inputs, outputs, expectations)})"
                found.append(self._feedback(metric, row))
        return found

    def _headline(self, metric: Metric) -> str | None:
        plan = self.setup.plan
        if not metric.judged:
            return COMPUTED
        together = plan.panel or plan.cascade
        if together is not None:
            return together.name
        return plan.judges[0].name if len(plan.judges) == 1 else None

    def _shown(self, metric: Metric, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The headline's row, then those of the members that are asked for."""
        headline = self._headline(metric)
        others = [row for row in rows if row["judge"] != headline]
        for row in (row for row in rows if row["judge"] == headline):
            yield row if self.members else row | _sums([row, *others])
            if row["status"] == "not_applicable":
                return
        if self.members or headline is None:
            # A cascade stops before some of its members.
            yield from (row for row in others if headline is None or row["status"] != "not_applicable")

    def _feedback(self, metric: Metric, row: Mapping[str, Any]) -> Feedback:
        from mlflow.entities import AssessmentError, AssessmentSource, Feedback

        judge = row["judge"]
        voice = "" if judge == self._headline(metric) else judge
        repeat = f" repeat {row['repeat']}" if row["repeat"] else ""
        ok = row["status"] == "ok"
        kind, _, message = row["error"].partition(": ")
        return Feedback(
            name=self.names[metric.name, voice + repeat],
            value=float(row["score"]) if ok else None,
            error=None if ok else AssessmentError(kind or row["status"], message or row["reason"]),
            source=AssessmentSource("LLM_JUDGE" if self._models(metric, judge) else "CODE", judge),
            rationale=row["reason"] or None,
            metadata=_metadata(metric, row),
        )

    def _models(self, metric: Metric, judge: str) -> bool:
        """Whether a model, not a rule alone, stands behind the rows of a judge."""
        members = [one for one in self.setup.plan.judges if one.name == judge] or self.setup.plan.judges
        return metric.judged and any(one.endpoint is not None for one in members)


def _spoken(setup: Setup, name: str | None) -> dict[tuple[str, str], str]:
    """(metric, judge) -> the name of the feedback, the judge "" for the headline."""
    chosen, plan = setup.plan.metrics, setup.plan
    voices = ["", *(judge.name for judge in plan.judges)]
    voices += [f"{judge.name} repeat {at}" for at in range(1, plan.repeats) for judge in plan.judges]
    found = assessment_names([(metric.name, voice) for metric in chosen for voice in voices])
    if name is not None and len(chosen) == 1:
        own = chosen[0].name
        found = {
            (own, voice): name if not voice else f"{name}_{assessment_names([('', voice)])['', voice]}"
            for voice in voices
        }
    return found


def _sums(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What a panel's members took together; NaN where it is unknown of one."""
    names = ("judge_calls", "cached_calls", "judge_cost_usd", "judge_latency_s", *TOKENS)
    return {name: sum(_number(row[name]) for row in rows) for name in names}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _metadata(metric: Metric, row: Mapping[str, Any]) -> dict[str, str]:
    found = {"metric": metric.name, "version": metric.version, "judge": row["judge"], "status": row["status"]}
    if row["flags"] is not None and len(row["flags"]):
        found["flags"] = ", ".join(row["flags"])
    if metric.threshold is not None:
        found["threshold"] = f"{metric.threshold:g}"
        if row["status"] == "ok":
            found["passed"] = str(passes(row["score"], metric.threshold, metric.higher_is_better)).lower()
    if math.isfinite(_number(row["disagreement"])):
        found["disagreement"] = f"{row['disagreement']:.4g}"
    if _number(row["judge_calls"]) + _number(row["cached_calls"]) > 0:
        found["cached_calls"] = f"{_number(row['cached_calls']):g}"
        took = {COST: (row["judge_cost_usd"], ".6g"), "latency_s": (row["judge_latency_s"], ".4g")}
        took |= {key: (row[name], ".6g") for name, key in TOKENS.items()}
        found |= {
            key: format(_number(value), form) for key, (value, form) in took.items() if math.isfinite(_number(value))
        }
    return {key: clip(value) for key, value in found.items()}


def _scorer(name: str, asked: _Asked) -> Scorer:
    with quiet_mlflow():
        from mlflow.genai.scorers import Scorer

    metrics = asked.setup.plan.metrics
    own = metrics[0] if len(metrics) == 1 else None

    class MetricScorer(Scorer):
        def __call__(  # type: ignore[override]
            self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None
        ) -> list[Feedback]:
            return asked.feedback(inputs, outputs, expectations, trace)

        @property
        def pass_if(self) -> Any:
            threshold = None if own is None else own.threshold
            if own is None or threshold is None:
                return None
            return lambda value: passes(float(value), threshold, own.higher_is_better)

    # MLflow tells scorers apart by what is stated of them.
    versions = ", ".join(f"{metric.name} {metric.version}" for metric in metrics)
    by = asked.setup.plan.panel or asked.setup.plan.cascade
    judges = ", ".join(judge.name for judge in asked.setup.plan.judges)
    described = f"jurimetrics: {versions}, judged by {f'{by.name} of ' if by else ''}{judges}"
    return MetricScorer(name=name, description=described, timeout=0)
