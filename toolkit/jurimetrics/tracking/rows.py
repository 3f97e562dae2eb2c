"""Records and their scores -> MLflow traces with assessments, written synchronously under one run.

Traces are built as values and handed to the store, never through MLflow's tracer: the caller's tracing (its destination,
whether it is on, what is open in it) is not involved. The Evaluation runs page pairs the rows of two runs whose request
previews are equal, so the preview is made of the question alone wherever that tells the records apart.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from jurimetrics.tracking.names import assessment_names
from jurimetrics.tracking.store import Store, patiently, require_answer

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span
    from mlflow.entities.trace_info import TraceInfo

LONGEST_PREVIEW = 1000  # MLflow's column
BATCH = 50
SOURCE_RUN = "mlflow.sourceRun"


@dataclass(frozen=True, slots=True)
class Voices:
    """Who speaks in the assessments: their names, whose row is the headline of a metric, and what kind of judge it was.

    `names`: (metric, judge) -> assessment name, the judge "" for the headline. `headline`: metric -> judge.
    `kinds`: (metric, judge) -> "LLM_JUDGE" or "CODE". `people`: the name under which all people speak in `names`.
    """

    names: Mapping[tuple[str, str], str]
    headline: Mapping[str, str]
    kinds: Mapping[tuple[str, str], str]
    people: str

    def name(self, metric: str, judge: str) -> str:
        """The name of the assessment that `judge` makes under `metric`."""
        return self.names[metric, "" if self.headline.get(metric) == judge else judge]


def voices(
    scores: pd.DataFrame,
    labels: pd.DataFrame | None,
    headline: Mapping[str, str],
    kinds: Mapping[tuple[str, str], str],
) -> Voices:
    """The `Voices` of a score frame; the same for all its variants, so that their runs have the same columns.

    Labels have names of their own, since MLflow's page takes the mean over all assessments of one name.
    """
    pairs = scores[["metric", "judge"]].drop_duplicates().itertuples(index=False, name=None)
    named = [(metric, "" if headline.get(metric) == judge else judge) for metric, judge in pairs]
    people = "label" if "label" not in set(scores["judge"]) else "label by people"
    named += [] if labels is None else [(metric, people) for metric in dict.fromkeys(labels["metric"])]
    return Voices(assessment_names(named), headline, kinds, people)


def previews(records: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(id, variant) -> the text that the rows of two runs are joined on: the question, or "[id] question" if shared.

    The id alone where there is no question. At most 1,000 characters.

    >>> previews(pd.DataFrame({"id": ["1", "2"], "variant": ["", ""], "question": ["Who?", None]}))
    {('1', ''): 'Who?', ('2', ''): '[2]'}
    """
    questions = {(row["id"], row["variant"]): _text(row.get("question")) for row in records.to_dict("records")}
    owners: dict[str, set[str]] = {}
    for (identity, _), question in questions.items():
        owners.setdefault(question[:LONGEST_PREVIEW], set()).add(identity)
    found = {}
    for key, question in questions.items():
        alone = question and len(owners[question[:LONGEST_PREVIEW]]) == 1
        found[key] = (question if alone else f"[{key[0]}] {question}".strip())[:LONGEST_PREVIEW]
    return found


def log_rows(
    store: Store,
    experiment_id: str,
    run_id: str,
    records: pd.DataFrame,
    scores: pd.DataFrame,
    labels: pd.DataFrame | None,
    *,
    inputs: Mapping[tuple[str, str], str],
    voices: Voices,
) -> tuple[int, int]:
    """Write a trace for each record (all of one variant) with its scores and labels; how many (traces, assessments).

    Everything is stored when this returns. Raises `InputError` if the server stops answering, `MlflowException` for
    whatever the store refuses.
    """
    from mlflow.tracing.client import TracingClient

    client = TracingClient(store.uri)
    by_id, said = _by_id(scores), {} if labels is None else _by_id(labels)
    traces = assessments = 0
    latest = time.time_ns()
    for batch in _batches(_dictionaries(records)):
        require_answer(store)
        spans = []
        for record in batch:
            opinions = [
                *_feedback(by_id.get(record["id"], ()), voices, run_id),
                *_labels(said.get(record["id"], ()), voices),
            ]
            opinions.extend(_expectations(record))
            # The page lists the newest first, so the first record is the newest.
            begin = latest - traces * 1_000_000
            info, span = _trace(experiment_id, run_id, record, inputs[record["id"], record["variant"]], opinions, begin)
            patiently(client.start_trace, info)
            spans.append(span)
            traces, assessments = traces + 1, assessments + len(opinions)
        patiently(client.log_spans, experiment_id, spans)
    return traces, assessments


def count_rows(store: Store, experiment_id: str, run_id: str) -> tuple[int, int]:
    """How many (traces, assessments) of a run are stored whole, as read back from the store."""
    from mlflow.tracing.client import TracingClient

    client, token, traces, assessments = TracingClient(store.uri), None, 0, 0
    while True:
        page = client.search_traces(
            locations=[experiment_id], run_id=run_id, include_spans=False, max_results=200, page_token=token
        )
        whole = [trace.info for trace in page if trace.info.tags.get("mlflow.trace.spansLocation")]
        traces += len(whole)
        assessments += sum(len(info.assessments) for info in whole)
        token = page.token
        if not token:
            return traces, assessments


