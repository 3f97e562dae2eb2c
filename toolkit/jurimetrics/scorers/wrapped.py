"""Scorers of MLflow as metrics of the toolkit."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from jurimetrics.cells import show
from jurimetrics.errors import FAILURE_KINDS, FailureKind, InputError
from jurimetrics.judges.judge import JudgeError
from jurimetrics.metrics.metric import Metric, Score
from jurimetrics.metrics.metric import metric as make_metric
from jurimetrics.records import Record
from jurimetrics.scorers.fields import arguments_of, trace_of
from jurimetrics.tracking.quiet import quiet_mlflow

if TYPE_CHECKING:
    from mlflow.genai.scorers import Scorer

Arguments = Callable[[Record], Mapping[str, Any]]
RATINGS = {"yes": 1.0, "no": 0.0}


def from_scorer(
    scorer: Scorer,
    *,
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's own word
    higher_is_better: bool = True,
    threshold: float | None = None,
    needs: Sequence[str] | None = None,
    name: str | None = None,
    feedback: str | None = None,
    values: Mapping[str, float] | None = None,
    arguments: Arguments | None = None,
) -> Metric:
    """A scorer of MLflow (a function under `@scorer`, a built-in one, a class) as a metric for `evaluate`.

    Parameters
    ----------
    range, higher_is_better, threshold, needs : as of any metric. By default a record needs an answer if the scorer takes
        outputs.
    name : of the metric; by default the scorer's.
    feedback : which one to take where the scorer gives several; by default the one with the scorer's name.
    values : numbers for the texts that the scorer gives, as `{"good": 1, "bad": 0}`. "yes" and true are 1, "no" and false 0
        anyhow, and "unknown" is undefined.
    arguments : a function of the record that gives inputs, outputs, expectations and, if wanted, trace. By default inputs
        are question and contexts (for built-in scorers, which show all inputs to their model, the question alone), outputs
        the answer, expectations the reference as `expected_response` and the record's metadata; a scorer that takes a
        trace gets one with the contexts in a RETRIEVER span.

    A computed metric: its rows have the judge "computed" and exist once. What the scorer asks and spends by itself is unknown
    here: tokens and cost of its rows are null, and it stands in no call, no total, no budget and no store. It is called in
    a thread, with MLflow's own time limit.

    A number outside the range is `failed: out_of_range`, any other value `failed: unparsed`, an exception `failed: crash`;
    the error of a feedback fails with its code where that is a kind of failure, else as a crash, or is undefined or not
    applicable where its code says so. No value is undefined. The version is a hash of the scorer's source and settings.

    Raises `InputError` for what is no scorer, and for one that scores whole sessions.

    >>> from mlflow.genai.scorers import scorer
    >>> @scorer
    ... def brief(outputs):
    ...     return len(outputs) < 10
    >>> from jurimetrics import BaselineJudge, evaluate
    >>> records = [{"id": "1", "answer": "Madrid."}, {"id": "2", "answer": "It is Madrid, of course."}]
    >>> evaluate(records, [from_scorer(brief)], BaselineJudge(), store=None).scores["score"].tolist()
    [1.0, 0.0]
    """
    with quiet_mlflow():
        from mlflow.genai.scorers import Scorer as KnownScorer

    if not isinstance(scorer, KnownScorer):
        made = f"{scorer.__name__}(...)" if isinstance(scorer, type) else "a function under @scorer"
        raise InputError(f"from_scorer: expected a scorer of MLflow, such as {made}, found {type(scorer).__name__}")
    if scorer.is_session_level_scorer:
        raise InputError(f"from_scorer: {scorer.name} scores whole sessions, not single answers")
    if arguments is not None and not callable(arguments):
        raise InputError(f"from_scorer: arguments must be a function of a record, not {show(arguments)}")
    takes = set(inspect.signature(scorer.__call__).parameters)
    wanted = feedback or scorer.name
    known = RATINGS | _numbers(values)

    async def scored(record: Record, ask: Any) -> Score:
        given = dict(arguments_for(scorer, record, takes) if arguments is None else arguments(record))
        # In a thread, because a scorer may wait for a model of its own.
        return _score(await asyncio.to_thread(_run, scorer, given), wanted, known)

    made = make_metric(
        needs=(("answer",) if "outputs" in takes else ()) if needs is None else needs,
        range=range,
        higher_is_better=higher_is_better,
        threshold=threshold,
        judged=False,
        version=_version(scorer, arguments, values, wanted),
        name=scorer.name if name is None else name,
    )(scored)
    return replace(made, asks_elsewhere=True)


def _numbers(values: Any) -> dict[str, float]:
    """`values` if it gives texts a number each. Raises `InputError` otherwise."""
    if values is not None and not isinstance(values, Mapping):
        raise InputError(
            f"from_scorer: values must give a number for each text, as in {{'good': 1}}, not {show(values)}"
        )
    found = dict(values or {})
    for text, number in found.items():
        if not isinstance(text, str) or not isinstance(number, Real) or not math.isfinite(number):
            raise InputError(
                f"from_scorer: values must give a number for each text, not {show(number)} for {show(text)}"
            )
    return {text: float(number) for text, number in found.items()}


def arguments_for(scorer: Scorer, record: Record, takes: set[str]) -> dict[str, Any]:
    """What a scorer that takes these parameters is called with."""
    from mlflow.genai.scorers.base import ScorerKind

    given = arguments_of(record, contexts=scorer.kind is not ScorerKind.BUILTIN)
    return {**given, "trace": trace_of(record)} if "trace" in takes else given


def _run(scorer: Scorer, given: Mapping[str, Any]) -> Any:
    """What a scorer returns. Raises `JudgeError` for what MLflow takes for no feedback, a number of numpy among it."""
    from mlflow.exceptions import MlflowException

    try:
        return scorer.run(**given)  # type: ignore[no-untyped-call]
    except MlflowException as error:
        if f"{scorer.name} must return one of" not in str(error):
            raise
        raise JudgeError("unparsed", str(error)) from None


def _score(given: Any, wanted: str, known: Mapping[str, float]) -> Score:
    """What a scorer returned as a score. Raises `JudgeError` for what is none."""
    from mlflow.entities import Feedback

    if isinstance(given, list):
        given = _one_of(given, wanted)
    if not isinstance(given, Feedback):
        return _valued(given, "", {}, known)
    source = given.source
    details: dict[str, Any] = {"feedback": given.name, "source": f"{source.source_type} {source.source_id}"}
    details |= {"metadata": dict(given.metadata)} if given.metadata else {}
    if given.error is not None:
        return _failed(given.error.error_code, given.error.error_message or given.rationale or "", details)
    return _valued(given.value, given.rationale or "", details, known)


def _one_of(given: list[Any], wanted: str) -> Any:
    named = [one for one in given if getattr(one, "name", None) == wanted]
    if len(named) == 1:
        return named[0]
    if len(given) == 1:
        return given[0]
    if not given:
        return None
    names = ", ".join(repr(getattr(one, "name", type(one).__name__)) for one in given)
    raise JudgeError("unparsed", f"the scorer gave {names}, of which none is the one called {wanted!r}: say feedback=")


def _failed(code: str | None, message: str, details: Mapping[str, Any]) -> Score:
    if code == "undefined":
        return Score.undefined(message, details=details)
    if code == "not_applicable":
        return Score.not_applicable(message)
    if code in FAILURE_KINDS:
        raise JudgeError(cast("FailureKind", code), message)
    raise JudgeError("crash", ": ".join(part for part in (code, message) if part) or "the scorer says no more")


def _valued(value: Any, reason: str, details: Mapping[str, Any], known: Mapping[str, float]) -> Score:
    text = str(value).strip() if isinstance(value, str) else None
    if value is None or (text is not None and text.casefold() == "unknown" and text not in known):
        return Score.undefined(reason or "the scorer gave no value", details=details)
    if text is not None:
        number = known.get(text, known.get(text.casefold()))
        if number is None:
            raise JudgeError("unparsed", f"the scorer gave {text!r}: say values= for what it means")
        return Score(float(number), reason or text, details)
    if isinstance(value, Real | np.bool_):
        return Score(_float(value), reason, details)
    raise JudgeError("unparsed", f"the scorer gave a {type(value).__name__}, not a number, a truth value or a text")


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all ranges
        return math.inf if value > 0 else -math.inf


def _version(scorer: Scorer, *others: Any) -> str:
    """The first 12 digits of a hash of what a scorer does: its source and settings."""
    try:
        stated: Any = scorer.model_copy().model_dump()
        if stated.get("call_source") is not None:
            stated.pop("mlflow_version", None)
    except Exception:  # noqa: BLE001 - MLflow refuses to state classes of the user's, each kind in its own way
        stated = {"name": scorer.name, "description": scorer.description, "class": _source(type(scorer))}
    parts = [_source(one) if callable(one) else one for one in others]
    text = json.dumps([stated, parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _source(one: Any) -> str:
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):
        return getattr(one, "__qualname__", type(one).__name__)
