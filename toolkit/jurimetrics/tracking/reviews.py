"""MLflow's review queues: questions to people about records, and their answers, read back by the id of a run.

The functions that MLflow offers for this are marked experimental there: `why_no_queues` asks before anything is written.
Each rater gets traces of their own. A trace shows every answer given on it, and without accounts all answers come from
the same user, so on a shared trace raters would see each other's answers and nobody could tell them apart.
"""

from __future__ import annotations

import json
import math
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jurimetrics.errors import InputError
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.rows import BATCH, LONGEST_PREVIEW, SOURCE_RUN
from jurimetrics.tracking.store import Store, open_experiment, open_store, patiently, require_answer

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Assessment, Span
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.tracing.client import TracingClient

FILE = "review.json"
REVIEW = "jurimetrics.review"
LONGEST_SHOWN = 10_000  # characters; the page of a rater shows no more of a text, and does not say so
MOST_OPTIONS = 10  # of a list to choose from
_MORE = " […] the rest: View full trace"
_ROW, _RATER = "jurimetrics.row", "jurimetrics.rater"
_NEEDED = (
    "_create_label_schema",
    "_list_label_schemas",
    "_create_review_queue",
    "_delete_review_queue",
    "_list_review_queues",
    "_add_items_to_review_queue",
    "_list_review_queue_items",
)
_ABSENT = ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED", "FEATURE_DISABLED")


@dataclass(frozen=True, slots=True)
class Question:
    """What raters answer for each record under `metric`: one of `levels`, or any number from `low` to `high`.

    `levels` None: any number. Infinite ends are open.
    """

    metric: str
    low: float
    high: float
    levels: tuple[float, ...] | None


class Answer(NamedTuple):
    """One submitted answer: of which `row` of the sample, by whom, on the scale of the metric."""

    row: int
    metric: str
    rater: str
    label: float
    rationale: str | None


class Opened(NamedTuple):
    """A review as it stands in MLflow: the run that keeps its sample, and the id of each rater's queue."""

    run_id: str
    queues: dict[str, str]


class Answers(NamedTuple):
    """All submitted answers, and how many records each rater has not submitted or has declined."""

    given: list[Answer]
    pending: dict[str, int]
    declined: dict[str, int]


@dataclass(frozen=True, slots=True)
class Desk:
    """An MLflow experiment in which people review."""

    store: Store
    client: MlflowClient
    traces: TracingClient
    experiment_id: str


@contextmanager
def desk(store: Store, experiment: str, *, make: bool = True) -> Iterator[Desk]:
    """Open the experiment of this name, which `make` makes if there is none; MLflow is quiet until the block ends.

    Raises `InputError` that names the address for whatever MLflow refuses, and for an experiment that is not there.
    """
    with quiet_mlflow():
        from mlflow.exceptions import MlflowException
        from mlflow.tracing.client import TracingClient

        try:
            client = open_store(store)
            if not make and patiently(client.get_experiment_by_name, experiment) is None:
                raise InputError(f"there is no MLflow experiment {experiment!r} at {store}")
            yield Desk(store, client, TracingClient(store.uri), open_experiment(client, store, experiment))
        except MlflowException as error:
            first = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise InputError(f"MLflow at {store}: {first}") from error


def why_no_queues(at: Desk) -> str:
    """Why this MLflow has no review queues, blank where it has them. Nothing is written."""
    import mlflow
    from mlflow.exceptions import MlflowException

    if lacking := [name.lstrip("_") for name in _NEEDED if not hasattr(at.traces, name)]:
        return f"MLflow {mlflow.__version__} has no {lacking[0]}"
    try:
        at.traces._list_review_queues(at.experiment_id, max_results=1)
        at.traces._list_label_schemas(at.experiment_id, max_results=1)
    except NotImplementedError:
        return f"the store {at.store} keeps none"
    except MlflowException as error:
        if error.error_code not in _ABSENT:
            raise
        return f"the server {at.store} knows none"
    return ""


def open_queues(
    at: Desk,
    records: Sequence[Mapping[str, Any]],
    questions: Sequence[Question],
    raters: Sequence[str],
    sample: Mapping[str, Any],
) -> Opened:
    """Write a queue for each rater with a bare trace for each of `records`, and a run that keeps `sample`.

    `records`: question, contexts, reference and answer are shown, nothing else of them is written on a trace.
    """
    run_id: str = patiently(
        at.client.create_run, at.experiment_id, run_name="review", tags={REVIEW: "open"}
    ).info.run_id
    queues: dict[str, str] = {}
    try:
        named = {question.metric: _schema(at, question) for question in questions}
        taken = {queue.name for queue in _pages(at.traces._list_review_queues, at.experiment_id)}
        for rater in raters:
            name = _free(rater.strip(), {*taken, *queues.values()})
            ids = [schema_id for _, schema_id in named.values()]
            queue = patiently(
                at.traces._create_review_queue, at.experiment_id, name=name, queue_type="custom", users=[rater],
                schema_ids=ids,
            )  # fmt: skip
            queues[queue.queue_id] = name
            _fill(at, run_id, queue.queue_id, rater, records)
        kept = {**sample, "raters": dict(zip(queues, raters, strict=True))}
        kept["schemas"] = {metric: name for metric, (name, _) in named.items()}
        # In ASCII, so that half of a surrogate pair comes back as it was.
        patiently(at.client.log_text, run_id, json.dumps(kept, indent=1), FILE)
        patiently(at.client.set_terminated, run_id, "FINISHED")
    except BaseException:
        # Half a review would be answered in vain.
        for queue_id in queues:
            patiently(at.traces._delete_review_queue, queue_id)
        patiently(at.client.set_terminated, run_id, "FAILED")
        raise
    return Opened(run_id, {rater: queue_id for queue_id, rater in kept["raters"].items()})


