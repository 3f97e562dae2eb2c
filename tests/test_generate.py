"""Answers of variants: what they say, what is shared and kept, what fails."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pytest
from generated import SHORT, echo, only, records, variant
from generated import quick_retries as _quick_retries  # noqa: F401 - a fixture of all tests here
from jurimetrics.answers import Answers
from jurimetrics.engine.calls import EndpointError
from jurimetrics.prompts import Prompt
from jurimetrics.variants.generate import generate
from jurimetrics.variants.variant import Variant
from scripted_server import ScriptedServer, allow, body, drop, error, hang, reply, with_faults


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
    grown = first[:]
    grown += second
    longer = Answers()
    longer.extend(first)
    longer.extend(second)
    for joined in (grown, longer, sum([first, second], [])):  # noqa: RUF017 - what a user may write
        assert isinstance(joined, Answers) and joined == both
        assert joined.written_by == both.written_by and len(joined.calls) == 4
    assert list(first.written_by) == ["a"] and len(first) == 2
    with pytest.raises(jm.InputError, match="two different variants are called 'a'"):
        grown += third
    assert len(grown) == 4
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
        (
            reply(
                None, message={"tool_calls": [{"id": "1", "function": {"name": "look_up"}}]}, finish_reason="tool_calls"
            ),
            "unparsed: the reply is blank; the model called a tool instead of answering",
            2,
        ),
        (
            reply("", message={"reasoning_content": "Monks, perhaps."}),
            "unparsed: the reply is blank; the model reasoned and then said nothing",
            2,
        ),
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
