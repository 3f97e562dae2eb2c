"""Embedders behind a real server: requests, faults, and what they are given."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jurimetrics as jm
import pandas as pd
import pytest
from embedded_texts import (
    BOTH,
    CROSS,
    NOBODY,
    PLACES,
    RECORDS,
    embedded,
    endpoint,
    never,
    only,
    placed,
    record,
    vectors_of,
)
from jurimetrics.engine.store import Store
from jurimetrics.judges.judge import Usage
from jurimetrics.tasks.embed import packed
from scripted_judge import ScriptedJudge, answer_all
from scripted_server import Answer, Call, ScriptedServer, body, drop, error, hang


def test_endpoint_gets_all_texts_of_a_row_in_one_request_and_nothing_twice() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=None)
    # b is one sentence on each side, so both metrics ask the same of it.
    assert sorted((call.body["input"] for call in server.requests), key=lambda texts: (len(texts), texts)) == [
        ["East. North.", "Far."], ["East. North.", "Near."], ["Far.", "Near."],
        ["East.", "North.", "Far."], ["East.", "North.", "Near."],
    ]  # fmt: skip
    assert {tuple(sorted(call.body)) for call in server.requests} == {("input", "model")}
    assert all(call.path == "/v1/embeddings" for call in server.requests)
    values = results.scores["score"].tolist()
    assert values[0] == pytest.approx(7 / (5 * math.sqrt(2)), abs=1e-7)  # (1, 1) and (3, 4)
    assert values[1:4] == pytest.approx([CROSS["f"], 0.96, 0.96], abs=1e-9)
    assert results.calls["judge"].unique().tolist() == ["places"]


def test_usage_and_cost_are_counted_and_sum_to_the_bill() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=None)
    scores, calls = results.scores, results.calls
    assert calls["prompt_tokens"].sum() == 120 and calls["completion_tokens"].sum() == 0
    assert calls["cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-15)
    assert scores["judge_cost_usd"].sum() == pytest.approx(calls["cost_usd"].sum(), abs=1e-12)
    assert scores["judge_prompt_tokens"].sum() == 120
    of_b = scores[scores["id"] == "b"]
    assert of_b["judge_cost_usd"].tolist() == pytest.approx([20e-6, 20e-6])  # 20 tokens, one request, two rows
    assert set(scores["judge"]) == {"computed"} and (scores["judge_calls"] == 1).all()
    assert results.summary()["cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-12)


def test_cost_is_counted_beside_a_panel_and_sums_to_the_bill() -> None:
    panel = jm.Panel([ScriptedJudge(name, lambda task, _: answer_all(task)) for name in ("ada", "bob")])
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, [*BOTH, "coherence"], panel, embedder=endpoint(server), repeats=2, store=None)
    assert results.scores["judge_cost_usd"].sum() == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-9)
    computed = results.scores[results.scores["judge"] == "computed"]
    assert len(computed) == 6 and computed["judge_cost_usd"].sum() == pytest.approx(120 * 2e-6, abs=1e-12)
    assert (results.calls["judge"] == "places").sum() == 5


def test_replay_from_the_store_asks_nothing_and_gives_the_same_rows(tmp_path: Path) -> None:
    with ScriptedServer(never, embed=placed) as server:
        first = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), store=tmp_path / "s.db")
        asked = server.count
        again = jm.evaluate(
            RECORDS, BOTH, NOBODY, embedder=endpoint(server, name="other", price=9.0), store=tmp_path / "s.db"
        )
        assert server.count == asked == 5
    kept = ["id", "metric", "score", "status", "reason", "details"]
    pd.testing.assert_frame_equal(first.scores[kept], again.scores[kept])
    assert again.calls["cost_usd"].sum() == 0 and again.calls["saved_usd"].sum() == pytest.approx(120 * 2e-6)
    assert len(Store(tmp_path / "s.db")) == 5


def test_another_model_or_length_has_its_own_answers(tmp_path: Path) -> None:
    def cut(call: Call) -> Answer:
        size = call.body.get("dimensions", 2)
        return embedded([one | {"embedding": one["embedding"][:size]} for one in vectors_of(call)])

    with ScriptedServer(never, embed=cut) as server:
        for options in ({}, {"dimensions": 1}, {"extra_body": {"user": "x"}}, {}):
            one = [record("Far.", "Near.")]
            jm.evaluate(one, BOTH, NOBODY, embedder=endpoint(server, **options), store=tmp_path / "s.db")
        assert server.count == 3
        assert [call.body.get("dimensions") for call in server.requests] == [None, 1, None]


def test_many_sentences_go_out_in_parts_and_are_joined_in_order() -> None:
    texts = [f"Sentence number {at} is here." for at in range(70)]
    directions = {text: (math.cos(at), math.sin(at)) for at, text in enumerate(texts)}
    with ScriptedServer(never, embed=lambda call: embedded(vectors_of(call, directions))) as server:
        row = only(record(" ".join(texts[:-1]), texts[-1]), "cross_similarity", endpoint(server))
        assert sorted(len(call.body["input"]) for call in server.requests) == [6, 32, 32]
    column = [value for (value,) in json.loads(row["details"])["matrix"]]
    assert column == pytest.approx([max(0.0, math.cos(69 - at)) for at in range(69)], abs=1e-4)
    assert row["judge_calls"] == 3


def test_replies_in_base64_and_in_any_order_are_the_same() -> None:
    def shuffled(call: Call) -> Answer:
        found = vectors_of(call)
        for one in found:
            one["embedding"] = base64.b64encode(struct.pack("<2f", *one["embedding"])).decode()
        return embedded(found[::-1])

    with ScriptedServer(never, embed=shuffled) as server:
        assert only(record("East. North.", "Far."), "cross_similarity", endpoint(server))["score"] == pytest.approx(
            CROSS["f"], abs=1e-7
        )


def test_repeats_ask_once() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), repeats=4, store=None)
        assert server.count == 5
    assert len(results.scores) == 6 and (results.scores["repeat"] == 0).all()


def test_limits_of_the_endpoint_hold() -> None:
    many = [record(f"Answer {at}.", f"Reference {at}.", id=str(at)) for at in range(30)]
    with ScriptedServer(never, latency=0.01) as server:
        jm.evaluate(many, "similarity_score", NOBODY, embedder=endpoint(server, max_concurrency=3), store=None)
        assert server.count == 30 and server.in_flight_max <= 3


def test_total_tokens_alone_are_prompt_tokens_and_no_usage_is_unknown() -> None:
    for usage, tokens in (({"total_tokens": 7}, 7), (None, None)):
        with ScriptedServer(never, embed=lambda call, said=usage: embedded(vectors_of(call), said)) as server:
            calls = jm.evaluate([record("Far.", "Near.")], BOTH, NOBODY, embedder=endpoint(server), store=None).calls
        assert calls["cost_usd"].tolist() == (
            [pytest.approx(14e-6)] if tokens else [pytest.approx(math.nan, nan_ok=True)]
        )
        assert calls["prompt_tokens"].fillna(-1).tolist() == [tokens or -1]


def test_half_a_surrogate_pair_is_sent_as_a_replacement_character() -> None:
    with ScriptedServer(never) as server:
        assert only(record("half \ud83d.", "whole"), "similarity_score", endpoint(server))["status"] == "ok"
        assert server.requests[0].body["input"] == ["half \ufffd.", "whole"]


def test_text_over_the_declared_input_is_not_applicable_and_not_sent() -> None:
    with ScriptedServer(never, embed=placed) as server:
        row = only(record("Far. " * 100, "Near."), "similarity_score", endpoint(server, max_input_tokens=50))
        assert (row["status"], server.count) == ("not_applicable", 0)
        assert "does not fit" in row["reason"]


def test_azure_paths_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "canary-azure-1")
    with ScriptedServer(never, embed=placed) as server:
        at_azure = jm.EndpointEmbedder("places", azure_endpoint=server.origin, price=1.0)
        assert only(record("Far.", "Near."), "similarity_score", at_azure)["score"] == pytest.approx(0.96)
        call = server.requests[0]
        assert call.path == "/openai/deployments/places/embeddings" and call.query["api-version"]
        assert call.headers["api-key"] == "canary-azure-1"


def test_budget_ends_it_typed() -> None:
    with ScriptedServer(never, embed=placed) as server:
        results = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server), budget={"calls": 1}, store=None)
        assert server.count == 1
    failed = results.scores[results.scores["status"] == "failed"]
    assert len(failed) >= 4 and failed["error"].str.startswith("budget:").all()


# ---------------------------------------------------------------------------------------------- faults


def with_vectors(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Call], Answer]:
    return lambda call: embedded(change(vectors_of(call)))


def first_is(vector: Any) -> Callable[[Call], Answer]:
    return with_vectors(lambda found: [found[0] | {"embedding": vector}, *found[1:]])


FAULTS: dict[str, tuple[Callable[[Call], Answer], str, int]] = {
    # name: (what the server does, how the row fails, how many requests that takes with retries=1)
    "500": (lambda call: error(500), "transport: ", 2),
    "502 page": (lambda call: body("<html>bad gateway</html>", 502), "transport: ", 2),
    "200 page": (lambda call: body("<html>sign in</html>"), "transport: ", 2),
    "dropped": (lambda call: drop(), "transport: ", 2),
    "cut in mid-reply": (lambda call: drop('{"data": [{"ind'), "transport: ", 2),
    "hanging": (lambda call: hang(), "timeout: ", 2),
    "no data": (lambda call: Answer("send", {"object": "list"}), "transport: ", 2),
    "400": (lambda call: error(400, message="bad input"), "rejected: ", 1),
    "400 of a parameter": (lambda call: error(400, param="input"), "rejected: ", 1),
    "too long": (lambda call: error(400, "context_length_exceeded"), "rejected: ", 1),
    "filtered": (lambda call: error(400, "content_filter"), "filtered: ", 1),
    "one too few": (with_vectors(lambda found: found[:-1]), "incomplete: 1 vectors for 2 texts", 2),
    "one too many": (with_vectors(lambda found: [*found, found[0] | {"index": 2}]), "incomplete: 3 vectors for 2", 2),
    "twice the same": (with_vectors(lambda found: [found[0], found[0]]), "incomplete: 2 vectors for 2 texts", 2),
    "no index": (with_vectors(lambda found: [{"embedding": one["embedding"]} for one in found]), "incomplete: ", 2),
    "no object": (with_vectors(lambda found: [found[0], 7]), "incomplete: ", 2),
    "zeros": (first_is([0.0, 0.0]), "out_of_range: vector 1 of 2 is all zeros", 2),
    "NaN": (first_is([math.nan, 1.0]), "out_of_range: vector 1 of 2 holds what is no finite", 2),
    "infinity": (first_is([math.inf, 1.0]), "out_of_range: vector 1 of 2 holds what is no finite", 2),
    "text": (first_is(["1", "2"]), "unparsed: ", 2),
    "not base64": (first_is("?"), "unparsed: ", 2),
    "null": (first_is(None), "unparsed: ", 2),
    "shorter": (first_is([1.0]), "unparsed: ", 2),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_a_typed_failure_of_its_row_alone(name: str, tmp_path: Path) -> None:
    broken, said, requests = FAULTS[name]

    def embed(call: Call) -> Answer:
        return broken(call) if call.body["input"][0] == "East." else placed(call)

    given_records = [record("Far.", "Near.", id="good"), record("East.", "North.", id="bad")]
    with ScriptedServer(never, embed=embed) as server:
        slow = endpoint(server, timeout=0.4 if name == "hanging" else 30.0)
        results = jm.evaluate(
            given_records, "similarity_score", NOBODY, embedder=slow, retries=1, store=tmp_path / "s.db"
        )
        assert server.count == 1 + requests
    good, bad = results.scores.to_dict("records")
    assert (good["status"], good["score"]) == ("ok", pytest.approx(0.96))
    assert (bad["status"], math.isnan(bad["score"])) == ("failed", True)
    assert bad["error"].startswith(said), bad["error"]
    assert len(results.calls) == 1 + requests
    assert results.calls["status"].tolist().count(said.partition(":")[0]) == requests
    assert len(Store(tmp_path / "s.db")) == 1
    shares = results.scores["judge_cost_usd"].sum(skipna=False)
    assert math.isnan(shares) or shares == pytest.approx(results.calls["cost_usd"].sum(), abs=1e-12)


@pytest.mark.parametrize(
    "broken",
    [lambda call: error(429, headers={"Retry-After": "0"}), lambda call: error(503), lambda call: drop(),
     with_vectors(lambda found: found[:-1])],
    ids=["429", "503", "dropped", "incomplete"],
)  # fmt: skip
def test_passing_fault_costs_no_score(broken: Callable[[Call], Answer]) -> None:
    with ScriptedServer(never, embed=lambda call: placed(call) if call.tries else broken(call)) as server:
        results = jm.evaluate(
            [record("Far.", "Near.")], "similarity_score", NOBODY, embedder=endpoint(server), store=None
        )
        assert server.count == 2
    assert results.scores["score"].tolist() == pytest.approx([0.96])
    assert results.calls["attempt"].tolist() == [1, 2]


def test_wrong_key_ends_the_run_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACES_KEY", "canary-places-123456")

    def refused(call: Call) -> Answer:
        return error(401, "invalid_api_key", f"Incorrect key provided: {call.headers['authorization'].split()[1]}")

    with ScriptedServer(never, embed=refused) as server:
        given_embedder = endpoint(server, api_key_env="PLACES_KEY")
        with pytest.raises(jm.InputError, match="PLACES_KEY") as raised:
            jm.evaluate(RECORDS, BOTH, NOBODY, embedder=given_embedder, store=None)
        assert server.requests[0].headers["authorization"] == "Bearer canary-places-123456"
    assert "canary" not in str(raised.value) + repr(given_embedder) + json.dumps(given_embedder.settings())


def test_reply_of_another_length_than_asked_for_fails() -> None:
    with ScriptedServer(never, embed=placed) as server:
        row = only(record("Far.", "Near."), "similarity_score", endpoint(server, dimensions=1))
    assert row["error"] == "unparsed: vectors of 2 numbers, asked for 1"


# ---------------------------------------------------------------------------------------------- what is given


def test_missing_key_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLACES_KEY", raising=False)
    with (
        ScriptedServer(never, embed=placed) as server,
        pytest.raises(jm.InputError, match=r"embedder 'places': .*PLACES_KEY"),
    ):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=endpoint(server, api_key_env="PLACES_KEY"), store=None)
    assert server.count == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dimensions": 0}, "dimensions"), ({"dimensions": True}, "dimensions"), ({"price": -1}, "price"),
        ({"price": math.nan}, "price"), ({"price": True}, "price"),
        ({"extra_body": {"input": "x"}}, "extra_body"), ({"base_url": "nowhere"}, "base_url"), ({"timeout": 0}, "timeout"),
        ({"api_key_env": "sk-no-key-but-a-secret-1234"}, "api_key_env"), ({"max_concurrency": 0}, "max_concurrency"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(jm.InputError, match=said) as raised:
        jm.EndpointEmbedder("m", **{"base_url": "http://127.0.0.1:9/v1"} | options)
    assert "secret" not in str(raised.value) and "judge" not in str(raised.value)


@pytest.mark.parametrize("embedder", [NOBODY, jm.Panel([NOBODY]), "wordllama", 7])
def test_only_an_embedder_embeds(embedder: Any) -> None:
    with pytest.raises(jm.InputError, match="embedder: expected an EndpointEmbedder or an EmbeddedEmbedder"):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=embedder, store=None)


def test_judge_and_embedder_of_one_name_are_refused() -> None:
    with pytest.raises(jm.InputError, match="nobody"):
        jm.evaluate(RECORDS, BOTH, NOBODY, embedder=scripted_as("nobody"), store=None)


def scripted_as(name: str) -> ScriptedJudge:
    return ScriptedJudge(name, lambda task, _: packed([PLACES[text] for text in task.texts]))


def test_settings_say_who_embedded() -> None:
    with ScriptedServer(never, embed=placed) as server:
        given_embedder = endpoint(server, dimensions=2)
        kept = jm.evaluate(RECORDS, BOTH, NOBODY, embedder=given_embedder, store=None).settings
    assert kept["embedder"] == given_embedder.settings()
    assert {"kind": "embeddings", "model": "places", "address": server.url, "dimensions": 2}.items() <= kept[
        "embedder"
    ].items()
    assert list(kept["judges"]) == ["nobody"]
    assert jm.evaluate(RECORDS, BOTH, NOBODY, store=None).settings["embedder"]["kind"] == "embedded"
    assert jm.evaluate(RECORDS, "f1", NOBODY, store=None).settings["embedder"] is None


def test_prices_come_from_the_list_where_none_is_declared() -> None:
    at_openai = jm.EndpointEmbedder("text-embedding-3-small")
    when = datetime(2026, 1, 1, tzinfo=UTC)
    assert at_openai.cost(Usage(1_000_000, 0), None, when) == pytest.approx(0.02)
    assert jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1").cost(Usage(1, 0), None, when) is None
    assert jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1", price=0).cost(Usage(), None, when) == 0.0
    with pytest.raises(jm.InputError, match=r"embedder 'm': price and price_as exclude each other"):
        jm.EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1", price=1.0, price_as="gpt-4o").check()
    mapped = jm.EndpointEmbedder("house-name", base_url="http://127.0.0.1:9/v1", price_as="text-embedding-3-large")
    mapped.check()
    assert mapped.cost(Usage(1_000_000, 0), "house-name", when) == pytest.approx(0.13)
    # A chat reply with output tokens is never priced by an entry that has no price for output.
    assert at_openai.cost(Usage(1_000_000, 5), None, when) is None