def reviews_of(at: Desk) -> list[str]:
    """The run ids of the reviews opened in the experiment, the newest first."""
    runs = at.client.search_runs([at.experiment_id], f"tags.`{REVIEW}` = 'open' and attributes.status = 'FINISHED'")
    return [run.info.run_id for run in runs]


def read_sample(at: Desk, run_id: str) -> dict[str, Any]:
    """What `open_queues` kept in the run."""
    with tempfile.TemporaryDirectory(prefix="jurimetrics-") as folder:
        path = Path(at.client.download_artifacts(run_id, FILE, folder))
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read_answers(at: Desk, run_id: str, questions: Sequence[Question], kept: Mapping[str, Any]) -> Answers:
    """The answers on the traces that their raters have submitted, in the order of the sample.

    Raises `InputError` for an answer that is not on the metric's scale, and where two people answered in one queue.
    """
    require_answer(at.store)
    asked = {str(kept["schemas"][question.metric]): question for question in questions}
    states: dict[str, str] = {}
    pending, declined = {}, {}
    for queue_id, rater in kept["raters"].items():
        items = list(_pages(at.traces._list_review_queue_items, queue_id))
        states |= {item.item_id: str(item.status) for item in items}
        pending[rater] = sum(str(item.status) == "pending" for item in items)
        declined[rater] = sum(str(item.status) == "declined" for item in items)
    found: list[Answer] = []
    for info in _infos(at, run_id):
        row, rater = int(info.trace_metadata[_ROW]), info.trace_metadata[_RATER]
        if states.get(info.trace_id) == "complete":
            place = f"record {row + 1} of the sample, rater {rater!r}"
            found += _answers_on(info.assessments, asked, row, rater, place)
    places = {question.metric: at for at, question in enumerate(questions)}
    found.sort(key=lambda one: (one.row, places[one.metric], list(pending).index(one.rater)))
    return Answers(found, pending, declined)


def _infos(at: Desk, run_id: str) -> Iterator[TraceInfo]:
    token = None
    while True:
        page = at.traces.search_traces(
            locations=[at.experiment_id], run_id=run_id, include_spans=False, max_results=200, page_token=token
        )
        yield from (trace.info for trace in page)
        token = page.token
        if not token:
            return


def _answers_on(
    assessments: Sequence[Assessment], asked: Mapping[str, Question], row: int, rater: str, place: str
) -> Iterator[Answer]:
    # The newest of an answer changed is the one that counts.
    standing: dict[str, Assessment] = {}
    for one in sorted(assessments, key=lambda one: one.last_update_time_ms or 0):
        if one.name not in asked or one.valid is False or one.source.source_type != "HUMAN" or one.feedback is None:
            continue
        before = standing.get(one.name)
        if before is not None and before.source.source_id != one.source.source_id:
            raise InputError(
                f"{place}: {before.source.source_id!r} and {one.source.source_id!r} both answered "
                f"{asked[one.name].metric!r}; give each a queue of their own"
            )
        standing[one.name] = one
    for name, one in standing.items():
        value = None if one.feedback is None or one.feedback.error else one.feedback.value
        if value is None:
            continue
        metric = asked[name].metric
        yield Answer(row, metric, rater, _label(value, asked[name], f"{place}, {metric!r}"), one.rationale or None)


def _label(value: object, question: Question, place: str) -> float:
    """An answer as a number. A choice is the text of a level, pass and fail are truth values, else it is a number."""
    levels = question.levels
    if isinstance(value, str) and levels is not None:
        for level in levels:
            if value == _shown(level):
                return level
    elif isinstance(value, bool):
        if levels == (0.0, 1.0):
            return float(value)
    elif isinstance(value, (int, float)) and (value in levels if levels else _within(value, question)):
        return float(value)
    raise InputError(f"{place}: the answer {value!r} is none of {_scale(question)}")


def _within(value: float, question: Question) -> bool:
    return math.isfinite(value) and question.low <= value <= question.high


def _scale(question: Question) -> str:
    if question.levels is not None:
        return ", ".join(map(_shown, question.levels))
    return f"{_shown(question.low)} to {_shown(question.high)}"


