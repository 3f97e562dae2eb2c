"""Functions as variants: what they return, raise and take, and how they end."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
import time
from pathlib import Path
from typing import Any

import jurimetrics as jm
import numpy as np
import pandas as pd
import pytest
from generated import echo, only, records, variant
from generated import quick_retries as _quick_retries  # noqa: F401 - a fixture of all tests here
from jurimetrics.answers import Answers
from jurimetrics.variants.generate import generate
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer

pytest_plugins = ["mlflow_store"]


def test_functions_sync_async_and_raising() -> None:
    async def later(record: jm.Record) -> str:
        await asyncio.sleep(0.001)
        return f"later {record.id}"

    def raising(record: jm.Record) -> str:
        if record.id == "1":
            raise ZeroDivisionError("no mills")
        return "fine"

    class Chain:
        async def __call__(self, record: jm.Record) -> str:
            return "chained"

    made = [
        Variant("sync", None, lambda record: f"now {record.id}"),
        Variant("async", None, later),
        Variant("hidden", None, lambda record: later(record)),
        Variant("object", None, Chain()),
        Variant("raising", None, raising),
    ]
    answers = generate(records(2), made, store=None)
    said = {(one.variant, one.id): one.answer for one in answers}
    assert [said[name, "1"] for name in ("sync", "async", "hidden", "object")] == [
        "now 1",
        "later 1",
        "later 1",
        "chained",
    ]
    failed = only(Answers(answers.failed))
    assert (failed.variant, failed.id) == ("raising", "1")
    assert (failed.answer_error or "").startswith("crash: ZeroDivisionError: no mills (raising, line ")
    assert answers.written_by["raising"]["kind"] == "callable" and answers.written_by["raising"]["model"] is None
    assert len(answers.calls) == 10 and (answers.calls["status"] == "crash").sum() == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, "unparsed: the function returned None"),
        ("", "unparsed: the function returned no answer"),
        (" \n", "unparsed"),
        (5, "unparsed: the function returned 5"),
        ({"contexts": ["a"]}, "unparsed: the function returned no answer"),
        ({"answer": None}, "unparsed"),
        ({"result": "x", 1: "y"}, "unparsed: the function returned no answer, or a blank one; found 'result', 1"),
        ({"answer": "x", "latency_s": -1}, "unparsed: what the function returned cannot be read"),
        ({"answer": "x", "contexts": 5}, "unparsed: what the function returned cannot be read"),
        ({"answer_error": "timeout: too slow"}, "timeout: too slow"),
        ({"answer": "", "answer_error": "broke"}, "crash: broke"),
    ],
)
def test_what_a_function_returns_that_is_no_answer(given: Any, error: str) -> None:
    one = only(generate(records(1), Variant("f", None, lambda record: given), store=None))
    assert one.answer is None and (one.answer_error or "").startswith(error)


@pytest.mark.parametrize("ending", [SystemExit(3), StopIteration("x"), asyncio.CancelledError(), TimeoutError("own")])
@pytest.mark.parametrize("awaited", [True, False])
def test_nothing_that_a_function_raises_ends_the_run(ending: BaseException, awaited: bool) -> None:
    def sync(record: jm.Record) -> str:
        if record.id == "1":
            raise ending
        return "fine"

    async def later(record: jm.Record) -> str:
        return sync(record)

    answers = generate(records(3), Variant("f", None, later if awaited else sync), store=None)
    assert [one.answer for one in answers] == ["fine", None, "fine"]
    assert (answers[1].answer_error or "").startswith("crash: ")


@pytest.mark.parametrize("given", [pd.Series({"answer": "x"}), pd.DataFrame({"answer": ["x"]}), np.zeros((3, 3))])
def test_failure_of_a_function_is_one_line_whatever_it_is(given: Any) -> None:
    def raising(record: jm.Record) -> str:
        raise ValueError("first\nsecond\r\nthird")

    answers = generate(records(1), [Variant("f", None, lambda record: given), raising], store=None)
    said = [one.answer_error or "" for one in answers]
    assert said[0].startswith("unparsed: the function returned ") and said[1].startswith(
        "crash: ValueError: first second third"
    )
    assert all(len(one.splitlines()) == 1 for one in said)


def test_what_a_function_repeats_of_its_record_is_left_out_under_every_name() -> None:
    given = {
        "Item": "other",
        "row_id": 7,
        "question": "a",
        "query": "b",
        "system": "s",
        "answer": "The monks.",
        "hops": 2,
    }
    one = only(generate(records(1, metadata={"topic": "mills"}), Variant("f", None, lambda record: given), store=None))
    assert (one.id, one.variant, one.question, one.answer) == ("0", "f", "Who built mill 0?", "The monks.")
    assert dict(one.metadata) == {"topic": "mills", "hops": 2}


def test_typed_failure_that_a_function_raises_stays_typed() -> None:
    def filtered(record: jm.Record) -> str:
        raise jm.JudgeError("filtered", "by our gateway")

    assert (
        only(generate(records(1), Variant("f", None, filtered), store=None)).answer_error == "filtered: by our gateway"
    )


def test_dictionary_says_what_was_retrieved_and_what_it_took() -> None:
    told = {"response": "Monks.", "retrieved_contexts": ["New."], "prompt_tokens": 5, "completion_tokens": 2}
    told |= {"cost_usd": 0.25, "latency_s": 1.5, "model": "inner", "trace_id": "t1"}
    answers = generate(records(1, metadata={"topic": "mills"}), Variant("f", None, lambda record: told), store=None)
    one = only(answers)
    assert (one.answer, one.contexts, one.answer_model) == ("Monks.", ("New.",), "inner")
    assert (one.answer_prompt_tokens, one.answer_completion_tokens) == (5, 2)
    assert (one.answer_cost_usd, one.answer_latency_s) == (0.25, 1.5)
    assert one.metadata == {"topic": "mills", "trace_id": "t1"} and one.reference == "Monks."
    assert answers.totals().cost_usd == 0.25
    nothing = generate(records(1), Variant("f", None, lambda record: {"answer": "?", "contexts": []}), store=None)
    assert only(nothing).contexts == (), "it says that it retrieved nothing"
    kept = generate(records(1), Variant("f", None, lambda record: {"answer": "?"}), store=None)
    assert only(kept).contexts == ("Monks built mill 0.",) and (only(kept).answer_latency_s or 0) > 0


def test_record_is_taken_as_an_answer() -> None:
    def system(record: jm.Record) -> jm.Record:
        return jm.Record("else", question="Rewritten?", answer="Monks.", contexts=("New.",), variant="own")

    one = only(generate(records(1), Variant("f", None, system), store=None))
    assert (one.id, one.variant, one.question, one.answer, one.contexts) == (
        "0", "f", "Who built mill 0?", "Monks.", ("New.",),
    )  # fmt: skip


@pytest.mark.parametrize("awaited", [True, False])
def test_functions_run_side_by_side_within_their_places(awaited: bool) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def enter(by: int) -> None:
        with lock:
            now[0] += by
            most[0] = max(most[0], now[0])

    def sync(record: jm.Record) -> str:
        enter(1)
        time.sleep(0.02)
        enter(-1)
        return "x"

    async def later(record: jm.Record) -> str:
        enter(1)
        await asyncio.sleep(0.02)
        enter(-1)
        return "x"

    function = later if awaited else sync
    generate(records(60), Variant("f", None, function), store=None, concurrency=20)
    assert 10 <= most[0] <= 20
    most[0] = 0
    generate(records(12), Variant("f", None, function, max_concurrency=2), store=None)
    assert most[0] == 2


@pytest.mark.parametrize("awaited", [True, False])
def test_function_that_hangs_costs_its_answer_alone(awaited: bool) -> None:
    release = threading.Event()

    def sync(record: jm.Record) -> str:
        if record.id == "1":
            release.wait(30)
        return "x"

    async def later(record: jm.Record) -> str:
        if record.id == "1":
            await asyncio.Event().wait()
        return "x"

    answers = generate(records(3), Variant("f", None, later if awaited else sync, timeout=0.2), store=None)
    release.set()
    assert [one.answer_error for one in answers] == [None, "timeout: f gave no answer within 0.2 s", None]


CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")


@pytest.mark.parametrize("awaited", [True, False])
def test_context_of_the_caller_is_seen_and_what_a_function_sets_stays_its_own(awaited: bool) -> None:
    def sync(record: jm.Record) -> str:
        seen = CALLER.get()
        CALLER.set(f"call {record.id}")
        return seen

    async def later(record: jm.Record) -> str:
        return sync(record)

    token = CALLER.set("study")
    try:
        answers = generate(records(5), Variant("f", None, later if awaited else sync), store=None, concurrency=1)
        assert {one.answer for one in answers} == {"study"} and CALLER.get() == "study"
    finally:
        CALLER.reset(token)


@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred")  # MLflow's tracer would be off after a warning
def test_open_trace_of_the_caller_goes_on_in_functions_and_no_state_is_left(mlflow_store: Any) -> None:
    import mlflow

    @mlflow.trace
    def sync(record: jm.Record) -> str:
        return f"sync {record.id}"

    @mlflow.trace
    async def later(record: jm.Record) -> str:
        return f"later {record.id}"

    mlflow.set_tracking_uri(mlflow_store.uri)
    try:
        with mlflow.start_span("study") as study:
            generate(records(2), [Variant("sync", None, sync), Variant("async", None, later)], store=None)
            assert mlflow.get_current_active_span().span_id == study.span_id
        spans = mlflow.get_trace(study.trace_id, flush=True).data.spans
        assert sorted(span.name for span in spans) == ["later", "later", "study", "sync", "sync"]
        assert {span.parent_id for span in spans} == {None, study.span_id}
        assert mlflow.active_run() is None and mlflow.get_current_active_span() is None
    finally:
        mlflow.flush_trace_async_logging(terminate=True)
        mlflow.set_tracking_uri(None)


def test_functions_are_not_kept_and_count_towards_a_budget(tmp_path: Path) -> None:
    called: list[str] = []

    def told(record: jm.Record) -> dict[str, Any]:
        called.append(record.id)
        return {"answer": "x", "cost_usd": 0.01}

    for _ in range(2):
        generate(records(3), Variant("f", None, told), store=tmp_path / "s.db")
    assert len(called) == 6
    answers = generate(records(5), Variant("f", None, told), store=None, budget=0.02, concurrency=1)
    assert len(called) == 8
    assert [one.answer_error for one in answers][2:] == ["budget: 0.0200 of 0.02 USD are spent"] * 3


@pytest.mark.parametrize("awaited", [True, False])
def test_interrupt_ends_functions_that_never_return(awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.asking.GRACE_S", 0.2)
    release = threading.Event()

    def stop(record: jm.Record) -> bool:
        if record.id == "2":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return record.id in "01"

    def sync(record: jm.Record) -> str:
        if not stop(record):
            release.wait(30)
        return "done"

    async def later(record: jm.Record) -> str:
        if not stop(record):
            await asyncio.Event().wait()
        return "done"

    answers = generate(records(8), Variant("f", None, later if awaited else sync), store=None, concurrency=3)
    release.set()
    assert [one.answer for one in answers[:2]] == ["done", "done"]
    assert {one.answer_error for one in answers[2:]} == {"cancelled: interrupted"}


def test_models_and_functions_in_one_generation() -> None:
    with ScriptedServer(echo) as server:
        both = [variant(server), Variant("f", None, lambda record: "x")]
        answers = generate(records(30), both, store=None, concurrency=4)
    assert [one.variant for one in answers] == ["a", "f"] * 30 and answers.failed == []
    assert answers.calls["judge"].value_counts().to_dict() == {"m": 30, "f": 30}
