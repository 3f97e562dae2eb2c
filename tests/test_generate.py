"""Variants that write answers: against real HTTP servers on loopback that misbehave on purpose, and real functions."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from jurimetrics.answers import Answers
from jurimetrics.engine.calls import EndpointError
from jurimetrics.prompts import Prompt
from jurimetrics.variants.generate import generate, plan_answers
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer, allow, body, drop, error, hang, reply, served_apart, with_faults

pytest_plugins = ["mlflow_store"]

SHORT = Prompt("short", "In short: {question}", system="Be kind.", tags=("qa",))


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurimetrics.engine.limits.FIRST_WAIT_S", 0.01)


def records(count: int = 3, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": str(at),
            "question": f"Who built mill {at}?",
            "contexts": [f"Monks built mill {at}."],
            "reference": "Monks.",
        }
        | more
        for at in range(count)
    ]


def echo(call: Any) -> Any:
    return reply(f"{call.model}: {call.prompt}", usage=(len(call.prompt) // 4, 7))


def variant(server: ScriptedServer, name: str = "a", prompt: Any = SHORT, model: str = "m", **settings: Any) -> Variant:
    return Variant(name, prompt, model, **{"base_url": server.url, "price": (1, 2), "timeout": 5.0, **settings})


def only(answers: Answers) -> jm.Record:
    assert len(answers) == 1
    return answers[0]


# ---------------------------------------------------------------------------------------------- answers


def test_every_variant_answers_every_record_side_by_side() -> None:
    with ScriptedServer(echo) as server:
        variants = Variant.grid(
            [SHORT, Prompt("full", "{contexts}\n{question}")], ["m1", "m2"], base_url=server.url, price=0
        )
        answers = generate(records(3, metadata={"topic": "mills"}, group="g"), variants, store=None)
    names = ["short/m1", "short/m2", "full/m1", "full/m2"]
    assert [(one.id, one.variant) for one in answers] == [(str(at), name) for at in range(3) for name in names]
    one = answers[3]
    assert one.answer == "m2: Monks built mill 0.\nWho built mill 0?"
    assert (one.question, one.contexts, one.reference) == ("Who built mill 0?", ("Monks built mill 0.",), "Monks.")
    assert one.group == "g" and one.metadata == {"topic": "mills"} and one.answer_model == "m2"
    assert one.answer_error is None and answers.failed == []


def test_answers_say_what_they_took() -> None:
    with ScriptedServer(lambda call: reply("Monks.", usage=(1000, 500), latency=0.05)) as server:
        one = only(generate(records(1), variant(server), store=None))
    assert (one.answer_prompt_tokens, one.answer_completion_tokens) == (1000, 500)
    assert one.answer_cost_usd == pytest.approx(0.002) and (one.answer_latency_s or 0) >= 0.05


def test_unknown_price_and_usage_are_unknown_not_zero() -> None:
    with ScriptedServer(lambda call: reply("Monks.")) as server:
        answers = generate(records(1), variant(server, price=None), store=None)
    assert only(answers).answer_cost_usd is None and only(answers).answer_completion_tokens is None
    assert answers.totals().cost_usd is None and "without a known price" in str(answers.totals())


def test_calls_are_a_call_frame_and_sum_to_the_bill() -> None:
    with ScriptedServer(echo) as server:
        answers = generate(records(4), [variant(server), variant(server, "b", "{question}")], store=None)
    assert list(answers.calls) == list(
        jm.evaluate(records(1, answer="x"), ["f1"], jm.BaselineJudge(), store=None).calls
    )
    assert set(answers.calls["judge"]) == {"m"} and set(answers.calls["kind"]) == {"write"}
    assert answers.calls["cost_usd"].sum() == pytest.approx(sum(one.answer_cost_usd or 0 for one in answers), abs=1e-12)
    assert answers.totals().calls == 8 and answers.totals().cost_usd == pytest.approx(answers.calls["cost_usd"].sum())


def test_written_by_says_what_wrote_them_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "canary-canary-canary")
    with ScriptedServer(echo) as server:
        one = variant(
            server,
            prompt=Prompt("p", "canary-canary-canary {question}"),
            api_key_env="MY_KEY",
            base_url=server.url.replace("http://", "http://me:canary-password@"),
            extra_headers={"X-Key": "canary-header-value"},
            extra_body={"top_p": 0.5, "api_key": "canary-body-value", "tools": [{"auth_token": "canary-inner-value"}]},
            temperature=0.7,
            max_tokens=9,
            family="mills",
        )
        answers = generate(records(1), one, store=None)
    by = answers.written_by["a"]
    assert "canary" not in json.dumps(by) + repr(one) + repr(answers) + answers._repr_html_()
    assert by["settings"]["temperature"] == 0.7 and by["settings"]["max_tokens"] == 9
    assert by["settings"]["extra_body"] == {"top_p": 0.5, "api_key": "***", "tools": [{"auth_token": "***"}]}
    assert (by["kind"], by["prompt"], by["model"], by["family"]) == ("chat", "p", "m", "mills")
    assert by["prompt_version"] == one.prompt.version and by["address"] == server.url  # type: ignore[union-attr]


def test_results_keep_what_wrote_the_answers(tmp_path: Path) -> None:
    with ScriptedServer(echo) as server:
        answers = generate(records(2), variant(server), store=None)
    results = jm.evaluate(answers, ["f1"], jm.BaselineJudge(), store=None, out=tmp_path / "out")
    assert jm.Results.load(tmp_path / "out").settings["written_by"] == answers.written_by != {}
    assert results.settings["variants"] == ["a"]
    assert jm.evaluate(list(answers), ["f1"], jm.BaselineJudge(), store=None).settings["written_by"] == {}


def test_answers_are_a_list_that_keeps_what_wrote_it() -> None:
    with ScriptedServer(echo) as server:
        first, second = (generate(records(2), variant(server, name), store=None) for name in "ab")
        third = generate(records(2), variant(server, "a", "Else: {question}"), store=None)
    assert isinstance(first[:1], Answers) and first[:1].written_by == first.written_by
    both = first + second
    assert list(both.written_by) == ["a", "b"] and len(both.calls) == 4 and len(both) == 4
    with pytest.raises(jm.InputError, match="two different variants are called 'a'"):
        first + third
    for twin in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert twin == first and twin.written_by == first.written_by and len(twin.calls) == 2
    assert "<b>" not in Answers([jm.Record("1", variant="<b>", answer="x")])._repr_html_()


# ---------------------------------------------------------------------------------------------- sharing and the store


def test_same_prompt_to_the_same_model_is_one_request() -> None:
    with ScriptedServer(echo) as server:
        twins = [variant(server, name, Prompt(name, "{question}")) for name in "ab"]
        answers = generate(records(3, question="Who?"), twins, store=None)
        assert server.count == 1 and server.repeats == 0
    assert {one.answer for one in answers} == {"m: Who?"} and len(answers) == 6
    assert all(one.answer_cost_usd == answers.calls["cost_usd"].sum() for one in answers)


def test_second_run_asks_nothing_and_gives_the_same_answers(tmp_path: Path) -> None:
    with ScriptedServer(echo) as server:
        first = generate(records(5), variant(server), store=tmp_path / "s.db")
        second = generate(records(5), variant(server), store=tmp_path / "s.db")
        assert server.count == 5
        assert list(first) == list(second), "also seconds and cost are those of the request that brought the answer"
        assert second.calls["cost_usd"].sum() == 0 and second.totals().cached_calls == 5
        assert second.totals().saved_usd == pytest.approx(first.calls["cost_usd"].sum())
        generate([*records(6)], variant(server), store=tmp_path / "s.db")
        assert server.count == 6, "only what is not there yet"


def test_key_goes_by_what_is_sent_and_not_by_names_prices_and_limits(tmp_path: Path) -> None:
    with ScriptedServer(echo) as server:
        store = tmp_path / "s.db"
        generate(records(1), variant(server), store=store)
        same: list[Any] = [
            variant(server, "other name"),
            variant(server, prompt=Prompt("renamed", SHORT.user, SHORT.system)),
            variant(server, price=(5, 5)),
            variant(server, max_concurrency=1, requests_per_minute=6000, timeout=9.0, family="f"),
        ]
        for one in same:
            generate(records(1), one, store=store)
        assert server.count == 1
        other = [{"temperature": 0.5}, {"max_tokens": 50}, {"seed": 1}, {"model": "m2"}, {"extra_body": {"top_p": 0.5}}]
        for settings in other:
            generate(records(1), variant(server, **settings), store=store)
        generate(records(1), variant(server, prompt=Prompt("short", SHORT.user + " ", SHORT.system)), store=store)
        assert server.count == 1 + len(other) + 1


def test_price_declared_later_is_known_for_stored_answers(tmp_path: Path) -> None:
    with ScriptedServer(lambda call: reply("Monks.", usage=(1000, 1000))) as server:
        generate(records(1), variant(server, price=None), store=tmp_path / "s.db")
        again = generate(records(1), variant(server, price=(1, 2)), store=tmp_path / "s.db")
        assert only(again).answer_cost_usd == pytest.approx(0.003) and server.count == 1


def test_default_store_is_the_project_s(project: Path) -> None:
    with ScriptedServer(echo) as server:
        generate(records(1), variant(server))
        generate(records(1), variant(server))
        assert server.count == 1 and (project / ".jurimetrics" / "store.db").is_file()


# ---------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        (reply(""), "unparsed: the reply is blank", 2),
        (reply(None), "unparsed", 2),
        (reply("<think>hm</think>"), "unparsed: the reply holds nothing but thinking", 2),
        (reply("The mon", finish_reason="length", usage=(9, 3)), "truncated: the reply was cut off after 3 tokens", 1),
        (reply("", finish_reason="content_filter"), "filtered", 1),
        (reply(None, refusal="I will not."), "refused: the model declined: I will not.", 1),
        (error(400, "content_filter", "blocked by the content management policy"), "filtered", 1),
        (error(400, "context_length_exceeded", "maximum context length is 10 tokens"), "rejected", 1),
        (body("<html>login</html>"), "transport", 3),
        (error(500), "transport", 3),
        (drop(), "transport", 3),
        (hang(), "timeout", 3),
    ],
)
def test_what_is_no_answer_is_a_typed_failure(answer: Any, kind: str, requests: int) -> None:
    bad = "mill 1?"
    with ScriptedServer(lambda call: answer if bad in call.prompt else echo(call)) as server:
        answers = generate(records(3), variant(server, timeout=0.3, max_tokens=3), store=None, retries=2)
        asked = [call for call in server.requests if bad in call.prompt]
    assert [one.answer is None for one in answers] == [False, True, False]
    assert (answers[1].answer_error or "").startswith(kind) and answers[1].answer_model == "m"
    assert answers[1].answer_cost_usd is None and answers.totals().failed_rows == 1
    assert len(asked) == requests, "sent in the same words each time"
    assert len({json.dumps(call.body, sort_keys=True) for call in asked}) == 1


def test_failed_answers_are_never_scored_and_say_why() -> None:
    with ScriptedServer(lambda call: reply("", finish_reason="content_filter")) as server:
        answers = generate(records(2), variant(server), store=None)
    results = jm.evaluate(answers, "all", jm.BaselineJudge(), store=None)
    needing = [name for name, one in results.settings["metrics"].items() if "answer" in one["needs"]]
    about_answers = results.scores[results.scores["metric"].isin(needing)]
    assert len(needing) > 15 and (about_answers["status"] == "not_applicable").all()
    assert about_answers["reason"].str.contains("the answer was not made: filtered: ").all()
    assert about_answers["score"].isna().all()


def test_429s_are_waited_out() -> None:
    with ScriptedServer(allow(echo, in_flight=3, per_second=60, retry_after=0.05), latency=0.03) as server:
        answers = generate(records(40), variant(server), store=None, concurrency=16)
    assert answers.failed == [] and (answers.calls["status"] == "rate_limited").any()


def test_mixed_faults_lose_nothing_and_only_faults_are_asked_again() -> None:
    faulty = with_faults(echo, {"429": 0.05, "500": 0.05, "drop": 0.03, "503": 0.02}, seed=5, retry_after=0.01)
    with ScriptedServer(faulty) as server:
        answers = generate(records(150), variant(server), store=None, concurrency=16)
        assert answers.failed == [] and len({one.answer for one in answers}) == 150
        assert server.repeats == sum(faulty.served.values()) > 5


def test_parameter_that_the_model_refuses_is_left_out_and_listed() -> None:
    def handler(call: Any) -> Any:
        if "temperature" in call.body:
            return error(400, "unsupported_value", "temperature is not supported", param="temperature")
        return echo(call)

    with ScriptedServer(handler) as server:
        answers = generate(records(8), variant(server), store=None)
        assert server.count == 9 and answers.failed == []
    assert answers.calls["refused_parameters"].iloc[-1] == ["temperature"]


def test_record_without_what_the_prompt_asks_for_is_rejected_and_not_asked() -> None:
    given = [
        *records(2),
        {"id": "x", "contexts": ["c"], "topic": None},
        {"id": "y", "question": "Why?", "topic": "law"},
    ]
    with ScriptedServer(echo) as server:
        answers = generate(given, variant(server, prompt="{topic}: {question}"), store=None)
        assert server.count == 1
    errors = {one.id: one.answer_error for one in answers}
    assert errors["0"] == "rejected: the record has no topic"
    assert errors["x"] == "rejected: the record has no topic and no question" and errors["y"] is None


def test_prompt_longer_than_declared_is_not_sent() -> None:
    given = [*records(1), *records(1, id="long", question="Why? " * 100)]
    with ScriptedServer(echo) as server:
        answers = generate(given, variant(server, max_input_tokens=50), store=None)
        assert server.count == 1
    assert (answers[1].answer_error or "").startswith("rejected: does not fit: the prompt takes about ")


def test_too_long_prompts_are_told_by_the_endpoint_alone_and_kept(tmp_path: Path) -> None:
    def handler(call: Any) -> Any:
        if len(call.prompt) > 400:
            return error(400, "context_length_exceeded", "This model's maximum context length is 100 tokens")
        return echo(call)

    # Longest first: what the endpoint says of one must not keep shorter ones from being sent.
    given = [*records(1, id="long", question="Why? " * 100), *records(1, id="fits", question="Why? " * 70)]
    with ScriptedServer(handler) as server:
        answers = generate(given, variant(server), store=tmp_path / "s.db", concurrency=1)
        assert [one.answer is None for one in answers] == [True, False] and server.count == 2
        again = generate(given, variant(server), store=tmp_path / "s.db")
        assert server.count == 2 and "retry_failed=True asks again" in (again[0].answer_error or "")
        generate(given, variant(server), store=tmp_path / "s.db", retry_failed=True)
        assert server.count == 3


def test_budget_ends_cleanly_and_the_rest_goes_on_later(tmp_path: Path) -> None:
    with ScriptedServer(echo) as server:
        store = tmp_path / "s.db"
        short = generate(records(6), variant(server), store=store, budget={"calls": 2}, concurrency=1)
        assert [one.answer_error for one in short][2:] == ["budget: 2 of 2 calls are made"] * 4
        assert generate(records(6), variant(server), store=store).failed == [] and server.count == 6


def test_budget_in_dollars_needs_prices() -> None:
    with ScriptedServer(echo) as server:
        with pytest.raises(jm.InputError, match="no price is known for 'm'"):
            generate(records(1), variant(server, price=None), store=None, budget=1.0)
        assert server.count == 0


def test_endpoint_that_cannot_be_used_is_told_before_money_is_spent() -> None:
    gone = Variant("gone", "{question}", "m", base_url="http://127.0.0.1:9/v1", price=0)
    with pytest.raises(EndpointError, match=r"^model 'm': .*127\.0\.0\.1:9"):
        generate(records(20), gone, store=None)
    with ScriptedServer(lambda call: error(401, "invalid_api_key", "wrong key")) as server:
        with pytest.raises(EndpointError, match="wrong key"):
            generate(records(20), variant(server), store=None)
        assert server.count == 1


def test_missing_key_is_told_of_the_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    one = Variant("a", "{question}", "m", base_url="http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(jm.InputError, match=r"^variant 'a': .*NO_SUCH_KEY"):
        generate(records(1), one, store=None)


# ---------------------------------------------------------------------------------------------- interrupts and manners


def test_interrupt_keeps_what_is_done_and_a_second_run_asks_the_rest(tmp_path: Path) -> None:
    stopped = threading.Event()

    def handler(call: Any) -> Any:
        if call.n == 9 and not stopped.is_set():
            stopped.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return echo(call)

    with ScriptedServer(handler, latency=0.02) as server:
        first = generate(records(40), variant(server), store=tmp_path / "s.db", concurrency=4)
        assert {one.answer_error for one in first.failed} == {"cancelled: interrupted"}
        assert 5 <= len(first) - len(first.failed) < 20 and len(first) == 40
        second = generate(records(40), variant(server), store=tmp_path / "s.db", concurrency=4)
        assert second.failed == [] and server.count <= 40 + 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("jurimetrics-")]


WRITE = """
import sys
from jurimetrics.variants.generate import generate
from jurimetrics.variants.variant import Variant
records = [{"id": str(at), "question": f"Who built mill {at}?"} for at in range(200)]
generate(records, Variant("a", "{question}", "m", base_url=sys.argv[1], price=0), store=sys.argv[2], concurrency=4)
"""


@pytest.mark.slow
def test_process_that_is_killed_costs_what_was_in_flight(tmp_path: Path) -> None:
    with served_apart("--latency", "0.01") as server:
        command = [sys.executable, "-c", WRITE, server.url, str(tmp_path / "s.db")]
        for goal in (30, 100):
            with subprocess.Popen(command) as process:
                deadline = time.monotonic() + 60
                while server.stats()["requests"] < goal and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.005)
                assert process.poll() is None, "it was to be killed before its end"
                os.kill(process.pid, signal.SIGKILL)
        assert subprocess.run(command, timeout=120).returncode == 0
        assert 200 <= server.stats()["requests"] <= 200 + 2 * 4


async def test_works_under_a_running_loop_and_twice_in_a_row() -> None:
    with ScriptedServer(echo) as server:
        for _ in range(2):
            assert generate(records(2), variant(server), store=None).failed == []


def test_never_more_in_flight_than_allowed() -> None:
    with ScriptedServer(echo, latency=0.01) as server:
        generate(records(20), [variant(server), variant(server, "b", "{question}", max_concurrency=3)], store=None)
        assert server.in_flight_max <= 3, "the smallest wish at an endpoint holds"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be"),
        ({"retries": -1}, "retries must be"),
        ({"store": 5}, "store must be a path"),
        ({"budget": -1}, "budget"),
        ({"variants": []}, "variants: none given"),
        ({"variants": "a"}, "expected a list of Variant"),
        ({"variants": ["a"]}, "expected a list of Variant, found str in it"),
        ({"records": []}, "no records"),
        (
            {"records": [{"id": "1", "answer": "x", "variant": "a"}, {"id": "1", "answer": "y", "variant": "b"}]},
            "twice",
        ),
    ],
)
def test_bad_input_is_one_line_before_anything_is_sent(options: dict[str, Any], message: str) -> None:
    with ScriptedServer(echo) as server:
        given: dict[str, Any] = {"records": records(1), "variants": variant(server), "store": None} | options
        with pytest.raises(jm.InputError, match=message):
            generate(given.pop("records"), given.pop("variants"), **given)
        assert server.count == 0


def test_two_variants_of_one_name_and_places_that_nobody_fills_are_refused() -> None:
    with ScriptedServer(echo) as server:
        with pytest.raises(jm.InputError, match="two are called 'a'"):
            generate(records(1), [variant(server), variant(server)], store=None)
        with pytest.raises(jm.InputError, match="no record has 'nmae' for the place"):
            generate(records(1), variant(server, prompt="{question} {nmae}"), store=None)
        assert server.count == 0


# ---------------------------------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Variant("", "{question}", "m"), "name must be one line"),
        (lambda: Variant(" a", "{question}", "m"), "name must be one line"),
        (lambda: Variant("a", None, "m"), "needs a Prompt or the text of one"),
        (lambda: Variant("a", "", "m"), "variant 'a': user: the text of a prompt is needed"),
        (lambda: Variant("a", "{question}", len), "its prompt must be None"),
        (lambda: Variant("a", "{question}", 5), "the name of a model or a function"),  # type: ignore[arg-type]
        (lambda: Variant("a", None, str), "the name of a model or a function"),
        (
            lambda: Variant("a", "{question}", "m", temperatur=0),
            "'temperatur' is no setting of a model; settings: .*temp",
        ),
        (lambda: Variant("a", "{question}", "m", temperature=-1), "^variant 'a': temperature must be"),
        (lambda: Variant("a", "{question}", "m", logprobs=True), "'logprobs' is no setting"),
        (lambda: Variant("a", None, len, temperature=0), "no setting of a function"),
        (lambda: Variant("a", None, len, timeout=0), "timeout must be"),
        (lambda: Variant("a", None, len, max_concurrency=0), "max_concurrency must be"),
        (lambda: Variant.grid(["text"], ["m"]), "list of Prompt, or texts by name"),  # type: ignore[list-item]
        (lambda: Variant.grid([SHORT], [{"name": "m"}]), 'dictionaries with "model"'),
        (lambda: Variant.grid([SHORT], ["m", "m"]), "two are called 'short/m'"),
    ],
)
def test_variant_that_cannot_be_is_refused(made: Any, message: str) -> None:
    with pytest.raises(jm.InputError, match=message):
        made()


def test_value_of_an_unknown_setting_is_never_shown() -> None:
    with pytest.raises(jm.InputError) as caught:
        Variant("a", "{question}", "m", api_key="sk-canary")
    assert "api_key" in str(caught.value) and "canary" not in str(caught.value)


def test_grid_settings_of_a_model_go_before_the_shared_ones() -> None:
    models = ["big", {"model": "small", "name": "warm", "temperature": 0.9}]
    grid = Variant.grid([SHORT], models, temperature=0.1, base_url="http://127.0.0.1:9/v1")
    assert [one.written_by()["settings"]["temperature"] for one in grid] == [0.1, 0.9]
    assert [one.written_by()["model"] for one in grid] == ["big", "small"]


# ---------------------------------------------------------------------------------------------- functions


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


# ---------------------------------------------------------------------------------------------- plan


def test_plan_is_what_is_then_sent(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with ScriptedServer(echo) as server:
        variants = [*(variant(server, name, "{question}") for name in "ab"), variant(server, "c", model="m2")]
        given = [*records(10), *records(1, id="same", question="Who built mill 0?"), {"id": "none", "contexts": ["x"]}]
        plan = plan_answers(given, variants, store=store)
        assert server.count == 0 and not store.exists()
        generate(given, variants, store=store)
        assert plan.totals.calls == server.count == 20
        assert plan.frame["judge"].tolist() == ["a", "b", "c"] and set(plan.frame["metric"]) == {"answer"}
        assert plan.frame["calls"].tolist() == [5, 5, 10], "what two variants share is split between them"
        assert any("3 answers cannot be asked for" in note for note in plan.notes)
        later = plan_answers([*given, *records(1, id="new", question="Why?")], variants, store=store)
        assert (later.totals.calls, later.totals.stored) == (2, 20)
        assert later.totals.saved_usd == pytest.approx(generate(given, variants, store=store).totals().saved_usd)


def test_plan_learns_how_long_answers_are(tmp_path: Path) -> None:
    with ScriptedServer(lambda call: reply("Monks.", usage=(30, 400))) as server:
        one = variant(server)
        guessed = plan_answers(records(20), one, store=tmp_path / "s.db")
        assert any("range is assumed" in note for note in guessed.notes)
        bounded = plan_answers(records(20), variant(server, max_tokens=100), store=tmp_path / "s.db")
        assert bounded.totals.completion_tokens[1] == 2000
        generate(records(10), one, store=tmp_path / "s.db")
        known = plan_answers(records(20), one, store=tmp_path / "s.db")
    low, high = known.totals.completion_tokens
    assert low <= 4000 <= high < guessed.totals.completion_tokens[1] and known.totals.cost_usd is not None
    assert not any("assumed" in note for note in known.notes)


def test_plan_of_functions_says_that_nothing_is_known_of_them(tmp_path: Path) -> None:
    plan = plan_answers(records(3), Variant("f", None, lambda record: "x"), store=None)
    assert plan.totals.calls == 0 and plan.notes == (
        "f is a function, called 3 times; what that takes is not known here.",
    )
    assert "f is a function" in str(plan) and "f is a function" in plan._repr_html_()


def test_plan_shows_variants_and_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = plan_answers(records(3), Variant("a", "{question}", "gpt-4.1-mini", max_tokens=100), store=None)
    assert str(plan).startswith("variant") and plan.totals.cost_usd is not None and 0 < plan.totals.cost_usd[1] < 0.01
