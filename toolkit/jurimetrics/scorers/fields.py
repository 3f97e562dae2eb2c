"""What MLflow hands to a scorer (inputs, outputs, expectations, trace) as a record, and a record as what it hands over.

Traces are read and built as values: MLflow's tracer, its destination and what is open in it are not involved.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jurimetrics.cells import is_missing, plain, show
from jurimetrics.columns import RECORD_COLUMNS, Columns
from jurimetrics.errors import InputError
from jurimetrics.records import Record

if TYPE_CHECKING:
    from mlflow.entities import Trace

SOURCES: Mapping[str, tuple[str, ...]] = {
    "inputs": ("id", "question", "contexts", "reference"),
    "outputs": ("answer", "contexts"),
    "expectations": ("reference",),
}
"""The fields of a record that each argument of a scorer may hold."""
_WHOLE = {"inputs": "question", "outputs": "answer", "expectations": "reference"}
_DOCUMENT = ("page_content", "content", "text")


def check_columns(columns: Mapping[str, str]) -> Mapping[str, str]:
    """`columns` if it maps fields that a scorer gets. Raises `InputError` otherwise.

    >>> check_columns({"question": "prompt"})
    {'question': 'prompt'}
    """
    meanings = dict.fromkeys(name for names in SOURCES.values() for name in names)
    Columns("columns", {name: RECORD_COLUMNS[name] for name in meanings}, columns)
    if strange := [column for column in columns.values() if not isinstance(column, str)]:
        raise InputError(f"columns: expected names, found {show(strange[0])}")
    return columns


def record_of(
    inputs: Any = None,
    outputs: Any = None,
    expectations: Any = None,
    trace: Any = None,
    columns: Mapping[str, str] | None = None,
) -> Record:
    """One record of what a scorer gets; where two arguments hold a field, the first of them counts.

    Names are understood as in `load_records`; `columns` maps others. A text alone is the question, the answer or the
    reference, and so is the only entry of a dictionary if it is a text. Chat messages are the question (one alone its
    text, several as lines with their roles) and the answer; `expected_facts` are the reference where there is no other.
    Contexts come from the trace's RETRIEVER spans where inputs and outputs have none; what of inputs, outputs and
    expectations is not given is read from the trace. All else is metadata.

    Raises `InputError` where two names mean the same or a value, or the trace, is of the wrong kind.

    >>> record = record_of({"query": "Capital of Spain?", "topic": "geography"}, "Madrid.", {"expected_response": "Madrid"})
    >>> record.question, record.answer, record.reference, dict(record.metadata)
    ('Capital of Spain?', 'Madrid.', 'Madrid', {'topic': 'geography'})
    """
    given = {"inputs": inputs, "outputs": outputs, "expectations": expectations}
    if trace is not None and not (hasattr(trace, "data") and hasattr(trace, "info")):
        raise InputError(f"trace: expected a trace of MLflow, found {type(trace).__name__}")
    if trace is not None:
        given = {name: _of_trace(trace, name) if _lacks(value) else value for name, value in given.items()}
    fields: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for source, value in given.items():
        found, others = _read(source, value, columns or {})
        for name, inner in found.items():
            if name not in fields and not is_missing(inner):
                fields[name] = inner
        metadata = others | metadata
    fields["contexts"] = _documents(fields.get("contexts")) or (() if trace is None else _retrieved(trace))
    fields.setdefault("id", "1")
    return Record(**fields, metadata=metadata)


def _lacks(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, Mapping) and not value)


def _read(source: str, value: Any, columns: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that an argument holds, and its other entries."""
    whole = _WHOLE[source]
    value = _plain_object(value)
    if _lacks(value):
        return {}, {}
    if not isinstance(value, Mapping):
        return {whole: _said(value, source) if isinstance(value, Sequence) else value}, {}
    known = {name: RECORD_COLUMNS[name] for name in SOURCES[source]}
    chosen = {name: column for name, column in columns.items() if name in known and column in value}
    named = {str(name): inner for name, inner in value.items()}
    layout = Columns(source, known, chosen).layout(tuple(named))
    found = {meaning: named[name] for meaning, name in layout.fields.items()}
    others = {name: named[name] for name in layout.others}
    if isinstance(found.get(whole), list):
        found[whole] = _said(found[whole], source)
    if whole not in found:
        found |= _elsewhere(source, whole, others)
    return found, others


def _elsewhere(source: str, whole: str, others: dict[str, Any]) -> dict[str, Any]:
    """The field that an argument is all about, from an entry with another name, which then is no longer among them."""
    if source == "expectations":
        facts = others.get("expected_facts")
        return {whole: "\n".join(map(str, facts))} if isinstance(facts, list) and facts else {}
    for name in ("messages", "choices"):
        if isinstance(others.get(name), list) and others[name]:
            return {whole: _said(others.pop(name), source)}
    if len(others) == 1 and isinstance(next(iter(others.values())), str):
        return {whole: others.popitem()[1]}
    return {}


def _plain_object(value: Any) -> Any:
    """A reply of a client's library as the dictionary it stands for."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value


def _said(value: Any, source: str) -> Any:
    """The text of messages, choices or parts: all of a conversation for inputs, the last for outputs."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    texts = [(role, text) for role, text in map(_message, value) if text]
    if not texts:
        return None
    if source != "inputs":
        return texts[-1][1]
    spoken = [(role, text) for role, text in texts if role != "system"] or texts
    return spoken[0][1] if len(spoken) == 1 else "\n".join(f"{role}: {text}" for role, text in spoken)