def _batches(records: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(records), BATCH):
        yield records[start : start + BATCH]


def _trace(
    experiment_id: str,
    run_id: str,
    record: Mapping[str, Any],
    preview: str,
    assessments: list[Assessment],
    begin: int,
) -> tuple[TraceInfo, Span]:
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState

    otel_id = secrets.token_hex(16)
    latency = _number(record.get("answer_latency_s")) or 0.0
    error = _text(record.get("answer_error"))
    answer = _text(record.get("answer"))
    info = TraceInfo(
        trace_id=f"tr-{otel_id}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=begin // 1_000_000,
        state=TraceState.ERROR if error else TraceState.OK,
        request_preview=preview,
        response_preview=(answer or error)[:LONGEST_PREVIEW],
        client_request_id=record["id"][:50],
        execution_duration=round(latency * 1000),
        trace_metadata=_metadata(record, run_id),
        tags={"mlflow.traceName": record["variant"] or "answer"},
        assessments=assessments,
    )
    return info, _span(info, otel_id, begin, latency, record, error)


def _span(info: TraceInfo, otel_id: str, begin: int, latency: float, record: Mapping[str, Any], error: str) -> Span:
    from mlflow.entities import Span

    given = {name: record.get(name) for name in ("question", "contexts")}
    attributes = {
        "mlflow.traceRequestId": info.trace_id,
        "mlflow.spanType": "CHAIN",
        "mlflow.spanInputs": {"id": record["id"], **{name: value for name, value in given.items() if _some(value)}},
        "mlflow.spanOutputs": record.get("answer") if _some(record.get("answer")) else None,
        "metadata": json.loads(_text(record.get("metadata")) or "{}"),
    }
    return Span.from_dict(
        {
            "trace_id": info.trace_id,
            "span_id": secrets.token_hex(8),
            "parent_span_id": None,
            "name": info.tags["mlflow.traceName"],
            "start_time_unix_nano": begin,
            "end_time_unix_nano": begin + round(latency * 1e9),
            "status": {"code": "STATUS_CODE_ERROR" if error else "STATUS_CODE_OK", "message": error},
            "attributes": {name: _json(value) for name, value in attributes.items()},
        }
    )


def _metadata(record: Mapping[str, Any], run_id: str) -> dict[str, str]:
    found = {SOURCE_RUN: run_id, "jurimetrics.id": record["id"], "jurimetrics.variant": record["variant"]}
    tokens = [_number(record.get(f"answer_{kind}_tokens")) for kind in ("prompt", "completion")]
    if None not in tokens:
        given, written = (int(count or 0) for count in tokens)
        usage = {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
        found["mlflow.trace.tokenUsage"] = json.dumps(usage)
    return found


def _feedback(rows: Sequence[Mapping[str, Any]], voices: Voices, run_id: str) -> Iterator[Assessment]:
    """Scores as feedback; failed and undefined rows as errors, whose code is the kind of failure or "undefined".

    What does not apply to a record says nothing of it.
    """
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback

    places = {metric: at for at, metric in enumerate(dict.fromkeys(row["metric"] for row in rows))}
    for row in sorted(
        rows, key=lambda row: (places[row["metric"]], row["judge"] != voices.headline.get(row["metric"]))
    ):
        if row["status"] == "not_applicable":
            continue
        metric, judge = row["metric"], row["judge"]
        kind, _, message = _text(row.get("error")).partition(": ")
        ok = row["status"] == "ok"
        metadata = {"mlflow.assessment.sourceRunId": run_id, "judge": judge, "repeat": str(row.get("repeat", 0))}
        if _number(row.get("disagreement")) is not None:
            metadata["disagreement"] = f"{row['disagreement']:.4g}"
        yield Feedback(
            name=voices.name(metric, judge),
            value=float(row["score"]) if ok else None,
            error=None if ok else AssessmentError(kind or row["status"], message or _text(row["reason"])),
            source=AssessmentSource(voices.kinds[metric, judge], judge or "computed"),
            rationale=_text(row["reason"]) or None,
            metadata=metadata,
        )


def _labels(rows: Sequence[Mapping[str, Any]], voices: Voices) -> Iterator[Assessment]:
    from mlflow.entities import AssessmentSource, Feedback

    for row in rows:
        label = _number(row["label"])
        if label is None:
            continue
        yield Feedback(
            name=voices.names[row["metric"], voices.people],
            value=label,
            source=AssessmentSource("HUMAN", row.get("rater") or "human"),
            rationale=_text(row.get("rationale")) or None,
        )


def _expectations(record: Mapping[str, Any]) -> Iterator[Assessment]:
    from mlflow.entities import AssessmentSource, Expectation

    reference = _text(record.get("reference"))
    if reference:
        yield Expectation(name="reference", value=reference, source=AssessmentSource("HUMAN", "reference"))


def _dictionaries(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _by_id(frame: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _dictionaries(frame):
        found.setdefault(row["id"], []).append(row)
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _some(value: object) -> bool:
    return value is not None and (not hasattr(value, "__len__") or len(value) > 0) and value == value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