def _shown(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number == int(number) else repr(float(number))


def _schema(at: Desk, question: Question) -> tuple[str, str]:
    """(name, id) of the label schema for a question: one there already that asks the same, or a new one."""
    known = {schema.name: schema for schema in _pages(at.traces._list_label_schemas, at.experiment_id)}
    wanted, instruction = _input(question), _scale(question)[:1000]
    name = question.metric.strip()
    for schema in known.values():
        same = schema.input == wanted and schema.instruction == instruction and schema.enable_comment
        if same and (schema.name == name or schema.name.startswith(f"{name} (")):
            return schema.name, str(schema.schema_id)
    made = patiently(
        at.traces._create_label_schema, at.experiment_id, name=_free(name, {*known, "Feedback"}), type="feedback",
        input=wanted, instruction=instruction, enable_comment=True,
    )  # fmt: skip
    return made.name, str(made.schema_id)


def _input(question: Question) -> Any:
    from mlflow.genai.label_schemas import InputCategorical, InputNumeric, InputPassFail

    levels = question.levels
    if levels == (0.0, 1.0):
        # Not "pass" and "fail": of some metrics 1 is the worse.
        return InputPassFail(positive_label="yes (1)", negative_label="no (0)")
    if levels is not None and len(levels) <= MOST_OPTIONS:
        return InputCategorical(options=[_shown(level) for level in levels])
    ends = [end if math.isfinite(end) else None for end in (question.low, question.high)]
    return InputNumeric(min_value=ends[0], max_value=ends[1])


def _free(name: str, taken: set[str]) -> str:
    """`name`, or with the first number that makes it a new one; MLflow keeps "default" for itself."""
    held = {one.casefold() for one in taken} | {"default"}
    number, found = 1, name[:240]
    while found.casefold() in held:
        number += 1
        found = f"{name[:240]} ({number})"
    return found


def _fill(at: Desk, run_id: str, queue_id: str, rater: str, records: Sequence[Mapping[str, Any]]) -> None:
    latest = time.time_ns()
    # Of other databases, and of servers that may have one, the column holds a thousand characters.
    longest = LONGEST_SHOWN if at.store.uri.startswith("sqlite:") else LONGEST_PREVIEW
    for start in range(0, len(records), BATCH):
        require_answer(at.store)
        spans, ids = [], []
        for row, record in enumerate(records[start : start + BATCH], start):
            # The page lists the newest first, so the first record is the newest.
            begin = latest - row * 1_000_000
            info, span = _bare(
                at.experiment_id, {SOURCE_RUN: run_id, _ROW: str(row), _RATER: rater}, record, begin, longest
            )
            patiently(at.traces.start_trace, info)
            ids.append(info.trace_id)
            spans.append(span)
        patiently(at.traces.log_spans, at.experiment_id, spans)
        patiently(at.traces._add_items_to_review_queue, queue_id, item_ids=ids)


def _bare(
    experiment_id: str, metadata: dict[str, str], record: Mapping[str, Any], begin: int, longest: int
) -> tuple[TraceInfo, Span]:
    """A trace of what a rater needs and of nothing that could sway them: no variant, score, stratum or probability."""
    from mlflow.entities import Span
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState

    otel_id = secrets.token_hex(16)
    shown = {name: record[name] for name in ("question", "contexts", "reference") if record[name]}
    info = TraceInfo(
        trace_id=f"tr-{otel_id}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=begin // 1_000_000,
        state=TraceState.OK,
        request_preview=_cut(_sheet(record) or f"record {int(metadata[_ROW]) + 1}", longest),
        response_preview=_cut(record["answer"] or "(no answer)", longest),
        execution_duration=0,
        trace_metadata=metadata,
        tags={"mlflow.traceName": "record"},
    )
    attributes = {
        "mlflow.traceRequestId": info.trace_id,
        "mlflow.spanType": "CHAIN",
        "mlflow.spanInputs": shown,
        "mlflow.spanOutputs": record["answer"],
    }
    span = Span.from_dict(
        {
            "trace_id": info.trace_id,
            "span_id": secrets.token_hex(8),
            "parent_span_id": None,
            "name": "record",
            "start_time_unix_nano": begin,
            "end_time_unix_nano": begin,
            "status": {"code": "STATUS_CODE_OK", "message": ""},
            "attributes": {name: json.dumps(value, ensure_ascii=False) for name, value in attributes.items()},
        }
    )
    return info, span


def _sheet(record: Mapping[str, Any]) -> str:
    """What stands above the answer. The page of a rater shows the preview of a trace and not its inputs."""
    contexts = record["contexts"] or ()
    parts = [record["question"], *(f"Context {at}: {text}" for at, text in enumerate(contexts, 1))]
    parts.append(f"Reference: {record['reference']}" if record["reference"] else None)
    return "\n\n".join(part for part in parts if part)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - len(_MORE)] + _MORE


def _pages(search: Any, *of: str) -> Iterator[Any]:
    token = None
    while True:
        page = patiently(search, *of, max_results=100, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