def _message(value: Any) -> tuple[str, str]:
    """The role and the text of a message in any of the shapes of chat endpoints."""
    value = _plain_object(value)
    if isinstance(value, str):
        return "user", value
    if not isinstance(value, Mapping):
        return "", ""
    inner = value.get("message", value)
    content = inner.get("content", inner.get("text")) if isinstance(inner, Mapping) else inner
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = "".join(_message(part)[1] for part in content)
    role = inner.get("role") if isinstance(inner, Mapping) else None
    return str(role or "user"), content if isinstance(content, str) else ""


def _of_trace(trace: Any, name: str) -> Any:
    if name == "expectations":
        held = trace.info.assessments or ()
        return {one.name: one.expectation.value for one in held if one.expectation is not None}
    root = next((span for span in trace.data.spans if span.parent_id is None), None)
    return getattr(root, name, None)


def _retrieved(trace: Any) -> list[str]:
    """The documents of the trace's RETRIEVER spans in the order of time; not of those inside another one."""
    spans = {span.span_id: span for span in trace.data.spans}
    retrievers = {identity for identity, span in spans.items() if span.span_type == "RETRIEVER"}
    found: list[str] = []
    for span in sorted((spans[identity] for identity in retrievers), key=lambda span: span.start_time_ns):
        above = spans.get(span.parent_id)
        while above is not None and above.span_id not in retrievers:
            above = spans.get(above.parent_id)
        if above is None:
            found += _documents(span.outputs)
    return found


def _documents(value: Any) -> list[Any]:
    """Documents as texts, whether they are texts, or dictionaries or objects that hold one."""
    if is_missing(value):
        return []
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        value = value.tolist() if hasattr(value, "tolist") else [value]
    return [_document(each) for each in value]


def _document(value: Any) -> Any:
    for name in _DOCUMENT:
        inner = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if isinstance(inner, str):
            return inner
    return value


# --- from a record ---


def arguments_of(record: Record, *, contexts: bool = True) -> dict[str, Any]:
    """What a scorer gets of a record; `contexts` says whether they stand among its inputs.

    >>> arguments_of(Record("7", question="Who?", answer="Ann.", reference="Ann", metadata={"topic": "names"}))
    {'inputs': {'question': 'Who?'}, 'outputs': 'Ann.', 'expectations': {'expected_response': 'Ann', 'topic': 'names'}}
    """
    inputs: dict[str, Any] = {} if record.question is None else {"question": record.question}
    if contexts and record.contexts:
        inputs["contexts"] = list(record.contexts)
    own = {name: plain(value) for name, value in record.metadata.items()}
    expectations: dict[str, Any] = {}
    if record.reference is not None:
        own = {name: value for name, value in own.items() if name.strip().casefold() not in RECORD_COLUMNS["reference"]}
        expectations["expected_response"] = record.reference
    return {"inputs": inputs, "outputs": record.answer, "expectations": {**expectations, **own}}


def trace_of(record: Record) -> Trace:
    """A record as a trace of its own: a root span, and a RETRIEVER span with its documents if it has any."""
    from mlflow.entities import Span, Trace, TraceData
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState

    now = time.time_ns()
    info = TraceInfo(
        trace_id=f"tr-{secrets.token_hex(16)}",
        trace_location=TraceLocation.from_experiment_id("0"),
        request_time=now // 1_000_000,
        state=TraceState.ERROR if record.answer_error else TraceState.OK,
        execution_duration=round(1000 * (record.answer_latency_s or 0.0)),
    )
    root = secrets.token_hex(8)
    question = {} if record.question is None else {"question": record.question}
    spans = [_span(info.trace_id, root, None, "answer", "CHAIN", question, record.answer, now)]
    if record.contexts:
        documents = [{"page_content": text, "metadata": {}} for text in record.contexts]
        spans.append(
            _span(info.trace_id, secrets.token_hex(8), root, "retrieve", "RETRIEVER", question, documents, now)
        )
    return Trace(info, TraceData([Span.from_dict(span) for span in spans]))


def _span(
    trace_id: str, span_id: str, parent: str | None, name: str, kind: str, inputs: Any, outputs: Any, at_ns: int
) -> dict[str, Any]:
    attributes = {
        "mlflow.traceRequestId": trace_id, "mlflow.spanType": kind, "mlflow.spanInputs": inputs,
        "mlflow.spanOutputs": outputs,
    }  # fmt: skip
    return {
        "trace_id": trace_id.removeprefix("tr-"),
        "span_id": span_id,
        "parent_span_id": parent,
        "name": name,
        "start_time_unix_nano": at_ns,
        "end_time_unix_nano": at_ns,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()},
    }


def seen(inputs: Any, outputs: Any, expectations: Any) -> str:
    """The names in what a scorer got, for a message that says what could not be found.

    >>> seen({"prompt": "Who?", "n": 1}, "Ann.", None)
    'inputs: "prompt", "n"; outputs: a text; expectations: nothing'
    """
    return "; ".join(
        f"{source}: {_names(value)}"
        for source, value in (("inputs", inputs), ("outputs", outputs), ("expectations", expectations))
    )


def _names(value: Any) -> str:
    if _lacks(value):
        return "nothing"
    if isinstance(value, Mapping):
        return ", ".join(f'"{name}"' for name in value)
    return "a text" if isinstance(value, str) else type(value).__name__
